/* plan/plan_model.h - a transformer as numbers: its parameters, its flops, what it remembers of each token.
 * A part of trn_plan.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_model m = { .name = "llama-3-8b", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
 *                         .intermediate = 14336, .vocab = 128256 };
 *         trn_model_size size;
 *         if (trn_model_size_of(&m, &size, NULL) != TRN_OK) return 1;
 *         printf("%.0f parameters, %.0f bytes of KV cache a token in BF16\n", size.total, 2 * size.kv_elements);
 *         return size.total == 8030261248.0 ? 0 : 1;
 *     }
 *
 * DOES: counts every weight, bias and norm of decoder-only transformers: multi-head, grouped-query and latent attention
 *     (MLA), gated and plain feed-forward blocks, mixtures of experts with shared experts and leading dense blocks,
 *     sliding windows, layers of linear attention and state spaces (gated delta rule, Mamba-2), tied and untied
 *     embeddings; of encoders of text and of images (BERT, ViT), with a pooler, a classifier or a head for masked
 *     tokens; of decoders that look at an encoder (T5, whisper); of image transformers that a condition steers (DiT);
 *     of recommenders like DLRM, tables of embeddings between two MLPs; and the flops of a forward pass.
 * DOES NOT: read configuration files (examples/tools/common/io/hf_config.h does), plan an encoder and its decoder as
 *     one model (each is one), or know multi-token prediction heads.
 *
 * KNOWN FROM: the model code and the config.json that each publisher ships; tests hold the totals against published
 *     counts (llama 3, mixtral, qwen 3, deepseek-v3, gpt-oss, gpt-neox-20b, gpt2, gemma 2, bert, roberta, vit).
 *
 * Latent attention: head_dim is the part of a head that has no rotation, rope_dim the part that has, shared by all
 *     keys. The cache holds kv_rank + rope_dim elements a token and layer, whatever the number of heads. In decode the
 *     up-projection of keys and values is absorbed into queries and outputs: as many flops as projecting one token.
 *
 * Sparse attention (DeepSeek-V3.2, GLM-5): in every layer an indexer of index_heads heads scores all positions, with
 *     keys of index_dim of its own, which are cached beside the latent; attention reads the index_most best. Its
 *     matrices are on every slice, as DeepSeek's own code has them.
 * A decoder that looks at an encoder has a second attention in every layer, with queries and an output of its own. Its
 *     keys and values are made of the encoder's `cross` positions once for a sequence, and cached; flops leave that
 *     out.
 *
 * Encoders: every token sees all of its sequence, so there is no cache and nothing to decode. The one norm outside of
 *     the layers is that after the embeddings (BERT: norms follow their blocks) or that before the head (ViT: they
 *     precede them). The published 109,482,240 of bert-base are the encoder with its pooler; the checkpoint's
 *     masked-token head has 622,650 more, shares the embedding, and leaves the pooler out: 109,514,298. The 86.6
 *     million of vit-base-patch16-224 include a classifier of 1000, without which there are 85.8 million.
 *
 * Recommenders: a sample is one token. Its numbers go through the dense MLP, whose last layer is as wide as an
 *     embedding; each table gives the sum of the rows that the sample looks up. What meets the others is either the dot
 *     products of all pairs of these tables + 1 vectors beside the dense one (DLRM), or cross_layers times x0 * (W V x
 *     + b) + x of all of them (DLRM-DCNv2). Then comes the over MLP. Every layer has biases. (Naumov et al. 2019, Wang
 *     et al. 2021; the classes DLRM and DLRM_DCN of torchrec.)
 */
#ifndef TRNI_PLAN_PLAN_MODEL_H
#define TRNI_PLAN_PLAN_MODEL_H

#include "../base/base.h"

enum { TRN_MODEL_TABLES = 64, TRN_MODEL_WIDTHS = 8 };

