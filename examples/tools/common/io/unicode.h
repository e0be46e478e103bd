/* unicode.h - characters of UTF-8, their classes, and NFC.
 * SPDX-License-Identifier: MIT
 *
 * CONTENTS
 *     uc_character   the character at a place, and its bytes; a byte that begins none counts as a character of class C
 *     uc_class_of    Lu, Ll, Lt, Lm, Lo, M, N, P, S, Z or C (the general category; its first letter, but for letters)
 *     uc_is_space    the property White_Space, which is not class Z: line ends are controls
 *     uc_is_nfc      is this text surely in NFC? (the quick check)
 *     uc_nfc         a text in NFC, memory of its own
 *
 * KNOWN FROM: Unicode 14.0.0 by way of unicode_data.h; its annexes 15 (NFC) and 44 (the properties).
 */
#ifndef UNICODE_H
#define UNICODE_H

#include <stdlib.h>

#include "io.h"
#include "unicode_data.h"

enum { UC_LU, UC_LL, UC_LT, UC_LM, UC_LO, UC_M, UC_N, UC_P, UC_S, UC_Z, UC_C, UC_PAIRS };

#define UC_COUNT(list) (sizeof(list) / sizeof(list)[0])

/* Bytes of the character that begins at `at`, 1 or more; size is at least 1. */
IO_FN size_t uc_character(const unsigned char *at, size_t size, uint32_t *code)
{
    const size_t n = io_utf8_length(at, size);
    *code = n < 2 ? at[0] : at[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) *code = *code << 6 | (at[i] & 0x3f);
    if (n == 0) *code = 0x110000; /* no character has it */
    return n ? n : 1;
}

/* The last run that begins at or before the code. */
IO_FN size_t uc_run(const uint32_t *run, size_t count, int bits, uint32_t code)
{
    size_t low = 0;
    for (size_t high = count; high - low > 1;) {
        const size_t middle = low + (high - low) / 2;
        if (run[middle] >> bits <= code) low = middle;
        else high = middle;
    }
    return low;
}

IO_FN int uc_class_of(uint32_t code)
{
    if (code > 0x10ffff) return UC_C;
    const uint32_t run = uc_classes[uc_run(uc_classes, UC_COUNT(uc_classes), 4, code)];
    const int kind = (int)(run & 15);
    return kind < UC_PAIRS ? kind : (code - (run >> 4)) % 2 ? UC_LL : UC_LU;
}

IO_FN bool uc_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

/* ---- NFC: decompose, order the marks, compose ---- */

enum {
    UC_SYLLABLE = 0xac00, UC_SYLLABLES = 11172, UC_LEAD = 0x1100, UC_LEADS = 19, UC_VOWEL = 0x1161, UC_VOWELS = 21,
    UC_TRAIL = 0x11a7, UC_TRAILS = 28 /* the first of them stands for none */
};

IO_FN int uc_combining_class(uint32_t code)
{
    return (int)(uc_combining[uc_run(uc_combining, UC_COUNT(uc_combining), 8, code)] & 255);
}

