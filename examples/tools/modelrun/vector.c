/* vector.c - norms, softmax and functions: the engines' instructions, and the same in binary64.
 * SPDX-License-Identifier: MIT
 *
 * The engines' are those of examples/kernels: norm.c and softmax.c. All of them read and add in binary32; what is
 * written is rounded once, but for the softmax, whose numbers stay binary32 until the Tensor engine reads them.
 */
#include "vector.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_scalar_engine.h>
#include <trnmath/trn_vector_engine.h>

static trn_tensor view(const float *x, int64_t rows, int64_t n)
{
    return trn_tensor_2d(TRN_F32, (void *)(uintptr_t)x, rows, n);
}

/* ---- functions ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double ideal(trn_act act, double x)
{
    switch (act) {
    case TRN_ACT_EXP: return exp(x);
    case TRN_ACT_RSQRT: return 1 / sqrt(x);
    case TRN_ACT_SIGMOID: return sigmoid(x);
    case TRN_ACT_SILU: return x * sigmoid(x);
    case TRN_ACT_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
    case TRN_ACT_GELU_APPRX_TANH: return x / 2 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case TRN_ACT_GELU_APPRX_SIGMOID: return x * sigmoid(1.702 * x);
    case TRN_ACT_RELU: return x > 0 ? x : 0;
    default: abort(); /* config.c knows no other */
    }
}

/* y = act(x scale + bias[row]), sums [rows] of what comes out; in place where y is x. */
static void activate(const mr_run *run, trn_act act, const float *x, int64_t rows, int64_t n, float scale,
                     const float *bias, float *y, float *sums)
{
    trn_error error;
    trn_activation_args a = { .unlimited = true,
                              .dst = view(y, rows, n),
                              .src = view(x, rows, n),
                              .op = act,
                              .scale = scale,
                              .bias_per_partition = bias,
                              .reduce = sums,
                              .error = &error };
    a.numerics = &run->setting.numerics;
    a.generation = run->setting.generation;
    if (!run->setting.ideal || act == TRN_ACT_SQUARE) {
        mr_must(trn_activation(&a), &error);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const float in = x[i * n + j] * scale, moved = bias ? in + bias[i] : in;
            y[i * n + j] = (float)ideal(act, (double)moved);
            sum += y[i * n + j];
        }
        if (sums) sums[i] = sum;
    }
}

void mr_engine_function(mr_run *run, trn_act act, float *x, int64_t n)
{
    activate(run, act, x, 1, n, 1, NULL, x, NULL);
}

/* ---- norms ---- */

void mr_engine_rms_norm(mr_run *run, const float *x, const float *weight, double eps, int64_t rows, int64_t n, float *y)
{
    float *sum = app_memory((size_t)rows * 2, sizeof *sum), *small = sum + rows;
    const float share = 1 / (float)n;
    for (int64_t i = 0; i < rows; i++) small[i] = (float)eps;
    activate(run, TRN_ACT_SQUARE, x, rows, n, 1, NULL, y, sum); /* the squares are of no use */
    activate(run, TRN_ACT_RSQRT, sum, rows, 1, share, small, sum, NULL);
    for (int64_t i = 0; i < rows; i++) /* scalar_tensor_tensor: two products, each rounded to binary32 */
        for (int64_t j = 0; j < n; j++) y[i * n + j] = x[i * n + j] * sum[i] * weight[j];
    free(sum);
    mr_round(run, y, rows * n);
}

/* bn_stats on pieces of 512, bn_aggr on all of them. */
static void statistics(const float *x, int64_t rows, int64_t n, float *total)
{
    const int64_t pieces = (n + TRN_BN_STATS_MAX - 1) / TRN_BN_STATS_MAX;
    float *stats = app_memory((size_t)(rows * 6 * pieces), sizeof *stats);
    const trn_tensor all = view(stats, rows, 6 * pieces), in = view(x, rows, n);
    trn_error error;
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t first = i * TRN_BN_STATS_MAX, count = n - first < TRN_BN_STATS_MAX ? n - first : TRN_BN_STATS_MAX;
        trn_bn_stats_args a = { .unlimited = true,
                                .dst = trn_tensor_slice(all, 1, 6 * i, 6),
                                .data = trn_tensor_slice(in, 1, first, count),
                                .error = &error };
        mr_must(trn_bn_stats(&a), &error);
    }
    trn_bn_aggr_args a = { .unlimited = true, .dst = view(total, rows, 2), .data = all, .error = &error };
    mr_must(trn_bn_aggr(&a), &error);
    free(stats);
}

