/* sharded/sharded_plan.h - a sharded product: what moves first, what each device multiplies, what moves then.
 * A part of trn_reshard.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_mesh mesh;
 *         trn_cost cost;
 *         trn_sharded_matmul_plan plan;
 *         trn_sharded_matmul_args args = { .mesh = &mesh, .m = 8192, .n = 8192, .k = 8192, .cost = &cost };
 *         args.matmul.a.format = args.matmul.b.format = args.matmul.dst.format = TRN_BF16;
 *         if (trn_mesh_init(&mesh, &net, "data=4,tensor=4")) return 1;
 *         trn_pspec_parse(&args.a_spec, &mesh, "(data, tensor)");
 *         trn_pspec_parse(&args.b_spec, &mesh, "(tensor, *)");
 *         trn_pspec_parse(&args.dst_spec, &mesh, "(data, *)");
 *         if (trn_sharded_matmul_plan_of(&args, &plan)) return 1;
 *         printf("%.0f us at the engines, %.0f us between chips\n", 1e6 * plan.compute.time_s,
 *                1e6 * (cost.time_s - plan.compute.time_s));
 *         return plan.result.steps == 1 && plan.result.step[0].op == TRN_ALL_REDUCE ? 0 : 1;
 *     }
 *
 * DOES: the four cases of the scaling book, by fixed rules, so that bits do not hang on what a model says a move costs:
 *     - K is cut by the same axes in both operands: each device multiplies its part of K, and the products are summed;
 *     - K is cut in one operand, or further in one than in the other: that operand is gathered;
 *     - an axis cuts M of a and N of b: it is taken off b if dst's rows have it, off a if its columns do, else off the
 *       smaller operand;
 *     - else nothing moves; axes that cut dst, and neither operand, cut the operands first, where they are.
 *     How each of these redistributions is done is the cheapest plan of sharded/reshard_plan.h.
 * DOES NOT: overlap communication with the engines.
 *
 * KNOWN FROM: the scaling book, "Sharded matrices and how to multiply them" (the cases); trn_cost.h (the engines).
 */
#ifndef TRNI_SHARDED_SHARDED_PLAN_H
#define TRNI_SHARDED_SHARDED_PLAN_H

#include "../machine/cost.h"
#include "../array/matmul.h"
#include "reshard_plan.h"

typedef struct trn_sharded_matmul_plan {
    trn_pspec a_at, b_at; /* as the operands are when they are multiplied: [M, K], [K, N]; axes of size 1 left out */
    trn_pspec product;    /* as the products lie then: [M, N], with a sum where K is cut */
    int64_t m, n, k;      /* what the device with the largest part multiplies */
    trn_reshard_plan a, b, result; /* to a_at, to b_at, from product */
    trn_system_cost compute;       /* of one chip, all cores of it */
    double time_s;
} trn_sharded_matmul_plan;

typedef struct trn_sharded_matmul_args {
    const trn_mesh *mesh;
    int64_t m, n, k; /* of the whole: dst [m, n] = a [m, k] b [k, n] */
    trn_pspec a_spec, b_spec, dst_spec;
    const trn_tensor *a, *b, *dst; /* [mesh->devices] parts as the specs have them; null for a plan, */
    trn_matmul_args matmul;        /* which takes the formats from a, b and dst here. Else only the options are used: */
                                   /* generation, double_row, numerics, rounding, overflow, seed, stream, isa */
    const trn_tensor *a_scale, *b_scale; /* MX: [mesh->devices] parts of [m, k/32] and [n, k/32], cut as a and b */
    trn_format wire;                     /* partial products are rounded to it, and their sums; unset = dst's format */
    trn_algorithm algorithm;             /* as in trn_redistribute_args */
    bool uncalibrated;
    const trn_calibration *calibration;
    int ranks_per_chip;            /* costs only */
    bool even_only;                /* refuse what does not divide */
    bool cost_only;                /* trn_sharded_matmul: fill cost and plan, compute nothing */
    trn_cost *cost;                /* optional, out: time_s is communication and engines, one after another */
    trn_sharded_matmul_plan *plan; /* optional, out */
    trn_error *error;
} trn_sharded_matmul_args;

/* ---- the plan ---- */

