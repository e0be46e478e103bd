/* mlp.h - what the two-layer kernels share: the tokens, transposed, and weights that stay in SBUF.
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELS_MLP_H
#define KERNELS_MLP_H

#include "kernel.h"

enum { MLP_WIDTH = 512 }; /* columns of a bank of PSUM: what one product of the second layer writes */

/* Weights in HBM that keep the size of what they multiply. */
trn_tensor mlp_normal(kernel_run *r, const char *name, int64_t rows, int64_t columns);
/* A matrix [rows, columns] of HBM in SBUF, rows on partitions: [128, rows / 128 * columns], tile beside tile. */
trn_tensor mlp_weights(trn_core *c, const char *name, trn_tensor w);
trn_tensor mlp_tile(trn_tensor weights, int64_t columns, int64_t k); /* its tile k: [128, columns] */
/* PSUM to transpose in: bfloat16 where the array has a mode for it; Trainium1 multiplies by an identity. */
pool mlp_transpose_pool(trn_core *c, int count);

#endif
