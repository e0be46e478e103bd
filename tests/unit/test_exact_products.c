/* test_exact_products.c - hosts without a fused multiply-add take two steps where no product needs one: same bits.
 * SPDX-License-Identifier: MIT
 *
 * Operands lie at the edges of that rule (array/operand_range.h): products of 2^-126 and just below, of 2^127 and
 * beyond, subnormals, infinities, NaNs, signed zeros, significands one bit too long. The answer is fmaf's, four chains
 * of a tile of 128 and their merge, written out below.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"
#include "twin/host.h"

static uint64_t rng = 11;
static bool zeros; /* among the numbers */

enum { M = 11, N = 70, K = 300, TILE = 128, CHAINS = 4 };

static float a[M * K], b[K * N], dst[M * N];
static uint32_t want[M * N];

/* Binary exponents in [least, most], significands of `digits` bits; now and then what no exponent describes. */
typedef struct kind {
    int least, most, digits, odd; /* odd: one number in so many is something else, 0 = none */
} kind;

static float number(const kind *how)
{
    static const uint32_t others[] = { 0,           0x80000000u, 0x00010000u, 0x80400000u, 0x00000001u,
                                       0x00800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f7f0000u };
    if (how->odd && cases_one_in(&rng, how->odd)) return cases_float_of(others[cases_below(&rng, 10)]);
    if (zeros && cases_one_in(&rng, 9)) return cases_float_of(cases_one_in(&rng, 2) ? 0x80000000u : 0);
    const int exponent = how->least + cases_below(&rng, how->most - how->least + 1);
    const uint32_t fraction = cases_u32(&rng) & 0x7fffffu & ~((1u << (24 - how->digits)) - 1);
    return cases_float_of((uint32_t)(exponent + 127) << 23 | fraction | (cases_u32(&rng) & 0x80000000u));
}

static uint32_t canonical(float x) { return x != x ? 0x7fc00000u : cases_bits_of(x); }

/* Also counts the multiply-adds that two roundings would have spoilt. */
static uint32_t element(int m, int n, int ks, int ns, int depth, int *spoilt)
{
    float psum = 0;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        float s[CHAINS] = { 0 };
        for (int k = k0; k < depth && k < k0 + TILE; k++) {
            const float x = a[m * K + k], w = b[k * ks + n * ns], old = s[(k - k0) % CHAINS];
            const volatile float product = x * w, sum = old + product;
            const float fused = fmaf(x, w, old);
            s[(k - k0) % CHAINS] = fused;
            *spoilt += canonical(fused) != canonical(sum);
        }
        const float t = ((s[0] + s[1]) + s[2]) + s[3];
        psum = k0 ? psum + t : t;
    }
    return canonical(psum);
}

static void check(const kind *x, const kind *w, const char *what, int *spoilt)
{
    const int m = 1 + cases_below(&rng, M), n = 1 + cases_below(&rng, N), k = 1 + cases_below(&rng, K);
    const bool turned = cases_one_in(&rng, 3); /* columns of b stand in a row */
    const bool halves = x->digits <= 8 && w->digits <= 8;
    const trn_format format = halves ? TRN_BF16 : TRN_F32;
    static uint16_t a16[M * K], b16[K * N];
    trn_error error;
    zeros = cases_one_in(&rng, 2);
    for (int i = 0; i < M * K; i++) a16[i] = (uint16_t)(cases_bits_of(a[i] = number(x)) >> 16);
    for (int i = 0; i < K * N; i++) b16[i] = (uint16_t)(cases_bits_of(b[i] = number(w)) >> 16);
    for (int i = 0; halves && i < M * K; i++) a[i] = cases_float_of((uint32_t)a16[i] << 16);
    for (int i = 0; halves && i < K * N; i++) b[i] = cases_float_of((uint32_t)b16[i] << 16);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) want[i * n + j] = element(i, j, turned ? 1 : N, turned ? K : 1, k, spoilt);
    trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, dst, m, n), .error = &error };
    args.a = trn_tensor_2d(format, halves ? (void *)a16 : (void *)a, m, k);
    args.a.stride[0] = K;
    args.a.stride[1] = 1;
    args.b = trn_tensor_2d(format, halves ? (void *)b16 : (void *)b, k, n);
    args.b.stride[0] = turned ? 1 : N;
    args.b.stride[1] = turned ? K : 1;
    for (size_t isa = 0; isa < sizeof all_isas / sizeof all_isas[0]; isa++) {
        if (!trn_isa_supported(args.isa = all_isas[isa])) continue;
        memset(dst, 0x5a, sizeof dst);
        if (trn_matmul(&args) != TRN_OK) fail_msg("%s: %s", what, error.text);
        for (int i = 0; i < m * n; i++)
            if (cases_bits_of(dst[i]) != want[i])
                fail_msg("%s, %s, %d x %d x %d: element %d is %08x, not %08x", what, trn_isa_text(args.isa), m, n, k, i,
                         (unsigned)cases_bits_of(dst[i]), (unsigned)want[i]);
    }
}