/* *plan and *args->cost are written only when TRN_OK is returned. */
TRN_API trn_status trn_sharded_matmul_plan_of(const trn_sharded_matmul_args *args, trn_sharded_matmul_plan *plan);

#if TRNI_BODIES

/* ---- lists of axes ---- */

TRNI_FN bool trni_list_has(const trn_pspec_dim *list, int axis)
{
    for (int i = 0; i < list->axes; i++)
        if (list->axis[i] == axis) return true;
    return false;
}

TRNI_FN void trni_list_drop(trn_pspec_dim *list, int axis)
{
    int kept = 0;
    for (int i = 0; i < list->axes; i++)
        if (list->axis[i] != axis) list->axis[kept++] = list->axis[i];
    while (list->axes > kept) list->axis[--list->axes] = 0;
}

TRNI_FN bool trni_list_starts(const trn_pspec_dim *list, const trn_pspec_dim *with)
{
    for (int i = 0; i < with->axes; i++)
        if (i >= list->axes || list->axis[i] != with->axis[i]) return false;
    return true;
}

/* ---- what is asked, resolved ---- */

typedef struct trni_sharded {
    const trn_sharded_matmul_args *ask;
    const trn_mesh *mesh;
    trn_format a, b, dst, wire;           /* formats; wire is dst's where nothing is summed */
    trn_tensor a_whole, b_whole, product; /* shape and format of the wholes */
    trn_pspec a_spec, b_spec, dst_spec;   /* axes of size 1 left out */
    trn_sharded_matmul_plan plan;
} trni_sharded;

TRNI_DRIVER trn_status trni_sharded_check_spec(const trni_sharded *s, const char *name, const trn_pspec *spec,
                                               const trn_tensor *whole)
{
    const trn_sharded_matmul_args *ask = s->ask;
    trn_error why;
    trn_status status = trni_check_layout(ask->mesh, spec, whole, &why);
    if (!status && ask->even_only) status = trni_check_even(ask->mesh, spec, whole, &why);
    return status ? trni_fail(ask->error, status, "%s: %.230s", name, why.text) : TRN_OK;
}

