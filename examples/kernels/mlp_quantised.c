/* mlp_quantised.c - gelu(x w1) w2 in int8, FP8 and MXFP8.
 * SPDX-License-Identifier: MIT
 *
 * int8 and FP8 have one scale per tensor, and codes are made on the way out of PSUM. Trainium1's array alone takes
 * int8, into int32 sums. FP8 E4M3 ends at 240; from Trainium2 on two rows of it share a PE, so that 256 numbers of K
 * take the time of 128. MXFP8 has a scale for each 32 numbers, made by quantize_mx and undone inside the array.
 */
#include "mlp.h"

#include <math.h>

/* How a layer is quantised: number = code / scale, with one scale for a whole tensor, or (block) the one that
 * quantize_mx gives to each 32 numbers along the contraction. */
typedef struct rule {
    trn_format format;
    bool block;
    double x, w1, h, w2;
} rule;

/* ---- scales and codes ---- */

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most > 0 ? most : 1;
}

/* int8 has no exponent: the largest number becomes 127. FP8 keeps its own, so a power of two will do, and is exact. */
static double scale_for(trn_format format, double most)
{
    const double end = trn_format_limits_of(format).max;
    return format == TRN_I8 ? (double)(float)(end / most) : exp2(floor(log2(end / most)));
}

static double *hidden_of(kernel_run *r, const double *x, const double *w, int64_t rows, int64_t n, int64_t hidden)
{
    double *h = (double *)kernel_memory(r, (size_t)(rows * hidden) * sizeof(double));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < hidden; j++) h[i * hidden + j] += x[i * n + k] * w[k * hidden + j];
    return h;
}

/* Scales that put the largest number of each tensor at the end of the format, or a power of two below. */
static rule calibrate(kernel_run *r, trn_format format, trn_tensor x, trn_tensor w1, trn_tensor w2)
{
    const int64_t rows = x.shape[0], n = x.shape[1], hidden = w1.shape[1];
    const double *xs = kernel_values(r, x), *ws = kernel_values(r, w1);
    const double *h = hidden_of(r, xs, ws, rows, n, hidden);
    rule how = { .format = format };
    how.x = scale_for(format, largest(xs, rows * n));
    how.w1 = scale_for(format, largest(ws, n * hidden));
    how.w2 = scale_for(format, largest(kernel_values(r, w2), n * hidden));
    /* |gelu(x)| <= |x|; the rest is for quantised operands */
    how.h = scale_for(format, 1.25 * largest(h, rows * hidden));
    return how;
}

/* w as codes in HBM. */
static trn_tensor quantised(kernel_run *r, const char *name, trn_tensor w, trn_format format, double scale)
{
    const trn_tensor t = kernel_tensor(r, name, format, w.shape[0], w.shape[1]);
    double *value = kernel_values(r, w);
    for (int64_t i = 0; i < trn_tensor_elements(w); i++) value[i] *= scale;
    kernel_store(t, value);
    return t;
}

/* ---- two layers as they should be, and what quantised operands do to them ---- */

static num one_code(num a, trn_format format, double scale, num_source source)
{
    return num_times(num_round(num_f32(num_times(a, scale)), format, source), 1 / scale);
}

/* Of n numbers along the contraction. A block's scale is that of its largest number, with whatever error it has. */
static void codes(num *a, int64_t n, const rule *how, double scale, num_source source)
{
    for (int64_t first = 0; first < n; first += 32) {
        double most = 0;
        for (int64_t i = first; i < first + 32; i++) most = fmax(most, fabs(a[i].v) + num_bound(&a[i]));
        const double s = !how->block ? scale : most > 0 ? exp2(7 - floor(log2(most))) : 1;
        for (int64_t i = first; i < first + 32; i++) a[i] = one_code(a[i], how->format, s, source);
    }
}

static num_matrix matrix(kernel_run *r, trn_tensor w, const rule *how, double scale)
{
    const int64_t rows = w.shape[0], columns = w.shape[1];
    const size_t bytes = (size_t)(rows * columns) * sizeof(double);
    double *v = kernel_values(r, w), *bound = (double *)kernel_memory(r, bytes),
           *variance = (double *)kernel_memory(r, bytes);
    num *one = kernel_nums(r, rows);
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) one[i] = num_of(v[i * columns + j]);
        codes(one, rows, how, scale, NUM_INPUT);
        for (int64_t i = 0; i < rows; i++) {
            bound[i * columns + j] = num_bound(&one[i]);
            variance[i * columns + j] = one[i].variance[NUM_INPUT];
        }
    }
    return (num_matrix){ v, bound, variance, NUM_INPUT };
}

