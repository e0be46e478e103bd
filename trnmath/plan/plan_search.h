/* plan/plan_search.h - all plans of a job, the best first; one plan, checked and timed; its collectives.
 * A part of trn_plan.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_PLAN_PLAN_SEARCH_H
#define TRNI_PLAN_PLAN_SEARCH_H

#include "../network/collective_cost.h"
#include "../machine/cost.h"
#include "plan_args.h"

/* ---- all degrees ---- */

typedef struct trn_plan_list {
    int64_t found; /* sets of degrees and orders */
    int64_t kept;  /* of them, in plan[]: the best */
    int64_t legal;
    int64_t tried;                         /* variants whose memory was counted; those that fit were timed */
    int64_t asked;                         /* costs of single products and collectives that this took */
    int64_t reason[TRN_PLAN_REASON_COUNT]; /* how many fell for each */
} trn_plan_list;

/* Fills plan[room] with the best, legal ones first, each of them the fastest of its variants; those that cannot be come
 * last, with the sentence why. TRN_OK also when none is legal: look at list->legal. list is written on success only;
 * plan[] holds nothing of use when memory ran out on the way. */
TRN_API trn_status trn_plan_search(const trn_plan_args *args, trn_plan *plan, int64_t capacity, trn_plan_list *list);

/* One plan, whose tp, cp, ep, dp, pp and order are given; the rest is searched as args allow. An illegal plan is no
 * failure: it says why. */
TRN_API trn_status trn_plan_evaluate(const trn_plan_args *args, trn_plan *plan);

/* One collective of `bytes` a chip (all_gather: the result) over the axes, a set of bits 1 << trn_plan_axis, of a plan
 * whose degrees and order are given; every other group of these axes is at work, too. */
TRN_API trn_status trn_plan_collective(const trn_plan_args *args, const trn_plan *plan, unsigned axes,
                                       trn_collective op, double bytes, double *time_s, trn_algorithm *algorithm);

/* "tp 2 x dp 2"; "" where the level has one value. */
TRN_API void trn_plan_level_text(const trn_topology *net, const trn_plan *plan, int level, char *text, size_t capacity);

#if TRNI_BODIES

#include "plan_degrees.h"
#include "plan_time.h"
#include "plan_answer.h"

/* ---- is it legal? ---- */

__attribute__((unused, format(TRNI_PRINTF, 3, 4))) static bool trni_plan_refuse(trn_plan *p, trn_plan_reason reason,
                                                                                const char *format, ...)
{
    va_list list;
    va_start(list, format);
    trni_vprint(p->why, sizeof p->why, format, list);
    va_end(list);
    p->legal = false;
    p->reason = reason;
    return false;
}

/* "tp 16", or "tp 16 (64 ranks)"; with lnc "tp 64 (16 chips)". */
TRNI_FN const char *trni_plan_tp_text(const trni_plan_work *w, const trn_plan *p, char text[48])
{
    const long long t = (long long)trni_plan_tp_ranks(w, p);
    const int sharing = trni_plan_sharing(w, p);
    if (sharing > 1)
        snprintf(text, 48, "tp %lld (1/%d chip)", t, sharing);
    else if (p->tp_cores)
        snprintf(text, 48, "tp %lld (%d chip%s)", t, p->tp, p->tp == 1 ? "" : "s");
    else if (w->a.ranks_per_chip > 1)
        snprintf(text, 48, "tp %d (%lld ranks)", p->tp, t);
    else
        snprintf(text, 48, "tp %d", p->tp);
    return text;
}

/* Experts spread over ranks of tp, or every expert cut by all of them. */
TRNI_DRIVER bool trni_plan_check_over(const trni_plan_work *w, trn_plan *p, const char *tp)
{
    const trn_model *m = &w->m;
    const int64_t t = trni_plan_tp_ranks(w, p), over = trni_plan_experts_over(w);
    if (over > 1 && (t % over || m->experts % over))
        return trni_plan_refuse(p, TRN_PLAN_EXPERTS,
                                "%lld experts over %lld of the ranks of %s: one of both does not "
                                "divide",
                                (long long)m->experts, (long long)over, tp);
    if (over > 1 && p->ep > 1)
        return trni_plan_refuse(p, TRN_PLAN_EXPERTS,
                                "experts are spread over tp's ranks (experts_over) or by ep, not "
                                "both");
    if (m->moe_intermediate % (t / over) == 0) return true;
    return trni_plan_refuse(p, TRN_PLAN_WIDTH, "moe_intermediate %lld does not divide by %s%s",
                            (long long)m->moe_intermediate, tp,
                            over == 1 ? "" : " over the ranks that have other experts (experts_over)");
}

