/* test_collective_time.c - the time of schedules against a twin that sends every message of every step over every link.
 * SPDX-License-Identifier: MIT
 *
 * The library folds chips that look alike, and steps that do. The twin does neither: it follows the sub-blocks of all
 * positions through all steps, adds up the bytes on each link by its number, and takes the fullest. Both must agree to
 * the last digits, whatever the topology, the group, the algorithm and the number of ranks per chip.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/network/collective_time.h"
#include "twin/cases.h"
#include "twin/collective_nets.h"

enum { MOST_CHIPS = 160, MOST_LINKS = 2048, MOST_ROUTE = 64 };

/* ---- what is being done ---- */

typedef struct work {
    const trn_collective_args *args;
    const trni_schedule *s;
    const trni_cc_channel *channel;
    const trni_cc_stage *stage;
    int group;
    double link[MOST_LINKS], hbm[MOST_CHIPS], dma[MOST_CHIPS]; /* of a step; of a phase */
    double latency_s;                                          /* of a step; < 0: nothing was sent */
} work;

static work w;

static int chip_of(int rank)
{
    const int cores = w.args->ranks_per_chip, count = w.s->ranks / cores;
    return w.args->chips ? w.args->chips[w.group * count + rank / cores] : rank / cores;
}

static void message(int from, int to, double bytes)
{
    int64_t link[MOST_ROUTE];
    const trn_topology *net = w.args->net;
    const int links = trn_topology_route(net, chip_of(from), chip_of(to), link, MOST_ROUTE);
    double latency = links ? 0 : net->local_latency_s;
    assert_in_range(links, 0, MOST_ROUTE);
    for (int i = 0; i < links; i++) {
        trn_link segment = { 0 };
        assert_true(trn_topology_link(net, link[i], &segment));
        w.link[link[i]] += bytes * w.stage->factor / segment.bytes_per_s;
        latency += segment.latency_s;
    }
    if (latency > w.latency_s) w.latency_s = latency;
}

static void copied(int from, int to, double bytes, int copies)
{
    message(from, to, bytes);
    w.hbm[chip_of(from)] += bytes;
    w.hbm[chip_of(to)] += bytes * copies;
    w.dma[chip_of(to)] += bytes;
}

/* Every source is read; one that is elsewhere travels; one result is written. */
static void summed(const int *from, int sources, int to, double bytes)
{
    const double passes = sources * w.args->net->reduce_pass;
    for (int i = 0; i < sources; i++) {
        w.hbm[chip_of(from[i])] += bytes;
        if (from[i] != to) message(from[i], to, bytes);
    }
    w.hbm[chip_of(to)] += bytes * (1 + (sources > 16 ? sources / 8.0 : 0)); /* partial sums, written and read */
    w.dma[chip_of(to)] += bytes * (passes > 1 ? passes : 1);
}

/* ---- one move ---- */

static int rank_of(int base, int member) { return trni_rank_at(w.s, w.channel, base + member * w.stage->stride); }

static void moved(const trni_hop *m, int base, double block)
{
    const double bytes = block * m->weight * (m->part ? 0.5 : 1);
    int from[MOST_CHIPS * 8];
    if (m->sources == TRNI_ALL_MEMBERS) {
        for (int i = 0; i < w.stage->size; i++) from[i] = rank_of(base, i);
        summed(from, w.stage->size, rank_of(base, m->to), bytes);
    } else if (m->to == TRNI_NOBODY) {
        for (int i = 0; i < w.stage->size; i++)
            if (i != m->from[0]) copied(rank_of(base, m->from[0]), rank_of(base, i), bytes, 1);
    } else if (m->sources == 1) {
        copied(rank_of(base, m->from[0]), rank_of(base, m->to), bytes, m->also == TRNI_NOBODY ? 1 : 2);
    } else {
        for (int i = 0; i < m->sources; i++) from[i] = rank_of(base, m->from[i]);
        summed(from, m->sources, rank_of(base, m->to), bytes);
    }
}

typedef enum phase { REDUCE, GATHER, EXCHANGE } phase;

