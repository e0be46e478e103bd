/* test_plan_kinds.c - plans of models that are no plain decoders: layers with a state in place of keys and values, and
 * encoders of text and images, and recommenders.
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
#include "twin/plan_cases.h"

enum { ROOM = 3000, EVENTS = 4000 };
static trn_plan plan[ROOM];

static const trn_model mamba = { .name = "mamba2-2.7b",
                                 .layers = 64,
                                 .hidden = 2560,
                                 .heads = 80,
                                 .head_dim = 64,
                                 .vocab = 50288,
                                 .norms = 1,
                                 .tied_embeddings = true,
                                 .state_space = true,
                                 .linear_layers = 64,
                                 .linear_heads = 80,
                                 .linear_value_dim = 64,
                                 .linear_key_heads = 1,
                                 .linear_key_dim = 128,
                                 .linear_kernel = 4 };
static const trn_model next = { .name = "qwen3-next",
                                .layers = 48,
                                .hidden = 2048,
                                .heads = 16,
                                .kv_heads = 2,
                                .head_dim = 256,
                                .vocab = 151936,
                                .experts = 512,
                                .experts_per_token = 10,
                                .moe_intermediate = 512,
                                .shared_intermediate = 512,
                                .shared_gate = true,
                                .qk_norm = true,
                                .gated_attention = true,
                                .linear_layers = 36,
                                .linear_heads = 32,
                                .linear_value_dim = 128,
                                .linear_key_heads = 16,
                                .linear_key_dim = 128,
                                .linear_kernel = 4 };

static const trn_model bert = { .name = "bert-base",
                                .layers = 12,
                                .hidden = 768,
                                .heads = 12,
                                .intermediate = 3072,
                                .vocab = 30522,
                                .plain_mlp = true,
                                .qkv_bias = true,
                                .o_bias = true,
                                .mlp_bias = true,
                                .norm_bias = true,
                                .tied_embeddings = true,
                                .positions = 512,
                                .longest = 512,
                                .token_types = 2,
                                .bidirectional = true,
                                .masked_head = true };
static const trn_model vit = { .name = "vit-base",
                               .layers = 12,
                               .hidden = 768,
                               .heads = 12,
                               .intermediate = 3072,
                               .plain_mlp = true,
                               .qkv_bias = true,
                               .o_bias = true,
                               .mlp_bias = true,
                               .norm_bias = true,
                               .positions = 197,
                               .longest = 197,
                               .patch_inputs = 768,
                               .bidirectional = true,
                               .classes = 1000 };

/* Four tables: one that is looked up most, three with more rows; and MLPs of 13, 256, 128 and 138, 64, 1. */
static const trn_model ranker = { .name = "ranker",
                                  .hidden = 128,
                                  .longest = 1,
                                  .tables = 4,
                                  .table_rows = { 10, 1000, 2000, 3000 },
                                  .table_lookups = { 100, 3, 2, 1 },
                                  .dense_inputs = 13,
                                  .dense_widths = { 256, 128 },
                                  .over_widths = { 64, 1 } };

/* 16 experts of 96, a latent of 64 + 16, an indexer that leaves 512 positions. */
static const trn_model sparse = { .name = "sparse",
                                  .layers = 4,
                                  .hidden = 512,
                                  .heads = 8,
                                  .head_dim = 32,
                                  .rope_dim = 16,
                                  .v_dim = 32,
                                  .q_rank = 128,
                                  .kv_rank = 64,
                                  .vocab = 1024,
                                  .experts = 16,
                                  .experts_per_token = 4,
                                  .moe_intermediate = 96,
                                  .index_heads = 4,
                                  .index_dim = 32,
                                  .index_most = 512 };

