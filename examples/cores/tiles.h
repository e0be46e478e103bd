/* tiles.h - the few loops over tiles that a transformer's kernels are made of, forward and backward.
 * SPDX-License-Identifier: MIT
 *
 * Between loops everything lies in HBM, so that any number of tokens fits; within one, tiles take turns. A loop gives
 * all of its SBUF and PSUM back.
 */
#ifndef CORES_TILES_H
#define CORES_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include <trnmath/trnmath.h>

/* One instruction as NKI spells it, on the core c: nisa(tensor_copy, .dst = y, .src = x). What fails stays in the
 * core's status, and later instructions do nothing. */
#define nisa(instruction, ...) trn_core_##instruction(c, &(trn_##instruction##_args){ __VA_ARGS__ })

enum { TILE = 128, BANK = 512 }; /* partitions; binary32 numbers of a bank of PSUM */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tiles_of(int64_t n) { return (n + TILE - 1) / TILE; }

/* Parts of a tensor or tile: axis 0, axis 1. */
trn_tensor rows_of(trn_tensor t, int64_t first, int64_t count);
trn_tensor columns_of(trn_tensor t, int64_t first, int64_t count);

/* ---- tiles that take turns ---- */

typedef struct pool {
    trn_tensor tile[4];
    int count, next;
} pool;

pool sbuf_pool(trn_core *c, const char *name, trn_format format, int64_t columns, int count);
pool psum_pool(trn_core *c, const char *name, trn_format format, int64_t columns, int count);
trn_tensor turn(pool *p, int64_t rows, int64_t columns); /* the next one, so much of it */

/* ---- matrices in SBUF ---- */

/* Rows 128 i to 128 i + 127 are columns [i `columns`, (i + 1) `columns`) of `all`. */
typedef struct sheet {
    trn_tensor all; /* [128, tiles * columns] */
    int64_t rows, columns;
} sheet;

sheet sheet_of(trn_core *c, const char *name, trn_format format, int64_t rows, int64_t columns);
trn_tensor sheet_part(const sheet *s, int64_t tile, int64_t first, int64_t count); /* columns of one of its tiles */
void sheet_load(trn_core *c, const sheet *s, trn_tensor hbm);                      /* whole; two DMAs at most */
void sheet_store(trn_core *c, trn_tensor hbm, const sheet *s);

/* ---- transposing ---- */

/* TensorE transposes a tile of SBUF into PSUM, ScalarE fetches it: dst [columns, rows] in SBUF. */
typedef struct transposer {
    pool psum;
} transposer;

transposer transposer_of(trn_core *c, trn_format format);
void transpose_tile(trn_core *c, transposer *t, trn_tensor dst, trn_tensor src);

/* ---- products ---- */

/* dst [M, N] = a b, all in HBM. K goes on partitions: an operand that has it as rows is read as it is, another one is
 * transposed on its way. One binary32 sum in PSUM for each element, rounded once to dst's format. */
typedef struct product {
    trn_tensor dst, a, b;
    bool a_by_k; /* a is [K, M], else [M, K] */
    bool b_by_n; /* b is [N, K], else [K, N] */
} product;

void multiply(trn_core *c, const product *p);

/* out [M, N] of SBUF = left^T right, left [K, M], right [K, at least N], a bank of PSUM after the other. */
void multiply_row(trn_core *c, pool *psum, trn_tensor out, trn_tensor left, trn_tensor right);

/* dst [M, N] of PSUM = p right, p [M, K] of SBUF, right N columns of a sheet of K rows or more; tiles of p are
 * transposed, into the pool of SBUF. */
void multiply_by_sheet(trn_core *c, transposer *t, pool *transposed, trn_tensor dst, trn_tensor p, const sheet *right,
                       int64_t first);

/* ---- rows of a norm ---- */

#define NORM_EPSILON 0x1p-20f

/* sum = x (+ y), n = sum / rms(sum) * gamma, inverse [T, 1] = 1 / rms; y of rank 0: none, and sum is not written. */
typedef struct norm {
    trn_tensor x, y, sum, gamma, n, inverse;
} norm;

void norm_forward(trn_core *c, const norm *p);

/* From the gradient of n those of x and of gamma; dx also gets `past`, which came by the residual's way. */
typedef struct norm_gradient {
    trn_tensor x, gamma, inverse, dn, past, dx, dgamma;
} norm_gradient;

void norm_backward(trn_core *c, const norm_gradient *p);

void add(trn_core *c, trn_tensor dst, trn_tensor x, trn_tensor y); /* HBM, of one shape */

#endif
