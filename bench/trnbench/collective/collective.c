/* collective.c - subcommand collective: what collectives take on every system, in the shape of nccom-test.
 * SPDX-License-Identifier: MIT
 */
#include "collective.h"

#include <stdlib.h>
#include <string.h>

enum { EXPECTED_BUSBW = 8, ALGBW, BUSBW, ALGORITHM };
enum { SHOWN = 14, CHECKED = 2 }; /* columns for people, and two more with --check */

/* ---- options ---- */

static bool take_system(void *options, const char *value, char *why)
{
    tb_cc_options *o = options;
    app_offer_systems();
    const trn_system system = trn_system_from_name(value);
    const bool all = strcmp(value, "all") == 0;
    if (system == TRN_SYSTEM_COUNT && !all)
        return app_refuse(why, "no such system; trnbench spec lists them, and there is all");
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) o->system[i] = o->system[i] || all || i == (int)system;
    return true;
}

/* trnmath's names, and nccom-test's short ones. */
static trn_collective op_named(const char *name)
{
    static const char *const other[][2] = { { "allr", "all_reduce" },
                                            { "allg", "all_gather" },
                                            { "redsct", "reduce_scatter" },
                                            { "alltoall", "all_to_all" },
                                            { "sendrecv", "send_recv" } };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (strcmp(name, other[i][0]) == 0) name = other[i][1];
    return trn_collective_from_name(name);
}

static bool take_op(void *options, const char *value, char *why)
{
    tb_cc_options *o = options;
    const trn_collective op = op_named(value);
    const bool all = strcmp(value, "all") == 0;
    if (op == TRN_COLLECTIVE_COUNT && !all)
        return app_refuse(why,
                          "no such operation; there are all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, "
                          "permute, send_recv and all");
    for (int i = 0; i < TRN_COLLECTIVE_COUNT; i++) o->op[i] = o->op[i] || all || i == (int)op;
    return true;
}

static bool take_algorithm(void *options, const char *value, char *why)
{
    tb_cc_options *o = options;
    o->every_algorithm = strcmp(value, "all") == 0;
    o->algorithm = o->every_algorithm ? TRN_ALGORITHM_AUTO : trn_algorithm_from_name(value);
    if (o->algorithm < TRN_POINT_TO_POINT) return true;
    return app_refuse(
        why, "no such algorithm; there are auto, all, ring, bidirectional, multi_ring, dimension_wise, rdh, mesh, "
             "kangaring, switch_direct and hierarchical");
}

static bool take_wire(void *options, const char *value, char *why)
{
    trn_format *const wire = &((tb_cc_options *)options)->wire;
    const char *known[TRN_FORMAT_COUNT];
    int count = 0;
    for (int f = TRN_F32; f < TRN_FORMAT_COUNT; f++)
        if (f != TRN_CFP8 && f != TRN_F8_E8M0) known[count++] = trn_format_name((trn_format)f);
    app_offer(known, count);
    if (!app_read_format(value, wire, why)) return false;
    return (*wire != TRN_CFP8 && *wire != TRN_F8_E8M0) || app_refuse(why, "collectives do not carry it");
}

static bool take_preset(void *options, const char *value, char *why)
{
    if (!trn_topology_preset(TRN_TRN3_GEN2_ULTRASERVER, value).chips)
        return app_refuse(why, "expected sa, doc or spec, and perhaps /planes=2 or /planes=4 after it");
    ((tb_cc_options *)options)->preset = value;
    return true;
}

static bool take_groups(void *options, const char *value, char *why)
{
    tb_cc_options *o = options;
    tb_groups_free(&o->groups);
    return tb_groups_parse(&o->groups, value, why);
}

static bool take_chips(void *options, const char *value, char *why)
{
    if (strchr(value, ';')) return app_refuse(why, "one list is expected here; --groups takes several");
    return take_groups(options, value, why);
}

static bool take_from(void *o, const char *value, char *why)
{
    return tb_size_parse(value, &((tb_cc_options *)o)->from, why);
}
static bool take_to(void *o, const char *value, char *why)
{
    return tb_size_parse(value, &((tb_cc_options *)o)->to, why);
}

static bool take_factor(void *o, const char *value, char *why)
{
    return app_parse_number(value, 2, 1 << 20, &((tb_cc_options *)o)->factor, why);
}

