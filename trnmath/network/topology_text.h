/* network/topology_text.h - pieces of text that do not end with a zero, and decimal numbers without a locale.
 * Behind trn_topology.h. SPDX-License-Identifier: MIT
 *
 * DOES: words, whole numbers, decimals with their unit's power of ten (correctly rounded: 13.6 us are the double
 *     nearest to 1.36e-5), and the shortest decimal that reads back as the same double.
 * DOES NOT: hexadecimal, infinities, NaN, signs: no such thing stands in a network.
 */
#ifndef TRNI_NETWORK_TOPOLOGY_TEXT_H
#define TRNI_NETWORK_TOPOLOGY_TEXT_H

#include <float.h>
#include <stdlib.h>

#include "../base/parse.h"

typedef struct trni_phrase {
    const char *at;
    size_t length;
} trni_phrase;

enum {
    TRNI_SHOWN = 48,
    TRNI_DECIMAL = 64
}; /* bytes of what a sentence shows of a piece; of a decimal as strtod has it */

TRNI_FN bool trni_blank(char c) { return c == ' ' || c == '\t'; }
TRNI_FN bool trni_plain_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

TRNI_FN trni_phrase trni_phrase_of(const char *at, size_t length)
{
    trni_phrase p;
    p.at = at;
    p.length = length;
    return p;
}

/* Without blanks at either end. */
TRNI_FN trni_phrase trni_phrase_trim(trni_phrase p)
{
    while (p.length && trni_blank(p.at[p.length - 1])) p.length--;
    while (p.length && trni_blank(p.at[0])) {
        p.at++;
        p.length--;
    }
    return p;
}

TRNI_FN bool trni_phrase_is(trni_phrase p, const char *word)
{
    return strlen(word) == p.length && memcmp(p.at, word, p.length) == 0;
}

/* As a sentence shows it: cut, and without what a terminal would obey. */
TRNI_FN const char *trni_phrase_show(trni_phrase p, char text[TRNI_SHOWN])
{
    size_t n = 0;
    for (; n < p.length && n + 4 < TRNI_SHOWN; n++)
        text[n] = (unsigned char)p.at[n] < 0x20 || p.at[n] == 0x7f ? '?' : p.at[n];
    trni_copy_text(text + n, TRNI_SHOWN - n, n < p.length ? "..." : "");
    return text;
}

/* The text before the last word, and that word; false when there is one word only. */
TRNI_FN bool trni_phrase_last(trni_phrase p, trni_phrase *before, trni_phrase *last)
{
    size_t at = p.length;
    while (at && !trni_blank(p.at[at - 1])) at--;
    *last = trni_phrase_of(p.at + at, p.length - at);
    *before = trni_phrase_trim(trni_phrase_of(p.at, at));
    return before->length > 0;
}

/* 1 to 9 digits. */
TRNI_FN bool trni_phrase_whole(trni_phrase p, int *value)
{
    int n = 0;
    if (p.length < 1 || p.length > 9) return false;
    for (size_t i = 0; i < p.length; i++) {
        if (!trni_is_digit(p.at[i])) return false;
        n = 10 * n + (p.at[i] - '0');
    }
    *value = n;
    return true;
}

/* ---- decimals ---- */

/* What this locale writes between 1 and 5 of 1.5; its length. */
TRNI_FN int trni_decimal_point(char point[16])
{
    const int length = snprintf(point, 16, "%.1f", 1.5) - 2;
    if (length < 1 || length > 8) return -1;
    memmove(point, point + 1, (size_t)length);
    return length;
}

/* [digits][.digits][e[+-]digits], at most 40 characters, times 10^power: the nearest double. False when it is none of
 * that, or too large for a double, or so small that 0 is the nearest though it is not 0. */
TRNI_FN bool trni_phrase_decimal(trni_phrase p, int power, double *value)
{
    char text[TRNI_DECIMAL + 32], point[16], *end;
    int digits = 0, exponent = 0, sign = 1;
    size_t n = 0, i = 0;
    const int dot = trni_decimal_point(point);
    bool dotted = false, zero = true;
    if (p.length < 1 || p.length > 40 || dot < 0) return false;
    for (; i < p.length && (trni_is_digit(p.at[i]) || (p.at[i] == '.' && !dotted)); i++) {
        digits += p.at[i] != '.';
        zero = zero && (p.at[i] == '.' || p.at[i] == '0');
        if (p.at[i] != '.') {
            text[n++] = p.at[i];
            continue;
        }
        dotted = true;
        memcpy(text + n, point, (size_t)dot);
        n += (size_t)dot;
    }
    if (digits == 0 || p.at[0] == '.' || p.at[i - 1] == '.') return false;
    if (i < p.length) {
        if ((p.at[i] != 'e' && p.at[i] != 'E') || ++i == p.length) return false;
        if (p.at[i] == '+' || p.at[i] == '-') sign = p.at[i++] == '-' ? -1 : 1;
        if (p.length - i > 3 || !trni_phrase_whole(trni_phrase_of(p.at + i, p.length - i), &exponent)) return false;
    }
    snprintf(text + n, sizeof text - n, "e%d", sign * exponent + power);
    const double x = strtod(text, &end);
    if (*end || !(x >= 0 && x <= DBL_MAX) || (!zero && !(x > 0))) return false;
    *value = x;
    return true;
}

/* x, 0 or more, in units of 10^power: the fewest digits that trni_phrase_decimal reads as x again. */
TRNI_FN void trni_decimal_print(double x, int power, char text[TRNI_DECIMAL])
{
    char digits[32], shown[TRNI_DECIMAL], point[16];
    const int dot = trni_decimal_point(point);
    if (!(x > 0)) {
        trni_copy_text(text, TRNI_DECIMAL, "0");
        return;
    }
    for (int precision = 0; precision < 18; precision++) {
        double again = -1;
        snprintf(digits, sizeof digits, "%.*e", precision, x);
        int n = 0, exponent = 0;
        const char *e = strchr(digits, 'e');
        for (const char *at = digits; at < e; at++) /* the digits alone, without the point */
            if (trni_is_digit(*at) && (at == digits || at >= digits + 1 + dot)) shown[n++] = *at;
        exponent = (int)strtol(e + 1, NULL, 10) - power;
        if (exponent >= 0 && exponent < 16 && exponent >= n - 1) { /* whole */
            while (n <= exponent) shown[n++] = '0';
            shown[n] = 0;
        } else if (exponent >= 0 && exponent < n) {
            memmove(shown + exponent + 2, shown + exponent + 1, (size_t)(n - exponent - 1));
            shown[exponent + 1] = '.';
            shown[n + 1] = 0;
        } else if (exponent < 0 && exponent > -5) {
            memmove(shown + 1 - exponent, shown, (size_t)n);
            memset(shown, '0', (size_t)(1 - exponent));
            shown[1] = '.';
            shown[n + 1 - exponent] = 0;
        } else {
            if (n > 1) memmove(shown + 2, shown + 1, (size_t)(n - 1));
            if (n > 1) shown[1] = '.';
            snprintf(shown + n + (n > 1), 8, "e%d", exponent);
        }
        trni_copy_text(text, TRNI_DECIMAL, shown);
        if (trni_phrase_decimal(trni_phrase_of(text, strlen(text)), power, &again) && !(again < x || again > x)) return;
    }
}

#endif /* TRNI_NETWORK_TOPOLOGY_TEXT_H */
