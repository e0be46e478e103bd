/* network/collective_load.h - bytes on every link, in HBM and through the DMA engines, in one step of a schedule.
 * Behind trn_collective.h trn_collective_cost.h. SPDX-License-Identifier: MIT
 *
 * DOES: walks the moves of trn_schedule.h over the routes of trn_topology.h and adds up, per byte of the payload.
 *     A whole topology is folded: chips that look alike from everywhere (each server behind one switch; in dimensions
 *     that the schedule treats alike, every chip of a switch and every second of a ring, whose ties depend on parity)
 *     stand for each other. So do groups that each have all digits of their levels, and with them links of their own.
 *     That is exact, and lets 400,000 chips cost what a few cost. Where a chip or a link is down or slow, or a link is
 *     used in turns, nothing is folded. Store and forward: in round i of a step every message is on the i-th link of
 *     its route, and a round takes as long as its fullest link.
 * DOES NOT: turn loads into time (network/collective_time.h).
 *
 * KNOWN FROM: HBM touches per chunk: Neuron SDK, intranode-collective-comm.rst (ring 4 and 6 for two ranks, KangaRing 3
 *     and 4), which is one read for each source and one write for each copy, as counted here. Sums at half of copy
 *     rate: NKI dma_compute.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_LOAD_H
#define TRNI_NETWORK_COLLECTIVE_LOAD_H

#include <limits.h>

#include "collective_layout.h"

enum { TRNI_LAYERS = 1024 }; /* hops beyond are counted with the last of these */

typedef enum trni_phase { TRNI_REDUCE, TRNI_GATHER, TRNI_EXCHANGE } trni_phase;

typedef struct trni_load {
    const trni_layout *l;
    const trn_topology *net;
    const trni_schedule *s;
    int group, groups; /* those that are followed: [group, groups) of all */
    int sample;        /* chips whose links are watched */
    int block;         /* chips after which the topology repeats itself */
    int *cell;         /* [block] which of the watched ones stands for a chip; -1 = none, it is never touched */
    int *owner;        /* [owners] the positions whose sub-blocks are followed */
    int owners;
    int slots;
    bool folded;               /* the outermost level, on all units of which the same happens */
    double *rate, *latency;    /* [slots] of a chip's links, where nothing is broken; of graphs 1, and none */
    double *reached;           /* [slots] of the rate, what is expected of it */
    double *share;             /* [sample * slots] that faults leave of the rates, or the rate of a graph; NULL = all */
    double *chip_share;        /* [sample] and of HBM and DMA */
    int layers;                /* store and forward: hops whose loads are kept apart; else 1 */
    bool even;                 /* no faults, and no link that is used in turns */
    bool graph;                /* links of some level are listed, and have rates and latencies of their own */
    bool lost;                 /* a route could not be found, for want of memory */
    double *link;              /* [layers * sample * slots] bytes in this step */
    double *hbm, *dma;         /* [sample] bytes in this step */
    double *hbm_sum, *dma_sum; /* [sample] in this phase */
    int64_t *route;
    int capacity;
    double step_latency_s;                                               /* of the present step */
    void (*tell)(void *told, int group, int from, int to, double bytes); /* not NULL: is told of ranks' messages */
    void *told;
} trni_load;

/* ---- one message ---- */

TRNI_FN int trni_load_cell(const trni_load *w, int64_t chip) { return w->cell[chip % w->block]; }

TRNI_FN int trni_load_chip(const trni_load *w, int group, int rank)
{
    return trni_load_cell(w, trni_chip_of_rank(w->l->ask, group, rank));
}

/* Where the load of a hop of the present route is counted. */
TRNI_FN int64_t trni_load_at(const trni_load *w, int hop)
{
    const int64_t link = w->even ? w->route[hop] : trni_link_counted(w->net, w->route[hop]);
    const int64_t layer = hop < w->layers ? hop : w->layers - 1;
    return (layer * w->sample + trni_load_cell(w, link / w->slots)) * w->slots + link % w->slots;
}

