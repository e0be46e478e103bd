/* spec.c - subcommand spec: the machines, every number with its source, every contradiction with its reason.
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_spec.h>

#include "bench/common/measure.h"

typedef struct options {
    bool wanted[TRN_SYSTEM_COUNT], any;
    bool sources, alternatives, modes, links, physical, announced, claims, schema;
    tb_files files;
} options;

/* ---- the overview: one row per system ---- */

static const app_column overview_columns[] = {
    { "system", APP_TEXT, "", "name, as --system takes it" },
    { "chip", APP_TEXT, "", "generation" },
    { "chips", APP_INTEGER, "", "in the whole system" },
    { "cores", APP_INTEGER, "", "NeuronCores" },
    { "FP32", APP_REAL, "TFLOPS", "dense" },
    { "BF16", APP_REAL, "TFLOPS", "dense; F16 and TF32 too" },
    { "FP8", APP_REAL, "TFLOPS", "dense; of Trainium3 printed with block scales only" },
    { "MXFP8", APP_REAL, "TFLOPS", "dense, block-scaled FP8 and FP4" },
    { "sparse", APP_REAL, "TFLOPS", "structured sparsity, 16-bit formats" },
    { "HBM GiB", APP_REAL, "GiB", "memory" },
    { "HBM TB/s", APP_REAL, "TB/s", "memory bandwidth" },
    { "link GB/s", APP_REAL, "GB/s", "NeuronLink of one chip, one way" },
    { "EFA Gb/s", APP_REAL, "Gbit/s", "network of the whole system" },
    { "vCPUs", APP_INTEGER, "", "of the hosts" },
    { "host GiB", APP_REAL, "GiB", "memory of the hosts" },
};

static double or_nothing(double value, double unit) { return value > 0 ? value / unit : NAN; }

static void overview_row(app_table *table, const trn_system_spec *spec)
{
    const trn_spec_totals t = trn_spec_totals_of(spec);
    app_row(table);
    app_text(table, "%s", spec->name);
    app_text(table, "%s", spec->server->chip->name);
    app_integer(table, trn_spec_chips(spec));
    app_integer(table, (int64_t)t.cores);
    app_real(table, or_nothing(t.f32_flops_per_s, 1e12));
    app_real(table, or_nothing(t.bf16_flops_per_s, 1e12));
    app_real(table, or_nothing(t.f8_flops_per_s, 1e12));
    app_real(table, or_nothing(t.mx_flops_per_s, 1e12));
    app_real(table, or_nothing(t.sparse_bf16_flops_per_s, 1e12));
    app_real(table, t.hbm_bytes / 0x1p30);
    app_real(table, t.hbm_bytes_per_s / 1e12);
    app_real(table, or_nothing(t.neuronlink_chip_bytes_per_s, 1e9));
    app_real(table, t.efa_bits_per_s / 1e9);
    app_integer(table, (int64_t)t.vcpus);
    app_real(table, t.host_bytes / 0x1p30);
}

/* ---- every number: one row per system x field ---- */

static const app_column field_columns[] = {
    { "system", APP_TEXT, "", "name of the system" },
    { "level", APP_TEXT, "", "system, server, chip, core, or total: the whole system multiplied out" },
    { "owner", APP_TEXT, "", "name of that server, chip or core" },
    { "field", APP_TEXT, "", "what is counted; rates and sizes are SI, bytes and flop/s" },
    { "value", APP_REAL, "see unit", "flags are 1 or 0" },
    { "unit", APP_TEXT, "", "unit of value" },
    { "known", APP_TEXT, "", "documented, measured, third party, derived, fitted or assumed" },
    { "source", APP_TEXT, "", "where it stands, or what it was derived from" },
};

