/* core/core_carry.h - elements that nothing has written: which elements of its results an instruction makes of them.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: marks the elements of dst that come from unwritten ones as unwritten, one by one, by the class that
 *     core_poison.h gives each instruction; of sums those of the partition, of products those of the row and of the
 *     column.
 * DOES NOT: run while every operand's tile is written in full.
 *
 * KNOWN FROM: a choice of this library: what an engine computes of one partition does not depend on another's, and a
 *     row of a product not on another row (documented).
 */
#ifndef TRNI_CORE_CORE_CARRY_H
#define TRNI_CORE_CORE_CARRY_H

#include "core_poison.h"

/* ---- writes of what was read unwritten ---- */

/* Do unwritten elements come from this operand? */
TRNI_FN bool trni_poison_comes(const trni_issue *issue, const trni_core_operand *s)
{
    int64_t p, b;
    return (s->role & TRNI_ROLE_READ) && trni_core_operand_unsure(s) && trni_poison_found(issue->core, s, &p, &b);
}

/* A view with one partition as often as dst has them. Strides that are all 0 would mean packed rows: the axis of the
 * one partition, which is never taken, has its own. */
TRNI_FN trn_tensor trni_poison_spread(const trn_tensor *dst, const trn_tensor *src)
{
    const int more = src->rank < TRN_MAX_RANK;
    trn_tensor t = *src;
    trni_strides(src, t.stride);
    memmove(t.shape + more, t.shape, (size_t)src->rank * sizeof t.shape[0]);
    memmove(t.stride + more, t.stride, (size_t)src->rank * sizeof t.stride[0]);
    t.rank += more;
    t.stride[more] = 1;
    t.shape[0] = dst->shape[0];
    t.stride[0] = 0;
    return t;
}

/* src as dst's elements follow each other. */
TRNI_FN trn_tensor trni_poison_source(const trni_issue *issue, const trni_core_operand *s)
{
    if (trni_carry_in(issue) == TRNI_CARRY_SPREAD) return trni_poison_spread(issue->operand[0].view, s->view);
    if (trni_carry_in(issue) != TRNI_CARRY_TURNED) return *s->view;
    if (issue->order->engine != TRN_ENGINE_DMA) return trn_tensor_transposed(*s->view);
    return trni_dma_permuted(s->view);
}

TRNI_FN bool trni_poison_chooses(const trni_poison_walk *predicate, bool reverse)
{
    bool holds = false;
    for (int64_t i = 0; i < predicate->bytes; i++) holds = holds || predicate->memory->base[predicate->at + i] != 0;
    return holds != reverse;
}

TRNI_DRIVER void trni_poison_carry_elements(const trni_issue *issue)
{
    const trni_core_operand *const dst = &issue->operand[0];
    const bool chosen = trni_carry_in(issue) == TRNI_CARRY_CHOSEN;
    const int64_t elements = trn_tensor_elements(*dst->view);
    trni_poison_walk to, predicate, from[TRNI_CORE_OPERANDS];
    int sources = 0;
    trni_poison_begin(&to, dst->memory, dst->view, 1);
    trni_poison_begin(&predicate, dst->memory, dst->view, 1);
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (chosen && !strcmp(s->name, "predicate")) trni_poison_begin(&predicate, s->memory, s->view, 1);
        if (!trni_poison_comes(issue, s)) continue;
        const trn_tensor view = trni_poison_source(issue, s);
        trni_poison_note(issue, s, dst->allocation);
        trni_poison_begin(&from[sources++], s->memory, &view,
                          s->role & TRNI_ROLE_COLUMN ? elements / dst->view->shape[0] : 1);
    }
    const bool reverse = chosen && ((const trn_tensor_copy_predicated_args *)issue->args)->reverse_pred;
    for (int64_t k = 0; k < elements; k++) {
        bool written = true;
        for (int i = 0; i < sources; i++) {
            written = written && trni_poison_written(from[i].memory, from[i].at, from[i].bytes);
            trni_poison_next(&from[i]);
        }
        if (!chosen || trni_poison_chooses(&predicate, reverse)) trni_poison_mark(dst, to.at, to.bytes, written);
        trni_poison_next(&to);
        trni_poison_next(&predicate);
    }
}

