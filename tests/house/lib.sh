# What the house checks share: where the project is, which compilers there are, and how a finding is told and counted.
# Sourced by the scripts beside it. POSIX sh; every check prints one line of totals and exits 1 when something failed.
#
# TRN_EXPECT_SKIPS   words (avx2 avx512 aarch64 mpi ...) naming paths that this machine is known to lack. A path that
#                    is skipped without being expected is a failure: a check that never runs would guard nothing.

LC_ALL=C
export LC_ALL
export OMP_WAIT_POLICY=passive # threads without work sleep: tests share the processor
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trn-house.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

strict='-Wall -Wextra -Wpedantic -Wconversion -Wundef -Werror'
level=${TRN_TEST_LEVEL:-1}
checks=0
failures=0
skips=0

fail() {
    failures=$((failures + 1))
    printf 'FAIL %s\n' "$*"
}

# fail_each FILE TEXT: a failure for each line of FILE (the first ten are told), %s in TEXT standing for the line.
fail_each() {
    [ -s "$1" ] || return 0
    failures=$((failures + $(wc -l <"$1")))
    # shellcheck disable=SC2059
    sed 10q "$1" | while IFS= read -r line; do printf "FAIL $2\\n" "$line"; done
    sed 1,10d "$1" | wc -l | awk '$1 { print "FAIL ... and " $1 " more of these" }'
}

# fail_log FILE TEXT...: a failure with the first lines of what the tool said.
fail_log() {
    log=$1
    shift
    fail "$@"
    sed -n '1,12s/^/     | /p' "$log"
}

# skip NAME REASON: printed and counted; a failure unless NAME is expected.
skip() {
    skips=$((skips + 1))
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" $1 "*) printf 'SKIP %s: %s (expected)\n' "$1" "$2" ;;
    *) fail "skipped $1: $2; if this machine is meant to lack it, put $1 into TRN_EXPECT_SKIPS" ;;
    esac
}

checked() { checks=$((checks + 1)); }

# step TEXT COMMAND...: runs it quietly; what it said is told only when it fails.
step() {
    text=$1
    shift
    checked
    "$@" >"$scratch/log" 2>&1 || { fail_log "$scratch/log" "$text"; return 1; }
}

finish() {
    printf '%s: %d checks, %d failed, %d paths skipped\n' "$(basename -- "$0" .sh)" "$checks" "$failures" "$skips"
    if [ "$checks" -eq 0 ]; then
        echo "FAIL nothing was checked"
        exit 1
    fi
    [ "$failures" -eq 0 ]
    exit
}

have() { command -v "$1" >/dev/null 2>&1; }

# The compilers to check with: both when both are there, because each sees what the other does not.
compilers() {
    for compiler in gcc clang; do
        if have "$compiler"; then echo "$compiler"; fi
    done
}

# For gcc, when it compiles all bodies: it looks for garbage in its memory less often, which is a tenth of its time.
roomy='--param ggc-min-heapsize=1000000'

# The one that takes least time where any will do: clang if it is here, which takes a quarter of gcc's.
quick_compiler() { compilers | tail -n 1; }

require_compilers() {
    for compiler in gcc clang; do
        have "$compiler" || skip "$compiler" "$compiler is not installed"
    done
}

# Instruction sets of this kind of machine, by the names that TRN_ISA takes, those that are preferred last.
isas='portable amx-emulated pairs-emulated amx avx512-bf16 avx2 avx512'
[ "$(uname -m)" != aarch64 ] || isas='portable amx-emulated pairs-emulated neon'

# supported ISA: what the kernel says, so that a library that wrongly gives up on an instruction set is caught.
supported() {
    case $1 in
    portable | amx-emulated | pairs-emulated) return 0 ;;
    avx2) set -- avx2 fma f16c ;;
    avx512) set -- avx2 fma f16c avx512f avx512bw avx512dq avx512vl ;;
    avx512-bf16) set -- avx512f avx512bw avx512dq avx512vl avx512_bf16 ;;
    amx) set -- avx512f avx512bw avx512dq avx512vl amx_tile amx_bf16 amx_int8 ;;
    neon) [ "$(uname -m)" = aarch64 ]; return ;;
    esac
    for flag; do grep -q -w -m 1 "$flag" /proc/cpuinfo || return 1; done
}

