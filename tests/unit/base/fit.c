/* base/fit.c - the parts of a fit: equations are solved, and each number walks to where the sum is least.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: a fit as a whole finds its way by one part where another one fails (test_calibration.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "trnmath/trn_calibration_fit.h"
#include "twin/cases.h"
#include "unit/base/groups.h"

/* Of any size, up to the largest; rows behind the last one stay as they are. */
static void equations_are_solved(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 400; i++) {
        const int n = 1 + i % TRN_FIT_NUMBERS;
        double m[TRN_FIT_NUMBERS + 1][TRN_FIT_NUMBERS + 1], kept[TRN_FIT_NUMBERS + 1][TRN_FIT_NUMBERS + 1];
        double x[TRN_FIT_NUMBERS];
        for (int r = 0; r <= TRN_FIT_NUMBERS; r++)
            for (int c = 0; c <= TRN_FIT_NUMBERS; c++)
                m[r][c] = cases_below(&seed, 2001) / 1000.0 - 1 + (i % 3 == 0 && r == c ? 0 : r == n - 1 - c ? 4 : 0);
        if (i % 3 == 0) m[0][0] = n > 1 ? 0 : 1; /* without another pivot there is no way */
        memcpy(kept, m, sizeof m);
        assert_true(trni_fit_solve(m, n, x));
        for (int r = 0; r < n; r++) {
            double sum = 0;
            for (int c = 0; c < n; c++) sum += kept[r][c] * x[c];
            if (!(fabs(sum - kept[r][n]) < 1e-8)) fail_msg("case %d, row %d of %d: %g", i, r, n, sum - kept[r][n]);
        }
        for (int r = n; r <= TRN_FIT_NUMBERS; r++) assert_memory_equal(m[r], kept[r], sizeof m[r]);
    }
    double none[TRN_FIT_NUMBERS][TRN_FIT_NUMBERS + 1] = { { 1, 2, 3 }, { 2, 4, 6 } }, x[TRN_FIT_NUMBERS];
    assert_false(trni_fit_solve(none, 2, x));
}

enum { NUMBERS = 2, SAMPLES = 3 };

/* Two samples that are the numbers themselves, and one that is always 1. */
static trn_status themselves(void *user, const double *number, double *predicted)
{
    (void)user;
    predicted[0] = number[0];
    predicted[1] = number[1];
    predicted[2] = 1;
    return TRN_OK;
}

/* A fit of them, with neither weights nor an error. */
static trn_fit_args asked(const double *measured, const double *low, const double *high)
{
    trn_fit_args a;
    memset(&a, 0, sizeof a);
    a.model = themselves;
    a.numbers = NUMBERS;
    a.samples = SAMPLES;
    a.measured = measured;
    a.low = low;
    a.high = high;
    return a;
}

/* From `begin` by walking alone; `third`: what the sample measured that nothing changes. */
static bool walks(const double begin[NUMBERS], const double measured[NUMBERS], double third, double end[NUMBERS])
{
    static const double low[NUMBERS] = { 0.25, 0.25 }, high[NUMBERS] = { 4, 4 };
    const double samples[SAMPLES] = { measured[0], measured[1], third };
    double residual[SAMPLES], moved[SAMPLES], slope[NUMBERS * SAMPLES];
    const trn_fit_args a = asked(samples, low, high);
    trni_fit f;
    memset(&f, 0, sizeof f);
    f.a = &a;
    f.residual = residual;
    f.moved = moved;
    f.slope = slope;
    for (int k = 0; k < NUMBERS; k++) f.p[k] = f.p0[k] = log(begin[k]);
    f.sum = trni_fit_sum(&f, f.p, f.residual);
    const bool better = trni_fit_walk(&f);
    for (int k = 0; k < NUMBERS; k++) end[k] = exp(f.p[k]);
    return better;
}

