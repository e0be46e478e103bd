#!/bin/sh
# The program ulpdiff as a user meets it: distances as a twin in NumPy counts them, hypotheses that are found again, the
# files it writes, and one sentence for each mistake.
# Usage: tests/cli/ulpdiff.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$(CDPATH= cd -- "$1" && pwd)/ulpdiff
[ -x "$program" ] || { echo "SKIP ulpdiff: it was not built (cJSON or zlib is not installed)"; exit 0; }
. "$here/lib/program.sh"

# fails "SENTENCE" ARGUMENTS...: exit 1 and that sentence last on stderr
fails() {
    sentence=$1
    shift
    "$program" "$@" >out 2>err
    status=$?
    [ $status = 1 ] || fail "$name $*: exit $status, expected 1"
    [ "$(tail -n 1 err)" = "$name: $sentence" ] || fail "$name $*: it said: $(cat err)"
}

# finds "BUG" ARGUMENTS...: exit 1; the verdict in out, and the last line on stderr, name it
finds() {
    sentence=$1
    shift
    "$program" "$@" >out 2>err
    status=$?
    [ $status = 1 ] || fail "$name $*: exit $status, expected 1"
    grep -q "^  verdict: bug: .*$sentence" out || fail "$name $*: no bug, or not this one: $(cat out)"
    tail -n 1 err | grep -q "a bug: .*$sentence" || fail "$name $*: it said: $(cat err)"
}

# ---- usage ----

refuses "which two files? ulpdiff --help tells more"
refuses "which two files? ulpdiff --help tells more" a.npy
refuses "--frob is not an option of ulpdiff; ulpdiff --help lists them" --frob
refuses "c.npy: two files are compared; files after --inputs are the operands" a.npy b.npy c.npy
refuses "--ulp-format float9: it is not a number format" a.npy b.npy --ulp-format float9
refuses "--fail-above x: expected a number, 0 or more" a.npy b.npy --fail-above x
refuses "--fail-above -1: expected a number, 0 or more" a.npy b.npy --fail-above -1
refuses "--op sort: expected matmul, all_reduce, reduce_scatter, cast or activation" a.npy b.npy --op sort
refuses "--op needs --inputs: what A and B were computed from" a.npy b.npy --op matmul
refuses "--op activation needs --function" a.npy b.npy --op activation --inputs x.npy
refuses "--function nothing: the Scalar engine has no function of that name" a.npy b.npy --function nothing
refuses "--numerics chains=3: chains takes 1, 2, 4, 8, 16, not '3'" a.npy b.npy --numerics chains=3
refuses "--a and --b come together: the operands of a product" a.npy b.npy --a x.npy
refuses "--a and --b are the operands of a product: --inputs and another --op exclude them" a.npy b.npy --a x.npy \
    --b w.npy --op cast
refuses "--codes and --places exclude each other" a.npy b.npy --codes --places
refuses "only one of --json, --csv and --html can have standard output" a.npy b.npy --csv - --json -
refuses "a.npy: it cannot be opened (No such file or directory)" a.npy b.npy
for word in --help --version --schema; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "ulpdiff $word: nothing on standard output, or something on standard error"
done

# ---- hostile files ----

: >void.npy
printf 'no array at all, but long enough to be looked at' >text.npy
mkdir nothing
for file in void.npy text.npy nothing; do
    "$program" $file $file >out 2>err
    [ $? = 2 ] || fail "$file: it was not refused"
    [ "$(wc -l <err)" = 1 ] && grep -q "$file" err || fail "$file: it said: $(cat err)"
done

. "$here/lib/numpy.sh" # the rest needs arrays
"$python" "$here/ulpdiff.py" || { echo "FAILED: ulpdiff.py"; exit 1; }
head -c 300 f32_a.npy >cut-off.npy
"$program" cut-off.npy f32_a.npy >out 2>err
[ $? = 2 ] && grep -q '^ulpdiff: cut-off.npy: ' err || fail "cut-off.npy: $(cat err)"
refuses "complex.npy: its type C64 is not one that has ulps" complex.npy complex.npy
refuses "z.npy and y.npy: its shape is [64, 48] in A and [5000] in B" z.npy y.npy
refuses "--inputs: a product has two operands, and here is 1" z.npy box.npy --op matmul --inputs x.npy
refuses "--inputs: no product of [20, 256] and [20, 256] is [64, 48]" z.npy box.npy \
    --dtype bfloat16 --inputs x.npy x.npy
refuses "--inputs: a cast has one operand with as many elements as its result, 3072" z.npy box.npy --inputs y.npy
refuses "--inputs: from 8 ranks of 1000 elements come 1000, and box.npy has 3072" z.npy box.npy \
    --op all_reduce --inputs ranks.npy
refuses "--system trn2-ultraserver: its chips are not 8 ranks, nor is a multiple of them" sum.npy fold.npy \
    --op all_reduce --system trn2-ultraserver --inputs ranks.npy
