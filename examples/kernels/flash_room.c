/* flash_room.c - the tiles of causal attention, how many of each may be in use at a time, and its mask.
 * SPDX-License-Identifier: MIT
 */
#include "flash_attention.h"

#define MASKED (-0x1p100f) /* so far below any score that its exponential is 0, and no infinity to multiply with */

void flash_room(flash *f)
{
    trn_core *c = f->c;
    const int64_t d = f->d, all = f->rows / 128 * d;
    const trn_format turned = trn_core_spec_of(c->args.generation)->transpose_mode ? TRN_BF16 : TRN_F32;
    f->q = trn_core_sbuf(c, "q", TRN_BF16, 128, all);
    f->k = trn_core_sbuf(c, "k", TRN_BF16, 128, all);
    f->v = trn_core_sbuf(c, "v", TRN_BF16, 128, all);
    f->kt = trn_core_sbuf(c, "k transposed", TRN_BF16, d, f->rows);
    f->identity = trn_core_sbuf(c, "identity", TRN_BF16, 128, 128);
    f->mask = trn_core_sbuf(c, "mask", TRN_BF16, 128, 128);
    f->qts = sbuf_pool(c, "q transposed", TRN_BF16, d, 128, 6);
    f->probs = sbuf_pool(c, "probabilities", TRN_BF16, 128, FLASH_KEYS, 4);
    f->prob_ts = sbuf_pool(c, "prob. transposed", TRN_BF16, 128, FLASH_KEYS, 2);
    f->accs = sbuf_pool(c, "outputs", TRN_F32, 128, d, 3);
    f->numbers = sbuf_pool(c, "numbers", TRN_F32, 128, 6, 8);
    f->ys = sbuf_pool(c, "y", TRN_BF16, 128, d, 2);
    f->scores = psum_pool(c, "scores", TRN_F32, 128, FLASH_KEYS, 3);
    f->prob_psum = psum_pool(c, "prob. transposed", turned, 128, FLASH_KEYS, 2);
    f->outputs = psum_pool(c, "probabilities v", TRN_F32, 128, d, 3);
    f->transposed = psum_pool(c, "transposed", turned, d, 128, 2);
}

/* Query p of the diagonal block sees key j when p - j >= 0. */
void flash_mask(flash *f)
{
    trn_core *c = f->c;
    const trn_pattern less_j = { 1, { { -1, 128 } } };
    nisa(memset, .dst = f->identity, .value = 1, .engine = TRN_ENGINE_GPSIMD);
    nisa(affine_select, .dst = f->identity, .on_true_tile = f->identity, .on_false_value = 0, .cmp_op = TRN_ALU_EQUAL,
         .pattern = less_j, .channel_multiplier = 1);
    nisa(memset, .dst = f->mask, .value = 0, .engine = TRN_ENGINE_GPSIMD);
    nisa(affine_select, .dst = f->mask, .on_true_tile = f->mask, .on_false_value = MASKED,
         .cmp_op = TRN_ALU_GREATER_EQUAL, .pattern = less_j, .channel_multiplier = 1);
}
