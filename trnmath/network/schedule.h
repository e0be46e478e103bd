/* network/schedule.h - the steps of a collective: who sends what to whom.
 * A part of trn_schedule.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_SCHEDULE_H
#define TRNI_NETWORK_SCHEDULE_H

#include "../base/base.h"

typedef enum trn_collective {
    TRN_ALL_GATHER = 0,
    TRN_REDUCE_SCATTER,
    TRN_ALL_REDUCE,
    TRN_ALL_TO_ALL,
    TRN_BROADCAST,
    TRN_PERMUTE,
    TRN_SEND_RECV,
    TRN_COLLECTIVE_COUNT
} trn_collective;

typedef enum trn_algorithm {
    TRN_ALGORITHM_AUTO = 0,
    TRN_RING,               /* one cycle, one direction */
    TRN_BIDIRECTIONAL_RING, /* one cycle, both directions, half as many steps */
    TRN_MULTI_RING,         /* edge-disjoint cycles, both directions of each */
    TRN_DIMENSION_WISE,     /* dimension by dimension, the payload in as many rotated orders */
    TRN_RECURSIVE_DOUBLING, /* and halving, along the axes of the (Gray-labelled) hypercube */
    TRN_MESH,               /* cores of a chip first, then every chip with every other */
    TRN_KANGARING,          /* a ring of pairs of ranks: written twice, summed by three */
    TRN_SWITCH_DIRECT,      /* as the mesh, through one switch */
    TRN_HIERARCHICAL,       /* the outermost level apart from those inside */
    TRN_POINT_TO_POINT,     /* permute and send_recv: each message by its route */
    TRN_ALGORITHM_COUNT
} trn_algorithm;

/* "all_gather", …; "unknown" for anything else. */
TRN_API const char *trn_collective_name(trn_collective op);

/* "ring", …; "unknown" for anything else. */
TRN_API const char *trn_algorithm_name(trn_algorithm algorithm);

/* TRN_COLLECTIVE_COUNT if there is none of that name. */
TRN_API trn_collective trn_collective_from_name(const char *name);

/* TRN_ALGORITHM_COUNT if there is none of that name. */
TRN_API trn_algorithm trn_algorithm_from_name(const char *name);

#if TRNI_BODIES

