#!/bin/sh
# One of the tools: installs what is missing, builds it, runs it where the caller stands. Exits with the tool's status.
set -u
. "$(dirname -- "$0")/setup.sh"
. "$root/examples/tools/list.sh"

case ${1:-} in
'' | -h | --help)
    echo 'usage: scripts/tool.sh TOOL [...]         builds TOOL and runs it with the arguments that follow'
    echo
    for tool in $(tools 'tool module'); do printf '  %-11s %s\n' "$tool" "$(tool_field "$tool" 5)"; done
    echo
    echo 'Each TOOL --help tells more. scripts/package.sh makes Debian packages of all of them.'
    exit 0
    ;;
esac

tool=$1
shift
case " $(tools 'tool module' | tr '\n' ' ')" in
*" $tool "*) ;;
*)
    say "$tool is none of the tools: $(tools 'tool module' | tr '\n' ' ' | sed 's/ $//')"
    exit 2
    ;;
esac

# shellcheck disable=SC2046
need gcc cmake make pkgconf libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev \
    libprotobuf-c-dev protobuf-c-compiler $(tool_field "$tool" 4)
build=$root/.build/tools
target=$tool
program=$build/$tool

if [ "$tool" = python3 ]; then
    target=trnmath_flat
    program=/usr/bin/python3 # the one that Debian's NumPy is for
    TRNMATH_LIBRARY=$build/libtrnmath_flat.so
    PYTHONPATH=$root/examples/python/src${PYTHONPATH:+:$PYTHONPATH}
    export TRNMATH_LIBRARY PYTHONPATH
fi
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_UNIT=OFF -DTRN_HOUSE=OFF -- "$target"
exec "$program" "$@"
