/* engine.c - what a prompt and a token take at one plan: caches that hit, drafts that guess, chips for prompts alone.
 * SPDX-License-Identifier: MIT
 *
 * Assumed, since nobody publishes it for Trainium:
 *   a prompt that begins in the cache takes what all of it takes, less what that beginning takes alone;
 *   K guesses are made one after the other by the draft, on the same chips with the same degrees, and checked in one
 *   pass of K + 1 tokens a sequence, which reads the cache once; the first wrong one of them ends the row, so that a
 *   pass brings (1 - a^(K+1)) / (1 - a) tokens (Leviathan et al. 2023);
 *   keys and values go from the chips for prompts by as many links as the smaller of both replicas has chips, at the
 *   rate of the level that joins both, or of EFA where NeuronLink does not.
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one plan at other sizes ---- */

static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* The first plan's degrees with this model, batch and sequence. */
static bool evaluate(sp_job *job, const trn_model *model, int64_t batch, int64_t sequence, int64_t prompt,
                     trn_plan *out, char *why)
{
    const trn_plan *first = &job->plan[0];
    trn_plan_args args = job->args;
    memset(out, 0, sizeof *out);
    out->tp = first->tp;
    out->tp_cores = first->tp_cores;
    out->cp = first->cp;
    out->ep = model->experts ? first->ep : 1;
    out->dp = first->dp * (model->experts ? 1 : first->ep);
    out->pp = first->pp;
    out->order = first->order;
    args.model = model;
    args.batch = batch;
    args.sequence = round_up(sequence, first->cp);
    args.prompt = prompt;
    args.pad_heads = args.pad_heads || model != &job->model;
    if (!model->experts) args.experts_over = 0;
    args.microbatch = 0;
    if (trn_plan_evaluate(&args, out) != TRN_OK) return app_refuse(why, job->error.text);
    return out->legal || app_fail(why, "%s: %s", model->name, out->why);
}

/* ---- tokens ---- */

static bool read_draft(sp_job *job, hf_config *draft, char *why)
{
    const hf_ask ask = { .decodes = true };
    if (!hf_config_load(job->options.serving.draft, &ask, draft, why)) return false;
    if (draft->model.vocab == job->model.vocab) return true;
    return app_fail(why, "--draft: %s has %lld tokens in its vocabulary, %s %lld", draft->model.name,
                    (long long)draft->model.vocab, job->model.name, (long long)job->model.vocab);
}

static bool add_step(sp_job *job, const hf_config *draft, int64_t batch, sp_engine *e, char *why)
{
    const sp_serving *s = &job->options.serving;
    const int64_t all = batch * e->engines, context = job->args.prompt + s->answer / 2;
    const int rows = s->draft ? s->draft_tokens + 1 : 1;
    trn_plan p, guess;
    if (e->points == SP_BATCHES) return app_refuse(why, "--batch: more sequences than an engine is asked with");
    if (!evaluate(job, &job->model, all * rows, context / rows > 0 ? context / rows : 1, 0, &p, why)) return false;
    e->batch[e->points] = batch;
    e->step_s[e->points] = p.expected_s;
    if (s->draft) {
        if (!evaluate(job, &draft->model, all, context, 0, &guess, why)) return false;
        const double more = guess.memory.weights + guess.memory.kv,
                     short_by = p.memory.total + more - p.memory.capacity;
        if (short_by > 0) return app_fail(why, "--draft: HBM short by %s with both models", sp_bytes(short_by).text);
        e->step_s[e->points] += s->draft_tokens * guess.expected_s;
    }
    e->points++;
    return true;
}

static bool steps(sp_job *job, sp_engine *e, char *why)
{
    static hf_config draft;
    const sp_serving *s = &job->options.serving;
    if (s->draft && !read_draft(job, &draft, why)) return false;
    const double a = s->acceptance;
    e->tokens_a_step = !s->draft ? 1 : a < 1 ? (1 - pow(a, s->draft_tokens + 1)) / (1 - a) : s->draft_tokens + 1;
    for (int64_t batch = job->plan[0].ep; batch < e->slots; batch *= 2)
        if (!add_step(job, &draft, batch, e, why)) return false;
    return add_step(job, &draft, e->slots, e, why);
}

