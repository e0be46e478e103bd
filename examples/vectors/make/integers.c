/* integers.c - binary32 to integers, and integers of 32 bits to binary32.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <math.h>
#include <stdio.h>

typedef struct integer {
    const char *name;
    trn_format format;
    double low, high;
} integer;

static const integer integers[] = {
    { "int8", TRN_I8, -128, 127 },
    { "uint8", TRN_U8, 0, 255 },
    { "int16", TRN_I16, -32768, 32767 },
    { "uint16", TRN_U16, 0, 65535 },
    { "int32", TRN_I32, -0x1p31, 0x1p31 - 1 },
    { "uint32", TRN_U32, 0, 0x1p32 - 1 },
};
enum { INTEGERS = sizeof integers / sizeof *integers };

static const char *const kinds[] = { "whole numbers", "ties", "other fractions", "beyond the ends", "infinity", "NaN" };

static const char *kind_of(const integer *to, uint32_t bits)
{
    const double x = (double)vec_float(bits);
    if (x != x) return kinds[5];
    if (x - x != 0) return kinds[4];
    if (x < to->low || x > to->high) return kinds[3];
    if (x == floor(x)) return kinds[0];
    return x - floor(x) == 0.5 ? kinds[1] : kinds[2];
}

/* Around the ends, around small numbers and their halves, and by chance. */
static int inputs_of(const integer *to, vec_random *r, uint32_t *x)
{
    const double base[] = {
        to->low, to->high, to->high / 2, to->low / 2, to->high * 16, 1, 2, 3, 126, 127, 8388607, 0
    };
    const double step[] = { -1.5, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.5 };
    const uint32_t *edge;
    const int edges = vec_edges(&edge);
    int n = 0;
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 11; j++) x[n++] = vec_bits((float)(base[i] + step[j]));
    for (int i = 0; i < edges; i++) x[n++] = edge[i];
    for (int i = 0; i < 64; i++) x[n++] = vec_draw(r);
    for (int i = 0; i < 64; i++) x[n++] = vec_bits(vec_normal(r) * (float)(to->high / 3));
    return n;
}

static void make_cast(const integer *to, trn_rounding rounding)
{
    const int digits = trn_format_bits(to->format) / 4;
    uint32_t x[512];
    char out[16];
    vec_file f = vec_open("encode", "cast/%s.%s", to->name, trn_round_text(rounding));
    vec_random r = { 48, (uint64_t)to->format, 0 };
    const int count = inputs_of(to, &r, x);
    snprintf(out, sizeof out, "code/%d", digits);
    vec_head(&f, "from", "float32");
    vec_head(&f, "to", "%s", to->name);
    vec_head(&f, "rounding", "%s", trn_round_text(rounding));
    vec_head(&f, "overflow", "saturate");
    vec_columns(&f, "x/8", out);
    vec_head(&f, "nan", "none");
    vec_head(&f, "rule",
             "x is rounded %s; beyond the ends, %.0f and %.0f, it stops there; NaN gives 0; negative numbers are "
             "in two's complement",
             rounding == TRN_TOWARD_ZERO ? "toward zero" : "to the nearest whole number, of two as near the even one",
             to->low, to->high);
    vec_known(&f, "assumed", "NKI: engines convert to integers; which way they round, and that they saturate: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int kind = 0; kind < 6; kind++)
        for (int i = 0; i < count; i++) {
            if (strcmp(kind_of(to, x[i]), kinds[kind]) != 0) continue;
            vec_begin(&f, kinds[kind]);
            vec_word(&f, 8, x[i]);
            vec_arrow(&f);
            vec_word(&f, digits, trn_encode(to->format, vec_float(x[i]), rounding, TRN_OVERFLOW_DEFAULT, 0));
            vec_end(&f);
        }
    vec_close(&f);
}

/* ---- 32 bits to binary32, which has 24 ---- */

static void make_decode(const integer *from)
{
    vec_file f = vec_open("decode", "decode/%s", from->name);
    vec_random r = { 49, (uint64_t)from->format, 0 };
    vec_head(&f, "from", "%s", from->name);
    vec_head(&f, "to", "float32");
    vec_columns(&f, "code/8", "x/8");
    vec_head(&f, "nan", "none");
    vec_head(&f, "rule", "rounded once, to nearest even");
    vec_known(&f, "assumed", "that engines read integers as binary32: documented (NKI); the rounding: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int bit = 0; bit < 32; bit++)
        for (int step = -2; step <= 2; step++) {
            const uint32_t code = ((uint32_t)1 << bit) + (uint32_t)step;
            vec_begin(&f, "around powers of two");
            vec_word(&f, 8, code);
            vec_arrow(&f);
            vec_word(&f, 8, vec_bits(trn_decode(from->format, code)));
            vec_end(&f);
        }
    for (int i = 0; i < 160; i++) { /* ties, their neighbours, and others */
        const uint32_t word = vec_draw(&r),
                       code = i % 4 == 3 ? word : ((word | 0x2000000u) & 0x83fffffcu) + (uint32_t)(i % 4);
        vec_begin(&f, i % 4 == 3 ? "any bits" : "ties and their neighbours");
        vec_word(&f, 8, code);
        vec_arrow(&f);
        vec_word(&f, 8, vec_bits(trn_decode(from->format, code)));
        vec_end(&f);
    }
    vec_close(&f);
}

void vec_make_integers(void)
{
    for (int i = 0; i < INTEGERS; i++) {
        make_cast(&integers[i], TRN_NEAREST_EVEN);
        make_cast(&integers[i], TRN_TOWARD_ZERO);
        if (integers[i].high > 0x1p24) make_decode(&integers[i]);
    }
}
