/* core/core_table.h - what the rows of core_rows.h mean, and the functions that some of them need.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: makes a table of the rows (but not of the instructions: a program compiles only those that it calls), and has
 *     the few functions that rows need: which engine, by operators and memories; what is special about cost; which
 *     elements are written where data decide that.
 * DOES NOT: check, run or time (core/core_run.h does, the same way for all rows).
 *
 * KNOWN FROM: NKI's instruction pages, for memories and engines (documented); machine/engine_cycles.h for costs.
 */
#ifndef TRNI_CORE_CORE_TABLE_H
#define TRNI_CORE_CORE_TABLE_H

#include "core_hbm.h"
#include "core_rows.h"
#include "../engine/dma.h"
#include "../machine/cost.h"
#include "../engine/gpsimd_engine.h"
#include "../array/sparse.h"
#include "../array/tensor_engine.h"
#include "../engine/vector_elementwise.h"
#include "../engine/vector_reduce.h"
#include "../engine/vector_search.h"
#include "../engine/vector_statistics.h"
#include "../engine/vector_move.h"
#include "../engine/vector_random.h"

/* ---- a row ---- */

enum { TRNI_PARTS = 7, TRNI_CORE_OPERANDS = 24 };

typedef struct trni_order trni_order;

typedef struct trni_issue {
    trn_core *core;
    const trni_order *order;
    void *args; /* the core's copy */
    trn_engine engine;
    int count;
    trni_core_operand operand[TRNI_CORE_OPERANDS];
    int parts;     /* of the core's room for views that are used */
    bool poisoned; /* it reads elements that nothing has written, and carries them: core/core_poison.h */
    double ready_s, start_s, end_s, cycles, seconds;
} trni_issue;

typedef struct trni_part {
    const char *name;
    size_t offset; /* of a trn_tensor in the args */
    unsigned role;
} trni_part;

/* What becomes of elements that nothing has written: core/core_poison.h. */
typedef enum trni_carry {
    TRNI_CARRY_STRICT = 0, /* every element that is read has to be written */
    TRNI_CARRY_ELEMENTS,   /* element k of dst comes from element k of data, and from its partition's of columns */
    TRNI_CARRY_DATA,       /* the same, of data alone: columns and predicates choose, and have to be written */
    TRNI_CARRY_CHOSEN,     /* the same where the predicate holds; elsewhere dst stays as it is */
    TRNI_CARRY_TURNED,     /* element k of dst comes from element k of src with its axes turned */
    TRNI_CARRY_SPREAD,     /* element k of each partition of dst comes from element k of src, which has one */
    TRNI_CARRY_SHUFFLED,   /* partitions change places within their quadrants */
    TRNI_CARRY_SUMS,       /* what a partition's results are comes from that partition alone, all of it */
    TRNI_CARRY_PRODUCT     /* row m of dst comes from column m of stationary, column n from column n of moving */
} trni_carry;

struct trni_order {
    const char *name;
    trn_engine engine; /* by default */
    trn_rule rule[3];  /* on VectorE, ScalarE, GpSimdE; TRN_RULE_COUNT = not there */
    trni_carry carry;
    void (*more)(trni_issue *issue); /* optional: operands that no part names; reads that depend on flags */
    trn_engine (*choose)(const trni_issue *issue); /* optional: where the args leave it open; unknown = VectorE, or
                                                    * ScalarE as well */
    void (*tune)(const trni_issue *issue, trn_engine_work *work);         /* optional: what is special about its cost */
    void (*scatter)(trni_issue *issue, const trni_core_operand *operand); /* what it writes of TRNI_ROLE_SCATTERED */
    void (*tensor)(const trni_issue *issue, trn_tensor_instruction *i); /* TensorE: what to ask machine/tensor_cost.h */
    void (*dma)(const trni_issue *issue, trn_dma_work *work);           /* DMA: how much moves, and how */
    size_t vector_state, scalar_state, gpsimd_state;                    /* offsets of pointers in the args; 0 = none */
    size_t command; /* the offset of a trn_reduce_cmd in the args; 0 = none */
    trn_reduce_cmd command_default;
    trni_part part[TRNI_PARTS]; /* those with a name; outputs first */
};

/* Where a field of an instruction's args is that begin with TRN_INSTRUCTION_FIELDS. */
TRNI_FN trn_instruction *trni_issue_how(const trni_issue *issue) { return (trn_instruction *)issue->args; }

