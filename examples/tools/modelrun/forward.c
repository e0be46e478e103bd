/* forward.c - a decoder's layers, and caches of keys and values.
 * SPDX-License-Identifier: MIT
 *
 * The result of every operation is rounded to the setting's format: what a product, a norm, a function or a sum hands
 * on. The Scalar engine reads attention's scores from PSUM, as they are, and the logits are PSUM's, too.
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_convert.h>

static float *floats(int64_t n) { return app_memory((size_t)(n > 0 ? n : 1), sizeof(float)); }

/* ---- beginning and end ---- */

size_t mr_cache_bytes(const mr_run *run) { return run->setting.reference ? 4 : trn_format_bytes(run->setting.act); }

static bool split(const mr_run *run, const char *what, int64_t n, char *why)
{
    const int tp = run->setting.tp;
    const int64_t unit = run->setting.codes == MR_CODES_MX && !run->setting.weights_only ? 32 : 1;
    if (n % (tp * unit) == 0) return true;
    return app_fail(why, "%s: tp=%d: the %s of this model, %lld, does not divide into parts of %s", run->setting.name,
                    tp, what, (long long)n, unit > 1 ? "whole blocks of 32" : "one size");
}

bool mr_run_start(mr_run *run, mr_model *model, const mr_setting *setting, int caches, int64_t capacity, char *why)
{
    const mr_config *c = &model->config;
    const int64_t half = c->head_dim / 2;
    *run = (mr_run){ .model = model, .setting = *setting, .caches = caches, .capacity = capacity };
    run->ops = setting->reference ? &mr_reference_ops : &mr_engine_ops;
    if (setting->split_outputs && c->hidden % setting->tp)
        return app_fail(why, "%s: tp=%d: the hidden size of this model, %lld, does not divide into parts of one size",
                        setting->name, setting->tp, (long long)c->hidden);
    if (setting->tp > 1 && !setting->split_outputs) {
        bool dense = !c->experts;
        for (int64_t i = 0; i < c->layers; i++) dense |= c->experts && !c->sparse[i];
        if (!split(run, "width of all heads", c->heads * c->head_dim, why) ||
            (dense && !split(run, "intermediate size", c->intermediate, why)) ||
            (c->experts && !split(run, "experts' intermediate size", c->moe_intermediate, why)) ||
            (c->shared_intermediate && !split(run, "shared expert's intermediate size", c->shared_intermediate, why)))
            return false;
    }
    const size_t bytes = (size_t)(c->layers * c->kv_heads * capacity * c->head_dim) * mr_cache_bytes(run);
    run->cache = app_memory((size_t)caches, sizeof *run->cache);
    for (int i = 0; i < caches; i++) {
        run->cache[i].k = app_memory(bytes, 1);
        run->cache[i].v = app_memory(bytes, 1);
    }
    run->cosine = floats(capacity * half);
    run->sine = floats(capacity * half);
    mr_rope_tables(&c->rope, c->head_dim, capacity, run->cosine, run->sine);
    return true;
}

static void free_layer(mr_run *run, int64_t layer)
{
    mr_layer *l = &run->model->layer[layer];
    for (int i = 0; i < MR_MATRICES; i++) mr_matrix_free(&l->w[i]);
    for (int64_t e = 0; l->expert && e < 3 * run->model->config.experts; e++) mr_matrix_free(&l->expert[e]);
}

void mr_run_end(mr_run *run)
{
    for (int64_t i = 0; i < run->model->config.layers; i++) free_layer(run, i);
    mr_matrix_free(&run->model->head);
    for (int i = 0; i < run->caches && run->cache; i++) {
        free(run->cache[i].k);
        free(run->cache[i].v);
    }
    free(run->cache);
    free(run->cosine);
    free(run->sine);
}

/* ---- small steps ---- */

static void linear(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y)
{
    run->ops->linear(run, &(mr_product){ .w = w, .bias = bias, .x = x, .rows = rows, .y = y });
}

static void linear_split(mr_run *run, mr_weight *w, const mr_weight *bias, const float *x, int64_t rows, float *y)
{
    run->ops->linear(run, &(mr_product){ .w = w, .bias = bias, .x = x, .rows = rows, .y = y, .row_parallel = true });
}

static void norm(mr_run *run, const mr_weight *weight, const mr_weight *bias, const float *x, int64_t rows, float *y)
{
    const int64_t n = weight->rows;
    float *w = floats(2 * n);
    mr_vector(weight, run, w);
    if (bias->tensor) mr_vector(bias, run, w + n);
    if (bias->tensor)
        run->ops->layer_norm(run, x, w, w + n, rows, n, y);
    else
        run->ops->rms_norm(run, x, w, rows, n, y);
    mr_see(run, (mr_made){ .op = MR_OP_NORM, .of = weight, .x = y, .rows = rows, .columns = n });
    free(w);
}

