/* dense_check.c - examples/porting/dense.c against sums in binary64 of numbers that are rounded to BF16 here, by hand:
 * one row and many, weights that change, an address that becomes another matrix. SPDX-License-Identifier: MIT
 */
#include <dense.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 300, OUTS = 70, ROWS = 9, LAYERS = 100 };

static uint32_t state = 12345;

static float some(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state * 0x1p-31f;
}

static double bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

/* The largest error of out, in units of the sum of the products' magnitudes. */
static double worst(const float *out, const float *x, const float *w, const float *bias, int rows, int in, int outs)
{
    double most = 0;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outs; o++) {
            double sum = bias ? (double)bias[o] : 0, size = fabs(sum);
            for (int i = 0; i < in; i++) {
                const double p = bf16(x[r * in + i]) * bf16(w[o * in + i]);
                sum += p;
                size += fabs(p);
            }
            const double e = fabs((double)out[r * outs + o] - sum) / size;
            most = e > most || e != e ? e : most;
        }
    return most;
}

static int failures;

static void right(const char *what, double error)
{
    if (error < 300 * 0x1p-24) return; /* 300 sums, each rounded to binary32 */
    printf("%s: an error of %g\n", what, error);
    failures++;
}

int main(void)
{
    static float x[ROWS * IN], w[OUTS * IN], bias[OUTS], out[ROWS * OUTS], one[OUTS], layer[LAYERS][OUTS * IN];
    for (int i = 0; i < ROWS * IN; i++) x[i] = some();
    for (int i = 0; i < OUTS * IN; i++) w[i] = some();
    for (int i = 0; i < OUTS; i++) bias[i] = some();
    dense(out, x, w, bias, ROWS, IN, OUTS);
    right("nine rows", worst(out, x, w, bias, ROWS, IN, OUTS));
    dense(one, x + 4 * IN, w, bias, 1, IN, OUTS);
    if (memcmp(one, out + 4 * OUTS, sizeof one) != 0) failures++, puts("one row has other bits than among nine");
    dense(out, x, w, NULL, ROWS, IN, OUTS);
    right("without a bias", worst(out, x, w, NULL, ROWS, IN, OUTS));

    for (int i = 0; i < OUTS * IN; i++) w[i] = some();
    dense(out, x, w, NULL, ROWS, IN, OUTS);
    if (worst(out, x, w, NULL, ROWS, IN, OUTS) < 0.01) failures++, puts("weights are read at every call");
    dense_changed();
    dense(out, x, w, NULL, ROWS, IN, OUTS);
    right("changed weights, nine rows", worst(out, x, w, NULL, ROWS, IN, OUTS));
    dense(out, x, w, NULL, 1, IN, OUTS);
    right("changed weights, one row", worst(out, x, w, NULL, 1, IN, OUTS));
    dense(out, x, w, NULL, ROWS, 150, 40);
    right("another shape at the address", worst(out, x, w, NULL, ROWS, 150, 40));

    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < OUTS * IN; i++) layer[l][i] = some();
    for (int again = 0; again < 2; again++)
        for (int l = 0; l < LAYERS; l++) {
            dense(one, x, layer[l], NULL, 1, IN, OUTS);
            right("one of many layers", worst(one, x, layer[l], NULL, 1, IN, OUTS));
        }
    dense_free();
    dense(one, x, w, NULL, 1, IN, OUTS);
    right("after dense_free", worst(one, x, w, NULL, 1, IN, OUTS));
    dense_free();
    return failures != 0;
}
