/* data.c - the answer as CSV and JSON: one row for each set of degrees, legal or not; and as a trace.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_plan.h>

/* ---- fields of the library's structs by name ---- */

#define PART(name, field) [TRN_PART_##name] = { #field, offsetof(trn_plan_time, field) }
static const struct {
    const char *key;
    size_t offset;
} part_field[TRN_PART_COUNT] = { PART(PRODUCTS, products_s),
                                 PART(READS, reads_s),
                                 PART(ATTENTION, attention_s),
                                 PART(ELEMENTWISE, elementwise_s),
                                 PART(UPDATE, update_s),
                                 PART(TP, tp_s),
                                 PART(CP, cp_s),
                                 PART(EP, ep_s),
                                 PART(DP, dp_s),
                                 PART(PP, pp_s),
                                 PART(BUBBLE, bubble_s),
                                 PART(LOOKUPS, lookups_s) };

const char *sp_part_key(trn_plan_part part) { return part_field[part].key; }

double sp_part_s(const trn_plan_time *time, trn_plan_part part)
{
    double seconds;
    memcpy(&seconds, (const char *)time + part_field[part].offset, sizeof seconds);
    return seconds;
}

#define ASSUMPTION(field) #field, offsetof(trn_plan_assumptions, field)
static const struct {
    const char *name;
    size_t offset;
} assumption_field[] = {
    { ASSUMPTION(contention) },      { ASSUMPTION(expert_imbalance) }, { ASSUMPTION(hidden_passes) },
    { ASSUMPTION(inner_passes) },    { ASSUMPTION(scalar_passes) },    { ASSUMPTION(vector_passes) },
    { ASSUMPTION(reserve_bytes) },   { ASSUMPTION(bucket_bytes) },     { ASSUMPTION(bucket_rank_bytes) },
    { ASSUMPTION(product_start_s) }, { ASSUMPTION(optimizer_states) }, { ASSUMPTION(tensor_share) },
    { ASSUMPTION(hbm_share) },       { ASSUMPTION(kernel_s) },         { ASSUMPTION(layer_kernels) },
    { ASSUMPTION(spread) },          { ASSUMPTION(convert_passes) },   { ASSUMPTION(bucket_tokens) },
    { ASSUMPTION(first_s) },         { ASSUMPTION(score_passes) }
};
enum { ASSUMPTIONS = sizeof assumption_field / sizeof assumption_field[0] };
_Static_assert(ASSUMPTIONS * sizeof(double) == sizeof(trn_plan_assumptions), "an assumption is missing here");

double *sp_assumption(trn_plan_assumptions *assumptions, const char *name)
{
    for (int i = 0; i < ASSUMPTIONS; i++)
        if (strcmp(assumption_field[i].name, name) == 0)
            return (double *)(void *)((char *)assumptions + assumption_field[i].offset);
    return NULL;
}

/* ---- one row: what CSV and JSON share ---- */

