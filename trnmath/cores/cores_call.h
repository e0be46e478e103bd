/* cores/cores_call.h - a call on its own core: what it touches, whether that is legal, what the others have to know.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: finds operands as for any instruction of the core (core/core_run.h), looks at what NKI says of memories, axes
 *     and ranks, and writes the message.
 * DOES NOT: look at other cores.
 *
 * KNOWN FROM: NKI's pages (documented): SBUF for sendrecv; HBM or SBUF for all_reduce, all_gather and reduce_scatter,
 *     not both; axis 0 in HBM, of two axes in SBUF; several tensors in HBM only.
 */
#ifndef TRNI_CORES_CORES_CALL_H
#define TRNI_CORES_CORES_CALL_H

#include "cores_types.h"

/* ---- what it touches ---- */

/* One operand of each kind, or one of each tensor. */
TRNI_FN void trni_cores_more_views(trni_issue *issue, const trn_tensor *one, const trn_tensor *many, int count,
                                   const char *const name[1 + TRN_CORES_TENSORS], unsigned role)
{
    if (!count) trni_issue_add(issue, name[0], one, role);
    for (int i = 0; many && i < count && i < TRN_CORES_TENSORS; i++) trni_issue_add(issue, name[1 + i], &many[i], role);
}

TRNI_FN void trni_cores_more_collective(trni_issue *issue)
{
#define TRNI_NAMES(x)                                                                                                  \
    {                                                                                                                  \
#x, #x "s[0]", #x "s[1]", #x "s[2]", #x "s[3]", #x "s[4]", #x "s[5]", #x "s[6]", #x "s[7]"                     \
    }
    static const char *const dst[] = TRNI_NAMES(dst), *const src[] = TRNI_NAMES(src), *const src1[] = TRNI_NAMES(src1);
#undef TRNI_NAMES
    trn_cores_collective_args *a = &((trni_cores_ask *)issue->args)->collective;
    trni_cores_more_views(issue, &a->dst, a->dsts, a->count, dst, TRNI_ROLE_WRITE);
    trni_cores_more_views(issue, &a->src, a->srcs, a->count, src, TRNI_ROLE_READ);
    trni_cores_more_views(issue, &a->src1, a->srcs1, a->count, src1, TRNI_ROLE_READ);
    trni_issue_add(issue, "metadata", &a->metadata, TRNI_ROLE_READ);
}

/* An operand that plays no part for this rank. */
TRNI_FN void trni_cores_forget(trni_cores_call *call, unsigned role)
{
    for (int i = 0; i < call->issue.count; i++)
        if (call->issue.operand[i].role == role) call->issue.operand[i].allocation = NULL;
}

/* ---- who takes part ---- */

/* From the first rank of each chip, [groups][size], which lies at the end of what is written. */
TRNI_FN void trni_cores_lists(int *rank, const int *chip, int groups, int size, int each, bool all_cores)
{
    for (int g = 0; g < groups; g++)
        for (int k = 0; k < each; k++)
            for (int i = 0; i < size && !all_cores; i++) rank[(g * each + k) * size + i] = chip[g * size + i] + k;
    for (int i = 0; i < groups * size && all_cores; i++) {
        const int first = chip[i];
        for (int k = 0; k < each; k++) rank[i * each + k] = first + k;
    }
}

