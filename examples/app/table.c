/* table.c - one kind of table, printed as text, CSV or JSON.
 * SPDX-License-Identifier: MIT
 */
#include "app.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/io.h"

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
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char *copy = app_memory(strlen(text) + 1, 1);
    next_cell(table)->text = strcpy(copy, text);
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

/* Characters a terminal shows: UTF-8 continuation bytes take no space. */
static int shown_width(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_padded(FILE *out, const char *text, int width, bool left, bool last)
{
    const int space = width - shown_width(text);
    if (!left) fprintf(out, "%*s", space, "");
    fputs(text, out);
    if (left && !last) fprintf(out, "%*s", space, "");
}

void app_print_table(FILE *out, const app_table *table)
{
    const bool colour = app_colour(out);
    char text[64];
    int *width = app_memory((size_t)table->columns, sizeof *width);
    for (int c = 0; c < table->columns; c++) {
        width[c] = shown_width(table->column[c].name);
        for (int r = 0; r < table->rows; r++) {
            const app_value *v = &table->cell[r * table->columns + c];
            const int w = shown_width(cell_text(&table->column[c], v, text, sizeof text));
            if (w > width[c]) width[c] = w;
        }
    }
    for (int r = -1; r < table->rows; r++) {
        fputs(r < 0 && colour ? "  \033[1m" : "  ", out);
        for (int c = 0; c < table->columns; c++) {
            const app_column *column = &table->column[c];
            const app_value *v = &table->cell[r * table->columns + c];
            const char *shown = r < 0 ? column->name : cell_text(column, v, text, sizeof text);
            print_padded(out, shown, width[c], column->kind == APP_TEXT, c + 1 == table->columns);
            if (c + 1 < table->columns) fputs("  ", out);
        }
        fputs(r < 0 && colour ? "\033[0m\n" : "\n", out);
    }
    free(width);
}

/* ---- CSV: one header row, one row per tuple (RFC 4180 quoting) ---- */

static void print_csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void app_print_csv(FILE *out, const app_table *table)
{
    for (int c = 0; c < table->columns; c++) fprintf(out, "%s%s", c ? "," : "", table->column[c].name);
    fputc('\n', out);
    for (int r = 0; r < table->rows; r++) {
        for (int c = 0; c < table->columns; c++) {
            const app_value *v = &table->cell[r * table->columns + c];
            if (c) fputc(',', out);
            if (v->missing) continue;
            if (table->column[c].kind == APP_TEXT)
                print_csv_text(out, v->text ? v->text : "");
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

/* What is no UTF-8 becomes '?': no reader of JSON would take it. */
void app_print_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (int n; *text; text += n ? n : 1) {
        n = app_utf8(text);
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (n == 1 && *text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fprintf(out, "%.*s", n ? n : 1, n ? text : "?");
    }
    fputc('"', out);
}

void app_print_json_pair(FILE *out, const char *key, const char *text)
{
    fprintf(out, "    \"%s\": ", key);
    if (text) app_print_json_string(out, text);
    else fputs("null", out);
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
