/* simd/act_neon.h - the tables of trn_act.h in NEON: four arguments at a time.
 * Behind trn_act.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body, which takes its arguments one by one. Included by engine/act.h only,
 * not at all under TRN_NO_INTRINSICS.
 *
 * What is known of an octave fits bytes, and is looked up in registers; rows of four coefficients come by four loads
 * and a transposition.
 */
#if defined(TRNI_ENGINE_ACT_H) && !defined(TRNI_SIMD_ACT_NEON_H)
#define TRNI_SIMD_ACT_NEON_H

#include "neon.h"

/* Where x is positive, and where it is negative. */
typedef struct trni_act_sides_neon {
    uint32x4_t positive, change;
} trni_act_sides_neon;

typedef struct trni_act_plan_neon {
    uint8x16_t right;  /* of each octave: shift - 1, as a shift to the left; far beyond all bits below the first one */
    uint8x16x2_t base; /* low and high bytes of the position of an octave's first bucket, below 2^14 + 1 */
    trni_act_sides_neon last, first, joint, jump, end, kept, beyond;
} trni_act_plan_neon;

/* What the kernel is compiled for: two sides, a joint. */
typedef struct trni_act_shape_neon {
    bool two_sided, joined;
} trni_act_shape_neon;

TRNI_NEON_INLINE trni_act_sides_neon trni_act_sides_of_neon(uint32_t positive, uint32_t negative)
{
    const trni_act_sides_neon s = { vdupq_n_u32(positive), vdupq_n_u32(positive ^ negative) };
    return s;
}

TRNI_NEON_INLINE uint32x4_t trni_act_side_neon(trni_act_sides_neon s, uint32x4_t negative, trni_act_shape_neon is)
{
    return is.two_sided ? veorq_u32(s.positive, vandq_u32(s.change, negative)) : s.positive;
}

TRNI_NEON_INLINE trni_act_plan_neon trni_act_plan_of_neon(const trni_act_plan *p)
{
    unsigned char right[16], base[2][16];
    for (int i = 0; i < TRNI_ACT_SLOTS; i++) {
        const int32_t exponent = p->slot_exponent + i;
        const int32_t at = i ? p->base[i] + (int32_t)((uint32_t)exponent << (23 - p->shift[i])) : 0;
        right[i] = (unsigned char)(0u - (i ? p->shift[i] - 1u : 32u));
        base[0][i] = (unsigned char)at;
        base[1][i] = (unsigned char)(at >> 8);
    }
    trni_act_plan_neon k;
    k.right = vld1q_u8(right);
    k.base.val[0] = vld1q_u8(base[0]);
    k.base.val[1] = vld1q_u8(base[1]);
    k.last = trni_act_sides_of_neon(p->last[0], p->last[1]);
    k.first = trni_act_sides_of_neon((uint32_t)p->first[0], (uint32_t)p->first[1]);
    k.joint = trni_act_sides_of_neon((uint32_t)p->joint[0], (uint32_t)p->joint[1]);
    k.jump = trni_act_sides_of_neon((uint32_t)p->jump[0], (uint32_t)p->jump[1]);
    k.end = trni_act_sides_of_neon(p->end[0], p->end[1]);
    k.kept = trni_act_sides_of_neon(p->beyond_argument[0], p->beyond_argument[1]);
    k.beyond = trni_act_sides_of_neon(p->beyond_value[0], p->beyond_value[1]);
    return k;
}

/* The coefficients of four rows. */
TRNI_NEON_INLINE void trni_act_rows_neon(const trn_act_bucket *bucket, uint32x4_t row, float32x4_t c[4])
{
    const float *const list = (const float *)(const void *)bucket;
    const float32x4_t r0 = vld1q_f32(list + 4 * (size_t)vgetq_lane_u32(row, 0)),
                      r1 = vld1q_f32(list + 4 * (size_t)vgetq_lane_u32(row, 1)),
                      r2 = vld1q_f32(list + 4 * (size_t)vgetq_lane_u32(row, 2)),
                      r3 = vld1q_f32(list + 4 * (size_t)vgetq_lane_u32(row, 3));
    const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1)),
                      odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1)),
                      even23 = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3)),
                      odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
    c[0] = vreinterpretq_f32_f64(vtrn1q_f64(even01, even23));
    c[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23));
    c[2] = vreinterpretq_f32_f64(vtrn2q_f64(even01, even23));
    c[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23));
}

