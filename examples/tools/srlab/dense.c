/* dense.c - logistic regression and a small MLP, linear layers with biases and GELU between them, and their examples.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- examples ---- */

static double uniform(const sr_settings *s, uint64_t stream, uint64_t index)
{
    return 0x1p-32 * trn_random_u32(s->seed, SR_STREAM(SR_DATA) | stream, index);
}

/* Nearly normal, and the same on every host: the sum of twelve uniform numbers, less six. */
static double normal(const sr_settings *s, uint64_t stream, uint64_t index)
{
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++) sum += uniform(s, stream, 12 * index + i);
    return sum;
}

static sr_examples *start(const sr_settings *s, int features, int classes)
{
    sr_examples *e = app_memory(1, sizeof *e);
    e->features = features;
    e->classes = classes;
    e->train = s->examples;
    e->valid = s->examples / 4;
    e->x = app_memory((size_t)(e->train + e->valid) * (size_t)features, sizeof *e->x);
    e->label = app_memory((size_t)(e->train + e->valid), sizeof *e->label);
    return e;
}

sr_examples *sr_make_noisy_line(const sr_settings *s)
{
    sr_examples *e = start(s, s->features, 2);
    const double scale = 3 / sqrt((double)s->features);
    for (int64_t i = 0; i < e->train + e->valid; i++) {
        double along = 0;
        for (int j = 0; j < s->features; j++) {
            const double x = normal(s, 0, (uint64_t)(i * s->features + j));
            e->x[i * s->features + j] = (float)x;
            along += x * scale * normal(s, 1, (uint64_t)j);
        }
        e->label[i] = uniform(s, 2, (uint64_t)i) < 1 / (1 + exp(-along));
    }
    return e;
}

sr_examples *sr_make_spirals(const sr_settings *s)
{
    sr_examples *e = start(s, 2, s->classes);
    for (int64_t i = 0; i < e->train + e->valid; i++) {
        const int arm = (int)(i % s->classes);
        const double way = uniform(s, 0, (uint64_t)i), radius = 0.1 + 1.9 * way;
        const double angle = 6.283185307179586 * (way + (double)arm / s->classes) + 3 * way;
        e->x[2 * i] = (float)(radius * cos(angle) + 0.08 * normal(s, 1, (uint64_t)i));
        e->x[2 * i + 1] = (float)(radius * sin(angle) + 0.08 * normal(s, 2, (uint64_t)i));
        e->label[i] = arm;
    }
    return e;
}

void sr_free_examples(const void *examples)
{
    sr_examples *e = (sr_examples *)(uintptr_t)examples;
    free(e->x);
    free(e->label);
    free(e);
}

/* ---- models ---- */

enum { LAYERS = 9 };

typedef struct dense_shard {
    sr_shard s;
    sr_operand kept[LAYERS];
    float *x, *hidden[LAYERS]; /* hidden: what a layer gives, before GELU */
    float *active, *slope, *scratch;
    int *label;
} dense_shard;

struct sr_model {
    const sr_examples *data;
    sr_weights weights;
    int layers, rows; /* rows of one shard */
    int width[LAYERS + 1], matrix[LAYERS], bias[LAYERS];
    dense_shard shard[SR_SHARDS];
};

static const void *line(const sr_settings *s, char *why) { return (void)why, sr_make_noisy_line(s); }
static const void *spirals(const sr_settings *s, char *why) { return (void)why, sr_make_spirals(s); }
static sr_weights *weights(sr_model *m) { return &m->weights; }
static sr_workspace *workspace(sr_model *m, int shard) { return &m->shard[shard].s.workspace; }

/* ---- making ---- */

static void make_shard(sr_model *m, dense_shard *h, int index)
{
    int widest = 0;
    for (int i = 0; i <= m->layers; i++) widest = m->width[i] > widest ? m->width[i] : widest;
    const size_t most = (size_t)m->rows * (size_t)widest;
    h->s.weights = &m->weights;
    h->s.index = index;
    for (int i = 0; i < m->layers; i++) h->hidden[i] = app_memory(most, sizeof(float));
    h->x = app_memory(most, sizeof(float)), h->active = app_memory(most, sizeof(float));
    h->slope = app_memory(most, sizeof(float)), h->scratch = app_memory(most, sizeof(float));
    h->label = app_memory((size_t)m->rows, sizeof *h->label);
}

static void make_weights(sr_model *m, const sr_settings *s, const sr_arm *arm, uint64_t seed)
{
    sr_weights_start(&m->weights, arm, s->products, seed, 2 * m->layers);
    for (int i = 0; i < m->layers; i++) {
        m->matrix[i] = sr_weights_add(&m->weights, "weight", i, SR_LINEAR, m->width[i], m->width[i + 1]);
        m->bias[i] = sr_weights_add(&m->weights, "bias", i, SR_VECTOR, 1, m->width[i + 1]);
    }
    sr_weights_finish(&m->weights);
    for (int i = 0; i < m->layers; i++) {
        sr_weights_draw(&m->weights, m->matrix[i], sqrt(3.0 / m->width[i]));
        sr_weights_draw(&m->weights, m->bias[i], -1);
    }
}

