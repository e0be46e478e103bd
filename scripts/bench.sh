#!/bin/sh
# The main job: installs what is missing, builds trnbench and runs it. Arguments go to trnbench; without any it runs
# `trnbench matmul` and leaves table, JSON, CSV and report in .build/bench/. Exits with trnbench's status.
set -u
. "$(dirname -- "$0")/setup.sh"

case ${1:-} in
-h | --help)
    cat <<'END'
usage: scripts/bench.sh [--all]              trnbench matmul on one screen, or all of its rows; measures four formats,
                                             and results also go to .build/bench/matmul.{txt,json,csv,html}
       scripts/bench.sh SUBCOMMAND [...]     trnbench SUBCOMMAND [...], for instance:
       scripts/bench.sh spec
       scripts/bench.sh convert --report .build/bench/convert.html
       scripts/bench.sh matmul --a A.npy --b B.npy
       scripts/bench.sh collective allr --system all --minbytes 64MB
       scripts/bench.sh collective --simgrid [...]   the model's times beside those of SimGrid, an independent simulator
       scripts/bench.sh network --simgrid [...]      likewise where something is broken, or several happen at once
       scripts/bench.sh matmul --help
       scripts/bench.sh compile [...]        what a file that uses trnmath costs to compile; compile --help tells more
       scripts/bench.sh kernels [...]        those of examples/kernels on a simulated core; kernels --help tells more
       scripts/bench.sh cores PROGRAM [...]  block, ring_attention or moe of examples/cores, on many simulated cores

TRN_PEERS   a directory with checkouts of ml_dtypes, eigen and cpfloat (with deps/pcg-c): peers of trnbench convert
            that are not in Debian; see tests/convert_peers.cmake
END
    exit 0
    ;;
esac

if [ "${1:-}" = compile ]; then
    shift
    need gcc clang
    (need libxxhash-dev libstb-dev) || true # peers: the table says which of them are left out
    exec sh "$root/bench/speed/compile_speed.sh" "$@"
fi
need gcc clang cmake make pkgconf libopenblas-dev libdnnl-dev libxsmm-dev libcjson-dev zlib1g-dev \
    libpcre2-dev libutf8proc-dev libprotobuf-c-dev protobuf-c-compiler libmpfr-dev libsleef-dev

build=$root/.build/bench
if [ "${1:-}" = kernels ]; then
    shift
    build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- kernels_run
    exec "$build/kernels/run" "$@"
fi
if [ "${1:-}" = cores ]; then
    program=${2:-}
    case $program in
    block | ring_attention | moe) ;;
    *) echo "bench.sh: cores runs block, ring_attention or moe" >&2 && exit 2 ;;
    esac
    shift 2
    build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- "cores_$program"
    exec "$build/cores/$program" "$@"
fi
if { [ "${1:-}" = collective ] || [ "${1:-}" = network ]; } && [ "${2:-}" = --simgrid ]; then
    judge=$1_simgrid
    shift 2
    need g++ libsimgrid-dev
    build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- "$judge"
    exec "$build/$judge" "$@"
fi
if [ -n "${TRN_PEERS:-}" ]; then need g++; fi
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" "-DTRN_PEERS=${TRN_PEERS:-}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF \
    -- trnbench

all=
if [ "$*" = --all ]; then all=--all; elif [ $# -gt 0 ]; then exec "$build/trnbench" "$@"; fi

results=.build/bench
cd "$root" || exit 2
# shellcheck disable=SC2086
"$build/trnbench" matmul $all --json $results/matmul.json --csv $results/matmul.csv --report $results/matmul.html \
    >"$results/matmul.txt"
status=$?
cat "$results/matmul.txt"
say "also written: $results/matmul.txt, matmul.json, matmul.csv, matmul.html"
exit $status
