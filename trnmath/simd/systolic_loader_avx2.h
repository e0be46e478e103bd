/* simd/systolic_loader_avx2.h - lines of F32, TF32, BF16 and F16 for array/systolic_loader.h in AVX2 with F16C.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C bodies. Included by array/systolic_loader.h only, and not at all under
 * TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_LOADER_H) && !defined(TRNI_SIMD_SYSTOLIC_LOADER_AVX2_H)
#define TRNI_SIMD_SYSTOLIC_LOADER_AVX2_H

#include "vector_avx2.h"
#define TRNI_V_LOADED 2

TRNI_V_INLINE void trni_codes_f32_avx2(const unsigned char *src, __m256 y[2])
{
    for (int j = 0; j < 2; j++) y[j] = _mm256_loadu_ps((const float *)(const void *)(src + 32 * j));
}

TRNI_V_INLINE void trni_codes_tf32_avx2(const unsigned char *src, __m256 y[2])
{
    for (int j = 0; j < 2; j++) {
        const __m256 x = _mm256_loadu_ps((const float *)(const void *)(src + 32 * j));
        const __m256i u = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 13), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0xfff)), odd);
        const __m256 kept = _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_set1_epi32(0x1fff), rounded));
        y[j] = _mm256_blendv_ps(kept, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    }
}

TRNI_V_INLINE void trni_codes_bf16_avx2(const unsigned char *src, __m256 y[2])
{
    for (int j = 0; j < 2; j++) {
        const __m128i code = _mm_loadu_si128((const __m128i *)(const void *)(src + 16 * j));
        y[j] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(code), 16));
    }
}

/* The instruction needs no care for subnormals (plain C takes a dozen steps). */
TRNI_V_INLINE void trni_codes_f16_avx2(const unsigned char *src, __m256 y[2])
{
    for (int j = 0; j < 2; j++) y[j] = TRNI_V_F16(src + 16 * j);
}

#include "systolic_loader_vector.h"
#endif /* TRNI_SIMD_SYSTOLIC_LOADER_AVX2_H */
