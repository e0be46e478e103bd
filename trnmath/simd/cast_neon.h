/* simd/cast_neon.h - casts of data/cast.h in NEON: F16 both ways by its instructions, and nearest even to bytes.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: same bits as the plain C bodies, with an eighth of their instructions for F16 and half of them for
 * bytes. FPCR may ask for another rounding, for other half precision or for NaNs without their sign: then the plain
 * kernels do it. Included by data/cast.h only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_DATA_CAST_H) && !defined(TRNI_SIMD_CAST_NEON_H)
#define TRNI_SIMD_CAST_NEON_H

#include "neon.h"

enum { TRNI_NEON_BLOCK = 32 };

/* Every NaN of 32 floats becomes 7fc00000 with its own sign. FMAX hands on a NaN of either side: the usual block pays
 * for one question about its largest number. */
TRNI_NEON_INLINE void trni_neon_canonical(float32x4_t x[8])
{
    const uint32x4_t magnitude = vdupq_n_u32(~TRNI_F32_SIGN), nan = vdupq_n_u32(TRNI_F32_NAN);
    const float32x4_t low = vmaxq_f32(vmaxq_f32(x[0], x[1]), vmaxq_f32(x[2], x[3])),
                      high = vmaxq_f32(vmaxq_f32(x[4], x[5]), vmaxq_f32(x[6], x[7]));
    const float most = vmaxvq_f32(vmaxq_f32(low, high));
    if (!__builtin_expect(__builtin_isunordered(most, most), 0)) return;
    for (int i = 0; i < 8; i++) {
        const uint32x4_t u = vreinterpretq_u32_f32(x[i]);
        const uint32x4_t is_nan = vcgtq_u32(vandq_u32(u, magnitude), vdupq_n_u32(TRNI_F32_INF));
        x[i] = vreinterpretq_f32_u32(vbslq_u32(is_nan, vbslq_u32(magnitude, nan, u), u));
    }
}

TRNI_KERNEL static void trni_neon_f32_f16(void *__restrict dst, const void *__restrict src, size_t n)
{
    const unsigned char *x = (const unsigned char *)src;
    unsigned char *y = (unsigned char *)dst;
    if (!trni_fp_modes_plain(trni_fp_modes_get())) {
        trni_cast_f32_f16_portable(dst, src, n);
        return;
    }
    for (; n >= TRNI_NEON_BLOCK; n -= TRNI_NEON_BLOCK, x += 128, y += 64) {
        float32x4_t v[8];
        TRNI_EVERY(i, 8) v[i] = vreinterpretq_f32_u8(vld1q_u8(x + 16 * i));
        trni_neon_canonical(v);
        TRNI_EVERY(i, 4)
        {
            const float16x8_t code = vcvt_high_f16_f32(vcvt_f16_f32(v[2 * i]), v[2 * i + 1]);
            vst1q_u8(y + 16 * i, vreinterpretq_u8_f16(code));
        }
    }
    if (n > 0) trni_cast_f32_f16_portable(y, x, n);
}

TRNI_KERNEL static void trni_neon_f16_f32(void *__restrict dst, const void *__restrict src, size_t n)
{
    const unsigned char *x = (const unsigned char *)src;
    unsigned char *y = (unsigned char *)dst;
    if (!trni_fp_modes_plain(trni_fp_modes_get())) {
        trni_cast_f16_f32_portable(dst, src, n);
        return;
    }
    for (; n >= TRNI_NEON_BLOCK; n -= TRNI_NEON_BLOCK, x += 64, y += 128) {
        float32x4_t v[8];
        TRNI_EVERY(i, 4)
        {
            const float16x8_t code = vreinterpretq_f16_u8(vld1q_u8(x + 16 * i));
            v[2 * i] = vcvt_f32_f16(vget_low_f16(code));
            v[2 * i + 1] = vcvt_high_f32_f16(code);
        }
        trni_neon_canonical(v);
        TRNI_EVERY(i, 8) vst1q_u8(y + 16 * i, vreinterpretq_u8_f32(v[i]));
    }
    if (n > 0) trni_cast_f16_f32_portable(y, x, n);
}

/* Nearest even to formats of at most 8 bits. p is the power of two at the head of x, at least the least normal number:
 * x + p · 2^(23 - M) is rounded where the code ends, and has the code's exponent above and its significand below. */
