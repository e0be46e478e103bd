/* test_plan_usual.c - what a plan is when nothing is said: that of the vendor's stack; and what one may choose instead.
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
#include "twin/plan_cases.h"

enum { ROOM = 500 };
static trn_plan plan[ROOM];

static trn_plan_list search(const trn_plan_args *args)
{
    trn_plan_list list = { 0 };
    if (trn_plan_search(args, plan, ROOM, &list) != TRN_OK) fail_msg("%s", failure.text);
    return list;
}

static trn_plan evaluated(const trn_plan_args *args, trn_plan p)
{
    if (trn_plan_evaluate(args, &p) != TRN_OK) fail_msg("%s", failure.text);
    return p;
}

/* ZeRO-1 unless it is said; any: the better of both, plan by plan. */
static void zero(void **state)
{
    (void)state;
    static trn_plan usual[ROOM];
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_plan_args args = question(&llama70, &net, TRN_JOB_TRAIN, 256, 8192);
    int won[TRN_ZERO_COUNT] = { 0 };
    trn_plan_list list = search(&args);
    for (int64_t i = 0; i < list.legal; i++)
        assert_int_equal(plan[i].zero, plan[i].dp * plan[i].cp > 1 ? TRN_ZERO_OPTIMIZER : TRN_ZERO_NONE);
    memcpy(usual, plan, sizeof usual);
    const int64_t legal = list.legal;
    args.zero = TRN_ZERO_OPTIMIZER; /* the same, said aloud */
    assert_int_equal(search(&args).legal, legal);
    assert_memory_equal(plan, usual, (size_t)legal * sizeof *plan);
    args.zero = TRN_ZERO_ANY;
    assert_true(search(&args).legal >= legal);
    for (int64_t i = 0; i < legal; i++) {
        const trn_plan degrees = {
            .tp = usual[i].tp, .cp = usual[i].cp, .ep = 1, .dp = usual[i].dp, .pp = usual[i].pp, .order = usual[i].order
        };
        const trn_plan any = evaluated(&args, degrees);
        args.zero = TRN_ZERO_WEIGHTS;
        const trn_plan weights = evaluated(&args, degrees);
        args.zero = TRN_ZERO_ANY;
        assert_true(any.legal && any.time_s <= usual[i].time_s && (!weights.legal || any.time_s <= weights.time_s));
        assert_true(any.time_s >= fmin(usual[i].time_s, weights.legal ? weights.time_s : HUGE_VAL));
        won[any.zero]++;
    }
    assert_true(won[TRN_ZERO_OPTIMIZER] > 0 && won[TRN_ZERO_WEIGHTS] > 0);
    assert_int_equal(won[TRN_ZERO_ANY] + won[TRN_ZERO_AUTO] + won[TRN_ZERO_GRADIENTS], 0);
    assert_string_equal(trn_zero_name(TRN_ZERO_ANY), "any");
    args.zero = TRN_ZERO_COUNT;
    trn_plan_list none;
    assert_int_equal(trn_plan_search(&args, plan, ROOM, &none), TRN_EINVAL);
}

/* Copies of KV heads: each rank has one, whoever else has it, too. */
static void copies_of_kv_heads(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, 16, 8192);
    const trn_plan degrees = { .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 }, p = evaluated(&args, degrees);
    assert_true(p.legal);
    assert_true(fabs(p.memory.kv - 16.0 * 8192 * 80 * 2 * 128 * 2) < 1); /* one of eight heads on each of 16 chips */
    args.replicate_kv = true;                                            /* the old name: of no effect */
    const trn_plan old = evaluated(&args, degrees);
    assert_memory_equal(&old, &p, sizeof p);
    args.no_replicate_kv = true;
    assert_int_equal(evaluated(&args, degrees).reason, TRN_PLAN_KV_HEADS);
    args.replicate_kv = args.no_replicate_kv = false;
    trn_model odd = llama8; /* 12 heads by 16 are no copies */
    odd.heads = 48;
    odd.kv_heads = 12;
    odd.head_dim = 128;
    args.model = &odd;
    const trn_plan q = evaluated(&args, degrees);
    assert_int_equal(q.reason, TRN_PLAN_KV_HEADS);
    assert_string_equal(q.why, "12 KV heads do not divide by tp 16");
}

