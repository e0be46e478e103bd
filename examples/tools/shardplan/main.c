/* main.c - which way to spread a model over a machine? The command line, and everybody who writes the answer.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <math.h>
#include <string.h>

#include "app/files.h"

const char app_name[] = "shardplan";

/* ---- options ---- */

#define LARGEST (INT64_C(1) << 32)
#define CHIPS (1 << 27)
#define READ(function, read) APP_READ(function, sp_options, read)
READ(take_tp, app_parse_number(value, 1, CHIPS, &o->args.degree[TRN_AXIS_TP], why))
READ(take_cp, app_parse_number(value, 1, CHIPS, &o->args.degree[TRN_AXIS_CP], why))
READ(take_ep, app_parse_number(value, 1, CHIPS, &o->args.degree[TRN_AXIS_EP], why))
READ(take_dp, app_parse_number(value, 1, CHIPS, &o->args.degree[TRN_AXIS_DP], why))
READ(take_pp, app_parse_number(value, 1, CHIPS, &o->args.degree[TRN_AXIS_PP], why))

APP_NETWORK_TAKE(sp_options, network)
APP_CALIBRATION_TAKE(sp_options, calibration)
SP_WHATIF_TAKE(sp_options)
SP_SERVING_TAKE(sp_options)

static bool take_measured(void *into, const char *value, char *why)
{
    sp_options *o = into;
    if (o->measureds == SP_MEASURED) return app_refuse(why, "32 files are the most");
    o->measured[o->measureds++] = value;
    return true;
}

static bool take_system(void *into, const char *value, char *why)
{
    app_offer_systems();
    const trn_system system = trn_system_from_name(value);
    sp_options *o = into;
    o->instance = sp_instance_named(value);
    o->system_given = true;
    if (o->instance) return true;
    if (system == TRN_SYSTEM_COUNT) return app_refuse(why, "no such system; --help lists them");
    o->system = system;
    return true;
}

/* An option that stores one of the words that name_of gives. */
#define WORD(function, type, field, words, name_of)                                                                    \
    static bool function(void *into, const char *value, char *why)                                                     \
    {                                                                                                                  \
        const char *name[words];                                                                                       \
        for (int i = 0; i < (words); i++) name[i] = name_of((type)i);                                                  \
        const int i = app_parse_word(value, name, words, why);                                                         \
        if (i >= 0) ((sp_options *)into)->field = (type)i;                                                             \
        return i >= 0;                                                                                                 \
    }

WORD(take_job, trn_job, args.job, TRN_JOB_COUNT, trn_job_name)
WORD(take_precision, trn_precision, args.precision, TRN_PRECISION_COUNT, trn_precision_name)
WORD(take_part, hf_part, ask.part, HF_PARTS, hf_part_name)
WORD(take_zero, trn_zero, args.zero, TRN_ZERO_COUNT, trn_zero_name)
WORD(take_recompute, trn_recompute, args.recompute, TRN_RECOMPUTE_COUNT, trn_recompute_name)

/* ---- lists of name=value ---- */

