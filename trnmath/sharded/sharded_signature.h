/* sharded/sharded_signature.h - the fields of a sharded product that all processes must have been given alike.
 * Behind trn_mpi.h. SPDX-License-Identifier: MIT
 *
 * DOES: one row for each field of trn_sharded_matmul_args and of what it points to, as network/collective_signature.h
 *     has them for collectives.
 * DOES NOT: look at what was refused: the arguments have been checked.
 */
#ifndef TRNI_SHARDED_SHARDED_SIGNATURE_H
#define TRNI_SHARDED_SHARDED_SIGNATURE_H

#include "../network/collective_signature.h"
#include "sharded_matmul.h"

/* ---- meshes ---- */

/* Of every axis, in one word for each field. */
#define TRNI_SIGNATURE_AXIS(X, ARRAY)                                                                                  \
    ARRAY(name, HERE, "for people")                                                                                    \
    X(size, AXES, (uint64_t)axis->size)                                                                                \
    X(stride, AXES, (uint64_t)axis->stride)                                                                            \
    X(levels, HERE, "where it lies: mesh.order")                                                                       \
    ARRAY(level, HERE, "where it lies: mesh.order")

#define TRNI_SIGNATURE_MESH(X, ARRAY)                                                                                  \
    X(net, INSIDE, trni_signature_topology(b, "mesh.net.", "mesh.net.level.", mesh->net))                              \
    X(devices, INTEGER, mesh->devices)                                                                                 \
    X(axes, INTEGER, mesh->axes)                                                                                       \
    ARRAY(axis, INSIDE, trni_signature_axes(b, "mesh.axis.", mesh))                                                    \
    X(order, HASH, trni_hash_mesh(mesh))                                                                               \
    X(placed, HERE, "which chips the devices are: order")                                                              \
    X(rests, HERE, "order")                                                                                            \
    ARRAY(rest, HERE, "order")

TRNI_COVERS(trn_mesh_axis, TRNI_SIGNATURE_AXIS)
TRNI_COVERS(trn_mesh, TRNI_SIGNATURE_MESH)

