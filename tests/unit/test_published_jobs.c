/* test_published_jobs.c - what plans expect of the training runs and served models that the vendor's pages print.
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

#include "published/errors.h"

static trn_error error;

static trn_plan planned(const published_job *row)
{
    const trn_topology net = published_job_net(row);
    trn_plan_args a = published_job_ask(row, &net);
    trn_plan p = published_job_plan(row);
    a.error = &error;
    if (trn_plan_evaluate(&a, &p) != TRN_OK) fail_msg("%s: %s", row->model->name, error.text);
    return p;
}

/* Those whose pages the constants were chosen with are within 1.3 times. The bound and the ideal time are below what
 * was measured, always. */
static void rows(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *row = &published_jobs[i];
        const trn_plan p = planned(row);
        const double s = published_job_s(row);
        if (!p.legal) fail_msg("%s: %s", row->model->name, p.why);
        if (!(p.bound_s <= p.time_s && p.time_s <= p.expected_s && p.time_s <= s))
            fail_msg("%s, %s: %.3g s published, bound %.3g, ideal %.3g, expected %.3g", row->model->name, row->source,
                     s, p.bound_s, p.time_s, p.expected_s);
        if (i < PUBLISHED_FITTED && !(published_far(p.expected_s / s) < log(1.3)))
            fail_msg("%s, %s: %.3g s published, %.3g expected", row->model->name, row->source, s, p.expected_s);
    }
}

/* Every published time, first tokens and collectives too: nine of ten are within 1.5 times, all within 2.5; the range
 * that the other rows of a class give holds four of five of that class, and of all. The table of the header is what
 * they give, rounded up. */
static void ranges(void **state)
{
    static published_error e[PUBLISHED_ERRORS];
    int count;
    (void)state;
    if (published_errors(e, &count, &error) != TRN_OK) fail_msg("%s", error.text);
    const published_tally all = published_count(e, count, TRN_EVIDENCE_COUNT, 1.5);
    print_message("%d rows: %d within 1.5 times, %d left out, %d in range, furthest %.2f\n", all.rows, all.near,
                  all.left_near, all.inside, all.furthest);
    assert_true(all.near >= 0.9 * all.rows && all.furthest <= 2.5 && all.inside >= 0.8 * all.rows);
    for (int c = 0; c < TRN_EVIDENCE_COUNT; c++) {
        const trn_evidence told = trn_evidence_of((trn_evidence_class)c);
        const published_tally t = published_count(e, count, (trn_evidence_class)c, 1.5);
        const double spread = published_spread(e, count, (trn_evidence_class)c, -1);
        if (t.rows != told.rows || t.inside < 0.8 * t.rows)
            fail_msg("%s: %d rows and not %d, %d in range", told.name, t.rows, told.rows, t.inside);
        if (!(spread <= told.spread && told.spread < 1.05 * spread))
            fail_msg("%s: rows give %.3f, the header says %.3f", told.name, spread, told.spread);
    }
    static const trn_evidence_class counted[] = { TRN_EVIDENCE_DENSE, TRN_EVIDENCE_MIXTURE, TRN_EVIDENCE_FIRST };
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++) {
        int of[2] = { 0, 0 };
        char where[80];
        for (int i = 0; i < count; i++)
            if (e[i].kind == counted[k]) of[published_jobs[e[i].row].system == TRN_TRN2_48XLARGE]++;
        snprintf(where, sizeof where, "%d of Trainium1, %d of Trainium2", of[0], of[1]);
        assert_string_equal(trn_evidence_of(counted[k]).where, where);
    }
    assert_string_equal(trn_evidence_of(TRN_EVIDENCE_COUNT).name, trn_evidence_of(TRN_EVIDENCE_OTHER).name);
}

/* A range is the expected time over and times the spread of its class; asked for, 1 leaves none, and the square of the
 * usual one squares all. What no row is about has the widest. */
