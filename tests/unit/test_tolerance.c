/* test_tolerance.c - trn_tolerance against products themselves: no element beyond worst, in any numerics.
 * SPDX-License-Identifier: MIT
 *
 * Exact sums are formed in integers: operands are drawn such that every product is a multiple of 2^-200 that fits 128
 * bits. Numerics are drawn from every field that moves a rounding. Then the tolerance must hold, and must be of use:
 * worst is no more than the textbook's bound. (sigma: test_tolerance_sigma.c.)
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "trnmath/trn_convert.h"
#include "trnmath/trn_tolerance.h"
#include "twin/cases.h"

enum { MOST = 40, DEEP = 700 };

__extension__ typedef __int128 wide;

static uint64_t rng = 71;
static float a[MOST * DEEP], b[DEEP * MOST], dst[MOST * MOST], before[MOST * MOST], worst[MOST * MOST],
    sigma[MOST * MOST];
static unsigned char a_code[4 * MOST * DEEP], b_code[4 * MOST * DEEP], dst_code[4 * MOST * MOST],
    a_scale[MOST * DEEP / 32], b_scale[MOST * DEEP / 32];

typedef struct problem {
    int64_t m, n, k;
    trn_format format, dst;
    trn_numerics numerics;
    trn_rounding rounding;
    bool accumulate, mx, double_row, positive;
} problem;

static double uniform(void) { return (double)(cases_next(&rng) >> 11) * 0x1p-53; }

static double normal(void) { return sqrt(-2 * log(uniform() + 0x1p-60)) * cos(6.283185307179586 * uniform()); }

static void cast(trn_format format, void *code, float *x, int64_t n)
{
    trn_error error;
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_1d(format, code, n);
    args.src = trn_tensor_1d(TRN_F32, x, n);
    args.error = &error;
    if (trn_convert(&args) != TRN_OK) fail_msg("%s", error.text);
    args.dst = trn_tensor_1d(TRN_F32, x, n);
    args.src = trn_tensor_1d(format, code, n);
    if (trn_convert(&args) != TRN_OK) fail_msg("%s", error.text);
}

/* Numbers as the array will read them: exponents within 2^-20 and 2^8, so that 128 bits hold any sum of products. */
static void draw(const problem *p, float *x, void *code, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double z = normal(), near = fabs(z) < 0x1p-12 ? 0 : z;
        x[i] = (float)(p->positive ? fabs(near) + 0.5 : near);
    }
    cast(p->format == TRN_F32 && p->numerics.fp32_mode == TRN_FP32_R ? TRN_TF32 : p->format, code, x, n);
}

/* A number as the array reads it. */
static double read_by_array(const problem *p, float x)
{
    const trn_format_info *f = trn_format_info_of(p->format);
    return p->numerics.flush_inputs && fabs((double)x) < ldexp(1, 1 - f->bias) ? 0 : (double)x;
}

/* Products are multiples of 2^-100. */
static double exact(const problem *p, int64_t m, int64_t n, wide *out)
{
    wide sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        int scale = 0;
        if (p->mx) scale = a_scale[m * (p->k / 32) + k / 32] + b_scale[n * (p->k / 32) + k / 32] - 254;
        const double x = ldexp(read_by_array(p, a[m * p->k + k]), 40), w = ldexp(read_by_array(p, b[k * p->n + n]), 40);
        assert_true(x == floor(x) && w == floor(w));
        sum += (wide)x * (wide)w << (20 + scale);
    }
    if (p->accumulate) sum += (wide)ldexp((double)before[m * p->n + n], 50) << 50;
    *out = sum;
    return ldexp((double)sum, -100);
}

/* result - exact, to binary64. */
static double distance(wide sum, double result)
{
    const wide there = (wide)ldexp(result, 60) << 40;
    return ldexp((double)(there - sum), -100);
}

