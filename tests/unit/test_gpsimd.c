/* test_gpsimd.c - GpSimd's instructions against loops written here: published vectors, edges of shapes, all refusals.
 * SPDX-License-Identifier: MIT
 *
 * Views have gaps and permuted axes; what lies beside them is compared too. Every call is made on all instruction sets
 * of the host and on all generations that have the instruction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "trnmath/trn_gpsimd_engine.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { ROOM = 1 << 16, EDGE = 64, ARENAS = 3 };
static uint64_t rng = 81;

#include "twin/arena.h"

/* A view [p, f] or [p, a, b] in arena `k`, filled with random bits. */
static trn_tensor view(int k, trn_format format, int64_t p, int64_t f, bool input)
{
    int64_t shape[3] = { p, f, 1 }, inner = 1 + cases_below(&rng, 4);
    int rank = 2;
    if (f % inner == 0 && cases_one_in(&rng, 2)) {
        shape[1] = f / inner;
        shape[2] = inner;
        rank = 3;
    }
    return arena_view(k, format, rank, shape, input);
}

/* Where element f of partition p is. */
static unsigned char *place(const trn_tensor *t, int64_t p, int64_t f)
{
    int64_t stride[TRN_MAX_RANK], at = 0;
    view_strides(t, stride);
    for (int i = t->rank - 1; i > 0; i--) {
        at += f % t->shape[i] * stride[i];
        f /= t->shape[i];
    }
    return (unsigned char *)t->data + (size_t)(at + p * stride[0]) * bytes_of(t->format);
}

static uint32_t get(const trn_tensor *t, int64_t p, int64_t f)
{
    uint32_t code = 0;
    memcpy(&code, place(t, p, f), bytes_of(t->format));
    return code;
}

static void put(const trn_tensor *t, int64_t p, int64_t f, uint32_t code)
{
    memcpy(place(t, p, f), &code, bytes_of(t->format));
}

/* Into the copy of arena 0 that the call should leave. */
static void expect(const trn_tensor *t, int64_t p, int64_t f, uint32_t code)
{
    memcpy(want + (place(t, p, f) - arena[0]), &code, bytes_of(t->format));
}

CALL(iota)
CALL(affine_select)
CALL(local_gather)
CALL(nc_n_gather)
CALL(tensor_partition_reduce)
CALL(nonzero_with_count)
CALL(sequence_bounds)
CALL(topk)
CALL(gpsimd_custom)

/* ---- patterns ---- */

static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_I8,
                                      TRN_U8,  TRN_I16,  TRN_U16, TRN_I32,     TRN_U32,     TRN_TF32 };

static trn_pattern draw_pattern(int64_t *elements, bool huge)
{
    trn_pattern p;
    memset(&p, 0, sizeof p);
    p.rank = cases_below(&rng, 5);
    *elements = 1;
    for (int i = 0; i < p.rank; i++) {
        p.axis[i].num = 1 + cases_below(&rng, i == p.rank - 1 ? 40 : 5);
        p.axis[i].step = huge ? (int32_t)cases_u32(&rng) : cases_below(&rng, 41) - 20;
        *elements *= p.axis[i].num;
    }
    return p;
}

/* Modulo 2^32, as four loops would have it. */
static int32_t pattern_at(const trn_pattern *p, int32_t offset, int32_t channel, int64_t partition, int64_t f)
{
    int64_t sum = offset + partition * channel;
    for (int i = p->rank - 1; i >= 0; i--) {
        sum += f % p->axis[i].num * p->axis[i].step;
        f /= p->axis[i].num;
    }
    return (int32_t)(uint32_t)(uint64_t)sum;
}