static void field_rows(app_table *table, const trn_system_spec *spec)
{
    trn_spec_field f;
    for (int i = 0; trn_spec_field_at(spec, i, &f); i++) {
        app_row(table);
        app_text(table, "%s", spec->name);
        app_text(table, "%s", f.level);
        app_text(table, "%s", f.owner);
        app_text(table, "%s", f.field);
        app_real(table, f.value);
        app_text(table, "%s", f.unit);
        app_text(table, "%s", trn_provenance_text(f.known));
        app_text(table, "%s", f.where);
    }
}

/* ---- where sources disagree ---- */

static const app_column alternative_columns[] = {
    { "system", APP_TEXT, "", "a system that has the field" },
    { "level", APP_TEXT, "", "system, server, chip, core, or total" },
    { "field", APP_TEXT, "", "what is counted" },
    { "default", APP_REAL, "see unit", "what this library holds" },
    { "alternative", APP_REAL, "see unit", "what the other source says" },
    { "unit", APP_TEXT, "", "unit of both" },
    { "known", APP_TEXT, "", "how the alternative is known" },
    { "source", APP_TEXT, "", "where the alternative stands" },
    { "reason", APP_TEXT, "", "why it is not the default" },
};

static void alternative_rows(app_table *table, const bool *wanted)
{
    trn_spec_alternative a;
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        if (!wanted[a.system]) continue;
        app_row(table);
        app_text(table, "%s", trn_system_name(a.system));
        app_text(table, "%s", a.chosen.level);
        app_text(table, "%s", a.chosen.field);
        app_real(table, a.chosen.value);
        app_real(table, a.value);
        app_text(table, "%s", a.chosen.unit);
        app_text(table, "%s", trn_provenance_text(a.known));
        app_text(table, "%s", a.where);
        app_text(table, "%s", a.why);
    }
}

/* ---- the same for people: 190 Tflop/s instead of 190000000000000 and a unit ---- */

