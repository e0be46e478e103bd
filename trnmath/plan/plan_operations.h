/* plan/plan_operations.h - a plan as operations: what a chip computes and what it tells others, one after the other.
 * A part of trn_plan.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         const trn_model model = { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .intermediate = 14336,
 *                                   .vocab = 128256 };
 *         const trn_plan_args args = { .model = &model, .net = &net, .batch = 16, .sequence = 4096 };
 *         trn_plan plan = { .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1 };
 *         static trn_plan_operation list[200];
 *         int64_t count = 0;
 *         if (trn_plan_evaluate(&args, &plan) != TRN_OK) return 1;
 *         if (trn_plan_operations(&args, &plan, TRN_PHASE_FORWARD, list, 200, &count) != TRN_OK) return 1;
 *         for (int64_t i = 0; i < count; i++) printf("%-20s %g flops, %g us\n", list[i].name, list[i].flops,
 *                                                    1e6 * list[i].expected_s);
 *         return count > 8 ? 0 : 1;
 *     }
 *
 * DOES: lists what plan/plan_time.h adds up, phase by phase, in the order of plan/plan_trace.h, each operation with its
 *     size and both of its times: a step is put together from them as a pipeline and its microbatches say.
 * DOES NOT: count operations and bytes of attention and elementwise work otherwise than as that file has their times:
 *     scores and values of attention, what HBM moves of it; passes over HBM.
 *
 * KNOWN FROM: plan/plan_time.h.
 */
#ifndef TRNI_PLAN_PLAN_OPERATIONS_H
#define TRNI_PLAN_PLAN_OPERATIONS_H

#include "plan_search.h"

typedef enum trn_plan_phase {
    TRN_PHASE_FORWARD = 0,   /* of a layer with experts, or of any layer of a model without */
    TRN_PHASE_BACKWARD,      /* of it, what is done again before it, too */
    TRN_PHASE_DENSE_FORWARD, /* of a layer without experts, in a model that has both */
    TRN_PHASE_DENSE_BACKWARD,
    TRN_PHASE_EMBEDDING,    /* before the first layer */
    TRN_PHASE_HEAD_FORWARD, /* after the last one */
    TRN_PHASE_HEAD_BACKWARD,
    TRN_PHASE_SEND,          /* to the next stage */
    TRN_PHASE_SYNC_FORWARD,  /* dp: beside every forward pass */
    TRN_PHASE_SYNC_BACKWARD, /* beside every backward pass */
    TRN_PHASE_SYNC_FIRST,    /* beside the first forward pass of a step */
    TRN_PHASE_SYNC_LAST,     /* beside the last backward pass of a step */
    TRN_PHASE_UPDATE,        /* the optimizer */
    TRN_PHASE_COUNT
} trn_plan_phase;

typedef struct trn_plan_operation {
    const char *name;
    bool talks;          /* communication; else work */
    bool beside;         /* the work that follows does not wait for it */
    double flops, bytes; /* work: of a chip, bytes over HBM. Communication: bytes of each, as trn_collective_args has
                                 them */
    trn_collective op;   /* communication */
    unsigned axes;       /* a set of bits 1 << trn_plan_axis: whose group */
    int64_t count;       /* so many alike, one after the other */
    double time_s, expected_s; /* of each */
} trn_plan_operation;

/* Of one microbatch on a chip, or of a step's end. list is written, up to capacity, and *count says how many there are.
 * The plan must have been timed, with chips as ranks. TRN_EUNSUPPORTED: recommenders, and an encoder's forward pass
 * alone, whose operations overlap. */
TRN_API trn_status trn_plan_operations(const trn_plan_args *args, const trn_plan *plan, trn_plan_phase phase,
                                       trn_plan_operation *list, int64_t capacity, int64_t *count);

/* All groups of these axes: chips[groups][count], each group ascending; of pp the stages in their order. Returns how
 * many groups there are; 0 when the plan's degrees are not those of the network. chips may be null, and otherwise has
 * room for twice the chips of the network: what lies behind the groups is scratch. */
TRN_API int trn_plan_groups(const trn_topology *net, const trn_plan *plan, unsigned axes, int *chips, int *count);

#if TRNI_BODIES

#include "plan_trace.h"

