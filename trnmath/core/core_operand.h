/* core/core_operand.h - what an instruction touches: whose memory it is, whether that is legal, whether it was written.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: finds the tile of a view and the rectangle of it; refuses what leaves its tile, was freed, starts at a
 *     partition or follows a pattern that an engine cannot; tells reads of what nothing has written; keeps the
 *     bits of writes.
 * DOES NOT: look at 16-bit limits of sizes and strides in access patterns (compilers cut instructions to them).
 *
 * KNOWN FROM: NKI's architecture guides: partitions follow each other, start partitions, four axes (documented).
 */
#ifndef TRNI_CORE_CORE_OPERAND_H
#define TRNI_CORE_CORE_OPERAND_H

#include "core_state.h"

typedef enum trni_role {
    TRNI_ROLE_READ = 1,
    TRNI_ROLE_WRITE = 2,
    TRNI_ROLE_COLUMN = 4,     /* one number per partition: does not count as data of the instruction's length */
    TRNI_ROLE_GATHERED = 8,   /* read in places that data decide: whether those were written is not looked at */
    TRNI_ROLE_SCATTERED = 16, /* written in places that data decide */
    TRNI_ROLE_SBUF = 32,      /* must lie there */
    TRNI_ROLE_PSUM = 64,      /* must lie there, and (before Trainium3) in one bank */
    TRNI_ROLE_EITHER = 128,   /* at most one such input lies in PSUM */
    TRNI_ROLE_INDIRECT = 256  /* may be an indirect view */
} trni_role;

/* An operand, found. */
typedef struct trni_core_operand {
    const char *name;
    const trn_tensor *view;
    unsigned role;
    int64_t before; /* partitions before the view that count as its own, for the rule where tiles begin */
    trn_space space;
    trni_memory *memory;         /* null: HBM */
    trni_allocation *allocation; /* null: nothing to touch (no elements) */
    trni_rect at;
    double elements; /* of a partition (all of them in HBM) */
    int64_t step;    /* bytes between innermost elements; 0 = there is one */
    int64_t run;     /* bytes that follow each other */
} trni_core_operand;

TRNI_FN void trni_core_operand_begin(trni_core_operand *s, const char *name, const trn_tensor *view, unsigned role)
{
    memset(s, 0, sizeof *s);
    s->name = name;
    s->view = view;
    s->role = role;
}

/* Is it an indirect view, or cut from one? core/core_indirect.h */
TRNI_FN bool trni_indirect_owns(const trn_core *core, const trn_tensor *view)
{
    const trni_indirect *in = core->indirect;
    const uintptr_t at = (uintptr_t)view->data;
    return in && at >= (uintptr_t)in->room && at - (uintptr_t)in->room <= TRNI_INDIRECT_ROOM;
}

/* ---- shape ---- */

/* The free axes, those that follow each other merged: how many are left, and how the innermost runs. */
TRNI_FN int trni_core_operand_axes(trni_core_operand *s, const trni_view *v, int first)
{
    const int64_t bytes = (int64_t)v->size;
    int64_t outer_step = 0, outer_size = 0;
    int rank = 0;
    s->run = bytes;
    s->step = 0;
    for (int i = v->t.rank - 1; i >= first; i--) {
        const int64_t size = v->t.shape[i];
        if (size == 1) continue; /* a stride that is never taken may be any number */
        const int64_t step = v->t.stride[i] * bytes;
        if (rank && step == outer_step * outer_size) {
            outer_size *= size;
        } else {
            if (rank == 1 && outer_step == bytes) s->run = outer_size * bytes;
            if (!rank) s->step = step;
            rank++;
            outer_step = step;
            outer_size = size;
        }
    }
    if (rank == 1 && outer_step == bytes) s->run = outer_size * bytes;
    return rank;
}

/* Where the view reaches, as partitions (rows) and bytes: axes that step by whole rows, and the others. */
TRNI_FN void trni_core_operand_reach(trni_core_operand *s, const trni_view *v, const char *base, int64_t pitch)
{
    const int64_t bytes = (int64_t)v->size, at = (int64_t)((char *)v->t.data - base);
    s->at.p = at / pitch;
    s->at.b = at % pitch;
    s->at.p_end = s->at.p + 1;
    s->at.b_end = s->at.b + bytes;
    for (int i = 0; i < v->t.rank; i++) {
        const int64_t more = v->t.shape[i] - 1, step = more ? v->t.stride[i] * bytes : 0;
        if (step % pitch == 0)
            s->at.p_end += more * (step / pitch);
        else
            s->at.b_end += more * step;
    }
}

/* Rows of HBM that lie between others': the largest step that axes take by whole rows, and the rows that the other axes
 * reach within it. */