/* The stage and the step of it that a channel is in; false when it has finished. */
static bool where(const trni_cc_channel *c, phase how, int step, int *stage, int *at)
{
    for (int i = 0; i < c->stages; i++) {
        *stage = how == GATHER ? c->stages - 1 - i : i;
        const int steps = trni_pattern_steps(c->stage[*stage].how, c->stage[*stage].size);
        if (step < steps) {
            *at = step;
            return true;
        }
        step -= steps;
    }
    return false;
}

/* All sub-blocks of one channel, one step; false when the step costs no latency. */
static bool channel_step(const trni_cc_channel *c, phase how, int stage, int step)
{
    double block = c->share;
    w.channel = c;
    w.stage = &c->stage[stage];
    for (int i = 0; i <= stage; i++)
        if (how != EXCHANGE || i == stage) block /= c->stage[i].size;
    const int groups = w.args->groups ? w.args->groups : 1;
    for (w.group = 0; w.group < groups; w.group++)
        for (int p = 0; p < w.s->ranks; p++) {
            trni_hop move[TRNI_HOPS];
            const int v = p / w.stage->stride % w.stage->size, n = w.stage->size;
            const int moves = how == REDUCE   ? trni_reduce_moves(w.stage->how, n, step, v, move)
                              : how == GATHER ? trni_gather_moves(w.stage->how, n, step, v, move)
                                              : trni_exchange_moves(w.stage->how, n, step, v, move);
            for (int k = 0; k < moves; k++) moved(&move[k], p - v * w.stage->stride, block);
        }
    return !trni_step_is_free(w.stage->how, w.stage->size, step, how == REDUCE);
}

/* ---- times ---- */

static void step_end(bool paid, trni_times *t)
{
    double longest = 0;
    const double latency = paid && w.latency_s >= 0 ? w.args->net->start_s + w.latency_s : 0;
    for (int64_t i = 0; i < trn_topology_link_count(w.args->net); i++) {
        if (w.link[i] > longest) longest = w.link[i];
        w.link[i] = 0;
    }
    w.latency_s = -1;
    t->link_s += longest;
    t->latency_s += latency;
    t->steps += longest > 0 || latency > 0;
}

