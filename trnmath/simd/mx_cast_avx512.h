/* simd/mx_cast_avx512.h - block scaling in AVX-512: the scales of sixteen blocks at once, the cast right after.
 * Behind trn_mx.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: here because it is faster than the plain C bodies (twice, measured with both compilers), and it
 * returns the
 * same bits. Sixteen blocks of which one has NaN, infinity or an unusual scale, and fewer than sixteen, go to the plain
 * kernel. Included by data/mx_cast.h only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_DATA_MX_CAST_H) && !defined(TRNI_SIMD_MX_CAST_AVX512_H)
#define TRNI_SIMD_MX_CAST_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

enum { TRNI_MX512_BLOCKS = 16 };

#define TRNI_INLINE512 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX512

/* The larger magnitude of each lane of a block's two halves. */
TRNI_INLINE512 __m512i trni_mx512_halves(const char *x)
{
    const __m512i bits = _mm512_set1_epi32(0x7fffffff);
    return _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x), bits),
                            _mm512_and_si512(_mm512_loadu_si512(x + 64), bits));
}

/* Two blocks become one register, half the lanes for each: first of 32-bit lanes, then of pairs. */
TRNI_INLINE512 __m512i trni_mx512_two(const char *x)
{
    const __m512i a = trni_mx512_halves(x), b = trni_mx512_halves(x + 4 * TRN_MX_BLOCK);
    return _mm512_max_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

TRNI_INLINE512 __m512i trni_mx512_four(const char *x)
{
    const __m512i a = trni_mx512_two(x), b = trni_mx512_two(x + 8 * TRN_MX_BLOCK);
    return _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* And then of quarters of a register, each of which holds the same four blocks. */
TRNI_INLINE512 __m512i trni_mx512_quarters(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/* amax of sixteen blocks, in order. */
TRNI_INLINE512 __m512i trni_mx512_amax(const char *x)
{
    const size_t four = 16 * TRN_MX_BLOCK; /* bytes of four blocks */
    const __m512i first = trni_mx512_quarters(trni_mx512_four(x), trni_mx512_four(x + four));
    const __m512i second = trni_mx512_quarters(trni_mx512_four(x + 2 * four), trni_mx512_four(x + 3 * four));
    return trni_mx512_quarters(first, second);
}

/* trni_mx_code, for an amax that is normal and finite: no code reaches 255, since emax >= 2 here. */
TRNI_INLINE512 __m512i trni_mx512_code(__m512i amax, trni_mx_rule r)
{
    const __m512i exponent = _mm512_srli_epi32(_mm512_add_epi32(amax, _mm512_set1_epi32(r.up)), 23);
    return _mm512_max_epi32(_mm512_add_epi32(exponent, _mm512_set1_epi32(r.offset)), _mm512_setzero_si512());
}

/* As trni_mx_step says it. All zeros are usual, too: their code is 0, and any factor does. */
TRNI_INLINE512 bool trni_mx512_usual(__m512i amax, __m512i code)
{
    const __m512i infinity = _mm512_set1_epi32((int)TRNI_F32_INF), least = _mm512_set1_epi32(TRNI_MX_LEAST_NEAREST);
    const __mmask16 some = _mm512_test_epi32_mask(amax, amax), small = _mm512_mask_cmplt_epi32_mask(some, code, least);
    return _mm512_kortestz(small, _mm512_cmpge_epi32_mask(amax, infinity));
}

/* Sixteen blocks; false, and nothing written, when they are not all usual. */
TRNI_INLINE512 bool trni_mx512_sixteen(const trni_bytes512 *k, char *y, unsigned char *scale, const char *x,
                                       trni_mx_rule r)
{
    float factor[TRNI_MX512_BLOCKS];
    const __m512i amax = trni_mx512_amax(x), code = trni_mx512_code(amax, r);
    trni_ahead(x, 8192, 4 * TRNI_MX512_BLOCKS * TRN_MX_BLOCK); /* from memory: twice the speed, measured */
    if (!trni_mx512_usual(amax, code)) return false;
    _mm_storeu_si128((__m128i *)(void *)scale, _mm512_cvtepi32_epi8(code));
    _mm512_storeu_si512(factor, _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(254), code), 23));
    for (int b = 0; b < TRNI_MX512_BLOCKS; b += 2, x += 8 * TRN_MX_BLOCK, y += 2 * TRN_MX_BLOCK) {
        __m512 v[4];
        __m512i line;
        for (int i = 0; i < 4; i++)
            v[i] = _mm512_mul_ps(_mm512_loadu_ps(x + 64 * i), _mm512_set1_ps(factor[b + i / 2]));
        (void)trni_bytes_64(k, &line, v, false, NULL); /* all finite, and saturating: always the whole answer */
        _mm512_storeu_si512(y, line);
    }
    return true;
}

/* n blocks of binary32 in a row to codes of `rule`, nearest even and saturating, and their scales. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_mx_simd_blocks(const trni_encoder *e, char *__restrict y,
                                                               unsigned char *__restrict scale,
                                                               const char *__restrict x, size_t n, trni_mx_rule r)
{
    const trni_bytes512 k = trni_bytes512_of(&e->rule);
    for (size_t take, all; n > 0; n -= take, x += 4 * all, y += all, scale += take) {
        uint32_t divided[(int)TRNI_MX512_BLOCKS * TRN_MX_BLOCK];
        take = n < TRNI_MX512_BLOCKS ? n : (size_t)TRNI_MX512_BLOCKS;
        all = take * TRN_MX_BLOCK;
        if (take == TRNI_MX512_BLOCKS && trni_mx512_sixteen(&k, y, scale, x, r)) continue;
        trni_mx_blocks_avx512(divided, scale, x, take, r, TRNI_MX_LEAST_NEAREST);
        trni_encoder_run(e, y, divided, NULL, all);
    }
}

/* ---- back ---- */

/* Thirty-two codes of a float format as F16: the same fields, with another bias; the factor makes up for that. */
TRNI_INLINE512 __m512i trni_mx512_as_f16(const trni_mx_half *h, __m256i codes)
{
    const __m512i code = _mm512_cvtepu8_epi16(codes), sign = _mm512_set1_epi16((short)0x8000);
    const __m512i magnitude =
        _mm512_and_si512(_mm512_sll_epi16(code, _mm_cvtsi32_si128(h->up)), _mm512_set1_epi16((short)h->keep));
    /* the sign's bit of one, the other bits of the other */
    return _mm512_ternarylogic_epi32(sign, _mm512_sll_epi16(code, _mm_cvtsi32_si128(h->sign_up)), magnitude, 0xca);
}

/* (gcc's macro for -O0 passes a mask of all lanes to a signed parameter, where the user would be warned of it.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
TRNI_INLINE512 __m512 trni_mx512_floats(__m256i half) { return _mm512_cvt_roundph_ps(half, _MM_FROUND_NO_EXC); }
#pragma GCC diagnostic pop

/* How many blocks from the first on are finite and have usual scales: all these are done. */
TRNI_KERNEL TRNI_TARGET_AVX512 static size_t trni_mx_simd_times(const trni_mx_half *h, void *out, const char *x,
                                                                const unsigned char *scale, size_t n)
{
    const trni_mx_half half = *h;
    const __m256i mask = _mm256_set1_epi8((char)half.mask), max = _mm256_set1_epi8((char)half.max);
    char *y = (char *)out;
    size_t b = 0;
    for (; b < n; b++, x += TRN_MX_BLOCK, y += 4 * TRN_MX_BLOCK) {
        const __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)x);
        if (!trni_mx_times_is_usual(scale[b]) || _mm256_cmpgt_epu8_mask(_mm256_and_si256(codes, mask), max)) break;
        const __m512i halves = trni_mx512_as_f16(&half, codes);
        const __m512 factor = _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)(scale[b] + half.rebias) << 23)));
        const __m512 low = trni_mx512_floats(_mm512_castsi512_si256(halves));
        const __m512 high = trni_mx512_floats(_mm512_extracti64x4_epi64(halves, 1));
        _mm512_storeu_ps(y, _mm512_mul_ps(low, factor));
        _mm512_storeu_ps(y + 64, _mm512_mul_ps(high, factor));
    }
    return b;
}

#undef TRNI_INLINE512
TRNI_SIMD_END
#endif /* TRNI_SIMD_MX_CAST_AVX512_H */
