/* report.c - what was converted and what was lost: for people, for CSV and for JSON.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const app_column columns[] = {
    { "tensor", APP_TEXT, "", "its name" },
    { "from", APP_TEXT, "", "type, and of FP8 the side it had: ocp or neuron; MXFP4 and NVFP4 by their names" },
    { "to", APP_TEXT, "", "what it is now: FP8 of ocp or neuron, BF16, MXFP4, MXFP8" },
    { "shape", APP_TEXT, "", "outermost axis first" },
    { "scales", APP_TEXT, "", "what shares a scale in the output: tensor, matrix, channel, or rows x columns" },
    { "scale", APP_TEXT, "", "name of the scale in the output" },
    { "elements", APP_INTEGER, "", "codes" },
    { "over_240", APP_INTEGER, "", "finite codes beyond Trainium's range" },
    { "relabelled_inf", APP_INTEGER, "", "codes that would be infinity if only the label were changed" },
    { "relabelled_nan", APP_INTEGER, "", "codes that would be NaN if only the label were changed" },
    { "was_not_finite", APP_INTEGER, "", "infinities and NaNs in the input; they stay what they are" },
    { "not_finite", APP_INTEGER, "", "finite in the input, infinity or NaN in the output" },
    { "inexact", APP_INTEGER, "", "elements whose code times scale is another number now" },
    { "inexact_large", APP_INTEGER, "", "those of them whose code is 2^-5 or more" },
    { "worst", APP_REAL, "", "largest relative error" },
    { "worst_large", APP_REAL, "", "the same among codes of 2^-5 and more" },
    { "scale_error", APP_REAL, "", "largest relative error of a stored scale against the mode's" },
    { "sqnr_db", APP_REAL, "dB", "sum of squares over sum of squared errors; missing when nothing was lost" },
    { "read_scale", APP_TEXT, "",
      "name of the scale in the input; of codes without one: no scale, taken for 1; missing: numbers" },
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

fc_tally fc_total(const fc_catalogue *c)
{
    fc_tally total = { 0 };
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i])) fc_tally_add(&total, &c->item[i].tally);
    return total;
}

/* ---- a row per tensor ---- */

static void shape_text(const st_tensor *t, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, i ? ", %lld" : "%lld", (long long)t->shape[i]);
    if (n < size) snprintf(text + n, size - n, "]");
}

static const char *form_text(const fc_catalogue *c, const fc_item *item)
{
    if (item->form == FC_AS_BF16) return "BF16";
    if (item->form == FC_AS_MX) return item->mx_fp4 ? "MXFP4" : "MXFP8";
    return fc_side_text(c->options->to);
}

/* What shares a scale in the output. */
static void scales_text(const fc_item *item, char *text, size_t size)
{
    if (item->form == FC_AS_BF16)
        snprintf(text, size, "none");
    else if (item->form == FC_AS_MX)
        snprintf(text, size, "32x1");
    else
        quant_grid_describe(&item->out, text, size);
}

static void fill_row(const fc_catalogue *c, const fc_item *item, app_table *table)
{
    const fc_tally *t = &item->tally;
    char shape[128], scales[64];
    const bool codes = item->kind == FC_IS_FP8;
    shape_text(&item->view, shape, sizeof shape);
    scales_text(item, scales, sizeof scales);
    app_row(table);
    app_text(table, "%s", item->tensor.name);
    if (item->kind >= FC_IS_MXFP4)
        app_text(table, "%s", fc_kind_text(item->kind));
    else
        app_text(table, "%s%s%s", item->tensor.type, codes ? " " : "", codes ? fc_side_text(item->side) : "");
    app_text(table, "%s", form_text(c, item));
    app_text(table, "%s", shape);
    app_text(table, "%s", scales);
    if (item->scale >= 0)
        app_text(table, "%s", c->item[item->scale].result.name);
    else
        app_missing(table);
    app_integer(table, t->elements);
    app_integer(table, t->over_240);
    app_integer(table, t->to_inf);
    app_integer(table, t->to_nan);
    app_integer(table, t->was_not_finite);
    app_integer(table, t->not_finite);
    app_integer(table, t->inexact);
    app_integer(table, t->inexact_large);
    app_real(table, t->worst);
    app_real(table, t->worst_large);
    app_real(table, item->scale_error);
    app_real(table, fc_sqnr_db(t));
    if (item->old_scale >= 0)
        app_text(table, "%s", c->item[item->old_scale].tensor.name);
    else if (item->quant && item->quant->alone)
        app_text(table, "no scale, taken for 1");
    else
        app_missing(table);
}

