#!/bin/sh
# fp8conv with checkpoints of every kind that it reads and every form that it writes, each decoded a second time by
# lib/fp8conv_kinds.py; what config.json forbids, both ways; what is refused, and that nothing is written then.
# Usage: tests/cli/fp8conv_kinds.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$(CDPATH= cd -- "$1" && pwd)/fp8conv
[ -x "$program" ] || { echo "SKIP fp8conv_kinds: it was not built (cJSON, zlib or PCRE2 is not installed)"; exit 0; }
. "$lib/program.sh"
. "$lib/numpy.sh"
. "$lib/served.sh"
twin() {
    served "$lib/fp8conv_kinds.py" "$@" >twin 2>&1 || fail "the twin disagrees, $*: $(tail -n 1 twin)"
}
# becomes KIND FORM OPTION: the checkpoint made/KIND as FORM, proven by the program and by the twin
becomes() {
    rm -rf x
    works "made/$1" x "$3" "$2" --verify
    says "Verified, read back:"
    twin check "$2" "made/$1" x
}

refuses "--mxfp4 int8: expected fp8, bf16 or mx" --mxfp4 int8
mkdir made && twin make made || exit 1
for form in fp8 bf16 mx; do
    for kind in gptoss openai ctmx quark; do becomes $kind $form --mxfp4; done
    for kind in modelopt4 ct4; do becomes $kind $form --nvfp4; done
done
for form in fp8 mx; do becomes square $form --mxfp4; done # every scale but NaN: beyond BF16
"$program" made/square x.lost --mxfp4 bf16 >out 2>err
[ $? = 1 ] || fail "6 times 2^127 fits into BF16: $(cat out err)"
grep -q "finite numbers would become infinity or NaN; nothing was written" err || fail "square: $(cat err)"
for kind in deepseek ct8 mxfp8 powers experts8; do
    for form in bf16 mx; do becomes $kind $form --fp8; done
    rm -rf x
    works made/$kind x --verify
    twin kept made/$kind x
done
for form in bf16 fp8; do # the bytes do not depend on threads
    works made/gptoss x.1 --mxfp4 $form --threads 1 --force
    works made/gptoss x.5 --mxfp4 $form --threads 5 --force
    cmp -s x.1/model.safetensors x.5/model.safetensors || fail "the bytes depend on the number of threads"
done
for kind in gptoss modelopt4 deepseek; do # a weight in one file, its scale in another
    twin shard made/$kind shards
    for form in fp8 bf16 mx; do
        set -- --mxfp4 $form --nvfp4 $form --fp8 $form --verify
        rm -rf x.1 x.2
        works made/$kind x.1 "$@"
        works shards x.2 "$@"
        twin same x.1/model.safetensors x.2
    done
done
works made/gptoss x --mxfp4 fp8 --scales block --force --verify # fresh scales for larger blocks
works made/modelopt4 x --nvfp4 fp8 --scales channel --force --verify
twin rules "$program"
twin refusals "$program"

# ---- advice ----

refuses "--generation goes with --advise" made/gptoss --check --generation 2
refuses "--generation 4: expected a whole number from 1 to 3" --advise made/gptoss --generation 4
refuses "--advise writes no checkpoint" --advise made/gptoss x.no
refuses "made/none: it cannot be opened (No such file or directory)" --advise made/none
twin advice "$program" made

exit $failed
