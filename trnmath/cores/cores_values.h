/* cores/cores_values.h - calls that have met: their values, their times, what their cores note of them.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: hands views to trn_collective_run, questions of time to trn_collective_cost and trn_dma_seconds, and writes
 *     what came of it into the clocks of every core that took part.
 *     Lists that share chips and meet in the same round share the links: each takes as long as if all their bytes were
 *     its own.
 * DOES NOT: match (cores/cores_match.h).
 *
 * KNOWN FROM: as those headers say. A semaphore to another core of the chip takes the step that trn_topology.h assumes.
 */
#ifndef TRNI_CORES_CORES_VALUES_H
#define TRNI_CORES_CORES_VALUES_H

#include "cores_match.h"

/* ---- what a core notes ---- */

/* Its operands are free from end_s on; who executes was busy for so many seconds. */
TRNI_FN void trni_cores_note(trn_cores_rank *self, trni_lane *lane, double start_s, double seconds, double end_s)
{
    trni_issue *issue = &self->call->issue;
    issue->start_s = start_s;
    issue->end_s = end_s;
    issue->seconds = seconds;
    trni_lane_ran(lane, issue);
    trni_issue_wrote(issue);
    trni_issue_note(issue);
    self->core.instructions++;
    self->post->state = TRNI_CORES_READY;
}

TRNI_FN double trni_cores_start_s(const trn_cores *cores, const trni_cores_post *post)
{
    double start_s = 0;
    for (int i = 0; i < post->members; i++) start_s = fmax(start_s, cores->work->post[post->member[i]].ready_s);
    return start_s;
}

/* ---- collectives: the question ---- */

TRNI_FN int64_t trni_cores_bytes(const trni_cores_post *post)
{
    const trni_cores_terms *t = &post->terms;
    double bytes = 0;
    for (int i = 0; i < t->tensors; i++) {
        double n = (double)trn_format_bytes((trn_format)t->format[i]);
        for (int k = 0; k < t->rank[i]; k++) n *= (double)t->shape[i][k];
        bytes += n;
    }
    if (t->op == TRNI_CORES_ALL_GATHER) bytes *= post->members;
    return (int64_t)fmin(bytes, (double)TRNI_MOST_BYTES);
}

TRNI_FN void trni_cores_question(const trn_cores *cores, const trni_cores_post *post, trn_collective op,
                                 trn_collective_args *a)
{
    const trni_cores_terms *t = &post->terms;
    memset(a, 0, sizeof *a);
    a->net = &cores->net;
    a->op = op;
    a->algorithm = (trn_algorithm)t->algorithm;
    a->ranks_per_chip = trni_cores_per_chip(cores, post);
    a->count = post->members / a->ranks_per_chip;
    a->chips = cores->work->chip;
    for (int i = 0; i < a->count; i++)
        cores->work->chip[i] = trni_cores_chip(cores, post->member[i * a->ranks_per_chip]);
    a->accumulate = (trn_format)t->accumulate;
    a->rounding = (trn_rounding)t->rounding;
    a->sr_bits = t->sr_bits;
    a->seed = t->seed;
    a->stream = t->stream + ((uint64_t)post->list << 32);
    a->calibration = cores->args.calibration;
    a->uncalibrated = cores->args.uncalibrated;
    a->isa = cores->args.core.isa;
    a->bytes = trni_cores_bytes(post);
}

/* How many calls of this round use the same chips in the same way, this one among them. */
TRNI_FN int trni_cores_sharers(const trn_cores *cores, const trni_cores_post *post)
{
    int sharers = 0;
    for (int r = 0; r < cores->ranks; r++) {
        const trni_cores_post *p = &cores->work->post[r];
        if (!cores->work->matched[r] || p->state != TRNI_CORES_WAITS || p->terms.op != post->terms.op) continue;
        if (p->members != post->members || p->member[0] != r) continue;
        bool same = true;
        for (int i = 0; i < p->members && same; i++)
            same = trni_cores_chip(cores, p->member[i]) == trni_cores_chip(cores, post->member[i]);
        sharers += same;
    }
    return sharers > 1 ? sharers : 1;
}

