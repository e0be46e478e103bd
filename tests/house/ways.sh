#!/bin/sh
# The ways in, each from a stranger's small project (tests/house/ways/): find_package, add_subdirectory, the folder
# copied beside the sources, and the one file of scripts/amalgamate.py. Every program is linked from two files compiled
# for different processors, and all programs print the same number. The one file is the headers, token for token.
. "$(dirname -- "$0")/lib.sh"

project=$root/tests/house/ways
version=$(version_of_headers)
case $(uname -m) in
x86_64) narrow=-march=x86-64 ;;
aarch64) narrow=-march=armv8-a ;;
*) narrow= ;;
esac
wide=-march=native

# agrees KIND PROGRAM TEXT: it exits with 0 and says our version and the number that every program of this kind says.
agrees() {
    checked
    got=$("$2") || fail "$3: the program exits with $? (${got:-nothing}): its two files do not agree"
    [ "${got%% *}" = "$version" ] || fail "$3: the program prints version '${got%% *}', base/base.h says $version"
    [ -s "$scratch/said.$1" ] || echo "${got##* } $3" >"$scratch/said.$1"
    read -r number first <"$scratch/said.$1"
    [ "${got##* }" = "$number" ] || fail "$3: the results' number is ${got##* }, but $number by $first"
}

# plain TEXT NAME "NARROW COMPILER" "WIDE COMPILER" FLAGS: compiles work.c twice, and main.c, and links the three.
plain() {
    program=$scratch/$2
    # shellcheck disable=SC2086
    step "$1: $3 cannot compile a stranger's file" \
        $3 $5 $narrow -DWORK=work_narrow -c "$project/work.c" -o "$program.narrow.o" &&
        step "$1: $4 cannot compile a stranger's file" \
            $4 $5 $wide -DWORK=work_wide -c "$project/work.c" -o "$program.wide.o" &&
        step "$1: the program does not link" \
            $3 "$project/main.c" -x none "$program.narrow.o" "$program.wide.o" -o "$program" -lm
}

# Level 1 saves time where another check does not: -O0, and gcc, which takes four times as long, only for one half.
[ "$level" -ge 2 ] && optimise=-O2 || optimise=-O0
some_cc=$(compilers | head -n 1)
other_cc=$(quick_compiler)
if [ -z "$some_cc" ]; then
    checked
    skip gcc 'neither gcc nor clang is installed'
    finish
fi
require_compilers

# ---- CMake: an installed tree that was moved, and the sources ----

cmake_way() { # WAY LANGUAGE COMPILER
    directory=$scratch/$1.$2.$3
    label="$1 ($2, $3)"
    where=$root/trnmath
    [ "$1" = add_subdirectory ] || where=$version
    # shellcheck disable=SC2086
    step "$label: cmake fails" env "CC=$3" "CXX=$(cxx_of "$3")" \
        cmake -S "$project" -B "$directory" -DWAY="$1" -DTRNMATH="$where" -DCMAKE_PREFIX_PATH="$scratch/moved" \
        -DWORK_LANGUAGE="$2" -DOPTIMISE=$optimise -DNARROW=$narrow -DWIDE=$wide &&
        step "$label: the program does not build" cmake --build "$directory" --parallel 2 &&
        agrees light "$directory/app" "$label"
}

if have cmake; then
    step 'cmake cannot configure trnmath/' \
        cmake -S "$root/trnmath" -B "$scratch/build" -DTRN_LIBRARY=OFF -DCMAKE_INSTALL_PREFIX="$scratch/prefix" &&
        step 'cmake --install fails' cmake --install "$scratch/build"
    mv "$scratch/prefix" "$scratch/moved"
    for compiler in $(compilers); do
        [ "$level" -ge 2 ] || [ "$compiler" = "$other_cc" ] || continue
        cmake_way find_package C "$compiler"
        cmake_way add_subdirectory CXX "$compiler"
        if [ "$level" -ge 2 ]; then
            cmake_way find_package CXX "$compiler"
            cmake_way add_subdirectory C "$compiler"
        fi
    done
else
    skip cmake 'cmake is not installed'
fi

# ---- the folder, copied: plain cc, and one program of two compilers ----

mkdir "$scratch/copy"
cp -R "$root/trnmath" "$scratch/copy/trnmath"
warnings="$strict -Wshadow"
if plain 'the copied folder' copied "$some_cc -std=c11" "$other_cc -std=c11" "$optimise $warnings -I$scratch/copy"; then
    agrees light "$scratch/copied" "the copied folder ($some_cc and $other_cc)"
fi

# ---- the one file ----

if ! have python3; then
    skip python3 'python3 is not installed, so nothing makes the one file'
    finish
fi
mkdir "$scratch/one"
step 'amalgamate.py fails' python3 "$root/scripts/amalgamate.py" --output "$scratch/one/trnmath.h" || finish
step 'amalgamate.py --marks fails' \
    python3 "$root/scripts/amalgamate.py" --marks --output "$scratch/one/marks.h" || finish

checked
python3 "$root/scripts/amalgamate.py" --list | sort >"$scratch/got"
headers >"$scratch/want"
comm -3 "$scratch/want" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'amalgamate.py: the one file and trnmath/ differ in %s'

