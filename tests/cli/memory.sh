#!/bin/sh
# Memory that runs out: each program runs once for each allocation that it makes, and that one fails; and once more with
# all later ones failing, too. It ends with status 2 and one sentence about memory, leaks nothing, and every file is as
# it was; or it can do without that memory, and then its results are those of every day.
# Level 1 takes 5 places of each run, level 2 all; an allocation in a loop is one place, of which level 2 takes four.
# Usage: tests/cli/memory.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
programs=$(CDPATH= cd -- "$1" && pwd)
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
data=$root/tests/data
models=$root/examples/tools/shardplan/models
lib=$root/tests/cli/lib
program=$programs/memory
. "$lib/program.sh"
. "$lib/tools.sh"
for tool in $(tools 'tool bench'); do
    if [ -x "$programs/$tool" ] && grep -q __asan_init "$programs/$tool"; then
        echo "SKIP memory: the address sanitizer has an allocator of its own"
        exit 0
    fi
done
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ]; then most=0 TRN_FAIL_EACH=4; else most=5 TRN_FAIL_EACH=1; fi
export TRN_FAIL_EACH
OMP_NUM_THREADS=1 # so that allocations come in one order
export OMP_NUM_THREADS

# ---- an allocator that fails, and one that finds leaks ----

cc=${CC:-gcc}
"$cc" -std=c11 -O1 -Wall -Wextra -Werror -shared -fPIC "$lib/failing_malloc.c" -o failing_malloc.so -ldl -lgcc_s ||
    exit 1
preload=$PWD/failing_malloc.so

# Leaks are found by the runtime of gcc's sanitizer: it needs no other build. What it cannot see here, it cannot test.
leaks=$(gcc -print-file-name=liblsan.so 2>/dev/null)
cat >leak.c <<'LEAK'
#include <stdlib.h>
int main(void) { return malloc(7) == malloc(9); }
LEAK
# Whole stacks: glibc keeps memory of threads, and the sanitizer forgives that only where it sees who asked for it.
LSAN_OPTIONS=exitcode=23:fast_unwind_on_malloc=0
export LSAN_OPTIONS
"$cc" -O0 leak.c -o leak && (LD_PRELOAD="$preload $leaks" ./leak) >/dev/null 2>&1
if [ $? = 23 ]; then
    preload="$preload $leaks"
else
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" lsan "*) echo "SKIP lsan: gcc's leak sanitizer finds nothing here (expected)" ;;
    *) fail "gcc's leak sanitizer finds nothing here; if that is so on purpose, put lsan into TRN_EXPECT_SKIPS" ;;
    esac
fi

# ---- one run, and what is asked of it ----

# start/ has the files that are there before, now/ what a run makes of them and prints, ref/ what it makes every day.
runs=0 commands=0 places=0

fresh() {
    rm -rf now
    mkdir now
    cp -R start now/files
}

# starved PROGRAM ARGUMENTS...: with TRN_FAIL_AT in the environment, or without
starved() {
    status=0
    (cd now/files && LD_PRELOAD=$preload exec "$@") >now/out 2>err || status=$?
    runs=$((runs + 1))
}

# $says is what its sentences begin with, $refusal its status after one.
# one_sentence: about memory, beside what the program says every day, and what it says on a slow or a busy machine
one_sentence() {
    said= more=
    { read -r said && read -r more; } <err
    if [ -n "$more" ]; then
        grep -v -e '^ *[0-9][0-9]* s  ' -e ': other programs had the processors for ' err | grep -vxFf usual >told
        [ "$(wc -l <told)" = 1 ] || return 1
        read -r said <told
    fi
    case $said in
    "$says"*[Mm]emory* | "$says"*"could not allocate"*) ;;
    *) return 1 ;;
    esac
}

# alike HERE THERE: the same files and the same text in them, but for what takes time
alike() {
    [ -n "$seconds" ] || { diff -r "$1" "$2" >/dev/null; return; }
    (cd "$1" && find . | sort) >names
    (cd "$2" && find . | sort) | cmp -s names - || return 1
    while read -r name; do
        [ -d "$1/$name" ] && continue
        sed "$seconds" "$1/$name" >one
        sed "$seconds" "$2/$name" | cmp -s one - || return 1
    done <names
}

# untouched: every file that was there, and no other
untouched() { diff -r start now/files >/dev/null; }

# replaced: the sentence says that OUT is the new one, and it is; what had to be removed beside it may still be there
replaced() {
    case $said in *": it is complete, but "*) diff -r -x '*.part' ref/files now/files >/dev/null ;; *) return 1 ;; esac
}

# The failures to try, one a line: the number of the allocation, and "on" if all after it fail, too. Of some, spread
# over the whole run, each second one has that.
choose() {
    awk -v most="$most" '
        { at[NR] = $1 }
        END {
            for (i = 1; i <= NR && !most; i++) print at[i] "\n" at[i], "on"
            n = NR < most ? NR : most
            for (i = 0; i < n; i++) print at[n < 2 ? 1 : int(i * (NR - 1) / (n - 1)) + 1], i % 2 ? "on" : ""
        }' list
}