typedef struct trn_model {
    char name[64];
    int64_t layers, hidden, heads;
    int64_t kv_heads;     /* 0 = heads */
    int64_t head_dim;     /* 0 = hidden / heads */
    int64_t intermediate; /* of a dense block; 0 = there is none, every layer has experts */
    int64_t vocab;

    int64_t experts, experts_per_token, moe_intermediate; /* 0 experts = dense */
    int64_t shared_intermediate;                          /* of all shared experts together */
    int64_t dense_layers;                                 /* of `layers`: blocks without experts */

    int64_t kv_rank;         /* latent attention; 0 = none */
    int64_t q_rank;          /* 0 = queries are projected in one step */
    int64_t rope_dim, v_dim; /* 0 = 0, head_dim */

    int64_t window, window_layers; /* in so many layers a token sees at most `window` positions; 0 = all */
    int64_t positions;             /* learned position embeddings; 0 = rotary or none */
    int64_t norms;                 /* of [hidden] in a layer; 0 = 2 */

    int64_t linear_layers; /* of `layers`: a state of fixed size in place of keys and values; 0 = none */
    int64_t linear_heads, linear_value_dim;   /* of values, of what gates them, and of the output */
    int64_t linear_key_heads, linear_key_dim; /* of keys, and of queries (Mamba-2: groups, state size) */
    int64_t linear_kernel;                    /* of the short convolution over queries, keys and values */
    bool state_space;                         /* the linear layers are Mamba-2's; false: a gated delta rule's */

    bool tied_embeddings; /* the head is the embedding */
    bool plain_mlp;       /* up and down; false: gate, up and down */
    bool qkv_bias, o_bias, mlp_bias, router_bias, norm_bias;
    bool qk_norm;         /* a norm of [head_dim] each for queries and keys */
    bool gated_attention; /* queries bring a gate of their own width for attention's output */
    bool sinks;           /* one learned logit for each head */
    bool shared_gate;     /* shared experts are weighed by a gate [hidden] */
    bool head_bias;       /* of a head that is no embedding: one number for each word */
    bool embedding_norm;  /* decoders: one norm more, behind the embeddings */
    bool wide_qk_norm;    /* qk_norm is of [heads, head_dim] and [kv_heads, head_dim] instead */

    int64_t index_heads, index_dim; /* latent attention: what chooses the positions that are seen; 0 = nothing */
    int64_t index_most;             /* so many of them */
    int64_t cross;                  /* a decoder: positions of an encoder that every layer looks at; 0 = none */
    int64_t condition; /* encoders: numbers that each layer makes of one vector a sequence, [hidden, condition] and a
                          bias; 0 = none */

    bool bidirectional;   /* an encoder: every token sees all others, before and behind it */
    bool pooler;          /* encoders: [hidden, hidden] and a bias, of one token of each sequence */
    bool masked_head;     /* encoders: [hidden, hidden], a norm and the head with biases, of every token */
    int64_t classes;      /* encoders: a classifier of one token of each sequence; 0 = none */
    int64_t token_types;  /* learned embeddings of segments, such as BERT's two; 0 = none */
    int64_t longest;      /* tokens of the longest sequence; 0 = any */
    int64_t patch_inputs; /* images: numbers of a patch, whose embedding has a bias; each image brings one token more,
                             is `longest` tokens, and vocab is 0; 0 = tokens of a vocabulary */
    bool no_class_token;  /* it does not: every token is a patch */
    bool no_patch_bias;

    /* A recommender has these, hidden (of an embedding) and longest (1), and nothing else of the above. */
    int64_t tables; /* of embeddings; 0 = this is none */
    int64_t table_rows[TRN_MODEL_TABLES];
    int64_t table_lookups[TRN_MODEL_TABLES]; /* rows that a sample looks up and sums */
    int64_t dense_inputs;                    /* numbers of a sample that are no rows */
    int64_t dense_widths[TRN_MODEL_WIDTHS];  /* of the MLP that they go through; the last is hidden; 0 ends */
    int64_t over_widths[TRN_MODEL_WIDTHS];   /* of the MLP behind what joins both; 0 ends */
    int64_t cross_layers, cross_rank;        /* DCNv2's; 0 = dot products of all pairs */
} trn_model;

/* ---- is it one? ---- */

/* Whether the numbers can be those of a transformer. */
TRN_API trn_status trn_model_check(const trn_model *model, trn_error *error);

/* The same model with every default replaced. */
TRN_API trn_status trn_model_settle(const trn_model *model, trn_model *out, trn_error *error);

/* ---- parameters. Every function below takes a settled model. ----
 *
 * `shares` is into how many slices tensor parallelism cuts a matrix; what it does not cut (norms, routers, the
 * down-projections of latent attention) every slice holds. Biases go with the columns they are added to; those of
 * row-cut matrices are held by all. */

typedef struct trn_model_size {
    double total;          /* parameters; the tied head counts once */
    double active;         /* of them, those that one token meets; the embedding table counts */
    double attention;      /* all layers */
    double dense_mlp;      /* all layers without experts */
    double experts;        /* all routed experts */
    double shared;         /* shared experts, routers */
    double embeddings;     /* table, positions, patches and head; of encoders pooler and classifier, too */
    double norms;          /* and what a condition is multiplied with */
    double kv_elements;    /* of one token, all layers, beyond any window */
    double state_elements; /* of one sequence, however long it is: all linear layers; of an encoder that is looked at */
} trn_model_size;

/* Counts a model's parameters. TRN_EINVAL names the field that makes it no model. */
TRN_API trn_status trn_model_size_of(const trn_model *model, trn_model_size *size, trn_error *error);

/* ---- flops ---- */

/* Positions that a token sees, averaged over the layers that look back, those with a window and those without; all of
 * them in an encoder. */
TRN_API double trn_model_context(const trn_model *model, double sequence);

/* Forward flops of `tokens` tokens that each see `context` positions, of which `logits` need the head, or the pooler
 * and the classifier: one of each sequence. A recommender's tokens are samples. Of sparse attention `context` is what
 * the indexer sees, and attention the best of them. */
TRN_API double trn_model_forward_flops(const trn_model *model, double tokens, double context, double logits);

#if TRNI_BODIES

#include <math.h>

/* ---- is it one? ---- */