typedef struct edge {
    const char *what;
    kind a, b;
    bool tempting; /* two roundings would be wrong somewhere */
} edge;

static const edge edges[] = {
    { "about one", { -3, 3, 8, 0 }, { -3, 3, 8, 0 }, false },
    { "products of 2^-126", { -63, -60, 8, 0 }, { -63, -60, 8, 0 }, false },
    { "products below 2^-126", { -64, -60, 8, 0 }, { -63, -60, 8, 0 }, false },
    { "products of 2^-140 and less", { -76, -70, 8, 0 }, { -72, -66, 8, 0 }, true },
    { "subnormals", { -126, -100, 8, 4 }, { -20, 30, 8, 0 }, false },
    { "products below 2^128", { 60, 63, 8, 0 }, { 60, 63, 8, 0 }, false },
    { "products from 2^127 to 2^129", { 63, 63, 8, 0 }, { 64, 64, 8, 0 }, true },
    { "products of 2^128 and more", { 60, 64, 8, 0 }, { 60, 64, 8, 0 }, false },
    { "infinities and NaNs", { -3, 3, 8, 300 }, { -3, 3, 8, 3000 }, false },
    { "all exponents", { -126, 127, 8, 9 }, { -126, 127, 8, 9 }, false },
    { "24 bits", { -2, 2, 12, 0 }, { -2, 2, 12, 0 }, false },
    { "24 bits below 2^-126", { -64, -60, 12, 0 }, { -66, -60, 12, 0 }, true },
    { "24 bits just below 2^-126", { -64, -64, 12, 0 }, { -64, -64, 12, 0 }, true },
    { "25 bits", { -2, 2, 13, 0 }, { -2, 2, 12, 0 }, true },
    { "bf16 times 16 bits", { -2, 2, 8, 0 }, { -2, 2, 16, 0 }, false },
    { "bf16 times 17 bits", { -2, 2, 8, 0 }, { -2, 2, 17, 0 }, true },
    { "f32", { -2, 2, 24, 0 }, { -2, 2, 24, 0 }, true },
};

static void at_the_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        int spoilt = 0;
        for (int round = 0; round < cases_rounds(15, 400); round++)
            check(&edges[i].a, &edges[i].b, edges[i].what, &spoilt);
        if (edges[i].tempting) assert_true(spoilt > 0);
    }
}

/* One number that breaks the rule, in any tile, of either operand, among many that keep it. */
static void one_among_many(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(60, 2000); round++) {
        kind x = { -3, 3, 8, 0 }, w = { -3, 3, 8, 0 };
        int spoilt = 0;
        *(cases_one_in(&rng, 2) ? &x.odd : &w.odd) = 3000;
        check(&x, &w, "one among many", &spoilt);
    }
}

/* Exponents that are uniform between random bounds. */
static void anywhere(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(150, 5000); round++) {
        int spoilt = 0;
        kind way[2];
        for (int i = 0; i < 2; i++) {
            way[i].least = -126 + cases_below(&rng, 250);
            way[i].most = way[i].least + cases_below(&rng, 1 + (127 - way[i].least > 12 ? 12 : 127 - way[i].least));
            way[i].digits = cases_one_in(&rng, 4) ? 9 + cases_below(&rng, 16) : 1 + cases_below(&rng, 8);
            way[i].odd = cases_one_in(&rng, 4) ? 500 : 0;
        }
        if (cases_one_in(&rng, 2)) { /* around the lower edge */
            way[1].least = -126 - way[0].least + cases_below(&rng, 5) - 3;
            if (way[1].least < -126 || way[1].least > 120) way[1].least = 0;
            way[1].most = way[1].least + 3;
        }
        check(&way[0], &way[1], "anywhere", &spoilt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_edges),
        cmocka_unit_test(one_among_many),
        cmocka_unit_test(anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
