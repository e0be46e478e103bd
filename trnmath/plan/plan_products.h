/* plan/plan_products.h - the products with weights of one layer on one slice of tensor parallelism.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * A model with two kinds of layers (attention and linear, with and without experts) has two lists, with experts and
 * without; in each of them attention's products count as often as the mean layer has them, which may be less than once.
 */
#ifndef TRNI_PLAN_PLAN_PRODUCTS_H
#define TRNI_PLAN_PLAN_PRODUCTS_H

#include "plan_args.h"

/* ---- dst[m, n] = a[m, k] b[k, n], of one layer on one of `shares` slices ---- */

enum { TRNI_PLAN_PRODUCTS = 16 };

typedef struct trni_plan_layer_product {
    const char *name;
    int64_t m, n, k;
    double count;
    trni_plan_kept kept; /* how b lies in HBM */
} trni_plan_layer_product;

typedef struct trni_plan_layer_list {
    int count;
    int inputs;          /* of them, those before attention */
    int mixer;           /* of them, those before the feed-forward block */
    trni_plan_kept kept; /* of the next row */
    trni_plan_layer_product row[TRNI_PLAN_PRODUCTS];
} trni_plan_layer_list;

/* What a slice works on. */
typedef struct trni_plan_slice {
    const trn_model *model; /* settled */
    int64_t shares;
    double tokens;
    double sequences;      /* of these tokens */
    double routed;         /* tokens that the experts here get, each once for each of its experts */
    int64_t experts;       /* here */
    int64_t expert_shares; /* of each of them, this slice has one of so many */
    bool decode;
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
    row->kept = list->kept;
}

typedef enum trni_plan_mlp { TRNI_PLAN_DENSE = 0, TRNI_PLAN_SHARED, TRNI_PLAN_EXPERT } trni_plan_mlp;

TRNI_FN void trni_plan_list_mlp(trni_plan_layer_list *list, const trni_plan_slice *s, trni_plan_mlp kind, int64_t inner,
                                double rows, double count)
{
    static const char *const plain[] = { "up", "shared up", "expert up" };
    static const char *const gated[] = { "gate, up", "shared gate, up", "expert gate, up" };
    static const char *const down[] = { "down", "shared down", "expert down" };
    const int64_t shares = kind == TRNI_PLAN_EXPERT ? s->expert_shares : s->shares;
    const double cut = trni_plan_ceil_share(inner, shares), h = (double)s->model->hidden;
    if (s->model->plain_mlp)
        trni_plan_list_add(list, plain[kind], rows, cut, h, count);
    else
        trni_plan_list_add(list, gated[kind], rows, 2 * cut, h, count);
    trni_plan_list_add(list, down[kind], rows, h, cut, count);
}

/* The projections of a linear layer, into it and out of it; as many as there are in the mean layer. */
TRNI_FN void trni_plan_list_linear(trni_plan_layer_list *list, const trni_plan_slice *s, bool in)
{
    const trn_model *m = s->model;
    const double h = (double)m->hidden, part = trni_plan_linear_part(m);
    if (in)
        trni_plan_list_add(list, "linear in", s->tokens, trni_plan_linear_inputs(m, s->shares), h, part);
    else
        trni_plan_list_add(list, "linear out", s->tokens, h, trni_plan_linear_values(m, s->shares), part);
}

/* What chooses positions: whole on every slice. */
TRNI_FN void trni_plan_list_index(trni_plan_layer_list *list, const trni_plan_slice *s)
{
    const trn_model *m = s->model;
    if (!m->index_most) return;
    trni_plan_list_add(list, "index q", s->tokens, (double)(m->index_heads * m->index_dim), (double)m->q_rank, 1);
    trni_plan_list_add(list, "index k, weights", s->tokens, (double)(m->index_dim + m->index_heads), (double)m->hidden,
                       1);
}

