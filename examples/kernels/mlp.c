/* mlp.c - two layers in bfloat16: gelu(x w1 + b1) w2 + b2, and (silu(x gate) * (x up)) down.
 * SPDX-License-Identifier: MIT
 *
 * The hidden layer is made transposed, hidden units on partitions, so that it is stationary in the second product. The
 * two kernels differ in how 128 units of it are made, and in what is added at the end.
 */
#include "mlp.h"

trn_tensor mlp_normal(kernel_run *r, const char *name, int64_t rows, int64_t columns)
{
    return kernel_normal(r, name, TRN_BF16, rows, columns, 0, kernel_sigma(rows));
}

trn_tensor mlp_tile(trn_tensor weights, int64_t columns, int64_t k)
{
    return columns_of(weights, k * columns, columns);
}

trn_tensor mlp_weights(trn_core *c, const char *name, trn_tensor w)
{
    const int64_t tiles = w.shape[0] / 128, columns = w.shape[1];
    const trn_tensor all = trn_core_sbuf(c, name, w.format, 128, tiles * columns);
    for (int64_t k = 0; k < tiles; k++)
        nisa(dma_copy, .dst = mlp_tile(all, columns, k), .src = rows_of(w, 128 * k, 128));
    return all;
}

pool mlp_transpose_pool(trn_core *c, int count)
{
    const bool mode = trn_core_spec_of(c->args.generation)->transpose_mode;
    return psum_pool(c, "transposed", mode ? TRN_BF16 : TRN_F32, 128, 128, count);
}

/* ---- the frame of both kernels ---- */

/* Of a kernel: its weights in HBM, then what of it is in SBUF and PSUM. */
typedef struct mlp {
    trn_core *c;
    trn_tensor gate, up, down, b1, b2; /* [n, hidden], [n, hidden], [hidden, n], [1, hidden], [1, n] */
    bool gated;                        /* gate, or b1 and b2 */
    int64_t n, hidden;
    pool xs, xts, hiddens, ys, silus, transposed, gates, ups, results;
} mlp;

/* dst [128, tokens] of PSUM: 128 columns of x w, transposed. */
static void project(const mlp *m, trn_tensor dst, trn_tensor w, int64_t first, trn_tensor xt)
{
    trn_core *c = m->c;
    const int64_t tokens = dst.shape[1];
    for (int64_t k = 0; k < m->n / 128; k++)
        nisa(nc_matmul, .dst = dst, .stationary = columns_of(mlp_tile(w, m->hidden, k), first, 128),
             .moving = mlp_tile(xt, tokens, k), .accumulate = k > 0);
}

/* Hidden units [128 j, 128 j + 128) on partitions: bias and gelu in one instruction. */
static void gelu_units(mlp *m, trn_tensor dst, int64_t j, trn_tensor xt)
{
    trn_core *c = m->c;
    const trn_tensor sum = columns_of(turn(&m->ups, 128), 0, dst.shape[1]);
    project(m, sum, m->up, 128 * j, xt);
    nisa(activation, .dst = dst, .src = sum, .op = TRN_ACT_GELU_APPRX_TANH, .bias_tile = columns_of(m->b1, j, 1));
}

/* The gate by the Scalar engine, its product by the Vector engine. */
static void swiglu_units(mlp *m, trn_tensor dst, int64_t j, trn_tensor xt)
{
    trn_core *c = m->c;
    const int64_t tokens = dst.shape[1];
    const trn_tensor g = columns_of(turn(&m->gates, 128), 0, tokens), u = columns_of(turn(&m->ups, 128), 0, tokens);
    const trn_tensor silu = columns_of(turn(&m->silus, 128), 0, tokens);
    project(m, g, m->gate, 128 * j, xt);
    project(m, u, m->up, 128 * j, xt);
    nisa(activation, .dst = silu, .src = g, .op = TRN_ACT_SILU);
    nisa(tensor_tensor, .dst = dst, .data1 = silu, .data2 = u, .op = TRN_ALU_MULTIPLY);
}

/* y [tokens, n] = h w2 (+ b2), h transposed. */
static void second_layer(mlp *m, trn_tensor y, trn_tensor h)
{
    trn_core *c = m->c;
    const int64_t tokens = y.shape[0];
    for (int64_t i = 0; i < m->n; i += MLP_WIDTH) {
        const int64_t width = least(MLP_WIDTH, m->n - i);
        const trn_tensor result = columns_of(turn(&m->results, tokens), 0, width), part = columns_of(y, i, width);
        for (int64_t j = 0; j < m->hidden / 128; j++)
            nisa(nc_matmul, .dst = result, .stationary = mlp_tile(h, tokens, j),
                 .moving = columns_of(mlp_tile(m->down, m->n, j), i, width), .accumulate = j > 0);
        if (m->gated)
            nisa(tensor_copy, .dst = part, .src = result);
        else
            nisa(tensor_tensor, .dst = part, .data1 = result, .data2 = columns_of(rows_of(m->b2, 0, tokens), i, width),
                 .op = TRN_ALU_ADD);
    }
}

/* Tokens x [tokens, n] as xt [128, n / 128 * tokens]: the array transposes. */
static void transpose(mlp *m, trn_tensor xt, trn_tensor x)
{
    trn_core *c = m->c;
    const int64_t tokens = x.shape[0];
    for (int64_t k = 0; k < m->n / 128; k++) {
        const trn_tensor t = columns_of(turn(&m->transposed, 128), 0, tokens);
        nisa(nc_transpose, .dst = t, .data = columns_of(x, 128 * k, 128));
        nisa(tensor_copy, .dst = mlp_tile(xt, tokens, k), .src = t);
    }
}

