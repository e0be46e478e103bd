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

#include "../network/signature.h"
#include "cores_call.h"
#include "cores_exchange.h"
#include "cores_race.h"

/* ---- what a core notes ---- */

/* When and how long who executes works; the operands are free from end_s on. */
typedef struct trni_cores_when {
    double start_s, seconds, end_s;
} trni_cores_when;

/* engine: whose track shows it; TRN_ENGINE_COUNT = that of collectives. */
TRNI_FN void trni_cores_note(trn_cores_rank *self, trn_engine engine, const trni_cores_when *when)
{
    trni_issue *issue = &self->call->issue;
    issue->start_s = when->start_s;
    issue->end_s = when->end_s;
    issue->seconds = when->seconds;
    trni_lane_ran(engine == TRN_ENGINE_COUNT ? &self->call->lane : &self->core.lane[engine], issue);
    trni_issue_wrote(issue);
    trni_issue_note(issue);
    trni_issue_event(issue, engine, issue->order->name, when->start_s, when->seconds);
    self->core.instructions++;
    self->message->state = TRNI_CORES_READY;
}

/* Who has waited for whom until start_s. */
TRNI_FN void trni_cores_waited(trn_cores *cores, const int *member, int members, double start_s)
{
    int last = 0;
    double all_s = 0;
    for (int i = 0; i < members; i++) {
        const trni_cores_message *all = cores->work->message;
        const double waited_s = start_s - all[member[i]].ready_s;
        cores->work->call[member[i]].waited_s += waited_s;
        all_s += waited_s;
        if (all[member[i]].ready_s > all[member[last]].ready_s) last = i;
    }
    cores->work->call[member[last]].late_s += all_s;
}

TRNI_FN double trni_cores_start_s(const trn_cores *cores, const trni_cores_message *message)
{
    double start_s = 0;
    for (int i = 0; i < message->members; i++)
        start_s = fmax(start_s, cores->work->message[message->member[i]].ready_s);
    return start_s;
}

/* ---- collectives: the question ---- */

TRNI_FN int64_t trni_cores_bytes(const trni_cores_message *message)
{
    const trni_cores_terms *t = &message->terms;
    double bytes = 0;
    for (int i = 0; i < t->tensors; i++) {
        double n = (double)trn_format_bytes((trn_format)t->format[i]);
        for (int k = 0; k < t->rank[i]; k++) n *= (double)t->shape[i][k];
        bytes += n;
    }
    if (t->op == TRNI_CORES_ALL_GATHER) bytes *= message->members;
    return (int64_t)fmin(bytes, (double)TRNI_MOST_BYTES);
}

TRNI_FN void trni_cores_question(const trn_cores *cores, const trni_cores_message *message, trn_collective op,
                                 trn_collective_args *a)
{
    const trni_cores_terms *t = &message->terms;
    memset(a, 0, sizeof *a);
    a->net = &cores->net;
    a->op = op;
    a->algorithm = (trn_algorithm)t->algorithm;
    a->ranks_per_chip = trni_cores_per_chip(cores, message);
    if (!a->ranks_per_chip) a->ranks_per_chip = 1; /* a permute's list, which is not asked for */
    a->count = message->members / a->ranks_per_chip;
    a->chips = cores->work->chip;
    for (int i = 0; i < a->count; i++)
        cores->work->chip[i] = trni_cores_chip(cores, message->member[i * a->ranks_per_chip]);
    a->accumulate = (trn_format)t->accumulate;
    a->rounding = (trn_rounding)t->rounding;
    a->sr_bits = t->sr_bits;
    a->seed = t->seed;
    a->stream = t->stream + ((uint64_t)message->list << 32);
    a->calibration = cores->args.calibration;
    a->uncalibrated = cores->args.uncalibrated;
    a->in_graph = true;
    a->isa = cores->args.core.isa;
    a->bytes = trni_cores_bytes(message);
}

/* Of a permute: all ranks of the run with the caller's program_id, whether they send or not. */
TRNI_FN void trni_cores_question_all(const trn_cores *cores, const trni_cores_message *message, trn_collective_args *a)
{
    trni_cores_question(cores, message, TRN_PERMUTE, a);
    a->ranks_per_chip = cores->cores_per_chip / cores->lnc;
    a->count = cores->ranks / cores->cores_per_chip;
    for (int i = 0; i < a->count; i++) cores->work->chip[i] = trni_cores_chip(cores, i * cores->cores_per_chip);
    a->targets = cores->work->target;
}

