/* mlp.h - what the two-layer kernels share: the tokens, transposed, and weights that stay in SBUF.
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELS_MLP_H
#define KERNELS_MLP_H

#include "kernel.h"

/* A matrix [rows, columns] of HBM in SBUF, rows on partitions: [128, rows / 128 * columns], tile beside tile. */
trn_tensor mlp_weights(trn_core *c, const char *name, trn_tensor w);
trn_tensor mlp_tile(trn_tensor weights, int64_t columns, int64_t k); /* its tile k: [128, columns] */

/* The same of tokens x [tokens, columns], but transposed: [128, columns / 128 * tokens]. The array transposes. */
void mlp_transpose(trn_core *c, trn_tensor dst, trn_tensor x, pool *psum);
/* PSUM for those transposes: bfloat16 where the array has a mode for it; Trainium1 multiplies by an identity. */
pool mlp_transpose_pool(trn_core *c, int count);

/* How a layer is quantised: number = code / scale, with one scale for a whole tensor, or (block) the one that
 * quantize_mx gives to each 32 numbers along the contraction. */
typedef struct mlp_rule {
    trn_format format;
    bool block;
    double x, w1, h, w2;
} mlp_rule;

/* Scales that put the largest number of each tensor at the end of the format, or a power of two below. */
mlp_rule mlp_calibrate(kernel_run *r, trn_format format, trn_tensor x, trn_tensor w1, trn_tensor w2);
/* w as codes in HBM. */
trn_tensor mlp_quantise(kernel_run *r, const char *name, trn_tensor w, trn_format format, double scale);
/* gelu(x w1) w2 of the numbers before they were quantised; what that does to them is an error. */
void mlp_compare(kernel_run *r, trn_tensor out, trn_tensor x, trn_tensor w1, trn_tensor w2, const mlp_rule *rule);

#endif
