/* simd/cast_avx2.h - casts of data/cast.h in AVX2: F16 by the F16C instructions, codes of a byte, stochastic ones.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: here because they are faster than the plain C bodies, and they return the same bits. Blocks of 32; a
 * block
 * that holds a NaN first makes its NaNs canonical; the tail is a block that is filled up. Included by data/cast.h only,
 * after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_DATA_CAST_H) && !defined(TRNI_SIMD_CAST_AVX2_H)
#define TRNI_SIMD_CAST_AVX2_H

#include <immintrin.h>

#define TRNI_INLINE256 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX2
#define TRNI_CAST256(name)                                                                                             \
    TRNI_KERNEL TRNI_TARGET_AVX2 static void name(void *__restrict dst, const void *__restrict src, size_t n)

/* Where a lane of 32 bits of mask is set: b; else a. (Not by bytes: gcc 12 takes their sign for that of char, so that
 * -funsigned-char would always choose a.) */
TRNI_INLINE256 __m256i trni_choose_256(__m256i a, __m256i b, __m256i mask)
{
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _mm256_castsi256_ps(mask)));
}

TRNI_INLINE256 __m256i trni_magnitude_256(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff)); }

/* Every NaN of 32 floats becomes 7fc00000 with its own sign. Found by integers: clang takes float comparisons of
 * widened halves apart, element by element. The usual block pays for one question about its largest magnitude. */
TRNI_INLINE256 void trni_canonical_32(__m256i x[4])
{
    const __m256i infinity = _mm256_set1_epi32((int)TRNI_F32_INF), nan = _mm256_set1_epi32((int)TRNI_F32_NAN);
    const __m256i most = _mm256_max_epi32(_mm256_max_epi32(trni_magnitude_256(x[0]), trni_magnitude_256(x[1])),
                                          _mm256_max_epi32(trni_magnitude_256(x[2]), trni_magnitude_256(x[3])));
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(most, infinity)) == 0) return;
    for (int i = 0; i < 4; i++) {
        const __m256i is_nan = _mm256_cmpgt_epi32(trni_magnitude_256(x[i]), infinity);
        const __m256i quiet = _mm256_or_si256(_mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), x[i]), nan);
        x[i] = trni_choose_256(x[i], quiet, is_nan);
    }
}

/* Nearest even whatever MXCSR says; VCVTPS2PH never flushes its result. */
TRNI_CAST256(trni_simd256_f32_f16)
{
    const char *x = (const char *)src;
    char *y = (char *)dst;
    for (; n >= 32; n -= 32, x += 128, y += 64) {
        __m256i v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(x + 32 * i));
        trni_canonical_32(v);
        for (int i = 0; i < 4; i++) {
            const __m128i code = _mm256_cvtps_ph(_mm256_castsi256_ps(v[i]), _MM_FROUND_TO_NEAREST_INT);
            _mm_storeu_si128((__m128i *)(void *)(y + 16 * i), code);
        }
    }
    if (n > 0) {
        char in[128] = { 0 }, out[64];
        memcpy(in, x, 4 * n);
        trni_simd256_f32_f16(out, in, 32);
        memcpy(y, out, 2 * n);
    }
}

/* VCVTPH2PS reads subnormals exactly whatever MXCSR says. */
TRNI_CAST256(trni_simd256_f16_f32)
{
    const char *x = (const char *)src;
    char *y = (char *)dst;
    for (; n >= 32; n -= 32, x += 64, y += 128) {
        __m256i v[4];
        for (int i = 0; i < 4; i++) {
            const __m128i code = _mm_loadu_si128((const __m128i *)(const void *)(x + 16 * i));
            v[i] = _mm256_castps_si256(_mm256_cvtph_ps(code));
        }
        trni_canonical_32(v);
        for (int i = 0; i < 4; i++) _mm256_storeu_si256((__m256i *)(void *)(y + 32 * i), v[i]);
    }
    if (n > 0) {
        char in[64] = { 0 }, out[128];
        memcpy(in, x, 2 * n);
        trni_simd256_f16_f32(out, in, 32);
        memcpy(y, out, 4 * n);
    }
}

