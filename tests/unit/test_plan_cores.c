/* test_plan_cores.c - tp counted in logical cores, as the vendor's pages do: the same plans as those counted in chips,
 * and replicas that share a chip.
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

#include "trnmath/trn_plan.h"
#include "twin/cases.h"
#include "twin/plan_cases.h"

enum { ROOM = 3000 };
static trn_plan plan[ROOM];

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static trn_plan evaluated(const trn_plan_args *args, trn_plan p)
{
    if (trn_plan_evaluate(args, &p) != TRN_OK) fail_msg("%s", failure.text);
    return p;
}

/* tp 64 on trn2.48xlarge with lnc 2 is 16 chips; with lnc 1 it is 8; two cores of Trainium1 are a chip. */
static void chips_of_cores(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        int lnc, tp_cores, tp, dp;
    } row[] = {
        { TRN_TRN2_48XLARGE, 2, 64, 16, 1 }, { TRN_TRN2_48XLARGE, 1, 64, 8, 2 },
        { TRN_TRN2_48XLARGE, 2, 4, 1, 16 },  { TRN_TRN2_48XLARGE, 2, 2, 1, 32 },
        { TRN_TRN2_48XLARGE, 2, 1, 1, 64 },  { TRN_TRN1_32XLARGE, 1, 32, 16, 1 },
        { TRN_TRN1_32XLARGE, 1, 8, 4, 4 },   { TRN_TRN1_32XLARGE, 1, 1, 1, 32 },
        { TRN_TRN2_48XLARGE, 1, 4, 1, 32 },  { TRN_TRN3_GEN2_ULTRASERVER, 2, 16, 4, 36 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_topology net = trn_topology_of(row[i].system);
        trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, 576, 1024);
        trn_plan_list list;
        args.lnc = row[i].lnc;
        args.degree[TRN_AXIS_TP] = row[i].tp_cores;
        args.degree[TRN_AXIS_CP] = args.degree[TRN_AXIS_PP] = 1;
        if (trn_plan_search(&args, plan, ROOM, &list) != TRN_OK) fail_msg("row %u: %s", i, failure.text);
        assert_int_equal(list.found, 1);
        assert_int_equal(plan[0].tp_cores, row[i].tp_cores);
        assert_int_equal(plan[0].tp, row[i].tp);
        assert_int_equal(plan[0].dp, row[i].dp);
        const trn_plan by_cores = { .tp_cores = row[i].tp_cores, .cp = 1, .ep = 1, .dp = row[i].dp, .pp = 1 };
        const trn_plan p = evaluated(&args, by_cores);
        assert_memory_equal(&p, &plan[0], sizeof p);
    }
}

/* Whole chips: what ranks_per_chip says of the same degrees. */
static void whole_chips(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int job = 0; job < TRN_JOB_COUNT; job++)
        for (int lnc = 1; lnc <= 2; lnc++)
            for (int tp = 1; tp <= 16; tp *= 2) {
                trn_plan_args args = question(&llama8, &net, (trn_job)job, 64, 2048), cores = args;
                args.ranks_per_chip = 8 / lnc;
                args.ignore_groups = cores.ignore_groups = true;
                cores.lnc = lnc;
                const trn_plan degrees = { .tp = tp, .cp = 1, .ep = 1, .dp = 16 / tp, .pp = 1 };
                const trn_plan a = evaluated(&args, degrees), b = evaluated(&cores, degrees);
                assert_int_equal(b.tp_cores, tp * 8 / lnc);
                assert_int_equal(b.legal, a.legal);
                assert_true(fabs(a.time_s - b.time_s) <= 0 && fabs(a.memory.total - b.memory.total) <= 0);
            }
}

/* How many there are to look at, by loops of another kind. */
static int64_t count_degrees(int chips, int cores)
{
    int64_t count = 0;
    for (int tp = 1; tp <= chips * cores; tp++)
        for (int cp = 1; cp <= chips; cp++)
            for (int pp = 1; pp <= chips; pp++) {
                const int used = tp < cores ? cp * pp : tp / cores * cp * pp;
                if (tp < cores ? cores % tp : tp % cores) continue;
                if (chips % used) continue;
                const int dp = chips * cores / (tp * cp * pp);
                count += dp > 1 && pp > 1 ? 2 : 1;
            }
    return count;
}