/* How many calls of this round use the same chips in the same way, this one among them. */
TRNI_FN int trni_cores_sharers(const trn_cores *cores, const trni_cores_message *message)
{
    int sharers = 0;
    for (int r = 0; r < cores->ranks; r++) {
        const trni_cores_message *p = &cores->work->message[r];
        if (!cores->work->matched[r] || p->terms.op != message->terms.op) continue;
        if (p->members != message->members || p->member[0] != r) continue;
        bool same = true;
        for (int i = 0; i < p->members && same; i++)
            same = trni_cores_chip(cores, p->member[i]) == trni_cores_chip(cores, message->member[i]);
        sharers += same;
    }
    return sharers > 1 ? sharers : 1;
}

/* Of what the cost of a collective depends on in one run, and the calls that share its chips. */
TRNI_FN uint64_t trni_cores_cost_key(const trn_collective_args *a, int sharers)
{
    uint64_t key = trni_hash(0, (uint64_t)a->op);
    key = trni_hash(key, (uint64_t)a->algorithm);
    key = trni_hash(key, (uint64_t)a->bytes);
    key = trni_hash(key, (uint64_t)sharers);
    key = trni_hash(key, (uint64_t)a->ranks_per_chip);
    for (int i = 0; i < a->count; i++) key = trni_hash(key, (uint64_t)a->chips[i]);
    for (int i = 0; a->targets && i < a->count * a->ranks_per_chip; i++)
        key = trni_hash(key, (uint64_t)(int64_t)a->targets[i]);
    return trni_hash(key, (uint64_t)a->count);
}

/* The algorithm becomes the one for this list's bytes, and its time is that of the bytes of all that share its chips. A
 * kernel asks the same again and again, and the search takes long: answers are kept. */
TRNI_FN trn_status trni_cores_seconds(const trn_cores *cores, trn_collective_args *a, int sharers, double *seconds)
{
    const uint64_t key = trni_cores_cost_key(a, sharers);
    trni_cores_cost *kept = &cores->work->cost[key % TRNI_CORES_COSTS];
    trn_collective_args all = *a;
    trn_cost cost;
    if (!kept->known || kept->key != key) {
        trn_status status = trn_collective_cost(a, &cost);
        if (status) return status;
        kept->algorithm = a->op == TRN_PERMUTE ? a->algorithm : cost.algorithm;
        all.algorithm = kept->algorithm;
        all.single_step = kept->single_step = cost.single_step;
        all.bytes = a->bytes > TRNI_MOST_BYTES / sharers ? TRNI_MOST_BYTES : a->bytes * sharers;
        if (sharers > 1) status = trn_collective_cost(&all, &cost);
        if (status) return status;
        kept->seconds = cores->args.uncalibrated ? cost.time_s : cost.expected_s;
        kept->key = key;
        kept->known = true;
    }
    a->algorithm = kept->algorithm;
    a->single_step = kept->single_step;
    *seconds = kept->seconds;
    return TRN_OK;
}

/* ---- collectives: the answer ---- */

/* A call that has met, while it is carried out. */
typedef struct trni_cores_deed {
    trn_cores *cores;
    const trni_cores_message *message;
    int first, sharers;
    trn_collective_args a;
    trn_tensor *view; /* [2 n] what a.src and a.dst show */
    double seconds;
    trn_error why;
} trni_cores_deed;

TRNI_FN trn_status trni_deed_begin(trni_cores_deed *d, trn_cores *cores, int first, trn_collective op)
{
    memset(d, 0, sizeof *d);
    d->cores = cores;
    d->first = first;
    d->message = &cores->work->message[first];
    d->sharers = trni_cores_sharers(cores, d->message);
    trni_cores_question(cores, d->message, op, &d->a);
    d->a.error = &d->why;
    d->view = (trn_tensor *)calloc(2 * (size_t)cores->ranks, sizeof *d->view);
    if (!d->view) return trni_fail(&d->why, TRN_ENOSPC, "could not allocate the views of %d ranks", cores->ranks);
    d->a.src = d->view;
    d->a.dst = d->view + cores->ranks;
    return TRN_OK;
}

