/* modelrun.h - runs a language model on the CPU with the engines' arithmetic, and says what each setting loses.
 * SPDX-License-Identifier: MIT
 *
 *     family.c    the families, one row each
 *     config.c    a Hugging Face config.json as the shape of a decoder; what is not supported is refused by name
 *     positions.c of the same: how positions turn heads
 *     names.c     where each family keeps its weights, of which shapes
 *     model.c     a checkpoint, mapped: every weight of names.c is found
 *     decode.c    matrices as numbers
 *     setting.c   the settings, one row each, and their text: "bf16,chains=1,tp=16"
 *     matrix.c    a weight as a setting has it: BF16, FP8 with scales, MX
 *     linear.c    products: the reference's, the engines', those of several cores with their all-reduce
 *     vector.c    norms, softmax, activation functions: the reference's, and the engines'
 *     rope.c      the angles of positions, scaled as the configuration says
 *     attention.c queries, keys and values, plain or from latents; caches
 *     recurrent.c layers that keep a state
 *     mixture.c   perceptrons, routers, experts
 *     forward.c   a decoder's layers
 *     compare.c   perplexity, KL, top-1, SQNR of layers
 *     certify.c   the certificate: does a token's result depend on what it is run with? certify_rules.c has the table
 *                 of operations and causes, certify_search.c the arrangements that are tried, certify_watch.c the
 *                 comparison of bits, certify_cost.c what a cure costs, certify_report.c the tables
 *     random.c    a checkpoint of random weights
 *     report.c    tables: text, CSV, JSON
 *     html.c      the page
 *     run.c       the command; main.c its options
 *
 * Numbers between operations are binary32 everywhere; a setting says to which format each result is rounded. All
 * matrices are [out, in], rows of `in` numbers, as torch.nn.Linear keeps them.
 */
#ifndef MODELRUN_H
#define MODELRUN_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "app/app.h"
#include "app/files.h"
#include "io/checkpoint.h"

#include <trnmath/trn_act.h>
#include <trnmath/trn_numerics.h>

/* ---- the shape of a decoder ---- */

typedef enum mr_rope {
    MR_ROPE_NONE,
    MR_ROPE_DEFAULT,
    MR_ROPE_LINEAR,
    MR_ROPE_LLAMA3,
    MR_ROPE_YARN,
    MR_ROPE_LONG
} mr_rope;

enum { MR_LAYERS = 4096, MR_PAIRS = 256, MR_TENSORS = 32 };

typedef struct mr_rope_rule {
    mr_rope kind;
    double theta, factor;
    double low_freq, high_freq, original;   /* llama3; original: of yarn and longrope, too */
    double beta_fast, beta_slow, attention; /* yarn; attention: what sines and cosines are multiplied by */
    bool truncate;                          /* yarn: its ramp begins and ends at whole dimensions */
    float divide[MR_PAIRS];                 /* longrope: of each frequency */
} mr_rope_rule;

/* The rules that a model may have at once: of layers that see all; of those with a window, where it is another one;
 * longrope's, of sequences that are longer than rope[MR_ROPE_ALL].original. */
enum { MR_ROPE_ALL, MR_ROPE_WINDOW, MR_ROPE_BEYOND, MR_ROPES };

/* Queries grow with their position p: times 1 + beta ln(1 + floor((p + offset) / length)). beta 0: they do not. */
typedef struct mr_query_rule {
    double beta, length;
    int offset;
    bool unturned; /* in layers that do not turn, alone */
} mr_query_rule;

typedef enum mr_qk_norm { MR_QK_NONE, MR_QK_HEAD, MR_QK_ALL, MR_QK_LENGTH } mr_qk_norm;

/* A layer's first half that keeps a state instead of keys and values: a convolution along the text, then a rule for
 * each head's matrix [key_dim, value_dim]. */
typedef enum mr_rule { MR_NO_RULE, MR_DELTA_RULE, MR_MAMBA2 } mr_rule;

typedef struct mr_recurrence {
    mr_rule rule;
    int64_t heads, groups, key_dim, value_dim; /* groups of heads have the same keys and queries */
    int64_t width;                             /* of the convolution: tokens, the present one included */
    bool bias, conv_bias;                      /* of what comes in and goes out; of the convolution */
    double shortest, longest;                  /* MR_MAMBA2: steps of time are not beyond these */
} mr_recurrence;

/* What a layer does before its perceptron. */
typedef enum mr_mixer { MR_ATTENDS, MR_RECURS, MR_NO_MIXER } mr_mixer;

