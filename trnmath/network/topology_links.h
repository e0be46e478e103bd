/* network/topology_links.h - levels whose links are listed one by one: who is next to whom, ways, distances, cuts.
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: says what makes a list of links no graph; finds the next digit on the way to another, with the fewest links;
 *     distances over all pairs, the least rate out of a digit, the least cut into halves, rings through all digits.
 * DOES NOT: know chips: all is said of the digits of one level. Nothing is kept between calls: a graph has so few
 *     digits that sets of them are words of 64 bits, and a search is some hundred operations.
 *
 * KNOWN FROM: definitions. Rings are looked for depth first: of those along the widest links the first one has the
 *     lowest digits in its order.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_LINKS_H
#define TRNI_NETWORK_TOPOLOGY_LINKS_H

#include "../machine/amounts.h"
#include "topology_parts.h"

/* Digits as bits: to which one has a link, and from which. */
typedef struct trni_graph {
    int size;
    uint64_t out[TRN_MAX_GRAPH], in[TRN_MAX_GRAPH];
} trni_graph;

TRNI_FN bool trni_has_bit(uint64_t set, int digit) { return set >> digit & 1u; }

TRNI_FN int trni_digits(uint64_t set)
{
    int n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

/* ---- wires ---- */

/* All parallel links together, one way. */
TRNI_FN double trni_wire_rate(const trn_wire *w) { return w->bytes_per_s * (w->count > 1 ? w->count : 1); }

TRNI_FN bool trni_wire_joins(const trn_wire *w, int from, int to)
{
    return (w->from == from && w->to == to) || (!w->one_way && w->from == to && w->to == from);
}

/* That goes from one digit of a level to another; NULL: there is none. */
TRNI_FN const trn_wire *trni_wire_between(const trn_topology *net, int level, int from, int to)
{
    for (int i = 0; i < net->wires; i++)
        if (net->wire[i].level == level && trni_wire_joins(&net->wire[i], from, to)) return &net->wire[i];
    return NULL;
}

TRNI_FN void trni_graph_join(trni_graph *g, int from, int to)
{
    g->out[from] |= (uint64_t)1 << to;
    g->in[to] |= (uint64_t)1 << from;
}

TRNI_FN void trni_graph_of(const trn_topology *net, int level, trni_graph *g)
{
    memset(g, 0, sizeof *g);
    g->size = net->level[level].size;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        if (w->level != level) continue;
        trni_graph_join(g, w->from, w->to);
        if (!w->one_way) trni_graph_join(g, w->to, w->from);
    }
}

/* Of a level that shrinks to its first digits: only the links among those stay. */
TRNI_FN void trni_wires_keep(trn_topology *net, int level, int size)
{
    int kept = 0;
    for (int i = 0; i < net->wires; i++)
        if (net->wire[i].level != level || (net->wire[i].from < size && net->wire[i].to < size))
            net->wire[kept++] = net->wire[i];
    net->wires = kept;
}

/* Have all wires of a level one rate and one latency? Then *wire is one of them; NULL where they differ. */
TRNI_FN bool trni_wires_alike(const trn_topology *net, int level, const trn_wire **wire)
{
    const trn_wire *first = *wire = NULL;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        if (w->level != level) continue;
        if (!first) first = w;
        if (trni_wire_rate(w) < trni_wire_rate(first) || trni_wire_rate(w) > trni_wire_rate(first) ||
            w->latency_s < first->latency_s || w->latency_s > first->latency_s)
            return false;
    }
    *wire = first;
    return first != NULL;
}

/* What a level is wired as: a graph that spells a ring or all to all, of equal links, is one. (Three digits are a
 * ring.) */
TRNI_FN trn_wiring trni_wiring_like(const trn_topology *net, int level)
{
    const int n = net->level[level].size;
    const trn_wire *wire;
    trni_graph g;
    bool ring = true, full = true;
    if (net->level[level].wiring != TRN_WIRING_GRAPH) return net->level[level].wiring;
    if (!trni_wires_alike(net, level, &wire)) return TRN_WIRING_GRAPH;
    trni_graph_of(net, level, &g);
    for (int d = 0; d < n; d++) {
        const uint64_t all = (n < 64 ? (uint64_t)1 << n : 0) - 1;
        full = full && g.out[d] == (all & ~((uint64_t)1 << d));
        ring = ring && g.out[d] == ((uint64_t)1 << (d + 1) % n | (uint64_t)1 << (d + n - 1) % n);
    }
    return ring ? TRN_WIRING_RING : full ? TRN_WIRING_FULL : TRN_WIRING_GRAPH;
}

