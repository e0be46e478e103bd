/* test_vector_reduce.c - reductions, scans, selections and the registers they share: orders and identities written out
 * again, every operator, lengths around every chunk, published vectors, refusals.
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

#define EACH_ISA(isa)                                                                                                  \
    for (size_t isa##_i = 0; isa##_i < sizeof all_isas / sizeof all_isas[0]; isa##_i++)                                \
        for (trn_isa isa = all_isas[isa##_i], isa##_once = isa; isa##_once && trn_isa_supported(isa);                  \
             isa##_once = TRN_ISA_AUTO)

enum { ROWS = 140, LONG = 2100 };
static float x[ROWS * LONG], y[ROWS * LONG], r[ROWS * LONG];
static uint16_t h[ROWS * LONG], g[ROWS * LONG];

/* Binary64 holds a sum or product of two floats well enough for one rounding. */
static float one(trn_alu op, float a, float b)
{
    const double p = a, q = b;
    const double value = op == TRN_ALU_ADD ? p + q : op == TRN_ALU_SUBTRACT ? p - q : p * q;
    if (op == TRN_ALU_ADD || op == TRN_ALU_SUBTRACT || op == TRN_ALU_MULTIPLY)
        return isnan(value) ? cases_float_of(0x7fc00000) : (float)value;
    if (op == TRN_ALU_LOGICAL_AND) return a != 0 && b != 0;
    if (op == TRN_ALU_LOGICAL_OR) return a != 0 || b != 0;
    if (op == TRN_ALU_LOGICAL_XOR) return (a != 0) != (b != 0);
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? cases_float_of(0x7fc00000) : isnan(a) ? b : a;
    if (a == b) return (signbit(a) != 0) == (op == TRN_ALU_MAXIMUM) ? b : a;
    return (a > b) == (op == TRN_ALU_MAXIMUM) ? a : b;
}

static float begins(trn_alu op)
{
    if (op == TRN_ALU_MAXIMUM) return -INFINITY;
    if (op == TRN_ALU_MINIMUM) return INFINITY;
    return op == TRN_ALU_MULTIPLY || op == TRN_ALU_LOGICAL_AND ? 1.0f : 0.0f;
}

static const trn_alu reductions[] = { TRN_ALU_ADD,     TRN_ALU_SUBTRACT,    TRN_ALU_MULTIPLY,   TRN_ALU_MAXIMUM,
                                      TRN_ALU_MINIMUM, TRN_ALU_LOGICAL_AND, TRN_ALU_LOGICAL_OR, TRN_ALU_LOGICAL_XOR };
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0] };

/* Numbers near 1 whose sums round; every few rows something special. */
static void fill(uint64_t seed, int rows, int length)
{
    for (int p = 0; p < rows; p++)
        for (int f = 0; f < length; f++) {
            const int i = p * length + f;
            x[i] = (float)(cases_u32(&seed) >> 8) * 0x1p-23f - 0.75f;
            y[i] = (float)(cases_u32(&seed) >> 8) * 0x1p-24f;
            if (p % 5 == 1 && cases_one_in(&seed, 20)) x[i] = cases_float_of(cases_float(&seed));
            if (p % 7 == 2) x[i] = f % 2 ? -0.0f : 0.0f;
            if (p % 11 == 3) x[i] = cases_float_of(f % 2 ? 0x7f800001u : 0xffc00000u);
            h[i] = (uint16_t)(cases_bits_of(x[i]) >> 16);
        }
}

static float of_half(uint16_t code) { return cases_float_of((uint32_t)code << 16); }

/* ---- tensor_reduce ---- */

static void compare_rows(trn_alu op, int rows, int length, bool half, trn_isa isa)
{
    trn_tensor_reduce_args a = { .isa = isa, .unlimited = true, .op = op };
    a.dst = trn_tensor_2d(TRN_F32, r, rows, 1);
    a.data = half ? trn_tensor_2d(TRN_BF16, h, rows, length) : trn_tensor_2d(TRN_F32, x, rows, length);
    assert_int_equal(trn_tensor_reduce(&a), TRN_OK);
    for (int p = 0; p < rows; p++) {
        float sum = begins(op);
        for (int f = 0; f < length; f++) sum = one(op, sum, half ? of_half(h[p * length + f]) : x[p * length + f]);
        CASES_EQUAL(cases_bits_of(sum), cases_bits_of(r[p]), "%s of row %d of %d, %d elements, %s, %s",
                    trn_alu_name(op), p, rows, length, half ? "bfloat16" : "binary32", trn_isa_text(isa));
    }
}

