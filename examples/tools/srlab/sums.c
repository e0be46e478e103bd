/* sums.c - srlab sums: two sums that rounding stops, beside what is published of them.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "srlab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/chart.h"
#include "app/page.h"
#include "app/files.h"

/* ---- 1024 + 0.5 + 0.5 + ..., and the harmonic series ---- */

static float rounded(trn_format format, float x, trn_rounding rounding, uint32_t random)
{
    return trn_decode(format, trn_encode(format, x, rounding, TRN_OVERFLOW_DEFAULT, random));
}

double sr_half_loop(trn_format format, trn_rounding rounding, uint64_t seed, double *trace)
{
    float sum = 1024;
    for (int i = 0; i < SR_ADDITIONS; i++) {
        if (trace && i % 16 == 0) trace[i / 16] = (double)sum;
        sum = rounded(format, sum + 0.5f, rounding,
                      rounding == TRN_STOCHASTIC ? trn_random_u32(seed, 0, (uint64_t)i) : 0);
    }
    if (trace) trace[SR_ADDITIONS / 16] = (double)sum;
    return (double)sum;
}

sr_moments sr_half_loops(trn_format format, uint64_t seed, int runs)
{
    sr_moments m = { 0, 0, INFINITY, -INFINITY, runs };
    double square = 0;
    for (int i = 0; i < runs; i++) {
        const double x = sr_half_loop(format, TRN_STOCHASTIC, seed + (uint64_t)i, NULL);
        m.mean += x;
        square += (x - 2048) * (x - 2048);
        m.low = x < m.low ? x : m.low;
        m.high = x > m.high ? x : m.high;
    }
    m.mean /= runs;
    const double off = m.mean - 2048;
    m.deviation = sqrt(square / runs - off * off);
    return m;
}

static void add_point(sr_series *s, double n, double sum)
{
    if (s->points == SR_SERIES || (s->points && n < 1.04 * s->n[s->points - 1])) return;
    s->n[s->points] = n;
    s->sum[s->points++] = sum;
}

void sr_harmonic(trn_format format, sr_series *s)
{
    float sum = 0, next = 0;
    s->points = 0;
    for (s->term = 1;; s->term++, sum = next) {
        next = rounded(format, sum + rounded(format, 1 / (float)s->term, TRN_NEAREST_EVEN, 0), TRN_NEAREST_EVEN, 0);
        if (next == sum) break;
        add_point(s, (double)s->term, (double)next);
    }
    s->value = (double)sum;
}

typedef struct settings {
    int seeds;
    uint64_t seed;
    const char *csv, *json, *svg, *html;
    bool schema;
} settings;

typedef struct sums {
    const settings *s;
    app_table table;
    int wrong;
    sr_series series[7];
} sums;

static const app_column columns[] = {
    { "sum", APP_TEXT, "", "half: 1024 + 2048 x 0.5; harmonic: 1 + 1/2 + 1/3 + ... until a term changes nothing" },
    { "format", APP_TEXT, "", "of the sum" },
    { "rounding", APP_TEXT, "", "of each addition" },
    { "runs", APP_INTEGER, "", "seeds" },
    { "result", APP_REAL, "", "the sum; of several runs the mean" },
    { "deviation", APP_REAL, "", "standard deviation over the runs" },
    { "low", APP_REAL, "", "the least of the runs" },
    { "high", APP_REAL, "", "the greatest" },
    { "term", APP_INTEGER, "", "the first that changes nothing" },
    { "published", APP_REAL, "", "what it should be" },
    { "within", APP_REAL, "", "how far the result may be from it; for a mean, four of its standard deviations" },
    { "ok", APP_TEXT, "", "yes or no" },
};

/* ---- rows ---- */

typedef struct half_row {
    trn_format format;
    trn_rounding rounding;
    double published, deviation;
} half_row;

