#!/bin/sh
# The program trnbench as a user meets it: exit codes, one sentence for each mistake, files, determinism.
# Usage: tests/cli/trnbench.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
trnbench=$1/trnbench program=$1/trnbench
data=$(pwd)/data
. "$(dirname -- "$0")/lib/program.sh"

quick="--seconds 0 --peers none"

# ---- usage ----

refuses "a command is missing; trnbench --help lists them"
refuses "frobnicate is not a command; trnbench --help lists them" frobnicate
refuses "--frob is not an option of trnbench matmul; trnbench matmul --help lists them" matmul --frob
refuses "--shape needs a value: MxNxK" matmul --shape
refuses "--shape 10x20: expected MxNxK, three whole numbers from 1, such as 4096x4096x4096" matmul --shape 10x20
refuses "--shape 1x2x3x: expected MxNxK, three whole numbers from 1, such as 4096x4096x4096" matmul --shape 1x2x3x
refuses "--shape 0x2x3: expected MxNxK, three whole numbers from 1, such as 4096x4096x4096" matmul --shape 0x2x3
refuses "--model gpt-2: no such model; there are llama3-8b, llama3-70b, llama3-405b, mixtral-8x7b, gpt-oss-120b, \
deepseek-v3" \
    matmul --model gpt-2
refuses "--format fp12: no such format; there are all, f32, tf32, bf16, f16, f32-split, fp32r, bf16-psum, bf16-f16, \
bf16-e4m3, e4m3, e5m2, e3m4, cfp8, e4m3-e5m2, e4m3fn, e4m3-double, e5m2-double, e4m3-e5m2-double, e4m3fn-double, \
mxfp8, mxfp8-e5m2, mxfp8-mixed, mxfp8-mxfp4, mxfp4, int8" \
    matmul --format fp12
refuses "--system trn9: no such system; trnbench spec lists them" matmul --system trn9
refuses "--system trn9: no such system; trnbench spec lists them" spec --system trn9
isas='expected portable, avx2, avx512, neon, avx512-bf16, amx, amx-emulated, pairs-emulated or auto'
refuses "--phase training: expected prefill or decode" matmul --phase training
refuses "--tokens 0: expected a whole number from 1 to 16777216" matmul --tokens 0
refuses "--rounds 1.5: expected a whole number from 1 to 1000" matmul --rounds 1.5
refuses "--isa sse9: $isas" matmul --isa sse9
refuses "--share all: expected core, chip, domain or system" matmul --share all
refuses "--numerics chains=3: chains takes 1, 2, 4, 8, 16, not '3'" \
    matmul --numerics chains=3
refuses "--peers mkl: expected none, openblas or all" matmul --peers mkl
refuses "--no-host takes no value" matmul --no-host=1
refuses "--out needs --a, --b, one --format and a run on this host" matmul --shape 2x2x2 --out C.npy
refuses "--json /nonexistent/x.json: it cannot be created (No such file or directory)" spec --json /nonexistent/x.json

TRN_ISA=sse9
export TRN_ISA
refuses "TRN_ISA=sse9 is unknown or not available on this host" matmul --shape 2x2x2
unset TRN_ISA

for words in "--help" "--version" "matmul --help" "matmul --version" "matmul --schema" "spec --help" "spec --schema"; do
    # shellcheck disable=SC2086
    works $words
    [ -s out ] || fail "trnbench $words prints nothing"
    [ ! -s err ] || fail "trnbench $words writes to standard error"
done

# ---- bad files ----

refuses "--a is given without --b" matmul --a "$data/a_f4.npy"
refuses "missing.npy: it cannot be opened (No such file or directory)" matmul --a missing.npy --b "$data/b_f4.npy"
echo 'not a matrix' >text.npy
refuses "text.npy: it is not a .npy file" matmul --a text.npy --b "$data/b_f4.npy"
head -c 1000 "$data/a_f4.npy" >short.npy
refuses "short.npy: its shape needs 5040 bytes of data but the file holds 872" matmul --a short.npy --b "$data/b_f4.npy"
cp "$data/big_endian.npy" "$data/record.npy" "$data/rank3.npy" "$data/a_f8.npy" "$data/a_bf16.npy" "$data/empty.npy" .
cp "$data"/a_f4.npy "$data"/b_f4.npy .
refuses "big_endian.npy: its type '>f4' is big-endian; store it with .astype('<f4')" \
    matmul --a big_endian.npy --b b_f4.npy