static void iota_is_its_loops(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(400, 5000); round++) {
        int64_t elements;
        trn_iota_args a;
        memset(&a, 0, sizeof a);
        const bool huge = cases_one_in(&rng, 2);
        a.pattern = draw_pattern(&elements, huge);
        a.offset = huge ? (int32_t)cases_u32(&rng) : cases_below(&rng, 300) - 150;
        a.channel_multiplier = huge ? (int32_t)cases_u32(&rng) : cases_below(&rng, 9) - 4;
        const int64_t p = elements > 300 ? 1 + cases_below(&rng, 3) : 1 + cases_below(&rng, 8);
        a.dst = view(0, formats[cases_below(&rng, COUNT(formats))], p, elements, false);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < p; i++)
            for (int64_t f = 0; f < elements; f++) {
                const int32_t x = pattern_at(&a.pattern, a.offset, a.channel_multiplier, i, f);
                const trn_format to = a.dst.format;
                const uint32_t code = to == TRN_I32   ? (uint32_t)x
                                      : to == TRN_U32 ? (x < 0 ? 0u : (uint32_t)x)
                                      : to == TRN_F32
                                          ? cases_bits_of((float)x)
                                          : trn_encode(to, (float)x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
                expect(&a.dst, i, f, code);
            }
        check(call_iota, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* Longer than a chunk, and all 128 partitions. */
static void iota_of_large_tiles(void **unused)
{
    static int32_t x[128 * 512], row[30000];
    (void)unused;
    trn_iota_args a;
    memset(&a, 0, sizeof a);
    a.pattern.rank = 2;
    a.pattern.axis[0].num = 7;
    a.pattern.axis[0].step = 100000;
    a.pattern.axis[1].num = 4000;
    a.pattern.axis[1].step = 3;
    a.dst = trn_tensor_2d(TRN_I32, row, 1, 28000);
    assert_int_equal(trn_iota(&a), TRN_OK);
    for (int i = 0; i < 28000; i++) assert_int_equal(row[i], i / 4000 * 100000 + i % 4000 * 3);
    a.pattern.rank = 1;
    a.pattern.axis[0].num = 512;
    a.pattern.axis[0].step = 1;
    a.channel_multiplier = 1000;
    for (int threads = 1; threads < 4; threads++) {
        with_threads(threads);
        a.dst = trn_tensor_2d(TRN_I32, x, 128, 512);
        memset(x, 0, sizeof x);
        assert_int_equal(trn_iota(&a), TRN_OK);
        for (int i = 0; i < 128 * 512; i++) assert_int_equal(x[i], i / 512 * 1000 + i % 512);
    }
    a.unlimited = true; /* 128 rows of 512 are as good as 64 of 1024 */
    a.dst = trn_tensor_2d(TRN_I32, row, 200, 100);
    a.pattern.axis[0].num = 100;
    assert_int_equal(trn_iota(&a), TRN_OK);
    assert_int_equal(row[199 * 100 + 99], 199099);
}

static void affine_select_is_its_loops(void **unused)
{
    static const trn_alu op[] = { TRN_ALU_BYPASS,     TRN_ALU_EQUAL,   TRN_ALU_NOT_EQUAL,    TRN_ALU_LESS,
                                  TRN_ALU_LESS_EQUAL, TRN_ALU_GREATER, TRN_ALU_GREATER_EQUAL };
    (void)unused;
    for (int round = 0; round < cases_rounds(400, 5000); round++) {
        int64_t elements;
        trn_affine_select_args a;
        memset(&a, 0, sizeof a);
        a.pattern = draw_pattern(&elements, false);
        a.offset = cases_below(&rng, 41) - 20;
        a.channel_multiplier = cases_below(&rng, 9) - 4;
        a.cmp_op = op[cases_below(&rng, COUNT(op))];
        a.on_false_value = cases_float_of(cases_float(&rng));
        a.rounding = cases_one_in(&rng, 2) ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        a.seed = 5;
        a.stream = 6;
        const int64_t p = elements > 300 ? 1 : 1 + cases_below(&rng, 6);
        const trn_format to = formats[cases_below(&rng, COUNT(formats))];
        const trn_format from = cases_one_in(&rng, 2) ? to : formats[cases_below(&rng, COUNT(formats))];
        a.dst = view(0, to, p, elements, false);
        a.on_true_tile = view(1, from, p, elements, true);
        if (from == to && cases_one_in(&rng, 3)) a.on_true_tile = a.dst; /* in place */
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < p; i++)
            for (int64_t f = 0; f < elements; f++) {
                const int32_t x = pattern_at(&a.pattern, a.offset, a.channel_multiplier, i, f);
                bool keep = x == 0;
                if (a.cmp_op == TRN_ALU_NOT_EQUAL) keep = x != 0;
                if (a.cmp_op == TRN_ALU_LESS) keep = x < 0;
                if (a.cmp_op == TRN_ALU_LESS_EQUAL) keep = x <= 0;
                if (a.cmp_op == TRN_ALU_GREATER) keep = x > 0;
                if (a.cmp_op == TRN_ALU_GREATER_EQUAL) keep = x >= 0;
                uint32_t code = get(&a.on_true_tile, i, f);
                if (!keep || from != to) {
                    const float value = !keep             ? a.on_false_value
                                        : from == TRN_F32 ? cases_float_of(code)
                                                          : trn_decode(from, code);
                    const uint32_t field = trn_random_field(5, 6, (uint64_t)(i * elements + f), 32);
                    code = to == TRN_F32 ? cases_bits_of(value)
                                         : trn_encode(to, value, a.rounding, TRN_OVERFLOW_DEFAULT, field);
                }
                expect(&a.dst, i, f, code);
            }
        check(call_affine_select, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* A causal mask: row p sees columns 0 .. p. */
static void causal_mask(void **unused)
{
    static float score[128 * 2048], masked[128 * 2048];
    (void)unused;
    for (int i = 0; i < 128 * 2048; i++) score[i] = (float)i;
    trn_affine_select_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, masked, 128, 2048);
    a.on_true_tile = trn_tensor_2d(TRN_F32, score, 128, 2048);
    a.pattern.rank = 1;
    a.pattern.axis[0].num = 2048;
    a.pattern.axis[0].step = -1;
    a.channel_multiplier = 1;
    a.cmp_op = TRN_ALU_GREATER_EQUAL;
    a.on_false_value = -1;
    assert_int_equal(trn_affine_select(&a), TRN_OK);
    for (int p = 0; p < 128; p++)
        for (int f = 0; f < 2048; f++) assert_true(masked[p * 2048 + f] == (f <= p ? (float)(p * 2048 + f) : -1));
}

static void patterns_that_are_refused(void **unused)
{
    (void)unused;
    trn_iota_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_I32, arena[0], 2, 6);
    a.pattern.rank = 1;
    a.pattern.axis[0].num = 5;
    refuse(call_iota, &a, TRN_ESHAPE, "pattern has 5 elements but a partition of dst has 6");
    a.pattern.axis[0].num = -6;
    refuse(call_iota, &a, TRN_EINVAL, "pattern.axis[0].num is -6");
    a.pattern.axis[0].num = 6;
    a.pattern.rank = 5;
    refuse(call_iota, &a, TRN_EINVAL, "pattern.rank is 5, not 0 to 4");
    a.pattern.rank = -1;
    refuse(call_iota, &a, TRN_EINVAL, "pattern.rank is -1, not 0 to 4");
    a.pattern.rank = 1;
    a.engine = TRN_ENGINE_VECTOR;
    refuse(call_iota, &a, TRN_EINVAL, "engine is vector, which does not execute iota");
    a.engine = TRN_ENGINE_GPSIMD;
    assert_int_equal(trn_iota(&a), TRN_OK);
    a.generation = (trn_generation)9;
    refuse(call_iota, &a, TRN_EINVAL, "generation is 9, not a generation");
    a.generation = TRN_TRAINIUM1;
    a.dst = trn_tensor_2d(TRN_I32, arena[0], 129, 6);
    refuse(call_iota, &a, TRN_ELIMIT, "dst has 129 partitions; a tile has at most 128");
    a.dst = trn_tensor_2d(TRN_I32, arena[0], 1, 49153);
    a.pattern.axis[0].num = 49153;
    refuse(call_iota, &a, TRN_ELIMIT, "dst has 49153 elements per partition; Trainium1 holds 196608 bytes");
    a.dst.rank = 0;
    refuse(call_iota, &a, TRN_ESHAPE, "dst is missing");
    assert_int_equal(trn_iota(NULL), TRN_EINVAL);

    trn_affine_select_args s;
    memset(&s, 0, sizeof s);
    s.dst = trn_tensor_2d(TRN_I32, arena[0], 2, 6);
    s.on_true_tile = trn_tensor_2d(TRN_I32, arena[1], 2, 5);
    s.pattern = a.pattern;
    s.pattern.axis[0].num = 6;
    refuse(call_affine_select, &s, TRN_ESHAPE, "on_true_tile has 2 partitions of 5 elements but dst has 2 of 6");
    s.on_true_tile = trn_tensor_2d(TRN_I32, arena[0] + 4, 2, 6);
    refuse(call_affine_select, &s, TRN_EINVAL, "dst overlaps on_true_tile");
    s.on_true_tile.data = arena[1];
    s.cmp_op = TRN_ALU_ADD;
    refuse(call_affine_select, &s, TRN_EINVAL, "cmp_op is add, which does not compare");
    assert_int_equal(trn_affine_select(NULL), TRN_EINVAL);
}

/* ---- gathers ---- */

static void n_gather_is_its_loops(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(300, 4000); round++) {
        trn_nc_n_gather_args a;
        memset(&a, 0, sizeof a);
        const trn_format format = formats[cases_below(&rng, COUNT(formats))];
        const int64_t p = 1 + cases_below(&rng, 8), width = 1 + cases_below(&rng, 90);
        const int64_t elements = cases_one_in(&rng, 8) ? 1000 + cases_below(&rng, 400) : 1 + cases_below(&rng, 60);
        a.dst = view(0, format, p, elements, false);
        a.data = view(1, format, p, width, true);
        a.indices = view(2, TRN_U32, p, elements, false);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < p; i++)
            for (int64_t f = 0; f < elements; f++) {
                const uint32_t at = (uint32_t)cases_below(&rng, (int)width);
                put(&a.indices, i, f, at);
                expect(&a.dst, i, f, get(&a.data, i, at));
            }
        check(call_nc_n_gather, &a, sizeof a, TRN_TRAINIUM1);
    }
}

