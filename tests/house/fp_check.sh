#!/bin/sh
# Each bit of trn_fp_check() fires in a program built with the flag that causes it, and in no other; the #error of
# trn_base.h stops every fast-math flag that the preprocessor shows; where none shows it, calls refuse to run; and flags
# that are not refused give the digest (level 2: each alone, at several levels of optimisation; digest.gcc and
# digest.clang try them together).
. "$(dirname -- "$0")/lib.sh"
require_compilers

# expect BITS COMPILER "COMPILE FLAGS" "LINK FLAGS" [ROUNDING]
expect() {
    checked
    # shellcheck disable=SC2086
    if ! $2 $3 -I"$root" -c "$root/tests/house/fp_probe.c" -o "$scratch/probe.o" 2>"$scratch/log" ||
        ! $2 $4 "$scratch/probe.o" -o "$scratch/probe" -lm 2>"$scratch/log"; then
        fail_log "$scratch/log" "trn_fp_check: the probe does not build ($2 $3, linked with '$4')"
        return
    fi
    got=$("$scratch/probe" ${5:+"$5"})
    [ "${got%% *}" = "$1" ] ||
        fail "trn_fp_check: expected bits $1, found $got ($2 $3, linked with '$4'${5:+, rounding $5})"
}

# refuses COMPILER FLAGS: the #error fires, and it is ours.
refuses() {
    checked
    # shellcheck disable=SC2086
    if $1 $2 -I"$root" -fsyntax-only "$root/tests/house/fp_probe.c" 2>"$scratch/log"; then
        fail "trn_base.h: compiles under $1 $2; its #error should refuse"
    elif ! grep -q '#error\|error: "\?trnmath' "$scratch/log" || ! grep -q 'trnmath: ' "$scratch/log"; then
        fail_log "$scratch/log" "trn_base.h: fails under $1 $2, but not by its own #error"
    fi
}

# silent COMPILER FLAGS [DEFINITION]: what no macro shows ends every call with a sentence. (trn_base.h finds out; level
# 1 does not optimise what comes behind it, and leaves out the kernels for each processor, which no refused call
# reaches: clang, the only one that is asked, needs a quarter of the time.)
printf '#include <trnmath/trn_base.h>\n#pragma clang optimize off\n' >"$scratch/base_only.h"
base_only="-DTRN_NO_INTRINSICS=1 -include $scratch/base_only.h"
[ "$level" -lt 2 ] || base_only=
silent() {
    checked
    # shellcheck disable=SC2086
    if ! $1 -std=c11 $2 ${3:-} $base_only -I"$root" "$root/tests/house/fp_call.c" -o "$scratch/call" -lm \
        2>"$scratch/log"; then
        fail_log "$scratch/log" "fp_call.c does not build: $1 $2"
    elif ! "$scratch/call" >"$scratch/log"; then
        fail_log "$scratch/log" "compiled with $1 $2, a call does not refuse to run"
    fi
}

allow=-DTRN_ALLOW_FAST_MATH=1
x86=
[ "$(uname -m)" = x86_64 ] && x86=1
fma=1
has_fma || { fma=; skip fma "this processor has no fused multiply-add to run"; }

