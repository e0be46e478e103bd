/* flash_attention.c - causal attention, forward: softmax(q k^T / sqrt(d)) v without ever holding all scores.
 * SPDX-License-Identifier: MIT
 *
 * A step is 128 queries against up to 512 keys. Each engine has a part of it:
 *     TensorE   scores q k^T, the diagonal masked; the probabilities transposed; their product with v
 *     VectorE   the running maximum; transposed probabilities out of PSUM; the sum of outputs
 *     ScalarE   exp(scores - maximum) with its row sums; by how much older outputs shrink; copies
 *     GpSimd    the mask; older outputs and sums shrunk; the last division
 *     DMA       queries, keys, values in; outputs out
 * and each part is asked for a step before the next one needs it, so that six steps are on their way at a time.
 */
#include "flash_attention.h"

static flash_state *state_of(flash *f, int64_t i) { return &f->ring[i & 7]; }

static trn_tensor tile_of(trn_tensor all, int64_t d, int64_t row) { return columns_of(all, row / 128 * d, d); }

/* [128, d] to [d, 128]: the array transposes into PSUM, the Scalar engine fetches. */
static void transpose(flash *f, trn_tensor dst, trn_tensor src)
{
    trn_core *c = f->c;
    const trn_tensor t = turn(&f->transposed, f->d);
    nisa(nc_transpose, .dst = t, .data = src);
    nisa(activation, .dst = dst, .src = t, .op = TRN_ACT_COPY);
}

static void fetch(flash *f, int64_t i)
{
    flash_state *s = state_of(f, i), *before = state_of(f, i - 1);
    const flash_step *t = &s->at;
    s->at = before->at;
    if (i)
        flash_next(&s->at, f->rows);
    else
        s->at = flash_first();
    s->qt = t->begins ? turn(&f->qts, f->d) : before->qt;
    if (t->begins) transpose(f, s->qt, tile_of(f->q, f->d, t->q));
    for (; f->turned < t->first + t->keys; f->turned += 128)
        transpose(f, columns_of(f->kt, f->turned, 128), tile_of(f->k, f->d, f->turned));
}

static void score(flash *f, int64_t i)
{
    trn_core *c = f->c;
    flash_state *s = state_of(f, i);
    const flash_step *t = &s->at;
    s->score = columns_of(turn(&f->scores, 128), 0, t->keys);
    nisa(nc_matmul, .dst = s->score, .stationary = s->qt, .moving = columns_of(f->kt, t->first, t->keys));
    if (t->ends)
        nisa(nc_matmul, .dst = columns_of(s->score, t->keys - 128, 128), .stationary = f->identity, .moving = f->mask,
             .accumulate = true);
}

