/* network/collective_layout.h - which channels and stages each algorithm has on a given part of a given machine.
 * Behind trn_collective.h trn_collective_cost.h. SPDX-License-Identifier: MIT
 *
 * DOES: finds the dimensions of a group (those of its box, else one: its order), and lays an algorithm on them: rings
 *     on Hamiltonian cycles or a reflected snake, pairs of ranks, dimensions in rotated orders, the axes of the
 *     Gray-labelled hypercube, direct exchange, and an outer level apart from the inner ones. Says why an algorithm
 *     does not fit a group.
 * DOES NOT: choose among algorithms, cost them, or compute values.
 *
 * KNOWN FROM: as trn_schedule.h. That two cycles in both directions are what the runtime calls its four channels:
 *     nki collectives documentation; that a Gray-labelled 4 x 4 torus is the hypercube of recursive doubling:
 *     arithmetic.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_LAYOUT_H
#define TRNI_NETWORK_COLLECTIVE_LAYOUT_H

#include "collective_faults.h"

/* ---- dimensions ---- */

typedef struct trni_dim {
    int size;
    trn_wiring wiring;  /* how its members are joined; NONE: anyhow */
    bool whole;         /* all digits of its level: a ring that closes */
    double bytes_per_s; /* of a link or port */
    int level;          /* of the topology (the outermost of several that count as one); -1 = none */
} trni_dim;

typedef struct trni_layout {
    const trn_collective_args *ask;
    trn_calibration calibration; /* all 1 when uncalibrated */
    int ranks, ranks_per_chip;
    bool boxed; /* dimensions are the topology's */
    int dims;
    trni_dim dim[TRN_MAX_LEVELS];
    int top_level;   /* outermost level that joins chips of a group; -1 = one chip */
    bool whole;      /* every chip is looked at: none stands for others */
    double *carried; /* not NULL, and whole: [trn_topology_link_count] bytes that went over each link are added here */
} trni_layout;

/* Of a link or port; of a graph that is neither a ring nor all to all, what leaves the digit that has least. */
TRNI_FN double trni_dim_bytes_per_s(const trn_topology *net, int level, trn_wiring like)
{
    const trn_wire *wire;
    if (like == TRN_WIRING_GRAPH) return trni_graph_injection(net, level, false);
    if (net->level[level].wiring != TRN_WIRING_GRAPH) return net->level[level].bytes_per_s;
    return trni_wires_alike(net, level, &wire) ? trni_wire_rate(wire) : 0;
}

/* Levels that nothing wires belong to the switch above them that spans them, and to its own dimension if the group has
 * one. */
TRNI_FN void trni_layout_dims(trni_layout *l, const trni_box *box)
{
    const trn_topology *net = l->ask->net;
    int waiting = 1; /* chips of unwired levels below */
    bool whole = true;
    l->dims = 0;
    for (int i = 0; i < box->dims; i++) {
        const int by = trni_wired_by(net, box->level[i]);
        whole = whole && box->whole[i];
        if (i + 1 < box->dims && by != box->level[i] && by == trni_wired_by(net, box->level[i + 1])) {
            waiting *= box->size[i];
            continue;
        }
        trni_dim *d = &l->dim[l->dims++];
        d->size = box->size[i] * waiting;
        d->wiring = trni_wiring_like(net, by);
        d->whole = whole;
        d->bytes_per_s = trni_dim_bytes_per_s(net, by, d->wiring);
        d->level = by;
        waiting = 1;
        whole = true;
    }
}

/* The outermost level that joins chips of a group, of any of the groups. */
TRNI_FN int trni_layout_top(const trn_collective_args *a)
{
    const int64_t count = trni_group_chips(a), all = count * trni_group_count(a);
    int top = -1;
    for (int64_t i = 0; i < all; i++)
        for (int l = a->net->levels - 1; l > top; l--)
            if (trn_topology_digit(a->net, a->chips[i], l) != trn_topology_digit(a->net, a->chips[i - i % count], l))
                top = l;
    return top < 0 ? -1 : trni_wired_by(a->net, top);
}