static void rows_in_order(void **unused)
{
    static const int length[] = { 0,  1,  2,  3,  4,  5,  7,   8,   9,   15,   16,   17,
                                  31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1025, 2100 };
    static const int rows[] = { 1, 3, 15, 16, 17, 31, 32, 33, 129 };
    (void)unused;
    for (size_t n = 0; n < sizeof length / sizeof length[0]; n++) {
        fill(n + 1, 129, length[n]);
        EACH_ISA(isa)
        for (int op = 0; op < REDUCTIONS; op++)
            for (int half = 0; half < 2; half++)
                compare_rows(reductions[op], rows[(n + (size_t)op + (size_t)half) % 9], length[n], half, isa);
    }
    EACH_ISA(isa)
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fill(77 + i, rows[i], 100);
        for (int op = 0; op < 4; op++) compare_rows(reductions[op], rows[i], 100, i % 2, isa);
    }
}

/* Some axes of four, strides, other formats, the sign, dst's cast. */
static void axes(void **unused)
{
    const int64_t shape[4] = { 3, 4, 5, 6 };
    (void)unused;
    fill(5, 3, 120);
    for (int n = 0; n < 120 * 3; n++) x[n] = (float)(n % 37) - 18;
    EACH_ISA(isa)
    for (int axes = 0; axes <= 3; axes++) {
        static const int runs[4] = { 120, 6, 30, 120 };
        const int run = runs[axes], outer = 120 / run;
        trn_tensor_reduce_args a = { .isa = isa, .op = TRN_ALU_ADD, .axes = axes, .negate = true };
        a.data = trn_tensor_nd(TRN_F32, x, 4, shape);
        a.dst = trn_tensor_2d(TRN_BF16, g, 3, outer);
        a.dst.stride[0] = outer + 1, a.dst.stride[1] = 1;
        assert_int_equal(trn_tensor_reduce(&a), TRN_OK);
        for (int i = 0; i < 3 * outer; i++) {
            float sum = 0;
            for (int f = 0; f < run; f++) sum += x[i * run + f];
            assert_true(of_half(g[i / outer * (outer + 1) + i % outer]) == -sum); /* small integers */
        }
    }
    int8_t codes[20];
    uint16_t all;
    for (int i = 0; i < 20; i++) codes[i] = (int8_t)(i % 2 ? 0x7b + i : -5 * i);
    trn_tensor_reduce_args b = { .op = TRN_ALU_MINIMUM,
                                 .dst = trn_tensor_2d(TRN_F16, &all, 1, 1),
                                 .data = trn_tensor_2d(TRN_I8, codes, 1, 20) };
    assert_int_equal(trn_tensor_reduce(&b), TRN_OK);
    int least = 127;
    for (int i = 0; i < 20; i++) least = codes[i] < least ? codes[i] : least;
    assert_true(trn_f16_to_f32(all) == (float)least);
}

static void bits(void **unused)
{
    static uint32_t words[3000];
    (void)unused;
    for (uint32_t i = 0; i < 3000; i++) words[i] = (i * 0x9e3779b9u) | 0x80000001u;
    EACH_ISA(isa)
    for (int bytes = 1; bytes <= 4; bytes *= 2)
        for (int op = TRN_ALU_BITWISE_AND; op <= TRN_ALU_BITWISE_XOR; op++)
            for (int n = 0; n < 3000; n = n < 40 ? n + 1 : 2 * n) {
                const trn_format format = bytes == 1 ? TRN_U8 : bytes == 2 ? TRN_I16 : TRN_U32;
                uint32_t got = 0, want = op == TRN_ALU_BITWISE_AND ? 0xffffffffu : 0;
                trn_tensor_reduce_args a = { .isa = isa, .op = (trn_alu)op, .dst = trn_tensor_2d(format, &got, 1, 1) };
                a.data = trn_tensor_2d(format, words, 1, n);
                assert_int_equal(trn_tensor_reduce(&a), TRN_OK);
                for (int i = 0; i < n; i++) {
                    uint32_t code = 0;
                    memcpy(&code, (unsigned char *)words + i * bytes, (size_t)bytes);
                    want = op == TRN_ALU_BITWISE_AND  ? want & code
                           : op == TRN_ALU_BITWISE_OR ? want | code
                                                      : want ^ code;
                }
                CASES_EQUAL(want & (0xffffffffu >> (32 - 8 * bytes)), got, "%s of %d", trn_alu_name((trn_alu)op), n);
            }
}

/* ---- the registers ---- */

