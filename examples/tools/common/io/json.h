/* json.h - the members of a JSON object or list, one at a time, so that a file of any size takes the memory of one.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/json.h"
 *     io_json j = io_json_start(text, size);
 *     char *name;
 *     cJSON *value;
 *     while (io_json_next(&j) && io_json_name(&j, &name)) { ...; free(name); }
 *     if (j.wrong) fprintf(stderr, "it is not a JSON object: %s\n", j.wrong);
 *
 * cJSON reads names and values. This file only finds where each ends, because cJSON alone would build a tree of twenty
 * times the size of a header that may have 100 MB, takes the first of two equal names without a word, cuts a name at a
 * NUL, written so or as an escape that is none, and makes a double of every number: what is to be an integer is read
 * from its digits here, wherever a program asks for one.
 *
 * What Python's json writes and reads is read, too, where a text comes from there: Infinity, -Infinity and NaN, half a
 * surrogate pair, a name that stands twice (the last one counts), a byte order mark. What must be one thing to every
 * reader, the header of a .safetensors, has its own, stricter reader.
 *
 * CONTENTS
 *     io_json, io_json_start, io_json_next   the iteration; .wrong says why it ended early
 *     io_json_name, io_json_text             a name, a text: memory of its own, free() it
 *     io_json_value                          any other value, through cJSON; cJSON_Delete it
 *     io_json_members, io_json_list          a value that is an object, or a list; io_json_next does both
 *     io_json_member                         the first member of a name, and how many there are
 *     io_json_last                           the last one, which counts where a name stands twice
 *     io_json_file                           the same as io_json_start, of a file that may begin with a mark
 *     io_json_tree                           all of a text at once, as Python's json has it
 *     io_json_whole                          an integer: plain digits
 */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

enum { IO_JSON_DEPTH = 990 }; /* Python ends at about 1000, and cJSON at 1000 */

typedef struct io_json {
    const char *at, *end; /* what comes after the member */
    const char *key, *value;
    size_t key_size, value_size; /* the member, quotes and brackets included; a list's have no key */
    int members;
    char close; /* '}' of an object, ']' of a list */
    bool done;
    const char *wrong; /* NULL: nothing yet */
} io_json;

IO_FN bool io_json_stop(io_json *j, const char *wrong)
{
    j->done = true;
    j->wrong = wrong;
    return false;
}

IO_FN void io_json_blank(io_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}

IO_FN bool io_json_take(io_json *j, char c)
{
    io_json_blank(j);
    if (j->at >= j->end || *j->at != c) return false;
    j->at++;
    return true;
}

/* Over an escape, to its last character. cJSON takes hexadecimal digits that are none for 0: they are checked here. */
IO_FN bool io_json_skip_escape(io_json *j)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    int zeros = 0;
    j->at++;
    if (j->at >= j->end) return io_json_stop(j, "a text does not end");
    if (*j->at == '\0' || !strchr("\"\\/bfnrtu", *j->at)) return io_json_stop(j, "an escape means nothing");
    if (*j->at != 'u') return true;
    for (int i = 0; i < 4; i++) {
        if (j->end - j->at < 2 || j->at[1] == '\0' || !strchr(hex, j->at[1]))
            return io_json_stop(j, "an escape means nothing");
        zeros += *++j->at == '0';
    }
    return zeros < 4 || io_json_stop(j, "a text holds a NUL");
}

/* Over a text in quotes. */
IO_FN bool io_json_skip_text(io_json *j)
{
    if (!io_json_take(j, '"')) return io_json_stop(j, "a name or a text lacks its quotes");
    for (; j->at < j->end && *j->at != '"'; j->at++) {
        if ((unsigned char)*j->at < 0x20) return io_json_stop(j, "a text holds a control character");
        if (*j->at == '\\' && !io_json_skip_escape(j)) return false;
    }
    return io_json_take(j, '"') || io_json_stop(j, "a text does not end");
}

/* cJSON takes every control character for a blank. */
IO_FN bool io_json_odd(char c) { return (unsigned char)c < 0x20 && c != '\t' && c != '\n' && c != '\r'; }

