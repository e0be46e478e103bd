/* number/random.h - Philox4x32-10, and the generators of the chip.
 * A part of trn_random.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NUMBER_RANDOM_H
#define TRNI_NUMBER_RANDOM_H

#include "../base/cpu.h"

/* ---- Philox4x32-10: one word ---- */

#define TRNI_PHILOX_M0 0xD2511F53u
#define TRNI_PHILOX_M1 0xCD9E8D57u
#define TRNI_PHILOX_W0 0x9E3779B9u /* golden ratio */
#define TRNI_PHILOX_W1 0xBB67AE85u /* sqrt(3) - 1 */

TRNI_INLINE void trni_philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    const uint64_t p0 = (uint64_t)TRNI_PHILOX_M0 * c[0], p1 = (uint64_t)TRNI_PHILOX_M1 * c[2];
    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
    c[3] = (uint32_t)p0;
}

/* One block of the generator by its own definition (Salmon and others 2011): four words of a counter and a key. */
TRNI_INLINE void trn_philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = { counter[0], counter[1], counter[2], counter[3] };
    for (uint32_t r = 0; r < 10; r++) trni_philox_round(c, key[0] + r * TRNI_PHILOX_W0, key[1] + r * TRNI_PHILOX_W1);
    memcpy(out, c, sizeof c);
}

/* Word `index` of a stream: uniform over all 32 bits, the same on every machine. */
TRN_API uint32_t trn_random_u32(uint64_t seed, uint64_t stream, uint64_t index);

/* bits = 1..32. 8, 16 and 32 bits share words: element i takes field i mod (32/bits), low first, of word
 * i div (32/bits). Any other count takes the top bits of word i. */
TRN_API uint32_t trn_random_field(uint64_t seed, uint64_t stream, uint64_t index, int bits);

/* ---- Philox4x32-10: many words ---- */

/* word[i] = trn_random_u32(seed, stream, index + i), i < n; after 2^64 - 1 comes 0. */
TRN_API void trn_random_fill(uint32_t *word, size_t n, uint64_t seed, uint64_t stream, uint64_t index, trn_isa isa);

/* field[i] = trn_random_field(seed, stream, index + i, bits), i < n; after 2^64 - 1 comes 0. bits = 1..32. */
TRN_API void trn_random_fields(uint32_t *field, size_t n, int bits, uint64_t seed, uint64_t stream, uint64_t index,
                               trn_isa isa);

/* ---- XORWOW ----
 *
 * A xorshift of five words and a counter that is added to its output: period 2^192 - 2^32, unless the five words are
 * all zero; then they stay so and only the counter moves. No call here makes such a state. */

typedef struct trn_xorwow {
    uint32_t state[6]; /* x, y, z, w, v, d: an array of P of these is GpSimd's [P, 6] */
} trn_xorwow;

/* The next word of one generator; and its state as generator `number` of a seed. */
TRN_API uint32_t trn_xorwow_next(trn_xorwow *g);
TRN_API void trn_xorwow_seed(trn_xorwow *g, uint64_t seed, uint64_t number);

/* state: [partitions, 6], as get_state and a copy of g both give it. TRN_EINVAL when a partition's x, y, z, w, v are
 * all zero; then nothing is set. */
TRN_API trn_status trn_xorwow_set_state(trn_xorwow *g, size_t partitions, const uint32_t *state, trn_error *error);

/* ---- many generators in step: a vector engine ----
 *
 * Generator g of G stands in column g of a ring of rows; row `first` holds the oldest word of each, and a step writes
 * the newest over it. Word i of the stream comes from generator i mod G at its step i div G. Where a stream stops
 * between two steps, the generators before `next` are one step ahead. The structs may lie anywhere; at a multiple of 64
 * bytes AVX-512 is twice as fast with them. */

enum { TRN_VECTOR_LANES = 128, TRN_XORWOW_STATES = 4, TRNI_XORWOW_ALL = TRN_VECTOR_LANES * TRN_XORWOW_STATES };

typedef struct trn_xorwow_vector {
    uint32_t row[5][TRNI_XORWOW_ALL]; /* x, y, z, w, v, from row `first` on; generator = 4 · lane + state */
    uint32_t d[TRNI_XORWOW_ALL];
    uint32_t first, next;
} trn_xorwow_vector;