static void local_gather_is_its_loops(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(200, 3000); round++) {
        trn_local_gather_args a;
        memset(&a, 0, sizeof a);
        const trn_format format = formats[cases_below(&rng, COUNT(formats))];
        const int64_t p = 16 * (1 + cases_below(&rng, 2)), columns = 1 + cases_below(&rng, 3);
        const int run = 1 << cases_below(&rng, 6);
        const int64_t width = run + cases_below(&rng, 100);
        a.num_elem_per_idx = run == 1 && cases_one_in(&rng, 2) ? 0 : run;
        a.num_valid_indices = cases_one_in(&rng, 2) ? 0 : 1 + cases_below(&rng, (int)(16 * columns));
        if (run > 4) a.num_valid_indices = 1 + cases_below(&rng, 8);
        const int64_t valid = a.num_valid_indices ? a.num_valid_indices : 16 * columns;
        a.dst = view(0, format, p, valid * run, false);
        a.src_buffer = view(1, format, p, width, true);
        a.index = view(2, TRN_U16, p, columns, false);
        memcpy(want, arena[0], ROOM);
        for (int64_t first = 0; first < p; first += 16)
            for (int64_t i = 0; i < valid; i++) {
                const uint32_t at = (uint32_t)cases_below(&rng, (int)(width - run + 1));
                put(&a.index, first + i % 16, i / 16, at);
                for (int64_t k = first; k < first + 16; k++)
                    for (int64_t j = 0; j < run; j++) expect(&a.dst, k, i * run + j, get(&a.src_buffer, k, at + j));
            }
        check(call_local_gather, &a, sizeof a, TRN_TRAINIUM1);
    }
}

static void gathers_that_are_refused(void **unused)
{
    static uint32_t indices[4 * 3];
    static uint16_t index[32 * 300];
    (void)unused;
    trn_nc_n_gather_args a;
    memset(&a, 0, sizeof a);
    memset(indices, 0, sizeof indices);
    indices[7] = 10;
    a.dst = trn_tensor_2d(TRN_BF16, arena[0], 4, 3);
    a.data = trn_tensor_2d(TRN_BF16, arena[1], 4, 10);
    a.indices = trn_tensor_2d(TRN_U32, indices, 4, 3);
    refuse(call_nc_n_gather, &a, TRN_EINVAL, "indices[2, 1] is 10 but a partition of data has 10 elements");
    indices[7] = 9;
    assert_int_equal(trn_nc_n_gather(&a), TRN_OK);
    a.indices.format = TRN_I32;
    refuse(call_nc_n_gather, &a, TRN_EFORMAT, "indices is int32; it takes uint32");
    a.indices.format = TRN_U32;
    a.data.format = TRN_F16;
    refuse(call_nc_n_gather, &a, TRN_EFORMAT, "dst is bfloat16 and data is float16; a gather does not cast");
    a.data = trn_tensor_2d(TRN_BF16, arena[0], 4, 3);
    refuse(call_nc_n_gather, &a, TRN_EINVAL, "dst overlaps data");
    a.data = trn_tensor_2d(TRN_BF16, arena[1], 5, 10);
    refuse(call_nc_n_gather, &a, TRN_ESHAPE, "data has 5 partitions of 10 elements; it takes 4 of 10");
    a.data = trn_tensor_2d(TRN_BF16, arena[1], 4, 10);
    a.indices.shape[1] = 2;
    refuse(call_nc_n_gather, &a, TRN_ESHAPE, "indices has 4 partitions of 2 elements; it takes 4 of 3");
    a.data.rank = 0;
    refuse(call_nc_n_gather, &a, TRN_ESHAPE, "data is missing");
    a.data.rank = 99;
    refuse(call_nc_n_gather, &a, TRN_ESHAPE, "data has rank 99, expected 1 to 6");

    trn_local_gather_args g;
    memset(&g, 0, sizeof g);
    memset(index, 0, sizeof index);
    g.dst = trn_tensor_2d(TRN_F32, arena[0], 32, 16 * 2);
    g.src_buffer = trn_tensor_2d(TRN_F32, arena[1], 32, 12);
    g.index = trn_tensor_2d(TRN_U16, index, 32, 1);
    g.num_elem_per_idx = 2;
    index[20] = 11;
    refuse(call_local_gather, &g, TRN_EINVAL, "index[20, 0] is 11: 2 elements from there on pass the 12 of src_buffer");
    index[20] = 10;
    assert_int_equal(trn_local_gather(&g), TRN_OK);
    g.num_elem_per_idx = 3;
    refuse(call_local_gather, &g, TRN_EINVAL, "num_elem_per_idx is 3, not 1, 2, 4, 8, 16 or 32");
    g.num_elem_per_idx = 64;
    refuse(call_local_gather, &g, TRN_EINVAL, "num_elem_per_idx is 64, not 1, 2, 4, 8, 16 or 32");
    g.num_elem_per_idx = 2;
    g.num_valid_indices = 17;
    refuse(call_local_gather, &g, TRN_EINVAL, "num_valid_indices is 17 but 16 partitions of index have 16");
    g.num_valid_indices = 15;
    refuse(call_local_gather, &g, TRN_ESHAPE, "dst has 32 partitions of 32 elements; it takes 32 of 30");
    g.num_valid_indices = 0;
    g.index = trn_tensor_2d(TRN_U16, index, 32, 257);
    refuse(call_local_gather, &g, TRN_ELIMIT, "16 partitions of index have 4112 elements; at most 4096 are legal");
    g.index = trn_tensor_2d(TRN_U32, index, 32, 1);
    refuse(call_local_gather, &g, TRN_EFORMAT, "index is uint32; it takes uint16");
    g.index = trn_tensor_2d(TRN_U16, index, 16, 1);
    refuse(call_local_gather, &g, TRN_ESHAPE, "index has 16 partitions of 1 elements; it takes 32 of 1");
    g.src_buffer.shape[0] = 24;
    refuse(call_local_gather, &g, TRN_ESHAPE, "src_buffer has 24 partitions, not a multiple of 16");
    assert_int_equal(trn_local_gather(NULL), TRN_EINVAL);
    assert_int_equal(trn_nc_n_gather(NULL), TRN_EINVAL);
}

