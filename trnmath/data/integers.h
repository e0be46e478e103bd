/* data/integers.h - integers of 32 bits to any format with one rounding, of the exact number.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * DOES: contiguous runs at any address, signed or not, to every row of trn_format.h and every cFP8, in all six rounding
 *     modes; to other integers exactly, up to their ends.
 * DOES NOT: go through binary32, as data/cast.h does; use SIMD; draw random bits.
 *
 * How it works: an integer is a significand of up to 32 bits, and the codec rounds those as it does binary32's 24.
 *
 * KNOWN FROM: tests/unit/test_convert_integers.c (against a twin that counts in integers; all 2^32 at level 2).
 */
#ifndef TRNI_DATA_INTEGERS_H
#define TRNI_DATA_INTEGERS_H

#include "cast.h"

/* As trni_encode_scale, which sees 23 bits between two powers of two: what is to be odd is the code, and nearest takes
 * ties up, which the leading one does. */
TRNI_FN uint32_t trni_scale_from_integer(uint32_t significand, uint32_t place, trni_encoding how)
{
    const uint32_t kept = how.how.rounding == TRN_TO_ODD ? place & 1u : 1u;
    return place - kept + trn_round_magnitude(kept << 31 | (significand & 0x7fffffffu), 31, false, how.how);
}

TRNI_FN uint32_t trni_encode_from_integer(const trn_format_info *f, uint32_t magnitude, bool negative,
                                          trni_encoding how)
{
    if (f->kind == TRN_KIND_SIGNED || f->kind == TRN_KIND_UNSIGNED) return trni_encode_whole(f, magnitude, negative);
    if (magnitude == 0 || (negative && f->kind == TRN_KIND_SCALE))
        return trni_encode_row(f, negative ? TRNI_F32_SIGN : 0, how);
    const int left = __builtin_clz(magnitude), place = 31 - left + f->bias;
    const uint32_t significand = magnitude << left;
    if (f->kind == TRN_KIND_SCALE) return trni_scale_from_integer(significand, (uint32_t)place, how);
    const uint32_t code = trni_encode_magnitude(f, significand, 31, place, negative, how);
    return (code | (uint32_t)negative << (f->exponent_bits + f->mantissa_bits)) << f->low_zeros;
}

/* n integers at any address to codes, one element of trn_format_bytes each; dst and src share nothing. field: as
 * trni_encoder_run. */
TRNI_COLD void trni_encoder_integers(const trni_encoder *e, bool is_signed, char *dst, const char *src,
                                     const uint32_t *field, size_t n)
{
    trni_encoding how = e->how;
    for (size_t i = 0; i < n; i++) {
        uint32_t value;
        memcpy(&value, src + i * sizeof value, sizeof value);
        if (field) how.how.random = field[i];
        const bool negative = is_signed && value >> 31;
        const uint32_t code = trni_encode_from_integer(&e->to, negative ? 0 - value : value, negative, how);
        memcpy(dst + i * e->bytes, &code, e->bytes); /* little endian */
    }
}

#endif /* TRNI_DATA_INTEGERS_H */
