/* plan/plan_time.h - how long a plan takes: layers, microbatches, the pipeline, the step.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: adds up one microbatch on the slowest stage (products with weights, attention, elementwise work, the
 *     collectives of tp, cp and ep), lays microbatches into a pipeline, and adds what dp and the optimizer take.
 * DOES NOT: schedule single instructions, or know what a compiler would fuse beyond what is said here.
 *
 * KNOWN FROM: Megatron-LM for which collective runs when; 1F1B pipelines (Narayanan et al. 2021); the Neuron SDK,
 *     compute-comm-overlap.rst, for what work and communication share. Coefficients that nobody publishes are fields of
 *     trn_plan_assumptions.
 *
 * Products with weights: trn_matmul_system_cost on the cores of a rank, without the start-up (the next product's DMA
 *     begins during the last); backward twice, with the operands that it has.
 * Attention: on every core max(TensorE, ScalarE, VectorE, KV reads): scores and values never leave SBUF; of causal
 *     scores the masked half is skipped, encoders have all of them. Backward: five products instead of two, 2.5 times
 *     TensorE; twice VectorE.
 * Floors: what an operation of a layer is expected to take beside its work, once, however many heads, sequences and
 *     experts it is about, as compiled graphs have them.
 * An encoder's forward pass waits for nobody: its floors run beside its work. Where what it keeps of a layer fits SBUF
 *     (TRNI_RESIDENT_SHARE), products read weights alone from HBM, and the rest runs at VectorE's rate (assumed;
 *     published passes of one sequence are faster than HBM passes would let them be).
 * A pooled KV cache: what lies in other chips comes as an all_to_all of tp's group, beside what HBM reads.
 * tp, a layer: two all_reduce of [tokens, hidden] forward, two backward; with sp as many reduce_scatter + all_gather,
 *     and two all_gather more backward, beside the products. Experts spread by ep: all_to_all before and after, each
 *     token for each of its experts; their outputs are gathered and scattered within tp. cp: all_gather of keys and
 *     values, backward also their reduce_scatter; decode: all_reduce of partial outputs.
 * A phase = dependent communication + max(work, other communication) + contention x min of the two. Other communication
 *     is that of cp, of dp, and of the pipeline.
 * Training = (microbatches + pp - 1) x (forward + backward); gradients travel in buckets beside the last backward pass,
 *     new weights beside the first forward pass, but for one bucket each, which nothing is left to hide; then the
 *     optimizer reads and writes its states once.
 * Decode: every token passes all stages, and a stage works on one microbatch at a time: max(pp, microbatches) forward
 *     passes for a token of every sequence.
 */
#ifndef TRNI_PLAN_PLAN_TIME_H
#define TRNI_PLAN_PLAN_TIME_H

#include "plan_mixer.h"

/* ---- one layer of one microbatch ---- */

/* What a pass (forward or backward) of some layers takes. */
typedef struct trni_plan_pass {
    double products_s, reads_s, attention_s, elementwise_s, lookups_s;
    double tp_s, ep_s, cp_s, pp_s, dp_s;
    double tp_beside_s; /* the part of tp_s that no product waits for */
    double dp_waits_s;  /* the part of dp_s that hides behind nothing */
} trni_plan_pass;

TRNI_FN void trni_plan_pass_add(trni_plan_pass *to, const trni_plan_pass *from, double times)
{
    to->products_s += times * from->products_s;
    to->reads_s += times * from->reads_s;
    to->attention_s += times * from->attention_s;
    to->elementwise_s += times * from->elementwise_s;
    to->lookups_s += times * from->lookups_s;
    to->tp_s += times * from->tp_s;
    to->ep_s += times * from->ep_s;
    to->cp_s += times * from->cp_s;
    to->pp_s += times * from->pp_s;
    to->dp_s += times * from->dp_s;
    to->tp_beside_s += times * from->tp_beside_s;
    to->dp_waits_s += times * from->dp_waits_s;
}

TRNI_FN double trni_plan_pass_work(const trni_plan_pass *p)
{
    return p->products_s + p->reads_s + p->attention_s + p->elementwise_s + p->lookups_s;
}

/* One evaluation: what all layers have in common. */
typedef struct trni_plan_run {
    trni_plan_work *w;
    trn_plan *p;
    trni_plan_place place;
    trn_job job;
    bool expected;         /* at the rates and with the floors that are expected, not at the ideal ones */
    int64_t t;             /* ranks of tp */
    int64_t sequences;     /* of a microbatch */
    int64_t length;        /* tokens of a sequence; decode: that the cache holds */
    double tokens;         /* of a microbatch on one chip */
    double kept_bytes;     /* of one element on the wire, activations */
    bool resident;         /* activations of a layer stay in SBUF */
    bool blocks;           /* every expert's product is an operation of its own */
    trni_plan_slice slice; /* the same numbers, as products see them */
} trni_plan_run;

/* One of the two, as this evaluation has it. */
TRNI_FN double trni_plan_run_s(const trni_plan_run *r, trni_plan_seconds t)
{
    return r->expected ? t.expected_s : t.ideal_s;
}

