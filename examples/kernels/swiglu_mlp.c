/* swiglu_mlp.c - (silu(x wg) * (x wu)) wd: the gate by the Scalar engine, its product by the Vector engine.
 * SPDX-License-Identifier: MIT
 */
#include "mlp.h"

enum { WIDTH = 512 };

/* dst [128, tokens] of PSUM: 128 columns of x w, transposed. */
static void project(trn_core *c, trn_tensor dst, trn_tensor w, int64_t columns, int64_t first, trn_tensor xt)
{
    const int64_t tokens = dst.shape[1], tiles = xt.shape[1] / tokens;
    for (int64_t k = 0; k < tiles; k++)
        nisa(nc_matmul, .dst = dst, .stationary = columns_of(mlp_tile(w, columns, k), first, 128),
             .moving = mlp_tile(xt, tokens, k), .accumulate = k > 0);
}

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor wg, trn_tensor wu, trn_tensor wd)
{
    const int64_t n = wg.shape[0], hidden = wg.shape[1], pieces = hidden / 128;
    const trn_tensor gate = mlp_weights(c, "gate", wg), up = mlp_weights(c, "up", wu),
                     down = mlp_weights(c, "down", wd);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), turned = sbuf_pool(c, "x transposed", TRN_BF16, 128, n, 2);
    pool silus = sbuf_pool(c, "silu", TRN_F32, 128, 128, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool hiddens = sbuf_pool(c, "hidden", TRN_BF16, 128, 128 * pieces, 2), transposed = mlp_transpose_pool(c, 2);
    pool gates = psum_pool(c, "x gate", TRN_F32, 128, 128, 2), ups = psum_pool(c, "x up", TRN_F32, 128, 128, 2);
    pool results = psum_pool(c, "hidden down", TRN_F32, 128, WIDTH, 2);
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor x = turn(&xs, tokens), xt = columns_of(turn(&turned, 128), 0, n / 128 * tokens);
        const trn_tensor h = columns_of(turn(&hiddens, 128), 0, pieces * tokens), y = turn(&ys, tokens);
        nisa(dma_copy, .dst = x, .src = rows_of(in, t, tokens));
        mlp_transpose(c, xt, x, &transposed);
        for (int64_t j = 0; j < pieces; j++) {
            const trn_tensor g = columns_of(turn(&gates, 128), 0, tokens), u = columns_of(turn(&ups, 128), 0, tokens);
            const trn_tensor silu = columns_of(turn(&silus, 128), 0, tokens);
            project(c, g, gate, hidden, 128 * j, xt);
            project(c, u, up, hidden, 128 * j, xt);
            nisa(activation, .dst = silu, .src = g, .op = TRN_ACT_SILU);
            nisa(tensor_tensor, .dst = mlp_tile(h, tokens, j), .data1 = silu, .data2 = u, .op = TRN_ALU_MULTIPLY);
        }
        for (int64_t i = 0; i < n; i += WIDTH) {
            const int64_t width = least(WIDTH, n - i);
            const trn_tensor result = columns_of(turn(&results, tokens), 0, width);
            for (int64_t j = 0; j < pieces; j++)
                nisa(nc_matmul, .dst = result, .stationary = mlp_tile(h, tokens, j),
                     .moving = columns_of(mlp_tile(down, n, j), i, width), .accumulate = j > 0);
            nisa(tensor_copy, .dst = columns_of(y, i, width), .src = result);
        }
        nisa(dma_copy, .dst = rows_of(out, t, tokens), .src = y);
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, n);
    const trn_tensor wg = kernel_normal(r, "gate", TRN_BF16, n, hidden, 0, kernel_sigma(n));
    const trn_tensor wu = kernel_normal(r, "up", TRN_BF16, n, hidden, 0, kernel_sigma(n));
    const trn_tensor wd = kernel_normal(r, "down", TRN_BF16, hidden, n, 0, kernel_sigma(hidden));
    program(r->core, out, in, wg, wu, wd);
    if (trn_core_status(r->core, NULL)) return;

    const num_matrix gate = { .v = kernel_values(r, wg) }, up = { .v = kernel_values(r, wu) };
    const num_matrix down = { .v = kernel_values(r, wd) };
    const double *x = kernel_values(r, in);
    num *row = kernel_nums(r, n), *g = kernel_nums(r, hidden), *u = kernel_nums(r, hidden), *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = num_of(x[i * n + j]);
        num_dots(g, row, &gate, n, hidden, num_depth(n, n / 128));
        num_dots(u, row, &up, n, hidden, num_depth(n, n / 128));
        for (int64_t j = 0; j < hidden; j++)
            u[j] = num_round(num_f32(num_mul(num_table(NUM_SILU, g[j]), u[j])), TRN_BF16, NUM_CAST);
        num_dots(y, u, &down, hidden, n, num_depth(hidden, hidden / 128));
        for (int64_t j = 0; j < n; j++) y[j] = num_round(y[j], TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_swiglu_mlp = {
    .name = "swiglu_mlp",
    .about = "(silu(x gate) * (x up)) down",
    .size = { { "rows", 128, 1, 4096 }, { "columns", 256, 128, 4096 }, { "hidden", 512, 128, 8192 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_CAST] = "the hidden layer in bfloat16",
                [NUM_ARITHMETIC] = "binary32 products",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of silu",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
