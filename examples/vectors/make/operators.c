/* operators.c - what the Vector engine's operators make of two numbers, or of bits.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#include <trnmath/trn_vector_engine.h>

/* What an operator does, where its name does not say it all. */
static const struct rule {
    trn_alu op;
    const char *text;
} rules[] = {
    { TRN_ALU_ADD, "a + b" },
    { TRN_ALU_SUBTRACT, "a - b" },
    { TRN_ALU_MULTIPLY, "a b" },
    { TRN_ALU_MAXIMUM, "the larger; a NaN loses against a number, +0 is above -0" },
    { TRN_ALU_MINIMUM, "the smaller; a NaN loses against a number, -0 is below +0" },
    { TRN_ALU_EQUAL, "1 or 0; NaN equals nothing" },
    { TRN_ALU_NOT_EQUAL, "1 or 0; NaN equals nothing" },
    { TRN_ALU_GREATER_EQUAL, "1 or 0; 0 with a NaN" },
    { TRN_ALU_GREATER, "1 or 0; 0 with a NaN" },
    { TRN_ALU_LESS_EQUAL, "1 or 0; 0 with a NaN" },
    { TRN_ALU_LESS, "1 or 0; 0 with a NaN" },
    { TRN_ALU_LOGICAL_AND, "1 or 0; zeros of both signs are false, NaN is true" },
    { TRN_ALU_LOGICAL_OR, "1 or 0; zeros of both signs are false, NaN is true" },
    { TRN_ALU_LOGICAL_XOR, "1 or 0; zeros of both signs are false, NaN is true" },
    { TRN_ALU_ABS_MAX, "the operand with the larger magnitude, with its sign; of equal ones b; a NaN loses" },
    { TRN_ALU_ABS_MIN, "the operand with the smaller magnitude, with its sign; of equal ones b; a NaN loses" },
    { TRN_ALU_ABS, "|a|" },
    { TRN_ALU_SQUARE, "a a" },
    { TRN_ALU_RELU, "a, or +0 where a <= 0" },
    { TRN_ALU_RECIPROCAL, "1 / a" },
    { TRN_ALU_LOGICAL_NOT, "1 where a is a zero of either sign, else 0" },
    { TRN_ALU_INVERT, "bits: ~a" },
    { TRN_ALU_BITWISE_AND, "bits: a & b" },
    { TRN_ALU_BITWISE_OR, "bits: a | b" },
    { TRN_ALU_BITWISE_XOR, "bits: a ^ b" },
    { TRN_ALU_LEFT_SHIFT, "bits: a << b; 0 for b of 32 and more" },
    { TRN_ALU_RIGHT_SHIFT, "bits: a >> b, zeros from above; 0 for b of 32 and more" },
};

static uint32_t apply(const vec_file *f, const trn_alu_info *info, uint32_t a, uint32_t b)
{
    const bool bits = info->kind == TRN_ALU_BITVEC;
    const trn_format format = bits ? TRN_U32 : TRN_F32;
    uint32_t x = a, y = b, z = 0;
    trn_error error;
    trn_status status;
    if (info->operands == 2) {
        trn_tensor_tensor_args args = { .dst = trn_tensor_2d(format, &z, 1, 1), .op = info->op };
        args.data1 = trn_tensor_2d(format, &x, 1, 1);
        args.data2 = trn_tensor_2d(format, &y, 1, 1);
        args.error = &error;
        status = trn_tensor_tensor(&args);
    } else {
        trn_tensor_scalar_args args = { .dst = trn_tensor_2d(format, &z, 1, 1), .op0 = info->op };
        args.data = trn_tensor_2d(format, &x, 1, 1);
        args.error = &error;
        status = trn_tensor_scalar(&args);
    }
    if (status != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    return z;
}

static void put(vec_file *f, const trn_alu_info *info, const char *kind, uint32_t a, uint32_t b)
{
    vec_begin(f, kind);
    vec_word(f, 8, a);
    if (info->operands == 2) vec_word(f, 8, b);
    vec_arrow(f);
    vec_word(f, 8, apply(f, info, a, b));
    vec_end(f);
}

static const char *pair_kind(uint32_t a, uint32_t b)
{
    const uint32_t x = a & 0x7fffffffu, y = b & 0x7fffffffu;
    if (x > 0x7f800000u || y > 0x7f800000u) return "with a NaN";
    if (x == 0x7f800000u || y == 0x7f800000u) return "with an infinity";
    if (x == 0 || y == 0) return "with a zero";
    return x < 0x800000u || y < 0x800000u ? "with a subnormal number" : "normal numbers";
}

static const char *const pair_kinds[] = { "with a zero", "with a subnormal number", "normal numbers",
                                          "with an infinity", "with a NaN" };

static void put_pairs(vec_file *f, const trn_alu_info *info)
{
    const uint32_t *edge;
    const int edges = vec_edges(&edge), others = info->operands == 2 ? edges : 1;
    for (int kind = 0; kind < 5; kind++)
        for (int i = 0; i < edges; i++)
            for (int j = 0; j < others; j++) {
                const uint32_t b = info->operands == 2 ? edge[j] : 0x3f800000u;
                if (strcmp(pair_kind(edge[i], b), pair_kinds[kind]) == 0) put(f, info, pair_kinds[kind], edge[i], b);
            }
}

static void make_operator(const struct rule *rule)
{
    const trn_alu_info *info = trn_alu_info_of(rule->op);
    const bool bits = info->kind == TRN_ALU_BITVEC;
    vec_file f = vec_open("alu", "operator/%s", info->name);
    vec_random r = { 46, (uint64_t)rule->op, 0 };
    vec_head(&f, "operator", "%s", info->name);
    vec_head(&f, "numbers", "%s", bits ? "uint32" : "float32");
    vec_columns(&f, info->operands == 2 ? "a/8 b/8" : "a/8", "r/8");
    vec_head(&f, "nan", "%s", bits ? "none" : "7f800001-7fffffff ff800001-ffffffff");
    vec_head(&f, "rule", "%s%s", rule->text,
             bits ? "" : "; rounded once to binary32, nearest even; subnormal numbers are kept; every NaN is 7fc00000");
    vec_known(&f, bits ? "documented" : "assumed",
              bits ? "NKI, Supported Math Operators for NKI ISA; counts beyond the width: assumed"
                   : "NKI, Supported Math Operators for NKI ISA: the operators; one rounding, NaN, signs of zeros and "
                     "subnormal numbers: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    if (!bits) put_pairs(&f, info);
    for (int i = 0; i < 96; i++) {
        const uint32_t a = vec_draw(&r), b = vec_draw(&r);
        put(&f, info, "any bits", a, b);
    }
    for (int i = 0; i < 96 && !bits; i++) {
        const uint32_t a = vec_bits(vec_normal(&r)), b = vec_bits(vec_normal(&r));
        put(&f, info, "normal distribution", a, i % 4 ? b : a ^ (i % 8 ? 0x80000000u : 0) ^ vec_below(&r, 4));
    }
    for (uint32_t i = 0; i < 40 && bits; i++) put(&f, info, "counts", vec_draw(&r), i);
    vec_close(&f);
}

void vec_make_operators(void)
{
    for (int i = 0; i < (int)(sizeof rules / sizeof *rules); i++) make_operator(&rules[i]);
}