/* ---- tensor_partition_reduce ---- */

static void partition_reduce_is_its_loops(void **unused)
{
    static const trn_alu op[] = { TRN_ALU_ADD, TRN_ALU_AVERAGE, TRN_ALU_MAXIMUM, TRN_ALU_BITWISE_OR,
                                  TRN_ALU_BITWISE_AND };
    static const trn_format integers[] = { TRN_I8, TRN_U8, TRN_I16, TRN_U16, TRN_I32, TRN_U32 };
    (void)unused;
    for (int round = 0; round < cases_rounds(400, 5000); round++) {
        trn_tensor_partition_reduce_args a;
        memset(&a, 0, sizeof a);
        a.op = op[cases_below(&rng, COUNT(op))];
        const bool bits = a.op == TRN_ALU_BITWISE_OR || a.op == TRN_ALU_BITWISE_AND;
        const int width = cases_below(&rng, 3);
        const trn_format from = bits ? integers[2 * width] : formats[cases_below(&rng, COUNT(formats))];
        const trn_format to = bits ? integers[2 * width + 1] : formats[cases_below(&rng, COUNT(formats))];
        const int64_t elements = cases_one_in(&rng, 10) ? 1000 + cases_below(&rng, 100) : 1 + cases_below(&rng, 50);
        const int64_t p = elements > 900 ? 5 : 1 + cases_below(&rng, cases_one_in(&rng, 4) ? 128 : 10);
        a.dst = view(0, to, 1, elements, false);
        a.data = view(1, from, p, elements, true);
        memcpy(want, arena[0], ROOM);
        for (int64_t f = 0; f < elements; f++) {
            volatile float sum = a.op == TRN_ALU_MAXIMUM ? cases_float_of(0xff800000u) : 0.0f;
            uint32_t all = a.op == TRN_ALU_BITWISE_AND ? 0xffffffffu : 0;
            for (int64_t i = 0; i < p; i++) {
                const uint32_t code = get(&a.data, i, f);
                const float x = from == TRN_F32 ? cases_float_of(code) : trn_decode(from, code);
                if (a.op == TRN_ALU_BITWISE_OR)
                    all |= code;
                else if (a.op == TRN_ALU_BITWISE_AND)
                    all &= code;
                else if (a.op == TRN_ALU_MAXIMUM)
                    sum = x > sum || (x == sum && cases_bits_of(x) == 0) ? x : sum;
                else
                    sum = sum + x;
            }
            if (a.op == TRN_ALU_AVERAGE) sum = sum / (float)p;
            const float r = sum != sum ? cases_float_of(0x7fc00000u) : sum;
            if (!bits)
                all = to == TRN_F32 ? cases_bits_of(r) : trn_encode(to, r, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
            expect(&a.dst, 0, f, all);
        }
        check(call_tensor_partition_reduce, &a, sizeof a, TRN_TRAINIUM1);
    }
}

static void partition_reductions_that_are_refused(void **unused)
{
    (void)unused;
    trn_tensor_partition_reduce_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 1, 6);
    a.data = trn_tensor_2d(TRN_F32, arena[1], 8, 6);
    a.op = TRN_ALU_MINIMUM;
    refuse(call_tensor_partition_reduce, &a, TRN_EINVAL,
           "op is minimum; partitions reduce by add, average, maximum, bitwise_or and bitwise_and");
    a.op = TRN_ALU_BITWISE_OR;
    refuse(call_tensor_partition_reduce, &a, TRN_EFORMAT,
           "data is float32; it takes integers where the operator works on bits");
    a.data.format = TRN_I32;
    refuse(call_tensor_partition_reduce, &a, TRN_EFORMAT,
           "dst is float32; it takes integers where the operator works on bits");
    a.dst.format = TRN_I16;
    refuse(call_tensor_partition_reduce, &a, TRN_EFORMAT, "dst is int16 and data is int32; bits need one width");
    a.op = TRN_ALU_ADD;
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 2, 6);
    refuse(call_tensor_partition_reduce, &a, TRN_ESHAPE, "dst has 2 partitions of 6 elements; it takes 1 of 6");
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 1, 5);
    refuse(call_tensor_partition_reduce, &a, TRN_ESHAPE, "dst has 1 partitions of 5 elements; it takes 1 of 6");
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 1, 6);
    a.data.data = arena[0];
    refuse(call_tensor_partition_reduce, &a, TRN_EINVAL, "dst overlaps data");
    float none[2] = { 7, 7 };
    a.dst = trn_tensor_2d(TRN_F32, none, 1, 2); /* no partitions: the identity */
    a.data = trn_tensor_2d(TRN_F32, NULL, 0, 2);
    assert_int_equal(trn_tensor_partition_reduce(&a), TRN_OK);
    assert_true(none[0] == 0 && none[1] == 0);
    assert_int_equal(trn_tensor_partition_reduce(NULL), TRN_EINVAL);
}

