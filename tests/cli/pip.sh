#!/bin/sh
# What pip makes of examples/python without a network: a source archive, a wheel of it, a clean virtual environment, and
# what is imported there. The wheel asks for no more than its tag says, is the same bytes again when it is built from
# the checkout (level 2), and has types for those who check them; other threads run during a call.
# Usage: tests/cli/pip.sh DIRECTORY-OF-PROGRAMS, from tests/.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
programs=$(CDPATH= cd -- "$1" && pwd) || exit 1
program=$programs/libtrnmath_flat.so
[ -f "$program" ] || { echo 'SKIP pip: Python is not tested under the sanitizers'; exit 0; }
. "$root/tests/cli/lib/program.sh"
expected_as=python
. "$root/tests/cli/lib/numpy.sh"
unset PYTHONPATH TRNMATH_LIBRARY TRNMATH_OPENMP
PYTHONDONTWRITEBYTECODE=1 PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONDONTWRITEBYTECODE PIP_NO_INDEX PIP_DISABLE_PIP_VERSION_CHECK
folder=$root/examples/python

missing=
"$python" -m pip --version >/dev/null 2>&1 || missing="$missing pip"
"$python" -c 'import ensurepip' 2>/dev/null || missing="$missing venv"
[ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" ] ||
    missing="$missing python-dev"
for word in $missing; do
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" $word "*) ;;
    *) fail "$python has no $word (Debian: python3-pip python3-venv python3-dev); if that is so on purpose, put $word" \
        "into TRN_EXPECT_SKIPS" ;;
    esac
done
[ -z "$missing" ] || { echo "SKIP pip: without$missing"; exit $failed; }

# ---- one wheel from a source archive, by pip; the other from the checkout ----
# (Quick to compile, for the test's sake: the files are the same.)

CFLAGS='-O0 -DTRN_NO_INTRINSICS=1' CC=$(quick_cc)
export CFLAGS CC
mkdir one two sources
second=
if [ "${TRN_TEST_LEVEL:-1}" -ge 2 ]; then
    TRNMATH_OPENMP=off "$python" "$folder/nki_build.py" two >two.log 2>&1 &
    second=$!
fi
"$python" "$folder/nki_build.py" --sdist . >sdist 2>err || fail "no source archive: $(cat err)"
archive=$(cat sdist)
mkdir again && "$python" "$folder/nki_build.py" --sdist again >/dev/null && cmp "$archive" "again/$archive" ||
    fail 'a source archive that is made again has other bytes'
"$python" -m pip wheel -q --no-deps --config-settings openmp=off -w one "$archive" >log 2>&1 ||
    fail "pip wheel: $(tail -n 5 log)"
wheel=$(cd one && echo *.whl)
if [ -n "$second" ]; then
    wait $second || fail "nki_build.py: $(cat two.log)"
    cmp "one/$wheel" "two/$wheel" || fail "built again, it is $(ls two), or has other bytes"
fi
TRNMATH_OPENMP=perhaps "$python" "$folder/nki_build.py" . 2>err && fail 'TRNMATH_OPENMP=perhaps builds something'
[ "$(cat err)" = "openmp is 'perhaps', expected on or off" ] || fail "TRNMATH_OPENMP=perhaps: $(cat err)"

# ---- the tag says what is needed: binutils' opinion beside elf_needs.py's ----

"$python" -m venv venv >log 2>&1 || { echo "FAILED: no virtual environment: $(cat log)"; exit 1; }
venv/bin/python -m pip install -q --no-deps "one/$wheel" >log 2>&1 || fail "pip install: $(cat log)"
site=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])')
objects="$site/trnmath/libtrnmath_flat.so $(echo "$site"/trnmath/fronts/nki/_core*.so)"
# shellcheck disable=SC2086
{
    readelf -d $objects | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u >needed
    objdump -T $objects | sed -n 's/.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\} .*/\1/p' | sort -Vu >versions
}
case $wheel in
*-manylinux_*)
    grep -vE '^(lib(c|m)\.so\.6|ld-linux.*)$' needed >more && fail "the wheel $wheel needs $(cat more)"
    newest=$(tail -n 1 versions)
    tagged=$(echo "$wheel" | sed 's/.*-manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/')
    oldest=2.5
    [ "$(uname -m)" = x86_64 ] || oldest=2.17
    want=$(printf '%s\n' "$newest" $oldest | sort -V | tail -n 1 | cut -d. -f1,2)
    [ "$tagged" = "$want" ] || fail "the wheel says glibc $tagged, its symbols say $want"
    ;;
*) [ -f /etc/alpine-release ] || ! ldd --version 2>&1 | grep -qi glibc || fail "without OpenMP it is still $wheel" ;;
esac
"$python" "$folder/elf_needs.py" "$program" >out || fail 'elf_needs.py does not read libtrnmath_flat.so'
if readelf -d "$programs/libtrnmath_flat.so" | grep -q gomp; then
    grep -qx "linux_$(uname -m)" out || fail "with libgomp the tag is $(tail -n 1 out)"
fi
head -c 3000 "$programs/libtrnmath_flat.so" >torn.so
for broken in torn.so err; do
    "$python" "$folder/elf_needs.py" $broken >out 2>said && fail "elf_needs.py reads $broken"
    [ "$(wc -l <said)" = 1 ] || fail "elf_needs.py $broken: $(cat said)"
done

# ---- in the clean environment: nki without NumPy, then trnmath with NumPy alone ----

