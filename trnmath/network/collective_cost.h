/* network/collective_cost.h - the time of a collective, by each algorithm.
 * A part of trn_collective_cost.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_COLLECTIVE_COST_H
#define TRNI_NETWORK_COLLECTIVE_COST_H

#include "collective_group.h"

typedef struct trn_cost {
    double time_s;
    double lower_bound_s;   /* injection, cuts, bisection, distance: no schedule is faster */
    double latency_s;       /* what 0 bytes take */
    double link_s;          /* what the fullest links take, summed over phases */
    double hbm_s, dma_s;    /* what HBM and the DMA engines of a chip take, likewise */
    double bytes_per_s;     /* bytes over time ("algbw"); 0 when nothing takes time */
    double bus_bytes_per_s; /* the same as traffic per rank ("busbw") */
    double expected_s;      /* at what the runtime is expected to reach (trn_calibration.h); never below time_s */
    double expected_low_s, expected_high_s; /* four of five published times lie within such a range */
    double launch_s;           /* of expected_s: what is there before the first byte moves, hosts included */
    double expected_latency_s; /* what 0 bytes are expected to take, launch_s included */
    double expected_link_s, expected_memory_s; /* the fullest links, and the slower of HBM and DMA, at those rates */
    int steps;                                 /* that cost latency */
    trn_algorithm algorithm;
    bool single_step; /* a mesh's all-reduce in one step */
    char bottleneck[64];
    trn_evidence_class evidence; /* what the range is from */
    double graph_s;              /* of expected_s: what steps take more in a graph; AUTO does not look at it */
} trn_cost;

/* What AUTO compares for these arguments, each eligible; list has room for TRN_ALGORITHM_COUNT. 0 when they are
 * refused. */
TRN_API int trn_collective_candidates(const trn_collective_args *args, trn_algorithm *list);

/* busbw / algbw: what of the buffer each rank's links carry at least. */
TRN_API double trn_collective_busbw_factor(trn_collective op, int ranks);

/* cost is written only when TRN_OK is returned. One rank costs nothing. */
TRN_API trn_status trn_collective_cost(const trn_collective_args *args, trn_cost *cost);

/* bytes[trn_topology_link_count(net)]: what all steps together send over each directed link, as trn_topology_svg()
 * draws it; both halves of a way through a switch count. A link that is used in turns with another counts for both
 * where that one stands. Written only when TRN_OK is returned. */
TRN_API trn_status trn_collective_loads(const trn_collective_args *args, double *bytes);

#if TRNI_BODIES

#include "collective_time.h"

/* What AUTO or HIERARCHICAL came to: an algorithm, its variant and its times. */
typedef struct trni_pick {
    trn_algorithm algorithm;
    int variant;
    bool single_step;
    trni_times times;
} trni_pick;

TRNI_FN double trni_times_of(const trni_times *t, double bytes) { return t->latency_s + bytes * t->slope_s; }

/* Does the group leave an instance, so that hosts take part in its launch? */
TRNI_FN bool trni_leaves_instance(const trni_layout *l)
{
    return l->top_level >= 0 && l->ask->net->level[l->top_level].kind == TRN_LINK_EFA;
}

TRNI_FN double trni_launch_s(const trni_layout *l)
{
    if (l->ranks < 2) return 0;
    return l->calibration.launch_s + (trni_leaves_instance(l) ? l->calibration.instance_s : 0);
}

TRNI_FN double trni_expected_latency_s(const trni_layout *l, const trni_times *t)
{
    return trni_launch_s(l) + t->latency_s + t->steps * l->calibration.step_s;
}

TRNI_FN double trni_expected_s(const trni_layout *l, const trni_times *t, double bytes)
{
    return fmax(trni_times_of(t, bytes), trni_expected_latency_s(l, t) + bytes * t->expected_slope_s);
}

/* Is `now` better than `best` by so much that no rounding of seconds decides it, and with it the order of sums? */
TRNI_FN bool trni_beats(double now, double best) { return now < best * (1 - 1e-9); }

/* One algorithm's variants are ranked by ideal time: they differ in how bytes travel, not in what software adds. */
TRNI_FN trn_status trni_choose_variant(const trni_layout *l, trn_algorithm algorithm, int variant, double bytes,
                                       trni_pick *best)
{
    trni_schedule s;
    trni_times t;
    trn_status status = trni_layout_schedule(l, algorithm, variant, &s);
    if (status != TRN_OK) return status;
    status = trni_load_times(l, &s, &t);
    const bool better = best->algorithm == TRN_ALGORITHM_AUTO ||
                        trni_beats(trni_times_of(&t, bytes), trni_times_of(&best->times, bytes));
    if (status == TRN_OK && better) {
        best->algorithm = algorithm;
        best->variant = variant;
        best->single_step = s.single_step;
        best->times = t;
    }
    trni_schedule_free(&s);
    return status;
}

TRNI_FN trn_status trni_choose_algorithm(const trni_layout *l, trn_algorithm algorithm, double bytes, trni_pick *best)
{
    trn_status status = trni_layout_fits(l, algorithm, l->ask->error);
    for (int v = 0; status == TRN_OK && v < trni_layout_variants(l, algorithm); v++)
        if (trni_layout_variant_fits(l, algorithm, v)) status = trni_choose_variant(l, algorithm, v, bytes, best);
    return status;
}