static trn_matmul_args call_of(const problem *p, trn_error *error)
{
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(p->dst, dst_code, p->m, p->n);
    args.a = trn_tensor_2d(p->format, a_code, p->m, p->k);
    args.b = trn_tensor_2d(p->format, b_code, p->k, p->n);
    if (p->mx) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, p->m, p->k / 32);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, p->n, p->k / 32);
    }
    if (p->numerics.psum_format == TRN_BF16) args.generation = TRN_TRAINIUM3;
    args.accumulate = p->accumulate;
    args.double_row = p->double_row;
    args.rounding = p->rounding;
    args.seed = cases_next(&rng);
    args.numerics = &p->numerics;
    args.error = error;
    return args;
}

typedef struct found {
    double most_of_worst;
} found;

static void run(const problem *p, found *f, const char *what)
{
    trn_error error = { TRN_OK, "" };
    draw(p, a, a_code, p->m * p->k);
    draw(p, b, b_code, p->k * p->n);
    for (int64_t i = 0; i < MOST * DEEP / 32; i++) {
        a_scale[i] = (unsigned char)(127 - cases_below(&rng, 4));
        b_scale[i] = (unsigned char)(127 - cases_below(&rng, 4));
    }
    for (int64_t i = 0; i < p->m * p->n; i++) before[i] = (float)(normal() + 4);
    cast(p->dst, dst_code, before, p->m * p->n);
    const trn_matmul_args product = call_of(p, &error);
    trn_tolerance_args args;
    memset(&args, 0, sizeof args);
    args.matmul = &product;
    args.worst = trn_tensor_2d(TRN_F32, worst, p->m, p->n);
    args.sigma = trn_tensor_2d(TRN_F32, sigma, p->m, p->n);
    args.error = &error;
    if (trn_tolerance(&args) != TRN_OK || trn_matmul(&product) != TRN_OK) fail_msg("%s: %s", what, error.text);
    trn_convert_args back;
    memset(&back, 0, sizeof back);
    back.dst = trn_tensor_1d(TRN_F32, dst, p->m * p->n);
    back.src = trn_tensor_1d(p->dst, dst_code, p->m * p->n);
    assert_int_equal(trn_convert(&back), TRN_OK);
    for (int64_t i = 0; i < p->m * p->n; i++) {
        wide sum;
        const double right = exact(p, i / p->n, i % p->n, &sum), off = fabs(distance(sum, (double)dst[i]));
        if (!(off <= (double)worst[i]))
            fail_msg("%s, element %lld: %.9g is %.3g from %.9g; worst is %.3g", what, (long long)i, (double)dst[i], off,
                     right, (double)worst[i]);
        if (worst[i] <= FLT_MAX) f->most_of_worst = fmax(f->most_of_worst, off / (double)worst[i]);
    }
}

/* ---- every field that moves a rounding ---- */

static const trn_format operands[] = { TRN_F32, TRN_F32, TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2 };
static const trn_format results[] = { TRN_F32, TRN_F32, TRN_BF16, TRN_F16 };

static void numerics_at_random(problem *p)
{
    trn_numerics *n = &p->numerics;
    static const int chains[] = { 1, 2, 4, 8, 16 };
    *n = trn_numerics_default(TRN_TRAINIUM2);
    n->chains = chains[cases_below(&rng, 5)];
    n->k_tile = cases_one_in(&rng, 2) ? 128 : 1 + cases_below(&rng, 128);
    n->chain_layout = (trn_chain_layout)cases_below(&rng, 2);
    n->merge = (trn_merge)cases_below(&rng, 2);
    n->product = (trn_product)cases_one_in(&rng, 4);
    n->group = (trn_group)cases_below(&rng, 2);
    n->accumulator = (trn_accumulator)cases_below(&rng, cases_one_in(&rng, 2) ? 3 : TRN_ACCUMULATOR_PAIRWISE + 1);
    n->aligned_bytes = 4 << cases_below(&rng, 5);
    n->aligned_bits = 10 + cases_below(&rng, 31);
    n->aligned_result_bits = cases_one_in(&rng, 2) ? 24 : 8 + cases_below(&rng, 17);
    n->aligned_floor = cases_one_in(&rng, 2) ? 126 : 1 + cases_below(&rng, 40);
    n->aligned_rounding = cases_one_in(&rng, 2) ? TRN_NEAREST_EVEN : TRN_TOWARD_ZERO;
    n->accumulator_bits = 24 + (cases_one_in(&rng, 3) ? cases_below(&rng, 30) : 0);
    n->fp32_mode = (trn_fp32_mode)cases_below(&rng, 3);
    n->flush_inputs = cases_one_in(&rng, 4);
    n->flush_products = cases_one_in(&rng, 4);
    n->flush_sums = cases_one_in(&rng, 4);
    if (cases_one_in(&rng, 4)) {
        n->psum_format = TRN_BF16;
        n->psum_rounding = cases_one_in(&rng, 2) ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
    }
}

