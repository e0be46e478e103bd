/* sums.h - two sums that rounding stops.
 * SPDX-License-Identifier: MIT
 */
#ifndef SRLAB_SUMS_H
#define SRLAB_SUMS_H

#include "srlab.h"

enum { SR_ADDITIONS = 2048, SR_TRACE = 129, SR_SERIES = 512 };

/* 1024 + 0.5 + 0.5 + ..., each sum rounded. trace: NULL, or [SR_TRACE] sums, one every 16 additions. */
double sr_half_loop(trn_format format, trn_rounding rounding, uint64_t seed, double *trace);

typedef struct sr_series {
    double value;                         /* where it stands still */
    int64_t term;                         /* the first that changes nothing */
    int points;
    double n[SR_SERIES], sum[SR_SERIES];  /* on the way, at equal steps of log n */
} sr_series;

/* 1 + 1/2 + 1/3 + ..., terms and sums rounded to nearest even, until a term changes nothing. */
void sr_harmonic(trn_format format, sr_series *series);

typedef struct sr_moments {
    double mean, deviation, low, high;
    int runs;
} sr_moments;

sr_moments sr_half_loops(trn_format format, uint64_t seed, int runs);

#endif /* SRLAB_SUMS_H */