refuses "record.npy: its 'descr' is not the name of a plain number type such as '<f4'" \
    matmul --a record.npy --b b_f4.npy
refuses "rank3.npy: it has 3 axes, a matrix has 2" matmul --a rank3.npy --b b_f4.npy
refuses "a_f8.npy: its numbers are <f8; <f4, <f2 and <u2 (bfloat16 codes) are read" matmul --a a_f8.npy --b b_f4.npy
refuses "a_bf16.npy: it holds 16-bit words (<u2); say --format bf16 if they are bfloat16 codes" \
    matmul --a a_bf16.npy --b b_f4.npy
refuses "empty.npy: its shape 0 x 140 has no elements" matmul --a empty.npy --b b_f4.npy
refuses "a_f4.npy has 140 columns but a_f4.npy has 9 rows" matmul --a a_f4.npy --b a_f4.npy

# ---- real matrices: the same numbers in every container give the same bits ----

# product A B FORMAT: writes C.npy, prints its digest
product() {
    # shellcheck disable=SC2086
    works matmul --a "$data/$1" --b "$data/$2" --format "$3" --system trn1.2xlarge --out C.npy --csv run.csv $quick
    grep -q '90 equal' out || fail "$1 x $2 in $3: the bit check did not compare all 90 outputs: $(cat out)"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "digest") d = i } NR == 2 { print $d }' run.csv
}

