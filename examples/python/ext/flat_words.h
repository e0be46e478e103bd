/* flat_words.h - sentences for those who called, and tables as lines of text.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * DOES: a status with one sentence; a sheet of cells that grows, and is given out as a whole or not at all.
 * DOES NOT: know what stands in it.
 */
#ifndef TRNMATH_FLAT_WORDS_H
#define TRNMATH_FLAT_WORDS_H

#include <limits.h>
#include <math.h>
#include <stdarg.h>

#include <trnmath/trnmath.h>

#include "trnmath_flat.h"

/* ---- sentences ---- */

/* As much of a text as there is room for. */
static void copy_text(char *to, size_t capacity, const char *from)
{
    const char *const end = (const char *)memchr(from, 0, capacity);
    const size_t length = end ? (size_t)(end - from) : capacity - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

__attribute__((format(printf, 3, 4))) static trn_status failed(trn_error *error, trn_status status, const char *format,
                                                               ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    error->status = status;
    return status;
}

/* One line, whatever names the sentence quotes. */
static int told(char *why, trn_status status, const char *text)
{
    if (!why) return (int)status;
    copy_text(why, TRNMATH_WHY, text);
    for (; *why; why++)
        if ((unsigned char)*why < ' ') *why = '?';
    return (int)status;
}

static int done(char *why, trn_status status, const trn_error *error)
{
    if (status == TRN_OK) return TRN_OK;
    return told(why, status, error->text[0] ? error->text : trn_status_text(status));
}

/* ---- sheets ---- */

typedef struct sheet {
    char *text;
    size_t room, used;
    bool lost;  /* memory ran out */
    bool begun; /* the row has a cell */
} sheet;

static void put(sheet *s, const char *text, size_t length)
{
    if (s->used + length > s->room) {
        const size_t room = 2 * (s->used + length) + 1024;
        char *more = s->lost ? NULL : (char *)realloc(s->text, room);
        if (!more) {
            s->lost = true;
            return;
        }
        s->text = more;
        s->room = room;
    }
    memcpy(s->text + s->used, text, length);
    s->used += length;
}

/* What would end a cell becomes a space. */
static void cell(sheet *s, const char *text)
{
    if (s->begun) put(s, "\t", 1);
    s->begun = true;
    for (; *text; text++) put(s, (unsigned char)*text < ' ' ? " " : text, 1);
}

static void end_row(sheet *s)
{
    put(s, "\n", 1);
    s->begun = false;
}

static void add_line(void *user, const char *line)
{
    sheet *s = (sheet *)user;
    cell(s, line);
    end_row(s);
}

/* Every digit of it; nothing for what is no number. */
static void cell_number(sheet *s, double value)
{
    char text[40] = "";
    if (!isnan(value)) snprintf(text, sizeof text, "%.17g", value);
    cell(s, text);
}

static void cell_integer(sheet *s, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    cell(s, text);
}

static void cell_flag(sheet *s, bool value) { cell(s, value ? "1" : "0"); }

static void cell_numbers(sheet *s, size_t count, const double *value)
{
    for (size_t i = 0; i < count; i++) cell_number(s, value[i]);
}

/* The first row: "name:text", "bits:integer", ..., up to a null pointer. */
static void head(sheet *s, const char *const *column)
{
    for (; *column; column++) cell(s, *column);
    end_row(s);
}
#define COLUMNS(...) head(s, (const char *const[]){ __VA_ARGS__, NULL })
#define COUNT(list) (sizeof list / sizeof list[0])

/* To the caller, or nothing; the sheet is gone. */
static int give(sheet *s, trn_status status, const trn_error *error, char *lines, size_t room, char *why)
{
    const bool fits = s->used < room;
    if (status == TRN_OK && !s->lost && fits) {
        if (s->used) memcpy(lines, s->text, s->used);
        lines[s->used] = 0;
    }
    free(s->text);
    if (status != TRN_OK) return done(why, status, error);
    if (s->lost) return told(why, TRN_ENOSPC, "no memory for the lines");
    return fits ? TRN_OK : told(why, TRN_ENOSPC, "the lines do not fit");
}

#endif /* TRNMATH_FLAT_WORDS_H */