static void registers(void **unused)
{
    trn_vector_state state;
    float sums[2], init[2] = { 100, 200 };
    (void)unused;
    trn_vector_state_init(&state, 1);
    assert_false(state.accumulator_known);
    for (int i = 0; i < 6; i++) x[i] = (float)(i + 1);
    trn_tensor_scalar_reduce_args a = {
        .op0 = TRN_ALU_MULTIPLY, .operand0 = 2, .reduce_op = TRN_ALU_ADD, .state = &state
    };
    a.dst = trn_tensor_2d(TRN_F32, r, 2, 3), a.data = trn_tensor_2d(TRN_F32, x, 2, 3);
    assert_int_equal(trn_tensor_scalar_reduce(&a), TRN_OK); /* no reduce_res: kept */
    assert_true(state.accumulator_known && state.accumulator[0] == 12 && state.accumulator[1] == 30 && r[5] == 12);
    a.reduce_cmd = TRN_REDUCE_CMD_REDUCE, a.reduce_op = TRN_ALU_MAXIMUM, a.reduce_res = trn_tensor_1d(TRN_F32, sums, 2);
    a.reduce_res_negate = true;
    assert_int_equal(trn_tensor_scalar_reduce(&a), TRN_OK); /* another operator goes on */
    assert_true(sums[0] == -12 && sums[1] == -30 && state.accumulator[1] == 30);
    a.reduce_cmd = TRN_REDUCE_CMD_LOAD_REDUCE, a.reduce_op = TRN_ALU_ADD,
    a.reduce_init_tile = trn_tensor_2d(TRN_F32, init, 2, 1);
    assert_int_equal(trn_tensor_scalar_reduce(&a), TRN_OK);
    assert_true(sums[0] == -112 && sums[1] == -230);

    trn_tensor_scalar_cumulative_args c = { .op0 = TRN_ALU_ADD, .imm0 = 1, .op1 = TRN_ALU_SUBTRACT, .state = &state };
    c.dst = a.dst, c.src = a.data, c.reduce_cmd = TRN_REDUCE_CMD_REDUCE;
    assert_int_equal(trn_tensor_scalar_cumulative(&c), TRN_OK); /* 2 - 112, 3 - that, 4 - that */
    assert_true(r[0] == -110 && r[1] == 113 && r[2] == -109 && state.accumulator[0] == -109);

    uint8_t predicate[6] = { 1, 0, 1, 0, 1, 0 };
    trn_select_reduce_args s = {
        .dst = a.dst, .on_true = a.data, .predicate = trn_tensor_2d(TRN_U8, predicate, 2, 3), .state = &state
    };
    s.on_false = -7;
    assert_int_equal(trn_select_reduce(&s), TRN_OK); /* idle: nobody knows any more */
    assert_true(r[0] == 1 && r[1] == -7 && r[3] == -7 && r[4] == 5 && !state.accumulator_known);
    s.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE, s.reverse_pred = true,
    s.reduce_res = trn_tensor_2d(TRN_F32, sums, 2, 1);
    assert_int_equal(trn_select_reduce(&s), TRN_OK);
    assert_true(r[0] == -7 && r[1] == 2 && sums[0] == 2 && sums[1] == 6 && state.accumulator_known);
    s.state = NULL;
    assert_int_equal(trn_select_reduce(&s), TRN_OK); /* without registers */
    assert_true(sums[1] == 6);
}

/* Sums of what is written, in order, every operator, past the chunks; in place; results are binary32 before the
 * cast. */
static void scalar_reduce(void **unused)
{
    static const trn_alu op[4] = { TRN_ALU_ADD, TRN_ALU_MULTIPLY, TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM };
    (void)unused;
    EACH_ISA(isa)
    for (int n = 0; n <= 1025; n = n == 0 ? 1 : n < 255 ? n * 4 + 1 : n + 257)
        for (int k = 0; k < 4; k++) {
            float sums[33];
            fill((uint64_t)n + 9, 33, n);
            trn_tensor_scalar_reduce_args a = { .isa = isa, .op0 = TRN_ALU_ADD, .operand0 = 0.3f, .reduce_op = op[k] };
            a.dst = k % 2 ? trn_tensor_2d(TRN_BF16, g, 33, n) : trn_tensor_2d(TRN_F32, x, 33, n);
            a.data = trn_tensor_2d(TRN_F32, x, 33, n), a.reduce_res = trn_tensor_2d(TRN_F32, sums, 33, 1);
            memcpy(y, x, sizeof(float) * 33 * (size_t)n);
            assert_int_equal(trn_tensor_scalar_reduce(&a), TRN_OK);
            for (int p = 0; p < 33; p++) {
                float sum = begins(op[k]);
                for (int f = 0; f < n; f++) sum = one(op[k], sum, one(TRN_ALU_ADD, y[p * n + f], 0.3f));
                CASES_EQUAL(cases_bits_of(sum), cases_bits_of(sums[p]), "%s, row %d of %d", trn_alu_name(op[k]), p, n);
                for (int f = 0; f < n && !(k % 2); f++)
                    CASES_EQUAL(cases_bits_of(one(TRN_ALU_ADD, y[p * n + f], 0.3f)), cases_bits_of(x[p * n + f]),
                                "in place");
            }
        }
}

