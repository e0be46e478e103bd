/* test_random.c - Philox4x32-10 against its published answers and against the twin; the field rule.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_random.h"
#include "twin/cases.h"
#include "twin/twin_random.h"

/* The three philox4x32-10 lines of Random123's kat_vectors: counter, key, answer. The last one is digits of pi. */
static const struct {
    uint32_t counter[4], key[2], answer[4];
} known[3] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void published_answers(void **state)
{
    (void)state;
    for (int v = 0; v < 3; v++) {
        uint32_t out[4], twin[4];
        trn_philox4x32_10(known[v].counter, known[v].key, out);
        twin_philox(known[v].counter, known[v].key, twin);
        for (int i = 0; i < 4; i++) {
            CASES_EQUAL(known[v].answer[i], out[i], "vector %d word %d", v, i);
            CASES_EQUAL(known[v].answer[i], twin[i], "the twin's vector %d word %d", v, i);
        }
    }
}

/* Key = seed, counter = { index / 4, stream }, lane = index mod 4: written out by hand for one call. */
static void words_are_laid_out_as_documented(void **state)
{
    (void)state;
    const uint32_t key[2] = { 0x89abcdef, 0x01234567 };
    const uint32_t counter[4] = { 0x1d950c84, 0x3b72ea61, 0x76543210, 0xfedcba98 }; /* index / 4, then the stream */
    uint32_t out[4];
    twin_philox(counter, key, out);
    for (unsigned lane = 0; lane < 4; lane++)
        CASES_EQUAL(out[lane], trn_random_u32(0x0123456789abcdef, 0xfedcba9876543210, 0xedcba98476543210u + lane),
                    "lane %u", lane);
}

static void words_equal_the_twins(void **state)
{
    (void)state;
    uint64_t rng = 1;
    for (int i = 0; i < 200000; i++) {
        const uint64_t seed = cases_next(&rng), stream = i % 3 ? cases_next(&rng) : 0,
                       index = cases_next(&rng) >> (i % 64);
        CASES_EQUAL(twin_random_word(seed, stream, index), trn_random_u32(seed, stream, index), "seed %llx index %llx",
                    (unsigned long long)seed, (unsigned long long)index);
    }
}

static void fields_equal_the_twins(void **state)
{
    (void)state;
    uint64_t rng = 2;
    for (int n = 1; n <= 32; n++)
        for (int i = 0; i < 4000; i++) {
            const uint64_t seed = cases_next(&rng), index = i < 64 ? (uint64_t)i : cases_next(&rng) >> (i % 64);
            const uint32_t r = trn_random_field(seed, 7, index, n);
            CASES_EQUAL(twin_random_bits(seed, 7, index, n), r, "%d bits, index %llx", n, (unsigned long long)index);
            if (n < 32) assert_true(r < 1u << n);
        }
}

/* Four elements share a word with 8 bits, two with 16; any other count takes the top of its own word. */
static void fields_share_words(void **state)
{
    (void)state;
    const uint32_t word0 = trn_random_u32(5, 6, 0), word1 = trn_random_u32(5, 6, 1);
    for (uint64_t i = 0; i < 4; i++)
        CASES_EQUAL(word0 >> (8 * i) & 0xffu, trn_random_field(5, 6, i, 8), "byte %d", (int)i);
    CASES_EQUAL(word1 & 0xffu, trn_random_field(5, 6, 4, 8), "the fifth element starts the second word");
    CASES_EQUAL(word0 & 0xffffu, trn_random_field(5, 6, 0, 16), "low half");
    CASES_EQUAL(word0 >> 16, trn_random_field(5, 6, 1, 16), "high half");
    CASES_EQUAL(word1 >> 16, trn_random_field(5, 6, 3, 16), "high half of the second word");
    CASES_EQUAL(word1 >> 20, trn_random_field(5, 6, 1, 12), "top twelve bits of word 1");
    CASES_EQUAL(word1, trn_random_field(5, 6, 1, 32), "all of word 1");
}

/* ---- many at once ---- */

