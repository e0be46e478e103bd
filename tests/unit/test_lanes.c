/* test_lanes.c - sums of any order, 32 columns at a time, against the definition and, as whole products, the twin.
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "trnmath/array/systolic_passes.h"
#include "twin/problem.h"

enum { DEEPEST = TRNI_ARRAY_ROWS * TRNI_MAX_GROUP };

/* Operands of one strip of a and 32 columns of b, as the lanes and as the definition want them. */
typedef struct tile {
    trni_lanes lanes;
    float x[DEEPEST * TRNI_LANE_STRIP], w[DEEPEST * TRNI_LANES];
    double x_scale[TRNI_ARRAY_ROWS * TRNI_LANE_STRIP], w_scale[TRNI_ARRAY_ROWS * TRNI_LANES];
    float expected[TRNI_LANE_CELLS];
} tile;

static double power(int exponent) { return exponent == TRNI_SCALE_NAN ? NAN : ldexp(1.0, exponent); }

static int exponent_of(double scale) { return isnan(scale) ? TRNI_SCALE_NAN : ilogb(scale); }

static void expect(tile *t, const trn_numerics *n)
{
    const trni_lanes *l = &t->lanes;
    for (int i = 0; i < l->strip * TRNI_LANES; i++) {
        float x[DEEPEST], w[DEEPEST];
        int16_t scale[TRNI_ARRAY_ROWS];
        trni_tile one;
        memset(&one, 0, sizeof one);
        for (int p = 0; p < l->rows * l->group; p++) {
            x[p] = l->x[p * l->x_step + i / TRNI_LANES];
            w[p] = l->w[p * TRNI_LANES + i % TRNI_LANES];
        }
        for (int p = 0; l->x_scale && p < l->rows; p++) {
            const int a = exponent_of(l->x_scale[p * l->x_step + i / TRNI_LANES]),
                      b = exponent_of(l->w_scale[p * TRNI_LANES + i % TRNI_LANES]);
            scale[p] = (int16_t)(a == TRNI_SCALE_NAN || b == TRNI_SCALE_NAN ? TRNI_SCALE_NAN : a + b);
        }
        one.x = x;
        one.w = w;
        one.scale = l->x_scale ? scale : NULL;
        one.rows = l->rows;
        one.group = l->group;
        one.first_row = l->first_row;
        one.f32 = l->f32;
        t->expected[i] = trni_tile_of(&one, n);
    }
}

static uint32_t canonical(float x) { return trni_is_nan_bits(trni_bits(x)) ? TRNI_F32_NAN : trni_bits(x); }

static void ask(tile *t, const trn_numerics *n, const char *what)
{
    expect(t, n);
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
        float sum[TRNI_LANE_CELLS];
        char text[1024];
        if (!trn_isa_supported((trn_isa)isa)) continue;
        trni_lanes_of(&t->lanes, n, (trn_isa)isa, sum);
        for (int i = 0; i < t->lanes.strip * TRNI_LANES; i++) {
            if (canonical(t->expected[i]) == canonical(sum[i])) continue;
            trn_numerics_format(n, text, sizeof text);
            CASES_EQUAL(canonical(t->expected[i]), canonical(sum[i]),
                        "%s, %s: cell %d of %d rows, group %d%s%s, first row %d, %s", what, text, i, t->lanes.rows,
                        t->lanes.group, t->lanes.x_scale ? ", scaled" : "", t->lanes.f32 ? ", F32" : "",
                        t->lanes.first_row, trn_isa_text((trn_isa)isa));
        }
    }
}

/* Every field that the lanes read. */
static trn_numerics any_order(uint64_t *rng)
{
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
    n.chains = 1 << cases_below(rng, 5);
    n.chain_layout = (trn_chain_layout)cases_below(rng, 2);
    n.merge = (trn_merge)cases_below(rng, 2);
    n.product = cases_one_in(rng, 3) ? TRN_PRODUCT_BF16 : TRN_PRODUCT_EXACT;
    n.group = (trn_group)cases_below(rng, 2);
    n.accumulator = (trn_accumulator)cases_below(rng, 3);
    if (!cases_one_in(rng, 3)) n.accumulator_bits = 24 + cases_below(rng, 30);
    n.fp32_mode = cases_one_in(rng, 3) ? TRN_FP32_SPLIT : TRN_FP32_NATIVE;
    n.flush_products = cases_one_in(rng, 3);
    n.flush_sums = cases_one_in(rng, 3);
    return n;
}

