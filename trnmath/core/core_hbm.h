/* core/core_hbm.h - tensors in HBM that begin with nothing in them: which bytes were written, and who reads too early.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: marks what a transfer writes, run by run of a view; tells a read of what none has written, rows that an index
 *     chooses among them; says of a result how much of it was never written, and where.
 * DOES NOT: follow unwritten elements as core_poison.h does: they are refused where they leave HBM, and where they
 *     would reach it.
 *
 * KNOWN FROM: a choice of this library. The machine moves whatever lies there.
 */
#ifndef TRNI_CORE_CORE_HBM_H
#define TRNI_CORE_CORE_HBM_H

#include "core_chain.h"

/* ---- a view as runs of bytes ---- */

typedef struct trni_hbm_runs {
    int64_t at, run; /* bytes: from the tensor's first on; of each run */
    int rank;        /* of the axes that are left around a run */
    int64_t size[TRN_MAX_RANK], step[TRN_MAX_RANK], index[TRN_MAX_RANK];
} trni_hbm_runs;

TRNI_FN void trni_hbm_runs_begin(trni_hbm_runs *r, const trn_tensor *view, const char *base)
{
    int64_t stride[TRN_MAX_RANK];
    trni_strides(view, stride);
    r->at = (const char *)view->data - base;
    r->run = (int64_t)trn_format_bytes(view->format);
    r->rank = 0;
    for (int i = 0; i < view->rank; i++) {
        if (view->shape[i] == 1 || stride[i] == 0) continue;
        r->size[r->rank] = view->shape[i];
        r->step[r->rank] = stride[i] * (int64_t)trn_format_bytes(view->format);
        r->index[r->rank++] = 0;
    }
    for (; r->rank && r->step[r->rank - 1] == r->run; r->rank--) r->run *= r->size[r->rank - 1];
}

/* False after the last one. */
TRNI_FN bool trni_hbm_runs_next(trni_hbm_runs *r)
{
    for (int i = r->rank - 1; i >= 0; i--) {
        r->at += r->step[i];
        if (++r->index[i] < r->size[i]) return true;
        r->at -= r->step[i] * r->size[i];
        r->index[i] = 0;
    }
    return false;
}

/* ---- rows that a tile of indices chooses ---- */

typedef struct trni_hbm_rows {
    const trn_tensor *view;
    trn_tensor row; /* the one that has come */
    trni_span index;
    int64_t next, count;
} trni_hbm_rows;

/* An index that no instruction takes chooses none: it will be refused. */
TRNI_FN void trni_hbm_rows_begin(trni_hbm_rows *r, const trn_tensor *index, const trn_tensor *view)
{
    r->view = view;
    r->next = r->count = 0;
    if (index->format != TRN_U32 && index->format != TRN_I32) return;
    r->count = trn_tensor_elements(*index);
    if (r->count) trni_span_known(&r->index, index, TRN_ISA_PORTABLE);
}

/* False after the last one. What is out of bounds moves nothing. */
TRNI_FN bool trni_hbm_rows_next(trni_hbm_rows *r)
{
    while (r->next < r->count) {
        const int64_t p = r->next / r->index.elements, f = r->next % r->index.elements;
        const int64_t row = trni_integer_at(r->index.format, trni_span_run(&r->index, p, f).at);
        r->next++;
        if (row < 0 || row >= r->view->shape[0]) continue;
        r->row = trn_tensor_slice(*r->view, 0, row, 1);
        return true;
    }
    return false;
}

/* ---- bits ---- */

/* Sets bits [first, end); how many were not set. */
TRNI_FN int64_t trni_bits_take(uint64_t *bits, int64_t first, int64_t end)
{
    int64_t fresh = 0;
    for (int64_t w = first / 64; w * 64 < end; w++) {
        const uint64_t new_bits = trni_word_mask(w, first, end) & ~bits[w];
        fresh += new_bits == ~(uint64_t)0 ? 64 : new_bits ? __builtin_popcountll(new_bits) : 0;
        bits[w] |= new_bits;
    }
    return fresh;
}

/* The first of bits [first, end) that is not set; -1 = none. */
TRNI_FN int64_t trni_bits_missing(const uint64_t *bits, int64_t first, int64_t end)
{
    for (int64_t w = first / 64; w * 64 < end; w++) {
        const uint64_t none = trni_word_mask(w, first, end) & ~bits[w];
        if (none) return 64 * w + __builtin_ctzll(none);
    }
    return -1;
}

/* ---- what was written ---- */

/* A tensor of which something is unwritten; else null. */
TRNI_FN const trni_hbm *trni_hbm_unsure(const trni_core_operand *s)
{
    if (!s->allocation || s->memory) return NULL;
    const trni_hbm *h = (const trni_hbm *)(const void *)s->allocation; /* its first member */
    return h->written && h->written->unwritten > 0 ? h : NULL;
}

