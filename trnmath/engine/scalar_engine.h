/* engine/scalar_engine.h - the instructions of the Scalar engine.
 * A part of trn_scalar_engine.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_SCALAR_ENGINE_H
#define TRNI_ENGINE_SCALAR_ENGINE_H

#include "act.h"
#include "alu.h"
#include "instruction.h"
#include "../data/tensor.h"

typedef enum trn_act_math { TRN_ACT_MATH_ENGINE = 0, TRN_ACT_MATH_SLEEF } trn_act_math;

/* Register p accumulates partition p of an instruction's tiles. All bytes zero is the state after power-up (assumed).
 * */
typedef struct trn_scalar_state {
    float registers[TRN_PARTITIONS];
} trn_scalar_state;

typedef struct trn_activation_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, free axes …] */
    union {
        trn_tensor src, data; /* two names of one: data is NKI's */
    };
    trn_act op;
    const float *scale_per_partition, *bias_per_partition; /* [P], or null */
    float scale, bias;                /* for all partitions; scale 0 means 1; bias 0 adds nothing */
    trn_tensor scale_tile, bias_tile; /* [P] or [P, 1]; F32, and any format but TF32; rank 0 = none */
    float param;                      /* prelu's slope */
    trn_tensor param_tile;            /* [P] or [P, 1]; rank 0 = none */
    float *reduce;                    /* [P]: the registers after the instruction; or null */
    trn_tensor reduce_res;            /* [P] or [P, 1]: the same, cast (nearest even); rank 0 = none */
    trn_reduce_cmd reduce_cmd;        /* 0: reset_reduce with reduce or reduce_res but no state; else idle */
    trn_scalar_state *state;          /* null: registers that nobody else sees */
    trn_act_math math;
    const trn_act_table *table; /* replaces the engine's own table of op */
    void *scratch;              /* null = allocated and freed here, where any is needed */
    size_t scratch_bytes;
} trn_activation_args;

typedef trn_activation_args trn_activation_reduce_args;

typedef struct trn_activate2_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, free axes …] */
    union {
        trn_tensor src, data; /* two names of one: data is NKI's */
    };
    trn_act op;
    trn_alu op0, op1;        /* (x op0 imm0) op1 imm1: multiply, add or subtract, or bypass */
    bool reverse0, reverse1; /* the immediate comes first */
    float imm0, imm1;
    trn_tensor imm0_tile, imm1_tile; /* [P] or [P, 1], of one format; rank 0 = none */
    float relu_param;                /* prelu's slope */
    trn_tensor relu_param_tile;
    trn_alu reduce_op; /* bypass stands for add; maximum, minimum, abs_max, abs_min */
    float *reduce;
    trn_tensor reduce_res;
    trn_reduce_cmd reduce_cmd;
    trn_scalar_state *state;
    trn_act_math math;
    const trn_act_table *table;
    void *scratch;
    size_t scratch_bytes;
} trn_activate2_args;

/* ---- activation ---- */

/* dst = f(src * scale + bias), and the sums of its partitions. TRN_ESHAPE: sizes differ; TRN_EFORMAT: a scale that is
 * not F32, a bias in TF32; TRN_ELIMIT: a tile is too large, at instruction level; TRN_EINVAL: an unknown op, command or
 * mode, a table that leads out of its buckets, dst overlaps an input other than in place; TRN_EUNSUPPORTED: what the
 * generation or this program lacks; TRN_ENOSPC: scratch. */
TRN_API trn_status trn_activation(const trn_activation_args *args);

/* activation whose registers begin at zero and are written out: reduce or reduce_res must be there, and .reduce_cmd is
 * not looked at. */
TRN_API trn_status trn_activation_reduce(const trn_activation_reduce_args *args);

/* Bytes that .scratch must hold for this call; 0 when nothing is tabulated, or the arguments are refused. */
TRN_API size_t trn_activation_scratch_bytes(const trn_activation_args *args);

/* ---- activate2 ---- */

/* dst = f((src op0 imm0) op1 imm1), and one reduction of each partition. Statuses as trn_activation's. */
TRN_API trn_status trn_activate2(const trn_activate2_args *args);

#if TRNI_BODIES

#include "alu_kernels.h"

/* ---- ideal functions ---- */

#if defined(TRN_USE_SLEEF)
#include <sleef.h>

#include "../simd/scalar_engine_sleef.h"
TRNI_FN bool trni_ideal_compiled(void) { return true; }
#else
TRNI_FN bool trni_ideal_compiled(void) { return false; }

TRNI_FN void trni_ideal_run(trn_act op, float *dst, const float *src, size_t n, trn_isa isa)
{
    (void)op, (void)dst, (void)src, (void)n, (void)isa; /* refused before */
}

