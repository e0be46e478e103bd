/* main.c - two files, the pairs of arrays in them, what differs and why; and everybody who writes the answer.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_act.h>
#include <trnmath/trn_collective.h>
#include <trnmath/trn_numerics.h>

#include "app/files.h"

const char app_name[] = "ulpdiff";

/* ---- options ---- */

static bool operand(void *into, const char *word, char *why)
{
    ud_options *o = into;
    if (o->in_inputs) {
        if (o->inputs == UD_INPUTS) return app_refuse(why, "more inputs than there is room for");
        o->input[o->inputs++] = word;
    } else if (!o->a)
        o->a = word;
    else if (!o->b)
        o->b = word;
    else
        return app_refuse(why, "two files are compared; files after --inputs are the operands");
    return true;
}

static bool take_inputs(void *into, const char *value, char *why)
{
    ((ud_options *)into)->in_inputs = true;
    return operand(into, value, why);
}

static bool take_unit(void *into, const char *value, char *why)
{
    ud_options *o = into;
    if (!ud_unit_from_name(value, &o->unit)) return app_refuse(why, "it is not a number format");
    return o->unit_given = true;
}

static bool take_dtype(void *into, const char *value, char *why)
{
    ud_options *o = into;
    trn_format format;
    if (!app_parse_format(value, &format, why)) return false;
    for (int i = 0; i < 3; i++)
        if (o->dtype[i] == TRN_FORMAT_UNSET) o->dtype[i] = format;
    return true;
}

static bool take_op(void *o, const char *value, char *why)
{
    static const char *const name[] = { "matmul", "all_reduce", "reduce_scatter", "cast", "activation" };
    const int op = app_parse_word(value, name, sizeof name / sizeof name[0], why);
    ((ud_options *)o)->op = (ud_op)(op + 1); /* UD_OP_NONE comes first */
    return op >= 0;
}

static bool take_function(void *o, const char *value, char *why)
{
    if (trn_act_from_name(value) == TRN_ACT_COUNT)
        return app_refuse(why, "the Scalar engine has no function of that name");
    ((ud_options *)o)->function = value;
    return true;
}

static bool take_system(void *o, const char *value, char *why)
{
    app_offer_systems();
    if (trn_system_from_name(value) == TRN_SYSTEM_COUNT) return app_refuse(why, "no such system");
    ((ud_options *)o)->system = value;
    return true;
}

static bool take_numerics(void *o, const char *value, char *why)
{
    trn_numerics n;
    ((ud_options *)o)->numerics = value;
    return app_parse_numerics(value, &n, why);
}

#define READ(function, read) APP_READ(function, ud_options, read)
READ(take_dtype_a, app_parse_format(value, &o->dtype[0], why))
READ(take_dtype_b, app_parse_format(value, &o->dtype[1], why))
READ(take_dtype_in, app_parse_format(value, &o->dtype[2], why))
READ(take_wire, app_parse_format(value, &o->wire, why))

/* ---- the command ---- */