static void numbers_walk_up_and_down_within_their_bounds(void **state)
{
    (void)state;
    static const double measured[][NUMBERS] = { { 1.7, 0.6 }, { 0.6, 1.7 }, { 3.9, 3.9 }, { 0.3, 0.26 }, { 9, 0.1 } };
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        const double begin[NUMBERS] = { 1, 1 };
        double end[NUMBERS];
        assert_true(walks(begin, measured[i], 1, end));
        for (int k = 0; k < NUMBERS; k++) {
            const double least = fmin(fmax(measured[i][k], 0.25), 4), pull = 1e-4 * fabs(log(least));
            if (fabs(log(end[k] / least)) > 2e-5 + pull)
                fail_msg("case %zu, number %d: %.9g, not %.9g", i, k, end[k], least);
        }
    }
}

/* The sum has to become less by a millionth, or it counts as none: here it is 1 before. */
static void a_millionth_is_the_least_that_counts(void **state)
{
    (void)state;
    static const struct {
        double less; /* of the sum */
        bool counts;
    } row[] = { { 0, false }, { 0.9e-6, false }, { 1.2e-6, true }, { 1.9e-6, true }, { 1e-3, true } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const double begin[NUMBERS] = { 1, 1 }, measured[NUMBERS] = { exp(sqrt(row[i].less)), 1 };
        double end[NUMBERS];
        if (walks(begin, measured, exp(1), end) != row[i].counts) fail_msg("less by %g", row[i].less);
    }
}

/* What a fit begins with: one thing wrong each. */
static void bounds_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        double low, high, number;
        bool good;
    } row[] = {
        { 1, 10, 5, true },    { 1, 10, 1, true },
        { 1, 10, 10, true },   { 5, 5, 5, true },
        { 0, 10, 5, false },   { -1, 10, 5, false },
        { 7, 6, 6.5, false },  { 1, HUGE_VAL, 5, false },
        { 1, 10, 0.9, false }, { 1, 10, 10.1, false },
        { 1, 10, NAN, false }, { NAN, 10, 5, false },
        { 1, NAN, 5, false },  { HUGE_VAL, HUGE_VAL, HUGE_VAL, false },
    };
    static const double measured[SAMPLES] = { 5, 1, 1 };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const double low[NUMBERS] = { 0.5, row[i].low }, high[NUMBERS] = { 2, row[i].high };
        double number[NUMBERS] = { 1, row[i].number };
        trn_error error;
        trn_fit_args a = asked(measured, low, high);
        a.error = &error;
        if ((trni_fit_check(&a, number) == TRN_OK) != row[i].good) fail_msg("row %zu", i);
    }
}

static void samples_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        double measured, weight;
        bool good;
    } row[] = {
        { 5, 1, true },   { 5, 0, true },      { 5, 1e6, true },       { 1e-300, 1, true },
        { 0, 1, false },  { -1, 1, false },    { HUGE_VAL, 1, false }, { NAN, 1, false },
        { 5, -1, false }, { 5, 1.1e6, false }, { 5, HUGE_VAL, false }, { 5, NAN, false },
    };
    static const double low[NUMBERS] = { 0.5, 0.5 }, high[NUMBERS] = { 2, 2 };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int weighted = 0; weighted < 2; weighted++) {
            const double measured[SAMPLES] = { 1, 1, row[i].measured }, weight[SAMPLES] = { 1, 0, row[i].weight };
            const double number[NUMBERS] = { 1, 1 };
            trn_fit_args a = asked(measured, low, high);
            if (weighted) a.weight = weight;
            const bool good = row[i].good || (!weighted && row[i].measured == 5);
            if ((trni_fit_check(&a, number) == TRN_OK) != good) fail_msg("row %zu, weighted %d", i, weighted);
        }
}

int base_fit(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equations_are_solved),
        cmocka_unit_test(numbers_walk_up_and_down_within_their_bounds),
        cmocka_unit_test(a_millionth_is_the_least_that_counts),
        cmocka_unit_test(bounds_that_are_none_are_refused),
        cmocka_unit_test(samples_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("base_fit", tests, NULL, NULL);
}
