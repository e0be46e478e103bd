/* fuzz_engines.c - hostile args into every instruction of the Vector, Scalar, GpSimd and DMA engines.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_engines [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * As fuzz_args.c: plausible args, mostly with up to four mutations (views, enums, integers, pointers, columns); no
 * crash, no hang, nothing written on failure (states included) and a sentence in the error, nothing written outside
 * outputs on success; what succeeds is asked again of the portable kernels now and then and must write the same bits.
 * Prints how often each status came.
 */
#define _DEFAULT_SOURCE 1

#include "fuzz/arena.h"
#include "trnmath/trn_dma.h"
#include "trnmath/trn_gpsimd_engine.h"
#include "trnmath/trn_scalar_engine.h"
#include "trnmath/trn_vector_engine.h"

enum { FIRST_INPUT = ARENA / 2, MOST_VIEWS = 24, MOST_INTEGERS = 16 };

/* ---- the args of one call, seen as fields that may be spoilt ---- */

typedef union any_args {
    trn_instruction head;
    trn_tensor_tensor_args tensor_tensor;
    trn_tensor_scalar_args tensor_scalar;
    trn_scalar_tensor_tensor_args scalar_tensor_tensor;
    trn_tensor_copy_args tensor_copy;
    trn_tensor_copy_predicated_args tensor_copy_predicated;
    trn_memset_args memset;
    trn_reciprocal_args reciprocal;
    trn_tensor_reduce_args tensor_reduce;
    trn_tensor_scalar_reduce_args tensor_scalar_reduce;
    trn_tensor_scalar_cumulative_args tensor_scalar_cumulative;
    trn_tensor_tensor_scan_args tensor_tensor_scan;
    trn_exponential_args exponential;
    trn_range_select_args range_select;
    trn_select_reduce_args select_reduce;
    trn_bn_stats_args bn_stats;
    trn_bn_aggr_args bn_aggr;
    trn_max8_args max8;
    trn_nc_find_index8_args nc_find_index8;
    trn_nc_match_replace8_args nc_match_replace8;
    trn_nc_stream_shuffle_args nc_stream_shuffle;
    trn_partition_broadcast_args partition_broadcast;
    trn_vector_transpose_args vector_transpose;
    trn_quantize_mx_args quantize_mx;
    trn_rng_args rng;
    trn_rand2_args rand2;
    trn_dropout_args dropout;
    trn_set_rng_seed_args set_rng_seed;
    trn_rand_set_state_args rand_set_state;
    trn_rand_get_state_args rand_get_state;
    trn_iota_args iota;
    trn_affine_select_args affine_select;
    trn_local_gather_args local_gather;
    trn_nc_n_gather_args nc_n_gather;
    trn_tensor_partition_reduce_args tensor_partition_reduce;
    trn_nonzero_with_count_args nonzero_with_count;
    trn_sequence_bounds_args sequence_bounds;
    trn_topk_args topk;
    trn_gpsimd_custom_args gpsimd_custom;
    trn_dma_copy_args dma_copy;
    trn_dma_transpose_args dma_transpose;
    trn_dma_compute_args dma_compute;
    trn_activation_args activation;
    trn_activate2_args activate2;
} any_args;

static any_args args;
static trn_tensor *view[MOST_VIEWS]; /* of args; outputs first */
static int views, outputs;
static int *integer[MOST_INTEGERS];
static int integers;

static trn_vector_state vector_state, vector_before;
static trn_gpsimd_state gpsimd_state, gpsimd_before;
static trn_scalar_state scalar_state, scalar_before;
static float registers[ARENA], registers_before[ARENA], lanes[ARENA]; /* one for each partition that fits */
static trn_numerics numerics;
static trn_tensor sources[16]; /* of dma_compute */
static float scales[16];

static void seen(trn_tensor *t) { view[views++] = t; }
static void number(void *p) { integer[integers++] = (int *)p; }

static trn_tensor place(trn_format format, int rank, const int64_t *shape, bool input)
{
    trn_tensor t = plausible_view(format, rank, shape, 0, input);
    const int64_t bytes = claimed(&t), room = ARENA / 2;
    if (bytes >= 0 && bytes <= room) t.data = arena + (input ? FIRST_INPUT : 0) + below((int)(room - bytes) + 1);
    plausible_cfp8(&t);
    return t;
}

/* [p, f], sometimes cut into more axes. */
static trn_tensor tile(trn_format format, int64_t p, int64_t f, bool input)
{
    int64_t shape[4] = { p, f, 1, 1 };
    int rank = 2;
    if (f == 1 && one_in(3)) rank = 1;
    for (int64_t cut = 2; rank == 2 && cut < 4; cut++)
        if (f % cut == 0 && one_in(4)) {
            shape[1] = cut;
            shape[2] = f / cut;
            rank = 3;
        }
    return place(format, rank, shape, input);
}

static void output(trn_tensor *t, trn_format format, int64_t p, int64_t f)
{
    *t = tile(format, p, f, false);
    seen(t);
    outputs++;
}

static void input(trn_tensor *t, trn_format format, int64_t p, int64_t f)
{
    *t = tile(format, p, f, true);
    seen(t);
}

static void column(trn_tensor *t, int64_t p)
{
    if (one_in(2)) *t = tile(TRN_F32, p, 1, true);
    seen(t);
}