TRNI_FN void trni_core_operand_rows(trni_core_operand *s, const trni_view *v, int64_t pitch)
{
    int64_t step = 0, reach = s->at.p_end - s->at.p;
    for (int i = 0; i < v->t.rank; i++) {
        const int64_t by = v->t.shape[i] > 1 ? v->t.stride[i] * (int64_t)v->size : 0;
        if (by % pitch == 0 && by / pitch > step) step = by / pitch;
    }
    for (int i = 0; i < v->t.rank; i++)
        if (v->t.stride[i] * (int64_t)v->size == step * pitch) reach -= (v->t.shape[i] - 1) * step;
    if (step <= reach) return;
    s->at.step = step;
    s->at.rows = reach;
}

/* ---- whose ---- */

TRNI_FN trn_status trni_core_operand_tenant(trn_core *core, trni_core_operand *s)
{
    trni_memory *m = s->memory;
    const char *where = trn_space_name(s->space), *does = s->role & TRNI_ROLE_READ ? "reads" : "writes";
    const trni_segment *segment = NULL;
    if (s->at.p_end <= TRN_PARTITIONS && s->at.b < m->partition_bytes) segment = trni_memory_find(m, s->at.p, s->at.b);
    if (segment && segment->tile < 0)
        return trni_fail(&core->failure, TRN_EINVAL, "%s %s '%s', which was freed", s->name, does, segment->name);
    if (!segment || !trni_rect_holds(&m->tile[segment->tile].at, &s->at)) {
        const trni_allocation *t = segment ? &m->tile[segment->tile] : NULL;
        if (!t || s->at.b >= t->at.b_end || s->at.p >= t->at.p_end)
            return trni_fail(&core->failure, TRN_EINVAL,
                             "%s lies in %s, partition %lld, byte %lld, where there is no tile", s->name, where,
                             (long long)s->at.p, (long long)s->at.b);
        return trni_fail(&core->failure, TRN_EINVAL,
                         "%s leaves tile '%s': partitions %lld to %lld, bytes %lld to %lld of a tile of %lld x %lld",
                         s->name, t->name, (long long)(s->at.p - t->at.p), (long long)(s->at.p_end - t->at.p - 1),
                         (long long)(s->at.b - t->at.b), (long long)(s->at.b_end - t->at.b - 1),
                         (long long)(t->at.p_end - t->at.p), (long long)(t->at.b_end - t->at.b));
    }
    s->allocation = &m->tile[segment->tile];
    return TRN_OK;
}

TRNI_FN trn_status trni_core_operand_hbm(trn_core *core, trni_core_operand *s, const trni_view *v)
{
    trni_hbm *h = trni_hbm_find(core, v->t.data, (int64_t)v->extent);
    if (!h)
        return trni_fail(&core->failure, TRN_EINVAL,
                         "%s lies neither in a tile nor in a tensor that trn_core_hbm has registered", s->name);
    s->space = TRN_SPACE_HBM;
    s->allocation = &h->tensor;
    trni_core_operand_reach(s, v, h->base, h->pitch);
    if (s->at.b_end > h->pitch) { /* not a rectangle: whole rows */
        const int64_t at = (int64_t)((char *)v->t.data - h->base);
        s->at.p_end = (at + (int64_t)v->extent - 1) / h->pitch + 1;
        s->at.b = 0;
        s->at.b_end = h->pitch;
    } else {
        trni_core_operand_rows(s, v, h->pitch);
    }
    return TRN_OK;
}

/* ---- what engines can follow ---- */

/* Axis 0 is one partition after the other, the others stay within a partition. */
TRNI_FN trn_status trni_core_operand_lanes(trn_core *core, trni_core_operand *s, const trni_view *v, int axes)
{
    const trn_tensor *t = &v->t;
    const int64_t bytes = (int64_t)v->size, pitch = s->memory->pitch;
    trn_error *error = &core->failure;
    if (t->shape[0] > 1 && t->stride[0] * bytes != pitch)
        return trni_fail(
            error, TRN_ELIMIT, "%s: axis 0 steps by %lld bytes; an engine reads one partition after the other%s",
            s->name, (long long)(t->stride[0] * bytes), t->stride[0] == 0 ? ", and cannot broadcast along them" : "");
    for (int i = 1; i < t->rank; i++)
        if (t->shape[i] > 1 && t->stride[i] && t->stride[i] * bytes % pitch == 0)
            return trni_fail(error, TRN_ELIMIT, "%s: axis %d runs across partitions; only axis 0 can", s->name, i);
    if (axes > 4)
        return trni_fail(error, TRN_ELIMIT,
                         "%s has %d axes within a partition that do not merge; access patterns have 4", s->name, axes);
    const int64_t start = s->at.p - s->before;
    core->culprit = s->allocation;
    const char *rule = trni_partition_rule(start, s->at.p_end - start);
    if (rule)
        return trni_fail(error, TRN_ELIMIT, "%s takes %lld partitions of '%s' from partition %lld; %s", s->name,
                         (long long)(s->at.p_end - start), s->allocation->name, (long long)start, rule);
    core->culprit = NULL;
    return TRN_OK;
}

