/* sharded/reshard_search.h - the shardings that a search has seen, how it came to each, and what each step of it costs.
 * Behind trn_reshard.h trn_reshard_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: a sharding as a number; the nearest that is not done yet; prices of collectives, over all groups of the mesh at
 *     once, each asked for once and remembered.
 * DOES NOT: know which moves there are (sharded/reshard_moves.h), or which way to go (trn_reshard_plan.h).
 *
 * KNOWN FROM: pytorch issues 157585, 169439 and pull request 173420 on what goes wrong when needed gathers, detours and
 *     reshuffles are not costed.
 */
#ifndef TRNI_SHARDED_RESHARD_SEARCH_H
#define TRNI_SHARDED_RESHARD_SEARCH_H

#include "../trn_reshard_args.h"

/* ---- states: shardings with the axes of size 1 left out ---- */

TRNI_FN trn_pspec trni_essential(const trn_pspec *spec, const trn_mesh *mesh, int rank)
{
    trn_pspec s;
    memset(&s, 0, sizeof s);
    s.rank = rank;
    for (int d = 0; d < spec->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++)
            if (mesh->axis[spec->dim[d].axis[i]].size > 1) s.dim[d].axis[s.dim[d].axes++] = spec->dim[d].axis[i];
    for (int a = 0; a < mesh->axes; a++)
        if (trn_pspec_is_sum(spec, a) && mesh->axis[a].size > 1) s.sum |= 1u << a;
    return s;
}

/* One byte per axis: 0 = whole, 1 = sum, else 2 + dimension, and the place in its list above. */
TRNI_FN uint64_t trni_state_key(const trn_pspec *s)
{
    uint64_t key = 0;
    for (int a = 0; a < TRN_MAX_AXES; a++) key |= (uint64_t)(s->sum >> a & 1u) << 8 * a;
    for (int d = 0; d < s->rank; d++)
        for (int i = 0; i < s->dim[d].axes; i++) key |= (uint64_t)(2 + d + 16 * i) << 8 * s->dim[d].axis[i];
    return key;
}

TRNI_FN trn_pspec trni_state_of_key(uint64_t key, int rank)
{
    trn_pspec s;
    memset(&s, 0, sizeof s);
    s.rank = rank;
    for (int a = 0; a < TRN_MAX_AXES; a++) {
        const int role = (int)(key >> 8 * a & 15), order = (int)(key >> (8 * a + 4) & 15);
        if (role == 1) s.sum |= 1u << a;
        if (role < 2) continue;
        s.dim[role - 2].axis[order] = a;
        s.dim[role - 2].axes++;
    }
    return s;
}

/* n elements in `outer` parts, and each of these again, `all` in all: is each of the `all` inside one of `outer`? */
TRNI_FN bool trni_parts_nest(int64_t n, int outer, int all)
{
    const int64_t step = trni_ceil_div(n, outer), inner = trni_ceil_div(n, all) * (all / outer);
    return outer == 1 || trni_min64(step, n) == trni_min64(inner, n);
}

/* ---- the search ---- */

typedef struct trni_transit {
    trn_reshard_kind kind;
    trn_collective op;
    trn_algorithm algorithm;
    int axes, axis[TRN_MAX_AXES], from_dim, to_dim;
    int64_t bytes;
    double time_s;
} trni_transit;

typedef struct trni_node {
    uint64_t key;
    double time_s;
    int steps, before; /* moves made, and the node before the last of them; -1 = the start */
    bool done;
    trni_transit move;
} trni_node;

/* What a collective costs: asked once. */
typedef struct trni_price {
    trn_collective op;
    uint64_t axes; /* four bits for each, the first lowest, 8 + axis */
    int64_t bytes;
    bool fits;
    double time_s;
    trn_algorithm algorithm;
} trni_price;

typedef struct trni_search {
    const trn_redistribute_args *ask;
    const trn_mesh *mesh;
    int rank;
    const int64_t *shape;
    int bits, wire_bits; /* of an element where it is moved, and where it is summed */
    trni_node *node;
    int nodes, node_room;
    trni_price *price;
    int prices, price_room;
    int *chip, *target;     /* [devices] */
    unsigned opens, closes; /* axes that become part of the sum, and axes that leave it */
    uint64_t goal;
    double goal_s;  /* the shortest way there that is known; negative = none */
    bool goal_only; /* look at moves that lead there, and no others */
    trn_error why;  /* the last collective that did not fit */
} trni_search;

