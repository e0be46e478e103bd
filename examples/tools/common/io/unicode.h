/* unicode.h - characters of UTF-8, and NFC.
 * SPDX-License-Identifier: MIT
 *
 * CONTENTS
 *     uc_character   the character at a place, and its bytes; a byte that begins none counts as one beyond all
 *     uc_is_space    the property White_Space, which is not class Z: line ends are controls
 *     uc_is_nfc      is this text surely in NFC? (the quick check)
 *     uc_nfc         a text in NFC, memory of its own
 *
 * KNOWN FROM: Unicode's annexes 15 (NFC) and 44 (the properties). Needs utf8proc (libutf8proc-dev), whose version of
 *     Unicode it has; NFC of a character never changes once there is one.
 */
#ifndef UNICODE_H
#define UNICODE_H

#include <stdlib.h>
#include <utf8proc.h>

#include "io.h"

enum {
    UC_PARTS = 4,     /* the most that one character is made of */
    UC_O_YAE = 0x11a7 /* a vowel that stands where utf8proc 2.8 looks for a syllable's end, and is lost there */
};
static const utf8proc_option_t uc_how = (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

/* Bytes of the character that begins at `at`, 1 or more; size is at least 1. */
IO_FN size_t uc_character(const unsigned char *at, size_t size, uint32_t *code)
{
    const size_t n = io_utf8_length(at, size);
    *code = n < 2 ? at[0] : at[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) *code = *code << 6 | (at[i] & 0x3f);
    if (n == 0) *code = 0x110000; /* no character has it */
    return n ? n : 1;
}

IO_FN bool uc_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

/* ---- NFC: decompose, order the marks, compose ---- */

IO_FN int uc_combining_class(int32_t code) { return utf8proc_get_property(code)->combining_class; }

/* Marks of a run of classes other than 0 into the order of their classes, equal ones as they were. Runs are short in
 * texts; a hostile one of any length is sorted by counting, where utf8proc would take its square. */
IO_FN void uc_order_run(int32_t *code, size_t count, int32_t *scratch)
{
    size_t place[257] = { 0 };
    for (size_t i = 0; i < count; i++) place[uc_combining_class(code[i]) + 1]++;
    for (int c = 0; c < 256; c++) place[c + 1] += place[c];
    for (size_t i = 0; i < count; i++) scratch[place[uc_combining_class(code[i])]++] = code[i];
    memcpy(code, scratch, count * sizeof *code);
}

IO_FN void uc_order(int32_t *code, size_t count, int32_t *scratch)
{
    for (size_t i = 0, end; i < count; i = end) {
        end = i + 1;
        if (uc_combining_class(code[i]) == 0) continue;
        while (end < count && uc_combining_class(code[end])) end++;
        if (end - i > 1) uc_order_run(code + i, end - i, scratch);
    }
}

/* Below U+0300 nothing is composed with what is before it, and nothing is taken apart for good. */
IO_FN bool uc_is_nfc(const void *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    for (size_t i = 0; i < size; i++)
        if (at[i] >= 0xcc) return false;
    return true;
}

/* In place; the characters that are left. */
IO_FN size_t uc_compose(int32_t *code, size_t count)
{
    size_t n = 0;
    for (size_t from = 0, end; from < count; from = end + 1) {
        for (end = from; end < count && code[end] != UC_O_YAE; end++) {}
        const size_t left = (size_t)utf8proc_normalize_utf32(code + from, (utf8proc_ssize_t)(end - from), uc_how);
        memmove(code + n, code + from, left * sizeof *code);
        n += left;
        if (end < count) code[n++] = UC_O_YAE;
    }
    return n;
}

/* NULL: no memory. *length of the result; text that is not UTF-8 must not come here. */
IO_FN unsigned char *uc_nfc(const void *text, size_t size, size_t *length)
{
    const unsigned char *at = (const unsigned char *)text;
    int32_t *code = (int32_t *)malloc((UC_PARTS * size + 1) * sizeof *code);
    int32_t *scratch = (int32_t *)malloc((UC_PARTS * size + 1) * sizeof *scratch);
    unsigned char *to = (unsigned char *)(code && scratch ? code : NULL); /* no character is longer than its number */
    size_t count = 0;
    for (size_t i = 0; to && i < size;) {
        uint32_t one;
        i += uc_character(at + i, size - i, &one);
        count += (size_t)utf8proc_decompose_char((int32_t)one, code + count, UC_PARTS, uc_how, NULL);
    }
    if (to) uc_order(code, count, scratch);
    count = to ? uc_compose(code, count) : 0;
    *length = 0;
    for (size_t i = 0; i < count; i++) *length += (size_t)utf8proc_encode_char(code[i], to + *length);
    free(scratch);
    if (!to) free(code);
    return to;
}

#endif /* UNICODE_H */
