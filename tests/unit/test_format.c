/* test_format.c - every code of every format, and floats of every kind: against the golden files, the twin and MPFR.
 * SPDX-License-Identifier: MIT
 *
 * Oracles, none of which shares code with trn_format.h: tests/golden (made elsewhere, see its README), the twin
 * (768-bit fixed point), and MPFR where it is installed. test_sweep.c asks for all 2^32 floats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_format.h"
#include "twin/cases.h"
#include "twin/twin_number.h"
#if defined(HAVE_MPFR) && HAVE_MPFR + 0
#include <mpfr.h>
#endif

/* The library's formats in the twin's order. */
static const trn_format format_of[TWIN_FORMATS] = {
    TRN_F32,     TRN_TF32,    TRN_BF16,    TRN_F16, TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4, TRN_F8_E8M0,
    TRN_F6_E2M3, TRN_F6_E3M2, TRN_F4_E2M1, TRN_I8,  TRN_U8,      TRN_I16,       TRN_U16,     TRN_I32,     TRN_U32,
};
static const trn_rounding mode_of[TWIN_MODES] = { TRN_NEAREST_EVEN,    TRN_STOCHASTIC,      TRN_TOWARD_ZERO,
                                                  TRN_TOWARD_POSITIVE, TRN_TOWARD_NEGATIVE, TRN_TO_ODD };

static twin_way way_of(twin_mode mode, bool saturate, uint32_t random)
{
    twin_way way = twin_plain(mode);
    way.saturate = saturate;
    way.random = random;
    return way;
}

static uint32_t encode(int f, uint32_t x, twin_mode mode, bool saturate, uint32_t random)
{
    return trn_encode(format_of[f], cases_float_of(x), mode_of[mode], saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT,
                      random);
}

static void same_as_twin(int f, uint32_t bits, const twin_number *x, twin_mode mode, bool saturate, uint32_t random)
{
    CASES_EQUAL(twin_encode(&twin_formats[f], x, way_of(mode, saturate, random)),
                encode(f, bits, mode, saturate, random), "%08x to %s, %s%s, random %08x", (unsigned)bits,
                twin_formats[f].name, trn_round_text(mode_of[mode]), saturate ? ", saturating" : "", (unsigned)random);
}

static bool is_nan_bits(uint32_t u) { return (u & 0x7fffffffu) > 0x7f800000u; }

/* What decoding must give: the twin's value, and for NaN the canonical one with the code's sign. */
static uint32_t twin_decoded(int f, uint32_t code)
{
    const twin_number x = twin_decode(&twin_formats[f], code);
    if (x.kind == TWIN_NAN) return 0x7fc00000u | (x.negative ? 0x80000000u : 0u);
    if (twin_formats[f].sort == TWIN_SORT_INTEGER) { /* through binary32: more than 24 bits round to nearest even */
        const twin_number rounded = twin_round(&x, 24, twin_plain(TWIN_NEAREST_EVEN));
        return twin_to_f32(&rounded);
    }
    return twin_to_f32(&x);
}

