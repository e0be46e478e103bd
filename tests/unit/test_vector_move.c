/* test_vector_move.c - nc_stream_shuffle, partition_broadcast, the Vector engine's transpose, quantize_mx: bits that
 * move, groups that share a scale, the way on to nc_matmul_mx, refusals.
 * SPDX-License-Identifier: MIT
 *
 * Random arguments against the twin: test_engine_twin_search.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_matmul.h"
#include "trnmath/trn_tensor_engine.h"
#include "trnmath/trn_vector_engine.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/refusal.h"

/* ---- nc_stream_shuffle ---- */

enum { ROWS = 128, F = 600, LEAVE = 255 };
static unsigned char from[ROWS * F * 4], to[ROWS * F * 4];

static void fill(unsigned char *bytes, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)cases_u32(&seed);
}

static trn_nc_stream_shuffle_args shuffle_of(trn_format format, int dst_rows, int src_rows, int elements)
{
    trn_nc_stream_shuffle_args a = { .dst = trn_tensor_2d(format, to, dst_rows, elements),
                                     .src = trn_tensor_2d(format, from, src_rows, elements) };
    for (int i = 0; i < 32; i++) a.shuffle_mask[i] = 31 - i;
    return a;
}

/* Every byte of dst is what the mask says, or as it was. */
static void ask_shuffle(trn_nc_stream_shuffle_args *a)
{
    static unsigned char before[sizeof to], source[sizeof from];
    const size_t row = (size_t)a->dst.shape[1] * trn_format_bytes(a->dst.format);
    const bool in_place = a->dst.data == a->src.data;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        fill(from, sizeof from, 1);
        fill(to, sizeof to, 2);
        memcpy(before, in_place ? from : to, sizeof before);
        memcpy(source, from, sizeof source);
        a->isa = all_isas[i];
        with_threads(i % 2 ? 3 : 1);
        assert_int_equal(trn_nc_stream_shuffle(a), TRN_OK);
        const unsigned char *after = (const unsigned char *)a->dst.data;
        for (int p = 0; p < a->dst.shape[0]; p++) {
            const int mask = a->shuffle_mask[p % 32];
            const unsigned char *want =
                mask == LEAVE ? before + (size_t)p * row : source + (size_t)(p / 32 * 32 + mask) * row;
            if (memcmp(after + (size_t)p * row, want, row) != 0) fail_msg("partition %d, mask %d", p, mask);
        }
        const size_t end = (size_t)a->dst.shape[0] * row;
        assert_memory_equal(after + end, before + end, sizeof before - end);
    }
    with_threads(1);
}

static void masks(void **unused)
{
    static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F8_E4M3, TRN_I32, TRN_U8, TRN_TF32 };
    uint64_t rng = 4;
    (void)unused;
    for (int round = 0; round < 60; round++) {
        const trn_format format = formats[round % 6];
        const int elements = round % 5 == 0 ? F : 1 + cases_below(&rng, 40), rows = 1 + cases_below(&rng, ROWS);
        trn_nc_stream_shuffle_args a = shuffle_of(format, rows, ROWS, elements);
        for (int i = 0; i < 32; i++) a.shuffle_mask[i] = cases_one_in(&rng, 5) ? LEAVE : cases_below(&rng, 32);
        if (round % 7 == 0)
            for (int i = 0; i < 32; i++) a.shuffle_mask[i] = round % 32; /* one for all */
        if (round % 3 == 0) a.dst = a.src = trn_tensor_2d(format, from, ROWS, elements);
        a.generation = (trn_generation)(TRN_TRAINIUM1 + round % 3);
        ask_shuffle(&a);
    }
}

/* 40 partitions: the second quadrant is short, on both sides. */
static void short_quadrants(void **unused)
{
    const refusal_watch watch = { to, sizeof to };
    (void)unused;
    trn_nc_stream_shuffle_args a = shuffle_of(TRN_F32, 40, 40, 5);
    for (int i = 0; i < 32; i++) a.shuffle_mask[i] = i < 8 ? 7 - i : 31;
    ask_shuffle(&a); /* partition 63 is asked for by partitions that dst does not have */
    a.shuffle_mask[6] = 8;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "shuffle_mask[6] is 8, which is partition 40 of src; it has 40",
            &watch);
    a.dst.shape[0] = 38;
    ask_shuffle(&a);
}