static const app_column before[] = {
    { "rank", APP_INTEGER, "", "place among the legal plans; missing: this one is not legal" },
    { "tp", APP_INTEGER, "chips", "tensor parallelism" },
    { "cp", APP_INTEGER, "chips", "context parallelism" },
    { "ep", APP_INTEGER, "chips", "expert parallelism" },
    { "dp", APP_INTEGER, "chips", "data parallelism" },
    { "pp", APP_INTEGER, "chips", "pipeline parallelism" },
    { "outermost", APP_TEXT, "", "the axis that lies outermost, dp or pp" },
    { "sp", APP_TEXT, "", "sequence parallelism, yes or no" },
    { "microbatch", APP_INTEGER, "sequences", "in a microbatch" },
    { "microbatches", APP_INTEGER, "", "in a step" },
    { "zero", APP_TEXT, "", "what data parallelism shares out" },
    { "recompute", APP_TEXT, "", "what is computed again in the backward pass" },
    { "legal", APP_TEXT, "", "yes or no" },
    { "reason", APP_TEXT, "", "why not, one word of a fixed list" },
    { "why", APP_TEXT, "", "why not, a sentence" },
    { "bound_s", APP_REAL, "s", "no plan is faster: arrays and HBM of all chips" },
    { "time_s", APP_REAL, "s", "ideal: of a step, a batch of prompts, or a token" },
    { "expected_s", APP_REAL, "s", "the same as it is expected to be, which ranks the plans" },
    { "expected_low_s", APP_REAL, "s", "four of five published times lie between this" },
    { "expected_high_s", APP_REAL, "s", "and this" },
    { "ttft_s", APP_REAL, "s", "to the first token of one prompt, ideal" },
    { "expected_ttft_s", APP_REAL, "s", "the same, expected" },
    { "tokens_per_s", APP_REAL, "1/s", "of the whole machine, ideal" },
    { "expected_tokens_per_s", APP_REAL, "1/s", "the same, expected" },
    { "mfu", APP_REAL, "share", "of the published flop/s, ideal" },
    { "expected_mfu", APP_REAL, "share", "the same, expected" },
    { "bottleneck", APP_TEXT, "", "the part that takes most of the expected time" },
    { "tp_algorithm", APP_TEXT, "", "of tp's collectives" },
    { "dp_algorithm", APP_TEXT, "", "of dp's collectives" },
};

static const app_column after[] = {
    { "hidden_s", APP_REAL, "s", "communication beside work" },
    { "contention_s", APP_REAL, "s", "what both lose by that" },
    { "evidence", APP_TEXT, "", "the class of published times that the range is from" },
    { "evidence_rows", APP_INTEGER, "", "of that class; few: the range is wide" },
    { "expected_ttft_low_s", APP_REAL, "s", "four of five published first tokens lie between this" },
    { "expected_ttft_high_s", APP_REAL, "s", "and this" },
    { "weights_bytes", APP_REAL, "B", "of the fullest chip, and so the next five" },
    { "gradients_bytes", APP_REAL, "B", "" },
    { "optimizer_bytes", APP_REAL, "B", "" },
    { "activations_bytes", APP_REAL, "B", "" },
    { "kv_bytes", APP_REAL, "B", "" },
    { "buffers_bytes", APP_REAL, "B", "" },
    { "hbm_bytes", APP_REAL, "B", "all of these" },
    { "hbm_capacity_bytes", APP_REAL, "B", "HBM of a chip" },
    { "tp_cores", APP_INTEGER, "cores", "--lnc: tp in logical cores; below a chip's, dp has several replicas a chip" },
    { "kv_elsewhere_bytes", APP_REAL, "B", "--kv-pool: of the KV cache, in the memory of tp's other chips" },
};

enum { BEFORE = sizeof before / sizeof before[0], AFTER = sizeof after / sizeof after[0] };

/* Those before, two for the time of each part of a step, those after, and the costs. */
static app_table start_table(void)
{
    enum { PARTS = 2 * TRN_PART_COUNT };
    static app_column column[BEFORE + PARTS + AFTER + SP_COST_COLUMNS];
    static char expected[TRN_PART_COUNT][40];
    app_table t;
    memcpy(column, before, sizeof before);
    memcpy(column + BEFORE + PARTS + AFTER, sp_cost_column, sizeof sp_cost_column);
    for (int i = 0; i < TRN_PART_COUNT; i++) {
        const char *key = sp_part_key((trn_plan_part)i);
        snprintf(expected[i], sizeof expected[i], "expected_%s", key);
        column[BEFORE + i] = (app_column){ key, APP_REAL, "s", trn_plan_part_name((trn_plan_part)i) };
        column[BEFORE + TRN_PART_COUNT + i] = (app_column){ expected[i], APP_REAL, "s", "the same, expected" };
    }
    memcpy(column + BEFORE + PARTS, after, sizeof after);
    app_table_start(&t, column, BEFORE + PARTS + AFTER + SP_COST_COLUMNS);
    return t;
}

/* A number that a plan has only when `there`. */
static void add(app_table *t, double value, bool there) { app_real(t, there ? value : (double)NAN); }

