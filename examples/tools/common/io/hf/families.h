/* hf/families.h - the model types that are known, and what they differ in.
 * A part of hf_config.h. SPDX-License-Identifier: MIT
 */
#ifndef HF_FAMILIES_H
#define HF_FAMILIES_H

#include <stddef.h>
#include <string.h>

#define HF_FN static inline __attribute__((unused))

/* ---- what the families differ in ---- */

enum {
    HF_QKV_BIAS = 1, /* always */
    HF_O_BIAS = 2,
    HF_MLP_BIAS = 4,
    HF_NORM_BIAS = 8,
    HF_QK_NORM = 16,
    HF_PLAIN_MLP = 32,
    HF_TIED = 64, /* unless the file says otherwise */
    HF_SINKS = 128,
    HF_ROUTER_BIAS = 256,
    HF_LATENT = 512,
    HF_SHARED_GATE = 1024,
    HF_GPT2 = 2048,            /* its own names for everything */
    HF_ALL_SPARSE = 4096,      /* every layer has experts, of intermediate_size */
    HF_EXPERT_LAYERS = 8192,   /* decoder_sparse_step, mlp_only_layers */
    HF_WINDOW = 16384,         /* sliding_window holds for every layer */
    HF_WINDOW_ASKED = 32768,   /* only with use_sliding_window */
    HF_LLAMA4 = 65536,         /* its own names for windows, dense blocks and which layers have experts */
    HF_FIRST_DENSE = 131072,   /* first_k_dense_replace; n_shared_experts of the same width as the others */
    HF_NO_O_BIAS = 262144,     /* attention_bias is that of queries, keys and values */
    HF_QK_NORM_ASKED = 524288, /* use_qk_norm */
    HF_DELTA_RULE = 1048576,   /* gated delta rule in most layers, attention with a gate in the others */
    HF_MAMBA2 = 2097152,
    HF_ENCODER = 4194304,   /* every token sees all others; what is at the end: "architectures" */
    HF_IMAGES = 8388608,    /* of patches in place of words */
    HF_PADDED = 16777216,   /* the first two positions are never used */
    HF_TABLES = 33554432,   /* no transformer */
    HF_INDEXED = 67108864,  /* an indexer chooses the positions that are seen */
    HF_HALVES = 134217728,  /* an encoder and a decoder, which are planned one by one */
    HF_TOWERS = 268435456,  /* one of texts and one of images, likewise */
    HF_WIDE_QK = 536870912, /* use_qk_norm: over all heads at once */
    HF_AFMOE = 1073741824   /* attention with a gate; its own names for dense blocks and shared experts */
};

typedef struct hf_family {
    const char *type;
    int flags;
    int norms;           /* of [hidden] in a layer */
    int full_every;      /* one layer in so many sees everything, the others a window; 0 = see flags */
    const char *experts; /* the field with their number; NULL = dense */
} hf_family;

/* Of a model that is two: the one that is meant. */
typedef enum hf_part { HF_WHOLE = 0, HF_ENCODER_PART, HF_DECODER_PART, HF_TEXT_PART, HF_IMAGE_PART, HF_PARTS } hf_part;

HF_FN const char *hf_part_name(hf_part part)
{
    static const char *const name[HF_PARTS] = { "whole", "encoder", "decoder", "text", "image" };
    return (unsigned)part < HF_PARTS ? name[(unsigned)part] : "unknown";
}

