/* published.c - training runs and served models that the vendor's pages print, beside bound, ideal and expectation;
 * what a fit without each row predicts; and where the published degrees stand among ours.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_calibration_fit.h>

#include "published/jobs.h"

static const app_column columns[] = {
    { "model", APP_TEXT, "", "" },
    { "job", APP_TEXT, "", "train or decode" },
    { "system", APP_TEXT, "", "instances of which kind" },
    { "batch", APP_INTEGER, "", "sequences" },
    { "tokens", APP_TEXT, "", "of a sequence, or prompt + answer" },
    { "degrees", APP_TEXT, "cores", "as published" },
    { "bound_s", APP_REAL, "s", "no plan is faster" },
    { "time_s", APP_REAL, "s", "ideal: of a step or a token" },
    { "expected_s", APP_REAL, "s", "with what is expected to be reached" },
    { "published_s", APP_REAL, "s", "printed after a run" },
    { "ratio", APP_REAL, "", "expected over published" },
    { "left_out_ratio", APP_REAL, "", "the same by a fit to the other rows" },
    { "expected_first_s", APP_REAL, "s", "to the first tokens of the batch, one prompt after the other" },
    { "published_first_s", APP_REAL, "s", "printed after a run" },
    { "rank", APP_INTEGER, "", "of the published degrees among all plans of as many chips" },
    { "plans", APP_INTEGER, "", "that are legal" },
    { "source", APP_TEXT, "", "Neuron SDK" },
    { "note", APP_TEXT, "", "why there is no number" },
};

enum { NUMBERS = 3 }; /* tensor_share, hbm_share, kernel_s */

static trn_plan_args ask_of(const published_job *row, const trn_topology *net, trn_error *error)
{
    trn_plan_args a = published_job_ask(row, net);
    a.error = error;
    return a;
}

/* ---- the fit ---- */

typedef struct evaluation {
    trn_topology net[PUBLISHED_JOBS];
    int row[PUBLISHED_JOBS], rows; /* those that are held to */
    trn_error error;
} evaluation;

static trn_status predict(void *user, const double *number, double *predicted)
{
    evaluation *e = user;
    for (int i = 0; i < e->rows; i++) {
        const published_job *row = &published_jobs[e->row[i]];
        trn_plan_args a = ask_of(row, &e->net[e->row[i]], &e->error);
        trn_plan p = published_job_plan(row);
        a.assumptions.tensor_share = number[0];
        a.assumptions.hbm_share = number[1];
        a.assumptions.kernel_s = number[2];
        const trn_status status = trn_plan_evaluate(&a, &p);
        if (status != TRN_OK) return status;
        predicted[i] = p.expected_s;
    }
    return TRN_OK;
}

/* Every row by a fit that has not seen it. */
static trn_status leave_out(evaluation *e, double *left_out_s)
{
    const trn_plan_assumptions usual = trn_plan_assumptions_default(NULL);
    const double start[NUMBERS] = { usual.tensor_share, usual.hbm_share, usual.kernel_s };
    const double low[NUMBERS] = { 0.05, 0.05, 1e-7 }, high[NUMBERS] = { 1, 1, 1e-3 };
    double measured[PUBLISHED_JOBS], predicted[PUBLISHED_JOBS];
    trn_status status = TRN_OK;
    for (int i = 0; i < e->rows; i++) measured[i] = published_job_s(&published_jobs[e->row[i]]);
    for (int i = 0; i < e->rows && status == TRN_OK; i++) {
        double number[NUMBERS];
        memcpy(number, start, sizeof number);
        const trn_fit_args fit = { .model = predict,
                                   .user = e,
                                   .numbers = NUMBERS,
                                   .samples = e->rows,
                                   .measured = measured,
                                   .low = low,
                                   .high = high,
                                   .leave_out = 1 + i,
                                   .is_near = true,
                                   .error = &e->error };
        app_progress("left out: %d of %d", i + 1, e->rows);
        status = trn_fit(&fit, number);
        if (status == TRN_OK) status = predict(e, number, predicted);
        if (status == TRN_OK) left_out_s[e->row[i]] = predicted[i];
    }
    app_progress_done();
    return status;
}

/* ---- rows ---- */

/* Where the published degrees stand among all plans; 0: they are not among them. */
static int64_t rank_of(const published_job *row, const trn_plan_args *args, int64_t *legal, trn_status *status)
{
    enum { PLANS = 20000 };
    trn_plan *plan = app_resize(NULL, PLANS, sizeof *plan);
    const trn_plan own = published_job_plan(row);
    trn_plan_list list = { 0 };
    int64_t rank = 0;
    trn_plan_args ask = *args;
    ask.microbatch = 0;
    *status = trn_plan_search(&ask, plan, PLANS, &list);
    for (int64_t i = 0; *status == TRN_OK && i < list.legal && i < list.kept && !rank; i++)
        if (plan[i].tp_cores == own.tp_cores && plan[i].cp == 1 && plan[i].ep == 1 && plan[i].dp == own.dp &&
            plan[i].pp == own.pp)
            rank = i + 1;
    *legal = list.legal;
    free(plan);
    return rank;
}