/* ---- scans ---- */

static void scans(void **unused)
{
    static const trn_alu op[5] = { TRN_ALU_ADD, TRN_ALU_SUBTRACT, TRN_ALU_MULTIPLY, TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM };
    static const int rows[] = { 1, 4, 63, 64, 65, 130 }, length[] = { 0, 1, 3, 127, 128, 129, 300 };
    (void)unused;
    EACH_ISA(isa)
    for (int k = 0; k < 100; k++) {
        const int p = rows[k % 6], n = length[k % 7];
        const trn_alu op0 = op[k % 5], op1 = op[k / 5 % 5];
        const bool reverse0 = k & 1, reverse1 = k / 2 & 1;
        fill((uint64_t)k, p, n);
        trn_tensor_tensor_scan_args a = { .isa = isa, .unlimited = true, .op0 = op0, .op1 = op1, .initial = 0.5f };
        a.reverse0 = reverse0, a.reverse1 = reverse1;
        a.data0 = trn_tensor_2d(TRN_BF16, h, p, n), a.data1 = trn_tensor_2d(TRN_F32, y, p, n);
        a.dst = trn_tensor_2d(TRN_F32, r, p, n);
        assert_int_equal(trn_tensor_tensor_scan(&a), TRN_OK);
        for (int i = 0; i < p; i++) {
            float state = 0.5f;
            for (int f = 0; f < n; f++) {
                const float d = of_half(h[i * n + f]), t = reverse0 ? one(op0, state, d) : one(op0, d, state);
                state = reverse1 ? one(op1, y[i * n + f], t) : one(op1, t, y[i * n + f]);
                CASES_EQUAL(cases_bits_of(state), cases_bits_of(r[i * n + f]), "%s, %s, row %d, %d of %d",
                            trn_alu_name(op0), trn_alu_name(op1), i, f, n);
            }
        }
        trn_tensor_scalar_cumulative_args c = { .isa = isa, .unlimited = true, .op0 = op0, .op1 = op1, .imm0 = -0.75f };
        c.reverse0 = reverse0, c.src = a.data0, c.dst = trn_tensor_2d(TRN_BF16, h, p, n); /* in place */
        memcpy(g, h, sizeof g);
        assert_int_equal(trn_tensor_scalar_cumulative(&c), TRN_OK);
        for (int i = 0; i < p; i++) {
            float reg = begins(op1);
            for (int f = 0; f < n; f++) {
                const float d = of_half(g[i * n + f]);
                reg = one(op1, reverse0 ? one(op0, -0.75f, d) : one(op0, d, -0.75f), reg);
                CASES_EQUAL(trn_bf16_from_f32(reg), h[i * n + f], "cumulative %s, %s, row %d, %d of %d",
                            trn_alu_name(op0), trn_alu_name(op1), i, f, n);
            }
        }
    }
}

/* x * state + y with one rounding would be 2^-24 here. */
static void scans_round_twice(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        trn_tensor_tensor_scan_args a = {
            .isa = isa, .op0 = TRN_ALU_MULTIPLY, .op1 = TRN_ALU_ADD, .initial = 0x1.001p0f
        };
        for (int i = 0; i < 64; i++) x[i] = 0x1.001p0f, y[i] = -0x1.002p0f;
        a.data0 = trn_tensor_2d(TRN_F32, x, 64, 1), a.data1 = trn_tensor_2d(TRN_F32, y, 64, 1),
        a.dst = trn_tensor_2d(TRN_F32, r, 64, 1);
        assert_int_equal(trn_tensor_tensor_scan(&a), TRN_OK);
        for (int i = 0; i < 64; i++) CASES_EQUAL(0, cases_bits_of(r[i]), "fused on %s", trn_isa_text(isa));
    }
}

/* ---- exponential and selections ---- */

