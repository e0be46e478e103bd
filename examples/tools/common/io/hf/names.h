/* hf/names.h - what families call the fields that every model has, and what their classes take where a file leaves one
 * out.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: attribute_map and the defaults of the configuration classes of transformers 4.57 and 5.0, and of those
 * that publishers ship beside their files.
 */
#ifndef HF_NAMES_H
#define HF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A family's own name of a field; type NULL: any family's, where the usual name is missing. */
typedef struct hf_alias {
    const char *type, *usual, *own;
} hf_alias;

HF_FN const hf_alias *hf_alias_at(int index)
{
    static const hf_alias row[] = {
        { "gpt2", "num_hidden_layers", "n_layer" },
        { "gpt2", "hidden_size", "n_embd" },
        { "gpt2", "num_attention_heads", "n_head" },
        { "gpt2", "intermediate_size", "n_inner" },
        { "gpt2", "max_position_embeddings", "n_positions" },
        { "gptj", "num_hidden_layers", "n_layer" },
        { "gptj", "hidden_size", "n_embd" },
        { "gptj", "num_attention_heads", "n_head" },
        { "gptj", "intermediate_size", "n_inner" },
        { "gpt_bigcode", "num_hidden_layers", "n_layer" },
        { "gpt_bigcode", "hidden_size", "n_embd" },
        { "gpt_bigcode", "num_attention_heads", "n_head" },
        { "gpt_bigcode", "intermediate_size", "n_inner" },
        { "gpt_bigcode", "max_position_embeddings", "n_positions" },
        { "bloom", "num_hidden_layers", "n_layer" },
        { "bloom", "hidden_size", "n_embed" },
        { "bloom", "num_attention_heads", "n_head" },
        { "bloom", "intermediate_size", "n_inner" },
        { "falcon", "num_hidden_layers", "n_layer" },
        { "falcon", "hidden_size", "n_embed" },
        { "falcon", "num_attention_heads", "n_head" },
        { "falcon", "num_key_value_heads", "num_kv_heads" },
        { "falcon", "num_key_value_heads", "n_head_kv" },
        { "falcon", "intermediate_size", "ffn_hidden_size" },
        { "mpt", "num_hidden_layers", "n_layers" },
        { "mpt", "hidden_size", "d_model" },
        { "mpt", "num_attention_heads", "n_heads" },
        { "opt", "intermediate_size", "ffn_dim" },
        { "mamba2", "num_attention_heads", "num_heads" },
        { "distilbert", "num_hidden_layers", "n_layers" },
        { "distilbert", "hidden_size", "dim" },
        { "distilbert", "num_attention_heads", "n_heads" },
        { "distilbert", "intermediate_size", "hidden_dim" },
        { "exaone", "num_hidden_layers", "num_layers" },
        { "qwen", "head_dim", "kv_channels" },
        { "chatglm", "num_hidden_layers", "num_layers" },
        { "chatglm", "intermediate_size", "ffn_hidden_size" },
        { "chatglm", "head_dim", "kv_channels" },
        { "chatglm", "vocab_size", "padded_vocab_size" },
        { "cohere2", "sliding_window_pattern", "layer_switch" },
        { "dbrx", "num_hidden_layers", "n_layers" },
        { "dbrx", "hidden_size", "d_model" },
        { "dbrx", "num_attention_heads", "n_heads" },
        { NULL, "sliding_window_pattern", "_sliding_window_pattern" },
    };
    return index >= 0 && index < (int)(sizeof row / sizeof row[0]) ? &row[index] : NULL;
}

/* What a family's class takes where a file leaves a field out; 0 = nothing. A text_config is often written as what
 * differs from its class, so that even sizes are missing there; in a file of its own a missing size is a mistake. */
