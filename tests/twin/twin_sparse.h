/* twin_sparse.h - structured sparsity, word for word: which elements of a window are stored, and what their product is.
 * SPDX-License-Identifier: MIT
 *
 * A row of a is cut into windows of n; m elements of each are stored, with their positions, both ascending. The product
 * of a row: the array sees the stored elements as if they were all of K, 128 of them in a tile, and each meets the row
 * of b that it met before packing. Nothing here is shared with trnmath/.
 */
#ifndef TWIN_SPARSE_H
#define TWIN_SPARSE_H

#include <stdlib.h>

#include "twin_matmul.h"

/* ---- packing ---- */

/* NaN above infinity above all else; zeros of both signs are equal. */
static inline bool twin_sparse_larger(const twin_number *x, const twin_number *y)
{
    if (x->kind != y->kind) return x->kind == TWIN_NAN || (x->kind == TWIN_INFINITY && y->kind == TWIN_FINITE);
    return x->kind == TWIN_FINITE && twin_compare_magnitude(x, y) > 0;
}

static inline bool twin_sparse_is_zero(const twin_number *x) { return x->kind == TWIN_FINITE && twin_is_zero(x); }

/* The m positions of a window of n that are stored, ascending: m times the largest that is left, the first of equals.
 * Returns how many nonzeros the window has. */
static inline int twin_sparse_window(int format, const uint32_t *code, int m, int n, int *position)
{
    bool taken[16] = { false };
    twin_number x[16];
    int nonzeros = 0, stored = 0;
    for (int i = 0; i < n; i++) {
        x[i] = twin_decode(&twin_formats[format], code[i]);
        nonzeros += !twin_sparse_is_zero(&x[i]);
    }
    for (int s = 0; s < m; s++) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || twin_sparse_larger(&x[i], &x[best]))) best = i;
        taken[best] = true;
    }
    for (int i = 0; i < n; i++)
        if (taken[i]) position[stored++] = i;
    return nonzeros;
}

/* ---- products ---- */

typedef struct twin_sparse {
    twin_problem product; /* a: [m, stored] values, and k = stored; b: [stored / pattern_m * pattern_n, n] */
    int pattern_m, pattern_n;
    const uint32_t *tags; /* [m, stored] */
} twin_sparse;

/* The row of b that stored element s of row i meets. */
static inline int twin_sparse_row(const twin_sparse *t, int i, int s)
{
    return s / t->pattern_m * t->pattern_n + (int)t->tags[(size_t)i * (size_t)t->product.k + (size_t)s];
}

/* Row i as a dense problem: the rows of b in the order in which this row of a meets them. Free .b afterwards. */
static inline twin_problem twin_sparse_dense_row(const twin_sparse *t, int i)
{
    twin_problem row = t->product;
    const size_t n = (size_t)row.n, k = (size_t)row.k;
    uint32_t *b = (uint32_t *)malloc(sizeof(uint32_t) * (k * n + 1));
    if (!b) abort();
    for (size_t s = 0; s < k; s++)
        for (size_t j = 0; j < n; j++) b[s * n + j] = t->product.b[(size_t)twin_sparse_row(t, i, (int)s) * n + j];
    row.b = b;
    return row;
}

static inline void twin_sparse_matmul(const twin_sparse *t)
{
    for (int i = 0; i < t->product.m; i++) {
        const twin_problem row = twin_sparse_dense_row(t, i);
        for (int j = 0; j < row.n; j++) twin_element(&row, i, j);
        free((void *)(uintptr_t)row.b);
    }
}

#endif /* TWIN_SPARSE_H */