/* A decoder of two layers that looks at 1500 positions. */
static const trn_model looker = { .name = "looker",
                                  .layers = 2,
                                  .hidden = 256,
                                  .heads = 4,
                                  .intermediate = 512,
                                  .vocab = 1000,
                                  .norms = 3,
                                  .plain_mlp = true,
                                  .cross = 1500 };

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static trn_plan evaluated(const trn_plan_args *args, trn_plan p)
{
    if (trn_plan_evaluate(args, &p) != TRN_OK) fail_msg("%s", failure.text);
    return p;
}

/* Every legal plan adds up, and can be drawn. */
static void check_all(const trn_plan_args *args, int legal)
{
    static trn_trace_event event[EVENTS];
    trn_plan_list list;
    if (trn_plan_search(args, plan, ROOM, &list) != TRN_OK) fail_msg("%s", failure.text);
    assert_true(list.legal >= legal);
    for (int64_t i = 0; i < list.legal; i++) {
        const trn_plan_time *t = &plan[i].time;
        double sum = t->contention_s - t->hidden_s;
        for (int k = 0; k < TRN_PART_COUNT; k++) sum += trn_plan_part_s(t, (trn_plan_part)k);
        near(sum, plan[i].time_s, 1e-9, "sum of parts");
        assert_true(plan[i].mfu > 0 && plan[i].mfu < 1 && plan[i].memory.total <= plan[i].memory.capacity);
    }
    for (int64_t i = 0; i < list.legal && !args->model->tables; i += 9) {
        trn_trace trace = { .event = event, .capacity = EVENTS };
        assert_int_equal(trn_plan_trace_layer(args, &plan[i], &trace), TRN_OK);
        assert_true(trace.count > 0 && trace.lost == 0);
    }
}

/* 64 layers of 80 heads of 64 x 128, and three places of 5376 channels behind them: in F32, however long the cache. */
static void states(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    double before = 0;
    for (int64_t length = 1024; length <= 1 << 20; length *= 32) {
        const trn_plan_args args = question(&mamba, &net, TRN_JOB_DECODE, 64, length);
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 });
        assert_true(p.legal);
        near(p.memory.kv, 4.0 * 64 * 4 * (80 * 64 * 128 + 3 * (5120 + 2 * 128)), 1e-12, "states");
        assert_true(before <= 0 || fabs(p.time_s - before) <= 1e-15); /* the same at every length */
        assert_true(p.time.attention_s >= 2 * p.memory.kv / 2.9e12);  /* read and written */
        before = p.time_s;
    }
    const trn_plan_args args = question(&mamba, &net, TRN_JOB_DECODE, 64, 1024); /* 80 heads by 16, but not by 32 */
    assert_true(evaluated(&args, (trn_plan){ .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 }).legal);
    trn_plan_args ranks = args;
    ranks.ranks_per_chip = 8;
    const trn_plan p = evaluated(&ranks, (trn_plan){ .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 });
    assert_string_equal(p.why, "80 heads of linear layers, 1 of keys, do not divide by tp 16 (128 ranks)");
}

/* One layer in four keeps keys and values, three keep states. */
static void both_kinds(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 16, .dp = 1, .pp = 1 };
    trn_plan_args args = question(&next, &net, TRN_JOB_DECODE, 64, 65536);
    const trn_plan p = evaluated(&args, degrees);
    const double keys = 65536.0 * 12 * 2 * 2 * 256 * 2, held = 36.0 * 4 * (32 * 128 * 128 + 3 * (2 * 2048 + 4096));
    assert_true(p.legal);
    near(p.memory.kv, 4 * (keys + held), 1e-12, "keys, values and states");
    args.sequence = 1;
    near(p.time.attention_s - evaluated(&args, degrees).time.attention_s, 4 * keys / 2.9e12, 0.3, "reads of keys");
    args.sequence = 65536;
    trn_model full = next; /* the same, all of it attention, looks back four times as much */
    full.linear_layers = full.linear_heads = full.linear_value_dim = full.linear_key_heads = full.linear_key_dim =
        full.linear_kernel = 0;
    args.model = &full;
    assert_true(evaluated(&args, degrees).time.attention_s > 3 * p.time.attention_s);
}

