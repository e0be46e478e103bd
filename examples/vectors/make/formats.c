/* formats.c - the formats of the files, and the lines that say what their codes mean.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#define OCP "OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats (MX) Specification 1.0"
#define NEURON "AWS Neuron SDK, about-neuron/arch/neuron-features/data-types.rst"

/* Name, format, exponent bits and bias of a cFP8, does it end without an infinity, what is known. */
static const struct row {
    const char *name;
    trn_format format;
    trn_cfp8 cfp8;
    const char *provenance, *source;
} rows[VEC_FORMATS + 1] = {
    { "bfloat16", TRN_BF16, { 0, 0, false }, "documented", NEURON "; rounding: IEEE 754-2019 4.3; NaN codes: assumed" },
    { "float16", TRN_F16, { 0, 0, false }, "documented", NEURON "; IEEE 754-2019 binary16; NaN codes: assumed" },
    { "tfloat32", TRN_TF32, { 0, 0, false }, "documented", NEURON "; subnormals and NaN codes: assumed" },
    { "float8_e4m3",
      TRN_F8_E4M3,
      { 0, 0, false },
      "documented",
      NEURON "; ends at 240, documented; codes 78 to 7f as ml_dtypes and NKI's simulator have them: assumed" },
    { "float8_e4m3fn", TRN_F8_E4M3FN, { 0, 0, false }, "documented", OCP "; overflow to NaN is one of its two ways" },
    { "float8_e5m2", TRN_F8_E5M2, { 0, 0, false }, "documented", OCP "; overflow to infinity is one of its two ways" },
    { "float8_e3m4", TRN_F8_E3M4, { 0, 0, false }, "documented", NEURON "; codes 70 to 7f as ml_dtypes: assumed" },
    { "float8_e8m0fnu",
      TRN_F8_E8M0,
      { 0, 0, false },
      "documented",
      OCP "; the codes; how numbers that are no powers of two become one is not in it: assumed" },
    { "float6_e2m3fn", TRN_F6_E2M3, { 0, 0, false }, "documented", OCP "; what a NaN becomes: assumed" },
    { "float6_e3m2fn", TRN_F6_E3M2, { 0, 0, false }, "documented", OCP "; what a NaN becomes: assumed" },
    { "float4_e2m1fn", TRN_F4_E2M1, { 0, 0, false }, "documented", OCP "; what a NaN becomes: assumed" },
    { "cfp8", TRN_CFP8, { 4, 7, false }, "assumed", NEURON "; that it exists: documented, its codes: assumed" },
    { "cfp8_e5b20", TRN_CFP8, { 5, 20, false }, "assumed", NEURON "; that it exists: documented, its codes: assumed" },
    { "cfp8_e4b11fn", TRN_CFP8, { 4, 11, true }, "assumed", NEURON "; that it exists: documented, its codes: assumed" },
    { "cfp8_e3b1fn", TRN_CFP8, { 3, 1, true }, "assumed", NEURON "; that it exists: documented, its codes: assumed" },
    { "cfp8_e2b4", TRN_CFP8, { 2, 4, false }, "assumed", NEURON "; that it exists: documented, its codes: assumed" },
    { "float32", TRN_F32, { 0, 0, false }, "documented", NEURON }, /* no cast goes there: only operands are it */
};

const vec_format *vec_format_at(int i)
{
    static vec_format format[VEC_FORMATS + 1];
    if (i < 0 || i > VEC_FORMATS) return NULL;
    const struct row *row = &rows[i];
    const trn_format_info info = row->format == TRN_CFP8 ? trn_cfp8_info(row->cfp8) : *trn_format_info_of(row->format);
    format[i] = (vec_format){ row->name, row->format, row->cfp8, info, row->provenance, row->source };
    return &format[i];
}

const vec_format *vec_format_named(const char *name)
{
    for (int i = 0; i <= VEC_FORMATS; i++)
        if (strcmp(rows[i].name, name) == 0) return vec_format_at(i);
    vec_fail("%s is none of the formats here", name);
}

int vec_digits(const vec_format *f) { return (f->info.bits + 3) / 4; }

uint32_t vec_encode(const vec_format *f, uint32_t x, trn_rounding rounding, trn_overflow overflow, uint32_t random)
{
    if (f->format == TRN_CFP8) return trn_cfp8_encode(f->cfp8, vec_float(x), rounding, overflow, random);
    return trn_encode(f->format, vec_float(x), rounding, overflow, random);
}

uint32_t vec_decode(const vec_format *f, uint32_t code)
{
    return vec_bits(f->format == TRN_CFP8 ? trn_cfp8_decode(f->cfp8, code) : trn_decode(f->format, code));
}

/* ---- what codes mean ---- */

static int magnitude_bits(const vec_format *f) { return f->info.exponent_bits + f->info.mantissa_bits; }

static void head_code(vec_file *f, const char *prefix, const char *what, const vec_format *format, uint32_t code)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", prefix, what);
    vec_head(f, key, "%0*lx", vec_digits(format), (unsigned long)(code << format->info.low_zeros));
}

static void head_number(vec_file *f, const char *prefix, const char *what, int number)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", prefix, what);
    vec_head(f, key, "%d", number);
}

void vec_head_format(vec_file *f, const char *prefix, const vec_format *format)
{
    const trn_format_info *i = &format->info;
    vec_head(f, prefix, "%s", format->name);
    head_number(f, prefix, "exponent_bits", i->exponent_bits);
    head_number(f, prefix, "mantissa_bits", i->mantissa_bits);
    head_number(f, prefix, "bias", i->bias);
    if (i->low_zeros) head_number(f, prefix, "zero_bits_below", i->low_zeros);
    head_code(f, prefix, "largest", format, i->max_code);
    head_code(f, prefix, "overflow", format, i->overflow_code);
    head_code(f, prefix, "nan", format, i->nan_code);
}

/* Codes of a positive sign from which on all are NaN; none where the format has no NaN. */
void vec_head_nan(vec_file *f, const vec_format *format)
{
    const trn_format_info *i = &format->info;
    const uint32_t last = i->kind == TRN_KIND_SCALE ? 0xff : (1u << magnitude_bits(format)) - 1;
    const uint32_t first = i->max_code + 1 + (i->overflow_code == i->max_code + 1 && i->overflow_code != i->nan_code);
    const uint32_t sign = i->kind == TRN_KIND_SCALE ? 0 : 1u << magnitude_bits(format);
    const int digits = vec_digits(format), up = i->low_zeros;
    const uint32_t below = (1u << up) - 1;
    if (first > last) {
        vec_head(f, "nan", "none");
    } else if (!sign) {
        vec_head(f, "nan", "%0*lx-%0*lx", digits, (unsigned long)first, digits, (unsigned long)last);
    } else {
        vec_head(f, "nan", "%0*lx-%0*lx %0*lx-%0*lx", digits, (unsigned long)(first << up), digits,
                 (unsigned long)(last << up | below), digits, (unsigned long)((first | sign) << up), digits,
                 (unsigned long)((last | sign) << up | below));
    }
}
