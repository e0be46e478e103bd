/* report.c - tables: a row for each setting, and the SQNR of each layer, also in multiples of BF16's noise.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <math.h>
#include <stdlib.h>

static const app_column column[] = {
    { "setting", APP_TEXT, "", "as it was asked for" },
    { "perplexity", APP_REAL, "", "exp of the mean of -ln p(next token)" },
    { "KL", APP_REAL, "nats", "mean KL(reference || setting) of a position's logits" },
    { "worst KL", APP_REAL, "nats", "the largest of a position" },
    { "top-1", APP_REAL, "%", "positions whose likeliest token is the reference's" },
    { "logits", APP_REAL, "dB", "SQNR of all logits; missing: they are the same numbers, or not finite" },
    { "parts at", APP_INTEGER, "", "the first layer whose SQNR is below the threshold; missing: none" },
    { "not finite", APP_INTEGER, "", "positions with a logit that is no finite number; in none of the means" },
    { "seconds", APP_REAL, "s", "the time it took" },
    { "R", APP_REAL, "", "|logits - reference's| / |BF16's logits - reference's|; missing: BF16 did not run" },
    { "flips", APP_REAL, "%", "tokens whose router chooses other experts than the reference's, mean of all routers" },
};

enum { COLUMNS = sizeof column / sizeof column[0] };

static void fill_row(app_table *t, const mr_result *r, const mr_row *row)
{
    app_row(t);
    app_text(t, "%s", row->setting.name);
    app_real(t, row->perplexity);
    app_real(t, row->kl);
    app_real(t, row->kl_worst);
    app_real(t, 100 * row->top1);
    app_real(t, row->sqnr[r->layers]);
    if (row->first_apart < 0)
        app_missing(t);
    else
        app_integer(t, row->first_apart);
    app_integer(t, row->not_finite);
    app_real(t, row->seconds);
    app_real(t, row->ratio[r->layers]);
    if (t->columns == COLUMNS - 1) return; /* no routers */
    app_real(t, 100 * row->all_flips);
}

/* ---- text ---- */

static void print_settings(FILE *out, const mr_result *r)
{
    app_table t;
    app_table_start(&t, column, r->mixture ? COLUMNS : COLUMNS - 1);
    for (int i = 0; i < r->rows; i++) fill_row(&t, r, &r->row[i]);
    app_print_table(out, &t);
    app_table_free(&t);
}

static double sqnr_of(const mr_row *row, int64_t layer) { return row->sqnr[layer]; }
static double ratio_of(const mr_row *row, int64_t layer) { return row->ratio[layer]; }

/* Layers downwards, settings across; the reference is left out. */
static void print_layers(FILE *out, const mr_result *r, const char *what, double (*of)(const mr_row *, int64_t),
                         const char *format)
{
    app_column *head = app_memory((size_t)r->rows, sizeof *head);
    app_table t;
    head[0] = (app_column){ what, APP_TEXT, "", "" };
    for (int i = 1; i < r->rows; i++) head[i] = (app_column){ r->row[i].setting.name, APP_TEXT, "", "" };
    app_table_start(&t, head, r->rows);
    for (int64_t l = 0; l <= r->layers; l++) {
        app_row(&t);
        if (l == r->layers)
            app_text(&t, "logits");
        else
            app_text(&t, "layer %lld", (long long)l);
        for (int i = 1; i < r->rows; i++) {
            char text[40];
            const double x = of(&r->row[i], l);
            snprintf(text, sizeof text, format, x);
            app_text(&t, "%s", isnan(x) ? "none" : isinf(x) ? "same" : text);
        }
    }
    app_print_table(out, &t);
    app_table_free(&t);
    free(head);
}

void mr_report_text(FILE *out, const mr_result *r)
{
    char a[32], b[32], c[32];
    app_say(out, "%s: %s, %s parameters, %lld layers; %s: %s tokens in %s windows of up to %lld\n\n", r->folder,
            r->family, app_count(a, sizeof a, r->parameters), (long long)r->layers, r->text,
            app_count(b, sizeof b, r->tokens), app_count(c, sizeof c, r->sequences), (long long)r->context);
    print_settings(out, r);
    if (r->rows > 1) {
        fprintf(out,
                "\nSQNR of the residual stream after each layer; a layer parts from the reference below %g dB:\n\n",
                r->threshold_db);
        print_layers(out, r, "SQNR, dB", sqnr_of, "%.1f");
    }
    if (r->rows > 2 && isfinite(r->row[0].ratio[r->layers])) {
        fprintf(out, "\nThe same as R, the noise in multiples of BF16's:\n\n");
        print_layers(out, r, "R", ratio_of, "%.3g");
    }
    if (r->alone) fprintf(out, "\nCodes that have no scale, taken for 1: %d matrices.\n", r->alone);
    fprintf(out, "\n%.1f MB of weights, %.1f MB of memory at most (%.2f x)\n", (double)r->file_bytes / 1e6,
            (double)r->peak_bytes / 1e6, (double)r->peak_bytes / (double)r->file_bytes);
}

/* ---- CSV: the same columns, and two for each layer ---- */