/* src is one partition of dst's own quadrant: it goes to all of them. */
static void one_partition_spreads(void **unused)
{
    (void)unused;
    trn_nc_stream_shuffle_args a = shuffle_of(TRN_F32, 32, 1, 200);
    a.dst = trn_tensor_2d(TRN_F32, from, 32, 200), a.src = trn_tensor_2d(TRN_F32, from, 1, 200);
    memset(a.shuffle_mask, 0, sizeof a.shuffle_mask);
    ask_shuffle(&a);
    trn_tensor wide = trn_tensor_2d(TRN_F32, from, 32, 200); /* the same of 100 columns in the middle */
    fill(from, sizeof from, 1);
    a.dst = trn_tensor_slice(wide, 1, 50, 100), a.src = trn_tensor_slice(trn_tensor_slice(wide, 0, 0, 1), 1, 50, 100);
    assert_int_equal(trn_nc_stream_shuffle(&a), TRN_OK);
    for (int p = 1; p < 32; p++) assert_memory_equal(from + (size_t)p * 800 + 200, from + 200, 400);
    assert_true(memcmp(from + 800, from, 200) && memcmp(from + 800 + 600, from + 600, 200));
}

/* ---- partition_broadcast ---- */

/* Bits of any format, NaN and the zero below zero among them; columns of a wider tile; elements of one seen many times.
 */
static void one_partition_for_all(void **unused)
{
    static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F8_E4M3, TRN_I32, TRN_U8, TRN_TF32 };
    uint64_t rng = 5;
    (void)unused;
    for (int round = 0; round < 60; round++) {
        const trn_format format = formats[round % 6];
        const size_t bytes = trn_format_bytes(format);
        const int elements = round % 5 == 0 ? F : 1 + cases_below(&rng, 40), rows = 1 + cases_below(&rng, ROWS);
        fill(from, sizeof from, (uint64_t)round);
        trn_partition_broadcast_args a = { .dst = trn_tensor_2d(format, to, rows, elements),
                                           .src = trn_tensor_2d(format, from, 1, elements) };
        if (format == TRN_F32) memcpy(from, "\0\0\0\x80\1\0\x80\x7f", elements > 1 ? 8 : 4);
        if (round % 4 == 3) a.src.stride[0] = 1, a.src.stride[1] = 0;
        a.generation = (trn_generation)(TRN_TRAINIUM1 + round % 3);
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            memset(to, 0x55, sizeof to);
            a.isa = all_isas[i];
            with_threads(i % 2 ? 3 : 1);
            assert_int_equal(trn_partition_broadcast(&a), TRN_OK);
            for (int k = 0; k < rows * elements; k++)
                assert_memory_equal(to + (size_t)k * bytes, from + (size_t)(a.src.stride[0] ? 0 : k % elements) * bytes,
                                    bytes);
            for (size_t k = (size_t)rows * (size_t)elements * bytes; k < sizeof to; k++) assert_int_equal(to[k], 0x55);
        }
        with_threads(1);
    }
}

static void broadcast_refusals(void **unused)
{
    const refusal_watch watch = { to, sizeof to };
    (void)unused;
    assert_int_equal(trn_partition_broadcast(NULL), TRN_EINVAL);
    const trn_partition_broadcast_args legal = { .dst = trn_tensor_2d(TRN_F32, to, 64, 8),
                                                 .src = trn_tensor_2d(TRN_F32, from, 1, 8) };
    trn_partition_broadcast_args a = legal;
    a.src.shape[0] = 2;
    REFUSED(trn_partition_broadcast, a, TRN_ESHAPE, "src has 2 partitions; partition_broadcast spreads one", &watch);
    a = legal;
    a.src.shape[1] = 7;
    REFUSED(trn_partition_broadcast, a, TRN_ESHAPE, "src has 7 elements but a partition of dst has 8", &watch);
    a = legal;
    a.src.format = TRN_I32;
    REFUSED(trn_partition_broadcast, a, TRN_EFORMAT,
            "dst is float32 and src is int32; partition_broadcast changes no format", &watch);
    a = legal;
    a.src.data = to;
    REFUSED(trn_partition_broadcast, a, TRN_EINVAL, "dst overlaps src", &watch);
    a = legal;
    a.engine = TRN_ENGINE_VECTOR;
    REFUSED(trn_partition_broadcast, a, TRN_EINVAL, "engine is vector, which does not execute partition_broadcast",
            &watch);
    a = legal;
    a.dst.shape[1] = a.src.shape[1] = 0;
    assert_int_equal(trn_partition_broadcast(&a), TRN_OK);
}