# tokens HEADER FLAGS: what the compiler reads. Other libraries' headers need not be there: they are looked for in a
# directory of empty ones.
mkdir "$scratch/empty"
: >"$scratch/empty/mpi.h"
: >"$scratch/empty/sleef.h"
tokens() {
    echo "#include <$1>" >"$scratch/tokens.c"
    # shellcheck disable=SC2086
    "$some_cc" -std=c11 -E -P -isystem "$scratch/empty" -I"$scratch/one" -I"$root" $2 "$scratch/tokens.c" \
        2>"$scratch/log" |
        tr -s ' \n' '\n\n'
}
same_tokens() { # HEADER ONE-FILE FLAGS
    checked
    tokens "trnmath/$1" "$3" >"$scratch/tokens.want"
    tokens "$2" "$3" >"$scratch/tokens.got"
    grep -q trn_bf16_from_f32 "$scratch/tokens.got" ||
        fail_log "$scratch/log" "$2 $3: it cannot be preprocessed, or has no trn_bf16_from_f32"
    cmp -s "$scratch/tokens.want" "$scratch/tokens.got" ||
        fail "amalgamate.py: with '$3' $2 and trnmath/$1 do not have the same tokens"
}
all_guests='-DTRN_USE_MPI=1 -DTRN_USE_SLEEF=1'
for flags in '' -DTRN_NO_INTRINSICS -fopenmp -DTRN_USE_MPI=1 -DTRN_USE_SLEEF=1 "$all_guests -fopenmp"; do
    same_tokens trnmath.h trnmath.h "$flags"
done
same_tokens trnmath.h marks.h ''
for header in trn_format.h trn_convert.h trn_matmul.h trn_plan.h trn_scalar_engine.h trn_mpi.h; do
    [ "$level" -ge 2 ] || case $header in trn_format.h | trn_matmul.h) continue ;; esac
    python3 "$root/scripts/amalgamate.py" --only $header --output "$scratch/one/$header" 2>/dev/null ||
        fail "amalgamate.py --only $header fails"
    same_tokens $header $header "$all_guests"
done

# Strictly, in both languages, and beside single headers of the same version; another version is refused. (What its
# bodies draw as code, headers.sh sees: the tokens are the same. Level 1 does not make code of them once more, and has
# one compiler read them, in C++ in the stranger's program below.)
[ "$level" -ge 2 ] && product="-c -o $scratch/strict.o" || product=-fsyntax-only
printf '#include "trnmath.h"\n#include <trnmath/trn_convert.h>\n#include "trnmath.h"\n' >"$scratch/strict.c"
for compiler in $(compilers); do
    [ "$level" -ge 2 ] || [ "$compiler" = "$other_cc" ] || continue
    for command in "$compiler -std=c11" "$(cxx_of "$compiler") -std=c++17 -x c++"; do
        case $level$command in 1*c++) continue ;; esac
        # shellcheck disable=SC2086
        step "the one file draws a warning ($command)" \
            $command $warnings -I"$scratch/one" -I"$root" $product "$scratch/strict.c"
    done
done
checked
printf '#define TRN_VERSION_MAJOR 99\n#include "trnmath.h"\n' >"$scratch/mixed.c"
if "$some_cc" -I"$scratch/one" -fsyntax-only "$scratch/mixed.c" 2>"$scratch/log" ||
    ! grep -q 'headers of another version' "$scratch/log"; then
    fail_log "$scratch/log" 'the one file after headers of another version: it is not refused with a sentence'
fi

# The stranger's program, without -I of ours; both languages.
# (Of two compilers in one program the copied folder asks.)
flags="$optimise $warnings -DONE_FILE -I$scratch/one"
if plain 'the one file' one_c "$other_cc -std=c11" "$other_cc -std=c11" "$flags"; then
    agrees light "$scratch/one_c" "the one file ($other_cc)"
fi
cxx="$(cxx_of "$other_cc") -std=c++17 -x c++"
if plain 'the one file in C++' one_cxx "$cxx" "$cxx" "$flags"; then
    agrees light "$scratch/one_cxx" "the one file in C++ ($other_cc)"
fi

# Results that take compilers long.
if [ "$level" -ge 2 ] &&
    plain 'the copied folder' product "$some_cc -std=c11" "$other_cc -std=c11" "-O2 -DPRODUCT -I$scratch/copy"; then
    agrees heavy "$scratch/product" "a product from the copied folder ($some_cc and $other_cc)"
    flags="-O2 -DPRODUCT -DONE_FILE -I$scratch/one"
    plain 'the one file' one_product "$other_cc -std=c11" "$other_cc -std=c11" "$flags" &&
        agrees heavy "$scratch/one_product" "a product from the one file ($other_cc)"
fi

# The digest, every header's name standing for the one file. (Level 1 has compared the tokens, which are the same.)
if [ "$level" -ge 2 ]; then
    mkdir -p "$scratch/shim/trnmath"
    for header in $(doors); do echo "#include \"$scratch/one/trnmath.h\"" >"$scratch/shim/trnmath/$header"; done
    if step 'digest.c does not build on the one file' "$other_cc" -std=c11 -O2 -MD -MF "$scratch/digest.d" \
        -I"$scratch/shim" -I"$root" "$root/tests/digest/digest.c" -o "$scratch/digest" -lm; then
        step 'the digest of the one file differs' "$scratch/digest" "$root/tests/digest/expected.txt"
        checked
        ! grep -q "$root/trnmath/" "$scratch/digest.d" ||
            fail 'digest.c on the one file: it read trnmath/ itself, so this check is blind'
    fi
fi

checked
python3 "$root/scripts/amalgamate.py" --only nothing.h >"$scratch/got" 2>"$scratch/log"
[ $? -eq 2 ] && [ ! -s "$scratch/got" ] && [ "$(wc -l <"$scratch/log")" -eq 1 ] ||
    fail 'amalgamate.py --only nothing.h: not status 2 and one sentence, or it printed something'
finish
