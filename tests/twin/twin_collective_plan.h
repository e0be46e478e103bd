/* twin_collective_plan.h - which stages and channels each algorithm has on a group, written down a second time.
 * SPDX-License-Identifier: MIT
 *
 * A group is a list of dimensions, innermost first, and the cycles through its chips, which a test supplies. Ranks are
 * numbered chip by chip.
 */
#ifndef TWIN_COLLECTIVE_PLAN_H
#define TWIN_COLLECTIVE_PLAN_H

#include "twin/twin_collective.h"

enum { COLL_DIMS = 8 };

typedef enum coll_algorithm {
    COLL_RING,
    COLL_BOTH_WAYS,
    COLL_RINGS,
    COLL_DIMENSIONS,
    COLL_DOUBLING,
    COLL_MESH,
    COLL_PAIRS,
    COLL_SWITCH,
    COLL_LEVELS,     /* the last dimension apart */
    COLL_SINGLE_STEP /* a mesh's all-reduce */
} coll_algorithm;

typedef struct coll_dim {
    int size;
    char wired; /* R a ring that closes, r part of one, S switch, F all to all, ? anyhow */
    double rate;
} coll_dim;

typedef struct coll_group {
    int dims, cores;
    coll_dim dim[COLL_DIMS];
    int cycles, cycle[4][COLL_RANKS]; /* of chips; 0 = along the digits, to and fro */
} coll_group;

static inline int coll_chips(const coll_group *g)
{
    int chips = 1;
    for (int d = 0; d < g->dims; d++) chips *= g->dim[d].size;
    return chips;
}

static inline coll_channel *coll_new_channel(coll_plan *p, double share)
{
    coll_channel *c = &p->channel[p->channels++];
    c->share = share;
    c->stages = 0;
    for (int i = 0; i < COLL_RANKS; i++) c->rank[i] = i;
    return c;
}

static inline void coll_stage_of(coll_channel *c, coll_fold how, int size, int stride)
{
    const coll_stage s = { how, size, stride };
    if (size > 1) c->stage[c->stages++] = s;
}

static inline bool coll_is_direct(const coll_dim *d) { return d->size == 2 || d->wired == 'S' || d->wired == 'F'; }

/* ---- rings ---- */

/* Chip number `at` on the way to and fro: each digit runs up and down in turn. */
static inline int coll_to_and_fro(const coll_group *g, int at)
{
    int digit[COLL_DIMS] = { 0 }, way[COLL_DIMS] = { 1, 1, 1, 1, 1, 1, 1, 1 }, chip = 0, stride = 1;
    for (int i = 0; i < at; i++)
        for (int d = 0; d < g->dims; d++) { /* the innermost digit that can still move does, those inside turn round */
            const int next = digit[d] + way[d];
            if (next < 0 || next >= g->dim[d].size) {
                way[d] = -way[d];
                continue;
            }
            digit[d] = next;
            break;
        }
    for (int d = 0; d < g->dims; stride *= g->dim[d++].size) chip += digit[d] * stride;
    return chip;
}

/* The ranks of all such groups that there are: the next one's follow this one's. */
static inline void coll_along(coll_channel *c, const coll_group *g, int cycle, int ranks)
{
    const int block = coll_chips(g) * g->cores;
    for (int p = 0; p < ranks; p++) {
        const int i = p % block / g->cores, chip = g->cycles ? g->cycle[cycle][i] : coll_to_and_fro(g, i);
        c->rank[p] = p - p % block + chip * g->cores + p % g->cores;
    }
}

static inline void coll_plan_rings(coll_plan *p, const coll_group *g, coll_algorithm a)
{
    static const coll_fold fold[][2] = { [COLL_RING] = { FOLD_UP, FOLD_UP },
                                         [COLL_BOTH_WAYS] = { FOLD_BOTH, FOLD_BOTH },
                                         [COLL_RINGS] = { FOLD_UP, FOLD_DOWN },
                                         [COLL_PAIRS] = { FOLD_PAIRS_UP, FOLD_PAIRS_DOWN } };
    const bool all = a == COLL_RINGS || a == COLL_PAIRS;
    const int cycles = all && g->cycles > 1 ? g->cycles : 1, ways = all ? 2 : 1;
    for (int i = 0; i < cycles; i++)
        for (int w = 0; w < ways; w++) {
            coll_channel *c = coll_new_channel(p, 1.0 / (cycles * ways));
            coll_along(c, g, i, p->ranks);
            coll_stage_of(c, fold[a][w], coll_chips(g) * g->cores, 1);
        }
}

/* ---- the others ---- */

static inline void coll_plan_direct(coll_plan *p, const coll_group *g)
{
    coll_channel *c = coll_new_channel(p, 1);
    coll_stage_of(c, FOLD_DIRECT, g->cores, 1);
    coll_stage_of(c, FOLD_DIRECT, coll_chips(g), g->cores);
}

