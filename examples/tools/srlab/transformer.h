/* transformer.h - the parts of the character-level transformer.
 * SPDX-License-Identifier: MIT
 */
#ifndef SRLAB_TRANSFORMER_H
#define SRLAB_TRANSFORMER_H

#include "srlab.h"

/* A block: x += out(attention(qkv(norm(x)))); x += down(gelu(up(norm(x)))). */
typedef struct tf_block {
    int norm1, qkv, out, norm2, up, down; /* tensors */
} tf_block;

/* What a shard keeps of a block for the way back. */
typedef struct tf_kept {
    float *x1, *inverse1, *x2, *inverse2, *hidden, *prob; /* prob: attention's [sequences, heads, T, T] */
    sr_operand normed1, qkv, prob_operand, mixed, normed2, activated;
} tf_kept;

typedef struct tf_shape {
    int width, layers, heads, context, symbols, sequences; /* sequences of one shard */
    int64_t tokens;                                        /* of one shard */
} tf_shape;

typedef struct tf_shard {
    sr_shard s;
    tf_kept *kept; /* [layers] */
    sr_operand normed;
    float *x, *last, *inverse;              /* the residual stream, the final norm's input */
    float *wide, *wide2, *narrow, *narrow2; /* [tokens, 4 width] and [tokens, width] */
    float *logits, *square, *sums;          /* square: [T, T] */
    sr_operand slope, slope_square;         /* attention's, backward */
    int *symbol, *target;                   /* [tokens] */
} tf_shard;

/* qkv [tokens, 3 width] -> mixed [tokens, width], on `sequences` sequences; and back: dmixed -> dqkv. */
void tf_attention(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences, const float *qkv,
                  float *mixed);
void tf_attention_back(tf_shard *h, tf_kept *k, const tf_shape *shape, sr_rule rule, int sequences, const float *dmixed,
                       float *dqkv);

/* The whole: symbols in h->symbol -> h->logits; and back, from their gradient. */
struct sr_model {
    const sr_text *text;
    tf_shape shape;
    sr_weights weights;
    int table, place, norm, head; /* tensors */
    tf_block *block;
    tf_shard shard[SR_SHARDS];
};

sr_model *tf_make(const sr_settings *s, const sr_arm *arm, uint64_t seed, const sr_text *text);
void tf_free(sr_model *m);
void tf_forward(sr_model *m, tf_shard *h, int sequences);
void tf_backward(sr_model *m, tf_shard *h, int sequences);

#endif /* SRLAB_TRANSFORMER_H */
