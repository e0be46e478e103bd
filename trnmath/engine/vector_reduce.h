/* engine/vector_reduce.h - along the free axes: reductions, scans, selections, and the shared registers.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         float x[2 * 3] = { 1, 2, 3, 4, 5, 6 }, sum[2];
 *         trn_tensor_reduce_args args = { .dst = trn_tensor_2d(TRN_F32, sum, 2, 1) };
 *         args.data = trn_tensor_2d(TRN_F32, x, 2, 3);
 *         args.op = TRN_ALU_ADD;
 *         return trn_tensor_reduce(&args) == TRN_OK && sum[1] == 15.0f ? 0 : 1;
 *     }
 *
 * DOES: nki.isa's tensor_reduce, tensor_scalar_reduce, tensor_scalar_cumulative, tensor_tensor_scan, exponential,
 *     range_select and select_reduce. One binary32 accumulator per partition takes the elements in ascending order of
 *     the flattened free axes and is rounded after every step; what is accumulated is the binary32 value, before the
 *     cast to dst. Reductions begin with the operator's identity: 0 (add, subtract, logical_or, logical_xor), 1
 *     (multiply, logical_and), -inf (maximum), +inf (minimum), all ones (bitwise_and), no bit (bitwise_or,
 *     bitwise_xor).
 * DOES NOT: honour the flush flags of trn_numerics, or numerics.reduce_order other than sequential (TRN_EUNSUPPORTED).
 *
 * Views, limits and refusals as in engine/vector_elementwise.h. dst may be a source itself where it has as many
 * elements.
 *
 * KNOWN FROM: NKI's pages of these instructions (documented: operators, commands, identities, generations, formats).
 *     The order: measured (numerics.reduce_order). tensor_reduce beginning with an identity: assumed. Sums of
 *     exponential before the cast: assumed. exp: the Scalar engine's table (assumed).
 */
#ifndef TRNI_ENGINE_VECTOR_REDUCE_H
#define TRNI_ENGINE_VECTOR_REDUCE_H

#include "act.h"
#include "engine_state.h"
#include "vector_elementwise.h"

/* ---- tensor_reduce ---- */

/* dst [P, leading axes] = op over the last `axes` free axes of data (0: all of them), times -1 with negate. dst has one
 * element per partition and index of the leading free axes; keepdims: it may spell the reduced ones as 1 (it may
 * anyway). op: add, subtract (0 - x0 - x1 ...), multiply, maximum, minimum, logical_and, _or, _xor; bitwise_and, _or,
 * _xor of integers, dst and data of one width, without negate. dst shares nothing with data. Engine: VECTOR. */
typedef struct trn_tensor_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op;
    int axes;
    bool negate, keepdims;
} trn_tensor_reduce_args;

TRN_API trn_status trn_tensor_reduce(const trn_tensor_reduce_args *args);

/* ---- tensor_scalar_reduce ---- */

/* dst = data op0 operand0, as tensor_scalar with one operator on numbers; the registers reduce_op the results (add,
 * multiply, maximum, minimum) after reset_reduce (default: from the identity), reduce (from what they hold) or
 * load_reduce (from reduce_init, a number or a [P, 1] F32 tile). reduce_res [P, 1], optional, receives them, times -1
 * with reduce_res_negate, which leaves the registers alone. state: the engine's registers; null: there are none after
 * this. reverse0: NKI's page calls it not supported yet. Engine: VECTOR. */
typedef struct trn_tensor_scalar_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu reduce_op;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;
    float reduce_init;
    trn_tensor reduce_init_tile;
    bool reduce_res_negate;
    trn_vector_state *state;
} trn_tensor_scalar_reduce_args;

TRN_API trn_status trn_tensor_scalar_reduce(const trn_tensor_scalar_reduce_args *args);

/* ---- tensor_scalar_cumulative ---- */

/* reg = (src op0 imm0) op1 reg, dst = reg, element after element; reverse0: imm0 op0 src. op0: an operator on numbers;
 * op1: add, subtract (the new number - reg), multiply, maximum, minimum. reg begins as op1's identity (reset_reduce,
 * default), as the register holds it (reduce), or as imm1, a number or a [P, 1] F32 tile (load_reduce). No I32 or U32.
 * Engine: VECTOR. */
typedef struct trn_tensor_scalar_cumulative_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    trn_alu op0, op1;
    float imm0;
    trn_tensor imm0_tile;
    float imm1;
    trn_tensor imm1_tile;
    bool reverse0;
    trn_reduce_cmd reduce_cmd;
    trn_vector_state *state;
} trn_tensor_scalar_cumulative_args;

TRN_API trn_status trn_tensor_scalar_cumulative(const trn_tensor_scalar_cumulative_args *args);

/* ---- tensor_tensor_scan ---- */

/* r = (data0 op0 r) op1 data1, dst = r, element after element; r begins as `initial`, a number or a [P, 1] tile.
 * Reversed: r op0 data0; data1 op1 (...). Operators with two operands on numbers. Engine: VECTOR. */
typedef struct trn_tensor_tensor_scan_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data0, data1;
    float initial;
    trn_tensor initial_tile;
    trn_alu op0, op1;
    bool reverse0, reverse1;
} trn_tensor_tensor_scan_args;

TRN_API trn_status trn_tensor_tensor_scan(const trn_tensor_tensor_scan_args *args);

/* ---- exponential ---- */