/* A decoder's second attention; its keys and values are made when a prompt is read. */
TRNI_FN void trni_plan_list_cross(trni_plan_layer_list *list, const trni_plan_slice *s)
{
    const trn_model *m = s->model;
    const double h = (double)m->hidden, wide = trni_plan_ceil_share(m->heads, s->shares) * (double)m->head_dim;
    if (!m->cross) return;
    trni_plan_list_add(list, "cross q", s->tokens, wide, h, 1);
    if (!s->decode)
        trni_plan_list_add(list, "cross k, v", s->sequences * (double)m->cross, trni_plan_kv_elements(m, s->shares), h,
                           1);
    trni_plan_list_add(list, "cross o", s->tokens, h, wide, 1);
}

TRNI_FN void trni_plan_list_attention(trni_plan_layer_list *list, const trni_plan_slice *s)
{
    const trn_model *m = s->model;
    const double h = (double)m->hidden, heads = trni_plan_ceil_share(m->heads, s->shares), tokens = s->tokens;
    const double wide = (double)(m->head_dim + m->rope_dim), value = (double)m->v_dim;
    const double full = 1 - trni_plan_linear_part(m), ways = m->gated_attention ? 2 : 1;
    list->kept = TRNI_PLAN_OF_ATTENTION;
    if (!m->kv_rank) {
        const double columns = ways * heads * wide + trni_plan_kv_elements(m, s->shares);
        trni_plan_list_add(list, m->gated_attention ? "q, gate, k, v" : "q, k, v", tokens, columns, h, full);
    } else {
        if (m->q_rank) trni_plan_list_add(list, "q down", tokens, (double)m->q_rank, h, full);
        trni_plan_list_add(list, "q up", tokens, heads * wide, m->q_rank ? (double)m->q_rank : h, full);
        trni_plan_list_add(list, "kv down", tokens, (double)(m->kv_rank + m->rope_dim), h, full);
        trni_plan_list_add(list, "kv up", tokens, heads * ((double)m->head_dim + value), (double)m->kv_rank, full);
    }
    trni_plan_list_index(list, s);
    trni_plan_list_linear(list, s, true);
    list->inputs = list->count;
    trni_plan_list_add(list, "o", tokens, h, heads * value, full);
    trni_plan_list_linear(list, s, false);
    trni_plan_list_cross(list, s);
    list->mixer = list->count;
    list->kept = TRNI_PLAN_OF_WEIGHTS;
}

/* Experts here that some token is expected to choose, each of them by chance: k of E, by the tokens of all that share
 * the experts. One token meets k. */
TRNI_FN double trni_plan_awake(const trni_plan_slice *s)
{
    const double all = (double)s->model->experts, here = (double)s->experts;
    const double each = (double)s->model->experts_per_token;
    if (here < 1) return 0;
    const double missed = 1 - each / all, tokens = s->routed / each * all / here;
    const double by_none = missed > 0 ? exp(log(missed) * tokens) : 0;
    return fmin(here * (1 - by_none), s->routed);
}

/* In the order of a forward pass. */
TRNI_FN trni_plan_layer_list trni_plan_layer_products(const trni_plan_slice *s, bool sparse)
{
    const trn_model *m = s->model;
    trni_plan_layer_list list;
    memset(&list, 0, sizeof list);
    trni_plan_list_attention(&list, s);
    trni_plan_list_add(&list, "condition", s->sequences, (double)m->condition, (double)m->hidden, 1);
    if (!sparse) {
        trni_plan_list_mlp(&list, s, TRNI_PLAN_DENSE, m->intermediate, s->tokens, 1);
        return list;
    }
    const double awake = trni_plan_awake(s), rows = awake > 0 ? ceil(s->routed / awake) : 0;
    trni_plan_list_add(&list, "router", s->tokens, (double)m->experts, (double)m->hidden, 1);
    trni_plan_list_mlp(&list, s, TRNI_PLAN_SHARED, m->shared_intermediate, s->tokens, 1);
    list.kept = TRNI_PLAN_OF_EXPERTS;
    trni_plan_list_mlp(&list, s, TRNI_PLAN_EXPERT, m->moe_intermediate, rows, awake);
    return list;
}

#endif /* TRNI_PLAN_PLAN_PRODUCTS_H */