static trn_format any_format(void)
{
    static const trn_format usual[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3 };
    return one_in(2) ? usual[below(4)] : (trn_format)(1 + below(TRN_CFP8));
}

static trn_format any_integer(void) { return (trn_format)(TRN_I8 + below(6)); }
static trn_format like(trn_format integer_format)
{
    return (trn_format)(TRN_I8 + ((int)integer_format - TRN_I8) / 2 * 2 + below(2));
}
static trn_alu any_op(void) { return (trn_alu)below(TRN_ALU_COUNT); }
static trn_alu arithmetic(void) { return (trn_alu)(TRN_ALU_ADD + below(TRN_ALU_ABS_MIN)); }
static trn_alu bitvec(void) { return (trn_alu)(TRN_ALU_INVERT + below(6)); }
static trn_alu compare(void) { return (trn_alu)(TRN_ALU_EQUAL + below(6)); }
static trn_reduce_cmd command(void) { return (trn_reduce_cmd)below(TRN_REDUCE_CMD_COUNT); }
static float any_float(void) { return one_in(3) ? cases_float_of(cases_u32(&rng)) : (float)(below(9) - 4); }

static int64_t P, F;

static void sizes(void)
{
    P = one_in(12) ? below(130) : below(8);
    F = one_in(12) ? below(300) : below(24);
    while (P * F > 500) P /= 2;
}

/* Small numbers where indices are read, now and then one that is none. */
static void tame(const trn_tensor *t, int most)
{
    const size_t size = trn_format_bytes(t->format);
    if (claimed(t) <= 0 || trn_tensor_elements(*t) > MOST_WORK) return;
    for (int64_t e = 0; e < trn_tensor_elements(*t); e++) {
        uint32_t code = most > 0 ? (uint32_t)below(most) : 0;
        if (one_in(200)) code = (uint32_t)most; /* one too large */
        if (!one_in(300)) memcpy(arena + element_offset(t, e), &code, size);
    }
}

/* ---- plausible args ---- */

static void make_tensor_tensor(void)
{
    trn_tensor_tensor_args *a = &args.tensor_tensor;
    const bool bits = one_in(3);
    const trn_format format = bits ? any_integer() : any_format();
    output(&a->dst, format, P, F);
    input(&a->data1, bits ? like(format) : any_format(), P, F);
    input(&a->data2, bits ? like(format) : any_format(), P, F);
    if (one_in(5)) a->dst.format = a->data1.format = a->data2.format = one_in(2) ? TRN_I32 : TRN_U32;
    a->op = bits ? bitvec() : one_in(8) ? TRN_ALU_POWER : arithmetic();
    number(&a->op);
}

static void make_tensor_scalar(void)
{
    trn_tensor_scalar_args *a = &args.tensor_scalar;
    const bool bits = one_in(3);
    const trn_format format = bits ? any_integer() : any_format();
    output(&a->dst, format, P, F);
    input(&a->data, bits ? like(format) : any_format(), P, F);
    column(&a->operand0_tile, P);
    column(&a->operand1_tile, P);
    if (bits) a->operand0_tile.rank = a->operand1_tile.rank = 0;
    a->op0 = bits ? bitvec() : arithmetic();
    a->op1 = one_in(3) ? TRN_ALU_BYPASS : bits ? bitvec() : arithmetic();
    a->operand0 = any_float();
    a->operand1 = any_float();
    a->reverse0 = one_in(2);
    a->reverse1 = one_in(2);
    a->bits0 = one_in(2) ? cases_u32(&rng) : (uint32_t)below(40);
    number(&a->op0);
    number(&a->op1);
}

static void make_scalar_tensor_tensor(void)
{
    trn_scalar_tensor_tensor_args *a = &args.scalar_tensor_tensor;
    output(&a->dst, any_format(), P, F);
    input(&a->data, any_format(), P, F);
    input(&a->operand1, any_format(), P, F);
    column(&a->operand0_tile, P);
    a->op0 = arithmetic();
    a->op1 = arithmetic();
    a->operand0 = any_float();
    number(&a->op0);
    number(&a->op1);
}

static void make_tensor_copy(void)
{
    output(&args.tensor_copy.dst, any_format(), P, F);
    input(&args.tensor_copy.src, one_in(2) ? args.tensor_copy.dst.format : any_format(), P, F);
}

static void make_tensor_copy_predicated(void)
{
    static const trn_format predicate[] = { TRN_U8, TRN_U16, TRN_U32 };
    trn_tensor_copy_predicated_args *a = &args.tensor_copy_predicated;
    const trn_format format = any_format();
    output(&a->dst, format, P, F);
    if (one_in(2))
        input(&a->src, format, P, F);
    else
        seen(&a->src);
    input(&a->predicate, predicate[below(3)], P, F);
    a->src.cfp8 = a->dst.cfp8;
    a->value = any_float();
    a->reverse_pred = one_in(2);
}

static void make_memset(void)
{
    output(&args.memset.dst, any_format(), P, F);
    args.memset.value = any_float();
}

static void make_reciprocal(void)
{
    output(&args.reciprocal.dst, any_format(), P, F);
    input(&args.reciprocal.data, any_format(), P, F);
}

