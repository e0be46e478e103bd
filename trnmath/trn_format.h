/* trn_format.h - every number format as one row of one table, and the codec that reads the row.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_format.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         uint16_t code = trn_bf16_from_f32(3.14159f);
 *         printf("%s 0x%04x = %.9g\n", trn_format_name(TRN_BF16), code, (double)trn_bf16_to_f32(code));
 *         return trn_encode(TRN_F16, 65536.0f, TRN_NEAREST_EVEN, TRN_SATURATE, 0) == 0x7bff ? 0 : 1;
 *     }
 *
 * DOES: float <-> code for every format of the Trainium engines, by integer arithmetic, with one rounding in any of
 *     the six modes; gradual underflow; canonical NaN with the input's sign.
 * DOES NOT: convert arrays (trn_convert.h), pack sub-byte codes, or read the floating-point environment.
 *
 * CONTENTS
 *     trn_format                           the formats
 *     trn_format_info, trn_format_info_of  the row of one: bits, bias, largest code, NaN, what overflow becomes
 *     trn_format_name, trn_format_from_name  NKI's spelling; NKI's, ml_dtypes' and safetensors' are understood
 *     trn_format_bits, trn_format_bytes    bits of one code; bytes of one array element
 *     trn_decode, trn_encode               any format
 *     trn_<format>_from_f32, trn_<format>_to_f32   bf16 f16 tf32 f8_e4m3 f8_e4m3fn f8_e5m2 f8_e3m4
 *
 * Codes of sign-exponent-mantissa formats, E exponent and M mantissa bits:
 *
 *     | s | e e … e | m m … m |      value = (-1)^s · 2^(e - bias) · (1 + m/2^M),   e > 0
 *           E bits     M bits              = (-1)^s · 2^(1 - bias) · (m/2^M),       e = 0
 *
 * TF32 lives in a 32-bit container: those 19 bits on top, 13 zero bits below.
 *
 * KNOWN FROM: OCP MX v1.0 and OCP OFP8 (E4M3FN, E5M2, E8M0, FP6, FP4); AWS Neuron data types and NKI dtype pages
 *     (E4M3 of Trainium1/2 has infinities and ends at 240, documented); tests/golden (ml_dtypes, MPFR, a table walk).
 */
#ifndef TRN_FORMAT_H
#define TRN_FORMAT_H

#include "trn_base.h"
#include "trn_round.h"

typedef enum trn_format {
    TRN_FORMAT_UNSET = 0,
    TRN_F32,
    TRN_TF32, /* 32-bit container, low 13 bits zero */
    TRN_BF16,
    TRN_F16,
    TRN_F8_E4M3,   /* Neuron's: IEEE-like, infinities, max 240 */
    TRN_F8_E4M3FN, /* OCP: no infinity, max 448 */
    TRN_F8_E5M2,
    TRN_F8_E3M4,
    TRN_F8_E8M0, /* the MX scale, 2^(code-127), 0xff = NaN */
    TRN_F6_E2M3, /* FP6 and FP4: one code per byte in arrays, in the low bits */
    TRN_F6_E3M2,
    TRN_F4_E2M1,
    TRN_I8,
    TRN_U8,
    TRN_I16,
    TRN_U16,
    TRN_I32,
    TRN_U32,
    TRN_CFP8 /* configurable FP8 of Trainium1; as a bare format: 4 exponent bits, bias 7 */
} trn_format;
enum { TRNI_FORMAT_COUNT = TRN_CFP8 + 1 };

typedef enum trni_class { TRNI_CLASS_NONE = 0, TRNI_CLASS_FLOAT, TRNI_CLASS_SCALE, TRNI_CLASS_SIGNED, TRNI_CLASS_UNSIGNED } trni_class;

typedef struct trn_format_info {
    const char *name;
    trni_class kind;
    int bits;          /* of one code; TF32: of its container */
    int exponent_bits; /* E */
    int mantissa_bits; /* M */
    int bias;
    int low_zeros;          /* zero bits below the code in its container: 13 for TF32 */
    uint32_t max_code;      /* largest finite magnitude */
    uint32_t overflow_code; /* what overflow and infinity become: infinity, NaN or the maximum */
    uint32_t nan_code;      /* for a positive NaN; a negative one has the sign bit flipped */
} trn_format_info;

