/* errors.h - how far expected times are from published ones, each row left out in turn, and what that says of a class.
 * SPDX-License-Identifier: MIT
 *
 * Left out: what a fit to the other rows would predict, by the first step of Gauss and Newton from the numbers in use:
 * logarithms of predictions are taken to be linear in logarithms of numbers. Rows that nothing was fitted to are what
 * they are. The spread of a class is the k-th smallest error of its n rows, k = 0.8 (n + 1) rounded up. Fewer than four
 * rows have no such: their largest error counts 1 + 2 / n times in logarithms, as far as what is assumed of no class at
 * all. A row is held against the spread of the other rows of its class.
 */
#ifndef PUBLISHED_ERRORS_H
#define PUBLISHED_ERRORS_H

#include <math.h>
#include <stdlib.h>

#include "jobs.h"
#include "collectives.h"

/* One published number. */
typedef struct published_error {
    trn_evidence_class kind;
    int row;          /* of published_jobs or published_collectives */
    bool fitted;      /* numbers were chosen with this row */
    double published; /* seconds */
    double expected;  /* over published */
    double left_out;  /* the same by the other rows */
    double spread;    /* of the other rows of its class */
} published_error;

enum { PUBLISHED_ERRORS = 2 * PUBLISHED_JOBS + PUBLISHED_COLLECTIVES, PUBLISHED_NUMBERS = 5 };

/* Predicts `rows` times in seconds. */
typedef struct published_model {
    trn_status (*predict)(const struct published_model *m, const double *number, double *seconds);
    const int *row;
    int rows, numbers;
    double number[PUBLISHED_NUMBERS];
    trn_error *error;
} published_model;

/* ---- what predicts ---- */

static inline trn_status published_plan(const published_job *row, const trn_topology *net,
                                        const trn_plan_assumptions *with, trn_error *error, trn_plan *p)
{
    trn_plan_args a = published_job_ask(row, net);
    const double passes = a.assumptions.score_passes;
    *p = published_job_plan(row);
    if (with) a.assumptions = *with;
    if (!with || !(with->score_passes > 0) || !row->unfused) a.assumptions.score_passes = passes;
    a.error = error;
    return trn_plan_evaluate(&a, p);
}

static inline trn_status published_with(const published_model *m, const trn_plan_assumptions *with, bool firsts,
                                        double *seconds)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < m->rows && status == TRN_OK; i++) {
        const published_job *row = &published_jobs[m->row[i]];
        const trn_topology net = published_job_net(row);
        trn_plan p;
        status = published_plan(row, &net, with, m->error, &p);
        if (status == TRN_OK) seconds[i] = firsts ? published_job_first_s(row, &p) : p.expected_s;
    }
    return status;
}

static inline trn_status published_steps(const published_model *m, const double *number, double *seconds)
{
    const trn_plan_assumptions with = { .tensor_share = number[0], .hbm_share = number[1], .kernel_s = number[2] };
    return published_with(m, &with, false, seconds);
}

static inline trn_status published_firsts(const published_model *m, const double *number, double *seconds)
{
    const trn_plan_assumptions with = { .first_s = number[0], .score_passes = number[1] };
    return published_with(m, &with, true, seconds);
}

static inline trn_status published_times(const published_model *m, const trn_calibration *c, double *seconds)
{
    trn_status status = TRN_OK;
    for (int i = 0; i < m->rows && status == TRN_OK; i++) {
        const published_collective *row = &published_collectives[m->row[i]];
        const trn_topology net = published_net(row);
        int chip[PUBLISHED_CHIPS];
        trn_collective_args ask = published_ask(row, &net, chip);
        trn_cost cost;
        ask.calibration = c;
        ask.error = m->error;
        status = published_cost(row, &ask, &cost);
        seconds[i] = cost.expected_s;
    }
    return status;
}

static inline trn_status published_newer(const published_model *m, const double *number, double *seconds)
{
    trn_calibration c = trn_calibration_default();
    c.launch_s = number[0];
    c.hbm = number[1];
    return published_times(m, &c, seconds);
}

static inline trn_status published_older(const published_model *m, const double *number, double *seconds)
{
    trn_calibration c = trn_calibration_of_release(TRN_RELEASE_OLDER);
    c.launch_s = number[0];
    c.instance_s = number[1];
    c.step_s = number[2];
    c.efa = number[3];
    c.hbm = number[4];
    return published_times(m, &c, seconds);
}