/* dst = exp(src - max_value), the difference rounded to binary32, exp as the Scalar engine's table has it; the
 * registers add the results: idle (default: nothing is added), reset_reduce, reduce, load_reduce (from reduce_init).
 * max_value and reduce_init: a number, or a [P, 1] F32 tile. reduce_res [P, 1], optional: the sums. dst is no U32.
 * Trainium3, VECTOR. */
typedef struct trn_exponential_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    float max_value;
    trn_tensor max_value_tile;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;
    float reduce_init;
    trn_tensor reduce_init_tile;
    trn_vector_state *state;
} trn_exponential_args;

TRN_API trn_status trn_exponential(const trn_exponential_args *args);

/* ---- range_select ---- */

/* dst = on_true_tile where its index i (range_start + the position along the flattened free axes) satisfies i comp_op0
 * bound0 and i comp_op1 bound1, compared as binary32; elsewhere -3.4028235e38 (FP32_MIN; narrow formats make -infinity
 * of it). comp_op: equal, less, less_equal, greater, greater_equal. bound: [P] or [P, 1] F32. The registers take the
 * maximum: reset_reduce (default), reduce, reset, idle; reduce_res [P, 1], optional, receives it. reduce_op and
 * on_false_value have one legal value each; 0 stands for it. Indices stay within 2^24. From Trainium2 on. Engine:
 * VECTOR. */
typedef struct trn_range_select_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, on_true_tile;
    trn_alu comp_op0, comp_op1;
    trn_tensor bound0, bound1;
    trn_reduce_cmd reduce_cmd;
    trn_tensor reduce_res;
    trn_alu reduce_op;
    int64_t range_start;
    float on_false_value;
    trn_vector_state *state;
} trn_range_select_args;

TRN_API trn_status trn_range_select(const trn_range_select_args *args);

/* ---- select_reduce ---- */

/* dst = on_true where predicate is not 0 (reverse_pred: where it is 0), else on_false, a number or a [P, 1] tile.
 * predicate: I8, U8, I16 or U16; on_true: neither TF32 nor I32 nor U32. The registers take the maximum: idle (default:
 * nothing), reset_reduce, reduce; reduce_res [P, 1], optional, receives it. reduce_op: maximum; 0 stands for it.
 * Engine: VECTOR. */
typedef struct trn_select_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, predicate, on_true;
    float on_false;
    trn_tensor on_false_tile;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;
    trn_alu reduce_op;
    bool reverse_pred;
    trn_vector_state *state;
} trn_select_reduce_args;

TRN_API trn_status trn_select_reduce(const trn_select_reduce_args *args);

#if TRNI_BODIES

#include "vector_registers.h"

/* ---- tensor_reduce ---- */

/* Rows of data: `outer` per partition, `length` elements each. */
typedef struct trni_reduce_plan {
    trni_span dst, data;
    int64_t outer, length;
    trn_alu op;
    bool negate, lines; /* lines: kernels read data where it is */
    trni_reduction how;
    const trni_bits_row *bits;
} trni_reduce_plan;

TRNI_FN void trni_reduce_put(const trni_reduce_plan *r, int64_t row, int64_t n, const float *value)
{
    if (r->dst.partitions == 1) {
        trni_span_write(&r->dst, 0, row, n, value);
        return;
    }
    for (int64_t i = 0; i < n; i++) trni_span_write(&r->dst, (row + i) / r->outer, (row + i) % r->outer, 1, value + i);
}

/* Rows whose elements the kernels read where they are. */
TRNI_FN void trni_reduce_lines(const trni_reduce_plan *r, trni_rows *rows, int64_t row)
{
    for (int64_t i = 0; i < rows->count; i++)
        rows->line[i] = trni_span_at(&r->data, (row + i) / r->outer, (row + i) % r->outer * r->length);
    trni_reduction_run(&r->how, rows, r->length);
}

TRNI_FN void trni_reduce_chunks(const trni_reduce_plan *r, trni_rows *rows, int64_t row)
{
    float buffer[TRNI_ROWS][TRNI_ROWS_CHUNK];
    for (int64_t f = 0, take; f < r->length; f += take) {
        take = trni_min64(TRNI_ROWS_CHUNK, r->length - f);
        for (int64_t i = 0; i < rows->count; i++)
            rows->line[i] =
                trni_span_read(&r->data, (row + i) / r->outer, (row + i) % r->outer * r->length + f, take, buffer[i]);
        trni_reduction_run(&r->how, rows, take);
    }
}

TRNI_FN void trni_reduce_rows(const void *plan, int64_t row, int64_t n, void *room)
{
    (void)room;
    const trni_reduce_plan *r = (const trni_reduce_plan *)plan;
    trni_rows rows;
    rows.count = n;
    for (int64_t i = 0; i < n; i++) rows.sum[i] = trni_identity(r->op);
    if (r->lines && r->length > 0)
        trni_reduce_lines(r, &rows, row);
    else
        trni_reduce_chunks(r, &rows, row);
    for (int64_t i = 0; i < n && r->negate; i++) rows.sum[i] = trni_alu_one_multiply(rows.sum[i], -1.0f);
    trni_reduce_put(r, row, n, rows.sum);
}

/* Codes of one row: the upper half joins the lower one until one is left. */
TRNI_FN uint32_t trni_bits_fold(const trni_bits_row *row, trn_isa isa, size_t bytes, const void *codes, size_t n)
{
    uint32_t half[TRNI_SPAN_CHUNK], r = 0;
    char *at = (char *)half;
    memcpy(half, codes, n * bytes);
    while (n > 1) {
        const size_t rest = n / 2, kept = n - rest;
        trni_bits_run(row, isa, bytes, at, at, at + kept * bytes, rest);
        n = kept;
    }
    memcpy(&r, at, bytes);
    return r;
}

