/* test_collective_cost.c - the time of collectives against the textbook formulas, the bounds, and themselves.
 * SPDX-License-Identifier: MIT
 *
 * V bytes, w bytes/s of one link one way, a seconds for a step to a neighbour, N chips. Nothing is calibrated unless it
 * says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "published/bounds.h"
#include "twin/collective_ask.h"

static const double W = 1e9, A = 1e-6;
static const int64_t GIB = (int64_t)1 << 30;

/* A cost of `steps` times A, and V/W times `slope`. */
static void formula(const trn_topology *net, trn_algorithm algorithm, trn_collective op, int cores, double steps,
                    double slope)
{
    trn_collective_args a = args_of(net, algorithm, op, cores);
    a.uncalibrated = true;
    a.single_step = algorithm == TRN_MESH && op == TRN_ALL_REDUCE;
    const trn_cost c = cost_of(&a);
    const double link = slope * (double)a.bytes / W;
    if (!close_to(c.latency_s, steps * A, 1e-12) || !close_to(c.link_s, link, 1e-12) ||
        !close_to(c.time_s, steps * A + link, 1e-12))
        fail_msg("%s of %d chips, %s by %s: %.15g A + %.15g V/W, not %.15g, %.15g", net->name, net->chips,
                 trn_collective_name(op), trn_algorithm_name(algorithm), c.latency_s / A,
                 c.link_s * W / (double)a.bytes, steps, slope);
}

/* A broadcast is sent whole when it is small, and else dealt out and gathered, for twice the steps of a gather. */
static void formula_scattered(const trn_topology *net, trn_algorithm algorithm, double steps, double slope,
                              double gather_steps, double gather_slope, bool scatters)
{
    trn_collective_args a = args_of(net, algorithm, TRN_BROADCAST, 1);
    a.uncalibrated = true;
    for (a.bytes = 0; a.bytes < 1 << 24; a.bytes = 2 * a.bytes + 1) {
        const double v = (double)a.bytes / W, whole = steps * A + slope * v,
                     dealt = 2 * (gather_steps * A + gather_slope * v);
        assert_true(close_to(cost_of(&a).time_s, whole < dealt ? whole : dealt, 1e-12));
        if (a.bytes > 1 << 20) assert_true((dealt < whole) == scatters);
    }
}

/* All-gather, reduce-scatter, and both for all-reduce. */
static void formulas(const trn_topology *net, trn_algorithm algorithm, int cores, double steps, double slope)
{
    formula(net, algorithm, TRN_ALL_GATHER, cores, steps, slope);
    formula(net, algorithm, TRN_REDUCE_SCATTER, cores, steps, slope);
    if (algorithm != TRN_MESH) formula(net, algorithm, TRN_ALL_REDUCE, cores, 2 * steps, 2 * slope);
}

/* ---- systems.md, section 3.2 ---- */

static void test_rings(void **state)
{
    (void)state;
    for (int n = 3; n <= 20; n++) {
        const trn_topology net = trn_topology_ring(n, W, A);
        const double away = (n - 1.0) / n, fill = 1.0 / 16, half = n / 2;
        formulas(&net, TRN_RING, 1, n - 1, away);
        formula(&net, TRN_RING, TRN_ALL_TO_ALL, 1, n - 1, (n - 1) / 2.0);
        formula(&net, TRN_RING, TRN_BROADCAST, 1, n - 1, 1 + (n - 2) * fill);
        formulas(&net, TRN_BIDIRECTIONAL_RING, 1, half, away / 2);
        formula(&net, TRN_BIDIRECTIONAL_RING, TRN_ALL_TO_ALL, 1, half, n % 2 ? (n * n - 1) / 8.0 / n : n / 8.0);
        formula(&net, TRN_BIDIRECTIONAL_RING, TRN_BROADCAST, 1, half, 1 + (half - 1) * fill);
        formulas(&net, TRN_MULTI_RING, 1, n - 1, away / 2);
        formula(&net, TRN_MULTI_RING, TRN_BROADCAST, 1, n - 1, (1 + (n - 2) * fill) / 2);
        formulas(&net, TRN_DIMENSION_WISE, 1, half, away / 2);
        formulas(&net, TRN_KANGARING, 2, n - 1, away / 2); /* N/2 stops of 2N ranks */
    }
}

