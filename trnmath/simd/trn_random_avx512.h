/* trn_random_avx512.h - the random words of trn_random.h in AVX-512.
 * SPDX-License-Identifier: MIT
 *
 * A guest: here because it is faster than the plain C body, and it returns the same bits. Included by trn_random.h only,
 * after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_RANDOM_H
#include "../trn_random.h" /* which includes this file where it belongs */
#elif !defined(TRN_RANDOM_AVX512_H)
#define TRN_RANDOM_AVX512_H

#include <immintrin.h>

/* Philox4x32-10 on eight blocks, one per 64-bit lane: VPMULUDQ reads the low half of a lane and ignores the high one,
 * so the low half of a product is used as it stands and only the high half must move (a shuffle: shifts would wait for
 * the multiplier's port). */
static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 void trni_random_philox_8(__m512i c[4],
                                                                                                  uint64_t seed)
{
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const __m512i p0 = _mm512_mul_epu32(c[0], m0), p1 = _mm512_mul_epu32(c[2], m1);
        const __m512i key0 = _mm512_set1_epi32((int)k0), key1 = _mm512_set1_epi32((int)k1);
        c[0] = _mm512_ternarylogic_epi32(_mm512_shuffle_epi32(p1, _MM_PERM_DDBB), c[1], key0, 0x96); /* a ^ b ^ c */
        c[1] = p1;
        c[2] = _mm512_ternarylogic_epi32(_mm512_shuffle_epi32(p0, _MM_PERM_DDBB), c[3], key1, 0x96);
        c[3] = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_random_blocks_guest512(uint32_t *__restrict word, size_t blocks,
                                                                       uint64_t first_block, uint64_t seed,
                                                                       uint64_t stream)
{
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), low = _mm512_set1_epi64(0xffffffff);
    const __m512i front = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i back = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    for (; blocks >= 8; blocks -= 8, first_block += 8, word += 32) {
        const __m512i block = _mm512_add_epi64(_mm512_set1_epi64((long long)first_block), lane);
        __m512i c[4] = { block, _mm512_srli_epi64(block, 32), _mm512_set1_epi64((long long)stream),
                         _mm512_set1_epi64((long long)(stream >> 32)) };
        trni_random_philox_8(c, seed);
        const __m512i w01 = _mm512_or_si512(_mm512_and_si512(c[0], low), _mm512_slli_epi64(c[1], 32));
        const __m512i w23 = _mm512_or_si512(_mm512_and_si512(c[2], low), _mm512_slli_epi64(c[3], 32));
        _mm512_storeu_si512(word, _mm512_permutex2var_epi64(w01, front, w23));
        _mm512_storeu_si512(word + 16, _mm512_permutex2var_epi64(w01, back, w23));
    }
    trni_random_blocks_avx512(word, blocks, first_block, seed, stream);
}

#endif /* TRN_RANDOM_AVX512_H */