TRNI_NEON_INLINE float32x4_t trni_act_horner_neon(const float32x4_t c[4], float32x4_t c0, float32x4_t d)
{
    return vfmaq_f32(c0, vfmaq_f32(c[1], vfmaq_f32(c[2], c[3], d), d), d);
}

TRNI_NEON_INLINE float32x4_t trni_act_four_neon(const trni_act_plan *p, const trni_act_plan_neon *k,
                                                float32x4_t argument, trni_act_shape_neon is)
{
    const uint32x4_t u = vreinterpretq_u32_f32(argument), sign = vdupq_n_u32(TRNI_F32_SIGN);
    const uint32x4_t magnitude = vbicq_u32(u, sign), x = is.two_sided ? u : magnitude;
    const uint32x4_t negative = vcltzq_s32(vreinterpretq_s32_u32(u));
    const uint32x4_t inside = vminq_u32(magnitude, trni_act_side_neon(k->last, negative, is));
    const int32x4_t octave = vsubq_s32(vreinterpretq_s32_u32(vshrq_n_u32(inside, 23)), vdupq_n_s32(p->slot_exponent));
    const uint32x4_t slot = vreinterpretq_u32_s32(vmaxq_s32(octave, vdupq_n_s32(0)));
    /* bytes that name no byte of a table give 0 */
    const uint32x4_t at = vmlaq_u32(vdupq_n_u32(0xffff1000u), slot, vdupq_n_u32(0x0101u));
    const uint32x4_t base = vreinterpretq_u32_u8(vqtbl2q_u8(k->base, vreinterpretq_u8_u32(at)));
    /* only the lowest byte of a shift counts */
    const int32x4_t right = vreinterpretq_s32_u8(vqtbl1q_u8(k->right, vreinterpretq_u8_u32(slot))),
                    left = vnegq_s32(right);
    const uint32x4_t fraction = vandq_u32(inside, vdupq_n_u32(0x7fffffu));
    const uint32x4_t position = vsraq_n_u32(base, vshlq_u32(fraction, right), 1);
    uint32x4_t row = vaddq_u32(position, trni_act_side_neon(k->first, negative, is));
    if (is.joined) {
        const int32x4_t joint = vreinterpretq_s32_u32(trni_act_side_neon(k->joint, negative, is));
        const uint32x4_t after = vcgeq_s32(vreinterpretq_s32_u32(position), joint);
        row = vaddq_u32(row, vandq_u32(after, trni_act_side_neon(k->jump, negative, is)));
    }
    /* A bucket's lower end and the bit below: its centre. */
    uint32x4_t centre = vshlq_u32(vorrq_u32(vshlq_u32(inside, right), vdupq_n_u32(1)), left);
    if (is.two_sided) centre = vorrq_u32(centre, vandq_u32(u, sign));
    const float32x4_t d = vsubq_f32(vreinterpretq_f32_u32(x), vreinterpretq_f32_u32(centre));
    float32x4_t c[4];
    trni_act_rows_neon(p->bucket, row, c);
    const float32x4_t z = trni_act_horner_neon(c, c[0], d);
    const float32x4_t end = vreinterpretq_f32_u32(trni_act_side_neon(k->end, negative, is));
    const uint32x4_t kept = vandq_u32(x, trni_act_side_neon(k->kept, negative, is));
    const uint32x4_t there = vorrq_u32(kept, trni_act_side_neon(k->beyond, negative, is));
    const uint32x4_t beyond = vcgeq_f32(vreinterpretq_f32_u32(magnitude), end); /* false where NaN is */
    uint32x4_t y = vbslq_u32(beyond, there, vreinterpretq_u32_f32(z));
    if (!is.two_sided) y = veorq_u32(y, vandq_u32(u, vdupq_n_u32(p->flip)));
    const float32x4_t result = vreinterpretq_f32_u32(y), nan = vreinterpretq_f32_u32(vdupq_n_u32(TRNI_F32_NAN));
    return vbslq_f32(vceqq_f32(result, result), result, nan);
}