static void sequence_parallelism(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int job = 0; job < TRN_JOB_COUNT; job++)
        for (int no = 0; no < 2; no++) {
            trn_plan_args args = question(&llama8, &net, (trn_job)job, 64, 4096);
            args.no_sp = no;
            const trn_plan_list list = search(&args);
            for (int64_t i = 0; i < list.legal; i++)
                assert_int_equal(plan[i].sp, plan[i].tp > 1 && job != TRN_JOB_DECODE && !no);
        }
    trn_plan_args args = question(&llama8, &net, TRN_JOB_PREFILL, 16, 4095); /* an odd number of tokens: without */
    args.microbatch = 1;
    const trn_plan p = evaluated(&args, (trn_plan){ .tp = 8, .cp = 1, .ep = 1, .dp = 2, .pp = 1 });
    assert_true(p.legal && !p.sp);
}

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

/* Bytes of one parameter: weights, gradients, two moments, and the copy. */
static void precision(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    static const struct {
        trn_precision precision;
        double weights, gradients, optimizer;
    } row[] = { { TRN_PRECISION_AUTOCAST, 2, 4, 12 },
                { TRN_PRECISION_BF16, 2, 2, 4 },
                { TRN_PRECISION_FP32, 4, 4, 8 } };
    trn_model_size size = { 0 };
    assert_int_equal(trn_model_size_of(&llama8, &size, NULL), TRN_OK);
    for (int i = 0; i < TRN_PRECISION_COUNT; i++) {
        trn_plan_args args = question(&llama8, &net, TRN_JOB_TRAIN, 16, 2048);
        args.precision = row[i].precision;
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 16, .pp = 1 });
        near(p.memory.weights, row[i].weights * size.total, 1e-9, "weights");
        near(p.memory.gradients, row[i].gradients * size.total, 1e-9, "gradients");
        near(p.memory.optimizer, row[i].optimizer * size.total / 16, 1e-9, "optimizer");
    }
    const trn_plan_formats asked = { .weights = TRN_I8, .wire = TRN_F32 };
    const trn_plan_formats f = trn_plan_formats_default(&asked, TRN_PRECISION_AUTOCAST);
    assert_true(f.weights == TRN_I8 && f.activations == TRN_BF16 && f.gradients == TRN_F32 && f.optimizer == TRN_F32);
    assert_true(f.kv == TRN_BF16 && f.compute == TRN_BF16 && f.wire == TRN_F32);
    assert_string_equal(trn_precision_name(TRN_PRECISION_AUTOCAST), "autocast");
    assert_string_equal(trn_precision_name(TRN_PRECISION_COUNT), "unknown");
}