/* Sizes beyond these are mistakes of a file, and what they multiply to stays below 2^62. */
#define TRNI_MODEL_FIELDS(X)                                                                                           \
    X(layers, 1, 4096)                                                                                                 \
    X(hidden, 1, 1 << 20)                                                                                              \
    X(heads, 1, 1 << 14)                                                                                               \
    X(kv_heads, 0, 1 << 14)                                                                                            \
    X(head_dim, 0, 1 << 14)                                                                                            \
    X(intermediate, 0, 1 << 22)                                                                                        \
    X(vocab, 0, 1 << 24)                                                                                               \
    X(experts, 0, 1 << 14)                                                                                             \
    X(experts_per_token, 0, 1 << 14)                                                                                   \
    X(moe_intermediate, 0, 1 << 22)                                                                                    \
    X(shared_intermediate, 0, 1 << 22)                                                                                 \
    X(dense_layers, 0, 4096)                                                                                           \
    X(kv_rank, 0, 1 << 20)                                                                                             \
    X(q_rank, 0, 1 << 20)                                                                                              \
    X(rope_dim, 0, 1 << 14)                                                                                            \
    X(v_dim, 0, 1 << 14)                                                                                               \
    X(window, 0, INT64_C(1) << 40)                                                                                     \
    X(window_layers, 0, 4096)                                                                                          \
    X(positions, 0, INT64_C(1) << 30)                                                                                  \
    X(norms, 0, 64)                                                                                                    \
    X(linear_layers, 0, 4096)                                                                                          \
    X(linear_heads, 0, 1 << 14)                                                                                        \
    X(linear_value_dim, 0, 1 << 14)                                                                                    \
    X(linear_key_heads, 0, 1 << 14)                                                                                    \
    X(linear_key_dim, 0, 1 << 14)                                                                                      \
    X(linear_kernel, 0, 1 << 10)                                                                                       \
    X(index_heads, 0, 1 << 14)                                                                                         \
    X(index_dim, 0, 1 << 14)                                                                                           \
    X(index_most, 0, INT64_C(1) << 32)                                                                                 \
    X(cross, 0, INT64_C(1) << 32)                                                                                      \
    X(condition, 0, 1 << 24)                                                                                           \
    X(classes, 0, 1 << 24)                                                                                             \
    X(token_types, 0, 1 << 20)                                                                                         \
    X(longest, 0, INT64_C(1) << 32)                                                                                    \
    X(patch_inputs, 0, 1 << 24)

