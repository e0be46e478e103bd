/* bug_noise.c - rounding that can be shown, and hints where nothing fits: what B - A looks like.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one side is the other, rounded ---- */

/* Is y one of the two neighbours of x that have so many bits? */
static bool is_rounding(double x, double y, int bits, double least)
{
    if (x == y) return true;
    const double step = fmax(ldexp(1, ilogb(x != 0 ? x : 1) + 1 - bits), least);
    const double down = floor(x / step) * step, up = ceil(x / step) * step;
    return y == down || y == up;
}

static bool all_rounded(const bug_case *c, const double *x, const double *y, int bits)
{
    const double least = c->least > 0 ? ldexp(c->least, 1 - bits) : 0;
    for (int64_t i = 0; i < c->m * c->n; i++)
        if (!is_rounding(x[i], y[i], bits, least)) return false;
    return true;
}

void bug_rounded(bug_search *s)
{
    static const struct {
        int bits;
        const char *as;
    } formats[] = { { 24, "float32" },    { 11, "float16 or tfloat32" }, { 8, "bfloat16" },
                    { 5, "float8_e3m4" }, { 4, "float8_e4m3" },          { 3, "float8_e5m2" } };
    const bug_case *c = s->c;
    if (!c->before.differ || c->pair->sums.mismatches) return;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        for (int in_b = 1; in_b >= 0; in_b--) {
            if (!all_rounded(c, in_b ? c->a : c->b, in_b ? c->b : c->a, formats[i].bits)) continue;
            bug_finding *f = bug_add(s, 0, false);
            if (f)
                bug_say(f, "%s is %s rounded to %d bits (as %s has), each value to a neighbour", in_b ? "B" : "A",
                        in_b ? "A" : "B", formats[i].bits, formats[i].as);
            return;
        }
}

/* ---- the product of rounded operands ---- */

/* A and what rounding changes of the product: where A is none, B may be one, and be wrong. */
typedef struct bug_cast {
    const double *value, *plain;
    int64_t n;
} bug_cast;

static double predict_cast(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_cast *p = what;
    *size = bug_size(c, i, j);
    return c->a[i * c->n + j] + p->value[i * p->n + j] - p->plain[i * p->n + j];
}

static double scale_to(const float *x, int64_t n, double top)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, isfinite(x[i]) ? fabs((double)x[i]) : 0);
    return most > 0 ? top / most : 1;
}

static void round_scaled(trn_format format, trn_rounding rounding, double scale, const float *from, int64_t n,
                         float *to)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)((double)from[i] * scale);
    ud_round_values(format, rounding, TRN_OVERFLOW_DEFAULT, to, n);
    for (int64_t i = 0; i < n; i++) to[i] = (float)((double)to[i] / scale);
}

static void product_of(const bug_case *c, const float *a, const float *b, double *out)
{
    const ud_product *p = c->product;
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (double)a[c->row[i] * p->k + k] * (double)b[k * p->n + c->column[j]];
            out[i * c->n + j] = sum / c->unit;
        }
}

static void try_casts(bug_search *s, const bug_case *part, const double *plain, trn_format format, double top,
                      trn_rounding rounding)
{
    const ud_product *p = s->c->product;
    const int64_t na = p->m * p->k, nb = p->k * p->n;
    float *a = app_memory((size_t)na, sizeof *a), *b = app_memory((size_t)nb, sizeof *b);
    double *value = app_memory((size_t)(part->m * part->n), sizeof *value);
    const bug_case *keep = s->c;
    round_scaled(format, rounding, top > 0 ? scale_to(p->a, na, top) : 1, p->a, na, a);
    round_scaled(format, rounding, top > 0 ? scale_to(p->b, nb, top) : 1, p->b, nb, b);
    s->c = part;
    for (int which = 1; which < 4; which++) {
        product_of(part, which & 1 ? a : p->a, which & 2 ? b : p->b, value);
        const bug_cast what = { value, plain, part->n };
        bug_finding *f = bug_try(s, predict_cast, &what, 0, 0, 0);
        if (f)
            bug_say(f, "%s %s to %s%s",
                    which == 3   ? "both operands are"
                    : which == 1 ? "operand a is"
                                 : "operand b is",
                    rounding == TRN_TOWARD_ZERO ? "cut" : "rounded", trn_format_name(format),
                    top > 0 ? ", scaled to its largest number" : "");
    }
    s->c = keep;
    free(a);
    free(b);
    free(value);
}

