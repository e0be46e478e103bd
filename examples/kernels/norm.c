/* norm.c - each row over its root mean square; each row less its mean, over its standard deviation.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#define EPSILON 0x1p-20f

/* ---- RMS norm: times a weight per column ---- */

static void rms_program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor weight)
{
    const int64_t rows = in.shape[0], n = in.shape[1];
    /* One row of weights on all partitions: a DMA that reads the same bytes 128 times. */
    const trn_tensor w = trn_core_sbuf(c, "weight", TRN_BF16, 128, n);
    const trn_tensor epsilon = trn_core_sbuf(c, "epsilon", TRN_F32, 128, 1);
    nisa(dma_copy, .dst = w, .src = trn_tensor_broadcast(weight, 0, 128));
    nisa(memset, .dst = epsilon, .value = EPSILON); /* Trainium1 takes no bias but a tile */
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool squares = sbuf_pool(c, "square", TRN_BF16, 128, n, 2), numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 2, 2);
    for (int64_t first = 0; first < rows; first += 128) {
        const int64_t p = least(128, rows - first);
        const trn_tensor x = turn(&xs, p), square = turn(&squares, p), y = turn(&ys, p), number = turn(&numbers, p);
        const trn_tensor sum = columns_of(number, 0, 1), scale = columns_of(number, 1, 1);
        nisa(dma_copy, .dst = x, .src = rows_of(in, first, p));
        /* The squares themselves are of no use; their sum is taken in binary32, before they are cast. */
        nisa(activation, .dst = square, .src = x, .op = TRN_ACT_SQUARE, .reduce_res = sum,
             .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
        nisa(activation, .dst = scale, .src = sum, .op = TRN_ACT_RSQRT, .scale = 1 / (float)n,
             .bias_tile = rows_of(epsilon, 0, p));
        nisa(scalar_tensor_tensor, .dst = y, .data = x, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = scale,
             .op1 = TRN_ALU_MULTIPLY, .operand1 = rows_of(w, 0, p));
        nisa(dma_copy, .dst = rows_of(out, first, p), .src = y);
    }
}

static void rms_reference(num *y, num *square, const double *x, const double *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) square[i] = num_f32(num_square(num_of(x[i])));
    const num mean = num_f32(num_times(num_sum(square, n), (double)(1 / (float)n)));
    const num scale = num_table(NUM_RSQRT, num_f32(num_add(mean, num_of((double)EPSILON))));
    for (int64_t i = 0; i < n; i++) {
        const num scaled = num_f32(num_mul(num_of(x[i]), scale));
        y[i] = num_round(num_f32(num_mul(scaled, num_of(w[i]))), TRN_BF16, NUM_OUTPUT);
    }
}