#endif

/* ---- what comes before the function: kernels of one operation each, so that no compiler may fuse two ---- */

TRNI_INLINE void trni_scale_shift_body(float *y, const float *x, float s, float b, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++) y[i] = x[i] * s;
}
TRNI_DISPATCH_AVX2(trni_scale_shift, (float *y, const float *x, float s, float b, size_t n), (y, x, s, b, n))

/* s is 1 or -1: x + b, x - b (b negated) or b - x */
TRNI_INLINE void trni_plus_body(float *y, const float *x, float s, float b, size_t n)
{
    if (s < 0.0f)
        for (size_t i = 0; i < n; i++) y[i] = b - x[i];
    else
        for (size_t i = 0; i < n; i++) y[i] = x[i] + b;
}
TRNI_DISPATCH_AVX2(trni_plus, (float *y, const float *x, float s, float b, size_t n), (y, x, s, b, n))

TRNI_INLINE void trni_times_plus_body(float *y, const float *x, float s, float b, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = __builtin_fmaf(x[i], s, b);
}
TRNI_DISPATCH_AVX2(trni_times_plus, (float *y, const float *x, float s, float b, size_t n), (y, x, s, b, n))

/* ---- reductions: several partitions side by side, each in its own order ---- */

enum { TRNI_ACTIVATION_GANG = 8, TRNI_ACTIVATION_PIECE = 512 };

/* The operators as the arithmetic units have them; a sum's NaN is made canonical at the end. */
TRNI_INLINE float trni_reduce_step(trn_alu op, float a, float x)
{
    return op == TRN_ALU_ADD       ? a + x
           : op == TRN_ALU_MAXIMUM ? trni_alu_one_maximum(a, x)
           : op == TRN_ALU_MINIMUM ? trni_alu_one_minimum(a, x)
           : op == TRN_ALU_ABS_MAX ? trni_alu_one_abs_max(a, x)
                                   : trni_alu_one_abs_min(a, x);
}

/* The i-th of `gang` rows of n numbers each, into accumulator[i]. */
TRNI_INLINE void trni_accumulate_rows_body(trn_alu op, float *accumulator, const float *const *row, int gang, size_t n)
{
    if (gang == TRNI_ACTIVATION_GANG && op == TRN_ALU_ADD) {
        float a[TRNI_ACTIVATION_GANG];
        for (int j = 0; j < TRNI_ACTIVATION_GANG; j++) a[j] = accumulator[j];
        for (size_t i = 0; i < n; i++)
            for (int j = 0; j < TRNI_ACTIVATION_GANG; j++) a[j] += row[j][i];
        for (int j = 0; j < TRNI_ACTIVATION_GANG; j++) accumulator[j] = a[j];
        return;
    }
    for (int j = 0; j < gang; j++) {
        float a = accumulator[j];
        for (size_t i = 0; i < n; i++) a = trni_reduce_step(op, a, row[j][i]);
        accumulator[j] = a;
    }
}
TRNI_DISPATCH_AVX2(trni_accumulate_rows, (trn_alu op, float *accumulator, const float *const *row, int gang, size_t n),
                   (op, accumulator, row, gang, n))

/* ---- a call, settled ---- */

/* One operation with a number per partition, or one for all. */
typedef struct trni_activation_stage {
    trn_alu op; /* bypass, multiply, add or subtract */
    bool reverse;
    trni_column operand;
} trni_activation_stage;

typedef struct trni_activation {
    trni_frame frame;
    trn_act op;
    trn_act_math math;
    bool exact; /* no table: one operation */
    bool fused;
    trn_alu reduce_op;
    trn_reduce_cmd cmd;
    float *reduce;
    const trn_tensor *reduce_res;
    trn_scalar_state *state;
    void *codes; /* table of results, by the code of the source; or null */
    trni_act_plan act;
    trni_activation_stage stage[2];
    trni_column param;
    trni_view src_view, result_view; /* the latter where there is a reduce_res */
    trni_span dst, src, result;
} trni_activation;

