#!/bin/sh
# split.sh LIBRARY...: declarations only (TRN_SPLIT), and bodies from each LIBRARY, a libtrnmath.a or .so. A program of
# three files, one of them -Ofast, one C++20, one for this very processor, gives the bits of include-and-go; a program
# that lacks the bodies, or has those of another version, does not link and says why; the library has all of the doors'
# functions and exports nothing else. Without LIBRARY, or at level 2, the bodies are compiled here, by
# TRN_IMPLEMENTATION.
. "$(dirname -- "$0")/lib.sh"
require_compilers

work=$root/tests/house/ways
native=-march=native
[ "$(uname -m)" = x86_64 ] || native=
openmp=-fopenmp
linker=${TRN_LINKER:-gcc} # whose OpenMP the libraries have

# The bodies of a program that links no library: one of its files has them.
bodies() {
    printf '#define TRN_SPLIT 1\n#define TRN_IMPLEMENTATION 1\n#include <trnmath/trnmath.h>\n' >"$scratch/bodies.c"
    step 'TRN_IMPLEMENTATION: the bodies do not compile' \
        gcc -std=c11 -O2 $openmp -I"$root" -c "$scratch/bodies.c" -o "$scratch/bodies.o"
}
if [ $# -eq 0 ]; then
    bodies || finish
    set -- "$scratch/bodies.o"
fi

# ---- one program of three files, each in its own way ----

cat >"$scratch/main.c" <<'END'
#include <inttypes.h>
#include <stdio.h>
uint64_t work_fast(const char **version);
uint64_t work_native(const char **version);
uint64_t work_cpp20(const char **version);
int main(void)
{
    const char *version;
    printf("%016" PRIx64 " %016" PRIx64 " %016" PRIx64 "\n", work_fast(&version), work_native(&version),
           work_cpp20(&version));
    return 0;
}
END
sed 's/^uint64_t WORK(/extern "C" uint64_t WORK(const char **version);\n&/' "$work/work.c" >"$scratch/work.cc"
cat >"$scratch/alone.c" <<'END'
#include <stdio.h>
#include <inttypes.h>
uint64_t alone(const char **v);
int main(void) { const char *v; printf("%016" PRIx64 "\n", alone(&v)); return 0; }
END
warnings='-Wall -Wextra -Werror'

# piece COMPILER FLAGS FILE NAME: one file of the program, with declarations only
piece() {
    # shellcheck disable=SC2086
    step "TRN_SPLIT: a file does not compile ($1 $2)" \
        $1 $2 -DTRN_SPLIT -DPRODUCT -DWORK=work_$4 $warnings -I"$root" -I"$work" -c "$3" -o "$scratch/$4.o"
}
optimise='-O0 -DTRN_NO_INTRINSICS=1' # half of what there is to compile
[ "$level" -lt 2 ] || optimise=-O2
# shellcheck disable=SC2086
step 'include-and-go: the file does not compile' \
    "$(quick_compiler)" -std=c11 $optimise -DPRODUCT -DWORK=alone -I"$root" -I"$work" "$scratch/alone.c" \
    "$work/work.c" -o "$scratch/alone" -lm || finish
expected=$("$scratch/alone")
for compiler in $(compilers); do
    piece "$compiler" '-std=gnu11 -Ofast' "$work/work.c" fast &&
        piece "$compiler" "-std=c11 -O2 $native" "$work/work.c" native &&
        piece "$(cxx_of "$compiler")" '-std=c++20 -O2' "$scratch/work.cc" cpp20 || continue
    # The driver of -Ofast would set FTZ at start-up; a program that mixes flags links without it.
    for library; do
        step "TRN_SPLIT: the program does not link ($compiler, ${library##*/})" \
            "$(cxx_of "$linker")" -x c "$scratch/main.c" -x none "$scratch/fast.o" "$scratch/native.o" \
            "$scratch/cpp20.o" "$library" -o "$scratch/program" $openmp -lm -Wl,-rpath,"$(dirname "$library")" ||
            continue
        checked
        got=$("$scratch/program")
        [ "$got" = "$expected $expected $expected" ] ||
            fail "TRN_SPLIT ($compiler, ${library##*/}): the files found $got, include-and-go found $expected"
    done
done
[ "${#expected}" -eq 16 ] || fail "include-and-go printed '$expected', so this check is blind"

if [ "$level" -ge 2 ] && [ "$1" != "$scratch/bodies.o" ] && bodies; then
    step 'TRN_IMPLEMENTATION: the program does not link' \
        gcc -DNAME "$scratch/main.c" "$scratch/fast.o" "$scratch/native.o" "$scratch/cpp20.o" \
        "$scratch/bodies.o" -o "$scratch/program" $openmp -lm -lstdc++ &&
        { [ "$("$scratch/program")" = "$expected $expected $expected" ] ||
            fail 'TRN_IMPLEMENTATION: other bits than include-and-go'; }
fi

# ---- what cannot work does not link, and says why ----

# unlinked TEXT WORD FILE...: these do not link, for want of WORD
unlinked() {
    text=$1 word=$2
    shift 2
    checked
    if "$linker" "$@" -o "$scratch/unlinked" $openmp -lm >"$scratch/log" 2>&1; then fail "$text: it links"
    elif ! grep -q "$word" "$scratch/log"; then fail_log "$scratch/log" "$text: the linker does not name $word"; fi
}
printf '#include <trnmath/trn_convert.h>\nint main(void) { return trn_version()[0] == 0; }\n' >"$scratch/user.c"
step 'a file with declarations only does not compile' \
    gcc -DTRN_SPLIT -I"$root" -c "$scratch/user.c" -o "$scratch/user.o"
version=$(version_of_headers | tr . _)
unlinked 'a program without the bodies' "trni_bodies_$version" "$scratch/user.o"
mkdir "$scratch/other"
cp -R "$root/trnmath" "$scratch/other/trnmath"
sed 's/^#define TRN_VERSION_PATCH .*/#define TRN_VERSION_PATCH 77/' "$root/trnmath/base/base.h" \
    >"$scratch/other/trnmath/base/base.h"
step 'headers of another version do not compile' \
    gcc -DTRN_SPLIT -I"$scratch/other" -c "$scratch/user.c" -o "$scratch/other.o"
for library; do
    unlinked "headers of another version than ${library##*/}" "trni_bodies_" "$scratch/other.o" "$library"
done

refused() { # FLAGS TEXT: ours is the error
    checked
    # shellcheck disable=SC2086
    if gcc $1 -I"$root" -fsyntax-only "$scratch/user.c" 2>"$scratch/log" ||
        ! grep -q "error.*trnmath: " "$scratch/log"; then
        fail_log "$scratch/log" "$2: it is not refused with a sentence"
    fi
}
refused -DTRN_IMPLEMENTATION 'TRN_IMPLEMENTATION without TRN_SPLIT'
refused '-Ofast' 'bodies under -Ofast'
refused '-Ofast -DTRN_SPLIT -DTRN_IMPLEMENTATION' 'TRN_IMPLEMENTATION under -Ofast'

# ---- names ----

checked
nm -g --defined-only "$scratch/fast.o" | awk '{ print $NF }' | grep '^trn' >"$scratch/list"
fail_each "$scratch/list" 'TRN_SPLIT: a user'"'"'s object exports %s'

echo '#include <trnmath/trnmath.h>' >"$scratch/all.c"
gcc -E -P -DTRN_SPLIT -I"$root" "$scratch/all.c" | tr '\n' ' ' |
    sed 's/__attribute__ *((visibility("default")))/\nAPI/g' |
    sed -n 's/^API[^;(]*[ *]\(trn_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$scratch/want"
for library; do
    case $library in *.so*) nm -D --defined-only "$library" ;; *) nm -g --defined-only "$library" ;; esac |
        awk 'NF > 2 && $2 !~ /[a-zC]/ { print $3 }' | grep -v '^\.gomp_critical_user_' | sort -u >"$scratch/got"
    comm -23 "$scratch/want" "$scratch/got" >"$scratch/list"
    checks=$((checks + $(wc -l <"$scratch/want")))
    fail_each "$scratch/list" "${library##*/} lacks %s, which a door declares"
    comm -13 "$scratch/want" "$scratch/got" | grep -v -x "trni_bodies_$version" >"$scratch/list"
    fail_each "$scratch/list" "${library##*/} exports %s, which no door declares"
done
[ "$(wc -l <"$scratch/want")" -gt 200 ] || fail "fewer than 200 declared functions were found, so this check is blind"
finish
