/* pareto.c - which plans are fast enough, and which of them is the cheapest: tokens a second of a user against tokens a
 * second of a chip, of every plan on every part of the system at every batch.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"

enum { PLANS = 20000, LARGEST_BATCH = 1 << 16 };

bool sp_parse_seconds(const char *text, double *seconds, char *why)
{
    static const struct {
        const char *unit;
        double size;
    } row[] = { { "ms", 1e-3 }, { "us", 1e-6 }, { "s", 1 }, { "", 1 } };
    char number[64];
    const size_t n = strspn(text, "0123456789.eE+-");
    snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : sizeof number - 1), text);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(text + n, row[i].unit) != 0) continue;
        if (!app_parse_real(number, 1e-9, 1e9, seconds, why)) return false;
        *seconds *= row[i].size;
        return true;
    }
    return app_refuse(why, "expected a time such as 20ms or 1.5s");
}

static bool has_targets(const sp_options *o) { return o->target.ttft_s > 0 || o->target.tpot_s > 0; }

bool sp_pareto_asked(const sp_options *o) { return o->target.pareto || has_targets(o); }

/* ---- all plans ---- */

static double of_user(const sp_point *p) { return 1 / p->plan.expected_s; }
static double of_chip(const sp_point *p) { return p->plan.expected_tokens_per_s / p->chips; }

static bool below(double value, double target) { return target <= 0 || value <= target; }

static void judge(const sp_target *t, sp_point *p)
{
    p->meets = below(p->plan.expected_ttft_s, t->ttft_s) && below(p->plan.expected_s, t->tpot_s);
    p->surely = below(p->plan.expected_ttft_high_s, t->ttft_s) && below(p->plan.expected_high_s, t->tpot_s);
}

static void keep(sp_job *job, const trn_plan *plan, int chips, int64_t batch)
{
    if ((job->points & (job->points - 1)) == 0)
        job->point = app_resize(job->point, job->points ? 2 * (size_t)job->points : 1, sizeof *job->point);
    sp_point *p = &job->point[job->points++];
    memset(p, 0, sizeof *p);
    p->chips = chips;
    p->batch = batch;
    p->plan = *plan;
    judge(&job->options.target, p);
}

/* All plans of one part at one batch; false when there is none, for a larger batch has none either. */
static bool one_batch(sp_job *job, const trn_topology *net, int64_t batch, trn_plan *plan, bool *any, char *why)
{
    trn_plan_args args = job->args;
    trn_plan_list list;
    args.net = net;
    args.batch = batch;
    *any = false;
    if (trn_plan_search(&args, plan, PLANS, &list) != TRN_OK)
        return app_fail(why, "on %d chips, batch %lld: %s", net->chips, (long long)batch, job->error.text);
    for (int64_t i = 0; i < list.legal && i < list.kept; i++) keep(job, &plan[i], net->chips, batch);
    *any = list.legal > 0 || !list.reason[TRN_PLAN_HBM];
    return true;
}

/* Batches of 1, 2, 4, ... times `base`, as long as some plan has room for them. */
static bool each_batch(sp_job *job, const trn_topology *net, int64_t base, trn_plan *plan, char *why)
{
    const int64_t only = job->options.args.batch;
    bool any = true;
    for (int64_t batch = only ? only : base; any && batch <= (only ? only : LARGEST_BATCH); batch *= 2) {
        app_progress("%d chips, batch %lld", net->chips, (long long)batch);
        if (!one_batch(job, net, batch, plan, &any, why)) return false;
    }
    return true;
}

/* Where the chips are no power of two, batches that they divide, too. */
static bool one_part(sp_job *job, const trn_topology *net, trn_plan *plan, char *why)
{
    int odd = net->chips;
    while (odd % 2 == 0) odd /= 2;
    return each_batch(job, net, 1, plan, why) &&
           (odd == 1 || job->options.args.batch || each_batch(job, net, odd, plan, why));
}

/* ---- which of them ---- */

/* More of a user's rate first; then more of a chip's; then fewer chips. */
static int by_user(const void *a, const void *b)
{
    const sp_point *x = a, *y = b;
    if (of_user(x) > of_user(y) || of_user(x) < of_user(y)) return of_user(x) > of_user(y) ? -1 : 1;
    if (of_chip(x) > of_chip(y) || of_chip(x) < of_chip(y)) return of_chip(x) > of_chip(y) ? -1 : 1;
    return x->chips - y->chips;
}

