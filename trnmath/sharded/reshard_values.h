/* sharded/reshard_values.h - a tensor moved from one sharding to another: every device's values, bit for bit.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: what trn_redistribute_plan plans. Moves keep every bit; reductions are trn_collective_run's, in the order of
 *     the plan's algorithm, rounded to the wire. Shards may be uneven or empty.
 * DOES NOT: store what lies between moves: several in a row are done as one.
 *
 * KNOWN FROM: trn_collective.h (the sums); tests/unit/test_reshard.c, where each element is followed on its own.
 */
#ifndef TRNI_SHARDED_RESHARD_VALUES_H
#define TRNI_SHARDED_RESHARD_VALUES_H

#include "../network/collective.h"
#include "../base/threads.h"
#include "reshard_plan.h"

/* ---- moves: parts of one sharding from parts of another ---- */

typedef struct trni_relay {
    const trn_mesh *mesh;
    const trn_pspec *from, *to; /* to->sum has all of from->sum: no sums are made here */
    const trn_tensor *global, *src, *dst;
    trn_isa isa;
    /* where devices are not all of this process: what to do with the piece that device `to` takes from device `from` */
    trn_status (*piece)(void *user, int from, int to, trn_tensor dst, trn_tensor src);
    void *user;
} trni_relay;

TRNI_FN void trni_relay_copy(const trni_relay *r, trn_tensor dst, trn_tensor src)
{
    trn_shard_args args;
    memset(&args, 0, sizeof args);
    args.isa = r->isa;
    trni_shard_copy(&args, dst, src);
}

/* The device that has part part[d] of each dimension, and is where device `to` is along all other axes. */
TRNI_FN int trni_relay_source(const trni_relay *r, int to, const int *part)
{
    const trn_mesh *mesh = r->mesh;
    int device = to;
    for (int d = 0; d < r->from->rank; d++) {
        const trn_pspec_dim *dim = &r->from->dim[d];
        for (int i = 0; i < dim->axes; i++)
            device -= trn_mesh_coordinate(mesh, to, dim->axis[i]) * mesh->axis[dim->axis[i]].stride;
        device += trni_along(mesh, dim->axis, dim->axes, part[d]);
    }
    return device;
}

/* What one source has of the box that a destination wants. */
TRNI_FN trn_status trni_relay_piece(const trni_relay *r, int to, const trn_box *want, const int *part)
{
    const int from = trni_relay_source(r, to, part);
    const trn_box have = trn_shard_box(r->mesh, r->from, r->global, from);
    trn_tensor src = r->src[from], dst = r->dst[to];
    for (int d = 0; d < want->rank; d++) {
        const int64_t low = want->first[d] > have.first[d] ? want->first[d] : have.first[d];
        const int64_t high = trni_min64(want->first[d] + want->count[d], have.first[d] + have.count[d]);
        src = trn_tensor_slice(src, d, low - have.first[d], high - low);
        dst = trn_tensor_slice(dst, d, low - want->first[d], high - low);
    }
    if (r->piece) return r->piece(r->user, from, to, dst, src);
    trni_relay_copy(r, dst, src);
    return TRN_OK;
}

TRNI_FN trn_status trni_relay_device(const trni_relay *r, int to)
{
    const trn_box want = trn_shard_box(r->mesh, r->to, r->global, to);
    int first[TRN_MAX_RANK] = { 0 }, last[TRN_MAX_RANK] = { 0 }, part[TRN_MAX_RANK];
    trn_status status = TRN_OK;
    if (trn_tensor_elements(r->dst[to]) == 0) return TRN_OK;
    if (trni_first_along(r->mesh, r->to->sum & ~r->from->sum, to) != to) {
        trn_shard_args args;
        memset(&args, 0, sizeof args);
        args.isa = r->isa;
        trni_shard_zero(&args, r->dst[to]);
        return TRN_OK;
    }
    for (int d = 0; d < want.rank; d++) {
        const int64_t step = trni_ceil_div(r->global->shape[d], trn_pspec_parts(r->from, r->mesh, d));
        first[d] = (int)(want.first[d] / step);
        last[d] = (int)((want.first[d] + want.count[d] - 1) / step);
    }
    memcpy(part, first, sizeof part);
    for (int d = 0; d < want.rank && status == TRN_OK;) {
        status = trni_relay_piece(r, to, &want, part);
        for (d = 0; d < want.rank && part[d] == last[d]; d++) part[d] = first[d];
        if (d < want.rank) part[d]++;
    }
    return status;
}

