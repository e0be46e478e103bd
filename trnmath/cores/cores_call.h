/* cores/cores_call.h - a call on its own core: what it touches, whether that is legal, what the others have to know.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: finds operands as for any instruction of the core (core/core_run.h), looks at what NKI says of memories, axes
 *     and ranks, and writes the post.
 * DOES NOT: look at other cores.
 *
 * KNOWN FROM: NKI's pages (documented): SBUF for sendrecv; HBM or SBUF for all_reduce, all_gather and reduce_scatter,
 *     not both; axis 0 in HBM, of two axes in SBUF; several tensors in HBM only.
 */
#ifndef TRNI_CORES_CORES_CALL_H
#define TRNI_CORES_CORES_CALL_H

#include "cores_types.h"

/* ---- what it touches ---- */

TRNI_FN void trni_cores_more_collective(trni_issue *issue)
{
    static const char *const dst[] = { "dsts[0]", "dsts[1]", "dsts[2]", "dsts[3]",
                                       "dsts[4]", "dsts[5]", "dsts[6]", "dsts[7]" };
    static const char *const src[] = { "srcs[0]", "srcs[1]", "srcs[2]", "srcs[3]",
                                       "srcs[4]", "srcs[5]", "srcs[6]", "srcs[7]" };
    trn_cores_collective_args *a = &((trni_cores_ask *)issue->args)->collective;
    if (!a->count) {
        trni_issue_add(issue, "dst", &a->dst, TRNI_ROLE_WRITE);
        trni_issue_add(issue, "src", &a->src, TRNI_ROLE_READ);
    }
    for (int i = 0; a->dsts && i < a->count && i < TRN_CORES_TENSORS; i++)
        trni_issue_add(issue, dst[i], &a->dsts[i], TRNI_ROLE_WRITE);
    for (int i = 0; a->srcs && i < a->count && i < TRN_CORES_TENSORS; i++)
        trni_issue_add(issue, src[i], &a->srcs[i], TRNI_ROLE_READ);
}

/* ---- who takes part ---- */

/* Writes the list of the group that self is in; every rank_id may be in one list, once. */
TRNI_DRIVER trn_status trni_cores_members(trn_cores_rank *self, const trn_replica_group *g, trn_error *error)
{
    trni_cores_post *post = self->post;
    const int count = g->rank ? g->count : self->rank_ids, groups = g->rank && g->groups ? g->groups : 1;
    post->list = -1;
    if (count < 1 || groups < 1 || (int64_t)count * groups > self->rank_ids)
        return trni_fail(error, TRN_EINVAL, "replica_group has %d lists of %d ranks; there are %d", groups, count,
                         self->rank_ids);
    memset(self->call->mark, 0, (size_t)self->cores->ranks);
    for (int i = 0; i < count * groups; i++) {
        const int id = g->rank ? g->rank[i] : i;
        if (id < 0 || id >= self->rank_ids || self->call->mark[id])
            return trni_fail(error, TRN_EINVAL, "replica_group has rank %d %s", id,
                             id < 0 || id >= self->rank_ids ? ", which does not exist" : "twice");
        self->call->mark[id] = 1;
        if (id == self->rank_id) post->list = i / count;
    }
    if (post->list < 0)
        return trni_fail(error, TRN_EINVAL, "replica_group has no list with rank %d, which calls", self->rank_id);
    post->members = count;
    for (int i = 0; i < count; i++) {
        const int id = g->rank ? g->rank[post->list * count + i] : i;
        post->member[i] = id * self->programs + self->program_id;
    }
    return TRN_OK;
}

/* Ranks of a list that follow each other on a chip; 0 = not as many on each. */
TRNI_FN int trni_cores_per_chip(const trn_cores *cores, const trni_cores_post *post)
{
    int each = 0, now = 0;
    for (int i = 0; i < post->members; i++) {
        const bool same = i && trni_cores_chip(cores, post->member[i]) == trni_cores_chip(cores, post->member[i - 1]);
        if (i && !same) {
            if (each && now != each) return 0;
            each = now;
            now = 0;
        }
        now++;
    }
    return each && now != each ? 0 : now;
}

