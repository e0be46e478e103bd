#!/bin/sh
# The program fp8conv as a user meets it: every code in every mode against lib/fp8conv.py, which knows the formats from
# their definitions alone; shards, scales of all kinds, hostile files, and a run that is interrupted.
# Usage: tests/cli/fp8conv.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$1/fp8conv
[ -x "$program" ] || { echo "SKIP fp8conv: it was not built (cJSON, zlib or PCRE2 is not installed)"; exit 0; }
. "$lib/program.sh"

# ---- usage ----

refuses "which checkpoint? give IN and OUT; fp8conv --help tells more"
refuses "where to? give OUT, or --check to write nothing" a.safetensors
refuses "c: one input and one output; there is a third" a b c
refuses "--frob is not an option of fp8conv; did you mean --from?" --frob
refuses "--to mars: expected neuron (240) or ocp (448)" --to mars
refuses "--mode third: expected halve, ratio, requant or relabel" --mode third
refuses "--scales row: expected tensor, channel, block or kept" --scales row
refuses "--block 128: expected ROWSxCOLUMNS, such as 128x128" --block 128
refuses "--scale-name s: expected a pattern with {name} or {base}, such as {name}_scale" --scale-name s
refuses "--threads 0: expected a whole number from 1 to 64" --threads 0
refuses "b: --check writes nothing" a b --check
refuses "--json - and --csv - exclude each other" a b --json - --csv -
refuses "missing.safetensors: it cannot be opened (No such file or directory)" missing.safetensors out.safetensors
for word in --help --version --schema --codes; do
    works $word
    [ -s out ] && [ ! -s err ] || fail "fp8conv $word: nothing on standard output, or something on standard error"
done

# ---- the published numbers ----

works --codes
says "halve    2                    238               222  0                               0           0  131.0 dB"
says "ratio    28/15                 30                28  5.0 %                           0           0  31.5 dB"
says "relabel  1                    240               208  infinite                        2          12  none"
works --codes --csv -
[ "$(wc -l <out)" = 257 ] || fail "--codes --csv: not 256 codes and a head"
[ "$(awk -F, '$2 != "" && ($2 > 240 || $2 < -240)' out | grep -cv code)" = 14 ] || fail "not 14 codes beyond 240"
[ "$(grep -c ',yes,[0-9]*,[^,]*,' out)" = 238 ] || fail "not 238 codes exact when halved"

# ---- hostile files ----

printf 'junk' >junk.safetensors
"$program" junk.safetensors x.safetensors >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "junk: $(cat err)"
printf '\050\0\0\0\0\0\0\0{"w":{"dtype":"F8_E4M3","shape":[9],"data' >short.safetensors
"$program" short.safetensors x.safetensors >out 2>err
[ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "short: $(cat err)"
# checkpoint FILE HEADER BYTES: a small one, by hand; its header has fewer than 256 bytes
checkpoint() {
    printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0%s%b" "$2" "$3" >"$1"
}
fp8='"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[4,6]'
# scaled FILE DTYPE COUNT BYTES: w_scale, of four bytes, and w, of two codes
scaled() {
    checkpoint "$1" "{\"w_scale\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[0,4]},\"w\":{$fp8}}" "$4"
}
scaled nan.safetensors F32 1 '\0000\0000\0300\0177\0001\0002'
refuses "w_scale: scale 0 is nan; expected a number that is finite and not negative" nan.safetensors x.safetensors
scaled shape.safetensors F16 2 '\0000\0074\0000\0074\0001\0002'
refuses "w: the shape [2] of its scale w_scale does not fit: it is neither of one number, nor of one for each row, nor \
of blocks" \
    shape.safetensors x.safetensors
scaled type.safetensors I32 1 '\0000\0000\0000\0000\0001\0002'
refuses "w: its scale w_scale is I32; expected F32, BF16, F16 or F8_E8M0" type.safetensors x.safetensors
scaled huge.safetensors F32 1 '\0000\0000\0177\0177\0001\0002'
refuses "w_scale: its new scale inf cannot be held by F32" huge.safetensors x.safetensors
checkpoint plain.safetensors '{"w":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}' '1234'
refuses "plain.safetensors: it has no FP8, and no matrix that would be quantised (--include chooses)" \
    plain.safetensors x.safetensors
checkpoint bare.safetensors "{\"n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"w\":{$fp8}}" \
    '\0000\0000\0200\0077\0001\0002'
refuses "w: it has no scale, and --no-new-scales forbids a new one" bare.safetensors x.safetensors --no-new-scales
refuses "bare.safetensors: it would replace the input" bare.safetensors bare.safetensors
refuses "./bare.safetensors: it would replace the input bare.safetensors" bare.safetensors . --force
refuses "bare.safetensors: its FP8 is ocp's already; there is nothing to convert" \
    bare.safetensors x.safetensors --to ocp
refuses "--csv /nonexistent/x: it cannot be created (No such file or directory)" \
    bare.safetensors x.safetensors --csv /nonexistent/x
refuses "/nonexistent/x.safetensors: it cannot be created (No such file or directory)" \
    bare.safetensors /nonexistent/x.safetensors
ls | grep -q '^x' && fail "a refusal left a file: $(ls)"

. "$lib/numpy.sh"
. "$lib/served.sh"
twin() {
    served "$lib/fp8conv.py" "$@" >twin 2>&1 || fail "the twin disagrees, $*: $(tail -n 1 twin)"
}
mkdir made && twin make made || exit 1

# ---- every mode, one file and shards ----

for how in "halve kept" "ratio kept" "requant kept" "requant tensor" "requant channel" "requant block" \
    "requant block yes"; do
    set -- $how
    mode=$1 groups=$2 pow2=${3:-no}
    for in in made/one.safetensors made/nomx.safetensors made/many; do
        case "$in $how" in
        *nomx*ratio* | *one*halve* | *one*requant* | *many*halve* | *many*block) ;;
        *) continue ;;
        esac
        rm -rf x
        works $in x --mode $mode --scales $groups --csv report.csv --verify $([ $pow2 = yes ] && echo --power-of-two)
        says "Verified, read back:"
        twin check $mode $groups $pow2 $in x report.csv
    done
