/* sharded/sharded_matmul.h - products of sharded matrices: the values on every device, and the time.
 * A part of trn_reshard.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard.h>
 *     int main(void) { // K over four devices: partial products, then their sum everywhere
 *         const trn_topology net = trn_topology_ring(4, 128e9, 1e-6);
 *         static float a[4][8 * 2], b[4][2 * 8], c[4][8 * 8];
 *         trn_tensor part[3][4];
 *         trn_mesh mesh;
 *         trn_sharded_matmul_args args = { .mesh = &mesh, .m = 8, .n = 8, .k = 8 };
 *         for (int i = 0; i < 4; i++) {
 *             for (int k = 0; k < 16; k++) a[i][k] = b[i][k] = 1;
 *             part[0][i] = trn_tensor_2d(TRN_F32, a[i], 8, 2);
 *             part[1][i] = trn_tensor_2d(TRN_F32, b[i], 2, 8);
 *             part[2][i] = trn_tensor_2d(TRN_F32, c[i], 8, 8);
 *         }
 *         args.a = part[0], args.b = part[1], args.dst = part[2];
 *         if (trn_mesh_init(&mesh, &net, "tensor=4")) return 1;
 *         trn_pspec_parse(&args.a_spec, &mesh, "(*, tensor)");
 *         trn_pspec_parse(&args.b_spec, &mesh, "(tensor, *)");
 *         return trn_sharded_matmul(&args) == TRN_OK && c[3][63] == 8 ? 0 : 1;
 *     }
 *
 * DOES: dst = a b, by the rules of sharded/sharded_plan.h. Each device's product has the bits of trn_matmul on what it
 *     holds; where K is cut it is rounded to the wire and summed as trn_collective_run sums it; then rounded once more,
 *     if dst's format is not the wire's. Without a cut K, that is the bits of one trn_matmul of the wholes, stochastic
 *     rounding included. Of several copies of an operand the first is read. The number of threads plays no part.
 * DOES NOT: multiply what all devices of a group multiply alike more than once: it is done once for all of them.
 *
 * KNOWN FROM: trn_matmul.h, trn_collective.h; tests/unit/test_sharded_matmul.c goes device by device.
 */
#ifndef TRNI_SHARDED_SHARDED_MATMUL_H
#define TRNI_SHARDED_SHARDED_MATMUL_H

#include "../network/collective.h"
#include "sharded_plan.h"

/* ---- the call ---- */

/* dst = a b. TRN_EINVAL, TRN_ESHAPE, TRN_EFORMAT: shardings, sizes, formats and views that do not fit;
 * TRN_EUNSUPPORTED: what the generation lacks, an algorithm that fits none of the groups, operands that are sums;
 * TRN_ENOSPC. */
TRN_API trn_status trn_sharded_matmul(const trn_sharded_matmul_args *args);

#if TRNI_BODIES

#include "../base/threads.h"
#include "reshard_values.h"
#include "sharded_fold.h"

/* ---- wholes of parts ---- */

/* A matrix as one view: the caller's memory where all parts lie in it as they should, else a copy. */
typedef struct trni_whole {
    trn_tensor view;
    void *memory; /* of a copy */
} trni_whole;

TRNI_FN bool trni_whole_is_there(const trn_shard_args *parts, trn_tensor *whole)
{
    const unsigned same = trni_replicated(&parts->spec, parts->mesh);
    *whole = parts->global;
    whole->data = parts->parts[0].data;
    trni_strides(&parts->parts[0], whole->stride);
    for (int d = 0; d < whole->rank; d++)
        if (parts->parts[0].shape[d] < 2) whole->stride[d] = 0; /* not known from one row */
    for (int i = 0; i < parts->mesh->devices; i++) {
        const trn_box box = trn_shard_box(parts->mesh, &parts->spec, &parts->global, i);
        int64_t stride[TRN_MAX_RANK], at = 0;
        trni_strides(&parts->parts[i], stride);
        if (!trn_tensor_elements(parts->parts[i]) || trni_first_along(parts->mesh, same, i) != i) continue;
        for (int d = 0; d < whole->rank; d++) {
            if (box.count[d] > 1 && stride[d] != whole->stride[d]) return false;
            if (box.first[d] && !whole->stride[d]) return false;
            at += box.first[d] * whole->stride[d];
        }
        if ((char *)parts->parts[i].data != (char *)whole->data + at * (int64_t)trn_format_bytes(whole->format))
            return false;
    }
    return whole->stride[0] > 0 && whole->stride[1] > 0;
}