/* Is there a level whose links are neither all alike nor where those of a ring or of all to all would be? */
TRNI_FN bool trni_net_is_uneven(const trn_topology *net)
{
    for (int l = 0; l < net->levels; l++)
        if (net->level[l].size > 1 && trni_wiring_like(net, l) == TRN_WIRING_GRAPH) return true;
    return false;
}

/* ---- ways ---- */

/* shell[k]: the digits that are k links away from `to`, for k below what is returned. */
TRNI_FN int trni_graph_shells(const trni_graph *g, int to, uint64_t shell[TRN_MAX_GRAPH])
{
    uint64_t seen = shell[0] = (uint64_t)1 << to;
    int k = 0;
    while (shell[k]) {
        uint64_t next = 0;
        for (int d = 0; d < g->size; d++)
            if (trni_has_bit(shell[k], d)) next |= g->in[d];
        next &= ~seen;
        seen |= next;
        if (++k == TRN_MAX_GRAPH) return k;
        shell[k] = next;
    }
    return k;
}

TRNI_FN int trni_graph_distance(const uint64_t *shell, int shells, int digit)
{
    int k = 0;
    while (k < shells && !trni_has_bit(shell[k], digit)) k++;
    return k;
}

/* Of the neighbours that are nearer, the first that comes counting up from an even digit, down from an odd one, and
 * round: the rule of a ring, half way round which even digits go up. */
TRNI_FN int trni_graph_next(const trni_graph *g, int at, uint64_t nearer)
{
    for (int i = 1; i < g->size; i++) {
        const int d = (at + (at % 2 ? g->size - i : i)) % g->size;
        if (trni_has_bit(g->out[at] & nearer, d)) return d;
    }
    return -1;
}

/* Two digits of which the second cannot be reached from the first; false when all can be reached from all. */
TRNI_FN bool trni_graph_lost(const trni_graph *g, int *from, int *to)
{
    uint64_t shell[TRN_MAX_GRAPH];
    for (int backwards = 0; backwards < 2; backwards++) {
        trni_graph turned = *g;
        if (backwards) {
            memcpy(turned.in, g->out, sizeof turned.in);
            memcpy(turned.out, g->in, sizeof turned.out);
        }
        const int shells = trni_graph_shells(&turned, 0, shell);
        for (int d = 1; d < g->size; d++) {
            if (trni_graph_distance(shell, shells, d) < shells) continue;
            *from = backwards ? 0 : d;
            *to = backwards ? d : 0;
            return true;
        }
    }
    return false;
}

/* Pairs of digits with a link one way or both. */
TRNI_FN int trni_graph_pairs(const trn_topology *net, int level)
{
    trni_graph g;
    int pairs = 0;
    trni_graph_of(net, level, &g);
    for (int d = 0; d < g.size; d++) pairs += trni_digits((g.out[d] | g.in[d]) >> d);
    return pairs;
}

/* Links between all ordered pairs, added up, and the most of any. */
TRNI_FN int trni_graph_sum(const trn_topology *net, int level, int *most)
{
    uint64_t shell[TRN_MAX_GRAPH];
    trni_graph g;
    int sum = 0;
    *most = 0;
    trni_graph_of(net, level, &g);
    for (int to = 0; to < g.size; to++) {
        const int shells = trni_graph_shells(&g, to, shell);
        for (int k = 1; k < shells; k++) sum += k * trni_digits(shell[k]);
        if (shells - 1 > *most) *most = shells - 1;
    }
    return sum;
}

/* ---- rates ---- */

/* One way, out of the digit that has least; most: out of the one, or into the one, that has most. Equal rates are
 * counted, not added. */
