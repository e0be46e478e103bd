/* main.c - the conformance kit: every published figure we know, beside ours.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"

#include <stdlib.h>

#include "app/files.h"

#include "twin/host.h"

const char app_name[] = "conformance";

const cf_chapter cf_chapters[CF_COUNT_OF_CHAPTERS] = {
    { "Number formats",
      "Codes and values of every format, against vectors that other codecs and MPFR agree on, on each instruction set; "
      "limits as the standards print them; the two FP8 formats that share a name.",
      cf_fill_formats },
    { "Rounding and random numbers",
      "Sums that stagnate under nearest even and move under stochastic rounding; generators by their published "
      "answers.",
      cf_fill_rounding },
    { "The tensor engine, by devices",
      "What Trainium and Inferentia devices printed, with trnmath's default numerics; what was concluded from such "
      "prints.",
      cf_fill_devices },
    { "Other makers' matrix units",
      "The same tiles and casts with other makers' adders return what their chips returned, bit for bit.",
      cf_fill_matrix_units },
    { "Vector, Scalar, GpSimd and DMA engines", "Examples of instruction pages, and errors measured on devices.",
      cf_fill_engines },
    { "Block scaling (MX)", "Blocks against two other quantisers; signal to quantisation noise as published.",
      cf_fill_mx },
    { "Clocks and cycles", "Peaks by clock beside those printed, instructions by the documented formulas, transfers.",
      cf_fill_cost },
    { "Machines and their wiring", "Chips and systems: totals as their pages print them; distances and cuts.",
      cf_fill_machines },
    { "Collectives", "Bounds, steps, switch-over sizes, bus bandwidths; what rounding at every hop does to a gradient.",
      cf_fill_collectives },
    { "Models", "Parameters counted from a configuration, against the published checkpoints.", cf_fill_models },
    { "Times, as they were printed after runs",
      "What is expected of collectives, training steps and tokens, within the factor that the models aim at.",
      cf_fill_times },
};

/* ---- options ---- */

static const app_option option_list[] = {
    { "--only", "PATTERN", "vectors whose name holds PATTERN; * stands for anything: 'format.*.avx2'",
      APP_TAKES_TEXT(cf_options, only) },
    { "--list", NULL, "the names, and run nothing", APP_SETS(cf_options, list) },
    { "--all", NULL, "print every vector, not only what fails", APP_SETS(cf_options, all) },
    { "--long", NULL, "also the sweeps that take minutes", APP_SETS(cf_options, longer) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the tables)",
      APP_TAKES_TEXT(cf_options, json) },
    { "--csv", "FILE", "one row per vector, one header row (- as above)", APP_TAKES_TEXT(cf_options, csv) },
    { "--html", "FILE", "one page, with nothing loaded from anywhere (- as above)", APP_TAKES_TEXT(cf_options, html) },
    { "--golden", "DIR", "reference vectors of codecs and units (default: what it was built with)",
      APP_TAKES_TEXT(cf_options, golden) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(cf_options, schema) },
};

static const app_command command = {
    "conformance",
    "usage: conformance [options]",
    "Computes every published figure we know of and prints it beside the published one: codecs, rounding, what "
    "devices\n"
    "and other makers' matrix units returned, errors of functions, cycles, rates, totals, collectives, models, times.",
    option_list,
    sizeof option_list / sizeof option_list[0],
    "A figure passes when ours is as near as the figure was rounded, or as a statistic wanders. A known difference is\n"
    "a published figure that we do not meet, with the reason; ours has to stay what it is. Kinds of figures: "
    "documented\n"
    "(the vendor's pages and code), measured (printed after a run on a device), paper, calculated (from definitions).\n"
    "\n"
    "  conformance --html page.html          the page a sceptic reads first\n"
    "  conformance --only sr --all           stochastic rounding, each vector\n"
    "\n"
    "Exit status: 0 all pass, 1 a failure, 2 bad usage or bad input.",
    NULL,
};

static int check_options(const cf_options *o)
{
    const char *const path[] = { o->json, o->csv, o->html };
    int standard = 0;
    for (int i = 0; i < 3; i++) standard += path[i] && strcmp(path[i], "-") == 0;
    if (standard > 1) return app_complain(APP_USAGE, "only one of --json, --csv and --html can be -");
    return APP_OK;
}

/* '*' is any text; the pattern may stand anywhere in the name. */
static bool matches(const char *pattern, const char *name)
{
    if (!*pattern) return true;
    if (*pattern == '*') {
        while (*pattern == '*') pattern++;
        for (; *name; name++)
            if (matches(pattern, name)) return true;
        return !*pattern;
    }
    return *pattern == *name && matches(pattern + 1, name + 1);
}

