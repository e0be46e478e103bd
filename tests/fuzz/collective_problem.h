/* collective_problem.h - a collective that a fuzzer makes up: a network, groups of its chips, roles, formats and views.
 * SPDX-License-Identifier: MIT
 *
 * Defined before: rng. Included before: fail.h.
 */
#ifndef COLLECTIVE_PROBLEM_H
#define COLLECTIVE_PROBLEM_H

#include <math.h>

#include "twin/collective_box.h"
#include "twin/collective_memory.h"

enum { MOST_RANKS = 64, MOST_WORDS = 6000, MOST_GROUPS = 4, NOT_LOOKED_AT = -1 };

typedef struct problem {
    trn_topology net;
    trn_collective_args a;
    trn_error error;
    coll_group box;
    int chips[MOST_RANKS * MOST_GROUPS]; /* [groups][count], also when the arguments name none */
    int count, cores, ranks, groups;
    int targets[MOST_RANKS];
    int64_t counts[MOST_RANKS * MOST_RANKS];
    int64_t elements; /* of a buffer */
    trn_format wire;
    trn_tensor src[VIEWS], dst[VIEWS];
} problem;

/* ---- networks ---- */

static inline trn_topology draw_levels(void)
{
    trn_level level[4];
    const int levels = 1 + below(one_in(4) ? 4 : 3);
    const bool torus = one_in(3);
    memset(level, 0, sizeof level);
    for (int l = 0; l < levels; l++) {
        level[l].wiring = torus ? TRN_WIRING_RING : (trn_wiring)below(4);
        level[l].size = 1 + below(levels == 1 ? 24 : levels == 2 ? 7 : 5);
        level[l].planes = one_in(4) ? 1 + below(2) : 0;
        level[l].bytes_per_s = one_in(2) ? 1e9 : (1 + below(9)) * 1e9;
        level[l].latency_s = below(3) * 1e-6;
    }
    if (level[levels - 1].wiring == TRN_WIRING_NONE) level[levels - 1].wiring = TRN_WIRING_SWITCH;
    return trn_topology_hierarchy("made up", levels, level);
}

static inline trn_topology draw_net(void)
{
    static const trn_system system[] = { TRN_TRN1_2XLARGE, TRN_TRN2_48XLARGE, TRN_TRN2_ULTRASERVER,
                                         TRN_TRN3_GEN1_ULTRASERVER, TRN_TRN3_GEN2_ULTRASERVER };
    const int plane[] = { 2 + below(6), 2 + below(6) }, cube[] = { 4, 4, 4 };
    if (one_in(30)) return trn_topology_torus(3, cube, 1e9, 1e-6);
    switch (below(7)) {
    case 0: return trn_topology_of(system[below(COUNT(system))]);
    case 1: return trn_topology_preset(system[3 + below(2)], "sa/planes=2");
    case 2: return trn_topology_ring(1 + below(40), 1e9, 1e-6);
    case 3: return trn_topology_torus(2, plane, 1e9, 1e-6);
    default: break;
    }
    for (;;) {
        const trn_topology net = draw_levels();
        if (trn_topology_check(&net, NULL) == TRN_OK) return net;
    }
}

/* ---- groups ---- */

static inline bool is_new(const int *chips, int n, int chip)
{
    for (int i = 0; i < n; i++)
        if (chips[i] == chip) return false;
    return true;
}

/* size[l] digits of each level, ascending, all combinations; false when one of the chips is taken. */
static inline bool draw_box(problem *p, const int *size)
{
    int digit[TRN_MAX_LEVELS][COLL_RANKS], *chip = p->chips + p->groups * p->count;
    for (int l = 0; l < p->net.levels; l++) {
        int left = size[l];
        for (int d = 0; d < p->net.level[l].size && left; d++) /* each with the chance that its turn must come */
            if (below(p->net.level[l].size - d) < left) digit[l][size[l] - left--] = d;
    }
    for (int i = 0; i < p->count; i++) {
        int rest = i, stride = 1;
        chip[i] = 0;
        for (int l = 0; l < p->net.levels; l++) {
            chip[i] += digit[l][rest % size[l]] * stride;
            rest /= size[l];
            stride *= p->net.level[l].size;
        }
        if (!is_new(p->chips, p->groups * p->count, chip[i])) return false;
    }
    return true;
}

static inline void draw_boxes(problem *p, int most)
{
    int size[TRN_MAX_LEVELS];
    p->count = 1;
    for (int l = 0; l < p->net.levels; l++) {
        const int room = most / p->count < p->net.level[l].size ? most / p->count : p->net.level[l].size;
        size[l] = one_in(2) ? room : 1 + below(room);
        p->count *= size[l];
    }
    for (int tries = 1 + below(6); tries > 0 && p->groups < MOST_GROUPS; tries--) p->groups += draw_box(p, size);
}

