/* models.h - the linear layers of language models, as products with their shapes and how often they run.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_MATMUL_MODELS_H
#define BENCH_MATMUL_MODELS_H

#include <stdint.h>

/* Which rows of the activations a layer sees. */
typedef enum tb_rows {
    TB_EVERY_TOKEN = 0,
    TB_LAST_TOKEN,   /* prefill: only the last position of the sequence needs logits; decode: every sequence */
    TB_ROUTED_TOKENS /* mixture of experts: tokens go to `chosen` of `experts` experts, evenly */
} tb_rows;

typedef struct tb_layer {
    const char *name;
    int64_t k, n; /* weights [K, N] */
    int blocks;   /* transformer blocks that have it */
    tb_rows rows;
} tb_layer;

enum { TB_MAX_LAYERS = 20 };

typedef struct tb_model {
    const char *name;
    const char *source;
    int experts, chosen; /* 0 for dense models */
    tb_layer layer[TB_MAX_LAYERS];
} tb_model;

typedef enum tb_phase { TB_PREFILL = 0, TB_DECODE, TB_PHASES } tb_phase;

/* One layer of one phase: products [M, K] x [K, N], `rounds` after each other in a forward pass, `together` at a time
 * (the experts that are awake; 1 for everything else). */
typedef struct tb_product {
    const char *layer;
    int64_t m, n, k, rounds, together;
    double weights; /* elements of all its weights, used in this pass or not */
} tb_product;

const tb_model *tb_model_find(const char *name); /* NULL when unknown */
const tb_model *tb_model_at(int index);          /* NULL after the last one */
const char *tb_phase_name(tb_phase phase);
int64_t tb_phase_tokens(tb_phase phase); /* when the user does not say */
/* Fills product[TB_MAX_LAYERS]; returns how many. */
int tb_model_products(const tb_model *model, tb_phase phase, int64_t tokens, tb_product *product);

#endif /* BENCH_MATMUL_MODELS_H */
