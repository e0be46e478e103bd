/* twin_random.h - the slow twin's random words: Philox4x32-10 by 16-bit limbs, and the field rule.
 * SPDX-License-Identifier: MIT
 *
 * Written from the paper (Salmon, Moraes, Dror, Shaw, SC 2011, section 3.3), with schoolbook multiplication.
 */
#ifndef TWIN_RANDOM_H
#define TWIN_RANDOM_H

#include <stdint.h>

/* a * b as two words, by four partial products of 16 bits each. */
static inline void twin_multiply32(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low)
{
    const uint32_t a0 = a & 0xffffu, a1 = a >> 16, b0 = b & 0xffffu, b1 = b >> 16;
    const uint32_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
    const uint32_t middle = (p00 >> 16) + (p01 & 0xffffu) + (p10 & 0xffffu);
    *low = (p00 & 0xffffu) | middle << 16;
    *high = p11 + (p01 >> 16) + (p10 >> 16) + (middle >> 16);
}

static inline void twin_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x[4] = { counter[0], counter[1], counter[2], counter[3] }, k[2] = { key[0], key[1] };
    for (int round = 1; round <= 10; round++) {
        uint32_t high0, low0, high1, low1;
        twin_multiply32(x[0], 0xD2511F53u, &high0, &low0);
        twin_multiply32(x[2], 0xCD9E8D57u, &high1, &low1);
        const uint32_t next[4] = { high1 ^ x[1] ^ k[0], low1, high0 ^ x[3] ^ k[1], low0 };
        for (int i = 0; i < 4; i++) x[i] = next[i];
        k[0] += 0x9E3779B9u; /* the Weyl sequence of the golden ratio, and of sqrt(3) - 1 */
        k[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++) out[i] = x[i];
}

/* Word `index` of (seed, stream): key = seed, counter = { index div 4, stream }, lane index mod 4. */
static inline uint32_t twin_random_word(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint32_t key[2] = { (uint32_t)(seed % 0x100000000u), (uint32_t)(seed / 0x100000000u) };
    const uint64_t block = index / 4;
    const uint32_t counter[4] = { (uint32_t)(block % 0x100000000u), (uint32_t)(block / 0x100000000u),
                                  (uint32_t)(stream % 0x100000000u), (uint32_t)(stream / 0x100000000u) };
    uint32_t out[4];
    twin_philox(counter, key, out);
    return out[index % 4];
}

/* n random bits for element i. 8, 16 and 32 bits share words, low field first; other counts take the top of word i. */
static inline uint32_t twin_random_bits(uint64_t seed, uint64_t stream, uint64_t i, int n)
{
    if (n != 8 && n != 16 && n != 32) return (uint32_t)(twin_random_word(seed, stream, i) / ((uint64_t)1 << (32 - n)));
    const uint64_t fields = (uint64_t)(32 / n), word = twin_random_word(seed, stream, i / fields);
    const uint64_t shifted = word / ((uint64_t)1 << (n * (int)(i % fields)));
    return (uint32_t)(shifted % ((uint64_t)1 << n));
}

#endif /* TWIN_RANDOM_H */