/* ---- nonzero_with_count, sequence_bounds ---- */

/* NKI's example. */
static void nonzero_of_the_page(void **unused)
{
    static const int32_t expected[9] = { 17, 18, 21, -1, -1, -1, -1, -1, 3 };
    int32_t src[8] = { 0, 1, 1, 0, 0, 1, 0, 0 }, dst[9];
    (void)unused;
    trn_nonzero_with_count_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_I32, dst, 1, 9);
    a.src = trn_tensor_2d(TRN_I32, src, 1, 8);
    a.index_offset = 16;
    a.padding_val = -1;
    assert_int_equal(trn_nonzero_with_count(&a), TRN_OK);
    assert_memory_equal(dst, expected, sizeof dst);
}

static void nonzero_is_its_loops(void **unused)
{
    static const uint32_t some[] = { 0, 0x80000000u, 1, 0x7fc00000u, 0x3f800000u, 0, 0, 0xffffffffu };
    (void)unused;
    for (int round = 0; round < cases_rounds(200, 3000); round++) {
        trn_nonzero_with_count_args a;
        memset(&a, 0, sizeof a);
        const int64_t p = 1 + cases_below(&rng, 128), t = cases_below(&rng, 30);
        const bool floats = cases_one_in(&rng, 2);
        a.index_offset = cases_one_in(&rng, 2) ? 0x7ffffff8 : 100;
        a.padding_val = (int32_t)cases_u32(&rng);
        a.dst = view(0, TRN_I32, p, t + 1, false);
        a.src = view(1, floats ? TRN_F32 : TRN_I32, p, t, true);
        for (int64_t i = 0; i < p; i++)
            for (int64_t f = 0; f < t; f++) put(&a.src, i, f, some[cases_below(&rng, COUNT(some))]);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < p; i += 16) {
            int64_t n = 0;
            for (int64_t f = 0; f < t; f++) {
                const uint32_t code = get(&a.src, i, f);
                if (code == 0 || (floats && code == 0x80000000u)) continue;
                expect(&a.dst, i, n++, (uint32_t)f + (uint32_t)a.index_offset);
            }
            for (int64_t f = n; f < t; f++) expect(&a.dst, i, f, (uint32_t)a.padding_val);
            expect(&a.dst, i, t, (uint32_t)n);
        }
        check(call_nonzero_with_count, &a, sizeof a, TRN_TRAINIUM2);
    }
    trn_nonzero_with_count_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_I32, arena[0], 16, 5);
    a.src = trn_tensor_2d(TRN_BF16, arena[1], 16, 4);
    refuse(call_nonzero_with_count, &a, TRN_EFORMAT, "src is bfloat16; it takes float32 and int32");
    a.src.format = TRN_F32;
    a.dst.format = TRN_U32;
    refuse(call_nonzero_with_count, &a, TRN_EFORMAT, "dst is uint32; it takes int32");
    a.dst = trn_tensor_2d(TRN_I32, arena[0], 16, 4);
    refuse(call_nonzero_with_count, &a, TRN_ESHAPE, "dst has 16 partitions of 4 elements; it takes 16 of 5");
    a.generation = TRN_TRAINIUM1;
    refuse(call_nonzero_with_count, &a, TRN_EUNSUPPORTED, "nonzero_with_count is not available on Trainium1");
}

static void sequence_bounds_are_runs(void **unused)
{
    static const int32_t page[9] = { 0, 1, 1, 2, 2, 2, 0, 3, 3 };
    static const int32_t page_bounds[18] = { 9, 1, 1, 3, 3, 3, 9, 7, 7, -1, 3, 3, 6, 6, 6, -1, 9, 9 };
    (void)unused;
    for (int round = 0; round < cases_rounds(300, 4000); round++) {
        trn_sequence_bounds_args a;
        memset(&a, 0, sizeof a);
        const int64_t n = round == 0 ? 9 : 1 + cases_below(&rng, 60);
        a.dst = view(0, cases_one_in(&rng, 2) ? TRN_F32 : TRN_I32, 1, 2 * n, false);
        a.segment_ids = view(1, cases_one_in(&rng, 2) ? TRN_F32 : TRN_I32, 1, n, false);
        int32_t id[64];
        for (int64_t i = 0; i < n; i++) {
            id[i] = round == 0 ? page[i] : i && !cases_one_in(&rng, 3) ? id[i - 1] : cases_below(&rng, 4) * 0x1000000;
            put(&a.segment_ids, 0, i, a.segment_ids.format == TRN_F32 ? cases_bits_of((float)id[i]) : (uint32_t)id[i]);
        }
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < n; i++) {
            int64_t start = i, end = i;
            while (start > 0 && id[start - 1] == id[i]) start--;
            while (end < n && id[end] == id[i]) end++;
            if (id[i] == 0) start = n, end = -1;
            const int64_t bound[2] = { start, end };
            for (int64_t k = 0; k < 2; k++) {
                if (round == 0) assert_int_equal(bound[k], page_bounds[k * n + i]);
                expect(&a.dst, 0, k * n + i,
                       a.dst.format == TRN_F32 ? cases_bits_of((float)bound[k]) : (uint32_t)(int32_t)bound[k]);
            }
        }
        check(call_sequence_bounds, &a, sizeof a, TRN_TRAINIUM1);
    }
}

