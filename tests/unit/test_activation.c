/* test_activation.c - the Scalar engine's functions: every bfloat16 number against the twin on every instruction set,
 * the published vectors, what happens at the edges, errors of engine and ideal, and tables of a user's own.
 * SPDX-License-Identifier: MIT
 *
 * Level 2: every binary32 number against the twin, and errors over one number in 61.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <trnmath/trn_scalar_engine.h>

#include "bench/common/activation_error.h"
#include "published/activation.h"
#include "twin/cases.h"
#include "twin/host.h"

enum { BLOCK = 4096 };

static void evaluate(trn_act op, const trn_act_table *table, trn_isa isa, float *y, const float *x, size_t n)
{
    trni_act_plan plan;
    trni_act_plan_init(&plan, op, 0.25f, table, isa);
    trni_act_plan_near(&plan);
    trni_act_run(&plan, y, x, n);
}

static float one(trn_act op, float x)
{
    float y;
    evaluate(op, NULL, TRN_ISA_PORTABLE, &y, &x, 1);
    return y;
}

/* ---- the twin ---- */

#if defined(HAVE_MPFR) && HAVE_MPFR
#include "twin/twin_activation.h"

static void exact(int op, mpfr_t y, const mpfr_t x) { activation_mpfr((trn_act)op, y, x); }

typedef struct function {
    trn_act op;
    twin_act_family family;
    int symmetry; /* 1 odd, 2 even */
    twin_act_limit up, down;
    float up_number, down_number;
    double end; /* where the record says it: 0 = where the limit is reached */
} function;

static const function functions[] = {
    { TRN_ACT_EXP, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_NUMBER, HUGE_VALF, 0.0f, 88.75 },
    { TRN_ACT_SIGMOID, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_NUMBER, 1.0f, 0.0f, 0 },
    { TRN_ACT_TANH, TWIN_ACT_UNIFORM, 1, TWIN_ACT_TO_NUMBER, TWIN_ACT_NO_LIMIT, 1.0f, 0.0f, 0 },
    { TRN_ACT_ERF, TWIN_ACT_UNIFORM, 1, TWIN_ACT_TO_NUMBER, TWIN_ACT_NO_LIMIT, 1.0f, 0.0f, 0 },
    { TRN_ACT_ERF_DX, TWIN_ACT_UNIFORM, 2, TWIN_ACT_TO_NUMBER, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 0 },
    { TRN_ACT_GELU, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, -0.0f, 0 },
    { TRN_ACT_GELU_DX, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_NUMBER, 1.0f, -0.0f, 0 },
    { TRN_ACT_GELU_APPRX_TANH, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, -0.0f, 0 },
    { TRN_ACT_GELU_APPRX_SIGMOID, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, -0.0f, 0 },
    { TRN_ACT_GELU_APPRX_SIGMOID_DX, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_NUMBER, 1.0f, -0.0f, 0 },
    { TRN_ACT_SILU, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, -0.0f, 0 },
    { TRN_ACT_SILU_DX, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_NUMBER, TWIN_ACT_TO_NUMBER, 1.0f, -0.0f, 0 },
    { TRN_ACT_SOFTPLUS, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, 0.0f, 0 },
    { TRN_ACT_MISH, TWIN_ACT_UNIFORM, 0, TWIN_ACT_TO_X, TWIN_ACT_TO_NUMBER, 0.0f, -0.0f, 0 },
    { TRN_ACT_SIN, TWIN_ACT_UNIFORM, 1, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 3.25 },
    { TRN_ACT_ARCTAN, TWIN_ACT_UNIFORM, 1, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 1.75 },
    { TRN_ACT_RECIPROCAL, TWIN_ACT_RECIPROCAL, 0, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 0 },
    { TRN_ACT_SQRT, TWIN_ACT_SQRT, 0, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 0 },
    { TRN_ACT_RSQRT, TWIN_ACT_RSQRT, 0, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 0 },
    { TRN_ACT_LOG, TWIN_ACT_LOG, 0, TWIN_ACT_NO_LIMIT, TWIN_ACT_NO_LIMIT, 0.0f, 0.0f, 0 },
};

