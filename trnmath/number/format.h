/* number/format.h - the table of number formats, a row each, and the codec that reads a row.
 * A part of trn_format.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NUMBER_FORMAT_H
#define TRNI_NUMBER_FORMAT_H

#include "round.h"

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
    TRN_CFP8 /* configurable FP8 of Trainium1 (trn_cfp8); as a bare format: 4 exponent bits, bias 7 */
} trn_format;

/* ---- the table: all that is known of each format ----
 *
 * X(id, name, safetensors, OCP, spellings, kind, bits, E, M, bias, zeros, largest, overflow, NaN, Trn1, Trn2, Trn3)
 *
 *     id                  TRN_<id>; rows stand in the order of the enumeration
 *     name ... NaN        the fields of trn_format_info; what has a name of OCP's is an element of MX, or a scale
 *     spellings           what trn_format_read understands beside names: words with a space between
 *     Trn1, Trn2, Trn3    what the engines of a generation do with it:
 *         F32 BF16 F8 MX INT8     TensorE multiplies it, as fast as these; MX: under block scales (nc_matmul_mx)
 *         HELD                    no product, but engines read and write it
 *         ABSENT                  no engine has it
 *
 * Generations are documented, but for E3M4 and configurable FP8 of Trainium3, of which its pages say nothing. That
 * Trainium2 multiplies E3M4 no faster than BF16 is a footnote of its guide. */
/* clang-format off */
#define TRNI_FORMATS(X)                                                                                                \
    X(F32, "float32", "F32", "", "f32 fp32",                                                                           \
      FLOAT, 32, 8, 23, 127, 0, 0x7f7fffff, 0x7f800000, 0x7fc00000, F32, F32, F32)                                     \
    X(TF32, "tfloat32", "", "", "",                                                                                    \
      FLOAT, 32, 8, 10, 127, 13, 0x3fbff, 0x3fc00, 0x3fe00, BF16, BF16, BF16)                                          \
    X(BF16, "bfloat16", "BF16", "", "bf16",                                                                            \
      FLOAT, 16, 8, 7, 127, 0, 0x7f7f, 0x7f80, 0x7fc0, BF16, BF16, BF16)                                               \
    X(F16, "float16", "F16", "", "f16 fp16 half",                                                                      \
      FLOAT, 16, 5, 10, 15, 0, 0x7bff, 0x7c00, 0x7e00, BF16, BF16, BF16)                                               \
    X(F8_E4M3, "float8_e4m3", "", "", "e4m3",                                                                          \
      FLOAT, 8, 4, 3, 7, 0, 0x77, 0x78, 0x7c, F8, F8, F8)                                                              \
    X(F8_E4M3FN, "float8_e4m3fn", "F8_E4M3", "FP8 E4M3", "e4m3fn fp8_e4m3fn",                                          \
      FLOAT, 8, 4, 3, 7, 0, 0x7e, 0x7f, 0x7f, ABSENT, ABSENT, MX)                                                      \
    X(F8_E5M2, "float8_e5m2", "F8_E5M2", "FP8 E5M2", "e5m2 fp8_e5m2",                                                  \
      FLOAT, 8, 5, 2, 15, 0, 0x7b, 0x7c, 0x7e, F8, F8, MX)                                                             \
    X(F8_E3M4, "float8_e3m4", "", "", "e3m4 fp8_e3m4",                                                                 \
      FLOAT, 8, 3, 4, 3, 0, 0x6f, 0x70, 0x78, F8, BF16, ABSENT)                                                        \
    X(F8_E8M0, "float8_e8m0fnu", "F8_E8M0", "E8M0", "e8m0 ue8m0 float8_e8m0",                                          \
      SCALE, 8, 8, 0, 127, 0, 0xfe, 0xff, 0xff, ABSENT, ABSENT, HELD)                                                  \
    X(F6_E2M3, "float6_e2m3fn", "F6_E2M3", "FP6 E2M3", "e2m3 float6_e2m3",                                             \
      FLOAT, 6, 2, 3, 1, 0, 0x1f, 0x1f, 0x20, ABSENT, ABSENT, ABSENT)                                                  \
    X(F6_E3M2, "float6_e3m2fn", "F6_E3M2", "FP6 E3M2", "e3m2 float6_e3m2",                                             \
      FLOAT, 6, 3, 2, 3, 0, 0x1f, 0x1f, 0x20, ABSENT, ABSENT, ABSENT)                                                  \
    X(F4_E2M1, "float4_e2m1fn", "F4", "FP4 E2M1", "e2m1 fp4 float4_e2m1",                                              \
      FLOAT, 4, 2, 1, 1, 0, 0x7, 0x7, 0x8, ABSENT, ABSENT, MX)                                                         \
    X(I8, "int8", "I8", "INT8", "i8",                                                                                  \
      SIGNED, 8, 0, 0, 0, 0, 0x7f, 0x7f, 0, INT8, HELD, HELD)                                                          \
    X(U8, "uint8", "U8", "", "u8",                                                                                     \
      UNSIGNED, 8, 0, 0, 0, 0, 0xff, 0xff, 0, HELD, HELD, HELD)                                                        \
    X(I16, "int16", "I16", "", "i16",                                                                                  \
      SIGNED, 16, 0, 0, 0, 0, 0x7fff, 0x7fff, 0, HELD, HELD, HELD)                                                     \
    X(U16, "uint16", "U16", "", "u16",                                                                                 \
      UNSIGNED, 16, 0, 0, 0, 0, 0xffff, 0xffff, 0, HELD, HELD, HELD)                                                   \
    X(I32, "int32", "I32", "", "i32",                                                                                  \
      SIGNED, 32, 0, 0, 0, 0, 0x7fffffff, 0x7fffffff, 0, HELD, HELD, HELD)                                             \
    X(U32, "uint32", "U32", "", "u32",                                                                                 \
      UNSIGNED, 32, 0, 0, 0, 0, 0xffffffff, 0xffffffff, 0, HELD, HELD, HELD)                                           \
    X(CFP8, "cfp8", "", "", "",                                                                                        \
      FLOAT, 8, 4, 3, 7, 0, 0x77, 0x78, 0x7c, F8, F8, ABSENT)
