/* html.c - pictures (bars of SQNR, histograms of errors, QSNR against crest factor and against sigma), and the page.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"

const char *const mxq_plot_name[MXQ_PLOTS] = { "bars", "histogram", "crest", "sigma" };

enum { LINES = 6, FEWEST = 8 }; /* fewer blocks than that say little of their crest factor */

/* The first way of each of the usual formats, round-up or per tensor. */
static int lines_of(const mxq_all *all, const char *const *names, int count, int *way)
{
    int lines = 0;
    for (int n = 0; n < count; n++) {
        int found = -1;
        for (int k = 0; k < all->job->ways; k++) {
            const mxq_way *w = &all->job->way[k];
            if (strcmp(w->name, names[n])) continue;
            if (found < 0 || (w->kind == MXQ_MX && w->rule == TRN_MX_SCALE_ROUND_UP &&
                              all->job->way[found].rule != TRN_MX_SCALE_ROUND_UP))
                found = k;
        }
        if (found >= 0) way[lines++] = found;
    }
    for (int k = 0; lines == 0 && k < all->job->ways && k < LINES; k++) way[k] = k;
    return lines ? lines : all->job->ways < LINES ? all->job->ways : LINES;
}

static const char *const usual[] = { "MXINT8", "MXFP8 E4M3", "MXFP8 E5M2", "MXFP6 E2M3", "MXFP6 E3M2", "MXFP4" };

/* ---- bars ---- */

static void bars(FILE *out, const mxq_all *all, bool alone)
{
    const int ways = all->job->ways;
    chart_bar *bar = app_memory((size_t)ways, sizeof *bar);
    char(*text)[2][80] = app_memory((size_t)ways, sizeof *text);
    for (int k = 0; k < ways; k++) {
        const mxq_way *way = &all->job->way[k];
        const double sqnr = mxq_mean_sqnr(all, k);
        mxq_label(text[k][0], sizeof text[k][0], way);
        if (isfinite(sqnr))
            snprintf(text[k][1], sizeof text[k][1], "%.2f dB", sqnr);
        else
            snprintf(text[k][1], sizeof text[k][1], "-");
        bar[k] = (chart_bar){ text[k][0], text[k][1], sqnr,
                              way->kind == MXQ_CAST     ? 2
                              : way->kind == MXQ_SCALED ? 1
                                                        : 0 };
    }
    chart_bars(out, all->results == 1 ? "SQNR" : "SQNR, mean over all tensors", bar, ways, alone);
    free(text);
    free(bar);
}

/* ---- errors ---- */

/* Shares of values per octave of relative error. */
static void histogram(FILE *out, const mxq_all *all, bool alone)
{
    enum { FIRST = MXQ_ERRORS - 2 - 32, BINS = MXQ_ERRORS - 1 - FIRST }; /* from 2^-16 on */
    static double x[BINS], y[LINES][BINS];
    chart_line line[LINES];
    int way[LINES];
    const double nonzero = (double)all->pool->nonzero;
    const int lines = lines_of(all, usual, LINES, way);
    for (int l = 0; l < lines; l++) {
        for (int b = 0; b < BINS; b++) {
            const double from = ldexp(b & 1 ? 1.5 : 1, (b >> 1) - 16), to = from * (b & 1 ? 4.0 / 3 : 1.5);
            const double count = (double)all->pool->way[way[l]].errors[FIRST + b];
            x[b] = sqrt(from * to);
            y[l][b] = count > 0 ? 100 * count / nonzero / log2(to / from) : NAN;
        }
        line[l] = (chart_line){ .name = all->job->way[way[l]].name, .x = x, .y = y[l], .count = BINS, .colour = l };
    }
    chart_lines(out, &(chart){ .title = "How large the errors are",
                               .x_title = "relative error of a value",
                               .y_title = "% of the values, per octave",
                               .line = line,
                               .lines = lines,
                               .x_log = true,
                               .alone = alone });
}