TRNI_FN double trni_load_latency(const trni_load *w, int64_t link)
{
    trn_link of;
    if (!w->graph) return w->latency[link % w->slots];
    return trni_link_sound(w->net, link, &of) ? of.latency_s : 0;
}

TRNI_FN void trni_load_route(trni_load *w, int from, int to, double bytes)
{
    const int hops = trn_topology_route(w->net, from, to, w->route, w->capacity);
    double latency = from == to ? w->net->local_latency_s : 0;
    if (hops < 0) w->lost = true;
    for (int i = 0; i < hops && i < w->capacity; i++) {
        w->link[trni_load_at(w, i)] += bytes;
        latency += trni_load_latency(w, w->route[i]);
    }
    if (latency > w->step_latency_s) w->step_latency_s = latency;
}

/* One copy of `bytes` from rank to rank: the read is counted here, the write by trni_load_write. */
TRNI_FN void trni_load_read(trni_load *w, int group, int from, int to, double bytes, double factor)
{
    const int chip = trni_chip_of_rank(w->l->ask, group, from);
    if (w->tell) {
        w->tell(w->told, group, from, to, bytes * factor);
        return;
    }
    w->hbm[trni_load_cell(w, chip)] += bytes;
    trni_load_route(w, chip, trni_chip_of_rank(w->l->ask, group, to), bytes * factor);
}

TRNI_FN void trni_load_write(trni_load *w, int group, int to, double bytes, double sources, int copies)
{
    const int chip = trni_load_chip(w, group, to);
    const double at_once = (double)TRNI_SUM_SOURCES; /* (C++ compares a double with no enumeration) */
    const double passes = sources > 1 ? sources * w->net->reduce_pass : 1;
    const double extra = sources > at_once ? sources / at_once : 0;
    w->hbm[chip] += bytes * (copies + 2 * extra); /* larger sums go through partial sums */
    w->dma[chip] += bytes * (passes > 1 ? passes : 1);
}

/* ---- one stage in one step ---- */

typedef struct trni_scene {
    trni_load *w;
    const trni_cc_channel *channel;
    const trni_cc_stage *stage;
    int group, base; /* position of member 0 */
    double bytes;    /* of a sub-block */
    bool folded;     /* the members are the same place on different servers: any one stands for the rest */
} trni_scene;

TRNI_FN int trni_scene_rank(const trni_scene *e, int member)
{
    return trni_rank_at(e->w->s, e->channel, e->base + member * e->stage->stride);
}

TRNI_FN void trni_scene_all(const trni_scene *e, const trni_hop *m, double bytes)
{
    const int n = e->stage->size, me = m->sources == TRNI_ALL_MEMBERS ? m->to : m->from[0];
    const bool sums = m->sources == TRNI_ALL_MEMBERS;
    const int others = e->folded ? 1 : n - 1;
    const double each = bytes * (n - 1) / others, factor = e->stage->factor;
    for (int i = 1; i <= others; i++) {
        const int other = trni_scene_rank(e, (me + i) % n), mine = trni_scene_rank(e, me);
        trni_load_read(e->w, e->group, sums ? other : mine, sums ? mine : other, each, factor);
        if (!sums) trni_load_write(e->w, e->group, other, each, 1, 1);
    }
    if (!sums) return;
    e->w->hbm[trni_load_chip(e->w, e->group, trni_scene_rank(e, me))] += bytes;
    trni_load_write(e->w, e->group, trni_scene_rank(e, me), bytes, n, 1);
}