static void add_count(app_table *t, int64_t value, bool there)
{
    if (there)
        app_integer(t, value);
    else
        app_missing(t);
}

static void add_degrees(app_table *t, const trn_plan *p)
{
    const int degree[] = { p->tp, p->cp, p->ep, p->dp, p->pp };
    for (size_t i = 0; i < sizeof degree / sizeof degree[0]; i++) app_integer(t, degree[i]);
}

static void add_variant(app_table *t, const sp_job *job, const trn_plan *p)
{
    const bool train = job->args.job == TRN_JOB_TRAIN && p->legal;
    app_text(t, "%s", p->order == TRN_ORDER_DP_PP ? "pp" : "dp");
    app_text(t, "%s", p->sp ? "yes" : "no");
    add_count(t, p->microbatch, p->microbatch > 0);
    add_count(t, p->microbatches, p->microbatches > 0);
    app_text(t, "%s", train ? trn_zero_name(p->zero) : "");
    app_text(t, "%s", train ? trn_recompute_name(p->recompute) : "");
}

static void add_verdict(app_table *t, const sp_job *job, const trn_plan *p)
{
    app_text(t, "%s", p->legal ? "yes" : "no");
    app_text(t, "%s", p->legal ? "" : trn_plan_reason_name(p->reason));
    app_text(t, "%s", p->why);
    const bool inference = p->legal && job->args.job != TRN_JOB_TRAIN;
    const double seconds[] = { p->bound_s, p->time_s, p->expected_s, p->expected_low_s, p->expected_high_s };
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) add(t, seconds[i], p->legal);
    add(t, p->ttft_s, inference);
    add(t, p->expected_ttft_s, inference);
    const double rate[] = { p->tokens_per_s, p->expected_tokens_per_s, p->mfu, p->expected_mfu };
    for (size_t i = 0; i < sizeof rate / sizeof rate[0]; i++) add(t, rate[i], p->legal);
    app_text(t, "%s", p->legal ? trn_plan_part_name(p->bottleneck) : "");
    app_text(t, "%s", p->legal && p->tp_algorithm ? trn_algorithm_name(p->tp_algorithm) : "");
    app_text(t, "%s", p->legal && p->dp_algorithm ? trn_algorithm_name(p->dp_algorithm) : "");
}

static void add_time(app_table *t, const trn_plan *p)
{
    for (int i = 0; i < TRN_PART_COUNT; i++) add(t, sp_part_s(&p->time, (trn_plan_part)i), p->legal);
    for (int i = 0; i < TRN_PART_COUNT; i++) add(t, sp_part_s(&p->expected, (trn_plan_part)i), p->legal);
    add(t, p->time.hidden_s, p->legal);
    add(t, p->time.contention_s, p->legal);
}

static void add_evidence(app_table *t, const sp_job *job, const trn_plan *p)
{
    const trn_evidence e = trn_evidence_of(p->evidence);
    const bool inference = p->legal && job->args.job != TRN_JOB_TRAIN;
    app_text(t, "%s", p->legal ? e.name : "");
    add_count(t, e.rows, p->legal);
    add(t, p->expected_ttft_low_s, inference);
    add(t, p->expected_ttft_high_s, inference);
}

static void add_memory(app_table *t, const trn_plan_memory *b)
{
    const double bytes[] = { b->weights, b->gradients, b->optimizer, b->activations,
                             b->kv,      b->buffers,   b->total,     b->capacity };
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) add(t, bytes[i], b->capacity > 0);
}

static app_table rows_of(const sp_job *job)
{
    app_table t = start_table();
    for (int64_t i = 0; i < job->list.kept; i++) {
        const trn_plan *p = &job->plan[i];
        app_row(&t);
        add_count(&t, i + 1, p->legal);
        add_degrees(&t, p);
        add_variant(&t, job, p);
        add_verdict(&t, job, p);
        add_time(&t, p);
        add_evidence(&t, job, p);
        add_memory(&t, &p->memory);
        const sp_cost cost = sp_cost_of(job, p, job->net.chips);
        add_count(&t, p->tp_cores, p->tp_cores > 0);
        add(&t, p->memory.kv_elsewhere, job->args.kv_pool && p->memory.capacity > 0);
        sp_cost_add(&t, &cost);
    }
    return t;
}

