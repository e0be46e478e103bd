/* trn_topology_graph.h - who is wired to whom: a chip is a number of mixed radix, each digit is wired in its own way.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology_graph.h>
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
 * DOES: numbers chips, links and switches, routes, and answers hops, distances, cuts, all from the sizes of the levels:
 *     nothing is stored, so a network of 400,000 chips is as quick and as small as one of 16.
 * DOES NOT: know any system (trn_topology.h builds those), know broken links, or spread one route over several paths.
 *
 * CONTENTS
 *     trn_link_kind, trn_link_kind_name     what the links of a level are made of
 *     trn_wiring, trn_level, trn_topology   a network: digits from the innermost to the outermost
 *     trn_topology_check                    is it one, and if not, why
 *     trn_topology_digit, trn_topology_stride   between numbers of chips and their digits
 *     trn_link, trn_topology_slots, trn_topology_link_count, trn_topology_link   every directed link by number
 *     trn_topology_route, trn_topology_hops, trn_topology_route_latency          from one chip to another
 *     trn_topology_diameter, trn_topology_mean_hops                              over all pairs
 *     trn_topology_injection_bytes_per_s    out of one chip
 *     trn_topology_cut_bytes_per_s, trn_topology_bisection_bytes_per_s           from one half to the other
 *
 * KNOWN FROM: the neighbour tables of the Neuron driver (v2, v3) for tori; trn3-arch.rst of the Neuron SDK, where
 *     switches forward by the address (rack, server, chip).
 *
 * Wiring. RING: digit d is joined to d + 1 and d - 1 modulo the size, all other digits equal; of size 2 it is ONE link.
 * FULL: every digit to every other, the rest equal. SWITCH at level l joins all chips that agree in the digits above l,
 * so it spans the lower digits too; with p planes, chips whose innermost digits agree modulo p. NONE: the digit counts
 * chips that a switch further out joins.
 *
 * Routes. A digit that differs is put right by its own level, or by the next switch further out if that is NONE. The
 * outermost switch that is needed goes first, straight to the chip that has the lower digits of the target (after a
 * change of plane by level 0, if one is needed); then the levels above it, innermost first. A route never leaves the
 * smallest group that holds both chips: two chips of one server do not meet in the network between servers. Half way
 * round a ring, even digits go up and odd ones down, so that all-to-all loads every link of a ring alike, unless its
 * size is even and half of it odd (6, 10, ...).
 */
#ifndef TRN_TOPOLOGY_GRAPH_H
#define TRN_TOPOLOGY_GRAPH_H

#include "trn_spec.h"

/* What a level's links are made of, for what the runtime gets out of them (trn_calibration). */
typedef enum trn_link_kind {
    TRN_LINK_PLAIN = 0, /* of a custom network: all of their rate */
    TRN_LINK_TORUS,     /* NeuronLink between chips of a server, or of a tray */
    TRN_LINK_PEER,      /* between servers or racks: the third ring */
    TRN_LINK_SWITCH,    /* through a switch of NeuronLink */
    TRN_LINK_EFA        /* through network cards, between instances */
} trn_link_kind;

/* "plain", "torus", "peer", "switch", "efa"; "unknown" for anything else. */
TRN_API const char *trn_link_kind_name(trn_link_kind kind);

typedef enum trn_wiring { TRN_WIRING_NONE = 0, TRN_WIRING_RING, TRN_WIRING_FULL, TRN_WIRING_SWITCH } trn_wiring;

enum {
    TRN_MAX_LEVELS = 8,
    TRNI_MAX_CHIPS = 1 << 27 /* with a switch at every level, all have numbers below 2^31 */
};

typedef struct trn_level {
    const char *name;   /* "x", "y", "z", "tray", "server", "rack", "efa", ... */
    trn_wiring wiring;  /* how chips that differ in this digit are joined */
    int size;           /* values of the digit */
    int planes;         /* SWITCH: a chip's plane is its innermost digit modulo this; 0 = 1 */
    trn_link_kind kind;
    double bytes_per_s; /* one way, of one link, or of one port of the switch */
    double latency_s;   /* of one link; SWITCH: from port to port, half of it on the way up, half on the way down */
    trn_source rate, latency; /* how each is known */
} trn_level;