TRNI_DRIVER bool trni_plan_check_tp(const trni_plan_work *w, trn_plan *p)
{
    const trn_model *m = &w->m;
    const int64_t t = trni_plan_tp_ranks(w, p);
    char text[48];
    const struct {
        const char *name;
        int64_t size;
    } width[] = {
        { "intermediate", m->dense_layers ? m->intermediate : 0 },
        { "shared_intermediate", m->shared_intermediate },
    };
    trni_plan_tp_text(w, p, text);
    const bool looks = m->linear_layers < m->layers; /* has it layers with keys and values? */
    if (looks && m->heads % t && !w->a.pad_heads)
        return trni_plan_refuse(p, TRN_PLAN_HEADS, "%lld heads do not divide by %s, unless more are added (pad_heads)",
                                (long long)m->heads, text);
    if (m->linear_layers && (m->linear_heads % t || (m->linear_key_heads % t && t % m->linear_key_heads)))
        return trni_plan_refuse(p, TRN_PLAN_HEADS, "%lld heads of linear layers, %lld of keys, do not divide by %s",
                                (long long)m->linear_heads, (long long)m->linear_key_heads, text);
    const bool copied = !w->a.no_replicate_kv && t % m->kv_heads == 0;
    if (looks && !m->kv_rank && m->kv_heads % t && !copied && !(w->a.pad_heads && m->heads % t))
        return trni_plan_refuse(p, TRN_PLAN_KV_HEADS, "%lld KV heads do not divide by %s%s", (long long)m->kv_heads,
                                text, t % m->kv_heads ? "" : ", and may not be copied (no_replicate_kv)");
    for (int i = 0; i < 2; i++)
        if (width[i].size % t)
            return trni_plan_refuse(p, TRN_PLAN_WIDTH, "%s %lld does not divide by %s", width[i].name,
                                    (long long)width[i].size, text);
    return trni_plan_check_over(w, p, text);
}

TRNI_DRIVER bool trni_plan_check_layers(const trni_plan_work *w, trn_plan *p)
{
    const long long layers = (long long)w->m.layers, each = (long long)trni_plan_stage_layers(w, p);
    if (layers % p->pp == 0) return true;
    if (!w->a.uneven_stages || layers < p->pp)
        return trni_plan_refuse(p, TRN_PLAN_LAYERS, "%lld layers do not divide by pp %d%s", layers, p->pp,
                                layers < p->pp ? "" : ", unless the last stage may have fewer (uneven_stages)");
    if (each * (p->pp - 1) < layers) return true;
    return trni_plan_refuse(p, TRN_PLAN_LAYERS, "stages of %lld layers: %lld layers do not fill pp %d of them", each,
                            layers, p->pp);
}

TRNI_DRIVER bool trni_plan_check_sizes(const trni_plan_work *w, trn_plan *p)
{
    const int64_t replicas = (int64_t)p->dp * p->ep;
    if (p->ep > 1 && (w->m.experts == 0 || w->m.experts % p->ep))
        return trni_plan_refuse(p, TRN_PLAN_EXPERTS, "%lld experts do not divide by ep %d", (long long)w->m.experts,
                                p->ep);
    if (!trni_plan_check_layers(w, p)) return false;
    if (w->a.sequence % p->cp)
        return trni_plan_refuse(p, TRN_PLAN_SEQUENCE, "sequence %lld does not divide by cp %d",
                                (long long)w->a.sequence, p->cp);
    if (w->a.batch % replicas == 0) return true;
    if (p->ep == 1)
        return trni_plan_refuse(p, TRN_PLAN_BATCH, "batch %lld does not divide by dp %d", (long long)w->a.batch, p->dp);
    return trni_plan_refuse(p, TRN_PLAN_BATCH, "batch %lld does not divide by dp %d x ep %d", (long long)w->a.batch,
                            p->dp, p->ep);
}

