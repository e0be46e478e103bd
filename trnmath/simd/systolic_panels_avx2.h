/* simd/systolic_panels_avx2.h - array/systolic_panels.h's kernels in AVX2 and FMA: up to 6 rows times 16 columns.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: plain C reaches 0.3 to 0.6 of it (gcc 12 and clang 14, whole products, measured). Included by
 * array/systolic_panels.h
 * only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_PANELS_H) && !defined(TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H)
#define TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H

#include "vector_avx2.h"
#define TRNI_V_ROWS 6
#include "systolic_panels_vector.h"

/* 8 lines of 8 floats, turned: pairs, quads, then halves of two registers. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX2 static inline void trni_simd_turn_avx2(__m256 v[8])
{
    __m256 u[8];
    for (int i = 0; i < 8; i += 2) {
        u[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        u[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) {
            v[i + 2 * h] = _mm256_shuffle_ps(u[i + h], u[i + 2 + h], 0x44);
            v[i + 2 * h + 1] = _mm256_shuffle_ps(u[i + h], u[i + 2 + h], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        u[i] = _mm256_permute2f128_ps(v[i], v[4 + i], 0x20);
        u[4 + i] = _mm256_permute2f128_ps(v[i], v[4 + i], 0x31);
    }
    for (int i = 0; i < 8; i++) v[i] = u[i];
}

/* The first `lanes` floats of v. (A masked store is slow on some hosts.) */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX2 static inline void trni_simd_put_avx2(float *to, __m256 v,
                                                                                              int lanes)
{
    __m128 half = _mm256_castps256_ps128(v);
    if (lanes >= 8) {
        _mm256_storeu_ps(to, v);
        return;
    }
    if (lanes & 4) {
        _mm_storeu_ps(to, half);
        half = _mm256_extractf128_ps(v, 1);
        to += 4;
    }
    if (lanes & 2) {
        _mm_storel_pi((__m64 *)(void *)to, half);
        half = _mm_movehl_ps(half, half);
        to += 2;
    }
    if (lanes & 1) _mm_store_ss(to, half);
}

/* As trni_transpose: up to 16 lines into slots of `width` floats; lanes beyond `lanes` are not written. */
TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd_transpose_avx2(float *dst, size_t width, const uint16_t *slot,
                                                                  const float *lines, int64_t step, int lanes, int rows)
{
    const int whole = rows & ~7;
    for (int first = 0; first < lanes; first += 8) {
        const int count = lanes - first;
        for (int k = 0; k < whole; k += 8) {
            __m256 v[8];
            for (int i = 0; i < 8; i++)
                v[i] = i < count ? _mm256_loadu_ps(lines + (first + i) * step + k) : _mm256_setzero_ps();
            trni_simd_turn_avx2(v);
            for (int i = 0; i < 8; i++) trni_simd_put_avx2(dst + slot[k + i] * width + first, v[i], count);
        }
    }
    for (int k = whole; k < rows; k++)
        for (int i = 0; i < lanes; i++) dst[slot[k] * width + (size_t)i] = lines[i * step + k];
}

#endif /* TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H */