void fc_report_schema(void)
{
    app_table table;
    app_table_start(&table, columns, COLUMNS);
    app_print_schema(stdout, "fp8conv", &table);
    app_table_free(&table);
}

/* ---- for people: tensors that differ by a number alone are one line ---- */

typedef struct kind {
    char *name; /* "model.layers.*.mlp.up_proj.weight" */
    int tensors;
    char what[48], scales[32];
    fc_tally tally;
} kind;

static char *kind_name(const char *name, bool each)
{
    char *text = app_memory(strlen(name) + 1, 1);
    size_t n = 0;
    for (const char *at = name; *at; at++) {
        const bool starts = at == name || at[-1] == '.', digit = isdigit((unsigned char)*at) != 0;
        size_t digits = strspn(at, "0123456789");
        const bool number = !each && starts && digit && (at[digits] == '.' || !at[digits]);
        text[n++] = number ? '*' : *at;
        if (number) at += digits - 1;
    }
    text[n] = '\0';
    return text;
}

static void sqnr_text(const fc_tally *t, char *text, size_t size)
{
    if (t->not_finite)
        snprintf(text, size, "none");
    else if (t->noise == 0)
        snprintf(text, size, "exact");
    else
        snprintf(text, size, "%.1f dB", fc_sqnr_db(t));
}

static void worst_text(const fc_tally *t, double worst, char *text, size_t size)
{
    if (t->not_finite)
        snprintf(text, size, "infinite");
    else if (worst == 0)
        snprintf(text, size, "0");
    else if (worst < 1e-4)
        snprintf(text, size, "%.0e", worst);
    else
        snprintf(text, size, "%.1f %%", 100 * worst);
}

static const app_column short_columns[] = {
    { "tensor", APP_TEXT, "", "" },     { "from", APP_TEXT, "", "" },     { "scales", APP_TEXT, "", "" },
    { "codes", APP_INTEGER, "", "" },   { "> 240", APP_INTEGER, "", "" }, { "inf/NaN", APP_INTEGER, "", "" },
    { "inexact", APP_INTEGER, "", "" }, { "worst", APP_TEXT, "", "" },    { "from 2^-5", APP_TEXT, "", "" },
    { "SQNR", APP_TEXT, "", "" },
};

static void short_row(app_table *table, const kind *k)
{
    char text[32];
    app_row(table);
    if (k->tensors > 1)
        app_text(table, "%s  (%d)", k->name, k->tensors);
    else
        app_text(table, "%s", k->name);
    app_text(table, "%s", k->what);
    app_text(table, "%s", k->scales);
    app_integer(table, k->tally.elements);
    app_integer(table, k->tally.over_240);
    app_integer(table, k->tally.not_finite);
    app_integer(table, k->tally.inexact);
    worst_text(&k->tally, k->tally.worst, text, sizeof text);
    app_text(table, "%s", text);
    worst_text(&k->tally, k->tally.worst_large, text, sizeof text);
    app_text(table, "%s", text);
    sqnr_text(&k->tally, text, sizeof text);
    app_text(table, "%s", text);
}

static kind *find_kind(kind *list, int kinds, const kind *like)
{
    for (int i = kinds - 1; i >= 0; i--)
        if (strcmp(list[i].name, like->name) == 0 && strcmp(list[i].what, like->what) == 0 &&
            strcmp(list[i].scales, like->scales) == 0)
            return &list[i];
    return NULL;
}

static int gather(const fc_catalogue *c, kind *list)
{
    int kinds = 0;
    for (int i = 0; i < c->items; i++) {
        const fc_item *item = &c->item[i];
        if (!fc_is_weight(item)) continue;
        kind one = { .name = kind_name(item->tensor.name, c->options->each) };
        const char *what = item->kind == FC_IS_FP8       ? fc_side_text(item->side)
                           : item->kind == FC_IS_NUMBERS ? item->tensor.type
                                                         : fc_kind_text(item->kind);
        const bool other = item->form != FC_AS_FP8;
        snprintf(one.what, sizeof one.what, "%s%s%s", what, other ? " to " : "", other ? form_text(c, item) : "");
        scales_text(item, one.scales, sizeof one.scales);
        kind *same = c->options->each ? NULL : find_kind(list, kinds, &one);
        if (same)
            free(one.name);
        else
            *(same = &list[kinds++]) = one;
        same->tensors++;
        fc_tally_add(&same->tally, &item->tally);
    }
    return kinds;
}

