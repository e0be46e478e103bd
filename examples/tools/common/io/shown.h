/* shown.h - text from files as people may read it: nothing in it moves a cursor, turns writing round or hides.
 * SPDX-License-Identifier: MIT
 *
 *     char shown[IO_SHOWN];
 *     printf("tensor %s\n", io_show(name, strlen(name), shown));
 *
 * DOES: control characters and what is no UTF-8 as their escapes (\n, \x1b, \xff), characters that turn the direction
 *     of writing, separate lines or have no width as theirs (\u202e); cuts between characters, with a mark.
 * DOES NOT: quote for a format: CSV, JSON and HTML have their own rules on top (app/table.c, app/page.c).
 *
 * CONTENTS
 *     io_utf8          is this text what it says it is?
 *     io_shown_next    one character of text, as it is shown
 *     io_show_in       text as it is shown, cut to a buffer
 *     io_show          the same, as long as a sentence takes it
 *
 * KNOWN FROM: Unicode Standard Annex 9 (directional formatting); CVE-2021-42574, "Trojan Source".
 */
#ifndef IO_SHOWN_H
#define IO_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define IO_FN static inline __attribute__((unused))

#define IO_MARK "\xe2\x80\xa6"             /* what is cut ends in it: three dots in one character */
enum { IO_SHOWN = 72, IO_SHOWN_ONE = 12 }; /* bytes of a name in a sentence, and of one character */

/* Bytes of the character that begins at `at`; 0 when it is none (RFC 3629: no surrogates, no detours, no more than
 * 10ffff). */
IO_FN size_t io_utf8_length(const unsigned char *at, size_t size)
{
    static const unsigned char low[] = { 0x80, 0xa0, 0x80, 0x80, 0x90, 0x80 };
    static const unsigned char high[] = { 0xbf, 0xbf, 0x9f, 0xbf, 0xbf, 0x8f };
    const unsigned char c = at[0];
    if (c < 0x80) return 1;
    const size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    const int row = c == 0xe0 ? 1 : c == 0xed ? 2 : c == 0xf0 ? 4 : c == 0xf4 ? 5 : 0;
    if (n == 0 || n > size || at[1] < low[row] || at[1] > high[row]) return 0;
    for (size_t i = 2; i < n; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    return n;
}

IO_FN bool io_utf8(const void *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    for (size_t i = 0, n; i < size; i += n)
        if ((n = io_utf8_length(at + i, size - i)) == 0) return false;
    return true;
}

/* Characters that are not seen, but change what is. */
IO_FN bool io_unseen(uint32_t c)
{
    static const uint32_t range[][2] = { { 0x7f, 0x9f },     { 0xad, 0xad },      { 0x61c, 0x61c },
                                         { 0x180e, 0x180e }, { 0x200b, 0x200f },  { 0x2028, 0x202e },
                                         { 0x2060, 0x206f }, { 0xfeff, 0xfeff },  { 0xfff9, 0xfffb },
                                         { 0xfffe, 0xffff }, { 0xe0000, 0xe0fff } };
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++)
        if (c >= range[i][0] && c <= range[i][1]) return true;
    return c < 0x20;
}

IO_FN uint32_t io_code_point(const unsigned char *at, size_t bytes)
{
    uint32_t c = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) c = c << 6 | (at[i] & 0x3fu);
    return c;
}

/* The character that text begins with, as it is shown; returns its bytes in the text, at least 1. size > 0 */
IO_FN size_t io_shown_next(const char *text, size_t size, char one[IO_SHOWN_ONE])
{
    static const char letter[] = "\tt\nn\rr";
    const unsigned char *at = (const unsigned char *)text;
    const size_t bytes = io_utf8_length(at, size);
    const uint32_t c = bytes ? io_code_point(at, bytes) : at[0];
    const char *named = c && c < 0x20 ? strchr(letter, (int)c) : NULL;
    if (named)
        snprintf(one, IO_SHOWN_ONE, "\\%c", named[1]);
    else if (!bytes || c < 0x20 || c == 0x7f)
        snprintf(one, IO_SHOWN_ONE, "\\x%02x", (unsigned)at[0]);
    else if (io_unseen(c))
        snprintf(one, IO_SHOWN_ONE, c > 0xffff ? "\\U%06x" : "\\u%04x", (unsigned)c);
    else
        snprintf(one, IO_SHOWN_ONE, "%.*s", (int)bytes, text);
    return bytes ? bytes : 1;
}

/* Room for at least 4 bytes. What does not fit is cut between two characters, and ends in a mark. */
IO_FN const char *io_show_in(const char *text, size_t size, char *shown, size_t room)
{
    size_t used = 0, safe = 0;
    shown[0] = '\0';
    while (size) {
        char one[IO_SHOWN_ONE];
        const size_t bytes = io_shown_next(text, size, one), more = strlen(one);
        if (used + more >= room) {
            memcpy(shown + safe, IO_MARK, sizeof IO_MARK);
            break;
        }
        memcpy(shown + used, one, more + 1);
        used += more;
        if (used + sizeof IO_MARK <= room) safe = used; /* so far the mark still fits */
        text += bytes;
        size -= bytes;
    }
    return shown;
}

IO_FN const char *io_show(const char *text, size_t size, char shown[IO_SHOWN])
{
    return io_show_in(text, size, shown, IO_SHOWN);
}

#endif /* IO_SHOWN_H */