/* A format, or one with a scale of a byte for each 32 elements: OCP's MX, whose elements have 4 or 8 bits. */
static bool take_stored(const char *value, trn_format *format, double *bits, char *why)
{
    static const struct {
        const char *name;
        trn_format format;
        double bits;
    } row[] = { { "mxfp4", TRN_F4_E2M1, 4.25 }, { "mxfp8", TRN_F8_E4M3FN, 8.25 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (strcmp(row[i].name, value) == 0) return *format = row[i].format, *bits = row[i].bits, true;
    *bits = 0;
    return app_parse_format(value, format, why);
}

static bool set_format(sp_options *o, const char *name, const char *value, char *why)
{
    trn_plan_formats *f = &o->args.formats;
    const struct {
        const char *name;
        trn_format *format;
        double *bits;
    } row[] = {
        { "weights", &f->weights, &f->weights_bits },
        { "activations", &f->activations, NULL },
        { "gradients", &f->gradients, NULL },
        { "optimizer", &f->optimizer, NULL },
        { "kv", &f->kv, &f->kv_bits },
        { "wire", &f->wire, NULL },
        { "compute", &f->compute, NULL },
        { "attention", &f->attention, &f->attention_bits },
        { "experts", &f->experts, &f->experts_bits },
        { "lm_head", &f->head, &f->head_bits },
    };
    trn_format format;
    double bits;
    if (!take_stored(value, &format, &bits, why)) return false;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].name, name) != 0) continue;
        if (bits > 0 && !row[i].bits && row[i].format != &f->compute)
            return app_fail(
                why, "block scales are for weights, attention, experts, lm_head, kv and compute, not for %s", name);
        *row[i].format = format;
        if (row[i].bits) *row[i].bits = bits;
        return true;
    }
    return app_refuse(why, "expected weights, attention, experts, lm_head, activations, gradients, optimizer, kv, wire "
                           "or compute");
}

/* Zero means the default to the library, and a negative number zero. */
static bool set_assumption(sp_options *o, const char *name, const char *value, char *why)
{
    trn_spec_field field;
    double x;
    if (!app_parse_real(value, 0, HUGE_VAL, &x, why)) return false;
    for (int i = 0; trn_plan_assumption_at(i, &field); i++)
        if (strcmp(field.field, name) == 0) return *sp_assumption(&o->args.assumptions, name) = x > 0 ? x : -1, true;
    return app_refuse(why, "no such assumption; --assumptions lists them");
}

typedef struct setter {
    sp_options *options;
    bool (*set)(sp_options *, const char *name, const char *value, char *why);
} setter;

static bool take_pair(void *into, const char *item, char *why)
{
    const setter *s = into;
    char name[64];
    const size_t length = strcspn(item, "=");
    if (!item[length]) return app_refuse(why, "expected NAME=VALUE with commas between");
    snprintf(name, sizeof name, "%.*s", (int)length, item);
    return s->set(s->options, name, item + length + 1, why);
}

static bool take_format(void *into, const char *value, char *why)
{
    return app_parse_list(value, take_pair, &(setter){ into, set_format }, why);
}

static bool take_assume(void *into, const char *value, char *why)
{
    return app_parse_list(value, take_pair, &(setter){ into, set_assumption }, why);
}

/* ---- the command ---- */

