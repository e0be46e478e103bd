/* test_mx.c - block scaling bit for bit: every rule, format and rounding against the twin; layouts; Trainium3's SBUF.
 * SPDX-License-Identifier: MIT
 *
 * The twin (tests/twin/twin_mx.h) knows the definition only: exact numbers, scales by search, one rounding. Beside it
 * stand the golden blocks, which come from elsewhere altogether.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "trnmath/trn_mx.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/twin_mx.h"
#include "twin/twin_random.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))
enum { BLOCK = TWIN_MX_BLOCK, RULES = TWIN_MX_RULES };

/* ---- both sides' names for the same thing ---- */

static const trn_format element_formats[TWIN_MX_ELEMENTS] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F6_E2M3,
                                                              TRN_F6_E3M2,   TRN_F4_E2M1, TRN_I8 };
static const trn_mx_scale rules[RULES] = { TRN_MX_SCALE_NEURON, TRN_MX_SCALE_OCP_FLOOR, TRN_MX_SCALE_ROUND_UP,
                                           TRN_MX_SCALE_EVEN, TRN_MX_SCALE_CEIL };
static const trn_rounding roundings[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                    TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };

typedef struct value_kind {
    trn_format format;
    int twin, bytes;
} value_kind;
static const value_kind value_kinds[] = { { TRN_F32, TWIN_F32, 4 },
                                          { TRN_BF16, TWIN_BF16, 2 },
                                          { TRN_F16, TWIN_F16, 2 } };
enum { VALUES = sizeof value_kinds / sizeof value_kinds[0] };

static uint32_t load(const unsigned char *at, int bytes)
{
    uint32_t code = 0;
    for (int i = bytes - 1; i >= 0; i--) code = code << 8 | at[i];
    return code;
}

static void store(unsigned char *at, int bytes, uint32_t code)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(code >> 8 * i);
}

static void must(trn_mx_quantize_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_mx_quantize(&a) != TRN_OK) fail_msg("trn_mx_quantize: %s", error.text);
    assert_int_equal(error.status, TRN_OK);
}

static void must_return(trn_mx_dequantize_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_mx_dequantize(&a) != TRN_OK) fail_msg("trn_mx_dequantize: %s", error.text);
    assert_int_equal(error.status, TRN_OK);
}

/* ---- blocks worth trying ---- */

typedef enum block_kind {
    NEAR_ONE,
    WIDE,       /* exponents over 60 binades: small elements vanish beside large ones */
    ANYTHING,   /* every finite exponent */
    TINY,       /* subnormals and the numbers above them: scales at the lower clamp */
    HUGE_ONES,  /* scales at the upper clamp */
    MANY_ZEROS, /* of both signs */
    ALL_ZEROS,
    ONE_NUMBER,
    TIES,    /* few significant bits: exact values and exact middles */
    EDGES,   /* the mantissas where some format's rounding, or the rule for the scale, changes its mind */
    FAINT,   /* one small number, subnormal ones beside it: where reading those as zero would show */
    GULF,    /* one large number; the others around where they stop to matter, some of them subnormal */
    SPECIAL, /* with an infinity or a NaN in it */
    BLOCK_KINDS
} block_kind;

static uint32_t value_of(block_kind kind, int i, int base, uint64_t *rng)
{
    static const uint32_t special[] = { 0x7f800000, 0x7fc00000, 0x7f800001, 0x7fffffff };
    const uint32_t r = cases_u32(rng), sign = cases_u32(rng) & 0x80000000u, m = r & 0x7fffffu, e = (uint32_t)base;
    switch (kind) {
    case WIDE: return sign | (97u + cases_u32(rng) % 60u) << 23 | m;
    case ANYTHING: return sign | (cases_u32(rng) % 255u) << 23 | m;
    case TINY: return sign | (cases_u32(rng) % (1 + e % 24)) << 23 | m;
    case HUGE_ONES: return sign | (254u - cases_u32(rng) % 12u) << 23 | m;
    case MANY_ZEROS: return cases_one_in(rng, 3) ? sign | (120u + r % 8u) << 23 | m : sign;
    case ALL_ZEROS: return sign;
    case ONE_NUMBER: return i == base % BLOCK ? sign | (cases_u32(rng) % 255u) << 23 | m : sign;
    case TIES: return sign | (118u + cases_u32(rng) % 10u) << 23 | (m & 0x7c0000u);
    case EDGES: return sign | (e - cases_u32(rng) % (1 + e % 6)) << 23 | cases_mantissa((int)(r % CASES_MANTISSAS));
    case FAINT: return sign | (i == base % BLOCK ? (1 + e % 40) << 23 : 0) | (m | (r >> 31) * 0x7ff800u);
    case GULF: {
        static const int below[] = { 8, 10, 17, 18, 19, 20, 24, 40, 48, 49, 50, 51, 63, 64, 65, 80, 126, 149, 200 };
        const int at = base - below[r % (sizeof below / sizeof below[0])];
        return i == base % BLOCK ? sign | e << 23 | m : sign | (uint32_t)(at > 0 ? at : 0) << 23 | (m & 0x7f0000u);
    }
    case SPECIAL: return i == base % BLOCK || cases_one_in(rng, 20) ? sign | special[r % 4] : cases_float(rng);
    case NEAR_ONE:
    case BLOCK_KINDS:
    default: return sign | (120u + r % 8u) << 23 | m;
    }
}

/* 32 codes of the format of values, by the twin's cast. */
static void fill_block(unsigned char *at, int64_t step, const value_kind *v, block_kind kind, uint64_t *rng)
{
    const int base = 1 + cases_below(rng, 254);
    for (int i = 0; i < BLOCK; i++, at += step) {
        const uint32_t bits = value_of(kind, i, base, rng);
        const twin_number x = twin_from_f32(bits);
        store(at, v->bytes,
              v->twin == TWIN_F32 ? bits : twin_encode(&twin_formats[v->twin], &x, twin_plain(TWIN_NEAREST_EVEN)));
    }
}

/* Kernels take sixteen blocks at once when none of them needs special care: these do not. */
static block_kind ordinary_kind(int b)
{
    static const block_kind kind[] = { NEAR_ONE, WIDE, MANY_ZEROS, TIES, ALL_ZEROS };
    return kind[b % COUNT(kind)];
}

static block_kind some_kind(uint64_t *rng) { return (block_kind)cases_below(rng, BLOCK_KINDS); }

static twin_way way_at(const trn_mx_quantize_args *a, uint64_t position)
{
    twin_way way = twin_plain(TWIN_NEAREST_EVEN);
    for (int m = 0; m < TWIN_MODES; m++)
        if (roundings[m] == a->rounding) way.mode = (twin_mode)m;
    way.random_bits = a->sr_bits ? a->sr_bits : 32;
    if (way.mode == TWIN_STOCHASTIC)
        way.random = twin_random_bits(a->seed, a->stream, a->index + position, way.random_bits);
    return way;
}

/* ---- the scale by itself ---- */

static uint32_t twin_scale_of(int element, int rule, uint32_t bits)
{
    twin_number block[BLOCK];
    for (int i = 0; i < BLOCK; i++) block[i] = twin_zero(false);
    block[7] = twin_from_f32(bits);
    return twin_mx_scale(&twin_mx_elements[element], (twin_mx_rule)rule, block);
}