TRNI_FN void trni_issue_add(trni_issue *issue, const char *name, const trn_tensor *view, unsigned role)
{
    if (view->rank && issue->count < TRNI_CORE_OPERANDS)
        trni_core_operand_begin(&issue->operand[issue->count++], name, view, role);
}

/* Of VectorE, ScalarE or GpSimdE, which runs it. */
TRNI_FN trn_rule trni_issue_rule(const trni_issue *issue)
{
    static const int place[TRN_ENGINE_COUNT] = { -1, -1, 0, 1, 2, -1 };
    return issue->order->rule[place[issue->engine]];
}

/* ---- operands that no part names ---- */

/* An output that is an input too. */
TRNI_FN void trni_more_reads(trni_issue *issue, const trn_tensor *view, bool reads)
{
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].view == view && reads) issue->operand[i].role |= TRNI_ROLE_READ;
}

#define TRNI_MORE_ACCUMULATE(name)                                                                                     \
    TRNI_FN void trni_more_##name(trni_issue *issue)                                                                   \
    {                                                                                                                  \
        trn_##name##_args *a = (trn_##name##_args *)issue->args;                                                       \
        trni_more_reads(issue, &a->dst, a->accumulate);                                                                \
    }
TRNI_MORE_ACCUMULATE(nc_matmul)
TRNI_MORE_ACCUMULATE(nc_matmul_sparse)
#undef TRNI_MORE_ACCUMULATE

/* A scale tile is touched in four partitions of each quadrant: each is an operand in place of the whole, which is still
 * to lie within one tile that begins where tiles of so many partitions do, or 4, 8 or 12 partitions after that. */
TRNI_FN void trni_more_scales(trni_issue *issue, const trn_tensor *scale, const trn_tensor *data)
{
    trni_core_operand *s = NULL;
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].view == scale) s = &issue->operand[i];
    if (!s || !data->rank || !trni_mx_is_tile(scale->shape[0], data->shape[0])) return;
    if (trni_indirect_owns(issue->core, scale)) return;
    trni_core_operand whole = *s;
    whole.before = data->shape[0] - scale->shape[0];
    if (issue->core->failure.status || trni_core_operand_locate(issue->core, &whole, true) || !whole.allocation) return;
    for (int64_t row = 0; row < scale->shape[0] && issue->parts < TRNI_CORE_PARTS; row += TRNI_MX_QUADRANT) {
        trn_tensor *const view = &issue->core->part[issue->parts++];
        *view = trn_tensor_slice(*scale, 0, row, TRNI_MX_QUADRANT_SCALES);
        if (row)
            trni_issue_add(issue, whole.name, view, whole.role);
        else
            s->view = view;
        (row ? &issue->operand[issue->count - 1] : s)->before = whole.before;
    }
}

TRNI_FN void trni_more_nc_matmul_mx(trni_issue *issue)
{
    trn_nc_matmul_mx_args *a = (trn_nc_matmul_mx_args *)issue->args;
    trni_more_reads(issue, &a->dst, a->accumulate);
    trni_more_scales(issue, &a->stationary_scale, &a->stationary);
    trni_more_scales(issue, &a->moving_scale, &a->moving);
}

TRNI_FN void trni_more_quantize_mx(trni_issue *issue)
{
    trn_quantize_mx_args *a = (trn_quantize_mx_args *)issue->args;
    trni_more_scales(issue, &a->dst_scale, &a->src);
}

/* A side of a transfer that begins where a tile says: the operand is what the view becomes. The number is read here, so
 * it is found and asked for first. Where the transfer is skipped both sides are empty: nothing moves, and that takes no
 * time (assumed). */
TRNI_FN void trni_more_offset(trni_issue *issue, int side, const trn_dma_offset *o, trni_dma_side name, bool skips)
{
    trn_core *const core = issue->core;
    trni_core_operand value;
    bool moves = true;
    if (!o->value.rank || core->failure.status || side >= issue->count) return;
    trni_core_operand_begin(&value, name.offset, &o->value, TRNI_ROLE_READ);
    if (trni_core_operand_locate(core, &value, false) || trni_poison_decides(core, &value)) return;
    trn_tensor *const view = &core->part[issue->parts++];
    *view = *issue->operand[side].view;
    if (trni_dma_offset_place(o, view, name, skips, &moves, &core->failure)) return;
    for (int i = 0; i < 2 && !moves; i++) {
        core->part[i] = *issue->operand[i].view;
        core->part[i].shape[0] = 0;
        issue->operand[i].view = &core->part[i];
    }
    if (moves) issue->operand[side].view = view;
}

