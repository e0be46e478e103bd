#!/bin/sh
# Sources are as .clang-format has them, but for tables: engine/act_data.h and the rows of machine/, where a row is a
# line. Releases of clang-format disagree, so one of them decides.
. "$(dirname -- "$0")/lib.sh"

release=14
formatter=
for candidate in clang-format-$release clang-format; do
    have "$candidate" || continue
    case $("$candidate" --version) in *" version $release."*) formatter=$candidate && break ;; esac
done
if [ -z "$formatter" ]; then
    checked
    skip clang-format "clang-format $release is not installed, so the look of the sources was not checked"
    finish
fi
cd "$root" || exit 1
find trnmath bench -name '*.h' -o -name '*.c' | grep -v -e '_rows\.h$' -e '/act_data\.h$' | sort >"$scratch/sources"
checks=$(wc -l <"$scratch/sources")
# Batches of twenty: one process for all would do one after the other.
xargs -n 20 -P 2 "$formatter" --dry-run <"$scratch/sources" 2>&1 |
    sed -n 's/^\([^:]*\):\([0-9]*\):.*clang-format-violations.*/\1, line \2/p' | sort -u -t, -k1,1 >"$scratch/list"
fail_each "$scratch/list" "%s is not as clang-format $release would have it (clang-format -i FILE)"
finish
