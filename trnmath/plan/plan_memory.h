/* plan/plan_memory.h - what a plan keeps in the HBM of its fullest chip.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: weights, gradients, optimizer states, activations, KV cache and buffers, as tp, pp, ep, sp, ZeRO and
 *     recomputation leave them on the chip that has most.
 *     Of a pooled KV cache, how much of it lies in other chips.
 * DOES NOT: model fragmentation, paging of the KV cache, or off-loading to the host.
 *
 * KNOWN FROM: Korthikanti et al. 2022 (what a layer stores, with and without sp and recomputation), Rajbhandari et al.
 *     2020 (ZeRO). Derived here for gated blocks and attention that never stores its scores.
 *
 * Activations of one layer and token, in elements, t = ranks of tp, s = t with sp and 1 without:
 *     none       input, normed input, residual, normed residual (4 hidden / s); queries, keys, values, attention's
 *                output; gate, up and their product; routed tokens once more for each expert they go to
 *     selective  input, residual (2 hidden / s); queries, keys, values; gate, up; routed tokens
 *     full       input (hidden / s)
 * and one layer at a time as "none" has it. A stage holds those of min(pp, microbatches) microbatches (1F1B). Logits
 * are kept in F32, their gradient in the format of activations. Where stages differ, each part is that of the stage
 * that has most of it, so that the sum is never too small.
 *
 * A pooled KV cache (decode): the ranks of tp repeat what there are fewer of than ranks: KV heads, a latent. In the
 * pool of tp's chips each key lies once, so that a chip needs room for keys / copies, not for keys. What it has room
 * for it keeps, and the rest it reads from the others. All chips are as full as the fullest, so that chips outside of
 * tp have nothing to lend. Assumed: that a chip may read the memory of any other that NeuronLink joins. The vendor says
 * that NeuronLink serves memory pooling between chips (Neuron SDK, trainium.rst and trainium3.rst), not how, or how
 * fast.
 */
#ifndef TRNI_PLAN_PLAN_MEMORY_H
#define TRNI_PLAN_PLAN_MEMORY_H

#include "plan_cost.h"
#include "plan_products.h"

TRNI_FN double trni_plan_bytes_of(trn_format format) { return trn_format_bits(format) / 8.0; }

/* Replicas on one chip: more than one where tp has fewer logical cores than a chip. */
TRNI_FN int trni_plan_sharing(const trni_plan_work *w, const trn_plan *p)
{
    return p->tp_cores > 0 && p->tp_cores < w->a.ranks_per_chip ? w->a.ranks_per_chip / p->tp_cores : 1;
}

/* Ranks that share one matrix. */
TRNI_FN int64_t trni_plan_tp_ranks(const trni_plan_work *w, const trn_plan *p)
{
    return (int64_t)p->tp * w->a.ranks_per_chip / trni_plan_sharing(w, p);
}

/* Groups of tp's ranks that hold other experts: 1 where every rank has a slice of every expert. */
TRNI_FN int64_t trni_plan_experts_over(const trni_plan_work *w)
{
    return w->a.experts_over > 1 ? w->a.experts_over : 1;
}

/* Ranks that cut the width of one expert; the rest of tp hold others (experts_over). */
TRNI_FN int64_t trni_plan_expert_shares(const trni_plan_work *w, const trn_plan *p)
{
    return trni_plan_tp_ranks(w, p) / trni_plan_experts_over(w);
}

/* Experts that a rank of tp has a part of. */
TRNI_FN int64_t trni_plan_experts_here(const trni_plan_work *w, const trn_plan *p)
{
    return w->m.experts / p->ep / trni_plan_experts_over(w);
}

/* ---- stages ---- */

typedef struct trni_plan_stage {
    int64_t dense, sparse; /* layers without and with experts */
} trni_plan_stage;

TRNI_FN int64_t trni_plan_stage_layers(const trni_plan_work *w, const trn_plan *p)
{
    return w->m.layers / p->pp + (w->m.layers % p->pp != 0);
}

