/* sharded/reshard_plan.h - the cheapest way from one sharding to another: which collectives, over which axes, how long.
 * A part of trn_reshard.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard.h>
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
 * DOES: with up to five axes of more than one device, searches all sequences of moves (sharded/reshard_moves.h) for
 *     the one that takes the least time, so that no detour is shorter than what it finds: the triangle inequality
 *     holds by construction, for detours that neither open nor close a sum without need. With more axes, where the
 *     number of sequences grows as a factorial, it tries those that the goal suggests, then others while a fixed
 *     amount of work lasts (about a second, 30 MB): such a plan may be longer than the shortest, but not longer than
 *     the plan to the whole everywhere, cut afterwards. The work is counted, not timed: a plan is the same on every
 *     machine. Shards may be uneven.
 * DOES NOT: overlap steps with each other, or move anything (sharded/reshard_values.h). Tensors of more than 2^60
 *     bytes are refused (trn_tensor.h), and a move whose buffers would be larger, which uneven parts can do, is none.
 *     Within that bytes are counted exactly; a time is a double, so its last digits are rounded. With more than five
 *     axes, ways to send directly that take long to count are left out (sharded/reshard_price.h).
 *
 * KNOWN FROM: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959.
 */
#ifndef TRNI_SHARDED_RESHARD_PLAN_H
#define TRNI_SHARDED_RESHARD_PLAN_H

#include "reshard_args.h"

/* "all_gather over tensor, 8388608 bytes, switch_direct, then (data, *)". Writes at most `room` bytes, the end
 * included; returns the length of the whole text. */
TRN_API size_t trn_reshard_step_format(const trn_reshard_step *step, const trn_mesh *mesh, char *text, size_t capacity);

/* ---- the plan ---- */

/* *plan is written only when TRN_OK is returned. TRN_EUNSUPPORTED: .algorithm fits none of the groups it would be
 * needed for, or every way needs a buffer of more than 2^60 bytes; TRN_ESHAPE: global has more. */
TRN_API trn_status trn_redistribute_plan(const trn_redistribute_args *args, trn_reshard_plan *plan);

#if TRNI_BODIES

#include "reshard_narrow.h"