static void add(mr_run *run, float *h, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) h[i] += y[i];
    mr_round(run, h, n);
}

static void multiply(mr_run *run, float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
    mr_round(run, x, n);
}

/* ---- positions ---- */

/* x [count, heads, head_dim], made by w: pairs (i, i + half) turn; two products and a sum, each rounded to binary32. */
static void rotate(mr_run *run, const mr_weight *w, float *x, const mr_span *span, int64_t heads)
{
    const int64_t n = run->model->config.head_dim, half = n / 2;
    if (run->model->config.rope.kind == MR_ROPE_NONE) return;
    for (int64_t t = 0; t < span->count; t++) {
        const int64_t at = (span->position + t) * half;
        const float *cosine = run->cosine + at, *sine = run->sine + at;
        for (int64_t h = 0; h < heads; h++) {
            float *low = x + (t * heads + h) * n, *high = low + half;
            for (int64_t i = 0; i < half; i++) {
                const float a = low[i], b = high[i];
                const float ac = a * cosine[i], bs = b * sine[i], bc = b * cosine[i], as = a * sine[i];
                low[i] = ac - bs;
                high[i] = bc + as;
            }
        }
    }
    mr_round(run, x, span->count * heads * n);
    mr_see(run,
           (mr_made){ .op = MR_OP_TURN, .of = w, .x = x, .rows = span->count, .columns = heads * n, .row = span->row });
}

/* ---- caches ---- */

static unsigned char *cached(const mr_run *run, unsigned char *of, int64_t layer, int64_t head)
{
    const mr_config *c = &run->model->config;
    return of + (size_t)((layer * c->kv_heads + head) * run->capacity * c->head_dim) * mr_cache_bytes(run);
}

static void to_fp8(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = trn_decode(TRN_F8_E4M3, trn_encode(TRN_F8_E4M3, x[i], TRN_NEAREST_EVEN, TRN_SATURATE, 0));
}

/* x [count, kv_heads, head_dim] to the positions of the span. Rounded to FP8, a number is still one of BF16 and F16. */
static void store(mr_run *run, unsigned char *of, float *x, const mr_span *span, int64_t layer)
{
    const mr_config *c = &run->model->config;
    const int64_t heads = c->kv_heads, n = c->head_dim;
    const trn_format format = run->setting.reference ? TRN_F32 : run->setting.act;
    trn_error error;
    if (run->setting.kv_fp8) to_fp8(x, span->count * heads * n);
    mr_see(run, (mr_made){ .op = MR_OP_STORE,
                           .of = &run->model->layer[layer].w[of == run->cache[span->cache].k ? MR_K : MR_V],
                           .x = x,
                           .rows = span->count,
                           .columns = heads * n,
                           .row = span->row });
    for (int64_t h = 0; h < heads; h++) {
        unsigned char *to = cached(run, of, layer, h) + (size_t)(span->position * n) * mr_cache_bytes(run);
        trn_tensor from = trn_tensor_2d(TRN_F32, x + h * n, span->count, n);
        from.stride[0] = heads * n;
        from.stride[1] = 1;
        trn_convert_args a = { .dst = trn_tensor_2d(format, to, span->count, n), .src = from, .error = &error };
        mr_must(trn_convert(&a), &error);
    }
}

/* ---- attention ---- */

typedef struct attending {
    mr_run *run;
    const mr_span *span;
    int64_t layer, group; /* heads of queries for one of keys */
    const float *q, *sinks;
    float *out; /* [count, heads, head_dim], as q is */
} attending;

/* What token `at` does not see among keys [first, first + keys). */
static void mask(const attending *a, float *score, int64_t at, int64_t first, int64_t keys)
{
    const int64_t window = a->run->model->config.window[a->layer];
    for (int64_t j = 0; j < keys; j++)
        if (first + j > at || (window && first + j <= at - window)) score[j] = -INFINITY;
}

/* The first key that token `position` of a window sees, or the tile's that it lies in: then no key changes its place in
 * tiles and chains with the token that a block of queries begins with. */
static int64_t first_key(const mr_run *run, int64_t position, int64_t window)
{
    const int64_t from = position + 1 - window, tile = mr_key_tile(&run->setting);
    if (!window || from <= 0) return 0;
    return run->setting.keys_aligned ? from - from % tile : from;
}

