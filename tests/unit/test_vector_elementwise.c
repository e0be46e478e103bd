/* test_vector_elementwise.c - the Vector engine's arithmetic: every operator on all pairs of special numbers, every
 * kernel and way into it, two roundings, exact integers, copies and constants, size and threads, refusals.
 * SPDX-License-Identifier: MIT
 *
 * Random arguments against the twin: test_engine_twin.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "trnmath/trn_vector_engine.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/refusal.h"

/* ---- what the operators are, once more ---- */

static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001,
    0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x40000000, 0xc0000000, 0x3f000000, 0x40400000, 0x3fc00000,
    0x4b000000, 0x4b800000, 0x4b800001, 0xcb800000, 0x4f000000, 0xcf000000, 0x1f800000, 0x5f800000, 0x60000000,
    0x7f7fffff, 0xff7fffff, 0x7f000000, 0x7e800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
    0xffbfffff, 0x7fffffff, 0x33800000, 0xb3800001, 0x477ff000, 0x3eaaaaab,
};
enum { SPECIALS = sizeof special / sizeof special[0], PAIRS = SPECIALS * SPECIALS };

static uint32_t truth(bool yes) { return yes ? 0x3f800000u : 0; }

static uint32_t number(double exact) /* one rounding: sums and products of two floats, or their quotient, once more */
{
    return isnan(exact) ? 0x7fc00000u : cases_bits_of((float)exact);
}

static uint32_t larger(uint32_t a, uint32_t b, bool most, bool magnitudes)
{
    const float x = cases_float_of(a), y = cases_float_of(b);
    if (isnan(x)) return isnan(y) ? 0x7fc00000u : b;
    if (isnan(y)) return a;
    const float p = magnitudes ? fabsf(x) : x, q = magnitudes ? fabsf(y) : y;
    if (p != q) return (most ? p > q : p < q) ? a : b;
    if (magnitudes || p != 0) return b;
    return (signbit(x) != 0) == most ? b : a;
}

/* Sums of two floats are inexact in binary64 too when they are far apart, but then round the same way: the far operand
 * is odd to nobody (53 > 2 * 24 + 1). Products are exact; quotients of floats are safe by the same margin. */
static uint32_t defined(trn_alu op, uint32_t a, uint32_t b)
{
    const float x = cases_float_of(a), y = cases_float_of(b);
    switch (op) {
    case TRN_ALU_ADD: return number((double)x + (double)y);
    case TRN_ALU_SUBTRACT: return number((double)x - (double)y);
    case TRN_ALU_MULTIPLY: return number((double)x * (double)y);
    case TRN_ALU_MAXIMUM: return larger(a, b, true, false);
    case TRN_ALU_MINIMUM: return larger(a, b, false, false);
    case TRN_ALU_EQUAL: return truth(x == y);
    case TRN_ALU_NOT_EQUAL: return truth(!(x == y));
    case TRN_ALU_GREATER_EQUAL: return truth(x >= y);
    case TRN_ALU_GREATER: return truth(x > y);
    case TRN_ALU_LESS_EQUAL: return truth(x <= y);
    case TRN_ALU_LESS: return truth(x < y);
    case TRN_ALU_LOGICAL_AND: return truth(x != 0 && y != 0);
    case TRN_ALU_LOGICAL_OR: return truth(x != 0 || y != 0);
    case TRN_ALU_LOGICAL_XOR: return truth((x != 0) != (y != 0));
    case TRN_ALU_ABS_MAX: return larger(a, b, true, true);
    case TRN_ALU_ABS_MIN: return larger(a, b, false, true);
    case TRN_ALU_ABS: return isnan(x) ? 0x7fc00000u : a & 0x7fffffffu;
    case TRN_ALU_SQUARE: return number((double)x * (double)x);
    case TRN_ALU_RELU: return isnan(x) ? 0x7fc00000u : x > 0 ? a : 0;
    case TRN_ALU_RECIPROCAL: return number(1.0 / (double)x);
    case TRN_ALU_LOGICAL_NOT: return truth(x == 0);
    default: fail_msg("no such operator"); return 0;
    }
}

static bool on_vector(int op)
{
    return op != TRN_ALU_BYPASS && op < TRN_ALU_INVERT && op != TRN_ALU_POWER && op != TRN_ALU_RSQRT &&
           op != TRN_ALU_AVERAGE;
}

static float left[PAIRS], right[PAIRS], result[PAIRS];

static void fill_pairs(void)
{
    for (int i = 0; i < PAIRS; i++) {
        left[i] = cases_float_of(special[i / SPECIALS]);
        right[i] = cases_float_of(special[i % SPECIALS]);
    }
}

