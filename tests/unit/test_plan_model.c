/* test_plan_model.c - parameters, flops and KV cache of models against published totals and against matrices written
 * out one by one; configurations as publishers ship them, and as they should not be.
 * SPDX-License-Identifier: MIT
 *
 * Published totals are the sums over the tensors of the safetensors files that each publisher ships, as their pages
 * show them; of deepseek-v3 without the multi-token-prediction block (671 of 685 billion, DeepSeek-V3 report).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_plan.h"
#include "published/models.h"
#include "twin/cases.h"

#if defined(HAVE_CJSON)
#include "io/hf_config.h"
#endif

/* ---- the slow way: every tensor of the model by its shape ---- */

typedef struct tally {
    double all, routed; /* parameters; of them, of experts that a token may not meet */
    double multiplied;  /* elements of matrices that one token is multiplied with */
} tally;

static void tensor(tally *t, double rows, double columns) { t->all += rows * columns; }

static void matrix(tally *t, double rows, double columns)
{
    tensor(t, rows, columns);
    t->multiplied += rows * columns;
}

static void norm(tally *t, const trn_model *m, double size)
{
    tensor(t, 1, size);
    if (m->norm_bias) tensor(t, 1, size);
}

static void twin_attention(tally *t, const trn_model *m)
{
    const double h = (double)m->hidden, heads = (double)m->heads, kv = m->kv_heads ? (double)m->kv_heads : heads;
    const double size = m->head_dim ? (double)m->head_dim : h / heads;
    if (m->kv_rank) {
        const double rope = (double)m->rope_dim, value = (double)m->v_dim, rank = (double)m->kv_rank;
        if (m->q_rank) {
            matrix(t, h, (double)m->q_rank);
            tensor(t, 1, (double)m->q_rank);
            matrix(t, (double)m->q_rank, heads * (size + rope));
        } else
            matrix(t, h, heads * (size + rope));
        matrix(t, h, rank + rope);
        tensor(t, 1, rank);
        matrix(t, rank, heads * (size + value));
        matrix(t, heads * value, h);
        if (!m->index_most) return;
        matrix(t, (double)m->q_rank, (double)(m->index_heads * m->index_dim));
        matrix(t, h, (double)m->index_dim);
        tensor(t, 2, (double)m->index_dim);
        matrix(t, h, (double)m->index_heads);
        return;
    }
    for (int i = 0; i < (m->gated_attention ? 2 : 1); i++) matrix(t, h, heads * size);
    matrix(t, h, kv * size);
    matrix(t, h, kv * size);
    if (m->qkv_bias) tensor(t, 1, ((m->gated_attention ? 2 : 1) * heads + 2 * kv) * size);
    matrix(t, heads * size, h);
    if (m->o_bias) tensor(t, 1, h);
    if (m->qk_norm) tensor(t, m->wide_qk_norm ? heads + kv : 2, size);
    if (m->cross) { /* keys and values are made of the encoder's tokens, not of these */
        matrix(t, h, heads * size);
        tensor(t, h, 2 * kv * size);
        if (m->qkv_bias) tensor(t, 1, (heads + 2 * kv) * size);
        matrix(t, heads * size, h);
        if (m->o_bias) tensor(t, 1, h);
    }
    if (m->sinks) tensor(t, 1, heads);
}

/* Projections by what they make: queries, keys, values, their gate, and one or two numbers a head. */
static void twin_linear(tally *t, const trn_model *m)
{
    const double h = (double)m->hidden, heads = (double)m->linear_heads, values = heads * (double)m->linear_value_dim;
    const double keys = (double)m->linear_key_heads * (double)m->linear_key_dim;
    matrix(t, h, keys);
    matrix(t, h, keys);
    matrix(t, h, values);
    matrix(t, h, values);
    matrix(t, h, heads);
    if (!m->state_space) matrix(t, h, heads);
    matrix(t, (double)m->linear_kernel, keys + keys + values);
    tensor(t, 1, heads);
    tensor(t, 1, heads);
    if (m->state_space) tensor(t, 1, keys + keys + values);
    if (m->state_space) tensor(t, 1, heads);
    tensor(t, 1, m->state_space ? values : (double)m->linear_value_dim);
    matrix(t, values, h);
}

static bool is_linear(const trn_model *m, int64_t layer) { return layer >= m->layers - m->linear_layers; }

static void twin_mlp(tally *t, const trn_model *m, double inner)
{
    const double h = (double)m->hidden;
    for (int i = 0; i < (m->plain_mlp ? 1 : 2); i++) {
        matrix(t, h, inner);
        if (m->mlp_bias) tensor(t, 1, inner);
    }
    matrix(t, inner, h);
    if (m->mlp_bias) tensor(t, 1, h);
}

/* What encoders have before their layers and behind them. `multiplied` stays: these see other numbers of tokens. */
static void twin_encoder(tally *t, const trn_model *m)
{
    const double h = (double)m->hidden;
    if (m->token_types) tensor(t, (double)m->token_types, h);
    if (m->patch_inputs) {
        tensor(t, (double)m->patch_inputs, h);
        if (!m->no_patch_bias) tensor(t, 1, h);
        if (!m->no_class_token) tensor(t, 1, h);
    }
    if (m->pooler || m->masked_head) {
        tensor(t, h, h);
        tensor(t, 1, h);
    }
    if (m->masked_head) {
        norm(t, m, h);
        tensor(t, 1, (double)m->vocab); /* the head's bias */
    }
    if (m->classes) {
        tensor(t, h, (double)m->classes);
        tensor(t, 1, (double)m->classes);
    }
}

static tally twin(const trn_model *m)
{
    tally t = { 0, 0, 0 };
    if (m->vocab) tensor(&t, (double)m->vocab, (double)m->hidden);
    twin_encoder(&t, m);
    if (m->positions) tensor(&t, (double)m->positions, (double)m->hidden);
    for (int64_t layer = 0; layer < m->layers; layer++) {
        for (int64_t i = 0; i < (m->norms ? m->norms : 2); i++) norm(&t, m, (double)m->hidden);
        tensor(&t, (double)m->hidden + 1, (double)m->condition);
        if (is_linear(m, layer))
            twin_linear(&t, m);
        else
            twin_attention(&t, m);
        if (m->experts == 0 || layer < m->dense_layers) {
            if (m->intermediate) twin_mlp(&t, m, (double)m->intermediate);
            continue;
        }
        matrix(&t, (double)m->hidden, (double)m->experts);
        if (m->router_bias) tensor(&t, 1, (double)m->experts);
        if (m->shared_intermediate) twin_mlp(&t, m, (double)m->shared_intermediate);
        if (m->shared_gate) matrix(&t, 1, (double)m->hidden);
        for (int64_t e = 0; e < m->experts; e++) {
            tally one = { 0, 0, 0 };
            twin_mlp(&one, m, (double)m->moe_intermediate);
            t.all += one.all;
            if (e < m->experts_per_token)
                t.multiplied += one.multiplied;
            else
                t.routed += one.all;
        }
    }
    norm(&t, m, (double)m->hidden);
    if (m->embedding_norm) norm(&t, m, (double)m->hidden);
    if (!m->tied_embeddings && (!m->bidirectional || m->masked_head)) {
        tensor(&t, (double)m->vocab, (double)m->hidden);
        if (m->head_bias) tensor(&t, 1, (double)m->vocab);
    }
    return t;
}