static void see_attended(const attending *a, mr_op op, float *x, int64_t head, int64_t t, int64_t count,
                         int64_t columns, int64_t first)
{
    mr_see(a->run, (mr_made){ .op = op,
                              .of = &a->run->model->layer[a->layer].w[MR_Q],
                              .x = x,
                              .rows = a->group * count,
                              .columns = columns,
                              .row = a->span->row + t,
                              .head = head,
                              .group = a->group,
                              .first = first });
}

/* Queries [t, t + count) of all heads that share the keys of `head`. */
static void attend_some(const attending *a, int64_t head, int64_t t, int64_t count)
{
    mr_run *run = a->run;
    const mr_config *c = &run->model->config;
    const int64_t n = c->head_dim, rows = a->group * count, end = a->span->position + t + count;
    const int64_t first = first_key(run, end - count, c->window[a->layer]), keys = end - first;
    const size_t skip = (size_t)(first * n) * mr_cache_bytes(run);
    const mr_cache *cache = &run->cache[a->span->cache];
    float *q = floats(rows * n), *score = floats(rows * keys), *sink = a->sinks ? floats(rows) : NULL;
    const double scale = c->attention_scale / (c->scale_by_layer ? (double)(a->layer + 1) : 1);
    for (int64_t g = 0; g < a->group; g++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t h = head * a->group + g;
            memcpy(q + (g * count + i) * n, a->q + ((t + i) * c->heads + h) * n, sizeof *q * (size_t)n);
            if (sink) sink[g * count + i] = a->sinks[h];
        }
    run->ops->scores(run, q, cached(run, cache->k, a->layer, head) + skip, rows, keys, n, score);
    for (int64_t i = 0; i < rows; i++) mask(a, score + i * keys, a->span->position + t + i % count, first, keys);
    see_attended(a, MR_OP_SCORES, score, head, t, count, keys, first);
    run->ops->softmax(run, score, sink, scale, rows, keys);
    see_attended(a, MR_OP_SOFTMAX, score, head, t, count, keys, first);
    run->ops->mix(run, score, cached(run, cache->v, a->layer, head) + skip, rows, keys, n, q);
    see_attended(a, MR_OP_MIX, q, head, t, count, n, first);
    for (int64_t g = 0; g < a->group; g++)
        for (int64_t i = 0; i < count; i++)
            memcpy(a->out + ((t + i) * c->heads + head * a->group + g) * n, q + (g * count + i) * n,
                   sizeof *q * (size_t)n);
    free(q);
    free(score);
    free(sink);
}

enum { QUERIES = 128 }; /* tokens at a time */

static void attend(const attending *a)
{
    const int64_t heads = a->run->model->config.kv_heads;
    MR_PARALLEL
    for (int64_t h = 0; h < heads; h++)
        for (int64_t t = 0; t < a->span->count; t += QUERIES)
            attend_some(a, h, t, a->span->count - t < QUERIES ? a->span->count - t : QUERIES);
}

static void head_norm(mr_run *run, const mr_weight *w, float *x, int64_t rows)
{
    const mr_weight none = { .tensor = NULL };
    float *y = floats(rows * w->rows);
    norm(run, w, &none, x, rows, y);
    memcpy(x, y, sizeof *x * (size_t)(rows * w->rows));
    free(y);
}

static void attention(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows,
                      float *y)
{
    const mr_config *c = &run->model->config;
    mr_layer *l = &run->model->layer[layer];
    const int64_t wide = c->heads * c->head_dim, narrow = c->kv_heads * c->head_dim;
    float *q = floats(rows * wide), *k = floats(rows * narrow), *v = floats(rows * narrow), *out = floats(rows * wide);
    float *sinks = l->sinks.tensor ? floats(c->heads) : NULL;
    if (sinks) mr_vector(&l->sinks, run, sinks);
    linear(run, &l->w[MR_Q], &l->bias[MR_Q], x, rows, q);
    linear(run, &l->w[MR_K], &l->bias[MR_K], x, rows, k);
    linear(run, &l->w[MR_V], &l->bias[MR_V], x, rows, v);
    if (l->q_norm.tensor) head_norm(run, &l->q_norm, q, rows * c->heads);
    if (l->k_norm.tensor) head_norm(run, &l->k_norm, k, rows * c->kv_heads);
    for (int i = 0; i < spans; i++) {
        const mr_span *s = &span[i];
        const attending a = { run, s, layer, c->heads / c->kv_heads, q + s->row * wide, sinks, out + s->row * wide };
        rotate(run, &l->w[MR_Q], q + s->row * wide, s, c->heads);
        rotate(run, &l->w[MR_K], k + s->row * narrow, s, c->kv_heads);
        store(run, run->cache[s->cache].k, k + s->row * narrow, s, layer);
        store(run, run->cache[s->cache].v, v + s->row * narrow, s, layer);
        attend(&a);
    }
    linear_split(run, &l->w[MR_O], &l->bias[MR_O], out, rows, y);
    free(q);
    free(k);
    free(v);
    free(out);
    free(sinks);
}

