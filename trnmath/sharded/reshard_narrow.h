/* sharded/reshard_narrow.h - the moves that the goal suggests, where every move would be too many.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: of the moves of sharded/reshard_moves.h those that put axes where the goal has them, in its order, or take away
 *     what it does not have: their number grows with the square of the axes, that of all with its factorial. A goal is
 *     always reached: all can be gathered, then cut.
 * DOES NOT: promise the shortest way.
 *
 * KNOWN FROM: definitions.
 *
 *     slice            the goal's next axes of a dimension that so far is as the goal's begins; all that are free, so
 *                      that more devices take part in what comes next
 *     all_gather       any number of axes off one dimension; of all, what the goal does not have there; everything
 *     all_reduce       the axes of the sum that the goal leaves whole; the others; all
 *     reduce_scatter   those, or those that the goal has in the dimension; in the goal's order
 *     all_to_all       axes that the goal has in the other dimension
 *     permute          dimensions begin as the goal's do; what is left over stays, or lies as the goal has it elsewhere
 */
#ifndef TRNI_SHARDED_RESHARD_NARROW_H
#define TRNI_SHARDED_RESHARD_NARROW_H

#include "reshard_moves.h"

/* Axes of the goal's dimension that come after those that are there; 0 where these are not its beginning. */
TRNI_FN int trni_goal_next(const trni_search *s, const trn_pspec *spec, int dim, const int **next)
{
    const trn_pspec_dim *is = &spec->dim[dim], *wanted = &s->to.dim[dim];
    *next = wanted->axis + is->axes;
    if (is->axes >= wanted->axes || memcmp(is->axis, wanted->axis, sizeof is->axis[0] * (size_t)is->axes)) return 0;
    return wanted->axes - is->axes;
}

/* The axes of a set, in the goal's order where it has them, then by number. */
TRNI_FN trni_transit trni_in_order(const trni_search *s, trni_transit m, unsigned set, int dim)
{
    for (int e = 0; e < s->rank; e++) {
        const trn_pspec_dim *wanted = &s->to.dim[(dim + e) % s->rank];
        for (int i = 0; i < wanted->axes; i++)
            if (set >> wanted->axis[i] & 1u) m.axis[m.axes++] = wanted->axis[i];
    }
    for (int a = 0; a < s->mesh->axes; a++)
        if (set >> a & 1u && trn_pspec_axis_dim(&s->to, a) < 0) m.axis[m.axes++] = a;
    return m;
}

TRNI_FN trn_status trni_narrow_slices(trni_search *s, int at, const trn_pspec *spec, int dim)
{
    const int *next;
    const int count = trni_goal_next(s, spec, dim, &next);
    const unsigned free = trni_unused(s, spec);
    trni_transit m = trni_transit_of(TRN_RESHARD_SLICE, TRN_ALL_GATHER);
    trn_status status = TRN_OK;
    for (int i = 0; i < count && free >> next[i] & 1u && !status; i++) {
        m.axis[m.axes++] = next[i];
        status = trni_try_slice(s, at, spec, dim, &m);
    }
    const unsigned set[] = { free, free & trni_replicated(&s->to, s->mesh) };
    for (int i = 0; i < 2 && !status; i++) {
        m = trni_in_order(s, trni_transit_of(TRN_RESHARD_SLICE, TRN_ALL_GATHER), set[i], dim);
        status = trni_try_slice(s, at, spec, dim, &m);
    }
    return status;
}

TRNI_FN trn_status trni_narrow_gathers(trni_search *s, int at, const trn_pspec *spec)
{
    int all[TRN_MAX_RANK], wrong[TRN_MAX_RANK];
    trn_status status = TRN_OK;
    for (int d = 0; d < s->rank && !status; d++) {
        int take[TRN_MAX_RANK] = { 0 };
        all[d] = spec->dim[d].axes;
        wrong[d] = all[d] - trni_goal_common(s, spec, d);
        while (take[d]++ < all[d] && !status) status = trni_try_gather(s, at, spec, take);
    }
    if (!status) status = trni_try_gather(s, at, spec, wrong);
    return status ? status : trni_try_gather(s, at, spec, all);
}

TRNI_FN trn_status trni_narrow_exchanges(trni_search *s, int at, const trn_pspec *spec)
{
    trn_status status = TRN_OK;
    for (int d = 0; d < s->rank; d++)
        for (int e = 0; e < s->rank && !status; e++)
            for (int count = 1; count <= spec->dim[d].axes && !status; count++) {
                if (trn_pspec_axis_dim(&s->to, spec->dim[d].axis[spec->dim[d].axes - count]) != e) break;
                status = trni_try_exchange(s, at, spec, d, count, e);
            }
    return status;
}

/* Axes of the sum that are to be closed, and are nowhere in the goal. */
TRNI_FN unsigned trni_closes_whole(const trni_search *s, const trn_pspec *spec)
{
    return spec->sum & s->closes & trni_replicated(&s->to, s->mesh);
}

TRNI_FN trn_status trni_narrow_reduces(trni_search *s, int at, const trn_pspec *spec)
{
    const unsigned all = spec->sum & s->closes, whole = trni_closes_whole(s, spec);
    trn_status status = trni_try_reduce(s, at, spec, whole);
    if (!status && whole != all) status = trni_try_reduce(s, at, spec, all & ~whole);
    return !status && whole && whole != all ? trni_try_reduce(s, at, spec, all) : status;
}

