/* execution.h - one execution of a unit: its operands as matrices, what a device made of them, what the library says.
 * SPDX-License-Identifier: MIT
 *
 * Matrices are those of all products of the execution, one after the other. Codes lie as the library's arrays have
 * them: one to a byte for FP8, FP4 and int8, two bytes for F16 and BF16, four for TF32; K is the fast axis of a and b.
 */
#ifndef GPU_EXECUTION_H
#define GPU_EXECUTION_H

#include <stdint.h>

#include "trnmath/trn_numerics.h"
#include "units.h"

enum { GPU_MOST_OUTPUTS = GPU_MOST_M * GPU_MOST_N, GPU_MOST_A = GPU_MOST_M * GPU_MOST_ROW, GPU_MOST_B = 1024 };

typedef struct gpu_execution {
    unsigned char a[GPU_MOST_A];            /* [products, M, K] */
    unsigned char b[GPU_MOST_B];            /* [products, N, K] */
    unsigned char a_scale[64], b_scale[64]; /* E8M0, [M, K / scale] and [N, K / scale] */
    uint32_t c[GPU_MOST_OUTPUTS];           /* [products, M, N]: codes of the result's format */
    uint32_t device[GPU_MOST_OUTPUTS], ours[GPU_MOST_OUTPUTS];
    int kind; /* which sort of operands */
} gpu_execution;

static inline int gpu_outputs(const gpu_unit *u) { return gpu_products(u) * u->m * u->n; }

/* Code `k` of row `row` (over all products) of a or b. */
uint32_t gpu_code(const unsigned char *codes, trn_format format, int columns, int row, int k);
void gpu_put(unsigned char *codes, trn_format format, int columns, int row, int k, uint32_t code);

/* ---- registers: fragments.c ---- */

/* Words that an execution takes in each array of the device: a, b, c, scales. */
typedef struct gpu_words {
    int a, b, c, s;
} gpu_words;

gpu_words gpu_words_of(const gpu_unit *u);
void gpu_pack(const gpu_unit *u, const gpu_execution *e, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *s);
void gpu_unpack(const gpu_unit *u, const uint32_t *d, gpu_execution *e);

/* ---- operands: operands.c ---- */

int gpu_kinds(void);
const char *gpu_kind_name(int kind);

/* Draws operands of execution `number`: the same seed and number give the same. */
void gpu_draw(const gpu_unit *u, uint64_t seed, uint64_t number, gpu_execution *e);

/* ---- the library's answer: answer.c ---- */

/* e->ours = what the library returns for the operands. False, and the library's sentence, when it refuses. */
bool gpu_answer(const gpu_unit *u, gpu_how how, const trn_numerics *n, gpu_execution *e, trn_error *error);

/* The same bits, or two NaN: a device's NaN is another one than the library's. */
bool gpu_same(const gpu_unit *u, uint32_t x, uint32_t y);

#endif /* GPU_EXECUTION_H */
