#!/bin/sh
# NKI's older spelling, where instructions return their results: kernels of tests/cli/lib/check_nki_sugar.py, and masks
# of every shape (check_nki_masks.py), against NumPy; whole kernels of models in both spellings (check_nki_kernels.py);
# what is refused in either, in which words (check_nki_refusals.py); what has room together (check_nki_memory.py); names
# that releases changed, and their lint (check_nki_names.py); what programs around kernels use (check_nki_dropin.py);
# figures of devices, beside ours (check_nki_device.py); nki.check (check_nki_sweep.py).
# Usage: tests/cli/nki_sugar.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP nki_sugar: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
unset TRNMATH_LIBRARY

include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
if ! [ -f "$include/Python.h" ]; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" python-dev "*) echo 'SKIP nki_sugar: Python.h is not installed (expected)' && exit $failed ;;
    esac
    echo "FAILED: Python.h is not installed (Debian: python3-dev); if that is so on purpose, put python-dev into" \
        "TRN_EXPECT_SKIPS"
    exit 1
fi

# ---- the package, with its extension compiled here ----

mkdir site && cp -R "$root/examples/python/src/nki" "$root/examples/python/src/neuronxcc" site/
rm -f site/nki/_core.*.so
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
. "$root/tests/cli/lib/linked.sh"
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 -O1 $linked -fPIC -shared -fvisibility=hidden -I"$root" -I"$include" \
    "$root/examples/python/ext/core.c" -o "site/nki/_core$suffix" -lm 2>log || fail "the extension: $(cat log)"
PYTHONPATH=$PWD/site
export PYTHONPATH

# What the extension has is what _core.pyi says.
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ] && command -v stubtest >/dev/null; then
    stubtest --mypy-config-file "$root/examples/python/pyproject.toml" --ignore-positional-only nki._core >log 2>&1 ||
        fail "_core.pyi is not what the extension has: $(tail -n 20 log)"
fi

for check in check_nki_sugar check_nki_masks check_nki_kernels check_nki_refusals check_nki_memory check_nki_names \
    check_nki_dropin check_nki_device check_nki_indices check_nki_sums check_nki_sweep check_nki_turns \
    check_nki_clock; do
    "$python" "$root/tests/cli/lib/$check.py" >log 2>&1 || fail "$check.py: $(tail -n 60 log)"
    grep -q '^Ran [1-9][0-9]* tests' log || fail "$check.py ran nothing: $(cat log)"
done
[ $failed = 0 ] && echo "nki_sugar: kernels of the older spelling compute what NumPy does, and what is wrong is refused"
exit $failed
