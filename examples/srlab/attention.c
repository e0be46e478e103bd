/* attention.c - causal attention of one shard, forward and backward; all its products are the Tensor engine's.
 * SPDX-License-Identifier: MIT
 *
 * Heads are views into qkv, so nothing is copied: one cast of qkv serves all of them.
 */
#include "transformer.h"

#include <math.h>
#include <string.h>

typedef struct head {
    int64_t row, square;        /* its first token; where its [T, T] begins */
    int64_t q, k, v, width, at; /* columns of qkv; at: its columns of mixed */
} head;

static head head_of(const tf_shape *shape, int sequence, int index)
{
    const int64_t width = shape->width / shape->heads, t = shape->context;
    const head h = { sequence * t, ((int64_t)sequence * shape->heads + index) * t * t,
                     index * width, shape->width + index * width, 2 * shape->width + index * width, width,
                     index * width };
    return h;
}

static float score_scale(const tf_shape *shape) { return 1 / sqrtf((float)(shape->width / shape->heads)); }

static void mask(float *score, int64_t t)
{
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = i + 1; j < t; j++) score[i * t + j] = -INFINITY;
}

/* share = softmax(q k^T / sqrt(width)) below the diagonal */
static void score_head(tf_shard *h, tf_kept *k, const tf_shape *shape, const head *a)
{
    const int64_t t = shape->context;
    float *share = k->share + a->square;
    const sr_operand q = sr_part(&k->qkv, a->row, t, a->q, a->width), key = sr_part(&k->qkv, a->row, t, a->k, a->width);
    const sr_operand kt = sr_transposed(&key);
    sr_product(&h->s.bench, sr_matrix(share, t, t, t), &q, &kt);
    mask(share, t);
    sr_softmax(share, t, t, score_scale(shape), h->sums);
}

void tf_attention(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences, const float *qkv,
                  float *mixed)
{
    const int64_t t = shape->context, rows = sequences * t;
    const int heads = sequences * shape->heads;
    sr_cast(&h->s.bench, &k->qkv, qkv, rows, 3 * shape->width, rule);
    for (int i = 0; i < heads; i++) {
        const head a = head_of(shape, i / shape->heads, i % shape->heads);
        score_head(h, k, shape, &a);
    }
    sr_cast(&h->s.bench, &k->share_operand, k->share, heads * t, t, rule);
    for (int i = 0; i < heads; i++) {
        const head a = head_of(shape, i / shape->heads, i % shape->heads);
        const sr_operand share = sr_part(&k->share_operand, i * t, t, 0, t);
        const sr_operand v = sr_part(&k->qkv, a.row, t, a.v, a.width);
        sr_product(&h->s.bench, sr_matrix(mixed + a.row * shape->width + a.at, t, a.width, shape->width), &share, &v);
    }
}

/* ---- backward ---- */

/* dshare -> dscore = share (dshare - sum(dshare share)) / sqrt(width), in place */
static void softmax_back(const float *share, float *d, int64_t t, float scale)
{
    for (int64_t i = 0; i < t; i++, share += t, d += t) {
        float sum = 0;
        for (int64_t j = 0; j <= i; j++) sum += d[j] * share[j];
        for (int64_t j = 0; j <= i; j++) d[j] = share[j] * (d[j] - sum) * scale;
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
    const sr_operand share = sr_part(&k->share_operand, index * t, t, 0, t);
    const sr_operand vt = sr_transposed(&v), share_t = sr_transposed(&share);
    sr_product(&h->s.bench, sr_matrix(to + a.v, t, a.width, stride), &share_t, &dmixed);
    sr_product(&h->s.bench, sr_matrix(h->square, t, t, t), &dmixed, &vt);
    softmax_back(k->share + a.square, h->square, t, score_scale(shape));
    sr_cast(&h->s.bench, &h->slope_square, h->square, t, t, rule);
    const sr_operand slope_t = sr_transposed(&h->slope_square);
    sr_product(&h->s.bench, sr_matrix(to + a.q, t, a.width, stride), &h->slope_square, &key);
    sr_product(&h->s.bench, sr_matrix(to + a.k, t, a.width, stride), &slope_t, &q);
}

void tf_attention_back(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences,
                       const float *dmixed, float *dqkv)
{
    sr_cast(&h->s.bench, &h->slope, dmixed, sequences * (int64_t)shape->context, shape->width, rule);
    for (int i = 0; i < sequences * shape->heads; i++) head_back(h, k, shape, rule, i, dqkv);
}