TRNI_FN trni_cores_call *trni_deed_call(const trni_cores_deed *d, int member)
{
    return &d->cores->work->call[d->message->member[member]];
}

/* The views of tensor i. */
TRNI_FN void trni_deed_views(trni_cores_deed *d, int i)
{
    for (int k = 0; k < d->message->members; k++) {
        d->a.src[k] = trni_deed_call(d, k)->src[i];
        d->a.dst[k] = trni_deed_call(d, k)->dst[i];
    }
}

/* The failure of a call that has met, with its name. */
TRNI_FN trn_status trni_cores_met_badly(trn_cores *cores, int first, trn_status status, const trn_error *why)
{
    const trni_cores_message *message = &cores->work->message[first];
    return trni_fail(&cores->failure, status, "%s of rank %d and others (instruction %lld): %.180s",
                     trni_cores_name(message->terms.op), first, (long long)message->instruction, why->text);
}

/* Every member notes what came of it; or the run has failed. */
TRNI_FN trn_status trni_deed_end(trni_cores_deed *d, trn_status status)
{
    const trni_cores_message *message = d->message;
    free(d->view);
    if (status) return trni_cores_met_badly(d->cores, d->first, status, &d->why);
    const double start_s = trni_cores_start_s(d->cores, message);
    const trni_cores_when when = { start_s, d->seconds, start_s + d->seconds };
    trn_tensor all;
    memset(&all, 0, sizeof all);
    trni_cores_waited(d->cores, message->member, message->members, start_s);
    trni_race_met(d->cores, message->member, message->members, &all);
    for (int i = 0; i < message->members; i++)
        if (trni_cores_here(d->cores, message->member[i]))
            trni_cores_note(&d->cores->rank[message->member[i]], TRN_ENGINE_COUNT, &when);
    return TRN_OK;
}

/* ---- maximum and minimum: nothing is rounded, so that no order of ranks plays a part ---- */

TRNI_FN trn_status trni_deed_copy(const trni_cores_deed *d, trn_tensor dst, trn_tensor src)
{
    trn_dma_copy_args copy;
    memset(&copy, 0, sizeof copy);
    copy.dst = dst;
    copy.src = src;
    copy.isa = d->a.isa;
    copy.error = d->a.error;
    return trn_dma_copy(&copy);
}

TRNI_FN trn_status trni_deed_fold(trni_cores_deed *d)
{
    const int n = d->message->members;
    const trn_tensor *first = &d->a.src[0];
    const int64_t elements = trn_tensor_elements(*first);
    void *memory = malloc((size_t)elements * trn_format_bytes(first->format) + 1);
    if (!memory) return trni_fail(d->a.error, TRN_ENOSPC, "could not allocate %lld elements", (long long)elements);
    trn_tensor_tensor_args op;
    memset(&op, 0, sizeof op);
    const trn_tensor all = trn_tensor_nd(first->format, memory, first->rank, first->shape);
    const trn_tensor flat = trn_tensor_2d(first->format, memory, 1, elements);
    op.dst = op.data1 = flat;
    op.op = (trn_alu)d->message->terms.alu;
    op.unlimited = true;
    op.isa = d->a.isa;
    op.error = d->a.error;
    void *other = malloc((size_t)elements * trn_format_bytes(first->format) + 1);
    trn_status status = other ? trni_deed_copy(d, all, *first) : trni_fail(d->a.error, TRN_ENOSPC, "no memory");
    op.data2 = trn_tensor_2d(first->format, other, 1, elements);
    for (int k = 1; k < n && !status; k++) {
        status = trni_deed_copy(d, trn_tensor_nd(first->format, other, first->rank, first->shape), d->a.src[k]);
        if (!status) status = trn_tensor_tensor(&op);
    }
    for (int k = 0; k < n && !status; k++) {
        const int64_t share = d->a.dst[k].shape[0];
        const bool scatter = d->a.op == TRN_REDUCE_SCATTER;
        status = trni_deed_copy(d, d->a.dst[k], scatter ? trn_tensor_slice(all, 0, share * k, share) : all);
    }
    free(memory);
    free(other);
    return status;
}

/* ---- one tensor after the other ---- */