/* Operands that are sums themselves must be summed first: which sum a product of sums is, is the caller's to say. */
TRNI_DRIVER trn_status trni_sharded_check_sums(const trni_sharded *s)
{
    for (int a = 0; a < s->mesh->axes; a++)
        if ((s->a_spec.sum | s->b_spec.sum) >> a & 1u)
            return trni_fail(s->ask->error, TRN_EUNSUPPORTED,
                             "%s has a sum over %s; trn_redistribute can close it first",
                             s->a_spec.sum >> a & 1u ? "a_spec" : "b_spec", trni_axis_name(s->mesh, a));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_sharded_check_formats(const trni_sharded *s)
{
    const trn_sharded_matmul_args *ask = s->ask;
    const struct {
        const char *name;
        trn_format format;
    } row[] = { { "a", s->a }, { "b", s->b }, { "dst", s->dst } };
    for (int i = 0; i < 3; i++)
        if (!trni_format_valid(row[i].format))
            return trni_fail(ask->error, TRN_EFORMAT,
                             "%s has no valid format (%d): give the views, or matmul.%s.format", row[i].name,
                             (int)row[i].format, row[i].name);
    if (ask->wire && (!trni_format_valid(ask->wire) || ask->wire == TRN_CFP8))
        return trni_fail(ask->error, TRN_EFORMAT, "wire = %d is no format that travels", (int)ask->wire);
    if ((unsigned)ask->algorithm >= TRN_ALGORITHM_COUNT)
        return trni_fail(ask->error, TRN_EINVAL, "algorithm = %d is not one", (int)ask->algorithm);
    if (ask->m < 0 || ask->n < 0 || ask->k < 0)
        return trni_fail(ask->error, TRN_ESHAPE, "m, n, k = %lld, %lld, %lld must not be negative", (long long)ask->m,
                         (long long)ask->n, (long long)ask->k);
    if (ask->matmul.accumulate)
        return trni_fail(ask->error, TRN_EUNSUPPORTED, "matmul.accumulate: a sharded product overwrites dst");
    return TRN_OK;
}

/* ---- the rules ---- */

/* The axes that cut K in both operands, as far as the two agree from the outermost on. */
TRNI_FN trn_pspec_dim trni_common_axes(const trn_pspec_dim *a, const trn_pspec_dim *b)
{
    trn_pspec_dim both;
    memset(&both, 0, sizeof both);
    while (both.axes < a->axes && both.axes < b->axes && a->axis[both.axes] == b->axis[both.axes]) {
        both.axis[both.axes] = a->axis[both.axes];
        both.axes++;
    }
    return both;
}

/* An axis on rows of a and columns of b: it stays where dst has it, else on the larger operand. */
TRNI_FN void trni_resolve_conflicts(const trni_sharded *s, trn_pspec_dim *rows, trn_pspec_dim *columns)
{
    const double a_bytes = (double)s->ask->m * (double)s->ask->k * trn_format_bits(s->a);
    const double b_bytes = (double)s->ask->k * (double)s->ask->n * trn_format_bits(s->b);
    for (int axis = 0; axis < s->mesh->axes; axis++) {
        if (!trni_list_has(rows, axis) || !trni_list_has(columns, axis)) continue;
        const bool in_rows = trni_list_has(&s->dst_spec.dim[0], axis),
                   in_columns = trni_list_has(&s->dst_spec.dim[1], axis);
        if (in_columns || (!in_rows && a_bytes < b_bytes))
            trni_list_drop(rows, axis);
        else
            trni_list_drop(columns, axis);
    }
}

/* Axes of dst that no operand uses cut this list further, as long as dst's order goes on from it and parts nest. */
TRNI_FN void trni_extend_axes(const trni_sharded *s, trn_pspec_dim *list, const trn_pspec_dim *wanted, int64_t size,
                              unsigned *used)
{
    if (!trni_list_starts(wanted, list)) return;
    for (int i = list->axes; i < wanted->axes; i++) {
        const int axis = wanted->axis[i];
        int outer = 1;
        for (int j = 0; j < list->axes; j++) outer *= s->mesh->axis[list->axis[j]].size;
        if (*used >> axis & 1u || !trni_parts_nest(size, outer, outer * s->mesh->axis[axis].size)) return;
        list->axis[list->axes++] = axis;
        *used |= 1u << axis;
    }
}

TRNI_FN unsigned trni_list_set(const trn_pspec_dim *list)
{
    unsigned set = 0;
    for (int i = 0; i < list->axes; i++) set |= 1u << list->axis[i];
    return set;
}

/* a_at, b_at and product. */
TRNI_FN void trni_sharded_rules(trni_sharded *s)
{
    trn_sharded_matmul_plan *p = &s->plan;
    trn_pspec_dim rows = s->a_spec.dim[0], columns = s->b_spec.dim[1];
    const trn_pspec_dim deep = trni_common_axes(&s->a_spec.dim[1], &s->b_spec.dim[0]);
    trni_resolve_conflicts(s, &rows, &columns);
    unsigned used = trni_list_set(&deep) | trni_list_set(&rows) | trni_list_set(&columns);
    trni_extend_axes(s, &rows, &s->dst_spec.dim[0], s->ask->m, &used);
    trni_extend_axes(s, &columns, &s->dst_spec.dim[1], s->ask->n, &used);
    p->a_at.rank = p->b_at.rank = p->product.rank = 2;
    p->a_at.dim[0] = p->product.dim[0] = rows;
    p->a_at.dim[1] = p->b_at.dim[0] = deep;
    p->b_at.dim[1] = p->product.dim[1] = columns;
    p->product.sum = trni_list_set(&deep);
}

/* ---- costs ---- */

TRNI_FN trn_redistribute_args trni_sharded_redistribution(const trni_sharded *s, const trn_pspec *from,
                                                          const trn_pspec *to, const trn_tensor *whole)
{
    const trn_sharded_matmul_args *ask = s->ask;
    trn_redistribute_args r;
    memset(&r, 0, sizeof r);
    r.mesh = s->mesh;
    r.from = *from;
    r.to = *to;
    r.global = *whole;
    r.wire = s->wire;
    r.rounding = ask->matmul.rounding;
    r.overflow = ask->matmul.overflow;
    r.seed = ask->matmul.seed;
    r.stream = ask->matmul.stream;
    r.algorithm = ask->algorithm;
    r.uncalibrated = ask->uncalibrated;
    r.calibration = ask->calibration;
    r.ranks_per_chip = ask->ranks_per_chip;
    r.isa = ask->matmul.isa;
    r.error = ask->error;
    return r;
}

/* One chip of the mesh's system; of a custom topology, a chip of the generation. */
TRNI_FN trn_status trni_sharded_compute(const trni_sharded *s, trn_system_cost *cost)
{
    const trn_sharded_matmul_args *ask = s->ask;
    const trn_system named = s->mesh->net->system;
    const trn_system of = ask->matmul.generation == TRN_TRAINIUM1   ? TRN_TRN1_32XLARGE
                          : ask->matmul.generation == TRN_TRAINIUM3 ? TRN_TRN3_GEN2_ULTRASERVER
                                                                    : TRN_TRN2_48XLARGE;
    trn_system_spec one = *trn_system_spec_of(trn_system_spec_of(named) ? named : of);
    trn_server_spec server = *one.server;
    trn_matmul_cost_args c;
    memset(&c, 0, sizeof c);
    server.chips = 1;
    one.server = &server;
    one.servers = 1;
    c.system = &one;
    c.m = s->plan.m;
    c.n = s->plan.n;
    c.k = s->plan.k;
    c.a_format = s->a;
    c.b_format = s->b;
    c.dst_format = s->wire; /* dst's, where nothing is summed */
    c.error = ask->error;
    const bool scaled = ask->a_scale || ask->b_scale;
    if (ask->matmul.double_row)
        c.mode = TRN_MODE_DOUBLE_ROW;
    else if (!scaled && trni_operand_kind_of(s->a) != TRNI_OPERAND_INT8 &&
             trni_operand_kind_of(s->a) != TRNI_OPERAND_TINY)
        c.mode = TRN_MODE_PLAIN;
    return trn_matmul_system_cost(&c, cost);
}

TRNI_FN double trni_larger(double a, double b) { return a > b ? a : b; }

/* What takes longest, in a phrase. */
TRNI_FN void trni_sharded_bottleneck(const trn_sharded_matmul_plan *p, trn_cost *cost)
{
    const trn_reshard_plan *const move[] = { &p->a, &p->b, &p->result };
    double longest = p->compute.time_s;
    trni_copy_text(cost->bottleneck, sizeof cost->bottleneck,
                   longest > 0 ? trn_limit_name(p->compute.core.limit) : "nothing to do");
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < move[i]->steps; k++) {
            const trn_cost *step = &move[i]->step[k].cost;
            if (step->time_s <= longest) continue;
            longest = step->time_s;
            memcpy(cost->bottleneck, step->bottleneck, sizeof cost->bottleneck);
        }
}