TRNI_FN void trni_relay_run(const trni_relay *r)
{
    const int64_t elements = trn_tensor_elements(*r->global);
    (void)elements;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(dynamic, 1) if (elements >= TRNI_CONVERT_PARALLEL))
    for (int i = 0; i < r->mesh->devices; i++) {
        TRNI_FLOATS;
        (void)trni_relay_device(r, i); /* copies do not fail */
    }
}

/* What carries data between devices that are not all of this process (mpi/mpi_sharded.h). */
typedef struct trni_transport {
    trn_status (*relay)(void *user, const trni_relay *relay);
    trn_status (*run)(void *user, const trn_collective_args *args);
    void *user;
} trni_transport;

/* ---- a set of parts of our own ---- */

typedef struct trni_own_parts {
    trn_tensor *view; /* [devices] */
    char *memory;
} trni_own_parts;

TRNI_FN void trni_own_parts_free(trni_own_parts *p)
{
    free(p->memory);
    free(p->view);
    p->view = NULL;
    p->memory = NULL;
}

TRNI_FN trn_status trni_own_parts_make(trni_own_parts *p, const trn_mesh *mesh, const trn_pspec *spec,
                                       const trn_tensor *global, trn_error *error)
{
    const int64_t size = (int64_t)trn_format_bytes(global->format);
    int64_t bytes = 64;
    p->memory = NULL;
    p->view = (trn_tensor *)malloc(sizeof(trn_tensor) * (size_t)mesh->devices);
    for (int i = 0; p->view && i < mesh->devices && bytes >= 0; i++) {
        const trn_box box = trn_shard_box(mesh, spec, global, i);
        p->view[i] = trn_tensor_nd(global->format, NULL, box.rank, box.count);
        p->view[i].cfp8 = global->cfp8;
        bytes = trni_add_bytes(bytes, trni_round_up(trn_tensor_elements(p->view[i]) * size, 64));
    }
    if (p->view && bytes >= 0) p->memory = (char *)malloc((size_t)bytes);
    if (!p->memory) {
        free(p->view);
        p->view = NULL;
        if (bytes < 0)
            return trni_fail(error, TRN_ENOSPC, "the parts between two steps take more than 2^%d bytes",
                             TRNI_ADDRESS_BITS);
        return trni_fail(error, TRN_ENOSPC, "could not allocate %lld bytes between two steps", (long long)bytes);
    }
    char *at = p->memory + (0 - (uintptr_t)p->memory) % 64;
    for (int i = 0; i < mesh->devices; i++) {
        p->view[i].data = at;
        at += trni_round_up(trn_tensor_elements(p->view[i]) * size, 64);
    }
    return TRN_OK;
}

/* ---- reductions ---- */

typedef struct trni_reshard_sum {
    const trn_redistribute_args *ask;
    const trn_reshard_step *step;
    const trn_pspec *before;
    const trn_tensor *src, *dst; /* [devices] */
    const trni_transport *by;    /* NULL: all devices are here */
} trni_reshard_sum;

/* The dimension that is cut comes first, so that a rank's chunk is a run of rows. */
TRNI_FN trn_tensor trni_dim_first(trn_tensor t, int dim)
{
    if (dim <= 0) return t;
    t = trni_strided(t);
    const int64_t shape = t.shape[dim], stride = t.stride[dim];
    for (int d = dim; d > 0; d--) {
        t.shape[d] = t.shape[d - 1];
        t.stride[d] = t.stride[d - 1];
    }
    t.shape[0] = shape;
    t.stride[0] = stride;
    return t;
}

/* Elements that stay together: the rows of one new part. */
TRNI_FN int64_t trni_reshard_sum_granule(const trni_reshard_sum *r, const trn_tensor *src)
{
    const int dim = r->step->to_dim;
    int64_t n = 1;
    if (r->step->op != TRN_REDUCE_SCATTER) return 0;
    for (int d = 0; d < src->rank; d++) n *= d == dim ? 1 : src->shape[d];
    return n * trni_ceil_div(r->ask->global.shape[dim], trn_pspec_parts(&r->step->after, r->ask->mesh, dim));
}