static void biases_to_sbuf(mlp *m)
{
    trn_core *c = m->c;
    const trn_tensor b1 = m->b1, b2 = m->b2;
    m->b1 = trn_core_sbuf(c, "b1", TRN_F32, 128, m->hidden / 128);
    m->b2 = trn_core_sbuf(c, "b2", TRN_F32, 128, m->n);
    /* Bias p of piece k belongs to partition p: a DMA with the two axes exchanged. */
    nisa(dma_copy, .dst = m->b1, .src = trn_tensor_transposed(trn_tensor_split(trn_tensor_merge(b1, 0), 0, 128)));
    nisa(dma_copy, .dst = m->b2, .src = trn_tensor_broadcast(b2, 0, 128));
}

static void to_sbuf(mlp *m)
{
    trn_core *c = m->c;
    if (m->gated) m->gate = mlp_weights(c, "gate", m->gate);
    m->up = mlp_weights(c, m->gated ? "up" : "w1", m->up);
    m->down = mlp_weights(c, m->gated ? "down" : "w2", m->down);
    if (!m->gated) biases_to_sbuf(m);
    m->xs = sbuf_pool(c, "x", TRN_BF16, 128, m->n, 2);
    m->xts = sbuf_pool(c, "x transposed", TRN_BF16, 128, m->n, 2);
    m->hiddens = sbuf_pool(c, "hidden", TRN_BF16, 128, m->hidden, 2);
    m->ys = sbuf_pool(c, "y", TRN_BF16, 128, m->n, 2);
    m->transposed = mlp_transpose_pool(c, 2);
    if (m->gated) m->silus = sbuf_pool(c, "silu", TRN_F32, 128, 128, 2);
    if (m->gated) m->gates = psum_pool(c, "x gate", TRN_F32, 128, 128, 2);
    m->ups = psum_pool(c, m->gated ? "x up" : "x w1", TRN_F32, 128, 128, 2);
    m->results = psum_pool(c, m->gated ? "hidden down" : "hidden w2", TRN_F32, 128, MLP_WIDTH, 2);
}

static void program(mlp m, trn_tensor out, trn_tensor in)
{
    trn_core *c = m.c;
    to_sbuf(&m);
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor x = turn(&m.xs, tokens), xt = columns_of(turn(&m.xts, 128), 0, m.n / 128 * tokens);
        const trn_tensor h = columns_of(turn(&m.hiddens, 128), 0, m.hidden / 128 * tokens), y = turn(&m.ys, tokens);
        nisa(dma_copy, .dst = x, .src = rows_of(in, t, tokens));
        transpose(&m, xt, x);
        for (int64_t j = 0; j < m.hidden / 128; j++) {
            const trn_tensor units = mlp_tile(h, tokens, j);
            if (m.gated)
                swiglu_units(&m, units, j, xt);
            else
                gelu_units(&m, units, j, xt);
        }
        second_layer(&m, y, h);
        nisa(dma_copy, .dst = rows_of(out, t, tokens), .src = y);
    }
}

/* ---- what they should give ---- */

typedef struct reference {
    num_matrix gate, up, down;
    const double *b1, *b2;
    num *x, *g, *u, *y; /* [n], [hidden], [hidden], [n] */
} reference;

static void one_row(const mlp *m, reference *k)
{
    const int64_t n = m->n, hidden = m->hidden;
    num_dots(k->u, k->x, &k->up, n, hidden, num_depth(n, n / 128));
    if (m->gated) num_dots(k->g, k->x, &k->gate, n, hidden, num_depth(n, n / 128));
    for (int64_t j = 0; j < hidden; j++) {
        const num unit = m->gated ? num_f32(num_mul(num_table(NUM_SILU, k->g[j]), k->u[j]))
                                  : num_table(NUM_GELU, num_f32(num_add(k->u[j], num_of(k->b1[j]))));
        k->u[j] = num_round(unit, TRN_BF16, NUM_CAST);
    }
    num_dots(k->y, k->u, &k->down, hidden, n, num_depth(hidden, hidden / 128));
    for (int64_t j = 0; j < n; j++) {
        const num y = m->gated ? k->y[j] : num_f32(num_add(k->y[j], num_of(k->b2[j])));
        k->y[j] = num_round(y, TRN_BF16, NUM_OUTPUT);
    }
}

static void run(kernel_run *r, bool gated)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
    mlp m = { .c = r->core, .gated = gated, .n = n, .hidden = hidden };
    if (gated) m.gate = mlp_normal(r, "gate", n, hidden);
    m.up = mlp_normal(r, gated ? "up" : "w1", n, hidden);
    m.down = mlp_normal(r, gated ? "down" : "w2", hidden, n);
    if (!gated) m.b1 = kernel_normal(r, "b1", TRN_F32, 1, hidden, 0, 0.1);
    if (!gated) m.b2 = kernel_normal(r, "b2", TRN_F32, 1, n, 0, 0.1);
    program(m, out, in);
    if (trn_core_status(r->core, NULL)) return;

    reference k = { .up.v = kernel_values(r, m.up),
                    .down.v = kernel_values(r, m.down),
                    .x = kernel_nums(r, n),
                    .g = kernel_nums(r, hidden),
                    .u = kernel_nums(r, hidden),
                    .y = kernel_nums(r, n) };
    if (gated) k.gate.v = kernel_values(r, m.gate);
    if (!gated) k.b1 = kernel_values(r, m.b1), k.b2 = kernel_values(r, m.b2);
    const double *x = kernel_values(r, in);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) k.x[j] = num_of(x[i * n + j]);
        one_row(&m, &k);
        kernel_compare(r, rows_of(out, i, 1), k.y);
    }
}

static void run_gelu(kernel_run *r) { run(r, false); }
static void run_swiglu(kernel_run *r) { run(r, true); }

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
    .run = run_gelu,
};

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
    .run = run_swiglu,
};
