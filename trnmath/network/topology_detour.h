/* network/topology_detour.h - the shortest way round chips and links that are down, and who can still be reached.
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: searches breadth first over chips and switches; links that are down are no links. Of several shortest ways it
 *     takes the one that is found first, the links of a node being looked at in the order of their numbers.
 * DOES NOT: look at rates or latencies: a slow link is a link.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_DETOUR_H
#define TRNI_NETWORK_TOPOLOGY_DETOUR_H

#include <stdlib.h>

#include "topology_levels.h"

typedef struct trni_route {
    const trn_topology *net;
    int64_t *link;
    int capacity, count, chip; /* where it has come to */
    double latency_s;
    bool faulty, broken; /* something is down somewhere; on this route */
} trni_route;

/* Chips and switches. */
TRNI_FN int64_t trni_nodes(const trn_topology *net)
{
    int64_t nodes = net->chips;
    for (int l = 0; l < net->levels; l++)
        if (net->level[l].wiring == TRN_WIRING_SWITCH)
            nodes += (int64_t)(net->chips / (trn_topology_stride(net, l) * net->level[l].size)) *
                     trni_planes(&net->level[l]);
    return nodes;
}

/* A search from one chip, along the links or against them. */
typedef struct trni_flood {
    const trn_topology *net;
    int64_t *by;    /* [nodes] the link by which a node was reached; -1 = it was not, -2 = the search began here */
    int64_t *queue; /* [nodes] nodes; a switch is the chip below it that was there first */
    int64_t *level; /* [nodes] -1 = a chip, else the level of the switch */
    int64_t count, next;
    bool backwards;
} trni_flood;

TRNI_FN bool trni_flood_init(trni_flood *s, const trn_topology *net, int from, bool backwards)
{
    const int64_t nodes = trni_nodes(net);
    memset(s, 0, sizeof *s);
    s->by = (int64_t *)malloc(sizeof(int64_t) * 3 * (size_t)nodes);
    if (!s->by) return false;
    s->net = net;
    s->backwards = backwards;
    s->queue = s->by + nodes;
    s->level = s->queue + nodes;
    for (int64_t i = 0; i < nodes; i++) s->by[i] = -1;
    s->by[from] = -2;
    s->queue[s->count] = from;
    s->level[s->count++] = -1;
    return true;
}

/* One link that leaves (or, backwards, comes to) the node at hand. */
TRNI_FN void trni_flood_try(trni_flood *s, int64_t index)
{
    trn_link link;
    trni_link_ends(s->net, index, &link);
    const int to = s->backwards ? link.from : link.to, from = s->backwards ? link.to : link.from;
    if (s->by[to] != -1 || trn_topology_link_share(s->net, index) <= 0) return;
    s->by[to] = index;
    s->queue[s->count] = to < s->net->chips ? to : from;
    s->level[s->count++] = to < s->net->chips ? -1 : link.level;
}

TRNI_FN void trni_flood_chip(trni_flood *s, int chip)
{
    const int64_t slots = trn_topology_slots(s->net);
    trn_link link;
    for (int64_t i = chip * slots; i < (chip + 1) * slots; i++) {
        trni_link_ends(s->net, i, &link);
        const bool port = s->net->level[link.level].wiring == TRN_WIRING_SWITCH, out = link.from == chip;
        if (port && out == s->backwards) continue; /* down from a switch is the switch's, backwards up to it */
        const int64_t way = s->backwards && !port ? trni_link_reverse(s->net, i) : i;
        if (way >= 0 && trni_link_exists(s->net, way)) trni_flood_try(s, way);
    }
}

TRNI_FN void trni_flood_switch(trni_flood *s, int below, int level)
{
    const trn_topology *net = s->net;
    const int span = trn_topology_stride(net, level) * net->level[level].size, first = below / span * span;
    const int planes = trni_planes(&net->level[level]), inner = net->level[0].size;
    for (int chip = first; chip < first + span; chip++)
        if (chip % inner % planes == below % inner % planes)
            trni_flood_try(s, (int64_t)chip * trn_topology_slots(net) + trni_slot_base(net, level) +
                                  (s->backwards ? 0 : 1));
}

/* Until a chip is reached; -1: all that can be. */
TRNI_FN void trni_flood_run(trni_flood *s, int until)
{
    for (; s->next < s->count && (until < 0 || s->by[until] == -1); s->next++) {
        const int at = (int)s->queue[s->next], level = (int)s->level[s->next];
        if (level < 0)
            trni_flood_chip(s, at);
        else
            trni_flood_switch(s, at, level);
    }
}

TRNI_FN void trni_flood_free(trni_flood *s) { free(s->by); }

/* The whole way anew. False when there is none, or no memory to look for one. */
TRNI_FN bool trni_route_detour(trni_route *r, int from, int to)
{
    trni_flood s;
    trn_link link;
    if (!trni_flood_init(&s, r->net, from, false)) return false;
    trni_flood_run(&s, to);
    const bool found = s.by[to] != -1;
    r->count = 0;
    r->latency_s = 0;
    for (int at = to; found && at != from; at = link.from, r->count++) trni_link_ends(r->net, s.by[at], &link);
    int place = r->count;
    for (int at = to; found && at != from; at = link.from) {
        if (--place < r->capacity) r->link[place] = s.by[at];
        if (!trn_topology_link(r->net, s.by[at], &link)) break;
        r->latency_s += link.latency_s;
    }
    trni_flood_free(&s);
    return found;
}

#endif /* TRNI_NETWORK_TOPOLOGY_DETOUR_H */