/* Every exponent, with the mantissas around each format's maximum and around powers of two. */
static void scales_of_every_exponent(void **state)
{
    (void)state;
    static const uint32_t around[] = {
        0, 0x400000, 0x600000, 0x700000, 0x780000, 0x7c0000, 0x7e0000, 0x7f0000, 0x7fffff
    };
    for (int e = 0; e < TWIN_MX_ELEMENTS; e++)
        for (int r = 0; r < RULES; r++)
            for (uint32_t exponent = 0; exponent < 256; exponent++)
                for (int m = 0; m < COUNT(around); m++)
                    for (uint32_t off = 0; off < 3; off++) {
                        const uint32_t bits = exponent << 23 | ((around[m] + off - 1) & 0x7fffffu);
                        const uint32_t found = trn_mx_scale_code(element_formats[e], rules[r], cases_float_of(bits));
                        CASES_EQUAL(twin_scale_of(e, r, bits), found, "scale of %08x, %s, rule %d", (unsigned)bits,
                                    trn_format_name(element_formats[e]), r);
                        CASES_EQUAL(found,
                                    trn_mx_scale_code(element_formats[e], rules[r], cases_float_of(bits | 1u << 31)),
                                    "the sign of %08x", (unsigned)bits);
                    }
    assert_int_equal(trn_mx_scale_code(TRN_F8_E4M3, TRN_MX_SCALE_NEURON, 1.0f), 0xff);
    assert_int_equal(trn_mx_scale_code(TRN_F8_E4M3FN, (trn_mx_scale)TRN_MX_SCALE_COUNT, 1.0f), 0xff);
}

/* Numbers that the documents print. */
static void published_facts(void **state)
{
    (void)state;
    float x[BLOCK] = { 1.0f };
    uint8_t code[BLOCK], scale;
    trn_mx_quantize_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_1d(TRN_F8_E4M3FN, code, BLOCK);
    a.dst_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
    a.src = trn_tensor_1d(TRN_F32, x, BLOCK);
    must(a); /* quantize_mx: amax = 1 gives the scale 2^-7 and an element of 128 */
    assert_int_equal(scale, 120);
    assert_true(trn_f8_e4m3fn_to_f32(code[0]) == 128.0f);
    a.scale = TRN_MX_SCALE_OCP_FLOOR; /* OCP: 2^-8 */
    must(a);
    assert_int_equal(scale, 119);
    assert_true(trn_f8_e4m3fn_to_f32(code[0]) == 256.0f);

    x[0] = -0.0f; /* quantize_mx: amax = 0 gives scale byte 0; zeros keep their signs */
    must(a);
    assert_int_equal(scale, 0);
    assert_int_equal(code[0], 0x80);
    assert_int_equal(code[1], 0x00);
    a.dst.format = TRN_I8;
    must(a);
    assert_int_equal(code[0], 0);

    for (int special = 0; special < 2; special++) {
        x[31] = cases_float_of(special ? 0x7f800001u : 0xff800000u);
        must(a);
        assert_int_equal(scale, 0xff);
        for (int i = 0; i < BLOCK; i++) assert_int_equal(code[i], 0);
    }

    for (int i = 0; i < BLOCK; i++) x[i] = -1.99999f; /* 64ths: -127.99 would be -128 */
    must(a);
    assert_int_equal(scale, 127);
    for (int i = 0; i < BLOCK; i++) assert_int_equal(code[i], 0x81);
}

/* ---- values ---- */

enum { ORDINARY = 32, MOST_BLOCKS = ORDINARY + 2 * BLOCK_KINDS + 1 };
static unsigned char values[MOST_BLOCKS * BLOCK * 4];
static uint8_t codes[MOST_BLOCKS * BLOCK], scales[MOST_BLOCKS];
static uint8_t twin_codes[MOST_BLOCKS * BLOCK], twin_scales[MOST_BLOCKS];

static void twin_quantize(const trn_mx_quantize_args *a, int element, int rule, const value_kind *v, int blocks)
{
    const twin_mx_element *e = &twin_mx_elements[element];
    for (int b = 0; b < blocks; b++) {
        twin_number x[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            x[i] = twin_decode(&twin_formats[v->twin], load(values + (b * BLOCK + i) * v->bytes, v->bytes));
        twin_scales[b] = (uint8_t)twin_mx_scale(e, (twin_mx_rule)rule, x);
        for (int i = 0; i < BLOCK; i++)
            twin_codes[b * BLOCK + i] =
                (uint8_t)twin_mx_encode(e, twin_scales[b], &x[i], way_at(a, (uint64_t)(b * BLOCK + i)));
    }
}

static void compare_blocks(const trn_mx_quantize_args *a, const value_kind *v, int rule, int blocks)
{
    for (int b = 0; b < blocks; b++) {
        CASES_EQUAL(twin_scales[b], scales[b], "scale of block %d, %s to %s, rule %d, isa %s", b,
                    trn_format_name(v->format), trn_format_name(a->dst.format), rule, trn_isa_text(a->isa));
        for (int i = 0; i < BLOCK; i++)
            CASES_EQUAL(twin_codes[b * BLOCK + i], codes[b * BLOCK + i],
                        "element %d of block %d: %08x under scale %02x, %s to %s, rule %d, %s with %d bits, isa %s", i,
                        b, (unsigned)load(values + (b * BLOCK + i) * v->bytes, v->bytes), scales[b],
                        trn_format_name(v->format), trn_format_name(a->dst.format), rule, trn_round_text(a->rounding),
                        a->sr_bits, trn_isa_text(a->isa));
    }
}

/* Every element format, rule, rounding and format of values, on every instruction set. */
static void every_way_agrees_with_the_twin(void **state)
{
    (void)state;
    static const int bits[] = { 0, 8, 16, 1, 13, 31 };
    uint64_t rng = 60;
    const int rounds = cases_rounds(3, 60);
    for (int round = 0; round < rounds; round++)
        for (int element = 0; element < TWIN_MX_ELEMENTS; element++)
            for (int rule = 0; rule < RULES; rule++)
                for (int mode = 0; mode < TWIN_MODES; mode++)
                    for (int f = 0; f < VALUES; f++) {
                        const value_kind *v = &value_kinds[f];
                        const int ordinary = f ? ORDINARY / 2 : ORDINARY, blocks = ordinary + (f ? 1 : 2) * BLOCK_KINDS;
                        for (int b = 0; b < blocks; b++)
                            fill_block(values + b * BLOCK * v->bytes, v->bytes, v,
                                       b < ordinary ? ordinary_kind(b) : (block_kind)((b - ordinary) % BLOCK_KINDS),
                                       &rng);
                        trn_mx_quantize_args a;
                        memset(&a, 0, sizeof a);
                        a.dst = trn_tensor_2d(element_formats[element], codes, blocks, BLOCK);
                        a.dst_scale = trn_tensor_2d(TRN_F8_E8M0, scales, blocks, 1);
                        a.src = trn_tensor_2d(v->format, values, blocks, BLOCK);
                        a.scale = rules[rule];
                        a.rounding = roundings[mode];
                        a.sr_bits = bits[cases_below(&rng, COUNT(bits))];
                        a.seed = cases_next(&rng);
                        a.stream = cases_next(&rng);
                        a.index = cases_one_in(&rng, 2) ? 0 : cases_next(&rng);
                        twin_quantize(&a, element, rule, v, blocks);
                        for (int i = 0; i < COUNT(all_isas); i++) {
                            if (!trn_isa_supported(all_isas[i])) continue;
                            a.isa = all_isas[i];
                            memset(codes, 0xee, sizeof codes);
                            memset(scales, 0xee, sizeof scales);
                            must(a);
                            compare_blocks(&a, v, rule, blocks);
                            assert_int_equal(codes[blocks * BLOCK], 0xee);
                            assert_int_equal(scales[blocks], 0xee);
                        }
                    }
}

/* ---- the golden blocks ---- */

enum { GOLDEN = 200 };

static FILE *golden_file(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", TRN_GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot read %s", path);
    return file;
}

static unsigned next_hex(FILE *file, const char *format)
{
    unsigned x;
    if (fscanf(file, format, &x) != 1) fail_msg("a golden file ends early");
    return x;
}

