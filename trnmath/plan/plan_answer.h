/* plan/plan_answer.h - what a variant's time comes to: its bound, the ideal and the expected step, rates, the range.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: plan_time.h and plan_tables.h, which add up the time of a step, once at the ideal rates and once at those
 *     that are expected.
 */
#ifndef TRNI_PLAN_PLAN_ANSWER_H
#define TRNI_PLAN_PLAN_ANSWER_H

#include "plan_tables.h"

TRNI_FN trn_plan_part trni_plan_bottleneck(const trn_plan_time *t)
{
    int most = 0;
    for (int i = 1; i < TRN_PART_COUNT; i++)
        if (trn_plan_part_s(t, (trn_plan_part)i) > trn_plan_part_s(t, (trn_plan_part)most)) most = i;
    return (trn_plan_part)most;
}

/* Flops of the model in a step, nothing counted twice. */
TRNI_FN double trni_plan_step_flops(const trni_plan_work *w)
{
    const double sequences = (double)w->a.batch, length = (double)w->a.sequence;
    if (w->a.job == TRN_JOB_DECODE)
        return trn_model_forward_flops(&w->m, sequences, trni_plan_kv_positions(w), sequences);
    const double tokens = sequences * length, context = trn_model_context(&w->m, length);
    const double fewer =
        fmin(context, (double)w->m.index_most) - trni_plan_seen(&w->m, length); /* at a sequence's head */
    const double score = (double)w->m.heads * (double)(w->m.head_dim + w->m.rope_dim + w->m.v_dim);
    const double unseen = w->m.index_most ? 2 * tokens * (double)w->m.layers * fewer * score : 0;
    const bool train = w->a.job == TRN_JOB_TRAIN;
    const double first = 2 * tokens * (double)w->m.dense_inputs * (double)w->m.dense_widths[0]; /* of no gradient */
    if (w->m.tables) return (train ? 3 : 1) * trn_model_forward_flops(&w->m, tokens, 0, 0) - (train ? first : 0);
    const double logits = trni_plan_logits(&w->m, train, tokens, sequences);
    const double patches =
        (tokens - (w->m.no_class_token ? 0 : sequences)) * (double)w->m.patch_inputs * (double)w->m.hidden;
    return (train ? 3 : 1) * (trn_model_forward_flops(&w->m, tokens, context, logits) - unseen) -
           (train ? 2 * patches : 0);
}

/* The arrays of a chip, in the faster of the two formats that meet in a product. */
TRNI_FN double trni_plan_array_flops(const trni_plan_work *w)
{
    const trn_core_spec *core = w->whole->core;
    double most = fmax(0, trn_core_peak_flops_per_s(core, w->a.formats.compute, false));
    for (int i = 0; i < TRNI_PLAN_KEPTS; i++)
        most = fmax(most, trn_core_peak_flops_per_s(core, w->kept[i].format, false)); /* NaN: none, and fmax says so */
    return w->whole->cores * most;
}

/* No plan is faster: the model's flops at the arrays' rate, or what must be read at HBM's: of the weights those that a
 * token meets, once, and in decoding every key and value that is looked at. */
TRNI_FN double trni_plan_bound_time(const trni_plan_work *w, double flops)
{
    const double chips = w->a.net->chips, peak = chips * trni_plan_array_flops(w);
    const double experts = (double)(w->m.layers - w->m.dense_layers) * (double)w->m.experts_per_token *
                           trni_plan_mlp_parameters(&w->m, w->m.moe_intermediate, 1);
    const double all = w->m.tables ? w->size.dense_mlp : w->size.active - w->size.embeddings;
    const double kept = w->a.job == TRN_JOB_DECODE
                            ? (double)w->a.batch * (double)(w->m.layers - w->m.linear_layers) *
                                  trni_plan_kv_read(&w->m, trni_plan_kv_positions(w) + (double)w->m.cross, 1)
                            : 0;
    const double bytes =
        (all - w->size.attention - experts) * trni_plan_kept_bytes(w, TRNI_PLAN_OF_WEIGHTS) +
        w->size.attention * trni_plan_kept_bytes(w, TRNI_PLAN_OF_ATTENTION) +
        experts * trni_plan_kept_bytes(w, TRNI_PLAN_OF_EXPERTS) +
        (w->m.tables ? 0 : trni_plan_head_parameters(&w->m, 1)) * trni_plan_kept_bytes(w, TRNI_PLAN_OF_HEAD) +
        kept * w->a.formats.kv_bits / 8;
    return fmax(peak > 0 ? flops / peak : 0, bytes / (chips * w->whole->hbm_bytes_per_s));
}