# A fused multiply-add, which is every processor's but an old x86-64's.
has_fma() { [ "$(uname -m)" != x86_64 ] || grep -q -w -m 1 fma /proc/cpuinfo; }

# loose COMPILER: flags that no call refuses, a group a line, though they allow what changes bits elsewhere.
loose() {
    x86=
    [ "$(uname -m)" != x86_64 ] || x86=1
    case $1 in
    gcc)
        echo '-fno-trapping-math -fno-math-errno'
        echo '-frounding-math -fsignaling-nans'
        echo '-fexcess-precision=fast'
        echo "-funsigned-char ${x86:+-mrecip}"
        ;;
    clang)
        echo -fno-honor-infinities
        echo '-fapprox-func -fdenormal-fp-math=positive-zero'
        echo '-fno-trapping-math -fno-math-errno'
        echo "-funsigned-char ${x86:+-mrecip=all}"
        ;;
    esac
    ! has_fma || echo "-ffp-contract=fast ${x86:+-mfma}"
}

# What base/base.h says.
version_of_headers() { sed -n 's/^#define TRN_VERSION "\(.*\)"$/\1/p' "$root/trnmath/base/base.h"; }

cxx_of() { case $1 in gcc) echo g++ ;; *) echo clang++ ;; esac; }

# Every header, named from trnmath/: trn_matmul.h, array/systolic.h, ... The doors are what a program may include; parts
# hold public names of one door each, rooms have none. (Old names, in forward/, are no headers of their own.)
headers() { (cd "$root/trnmath" && find . -name forward -prune -o -name '*.h' -print | sed 's,^\./,,' | sort); }
doors() { headers | grep -v /; }
# Each part, and its door.
parts_and_doors() {
    (cd "$root/trnmath" && headers | grep / | xargs awk '
        FNR == 2 && /^ \* A part of trn_/ {
            sub(/\.$/, "", $5)
            print FILENAME, $5
        }')
}
rooms() {
    parts_and_doors | cut -d' ' -f1 >"$scratch/parts"
    headers | grep / | grep -v -x -F -f "$scratch/parts"
}

# usage_block FILE: the program in its opening comment: the indented lines after the SPDX line, from the first #include
# to the next line of plain text.
usage_block() {
    awk '
        /SPDX-License-Identifier/ { armed = 1; next }
        armed && !inside && /^ \*     #include/ { inside = 1 }
        inside && (/^ \* [^ ]/ || /\*\//) { exit }
        inside { sub(/^ \*(     )?/, ""); print }' "$1"
}

# The foreign headers that ours include, as a file of the same includes; what this machine lacks stays out.
foreign_includes() {
    (cd "$root/trnmath" && headers | xargs sed -n 's/^[ \t]*#[ \t]*include[ \t]*\(<[^>]*>\).*/\1/p') | sort -u |
        while read -r foreign; do
            # gcc has a file of this name for every machine, but it is an error to include another machine's
            [ "$foreign" = "<arm_neon.h>" ] && [ "$(uname -m)" != aarch64 ] && continue
            [ "$foreign" = "<immintrin.h>" ] && [ "$(uname -m)" != x86_64 ] && continue
            printf '#if __has_include(%s)\n#include %s\n#endif\n' "$foreign" "$foreign"
        done
}

# Headers that exist only where another library is installed: say so and leave them out when it is not.
available() {
    case $1 in
    trn_mpi.h | mpi/*)
        pkg-config --exists ompi-c 2>/dev/null || { skip mpi "trn_mpi.h needs Open MPI"; return 1; }
        ;;
    esac
}

# What a header needs to be all there, as flags of the compiler.
flags_of() {
    case $1 in trn_mpi.h | mpi/*) echo "-DTRN_USE_MPI $(pkg-config --cflags ompi-c | sed 's/-I/-isystem /g')" ;; esac
}
libraries_of() {
    case $1 in trn_mpi.h | mpi/*) pkg-config --libs ompi-c ;; esac
}