TRNI_FN trn_status trni_cores_run_collective(trn_cores *cores, int first, trn_collective op)
{
    trni_cores_deed d;
    trn_status status = trni_deed_begin(&d, cores, first, op);
    const bool sums = d.message->terms.alu == TRN_ALU_ADD;
    if (!status) status = trni_cores_seconds(cores, &d.a, d.sharers, &d.seconds);
    for (int i = 0; i < d.message->terms.tensors && !status; i++) {
        trni_deed_views(&d, i);
        if (!trn_tensor_elements(d.a.src[0])) continue;
        status = sums ? trn_collective_run(&d.a) : trni_deed_fold(&d);
    }
    return trni_deed_end(&d, status);
}

#define TRNI_CORES_RUN(name, op)                                                                                       \
    TRNI_FN trn_status trni_cores_run_##name(trn_cores *cores, int first)                                              \
    {                                                                                                                  \
        return trni_cores_run_collective(cores, first, op);                                                            \
    }
TRNI_CORES_RUN(all_reduce, TRN_ALL_REDUCE)
TRNI_CORES_RUN(all_gather, TRN_ALL_GATHER)
TRNI_CORES_RUN(reduce_scatter, TRN_REDUCE_SCATTER)
TRNI_CORES_RUN(all_to_all, TRN_ALL_TO_ALL)
#undef TRNI_CORES_RUN

/* ---- as many as the metadata say ---- */

TRNI_FN int64_t trni_deed_sends(const trni_cores_deed *d, int from, int to)
{
    return d->cores->work->message[d->message->member[from]].table[to];
}

/* Where in dst of member `to` what member `from` sends goes. */
TRNI_FN int64_t trni_deed_place(const trni_cores_deed *d, int from, int to)
{
    const trni_cores_message *p = &d->cores->work->message[d->message->member[to]];
    const int n = d->message->members;
    return d->message->terms.has_rdispls ? (int64_t)p->table[3 * n + from] : p->room / n * from;
}

TRNI_DRIVER trn_status trni_deed_fits(const trni_cores_deed *d, int from, int to)
{
    const int n = d->message->members, rank = d->message->member[to], other = d->message->member[from];
    const trni_cores_message *p = &d->cores->work->message[rank];
    const int64_t count = trni_deed_sends(d, from, to), place = trni_deed_place(d, from, to);
    const int64_t room = d->message->terms.has_rdispls ? p->room - place : p->room / n;
    if (d->message->terms.recv_counts_known && (int64_t)p->table[2 * n + from] != count)
        return trni_fail(d->a.error, TRN_EINVAL, "rank %d expects %u elements of rank %d, which sends %lld", rank,
                         (unsigned)p->table[2 * n + from], other, (long long)count);
    if (count && count > room)
        return trni_fail(d->a.error, TRN_EINVAL, "rank %d sends %lld elements to rank %d, which has room for %lld",
                         other, (long long)count, rank, (long long)(room > 0 ? room : 0));
    return TRN_OK;
}

/* counts[n][n], then what everybody sends to everybody, packed, and once more as it arrives. */
TRNI_FN trn_status trni_deed_exchange(trni_cores_deed *d)
{
    const int n = d->message->members;
    const int64_t size = (int64_t)trn_format_bytes((trn_format)d->message->terms.format[0]);
    trn_status status = TRN_OK;
    int64_t all = 0;
    for (int i = 0; i < n * n && !status; i++) {
        status = trni_deed_fits(d, i / n, i % n);
        all += trni_deed_sends(d, i / n, i % n);
    }
    if (status || !all) return status;
    int64_t *counts = (int64_t *)malloc((size_t)n * (size_t)n * sizeof *counts + 2 * (size_t)(all * size));
    if (!counts) return trni_fail(d->a.error, TRN_ENOSPC, "could not allocate %lld elements", (long long)all);
    char *at = (char *)(counts + (size_t)n * (size_t)n);
    for (int i = 0; i < n; i++) {
        const trn_tensor *src = &trni_deed_call(d, i)->src[0];
        const uint32_t *table = d->cores->work->message[d->message->member[i]].table;
        d->a.src[i] = trn_tensor_1d(src->format, at, 0);
        for (int k = 0; k < n; k++) {
            const int64_t count = counts[i * n + k] = table[k];
            if (count) memcpy(at, (const char *)src->data + table[n + k] * size, (size_t)(count * size));
            at += count * size;
            d->a.src[i].shape[0] += count;
        }
    }
    for (int i = 0; i < n; i++) {
        d->a.dst[i] = trn_tensor_1d(d->a.src[i].format, at, 0);
        for (int k = 0; k < n; k++) d->a.dst[i].shape[0] += counts[k * n + i];
        at += d->a.dst[i].shape[0] * size;
    }
    d->a.counts = counts;
    d->a.op = TRN_ALL_TO_ALL;
    d->a.algorithm = TRN_ALGORITHM_AUTO;
    status = trn_collective_run(&d->a);
    for (int i = 0; i < n && !status; i++) {
        const char *from = (const char *)d->a.dst[i].data;
        for (int k = 0; k < n; k++) {
            const int64_t bytes = counts[k * n + i] * size;
            if (bytes)
                memcpy((char *)trni_deed_call(d, i)->dst[0].data + trni_deed_place(d, k, i) * size, from,
                       (size_t)bytes);
            from += bytes;
        }
    }
    free(counts);
    return status;
}

