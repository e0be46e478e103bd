/* test_engine_programs.c - random programs of instructions, run twice: in the slow twin step by step, and in trnmath.
 * SPDX-License-Identifier: MIT
 *
 * Some tens of instructions of the Vector, Scalar, GpSimd and DMA engines work on one memory of tiles, on registers and
 * on generators; what one leaves, the next ones take. All of memory and all of the engines' state must agree bit for
 * bit in the end, on every instruction set and with several threads.
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
#include "twin/engine_cases.h"
#include "twin/twin_program.h"

enum { MOST_STEPS = 60 };

/* ---- drawing a step that is legal after those before it ---- */

typedef struct program {
    uint64_t *rng;
    uint64_t seed;
    int partitions, elements, steps;
    twin_program_step step[MOST_STEPS];
    twin_machine twin;
    tiles s;
    trn_tensor tile[TWIN_PLACES];
    trn_vector_state vector;
    trn_gpsimd_state gpsimd;
    trn_scalar_state scalar;
} program;

static int pick(program *q, int n) { return cases_below(q->rng, n); }
static bool chance(program *q, int n) { return cases_one_in(q->rng, n); }
static int wide(program *q) { return pick(q, TWIN_WIDE); }
static int a_column(program *q) { return TWIN_COLUMN + pick(q, TWIN_COLUMNS); }

static uint32_t a_number(program *q)
{
    if (chance(q, 8)) return cases_float(q->rng);
    return twin_bits((float)(pick(q, 33) - 16) / 4.0f);
}

static twin_op an_op(program *q)
{
    return chance(q, 2) ? (twin_op)(TWIN_ADD + pick(q, 5)) : (twin_op)(TWIN_ADD + pick(q, 16));
}

/* Two different wide tiles of one format. */
static void two_alike(program *q, twin_program_step *s)
{
    static const int pair[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 }, { 3, 4 }, { 4, 3 } };
    const int *p = pair[pick(q, 5)];
    s->dst = p[0];
    s->a = p[1];
}

static void draw_command(program *q, twin_program_step *s, unsigned legal)
{
    do s->command = (twin_command)pick(q, TWIN_COMMANDS);
    while (!(legal >> s->command & 1u) ||
           (s->command == TWIN_REDUCE && s->what != TWIN_DO_ACTIVATION && !q->twin.vector.known));
    s->result = s->command != TWIN_IDLE && chance(q, 2) ? a_column(q) : -1;
}

static void draw_along(program *q, twin_program_step *s)
{
    static const twin_op reductions[] = { TWIN_ADD, TWIN_MULTIPLY, TWIN_MAXIMUM, TWIN_MINIMUM, TWIN_SUBTRACT };
    static const int narrow[] = { 0, 1, 2, 3, 4, 5, 6, 8 };
    const unsigned all = 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | 1u << TWIN_LOAD_REDUCE;
    if (s->what == TWIN_DO_REDUCE) {
        s->dst = a_column(q);
        s->op0 = reductions[pick(q, 5)];
        s->negate = chance(q, 3);
    }
    if (s->what == TWIN_DO_SCALAR_REDUCE || s->what == TWIN_DO_CUMULATIVE) {
        s->op1 = reductions[pick(q, s->what == TWIN_DO_CUMULATIVE ? 5 : 4)];
        draw_command(q, s, all);
        s->negate = s->what == TWIN_DO_SCALAR_REDUCE && s->result >= 0 && chance(q, 3);
        if (s->command != TWIN_LOAD_REDUCE) s->column1 = -1, s->number1 = 0;
    }
    if (s->what == TWIN_DO_CUMULATIVE) {
        s->result = -1;
        s->dst = narrow[pick(q, 8)];
        s->a = narrow[pick(q, 8)];
    }
    while (s->result >= 0 && (s->result == s->column0 || s->result == s->column1)) s->result = a_column(q);
}

