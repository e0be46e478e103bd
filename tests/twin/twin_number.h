/* twin_number.h - the slow twin's numbers: exact binary fixed point, wide enough that nothing is ever lost.
 * SPDX-License-Identifier: MIT
 *
 * A second opinion on every rounding of trnmath. It shares no code, no types and no tricks with the library: a number
 * is a sign and a magnitude of 768 bits, products and sums are exact, and a rounding looks at the bits it cuts off.
 * It is some hundred times slower than the library and that is the point.
 *
 * Bit i of the magnitude weighs 2^(i - 320). The smallest bit anybody needs is 2^-298 (the product of two binary32
 * subnormals), the largest is below 2^300 (a long sum of products of two large binary32 numbers). Leaving this range
 * stops the program: the twin is exact or it is silent.
 */
#ifndef TWIN_NUMBER_H
#define TWIN_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TWIN_LIMBS = 24, TWIN_POINT = 320, TWIN_BITS = 32 * TWIN_LIMBS };

typedef enum twin_kind { TWIN_FINITE, TWIN_INFINITY, TWIN_NAN } twin_kind;

typedef struct twin_number {
    twin_kind kind;
    bool negative;             /* zeros have a sign; a NaN's sign is kept by decoding and encoding only */
    uint32_t limb[TWIN_LIMBS]; /* magnitude, low limb first; all zero unless finite */
} twin_number;

static inline void twin_stop(const char *why)
{
    fprintf(stderr, "twin: %s\n", why);
    abort();
}

static inline twin_number twin_special(twin_kind kind, bool negative)
{
    twin_number x;
    memset(&x, 0, sizeof x);
    x.kind = kind;
    x.negative = negative;
    return x;
}

static inline twin_number twin_zero(bool negative) { return twin_special(TWIN_FINITE, negative); }
static inline twin_number twin_infinity(bool negative) { return twin_special(TWIN_INFINITY, negative); }
static inline twin_number twin_nan(void) { return twin_special(TWIN_NAN, false); }

/* (-1)^negative * significand * 2^exponent, exactly. */
static inline twin_number twin_make(bool negative, uint64_t significand, int exponent)
{
    twin_number x = twin_zero(negative);
    int place = exponent + TWIN_POINT;
    for (; significand && !(significand & 1u); place++) significand >>= 1;
    if (significand && place < 0) twin_stop("a bit falls below the fixed point");
    for (int i = place / 32, shift = place % 32; significand; i++, shift = 0) {
        if (i >= TWIN_LIMBS) twin_stop("a bit falls above the fixed point");
        x.limb[i] = (uint32_t)(significand << shift);
        significand >>= 32 - shift;
    }
    return x;
}

static inline bool twin_is_zero(const twin_number *x)
{
    if (x->kind != TWIN_FINITE) return false;
    for (int i = 0; i < TWIN_LIMBS; i++)
        if (x->limb[i]) return false;
    return true;
}

/* The exponent of the highest bit that is set: 2^e <= |x| < 2^(e+1). x must be finite and not zero. */
static inline int twin_exponent(const twin_number *x)
{
    for (int i = TWIN_LIMBS - 1; i >= 0; i--)
        for (int j = 31; j >= 0 && x->limb[i]; j--)
            if (x->limb[i] >> j & 1u) return 32 * i + j - TWIN_POINT;
    twin_stop("zero has no exponent");
    return 0;
}

/* floor(|x| / 2^exponent) mod 2^32. */
static inline uint32_t twin_window(const twin_number *x, int exponent)
{
    const int place = exponent + TWIN_POINT, i = place / 32, shift = place % 32;
    if (place < 0) twin_stop("a question about bits below the fixed point");
    const uint64_t low = i < TWIN_LIMBS ? x->limb[i] : 0, high = i + 1 < TWIN_LIMBS ? x->limb[i + 1] : 0;
    return (uint32_t)((high << 32 | low) >> shift);
}

/* Is any bit set that weighs less than 2^exponent? */
static inline bool twin_any_below(const twin_number *x, int exponent)
{
    const int place = exponent + TWIN_POINT;
    for (int i = 0; i < TWIN_LIMBS && 32 * i < place; i++) {
        const int count = place - 32 * i < 32 ? place - 32 * i : 32; /* how many bits of this limb are below */
        if (x->limb[i] & 0xffffffffu >> (32 - count)) return true;
    }
    return false;
}

