/* plan/plan_place.h - where the degrees of a plan lie on a topology, and which chips its collectives join.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: gives every axis its share of every level, the innermost axis first: from each level, innermost first, the
 *     greatest common divisor of what it still needs and what is still free. All of a degree always finds room, and all
 *     groups of an axis are alike, so that one of them stands for all. Lists the groups that may share links.
 * DOES NOT: judge whether a group is wise or legal (trn_plan.h does), or try other orders of the axes inside a level.
 *
 * KNOWN FROM: the order tp, cp, ep, dp, pp is Megatron-LM's default. A ring of four that two axes share as 2 x 2 is cut
 *     into {0, 3} and {1, 2}, so that the partners of the outer axis are neighbours, too: neuronx-distributed,
 *     parallel_state.py, for Trainium2. Trainium1's runtime wants consecutive ranks, and gets them.
 */
#ifndef TRNI_PLAN_PLAN_PLACE_H
#define TRNI_PLAN_PLAN_PLACE_H

#include "plan_args.h"

typedef struct trni_plan_place_part {
    int axis, factor;
} trni_plan_place_part;

typedef struct trni_plan_place {
    const trn_topology *net;
    int parts[TRN_MAX_LEVELS];
    trni_plan_place_part part[TRN_MAX_LEVELS][TRN_AXIS_COUNT]; /* of each level's digit, innermost axis first */
    bool folded[TRN_MAX_LEVELS];                               /* 2 x 2 on a ring of four: {0, 3}, {1, 2} */
} trni_plan_place;

TRNI_FN int64_t trni_plan_gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

TRNI_FN bool trni_plan_place_folds(const trni_plan_place *p, int level)
{
    const trn_system_spec *spec = trn_system_spec_of(p->net->system);
    const bool first = spec && spec->server->chip->core->generation == TRN_TRAINIUM1;
    return !first && p->net->level[level].wiring == TRN_WIRING_RING && p->net->level[level].size == 4 &&
           p->parts[level] == 2;
}

/* False when the degrees do not multiply to the number of chips. */
TRNI_FN bool trni_plan_place_degrees(const trn_topology *net, const int degree[TRN_AXIS_COUNT], trn_plan_order order,
                                     trni_plan_place *p)
{
    static const int inward[2][TRN_AXIS_COUNT] = {
        { TRN_AXIS_TP, TRN_AXIS_CP, TRN_AXIS_EP, TRN_AXIS_DP, TRN_AXIS_PP },
        { TRN_AXIS_TP, TRN_AXIS_CP, TRN_AXIS_EP, TRN_AXIS_PP, TRN_AXIS_DP },
    };
    int64_t free[TRN_MAX_LEVELS];
    bool fits = true;
    memset(p, 0, sizeof *p);
    p->net = net;
    for (int l = 0; l < net->levels; l++) free[l] = net->level[l].size;
    for (int i = 0; i < TRN_AXIS_COUNT; i++) {
        const int axis = inward[order == TRN_ORDER_PP_DP][i];
        int64_t need = degree[axis] < 1 ? 0 : degree[axis];
        for (int l = 0; l < net->levels && need > 1; l++) {
            const int64_t take = trni_plan_gcd(need, free[l]);
            if (take == 1) continue;
            p->part[l][p->parts[l]].axis = axis;
            p->part[l][p->parts[l]++].factor = (int)take;
            need /= take;
            free[l] /= take;
        }
        fits = fits && need == 1;
    }
    for (int l = 0; l < net->levels; l++) {
        fits = fits && free[l] == 1;
        p->folded[l] = trni_plan_place_folds(p, l);
    }
    return fits;
}

/* The same of a plan; several replicas of its dp may share a chip. */
TRNI_FN bool trni_plan_place_plan(const trn_topology *net, const trn_plan *plan, trni_plan_place *p)
{
    const int64_t inner = (int64_t)plan->tp * plan->cp * plan->ep * plan->pp;
    const bool shared = plan->tp_cores > 0 && inner > 0 && inner * plan->dp > net->chips && net->chips % inner == 0;
    const int dp = shared ? (int)(net->chips / inner) : plan->dp;
    const int degree[TRN_AXIS_COUNT] = { plan->tp, plan->cp, plan->ep, dp, plan->pp };
    return trni_plan_place_degrees(net, degree, plan->order, p);
}