/* Does the vendor's software drive this network, so that there is more to expect than what its links do? */
TRNI_FN bool trni_net_has_runtime(const trn_topology *net)
{
    bool has = net->system < TRN_SYSTEM_COUNT;
    for (int i = 0; i < net->levels; i++) has = has || net->level[i].kind != TRN_LINK_PLAIN;
    return has;
}

/* Of what has no effect, zero for times and flags, and 1 for all else. */
TRNI_FN trn_calibration trni_calibration_of(const trn_collective_args *a)
{
    const trn_calibration known = a->calibration ? *a->calibration : trn_calibration_default();
    trn_calibration c = known;
    if (a->uncalibrated || !trni_net_has_runtime(a->net)) memset(&c, 0, sizeof c);
    if (!a->uncalibrated) {
        c.rdh = known.rdh;
        c.mesh = known.mesh;
        c.memory = known.memory;
    }
#define TRNI_X(field, newer, older, unit, where_from, where)                                                           \
    if (!(c.field > 0) && (!strcmp(unit, "times") || !strcmp(unit, "share"))) c.field = 1;
    TRNI_CALIBRATION_LIST(TRNI_X)
#undef TRNI_X
    if (c.spread < 1) c.spread = 1;
    return c;
}

/* What links of this kind reach of their rate. */
TRNI_FN double trni_calibration_share(const trn_calibration *c, trn_link_kind kind)
{
    const double share[] = { 1, c->torus, c->peer, c->switched, c->efa };
    return share[(unsigned)kind];
}

TRNI_FN trn_status trni_layout_init(trni_layout *l, const trn_collective_args *args)
{
    trn_status status = trni_collective_check(args);
    if (status == TRN_OK) status = trni_faults_allow(args);
    if (status != TRN_OK) return status;
    memset(l, 0, sizeof *l);
    l->ask = args;
    l->calibration = trni_calibration_of(args);
    l->ranks_per_chip = trni_ranks_per_chip(args);
    l->ranks = trn_collective_ranks(args);
    trni_box box;
    l->boxed = trni_box_of(args, &box);
    if (l->boxed) {
        trni_layout_dims(l, &box);
        l->top_level = l->dims ? l->dim[l->dims - 1].level : -1;
        return TRN_OK;
    }
    l->dims = 1;
    l->dim[0].size = trni_group_chips(args);
    l->dim[0].level = -1;
    l->top_level = trni_layout_top(args);
    return TRN_OK;
}

/* Chips in the first `dims` dimensions. */
TRNI_FN int trni_layout_chips(const trni_layout *l, int dims)
{
    int chips = 1;
    for (int d = 0; d < dims; d++) chips *= l->dim[d].size;
    return chips;
}

/* ---- building channels ---- */

TRNI_FN void trni_add_stage(trni_cc_channel *c, trni_pattern how, int size, int stride, double factor)
{
    if (size < 2) return;
    trni_cc_stage *s = &c->stage[c->stages++];
    s->how = how;
    s->size = size;
    s->stride = stride;
    s->factor = factor;
}

TRNI_FN trni_cc_channel *trni_add_channel(trni_schedule *s, double share)
{
    trni_cc_channel *c = &s->channel[s->channels++];
    memset(c, 0, sizeof *c);
    c->share = share;
    return c;
}

/* The cores of a chip, in one step. */
TRNI_FN void trni_add_cores(const trni_layout *l, trni_cc_channel *c)
{
    trni_add_stage(c, TRNI_DIRECT, l->ranks_per_chip, 1, 1);
}

TRNI_FN int trni_dim_stride(const trni_layout *l, int dim) { return trni_layout_chips(l, dim) * l->ranks_per_chip; }

TRNI_FN trni_pattern trni_dim_pattern(const trni_dim *d)
{
    const bool direct = d->wiring == TRN_WIRING_SWITCH || d->wiring == TRN_WIRING_FULL || d->wiring == TRN_WIRING_GRAPH;
    return d->size == 2 || direct ? TRNI_DIRECT : TRNI_BOTH_WAYS;
}

/* What a chip can send along a dimension at once. */
TRNI_FN double trni_dim_rate(const trni_dim *d)
{
    const double ports = trni_dim_pattern(d) == TRNI_BOTH_WAYS ? 2 : d->wiring == TRN_WIRING_FULL ? d->size - 1 : 1;
    return d->bytes_per_s > 0 ? ports * d->bytes_per_s : 1;
}

