/* simd/systolic_panels_avx2.h - array/systolic_panels.h's kernels in AVX2 and FMA: up to 6 rows times 16 columns.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: plain C reaches 0.3 to 0.6 of it (gcc 12 and clang 14, whole products, measured). Included by
 * array/systolic_panels.h
 * only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_PANELS_H
#include "../array/systolic_panels.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H)
#define TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H

#include "vector_avx2.h"
#define TRNI_V_ROWS 6
#include "systolic_panels_vector.h"

#endif /* TRNI_SIMD_SYSTOLIC_PANELS_AVX2_H */
