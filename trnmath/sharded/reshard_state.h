/* sharded/reshard_state.h - the shardings of a search as numbers, and what the search keeps.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: a sharding as 64 bits and back; sizes of its parts; what the neediest device lacks of another.
 * DOES NOT: know what a move costs (sharded/reshard_price.h), or which there are (sharded/reshard_moves.h).
 *
 * KNOWN FROM: definitions.
 */
#ifndef TRNI_SHARDED_RESHARD_STATE_H
#define TRNI_SHARDED_RESHARD_STATE_H

#include "reshard_args.h"

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

/* Six bits per axis: 0 = whole, 1 = sum, else 2 + its place in a dimension's list + as many for each dimension before.
 */
enum { TRNI_ROLE_BITS = 6, TRNI_ROLES = 1 << TRNI_ROLE_BITS };

TRNI_FN uint64_t trni_state_key(const trn_pspec *s)
{
    uint64_t key = 0;
    for (int a = 0; a < TRN_MAX_AXES; a++) key |= (uint64_t)(s->sum >> a & 1u) << TRNI_ROLE_BITS * a;
    for (int d = 0; d < s->rank; d++)
        for (int i = 0; i < s->dim[d].axes; i++)
            key |= (uint64_t)(2 + d * TRN_MAX_AXES + i) << TRNI_ROLE_BITS * s->dim[d].axis[i];
    return key;
}

TRNI_FN int trni_key_role(uint64_t key, int axis) { return (int)(key >> TRNI_ROLE_BITS * axis & (TRNI_ROLES - 1)); }