/* Bytes of the even collective in which everybody has as much as the one with the most. */
TRNI_FN int64_t trni_deed_most(const trni_cores_deed *d)
{
    const int n = d->message->members;
    int64_t most = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        int64_t sent = 0, received = 0;
        for (int k = 0; k < n; k++) {
            sent += trni_deed_sends(d, i, k);
            received += trni_deed_sends(d, k, i);
            if (trni_deed_sends(d, i, k) > largest) largest = trni_deed_sends(d, i, k);
        }
        if (sent > most) most = sent;
        if (received > most) most = received;
    }
    const int64_t elements = d->message->terms.op == TRNI_CORES_ALL_GATHER_V ? largest * n : most;
    return elements * (int64_t)trn_format_bytes((trn_format)d->message->terms.format[0]);
}

/* First a round in which ranks tell each other how much there will be (assumed). */
TRNI_FN trn_status trni_deed_sizes(trni_cores_deed *d)
{
    trn_collective_args sizes = d->a;
    double seconds = 0;
    if (d->cores->args.uncalibrated) return TRN_OK;
    sizes.algorithm = TRN_ALGORITHM_AUTO;
    sizes.single_step = false;
    sizes.bytes = 4 * (int64_t)d->message->members;
    const trn_status status = trni_cores_seconds(d->cores, &sizes, d->sharers, &seconds);
    d->seconds += seconds;
    return status;
}

TRNI_FN trn_status trni_cores_run_v(trn_cores *cores, int first)
{
    trni_cores_deed d;
    const bool gather = cores->work->message[first].terms.op == TRNI_CORES_ALL_GATHER_V;
    trn_status status = trni_deed_begin(&d, cores, first, gather ? TRN_ALL_GATHER : TRN_ALL_TO_ALL);
    d.a.bytes = trni_deed_most(&d);
    if (!status) status = trni_cores_seconds(cores, &d.a, d.sharers, &d.seconds);
    if (!status) status = trni_deed_sizes(&d);
    if (!status) status = trni_deed_exchange(&d);
    return trni_deed_end(&d, status);
}

/* ---- from one to one ---- */

TRNI_FN trn_status trni_cores_run_permute(trn_cores *cores, int first)
{
    trni_cores_deed d;
    trn_status status = trni_deed_begin(&d, cores, first, TRN_PERMUTE);
    trni_cores_question_all(cores, d.message, &d.a);
    d.a.src = d.view;
    d.a.dst = d.view + cores->ranks;
    d.a.error = &d.why;
    for (int id = 0; id < cores->ranks; id++) cores->work->target[id] = -1;
    for (int i = 0; i < d.message->members && !status; i++) {
        const int rank = d.message->member[i], id = rank / cores->lnc;
        const trni_cores_message *p = &cores->work->message[rank];
        cores->work->target[id] = p->to;
        const int to = p->to < 0 ? rank : p->to * cores->lnc + rank % cores->lnc;
        if (p->to >= 0 && cores->work->message[to].from != id)
            status =
                trni_fail(&d.why, TRN_EINVAL, "rank %d sends to rank %d, which does not receive from it", rank, to);
        d.a.src[id] = trni_deed_call(&d, i)->src[0];
        d.a.dst[id] = trni_deed_call(&d, i)->dst[0];
    }
    if (!status) status = trni_cores_seconds(cores, &d.a, d.sharers, &d.seconds);
    if (!status && trni_cores_bytes(d.message)) status = trn_collective_run(&d.a);
    return trni_deed_end(&d, status);
}

