/* sweep.c - the best plan for each value of one number: --sweep link_rate=0.5:2:7, as text, rows and a curve.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"

/* ---- which values ---- */

static bool find(sp_knob *k, const char *name, char *why)
{
    for (int i = 0; sp_knob_at(i, k); i++)
        if (strcmp(k->name, name) == 0) return true;
    return app_fail(why, "no number is called %.40s; --help and --assumptions list them", name);
}

static bool add(void *into, const char *item, char *why)
{
    sp_sweep *s = into;
    if (s->values == SP_VALUES) return app_fail(why, "more than %d values", (int)SP_VALUES);
    return app_parse_real(item, 0, HUGE_VAL, &s->value[s->values++], why);
}

/* In equal ratios, from 0 in equal distances; whole numbers where only they can be, each once. */
static void spread(sp_sweep *s, double from, double to, int steps)
{
    for (int i = 0; i < steps; i++) {
        const double part = steps > 1 ? (double)i / (steps - 1) : 0;
        double x = from > 0 && to > 0 ? from * pow(to / from, part) : from + part * (to - from);
        if (i + 1 == steps && i) x = to;
        if (s->knob.kind == SP_COUNT) x = floor(x + 0.5);
        if (s->values && !(x < s->value[s->values - 1]) && !(x > s->value[s->values - 1])) continue;
        s->value[s->values++] = x;
    }
}

/* FROM:TO[:STEPS] */
static bool range(sp_sweep *s, const char *text, char *why)
{
    double end[2];
    int steps = SP_STEPS;
    for (int i = 0; i < 2; i++) {
        char part[64];
        const size_t n = strcspn(text, ":");
        if (n >= sizeof part || (i == 0 && !text[n])) return app_refuse(why, "expected NAME=FROM:TO[:STEPS]");
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        if (!app_parse_real(part, 0, HUGE_VAL, &end[i], why)) return false;
        text += n + (text[n] && i == 0);
    }
    if (*text == ':' && !app_parse_number(text + 1, 2, SP_VALUES, &steps, why)) return false;
    if (s->knob.kind == SP_COUNT && (end[0] < 1 || floor(end[0]) < end[0] || floor(end[1]) < end[1]))
        return app_fail(why, "%s has whole numbers only, from 1 on", s->knob.name);
    spread(s, end[0], end[1], steps);
    return true;
}

bool sp_sweep_parse(sp_sweep *s, const char *text, char *why)
{
    char name[64];
    const size_t n = strcspn(text, "=");
    if (!text[n] || !text[n + 1]) return app_refuse(why, "expected NAME=A,B,C or NAME=FROM:TO[:STEPS]");
    if (s->values) return app_refuse(why, "one sweep at a time");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    if (!find(&s->knob, name, why)) return false;
    return strchr(text + n, ':') ? range(s, text + n + 1, why) : app_parse_list(text + n + 1, add, s, why);
}

/* ---- the best plan for each ---- */

/* A sentence about the option that would have the value is one about the value. */
static const char *without_option(const char *sentence)
{
    const char *colon = strncmp(sentence, "--chips ", 8) == 0 ? strstr(sentence, ": ") : NULL;
    return colon ? colon + 2 : sentence;
}

static bool fail_value(const sp_job *job, int i, const char *sentence, char *why)
{
    const sp_sweep *s = &job->options.sweep;
    return app_fail(why, "--sweep %s=%g: %.400s", s->knob.name, s->value[i], without_option(sentence));
}

/* The job with value i. */
static bool turned(sp_job *job, int i, sp_job *one, char *why)
{
    const sp_sweep *s = &job->options.sweep;
    char sentence[APP_WHY];
    return sp_knob_turn(job, &s->knob, s->value[i], one, sentence) || fail_value(job, i, sentence, why);
}

static bool one_value(sp_job *job, int i, sp_job *one, char *why)
{
    sp_sweep_row *row = &job->row[i];
    trn_plan_list list;
    if (!turned(job, i, one, why)) return false;
    if (trn_plan_search(&one->args, &row->plan, 1, &list) != TRN_OK) return fail_value(job, i, one->error.text, why);
    row->chips = one->net.chips;
    row->legal = list.legal > 0;
    return true;
}