/* exp(0) is 1, exp(-inf) is 0, nothing at or below 0 exceeds 1; the sum is of binary32 values. */
static void exponential(void **unused)
{
    (void)unused;
    EACH_ISA(isa)
    {
        float max[2] = { 3, 3 }, sums[2];
        for (int i = 0; i < 600; i++) x[i] = 3.0f - (float)(i % 300) * 0.21f;
        x[299] = -INFINITY;
        trn_exponential_args a = { .isa = isa,
                                   .dst = trn_tensor_2d(TRN_BF16, g, 2, 300),
                                   .src = trn_tensor_2d(TRN_F32, x, 2, 300) };
        a.max_value_tile = trn_tensor_2d(TRN_F32, max, 2, 1);
        a.reduce_res = trn_tensor_2d(TRN_F32, sums, 2, 1), a.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE;
        assert_int_equal(trn_exponential(&a), TRN_OK);
        CASES_EQUAL(0x3f80, g[0], "exp(0)");
        CASES_EQUAL(0, g[299], "exp(-inf)");
        a.dst = trn_tensor_2d(TRN_F32, r, 2, 300);
        const float before = sums[0];
        assert_int_equal(trn_exponential(&a), TRN_OK);
        assert_true(before == sums[0]); /* the cast comes after the sum */
        for (int p = 0; p < 2; p++) {
            float sum = 0;
            for (int f = 0; f < 300; f++) {
                const double exact = exp((double)(x[p * 300 + f] - 3.0f));
                assert_true(r[p * 300 + f] <= 1 && fabs(r[p * 300 + f] - exact) <= 1.2e-5 * exact);
                sum = one(TRN_ALU_ADD, sum, r[p * 300 + f]);
            }
            CASES_EQUAL(cases_bits_of(sum), cases_bits_of(sums[p]), "sum of %d", p);
        }
    }
}

/* FP32_MIN becomes -infinity in narrow formats; the maximum is of binary32 values. */
static void ranges(void **unused)
{
    static const trn_format narrow[] = { TRN_F16, TRN_BF16, TRN_F8_E4M3, TRN_F8_E5M2 };
    static const uint16_t least[] = { 0xfc00, 0xff80, 0xf8, 0xfc };
    float from[2] = { 2, 700 }, to[2] = { 5, 900 }, most[2];
    (void)unused;
    EACH_ISA(isa)
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 1200; i++) x[i] = (float)i * 0.25f;
        memset(g, 0, sizeof g);
        trn_range_select_args a = { .isa = isa, .comp_op0 = TRN_ALU_GREATER_EQUAL, .comp_op1 = TRN_ALU_LESS };
        a.dst = trn_tensor_2d(narrow[k], g, 2, 600), a.on_true_tile = trn_tensor_2d(TRN_F32, x, 2, 600);
        a.bound0 = trn_tensor_1d(TRN_F32, from, 2), a.bound1 = trn_tensor_2d(TRN_F32, to, 2, 1);
        a.reduce_res = trn_tensor_2d(TRN_F32, most, 2, 1);
        assert_int_equal(trn_range_select(&a), TRN_OK);
        assert_true(most[0] == 1.0f); /* indices 2, 3, 4 */
        CASES_EQUAL(0xff7fffffu, cases_bits_of(most[1]), "a row without any");
        const unsigned char *byte = (const unsigned char *)g;
        for (int i = 0; i < 1200; i++)
            if (i < 2 || i > 4)
                CASES_EQUAL(least[k], k < 2 ? g[i] : byte[i], "%s of %d", trn_format_name(narrow[k]), i);
        a.range_start = 200, a.dst = trn_tensor_2d(TRN_F32, r, 2, 600);
        assert_int_equal(trn_range_select(&a), TRN_OK);
        assert_true(most[1] == 299.75f && r[600 + 500] == x[600 + 500] && r[600 + 499] == -0x1.fffffep+127f);
    }
    uint16_t on[2] = { 0x7f81, 0x3f80 }, off = 0xff99;
    uint8_t yes[2] = { 1, 0 };
    trn_select_reduce_args s = { .dst = trn_tensor_2d(TRN_BF16, g, 1, 2),
                                 .on_true = trn_tensor_2d(TRN_BF16, on, 1, 2) };
    s.predicate = trn_tensor_2d(TRN_I8, yes, 1, 2), s.on_false_tile = trn_tensor_2d(TRN_BF16, &off, 1, 1);
    assert_int_equal(trn_select_reduce(&s), TRN_OK);
    CASES_EQUAL(0x7f81, g[0], "moved, not computed");
    CASES_EQUAL(0xff99, g[1], "moved from the tile");
}

/* ---- threads ---- */

static void threads(void **unused)
{
    enum { P = 130, F = 2100 };
    (void)unused;
    fill(3, P, F);
    for (int n = 1; n <= 3; n++) {
        float sums[P], kept[P];
        with_threads(n);
        trn_tensor_scalar_reduce_args a = {
            .unlimited = true, .op0 = TRN_ALU_MULTIPLY, .operand0 = 1.1f, .reduce_op = TRN_ALU_ADD
        };
        a.dst = trn_tensor_2d(TRN_F32, r, P, F), a.data = trn_tensor_2d(TRN_F32, x, P, F),
        a.reduce_res = trn_tensor_2d(TRN_F32, sums, P, 1);
        assert_int_equal(trn_tensor_scalar_reduce(&a), TRN_OK);
        trn_tensor_reduce_args b = {
            .unlimited = true, .op = TRN_ALU_ADD, .dst = trn_tensor_2d(TRN_F32, kept, P, 1), .data = a.dst
        };
        assert_int_equal(trn_tensor_reduce(&b), TRN_OK);
        for (int p = 0; p < P; p++) {
            float sum = 0;
            for (int f = 0; f < F; f++) sum = one(TRN_ALU_ADD, sum, one(TRN_ALU_MULTIPLY, x[p * F + f], 1.1f));
            CASES_EQUAL(cases_bits_of(sum), cases_bits_of(sums[p]), "row %d on %d threads", p, n);
            CASES_EQUAL(cases_bits_of(sum), cases_bits_of(kept[p]), "tensor_reduce, row %d on %d threads", p, n);
        }
    }
    with_threads(2);
}