static void draw_selection(program *q, twin_program_step *s)
{
    static const twin_op compare[] = { TWIN_EQUAL, TWIN_LESS, TWIN_LESS_EQUAL, TWIN_GREATER, TWIN_GREATER_EQUAL };
    static const int floats[] = { 0, 1, 2, 3, 4, 5, 6 };
    s->a = floats[pick(q, 7)];
    draw_command(
        q, s, 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | (s->what == TWIN_DO_SELECT_REDUCE ? 1u << TWIN_IDLE : 0u));
    s->op0 = compare[pick(q, 5)];
    s->op1 = compare[pick(q, 5)];
    s->start = pick(q, 9) - 4;
    s->negate = false;
    s->b = TWIN_PREDICATE;
    if (s->what == TWIN_DO_RANGE_SELECT) {
        s->column0 = a_column(q);
        s->b = a_column(q);
        s->start = pick(q, 9);
    }
    s->column1 = -1;
    while (s->result >= 0 && (s->result == s->column0 || s->result == s->b)) s->result = a_column(q);
}

static void draw_pattern(program *q, twin_program_step *s)
{
    const twin_pattern flat = {
        { 0, 0, 0, pick(q, 9) - 4 }, { 1, 1, 1, q->elements }, pick(q, 21) - 10, pick(q, 9) - 4
    };
    static const twin_op compare[] = { TWIN_EQUAL,      TWIN_NOT_EQUAL, TWIN_LESS,
                                       TWIN_LESS_EQUAL, TWIN_GREATER,   TWIN_GREATER_EQUAL };
    s->pattern = flat;
    s->op0 = compare[pick(q, 6)];
}

static void draw_rest(program *q, twin_program_step *s)
{
    const int last = q->partitions % 32 ? q->partitions % 32 : 32;
    switch (s->what) {
    case TWIN_DO_COPY_PREDICATED:
        two_alike(q, s);
        s->b = TWIN_PREDICATE;
        s->negate = chance(q, 2); /* a tile is copied */
        break;
    case TWIN_DO_BN_STATS: s->dst = TWIN_SIX; break;
    case TWIN_DO_BN_AGGR: s->dst = TWIN_TWO, s->a = TWIN_SIX; break;
    case TWIN_DO_MAX8: s->dst = TWIN_EIGHT; break;
    case TWIN_DO_FIND_INDEX8: s->dst = TWIN_EIGHT_PLACES, s->b = TWIN_EIGHT; break;
    case TWIN_DO_MATCH_REPLACE8: s->b = TWIN_EIGHT; break;
    case TWIN_DO_SHUFFLE:
        two_alike(q, s);
        for (int i = 0; i < 32; i++) s->mask[i] = chance(q, 6) ? 255 : pick(q, last);
        break;
    case TWIN_DO_RNG: s->dst = 7 + pick(q, 2), s->gpsimd = chance(q, 2); break;
    case TWIN_DO_DROPOUT:
        two_alike(q, s);
        s->number0 = twin_bits((float)pick(q, 9) / 8.0f);
        break;
    case TWIN_DO_ACTIVATION:
        s->function = (twin_function)pick(q, TWIN_FUNCTIONS);
        if (twin_value(s->number0) == 0.0f) s->number0 = TWIN_ONE; /* (a scale of 0 stands for 1) */
        if (s->column0 >= 0) s->number0 = 0;
        if (s->column1 >= 0) s->number1 = 0;
        draw_command(q, s, 1u << TWIN_REDUCE | 1u << TWIN_RESET_REDUCE | 1u << TWIN_IDLE);
        while (s->result >= 0 && (s->result == s->column0 || s->result == s->column1)) s->result = a_column(q);
        break;
    case TWIN_DO_IOTA:
    case TWIN_DO_AFFINE_SELECT: draw_pattern(q, s); break;
    case TWIN_DO_GATHER:
        two_alike(q, s);
        s->b = TWIN_INDEX;
        break;
    case TWIN_DO_PARTITION_REDUCE:
        s->dst = TWIN_ONE_ROW;
        s->over = (twin_over)pick(q, 3);
        break;
    case TWIN_DO_NONZERO:
        s->dst = TWIN_COUNTED;
        s->a = chance(q, 2) ? 0 : 7;
        s->start = pick(q, 50);
        break;
    case TWIN_DO_TENSOR_SCALAR: s->op1 = chance(q, 3) ? TWIN_BYPASS : s->op1; break;
    default: break;
    }
    if (s->what == TWIN_DO_TENSOR_SCALAR && s->op1 == TWIN_BYPASS) s->column1 = -1, s->number1 = 0, s->reverse1 = false;
}

