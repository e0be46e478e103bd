/* report.c - the rows as CSV and JSON, and what a person reads: ways from many bits to few, the best of each budget.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static const app_column column[] = {
    { "tensor", APP_TEXT, "", "its name, its file, or its distribution" },
    { "elements", APP_INTEGER, "", "how many" },
    { "format", APP_TEXT, "", "of the elements" },
    { "scale", APP_TEXT, "", "the rule of MX, or what shares a float32 scale" },
    { "rounding", APP_TEXT, "", "RNE, to nearest even; SR, stochastic" },
    { "bits", APP_REAL, "bit", "per element, scales included" },
    { "sqnr_db", APP_REAL, "dB", "energy of the values over energy of the errors; null: no errors, or no values" },
    { "theory_db", APP_REAL, "dB",
      "expected: errors spread evenly over the format's steps at these values, nothing saturated" },
    { "ceiling_db", APP_REAL, "dB", "floats: 13.80 + 6.02 M; integers: theory with the best scale" },
    { "mean_relative", APP_REAL, "", "error over value, mean over values that are not 0" },
    { "max_relative", APP_REAL, "", "its largest" },
    { "max_absolute", APP_REAL, "", "the largest error" },
    { "to_zero", APP_REAL, "", "share of values not 0 that become 0" },
    { "saturated", APP_REAL, "", "share of values beyond the largest number of the format" },
    { "best_within", APP_REAL, "bit", "the smallest budget that this is the best way for; null: none" },
    { "gb_per_s", APP_REAL, "1e9 B/s",
      "float32 bytes quantised, restored and measured in a second of a thread's time; with --time" },
};

void mxq_empty_table(app_table *t) { app_table_start(t, column, sizeof column / sizeof column[0]); }

static double share(double part, int64_t whole) { return whole ? part / (double)whole : NAN; }

double mxq_budget(const mxq_all *all, const mxq_result *r, int way)
{
    for (int b = 0; b < all->budgets; b++)
        if (mxq_best(all->job, r, all->budget[b]) == way) return all->budget[b];
    return NAN;
}

static void add_row(const mxq_all *all, const mxq_result *r, int k, app_table *t)
{
    const mxq_way *way = &all->job->way[k];
    const mxq_sums *s = &r->sums[k];
    const mxq_facts *f = &r->facts;
    app_row(t);
    app_text(t, "%s", r->source->name);
    app_integer(t, f->elements);
    app_text(t, "%s", way->name);
    app_text(t, "%s", mxq_scale_of(way));
    app_text(t, "%s", way->rounding == TRN_STOCHASTIC ? "SR" : "RNE");
    app_real(t, mxq_bits(way, r->source));
    app_real(t, mxq_sqnr(r, k));
    app_real(t, mxq_theory(r, k));
    app_real(t, mxq_ceiling(all->job, r, k));
    app_real(t, share(s->relative, f->nonzero));
    app_real(t, f->nonzero ? (double)s->relative_max : NAN);
    app_real(t, f->elements ? (double)s->absolute_max : NAN);
    app_real(t, share((double)s->to_zero, f->nonzero));
    app_real(t, share((double)s->saturated, f->elements));
    app_real(t, mxq_budget(all, r, k));
    app_real(t, all->time && s->seconds > 0 ? 4e-9 * (double)f->elements / s->seconds : NAN);
}

void mxq_table(const mxq_all *all, app_table *t)
{
    mxq_empty_table(t);
    for (int i = 0; i < all->results; i++)
        for (int k = 0; k < all->job->ways; k++) add_row(all, &all->result[i], k, t);
}

void mxq_write_csv(FILE *out, const void *context)
{
    app_table t;
    mxq_table(context, &t);
    app_print_csv(out, &t);
    app_table_free(&t);
}

/* ---- JSON ---- */

static void number(FILE *out, const char *key, double value)
{
    fprintf(out, ", \"%s\": ", key);
    app_print_json_number(out, value);
}

static void tensor(FILE *out, const mxq_result *r)
{
    const mxq_facts *f = &r->facts;
    fputs("    {\"tensor\": ", out);
    app_print_json_string(out, r->source->name);
    fputs(", \"type\": ", out);
    app_print_json_string(out, r->source->type);
    fprintf(out, ", \"rows\": %lld, \"columns\": %lld, \"nonzero\": %lld, \"not_finite\": %lld",
            (long long)r->source->rows, (long long)r->source->columns, (long long)f->nonzero, (long long)f->not_finite);
    number(out, "sigma", mxq_sigma(f));
    number(out, "amax", f->amax);
    number(out, "crest_factor", mxq_crest(f));
    number(out, "block_crest_mean", f->block_crest / (double)f->blocks);
    number(out, "block_crest_q3", mxq_crest_quantile(f, 0.75));
    fputs("}", out);
}