/* The stage with most experts, and the stage with fewest: one of them has the most of anything. */
TRNI_FN void trni_plan_stages(const trni_plan_work *w, const trn_plan *p, trni_plan_stage stage[2])
{
    const int64_t layers = trni_plan_stage_layers(w, p), sparse = w->m.layers - w->m.dense_layers;
    stage[0].sparse = layers < sparse ? layers : sparse;
    stage[0].dense = layers - stage[0].sparse;
    stage[1].dense = layers < w->m.dense_layers ? layers : w->m.dense_layers;
    stage[1].sparse = layers - stage[1].dense;
}

/* ---- weights ---- */

typedef struct trni_plan_weights {
    double shared;  /* parameters that dp, ep and cp repeat */
    double experts; /* that dp and cp repeat */
    double layer;   /* of the largest layer, both kinds */
    double bytes;   /* of all of them, where nothing is shared out: each kind in its own format */
} trni_plan_weights;

TRNI_FN double trni_plan_kept_bytes(const trni_plan_work *w, trni_plan_kept kept) { return w->kept[kept].bits / 8; }

TRNI_FN trni_plan_weights trni_plan_stage_weights(const trni_plan_work *w, const trn_plan *p, trni_plan_stage stage)
{
    const trn_model *m = &w->m;
    const int64_t t = trni_plan_tp_ranks(w, p);
    const double r = w->a.ranks_per_chip;
    const double dense = r * trni_plan_dense_layer_parameters(m, t), sparse = r * trni_plan_moe_layer_parameters(m, t);
    const double experts = r * (double)trni_plan_experts_here(w, p) *
                           trni_plan_mlp_parameters(m, m->moe_intermediate, trni_plan_expert_shares(w, p));
    const double embedding = r * trni_plan_embedding_parameters(m, t), head = r * trni_plan_head_parameters(m, t);
    const double end = r * trni_plan_end_parameters(m, t);
    const double ends = p->pp == 1 ? embedding + (m->tied_embeddings ? 0 : head) + end : fmax(embedding, head + end);
    trni_plan_weights out = { (double)stage.dense * dense + (double)stage.sparse * sparse + ends +
                                  r * trni_plan_outer_norms(m) * trni_plan_norm_parameters(m),
                              (double)stage.sparse * experts, 0, 0 };
    const double attention = r * (double)(stage.dense + stage.sparse) * trni_plan_attention_parameters(m, t);
    out.layer = fmax(stage.dense ? dense : 0, stage.sparse ? sparse + experts : 0);
    out.bytes = attention * trni_plan_kept_bytes(w, TRNI_PLAN_OF_ATTENTION) +
                out.experts * trni_plan_kept_bytes(w, TRNI_PLAN_OF_EXPERTS) +
                ends * trni_plan_kept_bytes(w, TRNI_PLAN_OF_HEAD) +
                (out.shared - attention - ends) * trni_plan_kept_bytes(w, TRNI_PLAN_OF_WEIGHTS);
    return out;
}

/* Of the fuller of the two extreme stages. */
TRNI_FN trni_plan_weights trni_plan_weights_of(const trni_plan_work *w, const trn_plan *p)
{
    trni_plan_stage stage[2];
    trni_plan_stages(w, p, stage);
    const trni_plan_weights a = trni_plan_stage_weights(w, p, stage[0]), b = trni_plan_stage_weights(w, p, stage[1]);
    return b.bytes > a.bytes ? b : a;
}

/* Shared out among those who would hold the same. */
TRNI_FN double trni_plan_shared_out(const trni_plan_weights *n, const trn_plan *p, bool out)
{
    const double repeated = out ? (double)p->dp * p->cp : 1;
    return n->shared / (out ? repeated * p->ep : 1) + n->experts / repeated;
}

/* Bytes of optimizer state per parameter. */
TRNI_FN double trni_plan_optimizer_bytes(const trni_plan_work *w)
{
    const trn_plan_formats *f = &w->a.formats;
    const double own = trni_plan_bytes_of(f->optimizer);
    return w->a.assumptions.optimizer_states * own + (trni_plan_bytes_of(f->weights) < own ? own : 0);
}

