/* rmsnorm.c - each row over its root mean square, times a weight per column.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#define EPSILON 0x1p-20f

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor weight)
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

static void reference(num *y, num *square, const double *x, const double *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) square[i] = num_f32(num_square(num_of(x[i])));
    const num share = num_f32(num_times(num_sum(square, n), (double)(1 / (float)n)));
    const num scale = num_table(NUM_RSQRT, num_f32(num_add(share, num_of((double)EPSILON))));
    for (int64_t i = 0; i < n; i++) {
        const num scaled = num_f32(num_mul(num_of(x[i]), scale));
        y[i] = num_round(num_f32(num_mul(scaled, num_of(w[i]))), TRN_BF16, NUM_OUTPUT);
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, n);
    const trn_tensor weight = kernel_normal(r, "weight", TRN_BF16, 1, n, 1, 0.1);
    program(r->core, out, in, weight);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in), *w = kernel_values(r, weight);
    num *y = kernel_nums(r, n), *square = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        reference(y, square, x + i * n, w, n);
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
    .run = run,
};
