/* matmul.c - x^T w, tile by tile: K accumulates in PSUM, loads hide behind the products.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

enum { WIDTH = 512 }; /* columns of a bank of PSUM */

/* x [K, M] is stationary, w [K, N] moves: K is on partitions in both, as the array wants it; nothing is transposed. */
static void load_stripe(trn_core *c, trn_tensor stripe, trn_tensor x, int64_t m, int64_t columns)
{
    for (int64_t k = 0; k < x.shape[0]; k += 128) { /* stripe [128, K / 128 * 128]: one tile of K beside the other */
        const int64_t p = least(128, x.shape[0] - k);
        nisa(dma_copy, .dst = columns_of(rows_of(stripe, 0, p), k, columns),
             .src = columns_of(rows_of(x, k, p), m, columns));
    }
}

static void program(trn_core *c, trn_tensor out, trn_tensor x, trn_tensor w)
{
    const int64_t depth = x.shape[0], m_all = x.shape[1], n_all = w.shape[1], tiles = (depth + 127) / 128;
    pool stripes = sbuf_pool(c, "x", TRN_BF16, 128, 128 * tiles, 2);
    pool blocks = sbuf_pool(c, "w", TRN_BF16, 128, WIDTH * tiles, 2);
    pool sums = psum_pool(c, "sums", TRN_F32, 128, WIDTH, 2), results = sbuf_pool(c, "result", TRN_F32, 128, WIDTH, 2);
    trn_tensor stripe = turn(&stripes, 128), block = turn(&blocks, 128);
    load_stripe(c, stripe, x, 0, least(128, m_all));
    for (int64_t n = 0; n < n_all; n += WIDTH) {
        const int64_t columns = least(WIDTH, n_all - n);
        for (int64_t k = 0; k < depth; k += 128) {
            const int64_t p = least(128, depth - k);
            nisa(dma_copy, .dst = columns_of(rows_of(block, 0, p), k / 128 * WIDTH, columns),
                 .src = columns_of(rows_of(w, k, p), n, columns));
        }
        for (int64_t m = 0; m < m_all; m += 128) {
            const int64_t rows = least(128, m_all - m), next = m + 128 < m_all ? m + 128 : 0;
            const trn_tensor now = stripe, result = columns_of(turn(&results, rows), 0, columns);
            const trn_tensor sum = columns_of(turn(&sums, rows), 0, columns);
            /* The next stripe is on its way before this one is used, and before results queue up behind it. */
            stripe = turn(&stripes, 128);
            if (next || n + WIDTH < n_all) load_stripe(c, stripe, x, next, least(128, m_all - next));
            for (int64_t k = 0; k < depth; k += 128) {
                const int64_t p = least(128, depth - k);
                nisa(nc_matmul, .dst = sum, .stationary = columns_of(rows_of(now, 0, p), k, rows),
                     .moving = columns_of(rows_of(block, 0, p), k / 128 * WIDTH, columns), .accumulate = k > 0);
            }
            nisa(tensor_copy, .dst = result, .src = sum); /* DMA cannot read PSUM */
            nisa(dma_copy, .dst = columns_of(rows_of(out, m, rows), n, columns), .src = result);
        }
        block = turn(&blocks, 128);
    }
}

static void run(kernel_run *r)
{
    const int64_t k = r->size[ROWS], m = r->size[COLUMNS], n = r->size[2];
    const trn_tensor x = kernel_input(r, TRN_BF16), w = kernel_normal(r, "w", TRN_BF16, k, n, 0, 1);
    const trn_tensor out = kernel_room(r, "out", TRN_F32, m, n);
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
    .size = { { "rows", 512, 1, 8192 }, { "columns", 256, 1, 1 << 14 }, { "n", 512, 1, 1 << 14 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_SUM] = "TensorE's binary32 sums" },
    .run = run,
};
