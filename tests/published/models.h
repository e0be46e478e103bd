/* models.h - parameters of published checkpoints, and the configurations that have them.
 * SPDX-License-Identifier: MIT
 *
 * Published totals are the sums over the tensors of the safetensors files that each publisher ships, as their pages
 * show them; of deepseek-v3 without the multi-token-prediction block (671 of 685 billion, DeepSeek-V3 report).
 * Encoders: parameters() of transformers' classes, which the comments name; 109,482,240, 124,645,632, 86.6 and 85.8
 * million are the figures that papers and pages repeat.
 */
#ifndef PUBLISHED_MODELS_H
#define PUBLISHED_MODELS_H

#include "trnmath/trn_plan.h"

static const struct {
    double total;  /* published */
    double active; /* published, in billions; 0 = dense */
    trn_model model;
} published_models[] = {
    { 8030261248.0, 0, { .name = "llama-3-8b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
                         .intermediate = 14336, .vocab = 128256 } },
    { 70553706496.0, 0, { .name = "llama-3-70b", .layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8,
                          .intermediate = 28672, .vocab = 128256 } },
    { 405853388800.0, 0, { .name = "llama-3.1-405b", .layers = 126, .hidden = 16384, .heads = 128, .kv_heads = 8,
                           .intermediate = 53248, .vocab = 128256 } },
    { 46702792704.0, 12.9, { .name = "mixtral-8x7b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
                             .experts = 8, .experts_per_token = 2, .moe_intermediate = 14336, .vocab = 32000 } },
    { 30532122624.0, 3.35, { .name = "qwen3-30b-a3b", .layers = 48, .hidden = 2048, .heads = 32, .kv_heads = 4,
                             .head_dim = 128, .experts = 128, .experts_per_token = 8, .moe_intermediate = 768,
                             .vocab = 151936, .qk_norm = true } },
    { 671026419200.0, 37.6, { .name = "deepseek-v3", .layers = 61, .hidden = 7168, .heads = 128, .head_dim = 128,
                              .rope_dim = 64, .v_dim = 128, .q_rank = 1536, .kv_rank = 512, .intermediate = 18432,
                              .dense_layers = 3, .experts = 256, .experts_per_token = 8, .moe_intermediate = 2048,
                              .shared_intermediate = 2048, .router_bias = true, .vocab = 129280 } },
    /* OpenAI's card: 116.83 billion, 5.13 active without the embedding's 0.58 */
    { 116829156672.0, 5.71, { .name = "gpt-oss-120b", .layers = 36, .hidden = 2880, .heads = 64, .kv_heads = 8,
                              .head_dim = 64, .experts = 128, .experts_per_token = 4, .moe_intermediate = 2880,
                              .vocab = 201088, .qkv_bias = true, .o_bias = true, .mlp_bias = true, .router_bias = true,
                              .sinks = true, .window = 128, .window_layers = 18 } },
    { 20554567680.0, 0, { .name = "gpt-neox-20b", .layers = 44, .hidden = 6144, .heads = 64, .intermediate = 24576,
                          .vocab = 50432, .plain_mlp = true, .qkv_bias = true, .o_bias = true, .mlp_bias = true,
                          .norm_bias = true } },
    { 124439808.0, 0, { .name = "gpt2", .layers = 12, .hidden = 768, .heads = 12, .intermediate = 3072, .vocab = 50257,
                        .positions = 1024, .plain_mlp = true, .qkv_bias = true, .o_bias = true, .mlp_bias = true,
                        .norm_bias = true, .tied_embeddings = true } },
    { 9241705984.0, 0, { .name = "gemma-2-9b", .layers = 42, .hidden = 3584, .heads = 16, .kv_heads = 8,
                         .head_dim = 256, .intermediate = 14336, .vocab = 256000, .norms = 4, .tied_embeddings = true,
                         .window = 4096, .window_layers = 21 } },
    { 7615616512.0, 0, { .name = "qwen2-7b", .layers = 28, .hidden = 3584, .heads = 28, .kv_heads = 4,
                         .intermediate = 18944, .vocab = 152064, .qkv_bias = true } },
#define ENCODER                                                                                                       \
    .layers = 12, .hidden = 768, .heads = 12, .intermediate = 3072, .plain_mlp = true, .qkv_bias = true,             \
    .o_bias = true, .mlp_bias = true, .norm_bias = true, .bidirectional = true
#define BERT ENCODER, .vocab = 30522, .tied_embeddings = true, .positions = 512, .longest = 512, .token_types = 2
#define ROBERTA ENCODER, .vocab = 50265, .tied_embeddings = true, .positions = 514, .longest = 512, .token_types = 1
#define VIT ENCODER, .positions = 197, .longest = 197, .patch_inputs = 16 * 16 * 3
    { 109482240.0, 0, { .name = "bert-base", BERT, .pooler = true } },            /* BertModel */
    { 109514298.0, 0, { .name = "bert-base-masked", BERT, .masked_head = true } }, /* BertForMaskedLM */
    { 124645632.0, 0, { .name = "roberta-base", ROBERTA, .pooler = true } },      /* RobertaModel */
    { 124697433.0, 0, { .name = "roberta-base-masked", ROBERTA, .masked_head = true } }, /* RobertaForMaskedLM */
    { 86567656.0, 0, { .name = "vit-base", VIT, .classes = 1000 } },              /* ViTForImageClassification */
    { 85798656.0, 0, { .name = "vit-base-bare", VIT } },                         /* the same without its classifier */
    { 86389248.0, 0, { .name = "vit-base-pooled", VIT, .pooler = true } },       /* ViTModel */
#undef ENCODER
#undef BERT
#undef ROBERTA
#undef VIT
};
enum { PUBLISHED_MODELS = sizeof published_models / sizeof published_models[0] };

#endif /* PUBLISHED_MODELS_H */