/* Weights of one byte that products do not take: HBM as for those that they take, the rate of BF16. */
static void converted_weights(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan degrees = { .tp = 16, .cp = 1, .ep = 1, .dp = 1, .pp = 1 };
    trn_plan_args args = question(&llama70, &net, TRN_JOB_DECODE, 16, 4096);
    const trn_plan bf16 = evaluated(&args, degrees);
    args.formats.weights = TRN_F8_E4M3; /* which products take beside BF16 */
    const trn_plan taken = evaluated(&args, degrees);
    args.formats.weights = TRN_I8;
    const trn_plan int8 = evaluated(&args, degrees);
    near(int8.memory.weights, bf16.memory.weights / 2, 1e-12, "bytes of int8");
    near(int8.time.reads_s, taken.time.reads_s, 0.02, "int8 from HBM");
    assert_true(int8.time.reads_s < 0.56 * bf16.time.reads_s);
    args.formats.weights = TRN_F4_E2M1;
    const trn_plan fp4 = evaluated(&args, degrees);
    near(fp4.memory.weights, bf16.memory.weights / 4, 1e-12, "bytes of FP4");
    assert_true(fp4.time.reads_s < int8.time.reads_s);
    args.formats.weights = TRN_I8;
    args.assumptions.convert_passes = 1; /* 2.0e12 elements a second on eight cores: slower than their bytes */
    assert_true(evaluated(&args, degrees).time.reads_s > 1.3 * int8.time.reads_s);
    args.assumptions.convert_passes = 0;
    args.job = TRN_JOB_PREFILL; /* TensorE sets the pace */
    const trn_plan slow = evaluated(&args, degrees);
    args.formats.weights = TRN_BF16;
    near(slow.time.products_s, evaluated(&args, degrees).time.products_s, 0.01, "products at the rate of BF16");
}

/* Of each list its first name, its last, and what is beside it. */
static void names(void **state)
{
    (void)state;
    assert_string_equal(trn_job_name(TRN_JOB_TRAIN), "train");
    assert_string_equal(trn_job_name(TRN_JOB_DECODE), "decode");
    assert_string_equal(trn_recompute_name(TRN_RECOMPUTE_AUTO), "auto");
    assert_string_equal(trn_recompute_name(TRN_RECOMPUTE_FULL), "full");
    assert_string_equal(trn_zero_name(TRN_ZERO_AUTO), "auto");
    assert_string_equal(trn_plan_axis_name(TRN_AXIS_TP), "tp");
    assert_string_equal(trn_plan_axis_name(TRN_AXIS_PP), "pp");
    assert_string_equal(trn_precision_name(TRN_PRECISION_FP32), "fp32");
    assert_string_equal(trn_plan_reason_name(TRN_PLAN_LEGAL), "legal");
    assert_string_equal(trn_plan_reason_name(TRN_PLAN_HBM), "HBM");
    assert_string_equal(trn_plan_part_name(TRN_PART_PRODUCTS), "products, TensorE");
    assert_string_equal(trn_plan_part_name(TRN_PART_LOOKUPS), "embedding lookups");
    for (int below = 0; below < 2; below++) {
        assert_string_equal(trn_job_name(below ? (trn_job)-1 : TRN_JOB_COUNT), "unknown");
        assert_string_equal(trn_recompute_name(below ? (trn_recompute)-1 : TRN_RECOMPUTE_COUNT), "unknown");
        assert_string_equal(trn_zero_name(below ? (trn_zero)-1 : TRN_ZERO_COUNT), "unknown");
        assert_string_equal(trn_plan_axis_name(below ? (trn_plan_axis)-1 : TRN_AXIS_COUNT), "unknown");
        assert_string_equal(trn_plan_reason_name(below ? (trn_plan_reason)-1 : TRN_PLAN_REASON_COUNT), "unknown");
        assert_string_equal(trn_plan_part_name(below ? (trn_plan_part)-1 : TRN_PART_COUNT), "unknown");
    }
    assert_int_equal(trn_job_from_name("decode"), TRN_JOB_DECODE);
    assert_int_equal(trn_job_from_name("idle"), TRN_JOB_COUNT);
    assert_int_equal(trn_job_from_name(NULL), TRN_JOB_COUNT);
    trn_spec_field field;
    int assumptions = 0;
    while (trn_plan_assumption_at(assumptions, &field)) assumptions++;
    assert_true(!trn_plan_assumption_at(-1, &field) && assumptions > 10);
    assert_true(trn_plan_assumption_at(0, &field) && field.value > 0 && field.known == TRN_ASSUMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(zero),
        cmocka_unit_test(copies_of_kv_heads),
        cmocka_unit_test(sequence_parallelism),
        cmocka_unit_test(precision),
        cmocka_unit_test(converted_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
