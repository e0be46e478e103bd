/* engine/vector_elementwise.h - the Vector engine element by element: arithmetic, bits, copies and constants.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         float x[2 * 3] = { 1, 2, 3, 4, 5, 6 };
 *         uint16_t y[2 * 3];
 *         trn_tensor_scalar_args args = { .dst = trn_tensor_2d(TRN_BF16, y, 2, 3) };
 *         args.data = trn_tensor_2d(TRN_F32, x, 2, 3);
 *         args.op0 = TRN_ALU_MULTIPLY;
 *         args.operand0 = 2.0f;
 *         args.op1 = TRN_ALU_ADD;
 *         args.operand1 = 1.0f;
 *         return trn_tensor_scalar(&args) == TRN_OK && y[2] == 0x40e0 ? 0 : 1;        // 2 * 3 + 1 = 7
 *     }
 *
 * DOES: nki.isa's tensor_tensor, tensor_scalar, scalar_tensor_tensor, tensor_copy, tensor_copy_predicated, memset and
 *     reciprocal. Operands are read as binary32 (I32 and U32 rounded to nearest even), each operator rounds once to
 *     binary32, and dst's format is reached by one cast: args.rounding, overflow as the format has it. Operators on
 *     bits work on raw codes of integers, dst and operands of one width.
 * DOES NOT: honour the flush flags of trn_numerics: subnormals are computed with. Reduce: engine/vector_reduce.h.
 *
 * Views are [P, free axes ...]: P partitions of F elements, the free axes in row-major order; the free axes of operands
 * may be cut differently. An instruction takes P <= 128, with .unlimited any. dst may be a source itself; anything else
 * that overlaps dst is TRN_EINVAL. Empty views are legal. A wrong argument is a status and a sentence, and nothing is
 * written. Thread counts and instruction sets do not change a bit.
 *
 * KNOWN FROM: NKI's pages of these instructions (documented: operands, formats, engines, generations, one cast in and
 *     one out). One rounding per operator, NaN and signed zeros: as engine/alu_kernels.h says (assumed).
 */
#ifndef TRNI_ENGINE_VECTOR_ELEMENTWISE_H
#define TRNI_ENGINE_VECTOR_ELEMENTWISE_H

#include "alu.h"
#include "instruction.h"
#include "../data/tensor.h"

/* ---- tensor_tensor ---- */

/* dst = data1 op data2. op: an operator with two operands; power runs on GpSimd. Three views of I32 or U32 run on
 * GpSimd too unless engine is VECTOR, exactly and modulo 2^32 (power: through binary32). Engines: VECTOR, GPSIMD. */
typedef struct trn_tensor_tensor_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data1, data2;
    trn_alu op;
} trn_tensor_tensor_args;

TRN_API trn_status trn_tensor_tensor(const trn_tensor_tensor_args *args);

/* ---- tensor_scalar ---- */

/* dst = (data op0 operand0) op1 operand1; reversed: operand0 op0 data, operand1 op1 (...). An operand is a number, or a
 * [P] or [P, 1] F32 tile with one per partition; for operators on bits it is bits0 or bits1 (their low bits, as many as
 * data has), or a tile of integers of data's width. op1 = 0: there is none; op0 = 0 passes data on. Both operators
 * work on numbers, or both on bits. Operators with one operand take data, whatever reverse says.
 * Engines: VECTOR; SCALAR (numbers): on Trainium2 multiply and add, multiply, or add, on Trainium3 all; GPSIMD
 * (numbers): all (assumed: the page says that engines differ, and not how); power and rsqrt run there alone. */
typedef struct trn_tensor_scalar_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu op1;
    float operand1;
    trn_tensor operand1_tile;
    bool reverse1;
    uint32_t bits0, bits1;
} trn_tensor_scalar_args;

TRN_API trn_status trn_tensor_scalar(const trn_tensor_scalar_args *args);

/* ---- scalar_tensor_tensor ---- */

/* dst = (data op0 operand0) op1 operand1, operand1 a tensor; reversed: operand0 op0 data, operand1 op1 (...). Operators
 * on numbers, op1 with two operands; op0 = 0 passes data on. operand0_tile may have any format (NKI's kernels pass
 * bfloat16 here; tensor_scalar takes float32 alone). Engine: VECTOR. */
typedef struct trn_scalar_tensor_tensor_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_alu op0;
    float operand0;
    trn_tensor operand0_tile;
    bool reverse0;
    trn_alu op1;
    trn_tensor operand1;
    bool reverse1;
} trn_scalar_tensor_tensor_args;

TRN_API trn_status trn_scalar_tensor_tensor(const trn_scalar_tensor_tensor_args *args);

/* ---- reciprocal ---- */

/* dst = 1 / data, correctly rounded to binary32 (assumed) and then cast. 1 / 0 is an infinity with the sign of the
 * zero. Engine: VECTOR. */
typedef struct trn_reciprocal_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
} trn_reciprocal_args;

TRN_API trn_status trn_reciprocal(const trn_reciprocal_args *args);

/* ---- tensor_copy ---- */

/* dst = src: bit by bit where the formats are one, else through binary32. Engines: VECTOR (default), GPSIMD, and SCALAR
 * from Trainium2 on (on Trainium1 its way is activation with copy). */
typedef struct trn_tensor_copy_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
} trn_tensor_copy_args;

TRN_API trn_status trn_tensor_copy(const trn_tensor_copy_args *args);

/* ---- tensor_copy_predicated ---- */

/* dst = src where predicate is not 0 (reverse_pred: where it is 0); elsewhere dst stays. predicate: U8, U16 or U32.
 * src has dst's format and is copied bit by bit; without one (rank 0), `value` is cast to dst. Engine: VECTOR. */
