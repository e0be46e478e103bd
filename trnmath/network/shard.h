/* network/shard.h - each device's part of a tensor; whole to parts, and parts to whole.
 * A part of trn_shard.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_SHARD_H
#define TRNI_NETWORK_SHARD_H

#include "../data/convert.h"
#include "pspec.h"

typedef struct trn_box {
    int rank; /* 0 = none: the sharding does not suit the tensor, or no tensor has its sizes */
    int64_t first[TRN_MAX_RANK], count[TRN_MAX_RANK];
} trn_box;

typedef struct trn_shard_args {
    const trn_mesh *mesh;
    trn_pspec spec;
    trn_tensor global; /* the whole */
    const trn_tensor
        *parts;            /* [mesh->devices]: parts[i] is the part of the mesh's device i, with the shape of its box */
    bool even_only;        /* refuse dimensions that the devices do not share evenly */
    trn_overflow overflow; /* where formats differ */
    trn_isa isa;
    trn_error *error;
} trn_shard_args;

/* ---- boxes ---- */

/* `global` gives the shape; its data and strides play no part. */
TRN_API trn_box trn_shard_box(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global, int device);

/* No copy; no tensor (rank 0) when there is no such part. */
TRN_API trn_tensor trn_shard_part(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global, int device);

/* The first device's part is the largest: packed, without data. */
TRN_API trn_tensor trn_shard_local(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global);

/* Of the largest part, without padding: codes of four and six bits are packed in a chip's memory. 0 where there is no
 * such part (trn_box). */
TRN_API int64_t trn_shard_bytes(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global);

/* Are all parts of one size, without a rest in any dimension? */
TRN_API bool trn_shard_even(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global);

/* ---- doing it ---- */

/* parts[i] = the part of global that device i holds. TRN_ESHAPE: a part has another shape, or even_only and uneven;
 * TRN_EFORMAT: a sum in a format without a zero; TRN_EINVAL: the sharding does not suit, or memory is shared. */
TRN_API trn_status trn_shard(const trn_shard_args *args);

/* global = what the parts hold. Statuses as trn_shard's. */
TRN_API trn_status trn_unshard(const trn_shard_args *args);

/* ---- replicas ---- */

typedef struct trn_replicas {
    bool equal;
    int device, like;            /* the first device that differs, and the one it should be like */
    int64_t index[TRN_MAX_RANK]; /* the first element that differs, within the part */
} trn_replicas;

/* Fills *found and returns TRN_OK, equal or not. `global` gives the shape only. TRN_EFORMAT when parts that should be
 * equal have different formats. */
TRN_API trn_status trn_shard_replicas_equal(const trn_shard_args *args, trn_replicas *found);

#if TRNI_BODIES

#include "../base/threads.h"
#include "../data/iterate.h"

/* ---- boxes ---- */

/* Part `index` of `parts`: [*first, *first + the result). */
TRNI_FN int64_t trni_part_of(int64_t size, int64_t parts, int64_t index, int64_t *first)
{
    const int64_t step = trni_ceil_div(size, parts), low = trni_min64(index * step, size);
    *first = low;
    return trni_min64(low + step, size) - low;
}

/* Which part of a dimension a device holds. */
TRNI_FN int trni_part_index(const trn_pspec *spec, const trn_mesh *mesh, int dim, int device)
{
    int index = 0;
    for (int i = 0; dim < spec->rank && i < spec->dim[dim].axes; i++) {
        const int axis = spec->dim[dim].axis[i];
        index = index * mesh->axis[axis].size + trn_mesh_coordinate(mesh, device, axis);
    }
    return index;
}

/* Can a tensor have these sizes? A size beside one of 0 counts, too, as it is cut all the same. */
TRNI_FN bool trni_sizes_fit(const trn_tensor *global)
{
    int64_t elements = 1;
    bool fit = true;
    for (int d = 0; d < global->rank && fit; d++)
        fit = global->shape[d] >= 0 && trni_multiply(elements, global->shape[d] ? global->shape[d] : 1, &elements);
    return fit;
}

TRN_API trn_box trn_shard_box(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global, int device)
{
    trn_box box;
    memset(&box, 0, sizeof box);
    if (device < 0 || device >= mesh->devices || global->rank < 1 || global->rank > TRN_MAX_RANK) return box;
    if (!trni_sizes_fit(global) || trn_pspec_check(spec, mesh, global->rank, NULL)) return box;
    box.rank = global->rank;
    for (int d = 0; d < box.rank; d++)
        box.count[d] = trni_part_of(global->shape[d], trn_pspec_parts(spec, mesh, d),
                                    trni_part_index(spec, mesh, d, device), &box.first[d]);
    return box;
}

