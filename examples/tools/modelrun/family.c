/* family.c - the families that are known, a row each: what they differ in, and what their classes take for missing.
 * SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: the configuration classes of transformers 4.45 to 5.0 (which fields there are, and their defaults) and
 * the modelling code beside them (what the fields mean).
 */
#include "model.h"

/* ---- fields that have to be this ---- */

static const mr_fixed deepseek_fixed[] = {
    { "topk_method", "noaux_tc" }, { "scoring_func", "sigmoid" }, { "moe_layer_freq", "1" }, { NULL, NULL }
};

static const mr_fixed gemma3_fixed[] = { { "attn_logit_softcapping", "null" },
                                         { "final_logit_softcapping", "null" },
                                         { "use_bidirectional_attention", "false" },
                                         { NULL, NULL } };

static const mr_fixed minimax_fixed[] = { { "scoring_func", "sigmoid" },
                                          { "qk_norm_type", "per_layer" },
                                          { "use_qk_norm", "true" },
                                          { "use_routing_bias", "true" },
                                          { "shared_intermediate_size", "0" },
                                          { "attn_type_list", "1" },
                                          { NULL, NULL } };

static const mr_fixed nemotron_fixed[] = { { "attention_bias", "false" },
                                           { "mamba_proj_bias", "false" },
                                           { "mamba_hidden_act", "silu" },
                                           { "residual_in_fp32", "false" },
                                           { "moe_latent_size", "null" },
                                           { "mamba_dt_limit", "null" },
                                           { NULL, NULL } };

/* ---- positions of classes that scale them where a file says nothing ---- */

static const mr_rope_rule gpt_oss_rope = { .kind = MR_ROPE_YARN, /* rope_theta stands beside it */
                                           .factor = 32,
                                           .original = 4096,
                                           .beta_fast = 32,
                                           .beta_slow = 1,
                                           .attention = 1.3465735902799727 }; /* 0.1 ln 32 + 1 */

static const mr_rope_rule ministral3_rope = { .kind = MR_ROPE_YARN,
                                              .theta = 1e6,
                                              .factor = 16,
                                              .original = 16384,
                                              .beta_fast = 32,
                                              .beta_slow = 1,
                                              .attention = 1,
                                              .truncate = true };

/* ---- the families ---- */