#define EACH_ISA(isa)                                                                                                  \
    for (size_t isa##_i = 0; isa##_i < sizeof all_isas / sizeof all_isas[0]; isa##_i++)                                \
        for (trn_isa isa = all_isas[isa##_i], isa##_once = isa; isa##_once && trn_isa_supported(isa);                  \
             isa##_once = TRN_ISA_AUTO)

/* ---- numbers ---- */

/* Kernels: all pairs at once, then runs of every length at odd places, in place on either side. */
static void kernels(void **unused)
{
    (void)unused;
    fill_pairs();
    EACH_ISA(isa)
    for (int op = 0; op < TRN_ALU_INVERT; op++) {
        if (!on_vector(op)) continue;
        const trni_alu_kernel kernel = trni_alu_kernel_of((trn_alu)op, isa);
        trni_alu_run(kernel, result, left, right, PAIRS);
        for (int i = 0; i < PAIRS; i++)
            CASES_EQUAL(defined((trn_alu)op, cases_bits_of(left[i]), cases_bits_of(right[i])), cases_bits_of(result[i]),
                        "%s of %08x and %08x, %s", trn_alu_name((trn_alu)op), (unsigned)cases_bits_of(left[i]),
                        (unsigned)cases_bits_of(right[i]), trn_isa_text(isa));
        for (size_t n = 0; n < 70; n++) {
            float x[80], y[80];
            memcpy(x, left + 1600 + n, sizeof x);
            memcpy(y, right + 1600 + n, sizeof y);
            trni_alu_run(kernel, x + 1, x + 1, y + 2, n);
            trni_alu_run(kernel, y + 2, left + 1601 + n, y + 2, n);
            for (size_t i = 0; i < n; i++) {
                const float at = left[1601 + n + i], by = right[1602 + n + i];
                const uint32_t want = defined((trn_alu)op, cases_bits_of(at), cases_bits_of(by));
                CASES_EQUAL(want, cases_bits_of(x[1 + i]), "%s in place", trn_alu_name((trn_alu)op));
                CASES_EQUAL(want, cases_bits_of(y[2 + i]), "%s in the other's place", trn_alu_name((trn_alu)op));
            }
            CASES_EQUAL(cases_bits_of(left[1601 + 2 * n]), cases_bits_of(x[1 + n]), "one beyond");
        }
    }
    CASES_EQUAL(0xbf800000, cases_bits_of(trni_alu_apply(TRN_ALU_ABS_MAX, 1.0f, -1.0f)), "a tie returns the second");
}

/* The upper halves of the special numbers, as bfloat16. */
static uint16_t half_of(float x) { return (uint16_t)(cases_bits_of(x) >> 16); }

static float of_half(uint16_t h) { return cases_float_of((uint32_t)h << 16); }

static uint16_t to_half(uint32_t bits)
{
    if (isnan(cases_float_of(bits))) return (uint16_t)((bits >> 16 & 0x8000u) | 0x7fc0u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static uint16_t left_half[PAIRS], right_half[PAIRS], result_half[PAIRS];

/* One pass over memory: tensors of both formats on every side, numbers, both orders, one operator and two. */
static void chains(void **unused)
{
    (void)unused;
    fill_pairs();
    for (int i = 0; i < PAIRS; i++) left_half[i] = half_of(left[i]), right_half[i] = half_of(right[i]);
    EACH_ISA(isa)
    for (int op = 0; op < TRN_ALU_INVERT; op++) {
        if (!on_vector(op)) continue;
        for (int form = 0; form < 32; form++) {
            trni_chain c;
            memset(&c, 0, sizeof c);
            c.from_half = form & 1, c.to_half = form & 2, c.other_half = form & 4, c.steps = form & 16 ? 2 : 1;
            const int with = c.steps - 1;
            c.step[with].op = (trn_alu)op, c.step[with].tensor = true, c.step[with].reverse = form & 8;
            if (with) c.step[0].op = TRN_ALU_MULTIPLY, c.value[0] = -3.0f;
            const size_t from = (size_t)form % 7, n = PAIRS - from - (size_t)form;
            const void *x = c.from_half ? (const void *)(left_half + from) : (const void *)(left + from);
            const void *y = c.other_half ? (const void *)(right_half + from) : (const void *)(right + from);
            trni_chain_run(&c, isa, c.to_half ? (void *)(result_half + from) : (void *)(result + from), x, y, n);
            for (size_t i = from; i < from + n; i++) {
                uint32_t p = cases_bits_of(c.from_half ? of_half(left_half[i]) : left[i]);
                const uint32_t q = cases_bits_of(c.other_half ? of_half(right_half[i]) : right[i]);
                if (with) p = defined(TRN_ALU_MULTIPLY, p, cases_bits_of(-3.0f));
                const trn_alu_info *info = trn_alu_info_of((trn_alu)op);
                const bool turned = c.step[with].reverse;
                (void)info;
                const uint32_t want = defined((trn_alu)op, turned ? q : p, turned ? p : q);
                if (c.to_half)
                    CASES_EQUAL(to_half(want), result_half[i], "%s, form %d, %s", info->name, form, trn_isa_text(isa));
                else
                    CASES_EQUAL(want, cases_bits_of(result[i]), "%s, form %d, %s", info->name, form, trn_isa_text(isa));
            }
        }
    }
}

/* tensor_scalar with each special number as operand, a number and a tile, both orders; operators of one operand stay
 * with data when reversed. */
static void scalars(void **unused)
{
    (void)unused;
    fill_pairs();
    float column[SPECIALS];
    for (int i = 0; i < SPECIALS; i++) column[i] = cases_float_of(special[i]);
    EACH_ISA(isa)
    for (int op = 0; op < TRN_ALU_INVERT; op++) {
        if (!on_vector(op)) continue;
        const bool one = trn_alu_info_of((trn_alu)op)->operands == 1;
        for (int reverse = 0; reverse < 2; reverse++) {
            trn_tensor_scalar_args a = {
                .generation = TRN_TRAINIUM3, .isa = isa, .op0 = (trn_alu)op, .reverse0 = reverse
            };
            a.dst = trn_tensor_2d(TRN_F32, result, SPECIALS, SPECIALS);
            a.data = trn_tensor_2d(TRN_F32, right, SPECIALS, SPECIALS);
            if (!one) a.operand0_tile = trn_tensor_2d(TRN_F32, column, SPECIALS, 1);
            assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
            for (int i = 0; i < PAIRS; i++) {
                const uint32_t s = special[i / SPECIALS], x = special[i % SPECIALS];
                CASES_EQUAL(defined((trn_alu)op, reverse && !one ? s : x, reverse && !one ? x : s),
                            cases_bits_of(result[i]), "%s %08x %08x reverse %d", trn_alu_name((trn_alu)op), (unsigned)x,
                            (unsigned)s, reverse);
            }
            a.operand0_tile.rank = 0;
            a.operand0 = one ? 0 : -3.0f;
            assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
            for (int i = 0; i < PAIRS; i++) {
                const uint32_t s = cases_bits_of(-3.0f), x = special[i % SPECIALS];
                CASES_EQUAL(defined((trn_alu)op, reverse && !one ? s : x, reverse && !one ? x : s),
                            cases_bits_of(result[i]), "%s %08x -3 reverse %d", trn_alu_name((trn_alu)op), (unsigned)x,
                            reverse);
            }
        }
    }
}

/* (1 + 2^-12)^2 - (1 + 2^-11) is 0 after two roundings, and 2^-24 after one. On every way through the kernels. */
static void two_roundings(void **unused)
{
    static float x[100], r[100];
    static uint16_t narrow[100];
    (void)unused;
    for (int i = 0; i < 100; i++) x[i] = 0x1.001p0f;
    EACH_ISA(isa)
    for (int f = 1; f < 50; f += 16) {
        trn_tensor_scalar_args a = {
            .isa = isa, .op0 = TRN_ALU_MULTIPLY, .operand0 = 0x1.001p0f, .op1 = TRN_ALU_SUBTRACT
        };
        a.operand1 = 0x1.002p0f;
        a.data = trn_tensor_2d(TRN_F32, x, 2, f);
        a.dst = trn_tensor_2d(TRN_F32, r, 2, f);
        memset(r, 1, sizeof r);
        assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
        for (int i = 0; i < 2 * f; i++) CASES_EQUAL(0, cases_bits_of(r[i]), "one rounding on %s", trn_isa_text(isa));
        a.dst = trn_tensor_2d(TRN_F16, narrow, 2, f);
        memset(narrow, 1, sizeof narrow);
        assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
        for (int i = 0; i < 2 * f; i++) CASES_EQUAL(0, narrow[i], "one rounding on the way to float16");
        float y[100];
        for (int i = 0; i < 100; i++) y[i] = -0x1.002p0f;
        trn_scalar_tensor_tensor_args b = {
            .isa = isa, .op0 = TRN_ALU_MULTIPLY, .operand0 = 0x1.001p0f, .op1 = TRN_ALU_ADD
        };
        b.data = a.data, b.dst = trn_tensor_2d(TRN_F32, r, 2, f), b.operand1 = trn_tensor_2d(TRN_F32, y, 2, f);
        memset(r, 1, sizeof r);
        assert_int_equal(trn_scalar_tensor_tensor(&b), TRN_OK);
        for (int i = 0; i < 2 * f; i++) CASES_EQUAL(0, cases_bits_of(r[i]), "one rounding in scalar_tensor_tensor");
        b.dst = b.operand1; /* the first result may not meet the second operand */
        assert_int_equal(trn_scalar_tensor_tensor(&b), TRN_OK);
        for (int i = 0; i < 2 * f; i++) CASES_EQUAL(0, cases_bits_of(y[i]), "in place of operand1");
    }
}

/* A free axis of dst with step 0: the last result stays. */
static void one_place(void **unused)
{
    float x[2][300], last[2][2] = { { 9, 9 }, { 9, 9 } };
    uint16_t half[2] = { 0, 0 };
    (void)unused;
    for (int i = 0; i < 600; i++) x[i / 300][i % 300] = (float)i;
    trn_tensor_scalar_args a = { .data = trn_tensor_2d(TRN_F32, x, 2, 300), .op0 = TRN_ALU_ADD, .operand0 = 0.5f };
    a.dst = trn_tensor_2d(TRN_F32, last, 2, 300);
    a.dst.stride[0] = 2, a.dst.stride[1] = 0;
    assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
    assert_true(last[0][0] == 299.5f && last[0][1] == 9 && last[1][0] == 599.5f && last[1][1] == 9);
    a.operand0 = 0, a.dst = trn_tensor_2d(TRN_F16, half, 2, 300);
    a.dst.stride[0] = 1, a.dst.stride[1] = 0;
    assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
    assert_true(half[0] == 0x5cac && half[1] == 0x60ae); /* 299 and 599 */
}

/* operand0_tile of scalar_tensor_tensor in a format that tensor_scalar does not take. */
static void narrow_operand(void **unused)
{
    const uint16_t two[2] = { 0x4000, 0xc040 }; /* 2 and -3 in bfloat16 */
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { 1, 1, 1, 1, 1, 1 }, r[6];
    (void)unused;
    trn_scalar_tensor_tensor_args b = { .dst = trn_tensor_2d(TRN_F32, r, 2, 3),
                                        .data = trn_tensor_2d(TRN_F32, x, 2, 3),
                                        .operand0_tile = trn_tensor_2d(TRN_BF16, (void *)(uintptr_t)two, 2, 1),
                                        .operand1 = trn_tensor_2d(TRN_F32, y, 2, 3),
                                        .op0 = TRN_ALU_MULTIPLY,
                                        .op1 = TRN_ALU_ADD };
    assert_int_equal(trn_scalar_tensor_tensor(&b), TRN_OK);
    for (int i = 0; i < 6; i++) assert_true(r[i] == x[i] * (i < 3 ? 2 : -3) + 1);
}

/* power and rsqrt are GpSimd's own functions. */
static void on_gpsimd(void **unused)
{
    float x[4] = { 4, 0.25f, -1, INFINITY }, y[4] = { 0.5f, -2, 3, 0 }, r[4];
    (void)unused;
    trn_tensor_tensor_args a = { .op = TRN_ALU_POWER };
    a.dst = trn_tensor_2d(TRN_F32, r, 2, 2), a.data1 = trn_tensor_2d(TRN_F32, x, 2, 2),
    a.data2 = trn_tensor_2d(TRN_F32, y, 2, 2);
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    assert_true(r[0] == 2 && r[1] == 16 && r[2] == -1 && r[3] == 1);
    trn_tensor_scalar_args b = {
        .op0 = TRN_ALU_ADD, .operand0 = 0, .op1 = TRN_ALU_RSQRT, .dst = a.dst, .data = a.data1
    };
    assert_int_equal(trn_tensor_scalar(&b), TRN_OK);
    assert_true(r[0] == 0.5f && r[1] == 2 && cases_bits_of(r[2]) == 0x7fc00000u && r[3] == 0);
}

/* ---- bits and integers ---- */

static void bits(void **unused)
{
    static const trn_format format[3] = { TRN_U8, TRN_U16, TRN_I32 };
    static const uint32_t count[] = { 0,  1,  4,  7,   8,    9,      15,         16,        17,
                                      31, 32, 33, 255, 0xa5, 0xffff, 0xffffffff, 0x80000000 };
    enum { N = sizeof count / sizeof count[0] };
    (void)unused;
    EACH_ISA(isa)
    for (int op = TRN_ALU_INVERT; op < TRN_ALU_COUNT; op++)
        for (int w = 0; w < 3; w++)
            for (int reverse = 0; reverse < 2; reverse++)
                for (int i = 0; i < N; i++) {
                    const size_t bytes = (size_t)1 << w;
                    const uint32_t all = w == 2 ? 0xffffffffu : (1u << 8 * bytes) - 1u, width = 8u << w;
                    uint32_t x[5 * 7], r[5 * 7];
                    unsigned char *at = (unsigned char *)x;
                    for (int k = 0; k < 35; k++) {
                        const uint32_t code = 0x9e3779b9u * (uint32_t)(k + 1) & all;
                        memcpy(at + (size_t)k * bytes, &code, bytes);
                    }
                    trn_tensor_scalar_args a = {
                        .isa = isa, .op0 = (trn_alu)op, .reverse0 = reverse, .bits0 = count[i]
                    };
                    if (op == TRN_ALU_INVERT) a.bits0 = 0;
                    a.op1 = TRN_ALU_BITWISE_XOR, a.bits1 = 0x55;
                    a.data = trn_tensor_2d(format[w], x, 5, 7), a.dst = trn_tensor_2d(format[w], r, 5, 7);
                    assert_int_equal(trn_tensor_scalar(&a), TRN_OK);
                    for (int k = 0; k < 35; k++) {
                        uint32_t p = 0x9e3779b9u * (uint32_t)(k + 1) & all, q = count[i] & all, got = 0, want = 0;
                        memcpy(&got, (unsigned char *)r + (size_t)k * bytes, bytes);
                        if (reverse && op != TRN_ALU_INVERT) {
                            const uint32_t t = p;
                            p = q, q = t;
                        }
                        if (op == TRN_ALU_INVERT) want = ~p;
                        if (op == TRN_ALU_BITWISE_AND) want = p & q;
                        if (op == TRN_ALU_BITWISE_OR) want = p | q;
                        if (op == TRN_ALU_BITWISE_XOR) want = p ^ q;
                        if (op == TRN_ALU_LEFT_SHIFT) want = q >= width ? 0 : p << q;
                        if (op == TRN_ALU_RIGHT_SHIFT) want = q >= width ? 0 : p >> q;
                        CASES_EQUAL((want & all) ^ 0x55u, got, "%s of %d bits, count %u", trn_alu_name((trn_alu)op),
                                    (int)width, (unsigned)count[i]);
                    }
                }
}

static int64_t exact(trn_alu op, int64_t a, int64_t b)
{
    const int64_t p = a < 0 ? -a : a, q = b < 0 ? -b : b;
    switch (op) {
    case TRN_ALU_ADD: return a + b;
    case TRN_ALU_SUBTRACT: return a - b;
    case TRN_ALU_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case TRN_ALU_MAXIMUM: return a > b ? a : b;
    case TRN_ALU_MINIMUM: return a < b ? a : b;
    case TRN_ALU_EQUAL: return a == b;
    case TRN_ALU_NOT_EQUAL: return a != b;
    case TRN_ALU_GREATER_EQUAL: return a >= b;
    case TRN_ALU_GREATER: return a > b;
    case TRN_ALU_LESS_EQUAL: return a <= b;
    case TRN_ALU_LESS: return a < b;
    case TRN_ALU_LOGICAL_AND: return a && b;
    case TRN_ALU_LOGICAL_OR: return a || b;
    case TRN_ALU_LOGICAL_XOR: return !a != !b;
    case TRN_ALU_ABS_MAX: return p > q ? a : b;
    default: return p < q ? a : b;
    }
}

/* GpSimd's integers are exact, of either sign; VectorE's go through binary32. */
static void integers(void **unused)
{
    static const uint32_t value[] = { 0,          1,          2,        0xffffffff, 0x7fffffff, 0x80000000,
                                      0x80000001, 0xfffffffe, 16777217, 0xdeadbeef, 65536,      3 };
    enum { N = sizeof value / sizeof value[0] };
    uint32_t x[N * N], y[N * N], r[N * N];
    (void)unused;
    for (int i = 0; i < N * N; i++) x[i] = value[i / N], y[i] = value[i % N];
    EACH_ISA(isa)
    for (int op = TRN_ALU_ADD; op <= TRN_ALU_ABS_MIN; op++)
        for (int sign = 0; sign < 4; sign++) {
            trn_tensor_tensor_args a = { .generation = TRN_TRAINIUM3, .isa = isa, .op = (trn_alu)op };
            a.dst = trn_tensor_2d(TRN_I32, r, N, N);
            a.data1 = trn_tensor_2d(sign & 1 ? TRN_I32 : TRN_U32, x, N, N);
            a.data2 = trn_tensor_2d(sign & 2 ? TRN_I32 : TRN_U32, y, N, N);
            assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
            for (int i = 0; i < N * N; i++) {
                const int64_t p = sign & 1 ? (int64_t)(int32_t)x[i] : (int64_t)x[i];
                const int64_t q = sign & 2 ? (int64_t)(int32_t)y[i] : (int64_t)y[i];
                CASES_EQUAL(exact((trn_alu)op, p, q), r[i], "%s of %lld and %lld", trn_alu_name((trn_alu)op),
                            (long long)p, (long long)q);
            }
        }
    trn_tensor_tensor_args a = { .engine = TRN_ENGINE_VECTOR, .op = TRN_ALU_ADD };
    a.dst = trn_tensor_2d(TRN_I32, r, 1, 1), a.data1 = trn_tensor_2d(TRN_I32, x, 1, 1),
    a.data2 = trn_tensor_2d(TRN_I32, y, 1, 1);
    x[0] = 16777217, y[0] = 0;
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    CASES_EQUAL(16777216, r[0], "through binary32");
}

/* ---- copies and constants ---- */

/* Integers that binary32 does not hold, in each format of integers. */
static void memset_of_integers(void **state)
{
    (void)state;
    static const struct {
        trn_format format;
        int64_t low, high;
    } row[] = { { TRN_I8, -128, 127 },
                { TRN_U8, 0, 255 },
                { TRN_I16, -32768, 32767 },
                { TRN_U16, 0, 65535 },
                { TRN_I32, INT32_MIN, INT32_MAX },
                { TRN_U32, 0, UINT32_MAX } };
    enum { ROWS = 3, COLUMNS = 700 };
    static uint8_t room[ROWS * COLUMNS * 4];
    trn_error error;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const size_t bytes = trn_format_bytes(row[i].format);
        const int64_t numbers[] = { row[i].low, row[i].high, row[i].high - 1, row[i].low + 1, row[i].high / 3 };
        for (int k = 0; k < 5; k++) {
            trn_memset_args a = { .dst = trn_tensor_2d(row[i].format, room, ROWS, COLUMNS),
                                  .value = 9,
                                  .is_integer = true,
                                  .integer = numbers[k],
                                  .error = &error };
            memset(room, 0x5a, sizeof room);
            assert_int_equal(trn_memset(&a), TRN_OK);
            for (size_t n = 0; n < sizeof room; n++)
                assert_int_equal(
                    room[n], n >= ROWS * COLUMNS * bytes ? 0x5a : (uint8_t)((uint64_t)numbers[k] >> (8 * (n % bytes))));
        }
        for (int k = 0; k < 2; k++) {
            trn_memset_args a = { .dst = trn_tensor_2d(row[i].format, room, ROWS, COLUMNS),
                                  .is_integer = true,
                                  .integer = k ? row[i].low - 1 : row[i].high + 1,
                                  .error = &error };
            memset(room, 0x5a, sizeof room);
            assert_int_equal(trn_memset(&a), TRN_EINVAL);
            assert_int_equal(room[0], 0x5a);
        }
    }
    assert_string_equal(error.text, "integer is -1; uint32 holds 0 to 4294967295");
    trn_memset_args a = { .dst = trn_tensor_2d(TRN_F32, room, 1, 1), .is_integer = true, .error = &error };
    assert_int_equal(trn_memset(&a), TRN_EFORMAT);
    assert_string_equal(error.text, "integer is given, and dst is float32, no format of integers");
}

static void copies(void **unused)
{
    static const uint32_t code[6] = { 0x7f800001, 0xffc12345, 0x80000000, 1, 0x3f800001, 0x7fffffff };
    uint32_t r[6];
    uint16_t narrow[6], back[6];
    uint8_t where[6] = { 1, 0, 255, 0, 2, 0 };
    (void)unused;
    trn_tensor_copy_args a = { .dst = trn_tensor_2d(TRN_F32, r, 2, 3),
                               .src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)code, 2, 3) };
    assert_int_equal(trn_tensor_copy(&a), TRN_OK);
    for (int i = 0; i < 6; i++) CASES_EQUAL(code[i], r[i], "one format keeps every bit");
    a.dst = trn_tensor_2d(TRN_BF16, narrow, 2, 3);
    assert_int_equal(trn_tensor_copy(&a), TRN_OK);
    static const uint16_t cast[6] = { 0x7fc0, 0xffc0, 0x8000, 0, 0x3f80, 0x7fc0 };
    for (int i = 0; i < 6; i++) CASES_EQUAL(cast[i], narrow[i], "a cast keeps the sign of a NaN");
    a.src = trn_tensor_2d(TRN_F16, narrow, 2, 3), a.dst = trn_tensor_2d(TRN_F16, back, 2, 3),
    a.engine = TRN_ENGINE_SCALAR;
    assert_int_equal(trn_tensor_copy(&a), TRN_OK);
    for (int i = 0; i < 6; i++) CASES_EQUAL(narrow[i], back[i], "on ScalarE too");

    trn_tensor_copy_predicated_args p = { .dst = trn_tensor_2d(TRN_F32, r, 2, 3),
                                          .predicate = trn_tensor_2d(TRN_U8, where, 2, 3) };
    for (int i = 0; i < 6; i++) r[i] = 0xffffff00u + (uint32_t)i;
    p.src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)code, 2, 3);
    assert_int_equal(trn_tensor_copy_predicated(&p), TRN_OK);
    for (int i = 0; i < 6; i++) CASES_EQUAL(i % 2 ? 0xffffff00u + (uint32_t)i : code[i], r[i], "predicated");
    p.src.rank = 0, p.value = 300, p.dst = trn_tensor_2d(TRN_U8, where, 2, 3), p.reverse_pred = true;
    assert_int_equal(trn_tensor_copy_predicated(&p), TRN_OK); /* dst is the predicate */
    for (int i = 0; i < 6; i++)
        CASES_EQUAL(i % 2 ? 255 : i == 0 ? 1 : i == 2 ? 255 : 2, where[i], "a number, saturated");

    trn_memset_args m = { .dst = trn_tensor_2d(TRN_BF16, narrow, 2, 3), .value = 0x1.01p0f };
    assert_int_equal(trn_memset(&m), TRN_OK);
    for (int i = 0; i < 6; i++) CASES_EQUAL(0x3f80, narrow[i], "a tie goes to even");
    m.dst = trn_tensor_2d(TRN_I32, r, 2, 3), m.value = -2.5f, m.engine = TRN_ENGINE_GPSIMD;
    assert_int_equal(trn_memset(&m), TRN_OK);
    for (int i = 0; i < 6; i++) CASES_EQUAL(-2, r[i], "of integers too");
}

