#!/bin/sh
# The main job: installs what is missing, builds trnbench and runs it. Arguments go to trnbench; without any it runs
# `trnbench matmul` and leaves table, JSON, CSV and report in .build/bench/. Exits with trnbench's status.
set -u
. "$(dirname -- "$0")/setup.sh"

case ${1:-} in
-h | --help)
    cat <<'END'
usage: scripts/bench.sh                      trnbench matmul; the results also go to .build/bench/matmul.{txt,json,csv,html}
       scripts/bench.sh SUBCOMMAND [...]     trnbench SUBCOMMAND [...], for instance:
       scripts/bench.sh spec
       scripts/bench.sh matmul --a A.npy --b B.npy
       scripts/bench.sh matmul --help
END
    exit 0
    ;;
esac

need gcc clang cmake make pkgconf libopenblas-dev libdnnl-dev libxsmm-dev libcjson-dev

build=$root/.build/bench
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- trnbench

# OpenBLAS chooses its kernels by the processor's model number. A model that it does not know gets the oldest ones
# ("Prescott", SSE3), ten times slower than what the processor can do, without a word: no peer to compare with. The
# choice is made when the library starts, so it has to be in the environment before that.
if [ -z "${OPENBLAS_CORETYPE:-}" ] && command -v "${CC:-gcc}" >/dev/null 2>&1; then
    echo 'char *openblas_get_corename(void); int puts(const char *); int main(void) { return puts(openblas_get_corename()) < 0; }' |
        "${CC:-gcc}" -x c - -o "$build/openblas_core" -lopenblas 2>/dev/null
    core=$("$build/openblas_core" 2>/dev/null)
    best=
    if grep -q -w avx512bw /proc/cpuinfo 2>/dev/null; then best=SkylakeX
    elif grep -q -w avx2 /proc/cpuinfo 2>/dev/null; then best=Haswell; fi
    if [ "$core" = Prescott ] && [ -n "$best" ]; then
        OPENBLAS_CORETYPE=$best
        export OPENBLAS_CORETYPE
        say "OpenBLAS does not know this processor and would use its $core kernels; OPENBLAS_CORETYPE=$best makes it a fair peer"
    fi
fi

if [ $# -gt 0 ]; then exec "$build/trnbench" "$@"; fi

results=.build/bench
cd "$root" || exit 2
"$build/trnbench" matmul --json $results/matmul.json --csv $results/matmul.csv --report $results/matmul.html >"$results/matmul.txt"
status=$?
cat "$results/matmul.txt"
say "also written: $results/matmul.txt, matmul.json, matmul.csv, matmul.html"
exit $status
