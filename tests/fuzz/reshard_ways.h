/* reshard_ways.h - every sharding of a small mesh, every move between two of them, and the cheapest way.
 * SPDX-License-Identifier: MIT
 *
 * Moves are as sharded/reshard_moves.h describes them in words. What is held, and what two devices share, is counted
 * from the elements; what a collective costs, trn_collective_cost says.
 *
 * Included before: twin/shard_cases.h.
 */
#ifndef FUZZ_RESHARD_WAYS_H
#define FUZZ_RESHARD_WAYS_H

#include "trnmath/trn_reshard.h"

/* ---- what is held ---- */

static inline int64_t held(const twin_sharding *s, int device)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) n *= twin_count(s, device, d);
    return n;
}

/* Elements that one device has and another wants. */
static inline int64_t shared(const twin_sharding *has, int device, const twin_sharding *wants, int other)
{
    int64_t n = 1;
    for (int d = 0; d < has->rank; d++) {
        int parts, parts_wanted;
        const int part = twin_part(has, d, device, &parts), wanted = twin_part(wants, d, other, &parts_wanted);
        int64_t both = 0;
        for (int64_t i = 0; i < has->shape[d]; i++)
            both += i / twin_step(has->shape[d], parts) == part && i / twin_step(has->shape[d], parts_wanted) == wanted;
        n *= both;
    }
    return n;
}

static inline int64_t most_held(const twin_sharding *s)
{
    int64_t most = 0;
    for (int i = 0; i < mesh.devices; i++)
        if (held(s, i) > most) most = held(s, i);
    return most;
}

static inline int64_t most_shared(const twin_sharding *has, const twin_sharding *wants, unsigned axes)
{
    int64_t most = 0;
    for (int i = 0; i < mesh.devices; i++)
        for (int j = 0; j < mesh.devices; j++) {
            bool group = true;
            for (int a = 0; a < has->axes; a++)
                group = group && (axes >> a & 1u || twin_coordinate(has, i, a) == twin_coordinate(has, j, a));
            const int64_t n = group ? shared(has, i, wants, j) : 0;
            if (n > most) most = n;
        }
    return most;
}

/* ---- every sharding, every move ---- */

enum { STATES = 400, SMALL_AXES = 3, SMALL_RANK = 2 };

typedef struct small {
    int axes, list[TWIN_DIMS][TWIN_AXES], length[TWIN_DIMS]; /* which axes cut a dimension, the outermost first */
    unsigned sum, cut;
} small;

static inline small small_of(const twin_sharding *s)
{
    small m;
    memset(&m, 0, sizeof m);
    m.axes = s->axes;
    for (int d = 0; d < s->rank; d++)
        for (int depth = 0; depth < s->axes; depth++)
            for (int a = 0; a < s->axes; a++)
                if (s->role[a] == d && s->depth[a] == depth && s->size[a] > 1) {
                    m.list[d][m.length[d]++] = a;
                    m.cut |= 1u << a;
                }
    for (int a = 0; a < s->axes; a++)
        if (s->role[a] == TWIN_SUM && s->size[a] > 1) m.sum |= 1u << a;
    return m;
}

typedef struct graph {
    const trn_redistribute_args *args;
    twin_sharding like;
    unsigned opens, closes, stays;
    int states;
    small state[STATES];
    double time_s[STATES]; /* negative: not reached */
    bool done[STATES];
} graph;

/* Every way to lay the axes from `axis` on: whole, sum, or at any place of any dimension's list. */
static inline void all_states(graph *g, small so_far, int axis)
{
    if (g->states == STATES) return;
    if (axis == g->like.axes) {
        g->time_s[g->states] = -1;
        g->state[g->states++] = so_far;
        return;
    }
    const unsigned bit = 1u << axis;
    if (g->like.size[axis] == 1) {
        all_states(g, so_far, axis + 1);
        return;
    }
    if ((g->opens | g->closes | g->stays) & bit) {
        small summed = so_far;
        summed.sum |= bit;
        all_states(g, summed, axis + 1);
    }
    if (g->stays & bit) return;
    all_states(g, so_far, axis + 1);
    for (int d = 0; d < g->like.rank; d++)
        for (int at = 0; at <= so_far.length[d]; at++) {
            small laid = so_far;
            for (int i = laid.length[d]++; i > at; i--) laid.list[d][i] = laid.list[d][i - 1];
            laid.list[d][at] = axis;
            laid.cut |= bit;
            all_states(g, laid, axis + 1);
        }
}

static inline int parts_of(const graph *g, const int *list, int length)
{
    int parts = 1;
    for (int i = 0; i < length; i++) parts *= g->like.size[list[i]];
    return parts;
}

/* Is each of the finer parts inside one of the coarser ones? By elements. */
static inline bool nests(const graph *g, int dim, int coarse, int fine)
{
    const int64_t n = g->like.shape[dim], wide = twin_step(n, coarse), narrow = twin_step(n, fine);
    for (int64_t i = 0; i < n; i++) {
        if (i / narrow / (fine / coarse) != i / wide) return false;
    }
    return true;
}

