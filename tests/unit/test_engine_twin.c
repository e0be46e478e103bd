/* test_engine_twin.c - every instruction of the Vector engine against the slow twin, on random legal arguments.
 * SPDX-License-Identifier: MIT
 *
 * Formats, shapes, strides, broadcasts, in place, all roundings, all operators, all generations and all instruction
 * sets of the host; memory is compared whole. What an instruction refuses is test_vector_*.c's and fuzz_engines.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_vector_engine.h"
#include "twin/engine_cases.h"

/* ---- elementwise ---- */

ENGINE_CALL(tensor_tensor)
ENGINE_CALL(tensor_scalar)
ENGINE_CALL(scalar_tensor_tensor)
ENGINE_CALL(tensor_copy)
ENGINE_CALL(tensor_copy_predicated)
ENGINE_CALL(memset)
ENGINE_CALL(reciprocal)

static void one_tensor_tensor(engine_case *c)
{
    const bool bits = cases_one_in(c->rng, 3);
    const int dst_format = bits ? engine_integer(c) : tiles_format(c->rng);
    trn_tensor_tensor_args a;
    ENGINE_ARGS(c, a);
    const twin_op op = bits ? (twin_op)(TWIN_AND + cases_below(c->rng, 5)) : engine_number_op(c, 16);
    a.op = engine_op(op);
    a.generation = engine_generation(c, op, op);
    a.engine = bits ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_VECTOR; /* through binary32, 32-bit integers as well */
    a.dst = tiles_output(&c->s, dst_format, c->partitions, c->elements);
    a.data1 = tiles_input(&c->s, bits ? engine_integer_like(c, dst_format) : tiles_format(c->rng), c->partitions,
                          c->elements);
    a.data2 = tiles_input(&c->s, bits ? engine_integer_like(c, dst_format) : tiles_format(c->rng), c->partitions,
                          c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, cases_one_in(c->rng, 2) ? &a.data1 : &a.data2, &a.dst);
    if (cases_one_in(c->rng, 8)) a.data2 = a.data1;
    if (bits) engine_small_counts(c, op, &a.data2);

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data1), y = tiles_load(&c->s, &a.data2);
    twin_tensor_tensor(&dst, &x, &y, op, &c->how.cast);
    engine_check(c, call_tensor_tensor, &a, &a.dst, &dst, twin_op_name[op]);
    engine_free(3, &dst, &x, &y);
}

/* An operand for all, or per partition. Bits: a raw number, or a tile of integers of the same width. */
static twin_column draw_operand(engine_case *c, trn_tensor *tile, float *number)
{
    twin_column column;
    column.tile = twin_no_grid();
    column.bits = cases_one_in(c->rng, 3) ? cases_float(c->rng) : bridge_value(c->s.values, c->rng);
    *number = twin_value(column.bits);
    if (cases_one_in(c->rng, 2)) {
        *tile = tiles_input(&c->s, TWIN_F32, c->partitions, 1);
        column.tile = tiles_load(&c->s, tile);
    }
    return column;
}

static uint32_t draw_bits(engine_case *c, int format)
{
    const uint32_t count = (uint32_t)cases_below(c->rng, 40), all = twin_ones(twin_formats[format].bits);
    return (cases_one_in(c->rng, 2) ? cases_u32(c->rng) : count) & all;
}

