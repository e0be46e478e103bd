#!/bin/sh
# Quantised checkpoints of every layout, read alike by fp8conv, mxq and modelrun: lib/quant_layouts.py writes them and
# knows the numbers that they stand for; what is not told is refused by all. lib/gguf_layouts.py: the same of GGUF.
# Usage: tests/cli/quant.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
lib=$(CDPATH= cd -- "$(dirname -- "$0")/lib" && pwd)
programs=$(CDPATH= cd -- "$1" && pwd)
program=$programs/fp8conv
[ -x "$program" ] || { echo "SKIP quant: it was not built (cJSON, zlib or PCRE2 is not installed)"; exit 0; }
. "$lib/program.sh"
. "$lib/numpy.sh"
. "$lib/served.sh"
twin() {
    layouts=$1
    shift
    served "$lib/$layouts.py" "$@" >twin 2>&1 || fail "the twin disagrees, $layouts $1: $(tail -n 1 twin)"
}
twin quant_layouts convert "$program"
twin quant_layouts measure "$programs/mxq"
twin quant_layouts run "$programs/modelrun"
twin quant_layouts refuse "$program" "$programs/mxq"
twin quant_layouts advise "$program"
twin quant_layouts foreign "$program" "$programs/mxq" "$programs/modelrun"
twin gguf_layouts convert "$program"
twin gguf_layouts measure "$programs/mxq"
twin gguf_layouts refuse "$program" "$programs/mxq" "$programs/modelrun"
exit $failed