/* Queries meet keys one by one; a linear layer's state takes in a token and is read, by a delta rule twice. */
static double twin_flops(const trn_model *m, int64_t sequence)
{
    const double heads = (double)m->heads, size = m->head_dim ? (double)m->head_dim : (double)m->hidden / heads;
    const double wide = size + (m->kv_rank ? (double)m->rope_dim : 0), value = m->kv_rank ? (double)m->v_dim : size;
    double flops = 0;
    for (int64_t q = 0; q < sequence; q++) {
        flops += 2 * twin(m).multiplied + 2 * (double)m->vocab * (double)m->hidden;
        flops += (double)(m->linear_layers * m->linear_heads * m->linear_value_dim * m->linear_key_dim) *
                 (m->state_space ? 4 : 6);
        for (int64_t layer = 0; layer < m->layers; layer++) {
            for (int64_t k = 0; k <= q && !is_linear(m, layer); k++)
                if (layer >= m->window_layers || q - k < m->window) flops += 2 * heads * (wide + value);
            flops += 2 * (double)m->cross * heads * (wide + value);
        }
    }
    return flops;
}

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.17g, expected %.17g", what, found, expected);
}

/* ---- models ---- */

static void published_totals(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_MODELS; i++) {
        const trn_model *m = &published_models[i].model;
        const tally t = twin(m);
        trn_model_size size;
        assert_int_equal(trn_model_size_of(m, &size, NULL), TRN_OK);
        near(size.total, published_models[i].total, 0, m->name);
        near(t.all, published_models[i].total, 0, m->name);
        near(size.active, t.all - t.routed, 0, m->name);
        if (published_models[i].active > 0) near(size.active, 1e9 * published_models[i].active, 0.005, m->name);
        near(size.attention + size.dense_mlp + size.experts + size.shared + size.embeddings + size.norms, size.total, 0,
             "sum of parts");
    }
}

static void kv_cache(void **state)
{
    (void)state;
    trn_model_size size;
    assert_int_equal(trn_model_size_of(&published_models[0].model, &size, NULL), TRN_OK);
    near(size.kv_elements, 32 * 2 * 8 * 128, 0, "llama-3-8b"); /* 128 KiB a token in BF16 */
    assert_int_equal(trn_model_size_of(&published_models[5].model, &size, NULL), TRN_OK);
    near(size.kv_elements, 61 * 576, 0, "deepseek-v3"); /* 70 KB a token (DeepSeek-V3 report: 70.272) */
}

/* 6 N D, the usual estimate, is a little less than what the model counts, which has attention. */
static void flops_of_llama(void **state)
{
    (void)state;
    const trn_model *m = &published_models[0].model;
    const double per_token = trn_model_forward_flops(m, 1, 4096.5, 1);
    near(per_token, 2 * (8030261248.0 - 128256.0 * 4096) + 4.0 * 32 * 4096 * 4096.5, 1e-4, "llama-3-8b");
    near(trn_model_context(m, 8192), 4096.5, 0, "causal");
}

static void random_linear(uint64_t *rng, trn_model *m)
{
    m->linear_layers = cases_below(rng, (int)(m->layers - m->window_layers) + 1);
    if (!m->linear_layers) return;
    m->state_space = cases_one_in(rng, 2);
    m->linear_key_heads = 1 + cases_below(rng, 3);
    m->linear_heads = m->linear_key_heads * (1 + cases_below(rng, 3));
    m->linear_key_dim = 1 + cases_below(rng, 6);
    m->linear_value_dim = 1 + cases_below(rng, 6);
    m->linear_kernel = 1 + cases_below(rng, 4);
    if (m->linear_layers == m->layers && !m->experts && cases_one_in(rng, 2)) m->intermediate = 0;
}

static trn_model random_model(uint64_t *rng)
{
    trn_model m;
    memset(&m, 0, sizeof m);
    m.layers = 1 + cases_below(rng, 6);
    m.heads = 1 << cases_below(rng, 4);
    m.hidden = m.heads * (1 + cases_below(rng, 9));
    m.kv_heads = cases_one_in(rng, 3) ? 0 : m.heads >> cases_below(rng, 2);
    if (m.kv_heads && m.heads % m.kv_heads) m.kv_heads = 1;
    m.head_dim = cases_one_in(rng, 2) ? 0 : 1 + cases_below(rng, 9);
    m.vocab = 1 + cases_below(rng, 50);
    m.intermediate = 1 + cases_below(rng, 30);
    m.norms = cases_below(rng, 5);
    m.positions = cases_one_in(rng, 3) ? 7 : 0;
    if (cases_one_in(rng, 3)) {
        m.kv_rank = 1 + cases_below(rng, 8);
        m.q_rank = cases_below(rng, 5);
        m.head_dim = 1 + cases_below(rng, 8);
        m.rope_dim = cases_below(rng, 4);
        m.v_dim = 1 + cases_below(rng, 5);
        m.kv_heads = 0;
    } else {
        m.qk_norm = cases_one_in(rng, 2);
        m.sinks = cases_one_in(rng, 2);
        m.qkv_bias = cases_one_in(rng, 2);
        m.o_bias = cases_one_in(rng, 2);
    }
    if (cases_one_in(rng, 2)) {
        m.experts = 1 + cases_below(rng, 6);
        m.experts_per_token = 1 + cases_below(rng, (int)m.experts);
        m.moe_intermediate = 1 + cases_below(rng, 9);
        m.shared_intermediate = cases_below(rng, 4);
        m.shared_gate = m.shared_intermediate && cases_one_in(rng, 2);
        m.dense_layers = cases_below(rng, (int)m.layers + 1);
        m.router_bias = cases_one_in(rng, 2);
    }
    m.mlp_bias = cases_one_in(rng, 2);
    m.norm_bias = cases_one_in(rng, 2);
    m.plain_mlp = cases_one_in(rng, 3);
    m.tied_embeddings = cases_one_in(rng, 2);
    m.window = cases_one_in(rng, 2) ? 1 + cases_below(rng, 12) : 0;
    m.window_layers = m.window ? cases_below(rng, (int)m.layers + 1) : 0;
    if (!m.kv_rank) m.gated_attention = cases_one_in(rng, 4);
    m.wide_qk_norm = m.qk_norm && cases_one_in(rng, 3);
    m.head_bias = cases_one_in(rng, 4);
    m.embedding_norm = cases_one_in(rng, 4);
    if (cases_one_in(rng, 3)) random_linear(rng, &m);
    if (!m.kv_rank && !m.linear_layers && cases_one_in(rng, 4)) m.cross = 1 + cases_below(rng, 9);
    return m;
}

static void random_models(void **state)
{
    (void)state;
    uint64_t rng = 20261;
    for (int i = 0; i < cases_rounds(2000, 50000); i++) {
        const trn_model m = random_model(&rng);
        const tally t = twin(&m);
        const int sequence = 1 + cases_below(&rng, 20);
        trn_model_size size;
        trn_error error;
        if (trn_model_size_of(&m, &size, &error) != TRN_OK) fail_msg("round %d: %s", i, error.text);
        near(size.total, t.all, 0, "parameters");
        near(size.active, t.all - t.routed, 0, "active parameters");
        const double context = trn_model_context(&m, sequence);
        near(trn_model_forward_flops(&m, sequence, context, sequence), twin_flops(&m, sequence), 1e-12, "flops");
    }
}