static void test_tori(void **state)
{
    (void)state;
    static const int sides[] = { 4, 4, 4 };
    const trn_topology plane = trn_topology_torus(2, sides, W, A), cube = trn_topology_torus(3, sides, W, A);
    formulas(&plane, TRN_MULTI_RING, 1, 15, 15.0 / 16 / 4); /* two cycles, both ways */
    formula(&plane, TRN_MULTI_RING, TRN_BROADCAST, 1, 15, (1 + 14 / 16.0) / 4);
    formulas(&plane, TRN_DIMENSION_WISE, 1, 4, 15.0 / 16 / 4); /* the same with 4 steps */
    formula(&plane, TRN_DIMENSION_WISE, TRN_ALL_TO_ALL, 1, 4, 1.0 / 2);
    formulas(&plane, TRN_RING, 1, 15, 15.0 / 16);
    formulas(&plane, TRN_RECURSIVE_DOUBLING, 1, 4, 15.0 / 16); /* of the hypercube, one link at a time */
    formulas(&plane, TRN_MESH, 1, 4, 1.0 / 2);                 /* 32/15 links to the others, over four */
    formulas(&plane, TRN_KANGARING, 2, 15, 15.0 / 16 / 4);
    formulas(&cube, TRN_MULTI_RING, 1, 63, 63.0 / 64 / 6);
    formulas(&cube, TRN_DIMENSION_WISE, 1, 6, 63.0 / 64 / 6);
    formulas(&cube, TRN_RECURSIVE_DOUBLING, 1, 6, 63.0 / 64);
}

static void test_switches(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n++) {
        const trn_topology net = trn_topology_switch(n, W, A), full = trn_topology_fully_connected(n, W, A);
        const double away = (n - 1.0) / n;
        formulas(&net, TRN_SWITCH_DIRECT, 1, 1, away);
        formula(&net, TRN_SWITCH_DIRECT, TRN_ALL_TO_ALL, 1, 1, away);
        formula_scattered(&net, TRN_SWITCH_DIRECT, 1, n - 1, 1, away, n > 2);
        formula(&net, TRN_MESH, TRN_ALL_REDUCE, 1, 1, n - 1); /* in a single step */
        formula(&full, TRN_MESH, TRN_ALL_REDUCE, 1, 1, 1);
        formulas(&full, TRN_MESH, 1, 1, 1.0 / n);
        if (n & (n - 1)) continue;
        const double steps = log2(n);
        formulas(&net, TRN_RECURSIVE_DOUBLING, 1, steps, away);
        formula(&net, TRN_RECURSIVE_DOUBLING, TRN_ALL_TO_ALL, 1, steps, steps / 2);
        formula_scattered(&net, TRN_RECURSIVE_DOUBLING, steps, steps, steps, away, n > 2);
    }
}

/* Inside, then among, then inside: RS(V), AR(V/Y), AG(V), each as if it were alone. */
static void test_hierarchy(void **state)
{
    (void)state;
    for (int inside = 3; inside <= 6; inside++)
        for (int among = 3; among <= 6; among++) {
            const trn_topology net = made(TRN_WIRING_SWITCH, inside, TRN_WIRING_SWITCH, among, TRN_WIRING_RING, 1);
            const trn_topology low = trn_topology_switch(inside, net.level[0].bytes_per_s, net.level[0].latency_s);
            const trn_topology high = trn_topology_switch(among, net.level[1].bytes_per_s, net.level[1].latency_s);
            trn_collective_args a = args_of(&net, TRN_HIERARCHICAL, TRN_ALL_REDUCE, 1);
            trn_collective_args one = args_of(&low, TRN_SWITCH_DIRECT, TRN_REDUCE_SCATTER, 1);
            trn_collective_args two = args_of(&high, TRN_SWITCH_DIRECT, TRN_ALL_REDUCE, 1);
            a.uncalibrated = one.uncalibrated = two.uncalibrated = true;
            a.bytes = one.bytes = 720000;
            two.bytes = one.bytes / inside;
            assert_true(close_to(cost_of(&a).time_s, 2 * cost_of(&one).time_s + cost_of(&two).time_s, 1e-12));
        }
}