/* ---- shapes, size, threads ---- */

static void empty_and_broadcast(void **unused)
{
    float x[5] = { 1, 2, 3, 4, 5 }, r[20];
    (void)unused;
    trn_tensor_tensor_args a = { .op = TRN_ALU_ADD };
    for (int i = 0; i < 20; i++) r[i] = -1;
    a.dst = trn_tensor_2d(TRN_F32, r, 0, 5), a.data1 = trn_tensor_2d(TRN_F32, x, 0, 5), a.data2 = a.data1;
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    a.dst = trn_tensor_2d(TRN_F32, r, 5, 0), a.data1 = a.data2 = trn_tensor_2d(TRN_F32, x, 5, 0);
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    assert_true(r[0] == -1);
    a.dst = trn_tensor_2d(TRN_F32, r, 4, 5);
    a.data1 = trn_tensor_2d(TRN_F32, x, 4, 5), a.data1.stride[0] = 0, a.data1.stride[1] = 1; /* one row for all */
    a.data2 = trn_tensor_2d(TRN_F32, x, 4, 5), a.data2.stride[0] = 1, a.data2.stride[1] = 0; /* one number per row */
    assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
    for (int i = 0; i < 20; i++) assert_true(r[i] == x[i % 5] + x[i / 5]);
}

