/* main.c - mxq: what quantising real tensors, or values of a distribution, to 8, 6 and 4 bits costs.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "app/files.h"
#include "io/quant/quant.h"

const char app_name[] = "mxq";

enum { MAX_FILES = 64, MAX_DRAWN = 16, MAX_THREADS = 256 };

typedef struct options {
    const char *file[MAX_FILES];
    mxq_synthetic drawn[MAX_DRAWN];
    int files, drawings, threads, sr_bits, plot;
    double sigma, freedom, outlier_share, outlier_factor, budget[MXQ_BUDGETS];
    int budgets;
    int64_t columns;
    uint64_t seed;
    mxq_choice choice;
    trn_format dtype;
    const char *tensor, *json, *csv, *report, *svg;
    bool each, time, schema, theory, list;
    quant_asked asked;
} options;

/* ---- options ---- */

static bool take_file(void *options_, const char *word, char *why)
{
    options *o = options_;
    if (o->files == MAX_FILES) return app_refuse(why, "more than 64 files");
    o->file[o->files++] = word;
    return true;
}

static bool take_law(options *o, mxq_law law, const char *value, char *why)
{
    mxq_synthetic *s = &o->drawn[o->drawings];
    if (o->drawings == MAX_DRAWN) return app_refuse(why, "more than 16 distributions");
    if (!app_parse_int(value, 1, INT64_C(1) << 32, &s->count, why)) return false;
    s->law = law;
    o->drawings++;
    return true;
}

static bool take_outliers(void *options_, const char *value, char *why)
{
    options *o = options_;
    char *end;
    o->outlier_share = strtod(value, &end);
    if (end == value || *end != ':' || !(o->outlier_share > 0 && o->outlier_share <= 1))
        return app_refuse(why, "expected SHARE:FACTOR, such as 0.001:30");
    return app_parse_real(end + 1, 1e-6, 1e6, &o->outlier_factor, why);
}

static bool take_format(void *options_, const char *value, char *why)
{
    mxq_choice *c = &((options *)options_)->choice;
    if (!mxq_format_known(value)) return app_refuse(why, "no such format; --list names them");
    if (c->format_count == 32) return app_refuse(why, "more than 32 formats");
    c->formats[c->format_count++] = value;
    return true;
}

static bool take_cfp8(void *options_, const char *value, char *why)
{
    mxq_choice *c = &((options *)options_)->choice;
    trn_cfp8 *f = &c->cfp8[c->cfp8_count];
    char rest;
    if (c->cfp8_count == 8) return app_refuse(why, "more than 8 of them");
    if (sscanf(value, "%d,%d%c", &f->exponent_bits, &f->bias, &rest) != 2 || f->exponent_bits < 2 ||
        f->exponent_bits > 5 || f->bias < -60 || f->bias > 60 || !trn_cfp8_valid(*f))
        return app_refuse(why, "expected EXPONENT-BITS,BIAS: 2 to 5 and -60 to 60, such as 4,7");
    c->cfp8_count++;
    return true;
}

static bool take_rule(void *options_, const char *value, char *why)
{
    mxq_choice *c = &((options *)options_)->choice;
    const int rule = app_parse_word(value, mxq_rule_name, TRN_MX_SCALE_COUNT, why);
    if (rule >= 0) c->rule[rule] = c->any_rule = true;
    return rule >= 0;
}

static bool take_grain(void *options_, const char *value, char *why)
{
    mxq_choice *c = &((options *)options_)->choice;
    const int grain = app_parse_word(value, mxq_grain_name, MXQ_GRAINS, why);
    if (grain >= 0) c->grain[grain] = c->any_grain = true;
    return grain >= 0;
}

static bool take_rounding(void *options_, const char *value, char *why)
{
    static const char *const word[] = { "rne", "sr", "both" };
    mxq_choice *c = &((options *)options_)->choice;
    const int which = app_parse_word(value, word, 3, why);
    c->nearest = which != 1;
    c->stochastic = which > 0;
    return which >= 0;
}