TRNI_FN trn_status trni_model_ranges(const trn_model *m, trn_error *error)
{
#define TRNI_X(field, low, high) { #field, m->field, low, high },
    const struct {
        const char *name;
        int64_t value, low, high;
    } row[] = { TRNI_MODEL_FIELDS(TRNI_X) };
#undef TRNI_X
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].value < row[i].low || row[i].value > row[i].high)
            return trni_fail(error, TRN_EINVAL, "%s is %lld; a model has %lld to %lld", row[i].name,
                             (long long)row[i].value, (long long)row[i].low, (long long)row[i].high);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_model_mlp_check(const trn_model *m, trn_error *error)
{
    const bool sparse = m->experts > 0;
    if (sparse && (m->experts_per_token < 1 || m->experts_per_token > m->experts))
        return trni_fail(error, TRN_EINVAL, "experts_per_token is %lld, but there are %lld experts",
                         (long long)m->experts_per_token, (long long)m->experts);
    if (sparse && m->moe_intermediate < 1)
        return trni_fail(error, TRN_EINVAL, "moe_intermediate is 0, but there are %lld experts", (long long)m->experts);
    if (!sparse && (m->experts_per_token || m->moe_intermediate || m->shared_intermediate))
        return trni_fail(error, TRN_EINVAL, "experts is 0, but sizes of experts are given");
    if (m->dense_layers > m->layers)
        return trni_fail(error, TRN_EINVAL, "dense_layers is %lld, more than the %lld layers",
                         (long long)m->dense_layers, (long long)m->layers);
    const bool none = m->linear_layers > 0 && m->linear_layers == m->layers; /* Mamba-2 has no feed-forward blocks */
    if (m->intermediate < 1 && (sparse ? m->dense_layers > 0 : !none))
        return trni_fail(error, TRN_EINVAL, "intermediate is 0, but %lld layers have no experts",
                         (long long)(sparse ? m->dense_layers : m->layers));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_model_linear_check(const trn_model *m, trn_error *error)
{
    const struct {
        const char *name;
        int64_t value;
    } row[] = {
        { "linear_heads", m->linear_heads },         { "linear_value_dim", m->linear_value_dim },
        { "linear_key_heads", m->linear_key_heads }, { "linear_key_dim", m->linear_key_dim },
        { "linear_kernel", m->linear_kernel },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if ((row[i].value > 0) != (m->linear_layers > 0))
            return trni_fail(error, TRN_EINVAL, "%s is %lld, but linear_layers is %lld", row[i].name,
                             (long long)row[i].value, (long long)m->linear_layers);
    if (m->linear_layers && m->linear_heads % m->linear_key_heads)
        return trni_fail(error, TRN_EINVAL, "linear_heads %lld does not divide by linear_key_heads %lld",
                         (long long)m->linear_heads, (long long)m->linear_key_heads);
    if (m->window_layers > m->layers)
        return trni_fail(error, TRN_EINVAL, "window_layers is %lld, more than the %lld layers",
                         (long long)m->window_layers, (long long)m->layers);
    if (m->linear_layers + m->window_layers > m->layers)
        return trni_fail(error, TRN_EINVAL, "linear_layers is %lld, more than the %lld layers without a window",
                         (long long)m->linear_layers, (long long)(m->layers - m->window_layers));
    return TRN_OK;
}

/* What chooses positions belongs to latent attention, and is there or not; a decoder that looks at an encoder. */
TRNI_DRIVER trn_status trni_model_looks_check(const trn_model *m, trn_error *error)
{
    const bool chooses = m->index_most > 0;
    if ((m->index_heads > 0) != chooses || (m->index_dim > 0) != chooses)
        return trni_fail(error, TRN_EINVAL, "index_heads is %lld, index_dim %lld and index_most %lld: all or none",
                         (long long)m->index_heads, (long long)m->index_dim, (long long)m->index_most);
    if (chooses && (!m->q_rank || m->window || m->linear_layers))
        return trni_fail(error, TRN_EINVAL,
                         "index_most is %lld, which belongs to latent attention with a q_rank, alone",
                         (long long)m->index_most);
    if (m->cross && (m->kv_rank || m->linear_layers || m->bidirectional))
        return trni_fail(error, TRN_EINVAL, "cross is %lld, but the model is no decoder with keys and values alone",
                         (long long)m->cross);
    return TRN_OK;
}

/* What only one kind of model has. */
TRNI_DRIVER trn_status trni_model_encoder_check(const trn_model *m, trn_error *error)
{
    const struct {
        const char *name;
        bool given, encoders;
    } row[] = {
        { "pooler", m->pooler, true },
        { "masked_head", m->masked_head, true },
        { "classes", m->classes > 0, true },
        { "patch_inputs", m->patch_inputs > 0, true },
        { "condition", m->condition > 0, true },
        { "window", m->window > 0, false },
        { "linear_layers", m->linear_layers > 0, false },
        { "kv_rank", m->kv_rank > 0, false },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].given && row[i].encoders != m->bidirectional)
            return trni_fail(error, TRN_EINVAL, "%s is given, but the model is %s encoder (bidirectional)", row[i].name,
                             m->bidirectional ? "an" : "no");
    if (m->masked_head && (m->pooler || m->classes || m->patch_inputs))
        return trni_fail(error, TRN_EINVAL, "masked_head is given, and so is %s, which excludes it",
                         m->pooler    ? "pooler"
                         : m->classes ? "classes"
                                      : "patch_inputs");
    if (m->vocab < 1 && !m->patch_inputs)
        return trni_fail(error, TRN_EINVAL, "vocab is 0; a model without patch_inputs has 1 to 16777216");
    if (m->patch_inputs && (m->vocab || m->longest < 2))
        return trni_fail(error, TRN_EINVAL,
                         "patch_inputs is %lld, but vocab is %lld and longest %lld; expected 0 and "
                         "the tokens of an image",
                         (long long)m->patch_inputs, (long long)m->vocab, (long long)m->longest);
    return TRN_OK;
}

/* Widths of an MLP: at least one, and none behind the first 0. */
TRNI_DRIVER trn_status trni_model_widths_check(const char *name, const int64_t width[TRN_MODEL_WIDTHS],
                                               trn_error *error)
{
    for (int i = 0; i < TRN_MODEL_WIDTHS; i++)
        if (width[i] < (i == 0) || width[i] > 1 << 20 || (i && width[i] && !width[i - 1]))
            return trni_fail(error, TRN_EINVAL, "%s[%d] is %lld; a layer has 1 to 1048576, and 0 ends the list", name,
                             i, (long long)width[i]);
    return TRN_OK;
}

TRNI_FN int trni_plan_widths(const int64_t width[TRN_MODEL_WIDTHS])
{
    int n = 0;
    while (n < TRN_MODEL_WIDTHS && width[n]) n++;
    return n;
}

/* Sizes of tables end at 2^40 rows, so that all of their numbers stay below 2^66. */
TRNI_DRIVER trn_status trni_model_tables_check(const trn_model *m, trn_error *error)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } row[] = {
        { "tables", m->tables, 1, TRN_MODEL_TABLES },
        { "hidden", m->hidden, 1, 1 << 20 },
        { "dense_inputs", m->dense_inputs, 1, 1 << 20 },
        { "longest", m->longest, 1, 1 },
        { "layers", m->layers, 0, 0 },
        { "heads", m->heads, 0, 0 },
        { "vocab", m->vocab, 0, 0 },
        { "experts", m->experts, 0, 0 },
        { "linear_layers", m->linear_layers, 0, 0 },
        { "intermediate", m->intermediate, 0, 0 },
        { "patch_inputs", m->patch_inputs, 0, 0 },
        { "bidirectional", m->bidirectional, 0, 0 },
        { "cross_layers", m->cross_layers, 0, 64 },
        { "cross_rank", m->cross_rank, m->cross_layers > 0, m->cross_layers > 0 ? 1 << 20 : 0 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].value < row[i].low || row[i].value > row[i].high)
            return trni_fail(error, TRN_EINVAL, "%s is %lld; a recommender has %lld to %lld", row[i].name,
                             (long long)row[i].value, (long long)row[i].low, (long long)row[i].high);
    for (int i = 0; i < (int)m->tables; i++)
        if (m->table_rows[i] < 1 || m->table_rows[i] > INT64_C(1) << 40 || m->table_lookups[i] < 1 ||
            m->table_lookups[i] > 1 << 20)
            return trni_fail(error, TRN_EINVAL,
                             "table %d has %lld rows, of which a sample looks up %lld; expected 1 "
                             "to 2^40 and 1 to 2^20",
                             i, (long long)m->table_rows[i], (long long)m->table_lookups[i]);
    trn_status status = trni_model_widths_check("dense_widths", m->dense_widths, error);
    if (status == TRN_OK) status = trni_model_widths_check("over_widths", m->over_widths, error);
    if (status != TRN_OK) return status;
    const int64_t last = m->dense_widths[trni_plan_widths(m->dense_widths) - 1];
    if (last == m->hidden) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "the last of dense_widths is %lld, but an embedding is %lld wide",
                     (long long)last, (long long)m->hidden);
}

