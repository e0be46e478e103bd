/* chakra_print.c - traces of other programs, priced: the time of a step, of each kind of operation, and what the last
 * rank waited for.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "traces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/files.h"

/* Operations of one kind, or of one name: how many, and what they take together. */
typedef struct sum {
    const char *kind, *name;
    int64_t count;
    double takes[SP_TIMES];
} sum;

typedef struct answer {
    const sp_job *job;
    sp_traces t;
    sp_run run[SP_TIMES];
    double step_s[SP_TIMES]; /* contention included */
    int rank;                /* that ends last, as it is expected */
    sum *kind, *path;        /* [kinds] of that rank; [paths] on the critical path, the longest first */
    int64_t kinds, paths;
} answer;

/* ---- sums ---- */

static int by_name(const void *left, const void *right)
{
    const sum *a = left, *b = right;
    const int kind = strcmp(a->kind, b->kind);
    return kind ? kind : strcmp(a->name, b->name);
}

static int by_time(const void *left, const void *right)
{
    const sum *a = left, *b = right;
    if (a->takes[SP_EXPECTED] > b->takes[SP_EXPECTED]) return -1;
    return a->takes[SP_EXPECTED] < b->takes[SP_EXPECTED] ? 1 : by_name(left, right);
}

/* Equal kinds and names become one; returns how many are left, the longest first. */
static int64_t add_up(sum *s, int64_t count)
{
    int64_t kept = 0;
    if (count) qsort(s, (size_t)count, sizeof *s, by_name);
    for (int64_t i = 0; i < count; i++) {
        if (!kept || by_name(&s[kept - 1], &s[i]) != 0) {
            s[kept++] = s[i];
            continue;
        }
        s[kept - 1].count++;
        for (int k = 0; k < SP_TIMES; k++) s[kept - 1].takes[k] += s[i].takes[k];
    }
    if (kept) qsort(s, (size_t)kept, sizeof *s, by_time);
    return kept;
}

static sum one(const sp_traces *t, int64_t operation, bool named)
{
    const sp_operation *o = &t->operation[operation];
    sum s = { sp_operation_name(t, operation), named ? t->rank[o->rank].node[o->node].name : "", 1, { 0 } };
    memcpy(s.takes, t->takes[operation], sizeof s.takes);
    return s;
}

static void sum_kinds(answer *a)
{
    const chakra_trace *r = &a->t.rank[a->rank];
    a->kind = app_resize(NULL, (size_t)r->count + 1, sizeof *a->kind);
    for (int64_t i = 0; i < r->count; i++)
        if (r->node[i].type > CHAKRA_METADATA && r->node[i].type != CHAKRA_RECEIVE)
            a->kind[a->kinds++] = one(&a->t, a->t.operation_of[a->rank][i], false);
    a->kinds = add_up(a->kind, a->kinds);
}

static void sum_path(answer *a)
{
    const sp_run *run = &a->run[SP_EXPECTED];
    int64_t count = 0;
    for (int64_t o = run->last; o >= 0; o = run->after[o]) count++;
    a->path = app_resize(NULL, (size_t)count + 1, sizeof *a->path);
    for (int64_t o = run->last; o >= 0; o = run->after[o])
        if (a->t.takes[o][SP_EXPECTED] > 0) a->path[a->paths++] = one(&a->t, o, true);
    a->paths = add_up(a->path, a->paths);
}

/* ---- everything ---- */

bool sp_chakra_check(const sp_options *o, char *why)
{
    const sp_chakra_ask *c = &o->chakra;
    if (!c->in && (c->groups || c->recorded))
        return app_refuse(why, "--chakra-groups and --chakra-recorded belong to --chakra-in");
    if (!c->out && c->ranks) return app_refuse(why, "--chakra-ranks belongs to --chakra");
    if (!c->in) return true;
    if (o->config || c->out) return app_refuse(why, "--chakra-in excludes CONFIG and --chakra: a trace or a model");
    if (o->published || o->html || o->trace || o->scaling || o->why || o->measureds || o->chips || o->sweep.values ||
        o->tornado)
        return app_refuse(why,
                          "--chakra-in is answered as text, --csv and --json, of as many chips as there are ranks");
    return true;
}

