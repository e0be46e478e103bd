/* formats.h - limits of the formats, their names, and integers that pass through binary32.
 * SPDX-License-Identifier: MIT
 *
 * Typed in from the standards: IEEE 754, OCP OFP8 and MX 1.0, the ml_dtypes and AWS data type pages.
 */
#ifndef PUBLISHED_FORMATS_H
#define PUBLISHED_FORMATS_H

#include "trnmath/trn_format.h"

typedef struct format_facts {
    trn_format format;
    int bits;
    double max, lowest, min_normal, min_subnormal, epsilon;
    uint32_t infinity, nan_first, nan_last; /* first > last: no NaN */
} format_facts;

static const format_facts format_known[] = {
    { TRN_F32, 32, 0x1.fffffep127, -0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23, 0x7f800000, 0x7f800001, 0x7fffffff },
    { TRN_TF32, 32, 0x1.ffcp127, -0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1p-10, 0x7f800000, 0x7f802000, 0x7fffe000 },
    { TRN_BF16, 16, 0x1.fep127, -0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7, 0x7f80, 0x7f81, 0x7fff },
    { TRN_F16, 16, 65504, -65504, 0x1p-14, 0x1p-24, 0x1p-10, 0x7c00, 0x7c01, 0x7fff },
    { TRN_F8_E4M3, 8, 240, -240, 0x1p-6, 0x1p-9, 0.125, 0x78, 0x79, 0x7f },
    { TRN_F8_E4M3FN, 8, 448, -448, 0x1p-6, 0x1p-9, 0.125, 0, 0x7f, 0x7f },
    { TRN_F8_E5M2, 8, 57344, -57344, 0x1p-14, 0x1p-16, 0.25, 0x7c, 0x7d, 0x7f },
    { TRN_F8_E3M4, 8, 15.5, -15.5, 0.25, 0x1p-6, 0.0625, 0x70, 0x71, 0x7f },
    { TRN_F8_E8M0, 8, 0x1p127, 0x1p-127, 0x1p-127, 0x1p-127, 1, 0, 0xff, 0xff },
    { TRN_F6_E2M3, 6, 7.5, -7.5, 1, 0.125, 0.125, 0, 1, 0 },
    { TRN_F6_E3M2, 6, 28, -28, 0.25, 0.0625, 0.25, 0, 1, 0 },
    { TRN_F4_E2M1, 4, 6, -6, 1, 0.5, 0.5, 0, 1, 0 },
    { TRN_I8, 8, 127, -128, 1, 1, 1, 0, 1, 0 },
    { TRN_U8, 8, 255, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_I16, 16, 32767, -32768, 1, 1, 1, 0, 1, 0 },
    { TRN_U16, 16, 65535, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_I32, 32, 2147483647.0, -2147483648.0, 1, 1, 1, 0, 1, 0 },
    { TRN_U32, 32, 4294967295.0, 0, 1, 1, 1, 0, 1, 0 },
    { TRN_CFP8, 8, 240, -240, 0x1p-6, 0x1p-9, 0.125, 0x78, 0x79, 0x7f },
};
enum { FORMAT_KNOWN = sizeof format_known / sizeof format_known[0] };

/* Names in four worlds; "" where a world has none. */
static const struct {
    trn_format format;
    const char *name, *safetensors, *ocp;
} format_names[] = {
    { TRN_F32, "float32", "F32", "" },
    { TRN_BF16, "bfloat16", "BF16", "" },
    { TRN_F16, "float16", "F16", "" },
    { TRN_F8_E4M3, "float8_e4m3", "", "" },
    { TRN_F8_E4M3FN, "float8_e4m3fn", "F8_E4M3", "FP8 E4M3" },
    { TRN_F8_E5M2, "float8_e5m2", "F8_E5M2", "FP8 E5M2" },
    { TRN_F8_E3M4, "float8_e3m4", "", "" },
    { TRN_F8_E8M0, "float8_e8m0fnu", "F8_E8M0", "E8M0" },
    { TRN_F6_E2M3, "float6_e2m3fn", "F6_E2M3", "FP6 E2M3" },
    { TRN_F6_E3M2, "float6_e3m2fn", "F6_E3M2", "FP6 E3M2" },
    { TRN_F4_E2M1, "float4_e2m1fn", "F4", "FP4 E2M1" },
    { TRN_I8, "int8", "I8", "INT8" },
};
enum { FORMAT_NAMES = sizeof format_names / sizeof format_names[0] };

/* Integers above 2^24 go through binary32. */
static const struct {
    trn_format format;
    uint32_t code;
    double value;
} format_integers[] = {
    /* printed by a device for 1764265896 */
    { TRN_I32, 0x69288fa8, 1764265856.0 },
    { TRN_U32, 0x69288fa8, 1764265856.0 },
    /* up to the range's end: below half, a tie to even, above half */
    { TRN_U32, 0xffffff7f, 4294967040.0 },
    { TRN_U32, 0xffffff80, 4294967296.0 },
    { TRN_U32, 0xffffffff, 4294967296.0 },
    /* ties, to even */
    { TRN_U32, 0x01000001, 16777216.0 },
    { TRN_U32, 0x01000003, 16777220.0 },
    /* with a sign */
    { TRN_I32, 0x80000000, -2147483648.0 },
    { TRN_I32, 0x80000001, -2147483648.0 },
    { TRN_I32, 0xfeffffff, -16777216.0 },
    { TRN_I32, 0xffffffff, -1.0 },
    { TRN_I32, 0, 0.0 },
    { TRN_I16, 0x8000, -32768.0 },
    /* bits above the format's are ignored */
    { TRN_I8, 0x1ff, -1.0 },
};
enum { FORMAT_INTEGERS = sizeof format_integers / sizeof format_integers[0] };

#endif /* PUBLISHED_FORMATS_H */
