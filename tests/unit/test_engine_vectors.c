/* test_engine_vectors.c - what the vendor has published about results of the Vector, Scalar, GpSimd and DMA engines.
 * SPDX-License-Identifier: MIT
 *
 * Numbers from NKI's instruction pages, the Neuron guides and device measurements that third parties have printed; each
 * test names what it is from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "published/engines.h"

#define ROW(format, data, n) trn_tensor_2d(format, data, 1, n)
#define BITS(x) cases_bits_of(x)

/* ---- casts ---- */

static void half_steps_stay_or_wander(void **unused)
{
    enum { LANES = 1024 };
    static uint16_t x[LANES];
    (void)unused;
    assert_true(engine_halves(false, x, 4));
    for (int i = 0; i < 4; i++) assert_int_equal(x[i], 0x6400);
    assert_true(engine_halves(true, x, LANES));
    double sum = 0, squares = 0;
    for (int i = 0; i < LANES; i++) {
        const double value = (double)trn_f16_to_f32(x[i]);
        sum += value;
        squares += (value - 2048) * (value - 2048);
    }
    assert_true(sum / LANES > 2048 - 3 && sum / LANES < 2048 + 3); /* the mean's deviation is 0.7 */
    assert_true(squares / LANES > 400 && squares / LANES < 640);   /* 22.6 squared is 511; one run printed 2056 */
}

/* ---- functions of the Scalar engine ---- */

static void activate(trn_act op, float *y, float *x, int n)
{
    const trn_activation_args a = { .dst = ROW(TRN_F32, y, n), .src = ROW(TRN_F32, x, n), .op = op, .unlimited = true };
    assert_int_equal(trn_activation(&a), TRN_OK);
}

enum { BATCH = 1 << 14 };

/* Measured on Trainium2: 1.1348e-5 over [-64, 0], nothing above 1. The error is largest at the edges of buckets, which
 * are multiples of 1/4 and, near 0, of less. */
static void exp_errs_as_measured(void **unused)
{
    static float x[BATCH], y[BATCH];
    double most = 0;
    (void)unused;
    for (int edge = 0; edge < 256 * 64; edge += BATCH / 64) {
        int n = 0;
        for (int i = 0; i < BATCH / 64; i++)
            for (int near = -32; near < 32; near++) {
                const uint32_t bits = BITS((float)(edge + i) / -256.0f);
                x[n++] = cases_float_of((bits & 0x7fffffffu) > 64u ? bits + (uint32_t)near
                                                                   : 0x80000000u + (uint32_t)(near + 32));
            }
        activate(TRN_ACT_EXP, y, x, n);
        for (int i = 0; i < n; i++) {
            assert_true(x[i] > 0 || y[i] <= 1.0f);
            const double exact = exp((double)x[i]), error = fabs((double)y[i] - exact) / exact;
            if (error > most && x[i] >= -64) most = error;
        }
    }
    if (!(most > 1.12e-5 && most < 1.15e-5)) fail_msg("the largest error of exp is %g", most);
}

/* Measured on Trainium2: 1.1984e-5 over [1, 4]. One float in three at level 1, then all. */
static void reciprocal_errs_as_measured(void **unused)
{
    static float x[BATCH], y[BATCH];
    const uint32_t step = cases_level() == 1 ? 3 : 1;
    double most = 0;
    (void)unused;
    for (uint32_t bits = 0x3f800000; bits <= 0x40800000;) {
        int n = 0;
        for (; n < BATCH && bits <= 0x40800000; bits += step) x[n++] = cases_float_of(bits);
        activate(TRN_ACT_RECIPROCAL, y, x, n);
        for (int i = 0; i < n; i++) {
            const double error = fabs((double)y[i] * (double)x[i] - 1);
            if (error > most) most = error;
        }
    }
    if (!(most > 1.18e-5 && most < 1.21e-5)) fail_msg("the largest error of reciprocal is %g", most);
}

/* ---- what the pages say: published/engines.h ---- */

static void pages_say(void **unused)
{
    (void)unused;
    for (int i = 0; i < ENGINE_VECTORS; i++) {
        engine_tally t = { 0, 0 };
        engine_vectors[i].check(&t);
        if (t.wrong || !t.checked)
            fail_msg("%s (%s): %d of %d", engine_vectors[i].what, engine_vectors[i].source, t.wrong, t.checked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_steps_stay_or_wander),
        cmocka_unit_test(exp_errs_as_measured),
        cmocka_unit_test(reciprocal_errs_as_measured),
        cmocka_unit_test(pages_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