static twin_act *twin_of(const function *f)
{
    twin_act *t = twin_act_new(exact, (int)f->op, f->family, f->symmetry);
    if (f->family != TWIN_ACT_UNIFORM) return t;
    if (f->end == 0) twin_act_side(t, 0, f->up, f->up_number);
    t->limit[0] = f->up;
    t->number[0] = f->up_number;
    if (f->end > 0) t->end[0] = f->end;
    if (!f->symmetry) twin_act_side(t, 1, f->down, f->down_number);
    return t;
}

/* trnmath's results for n patterns from `first` on, `step` apart, on every instruction set. */
static void against_twin(twin_act *t, trn_act op, const trn_act_table *table, uint32_t first, uint32_t step, size_t n)
{
    static float x[BLOCK], y[BLOCK], want[BLOCK];
    for (size_t i = 0; i < n; i++) {
        x[i] = cases_float_of(first + (uint32_t)i * step);
        want[i] = twin_act_value(t, x[i]);
    }
    for (size_t k = 0; k < sizeof all_isas / sizeof *all_isas; k++) {
        if (!trn_isa_supported(all_isas[k])) continue;
        if (cases_level() == 2 && step == 1 && all_isas[k] != TRN_ISA_AVX512 &&
            all_isas[k] != trn_isa_from_name(trn_isa_name()))
            continue;
        evaluate(op, table, all_isas[k], y, x, n);
        for (size_t i = 0; i < n; i++)
            if (cases_bits_of(y[i]) != cases_bits_of(want[i]))
                fail_msg("%s(%08x = %g) is %08x (%s), the twin has %08x", trn_act_name(op), cases_bits_of(x[i]),
                         (double)x[i], cases_bits_of(y[i]), trn_isa_text(all_isas[k]), cases_bits_of(want[i]));
    }
}

static void every_bfloat16(void **state)
{
    (void)state;
    uint64_t rng = 501;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        twin_act *t = twin_of(&functions[k]);
        for (uint32_t code = 0; code < 65536; code += BLOCK)
            against_twin(t, functions[k].op, NULL, code << 16, 65536, BLOCK);
        for (int round = 0; round < 16; round++) /* and others: ends of buckets lie between bfloat16's */
            against_twin(t, functions[k].op, NULL, cases_u32(&rng), cases_u32(&rng) | 1, BLOCK - 7);
        for (int quarter = 1; quarter < 4 * 110; quarter++) {
            const float edge = (float)quarter / 4;
            against_twin(t, functions[k].op, NULL, cases_bits_of(edge) - 3, 1, 6);
            against_twin(t, functions[k].op, NULL, cases_bits_of(-edge) - 3, 1, 6);
        }
        free(t);
    }
}

/* The alternative that trn_numerics has. */
static void rsqrt_by_eight_buckets(void **state)
{
    (void)state;
    const trn_act_table eight = trni_act_power_of(TRN_ACT_RSQRT, 3);
    twin_act *t = twin_act_new(exact, TRN_ACT_RSQRT, TWIN_ACT_RSQRT, 0);
    t->each = 8;
    for (uint32_t code = 0; code < 65536; code += BLOCK)
        against_twin(t, TRN_ACT_RSQRT, &eight, code << 16 | 0x1234, 65536, BLOCK);
    free(t);
}

static void every_float(void **state)
{
    (void)state;
    if (cases_level() < 2) {
        print_message("every float against the twin: level 2 (TRN_TEST_LEVEL=2)\n");
        return;
    }
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        twin_act *t = twin_of(&functions[k]);
        for (uint64_t u = 0; u < (uint64_t)1 << 32; u += BLOCK)
            against_twin(t, functions[k].op, NULL, (uint32_t)u, 1, BLOCK);
        print_message("%s: all 2^32\n", trn_act_name(functions[k].op));
        free(t);
    }
}
#else
static void every_bfloat16(void **state)
{
    (void)state;
    print_message("no MPFR here: nothing to compare the tables with\n");
    skip();
}
static void every_float(void **state) { every_bfloat16(state); }
#endif

/* ---- what is published ---- */