/* Twice the tokens, twice the work: nothing in a linear layer grows faster. */
static void linear_in_length(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1 };
    for (int job = TRN_JOB_TRAIN; job <= TRN_JOB_PREFILL; job++) {
        trn_plan_args args = question(&mamba, &net, (trn_job)job, 4, 8192);
        args.recompute = TRN_RECOMPUTE_FULL;
        const trn_plan once = evaluated(&args, degrees);
        args.sequence *= 2;
        const trn_plan twice = evaluated(&args, degrees);
        assert_true(once.legal && twice.legal);
        near(twice.time.attention_s, 2 * once.time.attention_s, 1e-9, "recurrence");
        near(twice.flops, 2 * once.flops, job == TRN_JOB_TRAIN ? 1e-12 : 1e-3, "flops");
    }
}

/* By hand, from the sizes on bert's page: 7,077,888 weights of a layer's matrices (4 x 768 x 768 + 2 x 768 x 3072), 512
 * keys and as many values of 768 for each of 512 queries, and at the end 768 x 768 and 768 x 30,522 for every token. */
static void encoder_of_text(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&bert, &net, TRN_JOB_PREFILL, 64, 512);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    const double tokens = 64 * 512, each = 12.0 * (7077888 + 2 * 512 * 768) + 589824 + 23440896;
    const trn_plan p = evaluated(&args, degrees);
    assert_true(p.legal);
    near(p.flops, 2 * tokens * each, 1e-12, "flops of a forward pass");
    near(p.memory.weights, 2 * 109514298.0, 1e-12, "weights in BF16");
    near(p.memory.kv, 0, 0, "no cache");
    args.job = TRN_JOB_TRAIN;
    const trn_plan step = evaluated(&args, degrees);
    near(step.flops, 6 * tokens * each, 1e-12, "flops of a step");
    near(step.memory.gradients, 4 * 109514298.0, 1e-12, "gradients in F32");
    near(step.memory.optimizer, 12 * 109514298.0 / 16, 1e-12, "ZeRO-1");
    trn_model causal = bert; /* the same with the masked half left out: half the scores, and no more saved than that */
    causal.bidirectional = causal.masked_head = false;
    args.model = &causal;
    const trn_plan half = evaluated(&args, degrees);
    assert_true(step.time.attention_s > 1.7 * half.time.attention_s);
    assert_true(step.time.attention_s < 2.1 * half.time.attention_s);
    near(step.flops - half.flops, 6 * tokens * (12.0 * 255.5 * 2 * 768 + 589824), 1e-12, "flops of the other half");
}

/* By hand: 196 patches of 768 numbers, 197 tokens, and 1000 classes of one token of each image; backward nobody asks
 * for the gradient of an image. */
static void encoder_of_images(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&vit, &net, TRN_JOB_PREFILL, 64, 197);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    const double layers = 197 * 12.0 * (7077888 + 2 * 197 * 768), patches = 196.0 * 768 * 768, ends = 768 * 1000;
    const trn_plan p = evaluated(&args, degrees);
    assert_true(p.legal);
    near(p.flops, 64 * 2 * (layers + patches + ends), 1e-12, "flops of a forward pass");
    near(p.flops / 64, 2 * 17.56e9, 0.01, "the 17.6 G multiply-adds of its papers");
    near(p.memory.weights, 2 * 86567656.0, 1e-12, "weights in BF16");
    args.job = TRN_JOB_TRAIN;
    near(evaluated(&args, degrees).flops, 64 * (6 * (layers + ends) + 4 * patches), 1e-12, "flops of a step");
    trn_model bare = vit; /* the patches' product is there, and is all that is gone */
    bare.patch_inputs = 0;
    bare.vocab = 1;
    args.job = TRN_JOB_PREFILL;
    args.model = &bare;
    const trn_plan less = evaluated(&args, degrees);
    const double found = p.time.products_s + p.time.reads_s - less.time.products_s - less.time.reads_s;
    const double arrays = 4 * 2 * patches / (8 * 128 * 128 * 2 * 2.8e9); /* four images on a chip's eight arrays */
    if (found < arrays || found > 20 * arrays) fail_msg("patches take %g s; at the arrays' rate %g", found, arrays);
}