/* HBM's rate of a rank's cores, or what is reached of it. */
TRNI_FN double trni_plan_run_hbm(const trni_plan_run *r)
{
    return r->w->chip.hbm_bytes_per_s * (r->expected ? r->w->a.assumptions.hbm_share : 1);
}

/* What so many operations take beside their work. */
TRNI_FN double trni_plan_run_floor(const trni_plan_run *r, double operations)
{
    return r->expected ? operations * r->w->a.assumptions.kernel_s : 0;
}

TRNI_FN double trni_plan_run_collective(const trni_plan_run *r, unsigned axes, trn_collective op, double bytes,
                                        int ranks_per_chip, trn_algorithm *algorithm)
{
    const trni_plan_seconds t = trni_plan_work_collective(r->w, &r->place, axes, op, bytes, ranks_per_chip, algorithm);
    trni_plan_told *const told = &r->w->told[r->w->tolds];
    if (r->w->tolds == TRNI_PLAN_TOLD) return trni_plan_run_s(r, t);
    r->w->tolds++;
    told->op = op;
    told->axes = axes;
    told->bytes = bytes;
    told->count = 1;
    told->ideal_s = t.ideal_s;
    told->expected_s = t.expected_s;
    return trni_plan_run_s(r, t);
}

/* An encoder's forward pass alone. */
TRNI_FN bool trni_plan_run_encodes(const trni_plan_run *r)
{
    return r->w->m.bidirectional && r->job == TRN_JOB_PREFILL;
}

/* Input, residual, queries, keys and values, and the block's inner numbers, before and after their function. */
TRNI_FN bool trni_plan_run_fits_sbuf(const trni_plan_run *r)
{
    const trn_model *m = &r->w->m;
    const double each = 5 * (double)m->hidden + 2 * trni_plan_ceil_share(m->intermediate, r->t);
    const double bytes = r->tokens * each * trni_plan_bytes_of(r->w->a.formats.activations);
    return bytes <= r->w->chip.cores * trn_core_sbuf_bytes(r->w->chip.core) * TRNI_RESIDENT_SHARE;
}

/* So many tokens on a chip, of so many sequences. */
TRNI_FN void trni_plan_run_tokens(trni_plan_run *r, int64_t sequences, int64_t length, double tokens)
{
    r->sequences = sequences;
    r->length = length;
    r->tokens = tokens;
    r->slice.model = &r->w->m;
    r->slice.shares = r->t;
    r->slice.tokens = tokens;
    r->slice.sequences = (double)sequences;
    r->slice.decode = r->job == TRN_JOB_DECODE;
    r->slice.routed = tokens * (double)r->w->m.experts_per_token * r->w->a.assumptions.expert_imbalance;
    r->slice.routed /= (double)trni_plan_experts_over(r->w);
    r->slice.experts = trni_plan_experts_here(r->w, r->p);
    r->slice.expert_shares = trni_plan_expert_shares(r->w, r->p);
    r->resident = trni_plan_run_encodes(r) && trni_plan_run_fits_sbuf(r);
}

TRNI_FN trni_plan_work_time trni_plan_run_product(const trni_plan_run *r, int64_t m, int64_t n, int64_t k,
                                                  trni_plan_kept kept, bool added)
{
    const int forward = r->resident ? TRNI_PLAN_HELD : TRNI_PLAN_ON_CHIP;
    return trni_plan_product_time(r->w, m, n, k, (added ? TRNI_PLAN_ADDED : forward) + TRNI_PLAN_EACH_KEPT * (int)kept);
}

/* `count` of a kind are one operation, unless each is a block of its own. */
TRNI_FN void trni_plan_pass_product_of(const trni_plan_run *r, trni_plan_pass *pass, int64_t m, int64_t n, int64_t k,
                                       double count, trni_plan_kept kept, bool added)
{
    const trni_plan_work_time t = trni_plan_run_product(r, m, n, k, kept, added);
    const double work = count * (r->expected ? t.expected_s : t.time_s);
    const double operations = r->blocks ? count : fmin(count, 1);
    *(t.tensor ? &pass->products_s : &pass->reads_s) += work + trni_plan_run_floor(r, operations);
}

TRNI_FN void trni_plan_pass_product(const trni_plan_run *r, trni_plan_pass *pass, int64_t m, int64_t n, int64_t k,
                                    double count, bool added)
{
    trni_plan_pass_product_of(r, pass, m, n, k, count, TRNI_PLAN_OF_WEIGHTS, added);
}

/* Backward: the gradient of the input [m, k], and that of the weights [k, n]. */
TRNI_FN void trni_plan_pass_products(const trni_plan_run *r, trni_plan_pass *pass, const trni_plan_layer_list *list,
                                     bool backward)
{
    for (int i = 0; i < list->count; i++) {
        const trni_plan_layer_product *x = &list->row[i];
        if (!backward) {
            trni_plan_pass_product_of(r, pass, x->m, x->n, x->k, x->count, x->kept, false);
            continue;
        }
        trni_plan_pass_product(r, pass, x->m, x->k, x->n, x->count, false);
        trni_plan_pass_product(r, pass, x->k, x->n, x->m, x->count, true);
    }
}

