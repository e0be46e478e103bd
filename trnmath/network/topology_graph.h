/* network/topology_graph.h - who is wired to whom: a chip is a number of mixed radix, each digit has its own wiring.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology.h>
 *     int main(void) {
 *         trn_topology net = { .levels = 2, .chips = 12, .ranks_per_chip = 1, .level = {
 *             { .name = "tray", .wiring = TRN_WIRING_RING, .size = 4, .bytes_per_s = 128e9 },
 *             { .name = "rack", .wiring = TRN_WIRING_SWITCH, .size = 3, .bytes_per_s = 25e9 } } };
 *         int64_t link[8];
 *         const int hops = trn_topology_route(&net, 1, 11, link, 8); // up to the switch, down to chip 11
 *         trn_link first;
 *         return trn_topology_check(&net, NULL) == TRN_OK && hops == 2 && trn_topology_link(&net, link[0], &first) &&
 *                        first.from == 1 && first.to >= net.chips ? 0 : 1;
 *     }
 *
 * DOES: routes, and answers hops, distances, cuts, all from the sizes of the levels (of a GRAPH: from its list of
 *     links): nothing is stored, so a network of 400,000 chips is as quick and as small as one of 16. Where a chip or a
 *     link is down, messages whose route it is on take a detour, for which the network is searched (and memory of its
 *     size allocated).
 * DOES NOT: know any system (trn_topology.h builds those), or spread one route over several paths. Slow links keep
 *     their routes. What is said over all pairs, and rates and cuts, are those of the network without faults.
 *
 * KNOWN FROM: the neighbour tables of the Neuron driver (v2, v3) for tori; trn3-arch.rst of the Neuron SDK, where
 *     switches forward by the address (rack, server, chip).
 *
 * Routes. A digit that differs is put right by its own level, or by the next switch further out if that is NONE. The
 * outermost switch that is needed goes first, straight to the chip that has the lower digits of the target (after a
 * change of plane by level 0, if one is needed); then the levels above it, innermost first. A route never leaves the
 * smallest group that holds both chips: two chips of one server do not meet in the network between servers. Half way
 * round a ring, even digits go up and odd ones down, so that all-to-all loads every link of a ring alike, unless its
 * size is even and half of it odd (6, 10, ...). A GRAPH puts its digit right by the fewest links: at each digit, of the
 * neighbours that are nearer to the target, the first that comes counting up from an even digit, down from an odd one,
 * and round. So a graph that spells a ring has the routes of that ring.
 *
 * A detour (assumed: nothing is published of how the fabric goes round a fault) has the fewest links, and of several
 * such ways the one that a search breadth first finds, which looks at the links in the order of their numbers.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_GRAPH_H
#define TRNI_NETWORK_TOPOLOGY_GRAPH_H

#include "topology_levels.h"

/* ---- routes ---- */

/* The numbers of the links in order; returns how many there are, of which the first `room` are written. 0 when the
 * chips are the same one, -1 when one of them does not exist, or what is down leaves no way (or there is no memory). */
TRN_API int trn_topology_route(const trn_topology *net, int from, int to, int64_t *link, int capacity);

/* Links of the route; a switch costs two. -1 as above. */
TRN_API int trn_topology_hops(const trn_topology *net, int from, int to);

/* Of all links of the route, without start_s; NaN when there is none. */
TRN_API double trn_topology_route_latency(const trn_topology *net, int from, int to);

/* ---- over all pairs: level by level, for what one level adds does not depend on the digits of the others ---- */

/* The most hops between any two chips. */
TRN_API int trn_topology_diameter(const trn_topology *net);

/* Over all pairs of different chips; 0 when there is one chip only. */
TRN_API double trn_topology_mean_hops(const trn_topology *net);

/* ---- rates ---- */

/* One way, out of one chip, all its links together; where graphs give chips different rates, of one that has least. */
TRN_API double trn_topology_injection_bytes_per_s(const trn_topology *net);

/* One way, from the lower half of the digit's values to the upper, all links together; 0 when it has one value. Of a
 * graph: from half of its digits to the others, the least of all halvings (of more than 16 digits: of the lower and the
 * upper half), in the direction that has less. */
TRN_API double trn_topology_cut_bytes_per_s(const trn_topology *net, int level);