TRN_API trn_status trn_model_check(const trn_model *model, trn_error *error)
{
    TRNI_FLOATS;
    if (!model) return trni_fail(error, TRN_EINVAL, "model is null");
    if (model->tables) return trni_model_tables_check(model, error);
    trn_status status = trni_model_ranges(model, error);
    if (status == TRN_OK) status = trni_model_mlp_check(model, error);
    if (status == TRN_OK) status = trni_model_linear_check(model, error);
    if (status == TRN_OK) status = trni_model_encoder_check(model, error);
    if (status == TRN_OK) status = trni_model_looks_check(model, error);
    if (status != TRN_OK) return status;
    if (model->head_dim == 0 && model->hidden % model->heads)
        return trni_fail(error, TRN_EINVAL, "head_dim is not given, and hidden %lld does not divide by heads %lld",
                         (long long)model->hidden, (long long)model->heads);
    if (model->kv_heads && model->heads % model->kv_heads)
        return trni_fail(error, TRN_EINVAL, "heads %lld does not divide by kv_heads %lld", (long long)model->heads,
                         (long long)model->kv_heads);
    if (model->kv_rank == 0 && model->q_rank)
        return trni_fail(error, TRN_EINVAL, "q_rank is %lld, but kv_rank is 0: both belong to latent attention",
                         (long long)model->q_rank);
    return TRN_OK;
}

TRN_API trn_status trn_model_settle(const trn_model *model, trn_model *out, trn_error *error)
{
    TRNI_FLOATS;
    const trn_status status = trn_model_check(model, error);
    if (status != TRN_OK) return status;
    trn_model m = *model;
    *out = m;
    if (m.tables) return TRN_OK;
    if (m.kv_heads == 0) m.kv_heads = m.heads;
    if (m.head_dim == 0) m.head_dim = m.hidden / m.heads;
    if (m.v_dim == 0 || m.kv_rank == 0) m.v_dim = m.head_dim;
    if (m.kv_rank == 0) m.rope_dim = 0;
    if (m.norms == 0) m.norms = 2;
    if (m.experts == 0) m.dense_layers = m.layers;
    if (m.window == 0) m.window_layers = 0;
    *out = m;
    return TRN_OK;
}

/* ---- parameters. Every function below takes a settled model. ----
 *
 * `shares` is into how many slices tensor parallelism cuts a matrix; what it does not cut (norms, routers, the
 * down-projections of latent attention) every slice holds. Biases go with the columns they are added to; those of
 * row-cut matrices are held by all. */

TRNI_FN double trni_plan_ceil_share(int64_t size, int64_t shares)
{
    return (double)(size / shares + (size % shares != 0));
}

/* Slices beyond the number of KV heads hold a copy of one. */
TRNI_FN double trni_plan_kv_heads_share(const trn_model *m, int64_t shares)
{
    return trni_plan_ceil_share(m->kv_heads, shares);
}

/* What a layer's indexer is multiplied with: queries of the latent, a key and the weights of its heads. */
TRNI_FN double trni_plan_index_multiplied(const trn_model *m)
{
    const double h = (double)m->hidden, heads = (double)m->index_heads, size = (double)m->index_dim;
    return (double)m->q_rank * heads * size + h * size + h * heads;
}

/* The same, and a norm of the key. */
TRNI_FN double trni_plan_index_parameters(const trn_model *m)
{
    return m->index_most ? trni_plan_index_multiplied(m) + 2 * (double)m->index_dim : 0;
}

TRNI_FN double trni_plan_latent_parameters(const trn_model *m, int64_t shares)
{
    const double h = (double)m->hidden, heads = trni_plan_ceil_share(m->heads, shares);
    const double query = heads * (double)(m->head_dim + m->rope_dim);
    const double q = m->q_rank ? (double)m->q_rank * (h + 1 + query) : h * query; /* + 1: the norm between */
    const double kv = h * (double)(m->kv_rank + m->rope_dim) + (double)m->kv_rank +
                      (double)m->kv_rank * heads * (double)(m->head_dim + m->v_dim);
    return q + kv + heads * (double)m->v_dim * h + (m->o_bias ? h : 0) + trni_plan_index_parameters(m);
}

/* Attention of one layer with keys and values, without the norms of [hidden]. */
TRNI_FN double trni_plan_full_parameters(const trn_model *m, int64_t shares)
{
    if (m->kv_rank) return trni_plan_latent_parameters(m, shares);
    const double h = (double)m->hidden, size = (double)m->head_dim;
    const double q = trni_plan_ceil_share(m->heads, shares) * size, kv = 2 * trni_plan_kv_heads_share(m, shares) * size;
    const double made = (m->gated_attention ? 2 : 1) * q + kv, bias = m->qkv_bias ? 1 : 0, output = m->o_bias ? h : 0;
    const double norms = m->wide_qk_norm ? q + kv / 2 : 2 * size;
    const double cross = m->cross ? (h + bias) * (q + kv) + q * h + output : 0;
    return (h + bias) * made + q * h + output + (m->qk_norm ? norms : 0) +
           (m->sinks ? trni_plan_ceil_share(m->heads, shares) : 0) + cross;
}

/* Of a linear layer: queries or keys of a slice, values of a slice, and what a token is projected to: queries, keys,
 * values, their gate, and for each head of values the gates of the state (Mamba-2: dt; delta rule: decay and beta). */
TRNI_FN double trni_plan_linear_keys(const trn_model *m, int64_t shares)
{
    return trni_plan_ceil_share(m->linear_key_heads, shares) * (double)m->linear_key_dim;
}

TRNI_FN double trni_plan_linear_values(const trn_model *m, int64_t shares)
{
    return trni_plan_ceil_share(m->linear_heads, shares) * (double)m->linear_value_dim;
}

