/* trn_plan_model.h - a transformer as numbers: its parameters, its flops, what it remembers of each token.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_plan_model.h>
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
 *     sliding windows, tied and untied embeddings; and the flops of a forward pass.
 * DOES NOT: read configuration files (examples/io/hf_config.h does), or know encoders, multi-token prediction heads and
 *     state-space blocks.
 *
 * CONTENTS
 *     trn_model                      the configuration; zero is the usual value
 *     trn_model_check                is it one? the sentence names the field
 *     trn_model_settle               every default replaced
 *     trn_model_size, trn_model_size_of   parameters by part, those at work on one token, elements of KV cache
 *     trn_model_forward_flops        of tokens that each look back at so many positions
 *     trn_model_context              positions that a token of a causal sequence sees, on average
 *     trni_plan_layer_products       the products with weights of one layer on one slice of tensor parallelism
 *
 * KNOWN FROM: the model code and the config.json that each publisher ships; tests hold the totals against published
 *     counts (llama 3, mixtral, qwen 3, deepseek-v3, gpt-oss, gpt-neox-20b, gpt2, gemma 2).
 *
 * Latent attention: head_dim is the part of a head that has no rotation, rope_dim the part that has, shared by all
 *     keys. The cache holds kv_rank + rope_dim elements a token and layer, whatever the number of heads. In decode the
 *     up-projection of keys and values is absorbed into queries and outputs: as many flops as projecting one token.
 */
#ifndef TRN_PLAN_MODEL_H
#define TRN_PLAN_MODEL_H

#include "trn_base.h"

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

    int64_t kv_rank;           /* latent attention; 0 = none */
    int64_t q_rank;            /* 0 = queries are projected in one step */
    int64_t rope_dim, v_dim;   /* 0 = 0, head_dim */

    int64_t window, window_layers; /* in so many layers a token sees at most `window` positions; 0 = all */
    int64_t positions;             /* learned position embeddings; 0 = rotary or none */
    int64_t norms;                 /* of [hidden] in a layer; 0 = 2 */

    bool tied_embeddings; /* the head is the embedding */
    bool plain_mlp;       /* up and down; false: gate, up and down */
    bool qkv_bias, o_bias, mlp_bias, router_bias, norm_bias;
    bool qk_norm;         /* a norm of [head_dim] each for queries and keys */
    bool sinks;           /* one learned logit for each head */
    bool shared_gate;     /* shared experts are weighed by a gate [hidden] */
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
    double total;       /* parameters; the tied head counts once */
    double active;      /* of them, those that one token meets; the embedding table counts */
    double attention;   /* all layers */
    double dense_mlp;   /* all layers without experts */
    double experts;     /* all routed experts */
    double shared;      /* shared experts, routers */
    double embeddings;  /* table, positions and head */
    double norms;
    double kv_elements; /* of one token, all layers, beyond any window */
} trn_model_size;

/* Counts a model's parameters. TRN_EINVAL names the field that makes it no model. */
TRN_API trn_status trn_model_size_of(const trn_model *model, trn_model_size *size, trn_error *error);

/* ---- flops ---- */

/* The same over all layers, those with a window and those without. */
TRN_API double trn_model_context(const trn_model *model, double sequence);

/* Forward flops of `tokens` tokens that each see `context` positions, of which `logits` need the head. */
TRN_API double trn_model_forward_flops(const trn_model *model, double tokens, double context, double logits);

#if TRNI_BODIES

#include <math.h>

/* ---- is it one? ---- */

