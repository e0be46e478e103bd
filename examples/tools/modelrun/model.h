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
    MR_QK_NORM = 64,
    MR_WINDOW = 128,               /* sliding_window holds for every layer */
    MR_WINDOW_ASKED = 256,         /* with use_sliding_window, from layer max_window_layers on */
    MR_WINDOW_ALL_ASKED = 512,     /* with use_sliding_window, for every layer */
    MR_WINDOW_EVERY_SECOND = 1024, /* layers 0, 2, ...; with MR_WINDOW_ASKED those below max_window_layers */
    MR_EXPERT_LAYERS = 2048,       /* decoder_sparse_step, mlp_only_layers, moe_intermediate_size */
    MR_SHARED = 4096,              /* an expert that every token has, behind a gate */
    MR_SINKS = 8192,
    MR_GPT_OSS = 16384, /* one tensor for all experts, gates and ups by turns */
    MR_GPT2 = 32768,
    MR_TIED = 65536,
    MR_PLACES = 131072 /* learned positions, no rotation, a perceptron without a gate: srlab_char, srlab's export */
};

typedef struct mr_family {
    const char *type;
    int flags;
    int64_t kv_heads, head_dim; /* where the configuration has none; 0: as many as heads, hidden / heads */
    double eps, theta;
    int64_t window, first_window;
    const char *experts, *experts_too; /* fields with their number; NULL: dense */
    int64_t expert_count, experts_per_token;
} mr_family;

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

enum {
    MR_Q,
    MR_K,
    MR_V,
    MR_O,
    MR_GATE,
    MR_UP,
    MR_DOWN,
    MR_ROUTER,
    MR_SHARED_GATE,
    MR_SHARED_UP,
    MR_SHARED_DOWN,
    MR_SHARED_SWITCH,
    MR_MATRICES
};

struct mr_layer {
    mr_weight norm[2], norm_bias[2]; /* before attention, before the perceptron */
    mr_weight q_norm, k_norm, sinks;
    mr_weight w[MR_MATRICES], bias[MR_MATRICES];
    mr_weight *expert; /* [experts][gate, up, down] */
    mr_weight *expert_bias;
};

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