typedef struct trn_tensor_copy_predicated_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    float value;
    trn_tensor predicate;
    bool reverse_pred;
} trn_tensor_copy_predicated_args;

TRN_API trn_status trn_tensor_copy_predicated(const trn_tensor_copy_predicated_args *args);

/* ---- memset ---- */

/* dst = value, cast once per element; or, of a dst of integers, a whole number that binary32 need not hold. Engines:
 * VECTOR (default), GPSIMD. */
typedef struct trn_memset_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    float value;
    bool is_integer; /* the value is `integer`, which dst's format holds: else TRN_EINVAL, TRN_EFORMAT */
    int64_t integer;
} trn_memset_args;

TRN_API trn_status trn_memset(const trn_memset_args *args);

#if TRNI_BODIES

#include "alu_chain.h"
#include "alu_kernels.h"

/* ---- operators, checked ---- */

/* What a place in an instruction takes beside operators with two operands on numbers. */
enum {
    TRNI_OP_NONE = 1,    /* bypass */
    TRNI_OP_UNARY = 2,   /* one operand */
    TRNI_OP_BITS = 4,    /* operators on bits */
    TRNI_OP_GPSIMD = 8,  /* power and rsqrt */
    TRNI_OP_REDUCES = 16 /* and nothing but legal reductions */
};

/* nki.language has abs_max and abs_min from NeuronCore-v4 on; square and relu as operators too (documented). */
TRNI_FN trn_generation trni_op_since(trn_alu op)
{
    const bool late = op == TRN_ALU_SQUARE || op == TRN_ALU_RELU || op == TRN_ALU_ABS_MAX || op == TRN_ALU_ABS_MIN;
    return late ? TRN_TRAINIUM3 : TRN_TRAINIUM1;
}

/* What generation 0 stands for where these operators are asked for. */
TRNI_FN trn_generation trni_op_generation(trn_alu op0, trn_alu op1)
{
    return trni_op_since(op0) == TRN_TRAINIUM3 || trni_op_since(op1) == TRN_TRAINIUM3 ? TRN_TRAINIUM3 : TRN_TRAINIUM2;
}

TRNI_FN bool trni_op_on_gpsimd(trn_alu op) { return op == TRN_ALU_POWER || op == TRN_ALU_RSQRT; }

/* Why `op` may not stand here; NULL if it may. */
TRNI_FN const char *trni_op_fault(const trn_alu_info *info, unsigned takes)
{
    if (info->op == TRN_ALU_BYPASS) return takes & TRNI_OP_NONE ? NULL : "which computes nothing";
    if (info->op == TRN_ALU_AVERAGE) return "which only tensor_partition_reduce takes";
    if (info->kind == TRN_ALU_BITVEC && !(takes & TRNI_OP_BITS))
        return "an operator on bits, where it takes one on numbers";
    if (trni_op_on_gpsimd(info->op) && !(takes & TRNI_OP_GPSIMD)) return "which only the GpSimd engine executes";
    if ((takes & TRNI_OP_REDUCES) && !info->reduces) return "which is no legal reduction";
    if (info->operands == 1 && !(takes & TRNI_OP_UNARY)) return "which has one operand, where it takes two";
    return NULL;
}

TRNI_DRIVER void trni_frame_op(trni_frame *f, trn_alu op, const char *name, unsigned takes)
{
    if (f->status) return;
    const trn_alu_info *info = trn_alu_info_of(op);
    const char *fault = info ? trni_op_fault(info, takes) : NULL;
    if (!info)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s is %d, not an operator", name, (int)op);
    else if (fault)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s is %s, %s", name, info->name, fault);
    else if (f->core->generation < trni_op_since(op))
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "%s is %s, which %s does not have", name, info->name,
                              trn_generation_name(f->core->generation));
}

/* Both operators on numbers, or both on bits. */
TRNI_DRIVER void trni_frame_one_kind(trni_frame *f, trn_alu op0, trn_alu op1)
{
    if (f->status || op1 == TRN_ALU_BYPASS || op0 == TRN_ALU_BYPASS) return;
    if (trn_alu_info_of(op0)->kind != trn_alu_info_of(op1)->kind)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "op0 is %s and op1 is %s: one works on bits, the other on numbers",
                      trn_alu_name(op0), trn_alu_name(op1));
}

/* An operand that nothing reads is a mistake. */
TRNI_DRIVER void trni_frame_idle_operand(trni_frame *f, trn_alu op, const char *op_name, bool given, const char *name)
{
    if (f->status || !given || trn_alu_info_of(op)->operands == 2) return;
    f->status = trni_fail(f->how.error, TRN_EINVAL, "%s is %s, which takes one operand, but %s is given", op_name,
                          trn_alu_name(op), name);
}

/* A [P] or [P, 1] tile of F32 with an operand for each partition of dst. */
TRNI_DRIVER void trni_frame_operand(trni_frame *f, trni_view *v, const trn_tensor *tile, const char *name)
{
    trni_frame_column(f, v, tile, name, f->partitions);
    if (f->status || tile->rank == 0) return;
    if (tile->format != TRN_F32)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; it takes float32", name, v->info.name);
    trni_frame_beside(f, v);
}

/* Operators on bits: integers of dst's width. */
TRNI_DRIVER void trni_frame_bits(trni_frame *f, const trni_view *v)
{
    if (f->status || v->t.rank == 0) return;
    if (!trn_format_is_integer(v->t.format))
        f->status =
            trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; operators on bits take integers", v->name, v->info.name);
    else if (v->size != f->dst.size)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "%s is %s and dst %s: operators on bits take one width",
                              v->name, v->info.name, f->dst.info.name);
}