TRN_API const char *trn_collective_name(trn_collective op)
{
    static const char *const name[] = { "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                        "broadcast",  "permute",        "send_recv" };
    return (unsigned)op < TRN_COLLECTIVE_COUNT ? name[(unsigned)op] : "unknown";
}

TRN_API const char *trn_algorithm_name(trn_algorithm algorithm)
{
    static const char *const name[] = { "auto", "ring",      "bidirectional", "multi_ring",   "dimension_wise", "rdh",
                                        "mesh", "kangaring", "switch_direct", "hierarchical", "point_to_point" };
    return (unsigned)algorithm < TRN_ALGORITHM_COUNT ? name[(unsigned)algorithm] : "unknown";
}

TRN_API trn_collective trn_collective_from_name(const char *name)
{
    int i = 0;
    while (i < TRN_COLLECTIVE_COUNT && (!name || strcmp(name, trn_collective_name((trn_collective)i)) != 0)) i++;
    return (trn_collective)i;
}

TRN_API trn_algorithm trn_algorithm_from_name(const char *name)
{
    int i = 0;
    while (i < TRN_ALGORITHM_COUNT && (!name || strcmp(name, trn_algorithm_name((trn_algorithm)i)) != 0)) i++;
    return (trn_algorithm)i;
}

/* ---- one stage: n members of a group, each to end up with (or beginning with) the sub-block of its own number ---- */

typedef enum trni_pattern {
    TRNI_RING_UP = 0,
    TRNI_RING_DOWN,
    TRNI_BOTH_WAYS,
    TRNI_DIRECT,
    TRNI_PAIRS_UP,
    TRNI_PAIRS_DOWN
} trni_pattern;

enum { TRNI_ALL_MEMBERS = 0, TRNI_NOBODY = -1, TRNI_HOPS = 4 };
enum { TRNI_SUM_SOURCES = 16 }; /* that one DMA operation adds (documented) */

/* At `to`, the sub-block becomes the sum of what the members `from` hold of it; one source is a copy. */
typedef struct trni_hop {
    int to;   /* TRNI_NOBODY: every member but the source gets a copy */
    int also; /* a second member that the same DMA writes, or TRNI_NOBODY */
    int from[3];
    int sources;   /* TRNI_ALL_MEMBERS: all of the group, ascending */
    int part;      /* 0 = all of the sub-block, 1 = its first half, 2 = its second */
    double weight; /* sub-blocks that travel together */
} trni_hop;

TRNI_FN int trni_wrap(int i, int n)
{
    const int r = i % n;
    return r < 0 ? r + n : r;
}

TRNI_FN trni_hop trni_hop_of(int to, int from, int n)
{
    trni_hop m;
    memset(&m, 0, sizeof m);
    m.to = trni_wrap(to, n);
    m.from[0] = trni_wrap(from, n);
    m.also = TRNI_NOBODY;
    m.sources = 1;
    m.weight = 1;
    return m;
}

/* As above, to be summed with what the receiver holds. */
TRNI_FN trni_hop trni_hop_sum(int to, int from, int n)
{
    trni_hop m = trni_hop_of(to, from, n);
    m.from[1] = m.to;
    m.sources = 2;
    return m;
}

/* +1 or -1: which way the partial sums and the copies of a ring go. */
TRNI_FN int trni_pattern_way(trni_pattern how) { return how == TRNI_RING_DOWN || how == TRNI_PAIRS_DOWN ? -1 : 1; }

/* Steps of a stage of a reduce-scatter, an all-gather or an all-to-all. */
TRNI_FN int trni_pattern_steps(trni_pattern how, int n)
{
    if (n < 2) return 0;
    switch (how) {
    case TRNI_RING_UP:
    case TRNI_RING_DOWN: return n - 1;
    case TRNI_BOTH_WAYS: return n / 2;
    case TRNI_PAIRS_UP:
    case TRNI_PAIRS_DOWN: return n / 2;
    default: return 1;
    }
}

/* A pair's own sum, which the DMA program of the first hop begins with, is no step of its own in time (documented: N/2
 * stops, N/2 - 1 hops), except where there is no hop. */
TRNI_FN bool trni_step_is_free(trni_pattern how, int n, int step, bool reduces)
{
    return (how == TRNI_PAIRS_UP || how == TRNI_PAIRS_DOWN) && n > 2 && (reduces ? step == 0 : step == n / 2 - 1);
}

/* One arm of BOTH_WAYS: the block v comes in from `way` (-1: from below) over `length` members; it starts `late` steps
 * after the first. False when the arm rests in this step, or would arrive: the last move is shared by both arms. */
TRNI_FN bool trni_arm_in(int n, int v, int way, int length, int late, int step, trni_hop *move)
{
    const int at = step - late; /* moves made before this one */
    if (at < 0 || at >= length - 1) return false;
    const int from = v + way * (length - at);
    *move = trni_hop_sum(from - way, from, n);
    return true;
}

TRNI_FN int trni_both_ways_reduce(int n, int step, int v, trni_hop *move)
{
    const int longest = n / 2, shortest = (n - 1) / 2, late = longest - shortest, parts = late ? 2 : 1;
    int count = 0;
    for (int part = 0; part < parts; part++) {
        const int below = part ? shortest : longest, above = part ? longest : shortest;
        const int first = count;
        if (step == longest - 1) {
            move[count] = trni_hop_of(v, v - 1, n);
            move[count].from[1] = v;
            move[count].from[2] = trni_wrap(v + 1, n);
            move[count++].sources = n > 2 ? 3 : 2;
        } else {
            count += trni_arm_in(n, v, -1, below, longest - below, step, &move[count]);
            count += trni_arm_in(n, v, 1, above, longest - above, step, &move[count]);
        }
        for (int i = first; i < count; i++) move[i].part = late ? part + 1 : 0;
    }
    return count;
}

TRNI_FN int trni_both_ways_gather(int n, int step, int v, trni_hop *move)
{
    const int longest = n / 2, shortest = (n - 1) / 2, parts = longest > shortest ? 2 : 1;
    int count = 0;
    for (int part = 0; part < parts; part++) {
        const int first = count;
        if (step < (part ? shortest : longest)) move[count++] = trni_hop_of(v + step + 1, v + step, n);
        if (step < (part ? longest : shortest)) move[count++] = trni_hop_of(v - step - 1, v - step, n);
        for (int i = first; i < count; i++) move[i].part = parts > 1 ? part + 1 : 0;
    }
    return count;
}

/* KangaRing: members 2i and 2i + 1 are a pair; the partial goes from first to first, and ends at v itself. */
TRNI_FN int trni_pairs_reduce(int way, int n, int step, int v, trni_hop *move)
{
    const int pairs = n / 2, pair = trni_wrap(v / 2 + way * (step + 1), pairs),
              before = 2 * trni_wrap(pair - way, pairs);
    /* the partial first, then the pair */
    *move = trni_hop_of(step == pairs - 1 ? v : 2 * pair, step ? before : 2 * pair, n);
    if (step) move->from[move->sources++] = 2 * pair;
    move->from[move->sources++] = 2 * pair + 1;
    return 1;
}

TRNI_FN int trni_pairs_gather(int way, int n, int step, int v, trni_hop *move)
{
    const int pairs = n / 2;
    if (step == pairs - 1) {
        if (pairs == 1) move[0] = trni_hop_of(v ^ 1, v, n);
        return pairs == 1;
    }
    const int pair = trni_wrap(v / 2 + way * (step + 1), pairs), before = 2 * trni_wrap(pair - way, pairs);
    move[0] = trni_hop_of(2 * pair, step ? before : v, n);
    move[0].also = 2 * pair + 1;
    if (step) return 1;
    move[1] = trni_hop_of(v ^ 1, v, n);
    return 2;
}

/* The moves that concern sub-block v in one step of a reduce-scatter: what is read was written in an earlier step. */
TRNI_FN int trni_reduce_moves(trni_pattern how, int n, int step, int v, trni_hop move[TRNI_HOPS])
{
    const int way = trni_pattern_way(how);
    if (how == TRNI_PAIRS_UP || how == TRNI_PAIRS_DOWN) return trni_pairs_reduce(way, n, step, v, move);
    if (how == TRNI_BOTH_WAYS) return trni_both_ways_reduce(n, step, v, move);
    if (how == TRNI_DIRECT) {
        move[0] = trni_hop_of(v, v, n);
        move[0].sources = TRNI_ALL_MEMBERS;
    } else
        move[0] = trni_hop_sum(v + way * (step + 2), v + way * (step + 1), n);
    return 1;
}

/* The same of an all-gather. */
TRNI_FN int trni_gather_moves(trni_pattern how, int n, int step, int v, trni_hop move[TRNI_HOPS])
{
    const int way = trni_pattern_way(how);
    if (how == TRNI_PAIRS_UP || how == TRNI_PAIRS_DOWN) return trni_pairs_gather(way, n, step, v, move);
    if (how == TRNI_BOTH_WAYS) return trni_both_ways_gather(n, step, v, move);
    move[0] = trni_hop_of(v + way * (step + 1), v + way * step, n);
    if (how == TRNI_DIRECT) {
        move[0].to = TRNI_NOBODY;
        move[0].from[0] = v;
    }
    return 1;
}

/* Of an all-to-all: what member v sent, on its way. In step s of a ring all blocks that have further to go than s
 * travel together. */
TRNI_FN int trni_exchange_moves(trni_pattern how, int n, int step, int v, trni_hop move[TRNI_HOPS])
{
    if (how != TRNI_BOTH_WAYS) {
        const int count = trni_gather_moves(how, n, step, v, move);
        move[0].weight = how == TRNI_DIRECT ? 1 : n - 1 - step;
        return count;
    }
    const double far = (n - 1) / 2 - step + (n % 2 ? 0.0 : 0.5); /* half of the opposite member's block each way */
    move[0] = trni_hop_of(v + step + 1, v + step, n);
    move[1] = trni_hop_of(v - step - 1, v - step, n);
    move[0].weight = move[1].weight = far;
    return 2;
}

/* ---- a schedule: channels of stages ---- */

enum { TRNI_MAX_STAGES = 24, TRNI_MAX_CHANNELS = 8 };

typedef struct trni_cc_stage {
    trni_pattern how;
    int size;      /* members of a group */
    int stride;    /* positions from one member to the next */
    double factor; /* by which the links take longer than their loads say: calibration; 1 = none */
} trni_cc_stage;

/* A rank's position is its number in the order that the stages count in. Positions p of one block of `block` stand for
 * the ranks order[p]; the next block of positions is the next block of ranks. */
typedef struct trni_cc_channel {
    double share;     /* of the payload; all shares together are 1 */
    const int *order; /* [block]; NULL = as the ranks are numbered */
    int stages;
    trni_cc_stage stage[TRNI_MAX_STAGES];
} trni_cc_channel;

typedef struct trni_schedule {
    int ranks;
    int block;
    int channels;
    trni_cc_channel channel[TRNI_MAX_CHANNELS];
    int *orders;      /* what order points into; freed by trni_schedule_free */
    bool single_step; /* all-reduce: every rank sends everything to every other, once */
    bool scattered;   /* broadcast: chunks are dealt out first, in the order of the stages, and then gathered */
} trni_schedule;

TRNI_FN int trni_rank_at(const trni_schedule *s, const trni_cc_channel *c, int position)
{
    if (!c->order) return position;
    const int inside = position % s->block;
    return position - inside + c->order[inside];
}

/* The other way round. */
TRNI_FN int trni_position_of(const trni_schedule *s, const trni_cc_channel *c, int rank)
{
    if (!c->order) return rank;
    const int outside = rank - rank % s->block;
    int inside = 0;
    while (c->order[inside] != rank - outside) inside++;
    return outside + inside;
}

TRNI_FN int trni_stage_digit(const trni_cc_stage *stage, int position)
{
    return position / stage->stride % stage->size;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_SCHEDULE_H */