/* Groups [first, first + groups) of the split. */
TRNI_FN trn_status trni_reshard_sum_groups(const trni_reshard_sum *r, const trni_mesh_split *split, int first,
                                           int groups, trn_tensor *view, int *chip)
{
    const trn_redistribute_args *ask = r->ask;
    trn_collective_args a;
    const int members = split->members;
    memset(&a, 0, sizeof a);
    a.net = ask->mesh->net;
    a.op = r->step->op;
    a.algorithm = r->step->algorithm;
    a.single_step = r->step->cost.single_step;
    a.chips = chip;
    a.count = members;
    a.groups = groups;
    a.wire = ask->wire;
    a.rounding = ask->rounding;
    a.overflow = ask->overflow;
    a.seed = ask->seed;
    a.stream = ask->stream + ((uint64_t)first << 32);
    a.sr_bits = ask->sr_bits;
    a.uncalibrated = ask->uncalibrated;
    a.calibration = ask->calibration;
    a.isa = ask->isa;
    a.error = ask->error;
    a.src = view;
    a.dst = view + (int64_t)groups * members;
    for (int i = 0; i < groups * members; i++) {
        const int device = trni_split_device(split, first + i / members, i % members);
        chip[i] = trn_mesh_chip(ask->mesh, device);
        a.src[i] = trni_dim_first(r->src[device], r->step->to_dim);
        a.dst[i] = trni_dim_first(r->dst[device], r->step->to_dim);
    }
    if (trn_tensor_elements(a.src[0]) == 0) return TRN_OK;
    a.granule = trni_reshard_sum_granule(r, &r->src[trni_split_device(split, first, 0)]);
    return r->by ? r->by->run(r->by->user, &a) : trn_collective_run(&a);
}

/* All groups at once where their parts have one size, else one after another. */
TRNI_FN trn_status trni_reshard_sum_run(const trni_reshard_sum *r)
{
    const trn_mesh *mesh = r->ask->mesh;
    trni_mesh_split split;
    if (!trni_split_of(&split, mesh, r->step->axis, r->step->axes))
        return TRN_EINVAL; /* a plan's axes are the mesh's */
    trn_tensor *view = (trn_tensor *)malloc(2 * sizeof(trn_tensor) * (size_t)mesh->devices);
    int *chip = (int *)malloc(sizeof(int) * (size_t)mesh->devices);
    bool even = true;
    for (int i = 1; i < mesh->devices; i++)
        for (int d = 0; d < r->src[0].rank; d++) even = even && r->src[i].shape[d] == r->src[0].shape[d];
    const int at_once = even ? split.groups : 1;
    trn_status status =
        view && chip ? TRN_OK : trni_fail(r->ask->error, TRN_ENOSPC, "could not allocate the groups' views");
    for (int g = 0; g < split.groups && status == TRN_OK; g += at_once)
        status = trni_reshard_sum_groups(r, &split, g, at_once, view, chip);
    free(view);
    free(chip);
    return status;
}

/* ---- the whole way ---- */

typedef struct trni_way {
    const trn_redistribute_args *ask;
    trn_reshard_plan plan;
    trn_pspec at;          /* where we are, */
    const trn_tensor *now; /* and its parts: the caller's, or mine's */
    trni_own_parts mine;
    const trni_transport *by; /* as in trni_reshard_sum */
} trni_way;

/* Parts of our own, or the caller's dst, take over. */
TRNI_FN void trni_way_arrive(trni_way *w, const trn_pspec *at, const trn_tensor *parts, trni_own_parts *mine)
{
    static const trni_own_parts none = { NULL, NULL };
    trni_own_parts_free(&w->mine);
    w->mine = mine ? *mine : none;
    w->now = mine ? mine->view : parts;
    w->at = *at;
}

/* Everything between two reductions. */
TRNI_FN trn_status trni_way_move(trni_way *w, const trn_pspec *to, bool last)
{
    const trn_redistribute_args *ask = w->ask;
    trni_own_parts next = { NULL, NULL };
    if (!last && trn_pspec_same(&w->at, to)) return TRN_OK;
    if (!last) {
        const trn_status status = trni_own_parts_make(&next, ask->mesh, to, &ask->global, ask->error);
        if (status) return status;
    }
    const trni_relay relay = { ask->mesh, &w->at, to,  &ask->global, w->now, last ? ask->dst : next.view,
                               ask->isa,  NULL,   NULL };
    trn_status status = TRN_OK;
    if (w->by)
        status = w->by->relay(w->by->user, &relay);
    else
        trni_relay_run(&relay);
    if (!status)
        trni_way_arrive(w, to, ask->dst, last ? NULL : &next);
    else
        trni_own_parts_free(&next);
    return status;
}