refuses "--tensor nobody: no tensor has such a name" many_a.npz many_b.npz --tensor nobody

# ---- distances and errors, against the twin ----

cat >judge.py <<'END'
import csv, json, math, subprocess, sys
bad = 0
for name, case in json.load(open("expected.json")).items():
    dtype = ["--dtype", case["dtype"]] if case["dtype"] else []
    command = [sys.argv[1], name + "_a.npy", name + "_b.npy", "--csv", "-"] + dtype
    run = subprocess.run(command, capture_output=True, text=True)
    row = next(csv.DictReader(run.stdout.splitlines()))
    want = case["row"]
    have = [int(row[c]) for c in ("ulp_0", "ulp_1", "ulp_2", "ulp_3_10", "ulp_11_100", "ulp_over_100")]
    if have != want.pop("buckets"):
        bad += print(name, "buckets", have, case) or 1
    for key, value in want.items():
        if not math.isclose(float(row[key]), value, rel_tol=1e-9, abs_tol=1e-15):
            bad += print(name, key, row[key], "expected", value) or 1
sys.exit(bad)
END
"$python" judge.py "$program" || fail "distances and errors differ from the twin's"

works z.npy z.npy --fail-above 0
says "3,072 pairs: 3,072 equal, 0 differ; bytes equal"
works z.npy f64.npy --fail-above 0
says "bytes differ"
works box.npy fortran.npy --fail-above 0
finds "infinity in" f32_special_a.npy f32_special_b.npy
says "NaN or infinity stands against something else"
says "zeros of other sign"
finds "plus 0.125 everywhere" z.npy bias.npy --ulp-format bfloat16
says "ulps of bfloat16 (units in the last place of A)"
finds "plus 0.125 everywhere" z.npy bias.npy --ulp-format bfloat16 --codes
says "ulps of bfloat16 (steps along the codes)"
works empty.npy empty.npy
works - z.npy <z.npy
says "bytes equal"

# The same on any number of threads.
for threads in 1 3; do
    OMP_NUM_THREADS=$threads "$program" big_a.npy big_b.npy --json - >threads.$threads 2>/dev/null
done
cmp -s threads.1 threads.3 || fail "the answer depends on the number of threads"

# ---- what errors look like ----

finds "times 1.0712" z.npy factor.npy
says "! systematic: B = 1.0712"
says "explains 100 % of the error's energy"
finds "plus 0.125 everywhere" z.npy bias.npy
says "! systematic: B = A + 0.125"
says "! every B that differs is above its A"
finds "the output is transposed" square.npy turned.npy
says "! B is A transposed"
grep -q systematic out && fail "a factor between unrelated numbers: $(cat out)"
finds "rows 10 to 19, columns 5 to 8: B is A plus 1 everywhere" z.npy box.npy
says "! all differences lie in rows 10 to 19, columns 5 to 8, of 64 x 48"
grep -q '^  \.\.*@@@@\.*$' out || fail "the map does not show the box: $(cat out)"
says "the first difference: [10, 5]"
works small.npy flushed.npy
says "subnormal numbers of A are 0 in B: B flushes them"
works y.npy cut.npy --dtype bfloat16
says "! no |B| is above its |A|: B is cut toward zero"
works - even.npy --dtype-b bfloat16 --tensor '*' <y.npy

# ---- verdicts ----

"$program" z.npy box.npy --fail-above 3 >out 2>err
[ $? = 1 ] && grep -qx 'ulpdiff: box.npy: [0-9.e+]* ulps, above 3' err || fail "--fail-above 3: $(cat err)"
works z.npy box.npy --fail-above 1e30
fails "factor.npy: SQNR is 22.95 dB, below 40.00" z.npy factor.npy --fail-sqnr-below 40
works z.npy factor.npy --fail-sqnr-below 22 --fail-above-rel 0.08
fails "f32_special_b.npy: NaN or infinity stands against something else" f32_special_a.npy f32_special_b.npy \
    --fail-above 1e30
fails "shape: its shape is [64, 48] in A and [48, 64] in B" many_a.npz many_b.npz --tensor 'shape'
fails "shape: its shape is [64, 48] in A and [48, 64] in B" many_a.npz many_b.npz
grep -qx 'ulpdiff: only: only in A' err || fail "only in A: $(cat err)"
says "2 tensors: 1 without a difference, 1 with"
says "all differences lie in rows 10 to 19"
finds "" many_a.npz many_b.npz --tensor '[qk]'
works a.safetensors b.safetensors --fail-above 1
says "3 tensors: 2 without a difference, 1 with"
says "F8_E4M3"
fails "w.q: 1 ulps, above 0" a.safetensors b.safetensors --fail-above 0

# ---- hypotheses ----

