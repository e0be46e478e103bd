/* network/topology_levels.h - is it a network, its links by number, and what of them is broken.
 * A part of trn_topology.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_topology.h>
 *     int main(void) {
 *         trn_topology net = { .levels = 2, .chips = 12, .ranks_per_chip = 1, .level = {
 *             { .name = "tray", .wiring = TRN_WIRING_RING, .size = 4, .bytes_per_s = 128e9 },
 *             { .name = "rack", .wiring = TRN_WIRING_SWITCH, .size = 3, .bytes_per_s = 25e9 } } };
 *         trn_link link;
 *         return trn_topology_check(&net, NULL) == TRN_OK && trn_topology_link(&net, 0, &link) && link.to == 1 ? 0 : 1;
 *     }
 *
 * DOES: a chip is a number of mixed radix, and each digit is wired in its own way (network/topology_parts.h, included
 *     here); numbers every directed link and every switch; says of each link how much of its rate is left when chips or
 *     links are down or slow.
 * DOES NOT: route (network/topology_graph.h), build the networks of systems (trn_topology.h), or read files
 *     (network/topology_file.h).
 *
 * KNOWN FROM: the neighbour tables of the Neuron driver (v2, v3) for tori; trn3-arch.rst of the Neuron SDK for
 *     switches.
 *
 * Faults. A link keeps a share of its rate, none when it is down. A chip that is down has no links; of a slow one all
 * links, HBM and DMA engines have that share (assumed). Faults of one link multiply; a link that is used in turns (half
 * duplex) suffers from those of either direction.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_LEVELS_H
#define TRNI_NETWORK_TOPOLOGY_LEVELS_H

#include "topology_parts.h"

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

/* Chips x slots: trn_topology_link takes the numbers below it. (Not all of a graph's numbers have a link.) */
TRN_API int64_t trn_topology_link_count(const trn_topology *net);

/* False when there is no such link. Its rate is what faults leave of it: 0 when it is down. */
TRN_API bool trn_topology_link(const trn_topology *net, int64_t index, trn_link *link);

/* The number of the link that goes straight from one chip to the other, whether it is up or down; -1: there is none. */
TRN_API int64_t trn_topology_link_between(const trn_topology *net, int from, int to);

/* What faults leave of a link's rate, or of a chip's: 1 = all, 0 = it is down. */
TRN_API double trn_topology_link_share(const trn_topology *net, int64_t index);
TRN_API double trn_topology_chip_share(const trn_topology *net, int chip);

#if TRNI_BODIES

#include "topology_links.h"

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
    return (unsigned)l->wiring <= (unsigned)TRN_WIRING_GRAPH && (unsigned)l->kind <= (unsigned)TRN_LINK_EFA &&
           l->size >= 1 && l->planes >= 0;
}

/* One number of the network, or of a level, and what it may be. */
TRNI_DRIVER trn_status trni_amount_check(const char *whose, const char *field, trni_measure unit, double x,
                                         trn_error *error)
{
    char range[48];
    if (trni_amount_is(unit, x)) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "%s%s is %g, expected %s", whose, field, x, trni_legal_text(unit, 0, range));
}

/* A level that joins one chip alone needs no rate, nor does one whose links have theirs. */
TRNI_DRIVER trn_status trni_level_amounts(const trn_level *l, int at, trn_error *error)
{
    char whose[64];
    const bool own = l->wiring == TRN_WIRING_NONE || l->wiring == TRN_WIRING_GRAPH; /* needs none, or has its own */
    const bool wired = !own && (l->size > 1 || l->wiring == TRN_WIRING_SWITCH);
    snprintf(whose, sizeof whose, "level %d (%s): ", at, trn_level_name(l));
    const trn_status status =
        trni_amount_check(whose, "bytes_per_s", wired ? TRNI_RATE : TRNI_LIMIT, l->bytes_per_s, error);
    return status ? status : trni_amount_check(whose, "latency_s", TRNI_TIME, l->latency_s, error);
}

