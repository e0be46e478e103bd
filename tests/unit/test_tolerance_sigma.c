/* test_tolerance_sigma.c - trn_tolerance's sigma against products themselves: every preset, kinds of data, sizes.
 * SPDX-License-Identifier: MIT
 *
 * Each line of the grid multiplies data of one kind in one numerics, takes the distances from sums in twice binary64's
 * precision, and divides them by sigma: their root mean square is near 1, hardly one is beyond 3, none beyond worst.
 * Level 1 takes a slice of the grid; level 2 all of it, printed as a table (the page's figures come from there).
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

enum { MOST_M = 16, MOST_N = 24, DEEP = 4096 };

static uint64_t rng = 2029;
static float a[MOST_M * DEEP], b[DEEP * MOST_N], dst[MOST_M * MOST_N], worst[MOST_M * MOST_N], sigma[MOST_M * MOST_N];
static unsigned char a_code[4 * MOST_M * DEEP], b_code[4 * DEEP * MOST_N], dst_code[4 * MOST_M * MOST_N],
    a_scale[MOST_M * DEEP / 32], b_scale[MOST_N * DEEP / 32];

/* ---- kinds of data ---- */

static double uniform(void) { return (double)(cases_next(&rng) >> 11) * 0x1p-53; }
static double normal(void) { return sqrt(-2 * log(uniform() + 0x1p-60)) * cos(6.283185307179586 * uniform()); }
static double even(void) { return 2 * uniform() - 1; }
static double positive(void) { return uniform(); }
static double relu(void) { return fmax(normal(), 0); }
static double sparse(void) { return uniform() < 0.9 ? 0 : normal(); }
static double lognormal(void) { return exp(normal()); }
static double laplace(void) { return (cases_one_in(&rng, 2) ? 1 : -1) * -log(uniform() + 0x1p-60); }
static double integers(void) { return cases_below(&rng, 17) - 8; }
static double two_values(void) { return cases_one_in(&rng, 2) ? 0.1 : -0.3; }
static double outliers(void) { return normal() * (cases_one_in(&rng, 200) ? 50 : 0.02); }
static double one_huge(void) { return normal() * (cases_one_in(&rng, 2000) ? 1e4 : 1); }
static double tenths(void) { return 0.1; }

typedef struct kind {
    const char *name;
    double (*a)(void), (*b)(void);
} kind;

/* Of the last two, whose numbers are few or one, sums make the same error again and again: no independent roundings. */
static const kind kinds[] = {
    { "normal", normal, normal },       { "uniform", even, even },
    { "positive", positive, positive }, { "relu", relu, normal },
    { "sparse", sparse, normal },       { "sparse^2", sparse, sparse },
    { "lognormal", lognormal, normal }, { "lognormal+", lognormal, lognormal },
    { "laplace", laplace, laplace },    { "integers", integers, integers },
    { "outliers", normal, outliers },   { "huge", one_huge, normal },
    { "two", two_values, normal },      { "two^2", two_values, two_values },
    { "tenths", tenths, positive },
};
enum { KINDS = sizeof kinds / sizeof kinds[0], ALIKE = 2, USUAL = 5 }; /* ALIKE: at the end; USUAL: at the start */

/* ---- one line ---- */

typedef struct line {
    const char *numerics;
    trn_format format, dst;
    trn_rounding rounding;
    bool mx, double_row;
    int m, n, k;
} line;

typedef struct found {
    double squares, beyond, count, exact, most_of_worst; /* of distance / sigma; sigma and distance are 0: exact */
} found;

static void cast(trn_format format, void *code, float *x, int64_t n)
{
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_1d(format, code, n);
    args.src = trn_tensor_1d(TRN_F32, x, n);
    assert_int_equal(trn_convert(&args), TRN_OK);
    args.dst = trn_tensor_1d(TRN_F32, x, n);
    args.src = trn_tensor_1d(format, code, n);
    assert_int_equal(trn_convert(&args), TRN_OK);
}

/* x as read by the array, over 2^(scale - 127). */
static double number(const line *l, const trn_numerics *n, trn_format format, float x)
{
    const trn_format_info *f = trn_format_info_of(format);
    const int shift = n->fp8_bias && f->bits == 8 && !l->mx ? f->bias - n->fp8_bias : 0;
    if (n->flush_inputs && fabs((double)x) < ldexp(1, 1 - f->bias)) return 0;
    return ldexp((double)x, shift);
}

/* The sum of products as high + low, each addition's error caught by Knuth's two-sum. */
static void exact(const line *l, const trn_numerics *numerics, int m, int n, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int k = 0; k < l->k; k++) {
        const int scale = l->mx ? a_scale[m * (l->k / 32) + k / 32] + b_scale[n * (l->k / 32) + k / 32] - 254 : 0;
        const double p = ldexp(
            number(l, numerics, l->format, a[m * l->k + k]) * number(l, numerics, l->format, b[k * l->n + n]), scale);
        const double next = sum[0] + p, back = next - sum[0];
        sum[1] += (sum[0] - (next - back)) + (p - back);
        sum[0] = next;
    }
}