void mr_engine_layer_norm(mr_run *run, const float *x, const float *weight, const float *bias, int64_t rows, int64_t n,
                          float *y)
{
    float *total = app_memory((size_t)rows * 4, sizeof *total), *scale = total + 2 * rows, *eps = scale + rows;
    statistics(x, rows, n, total);
    for (int64_t i = 0; i < rows; i++) {
        scale[i] = total[2 * i + 1];
        eps[i] = (float)run->model->config.eps;
    }
    activate(run, TRN_ACT_RSQRT, scale, rows, 1, 1, eps, scale, NULL);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            const float centred = (x[i * n + j] - total[2 * i]) * scale[i], weighted = centred * weight[j];
            y[i * n + j] = weighted + bias[j];
        }
    free(total);
    mr_round(run, y, rows * n);
}

/* ---- softmax: the largest number first, so that no exponential is above 1 ---- */

void mr_engine_softmax(mr_run *run, float *x, const float *sink, double scale, int64_t rows, int64_t n)
{
    float *sum = app_memory((size_t)rows * 3, sizeof *sum), *bias = sum + rows, *extra = bias + rows;
    const float factor = (float)scale;
    trn_error error;
    for (int64_t i = 0; i < rows; i++) {
        float most = x[i * n];
        for (int64_t j = 1; j < n; j++) most = x[i * n + j] > most ? x[i * n + j] : most;
        most *= factor;
        if (sink && sink[i] > most) most = sink[i];
        bias[i] = -most;
    }
    activate(run, TRN_ACT_EXP, x, rows, n, factor, bias, x, sum);
    if (sink) {
        activate(run, TRN_ACT_EXP, sink, rows, 1, 1, bias, extra, NULL);
        for (int64_t i = 0; i < rows; i++) sum[i] += extra[i];
    }
    trn_reciprocal_args a = {
        .unlimited = true, .dst = view(sum, rows, 1), .data = view(sum, rows, 1), .error = &error
    };
    mr_must(trn_reciprocal(&a), &error);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) x[i * n + j] *= sum[i];
    free(sum);
}

/* ---- the reference: binary64 inside, binary32 outside ---- */

void mr_reference_function(mr_run *run, trn_act act, float *x, int64_t n)
{
    (void)run;
    for (int64_t i = 0; i < n; i++) x[i] = (float)ideal(act, (double)x[i]);
}

void mr_reference_rms_norm(mr_run *run, const float *x, const float *weight, double eps, int64_t rows, int64_t n,
                           float *y)
{
    (void)run;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)x[i * n + j] * (double)x[i * n + j];
        const double scale = 1 / sqrt(sum / (double)n + eps);
        for (int64_t j = 0; j < n; j++) y[i * n + j] = (float)((double)x[i * n + j] * scale * (double)weight[j]);
    }
}

void mr_reference_layer_norm(mr_run *run, const float *x, const float *weight, const float *bias, int64_t rows,
                             int64_t n, float *y)
{
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, sum = 0;
        for (int64_t j = 0; j < n; j++) mean += (double)x[i * n + j] / (double)n;
        for (int64_t j = 0; j < n; j++) sum += ((double)x[i * n + j] - mean) * ((double)x[i * n + j] - mean);
        const double scale = 1 / sqrt(sum / (double)n + run->model->config.eps);
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] = (float)(((double)x[i * n + j] - mean) * scale * (double)weight[j] + (double)bias[j]);
    }
}

void mr_reference_softmax(mr_run *run, float *x, const float *sink, double scale, int64_t rows, int64_t n)
{
    (void)run;
    for (int64_t i = 0; i < rows; i++, x += n) {
        double most = sink ? (double)sink[i] : -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) most = fmax(most, (double)x[j] * scale);
        for (int64_t j = 0; j < n; j++) sum += exp((double)x[j] * scale - most);
        if (sink) sum += exp((double)sink[i] - most);
        for (int64_t j = 0; j < n; j++) x[j] = (float)(exp((double)x[j] * scale - most) / sum);
    }
}
