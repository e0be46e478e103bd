/* test_plan_pool.c - KV caches that lie once in the memory of all of tp's chips: bytes by hand, who needs them, what
 * the links take, and that nothing else changes.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/trn_plan.h"
#include "twin/plan_cases.h"

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static trn_plan evaluated(const trn_plan_args *args, int tp, int dp, int pp)
{
    trn_plan p = { .tp = tp, .cp = 1, .ep = 1, .dp = dp, .pp = pp };
    if (trn_plan_evaluate(args, &p) != TRN_OK) fail_msg("%s", failure.text);
    return p;
}

static trn_plan_args pooled(trn_plan_args args)
{
    args.kv_pool = true;
    return args;
}

#define CAPACITY (96 * 1073741824.0) /* of Trainium2 */

/* Llama 3 70B, tp 16 on an instance of 16 chips: 80 layers, one KV head of 128 on each rank, of 8 there are two copies.
 * A token is 80 x 2 x 128 x 2 B = 40,960 B on a chip. */
static void bytes_by_hand(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const double token = 80 * 2 * 128 * 2;
    for (int64_t batch = 64; batch <= 1024; batch *= 2) {
        const trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, batch, 8192);
        const trn_plan_args with = pooled(args);
        const trn_plan alone = evaluated(&args, 16, 1, 1), pool = evaluated(&with, 16, 1, 1);
        const double keys = (double)batch * 8192 * token;
        near(alone.memory.kv, keys, 1e-12, "keys of a chip");
        assert_true(alone.memory.kv_elsewhere <= 0);
        const double rest = alone.memory.total - keys;
        near(pool.memory.kv + pool.memory.kv_elsewhere, keys, 1e-12, "keys that a chip reads");
        near(pool.memory.capacity, CAPACITY, 1e-12, "HBM");
        assert_int_equal(alone.legal, rest + keys <= CAPACITY);
        assert_int_equal(pool.legal, rest + keys / 2 <= CAPACITY); /* all 16 chips together: two copies become one */
        if (alone.legal)
            assert_memory_equal(&alone, &pool, sizeof alone);
        else if (pool.legal)
            near(pool.memory.kv_elsewhere, rest + keys - CAPACITY, 1e-9, "elsewhere");
        else
            near(pool.memory.kv_elsewhere, keys / 2, 1e-12, "as much as can be elsewhere");
        if (!pool.legal) assert_non_null(strstr(pool.why, "each key once in tp's pool"));
    }
}

/* Where nothing is held twice, a pool holds no more: 8 KV heads on 8 ranks; one chip; other jobs. */
static void nothing_to_gain(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    static const struct {
        trn_job job;
        int tp, dp, pp;
        int64_t batch, length;
    } row[] = {
        { TRN_JOB_DECODE, 8, 2, 1, 1024, 8192 },
        { TRN_JOB_DECODE, 1, 1, 16, 1024, 8192 },
        { TRN_JOB_PREFILL, 16, 1, 1, 400, 8192 },
        { TRN_JOB_TRAIN, 16, 1, 1, 64, 8192 },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_plan_args args = question(&llama70, &net, row[i].job, row[i].batch, row[i].length);
        const trn_plan_args with = pooled(args);
        const trn_plan a = evaluated(&args, row[i].tp, row[i].dp, row[i].pp);
        const trn_plan b = evaluated(&with, row[i].tp, row[i].dp, row[i].pp);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

/* A latent is the same on all ranks of tp: of 16 copies 15 may go. 61 layers of 576 elements of 2 B. */
static void latents(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_plan_args args = question(&deepseek, &net, TRN_JOB_DECODE, 4096, 8192);
    trn_plan p = { .tp = 16, .cp = 1, .ep = 4, .dp = 1, .pp = 1 };
    args.ignore_groups = true;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_false(p.legal);
    const double keys = 1024.0 * 8192 * 61 * 576 * 2, rest = p.memory.total - keys;
    near(p.memory.kv, keys, 1e-12, "a latent on each chip");
    args.kv_pool = true;
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_OK);
    assert_int_equal(p.legal, rest + keys / 16 <= CAPACITY);
    near(p.memory.kv_elsewhere, fmin(keys * 15 / 16, rest + keys - CAPACITY), 1e-9, "elsewhere");
}

/* What is elsewhere comes as an all_to_all among tp's chips, whose buffers are 16 / 15 of it: 80 times in a token. */
static double links_s(const trn_topology *net, double bytes, bool expected)
{
    const trn_collective_args args = {
        .net = net, .op = TRN_ALL_TO_ALL, .bytes = (int64_t)(bytes * 16 / 15), .ranks_per_chip = 1, .error = &failure
    };
    trn_cost cost;
    assert_int_equal(trn_collective_cost(&args, &cost), TRN_OK);
    return expected ? cost.expected_s : cost.time_s;
}

static void links_take_time(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, 384, 8192);
    const trn_plan_args with = pooled(args);
    const trn_plan p = evaluated(&with, 16, 1, 1);
    assert_true(p.legal && p.memory.kv_elsewhere > 0);
    const double away = p.memory.kv_elsewhere / 80;
    /* By hand: on a ring of four a byte travels one hop on average (0, 1, 2, 1), over one of two links of 128 GB/s;
     * messages from each to each load links 1.78125 times as much as that (trn_calibration's mesh). */
    near(links_s(&net, away, false), 1.78125 * away * 16 / 15 / 256e9, 0.01, "links");
    near(p.time.attention_s, 80 * links_s(&net, away, false), 1e-6, "attention waits for links, ideal");
    assert_true(p.expected.attention_s >= 80 * links_s(&net, away, true) * (1 - 1e-6));
    /* Faster links, nothing else changed: not slower. Twice the bytes elsewhere: slower. */
    trn_topology fast = net;
    for (int l = 0; l < fast.levels; l++) fast.level[l].bytes_per_s *= 4;
    trn_plan_args quick = with;
    quick.net = &fast;
    const trn_plan q = evaluated(&quick, 16, 1, 1);
    assert_true(q.expected_s < p.expected_s && q.time_s < p.time_s);
    args.batch = 400;
    const trn_plan_args more = pooled(args);
    const trn_plan m = evaluated(&more, 16, 1, 1);
    assert_true(m.memory.kv_elsewhere > p.memory.kv_elsewhere && m.expected.attention_s > p.expected.attention_s);
}

/* A search with the pool has the legal plans of one without it, unchanged, and more. */
static void searches(void **state)
{
    (void)state;
    enum { ROOM = 400 };
    static trn_plan without[ROOM], with[ROOM];
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    const trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, 1536, 8192), pool = pooled(args);
    trn_plan_list a, b;
    assert_int_equal(trn_plan_search(&args, without, ROOM, &a), TRN_OK);
    assert_int_equal(trn_plan_search(&pool, with, ROOM, &b), TRN_OK);
    assert_true(b.legal > a.legal && a.found == b.found);
    int64_t same = 0, borrowing = 0;
    for (int64_t i = 0; i < b.legal; i++) {
        borrowing += with[i].memory.kv_elsewhere > 0;
        for (int64_t k = 0; k < a.legal; k++) same += memcmp(&with[i], &without[k], sizeof with[i]) == 0;
    }
    assert_int_equal(same, a.legal);
    assert_int_equal(borrowing, b.legal - a.legal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_by_hand),   cmocka_unit_test(nothing_to_gain), cmocka_unit_test(latents),
        cmocka_unit_test(links_take_time), cmocka_unit_test(searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
