/* tornado.c - the best plan with each number moved down and up, the numbers that matter most on top: --tornado.
 * SPDX-License-Identifier: MIT
 *
 * A number goes to the ends of its documented range where there is one, else to 0.8 and 1.25 times itself, as far as it
 * can: a share ends at 1, a ratio of at least 1 begins there. What is 0 does not move.
 */
#include "shardplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart_draw.h"
#include "app/page.h"

#define DOWN 0.8
#define UP 1.25

/* ---- how far a number goes ---- */

static const struct {
    const char *name;
    double low, high;
    const char *range;
} documented[] = {
    { "calibration.hbm", 0.29, 0.35, "documented: what large all-reduces of 2 to 64 ranks give" },
    { "calibration.rings", 0, 1, "documented: newer and older software" },
};

/* Of a Trainium2: 1 to 2 us a hop (Neuron SDK, intranode-collective-comm.rst), 0.1 us of them the link. As factors. */
static bool dma_starts(const sp_job *job, double value[2])
{
    const trn_system_spec *spec = trn_system_spec_of(job->net.system);
    if (!spec || spec->server->chip->core->generation != TRN_TRAINIUM2 || job->net.start_s <= 0) return false;
    const double usual = job->net.start_s / job->options.factor[SP_DMA_START];
    value[0] = 0.9e-6 / usual;
    value[1] = 1.9e-6 / usual;
    return true;
}

static const char *scaled(const sp_knob *k, double now, double value[2])
{
    const bool share = strcmp(k->unit, "share") == 0;
    const bool ratio = strcmp(k->name, "expert_imbalance") == 0 || strcmp(k->name, "spread") == 0 ||
                       strcmp(k->name, "calibration.spread") == 0;
    value[0] = ratio ? fmax(1, DOWN * now) : DOWN * now;
    value[1] = share ? fmin(1, UP * now) : UP * now;
    return value[0] > DOWN * now ? "1 to x1.25" : value[1] < UP * now ? "x0.8 to 1" : "x0.8 to x1.25";
}

static const char *range_of(const sp_job *job, const sp_knob *k, double now, double value[2])
{
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++)
        if (strcmp(k->name, documented[i].name) == 0) {
            value[0] = documented[i].low;
            value[1] = documented[i].high;
            return documented[i].range;
        }
    if (k->kind == SP_FACTOR && k->index == SP_DMA_START && dma_starts(job, value))
        return "documented: 1 to 2 us a hop";
    return scaled(k, now, value);
}

/* ---- every number, both ways ---- */

static bool same_degrees(const trn_plan *a, const trn_plan *b)
{
    return a->tp == b->tp && a->tp_cores == b->tp_cores && a->cp == b->cp && a->ep == b->ep && a->dp == b->dp &&
           a->pp == b->pp && a->order == b->order;
}

static bool one_side(const sp_job *job, sp_swing *s, int side, char *why)
{
    static sp_job one;
    char sentence[APP_WHY];
    trn_plan_list list;
    bool ok = sp_knob_turn(job, &s->knob, s->value[side], &one, sentence);
    s->plan[side] = job->plan[0];
    if (ok && (trn_plan_evaluate(&one.args, &s->plan[side]) != TRN_OK ||
               trn_plan_search(&one.args, &s->best[side], 1, &list) != TRN_OK))
        ok = app_refuse(sentence, one.error.text);
    if (!ok) return app_fail(why, "--tornado: %s=%g: %.400s", s->knob.name, s->value[side], sentence);
    s->other[side] = s->best[side].legal && !same_degrees(&s->best[side], &job->plan[0]);
    return true;
}

static double swing_of(const sp_job *job, const sp_swing *s)
{
    double low = job->plan[0].expected_s, high = low;
    for (int side = 0; side < 2; side++) {
        if (!s->plan[side].legal) continue;
        low = fmin(low, s->plan[side].expected_s);
        high = fmax(high, s->plan[side].expected_s);
    }
    return high - low;
}

/* Longest first, in the order of the list where they are equal: a sort that moves no equals. */
static void sort(sp_swing *s, int swings)
{
    for (int i = 1; i < swings; i++) {
        const sp_swing here = s[i];
        int at = i;
        for (; at > 0 && s[at - 1].swing_s < here.swing_s; at--) s[at] = s[at - 1];
        s[at] = here;
    }
}

bool sp_tornado_run(sp_job *job, char *why)
{
    sp_knob k;
    int knobs = 0;
    bool ok = true;
    if (!job->list.legal) return true; /* nothing to move: the answer says why */
    while (sp_knob_at(knobs, &k)) knobs++;
    job->swing = app_memory((size_t)knobs, sizeof *job->swing);
    for (int i = 0; ok && i < knobs; i++) {
        sp_swing *s = &job->swing[job->swings];
        app_progress("%d of %d numbers", i, knobs);
        sp_knob_at(i, &s->knob);
        s->now = sp_knob_value(job, &s->knob);
        s->range = range_of(job, &s->knob, s->now, s->value);
        if (s->knob.kind == SP_COUNT || (!(s->now > 0) && !(s->value[1] > 0))) continue;
        ok = one_side(job, s, 0, why) && one_side(job, s, 1, why);
        s->swing_s = swing_of(job, s);
        job->swings++;
    }
    app_progress_done();
    sort(job->swing, job->swings);
    return ok;
}

