#!/bin/sh
# run.sh FOLDER PEERS: builds every peer of which the directory PEERS has a checkout, holds it against the vectors in
# FOLDER, and prints a table of who differs where. What is not there, or cannot be built, is said on standard error.
# NumPy, PyTorch and the compiler are asked where they are.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
vectors=$(CDPATH= cd -- "${1:?usage: run.sh FOLDER PEERS}" && pwd) || exit 2
peers=$(CDPATH= cd -- "${2:?usage: run.sh FOLDER PEERS}" && pwd) || exit 2
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
cd "$here/.." || exit 2

leave() { echo "run.sh: $1 is left out: $2" >&2; }
there() { [ -e "$peers/$2" ] || { leave "$1" "$peers/$2 is not there"; return 1; }; }
commit() { git -C "$peers/$1" rev-parse --short=7 HEAD 2>/dev/null || echo unknown; }

# told NUMBER NAME VERSION COMMAND...: the command's CSV, as it is and with any NaN, for the table
told() {
    file=$scratch/$1
    printf '%s\n%s\n' "$2" "$3" >"$file.name"
    shift 3
    "$@" --csv "$vectors" >"$file.strict" 2>"$file.log"
    "$@" --csv --any-nan "$vectors" >"$file.any" 2>>"$file.log"
    grep -q , "$file.any" || leave "$(head -n 1 "$file.name")" "$(tail -n 1 "$file.log")"
}

# compiled NUMBER NAME VERSION SOURCE COMPILER FLAGS...: check.c with that peer
compiled() {
    number=$1 name=$2 version=$3 source=$4
    shift 4
    if "$@" "-DCHECK_WITH=\"with/$source\"" -o "$scratch/check$number" -lm >"$scratch/log" 2>&1; then
        told "$number" "$name" "$version" "$scratch/check$number"
    else
        leave "$name" "$(grep -m 1 error "$scratch/log")"
    fi
}

# in_python NUMBER NAME VERSION MODULE PATH
in_python() {
    PYTHONPATH=$5
    export PYTHONPATH
    told "$1" "$2" "$3" "$python" check.py --with "with/$4"
    unset PYTHONPATH
}

version_of() { "$python" -c "import $1; print($1.__version__)" 2>/dev/null; }

if there SoftFloat softfloat/build; then
    for kind in RISCV 8086-SSE; do
        cp -r "$peers/softfloat" "$scratch/softfloat"
        make -C "$scratch/softfloat/build/Linux-x86_64-GCC" clean >/dev/null 2>&1
        make -C "$scratch/softfloat/build/Linux-x86_64-GCC" SPECIALIZE_TYPE=$kind >"$scratch/log" 2>&1
        compiled "1$kind" "Berkeley SoftFloat 3e, $kind" "$(commit softfloat)" softfloat.c "${CC:-cc}" -std=c11 -O2 \
            -I"$scratch/softfloat/source/include" check.c "$scratch/softfloat/build/Linux-x86_64-GCC/softfloat.a"
        rm -rf "$scratch/softfloat"
    done
fi
if there ml_dtypes ml_dtypes/ml_dtypes/include && there ml_dtypes eigen/Eigen; then
    compiled 2 'ml_dtypes (JAX, NumPy)' "$(commit ml_dtypes), Eigen $(commit eigen)" ml_dtypes.cc "${CXX:-c++}" -x c++ \
        -std=c++17 -O2 -isystem "$peers/ml_dtypes" -isystem "$peers/eigen" check.c
fi
if there CPFloat cpfloat/src; then
    pcg=$peers/cpfloat/deps/pcg-c/include
    [ -e "$pcg" ] || pcg=$peers/pcg-c/include
    compiled 3 CPFloat "$(commit cpfloat)" cpfloat.c "${CC:-cc}" -std=gnu11 -w -O2 -isystem "$peers/cpfloat/src" \
        -isystem "$pcg" check.c
fi
if there ggml ggml/src; then
    compiled 4 'ggml (llama.cpp)' "$(commit ggml)" ggml.c "${CC:-cc}" -std=gnu11 -w -O2 -ffunction-sections \
        -I"$peers/ggml/src" -I"$peers/ggml/include" check.c -static -Wl,--gc-sections \
        -Wl,--unresolved-symbols=ignore-all
fi
there gfloat gfloat/src && in_python 5 gfloat "$(commit gfloat)" gfloat_peer.py "$peers/gfloat/src"
torch=$(version_of torch)
if [ -n "$torch" ]; then
    there microxcaling microxcaling/mx &&
        in_python 6 microxcaling "$(commit microxcaling)" microxcaling_peer.py "$peers/microxcaling"
    in_python 7 'PyTorch, CPU' "$torch" torch_peer.py "$here"
else
    leave 'PyTorch, and microxcaling and MMA-Sim, which need it,' "$python has no torch"
fi
told 8 NumPy "$(version_of numpy)" "$python" check.py
compiled 9 "the compiler's _Float16" "$("${CC:-cc}" -dumpfullversion 2>/dev/null)" compiler.c "${CC:-cc}" -std=c11 -O2 \
    check.c
if [ -n "$torch" ] && there MMA-Sim MMA-Sim/mmasim; then
    in_python A 'MMA-Sim, Hopper' "$(commit MMA-Sim)" mma_sim_peer.py "$peers/MMA-Sim"
fi
"$python" "$here/differences.py" "$scratch"
