/* attention.c - causal attention of one rank's heads: 128 queries at a time against all keys that they see.
 * SPDX-License-Identifier: MIT
 *
 * Keys and values of a head stay in SBUF; a row of scores is there as a whole, so that softmax is the plain one. What
 * the backward pass needs of it are two numbers a row.
 */
#include "attention.h"

#include <math.h>

float attention_scale(int64_t d) { return (float)(1 / sqrt((double)d)); }

/* What both passes have in SBUF and PSUM. */
typedef struct work {
    trn_core *c;
    const attention *a;
    int64_t tokens;
    sheet qkv, out, statistics; /* of all heads */
    trn_tensor kt, vt;          /* [d, T] of a head */
    transposer transposes;
    pool qts, scores, rows, probs, prob_ts, outputs, grads;
} work;

enum { Q, K, V };

static trn_tensor head_part(const work *w, const sheet *s, int which, int64_t head, int64_t tile)
{
    return sheet_part(s, tile, (which * w->a->heads + head) * w->a->d, w->a->d);
}

static work work_of(trn_core *c, const attention *a)
{
    work w = { .c = c, .a = a, .tokens = a->qkv.shape[0] };
    const int64_t all = a->heads * a->d;
    w.qkv = sheet_of(c, "qkv", a->qkv.format, w.tokens, 3 * all);
    w.out = sheet_of(c, "out", a->out.format, w.tokens, all);
    w.statistics = sheet_of(c, "statistics", TRN_F32, w.tokens, 2 * a->heads);
    w.kt = trn_core_sbuf(c, "k transposed", a->qkv.format, a->d, w.tokens);
    w.vt = trn_core_sbuf(c, "v transposed", a->qkv.format, a->d, w.tokens);
    w.transposes = transposer_of(c, a->qkv.format);
    w.qts = sbuf_pool(c, "q transposed", a->qkv.format, TILE, 2);
    w.scores = psum_pool(c, "scores", TRN_F32, BANK, 2);
    w.rows = sbuf_pool(c, "scores", TRN_F32, w.tokens, 2);
    w.probs = sbuf_pool(c, "probabilities", a->qkv.format, w.tokens, 2);
    w.prob_ts = sbuf_pool(c, "prob. transposed", a->qkv.format, TILE, 2);
    w.outputs = psum_pool(c, "outputs", TRN_F32, a->d, 2);
    sheet_load(c, &w.qkv, a->qkv);
    return w;
}

static void transpose_head(work *w, trn_tensor dst, int which, int64_t head)
{
    for (int64_t t = 0; t < tiles_of(w->tokens); t++) {
        const trn_tensor part = head_part(w, &w->qkv, which, head, t);
        transpose_tile(w->c, &w->transposes, columns_of(dst, TILE * t, part.shape[0]), part);
    }
}

/* Scores of a tile of queries against all keys that one of them sees; what a query does not see is far below. */
static trn_tensor scores(work *w, int64_t head, int64_t tile)
{
    trn_core *c = w->c;
    const trn_tensor q = head_part(w, &w->qkv, Q, head, tile);
    const int64_t rows = q.shape[0], first = TILE * tile;
    const trn_tensor qt = turn(&w->qts, w->a->d, rows), out = turn(&w->rows, rows, first + rows);
    const trn_tensor corner = columns_of(out, first, rows);
    const trn_pattern less_key = { 1, { { -1, (int32_t)rows } } };
    transpose_tile(c, &w->transposes, qt, q);
    multiply_row(c, &w->scores, out, qt, w->kt);
    nisa(affine_select, .dst = corner, .on_true_tile = corner, .on_false_value = MASKED,
         .cmp_op = TRN_ALU_GREATER_EQUAL, .pattern = less_key, .channel_multiplier = 1);
    return out;
}

