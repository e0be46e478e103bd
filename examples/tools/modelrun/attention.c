/* attention.c - queries, keys and values, plain or from latents; caches of keys and values; what heads mix of them.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: "DeepSeek-V3" (arXiv 2412.19437) for latents; transformers' modelling code for the order of norms, turns
 * and scales.
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_convert.h>

/* What one layer's attention works on: all rows of the batch. */
typedef struct heads {
    float *q, *k, *v, *out; /* [rows, heads, head_dim], [rows, kv_heads, head_dim or value_dim]; out: as mixed */
    float *gate;            /* as out; NULL: none */
} heads;

/* ---- positions ---- */

/* Dimensions i and j of pair number `pair`, of n that turn. */
static void pair_of(const mr_config *c, int64_t pair, int64_t *i, int64_t *j)
{
    *i = c->rope_first + (c->rope_pairs ? 2 * pair : pair);
    *j = *i + (c->rope_pairs ? 1 : c->rope_dim / 2);
}

/* The rule that a layer turns by, for a text of this length; NULL cosines: it does not turn. */
static int rule_of(const mr_run *run, int64_t layer, const mr_span *span)
{
    const mr_config *c = &run->model->config;
    const int turn = c->turn[layer];
    const bool beyond = (double)(span->position + span->count) > c->rope[MR_ROPE_ALL].original;
    return turn == MR_ROPE_ALL && c->rope[MR_ROPE_BEYOND].kind && beyond ? MR_ROPE_BEYOND : turn;
}

/* x [count, heads, head_dim]: pairs turn; two products and a sum, each rounded to binary32. */
static void rotate(mr_run *run, int64_t layer, float *x, const mr_span *span, int64_t heads)
{
    const mr_config *c = &run->model->config;
    const int rule = rule_of(run, layer, span);
    const int64_t n = c->head_dim, half = c->rope_dim / 2;
    if (rule < 0 || !run->cosine[rule]) return;
    for (int64_t t = 0; t < span->count; t++) {
        const int64_t at = (span->position + t) * half;
        const float *cosine = run->cosine[rule] + at, *sine = run->sine[rule] + at;
        for (int64_t h = 0; h < heads; h++) {
            float *head = x + (t * heads + h) * n;
            for (int64_t p = 0; p < half; p++) {
                int64_t i, j;
                pair_of(c, p, &i, &j);
                const float a = head[i], b = head[j];
                const float ac = a * cosine[p], bs = b * sine[p], bc = b * cosine[p], as = a * sine[p];
                head[i] = ac - bs;
                head[j] = bc + as;
            }
        }
    }
    mr_round(run, x, span->count * heads * n);
}

/* Queries that grow with their position. */
static void grow(mr_run *run, int64_t layer, float *q, const mr_span *span)
{
    const mr_config *c = &run->model->config;
    const mr_query_rule *rule = &c->query;
    const int64_t n = c->heads * c->head_dim;
    if (rule->beta == 0 || (rule->unturned && c->turn[layer] >= 0)) return;
    for (int64_t t = 0; t < span->count; t++) {
        const double pieces = floor((double)(span->position + t + rule->offset) / rule->length);
        const float scale = (float)(1 + rule->beta * log1p(pieces));
        for (int64_t i = 0; i < n; i++) q[t * n + i] *= scale;
    }
    mr_round(run, q, span->count * n);
}

/* ---- caches ---- */

/* The cache of one head: `wide` numbers for each position. */
static unsigned char *cached(const mr_run *run, unsigned char *of, int64_t layer, int64_t head, int64_t wide)
{
    const mr_config *c = &run->model->config;
    return of + (size_t)((layer * c->kv_heads + head) * run->capacity * wide) * mr_cache_bytes(run);
}

static void to_fp8(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = trn_decode(TRN_F8_E4M3, trn_encode(TRN_F8_E4M3, x[i], TRN_NEAREST_EVEN, TRN_SATURATE, 0));
}

/* Rounded to FP8, a number is still one of BF16 and F16. Of latents it is they and the dimensions that turn which a
 * cache keeps: the latents were rounded before, here are the keys' dimensions. */