static inline trn_status published_graphs(const published_model *m, const double *number, double *seconds)
{
    trn_calibration c = trn_calibration_default();
    c.graph_s = number[0];
    return published_times(m, &c, seconds);
}

/* ---- rows left out ---- */

/* x of matrix x = right; false where it has none. Both are spent. */
static inline bool published_solve(int n, double matrix[PUBLISHED_NUMBERS][PUBLISHED_NUMBERS], double *right)
{
    for (int k = 0; k < n; k++) {
        if (!(matrix[k][k] > 0)) return false;
        for (int i = k + 1; i < n; i++) {
            const double f = matrix[i][k] / matrix[k][k];
            for (int j = k; j < n; j++) matrix[i][j] -= f * matrix[k][j];
            right[i] -= f * right[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) right[k] -= matrix[k][j] * right[j];
        right[k] /= matrix[k][k];
    }
    return true;
}

/* Residual of row i by the fit to all other fitted rows that `slope` (of logarithms) tells. */
static inline double published_left(const published_model *m, const published_error *e, int i, const double *residual,
                                    double (*slope)[PUBLISHED_NUMBERS])
{
    double matrix[PUBLISHED_NUMBERS][PUBLISHED_NUMBERS], step[PUBLISHED_NUMBERS];
    memset(matrix, 0, sizeof matrix);
    memset(step, 0, sizeof step);
    for (int a = 0; a < m->numbers; a++) matrix[a][a] = 1e-4; /* as trn_fit: of what no row tells, stay */
    for (int k = 0; k < m->rows; k++)
        for (int a = 0; a < m->numbers && k != i && e[k].fitted; a++) {
            step[a] -= slope[k][a] * residual[k];
            for (int b = 0; b < m->numbers; b++) matrix[a][b] += slope[k][a] * slope[k][b];
        }
    double left = residual[i];
    if (!published_solve(m->numbers, matrix, step)) return left;
    for (int a = 0; a < m->numbers; a++) left += slope[i][a] * step[a];
    return left;
}

/* Fills expected and left_out of e[rows], whose published times are there. */
static inline trn_status published_leave_out(const published_model *m, published_error *e)
{
    static double slope[PUBLISHED_ERRORS][PUBLISHED_NUMBERS];
    static double residual[PUBLISHED_ERRORS], moved[PUBLISHED_ERRORS];
    const double by = 0.02;
    trn_status status = m->predict(m, m->number, residual);
    for (int i = 0; i < m->rows; i++) residual[i] = log(residual[i] / e[i].published);
    for (int a = 0; a < m->numbers && status == TRN_OK; a++) {
        double number[PUBLISHED_NUMBERS];
        memcpy(number, m->number, sizeof number);
        number[a] *= exp(by);
        status = m->predict(m, number, moved);
        for (int i = 0; i < m->rows; i++) slope[i][a] = (log(moved[i] / e[i].published) - residual[i]) / by;
    }
    for (int i = 0; i < m->rows && status == TRN_OK; i++) {
        e[i].expected = exp(residual[i]);
        e[i].left_out = e[i].fitted ? exp(published_left(m, e, i, residual, slope)) : e[i].expected;
    }
    return status;
}

/* ---- classes ---- */

static inline double published_far(double ratio) { return fabs(log(ratio)); }

static inline int published_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The spread of a class, of its rows but one. */
static inline double published_spread(const published_error *e, int count, trn_evidence_class kind, int without)
{
    const double most = log(trn_evidence_of(TRN_EVIDENCE_OTHER).spread);
    double far[PUBLISHED_ERRORS];
    int n = 0;
    for (int i = 0; i < count; i++)
        if (e[i].kind == kind && i != without) far[n++] = published_far(e[i].left_out);
    if (!n) return exp(most);
    qsort(far, (size_t)n, sizeof far[0], published_order);
    const int k = (int)ceil(0.8 * (n + 1));
    return exp(k <= n ? far[k - 1] : fmin(most, far[n - 1] * (1 + 2.0 / n)));
}

/* Of the rows of a class (COUNT: of all): how many lie within so many times of what is expected, or of what the others
 * expect, within the spread of the others, and the furthest. */
typedef struct published_tally {
    int rows, fitted, near, left_near, inside;
    double furthest;
} published_tally;

static inline published_tally published_count(const published_error *e, int count, trn_evidence_class kind,
                                              double times)
{
    published_tally t = { 0, 0, 0, 0, 0, 1 };
    for (int i = 0; i < count; i++) {
        if (kind != TRN_EVIDENCE_COUNT && e[i].kind != kind) continue;
        t.rows++;
        t.fitted += e[i].fitted;
        t.near += published_far(e[i].expected) <= log(times);
        t.left_near += published_far(e[i].left_out) <= log(times);
        t.inside += published_far(e[i].left_out) <= log(e[i].spread);
        t.furthest = fmax(t.furthest, exp(published_far(e[i].expected)));
    }
    return t;
}

/* ---- all of them ---- */

static inline trn_evidence_class published_job_kind(const published_job *row, bool first, trn_error *error)
{
    const trn_topology net = published_job_net(row);
    trn_plan p;
    if (published_plan(row, &net, NULL, error, &p) != TRN_OK) return TRN_EVIDENCE_OTHER;
    return first ? p.ttft_evidence : p.evidence;
}

static inline int published_jobs_into(published_error *e, int *row, bool first, trn_error *error)
{
    int n = 0;
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *job = &published_jobs[i];
        if (first && !(job->first_ms > 0)) continue;
        memset(&e[n], 0, sizeof e[n]);
        e[n].kind = published_job_kind(job, first, error);
        e[n].fitted = first || i < PUBLISHED_FITTED;
        e[n].published = first ? 1e-3 * job->first_ms : published_job_s(job);
        row[n] = e[n].row = i;
        n++;
    }
    return n;
}