/* Any chips, in any order. */
static inline void draw_list(problem *p, int most)
{
    const int chips = p->net.chips;
    p->count = 1 + below(chips < most ? chips : most);
    const int possible = chips / p->count < MOST_GROUPS ? chips / p->count : MOST_GROUPS;
    p->groups = 1 + below(possible);
    for (int i = 0; i < p->count * p->groups; i++) do {
            p->chips[i] = below(chips);
        } while (!is_new(p->chips, i, p->chips[i]));
}

static inline void draw_group(problem *p)
{
    static const int cores[] = { 1, 1, 1, 2, 2, 3, 4, 8 };
    p->cores = cores[below(COUNT(cores))];
    const int most = (one_in(4) ? MOST_RANKS : 20) / p->cores;
    p->groups = 0;
    if (p->net.chips <= most && one_in(2)) {
        p->groups = 1;
        p->count = p->net.chips;
        for (int i = 0; i < p->count; i++) p->chips[i] = i;
        if (one_in(2)) p->a.count = p->count; /* all chips either way */
    } else {
        if (one_in(4))
            draw_list(p, most);
        else
            draw_boxes(p, most);
        p->a.chips = p->chips;
        p->a.count = p->count;
    }
    p->ranks = p->count * p->cores;
    while (p->groups * p->ranks > VIEWS) p->groups--;
    p->a.groups = p->groups > 1 || one_in(2) ? p->groups : 0;
    p->a.ranks_per_chip = p->cores > 1 || one_in(2) ? p->cores : 0;
    p->box = box_of(&p->net, p->chips, p->count, p->groups, p->cores);
}

/* ---- roles ---- */

static inline void draw_roles(problem *p)
{
    bool taken[MOST_RANKS] = { false };
    const int shift = below(p->ranks);
    const bool all = one_in(2);
    p->a.root = below(p->ranks);
    p->a.target = below(p->ranks);
    p->a.targets = one_in(3) ? NULL : p->targets;
    p->a.counts = one_in(2) ? NULL : p->counts;
    for (int r = 0; r < p->ranks; r++) {
        p->targets[r] = all ? (r + shift) % p->ranks : below(p->ranks + 1) - 1;
        if (p->targets[r] >= 0 && taken[p->targets[r]]) p->targets[r] = -1;
        if (p->targets[r] >= 0) taken[p->targets[r]] = true;
    }
    for (int i = 0; i < p->ranks * p->ranks; i++) p->counts[i] = one_in(3) ? 0 : below(p->ranks > 24 ? 4 : 9);
}

/* To whom a rank sends, of permute and send_recv. */
static inline int target_of(const problem *p, int rank)
{
    if (p->a.op == TRN_PERMUTE) return p->a.targets ? p->targets[rank] : (rank + 1) % p->ranks;
    return rank != p->a.root ? -1 : p->a.target == p->a.root ? p->ranks - 1 : p->a.target;
}

static inline int64_t chunk_of(const problem *p, int rank, int64_t *first)
{
    const int64_t share = coll_share_of(p->elements, p->a.granule, p->ranks);
    *first = share * rank < p->elements ? share * rank : p->elements;
    return p->elements - *first < share ? p->elements - *first : share;
}

/* Elements that rank i sends to rank j of an all-to-all, and where they lie in its source and in the destination. */
static inline int64_t parcel_of(const problem *p, int i, int j, int64_t *in, int64_t *out)
{
    if (!p->a.counts) {
        const int64_t count = chunk_of(p, j, in);
        *out = count * i;
        return count;
    }
    *in = *out = 0;
    for (int r = 0; r < j; r++) *in += p->counts[i * p->ranks + r];
    for (int r = 0; r < i; r++) *out += p->counts[r * p->ranks + j];
    return p->counts[i * p->ranks + j];
}

/* Elements of a rank's source and of its destination. */
static inline int64_t given(const problem *p, int rank)
{
    int64_t first, out, n;
    switch (p->a.op) {
    case TRN_ALL_GATHER: return chunk_of(p, rank, &first);
    case TRN_ALL_TO_ALL:
        n = parcel_of(p, rank, p->ranks - 1, &first, &out);
        return p->a.counts ? first + n : p->elements;
    case TRN_BROADCAST: return rank == p->a.root ? p->elements : NOT_LOOKED_AT;
    case TRN_PERMUTE:
    case TRN_SEND_RECV: return target_of(p, rank) < 0 ? NOT_LOOKED_AT : p->elements;
    default: return p->elements;
    }
}

