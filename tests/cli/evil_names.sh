#!/bin/sh
# Names that would steer a terminal, be a formula, be markup or hide, through every tool that takes names: all that a
# tool writes stays text. lib/evil_names.py says what is fed and asked; the tools are those of scripts/package.sh, and
# a tool that it does not know fails the test.
# Usage: tests/cli/evil_names.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/fp8conv
[ -x "$program" ] || { echo "SKIP evil_names: fp8conv was not built (cJSON or zlib is not installed)"; exit 0; }
. "$root/tests/cli/lib/program.sh"
command -v python3 >/dev/null || { echo "SKIP evil_names: there is no python3"; exit 0; }
tools=$(sed -n "s/^tools='\(.*\)'\$/\1/p" "$root/scripts/package.sh")
[ -n "$tools" ] || fail "scripts/package.sh lists no tools"
OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/cli/lib/evil_names.py" "$programs" "$root" $tools ||
    failed=1
exit $failed