/* clang-format on */

#define TRNI_ONE_MORE(...) +1
enum { TRN_FORMAT_COUNT = 1 TRNI_FORMATS(TRNI_ONE_MORE) }; /* with TRN_FORMAT_UNSET */
#undef TRNI_ONE_MORE

typedef enum trn_format_kind {
    TRN_KIND_NONE = 0,
    TRN_KIND_FLOAT,
    TRN_KIND_SCALE,
    TRN_KIND_SIGNED,
    TRN_KIND_UNSIGNED
} trn_format_kind;

typedef struct trn_format_info {
    const char *name;        /* NKI's, and ml_dtypes' where it has the format (all but TF32 and cFP8) */
    const char *safetensors; /* or "" */
    const char *ocp;         /* or "" */
    trn_format_kind kind;
    int bits;          /* of one code; TF32: of its container */
    int exponent_bits; /* E */
    int mantissa_bits; /* M */
    int bias;
    int low_zeros;          /* zero bits below the code in its container: 13 for TF32 */
    uint32_t max_code;      /* largest finite magnitude */
    uint32_t overflow_code; /* what overflow and infinity become: infinity, NaN or the maximum */
    uint32_t nan_code;      /* for a positive NaN; a negative one has the sign bit flipped */
} trn_format_info;

/* The row of a format; "unset" and zeros for one that does not exist. Never NULL. */
TRN_API const trn_format_info *trn_format_info_of(trn_format format);

/* NKI's name; bits of one code; bytes that a code takes in an array (6 and 4 bits: 1). "unset" and 0 for no format. */
TRN_API const char *trn_format_name(trn_format format);
TRN_API int trn_format_bits(trn_format format);
TRN_API size_t trn_format_bytes(trn_format format);
TRN_API bool trn_format_is_float(trn_format format); /* a sign, an exponent and a mantissa: not E8M0 */
TRN_API bool trn_format_is_integer(trn_format format);

/* Exact case. Beware of one false friend: NKI's and ml_dtypes' "float8_e4m3" is the format that ends at 240, while
 * safetensors' "F8_E4M3" is OCP's, which ends at 448. TRN_FORMAT_UNSET when unknown. */
TRN_API trn_format trn_format_from_name(const char *name);