/* Where an encoder's question has no answer: one sentence. */
static void encoder_refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const struct {
        const trn_model *model;
        trn_job job;
        int64_t sequence;
        trn_status status;
        const char *says;
    } row[] = {
        { &bert, TRN_JOB_DECODE, 512, TRN_EUNSUPPORTED, "bert-base is an encoder, which keeps no cache" },
        { &vit, TRN_JOB_DECODE, 197, TRN_EUNSUPPORTED, "vit-base is an encoder, which keeps no cache" },
        { &bert, TRN_JOB_TRAIN, 513, TRN_EINVAL, "sequence is 513, but the model has positions for 512 tokens" },
        { &vit, TRN_JOB_TRAIN, 196, TRN_EINVAL, "sequence is 196, but an image is 197 tokens" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_plan_args args = question(row[i].model, &net, row[i].job, 64, row[i].sequence);
        trn_plan_list list;
        assert_int_equal(trn_plan_search(&args, plan, ROOM, &list), row[i].status);
        if (!strstr(failure.text, row[i].says)) fail_msg("it says '%s', not '%s'", failure.text, row[i].says);
    }
}

static void encoder_searches(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int job = TRN_JOB_TRAIN; job <= TRN_JOB_PREFILL; job++) {
        trn_plan_args args = question(&bert, &net, (trn_job)job, 64, 512);
        check_all(&args, 10);
        args = question(&vit, &net, (trn_job)job, 64, 197);
        check_all(&args, 5);
    }
}

static double exchange(const trn_plan_args *args, const trn_plan *p, unsigned axes, trn_collective op, double bytes)
{
    trn_algorithm algorithm;
    double time_s;
    assert_int_equal(trn_plan_collective(args, p, axes, op, bytes, &time_s, &algorithm), TRN_OK);
    return time_s;
}

/* By hand, ep 2 x dp 8, 1024 samples a chip: chip 0 has the table of 100 lookups, chip 1 the three others, 6000 rows
 * and 6 lookups. A row is 256 bytes, a number of the optimizer moves 64. */
static void recommender(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&ranker, &net, TRN_JOB_PREFILL, 16 * 1024, 1);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 2, .dp = 8, .pp = 1 };
    const double weights = 13 * 256 + 256 * 128 + 138 * 64 + 64, repeated = weights + 256 + 128 + 64 + 1;
    const double each = (99 + 2 + 1) * 128 + 2 * 10 * 128 + 2 * weights, group = 2 * 1024, sums = group * 3 * 128 * 2;
    const double forward = (group * 100 * 256 + sums) / 2.9e12, ways = 1024 * 106.0 * 8;
    const trn_plan p = evaluated(&args, degrees);
    assert_true(p.legal && p.microbatch == 1024 && p.microbatches == 1);
    near(p.flops, 16 * 1024 * each, 1e-12, "flops of a forward pass");
    near(p.memory.weights, 2 * (6000 * 128 + repeated), 1e-12, "rows and MLPs");
    near(p.time.lookups_s, forward, 1e-9, "lookups");
    const unsigned ep = 1u << TRN_AXIS_EP, dp = 1u << TRN_AXIS_DP;
    const double across = exchange(&args, &p, ep, TRN_ALL_TO_ALL, sums);
    const double asked = exchange(&args, &p, ep, TRN_ALL_TO_ALL, ways);
    near(p.time.ep_s, across + asked, 1e-9, "sums and indices");
    args.job = TRN_JOB_TRAIN;
    const trn_plan step = evaluated(&args, degrees);
    near(step.flops, 16 * 1024 * (3 * each - 2 * 13 * 256), 1e-12, "flops of a step");
    near(step.memory.optimizer, 4 * 6000 + 12 * repeated, 1e-12, "a number a row, and Adam");
    near(step.memory.gradients, 4 * repeated, 1e-12, "gradients of the MLPs");
    near(step.time.lookups_s, forward + 8 * (group * 100 * 2 * (256 + 64) + sums) / 2.9e12, 1e-9, "rows both ways");
    near(step.time.ep_s, 2 * across + asked, 1e-9, "sums, indices, gradients");
    near(step.time.dp_s,
         exchange(&args, &p, dp, TRN_ALL_GATHER, 8 * (sums + group * 100 * 8)) +
             exchange(&args, &p, dp | ep, TRN_ALL_REDUCE, 4 * repeated),
         1e-9, "gradients");
    args.microbatch = 256; /* four times a fourth */
    near(evaluated(&args, degrees).time.lookups_s, step.time.lookups_s, 1e-9, "lookups of microbatches");
}

