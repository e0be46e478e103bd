/* test_plan_sums.c - what a plan adds up: memory against tensors that are written out one by one, time against the
 * costs of single products and collectives.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "trnmath/trn_plan.h"
#include "twin/cases.h"
#include "twin/plan_cases.h"

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

/* ---- memory, the slow way: every tensor of every layer of every stage ---- */

typedef struct twin_chip {
    double shared, experts; /* parameters, by who else holds them */
    double kept;            /* bytes of activations of one token in one microbatch */
} twin_chip;

static double up(int64_t size, int64_t by) { return (double)((size + by - 1) / by); }

static void twin_mlp(twin_chip *c, const trn_model *m, int64_t inner, int64_t t, double copies, bool expert)
{
    const double matrices = m->plain_mlp ? 2 : 3, cut = up(inner, t);
    *(expert ? &c->experts : &c->shared) += copies * matrices * (double)m->hidden * cut;
}

/* Bytes that one layer keeps of one token (BF16): lists of vectors, as the header has them. */
static double twin_kept(const trn_model *m, bool sparse, int64_t t, double s, trn_recompute kind)
{
    const double h = (double)m->hidden / s, size = (double)(m->head_dim ? m->head_dim : m->hidden / m->heads);
    const double heads = up(m->heads, t), kv = up(m->kv_heads ? m->kv_heads : m->heads, t);
    const double value = m->kv_rank ? (double)m->v_dim : size, wide = size + (m->kv_rank ? (double)m->rope_dim : 0);
    const double ways = m->plain_mlp ? 1 : 2, routed = sparse ? (double)m->experts_per_token : 0;
    const double inner = sparse ? up(m->shared_intermediate, t) : up(m->intermediate, t);
    const double expert = sparse ? up(m->moe_intermediate, t) : 0;
    double e = h; /* the layer's input */
    if (kind == TRN_RECOMPUTE_FULL) return 2 * e;
    e += h; /* the residual after attention */
    if (m->kv_rank)
        e += heads * (wide + wide + value) + (double)(m->q_rank + m->kv_rank + m->rope_dim);
    else
        e += heads * wide + kv * 2 * size;
    e += ways * inner;
    e += routed * (h + ways * expert);
    if (kind == TRN_RECOMPUTE_SELECTIVE) return 2 * e;
    e += 2 * h;                                     /* two normed inputs */
    e += heads * value;                             /* attention's output */
    e += (inner > 0 ? inner : 0) + routed * expert; /* the products of gate and up */
    return 2 * e + 4 * heads;                       /* F32 statistics of the softmax */
}

/* One chip of stage number `stage`. */
static twin_chip twin_stage(const trn_model *m, const trn_plan *p, int stage)
{
    const int64_t t = p->tp, each = (m->layers + p->pp - 1) / p->pp;
    const double h = (double)m->hidden, size = (double)(m->head_dim ? m->head_dim : m->hidden / m->heads);
    twin_chip c = { h, 0, 0 }; /* the last norm, which every stage counts */
    for (int64_t layer = stage * each; layer < (stage + 1) * each && layer < m->layers; layer++) {
        const bool sparse = m->experts > 0 && layer >= m->dense_layers;
        const double heads = up(m->heads, t), kv = up(m->kv_heads ? m->kv_heads : m->heads, t);
        c.shared += 2 * h;
        if (m->kv_rank) {
            const double q = (double)m->q_rank, r = (double)m->kv_rank, rope = (double)m->rope_dim,
                         v = (double)m->v_dim;
            c.shared +=
                h * q + q + q * heads * (size + rope) + h * (r + rope) + r + r * heads * (size + v) + heads * v * h;
        } else
            c.shared += h * size * (heads + 2 * kv) + heads * size * h + (m->qk_norm ? 2 * size : 0);
        if (sparse) {
            c.shared += h * (double)m->experts + (m->router_bias ? (double)m->experts : 0);
            if (m->shared_intermediate) twin_mlp(&c, m, m->shared_intermediate, t, 1, false);
            twin_mlp(&c, m, m->moe_intermediate, t, (double)(m->experts / p->ep), true);
        } else
            twin_mlp(&c, m, m->intermediate, t, 1, false);
        c.kept += twin_kept(m, sparse, t, p->sp ? (double)t : 1, p->recompute);
    }
    if (stage == 0) c.shared += up(m->vocab, t) * h;
    if (stage == p->pp - 1 && !(m->tied_embeddings && p->pp == 1)) c.shared += up(m->vocab, t) * h;
    return c;
}

