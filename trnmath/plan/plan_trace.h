/* plan/plan_trace.h - a plan as timelines: the pipeline of one step, and one layer of one microbatch.
 * A part of trn_plan.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan.h>
 *     #include <stdio.h>
 *     static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         const trn_model model = { .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .intermediate = 14336,
 *                                   .vocab = 128256 };
 *         const trn_plan_args args = { .model = &model, .net = &net, .batch = 16, .sequence = 4096 };
 *         trn_plan plan = { .tp = 4, .cp = 1, .ep = 1, .dp = 1, .pp = 4 };
 *         static trn_trace_event event[1000];
 *         trn_trace trace = { .event = event, .capacity = 1000, .title = "llama-3-8b, one layer" };
 *         if (trn_plan_evaluate(&args, &plan) != TRN_OK) return 1;
 *         if (trn_plan_trace_layer(&args, &plan, &trace) != TRN_OK) return 1;
 *         trn_trace_svg_args picture = { .trace = &trace, .write = keep, .user = stdout };
 *         trn_trace_svg(&picture);
 *         return trace.count > 8 && !trace.lost ? 0 : 1;
 *     }
 *
 * DOES: lays out what plan/plan_time.h has added up at ideal rates, a plan's time_s: a lane for each stage of the
 *     pipeline with its microbatches, and a lane for each kind of work in a layer, in the order in which they follow
 *     each other: all that a layer is counted with, what a backward pass does again, too.
 * DOES NOT: draw (trn_trace_svg and trn_trace_json do), or know more than the sums do: a lane shows how long, the order
 *     inside a phase is the order of the model's own code.
 *
 * KNOWN FROM: plan/plan_time.h; the order of 1F1B: Narayanan et al. 2021.
 */
#ifndef TRNI_PLAN_PLAN_TRACE_H
#define TRNI_PLAN_PLAN_TRACE_H

#include "plan_search.h"
#include "../machine/trace.h"

/* ---- one step ---- */

/* Adds to a trace without tracks; of more than 12 stages the first 12 are shown. The plan must have been timed. */
TRN_API trn_status trn_plan_trace_step(const trn_plan_args *args, const trn_plan *plan, trn_trace *trace);

/* ---- one layer ---- */

/* Adds to an empty trace. A model with experts: a layer that has them. The plan must have been timed. A recommender has
 * no layers: TRN_EUNSUPPORTED. */
TRN_API trn_status trn_plan_trace_layer(const trn_plan_args *args, const trn_plan *plan, trn_trace *trace);

#if TRNI_BODIES

/* ---- one step ---- */

enum { TRNI_PLAN_STAGES = 12 }; /* that are drawn; the others look the same */

TRNI_FN const char *trni_plan_stage_name(int stage)
{
    static const char *const name[] = { "stage 0", "stage 1", "stage 2", "stage 3", "stage 4",  "stage 5",
                                        "stage 6", "stage 7", "stage 8", "stage 9", "stage 10", "stage 11" };
    return name[stage];
}

/* The pipeline as it runs: when each microbatch has left each stage. */
typedef struct trni_plan_pipeline {
    trn_trace *trace;
    const trn_plan *plan;
    bool train;
    int64_t count;              /* microbatches */
    double *forward, *backward; /* [pp][count] ends */
    double last;                /* end of all */
} trni_plan_pipeline;

TRNI_FN void trni_plan_trace_block(trni_plan_pipeline *l, int stage, bool backward, int64_t i, double start_s)
{
    const double takes = backward ? l->plan->time.backward_s : l->plan->time.forward_s;
    char text[TRN_TRACE_TEXT];
    snprintf(text, sizeof text, "microbatch %lld of %lld", (long long)i + 1, (long long)l->count);
    if (stage < TRNI_PLAN_STAGES)
        trn_trace_add(l->trace, stage, backward ? "backward" : "forward", start_s, takes, text);
    (backward ? l->backward : l->forward)[stage * l->count + i] = start_s + takes;
    if (start_s + takes > l->last) l->last = start_s + takes;
}

/* When the stage before (backward: after) has let microbatch i go. */
TRNI_FN double trni_plan_trace_ready(const trni_plan_pipeline *l, int stage, bool backward, int64_t i)
{
    const int64_t n = l->count;
    if (!backward) return stage ? l->forward[(stage - 1) * n + i] : 0;
    return stage + 1 < l->plan->pp ? l->backward[(stage + 1) * n + i] : l->forward[stage * n + i];
}

