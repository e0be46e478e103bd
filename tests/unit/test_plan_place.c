/* test_plan_place.c - where the axes of a plan lie: groups against digits that are counted by hand, and their costs
 * against those of the whole network.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "trnmath/trn_plan.h"
#include "twin/cases.h"

enum { MOST = 400 };

static const trn_model tiny = { .layers = 4, .hidden = 64, .heads = 4, .intermediate = 128, .vocab = 256 };

/* A part of a cluster: so many servers. */
static trn_topology servers(trn_system system, int count)
{
    trn_topology net = trn_topology_of(system);
    net.level[net.levels - 1].size = count;
    net.chips = trn_topology_stride(&net, net.levels);
    return net;
}

static trn_topology network(int i)
{
    static const int size[] = { 6, 4, 2 };
    switch (i) {
    case 0: return trn_topology_of(TRN_TRN2_ULTRASERVER);
    case 1: return trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER);
    case 2: return trn_topology_of(TRN_TRN3_GEN1_ULTRASERVER);
    case 3: return trn_topology_of(TRN_TRN1_32XLARGE);
    case 4: return servers(TRN_TRN1_ULTRACLUSTER, 6);
    case 5: return servers(TRN_PROJECT_RAINIER, 3);
    case 6: return trn_topology_torus(3, size, 1e11, 1e-6);
    case 7: return trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, "sa/planes=2");
    default: return trn_topology_switch(12, 1e11, 1e-6);
    }
}
enum { NETWORKS = 9 };

/* Any degrees whose product is the number of chips. */
static void random_degrees(uint64_t *rng, int chips, int degree[TRN_AXIS_COUNT])
{
    for (int i = 0; i < TRN_AXIS_COUNT; i++) degree[i] = 1;
    for (int left = chips; left > 1;) {
        int p = 2;
        while (left % p) p++;
        degree[cases_below(rng, TRN_AXIS_COUNT)] *= p;
        left /= p;
    }
}

static trni_plan_place placed(const trn_topology *net, const int degree[TRN_AXIS_COUNT], trn_plan_order order)
{
    trni_plan_place p;
    assert_true(trni_plan_place_degrees(net, degree, order, &p));
    return p;
}

/* All groups of a set of axes cover each chip once; two axes meet in one chip; a group agrees in all other digits. */
static void groups_partition(void **state)
{
    (void)state;
    uint64_t rng = 7;
    static int chips[MOST], other[MOST], group_of[MOST];
    for (int round = 0; round < cases_rounds(600, 6000); round++) {
        const trn_topology net = network(cases_below(&rng, NETWORKS));
        int degree[TRN_AXIS_COUNT], count, groups;
        random_degrees(&rng, net.chips, degree);
        const trni_plan_place p = placed(&net, degree, (trn_plan_order)cases_below(&rng, 2));
        const unsigned axes = (unsigned)cases_below(&rng, 32);
        int size = 1;
        for (int i = 0; i < TRN_AXIS_COUNT; i++) size *= axes >> i & 1 ? degree[i] : 1;
        trni_plan_place_groups(&p, axes, chips, &count, &groups);
        assert_int_equal(count, size);
        assert_int_equal(count * groups, net.chips);
        for (int i = 0; i < net.chips; i++) group_of[i] = -1;
        for (int i = 0; i < net.chips; i++) {
            assert_true(chips[i] >= 0 && chips[i] < net.chips && group_of[chips[i]] < 0);
            group_of[chips[i]] = i / count;
            assert_true(i % count == 0 || chips[i] > chips[i - 1]);
        }
        trni_plan_place_groups(&p, 31u & ~axes, other, &count, &groups);
        for (int g = 0; g < groups; g++) /* a transversal: one chip of each */
            for (int i = 0; i < count; i++)
                for (int k = 0; k < i; k++)
                    assert_true(group_of[other[g * count + i]] != group_of[other[g * count + k]]);
    }
}

