/* report.c - what came out: tables of points and of runs, whether the published ordering holds, text, CSV, JSON.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>

/* ---- tables: a row for each point of each run, and a row for each arm and rate ---- */

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
    const int f32 = sr_arm_index(lab->settings, &sr_arms[0]);
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

/* ---- does the published ordering hold? nearest even stalls, stochastic rounding and Kahan's sums follow f32 ---- */

static double mean_of(const sr_lab *lab, const char *name, int rate)
{
    const int arm = sr_arm_index(lab->settings, sr_find_arm(name));
    return arm < 0 ? (double)NAN : sr_spread_of(lab, arm, rate, sr_final_loss).mean;
}

/* It holds when bf16-rne ends above f32, and bf16-sr and bf16-kahan differ from f32 by less than half as much. */
sr_verdict sr_check_ordering(const sr_lab *lab, int rate)
{
    sr_verdict v;
    v.f32 = mean_of(lab, "f32", rate);
    v.rne = mean_of(lab, "bf16-rne", rate);
    v.sr = mean_of(lab, "bf16-sr", rate);
    v.kahan = mean_of(lab, "bf16-kahan", rate);
    v.known = isfinite(v.f32) && isfinite(v.rne) && isfinite(v.sr);
    const double gap = v.rne - v.f32;
    v.holds = v.known && gap > 0 && fabs(v.sr - v.f32) < gap / 2 && (isnan(v.kahan) || fabs(v.kahan - v.f32) < gap / 2);
    return v;
}

/* ---- text ---- */

static void print_settings(FILE *out, const sr_lab *lab)
{
    const sr_settings *s = lab->settings;
    char count[32];
    fprintf(out,
            "%s: %s parameters, %lld steps of %d, AdamW 0.9 0.95, weight decay %g, clip %g, rate to %g of itself\n",
            lab->kind->title, app_count(count, sizeof count, lab->run[0].parameters), (long long)s->steps, s->batch,
            s->weight_decay, s->clip, s->rate_end);
}

/* People see the summary with the decimals that losses need. */
static const app_column shown_columns[] = {
    { "arm", APP_TEXT, "", "" },     { "rate", APP_TEXT, "", "" },      { "train", APP_TEXT, "", "" },
    { "valid", APP_TEXT, "", "" },   { "low..high", APP_TEXT, "", "" }, { "over f32", APP_TEXT, "", "" },
    { "right %", APP_TEXT, "", "" }, { "lost %", APP_TEXT, "", "" },    { "arrived %", APP_TEXT, "", "" },
    { "seconds", APP_TEXT, "", "" }, { "cpu s", APP_TEXT, "", "" },
};

static void show_number(app_table *shown, const app_table *t, int row, const char *column, const char *format)
{
    const app_value *v = app_at(t, row, column);
    char text[64];
    snprintf(text, sizeof text, format, v->real);
    if (v->missing)
        app_missing(shown);
    else
        app_text(shown, "%s", text);
}

static void show_row(app_table *shown, const app_table *t, int row)
{
    app_row(shown);
    app_text(shown, "%s", app_at(t, row, "arm")->text);
    show_number(shown, t, row, "rate", "%g");
    show_number(shown, t, row, "train", "%.4f");
    show_number(shown, t, row, "valid", "%.4f");
    if (app_at(t, row, "seeds")->integer > 1)
        app_text(shown, "%.4f..%.4f", app_at(t, row, "low")->real, app_at(t, row, "high")->real);
    else
        app_missing(shown);
    show_number(shown, t, row, "over_f32", "%+.4f");
    show_number(shown, t, row, "right_pct", "%4.1f");
    show_number(shown, t, row, "lost_pct", "%5.1f");
    show_number(shown, t, row, "arrived_pct", "%5.1f");
    show_number(shown, t, row, "seconds", "%6.1f");
    show_number(shown, t, row, "cpu_seconds", "%6.1f");
}

app_table sr_shown_table(const sr_lab *lab)
{
    app_table shown;
    app_table_start(&shown, shown_columns, (int)(sizeof shown_columns / sizeof shown_columns[0]));
    for (int r = 0; r < lab->summary.rows; r++) show_row(&shown, &lab->summary, r);
    return shown;
}