/* The first result may not land in dst while dst is the second operand: float16 goes by passes, not in one. */
static void in_place(void **unused)
{
    static const uint16_t x[4] = { 0x3c00, 0x4000, 0x4200, 0x4400 }; /* 1 2 3 4 */
    (void)unused;
    EACH_ISA(isa)
    {
        float y[4] = { 10, 20, 30, 40 };
        trn_scalar_tensor_tensor_args a = { .isa = isa, .op0 = TRN_ALU_ADD, .operand0 = 1, .op1 = TRN_ALU_MULTIPLY };
        a.data = trn_tensor_2d(TRN_F16, (void *)(uintptr_t)x, 2, 2);
        a.dst = a.operand1 = trn_tensor_2d(TRN_F32, y, 2, 2);
        assert_int_equal(trn_scalar_tensor_tensor(&a), TRN_OK);
        for (int i = 0; i < 4; i++) assert_true(y[i] == (float)((i + 2) * 10 * (i + 1)));
    }
}

/* Whole tensors: past the caches, flat or with gaps, aligned or not, on any number of threads: what pieces of it
 * give. */
static void large(void **unused)
{
    enum { P = 129, F = 20001, GAP = 3 };
    static float x[P * (F + GAP) + 1], y[P * (F + GAP) + 1], r[P * (F + GAP) + 16];
    static uint16_t h[P * (F + GAP) + 1], g[P * (F + GAP) + 32];
    (void)unused;
    for (int i = 0; i < P * (F + GAP) + 1; i++) {
        x[i] = (float)(i % 1009) * 0.125f - 60, y[i] = (float)(i % 251) - 125;
        h[i] = half_of(x[i]);
    }
    for (int threads = 1; threads <= 3; threads += 2)
        for (int form = 0; form < 8; form++) {
            const int gap = form & 1 ? GAP : 0, shift = form & 2 ? 1 : 0;
            with_threads(threads);
            trn_tensor_tensor_args a = { .unlimited = true, .op = TRN_ALU_MULTIPLY };
            float *to = (float *)(((uintptr_t)r + 63) / 64 * 64) + shift;
            uint16_t *to_bf16 = (uint16_t *)(((uintptr_t)g + 63) / 64 * 64) + shift;
            a.dst = form & 4 ? trn_tensor_2d(TRN_BF16, to_bf16, P, F) : trn_tensor_2d(TRN_F32, to, P, F);
            a.data1 = form & 4 ? trn_tensor_2d(TRN_BF16, h, P, F) : trn_tensor_2d(TRN_F32, x, P, F);
            a.data2 = trn_tensor_2d(TRN_F32, y + 1, P, F);
            a.dst.stride[0] = a.data1.stride[0] = a.data2.stride[0] = F + gap;
            a.dst.stride[1] = a.data1.stride[1] = a.data2.stride[1] = 1;
            assert_int_equal(trn_tensor_tensor(&a), TRN_OK);
            for (int i = 0; i < P * (F + gap); i++) {
                if (i % (F + gap) >= F) continue;
                const float p = form & 4 ? of_half(h[i]) : x[i], product = p * y[i + 1];
                if (form & 4)
                    CASES_EQUAL(to_half(cases_bits_of(product)), to_bf16[i], "%d of form %d", i, form);
                else
                    CASES_EQUAL(cases_bits_of(product), cases_bits_of(to[i]), "%d of form %d", i, form);
            }
        }
    with_threads(2);
}

