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

#include "trnmath/trn_dma.h"
#include "trnmath/trn_gpsimd_engine.h"
#include "trnmath/trn_scalar_engine.h"
#include "trnmath/trn_vector_engine.h"
#include "twin/cases.h"

#define FP32_MIN (-3.4028235e38f)
#define ROW(format, data, n) trn_tensor_2d(format, data, 1, n)
#define BITS(x) cases_bits_of(x)

/* ---- casts ---- */

/* Neuron, rounding modes: 1024 + 0.5, 2048 times, in FP16. */
static void half_steps(bool stochastic, uint16_t *x, int lanes)
{
    for (int i = 0; i < lanes; i++) x[i] = 0x6400; /* 1024 */
    for (int step = 0; step < 2048; step++) {
        trn_tensor_scalar_args a = { .dst = ROW(TRN_F16, x, lanes), .data = ROW(TRN_F16, x, lanes) };
        a.op0 = TRN_ALU_ADD;
        a.operand0 = 0.5f;
        a.rounding = stochastic ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        a.seed = 7;
        a.stream = (uint64_t)step;
        assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
    }
}

static void half_steps_stay_or_wander(void **unused)
{
    enum { LANES = 1024 };
    static uint16_t x[LANES];
    (void)unused;
    half_steps(false, x, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(x[i], 0x6400);
    half_steps(true, x, LANES);
    double sum = 0, squares = 0;
    for (int i = 0; i < LANES; i++) {
        const double value = (double)trn_f16_to_f32(x[i]);
        sum += value;
        squares += (value - 2048) * (value - 2048);
    }
    assert_true(sum / LANES > 2048 - 3 && sum / LANES < 2048 + 3); /* the mean's deviation is 0.7 */
    assert_true(squares / LANES > 400 && squares / LANES < 640);   /* 22.6 squared is 511; one run printed 2056 */
}

/* NKI, range_select: FP32_MIN becomes -inf in narrower formats; whoever casts. */
static void lowest_becomes_infinity(void **unused)
{
    static const trn_format format[] = { TRN_F16, TRN_BF16, TRN_F8_E4M3, TRN_F8_E5M2 };
    static const uint32_t minus_infinity[] = { 0xfc00, 0xff80, 0xf8, 0xfc };
    (void)unused;
    for (int i = 0; i < 4; i++)
        for (int who = 0; who < 4; who++) {
            uint32_t code = 0;
            float lowest = FP32_MIN;
            const trn_tensor dst = ROW(format[i], &code, 1), src = ROW(TRN_F32, &lowest, 1);
            const trn_tensor_copy_args copy = { .dst = dst, .src = src };
            const trn_memset_args fill = { .dst = dst, .value = lowest };
            const trn_activation_args act = { .dst = dst, .src = src, .op = TRN_ACT_COPY };
            const trn_dma_copy_args dma = { .dst = dst, .src = src };
            const trn_status status = who == 0   ? trn_tensor_copy(&copy)
                                      : who == 1 ? trn_memset(&fill)
                                      : who == 2 ? trn_activation(&act)
                                                 : trn_dma_copy(&dma);
            assert_int_equal(status, TRN_OK);
            CASES_EQUAL(minus_infinity[i], code, "%s, %d", trn_format_name(format[i]), who);
        }
}

/* NKI's release notes: float to integer rounds to nearest even and saturates. */
static void integers_round_and_saturate(void **unused)
{
    float x[10] = { 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 127.4f, 127.5f, 1e9f, -1e9f, 3e38f };
    static const int8_t expected[10] = { 0, 2, 2, 0, -2, 127, 127, 127, -128, 127 };
    int8_t y[10];
    (void)unused;
    const trn_tensor_copy_args a = { .dst = ROW(TRN_I8, y, 10), .src = ROW(TRN_F32, x, 10) };
    assert_int_equal(trn_tensor_copy(&a), TRN_OK);
    for (int i = 0; i < 10; i++) assert_int_equal(y[i], expected[i]);
}

/* NKI library and ml_dtypes: E4M3 of Trainium2 ends at 240. */
static void e4m3_has_infinities(void **unused)
{
    uint8_t code[3] = { 0x77, 0x78, 0x79 };
    float x[3];
    (void)unused;
    const trn_tensor_copy_args a = { .generation = TRN_TRAINIUM2,
                                     .dst = ROW(TRN_F32, x, 3),
                                     .src = ROW(TRN_F8_E4M3, code, 3) };
    assert_int_equal(trn_tensor_copy(&a), TRN_OK);
    assert_true(x[0] == 240.0f);
    CASES_EQUAL(0x7f800000, BITS(x[1]), "infinity");
    assert_true(isnan(x[2]));
}

/* ---- range_select, and what comes after it in attention ---- */

static float difference(float a, float b)
{
    float x[1] = { a }, y[1] = { b }, r[1];
    const trn_tensor_tensor_args args = {
        .dst = ROW(TRN_F32, r, 1), .data1 = ROW(TRN_F32, x, 1), .data2 = ROW(TRN_F32, y, 1), .op = TRN_ALU_SUBTRACT
    };
    assert_int_equal(trn_tensor_tensor(&args), TRN_OK);
    return r[0];
}

/* NKI, range_select: FP32_MIN - FP32_MIN = 0, -inf - FP32_MIN = -inf; a masked row stays without NaN. */
static void masked_rows_are_stable(void **unused)
{
    float x[4] = { 1, 2, 3, 4 }, selected[4], most, none = -1, negated, result[4];
    uint16_t narrow[4];
    (void)unused;
    CASES_EQUAL(0, BITS(difference(FP32_MIN, FP32_MIN)), "FP32_MIN - FP32_MIN");
    CASES_EQUAL(0xff800000, BITS(difference(-INFINITY, FP32_MIN)), "-inf - FP32_MIN");
    for (int half = 0; half < 2; half++) {
        trn_range_select_args mask = { .dst = half ? ROW(TRN_F16, narrow, 4) : ROW(TRN_F32, selected, 4),
                                       .on_true_tile = ROW(TRN_F32, x, 4) };
        mask.comp_op0 = mask.comp_op1 = TRN_ALU_LESS; /* no index is below -1 */
        mask.bound0 = mask.bound1 = ROW(TRN_F32, &none, 1);
        mask.reduce_res = ROW(TRN_F32, &most, 1);
        assert_int_equal(trn_range_select(&mask), TRN_OK);
        CASES_EQUAL(BITS(FP32_MIN), BITS(most), "the maximum of a masked row");
        for (int i = 0; i < 4 && half; i++) CASES_EQUAL(0xfc00, narrow[i], "half %d", i);
        negated = -most;
        trn_activation_args softmax = {
            .dst = ROW(TRN_F32, result, 4), .src = mask.dst, .op = TRN_ACT_EXP, .bias_tile = ROW(TRN_F32, &negated, 1)
        };
        assert_int_equal(trn_activation(&softmax), TRN_OK);
        for (int i = 0; i < 4; i++) CASES_EQUAL(half ? 0 : 0x3f800000, BITS(result[i]), "half %d, %d", half, i);
    }
}

/* ---- functions of the Scalar engine ---- */

static void activate(trn_act op, float *y, float *x, int n)
{
    const trn_activation_args a = { .dst = ROW(TRN_F32, y, n), .src = ROW(TRN_F32, x, n), .op = op, .unlimited = true };
    assert_int_equal(trn_activation(&a), TRN_OK);
}

/* NKI: exp(-inf) is 0, exp(0) is 1, sin(9.0) is 27.65 (the last bucket's cubic). */
static void functions_at_points(void **unused)
{
    float x[3] = { -INFINITY, 0.0f, -0.0f }, nine = 9.0f, y[3];
    (void)unused;
    activate(TRN_ACT_EXP, y, x, 3);
    CASES_EQUAL(0, BITS(y[0]), "exp(-inf)");
    CASES_EQUAL(0x3f800000, BITS(y[1]), "exp(0)");
    CASES_EQUAL(0x3f800000, BITS(y[2]), "exp(-0)");
    activate(TRN_ACT_SIN, y, &nine, 1);
    assert_true(y[0] > 27.645f && y[0] < 27.655f);
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

/* ---- operators ---- */

/* nki.language: abs_max returns the signed operand, the second one on a tie. */
static void abs_max_keeps_signs(void **unused)
{
    float x[3] = { 1, -5, 2 }, y[3] = { -1, 3, -7 }, r[3];
    (void)unused;
    const trn_tensor_tensor_args a = {
        .dst = ROW(TRN_F32, r, 3), .data1 = ROW(TRN_F32, x, 3), .data2 = ROW(TRN_F32, y, 3), .op = TRN_ALU_ABS_MAX
    };
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    assert_true(r[0] == -1 && r[1] == -5 && r[2] == -7);
}

/* NKI, tensor_tensor: integers are exact on GpSimd, binary32 on the Vector engine. */
static void integers_are_exact_on_gpsimd(void **unused)
{
    int32_t x[2] = { 16777217, INT32_MAX }, y[2] = { 1, 1 }, r[2];
    (void)unused;
    trn_tensor_tensor_args a = {
        .dst = ROW(TRN_I32, r, 2), .data1 = ROW(TRN_I32, x, 2), .data2 = ROW(TRN_I32, y, 2), .op = TRN_ALU_ADD
    };
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    assert_int_equal(r[0], 16777218);
    a.engine = TRN_ENGINE_VECTOR;
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    assert_int_equal(r[0], 16777216);
    assert_int_equal(r[1], INT32_MAX); /* 2^31 saturates on the way out */
}

/* ---- searches and statistics ---- */

/* NKI, nc_match_replace8 and nc_find_index8: the page's example, both orders; what is missing is all ones. */
static void searches_as_the_page_has_them(void **unused)
{
    float data[11] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 }, vals[8] = { 3, 8, 8, 8, 8, 8, 8, 8 }, replaced[11];
    static const uint32_t backwards[8] = { 2, 10, 9, 8, 7, 6, 5, 4 }, forwards[8] = { 2, 4, 5, 6, 7, 8, 9, 10 };
    uint32_t index[8];
    uint16_t small[8];
    (void)unused;
    trn_nc_match_replace8_args replace = {
        .dst = ROW(TRN_F32, replaced, 11), .data = ROW(TRN_F32, data, 11), .vals = ROW(TRN_F32, vals, 8), .imm = -1
    };
    replace.dst_idx = ROW(TRN_U32, index, 8);
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(index[i], backwards[i]);
    for (int i = 0; i < 11; i++) assert_true(replaced[i] == (i == 2 || i >= 4 ? -1.0f : data[i]));
    trn_nc_find_index8_args find = { .dst = ROW(TRN_U32, index, 8), .data = replace.data, .vals = replace.vals };
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(index[i], forwards[i]);
    vals[0] = 77;
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    assert_true(index[0] == 0xffffffffu);
    find.dst = ROW(TRN_U16, small, 8);
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    assert_true(small[0] == 0xffffu && small[7] == 10);
}

/* NKI, bn_stats and bn_aggr: mean and population variance. */
static void statistics_of_512_values(void **unused)
{
    float x[512], stats[6], moments[2];
    double sum = 0, squares = 0;
    (void)unused;
    for (int i = 0; i < 512; i++) x[i] = (float)((i * 37) % 101) / 8.0f;
    for (int i = 0; i < 512; i++) sum += (double)x[i] / 512;
    for (int i = 0; i < 512; i++) squares += ((double)x[i] - sum) * ((double)x[i] - sum) / 512;
    const trn_bn_stats_args one = { .dst = ROW(TRN_F32, stats, 6), .data = ROW(TRN_F32, x, 512) };
    const trn_bn_aggr_args all = { .dst = ROW(TRN_F32, moments, 2), .data = one.dst };
    assert_int_equal(trn_bn_stats(&one), TRN_OK);
    assert_int_equal(trn_bn_aggr(&all), TRN_OK);
    assert_true(stats[0] == 256.0f && stats[3] == 256.0f);
    assert_true(fabs((double)moments[0] - sum) < 1e-6 * sum && fabs((double)moments[1] - squares) < 1e-6 * squares);
}

/* ---- quantize_mx ---- */

/* NKI: zeros have the scale 2^-127; a group's scale is twice OCP's. Values: 1 becomes 128 times 2^-7. */
static void quantized_groups(void **unused)
{
    static uint16_t x[32 * 4];
    static uint8_t code[32 * 4], scale[4];
    const int64_t shape[3] = { 32, 1, 4 };
    (void)unused;
    for (int i = 0; i < 32 * 4; i++) x[i] = i / 32 == 1 ? 0x3f80 : 0; /* partitions 8..15: 1.0, all else zero */
    const trn_quantize_mx_args a = { .dst = trn_tensor_nd(TRN_F8_E4M3FN, code, 3, shape),
                                     .src = trn_tensor_2d(TRN_BF16, x, 32, 4),
                                     .dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale, 4, 1) };
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
    assert_true(scale[0] == 0 && scale[1] == 120 && scale[2] == 0 && scale[3] == 0);
    for (int i = 0; i < 32 * 4; i++) assert_int_equal(code[i], i / 32 == 1 ? 0x70 : 0); /* 0x70 is 128 */
}