/* Against gelu(x w1) w2 of the numbers before they were quantised: what that does to them is an error. */
static void compare(kernel_run *r, trn_tensor out, trn_tensor x, trn_tensor w1, trn_tensor w2, const rule *how)
{
    const int64_t rows = x.shape[0], n = x.shape[1], hidden = w1.shape[1];
    /* Integer sums are exact until they become binary32; pairs and quads of FP8 products round a few times more. */
    const bool exact = how->format == TRN_I8;
    const int first = exact ? 1 : num_depth(128, n / 128) + 4, second = exact ? 1 : num_depth(128, hidden / 128) + 4;
    const num_matrix a = matrix(r, w1, how, how->w1), b = matrix(r, w2, how, how->w2);
    const double *xs = kernel_values(r, x);
    num *row = kernel_nums(r, n), *h = kernel_nums(r, hidden), *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = num_of(xs[i * n + j]);
        codes(row, n, how, how->x, NUM_INPUT);
        num_dots(h, row, &a, n, hidden, first);
        for (int64_t j = 0; j < hidden; j++) {
            h[j] = num_table(NUM_GELU, num_f32(h[j]));
            if (how->block) h[j] = num_round(h[j], TRN_BF16, NUM_CAST); /* what quantize_mx reads */
        }
        codes(h, hidden, how, how->h, NUM_CAST);
        num_dots(y, h, &b, hidden, n, second);
        for (int64_t j = 0; j < n; j++) y[j] = num_round(num_f32(y[j]), TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

/* ---- one scale per tensor ---- */

/* Columns of tile k of the contraction; with two slots, of tiles 2 k and 2 k + 1: [128, 2, count]. */
static trn_tensor operand(trn_tensor all, int64_t columns, int64_t k, int slots, int64_t first, int64_t count)
{
    if (slots == 1) return columns_of(mlp_tile(all, columns, k), first, count);
    return trn_tensor_slice(trn_tensor_split(columns_of(all, 2 * k * columns, 2 * columns), 1, columns), 2, first,
                            count);
}

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor w1, trn_tensor w2, const rule *how)
{
    const trn_core_spec *spec = trn_core_spec_of(c->args.generation);
    const trn_format code = how->format, psum = code == TRN_I8 ? TRN_I32 : TRN_F32;
    const bool pairs = spec->double_row && code != TRN_I8;
    const int slots = pairs ? 2 : 1;
    const int64_t n = w1.shape[0], hidden = w1.shape[1], pieces = hidden / 128;
    const trn_tensor first = mlp_weights(c, "w1", w1), second = mlp_weights(c, "w2", w2);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), turned = sbuf_pool(c, "x codes", code, 128, n, 2);
    pool gelus = sbuf_pool(c, "gelu", TRN_F32, 128, 128, 2),
         hiddens = sbuf_pool(c, "hidden codes", code, 128, hidden, 2);
    pool ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2), transposed = mlp_transpose_pool(c, 2);
    pool sums = psum_pool(c, "x w1", psum, 128, 128, 2), results = psum_pool(c, "hidden w2", psum, 128, MLP_WIDTH, 2);
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor x = turn(&xs, tokens), xt = columns_of(turn(&turned, 128), 0, n / 128 * tokens);
        const trn_tensor h = columns_of(turn(&hiddens, 128), 0, pieces * tokens), y = turn(&ys, tokens);
        nisa(dma_copy, .dst = x, .src = rows_of(in, t, tokens));
        for (int64_t k = 0; k < n / 128; k++) { /* transposed as bfloat16; scaled and cast on the way to SBUF */
            const trn_tensor one = columns_of(turn(&transposed, 128), 0, tokens);
            nisa(nc_transpose, .dst = one, .data = columns_of(x, 128 * k, 128));
            nisa(tensor_scalar, .dst = mlp_tile(xt, tokens, k), .data = one, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)how->x);
        }
        for (int64_t j = 0; j < pieces; j++) {
            const trn_tensor sum = columns_of(turn(&sums, 128), 0, tokens),
                             gelu = columns_of(turn(&gelus, 128), 0, tokens);
            for (int64_t k = 0; k < n / 128 / slots; k++)
                nisa(nc_matmul, .dst = sum, .stationary = operand(first, hidden, k, slots, 128 * j, 128),
                     .moving = operand(xt, tokens, k, slots, 0, tokens), .accumulate = k > 0, .double_row = pairs);
            nisa(activation, .dst = gelu, .src = sum, .op = TRN_ACT_GELU_APPRX_TANH,
                 .scale = (float)(1 / (how->x * how->w1)));
            nisa(tensor_scalar, .dst = mlp_tile(h, tokens, j), .data = gelu, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)how->h, .engine = TRN_ENGINE_GPSIMD);
        }
        for (int64_t i = 0; i < n; i += MLP_WIDTH) {
            const int64_t width = least(MLP_WIDTH, n - i);
            const trn_tensor result = columns_of(turn(&results, tokens), 0, width);
            for (int64_t j = 0; j < pieces / slots; j++)
                nisa(nc_matmul, .dst = result, .stationary = operand(h, tokens, j, slots, 0, tokens),
                     .moving = operand(second, n, j, slots, i, width), .accumulate = j > 0, .double_row = pairs);
            nisa(tensor_scalar, .dst = columns_of(y, i, width), .data = result, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)(1 / (how->h * how->w2)));
        }
        nisa(dma_copy, .dst = rows_of(out, t, tokens), .src = y);
    }
}

