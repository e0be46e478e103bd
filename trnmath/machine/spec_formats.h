/* machine/spec_formats.h - which formats the engines of each generation have, and which may meet in a product.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 *
 * DOES: reads the columns Trn1, Trn2 and Trn3 of the table in trn_format.h; says once what follows from them.
 */
#ifndef TRNI_MACHINE_SPEC_FORMATS_H
#define TRNI_MACHINE_SPEC_FORMATS_H

#include "../number/format.h"

/* ---- what engines do with a format ---- */

typedef enum trni_rate {
    TRNI_RATE_ABSENT = 0, /* no engine has it */
    TRNI_RATE_HELD,       /* engines have it, but TensorE does not multiply it */
    TRNI_RATE_F32,
    TRNI_RATE_BF16,
    TRNI_RATE_F8,
    TRNI_RATE_MX,
    TRNI_RATE_INT8,
    TRNI_RATE_COUNT
} trni_rate;

/* On Trainium1, 2 and 3. */
typedef struct trni_rates {
    unsigned char of[3]; /* trni_rate */
} trni_rates;

TRNI_FN const trni_rates *trni_rates_of(trn_format format)
{
#define TRNI_X(id, name, safetensors, ocp, words, kind, bits, e, m, bias, zeros, largest, overflow, nan, t1, t2, t3)   \
    { { TRNI_RATE_##t1, TRNI_RATE_##t2, TRNI_RATE_##t3 } },
    static const trni_rates row[TRN_FORMAT_COUNT] = { { { 0, 0, 0 } }, TRNI_FORMATS(TRNI_X) };
#undef TRNI_X
    return &row[(unsigned)format < TRN_FORMAT_COUNT ? (int)format : (int)TRN_FORMAT_UNSET];
}

/* On Trainium3 alone; nowhere. */
TRNI_FN bool trni_holds_newly(trn_format format)
{
    const trni_rates *r = trni_rates_of(format);
    return r->of[2] && !r->of[0] && !r->of[1];
}

TRNI_FN bool trni_holds_never(trn_format format)
{
    const trni_rates *r = trni_rates_of(format);
    return !r->of[0] && !r->of[1] && !r->of[2];
}

/* Does Trainium3 multiply it, and Trainium2, the default, not? */
TRNI_FN bool trni_multiplies_newly(trn_format format)
{
    const trni_rates *r = trni_rates_of(format);
    return r->of[2] > TRNI_RATE_HELD && r->of[1] <= TRNI_RATE_HELD;
}

/* Under block scales: nc_matmul_mx takes these and no others (documented). */
TRNI_FN bool trni_is_mx_operand(trn_format format) { return trni_rates_of(format)->of[2] == TRNI_RATE_MX; }

TRNI_FN bool trni_is_mx_fp8(trn_format format) { return trni_is_mx_operand(format) && trn_format_bits(format) == 8; }

/* ---- which formats may meet in a product ---- */

typedef enum trni_operand_kind {
    TRNI_OPERAND_NONE = 0,
    TRNI_OPERAND_WIDE,   /* 32 bits */
    TRNI_OPERAND_NARROW, /* 16 and 8 bits */
    TRNI_OPERAND_INT8,
    TRNI_OPERAND_TINY /* under block scales only */
} trni_operand_kind;

TRNI_FN trni_operand_kind trni_operand_kind_of(trn_format format)
{
    const int bits = trn_format_bits(format);
    const trni_rates *r = trni_rates_of(format);
    if ((r->of[0] | r->of[1] | r->of[2]) <= TRNI_RATE_HELD) return TRNI_OPERAND_NONE;
    if (trn_format_is_integer(format)) return TRNI_OPERAND_INT8;
    return bits == 32 ? TRNI_OPERAND_WIDE : bits >= 8 ? TRNI_OPERAND_NARROW : TRNI_OPERAND_TINY;
}

TRNI_FN bool trni_is_fp8(trn_format format)
{
    return trni_operand_kind_of(format) == TRNI_OPERAND_NARROW && trn_format_bits(format) == 8;
}

TRNI_FN bool trni_are_both_e4m3(trn_format a, trn_format b)
{
    return (a == TRN_F8_E4M3 && b == TRN_F8_E4M3FN) || (a == TRN_F8_E4M3FN && b == TRN_F8_E4M3);
}

/* 32-bit formats meet 32-bit ones, narrow ones narrow ones, int8 itself; the two E4M3 do not meet (documented). Block
 * scales belong to narrow formats and tiny ones, which meet. */
TRNI_FN bool trni_may_meet(trn_format a, trn_format b)
{
    const trni_operand_kind is[2] = { trni_operand_kind_of(a), trni_operand_kind_of(b) };
    const bool narrow[2] = { is[0] == TRNI_OPERAND_NARROW || is[0] == TRNI_OPERAND_TINY,
                             is[1] == TRNI_OPERAND_NARROW || is[1] == TRNI_OPERAND_TINY };
    return (is[0] == is[1] || (narrow[0] && narrow[1])) && !trni_are_both_e4m3(a, b);
}

#endif /* TRNI_MACHINE_SPEC_FORMATS_H */
