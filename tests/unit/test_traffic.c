/* test_traffic.c - collectives that share links, against a second simulation: every message in one list, every event by
 * looking at all of it, rates grown together until links are full. Rings and switches, messages and routes are stated
 * anew.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_random.h"
#include "trnmath/trn_topology.h"
#include "trnmath/trn_traffic.h"
#include "twin/cases.h"

enum { CHIPS = 9, LINKS = 2 * CHIPS, MOST_MESSAGES = 4000, MOST_PARTIES = 4 * CHIPS, MOST_HOPS = CHIPS, MOST = 3 };

/* ---- the twin's network: a ring (link 2 i up from chip i, 2 i + 1 down) or a switch (2 i to it, 2 i + 1 back) ---- */

typedef struct twin_net {
    bool ring, hop_by_hop;
    int chips;
    double start, rate[LINKS], latency; /* of a link; of a switch: of both together */
} twin_net;

static int twin_route(const twin_net *net, int from, int to, int link[MOST_HOPS])
{
    const int n = net->chips, up = (to - from + n) % n, down = n - up;
    int hops = 0;
    if (from == to) return 0;
    if (!net->ring) {
        link[0] = 2 * from;
        link[1] = 2 * to + 1;
        return 2;
    }
    const bool upwards = n == 2 || up < down || (up == down && from % 2 == 0);
    for (int at = from; at != to; at = (at + (upwards ? 1 : n - 1)) % n) link[hops++] = 2 * at + (upwards ? 0 : 1);
    return hops;
}

static double link_latency(const twin_net *net) { return net->ring ? net->latency : net->latency / 2; }

/* ---- its messages ---- */

typedef enum twin_state { WAITS, UNDER_WAY, FLOWS, DONE } twin_state;

typedef struct twin_message {
    int party[2], step, link[MOST_HOPS], hops, hop;
    double bytes, left, until, rate;
    twin_state state;
    bool fixed;
} twin_message;

typedef struct twin_party {
    int owner, chip, step;
    double begins;
    bool there, gone;
} twin_party;

static twin_message message[MOST_MESSAGES];
static twin_party party[MOST_PARTIES];
static int messages, parties;

static void say(const twin_net *net, int first, int step, int from, int to, double bytes)
{
    assert_true(messages < MOST_MESSAGES);
    twin_message *m = &message[messages++];
    memset(m, 0, sizeof *m);
    m->party[0] = first + from;
    m->party[1] = first + to;
    m->step = step;
    m->bytes = bytes;
    m->hops = twin_route(net, party[first + from].chip, party[first + to].chip, m->link);
}

/* A ring passes a block on in every step; a mesh sends every block straight to whom it is for. */
static void say_all(const twin_net *net, const trn_collective_args *a, int owner)
{
    const int n = a->count, first = parties, rounds = a->op == TRN_ALL_REDUCE ? 2 : 1;
    const double block = (double)a->bytes / n;
    for (int i = 0; i < n; i++) party[parties++] = (twin_party){ owner, a->chips[i], 0, 0, false, false };
    for (int step = 0; step < rounds * (a->algorithm == TRN_RING ? n - 1 : n > 1); step++)
        for (int i = 0; i < n; i++)
            for (int k = 1; k < (a->algorithm == TRN_RING ? 2 : n); k++) say(net, first, step, i, (i + k) % n, block);
}

/* ---- its clock ---- */

static int steps_of(int p)
{
    int steps = 0;
    for (int i = 0; i < messages; i++)
        if ((message[i].party[0] == p || message[i].party[1] == p) && message[i].step + 1 > steps)
            steps = message[i].step + 1;
    return steps;
}