static void shuffle_refusals(void **unused)
{
    const refusal_watch watch = { to, sizeof to };
    (void)unused;
    assert_int_equal(trn_nc_stream_shuffle(NULL), TRN_EINVAL);
    trn_nc_stream_shuffle_args a = shuffle_of(TRN_F32, 64, 64, 8);
    a.shuffle_mask[31] = 32;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "shuffle_mask[31] is 32; it is 0 to 31, or 255", &watch);
    a.shuffle_mask[31] = -1;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "shuffle_mask[31] is -1", &watch);
    a = shuffle_of(TRN_F32, 64, 64, 8);
    a.src.format = TRN_I32;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EFORMAT,
            "dst is float32 and src is int32; nc_stream_shuffle changes no format", &watch);
    a = shuffle_of(TRN_F32, 64, 64, 8);
    a.src.shape[1] = 7;
    REFUSED(trn_nc_stream_shuffle, a, TRN_ESHAPE, "src has 7 elements per partition but dst has 8", &watch);
    a = shuffle_of(TRN_F32, 64, 64, 8);
    a.src.data = to + 4;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "dst overlaps src", &watch);
    a = shuffle_of(TRN_F32, 32, 1, 8); /* one partition, but not the first of dst */
    a.src.data = to + 32;
    memset(a.shuffle_mask, 0, sizeof a.shuffle_mask);
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "dst overlaps src", &watch);
    a = shuffle_of(TRN_F32, 64, 64, 8);
    a.engine = TRN_ENGINE_GPSIMD;
    REFUSED(trn_nc_stream_shuffle, a, TRN_EINVAL, "engine is gpsimd", &watch);
    a = shuffle_of(TRN_F32, 64, 64, 0);
    assert_int_equal(trn_nc_stream_shuffle(&a), TRN_OK);
}

/* ---- nc_transpose on the Vector engine ---- */

static void transposes(void **unused)
{
    static const int sizes[][2] = { { 1, 1 }, { 32, 32 }, { 3, 32 }, { 32, 5 }, { 17, 29 }, { 33, 64 }, { 100, 70 } };
    static const trn_format formats[] = { TRN_F32, TRN_F16, TRN_F8_E5M2, TRN_I16, TRN_U32, TRN_F8_E8M0, TRN_CFP8 };
    (void)unused;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            const int p = sizes[s][0], n = sizes[s][1];
            const size_t size = trn_format_bytes(formats[k]);
            trn_vector_transpose_args a = { .dst = trn_tensor_2d(formats[k], to, n, p),
                                            .data = trn_tensor_2d(formats[k], from, p, n) };
            a.unlimited = p > 32 || n > 32;
            a.engine = TRN_ENGINE_VECTOR;
            a.generation = (trn_generation)(TRN_TRAINIUM1 + k % 3);
            fill(from, sizeof from, s);
            fill(to, sizeof to, s + 1);
            assert_int_equal(trn_vector_transpose(&a), TRN_OK);
            for (int i = 0; i < p; i++)
                for (int j = 0; j < n; j++)
                    assert_memory_equal(to + (size_t)(j * p + i) * size, from + (size_t)(i * n + j) * size, size);
        }
}

