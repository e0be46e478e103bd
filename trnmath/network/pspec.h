/* network/pspec.h - how a tensor lies on a mesh: which axes cut which dimension, over which its sum is open.
 * A part of trn_shard.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_shard.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_mesh mesh;
 *         trn_pspec spec;
 *         trn_error error;
 *         char text[64];
 *         if (trn_mesh_init(&mesh, &net, "data=4,tensor=4")) return 1;
 *         if (trn_pspec_read(&spec, &mesh, "(data, *) + sum(tensor)", &error)) return puts(error.text), 1;
 *         trn_pspec_format(&spec, &mesh, text, sizeof text);
 *         puts(text);                                               // (data, *) + sum(tensor)
 *         return trn_pspec_read(&spec, &mesh, "(data, data)", &error) == TRN_EINVAL ? 0 : 1;
 *     }
 *
 * DOES: one entry per dimension: an axis, "*" or "None" for not cut, or "(data, tensor)" for cut by both, data
 *     outermost; "sum(axis, ...)" for axes over which each device holds a part of a sum. Along an axis that is not
 *     named, all hold the same. Fewer entries than the tensor has dimensions leave the last ones uncut. Also the same
 *     as one placement per axis.
 * DOES NOT: know sizes (trn_shard.h), or move anything (trn_reshard.h).
 *
 * KNOWN FROM: jax.sharding.PartitionSpec (entries), Shardy (unreduced axes), DTensor (placements; Partial).
 */
#ifndef TRNI_NETWORK_PSPEC_H
#define TRNI_NETWORK_PSPEC_H

#include "mesh.h"
#include "../data/tensor.h"

typedef enum trn_reduction { TRN_REDUCE_SUM = 0 } trn_reduction;

typedef struct trn_pspec_dim {
    int axes;               /* 0 = not cut */
    int axis[TRN_MAX_AXES]; /* of the mesh, the outermost first */
} trn_pspec_dim;

typedef struct trn_pspec {
    int rank; /* dimensions that are named; those beyond are not cut */
    trn_pspec_dim dim[TRN_MAX_RANK];
    unsigned sum; /* bit a: the values are parts of a sum over axis a */
    trn_reduction op;
} trn_pspec;

/* What one axis of the mesh does (DTensor's vocabulary). */
typedef enum trn_placing { TRN_REPLICATE = 0, TRN_SHARD, TRN_PARTIAL } trn_placing;

typedef struct trn_placement {
    trn_placing is;
    int dim;   /* TRN_SHARD: of the tensor, */
    int order; /* and how many axes cut the same dimension outside of this one; where equal, the mesh's order counts */
    trn_reduction op;
} trn_placement;

/* ---- what a spec says ---- */

/* Are the values parts of a sum over this axis of the mesh? */
TRN_API bool trn_pspec_is_sum(const trn_pspec *spec, int axis);

/* The dimension that an axis cuts, or -1. */
TRN_API int trn_pspec_axis_dim(const trn_pspec *spec, int axis);

/* Does it suit the mesh, and a tensor of this rank (0: any)? */
TRN_API trn_status trn_pspec_check(const trn_pspec *spec, const trn_mesh *mesh, int rank, trn_error *error);

/* Do they cut and sum alike? Dimensions that are not named count as not cut. */
TRN_API bool trn_pspec_same(const trn_pspec *a, const trn_pspec *b);

/* Parts that a dimension is cut into; 1 when it is not cut. */
TRN_API int trn_pspec_parts(const trn_pspec *spec, const trn_mesh *mesh, int dim);

/* ---- text ---- */

/* trn_pspec_parse that tells why not. On failure *spec is as it was. */
TRN_API trn_status trn_pspec_read(trn_pspec *spec, const trn_mesh *mesh, const char *text, trn_error *error);

/* "(data, tensor)", "(tensor, *)", "((data, tensor), *)", "(*, *) + sum(tensor)", "sum(data, tensor)"; "*" and "None"
 * are the same, blanks are free. */
TRN_API trn_status trn_pspec_parse(trn_pspec *spec, const trn_mesh *mesh, const char *text);

/* Writes at most `room` bytes, the end included; returns the length that the whole text has. */
TRN_API size_t trn_pspec_format(const trn_pspec *spec, const trn_mesh *mesh, char *text, size_t capacity);

/* ---- placements ---- */