/* Probabilities, not yet divided by their sum. low = -scale * maximum so far: the bias of the exponential. */
static void exponentiate(flash *f, int64_t i)
{
    trn_core *c = f->c;
    flash_state *s = state_of(f, i), *before = state_of(f, i - 1);
    const trn_tensor number = turn(&f->numbers, 128), top = columns_of(number, 0, 1), none = { .rank = 0 };
    const bool begins = s->at.begins;
    s->low = columns_of(number, 1, 1), s->sum = columns_of(number, 2, 1), s->factor = columns_of(number, 3, 1);
    s->total = columns_of(number, begins ? 2 : 4, 1), s->share = columns_of(number, 5, 1);
    s->prob = columns_of(turn(&f->probs, 128), 0, s->at.keys);
    nisa(tensor_reduce, .dst = top, .data = s->score, .op = TRN_ALU_MAXIMUM);
    nisa(tensor_scalar, .dst = s->low, .data = top, .op0 = TRN_ALU_MULTIPLY, .operand0 = -f->scale,
         .op1 = begins ? TRN_ALU_BYPASS : TRN_ALU_MINIMUM, .operand1_tile = begins ? none : before->low);
    nisa(activation, .dst = s->prob, .src = s->score, .op = TRN_ACT_EXP, .scale = f->scale, .bias_tile = s->low,
         .reduce_res = s->sum, .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
    if (!begins)
        nisa(activation, .dst = s->factor, .src = before->low, .op = TRN_ACT_EXP, .scale = -1, .bias_tile = s->low);
}

static void multiply(flash *f, int64_t step)
{
    trn_core *c = f->c;
    flash_state *s = state_of(f, step);
    const trn_tensor psum = turn(&f->prob_psum, 128), prob_t = turn(&f->prob_ts, 128);
    s->output = turn(&f->outputs, 128);
    for (int64_t i = 0; i < s->at.keys; i += 128)
        nisa(nc_transpose, .dst = columns_of(psum, i, 128), .data = columns_of(s->prob, i, 128));
    nisa(tensor_copy, .dst = columns_of(prob_t, 0, s->at.keys), .src = columns_of(psum, 0, s->at.keys));
    for (int64_t i = 0; i < s->at.keys; i += 128)
        nisa(nc_matmul, .dst = s->output, .stationary = columns_of(prob_t, i, 128),
             .moving = tile_of(f->v, f->d, s->at.first + i), .accumulate = i > 0);
}

/* What the maximum of this step makes of older outputs and sums. */
static void shrink(flash *f, int64_t i)
{
    trn_core *c = f->c;
    flash_state *s = state_of(f, i), *before = state_of(f, i - 1);
    s->acc = s->at.begins ? turn(&f->accs, 128) : before->acc;
    if (s->at.begins) return;
    nisa(tensor_scalar, .dst = s->acc, .data = s->acc, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = s->factor,
         .engine = TRN_ENGINE_GPSIMD);
    nisa(tensor_scalar, .dst = s->total, .data = before->total, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = s->factor,
         .op1 = TRN_ALU_ADD, .operand1_tile = s->sum, .engine = TRN_ENGINE_GPSIMD);
}

static void add(flash *f, int64_t i, trn_tensor out)
{
    trn_core *c = f->c;
    flash_state *s = state_of(f, i);
    if (s->at.begins)
        nisa(activation, .dst = s->acc, .src = s->output, .op = TRN_ACT_COPY);
    else
        nisa(tensor_tensor, .dst = s->acc, .data1 = s->acc, .data2 = s->output, .op = TRN_ALU_ADD);
    if (!s->at.ends) return;
    const trn_tensor y = turn(&f->ys, 128);
    nisa(reciprocal, .dst = s->share, .data = s->total);
    nisa(tensor_scalar, .dst = y, .data = s->acc, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = s->share,
         .engine = TRN_ENGINE_GPSIMD);
    nisa(dma_copy, .dst = rows_of(out, s->at.q, 128), .src = y);
}

void flash_attention(trn_core *c, trn_tensor out, trn_tensor q, trn_tensor k, trn_tensor v)
{
    flash f = { .c = c, .rows = q.shape[0], .d = q.shape[1], .scale = flash_scale(q.shape[1]) };
    int64_t steps = 1;
    for (flash_step t = flash_first(); flash_next(&t, f.rows);) steps++;
    flash_room(&f);
    flash_mask(&f);
    for (int64_t i = 0; i < f.rows; i += 128) {
        nisa(dma_copy, .dst = tile_of(f.q, f.d, i), .src = rows_of(q, i, 128));
        nisa(dma_copy, .dst = tile_of(f.k, f.d, i), .src = rows_of(k, i, 128));
        nisa(dma_copy, .dst = tile_of(f.v, f.d, i), .src = rows_of(v, i, 128));
    }
    for (int64_t i = 0; i < steps + 5; i++) {
        if (i >= 5) shrink(&f, i - 5);
        if (i < steps) fetch(&f, i);
        if (i >= 1 && i - 1 < steps) score(&f, i - 1);
        if (i >= 2 && i - 2 < steps) exponentiate(&f, i - 2);
        if (i >= 4 && i - 4 < steps) multiply(&f, i - 4); /* two later: the exponentials take long */
        if (i >= 5) add(&f, i - 5, out);
    }
}
