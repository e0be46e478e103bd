#!/bin/sh
# What cmake --install leaves: all headers, found by find_package and by pkg-config wherever the tree is moved, with the
# version of trn_base.h. (Programs that are built in all ways: ways.sh.)
. "$(dirname -- "$0")/lib.sh"

cat >"$scratch/app.c" <<'END'
#include <stdio.h>
#include <trnmath/trnmath.h>
int main(void)
{
    printf("%s %02x\n", TRN_VERSION, trn_fp_check());
    return trn_bf16_from_f32(1.0f) == 0x3f80 ? 0 : 1;
}
END
version=$(version_of_headers)

# runs PROGRAM TEXT [BITS]: it exits with 0 and prints our version (and what trn_fp_check found).
runs() {
    checked
    got=$("$1") || fail "$2: the program exits with $?"
    [ "${got%% *}" = "$version" ] || fail "$2: the program prints version '$got', trn_base.h says $version"
    [ -z "${3:-}" ] || [ "${got##* }" = "$3" ] || fail "$2: trn_fp_check found ${got##* }, expected $3"
}

# A name such as TRN_VERSION stands twice in trn_base.h: as text and as three numbers.
checked
numbers=$(awk '/^#define TRN_VERSION_(MAJOR|MINOR|PATCH) /{ printf "%s%s", dot, $3; dot = "." }' "$root/trnmath/trn_base.h")
[ "$numbers" = "$version" ] || fail "trn_base.h: TRN_VERSION is \"$version\" but its three numbers say $numbers"

# ---- install, and move the tree, so that nothing may depend on where it was put ----

step 'cmake cannot configure trnmath/' cmake -S "$root/trnmath" -B "$scratch/build" -DCMAKE_INSTALL_PREFIX="$scratch/first" || finish
step 'cmake --install fails' cmake --install "$scratch/build" || finish
mv "$scratch/first" "$scratch/prefix"
headers >"$scratch/want"
(cd "$scratch/prefix/include/trnmath" && find . -type f | sed 's,^\./,,' | sort) >"$scratch/got"
checked
comm -23 "$scratch/want" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'cmake --install: does not install %s'
comm -13 "$scratch/want" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'cmake --install: installs %s, which is no header of trnmath/'

# ---- find_package ----

mkdir "$scratch/found"
fma_flag=
expected=
if [ "$(uname -m)" = x86_64 ] && grep -q -w fma /proc/cpuinfo; then fma_flag=-march=haswell expected=00; fi
cat >"$scratch/found/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(trnmath $version REQUIRED)
add_executable(app ../app.c)
target_compile_options(app PRIVATE -O2)
target_link_libraries(app PRIVATE trnmath::trnmath)
add_executable(careful ../app.c)
target_compile_options(careful PRIVATE -O2 $fma_flag)
target_link_libraries(careful PRIVATE trnmath::strict)
END
if step 'find_package(trnmath) from an installed prefix: cmake fails' \
    cmake -S "$scratch/found" -B "$scratch/found/b" -DCMAKE_PREFIX_PATH="$scratch/prefix" &&
    step 'find_package(trnmath): the program does not build' cmake --build "$scratch/found/b"; then
    runs "$scratch/found/b/app" 'find_package(trnmath)'
    runs "$scratch/found/b/careful" "trnmath::strict with gcc's default dialect $fma_flag" $expected
    checked
    grep -q "^trnmath_DIR:PATH=$scratch/prefix/" "$scratch/found/b/CMakeCache.txt" ||
        fail 'find_package(trnmath): it found some other copy, so this check is blind'
fi

# ---- pkg-config ----

if have pkg-config; then
    PKG_CONFIG_PATH=$scratch/prefix/share/pkgconfig
    export PKG_CONFIG_PATH
    checked
    got=$(pkg-config --modversion trnmath) || fail 'pkg-config does not find trnmath.pc'
    [ "$got" = "$version" ] || fail "trnmath.pc: says version '$got', trn_base.h says $version"
    # shellcheck disable=SC2046
    if step 'pkg-config: the C program does not build' \
        "${CC:-cc}" -O2 "$scratch/app.c" -o "$scratch/app_c" $(pkg-config --cflags --libs trnmath); then
        runs "$scratch/app_c" pkg-config
    fi
    # shellcheck disable=SC2046
    if have "${CXX:-c++}" && step 'pkg-config: the C++ program does not build' \
        "${CXX:-c++}" -std=c++17 -O2 -x c++ "$scratch/app.c" -x none -o "$scratch/app_cxx" $(pkg-config --cflags --libs trnmath); then
        runs "$scratch/app_cxx" 'pkg-config, C++17'
    fi
    unset PKG_CONFIG_PATH
else
    skip pkg-config 'pkg-config is not installed'
fi

finish
