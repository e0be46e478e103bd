/* array/operand_range.h - the exponents between which numbers lie: may a multiply-add be rounded in two steps?
 * Behind trn_tensor_engine.h trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: looks at an operand's binary32 numbers (of a line, of a packed tile): the exponents of its smallest and largest
 *     non-zero number, whether any is subnormal, how long their significands are; says of two such operands whether
 *     every product of theirs is a binary32 number.
 * DOES NOT: know formats: F32 numbers that happen to be short count as short.
 *
 * Where all products are exact, a multiplication and an addition are the fused multiply-add that defines the array, and
 * need no fused instruction. Infinities and NaNs do no harm: both ways make the same of them.
 *
 * KNOWN FROM: IEEE 754: a product of p and q bits has at most p + q, and one of numbers in [2^d, 2^(d+1)) and
 *     [2^e, 2^(e+1)) lies in [2^(d+e), 2^(d+e+2)).
 */
#ifndef TRNI_ARRAY_OPERAND_RANGE_H
#define TRNI_ARRAY_OPERAND_RANGE_H

#include "../base/cpu.h"

/* What was found so far; all zero = no number, or none but zeros. `most` is the largest magnitude, and 2^31 - `rest`
 * the smallest that is no zero; `any` has the bits that any of them has. */
typedef struct trni_range {
    int32_t most, rest;
    uint32_t any;
} trni_range;

/* Signed maxima: the first vector instructions of x86-64 know how to compare no others. A zero leaves INT32_MIN. */
TRNI_INLINE void trni_range_of_body(const float *x, size_t n, trni_range *r)
{
    int32_t most = r->most, rest = r->rest;
    uint32_t any = r->any;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = trni_bits(x[i]) & ~TRNI_F32_SIGN;
        const int32_t magnitude = (int32_t)u, left = (int32_t)(TRNI_F32_SIGN - u);
        most = magnitude > most ? magnitude : most;
        rest = left > rest ? left : rest;
        any |= u;
    }
    r->most = most;
    r->rest = rest;
    r->any = any;
}

/* Widens r by n numbers. */
#define TRNI_RANGE_PARAMS const float *x, size_t n, trni_range *r
TRNI_KERNEL static void trni_range_of_portable(TRNI_RANGE_PARAMS) { trni_range_of_body(x, n, r); }
#if TRNI_X86
TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_range_of_avx2(TRNI_RANGE_PARAMS) { trni_range_of_body(x, n, r); }
TRNI_DISPATCH_FOR(trni_range_of, (TRNI_RANGE_PARAMS),
                  isa == TRN_ISA_PORTABLE ? trni_range_of_portable : trni_range_of_avx2)
#else
TRNI_DISPATCH_FOR(trni_range_of, (TRNI_RANGE_PARAMS), trni_range_of_portable)
#endif
#undef TRNI_RANGE_PARAMS

/* Has it a number that is no zero? The exponents are those of an operand that has. */
TRNI_FN bool trni_range_is_zero(const trni_range *r) { return r->most == 0; }

/* Of the smallest number but zeros: it is at least 2^this. Of a subnormal one: far below all others. */
enum { TRNI_EXPONENT_SUBNORMAL = -1024 };
TRNI_FN int trni_range_least(const trni_range *r)
{
    const uint32_t smallest = TRNI_F32_SIGN - (uint32_t)r->rest;
    return smallest < 0x00800000u ? (int)TRNI_EXPONENT_SUBNORMAL : (int)(smallest >> 23) - 127;
}

/* Of the largest: it is below 2^(this + 1). 128 with an infinity or a NaN. */
TRNI_FN int trni_range_most(const trni_range *r) { return (int)((uint32_t)r->most >> 23) - 127; }

/* Bits of a significand that holds each of them, the leading one included. */
TRNI_FN int trni_range_digits(const trni_range *r) { return 24 - __builtin_ctz(r->any | 0x00800000u); }

/* Is every product of two numbers, one of each operand, a normal binary32 number, a zero, an infinity or a NaN by
 * itself, and no rounding makes it so? */
TRNI_FN bool trni_products_are_exact(const trni_range *a, const trni_range *b)
{
    if (trni_range_is_zero(a) || trni_range_is_zero(b)) return true;
    return trni_range_digits(a) + trni_range_digits(b) <= 24 && trni_range_least(a) + trni_range_least(b) >= -126 &&
           trni_range_most(a) + trni_range_most(b) <= 126;
}

#endif /* TRNI_ARRAY_OPERAND_RANGE_H */