TRNI_FN trn_status trni_whole_gather(trni_whole *w, const trn_shard_args *parts)
{
    const int64_t bytes = trn_tensor_elements(parts->global) * (int64_t)trn_format_bytes(parts->global.format);
    w->memory = NULL;
    if (trni_whole_is_there(parts, &w->view)) return TRN_OK;
    w->memory = malloc((size_t)bytes + 64);
    if (!w->memory)
        return trni_fail(parts->error, TRN_ENOSPC, "could not allocate %lld bytes for an operand", (long long)bytes);
    w->view = parts->global;
    w->view.data = (char *)w->memory + (0 - (uintptr_t)w->memory) % 64;
    trn_shard_args own = *parts;
    own.global = w->view;
    return trn_unshard(&own);
}

/* ---- one call ---- */

typedef struct trni_sharded_run {
    trni_sharded s;
    trn_matmul_args options; /* without views, scratch and error */
    trni_whole a, b, a_scale, b_scale;
    trn_tensor out;              /* the product, [m, n] */
    int *part;                   /* [members] */
    int *chip;                   /* [devices] */
    trni_partial_region *region; /* [groups] */
    trni_schedule schedule;
} trni_sharded_run;

TRNI_FN trn_shard_args trni_sharded_parts(const trni_sharded *s, const trn_pspec *spec, const trn_tensor *whole,
                                          const trn_tensor *parts)
{
    trn_shard_args p;
    memset(&p, 0, sizeof p);
    p.mesh = s->mesh;
    p.spec = *spec;
    p.global = *whole;
    p.parts = parts;
    p.overflow = s->ask->matmul.overflow;
    p.isa = s->ask->matmul.isa;
    p.error = s->ask->error;
    return p;
}

/* Scales: [rows, k/32], cut as their operand is. */
TRNI_FN trn_tensor trni_scale_whole(const trni_sharded *s, bool of_a)
{
    return trn_tensor_2d(TRN_F8_E8M0, NULL, of_a ? s->ask->m : s->ask->n, s->ask->k / 32);
}

TRNI_FN trn_pspec trni_scale_spec(const trni_sharded *s, bool of_a)
{
    trn_pspec spec = of_a ? s->ask->a_spec : s->ask->b_spec;
    if (of_a) return spec;
    spec.dim[0] = s->ask->b_spec.dim[1];
    spec.dim[1] = s->ask->b_spec.dim[0];
    spec.rank = 2;
    return spec;
}

/* ---- checks ---- */

TRNI_DRIVER trn_status trni_sharded_check_operand(const trni_sharded *s, const char *name, const trn_shard_args *p,
                                                  trni_use use)
{
    const trn_sharded_matmul_args *ask = s->ask;
    if (!p->parts) return trni_fail(ask->error, TRN_EINVAL, "%s is null", name);
    const trn_status status = trni_check_parts(p, name, use);
    for (int i = 0; !status && i < s->mesh->devices; i++)
        if (!trni_same_format(&p->parts[i], &p->parts[0]) || p->parts[i].format != p->global.format)
            return trni_fail(ask->error, TRN_EFORMAT, "%s[%d] is %s but %s[0] is %s", name, i,
                             trn_format_name(p->parts[i].format), name, trn_format_name(p->parts[0].format));
    return status;
}