TRNI_FN trn_tensor trni_box_view(trn_tensor whole, const trn_box *box)
{
    for (int d = 0; d < box->rank; d++) whole = trn_tensor_slice(whole, d, box->first[d], box->count[d]);
    return whole;
}

TRN_API trn_tensor trn_shard_part(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global, int device)
{
    const trn_box box = trn_shard_box(mesh, spec, global, device);
    return box.rank ? trni_box_view(*global, &box) : trni_no_tensor();
}

TRN_API trn_tensor trn_shard_local(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global)
{
    const trn_box box = trn_shard_box(mesh, spec, global, 0);
    if (!box.rank) return trni_no_tensor();
    trn_tensor local = trn_tensor_nd(global->format, NULL, box.rank, box.count);
    local.cfp8 = global->cfp8;
    return local;
}

TRN_API int64_t trn_shard_bytes(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global)
{
    const int64_t n = trn_tensor_elements(trn_shard_local(mesh, spec, global)), bits = trn_format_bits(global->format);
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

TRN_API bool trn_shard_even(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global)
{
    for (int d = 0; d < global->rank; d++)
        if (global->shape[d] % trn_pspec_parts(spec, mesh, d)) return false;
    return true;
}

/* Among the devices that differ along `axes` only, the one at 0. */
TRNI_FN int trni_first_along(const trn_mesh *mesh, unsigned axes, int device)
{
    for (int a = 0; a < mesh->axes; a++)
        if (axes >> a & 1u) device -= trn_mesh_coordinate(mesh, device, a) * mesh->axis[a].stride;
    return device;
}

/* The axes along which all devices hold the same. */
TRNI_FN unsigned trni_replicated(const trn_pspec *spec, const trn_mesh *mesh)
{
    unsigned free = (1u << mesh->axes) - 1u;
    for (int d = 0; d < spec->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++) free &= ~(1u << spec->dim[d].axis[i]);
    return free & ~spec->sum;
}

/* ---- pieces: a view in parts that a buffer can hold ---- */

enum { TRNI_PIECE = 2048 }; /* elements: as binary32, two of them fit the first-level cache */

typedef struct trni_pieces {
    int cut; /* axes before it are taken one index at a time, axes after it whole */
    int64_t take, count;
} trni_pieces;

TRNI_FN trni_pieces trni_pieces_of(const trn_tensor *t)
{
    trni_pieces p = { t->rank - 1, 1, 0 };
    int64_t inner = 1;
    if (trn_tensor_elements(*t) == 0) return p;
    for (; p.cut > 0 && t->shape[p.cut] <= TRNI_PIECE / inner; p.cut--) inner *= t->shape[p.cut];
    p.take = trni_min64(TRNI_PIECE / inner, t->shape[p.cut]);
    p.count = trni_ceil_div(t->shape[p.cut], p.take);
    for (int i = 0; i < p.cut; i++) p.count *= t->shape[i];
    return p;
}

/* Piece i of a view of the same shape. */
TRNI_FN trn_tensor trni_piece(const trni_pieces *p, trn_tensor t, int64_t i)
{
    for (int axis = p->cut; axis >= 0; axis--) {
        const int64_t take = axis == p->cut ? p->take : 1, steps = trni_ceil_div(t.shape[axis], take);
        const int64_t low = i % steps * take;
        i /= steps;
        t = trn_tensor_slice(t, axis, low, trni_min64(take, t.shape[axis] - low));
    }
    return t;
}

/* ---- checks ---- */

/* No tensor, and no sum of it in another format, is larger than a view can be. */
TRNI_DRIVER trn_status trni_check_bytes(const char *name, const trn_tensor *global, trn_format format, trn_error *error)
{
    const int64_t elements = trn_tensor_elements(*global), size = (int64_t)trn_format_bytes(format);
    int64_t bytes;
    if (trni_multiply(elements, size, &bytes)) return TRN_OK;
    return trni_fail(error, TRN_ESHAPE, "%s has %lld elements of %lld bytes, together more than 2^%d bytes", name,
                     (long long)elements, (long long)size, TRNI_ADDRESS_BITS);
}

/* A mesh, a shape that has a meaning, and a sharding that suits both. */
TRNI_DRIVER trn_status trni_check_layout(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global,
                                         trn_error *error)
{
    if (!mesh) return trni_fail(error, TRN_EINVAL, "mesh is null");
    if (mesh->axes < 1 || mesh->axes > TRN_MAX_AXES)
        return trni_fail(error, TRN_EINVAL, "mesh has %d axes: it is no mesh", mesh->axes);
    if (global->rank < 1 || global->rank > TRN_MAX_RANK)
        return trni_fail(error, TRN_ESHAPE, "global has rank %d, expected 1 to %d", global->rank, TRN_MAX_RANK);
    for (int d = 0; d < global->rank; d++)
        if (global->shape[d] < 0)
            return trni_fail(error, TRN_ESHAPE, "global has negative size %lld on axis %d", (long long)global->shape[d],
                             d);
    if (!trni_sizes_fit(global))
        return trni_fail(error, TRN_ESHAPE, "global has more than 2^%d elements", TRNI_ADDRESS_BITS);
    const trn_status status = trni_check_bytes("global", global, global->format, error);
    if (status) return status;
    return trn_pspec_check(spec, mesh, global->rank, error);
}

TRNI_DRIVER trn_status trni_check_even(const trn_mesh *mesh, const trn_pspec *spec, const trn_tensor *global,
                                       trn_error *error)
{
    for (int d = 0; d < global->rank; d++) {
        const int parts = trn_pspec_parts(spec, mesh, d);
        if (global->shape[d] % parts)
            return trni_fail(error, TRN_ESHAPE,
                             "even_only: dimension %d has %lld elements, which %d devices do not share evenly", d,
                             (long long)global->shape[d], parts);
    }
    return TRN_OK;
}

/* One view per device, under this name: of the box's shape, in a format that fits. */
TRNI_DRIVER trn_status trni_check_parts(const trn_shard_args *args, const char *name, trni_use use)
{
    for (int i = 0; i < args->mesh->devices; i++) {
        const trn_box box = trn_shard_box(args->mesh, &args->spec, &args->global, i);
        const trn_tensor *part = &args->parts[i];
        char text[48];
        snprintf(text, sizeof text, "%s[%d]", name, i);
        const trn_status status = trn_tensor_check(part, text, use, box.rank, args->error);
        if (status) return status;
        for (int d = 0; d < box.rank; d++)
            if (part->shape[d] != box.count[d])
                return trni_fail(args->error, TRN_ESHAPE, "%s has size %lld on axis %d; its device holds %lld of %lld",
                                 text, (long long)part->shape[d], d, (long long)box.count[d],
                                 (long long)args->global.shape[d]);
        if (args->spec.sum && part->format == TRN_F8_E8M0)
            return trni_fail(args->error, TRN_EFORMAT, "%s is %s, which has no zero, and the sharding has a sum", text,
                             trn_format_name(part->format));
    }
    return TRN_OK;
}

/* Does the part lie where it belongs in the whole, so that there is nothing to move? */
TRNI_FN bool trni_is_at_home(const trn_shard_args *args, int device)
{
    const trn_tensor home = trn_shard_part(args->mesh, &args->spec, &args->global, device);
    trni_view a, b;
    return trni_same_format(&home, &args->parts[device]) && trni_view_known(&a, &home) &&
           trni_view_known(&b, &args->parts[device]) && trni_same_place(&a, &b);
}

TRNI_DRIVER trn_status trni_check_apart(const trn_shard_args *args)
{
    for (int i = 0; i < args->mesh->devices; i++)
        if (trn_tensor_overlap(args->parts[i], args->global) && (args->spec.sum || !trni_is_at_home(args, i)))
            return trni_fail(args->error, TRN_EINVAL, "parts[%d] overlaps global and is not its own place in it", i);
    return TRN_OK;
}

/* Do the views of all devices follow each other in memory? Then none can overlap. */
TRNI_FN bool trni_views_ascend(const trn_tensor *view, int count)
{
    uintptr_t end = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes;
        if (!trni_extent(&view[i], &bytes)) return false;
        if (!bytes) continue;
        if ((uintptr_t)view[i].data < end) return false;
        end = (uintptr_t)view[i].data + bytes;
    }
    return true;
}

