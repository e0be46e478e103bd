/* jobs.h - training runs and served models that the vendor's pages print, with the degrees they were run with.
 * SPDX-License-Identifier: MIT
 *
 * tp is counted in logical cores, as the pages count them (LNC = 1 on Trainium1, 2 on Trainium2); dp in replicas. A
 * token's time is TPOT, p50; the context is taken as prompt and answer together. Weights stored as int8 are bytes here.
 * Where heads do not divide by tp, more are added, as the vendor's stack does. The constants of expected times were
 * chosen with the rows up to `PUBLISHED_FITTED`; nothing was fitted to those after it. Of first tokens all rows were
 * looked at: first_s, and PUB_SCORE_PASSES of those whose attention was not fused (`unfused`: Llama-2 and Mistral of
 * SDK 2.18, for the flash attention kernel came with 2.19; Llama-3 is younger than 2.18).
 */
#ifndef PUBLISHED_JOBS_H
#define PUBLISHED_JOBS_H

#include "trnmath/trn_plan.h"

typedef struct published_job {
    const trn_model *model;
    trn_system system;
    int instances;
    trn_job job;
    int64_t batch, prompt, answer; /* training: sequences of `prompt` tokens in a step */
    int tp, dp, pp;                /* tp: logical cores */
    trn_format weights;            /* unset: BF16 */
    double published;              /* sequences a second; milliseconds a token, or a pass of the batch */
    double first_ms;               /* to the first token; 0: not printed */
    const char *source;
    int chips;                     /* 0: all of the instances */
    int64_t microbatch;            /* 0: training: 1; else any */
    int64_t turns; /* passes of one prompt each, one after the other, to that first token; 0: one pass of the batch */
    bool unfused;  /* scores of a prompt pass HBM */
} published_job;

static const trn_model published_llama3_8b = { .name = "Llama-3-8B", .layers = 32, .hidden = 4096, .heads = 32,
                                               .kv_heads = 8, .intermediate = 14336, .vocab = 128256 };
static const trn_model published_llama3_70b = { .name = "Llama-3-70B", .layers = 80, .hidden = 8192, .heads = 64,
                                                .kv_heads = 8, .intermediate = 28672, .vocab = 128256 };
static const trn_model published_llama3_405b = { .name = "Llama-3.1-405B", .layers = 126, .hidden = 16384,
                                                 .heads = 128, .kv_heads = 8, .intermediate = 53248, .vocab = 128256 };
static const trn_model published_llama2_7b = { .name = "Llama-2-7B", .layers = 32, .hidden = 4096, .heads = 32,
                                               .kv_heads = 32, .intermediate = 11008, .vocab = 32000 };
static const trn_model published_llama2_13b = { .name = "Llama-2-13B", .layers = 40, .hidden = 5120, .heads = 40,
                                                .kv_heads = 40, .intermediate = 13824, .vocab = 32000 };
static const trn_model published_llama2_70b = { .name = "Llama-2-70B", .layers = 80, .hidden = 8192, .heads = 64,
                                                .kv_heads = 8, .intermediate = 28672, .vocab = 32000 };
static const trn_model published_mistral_7b = { .name = "Mistral-7B-v0.2", .layers = 32, .hidden = 4096, .heads = 32,
                                                .kv_heads = 8, .intermediate = 14336, .vocab = 32000 };
static const trn_model published_qwen3_32b = { .name = "Qwen3-32B", .layers = 64, .hidden = 5120, .heads = 64,
                                               .kv_heads = 8, .head_dim = 128, .intermediate = 25600,
                                               .vocab = 151936 };
static const trn_model published_gpt3_23b = { .name = "GPT3-23B", .layers = 28, .hidden = 8192, .heads = 64,
                                              .kv_heads = 64, .intermediate = 32768, .vocab = 50257,
                                              .plain_mlp = true };
static const trn_model published_gpt3_46b = { .name = "GPT3-46B", .layers = 56, .hidden = 8192, .heads = 64,
                                              .kv_heads = 64, .intermediate = 32768, .vocab = 50257,
                                              .plain_mlp = true };
static const trn_model published_gpt3_175b = { .name = "GPT3-175B", .layers = 96, .hidden = 12288, .heads = 96,
                                               .kv_heads = 96, .intermediate = 49152, .vocab = 50257,
                                               .plain_mlp = true };
static const trn_model published_deepseek_v3 = { .name = "DeepSeek-V3", .layers = 61, .hidden = 7168, .heads = 128,
                                                 .head_dim = 128, .rope_dim = 64, .v_dim = 128, .kv_rank = 512,
                                                 .q_rank = 1536, .intermediate = 18432, .dense_layers = 3,
                                                 .experts = 256, .experts_per_token = 8, .moe_intermediate = 2048,
                                                 .shared_intermediate = 2048, .vocab = 129280, .router_bias = true };