/* Where lookups alone would put two tables on one chip that has no room for both, rows decide. */
static void recommender_by_rows(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_model m = ranker;
    const int64_t rows[] = { 10, 250000000, 250000000, 10 }; /* 59.6 GiB each; HBM has 96 */
    const int64_t lookups[] = { 10, 1, 1, 1 };
    memcpy(m.table_rows, rows, sizeof rows);
    memcpy(m.table_lookups, lookups, sizeof lookups);
    trn_plan_args args = question(&m, &net, TRN_JOB_PREFILL, 16 * 1024, 1);
    const trn_plan two = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 2, .dp = 8, .pp = 1 });
    assert_true(two.legal);
    near(two.memory.weights, 2 * 250000010.0 * 128, 1e-3, "one of them");
    const trn_plan one = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 });
    assert_true(!one.legal && one.reason == TRN_PLAN_HBM);
    assert_non_null(strstr(one.why, "of them weights"));
    check_all(&(trn_plan_args){ .model = &ranker, .net = &net, .batch = 4096, .sequence = 1, .error = &failure }, 2);
}

static void recommender_refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan_args good = question(&ranker, &net, TRN_JOB_TRAIN, 4096, 1);
    trn_plan_args decode = good, longer = good, cores = good, zero = good;
    decode.job = TRN_JOB_DECODE;
    longer.sequence = 2;
    cores.lnc = 2;
    zero.zero = TRN_ZERO_WEIGHTS;
    const struct {
        const trn_plan_args *args;
        const char *says;
    } row[] = {
        { &decode, "a recommender keeps no cache" },
        { &longer, "sequence is 2, but the model has positions for 1 tokens" },
        { &cores, "plans of a recommender are counted in chips" },
        { &zero, "plans of a recommender neither compute again" },
    };
    trn_plan p = { .tp = 1, .cp = 1, .ep = 16, .dp = 1, .pp = 1 };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_not_equal(trn_plan_evaluate(row[i].args, &p), TRN_OK);
        if (!strstr(failure.text, row[i].says)) fail_msg("it says '%s', not '%s'", failure.text, row[i].says);
    }
    assert_string_equal(evaluated(&good, p).why, "4 tables, which are not cut, do not fill ep 16");
    p = (trn_plan){ .tp = 4, .cp = 1, .ep = 4, .dp = 1, .pp = 1 };
    assert_string_equal(evaluated(&good, p).why, "a recommender is spread by ep and dp alone, not by tp 4");
    trn_trace_event event[4];
    trn_trace trace = { .event = event, .capacity = 4 };
    p = evaluated(&good, (trn_plan){ .tp = 1, .cp = 1, .ep = 4, .dp = 4, .pp = 1 });
    assert_int_equal(trn_plan_trace_layer(&good, &p, &trace), TRN_EUNSUPPORTED);
}

static void searches(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_model *const model[] = { &mamba, &next };
    for (int m = 0; m < 2; m++)
        for (int job = 0; job < TRN_JOB_COUNT; job++) {
            trn_plan_args args = question(model[m], &net, (trn_job)job, 64, 4096);
            args.zero = TRN_ZERO_ANY;
            check_all(&args, 3);
        }
}

