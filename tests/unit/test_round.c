/* test_round.c - the one rounding decision, against the twin and against the words of the definition.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_round.h"
#include "twin/cases.h"
#include "twin/twin_number.h"

static const trn_rounding mode_of[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                  TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };

static uint32_t library(uint32_t magnitude, int shift, bool negative, twin_mode mode, uint32_t random, int bits)
{
    const trn_rounder how = { mode_of[mode], random, bits };
    return trn_round_magnitude(magnitude, shift, negative, how);
}

static uint32_t twin(uint32_t magnitude, int shift, bool negative, twin_mode mode, uint32_t random, int bits)
{
    twin_way way = twin_plain(mode);
    way.random = random;
    way.random_bits = bits;
    const twin_number x = twin_make(negative, magnitude, 0);
    return (uint32_t)twin_round_whole(twin_divide(&x, shift), negative, way);
}

/* All magnitudes of 9 bits, all shifts, all modes, both signs; stochastic with every word of 1 to 6 bits. */
static void small_numbers_exhaustively(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < 512; m++)
        for (int shift = 0; shift < 14; shift++)
            for (int negative = 0; negative < 2; negative++) {
                for (int mode = 0; mode < TWIN_MODES; mode++)
                    if (mode != TWIN_STOCHASTIC)
                        CASES_EQUAL(twin(m, shift, negative, (twin_mode)mode, 0, 32),
                                    library(m, shift, negative, (twin_mode)mode, 0, 32), "%u / 2^%d, %s", (unsigned)m,
                                    shift, trn_round_text(mode_of[mode]));
                for (int bits = 1; bits <= 6 && m < 128; bits++)
                    for (uint32_t r = 0; r < 1u << bits; r++)
                        CASES_EQUAL(twin(m, shift, negative, TWIN_STOCHASTIC, r, bits),
                                    library(m, shift, negative, TWIN_STOCHASTIC, r, bits),
                                    "%u / 2^%d, %d random bits %x", (unsigned)m, shift, bits, (unsigned)r);
            }
}

static void random_numbers(void **state)
{
    (void)state;
    uint64_t rng = 3;
    for (int i = 0; i < 1000000; i++) {
        const uint32_t m = cases_u32(&rng) >> (1 + cases_below(&rng, 31));
        const int shift = i % 8 ? cases_below(&rng, 36) : cases_below(&rng, 200), bits = 1 + cases_below(&rng, 32);
        const twin_mode mode = (twin_mode)cases_below(&rng, TWIN_MODES);
        uint32_t r = cases_u32(&rng) >> (32 - bits);
        if (i % 4 == 0 && shift > 0 && shift < 32) { /* the two random words on either side of the threshold */
            const uint64_t cut = m & ((1u << shift) - 1u), unit = (uint64_t)1 << bits;
            const uint64_t position = bits >= shift ? cut << (bits - shift) : cut >> (shift - bits);
            r = (uint32_t)((unit - position - (uint64_t)(i >> 2 & 1)) & (unit - 1));
        }
        const bool negative = i & 1;
        CASES_EQUAL(twin(m, shift, negative, mode, r, bits), library(m, shift, negative, mode, r, bits),
                    "%08x / 2^%d, %s, %d bits %x", (unsigned)m, shift, trn_round_text(mode_of[mode]), bits,
                    (unsigned)r);
    }
}

/* P(away) over all words of n bits is floor(2^n * fraction) / 2^n, exactly. */
static void stochastic_counts(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < 256; cut++)
        for (int n = 1; n <= 10; n++) {
            uint32_t away = 0;
            for (uint32_t r = 0; r < 1u << n; r++) away += library(0x500u | cut, 8, false, TWIN_STOCHASTIC, r, n) - 5u;
            CASES_EQUAL(n >= 8 ? cut << (n - 8) : cut >> (8 - n), away, "cut %u of 256, %d bits", (unsigned)cut, n);
        }
}

static void zero_bits_mean_thirty_two(void **state)
{
    (void)state;
    CASES_EQUAL(1, library(0x18, 4, false, TWIN_STOCHASTIC, 0x7fffffffu, 0), "half, just below");
    CASES_EQUAL(2, library(0x18, 4, false, TWIN_STOCHASTIC, 0x80000000u, 0), "half, at the threshold");
}

/* Beyond 63 places no magnitude is within reach of a random word; at 63 the largest are. */
static void far_below_one(void **state)
{
    (void)state;
    CASES_EQUAL(1, library(0x80000000u, 63, false, TWIN_STOCHASTIC, 0xffffffffu, 32), "2^-32, the last word");
    CASES_EQUAL(0, library(0x7fffffffu, 63, false, TWIN_STOCHASTIC, 0xffffffffu, 32), "just below 2^-32");
    for (int shift = 64; shift < 300; shift++) {
        CASES_EQUAL(0, library(0xffffffffu, shift, false, TWIN_STOCHASTIC, 0xffffffffu, 32), "2^32 - 1 / 2^%d", shift);
        CASES_EQUAL(1, library(1, shift, false, TWIN_TOWARD_POSITIVE, 0, 32), "1 / 2^%d, up", shift);
        CASES_EQUAL(0, library(0, shift, false, TWIN_TOWARD_POSITIVE, 0, 32), "0 / 2^%d, up", shift);
    }
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(trn_round_text(TRN_NEAREST_EVEN), "nearest_even");
    assert_string_equal(trn_round_text(TRN_STOCHASTIC), "stochastic");
    assert_string_equal(trn_round_text(TRN_TO_ODD), "to_odd");
    assert_string_equal(trn_round_text((trn_rounding)77), "unknown");
    for (int mode = 0; mode < TRN_ROUNDING_COUNT; mode++)
        assert_int_equal(trn_round_from_text(trn_round_text((trn_rounding)mode)), mode);
    assert_int_equal(trn_round_from_text("Stochastic"), TRN_ROUNDING_COUNT);
    assert_int_equal(trn_round_from_text("unknown"), TRN_ROUNDING_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_numbers_exhaustively),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(stochastic_counts),
        cmocka_unit_test(zero_bits_mean_thirty_two),
        cmocka_unit_test(far_below_one),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
