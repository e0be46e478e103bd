/* mlp_reference.c - two layers as they should be, and what quantised operands do to them.
 * SPDX-License-Identifier: MIT
 */
#include "mlp.h"

#include <math.h>

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most > 0 ? most : 1;
}

/* int8 has no exponent: the largest number becomes 127. FP8 keeps its own, so a power of two will do, and is exact. */
static double scale_for(trn_format format, double most)
{
    const double end = trn_format_limits_of(format).max;
    return format == TRN_I8 ? (double)(float)(end / most) : exp2(floor(log2(end / most)));
}

static double *hidden_of(kernel_run *r, const double *x, const double *w, int64_t rows, int64_t n, int64_t hidden)
{
    double *h = (double *)kernel_memory(r, (size_t)(rows * hidden) * sizeof(double));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < hidden; j++) h[i * hidden + j] += x[i * n + k] * w[k * hidden + j];
    return h;
}

mlp_rule mlp_calibrate(kernel_run *r, trn_format format, trn_tensor x, trn_tensor w1, trn_tensor w2)
{
    const int64_t rows = x.shape[0], n = x.shape[1], hidden = w1.shape[1];
    const double *xs = kernel_values(r, x), *ws = kernel_values(r, w1);
    const double *h = hidden_of(r, xs, ws, rows, n, hidden);
    mlp_rule rule = { .format = format };
    rule.x = scale_for(format, largest(xs, rows * n));
    rule.w1 = scale_for(format, largest(ws, n * hidden));
    rule.w2 = scale_for(format, largest(kernel_values(r, w2), n * hidden));
    rule.h =
        scale_for(format, 1.25 * largest(h, rows * hidden)); /* |gelu(x)| <= |x|; the rest is for quantised operands */
    return rule;
}

trn_tensor mlp_quantise(kernel_run *r, const char *name, trn_tensor w, trn_format format, double scale)
{
    const trn_tensor t = kernel_room(r, name, format, w.shape[0], w.shape[1]);
    double *value = kernel_values(r, w);
    for (int64_t i = 0; i < trn_tensor_elements(w); i++) value[i] *= scale;
    kernel_store(t, value);
    return t;
}

/* ---- the reference ---- */

static num one_code(num a, trn_format format, double scale, num_source source)
{
    return num_times(num_round(num_f32(num_times(a, scale)), format, source), 1 / scale);
}

/* Of n numbers along the contraction. A block's scale is that of its largest number, with whatever error it has. */
static void codes(num *a, int64_t n, const mlp_rule *rule, double scale, num_source source)
{
    for (int64_t first = 0; first < n; first += 32) {
        double most = 0;
        for (int64_t i = first; i < first + 32; i++) most = fmax(most, fabs(a[i].v) + num_bound(&a[i]));
        const double s = !rule->block ? scale : most > 0 ? exp2(7 - floor(log2(most))) : 1;
        for (int64_t i = first; i < first + 32; i++) a[i] = one_code(a[i], rule->format, s, source);
    }
}

static num_matrix matrix(kernel_run *r, trn_tensor w, const mlp_rule *rule, double scale)
{
    const int64_t rows = w.shape[0], columns = w.shape[1];
    const size_t bytes = (size_t)(rows * columns) * sizeof(double);
    double *v = kernel_values(r, w), *bound = (double *)kernel_memory(r, bytes),
           *variance = (double *)kernel_memory(r, bytes);
    num *one = kernel_nums(r, rows);
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) one[i] = num_of(v[i * columns + j]);
        codes(one, rows, rule, scale, NUM_INPUT);
        for (int64_t i = 0; i < rows; i++) {
            bound[i * columns + j] = num_bound(&one[i]);
            variance[i * columns + j] = one[i].variance[NUM_INPUT];
        }
    }
    return (num_matrix){ v, bound, variance, NUM_INPUT };
}

void mlp_compare(kernel_run *r, trn_tensor out, trn_tensor x, trn_tensor w1, trn_tensor w2, const mlp_rule *rule)
{
    const int64_t rows = x.shape[0], n = x.shape[1], hidden = w1.shape[1];
    /* Integer sums are exact until they become binary32; pairs and quads of FP8 products round a few times more. */
    const bool exact = rule->format == TRN_I8;
    const int first = exact ? 1 : num_depth(128, n / 128) + 4, second = exact ? 1 : num_depth(128, hidden / 128) + 4;
    const num_matrix a = matrix(r, w1, rule, rule->w1), b = matrix(r, w2, rule, rule->w2);
    const double *xs = kernel_values(r, x);
    num *row = kernel_nums(r, n), *h = kernel_nums(r, hidden), *y = kernel_nums(r, n);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = num_of(xs[i * n + j]);
        codes(row, n, rule, rule->x, NUM_INPUT);
        num_dots(h, row, &a, n, hidden, first);
        for (int64_t j = 0; j < hidden; j++) {
            h[j] = num_table(NUM_GELU, num_f32(h[j]));
            if (rule->block) h[j] = num_round(h[j], TRN_BF16, NUM_CAST); /* what quantize_mx reads */
        }
        codes(h, hidden, rule, rule->h, NUM_CAST);
        num_dots(y, h, &b, hidden, n, second);
        for (int64_t j = 0; j < n; j++) y[j] = num_round(num_f32(y[j]), TRN_BF16, NUM_OUTPUT);
        kernel_compare(r, rows_of(out, i, 1), y);
    }
}
