/* engine/vector_registers.h - reductions of many rows, and the accumulator registers that instructions share.
 * Behind trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: goes along rows in the order that an operator needs; checks what an instruction says about the registers, its
 *     reduce_res and its first value; runs an instruction that writes dst and accumulates what it wrote.
 * DOES NOT: know the instructions: engine/vector_reduce.h.
 *
 * KNOWN FROM: NKI's pages (commands and identities: documented); the order: measured (numerics.reduce_order).
 */
#ifndef TRNI_ENGINE_VECTOR_REGISTERS_H
#define TRNI_ENGINE_VECTOR_REGISTERS_H

#include "vector_elementwise.h"
#include "vector_rows.h"
#include "engine_state.h"

/* ---- the accumulator registers, as reduce commands want them ---- */

/* A reduce command, its default replaced: legal ones are bits 1 << command. Without a state only commands that begin
 * anew can run, and nothing is kept. More partitions than registers take no state. */
TRNI_DRIVER void trni_registers_check(trni_frame *f, trn_reduce_cmd cmd, unsigned legal, const trn_vector_state *state)
{
    static const char *const name[TRN_REDUCE_CMD_COUNT] = { "default", "idle",         "reset",
                                                            "reduce",  "reset_reduce", "load_reduce" };
    if (f->status) return;
    if ((unsigned)cmd >= TRN_REDUCE_CMD_COUNT)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is %d, not a command", (int)cmd);
    else if (!(legal >> (unsigned)cmd & 1u))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is %s, which this instruction does not take",
                              name[(unsigned)cmd]);
    else if (cmd == TRN_REDUCE_CMD_REDUCE && !state)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is reduce, but state, which holds the registers, is null");
    else if (cmd == TRN_REDUCE_CMD_REDUCE && !state->accumulator_known)
        f->status = trni_fail(f->how.error, TRN_EINVAL,
                              "reduce_cmd is reduce, but the accumulator registers are undefined: nothing has set them "
                              "since the start, or since an instruction with idle");
    else if (state && f->partitions > TRN_PARTITIONS)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "dst has %lld partitions; a state has registers for %d",
                              (long long)f->partitions, TRN_PARTITIONS);
}

/* The register of partition p as an instruction finds it. `start` is the operator's identity, or the value to load. */
TRNI_FN float trni_registers_load(trn_reduce_cmd cmd, const trn_vector_state *state, int64_t p, float start)
{
    return cmd == TRN_REDUCE_CMD_REDUCE ? state->accumulator[p] : start;
}

/* Where a reduction begins. */
TRNI_FN float trni_identity(trn_alu op)
{
    const trn_alu_info *info = trn_alu_info_of(op);
    return trni_float(info->identity);
}

TRNI_DRIVER void trni_frame_order(trni_frame *f, const char *what)
{
    if (!f->status && f->numerics.reduce_order != TRN_REDUCE_SEQUENTIAL)
        f->status =
            trni_fail(f->how.error, TRN_EUNSUPPORTED, "numerics.reduce_order is not sequential: %s has no other", what);
}

/* ---- sums of many rows ---- */

/* Up to 32 rows, each with its accumulator. */
typedef struct trni_rows {
    int64_t count;
    float sum[TRNI_ROWS_MOST];
    const void *line[TRNI_ROWS_MOST];
} trni_rows;

/* How a reduction goes: together where the order shows, row after row elsewhere. half: lines are of bfloat16. */
typedef struct trni_reduction {
    trni_rows_how rows;
    trni_fold_kernel *fold;
} trni_reduction;

TRNI_FN trni_reduction trni_reduction_of(trn_alu op, bool half, trn_isa isa)
{
    const trni_reduction r = { trni_rows_how_of(op, half, isa), trni_fold_kernel_of(op, half, isa) };
    return r;
}

/* n > 0 elements of each row. */
TRNI_FN void trni_reduction_run(const trni_reduction *how, trni_rows *r, int64_t n)
{
    if (how->rows.kernel) trni_rows_run(&how->rows, r->sum, r->line, r->count, (size_t)n);
    for (int64_t i = 0; i < r->count && !how->rows.kernel; i++) how->fold(&r->sum[i], r->line[i], (size_t)n);
}

enum {
    TRNI_CMD_IDLE = 1 << TRN_REDUCE_CMD_IDLE,
    TRNI_CMD_RESET = 1 << TRN_REDUCE_CMD_RESET,
    TRNI_CMD_REDUCE = 1 << TRN_REDUCE_CMD_REDUCE,
    TRNI_CMD_RESET_REDUCE = 1 << TRN_REDUCE_CMD_RESET_REDUCE,
    TRNI_CMD_LOAD_REDUCE = 1 << TRN_REDUCE_CMD_LOAD_REDUCE,
    TRNI_CMD_SUMS = TRNI_CMD_REDUCE | TRNI_CMD_RESET_REDUCE | TRNI_CMD_LOAD_REDUCE
};

TRNI_FN trn_reduce_cmd trni_cmd_or(trn_reduce_cmd cmd, trn_reduce_cmd fallback)
{
    return cmd == TRN_REDUCE_CMD_DEFAULT ? fallback : cmd;
}

/* ---- the accumulator registers, for the instructions that share them ---- */

typedef struct trni_accumulation {
    trn_reduce_cmd cmd;
    trn_alu op;
    trni_reduction how;
    bool negate, written; /* written: there is a reduce_res */
    trni_column init;
    trni_span res;
    trni_view init_view, res_view; /* of what the instruction says */
    trn_vector_state *state;
} trni_accumulation;

