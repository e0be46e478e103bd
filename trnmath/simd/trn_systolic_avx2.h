/* trn_systolic_avx2.h - the micro-kernels of trn_systolic.h in AVX2 and FMA intrinsics: up to 6 rows times 16 columns.
 * SPDX-License-Identifier: MIT
 *
 * A guest: plain C reaches 0.3 to 0.6 of it (gcc 12 and clang 14, whole products, measured). Included by trn_systolic.h
 * only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_SYSTOLIC_AVX2_H
#define TRN_SYSTOLIC_AVX2_H

#include "../trn_cpu.h"

#if TRNI_X86
#include <immintrin.h>

#define TRNI_V __m256
#define TRNI_V_LANES 8
#define TRNI_V_TARGET TRNI_TARGET_AVX2
#define TRNI_V_ROWS 6
#define TRNI_V_NAME(x) x##_avx2
#define TRNI_V_OP(x) _mm256_##x
#define TRNI_V_F16(src) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src)))
#include "trn_systolic_vector.h"

#endif
#endif /* TRN_SYSTOLIC_AVX2_H */
