/* network/collective_time.h - how long a schedule takes, and what no schedule can beat.
 * Behind trn_collective.h trn_collective_cost.h. SPDX-License-Identifier: MIT
 *
 * DOES: loads the links once for every kind of step. A step takes the longest latency of its messages (DMA start, then
 *     the links of the route) and the time of its fullest link, both directions and all groups and channels counted.
 *     Steps follow each other. Memory traffic runs beside the links: a phase takes the longest of links, HBM and DMA
 *     (assumed). Everything is linear in the bytes. Bounds are of all chips alike, or, where a graph joins some better
 *     than others, of the worst.
 * DOES NOT: model other traffic, packets, or messages that start before the step before has ended everywhere.
 *
 * KNOWN FROM: bounds: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and
 *     experience", 2007.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_TIME_H
#define TRNI_NETWORK_COLLECTIVE_TIME_H

#include <limits.h>
#include <math.h>

#include "collective_load.h"

typedef struct trni_times {
    int steps;
    double latency_s;
    double link_s, hbm_s, dma_s;                                 /* per byte, each phase's sums */
    double slope_s;                                              /* per byte: the longest of the three in each phase */
    double expected_link_s, expected_memory_s, expected_slope_s; /* the same at the rates that are reached */
    int64_t link; /* the fullest link of the steps that take longest; -1 = none */
} trni_times;

enum { TRNI_CC_SEGMENTS = 16 }; /* a broadcast along a ring is cut into so many pieces (assumed) */

/* ---- the steps of a phase ---- */

/* Where a channel is in a step: which stage, which of its steps, and which kind of step that is. Steps of one kind load
 * the links alike, in proportion to `scale`. */
typedef struct trni_place {
    int stage; /* -1: finished */
    int step, kind;
    int same; /* steps from here on that are of this kind */
    double scale;
} trni_place;

TRNI_FN bool trni_stage_is_ring(const trni_cc_stage *st)
{
    return st->how == TRNI_RING_UP || st->how == TRNI_RING_DOWN;
}

TRNI_FN int trni_step_kind(const trni_cc_stage *st, trni_phase phase, int step)
{
    const int n = st->size, last = trni_pattern_steps(st->how, n) - 1;
    if (trni_stage_is_ring(st) || phase == TRNI_EXCHANGE) return 0;
    if (st->how == TRNI_BOTH_WAYS && phase == TRNI_GATHER) return step == last && n % 2 == 0 ? 2 : 1;
    return step == 0 ? 0 : step == last ? 2 : 1;
}

TRNI_FN double trni_step_scale(const trni_cc_stage *st, trni_phase phase, int step)
{
    trni_hop move[TRNI_HOPS];
    if (phase != TRNI_EXCHANGE) return 1;
    trni_exchange_moves(st->how, st->size, step, 0, move);
    return move[0].weight;
}

TRNI_FN trni_place trni_place_of(const trni_cc_channel *c, trni_phase phase, int step)
{
    trni_place p = { -1, 0, 0, INT_MAX, 1 };
    for (int i = 0; i < c->stages; i++) {
        const int stage = phase == TRNI_GATHER ? c->stages - 1 - i : i;
        const int steps = trni_pattern_steps(c->stage[stage].how, c->stage[stage].size);
        if (step < steps) {
            p.stage = stage;
            p.step = step;
            p.kind = trni_step_kind(&c->stage[stage], phase, step);
            p.same = trni_stage_is_ring(&c->stage[stage]) && phase != TRNI_EXCHANGE ? steps - step : 1;
            p.scale = trni_step_scale(&c->stage[stage], phase, step);
            return p;
        }
        step -= steps;
    }
    return p;
}

TRNI_FN int trni_channel_steps(const trni_cc_channel *c)
{
    int steps = 0;
    for (int i = 0; i < c->stages; i++) steps += trni_pattern_steps(c->stage[i].how, c->stage[i].size);
    return steps;
}

TRNI_FN int trni_schedule_steps(const trni_schedule *s)
{
    int steps = 0;
    for (int k = 0; k < s->channels; k++)
        if (trni_channel_steps(&s->channel[k]) > steps) steps = trni_channel_steps(&s->channel[k]);
    return steps;
}