TRNI_FN trn_status trni_narrow_scatters(trni_search *s, int at, const trn_pspec *spec, int dim)
{
    const int *next;
    const int count = trni_goal_next(s, spec, dim, &next);
    const unsigned all = spec->sum & s->closes, whole = trni_closes_whole(s, spec);
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_REDUCE_SCATTER);
    unsigned here = 0;
    trn_status status = TRN_OK;
    for (int i = 0; i < s->to.dim[dim].axes; i++) here |= all & 1u << s->to.dim[dim].axis[i];
    for (int i = 0; i < count && all >> next[i] & 1u && !status; i++) {
        m.axis[m.axes++] = next[i];
        status = trni_try_scatter(s, at, spec, dim, &m);
    }
    const unsigned set[] = { here, whole, all };
    for (int i = 0; i < 3 && !status; i++) {
        m = trni_in_order(s, trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_REDUCE_SCATTER), set[i], dim);
        status = trni_try_scatter(s, at, spec, dim, &m);
    }
    return status;
}

/* ---- permutations ---- */

/* Cuts a dimension by one more axis, if there are as many parts to come and the axis is left. */
TRNI_FN void trni_fill_one(const trni_search *s, trn_pspec *to, int dim, int parts, int axis, unsigned *left)
{
    const int there = trn_pspec_parts(to, s->mesh, dim);
    if (!(*left >> axis & 1u) || there == parts || parts % (there * s->mesh->axis[axis].size)) return;
    to->dim[dim].axis[to->dim[dim].axes++] = axis;
    *left &= ~(1u << axis);
}

TRNI_FN void trni_fill_list(const trni_search *s, trn_pspec *to, int dim, int parts, const trn_pspec_dim *list,
                            unsigned *left)
{
    for (int i = 0; i < list->axes; i++) trni_fill_one(s, to, dim, parts, list->axis[i], left);
}

/* Way 0: what is left over are the axes that are there; 1: those of the goal's other dimensions, in its order; 2: those
 * that it does not cut by; then any. False where the parts do not come out even. */
TRNI_FN bool trni_fill(const trni_search *s, const trn_pspec *from, int way, trn_pspec *to)
{
    unsigned left = trni_movable(s, from);
    memset(to, 0, sizeof *to);
    to->rank = s->rank;
    to->sum = from->sum;
    for (int d = 0; d < s->rank; d++) {
        const int parts = trn_pspec_parts(from, s->mesh, d);
        const trn_pspec_dim *wanted = &s->to.dim[d];
        for (int i = 0; i < wanted->axes && trn_pspec_parts(to, s->mesh, d) < parts; i++) {
            if (!(left >> wanted->axis[i] & 1u)) break;
            trni_fill_one(s, to, d, parts, wanted->axis[i], &left);
        }
    }
    for (int d = 0; d < s->rank; d++) {
        const int parts = trn_pspec_parts(from, s->mesh, d);
        if (way == 0) trni_fill_list(s, to, d, parts, &from->dim[d], &left);
        for (int e = 1; way == 1 && e <= s->rank; e++)
            trni_fill_list(s, to, d, parts, &s->to.dim[(d + e) % s->rank], &left);
        for (int pass = way == 2 ? 0 : 1; pass < 2; pass++)
            for (int a = 0; a < s->mesh->axes; a++)
                if (pass || trn_pspec_axis_dim(&s->to, a) < 0) trni_fill_one(s, to, d, parts, a, &left);
        if (trn_pspec_parts(to, s->mesh, d) != parts) return false;
    }
    return true;
}

TRNI_FN trn_status trni_narrow_permutes(trni_search *s, int at, const trn_pspec *spec)
{
    trn_status status = TRN_OK;
    for (int way = 0; way < 3 && !status && s->mesh->devices <= TRNI_PERMUTE_DEVICES; way++) {
        trn_pspec to;
        if (trni_fill(s, spec, way, &to)) status = trni_try_permute(s, at, spec, &to);
    }
    return status;
}

/* ---- all of them ---- */

TRNI_FN trn_status trni_try_narrow(trni_search *s, int at, const trn_pspec *spec)
{
    const bool wide = s->breadth == TRNI_SOME_MOVES, plain = s->breadth == TRNI_PLAIN_GUESS;
    trn_status status = TRN_OK;
    for (int d = 0; d < s->rank && !status; d++) status = trni_narrow_slices(s, at, spec, d);
    if (!status) status = trni_try_zero_fills(s, at, spec);
    for (int d = 0; d < s->rank && !status; d++) status = trni_narrow_scatters(s, at, spec, d);
    if (!status && !plain) status = trni_narrow_permutes(s, at, spec);
    if (!status) status = (wide ? trni_try_gathers : trni_narrow_gathers)(s, at, spec);
    if (!status && !plain) status = (wide ? trni_try_exchanges : trni_narrow_exchanges)(s, at, spec);
    return status ? status : (wide ? trni_try_reduces : trni_narrow_reduces)(s, at, spec);
}

/* The moves of the search's breadth. */
TRNI_FN trn_status trni_try_all(trni_search *s, int at)
{
    const trn_pspec spec = trni_state_of_key(s->node[at].key, s->rank);
    return (s->breadth == TRNI_ALL_MOVES ? trni_try_every : trni_try_narrow)(s, at, &spec);
}

#endif /* TRNI_SHARDED_RESHARD_NARROW_H */
