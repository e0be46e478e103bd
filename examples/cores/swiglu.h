/* swiglu.h - what stands between the two products of an MLP, 128 tokens at a time.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORES_SWIGLU_H
#define CORES_SWIGLU_H

#include "tiles.h"

/* All in HBM: gu [T, 2 n], gate beside up; hidden [T, n] = silu(gate) up. With dhidden: the gradient dgu instead. */
typedef struct swiglu {
    trn_tensor gu, hidden, dhidden, dgu;
} swiglu;

void swiglu_tiles(trn_core *c, const swiglu *s);

#endif
