/* transformer.c - a decoder: embeddings, blocks of attention and MLP before which stand norms, a head.
 * SPDX-License-Identifier: MIT
 */
#include "transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- weights ---- */

static void add_tensors(sr_model *m)
{
    const tf_shape *p = &m->shape;
    sr_weights *w = &m->weights;
    m->table = sr_weights_add(w, "embedding", -1, SR_TABLE, p->symbols, p->width);
    m->place = sr_weights_add(w, "position", -1, SR_TABLE, p->context, p->width);
    for (int i = 0; i < p->layers; i++) {
        tf_block *b = &m->block[i];
        b->norm1 = sr_weights_add(w, "norm1", i, SR_VECTOR, 1, p->width);
        b->qkv = sr_weights_add(w, "qkv", i, SR_LINEAR, p->width, 3 * p->width);
        b->out = sr_weights_add(w, "out", i, SR_LINEAR, p->width, p->width);
        b->norm2 = sr_weights_add(w, "norm2", i, SR_VECTOR, 1, p->width);
        b->up = sr_weights_add(w, "up", i, SR_LINEAR, p->width, 4 * p->width);
        b->down = sr_weights_add(w, "down", i, SR_LINEAR, 4 * p->width, p->width);
    }
    m->norm = sr_weights_add(w, "norm", -1, SR_VECTOR, 1, p->width);
    m->head = sr_weights_add(w, "head", -1, SR_MATRIX, p->width, p->symbols);
}

/* Uniform with the usual deviations: 0.02 for tables, 1 / sqrt(rows) for products, less where the residual stream is
 * added to. */
static void draw_tensors(sr_model *m)
{
    const double root3 = sqrt(3.0), residual = 1 / sqrt(2.0 * m->shape.layers);
    for (int i = 0; i < m->weights.tensors; i++) {
        const sr_tensor *t = &m->weights.tensor[i];
        const double fan = root3 / sqrt((double)t->rows);
        sr_weights_draw(&m->weights, i, t->use == SR_VECTOR ? 0 : t->use == SR_TABLE ? 0.02 * root3 : fan);
    }
    for (int i = 0; i < m->shape.layers; i++) {
        const double width = m->shape.width;
        sr_weights_draw(&m->weights, m->block[i].out, residual * root3 / sqrt(width));
        sr_weights_draw(&m->weights, m->block[i].down, residual * root3 / sqrt(4 * width));
    }
}

/* ---- memory ---- */

static float *floats(int64_t count) { return app_memory((size_t)count, sizeof(float)); }

static void make_shard(sr_model *m, tf_shard *h, int index)
{
    const tf_shape *p = &m->shape;
    const int64_t n = p->tokens, t = p->context;
    h->s.weights = &m->weights;
    h->s.index = index;
    h->kept = app_memory((size_t)p->layers, sizeof *h->kept);
    for (int i = 0; i < p->layers; i++) {
        tf_kept *k = &h->kept[i];
        k->x1 = floats(n * p->width), k->x2 = floats(n * p->width);
        k->inverse1 = floats(n), k->inverse2 = floats(n);
        k->hidden = floats(n * 4 * p->width);
        k->prob = floats((int64_t)p->sequences * p->heads * t * t);
    }
    h->x = floats(n * p->width), h->last = floats(n * p->width), h->inverse = floats(n);
    h->wide = floats(n * 4 * p->width), h->wide2 = floats(n * 4 * p->width);
    h->narrow = floats(n * p->width), h->narrow2 = floats(n * p->width);
    h->logits = floats(n * p->symbols), h->square = floats(t * t), h->sums = floats(2 * t);
    h->symbol = app_memory((size_t)n, sizeof(int)), h->target = app_memory((size_t)n, sizeof(int));
}

