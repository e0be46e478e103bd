/* io.h - what all readers and writers here say and check alike: one sentence that names the file.
 * SPDX-License-Identifier: MIT
 *
 * CONTENTS
 *     io_fail                   the sentence; false
 *     io_reading                asked before a file is opened: a program may refuse what it also writes
 *     io_memory_ran_out         then what seems wrong with a file may be nothing but that
 *     io_multiply               sizes of hostile files multiply beyond all bounds: not here
 *     io_utf8                   is this text what it says it is?
 *     io_little16, 32, 64       little-endian numbers at any address
 *     io_bits, io_float         a float's bits, and back
 *     io_find                   a name in a list that is in the order of names
 */
#ifndef IO_H
#define IO_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define IO_FN static inline __attribute__((unused))

enum {
    IO_WHY = 512, /* bytes of one sentence */
    IO_MAX_RANK = 8
};

/* Names come from files: what a terminal would obey is shown as '?'. */
IO_FN void io_tame(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

/* An allocation that fails says so in errno, even one inside a library that returns no more than "no". */
IO_FN bool io_memory_ran_out(void) { return errno == ENOMEM; }

/* Ends a sentence: a file that is whole is not to be told broken because memory was short. */
IO_FN void io_tell_memory(char *why, size_t size)
{
    const size_t n = strlen(why);
    if (io_memory_ran_out() && !strstr(why, "memory")) snprintf(why + n, size - n, " (memory ran out meanwhile)");
}

/* why = "name: sentence" in IO_WHY bytes; returns false. */
__attribute__((unused, format(printf, 3, 4))) static bool io_fail(char *why, const char *name, const char *format, ...)
{
    va_list list;
    const int n = snprintf(why, IO_WHY, "%.200s: ", name);
    va_start(list, format);
    vsnprintf(why + n, (size_t)(IO_WHY - n), format, list);
    va_end(list);
    io_tell_memory(why, IO_WHY);
    io_tame(why);
    return false;
}

/* Who reads a file asks first, so that a program knows all that it reads. One for the whole program; NULL: yes. */
__attribute__((weak)) bool (*io_may_read)(const char *path, char *why);

IO_FN bool io_reading(const char *path, char *why) { return !io_may_read || io_may_read(path, why); }

/* *product = a * b; false when that leaves the numbers of 62 bits that all sizes here keep to. */
IO_FN bool io_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    *product = a * b;
    return a == 0 || b == 0 || (a <= (UINT64_C(1) << 62) / b);
}

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

IO_FN uint64_t io_little(const unsigned char *at, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--) x = x << 8 | at[i];
    return x;
}

IO_FN uint16_t io_little16(const unsigned char *at) { return (uint16_t)io_little(at, 2); }
IO_FN uint32_t io_little32(const unsigned char *at) { return (uint32_t)io_little(at, 4); }
IO_FN uint64_t io_little64(const unsigned char *at) { return io_little(at, 8); }

IO_FN uint32_t io_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

IO_FN float io_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The place of a name in a list whose name_at(list, 0 .. count - 1) are in strcmp's order; -1 when it is not there. */
IO_FN int io_find(const void *list, int count, const char *(*name_at)(const void *list, int place), const char *name)
{
    for (int low = 0, high = count; low < high;) {
        const int middle = low + (high - low) / 2, side = strcmp(name, name_at(list, middle));
        if (side == 0) return middle;
        if (side < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

#endif /* IO_H */