/* ---- what is refused ---- */

static void refuse_operators(void **unused)
{
    static unsigned char out[2 * 64];
    float x[8] = { 0 };
    const refusal_watch watch = { out, sizeof out };
    (void)unused;
    assert_int_equal(trn_tensor_tensor(NULL), TRN_EINVAL);
    trn_tensor_tensor_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 3), .data1 = trn_tensor_2d(TRN_F32, x, 2, 3) };
    a.data2 = a.data1;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "op is bypass, which computes nothing", &watch);
    a.op = (trn_alu)99;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "op is 99, not an operator", &watch);
    a.op = TRN_ALU_AVERAGE;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "op is average, which only tensor_partition_reduce takes", &watch);
    a.op = TRN_ALU_ABS;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "op is abs, which has one operand, where it takes two", &watch);
    a.op = TRN_ALU_ABS_MAX, a.generation = TRN_TRAINIUM2;
    REFUSED(trn_tensor_tensor, a, TRN_EUNSUPPORTED, "op is abs_max, which Trainium2 does not have", &watch);
    a.op = TRN_ALU_LEFT_SHIFT, a.generation = TRN_GENERATION_DEFAULT;
    REFUSED(trn_tensor_tensor, a, TRN_EFORMAT, "dst is float32; operators on bits take integers", &watch);
    a.dst.format = TRN_I32;
    REFUSED(trn_tensor_tensor, a, TRN_EFORMAT, "data1 is float32; operators on bits take integers", &watch);
    a.data1.format = TRN_U16;
    REFUSED(trn_tensor_tensor, a, TRN_EFORMAT, "data1 is uint16 and dst int32: operators on bits take one width",
            &watch);
    a.dst.format = TRN_F32, a.data1 = a.data2, a.op = TRN_ALU_POWER, a.engine = TRN_ENGINE_VECTOR;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "engine is vector, which does not execute tensor_tensor", &watch);
    a.op = TRN_ALU_ADD, a.engine = TRN_ENGINE_SCALAR;
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "engine is scalar, which does not execute tensor_tensor", &watch);
    a.engine = TRN_ENGINE_UNKNOWN, a.data2.shape[1] = 2;
    REFUSED(trn_tensor_tensor, a, TRN_ESHAPE, "data2 has 2 partitions of 2 elements but dst has 2 of 3", &watch);
    a.data2 = trn_tensor_2d(TRN_F32, out + 4, 2, 3);
    REFUSED(trn_tensor_tensor, a, TRN_EINVAL, "dst overlaps data2", &watch);
    a.data2 = a.data1, a.dst.shape[0] = a.data1.shape[0] = a.data2.shape[0] = 129;
    REFUSED(trn_tensor_tensor, a, TRN_ELIMIT, "dst has 129 partitions; a tile has at most 128", &watch);
}