static bool wanted(const cf_options *o, const cf_vector *v)
{
    if (v->slow && !o->longer) return false;
    if (!o->only) return true;
    for (const char *at = v->id; *at; at++)
        if (matches(o->only, at)) return true;
    return false;
}

/* ---- running ---- */

static cf_result run(const cf_vector *v, const cf_options *o)
{
    cf_result r;
    memset(&r, 0, sizeof r);
    r.vector = v;
    const double start = app_now();
    if (v->isa != TRN_ISA_AUTO && !trn_isa_supported(v->isa))
        cf_skip(&r.answer, "this host has no %s", trn_isa_text(v->isa));
    else
        v->test(v, o, &r.answer);
    r.seconds = app_now() - start;
    r.status = cf_judge(v, &r.answer);
    return r;
}

static void write_json(FILE *out, const void *context)
{
    const cf_report *report = context;
    const cf_tally all = cf_tally_of(report, -1);
    app_table table;
    cf_table(&table, report);
    fprintf(out, "{\n  \"context\": {\n");
    app_print_json_pair(out, "program", app_name);
    app_print_json_pair(out, "version", TRN_VERSION);
    app_print_json_pair(out, "isa", trn_isa_name());
    fprintf(out,
            "    \"pass\": %lld,\n    \"fail\": %lld,\n    \"known_difference\": %lld,\n    \"skipped\": %lld\n  },\n",
            (long long)all.status[CF_PASS], (long long)all.status[CF_FAIL], (long long)all.status[CF_KNOWN],
            (long long)all.status[CF_SKIPPED]);
    fprintf(out, "  \"vectors\": ");
    app_print_json_rows(out, &table, 2);
    fprintf(out, "\n}\n");
    app_table_free(&table);
}

static void write_csv(FILE *out, const void *context)
{
    app_table table;
    cf_table(&table, context);
    app_print_csv(out, &table);
    app_table_free(&table);
}

static void write_html(FILE *out, const void *context) { cf_write_page(out, context); }

/* Files appear last: what comes before may end the program for lack of memory. */
static int show(const cf_report *report, app_output *output, int outputs)
{
    if (app_finish_outputs(output, outputs, report) != APP_OK) return APP_USAGE;
    if (!app_output_taken(output, outputs)) cf_print(stdout, report);
    return app_show_outputs(output, outputs);
}

static int run_all(const cf_list *list, const cf_options *o)
{
    app_output output[] = {
        { .flag = "--json", .path = o->json, .write = write_json },
        { .flag = "--csv", .path = o->csv, .write = write_csv },
        { .flag = "--html", .path = o->html, .write = write_html },
    };
    enum { OUTPUTS = sizeof output / sizeof output[0] };
    app_reads_folder(o->golden);
    if (app_open_outputs(output, OUTPUTS) != APP_OK) return APP_USAGE;
    cf_result *result = app_memory((size_t)list->count + 1, sizeof *result);
    cf_report report = { o, result, 0, 0 };
    const double start = app_now();
    int failed = 0;
    for (int i = 0; i < list->count; i++) {
        if (!wanted(o, &list->vector[i])) continue;
        app_progress("%s", list->vector[i].id);
        result[report.count] = run(&list->vector[i], o);
        failed += result[report.count++].status == CF_FAIL;
    }
    app_progress_done();
    report.seconds = app_now() - start;
    const int status = show(&report, output, OUTPUTS);
    free(result);
    return status != APP_OK ? status : failed ? APP_FAILED : APP_OK;
}

static int print_schema(const cf_options *o)
{
    const cf_report nothing = { o, NULL, 0, 0 };
    app_table table;
    cf_table(&table, &nothing);
    app_print_schema(stdout, app_name, &table);
    app_table_free(&table);
    return APP_OK;
}

int app_run(int argc, char **argv)
{
    cf_options options = { .golden = TRN_GOLDEN_DIR };
    cf_list list;
    memset(&list, 0, sizeof list);
    int status = app_parse_options(&command, &options, argc - 1, argv + 1);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (options.schema) return print_schema(&options);
    if (check_options(&options) != APP_OK) return APP_USAGE;
    with_threads(1); /* small products: teams of threads would cost more than the work */
    for (list.chapter = 0; list.chapter < CF_COUNT_OF_CHAPTERS; list.chapter++) cf_chapters[list.chapter].fill(&list);
    int chosen = 0;
    for (int i = 0; i < list.count; i++) {
        if (!wanted(&options, &list.vector[i])) continue;
        chosen++;
        if (options.list) puts(list.vector[i].id);
    }
    if (!chosen)
        status = app_complain(APP_USAGE, "--only %s: no vector has such a name; --list prints them", options.only);
    else if (!options.list)
        status = run_all(&list, &options);
    cf_list_free(&list);
    return status;
}