TRNI_NEON_INLINE void trni_act_all_neon(const trni_act_plan *p, float *dst, const float *src, size_t n,
                                        trni_act_shape_neon is)
{
    const trni_act_plan_neon k = trni_act_plan_of_neon(p);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(dst + i, trni_act_four_neon(p, &k, vld1q_f32(src + i), is));
    if (i == n) return;
    float four[4] = { 0 };
    memcpy(four, src + i, (n - i) * sizeof(float));
    vst1q_f32(four, trni_act_four_neon(p, &k, vld1q_f32(four), is));
    memcpy(dst + i, four, (n - i) * sizeof(float));
}

TRNI_KERNEL static void trni_simd_act_buckets_neon(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    const trni_act_shape_neon odd_or_even = { false, true }, in_one_piece = { true, false }, joined = { true, true };
    if (p->look != 0xffffffffu)
        trni_act_all_neon(p, dst, src, n, odd_or_even);
    else if (p->joint[0] == INT32_MAX && p->joint[1] == INT32_MAX)
        trni_act_all_neon(p, dst, src, n, in_one_piece);
    else
        trni_act_all_neon(p, dst, src, n, joined);
}

/* ---- power laws ---- */

/* c0 + k log 2, in binary64, rounded to binary32. */
TRNI_NEON_INLINE float32x4_t trni_act_octaves_neon(float32x4_t c0, int32x4_t k)
{
    const float64x2_t log2 = vdupq_n_f64(TRNI_ACT_LOG2);
    const float64x2_t low = vfmaq_f64(vcvt_f64_f32(vget_low_f32(c0)), vcvtq_f64_s64(vmovl_s32(vget_low_s32(k))), log2),
                      high = vfmaq_f64(vcvt_high_f64_f32(c0), vcvtq_f64_s64(vmovl_high_s32(k)), log2);
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

TRNI_NEON_INLINE float32x4_t trni_act_times_neon(float32x4_t y, int32x4_t exponent)
{
    return vmulq_f32(y, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(exponent, vdupq_n_s32(127)), 23)));
}

/* What is the same for all arguments. */
typedef struct trni_act_law_neon {
    int32x4_t period, right, left, halve;
    uint32x4_t first, half, at_infinity, at_negative, at_zero, flip;
} trni_act_law_neon;

TRNI_NEON_INLINE trni_act_law_neon trni_act_law_of_neon(const trni_act_plan *p)
{
    trni_act_law_neon k;
    k.period = vdupq_n_s32(p->period_mask);
    k.left = vdupq_n_s32((int32_t)p->shift[0]);
    k.right = vnegq_s32(k.left);
    k.halve = vdupq_n_s32(-(int32_t)p->scale_shift);
    k.first = vdupq_n_u32((uint32_t)p->first[0]);
    k.half = vdupq_n_u32(p->half[0]);
    k.at_infinity = vdupq_n_u32(p->at_infinity);
    k.at_negative = vdupq_n_u32(p->at_negative);
    k.at_zero = vdupq_n_u32(p->at_zero);
    k.flip = vdupq_n_u32(p->flip);
    return k;
}

