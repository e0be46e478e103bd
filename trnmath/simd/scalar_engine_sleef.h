/* simd/scalar_engine_sleef.h - the ideal functions of trn_scalar_engine.h: SLEEF's, and what is composed of them.
 * Behind trn_scalar_engine.h. SPDX-License-Identifier: MIT
 *
 * Included by engine/scalar_engine.h only, and only with TRN_USE_SLEEF, after <sleef.h>.
 *
 * exp, log, sin, arctan, tanh and erf are SLEEF's binary32 functions (u10: below 1.0 ulp). sqrt and reciprocal are one
 * correctly rounded operation. All others are composed in binary64, where nothing cancels that matters, and rounded to
 * binary32 once. Products that a sum takes are fused by name, so that no compiler decides about it; finz_ and purecfma
 * entry points return the same bits, so that no instruction set does.
 *
 * SLEEF declares an instruction set's functions only to files that are compiled for it; so they are declared here,
 * under names of our own.
 */
#if defined(TRNI_ENGINE_SCALAR_ENGINE_H) && defined(TRN_USE_SLEEF) && !defined(TRNI_SIMD_SCALAR_ENGINE_SLEEF_H)
#define TRNI_SIMD_SCALAR_ENGINE_SLEEF_H

#if TRNI_X86
#include <immintrin.h>
#define TRNI_SLEEF_FLOATS(name)                                                                                        \
    TRNI_SLEEF(TRNI_SLEEF_512, __m512, trni_sleef_##name##_avx512, "Sleef_finz_" #name "f16_u10avx512f")               \
    TRNI_SLEEF(TRNI_SLEEF_256, __m256, trni_sleef_##name##_avx2, "Sleef_finz_" #name "f8_u10avx2")                     \
    TRNI_SLEEF(, float, trni_sleef_##name##_portable, "Sleef_finz_" #name "f1_u10purecfma")
#define TRNI_SLEEF_DOUBLES(name, ulp)                                                                                  \
    TRNI_SLEEF(TRNI_SLEEF_512, __m512d, trni_sleef_wide_##name##_avx512, "Sleef_finz_" #name "d8_" ulp "avx512f")      \
    TRNI_SLEEF(TRNI_SLEEF_256, __m256d, trni_sleef_wide_##name##_avx2, "Sleef_finz_" #name "d4_" ulp "avx2")           \
    TRNI_SLEEF(, double, trni_sleef_wide_##name##_portable, "Sleef_finz_" #name "d1_" ulp "purecfma")
#else
#define TRNI_SLEEF_FLOATS(name) TRNI_SLEEF(, float, trni_sleef_##name##_portable, "Sleef_finz_" #name "f1_u10purecfma")
#define TRNI_SLEEF_DOUBLES(name, ulp)                                                                                  \
    TRNI_SLEEF(, double, trni_sleef_wide_##name##_portable, "Sleef_finz_" #name "d1_" ulp "purecfma")
#endif
#if TRNI_CLANG /* it looks at the declaration's target, gcc at the caller's */
#define TRNI_SLEEF_512 TRNI_TARGET_AVX512
#define TRNI_SLEEF_256 TRNI_TARGET_AVX2
#else
#define TRNI_SLEEF_512
#define TRNI_SLEEF_256
#endif
#define TRNI_SLEEF(target, type, name, symbol) target __attribute__((const)) type name(type) __asm__(symbol);
#if defined(__cplusplus)
extern "C" {
#endif
TRNI_SLEEF_FLOATS(exp)
TRNI_SLEEF_FLOATS(log)
TRNI_SLEEF_FLOATS(sin)
TRNI_SLEEF_FLOATS(atan)
TRNI_SLEEF_FLOATS(tanh)
TRNI_SLEEF_FLOATS(erf)
TRNI_SLEEF_DOUBLES(exp, "u10")
TRNI_SLEEF_DOUBLES(log1p, "u10")
TRNI_SLEEF_DOUBLES(erfc, "u15")
#if defined(__cplusplus)
}
#endif
#undef TRNI_SLEEF
#undef TRNI_SLEEF_512
#undef TRNI_SLEEF_256
#undef TRNI_SLEEF_FLOATS
#undef TRNI_SLEEF_DOUBLES

#if TRNI_X86
TRNI_SIMD_BEGIN
#define TRNI_I_FLOATS __m512
#define TRNI_I_DOUBLES __m512d
#define TRNI_I_LANES 16
#define TRNI_I_TARGET TRNI_TARGET_AVX512
#define TRNI_I_NAME(x) x##_avx512
#define TRNI_I_LOAD(p) _mm512_loadu_ps(p)
#define TRNI_I_STORE(p, x) _mm512_storeu_ps(p, x)
#define TRNI_I_CANONICAL(x)                                                                                            \
    _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),                                                      \
                       _mm512_castsi512_ps(_mm512_set1_epi32((int)TRNI_F32_NAN)))
#define TRNI_I_NAN(x, y) (_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) != 0)
#define TRNI_I_TINY(x, k, y, z)                                                                                        \
    _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(k), _CMP_LT_OQ), y)
#define TRNI_I_LINE(x, high, low) _mm512_fmadd_ps(x, _mm512_set1_ps(high), _mm512_mul_ps(x, _mm512_set1_ps(low)))
#define TRNI_I_SQRT(x) _mm512_maskz_sqrt_ps((__mmask16)0xffff, x)
#define TRNI_I_INVERSE(x) _mm512_div_ps(_mm512_set1_ps(1.0f), x)
#define TRNI_I_WIDE(f, x)                                                                                              \
    _mm512_insertf32x8(                                                                                                \
        _mm512_castps256_ps512(_mm512_maskz_cvtpd_ps(                                                                  \
            (__mmask8)0xff, f(_mm512_maskz_cvtps_pd((__mmask8)0xff, _mm512_castps512_ps256(x))))),                     \
        _mm512_maskz_cvtpd_ps((__mmask8)0xff, f(_mm512_maskz_cvtps_pd((__mmask8)0xff, _mm512_extractf32x8_ps(x, 1)))), \
        1)
#define TRNI_I_SET(k) _mm512_set1_pd(k)
#define TRNI_I_OP(op, a, b) _mm512_##op##_pd(a, b)
#define TRNI_I_MAX(a, b) _mm512_maskz_max_pd((__mmask8)0xff, a, b)
#define TRNI_I_MIN(a, b) _mm512_maskz_min_pd((__mmask8)0xff, a, b)
#define TRNI_I_ROOT(a) _mm512_maskz_sqrt_pd((__mmask8)0xff, a)
#define TRNI_I_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "scalar_engine_ideal.h"

#define TRNI_I_FLOATS __m256
#define TRNI_I_DOUBLES __m256d
#define TRNI_I_LANES 8
#define TRNI_I_TARGET TRNI_TARGET_AVX2
#define TRNI_I_NAME(x) x##_avx2
#define TRNI_I_LOAD(p) _mm256_loadu_ps(p)
#define TRNI_I_STORE(p, x) _mm256_storeu_ps(p, x)
#define TRNI_I_CANONICAL(x)                                                                                            \
    _mm256_blendv_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32((int)TRNI_F32_NAN)), _mm256_cmp_ps(x, x, _CMP_UNORD_Q))
#define TRNI_I_NAN(x, y) (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)) != 0)
#define TRNI_I_TINY(x, k, y, z)                                                                                        \
    _mm256_blendv_ps(z, y, _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), _mm256_set1_ps(k), _CMP_LT_OQ))
