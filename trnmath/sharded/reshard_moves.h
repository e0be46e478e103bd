/* sharded/reshard_moves.h - the moves from one sharding to the next, and what each costs.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: tries every move below from a sharding of the search.
 * DOES NOT: choose (sharded/reshard_plan.h), leave moves out because there are many (sharded/reshard_narrow.h), or move
 *     anything (sharded/reshard_values.h).
 *
 * KNOWN FROM: DTensor (placements and their transitions); the scaling book (the moves).
 *
 * The moves. Only the innermost axes of a dimension can be taken off it, and an axis can only be added innermost, since
 * then a device's new part lies inside its old one, or around it; where sizes do not divide, only if the parts do nest.
 *     slice            axes along which all hold the same cut a dimension: nothing moves
 *     zero fill        an axis becomes one of the sum: the device at 0 along it keeps the values, others take -0
 *     all_gather       axes are taken off one or more dimensions, together
 *     all_reduce       axes of the sum, together: the result everywhere
 *     reduce_scatter   axes of the sum, together, then cut a dimension
 *     all_to_all       axes are taken off one dimension and cut another
 *     permute          the same parts on other devices: axes change places
 * A sum is closed only if the goal does not have it, and opened only if the start did not: a detour through sums would
 * round, and lose what a NaN carries.
 */
#ifndef TRNI_SHARDED_RESHARD_MOVES_H
#define TRNI_SHARDED_RESHARD_MOVES_H

#include "reshard_search.h"

/* ---- the moves ---- */

TRNI_FN trni_transit trni_transit_of(trn_reshard_kind kind, trn_collective op)
{
    trni_transit m;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    m.op = op;
    m.from_dim = m.to_dim = -1;
    return m;
}

/* Takes the last `count` axes off a dimension; they follow the move's others. False where parts do not nest. */
TRNI_FN bool trni_take_off(const trni_search *s, trn_pspec *spec, int dim, int count, trni_transit *m)
{
    trn_pspec_dim *d = &spec->dim[dim];
    const int all = trn_pspec_parts(spec, s->mesh, dim);
    d->axes -= count;
    for (int i = 0; i < count; i++) m->axis[m->axes++] = d->axis[d->axes + i];
    if (count && m->from_dim < 0) m->from_dim = dim;
    return trni_parts_nest(s->shape[dim], trn_pspec_parts(spec, s->mesh, dim), all);
}

/* The move's axes cut a dimension. False where parts do not nest. */
TRNI_FN bool trni_put_on(const trni_search *s, trn_pspec *spec, int dim, trni_transit *m)
{
    trn_pspec_dim *d = &spec->dim[dim];
    const int outer = trn_pspec_parts(spec, s->mesh, dim);
    for (int i = 0; i < m->axes; i++) d->axis[d->axes++] = m->axis[i];
    m->to_dim = dim;
    return trni_parts_nest(s->shape[dim], outer, trn_pspec_parts(spec, s->mesh, dim));
}

/* A buffer of one such part for each member: where parts are uneven, more than what there is, since all take the time
 * of the largest. -1: more than any view has, so that no such move can be. */
TRNI_FN int64_t trni_members_bytes(const trni_search *s, const trni_transit *m, const trn_pspec *part, int bits)
{
    int64_t bytes;
    const int members = trn_mesh_group_size(s->mesh, m->axis, m->axes);
    return trni_multiply(trni_state_bytes(s, part, bits), members, &bytes) ? bytes : -1;
}

/* Each dimension loses so many of its axes. */
TRNI_FN trn_status trni_try_gather(trni_search *s, int at, const trn_pspec *spec, const int *take)
{
    trn_pspec to = *spec;
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_ALL_GATHER);
    bool nest = true;
    for (int d = 0; d < s->rank; d++) nest = trni_take_off(s, &to, d, take[d], &m) && nest;
    m.bytes = trni_members_bytes(s, &m, spec, s->bits);
    return nest && m.axes ? trni_try_move(s, at, spec, &to, &m) : TRN_OK;
}

TRNI_FN trn_status trni_try_gathers(trni_search *s, int at, const trn_pspec *spec)
{
    int take[TRN_MAX_RANK] = { 0 }; /* every choice of how many axes each dimension loses */
    trn_status status = TRN_OK;
    while (status == TRN_OK) {
        int d = 0;
        while (d < s->rank && take[d] == spec->dim[d].axes) take[d++] = 0;
        if (d == s->rank) break;
        take[d]++;
        status = trni_try_gather(s, at, spec, take);
    }
    return status;
}