static void free_kept(tf_kept *k)
{
    float *const array[] = { k->x1, k->x2, k->inverse1, k->inverse2, k->hidden, k->prob };
    sr_operand *const operand[] = { &k->normed1, &k->qkv, &k->prob_operand, &k->mixed, &k->normed2, &k->activated };
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) free(array[i]);
    for (size_t i = 0; i < sizeof operand / sizeof operand[0]; i++) sr_operand_free(operand[i]);
}

static void free_shard(tf_shard *h, int layers)
{
    void *const array[] = { h->x,       h->last,   h->inverse, h->wide, h->wide2,  h->narrow,
                            h->narrow2, h->logits, h->square,  h->sums, h->symbol, h->target };
    sr_operand *const operand[] = { &h->normed, &h->slope, &h->slope_square, &h->s.slope };
    for (int i = 0; i < layers; i++) free_kept(&h->kept[i]);
    free(h->kept);
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) free(array[i]);
    for (size_t i = 0; i < sizeof operand / sizeof operand[0]; i++) sr_operand_free(operand[i]);
    sr_workspace_free(&h->s.workspace);
}

sr_model *tf_make(const sr_settings *s, const sr_arm *arm, uint64_t seed, const sr_text *text)
{
    sr_model *m = app_memory(1, sizeof *m);
    const int sequences = s->batch / SR_SHARDS;
    const tf_shape shape = {
        s->width, s->layers, s->heads, s->context, text->symbols, sequences, (int64_t)sequences * s->context
    };
    m->text = text;
    m->shape = shape;
    m->block = app_memory((size_t)s->layers, sizeof *m->block);
    sr_weights_start(&m->weights, arm, s->products, seed, 4 + 6 * s->layers);
    add_tensors(m);
    sr_weights_finish(&m->weights);
    draw_tensors(m);
    for (int i = 0; i < SR_SHARDS; i++) make_shard(m, &m->shard[i], i);
    return m;
}

void tf_free(sr_model *m)
{
    for (int i = 0; i < SR_SHARDS; i++) free_shard(&m->shard[i], m->shape.layers);
    sr_weights_free(&m->weights);
    free(m->block);
    free(m);
}

/* ---- embeddings ---- */

static void embed(const sr_model *m, tf_shard *h, int64_t tokens)
{
    const int64_t d = m->shape.width;
    const float *table = sr_value(&h->s, m->table), *place = sr_value(&h->s, m->place);
    for (int64_t i = 0; i < tokens; i++) {
        const float *symbol = table + h->symbol[i] * d, *here = place + i % m->shape.context * d;
        for (int64_t j = 0; j < d; j++) h->x[i * d + j] = symbol[j] + here[j];
    }
}

static void embed_back(const sr_model *m, tf_shard *h, int64_t tokens, const float *dx)
{
    const int64_t d = m->shape.width;
    float *table = sr_gradient(&h->s, m->table), *place = sr_gradient(&h->s, m->place);
    memset(table, 0, (size_t)(m->shape.symbols * d) * sizeof *table);
    memset(place, 0, (size_t)(m->shape.context * d) * sizeof *place);
    for (int64_t i = 0; i < tokens; i++) {
        float *symbol = table + h->symbol[i] * d, *here = place + i % m->shape.context * d;
        for (int64_t j = 0; j < d; j++) {
            symbol[j] += dx[i * d + j];
            here[j] += dx[i * d + j];
        }
    }
}

/* ---- forward ---- */

static void add_to(float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] += y[i];
}