/* `sign` is that of p->scale_sign. */
TRNI_NEON_INLINE float32x4_t trni_act_scaled_neon(const trni_act_plan *p, const trni_act_law_neon *law, const int sign,
                                                  float32x4_t argument)
{
    const uint32x4_t u = vreinterpretq_u32_f32(argument), magnitude = vbicq_u32(u, vdupq_n_u32(TRNI_F32_SIGN));
    const uint32x4_t infinity = vdupq_n_u32(TRNI_F32_INF), one = vdupq_n_u32(0x3f800000u);
    const uint32x4_t small = vcltq_u32(magnitude, vdupq_n_u32(0x00800000u));
    const float32x4_t larger = vmulq_f32(vreinterpretq_f32_u32(magnitude), vdupq_n_f32(0x1p32f));
    const uint32x4_t normal = vbslq_u32(small, vreinterpretq_u32_f32(larger), magnitude);
    const int32x4_t bias = vreinterpretq_s32_u32(vaddq_u32(vandq_u32(small, vdupq_n_u32(32)), vdupq_n_u32(127)));
    const int32x4_t exponent = vsubq_s32(vreinterpretq_s32_u32(vshrq_n_u32(normal, 23)), bias);
    const int32x4_t odd = vandq_s32(exponent, law->period), k = vsubq_s32(exponent, odd);
    const uint32x4_t within = vandq_u32(normal, vdupq_n_u32(0x7fffffu));
    const uint32x4_t m = vaddq_u32(vorrq_u32(within, one), vreinterpretq_u32_s32(vshlq_n_s32(odd, 23)));
    const uint32x4_t row = vaddq_u32(vshlq_u32(vsubq_u32(m, one), law->right), law->first);
    const uint32x4_t centre = vaddq_u32(vshlq_u32(vshlq_u32(m, law->right), law->left), law->half);
    const float32x4_t d = vsubq_f32(vreinterpretq_f32_u32(m), vreinterpretq_f32_u32(centre));
    float32x4_t c[4], z;
    trni_act_rows_neon(p->bucket, row, c);
    if (sign == 0) {
        z = trni_act_horner_neon(c, trni_act_octaves_neon(c[0], k), d);
    } else {
        const int32x4_t halved = vshlq_s32(k, law->halve), scale = sign < 0 ? vnegq_s32(halved) : halved;
        const int32x4_t most = vshrq_n_s32(scale, 1);
        z = trni_act_times_neon(trni_act_horner_neon(c, c[0], d), most);
        z = trni_act_times_neon(z, vsubq_s32(scale, most));
    }
    uint32x4_t y = vbslq_u32(vceqq_u32(magnitude, infinity), law->at_infinity, vreinterpretq_u32_f32(z));
    y = vorrq_u32(y, vandq_u32(vcltzq_s32(vreinterpretq_s32_u32(u)), law->at_negative));
    y = vbslq_u32(vceqzq_u32(magnitude), law->at_zero, y);
    y = veorq_u32(y, vandq_u32(u, law->flip));
    y = vorrq_u32(y, vcgtq_u32(magnitude, infinity)); /* NaN gives NaN */
    const float32x4_t result = vreinterpretq_f32_u32(y), nan = vreinterpretq_f32_u32(vdupq_n_u32(TRNI_F32_NAN));
    return vbslq_f32(vceqq_f32(result, result), result, nan);
}

TRNI_NEON_INLINE void trni_act_laws_neon(const trni_act_plan *p, const int sign, float *dst, const float *src, size_t n)
{
    const trni_act_law_neon law = trni_act_law_of_neon(p);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(dst + i, trni_act_scaled_neon(p, &law, sign, vld1q_f32(src + i)));
    if (i == n) return;
    float four[4] = { 0 };
    memcpy(four, src + i, (n - i) * sizeof(float));
    vst1q_f32(four, trni_act_scaled_neon(p, &law, sign, vld1q_f32(four)));
    memcpy(dst + i, four, (n - i) * sizeof(float));
}

TRNI_KERNEL static void trni_simd_act_scalings_neon(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    if (p->scale_sign == 0)
        trni_act_laws_neon(p, 0, dst, src, n);
    else if (p->scale_sign > 0)
        trni_act_laws_neon(p, 1, dst, src, n);
    else
        trni_act_laws_neon(p, -1, dst, src, n);
}

#endif /* TRNI_SIMD_ACT_NEON_H */
