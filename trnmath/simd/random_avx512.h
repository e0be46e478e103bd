/* simd/random_avx512.h - the random words of trn_random.h in AVX-512.
 * Behind trn_random.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: here because it is faster than the plain C body (2.3 to 2.9 times), and it returns the same bits.
 * Included
 * by number/random.h only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 *
 * A block is ten dependent multiplications long, and the processor sees about two groups of eight blocks ahead: six
 * groups side by side are 1.8 times as fast as one, and seven no longer fit the registers (measured, Zen 5).
 */
#if defined(TRNI_NUMBER_RANDOM_H) && !defined(TRNI_SIMD_RANDOM_AVX512_H)
#define TRNI_SIMD_RANDOM_AVX512_H

#include <immintrin.h>

#define TRNI_INLINE512 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX512
#if TRNI_CLANG
#define TRNI_EACH_GROUP _Pragma("clang loop unroll(full)") for (int g = 0; g < groups; g++)
#define TRNI_EACH_ROUND _Pragma("clang loop unroll(full)") for (int r = 0; r < 8; r++)
#else
#define TRNI_EACH_GROUP _Pragma("GCC unroll 8") for (int g = 0; g < groups; g++)
#define TRNI_EACH_ROUND _Pragma("GCC unroll 2") for (int r = 0; r < 8; r++) /* one at a time: 0.7 of the speed */
#endif
enum { TRNI_SIMD512_GROUPS = 6 };

/* All lanes are named, because g++ 12 warns of its own header's forms without a mask; the code is the same.
 * VPMULUDQ reads the low half of a 64-bit lane and ignores the high one, so a product's low half is used as it stands
 * and only the high half must move (a shuffle: on some processors shifts wait for the multiplier's port). */
TRNI_INLINE512 __m512i trni_simd512_multiply(__m512i a, __m512i b) { return _mm512_maskz_mul_epu32(0xff, a, b); }
TRNI_INLINE512 __m512i trni_simd512_high(__m512i product)
{
    return _mm512_maskz_shuffle_epi32(0xffff, product, _MM_PERM_DDBB);
}

TRNI_INLINE512 __m512i trni_simd512_xor3(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

/* Four words of eight blocks, each in the low half of its 64-bit lane, into the order of memory. */
TRNI_INLINE512 void trni_simd512_store(uint32_t *word, const __m512i c[4])
{
    const __m512i front = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i back = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    const __m512i w01 = _mm512_mask_shuffle_epi32(c[0], 0xaaaa, c[1], _MM_PERM_CCAA);
    const __m512i w23 = _mm512_mask_shuffle_epi32(c[2], 0xaaaa, c[3], _MM_PERM_CCAA);
    _mm512_storeu_si512(word, _mm512_permutex2var_epi64(w01, front, w23));
    _mm512_storeu_si512(word + 16, _mm512_permutex2var_epi64(w01, back, w23));
}

/* 8 · groups blocks, one per 64-bit lane. */
TRNI_INLINE512 void trni_simd512_philox(uint32_t *word, const int groups, uint32_t b, const trni_philox_run *run)
{
    const __m512i m0 = _mm512_set1_epi64(TRNI_PHILOX_M0), m1 = _mm512_set1_epi64(TRNI_PHILOX_M1);
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), one = _mm512_set1_epi32((int)run->one);
    const __m512i two = _mm512_set1_epi32((int)run->two), three = _mm512_set1_epi32((int)run->three);
    __m512i c[TRNI_SIMD512_GROUPS][4];
    TRNI_EACH_GROUP
    {
        const __m512i block = _mm512_add_epi32(lane, _mm512_set1_epi32((int)(b + 8 * (uint32_t)g)));
        const __m512i p0 = trni_simd512_multiply(block, m0);
        const __m512i p1 = trni_simd512_multiply(_mm512_xor_si512(trni_simd512_high(p0), one), m1);
        c[g][0] = _mm512_xor_si512(trni_simd512_high(p1), two);
        c[g][1] = p1;
        c[g][2] = _mm512_xor_si512(p0, three);
        c[g][3] = _mm512_setzero_si512();
    }
    TRNI_EACH_ROUND
    {
        const __m512i k0 = _mm512_set1_epi32((int)run->key[r][0]), k1 = _mm512_set1_epi32((int)run->key[r][1]);
        TRNI_EACH_GROUP
        {
            const __m512i p0 = trni_simd512_multiply(c[g][0], m0), p1 = trni_simd512_multiply(c[g][2], m1);
            c[g][0] = trni_simd512_xor3(trni_simd512_high(p1), c[g][1], k0);
            c[g][1] = p1;
            c[g][2] = trni_simd512_xor3(trni_simd512_high(p0), c[g][3], k1);
            c[g][3] = p0;
        }
    }
    TRNI_EACH_GROUP trni_simd512_store(word + 32 * g, c[g]);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd512_philox_blocks(uint32_t *__restrict word, size_t blocks,
                                                                      uint32_t b, const trni_philox_run *__restrict run)
{
    enum { most = 8 * TRNI_SIMD512_GROUPS };
    for (; blocks >= most; blocks -= most, b += most, word += 4 * most)
        trni_simd512_philox(word, TRNI_SIMD512_GROUPS, b, run);
    trni_simd256_philox_blocks(word, blocks, b, run);
}

#undef TRNI_EACH_ROUND
#undef TRNI_EACH_GROUP
#undef TRNI_INLINE512
#endif /* TRNI_SIMD_RANDOM_AVX512_H */
