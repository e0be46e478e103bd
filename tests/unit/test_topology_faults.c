/* test_topology_faults.c - chips and links that are down or slow: routes against a search over wires by their
 * definition, times against sums written down link by link, values against those of the whole network.
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

#include "trnmath/trn_collective.h"
#include "trnmath/trn_topology.h"
#include "twin/cases.h"

enum { MOST_NODES = 128, MOST_LINKS = 2048 };

/* ---- the twin: links by the definition of each wiring, and a search that relaxes until nothing moves ---- */

typedef struct wire {
    int from, to, level; /* nodes; a switch is number chips + something of its own */
    bool down;
} wire;

static wire wires[MOST_LINKS];
static int wire_count, node_count;

static int digit_of(const trn_topology *net, int chip, int level)
{
    for (int l = 0; l < level; l++) chip /= net->level[l].size;
    return chip % net->level[level].size;
}

/* Chips that differ in no digit but this one. */
static bool only_here(const trn_topology *net, int level, int a, int b)
{
    for (int l = 0; l < net->levels; l++)
        if (l != level && digit_of(net, a, l) != digit_of(net, b, l)) return false;
    return a != b;
}

static bool above_alike(const trn_topology *net, int level, int a, int b)
{
    for (int l = level + 1; l < net->levels; l++)
        if (digit_of(net, a, l) != digit_of(net, b, l)) return false;
    return true;
}

static void add_wire(int from, int to, int level)
{
    assert_true(wire_count < MOST_LINKS && node_count <= MOST_NODES);
    wires[wire_count++] = (wire){ from, to, level, false };
}

/* The lowest chip on the same switch stands for it: node = chips * (1 + level) + that chip, numbered anew. */
static int switch_node(const trn_topology *net, int level, int chip, int *known, int *knowns)
{
    const int planes = net->level[level].planes > 1 ? net->level[level].planes : 1;
    int first = 0;
    while (!above_alike(net, level, first, chip) ||
           first % net->level[0].size % planes != chip % net->level[0].size % planes)
        first++;
    const int key = net->chips * level + first;
    for (int i = 0; i < *knowns; i++)
        if (known[i] == key) return net->chips + i;
    known[(*knowns)++] = key;
    return net->chips + *knowns - 1;
}

static void list_wires(const trn_topology *net)
{
    static int known[MOST_NODES];
    int knowns = 0;
    wire_count = 0;
    node_count = net->chips;
    for (int l = 0; l < net->levels; l++)
        for (int a = 0; a < net->chips; a++) {
            const int n = net->level[l].size, d = digit_of(net, a, l);
            for (int b = 0; b < net->chips; b++) {
                const int e = digit_of(net, b, l);
                if (!only_here(net, l, a, b)) continue;
                if (net->level[l].wiring == TRN_WIRING_FULL ||
                    (net->level[l].wiring == TRN_WIRING_RING && ((d + 1) % n == e || (e + 1) % n == d)))
                    add_wire(a, b, l);
            }
            if (net->level[l].wiring != TRN_WIRING_SWITCH || trn_topology_stride(net, l) * n < 2) continue;
            const int node = switch_node(net, l, a, known, &knowns);
            add_wire(a, node, l);
            add_wire(node, a, l);
        }
    node_count = net->chips + knowns;
}

/* What a fault says of the wires, in its own words: chips by number, links by the ends that the library tells. */
static void break_wires(const trn_topology *net)
{
    for (int i = 0; i < net->faults; i++) {
        trn_link link;
        if (net->fault[i].share > 0) continue;
        if (net->fault[i].kind == TRN_FAULT_LINK) assert_true(trn_topology_link(net, net->fault[i].at, &link));
        for (int k = 0; k < wire_count; k++) {
            wire *w = &wires[k];
            if (net->fault[i].kind == TRN_FAULT_CHIP) {
                w->down = w->down || w->from == net->fault[i].at || w->to == net->fault[i].at;
                continue;
            }
            const bool forth = (link.from < net->chips ? w->from == link.from : w->from >= net->chips) &&
                               (link.to < net->chips ? w->to == link.to : w->to >= net->chips);
            const bool back = (link.from < net->chips ? w->to == link.from : w->to >= net->chips) &&
                              (link.to < net->chips ? w->from == link.to : w->from >= net->chips);
            if (w->level == link.level && (forth || (back && net->level[link.level].half_duplex))) w->down = true;
        }
    }
}

