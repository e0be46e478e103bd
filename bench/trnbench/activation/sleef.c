/* sleef.c - SLEEF's own vector functions on this host, at their best: whole arrays, 16 at a time.
 * SPDX-License-Identifier: MIT
 *
 * Compiled for AVX-512 (see tests/CMakeLists.txt) and called only where the host has it. What SLEEF has not is composed
 * of what it has in the fewest steps, without a care for the last bits: these are the opponents of a race, not answers.
 */
#include "activation.h"

#include <string.h>

#if defined(HAVE_SLEEF) && defined(__AVX512F__)
#include <immintrin.h>
#include <sleef.h>

#define BOTH(op, a, b) _mm512_##op##_ps(a, b)
#define ADD(a, b) BOTH(add, a, b)
#define SUB(a, b) BOTH(sub, a, b)
#define MUL(a, b) BOTH(mul, a, b)
#define DIV(a, b) BOTH(div, a, b)
#define IS(c) _mm512_set1_ps(c)
#define EXP Sleef_expf16_u10

static inline __m512 sigmoid(__m512 x) { return DIV(IS(1), ADD(IS(1), EXP(SUB(IS(0), x)))); }
static inline __m512 normal(__m512 x) { return MUL(IS(0.39894228f), EXP(MUL(IS(-0.5f), MUL(x, x)))); }
static inline __m512 normal_below(__m512 x)
{
    return MUL(IS(0.5f), ADD(IS(1), Sleef_erff16_u10(MUL(x, IS(0.70710678f)))));
}
static inline __m512 softplus(__m512 x)
{
    const __m512 size = _mm512_abs_ps(x);
    return ADD(_mm512_max_ps(x, IS(0)), Sleef_log1pf16_u10(EXP(SUB(IS(0), size))));
}
static inline __m512 gelu_tanh(__m512 x)
{
    const __m512 cube = MUL(x, ADD(IS(0.79788456f), MUL(IS(0.035677408f), MUL(x, x))));
    return MUL(MUL(IS(0.5f), x), ADD(IS(1), Sleef_tanhf16_u10(cube)));
}
static inline __m512 silu_dx(__m512 x)
{
    const __m512 s = sigmoid(x);
    return MUL(s, ADD(IS(1), MUL(x, SUB(IS(1), s))));
}
static inline __m512 gelu_sigmoid_dx(__m512 x)
{
    const __m512 y = MUL(IS(1.702f), x), s = sigmoid(y);
    return MUL(s, ADD(IS(1), MUL(y, SUB(IS(1), s))));
}

#define RACERS(X)                                                                                                      \
    X(EXP, EXP(x))                                                                                                     \
    X(LOG, Sleef_logf16_u10(x))                                                                                        \
    X(TANH, Sleef_tanhf16_u10(x))                                                                                      \
    X(ERF, Sleef_erff16_u10(x))                                                                                        \
    X(SIN, Sleef_sinf16_u10(x))                                                                                        \
    X(ARCTAN, Sleef_atanf16_u10(x))                                                                                    \
    X(SIGMOID, sigmoid(x))                                                                                             \
    X(SILU, MUL(x, sigmoid(x)))                                                                                        \
    X(SILU_DX, silu_dx(x))                                                                                             \
    X(GELU, MUL(x, normal_below(x)))                                                                                   \
    X(GELU_DX, ADD(normal_below(x), MUL(x, normal(x))))                                                                \
    X(GELU_APPRX_TANH, gelu_tanh(x))                                                                                   \
    X(GELU_APPRX_SIGMOID, MUL(x, sigmoid(MUL(IS(1.702f), x))))                                                         \
    X(GELU_APPRX_SIGMOID_DX, gelu_sigmoid_dx(x))                                                                       \
    X(SOFTPLUS, softplus(x))                                                                                           \
    X(MISH, MUL(x, Sleef_tanhf16_u10(softplus(x))))                                                                    \
    X(ERF_DX, MUL(IS(1.1283792f), EXP(SUB(IS(0), MUL(x, x)))))                                                         \
    X(SQRT, Sleef_sqrtf16(x))                                                                                          \
    X(RSQRT, DIV(IS(1), Sleef_sqrtf16(x)))                                                                             \
    X(RECIPROCAL, DIV(IS(1), x))

#define RACER(op, formula)                                                                                             \
    static void race_##op(float *dst, const float *src, int64_t n)                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i + 16 <= n; i += 16) {                                                                    \
            const __m512 x = _mm512_loadu_ps(src + i);                                                                 \
            _mm512_storeu_ps(dst + i, formula);                                                                        \
        }                                                                                                              \
    }
RACERS(RACER)

tb_race *tb_sleef_race(trn_act op)
{
#define ROW(name, formula) { TRN_ACT_##name, race_##name },
    static const struct {
        trn_act op;
        tb_race *run;
    } row[] = { RACERS(ROW) };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].op == op && trn_isa_supported(TRN_ISA_AVX512)) return row[i].run;
    return NULL;
}

const char *tb_sleef_version(void) { return "SLEEF 3 u10, AVX-512"; }

#else

tb_race *tb_sleef_race(trn_act op)
{
    (void)op;
    return NULL;
}

const char *tb_sleef_version(void) { return NULL; }

#endif