TRNI_FN void trni_more_dma_copy(trni_issue *issue)
{
    static const trni_dma_side dst = { "dst", "dst_offset" }, src = { "src", "src_offset" };
    trn_dma_copy_args *a = (trn_dma_copy_args *)issue->args;
    const bool skips = a->oob_mode == TRN_OOB_SKIP;
    trni_more_reads(issue, &a->dst, a->accumulate);
    for (int i = 0; i < issue->count; i++) {
        if (issue->operand[i].view == &a->src && a->src_index.rank) issue->operand[i].role |= TRNI_ROLE_GATHERED;
        if (issue->operand[i].view == &a->dst && a->dst_index.rank) issue->operand[i].role |= TRNI_ROLE_SCATTERED;
    }
    if (!a->dst.rank || !a->src.rank) return; /* the instruction will say so */
    trni_more_offset(issue, 0, &a->dst_offset, dst, skips);
    trni_more_offset(issue, 1, &a->src_offset, src, skips);
}

TRNI_FN void trni_more_dma_transpose(trni_issue *issue)
{
    trn_dma_transpose_args *a = (trn_dma_transpose_args *)issue->args;
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].view == &a->src && a->index.rank) issue->operand[i].role |= TRNI_ROLE_GATHERED;
}

TRNI_FN void trni_more_dma_compute(trni_issue *issue)
{
    static const char *const name[] = { "srcs[0]",  "srcs[1]",  "srcs[2]",  "srcs[3]", "srcs[4]",  "srcs[5]",
                                        "srcs[6]",  "srcs[7]",  "srcs[8]",  "srcs[9]", "srcs[10]", "srcs[11]",
                                        "srcs[12]", "srcs[13]", "srcs[14]", "srcs[15]" };
    trn_dma_compute_args *a = (trn_dma_compute_args *)issue->args;
    const unsigned gathered = TRNI_ROLE_READ | (a->index.rank && !a->scatter ? (unsigned)TRNI_ROLE_GATHERED : 0u);
    for (int i = 0; a->srcs && i < a->count && i < 16; i++)
        trni_issue_add(issue, name[i], &a->srcs[i], i == 0 ? gathered : (unsigned)TRNI_ROLE_READ);
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].view == &a->dst && a->index.rank && a->scatter)
            issue->operand[i].role |= TRNI_ROLE_SCATTERED;
}

TRNI_FN void trni_more_gpsimd_custom(trni_issue *issue)
{
    static const char *const dst[] = { "dst[0]", "dst[1]", "dst[2]", "dst[3]" };
    static const char *const src[] = { "src[0]", "src[1]", "src[2]", "src[3]", "src[4]", "src[5]", "src[6]", "src[7]" };
    trn_gpsimd_custom_args *a = (trn_gpsimd_custom_args *)issue->args;
    for (int i = 0; i < a->dsts && i < 4; i++) trni_issue_add(issue, dst[i], &a->dst[i], TRNI_ROLE_WRITE);
    for (int i = 0; i < a->srcs && i < 8; i++) trni_issue_add(issue, src[i], &a->src[i], TRNI_ROLE_READ);
}

/* The host's arrays are no place that an engine reads, and the registers of a core outlive an instruction. */
TRNI_FN void trni_more_scalar(trni_issue *issue, const void *host, const char *field, bool reduces, bool own_registers,
                              trn_reduce_cmd *cmd)
{
    if (host)
        trni_fail(&issue->core->failure, TRN_EINVAL, "%s is an array of the host; engines read tiles: see %s", field,
                  "scale_tile, bias_tile, reduce_res");
    if (*cmd == TRN_REDUCE_CMD_DEFAULT && reduces && !own_registers) *cmd = TRN_REDUCE_CMD_RESET_REDUCE;
}

TRNI_FN void trni_more_activation(trni_issue *issue)
{
    trn_activation_args *a = (trn_activation_args *)issue->args;
    const void *host = a->scale_per_partition  ? (const void *)a->scale_per_partition
                       : a->bias_per_partition ? (const void *)a->bias_per_partition
                                               : (const void *)a->reduce;
    trni_more_scalar(issue, host,
                     a->scale_per_partition  ? "scale_per_partition"
                     : a->bias_per_partition ? "bias_per_partition"
                                             : "reduce",
                     a->reduce_res.rank > 0, a->state != NULL, &a->reduce_cmd);
}