/* A partition's one result may lie in its own data. */
static void in_its_own_data(void **unused)
{
    (void)unused;
    for (int column = 0; column < 7; column += 6) {
        float row[3][8], want[3];
        for (int i = 0; i < 24; i++) row[i / 8][i % 8] = (float)(i * i % 13) - 4;
        for (int p = 0; p < 3; p++) {
            want[p] = 0;
            for (int f = 0; f < 7; f++) want[p] += row[p][f];
        }
        trn_tensor_reduce_args a = { .data = trn_tensor_slice(trn_tensor_2d(TRN_F32, row, 3, 8), 1, 0, 7),
                                     .dst = trn_tensor_slice(trn_tensor_2d(TRN_F32, row, 3, 8), 1, column, 1),
                                     .op = TRN_ALU_ADD };
        assert_int_equal(trn_tensor_reduce(&a), TRN_OK);
        for (int p = 0; p < 3; p++) assert_true(row[p][column] == want[p]);
    }
}

/* ---- what is refused ---- */

static void refuse_reductions(void **unused)
{
    static unsigned char out[128];
    const refusal_watch watch = { out, sizeof out };
    trn_numerics pairwise = trn_numerics_default(TRN_TRAINIUM2);
    (void)unused;
    assert_int_equal(trn_tensor_reduce(NULL), TRN_EINVAL);
    trn_tensor_reduce_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 1), .data = trn_tensor_2d(TRN_F32, x, 2, 3) };
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "op is bypass, which computes nothing", &watch);
    a.op = TRN_ALU_ABS_MAX, a.generation = TRN_TRAINIUM3;
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "op is abs_max, which is no legal reduction", &watch);
    a.op = TRN_ALU_ADD, a.axes = 2;
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "axes is 2; data has 1 free axes", &watch);
    a.axes = -1;
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "axes is -1; data has 1 free axes", &watch);
    a.axes = 1, a.dst.shape[1] = 2;
    REFUSED(trn_tensor_reduce, a, TRN_ESHAPE, "dst has 2 partitions of 2 elements; the reduction of data has 2 of 1",
            &watch);
    a.dst = trn_tensor_2d(TRN_F32, out, 2, 1), a.data = trn_tensor_2d(TRN_F32, out, 2, 3);
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "dst overlaps data", &watch);
    a.data = trn_tensor_2d(TRN_U8, x, 2, 3), a.dst.format = TRN_U8, a.op = TRN_ALU_BITWISE_OR, a.negate = true;
    REFUSED(trn_tensor_reduce, a, TRN_EINVAL, "negate goes with operators on numbers; op is bitwise_or", &watch);
    a.dst.format = TRN_U16, a.negate = false;
    REFUSED(trn_tensor_reduce, a, TRN_EFORMAT, "data is uint8 and dst uint16: operators on bits take one width",
            &watch);
    pairwise.reduce_order = TRN_REDUCE_PAIRWISE;
    a.numerics = &pairwise, a.op = TRN_ALU_ADD;
    REFUSED(trn_tensor_reduce, a, TRN_EUNSUPPORTED,
            "numerics.reduce_order is not sequential: tensor_reduce has no other", &watch);
    const trn_tensor data = trn_tensor_2d(TRN_F32, x, 2, 3), dst = trn_tensor_2d(TRN_F32, out, 2, 3);
    trn_tensor_scalar_reduce_args each = {
        .numerics = &pairwise, .dst = dst, .data = data, .op0 = TRN_ALU_ADD, .reduce_op = TRN_ALU_ADD
    };
    REFUSED(trn_tensor_scalar_reduce, each, TRN_EUNSUPPORTED,
            "numerics.reduce_order is not sequential: tensor_scalar_reduce has no other", &watch);
    trn_tensor_scalar_cumulative_args along = {
        .numerics = &pairwise, .dst = dst, .src = data, .op0 = TRN_ALU_ADD, .op1 = TRN_ALU_ADD
    };
    REFUSED(trn_tensor_scalar_cumulative, along, TRN_EUNSUPPORTED,
            "numerics.reduce_order is not sequential: tensor_scalar_cumulative has no other", &watch);
    trn_tensor_tensor_scan_args scan = {
        .numerics = &pairwise, .dst = dst, .data0 = data, .data1 = data, .op0 = TRN_ALU_MULTIPLY, .op1 = TRN_ALU_ADD
    };
    REFUSED(trn_tensor_tensor_scan, scan, TRN_EUNSUPPORTED,
            "numerics.reduce_order is not sequential: tensor_tensor_scan has no other", &watch);
    trn_numerics late = trn_numerics_default(TRN_TRAINIUM3);
    late.reduce_order = TRN_REDUCE_PAIRWISE;
    trn_exponential_args power = { .generation = TRN_TRAINIUM3, .numerics = &late, .dst = dst, .src = data };
    REFUSED(trn_exponential, power, TRN_EUNSUPPORTED,
            "numerics.reduce_order is not sequential: exponential has no other", &watch);
}

