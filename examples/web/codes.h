/* codes.h - the codes of a format in the order of their values.
 * SPDX-License-Identifier: MIT
 */
#ifndef WEB_CODES_H
#define WEB_CODES_H

#include <trnmath/trn_format.h>

/* Bits of a code, without those of its container. */
static int code_bits(const trn_format_info *f) { return f->bits - f->low_zeros; }

static bool is_signed(const trn_format_info *f) { return f->kind == TRN_KIND_FLOAT || f->kind == TRN_KIND_SIGNED; }

/* The numbers of a format have ranks, from the least to the greatest; -0 has the rank of 0. Of a NaN, 0. */
static int64_t rank_of(const trn_format_info *f, uint32_t code)
{
    const uint32_t sign = (uint32_t)1 << (code_bits(f) - 1), bare = code >> f->low_zeros;
    if (f->kind == TRN_KIND_FLOAT) return bare & sign ? -(int64_t)(bare & ~sign) : (int64_t)bare;
    return f->kind == TRN_KIND_SIGNED ? (int64_t)(bare ^ sign) - (int64_t)sign : (int64_t)bare;
}

/* false: there is no such number. */
static bool code_of(trn_format format, int64_t rank, uint32_t *code)
{
    const trn_format_info *f = trn_format_info_of(format);
    const trn_format_limits limits = trn_format_limits_of(format);
    const int64_t most = limits.has_infinity ? limits.infinity_code >> f->low_zeros : f->max_code;
    const int64_t least = !is_signed(f) ? 0 : f->kind == TRN_KIND_SIGNED ? -most - 1 : -most;
    if (rank > most || rank < least) return false;
    const bool sign = f->kind == TRN_KIND_FLOAT && rank < 0;
    const uint32_t bare = sign ? (uint32_t)-rank | (uint32_t)1 << (code_bits(f) - 1) : (uint32_t)rank;
    const uint32_t all = code_bits(f) < 32 ? ((uint32_t)1 << code_bits(f)) - 1 : UINT32_MAX;
    *code = (bare & all) << f->low_zeros;
    return true;
}

/* Of an integer format the integer itself; binary32 does not hold all of them. */
static double value_of(trn_format format, uint32_t code)
{
    const trn_format_info *f = trn_format_info_of(format);
    return trn_format_is_integer(format) ? (double)rank_of(f, code) : (double)trn_decode(format, code);
}

#endif /* WEB_CODES_H */