/* Two devices that hold the same may share their memory; others may not. */
TRNI_DRIVER trn_status trni_check_outputs_apart(const trn_shard_args *args)
{
    const trn_mesh *mesh = args->mesh;
    const unsigned same = trni_replicated(&args->spec, mesh);
    if (trni_views_ascend(args->parts, mesh->devices)) return TRN_OK;
    for (int i = 0; i < mesh->devices; i++)
        for (int j = 0; j < i; j++) {
            trni_view a, b;
            if (!trni_view_known(&a, &args->parts[i]) || !trni_view_known(&b, &args->parts[j])) continue;
            if (!trni_views_overlap(&a, &b)) continue;
            if (trni_first_along(mesh, same, i) != trni_first_along(mesh, same, j) || !trni_same_format(&a.t, &b.t) ||
                !trni_same_place(&a, &b))
                return trni_fail(args->error, TRN_EINVAL, "parts[%d] overlaps parts[%d]", i, j);
        }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_shard_check(const trn_shard_args *args, trni_use parts)
{
    const trni_use whole = parts == TRNI_INPUT ? TRNI_OUTPUT : TRNI_INPUT;
    if (!args->parts) return trni_fail(args->error, TRN_EINVAL, "parts is null");
    trn_status status = trn_tensor_check(&args->global, "global", whole, 0, args->error);
    if (!status) status = trni_check_layout(args->mesh, &args->spec, &args->global, args->error);
    if (!status && args->even_only) status = trni_check_even(args->mesh, &args->spec, &args->global, args->error);
    if (!status) status = trni_check_parts(args, "parts", parts);
    if (!status) status = trni_check_apart(args);
    if (!status && parts == TRNI_OUTPUT) status = trni_check_outputs_apart(args);
    if (!status) status = trni_check_overflow(args->overflow, args->error);
    trn_isa isa = args->isa;
    return status ? status : trni_isa_resolve(&isa, args->error);
}

/* ---- doing it ---- */

/* Bits within one format, one rounding else. Its arguments were checked: it cannot fail. */
TRNI_FN void trni_shard_copy(const trn_shard_args *args, trn_tensor dst, trn_tensor src)
{
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.dst = dst;
    c.src = src;
    c.overflow = args->overflow;
    c.isa = args->isa;
    (void)trn_convert(&c);
}

/* A packed binary32 buffer of a piece's shape. */
TRNI_FN trn_tensor trni_piece_buffer(float *buffer, const trn_tensor *piece)
{
    return trn_tensor_nd(TRN_F32, buffer, piece->rank, piece->shape);
}

/* -0 everywhere: x + -0 is x for every x, zeros of both signs included. */
TRNI_FN void trni_shard_zero(const trn_shard_args *args, trn_tensor dst)
{
    const trni_pieces pieces = trni_pieces_of(&dst);
    float zero[TRNI_PIECE];
    for (int i = 0; i < TRNI_PIECE; i++) zero[i] = -0.0f;
    for (int64_t i = 0; i < pieces.count; i++) {
        const trn_tensor piece = trni_piece(&pieces, dst, i);
        trni_shard_copy(args, piece, trni_piece_buffer(zero, &piece));
    }
}

/* Do threads take a device each? Else they share each copy, if it is large. */
TRNI_FN bool trni_goes_by_device(const trn_shard_args *args)
{
    return trn_tensor_elements(args->global) >= TRNI_CONVERT_PARALLEL && args->mesh->devices >= 4 * trni_threads();
}

TRN_API trn_status trn_shard(const trn_shard_args *args)
{
    TRNI_ENTER(args);
    const trn_status status = trni_shard_check(args, TRNI_OUTPUT);
    if (status) return status;
    const bool apart = trni_goes_by_device(args);
    (void)apart;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(dynamic, 1) if (apart))
    for (int i = 0; i < args->mesh->devices; i++) {
        TRNI_FLOATS;
        if (trni_first_along(args->mesh, args->spec.sum, i) != i)
            trni_shard_zero(args, args->parts[i]);
        else
            trni_shard_copy(args, args->parts[i], trn_shard_part(args->mesh, &args->spec, &args->global, i));
    }
    return TRN_OK;
}