TRNI_DRIVER trn_status trni_level_check(const trn_topology *net, int at, trn_error *error)
{
    const trn_level *l = &net->level[at];
    if (!memchr(l->label, 0, sizeof l->label))
        return trni_fail(error, TRN_EINVAL, "level %d: its label does not end within %d bytes", at,
                         (int)sizeof l->label);
    const char *name = trn_level_name(l);
    if (!trni_level_known(l))
        return trni_fail(error, TRN_EINVAL, "level %d (%s): wiring %d, kind %d, size %d, planes %d: sizes begin at 1",
                         at, name, (int)l->wiring, (int)l->kind, l->size, l->planes);
    const trn_status status = trni_level_amounts(l, at, error);
    if (status) return status;
    if (l->wiring == TRN_WIRING_NONE) {
        int up = at;
        while (up < net->levels && net->level[up].wiring != TRN_WIRING_SWITCH) up++;
        if (l->size > 1 && up == net->levels)
            return trni_fail(error, TRN_EINVAL, "level %d (%s): its %d chips are not wired, and no switch joins them",
                             at, name, l->size);
        return TRN_OK;
    }
    int wire;
    const trn_status graph = l->wiring == TRN_WIRING_GRAPH ? trni_graph_check(net, at, &wire, error) : TRN_OK;
    if (graph || trni_planes(l) == 1) return graph;
    if (l->wiring != TRN_WIRING_SWITCH || at == 0 || net->level[0].size % l->planes != 0)
        return trni_fail(error, TRN_EINVAL,
                         "level %d (%s): %d planes need a switch outside level 0 and divide the %d chips of level 0",
                         at, name, l->planes, net->level[0].size);
    if (net->level[0].wiring == TRN_WIRING_NONE)
        return trni_fail(error, TRN_EINVAL, "level %d (%s): %d planes, and level 0 has no wires to change between them",
                         at, name, l->planes);
    if (net->level[0].wiring == TRN_WIRING_GRAPH)
        return trni_fail(error, TRN_EINVAL,
                         "level %d (%s): %d planes over a graph: messages change planes on a ring, full or a switch",
                         at, name, l->planes);
    return TRN_OK;
}

TRNI_FN bool trni_link_exists(const trn_topology *net, int64_t index);

TRNI_DRIVER trn_status trni_faults_check(const trn_topology *net, trn_error *error)
{
    if (net->faults < 0 || net->faults > TRN_MAX_FAULTS)
        return trni_fail(error, TRN_EINVAL, "faults is %d, expected 0 to %d", net->faults, (int)TRN_MAX_FAULTS);
    for (int i = 0; i < net->faults; i++) {
        const trn_fault *f = &net->fault[i];
        const bool chip = f->kind == TRN_FAULT_CHIP;
        if ((unsigned)f->kind > (unsigned)TRN_FAULT_LINK)
            return trni_fail(error, TRN_EINVAL, "fault %d: kind %d is neither a chip nor a link", i, (int)f->kind);
        if (f->at < 0 || f->at >= (chip ? net->chips : trn_topology_link_count(net)) ||
            (!chip && !trni_link_exists(net, f->at)))
            return trni_fail(error, TRN_EINVAL, "fault %d: there is no %s %lld", i, chip ? "chip" : "link",
                             (long long)f->at);
        if (!trni_amount_is(TRNI_SHARE, f->share))
            return trni_fail(error, TRN_EINVAL, "fault %d: a share of %g is not 0, or from 0.000001 to 1", i, f->share);
    }
    return TRN_OK;
}

