/* numbers.h - the tool "numbers": one number in every format: its bits, its neighbours, and every way to round it.
 * SPDX-License-Identifier: MIT
 *
 *     numbers?x=0.1&as=number&overflow=default      as: "number", or the format whose code x is
 */
#ifndef WEB_NUMBERS_H
#define WEB_NUMBERS_H

#include "choices.h"
#include "codes.h"

/* ---- one format ---- */

/* Digits of the code's hexadecimal: those of its container. */
static void put_code(answer *a, const char *name, const trn_format_info *f, uint32_t code)
{
    char text[16];
    snprintf(text, sizeof text, "0x%0*x", (f->bits + 3) / 4, (unsigned)code);
    put_text(a, name, text);
}

/* "0 01111011 1001101": sign, exponent and mantissa; an integer's bits are one word. */
static void put_bits(answer *a, const trn_format_info *f, uint32_t code)
{
    char text[64];
    int used = 0;
    const int bits = code_bits(f), low = f->kind == TRN_KIND_FLOAT ? f->mantissa_bits : 0;
    for (int i = bits - 1; i >= 0; i--) {
        text[used++] = code >> (i + f->low_zeros) & 1u ? '1' : '0';
        const bool cut = f->kind == TRN_KIND_FLOAT && (i == bits - 1 || (i == low && low > 0));
        if (cut && i) text[used++] = ' ';
    }
    text[used] = 0;
    put_text(a, "bits", text);
}

static void put_neighbour(answer *a, const char *name, trn_format format, int64_t rank)
{
    uint32_t code;
    if (!code_of(format, rank, &code)) return;
    put_open(a, name, '{');
    put_code(a, "code", trn_format_info_of(format), code);
    put_shown(a, "value", value_of(format, code));
    put_close(a, '}');
}

static bool rounds_up(trn_format format, float x, trn_overflow overflow, uint32_t random, uint32_t low)
{
    return trn_encode(format, x, TRN_STOCHASTIC, overflow, random) != low;
}

/* How many of the 2^32 random words send x to the number that is farther from zero. The larger the word, the sooner. */
static double words_up(trn_format format, float x, trn_overflow overflow)
{
    const uint32_t low = trn_encode(format, x, TRN_STOCHASTIC, overflow, 0);
    uint64_t from = 0, to = (uint64_t)1 << 32; /* words below `from` do not, and those from `to` on do */
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (rounds_up(format, x, overflow, (uint32_t)middle, low))
            to = middle;
        else
            from = middle + 1;
    }
    return 0x1p32 - (double)to;
}

/* Which way x went. */
static const char *way_of(double x, double value)
{
    return value > x ? "up" : value < x ? "down" : value == x ? "exact" : "nan";
}

static void put_modes(answer *a, trn_format format, float x, trn_overflow overflow)
{
    const trn_format_info *f = trn_format_info_of(format);
    put_open(a, "modes", '[');
    for (int mode = 0; mode < TRN_ROUNDING_COUNT; mode++) {
        const uint32_t code = trn_encode(format, x, (trn_rounding)mode, overflow, UINT32_MAX);
        put_open(a, NULL, '{');
        put_text(a, "mode", trn_round_text((trn_rounding)mode));
        put_code(a, "code", f, code);
        put_shown(a, "value", value_of(format, code));
        put_text(a, "way", way_of((double)x, value_of(format, code)));
        if (mode == TRN_STOCHASTIC) put_number(a, "chance", words_up(format, x, overflow) / 0x1p32);
        put_close(a, '}');
    }
    put_close(a, ']');
}

/* Units in the last place that the value is off: by the distance to the next number on that side. */
static void put_error(answer *a, trn_format format, double x, uint32_t code)
{
    const double value = value_of(format, code), error = value - x;
    uint32_t next;
    put_shown(a, "error", error);
    if (!(x - x == 0) || error == 0) {
        put_shown(a, "ulps", error == 0 || value == x ? 0 : error);
        return;
    }
    const bool any = code_of(format, rank_of(trn_format_info_of(format), code) + (error < 0 ? 1 : -1), &next);
    put_shown(a, "ulps", any ? error / fabs(value_of(format, next) - value) : (double)NAN);
}

static void put_row(answer *a, trn_format format, float x, trn_overflow overflow)
{
    const trn_format_info *f = trn_format_info_of(format);
    const uint32_t code = trn_encode(format, x, TRN_NEAREST_EVEN, overflow, 0);
    const double value = value_of(format, code);
    put_open(a, NULL, '{');
    put_text(a, "format", f->name);
    put_text(a, "ocp", f->ocp);
    put_whole(a, "exponent_bits", f->exponent_bits);
    put_whole(a, "mantissa_bits", f->mantissa_bits);
    put_code(a, "code", f, code);
    put_bits(a, f, code);
    put_shown(a, "value", value);
    if (value == value) {
        put_neighbour(a, "below", format, rank_of(f, code) - 1);
        put_neighbour(a, "above", format, rank_of(f, code) + 1);
    }
    put_error(a, format, (double)x, code);
    put_modes(a, format, x, overflow);
    put_close(a, '}');
}

/* ---- the question ---- */

/* x is the code of a format. */
static bool read_code(const ask *q, trn_format format, float *x, trn_error *why)
{
    const trn_format_info *f = trn_format_info_of(format);
    const char *text = past_blanks(ask_text(q, "x", "0x0"));
    const uint64_t most = f->bits < 32 ? ((uint64_t)1 << f->bits) - 1 : UINT32_MAX;
    char *end;
    errno = 0;
    const unsigned long long code = strtoull(text, &end, 0);
    if (end == text || is_bare_prefix(text) || *past_blanks(end) || errno || *text == '-' || code > most)
        return refuse(why, "x is '%.40s', expected a code of %s, from 0 to 0x%llx", text, f->name,
                      (unsigned long long)most);
    if (code & (((uint64_t)1 << f->low_zeros) - 1))
        return refuse(why, "x is '%.40s', and the lowest %d bits of a code of %s are zero", text, f->low_zeros,
                      f->name);
    *x = trn_decode(format, (uint32_t)code);
    return true;
}

static bool read_number(const ask *q, float *x, trn_error *why)
{
    trn_format format;
    if (strcmp(ask_text(q, "as", "number"), "number") == 0) return ask_float(q, "x", "0.1", x, why);
    return ask_format(q, "as", "number", &format, why) && read_code(q, format, x, why);
}

static bool numbers(const ask *q, answer *a, trn_error *why)
{
    float x = 0;
    int overflow;
    if (!ask_knows(q, "x as overflow", why) || !read_number(q, &x, why) ||
        !ask_choice(q, "overflow", "default", &overflows, &overflow, why))
        return false;
    put_shown(a, "x", (double)x);
    put_code(a, "code", trn_format_info_of(TRN_F32), trn_encode(TRN_F32, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
    put_open(a, "formats", '[');
    for (int i = 1; i < TRN_FORMAT_COUNT; i++) put_row(a, (trn_format)i, x, (trn_overflow)overflow);
    put_close(a, ']');
    return true;
}

#endif /* WEB_NUMBERS_H */