/* src + src1 of every member, as its DMA engines add them, in memory that is to be freed. */
TRNI_FN trn_status trni_deed_sums(trni_cores_deed *d, int i, void **memory)
{
    const int64_t elements = trn_tensor_elements(d->a.src[0]);
    const size_t each = (size_t)elements * trn_format_bytes(d->a.src[0].format);
    trn_status status = TRN_OK;
    *memory = malloc(each * (size_t)d->message->members + 1);
    if (!*memory) return trni_fail(&d->why, TRN_ENOSPC, "could not allocate %lld elements", (long long)elements);
    for (int k = 0; k < d->message->members && !status; k++) {
        trn_tensor srcs[2];
        trn_dma_compute_args sum;
        memset(&sum, 0, sizeof sum);
        srcs[0] = d->a.src[k];
        srcs[1] = trni_deed_call(d, k)->src1[i];
        sum.generation = d->cores->args.core.generation;
        sum.dst = trn_tensor_nd(srcs[0].format, (char *)*memory + each * (size_t)k, srcs[0].rank, srcs[0].shape);
        sum.srcs = srcs;
        sum.count = 2;
        sum.isa = d->a.isa;
        sum.error = &d->why;
        status = trn_dma_compute(&sum);
        d->a.src[k] = sum.dst;
    }
    return status;
}

/* What the sums take before anything is sent. */
TRNI_FN trn_status trni_deed_sums_seconds(trni_cores_deed *d)
{
    trn_dma_work work;
    trn_dma_cost cost;
    memset(&work, 0, sizeof work);
    work.generation = d->cores->args.core.generation;
    work.bytes = 2.0 * (double)trni_cores_bytes(d->message);
    work.run_bytes = trni_fact(TRN_FACT_DESCRIPTOR);
    work.compute = true;
    const trn_status status = trn_dma_seconds(&work, &cost);
    if (status) return trni_fail(&d->why, status, "sums that take no time that there is");
    d->seconds += cost.latency_s + cost.transfer_s;
    return TRN_OK;
}

/* The channels of one direction share its links, and those of the other have theirs. */
TRNI_FN trn_status trni_deed_ring_seconds(trni_cores_deed *d, int odd)
{
    const trni_cores_terms *t = &d->message->terms;
    double bytes = 0, seconds = 0;
    for (int i = 0; i < t->tensors; i++)
        if (t->channel[i] % 2 == odd)
            bytes += (double)trn_tensor_elements(trni_deed_call(d, 0)->src[i]) *
                     (double)trn_format_bytes((trn_format)t->format[i]);
    d->a.bytes = (int64_t)bytes;
    if (bytes <= 0) return TRN_OK;
    const trn_status status = trni_cores_seconds(d->cores, &d->a, d->sharers, &seconds);
    d->seconds = fmax(d->seconds, seconds);
    return status;
}

TRNI_FN trn_status trni_cores_run_ring(trn_cores *cores, int first)
{
    trni_cores_deed d;
    trn_status status = trni_deed_begin(&d, cores, first, TRN_PERMUTE);
    const bool reduces = d.message->terms.op == TRNI_CORES_PERMUTE_IMPLICIT_REDUCE;
    const int n = d.message->members;
    d.a.targets = cores->work->target;
    for (int odd = 0; odd < 2 && !status; odd++) {
        for (int k = 0; k < n; k++) cores->work->target[k] = (int)trni_ring_source(k, -1, n, odd);
        status = trni_deed_ring_seconds(&d, odd);
        for (int i = 0; i < d.message->terms.tensors && !status; i++) {
            void *sums = NULL;
            if (d.message->terms.channel[i] % 2 != odd) continue;
            trni_deed_views(&d, i);
            if (!trn_tensor_elements(d.a.src[0])) continue;
            if (reduces) status = trni_deed_sums(&d, i, &sums);
            if (!status) status = trn_collective_run(&d.a);
            free(sums);
        }
    }
    if (!status && reduces) status = trni_deed_sums_seconds(&d);
    return trni_deed_end(&d, status);
}

/* ---- barrier ---- */

