/* test_engine_twin_gpsimd.c - every instruction of GpSimd against the slow twin, on random legal arguments.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#ifdef HAVE_MPFR
#include <mpfr.h>
#endif

#include "trnmath/trn_gpsimd_engine.h"
#include "trnmath/trn_vector_engine.h"
#include "twin/engine_cases.h"
#include "twin/twin_gpsimd.h"

/* ---- arithmetic ---- */

ENGINE_CALL(tensor_tensor)
ENGINE_CALL(tensor_scalar)

/* 32-bit integers, exactly. */
static void one_whole_numbers(engine_case *c)
{
    static const int format[] = { TWIN_I32, TWIN_U32 };
    trn_tensor_tensor_args a;
    ENGINE_ARGS(c, a);
    const twin_op op = (twin_op)(TWIN_ADD + cases_below(c->rng, 16));
    a.op = engine_op(op);
    a.generation = engine_generation(c, op, op);
    a.engine = cases_one_in(c->rng, 2) ? TRN_ENGINE_GPSIMD : TRN_ENGINE_UNKNOWN;
    a.dst = tiles_output(&c->s, format[cases_below(c->rng, 2)], c->partitions, c->elements);
    a.data1 = tiles_input(&c->s, format[cases_below(c->rng, 2)], c->partitions, c->elements);
    a.data2 = tiles_input(&c->s, format[cases_below(c->rng, 2)], c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, cases_one_in(c->rng, 2) ? &a.data1 : &a.data2, &a.dst);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data1), y = tiles_load(&c->s, &a.data2);
    twin_whole_tensor_tensor(&dst, &x, &y, op);
    engine_check(c, call_tensor_tensor, &a, &a.dst, &dst, twin_op_name[op]);
    engine_free(3, &dst, &x, &y);
}

#ifdef HAVE_MPFR
/* pow of IEEE 754, correctly rounded. */
static uint32_t power_of(uint32_t x, uint32_t y)
{
    mpfr_t a, b, r;
    mpfr_inits2(24, a, b, r, (mpfr_ptr)0);
    mpfr_set_flt(a, twin_value(x), MPFR_RNDN);
    mpfr_set_flt(b, twin_value(y), MPFR_RNDN);
    const int inexact = mpfr_pow(r, a, b, MPFR_RNDN);
    mpfr_subnormalize(r, mpfr_check_range(r, inexact, MPFR_RNDN), MPFR_RNDN);
    const uint32_t bits = twin_result(mpfr_get_flt(r, MPFR_RNDN));
    mpfr_clears(a, b, r, (mpfr_ptr)0);
    return bits;
}

static void one_power(engine_case *c)
{
    trn_tensor_tensor_args a;
    ENGINE_ARGS(c, a);
    a.op = TRN_ALU_POWER;
    a.engine = cases_one_in(c->rng, 2) ? TRN_ENGINE_GPSIMD : TRN_ENGINE_UNKNOWN;
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data1 = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data2 = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data1), y = tiles_load(&c->s, &a.data2);
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < c->elements; f++)
            twin_store(&dst, p, f, power_of(twin_load(&x, p, f), twin_load(&y, p, f)), &c->how.cast);
    engine_check(c, call_tensor_tensor, &a, &a.dst, &dst, "power");
    engine_free(3, &dst, &x, &y);
}
#else
static void one_power(engine_case *c) { (void)c; }
#endif

/* rsqrt, alone or before an operator of the Vector engine's. */
static void one_rsqrt(engine_case *c)
{
    trn_tensor_scalar_args a;
    ENGINE_ARGS(c, a);
    a.op0 = TRN_ALU_RSQRT;
    a.engine = cases_one_in(c->rng, 2) ? TRN_ENGINE_GPSIMD : TRN_ENGINE_UNKNOWN;
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < c->elements; f++) twin_store(&dst, p, f, twin_rsqrt(twin_load(&x, p, f)), &c->how.cast);
    engine_check(c, call_tensor_scalar, &a, &a.dst, &dst, "rsqrt");
    engine_free(2, &dst, &x);
}

/* ---- patterns ---- */

ENGINE_CALL(iota)
ENGINE_CALL(affine_select)

static int32_t draw_integer(engine_case *c)
{
    if (cases_one_in(c->rng, 10)) return (int32_t)cases_u32(c->rng);
    return cases_below(c->rng, 201) - 100;
}