/* Is the next block of a stage a backward one? 1F1B: first as many forward as there are stages behind, and one. */
TRNI_FN bool trni_plan_trace_turn(const trni_plan_pipeline *l, int stage, int64_t forward, int64_t backward)
{
    const int64_t ahead = l->plan->pp - stage < l->count ? l->plan->pp - stage : l->count;
    return l->train && (forward == l->count || forward - backward >= ahead);
}

/* Every stage does its next block as soon as that is ready; stages are gone round until all is done. */
TRNI_FN void trni_plan_trace_pipeline(trni_plan_pipeline *l, int64_t *done, double *busy)
{
    const int pp = l->plan->pp;
    int64_t left = pp * l->count * (l->train ? 2 : 1);
    while (left > 0) {
        for (int s = 0; s < pp; s++) {
            int64_t *const forward = &done[2 * s], *const backward = &done[2 * s + 1];
            if (*forward + *backward == l->count * (l->train ? 2 : 1)) continue;
            const bool back = trni_plan_trace_turn(l, s, *forward, *backward);
            const int64_t i = back ? *backward : *forward;
            const bool ready = back ? s + 1 == pp || done[2 * s + 3] > i : s == 0 || done[2 * s - 2] > i;
            if (!ready) continue;
            const double at = fmax(busy[s], trni_plan_trace_ready(l, s, back, i));
            trni_plan_trace_block(l, s, back, i, at);
            busy[s] = (back ? l->backward : l->forward)[s * l->count + i];
            ++*(back ? backward : forward);
            left--;
        }
    }
}

/* What follows the pipeline: the part of the gradients' way that nothing hides, and the optimizer. */
TRNI_FN void trni_plan_trace_rest(trni_plan_pipeline *l, int lane)
{
    const trn_plan_time *t = &l->plan->time;
    const double exposed = l->plan->time_s - l->last - t->update_s;
    if (!l->train) return;
    l->trace->track[lane] = "gradients";
    if (exposed > 1e-6 * l->plan->time_s)
        trn_trace_add(l->trace, lane, "dp, exposed", l->last, exposed, "beyond what the passes hide");
    if (t->update_s > 0)
        trn_trace_add(l->trace, lane, "optimizer", l->plan->time_s - t->update_s, t->update_s, "states once over HBM");
    l->trace->tracks = lane + 1;
}

TRN_API trn_status trn_plan_trace_step(const trn_plan_args *args, const trn_plan *plan, trn_trace *trace)
{
    trni_plan_pipeline l;
    TRNI_ENTER(args);
    if (!plan || !trace) return trni_fail(args->error, TRN_EINVAL, "plan or trace is null");
    if (!plan->legal || plan->pp < 1 || plan->microbatches < 1)
        return trni_fail(args->error, TRN_EINVAL, "plan is not legal, so it has no times");
    if (plan->microbatches > (1 << 20))
        return trni_fail(args->error, TRN_ELIMIT, "%lld microbatches are too many to draw",
                         (long long)plan->microbatches);
    memset(&l, 0, sizeof l);
    l.trace = trace;
    l.plan = plan;
    l.train = args->job == TRN_JOB_TRAIN;
    l.count = plan->microbatches;
    const size_t blocks = (size_t)plan->pp * (size_t)l.count;
    l.forward = (double *)calloc(2 * blocks + (size_t)plan->pp, sizeof *l.forward);
    int64_t *done = (int64_t *)calloc(2 * (size_t)plan->pp, sizeof *done);
    const int lanes = plan->pp < TRNI_PLAN_STAGES ? plan->pp : TRNI_PLAN_STAGES;
    trn_status status = TRN_OK;
    if (!l.forward || !done) {
        status = trni_fail(args->error, TRN_ENOSPC, "no memory for %lld blocks", (long long)blocks);
    } else {
        l.backward = l.forward + blocks;
        trace->tracks = lanes;
        for (int i = 0; i < lanes; i++) trace->track[i] = trni_plan_stage_name(i);
        trni_plan_trace_pipeline(&l, done, l.forward + 2 * blocks);
        trni_plan_trace_rest(&l, lanes);
    }
    free(l.forward);
    free(done);
    return status;
}

/* ---- one layer ---- */

