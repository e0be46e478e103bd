#!/bin/sh
# What an include costs: with TRN_NO_INTRINSICS and without, a file that only includes trnmath.h beside one that only
# includes <math.h>. Times are reported and never judged, because milliseconds are a property of the machine: level 2
# takes them, minima of several interleaved runs. The bytes of the object of a product are the same everywhere, and
# held: level 1 asks gcc, level 2 clang, too.
. "$(dirname -- "$0")/lib.sh"
require_compilers

runs=21
timed= held=$(compilers | tail -n 1)
! have gcc || held=gcc
[ "$level" -lt 2 ] || timed=$(compilers) held=$timed
"${CC:-gcc}" -O2 "$root/tests/house/stopwatch.c" -o "$scratch/stopwatch" || exit 1
echo '#include <math.h>' >"$scratch/math.c"
printf '#define TRN_NO_INTRINSICS 1\n#include <trnmath/trnmath.h>\n' >"$scratch/ours.c"
echo '#include <trnmath/trnmath.h>' >"$scratch/intrinsics.c"

for compiler in $timed; do
    checked
    if ! "$scratch/stopwatch" $runs \
        -- "$compiler" -O2 -c "$scratch/math.c" -o "$scratch/math.o" \
        -- "$compiler" -O2 -I"$root" -c "$scratch/ours.c" -o "$scratch/ours.o" >"$scratch/times" 2>"$scratch/log"; then
        fail_log "$scratch/log" "trnmath.h: $compiler -O2 cannot compile a file that includes only it"
        continue
    fi
    # The difference of the fastest runs, by the clock and by processor time; a neighbour can only make either larger.
    awk -v compiler="$compiler" -v runs=$runs '
        { wall[NR] = $1; median[NR] = $2; cpu[NR] = $3 }
        END {
            more = wall[2] - wall[1]
            if (cpu[2] - cpu[1] < more) more = cpu[2] - cpu[1]
            printf "%s: <math.h> %.0f ms (median %.0f), trnmath.h without intrinsics %.0f ms (median %.0f), " \
                "processor time %.0f and %.0f ms: %.0f ms more, minimum of %d run(s)\n",
                compiler, wall[1], median[1], wall[2], median[2], cpu[1], cpu[2], more, runs }' "$scratch/times"
    "$scratch/stopwatch" $(((runs + 6) / 7)) -- "$compiler" -O2 -I"$root" -c "$scratch/intrinsics.c" \
        -o "$scratch/intrinsics.o" 2>/dev/null |
        awk -v compiler="$compiler" '{
            printf "%s: trnmath.h with intrinsics %.0f ms (for the record)\n", compiler, $1 }'
done

# What no machine decides: the bytes of an object that holds all that a product may need. (Kernels are for x86-64 here.)
limit_bytes=243000
if [ "$(uname -m)" = x86_64 ]; then
    for compiler in $held; do
        step "$compiler -O2 cannot compile the program that multiplies" \
            "$compiler" -O2 -I"$root" -c "$root/bench/speed/compile/matmul.c" -o "$scratch/matmul.o" || continue
        checked
        bytes=$(size "$scratch/matmul.o" | awk 'NR == 2 { print $1 + $2 }')
        printf "%s: a program that calls trn_matmul: %d bytes, at most %d\n" "$compiler" "$bytes" $limit_bytes
        [ "$bytes" -le $limit_bytes ] || fail "$compiler -O2: that is more than $limit_bytes bytes"
        # What makes few orders fast is not in it; where numerics are read from text it is.
        ! nm "$scratch/matmul.o" | grep -q trni_safe_tile ||
            fail "$compiler -O2: a program that never reads numerics from text has kernels for orders that it has not"
    done
    {
        printf '#include <trnmath/trn_matmul.h>\nint main(int count, char **word)\n{\n    trn_numerics n;\n'
        printf '    const trn_matmul_args args = { .numerics = &n };\n'
        printf '    return count > 1 && trn_numerics_parse(&n, word[1]) == TRN_OK && trn_matmul(&args) == TRN_OK;\n}\n'
    } >"$scratch/text.c"
    checked
    step "a program that reads numerics and multiplies does not compile" \
        "$(quick_compiler)" -O0 -DTRN_NO_INTRINSICS=1 -I"$root" -c "$scratch/text.c" -o "$scratch/text.o" &&
        { nm "$scratch/text.o" | grep -q trni_safe_tile ||
            fail 'a program that reads numerics from text has no kernels for the orders that it may name'; }
fi
finish