static void sequences_that_are_refused(void **unused)
{
    float id[4] = { 1, 2, 2.5f, 3 };
    (void)unused;
    trn_sequence_bounds_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 1, 8);
    a.segment_ids = trn_tensor_2d(TRN_F32, id, 1, 4);
    refuse(call_sequence_bounds, &a, TRN_EINVAL, "segment_ids[2] is 2.5, not a whole number from 0 on");
    id[2] = -1;
    refuse(call_sequence_bounds, &a, TRN_EINVAL, "segment_ids[2] is -1, not a whole number from 0 on");
    id[2] = cases_float_of(0x7fc00000u);
    refuse(call_sequence_bounds, &a, TRN_EINVAL, "segment_ids[2] is nan, not a whole number from 0 on");
    id[2] = 2;
    assert_int_equal(trn_sequence_bounds(&a), TRN_OK);
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 1, 7);
    refuse(call_sequence_bounds, &a, TRN_ESHAPE, "dst has 1 partitions of 7 elements; it takes 1 of 8");
    a.dst = trn_tensor_2d(TRN_BF16, arena[0], 1, 8);
    refuse(call_sequence_bounds, &a, TRN_EFORMAT, "dst is bfloat16; it takes float32 and int32");
    a.segment_ids = trn_tensor_2d(TRN_F32, id, 2, 2);
    refuse(call_sequence_bounds, &a, TRN_ESHAPE, "segment_ids has 2 partitions of 2 elements; it takes 1 of 2");
    a.segment_ids = trn_tensor_2d(TRN_U16, id, 1, 4);
    refuse(call_sequence_bounds, &a, TRN_EFORMAT, "segment_ids is uint16; it takes float32 and int32");
    assert_int_equal(trn_sequence_bounds(NULL), TRN_EINVAL);
}

/* ---- topk ---- */

/* NaN below all, -0 below +0. */
static int rank_of(uint32_t code)
{
    const int magnitude = (int)(code & 0x7fffu);
    if (magnitude > 0x7f80) return -0x10000;
    return code & 0x8000u ? -1 - magnitude : magnitude;
}

/* Largest first by selection, earlier ones first among equals; the snake gets them backwards. */
static void topk_is_a_sort(void **unused)
{
    static uint32_t code[70000];
    static bool taken[70000];
    static int64_t order[40000];
    (void)unused;
    for (int round = 0; round < cases_rounds(120, 2000); round++) {
        trn_topk_args a;
        memset(&a, 0, sizeof a);
        const int64_t p = 16 * (1 + cases_below(&rng, 3));
        a.n = 8 + cases_below(&rng, cases_one_in(&rng, 3) ? 600 : 40);
        const int64_t x = (a.n + 15) / 16 + cases_below(&rng, 2), k = 1 + cases_below(&rng, (int)(a.n < 60 ? a.n : 60));
        const int kind = cases_below(&rng, 3);
        const bool both = cases_one_in(&rng, 2); /* which of the outputs lies in arena 0 */
        a.val_dst = view(both ? 0 : 1, TRN_BF16, p, k, false);
        a.idx_dst = view(both ? 1 : 0, TRN_U32, p, k, false);
        a.src = view(2, TRN_BF16, p, x, true);
        if (cases_one_in(&rng, 2))
            memset(a.src.stride, 0, sizeof a.src.stride); /* a broadcast keeps one of its values */
        for (int64_t i = 0; i < p * x && kind; i++)
            put(&a.src, i / x, i % x, kind == 1 ? (uint32_t)cases_below(&rng, 5) * 0x4000u : cases_float(&rng) >> 16);
        memcpy(want, arena[0], ROOM);
        for (int64_t first = 0; first < p; first += 16) {
            for (int64_t i = 0; i < a.n; i++) {
                code[i] = get(&a.src, first + i % 16, i / 16);
                taken[i] = false;
            }
            for (int64_t j = 0; j < k; j++) {
                int64_t best = -1;
                for (int64_t i = 0; i < a.n; i++)
                    if (!taken[i] && (best < 0 || rank_of(code[i]) > rank_of(code[best]))) best = i;
                taken[best] = true;
                order[k - 1 - j] = best;
            }
            for (int64_t j = 0; j < k; j++)
                expect(both ? &a.val_dst : &a.idx_dst, first + j % 16, j / 16,
                       both ? code[order[j]] : (uint32_t)order[j]);
        }
        check(call_topk, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* The largest snake there is, and the most that can be asked of it. */
static void topk_at_its_limits(void **unused)
{
    enum { N = 65535, K = 32767, X = 4096 };
    static uint16_t src[16 * X], value[16 * K];
    static uint32_t index[16 * K];
    (void)unused;
    trn_topk_args a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 16 * X; i++)
        src[i % 16 * X + i / 16] = (uint16_t)((uint32_t)i * 40503u); /* a permutation: all codes */
    a.n = N;
    a.val_dst = trn_tensor_2d(TRN_BF16, value, 16, K);
    a.idx_dst = trn_tensor_2d(TRN_U32, index, 16, K);
    a.src = trn_tensor_2d(TRN_BF16, src, 16, X);
    trn_error error;
    a.error = &error;
    a.unlimited = true; /* 32767 indices do not fit into a partition */
    if (trn_topk(&a)) fail_msg("%s", error.text);
    for (int j = 0; j < K; j++) {
        const uint32_t at = index[j % 16 * K + j / 16], code = value[j % 16 * K + j / 16];
        assert_int_equal(code, (uint16_t)(at * 40503u));
        if (j) assert_true(rank_of(code) > rank_of(value[(j - 1) % 16 * K + (j - 1) / 16]));
    }
    assert_int_equal(value[(K - 1) % 16 * K + (K - 1) / 16], 0x7f80);
}

static void topk_that_is_refused(void **unused)
{
    (void)unused;
    trn_topk_args a;
    memset(&a, 0, sizeof a);
    a.n = 42;
    a.val_dst = trn_tensor_2d(TRN_BF16, arena[0], 16, 8);
    a.idx_dst = trn_tensor_2d(TRN_U32, arena[1], 16, 8);
    a.src = trn_tensor_2d(TRN_BF16, arena[2], 16, 3);
    assert_int_equal(trn_topk(&a), TRN_OK);
    a.src.shape[1] = 2;
    refuse(call_topk, &a, TRN_ESHAPE, "src has 2 elements per partition; 42 need 3 in each of 16");
    a.n = 7;
    refuse(call_topk, &a, TRN_ELIMIT, "n is 7, not 8 to 65535");
    a.n = 65536;
    refuse(call_topk, &a, TRN_ELIMIT, "n is 65536, not 8 to 65535");
    a.n = 20;
    a.val_dst.shape[1] = a.idx_dst.shape[1] = 21;
    refuse(call_topk, &a, TRN_ELIMIT, "val_dst has 21 elements per partition, not 1 to 20");
    a.idx_dst.shape[1] = 20;
    refuse(call_topk, &a, TRN_ESHAPE, "idx_dst has 16 partitions of 20 elements; it takes 16 of 21");
    a.val_dst.shape[1] = 20;
    a.idx_dst.format = TRN_I32;
    refuse(call_topk, &a, TRN_EFORMAT, "idx_dst is int32; it takes uint32");
    a.idx_dst.format = TRN_U32;
    a.val_dst.format = TRN_F16;
    refuse(call_topk, &a, TRN_EFORMAT, "val_dst is float16; it takes bfloat16");
    a.val_dst.format = TRN_BF16;
    a.src.format = TRN_F32;
    refuse(call_topk, &a, TRN_EFORMAT, "src is float32; it takes bfloat16");
    a.src.format = TRN_BF16;
    a.idx_dst.data = arena[0];
    refuse(call_topk, &a, TRN_EINVAL, "val_dst overlaps idx_dst");
    a.idx_dst.data = arena[1];
    a.src.data = arena[0];
    refuse(call_topk, &a, TRN_EINVAL, "val_dst overlaps src");
    a.src = trn_tensor_2d(TRN_BF16, arena[2], 8, 3);
    a.val_dst.shape[0] = a.idx_dst.shape[0] = 8;
    refuse(call_topk, &a, TRN_ESHAPE, "src has 8 partitions, not a multiple of 16");
    assert_int_equal(trn_topk(NULL), TRN_EINVAL);
}

/* ---- custom operators ---- */

typedef struct record {
    int calls, last, fail_at;
    int64_t partitions;
} record;

static trn_status told(trn_error *error, trn_status status, const char *text)
{
    if (!error) return status;
    error->status = status;
    snprintf(error->text, sizeof error->text, "%s", text);
    return status;
}

/* dst = 2 src + 1000 processor + the partition within it, in int32. */
static trn_status doubled(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    record *const r = (record *)user;
    if (r->fail_at == part->processor) return told(error, TRN_ELIMIT, "no room for 42 numbers");
    r->calls++;
    r->last = part->processor;
    r->partitions += part->partitions;
    assert_true(part->local && part->local_bytes == 65536 && (uintptr_t)part->local % 64 == 0);
    memset(part->local, part->processor, part->local_bytes);
    assert_int_equal(part->first_partition, 16 * part->processor);
    for (int64_t p = 0; p < part->partitions; p++)
        for (int64_t f = 0; f < part->src[0].shape[1]; f++)
            put(&part->dst[0], p, f, 2 * get(&part->src[0], p, f) + (uint32_t)(1000 * part->processor + p));
    return TRN_OK;
}

static trn_status silent(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)user, (void)part, (void)error;
    return TRN_EIO;
}

/* No state at all: it may run on several threads. */
static trn_status negated(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)user;
    for (int64_t p = 0; p < part->partitions; p++)
        for (int64_t f = 0; f < part->src[0].shape[1]; f++) put(&part->dst[0], p, f, ~get(&part->src[0], p, f));
    return part->processor >= 3 && part->dsts > 1 ? told(error, TRN_EINVAL, "enough") : TRN_OK;
}

