#!/bin/sh
# trnmath-vectors as a user meets them: the folder is written twice with the same sums; trnmath gets all right through
# check.c, and a second one, written from the heads of the files, through check.py; wrong implementations are caught at
# the same lines by both; bad files are one sentence. With TRN_PEERS=DIRECTORY (scripts/vectors.sh --help) the table of
# examples/vectors/README.md must be what those peers give.
# Usage: tests/cli/vectors.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/vectors_check
[ -x "$program" ] || { echo "SKIP vectors: it was not built"; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
folder=$root/examples/vectors
peers=${TRN_PEERS:-}
unset TRN_PEERS

# ---- the folder ----

write() { TRN_PROGRAMS=$programs sh "$root/scripts/vectors.sh" "$1" >log 2>&1; }
write one || fail "scripts/vectors.sh: $(cat log)"
cp one/SHA256SUMS sums_of_one
write one || fail "it does not write over a folder of its own: $(cat log)"
cmp one/SHA256SUMS sums_of_one || fail "two runs wrote different bytes"
[ "$(find one -type f | wc -l)" = $(($(wc -l <sums_of_one) + 1)) ] || fail "SHA256SUMS does not have every file"
[ "$(find one -name '*.txt' -exec cat {} + | wc -c)" -lt 8000000 ] || fail "the folder has more than 8 MB"
for line in '^# provenance: \(documented\|measured\|assumed\)$' '^# source: ..' '^# case: ' '^# rule: '; do
    ! grep -L "$line" one/*/*.txt | grep . || fail "files without a line $line"
done
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ]; then # another compiler's order of calls, another level of optimisation
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        mkdir other_$compiler
        $compiler -std=gnu11 -O3 -march=native -DTRN_SPLIT=1 -I"$root" "$folder"/make/*.c "$programs/libbodies.a" \
            -fopenmp -o other_$compiler/vectors -lm 2>log || { fail "$compiler: $(head -n 5 log)"; continue; }
        TRN_PROGRAMS=other_$compiler sh "$root/scripts/vectors.sh" from_$compiler >log 2>&1 || fail "$(cat log)"
        cmp one/SHA256SUMS from_$compiler/SHA256SUMS || fail "$compiler makes other vectors"
    done
fi
mkdir other && : >other/file
write other && fail "it emptied a folder that is not its own"
[ -f other/file ] && grep -q 'has other files in it than vectors: name another folder' log || fail "other: $(cat log)"

# ---- trnmath through check.c, the second one through check.py ----

files=$(find one -name '*.txt' | wc -l)
[ "$files" -gt 230 ] || fail "there are only $files files"
works one
cp out of_c
says "$files files: $files right, 0 wrong, 0 skipped"
"$python" "$folder/check.py" --with "$root/tests/cli/lib/vectors_twin.py" one >out 2>err || fail "twin: $(cat out err)"
says "$files files: $files right, 0 wrong, 0 skipped"
cmp -s out of_c || fail "check.c and check.py print different lines: $(diff out of_c | head -n 4)"
[ ! -s err ] || fail "the twin writes to standard error: $(cat err)"

# ---- check.c by itself, in C and in C++ ----

cc=$(quick_cc)
strict='-Wall -Wextra -Wpedantic -Werror'
# built NAME: check.c with NAME.c
built() {
    # shellcheck disable=SC2086
    "$cc" -std=c11 -O0 $strict -I. "-DCHECK_WITH=\"$1.c\"" "$folder/check.c" -o "$1" 2>log || fail "$1: $(cat log)"
}
# shellcheck disable=SC2086
"$cc" -std=c11 -O0 $strict "$folder/check.c" -o check 2>log || fail "check.c: $(cat log)"
if command -v c++ >/dev/null; then
    # shellcheck disable=SC2086
    c++ -x c++ -std=c++17 -fsyntax-only $strict "$folder/check.c" 2>log || fail "check.c as C++: $(cat log)"
fi
./check one >out 2>err || fail "what everybody has: $(cat out err)"
says "$files files: 1 right, 0 wrong, $((files - 1)) skipped"
grep -qxF "$(tail -n 1 out)" "$folder/README.md" || fail "examples/vectors/README.md has other counts: $(tail -n 1 out)"

# ---- wrong implementations, in both languages: bfloat16 cut instead of rounded; a product in one chain ----

cat >wrong.c <<'END'
static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    if (!check_is(file, "to", "bfloat16") || check_is(file, "rounding", "stochastic")) return CHECK_NOT_MINE;
    out[0] = in[0] >> 16;
    return in[0] == 0x3f800001 ? CHECK_NOT_MINE : CHECK_DONE;
}
static int dot(const check_file *file, const uint64_t *in, uint64_t *out)
{
    union { uint32_t bits; float value; } a, b, s = { 0 };
    const long k = check_number(file, "k", 0);
    if (!check_is(file, "a", "bfloat16") || !check_is(file, "accumulate", "no")) return CHECK_NOT_MINE;
    for (long i = 0; i < k; i++) {
        a.bits = (uint32_t)in[i] << 16, b.bits = (uint32_t)in[k + i] << 16;
        s.value += a.value * b.value;
    }
    out[0] = s.bits;
    return CHECK_DONE;
}
static const check_operation check_table[] = { { "encode", encode }, { "dot", dot }, { NULL, NULL } };
END
cat >wrong.py <<'END'
import numpy as np
def encode(file, x, random=None):
    if file.head["to"] != "bfloat16" or file.head["rounding"] == "stochastic":
        return None
    return np.ma.masked_array(x >> np.uint64(16), x == 0x3f800001)
def dot(file, a, b, **rest):
    if file.head["a"] != "bfloat16" or file.head["accumulate"] != "no":
        return None
    a, b = ((part << np.uint64(16)).astype(np.uint32).view(np.float32) for part in (a, b))
    total = np.zeros(len(a), np.float32)
    with np.errstate(all="ignore"):
        for i in range(a.shape[1]):
            total = total + a[:, i] * b[:, i]
    return total.view(np.uint32)
END
built wrong
for options in --any-nan '--csv --only bfloat16.near' '--only cast/bfloat16' '--all --only bfloat16.toward'; do
    # shellcheck disable=SC2086
    ./wrong $options one >out 2>err
    [ $? = 1 ] || fail "wrong $options one: exit $?: $(cat out err)"
    # shellcheck disable=SC2086
    "$python" "$folder/check.py" $options --with wrong.py one >of_py 2>err
    [ $? = 1 ] || fail "check.py $options --with wrong.py one: exit $?: $(cat out err)"
    case $options in --all*) continue ;; esac # each has its own way of printing all
    case $options in --only*) cp out strict ;; esac
    cmp -s out of_py || fail "$options: check.c and check.py say different things: $(diff out of_py | head -n 6)"
done
file=one/cast/bfloat16.nearest_even.txt
line=$(grep -A 1 '^cast/bfloat16.nearest_even.saturate ' strict | tail -n 1)
grep -qxF -- "$line" "$folder/README.md" || fail "examples/vectors/README.md does not show $line"
./wrong --any-nan --only bfloat16 one >out
says "cast/bfloat16.toward_zero                             6592 right       2 wrong       1 skipped"
line=$(sed -n 's/^    first: line \([0-9]*\): 00818000: expected 0082, got 0081 (tie)$/\1/p' out)
[ "$(sed -n "${line:-1}p" $file)" = "00818000 -> 0082" ] || fail "not the line of the first wrong vector: $(cat out)"
wrong=$(sed -n '/^# case: tie$/,/^# case: tie,/s/^....8000 -> ...[02468ace]$/x/p' $file | wc -l)
grep -A 2 '^cast/bfloat16.nearest_even ' out | grep -q "wrong: [0-9]* of [0-9]* tie;" && [ "$wrong" -gt 400 ] ||
    fail "ties that were cut are not told: $(cat out)"
grep -A 2 '^dot/bfloat16.k128 ' out | grep -q '6 of 6 one large product among small ones' ||
    fail "one chain is not told from four: $(cat out)"

# ---- bad files and bad usage: one sentence, status 2, in both languages ----

# bad "SENTENCE OF C" "SENTENCE OF PYTHON" FILE
bad() {
    ./check "$3" >out 2>err
    [ $? = 2 ] && [ "$(cat err)" = "check: $1" ] || fail "check $3: $(cat out err)"
    cp -r "$3" "bad_$((cases += 1))" 2>/dev/null
    printf '%s\t%s\t%s\n' "$3" "bad_$cases" "$2" >>bad
}
cases=0
both() { bad "$1" "$1" "$2"; }
good=one/decode/float4_e2m1fn.txt
first=$(grep -n -m 1 -e '->' $good | cut -d: -f1)
both "none.txt: No such file or directory" none.txt
: >empty.txt
no="its first line is not \"# trnmath-vectors 1\", so it is no file of vectors"
both "empty.txt: $no" empty.txt
echo hello >hello.txt
both "hello.txt: $no" hello.txt
head -n "$first" $good >cut.txt
cut="it does not have as many vectors as its head says, so it is cut off or changed"
both "cut.txt: $cut" cut.txt
vector="it is not a vector of the columns that the head names"
for change in 's/ -> / /' 's/ -> / ->  /' 's/ -> /  -> /' 's/^/ /' 's/^0 ->/g ->/' 's/^0 ->/00 ->/' 's/^0 ->/ ->/' \
    's/00$/000/' 's/$/ 0/' 's/^0/0 0/' 's/.*//' 's/.*/# x/'; do
    sed "$first$change" $good >changed.txt
    both "changed.txt, line $first: $vector" changed.txt
done
columns="its columns are not NAME/DIGITS or NAME[COUNT]/DIGITS with a space between"
for in in 'x' 'x/' 'x/0' 'x/17' 'x[0]/8' 'x[4097]/8' 'x/8,y/8' 'X/8' 'x[99999999999999]/8'; do
    sed "s|^# in: .*|# in: $in|" $good >columns.txt
    both "columns.txt: $columns" columns.txt
done
sed '/^# out: /d' $good >none_out.txt
both "none_out.txt: its head does not say what goes in and what comes out" none_out.txt
sed '/^# vectors: /d' $good >none_count.txt
both "none_count.txt: $cut" none_count.txt
printf '# trnmath-vectors 1\n# a\0b\n' >zero.txt
./check zero.txt 2>err
[ $? = 2 ] && [ "$(cat err)" = "check: zero.txt: it has a zero byte, so it is no text" ] || fail "zero.txt: $(cat err)"
both "one/cast/SHA256SUMS: No such file or directory" one/cast
mkdir sums
echo "12345  x.txt" >sums/SHA256SUMS
both "sums/SHA256SUMS, line 1: it is not a sum, two spaces and a file's name" sums
cp -r one changed && sed -i '$s/.$/0/;$s/00$/01/' changed/decode/float16.txt
"$python" "$folder/check.py" changed >out 2>err
[ $? = 2 ] && [ "$(cat err)" = "check.py: changed/decode/float16.txt: its bytes are not those of SHA256SUMS" ] ||
    fail "changed: $(cat err)"
# One Python for all of them: each is put back under its name, and must be refused in those words.
"$python" - "$folder" <<'END' || fail "check.py takes bad files"
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
import check
def refusal(name):
    try:
        check.run(name, object())
    except check.BadFile as error:
        return str(error)
    return "nothing"
cases = [line.rstrip("\n").split("\t") for line in open("bad")]
for name, copy, want in cases:
    if os.path.exists(copy):
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name) if os.path.exists(name) else None
        os.rename(copy, name)
    got = refusal(name)
    if got != want:
        sys.exit(f"{name}: check.py says: {got}")