TRNI_FN const trn_format_info *trn_format_info_of(trn_format format)
{
    static const trn_format_info row[TRNI_FORMAT_COUNT] = { /* in the order of the enum */
        /* name, kind, bits, E, M, bias, low zeros, largest code, what overflow becomes, NaN */
        /* TRN_FORMAT_UNSET */ { "unset", TRNI_CLASS_NONE, 0, 0, 0, 0, 0, 0, 0, 0 },
        /* TRN_F32 */ { "float32", TRNI_CLASS_FLOAT, 32, 8, 23, 127, 0, 0x7f7fffff, 0x7f800000, 0x7fc00000 },
        /* TRN_TF32 */ { "tfloat32", TRNI_CLASS_FLOAT, 32, 8, 10, 127, 13, 0x3fbff, 0x3fc00, 0x3fe00 },
        /* TRN_BF16 */ { "bfloat16", TRNI_CLASS_FLOAT, 16, 8, 7, 127, 0, 0x7f7f, 0x7f80, 0x7fc0 },
        /* TRN_F16 */ { "float16", TRNI_CLASS_FLOAT, 16, 5, 10, 15, 0, 0x7bff, 0x7c00, 0x7e00 },
        /* TRN_F8_E4M3 */ { "float8_e4m3", TRNI_CLASS_FLOAT, 8, 4, 3, 7, 0, 0x77, 0x78, 0x7c },
        /* TRN_F8_E4M3FN */ { "float8_e4m3fn", TRNI_CLASS_FLOAT, 8, 4, 3, 7, 0, 0x7e, 0x7f, 0x7f },
        /* TRN_F8_E5M2 */ { "float8_e5m2", TRNI_CLASS_FLOAT, 8, 5, 2, 15, 0, 0x7b, 0x7c, 0x7e },
        /* TRN_F8_E3M4 */ { "float8_e3m4", TRNI_CLASS_FLOAT, 8, 3, 4, 3, 0, 0x6f, 0x70, 0x78 },
        /* TRN_F8_E8M0 */ { "float8_e8m0fnu", TRNI_CLASS_SCALE, 8, 8, 0, 127, 0, 0xfe, 0xff, 0xff },
        /* TRN_F6_E2M3 */ { "float6_e2m3fn", TRNI_CLASS_FLOAT, 6, 2, 3, 1, 0, 0x1f, 0x1f, 0x20 },
        /* TRN_F6_E3M2 */ { "float6_e3m2fn", TRNI_CLASS_FLOAT, 6, 3, 2, 3, 0, 0x1f, 0x1f, 0x20 },
        /* TRN_F4_E2M1 */ { "float4_e2m1fn", TRNI_CLASS_FLOAT, 4, 2, 1, 1, 0, 0x7, 0x7, 0x8 },
        /* TRN_I8 */ { "int8", TRNI_CLASS_SIGNED, 8, 0, 0, 0, 0, 0x7f, 0x7f, 0 },
        /* TRN_U8 */ { "uint8", TRNI_CLASS_UNSIGNED, 8, 0, 0, 0, 0, 0xff, 0xff, 0 },
        /* TRN_I16 */ { "int16", TRNI_CLASS_SIGNED, 16, 0, 0, 0, 0, 0x7fff, 0x7fff, 0 },
        /* TRN_U16 */ { "uint16", TRNI_CLASS_UNSIGNED, 16, 0, 0, 0, 0, 0xffff, 0xffff, 0 },
        /* TRN_I32 */ { "int32", TRNI_CLASS_SIGNED, 32, 0, 0, 0, 0, 0x7fffffff, 0x7fffffff, 0 },
        /* TRN_U32 */ { "uint32", TRNI_CLASS_UNSIGNED, 32, 0, 0, 0, 0, 0xffffffff, 0xffffffff, 0 },
        /* TRN_CFP8 */ { "cfp8", TRNI_CLASS_FLOAT, 8, 4, 3, 7, 0, 0x77, 0x78, 0x7c },
    };
    return &row[(unsigned)format < TRNI_FORMAT_COUNT ? (int)format : (int)TRN_FORMAT_UNSET];
}