/* As many channels as dimensions, each beginning with another one; the share of a channel is the share of the rate of
 * the dimension it begins with, so that all are busy in the first and longest stage. */
TRNI_FN void trni_build_rotated(const trni_layout *l, int dims, trni_schedule *s)
{
    double all = 0;
    for (int d = 0; d < dims; d++) all += trni_dim_rate(&l->dim[d]);
    for (int first = 0; first < dims || first == 0; first++) {
        trni_cc_channel *c = trni_add_channel(s, dims ? trni_dim_rate(&l->dim[first]) / all : 1);
        trni_add_cores(l, c);
        for (int i = 0; i < dims; i++) {
            const int d = (first + i) % dims;
            trni_add_stage(c, trni_dim_pattern(&l->dim[d]), l->dim[d].size, trni_dim_stride(l, d), 1);
        }
    }
}

TRNI_FN void trni_build_direct(const trni_layout *l, int dims, double factor, trni_schedule *s)
{
    trni_cc_channel *c = trni_add_channel(s, 1);
    trni_add_cores(l, c);
    trni_add_stage(c, TRNI_DIRECT, trni_layout_chips(l, dims), l->ranks_per_chip, factor);
}

/* ---- orders of positions ---- */

TRNI_FN int *trni_orders(trni_schedule *s, int64_t entries)
{
    s->orders = (int *)malloc(sizeof(int) * (size_t)(entries > 0 ? entries : 1));
    return s->orders;
}

/* From an order of chips to one of ranks: the cores of a chip follow each other. Backwards, so that it can be done in
 * place: chip[i] is read before the entries from i * cores on are written. */
TRNI_FN void trni_order_cores(int *order, int chips, int cores)
{
    for (int i = chips - 1; i >= 0; i--) {
        const int chip = order[i];
        for (int core = 0; core < cores; core++) order[i * cores + core] = chip * cores + core;
    }
}

/* The reflected mixed-radix code: neighbours differ by one in one digit. */
TRNI_FN int trni_cc_snake(const trni_layout *l, int dims, int position)
{
    int chip = 0, rest = position, inside = trni_layout_chips(l, dims);
    bool back = false;
    for (int d = dims - 1; d >= 0; d--) {
        inside /= l->dim[d].size;
        const int at = rest / inside, digit = back ? l->dim[d].size - 1 - at : at;
        rest %= inside;
        chip += digit * inside;
        back = back != (digit % 2 != 0);
    }
    return chip;
}

/* Of a dimension that is all of a graph: rings of its digits; 0 where it is no graph, or none is known. */
TRNI_FN int trni_dim_rings(const trni_layout *l, int d, int most, int order[][TRN_MAX_GRAPH])
{
    if (l->dim[d].wiring != TRN_WIRING_GRAPH || !l->dim[d].whole) return 0;
    return trni_graph_rings(l->ask->net, l->dim[d].level, most, order);
}

/* The snake, and digits of a graph in the order of a ring through all of them; 1 and more: of the other rings of a
 * graph that is the only dimension. */
TRNI_FN int trni_build_snakes(const trni_layout *l, int dims, int most, int *orders)
{
    int ring[TRNI_MAX_CHANNELS / 2][TRN_MAX_GRAPH];
    const int chips = trni_layout_chips(l, dims), all = dims == 1 ? most : 1;
    int snakes = 1;
    for (int i = 0; i < chips; i++) orders[i] = trni_cc_snake(l, dims, i);
    for (int d = 0, stride = 1; d < dims; stride *= l->dim[d++].size) {
        const int n = l->dim[d].size, rings = trni_dim_rings(l, d, all, ring);
        for (int r = rings > 1 ? rings - 1 : 0; rings && r >= 0; r--)
            for (int i = 0; i < chips; i++) {
                const int digit = orders[i] / stride % n;
                orders[(int64_t)r * chips + i] = orders[i] + (ring[r][digit] - digit) * stride;
            }
        if (rings > snakes) snakes = rings;
    }
    return snakes;
}