TRNI_FN void trni_reduce_bits(const void *plan, int64_t row, int64_t n, void *room)
{
    (void)room;
    const trni_reduce_plan *r = (const trni_reduce_plan *)plan;
    uint32_t buffer[TRNI_SPAN_CHUNK];
    for (; n > 0; n--, row++) {
        uint32_t sum = trn_alu_info_of(r->op)->identity;
        for (int64_t f = 0, take; f < r->length; f += take) {
            take = trni_min64(TRNI_SPAN_CHUNK, r->length - f);
            const void *codes = trni_span_bits(&r->data, row / r->outer, row % r->outer * r->length + f, take, buffer);
            const uint32_t one = trni_bits_fold(r->bits, r->data.isa, r->data.bytes, codes, (size_t)take);
            trni_bits_run(r->bits, TRN_ISA_PORTABLE, sizeof sum, &sum, &sum, &one, 1);
        }
        trni_span_put(&r->dst, row / r->outer, row % r->outer, 1, &sum);
    }
}

/* Of axes [first, last); INT64_MAX for what no int64 holds, which is legal beside an axis of no elements. */
TRNI_FN int64_t trni_reduce_extent(const trn_tensor *t, int first, int last)
{
    int64_t extent = 1;
    bool all = true;
    for (int i = first; i < last; i++) {
        if (t->shape[i] == 0) return 0;
        all = all && !__builtin_mul_overflow(extent, t->shape[i], &extent);
    }
    return all ? extent : INT64_MAX;
}

/* Elements of one row, from data's last free axes. */
TRNI_FN int64_t trni_reduce_length(const trn_tensor_reduce_args *args)
{
    const int rank = args->data.rank;
    return trni_reduce_extent(&args->data, args->axes ? rank - args->axes : 1, rank);
}

TRNI_FN int64_t trni_reduce_outer(const trn_tensor_reduce_args *args)
{
    return trni_reduce_extent(&args->data, 1, args->axes ? args->data.rank - args->axes : 1);
}

TRNI_FN void trni_reduce_kinds(trni_frame *f, const trn_tensor_reduce_args *args, const trni_view *data)
{
    if (f->status || trn_alu_info_of(args->op)->kind != TRN_ALU_BITVEC) return;
    trni_frame_bits(f, &f->dst);
    trni_frame_bits(f, data);
    if (!f->status && args->negate)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "negate goes with operators on numbers; op is %s",
                              trn_alu_name(args->op));
}

/* One result for each partition, which lies in that partition's own data: all of it has been read by then. */
TRNI_FN bool trni_reduce_in_place(const trni_view *dst, const trni_view *data, int64_t outer)
{
    int64_t span = 0;
    if (outer != 1) return false;
    if (dst->t.shape[0] == 1 || data->elements == 0) return true; /* (strides may be any numbers) */
    const int64_t bytes = (int64_t)data->size, own = (int64_t)dst->size, pitch = data->t.stride[0] * bytes;
    const int64_t at = (int64_t)((uintptr_t)dst->t.data - (uintptr_t)data->t.data);
    for (int i = 1; i < data->t.rank; i++) span += (data->t.shape[i] - 1) * data->t.stride[i] * bytes;
    return dst->t.stride[0] * own == pitch && span + bytes <= pitch && at >= 0 && at + own <= pitch;
}

TRNI_DRIVER trn_status trni_tensor_reduce_check(const trn_tensor_reduce_args *args, trni_frame *f, trni_view *data)
{
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "tensor_reduce");
    trni_frame_op(f, args->op, "op", TRNI_OP_BITS | TRNI_OP_REDUCES);
    trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "tensor_reduce");
    trni_frame_order(f, "tensor_reduce");
    trni_frame_view(f, data, &args->data, "data", TRNI_INPUT);
    if (f->status) return f->status;
    if (args->axes < 0 || (args->axes > 0 && args->axes >= args->data.rank))
        return f->status = trni_fail(f->how.error, TRN_EINVAL, "axes is %d; data has %d free axes", args->axes,
                                     args->data.rank - 1);
    trni_frame_dst(f, &args->dst);
    const int64_t outer = trni_reduce_outer(args);
    if (!f->status && (f->partitions != args->data.shape[0] || (f->partitions && f->elements != outer)))
        f->status = trni_fail(f->how.error, TRN_ESHAPE,
                              "dst has %lld partitions of %lld elements; the reduction of data has %lld of %lld",
                              (long long)f->partitions, (long long)f->elements, (long long)args->data.shape[0],
                              (long long)outer);
    if (!f->status && !trni_reduce_in_place(&f->dst, data, outer)) trni_frame_apart(f, &f->dst, data);
    trni_reduce_kinds(f, args, data);
    return f->status;
}