TRNI_FN const char *trn_format_name(trn_format format) { return trn_format_info_of(format)->name; }
TRNI_FN int trn_format_bits(trn_format format) { return trn_format_info_of(format)->bits; }
TRNI_FN size_t trn_format_bytes(trn_format format) { return ((size_t)trn_format_bits(format) + 7) / 8; }
TRNI_FN bool trni_format_valid(trn_format format) { return trn_format_info_of(format)->kind != TRNI_CLASS_NONE; }

/* Exact case. Beware of one false friend: NKI's and ml_dtypes' "float8_e4m3" is the format that ends at 240, while
 * safetensors' "F8_E4M3" is OCP's, which ends at 448. TRN_FORMAT_UNSET when unknown. */
TRNI_FN trn_format trn_format_from_name(const char *name)
{
    static const struct { const char *name; trn_format format; } alias[] = {
        { "F32", TRN_F32 },         { "tf32", TRN_TF32 },       { "BF16", TRN_BF16 },       { "F16", TRN_F16 },
        { "F8_E4M3", TRN_F8_E4M3FN }, { "F8_E5M2", TRN_F8_E5M2 }, { "F8_E8M0", TRN_F8_E8M0 }, { "F4", TRN_F4_E2M1 },
        { "I8", TRN_I8 },           { "U8", TRN_U8 },           { "I16", TRN_I16 },         { "U16", TRN_U16 },
        { "I32", TRN_I32 },         { "U32", TRN_U32 },
    };
    if (!name) return TRN_FORMAT_UNSET;
    for (int i = 1; i < TRNI_FORMAT_COUNT; i++)
        if (strcmp(name, trn_format_name((trn_format)i)) == 0) return (trn_format)i;
    for (unsigned i = 0; i < sizeof alias / sizeof alias[0]; i++)
        if (strcmp(name, alias[i].name) == 0) return alias[i].format;
    return TRN_FORMAT_UNSET;
}

/* ---- decoding ---- */

TRNI_FN uint32_t trni_decode_float(const trn_format_info *f, uint32_t code)
{
    const int E = f->exponent_bits, M = f->mantissa_bits;
    code >>= f->low_zeros;
    const uint32_t magnitude = code & ((1u << (E + M)) - 1), sign = (code >> (E + M) & 1u) << 31;
    if (magnitude > f->max_code)
        return sign | (magnitude == f->overflow_code && f->overflow_code != f->nan_code ? TRNI_F32_INF : TRNI_F32_NAN);

    int exponent = (int)(magnitude >> M);
    uint32_t mantissa = (magnitude & ((1u << M) - 1)) << (23 - M);
    if (exponent == 0) {
        if (mantissa == 0 || f->bias == 127) return sign | mantissa; /* zero, or a subnormal of binary32 too */
        exponent = 1;
        while (!(mantissa & 0x800000u)) { /* binary32 has room to normalise it */
            mantissa <<= 1;
            exponent--;
        }
        mantissa &= 0x7fffffu;
    }
    return sign | (uint32_t)(exponent - f->bias + 127) << 23 | mantissa;
}

TRNI_FN float trni_decode_scale(uint32_t code)
{
    code &= 0xff;
    if (code == 0xff) return trni_float(TRNI_F32_NAN);
    return trni_float(code ? code << 23 : 0x00400000u); /* 2^-127 is a binary32 subnormal */
}

TRNI_FN float trni_decode_integer(const trn_format_info *f, uint32_t code)
{
    const uint32_t mask = f->bits == 32 ? 0xffffffffu : (1u << f->bits) - 1, sign = 1u << (f->bits - 1);
    code &= mask;
    if (f->kind == TRNI_CLASS_SIGNED && (code & sign)) return (float)((int64_t)code - (int64_t)mask - 1);
    return (float)code; /* through binary32: magnitudes above 2^24 round to nearest even, as on the chip */
}

/* The value of a code, exact. F32 keeps NaN payloads; every other NaN comes back as 7fc00000 or ffc00000. Bits above
 * the format's are ignored. NaN for a format that does not exist. */