/* Sizes beyond these are mistakes of a file, and what they multiply to stays below 2^62. */
#define TRNI_MODEL_FIELDS(X)                                                                                         \
    X(layers, 1, 4096)                                                                                               \
    X(hidden, 1, 1 << 20)                                                                                            \
    X(heads, 1, 1 << 14)                                                                                             \
    X(kv_heads, 0, 1 << 14)                                                                                          \
    X(head_dim, 0, 1 << 14)                                                                                          \
    X(intermediate, 0, 1 << 22)                                                                                      \
    X(vocab, 1, 1 << 24)                                                                                             \
    X(experts, 0, 1 << 14)                                                                                           \
    X(experts_per_token, 0, 1 << 14)                                                                                 \
    X(moe_intermediate, 0, 1 << 22)                                                                                  \
    X(shared_intermediate, 0, 1 << 22)                                                                               \
    X(dense_layers, 0, 4096)                                                                                         \
    X(kv_rank, 0, 1 << 20)                                                                                           \
    X(q_rank, 0, 1 << 20)                                                                                            \
    X(rope_dim, 0, 1 << 14)                                                                                          \
    X(v_dim, 0, 1 << 14)                                                                                             \
    X(window, 0, INT64_C(1) << 40)                                                                                   \
    X(window_layers, 0, 4096)                                                                                        \
    X(positions, 0, INT64_C(1) << 30)                                                                                \
    X(norms, 0, 64)

TRNI_FN trn_status trni_model_ranges(const trn_model *m, trn_error *error)
{
#define TRNI_X(field, low, high) { #field, m->field, low, high },
    const struct { const char *name; int64_t value, low, high; } row[] = { TRNI_MODEL_FIELDS(TRNI_X) };
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
    if (m->intermediate < 1 && (!sparse || m->dense_layers))
        return trni_fail(error, TRN_EINVAL, "intermediate is 0, but %lld layers have no experts",
                         (long long)(sparse ? m->dense_layers : m->layers));
    return TRN_OK;
}

TRN_API trn_status trn_model_check(const trn_model *model, trn_error *error)
{
    TRNI_FLOATS;
    if (!model) return trni_fail(error, TRN_EINVAL, "model is null");
    trn_status status = trni_model_ranges(model, error);
    if (status == TRN_OK) status = trni_model_mlp_check(model, error);
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
    if (model->window_layers > model->layers)
        return trni_fail(error, TRN_EINVAL, "window_layers is %lld, more than the %lld layers",
                         (long long)model->window_layers, (long long)model->layers);
    return TRN_OK;
}

TRN_API trn_status trn_model_settle(const trn_model *model, trn_model *out, trn_error *error)
{
    TRNI_FLOATS;
    const trn_status status = trn_model_check(model, error);
    if (status != TRN_OK) return status;
    trn_model m = *model;
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

TRNI_FN double trni_plan_latent_parameters(const trn_model *m, int64_t shares)
{
    const double h = (double)m->hidden, heads = trni_plan_ceil_share(m->heads, shares);
    const double query = heads * (double)(m->head_dim + m->rope_dim);
    const double q = m->q_rank ? (double)m->q_rank * (h + 1 + query) : h * query; /* + 1: the norm between */
    const double kv = h * (double)(m->kv_rank + m->rope_dim) + (double)m->kv_rank +
                      (double)m->kv_rank * heads * (double)(m->head_dim + m->v_dim);
    return q + kv + heads * (double)m->v_dim * h + (m->o_bias ? h : 0);
}

/* Attention of one layer, without the norms of [hidden]. */
TRNI_FN double trni_plan_attention_parameters(const trn_model *m, int64_t shares)
{
    if (m->kv_rank) return trni_plan_latent_parameters(m, shares);
    const double h = (double)m->hidden, size = (double)m->head_dim;
    const double q = trni_plan_ceil_share(m->heads, shares) * size, kv = 2 * trni_plan_kv_heads_share(m, shares) * size;
    return (h + (m->qkv_bias ? 1 : 0)) * (q + kv) + q * h + (m->o_bias ? h : 0) + (m->qk_norm ? 2 * size : 0) +
           (m->sinks ? trni_plan_ceil_share(m->heads, shares) : 0);
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

/* A layer without experts. */
TRNI_FN double trni_plan_dense_layer_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_attention_parameters(m, shares) + trni_plan_mlp_parameters(m, m->intermediate, shares) +
           (double)m->norms * trni_plan_norm_parameters(m);
}

/* A layer with experts, all but the experts themselves. */
TRNI_FN double trni_plan_moe_layer_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_attention_parameters(m, shares) + trni_plan_mlp_parameters(m, m->shared_intermediate, shares) +
           (m->shared_gate ? (double)m->hidden : 0) + trni_plan_router_parameters(m) +
           (double)m->norms * trni_plan_norm_parameters(m);
}

