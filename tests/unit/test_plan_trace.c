/* test_plan_trace.c - one layer of a plan as a timeline: which work follows which, and what all of it adds up to.
 * SPDX-License-Identifier: MIT
 *
 * The order is that of the model's code, written out here; what a lane adds up to is what the plan's own sums have for
 * one layer, where those come from another room (plan/plan_time.h).
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

enum { EVENTS = 200 };
static trn_trace_event event[EVENTS];
static trn_trace trace;
static trn_plan_args args;

/* A plan of these degrees, with sp and what is done again as they have it. */
static trn_plan drawn(const trn_model *m, trn_job job, trn_plan p)
{
    static trn_topology net;
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    args = question(m, &net, job, 16, 2048);
    args.no_sp = !p.sp;
    args.recompute = p.recompute ? p.recompute : TRN_RECOMPUTE_NONE;
    args.ignore_groups = true;
    args.assumptions.contention = -1; /* none: each kind of work takes what it takes alone */
    if (trn_plan_evaluate(&args, &p)) fail_msg("%s", failure.text);
    assert_true(p.legal);
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = EVENTS;
    if (trn_plan_trace_layer(&args, &p, &trace)) fail_msg("%s", failure.text);
    return p;
}

/* "lane name" of each event, one after the other, up to the null. */
static void follows(const char *const *expected)
{
    int64_t i = 0;
    for (; expected[i]; i++) {
        char text[96];
        if (i >= trace.count) fail_msg("it ends before '%s'", expected[i]);
        snprintf(text, sizeof text, "%s: %s", trace.track[event[i].track], event[i].name);
        assert_string_equal(text, expected[i]);
    }
    assert_int_equal(trace.count, i);
}

static double lane(const char *name)
{
    double sum = 0;
    for (int64_t i = 0; i < trace.count; i++)
        if (!strcmp(trace.track[event[i].track], name)) sum += event[i].duration_s;
    return sum;
}

static void near(double found, double expected, const char *what)
{
    if (fabs(found - expected) > 1e-9 * fabs(expected)) fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

/* Everything begins when the one before it ends, but what lies beside. */
static void nothing_between(void)
{
    double now_s = 0;
    for (int64_t i = 0; i < trace.count; i++) {
        if (strstr(event[i].text, "beside the other work")) continue;
        if (fabs(event[i].start_s - now_s) > 1e-12)
            fail_msg("%s begins at %g, not %g", event[i].name, event[i].start_s, now_s);
        now_s = event[i].start_s + event[i].duration_s;
    }
}

/* ---- the order ---- */

static void a_dense_layer(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "elementwise: norms, residuals",
        "products: q, k, v",
        "cp: keys and values",
        "attention: attention",
        "products: o",
        "tp: all_reduce",
        "elementwise: norms, residuals",
        "products: gate, up",
        "products: down",
        "tp: all_reduce", /* and back, each product for its input and for its weights: */
        "products: down",
        "products: down",
        "products: gate, up",
        "products: gate, up",
        "tp: all_reduce",
        "elementwise: norms, residuals",
        "products: o",
        "products: o",
        "cp: keys, values and gradients",
        "attention: attention",
        "products: q, k, v",
        "products: q, k, v",
        "tp: all_reduce",
        "elementwise: norms, residuals",
        NULL,
    };
    const trn_plan p = drawn(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 2, .ep = 1, .dp = 2, .pp = 1 });
    follows(expected);
    nothing_between();
    const double layers = 32.0 * (double)p.microbatches;
    near(layers * lane("attention"), p.time.attention_s, "attention");
    near(layers * lane("elementwise"), p.time.elementwise_s, "elementwise work");
    near(layers * lane("cp"), p.time.cp_s, "cp");
}