typedef struct mr_config {
    char type[32]; /* model_type */
    const struct mr_family *family;
    int64_t layers, hidden, heads, kv_heads, head_dim, value_dim, intermediate, vocab, positions;
    int64_t q_rank, kv_rank; /* of latents; 0: queries have none; none have */
    int64_t experts, experts_per_token, moe_intermediate, shared_intermediate; /* 0: dense; no shared one */
    int64_t groups, groups_per_token; /* of experts: the best of these groups are asked */
    bool norm_topk, tied, qkv_bias, o_bias, mlp_bias;
    bool unscaled, scale_by_layer; /* gpt2: attention without its scale; over layer + 1 */
    double eps;
    double embed_scale;  /* of embeddings; 1 */
    double routed_scale; /* of what experts' shares add up to; 1 */
    trn_act act;
    mr_qk_norm qk_norm; /* of each head; of all heads at once; to length sqrt(head_dim), after the turn */
    mr_rope_rule rope[MR_ROPES];
    int64_t rope_first, rope_dim; /* dimensions [first, first + dim) of a head turn */
    bool rope_pairs;              /* dimensions 2 i and 2 i + 1 turn together; else i and i + dim / 2 */
    mr_query_rule query;
    double attention_scale;    /* of q k: 1 / sqrt(head_dim) */
    double swiglu_limit;       /* gpt-oss: clamped at this; 0: not clamped */
    double alpha;              /* gpt-oss: gate sigmoid(alpha gate) (up + 1) */
    bool chunked;              /* windows do not slide: they are the pieces that the text is cut into */
    int32_t window[MR_LAYERS]; /* tokens that each layer sees, its own included; 0: all */
    int8_t turn[MR_LAYERS];    /* which of rope[]; -1: none */
    bool sparse[MR_LAYERS];    /* this layer has experts */
    mr_recurrence recurrence;
    uint8_t mixer[MR_LAYERS];
    bool bare[MR_LAYERS]; /* this layer has no perceptron */
    bool squared;         /* the activation function's results are */
} mr_config;

/* ---- weights ---- */

typedef struct mr_weight mr_weight; /* a matrix or a vector of the checkpoint: model.c */
typedef struct mr_layer mr_layer;
typedef struct mr_model mr_model;

/* ---- settings ---- */

typedef enum mr_codes { MR_CODES_AS_ACT, MR_CODES_FP8, MR_CODES_MX } mr_codes; /* what the Tensor engine multiplies */
/* How the sums of several cores meet: a ring, of up to 64 tokens; a ring of each token; all to all, added in order. */
typedef enum mr_reduce { MR_REDUCE_RING, MR_REDUCE_TOKEN, MR_REDUCE_ORDERED } mr_reduce;
enum { MR_MESSAGE_ROWS = 64 };                                 /* tokens whose sums travel together */
typedef enum mr_way { MR_HALVE, MR_RATIO, MR_REQUANT } mr_way; /* from 448 codes to 240 */

typedef struct mr_setting {
    char name[192];    /* as it was asked for */
    const char *about; /* one phrase; "" for a combination */
    bool reference;    /* binary32, sums in binary64, functions of libm */
    trn_format act;    /* what results of operations are rounded to: BF16, F16, F32 */
    mr_codes codes;
    mr_way way;              /* FP8 */
    trn_format weight_codes; /* MX: F8_E4M3FN or F4_E2M1 */
    bool weights_only;       /* activations stay in `act`; codes times scale become `act` */
    bool kv_fp8;             /* keys and values are rounded to FP8 of 240 */
    int tp;                  /* cores that share each layer; 1: no all-reduce */
    trn_format wire;         /* of the all-reduce */
    mr_reduce reduce;
    bool split_outputs; /* cores share outputs, not depth: no sum is cut, and there is no all-reduce */
    bool scale_tensor;  /* FP8: one scale for all tokens of a product, not one for each */
    bool keys_aligned;  /* windows: a block's keys begin with a whole tile */
    bool ideal;         /* functions of libm, rounded, instead of the engine's tables */
    trn_generation generation;
    trn_numerics numerics;
} mr_setting;

/* ---- results: what the reports are made from ---- */

/* What one setting made of the text. Row 0 is the reference, whose SQNR are infinite. */
typedef struct mr_row {
    mr_setting setting;
    double nll;          /* mean of -ln p(next token), nats */
    double perplexity;   /* exp(nll) */
    double kl, kl_worst; /* mean and largest KL(reference || setting) of a position, nats */
    double top1;         /* share of positions whose likeliest token is the reference's */
    /* [layers + 1]: dB of the stream after each layer, and of the logits in the last place; INFINITY: the same numbers;
     * NaN: there are no finite numbers to compare */
    double *sqnr;
    /* [layers + 1]: |run - reference| / |BF16's run - reference| of the same; NaN: BF16 did not run, or is the same */
    double *ratio;
    /* [layers]: share of tokens whose router chooses other experts than the reference's; NaN: there is none */
    double *flips;
    double all_flips;   /* mean over the layers that have a router; NaN: there is none */
    int first_apart;    /* the first layer below mr_result.threshold_db; -1: none */
    int64_t not_finite; /* positions with a logit that is no finite number; in no mean */
    double seconds;
} mr_row;

typedef struct mr_result {
    const char *folder, *text; /* what was read: the model, the file of text or of tokens */
    char family[32];
    int64_t layers, hidden, parameters;
    int64_t tokens, predicted;  /* of the text; positions that have a next token */
    int64_t sequences, context; /* windows that the text was cut into, and their length */
    double threshold_db;
    bool mixture;                    /* it has routers */
    int alone;                       /* matrices of codes that have no scale, and 1 is taken */
    uint64_t file_bytes, peak_bytes; /* the checkpoint's size; the most memory this process had */
    int rows;
    mr_row *row;
} mr_result;

/* A page of its own: settings x layers as a picture of SQNR, a table of perplexity, KL and top-1. `result` is an
 * mr_result: this is an app_output's write. */
void mr_html(FILE *out, const void *result);

#endif /* MODELRUN_H */
