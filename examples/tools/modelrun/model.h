/* model.h - a checkpoint, mapped: where each family keeps its weights, and matrices as numbers.
 * SPDX-License-Identifier: MIT
 */
#ifndef MODELRUN_MODEL_H
#define MODELRUN_MODEL_H

#include "modelrun.h"

#include <trnmath/trn_tensor.h>

#include "io/quant/foreign.h"
#include "io/quant/values.h"

/* ---- families ---- */

enum {
    MR_BIAS = 1,          /* queries, keys and values have one */
    MR_BIAS_ASKED = 2,    /* with attention_bias */
    MR_BIAS_DEFAULT = 4,  /* unless attention_bias is false; the output, too */
    MR_BIAS_QKV = 8,      /* unless qkv_bias is false */
    MR_O_BIAS_ASKED = 16, /* the output's, with attention_bias */
    MR_MLP_BIAS_ASKED = 32,
    MR_ONE_MORE = 64,              /* norms multiply by 1 + weight */
    MR_WINDOW = 128,               /* sliding_window holds for every layer */
    MR_WINDOW_ASKED = 256,         /* with use_sliding_window, from layer max_window_layers on */
    MR_WINDOW_ALL_ASKED = 512,     /* with use_sliding_window, for every layer */
    MR_WINDOW_EVERY_SECOND = 1024, /* layers 0, 2, ...; with MR_WINDOW_ASKED those below max_window_layers */
    MR_WINDOW_PATTERN = 2048,      /* all but one in sliding_window_pattern, which have a rope of their own */
    MR_CHUNKS = 4096,              /* attention_chunk_size, in layers that turn; no_rope_layers do not */
    MR_EXPERT_LAYERS = 8192,       /* decoder_sparse_step, mlp_only_layers, moe_intermediate_size */
    MR_FIRST_DENSE = 16384,        /* first_k_dense_replace, moe_intermediate_size, n_shared_experts, groups */
    MR_EXPERT_STEP = 32768,        /* moe_layers or interleave_moe_layer_step; intermediate_size_mlp of the others */
    MR_SHARED = 65536,             /* shared_expert_intermediate_size, behind a gate */
    MR_LATENT = 131072,            /* queries, keys and values from latents */
    MR_GROWING = 262144,           /* llama_4_scaling_beta */
    MR_SINKS = 524288,
    MR_GPT_OSS = 1048576,
    MR_GPT2 = 2097152,
    MR_TIED = 4194304,
    MR_PLACES = 8388608, /* learned positions, no rotation, a perceptron without a gate: srlab_char, srlab's export */
    MR_SU = 16777216,    /* longrope is also called su and yarn */
    MR_GEMMA = 33554432, /* embeddings times sqrt(hidden), query_pre_attn_scalar, hidden_activation */
    MR_DELTA = 67108864, /* linear_attention: the gated delta rule, in all but one of full_attention_interval layers */
    MR_NEMOTRON = 268435456,   /* a layer attends, keeps a state or has a perceptron: hybrid_override_pattern */
    MR_GATED_HEADS = 134217728 /* what heads mix is multiplied by sigmoids, whose arguments come with the queries */
};

/* How experts are chosen, and what they count. Without a flag: softmax of all, then the best, rounded. */
enum {
    MR_ROUTE_OF_BEST = 1, /* the best logits first, then the function of these alone */
    MR_ROUTE_SIGMOID = 2, /* in place of softmax */
    MR_ROUTE_EXACT = 4,   /* logits and shares stay binary32; a correction is added for the choice */
    MR_ROUTE_INPUT = 8    /* shares multiply what experts read, not what they write */
};

/* A field that has to be this, or that is not there: anything else changes what is computed. */
typedef struct mr_fixed {
    const char *field, *value; /* a name, a number, true, false */
} mr_fixed;

