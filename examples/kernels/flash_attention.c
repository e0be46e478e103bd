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
#include "kernel.h"

#include <math.h>

#define MASKED (-0x1p100f) /* so far below any score that its exponential is 0, and no infinity to multiply with */

enum { FLASH_KEYS = 512 };

/* Queries [q, q + 128) against keys [first, first + keys). */
typedef struct flash_step {
    int64_t q, first, keys;
    bool begins, ends; /* the first block of these queries; the last, whose last 128 keys are masked */
} flash_step;

/* What a step leaves for later ones. numbers: of a row. */
typedef struct flash_state {
    flash_step at;
    trn_tensor qt, score, prob, output, acc, low, sum, factor, total, inverse;
} flash_state;

typedef struct flash {
    trn_core *c;
    trn_tensor q, k, v, kt;      /* SBUF: [128, rows / 128 * d] each; keys transposed [d, rows] */
    trn_tensor identity, mask;   /* [128, 128]: identity^T mask, added to a block of scores, hides what comes later */
    int64_t rows, d, keys_ready; /* how many keys are transposed by now */
    float scale;
    flash_state ring[8]; /* of the steps on their way */
    pool transposed, qts, scores, probs, prob_psum, prob_ts, outputs, accs, numbers, ys;
} flash;

static flash_step first_step(void) { return (flash_step){ 0, 0, 128, true, true }; }

static bool next_step(flash_step *t, int64_t rows)
{
    if (t->ends && t->q + 128 >= rows) return false;
    t->begins = t->ends;
    t->first = t->ends ? 0 : t->first + t->keys;
    t->q += t->ends ? 128 : 0;
    t->keys = least(FLASH_KEYS, t->q + 128 - t->first);
    t->ends = t->first + t->keys == t->q + 128;
    return true;
}

static float scale_of(int64_t d) { return (float)(1 / sqrt((double)d)); }

/* ---- its tiles: how many of each may be in use at a time ---- */

static void make_tiles(flash *f)
{
    trn_core *c = f->c;
    const int64_t d = f->d, all = f->rows / 128 * d;
    const trn_format transposed = trn_core_spec_of(c->args.generation)->transpose_mode ? TRN_BF16 : TRN_F32;
    f->q = trn_core_sbuf(c, "q", TRN_BF16, 128, all);
    f->k = trn_core_sbuf(c, "k", TRN_BF16, 128, all);
    f->v = trn_core_sbuf(c, "v", TRN_BF16, 128, all);
    f->kt = trn_core_sbuf(c, "k transposed", TRN_BF16, d, f->rows);
    f->identity = trn_core_sbuf(c, "identity", TRN_BF16, 128, 128);
    f->mask = trn_core_sbuf(c, "mask", TRN_BF16, 128, 128);
    f->qts = sbuf_pool(c, "q transposed", TRN_BF16, d, 128, 6);
    f->probs = sbuf_pool(c, "probabilities", TRN_BF16, 128, FLASH_KEYS, 4);
    f->prob_ts = sbuf_pool(c, "prob. transposed", TRN_BF16, 128, FLASH_KEYS, 2);
    f->accs = sbuf_pool(c, "outputs", TRN_F32, 128, d, 3);
    f->numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 6, 8);
    f->ys = sbuf_pool(c, "y", TRN_BF16, 128, d, 2);
    f->scores = psum_pool(c, "scores", TRN_F32, 128, FLASH_KEYS, 3);
    f->prob_psum = psum_pool(c, "prob. transposed", transposed, 128, FLASH_KEYS, 2);
    f->outputs = psum_pool(c, "probabilities v", TRN_F32, 128, d, 3);
    f->transposed = psum_pool(c, "transposed", transposed, d, 128, 2);
}

/* Query p of the diagonal block sees key j when p - j >= 0. */
static void make_mask(flash *f)
{
    trn_core *c = f->c;
    const trn_pattern less_j = { 1, { { -1, 128 } } };
    nisa(memset, .dst = f->identity, .value = 1, .engine = TRN_ENGINE_GPSIMD);
    nisa(affine_select, .dst = f->identity, .on_true_tile = f->identity, .on_false_value = 0, .cmp_op = TRN_ALU_EQUAL,
         .pattern = less_j, .channel_multiplier = 1);
    nisa(memset, .dst = f->mask, .value = 0, .engine = TRN_ENGINE_GPSIMD);
    nisa(affine_select, .dst = f->mask, .on_true_tile = f->mask, .on_false_value = MASKED,
         .cmp_op = TRN_ALU_GREATER_EQUAL, .pattern = less_j, .channel_multiplier = 1);
}

