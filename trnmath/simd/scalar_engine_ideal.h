/* simd/scalar_engine_ideal.h - the ideal functions, once for every width: read as often as there are instruction sets.
 * Behind trn_scalar_engine.h. SPDX-License-Identifier: MIT
 *
 * Included by simd/scalar_engine_sleef.h only, which defines TRNI_I_...; undefined at the end.
 *
 * Arguments are held where functions are their limits long since, so that no infinity meets a zero; NaN goes through
 * (the second operand of MAX and MIN is what they return for NaN).
 */
#if defined(TRNI_I_LANES)

#define TRNI_I_INLINE __attribute__((unused, always_inline)) TRNI_I_TARGET static inline
#define TRNI_I_ADD(a, b) TRNI_I_OP(add, a, b)
#define TRNI_I_MUL(a, b) TRNI_I_OP(mul, a, b)
#define TRNI_I_DIV(a, b) TRNI_I_OP(div, a, b)
#define TRNI_I_DEFINE(f) TRNI_I_INLINE TRNI_I_DOUBLES TRNI_I_NAME(trni_wide_##f)(TRNI_I_DOUBLES x)
#define TRNI_I_EXP(x) TRNI_I_NAME(trni_sleef_wide_exp)(x)
#define TRNI_I_AT_LEAST(k) x = TRNI_I_MAX(TRNI_I_SET(k), x)
#define TRNI_I_AT_MOST(k) x = TRNI_I_MIN(TRNI_I_SET(k), x)

TRNI_I_DEFINE(sigmoid)
{
    return TRNI_I_DIV(TRNI_I_SET(1.0), TRNI_I_ADD(TRNI_I_SET(1.0), TRNI_I_EXP(TRNI_I_MUL(x, TRNI_I_SET(-1.0)))));
}

TRNI_I_DEFINE(silu)
{
    TRNI_I_AT_LEAST(-300.0);
    return TRNI_I_DIV(x, TRNI_I_ADD(TRNI_I_SET(1.0), TRNI_I_EXP(TRNI_I_MUL(x, TRNI_I_SET(-1.0)))));
}

/* s (1 + k x t s), where t = exp(-k x) and s = 1 / (1 + t), so that 1 - s = t s */
TRNI_I_INLINE TRNI_I_DOUBLES TRNI_I_NAME(trni_wide_slope)(TRNI_I_DOUBLES kx)
{
    const TRNI_I_DOUBLES t = TRNI_I_EXP(TRNI_I_MUL(kx, TRNI_I_SET(-1.0)));
    const TRNI_I_DOUBLES s = TRNI_I_DIV(TRNI_I_SET(1.0), TRNI_I_ADD(TRNI_I_SET(1.0), t));
    return TRNI_I_MUL(s, TRNI_I_FMA(TRNI_I_MUL(kx, t), s, TRNI_I_SET(1.0)));
}

TRNI_I_DEFINE(silu_dx)
{
    TRNI_I_AT_LEAST(-300.0);
    TRNI_I_AT_MOST(300.0);
    return TRNI_I_NAME(trni_wide_slope)(x);
}

TRNI_I_DEFINE(gelu_apprx_sigmoid)
{
    TRNI_I_AT_LEAST(-300.0);
    return TRNI_I_DIV(x, TRNI_I_ADD(TRNI_I_SET(1.0), TRNI_I_EXP(TRNI_I_MUL(x, TRNI_I_SET(-1.702)))));
}

TRNI_I_DEFINE(gelu_apprx_sigmoid_dx)
{
    TRNI_I_AT_LEAST(-300.0);
    TRNI_I_AT_MOST(300.0);
    return TRNI_I_NAME(trni_wide_slope)(TRNI_I_MUL(x, TRNI_I_SET(1.702)));
}

/* x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x x x) */
TRNI_I_DEFINE(gelu_apprx_tanh)
{
    TRNI_I_AT_LEAST(-20.0);
    const TRNI_I_DOUBLES square = TRNI_I_FMA(TRNI_I_MUL(x, TRNI_I_SET(0.044715)), x, TRNI_I_SET(1.0));
    const TRNI_I_DOUBLES minus_2u = TRNI_I_MUL(TRNI_I_MUL(x, TRNI_I_SET(-1.5957691216057307)), square);
    return TRNI_I_DIV(x, TRNI_I_ADD(TRNI_I_SET(1.0), TRNI_I_EXP(minus_2u)));
}

TRNI_I_INLINE TRNI_I_DOUBLES TRNI_I_NAME(trni_wide_phi)(TRNI_I_DOUBLES x)
{
    const TRNI_I_DOUBLES y = TRNI_I_MUL(x, TRNI_I_SET(-0.70710678118654752440));
    return TRNI_I_MUL(TRNI_I_NAME(trni_sleef_wide_erfc)(y), TRNI_I_SET(0.5));
}

