/* cores/cores_run.h - a kernel on many cores, round by round.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * DOES: makes the cores, lets kernels run until all wait or have ended (cores/cores_scheduler.h), matches their calls,
 *     has them carried out, and lets those go on; ends everything at the first failure.
 * DOES NOT: hang: where nothing can go on, that is the failure.
 *
 * KNOWN FROM: -
 */
#ifndef TRNI_CORES_CORES_RUN_H
#define TRNI_CORES_CORES_RUN_H

#include "cores_call.h"
#include "cores_scheduler.h"
#include "cores_shared.h"
#include "cores_values.h"

/* ---- the kinds of calls ---- */

#define TRNI_CORES_ORDER(name, more, ...)                                                                              \
    {                                                                                                                  \
        name, TRN_ENGINE_DMA, TRNI_OWN, TRNI_CARRY_STRICT, TRNI_WITH_HOOKS(TRNI_HOOKS(more, NULL, NULL, NULL)),        \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

TRNI_FN const trni_cores_kind *trni_cores_kind_of(int op)
{
#define TRNI_X(name, id, axis, check, run)                                                                             \
    { TRNI_CORES_ORDER(#name, trni_cores_more_collective, TRNI_NO_PART), axis, trni_cores_check_##check,               \
      trni_cores_ready_collective, trni_cores_run_##run },
    static const trni_cores_kind kind[TRNI_CORES_OPS] = {
        { TRNI_CORES_ORDER("core_barrier", NULL, { "data", offsetof(trn_cores_barrier_args, data), TRNI_ROLE_WRITE }),
          -1, trni_cores_check_barrier, trni_cores_ready_barrier, trni_cores_run_barrier },
        { TRNI_CORES_ORDER("sendrecv", NULL,
                           { "dst", offsetof(trn_cores_sendrecv_args, dst), TRNI_ROLE_WRITE | TRNI_ROLE_SBUF },
                           { "src", offsetof(trn_cores_sendrecv_args, src), TRNI_ROLE_READ | TRNI_ROLE_SBUF }),
          0, trni_cores_check_sendrecv, trni_cores_ready_sendrecv, trni_cores_run_sendrecv },
        TRNI_CORES_COLLECTIVES(TRNI_X)
    };
#undef TRNI_X
    return &kind[op];
}

/* ---- failures ---- */

/* The first failure is everybody's: calls return it, and nothing more happens. */
TRNI_FN void trni_cores_fail(trn_cores *cores)
{
    if (cores->args.error) *cores->args.error = cores->failure;
    for (int r = 0; r < cores->ranks; r++) {
        if (!cores->rank[r].core.failure.status) cores->rank[r].core.failure = cores->failure;
        if (cores->work->message[r].state == TRNI_CORES_WAITS) cores->work->message[r].state = TRNI_CORES_READY;
    }
}

/* ---- the end of a round ---- */

TRNI_FN trn_status trni_cores_broken(trn_cores *cores)
{
    for (int r = 0; r < cores->ranks; r++) {
        const trn_error *why = &cores->rank[r].core.failure;
        if (why->status) return trni_fail(&cores->failure, why->status, "rank %d: %.236s", r, why->text);
    }
    return TRN_OK;
}

TRNI_FN int trni_cores_match(trn_cores *cores)
{
    int met = 0;
    memset(cores->work->matched, 0, (size_t)cores->ranks * sizeof(bool));
    for (int r = 0; r < cores->ranks; r++) {
        if (cores->work->matched[r] || cores->work->message[r].state != TRNI_CORES_WAITS) continue;
        if (trni_cores_lacks(cores, r) >= 0) continue;
        trni_cores_mark(cores, r);
        met++;
    }
    return met;
}

/* Has this process a part in the call? */
TRNI_FN bool trni_cores_concerns(const trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    bool here = trni_cores_here(cores, rank);
    for (int i = 0; i < message->members && !here; i++) here = trni_cores_here(cores, message->member[i]);
    return here;
}

/* The rest of a call need not be looked at. */
TRNI_FN void trni_cores_met(trn_cores *cores, int rank)
{
    trni_cores_message *message = cores->work->message;
    for (int i = 0; i < message[rank].members; i++) message[message[rank].member[i]].state = TRNI_CORES_READY;
    for (int at = rank; message[rank].terms.op == TRNI_CORES_SENDRECV && message[at].state == TRNI_CORES_WAITS;
         at = message[at].to)
        message[at].state = TRNI_CORES_READY;
}

/* All of a call have come: has what they bring of HBM been written by now? */
TRNI_FN trn_status trni_cores_check_written(trn_cores *cores, int rank)
{
    const trni_cores_message *message = &cores->work->message[rank];
    for (int m = 0; m < message->members; m++) {
        trn_core *core = &cores->rank[message->member[m]].core;
        const trni_issue *issue = &cores->work->call[message->member[m]].issue;
        if (!trni_cores_here(cores, message->member[m]) || !cores->work->matched[message->member[m]]) continue;
        if (message->terms.op == TRNI_CORES_SENDRECV) continue;
        for (int i = 0; i < issue->count; i++) {
            const trni_core_operand *s = &issue->operand[i];
            if (!(s->role & TRNI_ROLE_READ) || s->memory) continue;
            const trn_status status = trni_hbm_check_read(core, s, NULL);
            if (status)
                return trni_fail(&cores->failure, status, "rank %d: instruction %lld, %s: %.180s", message->member[m],
                                 (long long)core->instructions, issue->order->name, core->failure.text);
        }
    }
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_meet(trn_cores *cores)
{
    trn_status status = TRN_OK;
    for (int r = 0; r < cores->ranks && !status; r++)
        if (cores->work->matched[r] && cores->work->message[r].terms.op != TRNI_CORES_SENDRECV &&
            cores->work->message[r].member[0] != r)
            continue;
        else if (cores->work->matched[r])
            status = trni_cores_all_alike(cores, r, &cores->failure);
    cores->work->over = status != TRN_OK; /* everybody sees that */
    if (!status && cores->args.exchange) status = trni_cores_send_data(cores);
    for (int r = 0; r < cores->ranks && !status; r++) {
        if (!cores->work->matched[r] || cores->work->message[r].state != TRNI_CORES_WAITS) continue;
        if (trni_cores_concerns(cores, r)) status = trni_cores_check_written(cores, r);
        if (!status && trni_cores_concerns(cores, r))
            status = trni_cores_kind_of(cores->work->message[r].terms.op)->run(cores, r);
        if (!status) trni_cores_met(cores, r);
    }
    return status;
}

TRNI_FN int trni_cores_count(const trn_cores *cores, int state)
{
    int count = 0;
    for (int r = 0; r < cores->ranks; r++) count += cores->work->message[r].state == state;
    return count;
}

/* The events of every rank to the trace of all. */
TRNI_FN void trni_cores_drain(trn_cores *cores)
{
    trn_trace *all = cores->args.trace;
    for (int r = 0; all && r < cores->ranks; r++) {
        trn_trace *mine = &cores->work->call[r].trace;
        for (int64_t i = 0; i < mine->count; i++) {
            const trn_trace_event *e = &mine->event[i];
            trn_trace_add(all, r * TRN_CORES_TRACKS + e->track, e->name, e->start_s, e->duration_s, e->text);
        }
        all->lost += mine->lost;
        mine->count = mine->lost = 0;
    }
}

/* What went wrong in this process, and of which kind it is. */
TRNI_FN int trni_cores_look(trn_cores *cores)
{
    trn_status (*const look[])(trn_cores *) = { trni_cores_broken, trni_cores_check_shared, trni_race_round };
    if (cores->failure.status) return 0;
    for (int i = 0; i < 3; i++)
        if (look[i](cores)) return i + 1;
    return TRNI_CORES_FINE;
}

/* None runs: those whose calls meet become ready. */
TRNI_FN void trni_cores_settle(trn_cores *cores)
{
    trni_cores *work = cores->work;
    const int kind = trni_cores_look(cores);
    cores->rounds++;
    trni_cores_drain(cores);
    trn_status status = cores->args.exchange ? trni_cores_tell(cores, kind) : cores->failure.status;
    work->over = status != TRN_OK; /* and if so, everybody knows */
    if (!status && trni_cores_count(cores, TRNI_CORES_ENDED) == cores->ranks) {
        for (int r = 0; r < cores->ranks; r++) cores->time_s = fmax(cores->time_s, work->message[r].ready_s);
        work->over = true;
    } else if (!status && !trni_cores_match(cores)) {
        status = trni_cores_stuck(cores, &cores->failure);
        work->over = true;
    } else if (!status) {
        status = trni_cores_meet(cores);
        if (status && !cores->args.exchange) work->over = true; /* the others are told in the next round */
    }
    if (status) trni_cores_fail(cores);
}

/* ---- a kernel ---- */

TRNI_FN void trni_cores_wait(trn_cores_rank *self)
{
    if (self->cores->work->scheduler) {
        trni_scheduler_wait(self);
        return;
    }
    self->message->state = TRNI_CORES_WAITS;
    trni_cores_settle(self->cores);
}

TRNI_FN trn_status trni_cores_call_run(trn_cores_rank *self, int op, const trni_cores_ask *ask, trn_error *error)
{
    trn_core *core = &self->core;
    if (core->failure.status) return core->failure.status;
    const trn_status status = trni_cores_call_begin(self, trni_cores_kind_of(op), op, ask, error);
    if (status) return status;
    if (op == TRNI_CORES_PERMUTE && self->message->to < 0 && self->message->from < 0) { /* in no pair */
        core->instructions++;
        return TRN_OK;
    }
    trni_cores_wait(self);
    if (core->failure.status && error) *error = core->failure;
    return core->failure.status;
}

TRNI_FN void trni_cores_live(trn_cores_rank *self)
{
    trn_core *core = &self->core;
    const trni_cores *work = self->cores->work;
    const trn_status status = core->failure.status ? TRN_OK : work->kernel(self, work->user);
    if (status && !core->failure.status)
        trni_core_fail(core, trni_fail(&core->failure, status, "its kernel returned: %s", trn_status_text(status)));
    self->message->instruction = core->instructions;
    self->message->ready_s = core->time_s;
}

/* ---- begin ---- */

TRNI_FN int trni_cores_chip_cores(const trn_topology *net)
{
    const trn_system_spec *spec = net->system < TRN_SYSTEM_COUNT ? trn_system_spec_of(net->system) : NULL;
    return spec ? spec->server->chip->cores : net->ranks_per_chip;
}

/* The smallest system of the generation that has so many cores; on failure one without chips. */
TRNI_FN trn_topology trni_cores_default_net(trn_generation generation, int64_t ranks, int cores_per_chip)
{
    trn_topology best = trn_topology_of(TRN_SYSTEM_COUNT);
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) {
        const trn_system_spec *spec = trn_system_spec_of((trn_system)s);
        if (spec->server->chip->core->generation != generation) continue;
        const int64_t cores =
            (int64_t)trn_spec_chips(spec) * (cores_per_chip ? cores_per_chip : spec->server->chip->cores);
        if (cores < ranks || (best.chips && best.chips <= trn_spec_chips(spec))) continue;
        best = trn_topology_of((trn_system)s);
    }
    return best;
}

TRNI_DRIVER trn_status trni_cores_check_net(trn_cores *cores)
{
    trn_cores_args *a = &cores->args;
    trn_error *error = &cores->failure;
    const trn_core_spec *core = trn_core_spec_of(a->core.generation);
    if (!core) return trni_fail(error, TRN_EINVAL, "generation is %d, not a generation", (int)a->core.generation);
    if (a->ranks < 0 || a->cores_per_chip < 0 || a->lnc < 0 || a->threads < 0)
        return trni_fail(error, TRN_EINVAL,
                         "ranks, cores_per_chip, lnc and threads are %d, %d, %d, %d; none is negative", a->ranks,
                         a->cores_per_chip, a->lnc, a->threads);
    if (a->net)
        cores->net = *a->net;
    else
        cores->net = trni_cores_default_net(core->generation, a->ranks, a->cores_per_chip);
    if (!a->net && !cores->net.chips)
        return trni_fail(error, TRN_ELIMIT, "no system of %s has %d cores", trn_generation_name(core->generation),
                         a->ranks);
    const trn_status status = trn_topology_check(&cores->net, error);
    if (status || cores->net.system >= TRN_SYSTEM_COUNT) return status;
    const trn_generation made = trn_system_spec_of(cores->net.system)->server->chip->core->generation;
    if (a->core.generation == TRN_GENERATION_DEFAULT) a->core.generation = made;
    if (a->core.generation != made)
        return trni_fail(error, TRN_EINVAL, "generation is %s, but %s is made of %s",
                         trn_generation_name(a->core.generation), cores->net.name, trn_generation_name(made));
    return TRN_OK;
}

enum { TRNI_CORES_RANKS = 1 << 12 };

TRNI_DRIVER trn_status trni_cores_check_exchange(trn_cores *cores)
{
    const trn_cores_exchange *x = cores->args.exchange;
    int end;
    if (x && (!x->gather || x->processes < 1 || x->process < 0 || x->process >= x->processes))
        return trni_fail(&cores->failure, TRN_EINVAL, "exchange: process %d of %d, and gather is %s", x->process,
                         x->processes, x->gather ? "there" : "null");
    trni_cores_share_of(cores, x ? x->process : 0, &cores->first, &end);
    cores->here = end - cores->first;
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_cores_check_counts(trn_cores *cores)
{
    const trn_cores_args *a = &cores->args;
    trn_error *error = &cores->failure;
    const int there = trni_cores_chip_cores(&cores->net), known = cores->net.system < TRN_SYSTEM_COUNT;
    int each = a->cores_per_chip ? a->cores_per_chip : there;
    if (!a->cores_per_chip && a->ranks && a->ranks < each) each = a->ranks;
    const int64_t ranks = a->ranks ? a->ranks : (int64_t)each * cores->net.chips;
    const int lnc = a->lnc ? a->lnc : 1;
    if (each > 64 || (known && each > there))
        return trni_fail(error, TRN_ELIMIT, "cores_per_chip is %d; a chip of %s has %d", each, cores->net.name, there);
    if (ranks > (int64_t)each * cores->net.chips || ranks > TRNI_CORES_RANKS)
        return trni_fail(error, TRN_ELIMIT,
                         "%lld ranks; %s has %d chips, of which %d cores each take part (at most %d)", (long long)ranks,
                         cores->net.name, cores->net.chips, each, TRNI_CORES_RANKS);
    if (ranks % each || each % lnc)
        return trni_fail(error, TRN_EINVAL, "%lld ranks, %d to a chip, %d to a logical core: they do not come out even",
                         (long long)ranks, each, lnc);
    for (int i = 0; a->chips && i < ranks / each; i++)
        for (int k = 0; k <= i; k++)
            if (a->chips[i] < 0 || a->chips[i] >= cores->net.chips || (k < i && a->chips[k] == a->chips[i]))
                return trni_fail(error, TRN_EINVAL, "chips[%d] is %d; each of 0 to %d may be there once", i,
                                 a->chips[i], cores->net.chips - 1);
    cores->ranks = (int)ranks;
    cores->lnc = lnc;
    cores->cores_per_chip = each;
    return trni_cores_check_exchange(cores);
}

TRNI_FN void trni_cores_free(trn_cores *cores)
{
    trni_cores *work = cores->work;
    for (int r = 0; cores->rank && r < cores->ranks; r++) trn_core_end(&cores->rank[r].core);
    free(cores->rank);
    trn_trace *trace = cores->args.trace;
    if (work && trace && trace->names == work->names) {
        trace->names = NULL;
        trace->tracks = 0;
    }
    if (work) {
        free(work->message);
        free(work->call);
        free(work->member);
        free(work->mark);
        free(work->matched);
        free(work->chip);
        free(work->target);
        free(work->table);
        free(work->data);
        free(work->race);
        free(work->touches);
        free(work->event);
        free(work->names);
        free(work->text);
        trni_cores_free_shared(work);
    }
    free(work);
    cores->rank = NULL;
    cores->work = NULL;
}

/* A share of the trace for each rank, and names for the tracks of all. */
TRNI_FN bool trni_cores_begin_trace(trn_cores *cores)
{
    static const char *const name[TRN_CORES_TRACKS] = { "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA", "CC" };
    trn_trace *trace = cores->args.trace;
    trni_cores *work = cores->work;
    const size_t tracks = (size_t)cores->ranks * TRN_CORES_TRACKS;
    if (!trace) return true;
    const int here = cores->here ? cores->here : 1;
    const int64_t each = trni_ceil_div(trace->capacity > 0 ? trace->capacity : 1, here);
    work->event = (trn_trace_event *)malloc((size_t)each * (size_t)here * sizeof *work->event);
    work->names = (const char **)malloc(tracks * sizeof *work->names);
    work->text = (char(*)[TRN_CORES_TRACK])malloc(tracks * sizeof *work->text);
    if (!work->event || !work->names || !work->text) return false;
    for (size_t i = 0; i < tracks; i++) {
        snprintf(work->text[i], sizeof work->text[i], "r%d %s", (int)(i / TRN_CORES_TRACKS),
                 name[i % TRN_CORES_TRACKS]);
        work->names[i] = work->text[i];
    }
    for (int r = 0; r < cores->here; r++) {
        work->call[cores->first + r].trace.event = work->event + each * r;
        work->call[cores->first + r].trace.capacity = each;
    }
    trace->names = work->names;
    trace->tracks = (int)tracks;
    return true;
}

TRNI_FN bool trni_cores_begin_races(trn_cores *cores)
{
    trni_cores *work = cores->work;
    if (cores->args.no_races || cores->cores_per_chip < 2) return true;
    work->race = (trni_cores_race *)calloc((size_t)(cores->ranks / cores->cores_per_chip), sizeof *work->race);
    work->touches = (trni_touches *)calloc((size_t)cores->ranks, sizeof *work->touches);
    return work->race && work->touches;
}

TRNI_DRIVER trn_status trni_cores_allocate(trn_cores *cores)
{
    const size_t n = (size_t)cores->ranks;
    trni_cores *work = (trni_cores *)calloc(1, sizeof *work);
    cores->work = work;
    cores->rank = (trn_cores_rank *)calloc(n, sizeof *cores->rank);
    if (work) {
        work->message = (trni_cores_message *)calloc(n, sizeof *work->message);
        work->call = (trni_cores_call *)calloc(n, sizeof *work->call);
        work->member = (int *)calloc(n * n, sizeof *work->member);
        work->mark = (uint8_t *)calloc(n * n, 1);
        work->matched = (bool *)calloc(n, sizeof *work->matched);
        work->chip = (int *)calloc(n, sizeof *work->chip);
        work->target = (int *)calloc(n, sizeof *work->target);
        work->table = (uint32_t *)calloc(4 * n * n, sizeof *work->table);
    }
    if (!work || !cores->rank || !work->message || !work->call || !work->member || !work->mark || !work->matched ||
        !work->chip || !work->target || !work->table || !trni_cores_begin_trace(cores) ||
        !trni_cores_begin_races(cores))
        return trni_fail(&cores->failure, TRN_ENOSPC, "could not allocate %d ranks", cores->ranks);
    return TRN_OK;
}

TRNI_FN trn_status trni_cores_begin_rank(trn_cores *cores, int r)
{
    trn_cores_rank *self = &cores->rank[r];
    trn_core_args args = cores->args.core;
    self->cores = cores;
    self->rank = r;
    self->programs = cores->lnc;
    self->program_id = r % cores->lnc;
    self->rank_id = r / cores->lnc;
    self->rank_ids = cores->ranks / cores->lnc;
    self->chip = trni_cores_chip(cores, r);
    self->message = &cores->work->message[r];
    self->call = &cores->work->call[r];
    self->message->member = cores->work->member + (size_t)r * (size_t)cores->ranks;
    self->message->table = cores->work->table + 4 * (size_t)r * (size_t)cores->ranks;
    self->call->mark = cores->work->mark + (size_t)r * (size_t)cores->ranks;
    args.memory = NULL;
    args.trace = cores->args.trace ? &self->call->trace : NULL;
    args.error = NULL;
    args.seed += (uint64_t)r;
    if (!trni_cores_here(cores, r)) return TRN_OK;
    const trn_status status = trn_core_begin(&self->core, &args);
    self->core.touches = cores->work->touches ? &cores->work->touches[r] : NULL;
    return status ? trni_fail(&cores->failure, status, "rank %d: %.236s", r, self->core.failure.text) : TRN_OK;
}

/* ---- run ---- */

#if TRNI_PTHREADS
/* What cannot be started has ended, and is the failure. */
TRNI_FN void trni_cores_start(trn_cores *cores, trni_cores_scheduler *scheduler)
{
    const size_t stack_bytes = cores->args.stack_bytes ? cores->args.stack_bytes : (size_t)TRNI_CORES_STACK;
    for (int r = 0; r < cores->ranks; r++) {
        const bool here = trni_cores_here(cores, r);
        if (here && !cores->failure.status &&
            trni_scheduler_start(scheduler, &cores->rank[r], trni_cores_live, stack_bytes))
            continue;
        if (here && !cores->failure.status)
            trni_fail(&cores->failure, TRN_ENOSPC,
                      "could not start a thread for rank %d of %d, with a stack of %zu bytes", r, cores->ranks,
                      stack_bytes);
        cores->work->message[r].state = TRNI_CORES_ENDED;
    }
    if (cores->failure.status) trni_cores_fail(cores);
}

TRNI_FN trn_status trni_cores_run_threads(trn_cores *cores)
{
    const int limit = cores->args.threads ? cores->args.threads : trni_threads();
    trni_cores_scheduler *scheduler = trni_scheduler_make(cores->ranks, limit);
    if (!scheduler)
        return trni_fail(&cores->failure, TRN_ENOSPC, "could not allocate the seats of %d kernels", cores->ranks);
    cores->work->scheduler = scheduler;
    trni_cores_start(cores, scheduler);
    while (!cores->work->over) {
        trni_scheduler_round(cores);
        trni_cores_settle(cores);
    }
    trni_scheduler_round(cores); /* after a failure all run to their ends */
    trni_scheduler_free(scheduler, cores->ranks);
    cores->work->scheduler = NULL;
    return cores->failure.status;
}
#else
TRNI_FN trn_status trni_cores_run_threads(trn_cores *cores)
{
    return trni_fail(&cores->failure, TRN_EUNSUPPORTED,
                     "this host has no POSIX threads: %d kernels cannot wait for each "
                     "other",
                     cores->ranks);
}
#endif

TRNI_FN trn_status trni_cores_run_alone(trn_cores *cores)
{
    trni_cores_live(&cores->rank[0]);
    cores->work->message[0].state = TRNI_CORES_ENDED;
    trni_cores_settle(cores);
    return cores->failure.status;
}

#endif /* TRNI_CORES_CORES_RUN_H */
