/* sharded/reshard_price.h - what a move from one sharding to the next costs, asked once and remembered.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: prices of collectives, over all groups of the mesh at once. Equal reshuffles of axes are one question: what a
 *     permutation costs depends on where devices' parts go and on the bytes, not on the dimensions that are cut.
 * DOES NOT: on meshes of more than TRNI_SURE_AXES axes, count messages of every device to every other of a group where
 *     routes are long (a ring of 512): the ways of which that would take more than about a tenth of a second are left
 *     out. What is chosen among the others costs what is said.
 *
 * KNOWN FROM: pytorch issues 157585, 169439 and pull request 173420 on what goes wrong when needed gathers, detours and
 *     reshuffles are not costed.
 */
#ifndef TRNI_SHARDED_RESHARD_PRICE_H
#define TRNI_SHARDED_RESHARD_PRICE_H

#include "reshard_state.h"

/* ---- collectives ---- */

TRNI_FN trn_collective_args trni_transit_question(const trni_search *s, const trni_transit *m)
{
    const trn_redistribute_args *ask = s->ask;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = s->mesh->net;
    a.op = m->op;
    a.bytes = m->bytes;
    a.algorithm = m->op == TRN_PERMUTE ? TRN_ALGORITHM_AUTO : ask->algorithm;
    a.ranks_per_chip = ask->ranks_per_chip;
    a.uncalibrated = ask->uncalibrated;
    a.calibration = ask->calibration;
    a.chips = s->chip;
    return a;
}

/* About nanoseconds that it takes to count all messages that go directly from each member of a group to each other. */
TRNI_FN double trni_direct_work(const trni_search *s, const trni_transit *m)
{
    const double members = m->op == TRN_PERMUTE ? 2 : trn_mesh_group_size(s->mesh, m->axis, m->axes);
    const int phases = m->op == TRN_ALL_REDUCE ? 2 : 1, levels = s->mesh->net->levels;
    return (60 + 10 * s->mean_hops) * s->mesh->devices * (members - 1) * phases * levels;
}

TRNI_FN bool trni_is_dear(const trni_search *s, const trni_transit *m)
{
    return s->big_axes > TRNI_SURE_AXES && m->op != TRN_PERMUTE && trni_direct_work(s, m) > 1e8;
}

/* And the same of all ways: each of them looks at every link a few times, halving once for each axis. */
TRNI_FN double trni_price_work(const trni_search *s, const trni_transit *m)
{
    const double links = (double)s->mesh->devices * trn_topology_slots(s->mesh->net);
    const double passes = m->op == TRN_PERMUTE ? 1 : 4 + 2 * m->axes;
    const double routes = (60 + 10 * s->mean_hops) * s->mesh->devices;
    return (4 * links + routes) * passes + (trni_is_dear(s, m) ? 0 : trni_direct_work(s, m));
}

/* Of the ways that are not direct the best, as AUTO ranks them. */
TRNI_FN trn_status trni_cheap_cost(trn_collective_args *a, trn_cost *cost)
{
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    const int count = trn_collective_candidates(a, list);
    trn_status status = TRN_EUNSUPPORTED;
    for (int i = 0; i < count; i++) {
        trn_cost now;
        a->algorithm = list[i];
        if (list[i] == TRN_MESH || list[i] == TRN_SWITCH_DIRECT || list[i] == TRN_HIERARCHICAL) continue;
        const trn_status fits = trn_collective_cost(a, &now);
        if (fits == TRN_ENOSPC) return fits;
        if (fits != TRN_OK || (status == TRN_OK && !trni_beats(now.expected_s, cost->expected_s))) continue;
        *cost = now;
        status = TRN_OK;
    }
    return status;
}