static const app_option options[] = {
    { "--ulp-format", "NAME",
      "count in ulps of this format (default: that of the data; of two, the one with fewer bits)", .apply = take_unit },
    { "--codes", NULL,
      "an ulp is a step along the codes: A and B are rounded to the format first\n(default where both sides have it)",
      APP_SETS(ud_options, codes) },
    { "--places", NULL,
      "an ulp is the unit in the last place of A, |B - A| is a fraction of it\n(default where a side has another "
      "format)",
      APP_SETS(ud_options, places) },
    { "--dtype", "NAME",
      "what the codes of .npy files (u1, u2, V1, V2) are: float8_e4m3 (240), float8_e4m3fn\n(448), float8_e5m2, "
      "bfloat16, ...; --dtype-a, --dtype-b, --dtype-inputs for one alone",
      .apply = take_dtype },
    { "--dtype-a", "NAME", "of A", .apply = take_dtype_a },
    { "--dtype-b", "NAME", "of B", .apply = take_dtype_b },
    { "--dtype-inputs", "NAME", "of the inputs", .apply = take_dtype_in },
    { "--tensor", "PATTERN", "only tensors whose names match (*, ?)", APP_TAKES_TEXT(ud_options, tensor) },
    { "--all", NULL, "details of every tensor, not of the worst alone", APP_SETS(ud_options, all) },
    { "--no-map", NULL, "without the map of the differences", APP_SETS(ud_options, no_map) },
    { "--color", NULL, "colours and blocks even where standard output is no terminal", APP_SETS(ud_options, colour) },
    { "--inputs", "FILE ...", "what A and B were computed from; the last files on the line (.npy, .npz, safetensors)",
      .apply = take_inputs },
    { "--a", "FILE", "of a product: the left operand, with --b; the same as --op matmul --inputs A B",
      APP_TAKES_TEXT(ud_options, left) },
    { "--b", "FILE", "the right operand", APP_TAKES_TEXT(ud_options, right) },
    { "--op", "NAME", "how: matmul, all_reduce, reduce_scatter, cast, activation (default: matmul, of one\nfile cast)",
      .apply = take_op },
    { "--numerics", "TEXT", "matmul: one more hypothesis, FIELD=VALUE,...", .apply = take_numerics },
    { "--wire", "NAME", "collectives: only this format between ranks", .apply = take_wire },
    { "--system", "NAME", "collectives: its links, where its chips or cores are as many as the ranks",
      .apply = take_system },
    { "--rank", "N", "reduce_scatter: whose part A and B are (default: 0, or all of them joined)",
      APP_TAKES_INT(ud_options, rank, 0, 1 << 20) },
    { "--function", "NAME", "activation: exp, tanh, gelu, ...", .apply = take_function },
    { "--top", "N", "hypotheses to show (default: 8)", APP_TAKES_INT(ud_options, top, 0, 100000) },
    { "--fail-above", "N", "exit 1 if any distance is above N ulps, or NaN or infinity stands against a number",
      APP_TAKES_REAL(ud_options, fail_above, 0, HUGE_VAL) },
    { "--fail-above-rel", "X", "exit 1 if any relative error is above X",
      APP_TAKES_REAL(ud_options, fail_above_rel, 0, HUGE_VAL) },
    { "--fail-sqnr-below", "DB", "exit 1 if any tensor's SQNR is below",
      APP_TAKES_REAL(ud_options, fail_sqnr_below, -HUGE_VAL, HUGE_VAL) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the text)",
      APP_TAKES_TEXT(ud_options, json) },
    { "--csv", "FILE", "one row per tensor, one header row (- as above)", APP_TAKES_TEXT(ud_options, csv) },
    { "--html", "FILE", "a page with histograms and maps", APP_TAKES_TEXT(ud_options, html) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(ud_options, schema) },
};

static const app_command command = {
    "ulpdiff",
    "usage: ulpdiff A B [options] [--a FILE --b FILE] [--op NAME --inputs FILE ...]",
    "What differs between two arrays or two checkpoints, in ulps; whether it is rounding or a bug, and which; and, "
    "given\n"
    "what they were computed from, why.\n"
    "A is what B is measured against. Files: .npy, .npz, safetensors (also sharded, or a directory); arrays meet by "
    "name.",
    options,
    sizeof options / sizeof options[0],
    "Two NaN are equal, whatever their bits; so are equal infinities. +0 and -0 are 0 ulps apart. Relative errors are "
    "to |A|;\n"
    "SQNR is the energy of A over that of B - A. --inputs comes last: every file after it is an operand.\n"
    "\n"
    "examples:\n"
    "  ulpdiff cpu.npy device.npy\n"
    "  ulpdiff old.safetensors new.safetensors --fail-above 1\n"
    "  ulpdiff cpu.npy device.npy --ulp-format bfloat16 --html report.html\n"
    "  ulpdiff cpu.npy device.npy --a x.npy --b w.npy\n"
    "  ulpdiff sum32.npy grads.npy --op all_reduce --wire bfloat16 --inputs rank0.npy rank1.npy rank2.npy rank3.npy\n"
    "\n"
    "exit status: 0 the same, or rounding; 1 a bug, or a tensor has no partner of its shape; 2 bad usage or bad "
    "input.\n"
    "Where --fail-... sets a limit, limits decide alone between 0 and 1.",
    operand,
};