/* ---- names and sizes ---- */

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        trn_format format;
    } known[] = {
        { "float8_e4m3", TRN_F8_E4M3 },
        { "F8_E4M3", TRN_F8_E4M3FN },
        { "float8_e4m3fn", TRN_F8_E4M3FN },
        { "float8_e5m2", TRN_F8_E5M2 },
        { "F8_E5M2", TRN_F8_E5M2 },
        { "float8_e3m4", TRN_F8_E3M4 },
        { "float8_e8m0fnu", TRN_F8_E8M0 },
        { "F8_E8M0", TRN_F8_E8M0 },
        { "float6_e2m3fn", TRN_F6_E2M3 },
        { "float6_e3m2fn", TRN_F6_E3M2 },
        { "float4_e2m1fn", TRN_F4_E2M1 },
        { "F4", TRN_F4_E2M1 },
        { "bfloat16", TRN_BF16 },
        { "BF16", TRN_BF16 },
        { "float16", TRN_F16 },
        { "F16", TRN_F16 },
        { "tfloat32", TRN_TF32 },
        { "tf32", TRN_TF32 },
        { "float32", TRN_F32 },
        { "F32", TRN_F32 },
        { "int8", TRN_I8 },
        { "I8", TRN_I8 },
        { "uint8", TRN_U8 },
        { "U8", TRN_U8 },
        { "int16", TRN_I16 },
        { "I16", TRN_I16 },
        { "uint16", TRN_U16 },
        { "U16", TRN_U16 },
        { "int32", TRN_I32 },
        { "I32", TRN_I32 },
        { "uint32", TRN_U32 },
        { "U32", TRN_U32 },
    };
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        CASES_EQUAL(known[i].format, trn_format_from_name(known[i].name), "%s", known[i].name);

    static const char *const unknown[] = { "",        "Float32", "FLOAT32", "f32", "bf16",     "float8_e4m3fnuz",
                                           "F8_e4m3", "TF32",    "float64", "F64", "float32 ", " float32",
                                           "float",   "unset" };
    for (unsigned i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        CASES_EQUAL(TRN_FORMAT_UNSET, trn_format_from_name(unknown[i]), "\"%s\"", unknown[i]);
    CASES_EQUAL(TRN_FORMAT_UNSET, trn_format_from_name(NULL), "a null name");

    /* What people write beside that; what means two formats is refused, with both. */
    static const struct {
        const char *text;
        trn_format format;
    } spelled[] = { { "bf16", TRN_BF16 },
                    { "fp16", TRN_F16 },
                    { "half", TRN_F16 },
                    { "f32", TRN_F32 },
                    { "fp32", TRN_F32 },
                    { "e4m3", TRN_F8_E4M3 },
                    { "e4m3fn", TRN_F8_E4M3FN },
                    { "torch.float8_e4m3fn", TRN_F8_E4M3FN },
                    { "nl.float8_e4m3", TRN_F8_E4M3 },
                    { "ml_dtypes.float4_e2m1fn", TRN_F4_E2M1 },
                    { "fp4", TRN_F4_E2M1 },
                    { "ue8m0", TRN_F8_E8M0 },
                    { "i8", TRN_I8 } };
    static const char *const refused[] = {
        "", "fp8", "float8", "fp8_e4m3", "fp6", "torch.", "fp12", "BF-16", "double"
    };
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        trn_format format = TRN_FORMAT_UNSET;
        CASES_EQUAL(TRN_OK, trn_format_read(&format, known[i].name, NULL), "%s", known[i].name);
        CASES_EQUAL(known[i].format, format, "%s", known[i].name);
    }
    for (unsigned i = 0; i < sizeof spelled / sizeof spelled[0]; i++) {
        trn_format format = TRN_FORMAT_UNSET;
        CASES_EQUAL(TRN_OK, trn_format_read(&format, spelled[i].text, NULL), "%s", spelled[i].text);
        CASES_EQUAL(spelled[i].format, format, "%s", spelled[i].text);
    }
    for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        trn_format format = TRN_I16;
        trn_error error;
        CASES_EQUAL(TRN_EINVAL, trn_format_read(&format, refused[i], &error), "\"%s\"", refused[i]);
        CASES_EQUAL(TRN_I16, format, "\"%s\" leaves the format alone", refused[i]);
        const bool eight = strncmp(refused[i], "fp8", 3) == 0;
        assert_non_null(strstr(error.text, eight ? "float8_e4m3fn, which ends at 448" : "float"));
    }

    for (int f = 0; f < TWIN_FORMATS; f++) {
        assert_string_equal(trn_format_name(format_of[f]), twin_formats[f].name);
        CASES_EQUAL(format_of[f], trn_format_from_name(trn_format_name(format_of[f])), "%s and back",
                    twin_formats[f].name);
        CASES_EQUAL(twin_formats[f].bits, trn_format_bits(format_of[f]), "bits of %s", twin_formats[f].name);
        CASES_EQUAL((twin_formats[f].bits + 7) / 8, trn_format_bytes(format_of[f]), "bytes of %s",
                    twin_formats[f].name);
    }
}

