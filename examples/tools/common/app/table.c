/* table.c - one kind of table, printed as text, CSV or JSON.
 * SPDX-License-Identifier: MIT
 */
#include "app.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/say.h"

void app_table_start(app_table *table, const app_column *column, int columns)
{
    memset(table, 0, sizeof *table);
    table->column = column;
    table->columns = columns;
}

void app_table_free(app_table *table)
{
    for (int i = 0; i < table->rows * table->columns; i++) free((void *)(uintptr_t)table->cell[i].text);
    free(table->cell);
    memset(table, 0, sizeof *table);
}

void app_row(app_table *table)
{
    if (table->rows == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->cell = app_resize(table->cell, (size_t)table->capacity * (size_t)table->columns, sizeof *table->cell);
    }
    memset(table->cell + table->rows++ * table->columns, 0, sizeof(app_value) * (size_t)table->columns);
    table->filled = 0;
}

static app_value *next_cell(app_table *table)
{
    if (table->filled < table->columns) return &table->cell[(table->rows - 1) * table->columns + table->filled++];
    fprintf(stderr, "%s: a row of a table has more than %d values\n", app_name, table->columns);
    abort();
}

void app_text(app_table *table, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *copy = app_memory((size_t)(length > 0 ? length : 0) + 1, 1);
    vsnprintf(copy, (size_t)(length > 0 ? length : 0) + 1, format, again);
    va_end(again);
    va_end(list);
    next_cell(table)->text = copy;
}

void app_integer(app_table *table, int64_t value) { next_cell(table)->integer = value; }
void app_missing(app_table *table) { next_cell(table)->missing = true; }

void app_real(app_table *table, double value)
{
    app_value *cell = next_cell(table);
    cell->real = value;
    cell->missing = !isfinite(value);
}

const app_value *app_at(const app_table *table, int row, const char *column)
{
    for (int i = 0; i < table->columns; i++)
        if (strcmp(table->column[i].name, column) == 0) return &table->cell[row * table->columns + i];
    fprintf(stderr, "%s: no column is called %s\n", app_name, column);
    abort();
}

/* ---- text ---- */

enum { TERMINAL = 400 }; /* bytes that are shown of a text */

static void add_commas(char *digits, size_t size)
{
    char *point = strchr(digits, '.');
    int n = (int)(point ? point - digits : (long)strlen(digits)), first = digits[0] == '-';
    for (int at = n - 3; at > first && strlen(digits) + 2 < size; at -= 3) {
        memmove(digits + at + 1, digits + at, strlen(digits + at) + 1);
        digits[at] = ',';
    }
}

const char *app_human(char *text, size_t size, double value)
{
    const double magnitude = fabs(value);
    const int decimals = magnitude >= 100 || magnitude == 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
    if ((magnitude != 0 && magnitude < 0.001) || magnitude >= 1e15)
        snprintf(text, size, "%.1e", value);
    else
        snprintf(text, size, "%.*f", decimals, value);
    add_commas(text, size);
    return text;
}

const char *app_count(char *text, size_t size, int64_t value)
{
    snprintf(text, size, "%lld", (long long)value);
    add_commas(text, size);
    return text;
}

static const char *cell_text(const app_column *column, const app_value *value, char *text, size_t size)
{
    if (value->missing) return "-";
    if (column->kind == APP_TEXT) return value->text ? value->text : "";
    if (column->kind == APP_REAL) return app_human(text, size, value->real);
    return app_count(text, size, value->integer);
}

const char *app_cell_text(const app_table *table, int row, int column, char *text, size_t size)
{
    return cell_text(&table->column[column], &table->cell[row * table->columns + column], text, size);
}

static void print_padded(FILE *out, const char *text, int width, bool left, bool last)
{
    const int space = width - io_characters(text);
    if (!left) fprintf(out, "%*s", space, "");
    fputs(text, out);
    if (left && !last) fprintf(out, "%*s", space, "");
}

/* What a terminal gets of a heading, and of a text in a cell: names come from files, and are cut. */
static const char *show(const char *all, char text[TERMINAL]) { return io_show_in(all, strlen(all), text, TERMINAL); }

static const char *terminal_text(const app_column *column, const app_value *value, char text[TERMINAL])
{
    const bool foreign = column->kind == APP_TEXT && !value->missing && value->text;
    return foreign ? show(value->text, text) : cell_text(column, value, text, TERMINAL);
}

void app_print_table(FILE *out, const app_table *table)
{
    const bool colour = app_colour(out);
    char text[TERMINAL];
    int *width = app_memory((size_t)table->columns, sizeof *width);
    for (int c = 0; c < table->columns; c++) {
        width[c] = io_characters(show(table->column[c].name, text));
        for (int r = 0; r < table->rows; r++) {
            const app_value *v = &table->cell[r * table->columns + c];
            const int w = io_characters(terminal_text(&table->column[c], v, text));
            if (w > width[c]) width[c] = w;
        }
    }
    for (int r = -1; r < table->rows; r++) {
        fputs(r < 0 && colour ? "  \033[1m" : "  ", out);
        for (int c = 0; c < table->columns; c++) {
            const app_column *column = &table->column[c];
            const app_value *v = &table->cell[r * table->columns + c];
            const char *shown = r < 0 ? show(column->name, text) : terminal_text(column, v, text);
            print_padded(out, shown, width[c], column->kind == APP_TEXT, c + 1 == table->columns);
            if (c + 1 < table->columns) fputs("  ", out);
        }
        fputs(r < 0 && colour ? "\033[0m\n" : "\n", out);
    }
    free(width);
}