/* An algorithm has the variant that it has where nothing is broken: what is slow or down takes time and changes none of
 * its bits. */
TRNI_DRIVER trn_status trni_choose_way(const trni_layout *l, trn_algorithm algorithm, double bytes, trni_pick *best)
{
    if (l->ask->net->faults == 0) return trni_choose_algorithm(l, algorithm, bytes, best);
    trn_topology *net = trni_without_faults(l->ask->net);
    if (!net) return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the network without its faults");
    trn_collective_args ask = *l->ask;
    trni_layout sound = *l;
    trni_pick there;
    memset(&there, 0, sizeof there);
    ask.net = net;
    sound.ask = &ask;
    const trn_status status = trni_choose_algorithm(&sound, algorithm, bytes, &there);
    free(net);
    return status == TRN_OK ? trni_choose_variant(l, there.algorithm, there.variant, bytes, best) : status;
}

/* Algorithms are ranked by expected time; a tie goes to the first. */
TRNI_FN trn_status trni_choose_better(const trni_layout *l, trn_algorithm algorithm, double bytes, trni_pick *best)
{
    trni_pick now;
    memset(&now, 0, sizeof now);
    const trn_status status = trni_choose_way(l, algorithm, bytes, &now);
    if (status != TRN_OK || now.algorithm == TRN_ALGORITHM_AUTO) return status;
    if (best->algorithm == TRN_ALGORITHM_AUTO ||
        trni_beats(trni_expected_s(l, &now.times, bytes), trni_expected_s(l, &best->times, bytes)))
        *best = now;
    return TRN_OK;
}

/* Pairs take their routes whatever algorithm is asked. */
TRNI_FN trn_status trni_choose_pairs(const trni_layout *l, trni_pick *best)
{
    trni_schedule none;
    memset(&none, 0, sizeof none);
    none.ranks = none.block = l->ranks;
    best->algorithm = TRN_POINT_TO_POINT;
    return trni_load_times(l, &none, &best->times);
}

TRNI_FN trn_status trni_pick_best(const trni_layout *l, double bytes, trni_pick *best)
{
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    trn_status status = TRN_OK;
    memset(best, 0, sizeof *best);
    if (l->ask->op == TRN_PERMUTE || l->ask->op == TRN_SEND_RECV) return trni_choose_pairs(l, best);
    if (l->ask->algorithm != TRN_ALGORITHM_AUTO) return trni_choose_way(l, l->ask->algorithm, bytes, best);
    const int count = trni_layout_candidates(l, list);
    for (int i = 0; i < count && status == TRN_OK; i++) status = trni_choose_better(l, list[i], bytes, best);
    if (status == TRN_OK && !count)
        return trni_fail(l->ask->error, TRN_EUNSUPPORTED, "no algorithm fits %d ranks on %s", l->ranks,
                         l->ask->net->name);
    return status;
}

/* The same with a status, for those who must know why there are none. */
TRNI_FN trn_status trni_collective_candidates(const trn_collective_args *args, trn_algorithm *list, int *count)
{
    trni_layout l;
    const trn_status status = trni_layout_init(&l, args);
    *count = status == TRN_OK ? trni_layout_candidates(&l, list) : 0;
    return status;
}

TRN_API int trn_collective_candidates(const trn_collective_args *args, trn_algorithm *list)
{
    TRNI_FLOATS;
    int count = 0;
    if (args && list) (void)trni_collective_candidates(args, list, &count);
    return count;
}

TRN_API double trn_collective_busbw_factor(trn_collective op, int ranks)
{
    TRNI_FLOATS;
    const double away = ranks > 0 ? (ranks - 1.0) / ranks : 0;
    return op == TRN_ALL_REDUCE ? 2 * away : op <= TRN_ALL_TO_ALL ? away : 1;
}

/* One phrase: what takes longest. */
TRNI_FN void trni_bottleneck(const trni_layout *l, const trni_times *t, double bytes, trn_cost *cost)
{
    const trn_topology *net = l->ask->net;
    const size_t capacity = sizeof cost->bottleneck;
    trn_link link;
    if (cost->time_s <= 0)
        trni_copy_text(cost->bottleneck, capacity, "nothing to do");
    else if (t->latency_s >= bytes * t->slope_s)
        snprintf(cost->bottleneck, capacity, "latency of %d step%s", t->steps, t->steps == 1 ? "" : "s");
    else if (t->link_s >= t->hbm_s && t->link_s >= t->dma_s && t->link >= 0 && trn_topology_link(net, t->link, &link)) {
        const bool up = link.to >= net->chips, down = link.from >= net->chips;
        const char *level = trn_level_name(&net->level[link.level]);
        if (up || down)
            snprintf(cost->bottleneck, capacity, "%.12s %s chip %d", level, up ? "port out of" : "port into",
                     up ? link.from : link.to);
        else
            snprintf(cost->bottleneck, capacity, "%.12s link %d -> %d", level, link.from, link.to);
    } else
        trni_copy_text(cost->bottleneck, capacity, t->hbm_s >= t->dma_s ? "HBM" : "DMA engines");
}