static void make_tensor_reduce(void)
{
    trn_tensor_reduce_args *a = &args.tensor_reduce;
    const bool bits = one_in(3);
    const trn_format format = bits ? any_integer() : any_format();
    const int64_t shape[3] = { P, 1 + below(4), F };
    const int axes = 1 + below(2);
    a->op = one_in(6) ? any_op() : bits ? (trn_alu)(TRN_ALU_BITWISE_AND + below(3)) : (trn_alu)(TRN_ALU_ADD + below(5));
    a->axes = axes;
    a->keepdims = one_in(2);
    a->negate = one_in(3);
    output(&a->dst, bits ? like(format) : any_format(), P, axes == 1 ? shape[1] : 1);
    a->data = place(format, 3, shape, true);
    if (one_in(2)) { /* dst in the shape that numpy would give */
        int64_t left[3] = { P, shape[1], 1 };
        if (axes == 2) left[1] = 1;
        a->dst = place(a->dst.format, a->keepdims ? 3 : 2, left, false);
    }
    seen(&a->data);
    number(&a->op);
    number(&a->axes);
}

static void make_tensor_scalar_reduce(void)
{
    trn_tensor_scalar_reduce_args *a = &args.tensor_scalar_reduce;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(3)) a->reduce_res.rank = 0;
    input(&a->data, any_format(), P, F);
    column(&a->operand0_tile, P);
    a->op0 = arithmetic();
    a->operand0 = any_float();
    a->reduce_op = (trn_alu)(TRN_ALU_ADD + below(5));
    a->reduce_cmd = command();
    if (a->reduce_cmd == TRN_REDUCE_CMD_LOAD_REDUCE) column(&a->reduce_init_tile, P);
    a->state = &vector_state;
    number(&a->op0);
    number(&a->reduce_op);
    number(&a->reduce_cmd);
    if (one_in(8)) a->state = NULL;
}

static void make_tensor_scalar_cumulative(void)
{
    trn_tensor_scalar_cumulative_args *a = &args.tensor_scalar_cumulative;
    output(&a->dst, any_format(), P, F);
    input(&a->src, any_format(), P, F);
    column(&a->imm0_tile, P);
    a->op0 = arithmetic();
    a->op1 = (trn_alu)(TRN_ALU_ADD + below(5));
    a->reduce_cmd = command();
    if (a->reduce_cmd == TRN_REDUCE_CMD_LOAD_REDUCE) column(&a->imm1_tile, P);
    a->state = one_in(8) ? NULL : &vector_state;
    number(&a->op0);
    number(&a->op1);
    number(&a->reduce_cmd);
}

static void make_tensor_tensor_scan(void)
{
    trn_tensor_tensor_scan_args *a = &args.tensor_tensor_scan;
    output(&a->dst, any_format(), P, F);
    input(&a->data0, any_format(), P, F);
    input(&a->data1, any_format(), P, F);
    column(&a->initial_tile, P);
    a->op0 = arithmetic();
    a->op1 = arithmetic();
    number(&a->op0);
    number(&a->op1);
}

static void make_exponential(void)
{
    trn_exponential_args *a = &args.exponential;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(3)) a->reduce_res.rank = 0;
    input(&a->src, any_format(), P, F);
    column(&a->max_value_tile, P);
    a->reduce_cmd = command();
    if (a->reduce_cmd == TRN_REDUCE_CMD_LOAD_REDUCE) column(&a->reduce_init_tile, P);
    a->state = one_in(8) ? NULL : &vector_state;
    number(&a->reduce_cmd);
}

static void make_range_select(void)
{
    trn_range_select_args *a = &args.range_select;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(3)) a->reduce_res.rank = 0;
    input(&a->on_true_tile, any_format(), P, F);
    input(&a->bound0, TRN_F32, P, 1);
    input(&a->bound1, TRN_F32, P, 1);
    a->comp_op0 = compare();
    a->comp_op1 = compare();
    a->range_start = one_in(8) ? (int64_t)absurd_size() : below(100);
    a->reduce_cmd = command();
    a->state = one_in(8) ? NULL : &vector_state;
    number(&a->comp_op0);
    number(&a->comp_op1);
    number(&a->reduce_cmd);
    number(&a->reduce_op);
}

static void make_select_reduce(void)
{
    static const trn_format predicate[] = { TRN_U8, TRN_U16, TRN_I8, TRN_I16 };
    trn_select_reduce_args *a = &args.select_reduce;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(3)) a->reduce_res.rank = 0;
    input(&a->on_true, any_format(), P, F);
    input(&a->predicate, predicate[below(4)], P, F);
    column(&a->on_false_tile, P);
    a->reduce_cmd = command();
    a->state = one_in(8) ? NULL : &vector_state;
    number(&a->reduce_cmd);
    number(&a->reduce_op);
}

static void make_bn_stats(void)
{
    output(&args.bn_stats.dst, any_format(), P, 6);
    input(&args.bn_stats.data, any_format(), P, F);
}

static void make_bn_aggr(void)
{
    output(&args.bn_aggr.dst, any_format(), P, 2);
    input(&args.bn_aggr.data, any_format(), P, 3 * (1 + below(6)));
}

static void make_max8(void)
{
    output(&args.max8.dst, any_format(), P, 8);
    input(&args.max8.src, any_format(), P, 8 + F);
}

