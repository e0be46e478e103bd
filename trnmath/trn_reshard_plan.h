/* trn_reshard_plan.h - the cheapest way from one sharding to another: which collectives, over which axes, how long.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard_plan.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_mesh mesh;
 *         trn_reshard_plan plan;
 *         trn_redistribute_args args = { .mesh = &mesh, .global = trn_tensor_2d(TRN_BF16, NULL, 8192, 4096) };
 *         if (trn_mesh_init(&mesh, &net, "data=4,tensor=4")) return 1;
 *         trn_pspec_parse(&args.from, &mesh, "(data, *) + sum(tensor)");
 *         trn_pspec_parse(&args.to, &mesh, "(data, tensor)");
 *         if (trn_redistribute_plan(&args, &plan)) return 1;
 *         for (int i = 0; i < plan.steps; i++) {
 *             char text[200];
 *             trn_reshard_step_format(&plan.step[i], &mesh, text, sizeof text);
 *             printf("%s, %.1f us\n", text, 1e6 * plan.step[i].cost.time_s);
 *         }
 *         return plan.steps == 1 && plan.step[0].op == TRN_REDUCE_SCATTER ? 0 : 1;
 *     }
 *
 * DOES: searches all sequences of the moves of sharded/reshard_moves.h for the one that takes the least time, so that
 *     no detour is shorter than what it finds: the triangle inequality holds by construction, for detours that neither
 *     open nor close a sum without need. Shards may be uneven.
 * DOES NOT: overlap steps with each other, or move anything (sharded/reshard_values.h). Tensors of more than 2^60 bytes
 *     are refused (trn_tensor.h), and a move whose buffers would be larger, which uneven parts can do, is none. Within
 *     that bytes are counted exactly; a time is a double, so its last digits are rounded.
 *
 * CONTENTS
 *     trn_reshard_plan              steps, time, a bound
 *     trn_reshard_step, trn_reshard_step_format   one move, and its name
 *     trn_redistribute_plan         finds it
 *
 * KNOWN FROM: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959.
 */
#ifndef TRN_RESHARD_PLAN_H
#define TRN_RESHARD_PLAN_H

#include "base/words_begin.h"

#include "trn_reshard_args.h"

/* "all_gather over tensor, 8388608 bytes, switch_direct, then (data, *)". Writes at most `room` bytes, the end
 * included; returns the length of the whole text. */
TRN_API size_t trn_reshard_step_format(const trn_reshard_step *step, const trn_mesh *mesh, char *text, size_t capacity);

/* ---- the plan ---- */

/* *plan is written only when TRN_OK is returned. TRN_EUNSUPPORTED: .algorithm fits none of the groups it would be
 * needed for, or every way needs a buffer of more than 2^60 bytes; TRN_ESHAPE: global has more; TRN_ELIMIT: too many
 * axes and dimensions. */
TRN_API trn_status trn_redistribute_plan(const trn_redistribute_args *args, trn_reshard_plan *plan);

#if TRNI_BODIES

#include "sharded/reshard_moves.h"

TRN_API size_t trn_reshard_step_format(const trn_reshard_step *step, const trn_mesh *mesh, char *text, size_t capacity)
{
    static const char *const local[] = { "slice", "zero fill" };
    const bool moves = step->kind == TRN_RESHARD_COLLECTIVE;
    trni_writer w = { text, capacity, 0 };
    char part[200];
    trni_write(&w, moves ? trn_collective_name(step->op) : local[step->kind]);
    for (int i = 0; i < step->axes; i++) {
        trni_write(&w, i ? ", " : " over ");
        trni_write(&w, mesh->axis[step->axis[i]].name);
    }
    snprintf(part, sizeof part, ", %lld bytes, %s", (long long)step->bytes, trn_algorithm_name(step->algorithm));
    trni_write(&w, moves ? part : "");
    trn_pspec_format(&step->after, mesh, part, sizeof part);
    trni_write(&w, ", then ");
    trni_write(&w, part);
    return w.used;
}

