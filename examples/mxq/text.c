/* text.c - what a person reads in a terminal: the tensor, its ways from many bits to few, and the best of each budget.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    fprintf(out, "%s: %s values (%s), %s x %s\n", r->source->name, elements, r->source->type, rows, columns);
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
    fprintf(out, "  %-*.60s", width, r->source->name);
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

void mxq_print_text(FILE *out, const mxq_all *all, bool each)
{
    for (int i = 0; i < all->results && (each || all->results <= 3); i++) one_tensor(out, all, &all->result[i]);
    if (all->results > 1) means(out, all);
    best(out, all);
}