/* ---- crest factors ---- */

static double qsnr_of_bin(const mxq_pool *pool, int way, int bin)
{
    if (pool->crest_blocks[bin] < FEWEST) return NAN;
    return mxq_db(pool->crest_energy[bin], pool->way[way].crest_noise[bin]);
}

/* What theorems 1 and 2 expect of Gaussian values at this crest factor. */
static double expected(const mxq_way *way, double crest)
{
    if (way->model.integer) return mxq_theory_integer(crest, 8, 1.5);
    return mxq_theory_float(crest, &way->model, 1.5);
}

static void crests(FILE *out, const mxq_all *all, bool alone)
{
    static double x[MXQ_CRESTS], y[2 * LINES][MXQ_CRESTS];
    chart_line line[2 * LINES];
    int way[LINES];
    const int lines = lines_of(all, usual, LINES, way);
    for (int b = 0; b < MXQ_CRESTS; b++) x[b] = mxq_crest_of_bin(b + 0.5);
    for (int l = 0; l < lines; l++) {
        const mxq_way *w = &all->job->way[way[l]];
        for (int b = 0; b < MXQ_CRESTS; b++) {
            y[l][b] = qsnr_of_bin(all->pool, way[l], b);
            y[LINES + l][b] = isnan(y[l][b]) || w->kind != MXQ_MX ? NAN : expected(w, x[b]);
        }
        line[l] = (chart_line){ .name = w->name, .x = x, .y = y[l], .count = MXQ_CRESTS, .colour = l };
        line[lines + l] = (chart_line){ .x = x, .y = y[LINES + l], .count = MXQ_CRESTS, .colour = l, .dashed = true };
    }
    chart_lines(out, &(chart){ .title = "QSNR against crest factor",
                               .x_title = "crest factor of a block of 32; dashed: theory of Gaussian values",
                               .y_title = "QSNR, dB",
                               .line = line,
                               .lines = 2 * lines,
                               .alone = alone });
}

/* ---- sigma ---- */

static void sigmas(FILE *out, const mxq_all *all, bool alone)
{
    chart_line line[MXQ_SWEEP_WAYS];
    const mxq_sweep *s = all->sweep;
    for (int k = 0; s && k < MXQ_SWEEP_WAYS; k++)
        line[k] =
            (chart_line){ .name = s->way[k].name, .x = s->sigma, .y = s->sqnr[k], .count = MXQ_SWEEP, .colour = k };
    chart_lines(out, &(chart){ .title = "QSNR against sigma",
                               .x_title = "root mean square of the values, which FP8 and FP16 take as they are",
                               .y_title = "QSNR, dB",
                               .line = line,
                               .lines = s ? MXQ_SWEEP_WAYS : 0,
                               .x_log = true,
                               .y_high = 80,
                               .alone = alone });
}

void mxq_plot(FILE *out, const mxq_all *all, int plot, bool alone)
{
    static void (*const how[MXQ_PLOTS])(FILE *, const mxq_all *, bool) = { bars, histogram, crests, sigmas };
    how[plot](out, all, alone);
}

/* ---- the page ---- */

static void tile(FILE *out, const mxq_all *all, double budget)
{
    int best = -1;
    char number[80], text[160], label[80];
    for (int k = 0; k < all->job->ways; k++) {
        if (mxq_bits(&all->job->way[k], all->result[0].source) > budget) continue;
        if (isfinite(mxq_mean_sqnr(all, k)) && (best < 0 || mxq_mean_sqnr(all, k) > mxq_mean_sqnr(all, best))) best = k;
    }
    if (best < 0) return;
    mxq_label(label, sizeof label, &all->job->way[best]);
    snprintf(number, sizeof number, "%.2f dB", mxq_mean_sqnr(all, best));
    snprintf(text, sizeof text, "%s, the best within %g bits", label, budget);
    app_fact(out, number, text);
}