TRNI_FN float trn_decode(trn_format format, uint32_t code)
{
    const trn_format_info *f = trn_format_info_of(format);
    if (format == TRN_F32) return trni_float(code);
    switch (f->kind) {
    case TRNI_CLASS_FLOAT: return trni_float(trni_decode_float(f, code));
    case TRNI_CLASS_SCALE: return trni_decode_scale(code);
    case TRNI_CLASS_SIGNED:
    case TRNI_CLASS_UNSIGNED: return trni_decode_integer(f, code);
    case TRNI_CLASS_NONE:
    default: return trni_float(TRNI_F32_NAN);
    }
}

/* ---- encoding ---- */

typedef struct trni_encoding {
    trn_rounder how;
    trn_overflow overflow;
    bool sr_carry_to_inf; /* stochastic: may a value between the maximum and the next step leave the range? */
} trni_encoding;

/* Overflow of a finite magnitude whose truncation is `toward_zero`. */
TRNI_FN uint32_t trni_overflow_code(const trn_format_info *f, uint32_t toward_zero, bool negative, trni_encoding how)
{
    bool stop = how.overflow == TRN_SATURATE;
    switch (how.how.rounding) {
    case TRN_TOWARD_ZERO:
    case TRN_TO_ODD: stop = true; break;
    case TRN_TOWARD_POSITIVE: stop = stop || negative; break;
    case TRN_TOWARD_NEGATIVE: stop = stop || !negative; break;
    case TRN_STOCHASTIC: stop = stop || (toward_zero <= f->max_code && !how.sr_carry_to_inf); break;
    case TRN_NEAREST_EVEN:
    default: break;
    }
    return stop ? f->max_code : f->overflow_code;
}

TRNI_FN uint32_t trni_encode_float(const trn_format_info *f, uint32_t bits, trni_encoding how)
{
    const int E = f->exponent_bits, M = f->mantissa_bits;
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    const bool negative = bits >> 31;
    const uint32_t sign = (uint32_t)negative << (E + M);
    uint32_t code;

    if (magnitude > TRNI_F32_INF) {
        code = f->nan_code ^ sign;
    } else if (magnitude == TRNI_F32_INF) {
        code = f->overflow_code | sign;
    } else {
        int exponent = (int)(magnitude >> 23);
        uint32_t significand = magnitude & 0x7fffffu;
        if (exponent) significand |= 0x800000u;
        else exponent = 1;

        int place = exponent - 127 + f->bias, shift = 23 - M; /* place: the exponent field of the result */
        if (place < 1) {
            shift += 1 - place;
            place = 1;
        }
        const uint32_t base = (uint32_t)(place - 1) << M; /* a significand that carries runs into the exponent */
        code = base + trn_round_magnitude(significand, shift, negative, how.how);
        if (code > f->max_code)
            code = trni_overflow_code(f, base + (shift < 32 ? significand >> shift : 0), negative, how);
        code |= sign;
    }
    return code << f->low_zeros;
}

/* E8M0 has powers of two only: the fraction is the position between two of them. Nearest takes ties up; there is no
 * zero and no sign, so those become NaN, or the smallest scale when saturating. */
TRNI_FN uint32_t trni_encode_scale(uint32_t bits, trni_encoding how)
{
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    if (magnitude >= TRNI_F32_INF) return 0xff;
    if (bits == 0 || bits >> 31) return how.overflow == TRN_SATURATE ? 0x00 : 0xff;
    uint32_t position = magnitude;
    if (magnitude < 0x00800000u) position = magnitude > 0x00400000u ? (magnitude - 0x00400000u) << 1 : 0;
    const uint32_t code = how.how.rounding == TRN_NEAREST_EVEN ? (position + 0x00400000u) >> 23
                                                               : trn_round_magnitude(position, 23, false, how.how);
    return code <= 0xfe ? code : trni_overflow_code(trn_format_info_of(TRN_F8_E8M0), position >> 23, false, how);
}