/* Of a price for a chip, the cheapest first: more tokens a chip. */
static int by_chip(const void *a, const void *b)
{
    const sp_point *x = a, *y = b;
    if (of_chip(x) > of_chip(y) || of_chip(x) < of_chip(y)) return of_chip(x) > of_chip(y) ? -1 : 1;
    return by_user(a, b);
}

static void mark_front(sp_job *job)
{
    double best = 0;
    qsort(job->point, (size_t)job->points, sizeof *job->point, by_user);
    for (int i = 0; i < job->points; i++) {
        sp_point *p = &job->point[i];
        p->front = of_chip(p) > best * (1 + 1e-9);
        if (p->front) best = of_chip(p);
    }
}

bool sp_pareto_run(sp_job *job, char *why)
{
    const sp_options *o = &job->options;
    trn_plan *plan = app_resize(NULL, PLANS, sizeof *plan);
    trn_topology part;
    bool ok = true;
    for (int64_t chips = 1; ok; chips *= 2) {
        const bool last = o->chips || chips >= job->net.chips;
        if (last)
            ok = one_part(job, &job->net, plan, why);
        else if (sp_part_of(&job->net, chips, &part))
            ok = one_part(job, &part, plan, why);
        if (last) break;
    }
    app_progress_done();
    free(plan);
    if (!ok) return false;
    mark_front(job);
    if (has_targets(o)) qsort(job->point, (size_t)job->points, sizeof *job->point, by_chip);
    return true;
}

bool sp_pareto_met(const sp_job *job)
{
    for (int i = 0; i < job->points; i++)
        if (job->point[i].meets) return true;
    return false;
}

/* Those that are shown: the front, or with targets all that meet them. */
static bool shown(const sp_job *job, const sp_point *p)
{
    return job->options.target.pareto ? p->front && p->meets : p->meets;
}

/* ---- rows ---- */

