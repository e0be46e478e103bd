/* bug_values.c - what happens to each value: factors, biases, another epsilon, a function, saturation.
 * SPDX-License-Identifier: MIT
 */
#include "bug.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What vectors of factors or biases may leave where they are small: rounded operands of one sign make such vectors too,
 * but leave more. */
#define LARGE 0.2
/* Operands of one sign that are cut lose a factor, too, of some 2^-8: only what leaves next to nothing is told then. */
#define CUT 0x1p-6

#define NONE_LEFT 0x1p-22 /* what float32 leaves */
enum { MANY = 16, PER_NUMBER = 8 };

/* What bug_try() may leave: 0: what it likes; less than 0: nothing will do, the data are too few. */
static double tight_one(const bug_case *c, double level)
{
    return level >= CUT ? 0 : c->effective < MANY ? -1 : 0x1p-19;
}

double bug_tight(const bug_case *c, double level, int64_t freedom)
{
    if (level >= LARGE) return 0;
    if (c->effective < PER_NUMBER * freedom) return -1;
    return fmax(fmax(NONE_LEFT, 2e-3 * level), c->bits <= 11 ? ldexp(1, -c->bits) : 0);
}

typedef struct bug_lines { /* B = A factor + bias, each a number, one per row, or one per column */
    double *factor, *bias;
    bool by_row_factor, by_row_bias;
    const double *second; /* a bias more, by columns */
    double one_factor, one_bias;
} bug_lines;

static double predict_lines(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_lines *l = what;
    const double f = l->factor ? l->factor[l->by_row_factor ? i : j] : l->one_factor;
    const double b = (l->bias ? l->bias[l->by_row_bias ? i : j] : l->one_bias) + (l->second ? l->second[j] : 0);
    *size = fmax(fabs(f) * bug_size(c, i, j), fabs(b));
    return f * c->a[i * c->n + j] + b;
}

static double level_of(const bug_case *c, const double *bias, int64_t n)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < n; i++) sum += bias[i] * bias[i] / (double)n;
    for (int64_t i = 0; i < c->m; i++) size += c->row_size[i] * c->row_size[i] / (double)c->m;
    double column = 0;
    for (int64_t j = 0; j < c->n; j++) column += c->column_size[j] * c->column_size[j] / (double)c->n;
    return size * column > 0 ? sqrt(sum / (size * column)) : INFINITY;
}

/* ---- one factor, one bias ---- */

void bug_factor(bug_search *s)
{
    const bug_case *c = s->c;
    double ab = 0, aa = 0;
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            const double size = bug_size(c, i, j), w = size > 0 ? 1 / (size * size) : 0, a = c->a[i * c->n + j];
            ab += w * a * c->b[i * c->n + j];
            aa += w * a * a;
        }
    if (!(aa > 0)) return;
    const bug_lines l = { .one_factor = ab / aa };
    if (l.one_factor == 0) return; /* zeros are said so */
    bug_finding *f = bug_try(s, predict_lines, &l, 1, 1, tight_one(c, fabs(l.one_factor - 1)));
    char name[64];
    if (f && c->product && c->product->ranks && fabs(l.one_factor * (double)c->product->k - 1) < 0.01)
        bug_say(f, "B is A times 1/%lld: it is the mean over the ranks, and A the sum", (long long)c->product->k);
    else if (f)
        bug_say(f, "B is A times %s: a scale is forgotten, or applied twice",
                bug_name_factor(l.one_factor, bug_off(&f->left), name, sizeof name));
}

void bug_bias(bug_search *s)
{
    const bug_case *c = s->c;
    double sum = 0;
    for (int64_t i = 0; i < c->m * c->n; i++) sum += c->b[i] - c->a[i];
    const bug_lines l = { .one_factor = 1, .one_bias = sum / (double)(c->m * c->n) };
    bug_finding *f = bug_try(s, predict_lines, &l, 1, 1, tight_one(c, level_of(c, &l.one_bias, 1)));
    if (f) bug_say(f, "B is A plus %.7g everywhere: a bias is left out, or added twice", l.one_bias * c->unit);
}

/* ---- a vector of biases ---- */

static void mean_differences(const bug_case *c, bool rows, double *bias, const double *second)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++)
            bias[rows ? i : j] +=
                (c->b[i * c->n + j] - c->a[i * c->n + j] - (second ? second[j] : 0)) / (double)(rows ? c->n : c->m);
}