/* Up to four loops; c->elements becomes their product. */
static twin_pattern draw_pattern(engine_case *c, trn_pattern *pattern, int32_t *offset, int32_t *channel)
{
    twin_pattern t = { { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, 0, 0 };
    pattern->rank = cases_below(c->rng, 5);
    const bool narrow = pattern->rank > 1 || !cases_one_in(c->rng, 10);
    c->elements = 1;
    for (int i = 0; i < pattern->rank; i++) {
        const int at = 4 - pattern->rank + i;
        t.step[at] = pattern->axis[i].step = draw_integer(c);
        t.num[at] = pattern->axis[i].num = cases_one_in(c->rng, 30) ? 0 : 1 + cases_below(c->rng, narrow ? 5 : 1300);
        c->elements *= t.num[at];
    }
    while (c->partitions * c->elements > 3000 && c->partitions > 1) c->partitions /= 2;
    t.offset = *offset = draw_integer(c);
    t.channel = *channel = draw_integer(c);
    return t;
}

static void one_iota(engine_case *c)
{
    trn_iota_args a;
    ENGINE_ARGS(c, a);
    const twin_pattern pattern = draw_pattern(c, &a.pattern, &a.offset, &a.channel_multiplier);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst);
    twin_iota(&dst, &pattern, &c->how.cast);
    engine_check(c, call_iota, &a, &a.dst, &dst, "iota");
    engine_free(1, &dst);
}

static void one_affine_select(engine_case *c)
{
    static const twin_op compare[] = { TWIN_EQUAL,      TWIN_NOT_EQUAL, TWIN_LESS,
                                       TWIN_LESS_EQUAL, TWIN_GREATER,   TWIN_GREATER_EQUAL };
    trn_affine_select_args a;
    ENGINE_ARGS(c, a);
    const twin_pattern pattern = draw_pattern(c, &a.pattern, &a.offset, &a.channel_multiplier);
    const twin_op op = compare[cases_below(c->rng, 6)];
    const int format = tiles_format(c->rng);
    a.cmp_op = op == TWIN_EQUAL && cases_one_in(c->rng, 2) ? TRN_ALU_BYPASS : engine_op(op);
    a.on_false_value = twin_value(cases_float(c->rng));
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.on_true_tile =
        tiles_input(&c->s, cases_one_in(c->rng, 2) ? format : tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.on_true_tile, &a.dst);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.on_true_tile);
    twin_affine_select(&dst, &pattern, &x, twin_bits(a.on_false_value), op, &c->how.cast);
    engine_check(c, call_affine_select, &a, &a.dst, &dst, twin_op_name[op]);
    engine_free(2, &dst, &x);
}

/* ---- gathers ---- */

ENGINE_CALL(local_gather)
ENGINE_CALL(nc_n_gather)

static void put_indices(engine_case *c, const trn_tensor *index, int below)
{
    for (int p = 0; p < index->shape[0]; p++)
        for (int f = 0; f < tiles_elements(index); f++)
            tiles_put(&c->s, index, p, f, (uint32_t)cases_below(c->rng, below));
}

static void one_local_gather(engine_case *c)
{
    trn_local_gather_args a;
    ENGINE_ARGS(c, a);
    const int run = 1 << cases_below(c->rng, 6), format = tiles_format(c->rng), columns = 1 + cases_below(c->rng, 4);
    const int partitions = 16 * (1 + cases_below(c->rng, 8));
    const int valid = cases_one_in(c->rng, 2) ? 16 * columns : 1 + cases_below(c->rng, 16 * columns);
    a.num_elem_per_idx = run == 1 && cases_one_in(c->rng, 2) ? 0 : run;
    a.num_valid_indices = valid == 16 * columns && cases_one_in(c->rng, 2) ? 0 : valid;
    a.dst = tiles_output(&c->s, format, partitions, valid * run);
    a.src_buffer = tiles_input(&c->s, format, partitions, run + c->elements);
    a.src_buffer.cfp8 = a.dst.cfp8;
    a.index = tiles_input(&c->s, TWIN_U16, partitions, columns);
    put_indices(c, &a.index, c->elements + 1);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src_buffer),
                    index = tiles_load(&c->s, &a.index);
    twin_local_gather(&dst, &x, &index, run, valid);
    engine_check(c, call_local_gather, &a, &a.dst, &dst, "local_gather");
    engine_free(3, &dst, &x, &index);
}