/* Forward alone, and the sums in two pieces. */
static void a_prompt(void **state)
{
    (void)state;
    static const char *const expected[] = { "elementwise: norms, residuals",
                                            "products: q, k, v",
                                            "attention: attention",
                                            "products: o",
                                            "tp: reduce_scatter",
                                            "tp: all_gather",
                                            "elementwise: norms, residuals",
                                            "products: gate, up",
                                            "products: down",
                                            "tp: reduce_scatter",
                                            "tp: all_gather",
                                            NULL };
    const trn_plan p =
        drawn(&llama8, TRN_JOB_PREFILL, (trn_plan){ .tp = 8, .cp = 1, .ep = 1, .dp = 2, .pp = 1, .sp = true });
    follows(expected);
    nothing_between();
    near(32 * lane("attention") * (double)p.microbatches, p.time.attention_s, "attention");
    near(32 * lane("elementwise") * (double)p.microbatches, p.time.elementwise_s, "elementwise work");
    const char *const text[] = { "1 x [16384, 4096] x [4096, 768]", "1 x [16384, 512] x [512, 4096]",
                                 "1 x [16384, 4096] x [4096, 3584]", "1 x [16384, 1792] x [1792, 4096]" };
    for (int64_t i = 0, k = 0; i < trace.count; i++)
        if (!strcmp(trace.track[event[i].track], "products")) /* 8 sequences of 2048 tokens, an eighth of each matrix */
            assert_memory_equal(event[i].text, text[k], strlen(text[k])), k++;
}

/* A layer with experts, whose tokens travel there and back; a latent for keys and values. */
static void a_layer_of_experts(void **state)
{
    (void)state;
    static const char *const expected[] = { "elementwise: norms, residuals",
                                            "products: q down",
                                            "products: q up",
                                            "products: kv down",
                                            "products: kv up",
                                            "attention: attention",
                                            "products: o",
                                            "tp: all_reduce",
                                            "elementwise: norms, residuals",
                                            "products: router",
                                            "products: shared gate, up",
                                            "products: shared down",
                                            "ep: all_to_all",
                                            "tp: all_gather",
                                            "products: expert gate, up",
                                            "products: expert down",
                                            "tp: reduce_scatter",
                                            "ep: all_to_all",
                                            "tp: all_gather",
                                            "tp: all_reduce", /* and back: */
                                            "ep: all_to_all",
                                            "tp: all_gather",
                                            "products: expert down",
                                            "products: expert down",
                                            "products: expert gate, up",
                                            "products: expert gate, up",
                                            "tp: reduce_scatter",
                                            "ep: all_to_all",
                                            "tp: all_gather",
                                            "products: shared down",
                                            "products: shared down",
                                            "products: shared gate, up",
                                            "products: shared gate, up",
                                            "products: router",
                                            "products: router",
                                            "tp: all_reduce",
                                            "elementwise: norms, residuals",
                                            "products: o",
                                            "products: o",
                                            "attention: attention",
                                            "products: kv up",
                                            "products: kv up",
                                            "products: kv down",
                                            "products: kv down",
                                            "products: q up",
                                            "products: q up",
                                            "products: q down",
                                            "products: q down",
                                            "tp: all_reduce",
                                            "elementwise: norms, residuals",
                                            NULL };
    trn_model m = deepseek;
    m.layers = 6; /* 3 of which have experts */
    m.experts = 16;
    const trn_plan p = drawn(&m, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 4, .dp = 1, .pp = 1 });
    nothing_between();
    follows(expected);
    near(3.0 * (double)p.microbatches * lane("ep"), p.time.ep_s, "experts' tokens");
    /* Four experts on a chip; of 4 x 2048 tokens of each of four chips, 8 of 16 experts a token: 16384 for each. */
    for (int64_t k = 0, seen = 0; k < trace.count && !seen; k++)
        if (!strcmp(event[k].name, "expert gate, up")) {
            assert_memory_equal(event[k].text, "4 x [16384, 7168] x [7168, 1024]", 32);
            seen = 1;
        }
}