/* The next n words of the stream, in any portions. */
TRN_API void trn_xorwow_vector_words(trn_xorwow_vector *g, uint32_t *word, size_t n, trn_isa isa);

/* The state as NKI shapes it, [128, 24]: per lane four times x, y, z, w, v, d. Returns how many words of the current
 * step are out, 0 to 511; the chip makes all 512 at once and knows 0 only. */
TRN_API uint32_t trn_xorwow_vector_get_state(const trn_xorwow_vector *g, uint32_t *state);

/* next: what get_state returned; 0 at the start of a step. TRN_EINVAL when it is beyond 511, or when the first five
 * words of a state are all zero; then nothing is set. */
TRN_API trn_status trn_xorwow_vector_set_state(trn_xorwow_vector *g, const uint32_t *state, uint32_t next,
                                               trn_error *error);

/* Generator g gets the state of number 2^32 + g of the seed; a new step begins. */
TRN_API void trn_xorwow_vector_seed(trn_xorwow_vector *g, uint64_t seed);

/* ---- LFSR ----
 *
 * Assumed, all of it: the documentation says only that the Vector engines before Trainium3 have one. This one has 128
 * bits and the taps 128, 126, 101, 99 (Xilinx XAPP 052), s[t] = s[t-128] ^ s[t-126] ^ s[t-101] ^ s[t-99]. Its period is
 * the full 2^128 - 1, so lanes with random states do not meet (with 32 bits, 128 lanes would after some thousand
 * words); and no bit depends on the 98 before it, so a word, 32 steps, takes a handful of operations. 32 has no
 * divisor in common with the period, so the words have the full period too. */

typedef struct trn_lfsr {
    uint32_t state[4]; /* the last 128 bits, oldest first: bit i of state[j] is step 32 j + i */
} trn_lfsr;

/* The next word of one lane; and its state as lane `number` of a seed. */
TRN_API uint32_t trn_lfsr_next(trn_lfsr *g);
TRN_API void trn_lfsr_seed(trn_lfsr *g, uint64_t seed, uint64_t number);

/* state: [lanes, 4]. TRN_EINVAL when a lane's words are all zero, and would stay so; then nothing is set. */
TRN_API trn_status trn_lfsr_set_state(trn_lfsr *g, size_t lanes, const uint32_t *state, trn_error *error);

typedef struct trn_lfsr_vector {
    uint32_t row[4][TRN_VECTOR_LANES]; /* oldest word in row `first` */
    uint32_t first, next;
} trn_lfsr_vector;

/* The next n words of the stream: word i is lane i mod 128's. */
TRN_API void trn_lfsr_vector_words(trn_lfsr_vector *g, uint32_t *word, size_t n, trn_isa isa);

/* state: [128, 4]. Returns how many words of the current step are out, 0 to 127. */
TRN_API uint32_t trn_lfsr_vector_get_state(const trn_lfsr_vector *g, uint32_t *state);

/* As trn_xorwow_vector_set_state. */
TRN_API trn_status trn_lfsr_vector_set_state(trn_lfsr_vector *g, const uint32_t *state, uint32_t next,
                                             trn_error *error);

/* Lane l gets the state of number l of the seed; a new step begins. */
TRN_API void trn_lfsr_vector_seed(trn_lfsr_vector *g, uint64_t seed);

#if TRNI_BODIES

/* ---- Philox4x32-10: one word ---- */

TRNI_FN void trni_random_block(uint32_t word[4], uint64_t seed, uint64_t stream, uint64_t block)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                  (uint32_t)(stream >> 32) };
    trn_philox4x32_10(counter, key, word);
}

TRN_API uint32_t trn_random_u32(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t word[4];
    trni_random_block(word, seed, stream, index >> 2);
    return word[index & 3];
}

TRN_API uint32_t trn_random_field(uint64_t seed, uint64_t stream, uint64_t index, int bits)
{
    if (bits == 32) return trn_random_u32(seed, stream, index);
    if (bits == 16) return trn_random_u32(seed, stream, index >> 1) >> (16 * (index & 1)) & 0xffffu;
    if (bits == 8) return trn_random_u32(seed, stream, index >> 2) >> (8 * (index & 3)) & 0xffu;
    return trn_random_u32(seed, stream, index) >> (32 - bits);
}

