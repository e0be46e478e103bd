#!/bin/sh
# platforms.sh PLATFORM [PORTABLE [BODIES]]: builds a program for that platform, runs it there or under an emulator, and
# compares every number and sentence it prints with PORTABLE, a portable build for this machine, which is made where
# none is given (tests/CMakeLists.txt makes one for all platforms, in the same way). BODIES is the library of the tests'
# own build, where gcc made it: level 1 does not compile them so again. PLATFORM is one of
#
#     gcc clang c++17 c++20             compilers and languages of this machine; C++ with g++ and with clang++
#     musl                              another C library (musl-gcc)
#     mingw                             64-bit Windows: mingw-w64, run under wine
#     aarch64 riscv64 ppc64le           other processors, run under qemu-user
#     packages                          prints the Debian packages that these need, and does nothing
#
# Level 2 (TRN_TEST_LEVEL=2) also builds tests/digest for the platform, and asks for the recorded digest.
. "$(dirname -- "$0")/lib.sh"

platform=${1:?usage: platforms.sh gcc|clang|c++17|c++20|musl|mingw|aarch64|riscv64|ppc64le|packages}
here=$(uname -m)
program=$root/tests/house/platforms/telling.c

# first COMMAND...: the first of them that is there.
first() { for one; do if have "$one"; then echo "$one"; return; fi; done; }

# stop TEXT: this platform cannot be tried here.
stop() {
    checked
    skip "$platform" "$1"
    finish
}

# What builds, with which flags, and what runs the result.
builds='' flags='-std=c11 -O2' runner=''
case $platform in
gcc) builds=gcc flags="$flags -static" ;; # whose libc.a has only what somebody asks for
clang) builds=clang ;;
c++17 | c++20)
    builds=$(for one in g++ clang++; do if have $one; then echo $one; fi; done)
    flags="-x c++ -std=$platform -O2"
    ;;
musl) builds=musl-gcc flags="$flags -static" ;;
mingw)
    builds=x86_64-w64-mingw32-gcc flags="$flags -static"
    [ "$here" = x86_64 ] || stop 'wine needs an x86-64 machine'
    runner=$(first wine64 /usr/lib/wine/wine64 wine)
    [ -n "$runner" ] || stop 'wine64 is not installed'
    ;;
aarch64 | riscv64 | ppc64le)
    case $platform in ppc64le) builds=powerpc64le-linux-gnu-gcc ;; *) builds=$platform-linux-gnu-gcc ;; esac
    flags="$flags -static"
    runner=qemu-$platform
    if [ "$here" = "$platform" ]; then
        checked
        echo "this host is $platform: its own compilers cover it"
        finish
    fi
    have "$runner" || stop "$runner is not installed"
    ;;
packages)
    echo 'gcc g++ clang musl-tools qemu-user'
    echo 'gcc-riscv64-linux-gnu libc6-dev-riscv64-cross gcc-powerpc64le-linux-gnu libc6-dev-ppc64el-cross'
    [ "$here" = aarch64 ] || echo 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross'
    [ "$here" != x86_64 ] || echo 'gcc-mingw-w64-x86-64 wine64'
    exit 0
    ;;
*)
    echo "platforms.sh: unknown platform '$platform'" >&2
    exit 2
    ;;
esac
# What optimisers do, digest.* and two platforms ask at level 1: processors that no other test has.
case $level$platform in
1gcc | 1clang | 1c++* | 1musl | 1mingw | 1aarch64) flags=$(printf '%s' "$flags" | sed 's/-O2/-O0/') ;;
1riscv64 | 1ppc64le) flags=$(printf '%s' "$flags" | sed 's/-O2/-O1/') ;;
esac
bodies=
if [ "$level$platform" = 1gcc ] && [ -n "${3:-}" ]; then bodies=$3 flags="$flags -fopenmp -DTRN_SPLIT"; fi
case $level$platform in
1c++17) builds=$(first g++ clang++) ;;
1c++20) builds=$(first clang++ g++) ;;
esac
[ -n "$builds" ] || stop 'no compiler for it is installed'
for compiler in $builds; do have "$compiler" || stop "$compiler is not installed"; done

# Wine keeps its registry in a directory, and a server that ends some seconds after its last program.
if [ "$platform" = mingw ]; then
    export WINEPREFIX="$scratch/wine" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
    server=$(first wineserver64 /usr/lib/wine/wineserver64 wineserver /usr/lib/wine/wineserver)
    [ -z "$server" ] || trap '"$server" -k >/dev/null 2>&1; rm -rf "$scratch"' EXIT
fi

# build COMPILER FILE: makes $scratch/there.exe (a name that Windows runs). Warnings are counted, not judged: that is
# the business of headers.sh, and every compiler has its own.
build() {
    checked
    # shellcheck disable=SC2086
    "$1" $flags -Wall -Wextra -I"$root" "$2" $bodies -o "$scratch/there.exe" -lm 2>"$scratch/log" || {
        fail_log "$scratch/log" "$1 $flags cannot build ${2#"$root"/}"
        return 1
    }
    warnings=$(grep -c 'warning:' "$scratch/log") || warnings=no
}

# run ARGUMENTS...: what the program says, in $scratch/there; lines end as they do here.
run() {
    (cd "$root" && $runner "$scratch/there.exe" "$@") >"$scratch/raw" 2>"$scratch/log" </dev/null
    status=$?
    tr -d '\r' <"$scratch/raw" >"$scratch/there"
}

# The portable build for this machine. It is quick to compile and takes no path that is chosen when it runs.
portable=${2:-}
if [ -z "$portable" ]; then
    native=$(first clang gcc cc)
    portable=$scratch/here
    step "$native cannot build telling.c for this machine" \
        "$native" -std=c11 -O0 -DTRN_NO_INTRINSICS=1 -I"$root" "$program" -o "$portable" -lm || finish
fi
TRN_ISA=portable "$portable" >"$scratch/said" || { fail "telling: it exits with $? on this machine"; finish; }
grep -v '^ran ' "$scratch/said" >"$scratch/want"

for compiler in $builds; do
    build "$compiler" "$program" || continue
    checked
    run
    grep -v '^ran ' "$scratch/there" >"$scratch/got"
    if [ $status -ne 0 ] || ! cmp -s "$scratch/want" "$scratch/got"; then
        diff "$scratch/want" "$scratch/got" >>"$scratch/log"
        fail_log "$scratch/log" "$platform, $compiler $flags: telling.c exits with $status or prints other numbers"
    fi
    printf '%s  %s  %s  %s, %s warnings\n' "$platform" "$compiler" "$(sed -n 's/^digest //p' "$scratch/got")" \
        "$(sed -n 's/^ran //p' "$scratch/there")" "$warnings"
    if [ "$level" -ge 2 ]; then
        build "$compiler" "$root/tests/digest/digest.c" || continue
        checked
        run tests/digest/expected.txt
        [ $status -eq 0 ] || fail_log "$scratch/log" "$platform, $compiler $flags: the digest differs"
        printf '%s  %s  %s  the whole digest\n' "$platform" "$compiler" "$(sed -n 's/^digest //p' "$scratch/there")"
    fi
done
finish