/* f(…) of n numbers of partition p. y may be x. */
TRNI_FN void trni_activation_values(const trni_activation *a, int64_t p, float *y, const float *x, size_t n)
{
    const trni_activation_stage *first = &a->stage[0], *second = &a->stage[1];
    const trn_isa isa = a->frame.isa;
    float s = first->op == TRN_ALU_BYPASS ? 0.0f : trni_column_at(&first->operand, p);
    float b = second->op == TRN_ALU_BYPASS ? 0.0f : trni_column_at(&second->operand, p), sign = 1.0f;
    if (second->op == TRN_ALU_SUBTRACT) {
        if (second->reverse)
            sign = -1.0f;
        else
            b = -b;
    }
    if (a->fused && first->op == TRN_ALU_MULTIPLY && second->op != TRN_ALU_BYPASS) {
        trni_times_plus_for(isa)(y, x, sign * s, b, n);
        x = y;
    } else {
        if (first->op == TRN_ALU_MULTIPLY)
            trni_scale_shift_for(isa)(y, x, s, 0.0f, n);
        else if (first->op == TRN_ALU_SUBTRACT && !first->reverse)
            trni_plus_for(isa)(y, x, 1.0f, -s, n);
        else if (first->op != TRN_ALU_BYPASS)
            trni_plus_for(isa)(y, x, first->op == TRN_ALU_SUBTRACT ? -1.0f : 1.0f, s, n);
        if (first->op != TRN_ALU_BYPASS) x = y;
        if (second->op != TRN_ALU_BYPASS) trni_plus_for(isa)(y, x, sign, b, n);
        if (second->op != TRN_ALU_BYPASS) x = y;
    }
    const float param = a->param.varies ? trni_column_at(&a->param, p) : a->param.value;
    if (a->exact)
        trni_act_exact_for(isa)(a->op, param, y, x, n);
    else if (a->math == TRN_ACT_MATH_SLEEF)
        trni_ideal_run(a->op, y, x, n, isa);
    else
        trni_act_run(&a->act, y, x, n);
}

TRNI_FN void trni_activation_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_activation *a = (const trni_activation *)plan;
    float in[TRNI_SPAN_CHUNK], out[TRNI_SPAN_CHUNK];
    const float *x = trni_span_read(&a->src, p, f, n, in);
    float *y = trni_span_buffer(&a->dst, p, f, out);
    trni_activation_values(a, p, y, x, (size_t)n);
    trni_span_write(&a->dst, p, f, n, y);
}

/* ---- registers ---- */

TRNI_FN bool trni_activation_reduces(const trni_activation *a)
{
    return a->cmd == TRN_REDUCE_CMD_REDUCE || a->cmd == TRN_REDUCE_CMD_RESET_REDUCE;
}

/* What a register holds before the results are added to it. */
TRNI_FN float trni_activation_start(const trni_activation *a, int64_t p)
{
    const bool kept = a->cmd == TRN_REDUCE_CMD_REDUCE || a->cmd == TRN_REDUCE_CMD_IDLE;
    if (kept) return a->state ? a->state->registers[p] : 0.0f;
    return trni_float(trn_alu_info_of(a->reduce_op)->identity);
}

TRNI_FN void trni_activation_finish(const trni_activation *a, int64_t p, float value)
{
    value = trni_act_canonical(value);
    if (a->state && a->cmd != TRN_REDUCE_CMD_IDLE) a->state->registers[p] = value;
    if (a->reduce) a->reduce[p] = value;
    if (a->reduce_res->rank) trni_span_write(&a->result, p, 0, 1, &value);
}

/* Partitions [p, p + gang), chunk after chunk. */
TRNI_FN void trni_activation_gang(const void *plan, int64_t p, int64_t gang, void *room)
{
    (void)room;
    const trni_activation *a = (const trni_activation *)plan;
    float in[TRNI_ACTIVATION_PIECE], out[TRNI_ACTIVATION_GANG][TRNI_ACTIVATION_PIECE], value[TRNI_ACTIVATION_GANG];
    const float *row[TRNI_ACTIVATION_GANG];
    for (int j = 0; j < gang; j++) value[j] = trni_activation_start(a, p + j);
    for (int64_t f = 0, n; f < a->frame.elements; f += n) {
        n = trni_min64(TRNI_ACTIVATION_PIECE, a->frame.elements - f);
        for (int j = 0; j < gang; j++) {
            const float *x = trni_span_read(&a->src, p + j, f, n, in);
            trni_activation_values(a, p + j, out[j], x, (size_t)n);
            trni_span_write(&a->dst, p + j, f, n, out[j]);
            row[j] = out[j];
        }
        trni_accumulate_rows_for(a->frame.isa)(a->reduce_op, value, row, (int)gang, (size_t)n);
    }
    for (int j = 0; j < gang; j++) trni_activation_finish(a, p + j, value[j]);
}

/* ---- tables of codes ---- */

enum { TRNI_ACTIVATION_FROM_BYTE = 1024, TRNI_ACTIVATION_FROM_HALF = 3 << 16 }; /* elements from which they pay */

