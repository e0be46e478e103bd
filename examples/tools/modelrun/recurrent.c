/* recurrent.c - layers that keep a state instead of keys and values: a convolution along the text, then a rule.
 * SPDX-License-Identifier: MIT
 *
 * The rule itself is the same in all settings, because nothing is known of how a kernel for these engines has it: the
 * state is binary32 between tokens, what is computed for one token is binary64, with functions of the C library. What
 * goes in and what comes out is rounded as everything is.
 *
 * KNOWN FROM: "Gated Delta Networks" (arXiv 2412.06464); transformers' modelling code of Qwen3-Next.
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
} states;

/* ---- what the projections give, sorted ---- */

static void copy(float *to, const float *from, int64_t n) { memcpy(to, from, sizeof *to * (size_t)n); }

/* [groups][queries, keys, values of its heads, gates of its heads], and [groups][take, forget]. */
static void sort_row(const mr_config *c, const float *in, const float *rates, int64_t row, states *s)
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

static void project(mr_run *run, mr_layer *l, const float *x, int64_t rows, states *s)
{
    const mr_config *c = &run->model->config;
    const int64_t wide = mr_size_of(c, MR_STATE_INS), heads = c->recurrence.heads;
    const mr_weight none = { .tensor = NULL };
    float *in = mr_floats(rows * wide), *rates = mr_floats(rows * 2 * heads), *a = mr_floats(heads),
          *dt = mr_floats(heads);
    mr_linear(run, &l->w[MR_STATE_IN], &none, x, rows, in);
    mr_linear(run, &l->w[MR_STATE_RATES], &none, x, rows, rates);
    mr_decode(&l->w[MR_STATE_DECAY], 0, heads, a);
    mr_decode(&l->w[MR_STATE_STEP], 0, heads, dt);
    for (int64_t i = 0; i < rows; i++) {
        sort_row(c, in + i * wide, rates + i * 2 * heads, i, s);
        for (int64_t h = 0; h < heads; h++) {
            float *keep = &s->keep[i * heads + h];
            const double step = (double)*keep + (double)dt[h], plus = step > 30 ? step : log1p(exp(step));
            *keep = (float)exp(-exp((double)a[h]) * plus);
        }
    }
    mr_apply(run, TRN_ACT_SIGMOID, s->take, rows * heads);
    free(in);
    free(rates);
    free(a);
    free(dt);
}

/* ---- the convolution: each channel by itself, over the last tokens ---- */

/* mixed [count, channels] in place; seen [width - 1, channels]: what came before it. */
static void convolve(const mr_recurrence *r, const float *w, int64_t channels, float *mixed, int64_t count, float *seen)
{
    const int64_t before = r->width - 1;
    float *all = mr_floats((before + count) * channels);
    copy(all, seen, before * channels);
    copy(all + before * channels, mixed, count * channels);
    for (int64_t t = 0; t < count; t++)
        for (int64_t i = 0; i < channels; i++) {
            double sum = 0;
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

static void run_head(const mr_config *c, const states *s, int64_t first, int64_t count, int64_t h, float *state)
{
    const mr_recurrence *r = &c->recurrence;
    const int64_t channels = mr_size_of(c, MR_STATE_CHANNELS), keys = r->groups * r->key_dim;
    const int64_t group = h / (r->heads / r->groups);
    for (int64_t t = first; t < first + count; t++) {
        const float *mixed = s->mixed + t * channels, *query = mixed + group * r->key_dim;
        delta_step(r, query, query + keys, mixed + 2 * keys + h * r->value_dim, s->take[t * r->heads + h],
                   s->keep[t * r->heads + h], state, s->out + (t * r->heads + h) * r->value_dim);
    }
}

/* ---- a layer ---- */

static void run_span(mr_run *run, int64_t layer, const mr_span *span, const float *w, states *s)
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
    convolve(r, w, channels, mixed, span->count, seen);
    mr_round(run, mixed, span->count * channels);
    mr_apply(run, c->act, mixed, span->count * channels);
    MR_PARALLEL
    for (int64_t h = 0; h < r->heads; h++) run_head(c, s, span->row, span->count, h, state + h * each);
}

/* The norm of each head's result, times the gate's SiLU. */
static void finish(mr_run *run, mr_layer *l, int64_t rows, states *s)
{
    const mr_config *c = &run->model->config;
    const int64_t heads = rows * c->recurrence.heads, n = c->recurrence.value_dim;
    float *w = mr_floats(n), *y = mr_floats(heads * n);
    mr_vector(&l->w[MR_STATE_NORM], run, w);
    mr_round(run, s->out, heads * n);
    run->ops->rms_norm(run, s->out, w, c->eps, heads, n, y);
    mr_apply(run, TRN_ACT_SILU, s->gate, heads * n);
    mr_multiply(run, y, s->gate, heads * n);
    copy(s->out, y, heads * n);
    free(w);
    free(y);
}

void mr_recur(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    const int64_t channels = mr_size_of(c, MR_STATE_CHANNELS), width = c->recurrence.width;
    const int64_t inner = rows * mr_size_of(c, MR_STATE_INNER), heads = rows * c->recurrence.heads;
    mr_layer *l = &run->model->layer[layer];
    states s = { mr_floats(rows * channels), mr_floats(inner), mr_floats(heads), mr_floats(heads), mr_floats(inner) };
    float *w = mr_floats(channels * width);
    mr_decode(&l->w[MR_STATE_CONV], 0, channels, w);
    mr_round(run, w, channels * width);
    project(run, l, x, rows, &s);
    for (int i = 0; i < spans; i++) run_span(run, layer, &span[i], w, &s);
    finish(run, l, rows, &s);
    mr_linear_split(run, &l->w[MR_O], &l->bias[MR_O], s.out, rows, y);
    free(s.mixed);
    free(s.gate);
    free(s.take);
    free(s.keep);
    free(s.out);
    free(w);
}