/* As many orders of the dimensions as there are; each has the share of the rate of its first one. */
static inline void coll_plan_dimensions(coll_plan *p, const coll_group *g, int dims)
{
    double rate[COLL_DIMS], all = 0;
    for (int d = 0; d < dims; d++) {
        const double ports = !coll_is_direct(&g->dim[d]) ? 2 : g->dim[d].wired == 'F' ? g->dim[d].size - 1 : 1;
        rate[d] = g->dim[d].rate > 0 ? ports * g->dim[d].rate : 1;
        all += rate[d];
    }
    for (int first = 0; first < dims || first == 0; first++) {
        coll_channel *c = coll_new_channel(p, dims ? rate[first] / all : 1); /* without dimensions: one chip's cores */
        coll_stage_of(c, FOLD_DIRECT, g->cores, 1);
        for (int i = first; i < first + dims; i++) {
            int stride = g->cores;
            for (int d = 0; d < i % dims; d++) stride *= g->dim[d].size;
            coll_stage_of(c, coll_is_direct(&g->dim[i % dims]) ? FOLD_DIRECT : FOLD_BOTH, g->dim[i % dims].size,
                          stride);
        }
    }
}

/* Positions are labels: on a closed ring the Gray code of the digit, so that one bit is one link. */
static inline int coll_chip_labelled(const coll_group *g, int label)
{
    int chip = 0, stride = 1;
    for (int d = 0; d < g->dims; d++) {
        const int n = g->dim[d].size, wanted = label % n;
        int digit = wanted;
        for (int i = 0; i < n && g->dim[d].wired == 'R'; i++)
            if ((i ^ i >> 1) == wanted) digit = i;
        chip += digit * stride;
        stride *= n;
        label /= n;
    }
    return chip;
}

/* Core k's share of the payload begins with axis k. */
static inline void coll_plan_doubling(coll_plan *p, const coll_group *g)
{
    int axes = 0;
    while (1 << axes < coll_chips(g)) axes++;
    for (int k = 0; k < g->cores && k < COLL_CHANNELS; k++) {
        coll_channel *c = coll_new_channel(p, 1.0 / (g->cores < COLL_CHANNELS ? g->cores : COLL_CHANNELS));
        for (int i = 0; i < p->ranks; i++) c->rank[i] = coll_chip_labelled(g, i / g->cores) * g->cores + i % g->cores;
        coll_stage_of(c, FOLD_DIRECT, g->cores, 1);
        for (int i = 0; i < axes; i++) coll_stage_of(c, FOLD_DIRECT, 2, g->cores << (i + k) % axes);
    }
}

/* The inner dimensions in one of four ways, then the last one in one of three. */
typedef enum coll_inner { INNER_DIMENSIONS, INNER_PAIRS, INNER_RINGS, INNER_DIRECT, INNERS } coll_inner;
typedef enum coll_outer { OUTER_RING, OUTER_DIRECT, OUTER_HALVES, OUTERS } coll_outer;

static inline void coll_outer_stages(coll_channel *c, const coll_dim *top, int stride, coll_outer way)
{
    const bool ring = (top->wired == 'R' || top->wired == 'r') && top->size > 2;
    if (way == OUTER_RING) coll_stage_of(c, ring ? FOLD_BOTH : FOLD_UP, top->size, stride);
    if (way == OUTER_DIRECT) coll_stage_of(c, FOLD_DIRECT, top->size, stride);
    for (int axis = 1; way == OUTER_HALVES && axis < top->size; axis *= 2)
        coll_stage_of(c, FOLD_DIRECT, 2, stride * axis);
}

/* inside: the group without its last dimension. */
static inline void coll_plan_levels(coll_plan *p, const coll_group *g, const coll_group *inside, coll_inner inner,
                                    coll_outer outer)
{
    const coll_dim *top = &g->dim[g->dims - 1];
    if (inner == INNER_DIMENSIONS) coll_plan_dimensions(p, inside, inside->dims);
    if (inner == INNER_PAIRS) coll_plan_rings(p, inside, COLL_PAIRS);
    if (inner == INNER_RINGS) coll_plan_rings(p, inside, COLL_RINGS);
    if (inner == INNER_DIRECT) coll_plan_direct(p, inside);
    for (int k = 0; k < p->channels; k++) coll_outer_stages(&p->channel[k], top, p->ranks / top->size, outer);
}

static inline coll_plan coll_plan_of(const coll_group *g, coll_algorithm a)
{
    coll_plan p;
    memset(&p, 0, sizeof p);
    p.ranks = coll_chips(g) * g->cores;
    switch (a) {
    case COLL_DIMENSIONS: coll_plan_dimensions(&p, g, g->dims); break;
    case COLL_DOUBLING: coll_plan_doubling(&p, g); break;
    case COLL_MESH:
    case COLL_SWITCH: coll_plan_direct(&p, g); break;
    case COLL_LEVELS: {
        coll_group inside = *g;
        inside.dims--;
        coll_plan_levels(&p, g, &inside, INNER_DIMENSIONS, OUTER_RING);
        break;
    }
    case COLL_SINGLE_STEP: coll_stage_of(coll_new_channel(&p, 1), FOLD_DIRECT, p.ranks, 1); break;
    default: coll_plan_rings(&p, g, a); break;
    }
    return p;
}

#endif /* TWIN_COLLECTIVE_PLAN_H */