typedef struct trn_topology {
    char name[64];
    int chips; /* product of the sizes; 0 = the builder's arguments made no topology */
    int levels;
    trn_level level[TRN_MAX_LEVELS]; /* innermost first */
    double start_s;                  /* DMA start, paid once per step of any transfer; 0 in custom topologies */
    double local_latency_s;          /* a step between cores of one chip, beyond start_s */
    double hbm_bytes_per_s;          /* of one chip; 0 = never a limit */
    double dma_bytes_per_s;          /* of one chip, in practice; 0 = never a limit */
    double reduce_pass;              /* DMA passes per source of a sum; a copy is one pass */
    int ranks_per_chip;              /* by default: logical cores */
    trn_system system;               /* TRN_SYSTEM_COUNT: a custom one */
    trn_source start, local, hbm, dma, reduce, ranks; /* how those numbers are known */
} trn_topology;

/* ---- digits ---- */

/* Chips between neighbouring digits of a level. */
TRN_API int trn_topology_stride(const trn_topology *net, int level);

/* -1 for a chip or level that does not exist. */
TRN_API int trn_topology_digit(const trn_topology *net, int chip, int level);

/* ---- is it a network ---- */

/* TRN_EINVAL, or TRN_ELIMIT for too many chips, with the level and the number that make it none. */
TRN_API trn_status trn_topology_check(const trn_topology *net, trn_error *error);

/* ---- links: number = chip x slots + slots of the lower levels + which ---- */

typedef struct trn_link {
    int from, to; /* chips; a switch is a number >= net->chips */
    int level;
    trn_wiring wiring;
    double bytes_per_s, latency_s; /* one way; of this segment */
    trn_source source;             /* of the rate */
} trn_link;

/* Directed links that belong to one chip: those that leave it, and those that come down to it from switches. */
TRN_API int trn_topology_slots(const trn_topology *net);

/* Chips x slots: trn_topology_link takes the numbers below it. */
TRN_API int64_t trn_topology_link_count(const trn_topology *net);

/* False when there is no such link. */
TRN_API bool trn_topology_link(const trn_topology *net, int64_t index, trn_link *link);

/* ---- routes ---- */

/* The numbers of the links in order; returns how many there are, of which the first `room` are written. 0 when the
 * chips are the same one, -1 when one of them does not exist. */
TRN_API int trn_topology_route(const trn_topology *net, int from, int to, int64_t *link, int capacity);

/* Links of the route; a switch costs two. -1 when one of the chips does not exist. */
TRN_API int trn_topology_hops(const trn_topology *net, int from, int to);

/* Of all links of the route, without start_s; NaN when one of the chips does not exist. */
TRN_API double trn_topology_route_latency(const trn_topology *net, int from, int to);

/* ---- over all pairs: every chip sees the same distances, so chip 0 speaks for all, level by level ---- */

/* The most hops between any two chips. */
TRN_API int trn_topology_diameter(const trn_topology *net);

/* Over all pairs of different chips; 0 when there is one chip only. */
TRN_API double trn_topology_mean_hops(const trn_topology *net);

/* ---- rates ---- */

/* One way, out of one chip, all its links together. */
TRN_API double trn_topology_injection_bytes_per_s(const trn_topology *net);

/* One way, from the lower half of the digit's values to the upper, all links together; 0 when it has one value. */
TRN_API double trn_topology_cut_bytes_per_s(const trn_topology *net, int level);

/* The least of those cuts; 0 when there is one chip only. */
TRN_API double trn_topology_bisection_bytes_per_s(const trn_topology *net);

#if TRNI_BODIES

#include <float.h>

TRN_API const char *trn_link_kind_name(trn_link_kind kind)
{
    static const char *const name[] = { "plain", "torus", "peer", "switch", "efa" };
    return (unsigned)kind <= TRN_LINK_EFA ? name[(unsigned)kind] : "unknown";
}