static void vector_bias(bug_search *s, bool rows)
{
    const bug_case *c = s->c;
    const int64_t n = rows ? c->m : c->n;
    bug_lines l = { .one_factor = 1, .bias = app_memory((size_t)n, sizeof(double)), .by_row_bias = rows };
    mean_differences(c, rows, l.bias, NULL);
    bug_finding *f = bug_try(s, predict_lines, &l, 3, n, bug_tight(c, level_of(c, l.bias, n), n));
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, l.bias[i]);
        most = fmax(most, l.bias[i]);
    }
    if (f)
        bug_say(f, "a bias per %s (%.4g to %.4g) is left out on one side, or added twice", c->noun[rows ? 0 : 1],
                least * c->unit, most * c->unit);
    free(l.bias);
}

void bug_row_bias(bug_search *s) { vector_bias(s, true); }
void bug_column_bias(bug_search *s) { vector_bias(s, false); }

void bug_both_biases(bug_search *s)
{
    const bug_case *c = s->c;
    bug_lines l = { .one_factor = 1, .bias = app_memory((size_t)c->m, sizeof(double)), .by_row_bias = true };
    double *column = app_memory((size_t)c->n, sizeof *column);
    mean_differences(c, false, column, NULL);
    l.second = column;
    mean_differences(c, true, l.bias, column);
    bug_finding *f =
        bug_try(s, predict_lines, &l, 5, c->m + c->n, bug_tight(c, level_of(c, column, c->n), c->m + c->n));
    if (f) bug_say(f, "a bias per %s and one per %s are left out on one side, or added twice", c->noun[0], c->noun[1]);
    free(l.bias);
    free(column);
}

/* ---- a vector of factors ---- */

static void fit_factors(const bug_case *c, bool rows, double *factor)
{
    const int64_t n = rows ? c->m : c->n;
    double *ab = app_memory((size_t)n, sizeof *ab), *aa = app_memory((size_t)n, sizeof *aa);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            const double a = c->a[i * c->n + j], other = rows ? c->column_size[j] : c->row_size[i];
            const double w = other > 0 ? 1 / (other * other) : 0;
            ab[rows ? i : j] += w * a * c->b[i * c->n + j];
            aa[rows ? i : j] += w * a * a;
        }
    for (int64_t i = 0; i < n; i++) factor[i] = aa[i] > 0 ? ab[i] / aa[i] : 1;
    free(ab);
    free(aa);
}

/* Those whose factor is not 1, where all have the same: in words. */
static bool say_some(bug_finding *f, const bug_case *c, bool rows, const double *factor)
{
    const int64_t n = rows ? c->m : c->n, *place = rows ? c->row : c->column;
    int64_t *some = app_memory((size_t)n, sizeof *some), count = 0;
    double value = 1;
    bool one = true;
    for (int64_t i = 0; i < n; i++) {
        if (fabs(factor[i] - 1) <= 4 * f->left.rms) continue;
        if (!count) value = factor[i];
        one &= fabs(factor[i] - value) <= 1e-4 * fabs(value) + 8 * f->left.rms;
        some[count++] = place[i];
    }
    char set[128], name[64];
    one &= count > 0 && count < n;
    if (one) {
        f->cost = 2;
        bug_name_set(some, count, n, c->noun[rows ? 0 : 1], set, sizeof set);
        if (fabs(value) < 1e-9)
            bug_say(f, "%s hold%s zeros: left out, or not written", set, count == 1 ? "s" : "");
        else
            bug_say(f, "%s: B is A times %s", set,
                    bug_name_factor(value, 4 * f->left.rms / sqrt((double)(rows ? c->n : c->m)), name, sizeof name));
    }
    free(some);
    return one;
}

double bug_largest_change(const double *factor, int64_t n, double *least, double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        *least = fmin(*least, factor[i]);
        *most = fmax(*most, factor[i]);
    }
    return fmax(fabs(*least - 1), fabs(*most - 1));
}

/* The mean of squares of each row, columns brought to one size: a gain per column drops out. */
static void square_means(const bug_case *c, double *mean)
{
    double *gain = app_memory((size_t)c->n, sizeof *gain);
    for (int64_t i = 0; i < c->m; i++) mean[i] = 1;
    for (int round = 0; round < 3; round++) {
        memset(gain, 0, sizeof *gain * (size_t)c->n);
        for (int64_t i = 0; i < c->m; i++)
            for (int64_t j = 0; j < c->n && mean[i] > 0; j++)
                gain[j] += c->a[i * c->n + j] * c->a[i * c->n + j] / mean[i] / (double)c->m;
        for (int64_t i = 0; i < c->m; i++) {
            double sum = 0;
            for (int64_t j = 0; j < c->n; j++)
                sum += gain[j] > 0 ? c->a[i * c->n + j] * c->a[i * c->n + j] / gain[j] / (double)c->n : 0;
            mean[i] = sum;
        }
    }
    free(gain);
}

/* Rows over sqrt(ms + e), A with e1 and B with e2: 1 / factor^2 = e2 / e1 + (1 - e2 / e1) ms of A, whatever the gain.
 * Is it so? The ratio; 0: no. */