/* Dijkstra: *end = the node of the goal. */
TRNI_FN trn_status trni_search_run(trni_search *s, const trn_pspec *from, const trn_pspec *to, int *end)
{
    int start;
    s->goal = trni_state_key(to);
    s->goal_s = -1;
    s->opens = to->sum & ~from->sum;
    s->closes = from->sum & ~to->sum;
    trn_status status = trni_node_add(s, trni_state_key(from), &start);
    while (!status) {
        const int at = trni_node_next(s);
        if (at < 0)
            return trni_fail(s->ask->error, TRN_EUNSUPPORTED, "no way from one sharding to the other: %.200s",
                             s->why.text);
        *end = at;
        if (s->node[at].key == s->goal) return TRN_OK;
        s->node[at].done = true;
        status = trni_try_all(s, at);
    }
    return status;
}

/* ---- the plan ---- */

TRNI_FN trn_status trni_plan_step(trni_search *s, const trni_node *n, trn_reshard_step *step)
{
    const trni_transit *m = &n->move;
    memset(step, 0, sizeof *step);
    step->kind = m->kind;
    step->op = m->op;
    step->algorithm = m->algorithm;
    step->axes = m->axes;
    memcpy(step->axis, m->axis, sizeof step->axis);
    step->from_dim = m->from_dim;
    step->to_dim = m->to_dim;
    step->bytes = m->bytes;
    step->after = trni_state_of_key(n->key, s->rank);
    trni_copy_text(step->cost.bottleneck, sizeof step->cost.bottleneck,
                   m->kind == TRN_RESHARD_ZERO_FILL ? "HBM" : "nothing to do");
    if (m->kind == TRN_RESHARD_ZERO_FILL) step->cost.time_s = step->cost.lower_bound_s = step->cost.hbm_s = m->time_s;
    if (m->kind != TRN_RESHARD_COLLECTIVE || !m->bytes) return TRN_OK;
    const trn_pspec before = trni_state_of_key(s->node[n->before].key, s->rank);
    if (m->op == TRN_PERMUTE) trni_permute_targets(s->mesh, &before, &step->after, s->target);
    return trni_transit_cost(s, m, &step->cost, s->ask->error);
}

/* The bytes that the neediest device must be sent, whatever the way. A sum over others must at least arrive once: as
 * the wire has it, or, if others finished it, as the tensor has it. */
TRNI_FN double trni_plan_bound(const trni_search *s, const trn_pspec *from, const trn_pspec *to)
{
    const double rate = trn_topology_injection_bytes_per_s(s->mesh->net);
    double most = 0;
    for (int i = 0; i < s->mesh->devices && rate > 0; i++) {
        double wanted = 1, there = 1;
        bool keeps = true; /* it is where a new sum's values go */
        for (int d = 0; d < s->rank; d++) {
            int64_t x, y;
            const int64_t nx =
                trni_part_of(s->shape[d], trn_pspec_parts(from, s->mesh, d), trni_part_index(from, s->mesh, d, i), &x);
            const int64_t ny =
                trni_part_of(s->shape[d], trn_pspec_parts(to, s->mesh, d), trni_part_index(to, s->mesh, d, i), &y);
            const int64_t low = x > y ? x : y, high = trni_min64(x + nx, y + ny);
            wanted *= (double)ny;
            there *= high > low ? (double)(high - low) : 0;
        }
        for (int a = 0; a < s->mesh->axes; a++)
            if (trn_pspec_is_sum(to, a) && trn_mesh_coordinate(s->mesh, i, a)) keeps = false;
        if (to->sum) continue; /* how an open sum is shared out is free */
        const int sum_bits = s->wire_bits < s->bits ? s->wire_bits : s->bits;
        const double lacks = from->sum ? wanted * sum_bits / 8 : (wanted - there) * s->bits / 8;
        if (keeps && lacks > most) most = lacks;
    }
    return rate > 0 ? most / rate : 0;
}