static int check(ud_options *o)
{
    if (o->schema) return APP_OK;
    if (!o->a || !o->b) return app_complain(APP_USAGE, "which two files? ulpdiff --help tells more");
    if (!o->left != !o->right) return app_complain(APP_USAGE, "--a and --b come together: the operands of a product");
    if (o->left && (o->inputs || (o->op != UD_OP_NONE && o->op != UD_OP_MATMUL)))
        return app_complain(APP_USAGE,
                            "--a and --b are the operands of a product: --inputs and another --op exclude them");
    if (o->left) {
        o->input[o->inputs++] = o->left;
        o->input[o->inputs++] = o->right;
    }
    if (o->places && o->codes) return app_complain(APP_USAGE, "--codes and --places exclude each other");
    if (o->op != UD_OP_NONE && !o->inputs)
        return app_complain(APP_USAGE, "--op needs --inputs: what A and B were computed from");
    if (o->op == UD_OP_NONE && o->inputs) o->op = o->inputs == 1 ? UD_OP_CAST : UD_OP_MATMUL;
    if (o->op == UD_OP_ACTIVATION && !o->function) return app_complain(APP_USAGE, "--op activation needs --function");
    const char *standard[] = { o->json, o->csv, o->html };
    int taken = 0;
    for (int i = 0; i < 3; i++) taken += standard[i] && strcmp(standard[i], "-") == 0;
    if (taken > 1) return app_complain(APP_USAGE, "only one of --json, --csv and --html can have standard output");
    return APP_OK;
}

static int parse_line(int argc, char **argv, ud_options *o)
{
    memset(o, 0, sizeof *o);
    o->top = 8;
    o->rank = -1;
    o->fail_above = o->fail_above_rel = o->fail_sqnr_below = NAN;
    const int status = app_parse_options(&command, o, argc - 1, argv + 1);
    return status == APP_OK ? check(o) : status;
}

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

static bool open_side(const char *path, io_arrays *file, trn_format format, char *why)
{
    return io_arrays_open(path, file, why) && name_codes(file, format, why);
}

static bool open_inputs(ud_job *job, char *why)
{
    const ud_options *o = &job->options;
    int count = 0;
    job->input = app_memory((size_t)o->inputs, sizeof *job->input);
    for (int i = 0; i < o->inputs; i++) {
        if (!open_side(o->input[i], &job->input[i], o->dtype[2], why)) return false;
        count += job->input[i].count;
    }
    job->operand = app_memory((size_t)count, sizeof *job->operand);
    for (int i = 0; i < o->inputs; i++)
        for (int k = 0; k < job->input[i].count; k++)
            if (!ud_array_open(o->input[i], &job->input[i].item[k], &job->operand[job->operands++], why)) return false;
    return true;
}

/* ---- pairing ---- */