/* The least of those cuts; 0 when there is one chip only. */
TRN_API double trn_topology_bisection_bytes_per_s(const trn_topology *net);

#if TRNI_BODIES

#include "topology_detour.h"

/* ---- routes ---- */

TRNI_FN void trni_route_put(trni_route *r, int64_t link)
{
    if (r->count < r->capacity) r->link[r->count] = link;
    if (r->faulty && !r->broken) r->broken = trn_topology_link_share(r->net, link) <= 0;
    r->count++;
}

TRNI_FN void trni_route_add(trni_route *r, int chip, int level, int k)
{
    trni_route_put(r, (int64_t)chip * trn_topology_slots(r->net) + trni_slot_base(r->net, level) + k);
}

/* Through the switch of this level to another chip of the same plane. */
TRNI_FN void trni_route_switch(trni_route *r, int level, int to)
{
    trni_route_add(r, r->chip, level, 0);
    trni_route_add(r, to, level, 1);
    r->latency_s += r->net->level[level].latency_s;
    r->chip = to;
}

/* Steps along a ring, positive: up. Half way round, even digits go up and odd ones down. */
TRNI_FN int trni_ring_steps(int from, int to, int size)
{
    const int up = (to - from + size) % size, down = size - up;
    if (up == 0) return 0;
    return up < down || (up == down && from % 2 == 0) ? up : -down;
}

TRNI_FN void trni_route_ring(trni_route *r, int level, int steps)
{
    const trn_level *l = &r->net->level[level];
    const int count = steps < 0 ? -steps : steps, k = steps < 0 && l->size > 2 ? 1 : 0;
    int d = trn_topology_digit(r->net, r->chip, level);
    const int written = r->faulty ? count : r->capacity - r->count, end = r->count + count;
    for (int i = 0; i < count && i < written; i++)
        trni_route_add(r,
                       trni_with_digit(r->net, r->chip, level, (d + (steps < 0 ? l->size - i % l->size : i)) % l->size),
                       level, k);
    d = (d + steps + l->size) % l->size;
    r->count = end;
    r->latency_s += count * l->latency_s;
    r->chip = trni_with_digit(r->net, r->chip, level, d);
}

TRNI_FN void trni_route_graph(trni_route *r, int level, int digit)
{
    uint64_t shell[TRN_MAX_GRAPH];
    trni_graph g;
    int d = trn_topology_digit(r->net, r->chip, level);
    trni_graph_of(r->net, level, &g);
    for (int k = trni_graph_distance(shell, trni_graph_shells(&g, digit, shell), d); k > 0; k--) {
        const int next = trni_graph_next(&g, d, shell[k - 1]);
        const trn_wire *wire = trni_wire_between(r->net, level, d, next);
        trni_route_add(r, r->chip, level, next < d ? next : next - 1);
        r->latency_s += wire ? wire->latency_s : 0;
        r->chip = trni_with_digit(r->net, r->chip, level, d = next);
    }
}

/* Makes one digit what it is in the target, by this level's own wires. */
TRNI_FN void trni_route_level(trni_route *r, int level, int digit)
{
    const trn_level *l = &r->net->level[level];
    const int d = trn_topology_digit(r->net, r->chip, level), to = trni_with_digit(r->net, r->chip, level, digit);
    if (d == digit) return;
    if (l->wiring == TRN_WIRING_RING) {
        trni_route_ring(r, level, trni_ring_steps(d, digit, l->size));
    } else if (l->wiring == TRN_WIRING_SWITCH) {
        trni_route_switch(r, level, to);
    } else if (l->wiring == TRN_WIRING_GRAPH) {
        trni_route_graph(r, level, digit);
    } else {
        trni_route_add(r, r->chip, level, digit < d ? digit : digit - 1);
        r->latency_s += l->latency_s;
        r->chip = to;
    }
}

/* The innermost digit that a chip goes to for another plane: on a ring the nearest, otherwise the target's own. */
TRNI_FN int trni_plane_digit(const trn_level *inner, int planes, int from, int to)
{
    const int steps = trni_ring_steps(from % planes, to % planes, planes);
    if (from % planes == to % planes) return from;
    if (inner->wiring != TRN_WIRING_RING) return to;
    return (from + steps + inner->size) % inner->size;
}

