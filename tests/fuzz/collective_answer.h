/* collective_answer.h - what a collective should leave in every byte, by messages between buffers.
 * SPDX-License-Identifier: MIT
 *
 * One buffer for each rank of collective_messages.h: reductions hold numbers (binary32), all else the wire's codes.
 */
#ifndef COLLECTIVE_ANSWER_H
#define COLLECTIVE_ANSWER_H

#include "fuzz/collective_problem.h"
#include "twin/collective_messages.h"

/* ---- which schedules it may be ---- */

enum { MOST_PLANS = INNERS * OUTERS };

static inline bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

/* Has the group a schedule of this algorithm? */
static inline bool fits(const problem *p, trn_algorithm algorithm)
{
    bool powers = true;
    for (int d = 0; d < p->box.dims; d++) powers = powers && is_power_of_two(p->box.dim[d].size);
    switch (algorithm) {
    case TRN_RECURSIVE_DOUBLING: return powers;
    case TRN_KANGARING: return p->cores % 2 == 0 && p->a.op <= TRN_ALL_REDUCE;
    case TRN_SWITCH_DIRECT: return box_joined(&p->net, p->chips, p->count, p->groups);
    case TRN_HIERARCHICAL: return p->box.dims > 1;
    case TRN_POINT_TO_POINT: return false;
    default: return true;
    }
}

static inline coll_algorithm in_twins_words(trn_algorithm algorithm, bool single_step)
{
    switch (algorithm) {
    case TRN_BIDIRECTIONAL_RING: return COLL_BOTH_WAYS;
    case TRN_MULTI_RING: return COLL_RINGS;
    case TRN_DIMENSION_WISE: return COLL_DIMENSIONS;
    case TRN_RECURSIVE_DOUBLING: return COLL_DOUBLING;
    case TRN_MESH: return single_step ? COLL_SINGLE_STEP : COLL_MESH;
    case TRN_KANGARING: return COLL_PAIRS;
    case TRN_SWITCH_DIRECT: return COLL_SWITCH;
    case TRN_HIERARCHICAL: return COLL_LEVELS;
    default: return COLL_RING;
    }
}

/* Every way of doing the levels: which of them is the cheapest is a question of time, not asked here. */
static inline int plans_of_levels(const problem *p, coll_plan *plan)
{
    const coll_group inside = box_inside(&p->box);
    const int n = p->box.dim[p->box.dims - 1].size;
    int plans = 0;
    for (int way = 0; way < INNERS * OUTERS; way++) {
        const coll_inner inner = (coll_inner)(way % INNERS);
        const coll_outer outer = (coll_outer)(way / INNERS);
        const bool pairs = p->cores % 2 == 0 && p->a.op <= TRN_ALL_REDUCE;
        if (inner == (pairs ? INNER_RINGS : INNER_PAIRS)) continue;
        if (outer != OUTER_RING && n == 2) continue;
        if (outer == OUTER_HALVES && !is_power_of_two(n)) continue;
        memset(&plan[plans], 0, sizeof *plan);
        plan[plans].ranks = p->ranks;
        coll_plan_levels(&plan[plans++], &p->box, &inside, inner, outer);
    }
    return plans;
}

/* What AUTO takes is what it says that it costs. */
static inline int plans_of(const problem *p, coll_plan *plan)
{
    trn_algorithm algorithm = p->a.algorithm;
    bool single_step = p->a.single_step;
    if (p->a.op >= TRN_PERMUTE) return 1;
    if (algorithm == TRN_ALGORITHM_AUTO) {
        trn_collective_args a = p->a;
        trn_cost cost;
        a.bytes = p->elements * (int64_t)bytes_of(p->wire);
        if (trn_collective_cost(&a, &cost) != TRN_OK) fail_msg("what AUTO takes: %s", p->error.text);
        if (!fits(p, cost.algorithm)) fail_msg("AUTO takes %s", trn_algorithm_name(cost.algorithm));
        algorithm = cost.algorithm;
        single_step = cost.single_step;
    }
    if (algorithm == TRN_HIERARCHICAL) return plans_of_levels(p, plan);
    *plan = coll_plan_of(&p->box, in_twins_words(algorithm, single_step));
    return 1;
}

/* ---- one group ---- */

static inline const trn_tensor *source_of(const problem *p, int group, int rank)
{
    return &p->src[group * p->ranks + rank];
}

/* Words [first, first + count) of a rank's buffer arrive in its view, from its first element `at` on. */
static inline void arrive(const problem *p, const msg_network *net, int group, int rank, int64_t first, int64_t count,
                          int64_t at, bool numbers)
{
    const trn_tensor *dst = &p->dst[group * p->ranks + rank];
    const coll_arith *m = net->arith;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t word = msg_buffer(net, rank)[first + i];
        expect_received(m, dst, at + i, numbers ? coll_encode(m->wire, word, twin_plain(TWIN_NEAREST_EVEN)) : word);
    }
}