TRNI_FN void trni_sharded_cost(const trni_sharded *s, trn_cost *cost)
{
    const trn_sharded_matmul_plan *p = &s->plan;
    const trn_reshard_plan *const move[] = { &p->a, &p->b, &p->result };
    const double peak = p->compute.core.tensor_peak_tflops * 1e12 * p->compute.cores;
    memset(cost, 0, sizeof *cost);
    cost->time_s = p->time_s;
    cost->lower_bound_s = peak > 0 ? p->compute.flops / peak : 0;
    for (int i = 0; i < 3; i++) {
        cost->lower_bound_s = trni_larger(cost->lower_bound_s, move[i]->lower_bound_s);
        for (int k = 0; k < move[i]->steps; k++) {
            const trn_reshard_step *step = &move[i]->step[k];
            cost->latency_s += step->cost.latency_s;
            cost->link_s += step->cost.link_s;
            cost->hbm_s += step->cost.hbm_s;
            cost->dma_s += step->cost.dma_s;
            cost->steps += step->cost.steps;
            if (step->op == TRN_ALL_REDUCE || step->op == TRN_REDUCE_SCATTER) cost->algorithm = step->algorithm;
        }
    }
    trni_sharded_bottleneck(p, cost);
}

/* ---- the plan ---- */

/* Formats from the views, where there are any. */
TRNI_FN trn_status trni_sharded_init(trni_sharded *s, const trn_sharded_matmul_args *args)
{
    memset(s, 0, sizeof *s);
    s->ask = args;
    s->mesh = args->mesh;
    s->a = args->a ? args->a[0].format : args->matmul.a.format;
    s->b = args->b ? args->b[0].format : args->matmul.b.format;
    s->dst = args->dst ? args->dst[0].format : args->matmul.dst.format;
    trn_status status = trni_sharded_check_formats(s);
    if (status) return status;
    s->a_whole = trn_tensor_2d(s->a, NULL, args->m, args->k);
    s->b_whole = trn_tensor_2d(s->b, NULL, args->k, args->n);
    s->product = trn_tensor_2d(s->dst, NULL, args->m, args->n);
    if (!status) status = trni_sharded_check_spec(s, "a_spec", &args->a_spec, &s->a_whole);
    if (!status) status = trni_sharded_check_spec(s, "b_spec", &args->b_spec, &s->b_whole);
    if (!status) status = trni_sharded_check_spec(s, "dst_spec", &args->dst_spec, &s->product);
    if (status) return status;
    s->a_spec = trni_essential(&args->a_spec, s->mesh, 2);
    s->b_spec = trni_essential(&args->b_spec, s->mesh, 2);
    s->dst_spec = trni_essential(&args->dst_spec, s->mesh, 2);
    status = trni_sharded_check_sums(s);
    if (status) return status;
    trni_sharded_rules(s);
    s->wire = args->wire && s->plan.product.sum ? args->wire : s->dst;
    s->product.format = s->wire;
    return TRN_OK;
}