/* One sequence of an encoder: every query meets every key. */
static double twin_encoder_flops(const trn_model *m, int64_t sequence)
{
    const double h = (double)m->hidden, size = m->head_dim ? (double)m->head_dim : h / (double)m->heads;
    double flops = 0;
    for (int64_t q = 0; q < sequence; q++) {
        flops += 2 * twin(m).multiplied + (m->masked_head ? 2 * h * h + 2 * h * (double)m->vocab : 0);
        for (int64_t k = 0; k < sequence; k++) flops += (double)m->layers * (double)m->heads * 4 * size;
        if (q || m->no_class_token) flops += 2 * (double)m->patch_inputs * h; /* all tokens but the class token */
    }
    if (!m->masked_head) flops += 2 * (double)m->layers * h * (double)m->condition;
    return flops + (m->pooler ? 2 * h * h : 0) + 2 * h * (double)m->classes;
}

static trn_model random_encoder(uint64_t *rng)
{
    trn_model m = random_model(rng);
    m.kv_rank = m.q_rank = m.rope_dim = m.v_dim = m.window = m.window_layers = m.linear_layers = m.linear_heads =
        m.linear_value_dim = m.linear_key_heads = m.linear_key_dim = m.linear_kernel = 0;
    m.state_space = false;
    m.cross = 0;
    m.condition = cases_one_in(rng, 4) ? 1 + cases_below(rng, 20) : 0;
    m.head_dim = m.head_dim ? m.head_dim : m.hidden / m.heads;
    if (!m.experts) m.intermediate = 1 + cases_below(rng, 30);
    m.bidirectional = true;
    m.token_types = cases_below(rng, 3);
    m.masked_head = cases_one_in(rng, 3);
    if (m.masked_head) return m;
    m.pooler = cases_one_in(rng, 2);
    m.classes = cases_below(rng, 5);
    if (cases_one_in(rng, 2)) return m;
    m.vocab = 0;
    m.patch_inputs = 1 + cases_below(rng, 30);
    m.longest = 2 + cases_below(rng, 20);
    m.no_class_token = cases_one_in(rng, 3);
    m.no_patch_bias = cases_one_in(rng, 3);
    return m;
}

static void random_encoders(void **state)
{
    (void)state;
    uint64_t rng = 5;
    for (int i = 0; i < cases_rounds(2000, 20000); i++) {
        const trn_model m = random_encoder(&rng);
        const int64_t sequence = m.longest ? m.longest : 1 + cases_below(&rng, 20);
        trn_model_size size;
        trn_error error;
        if (trn_model_size_of(&m, &size, &error) != TRN_OK) fail_msg("round %d: %s", i, error.text);
        near(size.total, twin(&m).all, 0, "parameters");
        near(size.kv_elements, 0, 0, "no cache");
        near(trn_model_context(&m, (double)sequence), (double)sequence, 0, "all positions");
        near(trn_model_forward_flops(&m, (double)sequence, (double)sequence, m.masked_head ? (double)sequence : 1),
             twin_encoder_flops(&m, sequence), 1e-12, "flops");
    }
}

/* Sparse attention: an indexer scores all positions, attention sees the best of them. */
static void sparse_attention(void **state)
{
    (void)state;
    const trn_model m = { .layers = 2,
                          .hidden = 16,
                          .heads = 4,
                          .head_dim = 4,
                          .rope_dim = 2,
                          .v_dim = 3,
                          .q_rank = 5,
                          .kv_rank = 6,
                          .intermediate = 8,
                          .vocab = 10,
                          .index_heads = 3,
                          .index_dim = 7,
                          .index_most = 20 };
    trn_model without = m;
    trn_model_size size, other;
    without.index_heads = without.index_dim = without.index_most = 0;
    assert_int_equal(trn_model_size_of(&m, &size, NULL), TRN_OK);
    assert_int_equal(trn_model_size_of(&without, &other, NULL), TRN_OK);
    near(size.total, twin(&m).all, 0, "parameters");
    near(size.total - other.total, 2 * (5 * 21 + 16 * 7 + 16 * 3 + 2 * 7), 0, "an indexer");
    near(size.kv_elements, 2 * (6 + 2 + 7), 0, "its keys are kept, too");
    const double projected = 2 * 2 * (5 * 21 + 16 * 7 + 16 * 3);
    for (int context = 10; context <= 40; context += 30) {
        const double seen = context < 20 ? context : 20;
        near(trn_model_forward_flops(&m, 1, context, 1) - trn_model_forward_flops(&without, 1, seen, 1),
             projected + 2 * 2 * context * 21, 1e-12, "flops");
    }
}

static void refusals(void **state)
{
    (void)state;
    const struct {
        const char *says;
        trn_model model;
    } row[] = {
        { "layers is 0; a model has 1 to 4096", { .hidden = 8, .heads = 2, .intermediate = 8, .vocab = 8 } },
        { "hidden is -8", { .layers = 1, .hidden = -8, .heads = 2, .intermediate = 8, .vocab = 8 } },
        { "vocab is 1099511627776", { .layers = 1, .hidden = 8, .heads = 2, .vocab = INT64_C(1) << 40 } },
        { "intermediate is 0, but 1 layers have no experts", { .layers = 1, .hidden = 8, .heads = 2, .vocab = 8 } },
        { "hidden 9 does not divide by heads 2",
          { .layers = 1, .hidden = 9, .heads = 2, .intermediate = 8, .vocab = 8 } },
        { "heads 6 does not divide by kv_heads 4",
          { .layers = 1, .hidden = 12, .heads = 6, .kv_heads = 4, .intermediate = 8, .vocab = 8 } },
        { "experts_per_token is 9, but there are 8 experts",
          { .layers = 1,
            .hidden = 8,
            .heads = 2,
            .experts = 8,
            .experts_per_token = 9,
            .moe_intermediate = 4,
            .vocab = 8 } },
        { "moe_intermediate is 0, but there are 8 experts",
          { .layers = 1, .hidden = 8, .heads = 2, .experts = 8, .experts_per_token = 2, .vocab = 8 } },
        { "experts is 0, but sizes of experts are given",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .experts_per_token = 2, .vocab = 8 } },
        { "dense_layers is 2, more than the 1 layers",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .dense_layers = 2, .vocab = 8 } },
        { "q_rank is 4, but kv_rank is 0",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .q_rank = 4, .vocab = 8 } },
        { "window_layers is 3, more than the 1 layers",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .window_layers = 3, .vocab = 8 } },
        { "linear_heads is 0, but linear_layers is 1",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .linear_layers = 1, .vocab = 8 } },
        { "linear_kernel is 4, but linear_layers is 0",
          { .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8, .linear_kernel = 4, .vocab = 8 } },
#define LINEAR                                                                                                         \
    .hidden = 8, .heads = 2, .intermediate = 8, .linear_value_dim = 4, .linear_key_heads = 2, .linear_key_dim = 4,     \
    .linear_kernel = 4, .vocab = 8
        { "linear_heads 3 does not divide by linear_key_heads 2",
          { LINEAR, .layers = 1, .linear_layers = 1, .linear_heads = 3 } },
        { "linear_layers is 2, more than the 1 layers without a window",
          { LINEAR, .layers = 2, .linear_layers = 2, .linear_heads = 2, .window = 4, .window_layers = 1 } },
