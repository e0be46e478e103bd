#!/bin/sh
# Names that would steer a terminal, be a formula, be markup or hide, through every tool that takes names: all that a
# tool writes stays text. lib/evil_names.py says what is asked, and tests/cli/tools/TOOL.py what is fed.
# Usage: tests/cli/evil_names.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/evil_names
. "$root/tests/cli/lib/program.sh"
command -v python3 >/dev/null || { echo "SKIP evil_names: there is no python3"; exit 0; }
OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/cli/lib/evil_names.py" "$programs" "$root" || failed=1
exit $failed
