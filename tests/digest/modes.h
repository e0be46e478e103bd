/* modes.h - the digest's sections on the modes of the Tensor engine: FP8 in pairs, double rows, MX, BF16 PSUM, int8,
 * transposes; as operations of any size and as instructions.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_MODES_H
#define DIGEST_MODES_H

#include <tests/digest/inputs.h>

/* Codes of any width; one in 60 of the narrow ones may be an infinity or a NaN, the others are finite. */
static uint32_t mode_code(trn_format format, flavour kind)
{
    static const struct {
        trn_format format;
        uint32_t finite; /* codes of a sign below this are finite */
    } narrow[] = {
        { TRN_F8_E4M3, 0x78 }, { TRN_F8_E4M3FN, 0x7f }, { TRN_F8_E5M2, 0x7c },
        { TRN_F8_E3M4, 0x70 }, { TRN_CFP8, 0x70 },      { TRN_F4_E2M1, 8 },
    };
    for (unsigned i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        if (narrow[i].format != format) continue;
        const uint32_t all = format == TRN_F4_E2M1 ? 16 : 256, code = next();
        if ((kind == SPECIAL || kind == WILD) && below(60) == 0) return code % all;
        const uint32_t sign = code & 1 ? all / 2 : 0, spread = kind == TINY || kind == HUGE_ ? narrow[i].finite / 4 : 0;
        const uint32_t magnitude = code / 2 % (spread ? spread : narrow[i].finite);
        return sign + (kind == HUGE_ ? narrow[i].finite - 1 - magnitude : magnitude);
    }
    if (format == TRN_I8) return next() & 0xffu;
    if (format == TRN_I32) return kind == HUGE_ ? next() % 2000u - 1000u + 0x80000000u : next();
    if (format != TRN_F8_E8M0) return code_of(format, kind);
    if (kind == SPECIAL && below(40) == 0) return 0xff;
    return kind == TINY    ? (uint32_t)below(60)
           : kind == HUGE_ ? (uint32_t)(195 + below(60))
                           : (uint32_t)(112 + below(30));
}

/* A product in some mode. 0 for what is not named: plain, the default generation, nearest even. */
typedef struct mode_product {
    trn_format a, b, dst;
    int m, n, k; /* K counts numbers, not rows of the array */
    int group;   /* 1, 2: double rows, 4: MX */
    bool instruction, transpose, accumulate, gaps;
    trn_generation generation;
    trn_rounding rounding;
    trn_overflow overflow;
    flavour kind;
    const char *numerics;
} mode_product;

enum { MODE_MOST = 1 << 20 };

typedef struct mode_memory {
    uint32_t a[MODE_MOST], b[MODE_MOST], dst[MODE_MOST], a_scale[MODE_MOST / 32], b_scale[MODE_MOST / 32];
} mode_memory;

static void mode_fill(trn_format format, void *data, size_t count, flavour kind)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = mode_code(format, kind);
        memcpy((char *)data + i * trn_format_bytes(format), &code, trn_format_bytes(format));
    }
}

/* Rows packed, or each followed by a gap of three. */
static trn_tensor mode_view(trn_format format, void *data, int64_t x, int64_t y, int64_t z, bool gaps)
{
    const int64_t shape[3] = { x, y, z };
    trn_tensor t = trn_tensor_nd(format, data, z ? 3 : 2, shape);
    if (!gaps) return t;
    const int64_t line = (z ? z : y) + 3;
    t.stride[t.rank - 1] = 1;
    t.stride[t.rank - 2] = line;
    if (z) t.stride[0] = line * y;
    return t;
}

static trn_status mode_run_instruction(const mode_product *p, mode_memory *of, const trn_numerics *n, trn_error *error)
{
    const int rows = p->k / p->group;
    const trn_tensor dst = mode_view(p->dst, of->dst, p->m, p->n, 0, p->gaps);
    if (p->group == 4) {
        trn_nc_matmul_mx_args args;
        memset(&args, 0, sizeof args);
        args.dst = dst;
        args.stationary = mode_view(p->a, of->a, rows, p->m, 4, p->gaps);
        args.moving = mode_view(p->b, of->b, rows, p->n, 4, p->gaps);
        args.stationary_scale = mode_view(TRN_F8_E8M0, of->a_scale, rows / 8, p->m, 0, p->gaps);
        args.moving_scale = mode_view(TRN_F8_E8M0, of->b_scale, rows / 8, p->n, 0, p->gaps);
        args.accumulate = p->accumulate;
        args.rounding = p->rounding;
        args.seed = 77;
        args.stream = 5;
        args.numerics = n;
        args.error = error;
        return trn_nc_matmul_mx(&args);
    }
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = p->generation;
    args.dst = dst;
    args.stationary = mode_view(p->a, of->a, rows, p->group == 2 ? 2 : p->m, p->group == 2 ? p->m : 0, p->gaps);
    args.moving = mode_view(p->b, of->b, rows, p->group == 2 ? 2 : p->n, p->group == 2 ? p->n : 0, p->gaps);
    args.double_row = p->group == 2;
    args.is_transpose = p->transpose;
    args.accumulate = p->accumulate;
    args.rounding = p->rounding;
    args.seed = 77;
    args.stream = 5;
    args.numerics = n;
    args.error = error;
    return trn_nc_matmul(&args);
}