TRN_API trn_status trn_tensor_reduce(const trn_tensor_reduce_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view data;
    trni_reduce_plan r;
    if (trni_tensor_reduce_check(args, &f, &data) || trni_frame_empty(&f)) return f.status;
    trni_span_output(&r.dst, &f.dst, &f);
    trni_span_init(&r.data, &data, f.isa);
    r.dst.stream = false;
    r.outer = trni_reduce_outer(args);
    r.length = trni_reduce_length(args);
    r.op = args->op;
    r.negate = args->negate;
    if (trn_alu_info_of(args->op)->kind == TRN_ALU_BITVEC) {
        r.bits = trni_bits_kernel_of(args->op, r.data.bytes);
        trni_partitions_each(f.partitions * r.outer, r.length, TRNI_ROWS, trni_reduce_bits, &r);
        return TRN_OK;
    }
    r.lines = trni_chain_reads(&r.data);
    r.how = trni_reduction_of(args->op, r.lines && r.data.format == TRN_BF16, f.isa);
    if (trni_span_flat(&r.dst)) trni_span_flatten(&r.dst);
    trni_partitions_each(f.partitions * r.outer, r.length, r.lines ? TRNI_ROWS_MOST : TRNI_ROWS, trni_reduce_rows, &r);
    return TRN_OK;
}

/* ---- tensor_scalar_reduce ---- */

/* dst = data op0 operand, one chunk; the results. */
TRNI_FN const float *trni_scalar_produce(const void *plan, int64_t p, int64_t f, int64_t n, float *buffer)
{
    const trni_elementwise *e = (const trni_elementwise *)plan;
    const float *x = trni_span_read(&e->data, p, f, n, buffer);
    if (e->stages)
        trni_stage_run(&e->stage[0], buffer, x, p, f, n);
    else if (x != buffer)
        memcpy(buffer, x, (size_t)n * sizeof(float)); /* dst may be data */
    trni_span_write(&e->dst, p, f, n, buffer);
    return buffer;
}

/* One operator and a number or column. */
TRNI_FN void trni_scalar_open(trni_elementwise *e, const trni_frame *f, const trni_view *data, trn_alu op, bool reverse,
                              const trni_view *tile, float value)
{
    trni_elementwise_open(e, f, data);
    if (op != TRN_ALU_BYPASS) trni_stage_column(&e->stage[e->stages++], op, reverse, tile, value, f->elements, f->isa);
}

TRNI_DRIVER void trni_frame_accumulates(trni_frame *f, trn_alu op, const char *name, bool subtract)
{
    if (f->status) return;
    if (op == TRN_ALU_ADD || op == TRN_ALU_MULTIPLY || op == TRN_ALU_MAXIMUM || op == TRN_ALU_MINIMUM) return;
    if (subtract && op == TRN_ALU_SUBTRACT) return;
    f->status = trni_fail(f->how.error, TRN_EINVAL, "%s is %s; it takes add, %smultiply, maximum or minimum", name,
                          trn_alu_name(op), subtract ? "subtract, " : "");
}

TRN_API trn_status trn_tensor_scalar_reduce(const trn_tensor_scalar_reduce_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    const trni_registers r = { trni_cmd_or(args->reduce_cmd, TRN_REDUCE_CMD_RESET_REDUCE),
                               args->reduce_op,
                               &args->reduce_res,
                               &args->reduce_init_tile,
                               args->reduce_init,
                               args->reduce_res_negate,
                               args->state };
    trni_frame f;
    trni_view data, tile;
    trni_elementwise e;
    trni_accumulation a;
    trni_frame_begin(&f, &how, trni_op_generation(args->op0, TRN_ALU_BYPASS), TRN_TRAINIUM1, "tensor_scalar_reduce");
    trni_frame_op(&f, args->op0, "op0", TRNI_OP_NONE | TRNI_OP_UNARY);
    trni_frame_accumulates(&f, args->reduce_op, "reduce_op", false);
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "tensor_scalar_reduce");
    trni_frame_order(&f, "tensor_scalar_reduce");
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &data, &args->data, "data");
    trni_frame_idle_operand(&f, args->op0, "op0", args->operand0_tile.rank || args->operand0 != 0, "operand0");
    trni_frame_operand(&f, &tile, &args->operand0_tile, "operand0_tile");
    trni_registers_frame(&f, &r, &a, TRNI_CMD_SUMS);
    trni_registers_apart(&f, &a.res_view, &data);
    trni_registers_apart(&f, &a.res_view, &tile);
    if (f.status) return f.status;
    trni_scalar_open(&e, &f, &data, args->op0, args->reverse0, &tile, args->operand0);
    trni_accumulation_init(&a, &r, &f);
    return trni_produce_all(trni_scalar_produce, &e, &f, &a);
}

/* ---- scans: up to 64 partitions side by side ---- */

/* The rows of a chunk, turned: run[i, row]. Rows that are not there repeat the last. */
typedef struct trni_scan_rows {
    size_t rows; /* a multiple of 4 */
    float *line[TRNI_SCAN_ROWS];
    float buffer[TRNI_SCAN_ROWS][TRNI_SCAN_CHUNK];
    float run[2][TRNI_SCAN_CHUNK * TRNI_SCAN_ROWS], last[TRNI_SCAN_ROWS];
} trni_scan_rows;

TRNI_FN void trni_scan_read(trni_scan_rows *s, const trni_span *v, const trni_stage *stage, int64_t p, int64_t count,
                            int64_t f, int64_t n, float *run)
{
    const float *line[TRNI_SCAN_ROWS];
    s->rows = (size_t)trni_round_up(count, 4);
    for (int64_t i = 0; i < (int64_t)s->rows; i++) {
        line[i] = i < count ? trni_span_read(v, p + i, f, n, s->buffer[i]) : line[count - 1];
        if (!stage || i >= count) continue;
        trni_stage_run(stage, s->buffer[i], line[i], p + i, f, n);
        line[i] = s->buffer[i];
    }
    trni_rows_turn_for(v->isa)(run, line, s->rows, (size_t)n);
}

