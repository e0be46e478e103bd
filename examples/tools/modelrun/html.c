/* html.c - the page: facts, the table of settings, a picture of SQNR over settings and layers, curves and bars.
 * SPDX-License-Identifier: MIT
 */
#include "modelrun.h"

#include <math.h>
#include <stdlib.h>

#include "app/chart.h"
#include "app/page.h"

enum { CURVES = 12 }; /* more on one picture nobody tells apart */

/* ---- facts ---- */

static void facts(FILE *out, const mr_result *r)
{
    char number[40], text[160];
    fputs("<div class=facts>\n", out);
    app_fact(out, app_count(number, sizeof number, r->parameters), "parameters");
    snprintf(number, sizeof number, "%lld", (long long)r->layers);
    snprintf(text, sizeof text, "layers of width %lld", (long long)r->hidden);
    app_fact(out, number, text);
    snprintf(text, sizeof text, "tokens in windows of up to %lld", (long long)r->context);
    app_fact(out, app_count(number, sizeof number, r->tokens), text);
    snprintf(number, sizeof number, "%.4f", r->rows ? r->row[0].perplexity : NAN);
    app_fact(out, number, "perplexity of the reference");
    app_si(number, sizeof number, (double)r->file_bytes, "B");
    app_fact(out, number, "of weights in the checkpoint");
    app_si(number, sizeof number, (double)r->peak_bytes, "B");
    app_fact(out, number, "of memory at most");
    fputs("</div>\n", out);
}

static void about(FILE *out, const mr_result *r)
{
    fputs("<p>The model ", out);
    app_escape(out, r->folder);
    fputs(" (", out);
    app_escape(out, r->family);
    fputs(") on ", out);
    app_escape(out, r->text);
    fputs(". The reference has binary32 numbers and sums in binary64; every other setting is held against its logits "
          "and its residual stream.</p>\n",
          out);
}

/* ---- the table ---- */

static const app_column columns[] = {
    { "setting", APP_TEXT, "", "as it was asked for" },
    { "perplexity", APP_TEXT, "", "exp of the mean of -ln p(next token)" },
    { "against the reference", APP_TEXT, "%", "how much larger the perplexity is" },
    { "KL, nats", APP_TEXT, "nats", "mean KL(reference || setting) of a position" },
    { "worst KL", APP_TEXT, "nats", "of a position" },
    { "top-1", APP_TEXT, "%", "positions whose likeliest token is the reference's" },
    { "logits", APP_TEXT, "dB", "SQNR of all logits" },
    { "parts at", APP_TEXT, "", "the first layer below the threshold" },
    { "what it is", APP_TEXT, "", "" },
};

/* A number, or why there is none. */
static void put(app_table *t, double x, const char *format)
{
    char text[40];
    snprintf(text, sizeof text, format, x);
    app_text(t, "%s", isnan(x) ? "none" : isinf(x) ? "same" : text);
}

static void put_row(app_table *t, const mr_result *r, const mr_row *row)
{
    app_row(t);
    app_text(t, "%s", row->setting.name);
    put(t, row->perplexity, "%.4f");
    put(t, 100 * (row->perplexity / r->row[0].perplexity - 1), "%+.3f %%");
    put(t, row->kl, "%.3g");
    put(t, row->kl_worst, "%.3g");
    put(t, 100 * row->top1, "%.2f %%");
    put(t, row->sqnr[r->layers], "%.1f dB");
    if (row->first_apart < 0)
        app_text(t, "none");
    else if (row->first_apart == r->layers)
        app_text(t, "the logits");
    else
        app_text(t, "layer %d", row->first_apart);
    app_text(t, "%s", row->setting.about ? row->setting.about : "");
}

static void table(FILE *out, const mr_result *r)
{
    app_table t;
    app_table_start(&t, columns, (int)(sizeof columns / sizeof columns[0]));
    for (int i = 0; i < r->rows; i++) put_row(&t, r, &r->row[i]);
    fputs("<h2>What each setting loses</h2><div class=card>\n", out);
    app_html_table(out, &t);
    fprintf(out,
            "<p>A layer parts from the reference where the SQNR of the residual stream after it is below %g dB; same: "
            "no bit differs; none: there is no such number.</p></div>\n",
            r->threshold_db);
    app_table_free(&t);
}