static void transpose_refusals(void **unused)
{
    const refusal_watch watch = { to, sizeof to };
    (void)unused;
    assert_int_equal(trn_vector_transpose(NULL), TRN_EINVAL);
    trn_vector_transpose_args a = { .dst = trn_tensor_2d(TRN_F32, to, 32, 33),
                                    .data = trn_tensor_2d(TRN_F32, from, 33, 32) };
    REFUSED(trn_vector_transpose, a, TRN_ELIMIT,
            "data has 33 partitions of 32 elements; the Vector engine transposes 32 by 32", &watch);
    a.data = trn_tensor_2d(TRN_F32, from, 32, 31);
    REFUSED(trn_vector_transpose, a, TRN_ESHAPE, "dst has 32 partitions of 33 elements; the transpose has 31 of 32",
            &watch);
    a.dst = trn_tensor_2d(TRN_U32, to, 31, 32);
    REFUSED(trn_vector_transpose, a, TRN_EFORMAT, "changes no format", &watch);
    a.dst.format = TRN_F32;
    a.data.data = to;
    REFUSED(trn_vector_transpose, a, TRN_EINVAL, "dst overlaps data", &watch);
    a.engine = TRN_ENGINE_TENSOR; /* that one is trn_nc_transpose */
    REFUSED(trn_vector_transpose, a, TRN_EINVAL, "engine is tensor", &watch);
    trn_tensor eight = trn_tensor_2d(TRN_CFP8, to, 4, 4), other = trn_tensor_2d(TRN_CFP8, from, 4, 4);
    other.cfp8.exponent_bits = 4, other.cfp8.bias = 7;
    trn_vector_transpose_args b = { .dst = eight, .data = other };
    assert_int_equal(trn_vector_transpose(&b), TRN_OK); /* what zeros stand for */
    b.data.cfp8.bias = 8;
    REFUSED(trn_vector_transpose, b, TRN_EFORMAT, "dst is cfp8 and data is cfp8", &watch);
}

/* ---- quantize_mx ---- */

enum { K = 128, M = 70 };                             /* partitions, words */
static uint16_t values[K * M * 4], spread[M * K * 4]; /* [K, 4 M], and [M, 4 K]: a group is 32 in a row */
static uint8_t codes[K * M * 4], scales[K / 8 * M], expected[M * K * 4], expected_scale[M * K / 8];

static trn_quantize_mx_args quantize_of(trn_format to_format, int partitions, int words)
{
    const int64_t shape[3] = { partitions, words, 4 };
    return (trn_quantize_mx_args){ .dst = trn_tensor_nd(to_format, codes, 3, shape),
                                   .src = trn_tensor_2d(TRN_BF16, values, partitions, 4 * words),
                                   .dst_scale = trn_tensor_2d(TRN_F8_E8M0, scales, partitions / 8, words) };
}

static void known_groups(void **unused)
{
    (void)unused;
    memset(values, 0, sizeof values);
    values[0 * 8 + 1] = 0x3f80;  /* word 0 of [32, 8]: largest 1 */
    values[7 * 8 + 3] = 0xbf00;  /* -0.5, the eighth partition */
    values[8 * 8 + 0] = 0x8000;  /* the second group: zeros, one of them negative */
    values[16 * 8 + 2] = 0x7fc0; /* the third: a NaN */
    values[17 * 8 + 2] = 0x3f80;
    values[24 * 8 + 4] = 0x0001; /* word 1 of the fourth: a subnormal */
    trn_quantize_mx_args a = quantize_of(TRN_F8_E4M3FN, 32, 2);
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
    CASES_EQUAL(120, scales[0], "largest 1: 2^-7");
    CASES_EQUAL(0x70, codes[0 * 8 + 1], "1 becomes 128");
    CASES_EQUAL(0xe8, codes[7 * 8 + 3], "-0.5 becomes -64");
    CASES_EQUAL(0x00, scales[1], "a group of zeros");
    CASES_EQUAL(0x00, scales[2 * 1], "zeros");
    CASES_EQUAL(0x80, codes[8 * 8 + 0], "which keep their sign");
    CASES_EQUAL(0xff, scales[2 * 2], "NaN");
    CASES_EQUAL(0x00, codes[17 * 8 + 2], "and zeros");
    CASES_EQUAL(0x00, scales[2 * 3 + 1], "2^-133 is below all scales");
    CASES_EQUAL(0x08, codes[24 * 8 + 4], "2^-133 / 2^-127 is 2^-6");
    a.dst.format = TRN_F8_E5M2;
    a.dst_scale.format = TRN_U8;
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
    CASES_EQUAL(113, scales[0], "largest 1 in e5m2: 2^-14");
    CASES_EQUAL(0x74, codes[0 * 8 + 1], "1 becomes 2^14");
    const trn_numerics ocp = { .mx_scale_rule = TRN_MX_SCALE_OCP_FLOOR };
    a.numerics = &ocp;
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
    CASES_EQUAL(112, scales[0], "OCP's rule: half of that");
    CASES_EQUAL(0x78, codes[0 * 8 + 1], "1 becomes 2^15");
}