static double epsilon_ratio(const bug_case *c, const double *factor)
{
    double sx = 0, sy = 0, xx = 0, xy = 0, yy = 0, *mean = app_memory((size_t)c->m, sizeof *mean);
    square_means(c, mean);
    for (int64_t i = 0; i < c->m; i++) {
        const double x = mean[i], y = factor[i] > 0 ? 1 / (factor[i] * factor[i]) - 1 : 0;
        sx += x, sy += y, xx += x * x, xy += x * y, yy += y * y;
    }
    free(mean);
    const double m = (double)c->m, vx = xx - sx * sx / m, vy = yy - sy * sy / m, vxy = xy - sx * sy / m;
    if (c->m < 4 || !(vx > 0) || !(vy > 0) || vxy * vxy < 0.5 * vx * vy) return 0;
    const double slope = vxy / vx, ratio = 1 + (sy - slope * sx) / m;
    return ratio > 0 ? ratio : 0;
}

/* An epsilon leaves large rows alone, and moves small ones all in one direction. */
static bool like_epsilon(double least, double most)
{
    return (most <= 1 + 1e-6 && most > 0.9 && least > 0) || (least >= 1 - 1e-6 && least < 1.1);
}

static void say_factors(bug_finding *f, const bug_case *c, bool rows, const double *factor)
{
    double least, most;
    bug_largest_change(factor, rows ? c->m : c->n, &least, &most);
    const double ratio = rows ? epsilon_ratio(c, factor) : 0;
    if (ratio > 0 && fabs(ratio - 1) > 0.01) {
        f->cost = 2;
        bug_say(f,
                "another epsilon in a normalisation: each row has a factor of its own, %.9g to %.9g, as from an "
                "epsilon about %.2g times A's",
                least, most, ratio);
    } else
        bug_say(f, "each %s of B is A's times a factor of its own, %.9g to %.9g: %s", c->noun[rows ? 0 : 1], least,
                most,
                rows && like_epsilon(least, most)
                    ? "another epsilon in a normalisation, or a scale per row is forgotten or applied twice"
                    : "a scale is forgotten, or applied twice");
}

static void vector_factors(bug_search *s, bool rows)
{
    const bug_case *c = s->c;
    const int64_t n = rows ? c->m : c->n;
    bug_lines l = { .factor = app_memory((size_t)n, sizeof(double)), .by_row_factor = rows };
    double least, most;
    fit_factors(c, rows, l.factor);
    bug_finding *f =
        bug_try(s, predict_lines, &l, 3, n, bug_tight(c, bug_largest_change(l.factor, n, &least, &most), n));
    if (f && !say_some(f, c, rows, l.factor)) say_factors(f, c, rows, l.factor);
    free(l.factor);
}

void bug_row_factors(bug_search *s) { vector_factors(s, true); }
void bug_column_factors(bug_search *s) { vector_factors(s, false); }

/* ---- a factor per row about a bias per column: another epsilon, before the bias is added ---- */

enum { NORM_ROWS = 256, NORM_ROUNDS = 24 };

typedef struct bug_about {
    double *change, *bias; /* [m], [n] */
} bug_about;

static double predict_about(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_about *p = what;
    const double a = c->a[i * c->n + j];
    *size = bug_size(c, i, j);
    return a + p->change[i] * (a - p->bias[j]);
}

static double change_of_row(const bug_case *c, int64_t i, const double *bias)
{
    double da = 0, aa = 0;
    for (int64_t j = 0; j < c->n; j++) {
        const double a = c->a[i * c->n + j] - bias[j];
        da += (c->b[i * c->n + j] - c->a[i * c->n + j]) * a;
        aa += a * a;
    }
    return aa > 0 ? da / aa : 0;
}

static void fit_about(const bug_case *c, const bug_about *p)
{
    const int64_t rows = c->m < NORM_ROWS ? c->m : NORM_ROWS;
    for (int round = 0; round < NORM_ROUNDS; round++) {
        double uu = 0;
        for (int64_t i = 0; i < rows; i++) p->change[i] = change_of_row(c, i, p->bias);
        for (int64_t i = 0; i < rows; i++) uu += p->change[i] * p->change[i];
        for (int64_t j = 0; j < c->n; j++) p->bias[j] = 0;
        for (int64_t i = 0; i < rows && uu > 0; i++)
            for (int64_t j = 0; j < c->n; j++) {
                const double a = c->a[i * c->n + j], u = p->change[i];
                p->bias[j] += u * (u * a - (c->b[i * c->n + j] - a)) / uu;
            }
    }
    for (int64_t i = 0; i < c->m; i++) p->change[i] = change_of_row(c, i, p->bias);
}