static void refuse_scalars(void **unused)
{
    static unsigned char out[2 * 64];
    float x[8] = { 0 };
    const refusal_watch watch = { out, sizeof out };
    (void)unused;
    assert_int_equal(trn_tensor_scalar(NULL), TRN_EINVAL);
    assert_int_equal(trn_scalar_tensor_tensor(NULL), TRN_EINVAL);
    trn_tensor_scalar_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 3), .data = trn_tensor_2d(TRN_F32, x, 2, 3) };
    a.op0 = TRN_ALU_ADD, a.op1 = TRN_ALU_BITWISE_AND;
    REFUSED(trn_tensor_scalar, a, TRN_EINVAL,
            "op0 is add and op1 is bitwise_and: one works on bits, the other on numbers", &watch);
    a.op0 = TRN_ALU_ABS, a.op1 = TRN_ALU_BYPASS, a.operand0 = 2;
    REFUSED(trn_tensor_scalar, a, TRN_EINVAL, "op0 is abs, which takes one operand, but operand0 is given", &watch);
    a.op0 = TRN_ALU_ADD, a.operand1 = 1;
    REFUSED(trn_tensor_scalar, a, TRN_EINVAL, "op1 is bypass, which takes one operand, but operand1 is given", &watch);
    a.operand1 = 0, a.operand0_tile = trn_tensor_2d(TRN_BF16, x, 2, 1);
    REFUSED(trn_tensor_scalar, a, TRN_EFORMAT, "operand0_tile is bfloat16; it takes float32", &watch);
    a.operand0_tile = trn_tensor_2d(TRN_F32, x, 2, 2);
    REFUSED(trn_tensor_scalar, a, TRN_ESHAPE,
            "operand0_tile has 2 partitions of 2 elements; it takes one for each of 2", &watch);
    a.operand0_tile = trn_tensor_2d(TRN_F32, out, 2, 1);
    REFUSED(trn_tensor_scalar, a, TRN_EINVAL, "dst overlaps operand0_tile", &watch);
    a.operand0_tile.rank = 0, a.op0 = TRN_ALU_SQUARE, a.operand0 = 0, a.generation = TRN_TRAINIUM2;
    REFUSED(trn_tensor_scalar, a, TRN_EUNSUPPORTED, "op0 is square, which Trainium2 does not have", &watch);
    a.op0 = TRN_ALU_SUBTRACT, a.engine = TRN_ENGINE_SCALAR;
    REFUSED(trn_tensor_scalar, a, TRN_EUNSUPPORTED,
            "tensor_scalar with subtract and bypass does not run on engine scalar of Trainium2", &watch);
    a.op0 = TRN_ALU_ADD, a.generation = TRN_TRAINIUM1;
    REFUSED(trn_tensor_scalar, a, TRN_EUNSUPPORTED, "tensor_scalar on engine scalar is not available on Trainium1",
            &watch);
    a.engine = TRN_ENGINE_VECTOR, a.op0 = TRN_ALU_RSQRT;
    REFUSED(trn_tensor_scalar, a, TRN_EINVAL,
            "engine is vector, which does not execute tensor_scalar with these operators", &watch);
    trn_scalar_tensor_tensor_args b = {
        .dst = a.dst, .data = a.data, .operand1 = a.data, .op0 = TRN_ALU_ADD, .op1 = TRN_ALU_POWER
    };
    REFUSED(trn_scalar_tensor_tensor, b, TRN_EINVAL, "op1 is power, which only the GpSimd engine executes", &watch);
    b.op1 = TRN_ALU_BITWISE_OR;
    REFUSED(trn_scalar_tensor_tensor, b, TRN_EINVAL,
            "op1 is bitwise_or, an operator on bits, where it takes one on numbers", &watch);
    b.op1 = TRN_ALU_ADD, b.operand1.rank = 0;
    REFUSED(trn_scalar_tensor_tensor, b, TRN_ESHAPE, "operand1 is missing", &watch);
}