/* ---- digits ---- */

TRN_API int trn_topology_stride(const trn_topology *net, int level)
{
    int stride = 1;
    for (int l = 0; l < level && l < net->levels; l++) stride *= net->level[l].size;
    return stride;
}

TRN_API int trn_topology_digit(const trn_topology *net, int chip, int level)
{
    if (chip < 0 || chip >= net->chips || level < 0 || level >= net->levels) return -1;
    return chip / trn_topology_stride(net, level) % net->level[level].size;
}

TRNI_FN int trni_planes(const trn_level *level) { return level->planes > 1 ? level->planes : 1; }

/* ---- is it a network ---- */

TRNI_FN bool trni_level_known(const trn_level *l)
{
    return (unsigned)l->wiring <= (unsigned)TRN_WIRING_SWITCH && (unsigned)l->kind <= (unsigned)TRN_LINK_EFA &&
           l->size >= 1 && l->planes >= 0;
}

TRNI_FN bool trni_amount(double x) { return x >= 0 && x <= DBL_MAX; }

TRNI_DRIVER trn_status trni_level_check(const trn_topology *net, int at, trn_error *error)
{
    const trn_level *l = &net->level[at];
    const char *name = l->name ? l->name : "?";
    if (!trni_level_known(l))
        return trni_fail(error, TRN_EINVAL, "level %d (%s): wiring %d, kind %d, size %d, planes %d: sizes begin at 1",
                         at, name, (int)l->wiring, (int)l->kind, l->size, l->planes);
    if (l->wiring == TRN_WIRING_NONE) {
        int up = at;
        while (up < net->levels && net->level[up].wiring != TRN_WIRING_SWITCH) up++;
        if (l->size > 1 && up == net->levels)
            return trni_fail(error, TRN_EINVAL, "level %d (%s): its %d chips are not wired, and no switch joins them",
                             at, name, l->size);
        return TRN_OK;
    }
    if (!trni_amount(l->bytes_per_s) || (!(l->bytes_per_s > 0) && (l->size > 1 || l->wiring == TRN_WIRING_SWITCH)))
        return trni_fail(error, TRN_EINVAL, "level %d (%s): bytes_per_s %g is no rate", at, name, l->bytes_per_s);
    if (!trni_amount(l->latency_s))
        return trni_fail(error, TRN_EINVAL, "level %d (%s): latency_s %g is no time", at, name, l->latency_s);
    if (trni_planes(l) == 1) return TRN_OK;
    if (l->wiring != TRN_WIRING_SWITCH || at == 0 || net->level[0].size % l->planes != 0)
        return trni_fail(error, TRN_EINVAL,
                         "level %d (%s): %d planes need a switch outside level 0 and divide the %d chips of level 0",
                         at, name, l->planes, net->level[0].size);
    if (net->level[0].wiring == TRN_WIRING_NONE)
        return trni_fail(error, TRN_EINVAL, "level %d (%s): %d planes, and level 0 has no wires to change between them",
                         at, name, l->planes);
    return TRN_OK;
}

TRN_API trn_status trn_topology_check(const trn_topology *net, trn_error *error)
{
    TRNI_FLOATS;
    int64_t chips = 1;
    if (!net) return trni_fail(error, TRN_EINVAL, "net is NULL");
    if (net->levels < 0 || net->levels > TRN_MAX_LEVELS)
        return trni_fail(error, TRN_EINVAL, "levels %d is not in 0 .. %d", net->levels, (int)TRN_MAX_LEVELS);
    for (int l = 0; l < net->levels; l++) {
        const trn_status status = trni_level_check(net, l, error);
        if (status != TRN_OK) return status;
        chips *= net->level[l].size;
        if (chips > TRNI_MAX_CHIPS)
            return trni_fail(error, TRN_ELIMIT, "the levels multiply to more than %d chips", (int)TRNI_MAX_CHIPS);
    }
    if (net->chips != chips || net->levels == 0)
        return trni_fail(error, TRN_EINVAL, "chips is %d, but the %d levels multiply to %d", net->chips, net->levels,
                         net->levels ? (int)chips : 0);
    const double amount[] = { net->start_s, net->local_latency_s, net->hbm_bytes_per_s, net->dma_bytes_per_s,
                              net->reduce_pass };
    static const char *const field[] = { "start_s", "local_latency_s", "hbm_bytes_per_s", "dma_bytes_per_s",
                                         "reduce_pass" };
    for (unsigned i = 0; i < sizeof amount / sizeof amount[0]; i++)
        if (!trni_amount(amount[i])) return trni_fail(error, TRN_EINVAL, "%s %g is no amount", field[i], amount[i]);
    if (net->ranks_per_chip < 1)
        return trni_fail(error, TRN_EINVAL, "ranks_per_chip is %d, and a chip has at least one", net->ranks_per_chip);
    return TRN_OK;
}