/* OCP's rule, along the last axis and, from the transposed matrix, along the first. */
static void golden_blocks_agree(void **state)
{
    (void)state;
    static const struct {
        const char *name, *digits;
        trn_format format;
    } files[] = {
        { "mx_e4m3fn_ocp.txt", "%2x", TRN_F8_E4M3FN },
        { "mx_e5m2_ocp.txt", "%2x", TRN_F8_E5M2 },
        { "mx_e2m1fn_ocp.txt", "%1x", TRN_F4_E2M1 },
    };
    static uint32_t x[2][GOLDEN * BLOCK];
    static uint8_t code[GOLDEN * BLOCK], scale[GOLDEN], expected[GOLDEN * BLOCK], expected_scale[GOLDEN];
    FILE *in = golden_file("mx_inputs.txt");
    for (int i = 0; i < GOLDEN * BLOCK; i++) {
        x[0][i] = next_hex(in, "%x");
        x[1][i % BLOCK * GOLDEN + i / BLOCK] = x[0][i];
    }
    fclose(in);
    for (int f = 0; f < COUNT(files); f++) {
        FILE *file = golden_file(files[f].name);
        for (int b = 0; b < GOLDEN; b++) {
            expected_scale[b] = (uint8_t)next_hex(file, "%x");
            for (int i = 0; i < BLOCK; i++) expected[b * BLOCK + i] = (uint8_t)next_hex(file, files[f].digits);
        }
        fclose(file);
        for (int i = 0; i < COUNT(all_isas); i++)
            for (int turned = 0; turned < 2; turned++) {
                trn_mx_quantize_args a;
                if (!trn_isa_supported(all_isas[i])) continue;
                memset(&a, 0, sizeof a);
                a.isa = all_isas[i];
                a.scale = TRN_MX_SCALE_OCP_FLOOR;
                a.axis = turned ? -2 : 0;
                a.dst = trn_tensor_2d(files[f].format, code, turned ? BLOCK : GOLDEN, turned ? GOLDEN : BLOCK);
                a.dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale, turned ? 1 : GOLDEN, turned ? GOLDEN : 1);
                a.src = trn_tensor_2d(TRN_F32, x[turned], a.dst.shape[0], a.dst.shape[1]);
                must(a);
                for (int b = 0; b < GOLDEN; b++) {
                    CASES_EQUAL(expected_scale[b], scale[b], "%s, block %d, isa %s", files[f].name, b,
                                trn_isa_text(a.isa));
                    for (int k = 0; k < BLOCK; k++)
                        CASES_EQUAL(expected[b * BLOCK + k], code[turned ? k * GOLDEN + b : b * BLOCK + k],
                                    "%s, block %d, element %d, isa %s", files[f].name, b, k, trn_isa_text(a.isa));
                }
            }
    }
}

/* ---- back again ---- */

/* Every code under every scale, to every format of values. */
static void every_code_under_every_scale(void **state)
{
    (void)state;
    static uint8_t code[256 * 256], scale[256 * 8];
    static unsigned char back[256 * 256 * 4];
    static twin_number exact;
    for (int element = 0; element < TWIN_MX_ELEMENTS; element++) {
        const int bits = trn_format_bits(element_formats[element]), n = 1 << (bits < 5 ? 5 : bits);
        for (int s = 0; s < 256; s++) {
            for (int c = 0; c < n; c++) code[s * n + c] = (uint8_t)c; /* FP4 with a bit too many, to be ignored */
            memset(scale + s * (n / BLOCK), s, (size_t)(n / BLOCK));
        }
        for (int f = 0; f < VALUES; f++)
            for (int i = 0; i < COUNT(all_isas); i++) {
                const value_kind *v = &value_kinds[f];
                trn_mx_dequantize_args a;
                if (!trn_isa_supported(all_isas[i])) continue;
                memset(&a, 0, sizeof a);
                a.isa = all_isas[i];
                a.dst = trn_tensor_2d(v->format, back, 256, n);
                a.src = trn_tensor_2d(element_formats[element], code, 256, n);
                a.src_scale = trn_tensor_2d(TRN_F8_E8M0, scale, 256, n / BLOCK);
                must_return(a);
                for (int j = 0; j < 256 * n; j++) {
                    const uint32_t s = scale[j / BLOCK];
                    if (i && (j + (int)s) % 7) continue; /* the twin is slow */
                    exact = twin_mx_decode(&twin_mx_elements[element], s, code[j]);
                    CASES_EQUAL(twin_encode(&twin_formats[v->twin], &exact, twin_plain(TWIN_NEAREST_EVEN)),
                                load(back + j * v->bytes, v->bytes), "%s code %02x, scale %02x, to %s, isa %s",
                                trn_format_name(element_formats[element]), code[j], (unsigned)s,
                                trn_format_name(v->format), trn_isa_text(a.isa));
                }
            }
    }
}

/* Codes whose largest one is in the top binade survive: dequantise, quantise by OCP's rule, and they are back. */
static void quantizing_undoes_dequantizing(void **state)
{
    (void)state;
    enum { N = 500 };
    static uint8_t code[N * BLOCK], scale[N], again[N * BLOCK], scale_again[N];
    static float x[N * BLOCK];
    uint64_t rng = 61;
    for (int element = 0; element < TWIN_MX_ELEMENTS; element++)
        for (int rule = 1; rule < TWIN_MX_CEIL; rule++) { /* Neuron's and ceil leave the top binade empty */
            const trn_format_info *f = trn_format_info_of(element_formats[element]);
            const uint32_t max = f->max_code, sign = 1u << (f->bits - 1),
                           top = f->kind == TRN_KIND_SIGNED ? 64 : max & ~0u << f->mantissa_bits;
            for (int b = 0; b < N; b++) {
                scale[b] = (uint8_t)(24 + cases_below(&rng, 208));
                for (int i = 0; i < BLOCK; i++) {
                    uint32_t c = cases_u32(&rng) % (max + 1);
                    if (i == b % BLOCK) c = top + cases_u32(&rng) % (max - top + 1);
                    if (cases_one_in(&rng, 2)) c = f->kind == TRN_KIND_SIGNED ? (0u - c) & 0xff : c | sign;
                    code[b * BLOCK + i] = (uint8_t)c;
                }
            }
            trn_mx_dequantize_args d;
            trn_mx_quantize_args q;
            memset(&d, 0, sizeof d);
            memset(&q, 0, sizeof q);
            d.dst = q.src = trn_tensor_1d(TRN_F32, x, N * BLOCK);
            d.src = trn_tensor_1d(element_formats[element], code, N * BLOCK);
            d.src_scale = trn_tensor_1d(TRN_F8_E8M0, scale, N);
            q.dst = trn_tensor_1d(element_formats[element], again, N * BLOCK);
            q.dst_scale = trn_tensor_1d(TRN_U8, scale_again, N);
            q.scale = rules[rule];
            must_return(d);
            must(q);
            assert_memory_equal(scale, scale_again, sizeof scale);
            assert_memory_equal(code, again, sizeof code);
        }
}

/* ---- views ---- */

enum { ARENA = 1 << 16 };
static unsigned char arena_values[ARENA], arena_codes[ARENA], arena_scales[ARENA], expected[2][ARENA];

/* One axis is a multiple of 32; the others small, or, now and then, long enough for blocks side by side. */
static int random_shape(int64_t shape[TRN_MAX_RANK], int *axis, uint64_t *rng)
{
    const int rank = 1 + cases_below(rng, TRN_MAX_RANK);
    int64_t elements = BLOCK * (1 + cases_below(rng, cases_one_in(rng, 4) ? 40 : 3));
    *axis = cases_below(rng, rank);
    for (int i = 0; i < rank; i++) {
        if (i == *axis) continue;
        shape[i] = 1 + cases_below(rng, cases_one_in(rng, 3) ? 150 : 5);
        if (elements * shape[i] > 6000) shape[i] = 1;
        elements *= shape[i];
    }
    for (int i = 0; i < rank; i++)
        if (i != *axis) elements /= shape[i];
    shape[*axis] = elements;
    return rank;
}