# starve "FILES" PROGRAM ARGUMENTS...: FILES are there before; NAME=PATH is a copy of PATH
starve() {
    rm -rf start && mkdir start
    for file in $1; do
        case $file in *=*) cp -R "${file#*=}" "start/${file%%=*}" ;; *) echo old >"start/$file" ;; esac
    done
    tool=${2##*/}
    says="$tool: " refusal=2
    case $2 in matmul | ideal_activation) says='' refusal=1 ;; esac # the first page's programs: nothing of app/
    command=$programs/$2
    shift 2
    [ -x "$command" ] || { echo "SKIP $tool: it was not built"; return; }
    commands=$((commands + 1))
    fresh
    unset TRN_FAIL_AT TRN_FAIL_ON
    TRN_FAIL_LIST=$scratch/list starved "$command" "$@"
    rm -rf ref && mv now ref && mv err usual
    [ "$status" = 0 ] || { fail "$tool $*: exit $status with all memory: $(cat usual)"; return; }
    [ -s list ] || { fail "$tool $*: it allocates nothing"; return; }
    choose >chosen
    places=$((places + $(wc -l <list)))
    bad=0
    fresh
    while read -r at on; do
        export TRN_FAIL_AT="$at"
        if [ -n "$on" ]; then export TRN_FAIL_ON=1; else unset TRN_FAIL_ON; fi
        starved "$command" "$@"
        if [ $status = $refusal ] && one_sentence; then
            untouched && continue
            replaced && fresh && continue
        fi
        if [ $status != 0 ] || ! alike ref now; then
            bad=$((bad + 1))
            [ $bad -gt 3 ] || fail "$tool $*: allocation $at${on:+ and all after it}: exit $status, it left" \
                "$(ls -R now/files | tr '\n' ' ' | head -c 300) and said: $(head -c 700 err)"
        fi
        fresh
    done <chosen
    echo "$tool $*: $(wc -l <chosen) of $(wc -l <list) places, $bad not survived"
}

# ---- small inputs ----

checkpoint() { # NAME HEADER BYTES
    printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0%s%b" "$2" "$3" >"$1"
}
checkpoint fp8.safetensors '{"w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[4,6]},"w_scale":{"dtype":"F32",'\
'"shape":[1],"data_offsets":[0,4]}}' '\0000\0000\0200\0077\0001\0002'
checkpoint plain.safetensors '{"v":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}' '12341234'
mkdir shards
cp fp8.safetensors plain.safetensors shards
echo '{"metadata": {"total_size": 14}, "weight_map": {"w": "fp8.safetensors", "w_scale": "fp8.safetensors",' \
    '"v": "plain.safetensors"}}' >shards/model.safetensors.index.json
echo '{}' >shards/config.json
product="matmul --a $data/a_f4.npy --b $data/b_f4.npy --format f32 --system trn1.2xlarge --seconds 0 --peers none"
if built trnbench; then
    # shellcheck disable=SC2086
    "$programs/trnbench" $product --out product.npy >/dev/null 2>&1 || fail "trnbench does not write product.npy"
fi
here=$PWD

# ---- the programs ----

seconds=
each_tool memory

# ---- other programs ----

starve "one.csv k.json tr.json k.svg" kernels/run softmax --size rows=8 --generation trn2 --csv one.csv --json k.json \
    --trace tr.json --svg k.svg
starve "one.csv" kernels/run mlp_mxfp8 --size rows=2 --size columns=128 --size hidden=512 --csv one.csv
starve "k.json tr.json" cores/block --ranks 1 --tokens 2 --width 4 --head 2 --ffn 4 --json k.json --trace tr.json
starve "k.json" cores/ring_attention --ranks 1 --tokens 2 --head 2 --json k.json
starve "k.json" cores/moe --ranks 1 --top 1 --tokens 2 --width 4 --ffn 2 --json k.json
seconds='s/"*seconds": [^,}]*//g; s/,[^,]*$//; s/in [0-9.]* s//; s/<td[^>]*>[0-9.e-]*<.tr>//'
starve "c.json c.csv c.html" conformance --only fp8.codes --json c.json --csv c.csv --html c.html
starve "c.csv" conformance --only format.encode.float4_e2m1fn.portable --csv c.csv
starve "" conformance --only format.golden.files
seconds='s/.*//'
starve "m.csv" matmul_speed --shape 16x16x16 --alone --rounds 1 --threads 1 --format bf16 --csv m.csv
starve "" numerics_speed --shape 16x16x32 --rounds 1 chains=1
starve "" vector_speed --shape 16x16 --rounds 1 add
seconds=
starve "" matmul
starve "" ideal_activation

echo "memory: $commands commands, $places places, $runs runs"
[ $failed = 0 ] && echo "memory: all is well"
exit $failed