static void one_nc_n_gather(engine_case *c)
{
    trn_nc_n_gather_args a;
    ENGINE_ARGS(c, a);
    const int format = tiles_format(c->rng), width = 1 + cases_below(c->rng, cases_one_in(c->rng, 8) ? 1500 : 20);
    while (c->partitions * width > 3000) c->partitions /= 2;
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.data = tiles_input(&c->s, format, c->partitions, width);
    a.data.cfp8 = a.dst.cfp8;
    a.indices = tiles_input(&c->s, TWIN_U32, c->partitions, c->elements);
    put_indices(c, &a.indices, width);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data),
                    index = tiles_load(&c->s, &a.indices);
    twin_n_gather(&dst, &x, &index);
    engine_check(c, call_nc_n_gather, &a, &a.dst, &dst, "nc_n_gather");
    engine_free(3, &dst, &x, &index);
}

/* ---- over partitions, and positions ---- */

ENGINE_CALL(tensor_partition_reduce)
ENGINE_CALL(nonzero_with_count)
ENGINE_CALL(sequence_bounds)
ENGINE_CALL(topk)

static void one_tensor_partition_reduce(engine_case *c)
{
    static const trn_alu name[TWIN_OVERS] = { TRN_ALU_ADD, TRN_ALU_AVERAGE, TRN_ALU_MAXIMUM, TRN_ALU_BITWISE_OR,
                                              TRN_ALU_BITWISE_AND };
    trn_tensor_partition_reduce_args a;
    ENGINE_ARGS(c, a);
    const twin_over op = (twin_over)cases_below(c->rng, TWIN_OVERS);
    const bool bits = op >= TWIN_OVER_OR;
    const int format = bits ? engine_integer(c) : tiles_format(c->rng);
    if (c->partitions == 0) c->partitions = 1; /* what an empty average is, nobody says */
    a.op = name[op];
    a.dst = tiles_output(&c->s, bits ? engine_integer_like(c, format) : tiles_format(c->rng), 1, c->elements);
    a.data = tiles_input(&c->s, format, c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_partition_reduce(&dst, &x, op, &c->how.cast);
    engine_check(c, call_tensor_partition_reduce, &a, &a.dst, &dst, trn_alu_name(a.op));
    engine_free(2, &dst, &x);
}

static void one_nonzero_with_count(engine_case *c)
{
    trn_nonzero_with_count_args a;
    ENGINE_ARGS(c, a);
    if (a.generation == TRN_TRAINIUM1) a.generation = TRN_TRAINIUM2;
    a.dst = tiles_output(&c->s, TWIN_I32, c->partitions, c->elements + 1);
    a.src = tiles_input(&c->s, cases_one_in(c->rng, 2) ? TWIN_F32 : TWIN_I32, c->partitions, c->elements);
    engine_half_zero(c, &a.src);
    a.index_offset = draw_integer(c);
    a.padding_val = cases_one_in(c->rng, 2) ? -1 : draw_integer(c);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_nonzero_with_count(&dst, &x, a.index_offset, a.padding_val);
    engine_check(c, call_nonzero_with_count, &a, &a.dst, &dst, "nonzero_with_count");
    engine_free(2, &dst, &x);
}

static void one_sequence_bounds(engine_case *c)
{
    trn_sequence_bounds_args a;
    ENGINE_ARGS(c, a);
    const int format = cases_one_in(c->rng, 2) ? TWIN_F32 : TWIN_I32;
    const int64_t shape[3] = { 1, 2, c->elements };
    a.dst = trn_tensor_nd(bridge_format(cases_one_in(c->rng, 2) ? TWIN_F32 : TWIN_I32), NULL, 3, shape);
    tiles_place(&c->s, &a.dst, false);
    a.segment_ids = tiles_input(&c->s, format, 1, c->elements);
    uint32_t id = 0;
    for (int f = 0; f < c->elements; f++) {
        if (cases_one_in(c->rng, 3)) id = (uint32_t)cases_below(c->rng, 4);
        tiles_put(&c->s, &a.segment_ids, 0, f, format == TWIN_F32 ? twin_bits((float)id) : id);
    }
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.segment_ids);
    twin_sequence_bounds(&dst, &x, &c->how.cast);
    engine_check(c, call_sequence_bounds, &a, &a.dst, &dst, "sequence_bounds");
    engine_free(2, &dst, &x);
}