static void one_tensor_scalar(engine_case *c)
{
    const bool bits = cases_one_in(c->rng, 3);
    const int dst_format = bits ? engine_integer(c) : tiles_format(c->rng);
    trn_tensor_scalar_args a;
    ENGINE_ARGS(c, a);
    twin_step step[2];
    memset(step, 0, sizeof step);
    for (int i = 0; i < 2; i++) {
        step[i].op = bits ? (twin_op)(TWIN_INVERT + cases_below(c->rng, 6)) : engine_number_op(c, TWIN_NUMBERS - 1);
        step[i].reverse = cases_one_in(c->rng, 2);
    }
    if (cases_one_in(c->rng, 3)) step[1].op = TWIN_BYPASS;
    a.generation = engine_generation(c, step[0].op, step[1].op);
    a.dst = tiles_output(&c->s, dst_format, c->partitions, c->elements);
    a.data = tiles_input(&c->s, bits ? engine_integer_like(c, dst_format) : tiles_format(c->rng), c->partitions,
                         c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.data, &a.dst);
    if (bits) {
        if (!engine_one_operand(step[0].op)) step[0].operand.bits = a.bits0 = draw_bits(c, dst_format);
        if (!engine_one_operand(step[1].op)) step[1].operand.bits = a.bits1 = draw_bits(c, dst_format);
    } else {
        if (!engine_one_operand(step[0].op)) step[0].operand = draw_operand(c, &a.operand0_tile, &a.operand0);
        if (!engine_one_operand(step[1].op)) step[1].operand = draw_operand(c, &a.operand1_tile, &a.operand1);
    }
    a.op0 = engine_op(step[0].op);
    a.op1 = engine_op(step[1].op);
    a.reverse0 = step[0].reverse;
    a.reverse1 = step[1].reverse;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    char what[80];
    snprintf(what, sizeof what, "%s%s, %s%s", twin_op_name[step[0].op], step[0].reverse ? " reversed" : "",
             twin_op_name[step[1].op], step[1].reverse ? " reversed" : "");
    twin_tensor_scalar(&dst, &x, step, &c->how.cast);
    engine_check(c, call_tensor_scalar, &a, &a.dst, &dst, what);
    engine_free(4, &dst, &x, &step[0].operand.tile, &step[1].operand.tile);
}

static void one_scalar_tensor_tensor(engine_case *c)
{
    trn_scalar_tensor_tensor_args a;
    ENGINE_ARGS(c, a);
    twin_step step;
    step.op = engine_number_op(c, 16);
    step.reverse = a.reverse0 = cases_one_in(c->rng, 2);
    const twin_op op1 = engine_number_op(c, 16);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.operand1 = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, cases_one_in(c->rng, 2) ? &a.data : &a.operand1, &a.dst);
    step.operand = draw_operand(c, &a.operand0_tile, &a.operand0);
    a.op0 = engine_op(step.op);
    a.op1 = engine_op(op1);
    a.generation = engine_generation(c, step.op, op1);
    a.reverse1 = cases_one_in(c->rng, 2);

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data), y = tiles_load(&c->s, &a.operand1);
    twin_scalar_tensor_tensor(&dst, &x, &step, &y, op1, a.reverse1, &c->how.cast);
    engine_check(c, call_scalar_tensor_tensor, &a, &a.dst, &dst, twin_op_name[op1]);
    engine_free(4, &dst, &x, &y, &step.operand.tile);
}

static void one_tensor_copy(engine_case *c)
{
    trn_tensor_copy_args a;
    ENGINE_ARGS(c, a);
    const int format = tiles_format(c->rng);
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.src = tiles_input(&c->s, cases_one_in(c->rng, 2) ? format : tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 2)) a.src.cfp8 = a.dst.cfp8; /* (of other formats nobody looks at it) */
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.src, &a.dst);
    static const trn_engine engine[] = { TRN_ENGINE_UNKNOWN, TRN_ENGINE_VECTOR, TRN_ENGINE_GPSIMD, TRN_ENGINE_SCALAR };
    a.engine = engine[cases_below(c->rng, a.generation == TRN_TRAINIUM1 ? 3 : 4)];

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_tensor_copy(&dst, &x, &c->how.cast);
    engine_check(c, call_tensor_copy, &a, &a.dst, &dst, x.format.name);
    engine_free(2, &dst, &x);
}

