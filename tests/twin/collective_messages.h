/* collective_messages.h - collectives as messages: one buffer for each rank, and in every step who sends what to whom.
 * SPDX-License-Identifier: MIT
 *
 * It shares nothing with trnmath/. What is sent in a step is copied out of the senders' buffers before anything of that
 * step is received; a receiver sums what came in the order in which it is listed, and writes the sum over what it held.
 * So a step that read what the same step writes, or a partial sum that went astray, would show. Who sends to whom
 * is what trn_schedule.h says in words; which stages there are is twin_collective_plan.h's; an addition and a rounding
 * are twin_collective.h's.
 */
#ifndef COLLECTIVE_MESSAGES_H
#define COLLECTIVE_MESSAGES_H

#include "twin/twin_collective_plan.h"

enum { MSG_ROOM = 1 << 20, MSG_RECEIPTS = 1 << 16 };

/* What one rank gets in a step: `count` words of each source, one source after the other. */
typedef struct msg_receipt {
    int to, sources;
    int64_t first, count;
    size_t sent;
} msg_receipt;

typedef struct msg_network {
    const coll_arith *arith; /* NULL: nothing is summed */
    int ranks;
    int64_t room; /* words of a rank's buffer */
    int receipts;
    size_t sent;
} msg_network;

static uint32_t msg_held[MSG_ROOM], msg_sent[MSG_ROOM];
static msg_receipt msg_posted[MSG_RECEIPTS];

static inline uint32_t *msg_buffer(const msg_network *net, int rank) { return msg_held + rank * net->room; }

/* Buffers of nothing in particular. */
static inline msg_network msg_begin(const coll_arith *arith, int ranks, int64_t room)
{
    const msg_network net = { arith, ranks, room, 0, 0 };
    if (ranks > COLL_RANKS || ranks * room > MSG_ROOM) abort();
    memset(msg_held, 0xa5, sizeof *msg_held * (size_t)(ranks * room));
    return net;
}

/* ---- a step ---- */

/* The ranks `from` send words [first, first + count) of their buffers to rank `to`, each its own. */
static inline void msg_post(msg_network *net, int to, const int *from, int sources, int64_t first, int64_t count)
{
    const msg_receipt r = { to, sources, first, count, net->sent };
    if (!count) return;
    if (net->receipts == MSG_RECEIPTS || net->sent + (size_t)(sources * count) > MSG_ROOM) abort();
    for (int i = 0; i < sources; i++) {
        memcpy(msg_sent + net->sent, msg_buffer(net, from[i]) + first, sizeof *msg_sent * (size_t)count);
        net->sent += (size_t)count;
    }
    msg_posted[net->receipts++] = r;
}

/* 16 at a time, as the DMA engines sum; partial sum i takes its random words (i + 1) 2^48 further on. */
static inline uint32_t msg_sum(const msg_network *net, uint32_t *x, int count, uint64_t stream, uint64_t index)
{
    uint64_t partials = 0;
    while (count > 16) {
        int sums = 0;
        for (int at = 0; at < count; at += 16) {
            const int some = count - at < 16 ? count - at : 16;
            x[sums++] = coll_sum(net->arith, x + at, some, stream, index + (++partials << 48));
        }
        count = sums;
    }
    return coll_sum(net->arith, x, count, stream, index);
}

static inline void msg_receive(const msg_network *net, const msg_receipt *r, int step)
{
    for (int64_t e = 0; e < r->count; e++) {
        uint32_t x[COLL_RANKS];
        for (int i = 0; i < r->sources; i++) x[i] = msg_sent[r->sent + (size_t)(i * r->count + e)];
        uint32_t *word = msg_buffer(net, r->to) + r->first + e;
        if (r->sources == 1)
            *word = x[0];
        else
            *word = msg_sum(net, x, r->sources,
                            net->arith->stream + (uint64_t)net->ranks * (uint64_t)(step + 1) + (uint64_t)r->to,
                            (uint64_t)(r->first + e));
    }
}

/* All that was posted arrives. */
static inline void msg_step(msg_network *net, int step)
{
    for (int i = 0; i < net->receipts; i++) msg_receive(net, &msg_posted[i], step);
    net->receipts = 0;
    net->sent = 0;
}

/* ---- one block in one group ---- */

/* Words [first, first + count), which begin or end at member v of the group whose member 0 is at position base. */
typedef struct msg_block {
    msg_network *net;
    const coll_channel *c;
    const coll_stage *s;
    int base, v;
    bool second; /* of the two halves of a channel */
    int64_t first, count;
} msg_block;

static inline int msg_rank(const msg_block *b, int member)
{
    return b->c->rank[b->base + coll_mod(member, b->s->size) * b->s->stride];
}

static inline void msg_to(const msg_block *b, int to, const int *members, int sources)
{
    int from[COLL_RANKS];
    for (int i = 0; i < sources; i++) from[i] = msg_rank(b, members[i]);
    msg_post(b->net, msg_rank(b, to), from, sources, b->first, b->count);
}

