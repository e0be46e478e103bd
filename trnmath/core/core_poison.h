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

/* ---- the class of each instruction ---- */

typedef enum trni_carry {
    TRNI_CARRY_STRICT = 0, /* every element that is read has to be written */
    TRNI_CARRY_ELEMENTS,   /* element k of dst comes from element k of data, and from its partition's of columns */
    TRNI_CARRY_DATA,       /* the same, of data alone: columns and predicates choose, and have to be written */
    TRNI_CARRY_CHOSEN,     /* the same where the predicate holds; elsewhere dst stays as it is */
    TRNI_CARRY_TURNED,     /* element k of dst comes from element k of src with its axes turned */
    TRNI_CARRY_SHUFFLED,   /* partitions change places within their quadrants */
    TRNI_CARRY_SUMS,       /* what a partition's results are comes from that partition alone, all of it */
    TRNI_CARRY_PRODUCT     /* row m of dst comes from column m of stationary, column n from column n of moving */
} trni_carry;

/* One for each row of core_table.h: without it, it does not compile. */
enum {
    TRNI_CARRY_nc_matmul = TRNI_CARRY_PRODUCT,
    TRNI_CARRY_nc_matmul_mx = TRNI_CARRY_STRICT,
    TRNI_CARRY_nc_matmul_sparse = TRNI_CARRY_STRICT,
    TRNI_CARRY_nc_transpose = TRNI_CARRY_TURNED,
    TRNI_CARRY_tensor_tensor = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_tensor_scalar = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_scalar_tensor_tensor = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_tensor_copy = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_tensor_copy_predicated = TRNI_CARRY_CHOSEN,
    TRNI_CARRY_memset = TRNI_CARRY_STRICT,
    TRNI_CARRY_reciprocal = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_tensor_reduce = TRNI_CARRY_SUMS,
    TRNI_CARRY_tensor_scalar_reduce = TRNI_CARRY_SUMS,
    TRNI_CARRY_tensor_scalar_cumulative = TRNI_CARRY_STRICT,
    TRNI_CARRY_tensor_tensor_scan = TRNI_CARRY_SUMS,
    TRNI_CARRY_exponential = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_range_select = TRNI_CARRY_DATA,
    TRNI_CARRY_select_reduce = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_bn_stats = TRNI_CARRY_SUMS,
    TRNI_CARRY_bn_aggr = TRNI_CARRY_SUMS,
    TRNI_CARRY_max8 = TRNI_CARRY_SUMS,
    TRNI_CARRY_nc_find_index8 = TRNI_CARRY_SUMS,
    TRNI_CARRY_nc_match_replace8 = TRNI_CARRY_SUMS,
    TRNI_CARRY_nc_stream_shuffle = TRNI_CARRY_SHUFFLED,
    TRNI_CARRY_vector_transpose = TRNI_CARRY_TURNED,
    TRNI_CARRY_quantize_mx = TRNI_CARRY_STRICT, /* a scale is its group's maximum */
    TRNI_CARRY_rng = TRNI_CARRY_STRICT,
    TRNI_CARRY_rand2 = TRNI_CARRY_STRICT,
    TRNI_CARRY_dropout = TRNI_CARRY_DATA,
    TRNI_CARRY_set_rng_seed = TRNI_CARRY_STRICT,
    TRNI_CARRY_rand_set_state = TRNI_CARRY_STRICT,
    TRNI_CARRY_rand_get_state = TRNI_CARRY_STRICT,
    TRNI_CARRY_activation = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_activation_reduce = TRNI_CARRY_SUMS,
    TRNI_CARRY_activate2 = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_iota = TRNI_CARRY_STRICT,
    TRNI_CARRY_affine_select = TRNI_CARRY_ELEMENTS,
    TRNI_CARRY_local_gather = TRNI_CARRY_STRICT,
    TRNI_CARRY_nc_n_gather = TRNI_CARRY_STRICT,
    TRNI_CARRY_tensor_partition_reduce = TRNI_CARRY_STRICT,
    TRNI_CARRY_nonzero_with_count = TRNI_CARRY_STRICT,
    TRNI_CARRY_sequence_bounds = TRNI_CARRY_STRICT,
    TRNI_CARRY_topk = TRNI_CARRY_STRICT,
    TRNI_CARRY_gpsimd_custom = TRNI_CARRY_STRICT,
    TRNI_CARRY_dma_copy = TRNI_CARRY_DATA,
    TRNI_CARRY_dma_transpose = TRNI_CARRY_TURNED,
    TRNI_CARRY_dma_compute = TRNI_CARRY_DATA
};

/* Is it a row of the table? trn_cores.h has calls that are none. */
TRNI_FN bool trni_issue_of_table(const trni_issue *issue)
{
    const uintptr_t first = (uintptr_t)trni_order_of(0), order = (uintptr_t)issue->order;
    return order >= first && order < first + TRNI_ORDERS * sizeof(trni_order);
}

/* Of an instruction that is no row of the table: strict. A product with is_transpose turns
 * stationary, as nc_transpose does. */
TRNI_FN trni_carry trni_carry_in(const trni_issue *issue)
{
#define TRNI_X(name, ...) (unsigned char)TRNI_CARRY_##name,
    static const unsigned char table[TRNI_ORDERS] = { TRNI_ORDER_LIST(TRNI_X) };
#undef TRNI_X
    if (!trni_issue_of_table(issue)) return TRNI_CARRY_STRICT;
    if (issue->order == trni_order_of(TRNI_ORDER_nc_matmul) && ((const trn_nc_matmul_args *)issue->args)->is_transpose)
        return TRNI_CARRY_TURNED;
    return (trni_carry)table[issue->order - trni_order_of(0)];
}

/* What an instruction does to registers that outlive it: those that may sum up, where their command is, and what it is
 * by default. */
TRNI_FN trn_reduce_cmd trni_poison_command(const trni_issue *issue)
{
#define TRNI_X(name, fallback)                                                                                         \
    {                                                                                                                  \
        TRNI_ORDER_##name, offsetof(trn_##name##_args, reduce_cmd), TRN_REDUCE_CMD_##fallback                          \
    }
    static const struct {
        int order;
        size_t offset;
        trn_reduce_cmd fallback;
    } row[] = { TRNI_X(exponential, IDLE),
                TRNI_X(range_select, RESET_REDUCE),
                TRNI_X(select_reduce, IDLE),
                TRNI_X(activation, IDLE),
                TRNI_X(activate2, IDLE),
                TRNI_X(tensor_scalar_reduce, RESET_REDUCE),
                TRNI_X(activation_reduce, RESET_REDUCE) };
#undef TRNI_X
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_reduce_cmd cmd;
        if (issue->order != trni_order_of(row[i].order)) continue;
        memcpy(&cmd, (const char *)issue->args + row[i].offset, sizeof cmd);
        return cmd == TRN_REDUCE_CMD_DEFAULT ? row[i].fallback : cmd;
    }
    return TRN_REDUCE_CMD_IDLE;
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
    if (carry == TRNI_CARRY_SHUFFLED) return true;
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
