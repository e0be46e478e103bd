/* main.c - which way to spread a model over a machine? One search, and everybody who writes its answer.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <stdlib.h>
#include <string.h>

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

typedef void writer(const sp_job *job, FILE *out);

static const struct {
    const char *flag;
    size_t path;
    writer *write;
} writers[] = {
    { "--csv", offsetof(sp_options, csv), sp_print_csv },
    { "--json", offsetof(sp_options, json), sp_print_json },
    { "--html", offsetof(sp_options, html), sp_print_report },
    { "--trace", offsetof(sp_options, trace), sp_print_trace },
};
enum { WRITERS = sizeof writers / sizeof writers[0] };

static const char *path_of(const sp_job *job, int i)
{
    const char *path;
    memcpy(&path, (const char *)&job->options + writers[i].path, sizeof path);
    return path;
}

/* Before the work: a path that is wrong should cost nothing. */
static int check_paths(const sp_job *job)
{
    for (int i = 0; i < WRITERS; i++)
        if (app_can_write(writers[i].flag, path_of(job, i)) != APP_OK) return APP_USAGE;
    return APP_OK;
}

typedef struct sp_writing {
    const sp_job *job;
    writer *write;
} sp_writing;

static void write_one(FILE *out, const void *context)
{
    const sp_writing *w = context;
    w->write(w->job, out);
}

static int write_all(const sp_job *job)
{
    bool taken = false;
    for (int i = 0; i < WRITERS; i++) {
        const char *path = path_of(job, i);
        const sp_writing one = { job, writers[i].write };
        if (!path) continue;
        if (app_write_file(writers[i].flag, path, write_one, &one) != APP_OK) return APP_USAGE;
        if (strcmp(path, "-") == 0) taken = true;
        else fprintf(stderr, "%s\n", path);
    }
    if (!taken) sp_print_text(job, stdout);
    if (fflush(stdout) != 0) return app_complain(APP_USAGE, "standard output cannot be written");
    return job->list.legal ? APP_OK : APP_FAILED;
}

int main(int argc, char **argv)
{
    static sp_job job;
    int status = sp_parse(argc - 1, argv + 1, &job.options);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    status = check_paths(&job);
    if (status == APP_OK) status = read_model(&job);
    if (status == APP_OK) status = build_network(&job);
    if (status == APP_OK) status = search(&job);
    if (status == APP_OK) status = write_all(&job);
    free(job.plan);
    return status;
}
