#!/bin/sh
# headers.sh gcc|clang|aarch64: every door (level 2: every header but kernels) compiles alone (level 1: by gcc in C),
# as C11 and C++17, under the strict warnings (clang, C11: all that it knows), with the intrinsics and without, and with
# OpenMP; the umbrella as C++20, too; all headers together compile twice over, and in reverse order and once more; and
# (level 2) two files of one program link. Level 2 also turns every body into code at -O2, for the warnings that only
# the optimiser finds.
. "$(dirname -- "$0")/lib.sh"

family=${1:?usage: headers.sh gcc|clang|aarch64}
run=
case $family in
gcc | clang) c=$family cxx=$(cxx_of "$family") ;;
aarch64)
    c=aarch64-linux-gnu-gcc cxx=
    run='qemu-aarch64'
    ;;
*)
    echo "headers.sh: unknown compiler family '$family' (gcc, clang or aarch64)" >&2
    exit 2
    ;;
esac
if ! have "$c"; then
    checked
    skip "$family" "$c is not installed"
    finish
fi

# A user's own warnings, too.
strict="$strict -Wshadow -Wcast-qual"

# Everything that clang can say of C, except
#     declaration-after-statement, padded, unsafe-buffer-usage    for C90, for packed structures, for C++'s containers
#     float-equal                                                 bits are what this library promises
#     switch-enum, covered-switch-default                         each asks for what the other forbids
#     bad-function-cast                                           (double)f(x) is how an integer becomes a double
#     used-but-marked-unused                                      what a header defines is used or not
#     conditional-uninitialized                                   a loop that fills a structure of registers is not seen
# A clang that is newer than the last one tried may know more: then the strict warnings have to do, and we say so.
all_of_c=
if [ "$family" = clang ]; then
    if [ "$("$c" -dumpversion | sed 's/\..*//')" -le 19 ]; then
        all_of_c='-Weverything -Wno-unknown-warning-option'
        for style in declaration-after-statement padded unsafe-buffer-usage float-equal switch-enum \
            covered-switch-default bad-function-cast used-but-marked-unused conditional-uninitialized; do
            all_of_c="$all_of_c -Wno-$style"
        done
    else
        echo "note: clang $("$c" -dumpversion): -Weverything was tried up to clang 19, and is left out"
    fi
fi

# try C-OR-C++ FLAGS FILE TEXT: one compilation, thrown away; `product` says how far it goes.
product="-c -o $scratch/out.o"
try() {
    checked
    case $1 in
    c11) command="$c -std=c11 $all_of_c" ;;
    *) command="$cxx -std=$1 -x c++" ;;
    esac
    # shellcheck disable=SC2086
    $command $strict $2 -I"$root" $product "$scratch/$3" 2>"$scratch/log" ||
        fail_log "$scratch/log" "$4 ($command $2)"
}

languages=c11
[ -n "$cxx" ] && languages='c11 c++17'

# ---- alone ----

# Kernels are read by the rooms that they speed up: alone they are empty.
at_home() {
    case $1 in
    simd/*) return 1 ;;
    base/words_*.h) return 1 ;; # two halves of every door (foreign.sh)
    esac
    available "$1"
}

# far_enough HEADER/FAMILY/LANGUAGE/FLAGS: sets $product. Code draws warnings that declarations alone do not, and costs
# gcc four times as much. At level 2 each header becomes code. At level 1 all headers together do, with intrinsics and
# no OpenMP (twice.c), and the umbrella with OpenMP and no intrinsics, in both languages: each body, on either side of
# either #if, in C++ the one by g++ and the other by clang++. (Not twice.c by gcc in C: the bodies that the tests link
# are that, with these warnings, and with OpenMP and without.)
far_enough() {
    product=-fsyntax-only
    case $level/$1 in
    2/* | 1/trnmath.h/gcc/c11/*-DTRN_NO_INTRINSICS | 1/trnmath.h/clang/c++17/*-DTRN_NO_INTRINSICS | \
        1/twice/clang/c11/ | 1/twice/aarch64/c11/ | 1/twice/gcc/c++17/) product="-c -o $scratch/out.o" ;;
    esac
}

# What a user may include: at level 1 doors, the umbrella among them. What a part or a room forgot to include,
# includes.py finds (house.house), and their warnings the umbrella shows.
[ "$level" -ge 2 ] && each=headers || each=doors
for header in $($each); do
    at_home "$header" || continue
    echo "#include <trnmath/$header>" >"$scratch/alone.c"
    needs=$(flags_of "$header")
    far_enough "$header/$family/c11/$needs"
    if [ -n "$needs" ] && [ "$family" != aarch64 ]; then try c11 "$needs" alone.c "$header does not compile alone"; fi
    for language in $languages; do
        for flags in '' '-DTRN_NO_INTRINSICS' '-fopenmp' '-fopenmp -DTRN_NO_INTRINSICS'; do
            # Level 1: a door alone by gcc in C, without intrinsics, whose own headers cost it half a second; the
            # umbrella, which sees every header, with OpenMP, by each compiler. (Without, and with intrinsics, all
            # headers together see it below.)
            case $level/$header/$family/$language/$flags in
            2/* | 1/trnmath.h/clang/*/-fopenmp | 1/trnmath.h/clang/c++17/'-fopenmp -DTRN_NO_INTRINSICS' | \
                1/trnmath.h/gcc/*/'-fopenmp -DTRN_NO_INTRINSICS' | 1/*/gcc/c11/-DTRN_NO_INTRINSICS) ;;
            *) continue ;;
            esac
            far_enough "$header/$family/$language/$flags"
            try "$language" "$flags" alone.c "$header does not compile alone"
        done
    done