TRNI_FN void trni_more_activate2(trni_issue *issue)
{
    trn_activate2_args *a = (trn_activate2_args *)issue->args;
    trni_more_scalar(issue, a->reduce, "reduce", a->reduce_res.rank > 0, a->state != NULL, &a->reduce_cmd);
}

/* ---- who ---- */

TRNI_FN trn_engine trni_choose_tensor_tensor(const trni_issue *issue)
{
    const trn_tensor_tensor_args *a = (const trn_tensor_tensor_args *)issue->args;
    if (trni_op_on_gpsimd(a->op)) return TRN_ENGINE_GPSIMD;
    for (int i = 0; i < issue->count; i++)
        if (!trni_is_word(issue->operand[i].view->format) ||
            (issue->operand[i].allocation && issue->operand[i].space == TRN_SPACE_PSUM))
            return TRN_ENGINE_VECTOR;
    return TRN_ENGINE_GPSIMD;
}

/* Unknown: VectorE or ScalarE, which both take it. */
TRNI_FN trn_engine trni_choose_tensor_scalar(const trni_issue *issue)
{
    const trn_tensor_scalar_args *a = (const trn_tensor_scalar_args *)issue->args;
    if (trni_op_on_gpsimd(a->op0) || trni_op_on_gpsimd(a->op1)) return TRN_ENGINE_GPSIMD;
    const bool either = issue->core->spec->generation > TRN_TRAINIUM1 && trni_scalar_has(a->op0, a->op1);
    return either ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_VECTOR;
}

TRNI_FN trn_engine trni_choose_tensor_copy(const trni_issue *issue)
{
    return issue->core->spec->generation > TRN_TRAINIUM1 ? TRN_ENGINE_UNKNOWN : TRN_ENGINE_VECTOR;
}

/* ---- what is special about cost ---- */

TRNI_FN void trni_tune_tensor_tensor(const trni_issue *issue, trn_engine_work *work)
{
    const trn_tensor_tensor_args *a = (const trn_tensor_tensor_args *)issue->args;
    work->simple = a->op == TRN_ALU_ADD || a->op == TRN_ALU_SUBTRACT || a->op == TRN_ALU_MULTIPLY;
    if (trni_op_on_gpsimd(a->op)) work->rule = TRN_RULE_GPSIMD_POWER;
}

TRNI_FN void trni_tune_tensor_scalar(const trni_issue *issue, trn_engine_work *work)
{
    if (trni_choose_tensor_scalar(issue) == TRN_ENGINE_GPSIMD) work->rule = TRN_RULE_GPSIMD_POWER;
}

TRNI_FN void trni_tune_scalar_tensor_tensor(const trni_issue *issue, trn_engine_work *work)
{
    const trn_scalar_tensor_tensor_args *a = (const trn_scalar_tensor_tensor_args *)issue->args;
    work->simple = a->op0 == TRN_ALU_SUBTRACT && a->op1 == TRN_ALU_MULTIPLY;
}

TRNI_FN void trni_tune_tensor_reduce(const trni_issue *issue, trn_engine_work *work)
{
    const trn_tensor_reduce_args *a = (const trn_tensor_reduce_args *)issue->args;
    work->simple = a->op == TRN_ALU_ADD || a->op == TRN_ALU_MAXIMUM;
}

TRNI_FN void trni_tune_memset(const trni_issue *issue, trn_engine_work *work)
{
    const trn_memset_args *a = (const trn_memset_args *)issue->args;
    work->zero = a->is_integer ? a->integer == 0 : a->value == 0;
}

TRNI_FN void trni_tune_activation(const trni_issue *issue, trn_engine_work *work)
{
    work->registers = ((const trn_activation_args *)issue->args)->reduce_res.rank > 0;
}

TRNI_FN void trni_tune_activate2(const trni_issue *issue, trn_engine_work *work)
{
    work->registers = ((const trn_activate2_args *)issue->args)->reduce_res.rank > 0;
}

/* As many elements as are written. */
TRNI_FN void trni_tune_output(const trni_issue *issue, trn_engine_work *work)
{
    work->elements = issue->operand[0].elements;
}

TRNI_FN void trni_tune_topk(const trni_issue *issue, trn_engine_work *work)
{
    work->elements = (double)((const trn_topk_args *)issue->args)->n;
    work->more_cycles = issue->operand[0].elements;
}