/* Weights BF16, gradients F32, 12 bytes of optimizer: what mixed precision is. */
static double twin_training_bytes(const trn_model *m, const trn_plan *p, double tokens, int stage)
{
    const twin_chip c = twin_stage(m, p, stage);
    const double all = (double)p->dp * p->ep * p->cp, fewer = (double)p->dp * p->cp;
    const double whole = c.shared + c.experts, share = c.shared / all + c.experts / fewer;
    const int behind = p->pp - stage;
    const double flying = p->microbatches < behind ? (double)p->microbatches : behind;
    double bytes = 2 * (p->zero >= TRN_ZERO_WEIGHTS ? share : whole) +
                   4 * (p->zero >= TRN_ZERO_GRADIENTS ? share : whole) +
                   12 * (p->zero >= TRN_ZERO_OPTIMIZER ? share : whole);
    bytes += flying * tokens * c.kept;
    if (p->recompute != TRN_RECOMPUTE_NONE) {
        const double dense =
            m->experts == 0 || m->dense_layers ? twin_kept(m, false, p->tp, p->sp ? p->tp : 1, TRN_RECOMPUTE_NONE) : 0;
        const double sparse = m->experts ? twin_kept(m, true, p->tp, p->sp ? p->tp : 1, TRN_RECOMPUTE_NONE) : 0;
        bytes += tokens * fmax(dense, sparse);
    }
    if (stage == p->pp - 1) bytes += tokens * up(m->vocab, p->tp) * 6;
    return bytes;
}

static void memory_by_tensors(void **state)
{
    (void)state;
    static const trn_model *const model[] = { &llama8, &llama70, &qwen, &deepseek };
    uint64_t rng = 3;
    int equal = 0;
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    for (int round = 0; round < cases_rounds(400, 4000); round++) {
        const trn_model *m = model[cases_below(&rng, 4)];
        const trn_plan_args args = question(m, &net, TRN_JOB_TRAIN, 64, 2048);
        trn_plan p = { .tp = 1 << cases_below(&rng, 4),
                       .cp = 1 << cases_below(&rng, 2),
                       .dp = 1 << cases_below(&rng, 3),
                       .pp = 1 << cases_below(&rng, 3),
                       .zero = (trn_zero)(1 + cases_below(&rng, 4)),
                       .recompute = (trn_recompute)(1 + cases_below(&rng, 3)),
                       .sp = cases_one_in(&rng, 2),
                       .microbatch = 1 + cases_below(&rng, 3),
                       .microbatches = 1 + cases_below(&rng, 9) };
        trni_plan_work w;
        p.ep = m->experts ? 1 << cases_below(&rng, 4) : 1;
        assert_int_equal(trni_plan_work_begin(&w, &args, 1), TRN_OK);
        const trn_plan_memory b = trni_plan_memory_of(&w, &p);
        const double tokens = (double)p.microbatch * 2048 / p.cp;
        double most = 0;
        for (int stage = 0; stage < p.pp; stage++) most = fmax(most, twin_training_bytes(m, &p, tokens, stage));
        const double found = b.total - b.buffers;
        if (m->experts == 0 || p.pp == 1)
            near(found, most, 1e-12, "bytes of the fullest chip"), equal++;
        else if (found < most * (1 - 1e-12) || found > 1.6 * most) /* the worst of each part, not of one stage */
            fail_msg("%s, pp %d: %g bytes, the fullest stage has %g", m->name, p.pp, found, most);
        near(b.weights + b.gradients + b.optimizer + b.activations + b.kv + b.buffers, b.total, 1e-12, "sum of parts");
        trni_plan_work_end(&w);
    }
    assert_true(equal > 50);
}

