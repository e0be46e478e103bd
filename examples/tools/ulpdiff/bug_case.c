/* bug_case.c - a pair as two matrices, the size of what rounding may do to each element, how far a prediction is off.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS (INT64_C(1) << 27) /* more are judged by their first rows */
enum { FEW = 4 };
#define ENOUGH_LEFT 0.15   /* of the rms: an explanation takes 98 % of the energy */
#define SUMS_GRAIN 0x1p-16 /* what the order of a long float32 sum may do, over the size of its terms */

/* ---- sizes ---- */

double bug_size(const bug_case *c, int64_t i, int64_t j)
{
    return fmax(fmax(fabs(c->a[i * c->n + j]), c->row_size[i] * c->column_size[j]), c->least);
}

static void root_means(const double *x, int64_t m, int64_t n, double *row, double *column, double *all)
{
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
        double r = 0;
        for (int64_t j = 0; j < n; j++) {
            const double v = x[i * n + j] * x[i * n + j];
            r += v;
            column[j] += v;
        }
        row[i] = sqrt(r / (double)n);
        sum += r;
    }
    for (int64_t j = 0; j < n; j++) column[j] = sqrt(column[j] / (double)m);
    *all = sqrt(sum / ((double)m * (double)n));
}

/* Of sums of products, the terms say how large they are: ||x|| ||w|| / sqrt(K); else A itself does. */
static void sizes_of_terms(bug_case *c)
{
    const ud_product *p = c->product;
    const double scale = 1 / sqrt((double)p->k) / c->unit;
    for (int64_t i = 0; i < c->m; i++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
            const double v = (double)p->a[c->row[i] * p->k + k];
            sum += isfinite(v) ? v * v : 0;
        }
        c->row_size[i] = sqrt(sum) * scale;
    }
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t j = 0; j < c->n; j++) {
            const double v = (double)p->b[k * p->n + c->column[j]];
            c->column_size[j] += isfinite(v) ? v * v : 0;
        }
    for (int64_t j = 0; j < c->n; j++) c->column_size[j] = sqrt(c->column_size[j]);
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Of few rows, a column may be small by chance: no column counts as less than half of all elements are. */
static void pool_sizes(const bug_case *c, int64_t lines, double *size, int64_t n)
{
    enum { FEW_LINES = 8, SOME = 8192 };
    if (lines >= FEW_LINES || c->m * c->n < 4) return;
    const int64_t some = c->m * c->n < SOME ? c->m * c->n : SOME;
    int64_t *index = ud_spread(c->m * c->n, some);
    double *a = app_memory((size_t)some, sizeof *a);
    for (int64_t i = 0; i < some; i++) a[i] = fabs(c->a[index[i]]);
    qsort(a, (size_t)some, sizeof *a, by_value);
    for (int64_t i = 0; i < n; i++) size[i] = fmax(size[i], a[some / 2]);
    free(a);
    free(index);
}

static void find_sizes(bug_case *c)
{
    double all = 0;
    c->row_size = app_memory((size_t)c->m, sizeof *c->row_size);
    c->column_size = app_memory((size_t)c->n, sizeof *c->column_size);
    if (c->product) {
        sizes_of_terms(c);
        return;
    }
    root_means(c->a, c->m, c->n, c->row_size, c->column_size, &all);
    pool_sizes(c, c->m, c->column_size, c->n);
    pool_sizes(c, c->n, c->row_size, c->m);
    for (int64_t i = 0; i < c->m; i++) c->row_size[i] /= all > 0 ? all : 1;
}

/* ---- reading ---- */

static int used_bits(uint64_t significand)
{
    int bits = 53;
    for (; bits > 1 && !(significand & 1); bits--) significand >>= 1;
    return bits;
}

static void find_grain(bug_case *c)
{
    const ud_sums *s = &c->pair->sums;
    const int a = used_bits(s->significand[0]), b = used_bits(s->significand[1]);
    double least = INFINITY;
    c->bits = a < b ? a : b;
    if (c->bits > 24) c->bits = 24;
    c->grain = fmax(ldexp(1, 1 - c->bits), SUMS_GRAIN);
    if (s->zero_signs + s->pairs == 0 || c->bits > 11) return;
    const double *narrow = a < b ? c->a : c->b; /* its least step, and the smallest number of full precision */
    for (int64_t i = 0; i < c->m * c->n; i++)
        if (narrow[i] != 0) least = fmin(least, fabs(narrow[i]));
    c->least = isfinite(least) ? ldexp(least, c->bits - 1) : 0;
}

static bool all_alike(const double *x, int64_t m, int64_t n, bool columns)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (x[i * n + j] != (columns ? x[i * n] : x[j])) return false;
    return true;
}

