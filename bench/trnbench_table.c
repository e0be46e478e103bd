/* trnbench_table.c - one kind of table, printed as text, CSV or JSON.
 * SPDX-License-Identifier: MIT
 */
#include "trnbench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory)
{
    if (memory) return memory;
    fprintf(stderr, "trnbench: out of memory\n");
    exit(TB_FAILED);
}

void tb_table_start(tb_table *table, const tb_column *column, int columns)
{
    memset(table, 0, sizeof *table);
    table->column = column;
    table->columns = columns;
}

void tb_table_free(tb_table *table)
{
    for (int i = 0; i < table->rows * table->columns; i++) free((void *)(uintptr_t)table->cell[i].text);
    free(table->cell);
    memset(table, 0, sizeof *table);
}

void tb_row(tb_table *table)
{
    if (table->rows == table->room) {
        table->room = table->room ? 2 * table->room : 64;
        table->cell = need(realloc(table->cell, sizeof(tb_value) * (size_t)table->room * (size_t)table->columns));
    }
    memset(table->cell + table->rows++ * table->columns, 0, sizeof(tb_value) * (size_t)table->columns);
    table->filled = 0;
}

static tb_value *next_cell(tb_table *table)
{
    if (table->filled < table->columns) return &table->cell[(table->rows - 1) * table->columns + table->filled++];
    fprintf(stderr, "trnbench: a row of a table has more than %d values\n", table->columns);
    abort();
}

void tb_text(tb_table *table, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    char *copy = need(malloc(strlen(text) + 1));
    next_cell(table)->text = strcpy(copy, text);
}

void tb_integer(tb_table *table, int64_t value) { next_cell(table)->integer = value; }
void tb_missing(tb_table *table) { next_cell(table)->missing = true; }

void tb_real(tb_table *table, double value)
{
    tb_value *cell = next_cell(table);
    cell->real = value;
    cell->missing = !isfinite(value);
}

const tb_value *tb_at(const tb_table *table, int row, const char *column)
{
    for (int i = 0; i < table->columns; i++)
        if (strcmp(table->column[i].name, column) == 0) return &table->cell[row * table->columns + i];
    fprintf(stderr, "trnbench: no column is called %s\n", column);
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

const char *tb_human(char *text, size_t size, double value)
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

const char *tb_count(char *text, size_t size, int64_t value)
{
    snprintf(text, size, "%lld", (long long)value);
    add_commas(text, size);
    return text;
}

static const char *cell_text(const tb_column *column, const tb_value *value, char *text, size_t size)
{
    if (value->missing) return "-";
    if (column->kind == TB_TEXT) return value->text ? value->text : "";
    if (column->kind == TB_REAL) return tb_human(text, size, value->real);
    return tb_count(text, size, value->integer);
}

const char *tb_cell_text(const tb_table *table, int row, int column, char *text, size_t size)
{
    return cell_text(&table->column[column], &table->cell[row * table->columns + column], text, size);
}

/* Characters a terminal shows: UTF-8 continuation bytes take no room. */
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

void tb_print_table(FILE *out, const tb_table *table)
{
    const bool colour = tb_colour(out);
    char text[64];
    int *width = need(calloc((size_t)table->columns, sizeof *width));
    for (int c = 0; c < table->columns; c++) {
        width[c] = shown_width(table->column[c].name);
        for (int r = 0; r < table->rows; r++) {
            const tb_value *v = &table->cell[r * table->columns + c];
            const int w = shown_width(cell_text(&table->column[c], v, text, sizeof text));
            if (w > width[c]) width[c] = w;
        }
    }
    for (int r = -1; r < table->rows; r++) {
        fputs(r < 0 && colour ? "  \033[1m" : "  ", out);
        for (int c = 0; c < table->columns; c++) {
            const tb_column *column = &table->column[c];
            const tb_value *v = &table->cell[r * table->columns + c];
            const char *shown = r < 0 ? column->name : cell_text(column, v, text, sizeof text);
            print_padded(out, shown, width[c], column->kind == TB_TEXT, c + 1 == table->columns);
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

void tb_print_csv(FILE *out, const tb_table *table)
{
    for (int c = 0; c < table->columns; c++) fprintf(out, "%s%s", c ? "," : "", table->column[c].name);
    fputc('\n', out);
    for (int r = 0; r < table->rows; r++) {
        for (int c = 0; c < table->columns; c++) {
            const tb_value *v = &table->cell[r * table->columns + c];
            if (c) fputc(',', out);
            if (v->missing) continue;
            if (table->column[c].kind == TB_TEXT)
                print_csv_text(out, v->text ? v->text : "");
            else if (table->column[c].kind == TB_REAL)
                tb_print_json_number(out, v->real);
            else
                fprintf(out, "%lld", (long long)v->integer);
        }
        fputc('\n', out);
    }
}

/* ---- JSON ---- */

void tb_print_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

void tb_print_json_pair(FILE *out, const char *key, const char *text)
{
    fprintf(out, "    \"%s\": ", key);
    if (text) tb_print_json_string(out, text);
    else fputs("null", out);
    fputs(",\n", out);
}

/* The shortest decimal that reads back as the same double. */
void tb_print_json_number(FILE *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fputs("null", out);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

void tb_print_json_rows(FILE *out, const tb_table *table, int indent)
{
    fputs("[", out);
    for (int r = 0; r < table->rows; r++) {
        fprintf(out, "%s\n%*s{", r ? "," : "", indent + 2, "");
        for (int c = 0; c < table->columns; c++) {
            const tb_value *v = &table->cell[r * table->columns + c];
            if (c) fputs(", ", out);
            tb_print_json_string(out, table->column[c].name);
            fputs(": ", out);
            if (v->missing)
                fputs("null", out);
            else if (table->column[c].kind == TB_TEXT)
                tb_print_json_string(out, v->text ? v->text : "");
            else if (table->column[c].kind == TB_REAL)
                tb_print_json_number(out, v->real);
            else
                fprintf(out, "%lld", (long long)v->integer);
        }
        fputs("}", out);
    }
    fprintf(out, "\n%*s]", indent, "");
}

void tb_print_schema(FILE *out, const char *name, const tb_table *table)
{
    static const char *const kind[] = { "text", "integer", "number" };
    static const tb_column column[] = { { "column", TB_TEXT, "", "" },
                                        { "type", TB_TEXT, "", "" },
                                        { "unit", TB_TEXT, "", "" },
                                        { "meaning", TB_TEXT, "", "" } };
    tb_table schema;
    tb_table_start(&schema, column, 4);
    for (int c = 0; c < table->columns; c++) {
        tb_row(&schema);
        tb_text(&schema, "%s", table->column[c].name);
        tb_text(&schema, "%s", kind[table->column[c].kind]);
        tb_text(&schema, "%s", table->column[c].unit);
        tb_text(&schema, "%s", table->column[c].meaning);
    }
    fprintf(out, "%s, schema 1.0.0: one row per tuple\n", name);
    tb_print_table(out, &schema);
    tb_table_free(&schema);
}