static const trn_model published_gpt_oss_120b = { .name = "gpt-oss-120b", .layers = 36, .hidden = 2880, .heads = 64,
                                                  .kv_heads = 8, .head_dim = 64, .experts = 128,
                                                  .experts_per_token = 4, .moe_intermediate = 2880, .vocab = 201088,
                                                  .window = 128, .window_layers = 18, .sinks = true };
static const trn_model published_qwen3_30b = { .name = "Qwen3-30B-A3B", .layers = 48, .hidden = 2048, .heads = 32,
                                               .kv_heads = 4, .head_dim = 128, .experts = 128, .experts_per_token = 8,
                                               .moe_intermediate = 768, .vocab = 151936, .qk_norm = true };
static const trn_model published_maverick = { .name = "Llama-4-Maverick", .layers = 48, .hidden = 5120, .heads = 40,
                                              .kv_heads = 8, .head_dim = 128, .intermediate = 16384,
                                              .dense_layers = 24, .experts = 128, .experts_per_token = 1,
                                              .moe_intermediate = 8192, .shared_intermediate = 8192,
                                              .vocab = 202048 };
static const trn_model published_scout = { .name = "Llama-4-Scout", .layers = 48, .hidden = 5120, .heads = 40,
                                           .kv_heads = 8, .head_dim = 128, .experts = 16, .experts_per_token = 1,
                                           .moe_intermediate = 8192, .shared_intermediate = 8192, .vocab = 202048 };
#define PUB_BERT(title, deep, wide, count)                                                                           \
    { .name = title, .layers = deep, .hidden = wide, .heads = count, .intermediate = 4 * (wide), .vocab = 30522,     \
      .positions = 512, .token_types = 2, .longest = 512, .tied_embeddings = true, .plain_mlp = true,                \
      .qkv_bias = true, .o_bias = true, .mlp_bias = true, .norm_bias = true, .bidirectional = true, .pooler = true }
static const trn_model published_bert_base = PUB_BERT("bert-base", 12, 768, 12);
static const trn_model published_bert_large = PUB_BERT("bert-large", 24, 1024, 16);
static const trn_model published_vit_base = { .name = "vit-base", .layers = 12, .hidden = 768, .heads = 12,
                                              .intermediate = 3072, .positions = 197, .longest = 197,
                                              .patch_inputs = 768, .classes = 1000, .plain_mlp = true,
                                              .qkv_bias = true, .o_bias = true, .mlp_bias = true, .norm_bias = true,
                                              .bidirectional = true };

#define PUB_NXDI "NxD Inference tutorial or contrib page"
#define PUB_TRAINING "training page, data parallel"
#define PUB_INFERENCE "inference page, one model a core"

#define PUB_JOB_TRAIN(model, nodes, seq, tp, dp, pp, rate, release) \
    { &published_##model, TRN_TRN1_32XLARGE, nodes, TRN_JOB_TRAIN, 1024, seq, 0, tp, dp, pp, TRN_FORMAT_UNSET, rate,   \
      0, "training page, SDK " release, 0, 0, 0, false }
#define PUB_JOB_INF(model, weights, batch, prompt, answer, tpot, ttft, unfused, sdk) \
    { &published_##model, TRN_TRN1_32XLARGE, 1, TRN_JOB_DECODE, batch, prompt, answer, 32, 1, 1, weights, tpot, ttft, \
      "inference page, " sdk, 0, 0, 0, unfused }
#define PUB_JOB_TRN1(model, weights, batch, prompt, answer, tpot, ttft) \
    PUB_JOB_INF(model, weights, batch, prompt, answer, tpot, ttft, true, "SDK 2.18")
#define PUB_JOB_LATER(model, weights, batch, prompt, answer, tpot, ttft) \
    PUB_JOB_INF(model, weights, batch, prompt, answer, tpot, ttft, false, "after SDK 2.18")
#define PUB_JOB_TRN2(model, prompt, answer, tpot, ttft, source) \
    { &published_##model, TRN_TRN2_48XLARGE, 1, TRN_JOB_DECODE, 1, prompt, answer, 64, 1, 1, TRN_FORMAT_UNSET, tpot, \
      ttft, source, 0, 0, 1, false }
#define PUB_JOB_PART(model, system, chips, batch, prompt, answer, tp, tpot, ttft, turns, source) \
    { &published_##model, TRN_##system, 1, TRN_JOB_DECODE, batch, prompt, answer, tp, 1, 1, TRN_FORMAT_UNSET, tpot, \
      ttft, source, chips, 0, turns, false }
#define PUB_JOB_ENCODER(model, system, nodes, job, batch, tokens, dp, micro, rate, source) \
    { &published_##model, TRN_##system, nodes, TRN_JOB_##job, batch, tokens, 0, 1, dp, 1, TRN_FORMAT_UNSET, rate, 0, \
      source, 0, micro, 0, false }

