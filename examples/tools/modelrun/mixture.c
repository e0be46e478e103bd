/* mixture.c - perceptrons, routers, and experts.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: transformers' modelling code; "DeepSeek-V3" (arXiv 2412.19437) for the choice by groups.
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

/* ---- perceptrons ---- */

/* gate = act(gate) up; gpt-oss: both clamped, gate sigmoid(alpha gate) (up + 1). */
static void gated(mr_run *run, float *gate, float *up, int64_t n)
{
    const mr_config *c = &run->model->config;
    if (c->alpha == 0) {
        mr_apply(run, c->act, gate, n);
        mr_multiply(run, gate, up, n);
        return;
    }
    const float limit = c->swiglu_limit > 0 ? (float)c->swiglu_limit : INFINITY, alpha = (float)c->alpha;
    float *sigmoid = mr_floats(n);
    for (int64_t i = 0; i < n; i++) {
        gate[i] = gate[i] > limit ? limit : gate[i];
        up[i] = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
        sigmoid[i] = gate[i] * alpha;
        up[i] += 1;
    }
    mr_round(run, up, n);
    if (c->alpha == 1.702)
        mr_apply(run, TRN_ACT_GELU_APPRX_SIGMOID, gate, n);
    else {
        mr_apply(run, TRN_ACT_SIGMOID, sigmoid, n);
        mr_multiply(run, gate, sigmoid, n);
    }
    mr_multiply(run, gate, up, n);
    free(sigmoid);
}

/* w, bias: gate, up, down; a gate without a tensor: there is none. */
void mr_perceptron(mr_run *run, mr_weight *w[3], const mr_weight *bias[3], const float *x, int64_t rows, float *y)
{
    const int64_t n = rows * w[1]->rows;
    float *gate = mr_floats(n), *up = mr_floats(n);
    mr_linear(run, w[1], bias[1], x, rows, up);
    if (w[0]->tensor) {
        mr_linear(run, w[0], bias[0], x, rows, gate);
        gated(run, gate, up, n);
    } else {
        mr_apply(run, run->model->config.act, up, n);
        if (run->model->config.squared) mr_multiply(run, up, up, n);
    }
    float *inner = w[0]->tensor ? gate : up;
    mr_see(run, (mr_made){ .op = MR_OP_FUNCTION, .of = w[1], .x = inner, .rows = rows, .columns = w[1]->rows });
    mr_linear_split(run, w[2], bias[2], inner, rows, y);
    free(gate);
    free(up);
}

/* ---- routers ---- */

/* The largest `count` of n, the first of equals first. */
static void choose(const float *x, int64_t n, int64_t count, int64_t *best)
{
    for (int64_t i = 0; i < count; i++) {
        best[i] = -1;
        for (int64_t j = 0; j < n; j++) {
            bool taken = false;
            for (int64_t k = 0; k < i; k++) taken |= best[k] == j;
            if (!taken && (best[i] < 0 || x[j] > x[best[i]])) best[i] = j;
        }
    }
}

/* Experts outside of the best groups become -infinity; a group is worth the sum of its best two. */
static void leave_groups(const mr_config *c, float *x)
{
    const int64_t n = c->groups, each = c->experts / n;
    float *worth = mr_floats(n);
    int64_t *best = app_memory((size_t)n, sizeof *best), two[2] = { 0, 1 };
    for (int64_t g = 0; g < n; g++) {
        choose(x + g * each, each, 2, two);
        worth[g] = x[g * each + two[0]] + x[g * each + two[1]];
    }
    choose(worth, n, c->groups_per_token, best);
    for (int64_t g = 0; g < n; g++) {
        bool kept = false;
        for (int64_t i = 0; i < c->groups_per_token; i++) kept |= best[i] == g;
        for (int64_t i = 0; i < each && !kept; i++) x[g * each + i] = -INFINITY;
    }
    free(worth);
    free(best);
}

/* Which experts a token asks; score [experts], correction [experts] or NULL. */
static void choose_experts(const mr_config *c, const float *score, const float *correction, int64_t *best)
{
    float *x = mr_floats(c->experts);
    for (int64_t i = 0; i < c->experts; i++) x[i] = correction ? score[i] + correction[i] : score[i];
    if (c->groups > 1) leave_groups(c, x);
    choose(x, c->experts, c->experts_per_token, best);
    free(x);
}

/* A router's function: softmax of n numbers, or the sigmoid of each. */
static void judge(mr_run *run, float *x, int64_t rows, int64_t n)
{
    const int route = run->model->config.family->route;
    if (!(route & MR_ROUTE_SIGMOID))
        run->ops->softmax(run, x, NULL, 1, rows, n);
    else
        run->ops->function(run, TRN_ACT_SIGMOID, x, rows * n);
}