static void make_nc_find_index8(void)
{
    trn_nc_find_index8_args *a = &args.nc_find_index8;
    output(&a->dst, one_in(2) ? TRN_U16 : TRN_U32, P, 8);
    input(&a->data, any_format(), P, 8 + F);
    input(&a->vals, one_in(2) ? a->data.format : any_format(), P, 8);
}

static void make_nc_match_replace8(void)
{
    trn_nc_match_replace8_args *a = &args.nc_match_replace8;
    const trn_format format = any_format();
    output(&a->dst, one_in(2) ? format : any_format(), P, 8 + F);
    output(&a->dst_idx, one_in(2) ? TRN_U16 : TRN_U32, P, 8);
    if (one_in(3)) a->dst_idx.rank = 0;
    input(&a->data, format, P, 8 + F);
    input(&a->vals, one_in(2) ? format : any_format(), P, 8);
    a->imm = any_float();
}

static void make_nc_stream_shuffle(void)
{
    trn_nc_stream_shuffle_args *a = &args.nc_stream_shuffle;
    const trn_format format = any_format();
    const int64_t p = one_in(3) ? P : 32 * (1 + below(2)), f = p > 32 ? 1 + below(4) : F % 8;
    output(&a->dst, format, p, f);
    input(&a->src, format, p, f);
    a->src.cfp8 = a->dst.cfp8;
    for (int i = 0; i < 32; i++) a->shuffle_mask[i] = one_in(8) ? 255 : below(32);
    if (one_in(3))
        for (int i = 0; i < 32; i++) a->shuffle_mask[i] = one_in(2) ? 255 : 0;
    number(&a->shuffle_mask[below(32)]);
}

static void make_partition_broadcast(void)
{
    trn_partition_broadcast_args *a = &args.partition_broadcast;
    const trn_format format = any_format();
    output(&a->dst, format, P, F);
    input(&a->src, format, one_in(8) ? P : 1, F);
    a->src.cfp8 = a->dst.cfp8;
}

static void make_vector_transpose(void)
{
    const trn_format format = any_format();
    const int64_t p = below(33), f = below(33);
    output(&args.vector_transpose.dst, format, f, p);
    input(&args.vector_transpose.data, format, p, f);
    args.vector_transpose.data.cfp8 = args.vector_transpose.dst.cfp8;
}

static void make_quantize_mx(void)
{
    trn_quantize_mx_args *a = &args.quantize_mx;
    const int64_t p = 32 * below(3), f = 4 * below(6), dst[3] = { p, f / 4, 4 };
    const int64_t scale[2] = { p && one_in(2) ? p - 4 * below(4) : p / 8, f / 4 }; /* a scale tile, or dense */
    a->dst = place(one_in(2) ? TRN_F8_E4M3FN : TRN_F8_E5M2, 3, dst, false);
    a->dst_scale = place(one_in(2) ? TRN_F8_E8M0 : TRN_U8, 2, scale, false);
    seen(&a->dst);
    seen(&a->dst_scale);
    outputs = 2;
    input(&a->src, one_in(2) ? TRN_BF16 : TRN_F16, p, f);
}

static void make_rng(void)
{
    output(&args.rng.dst, any_integer(), P, F);
    args.rng.state = one_in(8) ? NULL : &vector_state;
    args.rng.gpsimd = one_in(8) ? NULL : &gpsimd_state;
}

static void make_rand2(void)
{
    output(&args.rand2.dst, any_format(), P, F);
    column(&args.rand2.min_tile, P);
    column(&args.rand2.max_tile, P);
    args.rand2.min = any_float();
    args.rand2.max = args.rand2.min + (float)below(9);
    args.rand2.state = one_in(8) ? NULL : &vector_state;
}

static void make_dropout(void)
{
    const trn_format format = any_format();
    output(&args.dropout.dst, format, P, F);
    input(&args.dropout.data, format, P, F);
    args.dropout.data.cfp8 = args.dropout.dst.cfp8;
    column(&args.dropout.prob_tile, P);
    args.dropout.prob = one_in(4) ? any_float() : (float)below(5) / 4;
    args.dropout.state = one_in(8) ? NULL : &vector_state;
}

static void make_set_rng_seed(void)
{
    static const trn_format word[] = { TRN_I32, TRN_U32, TRN_F32 };
    input(&args.set_rng_seed.src_seeds, word[below(3)], 1, 1);
    args.set_rng_seed.state = one_in(8) ? NULL : &vector_state;
}

static void make_rand_set_state(void)
{
    const bool vector = one_in(3);
    const int64_t p = vector && one_in(2) ? 64 : P;
    args.rand_set_state.engine = vector ? TRN_ENGINE_VECTOR : one_in(2) ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_GPSIMD;
    if (vector) args.rand_set_state.generation = TRN_TRAINIUM3;
    input(&args.rand_set_state.src_seeds, TRN_U32, p, vector ? 24 : 6);
    args.rand_set_state.state = one_in(8) ? NULL : &vector_state;
    args.rand_set_state.gpsimd = one_in(8) ? NULL : &gpsimd_state;
}

