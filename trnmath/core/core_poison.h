/* core/core_poison.h - elements that nothing has written: which instructions carry them on, and how they came.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: says of every instruction which operands may hold elements that nothing has written; remembers who carried what
 *     from which tile to which, and tells it when the elements arrive where they count. core_carry.h marks what comes
 *     of them.
 * DOES NOT: look at what passes while every operand's tile is written in full, the common case: then none of this runs.
 *     Follow sums into registers that outlive an instruction, and products but those of [K, M] and [K, N]: refused.
 *     Elements are followed, the history is one of tiles: the last that was carried to each. What is read in places
 *     that data decide (gathers) is not looked at. affine_select, range_select and select_reduce take an unwritten
 *     element on even where they do not choose it.
 *
 * KNOWN FROM: a choice of this library. The machine computes with whatever lies in its memory; nc_transpose counts as
 *     a move (documented: NKI passes the data through), although the identity's zeros meet every element.
 */
#ifndef TRNI_CORE_CORE_POISON_H
#define TRNI_CORE_CORE_POISON_H

#include "core_chain.h"
#include "core_table.h"

/* ---- the class of each instruction: `carry` of its row ---- */

/* Is it a row of the table? trn_cores.h has calls that are none. */
TRNI_FN bool trni_issue_of_table(const trni_issue *issue)
{
    const uintptr_t first = (uintptr_t)trni_order_of(0), order = (uintptr_t)issue->order;
    return order >= first && order < first + TRNI_ORDERS * sizeof(trni_order);
}

/* Of an instruction that is no row of the table: strict. A product with is_transpose turns stationary, as nc_transpose
 * does. */
TRNI_FN trni_carry trni_carry_in(const trni_issue *issue)
{
    if (issue->order == trni_order_of(TRNI_ORDER_nc_matmul) && ((const trn_nc_matmul_args *)issue->args)->is_transpose)
        return TRNI_CARRY_TURNED;
    return issue->order->carry;
}

/* What an instruction does to registers that outlive it, and may sum up. */
TRNI_FN trn_reduce_cmd trni_poison_command(const trni_issue *issue)
{
    trn_reduce_cmd cmd;
    if (!issue->order->command) return TRN_REDUCE_CMD_IDLE;
    memcpy(&cmd, (const char *)issue->args + issue->order->command, sizeof cmd);
    return cmd == TRN_REDUCE_CMD_DEFAULT ? issue->order->command_default : cmd;
}

/* The tile that gets a sum of each partition, beside dst; null: none does. */
TRNI_FN const trni_core_operand *trni_poison_sums(const trni_issue *issue)
{
    for (int i = 1; i < issue->count; i++)
        if (!strcmp(issue->operand[i].name, "reduce_res")) return &issue->operand[i];
    return NULL;
}

/* Do elements get into registers, where nobody follows them? Not where the sum begins anew and leaves by a tile. */
TRNI_FN bool trni_poison_hides(const trni_issue *issue)
{
    const trn_reduce_cmd cmd = trni_poison_command(issue);
    if (cmd == TRN_REDUCE_CMD_RESET_REDUCE) {
        const trni_core_operand *const sums = trni_poison_sums(issue);
        return !sums || !sums->allocation || !sums->memory;
    }
    return (cmd != TRN_REDUCE_CMD_IDLE && cmd != TRN_REDUCE_CMD_RESET) || trni_poison_sums(issue) != NULL;
}

/* Rows by an index, or an indirect view. */
TRNI_FN bool trni_poison_indexed(const trni_issue *issue)
{
    for (int i = 0; i < issue->count; i++)
        if (strstr(issue->operand[i].name, "index")) return true;
    return false;
}

/* [K, M] and [K, N], one row of K in a partition. */
TRNI_FN bool trni_poison_plain_product(const trni_issue *issue)
{
    const trn_nc_matmul_args *a = (const trn_nc_matmul_args *)issue->args;
    return !a->double_row && a->stationary.rank == 2 && a->moving.rank == 2 && a->dst.rank == 2 &&
           !trni_poison_indexed(issue);
}

/* May this operand, of which something is unwritten, be read all the same? */
TRNI_DRIVER bool trni_poison_passes(const trni_issue *issue, const trni_core_operand *s)
{
    const trni_carry carry = trni_carry_in(issue);
    const trni_core_operand *dst = &issue->operand[0];
    if (carry == TRNI_CARRY_STRICT || !dst->allocation || !dst->memory || trni_poison_hides(issue)) return false;
    if (carry == TRNI_CARRY_SHUFFLED || carry == TRNI_CARRY_SPREAD) return true;
    if (carry == TRNI_CARRY_PRODUCT) return trni_poison_plain_product(issue);
    if (carry == TRNI_CARRY_SUMS)
        return !((s->role | dst->role) & (TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED)) && !trni_poison_indexed(issue) &&
               s->view->shape[0] == dst->view->shape[0];
    if (issue->order->engine == TRN_ENGINE_TENSOR && issue->core->spec->generation == TRN_TRAINIUM1)
        return false; /* it transposes by a product, which spreads NaN */
    if ((s->role | dst->role) & (carry == TRNI_CARRY_CHOSEN ? 0 : TRNI_ROLE_GATHERED | TRNI_ROLE_SCATTERED))
        return false;
    if (!strcmp(s->name, "predicate") || !strcmp(s->name, "moving")) return false;
    if (trni_poison_indexed(issue)) return false;
    const int64_t elements = trn_tensor_elements(*s->view);
    if (s->role & TRNI_ROLE_COLUMN) return carry == TRNI_CARRY_ELEMENTS && elements == dst->view->shape[0];
    return elements == trn_tensor_elements(*dst->view);
}

