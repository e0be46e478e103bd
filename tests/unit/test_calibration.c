/* test_calibration.c - what is expected of collectives: the numbers, fits to measured times, files, published rows.
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

#include "published/collectives.h"
#include "trnmath/trn_calibration_fit.h"
#include "twin/cases.h"

static trn_error error;

static void near(double found, double expected, double relative, const char *what)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("%s: %.9g, expected %.9g", what, found, expected);
}

/* ---- fits of any model ---- */

typedef struct curve {
    const double *x;
    int count;
} curve;

/* Kinked: launch + the longer of two rates, as links and memory are. */
static trn_status kinked(void *user, const double *number, double *predicted)
{
    const curve *c = user;
    for (int i = 0; i < c->count; i++) predicted[i] = number[0] + fmax(c->x[i] / number[1], sqrt(c->x[i]) / number[2]);
    return TRN_OK;
}

static void fits(void **state)
{
    (void)state;
    uint64_t rng = 5;
    double x[24], measured[24];
    const double low[] = { 1e-3, 1e-3, 1e-3 }, high[] = { 1e3, 1e3, 1e3 };
    curve c = { x, 24 };
    int found = 0;
    for (int i = 0; i < 24; i++) x[i] = pow(2, i - 6);
    for (int round = 0; round < 50; round++) {
        double truth[3], number[3] = { 1, 1, 1 };
        for (int k = 0; k < 3; k++) truth[k] = pow(10, cases_below(&rng, 1000) / 2000.0 - 0.25);
        kinked(&c, truth, measured);
        const trn_fit_args args = { .model = kinked,
                                    .user = &c,
                                    .numbers = 3,
                                    .samples = 24,
                                    .measured = measured,
                                    .low = low,
                                    .high = high,
                                    .error = &error };
        assert_int_equal(trn_fit(&args, number), TRN_OK);
        double again[24], worst = 0;
        kinked(&c, number, again);
        for (int i = 0; i < 24; i++) worst = fmax(worst, fabs(log(again[i] / measured[i])));
        found += worst < 0.02;
    }
    print_message("%d of 50 valleys\n", found);
    assert_true(found >= 48);
}

/* A number that no sample depends on stays; one that is left out does not count; bounds hold. */
static void fits_keep_what_they_must(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8 };
    double measured[4], number[] = { 0.5, 1, 7 };
    const double low[] = { 1e-3, 0.9, 1e-3 }, high[] = { 1e3, 1e3, 1e3 }, truth[] = { 2, 0.1, 1e3 };
    curve c = { x, 4 };
    kinked(&c, truth, measured);
    trn_fit_args args = { .model = kinked,
                          .user = &c,
                          .numbers = 2,
                          .samples = 4,
                          .measured = measured,
                          .low = low,
                          .high = high,
                          .error = &error };
    args.numbers = 3;
    measured[3] *= 100;
    args.leave_out = 4;
    assert_int_equal(trn_fit(&args, number), TRN_OK);
    assert_true(number[1] >= 0.9 && number[1] <= 0.9 * (1 + 1e-9)); /* truth is below its bound */
    const double before[] = { number[0], number[1], number[2] };
    measured[1] = -1;
    assert_int_equal(trn_fit(&args, number), TRN_EINVAL);
    assert_string_equal(error.text, "sample 1: measured -1, weight 1");
    assert_memory_equal(before, number, sizeof before);
    args.numbers = 17;
    assert_int_equal(trn_fit(&args, number), TRN_EINVAL);
    args.model = NULL;
    assert_int_equal(trn_fit(&args, number), TRN_EINVAL);
    assert_int_equal(trn_fit(NULL, number), TRN_EINVAL);
}

/* ---- fits of calibrations: synthetic times give back the numbers that made them ---- */

enum { SIZES = 11, SAMPLES = 8 * SIZES };