/* To formats of at most 8 bits, as in simd/cast_avx512.h. AVX2 has no rounding mode in the instruction: where MXCSR
 * asks for another than nearest, these kernels do nothing. */
typedef struct trni_bytes256 {
    __m256i least, keep, join, offset, limit, alarm, sign, order;
    __m256 up;
    __m128i shift, sign_shift;
} trni_bytes256;

TRNI_INLINE256 trni_bytes256 trni_bytes256_of(const trni_rule *r)
{
    const int M = 23 - r->cut, lowest = ((r->least_normal >> 23) + r->cut) << 7; /* the pattern of +0 */
    trni_bytes256 k;
    k.least = _mm256_set1_epi32(r->least_normal);
    k.up = _mm256_castsi256_ps(_mm256_set1_epi32((127 + r->cut) << 23));
    k.keep = _mm256_set1_epi32(0x7f800000);
    k.join = _mm256_set1_epi32(1 << 16 | 1 << (7 - M));
    k.offset = _mm256_set1_epi16((short)lowest);
    k.limit = _mm256_set1_epi16((short)(r->limit << (7 - M)));
    k.alarm = _mm256_set1_epi32((int)TRNI_F32_INF - ((uint32_t)r->limit != r->overflow)); /* as in simd/cast_avx512.h */
    k.sign = _mm256_set1_epi8((char)r->sign);
    k.order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    k.shift = _mm_cvtsi32_si128(7 - M);
    k.sign_shift = _mm_cvtsi32_si128(r->sign_right - 24);
    return k;
}

TRNI_INLINE256 __m256i trni_nearest256_8(const trni_bytes256 *k, __m256i x)
{
    const __m256i m = trni_magnitude_256(x), p = _mm256_and_si256(_mm256_max_epi32(m, k->least), k->keep);
    const __m256 s = _mm256_fmadd_ps(_mm256_castsi256_ps(p), k->up, _mm256_castsi256_ps(m));
    return _mm256_madd_epi16(_mm256_castps_si256(s), k->join);
}

TRNI_INLINE256 __m256i trni_nearest256_16(const trni_bytes256 *k, const __m256i x[2])
{
    const __m256i both = _mm256_packs_epi32(trni_nearest256_8(k, x[0]), trni_nearest256_8(k, x[1]));
    return _mm256_srl_epi16(_mm256_min_epu16(_mm256_sub_epi16(both, k->offset), k->limit), k->shift);
}

/* Magnitudes in 16 bits, and the signs of x, to 32 codes in order. */
TRNI_INLINE256 __m256i trni_signed256_32(const trni_bytes256 *k, __m256i a, __m256i b, const __m256i x[4])
{
    const __m256i high = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    const __m256i sign = _mm256_and_si256(_mm256_srl_epi16(high, k->sign_shift), k->sign);
    return _mm256_permutevar8x32_epi32(_mm256_or_si256(_mm256_packus_epi16(a, b), sign), k->order);
}

TRNI_INLINE256 __m256i trni_nearest256_32(const trni_bytes256 *k, const __m256i x[4])
{
    return trni_signed256_32(k, trni_nearest256_16(k, x), trni_nearest256_16(k, x + 2), x);
}

TRNI_INLINE256 bool trni_nearest256_mode(void) { return !(_mm_getcsr() & 0x6000u); }

/* Is one of them beyond? */
TRNI_INLINE256 bool trni_alarm256_32(const __m256i x[4], __m256i alarm)
{
    const __m256i most = _mm256_max_epi32(_mm256_max_epi32(trni_magnitude_256(x[0]), trni_magnitude_256(x[1])),
                                          _mm256_max_epi32(trni_magnitude_256(x[2]), trni_magnitude_256(x[3])));
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(most, alarm)) != 0;
}