static const half_row halves[] = {
    { TRN_F16, TRN_NEAREST_EVEN, 1024, 0 },
    { TRN_F16, TRN_STOCHASTIC, 2048, 22.9 },
    { TRN_BF16, TRN_NEAREST_EVEN, 1024, 0 },
    { TRN_BF16, TRN_STOCHASTIC, 2048, 88.7 },
};

typedef struct harmonic_row {
    trn_format format;
    double published, within;
    int64_t term;
} harmonic_row;

static const harmonic_row harmonics[7] = {
    { TRN_F32, 15.403683, 5e-7, 2097152 },
    { TRN_TF32, 7.0859375, 0, 513 },
    { TRN_F16, 7.0859375, 0, 513 },
    { TRN_BF16, 5.0625, 0, 65 },
    { TRN_F8_E3M4, 3.5, 0, 16 },
    { TRN_F8_E4M3, 3.0, 0, 9 },
    { TRN_F8_E5M2, 2.0, 0, 5 },
};

enum { HALVES = sizeof halves / sizeof halves[0], HARMONICS = sizeof harmonics / sizeof harmonics[0] };

static void verdict(sums *a, double published, double within, bool ok)
{
    app_real(&a->table, published);
    app_real(&a->table, within);
    app_text(&a->table, "%s", ok ? "yes" : "no");
    a->wrong += !ok;
}

static void add_half(sums *a, const half_row *row)
{
    app_table *t = &a->table;
    const bool random = row->rounding == TRN_STOCHASTIC;
    const int runs = random ? a->s->seeds : 1;
    const double within = 4 * row->deviation / sqrt((double)runs);
    const sr_moments m = sr_half_loops(row->format, a->s->seed, runs);
    const double result = random ? m.mean : sr_half_loop(row->format, row->rounding, 0, NULL);
    app_row(t);
    app_text(t, "half");
    app_text(t, "%s", trn_format_name(row->format));
    app_text(t, "%s", random ? "stochastic" : "nearest even");
    app_integer(t, runs);
    app_real(t, result);
    app_real(t, random ? m.deviation : (double)NAN);
    app_real(t, random ? m.low : (double)NAN);
    app_real(t, random ? m.high : (double)NAN);
    app_missing(t);
    verdict(a, row->published, within, fabs(result - row->published) <= within);
}

static void add_harmonic(sums *a, const harmonic_row *row, sr_series *series)
{
    app_table *t = &a->table;
    sr_harmonic(row->format, series);
    app_row(t);
    app_text(t, "harmonic");
    app_text(t, "%s", trn_format_name(row->format));
    app_text(t, "nearest even");
    app_integer(t, 1);
    app_real(t, series->value);
    for (int i = 0; i < 3; i++) app_missing(t);
    app_integer(t, series->term);
    verdict(a, row->published, row->within,
            fabs(series->value - row->published) <= row->within && series->term == row->term);
}

/* ---- text ---- */

static const app_column shown_columns[] = {
    { "sum", APP_TEXT, "", "" },         { "format", APP_TEXT, "", "" },    { "rounding", APP_TEXT, "", "" },
    { "result", APP_TEXT, "", "" },      { "deviation", APP_TEXT, "", "" }, { "range", APP_TEXT, "", "" },
    { "stops at", APP_INTEGER, "", "" }, { "published", APP_TEXT, "", "" }, { "ok", APP_TEXT, "", "" },
};