static double at_rate(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

static void phase_end(trni_times *t, double links_before)
{
    double hbm = 0, dma = 0;
    for (int i = 0; i < w.args->net->chips; i++) {
        hbm = fmax(hbm, w.hbm[i]);
        dma = fmax(dma, w.dma[i]);
        w.hbm[i] = w.dma[i] = 0;
    }
    hbm = at_rate(hbm, w.args->net->hbm_bytes_per_s);
    dma = at_rate(dma, w.args->net->dma_bytes_per_s);
    t->hbm_s += hbm;
    t->dma_s += dma;
    t->slope_s += fmax(t->link_s - links_before, fmax(hbm, dma));
}

static void time_phase(phase how, trni_times *t)
{
    const double before = t->link_s;
    for (int step = 0, busy = 1; busy; step++) {
        bool paid = false;
        busy = 0;
        for (int k = 0; k < w.s->channels; k++) {
            int stage, at;
            if (!where(&w.s->channel[k], how, step, &stage, &at)) continue;
            paid |= channel_step(&w.s->channel[k], how, stage, at);
            busy = 1;
        }
        step_end(paid, t);
    }
    phase_end(t, before);
}

/* Every rank reads everything of everybody, and sums. */
static void time_single_step(trni_times *t)
{
    const trni_cc_channel all = { 1, NULL, 1, { { TRNI_DIRECT, w.s->ranks, 1, 1 } } };
    const trni_hop everything = { 0, TRNI_NOBODY, { 0, 0, 0 }, TRNI_ALL_MEMBERS, 0, 1 };
    w.channel = &all;
    w.stage = &all.stage[0];
    for (w.group = 0; w.group < (w.args->groups ? w.args->groups : 1); w.group++)
        for (int r = 0; r < w.s->ranks; r++) {
            trni_hop to = everything;
            to.to = r;
            moved(&to, 0, 1);
        }
    step_end(true, t);
    phase_end(t, 0);
}

/* ---- broadcasts ---- */

static int digit(const trni_cc_channel *c, int stage, int position)
{
    return position / c->stage[stage].stride % c->stage[stage].size;
}

/* One stage of one channel, in the groups that the data reaches from the root: it has the root's digits in the stages
 * that are still to come. Returns the hops that follow each other. */
static int spread_stage(const trni_cc_channel *c, int stage, int root, bool dealt)
{
    const int n = c->stage[stage].size, v = digit(c, stage, root);
    const bool line = c->stage[stage].how != TRNI_DIRECT && !dealt;
    const int reach[2] = { c->stage[stage].how == TRNI_BOTH_WAYS ? n / 2
                           : c->stage[stage].how == TRNI_RING_UP ? n - 1
                                                                 : 0,
                           c->stage[stage].how == TRNI_BOTH_WAYS   ? (n - 1) / 2
                           : c->stage[stage].how == TRNI_RING_DOWN ? n - 1
                                                                   : 0 };
    double bytes = c->share;
    for (int i = 0; i <= stage && dealt; i++) bytes /= c->stage[i].size;
    w.channel = c;
    w.stage = &c->stage[stage];
    for (int p = 0; p < w.s->ranks; p++) {
        bool reached = digit(c, stage, p) == 0;
        for (int i = 0; i < c->stages; i++)
            if (dealt ? i > stage : i < stage) reached = reached && digit(c, i, p) == digit(c, i, root);
        for (int m = 0; m < n && reached && !line; m++)
            if (m != v) copied(rank_of(p, v), rank_of(p, m), bytes, 1);
        for (int way = 0; way < 2 && reached && line; way++)
            for (int i = 0; i < reach[way]; i++) {
                const int sign = way ? -1 : 1, from = trni_wrap(v + sign * i, n);
                copied(rank_of(p, from), rank_of(p, trni_wrap(from + sign, n)), bytes, 1);
            }
    }
    return !line ? 1 : reach[0] > reach[1] ? reach[0] : reach[1];
}

static void time_broadcast(trni_times *t)
{
    int stages = 0;
    for (int k = 0; k < w.s->channels; k++) stages = w.s->channel[k].stages > stages ? w.s->channel[k].stages : stages;
    for (int i = 0; i < stages; i++) {
        trni_times one;
        int hops = 1;
        memset(&one, 0, sizeof one);
        for (int k = 0; k < w.s->channels; k++) {
            const trni_cc_channel *c = &w.s->channel[k];
            const int stage = w.s->scattered ? i : c->stages - 1 - i;
            int root = 0, steps = 1;
            while (trni_rank_at(w.s, c, root) != w.args->root) root++;
            if (stage < 0 || stage >= c->stages) continue;
            for (w.group = 0; w.group < (w.args->groups ? w.args->groups : 1); w.group++)
                steps = spread_stage(c, stage, root, w.s->scattered);
            if (steps > hops) hops = steps;
        }
        step_end(true, &one);
        t->link_s += one.link_s * (1 + (hops - 1) / 16.0); /* in sixteen pieces, that follow each other */
        t->latency_s += one.latency_s * hops;
        t->steps += one.steps * hops;
    }
    phase_end(t, 0);
    if (w.s->scattered) time_phase(GATHER, t);
}

static trni_times time_of(const trn_collective_args *args, const trni_schedule *s)
{
    trni_times t;
    memset(&t, 0, sizeof t);
    memset(&w, 0, sizeof w);
    w.args = args;
    w.s = s;
    w.latency_s = -1;
    assert_true(args->net->chips <= MOST_CHIPS && trn_topology_link_count(args->net) <= MOST_LINKS);
    if (s->ranks < 2) return t;
    if (s->single_step)
        time_single_step(&t);
    else if (args->op == TRN_BROADCAST)
        time_broadcast(&t);
    else if (args->op == TRN_ALL_TO_ALL)
        time_phase(EXCHANGE, &t);
    else {
        if (args->op != TRN_ALL_GATHER) time_phase(REDUCE, &t);
        if (args->op != TRN_REDUCE_SCATTER) time_phase(GATHER, &t);
    }
    return t;
}

/* ---- comparing ---- */

static void require_close(double got, double expected, const char *what, const char *text)
{
    if (!(fabs(got - expected) <= 1e-11 * fabs(expected)))
        fail_msg("%s: %s is %.15g, not %.15g", text, what, got, expected);
}

static void compare(const trni_layout *layout, trn_algorithm a, int variant, const char *name)
{
    char text[160];
    trni_schedule s;
    trni_times got;
    memset(&s, 0, sizeof s);
    snprintf(text, sizeof text, "%s, %d ranks per chip, %s by %s %d", name, layout->ranks_per_chip,
             trn_collective_name(layout->ask->op), trn_algorithm_name(a), variant);
    assert_int_equal(trni_layout_schedule(layout, a, variant, &s), TRN_OK);
    assert_int_equal(trni_load_times(layout, &s, &got), TRN_OK);
    const trni_times expected = time_of(layout->ask, &s);
    require_close(got.link_s, expected.link_s, "link_s", text);
    require_close(got.latency_s, expected.latency_s, "latency_s", text);
    if (layout->ask->op != TRN_BROADCAST ||
        layout->ask->chips) { /* a folded one counts the root's memory for everybody's */
        require_close(got.hbm_s, expected.hbm_s, "hbm_s", text);
        require_close(got.dma_s, expected.dma_s, "dma_s", text);
        require_close(got.slope_s, expected.slope_s, "slope_s", text);
    }
    if (got.steps != expected.steps) fail_msg("%s: %d steps, not %d", text, got.steps, expected.steps);
    trni_schedule_free(&s);
}

static int compare_all(trn_collective_args *args, const char *name)
{
    int compared = 0;
    args->uncalibrated = true;
    for (int op = TRN_ALL_GATHER; op <= TRN_BROADCAST; op++) {
        trni_layout layout;
        memset(&layout, 0, sizeof layout);
        args->op = (trn_collective)op;
        args->root = op == TRN_BROADCAST ? trn_collective_ranks(args) * 2 / 3 : 0;
        assert_int_equal(trni_layout_init(&layout, args), TRN_OK);
        for (int a = TRN_RING; a < TRN_POINT_TO_POINT; a++) {
            if (trni_layout_fits(&layout, (trn_algorithm)a, NULL) != TRN_OK) continue;
            for (int v = 0; v < trni_layout_variants(&layout, (trn_algorithm)a); v++)
                if (trni_layout_variant_fits(&layout, (trn_algorithm)a, v)) {
                    compare(&layout, (trn_algorithm)a, v, name);
                    compared++;
                }
        }
    }
    return compared;
}

static void with_cores(const trn_topology *net, const net_group *group, const char *name, int most)
{
    for (int cores = 1; cores <= 8; cores *= 2) {
        trn_collective_args args = net_args(net, group, cores);
        if (trn_collective_ranks(&args) <= most) assert_true(compare_all(&args, name) >= 20);
    }
}

static void test_nets(void **state)
{
    (void)state;
    for (int i = 0; i < NETS; i++) {
        char name[32];
        trn_topology net = net_number(i);
        net.start_s = 3e-6;
        net.hbm_bytes_per_s = 4e9;
        net.dma_bytes_per_s = 3e9;
        snprintf(name, sizeof name, "net %d", i);
        with_cores(&net, NULL, name, cases_level() == 1 ? 96 : 256);
    }
}

/* Parts of the vendor's systems; the planes of a switch, too. */
static void test_systems(void **state)
{
    (void)state;
    const trn_topology system[] = { trn_topology_of(TRN_TRN1_2XLARGE),
                                    trn_topology_of(TRN_TRN2_48XLARGE),
                                    trn_topology_of(TRN_TRN2_ULTRASERVER),
                                    trn_topology_of(TRN_TRN3_GEN1_ULTRASERVER),
                                    trn_topology_preset(TRN_TRN3_GEN1_ULTRASERVER, "sa/planes=2"),
                                    trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, "doc/planes=4") };
    for (int i = 0; i < COUNT(system); i++)
        if (cases_level() > 1 || system[i].chips <= 64)
            with_cores(&system[i], NULL, system[i].name, cases_level() == 1 ? 128 : 576);
}

static void test_groups(void **state)
{
    (void)state;
    for (int i = 0; i < NET_GROUPS; i++) {
        const trn_topology net = trn_topology_of(net_groups[i].system);
        with_cores(&net, &net_groups[i], net_groups[i].name, 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nets),
        cmocka_unit_test(test_systems),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests_name("collective time", tests, NULL, NULL);
}