TRNI_INLINE256 void trni_load256_32(__m256i x[4], const char *from)
{
    for (int i = 0; i < 4; i++) x[i] = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * i));
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_nearest(const trni_rule *rule, trni_cast_rest *s)
{
    const trni_bytes256 k = trni_bytes256_of(rule);
    size_t at = 0;
    if (!trni_nearest256_mode()) return;
    for (; s->n - at >= 32; at += 32) {
        __m256i v[4];
        trni_load256_32(v, s->src + 4 * at);
        const __m256i line = trni_nearest256_32(&k, v);
        if (trni_alarm256_32(v, k.alarm)) break;
        _mm256_storeu_si256((__m256i *)(void *)(s->dst + at), line);
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 32) trni_cast_last(rule, s, 1, 32, trni_simd256_nearest);
}

/* Stochastic: nearest first. What that left over or took too much is exact, times 2^32 over the last place an integer
 * where it is negative, and its whole part modulo 2^32 plus the field carries where the magnitude grows. (`to_units`
 * less the pattern of 2^e is that of 2^(32+M-e); 2^31 converts to -2^31, which is the same.) */
typedef struct trni_stochastic256 {
    __m256i to_units, alarm;
    __m128i field_shift;
} trni_stochastic256;

TRNI_INLINE256 trni_stochastic256 trni_stochastic256_of(const trni_rule *r)
{
    const int32_t infinity = (int32_t)TRNI_F32_INF - ((uint32_t)r->limit != r->overflow);
    const int32_t over = (int32_t)((uint32_t)(r->limit + 1) << r->cut) + r->offset; /* the least with two fates */
    trni_stochastic256 k;
    k.to_units = _mm256_set1_epi32((int)((uint32_t)(2 * 127 + 32 + 23 - r->cut) << 23));
    k.alarm = _mm256_set1_epi32(r->beyond ? trni_least(over - 1, infinity) : infinity);
    k.field_shift = _mm_cvtsi32_si128(32 - (r->cut + r->drop - r->lift)); /* 32 - n */
    return k;
}

TRNI_INLINE256 __m256i trni_stochastic256_8(const trni_bytes256 *k, const trni_stochastic256 *t, __m256i x,
                                            const uint32_t *field)
{
    const __m256i m = trni_magnitude_256(x), p = _mm256_and_si256(_mm256_max_epi32(m, k->least), k->keep);
    const __m256 power = _mm256_castsi256_ps(p), number = _mm256_castsi256_ps(m);
    const __m256 s = _mm256_fmadd_ps(power, k->up, number);
    const __m256 rest = _mm256_sub_ps(number, _mm256_fnmadd_ps(power, k->up, s));
    const __m256 units = _mm256_castsi256_ps(_mm256_sub_epi32(t->to_units, p));
    const __m256i fraction = _mm256_cvttps_epi32(_mm256_mul_ps(rest, units));
    const __m256i any = _mm256_loadu_si256((const __m256i *)(const void *)field);
    const __m256i random = _mm256_sll_epi32(any, t->field_shift);
    /* fraction > ~random, both as signed numbers less 2^31 */
    const __m256i up = _mm256_cmpgt_epi32(_mm256_xor_si256(fraction, _mm256_set1_epi32((int)TRNI_F32_SIGN)),
                                          _mm256_xor_si256(random, _mm256_set1_epi32(0x7fffffff)));
    const __m256i down = _mm256_srai_epi32(_mm256_castps_si256(rest), 31);
    return _mm256_madd_epi16(_mm256_sub_epi32(_mm256_add_epi32(_mm256_castps_si256(s), down), up), k->join);
}