static void make_rand_get_state(void)
{
    const bool vector = one_in(3);
    args.rand_get_state.engine = vector ? TRN_ENGINE_VECTOR : one_in(2) ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_GPSIMD;
    if (vector) args.rand_get_state.generation = TRN_TRAINIUM3;
    output(&args.rand_get_state.dst, TRN_U32, vector && one_in(2) ? 64 : P, vector ? 24 : 6);
    args.rand_get_state.state = one_in(8) ? NULL : &vector_state;
    args.rand_get_state.gpsimd = one_in(8) ? NULL : &gpsimd_state;
}

static void pattern(trn_pattern *p)
{
    p->rank = below(5);
    F = 1;
    for (int i = 0; i < p->rank; i++) {
        p->axis[i].step = one_in(6) ? absurd_int() : below(200) - 100;
        p->axis[i].num = 1 + below(4);
        F *= p->axis[i].num;
    }
    number(&p->rank);
    number(&p->axis[below(4)].num);
    number(&p->axis[below(4)].step);
    while (P * F > 800) P /= 2;
}

static void make_iota(void)
{
    pattern(&args.iota.pattern);
    output(&args.iota.dst, any_format(), P, F);
    args.iota.offset = absurd_int();
    args.iota.channel_multiplier = absurd_int();
}

static void make_affine_select(void)
{
    trn_affine_select_args *a = &args.affine_select;
    pattern(&a->pattern);
    output(&a->dst, any_format(), P, F);
    input(&a->on_true_tile, any_format(), P, F);
    a->offset = absurd_int();
    a->channel_multiplier = absurd_int();
    a->on_false_value = any_float();
    a->cmp_op = compare();
    number(&a->cmp_op);
}

static void make_local_gather(void)
{
    trn_local_gather_args *a = &args.local_gather;
    const int run = 1 << below(4);
    const int64_t p = 16 * below(3), f = run + below(6), n = 1 + below(3);
    const trn_format format = any_format();
    a->num_elem_per_idx = run == 1 && one_in(2) ? 0 : run;
    a->num_valid_indices = one_in(2) ? 0 : 1 + below((int)(16 * n));
    const int64_t valid = a->num_valid_indices ? a->num_valid_indices : 16 * n;
    output(&a->dst, format, p, valid * run);
    input(&a->src_buffer, format, p, f);
    input(&a->index, TRN_U16, p, n);
    a->src_buffer.cfp8 = a->dst.cfp8;
    number(&a->num_elem_per_idx);
    tame(&a->index, (int)(f - run + 1));
}

static void make_nc_n_gather(void)
{
    trn_nc_n_gather_args *a = &args.nc_n_gather;
    const trn_format format = any_format();
    const int64_t width = 1 + below(9);
    output(&a->dst, format, P, F);
    input(&a->data, format, P, width);
    input(&a->indices, TRN_U32, P, F);
    a->data.cfp8 = a->dst.cfp8;
    tame(&a->indices, (int)width);
}

static void make_tensor_partition_reduce(void)
{
    static const trn_alu op[] = { TRN_ALU_ADD, TRN_ALU_AVERAGE, TRN_ALU_MAXIMUM, TRN_ALU_BITWISE_OR,
                                  TRN_ALU_BITWISE_AND };
    trn_tensor_partition_reduce_args *a = &args.tensor_partition_reduce;
    a->op = op[below(5)];
    const bool bits = a->op == TRN_ALU_BITWISE_OR || a->op == TRN_ALU_BITWISE_AND;
    const trn_format format = bits ? any_integer() : any_format();
    output(&a->dst, bits ? like(format) : any_format(), 1, F);
    input(&a->data, format, P, F);
    number(&a->op);
}

static void make_nonzero_with_count(void)
{
    output(&args.nonzero_with_count.dst, TRN_I32, P, F + 1);
    input(&args.nonzero_with_count.src, one_in(2) ? TRN_F32 : TRN_I32, P, F);
    args.nonzero_with_count.index_offset = absurd_int();
}

static void make_sequence_bounds(void)
{
    const int64_t shape[3] = { 1, 2, F };
    args.sequence_bounds.dst = place(one_in(2) ? TRN_F32 : TRN_I32, 3, shape, false);
    seen(&args.sequence_bounds.dst);
    outputs = 1;
    input(&args.sequence_bounds.segment_ids, one_in(2) ? args.sequence_bounds.dst.format : TRN_I32, 1, F);
    tame(&args.sequence_bounds.segment_ids, 3);
}

static void make_topk(void)
{
    trn_topk_args *a = &args.topk;
    const int64_t p = 16 * below(3), x = 1 + below(6);
    a->n = one_in(8) ? absurd_int() : 8 + below((int)(16 * x) - 7);
    const int64_t k = 1 + below(a->n > 0 && a->n < 40 ? (int)a->n : 8);
    output(&a->val_dst, TRN_BF16, p, k);
    output(&a->idx_dst, TRN_U32, p, k);
    input(&a->src, TRN_BF16, p, x);
}

static trn_status copy_operator(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)user;
    for (int i = 0; i < part->dsts && part->srcs > 0; i++) { /* one byte of each element's row: writes where it may */
        if (trn_tensor_elements(part->dst[i]) == 0) continue;
        memset(part->dst[i].data, 0x11, trn_format_bytes(part->dst[i].format));
    }
    (void)error;
    return TRN_OK;
}

