/* sums.h - sums that stagnate, and what stochastic rounding makes of them.
 * SPDX-License-Identifier: MIT
 *
 * N. J. Higham's series on what numbers are, D. Malone in the Bulletin of the Irish Mathematical Society 71 (2013); the
 * page of the Neuron documentation on rounding modes.
 */
#ifndef PUBLISHED_SUMS_H
#define PUBLISHED_SUMS_H

#include <math.h>

#include "trnmath/trn_format.h"
#include "trnmath/trn_random.h"

/* ---- what rounding to nearest does to sums that stochastic rounding saves ---- */

static inline float sums_nearest(trn_format f, float x)
{
    return trn_decode(f, trn_encode(f, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
}

typedef struct harmonic_sum {
    trn_format format;
    uint32_t term; /* the first that changes nothing */
    double sum;
} harmonic_sum;

/* Higham's and Malone's figures; the narrow formats follow from the rule. */
static const harmonic_sum harmonic_known[] = {
    { TRN_BF16, 65, 5.0625 },     { TRN_F16, 513, 7.0859375 }, { TRN_F32, 2097152, 15.403683 },
    { TRN_TF32, 513, 7.0859375 }, { TRN_F8_E3M4, 16, 3.5 },    { TRN_F8_E4M3, 9, 3.0 },
    { TRN_F8_E4M3FN, 9, 3.0 },    { TRN_F8_E5M2, 5, 2.0 },
};
enum { HARMONIC_KNOWN = sizeof harmonic_known / sizeof harmonic_known[0] };

/* 1 + 1/2 + 1/3 + ... until a term changes nothing. */
static inline harmonic_sum harmonic_of(trn_format f, bool rounded_terms)
{
    harmonic_sum h = { f, 0, 0 };
    float sum = 0, before = -1;
    while (sum != before) {
        const float term = 1.0f / (float)++h.term;
        before = sum;
        sum = sums_nearest(f, sum + (rounded_terms ? sums_nearest(f, term) : term));
    }
    h.sum = (double)sum;
    return h;
}

/* ---- 1024 + 2048 times 0.5 ----
 *
 * AWS's sample for stochastic rounding. To nearest even an FP16 sum never leaves 1024; the exact sum is 2048; the
 * device's run with stochastic rounding printed 2056. Up to 2048 each step is a fair coin worth 1, from there a coin of
 * 1/4 that is worth 2, so the sum spreads by some 22.6 around 2048: 2056 is an everyday value. */

enum { HALVES = 2048 };

/* Step i takes word i of the seed. */
static inline float halves_of(trn_format f, trn_rounding rounding, uint64_t seed)
{
    static uint32_t word[HALVES];
    float s = 1024;
    trn_random_fields(word, HALVES, 32, seed, 0, 0, TRN_ISA_AUTO);
    for (int i = 0; i < HALVES; i++)
        s = trn_decode(f, trn_encode(f, s + 0.5f, rounding, TRN_OVERFLOW_DEFAULT, word[i]));
    return s;
}

typedef struct spread {
    double mean, deviation, least, most;
} spread;

static inline spread spread_of(const float *sum, int n)
{
    spread s = { 0, 0, (double)sum[0], (double)sum[0] };
    for (int i = 0; i < n; i++) {
        s.mean += (double)sum[i] / n;
        s.least = fmin(s.least, (double)sum[i]);
        s.most = fmax(s.most, (double)sum[i]);
    }
    for (int i = 0; i < n; i++) s.deviation += ((double)sum[i] - s.mean) * ((double)sum[i] - s.mean) / (n - 1);
    s.deviation = sqrt(s.deviation);
    return s;
}

#endif /* PUBLISHED_SUMS_H */
