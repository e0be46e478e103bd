/* test_collective_auto.c - what AUTO chooses and when, folded networks against whole ones, how much memory it takes.
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
#include <time.h>

/* ---- what the library allocates: it is compiled here with these instead of malloc and free ---- */

typedef union allocated {
    size_t bytes;
    max_align_t align;
} allocated;

static size_t in_use, most_in_use;

static void *counted_malloc(size_t bytes)
{
    allocated *at = (allocated *)calloc(1, sizeof *at + bytes);
    if (!at) return NULL;
    at->bytes = bytes;
    in_use += bytes;
    if (in_use > most_in_use) most_in_use = in_use;
    return at + 1;
}

static void *counted_calloc(size_t count, size_t bytes) { return counted_malloc(count * bytes); }

static void counted_free(void *data)
{
    if (!data) return;
    allocated *at = (allocated *)data - 1;
    in_use -= at->bytes;
    free(at);
}

#define malloc counted_malloc
#define calloc counted_calloc
#define free counted_free
#include "twin/collective_ask.h"
#undef malloc
#undef calloc
#undef free

/* Folded or not: naming all chips one by one switches the folding off. */
static void compare_folded(const trn_topology *net, int cores)
{
    static int all[1024];
    assert_in_range(net->chips, 1, 1024);
    for (int i = 0; i < net->chips; i++) all[i] = i;
    for (int op = 0; op <= TRN_BROADCAST; op++)
        for (int k = TRN_ALGORITHM_AUTO; k < TRN_POINT_TO_POINT; k++) {
            trn_collective_args a = args_of(net, (trn_algorithm)k, (trn_collective)op, cores);
            trn_cost folded, whole;
            a.bytes = 3 << 20;
            const trn_status status = trn_collective_cost(&a, &folded);
            a.chips = all;
            a.count = net->chips;
            assert_int_equal(trn_collective_cost(&a, &whole), status);
            if (status != TRN_OK) continue;
            assert_int_equal(folded.algorithm, whole.algorithm);
            assert_int_equal(folded.steps, whole.steps);
            const bool memory =
                op == TRN_BROADCAST || /* of which one place is no picture of the others */
                (close_to(folded.hbm_s, whole.hbm_s, 1e-11) && close_to(folded.dma_s, whole.dma_s, 1e-11));
            if (!memory || !close_to(folded.time_s, whole.time_s, 1e-11) ||
                !close_to(folded.link_s, whole.link_s, 1e-11))
                fail_msg("%s, %d per chip, %s by %s: %.15g folded, %.15g whole", net->name, cores,
                         trn_collective_name(a.op), trn_algorithm_name(a.algorithm), folded.time_s, whole.time_s);
        }
}

static void test_folding(void **state)
{
    (void)state;
    const trn_topology torus = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_topology farm = torus; /* six instances behind one switch */
    farm.level[2] = farm.level[1];
    farm.level[2].wiring = TRN_WIRING_SWITCH;
    farm.level[2].size = 6;
    farm.levels = 3;
    farm.chips = 96;
    farm.system = TRN_SYSTEM_COUNT;
    assert_int_equal(trn_topology_check(&farm, NULL), TRN_OK);
    compare_folded(&torus, 4);
    compare_folded(&farm, 1);
    compare_folded(&farm, 2);
    for (int i = 0; i < NETS; i++) {
        const trn_topology net = net_number(i);
        if (net.chips > 1) compare_folded(&net, 1 + i % 2);
    }
    if (cases_level() == 1) return;
    const trn_topology gen2 = trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER), cube = trn_topology_of(TRN_TRN2_ULTRASERVER);
    compare_folded(&gen2, 4);
    compare_folded(&cube, 4);
}

/* ---- what AUTO chooses ---- */

static trn_algorithm chosen(const trn_topology *net, double bytes)
{
    trn_collective_args a = args_of(net, TRN_ALGORITHM_AUTO, TRN_ALL_REDUCE, 4);
    a.bytes = (int64_t)bytes;
    return cost_of(&a).algorithm;
}

