/* test_cfp8.c - configurable FP8: every descriptor that exists against the twin, every one that does not refused.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_tensor.h"
#include "twin/cases.h"
#include "twin/twin_number.h"

static twin_format twin_of(trn_cfp8 c)
{
    twin_format t = twin_formats[TWIN_E4M3];
    t.e = c.exponent_bits;
    t.m = 7 - c.exponent_bits;
    t.bias = c.bias;
    t.beyond = c.no_infinity ? TWIN_HAS_ONE_NAN : TWIN_HAS_INFINITY;
    return t;
}

/* Where the values stay normal in binary32, from their own definition. */
static bool exists(trn_cfp8 c)
{
    const twin_format t = twin_of(c);
    if (c.exponent_bits < 2 || c.exponent_bits > 5) return false;
    return 1 - t.bias - t.m >= -126 && (1 << t.e) - (c.no_infinity ? 1 : 2) - t.bias <= 127;
}

static uint32_t canonical(const twin_number *x)
{
    return x->kind == TWIN_NAN ? 0x7fc00000u | (x->negative ? 0x80000000u : 0u) : twin_to_f32(x);
}

static void codes_of(trn_cfp8 c, const twin_format *t)
{
    for (uint32_t code = 0; code < 256; code++) {
        const twin_number x = twin_decode(t, code);
        CASES_EQUAL(canonical(&x), cases_bits_of(trn_cfp8_decode(c, code)), "code %02x of %d bits, bias %d%s",
                    (unsigned)code, c.exponent_bits, c.bias, c.no_infinity ? ", no infinity" : "");
    }
}

static void floats_of(trn_cfp8 c, const twin_format *t, int step)
{
    static const trn_rounding mode_of[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                      TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };
    uint64_t rng = (uint64_t)(c.exponent_bits * 1000 + c.bias);
    for (int i = cases_below(&rng, step); i < CASES_STRATIFIED; i += step) {
        const uint32_t u = cases_stratified(i);
        const twin_number x = twin_from_f32(u);
        twin_way way = twin_plain((twin_mode)cases_below(&rng, TWIN_MODES));
        way.saturate = cases_one_in(&rng, 2);
        way.random = cases_u32(&rng);
        CASES_EQUAL(twin_encode(t, &x, way),
                    trn_cfp8_encode(c, cases_float_of(u), mode_of[way.mode],
                                    way.saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT, way.random),
                    "%08x, mode %d, random %08x, to %d bits, bias %d%s", (unsigned)u, (int)way.mode,
                    (unsigned)way.random, c.exponent_bits, c.bias, c.no_infinity ? ", no infinity" : "");
    }
}

static void every_descriptor(void **state)
{
    (void)state;
    const int step = cases_level() == 1 ? 499 : 11;
    for (int e = -1; e <= 9; e++)
        for (int bias = -200; bias <= 200; bias++)
            for (int ending = 0; ending < 2; ending++) {
                const trn_cfp8 c = { e, bias, ending != 0 };
                if (e == 0 && bias == 0) continue;
                const trn_cfp8 meant = { e ? e : 4, bias, ending != 0 };
                CASES_EQUAL(e != 0 && exists(c), trn_cfp8_valid(c), "%d bits, bias %d", e, bias);
                if (!trn_cfp8_valid(c)) continue;
                const twin_format t = twin_of(meant);
                codes_of(c, &t);
                floats_of(c, &t, step);
            }
}

/* The three named FP8 formats with infinities, and OCP's E4M3, are descriptors too; saying nothing means 4 bits, 7. */
static void the_named_formats(void **state)
{
    (void)state;
    static const struct {
        trn_cfp8 c;
        trn_format format;
    } row[] = {
        { { 4, 7, false }, TRN_F8_E4M3 },  { { 0, 0, false }, TRN_F8_E4M3 },  { { 4, 7, true }, TRN_F8_E4M3FN },
        { { 0, 0, true }, TRN_F8_E4M3FN }, { { 5, 15, false }, TRN_F8_E5M2 }, { { 3, 3, false }, TRN_F8_E3M4 }
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        for (uint32_t code = 0; code < 256; code++)
            CASES_EQUAL(cases_bits_of(trn_decode(row[i].format, code)), cases_bits_of(trn_cfp8_decode(row[i].c, code)),
                        "%s code %02x", trn_format_name(row[i].format), (unsigned)code);
        for (int k = 0; k < CASES_STRATIFIED; k += 11) {
            const float x = cases_float_of(cases_stratified(k));
            CASES_EQUAL(trn_encode(row[i].format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0),
                        trn_cfp8_encode(row[i].c, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0), "%s of %08x",
                        trn_format_name(row[i].format), (unsigned)cases_stratified(k));
        }
    }
}

static void what_does_not_exist(void **state)
{
    (void)state;
    const trn_cfp8 bad = { 6, 7, false };
    assert_int_equal(0, trn_cfp8_encode(bad, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
    CASES_EQUAL(0x7fc00000, cases_bits_of(trn_cfp8_decode(bad, 0x38)), "decoding without a format");

    uint8_t data[4] = { 0 };
    trn_error error;
    trn_tensor t = trn_tensor_1d(TRN_CFP8, data, 4);
    assert_int_equal(TRN_OK, trn_tensor_check(&t, "src", TRNI_INPUT, 0, &error));
    t.cfp8 = bad;
    assert_int_equal(TRN_EFORMAT, trn_tensor_check(&t, "src", TRNI_INPUT, 0, &error));
    assert_non_null(strstr(error.text, "src is cfp8 with 6 exponent bits, bias 7"));
    t.format = TRN_F8_E5M2; /* a descriptor that nobody reads */
    assert_int_equal(TRN_OK, trn_tensor_check(&t, "src", TRNI_INPUT, 0, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_descriptor), cmocka_unit_test(the_named_formats),
                                        cmocka_unit_test(what_does_not_exist) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