static bool packed(const trn_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->stride[i]) return false;
    return true;
}

static int64_t span(const trn_tensor *t)
{
    int64_t elements = 1, last = 0;
    for (int i = 0; i < t->rank; i++) {
        elements *= t->shape[i];
        if (t->shape[i] > 1) last += (t->shape[i] - 1) * t->stride[i];
    }
    return packed(t) ? elements : last + 1;
}

static int64_t offset_at(const trn_tensor *t, int64_t row_major)
{
    int64_t offset = 0, rest = row_major;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] > 1) offset += rest % t->shape[i] * t->stride[i];
        rest /= t->shape[i];
    }
    return packed(t) ? row_major : offset;
}

/* The row-major positions in the values of the elements of block number `block`, counted row-major in the scales. */
static void positions_of(const trn_tensor *v, int axis, int64_t block, int64_t position[BLOCK])
{
    int64_t inner = 1, blocks = v->shape[axis] / BLOCK;
    for (int i = axis + 1; i < v->rank; i++) inner *= v->shape[i];
    const int64_t in = block % inner, k = block / inner % blocks, out = block / inner / blocks;
    for (int i = 0; i < BLOCK; i++) position[i] = (out * v->shape[axis] + k * BLOCK + i) * inner + in;
}

static int64_t blocks_of(const trn_tensor *scale)
{
    int64_t n = 1;
    for (int i = 0; i < scale->rank; i++) n *= scale->shape[i];
    return n;
}

/* A view of an arena: random strides, any byte address. False: it does not fit. */
static bool place(trn_tensor *t, trn_format format, int bytes, int rank, const int64_t *shape, unsigned char *arena,
                  bool input, uint64_t *rng)
{
    *t = trn_tensor_nd(format, arena + cases_below(rng, 100), rank, shape);
    random_strides(t, input, true, rng);
    return span(t) * bytes <= ARENA - 100;
}

static int axis_as_somebody_says(int axis, int rank, uint64_t *rng)
{
    if (axis == rank - 1 && cases_one_in(rng, 2)) return 0;
    return axis > 0 && cases_one_in(rng, 2) ? axis : axis - rank;
}

static void noise(unsigned char *arena, uint64_t *rng)
{
    for (int i = 0; i < ARENA; i += 4) store(arena + i, 4, cases_u32(rng));
}

static void same_arena(const unsigned char *found, const unsigned char *wanted, const char *what, int number)
{
    for (int i = 0; i < ARENA; i++)
        if (found[i] != wanted[i])
            fail_msg("view %d, %s, byte %d: %02x, expected %02x", number, what, i, found[i], wanted[i]);
}

static void check_quantized_view(const trn_mx_quantize_args *a, int element, int rule, int axis, const value_kind *v,
                                 int number)
{
    const twin_mx_element *e = &twin_mx_elements[element];
    memcpy(expected[0], arena_codes, ARENA);
    memcpy(expected[1], arena_scales, ARENA);
    for (int64_t b = 0; b < blocks_of(&a->dst_scale); b++) {
        twin_number x[BLOCK];
        int64_t at[BLOCK];
        positions_of(&a->src, axis, b, at);
        for (int i = 0; i < BLOCK; i++)
            x[i] =
                twin_decode(&twin_formats[v->twin],
                            load((const unsigned char *)a->src.data + offset_at(&a->src, at[i]) * v->bytes, v->bytes));
        const uint32_t s = twin_mx_scale(e, (twin_mx_rule)rule, x);
        expected[1][(unsigned char *)a->dst_scale.data - arena_scales + offset_at(&a->dst_scale, b)] = (unsigned char)s;
        for (int i = 0; i < BLOCK; i++)
            expected[0][(unsigned char *)a->dst.data - arena_codes + offset_at(&a->dst, at[i])] =
                (unsigned char)twin_mx_encode(e, s, &x[i], way_at(a, (uint64_t)at[i]));
    }
    must(*a);
    same_arena(arena_codes, expected[0], "dst", number);
    same_arena(arena_scales, expected[1], "dst_scale", number);
}

/* Any shape, any axis, any strides, any address: the whole memory around the results is compared. */
static void quantized_views(void **state)
{
    (void)state;
    uint64_t rng = 62;
    const int rounds = cases_rounds(1000, 20000);
    for (int number = 0; number < rounds;) {
        const int element = cases_below(&rng, TWIN_MX_ELEMENTS), rule = cases_below(&rng, RULES),
                  isa = cases_below(&rng, 5);
        const value_kind *v = &value_kinds[cases_below(&rng, VALUES)];
        int64_t shape[TRN_MAX_RANK];
        int axis;
        const int rank = random_shape(shape, &axis, &rng);
        trn_mx_quantize_args a;
        memset(&a, 0, sizeof a);
        if (!place(&a.src, v->format, v->bytes, rank, shape, arena_values, true, &rng)) continue;
        if (!place(&a.dst, element_formats[element], 1, rank, shape, arena_codes, false, &rng)) continue;
        shape[axis] /= BLOCK;
        if (!place(&a.dst_scale, cases_one_in(&rng, 3) ? TRN_U8 : TRN_F8_E8M0, 1, rank, shape, arena_scales, false,
                   &rng))
            continue;
        a.scale = rules[rule];
        a.axis = axis_as_somebody_says(axis, rank, &rng);
        a.rounding = cases_one_in(&rng, 3)   ? roundings[cases_below(&rng, TWIN_MODES)]
                     : cases_one_in(&rng, 2) ? TRN_STOCHASTIC
                                             : TRN_NEAREST_EVEN;
        a.sr_bits = cases_below(&rng, 33);
        a.seed = cases_next(&rng);
        a.index = cases_one_in(&rng, 2) ? 0 : UINT64_MAX - 100;
        if (isa < COUNT(all_isas) && trn_isa_supported(all_isas[isa])) a.isa = all_isas[isa];
        const int64_t last = span(&a.src) / BLOCK + 1;
        for (int64_t b = 0; b < last && (b + 1) * BLOCK * v->bytes <= ARENA; b++)
            fill_block(arena_values + b * BLOCK * v->bytes, v->bytes, v, some_kind(&rng), &rng);
        noise(arena_codes, &rng);
        noise(arena_scales, &rng);
        check_quantized_view(&a, element, rule, axis, v, number++);
    }
}

static void check_dequantized_view(const trn_mx_dequantize_args *a, int element, int axis, const value_kind *v,
                                   int number)
{
    memcpy(expected[0], arena_values, ARENA);
    for (int64_t b = 0; b < blocks_of(&a->src_scale); b++) {
        int64_t at[BLOCK];
        positions_of(&a->dst, axis, b, at);
        const uint32_t s = ((const unsigned char *)a->src_scale.data)[offset_at(&a->src_scale, b)];
        for (int i = 0; i < BLOCK; i++) {
            const uint32_t code = ((const unsigned char *)a->src.data)[offset_at(&a->src, at[i])];
            const twin_number x = twin_mx_decode(&twin_mx_elements[element], s, code);
            store(expected[0] + ((unsigned char *)a->dst.data - arena_values) + offset_at(&a->dst, at[i]) * v->bytes,
                  v->bytes, twin_encode(&twin_formats[v->twin], &x, twin_plain(TWIN_NEAREST_EVEN)));
        }
    }
    must_return(*a);
    same_arena(arena_values, expected[0], "dst", number);
}