enum {
    TRNI_LANE_PRODUCTS = 0,
    TRNI_LANE_ATTENTION,
    TRNI_LANE_ELEMENTWISE,
    TRNI_LANE_TP,
    TRNI_LANE_TP_BESIDE,
    TRNI_LANE_EP,
    TRNI_LANE_CP,
    TRNI_PLAN_LANES
};

typedef struct trni_plan_layer_line {
    const trni_plan_run *r;
    trn_trace *trace;
    double now_s;
    double free_s[TRNI_PLAN_LANES]; /* when a lane beside the other work is free again */
    bool again;                     /* what a backward pass does once more before it begins */
    double flops, bytes;            /* of the next product */
    /* Where it is set, it takes the place of the trace: plan_operations.h. */
    void (*keep)(struct trni_plan_layer_line *l, int lane, const char *name, double takes_s, bool beside);
    void *user;
} trni_plan_layer_line;

TRNI_FN void trni_plan_line_put(const trni_plan_layer_line *l, int lane, const char *name, double at_s, double takes_s,
                                const char *text)
{
    char whole[TRN_TRACE_TEXT];
    trni_print(whole, sizeof whole, "%s%s", l->again ? "again: " : "", text);
    trn_trace_add(l->trace, lane, name, at_s, takes_s, whole);
}

/* What all else waits for. */
TRNI_FN void trni_plan_line_add(trni_plan_layer_line *l, int lane, const char *name, double takes_s, const char *text)
{
    if (l->keep) l->keep(l, lane, name, takes_s, false);
    if (l->keep || takes_s <= 0) return;
    trni_plan_line_put(l, lane, name, l->now_s, takes_s, text);
    l->now_s += takes_s;
}

TRNI_FN void trni_plan_line_beside(trni_plan_layer_line *l, int lane, const char *name, double takes_s)
{
    const double at = fmax(l->now_s, l->free_s[lane]);
    if (l->keep) l->keep(l, lane, name, takes_s, true);
    if (l->keep || takes_s <= 0) return;
    trni_plan_line_put(l, lane, name, at, takes_s, "beside the other work");
    l->free_s[lane] = at + takes_s;
}

/* The size of a product: each operand and the result once, as they lie in HBM; gradients of weights are read, too. */
TRNI_FN void trni_plan_line_touches(trni_plan_layer_line *l, int64_t m, int64_t n, int64_t k,
                                    const trni_plan_layer_product *x, bool added)
{
    const trn_plan_formats *f = &l->r->w->a.formats;
    const double kept = trni_plan_bytes_of(f->activations), rows = (double)m, columns = (double)n, deep = (double)k;
    const double other = added ? kept : l->r->w->kept[x->kept].bits / 8;
    const double result = added ? 2 * trni_plan_bytes_of(f->gradients) : kept;
    l->flops = 2 * rows * columns * deep * x->count;
    l->bytes = x->count * (rows * deep * kept + deep * columns * other + rows * columns * result);
}

TRNI_FN void trni_plan_line_product(trni_plan_layer_line *l, const trni_plan_layer_product *x, bool backward)
{
    char text[TRN_TRACE_TEXT];
    const int64_t way[2][3] = { { x->m, x->k, x->n }, { x->k, x->n, x->m } };
    for (int i = 0; i < (backward ? 2 : 1); i++) {
        const int64_t m = backward ? way[i][0] : x->m, n = backward ? way[i][1] : x->n, k = backward ? way[i][2] : x->k;
        const trni_plan_work_time t = trni_plan_run_product(l->r, m, n, k, x->kept, backward && i);
        const double operations = l->r->blocks ? x->count : fmin(x->count, 1);
        const double takes = x->count * (l->r->expected ? t.expected_s : t.time_s);
        trni_plan_line_touches(l, m, n, k, x, backward && i);
        trni_print(text, sizeof text, "%.3g x [%lld, %lld] x [%lld, %lld]%s, %s", x->count, (long long)m, (long long)k,
                   (long long)k, (long long)n,
                   !backward ? ""
                   : i       ? ", of the weights"
                             : ", of the input",
                   t.tensor ? "TensorE" : "HBM");
        trni_plan_line_add(l, TRNI_LANE_PRODUCTS, x->name, takes + trni_plan_run_floor(l->r, operations), text);
    }
}

/* Products first..last of the list, backward from last to first. */
TRNI_FN void trni_plan_line_products(trni_plan_layer_line *l, const trni_plan_layer_list *list, int first, int last,
                                     bool backward)
{
    for (int i = 0; i <= last - first; i++)
        trni_plan_line_product(l, &list->row[backward ? last - i : first + i], backward);
}