static void show_row(app_table *shown, const app_table *t, int r)
{
    const bool half = strcmp(app_at(t, r, "sum")->text, "half") == 0, mean = app_at(t, r, "runs")->integer > 1;
    app_row(shown);
    app_text(shown, "%s", half ? "1024 + 2048 x 0.5" : "1 + 1/2 + 1/3 + ...");
    app_text(shown, "%s", app_at(t, r, "format")->text);
    app_text(shown, "%s", app_at(t, r, "rounding")->text);
    app_text(shown, mean ? "%.1f" : "%.8g", app_at(t, r, "result")->real);
    if (mean)
        app_text(shown, "%.1f", app_at(t, r, "deviation")->real);
    else
        app_missing(shown);
    if (mean)
        app_text(shown, "%g..%g", app_at(t, r, "low")->real, app_at(t, r, "high")->real);
    else
        app_missing(shown);
    if (half)
        app_missing(shown);
    else
        app_integer(shown, app_at(t, r, "term")->integer);
    if (mean)
        app_text(shown, "%g +- %.1f", app_at(t, r, "published")->real, app_at(t, r, "within")->real);
    else
        app_text(shown, "%.8g", app_at(t, r, "published")->real);
    app_text(shown, "%s", app_at(t, r, "ok")->text);
}

static app_table shown_table(const sums *a)
{
    app_table shown;
    app_table_start(&shown, shown_columns, (int)(sizeof shown_columns / sizeof shown_columns[0]));
    for (int r = 0; r < a->table.rows; r++) show_row(&shown, &a->table, r);
    return shown;
}

static void print_text(FILE *out, const void *all)
{
    const sums *a = all;
    app_table shown = shown_table(a);
    app_print_table(out, &shown);
    app_table_free(&shown);
    fprintf(out, "\nStochastic rounding: mean of %d seeds from %llu on.\n", a->s->seeds,
            (unsigned long long)a->s->seed);
}

/* ---- pictures ---- */

typedef struct half_line {
    const char *name;
    trn_format format;
    trn_rounding rounding;
    uint64_t seed;
    int colour;
} half_line;

static const half_line half_lines[] = {
    { "exact", TRN_F32, TRN_NEAREST_EVEN, 0, 2 },
    { "float16, nearest even", TRN_F16, TRN_NEAREST_EVEN, 0, 3 },
    { "float16, stochastic", TRN_F16, TRN_STOCHASTIC, 1, 0 },
    { "", TRN_F16, TRN_STOCHASTIC, 2, 0 },
    { "", TRN_F16, TRN_STOCHASTIC, 3, 0 },
    { "bfloat16, stochastic", TRN_BF16, TRN_STOCHASTIC, 1, 1 },
    { "", TRN_BF16, TRN_STOCHASTIC, 2, 1 },
    { "", TRN_BF16, TRN_STOCHASTIC, 3, 1 },
};
enum { HALF_LINES = sizeof half_lines / sizeof half_lines[0] };

static void draw_halves(FILE *out, bool alone)
{
    static double x[SR_TRACE], y[HALF_LINES][SR_TRACE];
    chart_line line[HALF_LINES];
    for (int i = 0; i < SR_TRACE; i++) x[i] = 16 * i;
    for (int i = 0; i < HALF_LINES; i++) {
        const half_line *h = &half_lines[i];
        sr_half_loop(h->format, h->rounding, h->seed, y[i]);
        line[i] = (chart_line){ h->name, x, y[i], SR_TRACE, h->colour, i == 0, false };
    }
    const chart c = { "1024 + 0.5 + 0.5 + ...", "additions", "sum", line, HALF_LINES, false, false, 0, 0, alone };
    chart_lines(out, &c);
}

static void draw_harmonics(FILE *out, const sums *a)
{
    chart_line line[HARMONICS];
    for (int i = 0; i < HARMONICS; i++) {
        const sr_series *s = &a->series[i];
        line[i] = (chart_line){ trn_format_name(harmonics[i].format), s->n, s->sum, s->points, i, i == 1, false };
    }
    const chart c = {
        "1 + 1/2 + 1/3 + ..., until a term changes nothing", "terms", "sum", line, HARMONICS, true, false, 0, 0, false
    };
    chart_lines(out, &c);
}

static void write_svg(FILE *out, const void *context) { (void)context, draw_halves(out, true); }
static void write_csv(FILE *out, const void *context) { app_print_csv(out, &((const sums *)context)->table); }

