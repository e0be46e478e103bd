/* matmul.c - x^T w, tile by tile: K accumulates in PSUM, loads hide behind the products.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

enum { WIDTH = 512 }; /* columns of a bank of PSUM, and of a block: descriptors of 1 KiB */

/* Columns [first, first + WIDTH) of t [K, columns], K on partitions: block [128, K / 128 * WIDTH], tile beside tile. */
static void load(trn_core *c, trn_tensor block, trn_tensor t, int64_t first)
{
    const int64_t columns = least(WIDTH, t.shape[1] - first);
    for (int64_t k = 0; k < t.shape[0]; k += 128) {
        const int64_t p = least(128, t.shape[0] - k);
        nisa(dma_copy, .dst = columns_of(rows_of(block, 0, p), k / 128 * WIDTH, columns),
             .src = columns_of(rows_of(t, k, p), first, columns));
    }
}

/* sum [rows, columns] = x[:, m .. m + rows]^T w, from their blocks. */
static void multiply(trn_core *c, trn_tensor sum, trn_tensor x, int64_t m, trn_tensor w, int64_t depth)
{
    for (int64_t k = 0; k < depth; k += 128) {
        const int64_t p = least(128, depth - k), tile = k / 128 * WIDTH;
        nisa(nc_matmul, .dst = sum, .stationary = columns_of(rows_of(x, 0, p), tile + m, sum.shape[0]),
             .moving = columns_of(rows_of(w, 0, p), tile, sum.shape[1]), .accumulate = k > 0);
    }
}

/* x [K, M] is stationary, w [K, N] moves: K is on partitions in both, as the array wants it; nothing is transposed.
 * A pass is a block of x against a block of w; the blocks of the next pass are on their way before this one begins, and
 * before its results queue up behind them. */
static void program(trn_core *c, trn_tensor out, trn_tensor x, trn_tensor w)
{
    const int64_t depth = x.shape[0], all = x.shape[1], tiles = (depth + 127) / 128;
    const int64_t blocks = (all + WIDTH - 1) / WIDTH, passes = (w.shape[1] + WIDTH - 1) / WIDTH * blocks;
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, WIDTH * tiles, 2),
         ws = sbuf_pool(c, "w", TRN_BF16, 128, WIDTH * tiles, 2);
    pool sums = psum_pool(c, "sums", TRN_F32, 128, WIDTH, 4), results = sbuf_pool(c, "result", TRN_F32, 128, WIDTH, 4);
    trn_tensor next_x = turn(&xs, 128), next_w = turn(&ws, 128);
    load(c, next_x, x, 0);
    load(c, next_w, w, 0);
    for (int64_t pass = 0; pass < passes; pass++) {
        const trn_tensor now_x = next_x, now_w = next_w;
        const int64_t n = pass / blocks * WIDTH, first = pass % blocks * WIDTH, columns = least(WIDTH, w.shape[1] - n);
        if (pass + 1 < passes) load(c, next_x = turn(&xs, 128), x, (pass + 1) % blocks * WIDTH);
        if (pass + 1 < passes && (pass + 1) % blocks == 0) load(c, next_w = turn(&ws, 128), w, n + WIDTH);
        for (int64_t m = first; m < least(first + WIDTH, all); m += 128) {
            const int64_t rows = least(128, all - m);
            const trn_tensor sum = columns_of(turn(&sums, rows), 0, columns);
            const trn_tensor result = columns_of(turn(&results, rows), 0, columns);
            multiply(c, sum, now_x, m - first, now_w, depth);
            nisa(tensor_copy, .dst = result, .src = sum); /* DMA cannot read PSUM */
            nisa(dma_copy, .dst = columns_of(rows_of(out, m, rows), n, columns), .src = result);
        }
    }
}

static void run(kernel_run *r)
{
    const int64_t k = r->size[ROWS], m = r->size[COLUMNS], n = r->size[2];
    const trn_tensor x = kernel_input(r, TRN_BF16), w = kernel_normal(r, "w", TRN_BF16, k, n, 0, 1);
    const trn_tensor out = kernel_tensor(r, "out", TRN_F32, m, n);
    program(r->core, out, x, w);
    if (trn_core_status(r->core, NULL)) return;

    const double *xs = kernel_values(r, x);
    const num_matrix ws = { .v = kernel_values(r, w) };
    num *column = kernel_nums(r, k), *want = kernel_nums(r, n);
    for (int64_t i = 0; i < m; i++) { /* products of bfloat16 numbers are exact; the sums round */
        for (int64_t j = 0; j < k; j++) column[j] = num_of(xs[j * m + i]);
        num_dots(want, column, &ws, k, n, num_depth(k, (k + 127) / 128));
        kernel_compare(r, rows_of(out, i, 1), want);
    }
}

const kernel kernel_matmul = {
    .name = "matmul",
    .about = "x^T w: x [rows, columns] is stationary, rows are the contraction",
    .size = { { "rows", 512, 1, 4096 }, { "columns", 256, 1, 1 << 14 }, { "n", 512, 1, 1 << 14 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_SUM] = "TensorE's binary32 sums" },
    .run = run,
};
