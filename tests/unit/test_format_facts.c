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

#include "trnmath/trn_format.h"
#include "twin/cases.h"

typedef struct facts {
    trn_format format;
    int bits;
    double max, lowest, min_normal, min_subnormal, epsilon;
    uint32_t infinity, nan_first, nan_last; /* first > last: no NaN */
} facts;

static const facts known[] = {
    { TRN_F32, 32, 0x1.fffffep127, -0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23, 0x7f800000, 0x7f800001, 0x7fffffff },
    { TRN_TF32, 32, 0x1.ffcp127, -0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1p-10, 0x7f800000, 0x7f802000, 0x7fffe000 },
    { TRN_BF16, 16, 0x1.fep127, -0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7, 0x7f80, 0x7f81, 0x7fff },
    { TRN_F16, 16, 65504, -65504, 0x1p-14, 0x1p-24, 0x1p-10, 0x7c00, 0x7c01, 0x7fff },
    { TRN_F8_E4M3, 8, 240, -240, 0x1p-6, 0x1p-9, 0.125, 0x78, 0x79, 0x7f },
    { TRN_F8_E4M3FN, 8, 448, -448, 0x1p-6, 0x1p-9, 0.125, 0, 0x7f, 0x7f },
    { TRN_F8_E5M2, 8, 57344, -57344, 0x1p-14, 0x1p-16, 0.25, 0x7c, 0x7d, 0x7f },
    { TRN_F8_E3M4, 8, 15.5, -15.5, 0.25, 0x1p-6, 0.0625, 0x70, 0x71, 0x7f },
    { TRN_F8_E8M0, 8, 0x1p127, 0x1p-127, 0x1p-127, 0x1p-127, 1, 0, 0xff, 0xff },
    { TRN_F6_E2M3, 6, 7.5, -7.5, 1, 0.125, 0.125, 0, 1, 0 },
    { TRN_F6_E3M2, 6, 28, -28, 0.25, 0.0625, 0.25, 0, 1, 0 },
    { TRN_F4_E2M1, 4, 6, -6, 1, 0.5, 0.5, 0, 1, 0 },
    { TRN_I8, 8, 127, -128, 1, 1, 1, 0, 1, 0 },
    { TRN_U8, 8, 255, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_I16, 16, 32767, -32768, 1, 1, 1, 0, 1, 0 },
    { TRN_U16, 16, 65535, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_I32, 32, 2147483647.0, -2147483648.0, 1, 1, 1, 0, 1, 0 },
    { TRN_U32, 32, 4294967295.0, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_CFP8, 8, 240, -240, 0x1p-6, 0x1p-9, 0.125, 0x78, 0x79, 0x7f },
};
enum { KNOWN = sizeof known / sizeof known[0] };

static void same_number(double expected, double actual, const char *what, trn_format format)
{
    if (expected != actual) fail_msg("%s of %s: expected %a, got %a", what, trn_format_name(format), expected, actual);
}

static void limits_are_the_standards(void **state)
{
    (void)state;
    assert_int_equal(KNOWN, TRNI_FORMAT_COUNT - 1);
    for (int i = 0; i < KNOWN; i++) {
        const facts *k = &known[i];
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
    for (int i = 0; i < KNOWN; i++) {
        const trn_format format = known[i].format;
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
    static const struct {
        trn_format format;
        const char *name, *safetensors, *ocp;
    } row[] = {
        { TRN_F32, "float32", "F32", "" },
        { TRN_BF16, "bfloat16", "BF16", "" },
        { TRN_F16, "float16", "F16", "" },
        { TRN_F8_E4M3, "float8_e4m3", "", "" },
        { TRN_F8_E4M3FN, "float8_e4m3fn", "F8_E4M3", "FP8 E4M3" },
        { TRN_F8_E5M2, "float8_e5m2", "F8_E5M2", "FP8 E5M2" },
        { TRN_F8_E3M4, "float8_e3m4", "", "" },
        { TRN_F8_E8M0, "float8_e8m0fnu", "F8_E8M0", "E8M0" },
        { TRN_F6_E2M3, "float6_e2m3fn", "F6_E2M3", "FP6 E2M3" },
        { TRN_F6_E3M2, "float6_e3m2fn", "F6_E3M2", "FP6 E3M2" },
        { TRN_F4_E2M1, "float4_e2m1fn", "F4", "FP4 E2M1" },
        { TRN_I8, "int8", "I8", "INT8" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_format_info *f = trn_format_info_of(row[i].format);
        assert_string_equal(row[i].name, f->name);
        assert_string_equal(row[i].safetensors, f->safetensors);
        assert_string_equal(row[i].ocp, f->ocp);
        CASES_EQUAL(row[i].format, trn_format_from_name(row[i].name), "%s", row[i].name);
        if (*row[i].safetensors) CASES_EQUAL(row[i].format, trn_format_from_name(row[i].safetensors), "safetensors");
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
    static const struct {
        trn_format format;
        uint32_t code;
        double value;
    } row[] = {
        { TRN_I32, 0x69288fa8, 1764265856.0 }, /* printed by a device for 1764265896 */
        { TRN_U32, 0x69288fa8, 1764265856.0 },
        { TRN_U32, 0xffffffff, 4294967296.0 },
        { TRN_U32, 0xffffff7f, 4294967040.0 }, /* below half */
        { TRN_U32, 0xffffff80, 4294967296.0 }, /* a tie, to even */
        { TRN_U32, 0x01000001, 16777216.0 },   /* ties */
        { TRN_U32, 0x01000003, 16777220.0 },
        { TRN_I32, 0x80000000, -2147483648.0 },
        { TRN_I32, 0x80000001, -2147483648.0 },
        { TRN_I32, 0xfeffffff, -16777216.0 },
        { TRN_I32, 0xffffffff, -1.0 },
        { TRN_I32, 0, 0.0 },
        { TRN_I16, 0x8000, -32768.0 },
        { TRN_I8, 0x1ff, -1.0 }, /* bits above the format's are ignored */
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        same_number(row[i].value, (double)trn_decode(row[i].format, row[i].code), "value", row[i].format);
    assert_false(signbit(trn_decode(TRN_I32, 0)));
    const float device = trn_decode(TRN_I32, 0x69288fa8);
    CASES_EQUAL(0x69288f80, trn_encode(TRN_I32, device, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0), "and back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_the_standards), cmocka_unit_test(limits_are_true_of_every_code),
        cmocka_unit_test(names_in_four_worlds),     cmocka_unit_test(fourteen_codes),
        cmocka_unit_test(integers_through_binary32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