/* No digit of a level that only EFA joins. */
TRNI_DRIVER bool trni_plan_check_domain(const trni_plan_work *w, const trni_plan_place *place, trn_plan *p)
{
    const trn_topology *net = w->a.net;
    const int degree[3] = { p->tp_cores ? p->tp_cores : p->tp, p->cp, p->ep };
    for (int l = 0; l < net->levels && !w->a.across_domains; l++) {
        const int span = trn_topology_stride(net, l) * net->level[l].size;
        for (int i = 0; span > w->domain && i < place->parts[l]; i++) {
            const int axis = place->part[l][i].axis;
            if (axis > TRN_AXIS_EP) continue;
            return trni_plan_refuse(p, TRN_PLAN_DOMAIN, "%s %d would reach beyond the %d chips that NeuronLink joins",
                                    trn_plan_axis_name((trn_plan_axis)axis), degree[axis], w->domain);
        }
    }
    return true;
}

/* Some logical cores of one chip: only how many they are. */
TRNI_DRIVER bool trni_plan_check_part(const trni_plan_work *w, trn_plan *p)
{
    trn_collective_args args;
    memset(&args, 0, sizeof args);
    args.net = w->a.net;
    args.ranks_per_chip = w->a.ranks_per_chip;
    const trni_group_rule *rule = trni_group_rule_of(&args);
    if (p->tp_cores == 1 || !rule || trni_group_rule_allows(rule, p->tp_cores)) return true;
    return trni_plan_refuse(p, TRN_PLAN_GROUP, "tp %d: a replica group of %d ranks; %s with %d ranks per chip takes %s",
                            p->tp_cores, p->tp_cores, trn_generation_name(rule->generation), rule->ranks_per_chip,
                            rule->sizes);
}

/* The vendor's rules for the group of all logical cores of tp's chips; asked once for each tp, which lies innermost. */
TRNI_DRIVER bool trni_plan_check_group(trni_plan_work *w, const trni_plan_place *place, trn_plan *p)
{
    if (!w->a.ignore_groups && trni_plan_sharing(w, p) > 1) return trni_plan_check_part(w, p);
    if (w->a.ignore_groups || p->tp == 1) return true;
    if (w->group_tp != p->tp) {
        trn_collective_args args;
        trn_error error;
        memset(&args, 0, sizeof args);
        memset(&error, 0, sizeof error);
        trn_topology net;
        trni_plan_place part;
        trni_plan_place_reduce(place, TRNI_PLAN_AXIS(TP), &net, &part);
        trni_plan_place_groups(&part, TRNI_PLAN_AXIS(TP), w->chips, &args.count, &args.groups);
        args.net = &net;
        args.chips = w->chips;
        args.ranks_per_chip = w->a.lnc ? w->a.ranks_per_chip : w->a.net->ranks_per_chip;
        args.error = &error;
        w->group_tp = p->tp;
        w->group_why[0] = 0;
        const trn_status status = trn_replica_group_check(&args);
        if (status != TRN_OK) trni_copy_text(w->group_why, sizeof w->group_why, error.text);
        if (status == TRN_ENOSPC && w->status == TRN_OK)
            w->status = trni_fail(w->a.error, status, "%.200s", error.text);
    }
    return !w->group_why[0] ||
           trni_plan_refuse(p, TRN_PLAN_GROUP, "tp %d: %.180s", p->tp_cores ? p->tp_cores : p->tp, w->group_why);
}

/* Tables of a recommender are spread by ep, and nothing else is cut but the batch. */
TRNI_DRIVER bool trni_plan_check_tables(const trni_plan_work *w, trn_plan *p)
{
    const struct {
        trn_plan_axis axis;
        int degree;
        trn_plan_reason reason;
    } row[] = {
        { TRN_AXIS_TP, p->tp, TRN_PLAN_WIDTH },
        { TRN_AXIS_CP, p->cp, TRN_PLAN_SEQUENCE },
        { TRN_AXIS_PP, p->pp, TRN_PLAN_LAYERS },
    };
    const int64_t chips = (int64_t)p->dp * p->ep;
    for (int i = 0; i < 3; i++)
        if (row[i].degree > 1)
            return trni_plan_refuse(p, row[i].reason, "a recommender is spread by ep and dp alone, not by %s %d",
                                    trn_plan_axis_name(row[i].axis), row[i].degree);
    if (p->ep > w->m.tables)
        return trni_plan_refuse(p, TRN_PLAN_EXPERTS, "%lld tables, which are not cut, do not fill ep %d",
                                (long long)w->m.tables, p->ep);
    return w->a.batch % chips == 0 || trni_plan_refuse(p, TRN_PLAN_BATCH, "batch %lld does not divide by dp %d x ep %d",
                                                       (long long)w->a.batch, p->dp, p->ep);
}