/* ---- links: number = chip x slots + slots of the lower levels + which ---- */

/* RING: 0 to d + 1, 1 to d - 1 (size 2: one). FULL: to each other digit. SWITCH: 0 up to it, 1 down from it. */
TRNI_FN int trni_level_slots(const trn_topology *net, int level)
{
    const trn_level *l = &net->level[level];
    switch (l->wiring) {
    case TRN_WIRING_RING: return l->size > 2 ? 2 : l->size - 1;
    case TRN_WIRING_FULL: return l->size - 1;
    case TRN_WIRING_SWITCH: return trn_topology_stride(net, level) * l->size > 1 ? 2 : 0;
    default: return 0;
    }
}

TRNI_FN int trni_slot_base(const trn_topology *net, int level)
{
    int base = 0;
    for (int l = 0; l < level; l++) base += trni_level_slots(net, l);
    return base;
}

TRN_API int trn_topology_slots(const trn_topology *net) { return trni_slot_base(net, net->levels); }

TRN_API int64_t trn_topology_link_count(const trn_topology *net)
{
    return (int64_t)net->chips * trn_topology_slots(net);
}

/* Switches of lower levels have lower numbers; of one level, those of lower chips; of one group, lower planes. */
TRNI_FN int trni_switch_number(const trn_topology *net, int level, int chip)
{
    int number = net->chips;
    for (int l = 0; l <= level; l++) {
        const int planes = trni_planes(&net->level[l]), span = trn_topology_stride(net, l) * net->level[l].size;
        if (net->level[l].wiring != TRN_WIRING_SWITCH) continue;
        if (l == level) return number + chip / span * planes + chip % net->level[0].size % planes;
        number += net->chips / span * planes;
    }
    return -1;
}

/* The chip whose digit of one level is another. */
TRNI_FN int trni_with_digit(const trn_topology *net, int chip, int level, int digit)
{
    const int stride = trn_topology_stride(net, level);
    return chip + (digit - chip / stride % net->level[level].size) * stride;
}

TRN_API bool trn_topology_link(const trn_topology *net, int64_t index, trn_link *link)
{
    if (index < 0 || index >= trn_topology_link_count(net)) return false;
    const int slots = trn_topology_slots(net), chip = (int)(index / slots);
    int k = (int)(index % slots), level = 0;
    while (k >= trni_level_slots(net, level)) k -= trni_level_slots(net, level++);
    const trn_level *l = &net->level[level];
    const int d = trn_topology_digit(net, chip, level);
    link->from = link->to = chip;
    link->level = level;
    link->wiring = l->wiring;
    link->bytes_per_s = l->bytes_per_s;
    link->latency_s = l->wiring == TRN_WIRING_SWITCH ? l->latency_s / 2 : l->latency_s;
    link->source = l->rate;
    if (l->wiring == TRN_WIRING_SWITCH)
        *(k ? &link->from : &link->to) = trni_switch_number(net, level, chip);
    else if (l->wiring == TRN_WIRING_FULL)
        link->to = trni_with_digit(net, chip, level, k < d ? k : k + 1);
    else
        link->to = trni_with_digit(net, chip, level, (d + (k ? l->size - 1 : 1)) % l->size);
    return true;
}

/* ---- routes ---- */

