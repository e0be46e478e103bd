#!/bin/sh
# usage.sh [LIBRARY]: the usage block in the opening comment of every door is a program: it compiles as C11 and exits
# with 0. A part may have one, too, which includes the part's door. Level 1 links LIBRARY, and so shows that the
# declarations are enough for it; level 2 compiles the bodies into each program instead, with both compilers, as a user
# would.
. "$(dirname -- "$0")/lib.sh"
require_compilers

library=${1:-}
[ "$level" -lt 2 ] || library=

# try COMPILER FLAGS HEADER [LIBRARY]
try() {
    # shellcheck disable=SC2046,SC2086
    if ! "$1" -std=c11 $2 -Wall -Wextra -Werror $(flags_of "$3") -I"$root" "$scratch/usage.c" ${4:-} \
        -o "$scratch/usage" \
        ${4:+-fopenmp} -lm $(libraries_of "$3") 2>"$scratch/log"; then
        fail_log "$scratch/log" "$3: its usage block does not compile ($1 -std=c11 $2 -Wall -Wextra -Werror)"
        return
    fi
    (cd "$scratch" && ./usage) >"$scratch/log" 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] || fail_log "$scratch/log" "$3: its usage block exits with $status ($1)"
}

{
    doors | sed 's/.*/& &/'
    parts_and_doors
} >"$scratch/headers"
while read -r header door; do
    available "$header" || continue
    checked
    usage_block "$root/trnmath/$header" >"$scratch/usage.c"
    [ "$header" = "$door" ] || [ -s "$scratch/usage.c" ] || continue
    if ! grep -q 'int main(' "$scratch/usage.c"; then
        fail "$header: no usage block (lines indented by five, with #include and main) follows its SPDX line"
        continue
    fi
    grep -q "#include <trnmath/$door>" "$scratch/usage.c" ||
        fail "$header: its usage block does not include <trnmath/$door>"
    case $header in
    trn_mpi.h | mpi/*) # no library knows MPI
        if [ "$level" -ge 2 ]; then
            try gcc -O0 "$header"
        else
            try "$(quick_compiler)" '-O0 -DTRN_NO_INTRINSICS=1' "$header"
        fi
        ;;
    *)
        if [ -n "$library" ]; then
            try gcc '-O0 -DTRN_SPLIT' "$header" "$library"
        else
            for compiler in $(compilers); do
                case $level$compiler in 2gcc) optimise=-O2 ;; *) optimise=-O0 ;; esac
                try "$compiler" $optimise "$header"
            done
        fi
        ;;
    esac
done <"$scratch/headers"
finish