/* Those of a release, or those in graphs. What contradicts its own page is not held to. */
static inline int published_collectives_into(published_error *e, int *row, trn_release release, bool graph)
{
    int n = 0;
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) {
        const published_collective *c = &published_collectives[i];
        if (c->outside || (c->graph > 0) != graph || (!graph && c->release != release)) continue;
        const trn_topology net = published_net(c);
        int chip[PUBLISHED_CHIPS];
        const trn_collective_args ask = published_ask(c, &net, chip);
        memset(&e[n], 0, sizeof e[n]);
        e[n].kind = trni_collective_evidence(&ask);
        e[n].fitted = c->graph < 2;
        e[n].published = 1e-6 * c->us;
        row[n] = e[n].row = i;
        n++;
    }
    return n;
}

/* e[PUBLISHED_ERRORS]: how many there are; their spreads are those of the others of their class. */
static inline trn_status published_errors(published_error *e, int *count, trn_error *error)
{
    const trn_plan_assumptions a = trn_plan_assumptions_default(NULL);
    const trn_calibration c = trn_calibration_default(), old = trn_calibration_of_release(TRN_RELEASE_OLDER);
    const published_model model[] = {
        { published_steps, NULL, 0, 3, { a.tensor_share, a.hbm_share, a.kernel_s }, error },
        { published_firsts, NULL, 0, 2, { a.first_s, PUB_SCORE_PASSES }, error },
        { published_newer, NULL, 0, 2, { c.launch_s, c.hbm }, error },
        { published_older, NULL, 0, 5, { old.launch_s, old.instance_s, old.step_s, old.efa, old.hbm }, error },
        { published_graphs, NULL, 0, 1, { c.graph_s }, error },
    };
    trn_status status = TRN_OK;
    *count = 0;
    for (int k = 0; k < 5 && status == TRN_OK; k++) {
        int row[PUBLISHED_ERRORS];
        published_error *at = e + *count;
        published_model m = model[k];
        m.row = row;
        m.rows = k < 2 ? published_jobs_into(at, row, k == 1, error)
                       : published_collectives_into(at, row, k == 3 ? TRN_RELEASE_OLDER : TRN_RELEASE_NEWER, k == 4);
        status = published_leave_out(&m, at);
        *count += m.rows;
    }
    for (int i = 0; i < *count; i++) e[i].spread = published_spread(e, *count, e[i].kind, i);
    return status;
}

#endif /* PUBLISHED_ERRORS_H */
