/* report.c - what came out: text, CSV, JSON, SVG, a page.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>

#include "report.h"

/* ---- text ---- */

static void print_settings(FILE *out, const sr_lab *lab)
{
    const sr_settings *s = lab->settings;
    char count[32];
    fprintf(out,
            "%s: %s parameters, %lld steps of %d, AdamW 0.9 0.95, weight decay %g, clip %g, rate to %g of itself\n",
            lab->kind->title, app_count(count, sizeof count, lab->run[0].parameters), (long long)s->steps, s->batch,
            s->weight_decay, s->clip, s->rate_end);
}

/* People see the summary with the decimals that losses need. */
static const app_column shown_columns[] = {
    { "arm", APP_TEXT, "", "" },      { "rate", APP_TEXT, "", "" },      { "train", APP_TEXT, "", "" },
    { "valid", APP_TEXT, "", "" },    { "low..high", APP_TEXT, "", "" }, { "over f32", APP_TEXT, "", "" },
    { "right %", APP_TEXT, "", "" },  { "lost %", APP_TEXT, "", "" },    { "arrived %", APP_TEXT, "", "" },
    { "seconds", APP_TEXT, "", "" },  { "cpu s", APP_TEXT, "", "" },
};

static void show_number(app_table *shown, const app_table *t, int row, const char *column, const char *format)
{
    const app_value *v = app_at(t, row, column);
    char text[64];
    snprintf(text, sizeof text, format, v->real);
    if (v->missing) app_missing(shown);
    else app_text(shown, "%s", text);
}

static void show_row(app_table *shown, const app_table *t, int row)
{
    app_row(shown);
    app_text(shown, "%s", app_at(t, row, "arm")->text);
    show_number(shown, t, row, "rate", "%g");
    show_number(shown, t, row, "train", "%.4f");
    show_number(shown, t, row, "valid", "%.4f");
    if (app_at(t, row, "seeds")->integer > 1)
        app_text(shown, "%.4f..%.4f", app_at(t, row, "low")->real, app_at(t, row, "high")->real);
    else app_missing(shown);
    show_number(shown, t, row, "over_f32", "%+.4f");
    show_number(shown, t, row, "right_pct", "%4.1f");
    show_number(shown, t, row, "lost_pct", "%5.1f");
    show_number(shown, t, row, "arrived_pct", "%5.1f");
    show_number(shown, t, row, "seconds", "%6.1f");
    show_number(shown, t, row, "cpu_seconds", "%6.1f");
}

app_table sr_shown_table(const sr_lab *lab)
{
    app_table shown;
    app_table_start(&shown, shown_columns, (int)(sizeof shown_columns / sizeof shown_columns[0]));
    for (int r = 0; r < lab->summary.rows; r++) show_row(&shown, &lab->summary, r);
    return shown;
}

void sr_say_verdict(char *text, size_t size, const sr_lab *lab, int rate)
{
    const sr_verdict v = sr_judge_ordering(lab, rate);
    char kahan[64] = "";
    text[0] = '\0';
    if (!v.known) return;
    if (isfinite(v.kahan)) snprintf(kahan, sizeof kahan, ", kahan %+.4f", v.kahan - v.f32);
    snprintf(text, size, "rate %g: over f32's %.4f: bf16-rne %+.4f, bf16-sr %+.4f%s: the published ordering %s",
             lab->settings->rate[rate], v.f32, v.rne - v.f32, v.sr - v.f32, kahan,
             v.holds              ? "holds"
             : v.rne - v.f32 <= 0 ? "does not hold, nearest even is not behind"
                                  : "does not hold");
}

static void print_verdicts(FILE *out, const sr_lab *lab)
{
    char text[256];
    for (int i = 0; i < lab->settings->rates; i++) {
        sr_say_verdict(text, sizeof text, lab, i);
        if (*text) fprintf(out, "%s\n", text);
    }
}

void sr_print_text(FILE *out, const sr_lab *lab)
{
    app_table shown = sr_shown_table(lab);
    print_settings(out, lab);
    app_print_table(out, &shown);
    app_table_free(&shown);
    fprintf(out, "\nLosses in %s.\n", lab->kind->unit);
    print_verdicts(out, lab);
    for (int i = 0; i < lab->runs; i++)
        if (lab->run[i].sample && lab->run[i].seed == lab->settings->seed)
            fprintf(out, "%s%-10s  %s\n", i ? "" : "\n", lab->run[i].arm->name, lab->run[i].sample);
}

void sr_write_csv(FILE *out, const void *lab) { app_print_csv(out, &((const sr_lab *)lab)->curves); }

/* ---- JSON ---- */

static void json_settings(FILE *out, const sr_settings *s)
{
    const struct {
        const char *name;
        double value;
    } number[] = { { "steps", (double)s->steps },       { "batch", s->batch },       { "lr_end", s->rate_end },
                   { "warmup", s->warmup },             { "weight_decay", s->weight_decay }, { "clip", s->clip },
                   { "beta1", 0.9 },                    { "beta2", 0.95 },           { "seeds", s->seeds },
                   { "width", s->width },               { "layers", s->layers },     { "heads", s->heads },
                   { "context", s->context },           { "features", s->features }, { "hidden", s->hidden },
                   { "depth", s->depth },               { "classes", s->classes },
                   { "examples", (double)s->examples }, { "shards", SR_SHARDS } };
    fputs("  \"settings\": {\n", out);
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        fprintf(out, "    \"%s\": ", number[i].name);
        app_print_json_number(out, number[i].value);
        fputs(",\n", out);
    }
    app_print_json_pair(out, "text", s->text);
    fprintf(out, "    \"products\": \"%s\"\n  },\n", trn_format_name(s->products));
}

static void json_samples(FILE *out, const sr_lab *lab)
{
    const char *comma = "";
    fputs("  \"samples\": [", out);
    for (int i = 0; i < lab->runs; i++) {
        const sr_run *run = &lab->run[i];
        if (!run->sample) continue;
        fprintf(out, "%s\n    {\"arm\": \"%s\", \"rate\": ", comma, run->arm->name);
        app_print_json_number(out, run->rate);
        fprintf(out, ", \"seed\": %llu, \"text\": ", (unsigned long long)run->seed);
        app_print_json_string(out, run->sample);
        fputs("}", out);
        comma = ",";
    }
    fputs("\n  ],\n", out);
}

void sr_write_json(FILE *out, const void *context)
{
    const sr_lab *lab = context;
    fprintf(out,
            "{\n  \"schema\": \"srlab.%s\",\n  \"schema_version\": \"1.0.0\",\n  \"version\": \"%s\",\n"
            "  \"parameters\": %lld,\n",
            lab->kind->name, TRN_VERSION, (long long)lab->run[0].parameters);
    json_settings(out, lab->settings);
    fputs("  \"results\": ", out);
    app_print_json_rows(out, &lab->summary, 2);
    fputs(",\n", out);
    json_samples(out, lab);
    fputs("  \"points\": ", out);
    app_print_json_rows(out, &lab->curves, 2);
    fputs("\n}\n", out);
}
