/* engine/gpsimd_math.h - power and the reciprocal square root of binary32 numbers, correctly rounded.
 * A room of the engines' instructions. SPDX-License-Identifier: MIT
 *
 * DOES: the functions that GpSimd computes for the operators power and rsqrt, with every special case of IEEE 754
 *     (pow, rSqrt); subnormals as they are; every NaN is 7fc00000. Correct rounding makes the bits a fact: compilers
 *     may contract what they like, and no mathematical library decides anything.
 * DOES NOT: know operators or tensors, or raise floating-point flags on purpose.
 *
 * How far it is proven. rsqrt: two roundings in binary64, then one; tests/unit/test_gpsimd_math.c compares every
 * mantissa of two octaves with exact integers, and all other octaves are these times a power of two. power: binary64
 * with a bound on its error (below) decides all but one argument in 2^18 or so; then what is exactly half way between
 * two numbers is found by integers, and everything else is computed to 2^-150. That no power lies closer than that to
 * the middle between two numbers without being there is not proven; among 2^64 pairs one would expect 2^-60.
 *
 * KNOWN FROM: IEEE 754-2019, 9.2 (special cases); that GpSimd executes these operators: documented by NKI; how well the
 *     engine approximates them: not public, assumed to be as well as binary32 can.
 */
#ifndef TRNI_ENGINE_GPSIMD_MATH_H
#define TRNI_ENGINE_GPSIMD_MATH_H

#include <math.h>

#include "../number/format.h"

/* rSqrt(+-0) is an infinity with the sign of the zero. */
TRNI_FN float trni_rsqrt(float x)
{
    const uint32_t bits = trni_bits(x);
    if (trni_is_nan_bits(bits) || (bits > TRNI_F32_SIGN && bits <= (TRNI_F32_SIGN | TRNI_F32_INF)))
        return trni_float(TRNI_F32_NAN);
    return (float)(1.0 / sqrt((double)x));
}

/* ---- power, in binary64 ---- */

/* |x| = m 2^e with 1 <= m < 2, subnormals included; m has 24 bits. */
typedef struct trni_power_number {
    uint32_t fraction; /* 2^23 m */
    int e;
} trni_power_number;

TRNI_FN trni_power_number trni_power_read(uint32_t bits)
{
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    if (magnitude >> 23) {
        const trni_power_number normal = { (magnitude & 0x7fffffu) | 0x800000u, (int)(magnitude >> 23) - 127 };
        return normal;
    }
    const int shift = __builtin_clz(magnitude) - 8;
    const trni_power_number subnormal = { magnitude << shift, -126 - shift };
    return subnormal;
}

/* log2 of m 2^e. With c = 1 + i / 32 next to m, r = m / c' - 1 is exact (c' is near c and 1 / c' has nine bits),
 * |r| < 2^-5.9, and log2 m = log2 c' + log2(1 + r); above sqrt 2 the logarithm counts from 2, so that nothing cancels
 * near x = 1. The series' remainder is below 2^-53 |r|, the sum's relative error below 2^-51. */
