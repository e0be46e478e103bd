/* simd/systolic_loader_neon.h - lines of F32, TF32, BF16 and F16 for array/systolic_loader.h in NEON.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: same bits as the plain C bodies. F16 is one instruction, where plain C takes two dozen. Included by
 * array/systolic_loader.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_LOADER_H) && !defined(TRNI_SIMD_SYSTOLIC_LOADER_NEON_H)
#define TRNI_SIMD_SYSTOLIC_LOADER_NEON_H

#include "neon.h"
#include "vector_neon.h"
#define TRNI_V_LOADED 4

TRNI_NEON_INLINE void trni_codes_f32_neon(const unsigned char *src, float32x4_t y[4])
{
    TRNI_EVERY(j, 4) y[j] = vreinterpretq_f32_u8(vld1q_u8(src + 16 * j));
}

/* As trni_tf32_from_bits, but that NaNs stay as they are: the result's will be made canonical. */
TRNI_NEON_INLINE void trni_codes_tf32_neon(const unsigned char *src, float32x4_t y[4])
{
    TRNI_EVERY(j, 4)
    {
        const uint32x4_t u = vreinterpretq_u32_u8(vld1q_u8(src + 16 * j));
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 13), vdupq_n_u32(1));
        const uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0xfffu)), odd);
        const float32x4_t x = vreinterpretq_f32_u32(u);
        y[j] = vbslq_f32(vceqq_f32(x, x), vreinterpretq_f32_u32(vbicq_u32(rounded, vdupq_n_u32(0x1fffu))), x);
    }
}

TRNI_NEON_INLINE void trni_codes_bf16_neon(const unsigned char *src, float32x4_t y[4])
{
    TRNI_EVERY(j, 2)
    {
        const uint16x8_t code = vreinterpretq_u16_u8(vld1q_u8(src + 16 * j));
        y[2 * j] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(code), 16));
        y[2 * j + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(code, 16));
    }
}

/* Subnormals are exact: calls work in plain modes. */
TRNI_NEON_INLINE void trni_codes_f16_neon(const unsigned char *src, float32x4_t y[4])
{
    TRNI_EVERY(j, 2)
    {
        const float16x8_t code = vreinterpretq_f16_u8(vld1q_u8(src + 16 * j));
        y[2 * j] = vcvt_f32_f16(vget_low_f16(code));
        y[2 * j + 1] = vcvt_high_f32_f16(code);
    }
}

#include "systolic_loader_vector.h"
#endif /* TRNI_SIMD_SYSTOLIC_LOADER_NEON_H */