/* Always saturating; NaN becomes 0. */
TRNI_FN uint32_t trni_encode_integer(const trn_format_info *f, uint32_t bits, trni_encoding how)
{
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    const bool negative = bits >> 31;
    const uint64_t top = f->max_code, bottom = f->kind == TRNI_CLASS_SIGNED ? top + 1 : 0;
    const uint64_t limit = negative ? bottom : top;
    if (magnitude > TRNI_F32_INF) return 0;

    const int exponent = (int)(magnitude >> 23);
    const uint32_t significand = exponent ? (magnitude & 0x7fffffu) | 0x800000u : magnitude;
    uint64_t whole = limit;
    if (exponent < 150) whole = trn_round_magnitude(significand, 150 - (exponent ? exponent : 1), negative, how.how);
    else if (exponent < 150 + 16) whole = (uint64_t)significand << (exponent - 150);
    if (whole > limit) whole = limit;
    const uint64_t code = negative ? 0 - whole : whole;
    return (uint32_t)code & (f->bits == 32 ? 0xffffffffu : (1u << f->bits) - 1);
}

TRNI_FN uint32_t trni_encode_how(trn_format format, uint32_t bits, trni_encoding how)
{
    const trn_format_info *f = trn_format_info_of(format);
    if (format == TRN_F32) return bits;
    switch (f->kind) {
    case TRNI_CLASS_FLOAT: return trni_encode_float(f, bits, how);
    case TRNI_CLASS_SCALE: return trni_encode_scale(bits, how);
    case TRNI_CLASS_SIGNED:
    case TRNI_CLASS_UNSIGNED: return trni_encode_integer(f, bits, how);
    case TRNI_CLASS_NONE:
    default: return 0;
    }
}

/* The code nearest to x in the sense of `rounding`; `random` is used by TRN_STOCHASTIC only (all 32 bits of it).
 * F32 returns the bits of x unchanged; 0 for a format that does not exist. */
TRNI_FN uint32_t trn_encode(trn_format format, float x, trn_rounding rounding, trn_overflow overflow, uint32_t random)
{
    const trni_encoding how = { { rounding, random, 32 }, overflow, false };
    return trni_encode_how(format, trni_bits(x), how);
}

/* ---- typed codecs: nearest even, overflow as the format has it ---- */

/* Adding 0x7fff, plus one when the kept part is odd, carries exactly when nearest even rounds up; the carry of the
 * largest finite number runs into infinity by itself. */
TRNI_INLINE uint16_t trni_bf16_from_bits(uint32_t u)
{
    const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    const uint32_t nan = (u >> 16 & 0x8000u) | 0x7fc0u;
    return (uint16_t)(trni_is_nan_bits(u) ? nan : rounded);
}

TRNI_FN uint16_t trn_bf16_from_f32(float x) { return trni_bf16_from_bits(trni_bits(x)); }

#define TRNI_FROM(name, code_t, format) \
    TRNI_FN code_t trn_##name##_from_f32(float x) { return (code_t)trn_encode(format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0); }
#define TRNI_TO(name, code_t, format) \
    TRNI_FN float trn_##name##_to_f32(code_t code) { return trn_decode(format, code); }

TRNI_FROM(f16, uint16_t, TRN_F16)
TRNI_FROM(tf32, uint32_t, TRN_TF32)
TRNI_FROM(f8_e4m3, uint8_t, TRN_F8_E4M3)
TRNI_FROM(f8_e4m3fn, uint8_t, TRN_F8_E4M3FN)
TRNI_FROM(f8_e5m2, uint8_t, TRN_F8_E5M2)
TRNI_FROM(f8_e3m4, uint8_t, TRN_F8_E3M4)
TRNI_TO(bf16, uint16_t, TRN_BF16)
TRNI_TO(f16, uint16_t, TRN_F16)
TRNI_TO(tf32, uint32_t, TRN_TF32)
TRNI_TO(f8_e4m3, uint8_t, TRN_F8_E4M3)
TRNI_TO(f8_e4m3fn, uint8_t, TRN_F8_E4M3FN)
TRNI_TO(f8_e5m2, uint8_t, TRN_F8_E5M2)
TRNI_TO(f8_e3m4, uint8_t, TRN_F8_E3M4)
#undef TRNI_FROM
#undef TRNI_TO

#endif /* TRN_FORMAT_H */