TRNI_DRIVER trn_status trni_sharded_check_scales(const trni_sharded *s)
{
    const trn_sharded_matmul_args *ask = s->ask;
    if (ask->matmul.a_scale.rank || ask->matmul.b_scale.rank)
        return trni_fail(ask->error, TRN_EINVAL,
                         "matmul.a_scale and b_scale have no place here; a_scale and b_scale do");
    if (!ask->a_scale && !ask->b_scale) return TRN_OK;
    if (!ask->a_scale || !ask->b_scale)
        return trni_fail(ask->error, TRN_EINVAL, "MX needs the scales of both operands; %s is null",
                         ask->a_scale ? "b_scale" : "a_scale");
    const int parts[] = { trn_pspec_parts(&ask->a_spec, s->mesh, 1), trn_pspec_parts(&ask->b_spec, s->mesh, 0) };
    for (int i = 0; i < 2; i++)
        if (ask->k % (32 * (parts[i] > 1 ? parts[i] : 1)))
            return trni_fail(ask->error, TRN_ESHAPE,
                             "k = %lld is not %d parts of whole groups of 32, as the scales of %s need",
                             (long long)ask->k, parts[i], i ? "b" : "a");
    for (int of_a = 0; of_a < 2; of_a++) {
        const trn_tensor whole = trni_scale_whole(s, of_a != 0);
        const trn_pspec spec = trni_scale_spec(s, of_a != 0);
        const trn_shard_args p = trni_sharded_parts(s, &spec, &whole, of_a ? ask->a_scale : ask->b_scale);
        const trn_status status = trni_sharded_check_operand(s, of_a ? "a_scale" : "b_scale", &p, TRNI_INPUT);
        if (status) return status;
    }
    return TRN_OK;
}

/* No part of dst meets an operand, or another part of dst. */
TRNI_DRIVER trn_status trni_sharded_check_apart(const trni_sharded *s)
{
    const trn_sharded_matmul_args *ask = s->ask;
    const struct {
        const char *name;
        const trn_tensor *view;
    } with[] = {
        { "a", ask->a }, { "b", ask->b }, { "a_scale", ask->a_scale }, { "b_scale", ask->b_scale }, { "dst", ask->dst }
    };
    const int n = s->mesh->devices;
    const bool apart = trni_views_ascend(ask->dst, n);
    for (int w = 0; w < 5 - apart; w++)
        for (int i = 0; with[w].view && i < n; i++)
            for (int j = 0; j < (w == 4 ? i : n); j++)
                if (trn_tensor_overlap(ask->dst[i], with[w].view[j]))
                    return trni_fail(ask->error, TRN_EINVAL, "dst[%d] overlaps %s[%d]", i, with[w].name, j);
    return TRN_OK;
}

/* Formats, generation, modes: what trn_matmul says to a product without rows. */
TRNI_DRIVER trn_status trni_sharded_check_modes(const trni_sharded *s)
{
    const trn_sharded_matmul_args *ask = s->ask;
    const int64_t k = ask->k / 32 * 32; /* any depth that scales fit */
    trn_matmul_args m = ask->matmul;
    m.a = trn_tensor_2d(s->a, NULL, 0, k);
    m.b = trn_tensor_2d(s->b, NULL, k, 0);
    m.dst = trn_tensor_2d(s->plan.product.sum ? (s->a == TRN_I8 ? TRN_I32 : TRN_F32) : s->dst, NULL, 0, 0);
    m.a_scale = m.b_scale = trni_no_tensor();
    if (ask->a_scale) m.a_scale = m.b_scale = trn_tensor_2d(TRN_F8_E8M0, NULL, 0, k / 32);
    m.scratch = NULL;
    m.packed = NULL; /* it holds another b */
    m.error = ask->error;
    if (ask->a && s->a == TRN_CFP8) m.a.cfp8 = ask->a[0].cfp8;
    if (ask->b && s->b == TRN_CFP8) m.b.cfp8 = ask->b[0].cfp8;
    if (ask->dst && s->dst == TRN_CFP8) m.dst.cfp8 = ask->dst[0].cfp8;
    return trn_matmul(&m);
}