static void draw(const line *l, const kind *d, const trn_numerics *n)
{
    const trn_format format = l->format == TRN_F32 && n->fp32_mode == TRN_FP32_R ? TRN_TF32 : l->format;
    for (int i = 0; i < l->m * l->k; i++) a[i] = (float)d->a();
    for (int i = 0; i < l->k * l->n; i++) b[i] = (float)d->b();
    cast(format, a_code, a, (int64_t)l->m * l->k);
    cast(format, b_code, b, (int64_t)l->k * l->n);
    for (int i = 0; i < l->m * l->k / 32; i++) a_scale[i] = (unsigned char)(127 - cases_below(&rng, 4));
    for (int i = 0; i < l->n * l->k / 32; i++) b_scale[i] = (unsigned char)(127 - cases_below(&rng, 4));
}

static void measure(const line *l, const kind *d, found *f)
{
    trn_error error = { TRN_OK, "" };
    trn_numerics numerics;
    trn_matmul_args product;
    trn_tolerance_args args;
    trn_convert_args back;
    if (trn_numerics_parse(&numerics, l->numerics) != TRN_OK) fail_msg("%s", l->numerics);
    draw(l, d, &numerics);
    memset(&product, 0, sizeof product);
    memset(&args, 0, sizeof args);
    memset(&back, 0, sizeof back);
    product.dst = trn_tensor_2d(l->dst, dst_code, l->m, l->n);
    product.a = trn_tensor_2d(l->format, a_code, l->m, l->k);
    product.b = trn_tensor_2d(l->format, b_code, l->k, l->n);
    if (l->mx) {
        product.a_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, l->m, l->k / 32);
        product.b_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, l->n, l->k / 32);
    }
    if (numerics.psum_format == TRN_BF16) product.generation = TRN_TRAINIUM3;
    product.double_row = l->double_row;
    product.rounding = l->rounding;
    product.seed = cases_next(&rng);
    product.numerics = &numerics;
    args.error = product.error = &error;
    args.matmul = &product;
    args.worst = trn_tensor_2d(TRN_F32, worst, l->m, l->n);
    args.sigma = trn_tensor_2d(TRN_F32, sigma, l->m, l->n);
    if (trn_tolerance(&args) != TRN_OK || trn_matmul(&product) != TRN_OK) fail_msg("%s: %s", l->numerics, error.text);
    back.dst = trn_tensor_1d(TRN_F32, dst, (int64_t)l->m * l->n);
    back.src = trn_tensor_1d(l->dst, dst_code, (int64_t)l->m * l->n);
    assert_int_equal(trn_convert(&back), TRN_OK);
    for (int i = 0; i < l->m * l->n; i++) {
        double sum[2];
        exact(l, &numerics, i / l->n, i % l->n, sum);
        const double off = fabs(((double)dst[i] - sum[0]) - sum[1]), z = off / (double)sigma[i];
        if (!(off <= (double)worst[i]) && worst[i] <= FLT_MAX)
            fail_msg("%s, %s, %s: %.9g is %.3g from %.9g; worst is %.3g", l->numerics, trn_format_name(l->format),
                     d->name, (double)dst[i], off, sum[0], (double)worst[i]);
        if (worst[i] > FLT_MAX) continue;
        f->most_of_worst = fmax(f->most_of_worst, off / (double)worst[i]);
        f->exact += off == 0 && sigma[i] == 0;
        if (off == 0 && sigma[i] == 0) continue;
        f->squares += z * z;
        f->beyond += z > 3;
        f->count++;
    }
}

/* ---- the grid ---- */

typedef struct operand {
    const char *name;
    trn_format format;
    bool mx, double_row;
} operand;

static const operand operands[] = {
    { "F32", TRN_F32, false, false },        { "BF16", TRN_BF16, false, false },
    { "F16", TRN_F16, false, false },        { "TF32", TRN_TF32, false, false },
    { "E4M3", TRN_F8_E4M3, false, false },   { "E5M2", TRN_F8_E5M2, false, false },
    { "E5M2 x2", TRN_F8_E5M2, false, true }, { "MX E4M3", TRN_F8_E4M3FN, true, false },
    { "MX E5M2", TRN_F8_E5M2, true, false }, { "MX FP4", TRN_F4_E2M1, true, false },
};
enum { OPERANDS = sizeof operands / sizeof operands[0] };

/* Beside the presets. */
static const char *const others[] = {
    "accumulator=toward_zero",
    "fp32_mode=split",
    "fp32_mode=fp32r",
    "psum_format=bfloat16",
    "psum_format=bfloat16,psum_rounding=stochastic",
    "chains=1,accumulator_bits=26",
    "chains=16,k_tile=32",
    "chains=8,k_tile=16,merge=pairwise",
    "group=exact",
    "product=bf16,accumulator=toward_zero",
    "product=bf16,accumulator=exact",
    "flush_inputs=on,flush_products=on,flush_sums=on",
    "nv_hopper,aligned_rounding=nearest_even",
    "nv_ampere,psum_format=bfloat16",
};
enum { OTHERS = sizeof others / sizeof others[0] };