static void run_codes(kernel_run *r, trn_format format)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
    const trn_tensor w1 = mlp_normal(r, "w1", n, hidden);
    const trn_tensor w2 = mlp_normal(r, "w2", hidden, n);
    const rule how = calibrate(r, format, in, w1, w2);
    program(r->core, out, in, quantised(r, "w1 codes", w1, format, how.w1),
            quantised(r, "w2 codes", w2, format, how.w2), &how);
    if (trn_core_status(r->core, NULL) == TRN_OK) compare(r, out, in, w1, w2, &how);
}

static void run_int8(kernel_run *r) { run_codes(r, TRN_I8); }
static void run_fp8(kernel_run *r) { run_codes(r, TRN_F8_E4M3); }

const kernel kernel_mlp_int8 = {
    .name = "mlp_int8",
    .about = "gelu(x w1) w2 with operands of 8-bit integers, against the same unquantised",
    .size = { { "rows", 128, 1, 4096 }, { "columns", 256, 128, 1024 }, { "hidden", 512, 128, 4096 } },
    .generations = KERNEL_TRN1,
    .source = { [NUM_INPUT] = "x and the weights in int8",
                [NUM_CAST] = "the hidden layer in int8",
                [NUM_ARITHMETIC] = "binary32 scales",
                [NUM_SUM] = "integer sums as binary32",
                [NUM_TABLE] = "the table of gelu_apprx_tanh",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run_int8,
};

const kernel kernel_mlp_fp8 = {
    .name = "mlp_fp8",
    .about = "the same with operands in FP8 E4M3, which ends at 240",
    .size = { { "rows", 128, 1, 4096 }, { "columns", 256, 256, 4096 }, { "hidden", 512, 256, 4096 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_INPUT] = "x and the weights in FP8",
                [NUM_CAST] = "the hidden layer in FP8",
                [NUM_ARITHMETIC] = "binary32 scales",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of gelu_apprx_tanh",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run_fp8,
};

/* ---- a scale for each 32 numbers ----
 *
 * Four numbers of K share a PE: element 4 p + i of a group of 512 is slot i of partition p, and what a matmul reads is
 * [partitions, columns, 4]. The hidden layer is made that way: its piece i takes every fourth hidden unit, beginning
 * with unit i, and writes every fourth element.
 */

enum { GROUP = 512, MOST = 4096 / GROUP };

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
static mx mx_quantise(trn_core *c, mx tile, trn_tensor src)
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
    const mx result = mx_quantise(c, tile, exchanged(raw, 1, 2));
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
    return mx_quantise(c, tile, all);
}

static void mx_program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor w1, trn_tensor w2)
{
    const int64_t n = w1.shape[0], hidden = w1.shape[1], groups = (n + GROUP - 1) / GROUP, pieces = hidden / GROUP;
    mx first[MOST], second[MOST], xs_mx[MOST], hs_mx[MOST], x[MOST], h[MOST];
    for (int64_t k = 0; k < groups; k++) first[k] = load_weights(c, "w1", w1, k), xs_mx[k] = mx_tile(c, "x codes", 128);
    for (int64_t j = 0; j < pieces; j++)
        second[j] = load_weights(c, "w2", w2, j), hs_mx[j] = mx_tile(c, "hidden codes", 128);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), slots = sbuf_pool(c, "x slots", TRN_BF16, 128, 4 * 128, 2);
    pool gelus = sbuf_pool(c, "gelu", TRN_BF16, 128, 4 * 128, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool psum = mlp_transpose_pool(c, 2), sums = psum_pool(c, "x w1", TRN_F32, 128, 128, 2);
    pool results = psum_pool(c, "hidden w2", TRN_F32, 128, MLP_WIDTH, 2);
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
            h[j] = mx_quantise(c, hs_mx[j], gelu);
        }
        for (int64_t i = 0; i < n; i += MLP_WIDTH) {
            const int64_t width = least(MLP_WIDTH, n - i);
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

static void run_mxfp8(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
    const trn_tensor w1 = mlp_normal(r, "w1", n, hidden);
    const trn_tensor w2 = mlp_normal(r, "w2", hidden, n);
    const rule how = { .format = TRN_F8_E4M3FN, .block = true };
    mx_program(r->core, out, in, w1, w2);
    if (trn_core_status(r->core, NULL) == TRN_OK) compare(r, out, in, w1, w2, &how);
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
    .run = run_mxfp8,
};