static void published(void **state)
{
    (void)state;
    assert_int_equal(cases_bits_of(one(TRN_ACT_EXP, 0.0f)), 0x3f800000);
    assert_int_equal(cases_bits_of(one(TRN_ACT_EXP, -0.0f)), 0x3f800000);
    assert_int_equal(cases_bits_of(one(TRN_ACT_EXP, -HUGE_VALF)), 0);
    const float nine = one(TRN_ACT_SIN, 9.0f);
    if (!(nine > 27.645f && nine < 27.655f)) fail_msg("sin(9.0) is %g; NKI says 27.65", (double)nine);

    const double worst = published_exp_error(cases_level() == 2 ? 1 : 257);
    const double reciprocal = published_reciprocal_error(cases_level() == 2 ? 1 : 3);
    print_message("exp on [-64, 0]: %.5e (Trainium2 1.1348e-5); reciprocal on [1, 4]: %.5e (Trainium2 1.1984e-5)\n",
                  worst, reciprocal);
    assert_true(worst > 1.12e-5 && worst < 1.15e-5);
    assert_true(reciprocal > 1.18e-5 && reciprocal < 1.21e-5);
}

/* Trainium1's figure includes x + bias rounded before the table: x in U(-85, 85), bias in [-1, 1]. */
static void published_with_bias(void **state)
{
    (void)state;
    const double worst = published_exp_bias_error(200000);
    print_message("exp(x + bias), x in [-85, 85]: %.4e (Trainium1 1.5e-5)\n", worst);
    assert_true(worst > 1.42e-5 && worst < 1.52e-5);
}

static void never_above_one(void **state)
{
    (void)state;
    static float x[BLOCK], y[BLOCK];
    const uint32_t step = cases_level() == 2 ? 1 : 97;
    for (uint64_t u = 0x80000000u; u <= 0xff800000u; u += (uint64_t)step * BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) x[i] = cases_float_of((uint32_t)u + i * step);
        evaluate(TRN_ACT_EXP, NULL, TRN_ISA_PORTABLE, y, x, BLOCK);
        for (uint32_t i = 0; i < BLOCK; i++)
            if (x[i] <= 0.0f && !(y[i] <= 1.0f)) fail_msg("exp(%g) is %.9g, above 1", (double)x[i], (double)y[i]);
    }
}

/* ---- edges ---- */

static void edges(void **state)
{
    (void)state;
    static const uint32_t nan[] = { 0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu };
    for (int k = 0; k < TRN_ACT_COUNT; k++) {
        const trn_act op = (trn_act)k;
        const trn_act_info *info = trn_act_info_of(op);
        float x[3] = { -0.0f, HUGE_VALF, -HUGE_VALF }, y[3];
        assert_int_equal(info->op, op);
        assert_int_equal(trn_act_from_name(info->name), op);
        for (size_t i = 0; i < sizeof all_isas / sizeof *all_isas; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            trni_act_plan plan;
            trni_act_plan_init(&plan, op, 0.0f, NULL, all_isas[i]);
            trni_act_run(&plan, y, x, 3);
            if (cases_bits_of(y[0]) != info->at_minus_zero || cases_bits_of(y[1]) != info->at_infinity ||
                cases_bits_of(y[2]) != info->at_minus_infinity)
                fail_msg("%s at -0, inf, -inf: %08x %08x %08x, its row says %08x %08x %08x", info->name,
                         cases_bits_of(y[0]), cases_bits_of(y[1]), cases_bits_of(y[2]), info->at_minus_zero,
                         info->at_infinity, info->at_minus_infinity);
            for (size_t j = 0; j < sizeof nan / sizeof *nan; j++) {
                const float not = cases_float_of(nan[j]);
                trni_act_run(&plan, y, &not, 1);
                if (cases_bits_of(y[0]) != 0x7fc00000u)
                    fail_msg("%s(NaN %08x) is %08x", info->name, nan[j], cases_bits_of(y[0]));
            }
        }
    }
    assert_null(trn_act_info_of(TRN_ACT_COUNT));
    assert_int_equal(trn_act_from_name("tan"), TRN_ACT_COUNT);
}