/* All but the microbatch and HBM. */
TRNI_DRIVER bool trni_plan_check_degrees(trni_plan_work *w, trn_plan *p)
{
    trni_plan_place place;
    trni_plan_place_plan(w->a.net, p, &place);
    if (w->m.tables) return trni_plan_check_tables(w, p) && trni_plan_check_domain(w, &place, p);
    return trni_plan_check_tp(w, p) && trni_plan_check_sizes(w, p) && trni_plan_check_domain(w, &place, p) &&
           trni_plan_check_group(w, &place, p);
}

/* ---- the variants of one set of degrees ---- */

TRNI_DRIVER bool trni_plan_check_memory(const trni_plan_work *w, trn_plan *p)
{
    static const char *const name[] = {
        "weights", "gradients", "optimizer states", "activations", "KV cache", "buffers"
    };
    p->memory = w->m.tables ? trni_plan_tables_memory(w, p) : trni_plan_memory_of(w, p);
    const trn_plan_memory *b = &p->memory;
    const double part[] = { b->weights, b->gradients, b->optimizer, b->activations, b->kv, b->buffers };
    int most = 0;
    if (b->total <= b->capacity) return true;
    for (int i = 1; i < 6; i++)
        if (part[i] > part[most]) most = i;
    return trni_plan_refuse(p, TRN_PLAN_HBM, "HBM short by %.1f GiB: %.1f of %.0f GiB, %.1f of them %s%s",
                            (b->total - b->capacity) / TRNI_GIB, b->total / TRNI_GIB, b->capacity / TRNI_GIB,
                            part[most] / TRNI_GIB, name[most],
                            b->kv_elsewhere > 0 ? ", each key once in tp's pool" : "");
}

/* Is `a` the one to keep of two variants? Legal before illegal, then by time, or by what is missing. */
TRNI_FN bool trni_plan_better(const trn_plan *a, const trn_plan *b)
{
    if (a->legal != b->legal) return a->legal;
    if (a->legal) return a->expected_s < b->expected_s;
    return a->reason == TRN_PLAN_HBM && (b->reason != TRN_PLAN_HBM || a->memory.total < b->memory.total);
}

typedef struct trni_plan_pick {
    trn_plan best;
    bool any;
    int64_t tried;
} trni_plan_pick;

/* One variant, complete but for memory and time. */
TRNI_FN bool trni_plan_try(trni_plan_work *w, const trn_plan *variant, trni_plan_pick *pick)
{
    trn_plan p = *variant;
    pick->tried++;
    p.legal = true;
    p.reason = TRN_PLAN_LEGAL;
    const bool fits = trni_plan_check_memory(w, &p);
    if (fits) trni_plan_time_of(w, &p);
    if (!pick->any || trni_plan_better(&p, &pick->best)) pick->best = p;
    pick->any = true;
    return fits;
}

/* The least recomputation that fits: more of it only takes longer. */
TRNI_FN void trni_plan_try_recompute(trni_plan_work *w, trn_plan *p, trni_plan_pick *pick)
{
    if (w->a.job != TRN_JOB_TRAIN || w->a.recompute || w->m.tables) {
        p->recompute = w->a.job == TRN_JOB_TRAIN && !w->m.tables ? w->a.recompute : TRN_RECOMPUTE_NONE;
        trni_plan_try(w, p, pick);
        return;
    }
    for (int kind = TRN_RECOMPUTE_NONE; kind <= TRN_RECOMPUTE_FULL; kind++) {
        p->recompute = (trn_recompute)kind;
        if (trni_plan_try(w, p, pick)) return;
    }
}

TRNI_FN void trni_plan_try_zero(trni_plan_work *w, trn_plan *p, trni_plan_pick *pick)
{
    const bool alone = (int64_t)p->dp * p->cp * p->ep == 1; /* nobody to share with */
    const bool any = w->a.zero == TRN_ZERO_ANY;
    p->zero = any || w->a.zero == TRN_ZERO_AUTO ? TRN_ZERO_OPTIMIZER : w->a.zero;
    if (w->a.job != TRN_JOB_TRAIN || alone || w->m.tables) p->zero = TRN_ZERO_NONE;
    trni_plan_try_recompute(w, p, pick);
    if (!any || p->zero == TRN_ZERO_NONE) return;
    p->zero = TRN_ZERO_WEIGHTS;
    trni_plan_try_recompute(w, p, pick);
}

