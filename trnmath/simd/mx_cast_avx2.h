/* simd/mx_cast_avx2.h - block scaling in AVX2: the scales of eight blocks at once, casts right after, and back.
 * Behind trn_mx.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: here because it is faster than the plain C bodies, and it returns the same bits. Eight blocks of which
 * one has NaN, infinity or an unusual scale, and fewer than eight, go to the plain kernel. Included by data/mx_cast.h
 * only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_DATA_MX_CAST_H) && !defined(TRNI_SIMD_MX_CAST_AVX2_H)
#define TRNI_SIMD_MX_CAST_AVX2_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

enum { TRNI_MX256_BLOCKS = 8 };

#define TRNI_INLINE256 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX2

/* The largest magnitudes of a block, eight lanes of them. */
TRNI_INLINE256 __m256i trni_mx256_one(const char *x)
{
    __m256i v[4];
    trni_load256_32(v, x);
    for (int i = 0; i < 4; i++) v[i] = trni_magnitude_256(v[i]);
    return _mm256_max_epi32(_mm256_max_epi32(v[0], v[1]), _mm256_max_epi32(v[2], v[3]));
}

/* Two blocks become one register, half the lanes for each: first of 32-bit lanes, then of pairs. */
TRNI_INLINE256 __m256i trni_mx256_two(const char *x)
{
    const __m256i a = trni_mx256_one(x), b = trni_mx256_one(x + 4 * TRN_MX_BLOCK);
    return _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

TRNI_INLINE256 __m256i trni_mx256_four(const char *x)
{
    const __m256i a = trni_mx256_two(x), b = trni_mx256_two(x + 8 * TRN_MX_BLOCK);
    return _mm256_max_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* amax of eight blocks, in order. */
TRNI_INLINE256 __m256i trni_mx256_amax(const char *x)
{
    const __m256i a = trni_mx256_four(x), b = trni_mx256_four(x + 16 * TRN_MX_BLOCK);
    return _mm256_max_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* trni_mx_code, for an amax that is normal and finite: no code reaches 255, since emax >= 2 here. */
TRNI_INLINE256 __m256i trni_mx256_code(__m256i amax, trni_mx_rule r)
{
    const __m256i exponent = _mm256_srli_epi32(_mm256_add_epi32(amax, _mm256_set1_epi32(r.up)), 23);
    return _mm256_max_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(r.offset)), _mm256_setzero_si256());
}

/* As trni_mx_step says it. All zeros are usual, too: their code is 0, and any factor does. */
TRNI_INLINE256 bool trni_mx256_usual(__m256i amax, __m256i code)
{
    const __m256i some = _mm256_cmpgt_epi32(amax, _mm256_setzero_si256());
    const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(TRNI_MX_LEAST_NEAREST), code);
    const __m256i large = _mm256_cmpgt_epi32(amax, _mm256_set1_epi32((int)TRNI_F32_INF - 1));
    return !_mm256_movemask_epi8(_mm256_or_si256(_mm256_and_si256(some, small), large));
}

/* Eight blocks; false, and nothing written, when they are not all usual. */
TRNI_INLINE256 bool trni_mx256_eight(const trni_bytes256 *k, char *y, unsigned char *scale, const char *x,
                                     trni_mx_rule r)
{
    float factor[TRNI_MX256_BLOCKS];
    const __m256i amax = trni_mx256_amax(x), code = trni_mx256_code(amax, r);
    const __m256i inverse = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_set1_epi32(254), code), 23);
    if (!trni_mx256_usual(amax, code)) return false;
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
    _mm_storel_epi64((__m128i *)(void *)scale, _mm_packus_epi16(half, half));
    _mm256_storeu_si256((__m256i *)(void *)factor, inverse);
    for (int b = 0; b < TRNI_MX256_BLOCKS; b++, x += 4 * TRN_MX_BLOCK, y += TRN_MX_BLOCK) {
        __m256i v[4];
        trni_load256_32(v, x);
        for (int i = 0; i < 4; i++)
            v[i] = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(v[i]), _mm256_set1_ps(factor[b])));
        /* all finite, and saturating: always the whole answer */
        _mm256_storeu_si256((__m256i *)(void *)y, trni_nearest256_32(k, v));
    }
    return true;
}

