/* activation.c - subcommand activation: the Scalar engine's functions, how fast they run and how far they err.
 * SPDX-License-Identifier: MIT
 *
 * Each row is one function, number format and size: trnmath's engine model (tables of cubics, as the chip has them) and
 * ideal function, timed in turn with SLEEF's own loops; and the errors of both against MPFR.
 */
#include "activation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/host.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

enum { MAX_FORMATS = 8, MAX_SIZES = 8, MAX_ROUNDS = 1000 };

typedef struct options {
    bool wanted[TRN_ACT_COUNT], any, check_only, speed_only, schema;
    trn_format format[MAX_FORMATS];
    int64_t size[MAX_SIZES];
    int formats, sizes, rounds, between;
    trn_isa isa;
    tb_files files;
} options;

/* ---- options ---- */

static bool take_function(void *options_, const char *value, char *why)
{
    options *o = options_;
    const trn_act op = trn_act_from_name(value);
    if (op == TRN_ACT_COUNT)
        return app_refuse(why, "no such function; NKI's names are meant, such as exp or gelu_apprx_tanh");
    return o->wanted[op] = o->any = true;
}

static bool take_format(void *options_, const char *value, char *why)
{
    static const struct {
        const char *name;
        trn_format format;
    } known[] = {
        { "f32", TRN_F32 }, { "bf16", TRN_BF16 }, { "f16", TRN_F16 }, { "e4m3", TRN_F8_E4M3 }, { "e5m2", TRN_F8_E5M2 }
    };
    options *o = options_;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(value, known[i].name) == 0 && o->formats < MAX_FORMATS)
            return o->format[o->formats++] = known[i].format, true;
    return app_refuse(why, "expected f32, bf16, f16, e4m3 or e5m2, at most eight times");
}

static bool take_size(void *options_, const char *value, char *why)
{
    options *o = options_;
    int64_t size;
    if (!app_parse_int(value, 16, (int64_t)1 << 28, &size, why)) return false;
    if (o->sizes == MAX_SIZES) return app_refuse(why, "more than eight sizes");
    return o->size[o->sizes++] = size, true;
}

static bool take_rounds(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, MAX_ROUNDS, &((options *)o)->rounds, why);
}

static bool take_between(void *o, const char *value, char *why)
{
    return app_parse_number(value, 0, 65535, &((options *)o)->between, why);
}

static bool take_isa(void *o, const char *value, char *why) { return app_parse_isa(value, &((options *)o)->isa, why); }

static const app_option activation_options[] = {
    { "--function", "NAME", "only this one, by NKI's name (repeatable; default: all)", .apply = take_function },
    { "--format", "NAME", "of the numbers: f32, bf16, f16, e4m3, e5m2 (repeatable; default: f32, bf16)",
      .apply = take_format },
    { "--size", "N", "elements (repeatable; default: 65536, in the caches)", .apply = take_size },
    { "--check", NULL, "errors only, no speed", APP_SETS(options, check_only) },
    { "--speed", NULL, "speed only, no errors", APP_SETS(options, speed_only) },
    { "--between", "N", "binary32 numbers tried between neighbouring bfloat16 numbers (default: 3; all: 65535)",
      .apply = take_between },
    { "--rounds", "N", "rounds of measurement (default: 9)", .apply = take_rounds },
    { "--isa", "NAME", "kernels by a name of TRN_ISA (default: the best this host has)", .apply = take_isa },
    { "--report", "FILE", "one HTML page with the error of every function as a picture",
      APP_TAKES_TEXT(options, files.report) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the table)",
      APP_TAKES_TEXT(options, files.json) },
    { "--csv", "FILE", "one row per function x format x size, one header row (- as above)",
      APP_TAKES_TEXT(options, files.csv) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(options, schema) },
};

static const app_command activation_command = {
    "trnbench activation",
    "usage: trnbench activation [options]",
    "The Scalar engine's functions on this host, one thread: trnmath's engine model and ideal function beside SLEEF,\n"
    "and the largest errors of both within the range that NKI documents, against MPFR.",
    activation_options,
    sizeof activation_options / sizeof activation_options[0],
    "The engine model is what the chip computes: its errors belong to it. Ratios are medians over the rounds of "
    "ratios\n"
    "to SLEEF's own loops within a round; rates are those of the best round.",
    NULL,
};

/* ---- rows ---- */

static const app_column columns[] = {
    { "function", APP_TEXT, "", "NKI's name" },
    { "format", APP_TEXT, "", "of the numbers, in and out" },
    { "elements", APP_INTEGER, "", "of one call" },
    { "engine", APP_REAL, "Gelem/s", "the engine model" },
    { "ideal", APP_REAL, "Gelem/s", "the ideal function (finz_ entry points of SLEEF)" },
    { "sleef", APP_REAL, "Gelem/s", "SLEEF u10, AVX-512, loops without anything else" },
    { "engine_ratio", APP_REAL, "", "engine model over SLEEF" },
    { "ideal_ratio", APP_REAL, "", "ideal function over SLEEF" },
    { "engine_relative", APP_REAL, "", "largest relative error of the engine model, binary32" },
    { "engine_at", APP_REAL, "", "there" },
    { "engine_absolute", APP_REAL, "", "its largest absolute error" },
    { "engine_ulp", APP_REAL, "ulp", "its largest error in units of the last place" },
    { "ideal_ulp", APP_REAL, "ulp", "largest error of the ideal function" },
    { "ideal_at", APP_REAL, "", "there" },
    { "compared", APP_INTEGER, "", "binary32 numbers behind the errors" },
};

