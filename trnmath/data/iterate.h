/* data/iterate.h - one walk over the places of several views at once: their common axes, merged where they can be.
 * Behind trn_mx.h trn_pack.h trn_shard.h. SPDX-License-Identifier: MIT
 *
 * DOES: counts up to seven axes like an odometer, keeping one offset for each of four views, in units of the caller's.
 *     A walk may start anywhere, so that threads can share one out.
 * DOES NOT: touch the data.
 *
 * KNOWN FROM: tests/unit/test_mx.c and test_pack.c, which walk views of every kind.
 */
#ifndef TRNI_DATA_ITERATE_H
#define TRNI_DATA_ITERATE_H

#include "tensor.h"

enum { TRNI_ITERATOR_VIEWS = 4 };

typedef struct trni_iterator_axis {
    int64_t size, step[TRNI_ITERATOR_VIEWS]; /* a step for each view, in its own unit */
} trni_iterator_axis;

typedef struct trni_iterator {
    int rank;
    int64_t places;                            /* product of the sizes */
    trni_iterator_axis axis[TRN_MAX_RANK + 1]; /* outermost first */
} trni_iterator;

typedef struct trni_iterator_place {
    int64_t index[TRN_MAX_RANK + 1], offset[TRNI_ITERATOR_VIEWS];
} trni_iterator_place;

TRNI_FN bool trni_iterator_continues(const trni_iterator_axis *outer, const trni_iterator_axis *inner)
{
    bool same = true;
    for (int v = 0; v < TRNI_ITERATOR_VIEWS; v++) same = same && outer->step[v] == inner->step[v] * inner->size;
    return same;
}

/* One more axis inside the others; where it continues its neighbour in all views, the two become one. */
TRNI_FN void trni_iterator_push(trni_iterator *w, trni_iterator_axis inner)
{
    if (w->rank == 0) w->places = 1;
    w->places *= inner.size;
    if (w->rank && trni_iterator_continues(&w->axis[w->rank - 1], &inner)) {
        inner.size *= w->axis[w->rank - 1].size;
        w->rank--;
    }
    w->axis[w->rank++] = inner;
}

TRNI_FN trni_iterator_place trni_iterator_start(const trni_iterator *w, int64_t place)
{
    trni_iterator_place at;
    memset(&at, 0, sizeof at);
    for (int i = w->rank - 1; i >= 0; i--) {
        at.index[i] = place % w->axis[i].size;
        place /= w->axis[i].size;
        for (int v = 0; v < TRNI_ITERATOR_VIEWS; v++) at.offset[v] += at.index[i] * w->axis[i].step[v];
    }
    return at;
}

TRNI_FN void trni_iterator_next(const trni_iterator *w, trni_iterator_place *at)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        const bool wraps = ++at->index[i] == w->axis[i].size;
        const int64_t steps = wraps ? 1 - w->axis[i].size : 1;
        for (int v = 0; v < TRNI_ITERATOR_VIEWS; v++) at->offset[v] += steps * w->axis[i].step[v];
        if (!wraps) return;
        at->index[i] = 0;
    }
}

#endif /* TRNI_DATA_ITERATE_H */
