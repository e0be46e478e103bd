#!/bin/sh
# The shared object and the Python module as a user meets them: named by version, called from C, C++ and from Python
# (lib/check_trnmath.py, check_tables.py, check_dlpack.py, check_plots.py), and every refusal is one sentence.
# Usage: tests/cli/python.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
library=$programs/libtrnmath_flat.so
program=$library
[ -f "$program" ] || { echo 'SKIP python: libtrnmath_flat.so was not built (under the sanitizers it is not)'; exit 0; }
. "$root/tests/cli/lib/program.sh"

# ---- the shared object: only what the header names, under a name with the version ----

version=$(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h")
sed -n 's/^TRNMATH_API .*[ *]\(trnmath_[a-z_0-9]*\)(.*/\1/p' "$root/examples/python/ext/trnmath_flat.h" | sort >want
nm -D --defined-only "$library" | awk '{ print $NF }' | sort >got
[ -s want ] && cmp -s want got ||
    fail "libtrnmath_flat.so does not export what trnmath_flat.h names: $(comm -3 want got | tr '\n' ' ')"
readelf -d "$library" | grep -q "soname: \[libtrnmath_flat.so.${version%.*}\]" ||
    fail "its soname is not libtrnmath_flat.so.${version%.*}"

grep -q "\"libtrnmath_flat.so.${version%.*}\"" "$root/examples/python/src/trnmath/_library.py" ||
    fail "the module looks for the library of another version than $version"

# ---- C and C++ ----

cat >user.c <<'END'
#include <stdio.h>
#include <string.h>
#include "trnmath_flat.h"
int main(void)
{
    float x[4] = { 1.0f, -2.5f, 300.0f, 0.1f };
    unsigned char y[4];
    char why[TRNMATH_WHY] = "";
    trnmath_view from, to;
    memset(&from, 0, sizeof from);
    from.data = x;
    from.format = trnmath_format("float32");
    from.rank = 1;
    from.shape[0] = 4;
    to = from;
    to.data = y;
    to.format = trnmath_format("float8_e4m3");
    if (trnmath_convert(&to, &from, NULL, why)) return 1;
    to.shape[0] = 3;
    const int status = trnmath_convert(&to, &from, NULL, why);
    printf("%s %02x %02x %02x %02x %d %d\n", trnmath_version(), y[0], y[1], y[2], y[3], status != 0, why[0] != 0);
    return trnmath_convert(NULL, NULL, NULL, NULL) ? 0 : 1;
}
END
for compile in "${CC:-cc} -std=c11" "${CXX:-c++} -std=c++17 -x c++"; do
    command -v "${compile%% *}" >/dev/null || continue
    # shellcheck disable=SC2086
    $compile -Wall -Wextra -Wpedantic -Wconversion -Werror -I"$root/examples/python/ext" user.c -x none "$library" \
        -o user 2>log ||
        { fail "a user's file does not build ($compile): $(cat log)"; continue; }
    said=$(LD_LIBRARY_PATH=$programs ./user) || fail "a user's program fails ($compile)"
    [ "$said" = "$version 38 c2 78 1d 1 1" ] || fail "a user's program says '$said' ($compile)"
done

# ---- Python ----

expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONPATH=$root/examples/python/src
PYTHONDONTWRITEBYTECODE=1
TRNMATH_LIBRARY=$library
export PYTHONPATH PYTHONDONTWRITEBYTECODE TRNMATH_LIBRARY

for threads in 1 3; do
    OMP_NUM_THREADS=$threads "$python" "$root/tests/cli/lib/check_trnmath.py" >log 2>&1 ||
        fail "check_trnmath.py, $threads threads: $(tail -n 40 log)"
    grep -q '^Ran [1-9][0-9]* tests' log || fail "check_trnmath.py ran nothing: $(cat log)"
done
for check in tables dlpack plots; do
    set --
    [ $check != tables ] || [ ! -x "$programs/shardplan" ] ||
        set -- "$programs/shardplan" "$root/examples/tools/shardplan/models"
    "$python" "$root/tests/cli/lib/check_$check.py" "$@" >log 2>&1 || fail "check_$check.py: $(tail -n 40 log)"
    grep -q '^Ran [1-9][0-9]* tests' log || fail "check_$check.py ran nothing: $(cat log)"
done

"$python" -m trnmath >out 2>err || fail "the demonstration: exit $?: $(cat err)"
grep -q "^trnmath $version, kernels run as " out || fail "the demonstration does not tell the version: $(cat out)"
grep -q 'float8_e4m3    nearest_even   31\.4' out ||
    fail "the demonstration's SQNR of float8_e4m3 is another: $(cat out)"
# The program of examples/python/README.md prints what its comments say.
sed -n '/^```python/,/^```/p' "$root/examples/python/README.md" | sed '/^```/d' >readme.py
sed -n 's/^print.*) *# //p' readme.py >want
[ "$(wc -l <want)" -gt 0 ] || fail "examples/python/README.md has no program in Python that prints something"
"$python" readme.py >out 2>err || fail "examples/python/README.md's program in Python: $(cat err)"
cmp -s out want || fail "examples/python/README.md's program in Python prints: $(cat out)"

said=$(TRN_ISA=portable "$python" -c 'import trnmath; print(trnmath.__version__, trnmath.isa())')
[ "$said" = "$version portable" ] ||
    fail 'the module does not tell its version and instruction set'
TRNMATH_LIBRARY=$scratch/none.so "$python" -c 'import trnmath' 2>err && fail 'a library that is missing is no error'
[ "$(grep -c '^ImportError: libtrnmath_flat.so cannot be loaded' err)" = 1 ] || fail "a missing library: $(cat err)"
for file in "$root"/examples/python/src/trnmath/*.py; do
    lines=$(wc -l <"$file")
    [ "$lines" -lt 330 ] || fail "$file has $lines lines; a module that one reads in a sitting has fewer than 330"
done
numpy=$("$python" -c 'import numpy; print("NumPy", numpy.__version__)')
[ $failed = 0 ] && echo "python: the module, the shared object and $numpy agree"
exit $failed