/* Each kind of matrix in its own bits, by hand: what is kept, and what no plan reads faster. */
static void formats_by_kind(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    trn_plan_args args = question(&sparse, &net, TRN_JOB_DECODE, 16, 4096);
    trn_model_size size;
    assert_int_equal(trn_model_size_of(&sparse, &size, NULL), TRN_OK);
    const trn_plan plain = evaluated(&args, degrees);
    near(plain.memory.weights, 2 * size.total, 1e-12, "BF16");
    args.formats.attention = TRN_F8_E4M3FN;
    args.formats.experts = TRN_F4_E2M1;
    args.formats.experts_bits = 4.25;
    args.formats.head = TRN_F32;
    args.formats.kv_bits = 8.25;
    args.formats.kv = TRN_F8_E4M3FN;
    const trn_plan p = evaluated(&args, degrees);
    const double others = size.total - size.attention - size.experts - size.embeddings;
    near(p.memory.weights, size.attention + 4.25 / 8 * size.experts + 4 * size.embeddings + 2 * others, 1e-12, "kinds");
    near(p.memory.kv, 4 * 4096.0 * (64 + 16 + 32) * 8.25 / 8, 1e-12, "the cache");
    args.formats.head = TRN_BF16;
    const trn_plan small = evaluated(&args, degrees);
    assert_true(small.time.reads_s + small.time.products_s < plain.time.reads_s + plain.time.products_s);
    const double awake = 4.0 * 4 * 3 * 512 * 96, looked = 512 * (64 + 16) + 4096 * 32;
    const double bytes = size.attention + 4.25 / 8 * awake + 4 * 1024 * 512 + 2 * others + 16 * 4 * looked * 8.25 / 8;
    near(p.bound_s, bytes / (16 * 2.9e12), 1e-9, "bound");
    /* Scales alone: the same format, more bytes. */
    trn_plan_args scaled = question(&sparse, &net, TRN_JOB_DECODE, 16, 4096);
    scaled.formats.weights_bits = 17;
    const trn_plan more = evaluated(&scaled, degrees);
    near(more.memory.weights, 17.0 / 8 * size.total, 1e-12, "scales");
    assert_true(more.time_s > plain.time_s && more.time_s < plain.time_s * 17 / 16);
    scaled.job = TRN_JOB_TRAIN;
    trn_plan none = degrees;
    assert_int_equal(trn_plan_evaluate(&scaled, &none), TRN_EUNSUPPORTED);
    scaled.job = TRN_JOB_DECODE;
    scaled.formats.weights_bits = 300;
    assert_int_equal(trn_plan_evaluate(&scaled, &none), TRN_EINVAL);
    assert_non_null(strstr(failure.text, "formats.weights_bits is 300; an element has 0 to 256"));
}