/* 128 KiB a token for llama-3-8b, all layers; a latent is not cut by tp. */
static void memory_of_the_cache(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    static const struct {
        const trn_model *model;
        int tp, cp, dp;
        double bytes;
    } row[] = {
        { &llama8, 1, 1, 16, 8192 * 131072.0 },
        { &llama8, 8, 1, 2, 8 * 8192 * 131072.0 / 8 },
        { &llama8, 2, 8, 1, 16 * 1024 * 131072.0 / 2 },
        { &deepseek, 16, 1, 1, 16.0 * 8192 * 61 * 576 * 2 },
        { &deepseek, 4, 4, 1, 16.0 * 2048 * 61 * 576 * 2 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_plan_args args = question(row[i].model, &net, TRN_JOB_DECODE, 16, 8192);
        trn_plan p = { .tp = row[i].tp, .cp = row[i].cp, .ep = 1, .dp = row[i].dp, .pp = 1 };
        args.ignore_groups = true;
        assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
        near(p.memory.kv, row[i].bytes, 1e-12, row[i].model->name);
    }
}

/* ---- time: one chip, every product asked by itself ---- */

static double one_product(const trn_system_spec *chip, int64_t m, int64_t n, int64_t k, bool added)
{
    const trn_matmul_cost_args args = {
        .system = chip, .m = m, .n = n, .k = k, .a_format = TRN_BF16, .accumulate = added
    };
    trn_system_cost cost;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_OK);
    return cost.time_s - cost.core.startup_s;
}

static double three_products(const trn_system_spec *chip, int64_t m, int64_t n, int64_t k, bool train)
{
    const double forward = one_product(chip, m, n, k, false);
    return !train ? forward : forward + one_product(chip, m, k, n, false) + one_product(chip, k, n, m, true);
}

static double core_s(int64_t m, int64_t n, int64_t k)
{
    const trn_matmul_cost_args args = { .generation = TRN_TRAINIUM1, .m = m, .n = n, .k = k, .a_format = TRN_BF16 };
    trn_core_cost cost;
    assert_int_equal(trn_matmul_cost(&args, &cost), TRN_OK);
    return cost.tensor_s + cost.load_stationary_s;
}

/* Heads of 64 are bound by VectorE, heads of 256 by TensorE. */
static void time_of_one_chip(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN1_2XLARGE);
    const trn_system_spec *chip = trn_system_spec_of(TRN_TRN1_2XLARGE);
    const int64_t length = 1024, batch = 6, tokens = 2 * length, context = 513; /* (1024 + 1) / 2, rounded up */
    for (int kind = 0; kind < 4; kind++) {
        const bool train = kind & 1;
        const int64_t size = kind < 2 ? 64 : 256, q = 8 * size, kv = 2 * size;
        const trn_model m = {
            .layers = 3, .hidden = 512, .heads = 8, .kv_heads = 2, .head_dim = size, .intermediate = 1024, .vocab = 1000
        };
        trn_plan_args args = question(&m, &net, train ? TRN_JOB_TRAIN : TRN_JOB_PREFILL, batch, length);
        trn_plan p = { .tp = 1, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
        args.microbatch = 2;
        args.recompute = TRN_RECOMPUTE_NONE;
        assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
        double products = three_products(chip, tokens, q + 2 * kv, 512, train) +
                          three_products(chip, tokens, 512, q, train) + three_products(chip, tokens, 2048, 512, train) +
                          three_products(chip, tokens, 512, 1024, train);
        products = 3 * products + three_products(chip, train ? tokens : 2, 1000, 512, train);
        const double pairs = 2 * 8, scores = core_s(length, context, size) + core_s(length, size, context);
        const double tensor = pairs * scores / 2, elements = pairs * (double)(length * context) / 2;
        const double scalar = elements / (128 * 1.4e9), vector = elements / (128 * 1.12e9);
        double attention = 3 * fmax(tensor, fmax(scalar, vector));
        if (train) attention += 3 * fmax(2.5 * tensor, fmax(scalar, 2 * vector));
        const double passes = 3.0 * (double)tokens * (8 * 512 + 3 * 1024) * 2 / 820e9 * (train ? 3 : 1);
        const double layer = 512 * (double)(q + 2 * kv) + (double)q * 512 + 3 * 512 * 1024 + 1024;
        const double update = train ? (3 * layer + 512 + 2 * 512 * 1000) * (2 * 12 + 4 + 2) / 820e9 : 0;
        near(p.time_s, 3 * (products + attention + passes) + update, 1e-9, train ? "training" : "prefill");
        near(p.time.products_s + p.time.reads_s, 3 * products, 1e-9, "products");
        near(p.time.attention_s, 3 * attention, 1e-9, "attention");
        assert_int_equal(p.microbatches, 3);
    }
}