TRNI_FN trn_status trni_plan_fill(trni_search *s, int end, trn_reshard_plan *plan)
{
    plan->steps = s->node[end].steps;
    if (plan->steps > TRN_RESHARD_STEPS)
        return trni_fail(s->ask->error, TRN_ELIMIT, "the way takes %d steps; a plan has room for %d", plan->steps,
                         TRN_RESHARD_STEPS);
    for (int i = plan->steps - 1, at = end; i >= 0; i--, at = s->node[at].before) {
        const trn_status status = trni_plan_step(s, &s->node[at], &plan->step[i]);
        if (status) return status;
    }
    for (int i = 0; i < plan->steps; i++) plan->time_s += plan->step[i].cost.time_s;
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_redistribute_check(const trn_redistribute_args *args)
{
    const trn_tensor *global = &args->global;
    if (!trni_format_valid(global->format))
        return trni_fail(args->error, TRN_EFORMAT, "global has no valid format (%d)", (int)global->format);
    if (args->wire && (!trni_format_valid(args->wire) || args->wire == TRN_CFP8))
        return trni_fail(args->error, TRN_EFORMAT, "wire = %d is no format that travels", (int)args->wire);
    if ((unsigned)args->algorithm >= TRN_ALGORITHM_COUNT)
        return trni_fail(args->error, TRN_EINVAL, "algorithm = %d is not one", (int)args->algorithm);
    trn_status status = trni_check_layout(args->mesh, &args->from, global, args->error);
    if (!status) status = trni_check_layout(args->mesh, &args->to, global, args->error);
    if (!status && (args->from.sum || args->to.sum) && args->wire)
        status = trni_check_bytes("wire: a sum of global", global, args->wire, args->error);
    if (!status && args->even_only) status = trni_check_even(args->mesh, &args->from, global, args->error);
    if (!status && args->even_only) status = trni_check_even(args->mesh, &args->to, global, args->error);
    if (!status && (args->from.sum || args->to.sum) && global->format == TRN_F8_E8M0)
        status = trni_fail(args->error, TRN_EFORMAT, "global is %s, which has no zero, and a sharding has a sum",
                           trn_format_name(global->format));
    return status;
}

TRN_API trn_status trn_redistribute_plan(const trn_redistribute_args *args, trn_reshard_plan *plan)
{
    trni_search s;
    trn_reshard_plan found;
    TRNI_ENTER(args);
    if (!plan) return trni_fail(args->error, TRN_EINVAL, "plan is null");
    trn_status status = trni_redistribute_check(args);
    if (status) return status;
    memset(&s, 0, sizeof s);
    memset(&found, 0, sizeof found);
    s.ask = args;
    s.mesh = args->mesh;
    s.rank = args->global.rank;
    s.shape = args->global.shape;
    s.bits = trn_format_bits(args->global.format);
    s.wire_bits = args->wire ? trn_format_bits(args->wire) : s.bits;
    s.chip = (int *)malloc(2 * sizeof(int) * (size_t)s.mesh->devices);
    s.target = s.chip + s.mesh->devices;
    const trn_pspec from = trni_essential(&args->from, s.mesh, s.rank), to = trni_essential(&args->to, s.mesh, s.rank);
    int end = 0;
    status = s.chip ? trni_search_run(&s, &from, &to, &end) : trni_no_memory(args->error);
    if (!status) status = trni_plan_fill(&s, end, &found);
    if (!status) found.lower_bound_s = trni_plan_bound(&s, &from, &to);
    if (!status) *plan = found;
    free(s.chip);
    free(s.node);
    free(s.price);
    return status;
}

#endif /* TRNI_BODIES */

#include "base/words_end.h"

#endif /* TRN_RESHARD_PLAN_H */
