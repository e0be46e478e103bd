/* flash_attention.h - causal attention: its steps, what is alive between their stages, and its tiles.
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELS_FLASH_ATTENTION_H
#define KERNELS_FLASH_ATTENTION_H

#include "kernel.h"

enum { FLASH_KEYS = 512 };

/* Queries [q, q + 128) against keys [first, first + keys). */
typedef struct flash_step {
    int64_t q, first, keys;
    bool begins, ends; /* the first block of these queries; the last, whose last 128 keys are masked */
} flash_step;

/* What a step leaves for later ones. numbers: of a row. */
typedef struct flash_state {
    flash_step at;
    trn_tensor qt, score, prob, output, acc, low, sum, factor, total, share;
} flash_state;

typedef struct flash {
    trn_core *c;
    trn_tensor q, k, v, kt;    /* SBUF: [128, rows / 128 * d] each; keys transposed [d, rows] */
    trn_tensor identity, mask; /* [128, 128]: identity^T mask, added to a block of scores, hides what comes later */
    int64_t rows, d, turned;   /* how many keys are transposed by now */
    float scale;
    flash_state ring[8]; /* of the steps on their way */
    pool transposed, qts, scores, probs, prob_psum, prob_ts, outputs, accs, numbers, ys;
} flash;

flash_step flash_first(void);
bool flash_next(flash_step *t, int64_t rows); /* false: that was the last one */
float flash_scale(int64_t d);
/* Its tiles; its identity and mask. */
void flash_room(flash *f);
void flash_mask(flash *f);
void flash_attention(trn_core *c, trn_tensor out, trn_tensor q, trn_tensor k, trn_tensor v);

#endif
