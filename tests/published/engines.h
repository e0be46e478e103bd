/* engines.h - what the vendor has published about results of the Vector, Scalar, GpSimd and DMA engines.
 * SPDX-License-Identifier: MIT
 *
 * Numbers from NKI's instruction pages and the Neuron guides; the table at the end names each one's source.
 */
#ifndef PUBLISHED_ENGINES_H
#define PUBLISHED_ENGINES_H

#include <math.h>

#include "trnmath/trn_dma.h"
#include "trnmath/trn_gpsimd_engine.h"
#include "trnmath/trn_scalar_engine.h"
#include "trnmath/trn_vector_engine.h"
#include "twin/cases.h"

#define ENGINE_LOWEST (-3.4028235e38f)
#define ENGINE_ROW(format, data, n) trn_tensor_2d(format, data, 1, n)
#define ENGINE_EXPECT(condition) (t->checked++, t->wrong += !(condition))

typedef struct engine_tally {
    int checked, wrong; /* values */
} engine_tally;

/* Neuron, rounding modes: 1024 + 0.5, 2048 times, in FP16, on the Vector engine. False after a refusal. */
static inline bool engine_halves(bool stochastic, uint16_t *x, int lanes)
{
    bool good = true;
    for (int i = 0; i < lanes; i++) x[i] = 0x6400; /* 1024 */
    for (int step = 0; step < 2048 && good; step++) {
        trn_tensor_scalar_args a = { .dst = ENGINE_ROW(TRN_F16, x, lanes), .data = ENGINE_ROW(TRN_F16, x, lanes) };
        a.op0 = TRN_ALU_ADD;
        a.operand0 = 0.5f;
        a.rounding = stochastic ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        a.seed = 7;
        a.stream = (uint64_t)step;
        good = trn_tensor_scalar(&a) == TRN_OK;
    }
    return good;
}

static inline float engine_difference(float a, float b)
{
    float x[1] = { a }, y[1] = { b }, r[1];
    const trn_tensor_tensor_args args = { .dst = ENGINE_ROW(TRN_F32, r, 1),
                                          .data1 = ENGINE_ROW(TRN_F32, x, 1),
                                          .data2 = ENGINE_ROW(TRN_F32, y, 1),
                                          .op = TRN_ALU_SUBTRACT };
    return trn_tensor_tensor(&args) == TRN_OK ? r[0] : (float)NAN;
}

static inline void engine_activate(trn_act op, float *y, float *x, int n)
{
    const trn_activation_args a = {
        .dst = ENGINE_ROW(TRN_F32, y, n), .src = ENGINE_ROW(TRN_F32, x, n), .op = op, .unlimited = true
    };
    for (int i = 0; i < n; i++) y[i] = (float)NAN;
    (void)trn_activation(&a); /* after a refusal NaN stays */
}

/* NKI, range_select: FP32_MIN becomes -inf in narrower formats; whoever casts. */
static inline void engine_lowest_becomes_infinity(engine_tally *t)
{
    static const trn_format format[] = { TRN_F16, TRN_BF16, TRN_F8_E4M3, TRN_F8_E5M2 };
    static const uint32_t minus_infinity[] = { 0xfc00, 0xff80, 0xf8, 0xfc };
    for (int i = 0; i < 4; i++)
        for (int who = 0; who < 4; who++) {
            uint32_t code = 0;
            float lowest = ENGINE_LOWEST;
            const trn_tensor dst = ENGINE_ROW(format[i], &code, 1), src = ENGINE_ROW(TRN_F32, &lowest, 1);
            const trn_tensor_copy_args copy = { .dst = dst, .src = src };
            const trn_memset_args fill = { .dst = dst, .value = lowest };
            const trn_activation_args act = { .dst = dst, .src = src, .op = TRN_ACT_COPY };
            const trn_dma_copy_args dma = { .dst = dst, .src = src };
            const trn_status status = who == 0   ? trn_tensor_copy(&copy)
                                      : who == 1 ? trn_memset(&fill)
                                      : who == 2 ? trn_activation(&act)
                                                 : trn_dma_copy(&dma);
            ENGINE_EXPECT(status == TRN_OK);
            ENGINE_EXPECT(code == minus_infinity[i]);
        }
}

