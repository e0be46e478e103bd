/* tally.c - counts of codes, and every error that follows from them.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <math.h>
#include <string.h>

static const double large = 0x1p-5; /* from here on, halving a code loses nothing */

/* ---- counting ---- */

enum { LANES = 8 };

typedef struct counts {
    uint32_t lane[LANES][FC_MAGNITUDES]; /* neighbouring elements count apart, so that no counter waits for itself */
} counts;

static void count_row(counts *c, const unsigned char *x, int64_t n)
{
#define ONE(k) c->lane[k][word >> (8 * (k)) & 255]++ /* written out: gcc -O2 leaves a loop, at half the speed */
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint64_t word;
        memcpy(&word, x + i, sizeof word);
        word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
        ONE(0), ONE(1), ONE(2), ONE(3), ONE(4), ONE(5), ONE(6), ONE(7);
    }
#undef ONE
    for (; i < n; i++) c->lane[0][x[i] & 127]++;
}

/* Adds what the lanes hold, and empties them: before any of 32 bits can overflow. */
static void collect(counts *c, uint64_t count[FC_MAGNITUDES])
{
    for (int i = 0; i < FC_MAGNITUDES; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < LANES; k++) sum += c->lane[k][i];
        count[i] += sum;
    }
    memset(c, 0, sizeof *c);
}

void fc_count(const unsigned char *codes, int64_t stride, int64_t rows, int64_t columns, uint64_t count[FC_MAGNITUDES])
{
    counts c;
    int64_t held = 0;
    memset(&c, 0, sizeof c);
    memset(count, 0, FC_MAGNITUDES * sizeof *count);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t from = 0, n; from < columns; from += n, held += n) {
            n = columns - from < (INT64_C(1) << 30) ? columns - from : INT64_C(1) << 30;
            if (held + n > (INT64_C(1) << 31)) collect(&c, count), held = 0;
            count_row(&c, codes + r * stride + from, n);
        }
    collect(&c, count);
}

/* ---- errors ---- */

static void worse(double *worst, double relative)
{
    if (relative > *worst) *worst = relative;
}

static void tally_loss(fc_tally *t, double before, double after, double value, bool exact, double n)
{
    const double error = after - before, relative = before != 0 ? fabs(error / before) : error != 0 ? INFINITY : 0;
    const bool is_large = fabs(value) >= large;
    t->signal += n * before * before;
    t->noise += n * error * error;
    t->inexact += exact ? 0 : (int64_t)n;
    t->inexact_large += exact || !is_large ? 0 : (int64_t)n;
    worse(&t->worst, relative);
    if (is_large) worse(&t->worst_large, relative);
}

/* A product of a code and a binary32 scale has at most 28 bits: exact in a double. */
void fc_tally_codes(fc_tally *t, const fc_judge *j, const uint64_t count[FC_MAGNITUDES], const fc_table *table,
                    double in_scale, double out_scale)
{
    for (int code = 0; code < FC_MAGNITUDES; code++) {
        if (!count[code]) continue;
        const int64_t n = (int64_t)count[code];
        const double in = (double)j->in[code], out = (double)j->out[table->to[code]], other = (double)j->other[code];
        t->elements += n;
        if (!isfinite(in)) {
            t->was_not_finite += n;
            continue;
        }
        t->over_240 += fabs(in) > 240 ? n : 0;
        t->to_inf += isinf(other) ? n : 0;
        t->to_nan += isnan(other) ? n : 0;
        if (!isfinite(out) || !isfinite(out * out_scale)) {
            t->not_finite += n;
            continue;
        }
        const double before = in * in_scale, after = out * out_scale;
        const bool exact = j->factor.up ? out * j->factor.up == in * j->factor.down : after == before;
        tally_loss(t, before, after, in, exact, (double)n);
    }
}

void fc_tally_numbers(fc_tally *t, const float *x, const unsigned char *code, const float *value, float scale,
                      int64_t n)
{
    const double s = (double)scale;
    double signal = 0, noise = 0, worst = t->worst, worst_large = t->worst_large;
    t->elements += n;
    for (int64_t i = 0; i < n; i++) {
        const double before = (double)x[i], after = (double)value[code[i]] * s, error = after - before;
        if (!isfinite(before)) {
            t->was_not_finite++;
            continue;
        }
        if (!isfinite(after)) {
            t->not_finite++;
            continue;
        }
        const bool is_large = fabs(before) >= large * s;
        signal += before * before;
        noise += error * error;
        t->inexact += error != 0;
        t->inexact_large += is_large && error != 0;
        if (fabs(error) > worst * fabs(before)) worst = fabs(error / before);
        if (is_large && fabs(error) > worst_large * fabs(before)) worst_large = fabs(error / before);
    }
    t->signal += signal;
    t->noise += noise;
    t->worst = worst;
    t->worst_large = worst_large;
}

void fc_tally_add(fc_tally *sum, const fc_tally *part)
{
    sum->elements += part->elements;
    sum->over_240 += part->over_240;
    sum->to_inf += part->to_inf;
    sum->to_nan += part->to_nan;
    sum->was_not_finite += part->was_not_finite;
    sum->not_finite += part->not_finite;
    sum->inexact += part->inexact;
    sum->inexact_large += part->inexact_large;
    sum->signal += part->signal;
    sum->noise += part->noise;
    worse(&sum->worst, part->worst);
    worse(&sum->worst_large, part->worst_large);
}

double fc_sqnr_db(const fc_tally *t)
{
    if (t->noise == 0) return INFINITY;
    return 10 * log10(t->signal / t->noise);
}