static bool take_budgets(void *options_, const char *value, char *why)
{
    options *o = options_;
    for (o->budgets = 0; *value; o->budgets++) {
        char *end;
        if (o->budgets == MXQ_BUDGETS) return app_refuse(why, "more than 8 budgets");
        const double bits = o->budget[o->budgets] = strtod(value, &end);
        if (end == value || (*end && *end != ',') || !(bits > 0 && bits <= 64)) break;
        value = *end ? end + 1 : end;
    }
    return *value || o->budgets == 0 ? app_refuse(why, "expected bits with commas between, such as 4.5,8.5") : true;
}

static bool take_dtype(void *o, const char *value, char *why)
{
    return app_parse_format(value, &((options *)o)->dtype, why);
}

APP_READ(take_gaussian, options, take_law(o, MXQ_GAUSSIAN, value, why))
APP_READ(take_laplace, options, take_law(o, MXQ_LAPLACE, value, why))
APP_READ(take_uniform, options, take_law(o, MXQ_UNIFORM, value, why))
APP_READ(take_student, options, take_law(o, MXQ_STUDENT_T, value, why))
APP_READ(take_plot, options, (o->plot = app_parse_word(value, mxq_plot_name, MXQ_PLOTS, why)) >= 0)
APP_READ(take_scale_name, options, quant_ask_scale(&o->asked, value, why))
APP_READ(take_block, options, quant_ask_block(&o->asked, value, why))

static const app_option option[] = {
    { .help = " what is quantised, besides FILEs" },
    { "--gaussian", "N", "N values of the normal distribution", .apply = take_gaussian },
    { "--laplace", "N", "of Laplace's", .apply = take_laplace },
    { "--uniform", "N", "of the uniform one", .apply = take_uniform },
    { "--student-t", "N", "of Student's t, with long tails", .apply = take_student },
    { "--freedom", "NU", "its degrees of freedom (4)", APP_TAKES_REAL(options, freedom, 0.5, 1e6) },
    { "--sigma", "S", "standard deviation, of Student's t the scale (1)", APP_TAKES_REAL(options, sigma, 1e-30, 1e30) },
    { "--outliers", "SHARE:FACTOR", "that share of the values is so many times as large", .apply = take_outliers },
    { "--columns", "K", "values in a row, where K divides their number (4096)",
      APP_TAKES_INT64(options, columns, 1, INT64_C(1) << 32) },
    { "--seed", "N", "of the values and of stochastic rounding (1)", APP_TAKES_UINT64(options, seed, INT64_MAX) },
    { "--tensor", "GLOB", "only the arrays of such names", APP_TAKES_TEXT(options, tensor) },
    { "--dtype", "FORMAT", "what bytes and words of .npy are: float8_e4m3fn, bfloat16, ...", .apply = take_dtype },
    { "--scale-name", "PATTERN",
      "how a weight's scale may be called, with {name} for the weight's name and\n"
      "{base} for that without .weight; may be repeated",
      .apply = take_scale_name },
    { "--block", "RxC", "how large the blocks are that share a scale, where config.json does not say it",
      .apply = take_block },
    { "--no-rules", NULL, "take a scale that is missing for 1", APP_SETS(options, asked.take_for_1) },
    { .help = " how" },
    { "--format", "NAME", "one of --list; may be repeated (all but cFP8)", .apply = take_format },
    { "--cfp8", "BITS,BIAS", "the configurable FP8 of Trainium1, besides", .apply = take_cfp8 },
    { "--rule", "RULE", "of MX scales: NEURON, OCP_FLOOR, ROUND_UP (these three), EVEN, CEIL; may be repeated",
      .apply = take_rule },
    { "--scales", "GRAIN", "of FP8 and INT8: none, tensor, channel or 128x128; may be repeated (tensor)",
      .apply = take_grain },
    { "--rounding", "WHICH", "rne, sr or both (rne)", .apply = take_rounding },
    { "--sr-bits", "N", "random bits of an element, 1 to 32 (32)", APP_TAKES_INT(options, sr_bits, 1, 32) },
    { "--threads", "N", "(all); the numbers do not depend on it", APP_TAKES_INT(options, threads, 1, MAX_THREADS) },
    { .help = " what is shown" },
    { "--each", NULL, "the whole table of each tensor, also of more than three", APP_SETS(options, each) },
    { "--budgets", "LIST", "bits per element that the best ways are named for (4.5,6.5,8.5,16)",
      .apply = take_budgets },
    { "--time", NULL, "how fast each way was", APP_SETS(options, time) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the table)",
      APP_TAKES_TEXT(options, json) },
    { "--csv", "FILE", "the rows as CSV (- likewise)", APP_TAKES_TEXT(options, csv) },
    { "--report", "FILE", "a page of HTML with pictures", APP_TAKES_TEXT(options, report) },
    { "--svg", "FILE", "one picture", APP_TAKES_TEXT(options, svg) },
    { "--plot", "NAME", "which: bars, histogram, crest or sigma (bars)", .apply = take_plot },
    { "--theory", NULL, "ceilings, and where integers and floats meet, beside published figures",
      APP_SETS(options, theory) },
    { "--list", NULL, "the formats", APP_SETS(options, list) },
    { "--schema", NULL, "the columns of JSON and CSV", APP_SETS(options, schema) },
};