static void at_random(problem *p)
{
    memset(p, 0, sizeof *p);
    p->m = 1 + cases_below(&rng, 6);
    p->n = 1 + cases_below(&rng, 20);
    p->k = 1 + cases_below(&rng, cases_one_in(&rng, 3) ? DEEP : 60);
    p->format = operands[cases_below(&rng, 7)];
    p->dst = results[cases_below(&rng, 4)];
    p->rounding = (trn_rounding)cases_below(&rng, TRN_ROUNDING_COUNT);
    p->accumulate = cases_one_in(&rng, 3);
    p->positive = cases_one_in(&rng, 3);
    numerics_at_random(p);
    if (p->numerics.accumulator > TRN_ACCUMULATOR_EXACT && !cases_one_in(&rng, 8)) { /* by definition: slow */
        p->k = 1 + p->k % 90;
        p->n = 1 + p->n % 4;
    }
    p->double_row = trn_format_bits(p->format) == 8 && cases_one_in(&rng, 2);
    if (!cases_one_in(&rng, 8)) return;
    p->mx = true;
    p->double_row = false;
    p->format = TRN_F8_E4M3FN;
    p->k = 32 * (1 + cases_below(&rng, 18));
}

static void no_element_is_beyond_worst(void **state)
{
    (void)state;
    found all = { 0 };
    const int rounds = cases_rounds(4000, 40000);
    for (int i = 0; i < rounds; i++) {
        problem p;
        char what[TRN_NUMERICS_TEXT + 100], numerics[TRN_NUMERICS_TEXT];
        at_random(&p);
        if (trn_numerics_format(&p.numerics, numerics, sizeof numerics) != TRN_OK) fail_msg("numerics");
        snprintf(what, sizeof what, "product %d, %s to %s, %dx%dx%d, %s", i, trn_format_name(p.format),
                 trn_format_name(p.dst), (int)p.m, (int)p.n, (int)p.k, numerics);
        run(&p, &all, what);
    }
    /* A bound that nothing comes near would bound nothing. */
    if (!(all.most_of_worst > 0.5)) fail_msg("the largest distance is %.3g of worst", all.most_of_worst);
}

/* One element, DEPTH products x[0] w[0], x w, x w, ... in one chain: result - exact over worst. */
static double one_chain(const char *rules, float first, float x, float w, double right)
{
    enum { DEPTH = 128 };
    trn_error error = { TRN_OK, "" };
    trn_numerics numerics;
    trn_matmul_args product;
    trn_tolerance_args args;
    memset(&product, 0, sizeof product);
    memset(&args, 0, sizeof args);
    if (trn_numerics_parse(&numerics, rules) != TRN_OK) fail_msg("%s", rules);
    for (int k = 0; k < DEPTH; k++) {
        a[k] = k ? x : first;
        b[k] = w;
    }
    product.dst = trn_tensor_2d(TRN_F32, dst, 1, 1);
    product.a = trn_tensor_2d(TRN_F32, a, 1, DEPTH);
    product.b = trn_tensor_2d(TRN_F32, b, DEPTH, 1);
    product.numerics = &numerics;
    product.error = &error;
    args.matmul = &product;
    args.worst = trn_tensor_2d(TRN_F32, worst, 1, 1);
    args.error = &error;
    if (trn_tolerance(&args) != TRN_OK || trn_matmul(&product) != TRN_OK) fail_msg("%s: %s", rules, error.text);
    return fabs((double)dst[0] - right) / (double)worst[0];
}

