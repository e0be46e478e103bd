/* trn_random.h - random bits as a pure function: random(seed, stream, index), by Philox4x32-10.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_random.h>
 *     #include <stdio.h>
 *     int main(void) { printf("%08x\n", (unsigned)trn_random_u32(1, 0, 42)); return 0; }
 *
 * DOES: counter-based random words. Element i of a tensor always sees the same word, whatever the thread count, the
 *     chunking or the instruction set. Key = seed (low, high); counter = {index / 4 low, high, stream low, high};
 *     the result is word index mod 4 of the block.
 * DOES NOT: keep state. The chip's own generators (an LFSR, XORWOW) are a different thing.
 *
 * CONTENTS
 *     trn_philox4x32_10   one block of four words
 *     trn_random_u32      one word
 *     trn_random_field    n random bits for element i, as stochastic rounding takes them
 *
 * KNOWN FROM: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (documented);
 *     the known-answer vectors that come with Random123.
 */
#ifndef TRN_RANDOM_H
#define TRN_RANDOM_H

#include "trn_base.h"

TRNI_INLINE void trn_philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

TRNI_FN uint32_t trn_random_u32(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint64_t block = index >> 2;
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    uint32_t word[4];
    trn_philox4x32_10(counter, key, word);
    return word[index & 3];
}

/* bits = 1..32. 8, 16 and 32 bits share words: element i takes field i mod (32/bits), low first, of word
 * i div (32/bits). Any other count takes the top bits of word i. */
TRNI_FN uint32_t trn_random_field(uint64_t seed, uint64_t stream, uint64_t index, int bits)
{
    if (bits == 32) return trn_random_u32(seed, stream, index);
    if (bits == 16) return trn_random_u32(seed, stream, index >> 1) >> (16 * (index & 1)) & 0xffffu;
    if (bits == 8) return trn_random_u32(seed, stream, index >> 2) >> (8 * (index & 3)) & 0xffu;
    return trn_random_u32(seed, stream, index) >> (32 - bits);
}

#endif /* TRN_RANDOM_H */