TRN_API size_t trn_reshard_step_format(const trn_reshard_step *step, const trn_mesh *mesh, char *text, size_t capacity)
{
    static const char *const local[] = { "slice", "zero fill" };
    const bool moves = step->kind == TRN_RESHARD_COLLECTIVE;
    trni_writer w = { text, capacity, 0 };
    char part[400];
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

/* ---- the search ---- */

/* What a way was found to be: the nodes that it comes through, in their order. */
typedef struct trni_found {
    trni_node node[TRN_RESHARD_STEPS + 1]; /* the start, and what is after each step */
    int steps;                             /* -1: none was found */
} trni_found;

TRNI_FN trn_status trni_search_begin_at(trni_search *s, const trn_pspec *from, trni_breadth breadth)
{
    int start;
    s->nodes = s->heaped = 0;
    for (int i = 0; i < s->node_at.slots; i++) s->node_at.slot[i] = -1;
    s->node_at.used = 0;
    s->breadth = breadth;
    s->over = false;
    s->work = 0;
    trn_status status = trni_node_of(s, trni_state_key(from), from, &start);
    if (status) return status;
    s->node[start].time_s = 0;
    return trni_heap_add(s, start);
}

/* Dijkstra: until the goal is the nearest. Guided, until nothing is left that could be better, or the work is more than
 * it may be. */
TRNI_FN trn_status trni_search_run(trni_search *s, const trn_pspec *from, trni_breadth breadth)
{
    trn_status status = trni_search_begin_at(s, from, breadth);
    for (int at; !status && (at = trni_node_next(s)) >= 0 && (s->guided || s->node[at].key != s->goal);) {
        s->node[at].done = true;
        if (s->node[at].key != s->goal) status = trni_try_all(s, at);
    }
    return s->over ? TRN_OK : status;
}

/* The way to the goal that was found. */
TRNI_FN void trni_take_way(const trni_search *s, trni_found *way)
{
    const int end = trni_node_find(s, s->goal);
    way->steps = end < 0 || s->node[end].time_s < 0 ? -1 : s->node[end].steps;
    for (int i = way->steps, at = end; i >= 0; i--, at = s->node[at].before) way->node[i] = s->node[at];
}

/* What a way that was guessed takes in truth; none where a step of it cannot be. */
TRNI_FN trn_status trni_price_way(trni_search *s, trni_found *way)
{
    double time_s = 0;
    for (int i = 1; i <= way->steps; i++) {
        trni_node *n = &way->node[i];
        const trn_pspec from = trni_state_of_key(n[-1].key, s->rank), to = trni_state_of_key(n->key, s->rank);
        bool fits;
        const trn_status status = trni_price_move(s, &from, &to, &n->move, &fits);
        if (status) return status;
        if (!fits) way->steps = -1;
        n->time_s = time_s += n->move.time_s;
    }
    return TRN_OK;
}

/* One search, and the better of what it found and what was there. */
TRNI_FN trn_status trni_search_better(trni_search *s, const trn_pspec *from, trni_breadth breadth, trni_found *best)
{
    trni_found way;
    const double known_s = s->goal_s;
    if (breadth <= TRNI_GUESSED_MOVES) s->goal_s = -1; /* a guess is no measure, and takes none */
    trn_status status = trni_search_run(s, from, breadth);
    if (status) return status;
    trni_take_way(s, &way);
    if (breadth <= TRNI_GUESSED_MOVES) status = trni_price_way(s, &way);
    const trni_node *end = way.steps < 0 ? NULL : &way.node[way.steps];
    if (!status && end && (best->steps < 0 || trni_way_is_better(end->time_s, way.steps, &best->node[best->steps])))
        *best = way;
    s->goal_s = best->steps < 0 ? known_s : best->node[best->steps].time_s;
    return status;
}

/* Guesses find ways soon; then wider and wider, to find a better one. With few axes the last is all there is, and goes
 * to its end. */
TRNI_FN trn_status trni_search_to(trni_search *s, const trn_pspec *from, const trn_pspec *to, trni_found *best)
{
    static const double most_work[] = { 2e7, 4e7, 1e8, 4e7, 6e7 };
    trn_status status = TRN_OK;
    const bool sure = s->big_axes <= TRNI_SURE_AXES;
    s->to = *to;
    s->goal = trni_state_key(to);
    s->goal_s = -1;
    best->steps = -1;
    for (int breadth = TRNI_PLAIN_GUESS; breadth <= TRNI_ALL_MOVES && !status; breadth++) {
        if (sure && breadth == TRNI_SOME_MOVES) continue;
        s->guided = !sure || breadth <= TRNI_GUESSED_MOVES;
        s->most_work = sure && !s->guided ? 1e12 : most_work[breadth];
        status = trni_search_better(s, from, (trni_breadth)breadth, best);
    }
    return status;
}

/* From the whole everywhere to the goal: cutting takes no time. */
TRNI_FN void trni_cut_whole(const trni_search *s, const trn_pspec *to, trni_found *way)
{
    trn_pspec at = trni_state_of_key(way->node[way->steps].key, s->rank);
    for (int d = 0; d < s->rank && way->steps < TRN_RESHARD_STEPS; d++) {
        if (!to->dim[d].axes) continue;
        trni_node *n = &way->node[++way->steps];
        *n = n[-1];
        n->move = trni_transit_of(TRN_RESHARD_SLICE, TRN_ALL_GATHER);
        n->move.axes = to->dim[d].axes;
        n->move.to_dim = d;
        memcpy(n->move.axis, to->dim[d].axis, sizeof n->move.axis);
        at.dim[d] = to->dim[d];
        n->key = trni_state_key(&at);
    }
    if (!trn_pspec_same(&at, to)) way->steps = -1; /* no room */
}

/* With many axes, whether by way of the whole is better: no way may be longer than the one that anybody could think of.
 */
TRNI_FN trn_status trni_search_all(trni_search *s, const trn_pspec *from, const trn_pspec *to, trni_found *best)
{
    trni_found by_whole;
    trn_pspec whole;
    memset(&whole, 0, sizeof whole);
    whole.rank = s->rank;
    s->opens = to->sum & ~from->sum;
    s->closes = from->sum & ~to->sum;
    trn_status status = trni_search_to(s, from, to, best);
    if (!status && s->big_axes > TRNI_SURE_AXES && !to->sum) {
        status = trni_search_to(s, from, &whole, &by_whole);
        if (!status && by_whole.steps >= 0) trni_cut_whole(s, to, &by_whole);
        const int steps = by_whole.steps;
        if (!status && steps >= 0 &&
            (best->steps < 0 || trni_way_is_better(by_whole.node[steps].time_s, steps, &best->node[best->steps])))
            *best = by_whole;
    }
    if (status || best->steps >= 0) return status;
    return trni_fail(s->ask->error, TRN_EUNSUPPORTED, "no way from one sharding to the other: %.200s", s->why.text);
}

/* ---- the plan ---- */

TRNI_FN trn_status trni_plan_step(trni_search *s, const trni_node *was, const trni_node *n, trn_reshard_step *step)
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
    const trn_pspec before = trni_state_of_key(was->key, s->rank);
    if (m->op == TRN_PERMUTE) trni_permute_targets(s->mesh, &before, &step->after, s->target);
    return trni_transit_cost(s, m, &step->cost, s->ask->error);
}