TRNI_FN void trni_tune_gpsimd_custom(const trni_issue *issue, trn_engine_work *work)
{
    const double cycles = ((const trn_gpsimd_custom_args *)issue->args)->cycles;
    work->more_cycles = cycles > 0 && cycles < HUGE_VAL ? cycles : 0;
}

/* ---- what is written, where data decide ---- */

/* Elements where the predicate holds. */
TRNI_FN void trni_scatter_predicated(trni_issue *issue, const trni_core_operand *operand)
{
    const trn_tensor_copy_predicated_args *a = (const trn_tensor_copy_predicated_args *)issue->args;
    const trni_memory *m = operand->memory;
    float buffer[TRNI_SPAN_CHUNK];
    trni_span dst, predicate;
    trni_span_known(&dst, &a->dst, TRN_ISA_PORTABLE);
    trni_span_known(&predicate, &a->predicate, TRN_ISA_PORTABLE);
    for (int64_t p = 0; p < dst.partitions; p++)
        for (int64_t f = 0; f < dst.elements; f++) {
            const bool holds = trni_span_read(&predicate, p, f, 1, buffer)[0] != 0.0f;
            const int64_t at = (int64_t)(trni_span_run(&dst, p, f).at - m->base);
            if (holds != a->reverse_pred) trni_core_operand_write_bytes(operand, at, (int64_t)dst.bytes);
        }
}

/* Partitions that the mask does not leave alone. */
TRNI_FN void trni_scatter_shuffled(trni_issue *issue, const trni_core_operand *operand)
{
    const trn_nc_stream_shuffle_args *a = (const trn_nc_stream_shuffle_args *)issue->args;
    trni_cells *cells = issue->core->cells;
    trni_cells_of(cells, operand->memory, operand->view, &operand->at);
    for (int64_t p = operand->at.p; p < operand->at.p_end; p++)
        if (a->shuffle_mask[(p - operand->at.p) % 32] == 255) cells->partition[p] = false;
    trni_core_operand_write_cells(issue->core, operand, false);
}

/* The first partition of each group of 16. */
TRNI_FN void trni_scatter_nonzero_with_count(trni_issue *issue, const trni_core_operand *operand)
{
    trni_cells *cells = issue->core->cells;
    trni_cells_of(cells, operand->memory, operand->view, &operand->at);
    for (int64_t p = operand->at.p; p < operand->at.p_end; p++)
        if ((p - operand->at.p) % TRNI_GPSIMD_GROUP) cells->partition[p] = false;
    trni_core_operand_write_cells(issue->core, operand, false);
}

/* Rows of dst's axis 0 that an index names. */
TRNI_FN void trni_scatter_rows(trni_issue *issue, const trni_core_operand *operand, const trn_tensor *index)
{
    trni_span rows;
    trni_span_known(&rows, index, TRN_ISA_PORTABLE);
    for (int64_t i = 0; i < rows.partitions * rows.elements; i++) {
        uint32_t row, code = 0;
        const void *at = trni_span_bits(&rows, i / rows.elements, i % rows.elements, 1, &code);
        memcpy(&row, at, sizeof row);
        if ((int64_t)row >= operand->view->shape[0]) continue; /* skipped: out of bounds */
        const trn_tensor one = trn_tensor_slice(*operand->view, 0, row, 1);
        if (!operand->memory) {
            trni_hbm_wrote((const trni_hbm *)(const void *)operand->allocation, &one);
            continue;
        }
        trni_core_operand part = *operand;
        trni_view v;
        part.view = &one;
        (void)trni_view_known(&v, &one);
        trni_core_operand_reach(&part, &v, operand->memory->base, operand->memory->pitch);
        trni_core_operand_write(issue->core, &part, false);
    }
}

TRNI_FN void trni_scatter_dma_copy(trni_issue *issue, const trni_core_operand *operand)
{
    trni_scatter_rows(issue, operand, &((const trn_dma_copy_args *)issue->args)->dst_index);
}

TRNI_FN void trni_scatter_dma_compute(trni_issue *issue, const trni_core_operand *operand)
{
    trni_scatter_rows(issue, operand, &((const trn_dma_compute_args *)issue->args)->index);
}

/* ---- TensorE: the question for machine/tensor_cost.h ---- */

TRNI_FN int trni_axis_size(const trn_tensor *t, int from_last)
{
    const int axis = t->rank - 1 - from_last;
    return axis >= 0 && t->shape[axis] < 1 << 20 ? (int)t->shape[axis] : 0;
}