/* Of a network with as many chips as there are ranks. */
static bool settle(sp_job *job, const sp_traces *t, char *why)
{
    sp_options *o = &job->options;
    const trn_topology all = sp_whole_net(job);
    if (t->ranks > all.chips)
        return app_fail(why, "--chakra-in: there are %d ranks, but %s has %d chips", t->ranks, all.name, all.chips);
    if (all.chips != t->ranks || o->instance) o->chips = t->ranks;
    if (!sp_settle(job, why)) return false;
    if (job->net.chips == t->ranks) return true;
    return app_fail(why, "--chakra-in: there are %d ranks, but %d chips", t->ranks, job->net.chips);
}

static bool work(answer *a, sp_job *job, char *why)
{
    if (!sp_traces_read(&job->options.chakra, &a->t, why) || !settle(job, &a->t, why) ||
        !sp_traces_price(job, &a->t, why))
        return false;
    const double contention = trn_plan_assumptions_default(&job->args.assumptions).contention;
    for (int k = 0; k < SP_TIMES; k++) {
        if (!sp_traces_run(&a->t, k, &a->run[k], why)) return false;
        a->step_s[k] = a->run[k].end_s + contention * a->run[k].both_s;
    }
    a->rank = a->t.operation[a->run[SP_EXPECTED].last].rank;
    sum_kinds(a);
    sum_path(a);
    return true;
}

static void finish(answer *a)
{
    for (int k = 0; k < SP_TIMES; k++) sp_run_free(&a->run[k]);
    sp_traces_free(&a->t);
    free(a->kind);
    free(a->path);
}

/* ---- text ---- */

static void print_sums(FILE *out, const answer *a, const sum *s, int64_t count, int64_t most)
{
    for (int64_t i = 0; i < count && i < most; i++) {
        const double share = s[i].takes[SP_EXPECTED] / a->step_s[SP_EXPECTED];
        app_say(out, "  %-14s %-30.30s %9lld  %9s  %7s  %9s\n", s[i].kind, s[i].name, (long long)s[i].count,
                sp_time(s[i].takes[SP_EXPECTED]).text, sp_percent(share).text, sp_time(s[i].takes[SP_IDEAL]).text);
    }
    if (count > most) fprintf(out, "  and %lld more\n", (long long)(count - most));
}

static void print_text(FILE *out, const void *context)
{
    const answer *a = context;
    const sp_run *run = &a->run[SP_EXPECTED];
    const int64_t most = sp_top(a->job, 10);
    app_say(out, "%s: %s ranks, %s operations\n", a->job->options.chakra.in, sp_count(a->t.ranks).text,
            sp_count(a->t.operations).text);
    app_say(out, "%s: %s chips, rank r on chip r\n", a->job->net.name, sp_count(a->job->net.chips).text);
    if (a->t.silent)
        fprintf(out, "  note: %s nodes of work say neither what they do nor how long they take: no time\n",
                sp_count(a->t.silent).text);
    fprintf(out, "\na step in %s", sp_time(a->step_s[SP_EXPECTED]).text);
    fprintf(out, " (%s to %s: every operation at the lower end of its range, and at the upper; ideal %s)\n",
            sp_time(a->step_s[SP_LOW]).text, sp_time(a->step_s[SP_HIGH]).text, sp_time(a->step_s[SP_IDEAL]).text);
    fprintf(out, "  exposed communication %s, at the same time as work %s, contention %s, idle %s\n",
            sp_time(run->talk_s - run->both_s).text, sp_time(run->both_s).text,
            sp_time(a->step_s[SP_EXPECTED] - run->end_s).text,
            sp_time(fmax(0, run->end_s - run->work_s - run->talk_s + run->both_s)).text);
    fprintf(out, "\nrank %d, which ends last %26s  %9s  %9s  %7s  %9s\n", a->rank, "", "count", "expected", "share",
            "ideal");
    print_sums(out, a, a->kind, a->kinds, CHAKRA_COLLECTIVES + CHAKRA_TYPES);
    fprintf(out, "\nthe critical path\n");
    print_sums(out, a, a->path, a->paths, most);
    fprintf(out, "\nResults of a model, never measurements.\n");
}