/* 96 columns by 16 ranks, or whole experts on them: as many bytes; 64 ranks cut 96 columns only so. */
static void experts_over_ranks(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 8, .cp = 1, .ep = 1, .dp = 2, .pp = 1 };
    trn_plan_args args = question(&sparse, &net, TRN_JOB_PREFILL, 16, 1024);
    const trn_plan cut = evaluated(&args, degrees);
    args.experts_over = 8;
    const trn_plan apart = evaluated(&args, degrees);
    assert_true(cut.legal && apart.legal);
    near(apart.memory.weights, cut.memory.weights, 1e-12, "as many experts");
    near(apart.time.tp_s, cut.time.tp_s, 1e-12, "the same sums");
    assert_true(apart.time.ep_s <= 0);
    trn_model wide = sparse; /* whole experts, whose width nobody cuts: 8192 tokens for 4 of them, on 8 ranks */
    wide.moe_intermediate = 960;
    args.model = &wide;
    const trn_plan more = evaluated(&args, degrees);
    const double work = more.time.products_s + more.time.reads_s - apart.time.products_s - apart.time.reads_s;
    assert_true(work >= 4 * 2.0 * 8192 * 4 * 3 * 512 * (960 - 96) / 8 / 667e12);
    args.model = &sparse;
    args.experts_over = 3;
    trn_plan p = evaluated(&args, degrees);
    assert_string_equal(p.why, "16 experts over 3 of the ranks of tp 8: one of both does not divide");
    trn_model narrow = sparse;
    narrow.moe_intermediate = 92; /* which 8 does not divide, but 4 does */
    args.model = &narrow;
    args.experts_over = 0;
    assert_string_equal(evaluated(&args, degrees).why, "moe_intermediate 92 does not divide by tp 8");
    args.experts_over = 2;
    assert_true(evaluated(&args, degrees).legal);
    args.model = &looker;
    args.job = TRN_JOB_DECODE;
    p = degrees;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_EINVAL);
    check_all(&(trn_plan_args){ .model = &sparse,
                                .net = &net,
                                .job = TRN_JOB_DECODE,
                                .batch = 16,
                                .sequence = 2048,
                                .experts_over = 2,
                                .degree = { 2, 0, 1, 0, 0 },
                                .error = &failure },
              2);
}

/* Beyond what is chosen, a longer cache costs the indexer alone. */
static void chosen_positions(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    trn_model all = sparse;
    all.index_heads = all.index_dim = all.index_most = 0;
    trn_plan_args args = question(&sparse, &net, TRN_JOB_DECODE, 1024, 65536),
                  full = question(&all, &net, TRN_JOB_DECODE, 1024, 65536);
    const trn_plan p = evaluated(&args, degrees), other = evaluated(&full, degrees);
    near(p.memory.kv, 64 * 4 * 65536.0 * (64 + 16 + 32) * 2, 1e-12, "keys of the indexer, too");
    assert_true(p.time.attention_s < other.time.attention_s);
    assert_true(p.time.attention_s > 64 * 4 * 65536.0 * 32 * 2 / 2.9e12); /* its keys are all read */
    check_all(&(trn_plan_args){ .model = &sparse, .net = &net, .batch = 64, .sequence = 1024, .error = &failure }, 20);
}

/* What the encoder left is kept once for each sequence, and read with every token. */
static void looks_at_encoder(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    trn_model alone = looker;
    alone.cross = 0;
    trn_plan_args args = question(&looker, &net, TRN_JOB_DECODE, 1600, 448),
                  without = question(&alone, &net, TRN_JOB_DECODE, 1600, 448);
    const trn_plan p = evaluated(&args, degrees), other = evaluated(&without, degrees);
    near(p.memory.kv, 100 * 2 * (448 + 1500.0) * 2 * 256 * 2, 1e-12, "both caches");
    assert_true(p.time.attention_s - other.time.attention_s >= 100 * 2 * 1500.0 * 2 * 256 * 2 / 2.9e12 * (1 - 1e-9));
    args.job = without.job = TRN_JOB_PREFILL; /* keys and values of the encoder's output are made here */
    const double made = evaluated(&args, degrees).time.products_s + evaluated(&args, degrees).time.reads_s;
    assert_true(made > evaluated(&without, degrees).time.products_s + evaluated(&without, degrees).time.reads_s);
    check_all(&(trn_plan_args){ .model = &looker, .net = &net, .batch = 64, .sequence = 448, .error = &failure }, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(formats_by_kind),
        cmocka_unit_test(experts_over_ranks),
        cmocka_unit_test(chosen_positions),
        cmocka_unit_test(looks_at_encoder),
        cmocka_unit_test(linear_in_length),
        cmocka_unit_test(searches),
        cmocka_unit_test(encoder_of_text),
        cmocka_unit_test(encoder_of_images),
        cmocka_unit_test(encoder_refusals),
        cmocka_unit_test(encoder_searches),
        cmocka_unit_test(recommender),
        cmocka_unit_test(recommender_by_rows),
        cmocka_unit_test(recommender_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
