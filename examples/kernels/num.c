/* num.c - values, bounds and variances.
 * SPDX-License-Identifier: MIT
 */
#include "num.h"

#include <math.h>

num num_of(double v)
{
    num a = { 0 };
    a.v = v;
    return a;
}

double num_bound(const num *a)
{
    double sum = 0;
    for (int s = 0; s < NUM_SOURCES; s++) sum += a->bound[s];
    return sum;
}

/* a x + b y + rest, whose errors are x's and y's. */
static num combine(double v, double a, const num *x, double b, const num *y)
{
    num r;
    r.v = v;
    for (int s = 0; s < NUM_SOURCES; s++) {
        r.bound[s] = fabs(a) * x->bound[s] + fabs(b) * y->bound[s];
        r.variance[s] = a * a * x->variance[s] + b * b * y->variance[s];
    }
    return r;
}

num num_add(num a, num b) { return combine(a.v + b.v, 1, &a, 1, &b); }

num num_subtract(num a, num b) { return combine(a.v - b.v, 1, &a, 1, &b); }

/* (a + x)(b + y) - ab = bx + ay + xy; the last goes with x. */
num num_mul(num a, num b)
{
    num r = combine(a.v * b.v, b.v, &a, a.v, &b);
    const double y = num_bound(&b);
    for (int s = 0; s < NUM_SOURCES; s++) r.bound[s] += a.bound[s] * y;
    return r;
}

num num_square(num a)
{
    const num zero = { 0 };
    num r = combine(a.v * a.v, 2 * a.v, &a, 0, &zero);
    const double x = num_bound(&a);
    for (int s = 0; s < NUM_SOURCES; s++) r.bound[s] += a.bound[s] * x;
    return r;
}

num num_times(num a, double exact)
{
    const num zero = { 0 };
    return combine(a.v * exact, exact, &a, 0, &zero);
}

num num_maximum(num a, num b)
{
    num r = a.v >= b.v ? a : b;
    for (int s = 0; s < NUM_SOURCES; s++) r.bound[s] = fmax(a.bound[s], b.bound[s]);
    return r;
}

/* What f(a + x) may be away from f(a) when |x| is at most a's bound, shared out by source; and the slope there. */
static num through(double v, const num *a, double spread, double slope)
{
    num r;
    const double all = num_bound(a);
    r.v = v;
    for (int s = 0; s < NUM_SOURCES; s++) {
        r.bound[s] = all > 0 ? a->bound[s] / all * spread : 0;
        r.variance[s] = slope * slope * a->variance[s];
    }
    return r;
}

num num_divide(num a, num b)
{
    const double e = num_bound(&b), size = fabs(b.v);
    const double spread = e < size ? e / (size * (size - e)) : HUGE_VAL;
    return num_mul(a, through(1 / b.v, &b, spread, 1 / (b.v * b.v)));
}

/* ---- roundings ---- */

double num_ulp(trn_format format, double v)
{
    const trn_format_info *f = trn_format_info_of(format);
    int exponent = 0;
    frexp(v, &exponent); /* v = 0.5 to 1 times 2^exponent */
    if (f->bits <= 32 && f->mantissa_bits == 0) return 1;
    if (v == 0 || exponent - 1 < 1 - f->bias) exponent = 2 - f->bias;
    return ldexp(1, exponent - 1 - f->mantissa_bits);
}

num num_round(num a, trn_format format, num_source source)
{
    const double ulp = num_ulp(format, a.v);
    a.bound[source] += num_ulp(format, fabs(a.v) + num_bound(&a)) / 2;
    a.variance[source] += ulp * ulp / 12;
    return a;
}

num num_f32(num a) { return num_round(a, TRN_F32, NUM_ARITHMETIC); }

num num_sum(const num *a, int64_t n)
{
    num sum = num_of(0);
    for (int64_t i = 0; i < n; i++) sum = i ? num_f32(num_add(sum, a[i])) : a[0];
    return sum;
}

/* ---- tables ---- */