/* Writes the list of the group that self is in; every rank_id may be in one list, once. */
TRNI_DRIVER trn_status trni_cores_members(trn_cores_rank *self, const trn_replica_group *g, trn_error *error)
{
    trni_cores_message *message = self->message;
    const int count = g->rank ? g->count : self->rank_ids, groups = g->rank && g->groups ? g->groups : 1;
    message->list = -1;
    if (count < 1 || groups < 1 || (int64_t)count * groups > self->rank_ids)
        return trni_fail(error, TRN_EINVAL, "replica_group has %d lists of %d ranks; there are %d", groups, count,
                         self->rank_ids);
    memset(self->call->mark, 0, (size_t)self->cores->ranks);
    for (int i = 0; i < count * groups; i++) {
        const int id = g->rank ? g->rank[i] : i;
        if (id < 0 || id >= self->rank_ids || self->call->mark[id])
            return trni_fail(error, TRN_EINVAL, "replica_group has rank %d%s", id,
                             id < 0 || id >= self->rank_ids ? ", which does not exist" : " twice");
        self->call->mark[id] = 1;
        if (id == self->rank_id) message->list = i / count;
    }
    if (message->list < 0)
        return trni_fail(error, TRN_EINVAL, "replica_group has no list with rank %d, which calls", self->rank_id);
    message->members = count;
    for (int i = 0; i < count; i++) {
        const int id = g->rank ? g->rank[message->list * count + i] : i;
        message->member[i] = id * self->programs + self->program_id;
    }
    return TRN_OK;
}

