#!/bin/sh
# graphrun: a block in HLO and StableHLO text beside NumPy, operations by their slow definitions, several devices,
# planted bugs in a dump of a device, broken texts (lib/check_graphrun.py); the example of its page. With
# TRN_STABLEHLO=DIRECTORY, a checkout of openxla/stablehlo, its test data, too.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP graphrun: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$root/examples/python/src
TRNMATH_LIBRARY=$program
export PYTHONDONTWRITEBYTECODE PYTHONPATH TRNMATH_LIBRARY

# shellcheck disable=SC2086
"$python" "$root/tests/cli/lib/check_graphrun.py" ${TRN_STABLEHLO:-} || failed=1

# ---- the page's example, with what it prints ----

page=$root/examples/python/src/trnmath/graphrun/README.md
sed -n '/^```hlo$/,/^```$/p' "$page" | sed '/^```/d' >norm.hlo
[ -s norm.hlo ] || fail "$page has no module"
sed -n '/^\$ python3 -m trnmath.graphrun/,/^```$/p' "$page" | sed '1d;/^```$/d' >want
"$python" -m trnmath.graphrun norm.hlo --auto-cast matmult >out 2>err || fail "the page's example: $(cat err)"
sed -i 's/, [0-9.]* s$/, … s/' out
cmp -s out want || fail "the page's example prints: $(cat out)"
"$python" -m trnmath.graphrun norm.hlo --html page.html --json said.json --dump dump >out || fail "its pages"
[ -s page.html ] && [ -s said.json ] && [ -s dump/y.npy ] || fail "an output is missing"
"$python" -m trnmath.graphrun norm.hlo --device dump >out || fail "our own dump beside ourselves: $(cat out)"
grep -q ' 0 differ by rounding, 0 by other numerics, 0 are bugs' out || fail "our own dump beside ourselves: $(cat out)"
exit $failed