#define TRNI_PUT_AXES(field, of)                                                                                       \
    hash = 0;                                                                                                          \
    for (int i = 0; i < mesh->axes; i++) {                                                                             \
        const trn_mesh_axis *axis = &mesh->axis[i];                                                                    \
        hash = trni_hash(hash, of);                                                                                    \
    }                                                                                                                  \
    trni_signature_put(b, owner, #field, TRNI_SHOW_HASH, hash);

TRNI_FN void trni_signature_axes(trni_signature *b, const char *owner, const trn_mesh *mesh)
{
    uint64_t hash;
    TRNI_SIGNATURE_AXIS(TRNI_PUT, TRNI_PUT)
}

/* The chip of every device: levels that axes name and lists of the caller's come to the same. */
TRNI_FN uint64_t trni_hash_mesh(const trn_mesh *mesh)
{
    uint64_t hash = 0;
    for (int i = 0; i < mesh->devices; i++) hash = trni_hash(hash, (uint64_t)trn_mesh_chip(mesh, i));
    return hash;
}

TRNI_FN void trni_signature_mesh(trni_signature *b, const char *owner, const trn_mesh *mesh)
{
    TRNI_SIGNATURE_MESH(TRNI_PUT, TRNI_PUT)
}

/* ---- shardings ---- */

#define TRNI_SIGNATURE_LIST(X, ARRAY)                                                                                  \
    X(axes, LISTS, (uint64_t)list->axes)                                                                               \
    ARRAY(axis, LISTS, trni_hash_list(list))

#define TRNI_SIGNATURE_SPEC(X, ARRAY)                                                                                  \
    X(rank, HERE, "both dimensions count, named or not")                                                               \
    ARRAY(dim, INSIDE, trni_signature_dims(b, owner, spec))                                                            \
    X(sum, WORD, spec->sum)                                                                                            \
    X(op, INTEGER, spec->op)

TRNI_COVERS(trn_pspec_dim, TRNI_SIGNATURE_LIST)
TRNI_COVERS(trn_pspec, TRNI_SIGNATURE_SPEC)

#define TRNI_PUT_LISTS(field, of)                                                                                      \
    hash = 0;                                                                                                          \
    for (int d = 0; d < 2; d++) {                                                                                      \
        const trn_pspec_dim *list = d < spec->rank ? &spec->dim[d] : &whole;                                           \
        hash = trni_hash(hash, of);                                                                                    \
    }                                                                                                                  \
    trni_signature_put(b, owner, "dim." #field, TRNI_SHOW_HASH, hash);

TRNI_FN uint64_t trni_hash_list(const trn_pspec_dim *list)
{
    uint64_t hash = 0;
    for (int i = 0; i < list->axes; i++) hash = trni_hash(hash, (uint64_t)list->axis[i]);
    return hash;
}

TRNI_FN void trni_signature_dims(trni_signature *b, const char *owner, const trn_pspec *spec)
{
    trn_pspec_dim whole;
    uint64_t hash;
    memset(&whole, 0, sizeof whole);
    TRNI_SIGNATURE_LIST(TRNI_PUT, TRNI_PUT)
}

TRNI_FN void trni_signature_spec(trni_signature *b, const char *owner, const trn_pspec *spec)
{
    TRNI_SIGNATURE_SPEC(TRNI_PUT, TRNI_PUT)
}

/* ---- numerics ---- */

#define TRNI_SIGNATURE_NUMERICS(X, ARRAY)                                                                              \
    X(chains, INTEGER, n->chains)                                                                                      \
    X(k_tile, INTEGER, n->k_tile)                                                                                      \
    X(chain_layout, INTEGER, n->chain_layout)                                                                          \
    X(merge, INTEGER, n->merge)                                                                                        \
    X(product, INTEGER, n->product)                                                                                    \
    X(group, INTEGER, n->group)                                                                                        \
    X(accumulator, INTEGER, n->accumulator)                                                                            \
    X(accumulator_bits, INTEGER, n->accumulator_bits)                                                                  \
    X(aligned_bytes, INTEGER, n->aligned_bytes)                                                                        \
    X(aligned_bits, INTEGER, n->aligned_bits)                                                                          \
    X(aligned_result_bits, INTEGER, n->aligned_result_bits)                                                            \
    X(aligned_floor, INTEGER, n->aligned_floor)                                                                        \
    X(aligned_rounding, INTEGER, n->aligned_rounding)                                                                  \
    X(fp32_mode, INTEGER, n->fp32_mode)                                                                                \
    X(tf32_input, INTEGER, n->tf32_input)                                                                              \
    X(int32_overflow, INTEGER, n->int32_overflow)                                                                      \
    X(flush_inputs, INTEGER, n->flush_inputs)                                                                          \
    X(flush_products, INTEGER, n->flush_products)                                                                      \
    X(flush_sums, INTEGER, n->flush_sums)                                                                              \
    X(psum_format, FORMAT, n->psum_format)                                                                             \
    X(psum_rounding, INTEGER, n->psum_rounding)                                                                        \
    X(mx_scale_rule, INTEGER, n->mx_scale_rule)                                                                        \
    X(fp8_bias, INTEGER, n->fp8_bias)                                                                                  \
    X(sr_bits, INTEGER, n->sr_bits)                                                                                    \
    X(sr_where, INTEGER, n->sr_where)                                                                                  \
    X(activation_fused, INTEGER, n->activation_fused)                                                                  \
    X(reduce_order, INTEGER, n->reduce_order)                                                                          \
    X(rsqrt_buckets, INTEGER, n->rsqrt_buckets)

TRNI_COVERS(trn_numerics, TRNI_SIGNATURE_NUMERICS)

TRNI_FN void trni_signature_numerics(trni_signature *b, const char *owner, const trn_matmul_args *m)
{
    trn_numerics resolved;
    const trn_numerics *n = &resolved;
    memset(&resolved, 0, sizeof resolved);
    trni_numerics_resolve(m->numerics, m->generation, &resolved, NULL);
    TRNI_SIGNATURE_NUMERICS(TRNI_PUT, TRNI_PUT)
}

/* ---- products ---- */

#define TRNI_SIGNATURE_MATMUL(X, ARRAY)                                                                                \
    X(generation, INTEGER, m->generation)                                                                              \
    X(dst, HERE, "its format, where a process has no view: dst.format")                                                \
    X(a, HERE, "a.format")                                                                                             \
    X(b, HERE, "b.format")                                                                                             \
    X(a_scale, HERE, "products across processes take none")                                                            \
    X(b_scale, HERE, "products across processes take none")                                                            \
    X(accumulate, INTEGER, m->accumulate)                                                                              \
    X(double_row, INTEGER, m->double_row)                                                                              \
    X(rounding, INTEGER, m->rounding)                                                                                  \
    X(overflow, INTEGER, m->overflow)                                                                                  \
    X(seed, WORD, m->seed)                                                                                             \
    X(stream, WORD, m->stream)                                                                                         \
    X(numerics, INSIDE, trni_signature_numerics(b, "matmul.numerics.", m))                                             \
    X(isa, HERE, "all instruction sets give the same bits")                                                            \
    X(scratch, HERE, "memory")                                                                                         \
    X(scratch_bytes, HERE, "memory")                                                                                   \
    X(error, HERE, "where a process wants its sentence")                                                               \
    X(packed, HERE, "it belongs to another b, and is not looked at")                                                   \
    X(units, HERE, "what this host's unit did")

TRNI_COVERS(trn_matmul_args, TRNI_SIGNATURE_MATMUL)

TRNI_FN void trni_signature_matmul(trni_signature *b, const char *owner, const trn_matmul_args *m)
{
    TRNI_SIGNATURE_MATMUL(TRNI_PUT, TRNI_PUT)
}

TRNI_FN void trni_signature_calibrated(trni_signature *b, const char *owner, const trn_sharded_matmul_args *args)
{
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = args->mesh->net;
    a.calibration = args->calibration;
    a.uncalibrated = args->uncalibrated;
    const trn_calibration c = trni_calibration_of(&a);
    trni_signature_calibration(b, owner, &c);
}

TRNI_FN void trni_signature_format(trni_signature *b, const char *owner, trn_format format)
{
    TRNI_PUT(format, FORMAT, format)
}

#define TRNI_SIGNATURE_PRODUCT(X, ARRAY)                                                                               \
    X(mesh, INSIDE, trni_signature_mesh(b, "mesh.", s->mesh))                                                          \
    X(m, INTEGER, args->m)                                                                                             \
    X(n, INTEGER, args->n)                                                                                             \
    X(k, INTEGER, args->k)                                                                                             \
    X(a_spec, INSIDE, trni_signature_spec(b, "a_spec.", &args->a_spec))                                                \
    X(b_spec, INSIDE, trni_signature_spec(b, "b_spec.", &args->b_spec))                                                \
    X(dst_spec, INSIDE, trni_signature_spec(b, "dst_spec.", &args->dst_spec))                                          \
    X(a, INSIDE, trni_signature_format(b, "a.", s->a))                                                                 \
    X(b, INSIDE, trni_signature_format(b, "b.", s->b))                                                                 \
    X(dst, INSIDE, trni_signature_format(b, "dst.", s->dst))                                                           \
    X(matmul, INSIDE, trni_signature_matmul(b, "matmul.", &args->matmul))                                              \
    X(a_scale, HERE, "products across processes take none")                                                            \
    X(b_scale, HERE, "products across processes take none")                                                            \
    X(wire, FORMAT, s->wire)                                                                                           \
    X(algorithm, ALGORITHM, args->algorithm)                                                                           \
    X(uncalibrated, INTEGER, args->uncalibrated)                                                                       \
    X(calibration, INSIDE, trni_signature_calibrated(b, "calibration.", args))                                         \
    X(ranks_per_chip, HERE, "costs only; more than one is refused")                                                    \
    X(even_only, INTEGER, args->even_only)                                                                             \
    X(cost_only, HERE, "values are always computed")                                                                   \
    X(cost, HERE, "out")                                                                                               \
    X(plan, HERE, "out")                                                                                               \
    X(error, HERE, "where a process wants its sentence")

TRNI_COVERS(trn_sharded_matmul_args, TRNI_SIGNATURE_PRODUCT)

TRNI_FN void trni_signature_product(trni_signature *b, const trni_sharded *s)
{
    const trn_sharded_matmul_args *args = s->ask;
    const char *owner = "";
    TRNI_SIGNATURE_PRODUCT(TRNI_PUT, TRNI_PUT)
}

#endif /* TRNI_SHARDED_SHARDED_SIGNATURE_H */