static void all_of_them(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int lnc = 1; lnc <= 2; lnc++) {
        trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 128, 2048);
        trn_plan_list list;
        args.lnc = lnc;
        assert_int_equal(trn_plan_search(&args, plan, ROOM, &list), TRN_OK);
        assert_int_equal(list.found, count_degrees(16, 8 / lnc));
        for (int64_t i = 0; i < list.kept; i++) {
            const trn_plan *p = &plan[i];
            assert_int_equal((int64_t)p->tp_cores * p->cp * p->ep * p->dp * p->pp, 16 * 8 / lnc);
            assert_int_equal(p->tp, p->tp_cores < 8 / lnc ? 1 : p->tp_cores * lnc / 8);
            if (!p->legal) continue;
            assert_int_equal(p->microbatch * p->microbatches * p->dp * p->ep, 128);
            assert_true(p->memory.total <= p->memory.capacity && p->mfu > 0 && p->mfu < 1);
        }
    }
}

/* Four replicas on a chip hold the model four times, and each reads its own. */
static void replicas_on_a_chip(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama8, &net, TRN_JOB_DECODE, 64, 4096);
    trn_model_size size = { 0 };
    assert_int_equal(trn_model_size_of(&llama8, &size, NULL), TRN_OK);
    args.lnc = 2;
    for (int cores = 1; cores <= 4; cores *= 2) {
        const int sharing = 4 / cores;
        const trn_plan degrees = { .tp_cores = cores, .cp = 1, .ep = 1, .dp = 16 * sharing, .pp = 1 };
        const trn_plan p = evaluated(&args, degrees);
        assert_true(p.legal);
        near(p.memory.weights, 2.0 * sharing * size.total, 1e-4, "weights"); /* norms are held by each rank */
        near(p.memory.kv, 4.0 * 4096 * 2 * size.kv_elements, 1e-12, "KV cache");
        near(p.time.attention_s, 4.0 * 4096 * 2 * size.kv_elements / 2.9e12, 0.05, "KV reads");
        assert_true(cores == 1 ? p.time.tp_s <= 0 : p.time.tp_s > 0);
        assert_true(p.time.products_s + p.time.reads_s > 2.0 * sharing * (size.total - 128256 * 4096.0) / 2.9e12);
    }
    args.job = TRN_JOB_TRAIN; /* gradients are summed up within a chip, and then between chips */
    args.zero = TRN_ZERO_OPTIMIZER;
    args.microbatch = 1;
    double before = 0;
    for (int cores = 4; cores >= 1; cores /= 2) {
        trn_plan p = { .tp_cores = cores, .cp = 1, .ep = 1, .dp = 64 / cores, .pp = 1 };
        p = evaluated(&args, p);
        assert_true(p.legal ? p.time.dp_s > before : p.reason == TRN_PLAN_HBM);
        if (p.legal) before = p.time.dp_s;
    }
}

/* A sum over replicas of which some share a chip: scattered among these, summed between chips, gathered among these; of
 * a scatter or a gather alone one of the two. */
static void sums_of_replicas_on_a_chip(void **state)
{
    (void)state;
    static const trn_collective op[] = { TRN_ALL_REDUCE, TRN_REDUCE_SCATTER, TRN_ALL_GATHER };
    const unsigned dp = 1u << TRN_AXIS_DP;
    const double bytes = 1e8;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 64, 4096);
    args.lnc = 2;
    for (int cores = 1; cores <= 4; cores *= 2) {
        const int sharing = 4 / cores;
        trni_plan_work w;
        trni_plan_run r;
        trn_plan p = { .tp_cores = cores, .cp = 1, .ep = 1, .dp = 16 * sharing, .pp = 1, .microbatch = 1 };
        assert_int_equal(trni_plan_work_begin(&w, &args, 1 << 10), TRN_OK);
        trni_plan_count_tp(&w, &p);
        assert_true(trni_plan_fills(&w, &p) && trni_plan_sharing(&w, &p) == sharing);
        trni_plan_run_begin(&w, &p, false, &r);
        const double own = bytes / sharing;
        const double scatter = trni_plan_run_collective(&r, 0, TRN_REDUCE_SCATTER, own, sharing, NULL);
        const double gather = trni_plan_run_collective(&r, 0, TRN_ALL_GATHER, own, sharing, NULL);
        assert_true(sharing == 1 ? scatter + gather <= 0 : scatter > 0 && gather > 0);
        for (int i = 0; i < 3; i++) {
            const double between = trni_plan_run_collective(&r, dp, op[i], own, 1, NULL);
            const double inside = (i != 2 ? scatter : 0) + (i != 1 ? gather : 0);
            const double all = trni_plan_shared_collective(&r, dp, op[i], bytes);
            near(all, between + inside, 1e-12, trn_collective_name(op[i]));
        }
        assert_int_equal(w.status, TRN_OK);
        trni_plan_work_end(&w);
    }
}

