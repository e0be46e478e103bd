/* test_safe.c - products in orders of their own whose numbers are safe, or just are not, against the definition.
 * SPDX-License-Identifier: MIT
 *
 * What decides is how the numbers of a tile lie to each other, so the numbers here are drawn for that: within a few
 * binades, around the last places of each width, near the places where a tile is safe no more, and with one number in
 * a hundred that is no number at all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"
#include "unit/safe/groups.h"

enum { MOST_M = 110, MOST_N = 70, MOST_K = 300 };

typedef struct question {
    int m, n, k;
    trn_format format;
    trn_numerics numerics;
    bool accumulate;
    float a[MOST_M * MOST_K], b[MOST_K * MOST_N], before[MOST_M * MOST_N], expected[MOST_M * MOST_N];
    uint16_t short_a[MOST_M * MOST_K], short_b[MOST_K * MOST_N];
    float dst[MOST_M * MOST_N];
} question;

static uint32_t canonical(float x) { return trni_is_nan_bits(trni_bits(x)) ? TRNI_F32_NAN : trni_bits(x); }

static float flushed(const question *q, float x)
{
    return q->numerics.flush_inputs && fabsf(x) < 0x1p-126f ? x * 0.0f : x; /* of F32 and of BF16 */
}

static float element(const question *q, int row, int column)
{
    float psum = q->accumulate ? q->before[row * q->n + column] : 0, x[128], w[128];
    bool fresh = !q->accumulate;
    for (int k = 0; k < q->k; k += q->numerics.k_tile) {
        trni_tile t;
        memset(&t, 0, sizeof t);
        t.rows = q->k - k < q->numerics.k_tile ? q->k - k : q->numerics.k_tile;
        t.group = 1;
        t.f32 = q->format == TRN_F32;
        t.x = x;
        t.w = w;
        for (int p = 0; p < t.rows; p++) {
            x[p] = flushed(q, q->a[row * q->k + k + p]);
            w[p] = flushed(q, q->b[(k + p) * q->n + column]);
        }
        psum = trni_tile_onto(psum, fresh, &t, &q->numerics);
        fresh = false;
    }
    return psum;
}

static trn_tensor operand(const question *q, const float *f32, const uint16_t *bf16, int rows, int columns)
{
    return trn_tensor_2d(q->format, (void *)(uintptr_t)(q->format == TRN_F32 ? (const void *)f32 : (const void *)bf16),
                         rows, columns);
}

/* BF16 numbers have a short form, and are what it says. */
static void shorten(const question *q, float *x, uint16_t *code, int n)
{
    for (int i = 0; i < n && q->format == TRN_BF16; i++) {
        code[i] = (uint16_t)(trni_bits(x[i]) >> 16);
        x[i] = cases_float_of((uint32_t)code[i] << 16);
    }
}

/* Some elements by definition, all of them on every instruction set. */
static void ask(question *q, const char *what, uint64_t *rng)
{
    enum { some = 24 };
    int at[some];
    shorten(q, q->a, q->short_a, q->m * q->k);
    shorten(q, q->b, q->short_b, q->k * q->n);
    for (int i = 0; i < some; i++) {
        at[i] = cases_below(rng, q->m * q->n);
        q->expected[i] = element(q, at[i] / q->n, at[i] % q->n);
    }
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
        char text[1024];
        trn_error error;
        trn_matmul_args args;
        if (!trn_isa_supported((trn_isa)isa)) continue;
        memset(&args, 0, sizeof args);
        memcpy(q->dst, q->before, sizeof q->dst);
        args.dst = trn_tensor_2d(TRN_F32, q->dst, q->m, q->n);
        args.a = operand(q, q->a, q->short_a, q->m, q->k);
        args.b = operand(q, q->b, q->short_b, q->k, q->n);
        args.accumulate = q->accumulate;
        args.numerics = &q->numerics;
        args.isa = (trn_isa)isa;
        args.error = &error;
        assert_int_equal(TRN_OK, trn_matmul(&args));
        trn_numerics_format(&q->numerics, text, sizeof text);
        for (int i = 0; i < some; i++)
            if (canonical(q->expected[i]) != canonical(q->dst[at[i]]))
                CASES_EQUAL(canonical(q->expected[i]), canonical(q->dst[at[i]]), "%s, %s: [%d] of %dx%dx%d %s, %s",
                            what, text, at[i], q->m, q->n, q->k, trn_format_name(q->format),
                            trn_isa_text((trn_isa)isa));
    }
}