/* Sequences are cut: what is gathered for the weights' gradients lies beside, and attention is done again. */
static void cut_sequences(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "elementwise: norms, residuals",
        "products: q, k, v",
        "attention: attention",
        "products: o",
        "tp: reduce_scatter",
        "tp: all_gather",
        "elementwise: norms, residuals",
        "products: gate, up",
        "products: down",
        "tp: reduce_scatter",
        "tp: all_gather", /* again: */
        "elementwise: norms, residuals",
        "attention: attention",
        "elementwise: norms, residuals", /* and back: */
        "tp, beside: all_gather",
        "products: down",
        "products: down",
        "products: gate, up",
        "products: gate, up",
        "tp: reduce_scatter",
        "tp: all_gather",
        "elementwise: norms, residuals",
        "products: o",
        "products: o",
        "attention: attention",
        "tp, beside: all_gather",
        "products: q, k, v",
        "products: q, k, v",
        "tp: reduce_scatter",
        "tp: all_gather",
        "elementwise: norms, residuals",
        NULL,
    };
    const trn_plan degrees = {
        .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1, .sp = true, .recompute = TRN_RECOMPUTE_SELECTIVE
    };
    drawn(&llama8, TRN_JOB_TRAIN, degrees);
    follows(expected);
    nothing_between();
    for (int64_t i = 0; i < trace.count; i++)
        assert_int_equal(!strncmp(event[i].text, "again: ", 7), i >= 11 && i < 14);
    assert_string_equal(event[12].text, "again: scores stay in SBUF");
    assert_true(event[14].start_s >= event[13].start_s + event[13].duration_s); /* beside down, gate and up */
    assert_true(event[14].start_s <= event[15].start_s && event[25].start_s <= event[26].start_s);
}

/* A lane has what two layers more add to its part of the plan. */
static void two_layers_more(trn_model m, trn_plan degrees)
{
    trn_model longer = m;
    longer.layers += 2;
    const trn_plan two = drawn(&m, TRN_JOB_TRAIN, degrees), four = drawn(&longer, TRN_JOB_TRAIN, degrees);
    const trn_plan_time *a = &two.time, *b = &four.time;
    const double times = 2.0 * (double)four.microbatches;
    near(times * lane("products"), b->products_s + b->reads_s - a->products_s - a->reads_s, "products");
    near(times * lane("attention"), b->attention_s - a->attention_s, "attention");
    near(times * lane("elementwise"), b->elementwise_s - a->elementwise_s, "elementwise work");
    near(times * (lane("tp") + lane("tp, beside")), b->tp_s - a->tp_s, "tp");
    near(times * lane("ep"), b->ep_s - a->ep_s, "ep");
    near(times * lane("cp"), b->cp_s - a->cp_s, "cp");
}

static void all_of_a_layer(void **state)
{
    (void)state;
    trn_model dense = llama8, shared = deepseek, experts = qwen, narrow = qwen;
    dense.layers = experts.layers = narrow.layers = 2;
    shared.layers = 5; /* 2 of which have experts */
    shared.experts = narrow.experts = 16;
    for (int sp = 0; sp < 2; sp++)
        for (int kind = TRN_RECOMPUTE_NONE; kind <= TRN_RECOMPUTE_FULL; kind++) {
            trn_plan p = { .tp = 4, .cp = 2, .ep = 1, .dp = 2, .pp = 1, .sp = sp, .recompute = (trn_recompute)kind };
            two_layers_more(dense, p);
            two_layers_more(narrow, p); /* experts of all kinds on each chip */
            p.ep = 2;
            p.dp = 1;
            two_layers_more(experts, p);
            two_layers_more(shared, p);
        }
}

/* ---- a step: one lane for each stage ---- */

enum { STAGES = 4, MOST = 9 };

typedef struct block {
    bool backward;
    int number;
    double start_s, end_s;
} block;

/* What a stage does, one after the other: as many forward as there are stages behind it, and one; then in turn. */
static int order(int stage, int count, bool train, block *b)
{
    int ahead = STAGES - stage < count ? STAGES - stage : count, forward = 0, backward = 0, n = 0;
    if (!train) ahead = count;
    while (forward < ahead) b[n++] = (block){ .number = forward++ };
    while (train && backward < count) {
        b[n++] = (block){ .backward = true, .number = backward++ };
        if (forward < count) b[n++] = (block){ .number = forward++ };
    }
    return n;
}

static const block *block_of(const block *b, int blocks, bool backward, int number)
{
    for (int i = 0; i < blocks; i++)
        if (b[i].backward == backward && b[i].number == number) return &b[i];
    return NULL;
}

