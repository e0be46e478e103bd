/* mamba_scan.c - a selective scan: h[t] = exp(delta[t] a) h[t-1] + delta[t] b[t] x[t], y[t] = sum c[t] h[t] + d x[t].
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

typedef struct inputs {
    trn_tensor x, raw, bias, a, b, c,
        d; /* [channels, time] x 2, [channels, 1], [channels, states], [states, time] x 2, [channels, 1] */
} inputs;

/* What the states of one tile of channels share. */
typedef struct tile {
    trn_tensor delta, dx, a, b, c;
    pool decays, drives, hs, parts;
    int64_t p, time;
} tile;

/* h of state s: one instruction of the Vector engine is the whole recurrence. */
static trn_tensor scan(trn_core *c, tile *t, int64_t s)
{
    const trn_tensor decay = turn(&t->decays, t->p), drive = turn(&t->drives, t->p), h = turn(&t->hs, t->p);
    nisa(activation, .dst = decay, .src = t->delta, .op = TRN_ACT_EXP, .scale_tile = columns_of(t->a, s, 1));
    nisa(tensor_tensor, .dst = drive, .data1 = t->dx, .data2 = columns_of(rows_of(t->b, 0, t->p), s * t->time, t->time),
         .op = TRN_ALU_MULTIPLY, .engine = TRN_ENGINE_GPSIMD);
    nisa(tensor_tensor_scan, .dst = h, .data0 = decay, .data1 = drive, .op0 = TRN_ALU_MULTIPLY, .op1 = TRN_ALU_ADD);
    return h;
}

/* Channels on partitions, time along them. The products before and after a scan are GpSimd's, the exponentials the
 * Scalar engine's; the next state is scanned before this one is added, so that neither waits for the other's result. */
static void program(trn_core *c, trn_tensor out, const inputs *in)
{
    const int64_t channels = in->x.shape[0], time = in->x.shape[1], states = in->a.shape[1];
    tile t = { .time = time,
               .b = trn_core_sbuf(c, "b", TRN_BF16, 128, states * time),
               .c = trn_core_sbuf(c, "c", TRN_BF16, 128, states * time),
               .decays = sbuf_pool(c, "decay", TRN_F32, 128, time, 2),
               .drives = sbuf_pool(c, "drive", TRN_F32, 128, time, 2),
               .hs = sbuf_pool(c, "h", TRN_F32, 128, time, 2),
               .parts = sbuf_pool(c, "c h", TRN_F32, 128, time, 2) };
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, time, 2), raws = sbuf_pool(c, "raw", TRN_BF16, 128, time, 2);
    pool deltas = sbuf_pool(c, "delta", TRN_F32, 128, time, 2), dxs = sbuf_pool(c, "delta x", TRN_F32, 128, time, 2);
    pool sums = sbuf_pool(c, "sum", TRN_F32, 128, time, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, time, 2);
    pool params = sbuf_pool(c, "a, bias, d", TRN_F32, 128, states + 2, 2);
    for (int64_t first = 0; first < channels; first += 128) {
        const int64_t p = t.p = least(128, channels - first);
        const trn_tensor x = turn(&xs, p), raw = turn(&raws, p), sum = turn(&sums, p), y = turn(&ys, p),
                         param = turn(&params, p);
        t.delta = turn(&deltas, p), t.dx = turn(&dxs, p), t.a = columns_of(param, 0, states);
        nisa(dma_copy, .dst = raw, .src = rows_of(in->raw, first, p));
        nisa(dma_copy, .dst = columns_of(param, states, 1), .src = rows_of(in->bias, first, p));
        nisa(dma_copy, .dst = x, .src = rows_of(in->x, first, p));
        nisa(dma_copy, .dst = t.a, .src = rows_of(in->a, first, p));
        nisa(dma_copy, .dst = columns_of(param, states + 1, 1), .src = rows_of(in->d, first, p));
        for (int64_t s = 0; s < states && first == 0; s++) { /* the same b and c for all channels */
            nisa(dma_copy, .dst = columns_of(t.b, s * time, time),
                 .src = trn_tensor_broadcast(rows_of(in->b, s, 1), 0, 128));
            nisa(dma_copy, .dst = columns_of(t.c, s * time, time),
                 .src = trn_tensor_broadcast(rows_of(in->c, s, 1), 0, 128));
        }
        nisa(activation, .dst = t.delta, .src = raw, .op = TRN_ACT_SOFTPLUS, .bias_tile = columns_of(param, states, 1));
        nisa(tensor_tensor, .dst = t.dx, .data1 = t.delta, .data2 = x, .op = TRN_ALU_MULTIPLY,
             .engine = TRN_ENGINE_GPSIMD);
        nisa(tensor_scalar, .dst = sum, .data = x, .op0 = TRN_ALU_MULTIPLY,
             .operand0_tile = columns_of(param, states + 1, 1));
        trn_tensor h = scan(c, &t, 0);
        for (int64_t s = 0; s < states; s++) {
            const trn_tensor now = h, part = turn(&t.parts, p);
            if (s + 1 < states) h = scan(c, &t, s + 1);
            nisa(tensor_tensor, .dst = part, .data1 = now, .data2 = columns_of(rows_of(t.c, 0, p), s * time, time),
                 .op = TRN_ALU_MULTIPLY, .engine = TRN_ENGINE_GPSIMD);
            nisa(tensor_tensor, .dst = s + 1 < states ? sum : y, .data1 = sum, .data2 = part, .op = TRN_ALU_ADD);
        }
        nisa(dma_copy, .dst = rows_of(out, first, p), .src = y);
    }
}

