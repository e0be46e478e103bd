#!/bin/sh
# A field that no table lists does not compile: each structure that processes agree on (TRNI_COVERS) gets one more
# field, at its beginning, at its end and, where it has a bool, in the hole behind it; every compiler refuses it, as C11
# and as C++17. Without one more field, all compile.
. "$(dirname -- "$0")/lib.sh"
require_compilers

mkdir "$scratch/sound" "$scratch/wrong"
cp -R "$root/trnmath" "$scratch/sound/"
cp -R "$root/trnmath" "$scratch/wrong/"
echo '#include <trnmath/sharded/sharded_signature.h>' >"$scratch/file.c"

# compiles TREE COMPILER: as C11 and as C++17. (No table depends on intrinsics, which take half of the time.)
flags='-DTRN_NO_INTRINSICS=1 -fsyntax-only'
# Neither may stop after its first so many errors.
all_errors() { case $1 in clang) echo -ferror-limit=0 ;; *) echo -fmax-errors=0 ;; esac; }
# shellcheck disable=SC2046,SC2086
c11() { "$2" -std=c11 $flags $(all_errors "$2") -I"$scratch/$1" "$scratch/file.c" >"$scratch/log" 2>&1; }
# shellcheck disable=SC2046,SC2086
cxx17() {
    "$(cxx_of "$2")" -x c++ -std=c++17 $flags $(all_errors "$2") -I"$scratch/$1" "$scratch/file.c" >"$scratch/log" 2>&1
}

for compiler in $(compilers); do
    checked
    c11 sound "$compiler" || fail_log "$scratch/log" "sharded_signature.h does not compile as C11 ($compiler)"
    cxx17 sound "$compiler" || fail_log "$scratch/log" "sharded_signature.h does not compile as C++17 ($compiler)"
done

# insert STRUCTURE PLACE: the header of the structure, with one more field.
insert() {
    awk -v name="$1" -v place="$2" '
        function more() { print "    bool one_more;"; done = 1 }
        $0 ~ "^typedef struct " name " [{]" { inside = 1 }
        inside && $0 ~ "^} " name ";" { if (place == "end") more(); inside = 0 }
        { print }
        inside && !done && (place == "begin" && /^typedef/ || place == "hole" && /^    bool /) { more() }
        END { exit !done }'
}

structures=$(cat "$root"/trnmath/*/*signature.h | sed -n 's/^TRNI_COVERS(\([a-z_]*\), .*/\1/p')

# refused LANGUAGE COMPILER: with one more field in each structure of $scratch/changed, the compiler complains of each
# structure's own table (the line of its TRNI_COVERS). One compilation for all of them: no table asks how large another
# structure ought to be.
refused() {
    ! "$1" wrong "$2" || fail "with one more field ($place) in all structures it compiles ($2, $1)"
    while read -r structure; do
        [ "$1" != c11 ] || checked
        at=$(cd "$root/trnmath" && grep -n "^TRNI_COVERS($structure, " ./*/*signature.h |
            sed 's,^\./\([^:]*:[0-9]*:\).*,\1,')
        grep -qF "$at" "$scratch/log" || fail "$structure takes one more field ($place) as $1 ($2)"
    done <"$scratch/changed"
}

for place in begin end hole; do
    : >"$scratch/changed"
    for structure in $structures; do
        header=$(cd "$root/trnmath" && grep -l "^typedef struct $structure {" ./*.h ./*/*.h)
        insert "$structure" $place <"$scratch/wrong/trnmath/$header" >"$scratch/header" || [ $place = hole ] || {
            checked
            fail "no place for one more field was found in $structure of $header"
        }
        cmp -s "$scratch/wrong/trnmath/$header" "$scratch/header" || echo "$structure" >>"$scratch/changed"
        cp "$scratch/header" "$scratch/wrong/trnmath/$header"
    done
    for compiler in $(compilers); do
        refused c11 "$compiler"
        [ "$level" -lt 2 ] || refused cxx17 "$compiler"
    done
    cp -R "$root/trnmath" "$scratch/wrong"
done
[ "$(echo "$structures" | wc -l)" -ge 10 ] || fail "only these structures have tables: $structures"
finish