/* Cycles of the first dimensions, when they are rings that close; 0: they are not. */
TRNI_FN int trni_build_cycles(const trni_layout *l, int dims, int most, int *orders)
{
    trni_torus torus;
    memset(&torus, 0, sizeof torus);
    torus.chips = trni_layout_chips(l, torus.dims = dims);
    for (int d = 0; d < dims; d++) {
        if (l->dim[d].wiring != TRN_WIRING_RING || (!l->dim[d].whole && l->dim[d].size != 2)) return 0;
        torus.size[d] = l->dim[d].size;
        torus.stride[d] = trni_layout_chips(l, d);
    }
    const int cycles = l->boxed && dims > 1 ? trni_torus_cycles(&torus, orders, most) : 0;
    return cycles < most ? cycles : most;
}

/* Edge-disjoint Hamiltonian cycles of the first dimensions when they are rings that close; else the snake. Returns how
 * many orders there are, 0 when there is no memory. */
TRNI_FN int trni_build_orders(const trni_layout *l, int dims, trni_schedule *s)
{
    enum { MOST = TRNI_MAX_CHANNELS / 2 };
    const int chips = trni_layout_chips(l, dims);
    if (!trni_orders(s, (int64_t)MOST * chips * l->ranks_per_chip)) return 0;
    int cycles = trni_build_cycles(l, dims, MOST, s->orders);
    if (cycles < 1) cycles = trni_build_snakes(l, dims, MOST, s->orders);
    for (int i = cycles - 1; i >= 0; i--) { /* from packed cycles of chips to cycles of ranks, last first */
        memmove(s->orders + (int64_t)i * chips * l->ranks_per_chip, s->orders + (int64_t)i * chips,
                sizeof(int) * (size_t)chips);
        trni_order_cores(s->orders + (int64_t)i * chips * l->ranks_per_chip, chips, l->ranks_per_chip);
    }
    s->block = chips * l->ranks_per_chip;
    return cycles;
}

typedef enum trni_rings { TRNI_ONE_RING, TRNI_ONE_RING_BOTH, TRNI_ALL_RINGS, TRNI_ALL_PAIRS } trni_rings;

/* Rings through all ranks of the first dimensions. */
TRNI_FN trn_status trni_build_rings(const trni_layout *l, int dims, trni_rings kind, trni_schedule *s)
{
    static const trni_pattern way[][2] = { { TRNI_RING_UP, TRNI_RING_UP },
                                           { TRNI_BOTH_WAYS, TRNI_BOTH_WAYS },
                                           { TRNI_RING_UP, TRNI_RING_DOWN },
                                           { TRNI_PAIRS_UP, TRNI_PAIRS_DOWN } };
    const int found = trni_build_orders(l, dims, s);
    if (!found) return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the orders of %d ranks", l->ranks);
    const int cycles = kind < TRNI_ALL_RINGS ? 1 : found, ways = kind < TRNI_ALL_RINGS ? 1 : 2;
    for (int i = 0; i < cycles * ways; i++) {
        trni_cc_channel *c = trni_add_channel(s, 1.0 / (cycles * ways));
        c->order = s->orders + (int64_t)(i / ways) * s->block;
        trni_add_stage(c, way[kind][i % ways], s->block, 1, 1);
    }
    return TRN_OK;
}

TRNI_FN bool trni_is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/* Digit of a ring's Gray label: labels one bit apart are neighbours on a ring of four. */
TRNI_FN int trni_gray_digit(int label)
{
    int digit = 0;
    for (; label; label >>= 1) digit ^= label;
    return digit;
}

