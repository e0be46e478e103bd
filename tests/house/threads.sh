#!/bin/sh
# No two calls disturb each other: every door from several threads at once, the first calls of the process among them,
# under ThreadSanitizer. (Without OpenMP, whose library the sanitizer does not see into.)
. "$(dirname -- "$0")/lib.sh"
require_compilers

# quiet COMPILER "FLAGS" ISA: no report, and no thread gets other bits than the others.
quiet() {
    checked
    # shellcheck disable=SC2086
    if ! $1 -std=gnu11 $optimise -g1 -fsanitize=thread $2 -I"$root" "$root/tests/house/threads.c" \
        -o "$scratch/threads" -lm -lpthread 2>"$scratch/log"; then
        fail_log "$scratch/log" "threads.c does not build: $1 $2"
    elif ! TRN_ISA=$3 "$scratch/threads" >"$scratch/log" 2>&1 || grep -q 'WARNING: ThreadSanitizer' "$scratch/log"; then
        fail_log "$scratch/log" "calls from several threads: $1 $2, TRN_ISA=$3"
    fi
}

# The sanitizer is slow: level 1 asks one compiler, clang if it is here, which takes a third of gcc's time, and does not
# optimise, which takes clang 53 seconds and saves 22.
[ "$level" -ge 2 ] && optimise=-O1 || optimise=-O0
for compiler in $(compilers | sort); do
    quiet "$compiler" '' ''
    [ "$level" -ge 2 ] || break
    quiet "$compiler" -DTRN_NO_INTRINSICS=1 portable
done
finish
