/* network/traffic_program.h - a collective as messages: who sends what to whom in which step, and by which links.
 * Behind trn_traffic.h. SPDX-License-Identifier: MIT
 *
 * DOES: walks the schedule of trn_schedule.h as network/collective_load.h does, and keeps every message instead of
 *     adding up loads. Each channel of a rank is a party of its own that goes from step to step.
 * DOES NOT: know time (network/traffic_flow.h).
 */
#ifndef TRNI_NETWORK_TRAFFIC_PROGRAM_H
#define TRNI_NETWORK_TRAFFIC_PROGRAM_H

#include "collective_cost.h"

enum { TRNI_TRAFFIC_MESSAGES = 1 << 22 };

typedef struct trni_message {
    int party[2]; /* that sends, and that receives: a rank in a channel of a collective */
    int step;     /* of the parties */
    int hops;
    int64_t route;           /* where its links begin in the list of them */
    double bytes, latency_s; /* latency: of the start, and of all links of the route */
    bool free;               /* under way already: no latency */
} trni_message;

/* Collectives on one network; all lists grow. */
typedef struct trni_program {
    const trn_topology *net;
    trni_message *message;
    int64_t messages, room;
    int64_t *link; /* of all routes, as the loads of links are counted */
    int64_t links, link_room;
    int64_t *rank; /* [parties] chip x 64 + core, which says how late it is */
    int *owner;    /* [parties] its collective */
    int parties, party_room;
    int capacity;   /* links of the longest route */
    int64_t *route; /* [capacity] */
    trn_error *error;
    trn_status status;
    /* while a collective is walked */
    const trni_layout *l;
    int collective, channel, first, step; /* first: its first party */
    bool free;
    int64_t step_begin;
    /* of a broadcast along rings */
    const trni_cc_channel *ring;
    const trni_cc_stage *stage;
    const trni_schedule *schedule;
    int root, hops;
} trni_program;

/* ---- lists ---- */

/* Room for one more; sets the status when there is none. */
TRNI_FN void *trni_program_grow(trni_program *p, void *list, int64_t count, int64_t *room, size_t size)
{
    if (count < *room) return list;
    const int64_t more = *room ? 2 * *room : 256;
    void *grown = realloc(list, (size_t)more * size);
    if (!grown)
        p->status = trni_fail(p->error, TRN_ENOSPC, "could not allocate %lld messages", (long long)more);
    else
        *room = more;
    return grown ? grown : list;
}

TRNI_FN void trni_program_free(trni_program *p)
{
    free(p->message);
    free(p->link);
    free(p->rank);
    free(p->owner);
    free(p->route);
}

TRNI_FN void trni_program_party(trni_program *p, int64_t rank)
{
    int64_t room = p->party_room;
    p->rank = (int64_t *)trni_program_grow(p, p->rank, p->parties, &room, sizeof(int64_t));
    if (p->status != TRN_OK) return;
    room = p->party_room;
    p->owner = (int *)trni_program_grow(p, p->owner, p->parties, &room, sizeof(int));
    if (p->status != TRN_OK) return;
    p->party_room = (int)room;
    p->rank[p->parties] = rank;
    p->owner[p->parties++] = p->collective;
}

/* ---- messages ---- */

TRNI_FN void trni_program_add(trni_program *p, int group, int from, int to, double bytes)
{
    const int first = p->first + (p->channel * trni_group_count(p->l->ask) + group) * p->l->ranks;
    if (p->status != TRN_OK) return;
    if (p->messages == TRNI_TRAFFIC_MESSAGES) {
        p->status = trni_fail(p->error, TRN_ELIMIT, "more than %d messages: every one of them is followed",
                              (int)TRNI_TRAFFIC_MESSAGES);
        return;
    }
    p->message = (trni_message *)trni_program_grow(p, p->message, p->messages, &p->room, sizeof(trni_message));
    if (p->status != TRN_OK) return;
    trni_message *m = &p->message[p->messages++];
    memset(m, 0, sizeof *m);
    m->party[0] = first + from;
    m->party[1] = first + to;
    m->step = p->step;
    m->bytes = bytes * (double)p->l->ask->bytes;
    m->free = p->free;
}

TRNI_FN void trni_program_tell(void *told, int group, int from, int to, double bytes)
{
    trni_program_add((trni_program *)told, group, from, to, bytes);
}