/* -1, 0, 1 as |x| is smaller than, equal to or larger than |y|; both finite. */
static inline int twin_compare_magnitude(const twin_number *x, const twin_number *y)
{
    for (int i = TWIN_LIMBS - 1; i >= 0; i--)
        if (x->limb[i] != y->limb[i]) return x->limb[i] < y->limb[i] ? -1 : 1;
    return 0;
}

/* The exact product, by the rules of IEEE 754 for zeros, infinities and NaN. */
static inline twin_number twin_multiply(const twin_number *x, const twin_number *y)
{
    const bool negative = x->negative != y->negative;
    if (x->kind == TWIN_NAN || y->kind == TWIN_NAN) return twin_nan();
    if (x->kind == TWIN_INFINITY || y->kind == TWIN_INFINITY)
        return twin_is_zero(x) || twin_is_zero(y) ? twin_nan() : twin_infinity(negative);

    twin_number product = twin_zero(negative);
    for (int i = 0; i < TWIN_LIMBS; i++) {
        if (!x->limb[i]) continue;
        for (int j = 0; j < TWIN_LIMBS; j++) {
            if (!y->limb[j]) continue;
            uint64_t carry = (uint64_t)x->limb[i] * y->limb[j];
            int place = i + j - TWIN_POINT / 32;
            if (place < 0) twin_stop("a product is finer than the fixed point");
            for (; carry; place++) {
                if (place >= TWIN_LIMBS) twin_stop("a product is larger than the fixed point");
                carry += product.limb[place];
                product.limb[place] = (uint32_t)carry;
                carry >>= 32;
            }
        }
    }
    return product;
}

/* The exact sum. An exact zero from unequal signs is +0, as in every rounding mode but toward negative. */
static inline twin_number twin_add(const twin_number *x, const twin_number *y)
{
    if (x->kind == TWIN_NAN || y->kind == TWIN_NAN) return twin_nan();
    if (x->kind == TWIN_INFINITY && y->kind == TWIN_INFINITY && x->negative != y->negative) return twin_nan();
    if (x->kind == TWIN_INFINITY) return *x;
    if (y->kind == TWIN_INFINITY) return *y;

    twin_number sum = *x;
    if (x->negative == y->negative) {
        uint64_t carry = 0;
        for (int i = 0; i < TWIN_LIMBS; i++) {
            carry += (uint64_t)x->limb[i] + y->limb[i];
            sum.limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry) twin_stop("a sum is larger than the fixed point");
        return sum;
    }
    const int order = twin_compare_magnitude(x, y);
    if (order == 0) return twin_zero(false);
    const twin_number *large = order > 0 ? x : y, *small = order > 0 ? y : x;
    int64_t borrow = 0;
    for (int i = 0; i < TWIN_LIMBS; i++) {
        int64_t difference = (int64_t)large->limb[i] - (int64_t)small->limb[i] - borrow;
        borrow = difference < 0;
        sum.limb[i] = (uint32_t)(difference + (borrow << 32));
    }
    sum.negative = large->negative;
    return sum;
}

/* ---- rounding ---- */

typedef enum twin_mode {
    TWIN_NEAREST_EVEN,
    TWIN_STOCHASTIC,
    TWIN_TOWARD_ZERO,
    TWIN_TOWARD_POSITIVE,
    TWIN_TOWARD_NEGATIVE,
    TWIN_TO_ODD,
    TWIN_MODES
} twin_mode;

typedef struct twin_way {
    twin_mode mode;
    int random_bits;   /* stochastic: n, 1..32 */
    uint32_t random;   /* stochastic: r < 2^n */
    bool carry_to_inf; /* stochastic: may a value between the largest number and the next step leave the range? */
    bool saturate;     /* finite overflow stops at the largest number */
} twin_way;

static inline twin_way twin_plain(twin_mode mode)
{
    const twin_way way = { mode, 32, 0, false, false };
    return way;
}

/* |x| in units of 2^quantum: the whole part, and what is cut off. */
typedef struct twin_split {
    uint64_t whole;
    bool half;           /* the first bit below the point */
    bool rest;           /* any bit below that one */
    uint32_t fraction32; /* the first 32 bits below the point */
} twin_split;

static inline twin_split twin_divide(const twin_number *x, int quantum)
{
    twin_split part = { 0, false, false, 0 };
    if (twin_is_zero(x)) return part;
    if (twin_exponent(x) - quantum >= 63) twin_stop("a whole part needs more than 63 bits");
    part.whole = (uint64_t)twin_window(x, quantum + 32) << 32 | twin_window(x, quantum);
    part.fraction32 = twin_window(x, quantum - 32);
    part.half = part.fraction32 >> 31;
    part.rest = twin_any_below(x, quantum - 1);
    return part;
}

