/* simd/sparse_kernels_avx2.h - the micro-kernels of array/sparse_kernels.h in AVX2 and FMA: eight vectors of sums.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body. Included by array/sparse_kernels.h only, not at all under
 * TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SPARSE_KERNELS_H) && !defined(TRNI_SIMD_SPARSE_KERNELS_AVX2_H)
#define TRNI_SIMD_SPARSE_KERNELS_AVX2_H

#include "vector_avx2.h"

#define TRNI_V_SUMS 8
#define TRNI_V_LOW(x) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16))
#define TRNI_V_HIGH(x)                                                                                                 \
    _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32((int)0xffff0000u)))
#include "sparse_kernels_vector.h"
#endif /* TRNI_SIMD_SPARSE_KERNELS_AVX2_H */