TRNI_FN double trni_power_log2(trni_power_number x)
{
    static const struct {
        double inverse, log;
    } table[33] = {
        { 512 / 512.0, 0x0.0p+0 },
        { 496 / 512.0, 0x1.77394c9d958d5p-5 },
        { 482 / 512.0, 0x1.64ce26c067157p-4 },
        { 468 / 512.0, 0x1.097e38ce60649p-3 },
        { 455 / 512.0, 0x1.5cba53a0762edp-3 },
        { 443 / 512.0, 0x1.abb2ca9ec7472p-3 },
        { 431 / 512.0, 0x1.fcd677e5ac81dp-3 },
        { 420 / 512.0, 0x1.249cd2b13cd6cp-2 },
        { 410 / 512.0, 0x1.48365e695d797p-2 },
        { 400 / 512.0, 0x1.6cb0f6865c8eap-2 },
        { 390 / 512.0, 0x1.921800924dd3bp-2 },
        { 381 / 512.0, 0x1.b495d4e9185f7p-2 },
        { 372 / 512.0, 0x1.d7e6c0abc3579p-2 },
        { 364 / 512.0, 0x1.f804ae8d0cd02p-2 },
        { 356 / 512.0, -0x1.e726aa1e754d2p-2 },
        { 349 / 512.0, -0x1.c9d02f6ca47b4p-2 },
        { 341 / 512.0, -0x1.a78e146f7bef4p-2 },
        { 334 / 512.0, -0x1.88e9c72e0b226p-2 },
        { 328 / 512.0, -0x1.6e221cd9d0cdep-2 },
        { 321 / 512.0, -0x1.4e43880e8fb6ap-2 },
        { 315 / 512.0, -0x1.32639636b2836p-2 },
        { 309 / 512.0, -0x1.15fa676bb08ffp-2 },
        { 303 / 512.0, -0x1.f205339208f27p-3 },
        { 298 / 512.0, -0x1.c0db6cdd94deep-3 },
        { 293 / 512.0, -0x1.8edcae8352b6cp-3 },
        { 287 / 512.0, -0x1.51bab907a5c8ap-3 },
        { 282 / 512.0, -0x1.1dcd197552b7bp-3 },
        { 278 / 512.0, -0x1.e72ec117fa5b2p-4 },
        { 273 / 512.0, -0x1.7beee96b8a281p-4 },
        { 269 / 512.0, -0x1.24b5b7e135a3dp-4 },
        { 264 / 512.0, -0x1.6bad3758efd87p-5 },
        { 260 / 512.0, -0x1.6e79685c2d22ap-6 },
        { 256 / 512.0, 0x0.0p+0 },
    };
    const uint32_t i = ((x.fraction & 0x7fffffu) + 0x20000u) >> 18;
    const double r = (double)x.fraction * 0x1p-23 * table[i].inverse - 1.0;
    double series = 0x1.484b13d7c02a9p-3;
    series = series * r - 0x1.71547652b82fep-3;
    series = series * r + 0x1.a61762a7aded9p-3;
    series = series * r - 0x1.ec709dc3a03fdp-3;
    series = series * r + 0x1.2776c50ef9bfep-2;
    series = series * r - 0x1.71547652b82fep-2;
    series = series * r + 0x1.ec709dc3a03fdp-2;
    series = series * r - 0x1.71547652b82fep-1;
    series = series * r + 0x1.71547652b82fep+0;
    return (double)(x.e + (i >= 14)) + table[i].log + series * r;
}

/* 2^z for |z| < 200: z = k + j / 32 + g, |g| <= 1/64; relative error below 2^-50. */
TRNI_FN double trni_power_exp2(double z)
{
    static const double table[32] = {
        0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0, 0x1.172b83c7d517bp+0,
        0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0, 0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0,
        0x1.3dea64c123422p+0, 0x1.44e086061892dp+0, 0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0,
        0x1.6247eb03a5585p+0, 0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
        0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0, 0x1.ae89f995ad3adp+0,
        0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0, 0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0,
        0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0,
    };
    const int step = (int)(z * 32.0 + (z < 0 ? -0.5 : 0.5)), k = step >> 5;
    const double g = z - (double)step * 0.03125;
    double series = 0x1.430912f86c787p-13;
    series = series * g + 0x1.5d87fe78a6731p-10;
    series = series * g + 0x1.3b2ab6fba4e77p-7;
    series = series * g + 0x1.c6b08d704a0c0p-5;
    series = series * g + 0x1.ebfbdff82c58fp-3;
    series = series * g + 0x1.62e42fefa39efp-1;
    const double base = table[step & 31];
    return (base + base * (series * g)) * trni_power_of_two(k);
}

/* ---- power, where binary64 cannot tell ----
 *
 * Numbers of 192 bits behind the point, in limbs of 32 bits, lowest first. */