TRNI_FN void trni_scan_write(trni_scan_rows *s, const trni_span *v, int64_t p, int64_t count, int64_t f, int64_t n,
                             const float *run)
{
    for (size_t i = 0; i < s->rows; i++) s->line[i] = s->buffer[i];
    trni_rows_turn_back_for(v->isa)(s->line, run, s->rows, (size_t)n);
    for (int64_t i = 0; i < count; i++) trni_span_write(v, p + i, f, n, s->buffer[i]);
}

/* ---- tensor_scalar_cumulative ---- */

typedef struct trni_cumulative_plan {
    trni_elementwise e;
    trni_accumulation sum;
    trni_alu_kernel kernel;
    int64_t elements;
} trni_cumulative_plan;

TRNI_FN void trni_cumulative_rows(const void *plan, int64_t p, int64_t n, void *room)
{
    const trni_cumulative_plan *c = (const trni_cumulative_plan *)plan;
    trni_scan_rows *const s = (trni_scan_rows *)room;
    float *const run = s->run[0], *const last = s->last;
    for (int64_t i = 0; i < TRNI_SCAN_ROWS; i++) last[i] = i < n ? trni_accumulation_begin(&c->sum, p + i) : 0;
    for (int64_t f = 0, take; f < c->elements; f += take) {
        take = trni_min64(TRNI_SCAN_CHUNK, c->elements - f);
        trni_scan_read(s, &c->e.data, c->e.stages ? &c->e.stage[0] : NULL, p, n, f, take, run);
        const float *reg = last;
        for (float *at = run; at < run + (size_t)take * s->rows; reg = at, at += s->rows)
            trni_alu_run(c->kernel, at, at, reg, s->rows);
        memcpy(last, reg, s->rows * sizeof(float));
        trni_scan_write(s, &c->e.dst, p, n, f, take, run);
    }
    for (int64_t i = 0; i < n; i++) trni_accumulation_end(&c->sum, p + i, last[i]);
}

TRNI_DRIVER void trni_frame_narrow(trni_frame *f, const trni_view *v)
{
    if (!f->status && trni_is_word(v->t.format))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "%s is %s, which this instruction does not take", v->name,
                              v->info.name);
}

TRN_API trn_status trn_tensor_scalar_cumulative(const trn_tensor_scalar_cumulative_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    const trn_tensor none = trn_tensor_nd(TRN_F32, NULL, 0, NULL);
    const trni_registers r = { trni_cmd_or(args->reduce_cmd, TRN_REDUCE_CMD_RESET_REDUCE),
                               args->op1,
                               &none,
                               &args->imm1_tile,
                               args->imm1,
                               false,
                               args->state };
    trni_frame f;
    trni_view src, tile;
    trni_cumulative_plan c;
    trni_frame_begin(&f, &how, trni_op_generation(args->op0, TRN_ALU_BYPASS), TRN_TRAINIUM1,
                     "tensor_scalar_cumulative");
    trni_frame_op(&f, args->op0, "op0", TRNI_OP_NONE | TRNI_OP_UNARY);
    trni_frame_accumulates(&f, args->op1, "op1", true);
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "tensor_scalar_cumulative");
    trni_frame_order(&f, "tensor_scalar_cumulative");
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &src, &args->src, "src");
    trni_frame_narrow(&f, &f.dst);
    trni_frame_narrow(&f, &src);
    trni_frame_idle_operand(&f, args->op0, "op0", args->imm0_tile.rank || args->imm0 != 0, "imm0");
    trni_frame_operand(&f, &tile, &args->imm0_tile, "imm0_tile");
    trni_registers_frame(&f, &r, &c.sum, TRNI_CMD_SUMS);
    if (f.status) return f.status;
    trni_scalar_open(&c.e, &f, &src, args->op0, args->reverse0, &tile, args->imm0);
    trni_accumulation_init(&c.sum, &r, &f);
    c.kernel = trni_alu_kernel_of(args->op1, f.isa);
    c.elements = f.elements;
    f.status = trni_partitions_each_in(sizeof(trni_scan_rows), &f, TRNI_SCAN_ROWS, trni_cumulative_rows, &c);
    if (!f.status) trni_accumulation_known(&c.sum, f.partitions);
    return f.status;
}

/* ---- tensor_tensor_scan ---- */

typedef struct trni_scan_plan {
    trni_span dst, data0, data1;
    trni_column initial;
    trni_alu_kernel kernel0, kernel1;
    bool reverse0, reverse1;
    int64_t elements;
} trni_scan_plan;

TRNI_FN void trni_scan_steps(const trni_scan_plan *c, float *run0, const float *run1, float *last, size_t rows,
                             int64_t n)
{
    const float *r = last;
    for (int64_t i = 0; i < n; i++, r = run0, run0 += rows, run1 += rows) {
        if (c->reverse0)
            trni_alu_run(c->kernel0, run0, r, run0, rows);
        else
            trni_alu_run(c->kernel0, run0, run0, r, rows);
        if (c->reverse1)
            trni_alu_run(c->kernel1, run0, run1, run0, rows);
        else
            trni_alu_run(c->kernel1, run0, run0, run1, rows);
    }
    memcpy(last, r, rows * sizeof(float));
}

