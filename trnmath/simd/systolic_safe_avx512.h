/* simd/systolic_safe_avx512.h - array/systolic_safe.h's chains in AVX-512.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: against the one for AVX2, 31 to 13 GMAC/s in chains of 53 bits, 15 to 5.7 of 25, 22 to 12 with
 * rounded products (whole products, gcc 12, measured).
 * Included by array/systolic_safe.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_SAFE_H) && !defined(TRNI_SIMD_SYSTOLIC_SAFE_AVX512_H)
#define TRNI_SIMD_SYSTOLIC_SAFE_AVX512_H

#include "vector_avx512.h"
#define TRNI_V_DOUBLE __m512d
#define TRNI_V_INTEGER __m512i
#define TRNI_V_PAIRS 4
#define TRNI_V_BITS(x) _mm512_castpd_si512(x)
#define TRNI_V_FLOATS_BITS(x) _mm512_castps_si512(x)
#define TRNI_V_OF_BITS(x) _mm512_castsi512_pd(x)
#define TRNI_V_FLOATS_OF_BITS(x) _mm512_castsi512_ps(x)
#define TRNI_V_AND(x, y) _mm512_and_si512(x, y)
#define TRNI_V_WORDS(x) _mm512_set1_epi64((long long)(x))
#include "systolic_safe_vector.h"

#endif /* TRNI_SIMD_SYSTOLIC_SAFE_AVX512_H */