#undef LINEAR
#define TINY .layers = 1, .hidden = 8, .heads = 2, .intermediate = 8
        { "vocab is 0; a model without patch_inputs has 1 to 16777216", { TINY } },
        { "pooler is given, but the model is no encoder", { TINY, .vocab = 8, .pooler = true } },
        { "masked_head is given, but the model is no encoder", { TINY, .vocab = 8, .masked_head = true } },
        { "classes is given, but the model is no encoder", { TINY, .vocab = 8, .classes = 2 } },
        { "patch_inputs is given, but the model is no encoder", { TINY, .patch_inputs = 3, .longest = 5 } },
        { "window is given, but the model is an encoder", { TINY, .vocab = 8, .bidirectional = true, .window = 4 } },
        { "kv_rank is given, but the model is an encoder", { TINY, .vocab = 8, .bidirectional = true, .kv_rank = 4 } },
        { "masked_head is given, and so is pooler, which excludes it",
          { TINY, .vocab = 8, .bidirectional = true, .pooler = true, .masked_head = true } },
        { "patch_inputs is 3, but vocab is 8 and longest 5",
          { TINY, .vocab = 8, .bidirectional = true, .patch_inputs = 3, .longest = 5 } },
        { "patch_inputs is 3, but vocab is 0 and longest 1",
          { TINY, .bidirectional = true, .patch_inputs = 3, .longest = 1 } },
        { "index_heads is 4, index_dim 0 and index_most 0: all or none", { TINY, .vocab = 8, .index_heads = 4 } },
        { "index_most is 2, which belongs to latent attention with a q_rank, alone",
          { TINY, .vocab = 8, .index_heads = 4, .index_dim = 2, .index_most = 2 } },
        { "cross is 5, but the model is no decoder", { TINY, .vocab = 8, .bidirectional = true, .cross = 5 } },
        { "condition is given, but the model is no encoder", { TINY, .vocab = 8, .condition = 5 } },
        { "tables is 65; a recommender has 1 to 64", { .tables = 65 } },
        { "tables is -1", { .tables = -1 } },
#define RANKER .tables = 1, .hidden = 8, .dense_inputs = 1, .longest = 1
        { "longest is 0; a recommender has 1 to 1", { .tables = 1, .hidden = 8, .dense_inputs = 1 } },
        { "layers is 2; a recommender has 0 to 0", { RANKER, .layers = 2 } },
        { "table 0 has 0 rows, of which a sample looks up 0", { RANKER } },
        { "dense_widths[0] is 0", { RANKER, .table_rows = { 1 }, .table_lookups = { 1 } } },
        { "over_widths[2] is 3",
          { RANKER, .table_rows = { 1 }, .table_lookups = { 1 }, .dense_widths = { 8 }, .over_widths = { 1, 0, 3 } } },
        { "cross_rank is 4; a recommender has 0 to 0", { RANKER, .cross_rank = 4 } },
        { "longest is -1", { TINY, .vocab = 8, .longest = -1 } },
        { "token_types is -1", { TINY, .vocab = 8, .token_types = -1 } },
#undef TINY
#undef RANKER
    };
    trn_model_size size;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_error error = { TRN_OK, "" };
        assert_int_equal(trn_model_size_of(&row[i].model, &size, &error), TRN_EINVAL);
        if (!strstr(error.text, row[i].says)) fail_msg("it says '%s', not '%s'", error.text, row[i].says);
    }
    assert_int_equal(trn_model_check(NULL, NULL), TRN_EINVAL);
    assert_int_equal(trn_model_size_of(&published_models[0].model, NULL, NULL), TRN_EINVAL);
    assert_true(trn_model_forward_flops(&row[0].model, 1, 1, 1) <= 0);
}

/* A recommender's numbers at both ends of what they may be, and one further. */
static void recommender_ends(void **state)
{
    (void)state;
    trn_model m = { .tables = 2,
                    .hidden = 8,
                    .longest = 1,
                    .dense_inputs = 4,
                    .dense_widths = { 4, 8 },
                    .over_widths = { 4, 1 },
                    .table_rows = { 5, 5 },
                    .table_lookups = { 1, 1 },
                    .cross_layers = 2,
                    .cross_rank = 3 };
    const struct {
        int64_t *number, low, high;
        const char *says;
    } row[] = {
        { &m.table_rows[0], 1, INT64_C(1) << 40, "table 0 has " },
        { &m.table_rows[1], 1, INT64_C(1) << 40, "table 1 has " },
        { &m.table_lookups[0], 1, 1 << 20, "table 0 has 5 rows, of which a sample looks up " },
        { &m.table_lookups[1], 1, 1 << 20, "table 1 has 5 rows, of which a sample looks up " },
        { &m.dense_inputs, 1, 1 << 20, "dense_inputs is " },
        { &m.dense_widths[0], 1, 1 << 20, "dense_widths[0] is " },
        { &m.over_widths[0], 1, 1 << 20, "over_widths[0] is " },
        { &m.over_widths[1], 0, 1 << 20, "over_widths[1] is " },
        { &m.dense_widths[1], 8, 8, "the last of dense_widths is " },
        { &m.hidden, 8, 8, "the last of dense_widths is 8, but an embedding is " },
        { &m.longest, 1, 1, "longest is " },
        { &m.cross_layers, 1, 64, "cross_" },
        { &m.cross_rank, 1, 1 << 20, "cross_rank is " },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const int64_t kept = *row[i].number, at[] = { row[i].low, row[i].high, row[i].low - 1, row[i].high + 1 };
        for (int k = 0; k < 4; k++) {
            trn_error error = { TRN_OK, "" };
            *row[i].number = at[k];
            const trn_status status = trn_model_check(&m, &error);
            if (status != (k < 2 ? TRN_OK : TRN_EINVAL))
                fail_msg("%s%lld: status %d", row[i].says, (long long)at[k], (int)status);
            if (k >= 2 && strncmp(error.text, row[i].says, strlen(row[i].says)) != 0)
                fail_msg("it says '%s', not '%s'", error.text, row[i].says);
        }
        *row[i].number = kept;
    }
    m.cross_layers = m.cross_rank = 0;
    assert_int_equal(trn_model_check(&m, NULL), TRN_OK);
    m.tables = TRN_MODEL_TABLES;
    for (int i = 0; i < TRN_MODEL_TABLES; i++) m.table_rows[i] = m.table_lookups[i] = 1;
    assert_int_equal(trn_model_check(&m, NULL), TRN_OK);
    m.table_rows[TRN_MODEL_TABLES - 1] = 0;
    assert_int_equal(trn_model_check(&m, NULL), TRN_EINVAL);
}

/* ---- configurations ---- */

#if defined(HAVE_CJSON)

static void shipped_configurations(void **state)
{
    (void)state;
    static const char *const name[] = { "llama-3-8b",    "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b",
                                        "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b" };
    for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
        char path[512], why[HF_WHY];
        trn_model model;
        trn_model_size size;
        snprintf(path, sizeof path, "%s/examples/tools/shardplan/models/%s.json", TRN_SOURCE_DIR, name[i]);
        if (!hf_config_read(path, &model, why)) fail_msg("%s", why);
        assert_string_equal(model.name, name[i]);
        assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
        near(size.total, published_models[i].total, 0, name[i]);
    }
}

/* What publishers say of a model, in billions, as they round it (llama-4-scout: the files without the images' tower).
 * GLM counts no multi-token prediction, and like Qwen no embeddings as active. */
static void published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double total, active, embeddings; /* the last: not among the active */
    } row[] = {
        { "llama-4-scout", 107.77, 17.2, 0 },
        { "glm-4.5-air", 106.85, 12.2, 1.24 },
        { "qwen3-next-80b-a3b", 79.67, 3.25, 0.62 },
        { "mamba2-2.7b", 2.7, 2.7, 0 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        char path[512], why[HF_WHY];
        trn_model model;
        trn_model_size size;
        snprintf(path, sizeof path, "%s/examples/tools/shardplan/models/%s.json", TRN_SOURCE_DIR, row[i].name);
        if (!hf_config_read(path, &model, why)) fail_msg("%s", why);
        assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
        near(size.total, 1e9 * row[i].total, 0.01, row[i].name);
        near(size.active - 1e9 * row[i].embeddings, 1e9 * row[i].active, 0.01, row[i].name);
    }
}