/* All flows grow at one pace, but for those with a full link. */
static void grow(const twin_net *net)
{
    double room[LINKS];
    memcpy(room, net->rate, sizeof room);
    for (int i = 0; i < messages; i++) message[i].rate = message[i].fixed = 0;
    for (;;) {
        int users[LINKS] = { 0 };
        double most = HUGE_VAL;
        for (int i = 0; i < messages; i++)
            for (int h = 0; message[i].state == FLOWS && !message[i].fixed && h < message[i].hops; h++)
                if (!net->hop_by_hop || h == message[i].hop) users[message[i].link[h]]++;
        for (int l = 0; l < LINKS; l++)
            if (users[l] && room[l] / users[l] < most) most = room[l] / users[l];
        if (most == HUGE_VAL) return;
        for (int l = 0; l < LINKS; l++) room[l] -= users[l] * most;
        for (int i = 0; i < messages; i++) {
            if (message[i].state != FLOWS || message[i].fixed) continue;
            message[i].rate += most;
        }
        for (int i = 0; i < messages; i++)
            for (int h = 0; message[i].state == FLOWS && h < message[i].hops; h++)
                if ((!net->hop_by_hop || h == message[i].hop) &&
                    room[message[i].link[h]] < 1e-9 * net->rate[message[i].link[h]])
                    message[i].fixed = true;
    }
}

static void arrive(const twin_net *net, twin_message *m, double now)
{
    if (net->hop_by_hop && m->hop + 1 < m->hops) {
        m->hop++;
        m->state = UNDER_WAY;
        m->until = now + link_latency(net);
        m->left = m->bytes;
    } else
        m->state = DONE;
}

/* Parties go on, messages begin; false when nothing moved. */
static bool settle(const twin_net *net, double now, double end[MOST])
{
    bool moved = false;
    for (int p = 0; p < parties; p++) {
        if (!party[p].there && party[p].begins <= now + 1e-15) party[p].there = moved = true;
        if (!party[p].there || party[p].gone) continue;
        bool busy = false;
        for (int i = 0; i < messages; i++)
            busy = busy || ((message[i].party[0] == p || message[i].party[1] == p) &&
                            message[i].step == party[p].step && message[i].state != DONE);
        if (busy) continue;
        moved = true;
        if (party[p].step < steps_of(p)) {
            party[p].step++;
            continue;
        }
        party[p].gone = true;
        if (now > end[party[p].owner]) end[party[p].owner] = now;
    }
    for (int i = 0; i < messages; i++) {
        twin_message *m = &message[i];
        const twin_party *a = &party[m->party[0]], *b = &party[m->party[1]];
        if (m->state == WAITS && a->there && b->there && a->step == m->step && b->step == m->step) {
            m->state = UNDER_WAY;
            m->until = now + net->start + (net->hop_by_hop ? 1 : m->hops) * link_latency(net);
            m->left = m->bytes;
            moved = true;
        }
        if (m->state == UNDER_WAY && m->until <= now + 1e-15) m->state = FLOWS, moved = true;
        if (m->state == FLOWS && m->left <= 1e-6) arrive(net, m, now), moved = true;
    }
    return moved;
}

static void simulate(const twin_net *net, double end[MOST])
{
    double now = 0;
    for (int i = 0; i < MOST; i++) end[i] = 0;
    for (;;) {
        double next = HUGE_VAL;
        while (settle(net, now, end)) {}
        grow(net);
        for (int i = 0; i < messages; i++) {
            if (message[i].state == UNDER_WAY && message[i].until < next) next = message[i].until;
            if (message[i].state == FLOWS && now + message[i].left / message[i].rate < next)
                next = now + message[i].left / message[i].rate;
        }
        for (int p = 0; p < parties; p++)
            if (!party[p].there && party[p].begins < next) next = party[p].begins;
        if (next == HUGE_VAL) return;
        for (int i = 0; i < messages; i++)
            if (message[i].state == FLOWS) message[i].left -= message[i].rate * (next - now);
        now = next;
    }
}

/* ---- scenes ---- */

typedef struct scene {
    trn_topology net;
    twin_net twin;
    trn_collective_args ask[MOST];
    int chips[MOST][CHIPS];
    double start[MOST], background[1];
    trn_traffic_args args;
    trn_error why;
} scene;