static void write_json(FILE *out, const void *context)
{
    const sums *a = context;
    fprintf(out,
            "{\n  \"schema\": \"srlab.sums\",\n  \"schema_version\": \"1.0.0\",\n  \"version\": \"%s\",\n"
            "  \"seed\": %llu,\n  \"results\": ",
            TRN_VERSION, (unsigned long long)a->s->seed);
    app_print_json_rows(out, &a->table, 2);
    fputs("\n}\n", out);
}

static void write_html(FILE *out, const void *context)
{
    const sums *a = context;
    app_table shown = shown_table(a);
    app_page_open(out, "Two sums that rounding stops");
    fputs("<h1>Two sums that rounding stops</h1><p class=lead>Half of the last place is rounded away, every time; "
          "stochastic rounding lets it through half the time.</p><div class=card>",
          out);
    draw_halves(out, false);
    fputs("</div><div class=card>", out);
    draw_harmonics(out, a);
    fputs("</div><div class=card>", out);
    app_html_table(out, &shown);
    fputs("</div>\n", out);
    app_page_close(out);
    app_table_free(&shown);
}

/* ---- the command ---- */

static const app_option options[] = {
    { "--seeds", "N", "runs of each stochastic sum (default: 1000)", APP_TAKES_INT(settings, seeds, 2, 1000000) },
    { "--seed", "N", "of the first run (default: 1)", APP_TAKES_UINT64(settings, seed, INT64_MAX) },
    { "--csv", "FILE", "one row a sum (- for standard output, in place of the text)", APP_TAKES_TEXT(settings, csv) },
    { "--json", "FILE", "the same as JSON", APP_TAKES_TEXT(settings, json) },
    { "--svg", "FILE", "a picture of 1024 + 0.5 + 0.5 + ...", APP_TAKES_TEXT(settings, svg) },
    { "--html", "FILE", "a page with both pictures", APP_TAKES_TEXT(settings, html) },
    { "--schema", NULL, "the columns of the CSV", APP_SETS(settings, schema) },
};

static const app_command command = {
    "srlab sums",
    "usage: srlab sums [options]",
    "1024 + 2048 x 0.5, and the harmonic series, each addition rounded to a format: where the sums stop, beside\n"
    "what is published of them.",
    options,
    sizeof options / sizeof options[0],
    "Exit status: 0 ok, 1 a sum is not as published, 2 bad usage.",
    NULL,
};

static void add_all(sums *a)
{
    for (int i = 0; i < HALVES; i++) add_half(a, &halves[i]);
    for (int i = 0; i < HARMONICS; i++) add_harmonic(a, &harmonics[i], &a->series[i]);
}

static int run(sums *a)
{
    const settings *s = a->s;
    app_output output[] = {
        { .flag = "--csv", .path = s->csv, .write = write_csv },
        { .flag = "--json", .path = s->json, .write = write_json },
        { .flag = "--svg", .path = s->svg, .write = write_svg },
        { .flag = "--html", .path = s->html, .write = write_html },
    };
    const int outputs = (int)(sizeof output / sizeof output[0]);
    int status = app_open_outputs(output, outputs);
    if (status != APP_OK) return status;
    add_all(a);
    status = app_answer(output, outputs, a, print_text);
    if (status == APP_OK && a->wrong)
        status = app_complain(APP_FAILED, "%d of %d sums are not as published", a->wrong, a->table.rows);
    return status;
}

int sr_main_sums(int argc, char **argv)
{
    static sums a;
    settings s = { 1000, 1, NULL, NULL, NULL, NULL, false };
    int status = app_parse_options(&command, &s, argc, argv);
    if (status != APP_OK) return status < 0 ? APP_OK : status;
    a.s = &s;
    app_table_start(&a.table, columns, (int)(sizeof columns / sizeof columns[0]));
    if (s.schema)
        app_print_schema(stdout, "srlab.sums", &a.table);
    else
        status = run(&a);
    app_table_free(&a.table);
    return status;
}