/* All values are checked before the first one takes its time. */
bool sp_sweep_run(sp_job *job, char *why)
{
    static sp_job one;
    const int values = job->options.sweep.values;
    bool ok = true;
    for (int i = 0; ok && i < values; i++) ok = turned(job, i, &one, why);
    if (!ok) return false;
    job->row = app_memory((size_t)values, sizeof *job->row);
    for (int i = 0; ok && i < values; i++) {
        app_progress("%d of %d values", i, values);
        ok = one_value(job, i, &one, why);
    }
    app_progress_done();
    return ok;
}

/* ---- rows ---- */

static const app_column columns[] = {
    { "parameter", APP_TEXT, "", "what --sweep moves" },
    { "unit", APP_TEXT, "", "of its value; times: of what the network and the chips have" },
    { "value", APP_REAL, "", "that it has in this row" },
    { "chips", APP_INTEGER, "chips", "of the network" },
    { "tp", APP_INTEGER, "chips", "tensor parallelism of the best plan" },
    { "cp", APP_INTEGER, "chips", "context parallelism" },
    { "ep", APP_INTEGER, "chips", "expert parallelism" },
    { "dp", APP_INTEGER, "chips", "data parallelism" },
    { "pp", APP_INTEGER, "chips", "pipeline parallelism" },
    { "tp_cores", APP_INTEGER, "cores", "--lnc: tp in logical cores" },
    { "legal", APP_TEXT, "", "yes or no: then the degrees are those of the nearest plan" },
    { "why", APP_TEXT, "", "why not, a sentence" },
    { "bound_s", APP_REAL, "s", "no plan is faster" },
    { "time_s", APP_REAL, "s", "ideal: of a step, a batch of prompts, or a token" },
    { "expected_s", APP_REAL, "s", "the same, expected" },
    { "expected_low_s", APP_REAL, "s", "four of five published times lie between this" },
    { "expected_high_s", APP_REAL, "s", "and this" },
    { "expected_tokens_per_s", APP_REAL, "1/s", "of the whole machine, expected" },
    { "expected_mfu", APP_REAL, "share", "of the published flop/s, expected" },
    { "bottleneck", APP_TEXT, "", "the part that takes most of the expected time" },
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_plan(app_table *t, const sp_sweep_row *row)
{
    const trn_plan *p = &row->plan;
    const int degree[] = { p->tp, p->cp, p->ep, p->dp, p->pp };
    const double seconds[] = { p->bound_s,        p->time_s,          p->expected_s,
                               p->expected_low_s, p->expected_high_s, p->expected_tokens_per_s,
                               p->expected_mfu };
    for (size_t i = 0; i < sizeof degree / sizeof degree[0]; i++) app_integer(t, degree[i]);
    if (p->tp_cores)
        app_integer(t, p->tp_cores);
    else
        app_missing(t);
    app_text(t, "%s", row->legal ? "yes" : "no");
    app_text(t, "%s", p->why);
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) app_real(t, row->legal ? seconds[i] : (double)NAN);
    app_text(t, "%s", row->legal ? trn_plan_part_name(p->bottleneck) : "");
}

app_table sp_sweep_table(const sp_job *job)
{
    static app_column column[COLUMNS + SP_COST_COLUMNS];
    const sp_sweep *s = &job->options.sweep;
    app_table t;
    memcpy(column, columns, sizeof columns);
    memcpy(column + COLUMNS, sp_cost_column, sizeof sp_cost_column);
    app_table_start(&t, column, COLUMNS + SP_COST_COLUMNS);
    for (int i = 0; job->row && i < s->values; i++) {
        const sp_cost cost = sp_cost_of(job, &job->row[i].plan, job->row[i].chips);
        app_row(&t);
        app_text(&t, "%s", s->knob.name);
        app_text(&t, "%s", s->knob.unit);
        app_real(&t, s->value[i]);
        app_integer(&t, job->row[i].chips);
        add_plan(&t, &job->row[i]);
        sp_cost_add(&t, &cost);
    }
    return t;
}

/* ---- text ---- */

/* What the heading says of the number: "(times the network's own)". */
static const char *unit_text(const sp_knob *k)
{
    if (k->kind != SP_FACTOR) return k->unit;
    return k->index == SP_HBM_RATE ? "times the chips' own" : "times the network's own";
}

