#!/bin/sh
# The conformance kit as a user meets it: what it lists, prints and writes, one sentence for each mistake, and that it
# notices one wrong digit in a reference vector.
# Usage: tests/cli/conformance.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
golden=$1/golden
program=$1/conformance
[ -x "$program" ] || { echo "SKIP conformance: it was not built"; exit 0; }
. "$(dirname -- "$0")/lib/program.sh"

# fails ARGUMENTS...: exit 1
fails() {
    "$program" "$@" >out 2>err
    status=$?
    [ $status = 1 ] || fail "$name $*: exit $status, expected 1: $(cat out err)"
}

# ---- usage ----

refuses "--frob is not an option of conformance; conformance --help lists them" --frob
refuses "--only needs a value: PATTERN" --only
refuses "--only frob: no vector has such a name; --list prints them" --only frob
refuses "--all takes no value" --all=1
refuses "--json /nonexistent/x: it cannot be created (No such file or directory)" --json /nonexistent/x
refuses "only one of --json, --csv and --html can be -" --json - --csv -
for word in --help --version --schema; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "$name $word: nothing on standard output, or something on standard error"
done

# ---- names ----

works --list
[ "$(sort out | uniq -d)" = "" ] || fail "names that occur twice: $(sort out | uniq -d)"
[ "$(grep -vc '^[a-z0-9_.-]*$' out)" = 0 ] || fail "names that are no names: $(grep -v '^[a-z0-9_.-]*$' out)"
[ "$(wc -l <out)" -gt 700 ] || fail "only $(wc -l <out) vectors"
for id in format.encode.float8_e4m3.portable sr.loop.float16.mean device.ktile.trn2.nc_matmul.float32 fp8.halve.exact \
    matrix_unit.h100.portable scalar.exp.error random.philox4x32_10.1 gradient.ring.bfloat16.144 \
    qsnr.gaussian.mxfp8.round_up collective.nccom.all_reduce.32mib.r2.busbw collective.switch_over.mesh; do
    grep -qxF "$id" out || fail "no vector is called $id"
done
grep -q 'long$' out && fail "sweeps that take minutes are listed without --long"
works --list --long
grep -q '^scalar.exp.error.long$' out || fail "--long has no long sweep"
works --list --only 'format.*.float8_e4m3.portable'
[ "$(wc -l <out)" = 4 ] || fail "--only with a star: $(cat out)"

# ---- what is printed and written ----

works --only fp8.codes
says "chapter"
says "3 pass, 0 fail, 0 known differences, 0 skipped"
grep -q "$(printf '\033')" out && fail "colours in a file"
grep -q fp8.codes.same out && fail "vectors that pass are printed without --all"
works --only fp8.halve.exact --all
says "238"
works --only cost.chip --json all.json --csv all.csv --html page.html
says "Known differences"
says "published 667"
[ "$(wc -l <all.csv)" = 10 ] || fail "all.csv has not a head and 9 rows"
[ "$(head -n 1 all.csv)" = "id,chapter,what,status,expected,low,high,got,unit,cases,kind,source,reason,seconds" ] ||
    fail "all.csv: $(head -n 1 all.csv)"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
r = json.load(open("all.json"))
assert r["context"]["fail"] == 0 and r["context"]["known_difference"] == 8 and len(r["vectors"]) == 9
assert all(v["reason"] for v in r["vectors"] if v["status"] == "known difference")' ||
    fail "all.json is not what it should be"
fi
grep -q '</html>' page.html || fail "page.html does not end"
grep -q 'href=\|src=\|<script' page.html && fail "page.html loads something"
works --only cost.chip --csv -
cp out one.csv
cut -d, -f1-13 one.csv >one
cut -d, -f1-13 all.csv >two
cmp -s one two || fail "--csv - is not what --csv FILE writes"

# ---- one wrong digit, one line too many, a file that is not there, a file that nobody reads ----

copy() { rm -rf golden && cp -r "$golden" golden; }

copy
works --golden golden --only 'float8_e4m3.portable'
says "4 pass, 0 fail"
sed '100s/..$/55/' "$golden/encode_float8_e4m3.txt" >golden/encode_float8_e4m3.txt
cmp -s "$golden/encode_float8_e4m3.txt" golden/encode_float8_e4m3.txt && fail "nothing was broken"
fails --golden golden --only 'float8_e4m3.portable'
says "FAIL  format.encode.float8_e4m3.portable"
says "1 of 4,808 wrong"
says "expected 55"
says "3 pass, 1 fail"

copy
sed '/^[^#]/{s/.$/0/;:a;n;ba;}' "$golden/tensor_core_v100.txt" >golden/tensor_core_v100.txt
cmp -s "$golden/tensor_core_v100.txt" golden/tensor_core_v100.txt && sed '/^[^#]/{s/.$/1/;:a;n;ba;}' \
    "$golden/tensor_core_v100.txt" >golden/tensor_core_v100.txt
fails --golden golden --only matrix_unit.v100.portable
says "1 of 100 wrong"
grep -v '^#' "$golden/tensor_core_v100.txt" | head -n 1 >>golden/tensor_core_v100.txt
fails --golden golden --only matrix_unit.v100.portable
says "101 vectors, expected 100"

copy
rm golden/mx_e5m2_ocp.txt golden/bracket_tf32.txt
echo "nonsense" >>golden/decode_float16.txt
echo "00 00000000" >golden/decode_posit8.txt
fails --golden golden --only mx.blocks.e5m2.portable
fails --golden golden --only 'format.bracket.tf32.portable'
says "bracket_tf32.txt: it cannot be opened"
fails --golden golden --only 'format.decode.float16.portable'
says "is not 2 hexadecimal words"
fails --golden golden --only 'format.golden.files'
says "decode_posit8.txt: no vector of this kit reads it"
fails --golden nowhere --only 'format.golden.files'

exit $failed
