/* times.c - times that somebody printed after a run on devices, beside what is expected.
 * SPDX-License-Identifier: MIT
 *
 * A figure passes within the factor that the models aim at: 1.5 for collectives from 1 MiB, 2.5 for smaller ones, 1.4
 * for the steps of a training run and the tokens of a served model. `collective --published` and
 * `shardplan --published` print the same rows with their bounds and with what a fit without the row predicts.
 */
#include "conformance.h"
#include "published/collectives.h"
#include "published/jobs.h"

#define CF_TIMES(x, factor) CF_WITHIN(x, (x) / (factor), (x) * (factor))

/* ---- collectives ---- */

static void collective(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const published_collective *row = v->about;
    const trn_topology net = published_net(row);
    const trn_calibration calibration = trn_calibration_of_release(row->release);
    int chip[PUBLISHED_CHIPS];
    trn_collective_args ask = published_ask(row, &net, chip);
    trn_cost cost;
    (void)o;
    ask.calibration = &calibration;
    if (trn_collective_cost(&ask, &cost) != TRN_OK)
        cf_fail(a, "the collective is refused");
    else
        a->got = 1e6 * cost.expected_s;
}

/* Rows that pass by more than the factor, and ours. Of rows in published/ that say why, that is the reason. */
static const struct {
    trn_system system;
    trn_collective op;
    int64_t bytes;
    double ours;
    const char *why;
} far_collectives[] = {
    { TRN_TRN2_48XLARGE, TRN_ALL_REDUCE, 8192, 12.2, NULL },
    { TRN_TRN2_48XLARGE, TRN_ALL_REDUCE, 131072, 14.9, NULL },
    { TRN_TRN2_48XLARGE, TRN_ALL_REDUCE, 2097152, 50.3, NULL },
    { TRN_TRN2_48XLARGE, TRN_ALL_REDUCE, 33554432, 542, NULL },
    { TRN_TRN1_32XLARGE, TRN_PERMUTE, 33554432, 509,
      "two pairs that swap at once; nobody has published a second permute to tell their shares of the memory from" },
};

static void add_far(cf_vector *v, const published_collective *row)
{
    for (size_t i = 0; i < sizeof far_collectives / sizeof far_collectives[0]; i++) {
        if (far_collectives[i].system != row->system || far_collectives[i].op != row->op ||
            far_collectives[i].bytes != row->bytes)
            continue;
        v->ours = far_collectives[i].ours;
        v->slack = 0.01;
        v->known = row->outside ? row->outside : far_collectives[i].why;
    }
}

static void add_collectives(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_COLLECTIVES; i++) {
        const published_collective *row = &published_collectives[i];
        const char *system = trn_system_name(row->system), *op = trn_collective_name(row->op);
        const int ranks = row->chips * row->ranks_per_chip;
        cf_vector v = { .id = cf_id(list, "time.%s.%s.%s.r%d.%lld", op, system, trn_release_name(row->release), ranks,
                                    (long long)row->bytes),
                        .what = cf_text(list, "%s, %d ranks of %s, %lld bytes each", op, ranks, system,
                                        (long long)row->bytes),
                        .unit = "us",
                        CF_TIMES(row->us, row->bytes >= 1 << 20 ? 1.5 : 2.5),
                        .kind = CF_MEASURED,
                        .source = row->source,
                        .test = collective,
                        .about = row };
        add_far(&v, row);
        cf_add(list, v);
    }
}

/* ---- training runs and served models ---- */

static void job(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    const published_job *row = v->about;
    const trn_topology net = published_job_net(row);
    const trn_plan_args ask = published_job_ask(row, &net);
    trn_plan plan = published_job_plan(row);
    (void)o;
    if (trn_plan_evaluate(&ask, &plan) != TRN_OK)
        cf_fail(a, "the plan is refused");
    else if (!plan.legal)
        cf_fail(a, "%.200s", plan.why);
    else
        a->got = 1e3 * plan.expected_s;
}

/* The same of jobs. */
static const struct {
    const char *model;
    int64_t batch, prompt;
    double ours;
    const char *why;
} far_jobs[] = {
    { "Llama-3-8B", 32, 1500, 14.32, "attention is expected to take one floor, however many sequences there are" },
    { "Qwen3-30B-A3B", 8, 1500, 14.13, "the same; and which experts are the busiest nobody has published" },
    { "bert-large", 524288, 512, 34332, "the page's rate in tokens is half that of its sequences of 128" },
};

static void add_far_job(cf_vector *v, const published_job *row)
{
    for (size_t i = 0; i < sizeof far_jobs / sizeof far_jobs[0]; i++) {
        if (strcmp(far_jobs[i].model, row->model->name) != 0 || far_jobs[i].batch != row->batch ||
            far_jobs[i].prompt != row->prompt)
            continue;
        v->ours = far_jobs[i].ours;
        v->slack = 0.01;
        v->known = far_jobs[i].why;
    }
}

static void add_jobs(cf_list *list)
{
    for (int i = 0; i < PUBLISHED_JOBS; i++) {
        const published_job *row = &published_jobs[i];
        const char *name = row->model->name, *system = trn_system_name(row->system);
        const bool train = row->job == TRN_JOB_TRAIN;
        const double ms = 1e3 * published_job_s(row);
        cf_vector v = { .id = cf_id(list, "time.%s.%s.%dx%s.tp%d.dp%d.pp%d.b%lld.s%lld-%lld", trn_job_name(row->job),
                                    name, row->instances, system, row->tp, row->dp, row->pp, (long long)row->batch,
                                    (long long)row->prompt, (long long)row->answer),
                        .what = cf_text(list, "%s of %s, batch %lld, on %d %s", train ? "a step" : "a token", name,
                                        (long long)row->batch, row->instances, system),
                        .unit = "ms",
                        CF_TIMES(ms, i < PUBLISHED_FITTED ? 1.4 : 1.5),
                        .kind = CF_MEASURED,
                        .source = row->source,
                        .test = job,
                        .about = row };
        add_far_job(&v, row);
        cf_add(list, v);
    }
}

void cf_fill_times(cf_list *list)
{
    add_collectives(list);
    add_jobs(list);
}