static void head_of(app_table *t, const published_job *row)
{
    const bool train = row->job == TRN_JOB_TRAIN;
    app_row(t);
    app_text(t, "%s", row->model->name);
    app_text(t, "%s", trn_job_name(row->job));
    app_text(t, "%d x %s", row->instances, trn_system_name(row->system));
    app_integer(t, row->batch);
    if (train)
        app_text(t, "%lld", (long long)row->prompt);
    else
        app_text(t, "%lld + %lld", (long long)row->prompt, (long long)row->answer);
    app_text(t, train ? "tp %d, dp %d, pp %d" : "tp %d", row->tp, row->dp, row->pp);
}

static trn_status add_row(app_table *t, evaluation *e, int i, double left_out_s)
{
    const published_job *row = &published_jobs[i];
    const trn_plan_args a = ask_of(row, &e->net[i], &e->error);
    trn_plan p = published_job_plan(row);
    int64_t legal = 0;
    trn_status status = trn_plan_evaluate(&a, &p);
    if (status != TRN_OK) return status;
    const int64_t rank = rank_of(row, &a, &legal, &status);
    const bool first = p.legal && row->first_ms > 0;
    const double seconds[] = { p.bound_s, p.time_s, p.expected_s };
    head_of(t, row);
    for (int k = 0; k < 3; k++) app_real(t, p.legal ? seconds[k] : (double)NAN);
    app_real(t, published_job_s(row));
    app_real(t, p.legal ? p.expected_s / published_job_s(row) : (double)NAN);
    app_real(t, left_out_s > 0 ? left_out_s / published_job_s(row) : (double)NAN);
    app_real(t, first ? p.expected_ttft_s * (double)row->batch : (double)NAN);
    app_real(t, row->first_ms > 0 ? 1e-3 * row->first_ms : (double)NAN);
    if (rank)
        app_integer(t, rank);
    else
        app_missing(t);
    app_integer(t, legal);
    app_text(t, "%s", row->source);
    app_text(t, "%s", p.why);
    return status;
}

bool sp_published(app_table *table, char *why)
{
    static evaluation e;
    static double left_out_s[PUBLISHED_JOBS];
    memset(&e, 0, sizeof e);
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        e.net[i] = published_job_net(&published_jobs[i]);
        if (i < PUBLISHED_FITTED) e.row[e.rows++] = i;
    }
    app_table_start(table, columns, sizeof columns / sizeof columns[0]);
    trn_status status = leave_out(&e, left_out_s);
    for (int i = 0; i < PUBLISHED_JOBS && status == TRN_OK; i++) status = add_row(table, &e, i, left_out_s[i]);
    return status == TRN_OK || app_fail(why, "published rows: %s", e.error.text);
}

/* ---- for people ---- */

static int within(const app_table *t, const char *column, double most, int *all)
{
    int count = 0;
    *all = 0;
    for (int r = 0; r < t->rows; r++) {
        const app_value *v = app_at(t, r, column);
        if (v->missing) continue;
        ++*all;
        count += v->real <= most && v->real >= 1 / most;
    }
    return count;
}

void sp_print_published(FILE *out, const app_table *table)
{
    static const int from[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15 };
    enum { SHOWN = sizeof from / sizeof from[0] };
    app_column column[SHOWN];
    app_table shown;
    for (int c = 0; c < SHOWN; c++) {
        column[c] = columns[from[c]];
        if (strcmp(column[c].unit, "s") == 0) column[c].kind = APP_TEXT; /* with units: some are ms, some are s */
    }
    app_table_start(&shown, column, SHOWN);
    for (int r = 0; r < table->rows; r++) {
        app_row(&shown);
        for (int c = 0; c < SHOWN; c++) {
            const app_value *v = &table->cell[r * table->columns + from[c]];
            if (v->missing)
                app_missing(&shown);
            else if (columns[from[c]].kind != column[c].kind)
                app_text(&shown, "%s", sp_time(v->real).text);
            else if (column[c].kind == APP_TEXT)
                app_text(&shown, "%s", v->text);
            else if (column[c].kind == APP_REAL)
                app_real(&shown, v->real);
            else
                app_integer(&shown, v->integer);
        }
    }
    app_print_table(out, &shown);
    app_table_free(&shown);
    int all, left;
    const int near = within(table, "ratio", 1.4, &all), near_left = within(table, "left_out_ratio", 1.4, &left);
    fprintf(out, "\n  expected within 1.4 times of the published time: %d of %d; left out of the fit: %d of %d\n", near,
            all, near_left, left);
    fputs("  rank: of the published degrees among all plans of as many chips, by expected time\n", out);
}
