/* cpfloat.c - CPFloat's rounding as what check.c checks. It returns binary32 values; here they become codes, exactly.
 * SPDX-License-Identifier: MIT
 *
 * cc -std=gnu11 -O2 -ICPFLOAT/src -IPCG/include -DCHECK_WITH='"with/cpfloat.c"' check.c -o check -lm
 *
 * PCG is CPFloat's submodule deps/pcg-c. Formats are given by precision and exponents, so that all are there, cFP8 too.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

/* Its functions are inline and would ask for PCG's library; static, they ask for nothing. */
#define inline static __inline__
#include <pcg_variants.h>
#undef inline
#include "cpfloat_binary32.h"

typedef struct row {
    int exponent_bits, mantissa_bits, bias, up;
    uint64_t largest, overflow, nan, sign;
} row;

static uint64_t hexadecimal_value(const check_file *file, const char *key)
{
    return strtoull(check_value(file, key), NULL, 16);
}

static bool read_row(const check_file *file, row *r)
{
    r->exponent_bits = (int)check_number(file, "to.exponent_bits", 0);
    r->mantissa_bits = (int)check_number(file, "to.mantissa_bits", 0);
    r->bias = (int)check_number(file, "to.bias", 0);
    r->up = (int)check_number(file, "to.zero_bits_below", 0);
    r->largest = hexadecimal_value(file, "to.largest") >> r->up;
    r->overflow = hexadecimal_value(file, "to.overflow") >> r->up;
    r->nan = hexadecimal_value(file, "to.nan") >> r->up;
    r->sign = (uint64_t)1 << (r->exponent_bits + r->mantissa_bits);
    return r->mantissa_bits > 0; /* E8M0 has no sign and no zero: it is no format of CPFloat's */
}

/* The code of a value that the format has; all ones for one that it does not have. */
static uint64_t code_of(const row *r, float x)
{
    const uint64_t sign = signbit(x) ? r->sign : 0;
    int exponent;
    if (isnan(x)) return r->nan ^ sign;
    if (isinf(x)) return r->overflow | sign;
    double fraction = frexp(fabs((double)x), &exponent);
    if (fraction == 0) return sign;
    int place = exponent - 1 + r->bias;
    if (place < 1) place = 1;
    const double units = ldexp(fraction, exponent + r->mantissa_bits + r->bias - place);
    if (units != floor(units)) return ~(uint64_t)0;
    return (((uint64_t)(place - 1) << r->mantissa_bits) + (uint64_t)units) | sign;
}

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    row r;
    const bool zero = check_is(file, "rounding", "toward_zero"), saturate = check_is(file, "overflow", "saturate");
    const uint32_t bits = (uint32_t)in[0];
    float x, y;
    if (!read_row(file, &r) || (!zero && !check_is(file, "rounding", "nearest_even"))) return CHECK_NOT_MINE;
    memcpy(&x, &bits, sizeof x);
    const int top = (int)(r.largest >> r.mantissa_bits) - r.bias;
    const bool infinity = r.overflow == r.largest + 1 && r.overflow != r.nan;
    optstruct options = { .precision = (cpfloat_precision_t)(r.mantissa_bits + 1),
                          .emin = 1 - r.bias,
                          .emax = top,
                          .explim = CPFLOAT_EXPRANGE_TARG,
                          .infinity = infinity ? CPFLOAT_INF_USE : CPFLOAT_INF_NO,
                          .round = zero ? CPFLOAT_RND_TZ : CPFLOAT_RND_NE,
                          .saturation = saturate || r.overflow == r.largest ? CPFLOAT_SAT_USE : CPFLOAT_SAT_NO,
                          .subnormal = CPFLOAT_SUBN_USE,
                          .flip = CPFLOAT_SOFTERR_NO };
    cpfloatf(&y, &x, 1, &options);
    if (isnan(y) && r.nan >= r.sign) return CHECK_NOT_MINE; /* a format without NaN: no value says which code it is */
    out[0] = code_of(&r, y) << r.up;
    return CHECK_DONE;
}

static const check_operation check_table[] = { { "encode", encode }, { NULL, NULL } };
