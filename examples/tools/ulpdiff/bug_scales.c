/* bug_scales.c - scales of blocks, and of the scores of a softmax.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <math.h>
#include <stdlib.h>

/* ---- a factor per tile: scales of blocks ---- */

typedef struct bug_tiles {
    double *factor; /* [across m / down, n / across] */
    int64_t down, across, columns;
} bug_tiles;

static double predict_tiles(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_tiles *t = what;
    const double f = t->factor[i / t->down * t->columns + j / t->across];
    *size = fabs(f) * bug_size(c, i, j);
    return f * c->a[i * c->n + j];
}

static bool try_tiles(bug_search *s, int64_t down, int64_t across)
{
    const bug_case *c = s->c;
    if (down >= c->m + 1 || across >= c->n || (down == 1 && c->n <= across)) return false;
    bug_tiles t = { NULL, down, across, (c->n + across - 1) / across };
    const int64_t count = (c->m + down - 1) / down * t.columns;
    double *aa = app_memory((size_t)count, sizeof *aa), least = INFINITY, most = -INFINITY;
    t.factor = app_memory((size_t)count, sizeof *t.factor);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            const double a = c->a[i * c->n + j];
            t.factor[i / down * t.columns + j / across] += a * c->b[i * c->n + j];
            aa[i / down * t.columns + j / across] += a * a;
        }
    for (int64_t i = 0; i < count; i++) t.factor[i] = aa[i] > 0 ? t.factor[i] / aa[i] : 1;
    int64_t moved = 0, zero = 0; /* where most blocks are right, or some hold zeros, it is these blocks that are told */
    for (int64_t i = 0; i < count; i++) {
        moved += fabs(t.factor[i] - 1) > 1e-6;
        zero += fabs(t.factor[i]) < 1e-9;
    }
    bug_finding *f = 4 * moved < 3 * count || zero
                         ? NULL
                         : bug_try(s, predict_tiles, &t, 4, count,
                                   bug_tight(c, bug_largest_change(t.factor, count, &least, &most), count));
    if (f)
        bug_say(f,
                "each block of %lld x %lld has a factor of its own, %.6g to %.6g: a scale per block is forgotten, or "
                "applied twice",
                (long long)down, (long long)across, least, most);
    free(t.factor);
    free(aa);
    return f != NULL;
}

void bug_tile_factors(bug_search *s)
{
    static const int64_t size[][2] = { { 128, 128 }, { 64, 64 }, { 32, 32 }, { 1, 128 }, { 1, 64 },
                                       { 1, 32 },    { 1, 16 },  { 128, 1 }, { 32, 1 } };
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        if (try_tiles(s, size[i][0], size[i][1])) return;
}

/* ---- a softmax of scores that were scaled otherwise: log B = factor log A + one number per row ---- */

typedef struct bug_heat {
    double factor, *shift;
} bug_heat;

static double predict_heat(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_heat *h = what;
    const double a = c->a[i * c->n + j] * c->unit;
    const double y = a > 0 ? exp(h->factor * log(a) + h->shift[i]) / c->unit : 0;
    *size = fmax(y, 0x1p-20);
    return y;
}

static bool is_softmax(const double *x, const bug_case *c)
{
    for (int64_t i = 0; i < c->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < c->n; j++) {
            if (x[i * c->n + j] < 0) return false;
            sum += x[i * c->n + j] * c->unit;
        }
        if (fabs(sum - 1) > 0.02) return false;
    }
    return true;
}

void bug_softmax(bug_search *s)
{
    const bug_case *c = s->c;
    if (c->n < 4 || !is_softmax(c->a, c) || !is_softmax(c->b, c)) return;
    bug_heat h = { 0, app_memory((size_t)c->m, sizeof(double)) };
    double xx = 0, xy = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < c->m; i++) {
            double sx = 0, sy = 0, n = 0;
            for (int64_t j = 0; j < c->n; j++) {
                const double a = c->a[i * c->n + j] * c->unit, b = c->b[i * c->n + j] * c->unit;
                if (!(a > 1e-6 && b > 1e-6)) continue;
                sx += log(a), sy += log(b), n++;
                if (n < 2 || pass) continue;
                const double x = log(a) - sx / n, y = log(b) - sy / n;
                xx += x * x, xy += x * y;
            }
            h.shift[i] = n > 0 ? sy / n - h.factor * sx / n : 0;
        }
        h.factor = pass ? h.factor : xx > 0 ? xy / xx : 1;
    }
    bug_finding *f = bug_try(s, predict_heat, &h, 2, c->m + 1, 0);
    char name[64];
    if (f)
        bug_say(f, "a softmax of scores that are %s times A's: their scale is forgotten, or applied twice",
                bug_name_factor(h.factor, 1e-3, name, sizeof name));
    free(h.shift);
}