static bool parse(const char *text, trn_model *model, char *why)
{
    return hf_config_parse(text, strlen(text), "some/model/config.json", model, why);
}

static void families(void **state)
{
    (void)state;
    static const struct {
        double total;
        const char *text;
    } row[] = {
        { 124439808.0,
          "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12, \"n_positions\": 1024, "
          "\"n_inner\": null, \"vocab_size\": 50257}" },
        { 20554567680.0, "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 44, \"hidden_size\": 6144, "
                         "\"num_attention_heads\": 64, \"intermediate_size\": 24576, \"vocab_size\": 50432, "
                         "\"tie_word_embeddings\": false}" },
        { 9241705984.0,
          "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 42, \"hidden_size\": 3584, "
          "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 256, \"intermediate_size\": "
          "14336, \"vocab_size\": 256000, \"sliding_window\": 4096}" },
        { 7615616512.0,
          "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 28, \"hidden_size\": 3584, "
          "\"num_attention_heads\": 28, \"num_key_value_heads\": 4, \"intermediate_size\": 18944, \"vocab_size\": "
          "152064, \"use_sliding_window\": false, \"sliding_window\": 131072}" },
        { 7241732096.0,
          "{\"model_type\": \"mistral\", \"num_hidden_layers\": 32, \"hidden_size\": 4096, "
          "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"vocab_size\": "
          "32000, \"sliding_window\": 4096}" },
        /* deepseek-v2-lite: no low rank for queries, two shared experts; 15,706,484,224 in its files */
        { 15706484224.0,
          "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 27, \"hidden_size\": 2048, "
          "\"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"kv_lora_rank\": 512, \"q_lora_rank\": null, "
          "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"intermediate_size\": 10944, "
          "\"first_k_dense_replace\": 1, \"n_routed_experts\": 64, \"n_shared_experts\": 2, "
          "\"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1408, \"vocab_size\": 102400}" },
        /* the language model of a multi-modal file */
        { 7241732096.0,
          "{\"model_type\": \"other\", \"text_config\": {\"model_type\": \"mistral\", \"num_hidden_layers\": 32, "
          "\"hidden_size\": 4096, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": "
          "14336, \"vocab_size\": 32000}}" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_model model;
        trn_model_size size;
        char why[HF_WHY];
        if (!parse(row[i].text, &model, why)) fail_msg("%s", why);
        assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
        near(size.total, row[i].total, 0, row[i].text);
        assert_string_equal(model.name, "model");
    }
}

/* The same encoder by the names of its classes, and as the publishers ship it. */
static void encoders(void **state)
{
    (void)state;
    static const struct {
        const char *type, *rest;
        double total;
    } row[] = {
        { "bert", "\"vocab_size\": 30522, \"max_position_embeddings\": 512", 109482240 },
        { "bert",
          "\"vocab_size\": 30522, \"max_position_embeddings\": 512, \"type_vocab_size\": 2, "
          "\"architectures\": [\"BertModel\"]",
          109482240 },
        { "bert",
          "\"vocab_size\": 30522, \"max_position_embeddings\": 512, \"architectures\": "
          "[\"BertForMaskedLM\"], \"position_embedding_type\": \"absolute\"",
          109514298 },
        { "bert",
          "\"vocab_size\": 30522, \"max_position_embeddings\": 512, \"architectures\": "
          "[\"BertForSequenceClassification\"]",
          109482240 + 2 * 769 },
        { "roberta",
          "\"vocab_size\": 50265, \"max_position_embeddings\": 514, \"type_vocab_size\": 1, "
          "\"architectures\": [\"RobertaForMaskedLM\"]",
          124697433 },
        { "vit", "\"image_size\": 224, \"patch_size\": 16, \"num_channels\": 3", 86389248 },
        { "vit",
          "\"image_size\": 224, \"patch_size\": 16, \"num_channels\": 3, \"architectures\": "
          "[\"ViTForImageClassification\"], \"id2label\": {\"0\": \"cat\", \"1\": \"dog\", \"2\": "
          "\"other\"}",
          85798656 + 3 * 769 },
        { "vit", "\"image_size\": 224, \"patch_size\": 16, \"num_channels\": 3, \"qkv_bias\": false",
          86389248 - 12 * 3 * 768 },
    };
    static const char *const shipped[] = { "bert-base", "vit-base" };
    static const double total[] = { 109514298, 86567656 };
    trn_model model;
    trn_model_size size;
    char text[1024], why[HF_WHY];
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(text, sizeof text,
                 "{\"model_type\": \"%s\", \"num_hidden_layers\": 12, \"hidden_size\": 768, "
                 "\"num_attention_heads\": 12, \"intermediate_size\": 3072, %s}",
                 row[i].type, row[i].rest);
        if (!parse(text, &model, why)) fail_msg("%s", why);
        assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
        near(size.total, row[i].total, 0, row[i].rest);
        assert_int_equal(model.longest, strcmp(row[i].type, "vit") == 0 ? 14 * 14 + 1 : 512);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s/examples/tools/shardplan/models/%s.json", TRN_SOURCE_DIR, shipped[i]);
        if (!hf_config_read(text, &model, why)) fail_msg("%s", why);
        assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
        near(size.total, total[i], 0, shipped[i]);
    }
}

/* Models that are two, and what diffusers calls a transformer: parameters as their publishers count them. */
static void halves(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        hf_part one, other;
        double total, shared, within; /* shared: parameters that both halves count */
    } row[] = {
        { "whisper-large-v3", HF_ENCODER_PART, HF_DECODER_PART, 1543490560, 0, 0.001 },
        { "t5-base", HF_ENCODER_PART, HF_DECODER_PART, 222903552, 32128 * 768, 1e-5 },
        { "clip-vit-large", HF_TEXT_PART, HF_IMAGE_PART, 427616513, 0, 1e-5 },
        { "dit-xl-2", HF_WHOLE, HF_PARTS, 749834272, 0, 1e-3 }, /* 675 million, and a condition in each block */
        { "distilbert-base", HF_WHOLE, HF_PARTS, 66985530, 0, 0 },
        { "qwen3-vl-30b-a3b", HF_WHOLE, HF_PARTS, 30532122624, 0, 0 }, /* as qwen3-30b-a3b */
        { "glm-5", HF_WHOLE, HF_PARTS, 744e9, 0, 0.001 },
        { "minimax-m2", HF_WHOLE, HF_PARTS, 228.7e9, 0, 0.001 },
        { "trinity-mini", HF_WHOLE, HF_PARTS, 26.12e9, 0, 0.001 },
        { "deepseek-v3.2", HF_WHOLE, HF_PARTS, 671026419200.0 + 61 * (1536 * 64 * 128 + 7168 * 192 + 256), 0, 0 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const hf_part part[2] = { row[i].one, row[i].other };
        double total = -row[i].shared;
        for (int k = 0; k < 2 && part[k] != HF_PARTS; k++) {
            static hf_config all;
            const hf_ask ask = { .part = part[k] };
            trn_model_size size;
            char path[512], why[HF_WHY];
            snprintf(path, sizeof path, "%s/examples/tools/shardplan/models/%s.json", TRN_SOURCE_DIR, row[i].file);
            if (!hf_config_load(path, &ask, &all, why)) fail_msg("%s", why);
            assert_int_equal(trn_model_size_of(&all.model, &size, NULL), TRN_OK);
            total += size.total;
        }
        near(total, row[i].total, row[i].within, row[i].file);
    }
}