enum { MOST = 2100, MARGIN = 16 };
static const trn_isa isas[] = { TRN_ISA_AUTO, TRN_ISA_PORTABLE, TRN_ISA_AVX2, TRN_ISA_AVX512, TRN_ISA_NEON };
enum { ISAS = sizeof isas / sizeof isas[0] };

/* A length below 70 or up to MOST, and an index that often lies where a block, 2^32 or 2^64 ends. */
static size_t some_length(uint64_t *rng) { return (size_t)cases_below(rng, cases_one_in(rng, 4) ? MOST : 70); }
static uint64_t some_index(uint64_t *rng)
{
    static const uint64_t near[] = { 0, (uint64_t)1 << 32, (uint64_t)1 << 33, (uint64_t)1 << 34, (uint64_t)1 << 63 };
    if (cases_one_in(rng, 3)) return cases_next(rng);
    return near[cases_below(rng, 5)] + (uint64_t)cases_below(rng, 300) - (cases_one_in(rng, 4) ? 0 : 200);
}

/* Any part of the stream, for any instruction set, is what the single calls say; nothing is written beside it. An
 * instruction set that this host lacks changes nothing either. */
static void filled_words_are_the_single_ones(void **state)
{
    (void)state;
    uint64_t rng = 3;
    static uint32_t word[MOST + 2 * MARGIN];
    for (int i = 0; i < cases_rounds(1500, 100000); i++) {
        const uint64_t seed = cases_next(&rng), stream = cases_one_in(&rng, 2) ? cases_next(&rng) : 0;
        const uint64_t index = some_index(&rng);
        const size_t n = some_length(&rng), at = MARGIN / 2 + (size_t)cases_below(&rng, MARGIN);
        memset(word, 0xa5, sizeof word);
        trn_random_fill(word + at, n, seed, stream, index, isas[i % ISAS]);
        for (size_t j = 0; j < MOST + 2 * MARGIN; j++) {
            const bool inside = j >= at && j < at + n;
            const uint32_t want = inside ? trn_random_u32(seed, stream, index + (j - at)) : 0xa5a5a5a5u;
            CASES_EQUAL(want, word[j], "isa %s, seed %llx stream %llx index %llx, %d words, word %d",
                        trn_isa_text(isas[i % ISAS]), (unsigned long long)seed, (unsigned long long)stream,
                        (unsigned long long)index, (int)n, (int)(j - at));
        }
    }
}

static void filled_fields_are_the_single_ones(void **state)
{
    (void)state;
    uint64_t rng = 4;
    static uint32_t field[MOST + 2 * MARGIN];
    for (int i = 0; i < cases_rounds(2000, 100000); i++) {
        const uint64_t seed = cases_next(&rng), stream = cases_next(&rng), index = some_index(&rng);
        const size_t n = some_length(&rng), at = MARGIN / 2 + (size_t)cases_below(&rng, MARGIN);
        const int bits = cases_one_in(&rng, 2) ? 8 << cases_below(&rng, 3) : 1 + cases_below(&rng, 32);
        memset(field, 0xa5, sizeof field);
        trn_random_fields(field + at, n, bits, seed, stream, index, isas[i % ISAS]);
        for (size_t j = 0; j < MOST + 2 * MARGIN; j++) {
            const bool inside = j >= at && j < at + n;
            const uint32_t want = inside ? trn_random_field(seed, stream, index + (j - at), bits) : 0xa5a5a5a5u;
            CASES_EQUAL(want, field[j], "isa %s, seed %llx stream %llx index %llx, %d fields of %d bits, field %d",
                        trn_isa_text(isas[i % ISAS]), (unsigned long long)seed, (unsigned long long)stream,
                        (unsigned long long)index, (int)n, bits, (int)(j - at));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_answers),     cmocka_unit_test(words_are_laid_out_as_documented),
        cmocka_unit_test(words_equal_the_twins), cmocka_unit_test(fields_equal_the_twins),
        cmocka_unit_test(fields_share_words),    cmocka_unit_test(filled_words_are_the_single_ones),
        cmocka_unit_test(filled_fields_are_the_single_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