/* NKI's release notes: float to integer rounds to nearest even and saturates. */
static inline void engine_integers_round_and_saturate(engine_tally *t)
{
    float x[10] = { 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 127.4f, 127.5f, 1e9f, -1e9f, 3e38f };
    static const int8_t expected[10] = { 0, 2, 2, 0, -2, 127, 127, 127, -128, 127 };
    int8_t y[10];
    const trn_tensor_copy_args a = { .dst = ENGINE_ROW(TRN_I8, y, 10), .src = ENGINE_ROW(TRN_F32, x, 10) };
    ENGINE_EXPECT(trn_tensor_copy(&a) == TRN_OK);
    for (int i = 0; i < 10; i++) ENGINE_EXPECT(y[i] == expected[i]);
}

/* NKI library and ml_dtypes: E4M3 of Trainium2 ends at 240. */
static inline void engine_e4m3_has_infinities(engine_tally *t)
{
    uint8_t code[3] = { 0x77, 0x78, 0x79 };
    float x[3];
    const trn_tensor_copy_args a = { .generation = TRN_TRAINIUM2,
                                     .dst = ENGINE_ROW(TRN_F32, x, 3),
                                     .src = ENGINE_ROW(TRN_F8_E4M3, code, 3) };
    ENGINE_EXPECT(trn_tensor_copy(&a) == TRN_OK);
    ENGINE_EXPECT(x[0] == 240.0f);
    ENGINE_EXPECT(cases_bits_of(x[1]) == 0x7f800000);
    ENGINE_EXPECT(isnan(x[2]));
}

/* NKI, range_select: FP32_MIN - FP32_MIN = 0, -inf - FP32_MIN = -inf; a masked row stays without NaN. */
static inline void engine_masked_rows_are_stable(engine_tally *t)
{
    float x[4] = { 1, 2, 3, 4 }, selected[4], most, none = -1, negated, result[4];
    uint16_t narrow[4];
    ENGINE_EXPECT(cases_bits_of(engine_difference(ENGINE_LOWEST, ENGINE_LOWEST)) == 0);
    ENGINE_EXPECT(cases_bits_of(engine_difference(-INFINITY, ENGINE_LOWEST)) == 0xff800000);
    for (int half = 0; half < 2; half++) {
        trn_range_select_args mask = { .dst = half ? ENGINE_ROW(TRN_F16, narrow, 4) : ENGINE_ROW(TRN_F32, selected, 4),
                                       .on_true_tile = ENGINE_ROW(TRN_F32, x, 4) };
        mask.comp_op0 = mask.comp_op1 = TRN_ALU_LESS; /* no index is below -1 */
        mask.bound0 = mask.bound1 = ENGINE_ROW(TRN_F32, &none, 1);
        mask.reduce_res = ENGINE_ROW(TRN_F32, &most, 1);
        ENGINE_EXPECT(trn_range_select(&mask) == TRN_OK);
        ENGINE_EXPECT(cases_bits_of(most) == cases_bits_of(ENGINE_LOWEST));
        for (int i = 0; i < 4 && half; i++) ENGINE_EXPECT(narrow[i] == 0xfc00);
        negated = -most;
        trn_activation_args softmax = { .dst = ENGINE_ROW(TRN_F32, result, 4),
                                        .src = mask.dst,
                                        .op = TRN_ACT_EXP,
                                        .bias_tile = ENGINE_ROW(TRN_F32, &negated, 1) };
        ENGINE_EXPECT(trn_activation(&softmax) == TRN_OK);
        for (int i = 0; i < 4; i++) ENGINE_EXPECT(cases_bits_of(result[i]) == (half ? 0u : 0x3f800000u));
    }
}

