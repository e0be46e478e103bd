/* simd/systolic_safe_avx2.h - array/systolic_safe.h's chains in AVX2.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: against the plain doubles that stood in its place, 13 to 1.2 GMAC/s in chains of 53 bits, 5.7 to 1.2
 * of 25, 12 to 0.8 with rounded products (whole products, gcc 12, measured).
 * Included by array/systolic_safe.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_SAFE_H) && !defined(TRNI_SIMD_SYSTOLIC_SAFE_AVX2_H)
#define TRNI_SIMD_SYSTOLIC_SAFE_AVX2_H

#include "vector_avx2.h"
#define TRNI_V_DOUBLE __m256d
#define TRNI_V_INTEGER __m256i
#define TRNI_V_PAIRS 2
#define TRNI_V_BITS(x) _mm256_castpd_si256(x)
#define TRNI_V_FLOATS_BITS(x) _mm256_castps_si256(x)
#define TRNI_V_OF_BITS(x) _mm256_castsi256_pd(x)
#define TRNI_V_FLOATS_OF_BITS(x) _mm256_castsi256_ps(x)
#define TRNI_V_AND(x, y) _mm256_and_si256(x, y)
#define TRNI_V_WORDS(x) _mm256_set1_epi64x((long long)(x))
#include "systolic_safe_vector.h"

#endif /* TRNI_SIMD_SYSTOLIC_SAFE_AVX2_H */