static void exact_ones(void **state)
{
    (void)state;
    uint64_t rng = 503;
    for (int i = 0; i < 100000; i++) {
        const uint32_t u = cases_u32(&rng);
        const float x = cases_float_of(u);
        if (isnan(x)) continue;
        volatile float square = x * x, sloped = x * 0.25f;
        assert_int_equal(cases_bits_of(one(TRN_ACT_COPY, x)), u);
        assert_int_equal(cases_bits_of(one(TRN_ACT_ABS, x)), u & 0x7fffffffu);
        assert_int_equal(cases_bits_of(one(TRN_ACT_RELU, x)), x > 0 ? u : 0);
        assert_int_equal(cases_bits_of(one(TRN_ACT_SQUARE, x)), cases_bits_of(square));
        assert_int_equal(cases_bits_of(one(TRN_ACT_PRELU, x)), x >= 0 ? u : cases_bits_of(sloped));
        assert_int_equal(cases_bits_of(one(TRN_ACT_SIGN, x)), x > 0 ? 0x3f800000u : x < 0 ? 0xbf800000u : 0);
    }
    assert_int_equal(cases_bits_of(one(TRN_ACT_SIGN, 0x1p-149f)), 0x3f800000);
}

/* ---- errors ---- */

/* The engine's largest relative errors over bfloat16 numbers, as the model predicts them; a change of a table shows. */
static void errors(void **state)
{
    (void)state;
    static const struct {
        trn_act op;
        double relative; /* upper bound */
    } bound[] = {
        { TRN_ACT_EXP, 1.15e-5 }, { TRN_ACT_SIGMOID, 1.15e-5 }, { TRN_ACT_SOFTPLUS, 1.15e-5 },
        { TRN_ACT_TANH, 1.7e-4 }, { TRN_ACT_ERF, 1.5e-4 },      { TRN_ACT_SILU, 4e-5 },
        { TRN_ACT_MISH, 6.5e-5 }, { TRN_ACT_SIN, 1.5e-5 },      { TRN_ACT_ARCTAN, 2e-4 },
        { TRN_ACT_SQRT, 5e-7 },   { TRN_ACT_RSQRT, 4.5e-5 },    { TRN_ACT_RECIPROCAL, 1.21e-5 },
        { TRN_ACT_COPY, 0 },      { TRN_ACT_ABS, 0 },           { TRN_ACT_RELU, 0 },
        { TRN_ACT_SIGN, 0 },
    };
    const uint32_t step = cases_level() == 2 ? 61 : 65536;
    print_message("%-22s %12s %12s %12s | %s\n", "function", "engine: ulp", "relative", "absolute", "ideal: ulp");
    for (int k = 0; k < TRN_ACT_COUNT; k++) {
        const activation_error e = activation_error_sweep((trn_act)k, TRN_ACT_MATH_ENGINE, 0, 0xffffffffu, step);
        print_message("%-22s %12.4g %12.4g %12.4g |", trn_act_name((trn_act)k), e.max_ulp, e.max_relative,
                      e.max_absolute);
        assert_int_equal(e.wrong, 0);
        for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
            if (bound[i].op == (trn_act)k && e.max_relative > bound[i].relative)
                fail_msg("%s: relative error %g at %g", trn_act_name((trn_act)k), e.max_relative, e.relative_at);
        if (activation_has_ideal()) {
            const activation_error i = activation_error_sweep((trn_act)k, TRN_ACT_MATH_SLEEF, 0, 0xffffffffu, step);
            print_message(" %.4f", i.max_ulp);
            assert_int_equal(i.wrong, 0);
            if (i.max_ulp > 1.0) fail_msg("ideal %s: %g ulp at %g", trn_act_name((trn_act)k), i.max_ulp, i.ulp_at);
        }
        print_message("\n");
    }
    if (!activation_has_ideal()) print_message("no SLEEF here: the ideal functions were not measured\n");
    if (!activation_has_mpfr()) print_message("no MPFR here: binary64 had the last word\n");
}

/* ---- the same bits everywhere; tables of one's own ---- */