/* What waits for `data` waits through its allocation; without data everything waits. */
TRNI_FN void trni_cores_hold(trn_cores_rank *self, double end_s)
{
    trn_core *core = &self->core;
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) trni_lane_until(&core->lane[e], end_s);
    for (int i = 0; i < TRNI_CORE_DGES; i++) core->dge_free_s[i] = fmax(core->dge_free_s[i], end_s);
    core->channel.floor_s = fmax(core->channel.floor_s, end_s);
    self->call->lane.free_s = fmax(self->call->lane.free_s, end_s);
}

/* A semaphore to the other cores of the chip; across chips, an all-reduce of no bytes. */
TRNI_FN trn_status trni_cores_barrier_seconds(trn_cores *cores, int first, double *seconds)
{
    const trni_cores_message *message = &cores->work->message[first];
    trn_collective_args a;
    trn_error why;
    *seconds = message->members > 1 ? cores->net.local_latency_s : 0;
    if (trni_cores_chip(cores, message->member[0]) == trni_cores_chip(cores, message->member[message->members - 1]))
        return TRN_OK;
    memset(&why, 0, sizeof why);
    trni_cores_question(cores, message, TRN_ALL_REDUCE, &a);
    a.bytes = 0;
    a.error = &why;
    const trn_status status = trni_cores_seconds(cores, &a, 1, seconds);
    return status ? trni_cores_met_badly(cores, first, status, &why) : TRN_OK;
}

TRNI_FN trn_status trni_cores_run_barrier(trn_cores *cores, int first)
{
    const trni_cores_message *message = &cores->work->message[first];
    const double start_s = trni_cores_start_s(cores, message);
    double seconds;
    const trn_status status = trni_cores_barrier_seconds(cores, first, &seconds);
    if (status) return status;
    const trni_cores_when when = { start_s, seconds, start_s + seconds };
    trni_cores_waited(cores, message->member, message->members, start_s);
    trni_race_met(cores, message->member, message->members, &cores->work->call[first].ask.barrier.data);
    for (int i = 0; i < message->members; i++) {
        if (!trni_cores_here(cores, message->member[i])) continue;
        trn_cores_rank *member = &cores->rank[message->member[i]];
        const trn_cores_barrier_args *a = &member->call->ask.barrier;
        trni_touches *touches = member->core.touches;
        member->core.touches = NULL; /* it uses nothing: it waits for those who do */
        trni_cores_note(member, trni_cores_barrier_engine(a), &when);
        member->core.touches = touches;
        if (!a->data.rank) trni_cores_hold(member, when.end_s);
    }
    return TRN_OK;
}

/* ---- sendrecv ---- */

TRNI_FN const trni_core_operand *trni_cores_seen(const trn_cores_rank *self, const trn_tensor *view)
{
    return trni_issue_operand(&self->call->issue, view);
}

/* One way. Returns when the last byte is there; `from`, `seconds`: when and how long the sender's DMA engines move. */
TRNI_FN trn_status trni_cores_send(trn_cores_rank *sender, trn_cores_rank *receiver, double ready_s, double *from_s,
                                   double *seconds)
{
    const trn_cores_sendrecv_args *out = &sender->call->ask.sendrecv, *in = &receiver->call->ask.sendrecv;
    const trni_core_operand *dst = trni_cores_seen(receiver, &in->dst), *src = trni_cores_seen(sender, &out->src);
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
    if (!dst->allocation || !src->allocation) return TRN_OK; /* no elements */
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
    trni_cores_message *all = cores->work->message;
    double ready_s = all[first].ready_s, end_s = 0, from_s, seconds;
    int members = 1;
    all[first].member[0] = first;
    for (int at = all[first].to; at != first; at = all[at].to) {
        ready_s = fmax(ready_s, all[at].ready_s);
        all[first].member[members++] = at;
    }
    trn_tensor none;
    memset(&none, 0, sizeof none);
    trni_cores_waited(cores, all[first].member, members, ready_s);
    trni_race_met(cores, all[first].member, members, &none);
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
        const trni_cores_when when = { self->call->issue.start_s, self->call->issue.seconds, end_s };
        trni_cores_note(self, TRN_ENGINE_DMA, &when);
        at = all[at].to;
    } while (at != first);
    return TRN_OK;
}

#endif /* TRNI_CORES_CORES_VALUES_H */