/* ---- Philox4x32-10: many words ---- */

/* What all blocks share whose counters differ in the low word b only: the keys, and the half of the first two rounds
 * that does not see b. After them
 *     c0 = high(M1 * t) ^ two,  c1 = low(M1 * t),  c2 = low(M0 * b) ^ three   with t = high(M0 * b) ^ one,
 * and c3, the same for all, has gone into the third round's key, which leaves 0. */
typedef struct trni_philox_run {
    uint32_t one, two, three;
    uint32_t key[8][2]; /* of the third round to the tenth */
} trni_philox_run;

TRNI_FN trni_philox_run trni_philox_start(uint64_t seed, uint64_t stream, uint64_t block)
{
    trni_philox_run run;
    const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c[4] = { 0, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    trni_philox_round(c, k0, k1);
    run.one = c[2];
    c[2] = c[3] = 0;
    trni_philox_round(c, k0 + TRNI_PHILOX_W0, k1 + TRNI_PHILOX_W1);
    run.two = c[0];
    run.three = c[2];
    for (uint32_t r = 0; r < 8; r++) {
        run.key[r][0] = k0 + (r + 2) * TRNI_PHILOX_W0;
        run.key[r][1] = k1 + (r + 2) * TRNI_PHILOX_W1;
    }
    run.key[0][1] ^= c[3];
    return run;
}

TRNI_INLINE void trni_philox_two_rounds(uint32_t c[4], uint32_t b, const trni_philox_run *run)
{
    const uint64_t p0 = (uint64_t)TRNI_PHILOX_M0 * b;
    const uint64_t p1 = (uint64_t)TRNI_PHILOX_M1 * ((uint32_t)(p0 >> 32) ^ run->one);
    c[0] = (uint32_t)(p1 >> 32) ^ run->two;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)p0 ^ run->three;
    c[3] = 0;
}

/* As many blocks side by side as both compilers turn into good vector code (16 and 64 are slower in places). */
enum { TRNI_PHILOX_SIDE = 32 };

TRNI_INLINE void trni_philox_side_by_side(uint32_t *__restrict word, uint32_t b, const trni_philox_run *__restrict run)
{
    uint32_t c0[TRNI_PHILOX_SIDE], c1[TRNI_PHILOX_SIDE], c2[TRNI_PHILOX_SIDE], c3[TRNI_PHILOX_SIDE];
    for (uint32_t i = 0; i < TRNI_PHILOX_SIDE; i++) {
        uint32_t c[4];
        trni_philox_two_rounds(c, b + i, run);
        c0[i] = c[0];
        c1[i] = c[1];
        c2[i] = c[2];
        c3[i] = c[3];
    }
    for (int r = 0; r < 8; r++)
        for (int i = 0; i < TRNI_PHILOX_SIDE; i++) {
            uint32_t c[4] = { c0[i], c1[i], c2[i], c3[i] };
            trni_philox_round(c, run->key[r][0], run->key[r][1]);
            c0[i] = c[0];
            c1[i] = c[1];
            c2[i] = c[2];
            c3[i] = c[3];
        }
    for (int i = 0; i < TRNI_PHILOX_SIDE; i++, word += 4) {
        word[0] = c0[i];
        word[1] = c1[i];
        word[2] = c2[i];
        word[3] = c3[i];
    }
}

/* Blocks b, b + 1, … of a run; b does not pass 2^32. */
TRNI_INLINE void trni_philox_blocks_body(uint32_t *__restrict word, size_t blocks, uint32_t b,
                                         const trni_philox_run *__restrict run)
{
    const uint32_t side = TRNI_PHILOX_SIDE;
    for (; blocks >= side; blocks -= side, b += side, word += 4 * side) trni_philox_side_by_side(word, b, run);
    for (; blocks > 0; blocks--, b++, word += 4) {
        uint32_t c[4];
        trni_philox_two_rounds(c, b, run);
        for (int r = 0; r < 8; r++) trni_philox_round(c, run->key[r][0], run->key[r][1]);
        memcpy(word, c, sizeof c);
    }
}
TRNI_DISPATCH_BESIDE(trni_philox_blocks,
                     (uint32_t *__restrict word, size_t blocks, uint32_t b, const trni_philox_run *__restrict run),
                     (word, blocks, b, run))