/* Ranks of a list that follow each other on a chip; 0 = not as many on each. */
TRNI_FN int trni_cores_per_chip(const trn_cores *cores, const trni_cores_message *message)
{
    int each = 0, now = 0;
    for (int i = 0; i < message->members; i++) {
        const bool same =
            i && trni_cores_chip(cores, message->member[i]) == trni_cores_chip(cores, message->member[i - 1]);
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
    if (status || trni_cores_per_chip(self->cores, self->message)) return status;
    return trni_fail(error, TRN_EUNSUPPORTED,
                     "list %d of replica_group is not made of chips with as many ranks each, one chip after the other",
                     self->message->list);
}

/* ---- collectives: views ---- */

TRNI_DRIVER trn_status trni_cores_view(const trn_tensor *t, trn_format format, const char *name, trn_error *error)
{
    if (!t->rank) return trni_fail(error, TRN_EINVAL, "%s is missing", name);
    if (t->format == format) return TRN_OK;
    return trni_fail(error, TRN_EFORMAT, "%s is %s; the first src is %s, and all have its format", name,
                     trn_format_name(t->format), trn_format_name(format));
}

TRNI_DRIVER trn_status trni_cores_views(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    const bool reduces = self->message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE;
    trn_error *error = &self->core.failure;
    trn_status status = TRN_OK;
    if (a->count < 0 || a->count > TRN_CORES_TENSORS || (a->count && (!a->dsts || !a->srcs || (reduces && !a->srcs1))))
        return trni_fail(error, TRN_EINVAL, "count is %d; dsts, srcs%s have 1 to %d tensors", a->count,
                         reduces ? " and srcs1" : "", TRN_CORES_TENSORS);
    call->tensors = a->count ? a->count : 1;
    for (int i = 0; i < call->tensors && !status; i++) {
        call->dst[i] = a->count ? a->dsts[i] : a->dst;
        call->src[i] = a->count ? a->srcs[i] : a->src;
        if (reduces) call->src1[i] = a->count ? a->srcs1[i] : a->src1;
        status = trni_cores_view(&call->src[i], call->src[0].format, "src", error);
        if (!status) status = trni_cores_view(&call->dst[i], call->src[0].format, "dst", error);
        if (!status && reduces) status = trni_cores_view(&call->src1[i], call->src[0].format, "src1", error);
    }
    return status;
}

/* All lie in the same memory, which has to be one that there may be. */
TRNI_DRIVER trn_status trni_cores_spaces(trn_cores_rank *self, const trni_cores_call *call)
{
    const trni_issue *issue = &call->issue;
    const int sbuf_dim = call->kind->sbuf_dim;
    const bool channels = self->message->terms.op >= TRNI_CORES_PERMUTE_IMPLICIT;
    trn_error *error = &self->core.failure;
    const trni_core_operand *first = NULL;
    for (int i = 0; i < issue->count; i++) {
        const trni_core_operand *s = &issue->operand[i];
        if (!s->allocation) continue;
        if (!first) first = s;
        if (s->space != first->space)
            return trni_fail(error, TRN_ELIMIT, "%s lies in %s and %s in %s; all lie in the same memory", first->name,
                             trn_space_name(first->space), s->name, trn_space_name(s->space));
        if (s->memory && sbuf_dim < 0)
            return trni_fail(error, TRN_ELIMIT, "%s lies in %s; it has to be in HBM", s->name,
                             trn_space_name(s->space));
        if (s->memory && !channels && (s->view->rank != 2 || call->tensors > 1))
            return trni_fail(error, TRN_ELIMIT, "%s has rank %d; in SBUF there is one tensor, of 2 axes", s->name,
                             s->view->rank);
    }
    const int dim = call->ask.collective.collective_dim, most = first && first->memory ? sbuf_dim : 0;
    if (dim < 0 || dim > most)
        return trni_fail(error, TRN_ELIMIT, "collective_dim is %d; in %s it is %s", dim,
                         first && first->memory ? "SBUF" : "HBM", most ? "0 or 1" : "0");
    return TRN_OK;
}

/* `large` has n times as many along dim as `small`. */
TRNI_DRIVER trn_status trni_cores_shapes(const trn_tensor *large, const char *large_name, const trn_tensor *small,
                                         const char *small_name, int dim, int n, trn_error *error)
{
    trn_tensor expected = *small;
    char text[64];
    if (dim >= small->rank || expected.shape[dim] > INT64_MAX / n)
        return trni_fail(error, TRN_ESHAPE, "%s has no axis %d that %d of it could be joined along", small_name, dim,
                         n);
    expected.shape[dim] *= n;
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

TRNI_FN bool trni_cores_reduces(int op) { return op == TRNI_CORES_ALL_REDUCE || op == TRNI_CORES_REDUCE_SCATTER; }

TRNI_DRIVER trn_status trni_cores_check_op(const trn_cores_rank *self, const trn_cores_collective_args *a,
                                           trn_error *error)
{
    const bool add = !a->op || a->op == TRN_ALU_ADD;
    const bool order = a->op == TRN_ALU_MAXIMUM || a->op == TRN_ALU_MINIMUM;
    if (add || (order && trni_cores_reduces(self->message->terms.op))) return TRN_OK;
    return trni_fail(error, TRN_EUNSUPPORTED, "op is %s; there is add, and maximum and minimum where all ranks reduce",
                     trn_alu_name(a->op));
}

TRNI_DRIVER trn_status trni_cores_check_collective(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_views(self, call);
    if (!status) status = trni_cores_spaces(self, call);
    if (!status && self->message->terms.op != TRNI_CORES_PERMUTE)
        status = trni_cores_check_group(self, &a->replica_group, error);
    if (!status) status = trni_check_rounding(a->rounding, a->sr_bits, error);
    if (!status) status = trni_cores_check_op(self, a, error);
    return status;
}

TRNI_FN trn_status trni_cores_check_same(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_collective(self, call);
    for (int i = 0; i < call->tensors && !status; i++)
        status = trni_check_same_shape(&call->dst[i], "dst", &call->src[i], "src", &self->core.failure);
    return status;
}

TRNI_FN trn_status trni_cores_check_gather(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_collective(self, call);
    const int dim = call->ask.collective.collective_dim, n = self->message->members;
    for (int i = 0; i < call->tensors && !status; i++) {
        status = trni_cores_shapes(&call->dst[i], "dst", &call->src[i], "src", dim, n, &self->core.failure);
        if (!status) call->dst[i] = trni_cores_cut(call->dst[i], dim, n);
    }
    return status;
}

TRNI_FN trn_status trni_cores_check_scatter(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_collective(self, call);
    for (int i = 0; i < call->tensors && !status; i++)
        status = trni_cores_shapes(&call->src[i], "src", &call->dst[i], "dst", 0, self->message->members,
                                   &self->core.failure);
    return status;
}

TRNI_FN trn_status trni_cores_check_all_to_all(trn_cores_rank *self, trni_cores_call *call)
{
    trn_status status = trni_cores_check_same(self, call);
    for (int i = 0; i < call->tensors && !status; i++)
        if (call->src[i].shape[0] % self->message->members)
            status = trni_fail(&self->core.failure, TRN_ESHAPE,
                               "src has size %lld on axis 0, which %d ranks cannot "
                               "share",
                               (long long)call->src[i].shape[0], self->message->members);
    return status;
}

/* ---- collectives: as many as the metadata say ---- */

/* As a run of elements; rank 0: it is none. */
TRNI_FN trn_tensor trni_cores_flat(trn_tensor t)
{
    while (t.rank > 1) t = trn_tensor_merge(t, t.rank - 2);
    return t.rank && t.shape[0] > 1 && t.stride[0] > 1 ? trni_no_tensor() : t;
}

TRNI_DRIVER trn_status trni_cores_metadata(trn_cores_rank *self, const trn_cores_collective_args *a, trn_error *error)
{
    const trn_tensor *m = &a->metadata;
    const int rows = a->has_rdispls ? 4 : a->recv_counts_known ? 3 : 2, n = self->message->members;
    if (m->rank != 2 || m->format != TRN_U32 || m->shape[0] < rows || m->shape[0] > 4 || m->shape[1] != n)
        return trni_fail(error, TRN_ESHAPE, "metadata has rank %d; it is uint32 [%d%s, %d]", m->rank, rows,
                         rows < 4 ? " or more, up to 4" : "", n);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < n; i++) {
            const trn_tensor one = trn_tensor_slice(trn_tensor_slice(*m, 0, row, 1), 1, i, 1);
            memcpy(&self->message->table[row * n + i], one.data, sizeof(uint32_t));
        }
    const bool gather = self->message->terms.op == TRNI_CORES_ALL_GATHER_V;
    for (int i = 1; i < n && gather; i++) { /* the first column counts */
        self->message->table[i] = self->message->table[0];
        self->message->table[n + i] = self->message->table[n];
    }
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_check_v(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_check_collective(self, call);
    if (!status && a->count)
        status = trni_fail(error, TRN_EINVAL, "count is %d; there is one src and one dst", a->count);
    if (!status) status = trni_cores_metadata(self, a, error);
    if (status) return status;
    call->src[0] = trni_cores_flat(call->src[0]);
    call->dst[0] = trni_cores_flat(call->dst[0]);
    if (!call->src[0].rank || !call->dst[0].rank)
        return trni_fail(error, TRN_EUNSUPPORTED, "%s is not a run of elements", call->src[0].rank ? "dst" : "src");
    if (trn_tensor_overlap(call->src[0], call->dst[0])) return trni_fail(error, TRN_EINVAL, "dst meets src");
    const uint32_t *table = self->message->table;
    for (int i = 0, n = self->message->members; i < n; i++)
        if (table[i] && (int64_t)table[i] + table[n + i] > call->src[0].shape[0])
            return trni_fail(error, TRN_EINVAL, "metadata sends elements %u to %lld to member %d; src has %lld",
                             (unsigned)table[n + i], (long long)table[n + i] + table[i] - 1, i,
                             (long long)call->src[0].shape[0]);
    self->message->elements = call->src[0].shape[0];
    self->message->room = call->dst[0].shape[0];
    return TRN_OK;
}

/* ---- collectives: from one to one ---- */

TRNI_DRIVER trn_status trni_cores_pairs(trn_cores_rank *self, const trn_cores_collective_args *a, trn_error *error)
{
    trni_cores_message *message = self->message;
    uint8_t *mark = self->call->mark; /* 1: sends, 2: receives */
    if (a->pairs < 1 || a->pairs > self->rank_ids || !a->source_target_pairs)
        return trni_fail(error, TRN_EINVAL, "source_target_pairs has %d pairs; there are %d ranks",
                         a->source_target_pairs ? a->pairs : 0, self->rank_ids);
    memset(mark, 0, (size_t)self->cores->ranks);
    message->to = message->from = -1;
    for (int i = 0; i < a->pairs; i++) {
        const int source = a->source_target_pairs[i][0], target = a->source_target_pairs[i][1];
        if (source < 0 || source >= self->rank_ids || target < 0 || target >= self->rank_ids || (mark[source] & 1) ||
            (mark[target] & 2))
            return trni_fail(error, TRN_EINVAL,
                             "source_target_pairs[%d] is (%d, %d); each of 0 to %d may send once and "
                             "receive once",
                             i, source, target, self->rank_ids - 1);
        mark[source] |= 1;
        mark[target] |= 2;
        if (source == self->rank_id) message->to = target;
        if (target == self->rank_id) message->from = source;
    }
    message->list = message->members = 0;
    for (int id = 0; id < self->rank_ids; id++)
        if (mark[id]) message->member[message->members++] = id * self->programs + self->program_id;
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_check_permute(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_check_same(self, call);
    if (!status && a->count)
        status = trni_fail(error, TRN_EINVAL, "count is %d; there is one src and one dst", a->count);
    if (!status) status = trni_cores_pairs(self, a, error);
    if (status) return status;
    if (trn_tensor_overlap(call->dst[0], call->src[0])) return trni_fail(error, TRN_EINVAL, "dst meets src");
    if (self->message->to < 0) trni_cores_forget(call, TRNI_ROLE_READ);
    if (self->message->from < 0) trni_cores_forget(call, TRNI_ROLE_WRITE);
    return TRN_OK;
}

enum { TRNI_CORES_CHANNELS = 4 };

TRNI_FN trn_status trni_cores_check_ring(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_check_same(self, call);
    const bool reduces = self->message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE;
    if (!status && call->tensors > TRNI_CORES_CHANNELS)
        status = trni_fail(error, TRN_ELIMIT, "count is %d; there are %d channels", call->tensors, TRNI_CORES_CHANNELS);
    for (int i = 0; i < call->tensors && !status; i++) {
        const int channel = a->channel_ids ? a->channel_ids[i] : i;
        bool twice = false;
        for (int k = 0; k < i; k++) twice = twice || self->message->terms.channel[k] == channel;
        self->message->terms.channel[i] = channel;
        if (channel < 0 || channel >= TRNI_CORES_CHANNELS || twice)
            status = trni_fail(error, TRN_EINVAL, "channel_ids[%d] is %d; each of 0 to %d may be there once", i,
                               channel, TRNI_CORES_CHANNELS - 1);
        if (!status && reduces) status = trni_check_same_shape(&call->src1[i], "src1", &call->src[i], "src", error);
        if (!status && trn_tensor_overlap(call->dst[i], call->src[i]))
            status = trni_fail(error, TRN_EINVAL, "dst meets src");
    }
    return status;
}

TRNI_FN void trni_cores_ready_collective(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_collective_args *a = &call->ask.collective;
    trni_cores_terms *t = &self->message->terms;
    t->dim = a->collective_dim;
    t->alu = (int)(a->op ? a->op : TRN_ALU_ADD);
    t->algorithm = (int)(a->algorithm ? a->algorithm : self->cores->args.algorithm);
    t->accumulate = (int)(a->accumulate ? a->accumulate : TRN_F32);
    t->rounding = (int)a->rounding;
    t->sr_bits = a->sr_bits;
    t->seed = a->seed;
    t->stream = a->stream;
    t->recv_counts_known = a->recv_counts_known;
    t->has_rdispls = a->has_rdispls;
    self->message->ready_s = fmax(trni_issue_ready(&call->issue), call->lane.free_s);
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
    trni_cores_message *message = self->message;
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
    message->members = 0;
    for (int id = 0; id < programs; id++) /* in one order, whatever the caller's */
        if (self->call->mark[id]) message->member[message->members++] = trni_cores_sibling(self, id);
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
    if (call->issue.count && call->issue.operand[0].memory)
        return trni_fail(error, TRN_ELIMIT, "data lies in %s; cores share HBM only",
                         trn_space_name(call->issue.operand[0].space));
    self->message->list = 0;
    if (!a->all) return trni_cores_barrier_members(self, a, error);
    self->message->members = self->cores->ranks;
    for (int i = 0; i < self->message->members; i++) self->message->member[i] = i;
    return TRN_OK;
}

TRNI_FN void trni_cores_ready_barrier(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_core *core = &self->core;
    const bool some = call->ask.barrier.data.rank > 0;
    self->message->ready_s = fmax(core->lane[trni_cores_barrier_engine(&call->ask.barrier)].free_s,
                                  some ? trni_issue_ready(&call->issue) : core->time_s);
}

/* ---- sendrecv ---- */

TRNI_FN trn_status trni_cores_check_sendrecv(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_sendrecv_args *a = &call->ask.sendrecv;
    trn_error *error = &self->core.failure;
    trn_status status = trni_cores_since(self, error);
    if (status) return status;
    if (!a->src.rank || !a->dst.rank) return trni_fail(error, TRN_EINVAL, "%s is missing", a->src.rank ? "dst" : "src");
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
    if (!status && trn_tensor_overlap(a->dst, a->src)) status = trni_fail(error, TRN_EINVAL, "dst meets src");
    call->tensors = 1;
    call->src[0] = a->src;
    call->dst[0] = a->dst;
    return status;
}

TRNI_FN void trni_cores_ready_sendrecv(trn_cores_rank *self, trni_cores_call *call)
{
    const trn_cores_sendrecv_args *a = &call->ask.sendrecv;
    self->message->pipe = a->pipe_id;
    self->message->to = trni_cores_sibling(self, a->send_to_rank);
    self->message->from = trni_cores_sibling(self, a->recv_from_rank);
    self->message->members = 0;
    self->message->ready_s = trni_issue_ready(&call->issue);
}

/* ---- the message ---- */

TRNI_FN void trni_cores_message_terms(trni_cores_message *message, const trni_cores_call *call)
{
    trni_cores_terms *t = &message->terms;
    const bool flat = t->op == TRNI_CORES_ALL_GATHER_V || t->op == TRNI_CORES_ALL_TO_ALL_V;
    t->tensors = call->tensors;
    for (int i = 0; i < call->tensors; i++) {
        t->format[i] = (int)call->src[i].format;
        t->rank[i] = call->src[i].rank;
        if (!flat) memcpy(t->shape[i], call->src[i].shape, sizeof t->shape[i]);
    }
}

/* The call on its own core: TRN_OK, and the message is there but for its state. */
TRNI_FN trn_status trni_cores_call_begin(trn_cores_rank *self, const trni_cores_kind *kind, int op,
                                         const trni_cores_ask *ask, trn_error *error)
{
    trni_cores_call *call = self->call;
    trni_issue *issue = &call->issue;
    call->kind = kind;
    call->ask = *ask;
    call->tensors = 0;
    issue->core = &self->core;
    issue->order = &kind->order;
    issue->args = &call->ask;
    issue->engine = TRN_ENGINE_DMA;
    issue->count = issue->parts = 0;
    issue->start_s = issue->end_s = issue->cycles = issue->seconds = 0;
    memset(&self->message->terms, 0, sizeof self->message->terms);
    self->message->terms.op = op;
    trn_status status = trni_issue_gather(issue);
    if (!status) status = kind->check(self, call);
    if (!status) status = trni_issue_check(issue);
    if (status) return trni_issue_failed(issue, status, error);
    trni_cores_message_terms(self->message, call);
    kind->ready(self, call);
    self->message->instruction = self->core.instructions;
    return TRN_OK;
}

#endif /* TRNI_CORES_CORES_CALL_H */
