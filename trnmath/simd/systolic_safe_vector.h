/* simd/systolic_safe_vector.h - array/systolic_safe.h's chains for AVX2 and AVX-512, read once per instruction set.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * Included by simd/systolic_safe_avx2.h and simd/systolic_safe_avx512.h after simd/vector_<isa>.h, which says what
 * differs, and after
 *     TRNI_V_DOUBLE, TRNI_V_INTEGER   the vectors of doubles and of integers
 *     TRNI_V_PAIRS                    vectors of doubles side by side that a pass takes: 16 sums or 8 fit the registers
 *     TRNI_V_BITS(x), TRNI_V_FLOATS_BITS(x), TRNI_V_OF_BITS(x), TRNI_V_FLOATS_OF_BITS(x)   casts
 *     TRNI_V_AND(x, y)                of integers
 *     TRNI_V_WORDS(x)                 an integer of 64 bits in all places
 * All of it is undefined again at the end of this file. On its own it is empty.
 *
 * Same bits as the plain C bodies: every product is exact in a double; a rounded one is rounded once, by the fused
 * multiply-add that adds p.
 */
#include "../base/cpu.h"

#if defined(TRNI_V_DOUBLE)

TRNI_SIMD_BEGIN

#define TRNI_V_HALF (TRNI_V_LANES / 2) /* doubles of a vector */

/* The double sum t, shortened. */
TRNI_V_INLINE TRNI_V_DOUBLE TRNI_V_NAME(trni_simd_safe_shorten)(const trni_safe_way way, TRNI_V_DOUBLE t,
                                                                TRNI_V_INTEGER mask, TRNI_V_INTEGER cut)
{
    if (way == TRNI_SAFE_CUT) return TRNI_V_OF_BITS(TRNI_V_AND(TRNI_V_BITS(t), mask));
    const TRNI_V_DOUBLE p = TRNI_V_OF_BITS(TRNI_V_OP(add_epi64)(TRNI_V_AND(TRNI_V_BITS(t), mask), cut));
    return TRNI_V_OP(sub_pd)(TRNI_V_OP(add_pd)(t, p), p);
}

#if TRNI_V_LANES == 16
/* s + x * w down and up by the instruction's own rounding; the one that is odd, or both where it is exact. */
TRNI_V_INLINE __m512d trni_simd_safe_odd_step_avx512(__m512d x, __m512d w, __m512d s, __m512i mask, __m512i cut,
                                                     const trni_safe_how *how)
{
    const __m512d down = _mm512_mask_fmadd_round_pd(x, (__mmask8)0xff, w, s, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC),
                  up = _mm512_mask_fmadd_round_pd(x, (__mmask8)0xff, w, s, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __mmask8 odd = _mm512_test_epi64_mask(_mm512_castpd_si512(down), _mm512_set1_epi64(1));
    (void)how;
    return trni_simd_safe_shorten_avx512(TRNI_SAFE_ODD, _mm512_mask_mov_pd(up, odd, down), mask, cut);
}
#else
/* The processor rounds up. To nearest even as integers, then. */
TRNI_V_INLINE __m256d trni_simd_safe_odd_step_avx2(__m256d x, __m256d w, __m256d s, __m256i mask, __m256i cut,
                                                   const trni_safe_how *how)
{
    const __m256d up = _mm256_fmadd_pd(x, w, s), down = _mm256_xor_pd(_mm256_fnmsub_pd(x, w, s), _mm256_set1_pd(-0.0));
    const __m256d odd = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(down), 63)); /* +0 is up */
    const __m256i t = _mm256_castpd_si256(_mm256_blendv_pd(up, down, odd)), one = _mm256_set1_epi64x(1);
    const __m256i last = _mm256_and_si256(_mm256_srl_epi64(t, _mm_cvtsi32_si128(how->gone)), one);
    (void)mask, (void)cut;
    return _mm256_castsi256_pd(
        _mm256_and_si256(_mm256_add_epi64(_mm256_add_epi64(t, _mm256_set1_epi64x((long long)how->half)), last),
                         _mm256_set1_epi64x((long long)how->keep)));
}
#endif

