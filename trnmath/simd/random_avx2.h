/* simd/random_avx2.h - the random words of trn_random.h in AVX2.
 * Behind trn_random.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: here because it is faster than the plain C body (1.3 times clang's code for it, 1.8 times gcc's),
 * and it
 * returns the same bits. The AVX-512 SIMD kernel tells how it works; here four groups of four blocks go side by side.
 * Included by number/random.h only, after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_NUMBER_RANDOM_H) && !defined(TRNI_SIMD_RANDOM_AVX2_H)
#define TRNI_SIMD_RANDOM_AVX2_H

#include <immintrin.h>

#define TRNI_INLINE256 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX2
#if TRNI_CLANG
#define TRNI_EACH_GROUP _Pragma("clang loop unroll(full)") for (int g = 0; g < groups; g++)
#define TRNI_EACH_ROUND _Pragma("clang loop unroll(full)") for (int r = 0; r < 8; r++)
#else
#define TRNI_EACH_GROUP _Pragma("GCC unroll 8") for (int g = 0; g < groups; g++)
#define TRNI_EACH_ROUND TRNI_ROLLED for (int r = 0; r < 8; r++) /* as fast (measured, gcc 12), and half the bytes */
#endif
/* A round waits for its products longer than it computes: three groups hide that where the compiler keeps them in the
 * sixteen registers (clang: 1.17 times the speed of four). gcc does not, and takes two (1.08 times). */
enum { TRNI_SIMD256_GROUPS = TRNI_CLANG ? 3 : 2 };

TRNI_INLINE256 __m256i trni_simd256_high(__m256i product) { return _mm256_shuffle_epi32(product, 0xf5); }

/* a ^ b, before it meets a product that takes longer: gcc puts the key last otherwise, where the next product waits for
 * it. */
TRNI_INLINE256 __m256i trni_simd256_early(__m256i a, __m256i b)
{
    __m256i c = _mm256_xor_si256(a, b);
    if (!TRNI_CLANG) __asm__("" : "+x"(c));
    return c;
}

TRNI_INLINE256 void trni_simd256_store(uint32_t *word, const __m256i c[4])
{
    const __m256i w01 = _mm256_blend_epi32(c[0], _mm256_shuffle_epi32(c[1], 0xa0), 0xaa);
    const __m256i w23 = _mm256_blend_epi32(c[2], _mm256_shuffle_epi32(c[3], 0xa0), 0xaa);
    const __m256i even = _mm256_unpacklo_epi64(w01, w23), odd = _mm256_unpackhi_epi64(w01, w23);
    _mm256_storeu_si256((__m256i *)(void *)word, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(word + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

/* 4 · groups blocks, one per 64-bit lane. */
TRNI_INLINE256 void trni_simd256_philox(uint32_t *word, const int groups, uint32_t b, const trni_philox_run *run)
{
    const __m256i m0 = _mm256_set1_epi64x(TRNI_PHILOX_M0), m1 = _mm256_set1_epi64x(TRNI_PHILOX_M1);
    const __m256i lane = _mm256_set_epi64x(3, 2, 1, 0), one = _mm256_set1_epi32((int)run->one);
    const __m256i two = _mm256_set1_epi32((int)run->two), three = _mm256_set1_epi32((int)run->three);
    __m256i c[TRNI_SIMD256_GROUPS][4];
    TRNI_EACH_GROUP
    {
        const __m256i block = _mm256_add_epi32(lane, _mm256_set1_epi32((int)(b + 4 * (uint32_t)g)));
        const __m256i p0 = _mm256_mul_epu32(block, m0);
        const __m256i p1 = _mm256_mul_epu32(_mm256_xor_si256(trni_simd256_high(p0), one), m1);
        c[g][0] = _mm256_xor_si256(trni_simd256_high(p1), two);
        c[g][1] = p1;
        c[g][2] = _mm256_xor_si256(p0, three);
        c[g][3] = _mm256_setzero_si256();
    }
    TRNI_EACH_ROUND
    {
        const __m256i k0 = _mm256_set1_epi32((int)run->key[r][0]), k1 = _mm256_set1_epi32((int)run->key[r][1]);
        TRNI_EACH_GROUP
        {
            const __m256i p0 = _mm256_mul_epu32(c[g][0], m0), p1 = _mm256_mul_epu32(c[g][2], m1);
            c[g][0] = _mm256_xor_si256(trni_simd256_high(p1), trni_simd256_early(c[g][1], k0));
            c[g][1] = p1;
            c[g][2] = _mm256_xor_si256(trni_simd256_high(p0), trni_simd256_early(c[g][3], k1));
            c[g][3] = p0;
        }
    }
    TRNI_EACH_GROUP trni_simd256_store(word + 16 * g, c[g]);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd256_philox_blocks(uint32_t *__restrict word, size_t blocks,
                                                                    uint32_t b, const trni_philox_run *__restrict run)
{
    enum { most = 4 * TRNI_SIMD256_GROUPS };
    for (; blocks > 0; b += most, word += 4 * most) {
        uint32_t last[4 * most]; /* more words than are left */
        const bool whole = blocks >= most;
        trni_simd256_philox(whole ? word : last, TRNI_SIMD256_GROUPS, b, run);
        if (!whole) memcpy(word, last, 16 * blocks);
        blocks -= whole ? (size_t)most : blocks;
    }
}

#undef TRNI_EACH_ROUND
#undef TRNI_EACH_GROUP
#undef TRNI_INLINE256
#endif /* TRNI_SIMD_RANDOM_AVX2_H */