/* Bytes of the table, or 0 when results depend on more than a code, or elements are too few. */
TRNI_FN size_t trni_activation_table_bytes(const trni_activation *a)
{
    const trni_view *dst = &a->frame.dst;
    const size_t bytes = a->src_view.size;
    const int64_t elements = a->frame.partitions * a->frame.elements;
    const bool varies = a->stage[0].operand.varies || a->stage[1].operand.varies || a->param.varies;
    if (bytes > 2 || varies || trni_activation_reduces(a) || (bytes == 2 && a->exact)) return 0;
    if (a->frame.how.rounding == TRN_STOCHASTIC && dst->t.format != TRN_F32) return 0;
    if (elements < (bytes == 1 ? TRNI_ACTIVATION_FROM_BYTE : TRNI_ACTIVATION_FROM_HALF)) return 0;
    return ((size_t)1 << 8 * bytes) * (dst->size == 4 ? 4 : 2);
}

TRNI_FN void trni_activation_tabulate(trni_activation *a)
{
    const size_t codes = (size_t)1 << 8 * a->src.bytes;
    for (size_t first = 0; first < codes; first += 256) {
        uint16_t code[256];
        float value[256];
        uint32_t made[256];
        for (size_t i = 0; i < 256; i++) {
            if (a->src.bytes == 1)
                ((unsigned char *)code)[i] = (unsigned char)i;
            else
                code[i] = (uint16_t)(first + i);
        }
        trni_decoder_run(&a->src.decoder, value, code, 256);
        trni_activation_values(a, 0, value, value, 256);
        if (a->dst.format == TRN_F32)
            memcpy(made, value, sizeof made);
        else
            trni_encoder_run(&a->dst.encoder, made, value, NULL, 256);
        for (size_t i = 0; i < 256; i++) { /* codes of a byte stand in 16 bits, as trni_lookup takes them */
            if (a->dst.bytes == 4)
                memcpy((char *)a->codes + 4 * (first + i), &made[i], 4);
            else if (a->dst.bytes == 2)
                memcpy((char *)a->codes + 2 * (first + i), (char *)made + 2 * i, 2);
            else
                ((uint16_t *)a->codes)[first + i] = ((unsigned char *)made)[i];
        }
    }
}

#define TRNI_TABULATED(name, result, entry, code)                                                                      \
    TRNI_FN void name(const void *table, void *dst, const void *src, size_t n)                                         \
    {                                                                                                                  \
        const entry *t = (const entry *)table;                                                                         \
        const code *x = (const code *)src;                                                                             \
        result *y = (result *)dst;                                                                                     \
        size_t i = 0;                                                                                                  \
        for (; i + 4 <= n; i += 4) {                                                                                   \
            const entry a = t[x[i]], b = t[x[i + 1]], c = t[x[i + 2]], d = t[x[i + 3]];                                \
            y[i] = (result)a;                                                                                          \
            y[i + 1] = (result)b;                                                                                      \
            y[i + 2] = (result)c;                                                                                      \
            y[i + 3] = (result)d;                                                                                      \
        }                                                                                                              \
        for (; i < n; i++) y[i] = (result)t[x[i]];                                                                     \
    }

TRNI_TABULATED(trni_tabulated_half_byte, unsigned char, uint16_t, trni_any16)
TRNI_TABULATED(trni_tabulated_half_half, trni_any16, uint16_t, trni_any16)
TRNI_TABULATED(trni_tabulated_half_word, trni_any32, uint32_t, trni_any16)
TRNI_TABULATED(trni_tabulated_byte_word, trni_any32, uint32_t, unsigned char)
#undef TRNI_TABULATED

TRNI_FN void trni_activation_look_up(const trni_activation *a, void *y, const void *x, size_t n)
{
    if (a->src.bytes == 1 && a->dst.bytes <= 2)
        trni_lookup_pick(a->dst.bytes, a->frame.isa)((uint16_t *)a->codes, y, x, n);
    else if (a->src.bytes == 1)
        trni_tabulated_byte_word(a->codes, y, x, n);
    else if (a->dst.bytes == 1)
        trni_tabulated_half_byte(a->codes, y, x, n);
    else if (a->dst.bytes == 2)
        trni_tabulated_half_half(a->codes, y, x, n);
    else
        trni_tabulated_half_word(a->codes, y, x, n);
}