static void one_tensor_copy_predicated(engine_case *c)
{
    static const int predicates[] = { TWIN_U8, TWIN_U16, TWIN_U32 };
    trn_tensor_copy_predicated_args a;
    ENGINE_ARGS(c, a);
    const int format = tiles_format(c->rng);
    const bool tile = cases_one_in(c->rng, 2);
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.value = twin_value(cases_float(c->rng));
    a.reverse_pred = cases_one_in(c->rng, 2);
    if (tile) a.src = tiles_input(&c->s, format, c->partitions, c->elements);
    if (tile) a.src.cfp8 = a.dst.cfp8;
    a.predicate = tiles_input(&c->s, predicates[cases_below(c->rng, 3)], c->partitions, c->elements);
    engine_half_zero(c, &a.predicate);
    if (tile && cases_one_in(c->rng, 8)) tiles_in_place(&c->s, &a.src, &a.dst);

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src),
                    yes = tiles_load(&c->s, &a.predicate);
    twin_copy_predicated(&dst, &x, twin_bits(a.value), &yes, a.reverse_pred, &c->how.cast);
    engine_check(c, call_tensor_copy_predicated, &a, &a.dst, &dst, tile ? "a tile" : "a number");
    engine_free(3, &dst, &x, &yes);
}

static void one_memset(engine_case *c)
{
    trn_memset_args a;
    ENGINE_ARGS(c, a);
    a.engine = cases_one_in(c->rng, 3) ? TRN_ENGINE_GPSIMD : TRN_ENGINE_UNKNOWN;
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.value = twin_value(cases_float(c->rng));
    const twin_grid dst = tiles_load(&c->s, &a.dst);
    twin_memset(&dst, twin_bits(a.value), &c->how.cast);
    engine_check(c, call_memset, &a, &a.dst, &dst, "memset");
    engine_free(1, &dst);
}

static void one_reciprocal(engine_case *c)
{
    trn_reciprocal_args a;
    ENGINE_ARGS(c, a);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.data, &a.dst);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_reciprocal(&dst, &x, &c->how.cast);
    engine_check(c, call_reciprocal, &a, &a.dst, &dst, "reciprocal");
    engine_free(2, &dst, &x);
}

/* ---- reductions and scans ---- */

ENGINE_CALL(tensor_reduce)
ENGINE_CALL(tensor_scalar_reduce)
ENGINE_CALL(tensor_scalar_cumulative)
ENGINE_CALL(tensor_tensor_scan)
ENGINE_CALL(range_select)
ENGINE_CALL(select_reduce)

static twin_op draw_binary(engine_case *c) { return engine_number_op(c, 16); }

/* The trailing axes of data, and dst with what remains of its shape. */
static trn_tensor reduced_shape(engine_case *c, const trn_tensor *data, int axes, bool keepdims, int format)
{
    int64_t shape[TRN_MAX_RANK];
    int rank = data->rank - axes;
    for (int i = 0; i < data->rank; i++) shape[i] = i < rank ? data->shape[i] : 1;
    if (keepdims)
        rank = data->rank;
    else if (rank == 1)
        shape[rank++] = 1;
    trn_tensor t = trn_tensor_nd(bridge_format(format), NULL, rank, shape);
    tiles_place(&c->s, &t, false);
    return t;
}

static void one_tensor_reduce(engine_case *c)
{
    static const twin_op op[] = { TWIN_ADD,         TWIN_ADD,     TWIN_SUBTRACT,    TWIN_MULTIPLY,
                                  TWIN_MAXIMUM,     TWIN_MINIMUM, TWIN_LOGICAL_AND, TWIN_LOGICAL_OR,
                                  TWIN_LOGICAL_XOR, TWIN_AND,     TWIN_OR,          TWIN_XOR };
    trn_tensor_reduce_args a;
    ENGINE_ARGS(c, a);
    const twin_op which = op[cases_below(c->rng, 12)];
    const int format = twin_is_bitvec(which) ? engine_integer(c) : tiles_format(c->rng);
    a.op = engine_op(which);
    a.data = tiles_input(&c->s, format, c->partitions, c->elements);
    if (a.data.rank < 2) return;
    const int axes = 1 + cases_below(c->rng, a.data.rank - 1);
    a.axes = axes == a.data.rank - 1 && cases_one_in(c->rng, 2) ? 0 : axes;
    a.negate = !twin_is_bitvec(which) && cases_one_in(c->rng, 3);
    a.keepdims = cases_one_in(c->rng, 2);
    a.dst = reduced_shape(c, &a.data, axes, a.keepdims, twin_is_bitvec(which) ? format : tiles_any_format(c->rng));
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_tensor_reduce(&dst, &x, which, a.negate, &c->how.cast);
    engine_check(c, call_tensor_reduce, &a, &a.dst, &dst, twin_op_name[which]);
    engine_free(2, &dst, &x);
}