TRNI_FN void trni_scan_rows_all(const void *plan, int64_t p, int64_t n, void *room)
{
    const trni_scan_plan *c = (const trni_scan_plan *)plan;
    trni_scan_rows *const s = (trni_scan_rows *)room;
    float *const run0 = s->run[0], *const run1 = s->run[1], *const last = s->last;
    for (int64_t i = 0; i < TRNI_SCAN_ROWS; i++) last[i] = i < n ? trni_column_at(&c->initial, p + i) : 0;
    for (int64_t f = 0, take; f < c->elements; f += take) {
        take = trni_min64(TRNI_SCAN_CHUNK, c->elements - f);
        trni_scan_read(s, &c->data0, NULL, p, n, f, take, run0);
        trni_scan_read(s, &c->data1, NULL, p, n, f, take, run1);
        trni_scan_steps(c, run0, run1, last, s->rows, take);
        trni_scan_write(s, &c->dst, p, n, f, take, run0);
    }
}

TRN_API trn_status trn_tensor_tensor_scan(const trn_tensor_tensor_scan_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    trni_frame f;
    trni_view data[2], initial;
    trni_scan_plan c;
    trni_frame_begin(&f, &how, trni_op_generation(args->op0, args->op1), TRN_TRAINIUM1, "tensor_tensor_scan");
    trni_frame_op(&f, args->op0, "op0", 0);
    trni_frame_op(&f, args->op1, "op1", 0);
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "tensor_tensor_scan");
    trni_frame_order(&f, "tensor_tensor_scan");
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &data[0], &args->data0, "data0");
    trni_frame_src(&f, &data[1], &args->data1, "data1");
    trni_frame_column(&f, &initial, &args->initial_tile, "initial_tile", f.partitions);
    trni_frame_beside(&f, &initial);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_output(&c.dst, &f.dst, &f);
    trni_span_init(&c.data0, &data[0], f.isa);
    trni_span_init(&c.data1, &data[1], f.isa);
    trni_column_init(&c.initial, &initial, args->initial, f.isa);
    c.kernel0 = trni_alu_kernel_of(args->op0, f.isa);
    c.kernel1 = trni_alu_kernel_of(args->op1, f.isa);
    c.reverse0 = args->reverse0;
    c.reverse1 = args->reverse1;
    c.elements = f.elements;
    return trni_partitions_each_in(sizeof(trni_scan_rows), &f, TRNI_SCAN_ROWS, trni_scan_rows_all, &c);
}

/* ---- exponential ---- */

typedef struct trni_exponential_plan {
    trni_elementwise e;
    trni_act_plan act;
} trni_exponential_plan;

TRNI_FN const float *trni_exponential_produce(const void *plan, int64_t p, int64_t f, int64_t n, float *buffer)
{
    const trni_exponential_plan *x = (const trni_exponential_plan *)plan;
    const float *src = trni_span_read(&x->e.data, p, f, n, buffer);
    trni_stage_run(&x->e.stage[0], buffer, src, p, f, n);
    trni_act_run(&x->act, buffer, buffer, (size_t)n);
    trni_span_write(&x->e.dst, p, f, n, buffer);
    return buffer;
}

TRN_API trn_status trn_exponential(const trn_exponential_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    const trni_registers r = { trni_cmd_or(args->reduce_cmd, TRN_REDUCE_CMD_IDLE),
                               TRN_ALU_ADD,
                               &args->reduce_res,
                               &args->reduce_init_tile,
                               args->reduce_init,
                               false,
                               args->state };
    trni_frame f;
    trni_view src, largest;
    trni_exponential_plan x;
    trni_accumulation a;
    trni_frame_begin(&f, &how, TRN_TRAINIUM3, TRN_TRAINIUM3, "exponential");
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "exponential");
    trni_frame_order(&f, "exponential");
    trni_frame_dst(&f, &args->dst);
    if (!f.status && args->dst.format == TRN_U32)
        f.status = trni_fail(args->error, TRN_EFORMAT, "dst is uint32, which exponential does not write");
    trni_frame_src(&f, &src, &args->src, "src");
    trni_frame_operand(&f, &largest, &args->max_value_tile, "max_value_tile");
    trni_registers_frame(&f, &r, &a, TRNI_CMD_SUMS | TRNI_CMD_IDLE);
    trni_registers_float(&f, &a.res_view);
    trni_registers_apart(&f, &a.res_view, &src);
    trni_registers_apart(&f, &a.res_view, &largest);
    if (f.status) return f.status;
    trni_scalar_open(&x.e, &f, &src, TRN_ALU_SUBTRACT, false, &largest, args->max_value);
    trni_act_plan_init(&x.act, TRN_ACT_EXP, 0, NULL, f.isa);
    if (f.partitions * f.elements >= TRNI_ACT_NEAR_FROM) trni_act_plan_near(&x.act);
    trni_accumulation_init(&a, &r, &f);
    return trni_produce_all(trni_exponential_produce, &x, &f, &a);
}

/* ---- selections ----
 *
 * Elements are moved, not computed: codes stay within one format, and other formats are reached by the cast. */

typedef struct trni_select_plan {
    trni_span dst, yes;
    bool yes_moves, no_moves; /* as codes */
    trni_column no;
    bool reverse;         /* select_reduce */
    trni_span predicate;  /* select_reduce */
    trni_column bound[2]; /* range_select */
    trni_alu_kernel compare[2], both;
    int64_t start;
} trni_select_plan;