/* ---- GpSimd ---- */

/* NKI, nonzero_with_count: the page's example. */
static void positions_as_the_page_has_them(void **unused)
{
    int32_t x[8] = { 0, 1, 1, 0, 0, 1, 0, 0 }, y[9];
    static const int32_t expected[9] = { 17, 18, 21, -1, -1, -1, -1, -1, 3 };
    (void)unused;
    const trn_nonzero_with_count_args a = {
        .dst = ROW(TRN_I32, y, 9), .src = ROW(TRN_I32, x, 8), .index_offset = 16, .padding_val = -1
    };
    assert_int_equal(trn_nonzero_with_count(&a), TRN_OK);
    for (int i = 0; i < 9; i++) assert_int_equal(y[i], expected[i]);
}

/* NKI, sequence_bounds: starts, ends behind the last, n and -1 for padding. */
static void segments(void **unused)
{
    int32_t id[8] = { 1, 1, 2, 2, 2, 0, 3, 0 }, bound[16];
    static const int32_t expected[16] = { 0, 0, 2, 2, 2, 8, 6, 8, 2, 2, 5, 5, 5, -1, 7, -1 };
    const int64_t shape[3] = { 1, 2, 8 };
    (void)unused;
    const trn_sequence_bounds_args a = { .dst = trn_tensor_nd(TRN_I32, bound, 3, shape),
                                         .segment_ids = ROW(TRN_I32, id, 8) };
    assert_int_equal(trn_sequence_bounds(&a), TRN_OK);
    for (int i = 0; i < 16; i++) assert_int_equal(bound[i], expected[i]);
}

