/* trn_random.h - random bits as a pure function: random(seed, stream, index), by Philox4x32-10, one or many at a time.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_random.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         uint32_t word[4];
 *         trn_random_fill(word, 4, 1, 0, 40, TRN_ISA_AUTO);            // seed 1, stream 0, words 40 to 43
 *         printf("%08x\n", (unsigned)word[2]);
 *         return word[2] == trn_random_u32(1, 0, 42) ? 0 : 1;
 *     }
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
 *     trn_random_fill     many consecutive words
 *     trn_random_fields   many consecutive fields, one per word
 *
 * KNOWN FROM: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (documented);
 *     the known-answer vectors that come with Random123.
 */
#ifndef TRN_RANDOM_H
#define TRN_RANDOM_H

#include "trn_cpu.h"

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

/* ---- many at once ---- */

/* Blocks first_block, first_block + 1, … of one stream, four words each. */
TRNI_INLINE void trni_random_blocks_body(uint32_t *__restrict word, size_t blocks, uint64_t first_block, uint64_t seed,
                                         uint64_t stream)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (size_t j = 0; j < blocks; j++) {
        const uint64_t b = first_block + j;
        const uint32_t counter[4] = { (uint32_t)b, (uint32_t)(b >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
        trn_philox4x32_10(counter, key, word + 4 * j);
    }
}
TRNI_STAMP(trni_random_blocks,
           (uint32_t *__restrict word, size_t blocks, uint64_t first_block, uint64_t seed, uint64_t stream),
           (word, blocks, first_block, seed, stream))

/* Fields skip, skip + 1, … of a row of words, as trn_random_field cuts them; `word` may be `field` unless bits is 8 or
 * 16, which little-endian memory already holds low first. */
typedef uint16_t trni_random_half __attribute__((may_alias));
TRNI_INLINE void trni_random_cut_body(uint32_t *field, const uint32_t *word, size_t skip, size_t n, int bits)
{
    const trni_random_half *half = (const trni_random_half *)(const void *)word;
    const unsigned char *byte = (const unsigned char *)word;
    if (bits == 16)
        for (size_t i = 0; i < n; i++) field[i] = half[skip + i];
    else if (bits == 8)
        for (size_t i = 0; i < n; i++) field[i] = byte[skip + i];
    else
        for (size_t i = 0; i < n; i++) field[i] = word[skip + i] >> (32 - bits);
}
TRNI_STAMP(trni_random_cut, (uint32_t *field, const uint32_t *word, size_t skip, size_t n, int bits),
           (field, word, skip, n, bits))

#if TRNI_X86 && TRNI_INTRINSICS
#include "simd/trn_random_avx512.h" /* the same words, faster */
#endif

TRNI_FN trni_random_blocks_fn *trni_random_blocks_pick(trn_isa isa)
{
#if TRNI_X86 && TRNI_INTRINSICS
    if (isa == TRN_ISA_AVX512) return trni_random_blocks_guest512;
#endif
    return trni_random_blocks_for(isa);
}

/* These calls have no status to return, and no instruction set returns other words: one that this host lacks, named by
 * the caller or by TRN_ISA, gives way to plain C. */
TRNI_FN trn_isa trni_random_isa(trn_isa isa)
{
    if (isa == TRN_ISA_AUTO) isa = trni_isa_default();
    return trn_isa_supported(isa) ? isa : TRN_ISA_PORTABLE;
}

/* word[i] = trn_random_u32(seed, stream, index + i), i < n; after 2^64 - 1 comes 0. */
TRNI_FN void trn_random_fill(uint32_t *word, size_t n, uint64_t seed, uint64_t stream, uint64_t index, trn_isa isa)
{
    trni_random_blocks_fn *const blocks = trni_random_blocks_pick(trni_random_isa(isa));
    for (size_t take; n > 0; word += take, index += take, n -= take) {
        const uint64_t block = index >> 2, left = ((uint64_t)1 << 62) - block;
        const size_t skip = (size_t)(index & 3), whole = n / 4 < left ? n / 4 : (size_t)left;
        if (skip == 0 && whole > 0) {
            blocks(word, whole, block, seed, stream);
            take = 4 * whole;
        } else { /* part of a block */
            uint32_t edge[4];
            trni_random_blocks_portable(edge, 1, block, seed, stream);
            take = n < 4 - skip ? n : 4 - skip;
            memcpy(word, edge + skip, take * sizeof edge[0]);
        }
    }
}

#define TRNI_RANDOM_CHUNK ((size_t)1024) /* fields at a time, so that all stays in the first cache */

/* field[i] = trn_random_field(seed, stream, index + i, bits), i < n; after 2^64 - 1 comes 0. bits = 1..32. */
TRNI_FN void trn_random_fields(uint32_t *field, size_t n, int bits, uint64_t seed, uint64_t stream, uint64_t index,
                               trn_isa isa)
{
    isa = trni_random_isa(isa);
    const unsigned share = bits == 8 ? 4 : bits == 16 ? 2 : 1; /* fields per word */
    for (size_t take; n > 0; field += take, index += take, n -= take) {
        uint32_t word[TRNI_RANDOM_CHUNK / 2 + 1];
        const size_t skip = (size_t)(index % share);
        take = n < TRNI_RANDOM_CHUNK ? n : TRNI_RANDOM_CHUNK;
        if (share > 1 && index + take < index) take = (size_t)(0 - index); /* the words start over with the index */
        uint32_t *const from = share > 1 ? word : field;
        trn_random_fill(from, (skip + take + share - 1) / share, seed, stream, index / share, isa);
        if (bits != 32) trni_random_cut_for(isa)(field, from, skip, take, bits);
    }
}

#endif /* TRN_RANDOM_H */