/* 08 is no number of JSON's, though cJSON takes it for one. An exponent may be 1e-05. */
IO_FN bool io_json_leading_zero(const io_json *j, const char *start)
{
    const bool sign = j->at - start > 1 && j->at[-1] == '-' && strchr("eE", j->at[-2]);
    const bool inside = sign || (j->at > start && j->at[-1] && strchr("0123456789.eE+", j->at[-1]));
    return *j->at == '0' && j->end - j->at > 1 && j->at[1] >= '0' && j->at[1] <= '9' && !inside;
}

/* Over any value: brackets are counted, and what is between them is left to cJSON. */
IO_FN bool io_json_skip_value(io_json *j)
{
    int depth = 0;
    io_json_blank(j);
    for (const char *start = j->at; j->at < j->end;) {
        const char c = *j->at;
        if (c == '"') {
            if (!io_json_skip_text(j)) return false;
        } else if (c == '{' || c == '[') {
            if (++depth > IO_JSON_DEPTH) return io_json_stop(j, "it is nested too deeply");
            j->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return j->at > start || io_json_stop(j, "a value is missing");
            depth--;
            j->at++;
        } else if (c == ',' && depth == 0) {
            return j->at > start || io_json_stop(j, "a value is missing");
        } else {
            if (io_json_leading_zero(j, start)) return io_json_stop(j, "a number begins with a zero too many");
            if (io_json_odd(c)) return io_json_stop(j, "it holds a control character");
            j->at++;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']')) return true;
    }
    return io_json_stop(j, "it breaks off");
}

IO_FN io_json io_json_open(const char *text, size_t size, bool list)
{
    io_json j;
    memset(&j, 0, sizeof j);
    j.at = text;
    j.end = text + size;
    j.close = list ? ']' : '}';
    if (!io_json_take(&j, list ? '[' : '{'))
        io_json_stop(&j, list ? "it does not begin with '['" : "it does not begin with '{'");
    return j;
}

/* The first member is reached by io_json_next. */
IO_FN io_json io_json_start(const char *text, size_t size) { return io_json_open(text, size, false); }

IO_FN bool io_json_skip_key(io_json *j)
{
    io_json_blank(j);
    if (j->at == j->end) return io_json_stop(j, "it breaks off");
    j->key = j->at;
    if (!io_json_skip_text(j)) return false;
    j->key_size = (size_t)(j->at - j->key);
    return io_json_take(j, ':') || io_json_stop(j, "a colon is missing");
}

/* The next member; false at the end and when something is wrong. After the end of the whole nothing but blanks may
 * follow. */
IO_FN bool io_json_next(io_json *j)
{
    if (j->done) return false;
    if (io_json_take(j, j->close)) {
        io_json_blank(j);
        return io_json_stop(j, j->at == j->end   ? NULL
                               : j->close == '}' ? "it goes on after the closing '}'"
                                                 : "it goes on after the closing ']'");
    }
    if (j->members > 0 && !io_json_take(j, ','))
        return io_json_stop(j, j->at == j->end ? "it breaks off" : "a comma is missing");
    if (j->close == '}' && !io_json_skip_key(j)) return false;
    io_json_blank(j);
    j->value = j->at;
    if (!io_json_skip_value(j)) return false;
    j->value_size = (size_t)(j->at - j->value);
    j->members++;
    return true;
}

/* Text of a span with its quotes; NULL when it is none. */
IO_FN char *io_json_unquote(const char *span, size_t size)
{
    cJSON *item = size && span[0] == '"' ? cJSON_ParseWithLength(span, size) : NULL;
    const size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    char *text = cJSON_IsString(item) && io_utf8(item->valuestring, length) ? (char *)malloc(length + 1) : NULL;
    if (text) memcpy(text, item->valuestring, length + 1);
    cJSON_Delete(item);
    return text;
}

/* NULL, and the iteration ends, for escapes that mean nothing. */
IO_FN char *io_json_name(io_json *j)
{
    char *text = io_json_unquote(j->key, j->key_size);
    if (!text) io_json_stop(j, "a name is not UTF-8, or has an escape that means nothing");
    return text;
}

/* NULL when the value is no text. */
IO_FN char *io_json_text(const io_json *j) { return io_json_unquote(j->value, j->value_size); }