reference=$(product a_f4.npy b_f4.npy f32)
cp C.npy reference.npy
[ ${#reference} = 16 ] || fail "no digest: $reference"
for other in "a_f4.npy b_f4_fortran.npy f32" "a_f4.npy b_f4.npy tf32" "a_f4.npy b_f4.npy bf16" "a_f4.npy b_f4.npy f16" \
    "a_f2.npy b_f2.npy f16" "a_bf16.npy b_bf16.npy bf16" "a_bf16.npy b_f2.npy bf16" \
    "a_f2.npy b_f4_fortran.npy bfloat16"; do
    # shellcheck disable=SC2086
    digest=$(product $other)
    [ "$digest" = "$reference" ] || fail "$other: digest $digest, expected $reference"
    cmp -s C.npy reference.npy || fail "$other: C.npy differs"
done
works matmul --a - --b "$data/b_f4.npy" --format f32 --system trn1.2xlarge $quick <"$data/a_f4.npy"
grep -q "$reference" out || fail "a matrix from standard input gives another digest"

# ---- determinism ----

# model_columns FILE: everything that does not depend on this host's speed, and the digest
model_columns() {
    awk -F, -v OFS=, '
        NR == 1 {
            for (i = 1; i <= NF; i++)
                keep[i] = $i == "digest" || $i ~ /^host_[mnk]$/ || $i !~ /^(host|openblas|onednn)_/
        }
        { line = ""; for (i = 1; i <= NF; i++) if (keep[i]) line = line OFS $i; print line }' "$1"
}

two="--threads 2"
# shellcheck disable=SC2086
if ! "$trnbench" matmul --no-host --shape 1x1x1 $two >out 2>err; then
    grep -q "was built without OpenMP" err || fail "$two: $(cat err)"
    echo "skipped: two threads, because this trnbench was built without OpenMP"
    two="--threads 1"
fi
first=
for way in "--threads 1" "$two" "--threads 1 --isa portable" "$two --isa portable"; do
    # shellcheck disable=SC2086
    works matmul --shape 33x65x300 --shape 1x40x129 --csv way.csv --rounds 1 --peers none $way
    model_columns way.csv >way.txt
    [ -n "$first" ] || cp way.txt first.txt
    first=done
    cmp -s first.txt way.txt || fail "$way changes something: $(diff first.txt way.txt | head -4)"
done
works matmul --no-host --model mixtral-8x7b --csv one.csv --json one.json --report one.html
works matmul --no-host --model mixtral-8x7b --csv two.csv --json two.json --report two.html
cmp -s one.csv two.csv && cmp -s one.json two.json && cmp -s one.html two.html || fail "two runs of the model differ"

# ---- the tables: one screen, or everything ----

works matmul --no-host
[ "$(wc -l <out)" -le 24 ] || fail "the default table has $(wc -l <out) lines"
awk 'length > 100 { exit 1 }' out || fail "the default table is wider than 100 columns: $(cat out)"
[ "$(grep -c ' 2048x14336x4096 ' out)" = 10 ] || fail "not one line with its best shape for each system: $(cat out)"
grep -q '^  trn2.48xlarge .* 10,672  *6,660  *62.4 ' out ||
    fail "the default table has no total of trn2.48xlarge: $(cat out)"
works matmul --no-host --csv formats.csv
[ "$(grep -c '' formats.csv)" = 641 ] ||
    fail "the CSV beside the default table has not all formats: $(wc -l formats.csv)"
works matmul --no-host --all
[ "$(grep -c '^  [tp][a-z0-9.-]* .* \(f32\|tf32\|bf16\|f16\) ' out)" = 80 ] || fail "--all: not 40 rows for each phase"
works matmul --no-host --format e4m3-double --phase decode
grep -q 'trn1.32xlarge .* not on Trainium1' out || fail "double rows on Trainium1: $(cat out)"

# Progress goes to stderr; in a file it is a plain line for each stage.
works matmul --shape 8x8x64 --shape 9x9x64 --format bf16 $quick
[ "$(grep -c '^trnbench: measuring [89]x[89]x64, 1 product in bf16, [12] of 2$' err)" = 2 ] ||
    fail "progress: $(cat err)"
if grep -q "$(printf '[\r\033]')" err; then fail "progress in a file overwrites itself"; fi

# ---- the shape of the outputs ----

[ "$(grep -c '^work,phase,layer,' one.csv)" = 1 ] || fail "the CSV does not have one header row"
# 2 phases x 9 layers x 4 formats x 10 systems
[ "$(wc -l <one.csv)" -eq 721 ] || fail "the CSV has $(wc -l <one.csv) lines"
awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' one.csv || fail "rows of the CSV differ in length"
works matmul --no-host --shape 8x8x8 --json - && [ "$(head -c 1 out)" = "{" ] && tail -c 2 out | grep -q '}' ||
    fail "--json - mixes text into the JSON"
works matmul --no-host --shape 8x8x8 --csv - && head -n 1 out | grep -q '^work,' ||
    fail "--csv - mixes text into the CSV"
works spec --csv -
awk -F, 'NR == 1 && $1 == "system" { ok = 1 } END { exit !(ok && NR > 500) }' out || fail "spec --csv is short"
works spec
for system in trn1.2xlarge trn1.32xlarge trn1n.32xlarge trn2.48xlarge trn2u.48xlarge trn2-ultraserver \
    trn3-gen1-ultraserver trn3-gen2-ultraserver trn1-ultracluster project-rainier; do
    grep -q "^  $system " out || fail "spec does not list $system"
done
works spec --modes --csv modes.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    $c["core page"] != "" { n++; d = $c["differs"] + 0; if (d > 2 || d < -2) exit 1 } END { exit n < 12 }' modes.csv ||
    fail "spec --modes: a clock does not agree with its page: $(cat modes.csv)"
works spec --links --csv links.csv --json links.json
for row in trn1.32xlarge,sa,x,ring,4,bytes_per_s,48000000000, trn2-ultraserver,sa,z,ring,4,bytes_per_s,64000000000, \
    trn3-gen1-ultraserver,sa,tray,ring,2,bytes_per_s,512000000000, \
    trn3-gen2-ultraserver,doc,server,switch,18,bytes_per_s,320000000000, \
    trn3-gen2-ultraserver,sa/planes=4,server,switch,18,planes,4, \
    project-rainier,sa,efa,switch,6250,bytes_per_s,25000000000, trn2.48xlarge,sa,step,,,start_s,1.4e-06,s,assumed, \
    trn2.48xlarge,sa,all,,,diameter,4, 'trn2.48xlarge,also said,server,,,server_link_bytes_per_s,256000000000,'; do
    grep -q -F -e "$row" links.csv || fail "spec --links has no row $row"
    grep -q -x -F -e "${row%%,*}" out || fail "spec --links does not print ${row%%,*}"
done
if grep -q ',$' links.csv; then fail "spec --links: a number without a source: $(grep ',$' links.csv)"; fi
grep -q '"links": \[' links.json || fail "spec --json has no links"
for row in trn1.32xlarge,reading,chip,,,bytes_per_s,206158430208, \
    trn2-ultraserver,reading,peer,,,bytes_per_s,128000000000, \
    'trn3-gen2-ultraserver,reading,server and rack,,,bytes_per_s,1099511627776,'; do
    grep -q -F -e "$row" links.csv || fail "spec --links has no row $row"
done
for word in "384 GiB/s both ways" "2560 GB/s both ways" "256 GB/s bidirectional" "1.2 TB/s one way"; do
    grep -q -F -e "$word" out || fail "spec --links does not print $word"
done
works spec --links --system trn1.2xlarge
if grep -q "GB/s bidirectional" out; then fail "spec --links: Trainium3 is not Trainium1"; fi
works spec --physical --csv physical.csv --json physical.json
for row in trn1.2xlarge,server,trn1.2xlarge,nvme_drive_bytes,474000000000,B,,documented, \
    trn2.48xlarge,total,trn2.48xlarge,nvme_bytes,7600000000000,B,,derived, \
    "trn2.48xlarge,server,trn2.48xlarge,processor,,,Intel Xeon Sapphire Rapids,documented," \
    trn2.48xlarge,server,trn2.48xlarge,host_bytes,2199023255552,B,,documented, \
    "trn2-ultraserver,chip,Trainium2,dies,2,dies,,third party," \
    trn3-gen2-ultraserver,chip,Trainium3,hbm_stack_bytes,38654705664,B,,derived, \
    project-rainier,total,project-rainier,racks,12500,racks,,derived,; do
    grep -q -F -e "$row" physical.csv || fail "spec --physical has no row $row"
    grep -q -x -F -e "${row%%,*}" out || fail "spec --physical does not print ${row%%,*}"
done
if grep -q ',$' physical.csv; then fail "spec --physical: a fact without a source: $(grep ',$' physical.csv)"; fi
grep -q '"physical": \[' physical.json || fail "spec --json has no physical facts"
grep -q '"announced": \[' physical.json || fail "spec --json has no announcements"
works spec --claims --csv claims.csv --json claims.json
for row in 'Trainium1,"BF16 and FP32 of a chip, of 16","210 and 52.5 TFLOPS; 3,360 and 840",documented' \
    'Trainium1,"BF16 and FP32 of a chip, of 16","190 and 47.5 TFLOPS; 3,040 and 760",documented' \
    'Trn2 UltraServer,EFA,"12,800 Gbit/s",documented' 'Trn2 UltraServer,EFA,"3,200 Gbit/s",documented' \
    'Trainium3,FP8 of a chip,"2,517 TFLOPS, in a column FP8",documented'; do
    grep -q -F -e "$row" claims.csv || fail "spec --claims has no row $row"
done
grep -q "30 to 40 % better than P5e and P5en" out || fail "spec --claims does not print its rows: $(cat out)"
[ "$(grep -v -c ',.*20[0-9][0-9]' claims.csv)" = 1 ] || fail "spec --claims: a row without a date: $(cat claims.csv)"
grep -q '"claims": \[' claims.json || fail "spec --json has no claims"
works spec --announced --csv announced.csv
awk -F, 'NR == 1 { next } $1 != "Trainium4" || !/,third party,/ { exit 1 } END { exit NR < 6 }' announced.csv ||
    fail "spec --announced: $(cat announced.csv)"
grep -q "Announced, and not delivered" out || fail "spec --announced does not say that it is apart: $(cat out)"
for words in "" --sources --alternatives --modes --links --physical; do
    # shellcheck disable=SC2086
    works spec $words --csv apart.csv
    if grep -q -i "trainium *4[^0-9]" apart.csv; then fail "spec $words has an announcement: $(cat apart.csv)"; fi
done
works spec --physical --schema
grep -q "text" out || fail "spec --physical --schema: $(cat out)"
works matmul --no-host --shape 64x64x64 --format bf16
[ "$(grep -c ' bf16 ' out)" = 10 ] || fail "not one row for each system"
if grep -q "$(printf '\033')" out; then fail "escape codes in a file"; fi
grep -q '<svg' one.html || fail "the report has no picture"
if grep -q -i 'http' one.html; then fail "the report points somewhere else"; fi
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys; json.load(open("one.json"))' || fail "the JSON does not parse"
else
    echo "skipped: parsing one.json with python3, which is not installed (test_trnbench parses with cJSON)"
fi

# ---- sparse ----

refuses "--pattern 3:4: no such pattern; there are 4:16, 4:12, 4:8, 2:8, 2:4, 1:4 and 1:2" sparse --pattern 3:4
refuses "--shape 10x20: expected MxNxK, three whole numbers from 1 to 65536, such as 512x512x4096" sparse --shape 10x20
refuses "--format e8m0: expected bf16, f16, tf32, f32, e4m3 or e5m2, at most eight times" sparse --format e8m0
refuses "--rounds 0: expected a whole number from 1 to 1000" sparse --rounds 0
refuses "--frob is not an option of trnbench sparse; trnbench sparse --help lists them" sparse --frob
for words in "sparse --help" "sparse --version" "sparse --schema"; do
    # shellcheck disable=SC2086
    works $words
    [ -s out ] || fail "trnbench $words prints nothing"
done
for isa in auto portable; do
    works sparse --check --isa $isa --shape 20x40x300 --format bf16 --format f16 --format e4m3 \
        --csv sparse.csv --json sparse.json
    # 7 patterns x 3 formats
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["checked"] < 200 || $c["wrong"] != 0 || $c["k"] % 48 || $c["speed_up"] != "" { exit 1 }
        { n++ } END { exit n != 21 }' sparse.csv ||
        fail "sparse --check --isa $isa: $(cat sparse.csv)"
done
works sparse --pattern 4:16 --shape 16x32x480 --rounds 3 --csv -
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { d = $c["equivalent"] / $c["stored"]; if (d < 3.9 || d > 4.1 || $c["speed_up"] <= 0 || $c["trn2_us"] <= 0) exit 1 }
    END { exit NR != 2 }' out ||
    fail "sparse: $(cat out)"

# ---- activation ----

refuses "--function foo: no such function; NKI's names are meant, such as exp or gelu_apprx_tanh" \
    activation --function foo
refuses "--format e8m0: expected f32, bf16, f16, e4m3 or e5m2, at most eight times" activation --format e8m0
refuses "--size 15: expected a whole number from 16 to 268435456" activation --size 15
refuses "--check and --speed exclude each other" activation --check --speed
refuses "--frob is not an option of trnbench activation; trnbench activation --help lists them" activation --frob
for words in "activation --help" "activation --version" "activation --schema"; do
    # shellcheck disable=SC2086
    works $words
    [ -s out ] || fail "trnbench $words prints nothing"
done
works activation --check --between 0 --format f32 --csv act.csv --json act.json --report act.html
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { n++; if ($c["engine"] != "") exit 1 }
    $c["function"] == "exp" && $c["engine_relative"] != "" &&
        ($c["engine_relative"] < 1.1e-5 || $c["engine_relative"] > 1.2e-5) { exit 1 }
    END { exit n != 26 }' act.csv || fail "activation --check: $(cat act.csv)"
[ "$(grep -c '<svg' act.html)" = "$(grep -c '</svg>' act.html)" ] && grep -q '</html>' act.html ||
    fail "activation: the report is not whole"
case $(grep -c '<svg' act.html) in 0 | 26) ;; *) fail "activation: not a picture for each of 26 functions" ;; esac
works activation --speed --function tanh --function abs --format bf16 --size 4096 --rounds 3 --csv -
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $c["engine"] <= 0 { exit 1 } END { exit NR != 3 }' out ||
    fail "activation --speed: $(cat out)"