TRNI_FN double trni_plan_embedding_parameters(const trn_model *m, int64_t shares)
{
    return (trni_plan_ceil_share(m->vocab, shares) + (double)m->positions) * (double)m->hidden;
}

TRNI_FN double trni_plan_head_parameters(const trn_model *m, int64_t shares)
{
    return trni_plan_ceil_share(m->vocab, shares) * (double)m->hidden;
}

/* Elements of KV cache that a layer keeps of one token, in one slice. A latent is not cut by heads. */
TRNI_FN double trni_plan_kv_elements(const trn_model *m, int64_t shares)
{
    if (m->kv_rank) return (double)(m->kv_rank + m->rope_dim);
    return 2 * trni_plan_kv_heads_share(m, shares) * (double)m->head_dim;
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
    size->attention = layers * trni_plan_attention_parameters(&m, 1);
    size->dense_mlp = (double)m.dense_layers * trni_plan_mlp_parameters(&m, m.intermediate, 1);
    size->experts = sparse * (double)m.experts * expert;
    size->shared = sparse * (trni_plan_moe_layer_parameters(&m, 1) - trni_plan_attention_parameters(&m, 1) -
                             (double)m.norms * trni_plan_norm_parameters(&m));
    size->embeddings =
        trni_plan_embedding_parameters(&m, 1) + (m.tied_embeddings ? 0 : trni_plan_head_parameters(&m, 1));
    size->norms = (layers * (double)m.norms + 1) * trni_plan_norm_parameters(&m);
    size->total = size->attention + size->dense_mlp + size->experts + size->shared + size->embeddings + size->norms;
    size->active = size->total - sparse * (double)(m.experts - m.experts_per_token) * expert;
    size->kv_elements = layers * trni_plan_kv_elements(&m, 1);
    return TRN_OK;
}

/* ---- products with weights, dst[m, n] = a[m, k] b[k, n], of one layer on one of `shares` slices ---- */

enum { TRNI_PLAN_PRODUCTS = 16 };

typedef struct trni_plan_layer_product {
    const char *name;
    int64_t m, n, k;
    double count;
} trni_plan_layer_product;

typedef struct trni_plan_layer_list {
    int count;
    trni_plan_layer_product row[TRNI_PLAN_PRODUCTS];
} trni_plan_layer_list;

/* What a slice works on. */
typedef struct trni_plan_slice {
    const trn_model *model; /* settled */
    int64_t shares;
    double tokens;
    double routed; /* tokens that the experts here get, each once for each of its experts */
    int64_t experts; /* here */
} trni_plan_slice;

TRNI_FN void trni_plan_list_add(trni_plan_layer_list *list, const char *name, double m, double n, double k,
                                double count)
{
    if (m <= 0 || n <= 0 || k <= 0 || count <= 0) return;
    trni_plan_layer_product *row = &list->row[list->count++];
    row->name = name;
    row->m = (int64_t)ceil(m); /* at most 2^60: trni_plan_check_args */
    row->n = (int64_t)ceil(n);
    row->k = (int64_t)ceil(k);
    row->count = count;
}

typedef enum trni_plan_mlp { TRNI_PLAN_DENSE = 0, TRNI_PLAN_SHARED, TRNI_PLAN_EXPERT } trni_plan_mlp;

TRNI_FN void trni_plan_list_mlp(trni_plan_layer_list *list, const trni_plan_slice *s, trni_plan_mlp kind,
                                int64_t inner, double rows, double count)
{
    static const char *const plain[] = { "up", "shared up", "expert up" };
    static const char *const gated[] = { "gate, up", "shared gate, up", "expert gate, up" };
    static const char *const down[] = { "down", "shared down", "expert down" };
    const double cut = trni_plan_ceil_share(inner, s->shares), h = (double)s->model->hidden;
    if (s->model->plain_mlp) trni_plan_list_add(list, plain[kind], rows, cut, h, count);
    else trni_plan_list_add(list, gated[kind], rows, 2 * cut, h, count);
    trni_plan_list_add(list, down[kind], rows, h, cut, count);
}