/* NULL when the value is not JSON, or longer than `most` bytes. */
IO_FN cJSON *io_json_value(const io_json *j, size_t most)
{
    const char *end = NULL;
    cJSON *item = j->value_size <= most ? cJSON_ParseWithLengthOpts(j->value, j->value_size, &end, 0) : NULL;
    io_json rest = *j;
    rest.at = end;
    rest.end = j->value + j->value_size;
    if (item) io_json_blank(&rest);
    if (item && rest.at == rest.end) return item;
    cJSON_Delete(item);
    return NULL;
}

/* The iteration over a value that is an object itself, or a list. */
IO_FN io_json io_json_members(const io_json *j) { return io_json_open(j->value, j->value_size, false); }
IO_FN io_json io_json_list(const io_json *j) { return io_json_open(j->value, j->value_size, true); }

/* Is this the member's name? Escapes are looked at only where there are any. */
IO_FN bool io_json_is(const io_json *j, const char *name)
{
    const size_t size = j->key_size - 2;
    if (!memchr(j->key, '\\', j->key_size)) return strlen(name) == size && memcmp(j->key + 1, name, size) == 0;
    char *text = io_json_unquote(j->key, j->key_size); /* NULL: it means nothing, and is no name that is asked for */
    const bool same = text && strcmp(text, name) == 0;
    free(text);
    return same;
}

/* How often an object has a member of this name, 2 standing for more; *member stays at the first. For what must be
 * there once. */
IO_FN int io_json_member(io_json object, const char *name, io_json *member)
{
    int found = 0;
    while (found < 2 && io_json_next(&object))
        if (io_json_is(&object, name) && found++ == 0) *member = object;
    return found;
}

/* The last member of this name; false: there is none. */
IO_FN bool io_json_last(io_json object, const char *name, io_json *member)
{
    bool found = false;
    while (io_json_next(&object))
        if (io_json_is(&object, name)) *member = object, found = true;
    return found;
}

/* ---- as Python's json has it ---- */

/* Bytes of the mark that some editors put first. */
IO_FN size_t io_json_mark(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

IO_FN io_json io_json_file(const char *text, size_t size)
{
    const size_t mark = io_json_mark(text, size);
    return io_json_start(text + mark, size - mark);
}

/* Is there "\uDXXX" at `at`, of the half of a pair that begins with these digits? */
IO_FN bool io_json_half(const char *at, const char *end, const char *digits)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u' || (at[2] | 0x20) != 'd') return false;
    return at[3] && strchr(digits, at[3]) && at[4] && strchr(hex, at[4]) && at[5] && strchr(hex, at[5]);
}

/* Over the text that begins at `at`, written to `to` as cJSON takes it: it knows no half of a pair of surrogates. */
IO_FN const char *io_json_copy_text(const char *at, const char *end, char **to)
{
    const char *const first = at;
    for (bool inside = true; inside && at < end;) {
        const bool escape = *at == '\\' && end - at >= 2, high = io_json_half(at, end, "89abAB");
        const bool pair = high && io_json_half(at + 6, end, "cdefCDEF");
        const bool lone = !pair && (high || io_json_half(at, end, "cdefCDEF"));
        const size_t n = pair ? 12 : lone ? 6 : escape ? 2 : 1;
        inside = at == first || *at != '"';
        memcpy(*to, lone ? "\\ufffd" : at, n);
        *to += n;
        at += n;
    }
    return at;
}

/* What cJSON takes for the word that stands at `at`; NULL: there is none. An infinity is a number that is one; NaN is a
 * text, so that nobody takes it for a number. */
IO_FN const char *io_json_instead(const char *at, const char *end, size_t *size)
{
    static const char *const word[][2] = { { "-Infinity", "-1e999" }, { "Infinity", "1e999" }, { "NaN", "\"NaN\"" } };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        *size = strlen(word[i][0]);
        const bool there = (size_t)(end - at) >= *size && memcmp(at, word[i][0], *size) == 0;
        if (there && (at + *size == end || (at[*size] && strchr(" \t\r\n,]}", at[*size])))) return word[i][1];
    }
    return NULL;
}