TRNI_FN void trni_activation_tabulated_chunk(const void *plan, int64_t p, int64_t f, int64_t n)
{
    const trni_activation *a = (const trni_activation *)plan;
    uint32_t in[TRNI_SPAN_CHUNK], out[TRNI_SPAN_CHUNK];
    const void *x = trni_span_bits(&a->src, p, f, n, in);
    const trni_span_piece r = trni_span_run(&a->dst, p, f);
    const bool apart = r.at != (const char *)x && r.count >= n && r.step == (int64_t)a->dst.bytes;
    void *y = apart ? (void *)r.at : (void *)out;
    trni_activation_look_up(a, y, x, (size_t)n);
    if (!apart) trni_span_put(&a->dst, p, f, n, out);
}

/* ---- checks ---- */

TRNI_DRIVER void trni_activation_check_op(trni_activation *a, trn_act op, trn_act_math math, const trn_act_table *table)
{
    trni_frame *f = &a->frame;
    if (f->status) return;
    if (!trn_act_info_of(op))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "op %d is not an activation function", (int)op);
    else if (math != TRN_ACT_MATH_ENGINE && math != TRN_ACT_MATH_SLEEF)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "math %d is not one of trn_act_math", (int)math);
    else if (table && math != TRN_ACT_MATH_ENGINE)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "table is given, but math asks for the ideal %s", trn_act_name(op));
    else if (table)
        f->status = trn_act_table_check(table, f->how.error);
    else if (math == TRN_ACT_MATH_SLEEF && !trni_ideal_compiled())
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED,
                              "math is TRN_ACT_MATH_SLEEF, but this program was compiled without TRN_USE_SLEEF");
    else if (math == TRN_ACT_MATH_SLEEF && TRNI_X86 && !trn_isa_supported(TRN_ISA_AVX2))
        f->status =
            trni_fail(f->how.error, TRN_EUNSUPPORTED,
                      "math is TRN_ACT_MATH_SLEEF, but this host has no fused multiply-add, which SLEEF's needs");
    if (f->status) return;
    a->op = op;
    a->math = math;
    a->exact = !table && !trn_act_table_of(op).buckets;
}

TRNI_DRIVER void trni_activation_check_views(trni_activation *a, const trn_tensor *dst, const trn_tensor *src)
{
    trni_frame_engine(&a->frame, TRN_ENGINE_SCALAR, TRN_ENGINE_UNKNOWN, "activation");
    trni_frame_dst(&a->frame, dst);
    trni_frame_src(&a->frame, &a->src_view, src, "src");
}

/* What the caller says of a stage's operand: a tile, floats, or a number for all. */
typedef struct trni_activation_number {
    const char *name;
    const trn_tensor *tile;
    const float *floats; /* or NULL */
    float value;
} trni_activation_number;

/* The tile, or the floats as one. */
TRNI_FN trn_tensor trni_activation_tile(const trni_frame *f, const trni_activation_number *n)
{
    union {
        const float *in;
        void *data;
    } numbers = { n->floats };
    if (!n->floats) return *n->tile;
    return f->partitions ? trn_tensor_1d(TRN_F32, numbers.data, f->partitions) : trni_no_tensor();
}

/* The operands of both stages and of the function. */
TRNI_DRIVER void trni_activation_numbers(trni_activation *a, const trni_activation_number number[3])
{
    trni_frame *f = &a->frame;
    trni_column *const column[3] = { &a->stage[0].operand, &a->stage[1].operand, &a->param };
    for (int i = 0; i < 3; i++) {
        column[i]->varies = false;
        if (!f->status && number[i].floats && number[i].tile->rank)
            f->status = trni_fail(f->how.error, TRN_EINVAL, "%s_per_partition and %s_tile are both given",
                                  number[i].name, number[i].name);
    }
    for (int i = 0; i < 3 && !f->status; i++) {
        const trn_tensor tile = trni_activation_tile(f, &number[i]);
        trni_view view;
        trni_frame_column(f, &view, &tile, number[i].name, f->partitions);
        trni_frame_apart(f, &f->dst, &view);
        if (!f->status) trni_column_init(column[i], &view, number[i].value, f->isa);
    }
}

/* An output of the registers keeps away from dst and src. */
TRNI_FN void trni_activation_apart(trni_activation *a, const trni_view *out)
{
    trni_frame_apart(&a->frame, out, &a->frame.dst);
    trni_frame_apart(&a->frame, out, &a->src_view);
}