/* ---- groups: `axes` is a set of bits ---- */

TRNI_FN bool trni_plan_place_has(const trni_plan_place *p, unsigned axes, int level, int part)
{
    return axes >> p->part[level][part].axis & 1u;
}

/* How many digits of a level a group has (inside), or how many groups there are beside each other (outside). */
TRNI_FN int trni_plan_place_span(const trni_plan_place *p, unsigned axes, int level, bool inside)
{
    int n = 1;
    for (int i = 0; i < p->parts[level]; i++)
        if (trni_plan_place_has(p, axes, level, i) == inside) n *= p->part[level][i].factor;
    return n;
}

/* The digit of member `in` of group `out` of this level. */
TRNI_FN int trni_plan_place_digit(const trni_plan_place *p, unsigned axes, int level, int in, int out)
{
    static const int folded[4] = { 0, 3, 1, 2 };
    int digit = 0, step = 1;
    for (int i = 0; i < p->parts[level]; i++) {
        const int factor = p->part[level][i].factor;
        int *from = trni_plan_place_has(p, axes, level, i) ? &in : &out;
        digit += step * (*from % factor);
        *from /= factor;
        step *= factor;
    }
    return p->folded[level] ? folded[digit] : digit;
}

/* The outermost level that a group of these axes spans; -1: a group is one chip. */
TRNI_FN int trni_plan_place_reach(const trni_plan_place *p, unsigned axes)
{
    int reach = -1;
    for (int l = 0; l < p->net->levels; l++)
        if (trni_plan_place_span(p, axes, l, true) > 1) reach = l;
    return reach;
}

/* Is the reach of a group one switch with a port for each of its chips, and nothing below it part of the group? */
TRNI_FN bool trni_plan_place_ported(const trni_plan_place *p, unsigned axes, int reach)
{
    bool alone = reach >= 0 && p->net->level[reach].wiring == TRN_WIRING_SWITCH && p->net->level[reach].planes < 2;
    for (int l = 0; l < reach && alone; l++) alone = trni_plan_place_span(p, axes, l, true) == 1;
    return alone;
}

/* Takes what is not the group's out of a level, or all of it. */
TRNI_FN void trni_plan_place_trim(trni_plan_place *p, trn_topology *net, unsigned axes, int level, bool all)
{
    int parts = 0, size = 1;
    for (int i = 0; i < p->parts[level]; i++) {
        if (all || !trni_plan_place_has(p, axes, level, i)) continue;
        size *= p->part[level][i].factor;
        p->part[level][parts++] = p->part[level][i];
    }
    p->parts[level] = parts;
    p->folded[level] = p->folded[level] && parts > 1;
    net->level[level].size = size;
    trni_wires_keep(net, level, size);     /* a graph is cut only as a whole: to one digit */
    if (all) net->level[level].planes = 1; /* nobody is left to tell apart */
}

/* The part of the network that matters to a group: nothing above its reach, no other ports of the one switch that is
 * its reach, and nothing below that switch if it goes straight from port to port. Links keep their loads, numbers
 * become small: what 400,000 chips do is asked of those that can get in each other's way. */
TRNI_FN void trni_plan_place_reduce(const trni_plan_place *place, unsigned axes, trn_topology *net, trni_plan_place *p)
{
    const int reach = trni_plan_place_reach(place, axes);
    const bool ported = trni_plan_place_ported(place, axes, reach);
    *net = *place->net;
    *p = *place;
    p->net = net;
    for (int l = 0; l < net->levels; l++) {
        if (l > reach || (ported && l < reach))
            trni_plan_place_trim(p, net, axes, l, true);
        else if (l == reach && net->level[l].wiring == TRN_WIRING_SWITCH)
            trni_plan_place_trim(p, net, axes, l, false);
    }
    net->chips = trn_topology_stride(net, net->levels);
}