TRNI_FN void trni_plan_line_attention(trni_plan_layer_line *l, bool backward)
{
    trni_plan_line_add(l, TRNI_LANE_ATTENTION, "attention", trni_plan_attention_time(l->r, backward),
                       "scores stay in SBUF");
}

/* The sum that ends a block of tp. */
TRNI_FN void trni_plan_line_sum(trni_plan_layer_line *l)
{
    const double all = l->r->tokens * (double)l->r->w->m.hidden;
    if (!l->r->p->sp) {
        trni_plan_line_add(l, TRNI_LANE_TP, "all_reduce", trni_plan_tp_time(l->r, TRN_ALL_REDUCE, all), "");
        return;
    }
    trni_plan_line_add(l, TRNI_LANE_TP, "reduce_scatter", trni_plan_tp_time(l->r, TRN_REDUCE_SCATTER, all), "");
    trni_plan_line_add(l, TRNI_LANE_TP, "all_gather", trni_plan_tp_time(l->r, TRN_ALL_GATHER, all), "");
}

/* With sp a chip has kept its part of a block's input, and the gradient of the weights wants all of it. */
TRNI_FN void trni_plan_line_input_again(trni_plan_layer_line *l, bool backward)
{
    const double all = l->r->tokens * (double)l->r->w->m.hidden;
    if (!backward || !l->r->p->sp) return;
    trni_plan_line_beside(l, TRNI_LANE_TP_BESIDE, "all_gather", trni_plan_tp_time(l->r, TRN_ALL_GATHER, all));
}

/* Half of a layer's elementwise work, at each end of a block. */
TRNI_FN void trni_plan_line_elementwise(trni_plan_layer_line *l, bool sparse, bool backward)
{
    trni_plan_line_add(l, TRNI_LANE_ELEMENTWISE, "norms, residuals",
                       (backward ? 1 : 0.5) * trni_plan_elementwise_time(l->r, sparse), "passes over HBM");
}

/* Attention, after the products that lead to it and before the others. */
TRNI_FN void trni_plan_line_mixer(trni_plan_layer_line *l, const trni_plan_layer_list *list, bool backward)
{
    const int in = list->inputs, out = list->mixer;
    trni_plan_line_products(l, list, backward ? in : 0, (backward ? out : in) - 1, backward);
    trni_plan_line_beside(l, TRNI_LANE_CP, backward ? "keys, values and gradients" : "keys and values",
                          trni_plan_cp_time(l->r, backward));
    trni_plan_line_attention(l, backward);
    trni_plan_line_input_again(l, backward);
    trni_plan_line_products(l, list, backward ? 0 : in, (backward ? in : out) - 1, backward);
    trni_plan_line_sum(l);
}

/* all_to_all both ways, and what the experts' ranks of tp tell each other. */
TRNI_FN void trni_plan_line_experts(trni_plan_layer_line *l, const trni_plan_layer_list *list, int first, bool backward)
{
    const trni_plan_run *r = l->r;
    const double hidden = (double)r->w->m.hidden, routed = r->slice.routed * hidden, all = r->tokens * hidden;
    trni_plan_pass pass;
    memset(&pass, 0, sizeof pass);
    if (r->p->ep <= 1) {
        trni_plan_line_products(l, list, first, list->count - 1, backward);
        return;
    }
    trni_plan_pass_experts(r, &pass);
    trni_plan_line_add(l, TRNI_LANE_EP, "all_to_all", pass.ep_s / 2, "tokens to their experts");
    trni_plan_line_add(l, TRNI_LANE_TP, "all_gather", trni_plan_tp_time(r, TRN_ALL_GATHER, routed), "routed tokens");
    trni_plan_line_products(l, list, first, list->count - 1, backward);
    trni_plan_line_add(l, TRNI_LANE_TP, "reduce_scatter", trni_plan_tp_time(r, TRN_REDUCE_SCATTER, routed),
                       "outputs of experts");
    trni_plan_line_add(l, TRNI_LANE_EP, "all_to_all", pass.ep_s / 2, "and back");
    if (r->p->sp) return;
    trni_plan_line_add(l, TRNI_LANE_TP, "all_gather", trni_plan_tp_time(r, TRN_ALL_GATHER, all), "every rank's tokens");
}