static bool take_ranks(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, 1 << 24, &((tb_cc_options *)o)->ranks, why);
}

static bool take_ranks_per_chip(void *o, const char *value, char *why)
{
    return app_parse_number(value, 1, 64, &((tb_cc_options *)o)->ranks_per_chip, why);
}

static bool take_seed(void *o, const char *value, char *why)
{
    return tb_parse_seed(value, &((tb_cc_options *)o)->seed, why);
}

APP_CALIBRATION_TAKE(tb_cc_options, calibration)

APP_NETWORK_TAKE(tb_cc_options, network)

static const app_option collective_options[] = {
    { "--op", "NAME",
      "all_gather, reduce_scatter, all_reduce (the default), all_to_all, broadcast, permute,\n"
      "send_recv, nccom-test's short names such as allr, or all (repeatable)",
      .apply = take_op },
    { "--system", "NAME", "one of the ten, or all (repeatable; default: trn2.48xlarge)", .apply = take_system },
    { "--minbytes", "SIZE", "the first size (default: 1KB)", .apply = take_from },
    { "-b", "SIZE", "the same", .apply = take_from },
    { "--maxbytes", "SIZE", "the last (default: 1GB, or the first when that is larger)", .apply = take_to },
    { "-e", "SIZE", "the same", .apply = take_to },
    { "--stepfactor", "N", "from one size to the next (default: 4)", .apply = take_factor },
    { "-f", "N", "the same", .apply = take_factor },
    { "--ranks", "N", "ranks of the group, on the first chips of the system (default: all)", .apply = take_ranks },
    { "-r", "N", "the same", .apply = take_ranks },
    { "--ranks-per-chip", "N", "(default: the system's logical cores: Trainium1 2, Trainium2 and 3 4, as LNC = 2)",
      .apply = take_ranks_per_chip },
    { "--chips", "LIST", "the group's chips in rank order: 0-3,12-15 or 0-12:4, which is 0,4,8,12",
      .apply = take_chips },
    { "--groups", "LIST;LIST", "several such groups that work at the same time", .apply = take_groups },
    { "--algorithm", "NAME",
      "auto (the default), ring, bidirectional, multi_ring, dimension_wise, rdh, mesh, kangaring,\n"
      "switch_direct, hierarchical, or all",
      .apply = take_algorithm },
    { "--wire", "FORMAT", "what travels, and what every sum is rounded to (default: bf16)", .apply = take_wire },
    { "-d", "FORMAT", "the same", .apply = take_wire },
    { "--preset", "NAME", "rates of Trainium3's links: sa (the default), doc or spec; sa/planes=2 and so on",
      .apply = take_preset },
    APP_CALIBRATION_OPTIONS(tb_cc_options, calibration),
    APP_CALIBRATE_OPTION(tb_cc_options, calibration),
    { "--published", NULL, "times that somebody measured, beside bound, ideal and expected, and a fit without each",
      APP_SETS(tb_cc_options, published) },
    APP_NETWORK_OPTIONS,
    { "--uncalibrated", NULL, "link loads alone, without the factors that the vendor's switch-over sizes imply",
      APP_SETS(tb_cc_options, uncalibrated) },
    { "--rules", NULL, "refuse replica groups that the system's runtime refuses, and say why",
      APP_SETS(tb_cc_options, rules) },
    { "--check", NULL, "run the values, too, of sizes that are small enough, and compare each of them",
      APP_SETS(tb_cc_options, check) },
    { "--seed", "N", "of those values (default: 1)", .apply = take_seed },
    { "--gib", NULL, "bandwidths in GiB/s (2^30) as nccom-test documents its own, instead of GB/s (1e9)",
      APP_SETS(tb_cc_options, gib) },
    { "--json", "FILE", "everything as JSON (- for standard output, without the table)",
      APP_TAKES_TEXT(tb_cc_options, files.json) },
    { "--csv", "FILE", "one row per system x operation x algorithm x size, one header row (- as above)",
      APP_TAKES_TEXT(tb_cc_options, files.csv) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(tb_cc_options, schema) },
};

