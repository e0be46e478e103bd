/* collective_scenes.h - groups of chips on which the tests run collectives, as the twin sees them.
 * SPDX-License-Identifier: MIT
 */
#ifndef COLLECTIVE_SCENES_H
#define COLLECTIVE_SCENES_H

#include "trnmath/trn_topology.h"
#include "twin/twin_collective_plan.h"

typedef enum scene_net {
    NET_RING,
    NET_SWITCH,
    NET_FULL,
    NET_TRN2,
    NET_TORUS,
    NET_RING_IN_SWITCH,
    NET_SWITCH_IN_RING
} scene_net;

typedef struct scene {
    const char *name;
    scene_net net;
    int a, b; /* its sizes */
    int dims;
    coll_dim dim[2];
    bool planar;       /* the cycles are those of a torus */
    bool levels;       /* may be done level by level */
    bool joined;       /* by one switch */
    int groups, count; /* 0 = all chips */
    int chips[16];
} scene;

/* clang-format off */
static const scene scenes[] = {
    { "ring of 1", NET_RING, 1, 1, 1, { { 1, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "ring of 2", NET_RING, 2, 1, 1, { { 2, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "ring of 3", NET_RING, 3, 1, 1, { { 3, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "ring of 4", NET_RING, 4, 1, 1, { { 4, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "ring of 5", NET_RING, 5, 1, 1, { { 5, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "ring of 8", NET_RING, 8, 1, 1, { { 8, 'R', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "switch of 5", NET_SWITCH, 5, 1, 1, { { 5, 'S', 1 } }, 0, 0, 1, 0, 0, { 0 } },
    { "switch of 20", NET_SWITCH, 20, 1, 1, { { 20, 'S', 1 } }, 0, 0, 1, 0, 0, { 0 } },
    { "all to all", NET_FULL, 6, 1, 1, { { 6, 'F', 1 } }, 0, 0, 0, 0, 0, { 0 } },
    { "trn2", NET_TRN2, 4, 4, 2, { { 4, 'R', 1 }, { 4, 'R', 1 } }, 1, 0, 0, 0, 0, { 0 } },
    { "rows", NET_TRN2, 4, 4, 1, { { 4, 'R', 1 } }, 0, 0, 0, 4, 4,
      { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
    { "columns", NET_TRN2, 4, 4, 1, { { 4, 'R', 1 } }, 0, 0, 0, 2, 4, { 0, 4, 8, 12, 2, 6, 10, 14 } },
    { "rows by two", NET_TRN2, 4, 4, 2, { { 4, 'R', 2 }, { 2, 'r', 2 } }, 1, 0, 0, 2, 8,
      { 0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11 } },
    { "permuted", NET_TRN2, 4, 4, 1, { { 8, '?', 0 } }, 0, 0, 0, 1, 8, { 7, 3, 1, 2, 0, 6, 5, 4 } },
    { "no box", NET_TRN2, 4, 4, 1, { { 5, '?', 0 } }, 0, 0, 0, 2, 5, { 0, 1, 2, 4, 9, 15, 14, 13, 12, 3 } },
    { "3 of a row", NET_TRN2, 4, 4, 1, { { 3, 'r', 1 } }, 0, 0, 0, 1, 3, { 8, 9, 11 } },
    { "3 x 5", NET_TORUS, 3, 5, 2, { { 3, 'R', 1 }, { 5, 'R', 1 } }, 1, 0, 0, 0, 0, { 0 } },
    { "4 x 3", NET_TORUS, 4, 3, 2, { { 4, 'R', 1 }, { 3, 'R', 1 } }, 1, 0, 0, 0, 0, { 0 } },
    { "4 in 2", NET_RING_IN_SWITCH, 4, 2, 2, { { 4, 'R', 4 }, { 2, 'S', 1 } }, 0, 1, 1, 0, 0, { 0 } },
    { "3 in 3", NET_SWITCH_IN_RING, 3, 3, 2, { { 3, 'S', 4 }, { 3, 'R', 1 } }, 0, 1, 0, 0, 0, { 0 } },
};
/* clang-format on */
enum { SCENES = sizeof scenes / sizeof scenes[0] };

/* Without latencies, so that it is plain which way of doing it by levels is the cheapest. */
static inline trn_topology scene_levels(trn_wiring inner, int a, trn_wiring outer, int b)
{
    trn_level level[2];
    memset(level, 0, sizeof level);
    level[0].wiring = inner;
    level[0].size = a;
    level[0].bytes_per_s = 4e9;
    level[1].wiring = outer;
    level[1].size = b;
    level[1].bytes_per_s = 1e9;
    return trn_topology_hierarchy("levels", 2, level);
}

static inline trn_topology scene_topology(const scene *s)
{
    const int size[2] = { s->a, s->b };
    switch (s->net) {
    case NET_RING: return trn_topology_ring(s->a, 1e9, 1e-6);
    case NET_SWITCH: return trn_topology_switch(s->a, 1e9, 1e-6);
    case NET_FULL: return trn_topology_fully_connected(s->a, 1e9, 1e-6);
    case NET_TORUS: return trn_topology_torus(2, size, 1e9, 1e-6);
    case NET_RING_IN_SWITCH: return scene_levels(TRN_WIRING_RING, s->a, TRN_WIRING_SWITCH, s->b);
    case NET_SWITCH_IN_RING: return scene_levels(TRN_WIRING_SWITCH, s->a, TRN_WIRING_RING, s->b);
    case NET_TRN2:
    default: return trn_topology_of(TRN_TRN2_48XLARGE);
    }
}

static inline coll_group scene_group(const scene *s, int cores)
{
    coll_group g;
    memset(&g, 0, sizeof g);
    g.dims = s->dims;
    g.cores = cores;
    for (int d = 0; d < s->dims; d++) g.dim[d] = s->dim[d];
    if (!s->planar) return g;
    const int size[2] = { s->dim[0].size, s->dim[1].size };
    const trn_topology plane = trn_topology_torus(2, size, 1, 0);
    int order[4 * COLL_RANKS];
    g.cycles = trn_topology_cycles(&plane, order, 4);
    for (int k = 0; k < g.cycles; k++) memcpy(g.cycle[k], order + k * plane.chips, sizeof(int) * (size_t)plane.chips);
    return g;
}

/* ---- algorithms, on both sides ---- */

static const struct {
    trn_algorithm algorithm;
    coll_algorithm twin;
} algorithms[] = {
    { TRN_RING, COLL_RING },          { TRN_BIDIRECTIONAL_RING, COLL_BOTH_WAYS }, { TRN_MULTI_RING, COLL_RINGS },
    { TRN_MESH, COLL_MESH },          { TRN_DIMENSION_WISE, COLL_DIMENSIONS },    { TRN_KANGARING, COLL_PAIRS },
    { TRN_MESH, COLL_SINGLE_STEP },   { TRN_RECURSIVE_DOUBLING, COLL_DOUBLING },  { TRN_SWITCH_DIRECT, COLL_SWITCH },
    { TRN_HIERARCHICAL, COLL_LEVELS }
};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

/* May a group be reduced in this way? */
static inline bool scene_takes(const scene *s, int cores, coll_algorithm a)
{
    bool powers = true;
    for (int d = 0; d < s->dims; d++) powers = powers && (s->dim[d].size & (s->dim[d].size - 1)) == 0;
    if (a == COLL_DOUBLING) return powers;
    if (a == COLL_PAIRS) return cores % 2 == 0;
    if (a == COLL_SWITCH) return s->joined;
    return a != COLL_LEVELS || s->levels;
}

#endif /* COLLECTIVE_SCENES_H */
