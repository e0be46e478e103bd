/* test_plan_operations.c - a plan as operations: what they add up to is what the plan's own account has, part by part,
 * at ideal and at expected rates; their sizes by hand; which chips are one group.
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

enum { OPERATIONS = 200 };
static trn_plan_operation list[OPERATIONS];
static int64_t count;
static trn_topology net;
static trn_plan_args args;

static void near(double found, double expected, const char *what)
{
    if (fabs(found - expected) > 1e-9 * fabs(expected)) fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static trn_plan planned(const trn_model *m, trn_job job, trn_plan p)
{
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    args = question(m, &net, job, 16, 2048);
    args.no_sp = !p.sp;
    args.zero = p.zero;
    args.recompute = p.recompute ? p.recompute : TRN_RECOMPUTE_NONE;
    args.ignore_groups = true;
    if (trn_plan_evaluate(&args, &p)) fail_msg("%s", failure.text);
    if (!p.legal) fail_msg("%s", p.why);
    return p;
}

static void ask(const trn_plan *p, trn_plan_phase phase)
{
    if (trn_plan_operations(&args, p, phase, list, OPERATIONS, &count)) fail_msg("%s", failure.text);
    assert_true(count <= OPERATIONS);
}

/* ---- sums ---- */

typedef struct account {
    double work, tp, cp, ep, dp, pp, update;
} account;

static void add(account a[2], const trn_plan *p, trn_plan_phase phase, double times)
{
    ask(p, phase);
    for (int64_t i = 0; i < count; i++) {
        const trn_plan_operation *o = &list[i];
        for (int expected = 0; expected < 2; expected++) {
            account *to = &a[expected];
            double *part = !o->talks                         ? &to->work
                           : phase == TRN_PHASE_SEND         ? &to->pp
                           : phase >= TRN_PHASE_SYNC_FORWARD ? &to->dp
                           : o->axes == 1u << TRN_AXIS_TP    ? &to->tp
                           : o->axes == 1u << TRN_AXIS_CP    ? &to->cp
                                                             : &to->ep;
            if (phase == TRN_PHASE_UPDATE) part = &to->update;
            *part += times * (double)o->count * (expected ? o->expected_s : o->time_s);
        }
        assert_true(o->time_s >= 0 && o->expected_s >= o->time_s && o->bytes > 0 && o->count > 0 && o->name[0]);
        assert_true(!o->talks || o->axes > 0);
    }
}

static void same(const account *a, const trn_plan_time *t)
{
    near(a->work, t->products_s + t->reads_s + t->attention_s + t->elementwise_s, "work");
    near(a->tp, t->tp_s, "tp");
    near(a->cp, t->cp_s, "cp");
    near(a->ep, t->ep_s, "ep");
    near(a->dp, t->dp_s, "dp");
    near(a->pp, t->pp_s, "pp");
    near(a->update, t->update_s, "the optimizer");
}

/* All phases of one stage, with both ends of the model, as the plan counts its slowest. */
static void holds(const trn_model *m, trn_job job, trn_plan degrees)
{
    const trn_plan p = planned(m, job, degrees);
    account a[2];
    const double layers = ceil((double)m->layers / p.pp), dense = m->experts ? (double)m->dense_layers : 0;
    const double n = (double)p.microbatches;
    memset(a, 0, sizeof a);
    add(a, &p, TRN_PHASE_FORWARD, n * (layers - dense));
    add(a, &p, TRN_PHASE_BACKWARD, n * (layers - dense));
    if (dense > 0) add(a, &p, TRN_PHASE_DENSE_FORWARD, n * dense);
    if (dense > 0) add(a, &p, TRN_PHASE_DENSE_BACKWARD, n * dense);
    add(a, &p, TRN_PHASE_EMBEDDING, n);
    add(a, &p, TRN_PHASE_HEAD_FORWARD, n);
    add(a, &p, TRN_PHASE_HEAD_BACKWARD, job == TRN_JOB_TRAIN ? n : 0);
    add(a, &p, TRN_PHASE_SEND, p.pp > 1 ? n * (job == TRN_JOB_TRAIN ? 2 : 1) : 0);
    add(a, &p, TRN_PHASE_SYNC_FORWARD, n);
    add(a, &p, TRN_PHASE_SYNC_BACKWARD, n);
    add(a, &p, TRN_PHASE_SYNC_FIRST, 1);
    add(a, &p, TRN_PHASE_SYNC_LAST, 1);
    add(a, &p, TRN_PHASE_UPDATE, 1);
    same(&a[0], &p.time);
    same(&a[1], &p.expected);
}

static void sums(void **state)
{
    (void)state;
    holds(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 2, .ep = 1, .dp = 2, .pp = 1, .sp = true });
    holds(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 2, .pp = 2, .zero = TRN_ZERO_NONE });
    holds(&llama8, TRN_JOB_TRAIN,
          (trn_plan){ .tp = 2, .cp = 1, .ep = 1, .dp = 8, .pp = 1, .zero = TRN_ZERO_WEIGHTS, .sp = true });
    holds(&llama8, TRN_JOB_TRAIN,
          (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1, .zero = TRN_ZERO_GRADIENTS });
    holds(&llama8, TRN_JOB_TRAIN,
          (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1, .recompute = TRN_RECOMPUTE_FULL });
    holds(&llama8, TRN_JOB_PREFILL, (trn_plan){ .tp = 8, .cp = 1, .ep = 1, .dp = 2, .pp = 1, .sp = true });
    holds(&llama8, TRN_JOB_DECODE, (trn_plan){ .tp = 4, .cp = 2, .ep = 1, .dp = 2, .pp = 1 });
    holds(&qwen, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 4, .dp = 1, .pp = 1, .sp = true });
    holds(&deepseek, TRN_JOB_DECODE, (trn_plan){ .tp = 4, .cp = 1, .ep = 4, .dp = 1, .pp = 1 });
}