TRNI_I_DEFINE(gelu)
{
    TRNI_I_AT_LEAST(-30.0);
    return TRNI_I_MUL(x, TRNI_I_NAME(trni_wide_phi)(x));
}

TRNI_I_DEFINE(gelu_dx)
{
    TRNI_I_AT_LEAST(-30.0);
    TRNI_I_AT_MOST(30.0);
    const TRNI_I_DOUBLES bell = TRNI_I_EXP(TRNI_I_MUL(TRNI_I_MUL(x, x), TRNI_I_SET(-0.5)));
    return TRNI_I_FMA(TRNI_I_MUL(x, TRNI_I_SET(0.39894228040143267794)), bell, TRNI_I_NAME(trni_wide_phi)(x));
}

TRNI_I_DEFINE(erf_dx)
{
    return TRNI_I_MUL(TRNI_I_EXP(TRNI_I_MUL(TRNI_I_MUL(x, x), TRNI_I_SET(-1.0))), TRNI_I_SET(1.1283791670955125739));
}

TRNI_I_DEFINE(softplus)
{
    const TRNI_I_DOUBLES minus = TRNI_I_MUL(x, TRNI_I_SET(-1.0));
    const TRNI_I_DOUBLES far = TRNI_I_MIN(minus, x), above = TRNI_I_MAX(TRNI_I_SET(0.0), x);
    return TRNI_I_ADD(above, TRNI_I_NAME(trni_sleef_wide_log1p)(TRNI_I_EXP(far)));
}

/* x n / (n + 2), n = (1 + e^x)^2 - 1 = e^x (e^x + 2) */
TRNI_I_DEFINE(mish)
{
    TRNI_I_AT_LEAST(-300.0);
    const TRNI_I_DOUBLES e = TRNI_I_EXP(TRNI_I_MIN(TRNI_I_SET(40.0), x));
    const TRNI_I_DOUBLES e2 = TRNI_I_ADD(e, TRNI_I_SET(2.0));
    return TRNI_I_DIV(TRNI_I_MUL(x, TRNI_I_MUL(e, e2)), TRNI_I_FMA(e, e2, TRNI_I_SET(2.0)));
}

TRNI_I_DEFINE(rsqrt) { return TRNI_I_DIV(TRNI_I_SET(1.0), TRNI_I_ROOT(x)); }

/* Two at a time, because one comparison finds NaN in either: done for each, it takes a tenth of exp's time. Nor is what
 * was stored loaded again: that waits for stores across memory lines. */
#define TRNI_I_EACH(f)                                                                                                 \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; i + 2 * TRNI_I_LANES <= n; i += 2 * TRNI_I_LANES) {                                                     \
            const TRNI_I_FLOATS y = f(TRNI_I_LOAD(src + i));                                                           \
            TRNI_I_STORE(dst + i, y);                                                                                  \
            const TRNI_I_FLOATS z = f(TRNI_I_LOAD(src + i + TRNI_I_LANES));                                            \
            TRNI_I_STORE(dst + i + TRNI_I_LANES, z);                                                                   \
            if (TRNI_I_NAN(y, z)) {                                                                                    \
                TRNI_I_STORE(dst + i, TRNI_I_CANONICAL(y));                                                            \
                TRNI_I_STORE(dst + i + TRNI_I_LANES, TRNI_I_CANONICAL(z));                                             \
            }                                                                                                          \
        }                                                                                                              \
        while (i < n) {                                                                                                \
            const size_t take = n - i < TRNI_I_LANES ? n - i : (size_t)TRNI_I_LANES;                                   \
            float rest[TRNI_I_LANES] = { 0 };                                                                          \
            memcpy(rest, src + i, take * sizeof(float));                                                               \
            const TRNI_I_FLOATS y = f(TRNI_I_LOAD(rest));                                                              \
            TRNI_I_STORE(rest, TRNI_I_CANONICAL(y));                                                                   \
            memcpy(dst + i, rest, take * sizeof(float));                                                               \
            i += take;                                                                                                 \
        }                                                                                                              \
        return;                                                                                                        \
    }
/* SLEEF's erf loses its last bits where its intermediate results are subnormal: 2 / sqrt(pi) x in two parts, there. */
TRNI_I_INLINE TRNI_I_FLOATS TRNI_I_NAME(trni_whole_erf)(TRNI_I_FLOATS x)
{
    return TRNI_I_TINY(x, 0x1p-100f, TRNI_I_LINE(x, 0x1.20dd76p+0f, -0x1.f7ac92p-25f), TRNI_I_NAME(trni_sleef_erf)(x));
}

/* And its tanh is sometimes off by one place where tanh(x) is x. */
TRNI_I_INLINE TRNI_I_FLOATS TRNI_I_NAME(trni_whole_tanh)(TRNI_I_FLOATS x)
{
    return TRNI_I_TINY(x, 0x1p-12f, x, TRNI_I_NAME(trni_sleef_tanh)(x));
}