# ---- convert ----

refuses "--from fp12: no such format; there are f32, tf32, bf16, f16, e4m3, e4m3fn, e5m2, e3m4, e8m0, e2m3, e3m2, \
e2m1, cfp8, i8, u8, i16, u16, i32, u32, mxfp8_e4m3fn, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxfp4, mxint8" \
    convert --from fp12
refuses "--rounding up: expected nearest_even, stochastic, toward_zero, toward_positive, toward_negative or to_odd" \
    convert --rounding up
refuses "--overflow wrap: expected default or saturate" convert --overflow wrap
refuses "--size 1000: expected a multiple of 4096 up to 256Mi, such as 32768, 32Ki or 16Mi" convert --size 1000
refuses "--size 4Gi: expected a multiple of 4096 up to 256Mi, such as 32768, 32Ki or 16Mi" convert --size 4Gi
refuses "--rounds 0: expected a whole number from 1 to 101" convert --rounds 0
refuses "--isa sse9: $isas" convert --isa sse9
refuses "--peers some: expected none or all" convert --peers some
refuses "no conversion is left by these filters" convert --from mxfp4 --to mxfp4
refuses "--report /nonexistent/x.html: it cannot be created (No such file or directory)" \
    convert --report /nonexistent/x.html

# wrong_of CSV WHO: the wrong answers of WHO, summed over the file, and how many cases there were
wrong_of() {
    awk -F, -v who="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["who"] == who { wrong += $column["wrong"]; cases += $column["cases"] }
        END { print wrong + 0, (cases > 0) }' "$1"
}