static void not_finite(FILE *out, const mr_result *r)
{
    for (int i = 0; i < r->rows; i++) {
        if (!r->row[i].not_finite) continue;
        fputs("<p>", out);
        app_escape(out, r->row[i].setting.name);
        fprintf(out, ": %lld positions have a logit that is no finite number; they are in none of the means.</p>\n",
                (long long)r->row[i].not_finite);
    }
}

/* ---- pictures ---- */

static double drawn(double sqnr) { return isfinite(sqnr) ? sqnr : NAN; }

/* Settings downwards, layers across, the logits in the last column. The reference, which is its own, is left out. */
static void heat(FILE *out, const mr_result *r)
{
    const int rows = r->rows - 1, across = (int)r->layers + 1;
    double *value = app_memory((size_t)rows * (size_t)across, sizeof *value);
    const char **name = app_memory((size_t)rows, sizeof *name);
    for (int i = 0; i < rows; i++) {
        name[i] = r->row[i + 1].setting.name;
        for (int l = 0; l < across; l++) value[i * across + l] = drawn(r->row[i + 1].sqnr[l]);
    }
    fputs("<h2>Where it is lost</h2><div class=card>\n", out);
    chart_heat_map(out, &(chart_map){ .title = "SQNR of the residual stream after each layer",
                                      .value = value,
                                      .rows = rows,
                                      .columns = across,
                                      .row = { .title = "setting", .name = name },
                                      .column = { .title = "layer; the last column: the logits" },
                                      .value_title = "SQNR",
                                      .unit = "dB" });
    fputs("<p>Empty: the same numbers as the reference's, or none that are finite.</p></div>\n", out);
    free(name);
    free(value);
}

static void curves(FILE *out, const mr_result *r)
{
    const int lines = r->rows - 1 < CURVES ? r->rows - 1 : CURVES, points = (int)r->layers;
    chart_line line[CURVES];
    double *x = app_memory((size_t)points, sizeof *x), *y = app_memory((size_t)points * CURVES, sizeof *y);
    for (int l = 0; l < points; l++) x[l] = l;
    for (int i = 0; i < lines; i++) {
        for (int l = 0; l < points; l++) y[i * points + l] = drawn(r->row[i + 1].sqnr[l]);
        line[i] = (chart_line){ .name = r->row[i + 1].setting.name,
                                .x = x,
                                .y = y + i * points,
                                .count = points,
                                .colour = i,
                                .dashed = i >= 6,
                                .dots = points < 3 };
    }
    fputs("<div class=panel>\n", out);
    chart_lines(out, &(chart){ .title = "SQNR along the layers",
                               .x_title = "layer",
                               .y_title = "SQNR, dB",
                               .line = line,
                               .lines = lines });
    fputs("</div>\n", out);
    free(y);
    free(x);
}

/* Settings have no order, so that no line runs through them: bars of what each adds. */
static void bars(FILE *out, const mr_result *r)
{
    chart_bar *bar = app_memory((size_t)r->rows, sizeof *bar);
    char(*label)[40] = app_memory((size_t)r->rows, sizeof *label);
    for (int i = 0; i < r->rows; i++) {
        snprintf(label[i], sizeof label[i], isfinite(r->row[i].perplexity) ? "%.4f" : "none", r->row[i].perplexity);
        bar[i] = (chart_bar){ r->row[i].setting.name, label[i], drawn(r->row[i].perplexity), i ? 0 : 2 };
    }
    fputs("<div class=panel>\n", out);
    chart_bars(out, "Perplexity", bar, r->rows, false);
    fputs("</div>\n", out);
    free(label);
    free(bar);
}

/* ---- the page ---- */

void mr_html(FILE *out, const void *result)
{
    const mr_result *r = result;
    app_page_open(out, "modelrun: what each setting loses");
    fputs("<h1>What each setting loses</h1>\n", out);
    about(out, r);
    facts(out, r);
    table(out, r);
    not_finite(out, r);
    if (r->rows > 1) heat(out, r);
    fputs("<div class='grid half'>\n", out);
    bars(out, r);
    if (r->rows > 1) curves(out, r);
    fprintf(out, "</div>\n<footer><p>modelrun %s of trnmath.</p></footer>\n", TRN_VERSION);
    app_page_close(out);
}
