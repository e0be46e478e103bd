#!/bin/sh
# The tests: installs what is missing, builds, runs, and says what it is doing. Exits with ctest's status, or 2 when
# there is nothing to run.
set -u
. "$(dirname -- "$0")/setup.sh"

usage() {
    cat <<'END'
usage: scripts/test.sh [--level 1|2] [--matrix] [--sanitized] [CTEST OPTIONS...]

  --level 1     the default, some minutes: every unit test, every program, the headers, with one compiler
  --matrix      level 1, and gcc and clang at all optimisation levels, each door alone, every way of installing, C++,
                musl, mingw-w64 under wine, aarch64, riscv64 and ppc64le under qemu, several processes, and the fuzzers
                under AddressSanitizer and UBSan (those of files instead of level 1's); what .ci/run runs
  --level 2     the matrix, and the long sweeps: all 2^32 floats, every configuration, every test sanitized; hours
  --sanitized   each unit test a second time under AddressSanitizer and UBSan

Anything else goes to ctest:  scripts/test.sh -R format   runs the tests whose names contain "format",
                              scripts/test.sh -N          lists them.

TRN_EXPECT_SKIPS   words for paths that this machine is known to lack, such as "clang aarch64"; a path that is
                   skipped without being expected fails its test
CC                 the compiler of the main build; gcc unless set
END
}

level=1
matrix=OFF
sanitized=OFF
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
    --matrix) matrix=ON ;;
    --sanitized) sanitized=ON ;;
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
[ "$level" -eq 1 ] || matrix=ON sanitized=ON
[ $matrix = OFF ] || [ $sanitized = ON ] || sanitized=FUZZERS

# What needs no compiler comes first: a result within seconds. (The tests ask again, so nothing ends here.)
TRN_TEST_LEVEL=$level
export TRN_TEST_LEVEL
if [ $# -eq 0 ]; then
    say 'stage 1 of 4: the house (which header lies where, what it includes, what it says of itself)'
    for check in house contents; do TRN_EXPECT_SKIPS=python3 sh "$root/tests/house/$check.sh"; done
fi

say 'stage 2 of 4: packages'
packages='gcc g++ cmake make pkgconf libcmocka-dev libmpfr-dev libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev'
packages="$packages libprotobuf-c-dev protobuf-c-compiler"
packages="$packages libsleef-dev libseccomp2 python3-numpy python3-jsonschema python3-dev python3-pip python3-venv"
packages="$packages man-db patch strace zsh ruby chromium gappa python3-nbclient python3-ipykernel"
if [ $matrix = ON ]; then
    packages="$packages clang clang-format doxygen gdb mypy libomp-dev libopenmpi-dev openmpi-bin"
    packages="$packages $(sh "$root/tests/house/platforms.sh" packages)"
fi
[ "$level" -eq 1 ] || packages="$packages clang-tidy clangd cppcheck lldb nodejs npm emscripten firefox-esr"
# shellcheck disable=SC2086
need $packages

say 'stage 3 of 4: compiling the bodies once, and every test and program against them'
build=$root/.build/test
build_in "$build" "-DCMAKE_C_COMPILER=${CC:-gcc}" -DTRN_SANITIZED_TWINS=$sanitized -DTRN_MATRIX=$matrix

say 'stage 4 of 4: the tests'
cd "$build" || exit 2
leave=
[ "$level" -ne 1 ] || leave=level2
if [ $matrix = OFF ]; then
    leave="$leave|matrix"
    TRN_EXPECT_SKIPS="${TRN_EXPECT_SKIPS:-} clang mpi mypy" # the matrix asks them
    export TRN_EXPECT_SKIPS
fi
[ -z "$leave" ] || set -- -LE "^($leave)\$" "$@"
# One more at a time than there are processors: some wait, for a time-out or a browser.
exec ctest --parallel "$((jobs + 1))" --output-on-failure "$@"