TRNI_DRIVER trn_status trni_sharded_check_views(const trni_sharded *s)
{
    const trn_sharded_matmul_args *ask = s->ask;
    const trn_shard_args a = trni_sharded_parts(s, &ask->a_spec, &s->a_whole, ask->a);
    const trn_shard_args b = trni_sharded_parts(s, &ask->b_spec, &s->b_whole, ask->b);
    trn_shard_args dst = trni_sharded_parts(s, &ask->dst_spec, &s->product, ask->dst);
    dst.global.format = s->dst;
    trn_status status = trni_sharded_check_operand(s, "a", &a, TRNI_INPUT);
    if (!status) status = trni_sharded_check_operand(s, "b", &b, TRNI_INPUT);
    if (!status) status = trni_sharded_check_operand(s, "dst", &dst, TRNI_OUTPUT);
    if (!status) status = trni_sharded_check_scales(s);
    if (!status && ask->ranks_per_chip > 1)
        status = trni_fail(ask->error, TRN_EUNSUPPORTED,
                           "ranks_per_chip = %d is for costs; values are computed with one rank per chip",
                           ask->ranks_per_chip);
    return status ? status : trni_sharded_check_apart(s);
}

/* ---- the product as a whole ---- */

TRNI_FN trn_status trni_sharded_gather(trni_sharded_run *r)
{
    trni_sharded *s = &r->s;
    const trn_sharded_matmul_args *ask = s->ask;
    trn_shard_args p = trni_sharded_parts(s, &ask->a_spec, &s->a_whole, ask->a);
    trn_status status = trni_whole_gather(&r->a, &p);
    p = trni_sharded_parts(s, &ask->b_spec, &s->b_whole, ask->b);
    if (!status) status = trni_whole_gather(&r->b, &p);
    for (int of_a = 0; !status && ask->a_scale && of_a < 2; of_a++) {
        const trn_tensor whole = trni_scale_whole(s, of_a != 0);
        const trn_pspec spec = trni_scale_spec(s, of_a != 0);
        p = trni_sharded_parts(s, &spec, &whole, of_a ? ask->a_scale : ask->b_scale);
        status = trni_whole_gather(of_a ? &r->a_scale : &r->b_scale, &p);
    }
    return status;
}

/* K is not cut: one product. */
TRNI_FN trn_status trni_sharded_multiply(trni_sharded_run *r)
{
    trn_matmul_args m = r->options;
    m.a = r->a.view;
    m.b = r->b.view;
    m.a_scale = r->a_scale.view;
    m.b_scale = r->b_scale.view;
    m.dst = r->out;
    m.error = r->s.ask->error;
    return trn_matmul(&m);
}

/* ---- K is cut, and one collective sums it all ---- */

/* The step that sums, if it is one and sums over all of K. Not where PSUM draws words of its own for each place in a
 * device's part. */
TRNI_FN const trn_reshard_step *trni_sharded_sum_step(const trni_sharded *s)
{
    const trn_numerics *numerics = s->ask->matmul.numerics;
    if (numerics && numerics->psum_format == TRN_BF16 && numerics->psum_rounding == TRN_STOCHASTIC) return NULL;
    const trn_reshard_plan *plan = &s->plan.result;
    const trn_reshard_step *found = NULL;
    int closed = 0;
    for (int i = 0; i < plan->steps; i++) {
        if (!trni_is_reduction(&plan->step[i])) continue;
        found = &plan->step[i];
        closed++;
    }
    if (closed != 1) return NULL;
    for (int a = 0; a < s->mesh->axes; a++)
        if (trn_pspec_is_sum(&s->plan.product, a)) {
            bool there = false;
            for (int i = 0; i < found->axes; i++) there = there || found->axis[i] == a;
            if (!there) return NULL;
        }
    return found;
}