static void draw_net(scene *s, uint64_t *rng)
{
    twin_net *t = &s->twin;
    t->ring = cases_one_in(rng, 2);
    t->hop_by_hop = cases_one_in(rng, 3);
    t->chips = 2 + cases_below(rng, CHIPS - 1);
    t->latency = cases_one_in(rng, 3) ? 0 : 1e-6 * (1 + cases_below(rng, 3));
    t->start = cases_one_in(rng, 2) ? 0 : 1.5e-6;
    s->net = t->ring ? trn_topology_ring(t->chips, 1e9, t->latency) : trn_topology_switch(t->chips, 1e9, t->latency);
    s->net.start_s = t->start;
    s->net.store_and_forward = t->hop_by_hop;
    s->background[0] = cases_one_in(rng, 2) ? 0 : 0.25 * cases_below(rng, 4);
    for (int l = 0; l < LINKS; l++) t->rate[l] = 1e9 * (1 - s->background[0]);
    while (cases_one_in(rng, 2) && s->net.faults < 4) { /* slow links */
        const int chip = cases_below(rng, t->chips), second = cases_below(rng, 2);
        if (t->ring && t->chips == 2 && second) continue; /* two chips have one link each way */
        s->net.fault[s->net.faults].kind = TRN_FAULT_LINK;
        s->net.fault[s->net.faults].at = t->ring && t->chips == 2 ? chip : 2 * chip + second;
        s->net.fault[s->net.faults++].share = 0.5;
        t->rate[2 * chip + second] *= 0.5;
    }
}

static void draw_collectives(scene *s, uint64_t *rng)
{
    s->args.count = 1 + cases_below(rng, MOST);
    for (int i = 0; i < s->args.count; i++) {
        trn_collective_args *a = &s->ask[i];
        const bool ring = cases_one_in(rng, 2);
        memset(a, 0, sizeof *a);
        a->net = &s->net;
        a->count = 1 + cases_below(rng, s->twin.chips);
        for (int k = 0; k < s->twin.chips; k++) s->chips[i][k] = k;
        for (int k = 0; k < a->count; k++) { /* any chips in any order */
            const int other = k + cases_below(rng, s->twin.chips - k), chip = s->chips[i][k];
            s->chips[i][k] = s->chips[i][other];
            s->chips[i][other] = chip;
        }
        a->chips = s->chips[i];
        a->algorithm = ring ? TRN_RING : TRN_MESH;
        a->op = ring                   ? (trn_collective)cases_below(rng, 3)
                : cases_one_in(rng, 2) ? TRN_ALL_TO_ALL
                                       : (trn_collective)cases_below(rng, 3);
        a->bytes = a->count * (1 + cases_below(rng, 100000));
        a->uncalibrated = true;
        s->start[i] = cases_one_in(rng, 2) ? 0 : 1e-6 * cases_below(rng, 200);
    }
    s->args.collective = s->ask;
    s->args.start_s = s->start;
    s->args.background = s->background;
    s->args.error = &s->why;
}

static void draw(scene *s, uint64_t *rng)
{
    memset(s, 0, sizeof *s);
    draw_net(s, rng);
    draw_collectives(s, rng);
    s->args.late = (trn_late)cases_below(rng, 4);
    s->args.late_mean_s = 1e-6 * cases_below(rng, 50);
    s->args.late_spread_s = 1e-6 * cases_below(rng, 50);
    s->args.seed = cases_next(rng);
    s->args.stream = cases_next(rng);
    s->args.samples = 1 + cases_below(rng, 3);
}

/* ---- against the library ---- */

static double late(const trn_traffic_args *a, int sample, int chip)
{
    const uint64_t stream = a->stream + (uint64_t)sample, index = 128 * (uint64_t)chip;
    const double u = (trn_random_u32(a->seed, stream, index) + 0.5) / 4294967296.0;
    const double v = (trn_random_u32(a->seed, stream, index + 1) + 0.5) / 4294967296.0;
    const double normal = sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
    const double s[] = { 0, a->late_mean_s + (2 * u - 1) * a->late_spread_s, -log(u) * a->late_mean_s,
                         a->late_mean_s + normal * a->late_spread_s };
    return s[a->late] > 0 ? s[a->late] : 0;
}

static void near(double got, double expected, const char *what, int round)
{
    if (!(fabs(got - expected) <= 1e-9 * expected + 1e-13))
        fail_msg("round %d: %s is %.12g, expected %.12g", round, what, got, expected);
}

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void check_times(const trn_traffic_time *t, double *s, int n, int round)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += s[i];
    qsort(s, (size_t)n, sizeof *s, by_value);
    near(t->mean_s, sum / n, "mean", round);
    near(t->least_s, s[0], "least", round);
    near(t->most_s, s[n - 1], "most", round);
    near(t->median_s, s[(n - 1) / 2], "median", round);
    near(t->p90_s, s[(9 * n + 9) / 10 - 1], "p90", round);
    near(t->p99_s, s[(99 * n + 99) / 100 - 1], "p99", round);
}

