/* network/collective.h - collectives that compute the values of every rank.
 * A part of trn_collective.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_COLLECTIVE_H
#define TRNI_NETWORK_COLLECTIVE_H

#include "../engine/alu.h"
#include "collective_cost.h"
#include "../data/convert.h"

/* ---- the call ---- */

/* The values of a collective. TRN_ESHAPE: a view has another size than its rank's; TRN_EINVAL: views overlap, or a
 * number is out of range; TRN_EUNSUPPORTED: the algorithm does not fit the group; TRN_ELIMIT: .enforce_rules and the
 * system would refuse the group. Nothing is written then. */
TRN_API trn_status trn_collective_run(const trn_collective_args *args);

#if TRNI_BODIES

#include "../base/threads.h"
#include "collective_values.h"
#include "collective_views.h"

typedef struct trni_collective_job {
    const trn_collective_args *a;
    trni_views views;
    trni_layout layout;
    trni_schedule schedule;
    trni_arith arith;
    int64_t code_bytes;
} trni_collective_job;

/* ---- reductions ---- */

/* What one thread works with. */
typedef struct trni_fold_job {
    const trni_collective_job *job;
    trni_arith arith; /* with the stream of its group */
    trni_fold fold;
    int group;
} trni_fold_job;

TRNI_FN void trni_fold_from_codes(void *user, int rank, int64_t first, int64_t n, float *value)
{
    const trni_fold_job *my = (const trni_fold_job *)user;
    const char *codes = my->job->views.in[trni_view_index(&my->job->views, my->group, rank)];
    trni_decoder_run(&my->arith.wire.decoder, value, codes + first * my->job->code_bytes, (size_t)n);
}

/* The owner's values to whoever gets them. Exact: they are in the wire's format already. */
TRNI_FN void trni_fold_deliver(const trni_fold_job *my, const float *value, int owner, int64_t first, int64_t n,
                               int64_t chunk_first)
{
    const trni_views *v = &my->job->views;
    const int64_t size = my->job->code_bytes;
    uint32_t code[TRNI_FOLD_TILE];
    const bool scatter = my->job->a->op == TRN_REDUCE_SCATTER;
    trni_encoder_run(&my->job->arith.exact.encoder, code, value, NULL, (size_t)n);
    if (scatter)
        memcpy(v->out[trni_view_index(v, my->group, owner)] + (first - chunk_first) * size, code, (size_t)(n * size));
    for (int r = 0; !scatter && r < v->ranks; r++)
        memcpy(v->out[trni_view_index(v, my->group, r)] + first * size, code, (size_t)(n * size));
}

/* One half of a channel of a chunk. */
TRNI_FN void trni_fold_chunk(trni_fold_job *my, int group, int owner, int channel, int part)
{
    const trni_collective_job *job = my->job;
    const trni_schedule *s = &job->schedule;
    int64_t chunk, count, from, to;
    trni_part_range(s, job->views.elements, job->a->granule, owner, channel, part, &from, &to);
    if (from >= to) return;
    trn_collective_chunk(job->views.elements, job->a->granule, s->ranks, owner, &chunk, &count);
    my->group = group;
    my->arith.stream = trni_group_stream(job->a, group);
    trni_fold_aim(&my->fold, channel, owner);
    for (int64_t at = from; at < to; at += TRNI_FOLD_TILE) {
        const int64_t n = trni_min64(TRNI_FOLD_TILE, to - at);
        trni_fold_deliver(my, trni_fold_tile(&my->fold, part, at, n), owner, at, n, chunk);
    }
}

/* Every half of every channel of every chunk of every group is a task; they share nothing. */
TRNI_FN trn_status trni_run_reduction(trni_collective_job *job)
{
    const trni_schedule *s = &job->schedule;
    const int64_t tasks = (int64_t)job->views.groups * s->ranks * s->channels * 2;
    const int threads = trni_threads();
    const size_t each = trni_fold_bytes(s->ranks) + sizeof(trni_fold_job) + 64, capacity = each - each % 64 + 64;
    char *memory = (char *)malloc(capacity * (size_t)threads);
    if (!memory)
        return trni_fail(job->a->error, TRN_ENOSPC, "could not allocate %zu bytes of sums", capacity * (size_t)threads);
    TRNI_PARALLEL(num_threads(threads) if (threads > 1))
    {
        TRNI_FLOATS;
#if defined(_OPENMP)
        char *mine = memory + capacity * (size_t)omp_get_thread_num();
#else
        char *mine = memory;
#endif
        trni_fold_job *my = (trni_fold_job *)(void *)mine;
        my->job = job;
        my->arith = job->arith;
        my->group = 0;
        trni_fold_init(&my->fold, s, &my->arith, mine + (sizeof(trni_fold_job) + 63) / 64 * 64);
        my->fold.load = trni_fold_from_codes;
        my->fold.user = my;
        TRNI_FOR(schedule(dynamic, 1))
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t chunk = task / 2 / s->channels;
            trni_fold_chunk(my, (int)(chunk / s->ranks), (int)(chunk % s->ranks), (int)(task / 2 % s->channels),
                            (int)(task % 2) + 1);
        }
    }
    free(memory);
    return TRN_OK;
}

/* ---- moves ---- */

TRNI_FN void trni_copy_codes(char *to, const char *from, int64_t bytes)
{
    if (to && from && to != from && bytes > 0) memmove(to, from, (size_t)bytes);
}