static inline bool starts(const int *list, int length, const int *with, int most)
{
    return length >= most && memcmp(list, with, sizeof list[0] * (size_t)most) == 0;
}

static inline twin_sharding twin_of_small(const graph *g, const small *m)
{
    twin_sharding s = g->like;
    for (int a = 0; a < s.axes; a++) {
        s.role[a] = m->sum >> a & 1u ? TWIN_SUM : TWIN_WHOLE;
        s.depth[a] = 0;
    }
    for (int d = 0; d < s.rank; d++)
        for (int i = 0; i < m->length[d]; i++) s.role[m->list[d][i]] = d, s.depth[m->list[d][i]] = i;
    return s;
}

/* Groups of the devices that differ along these axes only, in their order. Returns the members of one. */
static inline int groups_along(const graph *g, const int *axis, int axes, int *chips)
{
    const int members = parts_of(g, axis, axes);
    int count = 0;
    for (int first = 0; first < mesh.devices; first++) {
        bool leads = true;
        for (int i = 0; i < axes; i++) leads = leads && twin_coordinate(&g->like, first, axis[i]) == 0;
        for (int m = 0; leads && m < members; m++) {
            int device = first, rest = m;
            for (int i = axes - 1; i >= 0; i--) {
                int stride = 1;
                for (int a = axis[i] + 1; a < g->like.axes; a++) stride *= g->like.size[a];
                device += rest % g->like.size[axis[i]] * stride;
                rest /= g->like.size[axis[i]];
            }
            chips[count++] = trn_mesh_chip(&mesh, device);
        }
    }
    return members;
}

/* To whom each device sends: of several that hold the same part, the i-th to the i-th that wants it. */
static inline void permutation(const graph *g, const twin_sharding *x, const twin_sharding *y, int *to)
{
    for (int i = 0; i < mesh.devices; i++) {
        int turn = 0, seen = 0;
        for (int way = 0; way < 2; way++)
            for (int j = 0; j < (way ? mesh.devices : i); j++) {
                bool same = true;
                for (int d = 0; d < x->rank; d++) {
                    int parts;
                    same = same && twin_part(way ? y : x, d, j, &parts) == twin_part(x, d, i, &parts);
                }
                for (int a = 0; a < x->axes; a++)
                    if (x->role[a] == TWIN_SUM && twin_coordinate(x, i, a) != twin_coordinate(x, j, a)) same = false;
                if (!same) continue;
                if (!way)
                    turn++;
                else if (seen++ == turn)
                    to[i] = j == i ? -1 : j;
            }
    }
    (void)g;
}

static inline double price(const graph *g, trn_collective op, int64_t bytes, const int *axis, int axes,
                           const int *targets)
{
    int chips[DEVICES];
    trn_cost cost;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = &net;
    a.op = op;
    a.bytes = bytes;
    a.chips = chips;
    if (bytes == 0) return 0;
    if (targets)
        for (int i = 0; i < mesh.devices; i++) chips[i] = trn_mesh_chip(&mesh, i);
    a.count = targets ? mesh.devices : groups_along(g, axis, axes, chips);
    a.groups = mesh.devices / a.count;
    a.targets = targets;
    return trn_collective_cost(&a, &cost) ? -1 : cost.time_s;
}

/* Sums differ, or dimensions lose or gain axes at their inner ends: what one move may do. */
typedef struct change {
    int loses[TWIN_DIMS], gains[TWIN_DIMS]; /* so many axes */
    int losing, gaining, from_dim, to_dim;
    int axis[TWIN_AXES], axes; /* that are taken off, dimension by dimension */
    bool inner;                /* every list is the other's beginning */
} change;

static inline change change_of(const graph *g, const small *x, const small *y)
{
    change c;
    memset(&c, 0, sizeof c);
    c.inner = true;
    for (int d = 0; d < g->like.rank; d++) {
        const int common = x->length[d] < y->length[d] ? x->length[d] : y->length[d];
        if (!starts(x->list[d], x->length[d], y->list[d], common)) c.inner = false;
        const int coarse = parts_of(g, x->list[d], common);
        if (!c.inner || !nests(g, d, coarse, parts_of(g, x->list[d], x->length[d])) ||
            !nests(g, d, coarse, parts_of(g, y->list[d], y->length[d])))
            c.inner = false;
        c.loses[d] = x->length[d] - common;
        c.gains[d] = y->length[d] - common;
        if (c.loses[d]) c.losing++, c.from_dim = d;
        if (c.gains[d]) c.gaining++, c.to_dim = d;
        for (int i = common; i < x->length[d]; i++) c.axis[c.axes++] = x->list[d][i];
    }
    return c;
}

static inline bool same_lists(const small *x, const small *y, int rank)
{
    for (int d = 0; d < rank; d++)
        if (x->length[d] != y->length[d] || !starts(x->list[d], x->length[d], y->list[d], y->length[d])) return false;
    return true;
}

