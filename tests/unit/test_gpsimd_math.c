/* test_gpsimd_math.c - power and rsqrt: every special case, exact integers, and MPFR.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#if defined(HAVE_MPFR)
#include <mpfr.h>
#endif

#include "trnmath/engine/gpsimd_math.h"
#include "twin/cases.h"

__extension__ typedef unsigned __int128 wide;

/* ---- rsqrt: x = X 2^a, r = M 2^b; nearest where (M - 1/2)^2 and (M + 1/2)^2, times X 2^(a + 2 b), enclose 1 ---- */

/* n^2 X < 2^exponent? (It is never equal for odd n, n > 1.) */
static bool square_below(uint64_t n, uint32_t x, int exponent) { return (wide)n * n * x < (wide)1 << exponent; }

static bool rsqrt_is_nearest(float x, float r)
{
    const uint32_t u = cases_bits_of(x), v = cases_bits_of(r);
    if (u >> 23 == 0 || v >> 23 == 0 || v >> 23 >= 255) return false; /* normal numbers only */
    const uint32_t X = (u & 0x7fffffu) | 0x800000u, M = (v & 0x7fffffu) | 0x800000u;
    const int a = (int)(u >> 23) - 150, b = (int)(v >> 23) - 150, shift = -(a + 2 * b);
    const bool step = M == 0x800000u; /* the next number below is half as far away */
    const bool low =
        step ? square_below(4 * (uint64_t)M - 1, X, shift + 4) : square_below(2 * (uint64_t)M - 1, X, shift + 2);
    return low && !square_below(2 * (uint64_t)M + 1, X, shift + 2);
}

/* Two octaves stand for all: 4^k only moves the exponents of x and r. */
static void rsqrt_of_every_mantissa(void **unused)
{
    (void)unused;
    const uint32_t stride = (uint32_t)cases_rounds(3, 3) == 3 ? 1 : 7;
    for (uint32_t u = 0x3f800000u; u < 0x40800000u; u += stride) {
        const float x = cases_float_of(u), r = trni_rsqrt(x);
        if (!rsqrt_is_nearest(x, r)) fail_msg("rsqrt(%a) = %a", (double)x, (double)r);
    }
}

static void rsqrt_of_other_octaves(void **unused)
{
    uint64_t rng = 71;
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        const uint32_t u = 0x00800000u + cases_u32(&rng) % 0x7f000000u;
        const float x = cases_float_of(u), r = trni_rsqrt(x);
        if (!rsqrt_is_nearest(x, r)) fail_msg("rsqrt(%a) = %a", (double)x, (double)r);
    }
    for (int i = 1; i < 100000; i++) { /* subnormals: as 2^24 times themselves */
        const uint32_t u = i < 1000 ? (uint32_t)i : 1 + cases_u32(&rng) % 0x7fffffu;
        const float x = cases_float_of(u);
        assert_int_equal(cases_bits_of(trni_rsqrt(x)), cases_bits_of(trni_rsqrt(x * 0x1p24f) * 0x1p12f));
    }
}

typedef struct special {
    uint32_t x, y, expected;
} special;

enum {
    ONE = 0x3f800000,
    TWO = 0x40000000,
    THREE = 0x40400000,
    HALF = 0x3f000000,
    INF = 0x7f800000,
    QNAN = 0x7fc00000,
    BIG_EVEN = 0x4b800000,
    /* 2^24 */ BIG_ODD = 0x4b7fffff,
    /* 2^24 - 1 */ MAX = 0x7f7fffff,
    TINY = 1
};
#define MINUS 0x80000000u