static const app_command collective_command = {
    "trnbench collective",
    "usage: trnbench collective [OPERATION] [options] [OPERATION]",
    "What a collective takes on every system: time, bandwidth, algorithm, and what nothing could beat. All times are\n"
    "results of a model, none is a measurement.",
    collective_options,
    sizeof collective_options / sizeof collective_options[0],
    "SIZE counts bytes: 64, 8KB, 8KiB, 1M. K, KB and KiB are all 1024, M, MB and MiB 1024^2 and so on, as nccom-test "
    "and\n"
    "nccl-tests read them; a size is rounded up to whole elements. It is a rank's whole buffer, of all_gather the "
    "result.\n"
    "Bandwidths are in GB/s of 1e9 bytes: nccom-test's older outputs are in GiB/s (--gib), its newer ones in GB/s.\n"
    "busbw = algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter and all_to_all, else x 1.\n"
    "-r counts ranks as nccom-test's does, not chips: -r 32 on trn2.48xlarge is chips 0-7 with 4 ranks each.\n"
    "--check compares every element of every rank: moves and the fold of a ring bit for bit, other sums with FP64 "
    "within\n"
    "their error bound, all ranks of an all_reduce with each other. It runs groups of up to 1024 ranks (of a larger "
    "machine\n"
    "the first servers) with up to 4 Mi elements. Exit status: 0 ok, 1 a value is wrong, 2 bad usage, or a group that "
    "does\n"
    "not fit or is refused by --rules. scripts/bench.sh collective --simgrid compares the model with another "
    "simulator.",
    NULL,
};

/* ---- what people read ---- */

static void start_section(app_table *shown, const tb_cc_options *o)
{
    static app_column column[] = {
        { "size(B)", APP_INTEGER, "", "" }, { "count(elems)", APP_INTEGER, "", "" },
        { "type", APP_TEXT, "", "" },       { "bound(us)", APP_REAL, "", "" },
        { "ideal(us)", APP_REAL, "", "" },  { "expected(us)", APP_REAL, "", "" },
        { "from", APP_REAL, "", "" },       { "to", APP_REAL, "", "" },
        { "busbw", APP_REAL, "", "" },      { "algbw", APP_REAL, "", "" },
        { "busbw", APP_REAL, "", "" },      { "algorithm", APP_TEXT, "", "" },
        { "steps", APP_INTEGER, "", "" },   { "bound by", APP_TEXT, "", "" },
        { "checked", APP_INTEGER, "", "" }, { "wrong", APP_INTEGER, "", "" },
    };
    column[EXPECTED_BUSBW].name = o->gib ? "so busbw(GiB/s)" : "so busbw(GB/s)";
    column[ALGBW].name = o->gib ? "ideal algbw(GiB/s)" : "ideal algbw(GB/s)";
    column[BUSBW].name = o->gib ? "ideal busbw(GiB/s)" : "ideal busbw(GB/s)";
    app_table_start(shown, column, SHOWN + (o->check ? CHECKED : 0));
}

static void show_row(app_table *shown, const app_table *table, int row, const tb_cc_options *o)
{
    static const char *const from[] = {
        "size_b", "count", "type", "bound_us",  "time_us", "expected_us", "expected_low_us", "expected_high_us",
        NULL,     NULL,    NULL,   "algorithm", "steps",   "bound_by",    "checked",         "wrong"
    };
    static const char *const rate[][2] = { { "expected_busbw_gb_per_s", "expected_busbw_gib_per_s" },
                                           { "algbw_gb_per_s", "algbw_gib_per_s" },
                                           { "busbw_gb_per_s", "busbw_gib_per_s" } };
    app_row(shown);
    for (int c = 0; c < shown->columns; c++) {
        const char *name = from[c] ? from[c] : rate[c - EXPECTED_BUSBW][o->gib];
        const app_value *v = app_at(table, row, name);
        const char *mark = c != ALGORITHM                                              ? ""
                           : app_at(table, row, "single_step")->integer                ? " (1 step)"
                           : o->every_algorithm && app_at(table, row, "auto")->integer ? " *"
                                                                                       : "";
        if (v->missing)
            app_missing(shown);
        else if (shown->column[c].kind == APP_TEXT)
            app_text(shown, "%s%s", v->text, mark);
        else if (shown->column[c].kind == APP_REAL)
            app_real(shown, v->real);
        else
            app_integer(shown, v->integer);
    }
}