/* few [k]: what the chosen experts count. */
static void weigh(mr_run *run, float *few, int64_t k)
{
    const mr_config *c = &run->model->config;
    const int route = c->family->route;
    float sum = 0;
    if (route & MR_ROUTE_OF_BEST) judge(run, few, 1, k);
    for (int64_t j = 0; j < k; j++) sum += few[j];
    if (route & MR_ROUTE_EXACT) sum += 1e-20f;
    for (int64_t j = 0; j < k && c->norm_topk && !(route & MR_ROUTE_OF_BEST); j++) few[j] /= sum;
    for (int64_t j = 0; j < k && c->routed_scale != 1; j++) few[j] *= (float)c->routed_scale;
    if (!(route & MR_ROUTE_EXACT)) mr_round(run, few, k);
}

/* share [rows, experts]: what each expert's result counts; 0: not asked. */
static void route(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *share)
{
    const mr_config *c = &run->model->config;
    const int64_t n = c->experts, k = c->experts_per_token;
    float *logit = mr_floats(rows * n), *few = mr_floats(k);
    float *correction = l->w[MR_CORRECTION].tensor ? mr_floats(n) : NULL;
    int64_t *best = app_memory((size_t)k, sizeof *best);
    if (correction) mr_decode(&l->w[MR_CORRECTION], 0, n, correction);
    run->ops->linear(run, &(mr_product){ .w = &l->w[MR_ROUTER],
                                         .bias = &l->bias[MR_ROUTER],
                                         .x = x,
                                         .rows = rows,
                                         .y = logit,
                                         .raw = c->family->route & MR_ROUTE_EXACT });
    if (!(c->family->route & MR_ROUTE_OF_BEST)) judge(run, logit, rows, n);
    for (int64_t i = 0; i < rows; i++) {
        choose_experts(c, logit + i * n, correction, best);
        if (run->chose) run->chose(run->user, l - run->model->layer, i, best);
        for (int64_t j = 0; j < k; j++) few[j] = logit[i * n + best[j]];
        weigh(run, few, k);
        for (int64_t j = 0; j < k; j++) share[i * n + best[j]] = few[j];
    }
    mr_see(run, (mr_made){ .op = MR_OP_CHOICE, .of = &l->w[MR_ROUTER], .x = share, .rows = rows, .columns = n });
    free(logit);
    free(few);
    free(correction);
    free(best);
}

/* ---- experts ---- */

/* The tokens that asked for expert e, together. */
static void run_expert(mr_run *run, mr_layer *l, int64_t e, const float *x, const float *share, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    const int64_t n = c->hidden;
    const bool before = c->family->route & MR_ROUTE_INPUT;
    float *in = mr_floats(rows * n), *out = mr_floats(rows * n);
    int64_t *who = app_memory((size_t)rows, sizeof *who), count = 0;
    for (int64_t i = 0; i < rows; i++)
        if (share[i * c->experts + e] != 0) {
            for (int64_t j = 0; j < n; j++) in[count * n + j] = x[i * n + j] * (before ? share[i * c->experts + e] : 1);
            who[count++] = i;
        }
    if (before) mr_round(run, in, count * n);
    mr_weight *w[3];
    const mr_weight *bias[3];
    for (int i = 0; i < 3; i++) w[i] = &l->expert[3 * e + i], bias[i] = &l->expert_bias[3 * e + i];
    run->who = who;
    if (count) mr_perceptron(run, w, bias, in, count, out);
    run->who = NULL;
    for (int64_t i = 0; i < count; i++) {
        const float counts = before ? 1 : share[who[i] * c->experts + e];
        for (int64_t j = 0; j < n; j++) y[who[i] * n + j] += counts * out[i * n + j];
    }
    for (int i = 0; i < 3 && !run->keep; i++) mr_matrix_free(w[i]);
    free(in);
    free(out);
    free(who);
}

/* The expert that every token has; of some families behind a gate. */
static void add_shared(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *y)
{
    const int64_t n = run->model->config.hidden;
    float *out = mr_floats(rows * n), *gate = mr_floats(rows);
    mr_weight *w[3] = { &l->w[MR_SHARED_GATE], &l->w[MR_SHARED_UP], &l->w[MR_SHARED_DOWN] };
    const mr_weight *bias[3] = { &l->bias[MR_SHARED_GATE], &l->bias[MR_SHARED_UP], &l->bias[MR_SHARED_DOWN] };
    mr_perceptron(run, w, bias, x, rows, out);
    if (l->w[MR_SHARED_SWITCH].tensor) {
        mr_linear(run, &l->w[MR_SHARED_SWITCH], NULL, x, rows, gate);
        mr_apply(run, TRN_ACT_SIGMOID, gate, rows);
    } else
        for (int64_t i = 0; i < rows; i++) gate[i] = 1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) y[i * n + j] += gate[i] * out[i * n + j];
    free(out);
    free(gate);
}

void mr_mixture(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    float *share = mr_floats(rows * c->experts);
    memset(y, 0, sizeof *y * (size_t)(rows * c->hidden));
    route(run, l, x, rows, share);
    for (int64_t e = 0; e < c->experts; e++) run_expert(run, l, e, x, share, rows, y);
    if (c->shared_intermediate) add_shared(run, l, x, rows, y);
    mr_round(run, y, rows * c->hidden);
    mr_see(run, (mr_made){ .op = MR_OP_MIXTURE, .of = &l->w[MR_ROUTER], .x = y, .rows = rows, .columns = c->hidden });
    free(share);
}