TRNI_FN void trni_request_nc_matmul(const trni_issue *issue, trn_tensor_instruction *i)
{
    const trn_nc_matmul_args *a = (const trn_nc_matmul_args *)issue->args;
    const bool slow_rows = a->stationary.format == TRN_F8_E3M4 || a->moving.format == TRN_F8_E3M4;
    i->mode = a->stationary.format == TRN_I8 ? TRN_MODE_INT8 : a->is_transpose ? TRN_MODE_TRANSPOSE : TRN_MODE_PLAIN;
    i->k = (int)a->stationary.shape[0];
    if (a->double_row && slow_rows) { /* legal, but only E4M3 and E5M2 gain by it: two passes (assumed) */
        i->pack = 2;
    } else if (a->double_row) {
        i->mode = TRN_MODE_DOUBLE_ROW;
        i->k *= 2;
    }
    i->m = trni_axis_size(&a->stationary, 0);
    i->n = i->mode == TRN_MODE_TRANSPOSE ? 0 : trni_axis_size(&a->moving, 0);
    i->stationary_format = a->stationary.format;
    i->moving_format = a->moving.format;
    i->bf16_psum = a->dst.format == TRN_BF16 && trn_core_spec_of(a->generation)->bf16_psum;
    i->is_stationary_onezero = a->is_stationary_onezero;
    i->is_moving_onezero = a->is_moving_onezero;
    i->fp32r = a->numerics && a->numerics->fp32_mode == TRN_FP32_R && a->stationary.format == TRN_F32;
    i->tile_rows = a->tile_size.row;
    i->tile_columns = a->tile_size.column;
}

TRNI_FN void trni_request_nc_matmul_mx(const trni_issue *issue, trn_tensor_instruction *i)
{
    const trn_nc_matmul_mx_args *a = (const trn_nc_matmul_mx_args *)issue->args;
    i->mode = TRN_MODE_MX;
    i->k = (int)a->stationary.shape[0] * 4;
    i->m = trni_axis_size(&a->stationary, 1);
    i->n = trni_axis_size(&a->moving, 1);
    i->stationary_format = a->stationary.format;
    i->moving_format = a->moving.format;
    i->bf16_psum = a->dst.format == TRN_BF16;
    i->tile_rows = a->tile_size.row;
}

TRNI_FN void trni_request_nc_matmul_sparse(const trni_issue *issue, trn_tensor_instruction *i)
{
    const trn_nc_matmul_sparse_args *a = (const trn_nc_matmul_sparse_args *)issue->args;
    i->mode = TRN_MODE_SPARSE;
    i->k = (int)a->moving.shape[0];
    i->m = trni_axis_size(&a->stationary, 0);
    i->n = trni_axis_size(&a->moving, 0);
    i->stationary_format = a->stationary.format;
    i->moving_format = a->moving.format;
    i->bf16_psum = a->dst.format == TRN_BF16;
    if (a->stationary.format == TRN_F32 || a->moving.format == TRN_F32) { /* no rate is published: 4 passes (assumed) */
        i->stationary_format = i->moving_format = TRN_TF32;
        i->pack = 4;
    }
    i->sparse_m = a->pattern.m;
    i->sparse_n = a->pattern.n;
}

TRNI_FN void trni_request_nc_transpose(const trni_issue *issue, trn_tensor_instruction *i)
{
    const trn_nc_transpose_args *a = (const trn_nc_transpose_args *)issue->args;
    i->mode = TRN_MODE_TRANSPOSE;
    i->k = (int)a->data.shape[0];
    i->m = trni_axis_size(&a->data, 0);
    i->stationary_format = a->data.format;
}

/* A product with a row of ones for each piece that one bank of PSUM holds, by the width of its elements (whole numbers
 * as fractions of that width: assumed). The pages count on the ones, which halve the passes of F32; profiles of devices
 * do not show that. */
TRNI_FN void trni_request_partition_broadcast(const trni_issue *issue, trn_tensor_instruction *i)
{
    const trn_partition_broadcast_args *a = (const trn_partition_broadcast_args *)issue->args;
    const int elements = (int)issue->operand[1].elements, most = issue->core->spec->max_n;
    i->k = elements > 0;
    i->m = (int)a->dst.shape[0];
    i->pack = (elements + most - 1) / most;
    i->n = i->pack ? (elements + i->pack - 1) / i->pack : 0;
    i->stationary_format = i->moving_format = trn_format_bytes(a->dst.format) > 2 ? TRN_F32 : TRN_BF16;
    i->is_stationary_onezero = issue->core->args.pace != TRN_PACE_MEASURED;
}

