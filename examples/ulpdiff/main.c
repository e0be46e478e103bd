/* main.c - two files, the pairs of arrays in them, what differs and why; and everybody who writes the answer.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/outputs.h"

const char app_name[] = "ulpdiff";

/* ---- opening ---- */

/* .npy files say how wide codes are, never what they mean. */
static bool name_codes(io_arrays *file, trn_format format, char *why)
{
    if (format == TRN_FORMAT_UNSET) return true;
    for (int i = 0; i < file->count; i++) {
        io_array *a = &file->item[i];
        const bool codes = strcmp(a->type, "U8") == 0 || strcmp(a->type, "U16") == 0 || a->type[0] == 'V';
        if (codes && !io_array_as(a, format, why)) return false;
    }
    return true;
}

static int open_side(const char *path, io_arrays *file, trn_format format)
{
    char why[IO_WHY];
    if (!io_arrays_open(path, file, why) || !name_codes(file, format, why)) return app_complain(APP_USAGE, "%s", why);
    return APP_OK;
}

static int open_inputs(ud_job *job)
{
    const ud_options *o = &job->options;
    int count = 0;
    job->input = ud_need((size_t)o->inputs, sizeof *job->input);
    for (int i = 0; i < o->inputs; i++) {
        if (open_side(o->input[i], &job->input[i], o->dtype[2]) != APP_OK) return APP_USAGE;
        count += job->input[i].count;
    }
    job->operand = ud_need((size_t)count, sizeof *job->operand);
    for (int i = 0; i < o->inputs; i++)
        for (int k = 0; k < job->input[i].count; k++) {
            char why[APP_WHY];
            if (!ud_array_open(o->input[i], &job->input[i].item[k], &job->operand[job->operands++], why))
                return app_complain(APP_USAGE, "%s", why);
        }
    return APP_OK;
}

/* ---- pairing ---- */

static void miss(ud_job *job, const char *format, const char *name, const char *detail)
{
    const size_t size = strlen(format) + strlen(name) + strlen(detail);
    char *text = ud_need(size, 1);
    snprintf(text, size, format, name, detail);
    job->missing[job->unmatched++] = text;
}