#define TRNI_I_LINE(x, high, low) _mm256_fmadd_ps(x, _mm256_set1_ps(high), _mm256_mul_ps(x, _mm256_set1_ps(low)))
#define TRNI_I_SQRT(x) _mm256_sqrt_ps(x)
#define TRNI_I_INVERSE(x) _mm256_div_ps(_mm256_set1_ps(1.0f), x)
#define TRNI_I_WIDE(f, x)                                                                                              \
    _mm256_set_m128(_mm256_cvtpd_ps(f(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)))),                                  \
                    _mm256_cvtpd_ps(f(_mm256_cvtps_pd(_mm256_castps256_ps128(x)))))
#define TRNI_I_SET(k) _mm256_set1_pd(k)
#define TRNI_I_OP(op, a, b) _mm256_##op##_pd(a, b)
#define TRNI_I_MAX(a, b) _mm256_max_pd(a, b)
#define TRNI_I_MIN(a, b) _mm256_min_pd(a, b)
#define TRNI_I_ROOT(a) _mm256_sqrt_pd(a)
#define TRNI_I_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "scalar_engine_ideal.h"
TRNI_SIMD_END
#endif

TRNI_INLINE double trni_ideal_add(double a, double b) { return a + b; }
TRNI_INLINE double trni_ideal_mul(double a, double b) { return a * b; }
TRNI_INLINE double trni_ideal_div(double a, double b) { return a / b; }

#define TRNI_I_FLOATS float
#define TRNI_I_DOUBLES double
#define TRNI_I_LANES 1
#define TRNI_I_TARGET
#define TRNI_I_NAME(x) x##_portable
#define TRNI_I_LOAD(p) (*(p))
#define TRNI_I_STORE(p, x) (*(p) = (x))
#define TRNI_I_CANONICAL(x) trni_act_canonical(x)
#define TRNI_I_NAN(x, y) ((x) != (x) || (y) != (y))
#define TRNI_I_TINY(x, k, y, z) (__builtin_fabsf(x) < (k) ? (y) : (z))
#define TRNI_I_LINE(x, high, low) __builtin_fmaf(x, high, (x) * (low))
#define TRNI_I_SQRT(x) __builtin_sqrtf(x)
#define TRNI_I_INVERSE(x) (1.0f / (x))
#define TRNI_I_WIDE(f, x) ((float)f((double)(x)))
#define TRNI_I_SET(k) (k)
#define TRNI_I_OP(op, a, b) trni_ideal_##op(a, b)
#define TRNI_I_MAX(a, b) ((a) > (b) ? (a) : (b))
#define TRNI_I_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TRNI_I_ROOT(a) __builtin_sqrt(a)
#define TRNI_I_FMA(a, b, c) __builtin_fma(a, b, c)
#include "scalar_engine_ideal.h"

/* dst[i] = the ideal f(src[i]), i < n, of a function that has a table. dst may be src. */
TRNI_FN void trni_ideal_run(trn_act op, float *dst, const float *src, size_t n, trn_isa isa)
{
#if TRNI_X86
    if (isa == TRN_ISA_AVX512)
        trni_ideal_avx512(op, dst, src, n);
    else if (isa == TRN_ISA_AVX2)
        trni_ideal_avx2(op, dst, src, n);
    else
#endif
        trni_ideal_portable(op, dst, src, n);
    (void)isa;
}

#endif /* TRNI_SIMD_SCALAR_ENGINE_SLEEF_H */