static void section_title(const app_table *table, int row)
{
    const app_value *ranks = app_at(table, row, "ranks");
    const int64_t groups = app_at(table, row, "groups")->integer, cores = app_at(table, row, "ranks_per_chip")->integer;
    const char *system = app_at(table, row, "system")->text, *chips = app_at(table, row, "chips")->text;
    char count[32];
    app_say(stdout, "%s  %s", system, app_at(table, row, "op")->text);
    if (!ranks->missing) {
        printf("  %s ranks", app_count(count, sizeof count, ranks->integer));
        printf(": %s chip%s x %lld", app_count(count, sizeof count, ranks->integer / cores),
               ranks->integer == cores ? "" : "s", (long long)cores);
        if (groups > 1) printf(" in each of %lld groups", (long long)groups);
    }
    if (strcmp(chips, "all") != 0) app_say(stdout, "  chips %s", chips);
    if (app_at(table, row, "faults")->text[0]) app_say(stdout, "  with %s", app_at(table, row, "faults")->text);
    if (strcmp(app_at(table, row, "preset")->text, "file") == 0)
        printf("  from a file");
    else if (strncmp(system, "trn3", 4) == 0)
        printf("  links as in %s", app_at(table, row, "preset")->text);
    putchar('\n');
}

static bool same_section(const app_table *table, int a, int b)
{
    return strcmp(app_at(table, a, "system")->text, app_at(table, b, "system")->text) == 0 &&
           strcmp(app_at(table, a, "op")->text, app_at(table, b, "op")->text) == 0;
}

/* Prints the rows from `first` that belong together; returns the first that does not. */
static int print_section(const app_table *table, int first, const tb_cc_options *o)
{
    app_table shown;
    int end = first, titled = first;
    start_section(&shown, o);
    for (; end < table->rows && same_section(table, first, end); end++) {
        if (app_at(table, end, "size_b")->missing) continue;
        if (!shown.rows) titled = end;
        show_row(&shown, table, end, o);
    }
    section_title(table, titled);
    if (shown.rows) app_print_table(stdout, &shown);
    for (int r = first; r < end; r++)
        if (app_at(table, r, "size_b")->missing) app_say(stdout, "  not here: %s\n", app_at(table, r, "note")->text);
    putchar('\n');
    app_table_free(&shown);
    return end;
}

static void print_text(const app_table *table, const tb_cc_options *o)
{
    for (int row = 0; row < table->rows;) row = print_section(table, row, o);
    app_say(stdout,
            "  %s; bound: no schedule is faster; ideal: this one at the documented rates%s; expected: with what "
            "software\n  adds and at the rates that it reaches (%s; trnbench spec --links); a model, none of it "
            "measured.\n",
            o->gib ? "GiB/s: 2^30 bytes a second" : "GB/s: 1e9 bytes a second",
            o->uncalibrated ? ", from link loads alone" : "",
            o->calibration.loaded ? o->calibration.loaded : trn_release_name(o->calibration.release));
    if (o->every_algorithm) puts("  * what the library takes by itself.");
}

/* ---- files ---- */

typedef struct outputs {
    const app_table *table;
    const tb_cc_options *o;
} outputs;

static void write_csv(FILE *out, const void *context) { app_print_csv(out, ((const outputs *)context)->table); }

static void write_json(FILE *out, const void *context)
{
    const outputs *all = context;
    trn_spec_field f;
    fprintf(out,
            "{\n  \"schema\": \"trnbench.collective\",\n  \"schema_version\": \"1.0.0\",\n  \"version\": \"%s\",\n"
            "  \"bandwidth_unit\": \"%s\",\n  \"calibration\": [",
            TRN_VERSION, all->o->gib ? "GiB/s" : "GB/s");
    double value[sizeof all->o->calibration.now / sizeof(double)]; /* a struct of doubles, in the order of its fields */
    memcpy(value, &all->o->calibration.now, sizeof value);
    for (int i = 0; !all->o->uncalibrated && trn_calibration_field_at(i, &f); i++) {
        fprintf(out, "%s\n    {\"field\": \"%s\", \"value\": ", i ? "," : "", f.field);
        app_print_json_number(out, value[i]);
        fprintf(out, ", \"known\": \"%s\", \"source\": ", trn_provenance_text(f.known));
        app_print_json_string(out, f.where);
        fputs("}", out);
    }
    fputs("\n  ],\n  \"results\": ", out);
    app_print_json_rows(out, all->table, 2);
    fputs("\n}\n", out);
}

/* ---- the subcommand ---- */