static inline void msg_copy(const msg_block *b, int from, int to) { msg_to(b, to, &from, 1); }

/* How far the block comes from one side, or goes to it, where a ring is used both ways: half way round; where one way
 * must be longer, it is the one below for the block's first half. */
static inline int msg_arm(const msg_block *b, int side)
{
    const int n = b->s->size;
    return (side < 0) != b->second ? n / 2 : (n - 1) / 2;
}

static inline bool msg_is_up(const coll_stage *s) { return s->how != FOLD_DOWN && s->how != FOLD_PAIRS_DOWN; }

/* ---- reduce-scatter: the sum arrives at v ---- */

static inline void msg_reduce_both(const msg_block *b, int step)
{
    const int n = b->s->size, v = b->v, last = n / 2 - 1, three[3] = { v - 1, v, v + 1 };
    if (step == last) {
        msg_to(b, v, three, n > 2 ? 3 : 2);
        return;
    }
    for (int side = -1; side <= 1; side += 2) {
        const int far = last + 1 - step; /* that the partial sum is away, if it has begun */
        const int two[2] = { v + side * far, v + side * (far - 1) };
        if (far <= msg_arm(b, side)) msg_to(b, two[1], two, 2);
    }
}

static inline void msg_reduce_pairs(const msg_block *b, int step)
{
    const int pairs = b->s->size / 2, way = msg_is_up(b->s) ? 1 : -1;
    const int pair = coll_mod(b->v / 2 + way * (step + 1), pairs), before = coll_mod(pair - way, pairs);
    const int three[3] = { 2 * before, 2 * pair, 2 * pair + 1 }, to = step == pairs - 1 ? b->v : 2 * pair;
    msg_to(b, to, step ? three : three + 1, step ? 3 : 2);
}

static inline void msg_reduce_block(const msg_block *b, int step)
{
    int all[COLL_RANKS];
    const int way = msg_is_up(b->s) ? 1 : -1, two[2] = { b->v + way * (step + 1), b->v + way * (step + 2) };
    for (int i = 0; i < b->s->size; i++) all[i] = i;
    switch (b->s->how) {
    case FOLD_UP:
    case FOLD_DOWN: msg_to(b, two[1], two, 2); break;
    case FOLD_BOTH: msg_reduce_both(b, step); break;
    case FOLD_PAIRS_UP:
    case FOLD_PAIRS_DOWN: msg_reduce_pairs(b, step); break;
    case FOLD_DIRECT:
    default: msg_to(b, b->v, all, b->s->size); break;
    }
}

/* ---- all-gather: v's block comes to everyone ---- */

/* From the first of a pair to both of the next one. */
static inline void msg_gather_pairs(const msg_block *b, int step)
{
    const int pairs = b->s->size / 2, way = msg_is_up(b->s) ? 1 : -1;
    const int next = coll_mod(b->v / 2 + way * (step + 1), pairs), here = coll_mod(next - way, pairs);
    if (step == 0) msg_copy(b, b->v, b->v ^ 1);
    if (step == pairs - 1) return;
    msg_copy(b, step ? 2 * here : b->v, 2 * next);
    msg_copy(b, step ? 2 * here : b->v, 2 * next + 1);
}

static inline void msg_gather_block(const msg_block *b, int step)
{
    const int v = b->v, way = msg_is_up(b->s) ? 1 : -1;
    switch (b->s->how) {
    case FOLD_UP:
    case FOLD_DOWN: msg_copy(b, v + way * step, v + way * (step + 1)); break;
    case FOLD_BOTH:
        for (int side = -1; side <= 1; side += 2)
            if (step < msg_arm(b, side)) msg_copy(b, v + side * step, v + side * (step + 1));
        break;
    case FOLD_PAIRS_UP:
    case FOLD_PAIRS_DOWN: msg_gather_pairs(b, step); break;
    case FOLD_DIRECT:
    default:
        for (int i = 1; i < b->s->size; i++) msg_copy(b, v, v + i);
        break;
    }
}

/* ---- all blocks, channel by channel and stage by stage ---- */

/* A buffer of n words, of which each rank owns a chunk; or all of which one rank, the root, owns. */
typedef struct msg_payload {
    int64_t n, granule;
    int root; /* -1: none */
} msg_payload;

static inline int msg_digit(const coll_stage *s, int position) { return position / s->stride % s->size; }

static inline int msg_position(const msg_network *net, const coll_channel *c, int rank)
{
    int p = 0;
    while (p < net->ranks && c->rank[p] != rank) p++;
    if (p == net->ranks) abort();
    return p;
}

/* Chunk of an owner. */
static inline void msg_chunk(const msg_network *net, const msg_payload *what, int rank, int64_t *first, int64_t *count)
{
    const int64_t share = coll_share_of(what->n, what->granule, net->ranks);
    *first = what->root >= 0 ? 0 : share * rank < what->n ? share * rank : what->n;
    *count = what->root >= 0 || what->n - *first < share ? what->n - *first : share;
}

typedef void msg_moves(const msg_block *b, int step);