#define TRNI_PLAN_AXIS(axis) (1u << TRN_AXIS_##axis)

/* ---- attention: one pair is one sequence and one head (decode: the heads that share keys) ---- */

typedef struct trni_plan_scores {
    double pairs, rows, context; /* of one rank */
    int64_t wide, value;
    double bytes; /* of keys and values that come from HBM */
} trni_plan_scores;

/* Positions that attention sees of a sequence, on average: all that the model does, or those that are chosen. */
TRNI_FN double trni_plan_seen(const trn_model *m, double length)
{
    return m->index_most ? trni_plan_causal_context(length, (double)m->index_most) : trn_model_context(m, length);
}

/* What chooses them: a product of every query with every key, and two passes of VectorE over the scores (assumed: the
 * sum over heads, and the best of them). */
TRNI_FN double trni_plan_index_time(const trni_plan_run *r)
{
    const trn_model *m = &r->w->m;
    const trn_chip_spec *chip = &r->w->chip;
    const bool decode = r->job == TRN_JOB_DECODE;
    const double length = (double)r->length;
    const double context = ceil((decode ? length : trni_plan_causal_context(length, 0)) / (decode ? r->p->cp : 1));
    const double rows = (decode ? 1 : ceil(length / r->p->cp)) * (double)m->index_heads;
    if (!m->index_most || context <= (double)m->index_most) return 0;
    const trni_plan_work_time t =
        trni_plan_product_time(r->w, (int64_t)rows, (int64_t)context, m->index_dim, TRNI_PLAN_ON_CORE);
    const double tensor = (double)r->sequences * (r->expected ? t.expected_s : t.time_s) / chip->cores;
    const double vector = 2 * (double)r->sequences * rows * context / chip->cores /
                          (chip->core->vector_elements * chip->core->vector_clock_hz);
    return fmax(tensor, vector) + trni_plan_run_floor(r, 1);
}

/* A decoder's second attention: as many queries as tokens, keys and values of all of the encoder's positions. */
TRNI_FN double trni_plan_cross_time(const trni_plan_run *r)
{
    const trn_model *m = &r->w->m;
    const trn_chip_spec *chip = &r->w->chip;
    const double sequences = (double)r->sequences, heads = trni_plan_ceil_share(m->heads, r->t);
    const double rows = ceil(r->tokens / sequences), cross = (double)m->cross;
    if (!m->cross) return 0;
    const double each = trni_plan_run_s(r, trni_plan_work_scores(r->w, (int64_t)rows, m->cross, m->head_dim, m->v_dim));
    const double scores = sequences * heads * rows * cross / chip->cores * r->w->a.assumptions.scalar_passes /
                          (chip->core->scalar_elements * chip->core->scalar_clock_hz);
    const double bytes = sequences * cross * trni_plan_kv_elements(m, r->t) * r->w->a.formats.kv_bits / 8;
    return fmax(fmax(sequences * heads * each / chip->cores, scores), bytes / trni_plan_run_hbm(r)) +
           trni_plan_run_floor(r, 1);
}

TRNI_FN trni_plan_scores trni_plan_scores_of(const trni_plan_run *r)
{
    const trn_model *m = &r->w->m;
    const double heads = trni_plan_ceil_share(m->heads, r->t), kv = trni_plan_kv_heads_share(m, r->t);
    const double length = (double)r->length, windowed = trni_plan_windowed(m);
    trni_plan_scores s = { (double)r->sequences * heads,
                           ceil(length / r->p->cp),
                           ceil(trni_plan_seen(m, length)),
                           m->head_dim + m->rope_dim,
                           m->v_dim,
                           0 };
    if (r->job != TRN_JOB_DECODE) return s;
    s.context = ceil((length + windowed * (fmin((double)m->window, length) - length)) / r->p->cp);
    s.pairs = (double)r->sequences * (m->kv_rank ? 1 : kv);
    s.rows = m->kv_rank ? heads : ceil(heads / kv);
    if (m->kv_rank) s.wide = m->kv_rank + m->rope_dim;
    if (m->kv_rank) s.value = m->kv_rank;
    s.bytes = (double)r->sequences * trni_plan_kv_read(m, s.context, r->t) * r->w->a.formats.kv_bits / 8;
    if (m->index_most) s.context = fmin(s.context, (double)m->index_most);
    return s;
}

/* Keys and values of a layer that lie in other chips of tp, `bytes` of a rank in all: each chip gets as much from every
 * other one. A buffer of all_to_all has what a chip keeps, too. */
TRNI_FN double trni_plan_pool_time(const trni_plan_run *r, double bytes)
{
    const trn_plan_memory *b = &r->p->memory;
    const double n = r->p->tp, keys = trni_plan_cached(r->w, r->p, trni_plan_key_bytes(r->w, r->p));
    if (r->job != TRN_JOB_DECODE || b->kv_elsewhere <= 0) return 0;
    const double away = bytes * r->w->a.ranks_per_chip * b->kv_elsewhere / keys;
    return trni_plan_run_collective(r, TRNI_PLAN_AXIS(TP), TRN_ALL_TO_ALL, away * n / (n - 1), 1, NULL);
}