TRNI_INLINE256 __m256i trni_stochastic256_16(const trni_bytes256 *k, const trni_stochastic256 *t, const __m256i x[2],
                                             const uint32_t *field)
{
    const __m256i both =
        _mm256_packs_epi32(trni_stochastic256_8(k, t, x[0], field), trni_stochastic256_8(k, t, x[1], field + 8));
    return _mm256_srl_epi16(_mm256_min_epu16(_mm256_sub_epi16(both, k->offset), k->limit), k->shift);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_stochastic(const trni_rule *rule, trni_cast_rest *s)
{
    const trni_bytes256 k = trni_bytes256_of(rule);
    const trni_stochastic256 t = trni_stochastic256_of(rule);
    size_t at = 0;
    if (!trni_nearest256_mode()) return;
    for (; s->n - at >= 32; at += 32) {
        __m256i v[4];
        trni_load256_32(v, s->src + 4 * at);
        if (trni_alarm256_32(v, t.alarm)) break;
        const __m256i a = trni_stochastic256_16(&k, &t, v, s->field + at);
        const __m256i b = trni_stochastic256_16(&k, &t, v + 2, s->field + at + 16);
        _mm256_storeu_si256((__m256i *)(void *)(s->dst + at), trni_signed256_32(&k, a, b, v));
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 32) trni_cast_last(rule, s, 1, 32, trni_simd256_stochastic);
}

/* Stochastic to BF16: the field meets the lower half, and a carry moves on. Infinities and NaN end it. */
TRNI_INLINE256 __m256i trni_stochastic256_halves(const trni_rule *r, __m256i x, const uint32_t *field)
{
    const __m256i any = _mm256_loadu_si256((const __m256i *)(const void *)field);
    const __m256i random =
        _mm256_sll_epi32(_mm256_srl_epi32(any, _mm_cvtsi32_si128(r->drop)), _mm_cvtsi32_si128(r->lift));
    const __m256i limit = _mm256_set1_epi32((int)((uint32_t)r->limit << 16 | 0xffffu));
    const __m256i moved = _mm256_min_epi32(_mm256_add_epi32(trni_magnitude_256(x), random), limit);
    const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), x);
    return _mm256_srli_epi32(_mm256_or_si256(moved, sign), 16);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_stochastic_bf16(const trni_rule *rule, trni_cast_rest *s)
{
    const trni_rule r = *rule;
    size_t at = 0;
    for (; s->n - at >= 32; at += 32) {
        __m256i v[4];
        trni_load256_32(v, s->src + 4 * at);
        if (trni_alarm256_32(v, _mm256_set1_epi32((int)TRNI_F32_INF - 1))) break;
        for (size_t i = 0; i < 4; i++) v[i] = trni_stochastic256_halves(&r, v[i], s->field + at + 8 * i);
        for (size_t i = 0; i < 4; i += 2)
            _mm256_storeu_si256((__m256i *)(void *)(s->dst + 2 * at + 16 * i),
                                _mm256_permute4x64_epi64(_mm256_packus_epi32(v[i], v[i + 1]), 0xd8));
    }
    trni_cast_done(s, 2, at);
    if (s->n > 0 && s->n < 32) trni_cast_last(rule, s, 2, 32, trni_simd256_stochastic_bf16);
}

/* To E8M0, nearest: half a binade carries into the exponent, and from 0x600000 on also that of the subnormals. */
TRNI_INLINE256 __m256i trni_scale256_8(const trni_rule *r, __m256i x)
{
    const __m256i enough = _mm256_cmpgt_epi32(x, _mm256_set1_epi32(0x5fffff));
    const __m256i sum = _mm256_and_si256(_mm256_add_epi32(x, _mm256_set1_epi32(0x400000)), enough);
    const __m256i code = _mm256_min_epi32(_mm256_srli_epi32(sum, 23), _mm256_set1_epi32(r->limit));
    const __m256i positive = _mm256_cmpgt_epi32(x, _mm256_setzero_si256());
    const __m256i number = trni_choose_256(_mm256_set1_epi32((int)r->nothing), code, positive);
    const __m256i special = _mm256_cmpgt_epi32(trni_magnitude_256(x), _mm256_set1_epi32((int)TRNI_F32_INF - 1));
    return trni_choose_256(number, _mm256_set1_epi32((int)r->nan), special);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_scale(const trni_rule *rule, trni_cast_rest *s)
{
    const trni_rule r = *rule;
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t at = 0;
    for (; s->n - at >= 32; at += 32) {
        __m256i v[4];
        trni_load256_32(v, s->src + 4 * at);
        for (int i = 0; i < 4; i++) v[i] = trni_scale256_8(&r, v[i]);
        const __m256i both = _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
        _mm256_storeu_si256((__m256i *)(void *)(s->dst + at), _mm256_permutevar8x32_epi32(both, order));
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 32) trni_cast_last(rule, s, 1, 32, trni_simd256_scale);
}

#undef TRNI_INLINE256
#undef TRNI_CAST256
#endif /* TRNI_SIMD_CAST_AVX2_H */