static trn_act_table any_table(uint64_t *rng, trn_act_bucket *bucket, int buckets)
{
    trn_act_table t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < buckets; i++)
        for (int j = 0; j < 4; j++)
            bucket[i].c[j] = cases_float_of(cases_u32(rng) & (cases_one_in(rng, 50) ? ~0u : 0xbfffffffu));
    t.bucket = bucket;
    t.buckets = buckets;
    t.symmetry = (trn_act_symmetry)cases_below(rng, 3);
    t.scaling = (trn_act_scaling)(cases_one_in(rng, 3) ? cases_below(rng, 5) : 0);
    t.octaves = 1 + cases_below(rng, 15);
    t.lowest_exponent = cases_below(rng, 60) - 40;
    t.at_zero = cases_float_of(cases_u32(rng));
    t.at_infinity = 3.0f;
    if (t.scaling) {
        t.lowest_exponent = 0;
        t.octaves = t.scaling == TRN_ACT_SCALING_SQRT || t.scaling == TRN_ACT_SCALING_RSQRT ? 2 : 1;
        if (t.symmetry == TRN_ACT_SYMMETRY_EVEN) t.symmetry = TRN_ACT_SYMMETRY_ODD;
    }
    for (int i = 0; i < TRN_ACT_OCTAVES; i++) t.log2_buckets[i] = (uint8_t)cases_below(rng, 6);
    trn_act_side *side[2] = { &t.positive, &t.negative };
    for (int i = 0; i < 2; i++) {
        side[i]->beyond = (trn_act_beyond)cases_below(rng, 3);
        side[i]->value = (float)cases_below(rng, 9) - 4;
        side[i]->end =
            ldexpf(1.0f + (float)cases_below(rng, 1000) / 1000, t.lowest_exponent + cases_below(rng, t.octaves));
        side[i]->first = cases_below(rng, 8);
        side[i]->joint = cases_one_in(rng, 2) ? 1 + cases_below(rng, 9) : 0;
        side[i]->at = cases_below(rng, 8);
    }
    return t;
}

/* The same with buckets as the library's own, or a scaling of moderate cubics, and whatever ends: what kernels hold in
 * registers, or almost. */
static trn_act_table own_layout(uint64_t *rng, trn_act_bucket *bucket, int buckets)
{
    static const float ends[] = { 0.25f, 0.375f, 1.75f, 3.25f, 5.5f, 8.0f, 8.25f, 0.125f };
    trn_act_table t = any_table(rng, bucket, buckets);
    const bool scaled = cases_one_in(rng, 2);
    const int spread = cases_one_in(rng, 5) ? 40 : 3; /* how many binades of coefficients */
    for (int i = 0; i < buckets; i++)
        for (int j = 0; j < 4; j++)
            bucket[i].c[j] = ldexpf(1.0f + (float)(cases_u32(rng) >> 9) * 0x1p-23f, -cases_below(rng, spread) - 2 * j) *
                             (cases_one_in(rng, 2) || (scaled && j == 0) ? 1.0f : -1.0f);
    t.scaling = scaled ? (trn_act_scaling)(1 + cases_below(rng, 4)) : TRN_ACT_SCALING_NONE;
    t.lowest_exponent = scaled ? 0 : -8;
    t.octaves = !scaled ? 15 : t.scaling == TRN_ACT_SCALING_SQRT || t.scaling == TRN_ACT_SCALING_RSQRT ? 2 : 1;
    if (scaled && t.symmetry == TRN_ACT_SYMMETRY_EVEN) t.symmetry = TRN_ACT_SYMMETRY_ODD;
    for (int i = 0; i < TRN_ACT_OCTAVES; i++)
        t.log2_buckets[i] = (uint8_t)(scaled ? 2 + cases_below(rng, 3) : i < 6 ? 0 : i - 6);
    t.positive.end = ends[cases_below(rng, 8)];
    t.negative.end = ends[cases_below(rng, 8)];
    return t;
}

/* A table by its definition: a list of buckets, looked through from zero outwards. */
static float by_definition(const trn_act_table *t, float x)
{
    if (isnan(x)) return cases_float_of(0x7fc00000u);
    if (t->symmetry != TRN_ACT_SYMMETRY_NONE && signbit(x)) {
        const float y = by_definition(t, -x);
        return isnan(y) || t->symmetry == TRN_ACT_SYMMETRY_EVEN ? y : -y;
    }
    const trn_act_side *side = signbit(x) ? &t->negative : &t->positive;
    const double size = fabs((double)x);
    if (size >= (double)side->end && side->beyond == TRN_ACT_BEYOND_ARGUMENT) return x;
    if (size >= (double)side->end && side->beyond == TRN_ACT_BEYOND_VALUE) return side->value;
    const double inside = size < (double)side->end ? size : (double)nextafterf(side->end, 0.0f);
    int position = 0;
    double centre = 0, low = ldexp(1, t->lowest_exponent);
    for (int i = 0; i < t->octaves && inside >= low; i++, low *= 2) {
        const double width = low / (1 << t->log2_buckets[i]);
        for (int j = 0; j < 1 << t->log2_buckets[i] && inside >= low + j * width; j++) {
            position++;
            centre = low + (j + 0.5) * width;
        }
    }
    const int row = side->joint && position >= side->joint ? side->at + position - side->joint : side->first + position;
    const float *c = t->bucket[row].c, d = x - (float)(signbit(x) ? -centre : centre);
    const float y = fmaf(fmaf(fmaf(c[3], d, c[2]), d, c[1]), d, c[0]);
    return isnan(y) ? cases_float_of(0x7fc00000u) : y;
}

