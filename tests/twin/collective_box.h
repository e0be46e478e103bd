/* collective_box.h - the dimensions of a group of chips, worked out from the digits of its chips.
 * SPDX-License-Identifier: MIT
 *
 * A group is a box when it has, at each level, a set of digits, all combinations of them once, the innermost fastest;
 * and all groups of a call must be boxes of the same levels and sizes. Else it has one dimension: its order. Cycles
 * through a torus are the library's own (trn_topology_cycles), which has tests of its own.
 */
#ifndef COLLECTIVE_BOX_H
#define COLLECTIVE_BOX_H

#include "trnmath/trn_topology.h"
#include "twin/twin_collective_plan.h"

/* What of a level a group has. */
typedef struct box_side {
    int level, size;
    bool whole;
} box_side;

static inline int box_digit(const trn_topology *net, int chip, int level)
{
    for (int l = 0; l < level; l++) chip /= net->level[l].size;
    return chip % net->level[level].size;
}

/* The digits that a group has at a level, ascending. */
static inline int box_digits(const trn_topology *net, const int *chips, int count, int level, int *digit)
{
    int digits = 0;
    for (int d = 0; d < net->level[level].size; d++) {
        bool has = false;
        for (int i = 0; i < count; i++) has = has || box_digit(net, chips[i], level) == d;
        if (has) digit[digits++] = d;
    }
    return digits;
}

/* Sides with more than one digit, innermost first; -1: the group is no box. */
static inline int box_sides(const trn_topology *net, const int *chips, int count, box_side side[TRN_MAX_LEVELS])
{
    int sides = 0, step = 1;
    for (int l = 0; l < net->levels; l++) {
        int digit[COLL_RANKS];
        const int digits = box_digits(net, chips, count, l, digit);
        for (int i = 0; i < count; i++)
            if (box_digit(net, chips[i], l) != digit[i / step % digits]) return -1;
        const box_side s = { l, digits, digits == net->level[l].size };
        if (digits > 1) side[sides++] = s;
        step *= digits;
    }
    return step == count ? sides : -1;
}

/* A level that wires nothing belongs to the next switch further out. */
static inline int box_wired_by(const trn_topology *net, int level)
{
    if (net->level[level].wiring != TRN_WIRING_NONE) return level;
    while (level + 1 < net->levels && net->level[level].wiring != TRN_WIRING_SWITCH) level++;
    return level;
}

static inline char box_wiring(const trn_level *level, bool whole)
{
    switch (level->wiring) {
    case TRN_WIRING_RING: return whole ? 'R' : 'r';
    case TRN_WIRING_SWITCH: return 'S';
    case TRN_WIRING_FULL: return 'F';
    case TRN_WIRING_NONE:
    default: return '?';
    }
}

/* Sides that the same level wires are one dimension. */
static inline void box_dimensions(const trn_topology *net, const box_side *side, int sides, coll_group *g)
{
    for (int i = 0; i < sides;) {
        const int by = box_wired_by(net, side[i].level);
        coll_dim d = { 1, 0, net->level[by].bytes_per_s };
        bool whole = true;
        for (; i < sides && box_wired_by(net, side[i].level) == by; i++) {
            d.size *= side[i].size;
            whole = whole && side[i].whole;
        }
        d.wired = box_wiring(&net->level[by], whole);
        g->dim[g->dims++] = d;
    }
}

/* Rings through the first dimensions, where those are rings that close. */
static inline void box_cycles(coll_group *g)
{
    static int order[4 * COLL_RANKS];
    int size[COLL_DIMS];
    bool torus = g->dims > 1;
    g->cycles = 0;
    for (int d = 0; d < g->dims; d++) {
        torus = torus && (g->dim[d].wired == 'R' || (g->dim[d].wired == 'r' && g->dim[d].size == 2));
        size[d] = g->dim[d].size;
    }
    if (!torus) return;
    const trn_topology part = trn_topology_torus(g->dims, size, 1, 0);
    g->cycles = trn_topology_cycles(&part, order, 4);
    if (g->cycles > 4) g->cycles = 4;
    for (int k = 0; k < g->cycles; k++) memcpy(g->cycle[k], order + k * part.chips, sizeof *order * (size_t)part.chips);
}

/* chips: [groups][count] */
static inline coll_group box_of(const trn_topology *net, const int *chips, int count, int groups, int cores)
{
    coll_group g;
    box_side side[TRN_MAX_LEVELS], other[TRN_MAX_LEVELS];
    memset(&g, 0, sizeof g);
    g.cores = cores;
    int sides = box_sides(net, chips, count, side);
    for (int k = 1; k < groups && sides >= 0; k++) {
        bool alike = box_sides(net, chips + k * count, count, other) == sides;
        for (int i = 0; i < sides; i++)
            alike = alike && other[i].level == side[i].level && other[i].size == side[i].size;
        if (!alike) sides = -1;
    }
    if (sides >= 0) {
        box_dimensions(net, side, sides, &g);
        box_cycles(&g);
        return g;
    }
    const coll_dim any = { count, '?', 0 };
    g.dim[g.dims++] = any;
    return g;
}

/* The same without the outermost dimension. */
static inline coll_group box_inside(const coll_group *g)
{
    coll_group inside = *g;
    inside.dims--;
    box_cycles(&inside);
    return inside;
}

/* Do all chips of each group share one switch of one plane? */
static inline bool box_joined(const trn_topology *net, const int *chips, int count, int groups)
{
    int top = -1;
    for (int l = 0; l < net->levels; l++)
        for (int i = 0; i < count * groups; i++)
            if (box_digit(net, chips[i], l) != box_digit(net, chips[i - i % count], l)) top = l;
    if (top < 0) return true;
    const trn_level *by = &net->level[box_wired_by(net, top)];
    return by->wiring == TRN_WIRING_SWITCH && by->planes < 2;
}

#endif /* COLLECTIVE_BOX_H */