/* A run of steps of one kind. */
typedef struct trni_run {
    trni_place place[TRNI_MAX_CHANNELS];
    double link_s, latency_s; /* of a step of scale 1, in seconds per byte and seconds */
    double reached_s;         /* link_s at the rates that are reached */
    double weight;            /* sum of the scales */
    int steps;
    int64_t link;
    bool any;
} trni_run;

TRNI_FN bool trni_run_continues(const trni_run *run, const trni_place *place, int channels, double *scale)
{
    *scale = 1;
    for (int k = 0; k < channels; k++) {
        const trni_place *a = &run->place[k], *b = &place[k];
        const double ratio = a->scale > 0 ? b->scale / a->scale : 1;
        if (a->stage != b->stage || a->kind != b->kind) return false;
        if (k && ratio != *scale) return false;
        *scale = ratio;
    }
    return run->any;
}

/* A link of the topology that the watched one stands for. */
TRNI_FN int64_t trni_load_link(const trni_load *w, int64_t watched)
{
    int64_t chip = 0;
    while (chip < w->block && w->cell[chip] != watched / w->slots) chip++;
    return watched < 0 ? -1 : chip * w->slots + watched % w->slots;
}

/* What a run's steps send over each link. */
TRNI_FN void trni_run_carries(const trni_load *w, const trni_run *run)
{
    const int64_t links = (int64_t)w->sample * w->slots;
    for (int k = 0; k < w->layers; k++)
        for (int64_t i = 0; i < links; i++) w->l->carried[i] += w->link[k * links + i] * run->weight;
}

/* Links that took longest in all runs so far win the name of the bottleneck. */
TRNI_FN void trni_run_end(trni_load *w, trni_run *run, trni_times *t, double *longest)
{
    if (!run->any) return;
    if (w->l->carried) trni_run_carries(w, run);
    for (int i = 0; i < w->sample; i++) {
        w->hbm_sum[i] += w->hbm[i] * run->weight;
        w->dma_sum[i] += w->dma[i] * run->weight;
    }
    t->latency_s += run->latency_s * run->steps;
    t->steps += run->latency_s > 0 || run->link_s > 0 ? run->steps : 0;
    t->link_s += run->link_s * run->weight;
    t->expected_link_s += run->reached_s * run->weight;
    if (run->link_s * run->weight > *longest) {
        *longest = run->link_s * run->weight;
        t->link = trni_load_link(w, run->link);
    }
    run->any = false;
}

TRNI_FN void trni_load_clear(trni_load *w)
{
    memset(w->link, 0, sizeof(double) * (size_t)w->layers * (size_t)w->sample * (size_t)w->slots);
    memset(w->hbm, 0, sizeof(double) * (size_t)w->sample);
    memset(w->dma, 0, sizeof(double) * (size_t)w->sample);
    w->step_latency_s = -1;
}

/* The fullest link of the present step. */
TRNI_FN void trni_load_fullest(const trni_load *w, trni_run *run)
{
    const int64_t links = (int64_t)w->sample * w->slots;
    double fullest = 0;
    run->link_s = run->reached_s = 0;
    run->link = -1;
    for (int k = 0; k < w->layers; k++) {
        double most = 0, reached = 0;
        for (int64_t i = 0; i < links; i++) {
            if (w->link[k * links + i] <= 0) continue; /* of a thousand chips each joined to each, nearly all */
            const double bytes = w->link[k * links + i] / (w->share ? w->share[i] : 1);
            const double s = bytes / w->rate[i % w->slots], reached_s = bytes / w->reached[i % w->slots];
            if (reached_s > reached) reached = reached_s;
            if (s <= most) continue;
            most = s;
            if (s > fullest) run->link = i;
            if (s > fullest) fullest = s;
        }
        run->link_s += most;
        run->reached_s += reached;
    }
}

/* DMA start and the longest of the messages; nothing where nobody sends. */
TRNI_FN double trni_step_latency(const trni_load *w)
{
    return w->step_latency_s < 0 ? 0 : w->net->start_s + w->step_latency_s;
}

/* What has been loaded is a run by itself: so many steps of latency, and `fill` times the fullest link. */
TRNI_FN void trni_step_end(trni_load *w, trni_times *t, int steps, double fill, double *longest)
{
    trni_run run;
    memset(&run, 0, sizeof run);
    trni_load_fullest(w, &run);
    run.link_s *= fill;
    run.reached_s *= fill;
    run.latency_s = trni_step_latency(w);
    run.steps = steps;
    run.weight = 1;
    run.any = true;
    trni_run_end(w, &run, t, longest);
}