/* ---- numbers: up to two operators in a row ---- */

/* One operator and its second operand: a tensor, a number per partition, or one for all. */
typedef struct trni_stage {
    trn_alu op;
    trni_alu_kernel kernel;
    bool reverse, tensor;
    trni_span span;
    trni_column column;
    float wide[TRNI_SPAN_CHUNK]; /* a constant, as often as a chunk may need it */
} trni_stage;

TRNI_DRIVER void trni_stage_op(trni_stage *s, trn_alu op, bool reverse, trn_isa isa)
{
    s->op = op;
    s->kernel = trni_alu_kernel_of(op, isa);
    s->reverse = reverse && trn_alu_info_of(op)->operands == 2;
    s->tensor = false;
}

TRNI_DRIVER void trni_stage_tensor(trni_stage *s, trn_alu op, bool reverse, const trni_view *v, trn_isa isa)
{
    trni_stage_op(s, op, reverse, isa);
    s->tensor = true;
    s->column.varies = false;
    trni_span_init(&s->span, v, isa);
}

/* Chunks have at most `most` elements. `tile` as trni_column_init takes it. */
TRNI_DRIVER void trni_stage_column(trni_stage *s, trn_alu op, bool reverse, const trni_view *tile, float value,
                                   int64_t most, trn_isa isa)
{
    trni_stage_op(s, op, reverse, isa);
    trni_column_init(&s->column, tile, value, isa);
    if (!s->column.varies) trni_repeat_for(isa)(s->wide, value, (size_t)trni_min64(most, TRNI_SPAN_CHUNK));
}

/* The second operand of n elements. */
TRNI_FN const float *trni_stage_operand(const trni_stage *s, int64_t p, int64_t f, int64_t n, float *buffer)
{
    if (s->tensor) return trni_span_read(&s->span, p, f, n, buffer);
    if (!s->column.varies) return s->wide;
    trni_repeat_for(s->column.lanes.isa)(buffer, trni_column_at(&s->column, p), (size_t)n);
    return buffer;
}

/* r = x op operand; r may be x. */
TRNI_FN void trni_stage_run(const trni_stage *s, float *r, const float *x, int64_t p, int64_t f, int64_t n)
{
    float buffer[TRNI_SPAN_CHUNK];
    const float *y = trni_stage_operand(s, p, f, n, buffer);
    if (s->reverse)
        trni_alu_run(s->kernel, r, y, x, (size_t)n);
    else
        trni_alu_run(s->kernel, r, x, y, (size_t)n);
}

typedef struct trni_elementwise {
    trni_span dst, data;
    int stages;
    trni_stage stage[2];
    bool chained; /* all in one pass */
    trni_chain chain;
} trni_elementwise;

/* Results between two operators stay out of dst, which may be an operand of the second one. */
TRNI_FN void trni_elementwise_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_elementwise *e = (const trni_elementwise *)plan;
    float in[TRNI_SPAN_CHUNK], out[TRNI_SPAN_CHUNK];
    const float *x = trni_span_read(&e->data, p, f, n, in);
    for (int i = 0; i < e->stages; i++) {
        float *r = i + 1 == e->stages ? trni_span_buffer(&e->dst, p, f, out) : in;
        trni_stage_run(&e->stage[i], r, x, p, f, n);
        x = r;
    }
    trni_span_write(&e->dst, p, f, n, x);
}

/* ---- the same in one pass, where the formats are binary32 and bfloat16 ---- */

TRNI_FN bool trni_chain_reads(const trni_span *v)
{
    const bool whole = v->rank == 1 && v->axis[0].step == (int64_t)v->bytes;
    const bool aligned = ((uintptr_t)v->data | (uintptr_t)v->partition_step) % v->bytes == 0;
    return whole && aligned && (v->format == TRN_F32 || v->format == TRN_BF16);
}

/* After the stages are known. */
TRNI_DRIVER void trni_elementwise_chain(trni_elementwise *e)
{
    trni_chain *c = &e->chain;
    bool takes = e->stages > 0 && trni_chain_reads(&e->dst) && trni_chain_reads(&e->data) &&
                 (e->dst.format == TRN_F32 || e->dst.rounding == TRN_NEAREST_EVEN);
    c->from_half = e->data.format == TRN_BF16;
    c->to_half = e->dst.format == TRN_BF16;
    c->other_half = false;
    c->steps = e->stages;
    c->past = false;
    c->value[0] = c->value[1] = 0;
    c->step[1].op = TRN_ALU_BYPASS;
    c->step[1].reverse = c->step[1].tensor = false;
    for (int i = 0; i < e->stages; i++) {
        const trni_stage *s = &e->stage[i];
        c->step[i].op = s->op;
        c->step[i].reverse = s->reverse;
        c->step[i].tensor = s->tensor;
        takes = takes && trni_chain_takes(s->op) && (!s->tensor || trni_chain_reads(&s->span));
        if (s->tensor)
            c->other_half = s->span.format == TRN_BF16;
        else if (!s->column.varies)
            c->value[i] = s->column.value;
    }
    e->chained = takes;
}

TRNI_FN char *trni_span_at(const trni_span *v, int64_t p, int64_t f)
{
    return v->data + p * v->partition_step + f * (int64_t)v->bytes;
}