typedef struct mr_family {
    const char *type, *outer; /* model_type; that of a model of more than text around it, whose text may have none */
    const struct mr_names *names;
    int flags;
    int64_t kv_heads, head_dim; /* where the configuration has none; 0: as many as heads, hidden / heads */
    double eps, theta;
    int64_t window, first_window;
    const char *experts, *experts_too; /* fields with their number; NULL: dense */
    int64_t expert_count, experts_per_token;
    bool norm_topk; /* with MR_EXPERT_LAYERS, where norm_topk_prob is missing */
    int route;
    mr_qk_norm qk_norm;
    const char *qk_norm_field; /* a flag that switches it; NULL: always */
    bool qk_norm_usual;
    const char *turned_field; /* how many dimensions turn; NULL: partial_rotary_factor alone */
    double turned;            /* the share of a head that turns; 0: all, and no field may say otherwise */
    const mr_rope_rule *rope; /* where the configuration has none; NULL: the default kind */
    double beta;              /* with rope: llama_4_scaling_beta */
    int64_t dense, groups, groups_per_token;
    double routed_scale;
    const mr_fixed *fixed;
} mr_family;

const mr_family *mr_family_at(int index); /* NULL beyond the last */

/* `name` is for the sentence. */
bool mr_config_parse(const char *text, size_t size, const char *name, mr_config *config, char *why);
bool mr_config_read(const char *path, mr_config *config, char *why);

/* ---- weights ---- */

/* A matrix [rows, columns], out by in, or a vector of `rows` (columns = 1), inside a tensor of the checkpoint. */
struct mr_weight {
    const st_tensor *tensor; /* NULL: there is none */
    int64_t rows, columns;
    int64_t first, row, column; /* element [o, i] is number first + o row + i column of the tensor */
    const quant_values *codes;  /* NULL: numbers. Else the same count, of what the codes stand for */
    bool plain;                 /* never FP8 or MX: the embedding, the head, routers */
    struct mr_matrix *ready;    /* as the present setting has it; NULL: not yet */
};

/* What a layer may have. */
enum {
    MR_NORM_1,       /* before attention */
    MR_NORM_1_AFTER, /* of what attention writes */
    MR_NORM_2,       /* before the perceptron */
    MR_NORM_2_AFTER,
    MR_Q,
    MR_K,
    MR_V,
    MR_O,
    MR_Q_NORM,
    MR_K_NORM,
    MR_SINKS_OF_HEADS,
    MR_Q_DOWN, /* to a latent, its norm; MR_Q is what comes after */
    MR_Q_DOWN_NORM,
    MR_KV_DOWN, /* to a latent, and dimensions of the keys that turn */
    MR_KV_DOWN_NORM,
    MR_KV_UP,       /* for each head: dimensions of its keys that do not turn, its values */
    MR_STATE_IN,    /* queries, keys, values and a gate, group by group; or a gate, values, keys, queries, steps */
    MR_STATE_RATES, /* how much each head takes in and forgets, group by group */
    MR_STATE_CONV,
    MR_STATE_DECAY,
    MR_STATE_STEP,
    MR_STATE_NORM,
    MR_STATE_SKIP, /* how much of a value comes out at once */
    MR_GATE,
    MR_UP,
    MR_DOWN,
    MR_ROUTER,
    MR_CORRECTION, /* of the router's scores, for the choice alone */
    MR_SHARED_GATE,
    MR_SHARED_UP,
    MR_SHARED_DOWN,
    MR_SHARED_SWITCH,
    MR_WEIGHTS
};

struct mr_layer {
    mr_weight w[MR_WEIGHTS], bias[MR_WEIGHTS];
    mr_weight *expert; /* [experts][gate, up, down] */
    mr_weight *expert_bias;
};

/* ---- where families keep them: names.c ---- */

typedef enum mr_size {
    MR_NO_SIZE, /* of a vector's columns */
    MR_ONE,
    MR_HIDDEN,
    MR_QUERIES,        /* all heads of queries */
    MR_KEYS,           /* all heads of keys */
    MR_MIXED,          /* all heads' values, as attention mixes them */
    MR_QUERIES_PLAIN,  /* MR_QUERIES, where queries have no latent */
    MR_QUERIES_LATENT, /* MR_QUERIES, where they have one */
    MR_Q_RANK,
    MR_KV_RANK,
    MR_KV_RANK_TURNED,
    MR_KEYS_VALUES, /* what comes of the latent of keys and values */
    MR_QUERIES_GATES,
    MR_STATE_INS,
    MR_STATE_TWICE,    /* two numbers for each head of the recurrence */
    MR_STATE_CHANNELS, /* of its convolution */
    MR_STATE_WIDTH,    /* [channels, 1, width] */
    MR_STATE_HEADS,
    MR_STATE_VALUE,
    MR_STATE_INNER, /* all its heads' values */
    MR_Q_NORM_SIZE,
    MR_K_NORM_SIZE,
    MR_SINK_HEADS,
    MR_INNER,
    MR_EXPERTS,
    MR_EXPERTS_CORRECTED,
    MR_SHARED_INNER,
    MR_SIZES
} mr_size;