/* NKI: exp(-inf) is 0, exp(0) is 1, sin(9.0) is 27.65 (the last bucket's cubic). */
static inline void engine_functions_at_points(engine_tally *t)
{
    float x[3] = { -INFINITY, 0.0f, -0.0f }, nine = 9.0f, y[3];
    engine_activate(TRN_ACT_EXP, y, x, 3);
    ENGINE_EXPECT(cases_bits_of(y[0]) == 0);
    ENGINE_EXPECT(cases_bits_of(y[1]) == 0x3f800000);
    ENGINE_EXPECT(cases_bits_of(y[2]) == 0x3f800000);
    engine_activate(TRN_ACT_SIN, y, &nine, 1);
    ENGINE_EXPECT(y[0] > 27.645f && y[0] < 27.655f);
}

/* nki.language: abs_max returns the signed operand, the second one on a tie. */
static inline void engine_abs_max_keeps_signs(engine_tally *t)
{
    float x[3] = { 1, -5, 2 }, y[3] = { -1, 3, -7 }, r[3];
    const trn_tensor_tensor_args a = { .dst = ENGINE_ROW(TRN_F32, r, 3),
                                       .data1 = ENGINE_ROW(TRN_F32, x, 3),
                                       .data2 = ENGINE_ROW(TRN_F32, y, 3),
                                       .op = TRN_ALU_ABS_MAX };
    ENGINE_EXPECT(trn_tensor_tensor(&a) == TRN_OK);
    ENGINE_EXPECT(r[0] == -1 && r[1] == -5 && r[2] == -7);
}

/* NKI, tensor_tensor: integers are exact on GpSimd, binary32 on the Vector engine. */
static inline void engine_integers_are_exact_on_gpsimd(engine_tally *t)
{
    int32_t x[2] = { 16777217, INT32_MAX }, y[2] = { 1, 1 }, r[2];
    trn_tensor_tensor_args a = { .dst = ENGINE_ROW(TRN_I32, r, 2),
                                 .data1 = ENGINE_ROW(TRN_I32, x, 2),
                                 .data2 = ENGINE_ROW(TRN_I32, y, 2),
                                 .op = TRN_ALU_ADD };
    ENGINE_EXPECT(trn_tensor_tensor(&a) == TRN_OK);
    ENGINE_EXPECT(r[0] == 16777218);
    a.engine = TRN_ENGINE_VECTOR;
    ENGINE_EXPECT(trn_tensor_tensor(&a) == TRN_OK);
    ENGINE_EXPECT(r[0] == 16777216);
    ENGINE_EXPECT(r[1] == INT32_MAX); /* 2^31 saturates on the way out */
}

/* NKI, nc_match_replace8 and nc_find_index8: the page's example, both orders; what is missing is all ones. */
static inline void engine_searches_as_the_page_has_them(engine_tally *t)
{
    float data[11] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 }, vals[8] = { 3, 8, 8, 8, 8, 8, 8, 8 }, replaced[11];
    static const uint32_t backwards[8] = { 2, 10, 9, 8, 7, 6, 5, 4 }, forwards[8] = { 2, 4, 5, 6, 7, 8, 9, 10 };
    uint32_t index[8];
    uint16_t small[8];
    trn_nc_match_replace8_args replace = { .dst = ENGINE_ROW(TRN_F32, replaced, 11),
                                           .data = ENGINE_ROW(TRN_F32, data, 11),
                                           .vals = ENGINE_ROW(TRN_F32, vals, 8),
                                           .imm = -1 };
    replace.dst_idx = ENGINE_ROW(TRN_U32, index, 8);
    ENGINE_EXPECT(trn_nc_match_replace8(&replace) == TRN_OK);
    for (int i = 0; i < 8; i++) ENGINE_EXPECT(index[i] == backwards[i]);
    for (int i = 0; i < 11; i++) ENGINE_EXPECT(replaced[i] == (i == 2 || i >= 4 ? -1.0f : data[i]));
    trn_nc_find_index8_args find = { .dst = ENGINE_ROW(TRN_U32, index, 8), .data = replace.data, .vals = replace.vals };
    ENGINE_EXPECT(trn_nc_find_index8(&find) == TRN_OK);
    for (int i = 0; i < 8; i++) ENGINE_EXPECT(index[i] == forwards[i]);
    vals[0] = 77;
    ENGINE_EXPECT(trn_nc_find_index8(&find) == TRN_OK);
    ENGINE_EXPECT(index[0] == 0xffffffffu);
    find.dst = ENGINE_ROW(TRN_U16, small, 8);
    ENGINE_EXPECT(trn_nc_find_index8(&find) == TRN_OK);
    ENGINE_EXPECT(small[0] == 0xffffu && small[7] == 10);
}