TRNI_FN void trni_run_gather(const trni_collective_job *job, int group, int rank)
{
    const trni_views *v = &job->views;
    for (int r = 0; r < v->ranks; r++) {
        int64_t first, count;
        trn_collective_chunk(v->elements, job->a->granule, v->ranks, r, &first, &count);
        if (!count) continue; /* a view without elements may have no memory */
        trni_copy_codes(v->out[trni_view_index(v, group, rank)] + first * job->code_bytes,
                        v->in[trni_view_index(v, group, r)], count * job->code_bytes);
    }
}

/* Where the block that rank i sends to rank j lies in i's source, and in j's destination. */
TRNI_FN void trni_block_of(const trni_collective_job *job, int i, int j, int64_t *in, int64_t *out, int64_t *count)
{
    const trni_views *v = &job->views;
    const int64_t *counts = job->a->counts;
    if (!counts) {
        trn_collective_chunk(v->elements, job->a->granule, v->ranks, j, in, count);
        *out = *count * i;
        return;
    }
    *in = *out = 0;
    for (int r = 0; r < j; r++) *in += counts[(int64_t)i * v->ranks + r];
    for (int r = 0; r < i; r++) *out += counts[(int64_t)r * v->ranks + j];
    *count = counts[(int64_t)i * v->ranks + j];
}

TRNI_FN void trni_run_exchange(const trni_collective_job *job, int group, int rank)
{
    const trni_views *v = &job->views;
    for (int r = 0; r < v->ranks; r++) {
        int64_t in, out, count;
        trni_block_of(job, r, rank, &in, &out, &count);
        if (!count) continue;
        trni_copy_codes(v->out[trni_view_index(v, group, rank)] + out * job->code_bytes,
                        v->in[trni_view_index(v, group, r)] + in * job->code_bytes, count * job->code_bytes);
    }
}

TRNI_FN void trni_run_receive(const trni_collective_job *job, int group, int rank)
{
    const trni_views *v = &job->views;
    const int from = trni_source_of(job->a, rank);
    if (from >= 0)
        trni_copy_codes(v->out[trni_view_index(v, group, rank)], v->in[trni_view_index(v, group, from)],
                        v->elements * job->code_bytes);
}

TRNI_FN void trni_run_moves(const trni_collective_job *job)
{
    const int64_t views = (int64_t)job->views.groups * job->views.ranks;
    void (*const move)(const trni_collective_job *, int, int) = job->a->op == TRN_ALL_GATHER   ? trni_run_gather
                                                                : job->a->op == TRN_ALL_TO_ALL ? trni_run_exchange
                                                                                               : trni_run_receive;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(dynamic, 1))
    for (int64_t i = 0; i < views; i++) {
        TRNI_FLOATS;
        move(job, (int)(i / job->views.ranks), (int)(i % job->views.ranks));
    }
}

/* ---- the call ---- */

/* Bytes of the buffer, which AUTO chooses by. */
TRNI_FN double trni_job_bytes(const trni_collective_job *job)
{
    return (double)job->views.elements * (double)job->code_bytes;
}

/* What is to be done, with a schedule where the caller follows one; else only whether the algorithm that was asked for
 * fits, as copies do not need it. The schedule is to be freed. */
TRNI_FN trn_status trni_job_resolve(trni_collective_job *job, bool scheduled, trni_pick *choice)
{
    const trn_collective_args *a = job->a;
    memset(choice, 0, sizeof *choice);
    job->code_bytes = (int64_t)trn_format_bytes(job->views.wire);
    if (!scheduled)
        return a->algorithm != TRN_ALGORITHM_AUTO && a->op < TRN_PERMUTE
                   ? trni_layout_fits(&job->layout, a->algorithm, a->error)
                   : TRN_OK;
    const trn_status status = trni_pick_best(&job->layout, trni_job_bytes(job), choice);
    return status == TRN_OK ? trni_layout_schedule(&job->layout, choice->algorithm, choice->variant, &job->schedule)
                            : status;
}

TRNI_FN trn_status trni_run_job(trni_collective_job *job, bool reduces)
{
    trn_status status = trni_stage_in(&job->views);
    trni_arith_init(&job->arith, job->a, job->views.wire, job->views.isa);
    if (status == TRN_OK && reduces)
        status = trni_run_reduction(job);
    else if (status == TRN_OK)
        trni_run_moves(job);
    if (status == TRN_OK) status = trni_stage_out(&job->views);
    free(job->views.memory);
    return status;
}

TRN_API trn_status trn_collective_run(const trn_collective_args *args)
{
    trni_collective_job job;
    trni_pick choice;
    TRNI_ENTER(args);
    memset(&job.schedule, 0, sizeof job.schedule);
    job.views.away = NULL;
    job.a = args;
    trn_status status = trni_layout_init(&job.layout, args);
    if (status == TRN_OK && args->enforce_rules) status = trn_replica_group_check(args);
    if (status == TRN_OK) status = trni_views_check(&job.views, args);
    if (status != TRN_OK) return status;
    const bool reduces = args->op == TRN_ALL_REDUCE || args->op == TRN_REDUCE_SCATTER;
    status = trni_job_resolve(&job, reduces, &choice);
    if (status != TRN_OK) return status;
    status = trni_run_job(&job, reduces);
    trni_schedule_free(&job.schedule);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_COLLECTIVE_H */