void tb_quantity(app_table *table, double value, const char *unit)
{
    static const struct {
        double size;
        const char *name;
    } binary[] = { { 0x1p30, "GiB" }, { 0x1p10, "KiB" } };
    static const struct {
        double size;
        const char *name;
    } decimal[] = { { 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" } };
    for (int i = 0; i < 2 && strcmp(unit, "B") == 0; i++)
        if (value >= binary[i].size && fmod(value, binary[i].size) == 0 && (i == 0 || value < 0x1p30)) {
            app_text(table, "%.10g %s", value / binary[i].size, binary[i].name);
            return;
        }
    for (int i = 0; i < 4; i++)
        if (value >= decimal[i].size && strchr("fobBH", unit[0])) { /* flop, op, bit, byte, hertz */
            app_text(table, "%.10g %s%s", value / decimal[i].size, decimal[i].name, unit);
            return;
        }
    if (strcmp(unit, "s") == 0 && value > 0 && value < 1e-3) {
        app_text(table, "%.10g us", 1e6 * value);
        return;
    }
    app_text(table, *unit ? "%.10g %s" : "%.10g", value, unit);
}

static void print_sources(const trn_system_spec *spec)
{
    static const app_column column[] = { { "of", APP_TEXT, "", "" },
                                         { "field", APP_TEXT, "", "" },
                                         { "value", APP_TEXT, "", "" },
                                         { "known", APP_TEXT, "", "" },
                                         { "source", APP_TEXT, "", "" } };
    app_table table;
    trn_spec_field f;
    app_table_start(&table, column, 5);
    for (int i = 0; trn_spec_field_at(spec, i, &f); i++) {
        app_row(&table);
        app_text(&table, "%s", strcmp(f.level, "total") == 0 ? "all of it" : f.owner);
        app_text(&table, "%s", f.field);
        tb_quantity(&table, f.value, f.unit);
        app_text(&table, "%s", trn_provenance_text(f.known));
        app_text(&table, "%s", f.where);
    }
    printf("%s\n", spec->name);
    app_print_table(stdout, &table);
    putchar('\n');
    app_table_free(&table);
}

static void print_alternatives(const bool *wanted)
{
    static const app_column column[] = { { "of", APP_TEXT, "", "" },      { "field", APP_TEXT, "", "" },
                                         { "default", APP_TEXT, "", "" }, { "also said", APP_TEXT, "", "" },
                                         { "by", APP_TEXT, "", "" },      { "why not", APP_TEXT, "", "" } };
    app_table table;
    trn_spec_alternative a;
    app_table_start(&table, column, 6);
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        if (!wanted[a.system]) continue;
        app_row(&table);
        app_text(&table, "%s", a.chosen.owner);
        app_text(&table, "%s", a.chosen.field);
        tb_quantity(&table, a.chosen.value, a.chosen.unit);
        tb_quantity(&table, a.value, a.chosen.unit);
        app_text(&table, "%s", a.where);
        app_text(&table, "%s", a.why);
    }
    app_print_table(stdout, &table);
    app_table_free(&table);
}

/* ---- options ---- */

static bool take_system(void *options_, const char *value, char *why)
{
    options *o = options_;
    app_offer_systems();
    const trn_system system = trn_system_from_name(value);
    if (system == TRN_SYSTEM_COUNT) return snprintf(why, APP_WHY, "no such system; trnbench spec lists them"), false;
    o->wanted[system] = o->any = true;
    return true;
}

static const app_option spec_options[] = {
    { "--system", "NAME", "only this one (repeatable; default: all ten)", .apply = take_system },
    { "--sources", NULL, "every number with the source that gives it", APP_SETS(options, sources) },
    { "--alternatives", NULL, "where sources contradict each other, and why the default is what it is",
      APP_SETS(options, alternatives) },
    { "--modes", NULL, "every mode of the tensor engines: cycles, and TFLOPS by clock beside those published",
      APP_SETS(options, modes) },
    { "--links", NULL,
      "how the chips are wired: every rate, time and factor that costs between chips rest on, by preset;\n"
      "and what each source prints of NeuronLink",
      APP_SETS(options, links) },
    { "--physical", NULL, "dies, memory stacks, processors, drives, network cards, trays and racks",
      APP_SETS(options, physical) },
    { "--claims", NULL,
      "facts that sources disagree about, and facts that no table holds: who says them, when, and\n"
      "where they stand here",
      APP_SETS(options, claims) },
    { "--announced", NULL, "what is announced of Trainium4, which is in no other table", APP_SETS(options, announced) },
    { "--json", "FILE", "all of it as JSON (- for standard output)", APP_TAKES_TEXT(options, files.json) },
    { "--csv", "FILE",
      "every number, one row per system x field (with --alternatives: every contradiction;\n"
      "with --modes: every mode; with --links: every link; with --physical: what the machines are\n"
      "built of; with --announced: every announcement; with --claims: every claim)",
      APP_TAKES_TEXT(options, files.csv) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(options, schema) },
};

static const app_command spec_command = {
    "trnbench spec",
    "usage: trnbench spec [options]",
    "The ten machines that trnmath knows: what their vendor and others publish about them.",
    spec_options,
    sizeof spec_options / sizeof spec_options[0],
    "Rates are those of the whole system in 1e12 per second, dense unless they say sparse. NeuronLink is one way; "
    "vendor\n"
    "pages add both directions. A dash: not published, or not there.",
    NULL,
};

/* ---- output ---- */

typedef struct tables {
    app_table overview, field, alternative, mode, link, physical, announced, claim;
    const app_table *csv; /* one of them */
} tables;

static void write_csv(FILE *out, const void *context) { app_print_csv(out, ((const tables *)context)->csv); }

static void write_json(FILE *out, const void *context)
{
    const tables *t = context;
    fprintf(out,
            "{\n  \"schema\": \"trnbench.spec\",\n  \"schema_version\": \"1.4.0\",\n  \"version\": \"%s\",\n  "
            "\"results\": ",
            TRN_VERSION);
    app_print_json_rows(out, &t->field, 2);
    fputs(",\n  \"alternatives\": ", out);
    app_print_json_rows(out, &t->alternative, 2);
    fputs(",\n  \"modes\": ", out);
    app_print_json_rows(out, &t->mode, 2);
    fputs(",\n  \"links\": ", out);
    app_print_json_rows(out, &t->link, 2);
    fputs(",\n  \"physical\": ", out);
    app_print_json_rows(out, &t->physical, 2);
    fputs(",\n  \"announced\": ", out);
    app_print_json_rows(out, &t->announced, 2);
    fputs(",\n  \"claims\": ", out);
    app_print_json_rows(out, &t->claim, 2);
    fputs("\n}\n", out);
}

static void print_text(const options *o, const tables *t)
{
    if (o->alternatives) print_alternatives(o->wanted);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->sources && o->wanted[i]) print_sources(trn_system_spec_of((trn_system)i));
    if (o->modes) {
        app_print_table(stdout, &t->mode);
        puts("\n  One full instruction, its load hidden. TFLOPS of one core; chip page: the chip's figure over its "
             "cores,\n  for FP8 of Trainium3 that of MXFP8.");
    }
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->links && o->wanted[i]) tb_print_links(&t->link, trn_system_name((trn_system)i));
    if (o->links) tb_print_links(&t->link, "all systems");
    if (o->links) tb_print_readings(o->wanted);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->physical && o->wanted[i]) tb_print_physical(&t->physical, trn_system_name((trn_system)i));
    if (o->announced) tb_print_announced(&t->announced);
    if (o->claims) app_print_table(stdout, &t->claim);
    if (o->alternatives || o->sources || o->modes || o->links || o->physical || o->announced || o->claims) return;
    app_print_table(stdout, &t->overview);
    printf("\n  TFLOPS of the whole system, dense unless sparse; NeuronLink of one chip, one way.\n"
           "  Sources: trnbench spec --sources. Contradictions: trnbench spec --alternatives.\n"
           "  Modes of the tensor engine: trnbench spec --modes. Links: trnbench spec --links.\n"
           "  What they are built of: trnbench spec --physical. Trainium4: trnbench spec --announced.\n"
           "  Who says what, and when: trnbench spec --claims.\n");
}

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