/* Every step loses all that it can: worst must hold, and little more. */
static void a_chain_that_always_loses(void **state)
{
    (void)state;
    const float half = 0x1.fep-25f, whole = 0x1.fep-24f; /* of the distance of neighbours at 1, a little less */
    const double even = one_chain("chains=1", 1, half, 1, 1 + 127 * (double)half);
    const double cut = one_chain("chains=1,accumulator=toward_zero", 1, whole, 1, 1 + 127 * (double)whole);
    const double flushed = one_chain("flush_products=on", 0x1p-70f, 0x1p-70f, 0x1p-60f, 128 * 0x1p-130);
    const double lost = one_chain("trn2", 0x1p-80f, 0x1p-80f, 0x1p-70f, 128 * 0x1p-150);
    if (!(even > 0.9 && even <= 1 && cut > 0.9 && cut <= 1 && flushed <= 1 && flushed > 0 && lost <= 1 && lost > 0))
        fail_msg("of worst: %.3f, %.3f, %.3g, %.3g", even, cut, flushed, lost);
}

/* Worst and sigma of two random rows and columns, a and b divided by 2^down; into worst and sigma. */
static void tolerance_of(const char *rules, int down)
{
    enum { SIDE = 2, DEPTH = 150 };
    trn_error error = { TRN_OK, "" };
    trn_numerics numerics;
    trn_matmul_args product;
    trn_tolerance_args args;
    memset(&product, 0, sizeof product);
    memset(&args, 0, sizeof args);
    if (trn_numerics_parse(&numerics, rules) != TRN_OK) fail_msg("%s", rules);
    if (numerics.psum_format == TRN_BF16) product.generation = TRN_TRAINIUM3;
    rng = 5;
    for (int i = 0; i < SIDE * DEPTH; i++) {
        a[i] = ldexpf((float)normal(), -down);
        b[i] = ldexpf((float)normal(), -down);
    }
    product.dst = trn_tensor_2d(TRN_F32, dst, SIDE, SIDE);
    product.a = trn_tensor_2d(TRN_F32, a, SIDE, DEPTH);
    product.b = trn_tensor_2d(TRN_F32, b, DEPTH, SIDE);
    product.numerics = &numerics;
    product.error = &error;
    args.matmul = &product;
    args.worst = trn_tensor_2d(TRN_F32, worst, SIDE, SIDE);
    args.sigma = trn_tensor_2d(TRN_F32, sigma, SIDE, SIDE);
    args.error = &error;
    if (trn_tolerance(&args) != TRN_OK) fail_msg("%s: %s", rules, error.text);
}

/* A power of two in front of the operands is one in front of the tolerance, far from the ends of the formats. */
static void tolerances_have_no_size_of_their_own(void **state)
{
    (void)state;
    static const char *const rules[] = { "trn2",
                                         "chains=1",
                                         "chains=1,accumulator=toward_zero",
                                         "accumulator=aligned",
                                         "accumulator=pairwise",
                                         "psum_format=bfloat16",
                                         "accumulator=aligned_late" };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        float one[4], other[4];
        tolerance_of(rules[i], 0);
        memcpy(one, worst, sizeof one), memcpy(other, sigma, sizeof other);
        tolerance_of(rules[i], 12);
        for (int k = 0; k < 4; k++) {
            const double of_worst = ldexp((double)worst[k], 24) / (double)one[k];
            const double of_sigma = ldexp((double)sigma[k], 24) / (double)other[k];
            if (!(one[k] > 0 && fabs(of_worst - 1) < 1e-5 && fabs(of_sigma - 1) < 1e-5))
                fail_msg("%s: worst %.9g, sigma %.9g of what they were", rules[i], of_worst, of_sigma);
        }
    }
}

