/* homes/format.c - TRN_F8_E2M5, a format that house.homes adds to a copy of the headers, is one like any other there.
 * SPDX-License-Identifier: MIT
 *
 * Codes, roundings and overflow are those of the slow twin, which is told what its fields are; arrays and products
 * have it; its names are understood. Exits with 1 after a sentence for each finding.
 */
#include <math.h>
#include <stdio.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>

#include "twin/twin_number.h"

enum { CODES = 256, SHARE = 0x7f, INNER = 64, SIDE = 5 };

static const twin_format twin = { "float8_e2m5", TWIN_SORT_FLOAT, 2, 5, 1, TWIN_HAS_INFINITY, 0, 8, true };
static int checks, failures;

static void equal(double expected, double actual, const char *what, double of)
{
    checks++;
    if (expected == actual || (isnan(expected) && isnan(actual))) return;
    if (++failures <= 10) printf("%s of %.9g: expected %.9g, got %.9g\n", what, of, expected, actual);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float value_of(uint32_t code)
{
    const twin_number exact = twin_decode(&twin, code);
    const uint32_t bits = twin_to_f32(&exact);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void codes_are_decoded(void)
{
    for (uint32_t code = 0; code < CODES; code++)
        equal(value_of(code), trn_decode(TRN_F8_E2M5, code), "the value", code);
}

/* Every mode, and every way to leave the range. */
static void one_is_encoded(float x)
{
    static const struct {
        twin_mode twin;
        trn_rounding rounding;
    } mode[TWIN_MODES] = { { TWIN_NEAREST_EVEN, TRN_NEAREST_EVEN },       { TWIN_STOCHASTIC, TRN_STOCHASTIC },
                           { TWIN_TOWARD_ZERO, TRN_TOWARD_ZERO },         { TWIN_TOWARD_POSITIVE, TRN_TOWARD_POSITIVE },
                           { TWIN_TOWARD_NEGATIVE, TRN_TOWARD_NEGATIVE }, { TWIN_TO_ODD, TRN_TO_ODD } };
    static const uint32_t random[] = { 0, 0x40000000u, 0x80000000u, 0xffffffffu };
    const twin_number exact = twin_from_f32(bits_of(x));
    for (int m = 0; m < TWIN_MODES; m++)
        for (int saturate = 0; saturate < 2; saturate++)
            for (int r = 0; r < (mode[m].twin == TWIN_STOCHASTIC ? 4 : 1); r++) {
                const twin_way way = { mode[m].twin, 32, random[r], false, saturate != 0 };
                const trn_overflow overflow = saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                equal(twin_encode(&twin, &exact, way),
                      trn_encode(TRN_F8_E2M5, x, mode[m].rounding, overflow, random[r]), "the code", (double)x);
            }
}

/* Every value, the middle between it and the next, and what lies right beside these. */
static void numbers_are_encoded(void)
{
    for (uint32_t code = 0; code <= SHARE; code++) {
        const float x = value_of(code), middle = x + (value_of(code + 1) - x) / 2;
        const float near[] = { x, nextafterf(x, 9), middle, nextafterf(middle, 0), nextafterf(middle, 9) };
        for (int i = 0; i < 5; i++) {
            one_is_encoded(near[i]);
            one_is_encoded(-near[i]);
        }
    }
    one_is_encoded(1e9f);
    one_is_encoded(-1e-30f);
}

static void arrays_are_converted(void)
{
    static float from[CODES], back[CODES];
    static uint8_t code[CODES];
    const trn_tensor codes = trn_tensor_1d(TRN_F8_E2M5, code, CODES);
    const trn_convert_args there = { .dst = codes, .src = trn_tensor_1d(TRN_F32, from, CODES) };
    const trn_convert_args here = { .dst = trn_tensor_1d(TRN_F32, back, CODES), .src = codes };
    for (int i = 0; i < CODES; i++) from[i] = 0.037f * (float)(i - CODES / 2);
    equal(TRN_OK, trn_convert(&there), "trn_convert", 0);
    equal(TRN_OK, trn_convert(&here), "trn_convert", 1);
    for (int i = 0; i < CODES; i++) {
        const twin_number exact = twin_from_f32(bits_of(from[i]));
        equal(twin_encode(&twin, &exact, twin_plain(TWIN_NEAREST_EVEN)), code[i], "the code", (double)from[i]);
        equal(value_of(code[i]), back[i], "the value", code[i]);
    }
}

/* Products and their sums are exact here. */
static void products_are_exact(void)
{
    static uint8_t a[SIDE * INNER], b[INNER * SIDE];
    static float product[SIDE * SIDE];
    trn_error error = { TRN_OK, "" };
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, product, SIDE, SIDE),
                             .a = trn_tensor_2d(TRN_F8_E2M5, a, SIDE, INNER),
                             .b = trn_tensor_2d(TRN_F8_E2M5, b, INNER, SIDE),
                             .error = &error };
    for (int i = 0; i < SIDE * INNER; i++) {
        a[i] = (uint8_t)(i * 37 % 0x60 | (i & 1) << 7);
        b[i] = (uint8_t)(i * 11 % 0x60 | (i & 4) << 5);
    }
    equal(TRN_OK, trn_matmul(&args), error.text, 0);
    for (int m = 0; m < SIDE; m++)
        for (int n = 0; n < SIDE; n++) {
            double sum = 0;
            for (int k = 0; k < INNER; k++)
                sum += (double)value_of(a[m * INNER + k]) * (double)value_of(b[k * SIDE + n]);
            equal(sum, product[m * SIDE + n], "a product", m * SIDE + n);
        }
    args.b.format = TRN_F32;
    equal(TRN_EFORMAT, trn_matmul(&args), "a product with float32", 0);
}

static void names_are_understood(void)
{
    static const char *const name[] = { "float8_e2m5", "torch.float8_e2m5", "e2m5", "fp8_e2m5" };
    for (int i = 0; i < 4; i++) {
        trn_format format = TRN_FORMAT_UNSET;
        equal(TRN_OK, trn_format_read(&format, name[i], NULL), "trn_format_read", i);
        equal(TRN_F8_E2M5, format, "a name", i);
    }
    equal(TRN_F8_E2M5 + 1, TRN_FORMAT_COUNT, "TRN_FORMAT_COUNT", 0);
    equal(value_of(0x5f), trn_format_limits_of(TRN_F8_E2M5).max, "the largest", 0);
    const trn_core_spec *core = trn_core_spec_of(TRN_TRAINIUM2);
    equal(trn_core_peak_flops_per_s(core, TRN_F8_E4M3, false), trn_core_peak_flops_per_s(core, TRN_F8_E2M5, false),
          "the speed", 0);
}

int main(void)
{
    codes_are_decoded();
    numbers_are_encoded();
    arrays_are_converted();
    products_are_exact();
    names_are_understood();
    printf("format: %d checks, %d failed\n", checks, failures);
    return failures != 0;
}
