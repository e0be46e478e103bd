/* jobs.h - training runs and served models that the vendor's pages print, with the degrees they were run with.
 * SPDX-License-Identifier: MIT
 *
 * Degrees are cores, as the pages count them (LNC = 1 on Trainium1, 2 on Trainium2). A token's time is TPOT, p50; the
 * context is taken as prompt and answer together. Weights stored as int8 are bytes here. `outside`: why a row is shown
 * and not held to.
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
    int tp, dp, pp;                /* of cores */
    trn_format weights;            /* unset: BF16 */
    double published;              /* sequences a second, or milliseconds a token */
    double first_ms;               /* to the first token of all prompts of the batch; 0: not printed */
    const char *source, *outside;
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

#define PUB_JOB_TRAIN(model, nodes, seq, tp, dp, pp, rate, release) \
    { &published_##model, TRN_TRN1_32XLARGE, nodes, TRN_JOB_TRAIN, 1024, seq, 0, tp, dp, pp, TRN_FORMAT_UNSET, rate,   \
      0, "training page, SDK " release, NULL }
#define PUB_JOB_TRN1(model, weights, batch, prompt, answer, tpot, ttft, outside) \
    { &published_##model, TRN_TRN1_32XLARGE, 1, TRN_JOB_DECODE, batch, prompt, answer, 32, 1, 1, weights, tpot, ttft, \
      "inference page, SDK 2.18", outside }
#define PUB_JOB_TRN2(model, prompt, answer, tpot, ttft, source) \
    { &published_##model, TRN_TRN2_48XLARGE, 1, TRN_JOB_DECODE, 1, prompt, answer, 64, 1, 1, TRN_FORMAT_UNSET, tpot, \
      ttft, source, NULL }
#define PUB_HEADS "40 heads do not divide by 32 cores: the vendor's stack pads them, plans here do not"

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
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 1, 128, 8064, 7.03, 17.09, NULL),
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 1, 4096, 4096, 7.04, 153.02, NULL),
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 1, 128, 3968, 5.86, 14.75, NULL),
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 8, 128, 8064, 9.95, 55.16, NULL),
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 8, 4096, 4096, 10.04, 1265.95, NULL),
    PUB_JOB_TRN1(llama3_8b, TRN_I8, 8, 128, 3968, 7.65, 49.05, NULL),
    PUB_JOB_TRN1(llama3_70b, TRN_BF16, 1, 2048, 2048, 26.2, 547, NULL),
    PUB_JOB_TRN1(llama3_70b, TRN_BF16, 1, 128, 1024, 24.48, 53.2, NULL),
    PUB_JOB_TRN1(llama3_70b, TRN_BF16, 4, 2048, 2048, 32.33, 1661.12, NULL),
    PUB_JOB_TRN1(llama3_70b, TRN_BF16, 4, 128, 1024, 28.38, 129.86, NULL),
    PUB_JOB_TRN1(llama2_7b, TRN_BF16, 1, 128, 8064, 6.70, 13.32, NULL),
    PUB_JOB_TRN1(llama2_7b, TRN_BF16, 8, 128, 8064, 10.10, 66.4, NULL),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 1, 4096, 4096, 9.84, 864.14, PUB_HEADS),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 1, 8192, 8192, 13.41, 2367.93, PUB_HEADS),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 8, 4096, 4096, 19.86, 6668.7, PUB_HEADS),
    PUB_JOB_TRN1(llama2_13b, TRN_BF16, 4, 8192, 8192, 21.09, 4628.45, PUB_HEADS),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 128, 128, 25.18, 53.91, NULL),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 1024, 1024, 26.04, 232.48, NULL),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 1, 2048, 2048, 26.85, 690.96, NULL),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 128, 128, 26.72, 156.85, NULL),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 1024, 1024, 28.55, 1478.64, NULL),
    PUB_JOB_TRN1(llama2_70b, TRN_BF16, 4, 2048, 2048, 31.79, 2722.03, NULL),
    PUB_JOB_TRN1(mistral_7b, TRN_BF16, 1, 8192, 8192, 9.89, 1322.87, NULL),
    PUB_JOB_TRN1(mistral_7b, TRN_BF16, 8, 8192, 8192, 15.44, 8614.85, NULL),
    PUB_JOB_TRN2(llama3_70b, 10000, 1500, 19.6, 814.2, "NxD Inference tutorial, trn2-llama3.3-70b"),
    PUB_JOB_TRN2(llama3_405b, 10000, 1500, 37.9, 2442, "NxD Inference tutorial, trn2-llama3.1-405b, no speculation"),
    PUB_JOB_TRN2(qwen3_32b, 128, 512, 9.75, 48.3,
                 "NxD Inference tutorial, sd-inference, 102.3 tokens/s, no speculation"),
};
enum { PUBLISHED_JOBS = sizeof published_jobs / sizeof published_jobs[0] };

/* One instance, or so many joined by EFA. */
static inline trn_topology published_job_net(const published_job *row)
{
    trn_topology net = trn_topology_of(row->system);
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
    a.microbatch = row->job == TRN_JOB_TRAIN ? 1 : 0;
    return a;
}

/* Its degrees, of chips. */
static inline trn_plan published_job_plan(const published_job *row)
{
    trn_plan p;
    memset(&p, 0, sizeof p);
    p.tp = row->tp / (row->system == TRN_TRN1_32XLARGE ? 2 : 4);
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

#endif /* PUBLISHED_JOBS_H */
