/* recurrent.c - layers that keep a state instead of keys and values: a convolution along the text, then a rule.
 * SPDX-License-Identifier: MIT
 *
 * The rule itself is the same in all settings, because nothing is known of how a kernel for these engines has it: the
 * state is binary32 between tokens, what is computed for one token is binary64, with functions of the C library. What
 * goes in and what comes out is rounded as everything is.
 *
 * KNOWN FROM: "Gated Delta Networks" (arXiv 2412.06464) and transformers' modelling code of Qwen3-Next; "Transformers
 * are SSMs" (arXiv 2405.21060) and Nemotron-H's configuration, whose time_step_limit bounds steps. (transformers 5
 * bounds them by time_step_min, the range of the first steps in training; vLLM and llama.cpp do not.)
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

/* What one layer works on: all rows of the batch. */
typedef struct states {
    float *mixed;       /* [rows, channels]: queries of all groups, keys of all groups, values of all heads */
    float *gate;        /* [rows, heads, value_dim] */
    float *take, *keep; /* [rows, heads]: what share of a value goes in; what is kept of the state */
    float *out;         /* [rows, heads, value_dim] */
    float *skip;        /* [heads] */
} states;

/* ---- what the projections give, sorted ---- */

static void copy(float *to, const float *from, int64_t n) { memcpy(to, from, sizeof *to * (size_t)n); }

/* The delta rule's: [groups][queries, keys, values of its heads, gates of its heads], and [groups][take, forget]. */
static void sort_groups(const mr_config *c, const float *in, const float *rates, int64_t row, states *s)
{
    const mr_recurrence *r = &c->recurrence;
    const int64_t each = r->heads / r->groups, wide = each * r->value_dim, keys = r->groups * r->key_dim;
    float *mixed = s->mixed + row * mr_size_of(c, MR_STATE_CHANNELS), *gate = s->gate + row * r->heads * r->value_dim;
    for (int64_t g = 0; g < r->groups; g++) {
        copy(mixed + g * r->key_dim, in, r->key_dim);
        copy(mixed + keys + g * r->key_dim, in + r->key_dim, r->key_dim);
        copy(mixed + 2 * keys + g * wide, in + 2 * r->key_dim, wide);
        copy(gate + g * wide, in + 2 * r->key_dim + wide, wide);
        copy(s->take + row * r->heads + g * each, rates, each);
        copy(s->keep + row * r->heads + g * each, rates + each, each);
        in += 2 * r->key_dim + 2 * wide;
        rates += 2 * each;
    }
}

static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

static void project_delta(mr_run *run, mr_layer *l, const float *in, const float *x, int64_t rows, states *s)
{
    const mr_config *c = &run->model->config;
    const int64_t wide = mr_size_of(c, MR_STATE_INS), heads = c->recurrence.heads;
    const mr_weight none = { .tensor = NULL };
    float *rates = mr_floats(rows * 2 * heads), *a = mr_floats(heads), *dt = mr_floats(heads);
    mr_linear(run, &l->w[MR_STATE_RATES], &none, x, rows, rates);
    mr_decode(&l->w[MR_STATE_DECAY], 0, heads, a);
    mr_decode(&l->w[MR_STATE_STEP], 0, heads, dt);
    for (int64_t i = 0; i < rows; i++) {
        sort_groups(c, in + i * wide, rates + i * 2 * heads, i, s);
        for (int64_t h = 0; h < heads; h++) {
            float *keep = &s->keep[i * heads + h];
            *keep = (float)exp(-exp((double)a[h]) * softplus((double)*keep + (double)dt[h]));
        }
    }
    mr_apply(run, TRN_ACT_SIGMOID, s->take, rows * heads);
    free(rates);
    free(a);
    free(dt);
}

/* Mamba-2's: gates of all heads, what is convolved, a step of time for each head. */
static void project_mamba(mr_run *run, mr_layer *l, const float *in, const float *x, int64_t rows, states *s)
{
    const mr_config *c = &run->model->config;
    const mr_recurrence *r = &c->recurrence;
    const int64_t inner = mr_size_of(c, MR_STATE_INNER), channels = mr_size_of(c, MR_STATE_CHANNELS), heads = r->heads;
    float *a = mr_floats(heads), *dt = mr_floats(heads);
    (void)x;
    mr_decode(&l->w[MR_STATE_DECAY], 0, heads, a);
    mr_decode(&l->w[MR_STATE_STEP], 0, heads, dt);
    for (int64_t i = 0; i < rows; i++, in += inner + channels + heads) {
        copy(s->gate + i * inner, in, inner);
        copy(s->mixed + i * channels, in + inner, channels);
        for (int64_t h = 0; h < heads; h++) {
            const double step = softplus((double)in[inner + channels + h] + (double)dt[h]);
            const double bound = fmin(fmax(step, r->shortest), r->longest);
            s->take[i * heads + h] = (float)bound;
            s->keep[i * heads + h] = (float)exp(-exp((double)a[h]) * bound);
        }
    }
    free(a);
    free(dt);
}