static const published_job published_jobs[] = {
    PUB_JOB_TRAIN(llama3_8b, 32, 8192, 32, 32, 1, 47.95, "2.24"),
    PUB_JOB_TRAIN(llama3_70b, 32, 8192, 32, 4, 8, 7.94, "2.24"),
    PUB_JOB_TRAIN(llama2_7b, 16, 4096, 8, 64, 1, 95.14, "2.21"),
    PUB_JOB_TRAIN(llama2_13b, 32, 4096, 8, 16, 8, 80.33, "2.21"),
    PUB_JOB_TRAIN(llama2_13b, 32, 4096, 8, 32, 4, 87.44, "2.18"),
    PUB_JOB_TRAIN(llama2_70b, 32, 4096, 32, 4, 8, 14.44, "2.21"),
    PUB_JOB_TRAIN(llama2_70b, 32, 4096, 32, 8, 4, 17.86, "2.18"),
    PUB_JOB_TRAIN(gpt3_23b, 32, 2048, 8, 32, 4, 107.18, "2.18"),
    PUB_JOB_TRAIN(gpt3_46b, 32, 2048, 8, 16, 8, 48.24, "2.18"),
    PUB_JOB_TRAIN(gpt3_175b, 32, 2048, 32, 4, 8, 14.60, "2.18"),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 1, 128, 8064, 7.03, 17.09),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 1, 4096, 4096, 7.04, 153.02),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 1, 128, 3968, 5.86, 14.75),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 8, 128, 8064, 9.95, 55.16),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 8, 4096, 4096, 10.04, 1265.95),
    PUB_JOB_LATER(llama3_8b, TRN_I8, 8, 128, 3968, 7.65, 49.05),
    PUB_JOB_LATER(llama3_70b, TRN_BF16, 1, 2048, 2048, 26.2, 547),
    PUB_JOB_LATER(llama3_70b, TRN_BF16, 1, 128, 1024, 24.48, 53.2),
    PUB_JOB_LATER(llama3_70b, TRN_BF16, 4, 2048, 2048, 32.33, 1661.12),
    PUB_JOB_LATER(llama3_70b, TRN_BF16, 4, 128, 1024, 28.38, 129.86),
    PUB_JOB_TRN1(llama2_7b, TRN_BF16, 1, 128, 8064, 6.70, 13.32),
    PUB_JOB_TRN1(llama2_7b, TRN_BF16, 8, 128, 8064, 10.10, 66.4),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 128, 128, 25.18, 53.91),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 1024, 1024, 26.04, 232.48),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 2048, 2048, 26.85, 690.96),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 128, 128, 26.72, 156.85),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 1024, 1024, 28.55, 1478.64),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 2048, 2048, 31.79, 2722.03),
    PUB_JOB_TRN1(mistral_7b, TRN_BF16, 1, 8192, 8192, 9.89, 1322.87),
    PUB_JOB_TRN1(mistral_7b, TRN_BF16, 8, 8192, 8192, 15.44, 8614.85),
    PUB_JOB_TRN2(llama3_70b, 10000, 1500, 19.6, 814.2, "NxD Inference tutorial, trn2-llama3.3-70b"),
    PUB_JOB_TRN2(llama3_405b, 10000, 1500, 37.9, 2442, "NxD Inference tutorial, trn2-llama3.1-405b, no speculation"),
    PUB_JOB_TRN2(qwen3_32b, 128, 512, 9.75, 48.3,
                 "NxD Inference tutorial, sd-inference, 102.3 tokens/s, no speculation"),
    /* from here on nothing was fitted */
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 1, 4096, 4096, 9.84, 864.14),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 1, 8192, 8192, 13.41, 2367.93),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 8, 4096, 4096, 19.86, 6668.7),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 4, 8192, 8192, 21.09, 4628.45),
    PUB_JOB_PART(deepseek_v3, TRN2_48XLARGE, 16, 1, 256, 256, 64, 20.5, 1667, 1, PUB_NXDI),
    PUB_JOB_PART(gpt_oss_120b, TRN2_48XLARGE, 4, 1, 512, 128, 16, 7.00, 252.3, 1, PUB_NXDI),
    PUB_JOB_PART(llama3_8b, TRN2_48XLARGE, 2, 2, 512, 128, 8, 10.52, 51.07, 2, PUB_NXDI),
    PUB_JOB_PART(llama3_8b, TRN2_48XLARGE, 1, 32, 1500, 250, 4, 22.14, 197.2, 1, PUB_NXDI ", trn2.3xlarge"),
    PUB_JOB_PART(qwen3_32b, TRN2_48XLARGE, 1, 2, 1500, 250, 4, 32.08, 770.9, 2, PUB_NXDI ", trn2.3xlarge"),
    PUB_JOB_PART(qwen3_30b, TRN1_32XLARGE, 16, 8, 1500, 250, 32, 23.91, 2404.5, 8, PUB_NXDI),
    PUB_JOB_PART(maverick, TRN2_48XLARGE, 16, 8, 1500, 250, 64, 16.94, 1713.8, 8, PUB_NXDI),
    PUB_JOB_PART(scout, TRN1_32XLARGE, 16, 8, 1500, 250, 32, 28.36, 1137.4, 8, PUB_NXDI),
    PUB_JOB_INF(llama2_70b, TRN_BF16, 4, 1024, 2048, 31.67, 1478.8, true, "SDK 2.21"),
    PUB_JOB_ENCODER(bert_large, TRN1_32XLARGE, 1, TRAIN, 16384, 128, 32, 16, 3826.6, PUB_TRAINING),
    PUB_JOB_ENCODER(bert_large, TRN1_32XLARGE, 16, TRAIN, 1048576, 128, 512, 16, 57407.9, PUB_TRAINING),
    PUB_JOB_ENCODER(bert_large, TRN1_32XLARGE, 16, TRAIN, 524288, 512, 512, 2, 7832.4, PUB_TRAINING),
    PUB_JOB_ENCODER(vit_base, TRN1_32XLARGE, 1, TRAIN, 2048, 197, 32, 64, 6587.3, PUB_TRAINING),
    PUB_JOB_ENCODER(bert_base, TRN1_2XLARGE, 1, PREFILL, 32, 128, 2, 16, 9.345, PUB_INFERENCE),
    PUB_JOB_ENCODER(bert_base, TRN1_2XLARGE, 1, PREFILL, 2, 128, 2, 1, 0.943, PUB_INFERENCE),
    PUB_JOB_ENCODER(bert_large, TRN1_2XLARGE, 1, PREFILL, 2, 128, 2, 1, 2.669, PUB_INFERENCE),
    PUB_JOB_ENCODER(vit_base, TRN1_2XLARGE, 1, PREFILL, 2, 197, 2, 1, 1.322, PUB_INFERENCE ", inf2.xlarge"),
};
#define PUB_SCORE_PASSES 32 /* for 15 rows together, by trials of 25 to 40: about where their furthest is least */
enum { PUBLISHED_JOBS = sizeof published_jobs / sizeof published_jobs[0], PUBLISHED_FITTED = 33 };

