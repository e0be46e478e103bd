/* report.c - the HTML page: the figures, histograms, maps, and the hypotheses.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <math.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"

enum { BARS = 24, SHOWN = 40 };

static void print_fact(FILE *out, const char *text, const char *format, double value)
{
    char number[48];
    snprintf(number, sizeof number, format, value);
    app_fact(out, isinf(value) ? "∞" : number, text);
}

static void print_facts(FILE *out, const ud_pair *p)
{
    const ud_sums *s = &p->sums;
    fputs("<div class=facts>", out);
    print_fact(out, "of the numbers are equal", "%.2f %%", 100 * ud_share(s->bucket[0], s->numbers));
    print_fact(out, "largest distance, ulps", "%.6g", s->ulp_max);
    print_fact(out, "largest error, relative", "%.3g", s->rel_max);
    print_fact(out, "dB SQNR", "%.1f", ud_sqnr(s));
    print_fact(out, "NaN or infinity against something else", "%.0f", (double)s->mismatches);
    fputs("</div>\n", out);
}

static void print_buckets(FILE *out, const ud_pair *p)
{
    chart_bar bar[UD_BUCKETS];
    char label[UD_BUCKETS][64];
    for (int i = 0; i < UD_BUCKETS; i++) {
        char n[32];
        snprintf(label[i], sizeof label[i], "%s, %.3g %%", app_count(n, sizeof n, p->sums.bucket[i]),
                 100 * ud_share(p->sums.bucket[i], p->sums.numbers));
        bar[i] = (chart_bar){ ud_bucket_name[i], label[i], (double)p->sums.bucket[i], i ? 2 : 0 };
    }
    fputs("<div class=panel>", out);
    chart_bars(out, "Distances in ulps", bar, UD_BUCKETS, false);
    fputs("</div>\n", out);
}

/* How many of |A| and |B| lie in each power of two. */
static void print_octaves(FILE *out, const ud_pair *p)
{
    double x[UD_OCTAVES], y[2][UD_OCTAVES];
    int n = 0, low = UD_OCTAVES, high = 0;
    for (int i = 1; i < UD_OCTAVES - 1; i++) {
        if (!p->sums.octave[0][i] && !p->sums.octave[1][i]) continue;
        low = i < low ? i : low;
        high = i;
    }
    for (int i = low; i <= high; i++, n++) {
        x[n] = i - 1023;
        for (int k = 0; k < 2; k++) y[k][n] = (double)p->sums.octave[k][i];
    }
    if (n < 2) return;
    const chart_line line[] = {
        { .name = "A", .x = x, .y = y[0], .count = n, .colour = 0, .dots = n < 40 },
        { .name = "B", .x = x, .y = y[1], .count = n, .colour = 3, .dashed = true, .dots = n < 40 }
    };
    fputs("<div class=panel>", out);
    chart_lines(out, &(chart){ .title = "Magnitudes",
                               .x_title = "log2 of |x|, rounded down",
                               .y_title = "numbers",
                               .line = line,
                               .lines = 2,
                               .y_log = true });
    fputs("</div>\n", out);
}

static void print_map(FILE *out, const ud_pair *p)
{
    double cell[UD_HEAT_ROWS * UD_HEAT_COLUMNS];
    for (int r = 0; r < p->heat_rows; r++)
        for (int c = 0; c < p->heat_columns; c++) {
            const double u = p->sums.heat[r * UD_HEAT_COLUMNS + c];
            cell[r * p->heat_columns + c] = isinf(u) ? NAN : log2(1 + u);
        }
    fputs("<div class=card>", out);
    chart_heat_map(out, &(chart_map){ .title = "Where the numbers differ",
                                      .value = cell,
                                      .rows = p->heat_rows,
                                      .columns = p->heat_columns,
                                      .row = { .title = "row", .each = (double)p->a.rows / p->heat_rows },
                                      .column = { .title = "column", .each = (double)p->a.columns / p->heat_columns },
                                      .value_title = "the largest distance in each part, as log2 of 1 + its ulps" });
    fputs("</div>\n", out);
}

static void print_side(FILE *out, const char *which, const ud_array *a)
{
    char shape[128];
    fprintf(out, "<p>%s: ", which);
    app_escape(out, a->name);
    fprintf(out, " &middot; %s %s</p>\n", a->type, ud_shape(a, shape, sizeof shape));
}