static void defaults(tb_cc_options *o)
{
    memset(o, 0, sizeof *o);
    o->factor = 4;
    o->wire = TRN_BF16;
    o->preset = "sa";
    o->seed = 1;
    app_calibration_start(&o->calibration);
}

static void fill_defaults(tb_cc_options *o)
{
    bool system = false, op = false;
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) system = system || o->system[i];
    for (int i = 0; i < TRN_COLLECTIVE_COUNT; i++) op = op || o->op[i];
    if (!system && !o->network.loaded) o->system[TRN_TRN2_48XLARGE] = true;
    if (!op) o->op[TRN_ALL_REDUCE] = true;
    if (!o->from) o->from = o->to && o->to < 1024 ? o->to : 1024;
    if (!o->to) o->to = o->from > 1 << 30 ? o->from : 1 << 30;
}

static int check_options(tb_cc_options *o)
{
    if (o->from > o->to)
        return app_complain(APP_USAGE, "--minbytes %lld is more than --maxbytes %lld", (long long)o->from,
                            (long long)o->to);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->system[i] && o->network.loaded)
            return app_complain(APP_USAGE, "--topology excludes --system: one network at a time");
    if (o->ranks && o->groups.groups)
        return app_complain(APP_USAGE, "--ranks excludes --chips and --groups, which say it themselves");
    return tb_open_files(&o->files);
}

static int report(const app_table *table, tb_cc_options *o, int status)
{
    const outputs all = { table, o };
    if (o->schema)
        app_print_schema(stdout, "trnbench.collective", table);
    else if (!tb_stdout_taken(&o->files) && o->published)
        tb_cc_print_published(table);
    else if (!tb_stdout_taken(&o->files))
        print_text(table, o);
    const int written = tb_write_files(&o->files, write_csv, write_json, NULL, &all);
    return written == APP_OK ? status : written;
}

/* Is the word an option that takes the next one? */
static bool wants_value(const char *word)
{
    for (int i = 0; i < collective_command.options; i++)
        if (strcmp(word, collective_options[i].name) == 0) return collective_options[i].argument != NULL;
    return false;
}

/* An operation may stand first, or last as nccom-test wants it. */
static int parse(tb_cc_options *o, int argc, char **argv)
{
    char why[APP_WHY] = "";
    const bool first = argc > 0 && argv[0][0] != '-';
    const bool last = argc > 1 && op_named(argv[argc - 1]) != TRN_COLLECTIVE_COUNT && !wants_value(argv[argc - 2]);
    if (first && !take_op(o, argv[0], why)) return app_complain(APP_USAGE, "%s: %s", argv[0], why);
    if (last) take_op(o, argv[argc - 1], why);
    return app_parse_options(&collective_command, o, argc - first - last, argv + first);
}

/* The first of the systems and operations that were asked for is what a file without commands is taken to be. */
static int calibrate(tb_cc_options *o)
{
    int system = 0, op = 0;
    char why[APP_WHY];
    while (!o->system[system]) system++;
    while (!o->op[op]) op++;
    const trn_topology net = trn_topology_preset((trn_system)system, o->preset);
    const app_calibration_ask ask = { &net, (trn_collective)op, o->wire, o->ranks, o->ranks_per_chip };
    if (!app_calibration_fit(&o->calibration, &ask, why)) return app_complain(APP_USAGE, "%s", why);
    app_calibration_print(stdout, &o->calibration);
    return app_calibration_write(&o->calibration);
}

static int collective(tb_cc_options *o, int argc, char **argv)
{
    app_table table;
    int status = parse(o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (tb_refuse_isa() != APP_OK) return APP_USAGE;
    fill_defaults(o);
    if (check_options(o) != APP_OK) return APP_USAGE;
    if (o->calibration.measured) return calibrate(o);
    if (o->published)
        status = tb_cc_published(&table);
    else
        tb_cc_start(&table, o->gib);
    if (!o->schema && !o->published) status = tb_cc_rows(&table, o);
    if (status != APP_USAGE) status = report(&table, o, status);
    app_table_free(&table);
    return status;
}

int tb_main_collective(int argc, char **argv)
{
    tb_cc_options o;
    defaults(&o);
    const int status = collective(&o, argc, argv);
    tb_discard_files(&o.files);
    tb_groups_free(&o.groups);
    app_calibration_free(&o.calibration);
    return status;
}
