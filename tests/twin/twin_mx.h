/* twin_mx.h - the slow twin of block scaling: exact numbers, the scale by definition or by search, one rounding.
 * SPDX-License-Identifier: MIT
 *
 * Written from OCP MX 1.0 and the design's semantics. Shares nothing with trnmath/: v/X is an exact product with a
 * power of two in the wide fixed point of twin_number.h, and "the smallest power of two with amax/X <= maximum" is
 * found by trying all of them.
 */
#ifndef TWIN_MX_H
#define TWIN_MX_H

#include "twin/twin_number.h"

enum { TWIN_MX_BLOCK = 32 };

typedef enum twin_mx_rule {
    TWIN_MX_DOUBLED,
    TWIN_MX_FLOOR,
    TWIN_MX_FITS,
    TWIN_MX_EVEN,
    TWIN_MX_CEIL,
    TWIN_MX_RULES
} twin_mx_rule;

/* An element format, as OCP's table has it. int8 codes count 64ths. */
typedef struct twin_mx_element {
    int format; /* of twin_formats */
    int emax;
    int point;  /* binary digits below the point of an integer code */
    int digits; /* of a significand, below its point */
} twin_mx_element;

enum { TWIN_MX_ELEMENTS = 6 };
static const twin_mx_element twin_mx_elements[TWIN_MX_ELEMENTS] = {
    { TWIN_E4M3FN, 8, 0, 3 }, { TWIN_E5M2, 15, 0, 2 }, { TWIN_E2M3, 2, 0, 3 },
    { TWIN_E3M2, 4, 0, 2 },   { TWIN_E2M1, 2, 0, 1 },  { TWIN_I8, 0, 6, 6 },
};

static inline twin_number twin_mx_power(int exponent) { return twin_make(false, 1, exponent); }

static inline twin_number twin_mx_scaled(const twin_number *x, int exponent)
{
    const twin_number power = twin_mx_power(exponent);
    return twin_multiply(x, &power);
}

/* The largest magnitude an element may have. */
static inline twin_number twin_mx_maximum(const twin_mx_element *e)
{
    if (e->point) return twin_make(false, 127, -e->point);
    return twin_decode(&twin_formats[e->format], twin_max_code(&twin_formats[e->format]));
}

static inline int twin_mx_clamp(int exponent) { return exponent < -127 ? -127 : exponent > 127 ? 127 : exponent; }

/* floor(log2 of amax rounded at the element's digits): the next power of two from 2^(e+1) - 2^(e - digits - 1) on, the
 * number half way between it and the last one with those digits, which is odd. */
static inline int twin_mx_even(const twin_number *most, int digits)
{
    const int exponent = twin_exponent(most);
    const twin_number half_way = twin_make(false, ((uint64_t)1 << (digits + 2)) - 1, exponent - digits - 1);
    return exponent + (twin_compare_magnitude(most, &half_way) >= 0);
}

static inline int twin_mx_ceil(const twin_number *most)
{
    const twin_number power = twin_mx_power(twin_exponent(most));
    return twin_exponent(most) + (twin_compare_magnitude(most, &power) > 0);
}

/* The E8M0 code of a block. */
static inline uint32_t twin_mx_scale(const twin_mx_element *e, twin_mx_rule rule, const twin_number *block)
{
    const twin_number *most = block;
    for (int i = 0; i < TWIN_MX_BLOCK; i++) {
        if (block[i].kind != TWIN_FINITE) return 0xff;
        if (twin_compare_magnitude(&block[i], most) > 0) most = &block[i];
    }
    if (twin_is_zero(most)) return 0;
    if (rule == TWIN_MX_EVEN) return (uint32_t)(twin_mx_clamp(twin_mx_even(most, e->digits) - e->emax) + 127);
    if (rule == TWIN_MX_CEIL) return (uint32_t)(twin_mx_clamp(twin_mx_ceil(most) - e->emax) + 127);
    if (rule != TWIN_MX_FITS)
        return (uint32_t)(twin_mx_clamp(twin_exponent(most) - e->emax + (rule == TWIN_MX_DOUBLED)) + 127);
    const twin_number maximum = twin_mx_maximum(e);
    for (int exponent = -127; exponent <= 127; exponent++) {
        const twin_number limit = twin_mx_scaled(&maximum, exponent);
        if (twin_compare_magnitude(most, &limit) <= 0) return (uint32_t)(exponent + 127);
    }
    return 254;
}

/* The code of one element of a block with that scale; way.saturate is taken as set. */
static inline uint32_t twin_mx_encode(const twin_mx_element *e, uint32_t scale, const twin_number *x, twin_way way)
{
    if (scale == 0xff) return 0;
    const twin_number divided = twin_mx_scaled(x, 127 - (int)scale + e->point);
    way.saturate = true;
    const uint32_t code = twin_encode(&twin_formats[e->format], &divided, way);
    return e->point && code == 0x80 ? 0x81 : code; /* -128 is not used */
}

/* The exact value of a code under a scale. */
static inline twin_number twin_mx_decode(const twin_mx_element *e, uint32_t scale, uint32_t code)
{
    twin_number x = twin_decode(&twin_formats[e->format], code);
    if (scale == 0xff) return twin_nan();
    return x.kind == TWIN_FINITE ? twin_mx_scaled(&x, (int)scale - 127 - e->point) : x;
}

#endif /* TWIN_MX_H */