/* The operands as lines times places: b' a' where columns are scattered. */
TRNI_FN trni_cut_product trni_sharded_operands(const trni_sharded_run *r, bool by_columns)
{
    const int parts = trn_pspec_parts(&r->s.plan.a_at, r->s.mesh, 1);
    const trni_cut_product rows = { r->a.view, r->b.view, r->a_scale.view, r->b_scale.view, &r->options, parts };
    const trni_cut_product columns = { trn_tensor_transposed(r->b.view),
                                       trn_tensor_transposed(r->a.view),
                                       r->b_scale.view,
                                       r->a_scale.view,
                                       &r->options,
                                       parts };
    return by_columns ? columns : rows;
}

/* The part of the product that each group sums, once for those that sum the same. Where all elements are summed alike,
 * that is all of it. */
TRNI_FN int trni_sharded_regions(const trni_sharded_run *r, const trni_mesh_split *split, const trn_reshard_step *step,
                                 const trn_pspec *before, bool alike)
{
    const trni_sharded *s = &r->s;
    const unsigned same = trni_replicated(before, s->mesh);
    const int cut = step->to_dim, line = cut == 1 && !alike;
    int regions = 0;
    for (int g = 0; g < (alike ? 1 : split->groups); g++) {
        const int device = trni_split_device(split, g, 0);
        trn_box box = trn_shard_box(s->mesh, before, &s->product, device);
        if (trni_first_along(s->mesh, same, device) != device) continue;
        for (int d = 0; d < 2 && alike; d++) {
            box.first[d] = 0;
            box.count[d] = s->product.shape[d];
        }
        if (!box.count[0] || !box.count[1]) continue;
        const int64_t parts = cut < 0 ? 1 : trn_pspec_parts(&step->after, s->mesh, cut);
        const int64_t granule = cut < 0 ? 1 : trni_ceil_div(s->product.shape[cut], parts) * box.count[1 - cut];
        const trni_partial_region region = { box.first[line],
                                             box.count[line],
                                             box.first[1 - line],
                                             box.count[1 - line],
                                             granule,
                                             s->ask->matmul.stream + ((uint64_t)g << 32),
                                             0 };
        r->region[regions++] = region;
    }
    return regions;
}

TRNI_FN trn_collective_args trni_sharded_question(const trni_sharded_run *r, const trn_reshard_step *step, int groups)
{
    const trn_sharded_matmul_args *ask = r->s.ask;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = r->s.mesh->net;
    a.op = step->op;
    a.algorithm = step->algorithm;
    a.single_step = step->cost.single_step;
    a.bytes = step->bytes;
    a.chips = r->chip;
    a.count = r->s.mesh->devices / groups;
    a.groups = groups;
    a.rounding = ask->matmul.rounding;
    a.overflow = ask->matmul.overflow;
    a.seed = ask->matmul.seed;
    a.stream = ask->matmul.stream;
    a.uncalibrated = ask->uncalibrated;
    a.calibration = ask->calibration;
    a.error = ask->error;
    return a;
}

TRNI_FN trn_status trni_sharded_fold(trni_sharded_run *r, const trn_collective_args *question,
                                     const trni_mesh_split *split, const trn_reshard_step *step,
                                     const trn_pspec *before)
{
    trni_sum_arith arith;
    trni_partial_job job;
    trn_isa isa = r->options.isa;
    const trn_status status = trni_isa_resolve(&isa, question->error);
    if (status) return status;
    trni_sum_arith_init(&arith, question, r->s.wire, isa);
    const bool alike = !arith.arith.stochastic && r->schedule.channels == 1 && trni_sums_agree(&r->schedule);
    const bool by_columns = step->to_dim == 1 && !alike;
    const trni_cut_product operands = trni_sharded_operands(r, by_columns);
    memset(&job, 0, sizeof job);
    job.p = &operands;
    job.part = r->part;
    job.f = &arith;
    job.s = &r->schedule;
    job.region = r->region;
    job.regions = trni_sharded_regions(r, split, step, before, alike);
    job.out = r->out;
    job.line_step = by_columns ? 1 : r->out.shape[1];
    job.place_step = by_columns ? r->out.shape[1] : 1;
    return trni_partial_run(&job);
}