static int64_t spread_at(int k, int word, int slot) { return (int64_t)word * 4 * K + 4 * k + slot; }

static void draw_values(uint64_t seed, bool f16)
{
    for (int k = 0; k < K; k++)
        for (int i = 0; i < 4 * M; i++) {
            uint32_t code = cases_u32(&seed) >> 16;
            const int calm = cases_below(&seed, 8);
            if (calm) code = (code & 0x83ff) | (f16 ? 0x3800 : 0x3f00) | (code & 0x7f); /* near 1, but for some */
            values[k * 4 * M + i] = (uint16_t)code;
            spread[spread_at(k, i / 4, i % 4)] = (uint16_t)code;
        }
}

/* The same codes and scales as trn_mx_quantize of the same groups in a row, for all ways of rounding that draw
 * nothing. */
static void groups_are_blocks(void **unused)
{
    (void)unused;
    for (int round = 0; round < 40; round++) {
        const bool f16 = round % 2;
        const trn_rounding rounding =
            (trn_rounding)(round / 2 % 6 == TRN_STOCHASTIC ? TRN_NEAREST_EVEN : round / 2 % 6);
        const trn_numerics numerics = { .mx_scale_rule = (trn_mx_scale)(round % TRN_MX_SCALE_COUNT) };
        draw_values((uint64_t)round, f16);
        trn_quantize_mx_args a = quantize_of(round % 4 < 2 ? TRN_F8_E4M3FN : TRN_F8_E5M2, K, M);
        trn_mx_quantize_args twin = { .dst = trn_tensor_2d(a.dst.format, expected, M, 4 * K),
                                      .dst_scale = trn_tensor_2d(TRN_U8, expected_scale, M, K / 8),
                                      .src = trn_tensor_2d(f16 ? TRN_F16 : TRN_BF16, spread, M, 4 * K),
                                      .scale = numerics.mx_scale_rule,
                                      .rounding = rounding };
        a.src.format = twin.src.format;
        a.rounding = rounding;
        a.numerics = &numerics;
        assert_int_equal(trn_mx_quantize(&twin), TRN_OK);
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            a.isa = all_isas[i];
            with_threads(i % 2 ? 3 : 1);
            memset(codes, 0x5a, sizeof codes);
            memset(scales, 0x5a, sizeof scales);
            assert_int_equal(trn_quantize_mx(&a), TRN_OK);
            for (int k = 0; k < K; k++)
                for (int e = 0; e < 4 * M; e++)
                    CASES_EQUAL(expected[spread_at(k, e / 4, e % 4)], codes[k * 4 * M + e], "round %d, [%d, %d]", round,
                                k, e);
            for (int g = 0; g < K / 8; g++)
                for (int w = 0; w < M; w++)
                    CASES_EQUAL(expected_scale[w * (K / 8) + g], scales[g * M + w], "round %d, scale [%d, %d]", round,
                                g, w);
        }
    }
    with_threads(1);
}

/* A scale tile takes the dense scales in four partitions of each 32 and keeps the rest, at every offset and size. */
static void scale_tiles(void **unused)
{
    enum { PITCH = M + 5, BEFORE = 0x5a };
    static uint8_t tile[K * PITCH], wanted[K * PITCH], dense_codes[sizeof codes];
    (void)unused;
    for (int round = 0; round < 2 * 4 * 4 * 4; round++) {
        const int p = 32 + 32 * (round / 2 % 4), offset = 4 * (round / 8 % 4), words = 1 + 23 * (round / 32);
        draw_values((uint64_t)round, false);
        trn_quantize_mx_args a = quantize_of(round % 2 ? TRN_F8_E5M2 : TRN_F8_E4M3FN, p, words);
        assert_int_equal(trn_quantize_mx(&a), TRN_OK);
        memcpy(dense_codes, codes, sizeof codes);
        memset(wanted, BEFORE, sizeof wanted);
        for (int g = 0; g < p / 8; g++)
            memcpy(wanted + (g / 4 * 32 + offset + g % 4) * PITCH, scales + g * words, (size_t)words);
        trn_tensor whole = trn_tensor_2d(round % 3 ? TRN_F8_E8M0 : TRN_U8, tile, p, words);
        whole.stride[0] = PITCH, whole.stride[1] = 1;
        a.dst_scale = trn_tensor_slice(whole, 0, offset, p - offset);
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            a.isa = all_isas[i];
            with_threads(i % 2 ? 3 : 1);
            memset(tile, BEFORE, sizeof tile);
            memset(codes, BEFORE, sizeof codes);
            assert_int_equal(trn_quantize_mx(&a), TRN_OK);
            assert_memory_equal(tile, wanted, sizeof tile);
            assert_memory_equal(codes, dense_codes, (size_t)(p * words * 4));
        }
    }
    with_threads(1);
}