/* The innermost axes of one dimension cut another. */
TRNI_FN trn_status trni_try_exchange(trni_search *s, int at, const trn_pspec *spec, int d, int count, int e)
{
    trn_pspec to = *spec;
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_ALL_TO_ALL);
    if (e == d || !trni_take_off(s, &to, d, count, &m) || !trni_put_on(s, &to, e, &m)) return TRN_OK;
    trn_pspec block = to; /* what one device sends to another */
    block.dim[d] = spec->dim[d];
    m.bytes = trni_members_bytes(s, &m, &block, s->bits);
    return trni_try_move(s, at, spec, &to, &m);
}

TRNI_FN trn_status trni_try_exchanges(trni_search *s, int at, const trn_pspec *spec)
{
    trn_status status = TRN_OK;
    for (int d = 0; d < s->rank; d++)
        for (int count = 1; count <= spec->dim[d].axes; count++)
            for (int e = 0; e < s->rank && status == TRN_OK; e++) status = trni_try_exchange(s, at, spec, d, count, e);
    return status;
}

TRNI_FN trn_status trni_try_reduce(trni_search *s, int at, const trn_pspec *spec, unsigned some)
{
    trn_pspec to = *spec;
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_ALL_REDUCE);
    for (int a = 0; a < s->mesh->axes; a++)
        if (some >> a & 1u) m.axis[m.axes++] = a;
    to.sum &= ~some;
    m.bytes = trni_state_bytes(s, spec, s->wire_bits);
    return m.axes ? trni_try_move(s, at, spec, &to, &m) : TRN_OK;
}

TRNI_FN trn_status trni_try_reduces(trni_search *s, int at, const trn_pspec *spec)
{
    trn_status status = TRN_OK;
    const unsigned closes = spec->sum & s->closes;
    for (unsigned some = closes; some && status == TRN_OK; some = (some - 1) & closes)
        status = trni_try_reduce(s, at, spec, some);
    return status;
}

/* Axes of the sum, in the move's order, cut a dimension. */
TRNI_FN trn_status trni_try_scatter(trni_search *s, int at, const trn_pspec *spec, int dim, const trni_transit *so_far)
{
    trn_pspec to = *spec;
    trni_transit m = *so_far;
    for (int i = 0; i < m.axes; i++) to.sum &= ~(1u << m.axis[i]);
    if (!m.axes || !trni_put_on(s, &to, dim, &m)) return TRN_OK;
    m.bytes = trni_members_bytes(s, &m, &to, s->wire_bits);
    return trni_try_move(s, at, spec, &to, &m);
}

/* Every sequence of axes of the sum that goes on after those of m, for one dimension. */
TRNI_FN trn_status trni_try_scatters(trni_search *s, int at, const trn_pspec *spec, int dim, const trni_transit *so_far)
{
    trn_status status = TRN_OK;
    unsigned used = 0;
    for (int i = 0; i < so_far->axes; i++) used |= 1u << so_far->axis[i];
    for (int a = 0; a < s->mesh->axes && status == TRN_OK; a++) {
        if (!((spec->sum & s->closes & ~used) >> a & 1u)) continue;
        trni_transit m = *so_far;
        m.axis[m.axes++] = a;
        status = trni_try_scatter(s, at, spec, dim, &m);
        if (status == TRN_OK) status = trni_try_scatters(s, at, spec, dim, &m);
    }
    return status;
}

TRNI_FN unsigned trni_unused(const trni_search *s, const trn_pspec *spec)
{
    unsigned free = trni_replicated(spec, s->mesh);
    for (int a = 0; a < s->mesh->axes; a++)
        if (s->mesh->axis[a].size == 1) free &= ~(1u << a);
    return free;
}

/* Axes along which all hold the same, in the move's order, cut a dimension. */
TRNI_FN trn_status trni_try_slice(trni_search *s, int at, const trn_pspec *spec, int dim, const trni_transit *so_far)
{
    trn_pspec to = *spec;
    trni_transit m = *so_far;
    return m.axes && trni_put_on(s, &to, dim, &m) ? trni_try_move(s, at, spec, &to, &m) : TRN_OK;
}

/* Every sequence of axes along which all hold the same that goes on after those of m, for one dimension. */
TRNI_FN trn_status trni_try_slices(trni_search *s, int at, const trn_pspec *spec, int dim, const trni_transit *so_far)
{
    unsigned free = trni_unused(s, spec);
    trn_status status = TRN_OK;
    for (int i = 0; i < so_far->axes; i++) free &= ~(1u << so_far->axis[i]);
    for (int a = 0; a < s->mesh->axes && status == TRN_OK; a++) {
        if (!(free >> a & 1u)) continue;
        trni_transit m = *so_far;
        m.axis[m.axes++] = a;
        status = trni_try_slice(s, at, spec, dim, &m);
        if (status == TRN_OK) status = trni_try_slices(s, at, spec, dim, &m);
    }
    return status;
}

