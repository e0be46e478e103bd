/* data.c - the answer as CSV and JSON: one row for each set of degrees, legal or not; and as a trace.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_plan_trace.h>

void sp_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else if (c < 0x20) fprintf(out, "\\u%04x", c);
        else fputc(c, out);
    }
    fputc('"', out);
}

/* The shortest decimal that reads back as the same double. */
void sp_json_number(FILE *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fputs("null", out);
        return;
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        fprintf(out, "%.0f", value);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

/* ---- one row: fields that CSV and JSON share ---- */

enum { FIELDS = 43 };

typedef struct sp_field {
    const char *name, *text; /* a text, or a number; missing: NaN */
    double number;
} sp_field;

typedef struct sp_row {
    sp_field field[FIELDS];
    int fields;
} sp_row;

static void add_text(sp_row *r, const char *name, const char *text)
{
    r->field[r->fields].name = name;
    r->field[r->fields++].text = text;
}

static void add_number(sp_row *r, const char *name, double number)
{
    r->field[r->fields].name = name;
    r->field[r->fields++].number = number;
}

static void add_time(sp_row *r, const trn_plan *p)
{
#define TRNI_X(id, field, text) add_number(r, #field, p->legal ? p->time.field : TRNI_NAN);
    TRNI_PLAN_PARTS(TRNI_X)
#undef TRNI_X
    add_number(r, "hidden_s", p->legal ? p->time.hidden_s : TRNI_NAN);
    add_number(r, "contention_s", p->legal ? p->time.contention_s : TRNI_NAN);
}

static void add_memory(sp_row *r, const trn_plan *p)
{
    const bool counted = p->memory.capacity > 0;
    const trn_plan_memory *b = &p->memory;
    const struct {
        const char *name;
        double bytes;
    } row[] = {
        { "weights_bytes", b->weights }, { "gradients_bytes", b->gradients }, { "optimizer_bytes", b->optimizer },
        { "activations_bytes", b->activations }, { "kv_bytes", b->kv }, { "buffers_bytes", b->buffers },
        { "hbm_bytes", b->total }, { "hbm_capacity_bytes", b->capacity },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        add_number(r, row[i].name, counted ? row[i].bytes : TRNI_NAN);
}

static sp_row row_of(const sp_job *job, const trn_plan *p, int64_t rank)
{
    sp_row r;
    memset(&r, 0, sizeof r);
    add_number(&r, "rank", p->legal ? (double)rank : TRNI_NAN);
    add_number(&r, "tp", p->tp);
    add_number(&r, "cp", p->cp);
    add_number(&r, "ep", p->ep);
    add_number(&r, "dp", p->dp);
    add_number(&r, "pp", p->pp);
    add_text(&r, "outermost", p->order == TRN_ORDER_DP_PP ? "pp" : "dp");
    add_text(&r, "sp", p->sp ? "yes" : "no");
    add_number(&r, "microbatch", p->microbatch ? (double)p->microbatch : TRNI_NAN);
    add_number(&r, "microbatches", p->microbatches ? (double)p->microbatches : TRNI_NAN);
    add_text(&r, "zero", job->args.job == TRN_JOB_TRAIN && p->legal ? trn_zero_name(p->zero) : "");
    add_text(&r, "recompute", job->args.job == TRN_JOB_TRAIN && p->legal ? trn_recompute_name(p->recompute) : "");
    add_text(&r, "legal", p->legal ? "yes" : "no");
    add_text(&r, "reason", p->legal ? "" : trn_plan_reason_name(p->reason));
    add_text(&r, "why", p->why);
    add_number(&r, "time_s", p->legal ? p->time_s : TRNI_NAN);
    add_number(&r, "ttft_s", p->legal && job->args.job != TRN_JOB_TRAIN ? p->ttft_s : TRNI_NAN);
    add_number(&r, "tokens_per_s", p->legal ? p->tokens_per_s : TRNI_NAN);
    add_number(&r, "mfu", p->legal ? p->mfu : TRNI_NAN);
    add_text(&r, "bottleneck", p->legal ? trn_plan_part_name(p->bottleneck) : "");
    add_text(&r, "tp_algorithm", p->legal && p->tp_algorithm ? trn_algorithm_name(p->tp_algorithm) : "");
    add_text(&r, "dp_algorithm", p->legal && p->dp_algorithm ? trn_algorithm_name(p->dp_algorithm) : "");
    add_time(&r, p);
    add_memory(&r, p);
    return r;
}

/* ---- CSV (RFC 4180) ---- */

static void csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_row(FILE *out, const sp_row *r)
{
    for (int i = 0; i < r->fields; i++) {
        if (i) fputc(',', out);
        if (r->field[i].text) csv_text(out, r->field[i].text);
        else if (isfinite(r->field[i].number)) sp_json_number(out, r->field[i].number);
    }
    fputc('\n', out);
}

void sp_print_csv(const sp_job *job, FILE *out)
{
    for (int64_t i = 0; i < job->list.kept; i++) {
        const sp_row r = row_of(job, &job->plan[i], i + 1);
        for (int f = 0; i == 0 && f < r.fields; f++) fprintf(out, "%s%s", f ? "," : "", r.field[f].name);
        if (i == 0) fputc('\n', out);
        csv_row(out, &r);
    }
}

/* ---- JSON ---- */

static void json_row(FILE *out, const sp_row *r)
{
    fputs("    {", out);
    for (int i = 0; i < r->fields; i++) {
        fprintf(out, "%s\"%s\": ", i ? ", " : "", r->field[i].name);
        if (r->field[i].text) sp_json_string(out, r->field[i].text);
        else sp_json_number(out, r->field[i].number);
    }
    fputc('}', out);
}

static void json_scaling(const sp_job *job, FILE *out)
{
    fputs(",\n  \"scaling\": [", out);
    for (int i = 0; i < job->scales; i++) {
        const sp_scale *s = &job->scale[i];
        fprintf(out,
                "%s\n    {\"chips\": %d, \"batch\": %lld, \"all_reduce_bytes\": %.0f, \"all_reduce_s\": ", i ? "," : "",
                s->chips, (long long)s->batch, SP_BUFFER);
        sp_json_number(out, s->all_reduce_s);
        fputs(", \"time_s\": ", out);
        sp_json_number(out, s->legal ? s->plan.time_s : TRNI_NAN);
        fputs(", \"tokens_per_s\": ", out);
        sp_json_number(out, s->legal ? s->plan.tokens_per_s : TRNI_NAN);
        fprintf(out, ", \"tp\": %d, \"cp\": %d, \"ep\": %d, \"dp\": %d, \"pp\": %d}", s->plan.tp, s->plan.cp,
                s->plan.ep, s->plan.dp, s->plan.pp);
    }
    fputs("\n  ]", out);
}

void sp_print_json(const sp_job *job, FILE *out)
{
    fputs("{\n  \"note\": \"results of a model, never measurements\",\n  \"model\": ", out);
    sp_json_string(out, job->model.name);
    fprintf(out, ",\n  \"parameters\": %.0f,\n  \"active_parameters\": %.0f,\n  \"system\": ", job->size.total,
            job->size.active);
    sp_json_string(out, job->net.name);
    fprintf(out,
            ",\n  \"chips\": %d,\n  \"job\": \"%s\",\n  \"batch\": %lld,\n  \"sequence\": %lld,\n  \"found\": %lld,\n"
            "  \"legal\": %lld,\n  \"variants\": %lld,\n  \"reasons\": {",
            job->net.chips, trn_job_name(job->args.job), (long long)job->args.batch, (long long)job->args.sequence,
            (long long)job->list.found, (long long)job->list.legal, (long long)job->list.tried);
    for (int i = 1; i < TRN_PLAN_REASON_COUNT; i++)
        fprintf(out, "%s\"%s\": %lld", i > 1 ? ", " : "", trn_plan_reason_name((trn_plan_reason)i),
                (long long)job->list.reason[i]);
    fputs("},\n  \"plans\": [\n", out);
    for (int64_t i = 0; i < job->list.kept; i++) {
        const sp_row r = row_of(job, &job->plan[i], i + 1);
        json_row(out, &r);
        fputs(i + 1 < job->list.kept ? ",\n" : "\n", out);
    }
    fputs("  ]", out);
    if (job->scales) json_scaling(job, out);
    fputs("\n}\n", out);
}

/* ---- the trace ---- */

static void keep(void *user, const char *text, size_t bytes) { fwrite(text, 1, bytes, (FILE *)user); }

void sp_print_trace(const sp_job *job, FILE *out)
{
    enum { EVENTS = 200000 };
    char title[200];
    trn_trace_event *event = malloc(EVENTS * sizeof *event);
    trn_trace trace = { .event = event, .capacity = event ? EVENTS : 0, .title = title };
    snprintf(title, sizeof title, "%s on %s, %s", job->model.name, job->net.name,
             job->list.legal ? sp_degrees(&job->plan[0]).text : "no legal plan");
    if (job->list.legal) trn_plan_trace_step(&job->args, &job->plan[0], &trace);
    if (trace.lost) fprintf(stderr, "shardplan: --trace: %lld events had no room\n", (long long)trace.lost);
    trn_trace_json(&trace, keep, out);
    free(event);
}
