/* simd/vector_neon.h - what NEON is to the SIMD kernels that are written once for several widths.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 *     as simd/vector_avx2.h; each operation is named as AVX names it
 *
 * Read as often as there are such SIMD kernels; simd/vector_end.h ends it.
 */
#include "../base/cpu.h"

#if TRNI_AARCH64
#include <arm_neon.h>

#include "vector_end.h" /* of another one before */
#define TRNI_V float32x4_t
#define TRNI_V_LANES 4
#define TRNI_V_NAME(x) x##_neon
#define TRNI_V_OP(x) trni_v_neon_##x
#define TRNI_V_INLINE __attribute__((unused, always_inline)) static inline
#define TRNI_V_KERNEL TRNI_KERNEL static

#ifndef TRNI_SIMD_VECTOR_NEON
#define TRNI_SIMD_VECTOR_NEON
TRNI_V_INLINE float32x4_t trni_v_neon_setzero_ps(void) { return vdupq_n_f32(0); }
TRNI_V_INLINE float32x4_t trni_v_neon_set1_ps(float x) { return vdupq_n_f32(x); }
TRNI_V_INLINE float32x4_t trni_v_neon_loadu_ps(const float *x) { return vld1q_f32(x); }
TRNI_V_INLINE void trni_v_neon_storeu_ps(float *x, float32x4_t v) { vst1q_f32(x, v); }
TRNI_V_INLINE float32x4_t trni_v_neon_add_ps(float32x4_t x, float32x4_t y) { return vaddq_f32(x, y); }
TRNI_V_INLINE float32x4_t trni_v_neon_fmadd_ps(float32x4_t x, float32x4_t y, float32x4_t z)
{
    return vfmaq_f32(z, x, y);
}
#endif
#endif
