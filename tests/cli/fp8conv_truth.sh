#!/bin/sh
# fp8conv tells the truth, loses nothing, and is done when it is done: codes against fractions, every mode twice, what
# config.json says after each, JSON as Python has it, files beside the weights, scales of what is quantised at run time.
# lib/fp8conv_truth.py has the rules, from the formats' definitions.
# Usage: tests/cli/fp8conv_truth.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
program=$(CDPATH= cd -- "$1" && pwd)/fp8conv
[ -x "$program" ] || { echo "SKIP fp8conv_truth: it was not built (cJSON, zlib or PCRE2 is not installed)"; exit 0; }
. "$lib/program.sh"
. "$lib/numpy.sh"
for part in exact twice config text files runs names full; do
    mkdir "$part" && cd "$part" || exit 1
    $python "$lib/fp8conv_truth.py" "$part" "$program" >twin 2>&1 || fail "$part: $(tail -n 3 twin)"
    cd .. || exit 1
done
exit $failed