static trn_status mode_run_operation(const mode_product *p, mode_memory *of, const trn_numerics *n, trn_error *error)
{
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = p->generation;
    args.dst = mode_view(p->dst, of->dst, p->m, p->n, 0, p->gaps);
    args.a = mode_view(p->a, of->a, p->m, p->k, 0, p->gaps);
    args.b = mode_view(p->b, of->b, p->k, p->n, 0, p->gaps);
    if (p->group == 4) {
        args.a_scale = mode_view(TRN_F8_E8M0, of->a_scale, p->m, p->k / 32, 0, p->gaps);
        args.b_scale = mode_view(TRN_F8_E8M0, of->b_scale, p->n, p->k / 32, 0, p->gaps);
    }
    args.double_row = p->group == 2;
    args.accumulate = p->accumulate;
    args.rounding = p->rounding;
    args.overflow = p->overflow;
    args.seed = 77;
    args.stream = 5;
    args.numerics = n;
    args.error = error;
    return trn_matmul(&args);
}

/* The moving operand of a transpose: the identity, its columns reversed. */
static void mode_identity(const mode_product *p, mode_memory *of)
{
    const uint32_t one = trn_encode(p->b, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    const int line = p->n + (p->gaps ? 3 : 0);
    const size_t size = trn_format_bytes(p->b);
    memset(of->b, 0, sizeof of->b);
    for (int k = 0; k < p->k && k < p->n; k++)
        memcpy((char *)of->b + (size_t)(k * line + p->n - 1 - k) * size, &one, size);
}

static bool mode_multiply(const mode_product *p)
{
    static mode_memory of;
    trn_numerics n;
    trn_error error;
    memset(&error, 0, sizeof error);
    if (trn_numerics_parse(&n, p->numerics ? p->numerics : "") != TRN_OK) return false;
    const size_t lines = (size_t)(p->k + 3) * 4, a = lines * (size_t)(p->m + 3), b = lines * (size_t)(p->n + 3);
    const size_t dst = (size_t)(p->m + 3) * (size_t)(p->n + 3);
    if (a > MODE_MOST || b > MODE_MOST || dst > MODE_MOST) return false;
    mode_fill(p->a, of.a, a, p->kind);
    mode_fill(p->b, of.b, b, p->kind);
    mode_fill(p->dst, of.dst, dst, p->kind == HUGE_ ? HUGE_ : ORDINARY);
    mode_fill(TRN_F8_E8M0, of.a_scale, a / 32 + 8, p->kind);
    mode_fill(TRN_F8_E8M0, of.b_scale, b / 32 + 8, p->kind);
    if (p->transpose) mode_identity(p, &of);
    const trn_status status =
        p->instruction ? mode_run_instruction(p, &of, &n, &error) : mode_run_operation(p, &of, &n, &error);
    if (status != TRN_OK) {
        fprintf(stderr, "digest: %s x %s -> %s in groups of %d, %dx%dx%d, \"%s\": %s\n", trn_format_name(p->a),
                trn_format_name(p->b), trn_format_name(p->dst), p->group, p->m, p->n, p->k,
                p->numerics ? p->numerics : "", error.text);
        return false;
    }
    hash_bytes(of.dst, dst * trn_format_bytes(p->dst));
    return true;
}

static mode_product mode_start(trn_format a, trn_format b, int group)
{
    mode_product p;
    memset(&p, 0, sizeof p);
    p.a = a;
    p.b = b;
    p.dst = TRN_F32;
    p.m = 19;
    p.n = 45;
    p.k = group == 4 ? 544 : group == 2 ? 301 : 150;
    p.group = group;
    return p;
}

static const trn_format f8_formats[] = { TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E3M4, TRN_CFP8 };
static const trn_format mx_formats[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };

/* Every pair with an FP8 format in it, every flavour, into every output, by turns. */
static bool f8_pairs(void)
{
    static const trn_format other[] = { TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E3M4, TRN_CFP8 };
    static const trn_format to[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2 };
    int turn = 0;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 6; b++)
            for (int kind = 0; kind < FLAVOURS; kind++, turn++) {
                mode_product p = mode_start(f8_formats[a], other[b], 1);
                if (turn % 2) p.a = other[b], p.b = f8_formats[a];
                p.dst = to[turn % 5];
                p.kind = (flavour)kind;
                p.accumulate = turn % 3 == 0;
                p.gaps = turn % 4 == 0;
                p.rounding = all_modes[turn % 6];
                p.overflow = turn % 7 ? TRN_OVERFLOW_DEFAULT : TRN_SATURATE;
                if (!mode_multiply(&p)) return false;
            }
    for (int b = 0; b < 2; b++) { /* and OCP's E4M3, with 16 bits and with E5M2 */
        mode_product p = mode_start(TRN_F8_E4M3FN, b ? TRN_F8_E5M2 : TRN_BF16, 1);
        p.kind = SPECIAL;
        if (!mode_multiply(&p)) return false;
    }
    mode_product p = mode_start(TRN_F32, TRN_F32, 1);
    p.numerics = "fp32_mode=fp32r";
    return mode_multiply(&p);
}

