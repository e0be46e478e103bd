/* softmax.c - softmax of each row, and of the largest numbers of each row: the router of a mixture of experts.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <math.h>

/* ---- of whole rows: the largest number first, so that no exponential is above 1 ---- */

/* A tile of rows, with columns along the partitions; number: maximum, sum, 1 / sum. */
typedef struct tile {
    trn_tensor e, number, out;
} tile;

/* Exponentials and their sum. */
static void begin(trn_core *c, const tile *t, trn_tensor x, trn_tensor in)
{
    const trn_tensor top = columns_of(t->number, 0, 1), sum = columns_of(t->number, 1, 1);
    nisa(dma_copy, .dst = x, .src = in);
    if (c->args.generation == TRN_TRAINIUM3) { /* the Vector engine does all three in one instruction */
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

static void run_softmax(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, n);
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
    .run = run_softmax,
};

/* ---- of the best experts of each token, found eight at a time ---- */

static void route(trn_core *c, trn_tensor weights, trn_tensor experts, trn_tensor in)
{
    const int64_t n = in.shape[1], top = weights.shape[1];
    pool xs = sbuf_pool(c, "logits", TRN_F32, 128, n, 2), rests = sbuf_pool(c, "rest", TRN_F32, 128, n, 2);
    pool bests = sbuf_pool(c, "best", TRN_F32, 128, top, 2), indices = sbuf_pool(c, "index", TRN_U32, 128, top, 2);
    pool ys = sbuf_pool(c, "weights", TRN_F32, 128, top, 2), numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 3, 2);
    for (int64_t first = 0; first < in.shape[0]; first += 128) {
        const int64_t p = least(128, in.shape[0] - first);
        const trn_tensor best = turn(&bests, p), index = turn(&indices, p), y = turn(&ys, p),
                         number = turn(&numbers, p);
        const trn_tensor low = columns_of(number, 0, 1), sum = columns_of(number, 1, 1),
                         scale = columns_of(number, 2, 1);
        trn_tensor x = turn(&xs, p);
        nisa(dma_copy, .dst = x, .src = rows_of(in, first, p));
        for (int64_t i = 0; i < top; i += 8) { /* eight values, where they are, and away with them */
            const trn_tensor eight = columns_of(best, i, 8), rest = turn(&rests, p);
            nisa(max8, .dst = eight, .src = x);
            nisa(nc_find_index8, .dst = columns_of(index, i, 8), .data = x, .vals = eight);
            if (i + 8 < top) nisa(nc_match_replace8, .dst = rest, .data = x, .vals = eight, .imm = -INFINITY);
            x = rest;
        }
        nisa(dma_copy, .dst = rows_of(experts, first, p), .src = index);
        nisa(tensor_scalar, .dst = low, .data = columns_of(best, 0, 1), .op0 = TRN_ALU_MULTIPLY, .operand0 = -1);
        nisa(activation, .dst = y, .src = best, .op = TRN_ACT_EXP, .bias_tile = low, .reduce_res = sum,
             .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
        nisa(reciprocal, .dst = scale, .data = sum);
        nisa(tensor_scalar, .dst = y, .data = y, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = scale);
        nisa(dma_copy, .dst = rows_of(weights, first, p), .src = y);
    }
}

/* Experts in falling order of their logits; of equal ones the earlier first. */
static void choose(int64_t *expert, const double *x, int64_t n, int64_t top)
{
    for (int64_t k = 0; k < top; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            bool taken = false;
            for (int64_t j = 0; j < k; j++) taken = taken || expert[j] == i;
            if (!taken && (best < 0 || x[i] > x[best])) best = i;
        }
        expert[k] = best;
    }
}

static void run_router(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], top = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_F32), weights = kernel_tensor(r, "weights", TRN_F32, rows, top);
    const trn_tensor experts = kernel_tensor(r, "experts", TRN_U32, rows, top);
    route(r->core, weights, experts, in);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in);
    int64_t *expert = (int64_t *)kernel_memory(r, (size_t)top * sizeof(int64_t));
    num *y = kernel_nums(r, top);
    for (int64_t i = 0; i < rows; i++) { /* the choice is exact, its weights are not */
        const double *row = x + i * n;
        choose(expert, row, n, top);
        for (int64_t k = 0; k < top; k++) y[k] = num_table(NUM_EXP, num_f32(num_of(row[expert[k]] - row[expert[0]])));
        const num scale = num_f32(num_divide(num_of(1), num_sum(y, top)));
        for (int64_t k = 0; k < top; k++) y[k] = num_round(num_mul(y[k], scale), TRN_F32, NUM_OUTPUT);
        kernel_compare(r, rows_of(weights, i, 1), y);
        kernel_compare_exactly(r, rows_of(experts, i, 1), expert);
    }
}

const kernel kernel_topk_router = {
    .name = "topk_router",
    .about = "the `top` largest logits of each row, their columns, and a softmax over them",
    .size = { { "rows", 256, 1, 1 << 14 }, { "columns", 128, 8, 4096 }, { "top", 8, 8, 64 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_ARITHMETIC] = "binary32 sums and products",
                [NUM_TABLE] = "the table of exp",
                [NUM_OUTPUT] = "the output in float32" },
    .run = run_router,
};