static void print_verdict_of(FILE *out, const ud_verdict *v)
{
    fprintf(out, "<p><b>verdict: %s</b>", ud_verdict_name(v));
    for (int i = 0; i < v->lines; i++) {
        fputs(i == 0         ? ": "
              : i < v->ties  ? "<br>and: "
              : i == v->ties ? "</p>\n<p>these data cannot tell it from:<br>"
                             : "<br>",
              out);
        app_escape(out, v->line[i]);
    }
    fputs("</p>\n", out);
}

static void print_pair(FILE *out, const ud_pair *p)
{
    const ud_suspicion found = ud_suspect(p);
    fputs("<h2>", out);
    app_escape(out, p->name[0] ? p->name : "the array");
    fputs("</h2>\n", out);
    print_side(out, "A", &p->a);
    print_side(out, "B", &p->b);
    fprintf(out, "<p>Counted in ulps of %s: %s.</p>\n", ud_unit_name(&p->unit),
            p->unit.places ? "units in the last place of A" : "steps along the codes");
    print_verdict_of(out, &p->verdict);
    print_facts(out, p);
    for (int i = 0; i < found.count; i++) {
        fputs("<p style='margin:14px 0 0'><b>!</b> ", out);
        app_escape(out, found.text[i]);
        fputs("</p>\n", out);
    }
    fputs("<div class='grid half'>\n", out);
    print_buckets(out, p);
    print_octaves(out, p);
    fputs("</div>\n", out);
    if (p->sums.first >= 0) print_map(out, p);
}

static const app_column columns[] = {
    { "equal to B", APP_INTEGER, "", "" }, { "max ulp", APP_REAL, "", "" }, { "mean", APP_REAL, "", "" },
    { "equal to A", APP_INTEGER, "", "" }, { "max ulp", APP_REAL, "", "" }, { "of", APP_INTEGER, "", "" },
    { "hypothesis", APP_TEXT, "", "" },
};

/* The same ties as in the text, in its words: they are those of settings and formats, none of which needs escaping. */
static void print_ties(FILE *out, const ud_explanation *e, int side)
{
    fputs("<pre>all equal", out);
    ud_print_others(out, e, side);
    fputs("</pre>\n", out);
}

static void print_verdict(FILE *out, const ud_explanation *e, int side)
{
    const ud_hypothesis *h = ud_best(e, side);
    if (!h) return;
    const ud_score *s = &h->score[side];
    char equal[32], all[32];
    fprintf(out, "<p>%c: %s <b>", "AB"[side], ud_exact(h, side) ? "explained by" : "not explained; the nearest is");
    app_escape(out, h->text);
    fprintf(out, "</b>, %s of %s outputs equal</p>\n", app_count(equal, sizeof equal, s->equal),
            app_count(all, sizeof all, s->outputs));
    if (ud_exact(h, side)) print_ties(out, e, side);
}

static void print_hypotheses(FILE *out, const ud_explanation *e)
{
    app_table t;
    app_table_start(&t, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < e->count && i < SHOWN; i++) {
        const ud_hypothesis *h = &e->list[i];
        app_row(&t);
        app_integer(&t, h->score[1].equal);
        app_real(&t, h->score[1].worst);
        app_real(&t, h->score[1].mean);
        app_integer(&t, h->score[0].equal);
        app_real(&t, h->score[0].worst);
        app_integer(&t, h->score[1].outputs);
        app_text(&t, "%s", h->text);
    }
    fputs("<h2>Why</h2>\n<p>", out);
    app_escape(out, e->source.inputs);
    fputs("</p>\n", out);
    print_verdict(out, e, 1);
    print_verdict(out, e, 0);
    fputs("<div class=card>", out);
    app_html_table(out, &t);
    fputs("</div>\n", out);
    app_table_free(&t);
}

void ud_print_html(FILE *out, const void *context)
{
    const ud_job *job = context;
    app_page_open(out, "ulpdiff");
    fputs("<h1>What differs, in ulps</h1>\n<p class=lead>", out);
    app_escape(out, job->options.a);
    fputs(" against ", out);
    app_escape(out, job->options.b);
    fputs("</p>\n", out);
    const bool all = job->options.all || job->pairs == 1;
    for (int i = 0; i < job->pairs; i++)
        if (all || &job->pair[i] == ud_worst_pair(job)) print_pair(out, &job->pair[i]);
    if (job->explained) print_hypotheses(out, &job->explanation);
    if (job->pairs > 1) {
        fputs("<h2>All tensors</h2>\n<div class=card>", out);
        app_html_table(out, &job->table);
        fputs("</div>\n", out);
    }
    app_page_close(out);
}