static void one_topk(engine_case *c)
{
    trn_topk_args a;
    ENGINE_ARGS(c, a);
    const int partitions = 16 * (1 + cases_below(c->rng, 3)), columns = 1 + cases_below(c->rng, 9);
    const int n =
        cases_one_in(c->rng, 3) || 16 * columns < 9 ? 16 * columns : 8 + cases_below(c->rng, 16 * columns - 7);
    const int k = 1 + cases_below(c->rng, n);
    a.n = n;
    a.val_dst = tiles_output(&c->s, TWIN_BF16, partitions, k);
    a.idx_dst = tiles_output(&c->s, TWIN_U32, partitions, k);
    a.src = tiles_input(&c->s, TWIN_BF16, partitions, columns + cases_below(c->rng, 2));
    for (int p = 0; p < partitions; p++)
        for (int f = 0; f < tiles_elements(&a.src); f++)
            if (cases_one_in(c->rng, 2)) tiles_put(&c->s, &a.src, p, f, 0x3f80u + (uint32_t)cases_below(c->rng, 3));
    const twin_grid values = tiles_load(&c->s, &a.val_dst), places = tiles_load(&c->s, &a.idx_dst),
                    x = tiles_load(&c->s, &a.src);
    twin_topk(&values, &places, &x, n, k);
    tiles_want(&c->s, &a.idx_dst, &places);
    engine_check(c, call_topk, &a, &a.val_dst, &values, "topk");
    engine_free(3, &values, &places, &x);
}

/* ---- operators of one's own ---- */

ENGINE_CALL(gpsimd_custom)

/* Every element becomes its source, with the processor's number in the low bits. */
static trn_status number_elements(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    const trn_tensor *dst = &part->dst[0], *src = &part->src[0];
    const size_t size = trn_format_bytes(dst->format);
    (void)error;
    memset(part->local, part->processor, part->local_bytes);
    if (part->dsts != 1 || part->srcs != 1 || part->first_partition != 16 * part->processor ||
        part->partitions != dst->shape[0])
        *(bool *)user = true; /* (an assertion of cmocka's may not leave from here) */
    for (int p = 0; p < dst->shape[0]; p++)
        for (int f = 0; f < tiles_elements(dst); f++) {
            uint32_t code = 0;
            memcpy(&code, tiles_at(src, p, f), size);
            code ^= (uint32_t)part->processor;
            memcpy(tiles_at(dst, p, f), &code, size);
        }
    return TRN_OK;
}

static void one_custom(engine_case *c)
{
    bool wrong = false;
    trn_gpsimd_custom_args a;
    ENGINE_ARGS(c, a);
    static const int types[] = { TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_I32, TWIN_I8, TWIN_I16, TWIN_U8 };
    const int format = types[cases_below(c->rng, 7)];
    a.dst[0] = tiles_output(&c->s, format, c->partitions, c->elements);
    a.src[0] = tiles_input(&c->s, format, c->partitions, c->elements);
    a.dsts = a.srcs = 1;
    a.op = number_elements;
    a.user = &wrong;
    const twin_grid dst = tiles_load(&c->s, &a.dst[0]), x = tiles_load(&c->s, &a.src[0]);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < c->elements; f++) *twin_at(&dst, p, f) = *twin_at(&x, p, f) ^ (uint32_t)(p / 16);
    engine_check(c, call_gpsimd_custom, &a, &a.dst[0], &dst, "custom");
    assert_false(wrong);
    engine_free(2, &dst, &x);
}

ENGINE_TEST(whole_numbers, 1500, 40000)
ENGINE_TEST(power, 500, 20000)
ENGINE_TEST(rsqrt, 400, 10000)
ENGINE_TEST(iota, 1500, 40000)
ENGINE_TEST(affine_select, 1500, 40000)
ENGINE_TEST(local_gather, 500, 10000)
ENGINE_TEST(nc_n_gather, 1000, 20000)
ENGINE_TEST(tensor_partition_reduce, 1500, 40000)
ENGINE_TEST(nonzero_with_count, 1000, 20000)
ENGINE_TEST(sequence_bounds, 1000, 20000)
ENGINE_TEST(topk, 300, 6000)
ENGINE_TEST(custom, 500, 10000)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_rsqrt),
        cmocka_unit_test(test_iota),
        cmocka_unit_test(test_affine_select),
        cmocka_unit_test(test_local_gather),
        cmocka_unit_test(test_nc_n_gather),
        cmocka_unit_test(test_tensor_partition_reduce),
        cmocka_unit_test(test_nonzero_with_count),
        cmocka_unit_test(test_sequence_bounds),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_custom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
