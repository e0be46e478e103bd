/* arms.c - what is compared: one row an arm.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <string.h>

#define SAME { TRN_FORMAT_UNSET, TRN_NEAREST_EVEN }
#define E4M3(rounding) { TRN_F8_E4M3, rounding }
#define E5M2(rounding) { TRN_F8_E5M2, rounding }

/* The FP8 arms differ in the rounding of their casts alone: their weights are those of bf16-sr, which do not stall. */
const sr_arm sr_arms[SR_ARMS] = {
    { "f32", TRN_F32, TRN_NEAREST_EVEN, false, SAME, SAME, 2, "binary32 weights" },
    { "bf16-rne", TRN_BF16, TRN_NEAREST_EVEN, false, SAME, SAME, 3, "bfloat16 weights, updates to nearest even" },
    { "bf16-sr", TRN_BF16, TRN_STOCHASTIC, false, SAME, SAME, 0, "bfloat16 weights, updates rounded stochastically" },
    { "bf16-kahan", TRN_BF16, TRN_NEAREST_EVEN, true, SAME, SAME, 1,
      "bfloat16 weights and what rounding took, also bfloat16" },
    { "fp8-rne", TRN_BF16, TRN_STOCHASTIC, false, E4M3(TRN_NEAREST_EVEN), E5M2(TRN_NEAREST_EVEN), 4,
      "bf16-sr; linear layers multiply E4M3, backward E5M2, cast to nearest even" },
    { "fp8-sr", TRN_BF16, TRN_STOCHASTIC, false, E4M3(TRN_STOCHASTIC), E5M2(TRN_STOCHASTIC), 5,
      "fp8-rne, cast stochastically" },
};

const sr_arm *sr_find_arm(const char *name)
{
    for (int i = 0; i < SR_ARMS; i++)
        if (strcmp(sr_arms[i].name, name) == 0) return &sr_arms[i];
    return NULL;
}

int sr_place_of(const sr_settings *s, const sr_arm *arm)
{
    for (int i = 0; i < s->arms; i++)
        if (s->arm[i] == arm) return i;
    return -1;
}
