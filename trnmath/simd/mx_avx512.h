/* simd/mx_avx512.h - block scaling of trn_mx.h in AVX-512: the scales of sixteen blocks at once, the cast right after.
 * Behind trn_mx.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: here because it is faster than the plain C bodies (twice, measured with both compilers), and it
 * returns the
 * same bits. Sixteen blocks of which one has NaN, infinity or an unusual scale, and fewer than sixteen, go to the plain
 * kernel. Included by trn_mx.h only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_MX_H
#include "../trn_mx.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_MX_AVX512_H)
#define TRNI_SIMD_MX_AVX512_H

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

#undef TRNI_INLINE512
TRNI_SIMD_END
#endif /* TRNI_SIMD_MX_AVX512_H */
