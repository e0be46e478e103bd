/* mlp_mxfp8.c - gelu(x w1) w2 in MXFP8: a scale for each 32 numbers, made by quantize_mx, undone inside the array.
 * SPDX-License-Identifier: MIT
 *
 * Four numbers of K share a PE: element 4 p + i of a group of 512 is slot i of partition p, and what a matmul reads is
 * [partitions, columns, 4]. The hidden layer is made that way: its piece i takes every fourth hidden unit, beginning
 * with unit i, and writes every fourth element.
 */
#include "mlp.h"

enum { WIDTH = 512, GROUP = 512, MOST = 4096 / GROUP };

/* Of one group: [partitions, columns, 4] codes, [partitions / 8, columns] scales. */
typedef struct mx {
    trn_tensor codes, scales;
} mx;

static mx mx_tile(trn_core *c, const char *name, int64_t columns)
{
    return (mx){ trn_tensor_split(trn_core_sbuf(c, name, TRN_F8_E4M3FN, 128, 4 * columns), 1, 4),
                 trn_core_sbuf(c, name, TRN_F8_E8M0, 16, columns) };
}

static mx mx_part(mx t, int64_t partitions, int64_t columns)
{
    return (mx){ columns_of(rows_of(t.codes, 0, partitions), 0, columns),
                 columns_of(rows_of(t.scales, 0, partitions / 8), 0, columns) };
}

/* src [partitions, columns, 4] bfloat16 in SBUF */
static mx quantise(trn_core *c, mx tile, trn_tensor src)
{
    const mx t = mx_part(tile, src.shape[0], src.shape[1]);
    nisa(quantize_mx, .dst = t.codes, .src = src, .dst_scale = t.scales);
    return t;
}

/* Of columns [first, first + GROUP): those that begin with number i. */
static trn_tensor every_fourth(trn_tensor t, int64_t first, int i)
{
    return trn_tensor_merge(trn_tensor_slice(trn_tensor_split(columns_of(t, first, GROUP), 1, 4), 2, i, 1), 1);
}

/* Group `group` of the rows of w [K, columns]. Rows 4 p to 4 p + 3 are partition p's, and follow each other in HBM:
 * long descriptors. (Gathering slots in the DMA would take 8 bytes at a time, and fifty times as long.) */
static mx load_weights(trn_core *c, const char *name, trn_tensor w, int64_t group)
{
    const int64_t depth = least(GROUP, w.shape[0] - group * GROUP), columns = w.shape[1];
    const trn_tensor raw = trn_tensor_split(trn_core_sbuf(c, name, TRN_BF16, depth / 4, 4 * columns), 1, columns);
    const mx tile = mx_tile(c, name, columns);
    nisa(dma_copy, .dst = raw, .src = trn_tensor_split(rows_of(w, group * GROUP, depth), 0, 4));
    const mx result = quantise(c, tile, exchanged(raw, 1, 2));
    trn_core_free(c, raw);
    return result;
}

