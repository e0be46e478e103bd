/* trnbench_spec.c - subcommand spec: the machines, every number with its source, every contradiction with its reason.
 * SPDX-License-Identifier: MIT
 */
#include "trnbench.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_spec.h>

typedef struct options {
    bool wanted[TRN_SYSTEM_COUNT], any;
    bool sources, alternatives, modes, links, schema;
    const char *json, *csv;
} options;

/* ---- the overview: one row per system ---- */

static const tb_column overview_columns[] = {
    { "system", TB_TEXT, "", "name, as --system takes it" },
    { "chip", TB_TEXT, "", "generation" },
    { "chips", TB_INTEGER, "", "in the whole system" },
    { "cores", TB_INTEGER, "", "NeuronCores" },
    { "FP32", TB_REAL, "TFLOPS", "dense" },
    { "BF16", TB_REAL, "TFLOPS", "dense; F16 and TF32 too" },
    { "FP8", TB_REAL, "TFLOPS", "dense, without block scales" },
    { "MXFP8", TB_REAL, "TFLOPS", "dense, block-scaled FP8 and FP4" },
    { "sparse", TB_REAL, "TFLOPS", "structured sparsity, 16-bit formats" },
    { "HBM GiB", TB_REAL, "GiB", "memory" },
    { "HBM TB/s", TB_REAL, "TB/s", "memory bandwidth" },
    { "link GB/s", TB_REAL, "GB/s", "NeuronLink of one chip, one way" },
    { "EFA Gb/s", TB_REAL, "Gbit/s", "network of the whole system" },
    { "vCPUs", TB_INTEGER, "", "of the hosts" },
    { "host GiB", TB_REAL, "GiB", "memory of the hosts" },
};

static double or_nothing(double value, double unit) { return value > 0 ? value / unit : NAN; }

static void overview_row(tb_table *table, const trn_system_spec *spec)
{
    const trn_spec_totals t = trn_spec_totals_of(spec);
    tb_row(table);
    tb_text(table, "%s", spec->name);
    tb_text(table, "%s", spec->server->chip->name);
    tb_integer(table, trn_spec_chips(spec));
    tb_integer(table, (int64_t)t.cores);
    tb_real(table, or_nothing(t.f32_flops_per_s, 1e12));
    tb_real(table, or_nothing(t.bf16_flops_per_s, 1e12));
    tb_real(table, or_nothing(t.f8_flops_per_s, 1e12));
    tb_real(table, or_nothing(t.mx_flops_per_s, 1e12));
    tb_real(table, or_nothing(t.sparse_bf16_flops_per_s, 1e12));
    tb_real(table, t.hbm_bytes / 0x1p30);
    tb_real(table, t.hbm_bytes_per_s / 1e12);
    tb_real(table, or_nothing(t.neuronlink_chip_bytes_per_s, 1e9));
    tb_real(table, t.efa_bits_per_s / 1e9);
    tb_integer(table, (int64_t)t.vcpus);
    tb_real(table, t.host_bytes / 0x1p30);
}

/* ---- every number: one row per system x field ---- */

static const tb_column field_columns[] = {
    { "system", TB_TEXT, "", "name of the system" },
    { "level", TB_TEXT, "", "system, server, chip, core, or total: the whole system multiplied out" },
    { "owner", TB_TEXT, "", "name of that server, chip or core" },
    { "field", TB_TEXT, "", "what is counted; rates and sizes are SI, bytes and flop/s" },
    { "value", TB_REAL, "see unit", "flags are 1 or 0" },
    { "unit", TB_TEXT, "", "unit of value" },
    { "known", TB_TEXT, "", "documented, measured, third party, derived or assumed" },
    { "source", TB_TEXT, "", "where it stands, or what it was derived from" },
};

static void field_rows(tb_table *table, const trn_system_spec *spec)
{
    trn_spec_field f;
    for (int i = 0; trn_spec_field_at(spec, i, &f); i++) {
        tb_row(table);
        tb_text(table, "%s", spec->name);
        tb_text(table, "%s", f.level);
        tb_text(table, "%s", f.owner);
        tb_text(table, "%s", f.field);
        tb_real(table, f.value);
        tb_text(table, "%s", f.unit);
        tb_text(table, "%s", trn_provenance_text(f.known));
        tb_text(table, "%s", f.where);
    }
}

/* ---- where sources disagree ---- */

static const tb_column alternative_columns[] = {
    { "system", TB_TEXT, "", "a system that has the field" },
    { "level", TB_TEXT, "", "system, server, chip, core, or total" },
    { "field", TB_TEXT, "", "what is counted" },
    { "default", TB_REAL, "see unit", "what this library holds" },
    { "alternative", TB_REAL, "see unit", "what the other source says" },
    { "unit", TB_TEXT, "", "unit of both" },
    { "known", TB_TEXT, "", "how the alternative is known" },
    { "source", TB_TEXT, "", "where the alternative stands" },
    { "reason", TB_TEXT, "", "why it is not the default" },
};