/* Results leave for memory straight from registers where lines begin with a chunk, else from a buffer. */
TRNI_FN void trni_chained_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_elementwise *e = (const trni_elementwise *)plan;
    const void *y = NULL;
    trni_chain c = e->chain;
    float out[TRNI_SPAN_CHUNK];
    char *to = trni_span_at(&e->dst, p, f);
    for (int i = 0; i < e->stages; i++) {
        if (e->stage[i].tensor)
            y = trni_span_at(&e->stage[i].span, p, f);
        else if (e->stage[i].column.varies)
            c.value[i] = trni_column_at(&e->stage[i].column, p);
    }
    c.past = e->dst.stream && (uintptr_t)to % 64 == 0;
    const bool buffered = e->dst.stream && !c.past;
    trni_chain_run(&c, e->dst.isa, buffered ? (void *)out : to, trni_span_at(&e->data, p, f), y, (size_t)n);
    if (buffered) trni_span_store(&e->dst, p, f, n, out);
}

/* Partitions that follow each other in memory are one, unless an operand goes by partition. */
TRNI_DRIVER void trni_elementwise_flatten(trni_elementwise *e)
{
    bool flat = trni_span_flat(&e->dst) && trni_span_flat(&e->data);
    for (int i = 0; i < e->stages; i++)
        flat = flat && !e->stage[i].column.varies && (!e->stage[i].tensor || trni_span_flat(&e->stage[i].span));
    if (!flat) return;
    trni_span_flatten(&e->dst);
    trni_span_flatten(&e->data);
    for (int i = 0; i < e->stages; i++)
        if (e->stage[i].tensor) trni_span_flatten(&e->stage[i].span);
}

/* After all checks: opens dst and the first operand. */
TRNI_DRIVER void trni_elementwise_open(trni_elementwise *e, const trni_frame *f, const trni_view *data)
{
    trni_span_output(&e->dst, &f->dst, f);
    trni_span_init(&e->data, data, f->isa);
    e->stages = 0;
}

TRNI_FN trn_status trni_elementwise_run(trni_elementwise *e)
{
    trni_elementwise_flatten(e);
    trni_elementwise_chain(e);
    trni_span_each(e->dst.partitions, e->dst.elements, e->chained ? trni_chained_chunk : trni_elementwise_chunk, e);
    return TRN_OK;
}

/* ---- bits: up to two operators in a row ---- */

typedef struct trni_bits_stage {
    const trni_bits_row *row;
    bool reverse, tensor, varies;
    trni_span span; /* a tensor, or one code per partition */
    uint32_t wide[TRNI_SPAN_CHUNK];
} trni_bits_stage;

typedef struct trni_bits_plan {
    trni_span dst, data;
    int stages;
    trni_bits_stage stage[2];
} trni_bits_plan;

TRNI_FN void trni_codes_fill(void *to, uint32_t code, size_t bytes, int64_t n)
{
    char *at = (char *)to;
    for (int64_t i = 0; i < n; i++) memcpy(at + i * (int64_t)bytes, &code, bytes); /* little endian */
}

TRNI_FN void trni_bits_stage_add(trni_bits_plan *b, trn_alu op, bool reverse, const trni_view *v, bool tensor,
                                 uint32_t code)
{
    if (op == TRN_ALU_BYPASS) return;
    trni_bits_stage *s = &b->stage[b->stages++];
    s->row = trni_bits_kernel_of(op, b->dst.bytes);
    s->reverse = reverse && trn_alu_info_of(op)->operands == 2;
    s->tensor = tensor;
    s->varies = !tensor && v->t.rank != 0;
    if (v->t.rank)
        trni_span_init(&s->span, v, b->dst.isa);
    else
        trni_codes_fill(s->wide, code, b->dst.bytes, TRNI_SPAN_CHUNK);
}

TRNI_FN const void *trni_bits_operand(const trni_bits_stage *s, int64_t p, int64_t f, int64_t n, void *buffer)
{
    if (s->tensor) return trni_span_bits(&s->span, p, f, n, buffer);
    if (!s->varies) return s->wide;
    uint32_t code = 0, one;
    memcpy(&code, trni_span_bits(&s->span, p, 0, 1, &one), s->span.bytes);
    trni_codes_fill(buffer, code, s->span.bytes, n);
    return buffer;
}

/* The kernels read elements where they should be aligned; a chunk that is not is copied first. */
TRNI_FN const void *trni_bits_aligned(const void *x, size_t bytes, int64_t n, void *buffer)
{
    return (uintptr_t)x % bytes == 0 ? x : memcpy(buffer, x, (size_t)n * bytes);
}

TRNI_FN void trni_bits_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_bits_plan *b = (const trni_bits_plan *)plan;
    const size_t bytes = b->dst.bytes;
    uint32_t in[TRNI_SPAN_CHUNK], other[TRNI_SPAN_CHUNK], out[TRNI_SPAN_CHUNK];
    const void *x = trni_bits_aligned(trni_span_bits(&b->data, p, f, n, in), bytes, n, in);
    for (int i = 0; i < b->stages; i++) {
        const trni_bits_stage *s = &b->stage[i];
        const void *y = trni_bits_aligned(trni_bits_operand(s, p, f, n, other), bytes, n, other);
        trni_bits_run(s->row, b->dst.isa, bytes, out, s->reverse ? y : x, s->reverse ? x : y, (size_t)n);
        x = out;
    }
    trni_span_put(&b->dst, p, f, n, x);
}

TRNI_FN void trni_bits_open(trni_bits_plan *b, const trni_frame *f, const trni_view *data)
{
    trni_span_init(&b->dst, &f->dst, f->isa);
    trni_span_init(&b->data, data, f->isa);
    b->stages = 0;
}

TRNI_FN trn_status trni_bits_all(trni_bits_plan *b)
{
    trni_span_each(b->dst.partitions, b->dst.elements, trni_bits_chunk, b);
    return TRN_OK;
}

/* ---- tensor_tensor ---- */

typedef struct trni_exact_plan {
    trni_span dst, x, y;
    trn_alu op;
    trni_signs signs;
} trni_exact_plan;