TRNI_FN trn_status trni_sharded_sum(trni_sharded_run *r, const trn_reshard_step *step)
{
    const trni_sharded *s = &r->s;
    trni_mesh_split split;
    trni_layout layout;
    trni_pick pick;
    if (!trni_split_of(&split, s->mesh, step->axis, step->axes)) return TRN_EINVAL; /* a plan's axes are the mesh's */
    const trn_reshard_step *first = s->plan.result.step;
    const trn_pspec *before = step == first ? &s->plan.product : &(step - 1)->after;
    for (int i = 0; i < split.members; i++)
        r->part[i] = trni_part_index(&s->plan.a_at, s->mesh, 1, trni_split_device(&split, 0, i));
    for (int i = 0; i < s->mesh->devices; i++)
        r->chip[i] = trn_mesh_chip(s->mesh, trni_split_device(&split, i / split.members, i % split.members));
    const trn_collective_args question = trni_sharded_question(r, step, split.groups);
    trn_status status = trni_layout_init(&layout, &question);
    if (!status) status = trni_pick_best(&layout, (double)step->bytes, &pick);
    if (!status) status = trni_layout_schedule(&layout, pick.algorithm, pick.variant, &r->schedule);
    if (status) return status;
    status = trni_sharded_fold(r, &question, &split, step, before);
    trni_schedule_free(&r->schedule);
    return status == TRN_ENOSPC ? trni_fail(s->ask->error, status, "could not allocate memory for the sums") : status;
}

/* ---- the whole into the parts of dst ---- */

TRNI_FN void trni_sharded_round(const trni_sharded *s, trn_tensor dst, trn_tensor src)
{
    const trn_matmul_args *m = &s->ask->matmul;
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.dst = dst;
    c.src = src;
    c.rounding = m->rounding;
    c.overflow = m->overflow;
    c.seed = m->seed;
    c.stream = m->stream + UINT32_MAX;
    c.isa = m->isa;
    (void)trn_convert(&c); /* its arguments were checked */
}

TRNI_FN void trni_sharded_deliver(const trni_sharded_run *r)
{
    const trni_sharded *s = &r->s;
    const trn_shard_args none = trni_sharded_parts(s, &s->dst_spec, &r->out, s->ask->dst);
    const int64_t elements = trn_tensor_elements(r->out);
    (void)elements;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(dynamic, 1) if (elements >= TRNI_CONVERT_PARALLEL))
    for (int i = 0; i < s->mesh->devices; i++) {
        TRNI_FLOATS;
        const trn_tensor dst = s->ask->dst[i];
        if (trni_first_along(s->mesh, s->dst_spec.sum, i) != i)
            trni_shard_zero(&none, dst);
        else
            trni_sharded_round(s, dst, trn_shard_part(s->mesh, &s->dst_spec, &r->out, i));
    }
}

/* ---- K is cut, and dst leaves some of its sum open, or several collectives close it: device by device ---- */

TRNI_FN trn_status trni_sharded_local(trni_sharded_run *r, const trn_tensor *parts)
{
    const trni_sharded *s = &r->s;
    const trni_cut_product p = trni_sharded_operands(r, false);
    trn_status status = TRN_OK;
    for (int i = 0; i < s->mesh->devices && !status; i++) {
        const trn_box box = trn_shard_box(s->mesh, &s->plan.product, &s->product, i);
        const trn_tensor lines = trn_tensor_slice(p.x, 0, box.first[0], box.count[0]);
        trn_tensor scales = p.x_scale;
        if (scales.rank) scales = trn_tensor_slice(scales, 0, box.first[0], box.count[0]);
        const trni_line_product one = { &p, lines, scales, box.first[1], box.count[1] };
        status = trni_line_multiply(&one, trni_part_index(&s->plan.a_at, s->mesh, 1, i), (float *)parts[i].data);
    }
    return status == TRN_ENOSPC ? trni_fail(s->ask->error, status, "could not allocate memory for the products")
                                : status;
}