/* NKI, bn_stats and bn_aggr: mean and population variance. */
static inline void engine_statistics_of_512_values(engine_tally *t)
{
    float x[512], stats[6], moments[2];
    double sum = 0, squares = 0;
    for (int i = 0; i < 512; i++) x[i] = (float)((i * 37) % 101) / 8.0f;
    for (int i = 0; i < 512; i++) sum += (double)x[i] / 512;
    for (int i = 0; i < 512; i++) squares += ((double)x[i] - sum) * ((double)x[i] - sum) / 512;
    const trn_bn_stats_args one = { .dst = ENGINE_ROW(TRN_F32, stats, 6), .data = ENGINE_ROW(TRN_F32, x, 512) };
    const trn_bn_aggr_args all = { .dst = ENGINE_ROW(TRN_F32, moments, 2), .data = one.dst };
    ENGINE_EXPECT(trn_bn_stats(&one) == TRN_OK);
    ENGINE_EXPECT(trn_bn_aggr(&all) == TRN_OK);
    ENGINE_EXPECT(stats[0] == 256.0f && stats[3] == 256.0f);
    ENGINE_EXPECT(fabs((double)moments[0] - sum) < 1e-6 * sum && fabs((double)moments[1] - squares) < 1e-6 * squares);
}

/* NKI: zeros have the scale 2^-127; a group's scale is twice OCP's. Values: 1 becomes 128 times 2^-7. */
static inline void engine_quantized_groups(engine_tally *t)
{
    static uint16_t x[32 * 4];
    static uint8_t code[32 * 4], scale[4];
    const int64_t shape[3] = { 32, 1, 4 };
    for (int i = 0; i < 32 * 4; i++) x[i] = i / 32 == 1 ? 0x3f80 : 0; /* partitions 8..15: 1.0, all else zero */
    const trn_quantize_mx_args a = { .dst = trn_tensor_nd(TRN_F8_E4M3FN, code, 3, shape),
                                     .src = trn_tensor_2d(TRN_BF16, x, 32, 4),
                                     .dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale, 4, 1) };
    ENGINE_EXPECT(trn_quantize_mx(&a) == TRN_OK);
    ENGINE_EXPECT(scale[0] == 0 && scale[1] == 120 && scale[2] == 0 && scale[3] == 0);
    for (int i = 0; i < 32 * 4; i++) ENGINE_EXPECT(code[i] == (i / 32 == 1 ? 0x70 : 0)); /* 0x70 is 128 */
}

/* NKI, nonzero_with_count: the page's example. */
static inline void engine_positions_as_the_page_has_them(engine_tally *t)
{
    int32_t x[8] = { 0, 1, 1, 0, 0, 1, 0, 0 }, y[9];
    static const int32_t expected[9] = { 17, 18, 21, -1, -1, -1, -1, -1, 3 };
    const trn_nonzero_with_count_args a = {
        .dst = ENGINE_ROW(TRN_I32, y, 9), .src = ENGINE_ROW(TRN_I32, x, 8), .index_offset = 16, .padding_val = -1
    };
    ENGINE_EXPECT(trn_nonzero_with_count(&a) == TRN_OK);
    for (int i = 0; i < 9; i++) ENGINE_EXPECT(y[i] == expected[i]);
}