/* Halving and doubling: every axis of two, each channel (a core's share of the payload) beginning with another one. */
TRNI_FN trn_status trni_build_axes(const trni_layout *l, int dims, trni_schedule *s)
{
    const int block = trni_layout_chips(l, dims) * l->ranks_per_chip;
    int *order = trni_orders(s, block), axes = 0;
    if (!order) return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the order of %d ranks", block);
    s->block = block;
    for (int p = 0; p < block; p++) {
        int chip = 0, rest = p / l->ranks_per_chip, stride = 1;
        for (int d = 0; d < dims; d++) {
            const int label = rest % l->dim[d].size;
            chip += stride * (l->dim[d].wiring == TRN_WIRING_RING && l->dim[d].whole ? trni_gray_digit(label) : label);
            rest /= l->dim[d].size;
            stride *= l->dim[d].size;
        }
        order[p] = chip * l->ranks_per_chip + p % l->ranks_per_chip;
    }
    while (1 << axes < block / l->ranks_per_chip) axes++;
    const int channels = l->ranks_per_chip < TRNI_MAX_CHANNELS ? l->ranks_per_chip : TRNI_MAX_CHANNELS;
    for (int k = 0; k < channels; k++) {
        trni_cc_channel *c = trni_add_channel(s, 1.0 / channels);
        c->order = order;
        trni_add_cores(l, c);
        for (int i = 0; i < axes; i++)
            trni_add_stage(c, TRNI_DIRECT, 2, l->ranks_per_chip << (i + k) % axes, l->calibration.rdh);
    }
    return TRN_OK;
}

/* ---- an outer level apart ---- */

enum { TRNI_INNERS = 4, TRNI_OUTERS = 3, TRNI_MESH_CHIPS = 16, TRNI_SINGLE_STEP_RANKS = 64 };

/* Variant: inner dimensions in rotated orders, by pairs, by rings or directly; the outer one by its own pattern (rings
 * on rings, one ring through a switch), directly, or by halving. */
TRNI_FN trn_status trni_build_hierarchy(const trni_layout *l, int variant, trni_schedule *s)
{
    const int inner = variant % TRNI_INNERS, outer = variant / TRNI_INNERS, top = l->dims - 1;
    const int n = l->dim[top].size, stride = trni_dim_stride(l, top);
    trn_status status = TRN_OK;
    s->block = stride;
    if (inner == 0)
        trni_build_rotated(l, top, s);
    else if (inner == 3)
        trni_build_direct(l, top, l->calibration.mesh, s);
    else
        status = trni_build_rings(l, top, inner == 1 ? TRNI_ALL_PAIRS : TRNI_ALL_RINGS, s);
    for (int k = 0; status == TRN_OK && k < s->channels; k++) {
        trni_cc_channel *c = &s->channel[k];
        const bool ring = l->dim[top].wiring == TRN_WIRING_RING && n > 2;
        if (outer == 0)
            trni_add_stage(c, ring ? TRNI_BOTH_WAYS : TRNI_RING_UP, n, stride, 1);
        else if (outer == 1)
            trni_add_stage(c, TRNI_DIRECT, n, stride, l->calibration.mesh);
        else
            for (int axis = 1; axis < n; axis *= 2)
                trni_add_stage(c, TRNI_DIRECT, 2, stride * axis, l->calibration.rdh);
    }
    return status;
}

/* Does the variant make sense here? */
TRNI_FN bool trni_hierarchy_fits(const trni_layout *l, int variant)
{
    const int inner = variant % TRNI_INNERS, outer = variant / TRNI_INNERS, n = l->dim[l->dims - 1].size;
    const bool pairs = l->ranks_per_chip % 2 == 0 && l->ask->op <= TRN_ALL_REDUCE;
    if (pairs ? inner == 2 : inner == 1) return false; /* a ring of pairs has half the steps */
    const int chips = trni_layout_chips(l, l->dims - 1);
    const bool one_switch = l->dim[l->dims - 2].wiring == TRN_WIRING_SWITCH;
    if (inner == 3 && chips > TRNI_MESH_CHIPS && !one_switch) return false; /* routes share too many links */
    if (inner && chips > 1024) return false;
    if (outer == 2) return trni_is_power_of_two(n) && n > 2;
    return outer == 0 || n > 2;
}

/* ---- an algorithm on a group ---- */

/* Ways of the stages; AUTO may also do a mesh's all-reduce in a single step: its variant 1. */
TRNI_FN int trni_layout_ways(const trni_layout *l, trn_algorithm algorithm)
{
    if (algorithm == TRN_HIERARCHICAL && l->dims > 1) return TRNI_INNERS * TRNI_OUTERS;
    const bool automatic = l->ask->algorithm == TRN_ALGORITHM_AUTO && !l->ask->single_step;
    return algorithm == TRN_MESH && l->ask->op == TRN_ALL_REDUCE && automatic && l->ranks <= TRNI_SINGLE_STEP_RANKS ? 2
                                                                                                                    : 1;
}