TRNI_FN int trni_message_order(const void *a, const void *b)
{
    const trni_message *m = (const trni_message *)a, *n = (const trni_message *)b;
    if (m->step != n->step) return m->step < n->step ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (m->party[i] != n->party[i]) return m->party[i] < n->party[i] ? -1 : 1;
    return 0;
}

/* What one party sends to another in one step is one message. */
TRNI_FN void trni_program_join(trni_program *p)
{
    int64_t kept = p->step_begin;
    if (p->messages - p->step_begin > 1)
        qsort(p->message + p->step_begin, (size_t)(p->messages - p->step_begin), sizeof *p->message,
              trni_message_order);
    for (int64_t i = p->step_begin; i < p->messages; i++) {
        trni_message *m = &p->message[i];
        if (kept > p->step_begin && trni_message_order(m, &p->message[kept - 1]) == 0)
            p->message[kept - 1].bytes += m->bytes;
        else
            p->message[kept++] = *m;
    }
    p->messages = p->step_begin = kept;
}

/* The links of all messages from `first` on. */
TRNI_FN void trni_program_routes(trni_program *p, int64_t first)
{
    for (int64_t i = first; i < p->messages && p->status == TRN_OK; i++) {
        trni_message *m = &p->message[i];
        const int from = (int)(p->rank[m->party[0]] / 64), to = (int)(p->rank[m->party[1]] / 64);
        m->hops = trn_topology_route(p->net, from, to, p->route, p->capacity);
        if (m->hops < 0) p->status = trni_fail(p->error, TRN_ENOSPC, "could not allocate the search for a detour");
        m->route = p->links;
        m->latency_s = p->net->start_s + (from == to ? p->net->local_latency_s : 0);
        for (int k = 0; k < m->hops; k++) {
            trn_link link;
            p->link = (int64_t *)trni_program_grow(p, p->link, p->links, &p->link_room, sizeof(int64_t));
            if (p->status != TRN_OK || !trn_topology_link(p->net, p->route[k], &link)) return;
            m->latency_s += link.latency_s;
            p->link[p->links++] = p->route[k];
        }
        if (m->free) m->latency_s = 0;
    }
}

/* ---- schedules ---- */

TRNI_FN void trni_program_phase(trni_program *p, trni_load *w, trni_phase phase, int *base)
{
    const int steps = trni_schedule_steps(w->s);
    for (int step = 0; step < steps && p->status == TRN_OK; step++) {
        p->step = *base + step;
        for (p->channel = 0; p->channel < w->s->channels; p->channel++) {
            const trni_cc_channel *c = &w->s->channel[p->channel];
            const trni_place at = trni_place_of(c, phase, step);
            if (at.stage < 0) continue;
            const trni_cc_stage *st = &c->stage[at.stage];
            p->free = trni_step_is_free(st->how, st->size, at.step, phase == TRNI_REDUCE);
            trni_load_stage(w, c, at.stage, phase, at.step);
        }
        trni_program_join(p);
    }
    p->free = false;
    *base += steps;
}

/* A hop of a ring's broadcast: its segments, one step after another; those behind the first are under way already. */
TRNI_FN void trni_program_tell_hop(void *told, int group, int from, int to, double bytes)
{
    trni_program *p = (trni_program *)told;
    const int n = p->stage->size, step = p->step;
    const int a = trni_stage_digit(p->stage, trni_position_of(p->schedule, p->ring, from)),
              b = trni_stage_digit(p->stage, trni_position_of(p->schedule, p->ring, to));
    const int up = trni_wrap(a - p->root, n), down = trni_wrap(p->root - a, n);
    const int hop = trni_wrap(a + 1, n) == b && !(n == 2 && up) ? up : down;
    for (int s = 0; s < (int)TRNI_CC_SEGMENTS; s++) {
        p->step = step + hop + s;
        p->free = hop + s >= p->hops;
        trni_program_add(p, group, from, to, bytes / (double)TRNI_CC_SEGMENTS);
    }
    p->step = step;
    p->free = false;
}