/* The same, and the other spellings that people write: "bf16", "fp16", "e4m3fn", "torch.float8_e5m2". One that means
 * two formats, such as "fp8", is refused, and the sentence says which. */
TRN_API trn_status trn_format_read(trn_format *format, const char *text, trn_error *error);

/* ---- decoding ---- */

/* The value of a code, exact (integers: rounded to binary32). F32 keeps NaN payloads; every other NaN comes back as
 * 7fc00000 or ffc00000. Bits above the format's are ignored. NaN for a format that does not exist. */
TRN_API float trn_decode(trn_format format, uint32_t code);

/* ---- limits ---- */

typedef struct trn_format_limits {
    double max, lowest;   /* largest and most negative finite value */
    double min_normal;    /* smallest positive normal number; integers: 1 */
    double min_subnormal; /* smallest positive number of all */
    double epsilon;       /* from 1 to the next larger number; integers: 1 */
    bool has_infinity;
    uint32_t infinity_code;       /* of +infinity; 0 when there is none */
    uint32_t nan_first, nan_last; /* the positive codes that are NaN; first > last when there is none */
} trn_format_limits;

/* All zero but `nan_first` = 1 and the units for a format that does not exist. */
TRN_API trn_format_limits trn_format_limits_of(trn_format format);

/* ---- encoding ---- */

/* The code nearest to x in the sense of `rounding`; `random` is used by TRN_STOCHASTIC only (all 32 bits of it).
 * F32 returns the bits of x unchanged; 0 for a format that does not exist. */
TRN_API uint32_t trn_encode(trn_format format, float x, trn_rounding rounding, trn_overflow overflow, uint32_t random);

/* ---- typed codecs: nearest even, overflow as the format has it ---- */

/* From binary32, as trn_encode with TRN_NEAREST_EVEN and TRN_OVERFLOW_DEFAULT. */
TRN_API uint16_t trn_bf16_from_f32(float x);
TRN_API uint16_t trn_f16_from_f32(float x);
TRN_API uint32_t trn_tf32_from_f32(float x);
TRN_API uint8_t trn_f8_e4m3_from_f32(float x);
TRN_API uint8_t trn_f8_e4m3fn_from_f32(float x);
TRN_API uint8_t trn_f8_e5m2_from_f32(float x);
TRN_API uint8_t trn_f8_e3m4_from_f32(float x);

/* To binary32, exact, as trn_decode. */
TRN_API float trn_bf16_to_f32(uint16_t code);
TRN_API float trn_f16_to_f32(uint16_t code);
TRN_API float trn_tf32_to_f32(uint32_t code);
TRN_API float trn_f8_e4m3_to_f32(uint8_t code);
TRN_API float trn_f8_e4m3fn_to_f32(uint8_t code);
TRN_API float trn_f8_e5m2_to_f32(uint8_t code);
TRN_API float trn_f8_e3m4_to_f32(uint8_t code);

/* ---- configurable FP8 ----
 *
 * | s | E exponent bits | 7 - E mantissa bits |, any bias that keeps all values normal numbers of binary32. With
 * infinities the top exponent is reserved, as in E4M3; without, only the last code is NaN, as in E4M3FN. That Trainium1
 * has configurable range and precision is `documented` (AWS data types; the adjustable bias: NeuronCore-v3); no
 * register, legal range or default is public: 2..5 exponent bits, any bias and both endings are `assumed`. */

typedef struct trn_cfp8 {
    int exponent_bits; /* 2..5; mantissa bits = 7 - exponent_bits */
    int bias;          /* as it stands; exponent_bits and bias both 0: what TRN_CFP8 means by itself, 4 bits and 7 */
    bool no_infinity;
} trn_cfp8;

/* As trn_format_info_of; the row of TRN_FORMAT_UNSET for a descriptor that is not valid. */
TRN_API trn_format_info trn_cfp8_info(trn_cfp8 c);

/* false: exponent bits outside 2..5, or a bias that would take some value out of binary32's normal range. */
TRN_API bool trn_cfp8_valid(trn_cfp8 c);

/* NaN and 0 for a descriptor that is not valid. */
TRN_API float trn_cfp8_decode(trn_cfp8 c, uint32_t code);