/* ---- prompts ---- */

static double less(double all, double head, double least) { return fmax(all - head, least); }

/* On the chips of the plan. */
static bool prompts(sp_job *job, sp_engine *e, char *why)
{
    const double hit = job->options.serving.prefix_hit * (double)job->args.prompt;
    const int64_t all = job->args.batch, prompt = job->args.prompt;
    trn_plan whole, head, least;
    if (!evaluate(job, &job->model, all, prompt, prompt, &whole, why) ||
        !evaluate(job, &job->model, all, prompt, hit >= 1 ? (int64_t)hit : 1, &head, why) ||
        !evaluate(job, &job->model, all, prompt, 1, &least, why))
        return false;
    e->prompt_tokens = (double)prompt - floor(hit);
    e->prompt_s =
        hit >= 1 ? less(whole.expected_ttft_s, head.expected_ttft_s, least.expected_ttft_s) : whole.expected_ttft_s;
    return true;
}

/* Bytes a second from a chip that prefills to one that decodes. */
static double link_rate(const sp_job *job, const trn_topology *whole, int chips)
{
    const trn_server_spec *server = job->own.system.server;
    const int joined = server->chips * job->own.system.servers_per_domain;
    double rate = 0;
    if (chips > joined || chips > whole->chips) return server->efa_bits_per_s / 8 / server->chips;
    for (int l = 0; l < whole->levels; l++)
        if (whole->level[l].bytes_per_s > 0) rate = whole->level[l].bytes_per_s * job->options.factor[SP_LINK_RATE];
    return rate > 0 ? rate : server->efa_bits_per_s / 8 / server->chips;
}

/* The plan for prompts alone that has the most of them in a second, and what their keys and values take on the way. */
static bool prompts_apart(sp_job *job, sp_engine *e, char *why)
{
    const sp_serving *s = &job->options.serving;
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    trn_topology whole = sp_whole_net(job), part;
    trn_plan_args args = job->args;
    trn_plan_list list;
    trn_plan p;
    if (!sp_part_of(&whole, s->prefill_chips, &part))
        return app_fail(why, "--prefill-chips %lld: no part of %s (%d chips)", (long long)s->prefill_chips, whole.name,
                        whole.chips);
    args.net = &part;
    args.job = TRN_JOB_PREFILL;
    args.batch = part.chips;
    args.sequence = job->args.prompt;
    for (int i = 0; i < TRN_AXIS_COUNT; i++) args.degree[i] = 0; /* those of the chips for tokens are not meant */
    if (trn_plan_search(&args, &p, 1, &list) != TRN_OK) return app_refuse(why, job->error.text);
    if (!list.legal) return app_fail(why, "--prefill-chips %lld: %s", (long long)s->prefill_chips, p.why);
    e->prefill_engines = p.dp * p.ep;
    e->prompt_tokens = (double)job->args.prompt * (1 - s->prefix_hit);
    e->prompt_s = p.expected_ttft_s * (1 - s->prefix_hit);
    e->chips += part.chips;
    const int from = part.chips / e->prefill_engines, to = job->net.chips / e->engines;
    const double links = fmax(1, from < to ? from : to);
    const double bytes = (job->size.kv_elements * (double)job->args.prompt + job->size.state_elements) * f.kv_bits / 8;
    e->transfer_s = bytes / (links * link_rate(job, &whole, job->net.chips + part.chips));
    return true;
}

bool sp_engine_of(sp_job *job, sp_engine *e, char *why)
{
    memset(e, 0, sizeof *e);
    e->engines = job->plan[0].dp;
    e->slots = job->args.batch / e->engines;
    e->chips = job->net.chips;
    if (!steps(job, e, why)) return false;
    return job->options.serving.prefill_chips ? prompts_apart(job, e, why) : prompts(job, e, why);
}