static void one_tensor_scalar_reduce(engine_case *c)
{
    static const twin_op op[] = { TWIN_ADD, TWIN_MULTIPLY, TWIN_MAXIMUM, TWIN_MINIMUM };
    trn_tensor_scalar_reduce_args a;
    ENGINE_ARGS(c, a);
    twin_step step;
    step.op = draw_binary(c);
    step.reverse = a.reverse0 = cases_one_in(c->rng, 4);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.data, &a.dst);
    step.operand = draw_operand(c, &a.operand0_tile, &a.operand0);
    a.op0 = engine_op(step.op);
    a.generation = engine_generation(c, step.op, step.op);
    twin_accumulation sum = engine_accumulation(c, op[cases_below(c->rng, 4)],
                                                1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | 1u << TWIN_LOAD_REDUCE);
    a.reduce_op = engine_op(sum.op);
    a.reduce_cmd = engine_command(c, sum.command, TWIN_RESET_REDUCE);
    a.reduce_res_negate = sum.negate = cases_one_in(c->rng, 3);
    if (cases_one_in(c->rng, 2)) a.reduce_res = tiles_output(&c->s, tiles_any_format(c->rng), c->partitions, 1);
    if (sum.command == TWIN_LOAD_REDUCE) sum.init = draw_operand(c, &a.reduce_init_tile, &a.reduce_init);
    sum.res = tiles_load(&c->s, &a.reduce_res);
    a.state = &c->state;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_tensor_scalar_reduce(&dst, &x, &step, &sum, &c->how.cast);
    tiles_want(&c->s, &a.reduce_res, &sum.res);
    engine_check(c, call_tensor_scalar_reduce, &a, &a.dst, &dst, twin_op_name[sum.op]);
    engine_free(5, &dst, &x, &step.operand.tile, &sum.res, &sum.init.tile);
}

static void one_tensor_scalar_cumulative(engine_case *c)
{
    static const twin_op op[] = { TWIN_ADD, TWIN_SUBTRACT, TWIN_MULTIPLY, TWIN_MAXIMUM, TWIN_MINIMUM };
    static const int format[] = { TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2,
                                  TWIN_I8,  TWIN_U8,   TWIN_I16, TWIN_U16 };
    trn_tensor_scalar_cumulative_args a;
    ENGINE_ARGS(c, a);
    twin_step step;
    step.op = draw_binary(c);
    step.reverse = a.reverse0 = cases_one_in(c->rng, 3);
    a.dst = tiles_output(&c->s, format[cases_below(c->rng, 9)], c->partitions, c->elements);
    a.src = tiles_input(&c->s, format[cases_below(c->rng, 9)], c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.src, &a.dst);
    step.operand = draw_operand(c, &a.imm0_tile, &a.imm0);
    a.op0 = engine_op(step.op);
    a.generation = engine_generation(c, step.op, step.op);
    twin_accumulation sum = engine_accumulation(c, op[cases_below(c->rng, 5)],
                                                1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | 1u << TWIN_LOAD_REDUCE);
    a.op1 = engine_op(sum.op);
    a.reduce_cmd = engine_command(c, sum.command, TWIN_RESET_REDUCE);
    if (sum.command == TWIN_LOAD_REDUCE) sum.init = draw_operand(c, &a.imm1_tile, &a.imm1);
    a.state = &c->state;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_tensor_scalar_cumulative(&dst, &x, &step, &sum, &c->how.cast);
    engine_check(c, call_tensor_scalar_cumulative, &a, &a.dst, &dst, twin_op_name[sum.op]);
    engine_free(4, &dst, &x, &step.operand.tile, &sum.init.tile);
}

