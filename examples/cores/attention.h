/* attention.h - causal attention of one rank's heads, forward and backward.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_ATTENTION_H
#define CORES_ATTENTION_H

#include "tiles.h"

#define MASKED (-0x1p100f) /* so far below any score that its exponential is 0 */

/* All in HBM. A row of qkv is the queries of all heads, then the keys, then the values. */
typedef struct attention {
    trn_tensor qkv;        /* [T, 3 heads d] */
    trn_tensor out;        /* [T, heads d] */
    trn_tensor statistics; /* [T, 2 heads]: F32, of each head -scale * the largest score, and 1 / the sum */
    int64_t heads, d;
} attention;

void attention_forward(trn_core *c, const attention *a);
void attention_backward(trn_core *c, const attention *a, trn_tensor dout, trn_tensor dqkv);

float attention_scale(int64_t d); /* 1 / sqrt(d), in binary32 */

#endif