/* The whole part after rounding. Nothing moves when nothing is cut off. */
static inline uint64_t twin_round_whole(twin_split part, bool negative, twin_way way)
{
    const bool inexact = part.half || part.rest, odd = part.whole & 1u;
    if (!inexact) return part.whole;
    switch (way.mode) {
    case TWIN_NEAREST_EVEN: return part.whole + (part.half && (part.rest || odd));
    case TWIN_TOWARD_ZERO: return part.whole;
    case TWIN_TOWARD_POSITIVE: return part.whole + (negative ? 0 : 1);
    case TWIN_TOWARD_NEGATIVE: return part.whole + (negative ? 1 : 0);
    case TWIN_TO_ODD: return odd ? part.whole : part.whole + 1;
    case TWIN_STOCHASTIC: {
        const uint64_t position = part.fraction32 >> (32 - way.random_bits); /* floor(2^n * fraction) */
        return part.whole + (position + way.random >= (uint64_t)1 << way.random_bits);
    }
    case TWIN_MODES:
    default: twin_stop("no such rounding mode"); return 0;
    }
}

/* Rounds to `precision` significand bits with the exponent range of binary32: subnormals below 2^-126, overflow at
 * 2^128. That is binary32 itself for 24 bits, and a wider adder for more. */
static inline twin_number twin_round(const twin_number *x, int precision, twin_way way)
{
    if (x->kind != TWIN_FINITE || twin_is_zero(x)) return *x;
    const int top = twin_exponent(x), e = top > -126 ? top : -126;
    const bool stays = way.mode == TWIN_TOWARD_ZERO || way.mode == TWIN_TO_ODD ||
                       way.mode == (x->negative ? TWIN_TOWARD_POSITIVE : TWIN_TOWARD_NEGATIVE);
    const twin_number largest = twin_make(x->negative, ((uint64_t)1 << precision) - 1, 128 - precision);
    if (top >= 128) return stays ? largest : twin_infinity(x->negative);

    const int quantum = e - (precision - 1);
    const uint64_t whole = twin_round_whole(twin_divide(x, quantum), x->negative, way);
    const twin_number rounded = twin_make(x->negative, whole, quantum);
    if (twin_is_zero(&rounded) || twin_exponent(&rounded) < 128) return rounded;
    return stays ? largest : twin_infinity(x->negative);
}

/* ---- formats ---- */

/* What lies beyond the largest finite code. */
typedef enum twin_beyond { TWIN_HAS_INFINITY, TWIN_HAS_ONE_NAN, TWIN_HAS_NOTHING } twin_beyond;
typedef enum twin_sort { TWIN_SORT_FLOAT, TWIN_SORT_POWER, TWIN_SORT_INTEGER } twin_sort;

typedef struct twin_format {
    const char *name;
    twin_sort sort;
    int e, m, bias; /* floats: exponent bits, mantissa bits, bias */
    twin_beyond beyond;
    int low_zeros;  /* of the container below the code */
    int bits;       /* of the array element that holds a code */
    bool is_signed; /* integers */
} twin_format;

/* Standards: IEEE 754, OCP OFP8 and MX 1.0, the NKI and ml_dtypes pages for e4m3 and e3m4. */
enum {
    TWIN_F32,
    TWIN_TF32,
    TWIN_BF16,
    TWIN_F16,
    TWIN_E4M3,
    TWIN_E4M3FN,
    TWIN_E5M2,
    TWIN_E3M4,
    TWIN_E8M0,
    TWIN_E2M3,
    TWIN_E3M2,
    TWIN_E2M1,
    TWIN_I8,
    TWIN_U8,
    TWIN_I16,
    TWIN_U16,
    TWIN_I32,
    TWIN_U32,
    TWIN_FORMATS,
    TWIN_CFP8 = TWIN_FORMATS /* what a descriptor says; by itself, the row below */
};

