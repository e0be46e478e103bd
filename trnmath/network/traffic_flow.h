/* network/traffic_flow.h - messages as flows on shared links, from event to event.
 * Behind trn_traffic.h. SPDX-License-Identifier: MIT
 *
 * DOES: a message begins when its sender and its receiver have come to its step; its latency passes, then it flows on
 *     all links of its route at once (store and forward: on one after the other). The rates of all flows are max-min
 *     fair: they grow together, and a flow stops growing when one of its links is full. A party goes on when all of its
 *     messages of a step are done.
 * DOES NOT: weigh flows by their latency, as models of TCP do.
 *
 * KNOWN FROM: Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2 (max-min fairness by filling).
 */
#ifndef TRNI_NETWORK_TRAFFIC_FLOW_H
#define TRNI_NETWORK_TRAFFIC_FLOW_H

#include "traffic_program.h"

#define TRNI_SAME_TIME 1e-12 /* events so close, relative to the time, are one */

typedef struct trni_timer {
    double at;
    int64_t what; /* a message whose latency is over, or -1 - party that begins */
} trni_timer;

typedef struct trni_flows {
    const trni_program *p;
    bool hop_by_hop;
    /* of the network: links that are used, numbered anew */
    int links;
    int *link;                  /* [p->links] of routes */
    double *capacity, *latency; /* [links] */
    /* of the program: what each party does, in the order of the steps */
    int64_t *entry, *entry_begin; /* [2 messages], [parties + 1] */
    /* of a run */
    double time, *end;         /* [collectives] */
    double *left, *rate;       /* [messages] */
    int *hop, *arrived;        /* [messages] */
    int64_t *at;               /* [parties] */
    int *pending;              /* [parties] */
    int64_t *active, *unfixed; /* [messages] */
    int64_t actives, timers;
    trni_timer *timer;   /* [messages + parties] a heap */
    double *rest;        /* [links] */
    int *sharers, *used; /* [links] */
} trni_flows;

/* ---- timers: a heap, and of equal times the lower number first ---- */

TRNI_FN bool trni_timer_before(trni_timer a, trni_timer b)
{
    return a.at < b.at || (!(b.at < a.at) && a.what < b.what);
}

TRNI_FN void trni_timer_add(trni_flows *f, double at, int64_t what)
{
    trni_timer t;
    t.at = at;
    t.what = what;
    int64_t i = f->timers++;
    for (; i && trni_timer_before(t, f->timer[(i - 1) / 2]); i = (i - 1) / 2) f->timer[i] = f->timer[(i - 1) / 2];
    f->timer[i] = t;
}

TRNI_FN trni_timer trni_timer_take(trni_flows *f)
{
    const trni_timer first = f->timer[0], last = f->timer[--f->timers];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < f->timers; i = child) {
        if (child + 1 < f->timers && trni_timer_before(f->timer[child + 1], f->timer[child])) child++;
        if (!trni_timer_before(f->timer[child], last)) break;
        f->timer[i] = f->timer[child];
    }
    f->timer[i] = last;
    return first;
}

/* ---- parties and messages ---- */

/* The links that a message is on now. */
TRNI_FN void trni_flow_links(const trni_flows *f, int64_t message, int64_t *begin, int64_t *end)
{
    const trni_message *m = &f->p->message[message];
    *begin = m->route + (f->hop_by_hop ? f->hop[message] : 0);
    *end = f->hop_by_hop ? *begin + (m->hops > 0) : m->route + m->hops;
}

TRNI_FN double trni_first_latency(const trni_flows *f, const trni_message *m)
{
    if (m->free || !f->hop_by_hop || m->hops < 2) return m->latency_s;
    double later = 0;
    for (int i = 1; i < m->hops; i++) later += f->latency[f->link[m->route + i]];
    return m->latency_s - later;
}

/* A party comes to its next step, or to its end. */
TRNI_FN void trni_party_enter(trni_flows *f, int party)
{
    const trni_program *p = f->p;
    int64_t at = f->at[party];
    const int64_t end = f->entry_begin[party + 1];
    if (at == end) {
        double *last = &f->end[p->owner[party]];
        if (f->time > *last) *last = f->time;
        return;
    }
    const int step = p->message[f->entry[at]].step;
    for (; at < end && p->message[f->entry[at]].step == step; at++) f->pending[party]++;
    for (int64_t i = f->at[party]; i < at; i++) {
        const int64_t m = f->entry[i];
        if (++f->arrived[m] == 2) trni_timer_add(f, f->time + trni_first_latency(f, &p->message[m]), m);
    }
    f->at[party] = at;
}