/* The registers' fields; `cmd` as the caller gave it. */
TRNI_DRIVER void trni_activation_check_reduce(trni_activation *a, trn_reduce_cmd cmd)
{
    trni_frame *f = &a->frame;
    const bool read = a->reduce || a->reduce_res->rank;
    if (f->status) return;
    a->cmd = cmd != TRN_REDUCE_CMD_DEFAULT ? cmd
             : read && !a->state           ? TRN_REDUCE_CMD_RESET_REDUCE
                                           : TRN_REDUCE_CMD_IDLE;
    if ((unsigned)cmd > TRN_REDUCE_CMD_RESET_REDUCE)
        f->status = trni_fail(f->how.error, TRN_EINVAL,
                              "reduce_cmd is %d; the Scalar engine takes idle, reset, reduce and "
                              "reset_reduce",
                              (int)cmd);
    else if (a->cmd == TRN_REDUCE_CMD_REDUCE && !a->state)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is reduce, but state, which holds the registers, is null");
    else if (a->state && f->partitions > TRN_PARTITIONS)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "dst has %lld partitions; a state has registers for %d",
                              (long long)f->partitions, TRN_PARTITIONS);
    if (a->reduce_res->rank) {
        trni_frame_tile(f, &a->result_view, a->reduce_res, "reduce_res", TRNI_OUTPUT, f->partitions, 1);
        trni_activation_apart(a, &a->result_view);
    }
    if (a->reduce && f->partitions) {
        const trn_tensor floats = trn_tensor_1d(TRN_F32, a->reduce, f->partitions);
        trni_view sums;
        (void)trni_view_known(&sums, &floats);
        sums.name = "reduce";
        trni_activation_apart(a, &sums);
    }
}

/* ---- running ---- */

/* Chunks, where results are made in dst from what stands in src: a function of 1024 numbers takes 200 ns, and what is
 * about it 40 (measured). */
enum { TRNI_ACTIVATION_IN_PLACE = 8 }; /* times TRNI_SPAN_CHUNK */

TRNI_FN int64_t trni_activation_pass(const trni_activation *a)
{
    const bool in_place = a->src.direct && a->dst.direct && !a->dst.stream;
    return (int64_t)TRNI_SPAN_CHUNK * (in_place ? (int)TRNI_ACTIVATION_IN_PLACE : 1);
}

TRNI_FN void trni_activation_open(trni_activation *a, const trn_act_table *table)
{
    trni_span_output(&a->dst, &a->frame.dst, &a->frame);
    trni_span_init(&a->src, &a->src_view, a->frame.isa);
    trn_act_table fine;
    if (!table && a->op == TRN_ACT_RSQRT && a->frame.numerics.rsqrt_buckets == 8) {
        fine = trni_act_power_of(TRN_ACT_RSQRT, 3);
        table = &fine;
    }
    if (a->math == TRN_ACT_MATH_ENGINE) trni_act_plan_init(&a->act, a->op, a->param.value, table, a->frame.isa);
    if (a->math == TRN_ACT_MATH_ENGINE && a->frame.partitions * a->frame.elements >= TRNI_ACT_NEAR_FROM)
        trni_act_plan_near(&a->act);
    if (!a->reduce_res->rank) return;
    trn_instruction nearest;
    memset(&nearest, 0, sizeof nearest);
    trni_span_init(&a->result, &a->result_view, a->frame.isa);
    trni_span_round(&a->result, &a->result_view, &nearest, 0);
}

/* One number for all of everything: partitions that follow each other are one. */
TRNI_FN void trni_activation_flatten(trni_activation *a)
{
    const bool varies = a->stage[0].operand.varies || a->stage[1].operand.varies || a->param.varies;
    if (varies || !trni_span_flat(&a->dst) || !trni_span_flat(&a->src)) return;
    trni_span_flatten(&a->dst);
    trni_span_flatten(&a->src);
    a->frame.elements *= a->frame.partitions;
    a->frame.partitions = 1;
}

TRNI_FN void trni_activation_elements(trni_activation *a)
{
    if (trni_activation_reduces(a)) {
        trni_partitions_each(a->frame.partitions, a->frame.elements, TRNI_ACTIVATION_GANG, trni_activation_gang, a);
        return;
    }
    const int64_t partitions = a->frame.partitions;
    trni_activation_flatten(a);
    if (a->codes) trni_activation_tabulate(a);
    trni_span_each_of(a->frame.partitions, a->frame.elements, trni_activation_pass(a),
                      a->codes ? trni_activation_tabulated_chunk : trni_activation_chunk, a);
    const bool told = a->state || a->reduce || a->reduce_res->rank; /* else empty partitions may be any number */
    for (int64_t p = 0; told && p < partitions; p++) trni_activation_finish(a, p, trni_activation_start(a, p));
}