static const app_option option[] = {
    { .help = "the job" },
    { "--system", "NAME",
      "trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge, trn2.48xlarge, trn2u.48xlarge,\n"
      "trn2-ultraserver (default), trn3-gen1-ultraserver, trn3-gen2-ultraserver,\n"
      "trn1-ultracluster, project-rainier; or trn2.3xlarge, trn3-chip, inf2.xlarge,\n"
      "inf2.8xlarge, inf2.24xlarge, inf2.48xlarge",
      .apply = take_system },
    { "--preset", "NAME", "links of Trainium3: sa (default), doc, spec, each with /planes=2 or 4",
      APP_TAKES_TEXT(sp_options, preset) },
    APP_NETWORK_OPTIONS,
    { "--chips", "N", "a part of the system", APP_TAKES_INT64(sp_options, chips, 1, CHIPS) },
    { "--job", "NAME", "train (default), prefill, decode", .apply = take_job },
    { "--batch", "N",
      "sequences in a step (default: train 4 a chip, else 1 a chip; samples of a\n"
      "recommender: 1024 a chip)",
      APP_TAKES_INT64(sp_options, args.batch, 1, LARGEST) },
    { "--seq", "N",
      "tokens of a sequence; decode: in the cache (default 4096, or as many as the\n"
      "model takes; images: their patches and one)",
      APP_TAKES_INT64(sp_options, args.sequence, 1, LARGEST) },
    { "--prompt", "N", "decode: tokens of a prompt, for the first token (default: --seq)",
      APP_TAKES_INT64(sp_options, args.prompt, 1, LARGEST) },
    { "--part", "NAME",
      "of a model that is two the one that is planned: encoder or decoder (decode: the\n"
      "decoder) of t5 and whisper, text or image of clip",
      .apply = take_part },
    { "--source", "N", "tokens of the encoder's that a decoder looks at (default: as its file says)",
      APP_TAKES_INT64(sp_options, ask.positions, 1, LARGEST) },
    { "--together", "N", "decode, prefill: prompts of a replica that one pass to the first token takes (default 1)",
      APP_TAKES_INT64(sp_options, args.prompts, 1, LARGEST) },
    { "--precision", "NAME",
      "autocast (default): bfloat16, but gradients, optimizer states and a copy of\n"
      "the weights float32; bf16: all of it bfloat16; fp32: all of it float32",
      .apply = take_precision },
    { "--format", "LIST",
      "such as weights=int8,experts=mxfp4,kv=float8_e4m3; of weights (and of them\n"
      "attention, experts, lm_head), activations, gradients, optimizer, kv, wire,\n"
      "compute; mxfp4 and mxfp8 have a byte of scale for each 32 elements. Default: what\n"
      "quantization_config says. Weights that products do not take as they are stored are\n"
      "converted on the way",
      .apply = take_format },
    { .help = "the search" },
    { "--tp", "N", "only plans with this degree of tensor parallelism", .apply = take_tp },
    { "--lnc", "N",
      "count tp in logical cores, of N cores each (1 or 2), as the vendor's pages\n"
      "do; without: in chips",
      APP_TAKES_INT(sp_options, args.lnc, 1, 2) },
    { "--cp", "N", "... context parallelism", .apply = take_cp },
    { "--ep", "N", "... expert parallelism; a recommender's tables", .apply = take_ep },
    { "--dp", "N", "... data parallelism", .apply = take_dp },
    { "--pp", "N", "... pipeline parallelism", .apply = take_pp },
    { "--microbatch", "N", "only microbatches of N sequences",
      APP_TAKES_INT64(sp_options, args.microbatch, 1, LARGEST) },
    { "--zero", "NAME",
      "optimizer (ZeRO-1, default), none, gradients (2), weights (3, FSDP), any: the\n"
      "faster of optimizer and weights",
      .apply = take_zero },
    { "--recompute", "NAME", "auto (default), none, selective, full", .apply = take_recompute },
    { "--ranks-per-chip", "N", "tp's ranks are logical cores, N on a chip (default 1: chips)",
      APP_TAKES_INT(sp_options, args.ranks_per_chip, 1, 8) },
    { "--no-replicate-kv", NULL, "KV heads are not copied where tp is a multiple of them",
      APP_SETS(sp_options, args.no_replicate_kv) },
    { "--replicate-kv", NULL, "they are, which is the default", APP_SETS(sp_options, args.replicate_kv) },
    { "--pad-heads", NULL, "where tp does not divide the heads, zeros make more of them",
      APP_SETS(sp_options, args.pad_heads) },
    { "--experts-over", "N",
      "of tp's ranks N hold other experts, whose width only tp / N cut (default 1: every\n"
      "rank has a slice of every expert); without all_to_all, as all have all tokens",
      APP_TAKES_INT(sp_options, args.experts_over, 1, CHIPS) },
    { "--uneven-stages", NULL, "the last stage may have fewer layers", APP_SETS(sp_options, args.uneven_stages) },
    { "--no-sp", NULL, "without sequence parallelism (default: wherever tp divides the tokens)",
      APP_SETS(sp_options, args.no_sp) },
    { "--any-group", NULL, "do not ask the vendor's rules for replica groups",
      APP_SETS(sp_options, args.ignore_groups) },
    { "--beyond-neuronlink", NULL, "tp, cp and ep may use EFA", APP_SETS(sp_options, args.across_domains) },
    { "--overlap", NULL, "tp's and ep's collectives run beside products (collective matmul)",
      APP_SETS(sp_options, args.overlap_dependent) },
    { "--kv-pool", NULL,
      "decode: a KV cache that does not fit may lie once in the memory of all of tp's\n"
      "chips, each of which reads over NeuronLink what is not its own",
      APP_SETS(sp_options, args.kv_pool) },
    APP_CALIBRATION_OPTIONS(sp_options, calibration),
    { "--calibrate", "FILE",
      "fit the numbers to what was measured (repeatable), show each row before and after,\n"
      "and write FILE.calibration, of the first FILE: nccom-test (tables or JSON; a line\n"
      "with its command says what was run); vllm bench serve --save-result, genai-perf or\n"
      "AIPerf (JSON or CSV) of the model and the degrees asked for; a summary of\n"
      "neuron-profile or Neuron Explorer (JSON or CSV)",
      .apply = take_measured },
    { "--assume", "LIST", "such as contention=0.2; --assumptions lists them", .apply = take_assume },
    SP_WHATIF_OPTIONS(sp_options),
    SP_SERVING_OPTIONS(sp_options),
    SP_CHAKRA_OPTIONS(sp_options),
    { .help = "the answer" },
    { "--top", "N", "plans to show (default 10; in HTML 20)", APP_TAKES_INT64(sp_options, top, 0, 100000) },
    { "--why", NULL, "why the others are illegal", APP_SETS(sp_options, why) },
    { "--scaling", NULL, "the same work per chip on 1, 2, 4, ... all chips", APP_SETS(sp_options, scaling) },
    { "--csv", "FILE", "all plans (- for standard output, in place of the text)", APP_TAKES_TEXT(sp_options, csv) },
    { "--json", "FILE", "the same as JSON", APP_TAKES_TEXT(sp_options, json) },
    { "--html", "FILE", "a report with pictures", APP_TAKES_TEXT(sp_options, html) },
    { "--trace", "FILE", "the best plan's step, and the operations of one layer, for ui.perfetto.dev",
      APP_TAKES_TEXT(sp_options, trace) },
    { "--published", NULL, "jobs that the vendor's pages print, beside what is expected (also --csv, --json)",
      APP_SETS(sp_options, published) },
    { "--assumptions", NULL, "what is assumed, with its reasons", APP_SETS(sp_options, assumptions) },
    { "--schema", NULL, "the columns of CSV and JSON", APP_SETS(sp_options, schema) },
};