TRNI_FN void trni_select_init(trni_select_plan *s, const trni_frame *f, const trni_view *yes)
{
    trni_span_output(&s->dst, &f->dst, f);
    trni_span_init(&s->yes, yes, f->isa);
    s->yes_moves = trni_same_format(&f->dst.t, &yes->t);
    s->no_moves = false;
}

/* The codes of n times what stands where the predicate does not hold. */
TRNI_FN void trni_select_no(const trni_select_plan *s, int64_t p, int64_t f, int64_t n, const float *value, void *codes)
{
    uint32_t code = 0, one;
    if (!s->no_moves) {
        trni_span_encode(&s->dst, p, f, n, value, codes);
        return;
    }
    memcpy(&code, trni_span_bits(&s->no.lanes, p, 0, 1, &one), s->dst.bytes);
    trni_codes_fill(codes, code, s->dst.bytes, n);
}

/* dst = yes where mask, else no; returns the values. */
TRNI_FN const float *trni_select_chunk(const trni_select_plan *s, int64_t p, int64_t f, int64_t n, const uint32_t *mask,
                                       float *buffer)
{
    float value[TRNI_ROWS_CHUNK], no[TRNI_ROWS_CHUNK];
    uint32_t x[TRNI_SPAN_CHUNK], y[TRNI_SPAN_CHUNK];
    const size_t bytes = s->dst.bytes;
    const float *yes = trni_span_read(&s->yes, p, f, n, value);
    trni_repeat_for(s->dst.isa)(no, trni_column_at(&s->no, p), (size_t)n);
    trni_choose_for(s->dst.isa)(buffer, mask, yes, no, sizeof(float), (size_t)n);
    const void *moved = x;
    if (s->yes_moves)
        moved = trni_bits_aligned(trni_span_bits(&s->yes, p, f, n, x), bytes, n, x);
    else
        trni_span_encode(&s->dst, p, f, n, yes, x);
    trni_select_no(s, p, f, n, no, y);
    trni_choose_for(s->dst.isa)(x, mask, moved, y, bytes, (size_t)n);
    trni_span_store(&s->dst, p, f, n, x);
    return buffer;
}

/* ---- range_select ---- */

#define TRNI_FP32_MIN (-0x1.fffffep+127f)

TRNI_FN const float *trni_range_produce(const void *plan, int64_t p, int64_t f, int64_t n, float *buffer)
{
    const trni_select_plan *s = (const trni_select_plan *)plan;
    float index[TRNI_ROWS_CHUNK], bound[TRNI_ROWS_CHUNK], holds[2][TRNI_ROWS_CHUNK];
    uint32_t mask[TRNI_ROWS_CHUNK];
    trni_count_for(s->dst.isa)(index, (int32_t)(s->start + f), (size_t)n);
    for (int k = 0; k < 2; k++) {
        trni_repeat_for(s->dst.isa)(bound, trni_column_at(&s->bound[k], p), (size_t)n);
        trni_alu_run(s->compare[k], holds[k], index, bound, (size_t)n);
    }
    trni_alu_run(s->both, holds[0], holds[0], holds[1], (size_t)n);
    trni_mask_for(s->dst.isa)(mask, holds[0], sizeof(float), false, (size_t)n);
    return trni_select_chunk(s, p, f, n, mask, buffer);
}

TRNI_FN void trni_range_operators(trni_frame *f, const trn_range_select_args *args)
{
    const trn_alu op[2] = { args->comp_op0, args->comp_op1 };
    for (int k = 0; k < 2 && !f->status; k++) {
        const bool legal = op[k] == TRN_ALU_EQUAL || op[k] == TRN_ALU_LESS || op[k] == TRN_ALU_LESS_EQUAL ||
                           op[k] == TRN_ALU_GREATER || op[k] == TRN_ALU_GREATER_EQUAL;
        if (!legal)
            f->status = trni_fail(f->how.error, TRN_EINVAL,
                                  "comp_op%d is %s; it takes equal, less, less_equal, greater or greater_equal", k,
                                  trn_alu_name(op[k]));
    }
    if (f->status) return;
    if (args->reduce_op != TRN_ALU_BYPASS && args->reduce_op != TRN_ALU_MAXIMUM)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "reduce_op is %s; it takes maximum", trn_alu_name(args->reduce_op));
    else if (args->on_false_value != 0 && args->on_false_value != TRNI_FP32_MIN)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "on_false_value is %g; it takes -3.4028235e38",
                              (double)args->on_false_value);
}

TRNI_FN void trni_range_bounds(trni_frame *f, const trn_range_select_args *args, trni_view view[2])
{
    enum { most = 1 << 24 };
    const trn_tensor *bound[2] = { &args->bound0, &args->bound1 };
    static const char *const name[2] = { "bound0", "bound1" };
    for (int k = 0; k < 2 && !f->status; k++) {
        if (bound[k]->rank == 0) f->status = trni_fail(f->how.error, TRN_ESHAPE, "%s is missing", name[k]);
        trni_frame_operand(f, &view[k], bound[k], name[k]);
    }
    if (f->status) return;
    if (!trn_format_is_float(args->on_true_tile.format))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "on_true_tile is %s; it takes a floating-point format",
                              trn_format_name(args->on_true_tile.format));
    else if (args->range_start < -most || args->range_start > most || args->range_start + f->elements - 1 > most)
        f->status = trni_fail(f->how.error, TRN_ELIMIT,
                              "range_start is %lld and dst has %lld elements: indices stay within 2^24",
                              (long long)args->range_start, (long long)f->elements);
}

