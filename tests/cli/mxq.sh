#!/bin/sh
# The program mxq as a user meets it: the published ceilings, numbers that a twin in NumPy finds too, the files it
# writes, and one sentence for each mistake.
# Usage: tests/cli/mxq.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$1/mxq
[ -x "$program" ] || { echo "SKIP mxq: it was not built (cJSON, zlib or PCRE2 is not installed)"; exit 0; }
. "$here/lib/program.sh"

# value FORMAT SCALE COLUMN: of the row in rows.csv
value() {
    awk -F, -v format="$1" -v scale="$2" -v column="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
        $3 == format && $4 == scale { print $at }' rows.csv
}

# near FORMAT SCALE COLUMN EXPECTED: within 0.05
near() {
    value "$1" "$2" "$3" |
        awk -v want="$4" '{ n++; bad = $1 < want - 0.05 || $1 > want + 0.05 } END { exit bad || n != 1 }' ||
        fail "$1 $2 $3 is $(value "$1" "$2" "$3"), expected $4"
}

# ---- usage ----

refuses "what shall be quantised? give a FILE or --gaussian N; mxq --help tells more"
refuses "--frob is not an option of mxq; mxq --help lists them" --frob
refuses "--gaussian x: expected a whole number from 1 to 4294967296" --gaussian x
refuses "--laplace 0: expected a whole number from 1 to 4294967296" --laplace 0
refuses "--uniform needs a value: N" --uniform
refuses "--sigma nan: expected a number from 1e-30 to 1e+30" --gaussian 8 --sigma nan
refuses "--freedom 0: expected a number from 0.5 to 1e+06" --student-t 8 --freedom 0
refuses "--outliers 0.1: expected SHARE:FACTOR, such as 0.001:30" --gaussian 8 --outliers 0.1
refuses "--outliers 0.1:x: expected a number from 1e-06 to 1e+06" --gaussian 8 --outliers 0.1:x
refuses "--format fp5: no such format; --list names them" --gaussian 8 --format fp5
refuses "--cfp8 6,1: expected EXPONENT-BITS,BIAS: 2 to 5 and -60 to 60, such as 4,7" --gaussian 8 --cfp8 6,1
refuses "--rule OCP: expected NEURON, OCP_FLOOR, ROUND_UP, EVEN or CEIL" --gaussian 8 --rule OCP
refuses "--scales row: expected none, tensor, channel or 128x128" --gaussian 8 --scales row
refuses "--scales none: integers need a scale" --gaussian 8 --format int8 --scales none
refuses "--rounding up: expected rne, sr or both" --gaussian 8 --rounding up
refuses "--sr-bits 33: expected a whole number from 1 to 32" --gaussian 8 --sr-bits 33
refuses "--budgets 4,x: expected bits with commas between, such as 4.5,8.5" --gaussian 8 --budgets 4,x
refuses "--dtype f9: 'f9' is no number format; there are float32, tfloat32, bfloat16, float16, float8_e4m3, \
float8_e4m3fn, float8_e5m2, float8_e3m4 and others" --dtype f9
refuses "--plot pie: expected bars, histogram, crest or sigma" --gaussian 8 --plot pie
refuses "only one of --json, --csv, --report and --svg can have standard output" --gaussian 8 --json - --csv -
refuses "missing.npy: it cannot be opened (No such file or directory)" missing.npy
for word in --help --version --schema --list --theory; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "mxq $word: nothing on standard output, or something on standard error"
done
"$program" --gaussian 64 --json /nonexistent/x.json >out 2>err
[ $? = 2 ] && grep -q '^mxq: --json /nonexistent/x.json' err || fail "/nonexistent/x.json: $(cat err)"

# ---- what is published ----

works --theory
says "10 log10(24) + 20 M log10(2) = 13.80 + 6.02 M."
says "   3  FP8 E4M3, FP6 E2M3       31.86         31.52"
says "MXINT8   MXFP8 E4M3           7.54       7.55"
says "MXINT6   MXFP6 E2M3           1.96       1.96"
says "MXINT4   MXFP4                2.04       2.04"
says "NVINT4   NVFP4                2.39       2.39"