/* Groups along the move's axes; a permutation is one group of all. */
TRNI_FN trn_status trni_transit_cost(trni_search *s, const trni_transit *m, trn_cost *cost, trn_error *error)
{
    trn_collective_args a = trni_transit_question(s, m);
    const bool permute = m->op == TRN_PERMUTE;
    a.count = permute ? s->mesh->devices : trn_mesh_group_size(s->mesh, m->axis, m->axes);
    a.groups = trn_mesh_groups(s->mesh, m->axis, permute ? 0 : m->axes, s->chip);
    if (permute) a.groups = 1;
    a.targets = permute ? s->target : NULL;
    a.error = error;
    if (permute && trni_ranks_per_chip(&a) > 1) a.ranks_per_chip = 1; /* chip to chip */
    if (!a.algorithm && trni_is_dear(s, m) && trni_cheap_cost(&a, cost) == TRN_OK) return TRN_OK;
    a.algorithm = permute ? TRN_ALGORITHM_AUTO : s->ask->algorithm;
    trn_status status = trn_collective_cost(&a, cost);
    if (status == TRN_EUNSUPPORTED && a.algorithm && (m->op == TRN_ALL_GATHER || m->op == TRN_ALL_TO_ALL)) {
        a.algorithm = TRN_ALGORITHM_AUTO;
        if (trni_is_dear(s, m) && trni_cheap_cost(&a, cost) == TRN_OK) return TRN_OK;
        a.algorithm = TRN_ALGORITHM_AUTO;
        status = trn_collective_cost(&a, cost);
    }
    return status;
}

/* ---- permutations ---- */

/* The axes of more than one device along which all hold the same, and all axes that cut: each at its place. */
TRNI_FN int trni_axes_in_order(const trni_search *s, const trn_pspec *spec, int *order)
{
    const unsigned same = trni_replicated(spec, s->mesh);
    int n = 0;
    for (int d = 0; d < spec->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++) order[n++] = spec->dim[d].axis[i];
    for (int a = 0; a < s->mesh->axes; a++)
        if (same >> a & 1u && s->mesh->axis[a].size > 1) order[n++] = a;
    return n;
}

/* Where all axes are of one size, what matters is which takes the place of which. */
TRNI_FN void trni_permute_key(const trni_search *s, const trn_pspec *from, const trn_pspec *to, uint64_t *axes,
                              uint64_t *targets)
{
    int x[TRN_MAX_AXES], y[TRN_MAX_AXES];
    const int n = trni_axes_in_order(s, from, x);
    bool alike = trni_axes_in_order(s, to, y) == n;
    *axes = *targets = 0;
    for (int i = 1; i < n; i++) alike = alike && s->mesh->axis[x[i]].size == s->mesh->axis[x[0]].size;
    for (int i = 0; i < n; i++) {
        *axes |= (uint64_t)(1 + y[i]) << 4 * (alike ? x[i] : i);
        *targets |= alike ? 0 : (uint64_t)(1 + x[i]) << 4 * i;
    }
}

/* To whom each device sends, -1 = to itself: of several equal parts, the i-th goes where the i-th is wanted. */
TRNI_FN void trni_permute_targets(const trn_mesh *mesh, const trn_pspec *from, const trn_pspec *to, int *target)
{
    int old_free[TRN_MAX_AXES], new_free[TRN_MAX_AXES], olds = 0, news = 0;
    const unsigned old_same = trni_replicated(from, mesh), new_same = trni_replicated(to, mesh);
    for (int a = 0; a < mesh->axes; a++) {
        if (old_same >> a & 1u) old_free[olds++] = a;
        if (new_same >> a & 1u) new_free[news++] = a;
    }
    for (int p = 0; p < mesh->devices; p++) {
        int device = 0, copy = 0;
        for (int d = 0; d < from->rank; d++)
            device += trni_along(mesh, to->dim[d].axis, to->dim[d].axes, trni_part_index(from, mesh, d, p));
        for (int i = 0; i < olds; i++)
            copy = copy * mesh->axis[old_free[i]].size + trn_mesh_coordinate(mesh, p, old_free[i]);
        device += trni_along(mesh, new_free, news, copy);
        for (int a = 0; a < mesh->axes; a++)
            if (trn_pspec_is_sum(from, a)) device += trn_mesh_coordinate(mesh, p, a) * mesh->axis[a].stride;
        target[p] = device == p ? -1 : device;
    }
}

/* ---- what was asked before ---- */