typedef struct trni_plan_keeper {
    trn_plan_operation *list;
    int64_t capacity, count;
    trn_plan_operation beyond; /* what the list has no room for */
    trni_plan_told last;       /* of ep: what comes back as it went */
} trni_plan_keeper;

/* The first evaluation, at ideal rates, adds; the second one, of the same operations, says the expected times. */
TRNI_FN trn_plan_operation *trni_plan_keep_next(trni_plan_keeper *k, const char *name, double takes_s, bool expected)
{
    trn_plan_operation *o = k->count < k->capacity ? &k->list[k->count] : &k->beyond;
    k->count++;
    if (expected) {
        o->expected_s = fmax(o->time_s, takes_s);
        return o;
    }
    memset(o, 0, sizeof *o);
    o->name = name;
    o->count = 1;
    o->time_s = o->expected_s = takes_s;
    return o;
}

TRNI_FN const char *trni_plan_told_name(const trni_plan_told *t)
{
    return t->op == TRN_PERMUTE ? "send" : trn_collective_name(t->op);
}

TRNI_FN void trni_plan_keep_told(trni_plan_keeper *k, const trni_plan_run *r, const trni_plan_told *t, bool beside)
{
    trn_plan_operation *o =
        trni_plan_keep_next(k, trni_plan_told_name(t), r->expected ? t->expected_s : t->ideal_s, r->expected);
    o->talks = true;
    o->beside = beside;
    o->bytes = t->bytes;
    o->op = t->op;
    o->axes = t->axes;
    o->count = (int64_t)t->count;
}

/* What the time that was just added up asked of this axis. Of ep it asked once for both ways. */
TRNI_FN void trni_plan_keep_axis(trni_plan_keeper *k, const trni_plan_run *r, unsigned axis, bool beside)
{
    bool any = false;
    for (int i = 0; i < r->w->tolds; i++) {
        if (r->w->told[i].axes != axis) continue;
        if (axis == TRNI_PLAN_AXIS(EP)) k->last = r->w->told[i];
        trni_plan_keep_told(k, r, &r->w->told[i], beside);
        any = true;
    }
    if (!any && axis == TRNI_PLAN_AXIS(EP)) trni_plan_keep_told(k, r, &k->last, beside);
    r->w->tolds = 0;
}

/* Scores and values of the positions that are seen; queries, keys, values and outputs over HBM, in decode the cache. */
TRNI_FN void trni_plan_keep_attention(trn_plan_operation *o, const trni_plan_run *r, bool backward)
{
    const trn_model *m = &r->w->m;
    const trni_plan_scores s = trni_plan_scores_of(r);
    const double heads = trni_plan_ceil_share(m->heads, r->t), kept = trni_plan_bytes_of(r->w->a.formats.activations);
    const double wide = (double)(m->head_dim + m->rope_dim + m->v_dim);
    const double each = r->tokens * (heads * wide + trni_plan_kv_elements(m, r->t)) * kept;
    o->flops = (backward ? 2.5 : 1) * 2 * s.pairs * s.rows * s.context * (double)(s.wide + s.value);
    o->bytes = (backward ? 2 : 1) * each + s.bytes;
}

typedef struct trni_plan_kept_line {
    trni_plan_keeper *keeper;
    bool backward;
} trni_plan_kept_line;

TRNI_FN void trni_plan_keep_line(trni_plan_layer_line *l, int lane, const char *name, double takes_s, bool beside)
{
    static const unsigned axis[TRNI_PLAN_LANES] = {
        0, 0, 0, TRNI_PLAN_AXIS(TP), TRNI_PLAN_AXIS(TP), TRNI_PLAN_AXIS(EP), TRNI_PLAN_AXIS(CP)
    };
    const trni_plan_kept_line *kept = (const trni_plan_kept_line *)l->user;
    const trni_plan_run *r = l->r;
    if (axis[lane]) {
        trni_plan_keep_axis(kept->keeper, r, axis[lane], beside);
        return;
    }
    trn_plan_operation *o = trni_plan_keep_next(kept->keeper, name, takes_s, r->expected);
    r->w->tolds = 0;
    if (r->expected) return;
    o->flops = l->flops;
    o->bytes = l->bytes;
    if (lane == TRNI_LANE_ATTENTION) trni_plan_keep_attention(o, r, kept->backward && !l->again);
    if (lane == TRNI_LANE_ELEMENTWISE) {
        o->bytes = takes_s * r->w->chip.hbm_bytes_per_s;
        o->flops = o->bytes / trni_plan_bytes_of(r->w->a.formats.activations);
    }
}