static inline void answer_reduction(const problem *p, const coll_plan *plan, const coll_arith *m, int group)
{
    msg_network net = msg_begin(m, p->ranks, p->elements);
    const msg_payload what = { p->elements, p->a.granule, -1 };
    for (int r = 0; r < p->ranks; r++)
        for (int64_t i = 0; i < p->elements; i++)
            msg_buffer(&net, r)[i] = coll_decode(m->wire, sent(m, source_of(p, group, r), r, i));
    msg_reduce_scatter(&net, plan, &what);
    if (p->a.op == TRN_ALL_REDUCE) msg_all_gather(&net, plan, &what);
    for (int r = 0; r < p->ranks; r++) {
        int64_t first = 0;
        const int64_t count = p->a.op == TRN_ALL_REDUCE ? p->elements : chunk_of(p, r, &first);
        arrive(p, &net, group, r, first, count, 0, true);
    }
}

static inline void answer_gather(const problem *p, const coll_plan *plan, const coll_arith *m, int group)
{
    msg_network net = msg_begin(m, p->ranks, p->elements);
    const msg_payload what = { p->elements, p->a.granule, p->a.op == TRN_BROADCAST ? p->a.root : -1 };
    for (int r = 0; r < p->ranks; r++) {
        int64_t first;
        if (p->a.op != TRN_BROADCAST)
            chunk_of(p, r, &first);
        else
            first = 0;
        for (int64_t i = 0; i < given(p, r); i++)
            msg_buffer(&net, r)[first + i] = sent(m, source_of(p, group, r), r, i);
    }
    msg_all_gather(&net, plan, &what);
    for (int r = 0; r < p->ranks; r++) arrive(p, &net, group, r, 0, p->elements, 0, false);
}

/* Words of the largest source. */
static inline int64_t largest_source(const problem *p)
{
    int64_t most = 0;
    for (int r = 0; r < p->ranks; r++)
        if (given(p, r) > most) most = given(p, r);
    return most;
}

/* In every buffer, rank i's source begins at word i * largest_source. */
static int64_t exchanged(const void *user, int from, int to, int64_t *first)
{
    const problem *p = (const problem *)user;
    int64_t in, out;
    const int64_t count = parcel_of(p, from, to, &in, &out);
    *first = largest_source(p) * from + in;
    return count;
}

static inline void answer_exchange(const problem *p, const coll_plan *plan, const coll_arith *m, int group)
{
    const int64_t most = largest_source(p);
    msg_network net = msg_begin(m, p->ranks, most * p->ranks);
    for (int r = 0; r < p->ranks; r++)
        for (int64_t i = 0; i < given(p, r); i++)
            msg_buffer(&net, r)[most * r + i] = sent(m, source_of(p, group, r), r, i);
    msg_all_to_all(&net, plan, exchanged, p);
    for (int pair = 0; pair < p->ranks * p->ranks; pair++) {
        int64_t in, out, first;
        const int from = pair / p->ranks, to = pair % p->ranks;
        const int64_t count = parcel_of(p, from, to, &in, &out);
        exchanged(p, from, to, &first);
        arrive(p, &net, group, to, first, count, out, false);
    }
}

static inline void answer_pairs(const problem *p, const coll_arith *m, int group)
{
    msg_network net = msg_begin(m, p->ranks, p->elements);
    for (int r = 0; r < p->ranks; r++)
        for (int64_t i = 0; i < given(p, r); i++) msg_buffer(&net, r)[i] = sent(m, source_of(p, group, r), r, i);
    for (int r = 0; r < p->ranks; r++)
        if (target_of(p, r) >= 0) msg_post(&net, target_of(p, r), &r, 1, 0, p->elements);
    msg_step(&net, 0);
    for (int r = 0; r < p->ranks; r++)
        if (received(p, r) >= 0) arrive(p, &net, group, r, 0, p->elements, 0, false);
}

/* `want` becomes what memory should be. */
static inline void answer(const problem *p, const coll_plan *plan)
{
    for (int g = 0; g < p->groups; g++) {
        const coll_arith m = arith_of(&p->a, p->wire, g);
        switch (p->a.op) {
        case TRN_REDUCE_SCATTER:
        case TRN_ALL_REDUCE: answer_reduction(p, plan, &m, g); break;
        case TRN_ALL_TO_ALL: answer_exchange(p, plan, &m, g); break;
        case TRN_ALL_GATHER:
        case TRN_BROADCAST: answer_gather(p, plan, &m, g); break;
        default: answer_pairs(p, &m, g); break;
        }
    }
}

#endif /* COLLECTIVE_ANSWER_H */