/* ---- perceptrons ---- */

/* gate = act(gate) up; gpt-oss: both clamped, gate sigmoid(alpha gate) (up + 1). */
static void gated(mr_run *run, float *gate, float *up, int64_t n)
{
    const mr_config *c = &run->model->config;
    if (c->alpha == 0) {
        run->ops->function(run, c->act, gate, n);
        multiply(run, gate, up, n);
        return;
    }
    const float limit = c->swiglu_limit > 0 ? (float)c->swiglu_limit : INFINITY, alpha = (float)c->alpha;
    float *sigmoid = floats(n);
    for (int64_t i = 0; i < n; i++) {
        gate[i] = gate[i] > limit ? limit : gate[i];
        up[i] = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
        sigmoid[i] = gate[i] * alpha;
        up[i] += 1;
    }
    mr_round(run, up, n);
    if (c->alpha == 1.702)
        run->ops->function(run, TRN_ACT_GELU_APPRX_SIGMOID, gate, n);
    else {
        run->ops->function(run, TRN_ACT_SIGMOID, sigmoid, n);
        multiply(run, gate, sigmoid, n);
    }
    multiply(run, gate, up, n);
    free(sigmoid);
}

/* w, bias: gate, up, down; a gate without a tensor: there is none. */
static void perceptron(mr_run *run, mr_weight *w[3], const mr_weight *bias[3], const float *x, int64_t rows, float *y)
{
    const int64_t n = rows * w[1]->rows;
    float *gate = floats(n), *up = floats(n);
    linear(run, w[1], bias[1], x, rows, up);
    if (w[0]->tensor) {
        linear(run, w[0], bias[0], x, rows, gate);
        gated(run, gate, up, n);
    } else
        run->ops->function(run, run->model->config.act, up, n);
    mr_see(run,
           (mr_made){
               .op = MR_OP_FUNCTION, .of = w[1], .x = w[0]->tensor ? gate : up, .rows = rows, .columns = w[1]->rows });
    linear_split(run, w[2], bias[2], w[0]->tensor ? gate : up, rows, y);
    free(gate);
    free(up);
}

/* ---- experts ---- */

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

/* share [rows, experts]: what each expert's result counts; 0: not asked. */
static void route(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *share)
{
    const mr_config *c = &run->model->config;
    const int64_t n = c->experts, k = c->experts_per_token;
    const bool of_best = c->family->flags & MR_GPT_OSS; /* softmax of the best alone */
    float *logit = floats(rows * n), *few = floats(k);
    int64_t *best = app_memory((size_t)k, sizeof *best);
    linear(run, &l->w[MR_ROUTER], &l->bias[MR_ROUTER], x, rows, logit);
    if (!of_best) run->ops->softmax(run, logit, NULL, 1, rows, n);
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        choose(logit + i * n, n, k, best);
        for (int64_t j = 0; j < k; j++) few[j] = logit[i * n + best[j]];
        if (of_best) run->ops->softmax(run, few, NULL, 1, 1, k);
        for (int64_t j = 0; j < k; j++) sum += few[j];
        for (int64_t j = 0; j < k; j++) few[j] = c->norm_topk && !of_best ? few[j] / sum : few[j];
        mr_round(run, few, k);
        for (int64_t j = 0; j < k; j++) share[i * n + best[j]] = few[j];
    }
    mr_see(run, (mr_made){ .op = MR_OP_CHOICE, .of = &l->w[MR_ROUTER], .x = share, .rows = rows, .columns = n });
    free(logit);
    free(few);
    free(best);
}

/* The tokens that asked for expert e, together. */
static void run_expert(mr_run *run, mr_layer *l, int64_t e, const float *x, const float *share, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    const int64_t n = c->hidden;
    float *in = floats(rows * n), *out = floats(rows * n);
    int64_t *who = app_memory((size_t)rows, sizeof *who), count = 0;
    for (int64_t i = 0; i < rows; i++)
        if (share[i * c->experts + e] != 0) {
            memcpy(in + count * n, x + i * n, sizeof *x * (size_t)n);
            who[count++] = i;
        }
    mr_weight *w[3];
    const mr_weight *bias[3];
    for (int i = 0; i < 3; i++) w[i] = &l->expert[3 * e + i], bias[i] = &l->expert_bias[3 * e + i];
    run->who = who;
    if (count) perceptron(run, w, bias, in, count, out);
    run->who = NULL;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) y[who[i] * n + j] += share[who[i] * c->experts + e] * out[i * n + j];
    for (int i = 0; i < 3 && !run->keep; i++) mr_matrix_free(w[i]);
    free(in);
    free(out);
    free(who);
}