works convert --quick --json convert.json --csv convert.csv --report convert.html
[ "$(wrong_of convert.csv trnmath)" = "0 1" ] || fail "convert --quick: wrong answers: $(wrong_of convert.csv trnmath)"
grep -q '^  f32->e4m3 .* 0 of 4,808 ' out || fail "convert --quick: no row for f32->e4m3 with its answers"
[ "$(grep -c '^conversion,from,to,' convert.csv)" = 1 ] || fail "convert: the CSV does not have one header row"
grep -q '<svg' convert.html || fail "convert: the report has no picture"
if grep -q -i 'http' convert.html; then fail "convert: the report points somewhere else"; fi
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys; r = json.load(open("convert.json"))["results"]
sys.exit(any(x["wrong"] for x in r if x["who"] == "trnmath") or not all(x["gelem_per_s"] > 0 for x in r))' ||
        fail "the JSON of convert does not parse, or is not what it should be"
fi
works convert --check-only --peers none --isa portable --rounding toward_positive --rounding to_odd --from f32 --to e5m2
grep -q 'f32->e5m2 RU  *0 of ' out || fail "convert: directed modes are not checked: $(cat out)"
works convert --schema
works convert --quick --from f32 --to bf16 --golden /nonexistent
grep -q 'has no reference vectors; wrong answers are not counted' err ||
    fail "convert does not say that vectors are missing"

