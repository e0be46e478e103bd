#!/bin/sh
# Quantised checkpoints of every layout, read alike by fp8conv, mxq and modelrun: lib/quant_layouts.py writes them and
# knows the numbers that they stand for; what is not told is refused by all.
# Usage: tests/cli/quant.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
programs=$(CDPATH= cd -- "$1" && pwd)
program=$programs/fp8conv
[ -x "$program" ] || { echo "SKIP quant: it was not built (cJSON or zlib is not installed)"; exit 0; }
. "$lib/program.sh"
. "$lib/numpy.sh"
twin() {
    $python "$lib/quant_layouts.py" "$@" >twin 2>&1 || fail "the twin disagrees, $1: $(tail -n 1 twin)"
}
twin convert "$program"
twin measure "$programs/mxq"
twin run "$programs/modelrun"
twin refuse "$program" "$programs/mxq"
exit $failed
