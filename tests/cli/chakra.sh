#!/bin/sh
# Execution traces of Chakra in shardplan: priced, refused, written and read again (lib/check_chakra.py). With
# TRN_ASTRA_SIM=DIRECTORY, a checkout of ASTRA-sim, its own traces beside trnbench, too.
# Usage: tests/cli/chakra.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/shardplan
[ -x "$program" ] || { echo "SKIP chakra: it was not built (cJSON, zlib or protobuf-c is not installed)"; exit 0; }
command -v python3 >/dev/null || { echo "SKIP chakra: there is no python3"; exit 0; }
. "$root/tests/cli/lib/program.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
python3 "$root/tests/cli/lib/check_chakra.py" "$programs" "$root" || failed=1
checkout=${TRN_ASTRA_SIM:-}
[ -z "$checkout" ] || python3 "$root/tests/cli/lib/check_chakra.py" "$programs" "$root" "$checkout" || failed=1
[ $failed = 0 ] && echo "chakra: all is well"
exit $failed