#if TRNI_X86 && TRNI_INTRINSICS
#define TRNI_RANDOM_SIMD 1
#include "../simd/random_avx2.h" /* the same words, faster */
#include "../simd/random_avx512.h"
#else
#define TRNI_RANDOM_SIMD 0
#endif

TRNI_FN trni_philox_blocks_fn *trni_philox_blocks_pick(trn_isa isa)
{
#if TRNI_RANDOM_SIMD
    if (isa == TRN_ISA_AVX512) return trni_simd512_philox_blocks;
    if (isa == TRN_ISA_AVX2) return trni_simd256_philox_blocks;
#endif
    return trni_philox_blocks_for(isa);
}

/* The calls that fill arrays have no status to return, and no instruction set returns other words: one that this host
 * lacks, named by the caller or by TRN_ISA, gives way to plain C. */
TRNI_FN trn_isa trni_random_isa(trn_isa isa)
{
    if (isa == TRN_ISA_AUTO) isa = trn_isa_default();
    return trn_isa_supported(isa) ? trni_isa_vectors(isa) : TRN_ISA_PORTABLE;
}

TRN_API void trn_random_fill(uint32_t *word, size_t n, uint64_t seed, uint64_t stream, uint64_t index, trn_isa isa)
{
    trni_philox_blocks_fn *const philox_blocks = trni_philox_blocks_pick(trni_random_isa(isa));
    for (size_t take; n > 0; word += take, index += take, n -= take) {
        const uint64_t block = index >> 2, left = ((uint64_t)1 << 32) - (uint32_t)block;
        const size_t skip = (size_t)(index & 3), blocks = n / 4 < left ? n / 4 : (size_t)left;
        if (skip == 0 && blocks > 0) {
            const trni_philox_run run = trni_philox_start(seed, stream, block);
            philox_blocks(word, blocks, (uint32_t)block, &run);
            take = 4 * blocks;
        } else { /* part of a block */
            uint32_t whole[4];
            trni_random_block(whole, seed, stream, block);
            take = n < 4 - skip ? n : 4 - skip;
            memcpy(word, whole + skip, take * sizeof whole[0]);
        }
    }
}

/* Fields skip, skip + 1, … of 16 or 8 bits: little-endian memory has them low first, as trn_random_field does. */
typedef uint16_t trni_random_half __attribute__((may_alias));

TRNI_INLINE void trni_random_split_body(uint32_t *__restrict field, const uint32_t *__restrict word, size_t skip,
                                        size_t n, int bits)
{
    const trni_random_half *half = (const trni_random_half *)(const void *)word;
    const unsigned char *byte = (const unsigned char *)word;
    if (bits == 16)
        for (size_t i = 0; i < n; i++) field[i] = half[skip + i];
    else
        for (size_t i = 0; i < n; i++) field[i] = byte[skip + i];
}

TRNI_DISPATCH_AVX2(trni_random_split,
                   (uint32_t *__restrict field, const uint32_t *__restrict word, size_t skip, size_t n, int bits),
                   (field, word, skip, n, bits))

TRNI_INLINE void trni_random_top_body(uint32_t *word, size_t n, int bits)
{
    for (size_t i = 0; i < n; i++) word[i] >>= 32 - bits;
}
TRNI_DISPATCH_AVX2(trni_random_top, (uint32_t * word, size_t n, int bits), (word, n, bits))

#define TRNI_RANDOM_CHUNK ((size_t)1536) /* fields at a time: the words stay in the first cache */

TRN_API void trn_random_fields(uint32_t *field, size_t n, int bits, uint64_t seed, uint64_t stream, uint64_t index,
                               trn_isa isa)
{
    isa = trni_random_isa(isa);
    const unsigned share = bits == 8 ? 4 : bits == 16 ? 2 : 1; /* fields per word */
    for (size_t take; n > 0; field += take, index += take, n -= take) {
        take = n < TRNI_RANDOM_CHUNK ? n : TRNI_RANDOM_CHUNK;
        if (share == 1) {
            trn_random_fill(field, take, seed, stream, index, isa);
            if (bits != 32) trni_random_top_for(isa)(field, take, bits);
        } else {
            uint32_t word[TRNI_RANDOM_CHUNK / 2 + 1];
            const size_t skip = (size_t)(index % share);
            if (index + take < index) take = (size_t)(0 - index); /* the words start over where the index does */
            trn_random_fill(word, (skip + take + share - 1) / share, seed, stream, index / share, isa);
            trni_random_split_for(isa)(field, word, skip, take, bits);
        }
    }
}

