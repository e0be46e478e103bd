/* say.h - printf for what people read: every text in it is one that shown.h would show.
 * SPDX-License-Identifier: MIT
 *
 *     char said[200];
 *     io_say_in(said, sizeof said, 60, "tensor '%s' has %d axes\n", name, rank);
 *
 * DOES: what printf does; texts (%s) lose what would move a cursor, turn writing round or hide, and the rest of the
 *     format stays as it is written here. "%.128s": at most 128 bytes, cut between characters, the mark among them;
 *     "%.*s": so many bytes, whether a NUL follows or not. A width counts characters. What does not fit into the room
 *     ends in a mark, too.
 * DOES NOT: %n, %lc, %ls; allocate.
 *
 * CONTENTS
 *     io_say_list      as vsnprintf
 *     io_say_in        as snprintf
 */
#ifndef IO_SAY_H
#define IO_SAY_H

#include <stdarg.h>

#include "shown.h"

enum { IO_SAID = 512, IO_SAID_MOST = 8192 }; /* bytes of a text in a sentence that gives no number, and of any text */

/* ---- what was said so far ---- */

typedef struct io_said {
    char *text;
    size_t room, used, safe; /* safe: so far the mark still fits */
    bool full;
} io_said;

/* All of it, or the mark. */
IO_FN void io_said_add(io_said *s, const char *piece, size_t size)
{
    if (s->full) return;
    s->full = s->used + size >= s->room;
    if (s->full) {
        memcpy(s->text + s->safe, IO_MARK, sizeof IO_MARK);
        return;
    }
    memcpy(s->text + s->used, piece, size);
    s->used += size;
    s->text[s->used] = '\0';
    if (s->used + sizeof IO_MARK <= s->room) s->safe = s->used;
}

IO_FN void io_said_characters(io_said *s, const char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n) {
        n = io_utf8_length((const unsigned char *)text + i, size - i);
        io_said_add(s, text + i, n ? n : (n = 1));
    }
}

/* ---- one directive ---- */

typedef struct io_arguments {
    va_list list;
} io_arguments;

typedef struct io_directive {
    char text[48]; /* with numbers for its stars */
    int width, most;
    bool left, limited, span; /* limited: most was said; span: by a star */
    bool wide, longer;        /* size_t and the like; long */
    char kind;
} io_directive;

/* Digits or a star. */
IO_FN const char *io_directive_number(const char *at, io_arguments *a, int *number)
{
    if (*at == '*') return *number = va_arg(a->list, int), at + 1;
    for (*number = 0; *at >= '0' && *at <= '9'; at++) *number = 10 * *number + (*at - '0');
    return at;
}

/* at: behind the '%'; returns what is behind the directive. */
IO_FN const char *io_directive_read(const char *at, io_arguments *a, io_directive *d)
{
    size_t flags = strspn(at, "-+ #0");
    char length[4] = "";
    memset(d, 0, sizeof *d);
    memcpy(d->text, "%", 2);
    if (flags > 5) flags = 5;
    strncat(d->text, at, flags);
    d->left = memchr(at, '-', flags) != NULL;
    at = io_directive_number(at + flags, a, &d->width);
    if (d->width) snprintf(d->text + strlen(d->text), 12, "%d", d->width);
    if (*at == '.') {
        d->span = at[1] == '*';
        at = io_directive_number(at + 1, a, &d->most);
        d->limited = d->most >= 0;
        if (d->limited) snprintf(d->text + strlen(d->text), 13, ".%d", d->most);
    }
    for (size_t n = 0; n < 2 && *at && strchr("hlzjt", *at); n++) length[n] = *at++;
    d->wide = strcmp(length, "ll") == 0 || (length[0] && strchr("zjt", length[0]));
    d->longer = strcmp(length, "l") == 0;
    d->kind = *at;
    snprintf(d->text + strlen(d->text), 6, "%s%c", length, d->kind);
    return *at ? at + 1 : at;
}

/* A number, and whatever else is no text; "" for what is no directive. */
IO_FN void io_say_value(const io_directive *d, io_arguments *a, char *one, size_t size)
{
    one[0] = '\0';
    if (!d->kind || !strchr("diouxXcpaAeEfFgG", d->kind)) return;
    if (d->kind == 'c') {
        const char letter = (char)va_arg(a->list, int);
        io_show_in(&letter, 1, one, size);
    } else if (strchr("aAeEfFgG", d->kind))
        snprintf(one, size, d->text, va_arg(a->list, double));
    else if (d->kind == 'p')
        snprintf(one, size, d->text, va_arg(a->list, void *));
    else if (d->wide)
        snprintf(one, size, d->text, va_arg(a->list, long long)); /* as long as size_t and intmax_t */
    else if (d->longer)
        snprintf(one, size, d->text, va_arg(a->list, long));
    else
        snprintf(one, size, d->text, va_arg(a->list, int));
}

IO_FN int io_characters(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

IO_FN void io_say_text(io_said *s, const io_directive *d, const char *text, size_t most)
{
    char shown[IO_SAID_MOST];
    const char *what = text ? text : "(null)";
    const size_t said = d->limited ? (size_t)d->most : 0, limit = d->limited && !d->span ? said : most;
    const bool endless = d->limited && d->span && !memchr(what, '\0', said);
    const size_t room = limit + 1 > sizeof IO_MARK ? limit + 1 : sizeof IO_MARK;
    io_show_in(what, endless ? said : strlen(what), shown, room < sizeof shown ? room : sizeof shown);
    const int blanks = (d->width < 0 ? -d->width : d->width) - io_characters(shown);
    const bool left = d->left || d->width < 0;
    for (int i = 0; !left && i < blanks; i++) io_said_add(s, " ", 1);
    io_said_characters(s, shown, strlen(shown));
    for (int i = 0; left && i < blanks; i++) io_said_add(s, " ", 1);
}

/* ---- all of it ---- */

/* to: room bytes, at least 4; most: bytes of a text that gives no other number. Returns `to`. */
IO_FN const char *io_say_list(char *to, size_t room, size_t most, const char *format, va_list list)
{
    io_said s = { to, room, 0, 0, false };
    io_arguments a;
    char one[400];
    to[0] = '\0';
    va_copy(a.list, list);
    for (const char *at = format; *at && !s.full;) {
        const size_t plain = strcspn(at, "%");
        io_directive d;
        io_said_characters(&s, at, plain);
        at += plain;
        if (!*at) break;
        at = io_directive_read(at + 1, &a, &d);
        if (d.kind == 's')
            io_say_text(&s, &d, va_arg(a.list, const char *), most);
        else if (d.kind == '%')
            io_said_add(&s, "%", 1);
        else
            io_say_value(&d, &a, one, sizeof one);
        if (d.kind != 's' && d.kind != '%') io_said_characters(&s, one, strlen(one));
    }
    va_end(a.list);
    return to;
}

__attribute__((unused, format(printf, 4, 5))) static const char *io_say_in(char *to, size_t room, size_t most,
                                                                           const char *format, ...)
{
    va_list list;
    va_start(list, format);
    io_say_list(to, room, most, format, list);
    va_end(list);
    return to;
}

#endif /* IO_SAY_H */