/* Scores of a prompt, the masked ones too, F32, of attention that is not fused: they pass HBM so often. */
TRNI_FN double trni_plan_scores_bytes(const trni_plan_run *r, const trni_plan_scores *s)
{
    if (!r->expected || r->job != TRN_JOB_PREFILL) return 0;
    return 4 * r->w->a.assumptions.score_passes * s->pairs * s->rows * (double)r->length;
}

TRNI_FN double trni_plan_scores_time(const trni_plan_run *r, bool backward)
{
    const trni_plan_scores s = trni_plan_scores_of(r);
    const trn_chip_spec *chip = &r->w->chip;
    const trn_core_spec *core = chip->core;
    const double each =
        trni_plan_run_s(r, trni_plan_work_scores(r->w, (int64_t)s.rows, (int64_t)s.context, s.wide, s.value));
    const double scores = s.pairs * s.rows * s.context / chip->cores;
    const double tensor = (backward ? 2.5 : 1) * s.pairs * each / chip->cores;
    const double scalar = scores * r->w->a.assumptions.scalar_passes / (core->scalar_elements * core->scalar_clock_hz);
    const double vector = (backward ? 2 : 1) * scores * r->w->a.assumptions.vector_passes /
                          (core->vector_elements * core->vector_clock_hz);
    const double bytes = s.bytes + trni_plan_scores_bytes(r, &s);
    const double reads = fmax(bytes / trni_plan_run_hbm(r), trni_plan_pool_time(r, s.bytes));
    return fmax(fmax(tensor, scalar), fmax(vector, reads)) + trni_plan_run_floor(r, 1);
}

/* Of the mean layer. */
TRNI_FN double trni_plan_attention_time(const trni_plan_run *r, bool backward)
{
    const double part = trni_plan_linear_part(&r->w->m);
    const double full = part < 1 ? (1 - part) * trni_plan_scores_time(r, backward) : 0;
    const double linear = trni_plan_linear_time(r->w, &r->slice, (double)r->sequences, r->job, backward);
    const double share = r->expected ? r->w->a.assumptions.tensor_share : 1;
    const double other = (backward ? 2.5 : 1) * (trni_plan_index_time(r) + trni_plan_cross_time(r));
    return full + part * (linear / share + trni_plan_run_floor(r, 1)) + other;
}

/* Passes that belong to no product: over HBM, or where numbers stay in SBUF over VectorE, which reads and writes in
 * one. */
TRNI_FN double trni_plan_elementwise_time(const trni_plan_run *r, bool sparse)
{
    const trn_model *m = &r->w->m;
    const trn_plan_assumptions *a = &r->w->a.assumptions;
    const double inner =
        sparse ? trni_plan_ceil_share(m->shared_intermediate, r->t) : trni_plan_ceil_share(m->intermediate, r->t);
    const double routed =
        sparse ? r->slice.routed * trni_plan_ceil_share(m->moe_intermediate, r->slice.expert_shares) : 0;
    const double blocks = sparse || m->intermediate ? 1 : 0.5; /* of two with a norm and a residual each */
    const double elements = blocks * a->hidden_passes * r->tokens * (double)m->hidden / (r->p->sp ? (double)r->t : 1) +
                            a->inner_passes * (r->tokens * inner + routed);
    const trn_core_spec *core = r->w->chip.core;
    const double vector = r->w->chip.cores * core->vector_elements * core->vector_clock_hz;
    const double bytes = elements * trni_plan_bytes_of(r->w->a.formats.activations);
    const double blocks_of_experts = sparse && r->blocks ? trni_plan_awake(&r->slice) : 0; /* each has a function */
    return (r->resident ? elements / 2 / vector : bytes / trni_plan_run_hbm(r)) +
           trni_plan_run_floor(r, a->layer_kernels + blocks_of_experts);
}

/* ---- collectives of a layer ---- */

TRNI_FN double trni_plan_tp_time(const trni_plan_run *r, trn_collective op, double elements)
{
    const int sharing = trni_plan_sharing(r->w, r->p); /* replicas on a chip share its ways, too */
    return trni_plan_run_collective(r, TRNI_PLAN_AXIS(TP), op, sharing * elements * r->kept_bytes,
                                    r->w->a.ranks_per_chip / sharing, &r->p->tp_algorithm);
}

/* Partial sums of [tokens, hidden] made whole again, in either way. */
TRNI_FN double trni_plan_tp_sum(const trni_plan_run *r, double elements)
{
    if (!r->p->sp) return trni_plan_tp_time(r, TRN_ALL_REDUCE, elements);
    return trni_plan_tp_time(r, TRN_REDUCE_SCATTER, elements) + trni_plan_tp_time(r, TRN_ALL_GATHER, elements);
}