static void refused(const trn_plan_args *args, const char *says)
{
    trn_plan_list list;
    assert_int_equal(trn_plan_search(args, plan, ROOM, &list), TRN_EINVAL);
    if (!strstr(failure.text, says)) fail_msg("it says '%s', not '%s'", failure.text, says);
}

static void refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE), first = trn_topology_of(TRN_TRN1_32XLARGE);
    trn_plan_args a = question(&llama8, &net, TRN_JOB_DECODE, 64, 4096);
    a.lnc = 3;
    refused(&a, "lnc is 3; a logical core of Trainium2 has 1 or 2 cores");
    a.lnc = -1;
    refused(&a, "lnc is -1; a logical core of Trainium2 has 1 or 2 cores");
    a.lnc = 2;
    a.ranks_per_chip = 8;
    refused(&a, "ranks_per_chip is 8, but with lnc 2 a chip has 4 logical cores");
    a.ranks_per_chip = 4;
    a.degree[TRN_AXIS_TP] = 6;
    refused(&a, "tp 6 is neither a divisor nor a multiple of the 4 logical cores of a chip");
    a.degree[TRN_AXIS_TP] = 24;
    refused(&a, "no plan of 64 logical cores has these degrees (0 = any): tp 24, cp 0, ep 0, dp 0, pp 0");
    trn_plan p = { .tp_cores = 6, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    assert_int_equal(trn_plan_evaluate(&a, &p), TRN_EINVAL);
    assert_string_equal(failure.text, "tp 6 x cp 1 x ep 1 x dp 1 x pp 1 are not the logical cores of trn2.48xlarge: "
                                      "16 chips of 4");
    p = (trn_plan){ .tp_cores = 2, .cp = 1, .ep = 1, .dp = 16, .pp = 1 }; /* half of the cores left over */
    assert_int_equal(trn_plan_evaluate(&a, &p), TRN_EINVAL);
    a = question(&llama8, &first, TRN_JOB_DECODE, 64, 4096);
    a.lnc = 2;
    refused(&a, "lnc is 2; a logical core of Trainium1 has 1 core");
    a = question(&llama8, &net, TRN_JOB_DECODE, 64, 4096); /* the runtime takes no two ranks at lnc 1 */
    a.lnc = 1;
    p = evaluated(&a, (trn_plan){ .tp_cores = 2, .cp = 1, .ep = 1, .dp = 64, .pp = 1 });
    assert_int_equal(p.reason, TRN_PLAN_GROUP);
    assert_non_null(strstr(p.why, "tp 2: a replica group of 2 ranks; Trainium2 with 8 ranks per chip takes 4, 8,"));
    a.lnc = 2; /* the sentence counts as the question does */
    p = evaluated(&a, (trn_plan){ .tp_cores = 64, .cp = 1, .ep = 1, .dp = 1, .pp = 1 });
    assert_non_null(strstr(p.why, "32 heads do not divide by tp 64 (16 chips)"));
}

static void pictures(void **state)
{
    (void)state;
    enum { EVENTS = 4000 };
    static trn_trace_event event[EVENTS];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 128, 2048);
    args.lnc = 2;
    const trn_plan degrees = { .tp_cores = 2, .cp = 1, .ep = 1, .dp = 8, .pp = 4 }, p = evaluated(&args, degrees);
    char text[96];
    assert_true(p.legal);
    for (int layer = 0; layer < 2; layer++) {
        trn_trace trace = { .event = event, .capacity = EVENTS };
        assert_int_equal(layer ? trn_plan_trace_layer(&args, &p, &trace) : trn_plan_trace_step(&args, &p, &trace),
                         TRN_OK);
        assert_true(trace.count > 0 && trace.lost == 0);
    }
    trn_plan_level_text(&net, &p, 0, text, sizeof text);
    assert_string_equal(text, "dp 4");
    trn_plan_level_text(&net, &p, 1, text, sizeof text);
    assert_string_equal(text, "pp 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chips_of_cores),
        cmocka_unit_test(whole_chips),
        cmocka_unit_test(all_of_them),
        cmocka_unit_test(replicas_on_a_chip),
        cmocka_unit_test(refusals),
        cmocka_unit_test(pictures),
        cmocka_unit_test(sums_of_replicas_on_a_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