static void one_tensor_tensor_scan(engine_case *c)
{
    trn_tensor_tensor_scan_args a;
    ENGINE_ARGS(c, a);
    const twin_op op0 = draw_binary(c), op1 = draw_binary(c);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data0 = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    a.data1 = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, cases_one_in(c->rng, 2) ? &a.data0 : &a.data1, &a.dst);
    const twin_column initial = draw_operand(c, &a.initial_tile, &a.initial);
    a.op0 = engine_op(op0);
    a.op1 = engine_op(op1);
    a.generation = engine_generation(c, op0, op1);
    a.reverse0 = cases_one_in(c->rng, 2);
    a.reverse1 = cases_one_in(c->rng, 2);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data0), y = tiles_load(&c->s, &a.data1);
    twin_scan(&dst, &x, &y, &initial, op0, a.reverse0, op1, a.reverse1, &c->how.cast);
    char what[80];
    snprintf(what, sizeof what, "%s, %s", twin_op_name[op0], twin_op_name[op1]);
    engine_check(c, call_tensor_tensor_scan, &a, &a.dst, &dst, what);
    engine_free(4, &dst, &x, &y, &initial.tile);
}

/* ---- selections ---- */

static void one_range_select(engine_case *c)
{
    static const int format[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2, TWIN_TF32 };
    static const twin_op compare[] = { TWIN_EQUAL, TWIN_LESS, TWIN_LESS_EQUAL, TWIN_GREATER, TWIN_GREATER_EQUAL };
    trn_range_select_args a;
    ENGINE_ARGS(c, a);
    if (a.generation == TRN_TRAINIUM1) a.generation = TRN_TRAINIUM2;
    const twin_op op0 = compare[cases_below(c->rng, 5)], op1 = compare[cases_below(c->rng, 5)];
    const int source = format[cases_below(c->rng, 7)];
    a.dst = tiles_output(&c->s, cases_one_in(c->rng, 2) ? source : tiles_format(c->rng), c->partitions, c->elements);
    a.on_true_tile = tiles_input(&c->s, source, c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.on_true_tile, &a.dst);
    if (tiles_row(&a.on_true_tile).sort != TWIN_SORT_FLOAT) return;
    a.bound0 = tiles_input(&c->s, TWIN_F32, c->partitions, 1);
    a.bound1 = tiles_input(&c->s, TWIN_F32, c->partitions, 1);
    a.range_start = cases_one_in(c->rng, 2) ? cases_below(c->rng, 1000) : 0;
    for (int p = 0; p < c->partitions; p++) { /* bounds that divide the range, mostly */
        const float low = (float)(a.range_start + cases_below(c->rng, c->elements + 2) - 1),
                    high = (float)(a.range_start + cases_below(c->rng, c->elements + 2));
        if (!cases_one_in(c->rng, 10)) tiles_put(&c->s, &a.bound0, p, 0, twin_bits(low));
        if (!cases_one_in(c->rng, 10)) tiles_put(&c->s, &a.bound1, p, 0, twin_bits(high));
    }
    a.comp_op0 = engine_op(op0);
    a.comp_op1 = engine_op(op1);
    if (cases_one_in(c->rng, 2)) a.on_false_value = twin_value(TWIN_LOWEST);
    if (cases_one_in(c->rng, 2)) a.reduce_op = TRN_ALU_MAXIMUM;
    const unsigned legal = 1u << TWIN_IDLE | 1u << TWIN_RESET | 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE;
    twin_accumulation sum = engine_accumulation(c, TWIN_MAXIMUM, legal);
    a.reduce_cmd = engine_command(c, sum.command, TWIN_RESET_REDUCE);
    if (sum.command != TWIN_IDLE && cases_one_in(c->rng, 2))
        a.reduce_res = tiles_output(&c->s, tiles_any_format(c->rng), c->partitions, 1);
    sum.res = tiles_load(&c->s, &a.reduce_res);
    a.state = &c->state;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.on_true_tile),
                    b0 = tiles_load(&c->s, &a.bound0), b1 = tiles_load(&c->s, &a.bound1);
    twin_range_select(&dst, &x, op0, op1, &b0, &b1, a.range_start, &sum, &c->how.cast);
    tiles_want(&c->s, &a.reduce_res, &sum.res);
    engine_check(c, call_range_select, &a, &a.dst, &dst, twin_op_name[op0]);
    engine_free(5, &dst, &x, &b0, &b1, &sum.res);
}

