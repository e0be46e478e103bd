#!/bin/sh
# One of the tools: installs what is missing, builds it, runs it where the caller stands. Exits with the tool's status.
set -u
. "$(dirname -- "$0")/setup.sh"

tools='fp8conv ulpdiff srlab mxq modelrun shardplan probe python3'

case ${1:-} in
'' | -h | --help)
    cat <<'END'
usage: scripts/tool.sh TOOL [...]         builds TOOL and runs it with the arguments that follow

  fp8conv     checkpoints between FP8 that ends at 448 and FP8 that ends at 240, and proof of what changed
  ulpdiff     two tensors compared in ulps, and which assumption about the hardware explains the difference
  srlab       small trainings whose weights are rounded as Trainium rounds them: nearest, stochastic, FP8
  mxq         tensors in every format: what FP8, MXFP8, MXFP6, MXFP4, MXINT8 and three scale rules lose
  modelrun    a language model, layer by layer: what BF16, FP8, MX and all-reduces do to it
  shardplan   a transformer on a system: every legal sharding, ranked
  probe       experiments that tell which adder is in a chip
  python3     Python with NumPy and the module trnmath

Each TOOL --help tells more. scripts/package.sh makes Debian packages of all of them.
END
    exit 0
    ;;
esac

tool=$1
shift
case " $tools " in
*" $tool "*) ;;
*)
    say "$tool is none of the tools: $tools"
    exit 2
    ;;
esac

need gcc cmake make pkgconf libcjson-dev zlib1g-dev
if [ "$tool" = srlab ]; then need wamerican; fi # the word list that its transformer reads
build=$root/.build/tools
target=$tool
program=$build/$tool

if [ "$tool" = python3 ]; then
    need python3-numpy
    target=trnmath_flat
    program=/usr/bin/python3 # the one that Debian's NumPy is for
    TRNMATH_LIBRARY=$build/libtrnmath_flat.so
    PYTHONPATH=$root/examples/python${PYTHONPATH:+:$PYTHONPATH}
    export TRNMATH_LIBRARY PYTHONPATH
fi
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- "$target"
exec "$program" "$@"