#define SIZE "\"num_hidden_layers\": 2, \"hidden_size\": 8, \"num_attention_heads\": 2"
#define SIZES "\"model_type\": \"llama\", " SIZE
#define REST ", \"intermediate_size\": 16, \"vocab_size\": 32"
/* 204,184,588 rows of 128, which MLPerf's pages round to 26 billion; MLPs and crosses are counted from their widths. */
static void recommenders(void **state)
{
    (void)state;
    trn_model model;
    trn_model_size size;
    char text[512], why[HF_WHY];
    snprintf(text, sizeof text, "%s/examples/tools/shardplan/models/dlrm.json", TRN_SOURCE_DIR);
    if (!hf_config_read(text, &model, why)) fail_msg("%s", why);
    assert_int_equal(trn_model_size_of(&model, &size, NULL), TRN_OK);
    near(size.embeddings, 204184588.0 * 128, 0, "rows");
    near(size.dense_mlp, 171392 + 10627200 + 5245953, 0, "dense, cross and over");
    near(size.total, 26135627264.0 + 16044545, 0, "all");
    near(size.active, 214 * 128 + 16044545, 0, "of a sample, which looks up 214 rows");
}

#define CODER "\"num_hidden_layers\": 2, \"hidden_size\": 8, \"num_attention_heads\": 2, \"intermediate_size\": 16, "
#define BERT CODER "\"model_type\": \"bert\", \"vocab_size\": 9"
#define RANKS                                                                                                          \
    "\"model_type\": \"dlrm\", \"embedding_dim\": 8, \"dense_in_features\": 3, "                                       \
    "\"over_arch_layer_sizes\": [4, 1]"
#define DLRM RANKS ", \"dense_arch_layer_sizes\": [16, 8]"
#define VIT CODER "\"model_type\": \"vit\", \"num_channels\": 3"
#define MOE                                                                                                            \
    "\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 4, \"hidden_size\": 8, \"num_attention_heads\": 2, "        \
    "\"num_key_value_heads\": 2" REST

static void bad_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } row[] = {
        { "", "it is not JSON (line 1)" },
        { "{\n\"a\": 1,\n}", "it is not JSON (line 3)" },
        { "[]", "it is not a JSON object" },
        { "{}", "it has no 'model_type'" },
        { "{\"model_type\": 3}", "its 'model_type' is not a name" },
        { "{\"model_type\": \"mamba\"}", "its 'model_type' is 'mamba', which is not one of the" },
        { "{\"model_type\": \"llama\"}", "it has no 'num_hidden_layers', which llama needs" },
        { "{\"model_type\": \"gpt2\"}", "it has no 'n_layer', which gpt2 needs" },
        { "{" SIZES "}", "it has no 'vocab_size', which llama needs" },
        { "{" SIZES REST ", \"num_key_value_heads\": -1}", "its 'num_key_value_heads' is -1; expected 1 to 16384" },
        { "{" SIZES REST ", \"num_key_value_heads\": 1e99}", "its 'num_key_value_heads' is 9.99" },
        { "{" SIZES REST ", \"num_key_value_heads\": 1.5}", "its 'num_key_value_heads' is 1.5, not a whole number" },
        { "{" SIZES REST ", \"num_key_value_heads\": 2.0}", "its 'num_key_value_heads' is 2.0, not a whole number in" },
        { "{" SIZES REST ", \"num_key_value_heads\": 2e0}", "its 'num_key_value_heads' is 2e0, not a whole number" },
        { "{" SIZES REST ", \"vocab\\u005fsize\": 0}", "its 'vocab_size' is 0; expected" }, /* the last one counts */
        { "{" SIZES REST ", \"vocab_size\": Infinity}", "its 'vocab_size' is inf; expected" },
        { "{" SIZES REST ", \"vocab_size\": NaN}", "its 'vocab_size' is not a number" },
        { "{" SIZES REST ", \"a\": Infinit}", "it is not JSON" },
        { "{" SIZES REST ", \"a\": +Infinity}", "it is not JSON" },
        { "{" SIZES REST ", \"text_config\": {\"model_type\": \"llama\", \"a\\u00zz\": 1}}", "it is not JSON" },
        { "{" SIZES REST ", \"head_dim\": 08}", "it is not JSON" },
        { "{" SIZES REST ", \"num_key_value_heads\": \"8\"}", "its 'num_key_value_heads' is not a number" },
        { "{" SIZES REST ", \"num_key_value_heads\": 3}", "heads 2 does not divide by kv_heads 3" },
        { "{" SIZES REST ", \"tie_word_embeddings\": 1}", "its 'tie_word_embeddings' is neither true nor false" },
        { "{\"model_type\": \"afmoe\", \"num_key_value_heads\": 2, \"num_experts\": 4, " SIZE REST "}",
          "it has no 'num_experts_per_tok', which afmoe needs" },
        { "{\"model_type\": \"mistral\", " SIZE REST "}",
          "it has no 'num_key_value_heads', and its 2 heads do not divide by the 8 that mistral's class takes then" },
        { "{" SIZES REST ", \"sliding_window\": 3, \"layer_types\": [\"mamba\", \"mamba\"]}", "its 'layer_types' has" },
        { "{\"model_type\": \"gemma2\", \"num_key_value_heads\": 2, " SIZE REST
          ", \"layer_types\": [\"sliding_attention\", \"conv\"]}",
          "its 'layer_types' has 'conv', which is not planned for gemma2" },
        { "{" MOE ", \"num_experts\": 4, \"num_experts_per_tok\": 5}",
          "its 'num_experts_per_tok' is 5; expected 1 to 4" },
        { "{" MOE
          ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4, \"mlp_only_layers\": 3}",
          "its 'mlp_only_layers' is not a list" },
        { "{" MOE
          ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4, \"mlp_only_layers\": [-1]}",
          "its 'mlp_only_layers' is not a list of numbers of layers" },
        { "{" MOE ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4, "
          "\"mlp_only_layers\": [1.0]}",
          "its 'mlp_only_layers' is not a list of numbers of layers" },
        { "{" MOE ", \"use_sliding_window\": true, \"sliding_window\": 8, \"layer_types\": [\"full_attention\"], "
          "\"num_experts\": 0}",
          "its 'layer_types' names 1 layers, not 4" },
        { "{" BERT "}", "it has no 'max_position_embeddings', which bert needs" },
        { "{" BERT ", \"max_position_embeddings\": 0}", "its 'max_position_embeddings' is 0; expected 1 to" },
        { "{" BERT ", \"max_position_embeddings\": \"8\"}", "its 'max_position_embeddings' is not a number" },
        { "{" BERT ", \"max_position_embeddings\": 8, \"type_vocab_size\": 1e30}", "its 'type_vocab_size' is 1" },
        { "{" BERT ", \"max_position_embeddings\": 8, \"is_decoder\": true}",
          "its 'is_decoder' is true, but bert is an encoder" },
        { "{" BERT ", \"max_position_embeddings\": 8, \"position_embedding_type\": \"relative_key\"}",
          "its 'position_embedding_type' is not 'absolute'" },
        { "{" BERT ", \"architectures\": \"BertModel\"}", "its 'architectures' is not a list of one name" },
        { "{" BERT ", \"architectures\": [\"BertForPreTraining\"]}",
          "its 'architectures' is 'BertForPreTraining'; known are BertModel, BertForMaskedLM, BertForSeq" },
        { "{" BERT ", \"architectures\": [\"BertForSequenceClassification\"], \"id2label\": [3]}",
          "its 'id2label' names no classes" },
        { "{" CODER "\"model_type\": \"bert\"}", "it has no 'vocab_size', which bert needs" },
        { "{" VIT "}", "it has no 'image_size', which vit needs" },
        { "{" VIT ", \"image_size\": 32}", "it has no 'patch_size', which vit needs" },
        { "{" VIT ", \"image_size\": 32, \"patch_size\": 0}", "its 'patch_size' is 0; expected 1 to 4096" },
        { "{" VIT ", \"image_size\": 32, \"patch_size\": 15}",
          "its 'image_size' 32 does not divide by its 'patch_size' 15" },
        { "{" VIT ", \"image_size\": 65536, \"patch_size\": 1}", "positions is 4294967297; a model has 0 to" },
        { "{" VIT ", \"image_size\": 4096, \"patch_size\": 4096}", "patch_inputs is 50331648; a model has 0 to" },
        { "{" VIT ", \"image_size\": 32, \"patch_size\": 8, \"pooler_output_size\": 4}",
          "its 'pooler_output_size' is not its 'hidden_size'" },
        { "{" DLRM "}", "it has no 'num_embeddings_per_feature', which dlrm needs" },
        { "{" DLRM ", \"num_embeddings_per_feature\": 3}", "its 'num_embeddings_per_feature' is not a list" },
        { "{" DLRM ", \"num_embeddings_per_feature\": []}", "its 'num_embeddings_per_feature' is empty" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1, 0]}", "is not a list of numbers from 1 to 1099511627776" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1, \"2\"]}", "is not a list of numbers from 1 to 10995" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1, 1e3]}", "is not a list of numbers from 1 to 10995" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [99999999999999999999]}", "is not a list of numbers from 1" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1, 2], \"multi_hot_sizes\": [1]}",
          "its 'multi_hot_sizes' has 1 numbers, but 'num_embeddings_per_feature' 2" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1], \"multi_hot_sizes\": [-1]}",
          "its 'multi_hot_sizes' is not a list of numbers from 1 to 1048576" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1], \"interaction_type\": \"projection\"}",
          "its 'interaction_type' is neither 'original' nor 'dcn'" },
        { "{" DLRM ", \"num_embeddings_per_feature\": [1], \"interaction_type\": \"dcn\"}",
          "it has no 'dcn_num_layers', which dlrm needs" },
        { "{" RANKS ", \"num_embeddings_per_feature\": [1]}", "it has no 'dense_arch_layer_sizes', which dlrm needs" },
        { "{" RANKS ", \"num_embeddings_per_feature\": [1], \"dense_arch_layer_sizes\": [16, 9]}",
          "the last of dense_widths is 9, but an embedding is 8 wide" },
        { "{" RANKS ", \"num_embeddings_per_feature\": [1], \"dense_arch_layer_sizes\": [1,1,1,1,1,1,1,1,8]}",
          "its 'dense_arch_layer_sizes' has more than 8 numbers" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_model model;
        char why[HF_WHY];
        memset(&model, 0x55, sizeof model);
        assert_false(parse(row[i].text, &model, why));
        assert_int_equal(model.layers, 0);
        if (strncmp(why, "some/model/config.json: ", 24) != 0 || !strstr(why, row[i].says))
            fail_msg("it says '%s', not '%s'", why, row[i].says);
    }
    char why[HF_WHY];
    trn_model model;
    assert_false(hf_config_read("/nonexistent/config.json", &model, why));
    assert_string_equal(why, "/nonexistent/config.json: it cannot be opened (No such file or directory)");
}