static void dequantized_views(void **state)
{
    (void)state;
    uint64_t rng = 63;
    const int rounds = cases_rounds(1000, 20000);
    for (int number = 0; number < rounds;) {
        const int element = cases_below(&rng, TWIN_MX_ELEMENTS), isa = cases_below(&rng, 5);
        const value_kind *v = &value_kinds[cases_below(&rng, VALUES)];
        int64_t shape[TRN_MAX_RANK];
        int axis;
        const int rank = random_shape(shape, &axis, &rng);
        trn_mx_dequantize_args a;
        memset(&a, 0, sizeof a);
        if (!place(&a.dst, v->format, v->bytes, rank, shape, arena_values, false, &rng)) continue;
        if (!place(&a.src, element_formats[element], 1, rank, shape, arena_codes, true, &rng)) continue;
        shape[axis] /= BLOCK;
        if (!place(&a.src_scale, TRN_F8_E8M0, 1, rank, shape, arena_scales, true, &rng)) continue;
        a.axis = axis_as_somebody_says(axis, rank, &rng);
        if (isa < COUNT(all_isas) && trn_isa_supported(all_isas[isa])) a.isa = all_isas[isa];
        noise(arena_codes, &rng);
        noise(arena_scales, &rng);
        noise(arena_values, &rng);
        if (cases_one_in(&rng, 2)) /* scales of everyday numbers, and their neighbours */
            for (int i = 0; i < ARENA; i++) arena_scales[i] = (unsigned char)(100 + arena_scales[i] % 40);
        check_dequantized_view(&a, element, axis, v, number++);
    }
}

/* ---- same bits everywhere ---- */

static uint64_t digest(const void *data, size_t bytes, uint64_t h)
{
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* Large enough for threads, there and back, along both axes. */
static void same_bits_for_any_threads_and_isa(void **state)
{
    (void)state;
    enum { ROWS = 384, COLUMNS = 544 };
    static const int threads[] = { 1, 2, 3, 7 };
    static uint32_t x[ROWS * COLUMNS], back[ROWS * COLUMNS];
    static uint8_t code[ROWS * COLUMNS], scale[ROWS * COLUMNS / BLOCK];
    uint64_t rng = 64;
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = cases_float(&rng) & ~(1u << 30); /* below 2: no infinities */
    for (int c = 0; c < 4; c++) {
        uint64_t first = 0;
        for (int i = 0; i < COUNT(all_isas); i++)
            for (int t = 0; t < COUNT(threads); t++) {
                trn_mx_quantize_args q;
                trn_mx_dequantize_args d;
                if (!trn_isa_supported(all_isas[i])) continue;
                memset(&q, 0, sizeof q);
                memset(&d, 0, sizeof d);
                q.isa = d.isa = all_isas[i];
                q.axis = d.axis = c & 1 ? -2 : 0;
                q.rounding = c & 2 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
                q.sr_bits = 16;
                q.src = trn_tensor_2d(TRN_F32, x, ROWS, COLUMNS);
                q.dst = d.src = trn_tensor_2d(TRN_F8_E5M2, code, ROWS, COLUMNS);
                q.dst_scale = d.src_scale =
                    trn_tensor_2d(TRN_F8_E8M0, scale, c & 1 ? ROWS / BLOCK : ROWS, c & 1 ? COLUMNS : COLUMNS / BLOCK);
                d.dst = trn_tensor_2d(TRN_F32, back, ROWS, COLUMNS);
                with_threads(threads[t]);
                must(q);
                must_return(d);
                const uint64_t found =
                    digest(back, sizeof back, digest(scale, sizeof scale, digest(code, sizeof code, 1)));
                if (first == 0) first = found;
                if (found != first)
                    fail_msg("case %d: isa %s with %d threads gives other bits", c, trn_isa_text(q.isa), threads[t]);
            }
        with_threads(1);
    }
}

/* Rounding modes of the processor, flushing of subnormals: nothing of it shows. */
/* Blocks in a row of which a few have NaN, infinity or a scale far from 1: what kernels leave, and go on after. */
static void a_few_unusual_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 101 };
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F6_E2M3, TRN_F6_E3M2, TRN_F4_E2M1, TRN_I8 };
    uint8_t code[BLOCKS * BLOCK], scale[BLOCKS];
    static uint32_t want[BLOCKS * BLOCK], found[BLOCKS * BLOCK];
    uint64_t rng = 77;
    for (int round = 0; round < cases_rounds(300, 20000); round++) {
        const int often = 1 + cases_below(&rng, 40), blocks = 1 + cases_below(&rng, BLOCKS), k = round % COUNT(format);
        const uint8_t top = format[k] == TRN_F8_E5M2 ? 0x7b : format[k] == TRN_F8_E4M3FN ? 0x7e : 0xff;
        for (int b = 0; b < blocks; b++) {
            const bool any = cases_one_in(&rng, often);
            scale[b] = (uint8_t)(any ? cases_below(&rng, 256) : 17 + cases_below(&rng, 223));
            for (int i = 0; i < BLOCK; i++) {
                uint8_t c = (uint8_t)cases_below(&rng, 256);
                if (!any && (c & 0x7f) > top) c = (uint8_t)(c & 0x80);
                code[b * BLOCK + i] = format[k] == TRN_F4_E2M1   ? c & 15
                                      : format[k] == TRN_F6_E2M3 ? c & 63
                                      : format[k] == TRN_F6_E3M2 ? c & 63
                                                                 : c;
            }
        }
        for (int i = 0; i < COUNT(all_isas); i++) {
            trn_mx_dequantize_args d;
            if (!trn_isa_supported(all_isas[i])) continue;
            memset(&d, 0, sizeof d);
            d.isa = all_isas[i];
            d.src = trn_tensor_1d(format[k], code, blocks * BLOCK);
            d.src_scale = trn_tensor_1d(TRN_F8_E8M0, scale, blocks);
            d.dst = trn_tensor_1d(TRN_F32, d.isa == TRN_ISA_PORTABLE ? want : found, blocks * BLOCK);
            must_return(d);
            for (int j = 0; j < blocks * BLOCK && d.isa != TRN_ISA_PORTABLE; j++)
                if (found[j] != want[j])
                    fail_msg("%s, code %02x under %02x: %08x (%s), not %08x", trn_format_name(format[k]), code[j],
                             scale[j / BLOCK], found[j], trn_isa_text(d.isa), want[j]);
        }
    }
}

static void the_floating_point_environment_does_not_matter(void **state)
{
    (void)state;
    enum { BLOCKS = MOST_BLOCKS };
    static uint32_t plain_back[BLOCKS * BLOCK], back[BLOCKS * BLOCK];
    static uint8_t plain[BLOCKS * BLOCK];
    uint64_t rng = 65;
    for (int element = 0; element < TWIN_MX_ELEMENTS; element++)
        for (int mode = 0; mode < TWIN_MODES; mode++)
            for (int i = 0; i < COUNT(all_isas); i++)
                for (int m = 0; m < ENVIRONMENTS; m++) {
                    trn_mx_quantize_args q;
                    trn_mx_dequantize_args d;
                    if (!trn_isa_supported(all_isas[i])) continue;
                    if (m == 0)
                        for (int b = 0; b < BLOCKS; b++)
                            fill_block(values + b * BLOCK * 4, 4, &value_kinds[0], some_kind(&rng), &rng);
                    memset(&q, 0, sizeof q);
                    memset(&d, 0, sizeof d);
                    q.isa = d.isa = all_isas[i];
                    q.rounding = roundings[mode];
                    q.scale = rules[mode % RULES];
                    q.src = trn_tensor_2d(TRN_F32, values, BLOCKS, BLOCK);
                    q.dst = d.src = trn_tensor_2d(element_formats[element], codes, BLOCKS, BLOCK);
                    q.dst_scale = d.src_scale = trn_tensor_2d(TRN_F8_E8M0, scales, BLOCKS, 1);
                    d.dst = trn_tensor_2d(TRN_F32, back, BLOCKS, BLOCK);
                    host_enter(m);
                    trn_status status = trn_mx_quantize(&q);
                    if (!status) status = trn_mx_dequantize(&d);
                    host_leave();
                    assert_int_equal(status, TRN_OK);
                    if (m == 0) {
                        memcpy(plain, codes, sizeof plain);
                        memcpy(plain_back, back, sizeof back);
                    } else if (memcmp(plain, codes, sizeof plain) != 0 || memcmp(plain_back, back, sizeof back) != 0) {
                        fail_msg("%s, %s, isa %s: the environment %d changes the bits", trn_format_name(q.dst.format),
                                 trn_round_text(q.rounding), trn_isa_text(q.isa), m);
                    }
                }
}

