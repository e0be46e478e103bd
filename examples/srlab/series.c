/* series.c - two sums that rounding stops: 1024 + 0.5 + 0.5 + ..., and the harmonic series.
 * SPDX-License-Identifier: MIT
 */
#include "sums.h"

#include <math.h>

static float rounded(trn_format format, float x, trn_rounding rounding, uint32_t random)
{
    return trn_decode(format, trn_encode(format, x, rounding, TRN_OVERFLOW_DEFAULT, random));
}

double sr_half_loop(trn_format format, trn_rounding rounding, uint64_t seed, double *trace)
{
    float sum = 1024;
    for (int i = 0; i < SR_ADDITIONS; i++) {
        if (trace && i % 16 == 0) trace[i / 16] = (double)sum;
        sum = rounded(format, sum + 0.5f, rounding,
                      rounding == TRN_STOCHASTIC ? trn_random_u32(seed, 0, (uint64_t)i) : 0);
    }
    if (trace) trace[SR_ADDITIONS / 16] = (double)sum;
    return (double)sum;
}

sr_moments sr_half_loops(trn_format format, uint64_t seed, int runs)
{
    sr_moments m = { 0, 0, INFINITY, -INFINITY, runs };
    double square = 0;
    for (int i = 0; i < runs; i++) {
        const double x = sr_half_loop(format, TRN_STOCHASTIC, seed + (uint64_t)i, NULL);
        m.mean += x;
        square += (x - 2048) * (x - 2048);
        m.low = x < m.low ? x : m.low;
        m.high = x > m.high ? x : m.high;
    }
    m.mean /= runs;
    const double off = m.mean - 2048;
    m.deviation = sqrt(square / runs - off * off);
    return m;
}

static void add_point(sr_series *s, double n, double sum)
{
    if (s->points == SR_SERIES || (s->points && n < 1.04 * s->n[s->points - 1])) return;
    s->n[s->points] = n;
    s->sum[s->points++] = sum;
}

void sr_harmonic(trn_format format, sr_series *s)
{
    float sum = 0, next = 0;
    s->points = 0;
    for (s->term = 1;; s->term++, sum = next) {
        next = rounded(format, sum + rounded(format, 1 / (float)s->term, TRN_NEAREST_EVEN, 0), TRN_NEAREST_EVEN, 0);
        if (next == sum) break;
        add_point(s, (double)s->term, (double)next);
    }
    s->value = (double)sum;
}