/* ---- XORWOW ----
 *
 * A xorshift of five words and a counter that is added to its output: period 2^192 - 2^32, unless the five words are
 * all zero; then they stay so and only the counter moves. No call here makes such a state. */

/* x and v become v's successor. */
TRNI_INLINE uint32_t trni_xorwow_shift(uint32_t x, uint32_t v)
{
    const uint32_t t = x ^ x >> 2;
    return (v ^ v << 4) ^ (t ^ t << 1);
}

#define TRNI_XORWOW_STEP 362437u /* of d */

TRN_API uint32_t trn_xorwow_next(trn_xorwow *g)
{
    const uint32_t v = trni_xorwow_shift(g->state[0], g->state[4]);
    memmove(g->state, g->state + 1, 4 * sizeof g->state[0]);
    g->state[4] = v;
    return v + (g->state[5] += TRNI_XORWOW_STEP);
}

TRNI_FN bool trni_all_zero(const uint32_t *word, int n)
{
    uint32_t any = 0;
    for (int i = 0; i < n; i++) any |= word[i];
    return any == 0;
}

/* Assumed: generator `number` of a seed takes words 8 · number … of a stream of trn_random_u32 that is named after it.
 * Partition p of GpSimd is number p, generator g of the Vector engine is number 2^32 + g. Should the five words of the
 * xorshift all be zero (one seed in 2^160), x becomes 1. */
#define TRNI_XORWOW_STREAM 0x574f57524f58u /* "XORWOW" */

TRN_API void trn_xorwow_seed(trn_xorwow *g, uint64_t seed, uint64_t number)
{
    trn_random_fill(g->state, 6, seed, TRNI_XORWOW_STREAM, 8 * number, TRN_ISA_PORTABLE);
    if (trni_all_zero(g->state, 5)) g->state[0] = 1;
}

TRN_API trn_status trn_xorwow_set_state(trn_xorwow *g, size_t partitions, const uint32_t *state, trn_error *error)
{
    for (size_t p = 0; p < partitions; p++)
        if (trni_all_zero(state + 6 * p, 5))
            return trni_fail(error, TRN_EINVAL, "state: the first five words of partition %zu are all zero", p);
    for (size_t p = 0; p < partitions; p++) memcpy(g[p].state, state + 6 * p, sizeof g[p].state);
    return TRN_OK;
}

/* ---- many generators in step: a vector engine ----
 *
 * Generator g of G stands in column g of a ring of rows; row `first` holds the oldest word of each, and a step writes
 * the newest over it. Word i of the stream comes from generator i mod G at its step i div G. Where a stream stops
 * between two steps, the generators before `next` are one step ahead. The structs may lie anywhere; at a multiple of 64
 * bytes AVX-512 is twice as fast with them. */

TRNI_INLINE void trni_xorwow_step(uint32_t *__restrict x, const uint32_t *__restrict v, uint32_t *__restrict d,
                                  uint32_t *__restrict word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t new_v = trni_xorwow_shift(x[i], v[i]), new_d = d[i] + TRNI_XORWOW_STEP;
        x[i] = new_v;
        d[i] = new_d;
        word[i] = new_v + new_d;
    }
}

TRNI_INLINE void trni_xorwow_words_body(trn_xorwow_vector *g, uint32_t *word, size_t n)
{
    for (size_t take; n > 0; word += take, n -= take) {
        const uint32_t at = g->next;
        take = n < TRNI_XORWOW_ALL - at ? n : TRNI_XORWOW_ALL - at;
        trni_xorwow_step(g->row[g->first] + at, g->row[(g->first + 4) % 5] + at, g->d + at, word, take);
        g->next = (at + (uint32_t)take) % TRNI_XORWOW_ALL;
        if (g->next == 0) g->first = (g->first + 1) % 5;
    }
}

TRNI_DISPATCH(trni_xorwow_words, (trn_xorwow_vector * g, uint32_t *word, size_t n), (g, word, n))

