/* safe/join.c - two numbers that are one sum, rounded once: at ties, and a little beside them on either side.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: sums of products hardly ever lie so close to a tie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "trnmath/trn_matmul.h"
#include "unit/safe/groups.h"

/* (1 + ulps 2^-23 + half 2^-24) 2^e, and a little more or less, of so many binades below; what it is rounded to. */
static void sums_beside_a_tie_go_to_the_side_they_are_on(void **state)
{
    (void)state;
    static const int below[] = { 30, 52, 53, 54, 55, 60, 80 };
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
        if (!trn_isa_supported((trn_isa)isa) || trni_is_unit((trn_isa)isa)) continue;
        for (int sign = -1; sign <= 1; sign += 2)
            for (int e = -60; e <= 60; e += 17)
                for (int ulps = 0; ulps < 4; ulps++)
                    for (int half = 0; half < 2; half++)
                        for (size_t b = 0; b < sizeof below / sizeof below[0]; b++)
                            for (int side = -1; side <= 1; side++) {
                                double high[64], low[64];
                                float sum[64];
                                const double there = 1 + ulps * 0x1p-23 + half * 0x1p-24;
                                const int up = half && (side ? side > 0 : ulps % 2);
                                const double expected = sign * ldexp(1 + (ulps + up) * 0x1p-23, e);
                                for (int i = 0; i < 64; i++) {
                                    high[i] = sign * ldexp(there, e);
                                    low[i] = side * sign * ldexp(1, e - below[b]);
                                }
                                trni_safe_join_for((trn_isa)isa)(sum, high, low, 64);
                                for (int i = 0; i < 64; i++)
                                    if ((double)sum[i] != expected)
                                        fail_msg("isa %s: %a + %a is %a, not %a", trn_isa_text((trn_isa)isa), high[i],
                                                 low[i], (double)sum[i], expected);
                            }
    }
}

int safe_join(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_beside_a_tie_go_to_the_side_they_are_on) };
    return cmocka_run_group_tests_name("tame_join", tests, NULL, NULL);
}