static void round_cached(const mr_run *run, heads *a, const mr_span *s)
{
    const mr_config *c = &run->model->config;
    const int64_t n = s->count * c->kv_heads;
    float *k = a->k + s->row * c->kv_heads * c->head_dim;
    if (!run->setting.kv_fp8) return;
    if (!c->kv_rank) {
        to_fp8(k, n * c->head_dim);
        to_fp8(a->v + s->row * c->kv_heads * c->value_dim, n * c->value_dim);
    } else
        for (int64_t i = 0; i < n; i++) to_fp8(k + i * c->head_dim + c->rope_first, c->rope_dim);
}

/* x [count, kv_heads, wide] to the positions of the span. */
static void store(mr_run *run, unsigned char *of, float *x, const mr_span *span, int64_t layer, int64_t wide)
{
    const int64_t heads = run->model->config.kv_heads;
    const trn_format format = run->setting.reference ? TRN_F32 : run->setting.act;
    trn_error error;
    for (int64_t h = 0; h < heads; h++) {
        unsigned char *to = cached(run, of, layer, h, wide) + (size_t)(span->position * wide) * mr_cache_bytes(run);
        trn_tensor from = trn_tensor_2d(TRN_F32, x + h * wide, span->count, wide);
        from.stride[0] = heads * wide;
        from.stride[1] = 1;
        trn_convert_args a = { .dst = trn_tensor_2d(format, to, span->count, wide), .src = from, .error = &error };
        mr_must(trn_convert(&a), &error);
    }
}

/* ---- scores, softmax, values ---- */

typedef struct attending {
    mr_run *run;
    const mr_span *span;
    int64_t layer, group; /* heads of queries for one of keys */
    const float *q, *sinks;
    float *out; /* [count, heads, value_dim] */
} attending;

/* The first key that the token at a position sees. */
int64_t mr_first_seen(const mr_config *c, int64_t layer, int64_t at)
{
    const int64_t window = c->window[layer];
    if (!window) return 0;
    if (c->chunked) return at / window * window;
    return at + 1 > window ? at + 1 - window : 0;
}

/* What token `at` does not see among keys [first, first + keys). */
static void mask(const attending *a, float *score, int64_t at, int64_t first, int64_t keys)
{
    const int64_t seen = mr_first_seen(&a->run->model->config, a->layer, at);
    for (int64_t j = 0; j < keys; j++)
        if (first + j > at || first + j < seen) score[j] = -INFINITY;
}

/* The first key of a block that begins with that token: the first that it sees, or the first of the tile that this lies
 * in: then no key changes its place in tiles and chains with the token that a block begins with. */