static void count_effective(bug_case *c)
{
    const bool rows = all_alike(c->a, c->m, c->n, false) && all_alike(c->b, c->m, c->n, false),
               columns = all_alike(c->a, c->m, c->n, true) && all_alike(c->b, c->m, c->n, true);
    c->effective = (rows ? 1 : c->m) * (columns ? 1 : c->n);
}

/* What is no number on a side is 0 on both; subnormals that one side flushes are equal. */
static void read_values(bug_case *c)
{
    const int64_t n = c->m * c->n;
    const bool narrow = c->pair->unit.kind == UD_F64;
    const double normal = narrow ? 0x1p-1022 : 0x1p-126;
    double most = 0;
    for (int64_t at = 0; at < n; at += UD_BLOCK) {
        const int count = n - at < UD_BLOCK ? (int)(n - at) : UD_BLOCK;
        ud_values(&c->pair->a, at, count, c->a + at);
        ud_values(&c->pair->b, at, count, c->b + at);
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(c->a[i]) || !isfinite(c->b[i])) c->a[i] = c->b[i] = 0;
        if (fabs(c->a[i]) < normal && fabs(c->b[i]) < normal && (c->a[i] == 0 || c->b[i] == 0)) c->b[i] = c->a[i] = 0;
        most = fmax(most, fabs(c->a[i]));
    }
    c->unit = most > 0 ? ldexp(1, ilogb(most)) : 1;
    for (int64_t i = 0; i < n; i++) {
        c->a[i] /= c->unit;
        c->b[i] /= c->unit;
    }
}

static void measure_before(bug_case *c)
{
    count_effective(c);
    c->before = bug_measure(c, NULL, NULL, 0);
    c->sampled = c->m * c->n > BUG_SAMPLE ? bug_measure(c, NULL, NULL, BUG_SAMPLE) : c->before;
}

bool bug_case_open(const ud_pair *pair, const ud_product *product, bug_case *c)
{
    memset(c, 0, sizeof *c);
    if (!pair->a.elements) return false;
    c->pair = pair;
    c->n = product && product->ranks ? pair->a.elements : pair->a.rank ? pair->a.shape[pair->a.rank - 1] : 1;
    c->m = pair->a.elements / c->n;
    if (c->m * c->n > MOST_ELEMENTS) c->m = MOST_ELEMENTS / c->n > 0 ? MOST_ELEMENTS / c->n : 1;
    if (product && product->m == c->m && product->n == c->n) c->product = product;
    c->noun[0] = "row";
    c->noun[1] = pair->a.rank < 2 || c->m == 1 ? "element" : "column";
    c->row = ud_spread(c->m, c->m);
    c->column = ud_spread(c->n, c->n);
    c->a = app_memory((size_t)(c->m * c->n), sizeof *c->a);
    c->b = app_memory((size_t)(c->m * c->n), sizeof *c->b);
    read_values(c);
    find_sizes(c);
    find_grain(c);
    measure_before(c);
    return true;
}

void bug_turn(bug_case *c)
{
    double *a = c->a;
    c->a = c->b;
    c->b = a;
    measure_before(c);
}

static void copy_part(const bug_case *whole, const double *from, const int64_t *row, const int64_t *column,
                      const bug_case *c, double *to)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) to[i * c->n + j] = from[row[i] * whole->n + column[j]];
}

void bug_case_part(const bug_case *whole, const int64_t *row, int64_t rows, const int64_t *column, int64_t columns,
                   bug_case *c)
{
    *c = *whole;
    c->whole = whole;
    c->m = rows;
    c->n = columns;
    c->row = app_memory((size_t)rows, sizeof *c->row);
    c->column = app_memory((size_t)columns, sizeof *c->column);
    c->row_size = app_memory((size_t)rows, sizeof *c->row_size);
    c->column_size = app_memory((size_t)columns, sizeof *c->column_size);
    for (int64_t i = 0; i < rows; i++) {
        c->row[i] = whole->row[row[i]];
        c->row_size[i] = whole->row_size[row[i]];
    }
    for (int64_t j = 0; j < columns; j++) {
        c->column[j] = whole->column[column[j]];
        c->column_size[j] = whole->column_size[column[j]];
    }
    c->a = app_memory((size_t)(rows * columns), sizeof *c->a);
    c->b = app_memory((size_t)(rows * columns), sizeof *c->b);
    copy_part(whole, whole->a, row, column, c, c->a);
    copy_part(whole, whole->b, row, column, c, c->b);
    measure_before(c);
}

void bug_case_close(bug_case *c)
{
    free(c->a);
    free(c->b);
    free(c->row);
    free(c->column);
    free(c->row_size);
    free(c->column_size);
    memset(c, 0, sizeof *c);
}

/* ---- how far off ---- */

enum { BINS = 512, BIN_OF_ONE = 384 }; /* halves of octaves: their fill tells the middle */

