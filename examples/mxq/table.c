/* table.c - the rows of the table, and the files that hold them.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <math.h>
#include <string.h>

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
    fprintf(out, ", \"type\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"nonzero\": %lld, \"not_finite\": %lld",
            r->source->type, (long long)r->source->rows, (long long)r->source->columns, (long long)f->nonzero,
            (long long)f->not_finite);
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