static void formats_that_do_not_exist(void **state)
{
    (void)state;
    static const int none[] = { 0, -1, TRN_CFP8 + 1, 1000, 0x7fffffff };
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++) {
        const trn_format f = (trn_format)none[i];
        CASES_EQUAL(0, trn_format_bits(f), "bits of format %d", none[i]);
        assert_true(is_nan_bits(cases_bits_of(trn_decode(f, 0x3f800000u))));
        CASES_EQUAL(0, trn_encode(f, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0), "a code of format %d", none[i]);
    }
}

/* ---- decoding ---- */

static void every_code_decodes_as_the_twin_says(void **state)
{
    (void)state;
    for (int f = 0; f < TWIN_FORMATS; f++) {
        if (twin_formats[f].bits > 16) continue;
        for (uint32_t code = 0; code < 1u << twin_formats[f].bits; code++) {
            const uint32_t expected = twin_decoded(f, code);
            CASES_EQUAL(expected, cases_bits_of(trn_decode(format_of[f], code)), "%s code %04x", twin_formats[f].name,
                        (unsigned)code);
            const uint32_t dirty = code | 0xffffffffu << twin_formats[f].bits; /* bits above the format's are ignored */
            CASES_EQUAL(expected, cases_bits_of(trn_decode(format_of[f], dirty)), "%s code %08x", twin_formats[f].name,
                        (unsigned)dirty);
        }
    }
}

static void wide_codes_decode_as_the_twin_says(void **state)
{
    (void)state;
    uint64_t rng = 4;
    for (int i = 0; i < CASES_STRATIFIED + 100000; i++) {
        const uint32_t u = i < CASES_STRATIFIED ? cases_stratified(i) : cases_u32(&rng), tf = u & 0xffffe000u;
        CASES_EQUAL(u, cases_bits_of(trn_decode(TRN_F32, u)), "float32 keeps its bits, payloads too");
        CASES_EQUAL(twin_decoded(TWIN_TF32, tf), cases_bits_of(trn_decode(TRN_TF32, tf)), "tfloat32 %08x",
                    (unsigned)tf);
        CASES_EQUAL(twin_decoded(TWIN_I32, u), cases_bits_of(trn_decode(TRN_I32, u)), "int32 %08x", (unsigned)u);
        CASES_EQUAL(twin_decoded(TWIN_U32, u), cases_bits_of(trn_decode(TRN_U32, u)), "uint32 %08x", (unsigned)u);
    }
}

/* A value that is in the format comes back as its own code in every mode; a NaN comes back canonical. */
static void every_code_makes_the_round_trip(void **state)
{
    (void)state;
    for (int f = 0; f < TWIN_FORMATS; f++) {
        const int bits = f == TWIN_TF32 ? 19 : twin_formats[f].bits;
        if (bits > 19) continue;
        for (uint32_t i = 0; i < 1u << bits; i++) {
            const uint32_t code = i << twin_formats[f].low_zeros;
            const uint32_t x = cases_bits_of(trn_decode(format_of[f], code));
            const uint32_t expected = is_nan_bits(x) && twin_formats[f].sort == TWIN_SORT_FLOAT
                                          ? twin_nan_code(&twin_formats[f], x >> 31) << twin_formats[f].low_zeros
                                          : code;
            for (int mode = 0; mode < TWIN_MODES; mode++)
                for (int saturate = 0; saturate < 2; saturate++)
                    CASES_EQUAL(expected, encode(f, x, (twin_mode)mode, saturate, 0xffffffffu), "%s code %05x, %s",
                                twin_formats[f].name, (unsigned)code, trn_round_text(mode_of[mode]));
        }
    }
}

/* ---- golden files ---- */

