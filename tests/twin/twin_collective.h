/* twin_collective.h - collectives one element at a time: each sum as the documents order it, in plain loops.
 * SPDX-License-Identifier: MIT
 *
 * It shares nothing with trnmath/. An algorithm is a list of stages; the value that a rank holds after a stage is
 * folded, recursively, from what the members of its group hold before it. Numbers are the bits of binary32; a rounding
 * is that of twin_number.h, a random word that of twin_random.h. Additions inside a sum are the host's, in binary32.
 */
#ifndef TWIN_COLLECTIVE_H
#define TWIN_COLLECTIVE_H

#include "twin/cases.h"
#include "twin/twin_number.h"
#include "twin/twin_random.h"

enum { COLL_RANKS = 160, COLL_STAGES = 12, COLL_CHANNELS = 8, COLL_SOURCES = 16 };

/* ---- numbers ---- */

/* What a run asks of its arithmetic. */
typedef struct coll_arith {
    const twin_format *wire, *accumulate;
    twin_way way; /* to the wire */
    uint64_t seed, stream;
} coll_arith;

static inline uint32_t coll_add(uint32_t x, uint32_t y)
{
    const volatile float a = cases_float_of(x), b = cases_float_of(y);
    const volatile float sum = a + b;
    return sum != sum ? 0x7fc00000u : cases_bits_of(sum);
}

/* The way that rounds element number `index` of a stream. */
static inline twin_way coll_way(const coll_arith *m, uint64_t stream, uint64_t index)
{
    twin_way way = m->way;
    if (way.mode == TWIN_STOCHASTIC) way.random = twin_random_bits(m->seed, stream, index, way.random_bits);
    return way;
}

static inline uint32_t coll_encode(const twin_format *f, uint32_t bits, twin_way way)
{
    const twin_number x = twin_from_f32(bits);
    return f == &twin_formats[TWIN_F32] ? bits : twin_encode(f, &x, way);
}

static inline uint32_t coll_decode(const twin_format *f, uint32_t code)
{
    const twin_number x = twin_decode(f, code);
    return f == &twin_formats[TWIN_F32] ? code : twin_to_f32(&x);
}

/* From one format to another, as a cast does it. */
static inline uint32_t coll_cast(const twin_format *to, const twin_format *from, uint32_t code, twin_way way)
{
    return to == from ? code : coll_encode(to, coll_decode(from, code), way);
}

/* One step's sum: each addition rounded to the accumulator, the last one to the wire. */
static inline uint32_t coll_sum(const coll_arith *m, const uint32_t *x, int count, uint64_t stream, uint64_t index)
{
    twin_way nearest = twin_plain(TWIN_NEAREST_EVEN);
    uint32_t sum = x[0];
    nearest.saturate = m->way.saturate;
    for (int i = 1; i < count; i++)
        sum = coll_decode(m->accumulate, coll_encode(m->accumulate, coll_add(sum, x[i]), nearest));
    return count > 1 ? coll_decode(m->wire, coll_encode(m->wire, sum, coll_way(m, stream, index))) : sum;
}

/* ---- schedules ---- */

typedef enum coll_fold { FOLD_UP, FOLD_DOWN, FOLD_BOTH, FOLD_DIRECT, FOLD_PAIRS_UP, FOLD_PAIRS_DOWN } coll_fold;

typedef struct coll_stage {
    coll_fold how;
    int size, stride;
} coll_stage;

typedef struct coll_channel {
    double share;
    int stages;
    coll_stage stage[COLL_STAGES];
    int rank[COLL_RANKS]; /* at each position */
} coll_channel;

typedef struct coll_plan {
    int ranks, channels;
    coll_channel channel[COLL_CHANNELS];
} coll_plan;

static inline int coll_steps(const coll_stage *s)
{
    if (s->how == FOLD_DIRECT) return 1;
    return s->how == FOLD_UP || s->how == FOLD_DOWN ? s->size - 1 : s->size / 2;
}

/* ---- one element ---- */

typedef struct coll_element {
    const coll_arith *arith;
    const coll_plan *plan;
    const coll_channel *channel;
    const uint32_t *contribution; /* [ranks], rounded to the wire already */
    uint64_t index;               /* in the buffer */
    bool second;                  /* of the halves of a channel */
    int owner;                    /* its position */
} coll_element;

/* Who writes which sum: the member of a group, in a step of the whole reduction. */
typedef struct coll_place {
    const coll_element *e;
    const coll_stage *s;
    int base, step;
} coll_place;

static inline uint32_t coll_sum_at(const coll_place *at, const uint32_t *x, int count, int member, int step,
                                   uint64_t word)
{
    const int writer = at->e->channel->rank[at->base + member * at->s->stride], ranks = at->e->plan->ranks;
    const uint64_t stream = at->e->arith->stream + (uint64_t)ranks * (uint64_t)(at->step + step + 1) + (uint64_t)writer;
    return coll_sum(at->e->arith, x, count, stream, at->e->index + word);
}

static inline int coll_mod(int i, int n) { return (i % n + n) % n; }

/* The partial begins at the next member and is folded to the left all around. */
static inline uint32_t coll_ring(const coll_place *at, const uint32_t *m, int v, int way)
{
    const int n = at->s->size;
    uint32_t partial = m[coll_mod(v + way, n)];
    for (int k = 0; k < n - 1; k++) {
        const int here = coll_mod(v + way * (k + 2), n);
        const uint32_t two[2] = { partial, m[here] };
        partial = coll_sum_at(at, two, 2, here, k, 0);
    }
    return partial;
}

/* An arm of `length` members that comes in to v from one side: `way` is where it lies. It ends in the step before the
 * last of `steps`. */