/* ---- the convolution: each channel by itself, over the last tokens ---- */

/* mixed [count, channels] in place; w [channels, width]; seen [width - 1, channels]: what came before it. */
static void convolve(const mr_recurrence *r, const float *w, const float *bias, int64_t channels, float *mixed,
                     int64_t count, float *seen)
{
    const int64_t before = r->width - 1;
    float *all = mr_floats((before + count) * channels);
    copy(all, seen, before * channels);
    copy(all + before * channels, mixed, count * channels);
    for (int64_t t = 0; t < count; t++)
        for (int64_t i = 0; i < channels; i++) {
            double sum = (double)bias[i];
            for (int64_t j = 0; j < r->width; j++)
                sum += (double)w[i * r->width + j] * (double)all[(t + j) * channels + i];
            mixed[t * channels + i] = (float)sum;
        }
    copy(seen, all + count * channels, before * channels);
    free(all);
}

/* ---- the gated delta rule ---- */

/* x over its length, as binary64. */
static void unit(const float *x, int64_t n, double scale, double *out)
{
    double sum = 1e-6;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < n; i++) out[i] = (double)x[i] / sqrt(sum) * scale;
}

/* One token of one head: the state forgets; of the value that the key has in it a share is replaced; the query reads.
 * state [key_dim, value_dim]. */
static void delta_step(const mr_recurrence *r, const float *query, const float *key, const float *value, float take,
                       float keep, float *state, float *out)
{
    const int64_t n = r->key_dim, wide = r->value_dim;
    double *q = app_memory((size_t)n * 2, sizeof *q), *k = q + n;
    unit(query, n, 1 / sqrt((double)n), q);
    unit(key, n, 1, k);
    for (int64_t j = 0; j < wide; j++) {
        double has = 0, sum = 0;
        for (int64_t i = 0; i < n; i++) has += (double)state[i * wide + j] * (double)keep * k[i];
        const double delta = ((double)value[j] - has) * (double)take;
        for (int64_t i = 0; i < n; i++) {
            const double fresh = (double)state[i * wide + j] * (double)keep + k[i] * delta;
            state[i * wide + j] = (float)fresh;
            sum += fresh * q[i];
        }
        out[j] = (float)sum;
    }
    free(q);
}

static void run_delta(const mr_config *c, const states *s, int64_t t, int64_t h, float *state)
{
    const mr_recurrence *r = &c->recurrence;
    const int64_t keys = r->groups * r->key_dim, group = h / (r->heads / r->groups), at = t * r->heads + h;
    const float *mixed = s->mixed + t * mr_size_of(c, MR_STATE_CHANNELS), *query = mixed + group * r->key_dim;
    delta_step(r, query, query + keys, mixed + 2 * keys + h * r->value_dim, s->take[at], s->keep[at], state,
               s->out + at * r->value_dim);
}

/* ---- Mamba-2 ---- */

/* One token of one head: the state forgets, and takes in the value at the key; the query reads, and some of the value
 * comes out at once. */
static void run_mamba(const mr_config *c, const states *s, int64_t t, int64_t h, float *state)
{
    const mr_recurrence *r = &c->recurrence;
    const int64_t n = r->key_dim, wide = r->value_dim, group = h / (r->heads / r->groups), at = t * r->heads + h;
    const float *value = s->mixed + t * mr_size_of(c, MR_STATE_CHANNELS) + h * wide;
    const float *key = s->mixed + t * mr_size_of(c, MR_STATE_CHANNELS) + r->heads * wide + group * n;
    const float *query = key + r->groups * n;
    const double step = (double)s->take[at], keep = (double)s->keep[at];
    for (int64_t j = 0; j < wide; j++) {
        double sum = (double)s->skip[h] * (double)value[j];
        for (int64_t i = 0; i < n; i++) {
            const double fresh = (double)state[i * wide + j] * keep + (double)key[i] * step * (double)value[j];
            state[i * wide + j] = (float)fresh;
            sum += fresh * (double)query[i];
        }
        s->out[at * wide + j] = (float)sum;
    }
}

/* ---- a layer ---- */

/* The norm of each head's result, times the gate's SiLU. */
static void finish_delta(mr_run *run, const float *w, int64_t rows, states *s, float *y)
{
    const mr_recurrence *r = &run->model->config.recurrence;
    const int64_t heads = rows * r->heads, n = heads * r->value_dim;
    run->ops->rms_norm(run, s->out, w, run->model->config.eps, heads, r->value_dim, y);
    mr_multiply(run, y, s->gate, n);
}