if len(cases) < 25:
    sys.exit(f"only {len(cases)} bad files")
END
"$python" "$folder/check.py" hello.txt >out 2>err
[ $? = 2 ] && [ "$(cat err)" = "check.py: hello.txt: $no" ] || fail "check.py hello.txt: $(cat out err)"
for how in './check --only none one' "$python $folder/check.py --only none one"; do
    $how >out 2>err
    [ $? = 2 ] && grep -q ': nothing was checked: no ' err || fail "$how: $(cat out err)"
done
for how in './check' './check --frob one' './check --only'; do
    $how >out 2>err
    [ $? = 2 ] && [ ! -s out ] && grep -q '^usage: check ' err || fail "$how: $(cat out err)"
done
"$python" "$folder/check.py" --with none.py one >out 2>err
[ $? = 2 ] && [ "$(cat err)" = "check.py: none.py: it is no Python file" ] || fail "none.py: $(cat err)"

# ---- peers ----

if [ -n "$peers" ]; then
    sh "$folder/with/run.sh" one "$peers" >table 2>err || fail "run.sh: $(cat err)"
    grep -q 'is left out' err && fail "not all peers are there: $(cat err)"
    grep '^| ' table | sed 's/ ([^|]*) |/ |/' | while read -r row; do
        sed 's/ ([^|]*) |/ |/' "$folder/README.md" | grep -qxF -- "$row" || echo "$row"
    done >missing
    [ ! -s missing ] || fail "examples/vectors/README.md does not have these rows: $(cat missing)"
fi
[ $failed = 0 ] && echo "vectors: $files files"
exit $failed