static void lay(tile *t, uint64_t *rng)
{
    trni_lanes *l = &t->lanes;
    memset(l, 0, sizeof *l);
    l->strip = 1 + cases_below(rng, TRNI_LANE_STRIP);
    l->x_step = TRNI_LANE_STRIP;
    l->rows = cases_one_in(rng, 4) ? 1 + cases_below(rng, TRNI_ARRAY_ROWS) : 1 + cases_below(rng, 24);
    l->group = 1 << cases_below(rng, 3);
    l->first_row = cases_below(rng, TRNI_ARRAY_ROWS + 1 - l->rows);
    l->f32 = l->group == 1 && cases_one_in(rng, 2);
    l->x = t->x;
    l->w = t->w;
}

/* One of a few formats' worth of bits, so that products of pairs and quads are those of FP8. */
static float operand(const trni_lanes *l, bridge_values values, uint64_t *rng)
{
    if (l->group > 1) {
        const twin_format *f = &twin_formats[values % 2 ? TWIN_E5M2 : TWIN_E4M3];
        const twin_number x = twin_decode(f, bridge_code_narrow(f, values, rng));
        return cases_float_of(twin_to_f32(&x));
    }
    return cases_float_of(bridge_value(values, rng) & (l->f32 ? 0xffffffffu : 0xffff0000u));
}

static void fill(tile *t, bridge_values values, uint64_t *rng)
{
    trni_lanes *l = &t->lanes;
    for (int i = 0; i < l->rows * l->group * TRNI_LANE_STRIP; i++) t->x[i] = operand(l, values, rng);
    for (int i = 0; i < l->rows * l->group * TRNI_LANES; i++) t->w[i] = operand(l, values, rng);
    if (l->group == 1 || cases_one_in(rng, 2)) return;
    for (int i = 0; i < l->rows * TRNI_LANE_STRIP; i++) {
        const int code = (int)bridge_code_scale(values, rng);
        t->x_scale[i] = power(code == 255 ? TRNI_SCALE_NAN : code - 127);
    }
    for (int i = 0; i < l->rows * TRNI_LANES; i++) {
        const int code = (int)bridge_code_scale(values, rng);
        t->w_scale[i] = power(code == 255 ? TRNI_SCALE_NAN : code - 127);
    }
    l->x_scale = t->x_scale;
    l->w_scale = t->w_scale;
}

static void any_values_in_any_order(void **state)
{
    (void)state;
    static tile t;
    uint64_t rng = 4001;
    for (int i = cases_rounds(500, 20000); i > 0; i--) {
        const bridge_values values = (bridge_values)cases_below(&rng, BRIDGE_VALUES);
        const trn_numerics n = any_order(&rng);
        lay(&t, &rng);
        fill(&t, values, &rng);
        ask(&t, &n, "any values");
    }
}

/* Terms that meet at the last bits: powers of two and their neighbours around the accumulator's place, a double's, and
 * far below, so that sums are ties, or ties but for the last term that a double could not hold. */
static double edge(int bits, uint64_t *rng)
{
    static const int far[] = { -52, -53, -54, -55, -100, -76, 0, 0, 1, -1 };
    const int place = cases_one_in(rng, 2) ? -bits - 1 + cases_below(rng, 4) : far[cases_below(rng, 10)];
    const double odd = cases_one_in(rng, 3) ? 1 + 2 * cases_below(rng, 8) : 1;
    return (cases_one_in(rng, 2) ? -odd : odd) * ldexp(1.0, place);
}

static void ties_at_every_width(void **state)
{
    (void)state;
    static tile t;
    uint64_t rng = 4002;
    for (int round = cases_rounds(2, 100); round > 0; round--)
        for (int bits = 24; bits <= 53; bits++)
            for (int accumulator = 0; accumulator <= TRN_ACCUMULATOR_EXACT; accumulator++) {
                trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
                n.accumulator = (trn_accumulator)accumulator;
                n.accumulator_bits = bits;
                n.chains = 1 << cases_below(&rng, 3);
                n.merge = (trn_merge)cases_below(&rng, 2);
                memset(&t.lanes, 0, sizeof t.lanes);
                t.lanes.strip = t.lanes.x_step = t.lanes.group = 1;
                t.lanes.rows = 3 + cases_below(&rng, 14);
                t.lanes.x = t.x;
                t.lanes.w = t.w;
                const int shift = -60 + cases_below(&rng, 120); /* nowhere near the ends of the range */
                for (int p = 0; p < t.lanes.rows; p++) {
                    t.x[p] = ldexpf(1.0f, shift);
                    for (int j = 0; j < TRNI_LANES; j++)
                        t.w[p * TRNI_LANES + j] = (float)ldexp(edge(bits, &rng), -shift / 2);
                }
                ask(&t, &n, "ties");
            }
}