TRN_API trn_status trn_range_select(const trn_range_select_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    const trn_tensor none = trn_tensor_nd(TRN_F32, NULL, 0, NULL);
    const trni_registers r = { trni_cmd_or(args->reduce_cmd, TRN_REDUCE_CMD_RESET_REDUCE),
                               TRN_ALU_MAXIMUM,
                               &args->reduce_res,
                               &none,
                               0,
                               false,
                               args->state };
    trni_frame f;
    trni_view on_true, bound[2];
    trni_select_plan s;
    trni_accumulation a;
    trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM2, "range_select");
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "range_select");
    trni_range_operators(&f, args);
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &on_true, &args->on_true_tile, "on_true_tile");
    trni_range_bounds(&f, args, bound);
    trni_registers_frame(&f, &r, &a, TRNI_CMD_IDLE | TRNI_CMD_RESET | TRNI_CMD_REDUCE | TRNI_CMD_RESET_REDUCE);
    trni_registers_apart(&f, &a.res_view, &on_true);
    for (int k = 0; k < 2; k++) trni_registers_apart(&f, &a.res_view, &bound[k]);
    if (f.status) return f.status;
    trni_select_init(&s, &f, &on_true);
    trni_column_init(&s.no, NULL, TRNI_FP32_MIN, f.isa);
    for (int k = 0; k < 2; k++) trni_column_init(&s.bound[k], &bound[k], 0, f.isa);
    s.compare[0] = trni_alu_kernel_of(args->comp_op0, f.isa);
    s.compare[1] = trni_alu_kernel_of(args->comp_op1, f.isa);
    s.both = trni_alu_kernel_of(TRN_ALU_LOGICAL_AND, f.isa);
    s.start = args->range_start;
    trni_accumulation_init(&a, &r, &f);
    return trni_produce_all(trni_range_produce, &s, &f, &a);
}

/* ---- select_reduce ---- */

TRNI_FN const float *trni_select_produce(const void *plan, int64_t p, int64_t f, int64_t n, float *buffer)
{
    const trni_select_plan *s = (const trni_select_plan *)plan;
    uint32_t mask[TRNI_ROWS_CHUNK];
    trni_mask_read(&s->predicate, s->reverse, p, f, n, mask);
    return trni_select_chunk(s, p, f, n, mask, buffer);
}

TRNI_FN void trni_select_formats(trni_frame *f, const trn_select_reduce_args *args)
{
    const trn_format predicate = args->predicate.format, on_true = args->on_true.format;
    if (f->status) return;
    if (!trn_format_is_integer(predicate) || trni_is_word(predicate))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "predicate is %s; it takes int8, uint8, int16 or uint16",
                              trn_format_name(predicate));
    else if (on_true == TRN_TF32 || trni_is_word(on_true))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "on_true is %s, which select_reduce does not take",
                              trn_format_name(on_true));
    else if (args->reduce_op != TRN_ALU_BYPASS && args->reduce_op != TRN_ALU_MAXIMUM)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "reduce_op is %s; it takes maximum", trn_alu_name(args->reduce_op));
}

/* The operands of select_reduce but dst, which the frame has, opened. */
typedef struct trni_select_views {
    trni_view predicate, on_true, on_false;
} trni_select_views;

TRNI_DRIVER trn_status trni_select_check(trni_frame *f, const trn_select_reduce_args *args, const trni_registers *r,
                                         trni_select_views *v, trni_accumulation *a)
{
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "select_reduce");
    trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "select_reduce");
    trni_frame_dst(f, &args->dst);
    trni_frame_src(f, &v->predicate, &args->predicate, "predicate");
    trni_frame_src(f, &v->on_true, &args->on_true, "on_true");
    trni_select_formats(f, args);
    trni_frame_column(f, &v->on_false, &args->on_false_tile, "on_false_tile", f->partitions);
    trni_frame_beside(f, &v->on_false);
    trni_registers_frame(f, r, a, TRNI_CMD_IDLE | TRNI_CMD_REDUCE | TRNI_CMD_RESET_REDUCE);
    trni_registers_float(f, &a->res_view);
    trni_registers_apart(f, &a->res_view, &v->predicate);
    trni_registers_apart(f, &a->res_view, &v->on_true);
    trni_registers_apart(f, &a->res_view, &v->on_false);
    return f->status;
}

TRN_API trn_status trn_select_reduce(const trn_select_reduce_args *args)
{
    TRNI_ENTER(args);
    const trn_tensor none = trn_tensor_nd(TRN_F32, NULL, 0, NULL);
    const trni_registers r = { trni_cmd_or(args->reduce_cmd, TRN_REDUCE_CMD_IDLE),
                               TRN_ALU_MAXIMUM,
                               &args->reduce_res,
                               &none,
                               0,
                               false,
                               args->state };
    trni_frame f;
    trni_select_views v;
    trni_select_plan s;
    trni_accumulation a;
    if (trni_select_check(&f, args, &r, &v, &a)) return f.status;
    trni_select_init(&s, &f, &v.on_true);
    trni_column_init(&s.no, &v.on_false, args->on_false, f.isa);
    s.no_moves = args->on_false_tile.rank != 0 && trni_same_format(&args->dst, &args->on_false_tile);
    trni_span_init(&s.predicate, &v.predicate, f.isa);
    s.reverse = args->reverse_pred;
    trni_accumulation_init(&a, &r, &f);
    return trni_produce_all(trni_select_produce, &s, &f, &a);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_REDUCE_H */
