/* curves.c - the tables: a row for each point of each run, and a row for each arm and rate.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>

static const app_column curve_columns[] = {
    { "model", APP_TEXT, "", "logistic, mlp or char" },
    { "arm", APP_TEXT, "", "how weights are stored and rounded; srlab char --help tells each" },
    { "learning_rate", APP_REAL, "", "the run's, the largest of its schedule" },
    { "seed", APP_INTEGER, "", "of the first weights, the batches and the random bits" },
    { "step", APP_INTEGER, "", "updates so far" },
    { "rate", APP_REAL, "", "the rate of this step" },
    { "train_loss", APP_REAL, "nats", "mean since the row before" },
    { "valid_loss", APP_REAL, "nats", "of the held-out examples" },
    { "lost", APP_REAL, "", "share of updates since the row before that left the stored weight as it was" },
    { "arrived", APP_REAL, "", "<moved, wanted> / <wanted, wanted> since the row before" },
};

static const app_column summary_columns[] = {
    { "arm", APP_TEXT, "", "how weights are stored and rounded" },
    { "rate", APP_REAL, "", "learning rate, the largest of the schedule" },
    { "seeds", APP_INTEGER, "", "runs" },
    { "train", APP_REAL, "nats", "loss over the last interval, mean over seeds" },
    { "valid", APP_REAL, "nats", "loss of the held-out examples after the last step, mean over seeds" },
    { "low", APP_REAL, "nats", "the least of the seeds" },
    { "high", APP_REAL, "nats", "the greatest" },
    { "over_f32", APP_REAL, "nats", "mean over seeds of the difference to arm f32 with the same seed" },
    { "right_pct", APP_REAL, "%", "held-out examples whose likeliest answer is right" },
    { "lost_pct", APP_REAL, "%", "updates that left the stored weight as it was" },
    { "arrived_pct", APP_REAL, "%", "100 <moved, wanted> / <wanted, wanted>, intervals summed" },
    { "seconds", APP_REAL, "s", "of one run, mean" },
    { "cpu_seconds", APP_REAL, "s", "of all threads, mean" },
    { "weights", APP_TEXT, "", "FNV-1a of the stored weights of the first seed" },
};

void sr_start_tables(sr_lab *lab)
{
    app_table_start(&lab->curves, curve_columns, (int)(sizeof curve_columns / sizeof curve_columns[0]));
    app_table_start(&lab->summary, summary_columns, (int)(sizeof summary_columns / sizeof summary_columns[0]));
}

const sr_run *sr_run_at(const sr_lab *lab, int arm, int rate, int seed)
{
    return &lab->run[(arm * lab->settings->rates + rate) * lab->settings->seeds + seed];
}

/* ---- spreads over seeds ---- */

sr_spread sr_spread_of(const sr_lab *lab, int arm, int rate, double (*what)(const sr_run *run))
{
    const int seeds = lab->settings->seeds;
    sr_spread s = { 0, INFINITY, -INFINITY };
    for (int i = 0; i < seeds; i++) {
        const double x = what(sr_run_at(lab, arm, rate, i));
        s.mean += x / seeds;
        s.low = x < s.low ? x : s.low;
        s.high = x > s.high ? x : s.high;
    }
    return s;
}

double sr_final_loss(const sr_run *r) { return r->valid; }
static double final_train(const sr_run *r) { return r->point[r->points - 1].train; }
static double right(const sr_run *r) { return 100 * r->right; }
static double lost(const sr_run *r) { return 100 * r->unmoved; }
static double arrived(const sr_run *r) { return 100 * r->arrived; }
static double seconds(const sr_run *r) { return r->seconds; }
static double cpu_seconds(const sr_run *r) { return r->cpu_seconds; }

static double over_f32(const sr_lab *lab, int arm, int rate)
{
    const int f32 = sr_place_of(lab->settings, &sr_arms[0]);
    if (f32 < 0) return (double)NAN;
    return sr_spread_of(lab, arm, rate, sr_final_loss).mean - sr_spread_of(lab, f32, rate, sr_final_loss).mean;
}

/* ---- rows ---- */

static void summary_row(sr_lab *lab, int arm, int rate)
{
    double (*const rest[])(const sr_run *) = { right, lost, arrived, seconds, cpu_seconds };
    const sr_spread loss = sr_spread_of(lab, arm, rate, sr_final_loss);
    app_table *t = &lab->summary;
    app_row(t);
    app_text(t, "%s", lab->settings->arm[arm]->name);
    app_real(t, lab->settings->rate[rate]);
    app_integer(t, lab->settings->seeds);
    app_real(t, sr_spread_of(lab, arm, rate, final_train).mean);
    app_real(t, loss.mean);
    app_real(t, loss.low);
    app_real(t, loss.high);
    app_real(t, over_f32(lab, arm, rate));
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) app_real(t, sr_spread_of(lab, arm, rate, rest[i]).mean);
    app_text(t, "%016llx", (unsigned long long)sr_run_at(lab, arm, rate, 0)->digest);
}

void sr_fill_summary(sr_lab *lab)
{
    for (int rate = 0; rate < lab->settings->rates; rate++)
        for (int arm = 0; arm < lab->settings->arms; arm++) summary_row(lab, arm, rate);
}

static void curve_rows(sr_lab *lab, const sr_run *run)
{
    app_table *t = &lab->curves;
    for (int i = 0; i < run->points; i++) {
        const sr_point *p = &run->point[i];
        app_row(t);
        app_text(t, "%s", lab->kind->name);
        app_text(t, "%s", run->arm->name);
        app_real(t, run->rate);
        app_integer(t, (int64_t)run->seed);
        app_integer(t, p->step);
        app_real(t, p->rate);
        app_real(t, p->train);
        app_real(t, p->valid);
        app_real(t, p->unmoved);
        app_real(t, p->arrived);
    }
}

void sr_fill_curves(sr_lab *lab)
{
    for (int i = 0; i < lab->runs; i++) curve_rows(lab, &lab->run[i]);
}