static void any_order(question *q, uint64_t *rng)
{
    static const int bits[] = { 24, 24, 25, 26, 27, 30, 40, 51, 52, 53 };
    trn_numerics *n = &q->numerics;
    *n = trn_numerics_default(TRN_TRAINIUM2);
    n->chains = 1 << cases_below(rng, 5);
    n->chain_layout = (trn_chain_layout)cases_below(rng, 2);
    n->merge = (trn_merge)cases_below(rng, 2);
    n->accumulator = (trn_accumulator)cases_below(rng, 3);
    n->accumulator_bits = bits[cases_below(rng, 10)];
    n->product = cases_one_in(rng, 4) ? TRN_PRODUCT_BF16 : TRN_PRODUCT_EXACT;
    n->fp32_mode = cases_one_in(rng, 3) ? TRN_FP32_SPLIT : TRN_FP32_NATIVE;
    n->flush_inputs = cases_one_in(rng, 5);
    n->flush_products = cases_one_in(rng, 5);
    n->flush_sums = cases_one_in(rng, 5);
    if (cases_one_in(rng, 4)) n->k_tile = 1 + cases_below(rng, 128);
}

static void any_size(question *q, uint64_t *rng)
{
    q->m = 1 + cases_below(rng, cases_one_in(rng, 4) ? (int)MOST_M : 9);
    q->n = 1 + cases_below(rng, cases_one_in(rng, 4) ? (int)MOST_N : 34);
    q->k = 1 + cases_below(rng, cases_one_in(rng, 4) ? (int)MOST_K : 140);
    q->format = cases_one_in(rng, 2) ? TRN_F32 : TRN_BF16;
    q->accumulate = cases_one_in(rng, 3);
    for (int i = 0; i < q->m * q->n; i++) q->before[i] = (float)cases_below(rng, 9) - 4;
}

/* A number within `spread` binades below 2^top, `bits` long, as the format has it. */
static float within(const question *q, int top, int spread, int bits, uint64_t *rng)
{
    const uint32_t cut = q->format == TRN_F32 ? 0xffffffffu : 0xffff0000u, u = cases_u32(rng);
    const float one = cases_float_of(0x3f800000u | (u & 0x7fffffu & ~((1u << (24 - bits)) - 1u)));
    const float x = ldexpf(one, top - 1 - cases_below(rng, spread + 1));
    return cases_float_of((trni_bits(u >> 31 ? -x : x) & cut) * (uint32_t)(u >> 23 & 15 ? 1 : 0)); /* some zeros */
}

static void numbers_within_some_binades(void **state)
{
    (void)state;
    static question q;
    uint64_t rng = 4101;
    for (int i = cases_rounds(250, 10000); i > 0; i--) {
        any_order(&q, &rng);
        any_size(&q, &rng);
        const int spread = cases_below(&rng, 50), bits = cases_one_in(&rng, 2) ? 24 : 1 + cases_below(&rng, 24),
                  top = cases_below(&rng, 21) - 10;
        for (int j = 0; j < q.m * q.k; j++) q.a[j] = within(&q, top, cases_one_in(&rng, 2) ? spread : 1, bits, &rng);
        for (int j = 0; j < q.k * q.n; j++) q.b[j] = within(&q, -top, spread, bits, &rng);
        ask(&q, "within", &rng);
    }
}

/* The spans where tiles are safe no more: sums near 2^126 and 2^100, places near 2^-126 and 2^-149, and 53 and 97 of
 * them together. Cancellation leads down to the last of them. */
