/* views.h - views of every kind for the tests: axes in any order in memory, gaps, inputs that broadcast.
 * SPDX-License-Identifier: MIT
 */
#ifndef VIEWS_H
#define VIEWS_H

#include "trnmath/trn_tensor.h"
#include "twin/cases.h"

/* A view's strides in elements: as they stand, or those of packed rows where all are zero. */
static inline void view_strides(const trn_tensor *t, int64_t stride[TRN_MAX_RANK])
{
    bool packed = true;
    int64_t step = 1;
    for (int i = 0; i < t->rank; i++) packed = packed && t->stride[i] == 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = packed ? step : t->stride[i];
        step *= packed ? t->shape[i] : 1;
    }
}

/* Bytes from the first element of a view to the end of its last one; 0 for a view without elements. */
static inline size_t view_bytes(const trn_tensor *t)
{
    int64_t stride[TRN_MAX_RANK], last = 0;
    view_strides(t, stride);
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0) return 0;
        last += (t->shape[i] - 1) * stride[i];
    }
    return (size_t)(last + 1) * trn_format_bytes(t->format);
}

/* Gives a view of known shape its strides; the number of elements that it may span, at most. A stride that is never
 * taken may be absurd, when `absurd` says so. */
static inline int64_t random_strides(trn_tensor *t, bool input, bool absurd, uint64_t *rng)
{
    int order[TRN_MAX_RANK] = { 0 };
    int64_t step = 1 + (cases_one_in(rng, 4) ? cases_below(rng, 3) : 0);
    for (int i = 0; i < t->rank; i++) {
        const int j = cases_below(rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    if (cases_one_in(rng, 2)) /* half of the views keep their axes in row-major order */
        for (int i = 0; i < t->rank; i++) order[i] = t->rank - 1 - i;
    for (int i = 0; i < t->rank; i++) {
        const int axis = order[i];
        t->stride[axis] = input && cases_one_in(rng, 8) ? 0 : step;
        step *= t->shape[axis];
        if (cases_one_in(rng, 5)) step += 1 + cases_below(rng, 3);
        if (absurd && t->shape[axis] == 1 && cases_one_in(rng, 3)) t->stride[axis] = INT64_MAX - 5;
    }
    if (cases_one_in(rng, 5)) memset(t->stride, 0, sizeof t->stride);
    return step;
}

#endif /* VIEWS_H */
