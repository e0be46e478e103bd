/* base/parse.h - short texts that people write, such as "data=2,tensor=8": read word by word, and written again.
 * A room of all that read or write short texts. SPDX-License-Identifier: MIT
 *
 * DOES: names, whole numbers, single characters, with blanks free between them; one sentence for what was not expected.
 * DOES NOT: allocate, or know what a text means.
 *
 * KNOWN FROM: tests/unit/test_shard.c and tests/fuzz/fuzz_pspec.c, which read a million such texts.
 */
#ifndef TRNI_BASE_PARSE_H
#define TRNI_BASE_PARSE_H

#include <limits.h>

#include "base.h"

/* ---- reading ---- */

typedef struct trni_reader {
    const char *name, *text, *at; /* what the caller calls it, where it begins, how far it was read */
} trni_reader;

TRNI_FN void trni_reader_skip(trni_reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r') r->at++;
}

TRNI_FN bool trni_reader_take(trni_reader *r, char c)
{
    trni_reader_skip(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

TRNI_FN bool trni_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
TRNI_FN bool trni_is_digit(char c) { return c >= '0' && c <= '9'; }

typedef struct trni_word {
    const char *at;
    int length; /* 0 = none is here */
} trni_word;

/* Letters, digits and underscores; no digit first. */
TRNI_FN trni_word trni_reader_word(trni_reader *r)
{
    trni_reader_skip(r);
    trni_word w = { r->at, 0 };
    if (!trni_is_letter(*r->at)) return w;
    while (trni_is_letter(*r->at) || trni_is_digit(*r->at)) r->at++;
    w.length = r->at - w.at > INT_MAX ? INT_MAX : (int)(r->at - w.at);
    return w;
}

TRNI_FN bool trni_word_is(trni_word w, const char *name)
{
    return strlen(name) == (size_t)w.length && memcmp(w.at, name, (size_t)w.length) == 0;
}

/* A whole number of at least 1; 0 when there is none, or it does not fit. */
TRNI_FN int trni_reader_number(trni_reader *r)
{
    int64_t n = 0;
    trni_reader_skip(r);
    for (; trni_is_digit(*r->at); r->at++) n = n > INT_MAX ? n : n * 10 + (*r->at - '0');
    return n > INT_MAX ? 0 : (int)n;
}

TRNI_FN trn_status trni_reader_expected(const trni_reader *r, const char *what, trn_error *error)
{
    return trni_fail(error, TRN_EINVAL, "%s \"%.80s\": expected %s at character %lld, found %s%.1s%s", r->name, r->text,
                     what, (long long)(r->at - r->text) + 1, *r->at ? "\"" : "the end", r->at, *r->at ? "\"" : "");
}

/* ---- writing, as snprintf counts ---- */

typedef struct trni_writer {
    char *text;
    size_t capacity, used; /* used may exceed room: the text is cut, and the count is what it takes */
} trni_writer;

TRNI_FN void trni_write(trni_writer *w, const char *text)
{
    for (; *text; text++, w->used++)
        if (w->used + 1 < w->capacity) w->text[w->used] = *text;
    if (w->capacity) w->text[w->used < w->capacity ? w->used : w->capacity - 1] = 0;
}

TRNI_FN void trni_write_number(trni_writer *w, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    trni_write(w, text);
}

#endif /* TRNI_BASE_PARSE_H */