/* ---- DMA: how much moves, and how ---- */

TRNI_FN const trni_core_operand *trni_issue_operand(const trni_issue *issue, const trn_tensor *view)
{
    for (int i = 0; i < issue->count; i++)
        if (issue->operand[i].view == view) return &issue->operand[i];
    return NULL;
}

/* An address that is known late: hardware makes descriptors of it, where there is such hardware and software is not
 * needed for other reasons. */
TRNI_FN trn_dge_mode trni_move_placed(const trni_issue *issue, trn_dge_mode mode, bool placed, bool needs_software)
{
    if (mode != TRN_DGE_UNKNOWN || !placed || needs_software) return mode;
    return issue->core->spec->generation < TRN_TRAINIUM2 ? TRN_DGE_SWDGE : TRN_DGE_HWDGE;
}

TRNI_FN void trni_move_mode(trn_dma_work *work, trn_dge_mode mode, bool needs_software)
{
    work->software = mode == TRN_DGE_SWDGE || (mode == TRN_DGE_UNKNOWN && needs_software);
    work->hardware = mode == TRN_DGE_HWDGE;
}

/* Elements that follow each other on both sides; an index takes row by row. */
TRNI_FN double trni_move_run(const trni_core_operand *s, bool by_rows)
{
    const double rows = by_rows && s->view->shape[0] > 0 ? s->elements / (double)s->view->shape[0] : s->elements;
    return fmin(rows, (double)s->run / (double)trn_format_bytes(s->view->format));
}

TRNI_FN void trni_move_between(const trni_core_operand *dst, const trni_core_operand *src, bool dst_rows, bool src_rows,
                               trn_dma_work *work)
{
    const double wide = fmax((double)trn_format_bytes(dst->view->format), (double)trn_format_bytes(src->view->format));
    work->bytes = fmin(dst->elements, src->elements) * wide;
    work->run_bytes = fmin(trni_move_run(dst, dst_rows), trni_move_run(src, src_rows)) * wide;
}

TRNI_FN void trni_move_dma_copy(const trni_issue *issue, trn_dma_work *work)
{
    const trn_dma_copy_args *a = (const trn_dma_copy_args *)issue->args;
    const trni_core_operand *dst = &issue->operand[0], *src = &issue->operand[1]; /* their views may have moved */
    const bool software = a->dst.format != a->src.format || a->dst_index.rank || a->src_index.rank;
    const bool placed = a->dst_offset.value.rank || a->src_offset.value.rank;
    trni_move_between(dst, src, a->dst_index.rank > 0, a->src_index.rank > 0, work);
    work->compute = a->accumulate && issue->core->spec->generation < TRN_TRAINIUM3;
    work->wire = a->compression;
    trni_move_mode(work, trni_move_placed(issue, a->dge_mode, placed, software), software);
}

TRNI_FN void trni_move_dma_transpose(const trni_issue *issue, trn_dma_work *work)
{
    const trn_dma_transpose_args *a = (const trn_dma_transpose_args *)issue->args;
    const trni_core_operand *dst = trni_issue_operand(issue, &a->dst), *src = trni_issue_operand(issue, &a->src);
    trni_move_between(dst, src, false, false, work);
    work->transpose = true;
    work->from_sbuf = src->memory != NULL;
    trni_move_mode(work, a->dge_mode, a->index.rank > 0);
}

TRNI_FN void trni_move_dma_compute(const trni_issue *issue, trn_dma_work *work)
{
    const trn_dma_compute_args *a = (const trn_dma_compute_args *)issue->args;
    const trni_core_operand *dst = trni_issue_operand(issue, &a->dst);
    for (int i = 0; i < a->count && i < 16; i++) {
        const trni_core_operand *src = trni_issue_operand(issue, &a->srcs[i]);
        trn_dma_work one = *work;
        if (!src) continue;
        trni_move_between(dst, src, a->index.rank && a->scatter, a->index.rank && !a->scatter, &one);
        work->run_bytes = work->bytes > 0 ? fmin(work->run_bytes, one.run_bytes) : one.run_bytes;
        work->bytes += one.bytes;
    }
    work->compute = true;
    work->software = a->index.rank > 0;
}