TRNI_FN double trni_graph_injection(const trn_topology *net, int level, bool most)
{
    double least_out = -1, most_any = 0;
    const trn_wire *alike;
    trni_wires_alike(net, level, &alike);
    for (int d = 0; d < net->level[level].size; d++) {
        double out = 0, in = 0;
        for (int i = 0; i < net->wires; i++) {
            const trn_wire *w = &net->wire[i];
            const double rate = alike ? 1 : trni_wire_rate(w);
            if (w->level == level && (w->from == d || (!w->one_way && w->to == d))) out += rate;
            if (w->level == level && (w->to == d || (!w->one_way && w->from == d))) in += rate;
        }
        if (least_out < 0 || out < least_out) least_out = out;
        if (out > most_any) most_any = out;
        if (in > most_any) most_any = in;
    }
    return (most ? most_any : least_out) * (alike ? trni_wire_rate(alike) : 1);
}

enum { TRNI_HALVED_GRAPH = 16 }; /* digits of which all halvings are tried */

typedef struct trni_halving {
    int size;
    double rate[TRNI_HALVED_GRAPH][TRNI_HALVED_GRAPH];
} trni_halving;

/* From the digits of a set to the others, or back, whichever is less. */
TRNI_FN double trni_halving_rate(const trni_halving *h, unsigned set)
{
    double there = 0, back = 0;
    for (int i = 0; i < h->size; i++)
        for (int k = 0; set >> i & 1u && k < h->size; k++) {
            if (set >> k & 1u) continue;
            there += h->rate[i][k];
            back += h->rate[k][i];
        }
    return there < back ? there : back;
}

TRNI_FN double trni_halving_least(const trni_halving *h)
{
    const unsigned end = 1u << h->size;
    double least = -1;
    unsigned set = (1u << h->size / 2) - 1; /* and so on: the next larger number with as many bits */
    while (set < end) {
        const bool twin = h->size % 2 == 0 && !(set & 1u); /* the other half of one that is tried */
        const double rate = twin ? least : trni_halving_rate(h, set);
        if (least < 0 || rate < least) least = rate;
        const unsigned low = set & (~set + 1), carried = set + low;
        set = ((carried ^ set) >> 2) / low | carried;
    }
    return least;
}

/* One way, from half of the digits to the others: the least of all halvings, or of more than 16 digits what goes from
 * the lower ones to the upper ones, or back, whichever is less. */
TRNI_FN double trni_graph_cut(const trn_topology *net, int level)
{
    const int n = net->level[level].size;
    const trn_wire *alike;
    trni_halving h;
    double up = 0, down = 0;
    memset(&h, 0, sizeof h);
    h.size = n;
    trni_wires_alike(net, level, &alike);
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        const double rate = alike ? 1 : trni_wire_rate(w);
        if (w->level != level) continue;
        if (n <= TRNI_HALVED_GRAPH) {
            h.rate[w->from][w->to] += rate;
            if (!w->one_way) h.rate[w->to][w->from] += rate;
        } else if ((w->from < n / 2) != (w->to < n / 2)) {
            if (!w->one_way || w->from < n / 2) up += rate;
            if (!w->one_way || w->to < n / 2) down += rate;
        }
    }
    return (n <= TRNI_HALVED_GRAPH ? trni_halving_least(&h)
            : up < down            ? up
                                   : down) *
           (alike ? trni_wire_rate(alike) : 1);
}

TRNI_FN double trni_graph_least_latency(const trn_topology *net, int level)
{
    double least = -1;
    for (int i = 0; i < net->wires; i++)
        if (net->wire[i].level == level && (least < 0 || net->wire[i].latency_s < least))
            least = net->wire[i].latency_s;
    return least;
}

/* ---- rings through all digits ---- */

enum { TRNI_RING_TRIES = 20000 }; /* steps of one search: what is not found by then is not there */

/* What rings may use: parallel links that are left of each wire, and for each digit those to which most are left. */
typedef struct trni_graph_rest {
    trni_graph g;
    int left[TRN_MAX_WIRES];
    uint64_t wide[TRN_MAX_GRAPH];
} trni_graph_rest;

TRNI_FN void trni_graph_widest(const trn_topology *net, int level, trni_graph_rest *r)
{
    int most = 1;
    memset(r->wide, 0, sizeof r->wide);
    for (int i = 0; i < net->wires; i++)
        if (net->wire[i].level == level && r->left[i] > most) most = r->left[i];
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        if (w->level != level || r->left[i] < most) continue;
        r->wide[w->from] |= (uint64_t)1 << w->to;
        if (!w->one_way) r->wide[w->to] |= (uint64_t)1 << w->from;
    }
}