TRNI_FN void trni_message_done(trni_flows *f, int64_t message)
{
    for (int i = 0; i < 2; i++) {
        const int party = f->p->message[message].party[i];
        if (--f->pending[party] == 0) trni_party_enter(f, party);
    }
}

/* All bytes are over the links that the message was on. */
TRNI_FN void trni_message_over(trni_flows *f, int64_t message)
{
    const trni_message *m = &f->p->message[message];
    if (!f->hop_by_hop || f->hop[message] + 1 >= m->hops) {
        trni_message_done(f, message);
        return;
    }
    f->left[message] = m->bytes;
    f->hop[message]++;
    trni_timer_add(f, f->time + (m->free ? 0 : f->latency[f->link[m->route + f->hop[message]]]), message);
}

TRNI_FN void trni_timer_fire(trni_flows *f, int64_t what)
{
    if (what < 0)
        trni_party_enter(f, (int)(-1 - what));
    else if (f->p->message[what].hops == 0 || !(f->left[what] > 0))
        trni_message_over(f, what);
    else
        f->active[f->actives++] = what;
}

/* ---- rates ---- */

TRNI_FN int trni_flows_count(trni_flows *f)
{
    int used = 0;
    for (int64_t a = 0; a < f->actives; a++) {
        int64_t i, end;
        for (trni_flow_links(f, f->active[a], &i, &end); i < end; i++) {
            const int link = f->link[i];
            if (f->sharers[link]++ == 0) f->used[used++] = link;
            f->rest[link] = f->capacity[link];
        }
        f->unfixed[a] = f->active[a];
    }
    return used;
}

/* Is one of a flow's links full when all grow to this rate? */
TRNI_FN bool trni_flow_full(const trni_flows *f, int64_t message, double rate)
{
    int64_t i, end;
    for (trni_flow_links(f, message, &i, &end); i < end; i++)
        if (f->rest[f->link[i]] <= rate * f->sharers[f->link[i]] * (1 + TRNI_SAME_TIME)) return true;
    return false;
}

/* Fills the links: the flows of the fullest one get what it gives to each, and so on with what is left. */
TRNI_FN void trni_flows_share(trni_flows *f)
{
    const int used = trni_flows_count(f);
    for (int64_t open = f->actives, kept; open > 0; open = kept) {
        double least = -1;
        for (int u = 0; u < used; u++) {
            const int link = f->used[u];
            if (f->sharers[link] && (least < 0 || f->rest[link] / f->sharers[link] < least))
                least = f->rest[link] / f->sharers[link];
        }
        int64_t full = open;
        kept = 0;
        for (int64_t a = 0; a < full;) { /* those that are full go behind the others */
            const int64_t m = f->unfixed[a];
            if (!trni_flow_full(f, m, least)) {
                kept = ++a;
                continue;
            }
            f->unfixed[a] = f->unfixed[--full];
            f->unfixed[full] = m;
        }
        for (int64_t a = full; a < open; a++) {
            int64_t i, end;
            f->rate[f->unfixed[a]] = least;
            for (trni_flow_links(f, f->unfixed[a], &i, &end); i < end; i++) {
                f->rest[f->link[i]] -= least;
                f->sharers[f->link[i]]--;
            }
        }
        kept = full;
    }
    for (int u = 0; u < used; u++) f->sharers[f->used[u]] = 0;
}

/* ---- a run ---- */

/* To the next event. */
TRNI_FN void trni_flows_advance(trni_flows *f)
{
    double next = f->timers ? f->timer[0].at : -1;
    for (int64_t a = 0; a < f->actives; a++) {
        const double over = f->time + f->left[f->active[a]] / f->rate[f->active[a]];
        if (next < 0 || over < next) next = over;
    }
    for (int64_t a = 0; a < f->actives; a++) f->left[f->active[a]] -= f->rate[f->active[a]] * (next - f->time);
    f->time = next;
}

/* begin: [parties] when each is there. */
TRNI_FN void trni_flows_run(trni_flows *f, const double *begin, int collectives)
{
    const trni_program *p = f->p;
    for (int64_t m = 0; m < p->messages; m++) {
        f->left[m] = p->message[m].bytes;
        f->hop[m] = f->arrived[m] = 0;
    }
    for (int i = 0; i < collectives; i++) f->end[i] = 0;
    f->time = 0;
    f->actives = f->timers = 0;
    for (int i = 0; i < p->parties; i++) {
        f->at[i] = f->entry_begin[i];
        f->pending[i] = 0;
        trni_timer_add(f, begin[i], -1 - (int64_t)i);
    }
    while (f->timers || f->actives) {
        trni_flows_advance(f);
        const double now = f->time * (1 + TRNI_SAME_TIME);
        int64_t over = 0, kept = 0;
        for (int64_t a = 0; a < f->actives; a++) {
            const int64_t m = f->active[a];
            if (f->left[m] <= f->rate[m] * f->time * TRNI_SAME_TIME)
                f->unfixed[over++] = m;
            else
                f->active[kept++] = m;
        }
        bool changed = over > 0;
        f->actives = kept;
        for (int64_t i = 0; i < over; i++) trni_message_over(f, f->unfixed[i]);
        while (f->timers && f->timer[0].at <= now) {
            trni_timer_fire(f, trni_timer_take(f).what);
            changed = true;
        }
        if (changed) trni_flows_share(f);
    }
}