TRNI_FN void trni_scene_move(const trni_scene *e, const trni_hop *m)
{
    const double bytes = e->bytes * m->weight * (m->part ? 0.5 : 1);
    if (m->to == TRNI_NOBODY || m->sources == TRNI_ALL_MEMBERS) {
        trni_scene_all(e, m, bytes);
        return;
    }
    const int to = trni_scene_rank(e, m->to);
    for (int i = 0; i < m->sources; i++) {
        const int from = trni_scene_rank(e, m->from[i]);
        if (from != to)
            trni_load_read(e->w, e->group, from, to, bytes, e->stage->factor);
        else
            e->w->hbm[trni_load_chip(e->w, e->group, to)] += bytes;
    }
    trni_load_write(e->w, e->group, to, bytes, m->sources, m->also == TRNI_NOBODY ? 1 : 2);
}

TRNI_FN int trni_phase_moves(trni_phase phase, const trni_cc_stage *st, int step, int v, trni_hop *move)
{
    if (phase == TRNI_REDUCE) return trni_reduce_moves(st->how, st->size, step, v, move);
    if (phase == TRNI_GATHER) return trni_gather_moves(st->how, st->size, step, v, move);
    return trni_exchange_moves(st->how, st->size, step, v, move);
}

/* Part of the payload that one sub-block of a stage is. */
TRNI_FN double trni_stage_bytes(const trni_cc_channel *c, int stage, trni_phase phase)
{
    double bytes = c->share;
    if (phase == TRNI_EXCHANGE) return bytes / c->stage[stage].size;
    for (int i = 0; i <= stage; i++) bytes /= c->stage[i].size;
    return bytes;
}

TRNI_FN void trni_load_stage(trni_load *w, const trni_cc_channel *c, int stage, trni_phase phase, int step)
{
    const trni_cc_stage *st = &c->stage[stage];
    const bool folded = w->folded && st->stride >= w->block * w->l->ranks_per_chip;
    trni_scene e = { w, c, st, 0, 0, trni_stage_bytes(c, stage, phase), folded };
    for (e.group = w->group; e.group < w->groups; e.group++)
        for (int i = 0; i < w->owners; i++) {
            trni_hop move[TRNI_HOPS];
            const int v = trni_stage_digit(st, w->owner[i]);
            const int moves = trni_phase_moves(phase, st, step, v, move);
            e.base = w->owner[i] - v * st->stride;
            for (int k = 0; k < moves; k++) trni_scene_move(&e, &move[k]);
        }
}

/* ---- what is watched ---- */

/* May chips stand for others at all? */
TRNI_FN bool trni_load_even(const trni_layout *l) { return !l->whole && trni_net_is_even(l->ask->net); }

/* May the outermost level be folded: is it a switch, and does every stage stay inside a unit of it, or join the same
 * place of all units? */
TRNI_FN bool trni_load_folds(const trni_layout *l, const trni_schedule *s)
{
    const trn_topology *net = l->ask->net;
    if (!trni_load_even(l)) return false;
    if (l->ask->chips || l->dims < 2 || s->single_step || l->ask->op > TRN_BROADCAST) return false;
    if (l->dim[l->dims - 1].wiring != TRN_WIRING_SWITCH || net->level[l->top_level].planes > 1) return false;
    const int unit = l->ranks / l->dim[l->dims - 1].size;
    for (int k = 0; k < s->channels; k++)
        for (int i = 0; i < s->channel[k].stages; i++) {
            const trni_cc_stage *st = &s->channel[k].stage[i];
            if (st->stride % unit && (int64_t)st->stride * st->size > unit) return false;
        }
    return true;
}

/* Does every chip of the topology see the same schedule: no orders of its own, and levels that can be turned? */
TRNI_FN bool trni_load_turns(const trni_layout *l, const trni_schedule *s)
{
    if (!trni_load_even(l)) return false;
    if (l->ask->chips || !l->boxed || s->single_step || l->ask->op >= TRN_BROADCAST) return false;
    for (int k = 0; k < s->channels; k++)
        if (s->channel[k].order) return false;
    for (int i = 0; i < l->ask->net->levels; i++)
        if (l->ask->net->level[i].wiring == TRN_WIRING_FULL || l->ask->net->level[i].wiring == TRN_WIRING_GRAPH)
            return false;
    return true;
}