void mxq_write_json(FILE *out, const void *context)
{
    const mxq_all *all = context;
    app_table t;
    mxq_table(all, &t);
    fputs("{\n", out);
    app_print_json_pair(out, "program", app_name);
    app_print_json_pair(out, "version", TRN_VERSION);
    fprintf(out, "    \"seed\": %llu,\n    \"tensors\": [\n", (unsigned long long)all->job->seed);
    for (int i = 0; i < all->results; i++) {
        tensor(out, &all->result[i]);
        fputs(i + 1 < all->results ? ",\n" : "\n", out);
    }
    fputs("    ],\n    \"rows\": ", out);
    app_print_json_rows(out, &t, 4);
    fputs("\n}\n", out);
    app_table_free(&t);
}

/* ---- text ---- */

enum { BAR = 20 };

void mxq_label(char *text, size_t size, const mxq_way *way)
{
    const char *scale = mxq_scale_of(way);
    const bool shown = strcmp(scale, "-") != 0;
    snprintf(text, size, "%s%s%s%s", way->name, shown ? " " : "", shown ? scale : "",
             way->rounding == TRN_STOCHASTIC ? " SR" : "");
}

double mxq_mean_sqnr(const mxq_all *all, int way)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < all->results; i++) {
        const double sqnr = mxq_sqnr(&all->result[i], way);
        if (isfinite(sqnr)) sum += sqnr, n++;
    }
    return n ? sum / n : NAN;
}

/* ---- cells ---- */

static void decibels(FILE *out, double value, int width)
{
    if (isnan(value))
        fprintf(out, "%*s", width, "-");
    else if (isinf(value))
        fprintf(out, "%*s", width, value > 0 ? "exact" : "-inf");
    else
        fprintf(out, "%*.2f", width, value);
}

static void percent(FILE *out, double part, double whole, int width)
{
    const double p = whole > 0 ? 100 * part / whole : 0;
    if (!(part > 0))
        fprintf(out, "%*s", width, "0");
    else if (p < 0.005)
        fprintf(out, "%*s", width, "<0.01%");
    else
        fprintf(out, p >= 9.995 ? "%*.1f%%" : "%*.2f%%", width - 1, p);
}