TRNI_FN void trni_hbm_wrote(const trni_hbm *h, const trn_tensor *view)
{
    trni_hbm_runs r;
    trni_hbm_runs_begin(&r, view, h->base);
    do h->written->unwritten -= trni_bits_take(h->written->bit, r.at, r.at + r.run);
    while (trni_hbm_runs_next(&r));
}

/* The first byte of a view that nothing has written; -1 = none. */
TRNI_FN int64_t trni_hbm_missing(const trni_hbm *h, const trn_tensor *view)
{
    trni_hbm_runs r;
    trni_hbm_runs_begin(&r, view, h->base);
    do {
        const int64_t at = trni_bits_missing(h->written->bit, r.at, r.at + r.run);
        if (at >= 0) return at;
    } while (trni_hbm_runs_next(&r));
    return -1;
}

/* ---- who reads too early ---- */

TRNI_DRIVER trn_status trni_hbm_refuse(trn_core *core, const trni_core_operand *s, const trni_hbm *h, int64_t at)
{
    core->culprit = s->allocation;
    return trni_fail(&core->failure, TRN_EINVAL, "%s reads row %lld, element %lld of '%s', which nothing has written",
                     s->name, (long long)(at / h->pitch),
                     (long long)(at % h->pitch / (int64_t)trn_format_bytes(s->view->format)), h->tensor.name);
}

/* index: of rows that data choose; null: all of the view is read. */
TRNI_DRIVER trn_status trni_hbm_check_read(trn_core *core, const trni_core_operand *s, const trn_tensor *index)
{
    const trni_hbm *h = trni_hbm_unsure(s);
    int64_t at = -1;
    trni_hbm_rows rows;
    if (!h) return TRN_OK;
    if (!index)
        at = trni_hbm_missing(h, s->view);
    else
        for (trni_hbm_rows_begin(&rows, index, s->view); at < 0 && trni_hbm_rows_next(&rows);)
            at = trni_hbm_missing(h, &rows.row);
    return at < 0 ? TRN_OK : trni_hbm_refuse(core, s, h, at);
}

/* ---- results ---- */

typedef struct trni_hbm_hole {
    int64_t elements, low[TRN_MAX_RANK], high[TRN_MAX_RANK]; /* of the view: so many, within [low, high) of each axis */
} trni_hbm_hole;

/* Elements of a view of which nothing has written a byte, or not all. */
TRNI_DRIVER void trni_hbm_holes(const trni_hbm *h, const trn_tensor *view, trni_hbm_hole *hole)
{
    int64_t stride[TRN_MAX_RANK], index[TRN_MAX_RANK] = { 0 };
    const int64_t bytes = (int64_t)trn_format_bytes(view->format);
    int64_t at = (const char *)view->data - h->base;
    memset(hole, 0, sizeof *hole);
    trni_strides(view, stride);
    for (int i = view->rank - 1; i >= 0;) {
        if (trni_bits_missing(h->written->bit, at, at + bytes) >= 0) {
            for (int k = 0; k < view->rank; k++) {
                if (!hole->elements || index[k] < hole->low[k]) hole->low[k] = index[k];
                if (index[k] >= hole->high[k]) hole->high[k] = index[k] + 1;
            }
            hole->elements++;
        }
        for (i = view->rank - 1; i >= 0; i--) {
            at += stride[i] * bytes;
            if (++index[i] < view->shape[i]) break;
            at -= stride[i] * bytes * view->shape[i];
            index[i] = 0;
        }
    }
}

TRNI_DRIVER trn_status trni_hbm_incomplete(trn_core *core, const trni_core_operand *s, const trni_hbm *h)
{
    trni_hbm_hole hole;
    char box[96] = "";
    trni_hbm_holes(h, s->view, &hole);
    for (int k = 0, used = 0; k < s->view->rank && used < (int)sizeof box; k++)
        used += snprintf(box + used, sizeof box - (size_t)used, "%s%lld:%lld", k ? ", " : "", (long long)hole.low[k],
                         (long long)hole.high[k]);
    const int64_t all = trn_tensor_elements(*s->view);
    core->culprit = s->allocation;
    return trni_fail(&core->failure, TRN_EINVAL, "of the result '%s' nothing has written %lld of %lld elements%s%s%s",
                     h->tensor.name, (long long)hole.elements, (long long)all,
                     hole.elements < all ? ", all within [" : "", hole.elements < all ? box : "",
                     hole.elements < all ? "]" : "");
}

#endif /* TRNI_CORE_CORE_HBM_H */