/* A product with 48 significant bits on an accumulator with all bits set: the rounding carries into the next binade. */
static void carries(void **state)
{
    (void)state;
    static tile t;
    uint64_t rng = 4003;
    for (int round = cases_rounds(60, 3000); round > 0; round--) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
        n.accumulator = (trn_accumulator)cases_below(&rng, 3);
        n.accumulator_bits = 24 + cases_below(&rng, 30);
        n.chains = 1;
        memset(&t.lanes, 0, sizeof t.lanes);
        t.lanes.strip = t.lanes.x_step = t.lanes.group = 1;
        t.lanes.rows = 4;
        t.lanes.x = t.x;
        t.lanes.w = t.w;
        for (int p = 0; p < 4; p++) {
            t.x[p] = cases_float_of(0x3fffffffu - (uint32_t)cases_below(&rng, 3));
            for (int j = 0; j < TRNI_LANES; j++) {
                const uint32_t sign = cases_u32(&rng) & 0x80000000u,
                               exponent = (uint32_t)(127 - 8 * p - cases_below(&rng, 24)) << 23;
                t.w[p * TRNI_LANES + j] =
                    cases_float_of(sign | exponent | (0x7fffffu - (uint32_t)cases_below(&rng, 3)));
            }
        }
        ask(&t, &n, "carries");
    }
}

/* Sums at both ends of the range: 2^-126 and a little less or more, 2^127 to 2^128, and terms that pull back. */
static void ends_of_the_range(void **state)
{
    (void)state;
    static tile t;
    uint64_t rng = 4004;
    for (int round = cases_rounds(150, 6000); round > 0; round--) {
        trn_numerics n = any_order(&rng);
        const bool small = cases_one_in(&rng, 2);
        memset(&t.lanes, 0, sizeof t.lanes);
        t.lanes.strip = t.lanes.x_step = t.lanes.group = 1;
        t.lanes.f32 = true;
        t.lanes.rows = 1 + cases_below(&rng, 8);
        t.lanes.x = t.x;
        t.lanes.w = t.w;
        for (int p = 0; p < t.lanes.rows; p++) {
            t.x[p] = small ? 0x1p-70f : 0x1p70f;
            for (int j = 0; j < TRNI_LANES; j++) {
                static const double near[] = { 1,       0.5,     2,       1 - 0x1p-24, 1 - 0x1p-23, 1 + 0x1p-23,
                                               0x1p-23, 0x1p-24, 0x1p-25, 0x1.8p-24,   0x1.8p-2 };
                const double x = near[cases_below(&rng, (int)(sizeof near / sizeof near[0]))];
                t.w[p * TRNI_LANES + j] = (float)ldexp(cases_one_in(&rng, 2) ? -x : x, small ? -56 : 57);
            }
        }
        ask(&t, &n, small ? "small sums" : "large sums");
    }
}

/* A flushed sum of the sign of a tiny one, then quads whose products are all -0: the chain stays at -0. */
static void minus_zeros(void **state)
{
    (void)state;
    static tile t;
    for (int which = 0; which < 8; which++) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
        n.chains = 1;
        n.flush_sums = true;
        n.group = which & 1 ? TRN_GROUP_EXACT : TRN_GROUP_SEQUENTIAL;
        n.accumulator_bits = which & 2 ? 30 : 24;
        memset(&t.lanes, 0, sizeof t.lanes);
        t.lanes.strip = t.lanes.x_step = 1;
        t.lanes.rows = 3;
        t.lanes.group = which & 4 ? 4 : 2;
        t.lanes.x = t.x;
        t.lanes.w = t.w;
        t.lanes.x_scale = t.x_scale;
        t.lanes.w_scale = t.w_scale;
        for (int p = 0; p < 3; p++) {
            t.x_scale[p] = 0x1p-100;
            for (int j = 0; j < TRNI_LANES; j++) t.w_scale[p * TRNI_LANES + j] = 0x1p-100;
        }
        for (int i = 0; i < 3 * t.lanes.group; i++) {
            t.x[i] = i ? 0.0f : 1.0f;
            for (int j = 0; j < TRNI_LANES; j++) t.w[i * TRNI_LANES + j] = j < 16 || i % 3 ? -1.0f : 1.0f;
        }
        ask(&t, &n, "minus zeros");
        assert_int_equal(TRNI_F32_SIGN, trni_bits(t.expected[0]));
    }
}

