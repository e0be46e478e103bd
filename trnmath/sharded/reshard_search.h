/* sharded/reshard_search.h - the shardings that a search has seen, how it came to each, and which it goes on from.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: the nearest sharding that is not done yet; a move from it to another, unless that cannot be part of a way that
 *     is shorter than the one that is known: what the neediest device then still lacks takes its time, too.
 * DOES NOT: know which moves there are (sharded/reshard_moves.h), or which way to go (sharded/reshard_plan.h).
 *
 * KNOWN FROM: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959.
 *     P. Hart, N. Nilsson and B. Raphael, "A formal basis for the heuristic determination of minimum cost paths", 1968.
 */
#ifndef TRNI_SHARDED_RESHARD_SEARCH_H
#define TRNI_SHARDED_RESHARD_SEARCH_H

#include "reshard_price.h"

/* ---- what a move may cost ---- */

/* No less than this: what the neediest chip must get, at the best injection rate. */
TRNI_FN double trni_transit_bound(const trni_search *s, const trni_transit *m)
{
    const double rate = trni_injection(s->mesh->net, true);
    const int members = trn_mesh_group_size(s->mesh, m->axis, m->axes);
    if (m->kind != TRN_RESHARD_COLLECTIVE || m->op == TRN_PERMUTE || rate <= 0) return 0;
    return (double)m->bytes * (members - 1) / members / rate;
}

/* A time without asking for one: what a chip must get or send, where all send to others far away as often as there are
 * hops between them, and a latency for each axis. */
TRNI_FN double trni_transit_guess(const trni_search *s, const trni_transit *m)
{
    const trn_topology *net = s->mesh->net;
    const double rate = trni_injection(net, true), hbm = net->hbm_bytes_per_s;
    if (m->kind == TRN_RESHARD_ZERO_FILL) return hbm > 0 ? (double)m->bytes / hbm : 0;
    if (m->kind != TRN_RESHARD_COLLECTIVE || !m->bytes) return 0;
    const bool permute = m->op == TRN_PERMUTE;
    const int passes = m->op == TRN_ALL_REDUCE ? 2 : 1, steps = permute ? 1 : m->axes;
    const double hops = permute || m->op == TRN_ALL_TO_ALL ? fmax(1, s->mean_hops) : 1;
    const double bytes_s = !permute ? trni_transit_bound(s, m) : rate > 0 ? (double)m->bytes / rate : 0;
    return passes * (hops * bytes_s + steps * (net->start_s + hops * trni_least_latency(net)));
}

/* Everything that the goal does not have there is gathered, and sums are closed. */
TRNI_FN double trni_goal_guess(const trni_search *s, const trn_pspec *spec)
{
    trni_transit gather, reduce;
    memset(&gather, 0, sizeof gather);
    gather.kind = TRN_RESHARD_COLLECTIVE;
    gather.op = TRN_ALL_GATHER;
    for (int d = 0; d < s->rank; d++)
        for (int i = trni_goal_common(s, spec, d); i < spec->dim[d].axes; i++)
            gather.axis[gather.axes++] = spec->dim[d].axis[i];
    reduce = gather;
    reduce.op = TRN_ALL_REDUCE;
    reduce.axes = 0;
    for (int a = 0; a < s->mesh->axes; a++)
        if ((spec->sum & s->closes) >> a & 1u) reduce.axis[reduce.axes++] = a;
    const double bytes = (double)trni_state_bytes(s, spec, s->bits);
    const int members = trn_mesh_group_size(s->mesh, gather.axis, gather.axes);
    reduce.bytes = reduce.axes ? (int64_t)bytes : 0;
    gather.bytes = gather.axes && bytes * members < 1e18 ? (int64_t)(bytes * members) : 0;
    return trni_transit_guess(s, &gather) + trni_transit_guess(s, &reduce);
}

/* ---- nodes ---- */

TRNI_FN int trni_node_find(const trni_search *s, uint64_t key)
{
    const uint64_t scattered = trni_scatter(key);
    for (int tried = 0; s->node_at.slots; tried++) {
        const int i = s->node_at.slot[trni_index_slot(&s->node_at, scattered, tried)];
        if (i < 0 || s->node[i].key == key) return i;
    }
    return -1;
}

/* Time decides, then the number of steps; a billionth is a tie, so that no rounding of a compiler's decides. */
TRNI_FN bool trni_way_is_better(double time_s, int steps, const trni_node *than)
{
    const double margin = 1e-9 * than->time_s;
    if (than->time_s < 0 || time_s < than->time_s - margin) return true;
    return time_s <= than->time_s + margin && steps < than->steps;
}

/* It goes no further: no failure, but the status of one, so that nothing else is tried. */
TRNI_FN trn_status trni_search_stop(trni_search *s)
{
    s->over = true;
    return TRN_ELIMIT;
}

