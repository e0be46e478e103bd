#!/bin/sh
# Sources are as .clang-format has them. Releases of clang-format disagree, so one of them decides. Tables stay as they
# were typed, because it would give each of a row's cells a line:
#   *_rows.h, act_data.h         rows of trnmath, and of whoever names a file so
#   tests/published/{collectives,jobs,machines,models}.h
#                                figures as a page prints them: a row is a quotation, and is compared with its page
#   between off and on           a macro whose braces or rows it takes for statements, a table beside its code
. "$(dirname -- "$0")/lib.sh"

release=14
tables='_rows\.h$|/act_data\.h$|^tests/published/(collectives|jobs|machines|models)\.h$'
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
find trnmath bench tests examples -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp' | sort >"$scratch/all"
grep -vE "$tables" "$scratch/all" >"$scratch/sources"
checks=$(wc -l <"$scratch/sources")
# With a reason behind it this release takes the marker for any comment.
xargs grep -nE 'clang-format o(n|ff)' <"$scratch/sources" |
    grep -vE ':[0-9]+: *(/\* clang-format (on|off) \*/|// clang-format (on|off))$' | cut -d: -f1,2 >"$scratch/list"
fail_each "$scratch/list" "%s: a marker is /* clang-format off */ or on, and nothing else on its line"
# Batches of twenty: one process for all would do one after the other.
xargs -n 20 -P 2 "$formatter" --dry-run <"$scratch/sources" 2>&1 |
    sed -n 's/^\([^:]*\):\([0-9]*\):.*clang-format-violations.*/\1, line \2/p' | sort -u -t, -k1,1 >"$scratch/list"
fail_each "$scratch/list" "%s is not as clang-format $release would have it (clang-format -i FILE)"
finish