static void custom_operators(void **unused)
{
    (void)unused;
    for (int64_t p = 1; p <= 128; p += 1 + cases_below(&rng, 20))
        for (int threads = 0; threads < 4; threads++) {
            record r = { 0, -1, -1, 0 };
            trn_gpsimd_custom_args a;
            memset(&a, 0, sizeof a);
            a.dst[0] = trn_tensor_2d(TRN_I32, arena[0] + EDGE, p, 6);
            a.src[0] = trn_tensor_2d(TRN_I32, arena[1] + EDGE, p, 6);
            a.dst[0].stride[0] = 7; /* with gaps */
            a.dst[0].stride[1] = 1;
            a.dsts = a.srcs = 1;
            a.op = threads ? negated : doubled;
            a.threads = threads > 0;
            a.user = &r;
            with_threads(threads ? threads : 1);
            scramble(1);
            memcpy(want, arena[0], ROOM);
            for (int64_t i = 0; i < p; i++)
                for (int64_t f = 0; f < 6; f++) {
                    const uint32_t x = get(&a.src[0], i, f);
                    expect(&a.dst[0], i, f, threads ? ~x : 2 * x + (uint32_t)(1000 * (i / 16) + i % 16));
                }
            assert_int_equal(trn_gpsimd_custom(&a), TRN_OK);
            assert_memory_equal(arena[0], want, ROOM);
            if (threads) continue;
            assert_int_equal(r.calls, (p + 15) / 16);
            assert_int_equal(r.partitions, p);
            assert_int_equal(r.last, (p - 1) / 16);
        }
}

static void custom_operators_that_fail(void **unused)
{
    record r = { 0, -1, 5, 0 };
    trn_error error;
    (void)unused;
    trn_gpsimd_custom_args a;
    memset(&a, 0, sizeof a);
    a.dst[0] = trn_tensor_2d(TRN_I32, arena[0], 128, 4);
    a.src[0] = trn_tensor_2d(TRN_I32, arena[1], 128, 4);
    a.dsts = a.srcs = 1;
    a.op = doubled;
    a.user = &r;
    a.error = &error;
    assert_int_equal(trn_gpsimd_custom(&a), TRN_ELIMIT);
    assert_string_equal(error.text, "processor 5: no room for 42 numbers");
    assert_int_equal(r.calls, 5); /* what the five before it wrote stays */
    a.op = silent;
    assert_int_equal(trn_gpsimd_custom(&a), TRN_EIO);
    assert_string_equal(error.text, "processor 0: a file or message could not be read or written");
    a.op = negated;
    a.threads = true;
    a.dsts = 2;
    a.dst[1] = trn_tensor_2d(TRN_I32, arena[2], 128, 4);
    for (int threads = 1; threads < 4; threads++) { /* of several errors the first one's */
        with_threads(threads);
        assert_int_equal(trn_gpsimd_custom(&a), TRN_EINVAL);
        assert_string_equal(error.text, "processor 3: enough");
    }
    a.unlimited = true; /* processor 0 comes after processor 7 */
    a.dsts = 1;
    a.dst[0] = trn_tensor_2d(TRN_I32, arena[0], 300, 4);
    a.src[0] = trn_tensor_2d(TRN_I32, arena[1], 300, 4);
    assert_int_equal(trn_gpsimd_custom(&a), TRN_OK);
}