/* One chain over K whose every sum is kept in a narrow format: large sums take no more small products. */
static void try_narrow_sums(bug_search *s, const bug_case *part, const double *plain, trn_format format)
{
    const ud_product *p = s->c->product;
    float *sum = app_memory((size_t)(part->m * part->n), sizeof *sum);
    double *value = app_memory((size_t)(part->m * part->n), sizeof *value);
    for (int64_t k = 0; k < p->k; k++) {
        for (int64_t i = 0; i < part->m * part->n; i++)
            sum[i] += p->a[part->row[i / part->n] * p->k + k] * p->b[k * p->n + part->column[i % part->n]];
        ud_round_values(format, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, sum, part->m * part->n);
    }
    for (int64_t i = 0; i < part->m * part->n; i++) value[i] = (double)sum[i] / part->unit;
    const bug_cast what = { value, plain, part->n };
    const bug_case *keep = s->c;
    s->c = part;
    bug_finding *f = bug_try(s, predict_cast, &what, 0, 0, 0);
    if (f) bug_say(f, "sums are kept in %s, one product after the other", trn_format_name(format));
    s->c = keep;
    free(sum);
    free(value);
}

void bug_casts(bug_search *s)
{
    enum { SIDE = 24 };
    static const struct {
        trn_format format;
        double top; /* what the largest number is scaled to; 0: as they are */
        trn_rounding rounding;
    } row[] = {
        { TRN_BF16, 0, TRN_NEAREST_EVEN },      { TRN_TF32, 0, TRN_NEAREST_EVEN },
        { TRN_F16, 0, TRN_NEAREST_EVEN },       { TRN_F8_E4M3, 0, TRN_NEAREST_EVEN },
        { TRN_F8_E4M3FN, 0, TRN_NEAREST_EVEN }, { TRN_F8_E5M2, 0, TRN_NEAREST_EVEN },
        { TRN_F8_E4M3, 240, TRN_NEAREST_EVEN }, { TRN_F8_E4M3FN, 448, TRN_NEAREST_EVEN },
        { TRN_BF16, 0, TRN_TOWARD_ZERO },       { TRN_TF32, 0, TRN_TOWARD_ZERO },
    };
    const bug_case *c = s->c;
    if (!c->product) return;
    const int64_t m = c->m < SIDE ? c->m : SIDE, n = c->n < SIDE ? c->n : SIDE;
    int64_t *rows = ud_spread(c->m, m), *columns = ud_spread(c->n, n);
    bug_case part;
    bug_case_part(c, rows, m, columns, n, &part);
    double *plain = app_memory((size_t)(m * n), sizeof *plain);
    product_of(&part, c->product->a, c->product->b, plain);
    const bool hidden = c->before.worst > 2 * part.before.worst + c->grain; /* something that the grid does not show */
    for (size_t i = 0; i < sizeof row / sizeof row[0] && !hidden; i++)
        try_casts(s, &part, plain, row[i].format, row[i].top, row[i].rounding);
    if (!hidden) {
        try_narrow_sums(s, &part, plain, TRN_BF16);
        try_narrow_sums(s, &part, plain, TRN_F16);
    }
    bug_case_close(&part);
    free(plain);
    free(rows);
    free(columns);
}

/* ---- hints ---- */

enum { RANKED = 96 };

