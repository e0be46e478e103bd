/* number.c - numbers as people read them.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <string.h>

typedef struct sp_scale_name {
    double size;
    const char *name;
} sp_scale_name;

/* Three digits and the name of the largest unit that is not above the value; of a value below all, the last. */
static sp_text in_units(double value, const sp_scale_name *unit, int units)
{
    sp_text t;
    int i = 0;
    while (i + 1 < units && value < 0.9995 * unit[i].size) i++;
    const double x = value / unit[i].size;
    snprintf(t.text, sizeof t.text, "%.*f %s", x >= 99.95 || x <= 0 ? 0 : x >= 9.995 ? 1 : 2, x, unit[i].name);
    return t;
}

sp_text sp_time(double seconds)
{
    static const sp_scale_name unit[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } };
    return in_units(seconds, unit, 3);
}

sp_text sp_bytes(double bytes)
{
    static const sp_scale_name unit[] = { { 1073741824.0, "GiB" }, { 1048576.0, "MiB" }, { 1024.0, "KiB" } };
    return in_units(bytes, unit, 3);
}

sp_text sp_si(double value)
{
    static const sp_scale_name unit[] = { { 1e18, "E" }, { 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" },
                                          { 1e6, "M" },  { 1e3, "k" },  { 1, "" } };
    sp_text t = in_units(value, unit, 7);
    const size_t n = strlen(t.text);
    if (n && t.text[n - 1] == ' ') t.text[n - 1] = 0;
    return t;
}

sp_text sp_count(int64_t value)
{
    sp_text t;
    app_count(t.text, sizeof t.text, value);
    return t;
}

sp_text sp_percent(double share)
{
    sp_text t;
    if (isfinite(share)) snprintf(t.text, sizeof t.text, "%.1f %%", 100 * share);
    else snprintf(t.text, sizeof t.text, "-");
    return t;
}

sp_text sp_degrees(const trn_plan *p)
{
    const int degree[TRN_AXIS_COUNT] = { p->tp, p->cp, p->ep, p->dp, p->pp };
    sp_text t;
    size_t used = 0;
    t.text[0] = 0;
    for (int i = 0; i < TRN_AXIS_COUNT; i++)
        if (degree[i] > 1)
            used += (size_t)snprintf(t.text + used, sizeof t.text - used, "%s%s %d", used ? ", " : "",
                                     trn_plan_axis_name((trn_plan_axis)i), degree[i]);
    if (!used) snprintf(t.text, sizeof t.text, "one chip");
    return t;
}

const char *sp_unit_of_work(const sp_job *job)
{
    return job->args.job == TRN_JOB_TRAIN ? "step" : job->args.job == TRN_JOB_PREFILL ? "batch of prompts" : "token";
}

void sp_describe_job(const sp_job *job, char *text, size_t room)
{
    const char *what = job->args.job == TRN_JOB_TRAIN     ? "a training step of"
                       : job->args.job == TRN_JOB_PREFILL ? "prefill of"
                                                          : "decode, one token for each of";
    const char *each = job->args.job == TRN_JOB_DECODE ? "with" : "of";
    snprintf(text, room, "%s %s sequence%s %s %s tokens%s", what, sp_count(job->args.batch).text,
             job->args.batch == 1 ? "" : "s", each, sp_count(job->args.sequence).text,
             job->args.job == TRN_JOB_DECODE ? " in the cache" : "");
}

/* How many plans fell for the same sentence as plan i; 0 when an earlier one has told it. */
int64_t sp_told_by(const sp_job *job, int64_t i)
{
    int64_t count = 0;
    for (int64_t k = job->list.legal; k < job->list.kept; k++) {
        if (strcmp(job->plan[k].why, job->plan[i].why) != 0) continue;
        if (k < i) return 0;
        count++;
    }
    return count;
}