TRNI_V_INLINE void TRNI_V_NAME(trni_simd_safe_chain)(const trni_safe_way way, TRNI_SAFE_PARAMS)
{
    const TRNI_V_INTEGER mask = TRNI_V_WORDS(way == TRNI_SAFE_CUT ? how->keep : TRNI_F64_BINADE);
    const TRNI_V_INTEGER cut = TRNI_V_WORDS(how->cut);
    for (int j = 0; j < TRNI_SAFE_COLUMNS; j += TRNI_V_PAIRS * TRNI_V_HALF) {
        TRNI_V_DOUBLE s[TRNI_SAFE_ROWS][TRNI_V_PAIRS], w[TRNI_V_PAIRS];
        const double *x = a, *y = b + j;
        TRNI_EVERY(i, TRNI_SAFE_ROWS) TRNI_EVERY(v, TRNI_V_PAIRS) s[i][v] = TRNI_V_OP(setzero_pd)();
        for (int k = 0; k < lines; k++, x += TRNI_SAFE_ROWS, y += TRNI_SAFE_COLUMNS) {
            TRNI_EVERY(v, TRNI_V_PAIRS) w[v] = TRNI_V_OP(loadu_pd)(y + v * TRNI_V_HALF);
            TRNI_EVERY(i, TRNI_SAFE_ROWS)
            {
                const TRNI_V_DOUBLE one = TRNI_V_OP(set1_pd)(x[i]);
                TRNI_EVERY(v, TRNI_V_PAIRS)
                {
                    s[i][v] = way == TRNI_SAFE_ODD
                                  ? TRNI_V_NAME(trni_simd_safe_odd_step)(one, w[v], s[i][v], mask, cut, how)
                                  : TRNI_V_NAME(trni_simd_safe_shorten)(way, TRNI_V_OP(fmadd_pd)(one, w[v], s[i][v]),
                                                                        mask, cut);
                }
            }
        }
        TRNI_EVERY(i, TRNI_SAFE_ROWS)
        TRNI_EVERY(v, TRNI_V_PAIRS)
        TRNI_V_OP(storeu_pd)(sum + i * TRNI_SAFE_COLUMNS + j + v * TRNI_V_HALF, s[i][v]);
    }
}

#define TRNI_V_CHAIN(name, way)                                                                                        \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_safe_##name)(TRNI_SAFE_PARAMS)                                            \
    {                                                                                                                  \
        TRNI_V_NAME(trni_simd_safe_chain)(way, TRNI_SAFE_ARGS);                                                        \
    }
TRNI_V_CHAIN(cut, TRNI_SAFE_CUT)
TRNI_V_CHAIN(round, TRNI_SAFE_ROUND)
TRNI_V_CHAIN(odd, TRNI_SAFE_ODD)
#undef TRNI_V_CHAIN

