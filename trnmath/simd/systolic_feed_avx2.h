/* simd/systolic_feed_avx2.h - lines of F16 for array/systolic_feed.h in AVX2 with F16C.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C bodies. Included by array/systolic_feed.h only, and not at all under
 * TRN_NO_INTRINSICS.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_FEED_H
#include "../array/systolic_feed.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_SYSTOLIC_FEED_AVX2_H)
#define TRNI_SIMD_SYSTOLIC_FEED_AVX2_H

#include "vector_avx2.h"
#define TRNI_V_FEED 1
#include "systolic_feed_vector.h"
#endif /* TRNI_SIMD_SYSTOLIC_FEED_AVX2_H */