TRNI_FN trn_status trni_way_reduce(trni_way *w, const trn_reshard_step *step, bool last)
{
    const trn_redistribute_args *ask = w->ask;
    trni_own_parts next = { NULL, NULL };
    trn_status status = last ? TRN_OK : trni_own_parts_make(&next, ask->mesh, &step->after, &ask->global, ask->error);
    if (status) return status;
    const trni_reshard_sum r = { ask, step, &w->at, w->now, last ? ask->dst : next.view, w->by };
    status = trni_reshard_sum_run(&r);
    if (!status)
        trni_way_arrive(w, &step->after, ask->dst, last ? NULL : &next);
    else
        trni_own_parts_free(&next);
    return status;
}

TRNI_FN bool trni_is_reduction(const trn_reshard_step *step)
{
    return step->kind == TRN_RESHARD_COLLECTIVE && (step->op == TRN_ALL_REDUCE || step->op == TRN_REDUCE_SCATTER);
}

TRNI_FN trn_status trni_way_run(trni_way *w)
{
    const trn_reshard_plan *plan = &w->plan;
    const trn_pspec start = trni_essential(&w->ask->from, w->ask->mesh, w->ask->global.rank);
    const trn_pspec goal = trni_essential(&w->ask->to, w->ask->mesh, w->ask->global.rank);
    bool there = false;
    w->at = start;
    w->now = w->ask->src;
    for (int i = 0; i < plan->steps; i++) {
        const trn_reshard_step *step = &plan->step[i];
        if (!trni_is_reduction(step)) continue;
        there = i == plan->steps - 1;
        trn_status status = trni_way_move(w, i ? &plan->step[i - 1].after : &start, false);
        if (!status) status = trni_way_reduce(w, step, there);
        if (status) return status;
    }
    return there ? TRN_OK : trni_way_move(w, &goal, true);
}

/* ---- the call ---- */

TRNI_DRIVER trn_status trni_redistribute_check_views(const trn_redistribute_args *args, const trn_pspec *spec,
                                                     const trn_tensor *views, trni_use use)
{
    const char *name = use == TRNI_INPUT ? "src" : "dst";
    if (!views) return trni_fail(args->error, TRN_EINVAL, "%s is null", name);
    trn_shard_args parts;
    memset(&parts, 0, sizeof parts);
    parts.mesh = args->mesh;
    parts.spec = *spec;
    parts.global = args->global;
    parts.parts = views;
    parts.error = args->error;
    const trn_status status = trni_check_parts(&parts, name, use);
    for (int i = 0; !status && i < args->mesh->devices; i++)
        if (!trni_same_format(&views[i], &args->global))
            return trni_fail(args->error, TRN_EFORMAT, "%s[%d] is %s but global is %s", name, i,
                             trn_format_name(views[i].format), trn_format_name(args->global.format));
    return status;
}

/* No destination meets a source or another destination. */
TRNI_DRIVER trn_status trni_redistribute_check_apart(const trn_redistribute_args *args)
{
    const int n = args->mesh->devices;
    const bool apart = trni_views_ascend(args->dst, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            if (trn_tensor_overlap(args->dst[i], args->src[j]))
                return trni_fail(args->error, TRN_EINVAL, "dst[%d] overlaps src[%d]", i, j);
            if (!apart && j < i && trn_tensor_overlap(args->dst[i], args->dst[j]))
                return trni_fail(args->error, TRN_EINVAL, "dst[%d] overlaps dst[%d]", i, j);
        }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_redistribute_check_run(const trn_redistribute_args *args)
{
    trn_isa isa = args->isa;
    trn_status status = trni_redistribute_check(args);
    if (!status) status = trni_redistribute_check_views(args, &args->from, args->src, TRNI_INPUT);
    if (!status) status = trni_redistribute_check_views(args, &args->to, args->dst, TRNI_OUTPUT);
    if (!status) status = trni_redistribute_check_apart(args);
    if (!status) status = trni_check_rounding(args->rounding, args->sr_bits, args->error);
    if (!status) status = trni_check_overflow(args->overflow, args->error);
    if (!status && args->ranks_per_chip > 1)
        status = trni_fail(args->error, TRN_EUNSUPPORTED,
                           "ranks_per_chip = %d is for costs; values are computed with one rank per chip",
                           args->ranks_per_chip);
    return status ? status : trni_isa_resolve(&isa, args->error);
}

#endif /* TRNI_SHARDED_RESHARD_VALUES_H */