static const app_column columns[] = {
    { "chips", APP_INTEGER, "chips", "of the part of the system" },
    { "batch", APP_INTEGER, "sequences", "at once, on all of them" },
    { "tp", APP_INTEGER, "chips", "tensor parallelism; with --lnc in logical cores" },
    { "cp", APP_INTEGER, "chips", "context parallelism" },
    { "ep", APP_INTEGER, "chips", "expert parallelism" },
    { "dp", APP_INTEGER, "chips", "data parallelism" },
    { "pp", APP_INTEGER, "chips", "pipeline parallelism" },
    { "user_tokens_per_s", APP_REAL, "1/s", "of one sequence, expected" },
    { "chip_tokens_per_s", APP_REAL, "1/s", "of all sequences, for each chip, expected" },
    { "tpot_s", APP_REAL, "s", "of a token, expected" },
    { "tpot_low_s", APP_REAL, "s", "four of five published times lie between this" },
    { "tpot_high_s", APP_REAL, "s", "and this" },
    { "ttft_s", APP_REAL, "s", "to the first token of a prompt that nothing precedes, expected" },
    { "hbm_bytes", APP_REAL, "B", "of the fullest chip" },
    { "pareto", APP_TEXT, "", "yes: no other has more of both rates" },
    { "meets", APP_TEXT, "", "the targets: surely (at the upper end of the range, too) or expected" },
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

app_table sp_pareto_table(const sp_job *job)
{
    static app_column column[COLUMNS + SP_COST_COLUMNS];
    app_table t;
    memcpy(column, columns, sizeof columns);
    memcpy(column + COLUMNS, sp_cost_column, sizeof sp_cost_column);
    app_table_start(&t, column, COLUMNS + SP_COST_COLUMNS);
    for (int i = 0; i < job->points; i++) {
        const sp_point *p = &job->point[i];
        const trn_plan *x = &p->plan;
        const int64_t count[] = { p->chips, p->batch, sp_tp(x), x->cp, x->ep, x->dp, x->pp };
        const double real[] = { of_user(p),         of_chip(p),         x->expected_s,  x->expected_low_s,
                                x->expected_high_s, x->expected_ttft_s, x->memory.total };
        if (!shown(job, p)) continue;
        const sp_cost cost = sp_cost_of(job, x, p->chips);
        app_row(&t);
        for (size_t k = 0; k < sizeof count / sizeof count[0]; k++) app_integer(&t, count[k]);
        for (size_t k = 0; k < sizeof real / sizeof real[0]; k++) app_real(&t, real[k]);
        app_text(&t, "%s", p->front ? "yes" : "no");
        app_text(&t, "%s", !has_targets(&job->options) ? "" : p->surely ? "surely" : "expected");
        sp_cost_add(&t, &cost);
    }
    return t;
}

/* ---- for people ---- */

/* Nobody is fast enough: who is nearest? */
static void print_nearest(FILE *out, const sp_job *job)
{
    const sp_point *token = NULL, *first = NULL;
    for (int i = 0; i < job->points; i++) {
        const sp_point *p = &job->point[i];
        if (!token || p->plan.expected_s < token->plan.expected_s) token = p;
        if (!first || p->plan.expected_ttft_s < first->plan.expected_ttft_s) first = p;
    }
    fputs("\nno plan meets the targets", out);
    if (token)
        fprintf(out,
                "; the shortest token takes %s (%d chips, batch %lld, %s), the first comes after %s at the soonest "
                "(%d chips, %s)",
                sp_time(token->plan.expected_s).text, token->chips, (long long)token->batch,
                sp_degrees(&token->plan).text, sp_time(first->plan.expected_ttft_s).text, first->chips,
                sp_degrees(&first->plan).text);
    fputs("\n", out);
}

void sp_pareto_print(FILE *out, const sp_job *job)
{
    const sp_options *o = &job->options;
    int64_t left = sp_top(job, o->target.pareto ? 40 : 10), all = 0;
    if (!sp_pareto_met(job)) {
        print_nearest(out, job);
        return;
    }
    for (int i = 0; i < job->points; i++) all += job->point[i].meets;
    fprintf(out, "\n%s of %s plans on parts of the system at batches of their own%s\n", sp_count(all).text,
            sp_count(job->points).text,
            o->target.pareto ? "; those that no other beats at both rates" : " meet the targets; the cheapest first");
    fprintf(out, "  tokens/s/user  tokens/s/chip  chips   batch     token  (low      to   high)     first%s%s  plan\n",
            has_targets(o) ? "  meets   " : "", o->price.priced ? "  USD/Mtoken" : "");
    for (int i = 0; i < job->points && left > 0; i++) {
        const sp_point *p = &job->point[i];
        const trn_plan *x = &p->plan;
        if (!shown(job, p)) continue;
        const sp_cost c = sp_cost_of(job, x, p->chips);
        fprintf(out, "  %13.4g  %13.4g  %5d  %6lld  %8s  %8s  %8s  %8s", of_user(p), of_chip(p), p->chips,
                (long long)p->batch, sp_time(x->expected_s).text, sp_time(x->expected_low_s).text,
                sp_time(x->expected_high_s).text, sp_time(x->expected_ttft_s).text);
        if (has_targets(o)) fprintf(out, "  %-8s", p->surely ? "surely" : "expected");
        if (o->price.priced) fprintf(out, "  %10.4g", c.mtoken_usd);
        fprintf(out, "  %s\n", sp_degrees(x).text);
        left--;
    }
}

/* ---- the picture ---- */

static int line_of(const sp_job *job, bool meets, double *x, double *y)
{
    int n = 0;
    for (int i = 0; i < job->points; i++)
        if (job->point[i].front && (!meets || job->point[i].meets)) {
            x[n] = of_user(&job->point[i]);
            y[n++] = of_chip(&job->point[i]);
        }
    return n;
}

void sp_pareto_report(FILE *out, const sp_job *job)
{
    const size_t n = (size_t)job->points;
    if (!n) return;
    double *x[2], *y[2], *memory = app_memory(4 * n, sizeof *memory);
    chart_line line[2];
    for (int k = 0; k < 2; k++) {
        x[k] = memory + (size_t)(2 * k) * n;
        y[k] = x[k] + n;
        const int count = line_of(job, k == 1, x[k], y[k]);
        line[k] = (chart_line){
            k ? "that meet the targets" : "plans that no other beats", x[k], y[k], count, k ? 2 : 0, false, true
        };
    }
    fputs("<h2>Fast for a user, or cheap</h2><p>Every plan of every part of the system, at every batch.</p>"
          "<div class=card>",
          out);
    chart_lines(out, &(chart){ .title = "Tokens a second",
                               .x_title = "of a user",
                               .y_title = "of a chip",
                               .line = line,
                               .lines = has_targets(&job->options) ? 2 : 1,
                               .x_log = true,
                               .y_log = true });
    fputs("</div><details class=card><summary>plan by plan</summary>", out);
    app_table t = sp_pareto_table(job);
    app_html_table(out, &t);
    app_table_free(&t);
    fputs("</details>\n", out);
    free(memory);
}