static void time_of_one_token(void **state)
{
    (void)state;
    const trn_model m = { .layers = 3, .hidden = 512, .heads = 8, .kv_heads = 2, .intermediate = 1024, .vocab = 1000 };
    const trn_topology net = trn_topology_of(TRN_TRN1_2XLARGE);
    const trn_system_spec *chip = trn_system_spec_of(TRN_TRN1_2XLARGE);
    const trn_plan_args args = question(&m, &net, TRN_JOB_DECODE, 40, 20000);
    trn_plan p = { .tp = 1, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    const double products = one_product(chip, 40, 768, 512, false) + one_product(chip, 40, 512, 512, false) +
                            one_product(chip, 40, 2048, 512, false) + one_product(chip, 40, 512, 1024, false);
    near(p.time.products_s + p.time.reads_s, 3 * products + one_product(chip, 40, 1000, 512, false), 1e-9, "products");
    const double tensor = 40 * 2 * (core_s(4, 20000, 64) + core_s(4, 64, 20000)) / 2;
    const double read = 40 * 20000.0 * 2 * 2 * 64 * 2 / 820e9;
    near(p.time.attention_s, 3 * fmax(tensor, read), 1e-9, "attention");
    near(p.tokens_per_s, 40 / p.time_s, 1e-12, "tokens");
}

/* ---- communication: each collective asked by itself, of all groups ---- */

static double one_collective(const trn_topology *net, const trn_plan *p, unsigned axes, trn_collective op, double bytes)
{
    static int chips[1024], targets[1024];
    const int degree[TRN_AXIS_COUNT] = { p->tp, p->cp, p->ep, p->dp, p->pp };
    trni_plan_place place;
    trn_collective_args args = { .net = net, .op = op, .bytes = (int64_t)bytes, .chips = chips, .error = &failure };
    trn_cost cost;
    assert_true(trni_plan_place_degrees(net, degree, p->order, &place));
    trni_plan_place_groups(&place, axes, chips, &args.count, &args.groups);
    if (args.count < 2) return 0;
    for (int i = 0; i < args.count; i++) targets[i] = i + 1 < args.count ? i + 1 : -1;
    if (op == TRN_PERMUTE) args.targets = targets;
    if (trn_collective_cost(&args, &cost) != TRN_OK) fail_msg("%s", failure.text);
    return cost.time_s;
}

enum {
    TP = 1 << TRN_AXIS_TP,
    CP = 1 << TRN_AXIS_CP,
    EP = 1 << TRN_AXIS_EP,
    DP = 1 << TRN_AXIS_DP,
    PP = 1 << TRN_AXIS_PP
};

/* Training with microbatches of one sequence of 2048, BF16 on the wire, ZeRO-1, one bucket. */
static void time_of_collectives(void **state)
{
    (void)state;
    static const struct {
        const trn_model *model;
        int tp, cp, ep, dp, pp;
        bool sp;
    } row[] = {
        { &llama8, 4, 2, 1, 4, 2, false },   { &llama8, 4, 2, 1, 4, 2, true },   { &llama8, 1, 8, 1, 8, 1, false },
        { &qwen, 4, 2, 4, 2, 1, false },     { &qwen, 2, 1, 8, 1, 4, true },     { &qwen, 4, 1, 1, 16, 1, false },
        { &deepseek, 4, 1, 8, 2, 1, false }, { &deepseek, 8, 1, 8, 1, 1, true },
    };
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_model *m = row[i].model;
        trn_plan_args args = question(m, &net, TRN_JOB_TRAIN, 64, 2048);
        trn_plan p = { .tp = row[i].tp,
                       .cp = row[i].cp,
                       .ep = row[i].ep,
                       .dp = row[i].dp,
                       .pp = row[i].pp,
                       .sp = row[i].sp,
                       .microbatch = 1,
                       .recompute = TRN_RECOMPUTE_NONE,
                       .zero = TRN_ZERO_OPTIMIZER };
        p.microbatches = 64 / (p.dp * p.ep);
        args.assumptions.bucket_bytes = 1e15;
        trni_plan_work w;
        assert_int_equal(trni_plan_work_begin(&w, &args, 1000), TRN_OK);
        assert_int_equal(trni_plan_time_of(&w, &p), TRN_OK);
        trni_plan_work_end(&w);

        const double tokens = 2048 / p.cp, all = tokens * (double)m->hidden * 2, steps = (double)p.microbatches;
        const double layers = (double)(m->layers / p.pp), sparse = m->experts ? layers - (double)m->dense_layers : 0;
        const double scatter = one_collective(&net, &p, TP, TRN_REDUCE_SCATTER, all),
                     gather = one_collective(&net, &p, TP, TRN_ALL_GATHER, all);
        const double sum = p.sp ? scatter + gather : one_collective(&net, &p, TP, TRN_ALL_REDUCE, all);
        const double again = p.sp ? 2 * gather : 0; /* inputs of a layer's products, backward */
        double tp = layers * (4 * sum + again) + sum, ep = 0;
        if (p.ep >
            1) { /* a layer with experts: routed tokens in place of the second sum, unless there are shared ones, too */
            const double routed = (double)m->experts_per_token * all;
            double each = one_collective(&net, &p, TP, TRN_ALL_GATHER, routed) +
                          one_collective(&net, &p, TP, TRN_REDUCE_SCATTER, routed);
            each += p.sp ? 0 : gather;
            each -= m->shared_intermediate ? 0 : sum;
            tp += 2 * sparse * each;
            ep = 4 * sparse * one_collective(&net, &p, EP, TRN_ALL_TO_ALL, routed / p.tp);
        }
        const double kv =
            2048.0 * 2 * (m->kv_rank ? (double)(m->kv_rank + m->rope_dim) : 2 * up(m->kv_heads, p.tp) * 128);
        const double cp =
            2 * one_collective(&net, &p, CP, TRN_ALL_GATHER, kv) + one_collective(&net, &p, CP, TRN_REDUCE_SCATTER, kv);
        const double pp = 2 * one_collective(&net, &p, PP, TRN_PERMUTE, all / (p.sp ? p.tp : 1));
        double dp = 0;
        const twin_chip c = twin_stage(m, &p, p.pp - 1);
        dp += one_collective(&net, &p, DP | EP | CP, TRN_REDUCE_SCATTER, 4 * c.shared);
        dp += one_collective(&net, &p, DP | EP | CP, TRN_ALL_GATHER, 2 * c.shared);
        dp += one_collective(&net, &p, DP | CP, TRN_REDUCE_SCATTER, 4 * c.experts) +
              one_collective(&net, &p, DP | CP, TRN_ALL_GATHER, 2 * c.experts);
        near(p.time.tp_s, steps * tp, 0.02, "tp");
        near(p.time.ep_s, steps * ep, 0.02, "ep");
        near(p.time.cp_s, steps * layers * cp, 0.02, "cp");
        near(p.time.pp_s, p.pp > 1 ? steps * pp : 0, 0.02, "pp");
        near(p.time.dp_s, dp, 0.02, "dp");
        assert_true(p.cp > 1 || p.pp > 1 || p.sp || p.time.hidden_s <= 0); /* the last bucket hides behind nothing */
        near(p.time.bubble_s, (p.pp - 1) * (p.time.forward_s + p.time.backward_s), 1e-9, "bubble");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_by_tensors), cmocka_unit_test(memory_of_the_cache), cmocka_unit_test(time_of_one_chip),
        cmocka_unit_test(time_of_one_token), cmocka_unit_test(time_of_collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
