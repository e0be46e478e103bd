#!/bin/sh
# What cmake --install leaves: all headers, old names and both libraries, found by find_package and by pkg-config
# wherever the tree is moved, with the version of base/base.h. The packages that are used when they are there: SLEEF as
# a component and through pkg-config, OpenMP by one flag. (Programs that are built in all ways: ways.sh.)
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
    [ "${got%% *}" = "$version" ] || fail "$2: the program prints version '$got', base/base.h says $version"
    [ -z "${3:-}" ] || [ "${got##* }" = "$3" ] || fail "$2: trn_fp_check found ${got##* }, expected $3"
}

# A name such as TRN_VERSION stands twice in base/base.h: as text and as three numbers.
checked
numbers=$(awk '/^#define TRN_VERSION_(MAJOR|MINOR|PATCH) /{ printf "%s%s", dot, $3; dot = "." }' \
    "$root/trnmath/base/base.h")
[ "$numbers" = "$version" ] || fail "base/base.h: TRN_VERSION is \"$version\" but its three numbers say $numbers"

# ---- install, and move the tree, so that nothing may depend on where it was put ----

# What the libraries compute, split.sh asks of the tests' own build; level 1 compiles these quickly, and their users by
# the same compiler, whose OpenMP they link.
launcher=
if [ "$level" -lt 2 ]; then
    CC=$(quick_compiler)
    CXX=$(cxx_of "$CC")
    export CC CXX
    launcher=$scratch/quickly
    printf '#!/bin/sh\nexec "$@" -O0 -DTRN_NO_INTRINSICS=1\n' >"$launcher"
    chmod +x "$launcher"
fi
cc=${CC:-cc}
step 'cmake cannot configure trnmath/' \
    cmake -S "$root/trnmath" -B "$scratch/build" -DCMAKE_INSTALL_PREFIX="$scratch/first" \
    -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" || finish
