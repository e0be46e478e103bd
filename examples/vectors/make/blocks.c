/* blocks.c - block scaling: 32 numbers, a power of two that they share, and back.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#include <trnmath/trn_mx.h>

enum { BLOCK = TRN_MX_BLOCK };

typedef struct block {
    const char *kind;
    uint32_t x[BLOCK];
} block;

/* An element of MX: a format of the files, or int8, which counts 64ths. */
typedef struct element {
    const char *name;
    trn_format format;
    const vec_format *codes; /* NULL: int8 */
} element;

/* ---- blocks ---- */

typedef void fill(block *b, vec_random *r, int number);

static float scaled(vec_random *r, int low, int high) /* normal, times a power of two */
{
    const int exponent = low + (int)vec_below(r, (uint32_t)(high - low + 1));
    return vec_normal(r) * vec_float((uint32_t)(exponent + 127) << 23);
}

static void normal(block *b, vec_random *r, int number)
{
    for (int i = 0; i < BLOCK; i++) b->x[i] = vec_bits(scaled(r, 4 * number - 40, 4 * number - 40));
}

static void wide(block *b, vec_random *r, int number)
{
    (void)number;
    for (int i = 0; i < BLOCK; i++) b->x[i] = vec_bits(scaled(r, -12, 4));
}

/* One number that chooses the scale: just below a power of two, on it, just above, half way to the next, its end. */
static void chosen(block *b, vec_random *r, int number)
{
    static const uint32_t top[] = { 0x3f7fffffu, 0x3f800000u, 0x3f800001u, 0x3fc00000u, 0x3fdfffffu, 0x3fe00000u,
                                    0x3fe00001u, 0x3ff00000u, 0x3fffffffu, 0x3fa00000u, 0x3fb00000u, 0x3f900000u };
    wide(b, r, number);
    for (int i = 0; i < BLOCK; i++)
        if ((b->x[i] & 0x7fffffffu) > 0x3f000000u) b->x[i] = (b->x[i] & 0x807fffffu) | 0x3e800000u;
    b->x[vec_below(r, BLOCK)] = top[number] | (number & 1 ? 0x80000000u : 0);
}

/* Multiples of eighths up to 2: ties of every element format. */
static void ties(block *b, vec_random *r, int number)
{
    for (int i = 0; i < BLOCK; i++)
        b->x[i] = vec_bits((float)((int)vec_below(r, 257) - 128) * vec_float((uint32_t)(121 - 2 * number) << 23));
    b->x[0] = 0x3f800000u;
}

static void subnormal(block *b, vec_random *r, int number)
{
    for (int i = 0; i < BLOCK; i++) b->x[i] = vec_draw(r) & (number % 2 ? 0x8000ffffu : 0x80ffffffu);
}

static void huge(block *b, vec_random *r, int number)
{
    for (int i = 0; i < BLOCK; i++) b->x[i] = vec_bits(scaled(r, 100, 122));
    b->x[number] = number % 2 ? 0xff7fffffu : 0x7f000000u;
}

static void zeros(block *b, vec_random *r, int number)
{
    for (int i = 0; i < BLOCK; i++) b->x[i] = number && (vec_draw(r) & 1) ? 0x80000000u : 0;
    if (number == 2) b->x[7] = 1;
}

static void not_numbers(block *b, vec_random *r, int number)
{
    static const uint32_t special[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 0x7f800001u };
    normal(b, r, 10);
    b->x[3 + number] = special[number];
}

static const struct family {
    const char *kind;
    fill *run;
    int count;
} families[] = {
    { "normal distribution", normal, 20 },
    { "numbers of many sizes", wide, 8 },
    { "the largest number on the edge of a scale", chosen, 12 },
    { "ties", ties, 6 },
    { "subnormal numbers", subnormal, 4 },
    { "numbers near the end of binary32", huge, 4 },
    { "zeros", zeros, 3 },
    { "NaN or infinity", not_numbers, 5 },
};
enum { FAMILIES = sizeof families / sizeof *families };

/* ---- quantise ---- */