/* The norm of each group's results, which were multiplied by the gate's SiLU. */
static void finish_mamba(mr_run *run, const float *w, int64_t rows, states *s, float *y)
{
    const mr_recurrence *r = &run->model->config.recurrence;
    const int64_t inner = r->heads * r->value_dim, each = inner / r->groups;
    float *x = mr_floats(each * rows), *z = mr_floats(each * rows);
    mr_multiply(run, s->out, s->gate, rows * inner);
    for (int64_t g = 0; g < r->groups; g++) {
        for (int64_t i = 0; i < rows; i++) copy(x + i * each, s->out + i * inner + g * each, each);
        run->ops->rms_norm(run, x, w + g * each, run->model->config.eps, rows, each, z);
        for (int64_t i = 0; i < rows; i++) copy(y + i * inner + g * each, z + i * each, each);
    }
    free(x);
    free(z);
}

static const struct {
    void (*project)(mr_run *run, mr_layer *l, const float *in, const float *x, int64_t rows, states *s);
    void (*step)(const mr_config *c, const states *s, int64_t t, int64_t h, float *state);
    void (*finish)(mr_run *run, const float *w, int64_t rows, states *s, float *y);
} rule_of[] = { [MR_DELTA_RULE] = { project_delta, run_delta, finish_delta },
                [MR_MAMBA2] = { project_mamba, run_mamba, finish_mamba } };

static void run_span(mr_run *run, int64_t layer, const mr_span *span, const float *w, const float *bias, states *s)
{
    const mr_config *c = &run->model->config;
    const mr_recurrence *r = &c->recurrence;
    const int64_t channels = mr_size_of(c, MR_STATE_CHANNELS), each = r->key_dim * r->value_dim;
    float *mixed = s->mixed + span->row * channels;
    float *state = run->cache[span->cache].state + layer * r->heads * each;
    float *seen = run->cache[span->cache].seen + layer * r->width * channels;
    if (span->position == 0) {
        memset(state, 0, sizeof *state * (size_t)(r->heads * each));
        memset(seen, 0, sizeof *seen * (size_t)(r->width * channels));
    }
    convolve(r, w, bias, channels, mixed, span->count, seen);
    mr_round(run, mixed, span->count * channels);
    mr_apply(run, r->rule == MR_MAMBA2 ? TRN_ACT_SILU : c->act, mixed, span->count * channels);
    MR_PARALLEL
    for (int64_t h = 0; h < r->heads; h++)
        for (int64_t t = span->row; t < span->row + span->count; t++)
            rule_of[r->rule].step(c, s, t, h, state + h * each);
}

static void run_rule(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows,
                     states *s)
{
    const mr_config *c = &run->model->config;
    const int64_t channels = mr_size_of(c, MR_STATE_CHANNELS), width = c->recurrence.width;
    mr_layer *l = &run->model->layer[layer];
    float *in = mr_floats(rows * mr_size_of(c, MR_STATE_INS)), *w = mr_floats(channels * (width + 1));
    float *bias = w + channels * width;
    mr_decode(&l->w[MR_STATE_CONV], 0, channels, w);
    if (l->bias[MR_STATE_CONV].tensor) mr_decode(&l->bias[MR_STATE_CONV], 0, channels, bias);
    if (l->w[MR_STATE_SKIP].tensor) mr_decode(&l->w[MR_STATE_SKIP], 0, c->recurrence.heads, s->skip);
    mr_round(run, w, channels * (width + 1));
    mr_linear(run, &l->w[MR_STATE_IN], &l->bias[MR_STATE_IN], x, rows, in);
    rule_of[c->recurrence.rule].project(run, l, in, x, rows, s);
    for (int i = 0; i < spans; i++) run_span(run, layer, &span[i], w, bias, s);
    free(in);
    free(w);
}

void mr_recur(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    const int64_t inner = rows * mr_size_of(c, MR_STATE_INNER), heads = c->recurrence.heads;
    mr_layer *l = &run->model->layer[layer];
    states s = { .mixed = mr_floats(rows * mr_size_of(c, MR_STATE_CHANNELS)),
                 .gate = mr_floats(inner),
                 .take = mr_floats(rows * heads),
                 .keep = mr_floats(rows * heads),
                 .out = mr_floats(inner),
                 .skip = mr_floats(heads) };
    float *w = mr_floats(l->w[MR_STATE_NORM].rows), *done = mr_floats(inner);
    run_rule(run, layer, x, span, spans, rows, &s);
    mr_round(run, s.out, inner);
    mr_apply(run, TRN_ACT_SILU, s.gate, inner);
    mr_vector(&l->w[MR_STATE_NORM], run, w);
    rule_of[c->recurrence.rule].finish(run, w, rows, &s, done);
    mr_see(run, (mr_made){
                    .op = MR_OP_STATE, .of = &l->w[MR_STATE_NORM], .x = done, .rows = rows, .columns = inner / rows });
    mr_linear_split(run, &l->w[MR_O], &l->bias[MR_O], done, rows, y);
    free(s.mixed);
    free(s.gate);
    free(s.take);
    free(s.keep);
    free(s.out);
    free(s.skip);
    free(w);
    free(done);
}
