#!/bin/sh
# examples/notebooks/: each notebook is valid, small and tells nothing of a machine; executed, its cells print what is
# stored, and a digit that is another is seen (lib/notebooks.py). The folder's page names all of them.
# Usage: tests/cli/notebooks.sh DIRECTORY-OF-PROGRAMS [--write], from tests/. --write: stores what cells print now.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP notebooks: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
folder=$root/examples/notebooks

if ! "$python" -c 'import nbclient, ipykernel' 2>/dev/null; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" notebooks "*) echo 'SKIP notebooks: nbclient or ipykernel is not installed (expected)' && exit 0 ;;
    esac
    echo "FAILED: $python has no nbclient or no ipykernel (Debian: python3-nbclient python3-ipykernel); if that is so" \
        "on purpose, put notebooks into TRN_EXPECT_SKIPS"
    exit 1
fi

# ---- the module and NKI's front door, compiled quickly; nothing of a kernel's own is kept ----

. "$root/tests/cli/lib/linked.sh"
PYTHONDONTWRITEBYTECODE=1 CFLAGS="-O1 $linked" "$python" - "$root/examples/python" "$scratch" >log 2>&1 <<'END' ||
import pathlib, sys, sysconfig
sys.path.insert(0, sys.argv[1])
import nki_build
target = pathlib.Path(sys.argv[2], nki_build.extension())
target.parent.mkdir()
nki_build._cc(nki_build.EXT / "core.c", target, True, "-I" + sysconfig.get_paths()["include"])
END
    { echo "FAILED: nki/_core does not compile: $(tail -n 20 log)"; exit 1; }
ln -s "$root"/examples/python/src/nki/[!_]* "$root"/examples/python/src/nki/__init__.py \
    "$root"/examples/python/src/nki/_numpy.py nki/
ln -s "$root/examples/python/src/trnmath" trnmath
PYTHONPATH=$scratch HOME=$scratch/home IPYTHONDIR=$scratch/home PYTHONDONTWRITEBYTECODE=1
TRNMATH_LIBRARY=$program PYDEVD_DISABLE_FILE_VALIDATION=1
JUPYTER_RUNTIME_DIR=$scratch/home
export PYTHONPATH HOME IPYTHONDIR PYTHONDONTWRITEBYTECODE TRNMATH_LIBRARY PYDEVD_DISABLE_FILE_VALIDATION
export JUPYTER_RUNTIME_DIR
mkdir home

# ---- the notebooks ----

if [ "${2:-}" = --write ]; then
    "$python" "$root/tests/cli/lib/notebooks.py" --write "$folder"/*.ipynb
    exit
fi
if "$python" "$root/tests/cli/lib/notebooks.py" "$folder"/*.ipynb >out 2>err; then
    count=$(grep -c '^[a-z_0-9]*\.ipynb: [0-9]* cells$' out)
    [ "$count" -ge 5 ] || fail "$count notebooks were executed: $(cat out err)"
else
    fail "a notebook prints something else; \`sh tests/cli/notebooks.sh DIRECTORY --write\` stores it: $(cat out err)"
fi
for file in "$folder"/*.ipynb; do
    grep -qF "(${file##*/})" "$folder/README.md" || fail "examples/notebooks/README.md does not name ${file##*/}"
done

# ---- what would be wrong is seen ----

cat >digit.py <<'END'
import json, pathlib, sys
sys.path.insert(0, sys.argv[2])
import notebooks
path = pathlib.Path(sys.argv[1])
stored = notebooks.nbformat.read(path, as_version=4)
other = notebooks.nbformat.from_dict(json.loads(json.dumps(stored)))
cell = next(c for c in other.cells if "1000" in notebooks.text_of(c))
cell.outputs[0].text = cell.outputs[0].text.replace("1000", "1001", 1)
said = list(notebooks.differences(stored, other))
assert len([line for line in said if line.startswith("+") and "1001" in line]) == 1, said
assert not list(notebooks.differences(stored, stored))
book = json.loads(path.read_text(encoding="utf-8"))
code = next(c for c in book["cells"] if c["cell_type"] == "code")
for spoil in ({"execution_count": 3}, {"metadata": {"a": 1}}, {"source": "open('/home/me')"}, {"cell_type": "soup"},
              {"outputs": [{"output_type": "stream", "name": "stderr", "text": "x"}]}):
    kept = dict(code)
    code.update(spoil)
    pathlib.Path("spoilt.ipynb").write_text(json.dumps(book), encoding="utf-8")
    try:
        found = list(notebooks.wrong(pathlib.Path("spoilt.ipynb"), notebooks.nbformat.from_dict(book)))
    except AttributeError:
        found = ["no notebook"]
    assert found, spoil
    code.clear()
    code.update(kept)
END
"$python" digit.py "$folder/a_sum_that_sticks.ipynb" "$root/tests/cli/lib" >said 2>&1 ||
    fail "another digit, or what a notebook must not have, is not seen: $(tail -n 3 said)"
[ $failed = 0 ] && echo "notebooks: $count print what they say"
exit $failed