static void spreads(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_JOBS; i += 7) {
        const published_job *row = &published_jobs[i];
        const trn_topology net = published_job_net(row);
        const double usual = trn_plan_assumptions_default(NULL).spread;
        for (int power = 0; power < 3; power++) {
            trn_plan_args a = published_job_ask(row, &net);
            trn_plan p = published_job_plan(row);
            a.assumptions.spread = pow(usual, power);
            assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
            const double spread = pow(trn_evidence_of(p.evidence).spread, power);
            assert_true(fabs(p.expected_high_s / p.expected_s / spread - 1) < 1e-12);
            assert_true(p.expected_low_s >= p.time_s && p.expected_low_s <= p.expected_s);
            assert_true(p.expected_ttft_low_s <= p.expected_ttft_s && p.expected_ttft_s <= p.expected_ttft_high_s);
        }
    }
    const trn_topology net = trn_topology_of(TRN_TRN3_GEN1_ULTRASERVER);
    trn_plan_args a = {
        .model = &published_llama3_70b, .net = &net, .job = TRN_JOB_DECODE, .batch = 64, .sequence = 4096
    };
    trn_plan p = { .tp = 16, .cp = 1, .ep = 1, .dp = 4, .pp = 1 };
    assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
    assert_int_equal(p.evidence, TRN_EVIDENCE_OTHER);
}

/* First tokens: prompts are padded to powers of two from 128 on, and to no more than the cache; so many together are
 * one pass; scores that pass HBM, the host and every expert's own operations take their time. */
static void firsts(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    static const int64_t same[][2] = { { 1, 128 }, { 100, 128 }, { 129, 256 }, { 1500, 2048 }, { 2049, 3000 } };
    trn_plan_args a = {
        .model = &published_llama3_8b, .net = &net, .job = TRN_JOB_DECODE, .batch = 16, .sequence = 3000
    };
    trn_plan p = { .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 }, q = p;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        a.prompt = same[i][0];
        assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
        a.prompt = same[i][1];
        assert_int_equal(trn_plan_evaluate(&a, &q), TRN_OK);
        assert_true(p.expected_ttft_s == q.expected_ttft_s && p.ttft_s < q.ttft_s + 1e-15);
    }
    a.prompt = 1500;
    assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
    a.assumptions.first_s = 1;
    assert_int_equal(trn_plan_evaluate(&a, &q), TRN_OK);
    const double host = trn_plan_assumptions_default(NULL).first_s;
    assert_true(fabs(q.expected_ttft_s - p.expected_ttft_s - (1 - host)) < 1e-9 && q.expected_s == p.expected_s);
    a.assumptions.first_s = 0;
    a.assumptions.score_passes = 32;
    assert_int_equal(trn_plan_evaluate(&a, &q), TRN_OK);
    const double scores = 32.0 * (32 / 16) * 2048 * 2048 * 4 * 32 / (2.9e12 * 0.8); /* heads, F32, passes, layers */
    assert_true(q.expected_ttft_s > p.expected_ttft_s + 0.7 * scores && q.expected_s == p.expected_s);
    assert_true(q.expected_ttft_s < p.expected_ttft_s + scores);
    a.assumptions.score_passes = 0;
    a.prompts = 8;
    assert_int_equal(trn_plan_evaluate(&a, &q), TRN_OK);
    assert_true(q.expected_ttft_s > 3 * p.expected_ttft_s && q.expected_ttft_s < 8 * p.expected_ttft_s);
    a.prompts = -1;
    a.error = &error;
    assert_int_equal(trn_plan_evaluate(&a, &q), TRN_EINVAL);
    assert_non_null(strstr(error.text, "prompts -1"));
}

/* 40 heads over 64 logical cores: refused in a sentence, or one head each, which costs what 64 heads do. */
static void padded(void **state)
{
    (void)state;
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *row = &published_jobs[i];
        const trn_topology net = published_job_net(row);
        trn_plan_args a = published_job_ask(row, &net);
        trn_model full = *row->model;
        trn_plan p = published_job_plan(row), whole = p;
        a.pad_heads = false;
        assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
        if (full.heads % row->tp == 0) {
            assert_true(p.legal);
            continue;
        }
        assert_true(!p.legal && p.reason == TRN_PLAN_HEADS && strstr(p.why, "unless more are added (pad_heads)"));
        p = planned(row);
        if (!full.head_dim) full.head_dim = full.hidden / full.heads;
        if (!full.kv_heads || full.kv_heads == full.heads) full.kv_heads = (full.heads / row->tp + 1) * row->tp;
        full.heads = (full.heads / row->tp + 1) * row->tp;
        a.model = &full;
        assert_int_equal(trn_plan_evaluate(&a, &whole), TRN_OK);
        assert_true(whole.legal && whole.time_s == p.time_s && whole.expected_s == p.expected_s);
        assert_true(whole.memory.total == p.memory.total);
    }
}