/* Steps that the stage took. */
TRNI_FN int trni_program_spread(trni_program *p, trni_load *w, const trni_cc_channel *c, int stage)
{
    const int hops = trni_spread_steps(w, c, stage, 1);
    p->ring = c;
    p->stage = &c->stage[stage];
    p->schedule = w->s;
    p->hops = hops;
    p->root = trni_stage_digit(p->stage, trni_position_of(w->s, c, w->l->ask->root));
    w->tell = hops > 1 ? trni_program_tell_hop : trni_program_tell;
    trni_spread_stage(w, c, stage);
    w->tell = trni_program_tell;
    return hops > 1 ? hops + (int)TRNI_CC_SEGMENTS - 1 : 1;
}

TRNI_FN void trni_program_broadcast(trni_program *p, trni_load *w, int *base)
{
    int longest = *base;
    for (p->channel = 0; p->channel < w->s->channels; p->channel++) {
        const trni_cc_channel *c = &w->s->channel[p->channel];
        p->step = *base;
        for (int i = 0; i < c->stages && p->status == TRN_OK; i++)
            p->step += trni_program_spread(p, w, c, w->s->scattered ? i : c->stages - 1 - i);
        if (p->step > longest) longest = p->step;
    }
    trni_program_join(p);
    *base = longest;
    if (w->s->scattered) trni_program_phase(p, w, TRNI_GATHER, base);
}

TRNI_FN void trni_program_pairs(trni_program *p)
{
    const bool one = p->l->ask->op == TRN_SEND_RECV;
    const int first = one ? p->l->ask->root : 0, end = one ? first + 1 : p->l->ranks;
    for (int g = 0; g < trni_group_count(p->l->ask); g++)
        for (int r = first; r < end; r++) {
            const int to = trni_target_of(p->l->ask, r);
            if (to >= 0 && to != r) trni_program_add(p, g, r, to, 1);
        }
    trni_program_join(p);
}

TRNI_FN void trni_program_single_step(trni_program *p)
{
    for (int g = 0; g < trni_group_count(p->l->ask); g++)
        for (int from = 0; from < p->l->ranks; from++)
            for (int to = 0; to < p->l->ranks; to++)
                if (to != from) trni_program_add(p, g, from, to, p->l->calibration.mesh);
    trni_program_join(p);
}

TRNI_FN void trni_program_walk(trni_program *p, trni_load *w)
{
    const trn_collective op = p->l->ask->op;
    int base = 0;
    w->tell = trni_program_tell;
    w->told = p;
    p->step = p->channel = 0;
    p->step_begin = p->messages;
    if (op == TRN_PERMUTE || op == TRN_SEND_RECV)
        trni_program_pairs(p);
    else if (op == TRN_BROADCAST)
        trni_program_broadcast(p, w, &base);
    else if (op == TRN_ALL_TO_ALL)
        trni_program_phase(p, w, TRNI_EXCHANGE, &base);
    else if (w->s->single_step)
        trni_program_single_step(p);
    else {
        if (op != TRN_ALL_GATHER) trni_program_phase(p, w, TRNI_REDUCE, &base);
        if (op != TRN_REDUCE_SCATTER) trni_program_phase(p, w, TRNI_GATHER, &base);
    }
}

/* One more collective. */
TRNI_FN void trni_program_collective(trni_program *p, const trni_layout *l, const trni_schedule *s, int number)
{
    trni_load w;
    double *loads = NULL;
    int *tables = NULL;
    const int channels = s->channels > 0 ? s->channels : 1;
    const int64_t first = p->messages;
    p->l = l;
    p->collective = number;
    p->first = p->parties;
    for (int k = 0; k < channels; k++)
        for (int g = 0; g < trni_group_count(l->ask); g++)
            for (int r = 0; r < l->ranks && p->status == TRN_OK; r++)
                trni_program_party(p, (int64_t)trni_chip_of_rank(l->ask, g, r) * 64 + r % l->ranks_per_chip);
    if (p->status == TRN_OK && l->ranks > 1) {
        p->status = trni_load_init(&w, l, s, &loads, &tables);
        if (p->status == TRN_OK && w.capacity > p->capacity) {
            free(p->route);
            p->capacity = w.capacity;
            p->route = (int64_t *)malloc(sizeof(int64_t) * (size_t)p->capacity);
            if (!p->route) p->status = trni_fail(p->error, TRN_ENOSPC, "could not allocate %d links", p->capacity);
        }
        if (p->status == TRN_OK) trni_program_walk(p, &w);
        if (p->status == TRN_OK) trni_program_routes(p, first);
        free(loads);
        free(tables);
    }
}

#endif /* TRNI_NETWORK_TRAFFIC_PROGRAM_H */