/* ---- elements of a view, one after the other ---- */

typedef struct trni_poison_walk {
    trni_memory *memory;
    int64_t at, bytes; /* of the element, from the memory's beginning on */
    int rank;
    int64_t shape[TRN_MAX_RANK], step[TRN_MAX_RANK], index[TRN_MAX_RANK];
    int64_t repeat, repeated; /* so often each: a column's, of its partition's */
} trni_poison_walk;

TRNI_FN void trni_poison_begin(trni_poison_walk *w, trni_memory *memory, const trn_tensor *view, int64_t repeat)
{
    trni_strides(view, w->step);
    w->memory = memory;
    w->at = (int64_t)((char *)view->data - memory->base);
    w->bytes = (int64_t)trn_format_bytes(view->format);
    w->rank = view->rank;
    w->repeat = repeat;
    w->repeated = 0;
    for (int i = 0; i < view->rank; i++) {
        w->shape[i] = view->shape[i];
        w->step[i] *= w->bytes;
        w->index[i] = 0;
    }
}

TRNI_FN void trni_poison_next(trni_poison_walk *w)
{
    if (++w->repeated < w->repeat) return;
    w->repeated = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        w->at += w->step[i];
        if (++w->index[i] < w->shape[i]) return;
        w->at -= w->shape[i] * w->step[i];
        w->index[i] = 0;
    }
}

TRNI_FN bool trni_poison_written(const trni_memory *m, int64_t at, int64_t bytes)
{
    for (int64_t i = at; i < at + bytes; i++)
        if (!(m->written[i / 64] >> (i % 64) & 1)) return false;
    return true;
}

TRNI_FN void trni_poison_mark(const trni_core_operand *dst, int64_t at, int64_t bytes, bool written)
{
    uint64_t *const bits = dst->memory->written;
    if (dst->allocation->anything) return;
    if (written) {
        trni_core_operand_write_bytes(dst, at, bytes);
        return;
    }
    for (int64_t i = at; i < at + bytes; i++) {
        const uint64_t bit = (uint64_t)1 << (i % 64);
        dst->allocation->unwritten += (bits[i / 64] & bit) != 0;
        bits[i / 64] &= ~bit;
    }
}

/* ---- how it came ---- */

/* Before a tile with unwritten elements is written to: it may stay incomplete. */
TRNI_FN void trni_poison_wrote(const trni_issue *issue, const trni_core_operand *s)
{
    s->allocation->wrote = issue->core->instructions;
    s->allocation->wrote_name = issue->order->name;
}

/* Partitions of a tile that are not written in full. */
TRNI_FN int trni_poison_incomplete(const trni_memory *m, const trni_rect *at)
{
    int count = 0;
    for (int64_t p = at->p; p < at->p_end; p++) {
        const int64_t first = p * m->pitch + at->b, end = p * m->pitch + at->b_end;
        bool whole = true;
        for (int64_t w = first / 64; w * 64 < end && whole; w++)
            whole = !(trni_word_mask(w, first, end) & ~m->written[w]);
        count += !whole;
    }
    return count;
}

/* Before the bits of dst change: they may be src's. */
TRNI_DRIVER void trni_poison_note(const trni_issue *issue, const trni_core_operand *src, trni_allocation *dst)
{
    trn_core *const core = issue->core;
    const trni_allocation *from = src->allocation;
    if (from == dst || dst->anything) return;
    trni_poison_entry *e = &core->journal[core->journalled % TRNI_JOURNAL];
    memset(e, 0, sizeof *e);
    e->instruction = core->instructions;
    e->name = issue->order->name;
    e->wrote = from->wrote;
    e->wrote_name = from->wrote_name;
    e->before = from->brought;
    e->allocation = from;
    e->serial = from->serial;
    e->partitions = (int)(from->at.p_end - from->at.p);
    e->incomplete = trni_poison_incomplete(src->memory, &from->at);
    memcpy(e->from, from->name, sizeof e->from);
    dst->brought = ++core->journalled;
}

/* ---- reads ---- */

/* Unwritten elements: are they refused, or is the instruction one that carries them? */
TRNI_DRIVER trn_status trni_poison_check(trni_issue *issue, const trni_core_operand *s)
{
    int64_t p, b;
    if (!trni_poison_found(issue->core, s, &p, &b)) return TRN_OK;
    if (!trni_poison_passes(issue, s)) return trni_poison_refuse(issue->core, s, p, b);
    issue->poisoned = true;
    return TRN_OK;
}

#endif /* TRNI_CORE_CORE_POISON_H */
