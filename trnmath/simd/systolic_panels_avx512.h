/* simd/systolic_panels_avx512.h - array/systolic_panels.h's kernels in AVX-512: up to 12 rows times 32 columns.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel (it is here because it is faster than the plain C body, 174 against 154 GF/s of 185 with gcc 12, four
 * chains, data in L1, measured): same bits, since every step is an explicit fused multiply-add or a lone addition.
 * Included by array/systolic_panels.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_PANELS_H) && !defined(TRNI_SIMD_SYSTOLIC_PANELS_AVX512_H)
#define TRNI_SIMD_SYSTOLIC_PANELS_AVX512_H

/* The plain forms of these intrinsics make g++ 12 warn of an uninitialised operand (its bug 105593); with a mask of
 * ones the instruction is the same. */
#define TRNI_ALL16 ((__mmask16)0xffff)
#define TRNI_ALL8 ((__mmask8)0xff)

#include "vector_avx512.h"
#define TRNI_V_ROWS 12
#include "systolic_panels_vector.h"

/* 16 lines of 16 floats, turned: pairs, quads, then 128-bit blocks of four registers. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void trni_simd_turn_avx512(__m512 v[16])
{
    __m512 u[16];
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_maskz_unpacklo_ps(TRNI_ALL16, v[i], v[i + 1]);
        u[i + 1] = _mm512_maskz_unpackhi_ps(TRNI_ALL16, v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            const __m512d p = _mm512_castps_pd(u[i + h]), q = _mm512_castps_pd(u[i + 2 + h]);
            v[i + 2 * h] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(TRNI_ALL8, p, q));
            v[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(TRNI_ALL8, p, q));
        }
    for (int i = 0; i < 4; i++) {
        u[i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[i], v[4 + i], 0x88);
        u[4 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[i], v[4 + i], 0xdd);
        u[8 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[8 + i], v[12 + i], 0x88);
        u[12 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[8 + i], v[12 + i], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        v[i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, u[i], u[8 + i], 0x88);
        v[8 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, u[i], u[8 + i], 0xdd);
    }
}

/* out[j][i] = in[i][j] of 16 x 16 words. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_flip_avx512(uint32_t *out, int out_step, const uint32_t *in,
                                                                 int in_step)
{
    __m512 v[16];
    for (int i = 0; i < 16; i++) v[i] = _mm512_loadu_ps((const float *)(const void *)(in + i * in_step));
    trni_simd_turn_avx512(v);
    for (int i = 0; i < 16; i++) _mm512_storeu_ps((float *)(void *)(out + i * out_step), v[i]);
}

/* As trni_transpose: up to 16 lines into slots of `width` floats; lanes beyond `lanes` are not written. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_transpose_avx512(float *dst, size_t width, const uint16_t *slot,
                                                                      const float *lines, int64_t step, int lanes,
                                                                      int rows)
{
    const __mmask16 lane_mask = (__mmask16)((1u << lanes) - 1);
    for (int k = 0; k < rows; k += 16) {
        const int left = rows - k < 16 ? rows - k : 16;
        const __mmask16 row_mask = (__mmask16)((1u << left) - 1);
        __m512 v[16];
        for (int i = 0; i < 16; i++)
            v[i] = i < lanes ? _mm512_maskz_loadu_ps(row_mask, lines + i * step + k) : _mm512_setzero_ps();
        trni_simd_turn_avx512(v);
        for (int i = 0; i < left; i++) _mm512_mask_storeu_ps(dst + slot[k + i] * width, lane_mask, v[i]);
    }
}

/* Is there a NaN among rows of 32 sums, `step` floats apart? Bits without their sign are above those of infinity. */
TRNI_KERNEL TRNI_TARGET_AVX512 static bool trni_simd_nan_in_tile_avx512(const float *at, ptrdiff_t step, int rows)
{
    __m512i x = _mm512_setzero_si512(), y = x;
    for (int i = 0; i < rows; i++, at += step) {
        const __m512i u = _mm512_castps_si512(_mm512_loadu_ps(at)), v = _mm512_castps_si512(_mm512_loadu_ps(at + 16));
        x = _mm512_maskz_max_epu32(TRNI_ALL16, x, _mm512_maskz_slli_epi32(TRNI_ALL16, u, 1));
        y = _mm512_maskz_max_epu32(TRNI_ALL16, y, _mm512_maskz_slli_epi32(TRNI_ALL16, v, 1));
    }
    x = _mm512_maskz_max_epu32(TRNI_ALL16, x, y);
    return _mm512_cmpgt_epu32_mask(x, _mm512_set1_epi32((int)0xff000000u)) != 0;
}

#undef TRNI_ALL16
#undef TRNI_ALL8
#endif /* TRNI_SIMD_SYSTOLIC_PANELS_AVX512_H */
