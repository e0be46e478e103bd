/* test_format_facts.c - what is public about each format: limits, names in four worlds, the two traps of FP8.
 * SPDX-License-Identifier: MIT
 *
 * The numbers are typed in from the standards (IEEE 754, OCP OFP8 and MX 1.0, the ml_dtypes and AWS data type pages),
 * and then every code is decoded to see that they are true of the codec.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "published/formats.h"
#include "twin/cases.h"

static void same_number(double expected, double actual, const char *what, trn_format format)
{
    if (expected != actual) fail_msg("%s of %s: expected %a, got %a", what, trn_format_name(format), expected, actual);
}

static void limits_are_the_standards(void **state)
{
    (void)state;
    assert_int_equal(FORMAT_KNOWN, TRN_FORMAT_COUNT - 1);
    for (int i = 0; i < FORMAT_KNOWN; i++) {
        const format_facts *k = &format_known[i];
        const trn_format_limits l = trn_format_limits_of(k->format);
        same_number(k->max, l.max, "max", k->format);
        same_number(k->lowest, l.lowest, "lowest", k->format);
        same_number(k->min_normal, l.min_normal, "min_normal", k->format);
        same_number(k->min_subnormal, l.min_subnormal, "min_subnormal", k->format);
        same_number(k->epsilon, l.epsilon, "epsilon", k->format);
        CASES_EQUAL(k->infinity != 0, l.has_infinity, "has_infinity of %s", trn_format_name(k->format));
        CASES_EQUAL(k->infinity, l.infinity_code, "infinity of %s", trn_format_name(k->format));
        CASES_EQUAL(k->nan_first, l.nan_first, "first NaN of %s", trn_format_name(k->format));
        CASES_EQUAL(k->nan_last, l.nan_last, "last NaN of %s", trn_format_name(k->format));
        CASES_EQUAL(k->bits, trn_format_bits(k->format), "bits of %s", trn_format_name(k->format));
    }
}

/* The largest, the smallest and the NaN of all codes of a narrow format, found by looking at each. */
static void limits_are_true_of_every_code(void **state)
{
    (void)state;
    for (int i = 0; i < FORMAT_KNOWN; i++) {
        const trn_format format = format_known[i].format;
        const int bits = trn_format_bits(format);
        if (bits > 16) continue;
        const bool integer = format >= TRN_I8 && format <= TRN_U16, is_signed = format != TRN_F8_E8M0;
        const trn_format_limits l = trn_format_limits_of(format);
        double max = 0, lowest = HUGE_VAL, least = HUGE_VAL, after_one = HUGE_VAL;
        for (uint32_t code = 0; code < 1u << bits; code++) {
            const double x = (double)trn_decode(format, code);
            const uint32_t magnitude = is_signed && !integer ? code & ((1u << (bits - 1)) - 1) : code;
            CASES_EQUAL(magnitude >= l.nan_first && magnitude <= l.nan_last, isnan(x) != 0, "%s code %x is a NaN",
                        trn_format_name(format), (unsigned)code);
            if (isinf(x)) CASES_EQUAL(l.infinity_code, magnitude, "the infinity of %s", trn_format_name(format));
            if (isnan(x) || isinf(x)) continue;
            max = fmax(max, x);
            lowest = fmin(lowest, x);
            if (x > 0) least = fmin(least, x);
            if (x > 1) after_one = fmin(after_one, x);
        }
        same_number(max, l.max, "largest value", format);
        same_number(lowest, l.lowest, "most negative value", format);
        same_number(least, l.min_subnormal, "smallest value", format);
        same_number(after_one - 1, l.epsilon, "step after 1", format);
    }
}

/* ---- names ---- */

static void names_in_four_worlds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMAT_NAMES; i++) {
        const trn_format_info *f = trn_format_info_of(format_names[i].format);
        assert_string_equal(format_names[i].name, f->name);
        assert_string_equal(format_names[i].safetensors, f->safetensors);
        assert_string_equal(format_names[i].ocp, f->ocp);
        CASES_EQUAL(format_names[i].format, trn_format_from_name(format_names[i].name), "%s", format_names[i].name);
        if (*format_names[i].safetensors)
            CASES_EQUAL(format_names[i].format, trn_format_from_name(format_names[i].safetensors), "safetensors");
    }
}

/* ---- the second trap: 14 bytes that are numbers in E4M3FN and none in E4M3 ---- */

static void fourteen_codes(void **state)
{
    (void)state;
    static const struct {
        uint32_t byte;
        float as_e4m3fn;
        uint32_t converted, saturated, halved;
    } row[7] = {
        { 0x78, 256, 0x78, 0x77, 0x70 }, { 0x79, 288, 0x78, 0x77, 0x71 }, { 0x7a, 320, 0x78, 0x77, 0x72 },
        { 0x7b, 352, 0x78, 0x77, 0x73 }, { 0x7c, 384, 0x78, 0x77, 0x74 }, { 0x7d, 416, 0x78, 0x77, 0x75 },
        { 0x7e, 448, 0x78, 0x77, 0x76 },
    };
    for (int i = 0; i < 14; i++) {
        const uint32_t sign = i < 7 ? 0 : 0x80, byte = row[i % 7].byte | sign;
        const float value = i < 7 ? row[i % 7].as_e4m3fn : -row[i % 7].as_e4m3fn;
        assert_true(trn_decode(TRN_F8_E4M3FN, byte) == value);
        const float relabelled = trn_decode(TRN_F8_E4M3, byte);
        assert_true(i % 7 ? isnan(relabelled) : isinf(relabelled) && (relabelled < 0) == (value < 0));
        const struct {
            float x;
            trn_overflow overflow;
            uint32_t code;
        } becomes[3] = { { value, TRN_OVERFLOW_DEFAULT, row[i % 7].converted },
                         { value, TRN_SATURATE, row[i % 7].saturated },
                         { value / 2, TRN_OVERFLOW_DEFAULT, row[i % 7].halved } };
        for (int k = 0; k < 3; k++)
            CASES_EQUAL(becomes[k].code | sign,
                        trn_encode(TRN_F8_E4M3, becomes[k].x, TRN_NEAREST_EVEN, becomes[k].overflow, 0),
                        "byte %02x, column %d", (unsigned)byte, k);
        assert_true(2 * trn_decode(TRN_F8_E4M3, row[i % 7].halved | sign) == value); /* a scale of 2 loses nothing */
    }
    for (uint32_t byte = 0; byte < 256; byte++) { /* all the others are the same number, or NaN, in both */
        const uint32_t magnitude = byte & 0x7f;
        if (magnitude >= 0x78 && magnitude <= 0x7e) continue;
        CASES_EQUAL(cases_bits_of(trn_decode(TRN_F8_E4M3FN, byte)), cases_bits_of(trn_decode(TRN_F8_E4M3, byte)),
                    "byte %02x", (unsigned)byte);
    }
}

/* ---- integers above 2^24 go through binary32 ---- */

static void integers_through_binary32(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMAT_INTEGERS; i++)
        same_number(format_integers[i].value, (double)trn_decode(format_integers[i].format, format_integers[i].code),
                    "value", format_integers[i].format);
    assert_false(signbit(trn_decode(TRN_I32, 0)));
    const float device = trn_decode(TRN_I32, 0x69288fa8);
    CASES_EQUAL(0x69288f80, trn_encode(TRN_I32, device, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0), "and back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_the_standards),  cmocka_unit_test(limits_are_true_of_every_code),
        cmocka_unit_test(names_in_four_worlds),      cmocka_unit_test(fourteen_codes),
        cmocka_unit_test(integers_through_binary32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