static void test_send_recv(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_ring(12, W, A);
    for (int to = 1; to < 12; to++) {
        trn_collective_args a = args_of(&net, TRN_ALGORITHM_AUTO, TRN_SEND_RECV, 1);
        a.root = 3;
        a.target = (3 + to) % 12;
        const trn_cost c = cost_of(&a);
        assert_true(close_to(c.time_s, (to < 6 ? to : 12 - to) * A + (double)a.bytes / W, 1e-12));
        assert_int_equal(c.algorithm, TRN_POINT_TO_POINT);
    }
}

/* Section 3.4: HBM touches of two ranks for each chunk that passes them: a ring 4 in an all-gather and 6 in a
 * reduce-scatter, KangaRing 3 and 4. */
static void test_touches(void **state)
{
    (void)state;
    static const int touches[2][2] = { { 4, 6 }, { 3, 4 } };
    for (int pairs = 0; pairs < 2; pairs++)
        for (int reduces = 0; reduces < 2; reduces++) {
            trn_topology net = trn_topology_ring(256, W, A);
            net.hbm_bytes_per_s = W;
            trn_collective_args a =
                args_of(&net, pairs ? TRN_KANGARING : TRN_MULTI_RING, reduces ? TRN_REDUCE_SCATTER : TRN_ALL_GATHER, 2);
            a.uncalibrated = true;
            const double passes = cost_of(&a).hbm_s * W / (double)a.bytes;
            assert_true(close_to(passes, touches[pairs][reduces], 0.01));
        }
}

/* ---- section 3.3: bounds, of the bandwidth alone, in microseconds ---- */

static void test_bounds_of_systems(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_BOUNDS; i++)
        for (int o = 0; o < PUBLISHED_BOUND_OPS; o++)
            for (int b = 0; b < PUBLISHED_BOUND_SIZES; b++) {
                const trn_topology net = published_bound_net(i);
                trn_collective_args a = args_of(&net, TRN_ALGORITHM_AUTO, published_bound_ops[o], 1);
                a.bytes = published_bound_bytes[b];
                const double us = 1e6 * cost_of(&a).lower_bound_s, listed = published_bound_us(i, o, b);
                if (fabs(us - listed) > published_bound_slack(b))
                    fail_msg("%s %s: %g us, not %g", net.name, trn_collective_name(a.op), us, listed);
            }
}

/* Across the racks of Trainium3: V/2 of each chip at 128 GB/s in an all-to-all; all that the other rack lacks in a
 * gather. */
static void test_bounds_between_racks(void **state)
{
    (void)state;
    static const trn_system system[] = { TRN_TRN3_GEN1_ULTRASERVER, TRN_TRN3_GEN2_ULTRASERVER };
    for (int i = 0; i < 2; i++) {
        const trn_topology net = trn_topology_of(system[i]);
        trn_collective_args a = args_of(&net, TRN_ALGORITHM_AUTO, TRN_ALL_TO_ALL, 1);
        a.bytes = GIB;
        assert_true(close_to(cost_of(&a).lower_bound_s, (double)GIB / 2 / 128e9, 1e-12));
        a.op = TRN_ALL_GATHER;
        assert_true(cost_of(&a).lower_bound_s >= (double)GIB / 2 / (net.chips / 2.0 * 128e9));
    }
}

/* ---- what holds for every system, group, operation, algorithm, number of ranks and size ---- */

/* Bounds hold; more bytes take longer, exactly in proportion; where there is a choice of ways (hierarchies, broadcasts
 * whole or dealt out), at most so. */
