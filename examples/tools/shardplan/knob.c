/* knob.c - numbers of a job that can be moved: by name, what they are now, and the job with one of them changed.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <string.h>

/* ---- all of them ---- */

static const char *const factor_name[SP_FACTORS] = { "link_rate", "link_latency", "dma_start", "hbm_rate" };

#define LARGEST 4294967296.0
static const struct {
    const char *name, *unit;
    double most;
} count[] = { { "chips", "chips", 1 << 27 }, { "batch", "sequences", LARGEST }, { "seq", "tokens", LARGEST } };
enum { COUNTS = sizeof count / sizeof count[0], CHIPS = 0, BATCH = 1 };

static bool named(sp_knob *k, sp_kind kind, int index, const char *before, const char *name, const char *unit)
{
    k->kind = kind;
    k->index = index;
    k->unit = unit;
    snprintf(k->name, sizeof k->name, "%s%s", before, name);
    return true;
}

bool sp_knob_at(int i, sp_knob *k)
{
    trn_spec_field f;
    if (i < 0) return false;
    if (i < SP_FACTORS) return named(k, SP_FACTOR, i, "", factor_name[i], "times");
    i -= SP_FACTORS;
    if (i < COUNTS) return named(k, SP_COUNT, i, "", count[i].name, count[i].unit);
    i -= COUNTS;
    if (trn_plan_assumption_at(i, &f)) return named(k, SP_ASSUMED, i, "", f.field, f.unit);
    for (int n = 0; trn_plan_assumption_at(n, &f); n++) i--;
    return trn_calibration_field_at(i, &f) && named(k, SP_CALIBRATED, i, "calibration.", f.field, f.unit);
}

/* ---- what they are ---- */

/* A struct of doubles, in the order of its fields. */
static double calibrated(const trn_calibration *c, int index)
{
    double value[sizeof *c / sizeof(double)];
    memcpy(value, c, sizeof value);
    return value[index];
}

static void calibrate(trn_calibration *c, int index, double x)
{
    double value[sizeof *c / sizeof(double)];
    memcpy(value, c, sizeof value);
    value[index] = x;
    memcpy(c, value, sizeof value);
}

double sp_knob_value(const sp_job *job, const sp_knob *k)
{
    trn_plan_assumptions a = trn_plan_assumptions_default(&job->options.args.assumptions);
    const double counted[COUNTS] = { job->net.chips, (double)job->args.batch, (double)job->args.sequence };
    if (k->kind == SP_ASSUMED) return *sp_assumption(&a, k->name);
    if (k->kind == SP_CALIBRATED) return calibrated(&job->options.calibration.now, k->index);
    return k->kind == SP_COUNT ? counted[k->index] : 1;
}

/* ---- another value ---- */

static bool set_count(sp_options *o, int index, double x, char *why)
{
    int64_t *const field[COUNTS] = { &o->chips, &o->args.batch, &o->args.sequence };
    if (!(x >= 1 && x <= count[index].most) || x != floor(x))
        return app_fail(why, "expected a whole number from 1 to %.0f", count[index].most);
    *field[index] = (int64_t)x;
    return true;
}

/* Zero means the default to the library, and a negative number zero. */
static bool set(sp_options *o, const sp_knob *k, double x, char *why)
{
    if (k->kind == SP_COUNT) return set_count(o, k->index, x, why);
    if (k->kind == SP_FACTOR && !(x >= 1e-3 && x <= 1e3))
        return app_refuse(why, "expected a factor from 0.001 to 1000");
    if (k->kind == SP_CALIBRATED && strcmp(k->unit, "share") == 0 && !(x >= 1e-6 && x <= 1))
        return app_refuse(why, "expected a share from 0.000001 to 1");
    if (k->kind == SP_FACTOR) o->factor[k->index] = x;
    if (k->kind == SP_ASSUMED) *sp_assumption(&o->args.assumptions, k->name) = x > 0 ? x : -1;
    if (k->kind == SP_CALIBRATED) calibrate(&o->calibration.now, k->index, x);
    return true;
}

bool sp_knob_turn(const sp_job *job, const sp_knob *k, double value, sp_job *one, char *why)
{
    *one = *job;
    one->plan = NULL;
    one->row = NULL;
    one->swing = NULL;
    one->point = NULL;
    return set(&one->options, k, value, why) && sp_settle(one, why);
}

/* ---- the whole run ---- */

bool sp_any_legal(const sp_job *job)
{
    bool any = job->list.legal > 0;
    if (sp_pareto_asked(&job->options)) return sp_pareto_met(job);
    for (int i = 0; i < job->options.sweep.values; i++) any = any || job->row[i].legal;
    return any;
}

int sp_whatif_check(const sp_options *o)
{
    const int tables = (o->sweep.values > 0) + o->tornado + sp_pareto_asked(o) + (o->serving.rates > 0);
    if (o->sweep.values && o->tornado)
        return app_complain(APP_USAGE, "--sweep and --tornado exclude each other: one table at a time");
    if (tables > 1)
        return app_complain(APP_USAGE,
                            "--sweep, --tornado, --arrivals and --pareto or a target exclude each other: one "
                            "table at a time");
    if (o->published && (sp_pareto_asked(o) || o->serving.rates))
        return app_complain(APP_USAGE, "--published excludes --arrivals, --pareto and targets: one table at a time");
    if (o->published && (o->sweep.values || o->tornado))
        return app_complain(APP_USAGE, "--published excludes --sweep and --tornado: one table at a time");
    return APP_OK;
}