static void print_totals(const fc_catalogue *c)
{
    const fc_tally t = fc_total(c);
    char a[32], b[32], d[32], e[32], g[32];
    const double exact = (double)(t.elements - t.inexact - t.not_finite);
    const double share = t.elements ? 100 * exact / (double)t.elements : 100;
    sqnr_text(&t, e, sizeof e);
    printf("\n%s codes, %s beyond 240 (relabelled: %s infinities, %s NaNs); %.*f %% exact, SQNR %s.\n",
           app_count(a, sizeof a, t.elements), app_count(b, sizeof b, t.over_240), app_count(d, sizeof d, t.to_inf),
           app_count(g, sizeof g, t.to_nan), share > 99 && share < 100 ? 4 : 1, share, e);
    if (t.was_not_finite)
        printf("%s infinities or NaNs of the input stay what they are.\n", app_count(a, sizeof a, t.was_not_finite));
}

static int count_role(const fc_catalogue *c, fc_role role)
{
    int n = 0;
    for (int i = 0; i < c->items; i++) n += c->item[i].role == role;
    return n;
}

/* Codes whose scale is nowhere. */
static void print_alone(const fc_catalogue *c)
{
    const fc_item *first = NULL;
    int n = 0;
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        if (!fc_is_weight(w) || !w->quant || !w->quant->alone) continue;
        if (n++ == 0) first = w;
    }
    if (n)
        app_say(stdout, "Codes that have no scale, taken for 1: %d (%s%s).\n", n, first->tensor.name,
                n > 1 ? ", ..." : "");
}

static void print_scales(const fc_catalogue *c)
{
    const fc_options *o = c->options;
    const fc_factor f = fc_factor_of(o->mode, o->to);
    const int old = count_role(c, FC_WEIGHT_SCALE), new_ones = count_role(c, FC_NEW_SCALE);
    const int run = count_role(c, FC_RUN_SCALE);
    char factor[32];
    snprintf(factor, sizeof factor, f.down == 1 ? "x %d" : "x %d/%d", f.up, f.down);
    if (old) printf("Scales of weights: %d %s.\n", old, o->mode == FC_REQUANT ? "fresh" : factor);
    if (new_ones) printf("New scales: %d.\n", new_ones);
    if (run) printf("Scales of activations and KV caches: %d %s.\n", run, factor);
    print_alone(c);
    if (c->left_alone)
        app_say(stdout, "As %s says, %d %s as before.\n", c->rules.rules ? c->rules.file : "config.json", c->left_alone,
                c->left_alone == 1 ? "matrix is" : "matrices are");
}

/* ---- what lies beside the weights ---- */

static const char *const deeds[] = { "converted", "changed", "copied", NULL, NULL, "left" };

static int count_deed(const fc_catalogue *c, fc_deed deed)
{
    int n = 0;
    for (int i = 0; i < c->files; i++) n += c->file[i].deed == deed;
    return n;
}

static void print_files(const fc_catalogue *c)
{
    const int copied = count_deed(c, FC_COPIED_FILE), changed = count_deed(c, FC_CHANGED);
    char because[200];
    for (int i = 0; i < c->files; i++)
        if (c->file[i].deed == FC_CONVERTED)
            app_say(stdout, "%s, %s: converted, too.\n", c->file[i].name, c->file[i].because);
    if (changed) printf("Changed to what is true now:");
    for (int i = 0, n = 0; i < c->files; i++)
        if (c->file[i].deed == FC_CHANGED) app_say(stdout, "%s %s", n++ ? "," : "", c->file[i].name);
    if (changed) puts(".");
    if (copied) printf("Copied as they are: %d %s.\n", copied, copied == 1 ? "file" : "files");
    if (fc_no_loader(c, because, sizeof because))
        app_say(stdout, "No loader that is known reads the result: %s.\n", because);
}

/* Also where the report goes into a file. */
static void tell_left(const fc_catalogue *c)
{
    for (int i = 0; i < c->files; i++)
        if (c->file[i].deed == FC_LEFT) app_complain(0, "%s: not copied: %s", c->file[i].name, c->file[i].because);
}

static void print_json_files(FILE *out, const fc_catalogue *c)
{
    int n = 0;
    fputs("  \"files\": [", out);
    for (int i = 0; i < c->files; i++) {
        const fc_file *f = &c->file[i];
        if (!deeds[f->deed]) continue;
        fprintf(out, "%s\n    {\"what\": \"%s\", \"name\": ", n++ ? "," : "", deeds[f->deed]);
        app_print_json_string(out, f->name);
        fputs(", \"because\": ", out);
        if (f->because)
            app_print_json_string(out, f->because);
        else
            fputs("null", out);
        fputc('}', out);
    }
    fputs(n ? "\n  ],\n" : "],\n", out);
}