TRNI_FN double trni_plan_linear_inputs(const trn_model *m, int64_t shares)
{
    const double gates = (m->state_space ? 1 : 2) * trni_plan_ceil_share(m->linear_heads, shares);
    return 2 * trni_plan_linear_keys(m, shares) + 2 * trni_plan_linear_values(m, shares) + gates;
}

/* Queries, keys and values, which the convolution sees. */
TRNI_FN double trni_plan_linear_convolved(const trn_model *m, int64_t shares)
{
    return 2 * trni_plan_linear_keys(m, shares) + trni_plan_linear_values(m, shares);
}

/* Mamba-2's heads have a decay, a bias of dt and a skip, those of a delta rule the first two; its norm is [values],
 * theirs [value_dim]. */
TRNI_FN double trni_plan_linear_parameters(const trn_model *m, int64_t shares)
{
    if (!m->linear_layers) return 0;
    const double h = (double)m->hidden, heads = trni_plan_ceil_share(m->linear_heads, shares);
    const double values = trni_plan_linear_values(m, shares), kernel = (double)m->linear_kernel;
    return h * (trni_plan_linear_inputs(m, shares) + values) +
           trni_plan_linear_convolved(m, shares) * (kernel + (m->state_space ? 1 : 0)) +
           (m->state_space ? 3 : 2) * heads + (m->state_space ? values : (double)m->linear_value_dim);
}

/* What a linear layer keeps of a sequence in one slice: a state for each head, and what the convolution looks at. */
TRNI_FN double trni_plan_state_elements(const trn_model *m, int64_t shares)
{
    if (!m->linear_layers) return 0;
    return trni_plan_linear_values(m, shares) * (double)m->linear_key_dim +
           trni_plan_linear_convolved(m, shares) * ((double)m->linear_kernel - 1);
}

/* Layers that are linear, of all. Where a model mixes both kinds, plans count each layer as the mean of them. */
TRNI_FN double trni_plan_linear_part(const trn_model *m) { return (double)m->linear_layers / (double)m->layers; }

/* Attention of the mean layer, or what is in its place. */
TRNI_FN double trni_plan_attention_parameters(const trn_model *m, int64_t shares)
{
    const double part = trni_plan_linear_part(m), full = part < 1 ? trni_plan_full_parameters(m, shares) : 0;
    return (1 - part) * full + part * trni_plan_linear_parameters(m, shares);
}

/* One feed-forward block, or one expert, of this inner width. */
TRNI_FN double trni_plan_mlp_parameters(const trn_model *m, int64_t inner, int64_t shares)
{
    const double h = (double)m->hidden, ways = m->plain_mlp ? 1 : 2, cut = trni_plan_ceil_share(inner, shares);
    return inner ? (ways + 1) * h * cut + (m->mlp_bias ? ways * cut + h : 0) : 0;
}

/* deepseek-v3's correction of the router's scores counts as a bias. */
TRNI_FN double trni_plan_router_parameters(const trn_model *m)
{
    return m->experts ? (double)m->experts * (double)(m->hidden + (m->router_bias ? 1 : 0)) : 0;
}

TRNI_FN double trni_plan_norm_parameters(const trn_model *m) { return (double)m->hidden * (m->norm_bias ? 2 : 1); }

/* Norms outside of the layers. */
TRNI_FN double trni_plan_outer_norms(const trn_model *m) { return m->embedding_norm ? 2 : 1; }

/* What makes a layer's numbers of a sequence's condition. No slice is cut. */
TRNI_FN double trni_plan_condition_parameters(const trn_model *m)
{
    return (double)m->condition * ((double)m->hidden + 1);
}

/* A layer without experts. */
TRNI_FN double trni_plan_dense_layer_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_attention_parameters(m, shares) + trni_plan_mlp_parameters(m, m->intermediate, shares) +
           (double)m->norms * trni_plan_norm_parameters(m) + trni_plan_condition_parameters(m);
}

/* Shared experts and the router. */
TRNI_FN double trni_plan_shared_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_mlp_parameters(m, m->shared_intermediate, shares) + (m->shared_gate ? (double)m->hidden : 0) +
           trni_plan_router_parameters(m);
}

/* A layer with experts, all but the experts themselves. */
TRNI_FN double trni_plan_moe_layer_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_attention_parameters(m, shares) + trni_plan_shared_parameters(m, shares) +
           (double)m->norms * trni_plan_norm_parameters(m) + trni_plan_condition_parameters(m);
}

/* Patches are cut along their numbers, as the vocabulary is; their bias and the image's own token are not. */
TRNI_FN double trni_plan_embedding_parameters(const trn_model *m, int64_t shares)
{
    const double cut = trni_plan_ceil_share(m->vocab, shares) + trni_plan_ceil_share(m->patch_inputs, shares);
    const double image = m->patch_inputs ? (m->no_patch_bias ? 0 : 1) + (m->no_class_token ? 0 : 1) : 0;
    return (cut + (double)(m->positions + m->token_types) + image) * (double)m->hidden;
}

/* Logits of a token, over the vocabulary; an encoder has them to guess masked tokens. */
TRNI_FN int64_t trni_plan_head_width(const trn_model *m) { return m->bidirectional && !m->masked_head ? 0 : m->vocab; }

TRNI_FN double trni_plan_head_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_ceil_share(trni_plan_head_width(m), shares) * (double)(m->hidden + (m->head_bias ? 1 : 0));
}

