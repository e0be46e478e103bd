/* dots.c - one element of a product of the Tensor engine: the order of its sums is what counts.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#include <trnmath/trn_matmul.h>

enum { MOST_K = 768 };

typedef struct dot {
    const char *name; /* of the file, below dot/ */
    const char *a, *b;
    int k;
    bool double_row, accumulate, scales, psum_bf16;
    trn_generation generation; /* 0: any */
    const char *provenance, *source;
} dot;

/* ---- operands ---- */

typedef struct operands {
    const vec_format *format[2];
    uint32_t code[2][MOST_K];
    uint32_t scale[2][MOST_K / 32];
    uint32_t c;
} operands;

static uint32_t near_code(const vec_format *f, float x)
{
    return vec_encode(f, vec_bits(x), TRN_NEAREST_EVEN, TRN_SATURATE, 0);
}

static float power(int exponent) { return vec_float((uint32_t)(exponent + 127) << 23); }

static void all_normal(operands *o, vec_random *r, const dot *d)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < d->k; k++) o->code[side][k] = near_code(o->format[side], vec_normal(r));
    o->c = vec_bits(vec_normal(r) * 8);
}

static void many_sizes(operands *o, vec_random *r, const dot *d)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < d->k; k++) {
            const float size = power((int)vec_below(r, 17) - 8);
            o->code[side][k] = near_code(o->format[side], vec_normal(r) * size);
        }
    o->c = vec_bits(vec_normal(r) * 64);
}

/* 2^24 and ones, where the format has such numbers; else its largest and its small ones: every chain tells itself. */
static void one_large(operands *o, vec_random *r, const dot *d)
{
    const bool wide = o->format[0]->info.exponent_bits == 8;
    const float large = wide ? 0x1p12f : 224.0f, small = wide ? 1.0f : 0.015625f;
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < d->k; k++) o->code[side][k] = near_code(o->format[side], small);
    const uint32_t at = vec_below(r, (uint32_t)d->k);
    for (int side = 0; side < 2; side++) o->code[side][at] = near_code(o->format[side], large);
    o->c = 0;
}

static void cancellation(operands *o, vec_random *r, const dot *d)
{
    all_normal(o, r, d);
    for (int k = 0; k + 1 < d->k; k += 2) { /* a product and nearly its opposite, somewhere else */
        const int other = (int)vec_below(r, (uint32_t)d->k);
        const uint32_t sign = 1u << (o->format[0]->info.exponent_bits + o->format[0]->info.mantissa_bits);
        o->code[0][other] = o->code[0][k] ^ sign << o->format[0]->info.low_zeros;
        o->code[1][other] = o->code[1][k];
    }
    o->c = vec_bits(-power(-20));
}

static void subnormals(operands *o, vec_random *r, const dot *d)
{
    for (int side = 0; side < 2; side++) {
        const trn_format_info *i = &o->format[side]->info;
        const uint32_t sign = 1u << (i->exponent_bits + i->mantissa_bits);
        for (int k = 0; k < d->k; k++) {
            const uint32_t negative = vec_draw(r) & 1 ? sign : 0;
            const uint32_t code = vec_below(r, 2u << i->mantissa_bits) | negative;
            o->code[side][k] = side == 0 || k % 2 ? code << i->low_zeros : near_code(o->format[side], vec_normal(r));
        }
    }
    o->c = vec_draw(r) & 0x80ffffffu;
}

static void signed_zeros(operands *o, vec_random *r, const dot *d)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < d->k; k++) o->code[side][k] = near_code(o->format[side], side ? 0.0f : -1.0f);
    if (vec_draw(r) & 1) o->code[0][d->k / 2] = near_code(o->format[0], 1.0f);
    o->c = vec_draw(r) & 0x80000000u;
}

static void not_numbers(operands *o, vec_random *r, const dot *d)
{
    static const uint32_t special[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0 };
    all_normal(o, r, d);
    for (int i = 0; i < 3; i++) {
        const int side = (int)vec_below(r, 2), at = (int)vec_below(r, (uint32_t)d->k);
        const uint32_t x = special[vec_below(r, 5)];
        o->code[side][at] = vec_encode(o->format[side], x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    }
    if (vec_below(r, 4) == 0) o->c = special[vec_below(r, 4)];
}

/* Partial sums that leave binary32, where products can be so large. */
static void too_large(operands *o, vec_random *r, const dot *d)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < d->k; k++)
            o->code[side][k] = near_code(o->format[side], vec_normal(r) * (side ? 0x1p60f : 0x1p66f));
    o->c = vec_bits(vec_normal(r));
}