static bool take_model(void *into, const char *word, char *why)
{
    sp_options *o = into;
    if (o->config) return app_fail(why, "one model at a time, and %s is one", o->config);
    o->config = word;
    return true;
}

static const app_command command = {
    .name = "shardplan",
    .usage = "usage: shardplan CONFIG [options]",
    .summary =
        "How to spread a transformer over the chips of a Trainium system: every combination of tensor, context, "
        "expert,\n"
        "data and pipeline parallelism, those that cannot be with the reason, the others ranked by the time of a "
        "step.\n"
        "CONFIG is the config.json of a Hugging Face model (- for standard input). Degrees are counted in chips,\n"
        "or with --lnc those of tp in logical cores.\n"
        "All times are results of a model, never measurements.",
    .option = option,
    .options = sizeof option / sizeof option[0],
    .notes = "Data goes to standard output, everything else to standard error.\n"
             "Exit status: 0 ok, 1 no plan is legal, 2 bad usage or input.",
    .operand = take_model,
};

static void list_assumptions(void)
{
    trn_spec_field field;
    for (int i = 0; trn_plan_assumption_at(i, &field); i++)
        printf("  %-18s %-12g %-7s %s\n", field.field, field.value, field.unit, field.where);
}

static int check(const sp_options *o)
{
    char why[APP_WHY];
    if (!sp_serving_check(o, why)) return app_complain(APP_USAGE, "%s", why);
    if (o->network.loaded && o->system_given)
        return app_complain(APP_USAGE, "--topology excludes --system: one network at a time");
    if (!sp_chakra_check(o, why)) return app_complain(APP_USAGE, "%s", why);
    if (!o->config && !o->published && !o->chakra.in)
        return app_complain(APP_USAGE, "which model? give a config.json; shardplan --help tells more");
    if (o->json && o->csv && strcmp(o->json, "-") == 0 && strcmp(o->csv, "-") == 0)
        return app_complain(APP_USAGE, "--json - and --csv - exclude each other");
    return sp_whatif_check(o);
}

