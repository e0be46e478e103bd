/* layers.c - linear, bias, norm, GELU, softmax and its loss: forward and backward on one shard.
 * SPDX-License-Identifier: MIT
 *
 * Products run with the Tensor engine's numerics, exp and GELU are the Scalar engine's tables; the rest is binary32,
 * each operation rounded once and sums ascending, as on the Vector engine.
 */
#include "srlab.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_scalar_engine.h>

float *sr_gradient(const sr_shard *s, int tensor)
{
    return s->weights->gradient[s->index] + s->weights->tensor[tensor].first;
}

const float *sr_value(const sr_shard *s, int tensor) { return s->weights->value + s->weights->tensor[tensor].first; }

/* ---- linear: y = x w ---- */

void sr_linear(sr_shard *s, int tensor, sr_operand *kept, const float *x, int64_t rows, float *y)
{
    const sr_tensor *t = &s->weights->tensor[tensor];
    sr_cast(&s->workspace, kept, x, rows, t->rows, sr_forward_rule(s->weights, t->use));
    sr_product(&s->workspace, sr_matrix(y, rows, t->columns, t->columns), kept, &t->operand);
}

/* dw = x^T dy, dx = dy w^T; dx may be NULL. */
void sr_linear_back(sr_shard *s, int tensor, const sr_operand *kept, const float *dy, int64_t rows, float *dx)
{
    const sr_tensor *t = &s->weights->tensor[tensor];
    sr_cast(&s->workspace, &s->slope, dy, rows, t->columns, sr_backward_rule(s->weights, t->use));
    const sr_operand xt = sr_transposed(kept), wt = sr_transposed(&t->operand);
    sr_product(&s->workspace, sr_matrix(sr_gradient(s, tensor), t->rows, t->columns, t->columns), &xt, &s->slope);
    if (dx) sr_product(&s->workspace, sr_matrix(dx, rows, t->rows, t->rows), &s->slope, &wt);
}

void sr_add_bias(sr_shard *s, int tensor, float *y, int64_t rows)
{
    const int64_t columns = s->weights->tensor[tensor].columns;
    const float *bias = sr_value(s, tensor);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) y[i * columns + j] += bias[j];
}

void sr_add_bias_back(sr_shard *s, int tensor, const float *dy, int64_t rows)
{
    const int64_t columns = s->weights->tensor[tensor].columns;
    float *gradient = sr_gradient(s, tensor);
    memset(gradient, 0, (size_t)columns * sizeof *gradient);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) gradient[j] += dy[i * columns + j];
}

/* ---- root-mean-square norm: y = gain x / rms(x) ---- */

void sr_norm(sr_shard *s, int tensor, const float *x, int64_t rows, float *inverse, float *y)
{
    const int64_t columns = s->weights->tensor[tensor].columns;
    const float *gain = sr_value(s, tensor);
    for (int64_t i = 0; i < rows; i++, x += columns, y += columns) {
        float square = 0;
        for (int64_t j = 0; j < columns; j++) square += x[j] * x[j];
        inverse[i] = 1 / sqrtf(square / (float)columns + 1e-6f);
        for (int64_t j = 0; j < columns; j++) y[j] = x[j] * inverse[i] * gain[j];
    }
}

/* dx = r (g dy) - x r^3 mean(g dy x); added to dx with `add`. */
void sr_norm_back(sr_shard *s, int tensor, const float *x, const float *inverse, const float *dy, int64_t rows,
                  float *dx, bool add)
{
    const int64_t columns = s->weights->tensor[tensor].columns;
    const float *gain = sr_value(s, tensor);
    float *gradient = sr_gradient(s, tensor);
    memset(gradient, 0, (size_t)columns * sizeof *gradient);
    for (int64_t i = 0; i < rows; i++, x += columns, dy += columns, dx += columns) {
        const float r = inverse[i];
        float along = 0;
        for (int64_t j = 0; j < columns; j++) along += gain[j] * dy[j] * x[j];
        const float pull = along / (float)columns * (r * r * r);
        for (int64_t j = 0; j < columns; j++) gradient[j] += dy[j] * (x[j] * r);
        if (add)
            for (int64_t j = 0; j < columns; j++) dx[j] += r * (gain[j] * dy[j]) - x[j] * pull;
        else
            for (int64_t j = 0; j < columns; j++) dx[j] = r * (gain[j] * dy[j]) - x[j] * pull;
    }
}