TRNI_FN trn_status trni_try_zero_fill(trni_search *s, int at, const trn_pspec *spec, trn_pspec *to, trni_transit *m)
{
    to->sum |= 1u << m->axis[0];
    m->bytes = trni_state_bytes(s, to, s->bits);
    return trni_try_move(s, at, spec, to, m);
}

TRNI_FN trn_status trni_try_zero_fills(trni_search *s, int at, const trn_pspec *spec)
{
    const unsigned free = trni_unused(s, spec);
    trn_status status = TRN_OK;
    for (int a = 0; a < s->mesh->axes && status == TRN_OK; a++) {
        trn_pspec to = *spec;
        trni_transit m = trni_transit_of(TRN_RESHARD_ZERO_FILL, TRN_ALL_GATHER);
        m.axis[m.axes++] = a;
        if ((free & s->opens) >> a & 1u) status = trni_try_zero_fill(s, at, spec, &to, &m);
    }
    for (int d = 0; d < s->rank && status == TRN_OK; d++) {
        trn_pspec to = *spec;
        trni_transit m = trni_transit_of(TRN_RESHARD_ZERO_FILL, TRN_ALL_GATHER);
        if (!to.dim[d].axes || !trni_take_off(s, &to, d, 1, &m)) continue;
        if (s->opens >> m.axis[0] & 1u) status = trni_try_zero_fill(s, at, spec, &to, &m);
    }
    return status;
}

/* ---- permutations ---- */

TRNI_FN trn_status trni_try_permute(trni_search *s, int at, const trn_pspec *from, const trn_pspec *to)
{
    trni_transit m = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_PERMUTE);
    const uint64_t changed = trni_state_key(from) ^ trni_state_key(to);
    if (!changed) return TRN_OK;
    for (int a = 0; a < s->mesh->axes; a++)
        if (trni_key_role(changed, a)) m.axis[m.axes++] = a;
    m.bytes = trni_state_bytes(s, from, s->bits);
    return trni_try_move(s, at, from, to, &m);
}

/* Every way to fill dimensions from `dim` on with as many parts as before, from the axes that are left. */
TRNI_FN trn_status trni_try_permutes(trni_search *s, int at, const trn_pspec *from, trn_pspec *to, int dim,
                                     unsigned left)
{
    if (dim == s->rank) return trni_try_permute(s, at, from, to);
    const int wanted = trn_pspec_parts(from, s->mesh, dim), there = trn_pspec_parts(to, s->mesh, dim);
    if (there == wanted) return trni_try_permutes(s, at, from, to, dim + 1, left);
    trn_status status = TRN_OK;
    for (int a = 0; a < s->mesh->axes && status == TRN_OK; a++) {
        if (!(left >> a & 1u) || wanted % (there * s->mesh->axis[a].size)) continue;
        trn_pspec_dim *d = &to->dim[dim];
        d->axis[d->axes++] = a;
        status = trni_try_permutes(s, at, from, to, dim, left & ~(1u << a));
        d->axis[--d->axes] = 0;
    }
    return status;
}

/* Axes that can change places. */
TRNI_FN unsigned trni_movable(const trni_search *s, const trn_pspec *spec)
{
    unsigned movable = trni_unused(s, spec);
    for (int d = 0; d < s->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++) movable |= 1u << spec->dim[d].axis[i];
    return movable;
}

TRNI_FN trn_status trni_try_permuted(trni_search *s, int at, const trn_pspec *spec)
{
    trn_pspec empty;
    memset(&empty, 0, sizeof empty);
    empty.rank = s->rank;
    empty.sum = spec->sum;
    if (s->mesh->devices > TRNI_PERMUTE_DEVICES) return TRN_OK;
    return trni_try_permutes(s, at, spec, &empty, 0, trni_movable(s, spec));
}

/* Every move from a node. */
TRNI_FN trn_status trni_try_every(trni_search *s, int at, const trn_pspec *spec)
{
    trn_status status = TRN_OK;
    const trni_transit slice = trni_transit_of(TRN_RESHARD_SLICE, TRN_ALL_GATHER);
    const trni_transit scatter = trni_transit_of(TRN_RESHARD_COLLECTIVE, TRN_REDUCE_SCATTER);
    for (int d = 0; d < s->rank && !status; d++) status = trni_try_slices(s, at, spec, d, &slice);
    if (!status) status = trni_try_zero_fills(s, at, spec);
    if (!status) status = trni_try_gathers(s, at, spec);
    if (!status) status = trni_try_exchanges(s, at, spec);
    if (!status) status = trni_try_reduces(s, at, spec);
    for (int d = 0; d < s->rank && !status; d++) status = trni_try_scatters(s, at, spec, d, &scatter);
    return status ? status : trni_try_permuted(s, at, spec);
}

#endif /* TRNI_SHARDED_RESHARD_MOVES_H */