/* As the vendor's stack has it: on wherever it can be. sp cuts the tokens of a microbatch by the ranks of tp. */
TRNI_FN bool trni_plan_sp_divides(const trni_plan_work *w, const trn_plan *p)
{
    return p->microbatch * (w->a.sequence / p->cp) % trni_plan_tp_ranks(w, p) == 0;
}

TRNI_FN void trni_plan_try_sp(trni_plan_work *w, trn_plan *p, trni_plan_pick *pick)
{
    const bool can = trni_plan_tp_ranks(w, p) > 1 && w->a.job != TRN_JOB_DECODE && !w->a.no_sp;
    p->sp = can && trni_plan_sp_divides(w, p);
    trni_plan_try_zero(w, p, pick);
}

/* Sequences of a replica in microbatches of the size that is asked, or of all sizes that are worth a try. Decode: as
 * many microbatches as stages, or the next smaller number that divides. */
TRNI_FN void trni_plan_try_microbatches(trni_plan_work *w, trn_plan *p, trni_plan_pick *pick)
{
    const int64_t each = w->a.batch / ((int64_t)p->dp * p->ep);
    int64_t low = 1, high = each < 16 ? each : 16;
    if (w->a.job == TRN_JOB_DECODE && !w->a.microbatch) {
        int64_t count = p->pp < each ? p->pp : each;
        while (each % count) count--;
        low = high = each / count;
    }
    if (w->m.tables) low = high = each; /* samples are small: all at once */
    if (w->a.microbatch) low = high = w->a.microbatch;
    for (p->microbatch = low; p->microbatch <= high; p->microbatch *= 2) {
        if (each % p->microbatch) continue;
        p->microbatches = each / p->microbatch;
        trni_plan_try_sp(w, p, pick);
    }
    if (!pick->any) {
        pick->best = *p;
        trni_plan_refuse(&pick->best, TRN_PLAN_MICROBATCH,
                         "the %lld sequences of a replica do not divide into microbatches "
                         "of %lld",
                         (long long)each, (long long)w->a.microbatch);
        pick->any = true;
    }
}

/* ---- all degrees ---- */

typedef struct trni_plan_search {
    trni_plan_work *w;
    trn_plan *plan;
    int64_t capacity, worst; /* place of the last in order, once all places are taken */
    trn_plan_list list;
} trni_plan_search;

/* The order of the answer. Ties: the smaller tp, cp, ep, pp; then the order of axes. */
TRNI_FN bool trni_plan_before(const trn_plan *a, const trn_plan *b)
{
    const int x[] = { a->tp, a->tp_cores, a->cp, a->ep, a->pp, (int)a->order };
    const int y[] = { b->tp, b->tp_cores, b->cp, b->ep, b->pp, (int)b->order };
    if (trni_plan_better(a, b)) return true;
    if (trni_plan_better(b, a)) return false;
    for (int i = 0; i < 6; i++)
        if (x[i] != y[i]) return x[i] < y[i];
    return false;
}

TRNI_FN int trni_plan_compare(const void *a, const void *b)
{
    const trn_plan *x = (const trn_plan *)a, *y = (const trn_plan *)b;
    return trni_plan_before(x, y) ? -1 : trni_plan_before(y, x) ? 1 : 0;
}

TRNI_FN void trni_plan_keep(trni_plan_search *s, const trn_plan *p)
{
    trn_plan_list *list = &s->list;
    list->found++;
    list->legal += p->legal;
    list->reason[p->reason]++;
    if (list->kept < s->capacity)
        s->plan[list->kept++] = *p;
    else if (s->capacity && trni_plan_before(p, &s->plan[s->worst]))
        s->plan[s->worst] = *p;
    else
        return;
    for (int64_t i = s->worst = 0; list->kept == s->capacity && i < s->capacity; i++)
        if (trni_plan_before(&s->plan[s->worst], &s->plan[i])) s->worst = i;
}

