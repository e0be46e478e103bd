/* data.c - the answer as CSV and JSON: one row for each set of degrees, legal or not; and as a trace.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <stdlib.h>

#include <trnmath/trn_plan_trace.h>

/* ---- one row: what CSV and JSON share ---- */

#define TRNI_X(id, field, text) { #field, APP_REAL, "s", text },
static const app_column column[] = {
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
    { "time_s", APP_REAL, "s", "of a step, a batch of prompts, or a token" },
    { "ttft_s", APP_REAL, "s", "to the first token of one prompt" },
    { "tokens_per_s", APP_REAL, "1/s", "of the whole machine" },
    { "mfu", APP_REAL, "share", "of the published flop/s" },
    { "bottleneck", APP_TEXT, "", "the part that takes most of the time" },
    { "tp_algorithm", APP_TEXT, "", "of tp's collectives" },
    { "dp_algorithm", APP_TEXT, "", "of dp's collectives" },
    TRNI_PLAN_PARTS(TRNI_X) /* the times of the parts */
    { "hidden_s", APP_REAL, "s", "communication beside work" },
    { "contention_s", APP_REAL, "s", "what both lose by that" },
    { "weights_bytes", APP_REAL, "B", "of the fullest chip, and so the next five" },
    { "gradients_bytes", APP_REAL, "B", "" },
    { "optimizer_bytes", APP_REAL, "B", "" },
    { "activations_bytes", APP_REAL, "B", "" },
    { "kv_bytes", APP_REAL, "B", "" },
    { "buffers_bytes", APP_REAL, "B", "" },
    { "hbm_bytes", APP_REAL, "B", "all of these" },
    { "hbm_capacity_bytes", APP_REAL, "B", "HBM of a chip" },
};
#undef TRNI_X

/* A number that a plan has only when `there`. */
static void add(app_table *t, double value, bool there) { app_real(t, there ? value : TRNI_NAN); }

static void add_count(app_table *t, int64_t value, bool there)
{
    if (there) app_integer(t, value);
    else app_missing(t);
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
    add(t, p->time_s, p->legal);
    add(t, p->ttft_s, p->legal && job->args.job != TRN_JOB_TRAIN);
    add(t, p->tokens_per_s, p->legal);
    add(t, p->mfu, p->legal);
    app_text(t, "%s", p->legal ? trn_plan_part_name(p->bottleneck) : "");
    app_text(t, "%s", p->legal && p->tp_algorithm ? trn_algorithm_name(p->tp_algorithm) : "");
    app_text(t, "%s", p->legal && p->dp_algorithm ? trn_algorithm_name(p->dp_algorithm) : "");
}

static void add_time(app_table *t, const trn_plan *p)
{
#define TRNI_X(id, field, text) add(t, p->time.field, p->legal);
    TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
    add(t, p->time.hidden_s, p->legal);
    add(t, p->time.contention_s, p->legal);
}

static void add_memory(app_table *t, const trn_plan_memory *b)
{
    const double bytes[] = { b->weights, b->gradients, b->optimizer, b->activations,
                             b->kv,      b->buffers,   b->total,     b->capacity };
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) add(t, bytes[i], b->capacity > 0);
}

static app_table rows_of(const sp_job *job)
{
    app_table t;
    app_table_start(&t, column, sizeof column / sizeof column[0]);
    for (int64_t i = 0; i < job->list.kept; i++) {
        const trn_plan *p = &job->plan[i];
        app_row(&t);
        add_count(&t, i + 1, p->legal);
        add_degrees(&t, p);
        add_variant(&t, job, p);
        add_verdict(&t, job, p);
        add_time(&t, p);
        add_memory(&t, &p->memory);
    }
    return t;
}

void sp_print_csv(FILE *out, const void *context)
{
    const sp_job *job = context;
    app_table t = rows_of(job);
    app_print_csv(out, &t);
    app_table_free(&t);
}

void sp_print_schema(void)
{
    app_table t;
    app_table_start(&t, column, sizeof column / sizeof column[0]);
    app_print_schema(stdout, "shardplan", &t);
    app_table_free(&t);
}

/* ---- JSON ---- */

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
        app_print_json_number(out, s->legal ? s->plan.time_s : TRNI_NAN);
        fputs(", \"tokens_per_s\": ", out);
        app_print_json_number(out, s->legal ? s->plan.tokens_per_s : TRNI_NAN);
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
    fprintf(out,
            ",\n  \"chips\": %d,\n  \"job\": \"%s\",\n  \"batch\": %lld,\n  \"sequence\": %lld,\n  \"found\": %lld,\n"
            "  \"legal\": %lld,\n  \"variants\": %lld,\n  \"reasons\": {",
            job->net.chips, trn_job_name(job->args.job), (long long)job->args.batch, (long long)job->args.sequence,
            (long long)job->list.found, (long long)job->list.legal, (long long)job->list.tried);
    for (int i = 1; i < TRN_PLAN_REASON_COUNT; i++)
        fprintf(out, "%s\"%s\": %lld", i > 1 ? ", " : "", trn_plan_reason_name((trn_plan_reason)i),
                (long long)job->list.reason[i]);
    fputs("},\n  \"plans\": ", out);
    app_table t = rows_of(job);
    app_print_json_rows(out, &t, 2);
    app_table_free(&t);
    if (job->scales) json_scaling(job, out);
    fputs("\n}\n", out);
}

/* ---- the trace ---- */

static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

void sp_print_trace(FILE *out, const void *context)
{
    const sp_job *job = context;
    enum { EVENTS = 200000 };
    char title[200];
    trn_trace_event *event = malloc(EVENTS * sizeof *event);
    trn_trace trace = { .event = event, .capacity = event ? EVENTS : 0, .title = title };
    snprintf(title, sizeof title, "%s on %s, %s", job->model.name, job->net.name,
             job->list.legal ? sp_degrees(&job->plan[0]).text : "no legal plan");
    if (job->list.legal) trn_plan_trace_step(&job->args, &job->plan[0], &trace);
    if (trace.lost) app_complain(APP_OK, "--trace: %lld events had no room", (long long)trace.lost);
    trn_trace_json(&trace, keep, out);
    free(event);
}