void sr_say_verdict(char *text, size_t size, const sr_lab *lab, int rate)
{
    const sr_verdict v = sr_check_ordering(lab, rate);
    char kahan[64] = "";
    text[0] = '\0';
    if (!v.known) return;
    if (isfinite(v.kahan)) snprintf(kahan, sizeof kahan, ", kahan %+.4f", v.kahan - v.f32);
    snprintf(text, size, "rate %g: over f32's %.4f: bf16-rne %+.4f, bf16-sr %+.4f%s: the published ordering %s",
             lab->settings->rate[rate], v.f32, v.rne - v.f32, v.sr - v.f32, kahan,
             v.holds              ? "holds"
             : v.rne - v.f32 <= 0 ? "does not hold, nearest even is not behind"
                                  : "does not hold");
}

static void print_verdicts(FILE *out, const sr_lab *lab)
{
    char text[256];
    for (int i = 0; i < lab->settings->rates; i++) {
        sr_say_verdict(text, sizeof text, lab, i);
        if (*text) fprintf(out, "%s\n", text);
    }
}

void sr_print_text(FILE *out, const sr_lab *lab)
{
    app_table shown = sr_shown_table(lab);
    print_settings(out, lab);
    app_print_table(out, &shown);
    app_table_free(&shown);
    fprintf(out, "\nLosses in %s.\n", lab->kind->unit);
    print_verdicts(out, lab);
    for (int i = 0; i < lab->runs; i++)
        if (lab->run[i].sample && lab->run[i].seed == lab->settings->seed)
            fprintf(out, "%s%-10s  %s\n", i ? "" : "\n", lab->run[i].arm->name, lab->run[i].sample);
}

void sr_write_csv(FILE *out, const void *lab) { app_print_csv(out, &((const sr_lab *)lab)->curves); }

/* ---- JSON ---- */

static void json_settings(FILE *out, const sr_settings *s)
{
    const struct {
        const char *name;
        double value;
    } number[] = { { "steps", (double)s->steps },
                   { "batch", s->batch },
                   { "lr_end", s->rate_end },
                   { "warmup", s->warmup },
                   { "weight_decay", s->weight_decay },
                   { "clip", s->clip },
                   { "beta1", 0.9 },
                   { "beta2", 0.95 },
                   { "seeds", s->seeds },
                   { "width", s->width },
                   { "layers", s->layers },
                   { "heads", s->heads },
                   { "context", s->context },
                   { "features", s->features },
                   { "hidden", s->hidden },
                   { "depth", s->depth },
                   { "classes", s->classes },
                   { "examples", (double)s->examples },
                   { "shards", SR_SHARDS } };
    fputs("  \"settings\": {\n", out);
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        fprintf(out, "    \"%s\": ", number[i].name);
        app_print_json_number(out, number[i].value);
        fputs(",\n", out);
    }
    app_print_json_pair(out, "text", s->text);
    fprintf(out, "    \"products\": \"%s\"\n  },\n", trn_format_name(s->products));
}

static void json_samples(FILE *out, const sr_lab *lab)
{
    const char *comma = "";
    fputs("  \"samples\": [", out);
    for (int i = 0; i < lab->runs; i++) {
        const sr_run *run = &lab->run[i];
        if (!run->sample) continue;
        fprintf(out, "%s\n    {\"arm\": \"%s\", \"rate\": ", comma, run->arm->name);
        app_print_json_number(out, run->rate);
        fprintf(out, ", \"seed\": %llu, \"text\": ", (unsigned long long)run->seed);
        app_print_json_string(out, run->sample);
        fputs("}", out);
        comma = ",";
    }
    fputs("\n  ],\n", out);
}

void sr_write_json(FILE *out, const void *context)
{
    const sr_lab *lab = context;
    fprintf(out,
            "{\n  \"schema\": \"srlab.%s\",\n  \"schema_version\": \"1.0.0\",\n  \"version\": \"%s\",\n"
            "  \"parameters\": %lld,\n",
            lab->kind->name, TRN_VERSION, (long long)lab->run[0].parameters);
    json_settings(out, lab->settings);
    fputs("  \"results\": ", out);
    app_print_json_rows(out, &lab->summary, 2);
    fputs(",\n", out);
    json_samples(out, lab);
    fputs("  \"points\": ", out);
    app_print_json_rows(out, &lab->curves, 2);
    fputs("\n}\n", out);
}