static void put_quantised(vec_file *f, const element *e, trn_mx_scale rule, const block *b)
{
    float x[BLOCK];
    uint8_t code[BLOCK], scale;
    trn_error error;
    memcpy(x, b->x, sizeof x);
    trn_mx_quantize_args args = { .dst = trn_tensor_1d(e->format, code, BLOCK), .scale = rule, .error = &error };
    args.dst_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
    args.src = trn_tensor_1d(TRN_F32, x, BLOCK);
    if (trn_mx_quantize(&args) != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    vec_begin(f, b->kind);
    vec_words(f, 8, b->x, BLOCK);
    vec_arrow(f);
    vec_word(f, 2, scale);
    for (int i = 0; i < BLOCK; i++) vec_word(f, 2, code[i]);
    vec_end(f);
}

static void head_element(vec_file *f, const char *key, const element *e)
{
    if (e->codes)
        vec_head_format(f, key, e->codes);
    else
        vec_head(f, key, "%s, a code counts 64ths, -127 to 127", e->name);
}

static void make_quantise(const element *e, trn_mx_scale rule)
{
    const bool ocp = rule == TRN_MX_SCALE_OCP_FLOOR;
    vec_file f = vec_open("mx_quantize", "mx/quantize.%s.%s", e->name, ocp ? "ocp_floor" : "neuron");
    vec_random r = { 38, (uint64_t)e->format, 0 };
    vec_head(&f, "from", "float32");
    head_element(&f, "to", e);
    vec_head(&f, "scale_rule", "%s", ocp ? "ocp_floor" : "neuron");
    vec_head(&f, "rule",
             "scale = 2^(floor(log2(largest |x|)) - emax%s), kept within 2^-127 and 2^127, emax being the "
             "exponent of the element's largest number (int8: 0); its code is the exponent + 127",
             ocp ? "" : " + 1");
    vec_head(&f, "rule", "each x / scale is rounded once, to nearest even, and saturates; subnormal codes are kept");
    vec_head(&f, "rule", "all zeros: scale 00, and zeros keep their signs; NaN or infinity: scale ff, all codes 00");
    vec_columns(&f, "x[32]/8", "scale/2 code[32]/2");
    vec_head(&f, "nan", "none");
    vec_known(&f, "documented",
              ocp ? "OCP Microscaling Formats (MX) Specification 1.0, 6.3; the scale of a block with "
                    "NaN or infinity, of zeros, and its limits: assumed"
                  : "NKI, nki.isa.quantize_mx (E4M3FN and E5M2), MXFP guide; the scale of a block "
                    "with NaN or infinity: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < FAMILIES; i++) {
        for (int number = 0; number < families[i].count; number++) {
            block b = { families[i].kind, { 0 } };
            families[i].run(&b, &r, number);
            put_quantised(&f, e, rule, &b);
        }
    }
    vec_close(&f);
}

/* ---- dequantise: every code of an element under chosen scales ---- */

static void put_dequantised(vec_file *f, const element *e, uint8_t scale, uint32_t first)
{
    float x[BLOCK];
    uint8_t code[BLOCK];
    trn_error error;
    const uint32_t mask = (1u << trn_format_bits(e->format)) - 1;
    for (uint32_t i = 0; i < BLOCK; i++) code[i] = (uint8_t)((first + i) & mask);
    trn_mx_dequantize_args args = { .dst = trn_tensor_1d(TRN_F32, x, BLOCK), .error = &error };
    args.src = trn_tensor_1d(e->format, code, BLOCK);
    args.src_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
    if (trn_mx_dequantize(&args) != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    vec_begin(f, scale == 0xff      ? "the scale is NaN"
                 : scale < 24       ? "results may be subnormal"
                 : scale > 254 - 16 ? "results may overflow"
                                    : "usual scales");
    vec_word(f, 2, scale);
    for (int i = 0; i < BLOCK; i++) vec_word(f, 2, code[i]);
    vec_arrow(f);
    for (int i = 0; i < BLOCK; i++) vec_word(f, 8, vec_bits(x[i]));
    vec_end(f);
}

static void make_dequantise(const element *e)
{
    static const uint8_t scales[] = { 127, 128, 100, 160, 0, 1, 2, 10, 18, 246, 253, 254, 0xff };
    vec_file f = vec_open("mx_dequantize", "mx/dequantize.%s", e->name);
    const int bits = trn_format_bits(e->format);
    head_element(&f, "from", e);
    vec_head(&f, "to", "float32");
    vec_head(&f, "rule",
             "x = code * 2^(scale - 127), rounded once to nearest even, overflow to infinity; subnormal results "
             "are kept; scale ff makes all NaN; a NaN is 7fc00000, or ffc00000 with the sign of its code");
    vec_columns(&f, "scale/2 code[32]/2", "x[32]/8");
    vec_head(&f, "nan", "7f800001-7fffffff ff800001-ffffffff");
    vec_known(&f, "documented", "OCP Microscaling Formats (MX) Specification 1.0; the bits of NaN: assumed");
    for (int i = 0; i < (int)sizeof scales; i++)
        for (uint32_t first = 0; first < 1u << bits; first += BLOCK)
            if (bits > 4 || first == 0) put_dequantised(&f, e, scales[i], first);
    vec_close(&f);
}

void vec_make_blocks(void)
{
    static const element elements[] = {
        { "float8_e4m3fn", TRN_F8_E4M3FN, NULL }, { "float8_e5m2", TRN_F8_E5M2, NULL },
        { "float6_e2m3fn", TRN_F6_E2M3, NULL },   { "float6_e3m2fn", TRN_F6_E3M2, NULL },
        { "float4_e2m1fn", TRN_F4_E2M1, NULL },   { "int8", TRN_I8, NULL }
    };
    for (int i = 0; i < (int)(sizeof elements / sizeof *elements); i++) {
        element e = elements[i];
        if (e.format != TRN_I8) e.codes = vec_format_named(e.name);
        make_quantise(&e, TRN_MX_SCALE_OCP_FLOOR);
        if (e.format == TRN_F8_E4M3FN || e.format == TRN_F8_E5M2) make_quantise(&e, TRN_MX_SCALE_NEURON);
        make_dequantise(&e);
    }
}