static void one_select_reduce(engine_case *c)
{
    static const int format[] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2, TWIN_I8, TWIN_U16 };
    static const int predicates[] = { TWIN_U8, TWIN_U16, TWIN_I8, TWIN_I16 };
    trn_select_reduce_args a;
    ENGINE_ARGS(c, a);
    const int source = format[cases_below(c->rng, 8)];
    a.dst = tiles_output(&c->s, cases_one_in(c->rng, 2) ? source : tiles_format(c->rng), c->partitions, c->elements);
    a.on_true = tiles_input(&c->s, source, c->partitions, c->elements);
    a.predicate = tiles_input(&c->s, predicates[cases_below(c->rng, 4)], c->partitions, c->elements);
    engine_half_zero(c, &a.predicate);
    const twin_column on_false = draw_operand(c, &a.on_false_tile, &a.on_false);
    a.reverse_pred = cases_one_in(c->rng, 2);
    if (cases_one_in(c->rng, 2)) a.reduce_op = TRN_ALU_MAXIMUM;
    twin_accumulation sum =
        engine_accumulation(c, TWIN_MAXIMUM, 1u << TWIN_IDLE | 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE);
    a.reduce_cmd = engine_command(c, sum.command, TWIN_IDLE);
    if (sum.command != TWIN_IDLE && cases_one_in(c->rng, 2))
        a.reduce_res = tiles_output(&c->s, tiles_float_format(c->rng), c->partitions, 1);
    sum.res = tiles_load(&c->s, &a.reduce_res);
    a.state = &c->state;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.on_true),
                    yes = tiles_load(&c->s, &a.predicate);
    twin_select_reduce(&dst, &yes, a.reverse_pred, &x, &on_false, &sum, &c->how.cast);
    tiles_want(&c->s, &a.reduce_res, &sum.res);
    engine_check(c, call_select_reduce, &a, &a.dst, &dst, sum.command == TWIN_IDLE ? "idle" : "reduced");
    engine_free(5, &dst, &x, &yes, &on_false.tile, &sum.res);
}

/* ---- exponential: the Scalar engine's function, which has tests of its own, between a difference and a sum ---- */

ENGINE_CALL(exponential)

static uint32_t exponential_of(const trni_act_plan *exp_plan, uint32_t x)
{
    float in = twin_value(x), out;
    trni_act_run(exp_plan, &out, &in, 1);
    return twin_bits(out);
}