static const app_command command = {
    .name = "mxq",
    .usage = "usage: mxq [FILE...] [options]",
    .summary = "Quantises tensors to every format of 19 to 4 bits and back, and says what is lost: the\n"
               "signal-to-quantisation-noise ratio beside what theory expects, relative errors, values that become\n"
               "zero or saturate, and which format is best within how many bits. A FILE is .npy, .npz, .safetensors,\n"
               ".gguf, an index of shards or a directory with one; - is standard input. Blocks and channels are cut\n"
               "along the last axis.",
    .option = option,
    .options = sizeof option / sizeof option[0],
    .notes = "examples:\n"
             "  mxq --gaussian 4194304\n"
             "  mxq model.safetensors --tensor '*.mlp.*' --report report.html\n"
             "  mxq weights.npy --format mxfp4 --format fp8_e4m3 --scales channel --rounding both\n"
             "  mxq --student-t 1048576 --outliers 0.001:30 --svg crest.svg --plot crest\n\n"
             "exit status: 0 all is done, 2 bad usage or bad input, after one sentence.",
    .operand = take_file,
};

/* ---- the work ---- */

static bool gather(const options *o, mxq_sources *s, char *why)
{
    for (int i = 0; i < o->drawings; i++) {
        mxq_synthetic what = o->drawn[i];
        what.sigma = o->sigma, what.freedom = o->freedom, what.seed = o->seed;
        what.outlier_share = o->outlier_share, what.outlier_factor = o->outlier_factor;
        if (!mxq_add_synthetic(s, &what, o->columns, why)) return false;
    }
    for (int i = 0; i < o->files; i++)
        if (!mxq_add_file(s, o->file[i], o->dtype, o->tensor, why)) return false;
    return true;
}

static int default_threads(void)
{
#ifdef _OPENMP
    const int n = omp_get_max_threads();
    return n < MAX_THREADS ? n : MAX_THREADS;
#else
    return 1;
#endif
}

typedef struct picture {
    const mxq_all *all;
    int plot;
} picture;

static void write_svg(FILE *out, const void *context)
{
    const picture *p = context;
    mxq_plot(out, p->all, p->plot, true);
}

static int on_stdout(const options *o)
{
    const char *const path[] = { o->json, o->csv, o->report, o->svg };
    int n = 0;
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) n += path[i] && !strcmp(path[i], "-");
    return n;
}

enum { OUTPUTS = 4 };