TRNI_FN trn_status trni_cores_check_group(trn_cores_rank *self, const trn_replica_group *g, trn_error *error)
{
    const trn_status status = trni_cores_members(self, g, error);
    if (status || trni_cores_per_chip(self->cores, self->post)) return status;
    return trni_fail(error, TRN_EUNSUPPORTED,
                     "list %d of replica_group is not made of chips with as many ranks each, one chip after the other",
                     self->post->list);
}

/* ---- collectives ---- */

TRNI_DRIVER trn_status trni_cores_views(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    if (a->count < 0 || a->count > TRN_CORES_TENSORS || (a->count && (!a->dsts || !a->srcs)))
        return trni_fail(error, TRN_EINVAL, "count is %d; dsts and srcs have 1 to %d tensors", a->count,
                         TRN_CORES_TENSORS);
    call->tensors = a->count ? a->count : 1;
    for (int i = 0; i < call->tensors; i++) {
        call->dst[i] = a->count ? a->dsts[i] : a->dst;
        call->src[i] = a->count ? a->srcs[i] : a->src;
        if (!call->dst[i].rank || !call->src[i].rank)
            return trni_fail(error, TRN_EINVAL, "%s is missing", call->src[i].rank ? "dst" : "src");
        if (call->dst[i].format != call->src[0].format || call->src[i].format != call->src[0].format)
            return trni_fail(error, TRN_EFORMAT, "dst is %s and src is %s; all have the same format",
                             trn_format_name(call->dst[i].format), trn_format_name(call->src[i].format));
    }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_cores_spaces(trn_cores_rank *self, const trni_cores_call *call)
{
    const trni_issue *issue = &call->issue;
    trn_error *error = &self->core.failure;
    const trni_seen *first = NULL;
    for (int i = 0; i < issue->count; i++) {
        const trni_seen *s = &issue->seen[i];
        if (!s->tenant) continue;
        if (!first) first = s;
        if (s->space != first->space)
            return trni_fail(error, TRN_ELIMIT, "%s lies in %s and %s in %s; all lie in the same memory", first->name,
                             trn_space_name(first->space), s->name, trn_space_name(s->space));
        if (s->memory && (s->view->rank != 2 || call->tensors > 1))
            return trni_fail(error, TRN_ELIMIT, "%s has rank %d; in SBUF there is one tensor, of 2 axes", s->name,
                             s->view->rank);
    }
    const int dim = call->ask.collective.collective_dim, most = first && first->memory ? 1 : 0;
    if (dim < 0 || dim > most)
        return trni_fail(error, TRN_ELIMIT, "collective_dim is %d; in %s it is %s", dim, most ? "SBUF" : "HBM",
                         most ? "0 or 1" : "0");
    return TRN_OK;
}

/* `large` has n times as many along dim as `small`. */
TRNI_DRIVER trn_status trni_cores_shapes(const trn_tensor *large, const char *large_name, const trn_tensor *small,
                                         const char *small_name, int dim, int n, trn_error *error)
{
    trn_tensor expected = *small;
    if (expected.shape[dim] > INT64_MAX / n)
        return trni_fail(error, TRN_ESHAPE, "%s is larger than anything by %d", small_name, n);
    expected.shape[dim] *= n;
    char text[64];
    snprintf(text, sizeof text, "%d times %s along axis %d", n, small_name, dim);
    return trni_check_same_shape(large, large_name, &expected, text, error);
}

/* With the pieces of the ranks along dim as the first axis, one after the other. */
TRNI_FN trn_tensor trni_cores_cut(trn_tensor t, int dim, int n)
{
    int axis[TRN_MAX_RANK];
    if (dim == 0 || t.shape[dim] == 0) return t;
    t = trn_tensor_split(t, dim, t.shape[dim] / n);
    for (int i = 0; i < TRN_MAX_RANK; i++) axis[i] = i == 0 ? dim : i <= dim ? i - 1 : i;
    return trn_tensor_permuted(t, axis);
}

TRNI_DRIVER trn_status trni_cores_check_collective(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_views(self, call);
    if (!status) status = trni_cores_spaces(self, call);
    if (!status) status = trni_cores_check_group(self, &a->replica_group, error);
    if (!status) status = trni_check_rounding(a->rounding, a->sr_bits, error);
    if (!status && a->op && a->op != TRN_ALU_ADD)
        status = trni_fail(error, TRN_EUNSUPPORTED, "op is %s; sums are there", trn_alu_name(a->op));
    return status;
}

TRNI_FN trn_status trni_cores_check_all_reduce(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_collective(self, call);
    for (int i = 0; i < call->tensors && !status; i++)
        status = trni_check_same_shape(&call->dst[i], "dst", &call->src[i], "src", &self->core.failure);
    return status;
}

TRNI_FN trn_status trni_cores_check_all_gather(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_collective(self, call);
    const int dim = call->ask.collective.collective_dim, n = self->post->members;
    for (int i = 0; i < call->tensors && !status; i++) {
        status = trni_cores_shapes(&call->dst[i], "dst", &call->src[i], "src", dim, n, &self->core.failure);
        if (!status) call->dst[i] = trni_cores_cut(call->dst[i], dim, n);
    }
    return status;
}

TRNI_FN void trni_cores_ready_collective(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trni_cores_terms *t = &self->post->terms;
    t->dim = a->collective_dim;
    t->alu = (int)(a->op ? a->op : TRN_ALU_ADD);
    t->algorithm = (int)(a->algorithm ? a->algorithm : self->cores->args.algorithm);
    t->accumulate = (int)(a->accumulate ? a->accumulate : TRN_F32);
    t->rounding = (int)a->rounding;
    t->sr_bits = a->sr_bits;
    t->seed = a->seed;
    t->stream = a->stream;
    self->post->ready_s = fmax(trni_issue_ready(&call->issue), call->lane.free_s);
}

/* ---- barrier ---- */

TRNI_FN trn_engine trni_cores_barrier_engine(const trn_cores_barrier_args *a)
{
    return a->engine == TRN_ENGINE_UNKNOWN ? TRN_ENGINE_GPSIMD : a->engine;
}

TRNI_FN trn_status trni_cores_since(const trn_cores_rank *self, trn_error *error)
{
    const trn_generation g = self->core.spec->generation;
    if (g >= TRN_TRAINIUM2) return TRN_OK;
    return trni_fail(error, TRN_EUNSUPPORTED, "%s has no such instruction; Trainium2 is the first that has",
                     trn_generation_name(g));
}

TRNI_DRIVER trn_status trni_cores_barrier_members(trn_cores_rank *self, const trn_cores_barrier_args *a,
                                                  trn_error *error)
{
    trni_cores_post *post = self->post;
    const int programs = self->programs, count = a->cores ? a->count : programs;
    bool self_too = false;
    memset(self->call->mark, 0, (size_t)self->cores->ranks);
    for (int i = 0; i < count && i < programs; i++) {
        const int id = a->cores ? a->cores[i] : i;
        if (id < 0 || id >= programs || self->call->mark[id])
            return trni_fail(error, TRN_EINVAL, "cores[%d] is %d; each of 0 to %d may be there once", i, id,
                             programs - 1);
        self->call->mark[id] = 1;
        self_too = self_too || id == self->program_id;
    }
    if (count < 1 || count > programs || !self_too)
        return trni_fail(error, TRN_EINVAL, "cores has %d of %d cores; core %d, which calls, is to be there", count,
                         programs, self->program_id);
    post->members = 0;
    for (int id = 0; id < programs; id++) /* in one order, whatever the caller's */
        if (self->call->mark[id]) post->member[post->members++] = trni_cores_sibling(self, id);
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_check_barrier(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_barrier_args *a = &call->ask.barrier;
    const trn_engine e = trni_cores_barrier_engine(a);
    trn_error *error = &self->core.failure;
    const trn_status status = trni_cores_since(self, error);
    if (status) return status;
    if (e < TRN_ENGINE_TENSOR || e > TRN_ENGINE_GPSIMD)
        return trni_fail(error, TRN_EINVAL, "engine is %s; an engine that computes waits", trn_engine_name(e));
    if (call->issue.count && call->issue.seen[0].memory)
        return trni_fail(error, TRN_ELIMIT, "data lies in %s; cores share HBM only",
                         trn_space_name(call->issue.seen[0].space));
    self->post->list = 0;
    if (!a->all) return trni_cores_barrier_members(self, a, error);
    self->post->members = self->cores->ranks;
    for (int i = 0; i < self->post->members; i++) self->post->member[i] = i;
    return TRN_OK;
}

TRNI_FN void trni_cores_ready_barrier(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_core *core = &self->core;
    const bool some = call->ask.barrier.data.rank > 0;
    self->post->ready_s = fmax(core->lane[trni_cores_barrier_engine(&call->ask.barrier)].free_s,
                               some ? trni_issue_ready(&call->issue) : core->time_s);
}

/* ---- sendrecv ---- */

TRNI_FN trn_status trni_cores_check_sendrecv(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_sendrecv_args *a = &call->ask.sendrecv;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_since(self, error);
    if (status) return status;
    if (!a->src.rank || !a->dst.rank)
        return trni_fail(error, TRN_EINVAL, "%s is missing", a->src.rank ? "dst" : "src");
    if (self->programs < 2)
        return trni_fail(error, TRN_EUNSUPPORTED, "lnc is 1; cores of a logical core send to each other");
    const int other[2] = { a->send_to_rank, a->recv_from_rank };
    for (int i = 0; i < 2; i++)
        if (other[i] < 0 || other[i] >= self->programs)
            return trni_fail(error, TRN_EINVAL, "%s is %d; a logical core has cores 0 to %d",
                             i ? "recv_from_rank" : "send_to_rank", other[i], self->programs - 1);
    if ((unsigned)a->dma_engine > TRN_DMA_ENGINE_GPSIMD)
        return trni_fail(error, TRN_EINVAL, "dma_engine is %d, not one of them", (int)a->dma_engine);
    if (a->dst.format != a->src.format)
        return trni_fail(error, TRN_EFORMAT, "dst is %s and src is %s; bits move", trn_format_name(a->dst.format),
                         trn_format_name(a->src.format));
    status = trni_check_same_shape(&a->dst, "dst", &a->src, "src", error);
    if (!status && trn_tensor_overlap(a->dst, a->src))
        status = trni_fail(error, TRN_EINVAL, "dst meets src");
    call->tensors = 1;
    call->src[0] = a->src;
    call->dst[0] = a->dst;
    return status;
}

TRNI_FN void trni_cores_ready_sendrecv(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_sendrecv_args *a = &call->ask.sendrecv;
    self->post->pipe = a->pipe_id;
    self->post->to = trni_cores_sibling(self, a->send_to_rank);
    self->post->from = trni_cores_sibling(self, a->recv_from_rank);
    self->post->members = 0;
    self->post->ready_s = trni_issue_ready(&call->issue);
}

/* ---- the post ---- */

TRNI_FN void trni_cores_post_terms(trni_cores_post *post, int op, const trni_cores_call *call)
{
    trni_cores_terms *t = &post->terms;
    t->op = op;
    t->tensors = call->tensors;
    for (int i = 0; i < call->tensors; i++) {
        t->format[i] = (int)call->src[i].format;
        t->rank[i] = call->src[i].rank;
        memcpy(t->shape[i], call->src[i].shape, sizeof t->shape[i]);
    }
}

/* The call on its own core: TRN_OK, and the post is there but for its state. */
TRNI_FN trn_status trni_cores_call_begin(trn_cores_rank *self, const trni_cores_kind *kind, int op,
                                         const trni_cores_ask *ask, trn_error *error)
{
    trni_cores_call *call = self->call;
    trni_issue *issue = &call->issue;
    call->ask = *ask;
    call->tensors = 0;
    issue->core = &self->core;
    issue->order = &kind->order;
    issue->args = &call->ask;
    issue->engine = TRN_ENGINE_DMA;
    issue->count = issue->parts = 0;
    issue->start_s = issue->end_s = issue->cycles = issue->seconds = 0;
    memset(&self->post->terms, 0, sizeof self->post->terms);
    trn_status status = trni_issue_gather(issue);
    if (!status) status = trni_issue_check(issue);
    if (!status) status = kind->check(self, call);
    if (status) return trni_issue_failed(issue, status, error);
    trni_cores_post_terms(self->post, op, call);
    kind->ready(self, call);
    self->post->instruction = self->core.instructions;
    return TRN_OK;
}

#endif /* TRNI_CORES_CORES_CALL_H */