for compiler in $(compilers); do
    # Nothing fires in ordinary builds.
    for flags in '-std=c11 -O0' '-std=c11 -O2' '-std=c11 -O3' '-O2 -ffp-contract=off'; do
        expect 00 "$compiler" "$flags" ''
    done

    # FTZ and DAZ: fast math at link time alone sets them for the whole process. (x86-64's start-up code does it.)
    if [ -n "$x86" ]; then
        expect 03 "$compiler" '-std=c11 -O2' -ffast-math
        expect 00 "$compiler" '-std=c11 -O2' -fno-fast-math
    fi

    # The rounding mode.
    for mode in up down zero; do expect 04 "$compiler" '-std=c11 -O2' '' $mode; done
    expect 00 "$compiler" '-std=c11 -O2' '' nearest

    # Contraction: allowed, and an instruction for it.
    if [ -n "$fma" ]; then
        march=${x86:+-march=haswell}
        expect 08 "$compiler" "-O2 $march -ffp-contract=fast" ''
        expect 00 "$compiler" "-O2 $march -ffp-contract=off" ''
        expect 00 "$compiler" "-O2 $march -fno-fast-math -ffp-contract=off" '' # what trnmath::strict adds
    fi

    # Reassociation and finite-only.
    associative='-fassociative-math -fno-signed-zeros -fno-trapping-math'
    expect 50 "$compiler" "-O2 -ffp-contract=off $associative $allow" ''
    expect 40 "$compiler" "-O2 -ffp-contract=off -fno-signed-zeros $allow" ''
    expect 80 "$compiler" "-O2 -ffp-contract=off -freciprocal-math $allow" ''
    expect 20 "$compiler" "-O2 -ffp-contract=off -ffinite-math-only $allow" ''

    # What the preprocessor shows is refused, and TRN_ALLOW_FAST_MATH=1 lets it through (above).
    for flags in -ffast-math -Ofast -ffinite-math-only "-ffast-math -DTRN_ALLOW_FAST_MATH=0"; do
        refuses "$compiler" "$flags"
    done
done

if have clang; then # it has flags that no macro shows, so only running does
    expect d0 clang '-O2 -ffp-contract=off -funsafe-math-optimizations' ''
    expect 20 clang '-O2 -ffp-contract=off -fno-honor-nans' ''
    # One flag for calls of each kind; level 1 asks one call about the other flags, which is all that differs then.
    silent clang '-O2 -funsafe-math-optimizations'
    [ "$level" -ge 2 ] && few= || few=-DONE_CALL
    for flags in "$associative" -fno-honor-nans -fno-signed-zeros -freciprocal-math; do
        silent clang "-O2 $flags" $few
    done
fi
if have gcc; then
    for flags in "$associative" -freciprocal-math -fno-signed-zeros -funsafe-math-optimizations; do
        refuses gcc "$flags"
    done
    checked
    if gcc -fsingle-precision-constant -I"$root" -fsyntax-only "$root/tests/house/fp_probe.c" 2>"$scratch/log" ||
        ! grep -q 'trnmath: constants are not double' "$scratch/log"; then
        fail 'trn_base.h: compiles under -fsingle-precision-constant'
    fi
    [ -z "$x86" ] || refuses gcc -mfpmath=387
    # gcc's default dialect contracts as soon as the processor can.
    [ -z "$fma$x86" ] || [ -z "$fma" ] || expect 08 gcc "-std=gnu11 -O2 ${x86:+-march=haswell}" ''
fi

# ---- what is not refused ----

# same COMPILER FLAGS: the bits are those of any other build, by the kernels of every instruction set.
same() {
    checked
    # shellcheck disable=SC2086
    if ! $1 -std=c11 $2 -I"$root" "$root/tests/digest/digest.c" -o "$scratch/digest" -lm 2>"$scratch/log"; then
        fail_log "$scratch/log" "digest.c does not build: $1 $2"
        return
    fi
    for isa in $isas; do
        case $isa in *-emulated) continue ;; esac # plain C
        supported "$isa" || continue
        TRN_ISA=$isa "$scratch/digest" "$root/tests/digest/expected.txt" >/dev/null 2>"$scratch/log" ||
            fail_log "$scratch/log" "the digest differs: $1 $2, TRN_ISA=$isa"
    done
}

# Level 1 has all of them in one build of digest.gcc and of digest.clang.
if [ "$level" -ge 2 ]; then
    for compiler in $(compilers); do
        loose "$compiler" >"$scratch/loose"
        while read -r flags; do
            for optimisation in -O0 -O2 -O3; do same "$compiler" "$optimisation $flags"; done
        done <"$scratch/loose"
    done
fi
finish
