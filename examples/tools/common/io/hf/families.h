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

/* What fewer of them have. */
enum {
    HF_HEAD_BIAS = 1,   /* the head has one */
    HF_LEARNED = 2,     /* embeddings of positions */
    HF_FOUR_WIDE = 4,   /* feed-forward blocks are four times as wide as the model unless the file says otherwise */
    HF_WIDE_NORMS = 8,  /* norms of queries and keys are over all heads, always */
    HF_FIRST_NORM = 16, /* a norm behind the embeddings, beside the last one */
    HF_ALIKE = 32       /* every head has keys of its own, and the usual width */
};

typedef struct hf_family {
    const char *type;
    int flags;
    int norms;           /* of [hidden] in a layer */
    int full_every;      /* one layer in so many sees everything, the others a window; 0 = see flags */
    const char *experts; /* the field with their number; NULL = dense */
    int traits;
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
        { "llama", 0, 2, 0, NULL, 0 },
        { "granite", 0, 2, 0, NULL, 0 },
        { "phi3", HF_WINDOW, 2, 0, NULL, 0 },
        { "mistral", HF_WINDOW, 2, 0, NULL, 0 },
        { "mixtral", HF_ALL_SPARSE | HF_WINDOW, 2, 0, "num_local_experts", 0 },
        { "qwen2", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL, 0 },
        { "qwen2_moe", HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_WINDOW_ASKED, 2, 0, "num_experts", 0 },
        { "qwen3", HF_QK_NORM | HF_WINDOW_ASKED, 2, 0, NULL, 0 },
        { "qwen3_moe", HF_QK_NORM | HF_EXPERT_LAYERS | HF_WINDOW_ASKED, 2, 0, "num_experts", 0 },
        { "qwen3_vl_text", HF_QK_NORM, 2, 0, NULL, 0 },
        { "qwen3_vl_moe_text", HF_QK_NORM | HF_EXPERT_LAYERS, 2, 0, "num_experts", 0 },
        { "qwen3_next", HF_QK_NORM | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_DELTA_RULE, 2, 0, "num_experts", 0 },
        { "llama4_text", HF_ALL_SPARSE | HF_LLAMA4, 2, 4, "num_local_experts", 0 },
        { "glm4_moe", HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_NO_O_BIAS | HF_QK_NORM_ASKED, 2, 0, "n_routed_experts", 0 },
        { "glm4_moe_lite", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts", 0 },
        { "glm_moe_dsa", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_INDEXED, 2, 0, "n_routed_experts", 0 },
        { "minimax_m2", HF_ALL_SPARSE | HF_WIDE_QK, 2, 0, "num_local_experts", 0 },
        { "afmoe", HF_AFMOE | HF_QK_NORM | HF_FIRST_DENSE | HF_ROUTER_BIAS, 4, 4, "num_experts", 0 },
        { "deepseek_v2", HF_LATENT | HF_FIRST_DENSE, 2, 0, "n_routed_experts", 0 },
        { "deepseek_v3", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts", 0 },
        { "deepseek_v32", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_INDEXED, 2, 0, "n_routed_experts", 0 },
        { "kimi_k2", HF_LATENT | HF_FIRST_DENSE | HF_ROUTER_BIAS, 2, 0, "n_routed_experts", 0 },
        { "gemma", HF_TIED, 2, 0, NULL, 0 },
        { "gemma2", HF_TIED, 4, 2, NULL, 0 },
        { "gemma3_text", HF_TIED | HF_QK_NORM, 4, 6, NULL, 0 },
        { "gpt_oss", HF_MLP_BIAS | HF_ROUTER_BIAS | HF_SINKS | HF_ALL_SPARSE, 2, 2, "num_local_experts", 0 },
        { "gpt_neox", HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "mamba2", HF_MAMBA2, 1, 0, NULL, 0 },
        { "qwen3_5_text", HF_QK_NORM | HF_DELTA_RULE, 2, 0, NULL, 0 },
        { "qwen3_5_moe_text", HF_QK_NORM | HF_EXPERT_LAYERS | HF_SHARED_GATE | HF_DELTA_RULE, 2, 0, "num_experts", 0 },
        { "qwen2_vl_text", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL, 0 },
        { "qwen2_5_vl_text", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL, 0 },
        { "ministral", HF_WINDOW, 2, 0, NULL, 0 },
        { "ministral3", HF_WINDOW, 2, 0, NULL, 0 },
        { "mimo", HF_QKV_BIAS | HF_WINDOW_ASKED, 2, 0, NULL, 0 },
        { "helium", 0, 2, 0, NULL, 0 },
        { "arcee", HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "seed_oss", HF_NO_O_BIAS, 2, 0, NULL, 0 },
        { "smollm3", HF_TIED, 2, 0, NULL, 0 },
        { "olmo2", 0, 2, 0, NULL, HF_WIDE_NORMS },
        { "olmo3", 0, 2, 4, NULL, HF_WIDE_NORMS },
        { "olmoe", HF_ALL_SPARSE, 2, 0, "num_experts", HF_WIDE_NORMS },
        { "granitemoe", HF_ALL_SPARSE, 2, 0, "num_local_experts", 0 },
        { "glm", HF_NO_O_BIAS, 2, 0, NULL, 0 },
        { "glm4", HF_NO_O_BIAS, 4, 0, NULL, 0 },
        { "cohere", HF_TIED, 1, 0, NULL, 0 },
        { "cohere2", HF_TIED, 1, 4, NULL, 0 },
        { "exaone", 0, 2, 0, NULL, 0 },
        { "exaone4", HF_QK_NORM, 2, 4, NULL, 0 },
        { "ernie4_5", HF_TIED, 2, 0, NULL, 0 },
        { "deepseek", HF_FIRST_DENSE, 2, 0, "n_routed_experts", 0 },
        { "dots1", HF_FIRST_DENSE | HF_ROUTER_BIAS | HF_QK_NORM, 2, 0, "n_routed_experts", 0 },
        { "hunyuan_v1_dense", HF_QK_NORM, 2, 0, NULL, 0 },
        { "dbrx", 0, 2, 0, NULL, HF_FOUR_WIDE | HF_ALIKE },
        { "internlm", 0, 2, 0, NULL, 0 },
        { "internlm2", 0, 2, 0, NULL, 0 },
        { "baichuan", 0, 2, 0, NULL, 0 },
        { "minicpm", HF_TIED, 2, 0, NULL, 0 },
        { "orion", HF_NORM_BIAS, 2, 0, NULL, 0 },
        { "qwen", HF_QKV_BIAS, 2, 0, NULL, 0 },
        { "chatglm", 0, 2, 0, NULL, 0 },
        { "starcoder2", HF_WINDOW | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL, 0 },
        { "nemotron", HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "stablelm", HF_NORM_BIAS | HF_NO_O_BIAS, 2, 0, NULL, 0 },
        { "phi", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 1, 0, NULL, HF_HEAD_BIAS },
        { "phimoe", HF_WINDOW | HF_ALL_SPARSE | HF_NORM_BIAS, 2, 0, "num_local_experts", 0 },
        { "gptj", HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 1, 0, NULL, HF_HEAD_BIAS | HF_FOUR_WIDE | HF_ALIKE },
        { "gpt_bigcode", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL,
          HF_LEARNED | HF_FOUR_WIDE | HF_ALIKE },
        { "opt", HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL, HF_ALIKE },
        { "bloom", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL,
          HF_FOUR_WIDE | HF_FIRST_NORM | HF_ALIKE },
        { "falcon", HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL, HF_FOUR_WIDE },
        { "mpt", HF_PLAIN_MLP | HF_TIED, 2, 0, NULL, HF_FOUR_WIDE | HF_ALIKE },
        { "bert", HF_ENCODER | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL, 0 },
        { "roberta",
          HF_ENCODER | HF_PADDED | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL, 0 },
        { "xlm-roberta",
          HF_ENCODER | HF_PADDED | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL, 0 },
        { "camembert",
          HF_ENCODER | HF_PADDED | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0,
          NULL, 0 },
        { "distilbert", HF_ENCODER | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2,
          0, NULL, 0 },
        { "t5", HF_HALVES, 2, 0, NULL, 0 },
        { "mt5", HF_HALVES, 2, 0, NULL, 0 },
        { "whisper", HF_HALVES | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "clip", HF_TOWERS | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "DiTTransformer2DModel", HF_IMAGES | HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 0,
          0, NULL, 0 },
        { "vit", HF_ENCODER | HF_IMAGES | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP, 2, 0, NULL, 0 },
        { "dlrm", HF_TABLES, 0, 0, NULL, 0 },
        { "gpt2", HF_QKV_BIAS | HF_O_BIAS | HF_MLP_BIAS | HF_NORM_BIAS | HF_PLAIN_MLP | HF_TIED, 2, 0, NULL,
          HF_LEARNED | HF_FOUR_WIDE | HF_ALIKE },
    };
    return index >= 0 && index < (int)(sizeof row / sizeof row[0]) ? &row[index] : NULL;
}

#endif /* HF_FAMILIES_H */