/* What an encoder's tokens meet at its end, beside the head. Of these matrices tp cuts none. */
TRNI_FN double trni_plan_end_parameters(const trn_model *m, int64_t shares)
{
    const double h = (double)m->hidden, dense = m->pooler || m->masked_head ? h * (h + 1) : 0;
    const double masked = trni_plan_norm_parameters(m) + trni_plan_ceil_share(m->vocab, shares);
    return dense + (m->masked_head ? masked : 0) + (double)m->classes * (h + 1);
}

/* Keys and values of one token in one layer that has them, in one slice. A latent is not cut by heads. */
TRNI_FN double trni_plan_kv_elements(const trn_model *m, int64_t shares)
{
    if (m->kv_rank) return (double)(m->kv_rank + m->rope_dim + m->index_dim);
    return 2 * trni_plan_kv_heads_share(m, shares) * (double)m->head_dim;
}

/* What attention and, before it, an indexer read of the caches of `positions` tokens, in one layer and slice. */
TRNI_FN double trni_plan_kv_read(const trn_model *m, double positions, int64_t shares)
{
    if (!m->index_most) return positions * trni_plan_kv_elements(m, shares);
    return fmin(positions, (double)m->index_most) * (double)(m->kv_rank + m->rope_dim) +
           positions * (double)m->index_dim;
}

/* ---- recommenders ---- */

typedef struct trni_plan_widths_sum {
    double weights, biases, outputs;
} trni_plan_widths_sum;

TRNI_FN trni_plan_widths_sum trni_plan_mlp_of_widths(double inputs, const int64_t width[TRN_MODEL_WIDTHS])
{
    trni_plan_widths_sum s = { 0, 0, 0 };
    for (int i = 0; i < trni_plan_widths(width); i++) {
        s.weights += inputs * (double)width[i];
        s.biases += (double)width[i];
        inputs = (double)width[i];
    }
    s.outputs = s.biases;
    return s;
}

/* All embeddings and the dense vector, one behind the other. */
TRNI_FN double trni_plan_joined(const trn_model *m) { return (double)(m->tables + 1) * (double)m->hidden; }

/* What the over MLP sees: the crossed vectors, or the dense one and a product of each pair. */
TRNI_FN double trni_plan_over_inputs(const trn_model *m)
{
    if (m->cross_layers) return trni_plan_joined(m);
    return (double)m->hidden + (double)(m->tables * (m->tables + 1) / 2);
}

TRNI_FN trni_plan_widths_sum trni_plan_cross(const trn_model *m)
{
    const double layers = (double)m->cross_layers, wide = trni_plan_joined(m), rank = (double)m->cross_rank;
    const trni_plan_widths_sum s = { layers * 2 * wide * rank, layers * wide, layers * (wide + rank) };
    return s;
}

/* Both MLPs and what is between them, which all chips repeat. */
TRNI_FN trni_plan_widths_sum trni_plan_repeated(const trn_model *m)
{
    const trni_plan_widths_sum part[] = { trni_plan_mlp_of_widths((double)m->dense_inputs, m->dense_widths),
                                          trni_plan_cross(m),
                                          trni_plan_mlp_of_widths(trni_plan_over_inputs(m), m->over_widths) };
    trni_plan_widths_sum all = { 0, 0, 0 };
    for (int i = 0; i < 3; i++) {
        all.weights += part[i].weights;
        all.biases += part[i].biases;
        all.outputs += part[i].outputs;
    }
    return all;
}

TRNI_FN void trni_plan_tables_size(const trn_model *m, trn_model_size *size)
{
    const trni_plan_widths_sum repeated = trni_plan_repeated(m);
    double rows = 0, met = 0;
    for (int i = 0; i < (int)m->tables; i++) {
        rows += (double)m->table_rows[i];
        met += fmin((double)m->table_lookups[i], (double)m->table_rows[i]);
    }
    size->embeddings = rows * (double)m->hidden;
    size->dense_mlp = repeated.weights + repeated.biases;
    size->total = size->embeddings + size->dense_mlp;
    size->active = met * (double)m->hidden + size->dense_mlp;
}

/* Of one sample: sums of rows, one product for each pair of vectors (DLRM's code computes all squares of them, too),
 * and every weight once. */
TRNI_FN double trni_plan_tables_flops(const trn_model *m)
{
    double sums = 0;
    for (int i = 0; i < (int)m->tables; i++) sums += (double)(m->table_lookups[i] - 1) * (double)m->hidden;
    const double pairs = m->cross_layers ? 0 : (double)(m->tables * (m->tables + 1) / 2);
    return sums + 2 * pairs * (double)m->hidden + 2 * trni_plan_repeated(m).weights;
}