static void draw_step(program *q, twin_program_step *s)
{
    memset(s, 0, sizeof *s);
    do s->what = (twin_instruction)pick(q, TWIN_DO_COUNT);
    while ((s->what == TWIN_DO_BN_STATS && q->elements > 512) ||
           ((s->what == TWIN_DO_RNG || s->what == TWIN_DO_DROPOUT) && pick(q, 4))); /* (the twin's LFSR is slow) */
    s->dst = wide(q);
    s->a = wide(q);
    s->b = wide(q);
    s->column0 = chance(q, 3) ? a_column(q) : -1;
    s->column1 = chance(q, 3) ? a_column(q) : -1;
    s->result = -1;
    s->number0 = a_number(q);
    s->number1 = a_number(q);
    s->op0 = an_op(q);
    s->op1 = an_op(q);
    s->reverse0 = chance(q, 3);
    s->reverse1 = chance(q, 3);
    s->how = tiles_rounding(q->rng).cast;
    const bool dma = s->what == TWIN_DO_DMA_COPY || s->what == TWIN_DO_DMA_COMPUTE;
    if (dma && s->how.mode == TWIN_STOCHASTIC) s->how.mode = TWIN_NEAREST_EVEN; /* not the engines' */
    if (s->what == TWIN_DO_REDUCE || s->what == TWIN_DO_SCALAR_REDUCE || s->what == TWIN_DO_CUMULATIVE)
        draw_along(q, s);
    else if (s->what == TWIN_DO_RANGE_SELECT || s->what == TWIN_DO_SELECT_REDUCE)
        draw_selection(q, s);
    else
        draw_rest(q, s);
}

/* ---- the same step in trnmath ---- */

#define COMMON(args)                                                                                                   \
    memset(&(args), 0, sizeof(args));                                                                                  \
    (args).isa = isa;                                                                                                  \
    (args).error = error;                                                                                              \
    (args).rounding = bridge_rounding(s->how.mode);                                                                    \
    (args).seed = s->how.seed;                                                                                         \
    (args).stream = s->how.stream

static trn_tensor optional(const program *q, int place)
{
    trn_tensor none;
    memset(&none, 0, sizeof none);
    return place >= 0 ? q->tile[place] : none;
}

static trn_reduce_cmd command_of(const twin_program_step *s)
{
    static const trn_reduce_cmd name[TWIN_COMMANDS] = { TRN_REDUCE_CMD_IDLE, TRN_REDUCE_CMD_RESET,
                                                        TRN_REDUCE_CMD_REDUCE, TRN_REDUCE_CMD_RESET_REDUCE,
                                                        TRN_REDUCE_CMD_LOAD_REDUCE };
    return name[s->command];
}

static trn_pattern pattern_of(const twin_program_step *s)
{
    const trn_pattern p = { 2, { { 7, 1 }, { s->pattern.step[3], s->pattern.num[3] } } };
    return p;
}