/* Four operations over all chips and over four, 1 KiB to 1 GiB, with `truth`. */
static void measure(const trn_topology *net, const trn_calibration *truth, trn_calibration_sample *sample)
{
    static const int first[] = { 0, 1, 2, 3 };
    for (int i = 0; i < SAMPLES; i++) {
        trn_collective_args *a = &sample[i].ask;
        trn_cost cost;
        memset(&sample[i], 0, sizeof sample[i]);
        a->net = net;
        a->op = (trn_collective)(i / SIZES % 4);
        a->bytes = (int64_t)1024 << 2 * (i % SIZES);
        a->ranks_per_chip = net->ranks_per_chip;
        a->wire = TRN_F32;
        a->error = &error;
        if (i >= SAMPLES / 2) a->chips = first, a->count = 4;
        a->calibration = truth;
        assert_int_equal(trn_collective_cost(a, &cost), TRN_OK);
        a->calibration = NULL;
        sample[i].measured_s = 1e-8 * round(1e8 * cost.expected_s); /* as nccom-test prints them */
    }
}

static void round_trip(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        double launch_s, step_s, torus, hbm;
    } truth[] = { { TRN_TRN2_48XLARGE, 10e-6, 0.9e-6, 0.46, 0.29 },
                  { TRN_TRN1_32XLARGE, 2e-6, 0.92e-6, 0.78, 0.27 },
                  { TRN_TRN2_48XLARGE, 23e-6, 1.6e-6, 0.33, 0.26 } };
    static trn_calibration_sample sample[SAMPLES];
    for (size_t t = 0; t < sizeof truth / sizeof truth[0]; t++) {
        const trn_topology net = trn_topology_of(truth[t].system);
        trn_calibration made = trn_calibration_default(), found;
        made.launch_s = truth[t].launch_s;
        made.step_s = truth[t].step_s;
        made.torus = truth[t].torus;
        made.hbm = truth[t].hbm;
        measure(&net, &made, sample);
        const trn_calibration_fit_args args = { .sample = sample, .samples = SAMPLES, .error = &error };
        assert_int_equal(trn_calibration_fit(&args, &found), TRN_OK);
        near(found.launch_s, made.launch_s, 0.02, "launch_s");
        near(found.step_s, made.step_s, 0.02, "step_s");
        near(found.torus, made.torus, 0.02, "torus");
        near(found.hbm, made.hbm, 0.02, "hbm");
        near(found.efa, made.efa, 1e-9, "efa, which no sample sees");
    }
}

static void fit_refusals(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_calibration_sample one = { .ask = { .net = &net, .op = TRN_ALL_REDUCE, .bytes = 1024, .ranks_per_chip = 4 },
                                   .measured_s = 1e-5 };
    trn_calibration_fit_args args = { .sample = &one, .samples = 1, .fields = "rdh", .error = &error };
    trn_calibration found = { .rdh = 77 };
    assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
    assert_string_equal(error.text, "fields \"rdh\": none of them can be fitted");
    args.fields = "launch_s";
    static const struct {
        double measured_s;
        const char *is;
    } absurd[] = {
        { 0, "0" }, { -1e-5, "-1e-05" }, { 1e-320, "9.99989e-321" }, { 9e-13, "9e-13" }, { 1.1e4, "11000" }
    };
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        char why[100];
        snprintf(why, sizeof why, "sample 0: measured_s is %s, expected 1e-12 to 10000", absurd[i].is);
        one.measured_s = absurd[i].measured_s;
        assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
        assert_string_equal(error.text, why);
    }
    for (int i = 0; i < 2; i++) {
        one.measured_s = i ? (double)INFINITY : (double)NAN;
        assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
    }
    trn_calibration_sample two[2] = { one, one };
    two[0].measured_s = 1e4;
    two[1].measured_s = 1.1e4;
    args.sample = two;
    args.samples = 2;
    assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
    assert_string_equal(error.text, "sample 1: measured_s is 11000, expected 1e-12 to 10000");
    args.sample = &one;
    args.samples = 1;
    one.measured_s = 1e-5;
    one.ask.bytes = -1;
    assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
    assert_true(found.rdh > 76);
    one.ask.bytes = 1024; /* one sample is enough, and the ends of what a time may be are times */
    for (int i = 0; i < 2; i++) {
        one.measured_s = i ? 1e4 : 1e-12;
        assert_int_equal(trn_calibration_fit(&args, &found), TRN_OK);
    }
    found.rdh = 77;
    args.samples = 0;
    assert_int_equal(trn_calibration_fit(&args, &found), TRN_EINVAL);
    assert_true(found.rdh > 76);
}