enum { TRNI_POWER_LIMBS = 6, TRNI_POWER_WIDE = TRNI_POWER_LIMBS + 4 };

/* a = a b, both in [0, 4) with one limb before the point, cut. */
TRNI_FN void trni_power_limbs_multiply(uint32_t a[TRNI_POWER_LIMBS + 1], const uint32_t b[TRNI_POWER_LIMBS + 1])
{
    uint32_t product[2 * TRNI_POWER_LIMBS + 2] = { 0 };
    for (int i = 0; i <= TRNI_POWER_LIMBS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j <= TRNI_POWER_LIMBS; j++) {
            carry += (uint64_t)a[i] * b[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + TRNI_POWER_LIMBS + 1] = (uint32_t)carry;
    }
    memcpy(a, product + TRNI_POWER_LIMBS, sizeof(uint32_t) * (TRNI_POWER_LIMBS + 1));
}

TRNI_FN void trni_power_limbs_halve(uint32_t *a, int limbs)
{
    for (int i = 0; i < limbs; i++) a[i] = a[i] >> 1 | (i + 1 < limbs ? a[i + 1] << 31 : 0u);
}

/* log2 m for 1 <= m < 2, bit after bit: m becomes m^2, and where that reaches 2 the bit is 1 and m is halved. What each
 * cut loses counts half as much as the one before: all together less than 2^-190. */
TRNI_FN void trni_power_limbs_log2(uint32_t log[TRNI_POWER_LIMBS], uint32_t fraction)
{
    uint32_t m[TRNI_POWER_LIMBS + 1] = { 0 };
    m[TRNI_POWER_LIMBS] = 1;
    m[TRNI_POWER_LIMBS - 1] = fraction << 9;
    for (int i = TRNI_POWER_LIMBS - 1; i >= 0; i--) {
        log[i] = 0;
        for (int bit = 31; bit >= 0; bit--) {
            trni_power_limbs_multiply(m, m);
            if (m[TRNI_POWER_LIMBS] < 2) continue;
            log[i] |= 1u << bit;
            trni_power_limbs_halve(m, TRNI_POWER_LIMBS + 1);
        }
    }
}

/* 2^f for 0 <= f < 1 behind the point: e^t by its series at t = f ln 2 / 256, then squared eight times. */
TRNI_FN void trni_power_limbs_exp2(uint32_t power[TRNI_POWER_LIMBS + 1], const uint32_t f[TRNI_POWER_LIMBS])
{
    static const uint32_t ln2[TRNI_POWER_LIMBS + 1] = {
        0x7298b62du, 0x40f34326u, 0x03f2f6afu, 0xc9e3b398u, 0xd1cf79abu, 0xb17217f7u, 0
    };
    enum { SQUARINGS = 8, TERMS = 20 }; /* 2^(-8 * 20) / 20! < 2^-220 */
    uint32_t t[TRNI_POWER_LIMBS + 1], sum[TRNI_POWER_LIMBS + 1] = { 0 };
    memcpy(t, f, sizeof(uint32_t) * TRNI_POWER_LIMBS);
    t[TRNI_POWER_LIMBS] = 0;
    trni_power_limbs_multiply(t, ln2);
    for (int i = 0; i < SQUARINGS; i++) trni_power_limbs_halve(t, TRNI_POWER_LIMBS + 1);
    sum[TRNI_POWER_LIMBS] = 1;
    for (int n = TERMS; n > 0; n--) { /* 1 + t / n (1 + t / (n + 1) (...)) */
        trni_power_limbs_multiply(sum, t);
        uint64_t rest = 0;
        for (int i = TRNI_POWER_LIMBS; i >= 0; i--) {
            rest = rest << 32 | sum[i];
            sum[i] = (uint32_t)(rest / (uint64_t)n);
            rest %= (uint64_t)n;
        }
        sum[TRNI_POWER_LIMBS]++;
    }
    for (int i = 0; i < SQUARINGS; i++) trni_power_limbs_multiply(sum, sum);
    memcpy(power, sum, sizeof sum);
}