static inline int64_t received(const problem *p, int rank)
{
    int64_t first, in, n;
    switch (p->a.op) {
    case TRN_REDUCE_SCATTER: return chunk_of(p, rank, &first);
    case TRN_ALL_TO_ALL: n = parcel_of(p, p->ranks - 1, rank, &in, &first); return first + n;
    case TRN_PERMUTE:
    case TRN_SEND_RECV:
        for (int r = 0; r < p->ranks; r++)
            if (target_of(p, r) == rank) return p->elements;
        return NOT_LOOKED_AT;
    default: return p->elements;
    }
}

/* ---- the question ---- */

static inline int64_t draw_elements(const problem *p)
{
    const int all = p->ranks * p->groups;
    if (one_in(12)) return below(2);
    if (one_in(60) && all <= 4) return 1020 * p->ranks + below(1100 * p->ranks); /* more than one tile of a chunk */
    if (one_in(4) && all <= 48) return p->ranks * below(4) + below(3);
    return below(2 + (MOST_WORDS / all < 300 ? MOST_WORDS / all : 300));
}

static inline void draw_arguments(problem *p)
{
    trn_collective_args *a = &p->a;
    a->op = (trn_collective)below(one_in(2) ? TRN_COLLECTIVE_COUNT : TRN_ALL_REDUCE + 1);
    a->algorithm = one_in(5) ? TRN_ALGORITHM_AUTO : (trn_algorithm)(1 + below(TRN_ALGORITHM_COUNT - 1));
    if (one_in(10)) a->algorithm = TRN_HIERARCHICAL;
    const bool mesh = a->algorithm == TRN_MESH || a->algorithm == TRN_ALGORITHM_AUTO;
    a->single_step = mesh && a->op == TRN_ALL_REDUCE && one_in(3);
    a->uncalibrated = one_in(3);
    a->bytes = one_in(2) ? 0 : below(1 << 20); /* ignored */
    draw_arithmetic(a);
    if (one_in(20)) a->granule = one_in(2) ? INT64_MAX : below(1000);
    p->elements = draw_elements(p);
    draw_roles(p);
}

static inline void draw_problem(problem *p)
{
    memset(p, 0, sizeof *p);
    p->net = draw_net();
    p->a.net = &p->net;
    p->a.error = &p->error;
    p->a.src = p->src;
    p->a.dst = p->dst;
    draw_group(p);
    draw_arguments(p);
}

/* ---- views ---- */

static inline trn_format some_format(const problem *p)
{
    return !one_in(4) ? p->wire : one_in(8) ? TRN_CFP8 : any_format();
}

/* The rank whose source's format travels when nothing else is said. */
static inline int first_sender(const problem *p)
{
    int r = 0;
    while (r < p->ranks - 1 && given(p, r) < 0) r++;
    return r;
}

/* Another rank's source, where both may be one. */
static inline const trn_tensor *draw_twin(const problem *p, int i, trn_format format)
{
    const int other = i ? below(i) : 0;
    const bool alike = p->src[other].format == format && given(p, other % p->ranks) == given(p, i % p->ranks);
    return i && alike && one_in(12) ? &p->src[other] : NULL;
}

static inline void lay_out(problem *p)
{
    const bool in_place = one_in(3), told = one_in(2);
    p->wire = any_format();
    p->a.wire = told ? p->wire : TRN_FORMAT_UNSET;
    used = 0;
    memset(p->src, 0xee, sizeof p->src); /* what nobody looks at */
    memset(p->dst, 0xee, sizeof p->dst);
    for (int i = 0; i < p->ranks * p->groups; i++) {
        const int r = i % p->ranks;
        const trn_format from = told || r != first_sender(p) || i >= p->ranks ? some_format(p) : p->wire,
                         to = some_format(p);
        const bool same = in_place && given(p, r) == received(p, r) && bytes_of(from) == bytes_of(to) && !one_in(4);
        const trn_tensor *twin = in_place || given(p, r) < 0 ? NULL : draw_twin(p, i, from);
        if (given(p, r) >= 0) p->src[i] = twin ? *twin : new_view(from, given(p, r), !same);
        if (received(p, r) < 0) continue;
        p->dst[i] = same ? p->src[i] : new_view(to, received(p, r), false);
        p->dst[i].format = to;
        if (same) draw_cfp8(&p->dst[i]);
    }
    memory_begin();
    const content what = (content)below(CONTENTS);
    for (int i = 0; i < p->ranks * p->groups; i++)
        if (given(p, i % p->ranks) > 0) fill(&p->src[i], what);
}

#endif /* COLLECTIVE_PROBLEM_H */