/* The documented ranges: mesh below 1 MB, recursive doubling to 56 MB, KangaRing above; within a tenth. */
static void test_thresholds(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    double last_mesh = 0, last_rdh = 0;
    for (double bytes = 1024; bytes < 1e9; bytes *= 1.02) {
        const trn_algorithm a = chosen(&net, bytes);
        assert_true(a == TRN_MESH || a == TRN_RECURSIVE_DOUBLING || a == TRN_KANGARING);
        if (a == TRN_MESH) last_mesh = bytes;
        if (a == TRN_RECURSIVE_DOUBLING) last_rdh = bytes;
    }
    print_message("mesh to %.3g MB, recursive doubling to %.3g MB\n", last_mesh / 1e6, last_rdh / 1e6);
    assert_true(last_mesh > 0.9e6 && last_mesh < 1.1e6);
    assert_true(last_rdh > 50.4e6 && last_rdh < 61.6e6);
}

/* What the thresholds were derived from: 62 steps and the link time f, 10 and 1.4 f, 4 and 3.8 times the injection
 * bound; two pairs to a chip make 16 links out of every second 15. */
static void test_derivation(void **state)
{
    (void)state;
    static const struct {
        trn_algorithm algorithm;
        int steps;
        double links;
    } row[] = { { TRN_KANGARING, 62, 31.0 / 30 }, { TRN_RECURSIVE_DOUBLING, 10, 1.4 }, { TRN_MESH, 4, 3.8 } };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int i = 0; i < COUNT(row); i++) {
        trn_collective_args a = args_of(&net, row[i].algorithm, TRN_ALL_REDUCE, 4);
        const trn_cost c = cost_of(&a);
        const double f = 2 * 15.0 / 16 * (double)a.bytes / 512e9;
        assert_int_equal(c.steps, row[i].steps);
        assert_true(close_to(c.link_s, row[i].links * f, 1e-12));
        assert_true(c.latency_s >= row[i].steps * 1.4999e-6 && c.latency_s <= row[i].steps * 1.7e-6);
    }
}

static void check_auto(const trn_topology *net, const net_group *group, int cores)
{
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        for (int i = 1; i < COUNT(ask_sizes); i += 2) {
            trn_collective_args a = net_args(net, group, cores);
            a.op = (trn_collective)op;
            a.bytes = ask_sizes[i];
            const trn_cost best = cost_of(&a);
            const int count = trn_collective_candidates(&a, list);
            bool listed = false;
            assert_true(count >= 1 && count < TRN_ALGORITHM_COUNT);
            for (int k = 0; k < count; k++) {
                a.algorithm = list[k];
                listed = listed || list[k] == best.algorithm;
                if (op < TRN_PERMUTE) assert_true(best.expected_s <= cost_of(&a).expected_s * (1 + 1e-8));
            }
            assert_true(listed);
        }
}

static void test_auto_is_best(void **state)
{
    (void)state;
    for (int i = 0; i < TRN_TRN1_ULTRACLUSTER; i++) {
        const trn_topology net = trn_topology_of((trn_system)i);
        check_auto(&net, NULL, cases_level() == 1 ? 1 : 4);
    }
    for (int i = 0; i < NETS; i++) {
        const trn_topology net = net_number(i);
        check_auto(&net, NULL, 1 + i % 2);
    }
    for (int i = 0; i < NET_GROUPS; i++) {
        const trn_topology net = trn_topology_of(net_groups[i].system);
        check_auto(&net, &net_groups[i], 2);
    }
}

/* 400,000 chips: in little memory. The time is told only. */
static void test_large(void **state)
{
    (void)state;
    static const trn_system system[] = { TRN_TRN1_ULTRACLUSTER, TRN_PROJECT_RAINIER };
    for (int i = 0; i < 2; i++)
        for (int op = TRN_ALL_GATHER; op <= TRN_BROADCAST; op++) {
            const trn_topology net = trn_topology_of(system[i]);
            trn_collective_args a = args_of(&net, TRN_ALGORITHM_AUTO, (trn_collective)op, 4);
            const clock_t start = clock();
            most_in_use = 0;
            a.bytes = (int64_t)1 << 30;
            const trn_cost c = cost_of(&a);
            print_message("%s, %s: %.4g s by %s; found in %.2g s and %.3g MB\n", net.name, trn_collective_name(a.op),
                          c.time_s, trn_algorithm_name(c.algorithm), (double)(clock() - start) / CLOCKS_PER_SEC,
                          (double)most_in_use / 1e6);
            assert_true(most_in_use < 10000000 && in_use == 0);
            assert_true(c.time_s >= c.lower_bound_s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding),      cmocka_unit_test(test_thresholds), cmocka_unit_test(test_derivation),
        cmocka_unit_test(test_auto_is_best), cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests_name("collective auto", tests, NULL, NULL);
}