static void run_rmsnorm(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
    const trn_tensor weight = kernel_normal(r, "weight", TRN_BF16, 1, n, 1, 0.1);
    rms_program(r->core, out, in, weight);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in), *w = kernel_values(r, weight);
    num *y = kernel_nums(r, n), *square = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        rms_reference(y, square, x + i * n, w, n);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_rmsnorm = {
    .name = "rmsnorm",
    .about = "x / sqrt(mean(x^2) + 2^-20) * weight along each row",
    .size = { { "rows", 256, 1, 1 << 16 }, { "columns", 1024, 1, 8192 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_ARITHMETIC] = "binary32 sums and products",
                [NUM_TABLE] = "the table of rsqrt",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run_rmsnorm,
};

/* ---- layer norm: by bn_stats and bn_aggr ---- */

enum { PIECE = 512 }; /* columns that one bn_stats takes */

static void layer_program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor weight, trn_tensor bias)
{
    const int64_t rows = in.shape[0], n = in.shape[1], pieces = (n + PIECE - 1) / PIECE;
    const trn_tensor w = trn_core_sbuf(c, "weight", TRN_BF16, 128, n), b = trn_core_sbuf(c, "bias", TRN_BF16, 128, n);
    const trn_tensor epsilon = trn_core_sbuf(c, "epsilon", TRN_F32, 128, 1);
    nisa(dma_copy, .dst = w, .src = trn_tensor_broadcast(weight, 0, 128));
    nisa(dma_copy, .dst = b, .src = trn_tensor_broadcast(bias, 0, 128));
    nisa(memset, .dst = epsilon, .value = EPSILON);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool zs = sbuf_pool(c, "z", TRN_F32, 128, n, 2), numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 3, 2);
    pool statistics = sbuf_pool(c, "statistics", TRN_F32, 128, 6 * pieces, 2);
    for (int64_t first = 0; first < rows; first += 128) {
        const int64_t p = least(128, rows - first);
        const trn_tensor x = turn(&xs, p), z = turn(&zs, p), y = turn(&ys, p), stats = turn(&statistics, p);
        const trn_tensor number = turn(&numbers, p), total = columns_of(number, 0, 2), scale = columns_of(number, 2, 1);
        nisa(dma_copy, .dst = x, .src = rows_of(in, first, p));
        /* Count, mean and count times variance of the even elements, then of the odd ones, of each piece. */
        for (int64_t i = 0; i < pieces; i++)
            nisa(bn_stats, .dst = columns_of(stats, 6 * i, 6),
                 .data = columns_of(x, PIECE * i, least(PIECE, n - PIECE * i)));
        nisa(bn_aggr, .dst = total, .data = stats); /* mean, variance */
        nisa(activation, .dst = scale, .src = columns_of(total, 1, 1), .op = TRN_ACT_RSQRT,
             .bias_tile = rows_of(epsilon, 0, p));
        nisa(tensor_scalar, .dst = z, .data = x, .op0 = TRN_ALU_SUBTRACT, .operand0_tile = columns_of(total, 0, 1),
             .op1 = TRN_ALU_MULTIPLY, .operand1_tile = scale);
        nisa(tensor_tensor, .dst = z, .data1 = z, .data2 = rows_of(w, 0, p), .op = TRN_ALU_MULTIPLY);
        /* The other half of the elementwise work goes to GpSimd, which has nothing else to do. */
        nisa(tensor_tensor, .dst = y, .data1 = z, .data2 = rows_of(b, 0, p), .op = TRN_ALU_ADD,
             .engine = TRN_ENGINE_GPSIMD);
        nisa(dma_copy, .dst = rows_of(out, first, p), .src = y);
    }
}

/* Mean and variance by two passes; bn_stats and bn_aggr may take other ways to them, so their bound is that of any
 * order of n binary32 additions, and a few roundings more for each piece that is merged. */
static void mean_and_variance(num total[2], const double *x, int64_t n)
{
    const double u = (double)(n < PIECE ? n : PIECE) + 8.0 * (double)((n + PIECE - 1) / PIECE);
    double mean = 0, size = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n, size += (x[i] < 0 ? -x[i] : x[i]) / (double)n;
    for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    total[0] = num_of(mean);
    total[0].bound[NUM_ARITHMETIC] = u * size * 0x1p-24;
    total[0].variance[NUM_ARITHMETIC] = u * size * size * 0x1p-51;
    total[1] = num_of(variance);
    total[1].bound[NUM_ARITHMETIC] = (u + 4) * (variance + size * size * u * 0x1p-23) * 0x1p-23;
    total[1].variance[NUM_ARITHMETIC] = u * variance * variance * 0x1p-51;
}

static void layer_reference(num *y, const double *x, const double *w, const double *b, int64_t n)
{
    num total[2];
    mean_and_variance(total, x, n);
    const num scale = num_table(NUM_RSQRT, num_f32(num_add(total[1], num_of((double)EPSILON))));
    for (int64_t i = 0; i < n; i++) {
        const num z = num_f32(num_mul(num_f32(num_subtract(num_of(x[i]), total[0])), scale));
        const num weighted = num_f32(num_mul(z, num_of(w[i])));
        y[i] = num_round(num_f32(num_add(weighted, num_of(b[i]))), TRN_BF16, NUM_OUTPUT);
    }
}

static void run_layernorm(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
    const trn_tensor weight = kernel_normal(r, "weight", TRN_BF16, 1, n, 1, 0.1);
    const trn_tensor bias = kernel_normal(r, "bias", TRN_BF16, 1, n, 0, 0.1);
    layer_program(r->core, out, in, weight, bias);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in), *w = kernel_values(r, weight), *b = kernel_values(r, bias);
    num *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        layer_reference(y, x + i * n, w, b, n);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_layernorm = {
    .name = "layernorm",
    .about = "(x - mean) / sqrt(variance + 2^-20) * weight + bias along each row",
    .size = { { "rows", 256, 1, 1 << 16 }, { "columns", 1024, 1, 8192 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_ARITHMETIC] = "binary32 statistics and products",
                [NUM_TABLE] = "the table of rsqrt",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run_layernorm,
};