static bool load(const char *text, hf_config *all, char *why)
{
    return hf_config_parse_all(text, strlen(text), "config.json", NULL, all, why);
}

/* quantization_config: bits of an element of attention, of dense blocks, of experts, of the head. */
static void quantised(void **state)
{
    (void)state;
#define DENSE "{" SIZES REST ", \"quantization_config\": "
#define SPARSE                                                                                                         \
    "{" MOE ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4, \"quantization_config\": "
    static const struct {
        const char *text, *says;
        double bits[HF_KINDS];
        trn_format format;
    } row[] = {
        { SPARSE "{\"quant_method\": \"mxfp4\"}}", NULL, { 16, 16, 4.25, 16 }, TRN_F4_E2M1 },
        { SPARSE "{\"quant_method\": \"fp8\", \"weight_block_size\": [4, 4]}}",
          NULL,
          { 10, 10, 10, 16 },
          TRN_F8_E4M3FN },
        { SPARSE
          "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.layers.1.self_attn\", \"lm_head\"]}}",
          NULL,
          { 10, 8, 8, 16 },
          TRN_F8_E4M3FN },
        { DENSE "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 4}}", NULL, { 9, 9, 9, 16 }, TRN_I8 },
        { DENSE
          "{\"quant_method\": \"compressed-tensors\", \"ignore\": [\"lm_head\", \"re:.*mlp.*\"], \"config_groups\": "
          "{\"group_0\": {\"weights\": {\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16}}}}}",
          NULL,
          { 4.5, 16, 4.5, 16 },
          TRN_F4_E2M1 },
        { DENSE "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"group_size\": 16}}",
          NULL,
          { 4.5, 4.5, 4.5, 16 },
          TRN_F4_E2M1 },
        { DENSE "{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}}", NULL, { 4.5, 4.5, 4.5, 16 }, TRN_I8 },
        { DENSE "{\"quant_method\": \"aqlm\"}}",
          "'quant_method' 'aqlm'; planned are fp8, fbgemm_fp8, mxfp4",
          { 0 },
          0 },
        { DENSE "{\"quant_method\": \"gptq\", \"bits\": 1}}", "has 'bits' 1; planned are 2 to 8", { 0 }, 0 },
        { DENSE "3}", "its 'quantization_config' is not an object", { 0 }, 0 },
        { DENSE "{\"quant_method\": \"fp8\", \"ignore\": [3]}}", "has a 'ignore' that is no list of names", { 0 }, 0 },
        { DENSE "{\"quant_method\": \"fp8\", \"ignore\": [\"re:(\"]}}", "which is no regular expression", { 0 }, 0 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        char why[HF_WHY];
        const bool good = load(row[i].text, &all, why);
        if (row[i].says) {
            if (good || !strstr(why, row[i].says)) fail_msg("it says '%s', not '%s'", why, row[i].says);
            continue;
        }
        if (!good) fail_msg("%s", why);
        for (int k = 0; k < HF_KINDS; k++)
            if (k != HF_EXPERTS || all.model.experts) near(all.quantised.kind[k].bits, row[i].bits[k], 0, row[i].text);
        bool any = false;
        for (int k = 0; k < HF_KINDS; k++) any = any || all.quantised.kind[k].format == row[i].format;
        assert_true(any);
    }
#undef DENSE
#undef SPARSE
}

/* Fields that may change sizes or times are refused, others are told of, what says nothing of them is passed over. */
static void other_fields(void **state)
{
    (void)state;
    static const struct {
        const char *field, *refused, *note;
    } row[] = {
        { "\"num_hash_layers\": 3",
          "its 'num_hash_layers' may change sizes or times, and is not known for the model type llama", NULL },
        { "\"sliding_window\": 4096", "its 'sliding_window' may change", NULL },
        { "\"layer_types\": [\"full_attention\", \"linear_attention\"]", "has other layers than 'full_attention'",
          NULL },
        { "\"num_local_experts\": 8", "its 'num_local_experts' may change", NULL },
        { "\"num_local_experts\": 0, \"sliding_window\": null, \"mamba_layers\": []", NULL, NULL },
        { "\"rope_theta\": 1e6, \"attention_dropout\": 0.1, \"bos_token_id\": 3", NULL, NULL },
        { "\"frobnicate\": 3, \"zip\": \"x\"", NULL, "fields without effect: 'frobnicate', 'zip'" },
        { "\"num_nextn_predict_layers\": 1", NULL, "not counted: blocks that predict further tokens" },
    };
    /* What publishers' files have beside sizes. */
    static const char *const shipped[] = {
        "{\"model_type\": \"qwen2\", \"num_key_value_heads\": 1, " SIZE REST
        ", \"max_window_layers\": 28, \"use_sliding_window\": false, "
        "\"sliding_window\": 131072, \"use_mrope\": null, \"rope_theta\": 1e6}",
        "{\"model_type\": \"qwen3\", \"num_key_value_heads\": 1, \"head_dim\": 4, " SIZE REST
        ", \"layer_types\": [\"full_attention\", \"full_attention\"], "
        "\"sliding_window\": null, \"use_sliding_window\": false, \"max_window_layers\": 36}",
        "{\"model_type\": \"phi3\", " SIZE REST
        ", \"sliding_window\": 2047, \"resid_pdrop\": 0.0, \"embd_pdrop\": 0.0, "
        "\"original_max_position_embeddings\": 4096, \"attention_dropout\": 0.1}",
        "{\"model_type\": \"granite\", " SIZE REST ", \"attention_multiplier\": 0.01, \"logits_scaling\": 8.0, "
        "\"residual_multiplier\": 0.2, \"embedding_multiplier\": 12.0, \"mlp_bias\": false}",
        "{\"model_type\": \"gemma3_text\", " SIZE REST ", \"sliding_window\": 512, \"sliding_window_pattern\": 2, "
        "\"num_key_value_heads\": 2, \"head_dim\": 4, "
        "\"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0, \"query_pre_attn_scalar\": 256, "
        "\"cache_implementation\": \"hybrid\", \"rope_local_base_freq\": 10000}",
        "{\"model_type\": \"gpt_oss\", \"num_key_value_heads\": 1, \"head_dim\": 4, " SIZE REST
        ", \"num_local_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"experts_per_token\": 2, \"initial_context_length\": 4096, \"swiglu_limit\": 7.0, \"sliding_window\": 128, "
        "\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"router_aux_loss_coef\": 0.9}",
        "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 8, \"n_head\": 2, \"n_positions\": 8, \"n_ctx\": 8, "
        "\"vocab_size\": 9, \"summary_type\": \"cls_index\", \"summary_use_proj\": true, \"scale_attn_weights\": true, "
        "\"reorder_and_upcast_attn\": true, \"embd_pdrop\": 0.1, "
        "\"task_specific_params\": {\"text\": {\"max_length\": 50}}}",
        "{" BERT ", \"max_position_embeddings\": 8, \"directionality\": \"bidi\", \"pooler_fc_size\": 768, "
        "\"pooler_num_attention_heads\": 12, \"pooler_type\": \"first_token_transform\"}",
        "{" VIT ", \"image_size\": 32, \"patch_size\": 8, \"encoder_stride\": 16, \"pooler_act\": \"tanh\"}",
    };
    for (unsigned i = 0; i < sizeof shipped / sizeof shipped[0]; i++) {
        static hf_config all;
        char why[HF_WHY];
        if (!load(shipped[i], &all, why)) fail_msg("%s", why);
        if (all.notes.count) fail_msg("%s: %s", shipped[i], all.notes.text[0]);
    }
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        char text[512], why[HF_WHY];
        snprintf(text, sizeof text, "{" SIZES REST ", %s}", row[i].field);
        const bool good = load(text, &all, why);
        if (good != !row[i].refused || (row[i].refused && !strstr(why, row[i].refused))) fail_msg("%s: %s", text, why);
        if (row[i].refused) continue;
        assert_int_equal(all.notes.count, row[i].note ? 1 : 0);
        if (row[i].note && !strstr(all.notes.text[0], row[i].note)) fail_msg("%s", all.notes.text[0]);
    }
}