/* Hops from one chip to all nodes; -1 = no way. */
static void distances(int from, int hops[MOST_NODES])
{
    for (int i = 0; i < node_count; i++) hops[i] = i == from ? 0 : -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int k = 0; k < wire_count; k++) {
            const wire *w = &wires[k];
            if (w->down || hops[w->from] < 0 || (hops[w->to] >= 0 && hops[w->to] <= hops[w->from] + 1)) continue;
            hops[w->to] = hops[w->from] + 1;
            moved = true;
        }
    }
}

/* ---- networks ---- */

static trn_topology any_network(uint64_t *rng)
{
    for (;;) {
        trn_level level[TRN_MAX_LEVELS];
        const int levels = 1 + cases_below(rng, 3);
        memset(level, 0, sizeof level);
        for (int l = 0; l < levels; l++) {
            level[l].wiring = (trn_wiring)cases_below(rng, 4);
            level[l].size = 1 + cases_below(rng, 6);
            level[l].bytes_per_s = 1e9 * (1 + cases_below(rng, 9));
            level[l].latency_s = 1e-7 * cases_below(rng, 9);
            level[l].half_duplex = cases_one_in(rng, 6);
            if (level[l].wiring == TRN_WIRING_SWITCH && l > 0) level[l].planes = 1 << cases_below(rng, 2);
        }
        const trn_topology net = trn_topology_hierarchy("any", levels, level);
        if (net.chips > 1 && net.chips <= 40) return net;
    }
}

static void break_any(trn_topology *net, uint64_t *rng, bool only_slow)
{
    net->faults = 1 + cases_below(rng, 5);
    for (int i = 0; i < net->faults; i++) {
        trn_fault *f = &net->fault[i];
        f->kind = cases_one_in(rng, 4) ? TRN_FAULT_CHIP : TRN_FAULT_LINK;
        f->at = cases_below(rng, f->kind == TRN_FAULT_CHIP ? net->chips : (int)trn_topology_link_count(net));
        f->share = only_slow || cases_one_in(rng, 4) ? (1 + cases_below(rng, 8)) / 8.0 : 0;
    }
}

/* ---- routes ---- */

static void check_route(const trn_topology *net, const trn_topology *sound, int from, int to, int expected)
{
    int64_t link[MOST_NODES], before[MOST_NODES];
    const int hops = trn_topology_route(net, from, to, link, MOST_NODES);
    const int usual = trn_topology_route(sound, from, to, before, MOST_NODES);
    double latency = 0;
    bool intact = true;
    int at = from;
    for (int i = 0; i < usual; i++) intact = intact && trn_topology_link_share(net, before[i]) > 0;
    if (intact) { /* nothing of it is broken: it is as it was */
        assert_int_equal(hops, usual);
        assert_memory_equal(link, before, sizeof *link * (size_t)hops);
    } else
        assert_int_equal(hops, expected); /* else as few links as there can be */
    assert_int_equal(trn_topology_hops(net, from, to), hops);
    for (int i = 0; i < hops; i++) {
        trn_link l;
        assert_true(trn_topology_link(net, link[i], &l));
        assert_true(l.bytes_per_s > 0);
        assert_int_equal(l.from, at);
        at = l.to;
        latency += l.latency_s;
    }
    if (hops >= 0) assert_int_equal(at, to);
    const double told = trn_topology_route_latency(net, from, to);
    if (hops < 0)
        assert_true(isnan(told));
    else
        assert_true(fabs(told - latency) <= 1e-15);
}

static void detours_are_shortest(void **state)
{
    uint64_t rng = 1;
    int detours = 0, cut = 0;
    (void)state;
    for (int round = 0; round < cases_rounds(400, 20000); round++) {
        trn_topology net = any_network(&rng);
        const trn_topology sound = net;
        break_any(&net, &rng, false);
        list_wires(&net);
        break_wires(&net);
        for (int from = 0; from < net.chips; from++) {
            int hops[MOST_NODES];
            distances(from, hops);
            for (int to = 0; to < net.chips; to++) {
                check_route(&net, &sound, from, to, hops[to]);
                detours += hops[to] > trn_topology_hops(&sound, from, to);
                cut += hops[to] < 0;
            }
        }
    }
    assert_true(detours > 1000 && cut > 1000);
}