cd sources || exit 1 # an empty place: nothing is imported from the checkout
said=$(../venv/bin/python -c '
import array, nki, nki.language as nl
@nki.jit
def kernel(x):
    y = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(y, nl.multiply(nl.load(x), 2.0))
    return y
x = memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))
print(memoryview(nki.simulate(kernel)(x)).tolist())' 2>&1)
[ "$said" = '[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]' ] || fail "nki without NumPy: $said"

mkdir ../numpy_only
for part in numpy numpy.libs; do
    at=$("$python" -c 'import numpy, pathlib; print(pathlib.Path(numpy.__file__).parents[1])')/$part
    [ ! -e "$at" ] || ln -s "$at" ../numpy_only/
done
PYTHONPATH=$scratch/numpy_only
export PYTHONPATH
version=$(sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h")
../venv/bin/python -m pip list 2>/dev/null | grep -q "^trnmath *$version\$" || fail "pip list knows no trnmath $version"
for isa in portable $(grep -qw avx2 /proc/cpuinfo 2>/dev/null && echo avx2) \
    $(grep -qw avx512bw /proc/cpuinfo 2>/dev/null && echo avx512); do
    said=$(TRN_ISA=$isa ../venv/bin/python -c 'import hashlib, numpy, trnmath
x = numpy.linspace(-3, 3, 64 * 96, dtype=numpy.float32).reshape(64, 96)
codes = trnmath.matmul(x, x.T).tobytes() + trnmath.convert(x, "bfloat16").tobytes()
print(trnmath.isa(), hashlib.md5(codes).hexdigest())' 2>&1)
    [ "${said%% *}" = "$isa" ] || fail "under TRN_ISA=$isa it says $said"
    [ "${bits:-${said#* }}" = "${said#* }" ] || fail "$isa gives other bits"
    bits=${said#* }
done
../venv/bin/python -m trnmath >../out 2>&1 && grep -q "^trnmath $version, " ../out ||
    fail "python -m trnmath: $(cat ../out)"
for typed in trnmath trnmath/fronts/nki; do [ -f "$site/$typed/py.typed" ] || fail "$typed has no py.typed"; done
../venv/bin/python "$root/tests/cli/lib/check_overlap.py" >../out 2>&1 || fail "threads: $(tail -n 1 ../out)"
unset PYTHONPATH
if "$python" -c 'import ml_dtypes' 2>/dev/null; then
    PYTHONPATH=$site "$python" "$root/tests/cli/lib/check_ml_dtypes.py" || fail 'check_ml_dtypes.py'
else
    echo 'SKIP pip: ml_dtypes is not installed (Debian has no package of it)'
fi
../venv/bin/python -m pip uninstall -q -y trnmath && [ -z "$(find "$site" -name '*trnmath*')" ] ||
    fail 'pip uninstall leaves something behind'

# ---- NumPy comes along; other packages of the fronts' names stay whole, and are told of ----

unzip_of() { "$python" -m zipfile -e "../one/$wheel" "$1"; }
unzip_of opened
grep -qx 'Requires-Dist: numpy' opened/trnmath-*.dist-info/METADATA || fail 'the wheel does not ask for NumPy'
cmp -s opened/trnmath-*.dist-info/LICENSE "$root/LICENSE" || fail 'the wheel has no LICENSE'
ls opened >in_wheel
printf '%s\n' trnmath "trnmath-$version.dist-info" trnmath.pth trnmath_fronts.py | cmp -s - in_wheel ||
    fail "the wheel puts other files at the top: $(tr '\n' ' ' <in_wheel)"

# A vendor's package, as pip has it: two files that ours have, too.
for front in neuronxcc nki; do
    info=$site/$front-9.0.dist-info
    mkdir -p "$site/$front" "$info"
    echo "whose = 'the vendor'" >"$site/$front/__init__.py"
    echo 'value = 9' >"$site/$front/language.py"
    printf 'Metadata-Version: 2.1\nName: vendor-%s\nVersion: 9.0\n' $front >"$info/METADATA"
    printf '%s/__init__.py,,\n%s/language.py,,\n' $front $front >"$info/RECORD"
    (cd "$site" && cat $front/*.py | cksum) >"vendor_$front"
    ../venv/bin/python -m pip install -q --no-deps --no-build-isolation "$folder" >log 2>&1 &&
        fail "pip install beside another $front goes through"
    for words in "$front of vendor-$front is installed in $site" 'python3 -m venv' 'beside=yes'; do
        grep -q -e "$words" log || fail "beside another $front, it does not say '$words': $(tail -n 5 log)"
    done
    ../venv/bin/python -m pip install -q --no-deps "../one/$wheel" >log 2>&1 || fail "a wheel beside $front: $(cat log)"
    [ "$(../venv/bin/python -c "import $front; print($front.whose)")" = 'the vendor' ] ||
        fail "$front is not the vendor's"
    said=$(TRNMATH_FRONTS=first ../venv/bin/python -c "import $front; print($front.__file__)" 2>&1)
    [ "$said" = "$site/trnmath/fronts/$front/__init__.py" ] || fail "TRNMATH_FRONTS=first finds $said"
    ../venv/bin/python -m pip uninstall -q -y trnmath >log 2>&1 || fail "pip uninstall beside $front: $(cat log)"
    (cd "$site" && cat $front/*.py | cksum) | cmp -s - "vendor_$front" || fail "the vendor's $front is not what it was"
    rm -r "${site:?}/$front" "$info"
done
TRNMATH_BESIDE=perhaps "$python" "$folder/nki_build.py" . 2>err && fail 'TRNMATH_BESIDE=perhaps builds something'
[ "$(cat err)" = "beside is 'perhaps', expected no or yes" ] || fail "TRNMATH_BESIDE=perhaps: $(cat err)"
[ $failed = 0 ] && echo "pip: $wheel"
exit $failed