/* ---- the stages of a step ---- */

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
        next_step(&s->at, f->rows);
    else
        s->at = first_step();
    s->qt = t->begins ? turn(&f->qts, f->d) : before->qt;
    if (t->begins) transpose(f, s->qt, tile_of(f->q, f->d, t->q));
    for (; f->keys_ready < t->first + t->keys; f->keys_ready += 128)
        transpose(f, columns_of(f->kt, f->keys_ready, 128), tile_of(f->k, f->d, f->keys_ready));
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
    s->total = columns_of(number, begins ? 2 : 4, 1), s->inverse = columns_of(number, 5, 1);
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
    nisa(reciprocal, .dst = s->inverse, .data = s->total);
    nisa(tensor_scalar, .dst = y, .data = s->acc, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = s->inverse,
         .engine = TRN_ENGINE_GPSIMD);
    nisa(dma_copy, .dst = rows_of(out, s->at.q, 128), .src = y);
}

static void program(trn_core *c, trn_tensor out, trn_tensor q, trn_tensor k, trn_tensor v)
{
    flash f = { .c = c, .rows = q.shape[0], .d = q.shape[1], .scale = scale_of(q.shape[1]) };
    int64_t steps = 1;
    for (flash_step t = first_step(); next_step(&t, f.rows);) steps++;
    make_tiles(&f);
    make_mask(&f);
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

/* ---- what it should give, and what each rounding on the way may do to it ---- */

typedef struct row {
    const double *q;        /* [d] */
    const double *keys, *v; /* transposed [d, rows]; [rows, d] */
    int64_t rows, d;
    num *query, *p, *part, *y; /* [d], [512], [d], [d] */
    double *key, low;          /* [d, 512] */
    num total;
} row;

/* One block of keys for one query. The maximum may be any number near the largest score, since it divides out: here
 * it is exact, and neither its roundings nor its error count. */
static void block(row *k, int64_t first, int64_t keys)
{
    const double scale = (double)scale_of(k->d), old = k->low;
    for (int64_t i = 0; i < k->d; i++) {
        k->query[i] = num_of(k->q[i]);
        for (int64_t j = 0; j < keys; j++) k->key[i * keys + j] = k->keys[i * k->rows + first + j];
    }
    const num_matrix key = { .v = k->key }, value = { .v = k->v + first * k->d };
    num_dots(k->p, k->query, &key, k->d, keys, num_depth(k->d, 1));
    for (int64_t j = 0; j < keys; j++) k->low = fmin(k->low, -scale * k->p[j].v);
    for (int64_t j = 0; j < keys; j++)
        k->p[j] = num_table(NUM_EXP, num_f32(num_add(num_f32(num_times(k->p[j], scale)), num_of(k->low))));
    const num sum = num_sum(k->p, keys);
    for (int64_t j = 0; j < keys; j++) k->p[j] = num_round(k->p[j], TRN_BF16, NUM_CAST);
    num_dots(first ? k->part : k->y, k->p, &value, keys, k->d, num_depth(128, (keys + 127) / 128));
    if (first) {
        const num factor = num_table(NUM_EXP, num_f32(num_of(k->low - old)));
        for (int64_t i = 0; i < k->d; i++) k->y[i] = num_f32(num_add(num_f32(num_mul(k->y[i], factor)), k->part[i]));
        k->total = num_f32(num_add(num_f32(num_mul(k->total, factor)), sum));
    } else {
        k->total = sum;
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], d = r->size[COLUMNS];
    const trn_tensor q = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, d);
    const trn_tensor keys = kernel_normal(r, "k", TRN_BF16, rows, d, 0, 1),
                     v = kernel_normal(r, "v", TRN_BF16, rows, d, 0, 1);
    program(r->core, out, q, keys, v);
    if (trn_core_status(r->core, NULL)) return;

    const double *query = kernel_values(r, q);
    row k = { .rows = rows,
              .d = d,
              .keys = kernel_values(r, trn_tensor_transposed(keys)),
              .v = kernel_values(r, v),
              .query = kernel_nums(r, d),
              .p = kernel_nums(r, FLASH_KEYS),
              .part = kernel_nums(r, d),
              .y = kernel_nums(r, d),
              .key = (double *)kernel_memory(r, (size_t)(d * FLASH_KEYS) * sizeof(double)) };
    for (int64_t i = 0; i < rows; i++) {
        k.q = query + i * d;
        k.low = HUGE_VAL;
        for (int64_t first = 0; first <= i; first += FLASH_KEYS) block(&k, first, least(FLASH_KEYS, i + 1 - first));
        const num inverse = num_f32(num_divide(num_of(1), k.total));
        for (int64_t j = 0; j < d; j++) k.y[j] = num_round(num_f32(num_mul(k.y[j], inverse)), TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), k.y);
    }
}

const kernel kernel_flash_attention = {
    .name = "flash_attention",
    .about = "causal softmax(q k^T / sqrt(columns)) v, one head, in blocks of 512 keys",
    .size = { { "rows", 1024, 128, 4096 }, { "columns", 128, 32, 128 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_CAST] = "the probabilities in bfloat16",
                [NUM_ARITHMETIC] = "binary32 sums and products",
                [NUM_SUM] = "TensorE's binary32 sums",
                [NUM_TABLE] = "the table of exp",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