/* Element (p, f) draws field p F + f; on average nothing is lost. */
static void stochastic_groups(void **unused)
{
    (void)unused;
    for (int i = 0; i < K * 4 * M; i++)
        values[i] = (uint16_t)(0x3f80 + i % 127); /* 1 to 1.98: steps of 1/8 under 2^-7 */
    trn_quantize_mx_args a = quantize_of(TRN_F8_E4M3FN, K, M);
    a.rounding = TRN_STOCHASTIC;
    a.seed = 3;
    a.stream = 8;
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
    double sum = 0, exact = 0;
    for (int i = 0; i < K * 4 * M; i++) {
        const float x = cases_float_of((uint32_t)values[i] << 16) * 128;
        const uint32_t low = (uint32_t)(x / 16),
                       cut = (uint32_t)((x / 16 - (float)low) * 0x1p31f) * 2; /* steps of 16 */
        const uint32_t up = (uint32_t)(((uint64_t)cut + trn_random_u32(3, 8, (uint64_t)i)) >> 32);
        const float rounded = trn_f8_e4m3fn_to_f32(codes[i]);
        assert_true(rounded == (float)(16 * (low + up)));
        sum += (double)rounded;
        exact += (double)x;
    }
    assert_true(sum / exact > 0.999 && sum / exact < 1.001); /* five and a half standard deviations */
}

/* quantize_mx, then nc_matmul_mx: what trn_mx_quantize and trn_matmul make of the same data. */
static void on_to_the_tensor_engine(void **unused)
{
    enum { N = 40 };
    static uint8_t moving[K * N * 4], moving_scale[K / 8 * N], a_codes[M * K * 4], b_codes[N * K * 4];
    static uint8_t a_scale[M * K / 8], b_scale[N * K / 8];
    static float psum[M * N], product[M * N];
    (void)unused;
    draw_values(5, false);
    for (int i = 0; i < K * 4 * M; i++) /* no infinities here */
        if ((values[i] & 0x7f80) == 0x7f80) values[i] = 0x3f80;
    for (int i = 0; i < M * K * 4; i++)
        if ((spread[i] & 0x7f80) == 0x7f80) spread[i] = 0x3f80;
    trn_quantize_mx_args stationary = quantize_of(TRN_F8_E4M3FN, K, M), move = quantize_of(TRN_F8_E5M2, K, N);
    move.src = trn_tensor_2d(TRN_BF16, values, K, 4 * N);
    move.src.stride[0] = 4 * M, move.src.stride[1] = 1; /* the first N words of each partition */
    move.dst.data = moving;
    move.dst_scale.data = moving_scale;
    assert_int_equal(trn_quantize_mx(&stationary), TRN_OK);
    assert_int_equal(trn_quantize_mx(&move), TRN_OK);
    trn_nc_matmul_mx_args mm = { .dst = trn_tensor_2d(TRN_F32, psum, M, N),
                                 .stationary = stationary.dst,
                                 .moving = move.dst,
                                 .stationary_scale = stationary.dst_scale,
                                 .moving_scale = move.dst_scale };
    assert_int_equal(trn_nc_matmul_mx(&mm), TRN_OK);

    trn_mx_quantize_args qa = { .dst = trn_tensor_2d(TRN_F8_E4M3FN, a_codes, M, 4 * K),
                                .dst_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, M, K / 8),
                                .src = trn_tensor_2d(TRN_BF16, spread, M, 4 * K) };
    trn_mx_quantize_args qb = { .dst = trn_tensor_2d(TRN_F8_E5M2, b_codes, N, 4 * K),
                                .dst_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, N, K / 8),
                                .src = trn_tensor_2d(TRN_BF16, spread, N, 4 * K) };
    assert_int_equal(trn_mx_quantize(&qa), TRN_OK);
    assert_int_equal(trn_mx_quantize(&qb), TRN_OK);
    trn_matmul_args whole = { .dst = trn_tensor_2d(TRN_F32, product, M, N),
                              .a = qa.dst,
                              .b = trn_tensor_transposed(qb.dst),
                              .a_scale = qa.dst_scale,
                              .b_scale = qb.dst_scale };
    assert_int_equal(trn_matmul(&whole), TRN_OK);
    for (int i = 0; i < M * N; i++) CASES_EQUAL(cases_bits_of(product[i]), cases_bits_of(psum[i]), "%d", i);
}