static const struct family {
    const char *kind;
    void (*run)(operands *, vec_random *, const dot *);
    int count;
    bool wide_only;
} families[] = {
    { "normal distribution", all_normal, 8, false },
    { "numbers of many sizes", many_sizes, 8, false },
    { "one large product among small ones", one_large, 6, false },
    { "products that cancel", cancellation, 4, false },
    { "subnormal operands", subnormals, 4, false },
    { "zeros of both signs", signed_zeros, 3, false },
    { "infinities and NaN", not_numbers, 6, false },
    { "partial sums that overflow", too_large, 4, true },
};
enum { FAMILIES = sizeof families / sizeof *families };

/* ---- the product ---- */

static void store(const vec_format *f, const uint32_t *code, int k, void *at)
{
    for (int i = 0; i < k; i++) { /* little-endian hosts only, as the library */
        const size_t size = trn_format_bytes(f->format);
        memcpy((char *)at + (size_t)i * size, &code[i], size);
    }
}

static trn_tensor view(const vec_format *f, void *data, int rows, int columns)
{
    trn_tensor t = trn_tensor_2d(f->format, data, rows, columns);
    t.cfp8 = f->cfp8;
    return t;
}

static uint32_t multiply(const vec_file *f, const dot *d, const operands *o)
{
    static uint32_t a[MOST_K], b[MOST_K];
    static uint8_t scale[2][MOST_K / 32];
    trn_error error;
    float c = vec_float(o->c);
    trn_numerics n = trn_numerics_default(d->generation ? d->generation : TRN_TRAINIUM2);
    if (d->psum_bf16) n.psum_format = TRN_BF16;
    store(o->format[0], o->code[0], d->k, a);
    store(o->format[1], o->code[1], d->k, b);
    trn_matmul_args args = { .generation = d->generation, .dst = trn_tensor_2d(TRN_F32, &c, 1, 1), .error = &error };
    args.a = view(o->format[0], a, 1, d->k);
    args.b = view(o->format[1], b, d->k, 1);
    for (int i = 0; i < 2 * (MOST_K / 32); i++) scale[i & 1][i / 2] = (uint8_t)o->scale[i & 1][i / 2];
    if (d->scales) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, scale[0], 1, d->k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, scale[1], 1, d->k / 32);
    }
    args.accumulate = d->accumulate;
    args.double_row = d->double_row;
    args.numerics = &n;
    if (trn_matmul(&args) != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    return vec_bits(c);
}

/* ---- the file ---- */

static const char *rows_text(int group)
{
    if (group == 1) return "row p of a tile has the product p";
    if (group == 4) return "row p of a tile has the products 4 p to 4 p + 3";
    return "a tile of L numbers has h = ceil(L / 2) rows; row p has the products p and h + p; one that is not there "
           "is +0";
}

static void head(vec_file *f, const dot *d, const operands *o)
{
    const int group = d->scales ? 4 : d->double_row ? 2 : 1, tile = 128 * group;
    char in[160];
    const int size =
        snprintf(in, sizeof in, "a[%d]/%d b[%d]/%d", d->k, vec_digits(o->format[0]), d->k, vec_digits(o->format[1]));
    if (d->scales) snprintf(in + size, sizeof in - (size_t)size, " a_scale[%d]/2 b_scale[%d]/2", d->k / 32, d->k / 32);
    if (d->accumulate) snprintf(in + size, sizeof in - (size_t)size, " c/8");
    vec_head_format(f, "a", o->format[0]);
    vec_head_format(f, "b", o->format[1]);
    vec_head(f, "k", "%d", d->k);
    vec_head(f, "accumulate", "%s", d->accumulate ? "yes" : "no");
    vec_head(f, "group", "%d", group);
    vec_head(f, "rows", "128");
    vec_head(f, "chains", "4");
    vec_head(f, "psum", "%s", d->psum_bf16 ? "bfloat16" : "float32");
    vec_columns(f, in, "sum/8");
    vec_head(f, "nan", "7f800001-7fffffff ff800001-ffffffff");
    vec_head(f, "rule", "k is cut into tiles of %d, ascending, the last of what is left", tile);
    vec_head(f, "rule", "%s", rows_text(group));
    if (group > 1)
        vec_head(f, "rule",
                 "the products of a row are summed in ascending order, in binary32, from the exact first: each "
                 "step a fused multiply-add, rounded once to nearest even");
    if (d->scales)
        vec_head(f, "rule",
                 "that sum enters its chain times 2^(a_scale + b_scale - 254), in one fused multiply-add; the "
                 "scale of number i is the one of i div 32");
    vec_head(f, "rule",
             "chain p mod 4 starts at +0 and adds its rows, ascending; each addition is a fused multiply-add in "
             "binary32, rounded once to nearest even; subnormal numbers are kept");
    vec_head(f, "rule",
             "the tile is ((s0 + s1) + s2) + s3; it replaces PSUM, or, of later tiles%s, is added to it, in "
             "binary32%s",
             d->accumulate ? " and with c in PSUM" : "",
             d->psum_bf16 ? ", and PSUM is rounded to bfloat16 each time" : "");
    vec_head(f, "rule", "a NaN is 7fc00000");
    vec_known(f, d->provenance, d->source);
}