TRNI_FN void trni_exact_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_exact_plan *e = (const trni_exact_plan *)plan;
    uint32_t x[TRNI_SPAN_CHUNK], y[TRNI_SPAN_CHUNK], r[TRNI_SPAN_CHUNK];
    const void *a = trni_bits_aligned(trni_span_bits(&e->x, p, f, n, x), sizeof x[0], n, x);
    const void *b = trni_bits_aligned(trni_span_bits(&e->y, p, f, n, y), sizeof y[0], n, y);
    trni_exact_all_for(e->dst.isa)(e->op, r, (const uint32_t *)a, (const uint32_t *)b, e->signs, (size_t)n);
    trni_span_put(&e->dst, p, f, n, r);
}

TRNI_FN bool trni_is_word(trn_format format) { return format == TRN_I32 || format == TRN_U32; }

/* false: not on GpSimd's integers. */
TRNI_FN bool trni_tensor_tensor_exact(const trn_tensor_tensor_args *args, const trni_frame *f, const trni_view data[2])
{
    trni_exact_plan e;
    if (args->engine == TRN_ENGINE_VECTOR || !trni_is_word(args->dst.format) || !trni_is_word(args->data1.format) ||
        !trni_is_word(args->data2.format))
        return false;
    if (!trni_exact_has(args->op)) return false;
    e.op = args->op;
    trni_span_init(&e.dst, &f->dst, f->isa);
    trni_span_init(&e.x, &data[0], f->isa);
    trni_span_init(&e.y, &data[1], f->isa);
    e.signs.x = args->data1.format == TRN_I32 ? TRNI_F32_SIGN : 0;
    e.signs.y = args->data2.format == TRN_I32 ? TRNI_F32_SIGN : 0;
    trni_span_each(e.dst.partitions, e.dst.elements, trni_exact_chunk, &e);
    return true;
}

TRNI_FN trn_status trni_tensor_tensor_bits(trn_alu op, const trni_frame *f, const trni_view data[2])
{
    trni_bits_plan b;
    trni_bits_open(&b, f, &data[0]);
    trni_bits_stage_add(&b, op, false, &data[1], true, 0);
    return trni_bits_all(&b);
}

TRNI_DRIVER trn_status trni_tensor_tensor_check(const trn_tensor_tensor_args *args, trni_frame *f, trni_view data[2])
{
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(f, &how, trni_op_generation(args->op, TRN_ALU_BYPASS), TRN_TRAINIUM1, "tensor_tensor");
    trni_frame_op(f, args->op, "op", TRNI_OP_BITS | TRNI_OP_GPSIMD);
    trni_frame_engine(f, trni_op_on_gpsimd(args->op) ? TRN_ENGINE_GPSIMD : TRN_ENGINE_VECTOR,
                      trni_op_on_gpsimd(args->op) ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_GPSIMD, "tensor_tensor");
    trni_frame_dst(f, &args->dst);
    trni_frame_src(f, &data[0], &args->data1, "data1");
    trni_frame_src(f, &data[1], &args->data2, "data2");
    if (f->status || trn_alu_info_of(args->op)->kind == TRN_ALU_ARITHMETIC) return f->status;
    trni_frame_bits(f, &f->dst);
    trni_frame_bits(f, &data[0]);
    trni_frame_bits(f, &data[1]);
    return f->status;
}

TRN_API trn_status trn_tensor_tensor(const trn_tensor_tensor_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view data[2];
    trni_elementwise e;
    if (trni_tensor_tensor_check(args, &f, data) || trni_frame_empty(&f)) return f.status;
    if (trn_alu_info_of(args->op)->kind == TRN_ALU_BITVEC) return trni_tensor_tensor_bits(args->op, &f, data);
    if (trni_tensor_tensor_exact(args, &f, data)) return TRN_OK;
    trni_elementwise_open(&e, &f, &data[0]);
    trni_stage_tensor(&e.stage[e.stages++], args->op, false, &data[1], f.isa);
    return trni_elementwise_run(&e);
}

/* ---- tensor_scalar ---- */

/* Does ScalarE of Trainium2 have these operators? */
TRNI_FN bool trni_scalar_has(trn_alu op0, trn_alu op1)
{
    const bool adds = op1 == TRN_ALU_ADD || op1 == TRN_ALU_BYPASS;
    return (op0 == TRN_ALU_ADD && op1 == TRN_ALU_BYPASS) || (op0 == TRN_ALU_MULTIPLY && adds);
}

TRNI_FN void trni_tensor_scalar_on_scalar(trni_frame *f, const trn_tensor_scalar_args *args, bool bits)
{
    if (f->core->generation == TRN_TRAINIUM1)
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "tensor_scalar on engine scalar is not available on %s",
                              trn_generation_name(f->core->generation));
    else if (bits || (f->core->generation == TRN_TRAINIUM2 && !trni_scalar_has(args->op0, args->op1)))
        f->status = trni_fail(
            f->how.error, TRN_EUNSUPPORTED, "tensor_scalar with %s and %s does not run on engine scalar of %s",
            trn_alu_name(args->op0), trn_alu_name(args->op1), trn_generation_name(f->core->generation));
}

TRNI_FN void trni_tensor_scalar_engine(trni_frame *f, const trn_tensor_scalar_args *args, bool bits)
{
    if (f->status) return;
    const bool gpsimd = trni_op_on_gpsimd(args->op0) || trni_op_on_gpsimd(args->op1);
    const bool asked = !bits && args->engine == TRN_ENGINE_GPSIMD;
    const trn_engine own = gpsimd || asked ? TRN_ENGINE_GPSIMD : TRN_ENGINE_VECTOR;
    const trn_engine used = trni_frame_engine(f, own, gpsimd ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_SCALAR,
                                              "tensor_scalar with these operators");
    if (!f->status && used == TRN_ENGINE_SCALAR) trni_tensor_scalar_on_scalar(f, args, bits);
}