/* Experts apart: their rank of tp holds 1/t of the tokens, and all of them must see all of what was routed. */
TRNI_FN void trni_plan_pass_experts(const trni_plan_run *r, trni_plan_pass *pass)
{
    const double hidden = (double)r->w->m.hidden, routed = r->slice.routed * hidden;
    const double sent = routed / r->p->tp * trni_plan_sharing(r->w, r->p);
    pass->ep_s += 2 * trni_plan_run_collective(r, TRNI_PLAN_AXIS(EP), TRN_ALL_TO_ALL, sent * r->kept_bytes, 1, NULL);
    pass->tp_s += trni_plan_tp_time(r, TRN_ALL_GATHER, routed) + trni_plan_tp_time(r, TRN_REDUCE_SCATTER, routed);
    if (!r->p->sp) pass->tp_s += trni_plan_tp_time(r, TRN_ALL_GATHER, r->tokens * hidden);
}

TRNI_FN double trni_plan_cp_time(const trni_plan_run *r, bool backward)
{
    const trn_model *m = &r->w->m;
    const double ranks = r->w->a.ranks_per_chip, full = 1 - trni_plan_linear_part(m);
    if (r->job == TRN_JOB_DECODE) { /* outputs, maxima and sums in F32 */
        const double each =
            full * ranks * trni_plan_ceil_share(m->heads, r->t) * (double)((m->kv_rank ? m->kv_rank : m->v_dim) + 2);
        return trni_plan_run_collective(r, TRNI_PLAN_AXIS(CP), TRN_ALL_REDUCE, r->tokens * each * 4, 1, NULL);
    }
    const double keys = full * (double)r->length * trni_plan_kv_elements(m, r->t) * r->kept_bytes;
    const double bytes = (double)r->sequences * ranks * (keys + r->p->cp * trni_plan_state_bytes(m, r->t));
    const double gathered = trni_plan_run_collective(r, TRNI_PLAN_AXIS(CP), TRN_ALL_GATHER, bytes, 1, NULL);
    if (!backward) return gathered;
    return gathered + trni_plan_run_collective(r, TRNI_PLAN_AXIS(CP), TRN_REDUCE_SCATTER, bytes, 1, NULL);
}

TRNI_FN void trni_plan_pass_collectives(const trni_plan_run *r, trni_plan_pass *pass, bool sparse, bool backward)
{
    const trn_model *m = &r->w->m;
    const double all = r->tokens * (double)m->hidden;
    const bool apart = sparse && r->p->ep > 1;
    pass->tp_s += trni_plan_tp_sum(r, all);
    const bool block = sparse || m->intermediate; /* is there a feed-forward block? */
    if (block && (!apart || m->shared_intermediate)) pass->tp_s += trni_plan_tp_sum(r, all);
    if (apart) trni_plan_pass_experts(r, pass);
    pass->cp_s += trni_plan_cp_time(r, backward);
    if (!backward || !r->p->sp) return;
    pass->tp_beside_s += 2 * trni_plan_tp_time(r, TRN_ALL_GATHER, all);
    pass->tp_s += 2 * trni_plan_tp_time(r, TRN_ALL_GATHER, all);
}

/* Floors beside the work: whichever is longer. */
TRNI_FN void trni_plan_pass_overlap(const trni_plan_run *r, trni_plan_pass *pass, int products)
{
    const double floors = trni_plan_run_floor(r, products + 1 + r->w->a.assumptions.layer_kernels);
    const double all = trni_plan_pass_work(pass), shrink = all > 0 ? fmax(all - floors, floors) / all : 1;
    pass->products_s *= shrink;
    pass->reads_s *= shrink;
    pass->attention_s *= shrink;
    pass->elementwise_s *= shrink;
}

TRNI_FN trni_plan_pass trni_plan_layer_pass(const trni_plan_run *r, bool sparse, bool backward)
{
    trni_plan_pass pass;
    memset(&pass, 0, sizeof pass);
    const trni_plan_layer_list list = trni_plan_layer_products(&r->slice, sparse);
    trni_plan_pass_products(r, &pass, &list, backward);
    pass.attention_s = trni_plan_attention_time(r, backward);
    pass.elementwise_s = (backward ? 2 : 1) * trni_plan_elementwise_time(r, sparse);
    if (r->expected && trni_plan_run_encodes(r)) trni_plan_pass_overlap(r, &pass, list.count);
    trni_plan_pass_collectives(r, &pass, sparse, backward);
    return pass;
}

/* What a backward pass does again before it begins. */
TRNI_FN trni_plan_pass trni_plan_again_pass(const trni_plan_run *r, const trni_plan_pass *forward)
{
    trni_plan_pass again;
    memset(&again, 0, sizeof again);
    if (r->p->recompute == TRN_RECOMPUTE_FULL) again = *forward;
    if (r->p->recompute != TRN_RECOMPUTE_SELECTIVE) return again;
    again.attention_s = forward->attention_s;
    again.elementwise_s = forward->elementwise_s;
    return again;
}

/* ---- a stage ---- */

typedef struct trni_plan_stage_time {
    trni_plan_pass forward, backward, again; /* backward includes again */
} trni_plan_stage_time;

