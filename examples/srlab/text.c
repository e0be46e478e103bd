/* text.c - what the transformer reads: a word list, or any file, as symbols.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char word_list[] = "/usr/share/dict/words";

enum { MOST = 64 << 20 }; /* bytes that are read */

static unsigned char *read_bytes(FILE *in, int64_t *size)
{
    size_t room = 1 << 16, got = 0;
    unsigned char *bytes = NULL, *more;
    for (;;) {
        if (!(more = realloc(bytes, room))) return free(bytes), NULL;
        bytes = more;
        got += fread(bytes + got, 1, room - got, in);
        if (got < room || got >= MOST) break;
        room *= 2;
    }
    *size = (int64_t)got;
    return bytes;
}

static unsigned char *read_all(const char *path, int64_t *size, char *why)
{
    FILE *in = fopen(path, "rb");
    unsigned char *bytes = NULL;
    if (in) {
        bytes = read_bytes(in, size);
        if (ferror(in)) free(bytes), bytes = NULL;
        else errno = bytes ? 0 : ENOMEM;
    }
    if (!bytes) snprintf(why, APP_WHY, "%s: it cannot be read (%s)", path, strerror(errno));
    if (in) fclose(in);
    return bytes;
}

/* ---- the word list: words of a to z, shuffled ---- */

static bool is_word(const unsigned char *at, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        if (at[i] < 'a' || at[i] > 'z') return false;
    return length > 1;
}

static int64_t find_words(const unsigned char *bytes, int64_t size, int64_t *start)
{
    int64_t words = 0, from = 0;
    for (int64_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') continue;
        if (is_word(bytes + from, i - from)) start[words++] = from;
        from = i + 1;
    }
    return words;
}

static int64_t shuffle_words(unsigned char *bytes, int64_t size)
{
    unsigned char *copy = sr_room((size_t)size, 1);
    int64_t *start = sr_room((size_t)size / 3 + 1, sizeof *start), at = 0;
    const int64_t words = find_words(bytes, size, start);
    for (int64_t i = words - 1; i > 0; i--) {
        const int64_t j = (int64_t)(trn_random_u32(1, 0, (uint64_t)i) % (uint64_t)(i + 1)), keep = start[i];
        start[i] = start[j];
        start[j] = keep;
    }
    for (int64_t i = 0; i < words; i++) {
        const int64_t length = (const unsigned char *)memchr(bytes + start[i], '\n', (size_t)(size - start[i])) -
                               (bytes + start[i]) + 1;
        memcpy(copy + at, bytes + start[i], (size_t)length);
        at += length;
    }
    memcpy(bytes, copy, (size_t)at);
    free(copy);
    free(start);
    return at;
}

/* ---- symbols ---- */

static void number_symbols(sr_text *t)
{
    int code[256];
    for (int c = 0; c < 256; c++) {
        code[c] = memchr(t->symbol, c, (size_t)t->count) ? t->symbols : -1;
        if (code[c] >= 0) t->letter[t->symbols++] = (unsigned char)c;
    }
    for (int64_t i = 0; i < t->count; i++) t->symbol[i] = (uint8_t)code[t->symbol[i]];
}

bool sr_text_read(const char *path, sr_text *t, char *why)
{
    memset(t, 0, sizeof *t);
    t->symbol = read_all(path ? path : word_list, &t->count, why);
    if (!t->symbol && !path)
        snprintf(why, APP_WHY, "%s: there is no word list; install wamerican, or give --text FILE", word_list);
    if (!t->symbol) return false;
    if (!path) t->count = shuffle_words(t->symbol, t->count);
    t->train = t->count - t->count / 20;
    if (t->count) number_symbols(t);
    return true;
}

void sr_text_free(sr_text *t) { free(t->symbol); }