static void lead(FILE *out, const mxq_all *all)
{
    char count[40];
    int64_t elements = 0;
    for (int i = 0; i < all->results; i++) elements += all->result[i].facts.elements;
    fputs("<h1>What quantisation costs</h1><p class=lead>", out);
    app_escape(out, all->result[0].source->name);
    if (all->results > 1) fprintf(out, " and %d more", all->results - 1);
    fprintf(out,
            ": %s values through %d ways to quantise them. SQNR is the energy of the values over the energy of the "
            "errors.</p>",
            app_count(count, sizeof count, elements), all->job->ways);
    fputs("<div class=facts>", out);
    for (int b = 0; b < all->budgets; b++) tile(out, all, all->budget[b]);
    fputs("</div>\n", out);
}

static void best_cell(FILE *out, const mxq_all *all, const mxq_result *r, double budget)
{
    char label[80];
    const int k = mxq_best(all->job, r, budget);
    fputs("<td>", out);
    if (k >= 0) {
        mxq_label(label, sizeof label, &all->job->way[k]);
        app_escape(out, label);
        if (isinf(mxq_sqnr(r, k)))
            fputs(", exact", out);
        else
            fprintf(out, ", %.2f dB", mxq_sqnr(r, k));
    }
    fputs("</td>", out);
}

static void best(FILE *out, const mxq_all *all)
{
    fputs("<h2>The best within so many bits per element</h2><div class=card>", out);
    app_scroll_open(out, "the best way of each tensor within so many bits");
    fputs("<table><tr><th>tensor</th><th class=r>sigma</th><th class=r>crest factor</th>", out);
    for (int b = 0; b < all->budgets; b++) fprintf(out, "<th>%g bits</th>", all->budget[b]);
    fputs("</tr>\n", out);
    for (int i = 0; i < all->results; i++) {
        const mxq_result *r = &all->result[i];
        char sigma[40];
        fputs("<tr><td>", out);
        app_escape(out, r->source->name);
        fprintf(out, "</td><td class=r>%s</td><td class=r>%.2f</td>",
                app_human(sigma, sizeof sigma, r->facts.elements ? mxq_sigma(&r->facts) : 0),
                r->facts.energy > 0 ? mxq_crest(&r->facts) : 0);
        for (int b = 0; b < all->budgets; b++) best_cell(out, all, r, all->budget[b]);
        fputs("</tr>\n", out);
    }
    fputs("</table>", out);
    app_scroll_close(out);
    fputs("</div>\n", out);
}

void mxq_write_html(FILE *out, const void *context)
{
    const mxq_all *all = context;
    app_table t;
    app_page_open(out, "mxq: what quantisation costs");
    lead(out, all);
    best(out, all);
    fputs("<h2>Each way</h2><div class=card><div class=legend><span><i style='background:var(--f0)'></i>MX: a power of "
          "two "
          "for 32 values</span><span><i style='background:var(--f1)'></i>float32 scales</span><span><i "
          "style='background:var(--f2)'></i>as they are</span></div>\n",
          out);
    mxq_plot(out, all, MXQ_BARS, false);
    fputs("</div>\n<h2>Errors, outliers, range</h2><div class='grid half'>\n", out);
    for (int plot = MXQ_BARS + 1; plot < MXQ_PLOTS; plot++) {
        fputs("<div class=panel>\n", out);
        mxq_plot(out, all, plot, false);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
    mxq_table(all, &t);
    fputs("<h2>All numbers</h2><details class=card><summary>the table</summary>", out);
    app_html_table(out, &t);
    fprintf(out,
            "</details><footer><p>mxq %s of trnmath, seed %llu. The theory is that of arXiv:2510.25602.</p></footer>\n",
            TRN_VERSION, (unsigned long long)all->job->seed);
    app_page_close(out);
    app_table_free(&t);
}
