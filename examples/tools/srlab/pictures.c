/* pictures.c - loss curves as SVG, and the page.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>
#include <stdlib.h>

#include "app/chart.h"
#include "app/page.h"

/* ---- curves of one rate: a line for each arm, the mean over seeds ---- */

typedef double quantity(const sr_point *p);

static double valid(const sr_point *p) { return p->valid; }
static double arrived(const sr_point *p) { return 100 * p->arrived; }
static double lost(const sr_point *p) { return 100 * p->unmoved; }

typedef struct picture {
    const char *title, *y_title;
    quantity *what;
    bool over_f32; /* less that of arm f32 with the same seed */
    bool late;     /* from a fifth of the steps on: before, all arms fall alike */
} picture;

static int f32_arm(const sr_lab *lab) { return sr_arm_index(lab->settings, &sr_arms[0]); }

static void fill_line(const sr_lab *lab, int arm, int rate, const picture *p, double *x, double *y)
{
    const int seeds = lab->settings->seeds, less = p->over_f32 ? f32_arm(lab) : -1;
    for (int i = 0; i < lab->run[0].points; i++) {
        x[i] = (double)lab->run[0].point[i].step;
        y[i] = 0;
        for (int s = 0; s < seeds; s++) {
            y[i] += p->what(&sr_run_at(lab, arm, rate, s)->point[i]) / seeds;
            if (less >= 0) y[i] -= p->what(&sr_run_at(lab, less, rate, s)->point[i]) / seeds;
        }
    }
}

static void draw_curves(FILE *out, const sr_lab *lab, int rate, const picture *p, bool alone)
{
    const int arms = lab->settings->arms, points = lab->run[0].points, skip = p->late ? points / 5 : 0;
    chart_line line[SR_ARMS];
    double *memory = app_memory(2 * (size_t)points * (size_t)arms, sizeof *memory);
    for (int i = 0; i < arms; i++) {
        double *x = memory + 2 * points * i, *y = x + points;
        const sr_arm *arm = lab->settings->arm[i];
        fill_line(lab, i, rate, p, x, y);
        line[i] = (chart_line){ arm->name, x + skip, y + skip, points - skip, arm->colour, arm == &sr_arms[0], false };
    }
    const chart c = { p->title, "step", p->y_title, line, arms, false, false, 0, 0, alone };
    chart_lines(out, &c);
    free(memory);
}

/* ---- the sweep: final loss over learning rate ---- */

static void draw_sweep(FILE *out, const sr_lab *lab, bool alone)
{
    const sr_settings *s = lab->settings;
    chart_line line[SR_ARMS];
    double y[SR_ARMS][SR_RATES];
    for (int i = 0; i < s->arms; i++) {
        for (int r = 0; r < s->rates; r++) y[i][r] = sr_spread_of(lab, i, r, sr_final_loss).mean;
        line[i] =
            (chart_line){ s->arm[i]->name, s->rate, y[i], s->rates, s->arm[i]->colour, s->arm[i] == &sr_arms[0], true };
    }
    const chart c = {
        "Final validation loss", "learning rate", lab->kind->unit, line, s->arms, true, false, 0, 0, alone
    };
    chart_lines(out, &c);
}

void sr_write_svg(FILE *out, const void *context)
{
    const sr_lab *lab = context;
    if (lab->settings->sweep)
        draw_sweep(out, lab, true);
    else
        draw_curves(out, lab, 0, &(picture){ "Validation loss", lab->kind->unit, valid, false, true }, true);
}

/* ---- the page ---- */

static void page_verdicts(FILE *out, const sr_lab *lab)
{
    char text[256];
    for (int i = 0; i < lab->settings->rates; i++) {
        sr_say_verdict(text, sizeof text, lab, i);
        if (!*text) continue;
        fputs("<p>", out);
        app_escape(out, text);
        fputs(".</p>\n", out);
    }
}

static void page_samples(FILE *out, const sr_lab *lab)
{
    bool first = true;
    for (int i = 0; i < lab->runs; i++) {
        const sr_run *run = &lab->run[i];
        if (!run->sample || run->seed != lab->settings->seed) continue;
        fputs(first ? "<h2>What they write</h2>\n" : "", out);
        first = false;
        fprintf(out, "<p><b>%s</b> ", run->arm->name);
        app_escape(out, run->sample);
        fputs("</p>\n", out);
    }
}

static void page_rate(FILE *out, const sr_lab *lab, int rate)
{
    const picture picture_of[] = {
        { "Validation loss", lab->kind->unit, valid, false, false },
        { "Validation loss, less that of f32", lab->kind->unit, valid, true, true },
        { "Movement that arrived, of what AdamW asked for", "percent", arrived, false, false },
        { "Updates that left the stored weight as it was", "percent", lost, false, false },
    };
    fprintf(out, "<h2>Learning rate %g</h2>\n", lab->settings->rate[rate]);
    for (size_t i = 0; i < sizeof picture_of / sizeof picture_of[0]; i++) {
        if (picture_of[i].over_f32 && f32_arm(lab) < 0) continue;
        fputs("<div class=card>", out);
        draw_curves(out, lab, rate, &picture_of[i], false);
        fputs("</div>\n", out);
    }
}

static void page_arms(FILE *out, const sr_lab *lab)
{
    fputs("<h2>Arms</h2>\n", out);
    for (int i = 0; i < lab->settings->arms; i++)
        fprintf(out, "<p><b>%s</b> %s</p>\n", lab->settings->arm[i]->name, lab->settings->arm[i]->meaning);
}

void sr_write_html(FILE *out, const void *context)
{
    const sr_lab *lab = context;
    const sr_settings *s = lab->settings;
    char count[32];
    app_page_open(out, lab->kind->title);
    fprintf(out,
            "<h1>%s</h1><p class=lead>%s parameters, %lld steps of %d, AdamW 0.9 0.95, weight decay %g, clip %g, the "
            "rate falls to %g of itself; means over %d seed%s. Products have the Tensor engine's numerics.</p>\n",
            lab->kind->title, app_count(count, sizeof count, lab->run[0].parameters), (long long)s->steps, s->batch,
            s->weight_decay, s->clip, s->rate_end, s->seeds, s->seeds == 1 ? "" : "s");
    page_verdicts(out, lab);
    if (s->sweep) fputs("<div class=card>", out), draw_sweep(out, lab, false), fputs("</div>\n", out);
    for (int i = 0; i < s->rates; i++) page_rate(out, lab, i);
    fputs("<h2>All arms</h2><div class=card>", out);
    app_table shown = sr_shown_table(lab);
    app_html_table(out, &shown);
    app_table_free(&shown);
    fputs("</div>\n", out);
    page_arms(out, lab);
    page_samples(out, lab);
    fputs("<footer><p>Results of arithmetic like the engines', computed on a processor; never measurements of a device."
          "</p></footer>\n",
          out);
    app_page_close(out);
}
