/* simd/cast_avx2.h - F16 casts of data/cast.h by the F16C instructions, 256 bits wide.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: here because they are faster than the plain C bodies, and they return the same bits. Blocks of 32; a
 * block
 * that holds a NaN first makes its NaNs canonical; the tail is a block that is filled up. Included by data/cast.h only,
 * after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRNI_DATA_CAST_H
#include "../data/cast.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_CAST_AVX2_H)
#define TRNI_SIMD_CAST_AVX2_H

#include <immintrin.h>

#define TRNI_INLINE256 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX2
#define TRNI_CAST256(name)                                                                                             \
    TRNI_KERNEL TRNI_TARGET_AVX2 static void name(void *__restrict dst, const void *__restrict src, size_t n)

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
        x[i] = _mm256_blendv_epi8(x[i], quiet, is_nan);
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

/* Nearest even to formats of at most 8 bits, as in simd/cast_avx512.h. AVX2 has no rounding mode in the instruction:
 * where MXCSR asks for another than nearest, it does nothing. */
typedef struct trni_nearest256 {
    __m256i least, keep, join, offset, limit, alarm, sign, order;
    __m256 up;
    __m128i shift, sign_shift;
} trni_nearest256;

TRNI_INLINE256 trni_nearest256 trni_nearest256_of(const trni_rule *r)
{
    const int M = 23 - r->cut, lowest = ((r->least_normal >> 23) + r->cut) << 7; /* the pattern of +0 */
    trni_nearest256 k;
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

TRNI_INLINE256 __m256i trni_nearest256_8(const trni_nearest256 *k, __m256i x)
{
    const __m256i m = trni_magnitude_256(x), p = _mm256_and_si256(_mm256_max_epi32(m, k->least), k->keep);
    const __m256 s = _mm256_fmadd_ps(_mm256_castsi256_ps(p), k->up, _mm256_castsi256_ps(m));
    return _mm256_madd_epi16(_mm256_castps_si256(s), k->join);
}

TRNI_INLINE256 __m256i trni_nearest256_16(const trni_nearest256 *k, const __m256i x[2])
{
    const __m256i both = _mm256_packs_epi32(trni_nearest256_8(k, x[0]), trni_nearest256_8(k, x[1]));
    return _mm256_sub_epi16(both, k->offset);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_nearest(const trni_rule *rule, trni_cast_rest *s)
{
    const trni_nearest256 k = trni_nearest256_of(rule);
    const char *x = s->src;
    size_t at = 0;
    if (_mm_getcsr() & 0x6000u) return;
    for (; s->n - at >= 32; at += 32) {
        __m256i v[4];
        for (size_t i = 0; i < 4; i++) v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(x + 4 * at + 32 * i));
        const __m256i a = trni_nearest256_16(&k, v), b = trni_nearest256_16(&k, v + 2);
        const __m256i most = _mm256_max_epi32(_mm256_max_epi32(trni_magnitude_256(v[0]), trni_magnitude_256(v[1])),
                                              _mm256_max_epi32(trni_magnitude_256(v[2]), trni_magnitude_256(v[3])));
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(most, k.alarm))) break;
        const __m256i code = _mm256_packus_epi16(_mm256_srl_epi16(_mm256_min_epu16(a, k.limit), k.shift),
                                                 _mm256_srl_epi16(_mm256_min_epu16(b, k.limit), k.shift));
        const __m256i high = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
        const __m256i sign = _mm256_and_si256(_mm256_srl_epi16(high, k.sign_shift), k.sign);
        const __m256i line = _mm256_permutevar8x32_epi32(_mm256_or_si256(code, sign), k.order);
        _mm256_storeu_si256((__m256i *)(void *)(s->dst + at), line);
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 32) trni_cast_last(rule, s, 1, 32, trni_simd256_nearest);
}

#undef TRNI_INLINE256
#undef TRNI_CAST256
#endif /* TRNI_SIMD_CAST_AVX2_H */