/* The operands of tensor_scalar, opened. */
typedef struct trni_scalar_views {
    trni_view data, tile[2];
    bool bits; /* what the operators work on */
} trni_scalar_views;

TRNI_FN void trni_tensor_scalar_operands(trni_frame *f, const trn_tensor_scalar_args *args, trni_scalar_views *v)
{
    const trn_tensor *const tile[2] = { &args->operand0_tile, &args->operand1_tile };
    static const char *const name[2] = { "operand0_tile", "operand1_tile" };
    if (f->status) return;
    trni_frame_idle_operand(f, args->op0, "op0", tile[0]->rank || (v->bits ? args->bits0 != 0 : args->operand0 != 0),
                            "operand0");
    trni_frame_idle_operand(f, args->op1, "op1", tile[1]->rank || (v->bits ? args->bits1 != 0 : args->operand1 != 0),
                            "operand1");
    if (!v->bits) {
        for (int i = 0; i < 2; i++) trni_frame_operand(f, &v->tile[i], tile[i], name[i]);
        return;
    }
    trni_frame_bits(f, &f->dst);
    trni_frame_bits(f, &v->data);
    for (int i = 0; i < 2; i++) {
        trni_frame_column(f, &v->tile[i], tile[i], name[i], f->partitions);
        trni_frame_bits(f, &v->tile[i]);
    }
    for (int i = 0; i < 2; i++) trni_frame_beside(f, &v->tile[i]);
}

TRNI_DRIVER trn_status trni_tensor_scalar_check(const trn_tensor_scalar_args *args, trni_frame *f, trni_scalar_views *v)
{
    const trn_instruction how = trni_instruction_of(args);
    const unsigned takes = TRNI_OP_NONE | TRNI_OP_UNARY | TRNI_OP_BITS | TRNI_OP_GPSIMD;
    trni_frame_begin(f, &how, trni_op_generation(args->op0, args->op1), TRN_TRAINIUM1, "tensor_scalar");
    trni_frame_op(f, args->op0, "op0", takes);
    trni_frame_op(f, args->op1, "op1", takes);
    trni_frame_one_kind(f, args->op0, args->op1);
    v->bits = !f->status && (trn_alu_info_of(args->op0)->kind == TRN_ALU_BITVEC ||
                             trn_alu_info_of(args->op1)->kind == TRN_ALU_BITVEC);
    trni_tensor_scalar_engine(f, args, v->bits);
    trni_frame_dst(f, &args->dst);
    trni_frame_src(f, &v->data, &args->data, "data");
    trni_tensor_scalar_operands(f, args, v);
    return f->status;
}

TRNI_FN trn_status trni_tensor_scalar_bits(const trn_tensor_scalar_args *args, const trni_frame *f,
                                           const trni_scalar_views *v)
{
    trni_bits_plan b;
    trni_bits_open(&b, f, &v->data);
    trni_bits_stage_add(&b, args->op0, args->reverse0, &v->tile[0], false, args->bits0);
    trni_bits_stage_add(&b, args->op1, args->reverse1, &v->tile[1], false, args->bits1);
    return trni_bits_all(&b);
}

TRN_API trn_status trn_tensor_scalar(const trn_tensor_scalar_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_elementwise e;
    trni_scalar_views v;
    if (trni_tensor_scalar_check(args, &f, &v) || trni_frame_empty(&f)) return f.status;
    if (v.bits) return trni_tensor_scalar_bits(args, &f, &v);
    trni_elementwise_open(&e, &f, &v.data);
    const int64_t most = f.partitions * f.elements;
    if (args->op0 != TRN_ALU_BYPASS)
        trni_stage_column(&e.stage[e.stages++], args->op0, args->reverse0, &v.tile[0], args->operand0, most, f.isa);
    if (args->op1 != TRN_ALU_BYPASS)
        trni_stage_column(&e.stage[e.stages++], args->op1, args->reverse1, &v.tile[1], args->operand1, most, f.isa);
    return trni_elementwise_run(&e);
}

/* ---- scalar_tensor_tensor ---- */

TRNI_DRIVER trn_status trni_scalar_tensor_tensor_check(const trn_scalar_tensor_tensor_args *args, trni_frame *f,
                                                       trni_view data[2], trni_view *tile)
{
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(f, &how, trni_op_generation(args->op0, args->op1), TRN_TRAINIUM1, "scalar_tensor_tensor");
    trni_frame_op(f, args->op0, "op0", TRNI_OP_NONE | TRNI_OP_UNARY);
    trni_frame_op(f, args->op1, "op1", 0);
    trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "scalar_tensor_tensor");
    trni_frame_dst(f, &args->dst);
    trni_frame_src(f, &data[0], &args->data, "data");
    trni_frame_src(f, &data[1], &args->operand1, "operand1");
    trni_frame_idle_operand(f, args->op0, "op0", args->operand0_tile.rank || args->operand0 != 0, "operand0");
    trni_frame_column(f, tile, &args->operand0_tile, "operand0_tile", f->partitions);
    trni_frame_beside(f, tile);
    return f->status;
}