static trn_status run_elementwise(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    if (s->what == TWIN_DO_TENSOR_TENSOR) {
        trn_tensor_tensor_args x;
        COMMON(x);
        x.engine = TRN_ENGINE_VECTOR;
        x.dst = q->tile[s->dst], x.data1 = q->tile[s->a], x.data2 = q->tile[s->b], x.op = engine_op(s->op0);
        return trn_tensor_tensor(&x);
    }
    if (s->what == TWIN_DO_TENSOR_SCALAR) {
        trn_tensor_scalar_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.op0 = engine_op(s->op0), x.op1 = engine_op(s->op1);
        x.operand0 = twin_value(s->number0), x.operand0_tile = optional(q, s->column0), x.reverse0 = s->reverse0;
        x.operand1 = twin_value(s->number1), x.operand1_tile = optional(q, s->column1), x.reverse1 = s->reverse1;
        return trn_tensor_scalar(&x);
    }
    if (s->what == TWIN_DO_SCALAR_TENSOR_TENSOR) {
        trn_scalar_tensor_tensor_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.op0 = engine_op(s->op0), x.op1 = engine_op(s->op1);
        x.operand0 = twin_value(s->number0), x.operand0_tile = optional(q, s->column0), x.reverse0 = s->reverse0;
        x.operand1 = q->tile[s->b], x.reverse1 = s->reverse1;
        return trn_scalar_tensor_tensor(&x);
    }
    if (s->what == TWIN_DO_COPY) {
        trn_tensor_copy_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a];
        return trn_tensor_copy(&x);
    }
    if (s->what == TWIN_DO_COPY_PREDICATED) {
        trn_tensor_copy_predicated_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = optional(q, s->negate ? s->a : -1), x.value = twin_value(s->number0);
        x.predicate = q->tile[s->b], x.reverse_pred = s->reverse0;
        return trn_tensor_copy_predicated(&x);
    }
    if (s->what == TWIN_DO_MEMSET) {
        trn_memset_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.value = twin_value(s->number0);
        return trn_memset(&x);
    }
    trn_reciprocal_args x;
    COMMON(x);
    x.dst = q->tile[s->dst], x.data = q->tile[s->a];
    return trn_reciprocal(&x);
}

static trn_status run_along(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    if (s->what == TWIN_DO_REDUCE) {
        trn_tensor_reduce_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.op = engine_op(s->op0), x.negate = s->negate;
        return trn_tensor_reduce(&x);
    }
    if (s->what == TWIN_DO_SCALAR_REDUCE) {
        trn_tensor_scalar_reduce_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.op0 = engine_op(s->op0), x.operand0 = twin_value(s->number0);
        x.operand0_tile = optional(q, s->column0), x.reverse0 = s->reverse0, x.reduce_op = engine_op(s->op1);
        x.reduce_res = optional(q, s->result), x.reduce_cmd = command_of(s), x.reduce_init = twin_value(s->number1);
        x.reduce_init_tile = optional(q, s->column1), x.reduce_res_negate = s->negate, x.state = &q->vector;
        return trn_tensor_scalar_reduce(&x);
    }
    if (s->what == TWIN_DO_CUMULATIVE) {
        trn_tensor_scalar_cumulative_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a], x.op0 = engine_op(s->op0), x.op1 = engine_op(s->op1);
        x.imm0 = twin_value(s->number0), x.imm0_tile = optional(q, s->column0), x.reverse0 = s->reverse0;
        x.imm1 = twin_value(s->number1), x.imm1_tile = optional(q, s->column1), x.reduce_cmd = command_of(s),
        x.state = &q->vector;
        return trn_tensor_scalar_cumulative(&x);
    }
    trn_tensor_tensor_scan_args x;
    COMMON(x);
    x.dst = q->tile[s->dst], x.data0 = q->tile[s->a], x.data1 = q->tile[s->b], x.op0 = engine_op(s->op0),
    x.op1 = engine_op(s->op1);
    x.initial = twin_value(s->number0), x.initial_tile = optional(q, s->column0), x.reverse0 = s->reverse0,
    x.reverse1 = s->reverse1;
    return trn_tensor_tensor_scan(&x);
}