#define TRNI_I_WIDENED(f)                                                                                              \
    TRNI_I_INLINE TRNI_I_FLOATS TRNI_I_NAME(trni_whole_##f)(TRNI_I_FLOATS x)                                           \
    {                                                                                                                  \
        return TRNI_I_WIDE(TRNI_I_NAME(trni_wide_##f), x);                                                             \
    }
#define TRNI_I_NARROW(f) TRNI_I_EACH(TRNI_I_NAME(trni_sleef_##f))
#define TRNI_I_COMPOSED(f) TRNI_I_EACH(TRNI_I_NAME(trni_whole_##f))

TRNI_I_WIDENED(rsqrt)
TRNI_I_WIDENED(sigmoid)
TRNI_I_WIDENED(silu)
TRNI_I_WIDENED(silu_dx)
TRNI_I_WIDENED(gelu)
TRNI_I_WIDENED(gelu_dx)
TRNI_I_WIDENED(gelu_apprx_tanh)
TRNI_I_WIDENED(gelu_apprx_sigmoid)
TRNI_I_WIDENED(gelu_apprx_sigmoid_dx)
TRNI_I_WIDENED(softplus)
TRNI_I_WIDENED(mish)
TRNI_I_WIDENED(erf_dx)

TRNI_KERNEL TRNI_I_TARGET static void TRNI_I_NAME(trni_ideal)(trn_act op, float *dst, const float *src, size_t n)
{
    switch (op) {
    case TRN_ACT_EXP: TRNI_I_NARROW(exp)
    case TRN_ACT_LOG: TRNI_I_NARROW(log)
    case TRN_ACT_SIN: TRNI_I_NARROW(sin)
    case TRN_ACT_ARCTAN: TRNI_I_NARROW(atan)
    case TRN_ACT_TANH: TRNI_I_EACH(TRNI_I_NAME(trni_whole_tanh))
    case TRN_ACT_ERF: TRNI_I_EACH(TRNI_I_NAME(trni_whole_erf))
    case TRN_ACT_SQRT: TRNI_I_EACH(TRNI_I_SQRT)
    case TRN_ACT_RECIPROCAL: TRNI_I_EACH(TRNI_I_INVERSE)
    case TRN_ACT_RSQRT: TRNI_I_COMPOSED(rsqrt)
    case TRN_ACT_SIGMOID: TRNI_I_COMPOSED(sigmoid)
    case TRN_ACT_SILU: TRNI_I_COMPOSED(silu)
    case TRN_ACT_SILU_DX: TRNI_I_COMPOSED(silu_dx)
    case TRN_ACT_GELU: TRNI_I_COMPOSED(gelu)
    case TRN_ACT_GELU_DX: TRNI_I_COMPOSED(gelu_dx)
    case TRN_ACT_GELU_APPRX_TANH: TRNI_I_COMPOSED(gelu_apprx_tanh)
    case TRN_ACT_GELU_APPRX_SIGMOID: TRNI_I_COMPOSED(gelu_apprx_sigmoid)
    case TRN_ACT_GELU_APPRX_SIGMOID_DX: TRNI_I_COMPOSED(gelu_apprx_sigmoid_dx)
    case TRN_ACT_SOFTPLUS: TRNI_I_COMPOSED(softplus)
    case TRN_ACT_MISH: TRNI_I_COMPOSED(mish)
    case TRN_ACT_ERF_DX: TRNI_I_COMPOSED(erf_dx)
    default: return; /* those without a table */
    }
}

#undef TRNI_I_FLOATS
#undef TRNI_I_DOUBLES
#undef TRNI_I_LANES
#undef TRNI_I_TARGET
#undef TRNI_I_NAME
#undef TRNI_I_LOAD
#undef TRNI_I_STORE
#undef TRNI_I_CANONICAL
#undef TRNI_I_NAN
#undef TRNI_I_TINY
#undef TRNI_I_LINE
#undef TRNI_I_WIDENED
#undef TRNI_I_SQRT
#undef TRNI_I_INVERSE
#undef TRNI_I_WIDE
#undef TRNI_I_SET
#undef TRNI_I_OP
#undef TRNI_I_MAX
#undef TRNI_I_MIN
#undef TRNI_I_ROOT
#undef TRNI_I_FMA
#undef TRNI_I_INLINE
#undef TRNI_I_ADD
#undef TRNI_I_MUL
#undef TRNI_I_DIV
#undef TRNI_I_DEFINE
#undef TRNI_I_EXP
#undef TRNI_I_AT_LEAST
#undef TRNI_I_AT_MOST
#undef TRNI_I_EACH
#undef TRNI_I_NARROW
#undef TRNI_I_COMPOSED
#endif
