#!/bin/sh
# matrix.sh gcc|clang|aarch64 [BUILT]: builds digest.c with one compiler at several optimisation levels and in several
# dialects, runs each build on every instruction set with several thread counts, and compares every answer with
# expected.txt. Level 2 (TRN_TEST_LEVEL=2) runs all of the matrix. Level 1 runs a thin cut through it, in which each
# compiler, level, dialect and number of threads comes once: gcc at -O2 and, with all loose flags and for this very
# processor, at -O1; clang at -O3 with its loose flags; clang++ at -O0 without intrinsics and without OpenMP; aarch64 at
# -O2. (gcc at -O3 takes 67 seconds, at -O1 32; clang++ at -O1 27, at -O0 5.) BUILT is the digest program of the tests'
# own build, whose bodies `gcc -std=c11 -O2 -fopenmp` compiled: level 1 does not compile them so again.
#
# When the definition itself changes, and only then, renew the record:  digest/matrix.sh record > digest/expected.txt
# which succeeds only if a plain build and one without intrinsics agree.
. "$(dirname -- "$0")/../house/lib.sh"

part=${1:?usage: matrix.sh gcc|clang|aarch64|record}
built=${2:-}
expected=$root/tests/digest/expected.txt
runs=0

# build "COMPILER FLAGS": makes $scratch/digest. The strict warnings are house.headers' business.
build() {
    flags=$1
    rm -f "$scratch/digest"
    if [ "$level$flags" = "1gcc -std=c11 -O2 -fopenmp" ] && [ -n "$built" ]; then
        cp "$built" "$scratch/digest"
        return
    fi
    case ${flags%% *} in gcc | g++ | *-gcc) memory=$roomy ;; *) memory= ;; esac
    # shellcheck disable=SC2086
    if ! $flags $memory -I"$root" "$root/tests/digest/digest.c" -o "$scratch/digest" -lm 2>"$scratch/log"; then
        checked
        fail_log "$scratch/log" "digest.c does not build: $flags"
        return 1
    fi
}

# run ISA THREADS [EMULATOR]: the build must say that it ran what was asked, and give the recorded digest.
run() {
    isa=$1 threads=$2 emulator=${3:-}
    if ! supported "$isa" && [ -z "$emulator" ]; then
        case " $skipped " in *" $isa "*) ;; *)
            skipped="$skipped $isa"
            skips=$((skips + 1))
            printf 'SKIP %s: /proc/cpuinfo does not list what it needs (expected)\n' "$isa" ;;
        esac
        return
    fi
    checked
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    TRN_ISA=$isa OMP_NUM_THREADS=$threads $emulator "$scratch/digest" "$expected" >"$scratch/out" 2>"$scratch/log"
    status=$?
    got=$(sed -n 's/^digest //p' "$scratch/out")
    ran=$(sed -n 's/^ran //p' "$scratch/out")
    case $flags in *-fopenmp*) want="$isa threads $threads" ;; *) want="$isa threads 0" ;; esac
    printf '%s  %-12s threads %s  %s%s\n' "${got:-no digest       }" "$isa" "${want##* }" "$flags" \
        "${TRN_DIGEST_MODES:+, in modes: $TRN_DIGEST_MODES}"
    [ $status -eq 0 ] || fail_log "$scratch/log" \
        "the digest differs: $flags, TRN_ISA=$isa, OMP_NUM_THREADS=$threads, modes: ${TRN_DIGEST_MODES:-plain}"
    [ $status -ne 0 ] || [ "$ran" = "$want" ] || fail "asked for '$want' but '$ran' ran: $flags"
}

everything() { for isa in $isas; do for threads in 1 2 3 7; do run "$isa" $threads; done; done; }

# modes ISA THREADS [EMULATOR]: the same, called from threads in each of the modes of twin/float_modes.h; at level 1 in
# that mode which is all of them together.
modes() {
    names=everything
    [ "$level" -lt 2 ] || names=$(sed -n 's/^    { "\([a-z]*\)", .*/\1/p' "$root/tests/twin/float_modes.h")
    for name in $names; do
        export TRN_DIGEST_MODES="$name"
        run "$@"
        unset TRN_DIGEST_MODES
    done
}