/* Reads up to four hexadecimal numbers a line; returns how many, 0 at the end of the file. */
static int golden_line(FILE *file, uint32_t value[4])
{
    char line[128];
    if (!fgets(line, sizeof line, file)) return 0;
    int n = 0;
    char *at = line, *end;
    while (n < 4) {
        value[n] = (uint32_t)strtoul(at, &end, 16);
        if (end == at) break;
        n++;
        at = end;
    }
    return n;
}

/* The file golden/<kind>_<format>.txt; TF32 files spell it "tf32". */
static FILE *golden_open(const char *kind, int f)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s_%s.txt", TRN_GOLDEN_DIR, kind, f == TWIN_TF32 ? "tf32" : twin_formats[f].name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot open %s", path);
    return file;
}

enum { GOLDEN_FIRST = TWIN_TF32, GOLDEN_LAST = TWIN_E2M1 };

static void golden_decode(void **state)
{
    (void)state;
    static const int lines[TWIN_FORMATS] = { 0, 852, 828, 576, 256, 256, 256, 256, 256, 64, 64, 16 };
    for (int f = GOLDEN_FIRST; f <= GOLDEN_LAST; f++) {
        FILE *file = golden_open("decode", f);
        uint32_t v[4];
        int count = 0;
        for (; golden_line(file, v) == 2; count++) {
            const uint32_t code = v[0] << twin_formats[f].low_zeros;
            CASES_EQUAL(v[1], cases_bits_of(trn_decode(format_of[f], code)), "decode_%s %x", twin_formats[f].name,
                        (unsigned)v[0]);
            CASES_EQUAL(v[1], twin_decoded(f, code), "the twin, decode_%s %x", twin_formats[f].name, (unsigned)v[0]);
        }
        fclose(file);
        assert_int_equal(lines[f], count);
    }
}

static void golden_encode_file(const char *kind, bool saturate, const int lines[])
{
    for (int f = GOLDEN_FIRST; f <= GOLDEN_LAST; f++) {
        FILE *file = golden_open(kind, f);
        uint32_t v[4];
        int count = 0;
        for (; golden_line(file, v) == 2; count++) {
            const uint32_t code = v[1] << twin_formats[f].low_zeros;
            const twin_number x = twin_from_f32(v[0]);
            CASES_EQUAL(code, encode(f, v[0], TWIN_NEAREST_EVEN, saturate, 0), "%s_%s %08x", kind, twin_formats[f].name,
                        (unsigned)v[0]);
            CASES_EQUAL(code, twin_encode(&twin_formats[f], &x, way_of(TWIN_NEAREST_EVEN, saturate, 0)),
                        "the twin, %s_%s %08x", kind, twin_formats[f].name, (unsigned)v[0]);
        }
        fclose(file);
        assert_int_equal(lines[f], count);
    }
}

static void golden_encode(void **state)
{
    (void)state;
    static const int lines[TWIN_FORMATS] = { 0, 8460, 8405, 3724, 4808, 4892, 4676, 4796, 3590, 3884, 3848, 3620 };
    golden_encode_file("encode", false, lines);
}

static void golden_encode_sat(void **state)
{
    (void)state;
    static const int lines[TWIN_FORMATS] = { 0, 19, 19, 166, 292, 302, 274, 298, 1821, 298, 296, 298 };
    golden_encode_file("encode_sat", true, lines);
}

static uint32_t encode_bits(int f, uint32_t x, int bits, uint32_t random, bool carry)
{
    const trni_encoding how = { { TRN_STOCHASTIC, random, bits }, TRN_OVERFLOW_DEFAULT, carry };
    return trni_encode_how(format_of[f], x, how);
}