/* The same axes, but of the levels outside [first, last] nothing belongs to them. */
TRNI_FN trni_plan_place trni_plan_place_within(const trni_plan_place *place, unsigned axes, int first, int last)
{
    trni_plan_place p = *place;
    for (int l = 0; l < p.net->levels; l++)
        for (int i = 0; i < p.parts[l]; i++)
            if ((l < first || l > last) && trni_plan_place_has(&p, axes, l, i)) p.part[l][i].axis = TRN_AXIS_COUNT;
    return p;
}

/* Chips of a level's digits, ascending, times its stride. Returns how many. */
TRNI_FN int trni_plan_place_steps(const trni_plan_place *p, unsigned axes, int level, int out, int *step)
{
    const int n = trni_plan_place_span(p, axes, level, true), stride = trn_topology_stride(p->net, level);
    for (int i = 0; i < n; i++) {
        const int s = stride * trni_plan_place_digit(p, axes, level, i, out);
        int at = i;
        for (; at > 0 && step[at - 1] > s; at--) step[at] = step[at - 1];
        step[at] = s;
    }
    return n;
}

/* One group: every combination of digits, innermost fastest. The steps of a level are written behind the group's last
 * place, so that chips needs room for count + the largest level. */
TRNI_FN void trni_plan_place_group(const trni_plan_place *p, unsigned axes, int64_t number, int *chips)
{
    int have = 1;
    chips[0] = 0;
    for (int l = 0; l < p->net->levels; l++) {
        const int beside = trni_plan_place_span(p, axes, l, false), out = (int)(number % beside);
        number /= beside;
        const int n = trni_plan_place_span(p, axes, l, true);
        if (n == 1) {
            const int s = trn_topology_stride(p->net, l) * trni_plan_place_digit(p, axes, l, 0, out);
            for (int i = 0; i < have; i++) chips[i] += s;
            continue;
        }
        int *step = chips + (int64_t)have * n; /* beyond what this level fills */
        trni_plan_place_steps(p, axes, l, out, step);
        for (int i = n - 1; i >= 0; i--)
            for (int k = 0; k < have; k++) chips[(int64_t)i * have + k] = chips[k] + step[i];
        have *= n;
    }
}

/* Chips of one group of these axes. */
TRNI_FN int trni_plan_place_count(const trni_plan_place *p, unsigned axes)
{
    int count = 1;
    for (int l = 0; l < p->net->levels; l++) count *= trni_plan_place_span(p, axes, l, true);
    return count;
}

/* Room for trni_plan_place_groups: no more than the chips, and the digits of the largest level. */
TRNI_FN int64_t trni_plan_place_capacity(const trn_topology *net)
{
    int largest = 1;
    for (int l = 0; l < net->levels; l++)
        if (net->level[l].size > largest) largest = net->level[l].size;
    return (int64_t)net->chips + largest;
}

/* chips[groups][count]: all groups of the network, that of chip 0 first. */
TRNI_FN void trni_plan_place_groups(const trni_plan_place *p, unsigned axes, int *chips, int *count, int *groups)
{
    *count = trni_plan_place_count(p, axes);
    *groups = p->net->chips / *count;
    for (int g = 0; g < *groups; g++) trni_plan_place_group(p, axes, g, chips + (int64_t)g * *count);
}

/* ---- which groups cost the same ---- */

enum { TRNI_PLAN_KEY = (int)TRN_MAX_LEVELS * TRN_AXIS_COUNT };

/* For each level the factors from the inside out, those of other axes negative, equal neighbours as one. */
TRNI_FN void trni_plan_place_key(const trni_plan_place *p, unsigned axes, int key[TRNI_PLAN_KEY])
{
    memset(key, 0, TRNI_PLAN_KEY * sizeof *key);
    for (int l = 0; l < p->net->levels; l++) {
        int *k = key + l * TRN_AXIS_COUNT, last = -1;
        for (int i = 0; i < p->parts[l]; i++) {
            const int has = trni_plan_place_has(p, axes, l, i), factor = p->part[l][i].factor;
            if (has == last)
                *k *= factor;
            else
                *(last < 0 ? k : ++k) = has ? factor : -factor;
            last = has;
        }
    }
}

#endif /* TRNI_PLAN_PLAN_PLACE_H */
