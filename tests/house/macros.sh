#!/bin/sh
# Our names only, macros: what is defined when a header ends and was not when it began starts with TRN_ or TRNI_, and
# nothing that was defined before has changed. Each header is read once by each compiler, all in one file, and
# macros.awk follows what `cc -dD -E` shows of them; its table at the end is that of `cc -dM -E`.
. "$(dirname -- "$0")/lib.sh"
require_compilers

# Every foreign header that ours include goes first, so that only our own macros remain in the difference.
foreign_includes >"$scratch/all.c"
for header in $(headers); do
    available "$header" || continue
    case $header in base/words_*) continue ;; esac # they define nothing; foreign.sh asks what they put aside
    echo "$header" >>"$scratch/want"
    echo "#include <trnmath/$header>" >>"$scratch/all.c"
done

for compiler in $(compilers); do
    checks=$((checks + $(wc -l <"$scratch/want")))
    for show in -dD -dM; do
        "$compiler" -std=c11 -I"$root" $show -E "$scratch/all.c" >"$scratch/raw$show" 2>"$scratch/log" ||
            fail_log "$scratch/log" "$compiler cannot preprocess our headers"
    done
    awk -v ours="$root/trnmath/" -f "$root/tests/house/macros.awk" "$scratch/raw-dD" >"$scratch/told"
    sed -n 's/^seen //p' "$scratch/told" | sort -u | comm -23 "$scratch/want" - >"$scratch/list"
    fail_each "$scratch/list" "%s ($compiler): it was not seen, so this check is blind"
    grep '^new ' "$scratch/told" |
        awk '$3 !~ /^TRNI?_/ { print $2 " leaves the macro " $3 " behind (defined in " $4 ")" }' |
        sort -u >"$scratch/list"
    fail_each "$scratch/list" "%s ($compiler); ours start with TRN_ or TRNI_"
    grep '^changed ' "$scratch/told" | awk '$3 !~ /^TRNI?_/ { print $2 " changes or removes the macro " $3 }' |
        sort -u >"$scratch/list"
    fail_each "$scratch/list" "%s of somebody else ($compiler)"
    grep -q '^new trn_base.h TRN_BASE_H ' "$scratch/told" ||
        fail "$compiler: TRN_BASE_H was not seen, so this check is blind"

    # The compiler's own table, less what it defines before it reads anything, is the one that macros.awk arrived at.
    checked
    "$compiler" -std=c11 -dM -E -x c /dev/null | sort >"$scratch/own"
    { sed -n 's/^table //p' "$scratch/told" && cat "$scratch/own"; } | sort -u >"$scratch/got"
    sort -u "$scratch/raw-dM" | comm -3 - "$scratch/got" >"$scratch/list"
    fail_each "$scratch/list" "$compiler: macros.awk is wrong of %s"
done
finish