TRN_API trn_status trn_topology_check(const trn_topology *net, trn_error *error)
{
    TRNI_FLOATS;
    int64_t chips = 1;
    if (!net) return trni_fail(error, TRN_EINVAL, "net is NULL");
    if (net->levels < 0 || net->levels > TRN_MAX_LEVELS)
        return trni_fail(error, TRN_EINVAL, "levels %d is not in 0 .. %d", net->levels, (int)TRN_MAX_LEVELS);
    const trn_status wires = trni_wires_check(net, error);
    if (wires != TRN_OK) return wires;
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
    const struct {
        const char *field;
        trni_measure unit;
        double value;
    } amount[] = {
        { "start_s", TRNI_TIME, net->start_s },
        { "local_latency_s", TRNI_TIME, net->local_latency_s },
        { "hbm_bytes_per_s", TRNI_LIMIT, net->hbm_bytes_per_s },
        { "dma_bytes_per_s", TRNI_LIMIT, net->dma_bytes_per_s },
        { "reduce_pass", TRNI_PASSES, net->reduce_pass },
    };
    for (unsigned i = 0; i < sizeof amount / sizeof amount[0]; i++) {
        const trn_status status = trni_amount_check("", amount[i].field, amount[i].unit, amount[i].value, error);
        if (status) return status;
    }
    if (net->ranks_per_chip < 1 || net->ranks_per_chip > 1 << 16)
        return trni_fail(error, TRN_EINVAL, "ranks_per_chip is %d, expected 1 to 65536", net->ranks_per_chip);
    return trni_faults_check(net, error);
}

/* ---- links: number = chip x slots + slots of the lower levels + which ---- */

/* RING: 0 to d + 1, 1 to d - 1 (size 2: one). FULL: to each other digit; GRAPH: the same, where there is a link.
 * SWITCH: 0 up to it, 1 down from it. */