/* An encoder's patches: backward only the gradient of their weights, for nobody asks for that of an image. */
TRNI_FN void trni_plan_stage_patches(const trni_plan_run *r, trni_plan_stage_time *s)
{
    const trn_model *m = &r->w->m;
    const int64_t inputs = (int64_t)trni_plan_ceil_share(m->patch_inputs, r->t);
    const int64_t patches = (int64_t)ceil(r->tokens) - (m->no_class_token ? 0 : r->sequences);
    if (!m->patch_inputs) return;
    trni_plan_pass_product(r, &s->forward, patches, m->hidden, inputs, 1, false);
    if (r->job == TRN_JOB_TRAIN) trni_plan_pass_product(r, &s->backward, inputs, m->hidden, patches, 1, true);
}

/* The head, on those tokens that need logits, and what encoders have at their end. */
TRNI_FN trni_plan_layer_list trni_plan_head_products(const trni_plan_run *r)
{
    const trn_model *m = &r->w->m;
    const bool train = r->job == TRN_JOB_TRAIN;
    const double logits = trni_plan_logits(m, train, r->tokens, (double)r->sequences), h = (double)m->hidden;
    trni_plan_layer_list head;
    memset(&head, 0, sizeof head);
    head.kept = TRNI_PLAN_OF_HEAD;
    if (m->pooler || m->masked_head) trni_plan_list_add(&head, "transform", logits, h, h, 1);
    trni_plan_list_add(&head, "head", logits, trni_plan_ceil_share(trni_plan_head_width(m), r->t), h, 1);
    trni_plan_list_add(&head, "classes", logits, (double)m->classes, h, 1);
    return head;
}

/* The same, and the embedding's sum over tp. */
TRNI_FN void trni_plan_stage_ends(const trni_plan_run *r, trni_plan_stage_time *s)
{
    const trn_model *m = &r->w->m;
    const bool train = r->job == TRN_JOB_TRAIN;
    const trni_plan_layer_list head = trni_plan_head_products(r);
    trni_plan_stage_patches(r, s);
    trni_plan_pass_products(r, &s->forward, &head, false);
    s->forward.tp_s += trni_plan_tp_sum(r, r->tokens * (double)m->hidden);
    if (train) trni_plan_pass_products(r, &s->backward, &head, true);
}

TRNI_FN double trni_plan_pp_time(const trni_plan_run *r)
{
    const double elements =
        r->tokens * (double)r->w->m.hidden / (r->p->sp ? r->p->tp : 1) * trni_plan_sharing(r->w, r->p);
    return trni_plan_run_collective(r, TRNI_PLAN_AXIS(PP), TRN_PERMUTE, elements * r->kept_bytes, 1, NULL);
}

/* The slower of the two extreme stages, with the ends of the model. */
TRNI_FN trni_plan_stage_time trni_plan_stage_of(const trni_plan_run *r)
{
    trni_plan_stage_time s[2];
    trni_plan_stage stage[2];
    trni_plan_pass layer[2][2], again[2]; /* [sparse][backward] */
    const bool train = r->job == TRN_JOB_TRAIN;
    memset(s, 0, sizeof s);
    memset(layer, 0, sizeof layer);
    memset(again, 0, sizeof again);
    trni_plan_stages(r->w, r->p, stage);
    for (int sparse = 0; sparse < 2; sparse++) {
        if (sparse ? r->w->m.dense_layers == r->w->m.layers : r->w->m.dense_layers == 0) continue;
        layer[sparse][0] = trni_plan_layer_pass(r, sparse, false);
        if (!train) continue;
        layer[sparse][1] = trni_plan_layer_pass(r, sparse, true);
        again[sparse] = trni_plan_again_pass(r, &layer[sparse][0]);
    }
    double work[2];
    for (int i = 0; i < 2; i++) {
        for (int sparse = 0; sparse < 2; sparse++) {
            const double n = (double)(sparse ? stage[i].sparse : stage[i].dense);
            trni_plan_pass_add(&s[i].forward, &layer[sparse][0], n);
            trni_plan_pass_add(&s[i].backward, &layer[sparse][1], n);
            trni_plan_pass_add(&s[i].backward, &again[sparse], n);
            trni_plan_pass_add(&s[i].again, &again[sparse], n);
        }
        work[i] = trni_plan_pass_work(&s[i].forward) + trni_plan_pass_work(&s[i].backward) + s[i].forward.tp_s +
                  s[i].backward.tp_s;
    }
    trni_plan_stage_time *slow = &s[work[1] > work[0]];
    trni_plan_stage_ends(r, slow);
    if (r->p->pp > 1) slow->forward.pp_s = trni_plan_pp_time(r);
    if (r->p->pp > 1 && train) slow->backward.pp_s = slow->forward.pp_s;
    return *slow;
}

/* ---- phases ---- */