static trn_status run_selection(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    if (s->what == TWIN_DO_SELECT_REDUCE) {
        trn_select_reduce_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.on_true = q->tile[s->a], x.predicate = q->tile[s->b], x.reverse_pred = s->reverse0;
        x.on_false = twin_value(s->number0), x.on_false_tile = optional(q, s->column0), x.reduce_cmd = command_of(s);
        x.reduce_res = optional(q, s->result), x.state = &q->vector;
        return trn_select_reduce(&x);
    }
    trn_range_select_args x;
    COMMON(x);
    x.dst = q->tile[s->dst], x.on_true_tile = q->tile[s->a], x.comp_op0 = engine_op(s->op0),
    x.comp_op1 = engine_op(s->op1);
    x.bound0 = q->tile[s->column0], x.bound1 = q->tile[s->b], x.range_start = s->start, x.reduce_cmd = command_of(s);
    x.reduce_res = optional(q, s->result), x.state = &q->vector;
    return trn_range_select(&x);
}

static trn_status run_search(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    if (s->what == TWIN_DO_BN_STATS) {
        trn_bn_stats_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a];
        return trn_bn_stats(&x);
    }
    if (s->what == TWIN_DO_BN_AGGR) {
        trn_bn_aggr_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a];
        return trn_bn_aggr(&x);
    }
    if (s->what == TWIN_DO_MAX8) {
        trn_max8_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a];
        return trn_max8(&x);
    }
    if (s->what == TWIN_DO_FIND_INDEX8) {
        trn_nc_find_index8_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.vals = q->tile[s->b];
        return trn_nc_find_index8(&x);
    }
    if (s->what == TWIN_DO_MATCH_REPLACE8) {
        trn_nc_match_replace8_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.vals = q->tile[s->b], x.imm = twin_value(s->number0);
        x.dst_idx = q->tile[TWIN_EIGHT_PLACES];
        return trn_nc_match_replace8(&x);
    }
    trn_nc_stream_shuffle_args x;
    COMMON(x);
    x.dst = q->tile[s->dst], x.src = q->tile[s->a];
    memcpy(x.shuffle_mask, s->mask, sizeof x.shuffle_mask);
    return trn_nc_stream_shuffle(&x);
}

static trn_status run_other_engines(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    static const trn_alu over[] = { TRN_ALU_ADD, TRN_ALU_AVERAGE, TRN_ALU_MAXIMUM };
    if (s->what == TWIN_DO_RNG) {
        trn_rng_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.state = &q->vector, x.gpsimd = &q->gpsimd;
        x.engine = s->gpsimd ? TRN_ENGINE_GPSIMD : TRN_ENGINE_VECTOR;
        return trn_rng(&x);
    }
    if (s->what == TWIN_DO_DROPOUT) {
        trn_dropout_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.prob = twin_value(s->number0), x.state = &q->vector;
        return trn_dropout(&x);
    }
    if (s->what == TWIN_DO_ACTIVATION) {
        trn_activation_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a], x.op = trn_act_from_name(twin_function_name[s->function]),
        x.param = 0.25f;
        x.scale = twin_value(s->number0), x.scale_tile = optional(q, s->column0), x.bias = twin_value(s->number1);
        x.bias_tile = optional(q, s->column1), x.reduce_res = optional(q, s->result), x.reduce_cmd = command_of(s),
        x.state = &q->scalar;
        return trn_activation(&x);
    }
    if (s->what == TWIN_DO_IOTA) {
        trn_iota_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.pattern = pattern_of(s), x.offset = s->pattern.offset,
        x.channel_multiplier = s->pattern.channel;
        return trn_iota(&x);
    }
    if (s->what == TWIN_DO_AFFINE_SELECT) {
        trn_affine_select_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.pattern = pattern_of(s), x.offset = s->pattern.offset,
        x.channel_multiplier = s->pattern.channel;
        x.on_true_tile = q->tile[s->a], x.on_false_value = twin_value(s->number0), x.cmp_op = engine_op(s->op0);
        return trn_affine_select(&x);
    }
    if (s->what == TWIN_DO_GATHER) {
        trn_nc_n_gather_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.indices = q->tile[s->b];
        return trn_nc_n_gather(&x);
    }
    if (s->what == TWIN_DO_PARTITION_REDUCE) {
        trn_tensor_partition_reduce_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.data = q->tile[s->a], x.op = over[s->over];
        return trn_tensor_partition_reduce(&x);
    }
    if (s->what == TWIN_DO_NONZERO) {
        trn_nonzero_with_count_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a], x.index_offset = s->start, x.padding_val = -1;
        return trn_nonzero_with_count(&x);
    }
    if (s->what == TWIN_DO_DMA_COPY) {
        trn_dma_copy_args x;
        COMMON(x);
        x.dst = q->tile[s->dst], x.src = q->tile[s->a];
        return trn_dma_copy(&x);
    }
    const trn_tensor source[3] = { q->tile[s->a], q->tile[s->b], q->tile[s->dst] };
    trn_dma_compute_args x;
    COMMON(x);
    x.dst = q->tile[s->dst], x.srcs = source, x.count = 3;
    return trn_dma_compute(&x);
}