# What calls allow, all at once: each alone is fp_check's business, at level 2.
all_loose() { loose "$1" | tr '\n' ' '; }

skipped=
best=portable
for isa in $isas; do if supported "$isa"; then best=$isa; fi; done

case $part in
record)
    build 'gcc -std=c11 -O2 -DTRN_NO_INTRINSICS=1' && TRN_ISA=portable "$scratch/digest" >"$scratch/slow" || exit 1
    build 'gcc -std=c11 -O2 -fopenmp' && "$scratch/digest" >"$scratch/fast" || exit 1
    for file in slow fast; do sed -i '/^ran /d' "$scratch/$file"; done
    cmp "$scratch/slow" "$scratch/fast" >&2 || exit 1
    echo '# What digest.c prints on every machine, with every compiler. matrix.sh compares; matrix.sh record renews.'
    cat "$scratch/slow"
    exit 0
    ;;
gcc | clang)
    if ! have "$part"; then
        checked
        skip "$part" "$part is not installed"
        finish
    fi
    ;;
aarch64)
    if [ "$(uname -m)" = aarch64 ]; then # the other two parts run natively here
        checked
        echo 'this host is aarch64: its own compilers cover it'
        finish
    fi
    for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
        if ! have $tool; then
            checked
            skip aarch64 "$tool is not installed"
            finish
        fi
    done
    ;;
*)
    echo "matrix.sh: unknown part '$part' (gcc, clang, aarch64 or record)" >&2
    exit 2
    ;;
esac

if [ "$part" = aarch64 ]; then
    cross='aarch64-linux-gnu-gcc -static'
    build "$cross -std=c11 -O2" && modes neon 1 qemu-aarch64
    if [ "$level" -ge 2 ]; then
        run neon 1 qemu-aarch64
        for flags in '-std=gnu11 -O0' '-std=gnu11 -O3' '-std=gnu11 -O2 -DTRN_NO_INTRINSICS=1'; do
            build "$cross $flags" && run neon 1 qemu-aarch64
        done
        build "$cross -std=c11 -O2 -fopenmp" &&
            for threads in 1 2 3 7; do for isa in portable neon; do run $isa $threads qemu-aarch64; done; done
    fi
elif [ "$level" -ge 2 ]; then
    for std in c11 gnu11; do
        for opt in -O0 -O2 -O3; do
            build "$part -std=$std $opt -fopenmp" && everything
            build "$part -std=$std $opt -fopenmp -DTRN_NO_INTRINSICS=1" && for isa in $isas; do run "$isa" 3; done
        done
        build "$part -std=$std -O2" && for isa in $isas; do run "$isa" 1; modes "$isa" 1; done # no OpenMP
    done
    build "$part -std=gnu11 -O2 -march=native -fopenmp" && everything # contraction is on here, in gcc's default dialect
    build "$part -std=gnu11 -O3 -march=native -DTRN_NO_INTRINSICS=1" && for isa in $isas; do run "$isa" 1; done
    build "$(cxx_of "$part") -x c++ -std=c++17 -O2 -fopenmp" && everything
    build "$(cxx_of "$part") -x c++ -std=c++17 -O1 -fopenmp -DTRN_NO_INTRINSICS=1" && run "$best" 3
    build "$part -std=gnu11 -O3 -march=native -fopenmp $(all_loose "$part")" && everything
elif [ "$part" = gcc ]; then
    build 'gcc -std=c11 -O2 -fopenmp' &&
        { run portable 7; run avx2 2; run avx512 3; run avx512-bf16 2; modes "$best" 3; }
    build "gcc -std=gnu11 -O1 -march=native -fopenmp $(all_loose gcc)" &&
        { run portable 2; run avx2 7; run avx512 2; run pairs-emulated 1; }
else
    build "clang -std=gnu11 -O3 -fopenmp $(all_loose clang)" &&
        { run portable 3; run avx2 7; run avx512 2; modes "$best" 2; }
    build 'clang++ -x c++ -std=c++17 -O0 -DTRN_NO_INTRINSICS=1' && run avx2 1
fi
printf '%s runs gave %s\n' "$runs" "$(sed -n 's/^digest //p' "$expected" 2>/dev/null)"
finish