/* ---- refusals, and what has no tolerance ---- */

static void refuse(trn_tolerance_args args, trn_status status, const char *words)
{
    trn_error error = { TRN_OK, "" };
    float kept[4];
    memcpy(kept, worst, sizeof kept);
    args.error = &error;
    const trn_status got = trn_tolerance(&args);
    if (got != status || !strstr(error.text, words)) fail_msg("status %d, \"%s\", not %s", (int)got, error.text, words);
    assert_memory_equal(kept, worst, sizeof kept);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    trn_matmul_args product;
    trn_tolerance_args args;
    memset(&product, 0, sizeof product);
    memset(&args, 0, sizeof args);
    product.dst = trn_tensor_2d(TRN_F32, dst, 2, 2);
    product.a = trn_tensor_2d(TRN_F32, a, 2, 8);
    product.b = trn_tensor_2d(TRN_F32, b, 8, 2);
    args.worst = trn_tensor_2d(TRN_F32, worst, 2, 2);
    refuse(args, TRN_EINVAL, "matmul is null");
    args.matmul = &product;
    args.worst.shape[1] = 3;
    refuse(args, TRN_ESHAPE, "worst is [2, 3]");
    args.worst = trn_tensor_2d(TRN_BF16, worst, 2, 2);
    refuse(args, TRN_EFORMAT, "worst is bfloat16");
    args.worst = trn_tensor_2d(TRN_F32, a, 2, 2);
    refuse(args, TRN_EINVAL, "worst overlaps a");
    args.worst = args.sigma = trn_tensor_2d(TRN_F32, worst, 2, 2);
    refuse(args, TRN_EINVAL, "worst overlaps sigma");
    memset(&args.sigma, 0, sizeof args.sigma);
    product.b.shape[0] = 7;
    refuse(args, TRN_ESHAPE, "has K");
    product.b.shape[0] = 8;
    product.a = trn_tensor_2d(TRN_I8, a, 2, 8);
    product.b = trn_tensor_2d(TRN_I8, b, 8, 2);
    product.dst = trn_tensor_2d(TRN_I32, dst, 2, 2);
    product.generation = TRN_TRAINIUM1;
    refuse(args, TRN_EFORMAT, "int8");
    assert_int_equal(trn_tolerance(NULL), TRN_EINVAL);
}

static void overflow_has_no_tolerance(void **state)
{
    (void)state;
    trn_matmul_args product;
    trn_tolerance_args args;
    memset(&product, 0, sizeof product);
    memset(&args, 0, sizeof args);
    for (int i = 0; i < 8; i++) a[i] = b[i] = i == 3 ? 300.0f : 0.0f;
    product.dst = trn_tensor_2d(TRN_F16, dst, 1, 1);
    product.a = trn_tensor_2d(TRN_F32, a, 1, 8);
    product.b = trn_tensor_2d(TRN_F32, b, 8, 1);
    args.matmul = &product;
    args.worst = trn_tensor_2d(TRN_F32, worst, 1, 1);
    args.sigma = trn_tensor_2d(TRN_F32, sigma, 1, 1);
    assert_int_equal(trn_tolerance(&args), TRN_OK); /* 90000, and F16 ends at 65504 */
    assert_true(isinf(worst[0]) && isinf(sigma[0]));
    a[3] = NAN;
    product.dst.format = TRN_F32;
    assert_int_equal(trn_tolerance(&args), TRN_OK);
    assert_true(isinf(worst[0]) && isinf(sigma[0]));
    a[3] = 2;
    b[3] = 3;
    product.a.shape[1] = product.b.shape[0] = 0;
    assert_int_equal(trn_tolerance(&args), TRN_OK);
    assert_true(worst[0] == 0 && sigma[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_element_is_beyond_worst),
        cmocka_unit_test(a_chain_that_always_loses),
        cmocka_unit_test(tolerances_have_no_size_of_their_own),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(overflow_has_no_tolerance),
    };
    return cmocka_run_group_tests_name("tolerance", tests, NULL, NULL);
}
