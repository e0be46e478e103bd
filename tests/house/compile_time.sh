#!/bin/sh
# With TRN_NO_INTRINSICS, a file that only includes trnmath.h, all 130 headers of it, compiles in at most 200 ms more than
# one that only includes <math.h>. The promise is gcc's, Debian's own compiler; clang takes a third longer for the same
# text and is held to 260. The figures are minima of several interleaved runs, so that a busy machine does not decide.
. "$(dirname -- "$0")/lib.sh"
require_compilers

runs=7
[ "$level" -lt 2 ] || runs=21
"${CC:-gcc}" -O2 "$root/tests/house/stopwatch.c" -o "$scratch/stopwatch" || exit 1
echo '#include <math.h>' >"$scratch/math.c"
printf '#define TRN_NO_INTRINSICS 1\n#include <trnmath/trnmath.h>\n' >"$scratch/ours.c"
echo '#include <trnmath/trnmath.h>' >"$scratch/guests.c"

for compiler in $(compilers); do
    checked
    case $compiler in clang*) limit_ms=260 ;; *) limit_ms=200 ;; esac
    if ! "$scratch/stopwatch" $runs \
        -- "$compiler" -O2 -c "$scratch/math.c" -o "$scratch/math.o" \
        -- "$compiler" -O2 -I"$root" -c "$scratch/ours.c" -o "$scratch/ours.o" >"$scratch/times" 2>"$scratch/log"; then
        fail_log "$scratch/log" "trnmath.h: $compiler -O2 cannot compile a file that includes only it"
        continue
    fi
    # The difference of the fastest runs, by the clock and by processor time; a neighbour can only make either larger.
    awk -v compiler="$compiler" -v limit=$limit_ms -v runs=$runs '
        { wall[NR] = $1; median[NR] = $2; cpu[NR] = $3 }
        END {
            more = wall[2] - wall[1]
            if (cpu[2] - cpu[1] < more) more = cpu[2] - cpu[1]
            printf "%s: <math.h> %.0f ms (median %.0f), trnmath.h without intrinsics %.0f ms (median %.0f), processor time %.0f and %.0f ms: %.0f ms more, limit %d, minimum of %d runs\n",
                compiler, wall[1], median[1], wall[2], median[2], cpu[1], cpu[2], more, limit, runs
            exit more > limit }' "$scratch/times" ||
        fail "trnmath.h: with TRN_NO_INTRINSICS it costs $compiler more than $limit_ms ms over <math.h>"
    "$scratch/stopwatch" 3 -- "$compiler" -O2 -I"$root" -c "$scratch/guests.c" -o "$scratch/guests.o" 2>/dev/null |
        awk -v compiler="$compiler" '{ printf "%s: trnmath.h with intrinsics %.0f ms (for the record)\n", compiler, $1 }'
done
finish