/* Element by element of the partitions, so that dst may be src. */
TRNI_DRIVER void trni_poison_carry_shuffled(const trni_issue *issue)
{
    const trn_nc_stream_shuffle_args *a = (const trn_nc_stream_shuffle_args *)issue->args;
    const trni_core_operand *const dst = &issue->operand[0], *const src = trni_issue_operand(issue, &a->src);
    const int64_t partitions = dst->view->shape[0], elements = trn_tensor_elements(*dst->view) / partitions;
    trni_poison_note(issue, src, dst->allocation);
    for (int64_t first = 0; first < partitions; first += 32) {
        const trn_tensor row = trn_tensor_slice(*dst->view, 0, first, 1);
        const trn_tensor row_src = trn_tensor_slice(*src->view, 0, first, 1);
        const int64_t count = trni_min64(32, partitions - first);
        trni_poison_walk to, from;
        trni_poison_begin(&to, dst->memory, &row, 1);
        trni_poison_begin(&from, src->memory, &row_src, 1);
        for (int64_t f = 0; f < elements; f++, trni_poison_next(&to), trni_poison_next(&from)) {
            bool written[32];
            for (int64_t i = 0; i < count; i++)
                written[i] =
                    a->shuffle_mask[i] < count &&
                    trni_poison_written(src->memory, from.at + a->shuffle_mask[i] * src->memory->pitch, from.bytes);
            for (int64_t i = 0; i < count; i++)
                if (a->shuffle_mask[i] != 255)
                    trni_poison_mark(dst, to.at + i * dst->memory->pitch, to.bytes, written[i]);
        }
    }
}

/* ---- sums ---- */

/* Are the next `count` elements all written? */
TRNI_FN bool trni_poison_all(trni_poison_walk *from, int64_t count)
{
    bool written = true;
    for (int64_t i = 0; i < count; i++, trni_poison_next(from))
        written = written && trni_poison_written(from->memory, from->at, from->bytes);
    return written;
}

/* Of every partition: are all elements written that the instruction reads there? */
TRNI_DRIVER void trni_poison_partitions(const trni_issue *issue, bool whole[TRNI_MEMORY_ROWS])
{
    const int64_t partitions = issue->operand[0].view->shape[0];
    for (int64_t p = 0; p < partitions; p++) whole[p] = true;
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        trni_poison_walk from;
        if (!trni_poison_comes(issue, s)) continue;
        trni_poison_begin(&from, s->memory, s->view, 1);
        for (int64_t p = 0; p < partitions; p++)
            whole[p] = trni_poison_all(&from, trn_tensor_elements(*s->view) / partitions) && whole[p];
    }
}

TRNI_FN void trni_poison_note_all(const trni_issue *issue, trni_allocation *dst)
{
    for (int i = 0; i < issue->count; i++)
        if (trni_poison_comes(issue, &issue->operand[i])) trni_poison_note(issue, &issue->operand[i], dst);
}

/* One flag for all elements of a partition. */
TRNI_DRIVER void trni_poison_mark_partitions(const trni_core_operand *dst, const bool whole[TRNI_MEMORY_ROWS])
{
    const int64_t partitions = dst->view->shape[0], each = trn_tensor_elements(*dst->view) / partitions;
    trni_poison_walk to;
    trni_poison_begin(&to, dst->memory, dst->view, 1);
    for (int64_t k = 0; k < partitions * each; k++, trni_poison_next(&to))
        trni_poison_mark(dst, to.at, to.bytes, whole[k / each]);
}

/* Each element of dst comes from as many elements of data, which follow each other. */
TRNI_DRIVER void trni_poison_carry_reduced(const trni_issue *issue)
{
    const trni_core_operand *const dst = &issue->operand[0], *const data = &issue->operand[1];
    const int64_t elements = trn_tensor_elements(*dst->view), each = trn_tensor_elements(*data->view) / elements;
    trni_poison_walk to, from;
    trni_poison_note(issue, data, dst->allocation);
    trni_poison_begin(&to, dst->memory, dst->view, 1);
    trni_poison_begin(&from, data->memory, data->view, 1);
    for (int64_t k = 0; k < elements; k++, trni_poison_next(&to))
        trni_poison_mark(dst, to.at, to.bytes, trni_poison_all(&from, each));
}