static void say_scene(const scene *s)
{
    messages = parties = 0;
    for (int i = 0; i < s->args.count; i++) say_all(&s->twin, &s->ask[i], i);
}

static void a_second_simulation_agrees(void **state)
{
    uint64_t rng = 1;
    int shared = 0;
    (void)state;
    for (int round = 0; round < cases_rounds(300, 10000); round++) {
        static scene s;
        trn_traffic_time each[MOST], all;
        double seconds[MOST + 1][8], first = HUGE_VAL;
        draw(&s, &rng);
        if (trn_traffic(&s.args, each, &all) != TRN_OK) fail_msg("round %d: %s", round, s.why.text);
        for (int i = 0; i < s.args.count; i++)
            if (s.start[i] < first) first = s.start[i];
        for (int k = 0; k < s.args.samples; k++) {
            double end[MOST], last = 0;
            say_scene(&s);
            for (int p = 0; p < parties; p++)
                party[p].begins = s.start[party[p].owner] - first + late(&s.args, k, party[p].chip);
            simulate(&s.twin, end);
            for (int i = 0; i < s.args.count; i++) {
                seconds[i][k] = end[i] - (s.start[i] - first);
                if (end[i] > last) last = end[i];
            }
            seconds[MOST][k] = last;
        }
        for (int i = 0; i < s.args.count; i++) {
            check_times(&each[i], seconds[i], s.args.samples, round);
            shared += s.args.late == TRN_LATE_NONE && each[i].mean_s > each[i].alone_s * (1 + 1e-6);
            assert_int_equal(each[i].algorithm, s.ask[i].algorithm);
        }
        check_times(&all, seconds[MOST], s.args.samples, round);
        assert_int_equal(all.messages, messages);
    }
    assert_true(shared > 20);
}

/* Where every step loads its links alike, a collective alone takes what its cost says of the links. */
static void alone_as_its_cost(void **state)
{
    static const trn_system system[] = { TRN_TRN2_48XLARGE, TRN_TRN2_ULTRASERVER, TRN_TRN3_GEN1_ULTRASERVER };
    int compared = 0;
    (void)state;
    for (int s = 0; s < 3; s++)
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
            for (int how = 1; how < TRN_POINT_TO_POINT; how++) {
                const trn_topology net = trn_topology_of(system[s]);
                trn_collective_args a;
                trn_cost cost;
                memset(&a, 0, sizeof a);
                a.net = &net;
                a.op = (trn_collective)op;
                a.algorithm = (trn_algorithm)how;
                a.bytes = 64 << 20;
                trn_traffic_args args;
                trn_traffic_time t;
                memset(&args, 0, sizeof args);
                args.collective = &a;
                args.count = 1;
                if (trn_collective_cost(&a, &cost) != TRN_OK) continue;
                assert_int_equal(trn_traffic(&args, &t, NULL), TRN_OK);
                const double links = cost.latency_s + cost.link_s;
                /* channels do not wait for each other, which may be better or worse */
                if (t.mean_s > links * 1.5 || t.mean_s < links * 0.3)
                    fail_msg("%d %d %d: %g, and its cost is %g", s, op, how, t.mean_s, links);
                if (how <= TRN_DIMENSION_WISE && s == 0 && op != TRN_BROADCAST) near(t.mean_s, links, "the time", how);
                near(t.alone_s, t.mean_s, "alone", how);
                compared++;
            }
    assert_true(compared > 120);
}