static void numbers_at_the_ends(void **state)
{
    (void)state;
    static question q;
    uint64_t rng = 4102;
    for (int i = cases_rounds(250, 10000); i > 0; i--) {
        any_order(&q, &rng);
        any_size(&q, &rng);
        const int where[] = { 118, 92, -100, -125, -148, -60 };
        const int end = where[cases_below(&rng, 6)] + cases_below(&rng, 9) - 4, a_top = end / 2, b_top = end - a_top,
                  spread = cases_below(&rng, 4), bits = 1 + cases_below(&rng, 24);
        for (int j = 0; j < q.m * q.k; j++) q.a[j] = within(&q, a_top, spread, bits, &rng);
        for (int j = 0; j < q.k * q.n; j++) q.b[j] = within(&q, b_top, spread, bits, &rng);
        ask(&q, "ends", &rng);
    }
}

/* Products that meet at half a place of the accumulator, and others far below that decide. */
static void ties(void **state)
{
    (void)state;
    static question q;
    uint64_t rng = 4103;
    for (int i = cases_rounds(250, 10000); i > 0; i--) {
        any_order(&q, &rng);
        any_size(&q, &rng);
        const int far[] = { -53, -54, -55, -60, -90, 0, 0, 0, 1, -1 }, bits = q.numerics.accumulator_bits;
        for (int j = 0; j < q.m * q.k; j++) q.a[j] = cases_one_in(&rng, 9) ? 0.0f : 1.0f;
        for (int j = 0; j < q.k * q.n; j++) {
            const int place = cases_one_in(&rng, 2) ? -bits - 1 + cases_below(&rng, 4) : far[cases_below(&rng, 10)];
            const float odd = cases_one_in(&rng, 3) ? (float)(1 + 2 * cases_below(&rng, 8)) : 1.0f;
            q.b[j] = ldexpf(cases_one_in(&rng, 2) ? -odd : odd, place);
        }
        ask(&q, "ties", &rng);
    }
}

/* Of few rows in one chain, so that nothing hides what one step did: ones, halves of the last place with something far
 * below, and what is smaller still. Often a one is taken away at the end. */
static float telling(const question *q, uint64_t *rng)
{
    const int bits = q->numerics.accumulator == TRN_ACCUMULATOR_EXACT ? 24 : q->numerics.accumulator_bits;
    const float sign = cases_one_in(rng, 2) ? -1.0f : 1.0f;
    switch (cases_below(rng, 7)) {
    case 0:
    case 1: return sign;
    case 2:
    case 3:
        return sign * ldexpf(1 + (cases_one_in(rng, 2) ? -1.0f : 1.0f) * ldexpf(1, -1 - cases_below(rng, 23)),
                             -bits + cases_below(rng, 2));
    case 4: return sign * ldexpf(1, -bits - 20 - cases_below(rng, 12));
    case 5: return sign * ldexpf(1, -20 - cases_below(rng, 100));
    default: return 0;
    }
}

static void steps_that_tell(void **state)
{
    (void)state;
    static question q;
    uint64_t rng = 4106;
    for (int i = cases_rounds(1500, 30000); i > 0; i--) {
        any_order(&q, &rng);
        q.numerics.product = TRN_PRODUCT_EXACT;
        q.numerics.fp32_mode = TRN_FP32_NATIVE;
        q.numerics.chains = 1;
        q.format = cases_one_in(&rng, 5) ? TRN_BF16 : TRN_F32;
        q.accumulate = false;
        q.m = 1;
        q.n = 32; /* elements of 32 are asked for, nearly all of them */
        q.k = 2 + cases_below(&rng, 5);
        const float last = cases_one_in(&rng, 3) ? 0 : -1;
        for (int j = 0; j < q.k; j++) q.a[j] = 1;
        for (int j = 0; j < q.k * q.n; j++) q.b[j] = telling(&q, &rng);
        for (int j = 0; j < q.n && last != 0; j++) q.b[(q.k - 1) * q.n + j] = last;
        ask(&q, "steps that tell", &rng);
    }
}