TRNI_FN void trni_plan_consider(trni_plan_search *s, trn_plan *p)
{
    trni_plan_pick pick;
    memset(&pick, 0, sizeof pick);
    pick.best = *p;
    if (trni_plan_check_degrees(s->w, &pick.best)) trni_plan_try_microbatches(s->w, p, &pick);
    s->list.tried += pick.tried;
    trni_plan_keep(s, &pick.best);
}

/* Is this degree to be looked at? */
TRNI_FN bool trni_plan_wanted(const trni_plan_work *w, trn_plan_axis axis, int64_t degree)
{
    return !w->a.degree[axis] || w->a.degree[axis] == degree;
}

TRNI_FN void trni_plan_each_order(trni_plan_search *s, trn_plan *p)
{
    p->order = TRN_ORDER_DP_PP;
    trni_plan_consider(s, p);
    if (p->dp == 1 || p->pp == 1) return;
    p->order = TRN_ORDER_PP_DP;
    trni_plan_consider(s, p);
}

/* dp is what pp leaves, once for each replica on a chip. */
TRNI_FN void trni_plan_each_pp(trni_plan_search *s, trn_plan *p, int chips)
{
    for (int pp = 1; pp <= s->w->a.max_pp && pp <= chips; pp++) {
        if (chips % pp || !trni_plan_wanted(s->w, TRN_AXIS_PP, pp)) continue;
        const int64_t dp = (int64_t)(chips / pp) * trni_plan_sharing(s->w, p);
        if (dp > INT32_MAX || !trni_plan_wanted(s->w, TRN_AXIS_DP, dp)) continue;
        p->pp = pp;
        p->dp = (int)dp;
        trni_plan_each_order(s, p);
    }
}

/* ep of models with neither experts nor tables is 1; tp x cp x ep stays within what NeuronLink joins, unless it
 * may leave it. */
TRNI_FN void trni_plan_each_ep(trni_plan_search *s, trn_plan *p, int chips, int most)
{
    const int last = s->w->m.experts || s->w->m.tables ? most : 1;
    for (int ep = 1; ep <= last; ep++) {
        if (chips % ep || !trni_plan_wanted(s->w, TRN_AXIS_EP, ep)) continue;
        p->ep = ep;
        trni_plan_each_pp(s, p, chips / ep);
    }
}

TRNI_FN void trni_plan_each_cp(trni_plan_search *s, trn_plan *p, int chips, int most)
{
    for (int cp = 1; cp <= most; cp++) {
        if (chips % cp || !trni_plan_wanted(s->w, TRN_AXIS_CP, cp)) continue;
        p->cp = cp;
        trni_plan_each_ep(s, p, chips / cp, most / cp);
    }
}

/* With lnc first the parts of one chip. */
TRNI_FN void trni_plan_each(trni_plan_search *s)
{
    const int chips = s->w->a.net->chips, most = s->w->a.across_domains ? chips : s->w->domain;
    const int cores = s->w->a.lnc ? s->w->a.ranks_per_chip : 0;
    trn_plan p;
    memset(&p, 0, sizeof p);
    p.tp = 1;
    for (p.tp_cores = 1; p.tp_cores < cores; p.tp_cores++)
        if (cores % p.tp_cores == 0 && trni_plan_wanted(s->w, TRN_AXIS_TP, p.tp_cores))
            trni_plan_each_cp(s, &p, chips, most);
    for (p.tp = 1; p.tp <= most; p.tp++) {
        p.tp_cores = p.tp * cores;
        if (chips % p.tp == 0 && trni_plan_wanted(s->w, TRN_AXIS_TP, cores ? p.tp_cores : p.tp))
            trni_plan_each_cp(s, &p, chips / p.tp, most / p.tp);
    }
}

