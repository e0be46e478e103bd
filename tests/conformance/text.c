/* text.c - what people read of the results: numbers, the table of all columns, the summary.
 * SPDX-License-Identifier: MIT
 */
#include "conformance.h"

/* ---- numbers ---- */

/* Whole numbers in full, others with up to seven digits. */
const char *cf_number(char *text, size_t size, double value)
{
    if (isnan(value))
        snprintf(text, size, "nothing");
    else if (value == floor(value) && fabs(value) < 1e15)
        app_count(text, size, (int64_t)value);
    else
        snprintf(text, size, "%.7g", value);
    return text;
}

static bool counts_wrong(const cf_vector *v) { return strcmp(v->unit, "wrong") == 0; }

void cf_expected(char *text, size_t size, const cf_vector *v)
{
    char middle[40], low[40], high[40];
    const double above = v->high - v->expected, below = v->expected - v->low;
    const char *space = *v->unit ? " " : "";
    cf_number(middle, sizeof middle, v->expected);
    if (above <= 1e-6 * fabs(v->expected) && below <= 1e-6 * fabs(v->expected)) { /* but for the last bits */
        snprintf(text, size, "%s%s%s", middle, space, v->unit);
    } else if (fabs(above - below) <= 1e-6 * above) {
        snprintf(high, sizeof high, "%.2g", above);
        snprintf(text, size, "%s ± %s%s%s", middle, high, space, v->unit);
    } else {
        cf_number(low, sizeof low, v->low);
        cf_number(high, sizeof high, v->high);
        snprintf(text, size, "%s (%s to %s)%s%s", middle, low, high, space, v->unit);
    }
}

void cf_got(char *text, size_t size, const cf_result *r)
{
    char number[40], cases[40];
    const char *unit = r->vector->unit;
    cf_number(number, sizeof number, r->answer.got);
    if (isnan(r->answer.got))
        snprintf(text, size, "%s", r->answer.skipped ? "-" : number);
    else if (counts_wrong(r->vector))
        snprintf(text, size, "%s of %s wrong", number, app_count(cases, sizeof cases, r->answer.cases));
    else
        snprintf(text, size, "%s%s%s", number, *unit ? " " : "", unit);
}

/* ---- every column, for CSV and JSON ---- */

static const app_column columns[] = {
    { "id", APP_TEXT, "", "stable name of the vector" },
    { "chapter", APP_TEXT, "", "what it is about" },
    { "what", APP_TEXT, "", "what the figure is of" },
    { "status", APP_TEXT, "", "pass, fail, known difference or skipped" },
    { "expected", APP_REAL, "", "the published figure" },
    { "low", APP_REAL, "", "the least of ours that passes" },
    { "high", APP_REAL, "", "the largest of ours that passes" },
    { "got", APP_REAL, "", "ours" },
    { "unit", APP_TEXT, "", "of these four; wrong: so many of the cases differ" },
    { "cases", APP_INTEGER, "", "compared bit for bit, or drawn; empty where the figure is the only one" },
    { "kind", APP_TEXT, "", "documented, measured, paper or calculated" },
    { "source", APP_TEXT, "", "page, paper, thread or file" },
    { "reason", APP_TEXT, "", "of a known difference, a failure or a vector that was skipped" },
    { "seconds", APP_REAL, "s", "it took" },
};

static const char *status_word(cf_status s) { return s == CF_FAIL ? "fail" : cf_status_names[s]; }
static const char *reason(const cf_result *r)
{
    return r->status == CF_KNOWN ? r->vector->known : r->status == CF_PASS ? "" : r->answer.note;
}

void cf_table(app_table *table, const cf_report *report)
{
    app_table_start(table, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < report->count; i++) {
        const cf_result *r = &report->result[i];
        const cf_vector *v = r->vector;
        const char *const first[] = { v->id, cf_chapters[v->chapter].title, v->what, status_word(r->status) };
        const double number[] = { v->expected, v->low, v->high, r->answer.got };
        const char *const last[] = { cf_kind_names[v->kind], v->source, reason(r) };
        app_row(table);
        for (int c = 0; c < 4; c++) app_text(table, "%s", first[c]);
        for (int c = 0; c < 4; c++) app_real(table, number[c]);
        app_text(table, "%s", v->unit);
        if (r->answer.cases)
            app_integer(table, r->answer.cases);
        else
            app_missing(table);
        for (int c = 0; c < 3; c++) app_text(table, "%s", last[c]);
        app_real(table, r->seconds);
    }
}

/* ---- the summary ---- */

static void add_row(app_table *table, const char *title, const cf_tally *t)
{
    if (!t->vectors) return;
    app_row(table);
    app_text(table, "%s", title);
    app_integer(table, t->vectors);
    app_integer(table, t->cases);
    for (int s = 0; s < CF_STATUSES; s++) {
        if (t->status[s])
            app_integer(table, t->status[s]);
        else
            app_missing(table);
    }
    app_text(table, "%.1f s", t->seconds);
}