/* ---- files ---- */

typedef struct text {
    char at[4096];
    size_t size;
} text;

static void keep(void *user, const char *more, size_t bytes)
{
    text *t = user;
    assert_true(t->size + bytes < sizeof t->at);
    memcpy(t->at + t->size, more, bytes);
    t->size += bytes;
}

static void files(void **state)
{
    (void)state;
    uint64_t rng = 9;
    for (int round = 0; round < 200; round++) {
        double value[sizeof(trn_calibration) / sizeof(double)]; /* a struct of doubles */
        trn_calibration c, again;
        text t = { .size = 0 };
        for (size_t i = 0; i < sizeof value / sizeof value[0]; i++)
            value[i] = 1e-6 + (double)(cases_next(&rng) >> 11) * 0x1p-54 / (cases_one_in(&rng, 2) ? 1 : 1e6);
        memcpy(&c, value, sizeof c);
        assert_int_equal(trn_calibration_save(&c, keep, &t, &error), TRN_OK);
        assert_int_equal(trn_calibration_load(t.at, t.size, &again, &error), TRN_OK);
        assert_memory_equal(&c, &again, sizeof c);
    }
    static const struct {
        const char *text, *why;
    } bad[] = { { "launch = 1", "line 1: \"launch\" is no field of a calibration" },
                { "\nhbm = 1.5", "line 2: hbm = 1.5: expected 0, or 1e-06 to 1" },
                { "hbm = 0.5\nhbm = 0.5", "line 2: hbm is given twice" },
                { "hbm = -0.5", "line 1: hbm = -0.5: expected 0, or 1e-06 to 1" },
                { "launch_s = 1e-320", "line 1: launch_s = 1e-320: expected 0, or 1e-15 to 10000" },
                { "step_s = inf", "line 1: step_s = inf: expected 0, or 1e-15 to 10000" },
                { "rdh = 4e6", "line 1: rdh = 4e6: expected 0, or 1e-06 to 1e+06" },
                { "plan.kernel_s = fast", "line 1: plan.kernel_s: expected a number, 0 or more" },
                { "plan. = 1", "line 1: plan.: expected a number, 0 or more" },
                { "hbm", "line 1: expected field = number" },
                { "= 5", "line 1: \"\" is no field of a calibration" },
                { "release = oldest", "line 1: release = oldest: expected newer or older" },
                { "hbm = 1\nrelease = older", "line 2: release stands before all fields, and once" } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        trn_calibration c = { .rdh = 77 };
        assert_int_equal(trn_calibration_load(bad[i].text, strlen(bad[i].text), &c, &error), TRN_EINVAL);
        assert_string_equal(error.text, bad[i].why);
        assert_true(c.rdh > 76);
    }
    const trn_calibration old = trn_calibration_of_release(TRN_RELEASE_OLDER);
    trn_calibration c;
    assert_int_equal(trn_calibration_load("release = older # 2023\r\n", 24, &c, &error), TRN_OK);
    assert_memory_equal(&c, &old, sizeof c);
    const char plan[] = "plan.kernel_s = 12e-6\nrelease = older\nplan.hbm_share = 0.7\n";
    assert_int_equal(trn_calibration_load(plan, strlen(plan), &c, &error), TRN_OK);
    assert_memory_equal(&c, &old, sizeof c);
}

/* ---- what was published ---- */

/* Expected within 1.5 times of every row from 1 MiB that does not contradict its own page, but one, and within 2.5
 * of the smaller ones; never below the ideal time, nor that below the bound. */