static void shares_multiply(void **state)
{
    trn_topology net = trn_topology_ring(5, 8e9, 0);
    trn_link link;
    (void)state;
    assert_int_equal(trn_topology_slow(&net, "link 1->2 0.5", NULL), TRN_OK);
    assert_int_equal(trn_topology_slow(&net, "chip 2 0.25", NULL), TRN_OK);
    assert_int_equal(trn_topology_slow(&net, "link 4<->0 0.5", NULL), TRN_OK);
    const struct {
        int from, to;
        double rate;
    } row[] = { { 0, 1, 8e9 }, { 1, 2, 1e9 }, { 2, 1, 2e9 }, { 2, 3, 2e9 },
                { 3, 2, 2e9 }, { 3, 4, 8e9 }, { 4, 0, 4e9 }, { 0, 4, 4e9 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_true(trn_topology_link(&net, trn_topology_link_between(&net, row[i].from, row[i].to), &link));
        assert_true(link.bytes_per_s == row[i].rate);
    }
    assert_int_equal(trn_topology_link_between(&net, 0, 2), -1);
    net.level[0].half_duplex = true; /* then a direction suffers from the faults of the other */
    assert_true(trn_topology_link(&net, trn_topology_link_between(&net, 2, 1), &link));
    assert_true(link.bytes_per_s == 1e9);
    assert_int_equal(net.faults, 4);
    while (net.faults < TRN_MAX_FAULTS) assert_int_equal(trn_topology_down(&net, "chip 3", NULL), TRN_OK);
    trn_error why;
    assert_int_equal(trn_topology_down(&net, "chip 3", &why), TRN_ELIMIT);
    assert_string_equal(why.text, "more than 32 faults");
}

/* ---- times ---- */

static double seconds(const trn_topology *net, trn_collective op, trn_algorithm algorithm, int64_t bytes,
                      trn_cost *cost)
{
    trn_collective_args args;
    trn_error why;
    memset(&args, 0, sizeof args);
    args.net = net;
    args.op = op;
    args.algorithm = algorithm;
    args.bytes = bytes;
    args.uncalibrated = true;
    args.error = &why;
    if (trn_collective_cost(&args, cost) != TRN_OK) fail_msg("%s", why.text);
    return cost->time_s;
}

static void must_be(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * expected)) fail_msg("%.9g, expected %.9g", got, expected);
}

/* A ring whose one link is down: its message goes all the way round, on links that nothing else is on. */
static void rings(void **state)
{
    trn_cost cost;
    (void)state;
    for (int n = 3; n <= 9; n++) {
        const double w = 1e9, a = 1e-6, bytes = (double)(n << 20);
        trn_topology net = trn_topology_ring(n, w, a);
        must_be(seconds(&net, TRN_ALL_REDUCE, TRN_RING, n << 20, &cost), 2 * (n - 1) * (a + bytes / n / w));
        assert_int_equal(trn_topology_slow(&net, "link 1->2 0.25", NULL), TRN_OK);
        must_be(seconds(&net, TRN_ALL_REDUCE, TRN_RING, n << 20, &cost), 2 * (n - 1) * (a + bytes / n / (w / 4)));
        net.faults = 0;
        assert_int_equal(trn_topology_down(&net, "link 1->2", NULL), TRN_OK);
        must_be(seconds(&net, TRN_ALL_REDUCE, TRN_RING, n << 20, &cost), 2 * (n - 1) * ((n - 1) * a + bytes / n / w));
        /* both ways: the detour meets the messages that go down (of even n the last step has halves) */
        const double up = n % 2 ? n / 2 : n / 2 - 0.5;
        must_be(seconds(&net, TRN_ALL_GATHER, TRN_BIDIRECTIONAL_RING, n << 20, &cost),
                n / 2 * (n - 1) * a + up * 2 * (bytes / n / w));
        net.store_and_forward = true;
        must_be(seconds(&net, TRN_ALL_GATHER, TRN_RING, n << 20, &cost), (n - 1) * ((n - 1) * (a + bytes / n / w)));
    }
}