/* Digits of a level that are watched when everything turns: parity decides ties on a ring of even size. */
TRNI_FN int trni_cell_digits(const trn_level *level)
{
    return level->wiring == TRN_WIRING_RING && level->size > 2 ? (level->size % 2 ? 1 : 2) : 1;
}

/* The first of the chips that look like this one. */
TRNI_FN int trni_load_like(const trn_topology *net, int chip, bool turns)
{
    int like = chip;
    for (int i = 0; turns && i < net->levels; i++) {
        const int digit = trn_topology_digit(net, chip, i), kept = digit % trni_cell_digits(&net->level[i]);
        like -= (digit - kept) * trn_topology_stride(net, i);
    }
    return like;
}

/* Do groups load links of their own, each as the next? So where each is a box that has all digits of its levels: routes
 * then stay inside it, unless a plane of a switch is reached through digits that are not the group's. */
TRNI_FN bool trni_groups_apart(const trni_layout *l)
{
    const trn_topology *net = l->ask->net;
    if (!l->ask->chips || !l->boxed || !trni_load_even(l)) return false;
    for (int d = 0; d < l->dims; d++)
        if (!l->dim[d].whole || net->level[l->dim[d].level].planes > 1) return false;
    return true;
}

/* The first of the groups stands for the others, and only its chips are watched. */
TRNI_FN void trni_load_one_group(trni_load *w)
{
    const trn_collective_args *a = w->l->ask;
    const int count = trni_group_chips(a);
    for (int g = 1; g < trni_group_count(a); g++)
        if (a->chips[(int64_t)g * count] < a->chips[(int64_t)w->group * count]) w->group = g;
    w->groups = w->group + 1;
    memset(w->cell, -1, sizeof(int) * (size_t)w->block);
    for (int i = 0; i < count; i++) w->cell[a->chips[(int64_t)w->group * count + i]] = w->sample++;
}

/* Numbers the watched chips, and lists the positions whose sub-blocks are followed. */
TRNI_FN void trni_load_cells(trni_load *w, bool turns)
{
    const int cores = w->l->ranks_per_chip, positions = w->folded || turns ? w->block * cores : w->l->ranks;
    const bool apart = trni_groups_apart(w->l);
    w->groups = trni_group_count(w->l->ask);
    w->sample = w->owners = 0;
    if (apart) trni_load_one_group(w);
    for (int chip = 0; chip < w->block && !apart; chip++) {
        const int like = trni_load_like(w->net, chip, turns);
        w->cell[chip] = like == chip ? w->sample++ : w->cell[like];
    }
    for (int p = 0; p < positions; p++)
        if (!turns || trni_load_like(w->net, p / cores, true) == p / cores) w->owner[w->owners++] = p;
}

/* calloc, for counts that a size_t may not hold; null as well where there are more than that. */
TRNI_FN void *trni_load_zeros(int64_t count, size_t size)
{
    const size_t held = (size_t)count;
    return (int64_t)held == count ? calloc(held, size) : NULL;
}

/* Room for the tables of chips and positions. */
TRNI_FN trn_status trni_load_fold(trni_load *w, int **memory)
{
    const trni_layout *l = w->l;
    const bool turns = trni_load_turns(l, w->s);
    w->folded = trni_load_folds(l, w->s);
    w->block = w->folded ? l->ranks / l->ranks_per_chip / l->dim[l->dims - 1].size : w->net->chips;
    const int64_t positions = w->folded ? (int64_t)w->block * l->ranks_per_chip : l->ranks;
    *memory = (int *)trni_load_zeros(w->block + positions, sizeof(int));
    if (!*memory) return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the tables of %d chips", w->block);
    w->cell = *memory;
    w->owner = *memory + w->block;
    trni_load_cells(w, turns);
    return TRN_OK;
}