HF_FN long hf_usual(const char *type, const char *field, bool inside)
{
    static const struct {
        const char *type, *field;
        long value;
        bool inside; /* only there */
    } row[] = {
        { "llama", "vocab_size", 32000, true },
        { "llama", "hidden_size", 4096, true },
        { "llama", "intermediate_size", 11008, true },
        { "llama", "num_hidden_layers", 32, true },
        { "llama", "num_attention_heads", 32, true },
        { "mistral", "vocab_size", 32000, true },
        { "mistral", "hidden_size", 4096, true },
        { "mistral", "intermediate_size", 14336, true },
        { "mistral", "num_hidden_layers", 32, true },
        { "mistral", "num_attention_heads", 32, true },
        { "mistral", "num_key_value_heads", 8, false },
        { "mistral", "sliding_window", 4096, false },
        { "mixtral", "num_key_value_heads", 8, false },
        { "mixtral", "num_local_experts", 8, false },
        { "mixtral", "num_experts_per_tok", 2, false },
        { "ministral", "num_key_value_heads", 8, false },
        { "ministral", "sliding_window", 4096, false },
        { "ministral3", "num_key_value_heads", 8, false },
        { "ministral3", "head_dim", 128, false },
        { "qwen2", "vocab_size", 151936, true },
        { "qwen2", "hidden_size", 4096, true },
        { "qwen2", "intermediate_size", 22016, true },
        { "qwen2", "num_hidden_layers", 32, true },
        { "qwen2", "num_attention_heads", 32, true },
        { "qwen2", "num_key_value_heads", 32, false },
        { "qwen2", "sliding_window", 4096, false },
        { "qwen2_vl_text", "num_key_value_heads", 8, false },
        { "qwen2_5_vl_text", "num_key_value_heads", 8, false },
        { "qwen2_moe", "num_key_value_heads", 16, false },
        { "qwen2_moe", "num_experts", 60, false },
        { "qwen2_moe", "num_experts_per_tok", 4, false },
        { "qwen2_moe", "moe_intermediate_size", 1408, false },
        { "qwen2_moe", "shared_expert_intermediate_size", 5632, false },
        { "qwen3", "num_key_value_heads", 32, false },
        { "qwen3", "head_dim", 128, false },
        { "qwen3", "sliding_window", 4096, false },
        { "qwen3_moe", "num_key_value_heads", 4, false },
        { "qwen3_moe", "num_experts", 128, false },
        { "qwen3_moe", "num_experts_per_tok", 8, false },
        { "qwen3_moe", "moe_intermediate_size", 768, false },
        { "qwen3_vl_text", "num_key_value_heads", 32, false },
        { "qwen3_vl_text", "head_dim", 128, false },
        { "qwen3_vl_moe_text", "num_key_value_heads", 16, false },
        { "qwen3_next", "num_key_value_heads", 2, false },
        { "qwen3_next", "head_dim", 256, false },
        { "qwen3_next", "num_experts", 512, false },
        { "qwen3_next", "num_experts_per_tok", 10, false },
        { "qwen3_next", "moe_intermediate_size", 512, false },
        { "qwen3_next", "shared_expert_intermediate_size", 512, false },
        { "qwen3_next", "linear_num_value_heads", 32, false },
        { "qwen3_next", "linear_value_head_dim", 128, false },
        { "qwen3_next", "linear_num_key_heads", 16, false },
        { "qwen3_next", "linear_key_head_dim", 128, false },
        { "qwen3_next", "linear_conv_kernel_dim", 4, false },
        { "qwen3_5_text", "num_key_value_heads", 4, false },
        { "qwen3_5_text", "head_dim", 256, false },
        { "qwen3_5_text", "linear_num_value_heads", 32, false },
        { "qwen3_5_text", "linear_value_head_dim", 128, false },
        { "qwen3_5_text", "linear_num_key_heads", 16, false },
        { "qwen3_5_text", "linear_key_head_dim", 128, false },
        { "qwen3_5_text", "linear_conv_kernel_dim", 4, false },
        { "qwen3_5_moe_text", "num_key_value_heads", 2, false },
        { "qwen3_5_moe_text", "head_dim", 256, false },
        { "qwen3_5_moe_text", "num_experts", 256, false },
        { "qwen3_5_moe_text", "num_experts_per_tok", 8, false },
        { "qwen3_5_moe_text", "moe_intermediate_size", 512, false },
        { "qwen3_5_moe_text", "shared_expert_intermediate_size", 512, false },
        { "qwen3_5_moe_text", "linear_num_value_heads", 32, false },
        { "qwen3_5_moe_text", "linear_value_head_dim", 128, false },
        { "qwen3_5_moe_text", "linear_num_key_heads", 16, false },
        { "qwen3_5_moe_text", "linear_key_head_dim", 128, false },
        { "qwen3_5_moe_text", "linear_conv_kernel_dim", 4, false },
        { "llama4_text", "num_key_value_heads", 8, false },
        { "llama4_text", "head_dim", 128, false },
        { "llama4_text", "intermediate_size_mlp", 16384, false },
        { "llama4_text", "num_local_experts", 16, false },
        { "llama4_text", "num_experts_per_tok", 1, false },
        { "llama4_text", "attention_chunk_size", 8192, false },
        { "glm4_moe", "num_key_value_heads", 8, false },
        { "glm4_moe", "n_shared_experts", 1, false },
        { "glm4_moe", "first_k_dense_replace", 1, false },
        { "deepseek_v2", "q_lora_rank", 1536, false },
        { "deepseek_v3", "q_lora_rank", 1536, false },
        { "deepseek_v3", "kv_lora_rank", 512, false },
        { "deepseek_v3", "qk_nope_head_dim", 128, false },
        { "deepseek_v3", "qk_rope_head_dim", 64, false },
        { "deepseek_v3", "v_head_dim", 128, false },
        { "deepseek_v3", "n_routed_experts", 256, false },
        { "deepseek_v3", "n_shared_experts", 1, false },
        { "deepseek_v3", "first_k_dense_replace", 3, false },
        { "deepseek_v3", "moe_intermediate_size", 2048, false },
        { "deepseek_v3", "num_experts_per_tok", 8, false },
        { "kimi_k2", "q_lora_rank", 1536, false },
        { "kimi_k2", "n_shared_experts", 1, false },
        { "kimi_k2", "first_k_dense_replace", 3, false },
        { "gemma", "num_key_value_heads", 16, false },
        { "gemma", "head_dim", 256, false },
        { "gemma2", "num_key_value_heads", 4, false },
        { "gemma2", "head_dim", 256, false },
        { "gemma2", "sliding_window", 4096, false },
        { "gemma3_text", "vocab_size", 262208, false },
        { "gemma3_text", "hidden_size", 2304, false },
        { "gemma3_text", "intermediate_size", 9216, false },
        { "gemma3_text", "num_hidden_layers", 26, false },
        { "gemma3_text", "num_attention_heads", 8, false },
        { "gemma3_text", "num_key_value_heads", 4, false },
        { "gemma3_text", "head_dim", 256, false },
        { "gemma3_text", "sliding_window", 4096, false },
        { "gpt_oss", "num_key_value_heads", 8, false },
        { "gpt_oss", "head_dim", 64, false },
        { "gpt_oss", "sliding_window", 128, false },
        { "gpt_oss", "num_local_experts", 128, false },
        { "gpt_oss", "num_experts_per_tok", 4, false },
        { "gpt2", "max_position_embeddings", 1024, false },
        { "gpt_bigcode", "max_position_embeddings", 1024, false },
        { "olmo3", "sliding_window", 4096, false },
        { "olmoe", "num_experts", 64, false },
        { "olmoe", "num_experts_per_tok", 8, false },
        { "cohere2", "sliding_window", 4096, false },
        { "exaone4", "sliding_window", 4096, false },
        { "smollm3", "num_key_value_heads", 4, false },
        { "seed_oss", "num_key_value_heads", 8, false },
        { "seed_oss", "head_dim", 128, false },
        { "glm", "num_key_value_heads", 2, false },
        { "glm", "head_dim", 128, false },
        { "glm4", "num_key_value_heads", 2, false },
        { "glm4", "head_dim", 128, false },
        { "ernie4_5", "num_key_value_heads", 2, false },
        { "ernie4_5", "head_dim", 128, false },
        { "starcoder2", "num_key_value_heads", 2, false },
        { "stablelm", "num_key_value_heads", 32, false },
        { "phimoe", "num_key_value_heads", 8, false },
        { "phimoe", "num_local_experts", 16, false },
        { "phimoe", "num_experts_per_tok", 2, false },
        { "opt", "max_position_embeddings", 2048, false },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].type, type) == 0 && strcmp(row[i].field, field) == 0 && (inside || !row[i].inside))
            return row[i].value;
    return 0;
}