/* ---- the Scalar engine ---- */

static void activate(trn_act op, const float *x, int64_t rows, int64_t columns, float *y, float scale,
                     const float *bias, float *sums)
{
    trn_error error;
    trn_activation_args args;
    memset(&args, 0, sizeof args);
    args.src = sr_matrix((float *)(uintptr_t)x, rows, columns, columns);
    args.dst = sr_matrix(y, rows, columns, columns);
    args.op = op;
    args.scale = scale;
    args.bias_per_partition = bias;
    args.reduce = sums;
    args.unlimited = true;
    args.error = &error;
    sr_must(trn_activation(&args), &error);
}

void sr_gelu(const float *x, int64_t count, float *y) { activate(TRN_ACT_GELU, x, 1, count, y, 1, NULL, NULL); }

void sr_gelu_back(const float *x, int64_t count, const float *dy, float *scratch, float *dx)
{
    activate(TRN_ACT_GELU_DX, x, 1, count, scratch, 1, NULL, NULL);
    for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * scratch[i];
}

/* exp(scale x - scale max), then times 1 / sum; sums [2 rows] is scratch, and holds the sums afterwards. */
void sr_softmax(float *x, int64_t rows, int64_t columns, float scale, float *sums)
{
    float *bias = sums + rows;
    for (int64_t i = 0; i < rows; i++) {
        float most = x[i * columns];
        for (int64_t j = 1; j < columns; j++) most = x[i * columns + j] > most ? x[i * columns + j] : most;
        bias[i] = -(scale * most);
    }
    activate(TRN_ACT_EXP, x, rows, columns, x, scale, bias, sums);
    for (int64_t i = 0; i < rows; i++) {
        const float inverse = 1 / sums[i];
        for (int64_t j = 0; j < columns; j++) x[i * columns + j] *= inverse;
    }
}

/* ---- the loss ---- */

static int best_of(const float *x, int classes)
{
    int best = 0;
    for (int j = 1; j < classes; j++)
        if (x[j] > x[best]) best = j;
    return best;
}

enum { BLOCK = 64 }; /* rows whose softmax is one instruction */

static sr_score loss_of_block(float *logits, const int *target, int rows, int classes, float factor, bool backward)
{
    sr_score score = { 0, 0, rows };
    float sums[2 * BLOCK];
    for (int i = 0; i < rows; i++) {
        const float *x = logits + i * classes;
        const int best = best_of(x, classes);
        score.right += best == target[i];
        score.loss += (double)x[best] - (double)x[target[i]];
    }
    sr_softmax(logits, rows, classes, 1, sums);
    for (int i = 0; i < rows; i++) {
        float *p = logits + i * classes;
        score.loss += log((double)sums[i]);
        for (int j = 0; backward && j < classes; j++) p[j] = (p[j] - (j == target[i] ? 1.0f : 0.0f)) * factor;
    }
    return score;
}

sr_score sr_loss(float *logits, const int *target, int64_t rows, int classes, int64_t whole, bool backward)
{
    sr_score score = { 0, 0, 0 };
    for (int64_t i = 0; i < rows; i += BLOCK) {
        const int count = rows - i < BLOCK ? (int)(rows - i) : BLOCK;
        const sr_score block =
            loss_of_block(logits + i * classes, target + i, count, classes, 1 / (float)whole, backward);
        score.loss += block.loss;
        score.right += block.right;
        score.count += block.count;
    }
    return score;
}