/* Of one chip, and of the others that it stands for. What is down is not loaded, so any share will do for it, and for
 * what is no link. */
TRNI_FN void trni_load_chip_shares(trni_load *w, int chip, int cell)
{
    const double left = trn_topology_chip_share(w->net, chip);
    w->chip_share[cell] = left > 0 ? left : 1;
    for (int k = 0; k < w->slots; k++) {
        const int64_t index = (int64_t)chip * w->slots + k;
        trn_link link;
        const bool there = trni_link_sound(w->net, index, &link);
        const double share = there ? trn_topology_link_share(w->net, index) : 0;
        const double rate = there && link.wiring == TRN_WIRING_GRAPH ? link.bytes_per_s : 1;
        w->share[(int64_t)cell * w->slots + k] = rate * (share > 0 ? share : 1);
    }
}

TRNI_FN void trni_load_shares(trni_load *w)
{
    w->share = w->chip_share + w->sample;
    for (int chip = 0; chip < w->block; chip++)
        if (w->cell[chip] >= 0) trni_load_chip_shares(w, chip, w->cell[chip]);
}

/* The two pieces of memory are to be freed whatever is returned. */
TRNI_FN trn_status trni_load_init(trni_load *w, const trni_layout *l, const trni_schedule *s, double **loads,
                                  int **tables)
{
    const trn_topology *net = l->ask->net;
    memset(w, 0, sizeof *w);
    w->l = l;
    w->net = net;
    w->s = s;
    w->slots = trn_topology_slots(net);
    w->even = trni_net_is_even(net);
    w->capacity = trn_topology_diameter(net);
    if (trni_any_down(net)) w->capacity = trni_nodes(net) < INT_MAX ? (int)trni_nodes(net) : INT_MAX; /* detours */
    w->layers = !net->store_and_forward || w->capacity < 1 ? 1 : w->capacity < TRNI_LAYERS ? w->capacity : TRNI_LAYERS;
    const trn_status status = trni_load_fold(w, tables);
    if (status != TRN_OK) return status;
    const size_t chips = (size_t)w->sample, slots = (size_t)(w->slots ? w->slots : 1), layers = (size_t)w->layers;
    const int64_t each = (int64_t)slots * ((int64_t)layers + 1) + 5; /* of a chip */
    double *at = *loads =
        (double *)trni_load_zeros(3 * (int64_t)slots + w->sample * each + w->capacity + 1, sizeof(double));
    if (!at) return trni_fail(l->ask->error, TRN_ENOSPC, "could not allocate the loads of %d chips", w->sample);
    w->rate = at;
    w->latency = w->rate + slots;
    w->reached = w->latency + slots;
    w->link = w->reached + slots;
    w->hbm = w->link + chips * slots * layers;
    w->dma = w->hbm + chips;
    w->hbm_sum = w->dma + chips;
    w->dma_sum = w->hbm_sum + chips;
    w->chip_share = w->dma_sum + chips;
    w->route = (int64_t *)(void *)(w->chip_share + chips * (slots + 1));
    for (int i = 0; i < w->slots; i++) {
        trn_link link;
        (void)trni_link_sound(net, i, &link);
        const bool graph = link.wiring == TRN_WIRING_GRAPH;
        w->graph = w->graph || graph;
        w->rate[i] = graph ? 1 : link.bytes_per_s;
        w->latency[i] = graph ? 0 : link.latency_s;
        w->reached[i] = w->rate[i] * trni_calibration_share(&l->calibration, net->level[link.level].kind);
    }
    if (net->faults || w->graph) trni_load_shares(w);
    if (!w->slots) w->slots = 1; /* one chip: no links, one slot that stays empty */
    if (w->rate[0] <= 0) w->rate[0] = w->reached[0] = 1;
    return TRN_OK;
}

#endif /* TRNI_NETWORK_COLLECTIVE_LOAD_H */
