/* mlp_quantised.c - gelu(x w1) w2 in int8 or FP8: one scale per tensor, codes made on the way out of PSUM.
 * SPDX-License-Identifier: MIT
 *
 * int8: Trainium1's array alone takes it, into int32 sums. FP8 E4M3 ends at 240; from Trainium2 on two rows of it share
 * a PE, so that 256 numbers of K take the time of 128.
 */
#include "mlp.h"

enum { WIDTH = 512 };

/* Columns of tile k of the contraction; with two slots, of tiles 2 k and 2 k + 1: [128, 2, count]. */
static trn_tensor operand(trn_tensor all, int64_t columns, int64_t k, int slots, int64_t first, int64_t count)
{
    if (slots == 1) return columns_of(mlp_tile(all, columns, k), first, count);
    return trn_tensor_slice(trn_tensor_split(columns_of(all, 2 * k * columns, 2 * columns), 1, columns), 2, first,
                            count);
}

static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor w1, trn_tensor w2, const mlp_rule *rule)
{
    const trn_core_spec *spec = trn_core_spec_of(c->args.generation);
    const trn_format code = rule->format, psum = code == TRN_I8 ? TRN_I32 : TRN_F32;
    const bool pairs = spec->double_row && code != TRN_I8;
    const int slots = pairs ? 2 : 1;
    const int64_t n = w1.shape[0], hidden = w1.shape[1], pieces = hidden / 128;
    const trn_tensor first = mlp_weights(c, "w1", w1), second = mlp_weights(c, "w2", w2);
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, n, 2), turned = sbuf_pool(c, "x codes", code, 128, n, 2);
    pool gelus = sbuf_pool(c, "gelu", TRN_F32, 128, 128, 2),
         hiddens = sbuf_pool(c, "hidden codes", code, 128, hidden, 2);
    pool ys = sbuf_pool(c, "y", TRN_BF16, 128, n, 2), transposed = mlp_transpose_pool(c, 2);
    pool sums = psum_pool(c, "x w1", psum, 128, 128, 2), results = psum_pool(c, "hidden w2", psum, 128, WIDTH, 2);
    for (int64_t t = 0; t < in.shape[0]; t += 128) {
        const int64_t tokens = least(128, in.shape[0] - t);
        const trn_tensor x = turn(&xs, tokens), xt = columns_of(turn(&turned, 128), 0, n / 128 * tokens);
        const trn_tensor h = columns_of(turn(&hiddens, 128), 0, pieces * tokens), y = turn(&ys, tokens);
        nisa(dma_copy, .dst = x, .src = rows_of(in, t, tokens));
        for (int64_t k = 0; k < n / 128; k++) { /* transposed as bfloat16; scaled and cast on the way to SBUF */
            const trn_tensor one = columns_of(turn(&transposed, 128), 0, tokens);
            nisa(nc_transpose, .dst = one, .data = columns_of(x, 128 * k, 128));
            nisa(tensor_scalar, .dst = mlp_tile(xt, tokens, k), .data = one, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)rule->x);
        }
        for (int64_t j = 0; j < pieces; j++) {
            const trn_tensor sum = columns_of(turn(&sums, 128), 0, tokens),
                             gelu = columns_of(turn(&gelus, 128), 0, tokens);
            for (int64_t k = 0; k < n / 128 / slots; k++)
                nisa(nc_matmul, .dst = sum, .stationary = operand(first, hidden, k, slots, 128 * j, 128),
                     .moving = operand(xt, tokens, k, slots, 0, tokens), .accumulate = k > 0, .double_row = pairs);
            nisa(activation, .dst = gelu, .src = sum, .op = TRN_ACT_GELU_APPRX_TANH,
                 .scale = (float)(1 / (rule->x * rule->w1)));
            nisa(tensor_scalar, .dst = mlp_tile(h, tokens, j), .data = gelu, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)rule->h, .engine = TRN_ENGINE_GPSIMD);
        }
        for (int64_t i = 0; i < n; i += WIDTH) {
            const int64_t width = least(WIDTH, n - i);
            const trn_tensor result = columns_of(turn(&results, tokens), 0, width);
            for (int64_t j = 0; j < pieces / slots; j++)
                nisa(nc_matmul, .dst = result, .stationary = operand(h, tokens, j, slots, 0, tokens),
                     .moving = operand(second, n, j, slots, i, width), .accumulate = j > 0, .double_row = pairs);
            nisa(tensor_scalar, .dst = columns_of(y, i, width), .data = result, .op0 = TRN_ALU_MULTIPLY,
                 .operand0 = (float)(1 / (rule->h * rule->w2)));
        }
        nisa(dma_copy, .dst = rows_of(out, t, tokens), .src = y);
    }
}

static void run(kernel_run *r, trn_format format)
{
    const int64_t rows = r->size[ROWS], n = r->size[COLUMNS], hidden = r->size[2];
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_room(r, "out", TRN_BF16, rows, n);
    const trn_tensor w1 = kernel_normal(r, "w1", TRN_BF16, n, hidden, 0, kernel_sigma(n));
    const trn_tensor w2 = kernel_normal(r, "w2", TRN_BF16, hidden, n, 0, kernel_sigma(hidden));
    const mlp_rule rule = mlp_calibrate(r, format, in, w1, w2);
    program(r->core, out, in, mlp_quantise(r, "w1 codes", w1, format, rule.w1),
            mlp_quantise(r, "w2 codes", w2, format, rule.w2), &rule);
    if (trn_core_status(r->core, NULL) == TRN_OK) mlp_compare(r, out, in, w1, w2, &rule);
}

static void run_int8(kernel_run *r) { run(r, TRN_I8); }
static void run_fp8(kernel_run *r) { run(r, TRN_F8_E4M3); }

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
