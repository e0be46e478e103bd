/* list.c - the numbers that can be converted, and which conversions a run is about.
 * SPDX-License-Identifier: MIT
 */
#include "convert.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static const tb_number numbers[] = {
    { "f32", TRN_F32, false },
    { "tf32", TRN_TF32, false },
    { "bf16", TRN_BF16, false },
    { "f16", TRN_F16, false },
    { "e4m3", TRN_F8_E4M3, false },
    { "e4m3fn", TRN_F8_E4M3FN, false },
    { "e5m2", TRN_F8_E5M2, false },
    { "e3m4", TRN_F8_E3M4, false },
    { "e8m0", TRN_F8_E8M0, false },
    { "e2m3", TRN_F6_E2M3, false },
    { "e3m2", TRN_F6_E3M2, false },
    { "e2m1", TRN_F4_E2M1, false },
    { "cfp8", TRN_CFP8, false },
    { "i8", TRN_I8, false },
    { "u8", TRN_U8, false },
    { "i16", TRN_I16, false },
    { "u16", TRN_U16, false },
    { "i32", TRN_I32, false },
    { "u32", TRN_U32, false },
    { "mxfp8_e4m3fn", TRN_F8_E4M3FN, true },
    { "mxfp8_e5m2", TRN_F8_E5M2, true },
    { "mxfp6_e2m3", TRN_F6_E2M3, true },
    { "mxfp6_e3m2", TRN_F6_E3M2, true },
    { "mxfp4", TRN_F4_E2M1, true },
    { "mxint8", TRN_I8, true },
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

const tb_number *tb_number_at(int i) { return i < NUMBERS ? &numbers[i] : NULL; }
uint32_t tb_number_bit(const tb_number *number) { return (uint32_t)1 << (number - numbers); }

const tb_number *tb_number_find(const char *name)
{
    trn_format format = TRN_FORMAT_UNSET;
    trn_format_read(&format, name, NULL);
    for (int i = 0; i < NUMBERS; i++)
        if (strcmp(numbers[i].name, name) == 0) return &numbers[i];
    for (int i = 0; i < NUMBERS; i++)
        if (format != TRN_FORMAT_UNSET && numbers[i].format == format && !numbers[i].mx) return &numbers[i];
    return NULL;
}

/* ---- ways to round ---- */

static const struct way {
    trn_rounding rounding;
    trn_overflow overflow;
    int sr_bits;
    bool xorwow;
    const char *suffix;
} ways[] = {
    { TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0, false, "" },
    { TRN_NEAREST_EVEN, TRN_SATURATE, 0, false, " sat" },
    { TRN_STOCHASTIC, TRN_OVERFLOW_DEFAULT, 32, false, " SR32" },
    { TRN_STOCHASTIC, TRN_OVERFLOW_DEFAULT, 16, false, " SR16" },
    { TRN_STOCHASTIC, TRN_OVERFLOW_DEFAULT, 32, true, " SR32 xorwow" },
    { TRN_STOCHASTIC, TRN_OVERFLOW_DEFAULT, 16, true, " SR16 xorwow" },
    { TRN_TOWARD_ZERO, TRN_OVERFLOW_DEFAULT, 0, false, " RZ" },
    { TRN_TOWARD_POSITIVE, TRN_OVERFLOW_DEFAULT, 0, false, " RU" },
    { TRN_TOWARD_NEGATIVE, TRN_OVERFLOW_DEFAULT, 0, false, " RD" },
    { TRN_TO_ODD, TRN_OVERFLOW_DEFAULT, 0, false, " RO" },
};
enum {
    WAYS = sizeof ways / sizeof ways[0],
    NEAREST = 1,
    SATURATED = 2,
    RANDOM = 4 | 8 | 16 | 32
}; /* bits: rows of ways */

/* ---- the usual conversions, in the order of the table ---- */