static bool speaks_utf8(void)
{
    static const char *const variable[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value = NULL;
    for (size_t i = 0; i < sizeof variable / sizeof variable[0] && !(value && *value); i++) value = getenv(variable[i]);
    return value && (strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8"));
}

/* Eighths of a cell where the terminal has them. */
static void bar(FILE *out, double share)
{
    static const char *const eighth[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
    const bool fine = speaks_utf8();
    const int filled = isnan(share) ? 0 : (int)lrint(8 * BAR * fmax(0, fmin(share, 1)));
    for (int i = 0; i < BAR; i++) {
        const int here = filled - 8 * i < 0 ? 0 : filled - 8 * i > 8 ? 8 : filled - 8 * i;
        fputs(fine ? eighth[here] : here > 3 ? "#" : " ", out);
    }
}

/* ---- one tensor ---- */

static void facts(FILE *out, const mxq_result *r)
{
    const mxq_facts *f = &r->facts;
    char elements[40], rows[40], columns[40], blocks[40], sigma[40];
    app_count(elements, sizeof elements, f->elements);
    app_count(rows, sizeof rows, r->source->rows);
    app_count(columns, sizeof columns, r->source->columns);
    app_count(blocks, sizeof blocks, f->blocks);
    app_say(out, "%s: %s values (%s), %s x %s\n", r->source->name, elements, r->source->type, rows, columns);
    if (!(f->energy > 0)) {
        fputs("nothing but zeros\n", out);
        return;
    }
    fprintf(out, "sigma %s, crest factor %.2f; of %s block%s of 32: %.2f on average, three of four below %.2f\n",
            app_human(sigma, sizeof sigma, mxq_sigma(f)), mxq_crest(f), blocks, f->blocks == 1 ? "" : "s",
            f->block_crest / (double)f->blocks, mxq_crest_quantile(f, 0.75));
    if (f->not_finite)
        fprintf(out, "%lld of its values are NaN or infinite: here they count as 0\n", (long long)f->not_finite);
    if (f->nonzero < f->elements)
        fprintf(out, "%.3g %% of its values are 0\n", 100 * (double)(f->elements - f->nonzero) / (double)f->elements);
}

typedef struct ranked {
    int way;
    double bits, sqnr;
} ranked;

/* Many bits first, then the better. */
static int by_bits(const void *a_, const void *b_)
{
    const ranked *a = a_, *b = b_;
    const double x = rint(4 * a->bits), y = rint(4 * b->bits);
    if (x < y || x > y) return x < y ? 1 : -1;
    if (a->sqnr < b->sqnr || a->sqnr > b->sqnr) return a->sqnr < b->sqnr ? 1 : -1;
    return a->way - b->way;
}

static void row(FILE *out, const mxq_all *all, const mxq_result *r, int k, int name, bool colour)
{
    const mxq_way *way = &all->job->way[k];
    const mxq_sums *s = &r->sums[k];
    const double sqnr = mxq_sqnr(r, k), nonzero = (double)r->facts.nonzero;
    const bool best = !isnan(mxq_budget(all, r, k));
    char mean[40], most[40];
    fputs(best && colour ? "\033[1m" : "", out);
    fprintf(out, "%c %5.2f  %-*s  %-9s  ", best ? '*' : ' ', mxq_bits(way, r->source), name, way->name,
            mxq_scale_of(way));
    fputs(way->rounding == TRN_STOCHASTIC ? "SR " : "   ", out);
    decibels(out, sqnr, 6);
    fputs("  ", out);
    bar(out, sqnr / 60);
    fputs(best && colour ? "\033[0m" : "", out);
    decibels(out, mxq_theory(r, k), 8);
    decibels(out, mxq_ceiling(all->job, r, k), 9);
    app_human(mean, sizeof mean, nonzero > 0 ? s->relative / nonzero : 0);
    app_human(most, sizeof most, (double)s->relative_max);
    fprintf(out, "%10s%9s", mean, most);
    percent(out, (double)s->to_zero, nonzero, 10);
    percent(out, (double)s->saturated, (double)r->facts.elements, 11);
    if (all->time) fprintf(out, "%8.2f", 4e-9 * (double)r->facts.elements / s->seconds);
    fputc('\n', out);
}

static void one_tensor(FILE *out, const mxq_all *all, const mxq_result *r)
{
    const bool colour = app_colour(out);
    ranked list[MXQ_WAYS];
    int name = 6;
    facts(out, r);
    for (int k = 0; k < all->job->ways; k++) {
        list[k] = (ranked){ k, mxq_bits(&all->job->way[k], r->source), mxq_sqnr(r, k) };
        if ((int)strlen(all->job->way[k].name) > name) name = (int)strlen(all->job->way[k].name);
    }
    qsort(list, (size_t)all->job->ways, sizeof *list, by_bits);
    fprintf(
        out,
        "\n%s   bits  %-*s  scale         SQNR dB  %*s  theory  ceiling  mean rel  max rel   to zero  saturated%s%s\n",
        colour ? "\033[1m" : "", name, "format", BAR - 2, "", all->time ? "    GB/s" : "", colour ? "\033[0m" : "");
    for (int k = 0; k < all->job->ways; k++) row(out, all, r, list[k].way, name, colour);
    fputc('\n', out);
}

/* ---- the best ---- */

static int name_width(const mxq_all *all)
{
    int width = 6;
    for (int i = 0; i < all->results; i++) {
        const int n = (int)strlen(all->result[i].source->name);
        if (n > width) width = n;
    }
    return width > 60 ? 60 : width;
}

static void best_of(FILE *out, const mxq_all *all, const mxq_result *r, int width)
{
    app_say(out, "  %-*.60s", width, r->source->name);
    for (int b = 0; b < all->budgets; b++) {
        const int k = mxq_best(all->job, r, all->budget[b]);
        char label[80] = "-", cell[100];
        if (k >= 0) mxq_label(label, sizeof label, &all->job->way[k]);
        if (k >= 0 && isinf(mxq_sqnr(r, k)))
            snprintf(cell, sizeof cell, "%s, exact", label);
        else if (k >= 0)
            snprintf(cell, sizeof cell, "%s, %.2f", label, mxq_sqnr(r, k));
        else
            snprintf(cell, sizeof cell, "-");
        fprintf(out, b + 1 < all->budgets ? "  %-28s" : "  %s", cell);
    }
    fputc('\n', out);
}

static void best(FILE *out, const mxq_all *all)
{
    const int width = name_width(all);
    fprintf(out, "Best SQNR (dB) within so many bits per element:\n\n  %-*s", width, "tensor");
    for (int b = 0; b < all->budgets; b++) {
        char cell[40];
        snprintf(cell, sizeof cell, "%g bits", all->budget[b]);
        fprintf(out, b + 1 < all->budgets ? "  %-28s" : "  %s", cell);
    }
    fputc('\n', out);
    for (int i = 0; i < all->results; i++) best_of(out, all, &all->result[i], width);
}

static void means(FILE *out, const mxq_all *all)
{
    fprintf(out, "Mean SQNR over %d tensors, but those that a way holds exactly:\n\n", all->results);
    for (int k = 0; k < all->job->ways; k++) {
        char label[80];
        mxq_label(label, sizeof label, &all->job->way[k]);
        fprintf(out, "  %-28s", label);
        decibels(out, mxq_mean_sqnr(all, k), 7);
        fputs("  ", out);
        bar(out, mxq_mean_sqnr(all, k) / 60);
        fputc('\n', out);
    }
    fputc('\n', out);
}

/* Codes whose scale is nowhere. */
static void alone(FILE *out, const mxq_all *all)
{
    const mxq_source *first = NULL;
    int n = 0;
    for (int i = 0; i < all->results; i++)
        if (all->result[i].source->alone && n++ == 0) first = all->result[i].source;
    if (n) app_say(out, "\nCodes that have no scale, taken for 1: %d (%s%s).\n", n, first->name, n > 1 ? ", ..." : "");
}

void mxq_print_text(FILE *out, const mxq_all *all, bool each)
{
    for (int i = 0; i < all->results && (each || all->results <= 3); i++) one_tensor(out, all, &all->result[i]);
    if (all->results > 1) means(out, all);
    best(out, all);
    alone(out, all);
}