static void check_sizes(trn_collective_args *a, const char *name)
{
    const bool one_way = a->algorithm != TRN_HIERARCHICAL && (a->op != TRN_BROADCAST || a->algorithm <= TRN_MULTI_RING);
    double before = -1, slope = 0, start = 0;
    for (int i = 0; i < COUNT(ask_sizes); i++) {
        a->bytes = ask_sizes[i];
        const trn_cost c = cost_of(a);
        const bool bound = c.time_s >= c.lower_bound_s * (1 - 1e-12) && c.lower_bound_s >= 0;
        if (!bound || !(c.time_s >= before) || !(c.time_s < 1e9) || !c.bottleneck[0])
            fail_msg("%s, %d per chip, %s by %s (root %d) of %lld bytes: %g s; bound %g, before %g, %s", name,
                     a->ranks_per_chip, trn_collective_name(a->op), trn_algorithm_name(a->algorithm), a->root,
                     (long long)ask_sizes[i], c.time_s, c.lower_bound_s, before, c.bottleneck);
        if (i == 1) slope = (c.time_s - c.latency_s) / (double)ask_sizes[1];
        if (i == 0) start = c.time_s;
        const double linear = start + slope * (double)ask_sizes[i];
        if (i && (one_way ? !close_to(c.time_s, linear, 1e-7) : c.time_s > linear * (1 + 1e-7)))
            fail_msg("%s, %s by %s: %.15g is not linear: %.15g", name, trn_collective_name(a->op),
                     trn_algorithm_name(a->algorithm), c.time_s, linear);
        if (c.time_s > 0 && !close_to(c.bytes_per_s * c.time_s, (double)ask_sizes[i], 1e-12))
            fail_msg("%s: bytes_per_s", name);
        before = c.time_s;
    }
}

static void check_all(const trn_topology *net, const net_group *group, const char *name, int most)
{
    for (int cores = 1; cores <= 8; cores *= 2)
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
            for (int k = TRN_RING; k < TRN_POINT_TO_POINT; k++) {
                trn_collective_args a = net_args(net, group, cores);
                trn_cost c;
                a.op = (trn_collective)op;
                a.algorithm = (trn_algorithm)k;
                a.uncalibrated = cores == 2;
                const int ranks = trn_collective_ranks(&a);
                if (ranks > most || (op > TRN_BROADCAST && k > TRN_RING)) continue;
                if (trn_collective_cost(&a, &c) != TRN_OK) continue;
                for (int r = 0; r < (op < TRN_BROADCAST ? 1 : 3); r++) {
                    a.root = r * ranks / 3;
                    a.target = (a.root + 1 + r * ranks / 5) % ranks;
                    check_sizes(&a, name);
                }
            }
}

static void test_bounds_hold(void **state)
{
    (void)state;
    const int level = cases_level();
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        const trn_topology net = trn_topology_of((trn_system)i);
        if (net.chips < 1000) check_all(&net, NULL, net.name, level == 1 ? 144 : 600);
    }
    for (int i = 0; i < NETS; i++) {
        const trn_topology net = net_number(i);
        check_all(&net, NULL, "net", level == 1 ? 48 : 256);
    }
    for (int i = 0; i < NET_GROUPS; i++) {
        const trn_topology net = trn_topology_of(net_groups[i].system);
        check_all(&net, &net_groups[i], net_groups[i].name, 64);
    }
}

/* All-reduce is both halves; the bus bandwidth is what nccom-test calls it; one rank takes no time. */
static void test_relations(void **state)
{
    (void)state;
    for (int i = 0; i < NETS; i++)
        for (int k = TRN_RING; k < TRN_HIERARCHICAL; k++) {
            const trn_topology net = net_number(i);
            trn_collective_args a = args_of(&net, (trn_algorithm)k, TRN_ALL_REDUCE, 2);
            trn_cost c[3];
            bool fits = true;
            for (int op = 0; op < 3; op++) {
                static const trn_collective ops[] = { TRN_ALL_REDUCE, TRN_REDUCE_SCATTER, TRN_ALL_GATHER };
                a.op = ops[op];
                fits = fits && trn_collective_cost(&a, &c[op]) == TRN_OK;
            }
            if (!fits) continue;
            const double n = 2 * net.chips;
            assert_true(close_to(c[0].time_s, c[1].time_s + c[2].time_s, 1e-12));
            assert_int_equal(c[0].steps, c[1].steps + c[2].steps);
            assert_true(close_to(c[0].bus_bytes_per_s, c[0].bytes_per_s * 2 * (n - 1) / n, 1e-12));
            assert_true(close_to(c[1].bus_bytes_per_s, c[1].bytes_per_s * (n - 1) / n, 1e-12));
        }
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        for (int k = 0; k < TRN_POINT_TO_POINT; k++) {
            static const int chip[] = { 7 };
            trn_collective_args a = args_of(&net, (trn_algorithm)k, (trn_collective)op, 1);
            trn_cost c;
            a.chips = chip;
            a.count = 1;
            if (trn_collective_cost(&a, &c) != TRN_OK) continue;
            assert_true(c.time_s <= 0 && c.lower_bound_s <= 0 && c.latency_s <= 0 && c.steps == 0);
        }
}