/* ---- dropout ---- */

/* NKI: probability 1 leaves nothing, 0 everything, and nothing is rescaled. */
static void dropout_at_its_ends(void **unused)
{
    static trn_vector_state state;
    float x[64], y[64];
    (void)unused;
    trn_vector_state_init(&state, 3);
    for (int i = 0; i < 64; i++) x[i] = (float)(i + 1);
    for (int all = 0; all < 2; all++) {
        const trn_dropout_args a = {
            .dst = ROW(TRN_F32, y, 64), .data = ROW(TRN_F32, x, 64), .prob = (float)all, .state = &state
        };
        assert_int_equal(trn_dropout(&a), TRN_OK);
        for (int i = 0; i < 64; i++) assert_true(y[i] == (all ? 0.0f : x[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_steps_stay_or_wander),
        cmocka_unit_test(lowest_becomes_infinity),
        cmocka_unit_test(integers_round_and_saturate),
        cmocka_unit_test(e4m3_has_infinities),
        cmocka_unit_test(masked_rows_are_stable),
        cmocka_unit_test(functions_at_points),
        cmocka_unit_test(exp_errs_as_measured),
        cmocka_unit_test(reciprocal_errs_as_measured),
        cmocka_unit_test(abs_max_keeps_signs),
        cmocka_unit_test(integers_are_exact_on_gpsimd),
        cmocka_unit_test(searches_as_the_page_has_them),
        cmocka_unit_test(statistics_of_512_values),
        cmocka_unit_test(quantized_groups),
        cmocka_unit_test(positions_as_the_page_has_them),
        cmocka_unit_test(segments),
        cmocka_unit_test(dropout_at_its_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
