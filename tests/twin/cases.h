/* cases.h - what the unit tests share: a level, a seeded generator, floats worth trying, and a failure with its bits.
 * SPDX-License-Identifier: MIT
 *
 * Nothing here comes from trnmath/. Every test names its seed, so that the same seed is the same test.
 */
#ifndef CASES_H
#define CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* 1: what a developer waits for. 2: the long sweeps (scripts/test.sh --level 2 sets it). */
static inline int cases_level(void)
{
    const char *level = getenv("TRN_TEST_LEVEL");
    return level && atoi(level) >= 2 ? 2 : 1;
}

/* How many cases by level; the sanitizers slow them down `slow` times, and so many fewer are made. At least one. */
static inline long cases_count(long level1, long level2, int slow)
{
#if !defined(__SANITIZE_ADDRESS__)
    slow = 1;
#endif
    const long count = (cases_level() == 1 ? level1 : level2) / slow;
    return count ? count : 1;
}

/* How many rounds a random test makes. */
static inline int cases_rounds(int level1, int level2) { return (int)cases_count(level1, level2, 3); }

#ifdef _OPENMP
#define CASES_PRAGMA(text) _Pragma(#text)
#else
#define CASES_PRAGMA(text)
#endif

/* splitmix64: any state is a good one. */
static inline uint64_t cases_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline uint32_t cases_u32(uint64_t *state) { return (uint32_t)(cases_next(state) >> 32); }

/* 0 .. n-1 */
static inline int cases_below(uint64_t *state, int n) { return (int)(cases_next(state) >> 33) % n; }
static inline bool cases_one_in(uint64_t *state, int n) { return cases_below(state, n) == 0; }

static inline float cases_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t cases_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Every exponent and sign with the mantissas at which some format's rounding changes its mind: for each possible
 * last bit b, the values just below, at and above a tie and a kept bit, with even and odd neighbours. */
enum { CASES_MANTISSAS = 8 + 7 * 23, CASES_STRATIFIED = 512 * CASES_MANTISSAS };

static inline uint32_t cases_mantissa(int i)
{
    static const uint32_t fixed[8] = { 0, 1, 0x3fffff, 0x400000, 0x400001, 0x7ffffe, 0x7fffff, 0x555555 };
    if (i < 8) return fixed[i];
    const int b = (i - 8) / 7, kind = (i - 8) % 7;
    const uint32_t bit = 1u << b, top = 0x7fffffu & ~(bit - 1u);
    const uint32_t value[7] = { bit, bit - 1u, bit + 1u, 3u * bit, top, top - 1u, top + 1u };
    return value[kind] & 0x7fffffu;
}

static inline uint32_t cases_stratified(int i)
{
    return (uint32_t)(i / CASES_MANTISSAS) << 23 | cases_mantissa(i % CASES_MANTISSAS);
}

/* A random float with every kind of trouble in it: any bits, near 1, near the edges, few mantissa bits, specials. */
static inline uint32_t cases_float(uint64_t *state)
{
    static const uint32_t special[] = { 0,          0x00000001, 0x007fffff, 0x00800000, 0x3f800000,
                                        0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, 0x477fefff,
                                        0x477ff000, 0x33000000, 0x33000001 };
    const uint32_t r = cases_u32(state), sign = cases_u32(state) & 0x80000000u;
    switch (cases_below(state, 8)) {
    case 0: return sign | special[r % (sizeof special / sizeof special[0])];
    case 1: return sign | (r & 0x7fffffu);                               /* subnormal */
    case 2: return sign | (120u + r % 16u) << 23 | (r >> 9 & 0x7fffffu); /* near 1 */
    case 3: return sign | (r & 0x7f800000u) | cases_mantissa((int)(cases_u32(state) % CASES_MANTISSAS));
    case 4: return sign | (100u + r % 50u) << 23 | (r & 0x7fe000u); /* eleven significant bits */
    default: return r;
    }
}

/* assert_int_equal costs a call and prints decimals; this costs a compare and prints what a reader needs. */
#define CASES_EQUAL(expected, actual, ...)                                                                             \
    do {                                                                                                               \
        const uint32_t cases_e = (uint32_t)(expected), cases_a = (uint32_t)(actual);                                   \
        if (cases_e != cases_a) {                                                                                      \
            print_error("expected %08x, got %08x: ", (unsigned)cases_e, (unsigned)cases_a);                            \
            print_error(__VA_ARGS__);                                                                                  \
            print_error("\n");                                                                                         \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

#endif /* CASES_H */
