#!/bin/sh
# The program srlab as a user meets it: sums as published, training that stalls and training that does not, the same
# bits whatever runs it, the files it writes, and one sentence for each mistake.
# Usage: tests/cli/srlab.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
program=$1/srlab
[ -x "$program" ] || { echo "SKIP srlab: it was not built (cJSON or zlib is not installed)"; exit 0; }
. "$(dirname -- "$0")/lib/program.sh"

json() {
    if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"; fi
}

# column FILE NAME ROW: a field of the results in a JSON file, one row a line
column() {
    grep '"weights": ' "$1" | sed -n "$3s/.*\"$2\": \"*\([^,\"}]*\).*/\1/p"
}

# ---- usage ----

refuses "which command? sums, logistic, mlp or char; srlab --help tells more"
refuses "train is not a command; srlab --help lists them" train
refuses "--frob is not an option of srlab char; srlab char --help lists them" char --frob
refuses "--width is not an option of srlab mlp; srlab mlp --help lists them" mlp --width 8
refuses "--arms f64: expected some of f32,bf16-rne,bf16-sr,bf16-kahan,fp8-rne,fp8-sr" mlp --arms f64
refuses "--arms f32,f32: an arm is there twice" mlp --arms f32,f32
refuses "--batch 6: a batch is cut into 4 shards: expected a multiple of 4" mlp --batch 6
refuses "--lr 0: expected a number from 1e-09 to 10" mlp --lr 0
refuses "--sweep-lr 1e-3,nan: expected a number from 1e-09 to 10" mlp --sweep-lr 1e-3,nan
refuses "--steps 0: expected a whole number from 1 to 10000000" mlp --steps 0
refuses "--products fp16: expected bfloat16 or float32" mlp --products fp16
refuses "--width 30: it is no multiple of --heads 4" char --width 30
refuses "missing.txt: it cannot be read (No such file or directory)" char --text missing.txt
refuses ".: it cannot be read (Is a directory)" char --text .
printf 'too short' >short.txt
refuses "short.txt: 9 characters are too few; a context of 64 needs 1300" char --text short.txt
: >empty.txt
refuses "empty.txt: 0 characters are too few; a context of 64 needs 1300" char --text empty.txt
refuses "--csv /nonexistent/x.csv: it cannot be created (No such file or directory)" mlp --csv /nonexistent/x.csv
refuses "--json -: standard output takes one of them" mlp --csv - --json -
for words in --help --version "sums --help" "logistic --help" "mlp --help" "char --help" "sums --schema" \
    "char --schema"; do
    works $words
    [ -s out ] && [ ! -s err ] || fail "srlab $words: nothing on standard output, or something on standard error"
done

# ---- sums ----

works sums --json sums.json --csv sums.csv --svg sums.svg --html sums.html
json sums.json
[ "$(grep -c '  yes$' out)" = 11 ] || fail "not 11 sums as published: $(cat out)"
says "15.403683"
grep -q '^harmonic,bfloat16,nearest even,1,5.0625,,,,65,5.0625,0,yes$' sums.csv || fail "sums.csv: $(cat sums.csv)"
grep -q '</svg>' sums.svg || fail "sums.svg does not end"
[ "$(grep -c '<svg class="chart w0"' sums.html)" = 2 ] || fail "sums.html has not two pictures"

# ---- the published ordering, on models that train in a moment ----

works mlp --arms f32,bf16-rne,bf16-sr,bf16-kahan --steps 1000 --json mlp.json --html mlp.html
json mlp.json
says "the published ordering holds"
grep -q 'href=\|src=\|<script' mlp.html && fail "mlp.html loads something"
grep -q '</html>' mlp.html || fail "mlp.html does not end"
awk -v f="$(column mlp.json valid 1)" -v n="$(column mlp.json valid 2)" -v s="$(column mlp.json valid 3)" \
    'BEGIN { exit !(n > f + 0.1 && s < f + 0.03) }' ||
    fail "mlp: nearest even does not stall, or stochastic rounding does"
awk -v n="$(column mlp.json arrived_pct 2)" -v s="$(column mlp.json arrived_pct 3)" \
    'BEGIN { exit !(n < 70 && s > 98 && s < 102) }' || fail "mlp: what arrives of the updates: $(cat out)"

works logistic --arms f32,bf16-rne,bf16-sr --lr 1e-4 --steps 600 --seeds 3
says "the published ordering holds"
works logistic --arms f32,bf16-rne,bf16-sr --steps 300 --sweep-lr 1e-4,1e-2 --svg sweep.svg --csv -
[ "$(wc -l <out)" = 127 ] || fail "the sweep has not a head and 6 runs of 21 points"
grep -q '</svg>' sweep.svg || fail "sweep.svg does not end"

i=0 # a text of its own: the word list may not be installed
while [ $i -lt 400 ]; do
    echo "the quick brown fox $i jumps over the lazy dog, and packs my box with five dozen liquor jugs"
    i=$((i + 1))
done >text.txt
small="char --text text.txt --width 32 --layers 1 --heads 2 --context 16"
works $small --arms f32,bf16-rne,bf16-sr --steps 150 --lr 1e-3 --svg char.svg
says "the published ordering holds"
grep -q '^bf16-sr     ' out || fail "no words of bf16-sr"
grep -q 'bf16-sr' char.svg || fail "char.svg has no legend"

# ---- the same bits ----

head -n 80 text.txt >brief.txt # little to do: portable kernels have no instruction for fmaf
wide="char --text brief.txt --width 64 --layers 2 --context 32 --batch 4 --steps 3 --every 3"
wide="$wide --arms f32,bf16-sr,fp8-sr --words 1"
works $wide --threads 1 --csv one.csv --json one.json
works $wide --threads 3 --csv three.csv --json three.json
TRN_ISA=portable OMP_NUM_THREADS=2 "$program" $wide --csv portable.csv --json portable.json >out 2>err ||
    fail "portable: $(cat err)"
cmp -s one.csv three.csv || fail "another number of threads, other points"
cmp -s one.csv portable.csv || fail "another instruction set, other points"
for run in 1 2 3; do
    digest=$(column one.json weights $run)
    [ ${#digest} = 16 ] && [ "$digest" = "$(column three.json weights $run)" ] &&
        [ "$digest" = "$(column portable.json weights $run)" ] ||
        fail "run $run: other weights"
done
works $wide --seed 2 --csv two.csv
cmp -s one.csv two.csv && fail "another seed, the same points"

# Nothing half done is left.
ls | grep -q '\.part$' && fail "unfinished files: $(ls)"

exit $failed