static void published(void **state)
{
    (void)state;
    int misses = 0;
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) {
        const published_collective *row = &published_collectives[i];
        const trn_topology net = published_net(row);
        const trn_calibration c = trn_calibration_of_release(row->release);
        int chip[PUBLISHED_CHIPS];
        trn_collective_args ask = published_ask(row, &net, chip);
        trn_cost cost;
        ask.calibration = &c;
        ask.error = &error;
        assert_int_equal(trn_collective_cost(&ask, &cost), TRN_OK);
        assert_true(cost.lower_bound_s <= cost.time_s * (1 + 1e-12) && cost.time_s <= cost.expected_low_s);
        assert_true(cost.expected_low_s <= cost.expected_s && cost.expected_s <= cost.expected_high_s);
        if (row->outside) continue;
        const double ratio = 1e6 * cost.expected_s / row->us, most = row->bytes >= 1 << 20 ? 1.5 : 2.5;
        if (row->op == TRN_PERMUTE) { /* pairs of cores copy at 37.5 GB/s: half of what sums reach */
            assert_true(ratio > 0.5 && ratio < 0.66);
            misses++;
        } else if (!(ratio <= most && ratio >= 1 / most))
            fail_msg("%s, %lld bytes: %.4g us published, %.4g expected", row->source, (long long)row->bytes, row->us,
                     1e6 * cost.expected_s);
    }
    assert_int_equal(misses, 1);
}

/* Zero is no effect, custom networks have no runtime, and uncalibrated leaves the ideal time. */
static void no_effect(void **state)
{
    (void)state;
    const trn_topology trn2 = trn_topology_of(TRN_TRN2_48XLARGE), ring = trn_topology_ring(8, 100e9, 1e-6);
    const trn_calibration none = { .rdh = 1.4, .mesh = 1.78125, .memory = 0.7 };
    trn_collective_args a = { .net = &trn2, .op = TRN_ALL_REDUCE, .bytes = 1 << 20, .ranks_per_chip = 4 };
    trn_cost with, without;
    assert_int_equal(trn_collective_cost(&a, &with), TRN_OK);
    assert_true(with.expected_s > 1.2 * with.time_s && with.launch_s > 0);
    a.calibration = &none;
    a.algorithm = with.algorithm;
    assert_int_equal(trn_collective_cost(&a, &without), TRN_OK);
    near(without.time_s, with.time_s, 0, "the ideal time");
    assert_true(without.launch_s <= 0 && without.expected_high_s <= without.expected_s);
    a = (trn_collective_args){ .net = &ring, .op = TRN_ALL_REDUCE, .bytes = 1 << 20 };
    assert_int_equal(trn_collective_cost(&a, &with), TRN_OK);
    near(with.expected_s, with.time_s, 0, "a custom network");
    a = (trn_collective_args){
        .net = &trn2, .op = TRN_ALL_REDUCE, .bytes = 1 << 20, .ranks_per_chip = 4, .uncalibrated = true
    };
    assert_int_equal(trn_collective_cost(&a, &with), TRN_OK);
    assert_true(with.launch_s <= 0 && with.steps > 0);
}

static void releases(void **state)
{
    (void)state;
    for (int i = 0; i < TRN_RELEASE_COUNT; i++)
        assert_int_equal(trn_release_from_name(trn_release_name((trn_release)i)), i);
    assert_int_equal(trn_release_from_name("newest"), TRN_RELEASE_COUNT);
    assert_int_equal(trn_release_from_name(NULL), TRN_RELEASE_COUNT);
    assert_string_equal(trn_release_name(TRN_RELEASE_COUNT), "unknown");
    const trn_calibration newer = trn_calibration_default(), older = trn_calibration_of_release(TRN_RELEASE_OLDER);
    assert_true(older.launch_s > 10 * newer.launch_s && older.instance_s > 9 * newer.instance_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits),       cmocka_unit_test(fits_keep_what_they_must),
        cmocka_unit_test(round_trip), cmocka_unit_test(fit_refusals),
        cmocka_unit_test(files),      cmocka_unit_test(published),
        cmocka_unit_test(no_effect),  cmocka_unit_test(releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