mkdir vectors
sed '1s/ .*/ 55/' "$1/golden/encode_float8_e4m3.txt" >vectors/encode_float8_e4m3.txt
"$trnbench" convert --check-only --peers none --golden vectors --from f32 --to e4m3 --overflow default >out 2>err
status=$?
[ $status = 1 ] || fail "a wrong answer: exit $status, expected 1"
grep -q '^trnbench: f32->e4m3: 1 of 4808 answers are wrong; [0-9a-f]* gives [0-9a-f]* and should give 55$' err ||
    fail "a wrong answer: it said: $(cat err)"
echo "3f800000 38 38" >vectors/encode_float8_e4m3.txt
refuses "--golden vectors: encode_float8_e4m3.txt: line 1 is not 2 hexadecimal words" \
    convert --check-only --golden vectors

# Every format and mode: one row for each on this host, checked bit for bit, and one for each system.
formats=$("$trnbench" matmul --format fp12 2>&1 | sed 's/.*there are all, //; s/,//g')
# shellcheck disable=SC2086
works matmul --format all --shape 40x36x1056 --csv all.csv $quick
for format in $formats; do
    grep -q " $format .* 256 equal" out || fail "--format all: no checked row for $format"
    [ "$(awk -F, -v f="$format" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["format"] == f && $c["checked_outputs"] == 256 && $c["wrong_outputs"] == 0' all.csv | wc -l)" -eq 10 ] ||
        fail "--format all: not ten rows of the CSV for $format"
done
if grep -q WRONG out; then fail "--format all: $(grep WRONG out)"; fi
works matmul --no-host --shape 512x512x512 --format int8 --format bf16-psum
grep -q 'trn1.32xlarge .* int8 .* tensor engine\|trn1.32xlarge .* int8 .* start-up' out ||
    fail "int8 on Trainium1: $(cat out)"
grep -q 'trn2.48xlarge .* int8 .* not on Trainium2' out || fail "int8 on Trainium2: $(cat out)"
grep -q 'trn2.48xlarge .* bf16-psum .* not on Trainium2' out || fail "bf16-psum on Trainium2: $(cat out)"
# shellcheck disable=SC2086
works matmul --shape 8x8x100 --format mxfp4 --system trn3-gen2-ultraserver $quick
grep -q 'mxfp4 is modelled but not run here: .*multiple of 32' err || fail "MX of 100: $(cat err)"

# What the engine of a system lacks is a dash there and a number elsewhere; what this host lacks is said and harmless.
works matmul --no-host --shape 64x64x512 --format F8_E4M3
grep -q 'trn2.48xlarge .* - .* not on Trainium2' out || fail "F8_E4M3 on Trainium2: $(cat out)"
grep -q 'trn3-gen2-ultraserver .* HBM\|trn3-gen2-ultraserver .* start-up' out || fail "F8_E4M3 on Trainium3: $(cat out)"

[ $failed = 0 ] && echo "trnbench: all as it should be"
exit $failed