static int parse(int argc, char **argv, sp_options *o)
{
    memset(o, 0, sizeof *o);
    app_calibration_start(&o->calibration);
    o->system = TRN_TRN2_ULTRASERVER;
    o->top = -1;
    o->serving.acceptance = -1;
    for (int i = 0; i < SP_FACTORS; i++) o->factor[i] = 1;
    const int status = app_parse_options(&command, o, argc, argv);
    if (status != APP_OK) return status;
    char why[APP_WHY];
    if (!sp_planned(o, why)) return app_complain(APP_USAGE, "%s", why);
    if (o->assumptions) return list_assumptions(), -1;
    if (o->schema) return sp_print_schema(), -1;
    const int checked = check(o);
    sp_serving_usual(&o->serving);
    return checked;
}

/* ---- files ---- */

static void print_text(FILE *out, const void *job) { sp_print_text(out, job); }

static int write_all(const sp_job *job, app_output *output, int outputs)
{
    if (app_answer_staged(sp_chakra_stage(), output, outputs, job, print_text) != APP_OK) return APP_USAGE;
    if (job->options.chakra.out) app_say(stderr, "%s\n", job->options.chakra.out);
    for (int i = 0; i < outputs; i++)
        if (output[i].path && strcmp(output[i].path, "-") != 0) fprintf(stderr, "%s\n", output[i].path);
    return sp_any_legal(job) ? APP_OK : APP_FAILED;
}

static void published_csv(FILE *out, const void *table) { app_print_csv(out, table); }

static void published_json(FILE *out, const void *table)
{
    fputs("{\n  \"schema\": \"shardplan.published\",\n  \"results\": ", out);
    app_print_json_rows(out, table, 2);
    fputs("\n}\n", out);
}

static void published_text(FILE *out, const void *table) { sp_print_published(out, table); }

static int published(const sp_options *o)
{
    app_table table;
    char why[APP_WHY];
    app_output output[] = { { .flag = "--csv", .path = o->csv, .write = published_csv },
                            { .flag = "--json", .path = o->json, .write = published_json } };
    int status = app_open_outputs(output, 2);
    if (status != APP_OK) return status;
    if (!sp_published(&table, why)) status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = app_answer(output, 2, &table, published_text);
    app_discard_outputs(output, 2);
    app_table_free(&table);
    return app_flush(status);
}

int app_run(int argc, char **argv)
{
    static sp_job job;
    char why[APP_WHY];
    const sp_options *o = &job.options;
    int status = parse(argc - 1, argv + 1, &job.options);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    if (o->published) return published(o);
    if (o->chakra.in) return sp_chakra_price(&job);
    app_output output[] = {
        { .flag = "--csv", .path = o->csv, .write = sp_print_csv },
        { .flag = "--json", .path = o->json, .write = sp_print_json },
        { .flag = "--html", .path = o->html, .write = sp_print_report },
        { .flag = "--trace", .path = o->trace, .write = sp_print_trace },
    };
    enum { OUTPUTS = sizeof output / sizeof output[0] };
    status = app_open_outputs(output, OUTPUTS);
    if (status == APP_OK && !sp_chakra_open(o, why)) status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK && !(sp_search(&job, why) && sp_chakra_write(&job, why)))
        status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK && o->measureds) status = app_calibration_write(&o->calibration);
    if (status == APP_OK) status = write_all(&job, output, OUTPUTS);
    app_discard_outputs(output, OUTPUTS);
    sp_chakra_close();
    sp_free(&job);
    return status;
}