TRNI_FN trn_status trni_sharded_plan_one(const trni_sharded *s, const char *name, const trn_pspec *from,
                                         const trn_pspec *to, const trn_tensor *whole, trn_reshard_plan *plan)
{
    trn_error why;
    trn_redistribute_args r = trni_sharded_redistribution(s, from, to, whole);
    r.error = &why;
    const trn_status status = trn_redistribute_plan(&r, plan);
    return status ? trni_fail(s->ask->error, status, "%s: %.230s", name, why.text) : TRN_OK;
}

TRNI_FN trn_status trni_sharded_resolve(trni_sharded *s, const trn_sharded_matmul_args *args)
{
    trn_status status = trni_sharded_init(s, args);
    if (status) return status;
    trn_sharded_matmul_plan *p = &s->plan;
    const trn_tensor a = trn_shard_local(s->mesh, &p->a_at, &s->a_whole),
                     b = trn_shard_local(s->mesh, &p->b_at, &s->b_whole);
    p->m = a.shape[0];
    p->k = a.shape[1];
    p->n = b.shape[1];
    status = trni_sharded_plan_one(s, "a", &s->a_spec, &p->a_at, &s->a_whole, &p->a);
    if (!status) status = trni_sharded_plan_one(s, "b", &s->b_spec, &p->b_at, &s->b_whole, &p->b);
    if (!status) status = trni_sharded_plan_one(s, "dst", &p->product, &s->dst_spec, &s->product, &p->result);
    return status;
}

/* The engines' time, if the caller wants to know. */
TRNI_FN trn_status trni_sharded_time(trni_sharded *s)
{
    trn_sharded_matmul_plan *p = &s->plan;
    if (!s->ask->cost && !s->ask->plan) return TRN_OK;
    const trn_status status = trni_sharded_compute(s, &p->compute);
    if (!status) p->time_s = p->a.time_s + p->b.time_s + p->compute.time_s + p->result.time_s;
    return status;
}

TRNI_FN void trni_sharded_tell(const trni_sharded *s)
{
    if (s->ask->plan) *s->ask->plan = s->plan;
    if (s->ask->cost) trni_sharded_cost(s, s->ask->cost);
}

TRN_API trn_status trn_sharded_matmul_plan_of(const trn_sharded_matmul_args *args, trn_sharded_matmul_plan *plan)
{
    trni_sharded s;
    TRNI_ENTER(args);
    if (!plan) return trni_fail(args->error, TRN_EINVAL, "plan is null");
    trn_sharded_matmul_args with = *args;
    with.plan = plan;
    trn_status status = trni_sharded_resolve(&s, &with);
    if (!status) status = trni_sharded_time(&s);
    if (!status) trni_sharded_tell(&s);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_SHARDED_SHARDED_PLAN_H */
