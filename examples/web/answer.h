/* answer.h - an answer of the playground, written as JSON.
 * SPDX-License-Identifier: MIT
 *
 * DOES: objects, lists, texts, numbers as text: the fewest digits that read back as the same double, so that a page
 *     shows what the library found.
 * DOES NOT: check that brackets match. Where memory ends the answer is `lost`, and one sentence takes its place.
 */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_base.h>

typedef struct answer {
    char *text;
    size_t used, capacity;
    bool lost;
} answer;

static void put(answer *a, const char *text, size_t bytes)
{
    if (a->used + bytes + 1 > a->capacity) {
        const size_t capacity = 2 * (a->used + bytes) + 4096;
        char *more = (char *)realloc(a->text, capacity);
        if (!more) {
            a->lost = true;
            return;
        }
        a->text = more;
        a->capacity = capacity;
    }
    memcpy(a->text + a->used, text, bytes);
    a->used += bytes;
    a->text[a->used] = 0;
}

/* A quoted text; what is no printable ASCII becomes \u00xx. */
static void put_quoted(answer *a, const char *text)
{
    put(a, "\"", 1);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        char escape[8];
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c < 32 || c > 126)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else
            snprintf(escape, sizeof escape, "%c", c);
        put(a, escape, strlen(escape));
    }
    put(a, "\"", 1);
}

/* What comes before a member: a comma where one is due, and the name where it has one (inside lists it has none). */
static void put_name(answer *a, const char *name)
{
    const char last = a->used ? a->text[a->used - 1] : '[';
    if (last != '{' && last != '[') put(a, ",", 1);
    if (!name) return;
    put_quoted(a, name);
    put(a, ":", 1);
}

static void put_open(answer *a, const char *name, char bracket)
{
    put_name(a, name);
    put(a, &bracket, 1);
}

static void put_close(answer *a, char bracket) { put(a, &bracket, 1); }

static void put_text(answer *a, const char *name, const char *text)
{
    put_name(a, name);
    put_quoted(a, text);
}

static void put_whole(answer *a, const char *name, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    put_name(a, name);
    put(a, text, strlen(text));
}

static void put_flag(answer *a, const char *name, bool flag)
{
    put_name(a, name);
    put(a, flag ? "true" : "false", flag ? 4 : 5);
}

enum { NUMBER_TEXT = 40 };

/* The fewest digits, 1 to 17, that read back as the same double; with an exponent where the number is very small or
 * large. NaN has no sign here: C libraries differ. */
static const char *number_text(double x, char text[NUMBER_TEXT])
{
    int digits = 1;
    if (x != x) return "nan";
    if (x - x != 0) return x > 0 ? "inf" : "-inf";
    for (; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    const int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent >= -6 && exponent < 17) snprintf(text, NUMBER_TEXT, "%.*f", decimals > 0 ? decimals : 0, x);
    return text;
}

/* For people: a text, "inf" and "nan" among them. */
static void put_shown(answer *a, const char *name, double x)
{
    char text[NUMBER_TEXT];
    put_text(a, name, number_text(x, text));
}

/* For charts: a number; null where it is not finite. */
static void put_number(answer *a, const char *name, double x)
{
    char text[NUMBER_TEXT];
    const char *number = x - x == 0 ? number_text(x, text) : "null";
    put_name(a, name);
    put(a, number, strlen(number));
}

#endif /* WEB_ANSWER_H */