/* Floors of an hour each, less none: how many operations a pass has. Counted by hand, an operation of a layer each:
 * projections, attention, two beside, the block's products, routers and experts, and the head. */
static void operations(void **state)
{
    static const struct {
        const char *model;
        int64_t batch;
        double count;
    } row[] = {
        { "Llama-3-8B", 8, 32 * (2 + 1 + 2 + 2) + 1 }, /* q k v, o; gate and up, down */
        { "Llama-3-8B", 32, 32 * (2 + 1 + 2 + 2) + 1 },
        { "Qwen3-30B-A3B", 8, 48 * (2 + 1 + 2 + 3) + 1 },                     /* router, experts' gate and up, down */
        { "DeepSeek-V3", 1, 3 * (5 + 1 + 2 + 2) + 58 * (5 + 1 + 2 + 5) + 1 }, /* latent; shared experts, too */
        { "Llama-4-Maverick", 8, 24 * 7 + 24 * (2 + 1 + 2 + 5) + 1 },
        { "bert-base", 2, 12 * 7 + 1 }, /* no head, but the pooler's product */
    };
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        int found = 0;
        for (int i = 0; i < PUBLISHED_JOBS; i++) {
            const published_job *job = &published_jobs[i];
            if (strcmp(job->model->name, row[k].model) != 0 || job->batch != row[k].batch) continue;
            const trn_topology net = published_job_net(job);
            trn_plan_args a = published_job_ask(job, &net);
            trn_plan p = published_job_plan(job), none = p;
            a.assumptions.kernel_s = 3600;
            assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
            a.assumptions.kernel_s = -1;
            assert_int_equal(trn_plan_evaluate(&a, &none), TRN_OK);
            const double count = (p.expected_s - none.expected_s) / 3600;
            if (fabs(count - row[k].count) > 0.01) fail_msg("%s has %.3f operations", row[k].model, count);
            found++;
        }
        assert_true(found > 0);
    }
}

/* Experts that chance wakes: k of E by one token, nearly all by many, half of them where half are here; of a mixture's
 * first token each is a block of its own: gate and up, their function, down. */
static void awake(void **state)
{
    static const struct {
        double tokens;
        int64_t here;
        double count; /* 128 (1 - (1 - 8 / 128)^tokens) */
    } row[] = { { 1, 128, 8 }, { 8, 128, 51.6199 }, { 4, 64, 25.81 }, { 4096, 128, 128 }, { 0.5, 128, 4 } };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trni_plan_slice s = {
            .model = &published_qwen3_30b, .tokens = row[i].tokens, .routed = 8 * row[i].tokens, .experts = row[i].here
        };
        assert_true(fabs(trni_plan_awake(&s) - row[i].count) < 1e-3);
    }
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *job = &published_jobs[i];
        if (job->model != &published_qwen3_30b) continue;
        const trn_topology net = published_job_net(job);
        trn_plan_args a = published_job_ask(job, &net);
        trn_plan p = published_job_plan(job), none = p;
        a.assumptions.kernel_s = 3600;
        assert_int_equal(trn_plan_evaluate(&a, &p), TRN_OK);
        a.assumptions.kernel_s = -1;
        assert_int_equal(trn_plan_evaluate(&a, &none), TRN_OK);
        const double count = (p.expected_ttft_s - none.expected_ttft_s) / 3600;
        if (fabs(count - (48 * (2 + 1 + 2 + 1 + 128 * 3) + 1)) > 0.01) fail_msg("%.3f operations", count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),   cmocka_unit_test(ranges),     cmocka_unit_test(spreads), cmocka_unit_test(firsts),
        cmocka_unit_test(padded), cmocka_unit_test(operations), cmocka_unit_test(awake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