/* ---- activations ---- */

/* Tokens that one replica's chips work on at once. Decode: one of each sequence. */
TRNI_FN double trni_plan_tokens(const trni_plan_work *w, const trn_plan *p)
{
    return w->a.job == TRN_JOB_DECODE ? (double)p->microbatch : (double)p->microbatch * (double)(w->a.sequence / p->cp);
}

/* Queries, keys and values of one token on one rank. */
TRNI_FN double trni_plan_qkv_elements(const trn_model *m, int64_t t)
{
    const double heads = trni_plan_ceil_share(m->heads, t), wide = (double)(m->head_dim + m->rope_dim);
    const double part = trni_plan_linear_part(m), linear = trni_plan_linear_inputs(m, t);
    double full = (m->gated_attention ? 2 : 1) * heads * wide + trni_plan_kv_elements(m, t);
    if (m->kv_rank) full = heads * (2 * wide + (double)m->v_dim) + (double)(m->q_rank + m->kv_rank + m->rope_dim);
    return (1 - part) * full + part * linear;
}

/* What attention, or what is in its place, makes of one token on one rank. */
TRNI_FN double trni_plan_mixed_elements(const trn_model *m, int64_t t)
{
    const double part = trni_plan_linear_part(m), full = trni_plan_ceil_share(m->heads, t) * (double)m->v_dim;
    return (1 - part) * full + part * trni_plan_linear_values(m, t);
}

/* What a feed-forward block keeps of one token on one rank: `kept` = its inner vectors, of which gated blocks have
 * three. */
TRNI_FN double trni_plan_inner_elements(const trn_model *m, int64_t inner, int64_t t, bool product)
{
    return trni_plan_ceil_share(inner, t) * ((m->plain_mlp ? 1 : 2) + (product ? 1 : 0)) * (inner > 0);
}

/* Bytes on a chip of one token in one layer. */
TRNI_FN double trni_plan_layer_activation(const trni_plan_work *w, const trn_plan *p, bool sparse, trn_recompute kind)
{
    const trn_model *m = &w->m;
    const int64_t t = trni_plan_tp_ranks(w, p);
    const double hidden = (double)m->hidden / (p->sp ? (double)t : 1);
    const double heads = trni_plan_ceil_share(m->heads, t), routed = sparse ? (double)m->experts_per_token : 0;
    const double tokens = routed * w->a.assumptions.expert_imbalance;
    const bool all = kind == TRN_RECOMPUTE_NONE;
    double elements = (all ? 4 : kind == TRN_RECOMPUTE_SELECTIVE ? 2 : 1) * hidden, softmax = 0;
    if (kind != TRN_RECOMPUTE_FULL) {
        elements += trni_plan_qkv_elements(m, t) + (all ? trni_plan_mixed_elements(m, t) : 0);
        elements += trni_plan_inner_elements(m, sparse ? m->shared_intermediate : m->intermediate, t, all);
        elements += tokens / (double)trni_plan_experts_over(w) *
                    (hidden + trni_plan_inner_elements(m, m->moe_intermediate, trni_plan_expert_shares(w, p), all));
        softmax = all ? 4 * heads * (1 - trni_plan_linear_part(m)) : 0; /* one F32: its scores' maximum and sum */
    }
    return w->a.ranks_per_chip * (elements * trni_plan_bytes_of(w->a.formats.activations) + softmax);
}

/* A stage's layers, of one token. */
TRNI_FN double trni_plan_stage_activation(const trni_plan_work *w, const trn_plan *p, trni_plan_stage stage,
                                          trn_recompute kind)
{
    return (double)stage.dense * trni_plan_layer_activation(w, p, false, kind) +
           (double)stage.sparse * trni_plan_layer_activation(w, p, true, kind);
}

/* Tokens of so many that need the head: in training all, else one of each sequence. Masked ones may be any; poolers and
 * classifiers see one of each sequence. */