/* NKI, sequence_bounds: starts, ends behind the last, n and -1 for padding. */
static inline void engine_segments(engine_tally *t)
{
    int32_t id[8] = { 1, 1, 2, 2, 2, 0, 3, 0 }, bound[16];
    static const int32_t expected[16] = { 0, 0, 2, 2, 2, 8, 6, 8, 2, 2, 5, 5, 5, -1, 7, -1 };
    const int64_t shape[3] = { 1, 2, 8 };
    const trn_sequence_bounds_args a = { .dst = trn_tensor_nd(TRN_I32, bound, 3, shape),
                                         .segment_ids = ENGINE_ROW(TRN_I32, id, 8) };
    ENGINE_EXPECT(trn_sequence_bounds(&a) == TRN_OK);
    for (int i = 0; i < 16; i++) ENGINE_EXPECT(bound[i] == expected[i]);
}

/* NKI: probability 1 leaves nothing, 0 everything, and nothing is rescaled. */
static inline void engine_dropout_at_its_ends(engine_tally *t)
{
    static trn_vector_state state;
    float x[64], y[64];
    trn_vector_state_init(&state, 3);
    for (int i = 0; i < 64; i++) x[i] = (float)(i + 1);
    for (int all = 0; all < 2; all++) {
        const trn_dropout_args a = {
            .dst = ENGINE_ROW(TRN_F32, y, 64), .data = ENGINE_ROW(TRN_F32, x, 64), .prob = (float)all, .state = &state
        };
        ENGINE_EXPECT(trn_dropout(&a) == TRN_OK);
        for (int i = 0; i < 64; i++) ENGINE_EXPECT(y[i] == (all ? 0.0f : x[i]));
    }
}

typedef struct engine_vector {
    const char *id, *what, *source;
    void (*check)(engine_tally *t);
} engine_vector;

static const engine_vector engine_vectors[] = {
    { "cast.lowest", "FP32_MIN becomes -inf in F16, BF16, E4M3, E5M2: copy, memset, activation, DMA",
      "NKI, range_select", engine_lowest_becomes_infinity },
    { "cast.integers", "float to integer: nearest even, saturating", "NKI release notes",
      engine_integers_round_and_saturate },
    { "cast.e4m3", "E4M3 on Trainium2: 77 is 240, 78 infinity, 79 NaN", "NKI library; ml_dtypes",
      engine_e4m3_has_infinities },
    { "vector.range_select", "FP32_MIN - FP32_MIN = 0, -inf - FP32_MIN = -inf; a masked row stays without NaN",
      "NKI, range_select", engine_masked_rows_are_stable },
    { "scalar.points", "exp(-inf) = 0, exp(0) = exp(-0) = 1, to the bit; sin(9.0) prints 27.65",
      "NKI, range_select and activation", engine_functions_at_points },
    { "vector.abs_max", "abs_max returns the signed operand, the second on a tie", "nki.language, abs_max",
      engine_abs_max_keeps_signs },
    { "gpsimd.integers", "int32 sums: exact on GpSimd, binary32 on the Vector engine", "NKI, tensor_tensor",
      engine_integers_are_exact_on_gpsimd },
    { "vector.match_replace8", "match_replace8 and find_index8: the example of the page, both orders",
      "NKI, nc_match_replace8, nc_find_index8", engine_searches_as_the_page_has_them },
    { "vector.bn_stats", "bn_stats and bn_aggr: mean and population variance", "NKI, bn_stats, bn_aggr",
      engine_statistics_of_512_values },
    { "vector.quantize_mx", "groups of zeros have the scale 2^-127; 1 becomes 128 times 2^-7", "NKI, quantize_mx",
      engine_quantized_groups },
    { "gpsimd.nonzero_with_count", "nonzero_with_count: the example of the page", "NKI, nonzero_with_count",
      engine_positions_as_the_page_has_them },
    { "gpsimd.sequence_bounds", "sequence_bounds: starts, ends, n and -1 for padding", "NKI, sequence_bounds",
      engine_segments },
    { "vector.dropout", "dropout: probability 1 leaves nothing, 0 everything, nothing is rescaled", "NKI, dropout",
      engine_dropout_at_its_ends },
};
enum { ENGINE_VECTORS = sizeof engine_vectors / sizeof engine_vectors[0] };

#endif /* PUBLISHED_ENGINES_H */