static const twin_format twin_formats[TWIN_FORMATS + 1] = {
    { "float32", TWIN_SORT_FLOAT, 8, 23, 127, TWIN_HAS_INFINITY, 0, 32, true },
    { "tfloat32", TWIN_SORT_FLOAT, 8, 10, 127, TWIN_HAS_INFINITY, 13, 32, true },
    { "bfloat16", TWIN_SORT_FLOAT, 8, 7, 127, TWIN_HAS_INFINITY, 0, 16, true },
    { "float16", TWIN_SORT_FLOAT, 5, 10, 15, TWIN_HAS_INFINITY, 0, 16, true },
    { "float8_e4m3", TWIN_SORT_FLOAT, 4, 3, 7, TWIN_HAS_INFINITY, 0, 8, true },
    { "float8_e4m3fn", TWIN_SORT_FLOAT, 4, 3, 7, TWIN_HAS_ONE_NAN, 0, 8, true },
    { "float8_e5m2", TWIN_SORT_FLOAT, 5, 2, 15, TWIN_HAS_INFINITY, 0, 8, true },
    { "float8_e3m4", TWIN_SORT_FLOAT, 3, 4, 3, TWIN_HAS_INFINITY, 0, 8, true },
    { "float8_e8m0fnu", TWIN_SORT_POWER, 8, 0, 127, TWIN_HAS_ONE_NAN, 0, 8, false },
    { "float6_e2m3fn", TWIN_SORT_FLOAT, 2, 3, 1, TWIN_HAS_NOTHING, 0, 6, true },
    { "float6_e3m2fn", TWIN_SORT_FLOAT, 3, 2, 3, TWIN_HAS_NOTHING, 0, 6, true },
    { "float4_e2m1fn", TWIN_SORT_FLOAT, 2, 1, 1, TWIN_HAS_NOTHING, 0, 4, true },
    { "int8", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 8, true },
    { "uint8", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 8, false },
    { "int16", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 16, true },
    { "uint16", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 16, false },
    { "int32", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 32, true },
    { "uint32", TWIN_SORT_INTEGER, 0, 0, 0, TWIN_HAS_NOTHING, 0, 32, false },
    { "cfp8", TWIN_SORT_FLOAT, 4, 3, 7, TWIN_HAS_INFINITY, 0, 8, true },
};

static inline uint32_t twin_ones(int n) { return n >= 32 ? 0xffffffffu : (1u << n) - 1u; }

/* The largest finite magnitude code of a float format: everything but the top exponent (IEEE), everything but the
 * code of all ones (OCP's E4M3), or everything (FP6, FP4). */
static inline uint32_t twin_max_code(const twin_format *f)
{
    const uint32_t all = twin_ones(f->e + f->m);
    switch (f->beyond) {
    case TWIN_HAS_INFINITY: return (twin_ones(f->e) << f->m) - 1u;
    case TWIN_HAS_ONE_NAN: return all - 1u;
    case TWIN_HAS_NOTHING:
    default: return all;
    }
}

/* Semantics: the canonical NaN is quiet with an empty payload; formats without NaN have "minus zero" instead, and
 * plain zero for a negative NaN. */
static inline uint32_t twin_nan_code(const twin_format *f, bool negative)
{
    const uint32_t sign = (uint32_t)1 << (f->e + f->m);
    switch (f->beyond) {
    case TWIN_HAS_INFINITY: return (negative ? sign : 0u) | twin_ones(f->e) << f->m | 1u << (f->m - 1);
    case TWIN_HAS_ONE_NAN: return (negative ? sign : 0u) | twin_ones(f->e + f->m);
    case TWIN_HAS_NOTHING:
    default: return negative ? 0u : sign;
    }
}

static inline twin_number twin_decode_float(const twin_format *f, uint32_t code)
{
    code >>= f->low_zeros;
    const uint32_t magnitude = code & twin_ones(f->e + f->m), mantissa = code & twin_ones(f->m);
    const int exponent = (int)(magnitude >> f->m);
    const bool negative = code >> (f->e + f->m) & 1u;
    if (magnitude > twin_max_code(f))
        return twin_special(f->beyond == TWIN_HAS_INFINITY && mantissa == 0 ? TWIN_INFINITY : TWIN_NAN, negative);
    if (exponent == 0) return twin_make(negative, mantissa, 1 - f->bias - f->m);
    return twin_make(negative, (uint64_t)mantissa + (1u << f->m), exponent - f->bias - f->m);
}

/* The exact value of a code. Bits above the format's are ignored. */
static inline twin_number twin_decode(const twin_format *f, uint32_t code)
{
    if (f->sort == TWIN_SORT_FLOAT) return twin_decode_float(f, code);
    if (f->sort == TWIN_SORT_POWER)
        return (code & 0xffu) == 0xffu ? twin_nan() : twin_make(false, 1, (int)(code & 0xffu) - 127);
    code &= twin_ones(f->bits);
    if (f->is_signed && code >> (f->bits - 1)) return twin_make(true, ((uint64_t)1 << f->bits) - code, 0);
    return twin_make(false, code, 0);
}