TRNI_FN trn_status trni_sharded_each(trni_sharded_run *r)
{
    const trni_sharded *s = &r->s;
    trn_tensor whole = s->product;
    trni_own_parts local = { NULL, NULL }, done = { NULL, NULL };
    whole.format = TRN_F32; /* products are rounded where they are summed, or where they end */
    trn_redistribute_args ask = trni_sharded_redistribution(s, &s->plan.product, &s->dst_spec, &whole);
    trni_way way = { &ask, s->plan.result, s->plan.product, NULL, { NULL, NULL }, NULL };
    trn_status status = trni_own_parts_make(&local, s->mesh, &s->plan.product, &whole, s->ask->error);
    if (!status) status = trni_own_parts_make(&done, s->mesh, &s->dst_spec, &whole, s->ask->error);
    if (!status) status = trni_sharded_local(r, local.view);
    ask.src = local.view;
    ask.dst = done.view;
    if (!status) {
        status = trni_way_run(&way);
        trni_own_parts_free(&way.mine);
    }
    for (int i = 0; !status && i < s->mesh->devices; i++) trni_sharded_round(s, s->ask->dst[i], done.view[i]);
    trni_own_parts_free(&local);
    trni_own_parts_free(&done);
    return status;
}

/* ---- the call ---- */

TRNI_FN trn_status trni_sharded_memory(trni_sharded_run *r)
{
    const trni_sharded *s = &r->s;
    const size_t devices = (size_t)s->mesh->devices;
    const int64_t bytes = s->ask->m * s->ask->n * (int64_t)trn_format_bytes(s->product.format);
    r->part = (int *)malloc(2 * sizeof(int) * devices);
    r->chip = r->part ? r->part + devices : NULL;
    r->region = (trni_partial_region *)malloc(sizeof(trni_partial_region) * devices);
    r->out = s->product;
    r->out.data = malloc((size_t)bytes + 64);
    if (r->part && r->region && r->out.data) return TRN_OK;
    return trni_fail(s->ask->error, TRN_ENOSPC, "could not allocate %lld bytes for the product", (long long)bytes);
}

TRNI_FN trn_status trni_sharded_values(trni_sharded_run *r)
{
    const trn_reshard_step *sum = trni_sharded_sum_step(&r->s);
    trn_status status = trni_sharded_memory(r);
    if (!status) status = trni_sharded_gather(r);
    if (status || !r->s.ask->m || !r->s.ask->n) return status;
    if (r->s.plan.product.sum && !sum) return trni_sharded_each(r);
    status = r->s.plan.product.sum ? trni_sharded_sum(r, sum) : trni_sharded_multiply(r);
    if (!status) trni_sharded_deliver(r);
    return status;
}

TRNI_FN trn_status trni_sharded_run_all(trni_sharded_run *r, const trn_sharded_matmul_args *args)
{
    trn_status status = trni_sharded_resolve(&r->s, args);
    if (!status) status = trni_sharded_check_modes(&r->s);
    if (!status) status = trni_sharded_time(&r->s);
    if (!status && !args->cost_only) status = trni_sharded_check_views(&r->s);
    if (status) return status;
    r->options = args->matmul;
    r->options.error = NULL;
    r->options.scratch = NULL;
    r->options.packed = NULL;
    if (!args->cost_only) {
        status = trni_sharded_values(r);
        free(r->a.memory);
        free(r->b.memory);
        free(r->a_scale.memory);
        free(r->b_scale.memory);
        free(r->part);
        free(r->region);
        free(r->out.data);
    }
    if (!status) trni_sharded_tell(&r->s);
    return status;
}

TRN_API trn_status trn_sharded_matmul(const trn_sharded_matmul_args *args)
{
    TRNI_ENTER(args);
    trni_sharded_run *const r = (trni_sharded_run *)calloc(1, sizeof *r); /* too large for a small stack */
    if (!r) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %zu bytes to work in", sizeof *r);
    const trn_status status = trni_sharded_run_all(r, args);
    free(r);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_SHARDED_SHARDED_MATMUL_H */