/* NULL: it stands for itself. */
IO_FN const uc_made *uc_decomposition(uint32_t code)
{
    for (size_t low = 0, high = UC_COUNT(uc_decompositions); low < high;) {
        const size_t middle = low + (high - low) / 2;
        const uc_made *row = &uc_decompositions[middle];
        if (row->code == code) return row;
        if (row->code < code) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* 0: the two stay two. */
IO_FN uint32_t uc_compose_hangul(uint32_t first, uint32_t second)
{
    const uint32_t lead = first - UC_LEAD, vowel = second - UC_VOWEL, syllable = first - UC_SYLLABLE;
    const uint32_t trail = second - UC_TRAIL;
    if (lead < UC_LEADS && vowel < UC_VOWELS) return UC_SYLLABLE + (lead * UC_VOWELS + vowel) * UC_TRAILS;
    if (syllable < UC_SYLLABLES && syllable % UC_TRAILS == 0 && trail > 0 && trail < UC_TRAILS) return first + trail;
    return 0;
}

IO_FN uint32_t uc_compose(uint32_t first, uint32_t second)
{
    const uint64_t wanted = (uint64_t)first << 32 | second;
    for (size_t low = 0, high = UC_COUNT(uc_compositions); low < high;) {
        const size_t middle = low + (high - low) / 2;
        const uc_made *row = &uc_decompositions[uc_compositions[middle]];
        const uint64_t here = (uint64_t)row->first << 32 | row->second;
        if (here == wanted) return row->code;
        if (here < wanted) low = middle + 1;
        else high = middle;
    }
    return uc_compose_hangul(first, second);
}

/* to[4] at most from one character: three steps at the longest, each of which adds one. */
IO_FN int uc_decompose(uint32_t code, uint32_t *to)
{
    const uint32_t syllable = code - UC_SYLLABLE;
    if (syllable < UC_SYLLABLES) {
        to[0] = UC_LEAD + syllable / (UC_VOWELS * UC_TRAILS);
        to[1] = UC_VOWEL + syllable / UC_TRAILS % UC_VOWELS;
        to[2] = UC_TRAIL + syllable % UC_TRAILS;
        return syllable % UC_TRAILS ? 3 : 2;
    }
    int n = 0;
    uint32_t after[3];
    int rest = 0;
    for (const uc_made *row; (row = uc_decomposition(code)) != NULL; code = row->first)
        if (row->second && rest < 3) after[rest++] = row->second; /* a second part is never composed itself */
    for (to[n++] = code; rest > 0;) to[n++] = after[--rest];
    return n;
}

/* Marks of a run of classes other than 0 into the order of their classes, equal ones as they were. Runs are short in
 * texts; a hostile one of any length is sorted by counting. */
IO_FN void uc_order_run(uint32_t *code, size_t count, uint32_t *scratch)
{
    size_t place[257] = { 0 };
    for (size_t i = 0; i < count; i++) place[uc_combining_class(code[i]) + 1]++;
    for (int c = 0; c < 256; c++) place[c + 1] += place[c];
    for (size_t i = 0; i < count; i++) scratch[place[uc_combining_class(code[i])]++] = code[i];
    memcpy(code, scratch, count * sizeof *code);
}

IO_FN void uc_order(uint32_t *code, size_t count, uint32_t *scratch)
{
    for (size_t i = 0, end; i < count; i = end) {
        end = i + 1;
        if (uc_combining_class(code[i]) == 0) continue;
        while (end < count && uc_combining_class(code[end])) end++;
        if (end - i > 1) uc_order_run(code + i, end - i, scratch);
    }
}

/* In place; the characters that are left. */
IO_FN size_t uc_compose_all(uint32_t *code, size_t count)
{
    size_t n = 0, starter = SIZE_MAX;
    int last = 0; /* class of the one before, since the starter */
    for (size_t i = 0; i < count; i++) {
        const int kind = uc_combining_class(code[i]);
        const bool free_way = starter != SIZE_MAX && (n == starter + 1 || (last != 0 && last < kind));
        const uint32_t whole = free_way ? uc_compose(code[starter], code[i]) : 0;
        if (whole) {
            code[starter] = whole;
            continue;
        }
        if (kind == 0) starter = n;
        last = kind;
        code[n++] = code[i];
    }
    return n;
}

IO_FN size_t uc_put(unsigned char *to, uint32_t code)
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6) to[i] = (unsigned char)(0x80 | (code & 0x3f));
    to[0] = (unsigned char)(lead[n] | code);
    return n;
}

/* Below U+0300 nothing is composed with what is before it, and nothing is taken apart for good. */
IO_FN bool uc_is_nfc(const void *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    for (size_t i = 0; i < size; i++)
        if (at[i] >= 0xcc) return false;
    return true;
}

/* NULL: no memory. *length of the result; text that is not UTF-8 must not come here. */
IO_FN unsigned char *uc_nfc(const void *text, size_t size, size_t *length)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t count = 0;
    uint32_t *code = (uint32_t *)malloc((4 * size + 1) * sizeof *code);
    uint32_t *scratch = (uint32_t *)malloc((4 * size + 1) * sizeof *scratch);
    unsigned char *to = NULL;
    for (size_t i = 0; code && i < size;) {
        uint32_t one;
        i += uc_character(at + i, size - i, &one);
        count += (size_t)uc_decompose(one, code + count);
    }
    if (code && scratch) {
        uc_order(code, count, scratch);
        count = uc_compose_all(code, count);
        to = (unsigned char *)malloc(4 * count + 1);
    }
    *length = 0;
    for (size_t i = 0; to && i < count; i++) *length += uc_put(to + *length, code[i]);
    free(scratch);
    free(code);
    return to;
}

#endif /* UNICODE_H */