static int64_t first_key(const mr_run *run, int64_t layer, int64_t at)
{
    const int64_t first = mr_first_seen(&run->model->config, layer, at);
    return run->setting.keys_aligned ? first - first % mr_key_tile(&run->setting) : first;
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
    const int64_t n = c->head_dim, v = c->value_dim, rows = a->group * count, end = a->span->position + t + count;
    const int64_t first = first_key(run, a->layer, end - count), keys = end - first;
    const size_t skip = (size_t)first * mr_cache_bytes(run);
    const mr_cache *cache = &run->cache[a->span->cache];
    float *q = mr_floats(rows * n), *out = mr_floats(rows * v), *score = mr_floats(rows * keys);
    float *sink = a->sinks ? mr_floats(rows) : NULL;
    const double scale = c->attention_scale / (c->scale_by_layer ? (double)(a->layer + 1) : 1);
    for (int64_t g = 0; g < a->group; g++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t h = head * a->group + g;
            memcpy(q + (g * count + i) * n, a->q + ((t + i) * c->heads + h) * n, sizeof *q * (size_t)n);
            if (sink) sink[g * count + i] = a->sinks[h];
        }
    run->ops->scores(run, q, cached(run, cache->k, a->layer, head, n) + skip * (size_t)n, rows, keys, n, score);
    for (int64_t i = 0; i < rows; i++) mask(a, score + i * keys, a->span->position + t + i % count, first, keys);
    see_attended(a, MR_OP_SCORES, score, head, t, count, keys, first);
    run->ops->softmax(run, score, sink, scale, rows, keys);
    see_attended(a, MR_OP_SOFTMAX, score, head, t, count, keys, first);
    run->ops->mix(run, score, cached(run, cache->v, a->layer, head, v) + skip * (size_t)v, rows, keys, v, out);
    see_attended(a, MR_OP_MIX, out, head, t, count, v, first);
    for (int64_t g = 0; g < a->group; g++)
        for (int64_t i = 0; i < count; i++)
            memcpy(a->out + ((t + i) * c->heads + head * a->group + g) * v, out + (g * count + i) * v,
                   sizeof *out * (size_t)v);
    free(q);
    free(out);
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

/* ---- queries, keys and values ---- */

/* In place; rows of the weight's length. */
static void norm_heads(mr_run *run, const mr_weight *w, float *x, int64_t n)
{
    const mr_weight none = { .tensor = NULL };
    if (!w->tensor) return;
    float *y = mr_floats(n);
    mr_norm(run, w, &none, run->model->config.eps, x, n / w->rows, y);
    memcpy(x, y, sizeof *x * (size_t)n);
    free(y);
}

/* Each head's queries, and the arguments of its gate. */
static void project_gated(mr_run *run, mr_layer *l, const float *x, int64_t rows, heads *a)
{
    const int64_t heads = rows * run->model->config.heads, n = run->model->config.head_dim;
    float *both = mr_floats(2 * heads * n);
    mr_linear(run, &l->w[MR_Q], &l->bias[MR_Q], x, rows, both);
    a->gate = mr_floats(heads * n);
    for (int64_t i = 0; i < heads; i++) {
        memcpy(a->q + i * n, both + 2 * i * n, sizeof *both * (size_t)n);
        memcpy(a->gate + i * n, both + (2 * i + 1) * n, sizeof *both * (size_t)n);
    }
    free(both);
}

static void project(mr_run *run, mr_layer *l, const float *x, int64_t rows, heads *a)
{
    const mr_config *c = &run->model->config;
    if (c->family->flags & MR_GATED_HEADS)
        project_gated(run, l, x, rows, a);
    else
        mr_linear(run, &l->w[MR_Q], &l->bias[MR_Q], x, rows, a->q);
    mr_linear(run, &l->w[MR_K], &l->bias[MR_K], x, rows, a->k);
    mr_linear(run, &l->w[MR_V], &l->bias[MR_V], x, rows, a->v);
    norm_heads(run, &l->w[MR_Q_NORM], a->q, rows * c->heads * c->head_dim);
    norm_heads(run, &l->w[MR_K_NORM], a->k, rows * c->kv_heads * c->head_dim);
}

/* The class's own small number, whatever the configuration says. */
static const double latent_eps = 1e-6;

static void project_queries(mr_run *run, mr_layer *l, const float *x, int64_t rows, float *q)
{
    const mr_weight none = { .tensor = NULL };
    const int64_t rank = run->model->config.q_rank;
    float *down = mr_floats(rows * rank), *latent = mr_floats(rows * rank);
    if (rank) {
        mr_linear(run, &l->w[MR_Q_DOWN], &l->bias[MR_Q_DOWN], x, rows, down);
        mr_norm(run, &l->w[MR_Q_DOWN_NORM], &none, latent_eps, down, rows, latent);
    }
    mr_linear(run, &l->w[MR_Q], &none, rank ? latent : x, rows, q);
    free(down);
    free(latent);
}

/* One latent a token for the keys and values of all heads, and dimensions that turn, which all keys share. */
static void project_latent(mr_run *run, mr_layer *l, const float *x, int64_t rows, heads *a)
{
    const mr_config *c = &run->model->config;
    const mr_weight none = { .tensor = NULL };
    const int64_t rank = c->kv_rank, turned = c->rope_dim, plain = c->rope_first, each = plain + c->value_dim;
    float *down = mr_floats(rows * (rank + turned)), *latent = mr_floats(rows * rank), *up = mr_floats(rows * rank);
    project_queries(run, l, x, rows, a->q);
    mr_linear(run, &l->w[MR_KV_DOWN], &l->bias[MR_KV_DOWN], x, rows, down);
    for (int64_t i = 0; i < rows; i++) memcpy(up + i * rank, down + i * (rank + turned), sizeof *up * (size_t)rank);
    mr_norm(run, &l->w[MR_KV_DOWN_NORM], &none, latent_eps, up, rows, latent);
    if (run->setting.kv_fp8) to_fp8(latent, rows * rank);
    free(up);
    up = mr_floats(rows * c->heads * each);
    mr_linear(run, &l->w[MR_KV_UP], &none, latent, rows, up);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < c->heads; h++) {
            const float *from = up + (i * c->heads + h) * each;
            float *k = a->k + (i * c->heads + h) * c->head_dim;
            memcpy(k, from, sizeof *k * (size_t)plain);
            memcpy(k + plain, down + i * (rank + turned) + rank, sizeof *k * (size_t)turned);
            memcpy(a->v + (i * c->heads + h) * c->value_dim, from + plain, sizeof *k * (size_t)c->value_dim);
        }
    free(down);
    free(latent);
    free(up);
}

