/* train.c - all runs, arms x rates x seeds: each one a training.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "srlab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/files.h"

/* ---- one run: an arm, a rate, a seed ---- */

#if defined(_OPENMP)
#include <omp.h>
#endif

enum { WORTH_THREADS = 1 << 16 }; /* weights: a step of fewer is over before other threads are awake */

typedef struct training {
    const sr_kind *kind;
    const sr_settings *s;
    sr_model *model;
    sr_weights *weights;
    sr_workspace *workspace[SR_SHARDS];
    sr_run *run;
    sr_motion all;
    double loss; /* sum since the last point */
    int64_t count;
} training;

static sr_score add(sr_score a, sr_score b)
{
    const sr_score sum = { a.loss + b.loss, a.right + b.right, a.count + b.count };
    return sum;
}

/* ---- a step ---- */

static sr_score all_shards(training *t, int64_t step)
{
    sr_score part[SR_SHARDS], sum = { 0, 0, 0 };
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 1)
#endif
    for (int i = 0; i < SR_SHARDS; i++) part[i] = t->kind->step(t->model, i, step);
    for (int i = 0; i < SR_SHARDS; i++) sum = add(sum, part[i]);
    return sum;
}

static void step(training *t, int64_t number)
{
    const sr_update how = { sr_rate_at(t->s, t->run->rate, number), t->s->weight_decay, t->s->clip, number };
    sr_weights_cast(t->weights, t->workspace, number);
    const sr_score score = all_shards(t, number);
    t->loss += score.loss;
    t->count += score.count;
    sr_adamw(t->weights, &how);
}

/* ---- validation ---- */

static void validate_group(training *t, int shard, int group, int64_t step_, sr_score *score)
{
    t->workspace[shard]->stream = SR_STREAM(SR_VALIDATE) | (uint64_t)step_ << 28 | (uint64_t)group << 12;
    score[group] = t->kind->validate(t->model, shard, group);
}

static sr_score validate(training *t, int64_t step_)
{
    const int groups = t->kind->groups(t->model);
    sr_score *score = app_memory((size_t)groups, sizeof *score), sum = { 0, 0, 0 };
    sr_weights_cast(t->weights, t->workspace, step_ + 1);
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 1)
#endif
    for (int shard = 0; shard < SR_SHARDS; shard++)
        for (int group = shard; group < groups; group += SR_SHARDS) validate_group(t, shard, group, step_, score);
    for (int i = 0; i < groups; i++) sum = add(sum, score[i]);
    free(score);
    return sum;
}

/* ---- points ---- */

static double quotient(double part, double whole) { return whole > 0 ? part / whole : (double)NAN; }

static void take_point(training *t, int64_t number)
{
    sr_run *run = t->run;
    const sr_score score = validate(t, number);
    const sr_motion motion = sr_take_motion(t->weights);
    sr_point *p = &run->point[run->points++];
    p->step = number;
    p->rate = number ? sr_rate_at(t->s, run->rate, number) : 0;
    p->train = quotient(t->loss, (double)t->count);
    p->valid = run->valid = quotient(score.loss, (double)score.count);
    p->unmoved = quotient(motion.unmoved, motion.updates);
    p->arrived = quotient(motion.along, motion.square);
    run->right = quotient((double)score.right, (double)score.count);
    t->all.updates += motion.updates, t->all.unmoved += motion.unmoved;
    t->all.along += motion.along, t->all.square += motion.square;
    t->loss = 0;
    t->count = 0;
}

static void start(training *t, const sr_kind *kind, const sr_settings *s, const void *data, sr_run *run)
{
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->s = s;
    t->run = run;
    t->model = kind->make(s, run->arm, run->seed, data);
    t->weights = kind->weights(t->model);
    for (int i = 0; i < SR_SHARDS; i++) t->workspace[i] = kind->workspace(t->model, i);
    run->parameters = t->weights->count;
    run->point = app_memory((size_t)(s->steps / s->every + 2), sizeof *run->point);
}

static void finish(training *t)
{
    sr_run *run = t->run;
    run->unmoved = quotient(t->all.unmoved, t->all.updates);
    run->arrived = quotient(t->all.along, t->all.square);
    run->digest = sr_weights_digest(t->weights);
    t->workspace[0]->stream = SR_STREAM(SR_VALIDATE) | (uint64_t)1 << 59;
    if (t->kind->sample && t->s->words) run->sample = t->kind->sample(t->model, t->s->words);
    if (t->kind->export_to && t->s->export_to) t->kind->export_to(t->model);
    t->kind->free(t->model);
}

/* Returns how many there were. */
static int set_threads(int threads)
{
#if defined(_OPENMP)
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
#else
    return threads;
#endif
}

void sr_train(const sr_kind *kind, const sr_settings *s, const void *data, sr_run *run)
{
    static training t;
    const double began = app_now();
    const clock_t cpu = clock();
    const int threads = set_threads(1);
    start(&t, kind, s, data, run);
    if (t.weights->count >= WORTH_THREADS) set_threads(threads);
    take_point(&t, 0);
    for (int64_t i = 1; i <= s->steps; i++) {
        step(&t, i);
        if (i % s->every == 0 || i == s->steps) take_point(&t, i);
        app_progress("%s %s, rate %.3g, seed %llu: step %lld of %lld, loss %.4f", kind->name, run->arm->name, run->rate,
                     (unsigned long long)run->seed, (long long)i, (long long)s->steps, run->valid);
    }
    finish(&t);
    set_threads(threads);
    run->seconds = app_now() - began;
    run->cpu_seconds = (double)(clock() - cpu) / CLOCKS_PER_SEC;
}

void sr_run_free(sr_run *run)
{
    free(run->point);
    free(run->sample);
}

/* ---- all runs, and everybody who writes what came out ---- */

static void plan_runs(sr_lab *lab)
{
    const sr_settings *s = lab->settings;
    lab->runs = s->arms * s->rates * s->seeds;
    lab->run = app_memory((size_t)lab->runs, sizeof *lab->run);
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
    struct io_stage *model = NULL;
    char why[APP_WHY];
    memset(&lab, 0, sizeof lab);
    lab.settings = s;
    lab.kind = kind;
    sr_start_tables(&lab);
    if (s->schema) return app_print_schema(stdout, "srlab", &lab.curves), APP_OK;
    const void *data = kind->data(s, why);
    if (!data) return app_complain(APP_USAGE, "%s", why);
    int status = sr_export_open(s, why) ? app_open_outputs(output, outputs) : app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) {
        run_all(&lab, data);
        status = app_finish_outputs(output, outputs, &lab);
    }
    if (status == APP_OK && !app_output_taken(output, outputs)) sr_print_text(stdout, &lab);
    status = app_flush(status);
    if (status == APP_OK && !sr_export_ready(&model, why)) status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = app_show_staged(model, output, outputs); /* the model and these: all or none */
    sr_export_close();
    app_discard_outputs(output, outputs);
    free_lab(&lab);
    kind->free_data(data);
    return status;
}