/* A broadcast has each of them twice: whole, or cut into chunks that are scattered and then gathered; but a ring passes
 * the whole on in segments. */
TRNI_FN int trni_layout_variants(const trni_layout *l, trn_algorithm algorithm)
{
    const bool scatters = l->ask->op == TRN_BROADCAST && algorithm > TRN_MULTI_RING;
    return trni_layout_ways(l, algorithm) * (scatters ? 2 : 1);
}

TRNI_FN bool trni_layout_variant_fits(const trni_layout *l, trn_algorithm algorithm, int variant)
{
    return algorithm != TRN_HIERARCHICAL || trni_hierarchy_fits(l, variant % trni_layout_ways(l, algorithm));
}

/* TRN_OK, or why the algorithm does not fit the group. */
TRNI_FN trn_status trni_layout_fits(const trni_layout *l, trn_algorithm algorithm, trn_error *error)
{
    const trn_topology *net = l->ask->net;
    const char *name = trn_algorithm_name(algorithm);
    for (int d = 0; algorithm == TRN_RECURSIVE_DOUBLING && d < l->dims; d++)
        if (!trni_is_power_of_two(l->dim[d].size))
            return trni_fail(
                error, TRN_EUNSUPPORTED, "rdh needs a power of two in each dimension; %s of the group has %d chips",
                l->dim[d].level < 0 ? "the order" : trn_level_name(&net->level[l->dim[d].level]), l->dim[d].size);
    if (algorithm == TRN_KANGARING && l->ranks_per_chip % 2)
        return trni_fail(error, TRN_EUNSUPPORTED, "kangaring pairs the ranks of a chip; ranks_per_chip = %d",
                         l->ranks_per_chip);
    if (algorithm == TRN_KANGARING && l->ask->op > TRN_ALL_REDUCE)
        return trni_fail(error, TRN_EUNSUPPORTED, "kangaring does all_gather, reduce_scatter and all_reduce, not %s",
                         trn_collective_name(l->ask->op));
    const bool one_switch = l->top_level >= 0 && net->level[l->top_level].wiring == TRN_WIRING_SWITCH &&
                            net->level[l->top_level].planes < 2;
    if (algorithm == TRN_SWITCH_DIRECT && !one_switch && l->ranks > l->ranks_per_chip)
        return trni_fail(error, TRN_EUNSUPPORTED,
                         "switch_direct needs one switch that all chips of the group share; %s has none for "
                         "these %d chips",
                         net->name, l->ranks / l->ranks_per_chip);
    if (algorithm == TRN_HIERARCHICAL && l->dims < 2)
        return trni_fail(error, TRN_EUNSUPPORTED,
                         "hierarchical needs a group with an inner and an outer level; this one has %d "
                         "dimension%s",
                         l->dims, l->dims == 1 ? "" : "s");
    if (l->ask->single_step && algorithm != TRN_MESH)
        return trni_fail(error, TRN_EINVAL, "single_step is a way of mesh, not of %s", name);
    if ((unsigned)algorithm >= TRN_ALGORITHM_COUNT || algorithm == TRN_ALGORITHM_AUTO ||
        algorithm == TRN_POINT_TO_POINT)
        return trni_fail(error, TRN_EUNSUPPORTED, "%s is not a way of %s", name, trn_collective_name(l->ask->op));
    return TRN_OK;
}

TRNI_FN void trni_schedule_free(trni_schedule *s)
{
    free(s->orders);
    s->orders = NULL;
}