static void own_tables(void **state)
{
    (void)state;
    enum { MANY = 600, N = 200 };
    uint64_t rng = 504;
    int legal = 0, held = 0;
    for (int round = 0; round < cases_rounds(3000, 30000); round++) {
        const int buckets = 1 + cases_below(&rng, MANY);
        trn_act_bucket *bucket = (trn_act_bucket *)malloc((size_t)buckets * sizeof *bucket); /* just so many: a guard */
        float x[N], y[N], want[N];
        trn_error error;
        const bool own = round % 3 == 0;
        const trn_act_table t = own ? own_layout(&rng, bucket, buckets) : any_table(&rng, bucket, buckets);
        if (trn_act_table_check(&t, &error)) {
            free(bucket);
            continue;
        }
        legal++;
        for (int i = 0; i < N; i++)
            x[i] = own && i < 128 ? ldexpf((float)(int32_t)cases_u32(&rng), -28 - cases_below(&rng, 10))
                   : cases_one_in(&rng, 2)
                       ? cases_float_of(cases_u32(&rng))
                       : ldexpf((float)(int32_t)cases_u32(&rng), t.lowest_exponent - 24 - cases_below(&rng, 9));
        evaluate(TRN_ACT_EXP, &t, TRN_ISA_PORTABLE, want, x, N);
        for (int i = 0; i < N && !t.scaling; i++)
            if (cases_bits_of(want[i]) != cases_bits_of(by_definition(&t, x[i])))
                fail_msg("round %d: %g gives %g, the table says %g", round, (double)x[i], (double)want[i],
                         (double)by_definition(&t, x[i]));
        trni_act_plan plan;
        trni_act_plan_init(&plan, TRN_ACT_EXP, 0.25f, &t, TRN_ISA_AVX512);
        trni_act_plan_near(&plan);
        held += plan.has_near;
        if (t.scaling && t.symmetry == TRN_ACT_SYMMETRY_NONE)
            for (int i = 0; own && i < N; i++) x[i] = fabsf(x[i]);
        if (t.scaling) evaluate(TRN_ACT_EXP, &t, TRN_ISA_PORTABLE, want, x, N);
        for (size_t k = 0; k < sizeof all_isas / sizeof *all_isas; k++) {
            if (!trn_isa_supported(all_isas[k])) continue;
            evaluate(TRN_ACT_EXP, &t, all_isas[k], y, x, N);
            for (int i = 0; i < N; i++)
                if (cases_bits_of(y[i]) != cases_bits_of(want[i]))
                    fail_msg("round %d, scaling %d: f(%08x) is %08x (%s), not %08x", round, (int)t.scaling,
                             cases_bits_of(x[i]), cases_bits_of(y[i]), trn_isa_text(all_isas[k]),
                             cases_bits_of(want[i]));
        }
        free(bucket);
    }
    print_message("%d tables, %d of them with rows in registers\n", legal, held);
    assert_true(legal > 100);
    assert_true(held > 50 || !TRNI_X86 || !TRNI_INTRINSICS);
}