static void block_forward(sr_model *m, tf_shard *h, const tf_block *b, tf_kept *k, int sequences)
{
    const int64_t n = (int64_t)sequences * m->shape.context, d = m->shape.width;
    const size_t bytes = (size_t)(n * d) * sizeof *h->x;
    memcpy(k->x1, h->x, bytes);
    sr_norm(&h->s, b->norm1, k->x1, n, k->inverse1, h->narrow);
    sr_linear(&h->s, b->qkv, &k->normed1, h->narrow, n, h->wide);
    tf_attention(h, k, &m->shape, sr_forward_rule(&m->weights, SR_MATRIX), sequences, h->wide, h->narrow);
    sr_linear(&h->s, b->out, &k->mixed, h->narrow, n, h->narrow2);
    add_to(h->x, h->narrow2, n * d);
    memcpy(k->x2, h->x, bytes);
    sr_norm(&h->s, b->norm2, k->x2, n, k->inverse2, h->narrow);
    sr_linear(&h->s, b->up, &k->normed2, h->narrow, n, k->hidden);
    sr_gelu(k->hidden, n * 4 * d, h->wide);
    sr_linear(&h->s, b->down, &k->activated, h->wide, n, h->narrow);
    add_to(h->x, h->narrow, n * d);
}

void tf_forward(sr_model *m, tf_shard *h, int sequences)
{
    const int64_t n = (int64_t)sequences * m->shape.context;
    embed(m, h, n);
    for (int i = 0; i < m->shape.layers; i++) block_forward(m, h, &m->block[i], &h->kept[i], sequences);
    memcpy(h->last, h->x, (size_t)(n * m->shape.width) * sizeof *h->x);
    sr_norm(&h->s, m->norm, h->last, n, h->inverse, h->narrow);
    sr_linear(&h->s, m->head, &h->normed, h->narrow, n, h->logits);
}

/* ---- backward: h->x becomes the gradient of the residual stream ---- */

static void block_backward(sr_model *m, tf_shard *h, const tf_block *b, tf_kept *k, int sequences)
{
    const int64_t n = (int64_t)sequences * m->shape.context, d = m->shape.width;
    sr_linear_back(&h->s, b->down, &k->activated, h->x, n, h->wide);
    sr_gelu_back(k->hidden, n * 4 * d, h->wide, h->wide2, h->wide);
    sr_linear_back(&h->s, b->up, &k->normed2, h->wide, n, h->narrow);
    sr_norm_back(&h->s, b->norm2, k->x2, k->inverse2, h->narrow, n, h->x, true);
    sr_linear_back(&h->s, b->out, &k->mixed, h->x, n, h->narrow);
    tf_attention_back(h, k, &m->shape, sr_backward_rule(&m->weights, SR_MATRIX), sequences, h->narrow, h->wide);
    sr_linear_back(&h->s, b->qkv, &k->normed1, h->wide, n, h->narrow);
    sr_norm_back(&h->s, b->norm1, k->x1, k->inverse1, h->narrow, n, h->x, true);
}

void tf_backward(sr_model *m, tf_shard *h, int sequences)
{
    const int64_t n = (int64_t)sequences * m->shape.context;
    sr_linear_back(&h->s, m->head, &h->normed, h->logits, n, h->narrow);
    sr_norm_back(&h->s, m->norm, h->last, h->inverse, h->narrow, n, h->x, false);
    for (int i = m->shape.layers; i-- > 0;) block_backward(m, h, &m->block[i], &h->kept[i], sequences);
    embed_back(m, h, n, h->x);
}

typedef struct head {
    int64_t row, square;        /* its first token; where its [T, T] begins */
    int64_t q, k, v, width, at; /* columns of qkv; at: its columns of mixed */
} head;

static head head_of(const tf_shape *shape, int sequence, int index)
{
    const int64_t width = shape->width / shape->heads, t = shape->context;
    const head h = { sequence * t,
                     ((int64_t)sequence * shape->heads + index) * t * t,
                     index * width,
                     shape->width + index * width,
                     2 * shape->width + index * width,
                     width,
                     index * width };
    return h;
}

static float score_scale(const tf_shape *shape) { return 1 / sqrtf((float)(shape->width / shape->heads)); }

static void mask(float *score, int64_t t)
{
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = i + 1; j < t; j++) score[i * t + j] = -INFINITY;
}