/* One owner's words that channel k carries, in one group. */
static inline void msg_move_owned(const coll_plan *p, int k, msg_block *b, const msg_payload *what, int owner, int step,
                                  msg_moves *moves)
{
    int64_t chunk, count;
    msg_chunk(b->net, what, b->c->rank[owner], &chunk, &count);
    const int64_t begin = coll_cut(p, k, count), end = coll_cut(p, k + 1, count);
    const int64_t middle = coll_has_halves(b->c) ? begin + (end - begin) / 2 : end;
    b->v = msg_digit(b->s, owner);
    for (int half = 0; half < 2; half++) {
        b->second = half == 1;
        b->first = chunk + (half ? middle : begin);
        b->count = half ? end - middle : middle - begin;
        moves(b, step);
    }
}

/* One stage: in every group, the blocks of those owners who have the group's digits of the stages before. */
static inline void msg_stage(msg_network *net, const coll_plan *p, int k, int stage, int first_step,
                             const msg_payload *what, msg_moves *moves)
{
    const coll_channel *c = &p->channel[k];
    msg_block b = { net, c, &c->stage[stage], 0, 0, false, 0, 0 };
    for (int step = 0; step < coll_steps(b.s); step++) {
        for (b.base = 0; b.base < net->ranks; b.base++)
            for (int owner = 0; owner < net->ranks && msg_digit(b.s, b.base) == 0; owner++) {
                bool agree = what->root < 0 || c->rank[owner] == what->root;
                for (int i = 0; i < stage; i++)
                    agree = agree && msg_digit(&c->stage[i], owner) == msg_digit(&c->stage[i], b.base);
                if (agree) msg_move_owned(p, k, &b, what, owner, step, moves);
            }
        msg_step(net, first_step + step);
    }
}

/* Every chunk's sum at its owner. */
static inline void msg_reduce_scatter(msg_network *net, const coll_plan *p, const msg_payload *what)
{
    for (int k = 0; k < p->channels; k++) {
        const coll_channel *c = &p->channel[k];
        for (int i = 0, steps = 0; i < c->stages; steps += coll_steps(&c->stage[i++]))
            msg_stage(net, p, k, i, steps, what, msg_reduce_block);
    }
}

/* What each owner holds of its own, at everyone. */
static inline void msg_all_gather(msg_network *net, const coll_plan *p, const msg_payload *what)
{
    for (int k = 0; k < p->channels; k++)
        for (int i = p->channel[k].stages - 1; i >= 0; i--) msg_stage(net, p, k, i, 0, what, msg_gather_block);
}

/* ---- all-to-all ---- */

/* Members from v to the one that a parcel wants, the way it goes: + is up. */
static inline int msg_distance(const coll_stage *s, int v, int wanted)
{
    const int up = coll_mod(wanted - v, s->size), down = s->size - up;
    if (s->how == FOLD_DIRECT || up == 0) return up ? wanted - v : 0;
    return s->how == FOLD_UP || (s->how == FOLD_BOTH && up <= down) ? up : -down;
}

/* One hop of words [first, first + count), which go from rank to rank: digits of earlier stages are right already. */
static inline void msg_hop(msg_network *net, const coll_channel *c, int stage, int step, int from, int to,
                           int64_t first, int64_t count)
{
    const coll_stage *s = &c->stage[stage];
    const int start = msg_position(net, c, from), goal = msg_position(net, c, to);
    int base = start;
    for (int i = 0; i < stage; i++)
        base += (msg_digit(&c->stage[i], goal) - msg_digit(&c->stage[i], start)) * c->stage[i].stride;
    const int v = msg_digit(s, start), distance = msg_distance(s, v, msg_digit(s, goal)), way = distance < 0 ? -1 : 1;
    msg_block b = { net, c, s, base - v * s->stride, v, false, first, count };
    if (s->how == FOLD_DIRECT && distance && step == 0) msg_copy(&b, v, v + distance);
    if (s->how != FOLD_DIRECT && step < distance * way) msg_copy(&b, v + way * step, v + way * (step + 1));
}

/* Where the words lie that rank `from` sends to rank `to`, in everybody's buffer. */
typedef int64_t msg_parcel(const void *user, int from, int to, int64_t *first);

static inline void msg_all_to_all(msg_network *net, const coll_plan *p, msg_parcel *parcel, const void *user)
{
    for (int k = 0; k < p->channels; k++)
        for (int i = 0; i < p->channel[k].stages; i++)
            for (int step = 0; step < coll_steps(&p->channel[k].stage[i]); step++) {
                for (int pair = 0; pair < net->ranks * net->ranks; pair++) {
                    int64_t first;
                    const int from = pair / net->ranks, to = pair % net->ranks;
                    const int64_t n = parcel(user, from, to, &first);
                    const int64_t begin = coll_cut(p, k, n), end = coll_cut(p, k + 1, n);
                    if (end > begin) msg_hop(net, &p->channel[k], i, step, from, to, first + begin, end - begin);
                }
                msg_step(net, 0);
            }
}

#endif /* COLLECTIVE_MESSAGES_H */