/* Depths around the tile of 256 and its halves, one and many rows, with the rules that concern pairs. */
static bool double_rows(void)
{
    static const int depth[] = { 1, 2, 3, 127, 128, 129, 254, 255, 256, 257, 511, 512, 600 };
    static const char *const settings[] = { "", "group=exact", "k_tile=50", "chains=8,chain_layout=blocked",
                                            "fp8_bias=9" };
    for (int i = 0; i < 13; i++)
        for (int j = 0; j < 5; j++) {
            mode_product p = mode_start(f8_formats[(i + j) % 4], f8_formats[i % 4], 2);
            p.k = depth[i];
            p.m = j == 2 ? 1 : j == 1 ? 3 : 17; /* what no kernel does is done one element at a time */
            p.kind = (flavour)((i + j) % FLAVOURS);
            p.numerics = settings[j];
            p.accumulate = i % 2 == 1;
            p.instruction = j == 4 && p.k % 2 == 0 && p.k <= 256;
            if (!mode_multiply(&p)) return false;
        }
    return true;
}

static bool block_scaled_products(void)
{
    static const char *const settings[] = { "",         "group=exact",       "k_tile=20",
                                            "chains=1", "accumulator=exact", "product=bf16" };
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            for (int kind = 0; kind < FLAVOURS; kind++) {
                mode_product p = mode_start(mx_formats[a], mx_formats[b], 4);
                p.k = 32 * (1 + (5 * a + 3 * b + 7 * kind) % 36);
                p.m = kind == 1 ? 1 : kind == 0 ? 16 : 4; /* unusual scales are slow */
                p.n = kind == 0 ? 45 : 20;
                p.kind = (flavour)kind;
                p.dst = kind % 2 ? TRN_BF16 : TRN_F32;
                p.rounding = kind == 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
                p.gaps = kind == 2;
                p.accumulate = kind == 4;
                p.numerics = settings[(a + b + kind) % 6];
                if (!mode_multiply(&p)) return false;
                p.instruction = true;
                p.k = 128 * (1 + (a + b) % 4);
                p.m = kind == 0 ? 18 : 4;
                if (!mode_multiply(&p)) return false;
            }
    return true;
}

/* Rounded after every tile, to nearest and by chance, in every mode. */
static bool bf16_psum(void)
{
    static const char *const settings[] = { "psum_format=bfloat16", "psum_format=bfloat16,psum_rounding=stochastic",
                                            "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=11,k_tile=32" };
    for (int i = 0; i < 12; i++) {
        mode_product p =
            mode_start(i % 4 ? mx_formats[i % 2] : TRN_BF16, i % 4 ? mx_formats[1] : TRN_BF16, i % 4 ? 1 << i % 3 : 1);
        p.k = 1280;
        p.m = 4;
        p.generation = TRN_TRAINIUM3;
        p.dst = i % 2 ? TRN_BF16 : TRN_F32;
        p.accumulate = i % 5 == 3;
        p.numerics = settings[i % 3];
        if (!mode_multiply(&p)) return false;
        p.instruction = true; /* a BF16 dst is such a PSUM */
        p.dst = TRN_BF16;
        p.k = 128 * p.group;
        p.m = 8;
        p.rounding = i % 2 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        if (!mode_multiply(&p)) return false;
    }
    return true;
}

static bool int8_products(void)
{
    for (int i = 0; i < 8; i++) {
        mode_product p = mode_start(TRN_I8, TRN_I8, 1);
        p.dst = TRN_I32;
        p.generation = TRN_TRAINIUM1;
        p.k = i < 4 ? 128 : 400;
        p.instruction = i < 4;
        p.accumulate = i % 4 > 0;
        p.kind = HUGE_;
        p.gaps = i % 3 == 1;
        p.numerics = i % 2 ? "int32_overflow=saturate" : "";
        if (!mode_multiply(&p)) return false;
    }
    return true;
}

static bool transposes(void)
{
    static const trn_format data[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_F8_E3M4 };
    for (int i = 0; i < 7; i++)
        for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM2; g++) {
            mode_product p = mode_start(data[i], data[i], 1);
            p.transpose = p.instruction = true;
            p.generation = (trn_generation)g;
            p.dst = g == TRN_TRAINIUM1 ? TRN_F32 : i > 3 ? TRN_U16 : data[i];
            p.k = 100 + i;
            p.n = i % 2 ? 110 : 90;
            p.m = 128;
            p.kind = i % 3 ? SPECIAL : WILD;
            p.gaps = i % 2 == 0;
            if (!mode_multiply(&p)) return false;
        }
    return true;
}

#endif /* DIGEST_MODES_H */