enum {
    TRNI_MOST_STATES = 20000,
    TRNI_PERMUTE_DEVICES = 4096 /* of larger meshes, routes are not looked at one by one */
};

/* Room for one more of `size` bytes each. */
TRNI_FN bool trni_grow(void **array, int used, int *capacity, size_t size)
{
    if (used < *capacity) return true;
    const int more = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(*array, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

TRNI_FN trn_status trni_no_memory(trn_error *error)
{
    return trni_fail(error, TRN_ENOSPC, "could not allocate memory for the search");
}

/* Bytes of the largest part. */
TRNI_FN int64_t trni_state_bytes(const trni_search *s, const trn_pspec *spec, int bits)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) n *= trni_ceil_div(s->shape[d], trn_pspec_parts(spec, s->mesh, d));
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/* ---- what a move costs ---- */

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
    trn_status status = trn_collective_cost(&a, cost);
    if (status == TRN_EUNSUPPORTED && a.algorithm && (m->op == TRN_ALL_GATHER || m->op == TRN_ALL_TO_ALL)) {
        a.algorithm = TRN_ALGORITHM_AUTO;
        status = trn_collective_cost(&a, cost);
    }
    return status;
}

TRNI_FN uint64_t trni_axes_key(const trni_transit *m)
{
    uint64_t key = 0;
    for (int i = 0; i < m->axes; i++) key |= (uint64_t)(8 + m->axis[i]) << 4 * i;
    return key;
}

TRNI_FN const trni_price *trni_price_known(const trni_search *s, const trni_transit *m)
{
    const uint64_t axes = trni_axes_key(m);
    for (int i = 0; i < s->prices; i++)
        if (s->price[i].op == m->op && s->price[i].axes == axes && s->price[i].bytes == m->bytes) return &s->price[i];
    return NULL;
}

/* Fills time_s and algorithm; *fits = false where no algorithm does it. */
TRNI_FN trn_status trni_price_collective(trni_search *s, trni_transit *m, bool *fits)
{
    const trni_price *known = m->op == TRN_PERMUTE ? NULL : trni_price_known(s, m);
    trn_cost cost;
    if (!known) {
        const trn_status status = trni_transit_cost(s, m, &cost, &s->why);
        if (status == TRN_ENOSPC) return trni_fail(s->ask->error, status, "%s", s->why.text);
        *fits = status == TRN_OK;
        m->time_s = *fits ? cost.time_s : 0;
        m->algorithm = *fits ? cost.algorithm : TRN_ALGORITHM_AUTO;
        if (m->op == TRN_PERMUTE) return TRN_OK;
        if (!trni_grow((void **)&s->price, s->prices, &s->price_room, sizeof *s->price))
            return trni_no_memory(s->ask->error);
        const trni_price price = { m->op, trni_axes_key(m), m->bytes, *fits, m->time_s, m->algorithm };
        s->price[s->prices++] = price;
        return TRN_OK;
    }
    *fits = known->fits;
    m->time_s = known->time_s;
    m->algorithm = known->algorithm;
    return TRN_OK;
}

TRNI_FN trn_status trni_price_move(trni_search *s, trni_transit *m, bool *fits)
{
    const double hbm = s->mesh->net->hbm_bytes_per_s;
    *fits = true;
    m->time_s = 0;
    m->algorithm = TRN_ALGORITHM_AUTO;
    if (m->kind == TRN_RESHARD_ZERO_FILL && hbm > 0) m->time_s = (double)m->bytes / hbm;
    return m->kind == TRN_RESHARD_COLLECTIVE && m->bytes ? trni_price_collective(s, m, fits) : TRN_OK;
}

/* ---- nodes ---- */

TRNI_FN int trni_node_find(const trni_search *s, uint64_t key)
{
    for (int i = 0; i < s->nodes; i++)
        if (s->node[i].key == key) return i;
    return -1;
}