static void quantize_refusals(void **unused)
{
    const refusal_watch watch = { codes, sizeof codes };
    (void)unused;
    assert_int_equal(trn_quantize_mx(NULL), TRN_EINVAL);
    trn_quantize_mx_args a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.generation = TRN_TRAINIUM2;
    REFUSED(trn_quantize_mx, a, TRN_EUNSUPPORTED, "quantize_mx is not available on Trainium2", &watch);
    a = quantize_of(TRN_F8_E4M3, 32, 4);
    REFUSED(trn_quantize_mx, a, TRN_EFORMAT, "dst is float8_e4m3; quantize_mx makes float8_e4m3fn and float8_e5m2",
            &watch);
    a = quantize_of(TRN_F4_E2M1, 32, 4);
    REFUSED(trn_quantize_mx, a, TRN_EFORMAT, "quantize_mx makes", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.src.format = TRN_F32;
    REFUSED(trn_quantize_mx, a, TRN_EFORMAT, "src is float32; quantize_mx takes float16 and bfloat16", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.dst_scale.format = TRN_I8;
    REFUSED(trn_quantize_mx, a, TRN_EFORMAT, "dst_scale is int8; block scales are", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 48, 4);
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE,
            "src has 48 partitions of 16 elements; quantize_mx takes multiples of 32 and of 4", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.src.shape[1] = 18;
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE, "src has 32 partitions of 18 elements", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.dst.shape[1] = 5;
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE, "dst has 32 by 5 by 4 elements; [P, F/4, 4] is 32 by 4 by 4", &watch);
    a.dst = trn_tensor_2d(TRN_F8_E4M3FN, codes, 32, 16);
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE, "[P, F/4, 4] is 32 by 4 by 4", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.dst_scale.shape[0] = 8;
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE,
            "dst_scale has 8 partitions of 4 elements; it takes 4 of 4, or as a scale tile 32", &watch);
    for (int rows = 0; rows < 40; rows++) { /* 4 dense; 32, 28, 24 and 20 of a tile */
        if (rows == 4 || (rows % 4 == 0 && rows >= 20 && rows <= 32)) continue;
        a.dst_scale.shape[0] = rows;
        REFUSED(trn_quantize_mx, a, TRN_ESHAPE, "it takes 4 of 4, or as a scale tile 32", &watch);
    }
    a.dst_scale.shape[0] = 28, a.dst_scale.shape[1] = 5;
    REFUSED(trn_quantize_mx, a, TRN_ESHAPE, "dst_scale has 28 partitions of 5 elements", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.dst_scale.data = codes + 5;
    REFUSED(trn_quantize_mx, a, TRN_EINVAL, "dst overlaps dst_scale", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 4);
    a.src.data = codes;
    REFUSED(trn_quantize_mx, a, TRN_EINVAL, "dst overlaps src", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 160, 4);
    a.src.shape[0] = 160;
    REFUSED(trn_quantize_mx, a, TRN_ELIMIT, "src has 160 partitions; a tile has at most 128", &watch);
    a = quantize_of(TRN_F8_E4M3FN, 32, 0);
    assert_int_equal(trn_quantize_mx(&a), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks),
        cmocka_unit_test(short_quadrants),
        cmocka_unit_test(one_partition_spreads),
        cmocka_unit_test(shuffle_refusals),
        cmocka_unit_test(one_partition_for_all),
        cmocka_unit_test(broadcast_refusals),
        cmocka_unit_test(transposes),
        cmocka_unit_test(transpose_refusals),
        cmocka_unit_test(known_groups),
        cmocka_unit_test(groups_are_blocks),
        cmocka_unit_test(stochastic_groups),
        cmocka_unit_test(on_to_the_tensor_engine),
        cmocka_unit_test(quantize_refusals),
        cmocka_unit_test(scale_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
