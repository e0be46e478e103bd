/* cores/cores_shared.h - tensors in HBM that the cores of a logical core share, by name.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: makes them when the first core asks, and registers them with each core that does (trn_core_hbm).
 * DOES NOT: order what cores do with them: barriers do.
 *
 * KNOWN FROM: NKI's shared_hbm (documented).
 */
#ifndef TRNI_CORES_CORES_SHARED_H
#define TRNI_CORES_CORES_SHARED_H

#include "cores_scheduler.h"

TRNI_FN bool trni_cores_same_tensor(const trn_tensor *x, const trn_tensor *y)
{
    return x->format == y->format && x->rank == y->rank && !memcmp(x->shape, y->shape, sizeof x->shape);
}

/* With the scheduler's lock. Cores that ask for other shapes by the same name get memory of their own until the end of
 * the round, when that is told: which of them asked first plays no part. */
TRNI_FN trn_tensor trni_cores_share(trn_cores_rank *self, const char *name, trn_tensor like, size_t bytes)
{
    trni_cores *work = self->cores->work;
    char cut[TRNI_TILE_NAME];
    trni_copy_text(cut, sizeof cut, name);
    for (trni_cores_shared *s = work->shared; s; s = s->next) {
        if (s->rank_id != self->rank_id || strcmp(s->name, cut) || !trni_cores_same_tensor(&s->tensor, &like)) continue;
        if (self->rank < s->rank) s->rank = self->rank;
        return s->tensor;
    }
    trni_cores_shared *s = (trni_cores_shared *)calloc(1, sizeof *s + bytes + TRNI_TILE_ALIGN);
    if (!s) return trni_no_tensor();
    memcpy(s->name, cut, sizeof cut);
    s->rank_id = self->rank_id;
    s->rank = self->rank;
    s->tensor = like;
    s->tensor.data = (char *)(s + 1) + (size_t)(-(uintptr_t)(s + 1) % TRNI_TILE_ALIGN);
    s->next = work->shared;
    work->shared = s;
    return s->tensor;
}

TRNI_FN trn_tensor trni_cores_hbm(trn_cores_rank *self, const char *name, trn_format format, int rank,
                                  const int64_t *shape)
{
    static char nothing; /* the check of a shape wants a place */
    trn_core *core = &self->core;
    trni_view v;
    if (core->failure.status) return trni_no_tensor();
    trn_tensor t = trn_tensor_nd(format, &nothing, rank, shape);
    const trn_status status = trni_view_open(&v, &t, name, TRNI_INPUT, 0, &core->failure);
    if (status) {
        trni_core_fail(core, status);
        return trni_no_tensor();
    }
    trni_scheduler_lock(self->cores);
    t = trni_cores_share(self, name, t, v.extent);
    trni_scheduler_unlock(self->cores);
    if (t.rank) return trn_core_hbm(core, name, t);
    trni_core_fail(core, trni_fail(&core->failure, TRN_ENOSPC, "could not allocate HBM tensor '%.40s' of %zu bytes",
                                   name, v.extent));
    return t;
}

/* The lowest ranks that ask for a name with another shape than others of their logical core. */
TRNI_FN trn_status trni_cores_check_shared(trn_cores *cores)
{
    const trni_cores_shared *first = NULL, *second = NULL;
    for (const trni_cores_shared *s = cores->work->shared; s; s = s->next)
        for (const trni_cores_shared *t = cores->work->shared; t; t = t->next) {
            if (s->rank >= t->rank || s->rank_id != t->rank_id || strcmp(s->name, t->name)) continue;
            if (first && (first->rank < s->rank || (first->rank == s->rank && second->rank <= t->rank))) continue;
            first = s;
            second = t;
        }
    if (!first) return TRN_OK;
    return trni_fail(&cores->failure, TRN_ESHAPE,
                     "HBM tensor '%s' has another format or shape for rank %d than for rank "
                     "%d, which share it",
                     first->name, first->rank, second->rank);
}

TRNI_FN void trni_cores_free_shared(trni_cores *work)
{
    while (work->shared) {
        trni_cores_shared *next = work->shared->next;
        free(work->shared);
        work->shared = next;
    }
}

#endif /* TRNI_CORES_CORES_SHARED_H */