static void make_gpsimd_custom(void)
{
    trn_gpsimd_custom_args *a = &args.gpsimd_custom;
    a->dsts = one_in(8) ? below(6) - 1 : 1 + below(2);
    a->srcs = one_in(8) ? below(11) - 1 : below(3);
    for (int i = 0; i < a->dsts && i < 4; i++) output(&a->dst[i], any_format(), P, F);
    for (int i = 0; i < a->srcs && i < 8; i++) input(&a->src[i], any_format(), P, F);
    a->op = one_in(10) ? NULL : copy_operator;
    a->cycles = any_float();
    number(&a->dsts);
    number(&a->srcs);
}

/* A view that begins where a number says: cut from a tensor that has a little more of everything. */
static void offset(trn_dma_offset *o, trn_tensor *part, bool written)
{
    const int dim = below(2);
    o->of = tile(part->format, P + 3, F + 2, !written);
    o->of.cfp8 = part->cfp8;
    seen(&o->of);
    outputs += written;
    *part = o->of;
    if (o->of.rank == 2) {
        part->shape[0] = P;
        part->shape[1] = F;
    } else if (o->of.rank > 0) {
        part->shape[0] = P; /* (of more axes or fewer than dst: refused where the elements are not as many) */
    }
    o->dim = one_in(20) ? absurd_int() : dim;
    input(&o->value, one_in(2) ? TRN_U32 : TRN_I32, 1, 1);
    tame(&o->value, one_in(3) ? 8 : 3);
    number(&o->dim);
}

static void make_dma_copy(void)
{
    trn_dma_copy_args *a = &args.dma_copy;
    const trn_format format = any_format();
    output(&a->dst, format, P, F);
    if (one_in(4)) offset(&a->dst_offset, &a->dst, true);
    input(&a->src, one_in(2) ? format : any_format(), P, F);
    if (one_in(4)) offset(&a->src_offset, &a->src, false);
    a->oob_mode = (trn_oob_mode)below(2);
    a->dge_mode = one_in(3) ? (trn_dge_mode)below(4) : TRN_DGE_UNKNOWN;
    a->accumulate = one_in(4);
    a->compression = one_in(8) ? any_float() : 0;
    if (a->accumulate && one_in(2)) a->dst.format = a->src.format = one_in(2) ? TRN_F32 : TRN_BF16;
    if (one_in(3)) {
        trn_tensor *index = one_in(2) ? &a->src_index : &a->dst_index;
        input(index, one_in(2) ? TRN_U32 : TRN_I32, P, 1);
        tame(index, (int)P);
    }
    number(&a->oob_mode);
    number(&a->dge_mode);
    number(&a->priority);
}

static void make_dma_transpose(void)
{
    static const int order[3][4] = { { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };
    trn_dma_transpose_args *a = &args.dma_transpose;
    const int rank = 2 + below(3);
    const trn_format format = one_in(2) ? TRN_BF16 : any_format();
    int64_t shape[4], turned[4];
    for (int i = 0; i < rank; i++) shape[i] = rank == 2 ? below(20) : below(5);
    for (int i = 0; i < rank; i++) turned[i] = shape[order[rank - 2][i]];
    if (one_in(2)) memcpy(a->axes, order[rank - 2], sizeof a->axes);
    a->dst = place(format, rank, turned, false);
    a->src = place(format, rank, shape, true);
    a->src.cfp8 = a->dst.cfp8;
    seen(&a->dst);
    outputs = 1;
    seen(&a->src);
    if (one_in(5) && rank == 2) {
        input(&a->index, TRN_U32, 16 * (1 + below(2)), 1);
        tame(&a->index, (int)shape[0]);
    }
    a->priority = one_in(8) ? below(5) : 0;
    number(&a->axes[below(4)]);
    number(&a->oob_mode);
    number(&a->dge_mode);
}

static void make_dma_compute(void)
{
    trn_dma_compute_args *a = &args.dma_compute;
    a->count = one_in(10) ? below(18) : 1 + below(4);
    output(&a->dst, any_format(), P, F);
    for (int i = 0; i < 16; i++) {
        sources[i] = tile(any_format(), P, F, true);
        if (i < 4) seen(&sources[i]);
        scales[i] = one_in(40) ? 2.0f : 1.0f;
    }
    a->srcs = one_in(20) ? NULL : sources;
    a->scales = one_in(2) ? scales : NULL;
    a->reduce_op = one_in(2) ? TRN_ALU_ADD : TRN_ALU_BYPASS;
    if (one_in(5)) {
        input(&a->index, TRN_U32, P, 1);
        tame(&a->index, (int)P);
        a->count = 2;
        a->scatter = one_in(2);
        a->unique_indices = one_in(2);
        sources[a->scatter ? 0 : 1] = a->dst;
    }
    number(&a->count);
    number(&a->reduce_op);
    number(&a->oob_mode);
}

static void make_activation(void)
{
    trn_activation_args *a = &args.activation;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(2)) a->reduce_res.rank = 0;
    input(&a->src, any_format(), P, F);
    column(&a->scale_tile, P);
    column(&a->bias_tile, P);
    column(&a->param_tile, P);
    a->op = (trn_act)below(TRN_ACT_COUNT);
    a->scale = any_float();
    a->bias = any_float();
    a->reduce = one_in(4) ? registers : NULL;
    a->scale_per_partition = one_in(8) ? lanes : NULL;
    a->bias_per_partition = one_in(8) ? lanes : NULL;
    a->reduce_cmd = command();
    a->state = one_in(3) ? NULL : &scalar_state;
    number(&a->op);
    number(&a->math);
    number(&a->reduce_cmd);
}