static inline uint32_t twin_encode_float(const twin_format *f, const twin_number *x, twin_way way)
{
    const uint32_t sign = x->negative ? (uint32_t)1 << (f->e + f->m) : 0u, max = twin_max_code(f);
    const uint32_t past =
        sign | (f->beyond == TWIN_HAS_NOTHING ? max : max + 1u); /* infinity, the NaN, or the largest */
    if (x->kind == TWIN_NAN) return twin_nan_code(f, x->negative) << f->low_zeros;
    if (x->kind == TWIN_INFINITY) return past << f->low_zeros;
    if (twin_is_zero(x)) return sign << f->low_zeros;

    const int emin = 1 - f->bias, top = twin_exponent(x), e = top > emin ? top : emin;
    const twin_split part = twin_divide(x, e - f->m);
    const uint64_t step = ((uint64_t)(e - emin) << f->m);
    const uint64_t truncated = step + part.whole, rounded = step + twin_round_whole(part, x->negative, way);
    uint64_t code = rounded;
    if (rounded > max) {
        bool stays = way.saturate;
        if (way.mode == TWIN_TOWARD_ZERO || way.mode == TWIN_TO_ODD) stays = true;
        if (way.mode == TWIN_TOWARD_POSITIVE && x->negative) stays = true;
        if (way.mode == TWIN_TOWARD_NEGATIVE && !x->negative) stays = true;
        if (way.mode == TWIN_STOCHASTIC && truncated <= max && !way.carry_to_inf) stays = true;
        code = stays ? max : past & ~sign;
    }
    return (sign | (uint32_t)code) << f->low_zeros;
}

/* E8M0: powers of two only, ties up; the position between two of them is linear. */
static inline uint32_t twin_encode_power(const twin_number *x, twin_way way)
{
    if (x->kind != TWIN_FINITE) return 0xff;
    if (x->negative || twin_is_zero(x)) return way.saturate ? 0x00 : 0xff;
    const int top = twin_exponent(x);
    if (top < -127) return 0x00; /* below the smallest scale there is nothing to go to */
    twin_split part = twin_divide(x, top);
    part.whole = (uint64_t)(top + 127);
    uint64_t code = twin_round_whole(part, false, way);
    if (way.mode == TWIN_NEAREST_EVEN) code = part.whole + part.half;
    if (code <= 0xfe) return (uint32_t)code;
    bool stays =
        way.saturate || way.mode == TWIN_TOWARD_ZERO || way.mode == TWIN_TO_ODD || way.mode == TWIN_TOWARD_NEGATIVE;
    if (way.mode == TWIN_STOCHASTIC && part.whole <= 0xfe && !way.carry_to_inf) stays = true;
    return stays ? 0xfe : 0xff;
}

static inline uint32_t twin_encode_integer(const twin_format *f, const twin_number *x, twin_way way)
{
    const uint64_t largest = f->is_signed ? twin_ones(f->bits - 1) : twin_ones(f->bits);
    const uint64_t limit = !x->negative ? largest : f->is_signed ? largest + 1 : 0;
    if (x->kind == TWIN_NAN) return 0;
    uint64_t whole = limit;
    if (x->kind == TWIN_FINITE && (twin_is_zero(x) || twin_exponent(x) < 40))
        whole = twin_round_whole(twin_divide(x, 0), x->negative, way);
    if (whole > limit) whole = limit;
    return (uint32_t)(x->negative ? (uint64_t)0 - whole : whole) & twin_ones(f->bits);
}

static inline uint32_t twin_encode(const twin_format *f, const twin_number *x, twin_way way)
{
    if (f->sort == TWIN_SORT_FLOAT) return twin_encode_float(f, x, way);
    return f->sort == TWIN_SORT_POWER ? twin_encode_power(x, way) : twin_encode_integer(f, x, way);
}

/* Binary32 by its bits. Every NaN an engine makes is 7fc00000, and twin_nan() is positive. */
static inline twin_number twin_from_f32(uint32_t bits) { return twin_decode(&twin_formats[TWIN_F32], bits); }
static inline uint32_t twin_to_f32(const twin_number *x)
{
    return twin_encode(&twin_formats[TWIN_F32], x, twin_plain(TWIN_NEAREST_EVEN));
}

/* fma(x, y, z): one exact product, one exact sum, one rounding. */
static inline twin_number twin_fma(const twin_number *x, const twin_number *y, const twin_number *z, int precision,
                                   twin_way way)
{
    const twin_number product = twin_multiply(x, y), sum = twin_add(&product, z);
    return twin_round(&sum, precision, way);
}

#endif /* TWIN_NUMBER_H */