static void custom_operators_that_are_refused(void **unused)
{
    (void)unused;
    trn_gpsimd_custom_args a;
    memset(&a, 0, sizeof a);
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "op is null");
    a.op = silent;
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "there is no tensor: dsts and srcs are 0");
    a.dsts = 5;
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "dsts is 5, not 0 to 4");
    a.dsts = 2;
    a.srcs = 9;
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "srcs is 9, not 0 to 8");
    a.srcs = 1;
    a.dst[0] = trn_tensor_2d(TRN_F32, arena[0], 128, 4);
    refuse(call_gpsimd_custom, &a, TRN_ESHAPE, "dst[1] is missing");
    a.dst[1] = trn_tensor_2d(TRN_F8_E4M3, arena[0], 128, 4);
    refuse(call_gpsimd_custom, &a, TRN_EFORMAT,
           "dst[1] is float8_e4m3; custom operators take float32, bfloat16, float16, int32, int16, int8 and uint8");
    a.dst[1] = trn_tensor_2d(TRN_BF16, arena[0], 128, 4);
    a.src[0] = trn_tensor_2d(TRN_F32, arena[1], 64, 4);
    refuse(call_gpsimd_custom, &a, TRN_ESHAPE, "src[0] has 64 partitions but the first tensor has 128");
    a.src[0] = trn_tensor_2d(TRN_F32, arena[1], 128, 4);
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "dst[1] overlaps dst[0]");
    a.dst[1].data = arena[2];
    a.src[0].data = arena[0] + 4;
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "dst[0] overlaps src[0]");
    a.src[0].data = arena[0]; /* in place */
    assert_int_equal(trn_gpsimd_custom(&a), TRN_EIO);
    a.engine = TRN_ENGINE_SCALAR;
    refuse(call_gpsimd_custom, &a, TRN_EINVAL, "engine is scalar, which does not execute custom operators");
    a.engine = TRN_ENGINE_UNKNOWN;
    a.dsts = 1;
    a.dst[0].shape[0] = a.src[0].shape[0] = 0; /* nobody has anything to do */
    assert_int_equal(trn_gpsimd_custom(&a), TRN_OK);
    assert_int_equal(trn_gpsimd_custom(NULL), TRN_EINVAL);
}

/* ---- the rest ---- */

static void state_is_one_generator_per_partition(void **unused)
{
    static trn_gpsimd_state a, b;
    (void)unused;
    trn_gpsimd_state_init(&a, 7);
    trn_gpsimd_state_init(&b, 7);
    assert_true(a.seeded);
    assert_memory_equal(a.lane, b.lane, sizeof a.lane);
    for (int p = 1; p < TRN_PARTITIONS; p++) assert_memory_not_equal(&a.lane[p], &a.lane[p - 1], sizeof a.lane[0]);
    trn_xorwow one;
    trn_xorwow_seed(&one, 7, 100);
    assert_memory_equal(&one, &a.lane[100], sizeof one);
}

static void empty_tiles(void **unused)
{
    (void)unused;
    trn_iota_args i;
    memset(&i, 0, sizeof i);
    i.dst = trn_tensor_2d(TRN_I32, NULL, 0, 4);
    assert_int_equal(trn_iota(&i), TRN_OK);
    i.dst = trn_tensor_2d(TRN_I32, NULL, 4, 0);
    i.pattern.rank = 2;
    i.pattern.axis[1].num = 3;
    assert_int_equal(trn_iota(&i), TRN_OK);
    trn_nc_n_gather_args g;
    memset(&g, 0, sizeof g);
    g.dst = trn_tensor_2d(TRN_I32, NULL, 4, 0);
    g.data = trn_tensor_2d(TRN_I32, arena[1], 4, 3);
    g.indices = trn_tensor_2d(TRN_U32, NULL, 4, 0);
    assert_int_equal(trn_nc_n_gather(&g), TRN_OK);
    trn_local_gather_args l;
    memset(&l, 0, sizeof l);
    l.dst = trn_tensor_2d(TRN_I32, NULL, 16, 0);
    l.src_buffer = trn_tensor_2d(TRN_I32, arena[1], 16, 3);
    l.index = trn_tensor_2d(TRN_U16, NULL, 16, 0);
    assert_int_equal(trn_local_gather(&l), TRN_OK);
    trn_sequence_bounds_args s;
    memset(&s, 0, sizeof s);
    s.dst = trn_tensor_2d(TRN_I32, NULL, 1, 0);
    s.segment_ids = trn_tensor_2d(TRN_I32, NULL, 1, 0);
    assert_int_equal(trn_sequence_bounds(&s), TRN_OK);
    trn_topk_args t;
    memset(&t, 0, sizeof t);
    t.val_dst = trn_tensor_2d(TRN_BF16, NULL, 0, 4);
    t.idx_dst = trn_tensor_2d(TRN_U32, NULL, 0, 4);
    t.src = trn_tensor_2d(TRN_BF16, NULL, 0, 4);
    t.n = 16;
    assert_int_equal(trn_topk(&t), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iota_is_its_loops),
        cmocka_unit_test(iota_of_large_tiles),
        cmocka_unit_test(affine_select_is_its_loops),
        cmocka_unit_test(causal_mask),
        cmocka_unit_test(patterns_that_are_refused),
        cmocka_unit_test(n_gather_is_its_loops),
        cmocka_unit_test(local_gather_is_its_loops),
        cmocka_unit_test(gathers_that_are_refused),
        cmocka_unit_test(partition_reduce_is_its_loops),
        cmocka_unit_test(partition_reductions_that_are_refused),
        cmocka_unit_test(nonzero_of_the_page),
        cmocka_unit_test(nonzero_is_its_loops),
        cmocka_unit_test(sequence_bounds_are_runs),
        cmocka_unit_test(sequences_that_are_refused),
        cmocka_unit_test(topk_is_a_sort),
        cmocka_unit_test(topk_at_its_limits),
        cmocka_unit_test(topk_that_is_refused),
        cmocka_unit_test(custom_operators),
        cmocka_unit_test(custom_operators_that_fail),
        cmocka_unit_test(custom_operators_that_are_refused),
        cmocka_unit_test(state_is_one_generator_per_partition),
        cmocka_unit_test(empty_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