static inline uint32_t coll_arm(const coll_place *at, const uint32_t *m, int v, int way, int length, int steps)
{
    const int n = at->s->size;
    uint32_t partial = m[coll_mod(v + way * length, n)];
    for (int far = length - 1; far >= 1; far--) {
        const int here = coll_mod(v + way * far, n);
        const uint32_t two[2] = { partial, m[here] };
        partial = coll_sum_at(at, two, 2, here, steps - 1 - far, 0);
    }
    return partial;
}

/* (from below + v's own) + from above; of an even number the first half takes the longer way from below. */
static inline uint32_t coll_both(const coll_place *at, const uint32_t *m, int v)
{
    const int n = at->s->size, steps = n / 2, shorter = (n - 1) / 2;
    const int below = at->e->second ? shorter : steps, above = at->e->second ? steps : shorter;
    if (n == 2) {
        const uint32_t two[2] = { m[1 - v], m[v] };
        return coll_sum_at(at, two, 2, v, 0, 0);
    }
    const uint32_t three[3] = { coll_arm(at, m, v, -1, below, steps), m[v], coll_arm(at, m, v, 1, above, steps) };
    return coll_sum_at(at, three, 3, v, steps - 1, 0);
}

/* All members ascending, 16 at a time; the sums of 16 are numbered on, each with words of its own. */
static inline uint32_t coll_direct(const coll_place *at, const uint32_t *m, int v)
{
    uint32_t x[COLL_RANKS];
    int left = at->s->size, node = 0;
    memcpy(x, m, sizeof *x * (size_t)left);
    while (left > COLL_SOURCES) {
        int sums = 0;
        for (int i = 0; i < left; i += COLL_SOURCES, sums++) {
            const int count = left - i < COLL_SOURCES ? left - i : COLL_SOURCES;
            x[sums] = coll_sum_at(at, x + i, count, v, 0, (uint64_t)++node << 48);
        }
        left = sums;
    }
    return coll_sum_at(at, x, left, v, 0, 0);
}

/* From pair to pair: (partial + first) + second. */
static inline uint32_t coll_pairs(const coll_place *at, const uint32_t *m, int v, int way)
{
    const int pairs = at->s->size / 2;
    uint32_t partial = 0;
    for (int k = 0; k < pairs; k++) {
        const int first = 2 * coll_mod(v / 2 + way * (k + 1), pairs), writer = k == pairs - 1 ? v : first;
        const uint32_t three[3] = { partial, m[first], m[first + 1] };
        partial = k ? coll_sum_at(at, three, 3, writer, k, 0) : coll_sum_at(at, three + 1, 2, writer, k, 0);
    }
    return partial;
}

static inline uint32_t coll_folded(const coll_place *at, const uint32_t *m, int v)
{
    switch (at->s->how) {
    case FOLD_UP: return coll_ring(at, m, v, 1);
    case FOLD_DOWN: return coll_ring(at, m, v, -1);
    case FOLD_BOTH: return coll_both(at, m, v);
    case FOLD_PAIRS_UP: return coll_pairs(at, m, v, 1);
    case FOLD_PAIRS_DOWN: return coll_pairs(at, m, v, -1);
    case FOLD_DIRECT:
    default: return coll_direct(at, m, v);
    }
}

/* What the rank at a position holds of the element after the first `stages` stages. */
static inline uint32_t coll_held(const coll_element *e, int stages, int position)
{
    uint32_t m[COLL_RANKS];
    const coll_channel *c = e->channel;
    if (stages == 0) return e->contribution[c->rank[position]];
    const coll_stage *s = &c->stage[stages - 1];
    const int v = position / s->stride % s->size, base = position - v * s->stride;
    coll_place at = { e, s, base, 0 };
    for (int i = 0; i < stages - 1; i++) at.step += coll_steps(&c->stage[i]);
    for (int i = 0; i < s->size; i++) m[i] = coll_held(e, stages - 1, base + i * s->stride);
    return coll_folded(&at, m, v);
}

/* ---- where an element belongs ---- */

/* Equal shares, rounded up to whole granules; one larger than all is all. */
static inline int64_t coll_share_of(int64_t n, int64_t granule, int ranks)
{
    const int64_t most = granule > n ? n : granule, g = most > 1 ? most : 1, granules = n / g + (n % g != 0);
    return (granules / ranks + (granules % ranks != 0)) * g;
}

static inline int64_t coll_cut(const coll_plan *p, int channels, int64_t n)
{
    double shares = 0;
    for (int k = 0; k < channels; k++) shares += p->channel[k].share;
    return channels == p->channels ? n : (int64_t)floor(shares * (double)n + 0.5);
}

static inline bool coll_has_halves(const coll_channel *c)
{
    for (int i = 0; i < c->stages; i++)
        if (c->stage[i].how == FOLD_BOTH && c->stage[i].size % 2 == 0) return true;
    return false;
}

/* The sum of everybody's element `index` of n. */
static inline uint32_t coll_reduced(const coll_arith *m, const coll_plan *p, const uint32_t *contribution, int64_t n,
                                    int64_t granule, int64_t index)
{
    const int64_t share = coll_share_of(n, granule, p->ranks), chunk = index / share, first = chunk * share;
    const int64_t length = n - first < share ? n - first : share, at = index - first;
    int k = 0, owner = 0;
    while (at >= coll_cut(p, k + 1, length)) k++;
    const coll_channel *c = &p->channel[k];
    const int64_t begin = coll_cut(p, k, length), end = coll_cut(p, k + 1, length);
    while (c->rank[owner] != chunk) owner++;
    const bool second = coll_has_halves(c) && at >= begin + (end - begin) / 2;
    const coll_element e = { m, p, c, contribution, (uint64_t)index, second, owner };
    return coll_held(&e, c->stages, owner);
}

#endif /* TWIN_COLLECTIVE_H */