static void make_activate2(void)
{
    static const trn_alu pair[6][2] = { { TRN_ALU_MULTIPLY, TRN_ALU_ADD },    { TRN_ALU_MULTIPLY, TRN_ALU_SUBTRACT },
                                        { TRN_ALU_MULTIPLY, TRN_ALU_BYPASS }, { TRN_ALU_ADD, TRN_ALU_BYPASS },
                                        { TRN_ALU_SUBTRACT, TRN_ALU_BYPASS }, { TRN_ALU_BYPASS, TRN_ALU_BYPASS } };
    static const trn_alu reduction[] = { TRN_ALU_BYPASS,  TRN_ALU_ADD,     TRN_ALU_MAXIMUM,
                                         TRN_ALU_MINIMUM, TRN_ALU_ABS_MAX, TRN_ALU_ABS_MIN };
    trn_activate2_args *a = &args.activate2;
    const int which = below(6);
    args.head.generation = one_in(2) ? TRN_TRAINIUM3 : TRN_GENERATION_DEFAULT;
    output(&a->dst, any_format(), P, F);
    output(&a->reduce_res, any_format(), P, 1);
    if (one_in(2)) a->reduce_res.rank = 0;
    input(&a->src, any_format(), P, F);
    if (which < 5) column(&a->imm0_tile, P);
    if (which < 2) column(&a->imm1_tile, P);
    column(&a->relu_param_tile, P);
    a->op = (trn_act)below(TRN_ACT_COUNT);
    a->op0 = pair[which][0];
    a->op1 = pair[which][1];
    a->reverse0 = which < 5 && one_in(2);
    a->reverse1 = which < 2 && one_in(2);
    a->imm0 = which < 5 ? any_float() : 0;
    a->imm1 = which < 2 ? any_float() : 0;
    a->reduce_op = reduction[below(6)];
    a->reduce = one_in(4) ? registers : NULL;
    a->reduce_cmd = command();
    a->state = one_in(3) ? NULL : &scalar_state;
    number(&a->op);
    number(&a->op0);
    number(&a->op1);
    number(&a->reduce_op);
    number(&a->reduce_cmd);
}

/* ---- the table ---- */

typedef struct kind {
    const char *name;
    void (*make)(void);
    trn_status (*run)(void);
} kind;

#define RUN(name)                                                                                                      \
    static trn_status run_##name(void) { return trn_##name(&args.name); }
/* The formatter takes the rows for calls. */
/* clang-format off */
#define EVERY(X)                                                                                                       \
    X(tensor_tensor) X(tensor_scalar) X(scalar_tensor_tensor) X(tensor_copy) X(tensor_copy_predicated) X(memset)       \
    X(reciprocal) X(tensor_reduce) X(tensor_scalar_reduce) X(tensor_scalar_cumulative) X(tensor_tensor_scan)           \
    X(exponential) X(range_select) X(select_reduce) X(bn_stats) X(bn_aggr) X(max8) X(nc_find_index8)                   \
    X(nc_match_replace8) X(nc_stream_shuffle) X(partition_broadcast) X(vector_transpose) X(quantize_mx) X(rng)         \
    X(rand2) X(dropout) X(set_rng_seed) X(rand_set_state) X(rand_get_state) X(iota) X(affine_select)                   \
    X(local_gather) X(nc_n_gather)                                                                                     \
    X(tensor_partition_reduce) X(nonzero_with_count) X(sequence_bounds) X(topk) X(gpsimd_custom) X(dma_copy)           \
    X(dma_transpose) X(dma_compute) X(activation) X(activate2)
/* clang-format on */
EVERY(RUN)
#define ROW(name) { #name, make_##name, run_##name },
static const kind kinds[] = { EVERY(ROW) };
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static long tallies[KINDS][STATUSES];

/* ---- one call ---- */

static void spoil(void)
{
    trn_instruction *head = &args.head;
    switch (below(12)) {
    case 0: head->rounding = (trn_rounding)absurd_int(); break;
    case 1: head->generation = (trn_generation)absurd_int(); break;
    case 2: head->engine = (trn_engine)absurd_int(); break;
    case 3: head->isa = (trn_isa)absurd_int(); break;
    case 4: head->unlimited = !head->unlimited; break;
    case 5:
    case 6:
        if (integers) *integer[below(integers)] = absurd_int();
        break;
    default:
        if (views) mutate_view(view[below(views)], view[below(views)]);
        break;
    }
}

/* A broadcast may be long without being large: what would be accepted must not take forever. */
static void bound_work(void)
{
    for (int i = 0; i < views; i++) {
        trn_tensor *t = view[i];
        long double work = 1;
        if (t->rank < 1 || t->rank > TRN_MAX_RANK) continue;
        for (int k = 0; k < t->rank; k++) work *= (long double)t->shape[k];
        for (int k = 0; k < t->rank && work > MOST_WORK; k++)
            if (t->shape[k] > 12) t->shape[k] = 12;
        keep_inside(t);
    }
}

