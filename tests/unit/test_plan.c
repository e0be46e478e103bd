/* test_plan.c - plans: the search against loops, what must hold of any plan, reasons, refusals, timelines.
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

static trn_plan_list search(const trn_plan_args *args)
{
    trn_plan_list list = { 0 };
    if (trn_plan_search(args, plan, ROOM, &list) != TRN_OK) fail_msg("%s", failure.text);
    return list;
}

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

/* ---- what must hold of any plan ---- */

static double sum_of_parts(const trn_plan_time *t)
{
    return t->products_s + t->reads_s + t->attention_s + t->elementwise_s + t->update_s + t->tp_s + t->cp_s + t->ep_s +
           t->dp_s + t->pp_s + t->bubble_s - t->hidden_s + t->contention_s;
}

/* Bound, ideal, expected, in this order, part by part and as a whole; the range lies around the expectation. */
static void check_expectation(const trn_plan *p)
{
    near(sum_of_parts(&p->expected), p->expected_s, 1e-9, "sum of expected parts");
    if (p->bound_s > p->time_s) fail_msg("ideal %.9g s is below the bound %.9g", p->time_s, p->bound_s);
    assert_true(p->bound_s > 0 && p->time_s <= p->expected_low_s && p->expected_low_s <= p->expected_s);
    assert_true(p->expected_s <= p->expected_high_s && p->ttft_s <= p->expected_ttft_s);
    assert_true(p->expected_tokens_per_s <= p->tokens_per_s && p->expected_mfu <= p->mfu);
    for (int i = 0; i < TRN_PART_COUNT; i++) {
        const double ideal = trn_plan_part_s(&p->time, (trn_plan_part)i);
        assert_true(ideal <= trn_plan_part_s(&p->expected, (trn_plan_part)i) * (1 + 1e-12));
    }
}

static void check_plan(const trn_plan_args *args, const trn_plan *p)
{
    const trn_plan_time *t = &p->time;
    const bool train = args->job == TRN_JOB_TRAIN;
    assert_int_equal((int64_t)p->tp * p->cp * p->ep * p->dp * p->pp, args->net->chips);
    if (!p->legal) {
        assert_true(p->reason != TRN_PLAN_LEGAL && strlen(p->why) > 10 && strlen(p->why) < sizeof p->why - 1);
        return;
    }
    assert_true(p->reason == TRN_PLAN_LEGAL && !p->why[0]);
    assert_int_equal(p->microbatch * p->microbatches * p->dp * p->ep, args->batch);
    assert_true(p->memory.total <= p->memory.capacity && p->memory.total > 0);
    near(sum_of_parts(t), p->time_s, 1e-9, "sum of parts");
    check_expectation(p);
    assert_true(p->tp > 1 || t->tp_s <= 0);
    assert_true(p->cp > 1 || t->cp_s <= 0);
    assert_true(p->ep > 1 || t->ep_s <= 0);
    assert_true(p->pp > 1 || (t->pp_s <= 0 && t->bubble_s <= 0));
    assert_true((int64_t)p->dp * p->cp * p->ep > 1 || t->dp_s <= 0);
    assert_true(train || (t->dp_s <= 0 && t->update_s <= 0 && p->ttft_s > 0));
    assert_true(p->tp == 1 || t->tp_s > 0);
    assert_true(!train || (int64_t)p->dp * p->cp * p->ep == 1 || t->dp_s > 0);
    assert_true(p->mfu > 0 && p->mfu < 1);
    for (int i = 0; i < TRN_PART_COUNT; i++)
        assert_true(trn_plan_part_s(&p->expected, (trn_plan_part)i) <= trn_plan_part_s(&p->expected, p->bottleneck));
}