/* ---- memory ---- */

TRNI_FN int trni_link_order(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Numbers the links that are used, and says what they carry: background[level] of it is somebody else's. */
TRNI_FN bool trni_flows_links(trni_flows *f, const double *background)
{
    const trni_program *p = f->p;
    const size_t n = p->links > 0 ? (size_t)p->links : 1;
    int64_t *all = (int64_t *)malloc(n * sizeof *all);
    f->link = (int *)malloc(n * sizeof *f->link);
    f->capacity = (double *)malloc(3 * n * sizeof(double));
    f->sharers = (int *)calloc(2 * n, sizeof(int));
    if (!all || !f->link || !f->capacity || !f->sharers) return (void)free(all), false;
    f->latency = f->capacity + n;
    f->rest = f->latency + n;
    f->used = f->sharers + n;
    for (int64_t i = 0; i < p->links; i++) all[i] = trni_link_counted(p->net, p->link[i]);
    qsort(all, (size_t)p->links, sizeof *all, trni_link_order);
    for (int64_t i = 0; i < p->links; i++)
        if (i == 0 || all[i] != all[f->links - 1]) all[f->links++] = all[i];
    for (int i = 0; i < f->links; i++) {
        trn_link link;
        if (!trn_topology_link(p->net, all[i], &link)) return (void)free(all), false;
        f->capacity[i] = link.bytes_per_s * (1 - (background ? background[link.level] : 0));
        f->latency[i] = link.latency_s;
    }
    for (int64_t i = 0; i < p->links; i++) {
        const int64_t counted = trni_link_counted(p->net, p->link[i]);
        f->link[i] = (int)((int64_t *)bsearch(&counted, all, (size_t)f->links, sizeof *all, trni_link_order) - all);
    }
    free(all);
    return true;
}

/* Which messages each party has, in the order of the steps. */
TRNI_FN void trni_flows_entries(trni_flows *f)
{
    const trni_program *p = f->p;
    for (int64_t m = 0; m < p->messages; m++)
        for (int i = 0; i < 2; i++) f->entry_begin[p->message[m].party[i] + 1]++;
    for (int i = 0; i < p->parties; i++) {
        f->entry_begin[i + 1] += f->entry_begin[i];
        f->at[i] = f->entry_begin[i];
    }
    for (int64_t m = 0; m < p->messages; m++)
        for (int i = 0; i < 2; i++) f->entry[f->at[p->message[m].party[i]]++] = m;
}

TRNI_FN void trni_flows_free(trni_flows *f)
{
    free(f->link);
    free(f->capacity);
    free(f->sharers);
    free(f->entry);
    free(f->left);
    free(f->hop);
    free(f->timer);
}

TRNI_FN trn_status trni_flows_init(trni_flows *f, const trni_program *p, int collectives, const double *background)
{
    const size_t messages = (size_t)p->messages + 1, parties = (size_t)p->parties + 1;
    memset(f, 0, sizeof *f);
    f->p = p;
    f->hop_by_hop = p->net->store_and_forward;
    f->entry = (int64_t *)calloc(4 * messages + 2 * parties + 1, sizeof(int64_t));
    f->left = (double *)calloc(2 * messages + (size_t)collectives, sizeof(double));
    f->hop = (int *)calloc(2 * messages + parties, sizeof(int));
    f->timer = (trni_timer *)calloc(messages + parties, sizeof(trni_timer));
    if (!f->entry || !f->left || !f->hop || !f->timer || !trni_flows_links(f, background))
        return trni_fail(p->error, TRN_ENOSPC, "could not allocate the flows of %lld messages", (long long)p->messages);
    f->active = f->entry + 2 * messages;
    f->unfixed = f->active + messages;
    f->at = f->unfixed + messages;
    f->entry_begin = f->at + parties;
    f->rate = f->left + messages;
    f->end = f->rate + messages;
    f->arrived = f->hop + messages;
    f->pending = f->arrived + messages;
    trni_flows_entries(f);
    return TRN_OK;
}

#endif /* TRNI_NETWORK_TRAFFIC_FLOW_H */