/* Stochastic rounding sees 32 bits below the last one of an element. Positions whose random word is close to 2^32 send
 * up what is 2^-23 of a step, even when that is a subnormal number that the processor would read as zero. */
static void the_last_random_bit_sees_subnormals(void **state)
{
    (void)state;
    enum { WORDS = 1 << 16 };
    static uint32_t word[WORDS];
    uint64_t index = 0, ups = 0, rng = 67;
    for (int found = 0; found < 8; index += WORDS) {
        trn_random_fill(word, WORDS, 0, 0, index, TRN_ISA_AUTO);
        for (int w = 0; w < WORDS && found < 8; w++) {
            if (word[w] < 0xfffffe00u) continue;
            found++;
            for (int i = 0; i < COUNT(all_isas); i++) {
                trn_mx_quantize_args a;
                uint32_t x[BLOCK];
                uint8_t code[BLOCK], scale;
                if (!trn_isa_supported(all_isas[i])) continue;
                memset(&a, 0, sizeof a);
                a.isa = all_isas[i];
                a.rounding = TRN_STOCHASTIC;
                a.index = index + (uint64_t)w - 1; /* the word is that of element 1 */
                a.dst = trn_tensor_1d(TRN_F8_E5M2, code, BLOCK);
                a.dst_scale = trn_tensor_1d(TRN_F8_E8M0, &scale, 1);
                a.src = trn_tensor_1d(TRN_F32, x, BLOCK);
                for (uint32_t exponent = 40; exponent < 70; exponent++) {
                    for (int j = 0; j < BLOCK; j++) x[j] = 0x7fffffu - (uint32_t)cases_below(&rng, 2);
                    x[0] = exponent << 23;
                    host_enter(4);
                    must(a);
                    host_leave();
                    for (int j = 0; j < BLOCK; j++) {
                        const twin_number v = twin_from_f32(x[j]);
                        CASES_EQUAL(twin_mx_encode(&twin_mx_elements[1], scale, &v, way_at(&a, (uint64_t)j)), code[j],
                                    "exponent %u, element %d, index %llu, isa %s", (unsigned)exponent, j,
                                    (unsigned long long)a.index, trn_isa_text(a.isa));
                    }
                    ups += code[1] == 1;
                }
            }
        }
    }
    assert_true(ups > 0); /* or the positions were not what they should be */
}

/* ---- Trainium3's SBUF ---- */

static trn_mx_sbuf_args sbuf_args(trn_format code, void *words, void *code_data, void *tile, void *scale, int64_t k,
                                  int64_t m)
{
    trn_mx_sbuf_args a;
    memset(&a, 0, sizeof a);
    a.words = trn_tensor_2d(code == TRN_F4_E2M1 ? TRN_U16 : TRN_U32, words, k / 4, m);
    a.codes = trn_tensor_2d(code, code_data, k, m);
    a.scale_tile = trn_tensor_2d(TRN_U8, tile, (k + 127) / 128 * 32, m);
    a.scales = trn_tensor_2d(TRN_F8_E8M0, scale, k / BLOCK, m);
    return a;
}

static void must_sbuf(trn_mx_sbuf_args a, bool to_sbuf)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if ((to_sbuf ? trn_mx_to_sbuf : trn_mx_from_sbuf)(&a) != TRN_OK) fail_msg("sbuf: %s", error.text);
}

/* By hand: where the words and scales of one column lie, and the FP4 words. */
static void a_tile_by_hand(void **state)
{
    (void)state;
    static const int rows[16] = { 0, 1, 2, 3, 32, 33, 34, 35, 64, 65, 66, 67, 96, 97, 98, 99 };
    uint8_t code[512], scale[16], tile[128];
    uint32_t word[128];
    uint16_t small[8];
    for (int i = 0; i < 512; i++) code[i] = (uint8_t)(i * 7);
    for (int g = 0; g < 16; g++) scale[g] = (uint8_t)(100 + g);
    for (int offset = 0; offset <= 12; offset += 4) {
        trn_mx_sbuf_args a = sbuf_args(TRN_F8_E4M3FN, word, code, tile, scale, 512, 1);
        a.scale_offset = offset;
        memset(tile, 0xee, sizeof tile);
        must_sbuf(a, true);
        assert_int_equal(word[0], 0x150e0700); /* k = 0 … 3: 0, 7, 14, 21, the first one lowest */
        assert_int_equal(word[1], 0x312a231c);
        assert_int_equal(word[127], ((508u * 7) & 0xff) | ((509u * 7) & 0xff) << 8 | ((510u * 7) & 0xff) << 16 |
                                        ((511u * 7) & 0xff) << 24);
        int used = 0;
        for (int g = 0; g < 16; g++) assert_int_equal(tile[rows[g] + offset], 100 + g);
        for (int i = 0; i < 128; i++) used += tile[i] != 0xee;
        assert_int_equal(used, 16); /* the rest is left for others */
    }

    trn_mx_sbuf_args a = sbuf_args(TRN_F8_E5M2, word, code, tile, scale, 512, 1);
    a.slot_distance = 128; /* the guide's own interleaving: k, k + 128, k + 256, k + 384 */
    must_sbuf(a, true);
    for (uint32_t p = 0; p < 128; p++)
        for (uint32_t i = 0; i < 4; i++) assert_int_equal(word[p] >> 8 * i & 0xff, code[p + 128 * i]);

    for (int i = 0; i < 32; i++) code[i] = (uint8_t)(i | 0xc0); /* bits above the code are ignored */
    a = sbuf_args(TRN_F4_E2M1, small, code, tile, scale, 32, 1);
    must_sbuf(a, true);
    assert_int_equal(small[0], 0x3210);
    assert_int_equal(small[3], 0xfedc);
    assert_int_equal(small[4], 0x3210);
}