static sr_model *make(const sr_settings *s, const sr_arm *arm, uint64_t seed, const void *data)
{
    sr_model *m = app_memory(1, sizeof *m);
    m->data = data;
    m->layers = s->depth + 1;
    m->rows = s->batch / SR_SHARDS;
    for (int i = 1; i < m->layers; i++) m->width[i] = s->hidden;
    m->width[0] = m->data->features;
    m->width[m->layers] = m->data->classes;
    make_weights(m, s, arm, seed);
    for (int i = 0; i < SR_SHARDS; i++) make_shard(m, &m->shard[i], i);
    return m;
}

static void free_shard(dense_shard *h)
{
    void *const array[] = { h->x, h->active, h->slope, h->scratch, h->label };
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) free(array[i]);
    for (int i = 0; i < LAYERS; i++) free(h->hidden[i]), sr_operand_free(&h->kept[i]);
    sr_operand_free(&h->s.slope);
    sr_workspace_free(&h->s.workspace);
}

static void free_model(sr_model *m)
{
    for (int i = 0; i < SR_SHARDS; i++) free_shard(&m->shard[i]);
    sr_weights_free(&m->weights);
    free(m);
}

/* ---- one shard ---- */

static void take_example(sr_model *m, dense_shard *h, int row, int64_t index)
{
    const size_t features = (size_t)m->data->features;
    memcpy(h->x + (size_t)row * features, m->data->x + (size_t)index * features, features * sizeof *h->x);
    h->label[row] = m->data->label[index];
}

/* Returns the logits. */
static float *forward(sr_model *m, dense_shard *h, int rows)
{
    const float *x = h->x;
    for (int i = 0; i < m->layers; i++) {
        sr_linear(&h->s, m->matrix[i], &h->kept[i], x, rows, h->hidden[i]);
        sr_add_bias(&h->s, m->bias[i], h->hidden[i], rows);
        if (i + 1 < m->layers) sr_gelu(h->hidden[i], (int64_t)rows * m->width[i + 1], h->active);
        x = h->active;
    }
    return h->hidden[m->layers - 1];
}

static void backward(sr_model *m, dense_shard *h, int rows)
{
    float *dy = h->hidden[m->layers - 1];
    for (int i = m->layers - 1; i >= 0; i--) {
        sr_add_bias_back(&h->s, m->bias[i], dy, rows);
        sr_linear_back(&h->s, m->matrix[i], &h->kept[i], dy, rows, i ? h->slope : NULL);
        if (i) sr_gelu_back(h->hidden[i - 1], (int64_t)rows * m->width[i], h->slope, h->scratch, h->slope);
        dy = h->slope;
    }
}

static sr_score step(sr_model *m, int shard, int64_t number)
{
    dense_shard *h = &m->shard[shard];
    for (int i = 0; i < m->rows; i++) {
        const uint64_t index = ((uint64_t)number * SR_SHARDS + (uint64_t)shard) * (uint64_t)m->rows + (uint64_t)i;
        const uint64_t word = trn_random_u32(m->weights.seed, SR_STREAM(SR_BATCH), index);
        take_example(m, h, i, (int64_t)(word * (uint64_t)m->data->train >> 32));
    }
    float *logits = forward(m, h, m->rows);
    const sr_score score = sr_loss(logits, h->label, m->rows, m->data->classes, (int64_t)SR_SHARDS * m->rows, true);
    backward(m, h, m->rows);
    return score;
}

static int groups(const sr_model *m) { return (int)((m->data->valid + m->rows - 1) / m->rows); }

static sr_score validate(sr_model *m, int shard, int group)
{
    dense_shard *h = &m->shard[shard];
    const int64_t first = (int64_t)group * m->rows, left = m->data->valid - first;
    const int rows = left < m->rows ? (int)left : m->rows;
    for (int i = 0; i < rows; i++) take_example(m, h, i, m->data->train + first + i);
    return sr_loss(forward(m, h, rows), h->label, rows, m->data->classes, rows, false);
}

const sr_kind sr_logistic = { "logistic",
                              "Logistic regression",
                              "nats per example",
                              line,
                              sr_free_examples,
                              make,
                              free_model,
                              weights,
                              workspace,
                              step,
                              groups,
                              validate,
                              NULL,
                              NULL };
const sr_kind sr_mlp = { "mlp",
                         "A small MLP on spirals",
                         "nats per example",
                         spirals,
                         sr_free_examples,
                         make,
                         free_model,
                         weights,
                         workspace,
                         step,
                         groups,
                         validate,
                         NULL,
                         NULL };
