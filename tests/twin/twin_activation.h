/* twin_activation.h - the Scalar engine's functions once more: buckets by the book, coefficients from differences.
 * SPDX-License-Identifier: MIT
 *
 * Slow and simple, and nothing of it is trnmath's. A bucket's coefficients are derivatives at its centre, taken as
 * differences over 2^-100 of f itself, which MPFR gives with 900 bits; where buckets end is found by looking at f.
 */
#ifndef TWIN_ACTIVATION_H
#define TWIN_ACTIVATION_H

#include <math.h>
#include <mpfr.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* y = f(x) to about y's precision. */
typedef void twin_function(int op, mpfr_t y, const mpfr_t x);

enum { TWIN_ACT_POSITIONS = 8 + 4 * 128, TWIN_ACT_BITS = 900, TWIN_ACT_STEP = 100 };
typedef enum twin_act_family {
    TWIN_ACT_UNIFORM,
    TWIN_ACT_RECIPROCAL,
    TWIN_ACT_SQRT,
    TWIN_ACT_RSQRT,
    TWIN_ACT_LOG
} twin_act_family;
typedef enum twin_act_limit { TWIN_ACT_NO_LIMIT, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_X } twin_act_limit;

typedef struct twin_act {
    twin_function *f;
    int op;
    twin_act_family family;
    int each; /* of a power law, buckets an octave */
    bool odd, even;
    double end[2]; /* by sign: from here on the limit holds, or the last cubic goes on */
    twin_act_limit limit[2];
    float number[2];
    bool known[2][TWIN_ACT_POSITIONS];
    float c[2][TWIN_ACT_POSITIONS][4];
} twin_act;

/* c[0..3] = f, f', f'' / 2, f''' / 6 at the centre, rounded to binary32. */
static inline void twin_act_taylor(const twin_act *t, double centre, float c[4])
{
    mpfr_t h, x, at[5], d; /* f at centre + (i - 2) h */
    mpfr_inits2(TWIN_ACT_BITS, h, x, d, (mpfr_ptr)0);
    mpfr_set_ui_2exp(h, 1, -TWIN_ACT_STEP, MPFR_RNDN);
    for (int i = 0; i < 5; i++) {
        mpfr_init2(at[i], TWIN_ACT_BITS);
        mpfr_mul_si(x, h, i - 2, MPFR_RNDN);
        mpfr_add_d(x, x, centre, MPFR_RNDN);
        t->f(t->op, at[i], x);
    }
    for (int k = 0; k < 4; k++) {
        static const int weight[4][5] = {
            { 0, 0, 2, 0, 0 }, { 0, -1, 0, 1, 0 }, { 0, 2, -4, 2, 0 }, { -1, 2, 0, -2, 1 }
        };
        static const unsigned long over[4] = { 2, 2, 4, 12 }; /* times h^k and k! */
        mpfr_set_ui(d, 0, MPFR_RNDN);
        for (int i = 0; i < 5; i++) {
            mpfr_mul_si(x, at[i], weight[k][i], MPFR_RNDN);
            mpfr_add(d, d, x, MPFR_RNDN);
        }
        mpfr_div_ui(d, d, over[k], MPFR_RNDN);
        mpfr_mul_2si(d, d, k * TWIN_ACT_STEP, MPFR_RNDN);
        /* What is 0 but for the differences' own error (h^2) is 0. */
        if (!mpfr_zero_p(d) && mpfr_get_exp(d) < -170) mpfr_set_ui(d, 0, MPFR_RNDN);
        const double wide = mpfr_get_d(d, MPFR_RNDZ); /* to odd, so that the second rounding is right */
        c[k] = (float)wide;
        if (mpfr_cmp_d(d, wide) != 0) {
            uint64_t bits;
            double odd = wide;
            memcpy(&bits, &wide, sizeof bits);
            bits |= 1;
            memcpy(&odd, &bits, sizeof odd);
            c[k] = (float)odd;
        }
    }
    for (int i = 0; i < 5; i++) mpfr_clear(at[i]);
    mpfr_clears(h, x, d, (mpfr_ptr)0);
}

/* Is f(x) its limit, to 2^-25 of it, or, where that is 0, to half of the least subnormal? */
static inline bool twin_act_there(const twin_act *t, double x, twin_act_limit limit, double number)
{
    mpfr_t v, y, goal;
    mpfr_inits2(TWIN_ACT_BITS, v, y, goal, (mpfr_ptr)0);
    mpfr_set_d(v, x, MPFR_RNDN);
    mpfr_set_d(goal, limit == TWIN_ACT_TO_X ? x : number, MPFR_RNDN);
    t->f(t->op, y, v);
    mpfr_sub(y, y, goal, MPFR_RNDN);
    mpfr_abs(y, y, MPFR_RNDN);
    bool there;
    if (mpfr_zero_p(goal))
        there = mpfr_zero_p(y) || mpfr_cmp_si_2exp(y, 1, -150) < 0;
    else {
        mpfr_abs(goal, goal, MPFR_RNDN);
        mpfr_mul_2si(goal, goal, -25, MPFR_RNDN);
        there = mpfr_cmp(y, goal) <= 0;
    }
    mpfr_clears(v, y, goal, (mpfr_ptr)0);
    return there;
}