/* The rank of B - A on a grid, by elimination with complete pivoting: -1 where it is full. */
static int64_t rank_of(const bug_case *c, int64_t *most)
{
    const int64_t m = c->m < RANKED ? c->m : RANKED, n = c->n < RANKED ? c->n : RANKED;
    int64_t *row = ud_spread(c->m, m), *column = ud_spread(c->n, n), rank = 0;
    double *d = app_memory((size_t)(m * n), sizeof *d), first = 0;
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t at = row[i / n] * c->n + column[i % n];
        d[i] = c->b[at] - c->a[at];
    }
    *most = m < n ? m : n;
    for (; rank < *most; rank++) {
        int64_t p = 0;
        for (int64_t i = 1; i < m * n; i++)
            if (fabs(d[i]) > fabs(d[p])) p = i;
        const double pivot = d[p];
        if (!rank) first = fabs(pivot);
        if (fabs(pivot) <= 1e-4 * first) break;
        const int64_t pr = p / n, pc = p % n;
        for (int64_t i = 0; i < m; i++) {
            const double f = i == pr ? 0 : d[i * n + pc] / pivot;
            for (int64_t j = 0; j < n && f != 0; j++) d[i * n + j] -= f * d[pr * n + j];
        }
        for (int64_t j = 0; j < n; j++) d[pr * n + j] = 0;
    }
    free(d);
    free(row);
    free(column);
    return rank;
}

void bug_hint(const bug_case *c, char *text, size_t size)
{
    double aa = 0, bb = 0, ab = 0;
    int64_t most;
    for (int64_t i = 0; i < c->m * c->n; i++) {
        aa += c->a[i] * c->a[i];
        bb += c->b[i] * c->b[i];
        ab += c->a[i] * c->b[i];
    }
    const double dd = aa + bb - 2 * ab, cosine = aa * bb > 0 ? ab / sqrt(aa * bb) : 0,
                 noise = 6 / sqrt((double)(c->m * c->n));
    const int64_t rank = rank_of(c, &most);
    int64_t zeros = 0;
    for (int64_t i = 0; i < c->m * c->n; i++)
        zeros += c->b[i] == 0 && fabs(c->a[i]) > 0.1 * c->row_size[i / c->n] * c->column_size[i % c->n];
    const char *more = c->product ? "" : "; with the operands (--a, --b) more can be said";
    if (c->m * c->n < 2)
        snprintf(text, size, "one element that is off by more than rounding cannot tell which");
    else if (c->effective < 16)
        snprintf(text, size, "the differences are larger than rounding; so few numbers cannot tell which bug it is%s",
                 more);
    else if ((c->m == 1 || c->n == 1) && fabs(cosine) > 0.3)
        snprintf(text, size,
                 "the differences are larger than rounding; of one %s, a factor or a bias for each element "
                 "would explain anything%s",
                 c->noun[c->m != 1], more);
    else if (50 * zeros > c->m * c->n)
        snprintf(text, size,
                 "%" PRId64 " elements of B, scattered, are 0 where A is not: left out, masked or dropped%s", zeros,
                 more);
    else if (rank > 0 && 2 * rank <= most)
        snprintf(text, size,
                 "B - A has rank %" PRId64 ": as if %" PRId64
                 " places of K were left out, added twice or changed, or an update of that rank were missing%s",
                 rank, rank, more);
    else if (fabs(cosine) < fmax(noise, 0.05))
        snprintf(text, size,
                 "B has nothing to do with A (cosine %.3f): another operand, a transposed one, or other data%s", cosine,
                 more);
    else if (dd > 0.01 * aa && fabs(bb - ab) < noise * sqrt(dd * bb) && aa > bb)
        snprintf(text, size, "a part of the sums is missing, about %.0f %% of A's energy%s", 100 * dd / aa, more);
    else if (dd > 0.01 * aa && fabs(ab - aa - dd) < noise * sqrt(dd * aa) && bb > aa)
        snprintf(text, size, "a part of the sums is added twice, about %.0f %% of A's energy%s", 100 * dd / aa, more);
    else
        snprintf(text, size, "the differences are larger than rounding, and no explanation here fits%s", more);
}