/* Store and forward: h (a + V / w); used in turns: twice the load. */
static void other_links(void **state)
{
    trn_cost cost;
    const double w = 1e9, a = 1e-6, bytes = 1 << 20;
    (void)state;
    trn_topology net = trn_topology_ring(9, w, a);
    trn_collective_args args;
    memset(&args, 0, sizeof args);
    args.net = &net;
    args.op = TRN_SEND_RECV;
    args.target = 3;
    args.bytes = 1 << 20;
    assert_int_equal(trn_collective_cost(&args, &cost), TRN_OK);
    must_be(cost.time_s, 3 * a + bytes / w);
    net.store_and_forward = true;
    assert_int_equal(trn_collective_cost(&args, &cost), TRN_OK);
    must_be(cost.time_s, 3 * (a + bytes / w));
    /* everybody to everybody on a ring of 9: each block goes h = 1 to 4 hops; in round i those with h >= i */
    must_be(seconds(&net, TRN_ALL_TO_ALL, TRN_MESH, 9 << 20, &cost), 4 * a + (4 + 3 + 2 + 1) * bytes / w);
    net.store_and_forward = false;
    must_be(seconds(&net, TRN_ALL_TO_ALL, TRN_MESH, 9 << 20, &cost), 4 * a + (4 + 3 + 2 + 1) * bytes / w);
    net.level[0].half_duplex = true;
    must_be(seconds(&net, TRN_ALL_TO_ALL, TRN_MESH, 9 << 20, &cost), 4 * a + 2 * (4 + 3 + 2 + 1) * bytes / w);
    for (int n = 2; n <= 6; n++) { /* two chips have one link, a switch's port is one link, too */
        trn_topology some[] = { trn_topology_ring(n, w, a), trn_topology_fully_connected(n, w, a),
                                trn_topology_switch(n, w, a) };
        for (int i = 0; i < 3; i++) {
            const trn_algorithm how = i ? TRN_MESH : TRN_BIDIRECTIONAL_RING;
            const double once = seconds(&some[i], TRN_ALL_GATHER, how, n << 20, &cost), latency = cost.latency_s;
            some[i].level[0].half_duplex = true;
            must_be(seconds(&some[i], TRN_ALL_GATHER, how, n << 20, &cost), latency + 2 * (once - latency));
        }
    }
}

/* A slower link never makes an algorithm faster; nothing is faster than its bound; a share of 1 is no fault. */
static void never_faster(void **state)
{
    uint64_t rng = 7;
    int refused = 0, slower = 0;
    (void)state;
    for (int round = 0; round < cases_rounds(1500, 60000); round++) {
        trn_topology net = any_network(&rng);
        trn_collective_args args;
        trn_cost before, after;
        trn_error why;
        memset(&args, 0, sizeof args);
        args.op = (trn_collective)cases_below(&rng, TRN_COLLECTIVE_COUNT);
        args.algorithm = (trn_algorithm)cases_below(&rng, TRN_POINT_TO_POINT);
        args.bytes = 1 << cases_below(&rng, 26);
        args.ranks_per_chip = 1 + cases_below(&rng, 2);
        args.uncalibrated = cases_one_in(&rng, 2);
        args.net = &net;
        args.error = &why;
        net.store_and_forward = cases_one_in(&rng, 4);
        if (trn_collective_cost(&args, &before) != TRN_OK) continue;
        const bool only_slow = cases_one_in(&rng, 2);
        break_any(&net, &rng, only_slow);
        if (cases_one_in(&rng, 8))
            for (int i = 0; i < net.faults; i++) net.fault[i].share = 1;
        if (trn_collective_cost(&args, &after) != TRN_OK) {
            if (only_slow || !strstr(why.text, "is impossible")) fail_msg("%s", why.text);
            refused++;
            continue;
        }
        if (after.time_s < after.lower_bound_s * (1 - 1e-9))
            fail_msg("round %d: %g is less than its bound %g", round, after.time_s, after.lower_bound_s);
        if (only_slow && args.algorithm != TRN_ALGORITHM_AUTO && after.time_s < before.time_s * (1 - 1e-9))
            fail_msg("round %d: %s by %s takes %g, and %g with slow links", round, trn_collective_name(args.op),
                     trn_algorithm_name(args.algorithm), before.time_s, after.time_s);
        slower += after.time_s > before.time_s * (1 + 1e-9);
        bool all = true;
        for (int i = 0; i < net.faults; i++) all = all && net.fault[i].share >= 1;
        if (all) must_be(after.time_s + 1e-30, before.time_s + 1e-30);
    }
    assert_true(refused > 20 && slower > 100);
}

/* ---- what cannot be ---- */