/* A checked call. */
TRNI_FN trn_status trni_activation_run(trni_activation *a, const trn_act_table *table, void *scratch,
                                       size_t scratch_bytes)
{
    const size_t bytes = trni_activation_table_bytes(a);
    if (bytes && scratch && scratch_bytes < bytes)
        return trni_fail(a->frame.how.error, TRN_ENOSPC, "scratch_bytes = %zu but this call needs %zu", scratch_bytes,
                         bytes);
    a->codes = !bytes ? NULL : scratch ? scratch : malloc(bytes);
    if (bytes && !a->codes)
        return trni_fail(a->frame.how.error, TRN_ENOSPC, "could not allocate %zu bytes of scratch", bytes);
    const bool resets = a->cmd == TRN_REDUCE_CMD_RESET || a->cmd == TRN_REDUCE_CMD_RESET_REDUCE;
    if (a->state && resets)
        for (int p = 0; p < TRN_PARTITIONS; p++) a->state->registers[p] = trni_activation_start(a, p);
    if (a->frame.partitions) {
        trni_activation_open(a, table);
        trni_activation_elements(a);
    }
    if (bytes && !scratch) free(a->codes);
    return TRN_OK;
}

/* ---- activation ---- */

/* What Trainium1 cannot do, and formats. */
TRNI_DRIVER void trni_activation_check_bias(trni_activation *a, const trn_activation_args *args)
{
    trni_frame *f = &a->frame;
    const bool vector = args->bias_per_partition || args->bias_tile.rank,
               first = f->core && f->core->generation == TRN_TRAINIUM1;
    if (f->status) return;
    if (args->scale_tile.rank && args->scale_tile.format != TRN_F32)
        f->status = trni_fail(args->error, TRN_EFORMAT, "scale_tile is %s; scales are float32",
                              trn_format_name(args->scale_tile.format));
    else if (args->bias_tile.rank && args->bias_tile.format == TRN_TF32)
        f->status =
            trni_fail(args->error, TRN_EFORMAT, "bias_tile is tfloat32, the one format that a bias may not have");
    else if (first && args->op == TRN_ACT_RECIPROCAL && (vector || args->bias != 0.0f))
        f->status = trni_fail(args->error, TRN_EUNSUPPORTED, "reciprocal takes no bias on Trainium1");
    else if (first && !args->unlimited && !vector && args->bias != 0.0f)
        f->status =
            trni_fail(args->error, TRN_EUNSUPPORTED,
                      "bias is %g for all partitions; Trainium1 takes one per partition only", (double)args->bias);
    else if (vector && args->bias != 0.0f)
        f->status =
            trni_fail(args->error, TRN_EINVAL, "bias is %g, and there is one per partition too", (double)args->bias);
    else if ((args->scale_per_partition || args->scale_tile.rank) && args->scale != 0.0f)
        f->status =
            trni_fail(args->error, TRN_EINVAL, "scale is %g, and there is one per partition too", (double)args->scale);
}

TRNI_FN void trni_activation_resolve(trni_activation *a, const trn_activation_args *args)
{
    const trn_instruction how = trni_instruction_of(args);
    memset(a, 0, offsetof(trni_activation, act));
    a->reduce = args->reduce;
    a->reduce_res = &args->reduce_res;
    a->reduce_op = TRN_ALU_ADD;
    a->state = args->state;
    trni_frame_begin(&a->frame, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "activation");
    a->fused = a->frame.numerics.activation_fused;
    trni_activation_check_op(a, args->op, args->math, args->table);
    trni_activation_check_views(a, &args->dst, &args->src);
    trni_activation_check_bias(a, args);
    const float one = args->scale == 0.0f ? 1.0f : args->scale;
    const trni_activation_number number[3] = {
        { "scale", &args->scale_tile, args->scale_per_partition, one },
        { "bias", &args->bias_tile, args->bias_per_partition, args->bias },
        { "param_tile", &args->param_tile, NULL, args->param },
    };
    trni_activation_numbers(a, number);
    a->stage[0].op = a->stage[0].operand.varies || one != 1.0f ? TRN_ALU_MULTIPLY : TRN_ALU_BYPASS;
    a->stage[1].op = a->stage[1].operand.varies || args->bias != 0.0f ? TRN_ALU_ADD : TRN_ALU_BYPASS;
    a->stage[0].reverse = a->stage[1].reverse = false;
    trni_activation_check_reduce(a, args->reduce_cmd);
}

TRN_API trn_status trn_activation(const trn_activation_args *args)
{
    TRNI_ENTER(args);
    trni_activation a;
    trni_activation_resolve(&a, args);
    if (a.frame.status) return a.frame.status;
    return trni_activation_run(&a, args->table, args->scratch, args->scratch_bytes);
}

TRN_API trn_status trn_activation_reduce(const trn_activation_reduce_args *args)
{
    TRNI_ENTER(args);
    trn_activation_args a = *args;
    a.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE;
    if (!a.reduce && a.reduce_res.rank == 0)
        return trni_fail(a.error, TRN_EINVAL, "activation_reduce: reduce_res is missing");
    return trn_activation(&a);
}