static void fill(tables *t, const bool *wanted)
{
    app_table_start(&t->overview, COLUMNS(overview_columns));
    app_table_start(&t->field, COLUMNS(field_columns));
    app_table_start(&t->alternative, COLUMNS(alternative_columns));
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        if (!wanted[i]) continue;
        overview_row(&t->overview, trn_system_spec_of((trn_system)i));
        field_rows(&t->field, trn_system_spec_of((trn_system)i));
    }
    alternative_rows(&t->alternative, wanted);
    tb_mode_rows(&t->mode);
    tb_link_rows(&t->link, wanted);
    tb_physical_rows(&t->physical, wanted);
    tb_announced_rows(&t->announced);
    tb_claim_rows(&t->claim);
}

int tb_main_spec(int argc, char **argv)
{
    options o;
    tables t;
    memset(&o, 0, sizeof o);
    int status = app_parse_options(&spec_command, &o, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) o.wanted[i] = o.wanted[i] || !o.any;
    if (tb_open_files(&o.files) != APP_OK) return APP_USAGE;
    fill(&t, o.wanted);

    t.csv = o.links          ? &t.link
            : o.physical     ? &t.physical
            : o.announced    ? &t.announced
            : o.claims       ? &t.claim
            : o.modes        ? &t.mode
            : o.alternatives ? &t.alternative
                             : &t.field;
    if (o.schema)
        app_print_schema(stdout, "trnbench.spec", t.csv);
    else if (!tb_stdout_taken(&o.files))
        print_text(&o, &t);
    status = tb_write_files(&o.files, write_csv, write_json, NULL, &t);
    app_table_free(&t.overview);
    app_table_free(&t.field);
    app_table_free(&t.alternative);
    app_table_free(&t.mode);
    app_table_free(&t.link);
    app_table_free(&t.physical);
    app_table_free(&t.announced);
    app_table_free(&t.claim);
    return status;
}