/* The next digit that a ring may go to, in the order of `turn`: along the widest links first, then along the others. */
TRNI_FN int trni_graph_turn(const trni_graph_rest *r, int at, uint64_t open, int turn)
{
    const int n = r->g.size;
    for (; turn < 2 * n; turn++) {
        const uint64_t wide = turn < n ? r->wide[at] : ~r->wide[at];
        if (trni_has_bit(open & wide, turn % n)) return turn;
    }
    return -1;
}

/* The first ring from 0 along links that go both ways (of a graph whose in is its out: either way); false when there is
 * none, or it was not found. */
TRNI_FN bool trni_graph_ring(const trni_graph_rest *r, int order[TRN_MAX_GRAPH])
{
    const trni_graph *g = &r->g;
    uint64_t used = 1;
    int next[TRN_MAX_GRAPH], n = 1; /* next: the turn that is tried at each place */
    order[0] = next[1] = 0;
    for (int tries = 0; n > 0 && g->size > 2 && tries < TRNI_RING_TRIES; tries++) {
        const int at = order[n - 1];
        const uint64_t both = g->out[at] & g->in[at];
        if (n == g->size && trni_has_bit(both, 0)) return true;
        const int turn = n < g->size ? trni_graph_turn(r, at, both & ~used, next[n]) : -1;
        if (turn < 0) { /* back */
            used &= ~((uint64_t)1 << order[--n]);
            continue;
        }
        next[n] = turn + 1;
        order[n] = turn % g->size;
        used |= (uint64_t)1 << order[n++];
        if (n < g->size) next[n] = 0;
    }
    return false;
}

/* One of the parallel links of a direction is taken; with the last of them the direction is. */
TRNI_FN void trni_graph_take(const trn_topology *net, int level, trni_graph_rest *r, int from, int to)
{
    const trn_wire *w = trni_wire_between(net, level, from, to);
    if (!w || --r->left[w - net->wire] > 0) return;
    r->g.out[from] &= ~((uint64_t)1 << to);
    r->g.in[to] &= ~((uint64_t)1 << from);
    if (w->one_way) return;
    r->g.out[to] &= ~((uint64_t)1 << from);
    r->g.in[from] &= ~((uint64_t)1 << to);
}

/* Rings that share no link (of parallel ones each may have one), each the first in what the others have left; at most
 * `most`. Where there is none, one that can be gone round in one direction. */
TRNI_DRIVER int trni_graph_rings(const trn_topology *net, int level, int most, int order[][TRN_MAX_GRAPH])
{
    trni_graph_rest r;
    int rings = 0;
    trni_graph_of(net, level, &r.g);
    for (int i = 0; i < net->wires; i++) r.left[i] = net->wire[i].count > 1 ? net->wire[i].count : 1;
    for (; rings < most; rings++) {
        trni_graph_widest(net, level, &r);
        if (!trni_graph_ring(&r, order[rings])) break;
        for (int i = 0; i < r.g.size; i++) {
            const int a = order[rings][i], b = order[rings][(i + 1) % r.g.size];
            const trn_wire *back = trni_wire_between(net, level, b, a);
            trni_graph_take(net, level, &r, a, b);
            if (back && back->one_way) trni_graph_take(net, level, &r, b, a);
        }
    }
    if (rings || most < 1) return rings;
    memcpy(r.g.in, r.g.out, sizeof r.g.in);
    return trni_graph_ring(&r, order[0]);
}

/* ---- is it a graph ---- */

/* "3-7", or "3->7" */
TRNI_FN const char *trni_wire_text(const trn_wire *w, char text[16])
{
    snprintf(text, 16, w->one_way ? "%d->%d" : "%d-%d", (int)w->from, (int)w->to);
    return text;
}