/* ---- CSV: one header row, one row per tuple (RFC 4180 quoting) ---- */

/* Would a spreadsheet take this text for a formula? A number is one, whatever its sign. */
static bool is_formula(const char *text)
{
    char *end;
    if (!*text || !strchr("=+-@\t\r", *text) || !text[1]) return false;
    strtod(text, &end);
    return *end || end == text;
}

/* As people read it, after an apostrophe where it could be taken for a formula. */
void app_print_csv_text(FILE *out, const char *text)
{
    const bool formula = is_formula(text), quoted = formula || strpbrk(text, ",\"") != NULL;
    size_t size = strlen(text);
    if (quoted) fputs(formula ? "\"'" : "\"", out);
    while (size) {
        char one[IO_SHOWN_ONE];
        const size_t bytes = io_shown_next(text, size, one);
        fputs(*one == '"' ? "\"\"" : one, out);
        text += bytes;
        size -= bytes;
    }
    if (quoted) fputc('"', out);
}

void app_print_csv(FILE *out, const app_table *table)
{
    for (int c = 0; c < table->columns; c++) {
        if (c) fputc(',', out);
        app_print_csv_text(out, table->column[c].name);
    }
    fputc('\n', out);
    for (int r = 0; r < table->rows; r++) {
        for (int c = 0; c < table->columns; c++) {
            const app_value *v = &table->cell[r * table->columns + c];
            if (c) fputc(',', out);
            if (v->missing) continue;
            if (table->column[c].kind == APP_TEXT)
                app_print_csv_text(out, v->text ? v->text : "");
            else if (table->column[c].kind == APP_REAL)
                app_print_json_number(out, v->real);
            else
                fprintf(out, "%lld", (long long)v->integer);
        }
        fputc('\n', out);
    }
}

/* ---- JSON ---- */

int app_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    const size_t n = io_utf8_length(s, 4); /* the NUL at the end continues no character: nothing behind it is read */
    const bool none = n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe; /* U+FFFE, U+FFFF */
    return none ? 0 : (int)n;
}

/* The same text when it is read again; what is no UTF-8, which no reader of JSON would take, is shown. Characters that
 * are not seen are escaped, since JSON is read by people, too. */
void app_print_json_string(FILE *out, const char *text)
{
    size_t size = strlen(text);
    fputc('"', out);
    while (size) {
        char one[IO_SHOWN_ONE];
        const size_t bytes = io_shown_next(text, size, one);
        const bool utf8 = app_utf8(text) > 0;
        const uint32_t c = utf8 ? io_code_point((const unsigned char *)text, bytes) : 0;
        if (utf8 && c > 0xffff && *one == '\\')
            fprintf(out, "\\u%04x\\u%04x", 0xd800u + ((c - 0x10000u) >> 10), 0xdc00u + (c & 0x3ffu));
        else if (utf8 && (c < ' ' || io_unseen(c)))
            fprintf(out, "\\u%04x", (unsigned)c);
        else
            fprintf(out, "%s%s", c == '"' || *one == '\\' ? "\\" : "", one);
        text += bytes;
        size -= bytes;
    }
    fputc('"', out);
}

void app_print_json_pair(FILE *out, const char *key, const char *text)
{
    fprintf(out, "    \"%s\": ", key);
    if (text)
        app_print_json_string(out, text);
    else
        fputs("null", out);
    fputs(",\n", out);
}

/* The shortest decimal that reads back as the same double. */
void app_print_json_number(FILE *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fputs("null", out);
        return;
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        fprintf(out, "%.0f", value);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

void app_print_json_rows(FILE *out, const app_table *table, int indent)
{
    fputs("[", out);
    for (int r = 0; r < table->rows; r++) {
        fprintf(out, "%s\n%*s{", r ? "," : "", indent + 2, "");
        for (int c = 0; c < table->columns; c++) {
            const app_value *v = &table->cell[r * table->columns + c];
            if (c) fputs(", ", out);
            app_print_json_string(out, table->column[c].name);
            fputs(": ", out);
            if (v->missing)
                fputs("null", out);
            else if (table->column[c].kind == APP_TEXT)
                app_print_json_string(out, v->text ? v->text : "");
            else if (table->column[c].kind == APP_REAL)
                app_print_json_number(out, v->real);
            else
                fprintf(out, "%lld", (long long)v->integer);
        }
        fputs("}", out);
    }
    fprintf(out, "\n%*s]", indent, "");
}

void app_print_schema(FILE *out, const char *name, const app_table *table)
{
    static const char *const kind[] = { "text", "integer", "number" };
    static const app_column column[] = { { "column", APP_TEXT, "", "" },
                                         { "type", APP_TEXT, "", "" },
                                         { "unit", APP_TEXT, "", "" },
                                         { "meaning", APP_TEXT, "", "" } };
    app_table schema;
    app_table_start(&schema, column, 4);
    for (int c = 0; c < table->columns; c++) {
        app_row(&schema);
        app_text(&schema, "%s", table->column[c].name);
        app_text(&schema, "%s", kind[table->column[c].kind]);
        app_text(&schema, "%s", table->column[c].unit);
        app_text(&schema, "%s", table->column[c].meaning);
    }
    fprintf(out, "%s, schema 1.0.0: one row per tuple\n", name);
    app_print_table(out, &schema);
    app_table_free(&schema);
}