static bool states_changed(void)
{
    return memcmp(&vector_state, &vector_before, sizeof vector_state) != 0 ||
           memcmp(&gpsimd_state, &gpsimd_before, sizeof gpsimd_state) != 0 ||
           memcmp(&scalar_state, &scalar_before, sizeof scalar_state) != 0 ||
           memcmp(registers, registers_before, sizeof registers) != 0;
}

static void restore_states(void)
{
    memcpy(&vector_state, &vector_before, sizeof vector_state);
    memcpy(&gpsimd_state, &gpsimd_before, sizeof gpsimd_state);
    memcpy(&scalar_state, &scalar_before, sizeof scalar_state);
    memcpy(registers, registers_before, sizeof registers);
}

static void prepare_states(void)
{
    vector_state.accumulator_known = one_in(2);
    for (int p = 0; p < TRN_PARTITIONS; p++)
        vector_state.accumulator[p] = scalar_state.registers[p] = lanes[p] = (float)(below(9) - 4);
    memcpy(&vector_before, &vector_state, sizeof vector_state);
    memcpy(&gpsimd_before, &gpsimd_state, sizeof gpsimd_state);
    memcpy(&scalar_before, &scalar_state, sizeof scalar_state);
    memcpy(registers_before, registers, sizeof registers);
}

static void ask_again(const kind *k)
{
    static unsigned char after[ARENA];
    static trn_vector_state vector_after;
    memcpy(after, arena, ARENA);
    memcpy(&vector_after, &vector_state, sizeof vector_after);
    memcpy(arena, snapshot, ARENA);
    restore_states();
    args.head.isa = TRN_ISA_PORTABLE;
    if (k->run() != TRN_OK) say("the portable kernels refuse what others accept");
    if (memcmp(after, arena, ARENA) != 0) say("the portable kernels wrote other bits");
    if (memcmp(vector_after.accumulator, vector_state.accumulator, sizeof vector_after.accumulator) != 0)
        say("the portable kernels left other registers");
}

static bool inside(const trn_tensor *t)
{
    return (uintptr_t)t->data >= (uintptr_t)arena && (uintptr_t)t->data < (uintptr_t)arena + ARENA;
}

static void fuzz_one(const kind *k)
{
    memset(&args, 0, sizeof args);
    views = outputs = integers = 0;
    sizes();
    trn_error error = fresh_error();
    args.head.rounding = (trn_rounding)below(6);
    args.head.seed = cases_next(&rng);
    args.head.stream = cases_next(&rng);
    args.head.unlimited = one_in(6);
    args.head.generation = one_in(2) ? TRN_TRAINIUM3 : (trn_generation)below(4);
    numerics = plausible_numerics();
    if (one_in(4)) args.head.numerics = &numerics;
    k->make();
    prepare_states();
    for (int i = one_in(2) ? 0 : below(5); i > 0; i--) spoil();
    bound_work();
    args.head.error = one_in(3) ? NULL : &error;
    if (k->run == run_activation &&
        args.activation.dst.shape[0] > ARENA) /* an array of the caller's is as long as it says */
        args.activation.scale_per_partition = args.activation.bias_per_partition = args.activation.reduce = NULL;
    if (k->run == run_activate2 && args.activate2.dst.shape[0] > ARENA) args.activate2.reduce = NULL;

    memcpy(snapshot, arena, ARENA);
    close_arena((const trn_tensor *const *)view, views);
    if (k->run == run_dma_compute) open_arena(); /* it has more sources than are listed */
    const trn_status status = k->run();
    open_arena();
    if ((unsigned)status >= STATUSES) say("a status that does not exist");
    tallies[k - kinds][status]++;
    if (args.head.error) check_error(status, &error);
    if (status != TRN_OK && states_changed()) say("a state was changed on failure");
    if (status == TRN_OK && one_in(3)) ask_again(k);
    for (int i = 0; i < outputs && status == TRN_OK; i++)
        if (claimed(view[i]) > 0 && inside(view[i]))
            forgive(view[i]); /* (some are not looked at: a count says how many) */
    compare_arena(status);
    restore_states();
}

static void fuzz_next(void)
{
    if (fuzzing.number == 0) {
        trn_vector_state_init(&vector_state, 1);
        trn_gpsimd_state_init(&gpsimd_state, 1);
    }
    fuzz_one(&kinds[fuzzing.number % KINDS]);
}

static void print_tallies(long count)
{
    printf("%-26s       OK   EINVAL   ESHAPE  EFORMAT   ELIMIT   ENOSPC EUNSUPPORTED EIO\n", "");
    for (int k = 0; k < KINDS; k++) {
        long refused = 0;
        printf("%-26s", kinds[k].name);
        for (int s = 0; s < STATUSES; s++) printf(" %8ld", tallies[k][s]);
        printf("\n");
        for (int s = 1; s < STATUSES; s++) refused += tallies[k][s];
        if (count >= 20000 && (tallies[k][TRN_OK] == 0 || refused == 0)) {
            fprintf(stderr, "%s was never %s\n", kinds[k].name, refused ? "accepted" : "refused");
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_next };
    print_tallies(fuzz(argc, argv, turn, 1));
    return 0;
}