/* The first multiple of 0.25 from which on, up to 128, the limit holds. */
static inline double twin_act_end(const twin_act *t, int sign, twin_act_limit limit, double number)
{
    double end = 128;
    while (end > 0.25 && twin_act_there(t, (sign ? -1 : 1) * (end - 0.25), limit, number)) end -= 0.25;
    return end;
}

static inline twin_act *twin_act_new(twin_function *f, int op, twin_act_family family, int symmetry)
{
    twin_act *t = (twin_act *)calloc(1, sizeof *t);
    if (!t) abort();
    t->f = f;
    t->op = op;
    t->family = family;
    t->each = family == TWIN_ACT_RSQRT ? 4 : 8;
    t->odd = symmetry == 1;
    t->even = symmetry == 2;
    return t;
}

/* A side ends where its limit is reached. */
static inline void twin_act_side(twin_act *t, int sign, twin_act_limit limit, float number)
{
    t->limit[sign] = limit;
    t->number[sign] = number;
    t->end[sign] = twin_act_end(t, sign, limit, (double)number);
}

static inline const float *twin_act_row(twin_act *t, int sign, int position, double centre)
{
    if (!t->known[sign][position]) twin_act_taylor(t, centre, t->c[sign][position]);
    t->known[sign][position] = true;
    return t->c[sign][position];
}

static inline float twin_act_nan(void)
{
    const uint32_t bits = 0x7fc00000;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static inline float twin_act_cubic(const float c[4], float c0, float d)
{
    return fmaf(fmaf(fmaf(c[3], d, c[2]), d, c[1]), d, c0);
}

static inline float twin_act_uniform(twin_act *t, float x)
{
    const bool one_sided = t->odd || t->even;
    if (one_sided && signbit(x)) {
        const float y = twin_act_uniform(t, -x);
        return t->odd ? -y : y;
    }
    const int sign = signbit(x) ? 1 : 0;
    const double size = fabs((double)x), end = t->end[sign];
    if (t->limit[sign] != TWIN_ACT_NO_LIMIT && size >= end)
        return t->limit[sign] == TWIN_ACT_TO_X ? x : t->number[sign];
    const double inside = size < end ? size : nextafter(end, 0); /* the last cubic goes on */
    int position = 0, e = 0;
    double centre = 0;
    if (inside >= 0.25) {
        position = 6 + (int)floor(4 * inside);
        centre = (floor(4 * inside) + 0.5) / 4;
    } else if (inside >= 0x1p-8) {
        frexp(inside, &e); /* in [2^(e-1), 2^e) */
        position = e + 8;
        centre = ldexp(0.75, e);
    }
    if (sign) centre = -centre;
    const float *c = twin_act_row(t, sign, position, centre);
    return twin_act_cubic(c, c[0], x - (float)centre);
}

/* So many buckets an octave, as far as x goes. */
static inline float twin_act_power(twin_act *t, float x)
{
    const float infinite = HUGE_VALF;
    if (t->family == TWIN_ACT_RECIPROCAL && signbit(x)) return -twin_act_power(t, -x);
    if (x == 0) return t->family == TWIN_ACT_SQRT ? 0.0f : t->family == TWIN_ACT_LOG ? -infinite : infinite;
    if (x < 0) return twin_act_nan();
    if (isinf(x)) return t->family == TWIN_ACT_SQRT || t->family == TWIN_ACT_LOG ? x : 0.0f;
    int e;
    double m = 2 * frexp((double)x, &e); /* in [1, 2) */
    int octave = e - 1, half = 0;
    if ((t->family == TWIN_ACT_SQRT || t->family == TWIN_ACT_RSQRT) && octave % 2 != 0) {
        m *= 2;
        octave--;
        half = 1;
    }
    const double base = half ? 2 : 1, width = base / t->each;
    const int bucket = (int)floor((m - base) / width);
    const double centre = base + (bucket + 0.5) * width;
    const float *c = twin_act_row(t, 0, t->each * half + bucket, centre);
    float c0 = c[0];
    if (t->family == TWIN_ACT_LOG)
        c0 = (float)((long double)octave * 0.693147180559945309417232121458L + (long double)c[0]);
    const float y = twin_act_cubic(c, c0, (float)m - (float)centre);
    if (t->family == TWIN_ACT_LOG) return y;
    return ldexpf(y, t->family == TWIN_ACT_RECIPROCAL ? -octave
                     : t->family == TWIN_ACT_SQRT     ? octave / 2
                                                      : -octave / 2);
}

static inline float twin_act_value(twin_act *t, float x)
{
    if (isnan(x)) return twin_act_nan();
    const float y = t->family == TWIN_ACT_UNIFORM ? twin_act_uniform(t, x) : twin_act_power(t, x);
    return isnan(y) ? twin_act_nan() : y;
}

#endif /* TWIN_ACTIVATION_H */