static void print_cost(FILE *out, const sp_job *job, const sp_sweep_row *row)
{
    const sp_cost c = sp_cost_of(job, &row->plan, row->chips);
    if (job->options.price.priced) fprintf(out, "  %10.4g  %10.4g", c.step_usd, c.mtoken_usd);
    if (job->options.price.powered) fprintf(out, "  %10.4g  %10.4g", c.step_kwh, c.token_j);
}

void sp_sweep_print(FILE *out, const sp_job *job)
{
    const sp_sweep *s = &job->options.sweep;
    const sp_price *price = &job->options.price;
    fprintf(out, "\n%s (%s), and the best plan for each value\n", s->knob.name, unit_text(&s->knob));
    fprintf(out, "  %10s     bound     ideal  expected  (low      to   high)  tokens/s     MFU", "value");
    fprintf(out, "%s%s  %-18s  best plan\n", price->priced ? "    USD/step  USD/Mtoken" : "",
            price->powered ? "    kWh/step     J/token" : "", "most of it");
    for (int i = 0; i < s->values; i++) {
        const sp_sweep_row *row = &job->row[i];
        const trn_plan *p = &row->plan;
        fprintf(out, "  %10.6g  ", s->value[i]);
        if (!row->legal) {
            fprintf(out, "no plan; the nearest, %s: %s\n", sp_degrees(p).text, p->why);
            continue;
        }
        fprintf(out, "%8s  %8s  %8s  %8s  %8s  %8s  %6s", sp_time(p->bound_s).text, sp_time(p->time_s).text,
                sp_time(p->expected_s).text, sp_time(p->expected_low_s).text, sp_time(p->expected_high_s).text,
                sp_si(p->expected_tokens_per_s).text, sp_percent(p->expected_mfu).text);
        print_cost(out, job, row);
        fprintf(out, "  %-18s  %s\n", trn_plan_part_name(p->bottleneck), sp_degrees(p).text);
    }
}

/* ---- the curve ---- */

enum { CURVES = 5 };

static void draw(FILE *out, const sp_job *job, double *y[CURVES])
{
    static const char *const name[CURVES] = { "expected", "low", "high", "ideal", "bound" };
    const sp_sweep *s = &job->options.sweep;
    chart_line line[CURVES];
    char title[96];
    double low = HUGE_VAL, high = 0;
    for (int k = 0; k < CURVES; k++) {
        line[k] = (chart_line){ name[k], s->value, y[k], s->values, k < 3 ? 0 : k - 2, k == 1 || k == 2, k == 0 };
        for (int i = 0; i < s->values; i++)
            if (isfinite(y[k][i])) low = fmin(low, y[k][i]), high = fmax(high, y[k][i]);
    }
    const double first = s->value[0], last = s->value[s->values - 1];
    snprintf(title, sizeof title, "%s, %s", s->knob.name, unit_text(&s->knob));
    const bool ratio = fmin(first, last) > 0 && fmax(first, last) >= 3 * fmin(first, last);
    chart_lines(out, &(chart){ .title = "Time of the best plan",
                               .x_title = title,
                               .y_title = "s",
                               .line = line,
                               .lines = CURVES,
                               .x_log = ratio,
                               .y_log = high >= 8 * low });
}

void sp_sweep_report(FILE *out, const sp_job *job)
{
    const sp_sweep *s = &job->options.sweep;
    const size_t n = (size_t)s->values;
    if (!n) return;
    double *memory = app_memory(CURVES * n, sizeof *memory), *y[CURVES];
    for (size_t k = 0; k < CURVES; k++) y[k] = memory + k * n;
    for (size_t i = 0; i < n; i++) {
        const trn_plan *p = &job->row[i].plan;
        const double value[CURVES] = { p->expected_s, p->expected_low_s, p->expected_high_s, p->time_s, p->bound_s };
        for (int k = 0; k < CURVES; k++) y[k][i] = job->row[i].legal ? value[k] : (double)NAN;
    }
    fprintf(out,
            "<h2>What if %s were another</h2><p>For each value the best plan is searched again.</p>"
            "<div class=card>",
            s->knob.name);
    draw(out, job, y);
    fputs("</div><details class=card><summary>value by value</summary>", out);
    app_table t = sp_sweep_table(job);
    app_html_table(out, &t);
    app_table_free(&t);
    fputs("</details>\n", out);
    free(memory);
}