static double exact_exp(double x) { return exp(x); }
static double exact_rsqrt(double x) { return 1 / sqrt(x); }
static double exact_silu(double x) { return x / (1 + exp(-x)); }
static double exact_softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static double exact_gelu(double x) /* NKI's gelu_apprx_tanh */
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

/* relative: error over value, of a table whose buckets are where the function is alike; else the largest fourth and
 * second derivative, which a bucket of half-width 1/8 turns into an error, and an error of the argument into a bend. */
static const struct {
    double (*exact)(double x);
    double relative, fourth, second;
} functions[] = {
    [NUM_EXP] = { exact_exp, 1.1245e-5, 0, 0 },   /* (1/8)^4 / 24 e^(1/8) */
    [NUM_RSQRT] = { exact_rsqrt, 4.37e-5, 0, 0 }, /* 35/128 (1/9)^4 and its next terms, over sqrt(9/8) */
    [NUM_SILU] = { exact_silu, 0, 0.5, 0.5 },
    [NUM_GELU] = { exact_gelu, 0, 1.75, 0.8 },
    [NUM_SOFTPLUS] = { exact_softplus, 0, 0.125, 0.25 },
};

num num_table(num_function f, num a)
{
    const double x = a.v, v = functions[f].exact(x), e = num_bound(&a), h = 1e-4;
    double slope, spread;
    if (f == NUM_EXP) {
        slope = v;
        spread = v * expm1(e);
    } else if (f == NUM_RSQRT) {
        slope = v / (2 * x);
        spread = e < x ? v * (1 / sqrt(1 - e / x) - 1) : HUGE_VAL;
    } else {
        slope = (functions[f].exact(x + h) - functions[f].exact(x - h)) / (2 * h);
        spread = fabs(slope) * e + functions[f].second * (e * e / 2 + h * h);
        if (e == 0) spread = 0;
    }
    num r = through(v, &a, spread, slope);
    const double table = functions[f].relative * v + functions[f].fourth / 24 * pow(0.125, 4);
    r.bound[NUM_TABLE] += table;
    r.variance[NUM_TABLE] +=
        table * table / 9; /* a fourth power over a bucket has a third of its end in the mean square */
    r.bound[NUM_ARITHMETIC] +=
        ldexp(4 * fabs(v) + fabs(slope), -24); /* three steps of Horner's rule, the coefficients */
    r.variance[NUM_ARITHMETIC] += ldexp(v * v, -48) / 3;
    return r;
}

/* ---- the array ---- */

int num_depth(int64_t rows, int64_t tiles) { return (int)((rows < 128 ? rows : 128) + 3) / 4 + 3 + (int)tiles; }

void num_dots(num *out, const num *a, const num_matrix *b, int64_t k, int64_t n, int depth)
{
    const double u = depth * ldexp(1, -24), uu = depth * ldexp(0.09, -48); /* half of the adds, 0.18 u^2 each */
    for (int64_t j = 0; j < n; j++) out[j] = num_of(0);
    for (int64_t i = 0; i < k; i++) {
        const double e = num_bound(&a[i]);
        for (int64_t j = 0; j < n; j++) {
            const double w = b->v[i * n + j], d = b->bound ? b->bound[i * n + j] : 0;
            const double product = a[i].v * w;
            num *o = &out[j];
            o->v += product;
            o->bound[NUM_SUM] += u * (fabs(a[i].v) + e) * (fabs(w) + d);
            o->variance[NUM_SUM] += uu * product * product;
            if (b->bound) {
                o->bound[b->source] += fabs(a[i].v) * d;
                o->variance[b->source] += a[i].v * a[i].v * b->variance[i * n + j];
            }
            if (e == 0) continue;
            for (int s = 0; s < NUM_SOURCES; s++) o->bound[s] += a[i].bound[s] * (fabs(w) + d);
            for (int s = 0; s < NUM_SOURCES; s++) o->variance[s] += a[i].variance[s] * w * w;
        }
    }
}