/* A number exactly half way between two has at most 25 bits: that leaves few exact powers. x = a 2^e with a odd; either
 * a = 1, or y = n / 2^s with a and e fit for s square roots, and the root to the power n < 17, for 3^16 > 2^25. */
TRNI_FN bool trni_power_exact(trni_power_number x, float y, double *exact)
{
    const trni_power_number by = trni_power_read(trni_bits(y));
    const int low = __builtin_ctz(x.fraction), y_low = __builtin_ctz(by.fraction);
    uint32_t a = x.fraction >> low, n = by.fraction >> y_low;
    int e = x.e - 23 + low, scale = by.e - 23 + y_low;
    if (a == 1) {
        const double z = (double)e * (double)y;
        if (z != floor(z)) return false;
        *exact = trni_power_of_two((int)z);
        return true;
    }
    if (y < 0 || scale > 4) return false;
    for (; scale < 0; scale++) {
        const uint32_t root = (uint32_t)sqrt((double)a); /* exact for squares, and squaring shows what is none */
        if (e % 2 || root * root != a) return false;
        a = root;
        e /= 2;
    }
    n <<= scale;
    if (n > 16) return false;
    uint64_t power = 1;
    for (uint32_t i = 0; i < n && power <= 1u << 25; i++) power *= a;
    if (power > 1u << 25) return false;
    *exact = (double)power * trni_power_of_two(e * (int)n);
    return true;
}

/* |y| times the magnitude of log2 x, which is whole . log: an integer part, and 192 bits behind the point. */
TRNI_FN uint32_t trni_power_exponent(uint32_t f[TRNI_POWER_LIMBS], const uint32_t log[TRNI_POWER_LIMBS + 1], float y)
{
    const trni_power_number by = trni_power_read(trni_bits(y));
    uint32_t z[TRNI_POWER_WIDE] = { 0 }; /* from 2^-256 on: the two lowest limbs are there for shifts */
    uint64_t carry = 0;
    for (int i = 0; i <= TRNI_POWER_LIMBS; i++) {
        carry += (uint64_t)log[i] * by.fraction;
        z[i + 2] = (uint32_t)carry;
        carry >>= 32;
    }
    z[TRNI_POWER_LIMBS + 3] = (uint32_t)carry;
    for (int shift = 23 - by.e; shift > 0; shift--) trni_power_limbs_halve(z, TRNI_POWER_WIDE);
    for (int shift = by.e - 23; shift > 0; shift--)
        for (int i = TRNI_POWER_WIDE - 1; i >= 0; i--) z[i] = z[i] << 1 | (i ? z[i - 1] >> 31 : 0u);
    memcpy(f, z + 2, sizeof(uint32_t) * TRNI_POWER_LIMBS);
    return z[TRNI_POWER_LIMBS + 2];
}