TRN_API trn_status trn_scalar_tensor_tensor(const trn_scalar_tensor_tensor_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view data[2], tile;
    trni_elementwise e;
    if (trni_scalar_tensor_tensor_check(args, &f, data, &tile) || trni_frame_empty(&f)) return f.status;
    trni_elementwise_open(&e, &f, &data[0]);
    if (args->op0 != TRN_ALU_BYPASS)
        trni_stage_column(&e.stage[e.stages++], args->op0, args->reverse0, &tile, args->operand0,
                          f.partitions * f.elements, f.isa);
    trni_stage_tensor(&e.stage[e.stages++], args->op1, args->reverse1, &data[1], f.isa);
    return trni_elementwise_run(&e);
}

/* ---- reciprocal ---- */

TRN_API trn_status trn_reciprocal(const trn_reciprocal_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    trni_frame f;
    trni_view data;
    trni_elementwise e;
    trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "reciprocal");
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "reciprocal");
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &data, &args->data, "data");
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_elementwise_open(&e, &f, &data);
    trni_stage_column(&e.stage[e.stages++], TRN_ALU_RECIPROCAL, false, NULL, 0, f.partitions * f.elements, f.isa);
    return trni_elementwise_run(&e);
}

/* ---- tensor_copy ---- */

typedef struct trni_copy_plan {
    trni_span dst, src;
} trni_copy_plan;

TRNI_FN void trni_copy_bits_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_copy_plan *c = (const trni_copy_plan *)plan;
    uint32_t codes[TRNI_SPAN_CHUNK];
    trni_span_store(&c->dst, p, f, n, trni_span_bits(&c->src, p, f, n, codes));
}

/* Few enough for a pass between stores past the caches, so that memory does not wait for long (1.3 times, measured). */
enum { TRNI_COPY_PIECE = 256 };

TRNI_FN void trni_copy_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_copy_plan *c = (const trni_copy_plan *)plan;
    const int64_t piece = c->dst.stream ? (int64_t)TRNI_COPY_PIECE : n;
    float in[TRNI_SPAN_CHUNK];
    for (int64_t take; n > 0; f += take, n -= take) {
        take = trni_min64(piece, n);
        trni_span_write(&c->dst, p, f, take, trni_span_read(&c->src, p, f, take, in));
    }
}

TRNI_DRIVER trn_status trni_tensor_copy_check(const trn_tensor_copy_args *args, trni_frame *f, trni_view *src)
{
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "tensor_copy");
    if (!f->status && args->engine == TRN_ENGINE_SCALAR && f->core->generation == TRN_TRAINIUM1)
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED,
                              "tensor_copy on engine scalar is not available on %s; activation with copy is",
                              trn_generation_name(f->core->generation));
    if (args->engine != TRN_ENGINE_SCALAR) trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_GPSIMD, "tensor_copy");
    trni_frame_dst(f, &args->dst);
    trni_frame_src(f, src, &args->src, "src");
    return f->status;
}

TRN_API trn_status trn_tensor_copy(const trn_tensor_copy_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view src;
    trni_copy_plan c;
    if (trni_tensor_copy_check(args, &f, &src) || trni_frame_empty(&f)) return f.status;
    trni_span_output(&c.dst, &f.dst, &f);
    trni_span_init(&c.src, &src, f.isa);
    if (trni_span_flat(&c.dst) && trni_span_flat(&c.src)) {
        trni_span_flatten(&c.dst);
        trni_span_flatten(&c.src);
    }
    trni_span_each(c.dst.partitions, c.dst.elements,
                   trni_same_format(&args->dst, &args->src) ? trni_copy_bits_chunk : trni_copy_chunk, &c);
    return TRN_OK;
}

/* ---- tensor_copy_predicated ---- */

/* mask[i] = ~0 where code i, zero or not, is what is asked for. */
TRNI_INLINE void trni_mask_body(uint32_t *__restrict mask, const void *codes, size_t bytes, bool zero, size_t n)
{
    const uint32_t flip = 0u - (uint32_t)zero;
    const uint8_t *a = (const uint8_t *)codes;
    const uint16_t *b = (const uint16_t *)codes;
    const uint32_t *c = (const uint32_t *)codes;
    if (bytes == 1)
        for (size_t i = 0; i < n; i++) mask[i] = (0u - (uint32_t)(a[i] != 0)) ^ flip;
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++) mask[i] = (0u - (uint32_t)(b[i] != 0)) ^ flip;
    else
        for (size_t i = 0; i < n; i++) mask[i] = (0u - (uint32_t)(c[i] != 0)) ^ flip;
}

TRNI_DISPATCH(trni_mask, (uint32_t *__restrict mask, const void *codes, size_t bytes, bool zero, size_t n),
              (mask, codes, bytes, zero, n))

/* r = x where mask, else y; elements of 1, 2 or 4 bytes. */
#define TRNI_CHOOSE(type)                                                                                              \
    TRNI_ELEMENTWISE                                                                                                   \
    for (size_t i = 0; i < n; i++)                                                                                     \
    ((type *)r)[i] = (type)((((const type *)x)[i] & mask[i]) | (((const type *)y)[i] & ~mask[i]))

TRNI_INLINE void trni_choose_body(void *r, const uint32_t *mask, const void *x, const void *y, size_t bytes, size_t n)
{
    if (bytes == 1) {
        TRNI_CHOOSE(uint8_t);
    } else if (bytes == 2) {
        TRNI_CHOOSE(uint16_t);
    } else {
        TRNI_CHOOSE(uint32_t);
    }
}

#undef TRNI_CHOOSE

TRNI_DISPATCH(trni_choose, (void *r, const uint32_t *mask, const void *x, const void *y, size_t bytes, size_t n),
              (r, mask, x, y, bytes, n))

typedef struct trni_predicated_plan {
    trni_span dst, src, predicate;
    bool moves, reverse; /* moves: src is there */
    trni_constant constant;
} trni_predicated_plan;