/* Steps that one instruction does: fused multiply-adds to nearest even and toward zero, flushed sums, halves. */
static void steps_of_one_instruction(void **state)
{
    (void)state;
    static tile t;
    uint64_t rng = 4005;
    for (int i = cases_rounds(250, 10000); i > 0; i--) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
        n.chains = 1 << cases_below(&rng, 5);
        n.chain_layout = (trn_chain_layout)cases_below(&rng, 2);
        n.merge = (trn_merge)cases_below(&rng, 2);
        n.accumulator = cases_one_in(&rng, 2) ? TRN_ACCUMULATOR_TOWARD_ZERO : TRN_ACCUMULATOR_NEAREST_EVEN;
        n.fp32_mode = cases_one_in(&rng, 2) ? TRN_FP32_SPLIT : TRN_FP32_NATIVE;
        n.flush_sums = cases_one_in(&rng, 4);
        lay(&t, &rng);
        t.lanes.group = 1;
        t.lanes.f32 = cases_one_in(&rng, 2);
        fill(&t, (bridge_values)cases_below(&rng, BRIDGE_VALUES), &rng);
        ask(&t, &n, "one instruction");
    }
}

/* Whole products: more rows and columns than a strip, a panel and a region have, in every mode, against the twin. */
static void products_equal_the_twin(void **state)
{
    (void)state;
    static const int most[] = { 1, 3, 35, 70, 300 };
    uint64_t rng = 4006;
    for (int i = cases_rounds(250, 6000); i > 0; i--) {
        problem p;
        problem_mode mode;
        trn_generation generation;
        memset(&p, 0, sizeof p);
        do problem_legal_case(&mode, &generation, &p.twin.a_format, &p.twin.b_format, &rng);
        while (p.twin.a_format == TWIN_I8);
        p.twin.group = mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 0;
        do {
            p.twin.m = 1 + cases_below(&rng, most[cases_below(&rng, 4)]);
            p.twin.n = 1 + cases_below(&rng, most[cases_below(&rng, 5)]);
            p.twin.k = 1 + cases_below(&rng, most[1 + cases_below(&rng, 4)]);
            if (mode == PROBLEM_MX) p.twin.k = (p.twin.k + 31) / 32 * 32;
        } while (p.twin.m * p.twin.n * p.twin.k > 60000);
        p.twin.dst_format = generation == TRN_TRAINIUM3
                                ? (int[]){ TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E5M2 }[cases_below(&rng, 4)]
                                : TWIN_F32;
        p.twin.cfp8[TWIN_A] = problem_cfp8(&rng);
        p.twin.cfp8[TWIN_B] = problem_cfp8(&rng);
        p.twin.accumulate = cases_one_in(&rng, 2);
        p.twin.rounding = cases_one_in(&rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(&rng, TWIN_MODES);
        p.twin.seed = cases_next(&rng);
        p.twin.stream = cases_next(&rng);
        p.numerics = any_order(&rng);
        p.numerics.flush_inputs = cases_one_in(&rng, 3);
        if (cases_one_in(&rng, 3)) p.numerics.k_tile = 1 + cases_below(&rng, 128);
        if (cases_one_in(&rng, 3)) p.numerics.psum_format = TRN_BF16;
        p.numerics.psum_rounding = cases_one_in(&rng, 2) ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        p.numerics.sr_bits = 1 + cases_below(&rng, 32);
        const bridge_layout layout[3] = { (bridge_layout)cases_below(&rng, BRIDGE_LAYOUTS),
                                          (bridge_layout)cases_below(&rng, BRIDGE_LAYOUTS),
                                          (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS) };
        problem_build(&p, layout, (bridge_values)cases_below(&rng, BRIDGE_VALUES), &rng);
        problem_expect(&p, twin_matmul);
        problem_ask_all(&p, &rng);
        problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_values_in_any_order),
        cmocka_unit_test(ties_at_every_width),
        cmocka_unit_test(carries),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(minus_zeros),
        cmocka_unit_test(steps_of_one_instruction),
        cmocka_unit_test(products_equal_the_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