typedef struct trni_route {
    const trn_topology *net;
    int64_t *link;
    int capacity, count, chip; /* where it has come to */
    double latency_s;
} trni_route;

TRNI_FN void trni_route_add(trni_route *r, int chip, int level, int k)
{
    if (r->count < r->capacity)
        r->link[r->count] = (int64_t)chip * trn_topology_slots(r->net) + trni_slot_base(r->net, level) + k;
    r->count++;
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
    for (int i = 0; i < count && r->count + i < r->capacity; i++)
        r->link[r->count + i] =
            (int64_t)trni_with_digit(r->net, r->chip, level, (d + (steps < 0 ? l->size - i % l->size : i)) % l->size) *
                trn_topology_slots(r->net) +
            trni_slot_base(r->net, level) + k;
    d = (d + steps + l->size) % l->size;
    r->count += count;
    r->latency_s += count * l->latency_s;
    r->chip = trni_with_digit(r->net, r->chip, level, d);
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

TRN_API int trn_topology_route(const trn_topology *net, int from, int to, int64_t *link, int capacity)
{
    trni_route r;
    if (from < 0 || from >= net->chips || to < 0 || to >= net->chips) return -1;
    r.net = net;
    r.link = link;
    r.capacity = link ? capacity : 0;
    r.count = 0;
    r.chip = from;
    r.latency_s = 0;
    if (from != to) trni_route_follow(&r, to);
    return r.count;
}

TRN_API int trn_topology_hops(const trn_topology *net, int from, int to)
{
    return trn_topology_route(net, from, to, NULL, 0);
}

TRN_API double trn_topology_route_latency(const trn_topology *net, int from, int to)
{
    TRNI_FLOATS;
    trni_route r;
    if (from < 0 || from >= net->chips || to < 0 || to >= net->chips) return TRNI_NAN;
    memset(&r, 0, sizeof r);
    r.net = net;
    r.chip = from;
    if (from != to) trni_route_follow(&r, to);
    return r.latency_s;
}

/* ---- over all pairs: every chip sees the same distances, so chip 0 speaks for all, level by level ---- */

typedef struct trni_reach {
    int64_t chips; /* that chip 0 reaches through the levels so far */
    int64_t sum;   /* of their distances */
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
    trni_reach r = { 1, 0, 0 };
    for (int l = 0; l < net->levels; l++) {
        const trn_level *at = &net->level[l];
        const int64_t n = at->size, before = r.chips;
        r.chips = trni_reached(net, l);
        if (at->wiring == TRN_WIRING_SWITCH && r.chips > before) {
            int most;
            const int64_t lanes = trni_lane_sum(net, trni_planes(at), &most); /* over one value of the outer digits */
            r.sum += 2 * (r.chips - before) + (most ? (r.chips - before) / net->level[0].size * lanes : 0);
            if (2 + most > r.most) r.most = 2 + most;
        } else if (at->wiring == TRN_WIRING_RING || at->wiring == TRN_WIRING_FULL) {
            const bool ring = at->wiring == TRN_WIRING_RING;
            r.sum = n * r.sum + before * (ring ? n * n / 4 : n - 1);
            r.most += ring ? (int)(n / 2) : n > 1;
        }
    }
    return r;
}

TRN_API int trn_topology_diameter(const trn_topology *net) { return trni_reach_of(net).most; }

TRN_API double trn_topology_mean_hops(const trn_topology *net)
{
    TRNI_FLOATS;
    return net->chips > 1 ? (double)trni_reach_of(net).sum / (net->chips - 1) : 0;
}

/* ---- rates ---- */

TRN_API double trn_topology_injection_bytes_per_s(const trn_topology *net)
{
    TRNI_FLOATS;
    double sum = 0;
    for (int l = 0; l < net->levels; l++)
        sum += (net->level[l].wiring == TRN_WIRING_SWITCH ? trni_level_slots(net, l) / 2 : trni_level_slots(net, l)) *
               net->level[l].bytes_per_s;
    return sum;
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

#endif /* TRN_TOPOLOGY_GRAPH_H */
