/* models.c - the linear layers of six language models.
 * SPDX-License-Identifier: MIT
 *
 * Each row is a weight matrix [K, N] as the model's own code names it. Biases, norms, rotary embeddings, attention
 * scores and the embedding look-up are no products with weights and are left out. A test adds the weights up and
 * compares them with the published parameter counts.
 *
 * K/V and query widths: heads x head size. Grouped-query attention has fewer K/V heads than query heads.
 *
 *     model          hidden  blocks  heads  KV heads  head size  intermediate   experts (chosen)   vocabulary
 *     llama3-8b        4096      32     32         8        128         14336                          128256
 *     llama3-70b       8192      80     64         8        128         28672                          128256
 *     llama3-405b     16384     126    128         8        128         53248                          128256
 *     mixtral-8x7b     4096      32     32         8        128         14336            8 (2)           32000
 *     gpt-oss-120b     2880      36     64         8         64          2880          128 (4)          201088
 *     deepseek-v3      7168      61    128   (latent)   128 + 64   18432, 2048     256 (8) + 1          129280
 *
 * Sources: the config.json that each publisher ships (Meta Llama 3 and 3.1; Mistral Mixtral-8x7B-v0.1, params.json;
 * OpenAI gpt-oss-120b; DeepSeek-V3, inference/configs/config_671B.json), and for the projections' names and the latent
 * attention the model code beside it.
 */
#include "models.h"

#include <stddef.h>
#include <string.h>

#define EVERY TB_EVERY_TOKEN
#define LAST TB_LAST_TOKEN
#define ROUTED TB_ROUTED_TOKENS

/* q, k, v and o of grouped-query attention. */
#define ATTENTION(hidden, heads, kv_heads, size, blocks)                                                               \
    { "q_proj", hidden, (heads) * (size), blocks, EVERY }, { "k_proj", hidden, (kv_heads) * (size), blocks, EVERY },   \
        { "v_proj", hidden, (kv_heads) * (size), blocks, EVERY },                                                      \
    {                                                                                                                  \
        "o_proj", (heads) * (size), hidden, blocks, EVERY                                                              \
    }

/* The gated feed-forward network: gate and up side by side, then down. */
#define GATED(prefix, hidden, inner, blocks, rows)                                                                     \
    { prefix "gate_proj", hidden, inner, blocks, rows }, { prefix "up_proj", hidden, inner, blocks, rows },            \
    {                                                                                                                  \
        prefix "down_proj", inner, hidden, blocks, rows                                                                \
    }

#define LLAMA(hidden, heads, inner, blocks)                                                                            \
    ATTENTION(hidden, heads, 8, 128, blocks), GATED("", hidden, inner, blocks, EVERY),                                 \
    {                                                                                                                  \
        "lm_head", hidden, 128256, 1, LAST                                                                             \
    }

static const tb_model models[] = {
    { "llama3-8b", "Meta-Llama-3-8B config.json", 0, 0, { LLAMA(4096, 32, 14336, 32) } },
    { "llama3-70b", "Meta-Llama-3-70B config.json", 0, 0, { LLAMA(8192, 64, 28672, 80) } },
    { "llama3-405b",
      "Llama-3.1-405B config.json (8 KV heads; the first upload stored them twice)",
      0,
      0,
      { LLAMA(16384, 128, 53248, 126) } },
    { "mixtral-8x7b",
      "Mixtral-8x7B-v0.1 params.json",
      8,
      2,
      { ATTENTION(4096, 32, 8, 128, 32),
        { "router", 4096, 8, 32, EVERY },
        GATED("expert.", 4096, 14336, 32, ROUTED),
        { "lm_head", 4096, 32000, 1, LAST } } },
    /* gate and up are stored as one matrix [2880, 5760] with their columns interleaved, and multiplied as one. */
    { "gpt-oss-120b",
      "gpt-oss-120b config.json",
      128,
      4,
      { ATTENTION(2880, 64, 8, 64, 36),
        { "router", 2880, 128, 36, EVERY },
        { "expert.gate_up_proj", 2880, 2 * 2880, 36, ROUTED },
        { "expert.down_proj", 2880, 2880, 36, ROUTED },
        { "lm_head", 2880, 201088, 1, LAST } } },
    /* Multi-head latent attention as published: queries through rank 1536, keys and values through rank 512 beside one
     * shared rotary key of 64; a head has 128 + 64 for scores and 128 for values. Blocks 1-3 are dense, 4-61 have
     * experts and one shared expert. The multi-token-prediction block (62) is not part of a forward pass. */
    { "deepseek-v3",
      "DeepSeek-V3 inference/configs/config_671B.json",
      256,
      8,
      { { "q_a_proj", 7168, 1536, 61, EVERY },
        { "q_b_proj", 1536, 128 * (128 + 64), 61, EVERY },
        { "kv_a_proj", 7168, 512 + 64, 61, EVERY },
        { "kv_b_proj", 512, 128 * (128 + 128), 61, EVERY },
        { "o_proj", 128 * 128, 7168, 61, EVERY },
        GATED("dense.", 7168, 18432, 3, EVERY),
        { "router", 7168, 256, 58, EVERY },
        GATED("shared.", 7168, 2048, 58, EVERY),
        GATED("expert.", 7168, 2048, 58, ROUTED),
        { "lm_head", 7168, 129280, 1, LAST } } },
};
enum { MODELS = sizeof models / sizeof models[0] };

const tb_model *tb_model_at(int index) { return index >= 0 && index < MODELS ? &models[index] : NULL; }

const tb_model *tb_model_find(const char *name)
{
    for (int i = 0; i < MODELS; i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}

const char *tb_phase_name(tb_phase phase) { return phase == TB_PREFILL ? "prefill" : "decode"; }

/* Prefill: one sequence of 2048 tokens. Decode: one new token of one sequence. */
int64_t tb_phase_tokens(tb_phase phase) { return phase == TB_PREFILL ? 2048 : 1; }

/* Even routing: tokens x chosen assignments over all experts, so that as many experts as possible are awake. An
 * expert's share is rounded up. */
static void route(const tb_model *model, int64_t tokens, int64_t *rows, int64_t *awake)
{
    const int64_t assignments = tokens * model->chosen;
    *awake = assignments < model->experts ? assignments : model->experts;
    *rows = (assignments + *awake - 1) / *awake;
}

static tb_product layer_product(const tb_model *model, const tb_layer *layer, tb_phase phase, int64_t tokens)
{
    const int64_t copies = layer->rows == ROUTED ? model->experts : 1;
    tb_product p = { layer->name, tokens, layer->n, layer->k, layer->blocks, 1, 0 };
    p.weights = (double)(layer->k * layer->n) * (double)(layer->blocks * copies);
    if (layer->rows == LAST && phase == TB_PREFILL) p.m = 1;
    if (layer->rows == ROUTED) route(model, tokens, &p.m, &p.together);
    return p;
}

int tb_model_products(const tb_model *model, tb_phase phase, int64_t tokens, tb_product *product)
{
    int n = 0;
    for (; n < TB_MAX_LAYERS && model->layer[n].name; n++)
        product[n] = layer_product(model, &model->layer[n], phase, tokens);
    return n;
}
