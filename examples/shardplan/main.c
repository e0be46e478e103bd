/* main.c - which way to spread a model over a machine? One search, and everybody who writes its answer.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <stdlib.h>
#include <string.h>

#include "app/outputs.h"
#include "io/hf_config.h"

const char app_name[] = "shardplan";

enum { ROOM = 20000 }; /* plans that are kept; no system has so many */

static int read_model(sp_job *job)
{
    char why[HF_WHY];
    if (!hf_config_read(job->options.config, &job->model, why)) return app_complain(APP_USAGE, "%s", why);
    if (trn_model_size_of(&job->model, &job->size, &job->error) != TRN_OK)
        return app_complain(APP_USAGE, "%s: %s", job->options.config, job->error.text);
    return APP_OK;
}

static int build_network(sp_job *job)
{
    const sp_options *o = &job->options;
    const trn_topology all = trn_topology_preset(o->system, o->preset);
    job->net = all;
    if (all.chips == 0)
        return app_complain(APP_USAGE, "--preset %s: %s has no such preset", o->preset, trn_system_name(o->system));
    if (o->chips && !sp_cut(&all, o->chips, &job->net))
        return app_complain(APP_USAGE, "--chips %lld: no part of %s (%d chips)", (long long)o->chips, all.name,
                           all.chips);
    return APP_OK;
}

static int search(sp_job *job)
{
    job->args = job->options.args;
    job->args.model = &job->model;
    job->args.net = &job->net;
    job->args.error = &job->error;
    if (job->args.batch == 0) job->args.batch = (int64_t)job->net.chips * (job->args.job == TRN_JOB_TRAIN ? 4 : 1);
    job->plan = malloc(ROOM * sizeof *job->plan);
    if (!job->plan) return app_complain(APP_USAGE, "there is not enough memory for %d plans", ROOM);
    if (trn_plan_search(&job->args, job->plan, ROOM, &job->list) != TRN_OK)
        return app_complain(APP_USAGE, "%s", job->error.text);
    return job->options.scaling ? sp_scaling(job) : APP_OK;
}

/* ---- files ---- */

static int write_all(const sp_job *job, app_output *output, int outputs)
{
    if (app_write_outputs(output, outputs, job) != APP_OK) return APP_USAGE;
    for (int i = 0; i < outputs; i++)
        if (output[i].path && strcmp(output[i].path, "-") != 0) fprintf(stderr, "%s\n", output[i].path);
    if (!app_output_taken(output, outputs)) sp_print_text(stdout, job);
    if (fflush(stdout) != 0) return app_complain(APP_USAGE, "standard output cannot be written");
    return job->list.legal ? APP_OK : APP_FAILED;
}

int main(int argc, char **argv)
{
    static sp_job job;
    const sp_options *o = &job.options;
    int status = sp_parse(argc - 1, argv + 1, &job.options);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    app_output output[] = {
        { .flag = "--csv", .path = o->csv, .write = sp_print_csv },
        { .flag = "--json", .path = o->json, .write = sp_print_json },
        { .flag = "--html", .path = o->html, .write = sp_print_report },
        { .flag = "--trace", .path = o->trace, .write = sp_print_trace },
    };
    enum { OUTPUTS = sizeof output / sizeof output[0] };
    status = app_open_outputs(output, OUTPUTS);
    if (status == APP_OK) status = read_model(&job);
    if (status == APP_OK) status = build_network(&job);
    if (status == APP_OK) status = search(&job);
    if (status == APP_OK) status = write_all(&job, output, OUTPUTS);
    app_discard_outputs(output, OUTPUTS);
    free(job.plan);
    return status;
}
