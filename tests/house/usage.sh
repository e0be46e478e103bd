#!/bin/sh
# The usage block in the opening comment of every door is a program: it compiles as C11 and exits with 0.
. "$(dirname -- "$0")/lib.sh"
require_compilers

# The indented lines after the SPDX line, from the first #include to the next line of plain text.
usage_block() {
    awk '
        /SPDX-License-Identifier/ { armed = 1; next }
        armed && !inside && /^ \*     #include/ { inside = 1 }
        inside && (/^ \* [^ ]/ || /\*\//) { exit }
        inside { sub(/^ \*(     )?/, ""); print }' "$1"
}

for header in $(doors); do
    available "$header" || continue
    checked
    usage_block "$root/trnmath/$header" >"$scratch/usage.c"
    if ! grep -q 'int main(' "$scratch/usage.c"; then
        fail "$header: no usage block (lines indented by five, with #include and main) follows its SPDX line"
        continue
    fi
    grep -q "#include <trnmath/$header>" "$scratch/usage.c" ||
        fail "$header: its usage block does not include <trnmath/$header>"
    for compiler in $(compilers); do
        # Level 1 asks the other compiler about the umbrella only: what differs between them are the headers.
        case $level$compiler$header in 1clangtrn_*) continue ;; esac
        # gcc as a user would call it (level 1: for the umbrella); else without optimising, for the time that saves.
        case $level$compiler$header in 1gcctrnmath.h | 2gcc*) optimise=-O2 ;; *) optimise=-O0 ;; esac
        flags="-std=c11 $optimise -Wall -Wextra -Werror"
        # shellcheck disable=SC2046,SC2086
        if ! "$compiler" $flags $(flags_of "$header") -I"$root" "$scratch/usage.c" -o "$scratch/usage" \
            -lm $(libraries_of "$header") 2>"$scratch/log"; then
            fail_log "$scratch/log" "$header: its usage block does not compile ($compiler $flags)"
            continue
        fi
        (cd "$scratch" && ./usage) >"$scratch/log" 2>&1 </dev/null
        status=$?
        [ $status -eq 0 ] || fail_log "$scratch/log" "$header: its usage block exits with $status ($compiler)"
    done
done
finish