/* prob = softmax(q k^T / sqrt(width)) below the diagonal */
static void score_head(tf_shard *h, tf_kept *k, const tf_shape *shape, const head *a)
{
    const int64_t t = shape->context;
    float *prob = k->prob + a->square;
    const sr_operand q = sr_part(&k->qkv, a->row, t, a->q, a->width), key = sr_part(&k->qkv, a->row, t, a->k, a->width);
    const sr_operand kt = sr_transposed(&key);
    sr_product(&h->s.workspace, sr_matrix(prob, t, t, t), &q, &kt);
    mask(prob, t);
    sr_softmax(prob, t, t, score_scale(shape), h->sums);
}

void tf_attention(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences, const float *qkv,
                  float *mixed)
{
    const int64_t t = shape->context, rows = sequences * t;
    const int heads = sequences * shape->heads;
    sr_cast(&h->s.workspace, &k->qkv, qkv, rows, 3 * shape->width, rule);
    for (int i = 0; i < heads; i++) {
        const head a = head_of(shape, i / shape->heads, i % shape->heads);
        score_head(h, k, shape, &a);
    }
    sr_cast(&h->s.workspace, &k->prob_operand, k->prob, heads * t, t, rule);
    for (int i = 0; i < heads; i++) {
        const head a = head_of(shape, i / shape->heads, i % shape->heads);
        const sr_operand prob = sr_part(&k->prob_operand, i * t, t, 0, t);
        const sr_operand v = sr_part(&k->qkv, a.row, t, a.v, a.width);
        sr_product(&h->s.workspace, sr_matrix(mixed + a.row * shape->width + a.at, t, a.width, shape->width), &prob,
                   &v);
    }
}

/* ---- backward ---- */

/* dprob -> dscore = prob (dprob - sum(dprob prob)) / sqrt(width), in place */
static void softmax_back(const float *prob, float *d, int64_t t, float scale)
{
    for (int64_t i = 0; i < t; i++, prob += t, d += t) {
        float sum = 0;
        for (int64_t j = 0; j <= i; j++) sum += d[j] * prob[j];
        for (int64_t j = 0; j <= i; j++) d[j] = prob[j] * (d[j] - sum) * scale;
        memset(d + i + 1, 0, (size_t)(t - i - 1) * sizeof *d);
    }
}

static void head_back(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int index, float *dqkv)
{
    const head a = head_of(shape, index / shape->heads, index % shape->heads);
    const int64_t t = shape->context, stride = 3 * shape->width;
    float *to = dqkv + a.row * stride;
    const sr_operand dmixed = sr_part(&h->slope, a.row, t, a.at, a.width), v = sr_part(&k->qkv, a.row, t, a.v, a.width);
    const sr_operand q = sr_part(&k->qkv, a.row, t, a.q, a.width), key = sr_part(&k->qkv, a.row, t, a.k, a.width);
    const sr_operand prob = sr_part(&k->prob_operand, index * t, t, 0, t);
    const sr_operand vt = sr_transposed(&v), prob_t = sr_transposed(&prob);
    sr_product(&h->s.workspace, sr_matrix(to + a.v, t, a.width, stride), &prob_t, &dmixed);
    sr_product(&h->s.workspace, sr_matrix(h->square, t, t, t), &dmixed, &vt);
    softmax_back(k->prob + a.square, h->square, t, score_scale(shape));
    sr_cast(&h->s.workspace, &h->slope_square, h->square, t, t, rule);
    const sr_operand slope_t = sr_transposed(&h->slope_square);
    sr_product(&h->s.workspace, sr_matrix(to + a.q, t, a.width, stride), &h->slope_square, &key);
    sr_product(&h->s.workspace, sr_matrix(to + a.k, t, a.width, stride), &slope_t, &q);
}

void tf_attention_back(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences, const float *dmixed,
                       float *dqkv)
{
    sr_cast(&h->s.workspace, &h->slope, dmixed, sequences * (int64_t)shape->context, shape->width, rule);
    for (int i = 0; i < sequences * shape->heads; i++) head_back(h, k, shape, rule, i, dqkv);
}