/* *index = the node of this sharding. */
TRNI_FN trn_status trni_node_of(trni_search *s, uint64_t key, const trn_pspec *spec, int *index)
{
    bool memory;
    *index = trni_node_find(s, key);
    if (*index >= 0) return TRN_OK;
    if (s->nodes == TRNI_MOST_STATES) return trni_search_stop(s);
    if (trni_index_grow(&s->node_at, &memory))
        for (int i = 0; i < s->nodes; i++) trni_index_put(&s->node_at, trni_scatter(s->node[i].key), i);
    if (!memory || !trni_grow((void **)&s->node, s->nodes, &s->node_room, sizeof *s->node))
        return trni_no_memory(s->ask->error);
    *index = s->nodes++;
    trni_index_put(&s->node_at, trni_scatter(key), *index);
    memset(&s->node[*index], 0, sizeof s->node[0]);
    s->node[*index].key = key;
    s->node[*index].time_s = -1;
    s->node[*index].before = -1;
    s->node[*index].bound_s = trni_lack_time(s, spec, &s->to, (int)trni_min64(s->mesh->devices, TRNI_BOUND_DEVICES));
    s->node[*index].ahead_s = s->guided ? trni_goal_guess(s, spec) : 0;
    s->work += 1000;
    return TRN_OK;
}

/* ---- the nearest ---- */

TRNI_FN bool trni_turn_is_before(const trni_turn *a, const trni_turn *b)
{
    if (a->time_s < b->time_s || a->time_s > b->time_s) return a->time_s < b->time_s;
    if (a->ahead_s < b->ahead_s || a->ahead_s > b->ahead_s) return a->ahead_s < b->ahead_s;
    return a->steps != b->steps ? a->steps < b->steps : a->node < b->node;
}

TRNI_FN void trni_heap_sink(trni_search *s, int at)
{
    for (int child; (child = 2 * at + 1) < s->heaped; at = child) {
        if (child + 1 < s->heaped && trni_turn_is_before(&s->heap[child + 1], &s->heap[child])) child++;
        if (!trni_turn_is_before(&s->heap[child], &s->heap[at])) return;
        const trni_turn turn = s->heap[at];
        s->heap[at] = s->heap[child];
        s->heap[child] = turn;
    }
}

/* A node that is there already comes a second time, nearer; the first is passed over when its turn comes. */
TRNI_FN trn_status trni_heap_add(trni_search *s, int node)
{
    const trni_node *n = &s->node[node];
    const trni_turn turn = { n->time_s + n->ahead_s, n->ahead_s, n->steps, node };
    if (!trni_grow((void **)&s->heap, s->heaped, &s->heap_room, sizeof *s->heap)) return trni_no_memory(s->ask->error);
    int at = s->heaped++;
    for (; at > 0 && trni_turn_is_before(&turn, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = turn;
    return TRN_OK;
}

/* The node that is nearest to the start and was not there before, or -1. */
TRNI_FN int trni_node_next(trni_search *s)
{
    while (s->heaped) {
        const int node = s->heap[0].node;
        s->heap[0] = s->heap[--s->heaped];
        trni_heap_sink(s, 0);
        if (!s->node[node].done) return node;
    }
    return -1;
}

/* ---- a move ---- */

/* Can a way that takes so long, or more, still be shorter than the one that is known? */
TRNI_FN bool trni_is_hopeful(const trni_search *s, double time_s)
{
    return s->goal_s < 0 || time_s <= s->goal_s * (1 + 1e-9);
}

/* A move that cannot be is no failure: there may be other ways. */
TRNI_FN trn_status trni_move_is_too_large(trni_search *s, const trni_transit *m)
{
    trni_fail(&s->why, TRN_ELIMIT, "%s over %d devices would take a buffer of more than 2^%d bytes, parts rounded up",
              trn_collective_name(m->op), trn_mesh_group_size(s->mesh, m->axis, m->axes), TRNI_ADDRESS_BITS);
    return TRN_OK;
}

/* A move leads from node `at`, whose sharding is `from`, to the sharding `to`. */
TRNI_FN trn_status trni_try_move(trni_search *s, int at, const trn_pspec *from, const trn_pspec *to, trni_transit *m)
{
    const uint64_t key = trni_state_key(to);
    const int steps = s->node[at].steps + 1;
    const double so_far = s->node[at].time_s;
    bool fits;
    int i;
    s->work += 100;
    if (s->work > s->most_work && (s->goal_s >= 0 || s->work > 4 * s->most_work)) return trni_search_stop(s);
    if (m->bytes < 0) return trni_move_is_too_large(s, m);
    if (steps > TRN_RESHARD_STEPS) return TRN_OK; /* no plan has room for it */
    trn_status status = trni_node_of(s, key, to, &i);
    if (status) return status;
    if ((s->node[i].done && !s->guided) || !trni_way_is_better(so_far, steps, &s->node[i])) return TRN_OK;
    if (!trni_is_hopeful(s, so_far + trni_transit_bound(s, m) + s->node[i].bound_s)) return TRN_OK;
    if (s->breadth <= TRNI_GUESSED_MOVES)
        m->time_s = trni_transit_guess(s, m);
    else if ((status = trni_price_move(s, from, to, m, &fits)) != TRN_OK || !fits)
        return status;
    const double time_s = so_far + m->time_s;
    if (!trni_way_is_better(time_s, steps, &s->node[i]) || !trni_is_hopeful(s, time_s + s->node[i].bound_s))
        return TRN_OK;
    s->node[i].done = false;
    s->node[i].time_s = time_s;
    s->node[i].steps = steps;
    s->node[i].before = at;
    s->node[i].move = *m;
    if (key == s->goal) s->goal_s = time_s;
    return trni_heap_add(s, i);
}

#endif /* TRNI_SHARDED_RESHARD_SEARCH_H */