static void one_exponential(engine_case *c)
{
    static const int to[] = { TWIN_E4M3, TWIN_E5M2, TWIN_F16, TWIN_BF16, TWIN_F32, TWIN_TF32,
                              TWIN_I8,   TWIN_I16,  TWIN_I32, TWIN_U8,   TWIN_U16 };
    static const int from[] = { TWIN_E4M3, TWIN_E5M2, TWIN_F16, TWIN_BF16, TWIN_F32, TWIN_I8,
                                TWIN_I16,  TWIN_I32,  TWIN_U8,  TWIN_U16,  TWIN_U32 };
    trni_act_plan exp_plan;
    trn_exponential_args a;
    ENGINE_ARGS(c, a);
    a.generation = cases_one_in(c->rng, 2) ? TRN_TRAINIUM3 : TRN_GENERATION_DEFAULT;
    a.dst = tiles_output(&c->s, to[cases_below(c->rng, 11)], c->partitions, c->elements);
    a.src = tiles_input(&c->s, from[cases_below(c->rng, 11)], c->partitions, c->elements);
    if (cases_one_in(c->rng, 4) && bridge_bytes(tiles_format_of(&a.dst)) == bridge_bytes(tiles_format_of(&a.src)) &&
        a.src.format != TRN_TF32)
        tiles_in_place(&c->s, &a.src, &a.dst);
    const twin_column most = draw_operand(c, &a.max_value_tile, &a.max_value);
    twin_accumulation sum = engine_accumulation(
        c, TWIN_ADD, 1u << TWIN_IDLE | 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | 1u << TWIN_LOAD_REDUCE);
    a.reduce_cmd = engine_command(c, sum.command, TWIN_IDLE);
    if (sum.command == TWIN_LOAD_REDUCE) sum.init = draw_operand(c, &a.reduce_init_tile, &a.reduce_init);
    if (sum.command != TWIN_IDLE && cases_one_in(c->rng, 2))
        a.reduce_res = tiles_output(&c->s, to[cases_below(c->rng, 6)], c->partitions, 1);
    sum.res = tiles_load(&c->s, &a.reduce_res);
    a.state = &c->state;

    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    uint32_t *y = twin_words(c->elements);
    trni_act_plan_init(&exp_plan, TRN_ACT_EXP, 0.0f, NULL, TRN_ISA_PORTABLE);
    for (int p = 0; p < c->partitions; p++) {
        for (int f = 0; f < c->elements; f++) {
            y[f] = exponential_of(&exp_plan, twin_f32_difference(twin_load(&x, p, f), twin_column_at(&most, p)));
            twin_store(&dst, p, f, y[f], &c->how.cast);
        }
        twin_accumulate(&sum, y, c->elements, p, &c->how.cast);
    }
    free(y);
    tiles_want(&c->s, &a.reduce_res, &sum.res);
    engine_check(c, call_exponential, &a, &a.dst, &dst, "exponential");
    engine_free(5, &dst, &x, &most.tile, &sum.init.tile, &sum.res);
}

/* ---- operation level: more partitions than the chip has, threads ---- */

static void one_large(engine_case *c)
{
    static const int format[] = { TWIN_F32, TWIN_F32, TWIN_BF16 };
    trn_tensor_scalar_args a;
    trn_tensor_reduce_args r;
    ENGINE_ARGS(c, a);
    ENGINE_ARGS(c, r);
    c->partitions = 130 + cases_below(c->rng, 100);
    c->elements = 1000 + cases_below(c->rng, 200);
    a.unlimited = r.unlimited = true;
    a.dst = tiles_output(&c->s, TWIN_F32, c->partitions, c->elements);
    a.data = tiles_input(&c->s, format[cases_below(c->rng, 3)], c->partitions, c->elements);
    r.dst = tiles_output(&c->s, TWIN_F32, c->partitions, 1);
    r.data = a.data;
    twin_step step[2];
    memset(step, 0, sizeof step);
    step[0].op = TWIN_MULTIPLY;
    step[1].op = TWIN_ADD;
    a.op0 = TRN_ALU_MULTIPLY;
    a.op1 = r.op = TRN_ALU_ADD;
    step[0].operand = draw_operand(c, &a.operand0_tile, &a.operand0);
    step[1].operand = draw_operand(c, &a.operand1_tile, &a.operand1);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data), sum = tiles_load(&c->s, &r.dst);
    twin_tensor_scalar(&dst, &x, step, &c->how.cast);
    with_threads(2);
    engine_check(c, call_tensor_scalar, &a, &a.dst, &dst, "large, elementwise");
    for (int i = 0; i < c->s.count; i++) memcpy(c->s.memory[i].want, c->s.memory[i].before, c->s.memory[i].bytes);
    twin_tensor_reduce(&sum, &x, TWIN_ADD, false, &c->how.cast);
    engine_check(c, call_tensor_reduce, &r, &r.dst, &sum, "large, reduced");
    with_threads(1);
    engine_free(5, &dst, &x, &sum, &step[0].operand.tile, &step[1].operand.tile);
}