/* One bracket line: x lies between `low` and `away`, `fraction` 2^-32-ths of the gap from `low`. */
static void check_bracket(int f, uint32_t x, uint32_t low, uint32_t away, uint32_t fraction)
{
    const bool overflow = (away >> twin_formats[f].low_zeros) > twin_max_code(&twin_formats[f]);
    const uint32_t sign = 1u << (twin_formats[f].e + twin_formats[f].m + twin_formats[f].low_zeros);
    const char *name = twin_formats[f].name;
    const uint32_t minus = x | 0x80000000u;

    CASES_EQUAL(low, encode(f, x, TWIN_TOWARD_ZERO, false, 0), "%08x to %s toward zero", (unsigned)x, name);
    CASES_EQUAL(low | sign, encode(f, minus, TWIN_TOWARD_ZERO, false, 0), "-%08x to %s toward zero", (unsigned)x, name);
    CASES_EQUAL(away, encode(f, x, TWIN_TOWARD_POSITIVE, false, 0), "%08x to %s upwards", (unsigned)x, name);
    CASES_EQUAL(low, encode(f, x, TWIN_TOWARD_NEGATIVE, false, 0), "%08x to %s downwards", (unsigned)x, name);
    CASES_EQUAL(low | sign, encode(f, minus, TWIN_TOWARD_POSITIVE, false, 0), "-%08x to %s upwards", (unsigned)x, name);
    CASES_EQUAL(away | sign, encode(f, minus, TWIN_TOWARD_NEGATIVE, false, 0), "-%08x to %s downwards", (unsigned)x,
                name);
    const uint32_t odd = overflow || low >> twin_formats[f].low_zeros & 1u ? low : away;
    CASES_EQUAL(odd, encode(f, x, TWIN_TO_ODD, false, 0), "%08x to %s to odd", (unsigned)x, name);

    for (int n = 1; n <= 32; n++) {
        const uint64_t unit = (uint64_t)1 << n, position = fraction >> (32 - n);
        const uint32_t last_stay = (uint32_t)(unit - 1 - position), most = (uint32_t)(unit - 1);
        CASES_EQUAL(low, encode_bits(f, x, n, last_stay, true), "%08x to %s, %d bits, the last word that stays",
                    (unsigned)x, name, n);
        if (position) /* the first word that goes */
            CASES_EQUAL(away, encode_bits(f, x, n, last_stay + 1u, true), "%08x to %s, %d bits, first away",
                        (unsigned)x, name, n);
        CASES_EQUAL(position ? away : low, encode_bits(f, x, n, most, true), "%08x to %s, %d bits, the largest word",
                    (unsigned)x, name, n);
        CASES_EQUAL(position && !overflow ? away : low, encode_bits(f, x, n, most, false),
                    "%08x to %s, %d bits, no carry to infinity", (unsigned)x, name, n);
    }
    if (fraction) { /* and through the public call, which compares 32 bits */
        CASES_EQUAL(low, encode(f, x, TWIN_STOCHASTIC, false, 0u - fraction - 1u), "%08x to %s, stochastic, stays",
                    (unsigned)x, name);
        CASES_EQUAL(overflow ? low : away, encode(f, x, TWIN_STOCHASTIC, false, 0u - fraction),
                    "%08x to %s, stochastic, away", (unsigned)x, name);
    }
}

static void golden_bracket(void **state)
{
    (void)state;
    static const int lines[TWIN_FORMATS] = { 0, 1760, 1749, 577, 1559, 1602, 1549, 1525, 0, 1057, 1053, 924 };
    for (int f = GOLDEN_FIRST; f <= GOLDEN_LAST; f++) {
        if (f == TWIN_E8M0) continue; /* its rounding is a policy: there is no bracket file */
        FILE *file = golden_open("bracket", f);
        uint32_t v[4];
        int count = 0;
        for (; golden_line(file, v) == 4; count++)
            check_bracket(f, v[0], v[1] << twin_formats[f].low_zeros, v[2] << twin_formats[f].low_zeros, v[3]);
        fclose(file);
        assert_int_equal(lines[f], count);
    }
}

/* ---- the twin ---- */