/* ---- phases ---- */

TRNI_FN trni_plan_layer_line trni_plan_kept_start(const trni_plan_run *r, trni_plan_kept_line *kept)
{
    trni_plan_layer_line line;
    memset(&line, 0, sizeof line);
    line.r = r;
    line.keep = trni_plan_keep_line;
    line.user = kept;
    r->w->tolds = 0;
    return line;
}

TRNI_FN void trni_plan_phase_layer(const trni_plan_run *r, trni_plan_keeper *k, bool dense, bool backward)
{
    trni_plan_kept_line kept = { k, backward };
    trni_plan_layer_line line = trni_plan_kept_start(r, &kept);
    const bool sparse = !dense && r->w->m.dense_layers < r->w->m.layers;
    if (backward) trni_plan_line_recompute(&line, sparse);
    trni_plan_line_pass(&line, sparse, backward);
}

TRNI_FN void trni_plan_phase_ends(const trni_plan_run *r, trni_plan_keeper *k, trn_plan_phase phase)
{
    const bool backward = phase == TRN_PHASE_HEAD_BACKWARD, train = r->job == TRN_JOB_TRAIN;
    trni_plan_kept_line kept = { k, backward };
    trni_plan_layer_line line = trni_plan_kept_start(r, &kept);
    const trni_plan_layer_list head = trni_plan_head_products(r);
    trni_plan_stage_time patches;
    memset(&patches, 0, sizeof patches);
    trni_plan_stage_patches(r, &patches);
    if (r->w->m.patch_inputs && phase != TRN_PHASE_HEAD_FORWARD) {
        const double inputs = trni_plan_ceil_share(r->w->m.patch_inputs, r->t), hidden = (double)r->w->m.hidden;
        const double kept_bytes = trni_plan_bytes_of(r->w->a.formats.activations);
        line.flops = 2 * r->tokens * inputs * hidden;
        line.bytes = kept_bytes * (r->tokens * (inputs + hidden) + inputs * hidden);
        trni_plan_line_add(&line, TRNI_LANE_PRODUCTS, "patches",
                           trni_plan_pass_work(backward ? &patches.backward : &patches.forward), "");
    }
    if (phase == TRN_PHASE_EMBEDDING)
        trni_plan_line_sum(&line);
    else if (!backward || train)
        trni_plan_line_products(&line, &head, 0, head.count - 1, backward);
}

/* Both kinds of weights, at places of what trni_plan_syncs_of asks: the reduction, then what is gathered. */
TRNI_FN void trni_plan_phase_sync(const trni_plan_run *r, trni_plan_keeper *k, trn_plan_phase phase)
{
    static const trn_plan_phase when[4][3] = {
        /* of none, optimizer, gradients, weights: the reduction, the gathering, another one */
        { TRN_PHASE_SYNC_LAST, TRN_PHASE_COUNT, TRN_PHASE_COUNT },
        { TRN_PHASE_SYNC_LAST, TRN_PHASE_SYNC_FIRST, TRN_PHASE_COUNT },
        { TRN_PHASE_SYNC_BACKWARD, TRN_PHASE_SYNC_FIRST, TRN_PHASE_COUNT },
        { TRN_PHASE_SYNC_BACKWARD, TRN_PHASE_SYNC_FORWARD, TRN_PHASE_SYNC_BACKWARD },
    };
    const trn_zero zero = r->p->zero;
    const int row = zero == TRN_ZERO_WEIGHTS ? 3 : zero == TRN_ZERO_GRADIENTS ? 2 : zero == TRN_ZERO_OPTIMIZER;
    r->w->tolds = 0;
    trni_plan_syncs_of(r);
    for (int i = r->w->tolds - 1; i >= 0; i--) /* gathered weights first */
        if (when[row][i / 2] == phase) trni_plan_keep_told(k, r, &r->w->told[i], true);
}