step 'libtrnmath does not build' cmake --build "$scratch/build" || finish
step 'cmake --install fails' cmake --install "$scratch/build" || finish
mv "$scratch/first" "$scratch/prefix"
{
    headers
    (cd "$root/trnmath" && ls forward/trnmath/*.h) # old names, for one release
} | sort >"$scratch/want"
(cd "$scratch/prefix/include/trnmath" && find . -type f | sed 's,^\./,,' | sort) >"$scratch/got"
checked
comm -23 "$scratch/want" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'cmake --install: does not install %s'
comm -13 "$scratch/want" "$scratch/got" >"$scratch/list"
fail_each "$scratch/list" 'cmake --install: installs %s, which is no header of trnmath/'

checked
cmp -s "$root/LICENSE" "$scratch/prefix/share/licenses/trnmath/LICENSE" || fail 'cmake --install: installs no LICENSE'

# ---- the libraries: what split.sh asks of them, and programs that link them ----

step 'libtrnmath.a, libtrnmath.so: split.sh' \
    env TRN_LINKER="$cc" \
    sh "$root/tests/house/split.sh" "$scratch/prefix/lib/libtrnmath.a" "$scratch/prefix/lib/libtrnmath.so"
cat >"$scratch/linked.c" <<'END'
#include <stdio.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_tensor_cost.h> // an old name
#if !defined(TRN_SPLIT)
#error "the package does not say TRN_SPLIT"
#endif
int main(void)
{
    static float a[4] = { 1, 2, 3, 4 }, b[4] = { 5, 6, 7, 8 }, c[4];
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, c, 2, 2);
    args.a = trn_tensor_2d(TRN_F32, a, 2, 2);
    args.b = trn_tensor_2d(TRN_F32, b, 2, 2);
    printf("%s %02x\n", TRN_VERSION, trn_fp_check() & ~8u);
    return trn_matmul(&args) || c[3] != 50;
}
END
mkdir "$scratch/linked"
cat >"$scratch/linked/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C CXX)
find_package(trnmath $version REQUIRED)
set_source_files_properties("$scratch/linked.cc" PROPERTIES LANGUAGE CXX)
add_executable(static_c ../linked.c)
target_link_libraries(static_c PRIVATE trnmath::static)
add_executable(shared_c ../linked.c)
target_link_libraries(shared_c PRIVATE trnmath::shared)
target_compile_options(shared_c PRIVATE -Ofast)
add_executable(shared_cxx ../linked.cc)
target_link_libraries(shared_cxx PRIVATE trnmath::shared)
END
cp "$scratch/linked.c" "$scratch/linked.cc"
if step 'trnmath::static, trnmath::shared: cmake fails' \
    cmake -S "$scratch/linked" -B "$scratch/linked/b" -DCMAKE_PREFIX_PATH="$scratch/prefix" &&
    step 'trnmath::static, trnmath::shared: the programs do not build' cmake --build "$scratch/linked/b"; then
    runs "$scratch/linked/b/static_c" trnmath::static 00
    runs "$scratch/linked/b/shared_cxx" 'trnmath::shared, C++' 00
    runs "$scratch/linked/b/shared_c" 'trnmath::shared, -Ofast'
fi
if have pkg-config; then
    # shellcheck disable=SC2046
    step 'libtrnmath.pc: the program does not build' "$cc" -O2 "$scratch/linked.c" -o "$scratch/linked_c" \
        $(PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig" pkg-config --cflags --libs libtrnmath) \
        -Wl,-rpath,"$scratch/prefix/lib" && runs "$scratch/linked_c" 'pkg-config libtrnmath' 00
fi

# ---- find_package ----

# What is built below shows that it is found and links: level 1 leaves out what takes half of the time to compile.
if [ "$level" -lt 2 ]; then
    CFLAGS=-DTRN_NO_INTRINSICS=1
    export CFLAGS
fi

mkdir "$scratch/found"
fma_flag=
expected=
if [ "$(uname -m)" = x86_64 ] && has_fma; then fma_flag=-march=haswell expected=00; fi
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
    [ "$got" = "$version" ] || fail "trnmath.pc: says version '$got', base/base.h says $version"
    # shellcheck disable=SC2046
    if step 'pkg-config: the C program does not build' \
        "$cc" -O2 ${CFLAGS:-} "$scratch/app.c" -o "$scratch/app_c" $(pkg-config --cflags --libs trnmath); then
        runs "$scratch/app_c" pkg-config
    fi
    # shellcheck disable=SC2046
    if have "${CXX:-c++}" && step 'pkg-config: the C++ program does not build' \
        "${CXX:-c++}" -std=c++17 -O2 ${CFLAGS:-} -x c++ "$scratch/app.c" -x none -o "$scratch/app_cxx" \
        $(pkg-config --cflags --libs trnmath); then
        runs "$scratch/app_cxx" 'pkg-config, C++17'
    fi
    unset PKG_CONFIG_PATH
else
    skip pkg-config 'pkg-config is not installed'
fi

# ---- SLEEF: find_package(trnmath COMPONENTS sleef), add_subdirectory, pkg-config ----

example=$root/examples/ideal_activation.c
quick="$(quick_compiler) -O0 -DTRN_NO_INTRINSICS=1 -I$scratch/prefix/include" # quick to compile

# ideal PROGRAM TEXT: it has a column of SLEEF's numbers, the same in every way.
ideal() {
    checked
    "$1" >"$scratch/log" || fail "$2: ideal_activation exits with $?"
    grep -q '^exp  *2  *7\.388973  *7\.389056 ' "$scratch/log" ||
        fail_log "$scratch/log" "$2: no ideal exp(2) beside the table's"
    [ -f "$scratch/ideal" ] || cp "$scratch/log" "$scratch/ideal"
    cmp -s "$scratch/log" "$scratch/ideal" || fail_log "$scratch/log" "$2: other numbers than before"
}

mkdir "$scratch/sleef"
cat >"$scratch/sleef/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(sleef_user LANGUAGES C)
if(SOURCES)
    set(TRNMATH_SLEEF ON)
    add_subdirectory("\${SOURCES}" trnmath)
else()
    find_package(trnmath REQUIRED COMPONENTS \${COMPONENT})
endif()
add_executable(app "$example")
target_link_libraries(app PRIVATE trnmath::sleef)
END
# refused COMPONENT OPTION TEXT WORDS: cmake fails, and says WORDS.
refused() {
    checked
    if cmake -S "$scratch/sleef" -B "$scratch/sleef/no" -DCOMPONENT="$1" "$2" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
        >"$scratch/log" 2>&1 || ! grep -q "$4" "$scratch/log"; then
        fail_log "$scratch/log" "$3: cmake does not fail with '$4'"
    fi
    rm -rf "$scratch/sleef/no"
}
refused sleef -DTRNMATH_SLEEF_INCLUDE= 'the component without SLEEF' libsleef-dev
refused nothing -DX=1 'a component that does not exist' "has no component 'nothing'"

# shellcheck disable=SC2086
if step 'the example without SLEEF does not build' \
    $quick "$example" -o "$scratch/engine_only" -lm; then
    checked
    "$scratch/engine_only" >"$scratch/log" || fail "ideal_activation without SLEEF exits with $?"
    grep -q 'link with -lsleef' "$scratch/log" ||
        fail_log "$scratch/log" 'the example does not explain itself without SLEEF'
fi

if echo '#include <sleef.h>' | "$cc" -E - >/dev/null 2>&1; then
    for way in -DCOMPONENT=sleef "-DSOURCES=$root/trnmath"; do
        case $level$way in 1-DSOURCES*) continue ;; esac # the same file is read
        rm -rf "$scratch/sleef/b"
        step "SLEEF, $way: cmake fails" \
            cmake -S "$scratch/sleef" -B "$scratch/sleef/b" "$way" \
                -DCMAKE_PREFIX_PATH="$scratch/prefix" &&
            step "SLEEF, $way: the example does not build" cmake --build "$scratch/sleef/b" &&
            ideal "$scratch/sleef/b/app" "SLEEF, $way"
    done
    # shellcheck disable=SC2046
    if have pkg-config && pkg-config --exists sleef && step 'pkg-config trnmath-sleef: the example does not build' env \
        "$cc" -O0 ${CFLAGS:-} "$example" -o "$scratch/ideal_pc" \
        $(PKG_CONFIG_PATH=$scratch/prefix/share/pkgconfig pkg-config --cflags --libs trnmath-sleef); then
        ideal "$scratch/ideal_pc" 'pkg-config trnmath-sleef'
    fi
else
    skip sleef 'sleef.h is not installed'
fi

# ---- OpenMP: one flag, the same bits ----

cat >"$scratch/threads.c" <<'END'
#include <trnmath/trn_matmul.h>
int main(void)
{
    static float a[96 * 300], b[300 * 64], c[96 * 64];
    uint64_t hash = 0xcbf29ce484222325u;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    for (int i = 0; i < 96 * 300; i++) a[i] = (float)(i * 7919 % 2003 - 1001) * 0x1p-7f;
    for (int i = 0; i < 300 * 64; i++) b[i] = (float)(i * 6101 % 1999 - 999) * 0x1p-13f;
    args.a = trn_tensor_2d(TRN_F32, a, 96, 300);
    args.b = trn_tensor_2d(TRN_F32, b, 300, 64);
    args.dst = trn_tensor_2d(TRN_F32, c, 96, 64);
    if (trn_matmul(&args)) return 1;
    for (size_t i = 0; i < sizeof c; i++) hash = (hash ^ ((unsigned char *)c)[i]) * 0x100000001b3u;
#if defined(_OPENMP)
    if (omp_get_max_threads() != 3) return 2;
#endif
    return printf("%016llx\n", (unsigned long long)hash) < 0;
}
END
# shellcheck disable=SC2086
if step 'a product without OpenMP does not build' \
    $quick "$scratch/threads.c" -o "$scratch/one" -lm &&
    step 'a product with -fopenmp does not build' \
        $quick -fopenmp "$scratch/threads.c" -o "$scratch/three" -lm; then
    checked
    one=$("$scratch/one") || fail "the product without OpenMP exits with $?"
    three=$(OMP_NUM_THREADS=3 "$scratch/three") || fail "the product with -fopenmp exits with $?"
    [ "$one" = "$three" ] || fail "-fopenmp changes the bits: $one and, with 3 threads, $three"
fi

finish