/* a = -a, as an integer of that many limbs. */
TRNI_FN void trni_power_limbs_negate(uint32_t *a, int limbs)
{
    uint64_t carry = 1;
    for (int i = 0; i < limbs; i++) {
        carry += (uint32_t)~a[i];
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* 2^k power, 1 <= power < 2 and no number half way, rounded to nearest. */
TRNI_FN float trni_power_limbs_round(const uint32_t power[TRNI_POWER_LIMBS + 1], int k)
{
    const int bits = k >= -126 ? 24 : 150 + k; /* of the result's significand */
    if (bits < 0) return 0.0f;
    const uint64_t top = (uint64_t)1 << 32 | power[TRNI_POWER_LIMBS - 1]; /* 33 bits of it */
    const uint64_t rounded = (top >> (33 - bits)) + (bits < 33 ? top >> (32 - bits) & 1u : 0u);
    return (float)((double)rounded * trni_power_of_two(k + 1 - bits));
}

TRNI_FN float trni_power_slow(trni_power_number x, float y)
{
    double exact;
    if (trni_power_exact(x, y, &exact)) return (float)exact;
    uint32_t log[TRNI_POWER_LIMBS + 1], f[TRNI_POWER_LIMBS + 1], power[TRNI_POWER_LIMBS + 1];
    trni_power_limbs_log2(log, x.fraction);
    log[TRNI_POWER_LIMBS] = (uint32_t)x.e;
    const bool below = x.e < 0, negative = below != (trni_bits(y) >> 31 != 0);
    if (below) trni_power_limbs_negate(log, TRNI_POWER_LIMBS + 1);
    f[TRNI_POWER_LIMBS] = trni_power_exponent(f, log, y);
    if (negative) trni_power_limbs_negate(f, TRNI_POWER_LIMBS + 1);
    trni_power_limbs_exp2(power, f);
    return trni_power_limbs_round(power, (int)f[TRNI_POWER_LIMBS]);
}

/* x > 0 and finite, y finite. z = y log2 x is known to 2^-51 of itself, so to 2^-43.7 where the result is no infinity
 * and no zero; with what trni_exp2 adds, the result is known to 2^-43 of itself. Where both ends of that interval are
 * rounded to one number, it is the one. */
TRNI_DRIVER float trni_power_positive(float x, float y)
{
    const trni_power_number scaled = trni_power_read(trni_bits(x));
    const double z = (double)y * trni_power_log2(scaled);
    if (z >= 129.0) return trni_float(TRNI_F32_INF);
    if (z <= -151.0) return 0.0f;
    const double power = trni_power_exp2(z), error = power * 0x1p-43;
    const float low = (float)(power - error), high = (float)(power + error);
    return trni_bits(low) == trni_bits(high) ? low : trni_power_slow(scaled, y);
}

/* ---- power ---- */

/* How often 2 divides y, as far as signs of powers care: 0 = odd, 1 = even, -1 = not an integer. y is finite, not 0. */
TRNI_FN int trni_power_evenness(float y)
{
    const trni_power_number s = trni_power_read(trni_bits(y));
    const int lowest = s.e - 23 + __builtin_ctz(s.fraction);
    return lowest < 0 ? -1 : lowest > 0;
}

/* x is a zero or infinite, y is not 0. */
TRNI_FN float trni_power_end(uint32_t x, uint32_t y, bool odd)
{
    const bool large = ((x & ~TRNI_F32_SIGN) == TRNI_F32_INF) == !(y >> 31);
    return trni_float((odd ? x & TRNI_F32_SIGN : 0u) | (large ? TRNI_F32_INF : 0u));
}

TRNI_FN float trni_power(float x, float y)
{
    const uint32_t a = trni_bits(x), b = trni_bits(y), magnitude = a & ~TRNI_F32_SIGN, one = 0x3f800000u;
    if ((b & ~TRNI_F32_SIGN) == 0 || a == one) return 1.0f; /* whatever the other is, NaN too */
    if (trni_is_nan_bits(a) || trni_is_nan_bits(b)) return trni_float(TRNI_F32_NAN);
    if ((b & ~TRNI_F32_SIGN) == TRNI_F32_INF) {
        if (magnitude == one) return 1.0f; /* IEEE 754: (-1) to an infinite power */
        return trni_float((magnitude > one) == !(b >> 31) ? TRNI_F32_INF : 0u);
    }
    const int even = trni_power_evenness(y);
    if (magnitude == 0 || magnitude == TRNI_F32_INF) return trni_power_end(a, b, even == 0);
    if (!(a >> 31)) return trni_power_positive(x, y);
    if (even < 0) return trni_float(TRNI_F32_NAN);
    const uint32_t power = magnitude == one ? one : trni_bits(trni_power_positive(-x, y));
    return trni_float(power | (even == 0 ? TRNI_F32_SIGN : 0u));
}

#endif /* TRNI_ENGINE_GPSIMD_MATH_H */