/* As trn_encode; 0 for a descriptor that is not valid. */
TRN_API uint32_t trn_cfp8_encode(trn_cfp8 c, float x, trn_rounding rounding, trn_overflow overflow, uint32_t random);

#if TRNI_BODIES

enum {
    TRNI_ROW_UNSET = TRN_FORMAT_UNSET,
#define TRNI_X(id, ...) TRNI_ROW_##id,
    TRNI_FORMATS(TRNI_X)
#undef TRNI_X
};

#define TRNI_X(id, ...)                                                                                                \
    TRNI_REQUIRE((int)TRNI_ROW_##id == (int)TRN_##id, "rows of TRNI_FORMATS stand in the order of trn_format");
TRNI_FORMATS(TRNI_X)
#undef TRNI_X

TRN_API const trn_format_info *trn_format_info_of(trn_format format)
{
#define TRNI_X(id, name, safetensors, ocp, words, kind, bits, e, m, bias, zeros, largest, overflow, nan, ...)          \
    { name, safetensors, ocp, TRN_KIND_##kind, bits, e, m, bias, zeros, largest, overflow, nan },
    static const trn_format_info row[TRN_FORMAT_COUNT] = { { "unset", "", "", TRN_KIND_NONE, 0, 0, 0, 0, 0, 0, 0, 0 },
                                                           TRNI_FORMATS(TRNI_X) };
#undef TRNI_X
    return &row[(unsigned)format < TRN_FORMAT_COUNT ? (int)format : (int)TRN_FORMAT_UNSET];
}

TRN_API const char *trn_format_name(trn_format format) { return trn_format_info_of(format)->name; }
TRN_API int trn_format_bits(trn_format format) { return trn_format_info_of(format)->bits; }
TRN_API size_t trn_format_bytes(trn_format format) { return ((size_t)trn_format_bits(format) + 7) / 8; }
TRNI_FN bool trni_format_valid(trn_format format) { return trn_format_info_of(format)->kind != TRN_KIND_NONE; }

TRN_API bool trn_format_is_float(trn_format format) { return trn_format_info_of(format)->kind == TRN_KIND_FLOAT; }

TRN_API bool trn_format_is_integer(trn_format format)
{
    const trn_format_kind kind = trn_format_info_of(format)->kind;
    return kind == TRN_KIND_SIGNED || kind == TRN_KIND_UNSIGNED;
}

/* The number of an integer format whose code is at `at`, at any alignment. */
TRNI_FN int64_t trni_integer_at(trn_format format, const void *at)
{
    uint32_t code = 0;
    memcpy(&code, at, trn_format_bytes(format));
    if (trn_format_info_of(format)->kind == TRN_KIND_UNSIGNED) return (int64_t)code;
    const uint32_t sign = (uint32_t)1 << (trn_format_bits(format) - 1);
    return (int64_t)(code ^ sign) - (int64_t)sign;
}

TRN_API trn_format trn_format_from_name(const char *name)
{
    if (!name || !*name) return TRN_FORMAT_UNSET;
    for (int i = TRN_FORMAT_UNSET + 1; i < TRN_FORMAT_COUNT; i++) {
        const trn_format_info *f = trn_format_info_of((trn_format)i);
        if (strcmp(name, f->name) == 0 || strcmp(name, f->safetensors) == 0) return (trn_format)i;
    }
    return strcmp(name, "tf32") == 0 ? TRN_TF32 : TRN_FORMAT_UNSET;
}

/* The spellings of each format that are no names of a library's: words with a space between. */
TRNI_FN const char *trni_format_spellings(int format)
{
#define TRNI_X(id, name, safetensors, ocp, words, ...) words,
    static const char *const row[TRN_FORMAT_COUNT] = { "", TRNI_FORMATS(TRNI_X) };
#undef TRNI_X
    return row[format];
}

TRNI_FN bool trni_has_word(const char *words, const char *word)
{
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (strlen(word) == n && memcmp(words, word, n) == 0) return true;
    }
    return false;
}

/* Names that mean more than one format, and which; NULL for any other. */
TRNI_FN const char *trni_format_choice(const char *name)
{
#define TRNI_E4M3 "float8_e4m3, which ends at 240 (Trainium's), or float8_e4m3fn, which ends at 448 (OCP's)"
    static const char *const row[][2] = {
        { "fp8_e4m3", TRNI_E4M3 },
        { "fp8 float8", TRNI_E4M3 ", float8_e5m2, float8_e3m4 or cfp8" },
        { "fp6", "float6_e2m3fn or float6_e3m2fn" },
    };
#undef TRNI_E4M3
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (trni_has_word(row[i][0], name)) return row[i][1];
    return NULL;
}

TRN_API trn_status trn_format_read(trn_format *format, const char *text, trn_error *error)
{
    static const char *const library[] = { "torch.", "nl.", "np.", "numpy.", "jnp.", "ml_dtypes." };
    const char *name = text ? text : "";
    for (size_t i = 0; i < sizeof library / sizeof library[0]; i++)
        if (strncmp(name, library[i], strlen(library[i])) == 0) name += strlen(library[i]);
    const char *const choice = trni_format_choice(name);
    if (choice) return trni_fail(error, TRN_EINVAL, "'%.40s' may be %s", name, choice);
    trn_format found = trn_format_from_name(name);
    for (int i = TRN_FORMAT_UNSET + 1; i < TRN_FORMAT_COUNT && found == TRN_FORMAT_UNSET; i++)
        if (trni_has_word(trni_format_spellings(i), name)) found = (trn_format)i;
    if (found == TRN_FORMAT_UNSET || !format)
        return trni_fail(error, TRN_EINVAL,
                         "'%.60s' is no number format; there are float32, tfloat32, bfloat16, float16, "
                         "float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e3m4 and others",
                         name);
    *format = found;
    return TRN_OK;
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

TRNI_FN uint32_t trni_decode_scale(uint32_t code)
{
    code &= 0xff;
    if (code == 0xff) return TRNI_F32_NAN;
    return code ? code << 23 : 0x00400000u; /* 2^-127 is a binary32 subnormal */
}

/* Through binary32: magnitudes above 2^24 round to nearest even, as on the chip. Not a C cast, which would follow the
 * rounding mode of the moment. */
TRNI_FN uint32_t trni_bits_from_integer(uint32_t magnitude, bool negative)
{
    if (magnitude == 0) return 0;
    const trn_rounder nearest = { TRN_NEAREST_EVEN, 0, 0 };
    const int top = 31 - __builtin_clz(magnitude); /* the leading one goes to bit 23, and a carry into the exponent */
    const uint32_t significand =
        top <= 23 ? magnitude << (23 - top) : trn_round_magnitude(magnitude, top - 23, false, nearest);
    return ((uint32_t)negative << 31) + ((uint32_t)(top + 126) << 23) + significand;
}

TRNI_FN uint32_t trni_decode_integer(const trn_format_info *f, uint32_t code)
{
    const uint32_t mask = f->bits == 32 ? 0xffffffffu : (1u << f->bits) - 1, sign = 1u << (f->bits - 1);
    const bool negative = f->kind == TRN_KIND_SIGNED && (code & sign);
    return trni_bits_from_integer((negative ? 0u - code : code) & mask, negative);
}

/* The binary32 bits of a code of the format that a row describes. */
TRNI_FN uint32_t trni_decode_row(const trn_format_info *f, uint32_t code)
{
    switch (f->kind) {
    case TRN_KIND_FLOAT: return f->mantissa_bits == 23 ? code : trni_decode_float(f, code);
    case TRN_KIND_SCALE: return trni_decode_scale(code);
    case TRN_KIND_SIGNED:
    case TRN_KIND_UNSIGNED: return trni_decode_integer(f, code);
    case TRN_KIND_NONE:
    default: return TRNI_F32_NAN;
    }
}

TRN_API float trn_decode(trn_format format, uint32_t code)
{
    return trni_float(trni_decode_row(trn_format_info_of(format), code));
}

/* ---- limits ---- */

TRNI_FN double trni_power_of_two(int exponent) /* normal numbers of binary64 only */
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

TRNI_FN trn_format_limits trni_limits_of_row(const trn_format_info *f)
{
    trn_format_limits l = { 0, 0, 1, 1, 1, false, 0, 1, 0 };
    l.max = f->max_code;
    if (f->kind == TRN_KIND_SIGNED) l.lowest = -l.max - 1;
    if (f->kind == TRN_KIND_SCALE) l.nan_first = l.nan_last = f->nan_code;
    if (f->kind != TRN_KIND_FLOAT && f->kind != TRN_KIND_SCALE) return l;

    const bool scale = f->kind == TRN_KIND_SCALE; /* its exponent field 0 is a power of two like any other */
    const int M = f->mantissa_bits, least = (scale ? 0 : 1) - f->bias;
    const uint32_t all_ones = (1u << (f->exponent_bits + M)) - 1;
    l.max = (double)trni_float(trni_decode_row(f, f->max_code << f->low_zeros));
    l.min_normal = trni_power_of_two(least);
    l.min_subnormal = trni_power_of_two(least - M);
    l.lowest = scale ? l.min_normal : -l.max;
    l.epsilon = trni_power_of_two(-M);
    l.has_infinity = !scale && f->overflow_code > f->max_code && f->overflow_code != f->nan_code;
    if (l.has_infinity) l.infinity_code = f->overflow_code << f->low_zeros;
    if (f->max_code < all_ones) {
        l.nan_first = (f->max_code + 1 + l.has_infinity) << f->low_zeros;
        l.nan_last = all_ones << f->low_zeros;
    }
    return l;
}

TRN_API trn_format_limits trn_format_limits_of(trn_format format)
{
    TRNI_FLOATS;
    return trni_limits_of_row(trn_format_info_of(format));
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

/* The code, without a sign, of a finite magnitude: `significand` with its leading bit at `top`, in the binade whose
 * exponent field is `place`; below the least of them the leading bit may lie lower. */
TRNI_FN uint32_t trni_encode_magnitude(const trn_format_info *f, uint32_t significand, int top, int place,
                                       bool negative, trni_encoding how)
{
    const int M = f->mantissa_bits;
    int shift = top - M;
    if (place < 1) {
        shift += 1 - place;
        place = 1;
    }
    const uint32_t base = (uint32_t)(place - 1) << M; /* a significand that carries runs into the exponent */
    const uint32_t code = base + trn_round_magnitude(significand, shift, negative, how.how);
    if (code <= f->max_code) return code;
    return trni_overflow_code(f, base + (shift < 32 ? significand >> shift : 0), negative, how);
}

TRNI_FN uint32_t trni_encode_float(const trn_format_info *f, uint32_t bits, trni_encoding how)
{
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    const bool negative = bits >> 31;
    const uint32_t sign = (uint32_t)negative << (f->exponent_bits + f->mantissa_bits);
    uint32_t code;

    if (magnitude > TRNI_F32_INF) {
        code = f->nan_code ^ sign;
    } else if (magnitude == TRNI_F32_INF) {
        code = f->overflow_code | sign;
    } else {
        int exponent = (int)(magnitude >> 23);
        uint32_t significand = magnitude & 0x7fffffu;
        if (exponent)
            significand |= 0x800000u;
        else
            exponent = 1;
        code = trni_encode_magnitude(f, significand, 23, exponent - 127 + f->bias, negative, how) | sign;
    }
    return code << f->low_zeros;
}

/* E8M0 has powers of two only: the fraction is the position between two of them. Nearest takes ties up, the other modes
 * go by that position; what is below 2^-127 becomes 2^-127 in all of them. There is no zero and no sign, so those
 * become NaN, or the smallest scale when saturating. */
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

/* The code of a whole number in a format of integers. Always saturating. */
TRNI_FN uint32_t trni_encode_whole(const trn_format_info *f, uint64_t whole, bool negative)
{
    const uint64_t top = f->max_code, bottom = f->kind == TRN_KIND_SIGNED ? top + 1 : 0;
    const uint64_t limit = negative ? bottom : top;
    if (whole > limit) whole = limit;
    const uint64_t code = negative ? 0 - whole : whole;
    return (uint32_t)code & (f->bits == 32 ? 0xffffffffu : (1u << f->bits) - 1);
}

/* NaN becomes 0. */
TRNI_FN uint32_t trni_encode_integer(const trn_format_info *f, uint32_t bits, trni_encoding how)
{
    const uint32_t magnitude = bits & ~TRNI_F32_SIGN;
    const bool negative = bits >> 31;
    if (magnitude > TRNI_F32_INF) return 0;

    const int exponent = (int)(magnitude >> 23);
    const uint32_t significand = exponent ? (magnitude & 0x7fffffu) | 0x800000u : magnitude;
    uint64_t whole = UINT64_MAX;
    if (exponent < 150)
        whole = trn_round_magnitude(significand, 150 - (exponent ? exponent : 1), negative, how.how);
    else if (exponent < 150 + 16)
        whole = (uint64_t)significand << (exponent - 150);
    return trni_encode_whole(f, whole, negative);
}

/* The code of binary32 bits in the format that a row describes. */
TRNI_FN uint32_t trni_encode_row(const trn_format_info *f, uint32_t bits, trni_encoding how)
{
    switch (f->kind) {
    case TRN_KIND_FLOAT: return f->mantissa_bits == 23 ? bits : trni_encode_float(f, bits, how);
    case TRN_KIND_SCALE: return trni_encode_scale(bits, how);
    case TRN_KIND_SIGNED:
    case TRN_KIND_UNSIGNED: return trni_encode_integer(f, bits, how);
    case TRN_KIND_NONE:
    default: return 0;
    }
}

TRNI_FN uint32_t trni_encode_how(trn_format format, uint32_t bits, trni_encoding how)
{
    return trni_encode_row(trn_format_info_of(format), bits, how);
}

TRN_API uint32_t trn_encode(trn_format format, float x, trn_rounding rounding, trn_overflow overflow, uint32_t random)
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

TRN_API uint16_t trn_bf16_from_f32(float x) { return trni_bf16_from_bits(trni_bits(x)); }

#define TRNI_FROM(name, code_t, format)                                                                                \
    TRN_API code_t trn_##name##_from_f32(float x)                                                                      \
    {                                                                                                                  \
        return (code_t)trn_encode(format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);                               \
    }

#define TRNI_TO(name, code_t, format)                                                                                  \
    TRN_API float trn_##name##_to_f32(code_t code) { return trn_decode(format, code); }

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

/* ---- configurable FP8 ----
 *
 * | s | E exponent bits | 7 - E mantissa bits |, any bias that keeps all values normal numbers of binary32. With
 * infinities the top exponent is reserved, as in E4M3; without, only the last code is NaN, as in E4M3FN. That Trainium1
 * has configurable range and precision is `documented` (AWS data types; the adjustable bias: NeuronCore-v3); no
 * register, legal range or default is public: 2..5 exponent bits, any bias and both endings are `assumed`. */

TRN_API trn_format_info trn_cfp8_info(trn_cfp8 c)
{
    trn_format_info f = *trn_format_info_of(TRN_CFP8);
    if (c.exponent_bits || c.bias) {
        f.exponent_bits = c.exponent_bits;
        f.bias = c.bias;
    }
    if (f.exponent_bits < 2 || f.exponent_bits > 5) return *trn_format_info_of(TRN_FORMAT_UNSET);
    f.mantissa_bits = 7 - f.exponent_bits;
    f.overflow_code = c.no_infinity ? 0x7f : ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    f.nan_code = c.no_infinity ? 0x7f : f.overflow_code | 1u << (f.mantissa_bits - 1);
    f.max_code = f.overflow_code - 1;
    const int top = (int)(f.max_code >> f.mantissa_bits); /* the largest exponent field */
    if (f.bias > 127 - f.mantissa_bits || f.bias < top - 127) return *trn_format_info_of(TRN_FORMAT_UNSET);
    return f;
}

TRN_API bool trn_cfp8_valid(trn_cfp8 c) { return trn_cfp8_info(c).kind != TRN_KIND_NONE; }

TRN_API float trn_cfp8_decode(trn_cfp8 c, uint32_t code)
{
    const trn_format_info f = trn_cfp8_info(c);
    return trni_float(trni_decode_row(&f, code));
}

TRN_API uint32_t trn_cfp8_encode(trn_cfp8 c, float x, trn_rounding rounding, trn_overflow overflow, uint32_t random)
{
    const trn_format_info f = trn_cfp8_info(c);
    const trni_encoding how = { { rounding, random, 32 }, overflow, false };
    return trni_encode_row(&f, trni_bits(x), how);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NUMBER_FORMAT_H */