TRNI_FN double trni_plan_logits(const trn_model *m, bool train, double tokens, double sequences)
{
    return m->bidirectional ? m->masked_head ? tokens : sequences : train ? tokens : sequences;
}

TRNI_FN double trni_plan_logit_bytes(const trni_plan_work *w, const trn_plan *p)
{
    const bool train = w->a.job == TRN_JOB_TRAIN;
    const double each = 4 + (train ? trni_plan_bytes_of(w->a.formats.activations) : 0);
    const double logits = trni_plan_logits(&w->m, train, trni_plan_tokens(w, p), (double)p->microbatch);
    const double wide = trni_plan_ceil_share(trni_plan_head_width(&w->m), trni_plan_tp_ranks(w, p));
    return logits * each * w->a.ranks_per_chip * (wide + (double)w->m.classes);
}

/* The first stage holds most microbatches, the last the logits. */
TRNI_FN double trni_plan_activations(const trni_plan_work *w, const trn_plan *p)
{
    const double tokens = trni_plan_tokens(w, p), logits = trni_plan_logit_bytes(w, p);
    const bool any_sparse = w->m.dense_layers < w->m.layers, train = w->a.job == TRN_JOB_TRAIN;
    const double work = fmax(w->m.dense_layers ? trni_plan_layer_activation(w, p, false, TRN_RECOMPUTE_NONE) : 0,
                             any_sparse ? trni_plan_layer_activation(w, p, true, TRN_RECOMPUTE_NONE) : 0);
    trni_plan_stage stage[2];
    if (!train) return tokens * work + logits;
    trni_plan_stages(w, p, stage);
    const double kept = fmax(trni_plan_stage_activation(w, p, stage[0], p->recompute),
                             trni_plan_stage_activation(w, p, stage[1], p->recompute));
    const double again = p->recompute == TRN_RECOMPUTE_NONE ? 0 : work;
    const double flying = p->microbatches < p->pp ? (double)p->microbatches : (double)p->pp;
    const double last = tokens * (kept + again) + logits;
    return p->pp == 1 ? last : fmax(tokens * (flying * kept + again), last);
}

/* ---- KV cache, and the states of linear layers ---- */

enum { TRNI_PLAN_STATE_BYTES = 4 };

/* Bytes of one sequence's states on one rank, in the mean layer. Of cp's ranks each has all of them. */
TRNI_FN double trni_plan_state_bytes(const trn_model *m, int64_t t)
{
    return trni_plan_linear_part(m) * (double)TRNI_PLAN_STATE_BYTES * trni_plan_state_elements(m, t);
}

/* Layers with a window, of those that look back. */
TRNI_FN double trni_plan_windowed(const trn_model *m)
{
    return m->window_layers ? (double)m->window_layers / (double)(m->layers - m->linear_layers) : 0;
}

/* Positions kept of each sequence, averaged over the layers that look back. */
TRNI_FN double trni_plan_kv_positions(const trni_plan_work *w)
{
    const double all = (double)w->a.sequence;
    return all + trni_plan_windowed(&w->m) * (fmin((double)w->m.window, all) - all);
}

/* Bytes of keys and values of one sequence on one rank, in the mean layer; those of an encoder's output, which cp does
 * not cut, among them. */
TRNI_FN double trni_plan_key_bytes(const trni_plan_work *w, const trn_plan *p)
{
    const double each = trni_plan_kv_elements(&w->m, trni_plan_tp_ranks(w, p)) * w->a.formats.kv_bits / 8;
    return (1 - trni_plan_linear_part(&w->m)) * (trni_plan_kv_positions(w) / p->cp + (double)w->m.cross) * each;
}

/* So many bytes of each sequence, rank and layer, on a chip. */
TRNI_FN double trni_plan_cached(const trni_plan_work *w, const trn_plan *p, double each)
{
    const double sequences = (double)p->microbatch * (double)p->microbatches;
    return sequences * each * (double)trni_plan_stage_layers(w, p) * w->a.ranks_per_chip;
}

