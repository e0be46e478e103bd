/* activation_error.c - how far the Scalar engine's functions are from the exact ones.
 * SPDX-License-Identifier: MIT
 */
#if defined(HAVE_SLEEF) && HAVE_SLEEF && !defined(TRN_USE_SLEEF)
#define TRN_USE_SLEEF
#endif
#include "activation_error.h"

#include <math.h>

bool activation_has_ideal(void)
{
#if defined(TRN_USE_SLEEF)
    return true;
#else
    return false;
#endif
}

/* ---- references ---- */

static const double pi = 3.14159265358979323846;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* d/dx of x sigmoid(k x), kx = k x */
static double sigmoid_slope(double kx)
{
    if (kx < -700) return -0.0;
    const double t = exp(-kx), s = 1 / (1 + t);
    return t == 0 ? 1 : s * (1 + kx * t * s);
}

static double times_sigmoid(double x, double kx) { return kx < -700 ? -0.0 : x * sigmoid(kx); }

static double phi(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

static double mish(double x)
{
    if (x > 40) return x;
    const double e = exp(x), n = e * (e + 2);
    return x < -700 ? -0.0 : x * n / (n + 2);
}

static double bell(double x) { return exp(-0.5 * x * x) / sqrt(2 * pi); }

static double gelu_dx(double x) { return x < -38 ? -0.0 : x > 38 ? 1 : phi(x) + x * bell(x); }

static double simple(trn_act op, double param, double x)
{
    switch (op) {
    case TRN_ACT_SQUARE: return x * x;
    case TRN_ACT_RELU: return x > 0 ? x : 0;
    case TRN_ACT_PRELU: return x >= 0 ? x : param * x;
    case TRN_ACT_SIGN: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case TRN_ACT_ABS: return fabs(x);
    default: return x;
    }
}

double activation_reference(trn_act op, float param, float argument)
{
    const double x = (double)argument;
    switch (op) {
    case TRN_ACT_SIGMOID: return sigmoid(x);
    case TRN_ACT_GELU: return x < -38 ? -0.0 : x * phi(x);
    case TRN_ACT_GELU_DX: return gelu_dx(x);
    case TRN_ACT_GELU_APPRX_TANH: return times_sigmoid(x, 2 * sqrt(2 / pi) * x * (1 + 0.044715 * x * x));
    case TRN_ACT_GELU_APPRX_SIGMOID: return times_sigmoid(x, 1.702 * x);
    case TRN_ACT_GELU_APPRX_SIGMOID_DX: return sigmoid_slope(1.702 * x);
    case TRN_ACT_SILU: return times_sigmoid(x, x);
    case TRN_ACT_SILU_DX: return sigmoid_slope(x);
    case TRN_ACT_TANH: return tanh(x);
    case TRN_ACT_SOFTPLUS: return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case TRN_ACT_MISH: return mish(x);
    case TRN_ACT_ERF: return erf(x);
    case TRN_ACT_ERF_DX: return 2 / sqrt(pi) * exp(-x * x);
    case TRN_ACT_EXP: return exp(x);
    case TRN_ACT_LOG: return log(x);
    case TRN_ACT_SIN: return sin(x);
    case TRN_ACT_ARCTAN: return atan(x);
    case TRN_ACT_SQRT: return sqrt(x);
    case TRN_ACT_RSQRT: return 1 / sqrt(x);
    case TRN_ACT_RECIPROCAL: return 1 / x;
    default: return simple(op, (double)param, x);
    }
}

#if defined(HAVE_MPFR) && HAVE_MPFR
bool activation_has_mpfr(void) { return true; }

enum { BITS = 256 };

/* y becomes 1 / (1 + exp(-y)), and t exp(-y). */
static void exact_sigmoid(mpfr_t y, mpfr_t t)
{
    mpfr_neg(t, y, MPFR_RNDN);
    mpfr_exp(t, t, MPFR_RNDN);
    mpfr_add_ui(y, t, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}

static void exact_phi(mpfr_t y, const mpfr_t x)
{
    mpfr_sqrt_ui(y, 2, MPFR_RNDN);
    mpfr_div(y, x, y, MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_erfc(y, y, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
}

/* the density */
static void exact_bell(mpfr_t y, const mpfr_t x, mpfr_t t)
{
    mpfr_sqr(t, x, MPFR_RNDN);
    mpfr_div_si(t, t, -2, MPFR_RNDN);
    mpfr_exp(y, t, MPFR_RNDN);
    mpfr_const_pi(t, MPFR_RNDN);
    mpfr_mul_ui(t, t, 2, MPFR_RNDN);
    mpfr_sqrt(t, t, MPFR_RNDN);
    mpfr_div(y, y, t, MPFR_RNDN);
}

static void exact_slope(mpfr_t y, mpfr_t t, mpfr_t s) /* y = k x on entry */
{
    mpfr_set(s, y, MPFR_RNDN);
    exact_sigmoid(s, t);
    mpfr_mul(y, y, t, MPFR_RNDN);
    mpfr_mul(y, y, s, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_mul(y, y, s, MPFR_RNDN);
}

static void exact_1702(mpfr_t y, const mpfr_t x)
{
    mpfr_mul_ui(y, x, 1702, MPFR_RNDN);
    mpfr_div_ui(y, y, 1000, MPFR_RNDN);
}

static void exact_gelu_tanh(mpfr_t y, const mpfr_t x, mpfr_t t)
{
    mpfr_sqr(y, x, MPFR_RNDN);
    mpfr_mul_ui(y, y, 44715, MPFR_RNDN);
    mpfr_div_ui(y, y, 1000000, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    mpfr_const_pi(t, MPFR_RNDN);
    mpfr_ui_div(t, 8, t, MPFR_RNDN); /* (2 sqrt(2 / pi))^2 */
    mpfr_sqrt(t, t, MPFR_RNDN);
    mpfr_mul(y, y, t, MPFR_RNDN);
    exact_sigmoid(y, t);
    mpfr_mul(y, y, x, MPFR_RNDN);
}

static void exact_mish(mpfr_t y, const mpfr_t x, mpfr_t t)
{
    mpfr_exp(t, x, MPFR_RNDN);
    mpfr_add_ui(y, t, 2, MPFR_RNDN);
    mpfr_mul(t, t, y, MPFR_RNDN);
    mpfr_add_ui(y, t, 2, MPFR_RNDN);
    mpfr_div(y, t, y, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
}

static void exact_composed(trn_act op, mpfr_t y, const mpfr_t x, mpfr_t t, mpfr_t s)
{
    switch (op) {
    case TRN_ACT_SIGMOID:
    case TRN_ACT_SILU:
        mpfr_set(y, x, MPFR_RNDN);
        exact_sigmoid(y, t);
        if (op == TRN_ACT_SILU) mpfr_mul(y, y, x, MPFR_RNDN);
        return;
    case TRN_ACT_GELU:
        exact_phi(y, x);
        mpfr_mul(y, y, x, MPFR_RNDN);
        return;
    case TRN_ACT_GELU_DX:
        exact_bell(s, x, t);
        mpfr_mul(s, s, x, MPFR_RNDN);
        exact_phi(y, x);
        mpfr_add(y, y, s, MPFR_RNDN);
        return;
    case TRN_ACT_GELU_APPRX_TANH: exact_gelu_tanh(y, x, t); return;
    case TRN_ACT_GELU_APPRX_SIGMOID:
        exact_1702(y, x);
        exact_sigmoid(y, t);
        mpfr_mul(y, y, x, MPFR_RNDN);
        return;
    case TRN_ACT_GELU_APPRX_SIGMOID_DX:
        exact_1702(y, x);
        exact_slope(y, t, s);
        return;
    case TRN_ACT_SILU_DX:
        mpfr_set(y, x, MPFR_RNDN);
        exact_slope(y, t, s);
        return;
    case TRN_ACT_SOFTPLUS:
        mpfr_exp(t, x, MPFR_RNDN);
        mpfr_log1p(y, t, MPFR_RNDN);
        return;
    case TRN_ACT_MISH: exact_mish(y, x, t); return;
    case TRN_ACT_ERF_DX:
        mpfr_sqr(t, x, MPFR_RNDN);
        mpfr_neg(t, t, MPFR_RNDN);
        mpfr_exp(y, t, MPFR_RNDN);
        mpfr_const_pi(t, MPFR_RNDN);
        mpfr_sqrt(t, t, MPFR_RNDN);
        mpfr_div(y, y, t, MPFR_RNDN);
        mpfr_mul_ui(y, y, 2, MPFR_RNDN);
        return;
    default: mpfr_set(y, x, MPFR_RNDN); return;
    }
}

void activation_mpfr(trn_act op, mpfr_t y, const mpfr_t x)
{
    mpfr_t t, s;
    mpfr_inits2(mpfr_get_prec(y), t, s, (mpfr_ptr)0);
    switch (op) {
    case TRN_ACT_EXP: mpfr_exp(y, x, MPFR_RNDN); break;
    case TRN_ACT_LOG: mpfr_log(y, x, MPFR_RNDN); break;
    case TRN_ACT_SIN: mpfr_sin(y, x, MPFR_RNDN); break;
    case TRN_ACT_ARCTAN: mpfr_atan(y, x, MPFR_RNDN); break;
    case TRN_ACT_SQRT: mpfr_sqrt(y, x, MPFR_RNDN); break;
    case TRN_ACT_RSQRT: mpfr_rec_sqrt(y, x, MPFR_RNDN); break;
    case TRN_ACT_RECIPROCAL: mpfr_ui_div(y, 1, x, MPFR_RNDN); break;
    case TRN_ACT_TANH: mpfr_tanh(y, x, MPFR_RNDN); break;
    case TRN_ACT_ERF: mpfr_erf(y, x, MPFR_RNDN); break;
    default: exact_composed(op, y, x, t, s); break;
    }
    mpfr_clears(t, s, (mpfr_ptr)0);
}

double activation_exact(trn_act op, float param, float argument)
{
    const trn_act_table own = trn_act_table_of(op);
    if (!own.buckets || !isfinite(argument)) return activation_reference(op, param, argument);
    mpfr_t x, y;
    mpfr_inits2(BITS, x, y, (mpfr_ptr)0);
    mpfr_set_flt(x, argument, MPFR_RNDN);
    activation_mpfr(op, y, x);
    const double result = mpfr_get_d(y, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return result;
}
#else
bool activation_has_mpfr(void) { return false; }
double activation_exact(trn_act op, float param, float x) { return activation_reference(op, param, x); }
#endif

/* ---- errors ---- */

bool activation_valid(trn_act op, float x)
{
    const trn_act_info *info = trn_act_info_of(op);
    const double v = op == TRN_ACT_RECIPROCAL ? fabs((double)x) : (double)x;
    return v >= info->low && v <= info->high;
}

bool activation_error_of(double exact, float y, double *ulp, double *relative)
{
    *ulp = *relative = 0;
    if (!(fabs(exact) < 0x1.ffffffp127)) return false; /* rounds to infinity, or NaN */
    if (!isfinite(y)) {
        *ulp = INFINITY;
        return true;
    }
    int e = 0;
    frexp(exact, &e); /* |exact| < 2^e */
    const double last_place = ldexp(1, (exact == 0 || e - 1 < -126 ? -126 : e - 1) - 23), off = fabs((double)y - exact);
    *ulp = off / last_place;
    *relative = fabs(exact) >= 0x1p-126 ? off / fabs(exact) : 0;
    return true;
}

activation_error activation_error_begin(trn_act op, trn_act_math math)
{
    activation_error e;
    memset(&e, 0, sizeof e);
    e.op = op;
    e.math = math;
    return e;
}

static void add_one(activation_error *e, float x, float y, double exact)
{
    double ulp, relative;
    if (!activation_error_of(exact, y, &ulp, &relative)) {
        e->wrong += isnan(exact) ? !isnan(y) : !isinf(y) || (y > 0) != (exact > 0);
        return;
    }
    if (isinf(ulp))
        e->wrong++;
    else {
        e->arguments++;
        e->mean_ulp += ulp; /* the sum, until the end */
        if (ulp > e->max_ulp) e->max_ulp = ulp, e->ulp_at = (double)x;
        if (relative > e->max_relative) e->max_relative = relative, e->relative_at = (double)x;
        const double off = fabs((double)y - exact);
        if (off > e->max_absolute) e->max_absolute = off, e->absolute_at = (double)x;
    }
}

static const float slope = 0.25f; /* prelu's */

static bool evaluate(const activation_error *e, float *y, const float *x, size_t n, trn_isa isa)
{
    union {
        const float *in;
        void *data;
    } src = { x };
    trn_activation_args a;
    memset(&a, 0, sizeof a);
    a.src = trn_tensor_1d(TRN_F32, src.data, 1);
    a.src.rank = 2;
    a.src.shape[1] = (int64_t)n;
    a.dst = a.src;
    a.dst.data = y;
    a.op = e->op;
    a.math = e->math;
    a.param = slope;
    a.unlimited = true;
    a.isa = isa;
    return trn_activation(&a) == TRN_OK;
}

void activation_error_add(activation_error *e, const float *x, size_t n, trn_isa isa)
{
    float y[1024];
    for (size_t i = 0; i < n; i += 1024) {
        const size_t take = n - i < 1024 ? n - i : 1024;
        if (!evaluate(e, y, x + i, take, isa)) {
            e->wrong += (int64_t)take;
            continue;
        }
        for (size_t j = 0; j < take; j++)
            if (activation_valid(e->op, x[i + j]))
                add_one(e, x[i + j], y[j], activation_reference(e->op, slope, x[i + j]));
    }
}

void activation_error_end(activation_error *e)
{
    if (e->arguments) e->mean_ulp /= (double)e->arguments;
    if (!activation_has_mpfr() || !e->arguments) return;
    const float at[3] = { (float)e->ulp_at, (float)e->relative_at, (float)e->absolute_at };
    for (int i = 0; i < 3; i++) {
        float y;
        double ulp, relative;
        const double exact = activation_exact(e->op, slope, at[i]);
        if (!evaluate(e, &y, &at[i], 1, TRN_ISA_AUTO) || !activation_error_of(exact, y, &ulp, &relative)) continue;
        if (i == 0)
            e->max_ulp = ulp;
        else if (i == 1)
            e->max_relative = relative;
        else
            e->max_absolute = fabs((double)y - exact);
    }
}

activation_error activation_error_sweep(trn_act op, trn_act_math math, uint32_t first, uint32_t last, uint32_t step)
{
    activation_error e = activation_error_begin(op, math);
    float x[1024];
    size_t n = 0;
    for (uint64_t u = first; u <= last; u += step) {
        const uint32_t bits = (uint32_t)u;
        memcpy(&x[n++], &bits, sizeof bits);
        if (n < 1024) continue;
        activation_error_add(&e, x, n, TRN_ISA_AUTO);
        n = 0;
    }
    activation_error_add(&e, x, n, TRN_ISA_AUTO);
    activation_error_end(&e);
    return e;
}