void mr_report_csv(FILE *out, const void *result)
{
    const mr_result *r = result;
    const int64_t layers = r->layers;
    const int columns = COLUMNS + 2 * (int)layers;
    app_column *head = app_memory((size_t)columns, sizeof *head);
    char(*name)[32] = app_memory((size_t)layers * 2, sizeof *name);
    app_table t;
    memcpy(head, column, sizeof column);
    for (int64_t l = 0; l < layers; l++) {
        snprintf(name[l], sizeof name[l], "layer %lld", (long long)l);
        snprintf(name[layers + l], sizeof name[l], "R %lld", (long long)l);
        head[COLUMNS + l] = (app_column){ name[l], APP_REAL, "dB", "SQNR after this layer" };
        head[COLUMNS + layers + l] = (app_column){ name[layers + l], APP_REAL, "", "R after this layer" };
    }
    app_table_start(&t, head, columns);
    for (int i = 0; i < r->rows; i++) {
        fill_row(&t, r, &r->row[i]);
        for (int64_t l = 0; l < layers; l++) app_real(&t, r->row[i].sqnr[l]);
        for (int64_t l = 0; l < layers; l++) app_real(&t, r->row[i].ratio[l]);
    }
    app_print_csv(out, &t);
    app_table_free(&t);
    free(name);
    free(head);
}

/* ---- JSON ---- */

/* "NAME": a row for each setting, with a number for each layer. */
static void print_rows(FILE *out, const mr_result *r, const char *name, double (*of)(const mr_row *, int64_t))
{
    fprintf(out, ",\n  \"%s\": [\n", name);
    for (int i = 0; i < r->rows; i++) {
        fputs("    { \"setting\": ", out);
        app_print_json_string(out, r->row[i].setting.name);
        fputs(", \"layers\": [", out);
        for (int64_t l = 0; l < r->layers; l++) {
            if (l) fputs(", ", out);
            app_print_json_number(out, of(&r->row[i], l));
        }
        fputs(i + 1 < r->rows ? "] },\n" : "] }\n", out);
    }
    fputs("  ]", out);
}

static double flips_of(const mr_row *row, int64_t layer) { return 100 * row->flips[layer]; }

void mr_report_json(FILE *out, const void *result)
{
    const mr_result *r = result;
    app_table t;
    app_table_start(&t, column, COLUMNS);
    for (int i = 0; i < r->rows; i++) fill_row(&t, r, &r->row[i]);
    fputs("{\n  \"model\": ", out);
    app_print_json_string(out, r->folder);
    fputs(",\n  \"family\": ", out);
    app_print_json_string(out, r->family);
    fprintf(out, ",\n  \"parameters\": %lld,\n  \"tokens\": %lld,\n  \"predicted\": %lld,\n  \"windows\": %lld,\n",
            (long long)r->parameters, (long long)r->tokens, (long long)r->predicted, (long long)r->sequences);
    fprintf(out, "  \"context\": %lld,\n  \"scales_taken_for_1\": %d,\n  \"threshold_db\": ", (long long)r->context,
            r->alone);
    app_print_json_number(out, r->threshold_db);
    fprintf(out,
            ",\n  \"file_bytes\": %llu,\n  \"peak_bytes\": %llu,\n  \"settings\": ", (unsigned long long)r->file_bytes,
            (unsigned long long)r->peak_bytes);
    app_print_json_rows(out, &t, 2);
    print_rows(out, r, "sqnr_db", sqnr_of);
    print_rows(out, r, "r", ratio_of);
    if (r->mixture) print_rows(out, r, "flips_percent", flips_of);
    fputs("\n}\n", out);
    app_table_free(&t);
}

/* ---- what there is ---- */

void mr_report_schema(void)
{
    app_table t;
    app_table_start(&t, column, COLUMNS);
    app_print_schema(stdout, "modelrun", &t);
    app_table_free(&t);
}

void mr_report_settings(void)
{
    static const app_column setting[] = { { "setting", APP_TEXT, "", "" },
                                          { "is", APP_TEXT, "", "" },
                                          { "what it does", APP_TEXT, "", "" } };
    static const app_column word[] = { { "word", APP_TEXT, "", "" }, { "what it does", APP_TEXT, "", "" } };
    const char *name, *text, *about;
    app_table t;
    app_table_start(&t, setting, 3);
    for (int i = 0; (name = mr_setting_row(i, &text, &about)) != NULL; i++) {
        app_row(&t);
        app_text(&t, "%s", name);
        app_text(&t, "%s", text);
        app_text(&t, "%s", about);
    }
    app_print_table(stdout, &t);
    app_table_free(&t);
    puts("\nWords between commas make others, read from left to right:\n");
    app_table_start(&t, word, 2);
    for (int i = 0; (name = mr_setting_word(i, &about)) != NULL; i++) {
        app_row(&t);
        app_text(&t, "%s", name);
        app_text(&t, "%s", about);
    }
    app_row(&t);
    app_text(&t, "tp=N");
    app_text(&t, "products of attention's and the perceptron's output are split over N cores, up to 64");
    app_row(&t);
    app_text(&t, "chains=1, ...");
    app_text(&t, "any of the library's numerics: trnmath/trn_numerics.h");
    app_print_table(stdout, &t);
    app_table_free(&t);
}