/* The level that puts a digit right: its own, or for NONE the next switch. */
TRNI_FN int trni_wired_by(const trn_topology *net, int level)
{
    if (net->level[level].wiring != TRN_WIRING_NONE) return level;
    while (level + 1 < net->levels && net->level[level].wiring != TRN_WIRING_SWITCH) level++;
    return level;
}

/* The outermost switch between two chips; -1 when there is none. */
TRNI_FN int trni_switch_between(const trn_topology *net, int from, int to)
{
    int outermost = -1;
    for (int l = 0; l < net->levels; l++) {
        if (trn_topology_digit(net, from, l) == trn_topology_digit(net, to, l)) continue;
        const int by = trni_wired_by(net, l);
        if (net->level[by].wiring == TRN_WIRING_SWITCH && by > outermost) outermost = by;
    }
    return outermost;
}

TRNI_FN void trni_route_follow(trni_route *r, int to)
{
    const trn_topology *net = r->net;
    const int s = trni_switch_between(net, r->chip, to);
    if (s >= 0) {
        const int span = trn_topology_stride(net, s) * net->level[s].size;
        const int inner = trn_topology_digit(net, r->chip, 0), target = trn_topology_digit(net, to, 0);
        trni_route_level(r, 0, trni_plane_digit(&net->level[0], trni_planes(&net->level[s]), inner, target));
        trni_route_switch(r, s, r->chip / span * span + to % span);
    }
    for (int l = s + 1; l < net->levels; l++) trni_route_level(r, l, trn_topology_digit(net, to, l));
}

/* The whole route; when something on it is down, a detour. False when there is none. */
TRNI_FN bool trni_route_find(trni_route *r, const trn_topology *net, int from, int to, int64_t *link, int capacity)
{
    memset(r, 0, sizeof *r);
    if (from < 0 || from >= net->chips || to < 0 || to >= net->chips) return false;
    r->net = net;
    r->link = link;
    r->capacity = link ? capacity : 0;
    r->chip = from;
    r->faulty = trni_any_down(net);
    if (from != to) trni_route_follow(r, to);
    return !r->broken || trni_route_detour(r, from, to);
}

TRN_API int trn_topology_route(const trn_topology *net, int from, int to, int64_t *link, int capacity)
{
    trni_route r;
    return trni_route_find(&r, net, from, to, link, capacity) ? r.count : -1;
}

TRN_API int trn_topology_hops(const trn_topology *net, int from, int to)
{
    return trn_topology_route(net, from, to, NULL, 0);
}

TRN_API double trn_topology_route_latency(const trn_topology *net, int from, int to)
{
    TRNI_FLOATS;
    trni_route r;
    return trni_route_find(&r, net, from, to, NULL, 0) ? r.latency_s : (double)TRNI_NAN;
}

/* ---- over all pairs: but for graphs, every chip sees the same distances, and chip 0 speaks for all ---- */

typedef struct trni_reach {
    int64_t chips; /* that chip 0 reaches through the levels so far */
    int64_t sum;   /* of their distances, from all digits of the graphs */
    int64_t from;  /* combinations of those digits */
    int most;
} trni_reach;

/* Cost of going from innermost digit 0 to the plane of each digit: the sum over the digits, and the largest. */
TRNI_FN int64_t trni_lane_sum(const trn_topology *net, int planes, int *most)
{
    const trn_level *inner = &net->level[0];
    int64_t sum = 0;
    *most = 0;
    for (int q = 1; q < planes; q++) {
        const int near = q < planes - q ? q : planes - q;
        const int cost = inner->wiring == TRN_WIRING_RING ? near : inner->wiring == TRN_WIRING_FULL ? 1 : 2;
        if (cost > *most) *most = cost;
        sum += cost;
    }
    return sum * (inner->size / planes);
}

/* Chips that differ only in digits that levels up to this one put right. */
TRNI_FN int64_t trni_reached(const trn_topology *net, int level)
{
    int64_t chips = 1;
    for (int l = 0; l <= level; l++)
        if (trni_wired_by(net, l) <= level) chips *= net->level[l].size;
    return chips;
}