static void rows_of_the_torus(void **state)
{
    (void)state;
    static int chips[MOST];
    const trn_topology two = trn_topology_of(TRN_TRN2_48XLARGE), one = trn_topology_of(TRN_TRN1_32XLARGE);
    const int degree[TRN_AXIS_COUNT] = { 8, 1, 1, 2, 1 };
    static const int rows03[] = { 0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11 };
    int count, groups;
    trni_plan_place p = placed(&two, degree, TRN_ORDER_DP_PP);
    trni_plan_place_groups(&p, 1u << TRN_AXIS_TP, chips, &count, &groups);
    assert_int_equal(count, 8);
    assert_memory_equal(chips, rows03, sizeof rows03);
    trni_plan_place_groups(&p, 1u << TRN_AXIS_DP, chips, &count, &groups);
    for (int g = 0; g < groups; g++) assert_int_equal(trn_topology_hops(&two, chips[2 * g], chips[2 * g + 1]), 1);
    p = placed(&one, degree, TRN_ORDER_DP_PP); /* Trainium1: consecutive */
    trni_plan_place_groups(&p, 1u << TRN_AXIS_TP, chips, &count, &groups);
    for (int i = 0; i < 16; i++) assert_int_equal(chips[i], i);
}

/* tp 16 on 4 x 18 x 2: two of eighteen servers, both racks. */
static void degrees_that_straddle(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER);
    const trn_plan plan = { .tp = 16, .cp = 1, .ep = 1, .dp = 9, .pp = 1 };
    static const char *const expected[] = { "tp 4", "tp 2 x dp 9", "tp 2" };
    char text[64];
    for (int l = 0; l < net.levels; l++) {
        trn_plan_level_text(&net, &plan, l, text, sizeof text);
        assert_string_equal(text, expected[l]);
    }
    const int wrong[TRN_AXIS_COUNT] = { 5, 1, 1, 1, 1 }, none[TRN_AXIS_COUNT] = { 144, 1, 1, 1, 0 };
    trni_plan_place p;
    assert_false(trni_plan_place_degrees(&net, wrong, TRN_ORDER_DP_PP, &p));
    assert_false(trni_plan_place_degrees(&net, none, TRN_ORDER_DP_PP, &p));
}

/* Axes side by side are as good as one; what lies between them is not. */
static void keys(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_switch(30, 1e11, 1e-6);
    const int split[TRN_AXIS_COUNT] = { 2, 3, 1, 5, 1 }, joined[TRN_AXIS_COUNT] = { 6, 1, 1, 5, 1 };
    int a[TRNI_PLAN_KEY], b[TRNI_PLAN_KEY];
    const trni_plan_place p = placed(&net, split, TRN_ORDER_DP_PP), q = placed(&net, joined, TRN_ORDER_DP_PP);
    trni_plan_place_key(&p, 3, a); /* tp and cp */
    trni_plan_place_key(&q, 1, b);
    assert_memory_equal(a, b, sizeof a);
    assert_true(a[0] == 6 && a[1] == -5);
    trni_plan_place_key(&p, 9, b); /* tp and dp */
    assert_true(b[0] == 2 && b[1] == -3 && b[2] == 5);
}

/* What the part of the network costs that matters is what all of it costs. */
static void parts_cost_the_same(void **state)
{
    (void)state;
    uint64_t rng = 11;
    static int chips[MOST], part_chips[MOST];
    int compared = 0;
    for (int round = 0; round < cases_rounds(150, 1500); round++) {
        const trn_topology net = network(cases_below(&rng, NETWORKS));
        int degree[TRN_AXIS_COUNT];
        random_degrees(&rng, net.chips, degree);
        const trni_plan_place p = placed(&net, degree, (trn_plan_order)cases_below(&rng, 2));
        const unsigned axes = 1u << cases_below(&rng, TRN_AXIS_COUNT) | 1u << cases_below(&rng, TRN_AXIS_COUNT);
        trn_topology part_net;
        trni_plan_place part;
        trn_collective_args all = { .net = &net, .chips = chips, .bytes = 1 << 24 }, less = all;
        trni_plan_place_groups(&p, axes, chips, &all.count, &all.groups);
        if (all.count < 2) continue;
        trni_plan_place_reduce(&p, axes, &part_net, &part);
        less.net = &part_net;
        less.chips = part_chips;
        trni_plan_place_groups(&part, axes, part_chips, &less.count, &less.groups);
        assert_int_equal(less.count, all.count);
        all.op = less.op = (trn_collective)cases_below(&rng, 4);
        trn_cost a, b;
        const trn_status status = trn_collective_cost(&all, &a);
        assert_int_equal(status, trn_collective_cost(&less, &b));
        if (status != TRN_OK) continue;
        if (fabs(a.time_s - b.time_s) > 1e-9 * a.time_s)
            fail_msg("%s, %d groups of %d: %.17g s in all of it, %.17g in the part", net.name, all.groups, all.count,
                     a.time_s, b.time_s);
        compared++;
    }
    assert_true(compared > 20);
}