/* Twice the same share the links: each takes twice as long, but for its latencies. */
static void two_share(void **state)
{
    const trn_topology net = trn_topology_ring(8, 1e9, 1e-6);
    trn_collective_args two[2];
    trn_traffic_time each[2], all;
    trn_traffic_args args;
    const double half[1] = { 0.5 }, later[2] = { 1, 3 };
    (void)state;
    memset(two, 0, sizeof two);
    memset(&args, 0, sizeof args);
    for (int i = 0; i < 2; i++) {
        two[i].net = &net;
        two[i].op = TRN_ALL_GATHER;
        two[i].algorithm = TRN_RING;
        two[i].bytes = 8 << 20;
    }
    args.collective = two;
    args.count = 2;
    const double block = (1 << 20) / 1e9;
    assert_int_equal(trn_traffic(&args, each, &all), TRN_OK);
    near(each[0].mean_s, 7 * (1e-6 + 2 * block), "two", 0);
    near(each[1].alone_s, 7 * (1e-6 + block), "one", 0);
    near(all.mean_s, each[0].mean_s, "both", 0);
    near(all.alone_s, each[0].alone_s, "without sharing", 0);
    args.background = half;
    assert_int_equal(trn_traffic(&args, each, &all), TRN_OK);
    near(each[0].mean_s, 7 * (1e-6 + 4 * block), "two on half of the links", 0);
    args.background = NULL;
    args.start_s = later;
    assert_int_equal(trn_traffic(&args, each, &all), TRN_OK);
    near(each[1].mean_s, 7 * (1e-6 + block), "one after the other", 0);
    near(all.mean_s, 2 + 7 * (1e-6 + block), "from the first start", 0);
    near(all.alone_s, all.mean_s, "nobody waited", 0);
}

static void refusals(void **state)
{
    trn_topology net = trn_topology_ring(8, 1e9, 1e-6), other = net;
    trn_collective_args two[2];
    trn_traffic_time each[2], before[2];
    trn_traffic_args args;
    trn_error why;
    const double taken[1] = { 1 }, never[2] = { 0, -1 };
    (void)state;
    memset(two, 0, sizeof two);
    memset(&args, 0, sizeof args);
    memset(each, 0x5a, sizeof each);
    memcpy(before, each, sizeof each);
    two[0].net = two[1].net = &net;
    two[0].bytes = two[1].bytes = 1 << 20;
    args.collective = two;
    args.count = 2;
    args.error = &why;
#define REFUSED(status, sentence)                                                                                      \
    assert_int_equal(trn_traffic(&args, each, NULL), status);                                                          \
    assert_string_equal(why.text, sentence);                                                                           \
    assert_memory_equal(each, before, sizeof each)
    two[1].net = &other;
    REFUSED(TRN_EINVAL, "collective[1].net is not that of collective[0]: links are shared on one network");
    two[1].net = &net;
    args.background = taken;
    REFUSED(TRN_EINVAL, "background[0] = 1 is no share from 0 to below 1");
    args.background = NULL;
    args.start_s = never;
    REFUSED(TRN_EINVAL, "start_s[1] = -1, expected 0 to 1e9 s");
    args.start_s = NULL;
    args.late = (trn_late)7;
    REFUSED(TRN_EINVAL, "late = 7 is no distribution");
    args.late = TRN_LATE_UNIFORM;
    args.late_spread_s = -1;
    REFUSED(TRN_EINVAL, "late_mean_s = 0 and late_spread_s = -1: expected 0 to 1e9 s");
    args.late_spread_s = 0;
    args.samples = -1;
    REFUSED(TRN_EINVAL, "samples = -1, expected 1 to 1000000");
    args.samples = 0;
    args.count = 0;
    REFUSED(TRN_EINVAL, "collective is given, count = 0: expected 1 to 4096 collectives");
    args.count = 2;
    assert_int_equal(trn_topology_down(&net, "chip 3", NULL), TRN_OK);
    REFUSED(TRN_EUNSUPPORTED, "all_gather is impossible: chip 3 is down, and it is one of all chips of ring");
    net = trn_topology_ring(4096, 1e9, 1e-6);
    two[0].algorithm = TRN_MESH;
    REFUSED(TRN_ELIMIT, "more than 4194304 messages: every one of them is followed");
    assert_int_equal(trn_traffic(&args, NULL, NULL), TRN_EINVAL);
    assert_int_equal(trn_traffic(NULL, each, NULL), TRN_EINVAL);
    assert_string_equal(trn_late_name(TRN_LATE_NORMAL), "normal");
    assert_string_equal(trn_late_name((trn_late)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_simulation_agrees),
        cmocka_unit_test(alone_as_its_cost),
        cmocka_unit_test(two_share),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
