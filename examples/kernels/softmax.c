/* softmax.c - softmax of each row: the largest number first, so that no exponential is above 1.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

/* A tile of rows, with columns along the partitions; number: maximum, sum, 1 / sum. */
typedef struct tile {
    trn_tensor e, number, out;
} tile;

/* Exponentials and their sum. */
static void begin(trn_core *c, const tile *t, trn_tensor x, trn_tensor in)
{
    const trn_tensor top = columns_of(t->number, 0, 1), sum = columns_of(t->number, 1, 1);
    nisa(dma_copy, .dst = x, .src = in);
    if (c->args.generation ==
        TRN_TRAINIUM3) { /* the Vector engine subtracts, exponentiates and adds in one instruction */
        nisa(tensor_reduce, .dst = top, .data = x, .op = TRN_ALU_MAXIMUM);
        nisa(exponential, .dst = t->e, .src = x, .max_value_tile = top, .reduce_res = sum,
             .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    } else { /* before: the Scalar engine, whose bias is added, so it is the maximum negated */
        nisa(tensor_reduce, .dst = top, .data = x, .op = TRN_ALU_MAXIMUM, .negate = true);
        nisa(activation, .dst = t->e, .src = x, .op = TRN_ACT_EXP, .bias_tile = top, .reduce_res = sum,
             .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    }
}

static void end(trn_core *c, const tile *t, trn_tensor y)
{
    const trn_tensor sum = columns_of(t->number, 1, 1), scale = columns_of(t->number, 2, 1);
    nisa(reciprocal, .dst = scale, .data = sum);
    nisa(tensor_scalar, .dst = y, .data = t->e, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = scale);
    nisa(dma_copy, .dst = t->out, .src = y);
}

/* The Vector engine looks for the maximum of the next tile while the Scalar engine exponentiates this one. */
static void program(trn_core *c, trn_tensor out, trn_tensor in)
{
    const int64_t rows = in.shape[0], n = in.shape[1];
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2);
    pool es = sbuf_pool(c, "e", TRN_F32, 128, n, 2), numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 3, 2);
    tile before = { .e = { .rank = 0 } };
    for (int64_t first = 0; first < rows; first += 128) {
        const int64_t p = least(128, rows - first);
        const tile now = { turn(&es, p), turn(&numbers, p), rows_of(out, first, p) };
        begin(c, &now, turn(&xs, p), rows_of(in, first, p));
        if (first) end(c, &before, turn(&ys, 128));
        before = now;
    }
    end(c, &before, turn(&ys, before.out.shape[0]));
}

/* The maximum is exact; x - max rounds once; the exponential has its table's error; n - 1 additions round; so do the
 * reciprocal, the product, and the output. */
static void reference(num *y, const double *x, int64_t n)
{
    double top = x[0];
    for (int64_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    for (int64_t i = 0; i < n; i++) y[i] = num_table(NUM_EXP, num_f32(num_of(x[i] - top)));
    const num scale = num_f32(num_divide(num_of(1), num_sum(y, n)));
    for (int64_t i = 0; i < n; i++) y[i] = num_round(num_f32(num_mul(y[i], scale)), TRN_BF16, NUM_OUTPUT);
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, n);
    program(r->core, out, in);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in);
    num *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        reference(y, x + i * n, n);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_softmax = {
    .name = "softmax",
    .about = "exp(x - max) / sum along each row",
    .size = { { "rows", 256, 1, 1 << 16 }, { "columns", 1024, 1, 8192 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_ARITHMETIC] = "binary32 sums and products",
                [NUM_TABLE] = "the table of exp",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