/* In any strides, to the tile and back; what is not named stays as it was. */
static void tiles_there_and_back(void **state)
{
    (void)state;
    static const int distances[] = { 0, 1, 2, 8, 32, 128 };
    uint64_t rng = 66;
    for (int number = 0; number < 300; number++) {
        const int64_t k = BLOCK * (1 + cases_below(&rng, 18)),
                      m = 1 + cases_below(&rng, cases_one_in(&rng, 8) ? 1100 / (int)(k / BLOCK) : 40);
        const trn_format format = element_formats[cases_below(&rng, 3) == 0 ? 4 : cases_below(&rng, 2)];
        const int word_bytes = format == TRN_F4_E2M1 ? 2 : 4;
        const int64_t code_shape[2] = { k, m }, word_shape[2] = { k / 4, m }, scale_shape[2] = { k / BLOCK, m };
        const int64_t tile_shape[2] = { (k + 127) / 128 * 32, m };
        trn_mx_sbuf_args a;
        memset(&a, 0, sizeof a);
        if (!place(&a.codes, format, 1, 2, code_shape, arena_codes, false, &rng)) continue;
        if (!place(&a.words, word_bytes == 2 ? TRN_U16 : TRN_U32, word_bytes, 2, word_shape, arena_values, false, &rng))
            continue;
        if (!place(&a.scales, TRN_F8_E8M0, 1, 2, scale_shape, arena_scales, false, &rng)) continue;
        if (!place(&a.scale_tile, TRN_U8, 1, 2, tile_shape, expected[1], false, &rng)) continue;
        a.slot_distance = distances[cases_below(&rng, COUNT(distances))];
        if (a.slot_distance && k / 4 % a.slot_distance) a.slot_distance = 0;
        a.scale_offset = 4 * cases_below(&rng, 4);
        a.isa = all_isas[cases_below(&rng, 3)];
        if (!trn_isa_supported(a.isa)) a.isa = TRN_ISA_AUTO;
        noise(arena_codes, &rng);
        noise(arena_scales, &rng);
        noise(arena_values, &rng);
        noise(expected[1], &rng);
        if (format == TRN_F4_E2M1)
            for (int i = 0; i < ARENA; i++) arena_codes[i] &= 15;
        static unsigned char before[2][ARENA];
        memcpy(before[0], arena_codes, ARENA);
        memcpy(before[1], arena_scales, ARENA);
        must_sbuf(a, true);
        for (int64_t i = 0; i < k; i++) /* by the formula */
            for (int64_t j = 0; j < m; j++) {
                const int64_t d = a.slot_distance ? a.slot_distance : 1, row = i / (4 * d) * d + i % d,
                              slot = i / d % 4;
                const uint32_t word =
                    load((unsigned char *)a.words.data + offset_at(&a.words, row * m + j) * word_bytes, word_bytes);
                const uint32_t code = ((unsigned char *)a.codes.data)[offset_at(&a.codes, i * m + j)];
                CASES_EQUAL(code, word >> 2 * word_bytes * slot & (word_bytes == 2 ? 15 : 255),
                            "tile %d, k %lld, column %lld", number, (long long)i, (long long)j);
            }
        for (int64_t i = 0; i < k * m; i++) ((unsigned char *)a.codes.data)[offset_at(&a.codes, i)] = 0x55;
        for (int64_t i = 0; i < k / BLOCK * m; i++) ((unsigned char *)a.scales.data)[offset_at(&a.scales, i)] = 0x55;
        must_sbuf(a, false);
        same_arena(arena_codes, before[0], "codes", number);
        same_arena(arena_scales, before[1], "scales", number);
    }
}

static void fp4_becomes_fp8(void **state)
{
    (void)state;
    static const uint8_t known[2][8] = { { 0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c },
                                         { 0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46 } };
    static const trn_format format[2] = { TRN_F8_E4M3FN, TRN_F8_E5M2 };
    uint8_t code[64], out[64], map[16];
    for (int i = 0; i < 64; i++) code[i] = (uint8_t)i;
    for (int f = 0; f < 2; f++) {
        trn_mx_fp4_args a;
        memset(&a, 0, sizeof a);
        a.dst = trn_tensor_2d(format[f], out, 8, 8);
        a.src = trn_tensor_transposed(trn_tensor_2d(TRN_F4_E2M1, code, 8, 8));
        assert_int_equal(trn_mx_fp4_to_fp8(&a), TRN_OK);
        for (int i = 0; i < 64; i++) {
            const int c = code[i % 8 * 8 + i / 8];
            CASES_EQUAL(known[f][c & 7] | (c & 8 ? 0x80 : 0), out[i], "FP4 code %d", c & 15);
        }
        for (int i = 0; i < 16; i++) map[i] = (uint8_t)(200 - i);
        a.map = map;
        assert_int_equal(trn_mx_fp4_to_fp8(&a), TRN_OK);
        for (int i = 0; i < 64; i++) CASES_EQUAL(200 - (code[i % 8 * 8 + i / 8] & 15), out[i], "a map of one's own");
    }
    const trn_mx_fp4_args none = { trn_tensor_1d(TRN_F8_E5M2, NULL, 0), trn_tensor_1d(TRN_F4_E2M1, NULL, 0), NULL,
                                   NULL };
    assert_int_equal(trn_mx_fp4_to_fp8(&none), TRN_OK);
}

/* ---- refusals ---- */

static unsigned char memory[4096];

static trn_mx_quantize_args good(void)
{
    trn_mx_quantize_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F8_E4M3FN, memory, 4, 64);
    a.dst_scale = trn_tensor_2d(TRN_F8_E8M0, memory + 256, 4, 2);
    a.src = trn_tensor_2d(TRN_F32, memory + 1024, 4, 64);
    return a;
}

static void refuse(trn_mx_quantize_args a, trn_status status, const char *words)
{
    unsigned char before[sizeof memory];
    trn_error error = { TRN_OK, "" };
    memcpy(before, memory, sizeof memory);
    a.error = &error;
    const trn_status found = trn_mx_quantize(&a);
    if (found != status || error.status != status || !strstr(error.text, words))
        fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, words, (int)found, error.text);
    a.error = NULL;
    assert_int_equal(trn_mx_quantize(&a), status);
    assert_memory_equal(before, memory, sizeof memory); /* nothing is written */
}

static void wrong_calls_are_refused_and_write_nothing(void **state)
{
    (void)state;
    assert_int_equal(trn_mx_quantize(NULL), TRN_EINVAL);
    trn_mx_quantize_args a = good();
    must(a);
    a = good(), a.dst.format = TRN_F8_E4M3, refuse(a, TRN_EFORMAT, "dst is float8_e4m3; MX elements are float8_e4m3fn");
    a = good(), a.dst.format = TRN_F8_E3M4, refuse(a, TRN_EFORMAT, "dst is float8_e3m4; MX elements are");
    a = good(), a.dst.format = TRN_U8, refuse(a, TRN_EFORMAT, "dst is uint8; MX");
    a = good(), a.src.format = TRN_TF32, refuse(a, TRN_EFORMAT, "src is tfloat32; values are float32");
    a = good(), a.dst_scale.format = TRN_I8,
    refuse(a, TRN_EFORMAT, "dst_scale is int8; block scales are float8_e8m0fnu");
    a = good(), a.axis = 2, refuse(a, TRN_EINVAL, "axis is 2 but the rank is 2; 0 is the last axis");
    a = good(), a.axis = -3, refuse(a, TRN_EINVAL, "axis is -3");
    a = good(), a.axis = -2, refuse(a, TRN_ESHAPE, "src has size 4 on axis 0, no multiple of 32");
    a = good(), a.src.shape[1] = a.dst.shape[1] = 48, refuse(a, TRN_ESHAPE, "48 on axis 1, no multiple of 32");
    a = good(), a.dst.shape[0] = 3, refuse(a, TRN_ESHAPE, "dst has size 3 on axis 0 but src has 4");
    a = good(), a.dst_scale.shape[1] = 64, refuse(a, TRN_ESHAPE, "dst_scale has size 64 on axis 1, expected 2");
    a = good(), a.dst_scale.rank = 1, refuse(a, TRN_ESHAPE, "src has rank 2, dst 2 and dst_scale 1");
    a = good(), a.scale = (trn_mx_scale)5, refuse(a, TRN_EINVAL, "scale 5");
    a = good(), a.scale = (trn_mx_scale)-1, refuse(a, TRN_EINVAL, "scale -1");
    a = good(), a.rounding = (trn_rounding)6, refuse(a, TRN_EINVAL, "rounding 6");
    a = good(), a.sr_bits = 33, refuse(a, TRN_EINVAL, "sr_bits is 33");
    a = good(), a.isa = (trn_isa)99, refuse(a, TRN_EUNSUPPORTED, "99");
    a = good(), a.dst.data = NULL, refuse(a, TRN_EINVAL, "dst");
    a = good(), a.dst_scale.stride[1] = 1, refuse(a, TRN_ESHAPE, "dst_scale has stride 0 on axis 0");
    a = good(), a.dst.data = memory + 1030, refuse(a, TRN_EINVAL, "dst overlaps src");
    a = good(), a.dst_scale.data = memory + 1030, refuse(a, TRN_EINVAL, "dst_scale overlaps src");
    a = good(), a.dst_scale.data = memory + 255, refuse(a, TRN_EINVAL, "dst overlaps dst_scale");
    a = good(), a.src.shape[0] = a.dst.shape[0] = a.dst_scale.shape[0] = 0, must(a);
    a.axis = -2, refuse(a, TRN_ESHAPE, "axis 1");
    a.dst_scale.shape[1] = 64, must(a); /* no rows, no blocks */

    trn_mx_dequantize_args d;
    trn_error error;
    memset(&d, 0, sizeof d);
    d.dst = trn_tensor_2d(TRN_BF16, memory + 1024, 4, 64);
    d.src = trn_tensor_2d(TRN_F8_E4M3FN, memory, 4, 64);
    d.src_scale = trn_tensor_2d(TRN_F8_E8M0, memory + 256, 4, 2);
    d.error = &error;
    assert_int_equal(trn_mx_dequantize(NULL), TRN_EINVAL);
    assert_int_equal(trn_mx_dequantize(&d), TRN_OK);
    d.src_scale.shape[1] = 3;
    assert_int_equal(trn_mx_dequantize(&d), TRN_ESHAPE);
    assert_non_null(strstr(error.text, "src_scale has size 3 on axis 1, expected 2 (dst has 64, in blocks of 32)"));
    d.src_scale.shape[1] = 2, d.dst.data = memory + 100;
    assert_int_equal(trn_mx_dequantize(&d), TRN_EINVAL);
    d.dst.data = memory + 1024, d.dst.format = TRN_I32;
    assert_int_equal(trn_mx_dequantize(&d), TRN_EFORMAT);
}