static void print_each(FILE *out, const void *all) { mxq_print_text(out, all, true); }
static void print_families(FILE *out, const void *all) { mxq_print_text(out, all, false); }

static int show(const options *o, const mxq_all *all, app_output output[OUTPUTS])
{
    const picture plot = { all, o->plot };
    output[OUTPUTS - 1].context = &plot;
    return app_answer(output, OUTPUTS, all, o->each ? print_each : print_families);
}

static int run(const options *o, const mxq_sources *s, app_output output[OUTPUTS])
{
    static mxq_sweep sweep;
    static mxq_pool pool;
    char why[APP_WHY] = "";
    mxq_job *job = app_memory(1, sizeof *job);
    mxq_result *result = app_memory((size_t)s->count, sizeof *result);
    job->ways = mxq_ways(&o->choice, job->way);
    job->threads = o->threads ? o->threads : default_threads();
    job->sr_bits = o->sr_bits, job->seed = o->seed;
    job->histogram = o->report || (o->svg && o->plot == MXQ_HISTOGRAM);
    bool ok = job->ways > 0 || app_refuse(why, "--scales none: integers need a scale");
    for (int i = 0; ok && i < s->count; i++) ok = mxq_run(job, &s->item[i], &result[i], &pool, why);
    const bool sweeps = o->report || (o->svg && o->plot == MXQ_SIGMA);
    if (ok && sweeps) ok = mxq_sweep_run(&s->item[0], &sweep, why);
    app_progress_done();
    int status = ok ? APP_OK : app_complain(APP_USAGE, "%s", why);
    if (ok) {
        mxq_all all = { .job = job,
                        .result = result,
                        .results = s->count,
                        .budgets = o->budgets,
                        .time = o->time,
                        .pool = &pool,
                        .sweep = sweeps ? &sweep : NULL };
        memcpy(all.budget, o->budget, sizeof all.budget);
        status = show(o, &all, output);
    }
    for (int i = 0; i < s->count; i++) mxq_result_free(&result[i]);
    free(result);
    free(job);
    return status;
}

/* What needs no tensor. */
static bool answered(const options *o)
{
    app_table t;
    if (o->theory && !o->files && !o->drawings) return mxq_print_theory(stdout), true;
    if (o->list) return mxq_list_formats(stdout), true;
    if (!o->schema) return false;
    mxq_empty_table(&t);
    app_print_schema(stdout, "mxq", &t);
    app_table_free(&t);
    return true;
}

int app_run(int argc, char **argv)
{
    options o = { .sigma = 1,
                  .freedom = 4,
                  .outlier_factor = 1,
                  .columns = 4096,
                  .seed = 1,
                  .budget = { 4.5, 6.5, 8.5, 16 },
                  .budgets = 4 };
    mxq_sources s = { .asked = &o.asked };
    char why[APP_WHY] = "";
    const int parsed = app_parse_options(&command, &o, argc - 1, argv + 1);
    if (parsed) return parsed < 0 ? APP_OK : parsed;
    if (answered(&o)) return APP_OK;
    if (!o.files && !o.drawings)
        return app_complain(APP_USAGE, "what shall be quantised? give a FILE or --gaussian N; mxq --help tells more");
    if (on_stdout(&o) > 1)
        return app_complain(APP_USAGE, "only one of --json, --csv, --report and --svg can have standard output");
    app_output output[OUTPUTS] = {
        { .flag = "--json", .path = o.json, .write = mxq_write_json },
        { .flag = "--csv", .path = o.csv, .write = mxq_write_csv },
        { .flag = "--report", .path = o.report, .write = mxq_write_html },
        { .flag = "--svg", .path = o.svg, .write = write_svg },
    };
    int status = gather(&o, &s, why) ? app_open_outputs(output, OUTPUTS) : app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = run(&o, &s, output);
    app_discard_outputs(output, OUTPUTS);
    if (o.theory && !status) fputc('\n', stdout), mxq_print_theory(stdout);
    mxq_close(&s);
    return status;
}
