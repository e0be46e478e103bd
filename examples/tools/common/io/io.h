/* io.h - what all readers and writers here say and check alike: one sentence that names the file.
 * SPDX-License-Identifier: MIT
 *
 * CONTENTS
 *     io_fail                   the sentence; false
 *     io_named                  what people call a path that a program made up
 *     io_reading                asked before a file is opened: a program may refuse what it also writes
 *     io_memory_ran_out         then what seems wrong with a file may be nothing but that
 *     io_multiply               sizes of hostile files multiply beyond all bounds: not here
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

#include "say.h"

enum {
    IO_WHY = 512, /* bytes of one sentence */
    IO_MAX_RANK = 8
};

/* An allocation that fails says so in errno, even one inside a library that returns no more than "no". */
IO_FN bool io_memory_ran_out(void) { return errno == ENOMEM; }

/* Ends a sentence: a file that is whole is not to be told broken because memory was short. */
IO_FN void io_tell_memory(char *why, size_t size)
{
    const size_t n = strlen(why);
    if (io_memory_ran_out() && !strstr(why, "memory")) snprintf(why + n, size - n, " (memory ran out meanwhile)");
}

/* A file that is made elsewhere first has the name that the user gave it. One for the whole program; NULL: all have
 * their own. Returns `name`, or `room`, of `size` bytes. */
__attribute__((weak)) const char *(*io_named)(const char *name, char *room, size_t size);

/* why = "name: sentence" in IO_WHY bytes; returns false. What texts in it hold is as shown.h shows it. */
__attribute__((unused, format(printf, 3, 4))) static bool io_fail(char *why, const char *name, const char *format, ...)
{
    char text[IO_WHY], own[IO_WHY];
    va_list list;
    va_start(list, format);
    io_say_list(text, sizeof text, IO_SAID, format, list);
    va_end(list);
    io_tell_memory(text, sizeof text);
    io_say_in(why, IO_WHY, IO_SAID, "%.199s: %s", io_named ? io_named(name, own, sizeof own) : name, text);
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
