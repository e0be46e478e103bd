/* gelu_mlp.c - gelu(x w1 + b1) w2 + b2: the hidden layer is made transposed, so that it is stationary next.
 * SPDX-License-Identifier: MIT
 */
#include "mlp.h"

enum { WIDTH = 512 };

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor w1, trn_tensor b1, trn_tensor w2,
                    trn_tensor b2)
{
    const int64_t n = w1.shape[0], hidden = w1.shape[1], pieces = hidden / 128;
    const trn_tensor first = mlp_weights(c, "w1", w1), second = mlp_weights(c, "w2", w2);
    const trn_tensor bias = trn_core_sbuf(c, "b1", TRN_F32, 128, pieces),
                     bias2 = trn_core_sbuf(c, "b2", TRN_F32, 128, n);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), turned = sbuf_pool(c, "x transposed", TRN_BF16, 128, n, 2);
    pool hiddens = sbuf_pool(c, "hidden", TRN_BF16, 128, 128 * pieces, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool transposed = mlp_transpose_pool(c, 2), sums = psum_pool(c, "x w1", TRN_F32, 128, 128, 2);
    pool results = psum_pool(c, "hidden w2", TRN_F32, 128, WIDTH, 2);
    /* Bias j of piece k belongs to partition j: a DMA with the two axes exchanged. */
    nisa(dma_copy, .dst = bias, .src = trn_tensor_transposed(trn_tensor_split(trn_tensor_merge(b1, 0), 0, 128)));
    nisa(dma_copy, .dst = bias2, .src = trn_tensor_broadcast(b2, 0, 128));
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor x = turn(&xs, tokens), xt = columns_of(turn(&turned, 128), 0, n / 128 * tokens);
        const trn_tensor h = columns_of(turn(&hiddens, 128), 0, pieces * tokens), y = turn(&ys, tokens);
        nisa(dma_copy, .dst = x, .src = rows_of(in, t, tokens));
        mlp_transpose(c, xt, x, &transposed);
        for (int64_t j = 0; j < pieces; j++) { /* hidden units on partitions: bias and gelu in one instruction */
            const trn_tensor sum = columns_of(turn(&sums, 128), 0, tokens);
            for (int64_t k = 0; k < n / 128; k++)
                nisa(nc_matmul, .dst = sum, .stationary = columns_of(mlp_tile(first, hidden, k), 128 * j, 128),
                     .moving = mlp_tile(xt, tokens, k), .accumulate = k > 0);
            nisa(activation, .dst = mlp_tile(h, tokens, j), .src = sum, .op = TRN_ACT_GELU_APPRX_TANH,
                 .bias_tile = columns_of(bias, j, 1));
        }
        for (int64_t i = 0; i < n; i += WIDTH) {
            const int64_t width = least(WIDTH, n - i);
            const trn_tensor result = columns_of(turn(&results, tokens), 0, width);
            for (int64_t j = 0; j < pieces; j++)
                nisa(nc_matmul, .dst = result, .stationary = mlp_tile(h, tokens, j),
                     .moving = columns_of(mlp_tile(second, n, j), i, width), .accumulate = j > 0);
            nisa(tensor_tensor, .dst = columns_of(y, i, width), .data1 = result,
                 .data2 = columns_of(rows_of(bias2, 0, tokens), i, width), .op = TRN_ALU_ADD);
        }
        nisa(dma_copy, .dst = rows_of(out, t, tokens), .src = y);
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, n);
    const trn_tensor w1 = kernel_normal(r, "w1", TRN_BF16, n, hidden, 0, kernel_sigma(n));
    const trn_tensor w2 = kernel_normal(r, "w2", TRN_BF16, hidden, n, 0, kernel_sigma(hidden));
    const trn_tensor b1 = kernel_normal(r, "b1", TRN_F32, 1, hidden, 0, 0.1),
                     b2 = kernel_normal(r, "b2", TRN_F32, 1, n, 0, 0.1);
    program(r->core, out, in, w1, b1, w2, b2);
    if (trn_core_status(r->core, NULL)) return;

    const num_matrix first = { .v = kernel_values(r, w1) }, second = { .v = kernel_values(r, w2) };
    const double *x = kernel_values(r, in), *bias1 = kernel_values(r, b1), *bias2 = kernel_values(r, b2);
    num *row = kernel_nums(r, n), *h = kernel_nums(r, hidden), *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = num_of(x[i * n + j]);
        num_dots(h, row, &first, n, hidden, num_depth(n, n / 128));
        for (int64_t j = 0; j < hidden; j++)
            h[j] = num_round(num_table(NUM_GELU, num_f32(num_add(h[j], num_of(bias1[j])))), TRN_BF16, NUM_CAST);
        num_dots(y, h, &second, hidden, n, num_depth(hidden, hidden / 128));
        for (int64_t j = 0; j < n; j++)
            y[j] = num_round(num_f32(num_add(y[j], num_of(bias2[j]))), TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_gelu_mlp = {
    .name = "gelu_mlp",
    .about = "gelu(x w1 + b1) w2 + b2, gelu by its tanh approximation",
    .size = { { "rows", 128, 1, 4096 }, { "columns", 256, 128, 4096 }, { "hidden", 512, 128, 8192 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_CAST] = "the hidden layer in bfloat16",
                [NUM_ARITHMETIC] = "binary32 biases",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of gelu_apprx_tanh",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