static trn_status run_step(program *q, const twin_program_step *s, trn_isa isa, trn_error *error)
{
    if (s->what <= TWIN_DO_RECIPROCAL) return run_elementwise(q, s, isa, error);
    if (s->what <= TWIN_DO_SCAN) return run_along(q, s, isa, error);
    if (s->what <= TWIN_DO_SELECT_REDUCE) return run_selection(q, s, isa, error);
    return s->what <= TWIN_DO_SHUFFLE ? run_search(q, s, isa, error) : run_other_engines(q, s, isa, error);
}

/* ---- a program ---- */

static void fill_indices(program *q)
{
    for (int p = 0; p < q->partitions; p++)
        for (int f = 0; f < q->elements; f++) {
            tiles_put(&q->s, &q->tile[TWIN_INDEX], p, f, (uint32_t)pick(q, q->elements));
            tiles_put(&q->s, &q->tile[TWIN_PREDICATE], p, f, (uint32_t)pick(q, 2));
        }
}

static void begin(program *q)
{
    static const int partitions[] = { 1, 2, 15, 16, 17, 31, 32, 33, 64, 127, 128 };
    q->partitions = partitions[pick(q, 11)];
    q->elements = chance(q, 12) ? 1030 : 8 + pick(q, 60);
    while (q->partitions * q->elements > 2500) q->partitions = (q->partitions + 1) / 2;
    if (q->elements > 512 && q->partitions > 2) q->partitions = 2;
    q->s = tiles_begin(q->rng);
    for (int i = 0; i < TWIN_PLACES; i++) {
        const int rows = i == TWIN_ONE_ROW ? 1 : q->partitions;
        if (chance(q, 2)) q->s.values = (bridge_values)pick(q, BRIDGE_VALUES);
        q->tile[i] = tiles_output(&q->s, twin_place_format(i), rows, twin_place_elements(i, q->elements));
    }
    fill_indices(q);
    trn_vector_state_init(&q->vector, cases_next(q->rng));
    trn_gpsimd_state_init(&q->gpsimd, cases_next(q->rng));
    for (int p = 0; p < 128; p++) q->scalar.registers[p] = (float)p;
}

static void copy_to_twin(program *q)
{
    twin_machine *m = &q->twin;
    m->partitions = q->partitions;
    m->elements = q->elements;
    for (int i = 0; i < TWIN_PLACES; i++) m->tile[i] = tiles_load(&q->s, &q->tile[i]);
    m->vector.known = false;
    for (int p = 0; p < 128; p++) m->scalar[p] = twin_bits(q->scalar.registers[p]);
    (void)trn_lfsr_vector_get_state(&q->vector.lfsr, m->lfsr[0]);
    memcpy(m->xorwow, q->gpsimd.lane, sizeof m->xorwow);
}