/* What was asked for: all plans, or a row for each value or number. */
static app_table answer_of(const sp_job *job)
{
    if (job->options.sweep.values) return sp_sweep_table(job);
    if (sp_pareto_asked(&job->options)) return sp_pareto_table(job);
    if (job->options.serving.rates) return sp_serve_table(job);
    return job->options.tornado ? sp_tornado_table(job) : rows_of(job);
}

void sp_print_csv(FILE *out, const void *context)
{
    const sp_job *job = context;
    app_table t = answer_of(job);
    app_print_csv(out, &t);
    app_table_free(&t);
}

void sp_print_schema(void)
{
    app_table t = start_table();
    app_print_schema(stdout, "shardplan", &t);
    app_table_free(&t);
    static const sp_job none;
    t = sp_sweep_table(&none);
    fputc('\n', stdout);
    app_print_schema(stdout, "shardplan --sweep", &t);
    app_table_free(&t);
    t = sp_pareto_table(&none);
    fputc('\n', stdout);
    app_print_schema(stdout, "shardplan --pareto", &t);
    app_table_free(&t);
    t = sp_serve_table(&none);
    fputc('\n', stdout);
    app_print_schema(stdout, "shardplan --arrivals", &t);
    app_table_free(&t);
    t = sp_tornado_table(&none);
    fputc('\n', stdout);
    app_print_schema(stdout, "shardplan --tornado", &t);
    app_table_free(&t);
    fputc('\n', stdout);
    sp_chakra_schema();
}

/* ---- JSON ---- */

static void json_formats(const sp_job *job, FILE *out)
{
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const struct {
        const char *name;
        trn_format format;
    } row[] = { { "weights", f.weights },
                { "activations", f.activations },
                { "gradients", f.gradients },
                { "optimizer", f.optimizer },
                { "kv", f.kv },
                { "compute", f.compute },
                { "attention", f.attention },
                { "experts", f.experts },
                { "lm_head", f.head } };
    fprintf(out, "  \"precision\": \"%s\",\n  \"formats\": {", trn_precision_name(job->args.precision));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        fprintf(out, "%s\"%s\": \"%s\"", i ? ", " : "", row[i].name, trn_format_name(row[i].format));
    fputs("},\n", out);
}

static void json_notes(const sp_job *job, FILE *out)
{
    sp_notes notes;
    sp_notes_of(job, &notes);
    fputs("  \"notes\": [", out);
    for (int i = 0; i < notes.count; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        app_print_json_string(out, notes.text[i]);
    }
    fputs(notes.count ? "\n  ],\n" : "],\n", out);
}

static void json_scaling(const sp_job *job, FILE *out)
{
    fputs(",\n  \"scaling\": [", out);
    for (int i = 0; i < job->scales; i++) {
        const sp_scale *s = &job->scale[i];
        fprintf(out,
                "%s\n    {\"chips\": %d, \"batch\": %lld, \"all_reduce_bytes\": %.0f, \"all_reduce_s\": ", i ? "," : "",
                s->chips, (long long)s->batch, SP_BUFFER);
        app_print_json_number(out, s->all_reduce_s);
        fputs(", \"time_s\": ", out);
        app_print_json_number(out, s->legal ? s->plan.time_s : (double)NAN);
        fputs(", \"expected_s\": ", out);
        app_print_json_number(out, s->legal ? s->plan.expected_s : (double)NAN);
        fputs(", \"tokens_per_s\": ", out);
        app_print_json_number(out, s->legal ? s->plan.tokens_per_s : (double)NAN);
        fputs(", \"expected_tokens_per_s\": ", out);
        app_print_json_number(out, s->legal ? s->plan.expected_tokens_per_s : (double)NAN);
        fprintf(out, ", \"tp\": %d, \"cp\": %d, \"ep\": %d, \"dp\": %d, \"pp\": %d}", s->plan.tp, s->plan.cp,
                s->plan.ep, s->plan.dp, s->plan.pp);
    }
    fputs("\n  ]", out);
}