/* Time decides, then the number of steps; a billionth is a tie, so that no rounding of a compiler's decides. */
TRNI_FN bool trni_way_is_better(double time_s, int steps, const trni_node *than)
{
    const double margin = 1e-9 * than->time_s;
    if (time_s < than->time_s - margin) return true;
    return time_s <= than->time_s + margin && steps < than->steps;
}

/* No less than this: what the neediest chip must get, at its injection rate. */
TRNI_FN double trni_transit_bound(const trni_search *s, const trni_transit *m)
{
    const double rate = trn_topology_injection_bytes_per_s(s->mesh->net);
    const int members = trn_mesh_group_size(s->mesh, m->axis, m->axes);
    if (m->kind != TRN_RESHARD_COLLECTIVE || m->op == TRN_PERMUTE || rate <= 0) return 0;
    return (double)m->bytes * (members - 1) / members / rate;
}

/* Can this move be part of a way to the goal that is shorter than the one that is known? */
TRNI_FN bool trni_is_hopeful(const trni_search *s, int at, uint64_t key, const trni_transit *m)
{
    if (key == s->goal) return true;
    return !s->goal_only && (s->goal_s < 0 || s->node[at].time_s + trni_transit_bound(s, m) <= s->goal_s);
}

TRNI_FN trn_status trni_node_add(trni_search *s, uint64_t key, int *index)
{
    if (s->nodes == TRNI_MOST_STATES)
        return trni_fail(s->ask->error, TRN_ELIMIT,
                         "%d axes over %d dimensions make more than %d shardings to search through", s->mesh->axes,
                         s->rank, TRNI_MOST_STATES);
    if (!trni_grow((void **)&s->node, s->nodes, &s->node_room, sizeof *s->node)) return trni_no_memory(s->ask->error);
    *index = s->nodes++;
    memset(&s->node[*index], 0, sizeof s->node[0]);
    s->node[*index].key = key;
    s->node[*index].before = -1;
    return TRN_OK;
}

/* A move that cannot be is no failure: there may be other ways. */
TRNI_FN trn_status trni_move_is_too_large(trni_search *s, const trni_transit *m)
{
    trni_fail(&s->why, TRN_ELIMIT, "%s over %d devices would take a buffer of more than 2^%d bytes, parts rounded up",
              trn_collective_name(m->op), trn_mesh_group_size(s->mesh, m->axis, m->axes), TRNI_ADDRESS_BITS);
    return TRN_OK;
}

/* A move leads from node `at` to the sharding `to`. */
TRNI_FN trn_status trni_try_move(trni_search *s, int at, const trn_pspec *to, trni_transit *m)
{
    const uint64_t key = trni_state_key(to);
    const int steps = s->node[at].steps + 1;
    bool fits;
    if (m->bytes < 0) return trni_move_is_too_large(s, m);
    int i = trni_node_find(s, key);
    if (i >= 0 && (s->node[i].done || !trni_way_is_better(s->node[at].time_s, steps, &s->node[i]))) return TRN_OK;
    if (!trni_is_hopeful(s, at, key, m)) return TRN_OK;
    trn_status status = trni_price_move(s, m, &fits);
    if (status || !fits) return status;
    const double time_s = s->node[at].time_s + m->time_s;
    if (i >= 0 && !trni_way_is_better(time_s, steps, &s->node[i])) return TRN_OK;
    if (i < 0) status = trni_node_add(s, key, &i);
    if (status) return status;
    s->node[i].time_s = time_s;
    s->node[i].steps = steps;
    s->node[i].before = at;
    s->node[i].move = *m;
    if (key == s->goal) s->goal_s = time_s;
    return TRN_OK;
}

/* The node that is nearest to the start and was not there before, or -1. */
TRNI_FN int trni_node_next(const trni_search *s)
{
    int best = -1;
    for (int i = 0; i < s->nodes; i++)
        if (!s->node[i].done && (best < 0 || s->node[i].time_s < s->node[best].time_s ||
                                 (s->node[i].time_s <= s->node[best].time_s && s->node[i].steps < s->node[best].steps)))
            best = i;
    return best;
}

#endif /* TRNI_SHARDED_RESHARD_SEARCH_H */
