#!/bin/sh
# Python's types: mypy runs clean over all modules that are installed, and those that only this tree has (at level 2 the
# extension says what its stub says, too: nki_sugar.sh). No module imports one that imports it.
# Usage: tests/cli/types.sh DIRECTORY-OF-PROGRAMS, from tests/. mypy keeps what it knows in DIRECTORY-OF-PROGRAMS/mypy.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP types: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONDONTWRITEBYTECODE=1 TRNMATH_LIBRARY=$program
export PYTHONDONTWRITEBYTECODE TRNMATH_LIBRARY
folder=$root/examples/python
cache=$programs/mypy

# ---- circles: all imports count, wherever they stand ----

circles=$root/tests/cli/lib/import_circles.py
"$python" "$circles" "$folder/src" >said || fail "modules import each other: $(cat said)"
grep -q '^[1-9][0-9]* modules' said || fail "import_circles.py looked at nothing: $(cat said)"
mkdir circle circle/a && echo 'from . import c' >circle/a/b.py && : >circle/a/__init__.py
printf 'def late():\n    from .b import late\n    return late\n' >circle/a/c.py
"$python" "$circles" circle >said && fail 'a circle of two modules is not seen'
grep -qx 'a.b -> a.c -> a.b' said || fail "of a circle import_circles.py says: $(cat said)"

# ---- types ----

if ! command -v mypy >/dev/null; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" mypy "*) echo 'SKIP mypy: it is not installed (expected)' && exit $failed ;;
    esac
    echo "FAILED: mypy is not installed (Debian: mypy); if that is so on purpose, put mypy into TRN_EXPECT_SKIPS"
    exit 1
fi
cd "$folder" || exit 1
mypy --python-executable "$python" --cache-dir "$cache" >"$scratch/said" 2>&1 &&
    grep -Eq 'no issues found in (1[0-9]|[5-9])[0-9] source files' "$scratch/said" ||
    fail "mypy: $(tail -n 12 "$scratch/said")"
[ $failed = 0 ] && echo "types: $(mypy --version | cut -d' ' -f1,2) finds nothing, and no module imports its importer"
exit $failed