TRNI_FN double trni_plan_kv(const trni_plan_work *w, const trn_plan *p)
{
    if (w->a.job == TRN_JOB_TRAIN || w->m.bidirectional) return 0;
    const double states = trni_plan_state_bytes(&w->m, trni_plan_tp_ranks(w, p));
    return trni_plan_cached(w, p, trni_plan_key_bytes(w, p) + states);
}

/* How often the chips of tp hold the same key, at least 1; 1 also where there is no pool: one chip, or beyond what
 * NeuronLink joins. */
TRNI_FN double trni_plan_copies(const trni_plan_work *w, const trn_plan *p)
{
    if (!w->a.kv_pool || w->a.job != TRN_JOB_DECODE || p->tp == 1 || p->tp > w->domain) return 1;
    const int64_t t = trni_plan_tp_ranks(w, p);
    const double once = trni_plan_kv_elements(&w->m, 1);
    return once > 0 ? fmax(1, (double)t * trni_plan_kv_elements(&w->m, t) / once) : 1;
}

/* Keys that find no room move to other chips, as far as these hold them anyway. */
TRNI_FN void trni_plan_pool(const trni_plan_work *w, const trn_plan *p, trn_plan_memory *b)
{
    const double keys = trni_plan_cached(w, p, trni_plan_key_bytes(w, p)), most = keys - keys / trni_plan_copies(w, p);
    const double missing = b->total - b->capacity;
    if (missing <= 0 || most <= 0) return;
    b->kv_elsewhere = fmin(missing, most);
    b->kv -= b->kv_elsewhere;
    b->total = missing <= most ? b->capacity : b->total - most;
}

/* ---- all ---- */

/* What runtime and collectives need: two copies of what a layer passes on, weights gathered for two layers. */
TRNI_FN double trni_plan_buffers(const trni_plan_work *w, const trn_plan *p, const trni_plan_weights *n)
{
    const double each = (double)w->m.hidden * trni_plan_bytes_of(w->a.formats.activations),
                 tokens = trni_plan_tokens(w, p);
    const double routed = p->ep > 1 ? (double)w->m.experts_per_token * w->a.assumptions.expert_imbalance : 0;
    const double gathered = p->zero == TRN_ZERO_WEIGHTS ? 2 * n->layer * trni_plan_bytes_of(w->a.formats.weights) : 0;
    return w->a.assumptions.reserve_bytes + 2 * trni_plan_sharing(w, p) * tokens * each * (1 + routed) + gathered;
}

/* Needs the degrees, microbatch, microbatches, sp, zero and recompute of the plan. */
TRNI_FN trn_plan_memory trni_plan_memory_of(const trni_plan_work *w, const trn_plan *p)
{
    const trni_plan_weights n = trni_plan_weights_of(w, p);
    const trn_plan_formats *f = &w->a.formats;
    const bool train = w->a.job == TRN_JOB_TRAIN;
    trn_plan_memory b;
    memset(&b, 0, sizeof b);
    b.weights =
        train ? trni_plan_shared_out(&n, p, p->zero >= TRN_ZERO_WEIGHTS) * trni_plan_bytes_of(f->weights) : n.bytes;
    if (train) {
        b.gradients = trni_plan_shared_out(&n, p, p->zero >= TRN_ZERO_GRADIENTS) * trni_plan_bytes_of(f->gradients);
        b.optimizer = trni_plan_shared_out(&n, p, p->zero >= TRN_ZERO_OPTIMIZER) * trni_plan_optimizer_bytes(w);
    }
    b.activations = trni_plan_activations(w, p);
    b.kv = trni_plan_kv(w, p);
    b.buffers = trni_plan_buffers(w, p, &n);
    b.total = b.weights + b.gradients + b.optimizer + b.activations + b.kv + b.buffers;
    b.capacity = w->whole->hbm_bytes;
    trni_plan_pool(w, p, &b);
    return b;
}

#endif /* TRNI_PLAN_PLAN_MEMORY_H */
