/* twin_random.h - the slow twin's random words: Philox4x32-10 by 16-bit limbs, the field rule, XORWOW and the LFSR.
 * SPDX-License-Identifier: MIT
 *
 * Philox is written from the paper (Salmon, Moraes, Dror, Shaw, SC 2011, section 3.3), with schoolbook multiplication;
 * XORWOW from Marsaglia's paper (2003), as multiplications by bit matrices; the LFSR as a register that is clocked bit
 * by bit.
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

/* ---- XORWOW ---- */

/* The row vector v times the matrix I + S, where S moves every bit by `places` (left > 0, right < 0). Bit by bit. */
static inline uint32_t twin_shift_and_add(uint32_t v, int places)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++) {
        const int from = i - places;
        const uint32_t moved = from >= 0 && from < 32 ? v / ((uint32_t)1 << from) % 2 : 0;
        sum += (v / ((uint32_t)1 << i) % 2 + moved) % 2 * ((uint32_t)1 << i);
    }
    return sum;
}

/* s holds x, y, z, w, v, d. The new v is v(I + L^4) + x(I + R^2)(I + L^1); d is a Weyl sequence; their sum goes out. */
static inline uint32_t twin_xorwow(uint32_t s[6])
{
    const uint32_t left = twin_shift_and_add(s[4], 4), right = twin_shift_and_add(twin_shift_and_add(s[0], -2), 1);
    for (int i = 0; i < 4; i++) s[i] = s[i + 1];
    s[4] = left ^ right;
    s[5] = (uint32_t)((s[5] + (uint64_t)362437) % 0x100000000u);
    return (uint32_t)(((uint64_t)s[4] + s[5]) % 0x100000000u);
}

/* ---- the LFSR ---- */

/* One clock of the register: stage n holds the bit that was made n clocks ago; taps 128, 126, 101, 99. */
static inline int twin_lfsr_clock(unsigned char stage[129])
{
    const int bit = (stage[128] + stage[126] + stage[101] + stage[99]) % 2;
    for (int n = 128; n > 1; n--) stage[n] = stage[n - 1];
    stage[1] = (unsigned char)bit;
    return bit;
}

/* 32 clocks, the first bit lowest. s holds the last 128 bits, oldest first. */
static inline uint32_t twin_lfsr(uint32_t s[4])
{
    unsigned char stage[129] = { 0 };
    for (int t = 0; t < 128; t++) stage[128 - t] = (unsigned char)(s[t / 32] / ((uint32_t)1 << t % 32) % 2);
    uint32_t word = 0;
    for (int i = 0; i < 32; i++) word += (uint32_t)twin_lfsr_clock(stage) * ((uint32_t)1 << i);
    for (int t = 0; t < 128; t++) {
        const uint32_t weight = (uint32_t)1 << t % 32, old = s[t / 32] / weight % 2;
        s[t / 32] += ((uint32_t)stage[128 - t] - old) * weight;
    }
    return word;
}

#endif /* TWIN_RANDOM_H */