/* How many there are to look at, by loops of another kind. */
static int64_t count_degrees(int chips, int domain, bool experts)
{
    int64_t count = 0;
    for (int tp = 1; tp <= chips; tp++)
        for (int cp = 1; cp <= chips; cp++)
            for (int ep = 1; ep <= (experts ? chips : 1); ep++)
                for (int pp = 1; pp <= chips && pp <= 64; pp++) {
                    const int64_t inner = (int64_t)tp * cp * ep;
                    if (inner > domain || inner * pp > chips || chips % (inner * pp)) continue;
                    count += chips / (inner * pp) > 1 && pp > 1 ? 2 : 1;
                }
    return count;
}

static void whole_searches(void **state)
{
    (void)state;
    static const struct {
        const trn_model *model;
        trn_system system;
        trn_job job;
        int64_t batch, sequence;
        int domain;
    } row[] = {
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 64, 4096, 16 },
        { &llama8, TRN_TRN1_32XLARGE, TRN_JOB_TRAIN, 64, 4096, 16 },
        { &llama70, TRN_TRN2_ULTRASERVER, TRN_JOB_PREFILL, 64, 4096, 64 },
        { &llama70, TRN_TRN2_ULTRASERVER, TRN_JOB_DECODE, 128, 8192, 64 },
        { &qwen, TRN_TRN3_GEN1_ULTRASERVER, TRN_JOB_DECODE, 256, 16384, 64 },
        { &deepseek, TRN_TRN3_GEN2_ULTRASERVER, TRN_JOB_TRAIN, 288, 4096, 144 },
        { &llama8, TRN_TRN1_2XLARGE, TRN_JOB_DECODE, 1, 128, 1 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_topology net = trn_topology_of(row[i].system);
        const trn_plan_args args = question(row[i].model, &net, row[i].job, row[i].batch, row[i].sequence);
        const trn_plan_list list = search(&args);
        int64_t legal = 0, fallen[TRN_PLAN_REASON_COUNT] = { 0 };
        assert_int_equal(list.found, count_degrees(net.chips, row[i].domain, row[i].model->experts > 0));
        assert_int_equal(list.kept, list.found);
        for (int64_t k = 0; k < list.kept; k++) {
            check_plan(&args, &plan[k]);
            legal += plan[k].legal;
            fallen[plan[k].reason]++;
            assert_true(k == 0 || plan[k - 1].legal >= plan[k].legal);
            assert_true(k == 0 || !plan[k].legal || plan[k - 1].expected_s <= plan[k].expected_s);
        }
        assert_int_equal(legal, list.legal);
        assert_memory_equal(fallen, list.reason, sizeof fallen);
        assert_true(list.tried >= list.legal);
    }
}