static void refuse_registers(void **unused)
{
    static unsigned char out[128];
    const refusal_watch watch = { out, sizeof out };
    trn_vector_state state;
    (void)unused;
    trn_vector_state_init(&state, 1);
    assert_int_equal(trn_tensor_scalar_reduce(NULL), TRN_EINVAL);
    assert_int_equal(trn_tensor_scalar_cumulative(NULL), TRN_EINVAL);
    assert_int_equal(trn_exponential(NULL), TRN_EINVAL);
    trn_tensor_scalar_reduce_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 3),
                                        .data = trn_tensor_2d(TRN_F32, x, 2, 3) };
    a.op0 = TRN_ALU_ADD, a.reduce_op = TRN_ALU_SUBTRACT;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL,
            "reduce_op is subtract; it takes add, multiply, maximum or minimum", &watch);
    a.reduce_op = TRN_ALU_ADD, a.reduce_cmd = TRN_REDUCE_CMD_REDUCE;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL,
            "reduce_cmd is reduce, but state, which holds the registers, is null", &watch);
    a.state = &state;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL,
            "reduce_cmd is reduce, but the accumulator registers are undefined", &watch);
    a.reduce_cmd = TRN_REDUCE_CMD_IDLE;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL, "reduce_cmd is idle, which this instruction does not take",
            &watch);
    a.reduce_cmd = (trn_reduce_cmd)9;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL, "reduce_cmd is 9, not a command", &watch);
    a.reduce_cmd = TRN_REDUCE_CMD_DEFAULT, a.reduce_init = 1;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL, "reduce_init is given, but reduce_cmd is not load_reduce", &watch);
    a.reduce_init = 0, a.reduce_res = trn_tensor_2d(TRN_F32, out + 64, 2, 2);
    REFUSED(trn_tensor_scalar_reduce, a, TRN_ESHAPE, "reduce_res has 2 partitions of 2 elements; it takes 2 of 1",
            &watch);
    a.reduce_res = trn_tensor_2d(TRN_F32, out + 8, 2, 1);
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL, "reduce_res overlaps dst", &watch);
    a.reduce_res = trn_tensor_2d(TRN_F32, x, 2, 1);
    REFUSED(trn_tensor_scalar_reduce, a, TRN_EINVAL, "reduce_res overlaps data", &watch);
    a.reduce_res.rank = 0, a.unlimited = true, a.dst.shape[0] = a.data.shape[0] = 129,
    a.dst.shape[1] = a.data.shape[1] = 0;
    REFUSED(trn_tensor_scalar_reduce, a, TRN_ELIMIT, "dst has 129 partitions; a state has registers for 128", &watch);
    assert_false(state.accumulator_known);

    trn_tensor_scalar_cumulative_args c = { .dst = trn_tensor_2d(TRN_I32, out, 2, 3),
                                            .src = trn_tensor_2d(TRN_F32, x, 2, 3) };
    c.op0 = TRN_ALU_ADD, c.op1 = TRN_ALU_ADD;
    REFUSED(trn_tensor_scalar_cumulative, c, TRN_EFORMAT, "dst is int32, which this instruction does not take", &watch);
    c.dst.format = TRN_F32, c.op1 = TRN_ALU_LOGICAL_OR;
    REFUSED(trn_tensor_scalar_cumulative, c, TRN_EINVAL,
            "op1 is logical_or; it takes add, subtract, multiply, maximum or minimum", &watch);
    trn_exponential_args e = { .dst = c.dst, .src = c.src, .generation = TRN_TRAINIUM2 };
    REFUSED(trn_exponential, e, TRN_EUNSUPPORTED, "exponential is not available on Trainium2", &watch);
    e.generation = TRN_GENERATION_DEFAULT, e.dst.format = TRN_U32;
    REFUSED(trn_exponential, e, TRN_EFORMAT, "dst is uint32, which exponential does not write", &watch);
    e.dst.format = TRN_F32, e.reduce_res = trn_tensor_2d(TRN_I16, out + 64, 2, 1);
    REFUSED(trn_exponential, e, TRN_EINVAL, "reduce_res is given, but reduce_cmd is idle", &watch);
    e.reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE;
    REFUSED(trn_exponential, e, TRN_EFORMAT, "reduce_res is int16; it takes a floating-point format", &watch);
}