TRN_API trn_status trn_plan_search(const trn_plan_args *args, trn_plan *plan, int64_t capacity, trn_plan_list *list)
{
    trni_plan_work w;
    trni_plan_search s;
    TRNI_ENTER(args);
    if (!list || capacity < 0 || (capacity && !plan)) {
        trni_fail(args->error, TRN_EINVAL, "list is null, or plan has no room for %lld", (long long)capacity);
        return TRN_EINVAL; /* so that gcc sees that list is written whenever TRN_OK is returned; below, too */
    }
    trn_status status = trni_plan_work_begin(&w, args, 1 << 15);
    if (status != TRN_OK) return status;
    memset(&s, 0, sizeof s);
    s.w = &w;
    s.plan = (trn_plan *)malloc(((size_t)capacity + 1) * sizeof *plan); /* the caller's are written at the end */
    s.capacity = capacity;
    if (s.plan)
        trni_plan_each(&s);
    else
        w.status = trni_fail(args->error, TRN_ENOSPC, "no memory for %lld plans", (long long)capacity);
    s.list.asked = w.asked;
    status = w.status;
    trni_plan_work_end(&w);
    if (status == TRN_OK && s.list.kept) memcpy(plan, s.plan, (size_t)s.list.kept * sizeof *plan);
    free(s.plan);
    if (status != TRN_OK) return status;
    if (!s.list.found) {
        trni_plan_none_found(args, w.a.lnc ? w.a.ranks_per_chip : 0);
        return TRN_EINVAL;
    }
    if (s.list.kept) qsort(plan, (size_t)s.list.kept, sizeof *plan, trni_plan_compare);
    *list = s.list;
    return TRN_OK;
}

TRN_API trn_status trn_plan_evaluate(const trn_plan_args *args, trn_plan *plan)
{
    trni_plan_work w;
    trni_plan_pick pick;
    TRNI_ENTER(args);
    if (!plan) return trni_fail(args->error, TRN_EINVAL, "plan is null");
    trn_status status = trni_plan_work_begin(&w, args, 1 << 10);
    if (status != TRN_OK) return status;
    trn_plan p;
    memset(&p, 0, sizeof p);
    p.tp = plan->tp;
    p.tp_cores = plan->tp_cores;
    trni_plan_count_tp(&w, &p);
    p.cp = plan->cp;
    p.ep = plan->ep;
    p.dp = plan->dp;
    p.pp = plan->pp;
    p.order = plan->order;
    memset(&pick, 0, sizeof pick);
    if (!trni_plan_fills(&w, &p)) status = trni_plan_not_filled(&w, &p);
    if (status == TRN_OK) {
        pick.best = p;
        if (trni_plan_check_degrees(&w, &pick.best)) trni_plan_try_microbatches(&w, &p, &pick);
        status = w.status;
    }
    trni_plan_work_end(&w);
    if (status == TRN_OK) *plan = pick.best;
    return status;
}

TRN_API trn_status trn_plan_collective(const trn_plan_args *args, const trn_plan *plan, unsigned axes,
                                       trn_collective op, double bytes, double *time_s, trn_algorithm *algorithm)
{
    trni_plan_work w;
    trni_plan_place place;
    TRNI_ENTER(args);
    if (!plan || !time_s || !algorithm || (unsigned)op >= TRN_BROADCAST) {
        trni_fail(args->error, TRN_EINVAL,
                  "plan, time_s or algorithm is null, or op %d is none of "
                  "all_gather, reduce_scatter, all_reduce and all_to_all",
                  (int)op);
        return TRN_EINVAL;
    }
    if (!(bytes >= 0 && bytes <= (double)TRNI_MOST_BYTES)) {
        trni_fail(args->error, TRN_EINVAL, "bytes is %g, expected 0 to 2^%d", bytes, TRNI_ADDRESS_BITS);
        return TRN_EINVAL;
    }
    trn_status status = trni_plan_work_begin(&w, args, 1);
    if (status != TRN_OK) return status;
    double t = 0;
    trn_algorithm found = TRN_ALGORITHM_AUTO;
    if (trni_plan_place_plan(w.a.net, plan, &place))
        t = trni_plan_work_collective(&w, &place, axes, op, bytes, 1, &found).ideal_s;
    else
        w.status = trni_fail(args->error, TRN_EINVAL, "the degrees of plan are not the %d chips", w.a.net->chips);
    status = w.status;
    trni_plan_work_end(&w);
    if (status != TRN_OK) return status;
    *time_s = t;
    *algorithm = found;
    return TRN_OK;
}

TRN_API void trn_plan_level_text(const trn_topology *net, const trn_plan *plan, int level, char *text, size_t capacity)
{
    TRNI_FLOATS;
    trni_plan_place p;
    size_t used = 0;
    if (!capacity) return;
    text[0] = 0;
    if (level < 0 || level >= net->levels || !trni_plan_place_plan(net, plan, &p)) return;
    for (int i = 0; i < p.parts[level] && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%s %d", i ? " x " : "",
                                 trn_plan_axis_name((trn_plan_axis)p.part[level][i].axis), p.part[level][i].factor);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_PLAN_PLAN_SEARCH_H */