static void rsqrt_of_special_numbers(void **unused)
{
    static const special row[] = {
        { 0, 0, INF },
        { MINUS, 0, MINUS | INF },
        { INF, 0, 0 },
        { MINUS | INF, 0, QNAN },
        { MINUS | ONE, 0, QNAN },
        { MINUS | TINY, 0, QNAN },
        { QNAN, 0, QNAN },
        { 0xffffffff, 0, QNAN },
        { 0x7f800001, 0, QNAN },
        { ONE, 0, ONE },
        { 0x40800000, 0, HALF },
        { TINY, 0, 0x64b504f3 /* 2^74.5 */ },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        assert_int_equal(cases_bits_of(trni_rsqrt(cases_float_of(row[i].x))), row[i].expected);
}

/* ---- power ---- */

static uint32_t power(uint32_t x, uint32_t y)
{
    return cases_bits_of(trni_power(cases_float_of(x), cases_float_of(y)));
}

static void power_of_special_numbers(void **unused)
{
    static const special row[] = {
        { QNAN, 0, ONE },
        { QNAN, MINUS, ONE },
        { ONE, QNAN, ONE },
        { ONE, INF, ONE },
        { INF, 0, ONE },
        { 0, 0, ONE },
        { QNAN, ONE, QNAN },
        { TWO, QNAN, QNAN },
        { 0xff800001, TWO, QNAN },
        { MINUS | ONE, QNAN, QNAN },
        { 0, QNAN, QNAN },
        { MINUS | ONE, INF, ONE },
        { MINUS | ONE, MINUS | INF, ONE },
        { TWO, INF, INF },
        { TWO, MINUS | INF, 0 },
        { HALF, INF, 0 },
        { HALF, MINUS | INF, INF },
        { MINUS | TWO, INF, INF },
        { MINUS | TWO, MINUS | INF, 0 },
        { MINUS | HALF, INF, 0 },
        { MINUS | HALF, MINUS | INF, INF },
        { 0, INF, 0 },
        { 0, MINUS | INF, INF },
        { MINUS, INF, 0 },
        { INF, INF, INF },
        { INF, MINUS | INF, 0 },
        { MINUS | INF, INF, INF },
        { MINUS | INF, MINUS | INF, 0 },
        { 0, THREE, 0 },
        { MINUS, THREE, MINUS },
        { MINUS, TWO, 0 },
        { MINUS, HALF, 0 },
        { 0, MINUS | THREE, INF },
        { MINUS, MINUS | THREE, MINUS | INF },
        { MINUS, MINUS | TWO, INF },
        { MINUS, MINUS | HALF, INF },
        { INF, HALF, INF },
        { INF, MINUS | HALF, 0 },
        { MINUS | INF, THREE, MINUS | INF },
        { MINUS | INF, TWO, INF },
        { MINUS | INF, HALF, INF },
        { MINUS | INF, MINUS | THREE, MINUS },
        { MINUS | INF, MINUS | TWO, 0 },
        { MINUS | INF, MINUS | HALF, 0 },
        { MINUS | TWO, HALF, QNAN },
        { MINUS | TINY, 0x3fc00000, QNAN },
        { MINUS | ONE, HALF, QNAN },
        { MINUS | MAX, TINY, QNAN },
        { MINUS | TWO, THREE, 0xc1000000 },
        { MINUS | TWO, TWO, 0x40800000 },
        { MINUS | ONE, BIG_ODD, MINUS | ONE },
        { MINUS | ONE, BIG_EVEN, ONE },
        { MINUS | ONE, MAX, ONE },
        { MINUS | TWO, MAX, INF },
        { MINUS | TWO, BIG_ODD, MINUS | INF },
        { MINUS | TWO, MINUS | BIG_ODD, MINUS },
        { MAX, TWO, INF },
        { TINY, TWO, 0 },
        { MINUS | TINY, THREE, MINUS },
        { TINY, ONE, TINY },
        { MAX, ONE, MAX },
        { MINUS | MAX, ONE, MINUS | MAX },
        { TINY, MINUS | ONE, INF },
        { TWO, 0xc3150000 /* -149 */, TINY },
        { TWO, 0xc3160000 /* -150: a tie */, 0 },
        { TWO, 0xc315ffff, TINY },
        { TWO, 0x43000000 /* 128 */, INF },
        { TWO, 0x42fe0000 /* 127 */, 0x7f000000 },
        { MAX, TINY, ONE },
        { TINY, MINUS | TINY, ONE },
        { 0x3f7fffff, TINY, ONE },
        { HALF, 0x43150000, TINY },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const uint32_t r = power(row[i].x, row[i].y);
        if (r != row[i].expected)
            fail_msg("power(%08x, %08x) = %08x, not %08x", (unsigned)row[i].x, (unsigned)row[i].y, (unsigned)r,
                     (unsigned)row[i].expected);
    }
}

/* (a 2^e)^n as a binary64 number, exact; rounded once by the cast. */
static void check_exact(uint64_t a, int e, int n, int roots)
{
    double x = (double)a, expected = 1, scale = 1;
    for (int i = 0; i < roots; i++) {
        x *= x;
        e *= 2;
    }
    if (x >= 0x1p24 || e < -140 || e > 100) return;
    for (int i = 0; i < n; i++) expected *= (double)a;
    const int whole = e / (1 << roots) * n;
    if (whole < -300 || whole > 300) return;
    for (int i = 0; i < (whole < 0 ? -whole : whole); i++) scale *= whole < 0 ? 0.5 : 2;
    for (int i = 0; i < (e < 0 ? -e : e); i++) x *= e < 0 ? 0.5 : 2;
    const float base = (float)x, exponent = (float)n / (float)(1 << roots), r = trni_power(base, exponent);
    if ((double)base != x) return;
    if (cases_bits_of(r) != cases_bits_of((float)(expected * scale)))
        fail_msg("power(%a, %a) = %a, not %a", (double)base, (double)exponent, (double)r, expected * scale);
}

/* Everything that can be half way between two numbers, and neighbours with fewer bits. */
static void exact_powers(void **unused)
{
    (void)unused;
    for (int n = 2; n < 17; n++)
        for (uint64_t a = 3;; a += 2) {
            double top = 1;
            for (int i = 0; i < n; i++) top *= (double)a;
            if (top >= 0x1p26) break;
            for (int roots = 0; roots < 4; roots++)
                for (int e = -8; e <= 8; e += 4) check_exact(a, e, n, roots);
            for (int e = -140 / n - 4; e < -100 / n; e++) check_exact(a, e, n, 0); /* subnormal results */
        }
    for (int e = -149; e < 128; e++) check_exact(1, e < -140 ? -140 : e, 1, 0);
}

#if defined(HAVE_MPFR)
static mpfr_t mp_x, mp_y, mp_r;

static void mp_begin(int bits)
{
    mpfr_set_emin(bits == 24 ? -148 : mpfr_get_emin_min());
    mpfr_set_emax(bits == 24 ? 128 : mpfr_get_emax_max());
    mpfr_inits2(24, mp_x, mp_y, (mpfr_ptr)0);
    mpfr_init2(mp_r, bits);
}

static void mp_end(void)
{
    mpfr_clears(mp_x, mp_y, mp_r, (mpfr_ptr)0);
    mpfr_free_cache();
}

static float mp_power(float x, float y)
{
    mpfr_set_flt(mp_x, x, MPFR_RNDN);
    mpfr_set_flt(mp_y, y, MPFR_RNDN);
    int t = mpfr_pow(mp_r, mp_x, mp_y, MPFR_RNDN);
    t = mpfr_check_range(mp_r, t, MPFR_RNDN);
    mpfr_subnormalize(mp_r, t, MPFR_RNDN);
    return mpfr_get_flt(mp_r, MPFR_RNDN);
}

/* x and y with x^y where numbers are, most of the time. */
static void draw(uint64_t *rng, float *x, float *y)
{
    const int kind = cases_below(rng, 8);
    uint32_t u = cases_u32(rng) % 0x7f800000u;
    if (kind < 3) u = 0x3f000000u + (u & 0xffffffu); /* near 1 */
    if (kind == 3) u = 0x3f800000u + (uint32_t)cases_below(rng, 64) - 32;
    *x = cases_float_of(u ? u : 1);
    const double log = trni_power_log2(trni_power_read(cases_bits_of(*x)));
    const double reach = cases_one_in(rng, 4) ? 1e-6 : cases_one_in(rng, 3) ? 155 : 4;
    const double z = ((double)(cases_next(rng) >> 11) * 0x1p-52 - 1) * reach;
    *y = log == 0 ? (float)z : (float)(z / log);
    if (kind == 4) *y = (float)(cases_below(rng, 257) - 128) / 8;
    if (kind == 5) *y = (float)(cases_below(rng, 257) - 128);
    if (kind == 5 && cases_one_in(rng, 2)) *x = -*x;
    if (kind == 6) *y = cases_float_of(cases_float(rng));
    if (kind == 7) *x = cases_float_of(cases_float(rng));
}

static void power_is_what_mpfr_gives(void **unused)
{
    uint64_t rng = 72;
    (void)unused;
    mp_begin(24);
    for (int i = 0, n = cases_rounds(300000, 20000000); i < n; i++) {
        float x, y;
        draw(&rng, &x, &y);
        const uint32_t r = cases_bits_of(trni_power(x, y));
        uint32_t expected = cases_bits_of(mp_power(x, y));
        if ((expected & ~MINUS) > INF) expected = QNAN;
        if (r != expected)
            fail_msg("power(%a, %a) = %08x, not %08x", (double)x, (double)y, (unsigned)r, (unsigned)expected);
    }
    mp_end();
}

/* The long way for everything, and for what really takes it. */
static void the_long_way_is_what_mpfr_gives(void **unused)
{
    uint64_t rng = 73;
    int undecided = 0;
    (void)unused;
    mp_begin(24);
    for (int i = 0, n = cases_rounds(3000000, 100000000); i < n; i++) {
        float x, y;
        draw(&rng, &x, &y);
        const uint32_t u = cases_bits_of(x), v = cases_bits_of(y);
        if (u - 1 >= INF - 1 || (v & ~MINUS) - 1 >= INF - 1) continue;
        const trni_power_number scaled = trni_power_read(u);
        const double z = (double)y * trni_power_log2(scaled);
        if (!(z < 129 && z > -151)) continue;
        const double p = trni_power_exp2(z), error = p * 0x1p-43;
        const bool open = cases_bits_of((float)(p - error)) != cases_bits_of((float)(p + error));
        if (!open && (i % 1024 || (z < 0x1p-24 && z > -0x1p-24))) continue;
        undecided += open;
        const uint32_t r = cases_bits_of(trni_power_slow(scaled, y)), expected = cases_bits_of(mp_power(x, y));
        if (r != expected)
            fail_msg("power(%a, %a) = %08x, not %08x", (double)x, (double)y, (unsigned)r, (unsigned)expected);
    }
    mp_end();
    print_message("%d arguments that binary64 cannot decide\n", undecided);
    assert_true(undecided > 0);
}

/* trni_power_positive counts on 2^-43. */
static void binary64_is_near_enough(void **unused)
{
    uint64_t rng = 74;
    double worst = 0;
    (void)unused;
    mp_begin(100);
    for (int i = 0, n = cases_rounds(50000, 3000000); i < n; i++) {
        float x, y;
        draw(&rng, &x, &y);
        const uint32_t u = cases_bits_of(x), v = cases_bits_of(y);
        if (u - 1 >= INF - 1 || (v & ~MINUS) - 1 >= INF - 1) continue;
        const double z = (double)y * trni_power_log2(trni_power_read(u));
        if (!(z < 129 && z > -151)) continue;
        mpfr_set_flt(mp_x, x, MPFR_RNDN);
        mpfr_set_flt(mp_y, y, MPFR_RNDN);
        mpfr_pow(mp_r, mp_x, mp_y, MPFR_RNDN);
        mpfr_d_div(mp_r, trni_power_exp2(z), mp_r, MPFR_RNDN);
        mpfr_sub_ui(mp_r, mp_r, 1, MPFR_RNDN);
        const double error = mpfr_get_d(mp_r, MPFR_RNDN);
        if (error > worst || -error > worst) worst = error < 0 ? -error : error;
    }
    mp_end();
    print_message("largest relative error %a\n", worst);
    assert_true(worst < 0x1p-43);
}
/* limbs behind the point, and one before it, as a number */
static void mp_limbs(mpfr_t r, const uint32_t *limb, int limbs)
{
    mpfr_set_ui(r, 0, MPFR_RNDN);
    for (int i = limbs - 1; i >= 0; i--) {
        mpfr_mul_2ui(r, r, 32, MPFR_RNDN);
        mpfr_add_ui(r, r, limb[i], MPFR_RNDN);
    }
    mpfr_div_2ui(r, r, 32 * TRNI_POWER_LIMBS, MPFR_RNDN);
}

/* What a power within 2^-150 stands on: log2 to 2^-190, 2^f to 2^-180. */
static void limbs_are_near_enough(void **unused)
{
    uint64_t rng = 75;
    mpfr_t exact, made;
    (void)unused;
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_inits2(400, exact, made, (mpfr_ptr)0);
    for (int i = 0, n = cases_rounds(300, 10000); i < n; i++) {
        uint32_t log[TRNI_POWER_LIMBS], f[TRNI_POWER_LIMBS], power[TRNI_POWER_LIMBS + 1];
        const uint32_t fraction =
            i < 4 ? (uint32_t)(i & 1) * 0x7ffffeu + (uint32_t)(i >> 1) : cases_u32(&rng) & 0x7fffffu;
        trni_power_limbs_log2(log, 0x800000u | fraction);
        mpfr_set_ui(exact, 0x800000u | fraction, MPFR_RNDN);
        mpfr_div_2ui(exact, exact, 23, MPFR_RNDN);
        mpfr_log2(exact, exact, MPFR_RNDN);
        mp_limbs(made, log, TRNI_POWER_LIMBS);
        mpfr_sub(made, made, exact, MPFR_RNDN);
        assert_true(mpfr_cmp_si_2exp(made, 1, -190) < 0 && mpfr_cmp_si_2exp(made, -1, -190) > 0);
        for (int k = 0; k < TRNI_POWER_LIMBS; k++) f[k] = i < 4 ? 0u - (uint32_t)(i & 1) : cases_u32(&rng);
        trni_power_limbs_exp2(power, f);
        mp_limbs(exact, f, TRNI_POWER_LIMBS);
        mpfr_exp2(exact, exact, MPFR_RNDN);
        mp_limbs(made, power, TRNI_POWER_LIMBS + 1);
        mpfr_sub(made, made, exact, MPFR_RNDN);
        assert_true(mpfr_cmp_si_2exp(made, 1, -180) < 0 && mpfr_cmp_si_2exp(made, -1, -180) > 0);
    }
    mpfr_clears(exact, made, (mpfr_ptr)0);
    mpfr_free_cache();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rsqrt_of_every_mantissa),
        cmocka_unit_test(rsqrt_of_other_octaves),
        cmocka_unit_test(rsqrt_of_special_numbers),
        cmocka_unit_test(power_of_special_numbers),
        cmocka_unit_test(exact_powers),
#if defined(HAVE_MPFR)
        cmocka_unit_test(power_is_what_mpfr_gives),
        cmocka_unit_test(the_long_way_is_what_mpfr_gives),
        cmocka_unit_test(binary64_is_near_enough),
        cmocka_unit_test(limbs_are_near_enough),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