void sp_print_json(FILE *out, const void *context)
{
    const sp_job *job = context;
    fputs("{\n  \"note\": \"results of a model, never measurements\",\n  \"model\": ", out);
    app_print_json_string(out, job->model.name);
    fprintf(out, ",\n  \"parameters\": %.0f,\n  \"active_parameters\": %.0f,\n  \"system\": ", job->size.total,
            job->size.active);
    app_print_json_string(out, job->net.name);
    fprintf(out, ",\n  \"chips\": %d,\n  \"job\": \"%s\",\n  \"batch\": %lld,\n  \"sequence\": %lld,\n", job->net.chips,
            trn_job_name(job->args.job), (long long)job->args.batch, (long long)job->args.sequence);
    json_formats(job, out);
    json_notes(job, out);
    fprintf(out, "  \"found\": %lld,\n  \"legal\": %lld,\n  \"variants\": %lld,\n  \"reasons\": {",
            (long long)job->list.found, (long long)job->list.legal, (long long)job->list.tried);
    for (int i = 1; i < TRN_PLAN_REASON_COUNT; i++)
        fprintf(out, "%s\"%s\": %lld", i > 1 ? ", " : "", trn_plan_reason_name((trn_plan_reason)i),
                (long long)job->list.reason[i]);
    fprintf(out, "},\n  \"%s\": ",
            job->options.sweep.values        ? "sweep"
            : sp_pareto_asked(&job->options) ? "pareto"
            : job->options.serving.rates     ? "served"
            : job->options.tornado           ? "tornado"
                                             : "plans");
    app_table t = answer_of(job);
    app_print_json_rows(out, &t, 2);
    app_table_free(&t);
    if (job->scales) json_scaling(job, out);
    fputs("\n}\n", out);
}

/* ---- the trace ---- */

static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

enum { EVENTS = 200000, LAYER = 4000, TRACKS = 2 * TRN_TRACE_TRACKS };

/* The operations of one layer, below the step's tracks, from the time 0. */
static void add_layer(const sp_job *job, trn_trace *trace, const char **name, char label[TRACKS][40])
{
    trn_trace_event *event = app_memory(LAYER, sizeof *event);
    trn_trace layer = { .event = event, .capacity = LAYER };
    if (!job->model.tables && app_worked(trn_plan_trace_layer(&job->args, &job->plan[0], &layer), &job->error)) {
        for (int64_t i = 0; i < layer.count; i++)
            trn_trace_add(trace, trace->tracks + event[i].track, event[i].name, event[i].start_s, event[i].duration_s,
                          event[i].text);
        for (int i = 0; i < layer.tracks; i++) {
            snprintf(label[i], sizeof label[i], "one layer: %s", layer.track[i]);
            name[trace->tracks++] = label[i];
        }
        trace->lost += layer.lost;
    }
    free(event);
}

void sp_print_trace(FILE *out, const void *context)
{
    const sp_job *job = context;
    char title[220], label[TRACKS][40];
    const char *name[TRACKS];
    trn_trace_event *event = app_resize(NULL, EVENTS, sizeof *event);
    trn_trace trace = { .event = event, .capacity = EVENTS, .title = title };
    snprintf(title, sizeof title, "%s on %s, %s, ideal times", job->model.name, job->net.name,
             job->list.legal ? sp_degrees(&job->plan[0]).text : "no legal plan");
    if (job->list.legal && app_worked(trn_plan_trace_step(&job->args, &job->plan[0], &trace), &job->error)) {
        for (int i = 0; i < trace.tracks; i++) name[i] = trace.track[i];
        trace.names = name;
        add_layer(job, &trace, name, label);
    }
    if (trace.lost) app_complain(APP_OK, "--trace: %lld events had no room", (long long)trace.lost);
    trn_trace_json(&trace, keep, out);
    free(event);
}