/* What an instruction says about them. */
typedef struct trni_registers {
    trn_reduce_cmd cmd; /* no default any more */
    trn_alu op;
    const trn_tensor *res, *init_tile;
    float init;
    bool negate;
    trn_vector_state *state;
} trni_registers;

/* legal: commands as bits. After dst and the sources. */
TRNI_DRIVER void trni_registers_frame(trni_frame *f, const trni_registers *r, trni_accumulation *a, unsigned legal)
{
    trni_registers_check(f, r->cmd, legal, r->state);
    if (f->status) return;
    const bool given = r->init != 0 || r->init_tile->rank != 0;
    if (given && r->cmd != TRN_REDUCE_CMD_LOAD_REDUCE)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_init is given, but reduce_cmd is not load_reduce");
    else if (r->res->rank && r->cmd == TRN_REDUCE_CMD_IDLE)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_res is given, but reduce_cmd is idle");
    trni_frame_operand(f, &a->init_view, r->init_tile, "reduce_init_tile");
    a->res_view.t.rank = 0;
    if (r->res->rank == 0) return;
    trni_frame_tile(f, &a->res_view, r->res, "reduce_res", TRNI_OUTPUT, f->partitions, 1);
    trni_frame_apart(f, &a->res_view, &f->dst);
}

/* Where the page has it as a number of a floating-point format. */
TRNI_FN void trni_registers_float(trni_frame *f, const trni_view *res)
{
    if (f->status || res->t.rank == 0 || !trn_format_is_integer(res->t.format)) return;
    f->status =
        trni_fail(f->how.error, TRN_EFORMAT, "reduce_res is %s; it takes a floating-point format", res->info.name);
}

/* reduce_res also keeps away from a source. */
TRNI_FN void trni_registers_apart(trni_frame *f, const trni_view *res, const trni_view *source)
{
    if (!f->status && res->t.rank) trni_frame_apart(f, res, source);
}

TRNI_FN void trni_accumulation_init(trni_accumulation *a, const trni_registers *r, const trni_frame *f)
{
    a->cmd = r->cmd;
    a->op = r->op;
    a->how = trni_reduction_of(r->op, false, f->isa);
    a->negate = r->negate;
    a->state = r->state;
    trni_column_init(&a->init, &a->init_view, r->init, f->isa);
    a->written = r->res->rank != 0 && f->partitions > 0;
    if (!a->written) return;
    trni_span_output(&a->res, &a->res_view, f);
    a->res.stream = false;
}

TRNI_FN float trni_accumulation_begin(const trni_accumulation *a, int64_t p)
{
    const bool load = a->cmd == TRN_REDUCE_CMD_LOAD_REDUCE;
    return trni_registers_load(a->cmd, a->state, p, load ? trni_column_at(&a->init, p) : trni_identity(a->op));
}

/* The register of partition p, into the state and reduce_res. */
TRNI_FN void trni_accumulation_end(const trni_accumulation *a, int64_t p, float sum)
{
    if (a->state) a->state->accumulator[p] = sum;
    if (!a->written) return;
    if (a->negate) sum = trni_alu_one_multiply(sum, -1.0f);
    trni_span_write(&a->res, p, 0, 1, &sum);
}

/* Without a partition nothing ran. */
TRNI_FN void trni_accumulation_known(const trni_accumulation *a, int64_t partitions)
{
    if (a->state && partitions) a->state->accumulator_known = a->cmd != TRN_REDUCE_CMD_IDLE;
}

/* Writes elements [f, f + n) of partition p of dst, n <= TRNI_ROWS_CHUNK, and returns what is accumulated of them: a
 * buffer's numbers, or elsewhere. */
typedef const float *trni_produce(const void *plan, int64_t p, int64_t f, int64_t n, float *buffer);

typedef struct trni_producer {
    trni_produce *produce;
    const void *plan;
    int64_t elements;
    const trni_accumulation *sum;
} trni_producer;

TRNI_FN void trni_producer_rows(const void *plan, int64_t p, int64_t n, void *room)
{
    const trni_producer *from = (const trni_producer *)plan;
    const trni_accumulation *a = from->sum;
    const bool kept = a->cmd != TRN_REDUCE_CMD_IDLE, sums = kept && a->cmd != TRN_REDUCE_CMD_RESET;
    float(*const buffer)[TRNI_ROWS_CHUNK] = (float(*)[TRNI_ROWS_CHUNK])room;
    trni_rows rows;
    rows.count = n;
    for (int64_t i = 0; i < n && kept; i++) rows.sum[i] = trni_accumulation_begin(a, p + i);
    for (int64_t f = 0, take; f < from->elements; f += take) {
        take = trni_min64(TRNI_ROWS_CHUNK, from->elements - f);
        for (int64_t i = 0; i < n; i++) rows.line[i] = from->produce(from->plan, p + i, f, take, buffer[i]);
        if (sums) trni_reduction_run(&a->how, &rows, take);
    }
    for (int64_t i = 0; i < n && kept; i++) trni_accumulation_end(a, p + i, rows.sum[i]);
}

TRNI_FN trn_status trni_produce_all(trni_produce *produce, const void *plan, const trni_frame *f,
                                    const trni_accumulation *a)
{
    const trni_producer from = { produce, plan, f->elements, a };
    const size_t buffers = sizeof(float) * TRNI_ROWS * TRNI_ROWS_CHUNK;
    const trn_status status = trni_partitions_each_in(buffers, f, TRNI_ROWS, trni_producer_rows, &from);
    if (status == TRN_OK) trni_accumulation_known(a, f->partitions);
    return status;
}

#endif /* TRNI_ENGINE_VECTOR_REGISTERS_H */