/* One wire by itself, and against those before it, which are in g. */
TRNI_DRIVER trn_status trni_wire_check(const trn_topology *net, const trn_wire *w, const trni_graph *g,
                                       trn_error *error)
{
    char name[16], range[48];
    const trn_level *l = &net->level[w->level];
    const int high = w->from > w->to ? w->from : w->to;
    trni_wire_text(w, name);
    if (high >= l->size)
        return trni_fail(error, TRN_EINVAL, "link %s: level %s has no %d, only 0 to %d", name, trn_level_name(l), high,
                         l->size - 1);
    if (w->from == w->to)
        return trni_fail(error, TRN_EINVAL, "link %s joins %d of level %s to itself", name, w->from, trn_level_name(l));
    if (trni_has_bit(g->out[w->from], w->to) || (!w->one_way && trni_has_bit(g->out[w->to], w->from)))
        return trni_fail(
            error, TRN_EINVAL,
            "link %s of level %s is there already: parallel links are one line with a number, as in \"x 2\"", name,
            trn_level_name(l));
    if (w->count < 0 || w->count > TRN_MAX_PARALLEL)
        return trni_fail(error, TRN_EINVAL, "link %s of level %s: %d parallel links, expected 1 to %d", name,
                         trn_level_name(l), w->count, (int)TRN_MAX_PARALLEL);
    if (!trni_amount_is(TRNI_RATE, w->bytes_per_s) || !trni_amount_is(TRNI_RATE, trni_wire_rate(w)))
        return trni_fail(error, TRN_EINVAL, "link %s of level %s: bytes_per_s is %g, expected %s", name,
                         trn_level_name(l), trni_wire_rate(w), trni_legal_text(TRNI_RATE, 0, range));
    if (!trni_amount_is(TRNI_TIME, w->latency_s))
        return trni_fail(error, TRN_EINVAL, "link %s of level %s: latency_s is %g, expected %s", name,
                         trn_level_name(l), w->latency_s, trni_legal_text(TRNI_TIME, 0, range));
    const trn_wire *other = l->half_duplex ? trni_wire_between(net, w->level, w->to, w->from) : NULL;
    if (other && (trni_wire_rate(other) < trni_wire_rate(w) || trni_wire_rate(other) > trni_wire_rate(w)))
        return trni_fail(error, TRN_EINVAL,
                         "link %s of level %s: the two directions share one rate (half duplex), and have %g and %g",
                         name, trn_level_name(l), trni_wire_rate(w), trni_wire_rate(other));
    return TRN_OK;
}

/* A level of links. When a wire is wrong, *wire is its number; -1: it is the level that is. */
TRNI_DRIVER trn_status trni_graph_check(const trn_topology *net, int level, int *wire, trn_error *error)
{
    const trn_level *l = &net->level[level];
    trni_graph g;
    int from = 0, to = 0;
    *wire = -1;
    if (l->size > TRN_MAX_GRAPH)
        return trni_fail(error, TRN_ELIMIT,
                         "level %d (%s): a graph of %d, and the most is %d: of more, make several levels", level,
                         trn_level_name(l), l->size, (int)TRN_MAX_GRAPH);
    memset(&g, 0, sizeof g);
    g.size = l->size;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        if (w->level != level) continue;
        *wire = i;
        const trn_status status = trni_wire_check(net, w, &g, error);
        if (status) return status;
        trni_graph_join(&g, w->from, w->to);
        if (!w->one_way) trni_graph_join(&g, w->to, w->from);
    }
    *wire = -1;
    if (!trni_graph_lost(&g, &from, &to)) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "level %d (%s): its links leave no way from %s%d to %s%d", level,
                     trn_level_name(l), level ? "" : "chip ", from, level ? "" : "chip ", to);
}

/* Does each wire belong to a level of links? */
TRNI_DRIVER trn_status trni_wires_check(const trn_topology *net, trn_error *error)
{
    if (net->wires < 0 || net->wires > TRN_MAX_WIRES)
        return trni_fail(error, TRN_EINVAL, "wires is %d, expected 0 to %d", net->wires, (int)TRN_MAX_WIRES);
    for (int i = 0; i < net->wires; i++)
        if (net->wire[i].level >= net->levels || net->level[net->wire[i].level].wiring != TRN_WIRING_GRAPH)
            return trni_fail(error, TRN_EINVAL,
                             "wire %d: level %d is not wired as a graph, and has no links of its own", i,
                             net->wire[i].level);
    return TRN_OK;
}

#endif /* TRNI_NETWORK_TOPOLOGY_LINKS_H */