TRNI_FN int trni_level_slots(const trn_topology *net, int level)
{
    const trn_level *l = &net->level[level];
    switch (l->wiring) {
    case TRN_WIRING_RING: return l->size > 2 ? 2 : l->size - 1;
    case TRN_WIRING_FULL:
    case TRN_WIRING_GRAPH: return l->size - 1;
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

/* Where a link that exists begins and ends, and its level. */
TRNI_FN void trni_link_ends(const trn_topology *net, int64_t index, trn_link *link)
{
    const int slots = trn_topology_slots(net), chip = (int)(index / slots);
    int k = (int)(index % slots), level = 0;
    while (k >= trni_level_slots(net, level)) k -= trni_level_slots(net, level++);
    const trn_level *l = &net->level[level];
    const int d = trn_topology_digit(net, chip, level);
    link->from = link->to = chip;
    link->level = level;
    if (l->wiring == TRN_WIRING_SWITCH)
        *(k ? &link->from : &link->to) = trni_switch_number(net, level, chip);
    else if (l->wiring == TRN_WIRING_FULL || l->wiring == TRN_WIRING_GRAPH)
        link->to = trni_with_digit(net, chip, level, k < d ? k : k + 1);
    else
        link->to = trni_with_digit(net, chip, level, (d + (k ? l->size - 1 : 1)) % l->size);
}

/* The listed wire of a link; NULL: it has none, for its level is no graph, or the graph has no such link. */
TRNI_FN const trn_wire *trni_link_wire(const trn_topology *net, const trn_link *ends)
{
    const int level = ends->level;
    if (net->level[level].wiring != TRN_WIRING_GRAPH) return NULL;
    return trni_wire_between(net, level, trn_topology_digit(net, ends->from, level),
                             trn_topology_digit(net, ends->to, level));
}

/* Of a number below the count: is there a link? Its ends, rate and latency are written, faults or not. */
TRNI_FN bool trni_link_sound(const trn_topology *net, int64_t index, trn_link *link)
{
    trni_link_ends(net, index, link);
    const trn_level *l = &net->level[link->level];
    const trn_wire *wire = trni_link_wire(net, link);
    link->wiring = l->wiring;
    link->bytes_per_s = wire ? trni_wire_rate(wire) : l->bytes_per_s;
    link->latency_s = wire ? wire->latency_s : l->wiring == TRN_WIRING_SWITCH ? l->latency_s / 2 : l->latency_s;
    link->source = l->rate;
    return wire || l->wiring != TRN_WIRING_GRAPH;
}

TRNI_FN bool trni_link_exists(const trn_topology *net, int64_t index)
{
    trn_link link;
    return trni_link_sound(net, index, &link);
}

TRN_API bool trn_topology_link(const trn_topology *net, int64_t index, trn_link *link)
{
    if (index < 0 || index >= trn_topology_link_count(net) || !trni_link_sound(net, index, link)) return false;
    link->bytes_per_s *= trn_topology_link_share(net, index);
    return true;
}

/* From one chip to another that differs in the digit of one level, by that level's own wires; -1: they do not join
 * them. */
TRNI_FN int64_t trni_level_link(const trn_topology *net, int level, int from, int to)
{
    const trn_level *l = &net->level[level < 0 ? 0 : level]; /* (gcc sees a -1 that no caller has) */
    const int d = trn_topology_digit(net, from, level), e = trn_topology_digit(net, to, level);
    int k = 0;
    if (l->wiring == TRN_WIRING_GRAPH && !trni_wire_between(net, level, d, e)) return -1;
    if (l->wiring == TRN_WIRING_FULL || l->wiring == TRN_WIRING_GRAPH)
        k = e < d ? e : e - 1;
    else if (l->wiring != TRN_WIRING_RING)
        return -1;
    else if ((d + 1) % l->size != e)
        k = 1;
    if (k == 1 && l->wiring == TRN_WIRING_RING && (e + 1) % l->size != d) return -1;
    return (int64_t)from * trn_topology_slots(net) + trni_slot_base(net, level) + k;
}

TRN_API int64_t trn_topology_link_between(const trn_topology *net, int from, int to)
{
    if (from < 0 || from >= net->chips || to < 0 || to >= net->chips || from == to) return -1;
    for (int l = 0; l < net->levels; l++) {
        const int digit = trn_topology_digit(net, to, l);
        if (digit != trn_topology_digit(net, from, l) && trni_with_digit(net, from, l, digit) == to)
            return trni_level_link(net, l, from, to);
    }
    return -1;
}

/* ---- the two directions of a link ---- */

/* The other direction of a link, or of a port; -1: it goes one way only. */
TRNI_FN int64_t trni_link_reverse(const trn_topology *net, int64_t index)
{
    trn_link link;
    trni_link_ends(net, index, &link);
    if (net->level[link.level].wiring != TRN_WIRING_SWITCH) return trni_level_link(net, link.level, link.to, link.from);
    return link.to >= net->chips ? index + 1 : index - 1;
}

/* Where the load of a link is counted: both directions of one that is used in turns at the lower number. */
TRNI_FN int64_t trni_link_counted(const trn_topology *net, int64_t index)
{
    trn_link link;
    trni_link_ends(net, index, &link);
    if (!net->level[link.level].half_duplex) return index;
    const int64_t reverse = trni_link_reverse(net, index);
    return reverse >= 0 && reverse < index ? reverse : index;
}

/* ---- faults ---- */

TRN_API double trn_topology_chip_share(const trn_topology *net, int chip)
{
    TRNI_FLOATS;
    double share = 1;
    for (int i = 0; i < net->faults; i++)
        if (net->fault[i].kind == TRN_FAULT_CHIP && net->fault[i].at == chip) share *= net->fault[i].share;
    return share;
}

TRN_API double trn_topology_link_share(const trn_topology *net, int64_t index)
{
    TRNI_FLOATS;
    double share = 1;
    trn_link link;
    if (net->faults == 0) return 1;
    trni_link_ends(net, index, &link);
    const int64_t other = net->level[link.level].half_duplex ? trni_link_reverse(net, index) : index;
    for (int i = 0; i < net->faults; i++) {
        const trn_fault *f = &net->fault[i];
        const bool hit =
            f->kind == TRN_FAULT_CHIP ? f->at == link.from || f->at == link.to : f->at == index || f->at == other;
        if (hit) share *= f->share;
    }
    return share;
}

/* Does anything not work at all? */
TRNI_FN bool trni_any_down(const trn_topology *net)
{
    for (int i = 0; i < net->faults; i++)
        if (net->fault[i].share <= 0) return true;
    return false;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TOPOLOGY_LEVELS_H */