/* Llama 4: heads that have turned get the length sqrt(head_dim), without a weight. */
static void even_out(mr_run *run, int64_t layer, float *x, int64_t rows)
{
    const mr_config *c = &run->model->config;
    const int64_t n = c->head_dim;
    if (c->qk_norm != MR_QK_LENGTH || c->turn[layer] < 0) return;
    float *one = mr_floats(n), *y = mr_floats(rows * n);
    for (int64_t i = 0; i < n; i++) one[i] = 1;
    run->ops->rms_norm(run, x, one, c->eps, rows, n, y);
    memcpy(x, y, sizeof *x * (size_t)(rows * n));
    free(one);
    free(y);
}

/* Of a span's rows: x is all of the batch's. */
static void see_span(mr_run *run, mr_op op, const mr_weight *of, const mr_span *s, float *x, int64_t columns)
{
    mr_see(run, (mr_made){ .op = op, .of = of, .x = x, .rows = s->count, .columns = columns, .row = s->row });
}

static void attend_span(mr_run *run, int64_t layer, const mr_span *s, const float *sinks, heads *a)
{
    const mr_config *c = &run->model->config;
    const mr_weight *w = run->model->layer[layer].w;
    float *q = a->q + s->row * c->heads * c->head_dim, *k = a->k + s->row * c->kv_heads * c->head_dim;
    float *v = a->v + s->row * c->kv_heads * c->value_dim, *out = a->out + s->row * c->heads * c->value_dim;
    const attending work = { run, s, layer, c->heads / c->kv_heads, q, sinks, out };
    rotate(run, layer, q, s, c->heads);
    rotate(run, layer, k, s, c->kv_heads);
    even_out(run, layer, q, s->count * c->heads);
    even_out(run, layer, k, s->count * c->kv_heads);
    grow(run, layer, q, s);
    see_span(run, MR_OP_TURN, &w[MR_Q], s, q, c->heads * c->head_dim);
    see_span(run, MR_OP_TURN, &w[MR_K], s, k, c->kv_heads * c->head_dim);
    round_cached(run, a, s);
    see_span(run, MR_OP_STORE, &w[MR_K], s, k, c->kv_heads * c->head_dim);
    see_span(run, MR_OP_STORE, &w[MR_V], s, v, c->kv_heads * c->value_dim);
    store(run, run->cache[s->cache].k, k, s, layer, c->head_dim);
    store(run, run->cache[s->cache].v, v, s, layer, c->value_dim);
    attend(&work);
}

void mr_attention(mr_run *run, int64_t layer, const float *x, const mr_span *span, int spans, int64_t rows, float *y)
{
    const mr_config *c = &run->model->config;
    mr_layer *l = &run->model->layer[layer];
    const int64_t mixed = rows * c->heads * c->value_dim;
    heads a = { mr_floats(rows * c->heads * c->head_dim), mr_floats(rows * c->kv_heads * c->head_dim),
                mr_floats(rows * c->kv_heads * c->value_dim), mr_floats(mixed), NULL };
    float *sinks = l->w[MR_SINKS_OF_HEADS].tensor ? mr_floats(c->heads) : NULL;
    if (sinks) mr_vector(&l->w[MR_SINKS_OF_HEADS], run, sinks);
    (c->kv_rank ? project_latent : project)(run, l, x, rows, &a);
    for (int i = 0; i < spans; i++) attend_span(run, layer, &span[i], sinks, &a);
    if (a.gate) {
        mr_apply(run, TRN_ACT_SIGMOID, a.gate, mixed);
        mr_multiply(run, a.out, a.gate, mixed);
        mr_see(run,
               (mr_made){ .op = MR_OP_FUNCTION, .of = &l->w[MR_O], .x = a.out, .rows = rows, .columns = mixed / rows });
    }
    mr_linear_split(run, &l->w[MR_O], &l->bias[MR_O], a.out, rows, y);
    free(a.q);
    free(a.k);
    free(a.v);
    free(a.out);
    free(a.gate);
    free(sinks);
}