/* One piece of the sum over the devices of a group. */
TRNI_FN void trni_unshard_piece(const trn_shard_args *args, const trni_mesh_split *split, int group, trn_tensor home,
                                int64_t at)
{
    const trni_pieces pieces = trni_pieces_of(&home);
    const trn_tensor piece = trni_piece(&pieces, home, at);
    const int64_t n = trn_tensor_elements(piece);
    float sum[TRNI_PIECE], next[TRNI_PIECE];
    for (int i = 0; i < split->members; i++) {
        const trn_tensor part = args->parts[trni_split_device(split, group, i)];
        trni_shard_copy(args, trni_piece_buffer(i ? next : sum, &piece), trni_piece(&pieces, part, at));
        for (int64_t j = 0; i && j < n; j++) sum[j] += next[j];
    }
    for (int64_t j = 0; split->members > 1 && j < n; j++)
        if (trni_is_nan_bits(trni_bits(sum[j]))) sum[j] = trni_float(TRNI_F32_NAN);
    trni_shard_copy(args, piece, trni_piece_buffer(sum, &piece));
}

TRNI_FN void trni_unshard_sum(const trn_shard_args *args, const trni_mesh_split *split, int group)
{
    const trn_tensor home = trn_shard_part(args->mesh, &args->spec, &args->global, trni_split_device(split, group, 0));
    const int64_t count = trni_pieces_of(&home).count;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static) if (count > TRNI_CONVERT_PARALLEL / TRNI_PIECE))
    for (int64_t i = 0; i < count; i++) {
        TRNI_FLOATS;
        trni_unshard_piece(args, split, group, home, i);
    }
}

