/* simd/sparse_kernels_neon.h - the micro-kernels of array/sparse_kernels.h in NEON: sixteen vectors of sums.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body, which has half as many sums in flight and merges through memory.
 * Included by array/sparse_kernels.h only, not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SPARSE_KERNELS_H) && !defined(TRNI_SIMD_SPARSE_KERNELS_NEON_H)
#define TRNI_SIMD_SPARSE_KERNELS_NEON_H

#include "vector_neon.h"

#define TRNI_V_SUMS 16
#define TRNI_V_LOW(x) vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(x), 16))
#define TRNI_V_HIGH(x) vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0xffff0000u)))
#include "sparse_kernels_vector.h"
#endif /* TRNI_SIMD_SPARSE_KERNELS_NEON_H */
