/* activation.h - errors of the Scalar engine's functions as devices showed them, and the same sweeps here.
 * SPDX-License-Identifier: MIT
 *
 * Third parties' measurements: exp on Trainium2, every binary32 number in [-64, 0]; reciprocal on Trainium2, every one
 * in [1, 4]; exp(x + bias) on Trainium1, x in U(-85, 85), which includes the rounding of the sum. Link
 * bench/common/activation_error.c.
 */
#ifndef PUBLISHED_ACTIVATION_H
#define PUBLISHED_ACTIVATION_H

#include <math.h>

#include "bench/common/activation_error.h"
#include "twin/cases.h"

/* The largest relative error; every step-th number. The worst of all lies at the lower end of the bucket [-27, -26.75),
 * which is always swept whole. */
static inline double published_exp_error(uint32_t step)
{
    const activation_error all =
        activation_error_sweep(TRN_ACT_EXP, TRN_ACT_MATH_ENGINE, 0x80000000u, cases_bits_of(-64.0f), step);
    const activation_error worst =
        activation_error_sweep(TRN_ACT_EXP, TRN_ACT_MATH_ENGINE, cases_bits_of(-26.999f), cases_bits_of(-27.0f), 1);
    return fmax(all.max_relative, worst.max_relative);
}

static inline double published_reciprocal_error(uint32_t step)
{
    const uint32_t from = cases_bits_of(1.0f), to = cases_bits_of(4.0f);
    return activation_error_sweep(TRN_ACT_RECIPROCAL, TRN_ACT_MATH_ENGINE, from, to, step).max_relative;
}

/* NaN after a refusal. */
static inline double published_exp_bias_error(int draws)
{
    uint64_t rng = 502;
    double worst = 0;
    for (int i = 0; i < draws; i++) {
        float x = (float)(170 * ((double)cases_u32(&rng) / 4294967296.0) - 85), y;
        const float bias = (float)(2 * ((double)cases_u32(&rng) / 4294967296.0) - 1);
        trn_activation_args a;
        memset(&a, 0, sizeof a);
        a.src = trn_tensor_2d(TRN_F32, &x, 1, 1);
        a.dst = trn_tensor_2d(TRN_F32, &y, 1, 1);
        a.op = TRN_ACT_EXP;
        a.bias = bias;
        if (trn_activation(&a) != TRN_OK) return (double)NAN;
        const double exactly = exp((double)x + (double)bias), off = fabs((double)y - exactly) / exactly;
        if (exactly > 0x1p-120 && off > worst) worst = off;
    }
    return worst;
}

#endif /* PUBLISHED_ACTIVATION_H */