/* ---- what each link carries ---- */

enum { LINKS = 4096 };

static double loads_of(const trn_collective_args *a, double *bytes)
{
    double total = 0;
    assert_true(trn_topology_link_count(a->net) <= LINKS);
    assert_int_equal(trn_collective_loads(a, bytes), TRN_OK);
    for (int64_t i = 0; i < trn_topology_link_count(a->net); i++) total += bytes[i];
    return total;
}

/* No link takes longer for what it carries than the fullest ones take, step after step; and something is carried. */
static void check_loads(const trn_topology *net, trn_collective op, trn_algorithm algorithm, int cores)
{
    static double bytes[LINKS];
    trn_collective_args a = args_of(net, algorithm, op, cores);
    trn_cost cost;
    a.uncalibrated = true;
    if (trn_collective_cost(&a, &cost) != TRN_OK) return;
    const double total = loads_of(&a, bytes);
    double longest = 0;
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        trn_link link;
        if (!trn_topology_link(net, i, &link)) assert_true(bytes[i] == 0);
        if (bytes[i] > 0 && bytes[i] / link.bytes_per_s > longest) longest = bytes[i] / link.bytes_per_s;
    }
    if (!(longest <= cost.link_s * (1 + 1e-9)) || (net->chips > 1 && !(total > 0)))
        fail_msg("%s, %s by %s: %g s on a link, and the fullest take %g s", net->name, trn_collective_name(op),
                 trn_algorithm_name(algorithm), longest, cost.link_s);
}

static void test_loads(void **state)
{
    (void)state;
    static double bytes[LINKS];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE), ring = trn_topology_ring(7, W, A);
    trn_collective_args a = args_of(&net, TRN_RING, TRN_ALL_REDUCE, 1);
    double hops = 0;
    /* each chip sends (n - 1)/n of the bytes twice, to a neighbour */
    assert_true(close_to(loads_of(&a, bytes), 2 * 15 * (double)a.bytes, 1e-12));
    for (int64_t i = 0; i < trn_topology_link_count(&net); i++)
        assert_true(bytes[i] == 0 || close_to(bytes[i], 2 * 15.0 / 16 * (double)a.bytes, 1e-12));
    a = args_of(&ring, TRN_RING, TRN_ALL_GATHER, 1);
    assert_true(close_to(loads_of(&a, bytes), 6 * (double)a.bytes, 1e-12));
    /* a permutation: every message by its route */
    a = args_of(&net, TRN_ALGORITHM_AUTO, TRN_PERMUTE, 1);
    for (int r = 0; r < 16; r++) hops += trn_topology_hops(&net, r, (r + 1) % 16);
    assert_true(close_to(loads_of(&a, bytes), hops * (double)a.bytes, 1e-12));
    for (int system = 0; system < TRN_SYSTEM_COUNT; system++) {
        const trn_topology of = trn_topology_of((trn_system)system);
        for (int op = 0; of.chips <= 144 && op < TRN_COLLECTIVE_COUNT; op++)
            for (int k = TRN_ALGORITHM_AUTO; k < TRN_ALGORITHM_COUNT; k++)
                check_loads(&of, (trn_collective)op, (trn_algorithm)k, 1 + k % 2);
    }
    trn_error error;
    a.error = &error;
    bytes[0] = -1;
    assert_int_equal(trn_collective_loads(&a, NULL), TRN_EINVAL);
    a.algorithm = TRN_MESH;
    a.op = TRN_BROADCAST;
    a.root = 99;
    assert_int_not_equal(trn_collective_loads(&a, bytes), TRN_OK);
    assert_true(bytes[0] == -1 && error.text[0]);
    assert_int_equal(trn_collective_loads(NULL, bytes), TRN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_tori),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_hierarchy),
        cmocka_unit_test(test_send_recv),
        cmocka_unit_test(test_touches),
        cmocka_unit_test(test_bounds_of_systems),
        cmocka_unit_test(test_bounds_between_racks),
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_loads),
    };
    return cmocka_run_group_tests_name("collective cost", tests, NULL, NULL);
}
