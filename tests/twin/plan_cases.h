/* plan_cases.h - the models that tests of plans ask about, and how they ask.
 * SPDX-License-Identifier: MIT
 */
#ifndef TWIN_PLAN_CASES_H
#define TWIN_PLAN_CASES_H

#include "trnmath/trn_plan.h"

static trn_error failure;

static const trn_model llama8 = { .name = "llama-3-8b",
                                  .layers = 32,
                                  .hidden = 4096,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .intermediate = 14336,
                                  .vocab = 128256 };
static const trn_model llama70 = { .name = "llama-3-70b",
                                   .layers = 80,
                                   .hidden = 8192,
                                   .heads = 64,
                                   .kv_heads = 8,
                                   .intermediate = 28672,
                                   .vocab = 128256 };
static const trn_model deepseek = { .name = "deepseek-v3",
                                    .layers = 61,
                                    .hidden = 7168,
                                    .heads = 128,
                                    .head_dim = 128,
                                    .rope_dim = 64,
                                    .v_dim = 128,
                                    .q_rank = 1536,
                                    .kv_rank = 512,
                                    .intermediate = 18432,
                                    .dense_layers = 3,
                                    .experts = 256,
                                    .experts_per_token = 8,
                                    .moe_intermediate = 2048,
                                    .shared_intermediate = 2048,
                                    .router_bias = true,
                                    .vocab = 129280 };
static const trn_model qwen = { .name = "qwen3-30b-a3b",
                                .layers = 48,
                                .hidden = 2048,
                                .heads = 32,
                                .kv_heads = 4,
                                .head_dim = 128,
                                .experts = 128,
                                .experts_per_token = 8,
                                .moe_intermediate = 768,
                                .vocab = 151936,
                                .qk_norm = true };

static trn_plan_args question(const trn_model *model, const trn_topology *net, trn_job job, int64_t batch,
                              int64_t sequence)
{
    return (trn_plan_args){
        .model = model, .net = net, .job = job, .batch = batch, .sequence = sequence, .error = &failure
    };
}

#endif /* TWIN_PLAN_CASES_H */