/* The algorithm is the one for this list's bytes, and its time that of the bytes of all that share its chips. */
TRNI_FN trn_status trni_cores_seconds(trn_cores *cores, trn_collective_args *a, int sharers, double *seconds)
{
    trn_cost cost;
    trn_status status = trn_collective_cost(a, &cost);
    if (status) return status;
    trn_collective_args all = *a;
    all.algorithm = a->op == TRN_PERMUTE ? a->algorithm : cost.algorithm;
    all.bytes = a->bytes > TRNI_MOST_BYTES / sharers ? TRNI_MOST_BYTES : a->bytes * sharers;
    if (sharers > 1) status = trn_collective_cost(&all, &cost);
    *seconds = cores->args.uncalibrated ? cost.time_s : cost.expected_s;
    return status;
}

/* ---- collectives: the answer ---- */

TRNI_FN trn_status trni_cores_tensors(trn_cores *cores, const trni_cores_post *post, trn_collective_args *a)
{
    trn_status status = TRN_OK;
    const size_t n = (size_t)post->members;
    trn_tensor *view = (trn_tensor *)malloc(2 * n * sizeof *view);
    if (!view) return trni_fail(a->error, TRN_ENOSPC, "could not allocate the views of %d ranks", post->members);
    a->src = view;
    a->dst = view + n;
    for (int i = 0; i < post->terms.tensors && !status; i++) {
        for (size_t k = 0; k < n; k++) {
            const trni_cores_call *call = &cores->work->call[post->member[k]];
            a->src[k] = call->src[i];
            a->dst[k] = call->dst[i];
        }
        if (trn_tensor_elements(a->src[0])) status = trn_collective_run(a);
    }
    free(view);
    return status;
}

/* The failure of a call that has met, with its name. */
TRNI_FN trn_status trni_cores_met_badly(trn_cores *cores, int first, trn_status status, const trn_error *why)
{
    const trni_cores_post *post = &cores->work->post[first];
    return trni_fail(&cores->failure, status, "%s of rank %d and others (instruction %lld): %.180s",
                     trni_cores_name(post->terms.op), first, (long long)post->instruction, why->text);
}

TRNI_FN trn_status trni_cores_run_collective(trn_cores *cores, int first, trn_collective op)
{
    const trni_cores_post *post = &cores->work->post[first];
    trn_collective_args a;
    trn_error why;
    double seconds = 0;
    memset(&why, 0, sizeof why);
    trni_cores_question(cores, post, op, &a);
    a.error = &why;
    trn_status status = trni_cores_seconds(cores, &a, trni_cores_sharers(cores, post), &seconds);
    if (!status) status = trni_cores_tensors(cores, post, &a);
    if (status) return trni_cores_met_badly(cores, first, status, &why);
    const double start_s = trni_cores_start_s(cores, post);
    for (int i = 0; i < post->members; i++) {
        trn_cores_rank *member = &cores->rank[post->member[i]];
        trni_cores_note(member, &member->call->lane, start_s, seconds, start_s + seconds);
    }
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_run_all_reduce(trn_cores *cores, int first)
{
    return trni_cores_run_collective(cores, first, TRN_ALL_REDUCE);
}

TRNI_FN trn_status trni_cores_run_all_gather(trn_cores *cores, int first)
{
    return trni_cores_run_collective(cores, first, TRN_ALL_GATHER);
}

/* ---- barrier ---- */

/* What waits for `data` waits through its tenant; without data everything waits. */
TRNI_FN void trni_cores_hold(trn_cores_rank *self, double end_s)
{
    trn_core *core = &self->core;
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) core->lane[e].free_s = fmax(core->lane[e].free_s, end_s);
    for (int i = 0; i < TRNI_CORE_DGES; i++) core->dge_free_s[i] = fmax(core->dge_free_s[i], end_s);
    core->channel.floor_s = fmax(core->channel.floor_s, end_s);
    self->call->lane.free_s = fmax(self->call->lane.free_s, end_s);
}