static const struct usual {
    const char *from, *to;
    unsigned ways;
} usuals[] = {
    { "f32", "bf16 f16 tf32 e4m3 e4m3fn e5m2 e3m4 e8m0 e2m3 e3m2 e2m1 i8 u8 i16 i32", NEAREST },
    { "f32", "bf16 f16 tf32 e4m3 e4m3fn e5m2 e3m4 e8m0 e2m3 e3m2 e2m1", SATURATED },
    { "f32", "bf16 f16 tf32 e4m3 e4m3fn e5m2 e3m4 e2m1", RANDOM },
    { "bf16 f16 tf32 e4m3 e4m3fn e5m2 e3m4 e8m0 e2m3 e3m2 e2m1 i8 u8 i16 i32", "f32", NEAREST },
    { "bf16", "f16 e4m3 e4m3fn e5m2 e3m4", NEAREST },
    { "f16", "bf16 e4m3 e4m3fn e5m2 e3m4", NEAREST },
    { "e4m3 e4m3fn e5m2 e3m4", "bf16 f16", NEAREST },
    { "f32 bf16", "mxfp8_e4m3fn mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8", NEAREST },
    { "mxfp8_e4m3fn mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8", "f32", NEAREST },
};
enum { USUALS = sizeof usuals / sizeof usuals[0] };

/* Is it one of the words? */
static bool listed(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}

/* ---- the run's conversions ---- */

static bool asked(uint32_t set, uint32_t bit) { return set == 0 || (set & bit) != 0; }

static bool passes(const tb_conversion_filter *f, const tb_number *from, const tb_number *to, const struct way *way)
{
    return asked(f->from, tb_number_bit(from)) && asked(f->to, tb_number_bit(to)) &&
           asked(f->rounding, 1u << way->rounding) && asked(f->overflow, 1u << way->overflow);
}

/* Conversions that exist: block formats are made from, and turned into, the formats that compute; nothing becomes
 * itself; where nothing is ever rounded there is but one way. */
static bool exists(const tb_number *from, const tb_number *to, int way)
{
    const bool from_wide = from->format == TRN_F32 || from->format == TRN_BF16 || from->format == TRN_F16;
    const bool to_wide = to->format == TRN_F32 || to->format == TRN_BF16;
    if (from->mx || to->mx) return way == 0 && ((to->mx && !from->mx && from_wide) || (from->mx && !to->mx && to_wide));
    return from != to && (way == 0 || to->format != TRN_F32);
}

static void name_it(tb_conversion *c, const char *suffix)
{
    snprintf(c->name, sizeof c->name, "%s->%s%s", c->from->name, c->to->name, suffix);
}

static void append(tb_conversion *list, int *count, int from, int to, int way)
{
    const struct way *w = &ways[way];
    tb_conversion *c = &list[(*count)++];
    *c = (tb_conversion){ &numbers[from], &numbers[to], w->rounding, w->overflow, w->sr_bits, w->xorwow, "" };
    name_it(c, w->suffix);
}

static void add_usual(tb_conversion *list, int *count, const tb_conversion_filter *f, const struct usual *usual)
{
    for (int way = 0; way < WAYS; way++)
        for (int from = 0; from < NUMBERS; from++)
            for (int to = 0; to < NUMBERS; to++)
                if ((usual->ways >> way & 1) && listed(usual->from, numbers[from].name) &&
                    listed(usual->to, numbers[to].name) && passes(f, &numbers[from], &numbers[to], &ways[way]))
                    append(list, count, from, to, way);
}

tb_conversion *tb_conversions(const tb_conversion_filter *f, int *count)
{
    tb_conversion *list = malloc(sizeof *list * WAYS * NUMBERS * NUMBERS);
    *count = 0;
    if (!list) return NULL;
    for (int i = 0; i < USUALS && !f->all; i++) add_usual(list, count, f, &usuals[i]);
    for (int way = 0; way < WAYS && (f->all || *count == 0); way++)
        for (int from = 0; from < NUMBERS; from++)
            for (int to = 0; to < NUMBERS; to++)
                if (exists(&numbers[from], &numbers[to], way) && passes(f, &numbers[from], &numbers[to], &ways[way]))
                    append(list, count, from, to, way);
    return list;
}

static double bytes_of(const tb_number *number)
{
    return (double)trn_format_bytes(number->format) + (number->mx ? 1.0 / TB_MX_BLOCK : 0);
}
bool tb_is_integer(trn_format format) { return trn_format_info_of(format)->exponent_bits == 0; }

double tb_bytes_read(const tb_conversion *c) { return bytes_of(c->from); }
double tb_bytes_written(const tb_conversion *c) { return bytes_of(c->to); }
