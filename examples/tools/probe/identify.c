/* identify.c - elimination: which settings predict every output that was seen.
 * SPDX-License-Identifier: MIT
 *
 * Fields that share a tile form a group; groups are decided apart. Within a group the fields are given values in order,
 * and a tile speaks as soon as all fields of its scope have one. Where a rule says that some values are one, only the
 * one that stands for them is tried. If no setting is free of contradictions, those are found that the fewest tiles
 * contradict.
 */
#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- does one tile contradict one setting? ---- */

/* P(X <= x) and P(X >= x) of a binomial distribution, n tries. */
static double tail(int n, int x, double p, bool upper)
{
    double sum = 0;
    for (int i = upper ? x : 0; i <= (upper ? n : x); i++) {
        if ((p <= 0 && i > 0) || (p >= 1 && i < n)) continue;
        const double places = lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0);
        sum += exp(places + (p > 0 ? i * log(p) : 0) + (p < 1 ? (n - i) * log1p(-p) : 0));
    }
    return sum;
}

static const double beyond_chance = 1e-7;

/* Row m of psum_bf16 under stochastic rounding with `bits` random bits: each element went up 0, 1 (or, in row 0, 2)
 * times, each time with probability floor(2^bits frac) / 2^bits. */
static bool row_is_plausible(const probe_tile *t, const double *row, int m, int bits)
{
    const double exact = m ? ldexp(1, -m) : 0.375, p = bits < 30 ? floor(ldexp(exact, bits)) * ldexp(1, -bits) : exact;
    const int tries = m ? 1 : 2;
    int ups = 0;
    for (int n = 0; n < t->n; n++) {
        const double up = (row[n] - 1) * 0x1p7;
        if (!(up >= 0 && up <= tries && up == floor(up))) return false;
        ups += (int)up;
    }
    return tail(tries * t->n, ups, p, false) > beyond_chance && tail(tries * t->n, ups, p, true) > beyond_chance;
}

static int stochastic_contradictions(const probe_tile *t, const double *seen, int bits, int *first)
{
    int wrong = 0;
    for (int m = t->m - 1; m >= 0; m--)
        if (!row_is_plausible(t, seen + m * t->n, m, bits)) {
            wrong += t->n;
            *first = m * t->n;
        }
    return wrong;
}

int probe_contradictions(const probe_seen *seen, int tile, const probe_setting *s, int *first)
{
    const probe_tile *t = &probe_tiles[tile];
    const double *out = seen->out[tile];
    int wrong = 0;
    if (t->mode == PROBE_PSUM_BF16 && s->value[PROBE_PSUM] == 1 && s->value[PROBE_PSUM_ROUNDING] == 1)
        return stochastic_contradictions(t, out, s->value[PROBE_SR_BITS] + 1, first);
    const double *expected = probe_prediction(tile, s);
    for (int i = probe_outputs(t) - 1; i >= 0; i--)
        if (!probe_same(out[i], expected[i])) {
            wrong++;
            *first = i;
        }
    return wrong;
}

/* ---- one group ---- */

typedef struct search {
    const probe_seen *seen;
    probe_group *group;
    int limit; /* how many tiles may be contradicted */
    probe_setting s;
    int tiles, tile[PROBE_MAX_TILES];
} search;

static int highest_bit(uint32_t mask)
{
    int f = -1;
    for (; mask; mask >>= 1) f++;
    return f;
}

static int cost(int tile) { return probe_tiles[tile].k * probe_outputs(&probe_tiles[tile]); }

/* The group's tiles, cheap ones first, so that the dear ones are run for few settings. */
static void sort_tiles(search *q)
{
    for (int i = 0; i < probe_tile_count; i++) {
        if (!(q->group->tiles >> i & 1u)) continue;
        int at = q->tiles++;
        for (; at > 0 && cost(q->tile[at - 1]) > cost(i); at--) q->tile[at] = q->tile[at - 1];
        q->tile[at] = i;
    }
}

/* `wrong` and how many more of the tiles whose last field is f contradict the setting, as far as it goes; counted up to
 * the limit. */