static void print_summary(FILE *out, const cf_report *report)
{
    static const app_column column[] = {
        { "chapter", APP_TEXT, "", "" },    { "vectors", APP_INTEGER, "", "" },
        { "cases", APP_INTEGER, "", "" },   { "pass", APP_INTEGER, "", "" },
        { "fail", APP_INTEGER, "", "" },    { "known difference", APP_INTEGER, "", "" },
        { "skipped", APP_INTEGER, "", "" }, { "time", APP_TEXT, "", "" },
    };
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    for (int c = 0; c < CF_COUNT_OF_CHAPTERS; c++) {
        const cf_tally t = cf_tally_of(report, c);
        add_row(&table, cf_chapters[c].title, &t);
    }
    const cf_tally all = cf_tally_of(report, -1);
    add_row(&table, "all", &all);
    app_print_table(out, &table);
    app_table_free(&table);
}

/* ---- vectors ---- */

static const char *colour(FILE *out, cf_status s)
{
    static const char *const of[CF_STATUSES] = { "\033[32m", "\033[1;31m", "\033[33m", "\033[2m" };
    return app_colour(out) ? of[s] : "";
}

static const char *plain(FILE *out) { return app_colour(out) ? "\033[0m" : ""; }

static void print_chapter(FILE *out, const cf_report *report, int chapter)
{
    static const app_column column[] = {
        { "vector", APP_TEXT, "", "" }, { "what", APP_TEXT, "", "" },   { "published", APP_TEXT, "", "" },
        { "ours", APP_TEXT, "", "" },   { "status", APP_TEXT, "", "" }, { "kind", APP_TEXT, "", "" },
        { "source", APP_TEXT, "", "" },
    };
    app_table table;
    app_table_start(&table, column, sizeof column / sizeof column[0]);
    for (int i = 0; i < report->count; i++) {
        const cf_result *r = &report->result[i];
        char expected[120], got[120];
        if (r->vector->chapter != chapter) continue;
        cf_expected(expected, sizeof expected, r->vector);
        cf_got(got, sizeof got, r);
        const char *const cell[] = { r->vector->id,
                                     r->vector->what,
                                     expected,
                                     got,
                                     cf_status_names[r->status],
                                     cf_kind_names[r->vector->kind],
                                     r->vector->source };
        app_row(&table);
        for (int c = 0; c < 7; c++) app_text(&table, "%s", cell[c]);
    }
    if (table.rows) {
        fprintf(out, "%s\n\n", cf_chapters[chapter].title);
        app_print_table(out, &table);
        fputc('\n', out);
    }
    app_table_free(&table);
}

/* The next known difference after i; -1 when there is none. */
static int next_known(const cf_report *report, int i)
{
    for (i++; i < report->count; i++)
        if (report->result[i].status == CF_KNOWN) return i;
    return -1;
}

/* A reason is printed once for all that share it. */
static void print_differences(FILE *out, const cf_report *report)
{
    int i = next_known(report, -1);
    if (i >= 0) fprintf(out, "\nKnown differences\n");
    for (int next; i >= 0; i = next) {
        const cf_result *r = &report->result[i];
        char expected[120], got[120];
        cf_expected(expected, sizeof expected, r->vector);
        cf_got(got, sizeof got, r);
        fprintf(out, "  %s%s%s: published %s, ours %s\n", colour(out, CF_KNOWN), r->vector->id, plain(out), expected,
                got);
        next = next_known(report, i);
        if (next < 0 || strcmp(report->result[next].vector->known, r->vector->known) != 0)
            fprintf(out, "      %s\n", r->vector->known);
    }
}

static void print_failures(FILE *out, const cf_report *report)
{
    for (int i = 0; i < report->count; i++) {
        const cf_result *r = &report->result[i];
        char expected[120], got[120];
        if (r->status != CF_FAIL) continue;
        cf_expected(expected, sizeof expected, r->vector);
        cf_got(got, sizeof got, r);
        fprintf(out, "\n%sFAIL%s  %s: %s\n      published %s, ours %s\n      %s, %s\n", colour(out, CF_FAIL),
                plain(out), r->vector->id, r->vector->what, expected, got, cf_kind_names[r->vector->kind],
                r->vector->source);
        if (r->answer.note[0]) fprintf(out, "      %s\n", r->answer.note);
    }
}

void cf_print(FILE *out, const cf_report *report)
{
    const cf_tally all = cf_tally_of(report, -1);
    for (int c = 0; c < CF_COUNT_OF_CHAPTERS && report->options->all; c++) print_chapter(out, report, c);
    print_summary(out, report);
    print_differences(out, report);
    print_failures(out, report);
    fprintf(out, "\n%strnmath %s, %s: %lld pass, %lld fail, %lld known differences, %lld skipped; %.1f s%s\n",
            colour(out, all.status[CF_FAIL] ? CF_FAIL : CF_PASS), TRN_VERSION, trn_isa_name(),
            (long long)all.status[CF_PASS], (long long)all.status[CF_FAIL], (long long)all.status[CF_KNOWN],
            (long long)all.status[CF_SKIPPED], report->seconds, plain(out));
}