/* A state that no call here makes: never seeded, or overwritten. */
TRNI_COLD trn_status trni_check_xorwow(const trn_xorwow_vector *g, const char *name, trn_error *error)
{
    if (g->first >= 5 || g->next >= TRNI_XORWOW_ALL)
        return trni_fail(error, TRN_EINVAL, "%s is no state: %u words of its step are out, and a step has %d", name,
                         (unsigned)g->next, TRNI_XORWOW_ALL);
    for (int i = 0; i < TRNI_XORWOW_ALL; i++)
        if ((g->row[0][i] | g->row[1][i] | g->row[2][i] | g->row[3][i] | g->row[4][i]) == 0)
            return trni_fail(error, TRN_EINVAL,
                             "%s was never seeded: the first five words of lane %d, state %d are all zero", name,
                             i / TRN_XORWOW_STATES, i % TRN_XORWOW_STATES);
    return TRN_OK;
}

TRN_API void trn_xorwow_vector_words(trn_xorwow_vector *g, uint32_t *word, size_t n, trn_isa isa)
{
    g->first %= 5; /* whatever the state is, nothing beyond it is touched */
    g->next %= TRNI_XORWOW_ALL;
    trni_xorwow_words_for(trni_random_isa(isa))(g, word, n);
}

TRN_API uint32_t trn_xorwow_vector_get_state(const trn_xorwow_vector *g, uint32_t *state)
{
    for (uint32_t i = 0; i < TRNI_XORWOW_ALL; i++, state += 6) {
        const uint32_t first = g->first + (i < g->next);
        for (uint32_t j = 0; j < 5; j++) state[j] = g->row[(first + j) % 5][i];
        state[5] = g->d[i];
    }
    return g->next;
}

TRN_API trn_status trn_xorwow_vector_set_state(trn_xorwow_vector *g, const uint32_t *state, uint32_t next,
                                               trn_error *error)
{
    if (next >= TRNI_XORWOW_ALL)
        return trni_fail(error, TRN_EINVAL, "next is %u, and a step has %d words", (unsigned)next, TRNI_XORWOW_ALL);
    for (int i = 0; i < TRNI_XORWOW_ALL; i++)
        if (trni_all_zero(state + 6 * i, 5))
            return trni_fail(error, TRN_EINVAL, "state: the first five words of lane %d, state %d are all zero",
                             i / TRN_XORWOW_STATES, i % TRN_XORWOW_STATES);
    for (uint32_t i = 0; i < TRNI_XORWOW_ALL; i++, state += 6) {
        for (uint32_t j = 0; j < 5; j++) g->row[(j + (i < next)) % 5][i] = state[j];
        g->d[i] = state[5];
    }
    g->first = 0;
    g->next = next;
    return TRN_OK;
}

TRN_API void trn_xorwow_vector_seed(trn_xorwow_vector *g, uint64_t seed)
{
    for (uint32_t i = 0; i < TRNI_XORWOW_ALL; i++) {
        trn_xorwow one;
        trn_xorwow_seed(&one, seed, ((uint64_t)1 << 32) + i);
        for (int j = 0; j < 5; j++) g->row[j][i] = one.state[j];
        g->d[i] = one.state[5];
    }
    g->first = g->next = 0;
}

/* ---- LFSR ----
 *
 * Assumed, all of it: the documentation says only that the Vector engines before Trainium3 have one. This one has 128
 * bits and the taps 128, 126, 101, 99 (Xilinx XAPP 052), s[t] = s[t-128] ^ s[t-126] ^ s[t-101] ^ s[t-99]. Its period is
 * the full 2^128 - 1, so lanes with random states do not meet (with 32 bits, 128 lanes would after some thousand
 * words); and no bit depends on the 98 before it, so a word, 32 steps, takes a handful of operations. 32 has no
 * divisor in common with the period, so the words have the full period too. */

/* The word after those that begin with a, b: bits 0, 2, 27 and 29 of them. */
TRNI_INLINE uint32_t trni_lfsr_shift(uint32_t a, uint32_t b)
{
    return a ^ (a >> 2 | b << 30) ^ (a >> 27 | b << 5) ^ (a >> 29 | b << 3);
}