static bool same_plan(const trn_plan *a, const trn_plan *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Less room keeps the best; each of them is what an evaluation of its degrees alone says. */
static void small_rooms_and_single_plans(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan_args args = question(&qwen, &net, TRN_JOB_TRAIN, 32, 2048);
    static trn_plan few[ROOM];
    const trn_plan_list all = search(&args);
    for (int64_t room = 0; room <= all.found; room += room < 5 ? 1 : 37) {
        trn_plan_list list;
        assert_int_equal(trn_plan_search(&args, few, room, &list), TRN_OK);
        assert_int_equal(list.kept, room);
        assert_int_equal(list.found, all.found);
        assert_int_equal(list.legal, all.legal);
        for (int64_t i = 0; i < room; i++)
            if (!same_plan(&few[i], &plan[i]))
                fail_msg("room for %lld: plan %lld is another", (long long)room, (long long)i);
    }
    for (int64_t i = 0; i < all.found; i += 7) {
        trn_plan p = { .tp = plan[i].tp,
                       .cp = plan[i].cp,
                       .ep = plan[i].ep,
                       .dp = plan[i].dp,
                       .pp = plan[i].pp,
                       .order = plan[i].order };
        assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
        assert_int_equal(p.legal, plan[i].legal);
        assert_string_equal(p.why, plan[i].why);
        near(p.time_s, plan[i].time_s, 1e-12, "time of a single plan");
    }
}

/* The rest of the degrees is searched. */
static void fixed_degrees(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_plan_args args = question(&llama70, &net, TRN_JOB_TRAIN, 64, 4096);
    args.degree[TRN_AXIS_TP] = 8;
    args.degree[TRN_AXIS_PP] = 4;
    const trn_plan_list list = search(&args);
    assert_int_equal(list.found, 3); /* cp 1 and dp 2 in two orders, cp 2 */
    for (int64_t i = 0; i < list.kept; i++) assert_true(plan[i].tp == 8 && plan[i].pp == 4);
    args.degree[TRN_AXIS_DP] = 3;
    trn_plan_list none;
    assert_int_equal(trn_plan_search(&args, plan, ROOM, &none), TRN_EINVAL);
    assert_non_null(
        strstr(failure.text, "no plan of 64 chips has these degrees (0 = any): tp 8, cp 0, ep 0, dp 3, pp 4"));
}

/* ---- more of a resource never hurts ---- */

typedef struct machine {
    trn_chip_spec chip;
    trn_server_spec server;
    trn_system_spec system;
} machine;

static void copy_machine(machine *m, trn_system system)
{
    m->system = *trn_system_spec_of(system);
    m->server = *m->system.server;
    m->chip = *m->server.chip;
    m->server.chip = &m->chip;
    m->system.server = &m->server;
}

static void more_hbm(void **state)
{
    (void)state;
    static trn_plan before[ROOM];
    const trn_topology net = trn_topology_of(TRN_TRN1_32XLARGE);
    for (int job = 0; job < TRN_JOB_COUNT; job++) {
        machine m;
        trn_plan_args args = question(&llama8, &net, (trn_job)job, 64, 4096);
        copy_machine(&m, TRN_TRN1_32XLARGE);
        args.system = &m.system;
        int64_t legal = 0;
        for (double size = 4e9; size < 400e9; size *= 1.7) {
            m.chip.hbm_bytes = size;
            const trn_plan_list list = search(&args);
            assert_true(list.legal >= legal);
            assert_true(legal == 0 || plan[0].expected_s <= before[0].expected_s);
            for (int64_t i = 0; i < legal; i++) { /* every plan that was legal is, and no slower */
                int64_t k = 0;
                while (k < list.legal &&
                       (plan[k].tp != before[i].tp || plan[k].cp != before[i].cp || plan[k].dp != before[i].dp ||
                        plan[k].pp != before[i].pp || plan[k].order != before[i].order))
                    k++;
                assert_true(k < list.legal && plan[k].expected_s <= before[i].expected_s);
            }
            legal = list.legal;
            memcpy(before, plan, sizeof plan);
        }
        assert_true(legal > 10);
    }
}

static void faster_links(void **state)
{
    (void)state;
    trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    double before = 0;
    for (int i = 0; i < 4; i++) {
        const trn_plan_args args = question(&llama70, &net, TRN_JOB_TRAIN, 64, 4096);
        trn_plan p = { .tp = 8, .cp = 2, .ep = 1, .dp = 4, .pp = 1 };
        assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
        assert_true(p.legal && (i == 0 || p.time_s < before));
        before = p.time_s;
        for (int l = 0; l < net.levels; l++) net.level[l].bytes_per_s *= 2;
    }
}

static void choices(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 64, 4096);
    trn_plan usual = { .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1 }, p = usual;
    assert_int_equal(trn_plan_evaluate(&args, &usual), TRN_OK);
    args.assumptions.contention = 0.5; /* more contention, more time; overlapped dependents, less */
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.time_s > usual.time_s);
    args.assumptions.contention = -1;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.time_s < usual.time_s && p.time.contention_s <= 0);
    args.overlap_dependent = true;
    trn_plan q = p;
    assert_int_equal(trn_plan_evaluate(&args, &q), TRN_OK);
    assert_true(q.time_s < p.time_s && q.time.hidden_s > p.time.hidden_s);
    args = question(&llama8, &net, TRN_JOB_TRAIN, 64, 4096);
    double before = 0;
    for (int kind = TRN_RECOMPUTE_NONE; kind <= TRN_RECOMPUTE_FULL; kind++) { /* each costs more than the one before */
        args.recompute = (trn_recompute)kind;
        args.microbatch = 1;
        assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
        assert_true(p.time_s > before && p.recompute == (trn_recompute)kind);
        assert_true(kind == TRN_RECOMPUTE_NONE ? p.time.recompute_s <= 0 : p.time.recompute_s > 0);
        before = p.time_s;
    }
    args.recompute = TRN_RECOMPUTE_AUTO;
    args.ranks_per_chip = 4; /* 16 ranks of tp: 8 KV heads must be copied */
    args.no_replicate_kv = true;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_int_equal(p.reason, TRN_PLAN_KV_HEADS);
    assert_non_null(strstr(p.why, "8 KV heads do not divide by tp 4 (16 ranks), and may not be copied"));
    args.no_replicate_kv = false;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.legal && p.time.tp_s > usual.time.tp_s);
    args = question(&llama8, &net, TRN_JOB_DECODE, 64, 8192); /* a chip's HBM, read by one or by four */
    p = q = (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    args.ranks_per_chip = 4;
    assert_int_equal(trn_plan_evaluate(&args, &q), TRN_OK);
    near(q.time.attention_s, p.time.attention_s, 1e-9, "KV reads of four ranks");
    near(q.memory.kv, p.memory.kv, 1e-12, "KV cache of four ranks");
    args =
        question(&llama8, &net, TRN_JOB_DECODE, 12, 4096); /* 6 sequences in 4 stages: 3 microbatches, one stage idle */
    p = (trn_plan){ .tp = 2, .cp = 1, .ep = 1, .dp = 2, .pp = 4 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.microbatches == 3 && p.microbatch == 2);
    near(p.time_s, 4 * p.time.forward_s, 1e-12, "a token through four stages");
}