static void miss(ud_job *job, const char *format, const char *name, const char *detail)
{
    const size_t size = strlen(format) + strlen(name) + strlen(detail);
    char *text = app_memory(size, 1);
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

static bool pair_up(ud_job *job, const io_array *x, const io_array *y, char *why)
{
    ud_pair *p = &job->pair[job->pairs];
    char left[128], right[128];
    p->name = x->name;
    if (!ud_array_open(job->options.a, x, &p->a, why) || !ud_array_open(job->options.b, y, &p->b, why)) return false;
    if (!same_shape(x, y)) {
        char detail[300];
        snprintf(detail, sizeof detail, "%s in A and %s in B", ud_shape(&p->a, left, sizeof left),
                 ud_shape(&p->b, right, sizeof right));
        miss(job, "%s: its shape is %s", x->name, detail);
        ud_array_close(&p->a);
        ud_array_close(&p->b);
        return true;
    }
    p->unit = pick_unit(&job->options, &p->a, &p->b);
    job->pairs++;
    return true;
}

static bool wanted(const ud_options *o, const char *name) { return !o->tensor || fnmatch(o->tensor, name, 0) == 0; }

static bool pair_all(ud_job *job, char *why)
{
    io_arrays *a = &job->side[0], *b = &job->side[1];
    job->pair = app_memory((size_t)a->count + 1, sizeof *job->pair);
    job->missing = app_memory((size_t)a->count + (size_t)b->count + 1, sizeof *job->missing);
    if (a->count == 1 && b->count == 1) { /* whatever they are called */
        if (!pair_up(job, &a->item[0], &b->item[0], why)) return false;
        if (job->pairs) return true;
        return app_fail(why, "%s and %s%s", job->options.a, job->options.b, job->missing[0]);
    }
    for (int i = 0; i < a->count; i++) {
        const io_array *x = &a->item[i], *y = wanted(&job->options, x->name) ? io_arrays_find(b, x->name) : NULL;
        if (!wanted(&job->options, x->name)) continue;
        if (!y)
            miss(job, "%s: only in A%s", x->name, "");
        else if (!pair_up(job, x, y, why))
            return false;
    }
    for (int i = 0; i < b->count; i++)
        if (wanted(&job->options, b->item[i].name) && !io_arrays_find(a, b->item[i].name))
            miss(job, "%s: only in B%s", b->item[i].name, "");
    if (!job->pairs && !job->unmatched)
        return app_fail(why, "--tensor %s: no tensor has such a name", job->options.tensor ? job->options.tensor : "*");
    return true;
}

/* ---- comparing, and the limits that --fail-... sets ---- */

static void check_limits(ud_job *job, const ud_pair *p)
{
    const ud_options *o = &job->options;
    const char *name = p->name[0] ? p->name : o->b;
    if (job->failed[0]) return;
    if (!isnan(o->fail_above) && p->sums.mismatches)
        app_fail(job->failed, "%.120s: NaN or infinity stands against something else", name);
    else if (!isnan(o->fail_above) && p->sums.ulp_max > o->fail_above)
        app_fail(job->failed, "%.120s: %.6g ulps, above %.6g", name, p->sums.ulp_max, o->fail_above);
    else if (!isnan(o->fail_above_rel) && !(p->sums.rel_max <= o->fail_above_rel && !p->sums.mismatches))
        app_fail(job->failed, "%.120s: a relative error of %.6g, above %.6g", name, p->sums.rel_max, o->fail_above_rel);
    else if (!isnan(o->fail_sqnr_below) && !(ud_sqnr(&p->sums) >= o->fail_sqnr_below && !p->sums.mismatches))
        app_fail(job->failed, "%.120s: SQNR is %.2f dB, below %.2f", name, ud_sqnr(&p->sums), o->fail_sqnr_below);
}

static void compare_all(ud_job *job)
{
    const double start = app_now();
    for (int i = 0; i < job->pairs; i++) {
        ud_compare(&job->pair[i]);
        job->bytes += (uint64_t)job->pair[i].a.elements * (job->pair[i].a.item + job->pair[i].b.item);
        check_limits(job, &job->pair[i]);
    }
    app_progress_done();
    job->seconds = app_now() - start;
}

/* ---- writing ---- */

static int write_all(ud_job *job, app_output *output, int outputs)
{
    if (app_finish_outputs(output, outputs, job) != APP_OK) return APP_USAGE;
    if (!app_output_taken(output, outputs)) ud_print_text(stdout, job); /* it may end the program: no memory */
    return app_flush(APP_OK) == APP_OK ? app_show_outputs(output, outputs) : APP_USAGE;
}

static bool has_limits(const ud_options *o)
{
    return !isnan(o->fail_above) || !isnan(o->fail_above_rel) || !isnan(o->fail_sqnr_below);
}

/* A sentence for each of the first bugs. */
static bool complain_of_bugs(const ud_job *job)
{
    enum { SHOWN = 20 };
    int bugs = 0;
    for (int i = 0; i < job->pairs; i++) {
        const ud_pair *p = &job->pair[i];
        char text[400];
        if (p->verdict.kind != UD_BUG || bugs++ >= SHOWN) continue;
        app_complain(APP_FAILED, "%.120s: a bug: %s", p->name[0] ? p->name : job->options.b,
                     ud_verdict_text(&p->verdict, text, sizeof text));
    }
    if (bugs > SHOWN) app_complain(APP_FAILED, "and %d more with a bug", bugs - SHOWN);
    return bugs > 0;
}

static int verdict(const ud_job *job)
{
    const bool bugs = !has_limits(&job->options) && complain_of_bugs(job);
    for (int i = 0; i < job->unmatched && i < 20; i++) app_complain(APP_FAILED, "%s", job->missing[i]);
    if (job->unmatched > 20) app_complain(APP_FAILED, "and %d more without a partner", job->unmatched - 20);
    if (job->bytes > 50000000)
        fprintf(stderr, "%.2f GB in %.2f s: %.2f GB/s\n", 1e-9 * (double)job->bytes, job->seconds,
                1e-9 * (double)job->bytes / job->seconds);
    if (job->failed[0]) return app_complain(APP_FAILED, "%s", job->failed);
    return bugs || job->unmatched ? APP_FAILED : APP_OK;
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
    free(job->product.a);
    free(job->product.b);
    app_table_free(&job->table);
}

static int print_schema(ud_job *job)
{
    ud_fill_table(job);
    app_print_schema(stdout, "ulpdiff --csv", &job->table);
    app_table_free(&job->table);
    return APP_OK;
}

static bool open_all(ud_job *job, char *why)
{
    const ud_options *o = &job->options;
    if (!open_side(o->a, &job->side[0], o->dtype[0], why) || !open_side(o->b, &job->side[1], o->dtype[1], why))
        return false;
    return (!o->inputs || open_inputs(job, why)) && pair_all(job, why);
}

/* Operands and hypotheses are those of the one pair that was explained. */
static void judge_all(ud_job *job)
{
    const ud_hypothesis *best = job->explained ? ud_best(&job->explanation, 1) : NULL;
    const ud_product *product = job->product.a ? &job->product : NULL;
    const double start = app_now();
    for (int i = 0; i < job->pairs; i++) {
        app_progress("rounding or a bug? %s", job->pair[i].name);
        ud_judge(&job->pair[i], product, best && ud_exact(best, 1) ? best->text : NULL);
    }
    app_progress_done();
    job->judged_s = app_now() - start;
}

static bool answer(ud_job *job, char *why)
{
    const ud_options *o = &job->options;
    compare_all(job);
    if (o->inputs && !ud_explain(job, why)) return false;
    judge_all(job);
    ud_fill_table(job);
    return true;
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
    char why[APP_WHY];
    int status = open_all(job, why) ? app_open_outputs(output, OUTPUTS) : app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK && !answer(job, why)) status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = write_all(job, output, OUTPUTS);
    app_discard_outputs(output, OUTPUTS);
    return status == APP_OK ? verdict(job) : status;
}

int app_run(int argc, char **argv)
{
    static ud_job job;
    int status = parse_line(argc, argv, &job.options);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    status = job.options.schema ? print_schema(&job) : run(&job);
    close_all(&job);
    return status;
}
