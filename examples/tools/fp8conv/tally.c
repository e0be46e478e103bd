/* tally.c - counts of codes, and every error that follows from them.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <math.h>
#include <string.h>

static const double large = 0x1p-5; /* from here on, halving a code loses nothing */

/* ---- counting ---- */

enum { LANES = 8, SHORT = 1024, PACKED = 16384 };

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

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

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

/* Rows of a block lie far apart, at the same place of their pages: beside counters that change all the time, reading
 * them takes twice as long as moving them together first. Rows that were moved; their bytes are in `packed`. */
static int64_t pack(unsigned char packed[PACKED], const unsigned char *codes, int64_t stride, int64_t rows,
                    int64_t columns)
{
    int64_t r = 0;
    for (; r < rows && (r + 1) * columns <= PACKED; r++)
        memcpy(packed + r * columns, codes + r * stride, (size_t)columns);
    return r;
}

void fc_count(const unsigned char *codes, int64_t stride, int64_t rows, int64_t columns, uint64_t count[FC_MAGNITUDES])
{
    counts c;
    int64_t held = 0;
    unsigned char packed[PACKED];
    memset(&c, 0, sizeof c);
    memset(count, 0, FC_MAGNITUDES * sizeof *count);
    for (int64_t r = 0, taken; r < rows; r += taken) {
        const unsigned char *row = codes + r * stride;
        const bool short_row = columns < SHORT;
        taken = short_row ? pack(packed, row, stride, rows - r, columns) : 1;
        for (int64_t from = 0, n; from < taken * columns; from += n, held += n) {
            n = least(taken * columns - from, INT64_C(1) << 30);
            if (held + n > INT64_C(1) << 31) collect(&c, count), held = 0;
            count_row(&c, (short_row ? packed : row) + from, n);
        }
    }
    collect(&c, count);
}

/* ---- errors ---- */

static void worse(double *worst, double relative)
{
    if (relative > *worst) *worst = relative;
}

/* What counts the same under every scale: everything but the energies. A product of a code and a binary32 scale has at
 * most 28 bits: exact in a double. */
static void flush_code(fc_ledger *l, int code, int64_t n)
{
    fc_tally *const t = l->tally;
    const fc_judge *const j = l->judge;
    const double in = (double)j->in[code], out = (double)j->out[l->table->to[code]], other = (double)j->other[code];
    t->elements += n;
    if (!isfinite(in)) {
        t->was_not_finite += n;
        return;
    }
    t->over_240 += in > 240 ? n : 0;
    t->to_inf += isinf(other) ? n : 0;
    t->to_nan += isnan(other) ? n : 0;
    if (!isfinite(out)) {
        t->not_finite += n;
        return;
    }
    const double before = in * l->in_scale, after = out * l->out_scale, error = fabs(after - before);
    const double relative = before != 0 ? error / before : error != 0 ? INFINITY : 0;
    const bool exact = j->factor.up ? out * j->factor.up == in * j->factor.down : after == before;
    t->inexact += exact ? 0 : n;
    worse(&t->worst, relative);
    if (in < large) return;
    t->inexact_large += exact ? 0 : n;
    worse(&t->worst_large, relative);
}

void fc_ledger_flush(fc_ledger *l)
{
    for (int code = 0; code < FC_MAGNITUDES; code++)
        if (l->count[code]) flush_code(l, code, (int64_t)l->count[code]);
    memset(l->count, 0, sizeof l->count);
}

/* Squares of values and of errors, for scales in this proportion; what is not finite has neither. */
static void square(fc_ledger *l, double ratio)
{
    l->ratio = ratio;
    for (int code = 0; code < FC_MAGNITUDES; code++) {
        const double in = (double)l->judge->in[code], out = (double)l->judge->out[l->table->to[code]];
        const double error = out * ratio - in;
        const bool finite = isfinite(in) && isfinite(out);
        l->signal[code] = finite ? in * in : 0;
        l->noise[code] = finite ? error * error : 0;
    }
}

void fc_ledger_add(fc_ledger *l, const uint64_t count[FC_MAGNITUDES], const fc_table *table, double in_scale,
                   double out_scale)
{
    const double ratio = in_scale > 0 ? out_scale / in_scale : 0;
    if (!l->table || l->ratio != ratio) {
        if (l->table) fc_ledger_flush(l);
        l->table = table;
        l->in_scale = in_scale;
        l->out_scale = out_scale;
        square(l, ratio);
    }
    double signal = 0, noise = 0;
    for (int code = 0; code < FC_MAGNITUDES; code++) {
        l->count[code] += count[code];
        signal += (double)(int64_t)count[code] * l->signal[code];
        noise += (double)(int64_t)count[code] * l->noise[code];
    }
    l->tally->signal += signal * in_scale * in_scale;
    l->tally->noise += noise * in_scale * in_scale;
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

void fc_tally_pairs(fc_tally *t, const float *before, const float *after, int64_t n)
{
    t->elements += n;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)before[i], error = (double)after[i] - x;
        if (!isfinite(x)) {
            t->was_not_finite++;
        } else if (!isfinite(after[i])) {
            t->not_finite++;
        } else {
            t->signal += x * x;
            t->noise += error * error;
            t->inexact += error != 0;
            t->inexact_large += error != 0;
            if (error != 0) worse(&t->worst, x != 0 ? fabs(error / x) : INFINITY);
            worse(&t->worst_large, t->worst);
        }
    }
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