static int bin_of(double z)
{
    uint64_t bits;
    memcpy(&bits, &z, sizeof bits);
    const int64_t bin = (int64_t)(bits >> 51) - 2 * 1023 + BIN_OF_ONE;
    return bin < 0 ? 0 : bin < BINS ? (int)bin : BINS - 1;
}

static double middle_of(const int64_t *bin, int64_t count)
{
    int64_t below = 0;
    for (int i = 0; i < BINS; i++) {
        below += bin[i];
        if (count && 2 * below >= count) return ldexp(i % 2 ? 1.75 : 1.25, i / 2 - BIN_OF_ONE / 2);
    }
    return 0;
}

typedef struct bug_sum {
    double energy, worst;
    int64_t count, differ, bin[BINS];
} bug_sum;

static void add_row(const bug_case *c, bug_predict *predict, const void *what, int64_t i, int64_t columns, bug_sum *s)
{
    for (int64_t q = 0; q < columns; q++) {
        const int64_t j = columns == c->n ? q : (int64_t)((double)q * (double)c->n / (double)columns);
        double size = predict ? 0 : bug_size(c, i, j);
        const double value = predict ? predict(c, what, i, j, &size) : c->a[i * c->n + j];
        const double far = fabs(c->b[i * c->n + j] - value);
        s->count++;
        if (far == 0) continue;
        const double z = size > 0 && isfinite(far) ? far / size : 1;
        s->differ++;
        s->energy += z * z;
        s->worst = fmax(s->worst, z);
        s->bin[bin_of(z)]++;
    }
}

bug_left bug_measure(const bug_case *c, bug_predict *predict, const void *what, int64_t most)
{
    bug_sum *s = app_memory(1, sizeof *s);
    int64_t rows = c->m, columns = c->n;
    if (most && rows * columns > most) {
        const int64_t side = (int64_t)sqrt((double)most);
        columns = columns < side ? columns : rows < side ? most / rows : side;
        if (columns > c->n) columns = c->n;
        rows = most / columns < c->m ? most / columns : c->m;
    }
    for (int64_t p = 0; p < rows; p++)
        add_row(c, predict, what, rows == c->m ? p : (int64_t)((double)p * (double)c->m / (double)rows), columns, s);
    bug_left left = { .count = s->count, .differ = s->differ, .worst = s->worst };
    left.rms = sqrt(s->energy / (double)(s->count ? s->count : 1));
    left.middle = middle_of(s->bin, s->differ);
    free(s);
    return left;
}

/* Rounding is everywhere alike over the size, and small: the sums of 8-bit numbers are off by a tenth at most. */
bool bug_clean(const bug_case *c, const bug_left *left)
{
    enum { SOME = 32 };                                                      /* fewer have no middle to speak of, */
    const bool few = left->count <= SOME && 2 * left->differ >= left->count; /* if most are off */
    return left->worst <= fmax(fmax(1.5 * c->grain, 40 * left->middle), few ? 0.25 : 0) &&
           left->worst <= fmax(0.5, c->grain) && left->rms <= 0.12;
}

double bug_off(const bug_left *left) { return 6 * left->rms / sqrt((double)(left->count ? left->count : 1)); }

/* ---- trials ---- */

bug_finding *bug_add(bug_search *s, int cost, bool fact)
{
    if (s->count == BUG_FINDINGS) return NULL;
    bug_finding *f = &s->found[s->count++];
    memset(f, 0, sizeof *f);
    f->name = s->name;
    f->cost = cost;
    f->fact = fact;
    return f;
}

static bool enough(const bug_left *left, const bug_left *before) { return left->rms <= ENOUGH_LEFT * before->rms; }

bug_finding *bug_try(bug_search *s, bug_predict *predict, const void *what, int cost, int64_t freedom, double most)
{
    const bug_case *c = s->c;
    const bool sample = c->m * c->n > BUG_SAMPLE;
    const double most_energy = c->before.rms * c->before.rms * (double)c->before.count;
    if ((freedom > 1 ? 2 * freedom > c->effective : c->m * c->n < 2) || c->before.differ == 0 || most < 0) return NULL;
    if (freedom > FEW && c->before.worst * c->before.worst > 0.25 * most_energy)
        return NULL; /* it would fit that one */
    bug_left left = bug_measure(c, predict, what, BUG_SAMPLE);
    if (!enough(&left, &c->sampled) || !bug_clean(c, &left)) return NULL;
    if (sample) left = bug_measure(c, predict, what, 0);
    if (!enough(&left, &c->before) || !bug_clean(c, &left) || (most > 0 && left.rms > most)) return NULL;
    bug_finding *f = bug_add(s, cost, false);
    if (f) f->left = left;
    return f;
}
