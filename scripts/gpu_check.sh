#!/bin/sh
# The presets of NVIDIA's matrix units, held against the GPU of this machine: builds tests/gpu and runs it. A C compiler
# and NVIDIA's driver are enough; nothing is installed. Exits with its status.
set -u
. "$(dirname -- "$0")/setup.sh"

no_gpu=77 # what CTest and automake take for "skipped"

case ${1:-} in
-h | --help)
    cat <<'END'
usage: scripts/gpu_check.sh [OPTIONS]        each instruction of this GPU's matrix units, 100,000,000 outputs of each
       scripts/gpu_check.sh --cases 1000000  fewer
       scripts/gpu_check.sh --seconds 1500 --save gpu.csv   within 25 minutes, and the results as CSV
       scripts/gpu_check.sh --all            also instructions of which no preset's source speaks
       scripts/gpu_check.sh --only wgmma     those whose names hold "wgmma"
       scripts/gpu_check.sh --list           all of them; needs no GPU

Exit status: 0 all equal, 1 a difference, 2 bad usage or an error of the device, 77 no GPU or no compiler here.
END
    exit 0
    ;;
esac

# Is NVIDIA's driver here? (Then the program asks it for a GPU.)
driver() {
    for directory in $(printf '%s' "${LD_LIBRARY_PATH:-}" | tr ':' ' '); do
        [ ! -e "$directory/libcuda.so.1" ] || return 0
    done
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && return 0
    for library in /usr/lib*/libcuda.so.1 /usr/lib/*/libcuda.so.1 /usr/local/cuda/compat/libcuda.so.1; do
        [ ! -e "$library" ] || return 0
    done
    return 1
}

case " $* " in
*" --list "* | *" --ptx"*) ;;
*)
    if ! driver; then
        say "there is no GPU here: NVIDIA's driver (libcuda.so.1) is not installed"
        exit $no_gpu
    fi
    ;;
esac

compiler=
for candidate in ${CC:-} cc gcc clang; do
    [ -n "$compiler" ] || ! command -v "$candidate" >/dev/null 2>&1 || compiler=$candidate
done
if [ -z "$compiler" ]; then
    say 'there is no C compiler here: cc, gcc or clang builds the program'
    exit $no_gpu
fi

build=$root/.build/gpu
program=$build/gpu_check
mkdir -p "$build" || exit 2
if [ ! -x "$program" ] || [ -n "$(find "$root/trnmath" "$root/tests/gpu" "$root/examples/tools/common" \
    -name '*.[ch]' -newer "$program" | head -n 1)" ]; then
    say "building in .build/gpu with $compiler"
    threads=-fopenmp
    echo 'int main(void) { return 0; }' >"$build/empty.c"
    "$compiler" $threads "$build/empty.c" -o "$build/empty" >/dev/null 2>&1 || threads= # one thread takes longer
    # shellcheck disable=SC2086
    if ! (cd "$root" &&
        "$compiler" -std=c11 -O2 $threads -I. -c trnmath/trnmath.c -o "$build/trnmath.o" &&
        "$compiler" -std=c11 -O2 $threads -DTRN_SPLIT=1 -I. -Itests -Iexamples/tools/common tests/gpu/*.c \
            examples/tools/common/app/*.c "$build/trnmath.o" -o "$program.new" -lm -ldl &&
        mv "$program.new" "$program") >"$build/build.log" 2>&1; then
        say 'the build failed; from .build/gpu/build.log:'
        head -n 40 "$build/build.log" >&2
        exit 2
    fi
fi
exec "$program" "$@"