static void refuse_copies(void **unused)
{
    static unsigned char out[2 * 64];
    float x[8] = { 0 };
    const refusal_watch watch = { out, sizeof out };
    (void)unused;
    assert_int_equal(trn_tensor_copy(NULL), TRN_EINVAL);
    assert_int_equal(trn_tensor_copy_predicated(NULL), TRN_EINVAL);
    assert_int_equal(trn_memset(NULL), TRN_EINVAL);
    assert_int_equal(trn_reciprocal(NULL), TRN_EINVAL);
    trn_tensor_copy_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 3), .src = trn_tensor_2d(TRN_F32, x, 2, 3) };
    a.engine = TRN_ENGINE_SCALAR, a.generation = TRN_TRAINIUM1;
    REFUSED(trn_tensor_copy, a, TRN_EUNSUPPORTED,
            "tensor_copy on engine scalar is not available on Trainium1; activation with copy is", &watch);
    a.engine = TRN_ENGINE_TENSOR;
    REFUSED(trn_tensor_copy, a, TRN_EINVAL, "engine is tensor, which does not execute tensor_copy", &watch);
    trn_tensor_copy_predicated_args p = { .dst = a.dst, .src = a.src, .predicate = trn_tensor_2d(TRN_I16, x, 2, 3) };
    REFUSED(trn_tensor_copy_predicated, p, TRN_EFORMAT, "predicate is int16; it takes uint8, uint16 or uint32", &watch);
    p.predicate.format = TRN_U16, p.src.format = TRN_TF32;
    REFUSED(trn_tensor_copy_predicated, p, TRN_EFORMAT, "src is tfloat32 and dst float32; they share one format",
            &watch);
    trn_memset_args m = { .dst = a.dst, .engine = TRN_ENGINE_SCALAR };
    REFUSED(trn_memset, m, TRN_EINVAL, "engine is scalar, which does not execute memset", &watch);
    m.engine = TRN_ENGINE_UNKNOWN, m.dst.shape[1] = 60000;
    REFUSED(trn_memset, m, TRN_ELIMIT, "dst has 60000 elements per partition; Trainium2 holds 229376 bytes", &watch);
    trn_reciprocal_args r = { .dst = a.dst, .data = a.src, .engine = TRN_ENGINE_GPSIMD };
    REFUSED(trn_reciprocal, r, TRN_EINVAL, "engine is gpsimd, which does not execute reciprocal", &watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memset_of_integers),
        cmocka_unit_test(kernels),
        cmocka_unit_test(chains),
        cmocka_unit_test(scalars),
        cmocka_unit_test(two_roundings),
        cmocka_unit_test(one_place),
        cmocka_unit_test(narrow_operand),
        cmocka_unit_test(on_gpsimd),
        cmocka_unit_test(bits),
        cmocka_unit_test(integers),
        cmocka_unit_test(copies),
        cmocka_unit_test(empty_and_broadcast),
        cmocka_unit_test(in_place),
        cmocka_unit_test(large),
        cmocka_unit_test(refuse_operators),
        cmocka_unit_test(refuse_scalars),
        cmocka_unit_test(refuse_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