/* Two sums a cell; half as many cells at a time. */
TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_safe_bins)(TRNI_SAFE_PARAMS)
{
    enum { pairs = TRNI_V_PAIRS / 2 };
    const TRNI_V_DOUBLE bin = TRNI_V_OP(set1_pd)(how->bin);
    for (int j = 0; j < TRNI_SAFE_COLUMNS; j += pairs * TRNI_V_HALF) {
        TRNI_V_DOUBLE high[TRNI_SAFE_ROWS][pairs], low[TRNI_SAFE_ROWS][pairs], w[pairs];
        const double *x = a, *y = b + j;
        TRNI_EVERY(i, TRNI_SAFE_ROWS)
        TRNI_EVERY(v, pairs)
        {
            high[i][v] = bin;
            low[i][v] = TRNI_V_OP(setzero_pd)();
        }
        for (int k = 0; k < lines; k++, x += TRNI_SAFE_ROWS, y += TRNI_SAFE_COLUMNS) {
            TRNI_EVERY(v, pairs) w[v] = TRNI_V_OP(loadu_pd)(y + v * TRNI_V_HALF);
            TRNI_EVERY(i, TRNI_SAFE_ROWS)
            {
                const TRNI_V_DOUBLE one = TRNI_V_OP(set1_pd)(x[i]);
                TRNI_EVERY(v, pairs)
                {
                    const TRNI_V_DOUBLE t = TRNI_V_OP(fmadd_pd)(one, w[v], high[i][v]);
                    const TRNI_V_DOUBLE above = TRNI_V_OP(sub_pd)(t, high[i][v]);
                    low[i][v] = TRNI_V_OP(add_pd)(low[i][v], TRNI_V_OP(fmsub_pd)(one, w[v], above));
                    high[i][v] = t;
                }
            }
        }
        TRNI_EVERY(i, TRNI_SAFE_ROWS)
        TRNI_EVERY(v, pairs)
        {
            double *to = sum + i * TRNI_SAFE_COLUMNS + j + v * TRNI_V_HALF;
            TRNI_V_OP(storeu_pd)(to, TRNI_V_OP(sub_pd)(high[i][v], bin));
            TRNI_V_OP(storeu_pd)(to + TRNI_SAFE_CELLS, low[i][v]);
        }
    }
}

/* In binary32: two vectors of columns at a time. */
TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_safe_short)(TRNI_SAFE_SHORT_PARAMS)
{
    const TRNI_V_INTEGER mask = TRNI_V_OP(set1_epi32)((int)0xff800000u), cut = TRNI_V_OP(set1_epi32)((24 - 8) << 23);
    for (int j = 0; j < TRNI_SAFE_COLUMNS; j += 2 * TRNI_V_LANES) {
        TRNI_V s[TRNI_SAFE_ROWS][2], w[2];
        const float *x = a, *y = b + j;
        TRNI_EVERY(i, TRNI_SAFE_ROWS) s[i][0] = s[i][1] = TRNI_V_OP(setzero_ps)();
        for (int k = 0; k < lines; k++, x += TRNI_SAFE_ROWS, y += TRNI_SAFE_COLUMNS) {
            TRNI_EVERY(v, 2) w[v] = TRNI_V_OP(loadu_ps)(y + v * TRNI_V_LANES);
            TRNI_EVERY(i, TRNI_SAFE_ROWS)
            {
                const TRNI_V one = TRNI_V_OP(set1_ps)(x[i]);
                TRNI_EVERY(v, 2)
                {
                    const TRNI_V t = TRNI_V_OP(mul_ps)(one, w[v]);
                    const TRNI_V p =
                        TRNI_V_FLOATS_OF_BITS(TRNI_V_OP(add_epi32)(TRNI_V_AND(TRNI_V_FLOATS_BITS(t), mask), cut));
                    s[i][v] = TRNI_V_OP(add_ps)(s[i][v], TRNI_V_OP(sub_ps)(TRNI_V_OP(fmadd_ps)(one, w[v], p), p));
                }
            }
        }
        TRNI_EVERY(i, TRNI_SAFE_ROWS)
        TRNI_EVERY(v, 2) TRNI_V_OP(storeu_ps)(sum + i * TRNI_SAFE_COLUMNS + j + v * TRNI_V_LANES, s[i][v]);
    }
}

#undef TRNI_V_HALF
#undef TRNI_V_DOUBLE
#undef TRNI_V_INTEGER
#undef TRNI_V_PAIRS
#undef TRNI_V_BITS
#undef TRNI_V_FLOATS_BITS
#undef TRNI_V_OF_BITS
#undef TRNI_V_FLOATS_OF_BITS
#undef TRNI_V_AND
#undef TRNI_V_WORDS
TRNI_SIMD_END
#include "vector_end.h"
#endif