/* `lanes`: a compute engine's operand, else DMA's. Absent or empty operands have no allocation. */
TRNI_FN trn_status trni_core_operand_locate(trn_core *core, trni_core_operand *s, bool lanes)
{
    trni_view v;
    const trn_status status = trni_view_open(&v, s->view, s->name, TRNI_INPUT, 0, &core->failure);
    if (status || v.elements == 0) return status;
    const int axes = trni_core_operand_axes(s, &v, lanes ? 1 : 0);
    s->elements = (double)(lanes ? v.width : v.elements);
    for (int i = 0; i < 2; i++)
        if (trni_memory_owns(&core->memory[i], v.t.data)) {
            s->memory = &core->memory[i];
            s->space = (trn_space)i;
        }
    if (!s->memory) {
        if (!lanes) return trni_core_operand_hbm(core, s, &v);
        return trni_fail(&core->failure, TRN_EINVAL, "%s is not in SBUF or PSUM; only DMA reaches other memory",
                         s->name);
    }
    trni_core_operand_reach(s, &v, s->memory->base, s->memory->pitch);
    const trn_status found = trni_core_operand_tenant(core, s);
    return found || !lanes ? found : trni_core_operand_lanes(core, s, &v, axes);
}

/* ---- what was written ---- */

TRNI_FN trn_status trni_core_operand_unwritten(trn_core *core, const trni_core_operand *s, int64_t p, int64_t b,
                                               const char *verb, const char *rest)
{
    const int64_t bytes = (int64_t)trn_format_bytes(s->view->format);
    return trni_fail(&core->failure, TRN_EINVAL, "%s %s partition %lld, element %lld of '%s', %s", s->name, verb,
                     (long long)(p - s->allocation->at.p), (long long)((b - s->allocation->at.b) / bytes),
                     s->allocation->name, rest);
}

TRNI_FN bool trni_core_operand_unsure(const trni_core_operand *s)
{
    return s->allocation && s->memory && s->allocation->unwritten > 0;
}

/* Does it add to what a matmul has to have written? */
TRNI_FN bool trni_core_operand_adds(const trni_core_operand *s)
{
    const unsigned both = TRNI_ROLE_READ | TRNI_ROLE_PSUM;
    return (s->role & both) == both && s->allocation && s->memory && !s->allocation->anything && s->memory->by_matmul;
}

/* Before Trainium3 a matmul adds only to what a matmul has written. */
TRNI_DRIVER trn_status trni_core_operand_check_matmul(trn_core *core, const trni_core_operand *s)
{
    int64_t p, b;
    if (!trni_core_operand_adds(s)) return TRN_OK;
    trni_cells_of(core->cells, s->memory, s->view, &s->at);
    if (!trni_cells_missing(core->cells, s->memory, s->memory->by_matmul, &p, &b)) return TRN_OK;
    return trni_core_operand_unwritten(core, s, p, b, "adds to",
                                       "which no matmul has written: begin with one that overwrites");
}

/* The bytes in core->cells were written. */
TRNI_FN void trni_core_operand_write_cells(trn_core *core, const trni_core_operand *s, bool by_matmul)
{
    trni_memory *m = s->memory;
    if (s->allocation->unwritten > 0) trni_cells_write(core->cells, m, s->allocation);
    if (m->by_matmul && m->poison) trni_cells_mark(core->cells, m, m->by_matmul, by_matmul);
}

TRNI_FN void trni_core_operand_write(trn_core *core, const trni_core_operand *s, bool by_matmul)
{
    if (!s->allocation || !s->memory || !s->memory->poison) return;
    if (s->allocation->unwritten == 0 && !s->memory->by_matmul) return;
    trni_cells_of(core->cells, s->memory, s->view, &s->at);
    trni_core_operand_write_cells(core, s, by_matmul);
}

/* `bytes` of it, from byte `at` of the memory on: one element. */
TRNI_FN void trni_core_operand_write_bytes(const trni_core_operand *s, int64_t at, int64_t bytes)
{
    uint64_t *written = s->memory->written;
    for (int64_t i = at; i < at + bytes; i++) {
        const uint64_t bit = (uint64_t)1 << (i % 64);
        s->allocation->unwritten -= !(written[i / 64] & bit);
        written[i / 64] |= bit;
    }
}

#endif /* TRNI_CORE_CORE_OPERAND_H */