static void impossible(void **state)
{
    static const int ring_less_one[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, some[] = { 0, 1, 2 };
    static const struct {
        const char *fault[2];
        const int *chips;
        int count;
        trn_collective op;
        const char *why;
    } row[] = {
        { { "chip 5", NULL },
          NULL,
          0,
          TRN_ALL_REDUCE,
          "all_reduce is impossible: chip 5 is down, and it is one of all chips of ring" },
        { { "chip 5", NULL },
          ring_less_one,
          8,
          TRN_ALL_GATHER,
          "all_gather is impossible: chip 5 is down, and it is in the group" },
        { { "chip 8", NULL }, ring_less_one, 8, TRN_ALL_REDUCE, NULL },
        { { "link 2->3", NULL }, NULL, 0, TRN_BROADCAST, NULL },
        { { "link 8<->0", "link 2<->3" },
          NULL,
          0,
          TRN_BROADCAST,
          "broadcast is impossible: what is down leaves no way from chip 0 to chip 3" },
        { { "link 8->0", "link 2<->3" },
          NULL,
          0,
          TRN_REDUCE_SCATTER,
          "reduce_scatter is impossible: what is down leaves no way from chip 3 to chip 0" },
        { { "link 8<->0", "link 2<->3" }, some, 3, TRN_ALL_TO_ALL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_topology net = trn_topology_ring(9, 1e9, 1e-6);
        trn_collective_args args;
        trn_cost cost;
        trn_error why;
        memset(&args, 0, sizeof args);
        for (int k = 0; k < 2 && row[i].fault[k]; k++)
            assert_int_equal(trn_topology_down(&net, row[i].fault[k], NULL), TRN_OK);
        args.net = &net;
        args.op = row[i].op;
        args.bytes = 1 << 20;
        args.chips = row[i].chips;
        args.count = row[i].count;
        args.error = &why;
        const trn_status status = trn_collective_cost(&args, &cost);
        assert_int_equal(status, row[i].why ? TRN_EUNSUPPORTED : TRN_OK);
        if (row[i].why) assert_string_equal(why.text, row[i].why);
        trn_tensor view[9];
        static float space[9][9];
        for (int r = 0; r < 9; r++) view[r] = trn_tensor_1d(TRN_F32, space[r], 9);
        if (!row[i].why) continue;
        args.src = args.dst = view; /* and no value is written */
        space[1][1] = 5;
        assert_int_equal(trn_collective_run(&args), TRN_EUNSUPPORTED);
        assert_string_equal(why.text, row[i].why);
        assert_true(space[1][1] == 5);
    }
}

/* ---- values: an algorithm's bits are those of the whole network ---- */

enum { RANKS = 16, ELEMENTS = 96 };

static void run(const trn_topology *net, trn_algorithm algorithm, uint16_t out[RANKS][ELEMENTS])
{
    static uint16_t in[RANKS][ELEMENTS];
    trn_tensor src[RANKS], dst[RANKS];
    trn_collective_args args;
    trn_error why;
    uint64_t rng = 3;
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < ELEMENTS; i++) in[r][i] = trn_bf16_from_f32((float)(int32_t)cases_u32(&rng) * 0x1p-30f);
        src[r] = trn_tensor_1d(TRN_BF16, in[r], ELEMENTS);
        dst[r] = trn_tensor_1d(TRN_BF16, out[r], ELEMENTS);
    }
    memset(&args, 0, sizeof args);
    args.net = net;
    args.op = TRN_ALL_REDUCE;
    args.algorithm = algorithm;
    args.src = src;
    args.dst = dst;
    args.error = &why;
    if (trn_collective_run(&args) != TRN_OK) fail_msg("%s", why.text);
}

static void same_bits(void **state)
{
    static uint16_t whole[RANKS][ELEMENTS], broken[RANKS][ELEMENTS];
    static const trn_algorithm how[] = { TRN_RING,           TRN_BIDIRECTIONAL_RING, TRN_MULTI_RING,
                                         TRN_DIMENSION_WISE, TRN_RECURSIVE_DOUBLING, TRN_MESH,
                                         TRN_HIERARCHICAL };
    uint64_t rng = 11;
    int runs = 0;
    (void)state;
    for (size_t a = 0; a < sizeof how / sizeof how[0]; a++) {
        const trn_topology sound = trn_topology_of(TRN_TRN2_48XLARGE);
        run(&sound, how[a], whole);
        for (int i = 0; i < 12; i++) {
            trn_topology net = sound;
            break_any(&net, &rng, false);
            for (int f = 0; f < net.faults; f++)
                if (net.fault[f].kind == TRN_FAULT_CHIP && net.fault[f].share <= 0) net.fault[f].share = 0.01;
            memset(broken, 0, sizeof broken);
            run(&net, how[a], broken);
            assert_memory_equal(whole, broken, sizeof whole);
            runs++;
        }
    }
    assert_int_equal(runs, 84);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detours_are_shortest),
        cmocka_unit_test(shares_multiply),
        cmocka_unit_test(rings),
        cmocka_unit_test(other_links),
        cmocka_unit_test(never_faster),
        cmocka_unit_test(impossible),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