TRNI_FN void trni_plan_phase_list(const trni_plan_run *r, trni_plan_keeper *k, trn_plan_phase phase)
{
    const bool train = r->job == TRN_JOB_TRAIN;
    const bool backward = phase == TRN_PHASE_BACKWARD || phase == TRN_PHASE_DENSE_BACKWARD;
    k->count = 0;
    if (phase <= TRN_PHASE_DENSE_BACKWARD) {
        if (train || !backward) trni_plan_phase_layer(r, k, phase >= TRN_PHASE_DENSE_FORWARD, backward);
    } else if (phase <= TRN_PHASE_HEAD_BACKWARD) {
        trni_plan_phase_ends(r, k, phase);
    } else if (phase == TRN_PHASE_SEND) {
        r->w->tolds = 0;
        trni_plan_pp_time(r);
        if (r->w->tolds) trni_plan_keep_told(k, r, &r->w->told[0], true);
    } else if (train && phase < TRN_PHASE_UPDATE) {
        trni_plan_phase_sync(r, k, phase);
    } else if (train) {
        const double takes = trni_plan_update_time(r);
        trn_plan_operation *o = trni_plan_keep_next(k, "optimizer", takes, r->expected);
        if (!r->expected) o->bytes = takes * r->w->whole->hbm_bytes_per_s;
        if (!r->expected) o->flops = o->bytes / 4;
    }
}

/* What takes no time is not there. */
TRNI_FN int64_t trni_plan_drop(trn_plan_operation *list, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (list[i].expected_s > 0) list[kept++] = list[i];
    return kept;
}

enum { TRNI_PLAN_OPERATIONS = 256 }; /* no phase has so many */

TRN_API trn_status trn_plan_operations(const trn_plan_args *args, const trn_plan *plan, trn_plan_phase phase,
                                       trn_plan_operation *list, int64_t capacity, int64_t *count)
{
    trni_plan_work w;
    trni_plan_run r;
    trn_plan own;
    trn_plan_operation all[TRNI_PLAN_OPERATIONS];
    TRNI_ENTER(args);
    if (!plan || !count || capacity < 0 || (capacity && !list) || (unsigned)phase >= TRN_PHASE_COUNT) {
        trni_fail(args->error, TRN_EINVAL, "plan, list or count is null, capacity negative, or phase %d none",
                  (int)phase);
        return TRN_EINVAL; /* so that gcc sees that count is written whenever TRN_OK is returned */
    }
    if (!plan->legal) return trni_fail(args->error, TRN_EINVAL, "plan is not legal, so it has no operations");
    trn_status status = trni_plan_work_begin(&w, args, 1 << 10);
    if (status != TRN_OK) return status;
    own = *plan;
    trni_plan_count_tp(&w, &own);
    if (!trni_plan_fills(&w, &own) || plan->microbatch < 1)
        status = trni_fail(args->error, TRN_EINVAL, "plan is not one of %d chips", args->net->chips);
    else if (w.m.tables || (w.m.bidirectional && w.a.job == TRN_JOB_PREFILL))
        status = trni_fail(args->error, TRN_EUNSUPPORTED,
                           "a recommender, or an encoder's forward pass alone, is not made of operations that follow "
                           "each other");
    else if (w.a.ranks_per_chip > 1)
        status = trni_fail(args->error, TRN_EUNSUPPORTED,
                           "operations are those of chips: without lnc and "
                           "ranks_per_chip");
    trni_plan_keeper keeper;
    memset(&keeper, 0, sizeof keeper);
    keeper.list = all;
    keeper.capacity = TRNI_PLAN_OPERATIONS;
    for (int expected = 0; status == TRN_OK && expected < 2; expected++) {
        trni_plan_run_begin(&w, &own, expected, &r);
        trni_plan_phase_list(&r, &keeper, phase);
        status = w.status;
    }
    trni_plan_work_end(&w);
    if (status != TRN_OK) return status;
    *count = trni_plan_drop(all, keeper.count < keeper.capacity ? keeper.count : keeper.capacity);
    if (capacity) memcpy(list, all, (size_t)(*count < capacity ? *count : capacity) * sizeof *list);
    return TRN_OK;
}

TRN_API int trn_plan_groups(const trn_topology *net, const trn_plan *plan, unsigned axes, int *chips, int *count)
{
    trni_plan_place place;
    int groups = 0;
    if (!net || !plan || !count || !trni_plan_place_plan(net, plan, &place)) return 0;
    if (!chips) {
        *count = trni_plan_place_count(&place, axes);
        return net->chips / *count;
    }
    trni_plan_place_groups(&place, axes, chips, count, &groups);
    return groups;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_PLAN_PLAN_OPERATIONS_H */
