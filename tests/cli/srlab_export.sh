#!/bin/sh
# srlab char --export: the folder holds the model that was trained. Its loss on the held-out text, by NumPy and
# lib/char_forward.py, is the one that srlab printed; its bits are those of a training without --export; nothing half
# done stays.
# Usage: tests/cli/srlab_export.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$1/srlab
[ -x "$program" ] || { echo "SKIP srlab: it was not built (cJSON or zlib is not installed)"; exit 0; }
. "$lib/numpy.sh"
. "$lib/program.sh"

# A text with every kind of byte that a name in JSON must escape, and some that are not ASCII.
{
    i=0
    while [ $i -lt 400 ]; do
        printf 'the cat "%d" sat \\ on a mat,\twhich na\303\257ve rats ate: %d\n' $i $((i * 37 % 101))
        i=$((i + 1))
    done
} >text.txt
small="--text text.txt --width 32 --layers 2 --heads 4 --context 32 --steps 40 --words 0"

refuses "--export x: one model, but 6 are trained; give one of --arms, and one seed and rate" char --export x
refuses "--export x: one model, but 2 are trained; give one of --arms, and one seed and rate" char --arms f32 \
    --seeds 2 --export x
refuses "--export is not an option of srlab mlp; srlab mlp --help lists them" mlp --export x
refuses "x/y/z: it cannot be created (No such file or directory)" char --arms f32 $small --export x/y/z
mkdir full && : >full/file
refuses "full: it is there already; name another" char --arms f32 $small --export full

# The same number as near as binary32 sums allow; the engine's exponentials and GELU are good to 2^-20 or so.
# loss ARM PRODUCTS NEAR
loss() {
    works char --arms "$1" --products "$2" $small --json "$1.json" --export "$1.$2"
    [ -d "$1.$2.part" ] && fail "$1.$2.part is still there"
    [ "$(ls "$1.$2" | tr '\n' ' ')" = "config.json model.safetensors tokenizer.json " ] || fail "$1.$2: $(ls "$1.$2")"
    said=$(grep -o '"valid": [0-9.]*' "$1.json" | tail -n 1 | sed 's/.* //')
    got=$("$python" "$lib/char_forward.py" "$1.$2" text.txt "$2")
    awk "BEGIN { d = $said - $got; exit !($said > 0 && d < $3 && -d < $3) }" ||
        fail "$1 with $2: srlab printed $said, and the exported weights have $got"
}

loss f32 float32 2e-5
loss f32 bfloat16 5e-4
loss bf16-sr float32 2e-5
grep -q '"torch_dtype": "bfloat16"' bf16-sr.float32/config.json || fail "bf16-sr is not exported as bfloat16"

# An export changes nothing of the training.
works char --arms f32 $small --json without.json
sed 's/"[a-z_]*seconds": [0-9.e+-]*//g' without.json >a
works char --arms f32 $small --json f32.json --export again
sed 's/"[a-z_]*seconds": [0-9.e+-]*//g' f32.json >b
cmp -s a b || fail "with --export the training has other results: $(diff a b | head -n 5)"

exit $failed
