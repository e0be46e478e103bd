#!/bin/sh
# Our names only, macros: what `cc -dM -E` shows after including a header, beyond what the C library headers bring,
# starts with TRN_ or TRNI_; and nothing that was defined before has changed. Level 1: every header with one compiler,
# the umbrella with all.
. "$(dirname -- "$0")/lib.sh"
require_compilers

# Every foreign header that ours include goes first, so that only our own macros remain in the difference.
foreign_includes >"$scratch/before.c"

# macros_of COMPILER FILE: the sorted list of its definitions, or false.
macros_of() {
    "$1" -std=c11 -I"$root" -dM -E "$scratch/$2.c" >"$scratch/$2.raw" 2>"$scratch/log" &&
        sort "$scratch/$2.raw" >"$scratch/$2"
}

names_only() { awk '{ sub(/\(.*/, "", $2); print $2 }'; }

first=$(compilers | awk '{ print $1; exit }')
for compiler in $(compilers); do
    macros_of "$compiler" before || fail_log "$scratch/log" "the C library's headers: $compiler cannot preprocess them"
    for header in $(headers); do
        available "$header" || continue
        case $header in base/words_*) continue ;; esac # they define nothing; foreign.sh asks what they put aside
        [ "$level" -ge 2 ] || [ "$compiler" = "$first" ] || [ "$header" = trnmath.h ] || continue
        cp "$scratch/before.c" "$scratch/after.c"
        echo "#include <trnmath/$header>" >>"$scratch/after.c"
        checked
        if ! macros_of "$compiler" after; then
            fail_log "$scratch/log" "$header: $compiler cannot preprocess it"
            continue
        fi
        comm -13 "$scratch/before" "$scratch/after" | names_only >"$scratch/new"
        comm -23 "$scratch/before" "$scratch/after" | names_only >"$scratch/changed"
        grep -v -E '^TRNI?_' "$scratch/new" | while read -r name; do
            origin=$(cd "$root/trnmath" && headers | xargs grep -l "define $name\\>" | head -n 1)
            echo "$name behind (defined in $origin)"
        done >"$scratch/leaked"
        fail_each "$scratch/leaked" "$header ($compiler): leaves the macro %s; ours start with TRN_ or TRNI_"
        fail_each "$scratch/changed" "$header ($compiler): changes or removes the macro %s of somebody else"
        grep -q '^TRN_BASE_H$' "$scratch/new" ||
            fail "$header ($compiler): TRN_BASE_H was not seen, so this check is blind"
    done
done
finish
