/* rope.c - rotary positions: pairs of columns (i, i + half) turn by an angle that grows with the row.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#include <math.h>

/* Two halves of a row, two products and a sum for each; the sums go to GpSimd, so that both engines work. */
static void program(trn_core *c, trn_tensor out, trn_tensor in, trn_tensor cosine, trn_tensor sine)
{
    const int64_t rows = in.shape[0], half = in.shape[1] / 2;
    pool xs = sbuf_pool(c, "x", TRN_BF16, 128, 2 * half, 2), ys = sbuf_pool(c, "y", TRN_BF16, 128, 2 * half, 2);
    pool angles = sbuf_pool(c, "cos and sin", TRN_F32, 128, 2 * half, 2);
    pool products = sbuf_pool(c, "products", TRN_F32, 128, 4 * half, 2);
    for (int64_t first = 0; first < rows; first += 128) {
        const int64_t p = least(128, rows - first);
        const trn_tensor x = turn(&xs, p), y = turn(&ys, p), angle = turn(&angles, p), product = turn(&products, p);
        const trn_tensor cs = columns_of(angle, 0, half), sn = columns_of(angle, half, half);
        const trn_tensor a = columns_of(product, 0, half), b = columns_of(product, half, half);
        const trn_tensor d = columns_of(product, 2 * half, half), e = columns_of(product, 3 * half, half);
        const trn_tensor low = columns_of(x, 0, half), high = columns_of(x, half, half);
        nisa(dma_copy, .dst = x, .src = rows_of(in, first, p));
        nisa(dma_copy, .dst = cs, .src = rows_of(cosine, first, p));
        nisa(dma_copy, .dst = sn, .src = rows_of(sine, first, p));
        nisa(tensor_tensor, .dst = a, .data1 = low, .data2 = cs, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_tensor, .dst = b, .data1 = high, .data2 = sn, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_tensor, .dst = columns_of(y, 0, half), .data1 = a, .data2 = b, .op = TRN_ALU_SUBTRACT,
             .engine = TRN_ENGINE_GPSIMD);
        nisa(tensor_tensor, .dst = d, .data1 = high, .data2 = cs, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_tensor, .dst = e, .data1 = low, .data2 = sn, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_tensor, .dst = columns_of(y, half, half), .data1 = d, .data2 = e, .op = TRN_ALU_ADD,
             .engine = TRN_ENGINE_GPSIMD);
        nisa(dma_copy, .dst = rows_of(out, first, p), .src = y);
    }
}

/* Of exact angles: what binary32 makes of sine and cosine is an error of the inputs. */
static void reference(num *y, const double *x, int64_t row, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        const double angle = (double)row * pow(10000, -(double)i / (double)half);
        const num cs = num_round(num_of(cos(angle)), TRN_F32, NUM_INPUT),
                  sn = num_round(num_of(sin(angle)), TRN_F32, NUM_INPUT);
        const num low = num_of(x[i]), high = num_of(x[half + i]);
        y[i] = num_f32(num_subtract(num_f32(num_mul(low, cs)), num_f32(num_mul(high, sn))));
        y[half + i] = num_f32(num_add(num_f32(num_mul(high, cs)), num_f32(num_mul(low, sn))));
    }
    for (int64_t i = 0; i < 2 * half; i++) y[i] = num_round(y[i], TRN_BF16, NUM_OUTPUT);
}

static void run(kernel_run *r)
{
    const int64_t rows = r->size[ROWS], half = r->size[COLUMNS] / 2;
    const trn_tensor in = kernel_input(r, TRN_BF16), out = kernel_tensor(r, "out", TRN_BF16, rows, 2 * half);
    const trn_tensor cosine = kernel_tensor(r, "cos", TRN_F32, rows, half),
                     sine = kernel_tensor(r, "sin", TRN_F32, rows, half);
    for (int64_t i = 0; i < rows * half; i++) {
        const double angle = (double)(i / half) * pow(10000, -(double)(i % half) / (double)half);
        ((float *)cosine.data)[i] = (float)cos(angle);
        ((float *)sine.data)[i] = (float)sin(angle);
    }
    program(r->core, out, in, cosine, sine);
    if (trn_core_status(r->core, NULL)) return;

    const double *x = kernel_values(r, in);
    num *y = kernel_nums(r, 2 * half);
    for (int64_t i = 0; i < rows; i++) {
        reference(y, x + i * 2 * half, i, half);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}

const kernel kernel_rope = {
    .name = "rope",
    .about = "rotary positions: row t turns columns (i, i + half) by t 10000^(-i / half)",
    .size = { { "rows", 512, 1, 1 << 16 }, { "columns", 128, 2, 4096 } },
    .generations = KERNEL_ALL,
    .source = { [NUM_INPUT] = "sine and cosine in binary32",
                [NUM_ARITHMETIC] = "binary32 products and sums",
                [NUM_OUTPUT] = "the output in bfloat16" },
    .run = run,
};
