/* cast.c - binary32 to every format, rounded in every way that the engines have, and every code back.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <math.h>
#include <stdio.h>

static const char *rule_of_overflow(trn_overflow overflow, trn_rounding rounding)
{
    if (overflow == TRN_SATURATE) return "a finite x beyond the largest number becomes the largest";
    switch (rounding) {
    case TRN_TOWARD_ZERO: return "a finite x beyond the largest number becomes the largest";
    case TRN_STOCHASTIC:
        return "a finite x below the step after the largest number becomes the largest, one beyond that step overflows";
    default: return "a finite x that would round beyond the largest number overflows";
    }
}

static const char *rule_of_rounding(trn_rounding rounding)
{
    switch (rounding) {
    case TRN_TOWARD_ZERO: return "once, to the neighbour that is nearer to zero";
    case TRN_STOCHASTIC:
        return "once, away from zero if and only if floor(2^32 * p) + random >= 2^32, p being the position of |x| "
               "between its two neighbours, 0 to 1";
    default: return "once, to the nearest number, of two as near the one with an even code";
    }
}

static vec_file open_cast(const vec_format *to, trn_rounding rounding, trn_overflow overflow)
{
    vec_file f = vec_open("encode", "cast/%s.%s%s", to->name, trn_round_text(rounding),
                          overflow == TRN_SATURATE ? ".saturate" : "");
    const bool scale = to->info.kind == TRN_KIND_SCALE;
    vec_head(&f, "from", "float32");
    vec_head_format(&f, "to", to);
    vec_head(&f, "rounding", "%s", trn_round_text(rounding));
    vec_head(&f, "overflow", "%s", overflow == TRN_SATURATE ? "saturate" : "default");
    vec_head_nan(&f, to);
    vec_head(&f, "rule", "x, subnormal or not, is rounded %s; subnormal results are kept; %s",
             scale && rounding == TRN_NEAREST_EVEN ? "once, to the nearest power of two, of two as near the larger"
                                                   : rule_of_rounding(rounding),
             rule_of_overflow(overflow, rounding));
    vec_head(&f, "rule", "overflow and infinity give the code 'overflow', NaN the code 'nan', each with x's sign%s",
             scale                                                   ? "less"
             : to->info.nan_code == 0x20 || to->info.nan_code == 0x8 ? " (NaN: with the other one)"
                                                                     : "");
    if (scale)
        vec_head(&f, "rule", "what is below 2^-127 becomes 2^-127; zero and negative numbers become %s",
                 overflow == TRN_SATURATE ? "00" : "ff");
    vec_known(&f, rounding == TRN_STOCHASTIC || overflow == TRN_SATURATE ? "assumed" : to->provenance, to->source);
    if (overflow == TRN_SATURATE)
        vec_head(&f, "source",
                 "that an infinity is no finite x, and stays what it is: assumed; OCP's own saturating "
                 "conversion gives the code 'largest'");
    if (rounding == TRN_STOCHASTIC)
        vec_head(&f, "source",
                 "that Trainium rounds so: documented (the same SDK, rounding-modes.rst); that it compares 32 "
                 "bits and stops at the largest number: assumed");
    return f;
}

static vec_file begin_cast(const vec_format *to, trn_rounding rounding, trn_overflow overflow, const char *in,
                           const vec_random *r)
{
    vec_file f = open_cast(to, rounding, overflow);
    char out[16];
    snprintf(out, sizeof out, "code/%d", vec_digits(to));
    vec_columns(&f, in, out);
    vec_head(&f, "seed", "%llu", (unsigned long long)r->seed);
    return f;
}

/* ---- with the format's own rounding: every hard number, or, saturating, those that saturation may concern ---- */

static void make_cast(const vec_format *to, trn_rounding rounding, trn_overflow overflow)
{
    vec_random r = { 36, (uint64_t)to->info.bits << 8 | (uint64_t)to->info.exponent_bits, 0 };
    vec_inputs list = vec_hard(to, &r, overflow == TRN_SATURATE);
    vec_file f = begin_cast(to, rounding, overflow, "x/8", &r);
    for (int kind = 0; kind < vec_kinds(); kind++) {
        for (size_t i = 0; i < list.count; i++) {
            if (list.kind[i] != kind) continue;
            vec_begin(&f, vec_kind_at(kind));
            vec_word(&f, 8, list.x[i]);
            vec_arrow(&f);
            vec_word(&f, vec_digits(to), vec_encode(to, list.x[i], rounding, overflow, 0));
            vec_end(&f);
        }
    }
    vec_inputs_free(&list);
    vec_close(&f);
}

/* ---- with random bits: those at which the result changes, and others ---- */