TRN_API uint32_t trn_lfsr_next(trn_lfsr *g)
{
    const uint32_t word = trni_lfsr_shift(g->state[0], g->state[1]);
    memmove(g->state, g->state + 1, 3 * sizeof g->state[0]);
    return g->state[3] = word;
}

/* Assumed, as for XORWOW; lane l is number l. A state of zeros (one seed in 2^128) becomes 1, 0, 0, 0. */
#define TRNI_LFSR_STREAM 0x5253464cu /* "LFSR" */

TRN_API void trn_lfsr_seed(trn_lfsr *g, uint64_t seed, uint64_t number)
{
    trn_random_fill(g->state, 4, seed, TRNI_LFSR_STREAM, 4 * number, TRN_ISA_PORTABLE);
    if (trni_all_zero(g->state, 4)) g->state[0] = 1;
}

TRN_API trn_status trn_lfsr_set_state(trn_lfsr *g, size_t lanes, const uint32_t *state, trn_error *error)
{
    for (size_t l = 0; l < lanes; l++)
        if (trni_all_zero(state + 4 * l, 4))
            return trni_fail(error, TRN_EINVAL, "state: the words of lane %zu are all zero", l);
    for (size_t l = 0; l < lanes; l++) memcpy(g[l].state, state + 4 * l, sizeof g[l].state);
    return TRN_OK;
}

TRNI_INLINE void trni_lfsr_step(uint32_t *__restrict a, const uint32_t *__restrict b, uint32_t *__restrict word,
                                size_t n)
{
    for (size_t i = 0; i < n; i++) word[i] = a[i] = trni_lfsr_shift(a[i], b[i]);
}

TRNI_INLINE void trni_lfsr_words_body(trn_lfsr_vector *g, uint32_t *word, size_t n)
{
    for (size_t take; n > 0; word += take, n -= take) {
        const uint32_t at = g->next;
        take = n < TRN_VECTOR_LANES - at ? n : TRN_VECTOR_LANES - at;
        trni_lfsr_step(g->row[g->first] + at, g->row[(g->first + 1) % 4] + at, word, take);
        g->next = (at + (uint32_t)take) % TRN_VECTOR_LANES;
        if (g->next == 0) g->first = (g->first + 1) % 4;
    }
}
TRNI_DISPATCH_AVX2(trni_lfsr_words, (trn_lfsr_vector * g, uint32_t *word, size_t n), (g, word, n))

TRN_API void trn_lfsr_vector_words(trn_lfsr_vector *g, uint32_t *word, size_t n, trn_isa isa)
{
    g->first %= 4;
    g->next %= TRN_VECTOR_LANES;
    trni_lfsr_words_for(trni_random_isa(isa))(g, word, n);
}

TRN_API uint32_t trn_lfsr_vector_get_state(const trn_lfsr_vector *g, uint32_t *state)
{
    for (uint32_t i = 0; i < TRN_VECTOR_LANES; i++)
        for (uint32_t j = 0; j < 4; j++) *state++ = g->row[(g->first + (i < g->next) + j) % 4][i];
    return g->next;
}

TRN_API trn_status trn_lfsr_vector_set_state(trn_lfsr_vector *g, const uint32_t *state, uint32_t next, trn_error *error)
{
    if (next >= TRN_VECTOR_LANES)
        return trni_fail(error, TRN_EINVAL, "next is %u, and a step has %d words", (unsigned)next, TRN_VECTOR_LANES);
    for (int i = 0; i < TRN_VECTOR_LANES; i++)
        if (trni_all_zero(state + 4 * i, 4))
            return trni_fail(error, TRN_EINVAL, "state: the words of lane %d are all zero", i);
    for (uint32_t i = 0; i < TRN_VECTOR_LANES; i++)
        for (uint32_t j = 0; j < 4; j++) g->row[(j + (i < next)) % 4][i] = *state++;
    g->first = 0;
    g->next = next;
    return TRN_OK;
}

TRN_API void trn_lfsr_vector_seed(trn_lfsr_vector *g, uint64_t seed)
{
    for (uint32_t i = 0; i < TRN_VECTOR_LANES; i++) {
        trn_lfsr one;
        trn_lfsr_seed(&one, seed, i);
        for (int j = 0; j < 4; j++) g->row[j][i] = one.state[j];
    }
    g->first = g->next = 0;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NUMBER_RANDOM_H */
