#!/bin/sh
# debugger.sh: scripts/debugger.py reads codes as the golden vectors do; a tensor of each kind prints in gdb, in lldb
# at level 2. .clangd finds the build's commands: clangd reads a door without an error at level 2.
. "$(dirname -- "$0")/lib.sh"

if ! have python3; then
    checked
    skip python3 'python3 is not installed, so nothing decodes codes'
    finish
fi

# ---- codes ----

cat >"$scratch/codes.py" <<'END'
import struct, sys, tarfile
sys.path.insert(0, sys.argv[1] + "/scripts")
import debugger
count = 0
with tarfile.open(sys.argv[1] + "/tests/golden/codecs.tar.xz") as packed:
    for member in packed.getmembers():
        name = member.name.rpartition("/")[2]
        if not name.startswith("decode_"):
            continue
        one = debugger.named({"tf32": "tfloat32"}.get(name[7:-4], name[7:-4]))
        for line in packed.extractfile(member).read().decode().splitlines():
            if line.startswith("#"):
                continue
            code, want = (int(cell, 16) for cell in line.split())
            got = one.number(code << one.zeros) if one.zeros and code < 1 << 19 else one.number(code)
            want = struct.unpack("<f", struct.pack("<I", want))[0]
            assert got == want or (got != got and want != want), (name, hex(code), got, want)
            count += 1
print(count)
END
if step 'debugger.py does not decode as the golden vectors do' python3 "$scratch/codes.py" "$root"; then
    checked
    [ "$(cat "$scratch/log")" -ge 1000 ] || fail "debugger.py was held against few codes: $(cat "$scratch/log")"
fi

# ---- tensors ----

cat >"$scratch/app.c" <<'END'
#include <trnmath/trn_tensor.h>
int main(void)
{
    static uint16_t bf16[6] = { 0x3f80, 0x4000, 0xbf00, 0x7f80, 0x7fc0, 0x0001 };
    static uint8_t e4m3[4] = { 0x38, 0x77, 0x78, 0xf9 };
    static float f32[4] = { 1, 2, 3, 4 };
    static int8_t i8[100];
    trn_tensor a = trn_tensor_2d(TRN_BF16, bf16, 2, 3), b = trn_tensor_1d(TRN_F8_E4M3, e4m3, 4);
    trn_tensor turned = trn_tensor_2d(TRN_F32, f32, 2, 2), none = { 0 }, lost = trn_tensor_1d(TRN_F32, (void *)8, 4);
    trn_tensor large = trn_tensor_2d(TRN_I8, i8, 50, 2), bad = a;
    i8[0] = -1, bad.rank = 99, turned.stride[0] = 1, turned.stride[1] = 2;
    return a.rank + b.rank + turned.rank + none.rank + lost.rank + large.rank + bad.rank; /* here */
}
END
here=$(grep -n '/\* here' "$scratch/app.c" | cut -d: -f1)
expressions='a b turned none lost large bad'
said() { # FILE: what has to be in it
    for words in 'bfloat16 \[2, 3\] = {{1, 2, -0.5}, {inf, nan, 9.18354962e-41}}' \
        'float8_e4m3 \[4\] = {1, 240, inf, nan}' \
        'float32 \[2, 2\] = {{1, 3}, {2, 4}}' 'no tensor' 'float32 \[4\], whose memory cannot be read' \
        'int8 \[50, 2\] = {{-1, 0}, {0, 0}.*{0, 0}, \.\.\.}' 'a trn_tensor that is none: format 3, rank 99' '^{1, 2}$' \
        "there is no format 'f99'" 'usage: trn EXPRESSION'; do
        [ "$2 $words" != 'lldb usage: trn EXPRESSION' ] || continue # which ends at the first command that fails
        checked
        grep -q -- "$words" "$1" || { fail_log "$1" "$2 does not say: $words"; break; }
    done
}

if step 'a program with tensors' gcc -g -O0 -I"$root" "$scratch/app.c" -o "$scratch/app"; then
    checked
    if have gdb; then
        { printf 'source %s\nbreak %s\nrun\n' "$root/scripts/debugger.py" "app.c:$here"
            for one in $expressions; do echo "print $one"; done
            printf 'python\nfor text in ("trn bf16 bf16 2", "trn bf16 f99", "trn"):\n    try: gdb.execute(text)\n'
            printf '    except gdb.error as trouble: print(trouble)\nend\n'; } >"$scratch/commands"
        timeout 60 gdb -q -batch -nx -x "$scratch/commands" "$scratch/app" >"$scratch/gdb" 2>&1 </dev/null
        said "$scratch/gdb" gdb
    else
        skip gdb 'gdb is not installed'
    fi
    if [ "$level" -ge 2 ]; then
        checked
        if have lldb; then
            # Debian 12 says where lldb's own module lies, and not that.
            PYTHONPATH=$(find /usr/lib/llvm-*/lib/python3.*/dist-packages -maxdepth 0 2>/dev/null | head -n 1)
            export PYTHONPATH
            set -- -o "command script import $root/scripts/debugger.py" -o "breakpoint set -f app.c -l $here" -o run
            for one in $expressions; do set -- "$@" -o "frame variable $one"; done
            timeout 60 lldb -b "$@" -o 'trn bf16 bf16 2' -o 'trn bf16 f99' "$scratch/app" >"$scratch/lldb" 2>&1 \
                </dev/null
            said "$scratch/lldb" lldb
            unset PYTHONPATH
        else
            skip lldb 'lldb is not installed'
        fi
    fi
fi

# ---- clangd ----

if [ "$level" -ge 2 ]; then
    checked
    if have clangd && [ -f "$root/.build/test/compile_commands.json" ]; then
        for file in trnmath/array/matmul.h tests/unit/test_core_memory.c; do
            step "clangd has errors in $file" timeout 300 clangd --check="$root/$file" --log=error
        done
    else
        skip clangd 'clangd or the build in .build/test is not there'
    fi
fi
finish