static void alternative_rows(tb_table *table, const bool *wanted)
{
    trn_spec_alternative a;
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        if (!wanted[a.system]) continue;
        tb_row(table);
        tb_text(table, "%s", trn_system_name(a.system));
        tb_text(table, "%s", a.chosen.level);
        tb_text(table, "%s", a.chosen.field);
        tb_real(table, a.chosen.value);
        tb_real(table, a.value);
        tb_text(table, "%s", a.chosen.unit);
        tb_text(table, "%s", trn_provenance_text(a.known));
        tb_text(table, "%s", a.where);
        tb_text(table, "%s", a.why);
    }
}

/* ---- the same for people: 190 Tflop/s instead of 190000000000000 and a unit ---- */

void tb_quantity(tb_table *table, double value, const char *unit)
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
            tb_text(table, "%.10g %s", value / binary[i].size, binary[i].name);
            return;
        }
    for (int i = 0; i < 4; i++)
        if (value >= decimal[i].size && strchr("fobBH", unit[0])) { /* flop, op, bit, byte, hertz */
            tb_text(table, "%.10g %s%s", value / decimal[i].size, decimal[i].name, unit);
            return;
        }
    if (strcmp(unit, "s") == 0 && value > 0 && value < 1e-3) {
        tb_text(table, "%.10g us", 1e6 * value);
        return;
    }
    tb_text(table, *unit ? "%.10g %s" : "%.10g", value, unit);
}

static void print_sources(const trn_system_spec *spec)
{
    static const tb_column column[] = { { "of", TB_TEXT, "", "" },
                                        { "field", TB_TEXT, "", "" },
                                        { "value", TB_TEXT, "", "" },
                                        { "known", TB_TEXT, "", "" },
                                        { "source", TB_TEXT, "", "" } };
    tb_table table;
    trn_spec_field f;
    tb_table_start(&table, column, 5);
    for (int i = 0; trn_spec_field_at(spec, i, &f); i++) {
        tb_row(&table);
        tb_text(&table, "%s", strcmp(f.level, "total") == 0 ? "all of it" : f.owner);
        tb_text(&table, "%s", f.field);
        tb_quantity(&table, f.value, f.unit);
        tb_text(&table, "%s", trn_provenance_text(f.known));
        tb_text(&table, "%s", f.where);
    }
    printf("%s\n", spec->name);
    tb_print_table(stdout, &table);
    putchar('\n');
    tb_table_free(&table);
}

static void print_alternatives(const bool *wanted)
{
    static const tb_column column[] = { { "of", TB_TEXT, "", "" },      { "field", TB_TEXT, "", "" },
                                        { "default", TB_TEXT, "", "" }, { "also said", TB_TEXT, "", "" },
                                        { "by", TB_TEXT, "", "" },      { "why not", TB_TEXT, "", "" } };
    tb_table table;
    trn_spec_alternative a;
    tb_table_start(&table, column, 6);
    for (int i = 0; trn_spec_alternative_at(i, &a); i++) {
        if (!wanted[a.system]) continue;
        tb_row(&table);
        tb_text(&table, "%s", a.chosen.owner);
        tb_text(&table, "%s", a.chosen.field);
        tb_quantity(&table, a.chosen.value, a.chosen.unit);
        tb_quantity(&table, a.value, a.chosen.unit);
        tb_text(&table, "%s", a.where);
        tb_text(&table, "%s", a.why);
    }
    tb_print_table(stdout, &table);
    tb_table_free(&table);
}

/* ---- options ---- */

static bool take_system(void *options_, const char *value, char *why)
{
    options *o = options_;
    const trn_system system = trn_system_from_name(value);
    if (system == TRN_SYSTEM_COUNT) return snprintf(why, TB_WHY, "no such system; trnbench spec lists them"), false;
    o->wanted[system] = o->any = true;
    return true;
}

TB_TAKE(take_sources, options, sources, true)
TB_TAKE(take_alternatives, options, alternatives, true)
TB_TAKE(take_modes, options, modes, true)
TB_TAKE(take_links, options, links, true)
TB_TAKE(take_schema, options, schema, true)
TB_TAKE(take_json, options, json, value)
TB_TAKE(take_csv, options, csv, value)

static const tb_option spec_options[] = {
    { "--system", "NAME", "only this one (repeatable; default: all ten)", take_system },
    { "--sources", NULL, "every number with the source that gives it", take_sources },
    { "--alternatives", NULL, "where sources contradict each other, and why the default is what it is",
      take_alternatives },
    { "--modes", NULL, "every mode of the tensor engines: cycles, and TFLOPS by clock beside those published",
      take_modes },
    { "--links", NULL,
      "how the chips are wired: every rate, time and factor that costs between chips rest on, by preset", take_links },
    { "--json", "FILE", "all of it as JSON (- for standard output)", take_json },
    { "--csv", "FILE",
      "every number, one row per system x field (with --alternatives: every contradiction;\n"
      "with --modes: every mode; with --links: every link)",
      take_csv },
    { "--schema", NULL, "the columns of the CSV", take_schema },
};