typedef struct trni_neon_rule {
    uint32x4_t least;
    int32x4_t down;
    float32x4_t up;
    uint16x8_t offset, limit;
    uint8x16_t sign;
    int8x16_t sign_down;
    uint32_t alarm;
} trni_neon_rule;

TRNI_NEON_INLINE uint16x8_t trni_neon_codes(const trni_neon_rule *k, const uint32x4_t m[2])
{
    uint32x4_t code[2];
    TRNI_EVERY(i, 2)
    {
        const uint32x4_t p = vandq_u32(vmaxq_u32(m[i], k->least), vdupq_n_u32(0x7f800000u));
        const float32x4_t x = vfmaq_f32(vreinterpretq_f32_u32(m[i]), vreinterpretq_f32_u32(p), k->up);
        code[i] = vaddq_u32(vreinterpretq_u32_f32(x), vshlq_u32(vreinterpretq_u32_f32(x), k->down));
    }
    const uint16x8_t both = vuzp1q_u16(vreinterpretq_u16_u32(code[0]), vreinterpretq_u16_u32(code[1]));
    return vminq_u16(vsubq_u16(both, k->offset), k->limit);
}

TRNI_NEON_INLINE uint8x16_t trni_neon_bytes(const trni_neon_rule *k, const uint32x4_t u[4], const uint32x4_t m[4])
{
    const uint16x8_t head[2] = { vuzp2q_u16(vreinterpretq_u16_u32(u[0]), vreinterpretq_u16_u32(u[1])),
                                 vuzp2q_u16(vreinterpretq_u16_u32(u[2]), vreinterpretq_u16_u32(u[3])) };
    const uint8x16_t top = vuzp2q_u8(vreinterpretq_u8_u16(head[0]), vreinterpretq_u8_u16(head[1]));
    const uint16x8_t low = trni_neon_codes(k, m), high = trni_neon_codes(k, m + 2);
    const uint8x16_t code = vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
    return vorrq_u8(code, vandq_u8(vshlq_u8(top, k->sign_down), k->sign));
}

TRNI_KERNEL static void trni_neon_nearest(const trni_rule *r, trni_cast_rest *s)
{
    enum { block = TRNI_NEON_BLOCK };
    const int M = 23 - r->cut, lowest = ((r->least_normal >> 23) + r->cut) << M; /* the pattern of +0 */
    const trni_neon_rule k = { vdupq_n_u32((uint32_t)r->least_normal),
                               vdupq_n_s32(-r->cut),
                               vreinterpretq_f32_u32(vdupq_n_u32((uint32_t)(127 + r->cut) << 23)),
                               vdupq_n_u16((uint16_t)lowest),
                               vdupq_n_u16((uint16_t)r->limit),
                               vdupq_n_u8((uint8_t)r->sign),
                               vdupq_n_s8((int8_t)(24 - r->sign_right)),
                               TRNI_F32_INF - ((uint32_t)r->limit != r->overflow) };
    const unsigned char *x = (const unsigned char *)s->src;
    size_t at = 0;
    if (!trni_fp_modes_plain(trni_fp_modes_get())) return;
    for (; s->n - at >= block; at += block) {
        uint32x4_t u[8], m[8];
        TRNI_EVERY(i, 8) u[i] = vreinterpretq_u32_u8(vld1q_u8(x + 4 * at + 16 * (size_t)i));
        TRNI_EVERY(i, 8) m[i] = vbicq_u32(u[i], vdupq_n_u32(TRNI_F32_SIGN));
        const uint32x4_t low = vmaxq_u32(vmaxq_u32(m[0], m[1]), vmaxq_u32(m[2], m[3])),
                         high = vmaxq_u32(vmaxq_u32(m[4], m[5]), vmaxq_u32(m[6], m[7]));
        if (vmaxvq_u32(vmaxq_u32(low, high)) > k.alarm) break;
        unsigned char *to = (unsigned char *)s->dst + at;
        vst1q_u8(to, trni_neon_bytes(&k, u, m));
        vst1q_u8(to + 16, trni_neon_bytes(&k, u + 4, m + 4));
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < block) trni_cast_last(r, s, 1, block, trni_neon_nearest);
}

#endif /* TRNI_SIMD_CAST_NEON_H */