/* When each block can begin, looked at again and again until nothing moves. */
static void stages_in_turn(block b[STAGES][2 * MOST], int blocks, double forward_s, double backward_s)
{
    for (int again = 0; again < STAGES * blocks; again++)
        for (int s = 0; s < STAGES; s++)
            for (int i = 0; i < blocks; i++) {
                block *x = &b[s][i];
                const int other = x->backward ? s + 1 : s - 1;
                const block *after = other == STAGES ? block_of(b[s], blocks, false, x->number)
                                     : other >= 0    ? block_of(b[other], blocks, x->backward, x->number)
                                                     : NULL;
                x->start_s = fmax(i ? b[s][i - 1].end_s : 0, after ? after->end_s : 0);
                x->end_s = x->start_s + (x->backward ? backward_s : forward_s);
            }
}

static void a_pipeline(void **state)
{
    (void)state;
    static const int64_t batch[] = { 8, 24, 4 * MOST }; /* of four replicas: 2, 6 and 9 microbatches */
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int round = 0; round < 6; round++) {
        block b[STAGES][2 * MOST];
        const bool train = round < 3;
        args = question(&llama8, &net, train ? TRN_JOB_TRAIN : TRN_JOB_PREFILL, batch[round % 3], 2048);
        args.microbatch = 1;
        trn_plan p = { .tp = 1, .cp = 1, .ep = 1, .dp = 4, .pp = STAGES };
        if (trn_plan_evaluate(&args, &p) || !p.legal) fail_msg("%s%s", failure.text, p.why);
        const int count = (int)p.microbatches, blocks = count * (train ? 2 : 1);
        assert_int_equal(4 * count, batch[round % 3]);
        for (int s = 0; s < STAGES; s++) assert_int_equal(order(s, count, train, b[s]), blocks);
        stages_in_turn(b, blocks, p.time.forward_s, p.time.backward_s);
        memset(&trace, 0, sizeof trace);
        trace.event = event;
        trace.capacity = EVENTS;
        assert_int_equal(trn_plan_trace_step(&args, &p, &trace), TRN_OK);
        int at[STAGES] = { 0 };
        for (int64_t i = 0; i < trace.count; i++) {
            char text[96];
            const int s = event[i].track;
            if (s >= STAGES) continue;
            assert_true(at[s] < blocks);
            const block *x = &b[s][at[s]++];
            snprintf(text, sizeof text, "microbatch %d of %d", x->number + 1, count);
            assert_string_equal(event[i].text, text);
            assert_string_equal(event[i].name, x->backward ? "backward" : "forward");
            if (fabs(event[i].start_s - x->start_s) > 1e-9 * p.time_s)
                fail_msg("stage %d: %s begins at %g, not %g", s, text, event[i].start_s, x->start_s);
            near(event[i].duration_s, x->end_s - x->start_s, "a block");
        }
        for (int s = 0; s < STAGES; s++) assert_int_equal(at[s], blocks);
    }
}

/* What goes wrong while times are asked for is said. */
static void no_times(void **state)
{
    (void)state;
    trn_calibration absurd = trn_calibration_default();
    trn_plan p = drawn(&llama8, TRN_JOB_TRAIN, (trn_plan){ .tp = 4, .cp = 1, .ep = 1, .dp = 4, .pp = 1 });
    absurd.hbm = 2;
    args.calibration = &absurd;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = EVENTS;
    assert_int_equal(trn_plan_trace_layer(&args, &p, &trace), TRN_EINVAL);
    assert_non_null(strstr(failure.text, "hbm"));
    assert_int_equal(trn_plan_evaluate(&args, &p), TRN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_layer), cmocka_unit_test(a_prompt),       cmocka_unit_test(a_layer_of_experts),
        cmocka_unit_test(cut_sequences), cmocka_unit_test(all_of_a_layer), cmocka_unit_test(a_pipeline),
        cmocka_unit_test(no_times),
    };
    return cmocka_run_group_tests_name("plan_trace", tests, NULL, NULL);
}