typedef enum mr_biased {
    MR_NO_BIAS,
    MR_QKV_BIAS,
    MR_O_BIAS,
    MR_MLP_BIAS,
    MR_STATE_BIAS,
    MR_CONV_BIAS,
    MR_ALWAYS_BIAS
} mr_biased;

/* One weight of a layer; of size 0 it is not there. Neighbours of one name are one tensor, one below the other. A name
 * that begins with a dot comes after the perceptron's. */
typedef struct mr_part {
    const char *name; /* NULL: the list ends */
    int slot;
    mr_size rows, columns;
    mr_biased bias;
    const char *end; /* NULL: ".weight" */
} mr_part;

typedef enum mr_joint { MR_ONE_BY_ONE, MR_TURNS, MR_HALVES } mr_joint;

typedef struct mr_names {
    const char *const *prefix; /* what may come before "layers.": NULL ends it */
    const char *layers, *embed, *places, *norm;
    const char *home; /* of the perceptron */
    const mr_part *attention, *recurrent, *dense, *sparse;
    const char *const *expert; /* gate, up, down; no gate: NULL */
    mr_joint joint;            /* all experts in one tensor, gates and ups by turns, or one half and the other */
    bool turned;               /* a layer's matrices are [in, out] */
    bool norm_bias;            /* the last norm has one */
} mr_names;

extern const mr_names mr_names_usual, mr_names_plain, mr_names_gpt2, mr_names_gpt_oss, mr_names_mixtral,
    mr_names_qwen_moe, mr_names_deepseek, mr_names_glm_moe, mr_names_phi3, mr_names_gemma3, mr_names_llama4,
    mr_names_minimax, mr_names_qwen3_next, mr_names_nemotron_h;

int64_t mr_size_of(const mr_config *c, mr_size size);
bool mr_has_bias(const mr_config *c, const mr_part *part);
/* Parts that are one tensor with `part`, itself included, and the rows of all of them; 0: it is not there. */
int mr_parts_together(const mr_config *c, const mr_part *part, int64_t *rows);

struct mr_model {
    mr_config config;
    ckpt checkpoint;
    st_file *shard; /* [checkpoint.shards], all open */
    const char *folder;
    const char *prefix; /* before "layers.0." */
    mr_weight embed, positions, norm, norm_bias, head;
    mr_layer *layer;
    int64_t parameters;
    uint64_t file_bytes;
    quant_said said; /* how it is quantised */
    quant_asked asked;
    const st_tensor **list; /* all tensors, by name */
    quant_map map;
    quant_values *values; /* [map.quants], of those that are used */
    int alone;            /* matrices of codes without a scale, taken for 1 */
};

/* asked: what the user said of scales; NULL: nothing. */
bool mr_model_open(const char *folder, const quant_asked *asked, mr_model *model, char *why);
void mr_model_close(mr_model *model);

/* ---- numbers: decode.c ---- */

/* Rows [row, row + count) as binary32: out [count, columns]. Exact; a product of code and scale that binary32 does not
 * hold is rounded to odd (io/quant/values.h). */
void mr_decode(const mr_weight *w, int64_t row, int64_t count, float *out);
/* Its numbers where they stand; rank 0: they are codes with scales. [rows, columns]. */
trn_tensor mr_view(const mr_weight *w);
/* The codes of a row of E4M3 that has one scale; NULL: it is something else. */
const unsigned char *mr_codes_of_row(const mr_weight *w, int64_t row, float *scale);
/* How much of the checkpoint a weight is: 2 for BF16. */
double mr_bytes_each(const mr_weight *w);

#endif /* MODELRUN_MODEL_H */