done
refuses "b.mx.weight: its scale b.mx.weight_scale holds powers of two; --mode ratio needs others" \
    made/one.safetensors y --mode ratio
rm -rf x
works made/many x/
grep -q '"quant_method": "fp8"' x/config.json || fail "config.json does not say what it is: $(cat x/config.json)"
cmp -s made/many/generation_config.json x/generation_config.json || fail "generation_config.json was not copied"
mkdir z && works made/many/model.safetensors.index.json z # an empty directory is as good as none
refuses "z/index.json: an index and its shards appear together, as a directory; name that" \
    made/many/model.safetensors.index.json z/index.json
"$program" made/one.safetensors one.1 --threads 1 --json - >json.1
"$program" made/one.safetensors one.1 --force --threads 5 --json - >json.5
cmp -s json.1 json.5 || fail "the report depends on the number of threads"
$python -m json.tool json.1 >/dev/null || fail "--json is not JSON"

# ---- and back ----

works made/one.safetensors there --verify
works there back --to ocp --verify
twin back made/one.safetensors back
works made/low.safetensors there --force --mode relabel --verify
says "240 codes, 0 beyond 240"
works there back --force --to ocp --mode relabel --verify
twin back made/low.safetensors back
"$program" there back --force --to ocp >out 2>err
[ $? = 1 ] || fail "240 doubled fits into 448: $(cat out err)"
refuses "there: its FP8 is neuron's already; there is nothing to convert" there y

# ---- infinities and NaNs ----

rm -f y
"$program" made/one.safetensors y --mode relabel >out 2>err
[ $? = 1 ] || fail "relabelling: not status 1"
grep -q "finite numbers would become infinity or NaN; nothing was written" err || fail "relabelling: $(cat err)"
"$program" made/many y --mode relabel >out 2>err
[ $? = 1 ] || fail "relabelling shards: not status 1"
[ ! -e y ] || fail "relabelling left something behind"
"$program" made/one.safetensors --check --mode relabel >out 2>err
[ $? = 1 ] || fail "--check: not status 1"
works made/one.safetensors --check
says ", nothing written"

# ---- numbers ----

for how in "neuron tensor" "neuron channel" "ocp block" "neuron block"; do
    set -- $how
    works made/plain.safetensors x.q --force --to $1 --scales $2 --verify
    twin quantised $1 $2 made/plain.safetensors x.q
done
works made/plain.safetensors x.q --force --include '*.gate.weight' --exclude '*lm_head*'
says "m.*.gate.weight"
[ "$(grep -c 'weight  *F32\|weight  *BF16' out)" = 1 ] || fail "--include takes others too: $(cat out)"
works made/one.safetensors --check --quantize
works made/one.safetensors x.q --force --keep-run-scales --run-scale '*nothing*' --scale-name '{base}.nothing' --each

# ---- large files: little memory, and nothing left of a run that was interrupted ----

twin big large.safetensors 512
twin memory "$program" large.safetensors 200
for signal in SIGINT SIGTERM; do
    twin interrupt "$program" large.safetensors $signal
done

exit $failed