static bool same_shape(const io_array *a, const io_array *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

static ud_unit pick_unit(const ud_options *o, const ud_array *a, const ud_array *b)
{
    const ud_unit x = ud_unit_of(a), y = ud_unit_of(b);
    ud_unit unit = o->unit_given ? o->unit : ud_unit_significand(&y) < ud_unit_significand(&x) ? y : x;
    const bool own = x.kind == unit.kind && y.kind == unit.kind && x.format == unit.format && y.format == unit.format;
    unit.places = o->places || (!o->codes && !own);
    if (!own && unit.kind != UD_CODES && unit.kind != UD_F64)
        unit.places = true; /* integers of 64 bits have no codes elsewhere */
    return unit;
}

static int pair_up(ud_job *job, const io_array *x, const io_array *y)
{
    ud_pair *p = &job->pair[job->pairs];
    char why[APP_WHY], left[128], right[128];
    p->name = x->name;
    if (!ud_array_open(job->options.a, x, &p->a, why) || !ud_array_open(job->options.b, y, &p->b, why))
        return app_complain(APP_USAGE, "%s", why);
    if (!same_shape(x, y)) {
        char detail[300];
        snprintf(detail, sizeof detail, "%s in A and %s in B", ud_shape(&p->a, left, sizeof left),
                 ud_shape(&p->b, right, sizeof right));
        miss(job, "%s: its shape is %s", x->name, detail);
        ud_array_close(&p->a);
        ud_array_close(&p->b);
        return APP_OK;
    }
    p->unit = pick_unit(&job->options, &p->a, &p->b);
    job->pairs++;
    return APP_OK;
}

static bool wanted(const ud_options *o, const char *name) { return !o->tensor || fnmatch(o->tensor, name, 0) == 0; }

static int pair_all(ud_job *job)
{
    io_arrays *a = &job->side[0], *b = &job->side[1];
    job->pair = ud_need((size_t)a->count + 1, sizeof *job->pair);
    job->missing = ud_need((size_t)a->count + (size_t)b->count + 1, sizeof *job->missing);
    if (a->count == 1 && b->count == 1) { /* whatever they are called */
        if (pair_up(job, &a->item[0], &b->item[0]) != APP_OK) return APP_USAGE;
        if (job->pairs) return APP_OK;
        return app_complain(APP_USAGE, "%s and %s%s", job->options.a, job->options.b, job->missing[0]);
    }
    for (int i = 0; i < a->count; i++) {
        const io_array *x = &a->item[i], *y = wanted(&job->options, x->name) ? io_arrays_find(b, x->name) : NULL;
        if (!wanted(&job->options, x->name)) continue;
        if (!y)
            miss(job, "%s: only in A%s", x->name, "");
        else if (pair_up(job, x, y) != APP_OK)
            return APP_USAGE;
    }
    for (int i = 0; i < b->count; i++)
        if (wanted(&job->options, b->item[i].name) && !io_arrays_find(a, b->item[i].name))
            miss(job, "%s: only in B%s", b->item[i].name, "");
    if (!job->pairs && !job->unmatched)
        return app_complain(APP_USAGE, "--tensor %s: no tensor has such a name",
                            job->options.tensor ? job->options.tensor : "*");
    return APP_OK;
}

/* ---- judging ---- */

static void judge(ud_job *job, const ud_pair *p)
{
    const ud_options *o = &job->options;
    const char *name = p->name[0] ? p->name : o->b;
    if (job->failed[0]) return;
    if (!isnan(o->fail_above) && p->sums.mismatches)
        snprintf(job->failed, sizeof job->failed, "%.120s: NaN or infinity stands against something else", name);
    else if (!isnan(o->fail_above) && p->sums.ulp_max > o->fail_above)
        snprintf(job->failed, sizeof job->failed, "%.120s: %.6g ulps, above %.6g", name, p->sums.ulp_max,
                 o->fail_above);
    else if (!isnan(o->fail_above_rel) && !(p->sums.rel_max <= o->fail_above_rel && !p->sums.mismatches))
        snprintf(job->failed, sizeof job->failed, "%.120s: a relative error of %.6g, above %.6g", name, p->sums.rel_max,
                 o->fail_above_rel);
    else if (!isnan(o->fail_sqnr_below) && !(ud_sqnr(&p->sums) >= o->fail_sqnr_below && !p->sums.mismatches))
        snprintf(job->failed, sizeof job->failed, "%.120s: SQNR is %.2f dB, below %.2f", name, ud_sqnr(&p->sums),
                 o->fail_sqnr_below);
}

static void compare_all(ud_job *job)
{
    const double start = app_now();
    for (int i = 0; i < job->pairs; i++) {
        ud_compare(&job->pair[i]);
        job->bytes += (uint64_t)job->pair[i].a.elements * (job->pair[i].a.item + job->pair[i].b.item);
        judge(job, &job->pair[i]);
    }
    app_progress_done();
    job->seconds = app_now() - start;
}

/* ---- writing ---- */

static int write_all(ud_job *job, app_output *output, int outputs)
{
    if (app_write_outputs(output, outputs, job) != APP_OK) return APP_USAGE;
    if (!app_output_taken(output, outputs)) ud_print_text(stdout, job);
    if (fflush(stdout) != 0) return app_complain(APP_USAGE, "standard output cannot be written");
    return APP_OK;
}

static int verdict(const ud_job *job)
{
    for (int i = 0; i < job->unmatched && i < 20; i++) fprintf(stderr, "ulpdiff: %s\n", job->missing[i]);
    if (job->unmatched > 20) fprintf(stderr, "ulpdiff: and %d more without a partner\n", job->unmatched - 20);
    if (job->bytes > 50000000)
        fprintf(stderr, "%.2f GB in %.2f s: %.2f GB/s\n", 1e-9 * (double)job->bytes, job->seconds,
                1e-9 * (double)job->bytes / job->seconds);
    if (job->failed[0]) return app_complain(APP_FAILED, "%s", job->failed);
    return job->unmatched ? APP_FAILED : APP_OK;
}

static void close_all(ud_job *job)
{
    for (int i = 0; i < job->pairs; i++) {
        ud_array_close(&job->pair[i].a);
        ud_array_close(&job->pair[i].b);
    }
    for (int i = 0; i < job->operands; i++) ud_array_close(&job->operand[i]);
    for (int i = 0; job->input && i < job->options.inputs; i++) io_arrays_close(&job->input[i]);
    for (int i = 0; i < job->unmatched; i++) free((void *)(uintptr_t)job->missing[i]);
    for (int i = 0; i < 2; i++) io_arrays_close(&job->side[i]);
    free(job->missing);
    free(job->pair);
    free(job->operand);
    free(job->input);
    free(job->explanation.list);
    app_table_free(&job->table);
}

static int print_schema(ud_job *job)
{
    ud_fill_table(job);
    app_print_schema(stdout, "ulpdiff --csv", &job->table);
    app_table_free(&job->table);
    return APP_OK;
}

static int answer(ud_job *job)
{
    const ud_options *o = &job->options;
    int status = open_side(o->a, &job->side[0], o->dtype[0]);
    if (status == APP_OK) status = open_side(o->b, &job->side[1], o->dtype[1]);
    if (status == APP_OK && o->inputs) status = open_inputs(job);
    if (status == APP_OK) status = pair_all(job);
    if (status != APP_OK) return status;
    compare_all(job);
    if (o->inputs) status = ud_explain(job);
    if (status == APP_OK) ud_fill_table(job);
    return status;
}

static int run(ud_job *job)
{
    const ud_options *o = &job->options;
    app_output output[] = {
        { .flag = "--json", .path = o->json, .write = ud_print_json },
        { .flag = "--csv", .path = o->csv, .write = ud_print_csv },
        { .flag = "--html", .path = o->html, .write = ud_print_html },
    };
    enum { OUTPUTS = sizeof output / sizeof output[0] };
    int status = app_open_outputs(output, OUTPUTS);
    if (status == APP_OK) status = answer(job);
    if (status == APP_OK) status = write_all(job, output, OUTPUTS);
    app_discard_outputs(output, OUTPUTS);
    return status == APP_OK ? verdict(job) : status;
}

int main(int argc, char **argv)
{
    static ud_job job;
    int status = ud_parse(argc, argv, &job.options);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    status = job.options.schema ? print_schema(&job) : run(&job);
    close_all(&job);
    return status;
}
