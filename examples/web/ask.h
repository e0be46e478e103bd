/* ask.h - a question to the playground: "numbers?x=0.1&as=number", as it stands behind the # of an address.
 * SPDX-License-Identifier: MIT
 *
 * DOES: reads the question, and each field of it as a text, a number, a whole number, a name of a list or a format;
 *     every refusal is one sentence that names the field.
 * DOES NOT: know what the fields mean. A field that is not given has its tool's default.
 */
#ifndef WEB_ASK_H
#define WEB_ASK_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_format.h>

enum { ASK_BYTES = 16384, ASK_FIELDS = 24 };

typedef struct ask {
    const char *tool;
    int fields;
    const char *name[ASK_FIELDS], *value[ASK_FIELDS];
    char text[ASK_BYTES];
} ask;

__attribute__((format(printf, 2, 3))) static bool refuse(trn_error *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why->text, sizeof why->text, format, list);
    va_end(list);
    why->status = TRN_EINVAL;
    return false;
}

/* ---- the question ---- */

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* In place: %41 is A, + is a blank. What is left must be printable ASCII, or white. */
static bool unescape(char *text, trn_error *why)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        int c = *at == '+' ? ' ' : (unsigned char)*at;
        if (c == '%') {
            const int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0) return refuse(why, "the question has a %% that two hexadecimal digits do not follow");
            c = 16 * high + low;
            at += 2;
        }
        if (c == '\n' || c == '\t' || c == '\r') c = c == '\n' ? c : ' ';
        if ((c < 32 && c != '\n') || c > 126)
            return refuse(why, "the question has the character %d, which is not plain ASCII", c);
        *to++ = (char)c;
    }
    *to = 0;
    return true;
}

/* Cuts at `mark`; "" where there is none. */
static char *cut_at(char *text, char mark)
{
    char *at = strchr(text, mark);
    if (!at) return text + strlen(text);
    *at = 0;
    return at + 1;
}

static bool ask_field(ask *q, char *pair, trn_error *why)
{
    char *value = cut_at(pair, '=');
    if (!unescape(value, why) || !unescape(pair, why)) return false;
    for (int i = 0; i < q->fields; i++)
        if (strcmp(q->name[i], pair) == 0) return refuse(why, "the question has '%.40s' twice", pair);
    if (q->fields == ASK_FIELDS) return refuse(why, "the question has more than %d fields", (int)ASK_FIELDS);
    q->name[q->fields] = pair;
    q->value[q->fields++] = value;
    return true;
}

static bool ask_read(ask *q, const char *text, trn_error *why)
{
    q->fields = 0;
    q->tool = "";
    if (strlen(text) >= ASK_BYTES)
        return refuse(why, "the question has %zu characters, and %d are enough", strlen(text), ASK_BYTES - 1);
    strcpy(q->text, text);
    char *next = cut_at(q->text, '?');
    if (!unescape(q->text, why)) return false;
    q->tool = q->text;
    while (*next) {
        char *pair = next;
        next = cut_at(pair, '&');
        if (*pair && !ask_field(q, pair, why)) return false;
    }
    return true;
}

/* Has the question fields of these names only? `names`: words with a blank between. */
static bool ask_knows(const ask *q, const char *names, trn_error *why)
{
    for (int i = 0; i < q->fields; i++) {
        const size_t n = strlen(q->name[i]);
        const char *at = n ? names : NULL;
        while (at && (strncmp(at, q->name[i], n) != 0 || (at[n] && at[n] != ' '))) {
            at = strchr(at, ' ');
            if (at) at++;
        }
        if (!at && !*names) return refuse(why, "%.20s has no fields, and '%.40s' is one", q->tool, q->name[i]);
        if (!at) return refuse(why, "%.20s has no field '%.40s'; it has %.140s", q->tool, q->name[i], names);
    }
    return true;
}

/* ---- its fields ---- */

static const char *ask_text(const ask *q, const char *name, const char *usual)
{
    for (int i = 0; i < q->fields; i++)
        if (strcmp(q->name[i], name) == 0 && *q->value[i]) return q->value[i];
    return usual;
}

static const char *past_blanks(const char *text)
{
    while (*text == ' ' || *text == '\n') text++;
    return text;
}

static bool ask_whole(const ask *q, const char *name, int64_t usual, int64_t low, int64_t high, int64_t *n,
                      trn_error *why)
{
    const char *text = past_blanks(ask_text(q, name, ""));
    char *end;
    *n = usual;
    if (!*text) return true;
    errno = 0;
    *n = strtoll(text, &end, 10);
    if (end != text && !*past_blanks(end) && !errno && *n >= low && *n <= high) return true;
    return refuse(why, "%s is '%.40s', expected a whole number from %lld to %lld", name, text, (long long)low,
                  (long long)high);
}

/* "0x", a sign before it or not, with no digit behind: C libraries do not agree on what that is. */
static bool is_bare_prefix(const char *text)
{
    text += *text == '-' || *text == '+';
    if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return false;
    text += 2;
    return hex_digit(text[*text == '.']) < 0;
}

/* The nearest binary32 of a text: 0.1, 1e-3, 0x1.8p3, inf, nan; *rest: what stands behind it. */
static bool read_float(const char *text, float *x, const char **rest)
{
    char *end;
    *x = strtof(text, &end);
    *rest = end;
    return end != text && !is_bare_prefix(past_blanks(text));
}

static bool ask_float(const ask *q, const char *name, const char *usual, float *x, trn_error *why)
{
    const char *text = past_blanks(ask_text(q, name, usual)), *rest;
    if (read_float(text, x, &rest) && !*past_blanks(rest)) return true;
    return refuse(why, "%s is '%.40s', expected a number such as 0.1, -3e4, 0x1.8p3, inf or nan", name, text);
}

static bool ask_format(const ask *q, const char *name, const char *usual, trn_format *format, trn_error *why)
{
    trn_error error;
    if (trn_format_read(format, ask_text(q, name, usual), &error) == TRN_OK) return true;
    return refuse(why, "%s: %.200s", name, error.text);
}

/* One of a list of names, such as choices.h has. */
typedef struct choice {
    const char *list; /* how lists calls it */
    const char *(*name)(int i);
    int count;
} choice;

static bool ask_choice(const ask *q, const char *name, const char *usual, const choice *of, int *i, trn_error *why)
{
    char names[160] = "";
    const char *text = ask_text(q, name, usual);
    for (*i = 0; *i < of->count; ++*i)
        if (strcmp(text, of->name(*i)) == 0) return true;
    for (int k = 0; k < of->count; k++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "", of->name(k));
    }
    return refuse(why, "%s is '%.40s', expected one of %s", name, text, names);
}

#endif /* WEB_ASK_H */