/* clang-format off */
static const mr_family family[] = {
    { .type = "llama", .names = &mr_names_usual, .eps = 1e-6, .theta = 10000,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_MLP_BIAS_ASKED },
    { .type = "llama4_text", .outer = "llama4", .names = &mr_names_llama4, .kv_heads = 8, .head_dim = 128, .eps = 1e-5,
      .theta = 500000, .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_CHUNKS | MR_EXPERT_STEP,
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 16, .experts_per_token = 1,
      .route = MR_ROUTE_OF_BEST | MR_ROUTE_SIGMOID | MR_ROUTE_INPUT,
      .qk_norm = MR_QK_LENGTH, .qk_norm_field = "use_qk_norm", .qk_norm_usual = true },
    { .type = "mistral", .outer = "mistral3", .names = &mr_names_usual, .kv_heads = 8, .eps = 1e-6, .theta = 10000,
      .flags = MR_WINDOW, .window = 4096 },
    { .type = "ministral", .names = &mr_names_usual, .kv_heads = 8, .eps = 1e-6, .theta = 10000, .flags = MR_WINDOW,
      .window = 4096 },
    { .type = "ministral3", .names = &mr_names_usual, .kv_heads = 8, .head_dim = 128, .eps = 1e-5, .theta = 1e6,
      .flags = MR_WINDOW | MR_GROWING, /* if it is named */
      .rope = &ministral3_rope, .beta = 0.1 },
    { .type = "mixtral", .names = &mr_names_mixtral, .kv_heads = 8, .eps = 1e-5, .theta = 1e6,
      .flags = MR_WINDOW, /* if it is named */
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 8, .experts_per_token = 2 },
    { .type = "qwen2", .names = &mr_names_usual, .kv_heads = 32, .eps = 1e-6, .theta = 10000, .window = 4096,
      .first_window = 28, .flags = MR_BIAS | MR_WINDOW_ASKED },
    { .type = "qwen3", .names = &mr_names_usual, .kv_heads = 32, .eps = 1e-6, .theta = 10000, .head_dim = 128,
      .window = 4096, .first_window = 28, .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_WINDOW_ASKED,
      .qk_norm = MR_QK_HEAD },
    { .type = "qwen2_moe", .names = &mr_names_qwen_moe, .kv_heads = 16, .eps = 1e-6, .theta = 10000, .window = 4096,
      .first_window = 28,
      .experts = "num_experts", .experts_too = "num_local_experts", .expert_count = 60, .experts_per_token = 4,
      .flags = MR_BIAS_QKV | MR_WINDOW_ASKED | MR_WINDOW_EVERY_SECOND | MR_EXPERT_LAYERS | MR_SHARED },
    { .type = "qwen3_moe", .names = &mr_names_usual, .kv_heads = 4, .eps = 1e-6, .theta = 10000, .window = 4096,
      .experts = "num_experts", .experts_too = "num_local_experts", .expert_count = 128, .experts_per_token = 8,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_WINDOW_ALL_ASKED | MR_EXPERT_LAYERS, .qk_norm = MR_QK_HEAD },
    { .type = "qwen3_next", .names = &mr_names_qwen3_next, .kv_heads = 2, .head_dim = 256, .eps = 1e-6, .theta = 10000,
      .turned = 0.25, .qk_norm = MR_QK_HEAD, .norm_topk = true,
      .experts = "num_experts", .experts_too = "num_local_experts", .expert_count = 512, .experts_per_token = 10,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_ONE_MORE | MR_EXPERT_LAYERS | MR_SHARED | MR_DELTA |
               MR_GATED_HEADS },
    { .type = "deepseek_v3", .names = &mr_names_deepseek, .eps = 1e-6, .theta = 10000,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_LATENT | MR_FIRST_DENSE,
      .experts = "n_routed_experts", .experts_too = "num_local_experts", .expert_count = 256, .experts_per_token = 8,
      .route = MR_ROUTE_SIGMOID | MR_ROUTE_EXACT,
      .dense = 3, .groups = 8, .groups_per_token = 4, .routed_scale = 2.5, .fixed = deepseek_fixed },
    { .type = "kimi_k2", .names = &mr_names_deepseek, .eps = 1e-6, .theta = 10000,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_LATENT | MR_FIRST_DENSE,
      .experts = "n_routed_experts", .experts_too = "num_local_experts", .expert_count = 256, .experts_per_token = 8,
      .route = MR_ROUTE_SIGMOID | MR_ROUTE_EXACT,
      .dense = 3, .groups = 8, .groups_per_token = 4, .routed_scale = 2.5, .fixed = deepseek_fixed },
    { .type = "glm4_moe", .names = &mr_names_glm_moe, .kv_heads = 8, .eps = 1e-5, .theta = 10000, .turned = 0.5,
      .flags = MR_BIAS_ASKED | MR_FIRST_DENSE, .qk_norm = MR_QK_HEAD, .qk_norm_field = "use_qk_norm",
      .experts = "n_routed_experts", .experts_too = "num_local_experts", .expert_count = 128, .experts_per_token = 8,
      .route = MR_ROUTE_SIGMOID | MR_ROUTE_EXACT,
      .dense = 1, .groups = 1, .groups_per_token = 1, .routed_scale = 1, .fixed = deepseek_fixed },
    { .type = "minimax_m2", .names = &mr_names_minimax, .kv_heads = 8, .head_dim = 128, .eps = 1e-6, .theta = 5e6,
      .turned_field = "rotary_dim", .turned = 1, .qk_norm = MR_QK_ALL,
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 256, .experts_per_token = 8,
      .route = MR_ROUTE_SIGMOID | MR_ROUTE_EXACT, .fixed = minimax_fixed },
    { .type = "phi3", .names = &mr_names_phi3, .eps = 1e-5, .theta = 10000, .turned = 1, .flags = MR_WINDOW | MR_SU },
    { .type = "gemma3_text", .outer = "gemma3", .names = &mr_names_gemma3, .kv_heads = 4, .head_dim = 256, .eps = 1e-6,
      .theta = 1e6, .window = 4096, .qk_norm = MR_QK_HEAD, .fixed = gemma3_fixed,
      .flags = MR_BIAS_ASKED | MR_O_BIAS_ASKED | MR_ONE_MORE | MR_GEMMA | MR_WINDOW_PATTERN | MR_TIED },
    { .type = "nemotron_h", .names = &mr_names_nemotron_h, .kv_heads = 8, .head_dim = 128, .eps = 1e-5,
      .flags = MR_MLP_BIAS_ASKED | MR_NEMOTRON,
      .experts = "n_routed_experts", .experts_too = "num_local_experts", .expert_count = 8, .experts_per_token = 2,
      .route = MR_ROUTE_SIGMOID | MR_ROUTE_EXACT, .groups = 1, .groups_per_token = 1, .routed_scale = 1,
      .fixed = nemotron_fixed },
    { .type = "gpt_oss", .names = &mr_names_gpt_oss, .kv_heads = 8, .eps = 1e-5, .theta = 150000, .head_dim = 64,
      .window = 128, .rope = &gpt_oss_rope,
      .experts = "num_local_experts", .experts_too = "num_experts", .expert_count = 128, .experts_per_token = 4,
      .flags = MR_BIAS_DEFAULT | MR_SINKS | MR_GPT_OSS | MR_WINDOW_EVERY_SECOND, .route = MR_ROUTE_OF_BEST },
    { .type = "gpt2", .names = &mr_names_gpt2, .eps = 1e-5, .flags = MR_GPT2 | MR_TIED },
    { .type = "srlab_char", .names = &mr_names_plain, .eps = 1e-6, .flags = MR_PLACES },
};
/* clang-format on */

const mr_family *mr_family_at(int index)
{
    return index >= 0 && (size_t)index < sizeof family / sizeof family[0] ? &family[index] : NULL;
}
