/* trn_collective_cost.h - the time of a collective: which algorithm, how long, what limits it, what nothing could beat.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_collective_cost.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_collective_args args = { 0 };
 *         args.net = &net;
 *         args.op = TRN_ALL_REDUCE;
 *         args.bytes = 64 << 20;
 *         args.ranks_per_chip = 4;
 *         trn_cost cost;
 *         if (trn_collective_cost(&args, &cost) != TRN_OK) return 1;
 *         printf("%.0f us by %s, at least %.0f; %s\n", 1e6 * cost.time_s, trn_algorithm_name(cost.algorithm),
 *                1e6 * cost.lower_bound_s, cost.bottleneck);
 *         return cost.algorithm == TRN_KANGARING ? 0 : 1;
 *     }
 *
 * DOES: costs one algorithm, or the cheapest of those that the system's runtime is documented to use (on a custom
 *     topology: of all that fit). For a fixed algorithm the time is exactly latency_s + bytes * seconds per byte; where
 *     it has several ways (hierarchies, and broadcasts whole or dealt out), the least of several such lines.
 * DOES NOT: include software overheads before the first DMA, other traffic, or waiting for slow ranks. Absolute times
 *     are results of this model, never measurements.
 *
 * CONTENTS
 *     trn_cost                    the answer
 *     trn_collective_cost         of one collective
 *     trn_collective_candidates   the algorithms that AUTO compares
 *     trn_collective_busbw_factor bus bandwidth over bytes per second
 *
 * KNOWN FROM: network/collective_time.h; bus bandwidth as nccom-test and nccl-tests define it.
 */
#ifndef TRN_COLLECTIVE_COST_H
#define TRN_COLLECTIVE_COST_H

#include "trn_collective_group.h"

typedef struct trn_cost {
    double time_s;
    double lower_bound_s;   /* injection, cuts, bisection, distance: no schedule is faster */
    double latency_s;       /* what 0 bytes take */
    double link_s;          /* what the fullest links take, summed over phases */
    double hbm_s, dma_s;    /* what HBM and the DMA engines of a chip take, likewise */
    double bytes_per_s;     /* bytes over time ("algbw"); 0 when nothing takes time */
    double bus_bytes_per_s; /* the same as traffic per rank ("busbw") */
    int steps;              /* that cost latency */
    trn_algorithm algorithm;
    bool single_step;       /* a mesh's all-reduce in one step */
    char bottleneck[64];
} trn_cost;

/* What AUTO compares for these arguments, each eligible; list has room for TRN_ALGORITHM_COUNT. 0 when they are
 * refused. */
TRN_API int trn_collective_candidates(const trn_collective_args *args, trn_algorithm *list);

/* busbw / algbw: what of the buffer each rank's links carry at least. */
TRN_API double trn_collective_busbw_factor(trn_collective op, int ranks);

/* cost is written only when TRN_OK is returned. One rank costs nothing. */
TRN_API trn_status trn_collective_cost(const trn_collective_args *args, trn_cost *cost);

#if TRNI_BODIES

#include "network/collective_time.h"

/* What AUTO or HIERARCHICAL came to: an algorithm, its variant and its times. */
typedef struct trni_pick {
    trn_algorithm algorithm;
    int variant;
    bool single_step;
    trni_times times;
} trni_pick;

TRNI_FN double trni_times_of(const trni_times *t, double bytes) { return t->latency_s + bytes * t->slope_s; }

/* Takes the better of what is known and one more; a tie goes to the first, and 1e-9 is a tie, so that the choice (and
 * with it the order of sums) does not hang on how a compiler rounds seconds. */
TRNI_FN trn_status trni_choose_variant(const trni_layout *l, trn_algorithm algorithm, int variant, double bytes,
                                       trni_pick *best)
{
    trni_schedule s;
    trni_times t;
    trn_status status = trni_layout_schedule(l, algorithm, variant, &s);
    if (status != TRN_OK) return status;
    status = trni_load_times(l, &s, &t);
    const bool better = best->algorithm == TRN_ALGORITHM_AUTO ||
                        trni_times_of(&t, bytes) < trni_times_of(&best->times, bytes) * (1 - 1e-9);
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

/* Pairs take their routes whatever algorithm is asked. */
TRNI_FN trn_status trni_choose_pairs(const trni_layout *l, trni_pick *best)
{
    trni_schedule none;
    memset(&none, 0, sizeof none);
    none.ranks = none.block = l->ranks;
    best->algorithm = TRN_POINT_TO_POINT;
    return trni_load_times(l, &none, &best->times);
}

TRNI_FN trn_status trni_choose(const trni_layout *l, double bytes, trni_pick *best)
{
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    trn_status status = TRN_OK;
    memset(best, 0, sizeof *best);
    if (l->ask->op == TRN_PERMUTE || l->ask->op == TRN_SEND_RECV) return trni_choose_pairs(l, best);
    if (l->ask->algorithm != TRN_ALGORITHM_AUTO) return trni_choose_algorithm(l, l->ask->algorithm, bytes, best);
    const int count = trni_layout_candidates(l, list);
    for (int i = 0; i < count && status == TRN_OK; i++) status = trni_choose_algorithm(l, list[i], bytes, best);
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
    if (cost->time_s <= 0) trni_copy_text(cost->bottleneck, capacity, "nothing to do");
    else if (t->latency_s >= bytes * t->slope_s)
        snprintf(cost->bottleneck, capacity, "latency of %d step%s", t->steps, t->steps == 1 ? "" : "s");
    else if (t->link_s >= t->hbm_s && t->link_s >= t->dma_s && t->link >= 0 && trn_topology_link(net, t->link, &link)) {
        const bool up = link.to >= net->chips, down = link.from >= net->chips;
        const char *level = net->level[link.level].name;
        if (up || down)
            snprintf(cost->bottleneck, capacity, "%.12s %s chip %d", level, up ? "port out of" : "port into",
                     up ? link.from : link.to);
        else snprintf(cost->bottleneck, capacity, "%.12s link %d -> %d", level, link.from, link.to);
    } else trni_copy_text(cost->bottleneck, capacity, t->hbm_s >= t->dma_s ? "HBM" : "DMA engines");
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
    if (status == TRN_OK) status = trni_choose(&l, (double)args->bytes, &choice);
    if (status == TRN_OK) trni_cost_answer(&l, &choice, cost);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRN_COLLECTIVE_COST_H */