/* One evaluation: the time of a step, and to the first token. p->time is that of it. */
TRNI_FN double trni_plan_step_time(trni_plan_work *w, trn_plan *p, bool expected, double *first_s)
{
    trni_plan_run r;
    trni_plan_run_begin(w, p, expected, &r);
    if (w->m.tables) return trni_plan_tables_time(&r, first_s);
    const double time_s = w->a.job == TRN_JOB_TRAIN ? trni_plan_train_time(&r) : trni_plan_forward_time(&r);
    *first_s = w->a.job == TRN_JOB_TRAIN ? 0 : trni_plan_first_token(&r);
    return time_s;
}

/* Of which published times a range is: those of a step, a pass or a token (first: of a first token). */
TRNI_FN trn_evidence_class trni_plan_evidence(const trni_plan_work *w, bool first)
{
    const trn_model *m = &w->m;
    if (w->whole->core->generation == TRN_TRAINIUM3 || m->tables || trni_plan_linear_part(m) > 0)
        return TRN_EVIDENCE_OTHER;
    if (m->bidirectional) return TRN_EVIDENCE_ENCODER;
    if (first || w->a.job == TRN_JOB_PREFILL) return TRN_EVIDENCE_FIRST;
    if (w->a.job == TRN_JOB_DECODE) return m->experts ? TRN_EVIDENCE_MIXTURE : TRN_EVIDENCE_DENSE;
    return m->experts ? TRN_EVIDENCE_OTHER : TRN_EVIDENCE_TRAINING;
}

TRNI_FN void trni_plan_range(const trni_plan_work *w, trn_evidence_class of, double ideal_s, double expected_s,
                             double *low_s, double *high_s)
{
    const double usual = trn_plan_assumptions_default(NULL).spread;
    const double spread = trni_evidence_spread(of, w->a.assumptions.spread, usual);
    trni_evidence_range(spread, ideal_s, expected_s, low_s, high_s);
}

TRNI_FN void trni_plan_ranges(const trni_plan_work *w, trn_plan *p)
{
    p->evidence = trni_plan_evidence(w, false);
    p->ttft_evidence = trni_plan_evidence(w, true);
    trni_plan_range(w, p->evidence, p->time_s, p->expected_s, &p->expected_low_s, &p->expected_high_s);
    trni_plan_range(w, p->ttft_evidence, p->ttft_s, p->expected_ttft_s, &p->expected_ttft_low_s,
                    &p->expected_ttft_high_s);
}

/* Needs the degrees, order, microbatch, microbatches, sp, zero and recompute of a plan that is otherwise legal. */
TRNI_FN trn_status trni_plan_time_of(trni_plan_work *w, trn_plan *p)
{
    const double tokens = (double)w->a.batch * (w->a.job == TRN_JOB_DECODE ? 1 : (double)w->a.sequence);
    const double rate = trni_chip_flops_per_s(w->whole, w->a.formats.compute, false) * w->a.net->chips;
    p->expected_s = trni_plan_step_time(w, p, true, &p->expected_ttft_s);
    p->expected = p->time;
    p->bottleneck = trni_plan_bottleneck(&p->expected);
    p->time_s = trni_plan_step_time(w, p, false, &p->ttft_s);
    p->flops = trni_plan_step_flops(w);
    p->bound_s = trni_plan_bound_time(w, p->flops);
    p->expected_s = fmax(p->expected_s, p->time_s);
    trni_plan_ranges(w, p);
    p->tokens_per_s = tokens / p->time_s;
    p->expected_tokens_per_s = tokens / p->expected_s;
    p->mfu = rate > 0 ? p->flops / p->time_s / rate : TRNI_NAN;
    p->expected_mfu = rate > 0 ? p->flops / p->expected_s / rate : TRNI_NAN;
    return w->status;
}

#endif /* TRNI_PLAN_PLAN_ANSWER_H */