/* ---- why not ---- */

static void reasons(void **state)
{
    (void)state;
    static const struct {
        const trn_model *model;
        trn_system system;
        trn_job job;
        int64_t batch, sequence, microbatch;
        int tp, cp, ep, dp, pp;
        trn_plan_reason reason;
        const char *says;
    } row[] = {
        { &llama8, TRN_TRN3_GEN2_ULTRASERVER, TRN_JOB_TRAIN, 144, 4096, 0, 3, 1, 1, 48, 1, TRN_PLAN_HEADS,
          "32 heads do not divide by tp 3" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 16, 4096, 0, 16, 1, 1, 1, 1, TRN_PLAN_KV_HEADS,
          "8 KV heads do not divide by tp 16, and may not be copied (no_replicate_kv)" },
        { &qwen, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 16, 4096, 0, 8, 1, 2, 1, 1, TRN_PLAN_KV_HEADS, "4 KV heads" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 16, 4096, 0, 1, 1, 2, 8, 1, TRN_PLAN_EXPERTS,
          "0 experts do not divide by ep 2" },
        { &deepseek, TRN_TRN3_GEN2_ULTRASERVER, TRN_JOB_TRAIN, 144, 4096, 0, 1, 1, 3, 48, 1, TRN_PLAN_EXPERTS,
          "256 experts do not divide by ep 3" },
        { &deepseek, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 16, 4096, 0, 1, 1, 1, 8, 2, TRN_PLAN_LAYERS,
          "61 layers do not divide by pp 2, unless the last stage may have fewer (uneven_stages)" },
        { &llama8, TRN_TRN2_ULTRASERVER, TRN_JOB_TRAIN, 64, 4096, 0, 1, 1, 1, 1, 64, TRN_PLAN_LAYERS,
          "32 layers do not divide by pp 64" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 16, 4095, 0, 1, 2, 1, 8, 1, TRN_PLAN_SEQUENCE,
          "sequence 4095 does not divide by cp 2" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 15, 4096, 0, 1, 1, 1, 16, 1, TRN_PLAN_BATCH,
          "batch 15 does not divide by dp 16" },
        { &qwen, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 8, 4096, 0, 1, 1, 4, 4, 1, TRN_PLAN_BATCH,
          "batch 8 does not divide by dp 4 x ep 4" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_TRAIN, 48, 4096, 2, 1, 1, 1, 16, 1, TRN_PLAN_MICROBATCH,
          "the 3 sequences of a replica do not divide into microbatches of 2" },
        { &llama8, TRN_TRN1_32XLARGE, TRN_JOB_DECODE, 16, 4096, 0, 2, 1, 1, 8, 1, TRN_PLAN_GROUP,
          "tp 2: a replica group of 4 ranks; Trainium1 with 2 ranks per chip takes 1, 2, 8, 16 or a multiple of 32" },
        { &llama70, TRN_TRN1_32XLARGE, TRN_JOB_TRAIN, 16, 4096, 0, 8, 1, 1, 2, 1, TRN_PLAN_HBM, "HBM short by " },
        { &llama70, TRN_TRN1_32XLARGE, TRN_JOB_DECODE, 16, 4096, 0, 1, 1, 1, 16, 1, TRN_PLAN_HBM, "of them weights" },
        { &llama8, TRN_TRN2_48XLARGE, TRN_JOB_DECODE, 512, 131072, 0, 8, 1, 1, 2, 1, TRN_PLAN_HBM, "of them KV cache" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_topology net = trn_topology_of(row[i].system);
        trn_plan_args args = question(row[i].model, &net, row[i].job, row[i].batch, row[i].sequence);
        trn_plan p = { .tp = row[i].tp, .cp = row[i].cp, .ep = row[i].ep, .dp = row[i].dp, .pp = row[i].pp };
        args.microbatch = row[i].microbatch;
        args.no_replicate_kv = row[i].reason == TRN_PLAN_KV_HEADS;
        if (trn_plan_evaluate(&args, &p) != TRN_OK) fail_msg("row %u: %s", i, failure.text);
        if (p.legal || p.reason != row[i].reason || !strstr(p.why, row[i].says))
            fail_msg("row %u: %s: '%s', expected '%s'", i, trn_plan_reason_name(p.reason), p.why, row[i].says);
    }
    const trn_topology cluster = trn_topology_of(TRN_TRN1_ULTRACLUSTER); /* 16 x 1875: a tp of 3 or 5 needs EFA */
    trn_plan_args args = question(&llama8, &cluster, TRN_JOB_TRAIN, 30000, 4095);
    trn_plan p = { .tp = 1, .cp = 5, .ep = 1, .dp = 6000, .pp = 1 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_string_equal(p.why, "cp 5 would reach beyond the 16 chips that NeuronLink joins");
    args.across_domains = true;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.reason != TRN_PLAN_DOMAIN);
    args.uneven_stages =
        true; /* 61 layers in 16 stages: 15 of four and one of one; in 32 of two, the last would be empty */
    args.model = &deepseek;
    args.batch = 1875;
    args.sequence = 4096;
    p = (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 1875, .pp = 16 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_true(p.reason != TRN_PLAN_LAYERS);
    const trn_topology server = trn_topology_of(TRN_TRN2_ULTRASERVER);
    args.net = &server;
    args.batch = 64;
    p = (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 2, .pp = 32 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_string_equal(p.why, "stages of 2 layers: 61 layers do not fill pp 32 of them");
}

/* ---- refusals: nothing is written, and one sentence ---- */

static void refused(trn_plan_args *args, trn_status status, const char *says)
{
    trn_plan_list list;
    trn_plan p;
    memset(&list, 0x55, sizeof list);
    memset(&p, 0x55, sizeof p);
    memset(&failure, 0, sizeof failure);
    const trn_plan_list old_list = list;
    const trn_plan old = p;
    assert_int_equal(trn_plan_search(args, &p, 1, &list), status);
    assert_int_equal(failure.status, status);
    if (!strstr(failure.text, says)) fail_msg("it says '%s', not '%s'", failure.text, says);
    assert_memory_equal(&list, &old_list, sizeof list);
    assert_memory_equal(&p, &old, sizeof p);
    assert_int_equal(trn_plan_evaluate(args, &p), status);
    assert_memory_equal(&p, &old, sizeof p);
}

static void refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE), torus = trn_topology_ring(4, 1e11, 1e-6);
    const trn_plan_args good = question(&llama8, &net, TRN_JOB_TRAIN, 16, 4096);
    trn_plan_args a;
#define REFUSED(change, status, says) (a = good, change, refused(&a, status, says))
    REFUSED(a.net = NULL, TRN_EINVAL, "net is null");
    REFUSED(a.model = NULL, TRN_EINVAL, "model is null");
    REFUSED(a.net = &torus, TRN_EINVAL, "whose chips are they?");
    REFUSED(a.batch = 0, TRN_EINVAL, "batch is 0 and sequence 4096");
    REFUSED(a.sequence = INT64_C(1) << 33, TRN_EINVAL, "both begin at 1 and end at 2^32");
    REFUSED((a.batch = 1 << 20, a.sequence = 1 << 21), TRN_ELIMIT, "more than 2^40 tokens in a step");
    REFUSED(a.job = (trn_job)7, TRN_EINVAL, "job is 7, not a job");
    REFUSED(a.zero = (trn_zero)9, TRN_EINVAL, "zero is 9, not a choice");
    REFUSED(a.recompute = (trn_recompute)-1, TRN_EINVAL, "recompute is -1, not a choice");
    REFUSED(a.degree[TRN_AXIS_EP] = -2, TRN_EINVAL, "degree of ep is -2");
    REFUSED(a.microbatch = -1, TRN_EINVAL, "microbatch -1");
    REFUSED(a.ranks_per_chip = 3, TRN_EINVAL, "ranks_per_chip is 3, which does not divide the 8 cores of Trainium2");
    REFUSED(a.ranks_per_chip = -1, TRN_EINVAL, "ranks_per_chip is -1");
    REFUSED(a.formats.kv = (trn_format)77, TRN_EFORMAT, "formats.kv is 77, not a format");
    REFUSED(a.formats.compute = TRN_F4_E2M1, TRN_EUNSUPPORTED, "formats.compute: a_format");
    REFUSED(a.precision = TRN_PRECISION_COUNT, TRN_EINVAL, "precision is 3, not a choice");
    REFUSED(a.assumptions.contention = NAN, TRN_EINVAL, "assumptions.contention is nan");
    REFUSED(a.assumptions.expert_imbalance = 1e9, TRN_EINVAL, "1024 is the most");
#undef REFUSED
    trn_plan_list list;
    trn_plan p = { .tp = 4, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    assert_int_equal(trn_plan_search(NULL, plan, 1, &list), TRN_EINVAL);
    assert_int_equal(trn_plan_search(&good, plan, 1, NULL), TRN_EINVAL);
    assert_int_equal(trn_plan_search(&good, NULL, 1, &list), TRN_EINVAL);
    assert_int_equal(trn_plan_evaluate(&good, NULL), TRN_EINVAL);
    assert_int_equal(trn_plan_evaluate(&good, &p), TRN_EINVAL);
    assert_string_equal(failure.text, "tp 4 x cp 1 x ep 1 x dp 1 x pp 1 are not the 16 chips of trn2.48xlarge");
    a = good; /* somebody else's chips in a network of one's own */
    a.net = &torus;
    a.system = trn_system_spec_of(TRN_TRN2_48XLARGE);
    assert_int_equal(trn_plan_search(&a, plan, ROOM, &list), TRN_OK);
    assert_true(list.legal > 0);
}

/* ---- timelines ---- */

static void timelines(void **state)
{
    (void)state;
    enum { EVENTS = 4000 };
    static trn_trace_event event[EVENTS];
    trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    uint64_t rng = 5;
    for (int round = 0; round < 60; round++) {
        if (round == 30) /* links so slow that cp is still busy when the next layer begins */
            for (int l = 0; l < net.levels; l++) net.level[l].bytes_per_s /= 200;
        const trn_model *model = round % 3 == 0 ? &qwen : &llama8;
        const trn_plan_args args = question(model, &net, (trn_job)(round % 3), 64, 2048);
        const trn_plan_list list = search(&args);
        const trn_plan *p = &plan[cases_below(&rng, (int)list.legal)];
        for (int layer = 0; layer < 2; layer++) {
            trn_trace trace = { .event = event, .capacity = EVENTS };
            double last[TRN_TRACE_TRACKS] = { 0 }, end = 0;
            const trn_status status =
                layer ? trn_plan_trace_layer(&args, p, &trace) : trn_plan_trace_step(&args, p, &trace);
            if (status != TRN_OK) fail_msg("%s", failure.text);
            assert_true(trace.count > 0 && trace.lost == 0 && trace.tracks <= TRN_TRACE_TRACKS);
            trn_trace_sort(&trace);
            for (int64_t i = 0; i < trace.count; i++) {
                const trn_trace_event *e = &event[i];
                assert_true(e->track >= 0 && e->track < trace.tracks && trace.track[e->track]);
                assert_true(e->start_s >= last[e->track] - 1e-9 * p->time_s && e->duration_s > 0);
                last[e->track] = e->start_s + e->duration_s;
                end = fmax(end, last[e->track]);
            }
            if (!layer && args.job == TRN_JOB_TRAIN) near(end, p->time_s, 1e-9, "the end of a step");
            if (!layer && args.job == TRN_JOB_PREFILL && p->pp <= 12)
                near(end, p->time_s, 1e-9, "the end of a prefill");
            if (layer) assert_true(end < p->time_s);
        }
    }
}

static void timelines_of_nothing(void **state)
{
    (void)state;
    static trn_trace_event event[10];
    trn_trace trace = { .event = event, .capacity = 10 };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 64, 2048);
    trn_plan p = { .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    args.no_replicate_kv = true;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK); /* 8 KV heads */
    assert_int_equal(trn_plan_trace_step(&args, &p, &trace), TRN_EINVAL);
    assert_string_equal(failure.text, "plan is not legal, so it has no times");
    assert_int_equal(trn_plan_trace_layer(&args, &p, &trace), TRN_EINVAL);
    p = (trn_plan){ .legal = true, .tp = 16 };
    assert_int_equal(trn_plan_trace_layer(&args, &p, &trace), TRN_EINVAL);
    assert_string_equal(failure.text, "plan is not one of 16 chips");
    assert_int_equal(trn_plan_trace_step(&args, &p, &trace), TRN_EINVAL);
    assert_int_equal(trn_plan_trace_step(NULL, &p, &trace), TRN_EINVAL);
    assert_int_equal(trn_plan_trace_layer(NULL, &p, &trace), TRN_EINVAL);
    assert_int_equal(trn_plan_trace_layer(&args, NULL, &trace), TRN_EINVAL);
    assert_int_equal(trace.count, 0);
    p = (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 8, .pp = 2 };
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_int_equal(trn_plan_trace_step(&args, &p, &trace), TRN_OK); /* more than there is room for */
    assert_true(trace.count == 10 && trace.lost > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_searches), cmocka_unit_test(small_rooms_and_single_plans),
        cmocka_unit_test(fixed_degrees),  cmocka_unit_test(more_hbm),
        cmocka_unit_test(faster_links),   cmocka_unit_test(choices),
        cmocka_unit_test(reasons),        cmocka_unit_test(refusals),
        cmocka_unit_test(timelines),      cmocka_unit_test(timelines_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