done
far_enough C++20
if [ -n "$cxx" ] && [ "$level$family" != 1gcc ]; then # g++ takes a third more of time than clang++, which asks, too
    echo '#include <trnmath/trnmath.h>' >"$scratch/alone.c"
    try c++20 '' alone.c 'trnmath.h as C++20 draws a warning'
    [ "$level" -lt 2 ] || try c++20 -DTRN_NO_INTRINSICS alone.c 'trnmath.h as C++20 draws a warning'
fi

# ---- together: any order, any number of times ----

everything() { for header in $(headers); do at_home "$header" >/dev/null && echo "#include <trnmath/$header>"; done; }
everything >"$scratch/forward"
sed '1!G;h;$!d' "$scratch/forward" >"$scratch/reverse"
cat "$scratch/forward" "$scratch/forward" >"$scratch/twice.c"
cat "$scratch/reverse" "$scratch/forward" >"$scratch/reverse.c"
# (C++ at level 1: twice by g++, the other way by clang++.)
for language in $languages; do
    if [ "$level$family$language" != 1clangc++17 ]; then
        far_enough "twice/$family/$language/"
        try "$language" '' twice.c 'including every header twice does not compile'
    fi
    if [ "$level$family$language" != 1gccc++17 ]; then
        far_enough reverse
        try "$language" '' reverse.c 'including every header in reverse order, and then once more, does not compile'
    fi
done

# A user may have been there first: complex.h takes the name I, and old habits define min and max. (Level 1: gcc.)
{
    echo '#include <complex.h>'
    echo '#define min(a, b) ((a) < (b) ? (a) : (b))'
    echo '#define max(a, b) ((a) > (b) ? (a) : (b))'
    cat "$scratch/forward"
} >"$scratch/crowded.c"
case $level$family in
2* | 1gcc)
    try c11 -Wno-unused-macros crowded.c 'in order, after <complex.h>, min() and max(), the headers do not compile'
    ;;
esac

# ---- two files, one program ----

cat >"$scratch/one.c" <<'END'
#include <trnmath/trnmath.h>
unsigned one(void);
unsigned one(void) { return trn_fp_check() + trn_bf16_from_f32(1.0f); }
#if defined(CALLS) /* everything that has kernels, as code: warnings that declarations alone do not draw (level 2) */
int calls(void);
int calls(void)
{
    return trn_convert(NULL) && trn_matmul(NULL) && trn_nc_matmul(NULL) && trn_nc_matmul_mx(NULL) &&
           trn_mx_quantize(NULL) && trn_sparse_matmul(NULL) && trn_tensor_tensor(NULL) && trn_activation(NULL) &&
           trn_dma_copy(NULL);
}
#endif
END
cat >"$scratch/two.c" <<'END'
#include <stdio.h>
#include <trnmath/trnmath.h>
unsigned one(void);
int main(void) { return one() == trn_fp_check() + trn_bf16_from_f32(1.0f) && trn_isa_name()[0] ? 0 : 1; }
END
[ -z "$run" ] || run="$run -L /usr/aarch64-linux-gnu"
for language in $languages; do
    [ "$level" -ge 2 ] || continue # ways.sh links two files that have all headers, in C and in C++
    checked
    case $language in
    c11) command="$c -std=c11" ;;
    *)
        command="$cxx -std=c++17"
        cp "$scratch/one.c" "$scratch/one.cc"
        cp "$scratch/two.c" "$scratch/two.cc"
        ;;
    esac
    suffix=c
    [ "$language" = c11 ] || suffix=cc
    # shellcheck disable=SC2086
    if ! $command -O0 $strict -I"$root" "$scratch/one.$suffix" "$scratch/two.$suffix" -o "$scratch/two" -lm \
        2>"$scratch/log"; then
        fail_log "$scratch/log" "two files that include trnmath.h do not link into one program ($command)"
    elif [ -z "$run" ] || have "${run%% *}"; then
        $run "$scratch/two" || fail "two files that include trnmath.h: the program failed with status $? ($command)"
    fi
done

# ---- level 2: every body as code ----

product="-c -o $scratch/out.o"
if [ "$level" -ge 2 ]; then
    for language in $languages; do
        try "$language" '-O2 -DCALLS' one.c 'calls of everything that has kernels draw a warning'
    done
    [ "$family" != clang ] ||
        try c11 '-O1 -DCALLS -fsanitize=address,undefined' one.c 'under sanitizers kernels draw a warning'
fi
if [ "$level" -ge 2 ] && [ "$family" = gcc ]; then
    for header in $(headers); do
        at_home "$header" || continue
        echo "#include <trnmath/$header>" >"$scratch/alone.c"
        for language in $languages; do
            bodies='-O2 -fkeep-inline-functions -fkeep-static-functions'
            try "$language" "$bodies -DTRN_NO_INTRINSICS" alone.c "$header: a body draws a warning"
            # g++ 12 warns of its own <avx512fintrin.h>, where a variable is initialised with itself (GCC bug 105593)
            [ "$language" = c11 ] || bodies="$bodies -Wno-maybe-uninitialized -Wno-uninitialized"
            try "$language" "$bodies" alone.c "$header: a body draws a warning"
        done
    done
fi
finish