/* A semaphore to the other cores of the chip; across chips, an all-reduce of no bytes. */
TRNI_FN trn_status trni_cores_barrier_seconds(trn_cores *cores, int first, double *seconds)
{
    const trni_cores_post *post = &cores->work->post[first];
    trn_collective_args a;
    trn_error why;
    *seconds = post->members > 1 ? cores->net.local_latency_s : 0;
    if (trni_cores_chip(cores, post->member[0]) == trni_cores_chip(cores, post->member[post->members - 1]))
        return TRN_OK;
    memset(&why, 0, sizeof why);
    trni_cores_question(cores, post, TRN_ALL_REDUCE, &a);
    a.bytes = 0;
    a.error = &why;
    const trn_status status = trni_cores_seconds(cores, &a, 1, seconds);
    return status ? trni_cores_met_badly(cores, first, status, &why) : TRN_OK;
}

TRNI_FN trn_status trni_cores_run_barrier(trn_cores *cores, int first)
{
    const trni_cores_post *post = &cores->work->post[first];
    const double start_s = trni_cores_start_s(cores, post);
    double seconds;
    const trn_status status = trni_cores_barrier_seconds(cores, first, &seconds);
    if (status) return status;
    for (int i = 0; i < post->members; i++) {
        trn_cores_rank *member = &cores->rank[post->member[i]];
        const trn_engine e = trni_cores_barrier_engine(&member->call->ask.barrier);
        const bool some = member->call->ask.barrier.data.rank > 0;
        trni_cores_note(member, &member->core.lane[e], start_s, seconds, start_s + seconds);
        if (!some) trni_cores_hold(member, start_s + seconds);
    }
    return TRN_OK;
}

/* ---- sendrecv ---- */

TRNI_FN const trni_seen *trni_cores_seen(const trn_cores_rank *self, const trn_tensor *view)
{
    return trni_issue_seen(&self->call->issue, view);
}

/* One way. Returns when the last byte is there; `from`, `seconds`: when and how long the sender's DMA engines move. */
TRNI_FN trn_status trni_cores_send(trn_cores_rank *sender, trn_cores_rank *receiver, double ready_s, double *from_s,
                                   double *seconds)
{
    const trn_cores_sendrecv_args *out = &sender->call->ask.sendrecv, *in = &receiver->call->ask.sendrecv;
    const trni_seen *dst = trni_cores_seen(receiver, &in->dst), *src = trni_cores_seen(sender, &out->src);
    trn_dma_copy_args copy;
    trn_dma_work work;
    trn_dma_cost cost;
    memset(&copy, 0, sizeof copy);
    copy.generation = sender->core.spec->generation;
    copy.isa = sender->core.args.isa;
    copy.dst = in->dst;
    copy.src = out->src;
    copy.error = &sender->core.failure;
    *from_s = ready_s;
    *seconds = 0;
    if (!dst->tenant || !src->tenant) return TRN_OK; /* no elements */
    trn_status status = trn_dma_copy(&copy);
    if (status) return status;
    memset(&work, 0, sizeof work);
    work.generation = copy.generation;
    trni_move_between(dst, src, false, false, &work);
    status = trn_dma_seconds(&work, &cost);
    if (status) return trni_fail(copy.error, status, "a transfer that takes no time that there is");
    *seconds = cost.transfer_s;
    *from_s = trni_channel_place(&sender->core.channel, ready_s + cost.latency_s, cost.transfer_s);
    sender->core.dma_bytes += work.bytes;
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_run_sendrecv(trn_cores *cores, int first)
{
    trni_cores_post *all = cores->work->post;
    double ready_s = all[first].ready_s, end_s = 0, from_s, seconds;
    for (int at = all[first].to; at != first; at = all[at].to) ready_s = fmax(ready_s, all[at].ready_s);
    int at = first;
    do {
        trn_cores_rank *self = &cores->rank[at];
        const trn_status status = trni_cores_send(self, &cores->rank[all[at].to], ready_s, &from_s, &seconds);
        if (status) return trni_cores_met_badly(cores, first, status, &self->core.failure);
        self->call->issue.start_s = from_s;
        self->call->issue.seconds = seconds;
        end_s = fmax(end_s, from_s + seconds);
        at = all[at].to;
    } while (at != first);
    do { /* all of them are done when the last one is */
        trn_cores_rank *self = &cores->rank[at];
        const trni_issue *issue = &self->call->issue;
        trni_cores_note(self, &self->core.lane[TRN_ENGINE_DMA], issue->start_s, issue->seconds, end_s);
        at = all[at].to;
    } while (at != first);
    return TRN_OK;
}

#endif /* TRNI_CORES_CORES_VALUES_H */