/* placement: [mesh->axes] */
TRN_API void trn_pspec_placements(const trn_pspec *spec, const trn_mesh *mesh, trn_placement *placement);

/* The spec names dimensions up to the last one that is cut. On failure *spec is as it was. */
TRN_API trn_status trn_pspec_of_placements(trn_pspec *spec, const trn_mesh *mesh, const trn_placement *placement,
                                           trn_error *error);

#if TRNI_BODIES

/* ---- what a spec says ---- */

TRN_API bool trn_pspec_is_sum(const trn_pspec *spec, int axis) { return spec->sum >> axis & 1u; }

TRN_API int trn_pspec_axis_dim(const trn_pspec *spec, int axis)
{
    for (int d = 0; d < spec->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++)
            if (spec->dim[d].axis[i] == axis) return d;
    return -1;
}

TRNI_FN const char *trni_axis_name(const trn_mesh *mesh, int axis) { return mesh->axis[axis].name; }

/* An axis may be used once, in a dimension or in the sum; `taken` are those that were seen before. */
TRNI_FN trn_status trni_pspec_take(const trn_mesh *mesh, int axis, unsigned *taken, trn_error *error)
{
    if (axis < 0 || axis >= mesh->axes)
        return trni_fail(error, TRN_EINVAL, "the sharding names axis %d of a mesh with %d axes", axis, mesh->axes);
    if (*taken >> axis & 1u)
        return trni_fail(error, TRN_EINVAL, "the sharding uses axis %s twice; an axis cuts one dimension, once",
                         trni_axis_name(mesh, axis));
    *taken |= 1u << axis;
    return TRN_OK;
}

TRN_API trn_status trn_pspec_check(const trn_pspec *spec, const trn_mesh *mesh, int rank, trn_error *error)
{
    unsigned taken = 0;
    if (spec->rank < 0 || spec->rank > TRN_MAX_RANK)
        return trni_fail(error, TRN_EINVAL, "the sharding has %d dimensions; tensors have 1 to %d", spec->rank,
                         TRN_MAX_RANK);
    if (rank && spec->rank > rank)
        return trni_fail(error, TRN_EINVAL, "the sharding has %d dimensions but the tensor has %d", spec->rank, rank);
    for (int d = 0; d < spec->rank; d++) {
        if (spec->dim[d].axes < 0 || spec->dim[d].axes > TRN_MAX_AXES)
            return trni_fail(error, TRN_EINVAL, "dimension %d of the sharding has %d axes", d, spec->dim[d].axes);
        for (int i = 0; i < spec->dim[d].axes; i++) {
            const trn_status status = trni_pspec_take(mesh, spec->dim[d].axis[i], &taken, error);
            if (status) return status;
        }
    }
    if (spec->sum >> mesh->axes)
        return trni_fail(error, TRN_EINVAL, "sum = 0x%x has bits beyond the mesh's %d axes", spec->sum, mesh->axes);
    if (spec->op != TRN_REDUCE_SUM) return trni_fail(error, TRN_EINVAL, "op = %d is no reduction", (int)spec->op);
    for (int a = 0; a < mesh->axes; a++)
        if ((spec->sum & taken) >> a & 1u)
            return trni_fail(error, TRN_EINVAL, "the sharding uses axis %s both to cut and to sum",
                             trni_axis_name(mesh, a));
    return TRN_OK;
}

TRN_API bool trn_pspec_same(const trn_pspec *a, const trn_pspec *b)
{
    if (a->sum != b->sum || (a->sum && a->op != b->op)) return false;
    for (int d = 0; d < a->rank || d < b->rank; d++) {
        const int axes = d < a->rank ? a->dim[d].axes : 0;
        if (axes != (d < b->rank ? b->dim[d].axes : 0)) return false;
        for (int i = 0; i < axes; i++)
            if (a->dim[d].axis[i] != b->dim[d].axis[i]) return false;
    }
    return true;
}

TRN_API int trn_pspec_parts(const trn_pspec *spec, const trn_mesh *mesh, int dim)
{
    int parts = 1;
    for (int i = 0; dim < spec->rank && i < spec->dim[dim].axes; i++) parts *= mesh->axis[spec->dim[dim].axis[i]].size;
    return parts;
}

/* ---- text ---- */