TRNI_FN void trni_plan_list_attention(trni_plan_layer_list *list, const trni_plan_slice *s)
{
    const trn_model *m = s->model;
    const double h = (double)m->hidden, heads = trni_plan_ceil_share(m->heads, s->shares), tokens = s->tokens;
    const double wide = (double)(m->head_dim + m->rope_dim), value = (double)m->v_dim;
    if (!m->kv_rank) {
        trni_plan_list_add(list, "q, k, v", tokens, heads * wide + trni_plan_kv_elements(m, s->shares), h, 1);
    } else {
        if (m->q_rank) trni_plan_list_add(list, "q down", tokens, (double)m->q_rank, h, 1);
        trni_plan_list_add(list, "q up", tokens, heads * wide, m->q_rank ? (double)m->q_rank : h, 1);
        trni_plan_list_add(list, "kv down", tokens, (double)(m->kv_rank + m->rope_dim), h, 1);
        trni_plan_list_add(list, "kv up", tokens, heads * ((double)m->head_dim + value), (double)m->kv_rank, 1);
    }
    trni_plan_list_add(list, "o", tokens, h, heads * value, 1);
}

/* In the order of a forward pass. Even routing: as many experts awake as there are tokens for. */
TRNI_FN trni_plan_layer_list trni_plan_layer_products(const trni_plan_slice *s, bool sparse)
{
    const trn_model *m = s->model;
    trni_plan_layer_list list;
    memset(&list, 0, sizeof list);
    trni_plan_list_attention(&list, s);
    if (!sparse) {
        trni_plan_list_mlp(&list, s, TRNI_PLAN_DENSE, m->intermediate, s->tokens, 1);
        return list;
    }
    const double awake = fmin((double)s->experts, ceil(s->routed)), rows = awake > 0 ? ceil(s->routed / awake) : 0;
    trni_plan_list_add(&list, "router", s->tokens, (double)m->experts, (double)m->hidden, 1);
    trni_plan_list_mlp(&list, s, TRNI_PLAN_SHARED, m->shared_intermediate, s->tokens, 1);
    trni_plan_list_mlp(&list, s, TRNI_PLAN_EXPERT, m->moe_intermediate, rows, awake);
    return list;
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
    const double windowed = model->window > 0 ? (double)model->window_layers / (double)model->layers : 0;
    return windowed * trni_plan_causal_context(sequence, (double)model->window) +
           (1 - windowed) * trni_plan_causal_context(sequence, 0);
}

/* Weights that a token is multiplied with in all layers: no norms, no biases, no look-up. */
TRNI_FN double trni_plan_multiplied(const trn_model *settled)
{
    trn_model m = *settled;
    m.qkv_bias = m.o_bias = m.mlp_bias = m.router_bias = m.qk_norm = m.sinks = false;
    m.norms = 0;
    const double latent = m.kv_rank ? (double)(m.q_rank + m.kv_rank) : 0; /* the norms between the projections */
    const double sparse = (double)(m.layers - m.dense_layers);
    return (double)m.dense_layers * trni_plan_dense_layer_parameters(&m, 1) +
           sparse * (trni_plan_moe_layer_parameters(&m, 1) +
                     (double)m.experts_per_token * trni_plan_mlp_parameters(&m, m.moe_intermediate, 1)) -
           (double)m.layers * latent;
}

TRN_API double trn_model_forward_flops(const trn_model *model, double tokens, double context, double logits)
{
    TRNI_FLOATS;
    trn_model m;
    memset(&m, 0, sizeof m); /* for gcc, which does not see that only a success is read */
    if (trn_model_settle(model, &m, NULL) != TRN_OK) return 0;
    const double score = (double)m.heads * (double)(m.head_dim + m.rope_dim + m.v_dim);
    return 2 * tokens * (trni_plan_multiplied(&m) + (double)m.layers * context * score) +
           2 * logits * (double)m.vocab * (double)m.hidden;
}

#endif /* TRNI_BODIES */

#endif /* TRN_PLAN_MODEL_H */
