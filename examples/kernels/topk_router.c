/* topk_router.c - the best experts of each token, eight at a time, and a softmax over those that were chosen.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <math.h>

static void program(trn_core *c, trn_tensor weights, trn_tensor experts, trn_tensor in)
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

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], top = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_F32), weights = kernel_room(r, "weights", TRN_F32, rows, top);
    const trn_tensor experts = kernel_room(r, "experts", TRN_U32, rows, top);
    program(r->core, weights, experts, in);
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
    .run = run,
};
