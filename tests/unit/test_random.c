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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_answers),     cmocka_unit_test(words_are_laid_out_as_documented),
        cmocka_unit_test(words_equal_the_twins), cmocka_unit_test(fields_equal_the_twins),
        cmocka_unit_test(fields_share_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