/* Group `group` of the columns of x [tokens, K] in SBUF: the array transposes every fourth column into a slot. */
static mx transposed(trn_core *c, mx tile, trn_tensor slots, trn_tensor x, int64_t group, pool *psum)
{
    const int64_t tokens = x.shape[0], depth = least(GROUP, x.shape[1] - group * GROUP);
    const trn_tensor four = trn_tensor_split(columns_of(x, group * GROUP, depth), 1, 4);
    const trn_tensor all = trn_tensor_split(columns_of(rows_of(slots, 0, depth / 4), 0, 4 * tokens), 1, 4);
    for (int i = 0; i < 4; i++) {
        const trn_tensor t = columns_of(turn(psum, depth / 4), 0, tokens);
        nisa(nc_transpose, .dst = t, .data = trn_tensor_merge(trn_tensor_slice(four, 2, i, 1), 1));
        nisa(tensor_copy, .dst = trn_tensor_merge(trn_tensor_slice(all, 2, i, 1), 1), .src = t);
    }
    return quantise(c, tile, all);
}

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor w1, trn_tensor w2)
{
    const int64_t n = w1.shape[0], hidden = w1.shape[1], groups = (n + GROUP - 1) / GROUP, pieces = hidden / GROUP;
    mx first[MOST], second[MOST], xs_mx[MOST], hs_mx[MOST], x[MOST], h[MOST];
    for (int64_t k = 0; k < groups; k++) first[k] = load_weights(c, "w1", w1, k), xs_mx[k] = mx_tile(c, "x codes", 128);
    for (int64_t j = 0; j < pieces; j++)
        second[j] = load_weights(c, "w2", w2, j), hs_mx[j] = mx_tile(c, "hidden codes", 128);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), slots = sbuf_pool(c, "x slots", TRN_BF16, 128, 4 * 128, 2);
    pool gelus = sbuf_pool(c, "gelu", TRN_BF16, 128, 4 * 128, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool psum = mlp_transpose_pool(c, 2), sums = psum_pool(c, "x w1", TRN_F32, 128, 128, 2);
    pool results = psum_pool(c, "hidden w2", TRN_F32, 128, WIDTH, 2);
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor tokens_x = turn(&xs, tokens), y = turn(&ys, tokens);
        nisa(dma_copy, .dst = tokens_x, .src = rows_of(in, t, tokens));
        for (int64_t k = 0; k < groups; k++) x[k] = transposed(c, xs_mx[k], turn(&slots, 128), tokens_x, k, &psum);
        for (int64_t j = 0; j < pieces; j++) {
            const trn_tensor gelu = trn_tensor_split(columns_of(turn(&gelus, 128), 0, 4 * tokens), 1, 4);
            for (int i = 0; i < 4; i++) { /* hidden units GROUP j + 4 p + i */
                const trn_tensor sum = columns_of(turn(&sums, 128), 0, tokens);
                for (int64_t k = 0; k < groups; k++)
                    nisa(nc_matmul_mx, .dst = sum, .stationary = every_fourth(first[k].codes, GROUP * j, i),
                         .stationary_scale = every_fourth(first[k].scales, GROUP * j, i), .moving = x[k].codes,
                         .moving_scale = x[k].scales, .accumulate = k > 0);
                nisa(activation, .dst = trn_tensor_merge(trn_tensor_slice(gelu, 2, i, 1), 1), .src = sum,
                     .op = TRN_ACT_GELU_APPRX_TANH);
            }
            h[j] = quantise(c, hs_mx[j], gelu);
        }
        for (int64_t i = 0; i < n; i += WIDTH) {
            const int64_t width = least(WIDTH, n - i);
            const trn_tensor result = columns_of(turn(&results, tokens), 0, width);
            for (int64_t j = 0; j < pieces; j++)
                nisa(nc_matmul_mx, .dst = result, .stationary = h[j].codes, .stationary_scale = h[j].scales,
                     .moving = columns_of(second[j].codes, i, width),
                     .moving_scale = columns_of(second[j].scales, i, width), .accumulate = j > 0);
            nisa(tensor_copy, .dst = columns_of(y, i, width), .src = result);
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
    const mlp_rule rule = { .format = TRN_F8_E4M3FN, .block = true };
    program(r->core, out, in, w1, w2);
    if (trn_core_status(r->core, NULL) == TRN_OK) mlp_compare(r, out, in, w1, w2, &rule);
}

const kernel kernel_mlp_mxfp8 = {
    .name = "mlp_mxfp8",
    .about = "the same with operands in MXFP8 E4M3FN, one scale to 32 numbers",
    .size = { { "rows", 128, 2, 4096 }, { "columns", 256, 128, 4096 }, { "hidden", 512, 512, 4096 } },
    .generations = KERNEL_TRN3,
    .source = { [NUM_INPUT] = "x and the weights in MXFP8",
                [NUM_CAST] = "the hidden layer in MXFP8",
                [NUM_ARITHMETIC] = "binary32 functions",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of gelu_apprx_tanh",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
