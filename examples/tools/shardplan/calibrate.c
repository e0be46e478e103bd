/* calibrate.c - what was measured, and the numbers that agree with it: nccom-test into those of collectives; serving
 * benchmarks and profiles into those of the planner. SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_calibration_fit.h>

#include "io/measured.h"

/* Numbers that times of tokens and of first tokens can tell, and their bounds. */
static const struct {
    const char *name;
    double low, high;
} moved[] = {
    { "tensor_share", 0.02, 1 }, { "hbm_share", 0.02, 1 }, { "kernel_s", 1e-7, 1e-3 }, { "first_s", 1e-6, 10 }
};
enum { MOVED = sizeof moved / sizeof moved[0] };

/* One measured time: of a token, or of a first token. */
typedef struct sample {
    int file;
    bool first;
    trn_plan_args args;
    trn_plan plan; /* the degrees that were asked for, or the best */
    double measured_s, before_s, after_s;
} sample;

typedef struct served {
    sp_job *job;
    sample sample[2 * SP_MEASURED];
    int samples;
    bool pinned[MOVED]; /* a profile says it */
} served;

bool sp_planned(sp_options *o, char *why)
{
    trn_plan_assumptions asked = o->args.assumptions;
    for (int i = 0; i < o->calibration.planneds; i++) {
        const app_planned *p = &o->calibration.planned[i];
        double *into = sp_assumption(&o->args.assumptions, p->name);
        if (!into)
            return app_fail(why, "--calibration %.200s: plan.%s: no such assumption; --assumptions lists them",
                            o->calibration.loaded, p->name);
        if (fabs(*sp_assumption(&asked, p->name)) > 0) continue; /* --assume */
        *into = p->value > 0 ? p->value : -1;
    }
    return true;
}

/* ---- serving ---- */

/* The question of a file: its requests at once, and the tokens of its mean request, where it says them. */
static bool add_served(served *s, int file, const io_measured *m, char *why)
{
    sp_job *job = s->job;
    const double measured[] = { m->tpot_s, m->ttft_s };
    trn_plan_args a = job->args;
    a.job = TRN_JOB_DECODE;
    if (m->concurrency >= 1) a.batch = (int64_t)(m->concurrency + 0.5);
    if (m->prompt >= 1) a.prompt = (int64_t)(m->prompt + 0.5);
    if (m->prompt >= 1) a.sequence = (int64_t)(m->prompt + fmax(1, m->answer) + 0.5);
    trn_plan_list list;
    trn_plan best;
    memset(&best, 0, sizeof best);
    if (trn_plan_search(&a, &best, 1, &list) != TRN_OK)
        return app_fail(why, "--calibrate %.200s: %.300s", job->options.measured[file], job->error.text);
    if (!list.legal)
        return app_fail(why, "--calibrate %.200s: no plan serves %lld sequences: %.200s", job->options.measured[file],
                        (long long)a.batch, best.why);
    a.microbatch = best.microbatch;
    for (int first = 0; first < 2; first++) {
        sample *one = &s->sample[s->samples];
        if (!(measured[first] > 0)) continue;
        *one = (sample){ .file = file, .first = first, .args = a, .plan = best, .measured_s = measured[first] };
        s->samples++;
    }
    return true;
}

static trn_status expect(const served *s, int i, const trn_plan_assumptions *with, double *seconds)
{
    const sample *one = &s->sample[i];
    trn_plan_args a = one->args;
    trn_plan p = one->plan;
    a.assumptions = *with;
    const trn_status status = trn_plan_evaluate(&a, &p);
    *seconds = one->first ? p.expected_ttft_s : p.expected_s;
    return status;
}

static trn_status predict(void *user, const double *number, double *predicted)
{
    const served *s = user;
    trn_plan_assumptions with = s->job->args.assumptions;
    trn_status status = TRN_OK;
    for (int k = 0, n = 0; k < MOVED; k++)
        if (!s->pinned[k]) *sp_assumption(&with, moved[k].name) = number[n++];
    for (int i = 0; i < s->samples && status == TRN_OK; i++) status = expect(s, i, &with, &predicted[i]);
    return status;
}

static bool fit_served(served *s, char *why)
{
    sp_job *job = s->job;
    double number[MOVED], low[MOVED], high[MOVED], measured[2 * SP_MEASURED];
    trn_plan_assumptions now = trn_plan_assumptions_default(&job->args.assumptions);
    int numbers = 0;
    for (int k = 0; k < MOVED; k++) {
        if (s->pinned[k]) continue;
        low[numbers] = moved[k].low;
        high[numbers] = moved[k].high;
        number[numbers] = fmin(fmax(*sp_assumption(&now, moved[k].name), moved[k].low), moved[k].high);
        numbers++;
    }
    for (int i = 0; i < s->samples; i++) measured[i] = s->sample[i].measured_s;
    const trn_fit_args fit = { .model = predict,
                               .user = s,
                               .numbers = numbers,
                               .samples = s->samples,
                               .measured = measured,
                               .low = low,
                               .high = high,
                               .is_near = true,
                               .error = &job->error };
    if (s->samples && trn_fit(&fit, number) != TRN_OK) return app_refuse(why, job->error.text);
    for (int k = 0, n = 0; k < MOVED; k++)
        if (!s->pinned[k] && s->samples) *sp_assumption(&job->args.assumptions, moved[k].name) = number[n++];
    return true;
}

/* ---- profiles ---- */

static void pin(served *s, const char *name, double value)
{
    for (int k = 0; k < MOVED; k++) {
        if (strcmp(moved[k].name, name) != 0) continue;
        s->pinned[k] = true;
        *sp_assumption(&s->job->args.assumptions, name) = fmin(fmax(value, moved[k].low), moved[k].high);
    }
}