/* ---- sizes ---- */

static const trn_plan_operation *named(const char *name, int64_t from)
{
    for (int64_t i = from; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static void sizes(void **state)
{
    (void)state;
    const trn_plan p =
        planned(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 2, .pp = 2, .sp = true });
    const double tokens = 2048.0 * (double)p.microbatch, wide = 2 * 14336.0 / 4, hidden = 4096;
    ask(&p, TRN_PHASE_FORWARD);
    const trn_plan_operation *up = named("gate, up", 0), *sum = named("reduce_scatter", 0);
    near(up->flops, 2 * tokens * hidden * wide, "operations of a product");
    near(up->bytes, 2 * (tokens * hidden + hidden * wide + tokens * wide), "its bytes");
    near(sum->bytes, 2 * tokens * hidden, "a sum over tp");
    assert_true(sum->op == TRN_REDUCE_SCATTER && sum->axes == 1u << TRN_AXIS_TP && !sum->beside);
    near(named("attention", 0)->flops, 4 * tokens * 8 * 128 * 1025, "scores of the positions that are seen");
    ask(&p, TRN_PHASE_BACKWARD); /* the gradient of the weights: read and written in F32 */
    up = named("gate, up", 0) + 1;
    near(up->bytes, 2 * (tokens * hidden + tokens * wide) + 8 * hidden * wide, "bytes of a gradient");
    assert_true(named("all_gather", 0)->beside);
    near(named("attention", 0)->flops, 2.5 * 4 * tokens * 8 * 128 * 1025, "backward two and a half times");
    ask(&p, TRN_PHASE_SEND);
    assert_true(count == 1 && list[0].op == TRN_PERMUTE && list[0].beside);
    near(list[0].bytes, 2 * tokens * hidden / 4, "what a stage sends");
    ask(&p, TRN_PHASE_SYNC_LAST);
    assert_true(count == 1 && list[0].op == TRN_REDUCE_SCATTER && list[0].count > 1);
    trn_plan_operation few[2];
    int64_t all = 0;
    assert_int_equal(trn_plan_operations(&args, &p, TRN_PHASE_FORWARD, few, 2, &all), TRN_OK);
    ask(&p, TRN_PHASE_FORWARD);
    assert_true(all == count && memcmp(few, list, sizeof few) == 0);
}

/* ---- groups, and what is refused ---- */

static void groups(void **state)
{
    (void)state;
    const trn_plan p = planned(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 2, .pp = 2 });
    for (unsigned axes = 1; axes < 1u << TRN_AXIS_COUNT; axes++) {
        const int degree[] = { p.tp, p.cp, p.ep, p.dp, p.pp };
        int chips[2 * 16], size = 0, again = 0, seen = 0, expected = 1;
        for (int i = 0; i < TRN_AXIS_COUNT; i++) expected *= axes >> i & 1 ? degree[i] : 1;
        const int all = trn_plan_groups(&net, &p, axes, chips, &size);
        assert_true(size == expected && all * size == 16);
        assert_true(trn_plan_groups(&net, &p, axes, NULL, &again) == all && again == size);
        for (int i = 0; i < 16; i++) {
            seen |= 1 << chips[i];
            assert_true(i % size == 0 || chips[i] > chips[i - 1]);
        }
        assert_int_equal(seen, 0xffff);
    }
    const trn_plan wrong = { .tp = 3, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    int size = 0;
    assert_int_equal(trn_plan_groups(&net, &wrong, 1, NULL, &size), 0);
    assert_int_equal(trn_plan_groups(NULL, &p, 1, NULL, &size), 0);
}

static void refusals(void **state)
{
    (void)state;
    trn_plan p = planned(&llama8, TRN_JOB_DECODE, (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1 });
    int64_t n = 7;
    ask(&p, TRN_PHASE_BACKWARD);
    assert_int_equal(count, 0); /* decoding has none */
    ask(&p, TRN_PHASE_UPDATE);
    assert_int_equal(count, 0);
    assert_int_equal(trn_plan_operations(&args, NULL, TRN_PHASE_FORWARD, list, 9, &n), TRN_EINVAL);
    assert_int_equal(trn_plan_operations(&args, &p, TRN_PHASE_COUNT, list, 9, &n), TRN_EINVAL);
    assert_int_equal(trn_plan_operations(&args, &p, TRN_PHASE_FORWARD, NULL, 9, &n), TRN_EINVAL);
    trn_plan other = p;
    other.dp = 3;
    assert_int_equal(trn_plan_operations(&args, &other, TRN_PHASE_FORWARD, list, 9, &n), TRN_EINVAL);
    other = p;
    other.legal = false;
    assert_int_equal(trn_plan_operations(&args, &other, TRN_PHASE_FORWARD, list, 9, &n), TRN_EINVAL);
    args.ranks_per_chip = 4;
    assert_int_equal(trn_plan_operations(&args, &p, TRN_PHASE_FORWARD, list, 9, &n), TRN_EUNSUPPORTED);
    args.ranks_per_chip = 0;
    trn_model encoder = llama8;
    encoder.bidirectional = true;
    args.model = &encoder;
    args.job = TRN_JOB_PREFILL;
    assert_int_equal(trn_plan_operations(&args, &p, TRN_PHASE_FORWARD, list, 9, &n), TRN_EUNSUPPORTED);
    assert_int_equal(n, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums), cmocka_unit_test(sizes), cmocka_unit_test(groups),
                                        cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
