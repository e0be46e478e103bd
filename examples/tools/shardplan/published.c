/* published.c - training runs, served models and first tokens that the vendor's pages print, beside bound, ideal and
 * expectation; what the other rows predict of each; and what that says of every class of times.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "published/errors.h"

static const app_column columns[] = {
    { "model", APP_TEXT, "", "" },
    { "job", APP_TEXT, "", "train, prefill or decode" },
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
    { "expected_first_s", APP_REAL, "s", "to the first token" },
    { "published_first_s", APP_REAL, "s", "printed after a run" },
    { "first_ratio", APP_REAL, "", "expected over published" },
    { "first_left_out_ratio", APP_REAL, "", "the same by a fit to the other rows" },
    { "rank", APP_INTEGER, "", "of the published degrees among all plans of as many chips" },
    { "plans", APP_INTEGER, "", "that are legal" },
    { "class", APP_TEXT, "", "which rows the range is from" },
    { "expected_low_s", APP_REAL, "s", "four of five published times lie between this" },
    { "expected_high_s", APP_REAL, "s", "and this" },
    { "expected_first_low_s", APP_REAL, "s", "the same of first tokens" },
    { "expected_first_high_s", APP_REAL, "s", "" },
    { "fitted", APP_INTEGER, "", "1: constants of the step were chosen with this row" },
    { "source", APP_TEXT, "", "Neuron SDK" },
    { "note", APP_TEXT, "", "why there is no number" },
};

/* Every published number, jobs and collectives; text and rows of the table are of one run. */
static published_error errors[PUBLISHED_ERRORS];
static int error_count;

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

/* Of row i; NULL: nothing is published. */
static const published_error *error_of(int i, bool first)
{
    int seen = 0; /* jobs stand before first tokens, and these before collectives */
    for (int k = 0; k < error_count; k++)
        if (errors[k].row == i && (k >= PUBLISHED_JOBS) == first && seen++ == 0)
            return errors[k].kind < TRN_EVIDENCE_COLLECTIVE ? &errors[k] : NULL;
    return NULL;
}

static void add_ratios(app_table *t, const published_error *e)
{
    app_real(t, e ? e->expected : (double)NAN);
    app_real(t, e ? e->left_out : (double)NAN);
}

static trn_status add_row(app_table *t, int i, trn_error *error)
{
    const published_job *row = &published_jobs[i];
    const published_error *step = error_of(i, false), *one = error_of(i, true);
    const trn_topology net = published_job_net(row);
    trn_plan_args a = published_job_ask(row, &net);
    trn_plan p = published_job_plan(row);
    const double turns = row->turns ? (double)row->turns : 1;
    int64_t legal = 0;
    a.error = error;
    trn_status status = trn_plan_evaluate(&a, &p);
    if (status != TRN_OK) return status;
    const int64_t rank = rank_of(row, &a, &legal, &status);
    const double seconds[] = { p.bound_s, p.time_s, p.expected_s };
    const double ranges[] = { p.expected_low_s, p.expected_high_s, turns * p.expected_ttft_low_s,
                              turns * p.expected_ttft_high_s };
    head_of(t, row);
    for (int k = 0; k < 3; k++) app_real(t, p.legal ? seconds[k] : (double)NAN);
    app_real(t, published_job_s(row));
    add_ratios(t, step);
    app_real(t, one ? published_job_first_s(row, &p) : (double)NAN);
    app_real(t, one ? one->published : (double)NAN);
    add_ratios(t, one);
    if (rank)
        app_integer(t, rank);
    else
        app_missing(t);
    app_integer(t, legal);
    app_text(t, "%s", trn_evidence_of(p.evidence).name);
    for (int k = 0; k < 4; k++) app_real(t, k < 2 || one ? ranges[k] : (double)NAN);
    app_integer(t, i < PUBLISHED_FITTED);
    app_text(t, "%s", row->source);
    app_text(t, "%s", p.why);
    return status;
}

bool sp_published(app_table *table, char *why)
{
    static trn_error error;
    app_table_start(table, columns, sizeof columns / sizeof columns[0]);
    trn_status status = published_errors(errors, &error_count, &error);
    for (int i = 0; i < PUBLISHED_JOBS && status == TRN_OK; i++) {
        app_progress("published jobs: %d of %d", i + 1, (int)PUBLISHED_JOBS);
        status = add_row(table, i, &error);
    }
    app_progress_done();
    return status == TRN_OK || app_fail(why, "published rows: %s", error.text);
}

/* ---- for people ---- */

/* Rows left out in turn, class by class. */
static void print_classes(FILE *out)
{
    static const app_column column[] = {
        { "class", APP_TEXT, "", "" },
        { "rows", APP_INTEGER, "", "" },
        { "fitted", APP_INTEGER, "", "" },
        { "within 1.5", APP_INTEGER, "", "" },
        { "left out", APP_INTEGER, "", "" },
        { "furthest", APP_REAL, "", "" },
        { "range, times", APP_REAL, "", "" },
        { "in range", APP_INTEGER, "", "" },
        { "what they are of", APP_TEXT, "", "" },
    };
    app_table t;
    app_table_start(&t, column, sizeof column / sizeof column[0]);
    for (int c = 0; c <= TRN_EVIDENCE_COUNT; c++) {
        const trn_evidence of = trn_evidence_of((trn_evidence_class)c);
        const published_tally n = published_count(errors, error_count, (trn_evidence_class)c, 1.5);
        const int64_t count[] = { n.rows, n.fitted, n.near, n.left_near };
        app_row(&t);
        app_text(&t, "%s", c < TRN_EVIDENCE_COUNT ? of.name : "all");
        for (int k = 0; k < 4; k++) app_integer(&t, count[k]);
        app_real(&t, n.rows ? n.furthest : (double)NAN);
        app_real(&t, c < TRN_EVIDENCE_COUNT ? of.spread : (double)NAN);
        app_integer(&t, n.inside);
        app_text(&t, "%s", c < TRN_EVIDENCE_COUNT ? of.where : "");
    }
    app_print_table(out, &t);
    app_table_free(&t);
}

static void print_story(FILE *out)
{
    fprintf(
        out,
        "  rank: of the published degrees among all plans of as many chips, by expected time\n"
        "  left out: by a fit to the other rows; in range: left-out rows inside the range that the other rows of\n"
        "  their class give. A class of fewer than five rows is wide.\n"
        "  tensor_share, hbm_share, kernel_s: chosen with the first %d rows, dense decoders, 30 of Trainium1 and 3\n"
        "  of Trainium2. first_s, and %d score_passes of Llama-2 and Mistral of SDK 2.18: with all first tokens.\n"
        "  graph_s: with two profiles. Four rows of nccom-test that contradict\n"
        "  their own sample are not held to. All other rows fitted nothing. No row is of a job on Trainium3.\n",
        (int)PUBLISHED_FITTED, PUB_SCORE_PASSES);
}

void sp_print_published(FILE *out, const app_table *table)
{
    static const int from[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 };
    static const char *const brief[] = { [10] = "ratio", "left out", "first", "published", "ratio", "left out" };
    enum { SHOWN = sizeof from / sizeof from[0] };
    app_column column[SHOWN];
    app_table shown;
    for (int c = 0; c < SHOWN; c++) {
        column[c] = columns[from[c]];
        if (c < (int)(sizeof brief / sizeof brief[0]) && brief[c]) column[c].name = brief[c];
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
    fputc('\n', out);
    print_classes(out);
    print_story(out);
}