TRNI_FN trn_status trni_pspec_axis(trni_reader *r, const trn_mesh *mesh, unsigned *taken, int *axis, trn_error *error)
{
    const trni_word w = trni_reader_word(r);
    if (!w.length) return trni_reader_expected(r, "the name of an axis", error);
    *axis = trni_axis_of(mesh, w);
    if (*axis >= 0) return trni_pspec_take(mesh, *axis, taken, error);
    char axes[160];
    trn_mesh_format(mesh, axes, sizeof axes);
    return trni_fail(error, TRN_EINVAL, "the mesh has no axis %.*s (it has %s)",
                     w.length < TRN_AXIS_NAME ? w.length : TRN_AXIS_NAME, w.at, axes);
}

/* "data", "*", "None", "(data, tensor)", "()" */
TRNI_FN trn_status trni_pspec_entry(trni_reader *r, const trn_mesh *mesh, trn_pspec_dim *dim, unsigned *taken,
                                    trn_error *error)
{
    const trni_reader start = *r;
    if (trni_reader_take(r, '*') || trni_word_is(trni_reader_word(r), "None")) return TRN_OK;
    *r = start;
    const bool list = trni_reader_take(r, '(');
    if (list && trni_reader_take(r, ')')) return TRN_OK;
    do { /* a list cannot be too long: no axis comes twice */
        const trn_status status = trni_pspec_axis(r, mesh, taken, &dim->axis[dim->axes], error);
        if (status) return status;
        dim->axes++;
    } while (list && trni_reader_take(r, ','));
    if (list && !trni_reader_take(r, ')')) return trni_reader_expected(r, "a comma or \")\"", error);
    return TRN_OK;
}

/* "data, *, (a, b))": what follows the first bracket. */
TRNI_FN trn_status trni_pspec_dims(trni_reader *r, const trn_mesh *mesh, trn_pspec *s, unsigned *taken,
                                   trn_error *error)
{
    if (trni_reader_take(r, ')')) return TRN_OK;
    do {
        if (s->rank == TRN_MAX_RANK)
            return trni_fail(error, TRN_EINVAL, "the sharding \"%.80s\" has more than %d dimensions", r->text,
                             TRN_MAX_RANK);
        const trn_status status = trni_pspec_entry(r, mesh, &s->dim[s->rank], taken, error);
        if (status) return status;
        s->rank++;
    } while (trni_reader_take(r, ','));
    return trni_reader_take(r, ')') ? TRN_OK : trni_reader_expected(r, "a comma or \")\"", error);
}

/* "sum(a, b)" */
TRNI_FN trn_status trni_pspec_sums(trni_reader *r, const trn_mesh *mesh, trn_pspec *s, unsigned *taken,
                                   trn_error *error)
{
    const trni_reader start = *r;
    if (!trni_word_is(trni_reader_word(r), "sum")) {
        *r = start;
        trni_reader_skip(r);
        return trni_reader_expected(r, s->rank ? "\"sum\"" : "\"(\" or \"sum\"", error);
    }
    if (!trni_reader_take(r, '(')) return trni_reader_expected(r, "\"(\"", error);
    do {
        int axis = 0;
        const trn_status status = trni_pspec_axis(r, mesh, taken, &axis, error);
        if (status) return status;
        s->sum |= 1u << axis;
    } while (trni_reader_take(r, ','));
    return trni_reader_take(r, ')') ? TRN_OK : trni_reader_expected(r, "a comma or \")\"", error);
}

TRN_API trn_status trn_pspec_read(trn_pspec *spec, const trn_mesh *mesh, const char *text, trn_error *error)
{
    trn_pspec s;
    unsigned taken = 0;
    if (!spec || !mesh || !text)
        return trni_fail(error, TRN_EINVAL, "%s is null", !spec ? "spec" : !mesh ? "mesh" : "text");
    if (mesh->axes < 1 || mesh->axes > TRN_MAX_AXES)
        return trni_fail(error, TRN_EINVAL, "mesh has %d axes: it is no mesh", mesh->axes);
    trni_reader r = { "sharding", text, text };
    memset(&s, 0, sizeof s);
    const bool dims = trni_reader_take(&r, '(');
    trn_status status = dims ? trni_pspec_dims(&r, mesh, &s, &taken, error) : TRN_OK;
    if (!status && (!dims || trni_reader_take(&r, '+'))) status = trni_pspec_sums(&r, mesh, &s, &taken, error);
    if (status) return status;
    trni_reader_skip(&r);
    if (*r.at) return trni_reader_expected(&r, s.sum ? "the end" : "\"+\" or the end", error);
    *spec = s;
    return TRN_OK;
}