static void refuse_sbuf(trn_mx_sbuf_args a, trn_status status, const char *words)
{
    for (int to = 0; to < 2; to++) {
        unsigned char before[sizeof memory];
        trn_error error = { TRN_OK, "" };
        memcpy(before, memory, sizeof memory);
        a.error = &error;
        const trn_status found = (to ? trn_mx_to_sbuf : trn_mx_from_sbuf)(&a);
        if (found != status || error.status != status || !strstr(error.text, words))
            fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, words, (int)found, error.text);
        assert_memory_equal(before, memory, sizeof memory);
    }
}

static void wrong_tiles_are_refused(void **state)
{
    (void)state;
#define GOOD sbuf_args(TRN_F8_E4M3FN, memory, memory + 1024, memory + 2048, memory + 3072, 128, 8)
    trn_mx_sbuf_args a = GOOD;
    must_sbuf(a, true);
    must_sbuf(a, false);
    assert_int_equal(trn_mx_to_sbuf(NULL), TRN_EINVAL);
    a = GOOD, a.words.rank = a.codes.rank = a.scales.rank = a.scale_tile.rank = 0,
    refuse_sbuf(a, TRN_EINVAL, "neither words");
    a = GOOD, a.words.rank = a.codes.rank = 0, must_sbuf(a, true); /* scales only */
    a = GOOD, a.scales.rank = a.scale_tile.rank = 0, must_sbuf(a, true);
    a = GOOD, a.codes.rank = 0, refuse_sbuf(a, TRN_ESHAPE, "codes has rank 0");
    a = GOOD, a.codes.format = TRN_F4_E2M1, refuse_sbuf(a, TRN_EFORMAT, "codes are float4_e2m1fn and words uint32");
    a = GOOD, a.codes.format = TRN_F8_E4M3, refuse_sbuf(a, TRN_EFORMAT, "codes are float8_e4m3 and");
    a = GOOD, a.words.shape[0] = 31, refuse_sbuf(a, TRN_ESHAPE, "words [31, 8]");
    a = GOOD, a.words.shape[1] = 7, refuse_sbuf(a, TRN_ESHAPE, "words [32, 7]");
    a = GOOD, a.codes.shape[0] = 100, refuse_sbuf(a, TRN_ESHAPE, "codes are [100, 8]");
    a = GOOD, a.slot_distance = 3, refuse_sbuf(a, TRN_EINVAL, "slot_distance is 3; it must divide the 32 rows");
    a = GOOD, a.slot_distance = -1, refuse_sbuf(a, TRN_EINVAL, "slot_distance is -1");
    a = GOOD, a.scale_offset = 16, refuse_sbuf(a, TRN_EINVAL, "scale_offset is 16");
    a = GOOD, a.scale_offset = -4, refuse_sbuf(a, TRN_EINVAL, "scale_offset is -4");
    a = GOOD, a.scale_offset = 6, refuse_sbuf(a, TRN_EINVAL, "scale_offset is 6");
    a = GOOD, a.scale_tile.shape[0] = 3,
    refuse_sbuf(a, TRN_ESHAPE, "the tile takes as many columns, and rows from 4 up");
    a = GOOD, a.scale_tile.shape[1] = 9, refuse_sbuf(a, TRN_ESHAPE, "scale_tile [32, 9]");
    a = GOOD, a.scales.format = TRN_I8, refuse_sbuf(a, TRN_EFORMAT, "scales is int8");
    a = GOOD, a.scales.shape[0] = 3, refuse_sbuf(a, TRN_ESHAPE, "scales are [3, 8] but codes [128, 8]");
    a = GOOD, a.words.data = memory + 1024, refuse_sbuf(a, TRN_EINVAL, "overlaps");
    a = GOOD, a.scales.data = memory + 2047, refuse_sbuf(a, TRN_EINVAL, "overlaps");
    a = GOOD, a.isa = (trn_isa)77, refuse_sbuf(a, TRN_EUNSUPPORTED, "77");
#undef GOOD

    trn_error error;
    trn_mx_fp4_args f = { trn_tensor_1d(TRN_F8_E5M2, memory, 8), trn_tensor_1d(TRN_F4_E2M1, memory + 8, 8), NULL,
                          &error };
    assert_int_equal(trn_mx_fp4_to_fp8(NULL), TRN_EINVAL);
    assert_int_equal(trn_mx_fp4_to_fp8(&f), TRN_OK);
    f.dst.shape[0] = 7;
    assert_int_equal(trn_mx_fp4_to_fp8(&f), TRN_ESHAPE);
    f.dst.shape[0] = 8, f.dst.format = TRN_F8_E4M3;
    assert_int_equal(trn_mx_fp4_to_fp8(&f), TRN_EFORMAT);
    f.dst.format = TRN_F8_E4M3FN, f.dst.data = memory + 1;
    assert_int_equal(trn_mx_fp4_to_fp8(&f), TRN_EINVAL);
}

/* Scales of a data tile of so many partitions: as many rows, or 4, 8 or 12 fewer. */
static void rows_of_a_scale_tile(void **state)
{
    (void)state;
    for (int64_t partitions = -32; partitions <= 128; partitions += 16)
        for (int64_t rows = -4; rows <= 136; rows++) {
            const int64_t fewer = partitions - rows;
            const bool tile = partitions > 0 && partitions % 32 == 0 && rows > 0 &&
                              (fewer == 0 || fewer == 4 || fewer == 8 || fewer == 12);
            assert_int_equal(trni_mx_is_tile(rows, partitions), tile);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_of_every_exponent),
        cmocka_unit_test(published_facts),
        cmocka_unit_test(every_way_agrees_with_the_twin),
        cmocka_unit_test(golden_blocks_agree),
        cmocka_unit_test(every_code_under_every_scale),
        cmocka_unit_test(quantizing_undoes_dequantizing),
        cmocka_unit_test(quantized_views),
        cmocka_unit_test(dequantized_views),
        cmocka_unit_test(a_few_unusual_blocks),
        cmocka_unit_test(same_bits_for_any_threads_and_isa),
        cmocka_unit_test(the_floating_point_environment_does_not_matter),
        cmocka_unit_test(the_last_random_bit_sees_subnormals),
        cmocka_unit_test(a_tile_by_hand),
        cmocka_unit_test(tiles_there_and_back),
        cmocka_unit_test(fp4_becomes_fp8),
        cmocka_unit_test(wrong_calls_are_refused_and_write_nothing),
        cmocka_unit_test(wrong_tiles_are_refused),
        cmocka_unit_test(rows_of_a_scale_tile),
    };
    return cmocka_run_group_tests_name("mx", tests, NULL, NULL);
}