/* One instance, or so many joined by EFA. */
static inline trn_topology published_job_net(const published_job *row)
{
    trn_topology net = trn_topology_of(row->system);
    for (int l = 0, left = row->chips; left && l < net.levels; l++) { /* a part: whole inner levels first */
        if (left < net.level[l].size) net.level[l].size = left;
        left /= net.level[l].size;
        net.chips = row->chips;
    }
    if (row->instances < 2) return net;
    net = trn_topology_of(TRN_TRN1_ULTRACLUSTER);
    net.level[net.levels - 1].size = row->instances;
    net.chips = 16 * row->instances;
    return net;
}

/* The question of a row; net lives as long as it does. */
static inline trn_plan_args published_job_ask(const published_job *row, const trn_topology *net)
{
    trn_plan_args a;
    memset(&a, 0, sizeof a);
    a.model = row->model;
    a.net = net;
    a.job = row->job;
    a.batch = row->batch;
    a.sequence = row->prompt + row->answer;
    a.prompt = row->prompt;
    a.formats.weights = row->weights;
    a.microbatch = row->microbatch ? row->microbatch : row->job == TRN_JOB_TRAIN ? 1 : 0;
    a.lnc = trn_system_spec_of(row->system)->server->chip->core->generation == TRN_TRAINIUM1 ? 1 : 2;
    a.pad_heads = true;
    a.prompts = row->turns ? 1 : row->job == TRN_JOB_DECODE ? row->batch : 0;
    a.assumptions.score_passes = row->unfused ? PUB_SCORE_PASSES : 0;
    return a;
}

/* Its degrees, of chips. */
static inline trn_plan published_job_plan(const published_job *row)
{
    trn_plan p;
    memset(&p, 0, sizeof p);
    p.tp_cores = row->tp;
    p.cp = p.ep = 1;
    p.dp = row->dp;
    p.pp = row->pp;
    return p;
}

/* Seconds of a step or a token. */
static inline double published_job_s(const published_job *row)
{
    return row->job == TRN_JOB_TRAIN ? (double)row->batch / row->published : 1e-3 * row->published;
}

/* Expected seconds to the printed first token, of an evaluated plan. */
static inline double published_job_first_s(const published_job *row, const trn_plan *p)
{
    return p->expected_ttft_s * (row->turns ? (double)row->turns : 1);
}

#endif /* PUBLISHED_JOBS_H */