TRNI_FN void trni_run_begin(trni_load *w, trni_run *run, const trni_place *place, trni_phase phase)
{
    bool free_step = true;
    trni_load_clear(w);
    for (int k = 0; k < w->s->channels; k++) {
        const trni_cc_channel *c = &w->s->channel[k];
        run->place[k] = place[k];
        if (place[k].stage < 0) continue;
        const trni_cc_stage *st = &c->stage[place[k].stage];
        trni_load_stage(w, c, place[k].stage, phase, place[k].step);
        free_step = free_step && trni_step_is_free(st->how, st->size, place[k].step, phase == TRNI_REDUCE);
    }
    trni_load_fullest(w, run);
    run->latency_s = free_step ? 0 : trni_step_latency(w);
    run->any = true;
    run->weight = 0;
    run->steps = 0;
}

/* Seconds of so many bytes, at a share of a rate; a rate of 0 is no limit. */
TRNI_FN double trni_memory_s(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

/* The sums of memory traffic become time, and the phase's slope: of links, HBM and DMA the longest. `before` is what
 * was known when the phase began; NULL: nothing. */
TRNI_FN void trni_phase_end(trni_load *w, trni_times *t, const trni_times *before)
{
    double hbm = 0, dma = 0;
    for (int i = 0; i < w->sample; i++) {
        const double left = w->share ? w->chip_share[i] : 1;
        if (w->hbm_sum[i] / left > hbm) hbm = w->hbm_sum[i] / left;
        if (w->dma_sum[i] / left > dma) dma = w->dma_sum[i] / left;
        w->hbm_sum[i] = w->dma_sum[i] = 0;
    }
    const trn_calibration *c = &w->l->calibration;
    const double hbm_s = trni_memory_s(hbm * c->memory, w->net->hbm_bytes_per_s);
    const double dma_s = trni_memory_s(dma * c->memory, w->net->dma_bytes_per_s);
    const double link = t->link_s - (before ? before->link_s : 0), memory = hbm_s > dma_s ? hbm_s : dma_s;
    t->hbm_s += hbm_s;
    t->dma_s += dma_s;
    t->slope_s += link > memory ? link : memory;
    const double reached = t->expected_link_s - (before ? before->expected_link_s : 0);
    const double reached_memory = fmax(trni_memory_s(hbm, w->net->hbm_bytes_per_s * c->hbm),
                                       trni_memory_s(dma, w->net->dma_bytes_per_s * c->dma));
    t->expected_memory_s += reached_memory;
    t->expected_slope_s += fmax(reached, reached_memory);
}

TRNI_FN void trni_load_phase(trni_load *w, trni_phase phase, trni_times *t)
{
    const int steps = trni_schedule_steps(w->s);
    const trni_times before = *t;
    double longest = 0;
    trni_run run;
    memset(&run, 0, sizeof run);
    for (int step = 0, same; step < steps; step += same) {
        trni_place place[TRNI_MAX_CHANNELS];
        double scale;
        same = steps - step;
        for (int k = 0; k < w->s->channels; k++) {
            place[k] = trni_place_of(&w->s->channel[k], phase, step);
            if (place[k].same < same) same = place[k].same;
        }
        if (!trni_run_continues(&run, place, w->s->channels, &scale)) {
            trni_run_end(w, &run, t, &longest);
            trni_run_begin(w, &run, place, phase);
            scale = 1;
        }
        run.weight += scale * same;
        run.steps += same;
    }
    trni_run_end(w, &run, t, &longest);
    trni_phase_end(w, t, &before);
}

/* ---- what is not a phase of stages ---- */

/* Everybody sends everything to everybody, in one step. */
TRNI_FN void trni_load_single_step(trni_load *w, trni_times *t)
{
    const trni_cc_channel all = { 1, NULL, 1, { { TRNI_DIRECT, w->s->ranks, 1, w->l->calibration.mesh } } };
    double longest = 0;
    trni_load_clear(w);
    trni_scene e = { w, &all, &all.stage[0], 0, 0, 1, false };
    for (e.group = w->group; e.group < w->groups; e.group++)
        for (int v = 0; v < w->s->ranks; v++) {
            trni_hop move[TRNI_HOPS];
            trni_reduce_moves(TRNI_DIRECT, w->s->ranks, 0, v, move);
            trni_scene_move(&e, &move[0]);
        }
    trni_step_end(w, t, 1, 1, &longest);
    trni_phase_end(w, t, NULL);
}

/* Hops that a ring's broadcast takes to reach its last member, each way. */
TRNI_FN int trni_spread_hops(const trni_cc_stage *st, int way)
{
    if (st->how == TRNI_BOTH_WAYS) return way > 0 ? st->size / 2 : (st->size - 1) / 2;
    return trni_pattern_way(st->how) == way ? st->size - 1 : 0;
}

/* One stage of a broadcast in one group: from its root to everyone, all hops of a ring at work at once. Where one place
 * stands for all units, so does one hop. */
TRNI_FN void trni_cc_spread_group(const trni_scene *e, int root)
{
    const int n = e->stage->size;
    if (e->stage->how == TRNI_DIRECT) {
        trni_hop all = trni_hop_of(root, root, n);
        all.to = TRNI_NOBODY;
        trni_scene_move(e, &all);
        return;
    }
    for (int way = -1; way <= 1; way += 2) {
        const int hops = trni_spread_hops(e->stage, way);
        for (int i = 0; i < (e->folded && hops > 1 ? 1 : hops); i++) {
            const trni_hop hop = trni_hop_of(root + way * (i + 1), root + way * i, n);
            trni_scene_move(e, &hop);
        }
    }
}

/* One stage, in all groups where it happens. Whole: the outermost stage goes first, so in groups whose digits of the
 * stages before are the root's. Scattered: the first stage goes first, so in groups whose digits of those behind are
 * the root's, and each member is sent its own sub-block, by its route. */
TRNI_FN void trni_spread_stage(trni_load *w, const trni_cc_channel *c, int stage)
{
    const trni_cc_stage *st = &c->stage[stage];
    const bool scattered = w->s->scattered;
    const int root = trni_position_of(w->s, c, w->l->ask->root), unit = w->block * w->l->ranks_per_chip;
    const int positions = w->folded ? unit : w->s->ranks, watched_root = w->folded ? root % unit : root;
    trni_cc_stage direct = *st;
    if (scattered) direct.how = TRNI_DIRECT;
    const double bytes = scattered ? trni_stage_bytes(c, stage, TRNI_REDUCE) : c->share;
    trni_scene e = { w, c, &direct, 0, 0, bytes, w->folded && st->stride >= unit };
    for (e.group = w->group; e.group < w->groups; e.group++)
        for (int p = 0; p < positions; p++) {
            bool active = trni_stage_digit(st, p) == 0;
            for (int i = scattered ? stage + 1 : 0; i < (scattered ? c->stages : stage) && active; i++)
                active = trni_stage_digit(&c->stage[i], p) == trni_stage_digit(&c->stage[i], watched_root);
            e.base = p;
            if (active) trni_cc_spread_group(&e, trni_stage_digit(st, watched_root));
        }
}

/* Hops that the slowest channel's stage takes, one after the other. */
TRNI_FN int trni_spread_steps(const trni_load *w, const trni_cc_channel *c, int stage, int hops)
{
    for (int way = -1; way <= 1 && !w->s->scattered && c->stage[stage].how != TRNI_DIRECT; way += 2)
        if (trni_spread_hops(&c->stage[stage], way) > hops) hops = trni_spread_hops(&c->stage[stage], way);
    return hops;
}

/* Stage after stage, the channels side by side. */
TRNI_FN void trni_load_spread(trni_load *w, trni_times *t)
{
    int stages = 0;
    double longest = 0;
    for (int k = 0; k < w->s->channels; k++)
        if (w->s->channel[k].stages > stages) stages = w->s->channel[k].stages;
    for (int i = 0; i < stages; i++) {
        int hops = 1;
        trni_load_clear(w);
        for (int k = 0; k < w->s->channels; k++) {
            const trni_cc_channel *c = &w->s->channel[k];
            const int stage = w->s->scattered ? i : c->stages - 1 - i;
            if (stage < 0 || stage >= c->stages) continue;
            trni_spread_stage(w, c, stage);
            hops = trni_spread_steps(w, c, stage, hops);
        }
        trni_step_end(w, t, hops, 1 + (double)(hops - 1) / (double)TRNI_CC_SEGMENTS, &longest);
    }
    trni_phase_end(w, t, NULL);
    if (w->s->scattered) trni_load_phase(w, TRNI_GATHER, t);
}

TRNI_FN void trni_load_pairs(trni_load *w, trni_times *t)
{
    double longest = 0;
    trni_load_clear(w);
    const bool one = w->l->ask->op == TRN_SEND_RECV;
    const int first = one ? w->l->ask->root : 0, end = one ? first + 1 : w->l->ranks;
    for (int g = w->group; g < w->groups; g++)
        for (int r = first; r < end; r++) {
            const int to = trni_target_of(w->l->ask, r);
            if (to < 0 || to == r) continue;
            trni_load_read(w, g, r, to, 1, 1);
            trni_load_write(w, g, to, 1, 1, 1);
        }
    trni_step_end(w, t, 1, 1, &longest);
    trni_phase_end(w, t, NULL);
}

TRNI_FN trn_status trni_load_times(const trni_layout *l, const trni_schedule *s, trni_times *t)
{
    trni_load w;
    double *loads = NULL;
    int *tables = NULL;
    const trn_collective op = l->ask->op;
    memset(t, 0, sizeof *t);
    t->link = -1;
    trn_status status = l->ranks > 1 ? trni_load_init(&w, l, s, &loads, &tables) : TRN_OK;
    if (status == TRN_OK && l->ranks > 1) {
        if (op == TRN_PERMUTE || op == TRN_SEND_RECV)
            trni_load_pairs(&w, t);
        else if (op == TRN_BROADCAST)
            trni_load_spread(&w, t);
        else if (op == TRN_ALL_TO_ALL)
            trni_load_phase(&w, TRNI_EXCHANGE, t);
        else if (s->single_step)
            trni_load_single_step(&w, t);
        else {
            if (op != TRN_ALL_GATHER) trni_load_phase(&w, TRNI_REDUCE, t);
            if (op != TRN_REDUCE_SCATTER) trni_load_phase(&w, TRNI_GATHER, t);
        }
        if (w.lost) status = trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the search for a detour");
    }
    free(loads);
    free(tables);
    return status;
}

/* ---- bounds ---- */

typedef struct trni_bounds {
    double latency_s, slope_s;
} trni_bounds;

/* Bytes of each of `parts` equal parts of a group that have to leave it, per byte of the collective's size; a part has
 * `inside` of all ranks. */
TRNI_FN double trni_bound_bytes(const trni_layout *l, double parts, double inside)
{
    const double away = (parts - 1) / parts;
    switch (l->ask->op) {
    case TRN_ALL_REDUCE: return 2 * away;
    case TRN_ALL_TO_ALL: return inside * away;
    case TRN_ALL_GATHER:
    case TRN_REDUCE_SCATTER: return away;
    default: return parts > 1 ? 1 : 0;
    }
}

TRNI_FN void trni_bound_at_least(trni_bounds *b, double bytes, double rate)
{
    if (rate > 0 && bytes / rate > b->slope_s) b->slope_s = bytes / rate;
}

/* Does what goes over this level stay among the chips of the first `dims` dimensions, all of whose digits the group
 * has? */
TRNI_FN bool trni_level_stays(const trni_layout *l, int dims, int level)
{
    const trn_topology *net = l->ask->net;
    for (int d = 0; d < dims; d++)
        if (l->dim[d].level == level) /* a switch joins everything below it, too */
            return l->dim[d].wiring != TRN_WIRING_SWITCH ||
                   trni_layout_chips(l, d + 1) == trn_topology_stride(net, level) * net->level[level].size;
    return false;
}

/* One-way rate out of a chip to other chips than those of the first `dims` dimensions. */
TRNI_FN double trni_rate_leaving(const trni_layout *l, int dims)
{
    const trn_topology *net = l->ask->net;
    double rate = 0;
    for (int i = 0; i < trn_topology_slots(net); i++) {
        trn_link link;
        if (!trni_link_sound(net, i, &link) || trni_level_stays(l, dims, link.level)) continue;
        if (link.wiring != TRN_WIRING_SWITCH || link.from < net->chips) rate += link.bytes_per_s;
    }
    return rate;
}

/* Farthest chip of the group, from the root or, where all have something to say, from the first; messages take the
 * shortest routes. */
TRNI_FN double trni_bound_latency(const trni_layout *l)
{
    const trn_collective_args *a = l->ask;
    double most = 0;
    const int chips = trni_group_chips(a) < 1024 ? trni_group_chips(a) : 1024;
    const int from = trni_chip_of_rank(a, 0, a->op == TRN_BROADCAST ? a->root : 0);
    if (a->net->faults || trni_net_is_uneven(a->net)) return a->net->start_s + trni_least_latency(a->net);
    for (int i = 0; i < chips; i++) {
        const double s = trn_topology_route_latency(a->net, from, a->chips ? a->chips[i] : i);
        if (s > most) most = s;
    }
    return a->net->start_s + most;
}

/* Of permute and send_recv: seconds per byte of what leaves the chip with the least rate; 0 when all stay. */
TRNI_FN double trni_pairs_slope(const trni_layout *l)
{
    const trn_topology *net = l->ask->net;
    const bool uneven = trni_net_is_uneven(net);
    double most = 0;
    for (int r = 0; r < l->ranks; r++) {
        const int to = trni_target_of(l->ask, r);
        double out = 0, in;
        if (to < 0 || to / l->ranks_per_chip == r / l->ranks_per_chip) continue;
        if (!uneven) return 1 / trn_topology_injection_bytes_per_s(net);
        for (int g = 0; g < trni_group_count(l->ask); g++) {
            trni_chip_rates(net, trni_chip_of_rank(l->ask, g, r), &out, &in);
            if (out > 0 && 1 / out > most) most = 1 / out;
        }
    }
    return most;
}

/* Of a network whose chips are not wired alike: what the worst connected chip needs, and what crosses the middle of a
 * level when all have something to say. */
TRNI_FN trni_bounds trni_uneven_bounds(const trni_layout *l)
{
    trni_bounds b;
    b.latency_s = trni_bound_latency(l);
    b.slope_s = trni_faults_slope(l->ask);
    for (int d = 0; d < l->dims && l->boxed && !l->ask->chips && l->ask->op < TRN_BROADCAST; d++)
        if (l->dim[d].size % 2 == 0)
            trni_bound_at_least(&b, trni_bound_bytes(l, 2, l->ranks / 2.0),
                                trn_topology_cut_bytes_per_s(l->ask->net, l->dim[d].level));
    return b;
}

/* Injection: what leaves a chip. Cuts: what leaves the chips of the inner levels together. Bisection, for the whole
 * topology: what crosses the middle of each level. */
TRNI_FN trni_bounds trni_load_bounds(const trni_layout *l)
{
    const trn_topology *net = l->ask->net;
    const int chips = l->ranks / l->ranks_per_chip;
    trni_bounds b = { 0, 0 };
    if (chips < 2) return b;
    if (l->ask->op == TRN_PERMUTE || l->ask->op == TRN_SEND_RECV) {
        b.slope_s = trni_pairs_slope(l);
        return b;
    }
    if (trni_net_is_uneven(net)) return trni_uneven_bounds(l);
    b.latency_s = trni_bound_latency(l);
    b.slope_s = trni_faults_slope(l->ask);
    trni_bound_at_least(&b, trni_bound_bytes(l, chips, l->ranks_per_chip), trn_topology_injection_bytes_per_s(net));
    bool whole = l->boxed;
    for (int d = 0; whole && d < l->dims; d++) {
        const double inner = trni_layout_chips(l, d);
        if (d)
            trni_bound_at_least(&b, trni_bound_bytes(l, chips / inner, inner * l->ranks_per_chip),
                                inner * trni_rate_leaving(l, d));
        if (!l->ask->chips && l->dim[d].size % 2 == 0)
            trni_bound_at_least(&b, trni_bound_bytes(l, 2, l->ranks / 2.0),
                                trn_topology_cut_bytes_per_s(net, l->dim[d].level));
        whole = l->dim[d].whole;
    }
    return b;
}

#endif /* TRNI_NETWORK_COLLECTIVE_TIME_H */