static void error_cells(app_table *table, const tb_act_result *r)
{
    const double none = (double)NAN;
    app_real(table, r->engine.there ? r->engine.max_relative : none);
    app_real(table, r->engine.there ? (double)r->engine.at_relative : none);
    app_real(table, r->engine.there ? r->engine.max_absolute : none);
    app_real(table, r->engine.there ? r->engine.max_ulp : none);
    app_real(table, r->ideal.there ? r->ideal.max_ulp : none);
    app_real(table, r->ideal.there ? (double)r->ideal.at_ulp : none);
    app_integer(table, r->engine.compared);
}

static int row(app_table *table, const tb_act_job *job, bool timed, const tb_act_result *result)
{
    const double none = (double)NAN;
    tb_act_speed s = { none, none, none, none, none };
    const int status = timed ? tb_act_race(job, &s) : APP_OK;
    if (status != APP_OK) return status;
    app_row(table);
    app_text(table, "%s", trn_act_name(job->op));
    app_text(table, "%s", trn_format_name(job->format));
    app_integer(table, job->elements);
    app_real(table, 1e-9 * s.engine);
    app_real(table, 1e-9 * s.ideal);
    app_real(table, 1e-9 * s.sleef);
    app_real(table, s.engine_ratio);
    app_real(table, s.ideal_ratio);
    error_cells(table, result);
    return APP_OK;
}

static int run(app_table *table, const options *o, trn_act op, tb_act_result *result)
{
    memset(result, 0, sizeof *result);
    result->op = op;
    if (!o->speed_only) {
        tb_act_judge(op, TRN_ACT_MATH_ENGINE, o->isa, o->between, &result->engine);
        tb_act_judge(op, TRN_ACT_MATH_SLEEF, o->isa, o->between, &result->ideal);
    }
    for (int f = 0; f < o->formats; f++)
        for (int s = 0; s < o->sizes; s++) {
            const tb_act_job job = { op, o->format[f], o->size[s], o->isa, o->rounds };
            const int status = row(table, &job, !o->check_only, result);
            if (status != APP_OK) return status;
        }
    return APP_OK;
}

/* ---- output ---- */

static void write_csv(FILE *out, const void *page) { app_print_csv(out, ((const tb_act_page *)page)->table); }

static void write_json(FILE *out, const void *page)
{
    fprintf(out, "{\n  \"schema\": \"trnbench.activation\",\n  \"schema_version\": \"1.0.0\",\n");
    app_print_json_pair(out, "version", TRN_VERSION);
    app_print_json_pair(out, "processor", tb_host_processor());
    app_print_json_pair(out, "compiler", TB_COMPILER);
    app_print_json_pair(out, "peer", tb_sleef_version());
    fputs("  \"results\": ", out);
    app_print_json_rows(out, ((const tb_act_page *)page)->table, 2);
    fputs("\n}\n", out);
}

static void fill_defaults(options *o)
{
    if (!o->formats) o->format[o->formats++] = TRN_F32, o->format[o->formats++] = TRN_BF16;
    if (!o->sizes) o->size[o->sizes++] = 65536;
    for (int i = 0; i < TRN_ACT_COUNT; i++) o->wanted[i] = o->wanted[i] || !o->any;
#if defined(_OPENMP)
    omp_set_num_threads(1);
#endif
}

static int run_all(app_table *table, options *o)
{
    static tb_act_result result[TRN_ACT_COUNT];
    int status = APP_OK, results = 0, of = 0;
    for (int op = 0; op < TRN_ACT_COUNT; op++) of += o->wanted[op];
    for (int op = 0; op < TRN_ACT_COUNT && status == APP_OK; op++) {
        if (!o->wanted[op]) continue;
        tb_stage(results + 1, of, "%s", trn_act_name((trn_act)op));
        status = run(table, o, (trn_act)op, &result[results++]);
    }
    app_progress_done();
    if (status != APP_OK) return status;
    const tb_act_page page = { table, result, results, app_isa_used(o->isa) };
    if (!tb_stdout_taken(&o->files)) app_print_table(stdout, table);
    return tb_write_files(&o->files, write_csv, write_json, tb_print_activation_report, &page);
}

int tb_main_activation(int argc, char **argv)
{
    options o;
    app_table table;
    memset(&o, 0, sizeof o);
    o.rounds = 9;
    o.between = 3;
    int status = app_parse_options(&activation_command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (tb_refuse_isa() != APP_OK) return APP_USAGE;
    if (o.check_only && o.speed_only) return app_complain(APP_USAGE, "--check and --speed exclude each other");
    if (tb_open_files(&o.files) != APP_OK) return APP_USAGE;
    fill_defaults(&o);
    app_table_start(&table, columns, (int)(sizeof columns / sizeof columns[0]));
    if (o.schema)
        app_print_schema(stdout, "trnbench.activation", &table);
    else
        status = run_all(&table, &o);
    tb_discard_files(&o.files);
    app_table_free(&table);
    return status;
}