/* What follows the mixer; backward in the other order, as a router waits for the gradients of what it routed. */
TRNI_FN void trni_plan_line_block(trni_plan_layer_line *l, const trni_plan_layer_list *list, bool sparse, bool backward)
{
    const trn_model *m = &l->r->w->m;
    int experts = list->count;
    while (experts > list->mixer && strncmp(list->row[experts - 1].name, "expert", 6) == 0) experts--;
    trni_plan_line_input_again(l, backward);
    if (backward && experts < list->count) trni_plan_line_experts(l, list, experts, true);
    trni_plan_line_products(l, list, list->mixer, experts - 1, backward);
    if (!backward && experts < list->count) trni_plan_line_experts(l, list, experts, false);
    const bool sums = sparse ? l->r->p->ep <= 1 || m->shared_intermediate : m->intermediate != 0;
    if (sums) trni_plan_line_sum(l);
}

TRNI_FN void trni_plan_line_pass(trni_plan_layer_line *l, bool sparse, bool backward)
{
    const trni_plan_layer_list list = trni_plan_layer_products(&l->r->slice, sparse);
    if (backward) trni_plan_line_block(l, &list, sparse, true);
    trni_plan_line_elementwise(l, sparse, backward);
    trni_plan_line_mixer(l, &list, backward);
    trni_plan_line_elementwise(l, sparse, backward);
    if (!backward) trni_plan_line_block(l, &list, sparse, false);
}

/* As trni_plan_again_pass adds it up. */
TRNI_FN void trni_plan_line_recompute(trni_plan_layer_line *l, bool sparse)
{
    l->again = true;
    if (l->r->p->recompute == TRN_RECOMPUTE_FULL) trni_plan_line_pass(l, sparse, false);
    if (l->r->p->recompute == TRN_RECOMPUTE_SELECTIVE) {
        trni_plan_line_elementwise(l, sparse, false);
        trni_plan_line_attention(l, false);
        trni_plan_line_elementwise(l, sparse, false);
    }
    l->again = false;
}

/* The lanes that a plan has use for move up. */
TRNI_FN void trni_plan_trace_lanes(trn_trace *trace)
{
    static const char *const name[TRNI_PLAN_LANES] = { "products",   "attention", "elementwise", "tp",
                                                       "tp, beside", "ep",        "cp" };
    int place[TRNI_PLAN_LANES];
    bool used[TRNI_PLAN_LANES] = { true, true, true, false, false, false, false };
    for (int64_t i = 0; i < trace->count; i++) used[trace->event[i].track] = true;
    trace->tracks = 0;
    for (int i = 0; i < TRNI_PLAN_LANES; i++) {
        place[i] = trace->tracks;
        if (used[i]) trace->track[trace->tracks++] = name[i];
    }
    for (int64_t i = 0; i < trace->count; i++) trace->event[i].track = place[trace->event[i].track];
}

TRN_API trn_status trn_plan_trace_layer(const trn_plan_args *args, const trn_plan *plan, trn_trace *trace)
{
    trni_plan_work w;
    trni_plan_run r;
    trn_plan own;
    TRNI_ENTER(args);
    if (!plan || !trace || trace->count)
        return trni_fail(args->error, TRN_EINVAL, "plan or trace is null, or trace is not empty");
    if (!plan->legal) return trni_fail(args->error, TRN_EINVAL, "plan is not legal, so it has no times");
    if (args->model && args->model->tables)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "a recommender has no layers to draw");
    trn_status status = trni_plan_work_begin(&w, args, 1 << 10);
    if (status != TRN_OK) return status;
    own = *plan;
    trni_plan_count_tp(&w, &own);
    if (!trni_plan_fills(&w, &own) || plan->microbatch < 1) {
        trni_plan_work_end(&w);
        return trni_fail(args->error, TRN_EINVAL, "plan is not one of %d chips", args->net->chips);
    }
    trni_plan_run_begin(&w, &own, false, &r);
    trni_plan_layer_line line;
    memset(&line, 0, sizeof line);
    line.r = &r;
    line.trace = trace;
    const bool sparse = w.m.dense_layers < w.m.layers;
    trni_plan_line_pass(&line, sparse, false);
    if (w.a.job == TRN_JOB_TRAIN) {
        trni_plan_line_recompute(&line, sparse);
        trni_plan_line_pass(&line, sparse, true);
    }
    trni_plan_trace_lanes(trace);
    status = w.status;
    trni_plan_work_end(&w);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_PLAN_PLAN_TRACE_H */