TRN_API trn_status trn_pspec_parse(trn_pspec *spec, const trn_mesh *mesh, const char *text)
{
    return trn_pspec_read(spec, mesh, text, NULL);
}

TRN_API size_t trn_pspec_format(const trn_pspec *spec, const trn_mesh *mesh, char *text, size_t capacity)
{
    trni_writer w = { text, capacity, 0 };
    const bool dims = spec->rank > 0 || !spec->sum;
    trni_write(&w, dims ? "(" : "");
    for (int d = 0; d < spec->rank; d++) {
        const trn_pspec_dim *dim = &spec->dim[d];
        trni_write(&w, d ? ", " : "");
        trni_write(&w, dim->axes > 1 ? "(" : dim->axes ? "" : "*");
        for (int i = 0; i < dim->axes; i++) {
            trni_write(&w, i ? ", " : "");
            trni_write(&w, trni_axis_name(mesh, dim->axis[i]));
        }
        trni_write(&w, dim->axes > 1 ? ")" : "");
    }
    trni_write(&w, dims ? ")" : "");
    if (!spec->sum) return w.used;
    const char *before = dims ? " + sum(" : "sum(";
    for (int a = 0; a < mesh->axes; a++) {
        if (!trn_pspec_is_sum(spec, a)) continue;
        trni_write(&w, before);
        trni_write(&w, trni_axis_name(mesh, a));
        before = ", ";
    }
    trni_write(&w, ")");
    return w.used;
}

/* ---- placements ---- */

TRN_API void trn_pspec_placements(const trn_pspec *spec, const trn_mesh *mesh, trn_placement *placement)
{
    memset(placement, 0, sizeof *placement * (size_t)mesh->axes);
    for (int a = 0; a < mesh->axes; a++)
        if (trn_pspec_is_sum(spec, a)) {
            placement[a].is = TRN_PARTIAL;
            placement[a].op = spec->op;
        }
    for (int d = 0; d < spec->rank; d++)
        for (int i = 0; i < spec->dim[d].axes; i++) {
            trn_placement *p = &placement[spec->dim[d].axis[i]];
            p->is = TRN_SHARD;
            p->dim = d;
            p->order = i;
        }
}

TRNI_FN void trni_pspec_insert(trn_pspec_dim *dim, const trn_placement *placement, int axis)
{
    int at = dim->axes++;
    for (; at > 0 && placement[dim->axis[at - 1]].order > placement[axis].order; at--)
        dim->axis[at] = dim->axis[at - 1];
    dim->axis[at] = axis;
}

TRN_API trn_status trn_pspec_of_placements(trn_pspec *spec, const trn_mesh *mesh, const trn_placement *placement,
                                           trn_error *error)
{
    trn_pspec s;
    if (!spec || !mesh || !placement)
        return trni_fail(error, TRN_EINVAL, "%s is null", !spec ? "spec" : !mesh ? "mesh" : "placement");
    memset(&s, 0, sizeof s);
    for (int a = 0; a < mesh->axes; a++) {
        const trn_placement *p = &placement[a];
        if ((unsigned)p->is > TRN_PARTIAL)
            return trni_fail(error, TRN_EINVAL,
                             "placement[%d] = %d is neither TRN_REPLICATE, TRN_SHARD nor TRN_PARTIAL", a, (int)p->is);
        if (p->is == TRN_SHARD && (p->dim < 0 || p->dim >= TRN_MAX_RANK))
            return trni_fail(error, TRN_EINVAL, "placement[%d] cuts dimension %d; tensors have 0 to %d", a, p->dim,
                             TRN_MAX_RANK - 1);
        if (p->is == TRN_PARTIAL && p->op != TRN_REDUCE_SUM)
            return trni_fail(error, TRN_EINVAL, "placement[%d] has op %d, which is no reduction", a, (int)p->op);
        if (p->is == TRN_PARTIAL) s.sum |= 1u << a;
        if (p->is != TRN_SHARD) continue;
        trni_pspec_insert(&s.dim[p->dim], placement, a);
        if (p->dim >= s.rank) s.rank = p->dim + 1;
    }
    *spec = s;
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_PSPEC_H */