/* The state of all engines against the twin's. */
static bool states_agree(const program *q)
{
    const twin_machine *m = &q->twin;
    uint32_t lfsr[128][4];
    (void)trn_lfsr_vector_get_state(&q->vector.lfsr, lfsr[0]);
    bool same = memcmp(lfsr, m->lfsr, sizeof lfsr) == 0 && memcmp(m->xorwow, q->gpsimd.lane, sizeof m->xorwow) == 0;
    same = same && m->vector.known == q->vector.accumulator_known;
    for (int p = 0; p < q->partitions; p++) {
        same = same && m->scalar[p] == twin_bits(q->scalar.registers[p]);
        if (m->vector.known) same = same && m->vector.bits[p] == twin_bits(q->vector.accumulator[p]);
    }
    return same;
}

static void want_twin(program *q)
{
    for (int i = 0; i < TWIN_PLACES; i++) tiles_want(&q->s, &q->tile[i], &q->twin.tile[i]);
}

static void free_twin(program *q)
{
    for (int i = 0; i < TWIN_PLACES; i++) free(q->twin.tile[i].code);
}

/* From the start, comparing after every step: says which one is the first to differ. */
static void blame(program *q, trn_isa isa)
{
    trn_error error;
    size_t byte;
    free_twin(q);
    tiles_restore(&q->s);
    copy_to_twin(q);
    for (int i = 0; i < q->steps; i++) {
        twin_execute(&q->twin, &q->step[i]);
        want_twin(q);
        (void)run_step(q, &q->step[i], isa, &error);
        const int wrong = tiles_wrong(&q->s, &byte);
        if (wrong < 0 && states_agree(q)) continue;
        fail_msg("program %llu, isa %d: step %d of %d, %s: %s differs (dst is tile %d, a %d, b %d)",
                 (unsigned long long)q->seed, (int)isa, i, q->steps, twin_instruction_name[q->step[i].what],
                 wrong < 0 ? "a state" : "memory", q->step[i].dst, q->step[i].a, q->step[i].b);
    }
    fail_msg("program %llu, isa %d: differs, but not step by step", (unsigned long long)q->seed, (int)isa);
}

static void one_program(program *q, int steps)
{
    begin(q);
    copy_to_twin(q);
    q->steps = steps;
    for (int i = 0; i < steps; i++) {
        draw_step(q, &q->step[i]);
        twin_execute(&q->twin, &q->step[i]);
    }
    want_twin(q);
    const trn_vector_state vector = q->vector;
    const trn_gpsimd_state gpsimd = q->gpsimd;
    const trn_scalar_state scalar = q->scalar;
    for (size_t k = 0; k < sizeof all_isas / sizeof all_isas[0]; k++) {
        trn_error error;
        size_t byte;
        if (!trn_isa_supported(all_isas[k])) continue;
        with_threads(1 + pick(q, 3));
        for (int i = 0; i < steps; i++) {
            const trn_status status = run_step(q, &q->step[i], all_isas[k], &error);
            if (status != TRN_OK)
                fail_msg("program %llu: step %d, %s: %s", (unsigned long long)q->seed, i,
                         twin_instruction_name[q->step[i].what], error.text);
        }
        const bool same = tiles_wrong(&q->s, &byte) < 0 && states_agree(q);
        q->vector = vector, q->gpsimd = gpsimd, q->scalar = scalar;
        if (!same) blame(q, all_isas[k]);
        tiles_restore(&q->s);
    }
    free_twin(q);
    tiles_end(&q->s);
}

static void programs_agree(void **unused)
{
    static program q;
    (void)unused;
    const char *only = getenv("TRN_TEST_SEED");
    for (int i = 0; i < cases_rounds(150, 6000); i++) {
        uint64_t rng = only ? strtoull(only, NULL, 0) : (uint64_t)i + 1;
        memset(&q, 0, sizeof q);
        q.seed = rng;
        q.rng = &rng;
        one_program(&q, i % 4 == 0 ? MOST_STEPS : 20);
        if (only) break;
    }
    with_threads(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(programs_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