/* n blocks of binary32 in a row to codes of `rule`, nearest even and saturating, and their scales. */
TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_mx_simd256_blocks(const trni_encoder *e, char *__restrict y,
                                                                unsigned char *__restrict scale,
                                                                const char *__restrict x, size_t n, trni_mx_rule r)
{
    const trni_bytes256 k = trni_bytes256_of(&e->rule);
    const bool nearest = trni_nearest256_mode();
    for (size_t take, all; n > 0; n -= take, x += 4 * all, y += all, scale += take) {
        uint32_t divided[(int)TRNI_MX256_BLOCKS * TRN_MX_BLOCK];
        take = n < TRNI_MX256_BLOCKS ? n : (size_t)TRNI_MX256_BLOCKS;
        all = take * TRN_MX_BLOCK;
        if (nearest && take == TRNI_MX256_BLOCKS && trni_mx256_eight(&k, y, scale, x, r)) continue;
        trni_mx_blocks_avx2(divided, scale, x, take, r, TRNI_MX_LEAST_NEAREST);
        trni_encoder_run(e, y, divided, NULL, all);
    }
}

/* ---- back ---- */

/* Sixteen codes of a float format as F16: the same fields, with another bias; the factor makes up for that. */
TRNI_INLINE256 __m256i trni_mx256_halves(const trni_mx_half *h, const char *x)
{
    const __m256i code = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)x));
    const __m256i magnitude =
        _mm256_and_si256(_mm256_sll_epi16(code, _mm_cvtsi32_si128(h->up)), _mm256_set1_epi16((short)h->keep));
    const __m256i sign = _mm256_sll_epi16(code, _mm_cvtsi32_si128(h->sign_up));
    return _mm256_or_si256(magnitude, _mm256_and_si256(sign, _mm256_set1_epi16((short)0x8000)));
}

TRNI_INLINE256 void trni_mx256_times(char *y, const trni_mx_half *h, const char *x, __m256 factor)
{
    for (int i = 0; i < 2; i++, y += 64) {
        const __m256i half = trni_mx256_halves(h, x + 16 * i);
        const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
        const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
        _mm256_storeu_ps((float *)(void *)y, _mm256_mul_ps(low, factor));
        _mm256_storeu_ps((float *)(void *)(y + 32), _mm256_mul_ps(high, factor));
    }
}

/* Are all codes of a block finite numbers? */
TRNI_INLINE256 bool trni_mx256_finite(const trni_mx_half *h, const char *x)
{
    const __m256i code = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i m = _mm256_and_si256(code, _mm256_set1_epi8((char)h->mask)), max = _mm256_set1_epi8((char)h->max);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(m, max), max)) == -1;
}

/* How many blocks from the first on are finite and have usual scales: all these are done. */
TRNI_KERNEL TRNI_TARGET_AVX2 static size_t trni_mx_simd256_times(const trni_mx_half *h, void *out, const char *x,
                                                                 const unsigned char *scale, size_t n)
{
    const trni_mx_half half = *h;
    char *y = (char *)out;
    size_t b = 0;
    for (; b < n; b++, x += TRN_MX_BLOCK, y += 4 * TRN_MX_BLOCK) {
        if (!trni_mx_times_is_usual(scale[b]) || !trni_mx256_finite(&half, x)) break;
        const __m256i factor = _mm256_set1_epi32((int)((uint32_t)(scale[b] + half.rebias) << 23));
        trni_mx256_times(y, &half, x, _mm256_castsi256_ps(factor));
    }
    return b;
}

#undef TRNI_INLINE256
TRNI_SIMD_END
#endif /* TRNI_SIMD_MX_CAST_AVX2_H */