/* Of a graph on one logical core: bytes of HBM while its DMA was active, of the core's part of HBM's rate; and the use
 * of TensorE's peak while it was active. */
static void add_profile(served *s, const io_measured *m)
{
    const trn_chip_spec *chip = &s->job->own.chip;
    const int lnc = s->job->args.lnc ? s->job->args.lnc : chip->cores_per_logical_core;
    const double rate = chip->hbm_bytes_per_s * lnc / chip->cores;
    if (m->dma_s > 0 && m->hbm_bytes > 0) pin(s, "hbm_share", m->hbm_bytes / m->dma_s / rate);
    if (m->used > 0 && m->active > 0) pin(s, "tensor_share", fmin(1, m->used / m->active));
}

/* ---- all of them ---- */

static const app_column columns[] = {
    { "file", APP_TEXT, "", "" },
    { "time", APP_TEXT, "", "of a token, or to the first one" },
    { "batch", APP_INTEGER, "", "requests at once" },
    { "measured", APP_TEXT, "", "" },
    { "before", APP_TEXT, "", "expected before the fit" },
    { "ratio", APP_REAL, "", "that over measured" },
    { "after", APP_TEXT, "", "expected after the fit" },
    { "ratio", APP_REAL, "", "that over measured" },
};

static bool add_rows(served *s, char *why)
{
    sp_job *job = s->job;
    app_table_start(&job->served, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < s->samples; i++) {
        sample *one = &s->sample[i];
        if (expect(s, i, &job->before, &one->before_s) != TRN_OK ||
            expect(s, i, &job->args.assumptions, &one->after_s) != TRN_OK)
            return app_refuse(why, job->error.text);
        app_row(&job->served);
        app_text(&job->served, "%s", job->options.measured[one->file]);
        app_text(&job->served, "%s", one->first ? "first token" : "token");
        app_integer(&job->served, one->args.batch);
        app_text(&job->served, "%s", sp_time(one->measured_s).text);
        app_text(&job->served, "%s", sp_time(one->before_s).text);
        app_real(&job->served, one->before_s / one->measured_s);
        app_text(&job->served, "%s", sp_time(one->after_s).text);
        app_real(&job->served, one->after_s / one->measured_s);
    }
    return true;
}

/* What nccom-test printed is taken to be an all_reduce over all of the network, where it does not say. */
static bool fit_collectives(sp_job *job, const char *path, char *why)
{
    app_calibration *c = &job->options.calibration;
    const app_calibration_ask ask = { &job->net, TRN_ALL_REDUCE, TRN_BF16, 0, 0 };
    if (c->measured)
        return app_fail(why, "--calibrate %.200s: one output of nccom-test at a time: put the tables into one file",
                        path);
    c->measured = path;
    return app_calibration_fit(c, &ask, why);
}

static bool keep(sp_job *job, char *why)
{
    app_calibration *c = &job->options.calibration;
    const trn_plan_assumptions now = trn_plan_assumptions_default(&job->args.assumptions);
    const trn_plan_assumptions was = trn_plan_assumptions_default(&job->before);
    for (int k = 0; k < MOVED; k++) {
        trn_plan_assumptions a = now, b = was;
        const double x = *sp_assumption(&a, moved[k].name), y = *sp_assumption(&b, moved[k].name);
        if (fabs(x - y) > 1e-9 * y && !app_calibration_plan(c, moved[k].name, x, why)) return false;
    }
    job->options.args.assumptions = job->args.assumptions;
    if (!c->measured) c->measured = job->options.measured[0];
    if (snprintf(c->written, sizeof c->written, "%s.calibration", job->options.measured[0]) >= (int)sizeof c->written)
        return app_fail(why, "--calibrate: the name of the file is too long");
    return true;
}

bool sp_calibrate(sp_job *job, char *why)
{
    static served s;
    const sp_options *o = &job->options;
    memset(&s, 0, sizeof s);
    s.job = job;
    job->before = job->args.assumptions;
    for (int i = 0; i < o->measureds; i++) {
        io_measured m;
        char sentence[IO_WHY];
        if (strcmp(o->measured[i], "-") == 0) {
            m.kind = IO_MEASURED_OTHER; /* standard input is nccom-test's */
        } else if (!io_measured_read(o->measured[i], &m, sentence)) {
            return app_fail(why, "--calibrate %s", sentence);
        }
        if (m.kind == IO_MEASURED_PROFILE) add_profile(&s, &m);
        if (m.kind == IO_MEASURED_SERVING && !add_served(&s, i, &m, why)) return false;
        if (m.kind == IO_MEASURED_OTHER && !fit_collectives(job, o->measured[i], why)) return false;
    }
    if (!o->measureds) return true;
    return fit_served(&s, why) && add_rows(&s, why) && keep(job, why);
}

void sp_print_calibrated(FILE *out, const sp_job *job)
{
    const app_calibration *c = &job->options.calibration;
    trn_plan_assumptions was = trn_plan_assumptions_default(&job->before);
    if (job->served.rows) app_print_table(out, &job->served);
    if (job->served.rows) fputc('\n', out);
    for (int i = 0; i < c->planneds; i++) {
        const double *before = sp_assumption(&was, c->planned[i].name);
        if (fabs(c->planned[i].value - *before) > 1e-9 * *before)
            fprintf(out, "  %-12s %10.4g, %.4g before\n", c->planned[i].name, c->planned[i].value, *before);
    }
    app_calibration_print(out, c);
    fputc('\n', out);
}