/* Powers of two that climb beyond 2^127 and come back, or that leave less than 2^-126 behind. */
static void beyond_the_ends(void **state)
{
    (void)state;
    static question q;
    uint64_t rng = 4107;
    for (int i = cases_rounds(500, 10000); i > 0; i--) {
        any_order(&q, &rng);
        any_size(&q, &rng);
        const bool small = cases_one_in(&rng, 2);
        const int top = small ? -126 + cases_below(&rng, 5) : 112 + cases_below(&rng, 16), half = top / 2;
        q.accumulate = false;
        q.numerics.k_tile = 128;
        q.m = 1 + cases_below(&rng, 4);
        q.k = small ? 1 + cases_below(&rng, 4) : q.k;
        if (small) q.numerics.flush_sums = true;
        for (int j = 0; j < q.m * q.k; j++) q.a[j] = ldexpf(1, half);
        for (int j = 0; j < q.k * q.n; j++) {
            const float x = ldexpf(1, top - half - cases_below(&rng, 3)), up = j / q.n < q.k / 2 ? x : -x;
            q.b[j] = small && cases_one_in(&rng, 2) ? -up : up;
        }
        ask(&q, small ? "less than the smallest" : "more than the largest", &rng);
    }
}

/* A few infinities, NaN, subnormal and huge numbers among the others: one tile goes one way, the next the other. */
static void strangers(void **state)
{
    (void)state;
    static question q;
    static const uint32_t strange[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0x00000001u,
                                        0x80010000u, 0x7f7fffffu, 0x00800000u, 0x80000000u, 0x20000000u };
    uint64_t rng = 4104;
    for (int i = cases_rounds(250, 10000); i > 0; i--) {
        any_order(&q, &rng);
        any_size(&q, &rng);
        for (int j = 0; j < q.m * q.k; j++) q.a[j] = within(&q, 1, 4, 24, &rng);
        for (int j = 0; j < q.k * q.n; j++) q.b[j] = within(&q, 1, 4, 24, &rng);
        for (int many = cases_below(&rng, 4); many >= 0; many--) {
            const uint32_t u = strange[cases_below(&rng, 10)] & (q.format == TRN_F32 ? 0xffffffffu : 0xffff0000u);
            if (cases_one_in(&rng, 2))
                q.a[cases_below(&rng, q.m * q.k)] = cases_float_of(u);
            else
                q.b[cases_below(&rng, q.k * q.n)] = cases_float_of(u);
        }
        ask(&q, "strangers", &rng);
    }
}

/* What the range of a tile says is true of each of its numbers. */
static void ranges(void **state)
{
    (void)state;
    uint64_t rng = 4105;
    for (int i = cases_rounds(2000, 100000); i > 0; i--) {
        float x[70];
        const int n = 1 + cases_below(&rng, 70);
        const uint32_t mask = ~(uint32_t)0 << cases_below(&rng, 24);
        for (int j = 0; j < n; j++)
            x[j] = cases_float_of(cases_one_in(&rng, 3) ? 0 : cases_u32(&rng) & mask & 0xbfffffffu);
        if (cases_one_in(&rng, 4)) x[cases_below(&rng, n)] = cases_float_of(cases_u32(&rng) & 0x807fffffu);
        if (cases_one_in(&rng, 9)) x[cases_below(&rng, n)] = (float)INFINITY;
        for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
            if (!trn_isa_supported((trn_isa)isa)) continue;
            const trni_safe_range r = trni_safe_range_of(x, (size_t)n, (trn_isa)isa);
            for (int j = 0; j < n; j++) {
                assert_true(isfinite(x[j]) || !r.finite);
                if (!isfinite(x[j]) || x[j] == 0) continue;
                const double unit = ldexp((double)x[j], -r.low);
                assert_true(fabs((double)x[j]) < ldexp(1.0, r.high));
                assert_true(unit == floor(unit));
                int exponent;
                const double whole = ldexp(frexp((double)x[j], &exponent), r.bits);
                assert_true(whole == floor(whole));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(numbers_within_some_binades),
        cmocka_unit_test(numbers_at_the_ends),
        cmocka_unit_test(ties),
        cmocka_unit_test(steps_that_tell),
        cmocka_unit_test(beyond_the_ends),
        cmocka_unit_test(strangers),
    };
    return cmocka_run_group_tests_name("safe", tests, NULL, NULL) + safe_join();
}
