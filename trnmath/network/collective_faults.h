/* network/collective_faults.h - what chips and links that are down or slow mean for a collective.
 * Behind trn_collective.h trn_collective_cost.h. SPDX-License-Identifier: MIT
 *
 * DOES: says which collective is impossible and why; the least time that the worst connected chip needs, also where a
 *     graph connects some better than others.
 * DOES NOT: route (network/topology_detour.h) or load links (network/collective_load.h).
 */
#ifndef TRNI_NETWORK_COLLECTIVE_FAULTS_H
#define TRNI_NETWORK_COLLECTIVE_FAULTS_H

#include "collective_group.h"

/* To be freed; NULL: no memory. (A network is some kilobytes, which small stacks have not.) */
TRNI_FN trn_topology *trni_without_faults(const trn_topology *net)
{
    trn_topology *sound = (trn_topology *)malloc(sizeof *sound);
    if (!sound) return NULL;
    *sound = *net;
    sound->faults = 0;
    return sound;
}

/* Is every chip, and every direction of a link, as its neighbour? Then some stand for others. */
TRNI_FN bool trni_net_is_even(const trn_topology *net)
{
    bool even = net->faults == 0;
    for (int l = 0; l < net->levels; l++) even = even && !net->level[l].half_duplex;
    return even;
}

TRNI_FN int trni_group_chip(const trn_collective_args *a, int group, int i)
{
    return trni_chip_of_rank(a, group, i * trni_ranks_per_chip(a));
}

/* Can each chip of a group send to, and hear from, its first one? */
TRNI_FN trn_status trni_faults_reach(const trn_collective_args *a, int group, bool backwards)
{
    trni_flood s;
    const int first = trni_group_chip(a, group, 0), count = trni_group_chips(a);
    int lost = -1;
    if (!trni_flood_init(&s, a->net, first, backwards))
        return trni_fail(a->error, TRN_ENOSPC, "could not allocate the search of %d chips", a->net->chips);
    trni_flood_run(&s, -1);
    for (int i = 0; i < count && lost < 0; i++)
        if (s.by[trni_group_chip(a, group, i)] == -1) lost = trni_group_chip(a, group, i);
    trni_flood_free(&s);
    if (lost < 0) return TRN_OK;
    return trni_fail(a->error, TRN_EUNSUPPORTED, "%s is impossible: what is down leaves no way from chip %d to chip %d",
                     trn_collective_name(a->op), backwards ? lost : first, backwards ? first : lost);
}

/* TRN_OK, or why the collective cannot be. */
TRNI_FN trn_status trni_faults_allow(const trn_collective_args *a)
{
    trn_status status = TRN_OK;
    if (!trni_any_down(a->net)) return TRN_OK;
    for (int g = 0; g < trni_group_count(a); g++)
        for (int i = 0; i < trni_group_chips(a); i++) {
            const int chip = trni_group_chip(a, g, i);
            if (trn_topology_chip_share(a->net, chip) <= 0)
                return trni_fail(a->error, TRN_EUNSUPPORTED, "%s is impossible: chip %d is down, and it is %s%s",
                                 trn_collective_name(a->op), chip, a->chips ? "in the group" : "one of all chips of ",
                                 a->chips ? "" : a->net->name);
        }
    for (int g = 0; g < trni_group_count(a) && status == TRN_OK; g++) {
        status = trni_faults_reach(a, g, false);
        if (status == TRN_OK) status = trni_faults_reach(a, g, true);
    }
    return status;
}

/* ---- bounds ---- */

/* From one chip to any other, by whatever way: a detour may have less latency than the usual route. */
TRNI_FN double trni_least_latency(const trn_topology *net)
{
    double least = -1;
    for (int l = 0; l < net->levels; l++) {
        const bool graph = net->level[l].wiring == TRN_WIRING_GRAPH;
        const double s = graph ? trni_graph_least_latency(net, l) : net->level[l].latency_s;
        if (trni_level_slots(net, l) && (least < 0 || s < least)) least = s;
    }
    return least > 0 ? least : 0;
}

/* One way, of all links of a chip that work: out of it, and into it. */
TRNI_FN void trni_chip_rates(const trn_topology *net, int chip, double *out, double *in)
{
    const int64_t slots = trn_topology_slots(net);
    trn_link link, back;
    *out = *in = 0;
    for (int64_t i = chip * slots; i < (chip + 1) * slots; i++) {
        const bool there = trn_topology_link(net, i, &link);
        if (there && link.from == chip) *out += link.bytes_per_s;
        if (there && link.to == chip) *in += link.bytes_per_s;
        if (link.wiring != TRN_WIRING_SWITCH && trn_topology_link(net, trni_link_reverse(net, i), &back))
            *in += back.bytes_per_s;
    }
}

/* Bytes that have to leave a chip of n and to come into it, per byte of the collective's size. Of an all_reduce, what a
 * chip does not sum itself leaves it once and comes back once, and what it sums comes in once and leaves once. */
TRNI_FN void trni_chip_bytes(const trn_collective_args *a, bool root, double *out, double *in)
{
    const double n = trni_group_chips(a), away = (n - 1) / n;
    *out = *in = 0;
    switch (a->op) {
    case TRN_ALL_GATHER:
        *out = 1 / n;
        *in = away;
        break;
    case TRN_REDUCE_SCATTER:
        *out = away;
        *in = 1 / n;
        break;
    case TRN_ALL_REDUCE: *out = *in = 1; break;
    case TRN_ALL_TO_ALL: *out = *in = away * trni_ranks_per_chip(a); break;
    case TRN_BROADCAST: *(root ? out : in) = 1; break;
    default: break;
    }
}

/* Seconds per byte that the worst connected chip of the groups needs at least. */
TRNI_FN double trni_faults_slope(const trn_collective_args *a)
{
    const int root = a->root / trni_ranks_per_chip(a);
    double most = 0;
    if ((a->net->faults == 0 && !trni_net_is_uneven(a->net)) || trni_group_chips(a) < 2) return 0;
    for (int g = 0; g < trni_group_count(a); g++)
        for (int i = 0; i < trni_group_chips(a); i++) {
            double out, in, rate_out, rate_in;
            trni_chip_bytes(a, i == root, &out, &in);
            trni_chip_rates(a->net, trni_group_chip(a, g, i), &rate_out, &rate_in);
            if (rate_out > 0 && out / rate_out > most) most = out / rate_out;
            if (rate_in > 0 && in / rate_in > most) most = in / rate_in;
        }
    return most;
}

#endif /* TRNI_NETWORK_COLLECTIVE_FAULTS_H */