void bug_norm(bug_search *s)
{
    const bug_case *c = s->c;
    if (c->m < 8 || c->n < 8 || c->before.rms > 0.5) return;
    bug_about p = { app_memory((size_t)c->m, sizeof(double)), app_memory((size_t)c->n, sizeof(double)) };
    fit_about(c, &p);
    bug_finding *f = bug_try(s, predict_about, &p, 4, c->m + c->n, c->bits <= 11 ? ldexp(1, -c->bits) : 0x1p-19);
    if (f)
        bug_say(f, "another epsilon in a normalisation with a bias: each row is stretched by a factor of its own about "
                   "one bias per column");
    free(p.change);
    free(p.bias);
}

/* ---- a function of each value that one side has and the other has not ---- */

static double f_relu(double x) { return x > 0 ? x : 0; }
static double f_gelu(double x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); }
static double f_gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double f_silu(double x) { return x / (1 + exp(-x)); }
static double f_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double f_square(double x) { return x * x; }
static double f_reciprocal(double x) { return 1 / x; }
static double f_inverse_root(double x) { return 1 / sqrt(x); }

typedef struct bug_function_row {
    const char *name;
    double (*of)(double);
} bug_function_row;

static const bug_function_row functions[] = {
    { "relu", f_relu },
    { "gelu", f_gelu },
    { "gelu (tanh)", f_gelu_tanh },
    { "silu", f_silu },
    { "sigmoid", f_sigmoid },
    { "tanh", tanh },
    { "exp", exp },
    { "the absolute value", fabs },
    { "the square", f_square },
    { "the square root", sqrt },
    { "1/x", f_reciprocal },
    { "1/sqrt(x)", f_inverse_root },
    { "the logarithm", log },
    { "erf", erf },
    { "sin", sin },
    { "cos", cos },
};

typedef struct bug_applied {
    double (*of)(double);
    bool to_b; /* A = f(B) */
} bug_applied;

/* In units of the whole, not of the case. Where A = f(B), B takes the place of what B should be if f(B) is A. */
static double predict_function(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_applied *f = what;
    const double a = c->a[i * c->n + j], b = c->b[i * c->n + j];
    const double y = f->of((f->to_b ? b : a) * c->unit) / c->unit;
    *size = bug_size(c, i, j);
    if (!isfinite(y)) return NAN;
    if (!f->to_b) *size = fmax(fabs(y), fmin(*size, 1 / c->unit) * 0x1p-4);
    return f->to_b ? b + (a - y) : y;
}

/* With what the function was computed from (--op activation): another function of it? */
static double predict_of_input(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const bug_function_row *f = what;
    const double y = f->of((double)c->product->b[c->column[j]]) / c->unit;
    (void)i;
    *size = fmax(fabs(y), c->grain / c->unit);
    return y;
}

void bug_other_function(bug_search *s)
{
    const ud_product *p = s->c->product;
    if (!p || p->k != 1 || !p->ranks) return;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        bug_finding *f = bug_try(s, predict_of_input, &functions[i], 1, 1, 0);
        if (f) bug_say(f, "B is another function of the operand: %s", functions[i].name);
    }
}

void bug_function(bug_search *s)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int to_b = 0; to_b < 2; to_b++) {
            const bug_applied f = { functions[i].of, to_b };
            bug_finding *found = bug_try(s, predict_function, &f, 1, 1, 0);
            if (found)
                bug_say(found,
                        to_b ? "A is %s of B: it is left out in B" : "B is %s of A: it is applied once more in B",
                        functions[i].name);
        }
}

/* ---- a limit ---- */

static double predict_clipped(const bug_case *c, const void *what, int64_t i, int64_t j, double *size)
{
    const double *limit = what, a = c->a[i * c->n + j];
    *size = bug_size(c, i, j);
    return fmin(fmax(a, limit[0]), limit[1]);
}

static int64_t at_limit(const double *x, int64_t n, double limit)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += x[i] == limit;
    return count;
}

void bug_saturated(bug_search *s)
{
    const bug_case *c = s->c;
    const int64_t n = c->m * c->n;
    double limit[2] = { INFINITY, -INFINITY };
    for (int64_t i = 0; i < n; i++) {
        limit[0] = fmin(limit[0], c->b[i]);
        limit[1] = fmax(limit[1], c->b[i]);
    }
    const int64_t low = at_limit(c->b, n, limit[0]), high = at_limit(c->b, n, limit[1]);
    if (low + high < 3 || limit[0] >= limit[1]) return;
    if (low < 2 && limit[0] < 0 && limit[0] > -limit[1]) limit[0] = -limit[1];
    bug_finding *f = bug_try(s, predict_clipped, limit, 1, 2, 0);
    if (f)
        bug_say(f, "B is A saturated at %.9g and %.9g (%lld elements stand at a limit)", limit[0] * c->unit,
                limit[1] * c->unit, (long long)(low + high));
}