static const tb_command spec_command = {
    "trnbench spec",
    "usage: trnbench spec [options]",
    "The ten machines that trnmath knows: what their vendor and others publish about them.",
    spec_options,
    sizeof spec_options / sizeof spec_options[0],
    "Rates are those of the whole system in 1e12 per second, dense unless they say sparse. NeuronLink is one way; "
    "vendor\n"
    "pages add both directions. A dash: not published, or not there.",
};

/* ---- output ---- */

typedef struct tables {
    tb_table overview, field, alternative, mode, link;
} tables;

static void write_csv(FILE *out, const void *context) { tb_print_csv(out, context); }

static void write_json(FILE *out, const void *context)
{
    const tables *t = context;
    fprintf(out,
            "{\n  \"schema\": \"trnbench.spec\",\n  \"schema_version\": \"1.2.0\",\n  \"version\": \"%s\",\n  "
            "\"results\": ",
            TRN_VERSION);
    tb_print_json_rows(out, &t->field, 2);
    fputs(",\n  \"alternatives\": ", out);
    tb_print_json_rows(out, &t->alternative, 2);
    fputs(",\n  \"modes\": ", out);
    tb_print_json_rows(out, &t->mode, 2);
    fputs(",\n  \"links\": ", out);
    tb_print_json_rows(out, &t->link, 2);
    fputs("\n}\n", out);
}

static void print_text(const options *o, const tables *t)
{
    if (o->alternatives) print_alternatives(o->wanted);
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->sources && o->wanted[i]) print_sources(trn_system_spec_of((trn_system)i));
    if (o->modes) {
        tb_print_table(stdout, &t->mode);
        puts("\n  One full instruction, its load hidden. TFLOPS of one core; chip page: the chip's figure over its "
             "cores.");
    }
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++)
        if (o->links && o->wanted[i]) tb_print_links(&t->link, trn_system_name((trn_system)i));
    if (o->links) tb_print_links(&t->link, "all systems");
    if (o->alternatives || o->sources || o->modes || o->links) return;
    tb_print_table(stdout, &t->overview);
    printf("\n  TFLOPS of the whole system, dense unless sparse; NeuronLink of one chip, one way.\n"
           "  Sources: trnbench spec --sources. Contradictions: trnbench spec --alternatives.\n"
           "  Modes of the tensor engine: trnbench spec --modes. Links: trnbench spec --links.\n");
}

#define COLUMNS(array) array, (int)(sizeof array / sizeof array[0])

static void fill(tables *t, const bool *wanted)
{
    tb_table_start(&t->overview, COLUMNS(overview_columns));
    tb_table_start(&t->field, COLUMNS(field_columns));
    tb_table_start(&t->alternative, COLUMNS(alternative_columns));
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) {
        if (!wanted[i]) continue;
        overview_row(&t->overview, trn_system_spec_of((trn_system)i));
        field_rows(&t->field, trn_system_spec_of((trn_system)i));
    }
    alternative_rows(&t->alternative, wanted);
    tb_mode_rows(&t->mode);
    tb_link_rows(&t->link, wanted);
}

int tb_main_spec(int argc, char **argv)
{
    options o;
    tables t;
    memset(&o, 0, sizeof o);
    int status = tb_parse_options(&spec_command, &o, argc, argv);
    if (status != TB_OK) return status < 0 ? TB_OK : status;
    for (int i = 0; i < TRN_SYSTEM_COUNT; i++) o.wanted[i] = o.wanted[i] || !o.any;
    if (tb_can_write("--csv", o.csv) || tb_can_write("--json", o.json)) return TB_USAGE;
    fill(&t, o.wanted);

    const tb_table *csv = o.links ? &t.link : o.modes ? &t.mode : o.alternatives ? &t.alternative : &t.field;
    const bool stdout_taken = (o.json && !strcmp(o.json, "-")) || (o.csv && !strcmp(o.csv, "-"));
    if (o.schema)
        tb_print_schema(stdout, "trnbench.spec", csv);
    else if (!stdout_taken)
        print_text(&o, &t);
    if (o.csv) status = tb_write_file("--csv", o.csv, write_csv, csv);
    if (o.json && status == TB_OK) status = tb_write_file("--json", o.json, write_json, &t);
    tb_table_free(&t.overview);
    tb_table_free(&t.field);
    tb_table_free(&t.alternative);
    tb_table_free(&t.mode);
    tb_table_free(&t.link);
    return status;
}