/* Fields that say whether a kind of matrix has biases, where a family has more to say than attention_bias and
 * mlp_bias. */
enum { HF_OF_QKV = 1, HF_OF_OUTPUT = 2, HF_OF_MLP = 4, HF_OF_HEAD = 8 };

typedef struct hf_bias {
    const char *type, *field;
    bool missing; /* what a file means that leaves it out */
    int where;
} hf_bias;

HF_FN const hf_bias *hf_bias_at(int index)
{
    static const hf_bias row[] = {
        { "gpt_neox", "attention_bias", true, HF_OF_QKV | HF_OF_OUTPUT },
        { "gpt_oss", "attention_bias", true, HF_OF_QKV | HF_OF_OUTPUT },
        { "qwen2_moe", "qkv_bias", true, HF_OF_QKV },
        { "seed_oss", "attention_bias", true, HF_OF_QKV },
        { "seed_oss", "attention_out_bias", false, HF_OF_OUTPUT },
        { "ernie4_5", "use_bias", false, HF_OF_QKV | HF_OF_OUTPUT | HF_OF_MLP },
        { "internlm", "bias", true, HF_OF_QKV | HF_OF_OUTPUT },
        { "internlm2", "bias", true, HF_OF_QKV | HF_OF_OUTPUT },
        { "chatglm", "add_qkv_bias", false, HF_OF_QKV },
        { "chatglm", "add_bias_linear", true, HF_OF_OUTPUT | HF_OF_MLP },
        { "starcoder2", "use_bias", true, HF_OF_QKV | HF_OF_OUTPUT | HF_OF_MLP },
        { "stablelm", "use_qkv_bias", false, HF_OF_QKV },
        { "phimoe", "lm_head_bias", false, HF_OF_HEAD },
        { "opt", "enable_bias", true, HF_OF_QKV | HF_OF_OUTPUT | HF_OF_MLP },
        { "falcon", "bias", false, HF_OF_QKV | HF_OF_OUTPUT | HF_OF_MLP },
    };
    return index >= 0 && index < (int)(sizeof row / sizeof row[0]) ? &row[index] : NULL;
}

#endif /* HF_NAMES_H */
