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

#include "published/jobs.h"

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

/* Within 1.4 times, but for one token of Mistral-7B with 16,384 positions, whose page is 1.42 times longer; the same
 * page's batch of eight is within. The bound and the ideal time are below what was measured, always. */
static void rows(void **state)
{
    (void)state;
    int held = 0, near = 0;
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *row = &published_jobs[i];
        const trn_plan p = planned(row);
        if (row->outside) {
            assert_true(!p.legal && p.reason == TRN_PLAN_HEADS);
            continue;
        }
        if (!p.legal) fail_msg("%s: %s", row->model->name, p.why);
        const double ratio = p.expected_s / published_job_s(row);
        assert_true(p.bound_s <= p.time_s && p.time_s <= p.expected_s);
        assert_true(p.time_s <= published_job_s(row));
        if (!(ratio < 1.5 && ratio > 1 / 1.5))
            fail_msg("%s, %s: %.3g s published, %.3g expected", row->model->name, row->source, published_job_s(row),
                     p.expected_s);
        held++;
        near += ratio <= 1.4 && ratio >= 1 / 1.4;
    }
    print_message("%d of %d within 1.4 times\n", near, held);
    assert_true(near >= held - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