TRNI_FN uint64_t trni_price_scattered(const trni_price *p)
{
    return trni_scatter(p->axes + (uint64_t)p->op * 31 + trni_scatter(p->targets + trni_scatter((uint64_t)p->bytes)));
}

TRNI_FN trni_price *trni_price_known(const trni_search *s, const trni_price *like)
{
    const uint64_t scattered = trni_price_scattered(like);
    for (int tried = 0; s->price_at.slots; tried++) {
        const int i = s->price_at.slot[trni_index_slot(&s->price_at, scattered, tried)];
        if (i < 0) break;
        trni_price *p = &s->price[i];
        if (p->op == like->op && p->axes == like->axes && p->targets == like->targets && p->bytes == like->bytes)
            return p;
    }
    return NULL;
}

TRNI_FN trn_status trni_price_add(trni_search *s, const trni_price *price)
{
    bool memory;
    if (trni_index_grow(&s->price_at, &memory))
        for (int i = 0; i < s->prices; i++) trni_index_put(&s->price_at, trni_price_scattered(&s->price[i]), i);
    if (!memory || !trni_grow((void **)&s->price, s->prices, &s->price_room, sizeof *s->price))
        return trni_no_memory(s->ask->error);
    s->price[s->prices] = *price;
    trni_index_put(&s->price_at, trni_price_scattered(price), s->prices++);
    return TRN_OK;
}

/* A permutation is asked for with so many bytes that its rate can be told from its latency. */
TRNI_FN trn_status trni_price_ask(trni_search *s, const trni_transit *m, trni_price *price)
{
    trni_transit much = *m;
    trn_cost cost;
    if (m->op == TRN_PERMUTE) much.bytes = (int64_t)1 << 40;
    s->work += trni_price_work(s, m);
    const trn_status status = trni_transit_cost(s, &much, &cost, &s->why);
    if (status == TRN_ENOSPC) return trni_fail(s->ask->error, status, "%s", s->why.text);
    price->fits = status == TRN_OK;
    if (price->fits) {
        price->time_s = cost.time_s;
        price->latency_s = cost.latency_s;
        price->slope_s = (cost.time_s - cost.latency_s) / (double)much.bytes;
        price->algorithm = cost.algorithm;
    }
    return TRN_OK;
}

/* Fills time_s and algorithm; *fits = false where no algorithm does it. `from` and `to`: of a permutation. */
TRNI_FN trn_status trni_price_collective(trni_search *s, const trn_pspec *from, const trn_pspec *to, trni_transit *m,
                                         bool *fits)
{
    trni_price price;
    const bool permute = m->op == TRN_PERMUTE;
    memset(&price, 0, sizeof price);
    price.op = m->op;
    if (permute)
        trni_permute_key(s, from, to, &price.axes, &price.targets);
    else
        price.bytes = m->bytes;
    for (int i = 0; i < m->axes && !permute; i++) price.axes |= (uint64_t)(1 + m->axis[i]) << 4 * i;
    const trni_price *known = trni_price_known(s, &price);
    if (!known) {
        if (permute) trni_permute_targets(s->mesh, from, to, s->target);
        trn_status status = trni_price_ask(s, m, &price);
        if (!status) status = trni_price_add(s, &price);
        if (status) return status;
        known = &price;
    }
    *fits = known->fits;
    m->time_s = permute ? known->latency_s + (double)m->bytes * known->slope_s : known->time_s;
    m->algorithm = known->algorithm;
    return TRN_OK;
}

TRNI_FN trn_status trni_price_move(trni_search *s, const trn_pspec *from, const trn_pspec *to, trni_transit *m,
                                   bool *fits)
{
    const double hbm = s->mesh->net->hbm_bytes_per_s;
    *fits = true;
    m->time_s = 0;
    m->algorithm = TRN_ALGORITHM_AUTO;
    if (m->kind == TRN_RESHARD_ZERO_FILL && hbm > 0) m->time_s = (double)m->bytes / hbm;
    return m->kind == TRN_RESHARD_COLLECTIVE && m->bytes ? trni_price_collective(s, from, to, m, fits) : TRN_OK;
}

#endif /* TRNI_SHARDED_RESHARD_PRICE_H */