TRNI_FN trni_reach trni_reach_of(const trn_topology *net)
{
    trni_reach r = { 1, 0, 1, 0 };
    for (int l = 0; l < net->levels; l++) {
        const trn_level *at = &net->level[l];
        const int64_t n = at->size, before = r.chips;
        r.chips = trni_reached(net, l);
        if (at->wiring == TRN_WIRING_SWITCH && r.chips > before) {
            int most;
            const int64_t lanes = trni_lane_sum(net, trni_planes(at), &most); /* over one value of the outer digits */
            r.sum += r.from * (2 * (r.chips - before) + (most ? (r.chips - before) / net->level[0].size * lanes : 0));
            if (2 + most > r.most) r.most = 2 + most;
        } else if (at->wiring == TRN_WIRING_RING || at->wiring == TRN_WIRING_FULL) {
            const bool ring = at->wiring == TRN_WIRING_RING;
            r.sum = n * r.sum + r.from * before * (ring ? n * n / 4 : n - 1);
            r.most += ring ? (int)(n / 2) : n > 1;
        } else if (at->wiring == TRN_WIRING_GRAPH) {
            int most;
            const int64_t pairs = trni_graph_sum(net, l, &most);
            r.sum = n * n * r.sum + r.from * before * pairs;
            r.from *= n;
            r.most += most;
        }
    }
    return r;
}

TRN_API int trn_topology_diameter(const trn_topology *net) { return trni_reach_of(net).most; }

TRN_API double trn_topology_mean_hops(const trn_topology *net)
{
    TRNI_FLOATS;
    const trni_reach r = trni_reach_of(net);
    return net->chips > 1 ? (double)r.sum / ((double)r.from * (net->chips - 1)) : 0;
}

/* ---- rates ---- */

/* Of one chip that has least; most: that has most, out or in. */
TRNI_FN double trni_injection(const trn_topology *net, bool most)
{
    double sum = 0;
    for (int l = 0; l < net->levels; l++) {
        const int slots = trni_level_slots(net, l);
        const trn_wiring wiring = net->level[l].wiring;
        if (wiring == TRN_WIRING_GRAPH)
            sum += trni_graph_injection(net, l, most);
        else
            sum += (wiring == TRN_WIRING_SWITCH ? slots / 2 : slots) * net->level[l].bytes_per_s;
    }
    return sum;
}

TRN_API double trn_topology_injection_bytes_per_s(const trn_topology *net)
{
    TRNI_FLOATS;
    return trni_injection(net, false);
}

/* Ports of the smaller half, over all chips, when a digit below (or of) a switch is halved. */
TRNI_FN double trni_switch_cut(const trn_topology *net, int at, int level)
{
    const int n = net->level[level].size, planes = trni_planes(&net->level[at]);
    double ports = 0; /* of the n values of the digit */
    if (level > 0 || planes == 1) return (double)(net->chips / n) * (n / 2);
    for (int p = 0; p < planes; p++) {
        int low = 0;
        for (int d = p; d < n / 2; d += planes) low++;
        const int high = n / planes - low;
        ports += low < high ? low : high;
    }
    return ports * (net->chips / n);
}

TRN_API double trn_topology_cut_bytes_per_s(const trn_topology *net, int level)
{
    TRNI_FLOATS;
    if (level < 0 || level >= net->levels || net->level[level].size < 2) return 0;
    const trn_level *l = &net->level[level];
    const double n = l->size, low = l->size / 2, others = net->chips / l->size;
    double rate = 0;
    if (l->wiring == TRN_WIRING_RING) rate = others * (n > 2 ? 2 : 1) * l->bytes_per_s;
    if (l->wiring == TRN_WIRING_FULL) rate = others * low * (n - low) * l->bytes_per_s;
    if (l->wiring == TRN_WIRING_GRAPH) rate = others * trni_graph_cut(net, level);
    for (int at = level; at < net->levels; at++)
        if (net->level[at].wiring == TRN_WIRING_SWITCH)
            rate += trni_switch_cut(net, at, level) * net->level[at].bytes_per_s;
    return rate;
}

TRN_API double trn_topology_bisection_bytes_per_s(const trn_topology *net)
{
    TRNI_FLOATS;
    double least = 0;
    for (int l = 0; l < net->levels; l++) {
        const double cut = trn_topology_cut_bytes_per_s(net, l);
        if (net->level[l].size > 1 && (least <= 0 || cut < least)) least = cut;
    }
    return least;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_GRAPH_H */
