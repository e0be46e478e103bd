/* llama_plain.h - a Llama in plain loops, as llama2.c has it: binary32, weights kept in BF16, a thread's rows of each
 * matrix by OpenMP. One token at a time.
 * SPDX-License-Identifier: MIT
 */
#ifndef LLAMA_PLAIN_H
#define LLAMA_PLAIN_H

#include <stdint.h>

typedef struct llama_plain_layer {
    const uint16_t *norm[2], *q, *k, *v, *o, *gate, *up, *down; /* [out, in] */
} llama_plain_layer;

typedef struct llama_plain {
    int layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, capacity;
    float eps, theta;
    const uint16_t *embed, *norm, *head;
    const llama_plain_layer *layer;
    float *scratch; /* llama_plain_scratch(m) numbers */
} llama_plain;

long llama_plain_scratch(const llama_plain *m);
long llama_plain_cache(const llama_plain *m); /* numbers of a sequence's keys and values */
/* cache: the sequence's; logits [vocab]. */
void llama_plain_step(const llama_plain *m, float *cache, int token, int position, float *logits);

#endif /* LLAMA_PLAIN_H */