/* dst [queries, d] of PSUM = p times the keys or values of a head. */
static void times_head(work *w, trn_tensor dst, trn_tensor p, int which, int64_t head)
{
    const int64_t d = w->a->d;
    multiply_by_sheet(w->c, &w->transposes, &w->prob_ts, dst, p, &w->qkv, (which * w->a->heads + head) * d);
}

/* ---- forward ---- */

static void forward_tile(work *w, int64_t head, int64_t tile)
{
    trn_core *c = w->c;
    const float scale = attention_scale(w->a->d);
    const trn_tensor row = scores(w, head, tile), p = turn(&w->probs, row.shape[0], row.shape[1]);
    const trn_tensor low = sheet_part(&w->statistics, tile, 2 * head, 1);
    const trn_tensor sum = sheet_part(&w->statistics, tile, 2 * head + 1, 1);
    const trn_tensor output = turn(&w->outputs, row.shape[0], w->a->d);
    nisa(tensor_reduce, .dst = low, .data = row, .op = TRN_ALU_MAXIMUM);
    nisa(tensor_scalar, .dst = low, .data = low, .op0 = TRN_ALU_MULTIPLY, .operand0 = -scale);
    nisa(activation, .dst = p, .src = row, .op = TRN_ACT_EXP, .scale = scale, .bias_tile = low, .reduce_res = sum,
         .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    nisa(reciprocal, .dst = sum, .data = sum);
    times_head(w, output, p, V, head);
    nisa(tensor_scalar, .dst = sheet_part(&w->out, tile, head * w->a->d, w->a->d), .data = output,
         .op0 = TRN_ALU_MULTIPLY, .operand0_tile = sum);
}

void attention_forward(trn_core *c, const attention *a)
{
    const size_t mark = trn_core_mark(c);
    work w = work_of(c, a);
    for (int64_t head = 0; head < a->heads; head++) {
        transpose_head(&w, w.kt, K, head);
        for (int64_t t = 0; t < tiles_of(w.tokens); t++) forward_tile(&w, head, t);
    }
    sheet_store(c, a->out, &w.out);
    sheet_store(c, a->statistics, &w.statistics);
    trn_core_release(c, mark);
}

/* ---- backward ---- */

typedef struct gradients {
    sheet dout, dqkv;
    sheet dk, dv; /* of a head, in binary32: every tile of queries adds to them */
    pool dots, weights;
} gradients;

/* sum += left^T right for every tile of keys; left [queries, keys], right [queries, d]. */
static void add_to_keys(work *w, const sheet *sum, trn_tensor left, trn_tensor right)
{
    trn_core *c = w->c;
    for (int64_t t = 0; t < tiles_of(left.shape[1]); t++) {
        const trn_tensor to = sheet_part(sum, t, 0, w->a->d);
        const trn_tensor part = turn(&w->grads, to.shape[0], w->a->d);
        nisa(nc_matmul, .dst = part, .stationary = columns_of(left, TILE * t, to.shape[0]), .moving = right);
        nisa(tensor_tensor, .dst = to, .data1 = to, .data2 = part, .op = TRN_ALU_ADD);
    }
}

/* With p the probabilities: dp = dout v^T, ds = p (dp - dout . out), dq = ds k, dk = ds^T q, dv = p^T dout; dq and dk
 * are scaled at the end. */
static void backward_tile(work *w, gradients *g, int64_t head, int64_t tile)
{
    trn_core *c = w->c;
    const int64_t d = w->a->d;
    const trn_tensor dout = sheet_part(&g->dout, tile, head * d, d), out = sheet_part(&w->out, tile, head * d, d);
    const trn_tensor row = scores(w, head, tile), p = turn(&w->probs, row.shape[0], row.shape[1]);
    const trn_tensor low = sheet_part(&w->statistics, tile, 2 * head, 1);
    const trn_tensor inverse = sheet_part(&w->statistics, tile, 2 * head + 1, 1);
    const trn_tensor dot = turn(&g->dots, row.shape[0], 1), weight = turn(&g->weights, row.shape[0], d);
    const trn_tensor dout_t = turn(&w->qts, d, row.shape[0]), dq = turn(&w->outputs, row.shape[0], d);
    nisa(activation, .dst = row, .src = row, .op = TRN_ACT_EXP, .scale = attention_scale(d), .bias_tile = low);
    nisa(tensor_scalar, .dst = row, .data = row, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse);
    nisa(tensor_copy, .dst = p, .src = row);
    add_to_keys(w, &g->dv, p, dout);

    nisa(tensor_tensor, .dst = weight, .data1 = dout, .data2 = out, .op = TRN_ALU_MULTIPLY);
    nisa(tensor_reduce, .dst = dot, .data = weight, .op = TRN_ALU_ADD);
    const trn_tensor dp = turn(&w->rows, row.shape[0], row.shape[1]);
    transpose_tile(c, &w->transposes, dout_t, dout);
    multiply_row(c, &w->scores, dp, dout_t, w->vt);
    const trn_tensor ds = turn(&w->probs, row.shape[0], row.shape[1]);
    nisa(scalar_tensor_tensor, .dst = ds, .data = dp, .op0 = TRN_ALU_SUBTRACT, .operand0_tile = dot,
         .op1 = TRN_ALU_MULTIPLY, .operand1 = row);
    add_to_keys(w, &g->dk, ds, head_part(w, &w->qkv, Q, head, tile));
    times_head(w, dq, ds, K, head);
    nisa(tensor_scalar, .dst = head_part(w, &g->dqkv, Q, head, tile), .data = dq, .op0 = TRN_ALU_MULTIPLY,
         .operand0 = attention_scale(d));
}

static gradients gradients_of(work *w, trn_tensor dout)
{
    trn_core *c = w->c;
    const attention *a = w->a;
    gradients g = { .dout = sheet_of(c, "dout", dout.format, w->tokens, a->heads * a->d),
                    .dqkv = sheet_of(c, "dqkv", a->qkv.format, w->tokens, 3 * a->heads * a->d),
                    .dk = sheet_of(c, "dk", TRN_F32, w->tokens, a->d),
                    .dv = sheet_of(c, "dv", TRN_F32, w->tokens, a->d),
                    .dots = sbuf_pool(c, "dout . out", TRN_F32, 1, 2),
                    .weights = sbuf_pool(c, "dout out", TRN_F32, a->d, 2) };
    w->grads = psum_pool(c, "dk, dv", TRN_F32, a->d, 2);
    sheet_load(c, &g.dout, dout);
    sheet_load(c, &w->out, a->out);
    sheet_load(c, &w->statistics, a->statistics);
    return g;
}

void attention_backward(trn_core *c, const attention *a, trn_tensor dout, trn_tensor dqkv)
{
    const size_t mark = trn_core_mark(c);
    work w = work_of(c, a);
    gradients g = gradients_of(&w, dout);
    for (int64_t head = 0; head < a->heads; head++) {
        transpose_head(&w, w.kt, K, head);
        transpose_head(&w, w.vt, V, head);
        nisa(memset, .dst = g.dk.all, .value = 0, .engine = TRN_ENGINE_GPSIMD);
        nisa(memset, .dst = g.dv.all, .value = 0, .engine = TRN_ENGINE_GPSIMD);
        for (int64_t t = 0; t < tiles_of(w.tokens); t++) backward_tile(&w, &g, head, t);
        for (int64_t t = 0; t < tiles_of(w.tokens); t++) {
            nisa(tensor_scalar, .dst = head_part(&w, &g.dqkv, K, head, t), .data = sheet_part(&g.dk, t, 0, a->d),
                 .op0 = TRN_ALU_MULTIPLY, .operand0 = attention_scale(a->d));
            nisa(tensor_copy, .dst = head_part(&w, &g.dqkv, V, head, t), .src = sheet_part(&g.dv, t, 0, a->d));
        }
    }
    sheet_store(c, dqkv, &g.dqkv);
    trn_core_release(c, mark);
}