/* ---- the twin itself ---- */

/* The volatile floats are what 768 bits say. */
static void operations_of_the_twin_are_exact(void **unused)
{
    (void)unused;
    uint64_t rng = 5;
    for (int i = 0; i < cases_rounds(20000, 2000000); i++) {
        const uint32_t a = cases_float(&rng), b = cases_float(&rng);
        const twin_number x = twin_from_f32(a), y = twin_from_f32(b), sum = twin_add(&x, &y),
                          product = twin_multiply(&x, &y);
        CASES_EQUAL(twin_to_f32(&sum), twin_f32_sum(a, b), "%08x + %08x", (unsigned)a, (unsigned)b);
        CASES_EQUAL(twin_to_f32(&product), twin_f32_product(a, b), "%08x * %08x", (unsigned)a, (unsigned)b);
        const uint32_t q =
            twin_f32_quotient(TWIN_ONE, a) & 0x7fffffffu; /* r is 1/x when (r - ulp/2) x <= 1 <= (r + ulp/2) x */
        if (x.kind != TWIN_FINITE || twin_is_zero(&x) || q >= 0x7f7fffffu || q < 2) continue;
        const twin_number low = twin_from_f32(q - 1), middle = twin_from_f32(q), high = twin_from_f32(q + 1),
                          two = twin_make(false, 2, 0);
        const twin_number below = twin_add(&low, &middle), above = twin_add(&middle, &high);
        const twin_number under = twin_multiply(&below, &x), over = twin_multiply(&above, &x);
        assert_true(twin_compare_magnitude(&under, &two) <= 0 && twin_compare_magnitude(&over, &two) >= 0);
    }
}

ENGINE_TEST(tensor_tensor, 2000, 60000)
ENGINE_TEST(tensor_scalar, 2000, 60000)
ENGINE_TEST(scalar_tensor_tensor, 1500, 40000)
ENGINE_TEST(tensor_copy, 1500, 40000)
ENGINE_TEST(tensor_copy_predicated, 1000, 30000)
ENGINE_TEST(memset, 500, 10000)
ENGINE_TEST(reciprocal, 750, 20000)
ENGINE_TEST(tensor_reduce, 1500, 40000)
ENGINE_TEST(tensor_scalar_reduce, 1500, 40000)
ENGINE_TEST(tensor_scalar_cumulative, 1500, 40000)
ENGINE_TEST(tensor_tensor_scan, 1500, 40000)
ENGINE_TEST(range_select, 1500, 40000)
ENGINE_TEST(exponential, 750, 30000)
ENGINE_TEST(large, 2, 40)
ENGINE_TEST(select_reduce, 1500, 40000)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_the_twin_are_exact),
        cmocka_unit_test(test_tensor_tensor),
        cmocka_unit_test(test_tensor_scalar),
        cmocka_unit_test(test_scalar_tensor_tensor),
        cmocka_unit_test(test_tensor_copy),
        cmocka_unit_test(test_tensor_copy_predicated),
        cmocka_unit_test(test_memset),
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_tensor_reduce),
        cmocka_unit_test(test_tensor_scalar_reduce),
        cmocka_unit_test(test_tensor_scalar_cumulative),
        cmocka_unit_test(test_tensor_tensor_scan),
        cmocka_unit_test(test_range_select),
        cmocka_unit_test(test_select_reduce),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