/* The lines that are remembered against the answer to each question. */
static void lines_are_costs(void **state)
{
    (void)state;
    uint64_t rng = 13;
    static int chips[MOST];
    for (int round = 0; round < cases_rounds(40, 400); round++) {
        const trn_topology net = network(cases_below(&rng, NETWORKS - 1)); /* the last one is of no system */
        const trn_plan_args args = {
            .model = &tiny, .net = &net, .system = trn_system_spec_of(TRN_TRN2_48XLARGE), .batch = 1, .sequence = 1
        };
        int degree[TRN_AXIS_COUNT];
        trni_plan_work w;
        random_degrees(&rng, net.chips, degree);
        const trni_plan_place p = placed(&net, degree, TRN_ORDER_DP_PP);
        const unsigned axes = 1u << cases_below(&rng, TRN_AXIS_COUNT);
        const int ranks = cases_one_in(&rng, 2) ? net.ranks_per_chip : 1;
        trn_collective_args ask = { .net = &net, .chips = chips, .ranks_per_chip = ranks, .in_graph = true };
        trni_plan_place_groups(&p, axes, chips, &ask.count, &ask.groups);
        if (ask.count * ranks < 2 || ask.count > TRNI_PLAN_LARGE) continue;
        assert_int_equal(trni_plan_work_begin(&w, &args, 1), TRN_OK);
        for (int i = 0; i < 12; i++) {
            trn_cost cost;
            trn_algorithm algorithm = TRN_ALGORITHM_AUTO;
            ask.op = (trn_collective)cases_below(&rng, 4);
            ask.bytes = (int64_t)1 << cases_below(&rng, 34);
            const trni_plan_seconds line =
                trni_plan_work_collective(&w, &p, axes, ask.op, (double)ask.bytes, ranks, &algorithm);
            assert_int_equal(trn_collective_cost(&ask, &cost), TRN_OK);
            if (fabs(line.expected_s - cost.expected_s) > 0.05 * cost.expected_s ||
                (algorithm == cost.algorithm && fabs(line.ideal_s - cost.time_s) > 0.05 * cost.time_s))
                fail_msg("%s of %lld bytes, %d groups of %d on %s: %.9g s by %s, %.9g by %s",
                         trn_collective_name(ask.op), (long long)ask.bytes, ask.groups, ask.count, net.name,
                         line.expected_s, trn_algorithm_name(algorithm), cost.expected_s,
                         trn_algorithm_name(cost.algorithm));
        }
        trni_plan_work_end(&w);
    }
}

/* Groups beyond 64 chips are put together from three collectives: near what one would be, and never below its bound. */
static void large_groups(void **state)
{
    (void)state;
    static int chips[MOST];
    const trn_topology net = servers(TRN_TRN1_ULTRACLUSTER, 8);
    const trn_plan_args args = { .model = &tiny, .net = &net, .batch = 1, .sequence = 1 };
    const trn_plan all = { .tp = 1, .cp = 1, .ep = 1, .dp = net.chips, .pp = 1 };
    for (int i = 0; i < net.chips; i++) chips[i] = i;
    for (int op = 0; op <= TRN_ALL_REDUCE; op++)
        for (int64_t bytes = 1 << 20; bytes <= (int64_t)1 << 32; bytes <<= 4) {
            double found;
            trn_algorithm algorithm;
            trn_cost cost;
            trn_collective_args ask = {
                .net = &net, .chips = chips, .count = net.chips, .bytes = bytes, .op = (trn_collective)op
            };
            assert_int_equal(
                trn_plan_collective(&args, &all, 1u << TRN_AXIS_DP, ask.op, (double)bytes, &found, &algorithm), TRN_OK);
            assert_int_equal(algorithm, TRN_HIERARCHICAL);
            assert_int_equal(trn_collective_cost(&ask, &cost), TRN_OK);
            if (found < cost.lower_bound_s || found > 1.25 * cost.time_s || found < 0.6 * cost.time_s)
                fail_msg("%s of %lld bytes: %g s in pieces, %g in one, bound %g", trn_collective_name(ask.op),
                         (long long)bytes, found, cost.time_s, cost.lower_bound_s);
        }
}