/* Of which published times a range is. */
TRNI_FN trn_evidence_class trni_collective_evidence(const trn_collective_args *a)
{
    if (a->op == TRN_PERMUTE || a->op == TRN_SEND_RECV) return TRN_EVIDENCE_PAIRS;
    if (a->bytes >= 1 << 20) return TRN_EVIDENCE_COLLECTIVE;
    return a->in_graph ? TRN_EVIDENCE_GRAPH : TRN_EVIDENCE_SMALL;
}

TRNI_FN void trni_cost_answer(const trni_layout *l, const trni_pick *c, trn_cost *cost)
{
    const double bytes = (double)l->ask->bytes;
    const trni_times *t = &c->times;
    const trni_bounds bound = trni_load_bounds(l);
    memset(cost, 0, sizeof *cost);
    cost->algorithm = c->algorithm;
    cost->single_step = c->single_step;
    cost->steps = t->steps;
    cost->latency_s = t->latency_s;
    cost->link_s = t->link_s * bytes;
    cost->hbm_s = t->hbm_s * bytes;
    cost->dma_s = t->dma_s * bytes;
    cost->time_s = trni_times_of(t, bytes);
    cost->lower_bound_s = bytes * bound.slope_s > bound.latency_s ? bytes * bound.slope_s : bound.latency_s;
    cost->graph_s = l->ask->in_graph ? t->steps * l->calibration.graph_s : 0;
    cost->expected_s = trni_expected_s(l, t, bytes) + cost->graph_s;
    cost->evidence = trni_collective_evidence(l->ask);
    const double usual = trn_calibration_default().spread;
    const double spread = trni_evidence_spread(cost->evidence, l->calibration.spread, usual);
    trni_evidence_range(spread, cost->time_s, cost->expected_s, &cost->expected_low_s, &cost->expected_high_s);
    cost->launch_s = trni_launch_s(l);
    cost->expected_latency_s = trni_expected_latency_s(l, t) + cost->graph_s;
    cost->expected_link_s = t->expected_link_s * bytes;
    cost->expected_memory_s = t->expected_memory_s * bytes;
    if (cost->time_s > 0) cost->bytes_per_s = bytes / cost->time_s;
    cost->bus_bytes_per_s = cost->bytes_per_s * trn_collective_busbw_factor(l->ask->op, l->ranks);
    trni_bottleneck(l, t, bytes, cost);
}

TRN_API trn_status trn_collective_cost(const trn_collective_args *args, trn_cost *cost)
{
    trni_layout l;
    trni_pick choice;
    TRNI_ENTER(args);
    if (!cost) return trni_fail(args->error, TRN_EINVAL, "cost is null");
    trn_status status = trni_layout_init(&l, args);
    if (status == TRN_OK && args->enforce_rules) status = trn_replica_group_check(args);
    if (status == TRN_OK) status = trni_pick_best(&l, (double)args->bytes, &choice);
    if (status == TRN_OK) trni_cost_answer(&l, &choice, cost);
    return status;
}

/* What one byte puts on every link. A schedule that was chosen fits. */
TRNI_DRIVER trn_status trni_collective_carried(trni_layout *l, const trni_pick *choice, double *carried)
{
    trni_schedule s;
    trni_times t;
    memset(&s, 0, sizeof s);
    s.ranks = s.block = l->ranks;
    l->whole = true;
    l->carried = carried;
    const bool pairs = choice->algorithm == TRN_POINT_TO_POINT;
    trn_status status = pairs ? TRN_OK : trni_layout_schedule(l, choice->algorithm, choice->variant, &s);
    if (status != TRN_OK) return status;
    status = trni_load_times(l, &s, &t);
    trni_schedule_free(&s);
    return status;
}

TRNI_DRIVER trn_status trni_collective_loads(trni_layout *l, const trni_pick *choice, double *bytes)
{
    const int64_t links = trn_topology_link_count(l->ask->net);
    double *carried = (double *)trni_load_zeros(links + 1, sizeof *carried); /* one chip has a slot without a link */
    if (!carried)
        return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the loads of %lld links", (long long)links);
    const trn_status status = trni_collective_carried(l, choice, carried);
    for (int64_t i = 0; status == TRN_OK && i < links; i++) bytes[i] = carried[i] * (double)l->ask->bytes;
    free(carried);
    return status;
}

TRN_API trn_status trn_collective_loads(const trn_collective_args *args, double *bytes)
{
    trni_layout l;
    trni_pick choice;
    TRNI_ENTER(args);
    if (!bytes) return trni_fail(args->error, TRN_EINVAL, "bytes is null");
    trn_status status = trni_layout_init(&l, args);
    if (status == TRN_OK && args->enforce_rules) status = trn_replica_group_check(args);
    if (status == TRN_OK) status = trni_pick_best(&l, (double)args->bytes, &choice);
    return status == TRN_OK ? trni_collective_loads(&l, &choice, bytes) : status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_COLLECTIVE_COST_H */