product="--dtype-inputs bfloat16 --op matmul --inputs x.npy w.npy"
works p_default.npy p_single.npy $product
says "B: explained by chains=1,product=bf16; output float32"
says "240 of 240 outputs computed, all equal; no other of"
says "A: explained by trn2 (the default); output float32"
works p_default.npy p_tile64.npy $product
says "B: explained by k_tile=64; output float32"
works p_default.npy p_bf16.npy --dtype-b bfloat16 $product
says "output bfloat16"
says "all of them need: inputs as they are; output bfloat16; product exact"
says "these data cannot tell:"
says "  chains        4 | "
finds "times 1.01" p_default.npy p_none.npy $product
says "B: none of "
works p_default.npy p_single.npy --dtype-inputs bfloat16 --op matmul --inputs x.npy wt.npy
says "A = x w^T"
says "B: explained by chains=1,product=bf16; output float32"
works p_cast.npy p_cast.npy --inputs x32.npy w32.npy
says "B: explained by trn2 (the default); inputs bfloat16; output float32"

works sum.npy ring.npy --dtype-b bfloat16 --op all_reduce --inputs ranks.npy
says "B: explained by ring on a ring; wire bfloat16"
says "A: explained by float64 sums, rounded once; wire float32"
works sum.npy fold.npy --op all_reduce --inputs rank0.npy rank1.npy rank2.npy rank3.npy rank4.npy rank5.npy \
    rank6.npy rank7.npy
says "ranks 0, 1, 2, ... one after the other; wire bfloat16"
finds "times 1/8" sum.npy mean.npy --op all_reduce --wire float32 --inputs ranks.npz
says "B is a mean"
says "float64 sums, rounded once; wire float32; mean, divided at the end"
works part3.npy part3.npy --dtype bfloat16 --op reduce_scatter --rank 3 --inputs ranks.npz
says "B: explained by ring on a ring; wire bfloat16"

works even.npy cut.npy --dtype bfloat16 --dtype-inputs float32 --inputs y.npy
says "A: explained by to bfloat16, nearest even"
says "B: explained by to bfloat16, toward zero"
works away.npy twice.npy --dtype bfloat16 --dtype-inputs float32 --op cast --inputs y.npy
says "A: explained by to bfloat16, nearest, ties away"
says "B: explained by to bfloat16, nearest even, by way of float16"
works exp.npy exp.npy --op activation --function exp --inputs mod.npy
says "B: explained by exp by the C library in binary64; output float32"

# ---- files ----

works p_default.npy p_single.npy --json all.json --csv all.csv --html page.html $product
"$python" -c '
import json
a = json.load(open("all.json"))
assert a["hypotheses"][0]["hypothesis"] == "chains=1,product=bf16; output float32", a["hypotheses"][0]
assert a["hypotheses"][0]["equal_b"] == a["tensors"][0]["elements"] == 240
assert sum(u["count"] for u in a["details"][0]["ulps"]) == 240' || fail "all.json is not what it should be"
[ "$(wc -l <all.csv)" = 2 ] || fail "all.csv has not a head and a row"
grep -q '</html>' page.html || fail "page.html does not end"
for text in 'chains=1,product=bf16' 'so are those of' 'these data cannot tell' 'verdict: rounding'; do
    grep -q "$text" page.html || fail "page.html does not say $text"
done
grep -q 'chains=1,product=bf16' page.html || fail "page.html does not explain"
grep -q 'href=\|src=\|<script' page.html && fail "page.html loads something"
finds "" z.npy box.npy
grep -q "$(printf '\033')" out && fail "colours in a file"
finds "" z.npy box.npy --color
grep -q "$(printf '\033')" out || fail "--color without colours"

# ---- a bug, and which ----

finds "rank 3 of 8 is left out of the sum" sum.npy short.npy --op all_reduce --wire float32 --inputs ranks.npy
finds "another function of the operand: tanh" exp.npy tanh.npy --op activation --function exp --inputs mod.npy
finds "from column 8 to 23, columns are reversed" z.npy turned_some.npy
finds "it is A that is wrong" shifted.npy p_default.npy $product
finds "a bias per column" biased.npy p_default.npy $product # which is no product: that alone makes no rounding of B
works z.npy nearly.npy
says "verdict: rounding: "
works z.npy z.npy
says "verdict: same"
for form in json csv html; do
    "$program" z.npy factor.npy --$form - >out 2>err
    [ $? = 1 ] && grep -q 'times 1.0712' out || fail "--$form: no bug, or not by its status: $(cat err)"
    "$program" z.npy nearly.npy --$form - >out 2>err
    [ $? = 0 ] && grep -q 'rounding' out || fail "--$form: rounding is no bug: $(cat err)"
done

mkdir battery && cd battery || exit 1
words=
[ "${TRN_TEST_LEVEL:-1}" -lt 2 ] || words=all
"$python" "$here/lib/ulpdiff_bugs.py" "$program" $words >table || fail "who was taken for what: $(cat table)"
cat table

exit $failed