static void add_shared(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *y)
{
    const int64_t n = run->model->config.hidden;
    const mr_weight none = { .tensor = NULL };
    float *out = floats(rows * n), *gate = floats(rows);
    mr_weight *w[3] = { &l->w[MR_SHARED_GATE], &l->w[MR_SHARED_UP], &l->w[MR_SHARED_DOWN] };
    const mr_weight *bias[3] = { &none, &none, &none };
    perceptron(run, w, bias, x, rows, out);
    linear(run, &l->w[MR_SHARED_SWITCH], NULL, x, rows, gate);
    run->ops->function(run, TRN_ACT_SIGMOID, gate, rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) y[i * n + j] += gate[i] * out[i * n + j];
    free(out);
    free(gate);
}

static void mixture(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    float *share = floats(rows * c->experts);
    memset(y, 0, sizeof *y * (size_t)(rows * c->hidden));
    route(run, l, x, rows, share);
    for (int64_t e = 0; e < c->experts; e++) run_expert(run, l, e, x, share, rows, y);
    if (c->shared_intermediate) add_shared(run, l, x, rows, y);
    mr_round(run, y, rows * c->hidden);
    mr_see(run, (mr_made){ .op = MR_OP_MIXTURE, .of = &l->w[MR_ROUTER], .x = y, .rows = rows, .columns = c->hidden });
    free(share);
}

/* ---- all layers ---- */

static void embed(mr_run *run, const int32_t *token, const mr_span *span, int spans, float *h)
{
    mr_model *m = run->model;
    const int64_t n = m->config.hidden;
    float *position = floats(n);
    for (int i = 0; i < spans; i++)
        for (int64_t t = 0; t < span[i].count; t++) {
            const int64_t row = span[i].row + t;
            mr_decode(&m->embed, token[row], 1, h + row * n);
            mr_round(run, h + row * n, n);
            if (!m->positions.tensor) continue;
            mr_decode(&m->positions, span[i].position + t, 1, position);
            mr_round(run, position, n);
            add(run, h + row * n, position, n);
        }
    free(position);
}

void mr_forward(mr_run *run, const int32_t *token, const mr_span *span, int spans, int64_t rows, float *out)
{
    mr_model *m = run->model;
    const mr_config *c = &m->config;
    const int64_t n = rows * c->hidden;
    float *h = floats(n), *x = floats(n), *y = floats(n);
    embed(run, token, span, spans, h);
    mr_see(run, (mr_made){ .op = MR_OP_EMBED, .x = h, .rows = rows, .columns = c->hidden });
    for (int64_t i = 0; i < c->layers; i++) {
        mr_layer *l = &m->layer[i];
        norm(run, &l->norm[0], &l->norm_bias[0], h, rows, x);
        attention(run, i, x, span, spans, rows, y);
        add(run, h, y, n);
        mr_see(run, (mr_made){ .op = MR_OP_ADD, .of = &l->norm[0], .x = h, .rows = rows, .columns = c->hidden });
        norm(run, &l->norm[1], &l->norm_bias[1], h, rows, x);
        mr_weight *w[3] = { &l->w[MR_GATE], &l->w[MR_UP], &l->w[MR_DOWN] };
        const mr_weight *bias[3] = { &l->bias[MR_GATE], &l->bias[MR_UP], &l->bias[MR_DOWN] };
        if (c->sparse[i])
            mixture(run, l, x, rows, y);
        else
            perceptron(run, w, bias, x, rows, y);
        add(run, h, y, n);
        mr_see(run, (mr_made){ .op = MR_OP_ADD, .of = &l->norm[1], .x = h, .rows = rows, .columns = c->hidden });
        if (run->seen) run->seen(run->user, i, h, rows);
        if (!run->keep) free_layer(run, i);
    }
    norm(run, &m->norm, &m->norm_bias, h, rows, out);
    free(h);
    free(x);
    free(y);
}

void mr_logits(mr_run *run, const float *h, int64_t rows, float *logits)
{
    run->ops->linear(run, &(mr_product){ .w = &run->model->head, .x = h, .rows = rows, .y = logits, .raw = true });
}