TRNI_FN trn_pspec trni_state_of_key(uint64_t key, int rank)
{
    trn_pspec s;
    memset(&s, 0, sizeof s);
    s.rank = rank;
    for (int a = 0; a < TRN_MAX_AXES; a++) {
        const int role = trni_key_role(key, a);
        if (role == 1) s.sum |= 1u << a;
        if (role < 2) continue;
        trn_pspec_dim *dim = &s.dim[(role - 2) / TRN_MAX_AXES];
        dim->axis[(role - 2) % TRN_MAX_AXES] = a;
        dim->axes++;
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
    double time_s;     /* of the best way there so far; negative = none is known */
    double bound_s;    /* no way from here to the goal takes less */
    double ahead_s;    /* a guess of what the plainest way from here to the goal takes; 0 where none is made */
    int steps, before; /* moves made, and the node before the last of them; -1 = the start */
    bool done;
    trni_transit move;
} trni_node;

/* A node, and how long the way through it was thought to be when it was put there. */
typedef struct trni_turn {
    double time_s, ahead_s;
    int steps, node;
} trni_turn;

/* What a collective costs: asked once. A permutation takes latency_s + bytes * slope_s; of the others each number of
 * bytes is asked for, since the best algorithm depends on it. */
typedef struct trni_price {
    trn_collective op;
    uint64_t axes, targets; /* four bits for each axis, the first lowest, 1 + axis */
    int64_t bytes;
    bool fits;
    double time_s, latency_s, slope_s;
    trn_algorithm algorithm;
} trni_price;

/* Numbers of the members of a list, found by what they are. */
typedef struct trni_index {
    int *slot; /* -1 = free */
    int slots, used;
} trni_index;

/* How many moves are looked at. Of the first two times are guessed only: those that a goal suggests, without moves from
 * dimension to dimension or device to device, and with them; then the same with their times; all but reshuffles;
 * all. */
typedef enum trni_breadth {
    TRNI_PLAIN_GUESS = 0,
    TRNI_GUESSED_MOVES,
    TRNI_FEW_MOVES,
    TRNI_SOME_MOVES,
    TRNI_ALL_MOVES
} trni_breadth;

typedef struct trni_search {
    const trn_redistribute_args *ask;
    const trn_mesh *mesh;
    int rank;
    const int64_t *shape;
    int bits, wire_bits; /* of an element where it is moved, and where it is summed */
    int big_axes;        /* of more than one device */
    trni_node *node;
    int nodes, node_room;
    trni_index node_at, price_at;
    trni_price *price;
    int prices, price_room;
    trni_turn *heap; /* nodes that may be the nearest */
    int heaped, heap_room;
    int *chip, *target;     /* [devices] */
    unsigned opens, closes; /* axes that become part of the sum, and axes that leave it */
    trn_pspec to;
    uint64_t goal;
    double goal_s; /* the shortest way there that is known; negative = none */
    trni_breadth breadth;
    bool guided;            /* nodes whose plainest way to the goal seems short come first, and may come again */
    double work, most_work; /* about nanoseconds; beyond that it goes no further, once there is a way */
    double mean_hops;
    bool over;     /* it went no further */
    trn_error why; /* the last collective that did not fit */
} trni_search;

enum {
    TRNI_MOST_STATES = 100000,
    TRNI_SURE_AXES = 5,         /* with so many axes of more than one device, all that there is is searched */
    TRNI_BOUND_DEVICES = 16,    /* of so many devices it is asked what they lack */
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

/* ---- sizes ---- */

/* Bytes of the largest part. */
TRNI_FN int64_t trni_state_bytes(const trni_search *s, const trn_pspec *spec, int bits)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) n *= trni_ceil_div(s->shape[d], trn_pspec_parts(spec, s->mesh, d));
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/* Bytes that one device must be sent, whatever the way. A sum over others must at least arrive once: as the wire has
 * it, or, if others finished it, as the tensor has it. How an open sum is shared out is free. */
TRNI_FN double trni_device_lacks(const trni_search *s, const trn_pspec *from, const trn_pspec *to, int device)
{
    double wanted = 1, there = 1;
    if (to->sum) return 0;
    for (int d = 0; d < s->rank; d++) {
        int64_t x, y;
        const int64_t nx =
            trni_part_of(s->shape[d], trn_pspec_parts(from, s->mesh, d), trni_part_index(from, s->mesh, d, device), &x);
        const int64_t ny =
            trni_part_of(s->shape[d], trn_pspec_parts(to, s->mesh, d), trni_part_index(to, s->mesh, d, device), &y);
        const int64_t low = x > y ? x : y, high = trni_min64(x + nx, y + ny);
        wanted *= (double)ny;
        there *= high > low ? (double)(high - low) : 0;
    }
    const int sum_bits = s->wire_bits < s->bits ? s->wire_bits : s->bits;
    return from->sum ? wanted * sum_bits / 8 : (wanted - there) * s->bits / 8;
}

/* Time in which the neediest of the first, the last and some between can be sent what it lacks, at the best injection
 * rate; `devices` of all, spread out. */
TRNI_FN double trni_lack_time(const trni_search *s, const trn_pspec *from, const trn_pspec *to, int devices)
{
    const double rate = trni_injection(s->mesh->net, true);
    double most = 0;
    for (int i = 0; i < devices && rate > 0; i++) {
        const int device = devices > 1 ? (int)((int64_t)i * (s->mesh->devices - 1) / (devices - 1)) : 0;
        const double lacks = trni_device_lacks(s, from, to, device);
        if (lacks > most) most = lacks;
    }
    return rate > 0 ? most / rate : 0;
}

/* As many axes of two lists as are alike, from the first. */
TRNI_FN int trni_goal_common(const trni_search *s, const trn_pspec *spec, int dim)
{
    const trn_pspec_dim *is = &spec->dim[dim], *wanted = &s->to.dim[dim];
    int i = 0;
    while (i < is->axes && i < wanted->axes && is->axis[i] == wanted->axis[i]) i++;
    return i;
}

/* ---- indices ---- */

/* A number that looks random. */
TRNI_FN uint64_t trni_scatter(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* The next slot to look at for a number that was scattered. */
TRNI_FN int trni_index_slot(const trni_index *x, uint64_t scattered, int tried)
{
    return (int)((scattered + (uint64_t)tried) & (uint64_t)(x->slots - 1));
}

TRNI_FN void trni_index_put(trni_index *x, uint64_t scattered, int number)
{
    int tried = 0;
    while (x->slot[trni_index_slot(x, scattered, tried)] >= 0) tried++;
    x->slot[trni_index_slot(x, scattered, tried)] = number;
    x->used++;
}

/* True: it must be filled again, since it is new. Nothing is there any more. */
TRNI_FN bool trni_index_grow(trni_index *x, bool *memory)
{
    *memory = true;
    if (2 * (x->used + 1) < x->slots) return false;
    const int slots = x->slots ? 2 * x->slots : 256;
    int *grown = (int *)realloc(x->slot, sizeof(int) * (size_t)slots);
    *memory = grown != NULL;
    if (!grown) return false;
    x->slot = grown;
    x->slots = slots;
    x->used = 0;
    memset(grown, -1, sizeof(int) * (size_t)slots);
    return true;
}

#endif /* TRNI_SHARDED_RESHARD_STATE_H */