static void refused_tables(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        size_t offset;
        int value;
    } bad[] = {
        { "no buckets", offsetof(trn_act_table, buckets), 0 },
        { "symmetry 3", offsetof(trn_act_table, symmetry), 3 },
        { "scaling 9", offsetof(trn_act_table, scaling), 9 },
        { "octaves is 16", offsetof(trn_act_table, octaves), 16 },
        { "octaves is 0", offsetof(trn_act_table, octaves), 0 },
        { "not all normal", offsetof(trn_act_table, lowest_exponent), -127 },
        { "not all normal", offsetof(trn_act_table, lowest_exponent), 114 },
        { "positive side needs", offsetof(trn_act_table, positive.first), 3000 },
        { "negative side needs", offsetof(trn_act_table, negative.first), -1 },
        { "positive side needs", offsetof(trn_act_table, positive.joint), -1 },
        { "not one of trn_act_beyond", offsetof(trn_act_table, negative.beyond), 3 },
        { "takes a number above 0", offsetof(trn_act_table, positive.end), 0 },
        { "takes a number above 0", offsetof(trn_act_table, positive.end), 0x7fc00000 },
        { "octaves end at 2^7", offsetof(trn_act_table, positive.end), 0x43000001 },
        { "buckets, at most", offsetof(trn_act_table, log2_buckets), 0x0b0b0b0b },
        { "with scaling 1 it takes", offsetof(trn_act_table, scaling), 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        trn_act_table t = trn_act_table_of(TRN_ACT_EXP);
        trn_error error;
        assert_int_equal(trn_act_table_check(&t, &error), TRN_OK);
        t.buckets = 861;
        assert_int_equal(trn_act_table_check(&t, &error), TRN_OK);
        memcpy((char *)&t + bad[i].offset, &bad[i].value, sizeof(int));
        float x = 1, y = 5;
        trn_activation_args a;
        memset(&a, 0, sizeof a);
        a.src = trn_tensor_2d(TRN_F32, &x, 1, 1);
        a.dst = trn_tensor_2d(TRN_F32, &y, 1, 1);
        a.table = &t;
        a.error = &error;
        assert_int_equal(trn_activation(&a), TRN_EINVAL);
        if (!strstr(error.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", error.text, bad[i].says);
        assert_true(y == 5);
    }
}

/* The library's own tables pass, of any scaling. */
static void tables_that_are_whole(void **state)
{
    (void)state;
    trn_error error;
    for (int op = 0; op < TRN_ACT_COUNT; op++) {
        const trn_act_table t = trn_act_table_of((trn_act)op);
        if (t.buckets > 0 && trn_act_table_check(&t, &error)) fail_msg("%s: %s", trn_act_name((trn_act)op), error.text);
    }
}

/* Just as many buckets as the side asks for, and one less: 0 to 1, [1, 1.25), [1.25, 1.5); and two octaves of a root,
 * one of a logarithm. */
static void buckets_that_are_needed(void **state)
{
    (void)state;
    static trn_act_bucket bucket[9];
    trn_act_table t;
    memset(&t, 0, sizeof t);
    t.bucket = bucket;
    t.octaves = 2;
    t.log2_buckets[0] = t.log2_buckets[1] = 2;
    t.symmetry = TRN_ACT_SYMMETRY_ODD;
    t.positive.end = 1.5f;
    for (t.buckets = 1; t.buckets <= 4; t.buckets++)
        assert_int_equal(trn_act_table_check(&t, NULL), t.buckets < 3 ? TRN_EINVAL : TRN_OK);
    t.scaling = TRN_ACT_SCALING_SQRT;
    for (t.buckets = 6; t.buckets <= 9; t.buckets++)
        assert_int_equal(trn_act_table_check(&t, NULL), t.buckets < 8 ? TRN_EINVAL : TRN_OK);
    t.scaling = TRN_ACT_SCALING_LOG;
    t.octaves = 1;
    for (t.buckets = 2; t.buckets <= 5; t.buckets++)
        assert_int_equal(trn_act_table_check(&t, NULL), t.buckets < 4 ? TRN_EINVAL : TRN_OK);
}

/* Coefficients of a scaling that registers hold: 0, and from 2^-40 to 2^24, the ends among them. Others are read from
 * the list, and whichever way it is, the bits are the list's. */
static void rows_that_fit(void **state)
{
    (void)state;
    static const struct {
        float c1;
        bool fits;
    } edge[] = { { 0.0f, true },    { 0x1p-40f, true },        { -0x1p-40f, true }, { 0x1.fffffep-41f, false },
                 { 0x1p24f, true }, { 0x1.000002p24f, false }, { -0x1p24f, true } };
    static float x[BLOCK], y[BLOCK], want[BLOCK];
    trn_act_bucket bucket[16];
    trn_act_table t = trn_act_table_of(TRN_ACT_LOG);
    trni_act_plan plan;
    trni_act_near rows;
    t.bucket = bucket;
    t.buckets = 16;
    t.log2_buckets[0] = 4;
    t.positive.first = 0;
    for (uint32_t i = 0; i < BLOCK; i++) x[i] = cases_float_of(i << 19);
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
        for (int j = 0; j < 16; j++) bucket[j] = (trn_act_bucket){ { 1.0f, edge[i].c1, 0.0f, 0.0f } };
        trni_act_plan_init(&plan, TRN_ACT_LOG, 0.0f, &t, TRN_ISA_PORTABLE);
        assert_int_equal(trni_act_near_scaling(&rows, &plan), edge[i].fits);
        evaluate(TRN_ACT_LOG, &t, TRN_ISA_PORTABLE, want, x, BLOCK);
        for (size_t k = 0; k < sizeof all_isas / sizeof *all_isas; k++) {
            if (!trn_isa_supported(all_isas[k])) continue;
            evaluate(TRN_ACT_LOG, &t, all_isas[k], y, x, BLOCK);
            assert_memory_equal(y, want, sizeof y);
        }
    }
}

static void same_bits(void **state)
{
    (void)state;
    static float x[BLOCK], y[BLOCK], want[BLOCK];
    uint64_t rng = 505;
    for (int k = 0; k < TRN_ACT_COUNT; k++)
        for (int round = 0; round < cases_rounds(12, 2000); round++) {
            const size_t n = round ? (size_t)cases_below(&rng, BLOCK) : 0;
            const int wild = round % 3 ? 1 + cases_below(&rng, 300) : 1; /* one in so many is any float */
            const bool positive = round % 2;
            for (size_t i = 0; i < BLOCK; i++) {
                const float some = ldexpf((float)(int32_t)cases_u32(&rng), -28 - cases_below(&rng, 12));
                x[i] = cases_one_in(&rng, wild) ? cases_float_of(cases_u32(&rng)) : positive ? fabsf(some) : some;
            }
            evaluate((trn_act)k, NULL, TRN_ISA_PORTABLE, want, x, n);
            for (size_t j = 0; j < sizeof all_isas / sizeof *all_isas; j++) {
                if (!trn_isa_supported(all_isas[j])) continue;
                memcpy(y, x, sizeof y);
                evaluate((trn_act)k, NULL, all_isas[j], y, y, n); /* in place */
                if (memcmp(y, want, n * sizeof *y))
                    fail_msg("%s: bits differ (%s)", trn_act_name((trn_act)k), trn_isa_text(all_isas[j]));
                if (memcmp(y + n, x + n, (BLOCK - n) * sizeof *y))
                    fail_msg("%s writes past its end", trn_act_name((trn_act)k));
            }
        }
}

/* ---- trn_numerics.rsqrt_buckets ---- */

static void rsqrt_buckets(void **state)
{
    (void)state;
    enum { N = 500 };
    static const int buckets[] = { 0, 4, 8 }, log2_of[] = { 2, 2, 3 };
    float x[N], y[N], want[N];
    for (int i = 0; i < N; i++) x[i] = 0.01f * (float)(i + 1);
    for (int k = 0; k < 3; k++) {
        const trn_act_table table = trni_act_power_of(TRN_ACT_RSQRT, log2_of[k]);
        const trn_numerics numerics = { .rsqrt_buckets = buckets[k] };
        const trn_activation_args args = { .dst = trn_tensor_2d(TRN_F32, y, 1, N),
                                           .src = trn_tensor_2d(TRN_F32, x, 1, N),
                                           .op = TRN_ACT_RSQRT,
                                           .generation = TRN_TRAINIUM2,
                                           .numerics = &numerics };
        assert_int_equal(trn_activation(&args), TRN_OK);
        evaluate(TRN_ACT_RSQRT, &table, TRN_ISA_PORTABLE, want, x, N);
        assert_memory_equal(y, want, sizeof y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bfloat16),
        cmocka_unit_test(published),
        cmocka_unit_test(published_with_bias),
        cmocka_unit_test(never_above_one),
        cmocka_unit_test(edges),
        cmocka_unit_test(exact_ones),
        cmocka_unit_test(errors),
        cmocka_unit_test(own_tables),
        cmocka_unit_test(refused_tables),
        cmocka_unit_test(tables_that_are_whole),
        cmocka_unit_test(buckets_that_are_needed),
        cmocka_unit_test(rows_that_fit),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(rsqrt_by_eight_buckets),
        cmocka_unit_test(rsqrt_buckets),
        cmocka_unit_test(every_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