/* ---- rows ---- */

static const app_column column[] = {
    { "part", APP_TEXT, "", "step: all of it; kind: of the rank that ends last; path: on the critical path" },
    { "kind", APP_TEXT, "", "work, host, a collective, send" },
    { "name", APP_TEXT, "", "of the nodes" },
    { "rank", APP_INTEGER, "", "that ends last" },
    { "count", APP_INTEGER, "", "operations" },
    { "ideal_s", APP_REAL, "s", "all rates as documented" },
    { "expected_low_s", APP_REAL, "s", "every operation at the lower end of its range" },
    { "expected_s", APP_REAL, "s", "as it is expected to be" },
    { "expected_high_s", APP_REAL, "s", "every operation at the upper end" },
    { "exposed_s", APP_REAL, "s", "step: communication that no work hides, expected" },
    { "hidden_s", APP_REAL, "s", "step: communication at the same time as work, expected" },
};

static void add_row(app_table *table, const answer *a, const char *part, const sum *s, double exposed_s,
                    double hidden_s)
{
    app_row(table);
    app_text(table, "%s", part);
    app_text(table, "%s", s->kind);
    app_text(table, "%s", s->name);
    app_integer(table, a->rank);
    app_integer(table, s->count);
    for (int k = 0; k < SP_TIMES; k++) app_real(table, s->takes[k]);
    app_real(table, exposed_s);
    app_real(table, hidden_s);
}

static app_table rows_of(const answer *a)
{
    const double nothing = (double)NAN;
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    if (!a->job) return table;
    const sp_run *run = &a->run[SP_EXPECTED];
    sum all = { "", "", a->t.operations, { 0 } };
    memcpy(all.takes, a->step_s, sizeof all.takes);
    add_row(&table, a, "step", &all, run->talk_s - run->both_s, run->both_s);
    for (int64_t i = 0; i < a->kinds; i++) add_row(&table, a, "kind", &a->kind[i], nothing, nothing);
    for (int64_t i = 0; i < a->paths; i++) add_row(&table, a, "path", &a->path[i], nothing, nothing);
    return table;
}

static void print_csv(FILE *out, const void *context)
{
    app_table table = rows_of(context);
    app_print_csv(out, &table);
    app_table_free(&table);
}

static void print_json(FILE *out, const void *context)
{
    const answer *a = context;
    app_table table = rows_of(a);
    fputs("{\n  \"note\": \"results of a model, never measurements\",\n  \"schema\": \"shardplan.chakra\",\n", out);
    app_print_json_pair(out, "trace", a->job->options.chakra.in);
    app_print_json_pair(out, "system", a->job->net.name);
    fprintf(out, "  \"ranks\": %d,\n  \"results\": ", a->t.ranks);
    app_print_json_rows(out, &table, 2);
    fputs("\n}\n", out);
    app_table_free(&table);
}

void sp_chakra_schema(void)
{
    static const answer none;
    app_table table = rows_of(&none);
    app_print_schema(stdout, "shardplan --chakra-in", &table);
    app_table_free(&table);
}

int sp_chakra_price(sp_job *job)
{
    char why[APP_WHY];
    answer a = { .job = job };
    app_output output[] = { { .flag = "--csv", .path = job->options.csv, .write = print_csv },
                            { .flag = "--json", .path = job->options.json, .write = print_json } };
    int status = app_open_outputs(output, 2);
    if (status == APP_OK && !work(&a, job, why)) status = app_complain(APP_USAGE, "%s", why);
    if (status == APP_OK) status = app_answer(output, 2, &a, print_text);
    app_discard_outputs(output, 2);
    finish(&a);
    return app_flush(status);
}