/* More ports than a mesh takes: in one piece, or in two of the factors that a mesh takes, whichever is the fastest. */
static void ports_in_two_factors(void **state)
{
    (void)state;
    static const int ports[] = { 256, 16256, 381, 16384 }; /* 2 x 128; 127 x 128; 3 x 127; 128 x 128 alone */
    const unsigned axes = 1u << TRN_AXIS_DP;
    int two = 0;
    for (int k = 0; k < 4; k++) {
        const trn_topology net = servers(TRN_TRN1_ULTRACLUSTER, ports[k]);
        const trn_plan_args args = { .model = &tiny, .net = &net, .batch = 1, .sequence = 1 };
        const trn_plan all = { .tp = 1, .cp = 1, .ep = 1, .dp = net.chips, .pp = 1 };
        trni_plan_work w;
        trni_plan_place place;
        assert_int_equal(trni_plan_work_begin(&w, &args, 1 << 10), TRN_OK);
        trni_plan_place_plan(&net, &all, &place);
        const int reach = trni_plan_place_reach(&place, axes);
        const trni_plan_place outer = trni_plan_place_within(&place, axes, reach, reach);
        assert_int_equal(trni_plan_place_count(&outer, axes), ports[k]);
        for (int op = 0; op <= TRN_ALL_REDUCE; op++)
            for (double bytes = 1 << 16; bytes <= 1e10; bytes *= 16) {
                const trn_collective o = (trn_collective)op;
                double best = trni_plan_request(&w, &outer, axes, o, bytes).expected_s;
                const double whole = best;
                for (int a = 2; a <= 128; a++)
                    for (int b = 2; b <= 128; b++) {
                        if (a * b != ports[k]) continue;
                        const trni_plan_place x = trni_plan_ports(&outer, axes, reach, a);
                        const trni_plan_place y = trni_plan_ports(&outer, axes, reach, b);
                        best = fmin(best, trni_plan_request_inside(&w, &x, axes, o, bytes).expected_s +
                                              trni_plan_request(&w, &y, axes, o, bytes / a).expected_s);
                    }
                const double found = trni_plan_across(&w, &outer, axes, o, bytes, reach).expected_s;
                if (fabs(found - best) > 1e-12 * best) fail_msg("%d ports: %g, not %g", ports[k], found, best);
                two += best < whole;
            }
        trni_plan_work_end(&w);
    }
    assert_true(two > 0);
}

/* 400,000 chips in no time, and not faster than 64. */
static void whole_clusters(void **state)
{
    (void)state;
    double before = 0;
    for (int count = 1; count <= 6250; count *= 5) {
        const trn_topology net = servers(TRN_PROJECT_RAINIER, count);
        const trn_plan_args args = { .model = &tiny, .net = &net, .batch = 1, .sequence = 1 };
        const trn_plan all = { .tp = 1, .cp = 1, .ep = 1, .dp = net.chips, .pp = 1 };
        double time;
        trn_algorithm algorithm;
        assert_int_equal(trn_plan_collective(&args, &all, 1u << TRN_AXIS_DP, TRN_ALL_REDUCE, 1e9, &time, &algorithm),
                         TRN_OK);
        assert_true(time > before);
        before = time;
    }
}

static void refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_error error;
    const trn_plan_args args = { .model = &tiny, .net = &net, .batch = 1, .sequence = 1, .error = &error };
    const trn_plan plan = { .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 },
                   wrong = { .tp = 8, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    double time = 5;
    trn_algorithm algorithm;
    assert_int_equal(trn_plan_collective(NULL, &plan, 1, TRN_ALL_REDUCE, 1, &time, &algorithm), TRN_EINVAL);
    assert_int_equal(trn_plan_collective(&args, NULL, 1, TRN_ALL_REDUCE, 1, &time, &algorithm), TRN_EINVAL);
    assert_int_equal(trn_plan_collective(&args, &plan, 1, TRN_ALL_REDUCE, -1, &time, &algorithm), TRN_EINVAL);
    assert_int_equal(trn_plan_collective(&args, &plan, 1, TRN_BROADCAST, 1, &time, &algorithm), TRN_EINVAL);
    assert_int_equal(trn_plan_collective(&args, &wrong, 1, TRN_ALL_REDUCE, 1, &time, &algorithm), TRN_EINVAL);
    assert_true(time > 4.9 && time < 5.1);
    assert_int_equal(trn_plan_collective(&args, &plan, 1u << TRN_AXIS_CP, TRN_ALL_REDUCE, 1, &time, &algorithm),
                     TRN_OK);
    assert_true(time <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_partition),      cmocka_unit_test(rows_of_the_torus),
        cmocka_unit_test(degrees_that_straddle), cmocka_unit_test(keys),
        cmocka_unit_test(parts_cost_the_same),   cmocka_unit_test(lines_are_costs),
        cmocka_unit_test(large_groups),          cmocka_unit_test(ports_in_two_factors),
        cmocka_unit_test(whole_clusters),        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