TRN_API trn_status trn_model_size_of(const trn_model *model, trn_model_size *size, trn_error *error)
{
    TRNI_FLOATS;
    trn_model m;
    memset(&m, 0, sizeof m); /* for gcc, which does not see that only a success is read */
    if (!size) {
        trni_fail(error, TRN_EINVAL, "size is null");
        return TRN_EINVAL; /* so that gcc sees that size is written whenever TRN_OK is returned */
    }
    const trn_status status = trn_model_settle(model, &m, error);
    if (status != TRN_OK) return status;
    const double layers = (double)m.layers, sparse = (double)(m.layers - m.dense_layers);
    const double expert = trni_plan_mlp_parameters(&m, m.moe_intermediate, 1);
    memset(size, 0, sizeof *size);
    if (m.tables) {
        trni_plan_tables_size(&m, size);
        return TRN_OK;
    }
    const double linear = (double)m.linear_layers;
    size->attention =
        (layers - linear) * trni_plan_full_parameters(&m, 1) + linear * trni_plan_linear_parameters(&m, 1);
    size->dense_mlp = (double)m.dense_layers * trni_plan_mlp_parameters(&m, m.intermediate, 1);
    size->experts = sparse * (double)m.experts * expert;
    size->shared = sparse * trni_plan_shared_parameters(&m, 1);
    size->embeddings = trni_plan_embedding_parameters(&m, 1) +
                       (m.tied_embeddings ? 0 : trni_plan_head_parameters(&m, 1)) + trni_plan_end_parameters(&m, 1);
    size->norms = (layers * (double)m.norms + trni_plan_outer_norms(&m)) * trni_plan_norm_parameters(&m) +
                  layers * trni_plan_condition_parameters(&m);
    size->total = size->attention + size->dense_mlp + size->experts + size->shared + size->embeddings + size->norms;
    size->active = size->total - sparse * (double)(m.experts - m.experts_per_token) * expert;
    size->kv_elements = m.bidirectional ? 0 : (layers - linear) * trni_plan_kv_elements(&m, 1);
    size->state_elements =
        linear * trni_plan_state_elements(&m, 1) + layers * (double)m.cross * trni_plan_kv_elements(&m, 1);
    return TRN_OK;
}

/* ---- flops ---- */

/* Positions that a token sees, itself included, averaged over a causal sequence. */
TRNI_FN double trni_plan_causal_context(double sequence, double window)
{
    if (window <= 0 || window >= sequence) return (sequence + 1) / 2;
    return (window * (window + 1) / 2 + (sequence - window) * window) / sequence;
}

TRN_API double trn_model_context(const trn_model *model, double sequence)
{
    TRNI_FLOATS;
    const double layers = (double)(model->layers - model->linear_layers); /* that look back */
    const double windowed = model->window > 0 && layers > 0 ? (double)model->window_layers / layers : 0;
    if (layers <= 0) return 0;
    if (model->bidirectional) return sequence;
    return windowed * trni_plan_causal_context(sequence, (double)model->window) +
           (1 - windowed) * trni_plan_causal_context(sequence, 0);
}

/* Weights that a token is multiplied with in all layers: no norms, no biases, no look-up. */
TRNI_FN double trni_plan_multiplied(const trn_model *settled)
{
    trn_model m = *settled;
    m.qkv_bias = m.o_bias = m.mlp_bias = m.router_bias = m.qk_norm = m.sinks = false;
    m.norms = m.cross = m.index_most = 0;
    const double latent = m.kv_rank ? (double)(m.q_rank + m.kv_rank) : 0; /* the norms between the projections */
    const double sparse = (double)(m.layers - m.dense_layers), linear = (double)m.linear_layers;
    const double query = (double)m.hidden * (double)(m.heads * m.head_dim); /* of a decoder's second attention */
    const double full = trni_plan_full_parameters(&m, 1) - latent + (settled->cross ? 2 * query : 0) +
                        (settled->index_most ? trni_plan_index_multiplied(settled) : 0);
    const double each = (double)m.hidden * (trni_plan_linear_inputs(&m, 1) + trni_plan_linear_values(&m, 1)) +
                        trni_plan_linear_convolved(&m, 1) * (double)m.linear_kernel;
    return (double)m.dense_layers * trni_plan_mlp_parameters(&m, m.intermediate, 1) +
           sparse * (trni_plan_shared_parameters(&m, 1) +
                     (double)m.experts_per_token * trni_plan_mlp_parameters(&m, m.moe_intermediate, 1)) +
           ((double)m.layers - linear) * full + linear * each;
}

/* Weights that a token is multiplied with at the end: the head, and an encoder's other ones. */
TRNI_FN double trni_plan_end_multiplied(const trn_model *m)
{
    const double dense = m->pooler || m->masked_head ? (double)m->hidden : 0;
    return (double)m->hidden * ((double)trni_plan_head_width(m) + dense + (double)m->classes);
}

TRN_API double trn_model_forward_flops(const trn_model *model, double tokens, double context, double logits)
{
    TRNI_FLOATS;
    trn_model m;
    memset(&m, 0, sizeof m); /* for gcc, which does not see that only a success is read */
    if (trn_model_settle(model, &m, NULL) != TRN_OK) return 0;
    if (m.tables) return tokens * trni_plan_tables_flops(&m);
    const double score = (double)m.heads * (double)(m.head_dim + m.rope_dim + m.v_dim);
    const double seen = m.index_most ? fmin(context, (double)m.index_most) : context;
    const double index = m.index_most ? context * (double)(m.index_heads * m.index_dim) : 0;
    const double linear = (double)m.linear_layers; /* a state is updated and read, and by a delta rule read twice */
    const double state = (m.state_space ? 2 : 3) * trni_plan_linear_values(&m, 1) * (double)m.linear_key_dim;
    const double looks = ((double)m.layers - linear) * ((seen + (double)m.cross) * score + index) + linear * state;
    const double sequences = m.masked_head ? 0 : logits; /* of images, and of what a condition steers */
    return 2 * tokens * (trni_plan_multiplied(&m) + looks) + 2 * logits * trni_plan_end_multiplied(&m) +
           2 * fmax(0, tokens - (m.no_class_token ? 0 : logits)) * (double)m.patch_inputs * (double)m.hidden +
           2 * sequences * (double)(m.layers * m.condition) * (double)m.hidden;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_PLAN_PLAN_MODEL_H */