/* All exponents, both signs, the mantissas where some rounding turns; every format, every mode. */
static void stratified_inputs(void **state)
{
    (void)state;
    uint64_t rng = 5;
    const int step = cases_level() == 1 ? 3 : 1; /* 3 does not divide the 169 mantissas: all kinds are met */
    for (int i = 0; i < CASES_STRATIFIED; i += step) {
        const uint32_t u = cases_stratified(i);
        const twin_number x = twin_from_f32(u);
        for (int f = 0; f < TWIN_FORMATS; f++) {
            if (f == TWIN_F32) continue;
            for (int mode = 0; mode < TWIN_MODES; mode++)
                for (int saturate = 0; saturate < 2; saturate++)
                    same_as_twin(f, u, &x, (twin_mode)mode, saturate, cases_u32(&rng));
        }
    }
}

static void random_inputs(void **state)
{
    (void)state;
    uint64_t rng = 6;
    for (int i = 0; i < 1000000; i++) {
        const uint32_t u = cases_float(&rng), r = cases_u32(&rng);
        const twin_number x = twin_from_f32(u);
        same_as_twin(1 + cases_below(&rng, TWIN_FORMATS - 1), u, &x, (twin_mode)cases_below(&rng, TWIN_MODES), r & 1u,
                     cases_u32(&rng));
    }
}

static void float32_is_never_changed(void **state)
{
    (void)state;
    for (int i = 0; i < CASES_STRATIFIED; i += 5)
        CASES_EQUAL(cases_stratified(i),
                    encode(TWIN_F32, cases_stratified(i), (twin_mode)(i % TWIN_MODES), false, 0xffffffffu), "float32");
}

/* trn_cfp8 as a bare format is 4 exponent bits, bias 7: the same codes as Neuron's E4M3. */
static void bare_cfp8_is_e4m3(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 256; code++)
        CASES_EQUAL(cases_bits_of(trn_decode(TRN_F8_E4M3, code)), cases_bits_of(trn_decode(TRN_CFP8, code)),
                    "cfp8 code %02x", (unsigned)code);
    for (int i = 0; i < CASES_STRATIFIED; i += 3)
        CASES_EQUAL(
            encode(TWIN_E4M3, cases_stratified(i), TWIN_NEAREST_EVEN, false, 0),
            trn_encode(TRN_CFP8, cases_float_of(cases_stratified(i)), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0),
            "cfp8 of %08x", (unsigned)cases_stratified(i));
}