/* A predicate's mask of a chunk. */
TRNI_FN void trni_mask_read(const trni_span *v, bool zero, int64_t p, int64_t f, int64_t n, uint32_t *mask)
{
    uint32_t codes[TRNI_SPAN_CHUNK];
    const void *bits = trni_bits_aligned(trni_span_bits(v, p, f, n, codes), v->bytes, n, codes);
    trni_mask_for(v->isa)(mask, bits, v->bytes, zero, (size_t)n);
}

TRNI_FN void trni_predicated_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_predicated_plan *c = (const trni_predicated_plan *)plan;
    const size_t bytes = c->dst.bytes;
    uint32_t mask[TRNI_SPAN_CHUNK], fresh[TRNI_SPAN_CHUNK], old[TRNI_SPAN_CHUNK];
    trni_mask_read(&c->predicate, c->reverse, p, f, n, mask);
    const void *y = trni_bits_aligned(trni_span_bits(&c->dst, p, f, n, old), bytes, n, old);
    const void *x = c->moves ? trni_bits_aligned(trni_span_bits(&c->src, p, f, n, fresh), bytes, n, fresh)
                             : trni_constant_codes(&c->constant, &c->dst, p, f, n, fresh);
    trni_choose_for(c->dst.isa)(fresh, mask, x, y, bytes, (size_t)n);
    trni_span_put(&c->dst, p, f, n, fresh);
}

TRNI_DRIVER trn_status trni_predicated_check(const trn_tensor_copy_predicated_args *args, trni_frame *f, trni_view *src,
                                             trni_view *predicate)
{
    const trn_instruction how = trni_instruction_of(args);
    const trn_format format = args->predicate.format;
    trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "tensor_copy_predicated");
    trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "tensor_copy_predicated");
    trni_frame_dst(f, &args->dst);
    if (args->src.rank) trni_frame_src(f, src, &args->src, "src");
    trni_frame_src(f, predicate, &args->predicate, "predicate");
    if (!f->status && format != TRN_U8 && format != TRN_U16 && format != TRN_U32)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "predicate is %s; it takes uint8, uint16 or uint32",
                              trn_format_name(format));
    if (!f->status && args->src.rank && !trni_same_format(&args->dst, &args->src))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "src is %s and dst %s; they share one format",
                              trn_format_name(args->src.format), trn_format_name(args->dst.format));
    return f->status;
}

TRN_API trn_status trn_tensor_copy_predicated(const trn_tensor_copy_predicated_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    trni_view src, predicate;
    trni_predicated_plan c;
    if (trni_predicated_check(args, &f, &src, &predicate) || trni_frame_empty(&f)) return f.status;
    trni_span_output(&c.dst, &f.dst, &f);
    trni_span_init(&c.predicate, &predicate, f.isa);
    c.moves = args->src.rank != 0;
    c.reverse = args->reverse_pred;
    if (c.moves)
        trni_span_init(&c.src, &src, f.isa);
    else
        trni_constant_init(&c.constant, &c.dst, args->value);
    trni_span_each(c.dst.partitions, c.dst.elements, trni_predicated_chunk, &c);
    return TRN_OK;
}

/* ---- memset ---- */

typedef struct trni_memset_plan {
    trni_span dst;
    trni_constant constant;
} trni_memset_plan;

TRNI_FN void trni_memset_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_memset_plan *m = (const trni_memset_plan *)plan;
    uint32_t codes[TRNI_SPAN_CHUNK];
    trni_span_store(&m->dst, p, f, n, trni_constant_codes(&m->constant, &m->dst, p, f, n, codes));
}

/* Does a dst of this format hold the integer? `bits`: of its codes. */
TRNI_DRIVER trn_status trni_memset_integer(const trn_memset_args *args)
{
    const trn_format format = args->dst.format;
    if (!trn_format_is_integer(format))
        return trni_fail(args->error, TRN_EFORMAT, "integer is given, and dst is %s, no format of integers",
                         trn_format_name(format));
    const int bits = trn_format_bits(format);
    const bool minus = trn_format_info_of(format)->kind == TRN_KIND_SIGNED;
    const int64_t low = minus ? -((int64_t)1 << (bits - 1)) : 0, high = low + ((int64_t)1 << bits) - 1;
    if (args->integer >= low && args->integer <= high) return TRN_OK;
    return trni_fail(args->error, TRN_EINVAL, "integer is %lld; %s holds %lld to %lld", (long long)args->integer,
                     trn_format_name(format), (long long)low, (long long)high);
}

/* The constant's codes are those of an integer: `bytes` each. */
TRNI_FN void trni_memset_codes(trni_constant *c, int64_t integer, size_t bytes)
{
    for (size_t i = 0; i < TRNI_SPAN_CHUNK; i++)
        for (size_t b = 0; b < bytes; b++) /* the lowest first, as in the machine's memory */
            ((uint8_t *)c->codes)[i * bytes + b] = (uint8_t)((uint64_t)integer >> (8 * b));
    c->same = true;
}

TRN_API trn_status trn_memset(const trn_memset_args *args)
{
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    trni_frame f;
    trni_memset_plan m;
    trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "memset");
    trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_GPSIMD, "memset");
    trni_frame_dst(&f, &args->dst);
    if (!f.status && args->is_integer) f.status = trni_memset_integer(args);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_output(&m.dst, &f.dst, &f);
    if (trni_span_flat(&m.dst)) trni_span_flatten(&m.dst);
    if (args->is_integer)
        trni_memset_codes(&m.constant, args->integer, m.dst.bytes);
    else
        trni_constant_init(&m.constant, &m.dst, args->value);
    trni_span_each(m.dst.partitions, m.dst.elements, trni_memset_chunk, &m);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_ELEMENTWISE_H */