/* ---- rows ---- */

static const app_column column[] = {
    { "parameter", APP_TEXT, "", "what --tornado moves" },
    { "unit", APP_TEXT, "", "of its values; times: of what the network or the chips have" },
    { "range", APP_TEXT, "", "from where to where: documented, or times the value of now" },
    { "value", APP_REAL, "", "now" },
    { "low_value", APP_REAL, "", "moved down" },
    { "high_value", APP_REAL, "", "moved up" },
    { "expected_s", APP_REAL, "s", "of the best plan, now" },
    { "low_expected_s", APP_REAL, "s", "of its degrees, moved down; missing: it is not legal" },
    { "high_expected_s", APP_REAL, "s", "of its degrees, moved up; missing: it is not legal" },
    { "swing_s", APP_REAL, "s", "from the shortest to the longest of the three, which sorts the rows" },
    { "low_best", APP_TEXT, "", "moved down: the plan that is best in its place, if another one is" },
    { "low_best_s", APP_REAL, "s", "the expected time of that" },
    { "high_best", APP_TEXT, "", "moved up: the plan that is best in its place, if another one is" },
    { "high_best_s", APP_REAL, "s", "the expected time of that" },
    { "low_why", APP_TEXT, "", "moved down: why its degrees are not legal" },
    { "high_why", APP_TEXT, "", "moved up: why its degrees are not legal" },
};

static void add_row(app_table *t, const sp_job *job, const sp_swing *s)
{
    const double value[] = { s->now, s->value[0], s->value[1], job->plan[0].expected_s };
    app_row(t);
    app_text(t, "%s", s->knob.name);
    app_text(t, "%s", s->knob.unit);
    app_text(t, "%s", s->range);
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) app_real(t, value[i]);
    for (int side = 0; side < 2; side++) app_real(t, s->plan[side].legal ? s->plan[side].expected_s : (double)NAN);
    app_real(t, s->swing_s);
    for (int side = 0; side < 2; side++) {
        app_text(t, "%s", s->other[side] ? sp_degrees(&s->best[side]).text : "");
        app_real(t, s->other[side] ? s->best[side].expected_s : (double)NAN);
    }
    for (int side = 0; side < 2; side++) app_text(t, "%s", s->plan[side].why);
}

app_table sp_tornado_table(const sp_job *job)
{
    app_table t;
    app_table_start(&t, column, sizeof column / sizeof column[0]);
    for (int i = 0; i < job->swings; i++) add_row(&t, job, &job->swing[i]);
    return t;
}

/* ---- text ---- */

static sp_text end_of(const trn_plan *p)
{
    sp_text t = { "no longer" };
    return p->legal ? sp_time(p->expected_s) : t;
}

/* Does it move the time, or the best plan? */
static bool matters(const sp_swing *s)
{
    return s->swing_s > 0 || s->other[0] || s->other[1] || !s->plan[0].legal || !s->plan[1].legal;
}

static void print_others(FILE *out, const sp_swing *s)
{
    for (int side = 0; side < 2; side++)
        if (s->other[side])
            fprintf(out, "; %s %s in %s", side ? "up:" : "down:", sp_degrees(&s->best[side]).text,
                    sp_time(s->best[side].expected_s).text);
    fputc('\n', out);
}

void sp_tornado_print(FILE *out, const sp_job *job)
{
    int still = 0;
    if (!job->list.legal) return;
    fprintf(out, "\n%s, a %s in %s, with one number moved down and up\n", sp_degrees(&job->plan[0]).text,
            sp_unit_of_work(job), sp_time(job->plan[0].expected_s).text);
    fprintf(out, "  %-24s  %10s  %10s  %10s", "number", "now", "down", "up");
    fprintf(out, "       down         up      swing  range; a better plan then\n");
    for (int i = 0; i < job->swings; i++) {
        const sp_swing *s = &job->swing[i];
        if (!matters(s) && ++still) continue;
        fprintf(out, "  %-24s  %10.4g  %10.4g  %10.4g", s->knob.name, s->now, s->value[0], s->value[1]);
        fprintf(out, "  %9s  %9s  %9s  %s", end_of(&s->plan[0]).text, end_of(&s->plan[1]).text,
                sp_time(s->swing_s).text, s->range);
        print_others(out, s);
    }
    fprintf(out, "  %d others change nothing here\n", still);
}

/* ---- the picture: a bar from the time moved down to the time moved up, around the line of now ---- */

enum { EACH = 26, BAR = 17, ABOVE = 18, NAMES = 190, ENDS = 72, BARS_SHOWN = 24 };
#define COLOUR(side) ((side) ? 1 : 2) /* --f2 down, --f1 up */