static void draw_scales(operands *o, vec_random *r, const dot *d, int family)
{
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < d->k / 32; i++) o->scale[side][i] = family == 2 ? 127 : 120 + vec_below(r, 15);
    if (d->scales && family == 6 && vec_draw(r) & 1) o->scale[0][0] = 0xff;
}

static void make_dot(const dot *d)
{
    static operands o;
    memset(&o, 0, sizeof o);
    o.format[0] = vec_format_named(d->a);
    o.format[1] = vec_format_named(d->b);
    vec_file f = vec_open("dot", "dot/%s", d->name);
    vec_random r = { 39, (uint64_t)d->k << 8 | (uint64_t)o.format[0]->format, 0 };
    head(&f, d, &o);
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < FAMILIES; i++) {
        if (families[i].wide_only && o.format[0]->info.exponent_bits < 8) continue;
        for (int number = 0; number < families[i].count; number++) {
            families[i].run(&o, &r, d);
            draw_scales(&o, &r, d, i);
            vec_begin(&f, families[i].kind);
            for (int side = 0; side < 2; side++) vec_words(&f, vec_digits(o.format[side]), o.code[side], d->k);
            for (int side = 0; side < 2 && d->scales; side++) vec_words(&f, 2, o.scale[side], d->k / 32);
            if (d->accumulate) vec_word(&f, 8, o.c);
            vec_arrow(&f);
            vec_word(&f, 8, multiply(&f, d, &o));
            vec_end(&f);
        }
    }
    vec_close(&f);
}

#define ORDER                                                                                                          \
    "float32 accumulation and 128 rows: documented (NKI, nc_matmul); four chains: assumed, the smallest count that "   \
    "gives the differences that were published for Inf2 and Trn2 devices; order of the merge: assumed"

void vec_make_dots(void)
{
    static const dot list[] = {
        { "bfloat16.k128", "bfloat16", "bfloat16", 128, false, false, false, false, 0, "assumed", ORDER },
        { "bfloat16.k5", "bfloat16", "bfloat16", 5, false, false, false, false, 0, "assumed", ORDER },
        { "bfloat16.k300.accumulate", "bfloat16", "bfloat16", 300, false, true, false, false, 0, "assumed", ORDER },
        { "float32.k128", "float32", "float32", 128, false, false, false, false, 0, "assumed",
          ORDER "; all 24 bits take part: measured (an error published for Trainium1), one pass: assumed" },
        { "float16.k128", "float16", "float16", 128, false, false, false, false, 0, "assumed", ORDER },
        { "tfloat32.k130", "tfloat32", "tfloat32", 130, false, false, false, false, 0, "assumed", ORDER },
        { "float8_e4m3.k128", "float8_e4m3", "float8_e4m3", 128, false, false, false, false, 0, "assumed", ORDER },
        { "float8_e4m3_e5m2.k260", "float8_e4m3", "float8_e5m2", 260, false, false, false, false, 0, "assumed", ORDER },
        { "float8_e3m4.k128", "float8_e3m4", "float8_e3m4", 128, false, false, false, false, 0, "assumed", ORDER },
        { "cfp8_e5b20.k64", "cfp8_e5b20", "cfp8_e5b20", 64, false, false, false, false, TRN_TRAINIUM1, "assumed",
          ORDER },
        { "float8_e4m3.k256.double_row", "float8_e4m3", "float8_e4m3", 256, true, false, false, false, 0, "assumed",
          ORDER "; the order inside a row of two: assumed" },
        { "float8_e4m3_e5m2.k300.double_row.accumulate", "float8_e4m3", "float8_e5m2", 300, true, true, false, false, 0,
          "assumed", ORDER "; the order inside a row of two: assumed" },
        { "bfloat16.k512.psum_bfloat16", "bfloat16", "bfloat16", 512, false, false, false, true, TRN_TRAINIUM3,
          "assumed", ORDER "; PSUM in bfloat16 on Trainium3: documented" },
        { "mxfp8_e4m3fn.k512", "float8_e4m3fn", "float8_e4m3fn", 512, false, false, true, false, TRN_TRAINIUM3,
          "assumed", ORDER "; four products a row: documented, their order: assumed" },
        { "mxfp8_e5m2.k768", "float8_e5m2", "float8_e5m2", 768, false, false, true, false, TRN_TRAINIUM3, "assumed",
          ORDER "; four products a row: documented, their order: assumed" },
        { "mxfp4.k128", "float4_e2m1fn", "float4_e2m1fn", 128, false, false, true, false, TRN_TRAINIUM3, "assumed",
          ORDER "; four products a row: documented, their order: assumed" },
    };
    for (int i = 0; i < (int)(sizeof list / sizeof *list); i++) make_dot(&list[i]);
}