/* Adds `times` such passes to the plan's account and returns what one takes. */
TRNI_FN double trni_plan_phase(const trni_plan_run *r, const trni_plan_pass *pass, double times)
{
    trn_plan_time *t = &r->p->time;
    const double work = trni_plan_pass_work(pass);
    double waits = pass->tp_s - pass->tp_beside_s + pass->ep_s;
    double beside = pass->tp_beside_s + pass->cp_s + pass->dp_s - pass->dp_waits_s + pass->pp_s;
    if (r->w->a.overlap_dependent) {
        beside += waits;
        waits = 0;
    }
    waits += pass->dp_waits_s;
    const double both = fmin(work, beside), contention = r->w->a.assumptions.contention * both;
    t->products_s += times * pass->products_s;
    t->reads_s += times * pass->reads_s;
    t->attention_s += times * pass->attention_s;
    t->elementwise_s += times * pass->elementwise_s;
    t->lookups_s += times * pass->lookups_s;
    t->tp_s += times * pass->tp_s;
    t->ep_s += times * pass->ep_s;
    t->cp_s += times * pass->cp_s;
    t->pp_s += times * pass->pp_s;
    t->dp_s += times * pass->dp_s;
    t->hidden_s += times * both;
    t->contention_s += times * contention;
    return waits + work + beside - both + contention;
}

/* ---- data parallelism ---- */

/* Of one pass: all of it, and the bucket at its end that nothing hides. */
typedef struct trni_plan_sync {
    double all_s, waits_s;
} trni_plan_sync;

/* Replicas that share a chip first do among themselves what the chips then do. `bytes` of a chip. */
TRNI_FN double trni_plan_shared_collective(const trni_plan_run *r, unsigned axes, trn_collective op, double bytes)
{
    const int sharing = trni_plan_sharing(r->w, r->p);
    const double own = bytes / sharing;
    double inside = 0;
    if (sharing > 1 && op != TRN_ALL_GATHER)
        inside += trni_plan_run_collective(r, 0, TRN_REDUCE_SCATTER, own, sharing, NULL);
    if (sharing > 1 && op != TRN_REDUCE_SCATTER)
        inside += trni_plan_run_collective(r, 0, TRN_ALL_GATHER, own, sharing, NULL);
    return inside + trni_plan_run_collective(r, axes, op, own, 1, &r->p->dp_algorithm);
}

/* In buckets, all of one size. */
TRNI_FN void trni_plan_sync_add(const trni_plan_run *r, trni_plan_sync *to, unsigned axes, trn_collective op,
                                double bytes)
{
    const trn_plan_assumptions *a = &r->w->a.assumptions;
    const double ranks = trni_plan_place_count(&r->place, axes);
    const double buckets = fmax(1, ceil(bytes / fmax(a->bucket_bytes, a->bucket_rank_bytes * ranks)));
    const double each = trni_plan_shared_collective(r, axes, op, bytes / buckets);
    if (r->w->tolds) r->w->told[r->w->tolds - 1].count = buckets;
    to->all_s += buckets * each;
    to->waits_s += each;
}

/* Shared parameters over dp, ep and cp, experts over dp and cp. */
TRNI_FN void trni_plan_sync_both(const trni_plan_run *r, trni_plan_sync *to, const trni_plan_weights *n,
                                 trn_collective op, double bytes_each)
{
    const unsigned experts = TRNI_PLAN_AXIS(DP) | TRNI_PLAN_AXIS(CP);
    trni_plan_sync_add(r, to, experts | TRNI_PLAN_AXIS(EP), op, n->shared * bytes_each);
    trni_plan_sync_add(r, to, experts, op, n->experts * bytes_each);
}

typedef struct trni_plan_syncs {
    trni_plan_sync every_forward, every_backward; /* of each microbatch */
    trni_plan_sync first_forward, last_backward;  /* once in a step */
} trni_plan_syncs;

TRNI_FN trni_plan_syncs trni_plan_syncs_of(const trni_plan_run *r)
{
    const trn_plan_formats *f = &r->w->a.formats;
    const trni_plan_weights n = trni_plan_weights_of(r->w, r->p);
    const double gradient = trni_plan_bytes_of(f->wire ? f->wire : f->gradients);
    const double weight = trni_plan_bytes_of(f->wire ? f->wire : f->weights);
    const trn_zero zero = r->p->zero;
    trni_plan_syncs d;
    memset(&d, 0, sizeof d);
    if (zero == TRN_ZERO_NONE) {
        trni_plan_sync_both(r, &d.last_backward, &n, TRN_ALL_REDUCE, gradient);
        return d;
    }
    const bool always = zero == TRN_ZERO_WEIGHTS; /* weights are gathered for every pass */
    trni_plan_sync_both(r, zero == TRN_ZERO_OPTIMIZER ? &d.last_backward : &d.every_backward, &n, TRN_REDUCE_SCATTER,
                        gradient);
    trni_plan_sync_both(r, always ? &d.every_forward : &d.first_forward, &n, TRN_ALL_GATHER, weight);
    if (always) trni_plan_sync_both(r, &d.every_backward, &n, TRN_ALL_GATHER, weight);
    return d;
}

TRNI_FN void trni_plan_pass_sync(trni_plan_pass *pass, const trni_plan_sync *sync)
{
    pass->dp_s += sync->all_s;
    pass->dp_waits_s += sync->waits_s;
}