TRN_API size_t trn_activation_scratch_bytes(const trn_activation_args *args)
{
    if (!args) return 0;
    trn_activation_args quiet = *args;
    trni_activation a;
    quiet.error = NULL;
    trni_activation_resolve(&a, &quiet);
    return a.frame.status ? 0 : trni_activation_table_bytes(&a);
}

/* ---- activate2 ---- */

/* The six pairs of operations. */
TRNI_FN bool trni_activate2_pair(trn_alu op0, trn_alu op1)
{
    if (op0 == TRN_ALU_MULTIPLY) return op1 == TRN_ALU_ADD || op1 == TRN_ALU_SUBTRACT || op1 == TRN_ALU_BYPASS;
    return (op0 == TRN_ALU_ADD || op0 == TRN_ALU_SUBTRACT || op0 == TRN_ALU_BYPASS) && op1 == TRN_ALU_BYPASS;
}

TRNI_DRIVER void trni_activate2_check(trni_activation *a, const trn_activate2_args *args)
{
    static const unsigned reductions = 1u << TRN_ALU_ADD | 1u << TRN_ALU_MAXIMUM | 1u << TRN_ALU_MINIMUM |
                                       1u << TRN_ALU_ABS_MAX | 1u << TRN_ALU_ABS_MIN;
    trni_frame *f = &a->frame;
    if (f->status) return;
    if (!trni_activate2_pair(args->op0, args->op1))
        f->status = trni_fail(args->error, TRN_EINVAL, "op0 %s with op1 %s is none of activate2's six pairs",
                              trn_alu_name(args->op0), trn_alu_name(args->op1));
    else if (args->reverse0 && args->op0 == TRN_ALU_BYPASS)
        f->status = trni_fail(args->error, TRN_EINVAL, "reverse0 is set, but op0 is bypass");
    else if (args->reverse1 && args->op1 == TRN_ALU_BYPASS)
        f->status = trni_fail(args->error, TRN_EINVAL, "reverse1 is set, but op1 is bypass");
    else if (args->imm0_tile.rank && args->imm1_tile.rank && args->imm0_tile.format != args->imm1_tile.format)
        f->status = trni_fail(args->error, TRN_EFORMAT, "imm0_tile is %s but imm1_tile is %s; they take one format",
                              trn_format_name(args->imm0_tile.format), trn_format_name(args->imm1_tile.format));
    else if ((unsigned)a->reduce_op >= TRN_ALU_COUNT || !(reductions >> a->reduce_op & 1u))
        f->status = trni_fail(args->error, TRN_EINVAL,
                              "reduce_op is %s; activate2 takes add, maximum, minimum, abs_max and "
                              "abs_min",
                              trn_alu_name(args->reduce_op));
}

TRNI_FN void trni_activate2_resolve(trni_activation *a, const trn_activate2_args *args)
{
    const trn_instruction how = trni_instruction_of(args);
    memset(a, 0, offsetof(trni_activation, act));
    a->reduce = args->reduce;
    a->reduce_res = &args->reduce_res;
    a->reduce_op = args->reduce_op == TRN_ALU_BYPASS ? TRN_ALU_ADD : args->reduce_op;
    a->state = args->state;
    trni_frame_begin(&a->frame, &how, TRN_TRAINIUM3, TRN_TRAINIUM3, "activate2");
    a->fused = a->frame.numerics.activation_fused;
    trni_activation_check_op(a, args->op, args->math, args->table);
    trni_activation_check_views(a, &args->dst, &args->src);
    trni_activate2_check(a, args);
    a->stage[0].op = args->op0;
    a->stage[1].op = args->op1;
    a->stage[0].reverse = args->reverse0;
    a->stage[1].reverse = args->reverse1;
    const trni_activation_number number[3] = {
        { "imm0_tile", &args->imm0_tile, NULL, args->imm0 },
        { "imm1_tile", &args->imm1_tile, NULL, args->imm1 },
        { "relu_param_tile", &args->relu_param_tile, NULL, args->relu_param },
    };
    trni_activation_numbers(a, number);
    trni_activation_check_reduce(a, args->reduce_cmd);
}

TRN_API trn_status trn_activate2(const trn_activate2_args *args)
{
    TRNI_ENTER(args);
    trni_activation a;
    trni_activate2_resolve(&a, args);
    if (a.frame.status) return a.frame.status;
    return trni_activation_run(&a, args->table, args->scratch, args->scratch_bytes);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_SCALAR_ENGINE_H */