static void typed_codecs(void **state)
{
    (void)state;
#define TYPED(name, twin_id)                                                                                           \
    do {                                                                                                               \
        const twin_number x = twin_from_f32(u);                                                                        \
        const uint32_t code = twin_encode(&twin_formats[twin_id], &x, twin_plain(TWIN_NEAREST_EVEN));                  \
        CASES_EQUAL(code, trn_##name##_from_f32(cases_float_of(u)), "trn_" #name "_from_f32(%08x)", (unsigned)u);      \
        CASES_EQUAL(twin_decoded(twin_id, code),                                                                       \
                    cases_bits_of(trn_##name##_to_f32(trn_##name##_from_f32(cases_float_of(u)))), #name);              \
    } while (0)
    for (int i = 0; i < CASES_STRATIFIED; i += 3) {
        const uint32_t u = cases_stratified(i);
        TYPED(bf16, TWIN_BF16);
        TYPED(f16, TWIN_F16);
        TYPED(tf32, TWIN_TF32);
        TYPED(f8_e4m3, TWIN_E4M3);
        TYPED(f8_e4m3fn, TWIN_E4M3FN);
        TYPED(f8_e5m2, TWIN_E5M2);
        TYPED(f8_e3m4, TWIN_E3M4);
    }
#undef TYPED
}

/* ---- MPFR ---- */

#if defined(HAVE_MPFR) && HAVE_MPFR + 0
/* Rounds with MPFR at the target's precision and exponent range, subnormals included. The value is then exact in
 * double, so that its code follows from the twin's encoder without another rounding. */
static uint32_t mpfr_encode(int f, uint32_t u, mpfr_rnd_t rnd)
{
    const twin_format *t = &twin_formats[f];
    const int emin = 1 - t->bias, emax = (int)(twin_max_code(t) >> t->m) - t->bias;
    mpfr_t y;
    mpfr_init2(y, t->m + 1);
    mpfr_set_emin(emin - t->m + 1); /* MPFR's significand is in [1/2, 1): its exponents are one higher */
    mpfr_set_emax(emax + 1);
    int ternary = mpfr_set_d(y, (double)cases_float_of(u), rnd);
    ternary = mpfr_check_range(y, ternary, rnd);
    mpfr_subnormalize(y, ternary, rnd);
    const double d = mpfr_get_d(y, MPFR_RNDZ);
    const bool negative = mpfr_signbit(y) != 0;
    mpfr_clear(y);

    if (isinf(d))
        return twin_encode(t, &(twin_number){ .kind = TWIN_INFINITY, .negative = negative },
                           twin_plain(TWIN_TOWARD_ZERO));
    int exponent;
    const double fraction = frexp(fabs(d), &exponent);
    const twin_number value = twin_make(negative, (uint64_t)ldexp(fraction, 53), d == 0 ? 0 : exponent - 53);
    return twin_encode(t, &value, twin_plain(TWIN_TOWARD_ZERO));
}

static void same_as_mpfr(int f, uint32_t u)
{
    static const struct {
        mpfr_rnd_t rnd;
        twin_mode mode;
    } modes[4] = { { MPFR_RNDN, TWIN_NEAREST_EVEN },
                   { MPFR_RNDZ, TWIN_TOWARD_ZERO },
                   { MPFR_RNDU, TWIN_TOWARD_POSITIVE },
                   { MPFR_RNDD, TWIN_TOWARD_NEGATIVE } };
    const twin_number x = twin_from_f32(u);
    for (int m = 0; m < 4; m++) {
        const uint32_t expected = mpfr_encode(f, u, modes[m].rnd);
        CASES_EQUAL(expected, encode(f, u, modes[m].mode, false, 0), "MPFR: %08x to %s, mode %d", (unsigned)u,
                    twin_formats[f].name, m);
        CASES_EQUAL(expected, twin_encode(&twin_formats[f], &x, twin_plain(modes[m].mode)),
                    "MPFR against the twin: %08x to %s, mode %d", (unsigned)u, twin_formats[f].name, m);
    }
}

static void mpfr_agrees(void **state)
{
    (void)state;
    static const int ieee[] = { TWIN_TF32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E5M2, TWIN_E3M4 };
    uint64_t rng = 7;
    const int step = cases_level() == 1 ? 23 : 1;
    for (int i = 0; i < CASES_STRATIFIED + 100000; i += step) {
        const uint32_t u = i < CASES_STRATIFIED ? cases_stratified(i) : cases_float(&rng);
        if ((u & 0x7f800000u) == 0x7f800000u) continue; /* infinities and NaN are not MPFR's business */
        for (unsigned f = 0; f < sizeof ieee / sizeof ieee[0]; f++) same_as_mpfr(ieee[f], u);
    }
    mpfr_free_cache();
}
#else
static void mpfr_agrees(void **state)
{
    (void)state;
    print_message("MPFR was not found: this oracle is left out\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(formats_that_do_not_exist),
        cmocka_unit_test(every_code_decodes_as_the_twin_says),
        cmocka_unit_test(wide_codes_decode_as_the_twin_says),
        cmocka_unit_test(every_code_makes_the_round_trip),
        cmocka_unit_test(golden_decode),
        cmocka_unit_test(golden_encode),
        cmocka_unit_test(golden_encode_sat),
        cmocka_unit_test(golden_bracket),
        cmocka_unit_test(stratified_inputs),
        cmocka_unit_test(random_inputs),
        cmocka_unit_test(float32_is_never_changed),
        cmocka_unit_test(bare_cfp8_is_e4m3),
        cmocka_unit_test(typed_codecs),
        cmocka_unit_test(mpfr_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