/* Files leave out what the family's class takes anyway: Gemma 3 of 4 and of 27 billion, as they are published. Null is
 * not left out. */
static void left_to_the_class(void **state)
{
    (void)state;
#define GEMMA3                                                                                                         \
    "{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\", \"sliding_window\": 1024, "
    static const struct {
        const char *text;
        int notes, heads, kv_heads, head_dim, billions; /* parameters of the decoder, in tenths */
    } row[] = {
        { GEMMA3 "\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34}}", 4, 8, 4, 256, 39 },
        { GEMMA3 "\"hidden_size\": 5376, \"intermediate_size\": 21504, \"num_hidden_layers\": 62, "
                 "\"num_attention_heads\": 32, \"num_key_value_heads\": 16, \"head_dim\": 128}}",
          1, 32, 16, 128, 270 },
        { GEMMA3 "\"hidden_size\": 1024, \"intermediate_size\": 1024, \"num_hidden_layers\": 1, \"head_dim\": null, "
                 "\"num_key_value_heads\": null}}",
          2, 8, 0, 0, 3 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        static hf_config all;
        char why[HF_WHY];
        if (!load(row[i].text, &all, why)) fail_msg("%s", why);
        assert_int_equal(all.notes.count, row[i].notes);
        assert_non_null(strstr(all.notes.text[row[i].notes - 1], "gemma3_text's class has it"));
        assert_int_equal(all.model.vocab, 262208);
        assert_int_equal(all.model.heads, row[i].heads);
        assert_int_equal(all.model.kv_heads, row[i].kv_heads);
        assert_int_equal(all.model.head_dim, row[i].head_dim);
        assert_int_equal((int)(twin(&all.model).all / 1e8 + 0.5), row[i].billions);
    }
}

static void layers_of_each_kind(void **state)
{
    (void)state;
    trn_model model;
    char why[HF_WHY];
    const char *const experts = ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 4";
    char text[1024];
    snprintf(text, sizeof text, "{" MOE "%s, \"mlp_only_layers\": [0, 2, 2, 9]}", experts);
    assert_true(parse(text, &model, why));
    assert_int_equal(model.dense_layers, 2);
    snprintf(text, sizeof text, "{" MOE "%s, \"decoder_sparse_step\": 3}", experts);
    assert_true(parse(text, &model, why));
    assert_int_equal(model.dense_layers, 3);
    snprintf(text, sizeof text,
             "{" MOE "%s, \"use_sliding_window\": true, \"sliding_window\": 8, \"layer_types\": "
             "[\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\"]}",
             experts);
    assert_true(parse(text, &model, why));
    assert_int_equal(model.window, 8);
    assert_int_equal(model.window_layers, 3);
}

#else
#include "without_cjson.h"
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_totals),
        cmocka_unit_test(kv_cache),
        cmocka_unit_test(flops_of_llama),
        cmocka_unit_test(random_models),
        cmocka_unit_test(random_encoders),
        cmocka_unit_test(sparse_attention),
        cmocka_unit_test(refusals),
        cmocka_unit_test(recommender_ends),
#if defined(HAVE_CJSON)
        cmocka_unit_test(shipped_configurations),
        cmocka_unit_test(halves),
        cmocka_unit_test(quantised),
        cmocka_unit_test(other_fields),
        cmocka_unit_test(published_sizes),
        cmocka_unit_test(families),
        cmocka_unit_test(encoders),
        cmocka_unit_test(recommenders),
        cmocka_unit_test(bad_configurations),
        cmocka_unit_test(layers_of_each_kind),
        cmocka_unit_test(left_to_the_class),
#else
        cmocka_unit_test(without_cjson),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
