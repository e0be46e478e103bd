/* simd/systolic_feed_neon.h - lines of F32, TF32, BF16 and F16 for array/systolic_feed.h in NEON.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: same bits as the plain C bodies. Four lines of a stream go together, where gcc takes two, and F16 is
 * one instruction, where plain C takes two dozen. Included by array/systolic_feed.h only, and not at all under
 * TRN_NO_INTRINSICS.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_FEED_H
#include "../array/systolic_feed.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_SYSTOLIC_FEED_NEON_H)
#define TRNI_SIMD_SYSTOLIC_FEED_NEON_H

#include "neon.h"

/* Sixteen codes at any address, as floats. */
enum { TRNI_NEON_CODES = 16, TRNI_NEON_TOGETHER = 4 /* lines */ };

TRNI_NEON_INLINE void trni_neon_f32(const unsigned char *src, float32x4_t y[4])
{
    TRNI_NEON_EACH(j, 4) y[j] = vreinterpretq_f32_u8(vld1q_u8(src + 16 * j));
}

/* As trni_tf32_from_bits, but that NaNs stay as they are: the result's will be made canonical. */
TRNI_NEON_INLINE void trni_neon_tf32(const unsigned char *src, float32x4_t y[4])
{
    TRNI_NEON_EACH(j, 4)
    {
        const uint32x4_t u = vreinterpretq_u32_u8(vld1q_u8(src + 16 * j));
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 13), vdupq_n_u32(1));
        const uint32x4_t near = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0xfffu)), odd);
        const float32x4_t x = vreinterpretq_f32_u32(u);
        y[j] = vbslq_f32(vceqq_f32(x, x), vreinterpretq_f32_u32(vbicq_u32(near, vdupq_n_u32(0x1fffu))), x);
    }
}

TRNI_NEON_INLINE void trni_neon_bf16(const unsigned char *src, float32x4_t y[4])
{
    TRNI_NEON_EACH(j, 2)
    {
        const uint16x8_t code = vreinterpretq_u16_u8(vld1q_u8(src + 16 * j));
        y[2 * j] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(code), 16));
        y[2 * j + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(code, 16));
    }
}

/* Subnormals are exact: calls work in plain modes. */
TRNI_NEON_INLINE void trni_neon_f16(const unsigned char *src, float32x4_t y[4])
{
    TRNI_NEON_EACH(j, 2)
    {
        const float16x8_t code = vreinterpretq_f16_u8(vld1q_u8(src + 16 * j));
        y[2 * j] = vcvt_f32_f16(vget_low_f16(code));
        y[2 * j + 1] = vcvt_high_f32_f16(code);
    }
}

/* sum[0 … 15] takes up `lines` lines in order; fewer columns than 16 go through memory. */
#define TRNI_NEON_FEED(name, code_bytes)                                                                               \
    TRNI_KERNEL static void trni_simd_lines_##name##_neon(TRNI_LINES_PARAMS)                                           \
    {                                                                                                                  \
        (void)feed;                                                                                                    \
        for (int64_t p = 0; p < panels; p++)                                                                           \
            for (int r = 0; r < rows; r++) {                                                                           \
                float *to = dst + (size_t)p * panel_step + slot[r] * TRNI_NEON_CODES;                                  \
                float32x4_t y[4];                                                                                      \
                trni_neon_##name(src + r * row_step + p * TRNI_NEON_CODES * code_bytes, y);                            \
                TRNI_NEON_EACH(j, 4) vst1q_f32(to + 4 * j, y[j]);                                                      \
            }                                                                                                          \
    }                                                                                                                  \
    TRNI_NEON_INLINE void trni_neon_add_##name(const int lines, float *sum, const float *x, const unsigned char *src,  \
                                               int64_t row_step)                                                       \
    {                                                                                                                  \
        float32x4_t s[4];                                                                                              \
        TRNI_NEON_EACH(j, 4) s[j] = vld1q_f32(sum + 4 * j);                                                            \
        TRNI_NEON_EACH(r, lines)                                                                                       \
        {                                                                                                              \
            float32x4_t y[4];                                                                                          \
            trni_neon_##name(src + r * row_step, y);                                                                   \
            TRNI_NEON_EACH(j, 4) s[j] = vfmaq_n_f32(s[j], y[j], x[r]);                                                 \
        }                                                                                                              \
        TRNI_NEON_EACH(j, 4) vst1q_f32(sum + 4 * j, s[j]);                                                             \
    }                                                                                                                  \
    TRNI_NEON_INLINE void trni_neon_stream_##name(const int lines, float *sum, const float *factor,                    \
                                                  const unsigned char *src, int64_t row_step, int64_t ahead, size_t n) \
    {                                                                                                                  \
        enum { line = 64 / code_bytes };                                                                               \
        float x[TRNI_NEON_TOGETHER];                                                                                   \
        size_t i = 0;                                                                                                  \
        TRNI_NEON_EACH(r, lines) x[r] = factor[r];                                                                     \
        for (; i + line <= n; i += line, src += 64) {                                                                  \
            TRNI_NEON_EACH(r, lines)                                                                                   \
            __builtin_prefetch((const void *)((uintptr_t)(src + r * row_step) + (uintptr_t)ahead));                    \
            for (int j = 0; j < line; j += TRNI_NEON_CODES)                                                            \
                trni_neon_add_##name(lines, sum + i + j, x, src + j * code_bytes, row_step);                           \
        }                                                                                                              \
        for (size_t take; i < n; i += take, src += TRNI_NEON_CODES * code_bytes) {                                     \
            float rest[TRNI_NEON_CODES] = { 0 };                                                                       \
            unsigned char code[TRNI_NEON_TOGETHER][TRNI_NEON_CODES * code_bytes] = { { 0 } };                          \
            take = n - i < TRNI_NEON_CODES ? n - i : (size_t)TRNI_NEON_CODES;                                          \
            memcpy(rest, sum + i, sizeof(float) * take);                                                               \
            for (int r = 0; r < lines; r++) memcpy(code[r], src + r * row_step, take * code_bytes);                    \
            trni_neon_add_##name(lines, rest, x, code[0], (int64_t)sizeof code[0]);                                    \
            memcpy(sum + i, rest, sizeof(float) * take);                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    TRNI_KERNEL static void trni_simd_stream_##name##_neon(TRNI_STREAM_PARAMS)                                         \
    {                                                                                                                  \
        enum { most = TRNI_NEON_TOGETHER };                                                                            \
        (void)feed;                                                                                                    \
        for (; rows >= most; rows -= most, x += most, src += most * row_step)                                          \
            trni_neon_stream_##name(most, sum, x, src, row_step, ahead, n);                                            \
        for (; rows > 0; rows--, x++, src += row_step) trni_neon_stream_##name(1, sum, x, src, row_step, ahead, n);    \
    }
TRNI_NEON_FEED(f32, 4)
TRNI_NEON_FEED(tf32, 4)
TRNI_NEON_FEED(bf16, 2)
TRNI_NEON_FEED(f16, 2)
#undef TRNI_NEON_FEED

#endif /* TRNI_SIMD_SYSTOLIC_FEED_NEON_H */
