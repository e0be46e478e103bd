/* test_device_results.c - what real Trainium devices printed must come out of trn_matmul with the default numerics.
 * SPDX-License-Identifier: MIT
 *
 * Source and set-ups (a) to (d): published/devices.h.
 *
 * Then what else has been printed or stated of the tensor engine of real devices; each test names its source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "published/devices.h"
#include "twin/cases.h"

/* In units of 2^-16, between low and high. */
static void expect_units(const ktile_setup *s, ktile_linspace *generate, const char *preset, double low, double high)
{
    const double units = ktile_difference(s, TRN_F32, generate, preset) * 0x1p16;
    if (units < low || units > high)
        fail_msg("%s with %s: %g units of 2^-16, expected %g to %g", s->name, preset ? preset : "the defaults", units,
                 low, high);
}

/* The devices printed 4, 3 and 4 units; 3.25 in (b) is within what linspace's own rounding moves it. */
static void four_chains_reproduce_the_devices(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        expect_units(&ktile_a, ktile_generators[g], NULL, 4, 4);
        expect_units(&ktile_b, ktile_generators[g], NULL, 3, 3.25);
        expect_units(&ktile_c, ktile_generators[g], NULL, 4, 4);
    }
    expect_units(&ktile_b, linspace_numpy, NULL, 3, 3); /* with NumPy's values: exactly the printed 4.577637e-05 */
}

/* The model that the devices contradict, under its preset's name. */
static void a_single_chain_does_not(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        expect_units(&ktile_a, ktile_generators[g], "single_chain", 11, 11);
        expect_units(&ktile_b, ktile_generators[g], "single_chain", 5.25, 5.25);
        expect_units(&ktile_c, ktile_generators[g], "single_chain", 12, 12);
    }
}

/* Nor do the other models of the record: two chains (7, 4, 6), blocks of rows (2, 2, 2), one exact sum (2, 1.75, 2).
 * The record's truncating chain (24, 8, 24) truncates the addition into PSUM as well; here that one stays nearest: 25,
 * 9.25. */
static void nor_do_other_orders(void **state)
{
    (void)state;
    expect_units(&ktile_a, linspace_torch, "chains=2", 7, 7);
    expect_units(&ktile_b, linspace_torch, "chains=2", 4, 4);
    expect_units(&ktile_c, linspace_torch, "chains=2", 6, 7);
    expect_units(&ktile_a, linspace_torch, "chain_layout=blocked", 2, 2);
    if (cases_level() < 2) return; /* the slow orders */
    expect_units(&ktile_a, linspace_torch, "exact", 2, 2);
    expect_units(&ktile_b, linspace_torch, "exact", 1.75, 1.75);
    expect_units(&ktile_a, linspace_torch, "single_chain,accumulator=toward_zero", 25, 25);
    expect_units(&ktile_b, linspace_torch, "single_chain,accumulator=toward_zero", 9.25, 9.25);
}

static void bf16_operands(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        assert_true(ktile_difference(&ktile_a, TRN_BF16, ktile_generators[g], NULL) == 0);
        assert_true(ktile_difference(&ktile_b, TRN_BF16, ktile_generators[g], NULL) == 0.0078125);
        assert_true(ktile_difference(&ktile_c, TRN_BF16, ktile_generators[g], NULL) == 0);
    }
}

/* ---- the size of an error: 128 x 128 x 128 in FP32 (published/devices.h) ---- */

enum { SIDE = RANDN_SIDE };

static void expect_error(const float *a, const float *b, const char *rules, double low, double high)
{
    const double error = randn_error(a, b, rules);
    if (error < low || error > high) fail_msg("\"%s\": %.3g, expected %.3g to %.3g", rules, error, low, high);
}

static void the_error_of_128_cubed(void **state)
{
    (void)state;
    static float a[SIDE * SIDE], b[SIDE * SIDE];
    static const float first[8] = { -1.1258f, -1.1524f, -0.2506f, -0.4339f, 0.8487f, 0.6920f, -0.3160f, -2.1152f };
    twister t;
    twister_seed(&t, 0);
    twister_normal(&t, a, SIDE * SIDE);
    twister_normal(&t, b, SIDE * SIDE);
    for (int i = 0; i < 8; i++) assert_true(fabsf(a[i] - first[i]) < 1e-4f); /* as PyTorch prints them */
    expect_error(a, b, "", 1.4e-7, 1.8e-7);
    expect_error(a, b, "fp32_mode=split", 1.4e-7, 1.8e-7);
    expect_error(a, b, "single_chain", 3.8e-7, 4.2e-7);
    expect_error(a, b, "chains=2", 2.2e-7, 2.6e-7);
    expect_error(a, b, "fp32_mode=fp32r", 5e-5, 1e-3); /* eleven bits of 24 */
}

static void e4m3_ends_at_240(void **state)
{
    (void)state;
    for (int i = 0; i < E4M3_ON_TRN2; i++)
        CASES_EQUAL(e4m3_on_trn2[i].bits, e4m3_times_one(e4m3_on_trn2[i].code), "code %02x", e4m3_on_trn2[i].code);
}

static void transposes_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICE_TRANSPOSES; i++) assert_int_equal(device_transpose_wrong(&device_transposes[i]), 0);
}

static void a_sum_in_fp16(void **state)
{
    (void)state;
    enum { RUNS = 256 };
    static uint16_t sum[RUNS];
    double total = 0, squares = 0;
    assert_true(device_halves(TRN_NEAREST_EVEN, sum, RUNS));
    for (int i = 0; i < RUNS; i++) assert_true(trn_f16_to_f32(sum[i]) == 1024);
    assert_true(device_halves(TRN_STOCHASTIC, sum, RUNS));
    for (int i = 0; i < RUNS; i++) {
        const double x = (double)trn_f16_to_f32(sum[i]);
        total += x;
        squares += (x - 2048) * (x - 2048);
    }
    const double deviation = sqrt(squares / RUNS); /* about 22.6 */
    assert_true(fabs(total / RUNS - 2048) < 6);
    assert_true(deviation > 18 && deviation < 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_chains_reproduce_the_devices),
        cmocka_unit_test(a_single_chain_does_not),
        cmocka_unit_test(nor_do_other_orders),
        cmocka_unit_test(bf16_operands),
        cmocka_unit_test(the_error_of_128_cubed),
        cmocka_unit_test(e4m3_ends_at_240),
        cmocka_unit_test(transposes_are_exact),
        cmocka_unit_test(a_sum_in_fp16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
