#!/bin/sh
# NKI's front door for Python as a user meets it: a wheel of examples/python, kernels on simulated cores with the bits
# and the cycles of the same kernel in C, refusals of one sentence with the kernel's line (lib/check_nki.py), how far a
# kernel may be off (check_nki_tolerance.py), and the oracle's verdicts (check_nki_oracle.py).
# Usage: tests/cli/nki.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP nki: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
unset PYTHONPATH TRNMATH_LIBRARY
folder=$root/examples/python

if ! [ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" ]; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" python-dev "*) echo 'SKIP nki: Python.h is not installed (expected)' && exit $failed ;;
    esac
    echo "FAILED: Python.h is not installed (Debian: python3-dev); if that is so on purpose, put python-dev into" \
        "TRN_EXPECT_SKIPS"
    exit 1
fi

# ---- a wheel, and what is no wheel ----

# At level 1 what is quick to compile; pip.sh compiles all of it.
. "$root/tests/cli/lib/linked.sh"
[ "${TRN_TEST_LEVEL:-1}" -ge 2 ] || export CFLAGS="-O1 $linked"

"$python" "$folder/nki_build.py" . >built 2>err || { echo "FAILED: no wheel is built: $(tail -n 20 err)"; exit 1; }
wheel=$(cat built)
"$python" - "$wheel" <<'END' || fail "the wheel $wheel is not valid"
import base64, csv, hashlib, io, sys, zipfile
name = sys.argv[1]
with zipfile.ZipFile(name) as wheel:
    distribution, version, *tag = name[:-len(".whl")].split("-")
    info = f"{distribution}-{version}.dist-info/"
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(info + "RECORD").decode()))}
    assert set(rows) == set(wheel.namelist()), set(rows) ^ set(wheel.namelist())
    for path, (digest, size) in rows.items():
        data = wheel.read(path)
        want = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert path == info + "RECORD" or (digest == want and int(size) == len(data)), path
    assert f"Tag: {'-'.join(tag)}\n" in wheel.read(info + "WHEEL").decode()
    assert "trnmath/fronts/nki/py.typed" in rows and "trnmath/libtrnmath_flat.so" in rows
    assert "trnmath/__init__.py" in rows
    wheel.extractall("site")
END
if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install -q --no-index --no-deps --target with_pip "$wheel" >log 2>&1 || fail "pip: $(cat log)"
    [ -f with_pip/trnmath/fronts/nki/isa.py ] || fail 'pip installs no nki/isa.py'
fi
mkdir alone && cp "$folder/nki_build.py" alone/
"$python" alone/nki_build.py 2>err && fail 'without headers something is built'
[ "$(wc -l <err)" = 1 ] && grep -q "^trnmath's headers are neither in include/trnmath" err ||
    fail "without headers it says: $(cat err)"
CC=/nowhere/cc "$python" "$folder/nki_build.py" . 2>err && fail 'without a compiler something is built'
[ "$(wc -l <err)" = 1 ] && grep -q '^the C compiler does not run' err || fail "without a compiler it says: $(cat err)"

# ---- the same kernel in C ----

for generation in 1 2 3; do
    "$programs/nki_kernel" $generation >in_c.$generation || fail "the kernel in C, generation $generation: exit $?"
done

# ---- Python ----

PYTHONPATH=$PWD/site/trnmath/fronts:$PWD/site
export PYTHONPATH
for threads in 1 3; do
    OMP_NUM_THREADS=$threads "$python" "$root/tests/cli/lib/check_nki.py" >log 2>&1 ||
        fail "check_nki.py, $threads threads: $(tail -n 40 log)"
    grep -q '^Ran [1-9][0-9]* tests' log || fail "check_nki.py ran nothing: $(cat log)"
done
# The program of examples/python/src/nki/README.md prints what its comments say.
sed -n '/^```python/,/^```/p' "$folder/src/nki/README.md" | sed '/^```/d' >readme.py
sed -n 's/^ *print.*) *# //p' readme.py >want
[ "$(wc -l <want)" -gt 0 ] || fail "examples/python/src/nki/README.md has no program that prints something"
"$python" readme.py >out 2>err || fail "examples/python/src/nki/README.md's program: $(cat err)"
cmp -s out want || fail "examples/python/src/nki/README.md's program prints: $(cat out)"
for check in check_nki_tolerance check_nki_oracle; do
    "$python" "$root/tests/cli/lib/$check.py" >log 2>&1 || fail "$check.py: $(tail -n 40 log)"
    grep -q '^Ran [1-9][0-9]* tests' log || fail "$check.py ran nothing: $(cat log)"
done
# A client of the Model Context Protocol that is not ours; from npm, so at level 2.
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ]; then
    mkdir npm && cp "$root/tests/nki/mcp_client.mjs" npm/
    (cd npm && npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk &&
        PYTHON=$python node mcp_client.mjs) >log 2>&1 || fail "mcp_client.mjs: $(tail -n 40 log)"
fi

# ---- the README's four lines ----

sed -n '/^## An NKI kernel/,/^## What/p' "$root/README.md" | sed -n '/^```python$/,/^```$/p' | sed '1d;$d' >kernel.py
[ "$(wc -l <kernel.py)" = 4 ] || fail "the README's kernel has $(wc -l <kernel.py) lines"
"$python" kernel.py >said 2>&1
grep -qxF "$(cat said)" "$root/README.md" || fail "the README's kernel says: $(cat said)"
[ $failed = 0 ] && echo "nki: the wheel, the kernels and their refusals are as they should be"
exit $failed