/* One channel. a, b, c, d, bias: values of it; b and c [states, time]. */
typedef struct channel {
    const double *x, *raw, *a, *b, *c;
    double bias, d;
    int64_t time, states;
} channel;

static void reference(num *y, num *h, const channel *k)
{
    for (int64_t s = 0; s < k->states; s++) h[s] = num_of(0);
    for (int64_t t = 0; t < k->time; t++) {
        const num x = num_of(k->x[t]), delta = num_table(NUM_SOFTPLUS, num_f32(num_of(k->raw[t] + k->bias)));
        const num dx = num_f32(num_mul(delta, x));
        num sum = num_f32(num_times(x, k->d));
        for (int64_t s = 0; s < k->states; s++) {
            const num decay = num_table(NUM_EXP, num_f32(num_times(delta, k->a[s])));
            const num drive = num_f32(num_times(dx, k->b[s * k->time + t]));
            h[s] = t ? num_f32(num_add(num_f32(num_mul(decay, h[s])), drive)) : drive;
            sum = num_f32(num_add(sum, num_f32(num_times(h[s], k->c[s * k->time + t]))));
        }
        y[t] = num_round(sum, TRN_BF16, NUM_OUTPUT);
    }
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], time = r->size[COLUMNS], states = r->size[2];
    const trn_tensor out = kernel_tensor(r, "out", TRN_BF16, rows, time);
    inputs in = { .x = kernel_input(r, TRN_BF16),
                  .raw = kernel_normal(r, "raw", TRN_BF16, rows, time, 0, 1),
                  .bias = kernel_normal(r, "bias", TRN_F32, rows, 1, -2, 0.5),
                  .a = kernel_tensor(r, "a", TRN_F32, rows, states),
                  .b = kernel_normal(r, "b", TRN_BF16, states, time, 0, 1),
                  .c = kernel_normal(r, "c", TRN_BF16, states, time, 0, 1),
                  .d = kernel_normal(r, "d", TRN_F32, rows, 1, 1, 0.1) };
    for (int64_t i = 0; i < rows * states; i++)
        ((float *)in.a.data)[i] = -(float)(i % states + 1); /* as Mamba begins */
    program(r->core, out, &in);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in.x), *raw = kernel_values(r, in.raw), *a = kernel_values(r, in.a);
    const double *bias = kernel_values(r, in.bias), *d = kernel_values(r, in.d);
    channel k = { .b = kernel_values(r, in.b), .c = kernel_values(r, in.c), .time = time, .states = states };
    num *y = kernel_nums(r, time), *h = kernel_nums(r, states);
    for (int64_t i = 0; i < rows; i++) {
        k.x = x + i * time, k.raw = raw + i * time, k.a = a + i * states, k.bias = bias[i], k.d = d[i];
        reference(y, h, &k);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_mamba_scan = {
    .name = "mamba_scan",
    .about = "a selective scan over columns (time), one channel per row, several states",
    .size = { { "rows", 128, 1, 4096 }, { "columns", 512, 1, 1024 }, { "states", 8, 1, 16 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_ARITHMETIC] = "binary32 recurrences",
                [NUM_TABLE] = "the tables of exp and softplus",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