/* The row number index; NULL after the last one. */
HF_FN const hf_family *hf_family_at(int index)
{
    static const hf_family row[] = {
        { "llama", 0, 2, 0, NULL },
        { "granite", 0, 2, 0, NULL },
        { "phi3", HF_WINDOW, 2, 0, NULL },
        { "mistral", HF_WINDOW, 2, 0, NULL },
        { "mixtral", HF_ALL_SPARSE | HF_WINDOW, 2, 0, "num_local_experts" },
        { "qwen2", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL },
        { "qwen2_moe", HF_QKV_BIAS | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_WINDOW_ASKED, 2, 0, "num_experts" },
        { "qwen3", HF_QK_NORM | HF_WINDOW_ASKED, 2, 0, NULL },
        { "qwen3_moe", HF_QK_NORM | HF_EXPERT_LAYERS | HF_WINDOW_ASKED, 2, 0, "num_experts" },
        { "qwen3_vl_text", HF_QK_NORM, 2, 0, NULL },
        { "qwen3_vl_moe_text", HF_QK_NORM | HF_EXPERT_LAYERS, 2, 0, "num_experts" },
        { "qwen3_next", HF_QK_NORM | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_DELTA_RULE, 2, 0, "num_experts" },
        { "llama4_text", HF_ALL_SPARSE | HF_LLAMA4, 2, 4, "num_local_experts" },
        { "glm4_moe", HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_NO_O_BIAS | HF_QK_NORM_ASKED, 2, 0, "n_routed_experts" },
        { "glm4_moe_lite", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts" },
        { "glm_moe_dsa", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_INDEXED, 2, 0, "n_routed_experts" },
        { "minimax_m2", HF_ALL_SPARSE | HF_WIDE_QK, 2, 0, "num_local_experts" },
        { "afmoe", HF_AFMOE | HF_QK_NORM | HF_FIRST_DENSE | HF_ROUTER_BIAS, 4, 4, "num_experts" },
        { "deepseek_v2", HF_LATENT | HF_FIRST_DENSE, 2, 0, "n_routed_experts" },
        { "deepseek_v3", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts" },
        { "deepseek_v32", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_INDEXED, 2, 0, "n_routed_experts" },
        { "kimi_k2", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts" },
        { "gemma", HF_TIED, 2, 0, NULL },
        { "gemma2", HF_TIED, 4, 2, NULL },
        { "gemma3_text", HF_TIED | HF_QK_NORM, 4, 6, NULL },
        { "gpt_oss", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_ROUTER_BIAS | HF_SINKS | HF_ALL_SPARSE, 2, 2,
          "num_local_experts" },
        { "gpt_neox", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "mamba2", HF_MAMBA2, 1, 0, NULL },
        { "bert", HF_ENCODER | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL },
        { "roberta",
          HF_ENCODER | HF_PADDED | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL },
        { "distilbert", HF_ENCODER | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2,
          0, NULL },
        { "t5", HF_HALVES, 2, 0, NULL },
        { "whisper", HF_HALVES | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "clip", HF_TOWERS | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "DiTTransformer2DModel", HF_IMAGES | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 0,
          0, NULL },
        { "vit", HF_ENCODER | HF_IMAGES | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL },
        { "dlrm", HF_TABLES, 0, 0, NULL },
        { "gpt2", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED | HF_GPT2, 2, 0, NULL },
    };
    return index >= 0 && index < (int)(sizeof row / sizeof row[0]) ? &row[index] : NULL;
}

/* What the family's class takes where a file leaves it out, as text_config in files of Gemma 3 does; 0 = nothing. */
HF_FN long hf_usual(const char *type, const char *field)
{
    static const struct {
        const char *type, *field;
        long value;
    } row[] = {
        /* transformers, Gemma3TextConfig */
        { "gemma3_text", "vocab_size", 262208 },      { "gemma3_text", "hidden_size", 2304 },
        { "gemma3_text", "intermediate_size", 9216 }, { "gemma3_text", "num_hidden_layers", 26 },
        { "gemma3_text", "num_attention_heads", 8 },  { "gemma3_text", "num_key_value_heads", 4 },
        { "gemma3_text", "head_dim", 256 },           { "gemma3_text", "sliding_window", 4096 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].type, type) == 0 && strcmp(row[i].field, field) == 0) return row[i].value;
    return 0;
}

#endif /* HF_FAMILIES_H */