static const char *numerics_at(int i)
{
    const char *const preset = trn_numerics_preset(i, NULL, NULL);
    int presets = 0;
    while (trn_numerics_preset(presets, NULL, NULL)) presets++;
    return preset ? preset : i - presets < OTHERS ? others[i - presets] : NULL;
}

/* Few elements round at all where operands are short: a handful of errors says nothing about their spread. */
enum { ENOUGH = 100 };

static void hold(const line *l, const char *name, const kind *d, const found *f)
{
    const double ratio = sqrt(f->squares / f->count), beyond = f->beyond / f->count;
    if (f->count < ENOUGH) return;
    if (!(ratio >= 0.8 && ratio <= 1.25 && f->beyond <= 0.01 * f->count + 3))
        fail_msg("%s, %s to %s, K %d, %s: %.3f of sigma, %.4f of %.0f beyond three", l->numerics, name,
                 trn_format_name(l->dst), l->k, d->name, ratio, beyond, f->count);
}

/* One line of the table: a ratio for each kind; a dash where all is exact. */
static void one_line(line l, const operand *o, int count, int most)
{
    char text[16 * KINDS] = "";
    l.format = o->format;
    l.mx = o->mx;
    l.double_row = o->double_row;
    for (int d = 0; d < count; d++) {
        found f = { 0, 0, 0, 0, 0 };
        measure(&l, &kinds[d], &f);
        if (d < most) hold(&l, o->name, &kinds[d], &f);
        if (f.count > 0)
            snprintf(text + strlen(text), 16, " %5.2f", sqrt(f.squares / f.count));
        else
            snprintf(text + strlen(text), 16, "     -");
    }
    if (cases_level() > 1)
        print_message("%-46s %-8s %-8s %4d%s\n", l.numerics, o->name, trn_format_name(l.dst), l.k, text);
}

/* Level 1: the usual kinds and operands, the long K a few times. Level 2: everything. */
static void sigma_is_what_is_found(void **state)
{
    (void)state;
    const bool all = cases_level() > 1;
    const char *numerics;
    for (int i = 0; (numerics = numerics_at(i)) != NULL; i++)
        for (int o = 0; o < (all ? OPERANDS : 2); o++)
            for (int to = 0; to < (all ? 2 : 1); to++) {
                line l = { numerics, TRN_F32, to ? TRN_BF16 : TRN_F32, TRN_NEAREST_EVEN, false, false, 8, 24, 512 };
                if (!all) l.m = 6;
                one_line(l, &operands[o], all ? KINDS : USUAL, all ? KINDS - ALIKE : USUAL);
                l.k = 4096;
                if (!all) l.m = 4;
                if (all || (i % 4 == 0 && o == 1)) one_line(l, &operands[o], all ? KINDS : 3, all ? KINDS - ALIKE : 3);
            }
}

/* The roundings of the last cast. Of positive data all sums of E5M2 would lie between the same two neighbours. */
static void casts_have_their_share(void **state)
{
    (void)state;
    static const trn_format to[] = { TRN_BF16, TRN_F16, TRN_F8_E5M2 };
    for (int rounding = 0; rounding < TRN_ROUNDING_COUNT; rounding++)
        for (int t = 0; t < 3; t++)
            for (int o = 0; o < OPERANDS; o += 3) {
                const line l = { "trn2", TRN_F32, to[t], (trn_rounding)rounding, false, false, 8, 24, 256 };
                one_line(l, &operands[o], to[t] == TRN_F8_E5M2 ? 2 : 3, to[t] == TRN_F8_E5M2 ? 2 : 3);
            }
}

/* Data that sums hold without a rounding have no error, and sigma says so. */
static void exact_sums_have_no_sigma(void **state)
{
    (void)state;
    static const char *const numerics[] = { "trn2",      "bf16_products", "accumulator=toward_zero",
                                            "nv_hopper", "amd_cdna3",     "amd_cdna2" };
    for (size_t i = 0; i < sizeof numerics / sizeof numerics[0]; i++) {
        found f = { 0, 0, 0, 0, 0 };
        const line l = { numerics[i], TRN_BF16, TRN_F32, TRN_NEAREST_EVEN, false, false, 8, 24, 512 };
        for (int d = 0; d < KINDS; d++)
            if (strcmp(kinds[d].name, "integers") == 0) measure(&l, &kinds[d], &f);
        if (f.count > 0 || f.exact < 1) fail_msg("%s: %.0f elements of integers have a sigma", numerics[i], f.count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigma_is_what_is_found),
        cmocka_unit_test(casts_have_their_share),
        cmocka_unit_test(exact_sums_have_no_sigma),
    };
    return cmocka_run_group_tests_name("tolerance_sigma", tests, NULL, NULL);
}
