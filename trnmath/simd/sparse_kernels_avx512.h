/* simd/sparse_kernels_avx512.h - the micro-kernels of array/sparse_kernels.h in AVX-512: sixteen vectors of sums.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body. Included by array/sparse_kernels.h only, not at all under
 * TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SPARSE_KERNELS_H) && !defined(TRNI_SIMD_SPARSE_KERNELS_AVX512_H)
#define TRNI_SIMD_SPARSE_KERNELS_AVX512_H

#include "vector_avx512.h"

/* The plain form of the shift makes g++ 12 warn of an uninitialised operand (its bug 105593); with a mask of ones the
 * instruction is the same. */
#define TRNI_V_SUMS 16
#define TRNI_V_LOW(x) _mm512_castsi512_ps(_mm512_maskz_slli_epi32((__mmask16)0xffff, _mm512_castps_si512(x), 16))
#define TRNI_V_HIGH(x)                                                                                                 \
    _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)0xffff0000u)))
#include "sparse_kernels_vector.h"
#endif /* TRNI_SIMD_SPARSE_KERNELS_AVX512_H */