static int wrong_at(const search *q, int f, int wrong)
{
    int first;
    for (int i = 0; i < q->tiles && wrong <= q->limit; i++)
        if (highest_bit(probe_tiles[q->tile[i]].scope) == f)
            wrong += probe_contradictions(q->seen, q->tile[i], &q->s, &first) > 0;
    return wrong;
}

static void descend(search *q, int f, int wrong)
{
    while (f < PROBE_FIELDS && !(q->group->fields & PROBE_BIT(f))) f++;
    if (f == PROBE_FIELDS) {
        if (q->group->kept < PROBE_MAX_FOUND) q->group->found[q->group->kept++] = q->s;
        q->group->count++;
        return;
    }
    for (int v = 0; v < probe_values(f); v++) {
        const probe_rule *r = probe_rule_for(&q->s, f, v);
        if (r && r->becomes != v) continue;
        q->s.value[f] = (int8_t)v;
        const int now = wrong_at(q, f, wrong);
        if (now <= q->limit) descend(q, f + 1, now);
    }
    q->s.value[f] = -1;
}

static void solve(const probe_seen *seen, probe_group *g)
{
    search q = { seen, g, 0, probe_undecided(), 0, { 0 } };
    sort_tiles(&q);
    for (; g->count == 0; q.limit++) descend(&q, 0, 0);
    g->wrong = q.limit - 1;
}

/* ---- groups ---- */

static probe_group *new_group(probe_verdict *v)
{
    v->group = (probe_group *)app_resize(v->group, (size_t)v->groups + 1, sizeof *v->group);
    memset(&v->group[v->groups], 0, sizeof *v->group);
    return &v->group[v->groups++];
}

/* Every field that shares a tile with one in `fields`, and those with their neighbours. */
static uint32_t connected(uint64_t tiles, uint32_t fields)
{
    for (uint32_t before = 0; before != fields;) {
        before = fields;
        for (int i = 0; i < probe_tile_count; i++)
            if ((tiles >> i & 1u) && (probe_tiles[i].scope & fields)) fields |= probe_tiles[i].scope;
    }
    return fields;
}

probe_verdict probe_identify(const probe_seen *seen, uint64_t tiles)
{
    probe_verdict v = { 0 };
    for (int i = 0; i < probe_tile_count; i++)
        if ((tiles >> i & 1u) && seen->out[i]) {
            v.tiles |= UINT64_C(1) << i;
            v.seen_fields |= probe_tiles[i].scope;
        }
    uint64_t left = v.tiles;
    while (left) {
        int first = 0;
        while (!(left >> first & 1u)) first++;
        probe_group *g = new_group(&v);
        g->fields = connected(v.tiles, probe_tiles[first].scope);
        for (int i = first; i < probe_tile_count; i++)
            if ((left >> i & 1u) && (i == first || (probe_tiles[i].scope & g->fields))) g->tiles |= UINT64_C(1) << i;
        left &= ~g->tiles;
        solve(seen, g);
        v.wrong += g->wrong;
    }
    return v;
}

void probe_verdict_free(probe_verdict *v)
{
    free(v->group);
    memset(v, 0, sizeof *v);
}

static int departures(const probe_setting *s, uint32_t fields)
{
    int n = 0;
    for (int f = 0; f < PROBE_FIELDS; f++) n += (fields & PROBE_BIT(f)) && s->value[f] != probe_hypotheses[f].standard;
    return n;
}

probe_setting probe_best(const probe_verdict *v)
{
    probe_setting s = probe_undecided();
    for (int i = 0; i < v->groups; i++) {
        const probe_group *g = &v->group[i];
        int best = 0;
        for (int k = 1; k < g->kept; k++)
            if (departures(&g->found[k], g->fields) < departures(&g->found[best], g->fields)) best = k;
        for (int f = 0; f < PROBE_FIELDS; f++)
            if (g->fields & PROBE_BIT(f)) s.value[f] = g->found[best].value[f];
    }
    return s;
}