static int shown(const sp_job *job)
{
    int n = 0;
    while (n < job->swings && n < BARS_SHOWN && job->swing[n].swing_s > 0) n++;
    return n;
}

static chart_axis axis_of(const chart_sheet *sheet, const sp_job *job, int bars, bool above)
{
    chart_axis a = { .low = job->plan[0].expected_s,
                     .high = job->plan[0].expected_s,
                     .from = sheet->margin + (above ? 0 : NAMES) + ENDS,
                     .to = sheet->width - sheet->margin - ENDS };
    for (int i = 0; i < bars; i++)
        for (int side = 0; side < 2; side++) {
            if (!job->swing[i].plan[side].legal) continue;
            a.low = fmin(a.low, job->swing[i].plan[side].expected_s);
            a.high = fmax(a.high, job->swing[i].plan[side].expected_s);
        }
    chart_axis_widen(&a);
    return a;
}

/* From the line of now to where the number takes it, with the number at that end. */
static void draw_side(FILE *out, const chart_axis *axis, const sp_swing *s, double now, int side, double y)
{
    char text[40];
    if (!s->plan[side].legal) return;
    const double zero = chart_axis_at(axis, now), end = chart_axis_at(axis, s->plan[side].expected_s);
    if (fabs(end - zero) < 0.05) return;
    const bool left = end < zero;
    fprintf(out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\">", COLOUR(side),
            fmin(zero, end), y, fmax(fabs(end - zero), 1), BAR);
    fprintf(out, "<title>%s %.4g: %s</title></rect>\n", s->knob.name, s->value[side],
            sp_time(s->plan[side].expected_s).text);
    snprintf(text, sizeof text, "%.3g", s->value[side]);
    chart_text(out, "tick", end + (left ? -5 : 5), y + 13, left ? CHART_END : CHART_START, 60, text);
}

static void draw_key(const chart_sheet *sheet, double y)
{
    static const char *const text[] = { "moved down", "moved up" };
    for (int side = 0; side < 2; side++) {
        const double x = sheet->margin + 110.0 * side;
        fprintf(sheet->out, "<rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\"/>\n", COLOUR(side), x,
                y);
        chart_text(sheet->out, "", x + 18, y + 10, CHART_START, 90, text[side]);
    }
}

/* Times below the bars, with lines through them. */
static void draw_times(const chart_sheet *sheet, chart_axis axis, double top, double bottom)
{
    chart_ticks ticks;
    chart_axis_ticks(&axis, sheet->width / 110, false, &ticks);
    for (int i = 0; i < ticks.count; i++) {
        const double x = chart_axis_at(&axis, ticks.at[i]);
        fprintf(sheet->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, top - 4,
                bottom);
        chart_text(sheet->out, "tick", x, bottom + 16, CHART_MIDDLE, 100, sp_time(ticks.at[i]).text);
    }
}

/* On a narrow sheet, names stand above their bars. */
static void draw(const chart_sheet *sheet, const void *context)
{
    static const char title[] = "Expected time, one number moved at a time";
    const sp_job *job = context;
    FILE *out = sheet->out;
    const int bars = shown(job);
    const bool above = sheet->width < CHART_MIDDLE_WIDTH;
    const double now = job->plan[0].expected_s, top = chart_top(sheet, title) + 46;
    const double under = above ? ABOVE : 0, each = EACH + under;
    const chart_axis axis = axis_of(sheet, job, bars, above);
    const double zero = chart_axis_at(&axis, now);
    chart_open(sheet, title,
               "a bar for each number, from the time with it moved down to the time with it moved up; at its ends, the "
               "number",
               top + each * bars + 26);
    draw_times(sheet, axis, top, top + each * bars - 4);
    draw_key(sheet, top - 52);
    chart_text(out, "", zero, top - 12, CHART_MIDDLE, 120, sp_time(now).text);
    for (int i = 0; i < bars; i++) {
        const double y = top + each * i;
        chart_text(out, "name", sheet->margin + (above ? 0 : NAMES), y + 13, above ? CHART_START : CHART_END,
                   above ? sheet->width : NAMES, job->swing[i].knob.name);
        for (int side = 0; side < 2; side++) draw_side(out, &axis, &job->swing[i], now, side, y + under);
        fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", zero, zero,
                y + under - 4, y + each - 4);
    }
    chart_close(sheet);
}

void sp_tornado_report(FILE *out, const sp_job *job)
{
    if (!job->swings) return;
    fprintf(out, "<h2>What matters</h2><p>%s with one number moved at a time, to the ends of its documented range, ",
            sp_degrees(&job->plan[0]).text);
    fprintf(out, "else to %.4g and %.4g times itself.</p><div class=card>", DOWN, UP);
    chart_figure(out, false, draw, job);
    fputs("</div><details class=card><summary>number by number</summary>", out);
    app_table t = sp_tornado_table(job);
    app_html_table(out, &t);
    app_table_free(&t);
    fputs("</details>\n", out);
}