/* The text with what cJSON does not know written otherwise, lines where they were; NULL without memory. */
IO_FN char *io_json_plain(const char *text, size_t size, size_t *length)
{
    char *const plain = (char *)malloc(2 * size + 1), *to = plain;
    const char *const end = text + size;
    for (const char *at = text, *instead; plain && at < end;) {
        size_t n = 1;
        if (*at == '"') {
            at = io_json_copy_text(at, end, &to);
            continue;
        }
        instead = at == text || strchr(" \t\r\n,[:", at[-1]) ? io_json_instead(at, end, &n) : NULL;
        if (instead)
            to = strcpy(to, instead) + strlen(instead);
        else
            *to++ = *at;
        at += instead ? n : 1;
    }
    *length = plain ? (size_t)(to - plain) : 0;
    return plain;
}

typedef struct io_json_place {
    cJSON *item;
    int number;
} io_json_place;

IO_FN int io_json_by_name(const void *left, const void *right)
{
    const io_json_place *a = (const io_json_place *)left, *b = (const io_json_place *)right;
    const int by_name = strcmp(a->item->string, b->item->string);
    return by_name ? by_name : a->number - b->number;
}

/* Of names that stand twice, in all objects of the tree, the last one stays; false without memory. */
IO_FN bool io_json_last_wins(cJSON *item)
{
    cJSON *child;
    int n = 0;
    cJSON_ArrayForEach(child, item) {
        if (!io_json_last_wins(child)) return false;
        n++;
    }
    if (!cJSON_IsObject(item) || n < 2) return true;
    io_json_place *list = (io_json_place *)malloc((size_t)n * sizeof *list);
    if (!list) return false;
    n = 0;
    cJSON_ArrayForEach(child, item) list[n] = (io_json_place){ child, n }, n++;
    qsort(list, (size_t)n, sizeof *list, io_json_by_name);
    for (int i = 0; i + 1 < n; i++)
        if (strcmp(list[i].item->string, list[i + 1].item->string) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(item, list[i].item));
    free(list);
    return true;
}

/* cJSON_Delete it. NULL: it is not JSON, *line being where (NULL: who asks?), or memory is short, which errno says. */
IO_FN cJSON *io_json_tree(const char *text, size_t size, int *line)
{
    const size_t mark = io_json_mark(text, size);
    size_t length;
    char *plain = io_json_plain(text + mark, size - mark, &length);
    const char *end = NULL;
    cJSON *root = plain ? cJSON_ParseWithLengthOpts(plain, length, &end, 0) : NULL;
    if (line) *line = 1;
    for (const char *c = plain; line && !root && c && end && c < end && c < plain + length; c++) *line += *c == '\n';
    free(plain);
    if (!root || io_json_last_wins(root)) return root;
    cJSON_Delete(root);
    return errno = ENOMEM, NULL;
}

/* Plain digits below 2^53, up to which every reader agrees on a number: no 16.0, 1.6e1, -0 or 016. */
IO_FN bool io_json_whole(const io_json *j, uint64_t *number)
{
    uint64_t n = 0;
    size_t size = j->value_size;
    while (size > 0 && strchr(" \t\r\n", j->value[size - 1])) size--;
    if (size == 0 || size > 16 || (size > 1 && j->value[0] == '0')) return false;
    for (size_t i = 0; i < size; i++) {
        if (j->value[i] < '0' || j->value[i] > '9') return false;
        n = 10 * n + (uint64_t)(j->value[i] - '0');
    }
    *number = n;
    return n < UINT64_C(1) << 53;
}

/* What stands there, short enough to quote. */
typedef struct io_json_quoted {
    char text[40];
} io_json_quoted;

IO_FN io_json_quoted io_json_show(const io_json *j)
{
    io_json_quoted q;
    io_show_in(j->value, j->value_size, q.text, 33);
    return q;
}

/* Writes text in quotes, with the escapes it needs; false without memory, or when it is not UTF-8. */
IO_FN bool io_json_quote(FILE *out, const char *text)
{
    cJSON *item = io_utf8(text, strlen(text)) ? cJSON_CreateStringReference(text) : NULL;
    char *quoted = item ? cJSON_PrintUnformatted(item) : NULL;
    const bool ok = quoted && fputs(quoted, out) >= 0;
    cJSON_free(quoted);
    cJSON_Delete(item);
    return ok;
}

#endif /* IO_JSON_H */