works --gaussian 1048576 --csv rows.csv
near "MXFP8 E4M3" ROUND_UP sqnr_db 31.52
near "MXFP8 E4M3" OCP_FLOOR sqnr_db 30.65
near "MXFP8 E4M3" ROUND_UP ceiling_db 31.86
near "MXFP4" ROUND_UP ceiling_db 19.82
near "MXFP8 E5M2" NEURON ceiling_db 25.84
near "FP8 E3M4" tensor ceiling_db 37.88
near BF16 - ceiling_db 55.95
near FP16 - ceiling_db 74.01
# A float that saturates nothing and loses nothing has 13.46 + 6.02 M dB on values of many binades.
near BF16 - sqnr_db 55.60
near FP16 - sqnr_db 73.66
near "MXFP8 E5M2" ROUND_UP sqnr_db 25.54
# Theory sees what is measured where nothing saturates.
for row in "MXINT8 ROUND_UP" "MXINT8 NEURON"; do
    near "${row% *}" "${row#* }" sqnr_db "$(value "${row% *}" "${row#* }" theory_db)"
done
near "MXFP6 E2M3" ROUND_UP theory_db "$(value "MXFP6 E2M3" ROUND_UP sqnr_db)"
near "MXFP8 E4M3" ROUND_UP bits 8.25
near "MXFP4" ROUND_UP bits 4.25
says "gaussian: 1,048,576 values (float32), 256 x 4,096"
says "Best SQNR (dB) within so many bits per element:"
grep -q "$(printf '\033')" out && fail "colours in a file"

# Stochastic rounding costs 3 dB.
works --gaussian 262144 --format mxint8 --rule ROUND_UP --rounding sr --csv rows.csv
near MXINT8 ROUND_UP sqnr_db 38.61
near MXINT8 ROUND_UP theory_db 38.61

# The same numbers in every number of threads, other ones for another seed.
works --laplace 300001 --student-t 65536 --outliers 0.01:20 --rounding both --threads 1 --csv one.csv
works --laplace 300001 --student-t 65536 --outliers 0.01:20 --rounding both --threads 3 --csv three.csv
works --laplace 300001 --student-t 65536 --outliers 0.01:20 --rounding both --seed 2 --csv seed.csv
cmp -s one.csv three.csv || fail "threads change the numbers"
mkfifo pipe # its reader sees the rows and one end
timeout 20 cat pipe >piped.csv &
timeout 20 "$program" --gaussian 4096 --csv pipe >out 2>err || fail "--csv PIPE: exit $?: $(cat err)"
wait
works --gaussian 4096 --csv plain.csv
[ "$(wc -l <piped.csv)" = "$(wc -l <plain.csv)" ] || fail "--csv PIPE is not what --csv FILE writes"
cmp -s one.csv seed.csv && fail "the seed does not matter"

# ---- files ----

works --uniform 65536 --report page.html --svg bars.svg --json all.json --time
[ -z "$(ls ./*.part 2>/dev/null)" ] || fail "unfinished files are left"
for file in page.html bars.svg; do
    grep -q '</svg>' $file || fail "$file has no picture"
    grep -q 'nan\|inf"' $file && fail "$file has a number that is none"
done
for plot in histogram crest sigma; do
    works --gaussian 65536 --plot $plot --svg -
    grep -q '<path class="line s0" d="M0 0M' out || fail "--plot $plot shows nothing"
done
if command -v xmllint >/dev/null; then xmllint --noout bars.svg || fail "bars.svg is not XML"; fi

# ---- hostile files ----

: >void.npy
printf 'no array at all, but long enough to be looked at' >noise.npy
printf '\377\377\377\377\377\377\377\377{}' >huge.safetensors
mkdir nothing
for file in void.npy noise.npy huge.safetensors nothing; do
    "$program" $file >out 2>err
    [ $? = 2 ] || fail "$file: it was not refused"
    [ "$(wc -l <err)" = 1 ] && grep -q "$file" err || fail "$file: it said: $(cat err)"
done

. "$here/lib/numpy.sh" # the rest needs arrays
"$python" -m json.tool all.json >/dev/null || fail "all.json is not JSON"

# ---- what the twin says ----

"$python" "$here/mxq.py" make || { echo "FAILED: mxq.py"; exit 1; }
all="--cfp8 2,-1 --scales tensor --scales channel --scales 128x128"
for format in mxint8 mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 fp8_e3m4 fp8_e4m3 fp8_e4m3fn fp8_e5m2 int8 \
    float16; do
    all="$all --format $format"
done
# agrees ARRAY SR-BITS OPTIONS...
agrees() {
    array=$1
    bits=$2
    shift 2
    works "$array" $all --json result.json "$@"
    "$python" "$here/mxq.py" check "$array" result.json "$bits" >said ||
        fail "$array $*: $(head -n 5 said)"
}
agrees normal.npy 32
agrees ties.npy 32 --scales none
agrees wild.npy 32 --scales none --rounding both
agrees wild.npy 32 --scales none --rule EVEN --rule CEIL
agrees wild.npy 8 --rounding sr --sr-bits 8
agrees ties.npy 5 --rounding sr --sr-bits 5

# rows_of FILE: without the name of the tensor
rows_of() {
    works "$@" --csv - && sed 's/^[^,]*,//' out >rows
}
rows_of normal.npy
mv rows first
for file in columns.npy double.npy "several.npz --tensor normal"; do
    rows_of $file
    cmp -s first rows || fail "$file: not the numbers of normal.npy"
done
works several.npz
says "Mean SQNR over 2 tensors, "
works holes.npy
says "2 of its values are NaN or infinite: here they count as 0"
rows_of holes.npy
mv rows first
rows_of filled.npy
cmp -s first rows || fail "NaN and infinity do not count as 0"
works empty.npy zeros.npy scalar.npy tiny.npy huge.npy --each --report page.html --rounding both
says "nothing but zeros"
works codes.npy --dtype float8_e4m3fn --format bfloat16
says "float8_e4m3fn"
says "exact"
refuses "codes.npy: it holds U8, elements of 8 bits; those of bfloat16 have 16" codes.npy --dtype bfloat16
refuses "several.npz: none of its 3 arrays is called nobody" several.npz --tensor nobody
"$program" text.npy >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "text.npy: $(cat err)"
head -c 3000 normal.npy >cut.npy
"$program" cut.npy >out 2>err
[ $? = 2 ] && grep -q '^mxq: cut.npy: ' err || fail "cut.npy: $(cat err)"

exit $failed