TRNI_DRIVER void trni_poison_carry_sums(const trni_issue *issue)
{
    bool whole[TRNI_MEMORY_ROWS];
    if (issue->order == trni_order_of(TRNI_ORDER_tensor_reduce) && issue->count == 2) {
        trni_poison_carry_reduced(issue);
        return;
    }
    trni_poison_partitions(issue, whole);
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!(s->role & TRNI_ROLE_WRITE) || !s->allocation || !s->memory) continue;
        trni_poison_note_all(issue, s->allocation);
        trni_poison_mark_partitions(s, whole);
    }
}

/* ---- products ---- */

/* Of every column of an operand [K, M]: is all of it written? */
TRNI_DRIVER void trni_poison_columns(const trni_issue *issue, const trn_tensor *view, bool *whole)
{
    const trni_core_operand *const s = trni_issue_operand(issue, view);
    const int64_t k = view->shape[0], columns = view->shape[1];
    trni_poison_walk from;
    for (int64_t m = 0; m < columns; m++) whole[m] = true;
    if (!trni_poison_comes(issue, s)) return;
    trni_poison_begin(&from, s->memory, view, 1);
    for (int64_t i = 0; i < k * columns; i++) whole[i % columns] = trni_poison_all(&from, 1) && whole[i % columns];
}

/* What is added to stays unwritten where it was. */
TRNI_DRIVER void trni_poison_carry_product(const trni_issue *issue)
{
    enum { COLUMNS = 8192 }; /* of moving, Trainium3 */
    const trn_nc_matmul_args *a = (const trn_nc_matmul_args *)issue->args;
    const trni_core_operand *const dst = &issue->operand[0];
    bool row[TRN_PARTITIONS], column[COLUMNS];
    trni_poison_columns(issue, &a->stationary, row);
    trni_poison_columns(issue, &a->moving, column);
    trni_poison_note_all(issue, dst->allocation);
    trni_poison_walk to;
    trni_poison_begin(&to, dst->memory, dst->view, 1);
    for (int64_t m = 0; m < dst->view->shape[0]; m++)
        for (int64_t n = 0; n < dst->view->shape[1]; n++, trni_poison_next(&to)) {
            const bool before = !a->accumulate || trni_poison_written(to.memory, to.at, to.bytes);
            trni_poison_mark(dst, to.at, to.bytes, before && row[m] && column[n]);
        }
}

/* The instruction has run. */
TRNI_DRIVER void trni_poison_carry(const trni_issue *issue)
{
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *const s = &issue->operand[i];
        if (!(s->role & TRNI_ROLE_WRITE) || !s->allocation || !s->memory) continue;
        if (s->allocation->unwritten > 0) trni_poison_wrote(issue, s);
        if (!s->memory->by_matmul) continue;
        trni_cells_of(issue->core->cells, s->memory, s->view, &s->at);
        trni_cells_mark(issue->core->cells, s->memory, s->memory->by_matmul, issue->engine == TRN_ENGINE_TENSOR);
    }
    const trni_core_operand *const sums = trni_poison_sums(issue);
    bool whole[TRNI_MEMORY_ROWS];
    switch (trni_carry_in(issue)) {
    case TRNI_CARRY_SHUFFLED: trni_poison_carry_shuffled(issue); return;
    case TRNI_CARRY_SUMS: trni_poison_carry_sums(issue); return;
    case TRNI_CARRY_PRODUCT: trni_poison_carry_product(issue); return;
    default: break;
    }
    if (sums) trni_poison_partitions(issue, whole);
    trni_poison_carry_elements(issue);
    if (!sums || !sums->memory) return;
    trni_poison_note_all(issue, sums->allocation);
    trni_poison_mark_partitions(sums, whole);
}

#endif /* TRNI_CORE_CORE_CARRY_H */