/* The schedule must be freed when TRN_OK is returned. */
TRNI_FN trn_status trni_layout_schedule(const trni_layout *l, trn_algorithm algorithm, int variant, trni_schedule *s)
{
    trn_status status = trni_layout_fits(l, algorithm, l->ask->error);
    if (status != TRN_OK) return status;
    memset(s, 0, sizeof *s);
    s->ranks = s->block = l->ranks;
    s->scattered = variant >= trni_layout_ways(l, algorithm);
    variant %= trni_layout_ways(l, algorithm);
    s->single_step = l->ask->single_step || (algorithm == TRN_MESH && variant == 1);
    switch (algorithm) {
    case TRN_RING: status = trni_build_rings(l, l->dims, TRNI_ONE_RING, s); break;
    case TRN_BIDIRECTIONAL_RING: status = trni_build_rings(l, l->dims, TRNI_ONE_RING_BOTH, s); break;
    case TRN_MULTI_RING: status = trni_build_rings(l, l->dims, TRNI_ALL_RINGS, s); break;
    case TRN_KANGARING: status = trni_build_rings(l, l->dims, TRNI_ALL_PAIRS, s); break;
    case TRN_DIMENSION_WISE: trni_build_rotated(l, l->dims, s); break;
    case TRN_RECURSIVE_DOUBLING: status = trni_build_axes(l, l->dims, s); break;
    case TRN_HIERARCHICAL: status = trni_build_hierarchy(l, variant, s); break;
    case TRN_SWITCH_DIRECT: trni_build_direct(l, l->dims, 1, s); break;
    default: trni_build_direct(l, l->dims, l->calibration.mesh, s); break;
    }
    if (status != TRN_OK) trni_schedule_free(s);
    return status;
}

/* ---- what AUTO chooses among ---- */

enum { TRNI_MESH_DEVICES = 128, TRNI_KANGARING_RANKS = 256, TRNI_AUTO_MESH_CHIPS = 4096 };

/* Does the group lie on one torus? The runtime is documented to take hierarchies between nodes. */
TRNI_FN bool trni_layout_on_torus(const trni_layout *l)
{
    return l->top_level >= 0 && l->ask->net->level[l->top_level].kind == TRN_LINK_TORUS;
}

/* The vendor's systems: what its runtime is documented to use, within its limits (nec.h: 128 mesh devices, 256 ranks of
 * a KangaRing). Custom topologies: everything that fits. Returns how many; list has room for TRN_ALGORITHM_COUNT. */
TRNI_FN int trni_layout_candidates(const trni_layout *l, trn_algorithm *list)
{
    static const trn_algorithm vendor[] = { TRN_MESH,       TRN_RECURSIVE_DOUBLING, TRN_KANGARING,
                                            TRN_MULTI_RING, TRN_SWITCH_DIRECT,      TRN_HIERARCHICAL };
    static const trn_algorithm any[] = { TRN_RING,           TRN_BIDIRECTIONAL_RING, TRN_MULTI_RING,
                                         TRN_DIMENSION_WISE, TRN_RECURSIVE_DOUBLING, TRN_KANGARING,
                                         TRN_MESH,           TRN_SWITCH_DIRECT,      TRN_HIERARCHICAL };
    const bool known = l->ask->net->system < TRN_SYSTEM_COUNT;
    const trn_algorithm *way = known ? vendor : any;
    const int ways = known ? (int)(sizeof vendor / sizeof vendor[0]) : (int)(sizeof any / sizeof any[0]);
    const int chips = l->ranks / l->ranks_per_chip;
    int count = 0;
    if (l->ask->op == TRN_PERMUTE || l->ask->op == TRN_SEND_RECV) {
        list[0] = TRN_POINT_TO_POINT;
        return 1;
    }
    for (int i = 0; i < ways; i++) {
        const trn_algorithm a = way[i];
        const bool flat = a <= TRN_MULTI_RING || a == TRN_KANGARING;
        if (trni_layout_fits(l, a, NULL) != TRN_OK) continue;
        if ((a == TRN_MESH || a == TRN_SWITCH_DIRECT) && chips > (known ? TRNI_MESH_DEVICES : TRNI_AUTO_MESH_CHIPS))
            continue;
        if (a == TRN_KANGARING && known && l->ranks > TRNI_KANGARING_RANKS) continue;
        if (a != TRN_MULTI_RING && a != TRN_HIERARCHICAL && l->calibration.rings > 0) continue;
        if (a == TRN_HIERARCHICAL && known && trni_layout_on_torus(l)) continue;
        if (flat && l->ranks > TRNI_AUTO_MESH_CHIPS) continue;
        list[count++] = a;
    }
    return count;
}

#endif /* TRNI_NETWORK_COLLECTIVE_LAYOUT_H */
