/* simd/vector_avx2.h - what AVX2 is to the SIMD kernels that are written once for both widths.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 *     TRNI_V              the vector of floats; TRNI_V_LANES of them
 *     TRNI_V_TARGET       the target attribute; TRNI_V_INLINE, TRNI_V_KERNEL  what a function begins with
 *     TRNI_V_NAME(x)      a name of this instruction set;  TRNI_V_OP(x)  its intrinsic
 *     TRNI_V_F16(src)     TRNI_V_LANES F16 numbers at src, as floats
 *
 * Read as often as there are such SIMD kernels; simd/vector_end.h ends it.
 */
#include "../base/cpu.h"

#if TRNI_X86
#include <immintrin.h>

#include "vector_end.h" /* of another one before */
#define TRNI_V __m256
#define TRNI_V_LANES 8
#define TRNI_V_TARGET TRNI_TARGET_AVX2
#define TRNI_V_NAME(x) x##_avx2
#define TRNI_V_OP(x) _mm256_##x
#define TRNI_V_F16(src) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src)))
#define TRNI_V_INLINE __attribute__((unused, always_inline)) TRNI_V_TARGET static inline
#define TRNI_V_KERNEL TRNI_KERNEL TRNI_V_TARGET static
#endif