/* ---- words of the rows, and the table ---- */

#define TRNI_PART(args, field, role)                                                                                   \
    {                                                                                                                  \
#field, offsetof(trn_##args##_args, field), role                                                               \
    }
#define TRNI_R(args, field) TRNI_PART(args, field, TRNI_ROLE_READ)
#define TRNI_W(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE)
#define TRNI_E(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_EITHER) /* not two of these in PSUM */
#define TRNI_C(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_COLUMN)
#define TRNI_O(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_COLUMN)
#define TRNI_G(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_GATHERED)
#define TRNI_S(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_SCATTERED)
#define TRNI_IN(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_SBUF)
#define TRNI_OUT(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_PSUM)

#define TRNI_R_I(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_INDIRECT)
#define TRNI_W_I(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_INDIRECT)
#define TRNI_E_I(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_EITHER | TRNI_ROLE_INDIRECT)
#define TRNI_S_I(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_SCATTERED | TRNI_ROLE_INDIRECT)
#define TRNI_IN_I(args, field) TRNI_PART(args, field, TRNI_ROLE_READ | TRNI_ROLE_SBUF | TRNI_ROLE_INDIRECT)
#define TRNI_OUT_I(args, field) TRNI_PART(args, field, TRNI_ROLE_WRITE | TRNI_ROLE_PSUM | TRNI_ROLE_INDIRECT)

#define TRNI_NO_PART                                                                                                   \
    {                                                                                                                  \
        NULL, 0, 0                                                                                                     \
    }

#define TRNI_COST(vector, scalar, gpsimd)                                                                              \
    {                                                                                                                  \
        TRN_RULE_##vector, TRN_RULE_##scalar, TRN_RULE_##gpsimd                                                        \
    }
#define TRNI_ON_V(rule) TRNI_COST(rule, NONE, NONE)
#define TRNI_ON_G(rule) TRNI_COST(NONE, NONE, rule)
#define TRNI_OWN TRNI_COST(NONE, NONE, NONE) /* TensorE and DMA have costs of another kind */

#define TRNI_HOOKS(more, choose, tune, scatter) more, choose, tune, scatter, NULL, NULL
#define TRNI_NO_HOOKS TRNI_HOOKS(NULL, NULL, NULL, NULL)
#define TRNI_TUNE(tune) TRNI_HOOKS(NULL, NULL, tune, NULL)
#define TRNI_TENSOR(more, tensor) more, NULL, NULL, NULL, tensor, NULL
#define TRNI_DMA(more, scatter, dma) more, NULL, NULL, scatter, NULL, dma

#define TRNI_WITH(hooks, state, command) hooks, state, command
#define TRNI_WITH_HOOKS(hooks) hooks, TRNI_NO_STATE, TRNI_NO_COMMAND
#define TRNI_WITH_STATE(state) TRNI_NO_HOOKS, state, TRNI_NO_COMMAND
#define TRNI_WITH_SUMS(state, command) TRNI_NO_HOOKS, state, command
#define TRNI_PLAIN TRNI_NO_HOOKS, TRNI_NO_STATE, TRNI_NO_COMMAND

#define TRNI_NO_COMMAND 0, TRN_REDUCE_CMD_IDLE
#define TRNI_COMMAND(args, by_default) offsetof(trn_##args##_args, reduce_cmd), TRN_REDUCE_CMD_##by_default

#define TRNI_NO_STATE 0, 0, 0
#define TRNI_STATE_V(args) offsetof(trn_##args##_args, state), 0, 0
#define TRNI_STATE_S(args) 0, offsetof(trn_##args##_args, state), 0
#define TRNI_STATE_VG(args) offsetof(trn_##args##_args, state), 0, offsetof(trn_##args##_args, gpsimd)

enum {
#define TRNI_X(name, ...) TRNI_ORDER_##name,
    TRNI_INSTRUCTIONS(TRNI_X)
#undef TRNI_X
        TRNI_ORDERS
};

TRNI_FN const trni_order *trni_order_of(int order)
{
#define TRNI_X(name, args, engine, cost, carry, special, ...)                                                          \
    { #name, TRN_ENGINE_##engine, cost, TRNI_CARRY_##carry, special, { __VA_ARGS__ } },
    static const trni_order table[TRNI_ORDERS] = { TRNI_INSTRUCTIONS(TRNI_X) };
#undef TRNI_X
    return &table[order];
}

#endif /* TRNI_CORE_CORE_TABLE_H */