static inline bool same_parts(const graph *g, const small *x, const small *y)
{
    for (int d = 0; d < g->like.rank; d++)
        if (parts_of(g, x->list[d], x->length[d]) != parts_of(g, y->list[d], y->length[d])) return false;
    return true;
}

static inline void cheaper(double *best, double time_s)
{
    if (time_s >= 0 && (*best < 0 || time_s < *best)) *best = time_s;
}

/* Sums stay as they are. */
static inline double move_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding a = twin_of_small(g, x), b = twin_of_small(g, y);
    const change c = change_of(g, x, y);
    const int64_t members = parts_of(g, c.axis, c.axes);
    double best = -1;
    if (c.inner && !c.losing && c.gaining == 1) cheaper(&best, 0);
    if (c.inner && c.losing && !c.gaining)
        cheaper(&best, price(g, TRN_ALL_GATHER, bytes * members * most_held(&a), c.axis, c.axes, NULL));
    if (c.inner && c.losing == 1 && c.gaining == 1 && c.from_dim != c.to_dim && c.gains[c.to_dim] == c.axes &&
        memcmp(y->list[c.to_dim] + y->length[c.to_dim] - c.axes, c.axis, sizeof c.axis[0] * (size_t)c.axes) == 0) {
        unsigned set = 0;
        for (int i = 0; i < c.axes; i++) set |= 1u << c.axis[i];
        cheaper(&best, price(g, TRN_ALL_TO_ALL, bytes * members * most_shared(&a, &b, set), c.axis, c.axes, NULL));
    }
    if (same_parts(g, x, y)) {
        int to[DEVICES] = { 0 };
        permutation(g, &a, &b, to);
        cheaper(&best, price(g, TRN_PERMUTE, bytes * most_held(&a), NULL, 0, to));
    }
    return best;
}

static inline double close_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding a = twin_of_small(g, x), b = twin_of_small(g, y);
    const unsigned closed = x->sum & ~y->sum;
    const change c = change_of(g, x, y);
    int axis[TWIN_AXES], axes = 0;
    for (int i = 0; i < g->like.axes; i++)
        if (closed >> i & 1u) axis[axes++] = i;
    if (closed & ~g->closes) return -1;
    if (same_lists(x, y, g->like.rank)) return price(g, TRN_ALL_REDUCE, bytes * most_held(&a), axis, axes, NULL);
    if (!c.inner || c.losing || c.gaining != 1 || c.gains[c.to_dim] != axes) return -1;
    const int *put = y->list[c.to_dim] + y->length[c.to_dim] - axes;
    for (int i = 0; i < axes; i++)
        if (!(closed >> put[i] & 1u)) return -1;
    return price(g, TRN_REDUCE_SCATTER, bytes * parts_of(g, put, axes) * most_held(&b), put, axes, NULL);
}

/* One axis: everywhere the same before, or the innermost of a dimension. */
static inline double open_time(const graph *g, const small *x, const small *y, int64_t bytes)
{
    const twin_sharding b = twin_of_small(g, y);
    const unsigned opened = y->sum & ~x->sum;
    const change c = change_of(g, x, y);
    if ((opened & (opened - 1)) || (opened & ~g->opens) || !c.inner || c.gaining || c.axes > 1) return -1;
    if (c.axes == 1 && opened != 1u << c.axis[0]) return -1;
    if (c.axes == 0 && (opened & x->cut)) return -1;
    return net.hbm_bytes_per_s > 0 ? (double)(bytes * most_held(&b)) / net.hbm_bytes_per_s : 0;
}

static inline double edge(const graph *g, const small *x, const small *y)
{
    const int64_t bytes = (int64_t)bytes_of(g->args->global.format);
    if (x->sum == y->sum) return move_time(g, x, y, bytes);
    if ((x->sum & y->sum) == y->sum) return close_time(g, x, y, bytes);
    if ((x->sum & y->sum) == x->sum) return open_time(g, x, y, bytes);
    return -1;
}

static inline int nearest(const graph *g)
{
    int best = -1;
    for (int i = 0; i < g->states; i++)
        if (!g->done[i] && g->time_s[i] >= 0 && (best < 0 || g->time_s[i] < g->time_s[best])) best = i;
    return best;
}

static inline bool same_state(const small *x, const small *y, int rank)
{
    return x->sum == y->sum && same_lists(x, y, rank);
}

static inline double least_time(graph *g, const small *from, const small *to)
{
    for (int i = 0; i < g->states; i++)
        if (same_state(&g->state[i], from, g->like.rank)) g->time_s[i] = 0;
    for (int at; (at = nearest(g)) >= 0;) {
        if (same_state(&g->state[at], to, g->like.rank)) return g->time_s[at];
        g->done[at] = true;
        for (int i = 0; i < g->states; i++) {
            const double more = g->done[i] ? -1 : edge(g, &g->state[at], &g->state[i]);
            if (more >= 0) cheaper(&g->time_s[i], g->time_s[at] + more);
        }
    }
    return -1;
}

#endif /* FUZZ_RESHARD_WAYS_H */
