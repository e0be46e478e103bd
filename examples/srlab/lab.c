/* lab.c - all runs: arms x rates x seeds, and everybody who writes what came out.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "srlab.h"

#include <stdlib.h>
#include <string.h>

#include "app/outputs.h"

static void plan_runs(sr_lab *lab)
{
    const sr_settings *s = lab->settings;
    lab->runs = s->arms * s->rates * s->seeds;
    lab->run = sr_room((size_t)lab->runs, sizeof *lab->run);
    for (int i = 0; i < lab->runs; i++) {
        lab->run[i].seed = s->seed + (uint64_t)(i % s->seeds);
        lab->run[i].rate = s->rate[i / s->seeds % s->rates];
        lab->run[i].arm = s->arm[i / s->seeds / s->rates];
    }
}

static void run_all(sr_lab *lab, const void *data)
{
    plan_runs(lab);
    for (int i = 0; i < lab->runs; i++) sr_train(lab->kind, lab->settings, data, &lab->run[i]);
    app_progress_done();
    sr_fill_summary(lab);
    sr_fill_curves(lab);
}

static void free_lab(sr_lab *lab)
{
    for (int i = 0; i < lab->runs; i++) sr_run_free(&lab->run[i]);
    free(lab->run);
    app_table_free(&lab->summary);
    app_table_free(&lab->curves);
}

int sr_lab_run(const sr_kind *kind, const sr_settings *s)
{
    app_output output[] = {
        { .flag = "--csv", .path = s->csv, .write = sr_write_csv },
        { .flag = "--json", .path = s->json, .write = sr_write_json },
        { .flag = "--svg", .path = s->svg, .write = sr_write_svg },
        { .flag = "--html", .path = s->html, .write = sr_write_html },
    };
    const int outputs = (int)(sizeof output / sizeof output[0]);
    sr_lab lab;
    char why[APP_WHY];
    memset(&lab, 0, sizeof lab);
    lab.settings = s;
    lab.kind = kind;
    sr_start_tables(&lab);
    if (s->schema) return app_print_schema(stdout, "srlab", &lab.curves), APP_OK;
    const void *data = kind->data(s, why);
    if (!data) return app_complain(APP_USAGE, "%s", why);
    int status = app_open_outputs(output, outputs);
    if (status == APP_OK) {
        run_all(&lab, data);
        if (!app_output_taken(output, outputs)) sr_print_text(stdout, &lab);
        status = app_write_outputs(output, outputs, &lab);
    }
    free_lab(&lab);
    kind->free_data(data);
    return status;
}