/* "halve to neuron", "quantised to ocp", "converted to BF16": by what is done to the first weight of the most telling
 * kind. */
static void print_deed(const fc_catalogue *c)
{
    const fc_options *o = c->options;
    const fc_item *telling = NULL;
    bool fresh = false;
    for (int i = 0; i < c->items; i++) {
        const fc_item *w = &c->item[i];
        if (!fc_is_weight(w)) continue;
        fresh = fresh || (w->kind == FC_IS_NUMBERS || (w->form == FC_AS_FP8 && o->grain != FC_GRAIN_KEPT));
        if (!telling || (telling->form != FC_AS_FP8 && w->form == FC_AS_FP8)) telling = w;
    }
    const char *deed = count_role(c, FC_CODES) ? fc_mode_text(o->mode)
                       : fresh                 ? "quantised"
                       : telling               ? "converted"
                                               : "scales alone";
    app_say(stdout, "%s: %s to %s%s\n\n", o->in, deed, telling ? form_text(c, telling) : fc_side_text(o->to),
            o->check ? ", nothing written" : "");
}

static void print_text(const fc_catalogue *c)
{
    app_table table;
    kind *list = app_memory((size_t)c->items + 1, sizeof *list);
    const int kinds = gather(c, list);
    print_deed(c);
    app_table_start(&table, short_columns, sizeof short_columns / sizeof short_columns[0]);
    for (int i = 0; i < kinds; i++) short_row(&table, &list[i]);
    if (kinds) app_print_table(stdout, &table);
    app_table_free(&table);
    for (int i = 0; i < kinds; i++) free(list[i].name);
    free(list);
    if (kinds) print_totals(c);
    print_scales(c);
    print_files(c);
}

/* ---- files ---- */

static void write_csv(FILE *out, const void *report) { app_print_csv(out, &((const fc_report *)report)->table); }

static void print_integer(FILE *out, const char *key, int64_t value)
{
    fprintf(out, "    \"%s\": %lld,\n", key, (long long)value);
}

static void write_json(FILE *out, const void *context)
{
    const fc_report *r = context;
    const fc_catalogue *c = r->catalogue;
    const fc_tally t = fc_total(c);
    char because[200];
    fputs("{\n  \"total\": {\n", out);
    app_print_json_pair(out, "input", c->options->in);
    app_print_json_pair(out, "output", c->options->out);
    app_print_json_pair(out, "mode", fc_mode_text(c->options->mode));
    app_print_json_pair(out, "to", fc_side_text(c->options->to));
    app_print_json_pair(out, "no_loader_because", fc_no_loader(c, because, sizeof because) ? because : NULL);
    print_integer(out, "elements", t.elements);
    print_integer(out, "over_240", t.over_240);
    print_integer(out, "relabelled_inf", t.to_inf);
    print_integer(out, "relabelled_nan", t.to_nan);
    print_integer(out, "was_not_finite", t.was_not_finite);
    print_integer(out, "not_finite", t.not_finite);
    print_integer(out, "inexact", t.inexact);
    print_integer(out, "inexact_large", t.inexact_large);
    fputs("    \"worst\": ", out);
    app_print_json_number(out, t.worst);
    fputs(",\n    \"worst_large\": ", out);
    app_print_json_number(out, t.worst_large);
    fputs(",\n    \"sqnr_db\": ", out);
    app_print_json_number(out, fc_sqnr_db(&t));
    fputs("\n  },\n", out);
    print_json_files(out, c);
    fputs("  \"tensors\": ", out);
    app_print_json_rows(out, &r->table, 2);
    fputs("\n}\n", out);
}

void fc_report_files(const fc_options *o, app_output output[FC_REPORTS])
{
    output[0] = (app_output){ .flag = "--csv", .path = o->csv, .write = write_csv };
    output[1] = (app_output){ .flag = "--json", .path = o->json, .write = write_json };
}

int fc_report_write(fc_report *r)
{
    const fc_catalogue *c = r->catalogue;
    const bool taken = app_output_taken(r->output, FC_REPORTS);
    app_table_start(&r->table, columns, COLUMNS);
    for (int i = 0; i < c->items; i++)
        if (fc_is_weight(&c->item[i])) fill_row(c, &c->item[i], &r->table);
    const int status = app_finish_outputs(r->output, FC_REPORTS, r);
    if (status == APP_OK && !taken) print_text(c);
    if (status == APP_OK) tell_left(c);
    app_table_free(&r->table);
    return app_flush(status);
}