TRN_API trn_status trn_unshard(const trn_shard_args *args)
{
    TRNI_ENTER(args);
    const trn_status status = trni_shard_check(args, TRNI_INPUT);
    if (status) return status;
    const trn_mesh *mesh = args->mesh;
    const unsigned same = trni_replicated(&args->spec, mesh);
    trni_mesh_split split;
    int sum[TRN_MAX_AXES], sums = 0;
    for (int a = 0; a < mesh->axes; a++)
        if (trn_pspec_is_sum(&args->spec, a)) sum[sums++] = a;
    if (!trni_split_of(&split, mesh, sum, sums)) return TRN_EINVAL; /* the check was there before */
    const bool apart = split.members == 1 && trni_goes_by_device(args);
    (void)apart;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(dynamic, 1) if (apart))
    for (int g = 0; g < split.groups; g++) {
        TRNI_FLOATS;
        const int device = trni_split_device(&split, g, 0);
        if (trni_first_along(mesh, same, device) != device) continue;
        if (split.members > 1)
            trni_unshard_sum(args, &split, g);
        else
            trni_shard_copy(args, trn_shard_part(mesh, &args->spec, &args->global, device), args->parts[device]);
    }
    return TRN_OK;
}

/* ---- replicas ---- */

TRNI_FN bool trni_same_bits(const trn_tensor *a, const trn_tensor *b, int64_t *index)
{
    const size_t bytes = trn_format_bytes(a->format);
    int64_t x[TRN_MAX_RANK], y[TRN_MAX_RANK];
    trni_iterator walk;
    if (trn_tensor_elements(*a) == 0) return true;
    memset(&walk, 0, sizeof walk);
    trni_strides(a, x);
    trni_strides(b, y);
    for (int i = 0; i < a->rank; i++) {
        const trni_iterator_axis axis = { a->shape[i], { x[i], y[i], 0, 0 } };
        walk.axis[walk.rank++] = axis; /* not merged: the index is told */
    }
    trni_iterator_place at = trni_iterator_start(&walk, 0);
    for (int64_t i = trn_tensor_elements(*a); i > 0; i--, trni_iterator_next(&walk, &at)) {
        if (!memcmp((const char *)a->data + at.offset[0] * (int64_t)bytes,
                    (const char *)b->data + at.offset[1] * (int64_t)bytes, bytes))
            continue;
        memcpy(index, at.index, sizeof(int64_t) * (size_t)a->rank);
        return false;
    }
    return true;
}

TRN_API trn_status trn_shard_replicas_equal(const trn_shard_args *args, trn_replicas *found)
{
    trn_replicas r;
    TRNI_ENTER(args);
    if (!args->parts || !found)
        return trni_fail(args->error, TRN_EINVAL, "%s is null", args->parts ? "found" : "parts");
    const trn_mesh *mesh = args->mesh;
    trn_status status = trni_check_layout(mesh, &args->spec, &args->global, args->error);
    if (!status) status = trni_check_parts(args, "parts", TRNI_INPUT);
    if (status) return status;
    memset(&r, 0, sizeof r);
    r.equal = true;
    const unsigned same = trni_replicated(&args->spec, mesh);
    for (int i = 0; i < mesh->devices && r.equal; i++) {
        r.device = i;
        r.like = trni_first_along(mesh, same, i);
        if (!trni_same_format(&args->parts[i], &args->parts[r.like]))
            return trni_fail(args->error, TRN_EFORMAT, "parts[%d] is %s but parts[%d], of which it is a copy, is %s", i,
                             trn_format_name(args->parts[i].format), r.like,
                             trn_format_name(args->parts[r.like].format));
        r.equal = trni_same_bits(&args->parts[i], &args->parts[r.like], r.index);
    }
    *found = r;
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_SHARD_H */