/* The optimizer reads and writes its states, reads gradients and writes weights. */
TRNI_FN double trni_plan_update_time(const trni_plan_run *r)
{
    const trn_plan_formats *f = &r->w->a.formats;
    const trni_plan_weights n = trni_plan_weights_of(r->w, r->p);
    const double each =
        2 * trni_plan_optimizer_bytes(r->w) + trni_plan_bytes_of(f->gradients) + trni_plan_bytes_of(f->weights);
    const double rate = r->w->whole->hbm_bytes_per_s * (r->expected ? r->w->a.assumptions.hbm_share : 1);
    return trni_plan_shared_out(&n, r->p, r->p->zero >= TRN_ZERO_OPTIMIZER) * each / rate;
}

/* ---- jobs ---- */

TRNI_FN double trni_plan_train_time(const trni_plan_run *r)
{
    trn_plan_time *t = &r->p->time;
    const trni_plan_syncs dp = trni_plan_syncs_of(r);
    trni_plan_stage_time s = trni_plan_stage_of(r);
    const double more = (double)r->p->microbatches - 1;
    trni_plan_pass_sync(&s.forward, &dp.every_forward);
    trni_plan_pass_sync(&s.backward, &dp.every_backward);
    t->forward_s = trni_plan_phase(r, &s.forward, more);
    t->backward_s = trni_plan_phase(r, &s.backward, more);
    t->bubble_s = (r->p->pp - 1) * (t->forward_s + t->backward_s);
    trni_plan_pass_sync(&s.forward, &dp.first_forward);
    trni_plan_pass_sync(&s.backward, &dp.last_backward);
    const double first = trni_plan_phase(r, &s.forward, 1), last = trni_plan_phase(r, &s.backward, 1);
    t->update_s = trni_plan_update_time(r);
    t->recompute_s = (double)r->p->microbatches * (trni_plan_pass_work(&s.again) + s.again.tp_s + s.again.ep_s);
    return more * (t->forward_s + t->backward_s) + first + last + t->bubble_s + t->update_s;
}

/* Forward passes through all stages. Of a pipeline that is not full, the rest is bubble. */
TRNI_FN double trni_plan_forward_time(const trni_plan_run *r)
{
    trn_plan_time *t = &r->p->time;
    const trni_plan_stage_time s = trni_plan_stage_of(r);
    const double n = (double)r->p->microbatches, idle = r->p->pp - n;
    t->forward_s = trni_plan_phase(r, &s.forward, n);
    t->bubble_s = t->forward_s * (r->job == TRN_JOB_DECODE ? fmax(0, idle) : r->p->pp - 1);
    return n * t->forward_s + t->bubble_s;
}

/* Tokens that a prompt is padded to: graphs are compiled for powers of two, and for all that the cache holds. */
TRNI_FN int64_t trni_plan_bucket(const trni_plan_run *r, int64_t prompt)
{
    double bucket = r->w->a.assumptions.bucket_tokens;
    if (!r->expected || bucket < 1 || r->w->a.job != TRN_JOB_DECODE) return prompt;
    while (bucket < (double)prompt) bucket *= 2;
    return (int64_t)fmax((double)prompt, fmin(bucket, (double)r->w->a.sequence));
}

/* The prompts of one pass in each replica, with nothing else going on; then sampling. */
TRNI_FN double trni_plan_first_token(const trni_plan_run *r)
{
    trn_plan alone = *r->p;
    trni_plan_run one = *r;
    const trn_plan_args *a = &r->w->a;
    const int64_t length = trni_plan_bucket(r, a->job == TRN_JOB_DECODE ? a->prompt : a->sequence);
    const int64_t prompts = a->prompts > 0 ? a->prompts : 1;
    alone.microbatch = prompts;
    alone.microbatches = 1;
    memset(&alone.time, 0, sizeof alone.time);
    one.p = &alone;
    one.job = TRN_JOB_PREFILL;
    one.blocks = true;
    trni_plan_run_tokens(&one, prompts, length, (double)prompts * ceil((double)length / r->p->cp));
    return trni_plan_forward_time(&one) + (r->expected ? a->assumptions.first_s : 0);
}

TRNI_FN void trni_plan_run_begin(trni_plan_work *w, trn_plan *p, bool expected, trni_plan_run *r)
{
    memset(r, 0, sizeof *r);
    trni_plan_place_plan(w->a.net, p, &r->place);
    r->w = w;
    r->p = p;
    r->job = w->a.job;
    r->blocks = r->job == TRN_JOB_PREFILL;
    r->expected = expected;
    r->t = trni_plan_tp_ranks(w, p);
    trni_plan_run_tokens(r, p->microbatch, w->a.sequence, trni_plan_tokens(w, p));
    r->kept_bytes = trni_plan_bytes_of(w->a.formats.wire ? w->a.formats.wire : w->a.formats.activations);
    memset(&p->time, 0, sizeof p->time);
    p->tp_algorithm = p->dp_algorithm = TRN_ALGORITHM_AUTO;
}

#endif /* TRNI_PLAN_PLAN_TIME_H */