static void put_stochastic(vec_file *f, const vec_format *to, trn_overflow overflow, uint32_t x, uint32_t random)
{
    vec_begin(f, f->kind);
    vec_word(f, 8, x);
    vec_word(f, 8, random);
    vec_arrow(f);
    vec_word(f, vec_digits(to), vec_encode(to, x, TRN_STOCHASTIC, overflow, random));
    vec_end(f);
}

static void put_around(vec_file *f, const vec_format *to, trn_overflow overflow, uint32_t x, vec_random *r)
{
    const bool number = (x & 0x7fffffffu) < 0x7f800000u;
    const uint64_t away = number ? (uint64_t)floor(vec_position(to, x) * 0x1p32) : 0; /* so many words round away */
    if (away > 0 && away < (uint64_t)1 << 32) {
        put_stochastic(f, to, overflow, x, (uint32_t)(((uint64_t)1 << 32) - away));
        put_stochastic(f, to, overflow, x, (uint32_t)(((uint64_t)1 << 32) - away - 1));
    } else {
        put_stochastic(f, to, overflow, x, 0xffffffffu);
    }
    put_stochastic(f, to, overflow, x, vec_draw(r));
}

/* Of a kind that has many numbers, some fifty. */
static void put_kind(vec_file *f, const vec_format *to, trn_overflow overflow, const vec_inputs *list, int kind,
                     vec_random *r)
{
    size_t all = 0, at = 0;
    for (size_t i = 0; i < list->count; i++) all += list->kind[i] == kind;
    const size_t every = all > 48 ? all / 48 : 1;
    if (all > 0) vec_begin(f, vec_kind_at(kind));
    for (size_t i = 0; i < list->count; i++)
        if (list->kind[i] == kind && at++ % every == 0) put_around(f, to, overflow, list->x[i], r);
}

static void make_stochastic(const vec_format *to, trn_overflow overflow)
{
    vec_random r = { 37, (uint64_t)to->info.bits << 8 | (uint64_t)to->info.exponent_bits, 0 };
    vec_inputs list = vec_hard(to, &r, overflow == TRN_SATURATE);
    vec_file f = begin_cast(to, TRN_STOCHASTIC, overflow, "x/8 random/8", &r);
    for (int kind = 0; kind < vec_kinds(); kind++) put_kind(&f, to, overflow, &list, kind, &r);
    vec_inputs_free(&list);
    vec_close(&f);
}

void vec_make_casts(void)
{
    for (int i = 0; i < VEC_FORMATS; i++) {
        const vec_format *to = vec_format_at(i);
        for (int overflow = TRN_OVERFLOW_DEFAULT; overflow <= TRN_SATURATE; overflow++) {
            make_cast(to, TRN_NEAREST_EVEN, (trn_overflow)overflow);
            make_cast(to, TRN_TOWARD_ZERO, (trn_overflow)overflow);
            make_stochastic(to, (trn_overflow)overflow);
        }
    }
}

/* ---- every code ---- */

static const char *decode_kind(const vec_format *f, uint32_t code)
{
    const uint32_t magnitude = vec_decode(f, code) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return "NaN";
    if (magnitude == 0x7f800000u) return "infinity";
    if (magnitude == 0) return "zero";
    const uint32_t mask = (1u << (f->info.exponent_bits + f->info.mantissa_bits)) - 1;
    const bool subnormal = f->info.kind == TRN_KIND_FLOAT && (code & mask) < 1u << f->info.mantissa_bits;
    return subnormal ? "subnormal" : "normal";
}

static void make_decode(const vec_format *from)
{
    static const char *const kinds[] = { "zero", "subnormal", "normal", "infinity", "NaN" };
    vec_file f = vec_open("decode", "decode/%s", from->name);
    char in[16];
    snprintf(in, sizeof in, "code/%d", vec_digits(from));
    vec_head_format(&f, "from", from);
    vec_head(&f, "to", "float32");
    vec_head(&f, "nan", "7f800001-7fffffff ff800001-ffffffff");
    vec_head(&f, "rule", "exact; every NaN becomes 7fc00000, or ffc00000 where the code's sign bit is set");
    vec_columns(&f, in, "x/8");
    vec_known(&f, from->provenance, from->source);
    for (int kind = 0; kind < 5; kind++) {
        for (uint32_t code = 0; code < 1u << from->info.bits; code++) {
            if (strcmp(decode_kind(from, code), kinds[kind]) != 0) continue;
            vec_begin(&f, kinds[kind]);
            vec_word(&f, vec_digits(from), code);
            vec_arrow(&f);
            vec_word(&f, 8, vec_decode(from, code));
            vec_end(&f);
        }
    }
    vec_close(&f);
}

void vec_make_decodes(void)
{
    for (int i = 0; i < VEC_FORMATS; i++)
        if (vec_format_at(i)->info.bits <= 16) make_decode(vec_format_at(i)); /* a TF32 is its binary32 number */
}
