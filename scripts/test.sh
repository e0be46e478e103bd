#!/bin/sh
# The tests: installs what is missing, builds, runs. Exits with ctest's status, or 2 when there is nothing to run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END'
usage: scripts/test.sh [--level 1|2] [--platforms] [--sanitized | --sanitized-fuzzers] [CTEST OPTIONS...]

  --level 1     the default: everything that fits into a minute
  --level 2     also the long sweeps: all 2^32 floats, the whole digest matrix, every configuration
  --platforms   level 1, and musl, mingw-w64 under wine, aarch64, riscv64 and ppc64le under qemu, C++17 and C++20
                (level 2 does so anyway; it installs their compilers)
  --sanitized-fuzzers   the fuzzers a second time under AddressSanitizer and UBSan
  --sanitized   each unit test a second time under AddressSanitizer and UBSan (level 2 does so anyway)

Anything else goes to ctest:  scripts/test.sh -R format   runs the tests whose names contain "format",
                              scripts/test.sh -N          lists them.

TRN_EXPECT_SKIPS   words for paths that this machine is known to lack, such as "clang aarch64"; a path that is
                   skipped without being expected fails its test
CC                 the compiler of the main build; gcc unless set
END
}

level=1
sanitized=OFF
platforms=OFF
count=$#
while [ "$count" -gt 0 ]; do # every argument goes once round: ours are taken out, ctest's stay, in order
    argument=$1
    shift
    count=$((count - 1))
    case $argument in
    -h | --help)
        usage
        exit 0
        ;;
    --level)
        if [ "$count" -eq 0 ]; then
            say '--level needs a number, 1 or 2'
            exit 2
        fi
        level=$1
        shift
        count=$((count - 1))
        ;;
    --level=*) level=${argument#--level=} ;;
    --platforms) platforms=ON ;;
    --sanitized) sanitized=ON ;;
    --sanitized-fuzzers) sanitized=FUZZERS ;;
    *) set -- "$@" "$argument" ;;
    esac
done
case $level in
1 | 2) ;;
*)
    say "--level is '$level', expected 1 or 2"
    exit 2
    ;;
esac

packages='gcc g++ clang libomp-dev cmake make pkgconf libcmocka-dev libmpfr-dev libcjson-dev zlib1g-dev'
packages="$packages libsleef-dev libopenmpi-dev openmpi-bin"
packages="$packages python3-numpy man-db"
if [ "$(uname -m)" != aarch64 ]; then packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"; fi
[ "$level" -eq 1 ] || sanitized=ON platforms=ON
if [ $platforms = ON ]; then packages="$packages $(sh "$root/tests/house/platforms.sh" packages)"; fi
# shellcheck disable=SC2086
need $packages

build=$root/.build/test
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_SANITIZED_TWINS=$sanitized

TRN_TEST_LEVEL=$level
export TRN_TEST_LEVEL
cd "$build" || exit 2
leave=
[ "$level" -ne 1 ] || leave=level2
[ $platforms = ON ] || leave=$leave'|platforms' # (then it is level 1)
[ -z "$leave" ] || set -- -LE "^($leave)\$" "$@"
exec ctest --parallel "$jobs" --output-on-failure "$@"