TRNI_FN trn_status trni_plan_fill(trni_search *s, const trni_found *way, trn_reshard_plan *plan)
{
    plan->steps = way->steps;
    for (int i = 0; i < plan->steps; i++) {
        const trn_status status = trni_plan_step(s, &way->node[i], &way->node[i + 1], &plan->step[i]);
        if (status) return status;
        plan->time_s += plan->step[i].cost.time_s;
    }
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

TRNI_FN void trni_search_start(trni_search *s, const trn_redistribute_args *args)
{
    memset(s, 0, sizeof *s);
    s->ask = args;
    s->mesh = args->mesh;
    s->rank = args->global.rank;
    s->shape = args->global.shape;
    s->bits = trn_format_bits(args->global.format);
    s->wire_bits = args->wire ? trn_format_bits(args->wire) : s->bits;
    s->mean_hops = trn_topology_mean_hops(s->mesh->net);
    for (int a = 0; a < s->mesh->axes; a++) s->big_axes += s->mesh->axis[a].size > 1;
    s->chip = (int *)malloc(2 * sizeof(int) * (size_t)s->mesh->devices);
    s->target = s->chip + s->mesh->devices;
}

TRNI_FN void trni_search_free(trni_search *s)
{
    free(s->chip);
    free(s->node);
    free(s->price);
    free(s->heap);
    free(s->node_at.slot);
    free(s->price_at.slot);
}

TRN_API trn_status trn_redistribute_plan(const trn_redistribute_args *args, trn_reshard_plan *plan)
{
    trni_search s;
    trni_found way;
    trn_reshard_plan found;
    TRNI_ENTER(args);
    if (!plan) return trni_fail(args->error, TRN_EINVAL, "plan is null");
    trn_status status = trni_redistribute_check(args);
    if (status) return status;
    memset(&found, 0, sizeof found);
    trni_search_start(&s, args);
    const trn_pspec from = trni_essential(&args->from, s.mesh, s.rank), to = trni_essential(&args->to, s.mesh, s.rank);
    status = s.chip ? trni_search_all(&s, &from, &to, &way) : trni_no_memory(args->error);
    if (!status) status = trni_plan_fill(&s, &way, &found);
    if (!status) found.lower_bound_s = trni_lack_time(&s, &from, &to, s.mesh->devices);
    if (!status) *plan = found;
    trni_search_free(&s);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_SHARDED_RESHARD_PLAN_H */