static void refuse_scans_and_selections(void **unused)
{
    static unsigned char out[128];
    const refusal_watch watch = { out, sizeof out };
    float bound[2] = { 0 };
    (void)unused;
    assert_int_equal(trn_tensor_tensor_scan(NULL), TRN_EINVAL);
    assert_int_equal(trn_range_select(NULL), TRN_EINVAL);
    assert_int_equal(trn_select_reduce(NULL), TRN_EINVAL);
    trn_tensor_tensor_scan_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 3),
                                      .data0 = trn_tensor_2d(TRN_F32, x, 2, 3) };
    a.data1 = a.data0, a.op0 = TRN_ALU_MULTIPLY, a.op1 = TRN_ALU_ABS;
    REFUSED(trn_tensor_tensor_scan, a, TRN_EINVAL, "op1 is abs, which has one operand, where it takes two", &watch);
    a.op1 = TRN_ALU_ADD, a.data1.rank = 0;
    REFUSED(trn_tensor_tensor_scan, a, TRN_ESHAPE, "data1 is missing", &watch);
    trn_range_select_args s = {
        .dst = a.dst, .on_true_tile = a.data0, .comp_op0 = TRN_ALU_NOT_EQUAL, .comp_op1 = TRN_ALU_LESS
    };
    REFUSED(trn_range_select, s, TRN_EINVAL,
            "comp_op0 is not_equal; it takes equal, less, less_equal, greater or greater_equal", &watch);
    s.comp_op0 = TRN_ALU_LESS, s.on_false_value = -1;
    REFUSED(trn_range_select, s, TRN_EINVAL, "on_false_value is -1; it takes -3.4028235e38", &watch);
    s.on_false_value = 0, s.reduce_op = TRN_ALU_ADD;
    REFUSED(trn_range_select, s, TRN_EINVAL, "reduce_op is add; it takes maximum", &watch);
    s.reduce_op = TRN_ALU_MAXIMUM;
    REFUSED(trn_range_select, s, TRN_ESHAPE, "bound0 is missing", &watch);
    s.bound0 = s.bound1 = trn_tensor_1d(TRN_F32, bound, 2), s.range_start = 1 << 24;
    REFUSED(trn_range_select, s, TRN_ELIMIT, "range_start is 16777216 and dst has 3 elements: indices stay within 2^24",
            &watch);
    s.range_start = 0, s.on_true_tile = trn_tensor_2d(TRN_I8, x, 2, 3);
    REFUSED(trn_range_select, s, TRN_EFORMAT, "on_true_tile is int8; it takes a floating-point format", &watch);
    s.generation = TRN_TRAINIUM1;
    REFUSED(trn_range_select, s, TRN_EUNSUPPORTED, "range_select is not available on Trainium1", &watch);
    trn_select_reduce_args e = { .dst = a.dst, .on_true = a.data0, .predicate = trn_tensor_2d(TRN_U32, x, 2, 3) };
    REFUSED(trn_select_reduce, e, TRN_EFORMAT, "predicate is uint32; it takes int8, uint8, int16 or uint16", &watch);
    e.predicate.format = TRN_U8, e.on_true.format = TRN_TF32;
    REFUSED(trn_select_reduce, e, TRN_EFORMAT, "on_true is tfloat32, which select_reduce does not take", &watch);
    e.on_true.format = TRN_F32, e.reduce_cmd = TRN_REDUCE_CMD_LOAD_REDUCE;
    REFUSED(trn_select_reduce, e, TRN_EINVAL, "reduce_cmd is load_reduce, which this instruction does not take",
            &watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_order),
        cmocka_unit_test(axes),
        cmocka_unit_test(bits),
        cmocka_unit_test(registers),
        cmocka_unit_test(scalar_reduce),
        cmocka_unit_test(scans),
        cmocka_unit_test(scans_round_twice),
        cmocka_unit_test(exponential),
        cmocka_unit_test(ranges),
        cmocka_unit_test(threads),
        cmocka_unit_test(in_its_own_data),
        cmocka_unit_test(refuse_reductions),
        cmocka_unit_test(refuse_registers),
        cmocka_unit_test(refuse_scans_and_selections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
