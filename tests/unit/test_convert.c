/* test_convert.c - trn_convert bit for bit: every 16-bit code, strides, in place, randomness, refusals.
 * SPDX-License-Identifier: MIT
 *
 * The oracle at the top of this file shares no code with trnmath/: it rounds in exact double arithmetic (every value
 * of every format and every gap between two codes is a double). Random bits come from the twin. Beside it stand the
 * golden files, and at level 2 (TRN_TEST_LEVEL=2) a walk over all 2^32 floats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_convert.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/twin_random.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- the oracle ---- */

typedef enum sort { IEEE, NAN_ON_TOP, NO_SPECIALS, SCALE, SIGNED, UNSIGNED } sort;

typedef struct kind {
    const char *name; /* as the golden files spell it */
    trn_format format;
    sort sort;
    int bytes, E, M, bias, shift; /* shift: zero bits below the code in its container */
} kind;

static const kind kinds[] = {
    { "float32", TRN_F32, IEEE, 4, 8, 23, 127, 0 },
    { "tf32", TRN_TF32, IEEE, 4, 8, 10, 127, 13 },
    { "bfloat16", TRN_BF16, IEEE, 2, 8, 7, 127, 0 },
    { "float16", TRN_F16, IEEE, 2, 5, 10, 15, 0 },
    { "float8_e4m3", TRN_F8_E4M3, IEEE, 1, 4, 3, 7, 0 },
    { "float8_e4m3fn", TRN_F8_E4M3FN, NAN_ON_TOP, 1, 4, 3, 7, 0 },
    { "float8_e5m2", TRN_F8_E5M2, IEEE, 1, 5, 2, 15, 0 },
    { "float8_e3m4", TRN_F8_E3M4, IEEE, 1, 3, 4, 3, 0 },
    { "float8_e8m0fnu", TRN_F8_E8M0, SCALE, 1, 8, 0, 127, 0 },
    { "float6_e2m3fn", TRN_F6_E2M3, NO_SPECIALS, 1, 2, 3, 1, 0 },
    { "float6_e3m2fn", TRN_F6_E3M2, NO_SPECIALS, 1, 3, 2, 3, 0 },
    { "float4_e2m1fn", TRN_F4_E2M1, NO_SPECIALS, 1, 2, 1, 1, 0 },
    { "cfp8", TRN_CFP8, IEEE, 1, 4, 3, 7, 0 },
    { "int8", TRN_I8, SIGNED, 1, 0, 0, 0, 0 },
    { "uint8", TRN_U8, UNSIGNED, 1, 0, 0, 0, 0 },
    { "int16", TRN_I16, SIGNED, 2, 0, 0, 0, 0 },
    { "uint16", TRN_U16, UNSIGNED, 2, 0, 0, 0, 0 },
    { "int32", TRN_I32, SIGNED, 4, 0, 0, 0, 0 },
    { "uint32", TRN_U32, UNSIGNED, 4, 0, 0, 0, 0 },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
enum { F32 = 0, TF32 = 1, BF16 = 2, F16 = 3, E4M3 = 4, E5M2 = 6, CFP8 = 12, I8 = 13 };

typedef struct way { /* how one element is rounded */
    trn_rounding rounding;
    bool saturate, carry;
    int n;      /* stochastic: bits, and the drawn ones */
    uint32_t r;
} way;

/* A number that went through binary32: special, or value with its sign beside it (for -0). */
typedef struct number {
    enum { FINITE, INFINITE, NOT_A_NUMBER } is;
    bool negative;
    double magnitude;
} number;

/* whole + fraction, fraction in [0, 1), to an integer */
static double oracle_round(double whole, double fraction, bool negative, way w)
{
    if (fraction == 0) return whole;
    const bool odd = fmod(whole, 2) == 1;
    switch (w.rounding) {
    case TRN_TOWARD_ZERO: return whole;
    case TRN_TOWARD_POSITIVE: return whole + !negative;
    case TRN_TOWARD_NEGATIVE: return whole + negative;
    case TRN_TO_ODD: return whole + !odd;
    case TRN_STOCHASTIC: return whole + (floor(ldexp(fraction, w.n)) + (double)w.r >= ldexp(1, w.n));
    case TRN_NEAREST_EVEN:
    default: return whole + (fraction > 0.5 || (fraction == 0.5 && odd));
    }
}

static double oracle_round_double(double x, bool negative, way w)
{
    return oracle_round(floor(x), x - floor(x), negative, w);
}

/* Does an overflowing finite magnitude stop at the maximum? `near`: it lies before the step after the maximum. */
static bool oracle_stops(bool negative, bool near, way w)
{
    if (w.saturate) return true;
    switch (w.rounding) {
    case TRN_TOWARD_ZERO:
    case TRN_TO_ODD: return true;
    case TRN_TOWARD_POSITIVE: return negative;
    case TRN_TOWARD_NEGATIVE: return !negative;
    case TRN_STOCHASTIC: return near && !w.carry;
    case TRN_NEAREST_EVEN:
    default: return false;
    }
}

/* Codes of positive values: the largest, what overflow becomes, NaN. */
static uint32_t oracle_max(const kind *k)
{
    const uint32_t top = (1u << (k->E + k->M)) - 1;
    if (k->sort == NO_SPECIALS) return top;
    return k->sort == NAN_ON_TOP ? top - 1 : (((1u << k->E) - 1) << k->M) - 1;
}
static uint32_t oracle_overflow(const kind *k) { return k->sort == NO_SPECIALS ? oracle_max(k) : oracle_max(k) + 1; }
static uint32_t oracle_nan(const kind *k)
{
    if (k->sort == NO_SPECIALS) return 1u << (k->E + k->M);
    return k->sort == NAN_ON_TOP ? oracle_max(k) + 1 : oracle_overflow(k) | 1u << (k->M - 1);
}

static double oracle_magnitude(const kind *k, uint32_t code)
{
    const int e = (int)(code >> k->M);
    const double m = (double)(code & ((1u << k->M) - 1));
    return e ? ldexp(ldexp(1, k->M) + m, e - k->bias - k->M) : ldexp(m, 1 - k->bias - k->M);
}

static number oracle_decode(const kind *k, uint32_t code)
{
    static const way nearest = { TRN_NEAREST_EVEN, false, false, 0, 0 };
    number x = { FINITE, false, 0 };
    if (k->sort == SCALE) {
        if (code == 0xff) x.is = NOT_A_NUMBER;
        else x.magnitude = ldexp(1, (int)code - 127);
    } else if (k->sort == SIGNED || k->sort == UNSIGNED) {
        double v = (double)code;
        if (k->sort == SIGNED && v >= ldexp(1, 8 * k->bytes - 1)) v -= ldexp(1, 8 * k->bytes);
        x.negative = v < 0;
        const int drop = fabs(v) >= 0x1p24 ? ilogb(v) - 23 : 0; /* through binary32 */
        x.magnitude = ldexp(oracle_round_double(ldexp(fabs(v), -drop), x.negative, nearest), drop);
    } else {
        code >>= k->shift;
        const uint32_t magnitude = code & ((1u << (k->E + k->M)) - 1);
        x.negative = code >> (k->E + k->M) & 1u;
        if (magnitude <= oracle_max(k)) x.magnitude = oracle_magnitude(k, magnitude);
        else x.is = magnitude == oracle_overflow(k) && k->sort == IEEE ? INFINITE : NOT_A_NUMBER;
    }
    return x;
}

static uint32_t oracle_encode_float(const kind *k, number x, way w)
{
    const uint32_t sign = (uint32_t)x.negative << (k->E + k->M);
    if (x.is == NOT_A_NUMBER) return (oracle_nan(k) ^ sign) << k->shift;
    if (x.is == INFINITE) return (oracle_overflow(k) | sign) << k->shift;
    const int least = 1 - k->bias, at = x.magnitude == 0 ? least : ilogb(x.magnitude), e = at > least ? at : least;
    const double steps = ldexp(x.magnitude, k->M - e), rounded = oracle_round_double(steps, x.negative, w);
    const double value = ldexp(rounded, e - k->M), max = oracle_magnitude(k, oracle_max(k));
    uint32_t code;
    if (value > max) {
        code = oracle_stops(x.negative, ldexp(floor(steps), e - k->M) <= max, w) ? oracle_max(k) : oracle_overflow(k);
    } else if (value < ldexp(1, least)) {
        code = (uint32_t)ldexp(value, k->M - least);
    } else {
        const int exponent = ilogb(value);
        code = (uint32_t)(exponent + k->bias - 1) << k->M;
        code += (uint32_t)ldexp(value, k->M - exponent); /* its leading one is the missing exponent step */
    }
    return (code | sign) << k->shift;
}

/* Powers of two: the fraction is the place between two of them, and what is rounded is the exponent, that is the code.
 * Nearest takes ties up. Nothing lies below 2^-127. */
static uint32_t oracle_encode_scale(number x, way w)
{
    if (x.is != FINITE) return 0xff;
    if (x.negative || x.magnitude == 0) return w.saturate ? 0x00 : 0xff;
    if (x.magnitude <= 0x1p-127) return 0;
    const int e = ilogb(x.magnitude);
    const double fraction = ldexp(x.magnitude, -e) - 1;
    double code = oracle_round((double)(e + 127), fraction, false, w);
    if (w.rounding == TRN_NEAREST_EVEN) code = (double)(e + 127) + (fraction >= 0.5);
    if (code <= 0xfe) return (uint32_t)code;
    return oracle_stops(false, true, w) ? 0xfe : 0xff;
}

static uint32_t oracle_encode_integer(const kind *k, number x, way w)
{
    const int bits = 8 * k->bytes;
    const double top = k->sort == SIGNED ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1;
    const double limit = !x.negative ? top : k->sort == SIGNED ? top + 1 : 0;
    if (x.is == NOT_A_NUMBER) return 0;
    double whole = x.is == INFINITE ? limit : oracle_round_double(x.magnitude, x.negative, w);
    if (whole > limit) whole = limit;
    return (uint32_t)(x.negative && whole > 0 ? ldexp(1, bits) - whole : whole);
}

static uint32_t oracle(const kind *to, const kind *from, uint32_t code, way w)
{
    if (to == from) return code;
    const number x = oracle_decode(from, code);
    if (to->sort == SCALE) return oracle_encode_scale(x, w);
    if (to->sort == SIGNED || to->sort == UNSIGNED) return oracle_encode_integer(to, x, w);
    return oracle_encode_float(to, x, w);
}

/* ---- plumbing ---- */

static uint32_t load(const unsigned char *at, int bytes)
{
    uint32_t code = 0;
    for (int i = bytes - 1; i >= 0; i--) code = code << 8 | at[i];
    return code;
}

static void store(unsigned char *at, int bytes, uint32_t code)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(code >> 8 * i);
}


static trn_cfp8 descriptor(const kind *k)
{
    const trn_cfp8 c = { k->E, k->bias, k->sort == NAN_ON_TOP };
    return c;
}

static trn_convert_args arguments(const kind *to, void *dst, const kind *from, const void *src, int64_t n)
{
    trn_convert_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_1d(to->format, dst, n);
    a.src = trn_tensor_1d(from->format, (void *)(uintptr_t)src, n);
    a.dst.cfp8 = descriptor(to);
    a.src.cfp8 = descriptor(from);
    return a;
}

static void must(trn_convert_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_convert(&a) != TRN_OK) fail_msg("trn_convert: %s", error.text);
    assert_int_equal(error.status, TRN_OK);
}

/* What the generator of a call with .xorwow will give. (test_random.c holds it against its twin.) */
enum { DRAWN = 310000 };
static uint32_t drawn[DRAWN];

static uint32_t drawn_bits(uint64_t i, int n)
{
    if (n != 8 && n != 16) return drawn[i] >> (32 - n);
    const uint64_t share = n == 8 ? 4 : 2;
    return drawn[i / share] >> (uint64_t)n * (i % share) & ((1u << n) - 1);
}

/* How element i of this call is rounded. */
static way way_of(const trn_convert_args *a, uint64_t i)
{
    way w = { a->rounding, a->overflow == TRN_SATURATE, a->sr_carry_to_inf, a->sr_bits ? a->sr_bits : 32, 0 };
    if (a->rounding != TRN_STOCHASTIC) return w;
    w.r = a->xorwow ? drawn_bits(i, w.n) : twin_random_bits(a->seed, a->stream, a->index + i, w.n);
    return w;
}

static void check_row(const trn_convert_args *a, const kind *to, const unsigned char *dst, const kind *from,
                      const unsigned char *src, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i += step) {
        const uint32_t code = load(src + i * from->bytes, from->bytes);
        const way w = way_of(a, (uint64_t)i);
        CASES_EQUAL(oracle(to, from, code, w), load(dst + i * to->bytes, to->bytes),
                    "%s %08x to %s, %s, saturate %d, carry %d, %d bits %08x, element %lld, isa %s", from->name,
                    (unsigned)code, to->name, trn_round_text(w.rounding), w.saturate, w.carry, w.n, (unsigned)w.r,
                    (long long)i, trn_isa_text(a->isa));
    }
}

static uint64_t digest(const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* A code of a format; floats get the troublesome ones often. Codes of fewer bits than their byte carry junk above. */
static uint32_t random_code(const kind *k, uint64_t *rng)
{
    if (k->format == TRN_F32 || k->format == TRN_TF32) return cases_float(rng);
    const uint32_t code = cases_u32(rng);
    return k->bytes == 4 ? code : code & ((1u << 8 * k->bytes) - 1);
}

/* What the oracle expects codes to look like: FP6 and FP4 in the low bits only. */
static uint32_t plain_code(const kind *k, uint32_t code)
{
    return k->sort == NO_SPECIALS ? code & ((2u << (k->E + k->M)) - 1) : code;
}

static void fill_random(const kind *k, unsigned char *data, int64_t n, uint64_t *rng)
{
    for (int64_t i = 0; i < n; i++) store(data + i * k->bytes, k->bytes, plain_code(k, random_code(k, rng)));
}

/* ---- values ---- */

enum { ALL16 = 65536 };
static unsigned char buffer_a[ALL16 * 4 + 64], buffer_b[ALL16 * 4 + 64];

/* Every BF16 and F16 code, and every code of the narrower formats, to every format, on every instruction set. */
static void every_narrow_code_to_every_format(void **state)
{
    (void)state;
    for (int f = 0; f < KINDS; f++) {
        const kind *from = &kinds[f];
        if (from->bytes == 4) continue;
        const int64_t n = from->sort == NO_SPECIALS ? 2 << (from->E + from->M) : (int64_t)1 << 8 * from->bytes;
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * from->bytes, from->bytes, (uint32_t)i);
        for (int t = 0; t < KINDS; t++)
            for (int i = 0; i < COUNT(all_isas); i++)
                for (int saturate = 0; saturate < 2; saturate++) {
                    trn_convert_args a = arguments(&kinds[t], buffer_b, from, buffer_a, n);
                    if (!trn_isa_supported(all_isas[i])) continue;
                    a.isa = all_isas[i];
                    a.overflow = saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                    must(a);
                    check_row(&a, &kinds[t], buffer_b, from, buffer_a, n, 1);
                }
    }
}

/* Floats around every place where some format's rounding changes its mind, in all modes. */
static void floats_at_the_edges_in_every_mode(void **state)
{
    (void)state;
    uint64_t rng = 20;
    for (int t = 1; t < KINDS; t++)
        for (int mode = 0; mode <= TRN_TO_ODD; mode++)
            for (int variant = 0; variant < 4; variant++) {
                const int64_t n = 12000;
                for (int64_t i = 0; i < n; i++) {
                    const uint32_t edge = cases_stratified(cases_below(&rng, CASES_STRATIFIED));
                    store(buffer_a + 4 * i, 4, cases_one_in(&rng, 3) ? cases_float(&rng) : edge);
                }
                trn_convert_args a = arguments(&kinds[t], buffer_b, &kinds[F32], buffer_a, n);
                a.rounding = (trn_rounding)mode;
                a.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                a.sr_carry_to_inf = variant & 2;
                a.seed = 7;
                if (mode != TRN_STOCHASTIC && variant > 1) continue;
                must(a);
                check_row(&a, &kinds[t], buffer_b, &kinds[F32], buffer_a, n, 1);
            }
}

/* The band between the maximum and the step after it is where the stochastic rules differ. */
static void stochastic_overflow(void **state)
{
    (void)state;
    for (int t = 1; t < KINDS; t++) {
        const kind *to = &kinds[t];
        if (to->sort != IEEE && to->sort != NAN_ON_TOP) continue;
        const double max = oracle_magnitude(to, oracle_max(to)), step = max - oracle_magnitude(to, oracle_max(to) - 1);
        const int64_t n = 4000;
        for (int64_t i = 0; i < n; i++) {
            const float x = (float)(max + step * ((double)i / 2000 - 0.5)) * (i % 2 ? 1.0f : -1.0f);
            store(buffer_a + 4 * i, 4, cases_bits_of(x));
        }
        for (int variant = 0; variant < 4; variant++)
            for (int bits = 0; bits <= 32; bits += 8) {
                trn_convert_args a = arguments(to, buffer_b, &kinds[F32], buffer_a, n);
                a.rounding = TRN_STOCHASTIC;
                a.overflow = variant & 1 ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
                a.sr_carry_to_inf = variant & 2;
                a.sr_bits = bits;
                must(a);
                check_row(&a, to, buffer_b, &kinds[F32], buffer_a, n, 1);
            }
    }
}

static void every_pair_at_random(void **state)
{
    (void)state;
    uint64_t rng = 21;
    for (int f = 0; f < KINDS; f++)
        for (int t = 0; t < KINDS; t++) {
            const int64_t n = 1500;
            fill_random(&kinds[f], buffer_a, n, &rng);
            trn_convert_args a = arguments(&kinds[t], buffer_b, &kinds[f], buffer_a, n);
            a.rounding = (trn_rounding)cases_below(&rng, 6);
            a.sr_bits = cases_below(&rng, 33);
            a.stream = cases_next(&rng);
            must(a);
            check_row(&a, &kinds[t], buffer_b, &kinds[f], buffer_a, n, 1);
        }
}

/* Junk above a 6- or 4-bit code is ignored by a cast; a copy keeps every bit, NaN payloads and junk included. */
static void copies_keep_every_bit(void **state)
{
    (void)state;
    uint64_t rng = 22;
    for (int f = 0; f < KINDS; f++) {
        const kind *k = &kinds[f];
        const int64_t n = 3000;
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * k->bytes, k->bytes, cases_u32(&rng));
        for (int mode = 0; mode <= TRN_TO_ODD; mode++) {
            trn_convert_args a = arguments(k, buffer_b, k, buffer_a, n);
            a.rounding = (trn_rounding)mode;
            a.overflow = TRN_SATURATE;
            must(a);
            assert_memory_equal(buffer_a, buffer_b, (size_t)(n * k->bytes));
        }
        if (k->sort == NO_SPECIALS) {
            trn_convert_args a = arguments(&kinds[BF16], buffer_b, k, buffer_a, n);
            must(a);
            for (int64_t i = 0; i < n; i++) {
                const uint32_t expected = oracle(&kinds[BF16], k, plain_code(k, buffer_a[i]), way_of(&a, 0));
                CASES_EQUAL(expected, load(buffer_b + 2 * i, 2), "%s with junk %02x", k->name, buffer_a[i]);
            }
        }
    }
}

/* ---- the golden files ---- */

enum { GOLDEN_MOST = 10000 };
static uint32_t golden[4][GOLDEN_MOST];

/* Reads the columns of one file; 0 lines when there is none. */
static int64_t read_golden(const char *prefix, const char *name, int columns)
{
    char path[1024], line[128];
    int64_t n = 0;
    snprintf(path, sizeof path, "%s/%s_%s.txt", TRN_GOLDEN_DIR, prefix, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        unsigned column[4] = { 0, 0, 0, 0 };
        const int found = sscanf(line, "%x %x %x %x", &column[0], &column[1], &column[2], &column[3]);
        if (found != columns || n == GOLDEN_MOST)
            fail_msg("%s: %d columns in line %lld", path, found, (long long)n + 1);
        for (int c = 0; c < 4; c++) golden[c][n] = column[c];
        n++;
    }
    fclose(file);
    return n;
}

static void check_golden(const trn_convert_args *a, const kind *to, const uint32_t *codes, const uint32_t *x, int64_t n)
{
    must(*a);
    for (int64_t i = 0; i < n; i++)
        CASES_EQUAL(codes[i] << to->shift, load(buffer_b + i * to->bytes, to->bytes), "golden %s, %s, input %08x",
                    to->name, trn_round_text(a->rounding), (unsigned)x[i]);
}

static void golden_files_agree_on(trn_isa isa)
{
    int files = 0;
    for (int t = 1; t < KINDS; t++) {
        const kind *to = &kinds[t];
        int64_t n;
        for (int saturate = 0; saturate < 2; saturate++) {
            n = read_golden(saturate ? "encode_sat" : "encode", to->name, 2);
            trn_convert_args a = arguments(to, buffer_b, &kinds[F32], golden[0], n);
            a.overflow = saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
            a.isa = isa;
            if (n) check_golden(&a, to, golden[1], golden[0], n);
            files += n > 0;
        }
        n = read_golden("decode", to->name, 2);
        for (int64_t i = 0; i < n; i++) store(buffer_a + i * to->bytes, to->bytes, golden[0][i] << to->shift);
        trn_convert_args decode = arguments(&kinds[F32], buffer_b, to, buffer_a, n);
        decode.isa = isa;
        if (n) check_golden(&decode, &kinds[F32], golden[1], golden[0], n);
        files += n > 0;

        n = read_golden("bracket", to->name, 4);
        for (int mode = 0; n && mode <= TRN_TOWARD_NEGATIVE; mode++) {
            trn_convert_args a = arguments(to, buffer_b, &kinds[F32], golden[0], n);
            a.rounding = (trn_rounding)mode;
            a.sr_bits = 11;
            a.isa = isa;
            if (mode == TRN_NEAREST_EVEN) continue;
            for (int64_t i = 0; i < n; i++) { /* the third column becomes what this mode must give */
                const uint64_t r = twin_random_bits(0, 0, (uint64_t)i, 11);
                bool away = mode == TRN_TOWARD_POSITIVE;
                if (mode == TRN_STOCHASTIC)
                    away = (golden[3][i] >> 21) + r >= 1u << 11 && golden[2][i] <= oracle_max(to);
                buffer_a[i] = away;
            }
            static uint32_t expected[GOLDEN_MOST];
            for (int64_t i = 0; i < n; i++) expected[i] = golden[buffer_a[i] ? 2 : 1][i];
            check_golden(&a, to, expected, golden[0], n);
        }
        files += n > 0;
    }
    if (files != 4 * 11 - 1) fail_msg("%d golden files in %s, expected 43", files, TRN_GOLDEN_DIR);
}

static void golden_files_agree(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(all_isas); i++)
        if (trn_isa_supported(all_isas[i])) golden_files_agree_on(all_isas[i]);
}

/* ---- views ---- */

enum { ARENA = 1 << 16 };
static unsigned char source[ARENA], target[ARENA], expected_target[ARENA];

static int64_t span(const trn_tensor *t)
{
    int64_t elements = 1, last = 0;
    bool packed = true;
    for (int i = 0; i < t->rank; i++) {
        elements *= t->shape[i];
        last += (t->shape[i] - 1) * t->stride[i];
        packed = packed && t->stride[i] == 0;
    }
    return packed ? elements : last + 1;
}

static void random_shape(trn_tensor *t, uint64_t *rng)
{
    memset(t, 0, sizeof *t);
    t->rank = 1 + cases_below(rng, TRN_MAX_RANK);
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++) {
        const int most = cases_one_in(rng, 4) ? 3000 : 6;
        t->shape[i] = 1 + cases_below(rng, most);
        if (elements * t->shape[i] > 4000) t->shape[i] = 1;
        elements *= t->shape[i];
    }
}

static int64_t offset_at(const trn_tensor *t, int64_t row_major)
{
    int64_t offset = 0, rest = row_major;
    bool packed = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        offset += rest % t->shape[i] * t->stride[i];
        rest /= t->shape[i];
        packed = packed && t->stride[i] == 0;
    }
    return packed ? row_major : offset;
}

/* The whole target arena must come out as the oracle says: what a view does not name stays as it was. */
static void check_view(const trn_convert_args *a, const kind *to, const kind *from, const char *what, int number)
{
    int64_t n = 1;
    for (int i = 0; i < a->dst.rank; i++) n *= a->dst.shape[i];
    const size_t dst_at = (size_t)((unsigned char *)a->dst.data - target);
    const unsigned char *src = (const unsigned char *)a->src.data;
    memcpy(expected_target, target, ARENA);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = load(src + offset_at(&a->src, i) * from->bytes, from->bytes);
        store(expected_target + dst_at + (size_t)(offset_at(&a->dst, i) * to->bytes), to->bytes,
              oracle(to, from, code, way_of(a, (uint64_t)i)));
    }
    must(*a);
    for (size_t i = 0; i < ARENA; i++)
        if (target[i] != expected_target[i])
            fail_msg("%s %d: %s to %s, rank %d, byte %zu (view at %zu): %02x, expected %02x", what, number, from->name,
                     to->name, a->dst.rank, i, dst_at, target[i], expected_target[i]);
}

static void set_modes(trn_convert_args *a, uint64_t *rng)
{
    const int isa = cases_below(rng, COUNT(all_isas) + 1);
    a->rounding = cases_one_in(rng, 2) ? TRN_NEAREST_EVEN : (trn_rounding)cases_below(rng, 6);
    a->overflow = cases_one_in(rng, 3) ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    a->seed = cases_next(rng);
    a->stream = cases_next(rng);
    a->index = cases_one_in(rng, 2) ? 0 : cases_next(rng);
    a->sr_bits = cases_one_in(rng, 2) ? 0 : cases_below(rng, 33);
    a->sr_carry_to_inf = cases_one_in(rng, 2);
    if (isa < COUNT(all_isas) && trn_isa_supported(all_isas[isa])) a->isa = all_isas[isa];
}

static const kind *random_kind(uint64_t *rng)
{
    return cases_one_in(rng, 3) ? &kinds[cases_below(rng, KINDS)] : &kinds[cases_below(rng, 4)];
}

/* Modes, shape, strides, addresses and source of a call; false when its views would not fit. */
static bool random_call(trn_convert_args *a, const kind *to, const kind *from, uint64_t *rng)
{
    set_modes(a, rng);
    random_shape(&a->dst, rng);
    a->src = a->dst;
    random_strides(&a->dst, false, false, rng);
    random_strides(&a->src, true, false, rng);
    a->dst.format = to->format;
    a->src.format = from->format;
    a->dst.data = target + cases_below(rng, 130);
    a->src.data = source + cases_below(rng, 130);
    if (span(&a->dst) * to->bytes > ARENA - 130 || span(&a->src) * from->bytes > ARENA - 130) return false;
    fill_random(from, (unsigned char *)a->src.data, span(&a->src), rng);
    return true;
}

/* Any strides, any byte address, broadcast sources. */
static void random_views(void **state)
{
    (void)state;
    uint64_t rng = 30;
    for (int number = 0; number < 3000; number++) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        trn_convert_args a = arguments(to, target, from, source, 1);
        if (!random_call(&a, to, from, &rng)) continue;
        fill_random(&kinds[TRN_I8], target, ARENA / kinds[TRN_I8].bytes, &rng);
        check_view(&a, to, from, "view", number);
    }
}

/* The same data, element size and strides: the source is read before it is overwritten. */
static void random_views_in_place(void **state)
{
    (void)state;
    uint64_t rng = 31;
    int done = 0;
    while (done < 1500) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        if (to->bytes != from->bytes) continue;
        trn_convert_args a = arguments(to, target, from, target, 1);
        set_modes(&a, &rng);
        random_shape(&a.dst, &rng);
        random_strides(&a.dst, false, false, &rng);
        a.dst.data = target + cases_below(&rng, 130);
        if (span(&a.dst) * to->bytes > ARENA - 130) continue;
        a.src = a.dst;
        a.dst.format = to->format;
        a.src.format = from->format;
        for (int i = 0; i < a.src.rank; i++) /* a stride that is never taken need not be the same */
            if (a.src.shape[i] == 1 && a.src.stride[i] > 0) a.src.stride[i] += 5;
        fill_random(from, (unsigned char *)a.dst.data, span(&a.dst), &rng);
        check_view(&a, to, from, "in place", done++);
    }
}

/* Large transposes and odd tails: every tile edge, and rows longer than a chunk. */
static void tiles_and_tails(void **state)
{
    (void)state;
    enum { ROWS = 131, COLUMNS = 197 };
    static uint32_t in[ROWS * COLUMNS];
    static uint16_t out[ROWS * COLUMNS];
    uint64_t rng = 32;
    for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = cases_float(&rng);
    for (int mode = 0; mode < 2; mode++) {
        trn_convert_args a = arguments(&kinds[BF16], out, &kinds[F32], in, 1);
        a.rounding = mode ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        a.dst = trn_tensor_2d(TRN_BF16, out, COLUMNS, ROWS);
        a.src = trn_tensor_2d(TRN_F32, in, COLUMNS, ROWS);
        a.src.stride[0] = 1;
        a.src.stride[1] = COLUMNS;
        must(a);
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < ROWS; j++) {
                const way w = way_of(&a, (uint64_t)(i * ROWS + j));
                CASES_EQUAL(oracle(&kinds[BF16], &kinds[F32], in[j * COLUMNS + i], w), out[i * ROWS + j],
                            "transpose, mode %d, %d %d", mode, i, j);
            }
    }
    for (int64_t n = 0; n < 300; n++)
        for (int i = 0; i < COUNT(all_isas); i++) {
            trn_convert_args a = arguments(&kinds[BF16], out, &kinds[F32], in, n);
            if (!trn_isa_supported(all_isas[i])) continue;
            a.isa = all_isas[i];
            out[n] = 0x5a5a;
            must(a);
            check_row(&a, &kinds[BF16], (const unsigned char *)out, &kinds[F32], (const unsigned char *)in, n, 1);
            assert_int_equal(out[n], 0x5a5a);
        }
}

/* ---- randomness ---- */

/* Element i takes field i, whatever the strides and however the call is cut; seed and stream both matter. */
static void stochastic_rounding_follows_the_position(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N];
    static uint16_t whole[N];
    for (int i = 0; i < N; i++) x[i] = 1.0f + 0x1p-9f * (float)(i % 4); /* quarters of a BF16 step */
    for (int bits = 1; bits <= 32; bits++) {
        trn_convert_args a = arguments(&kinds[BF16], whole, &kinds[F32], x, N);
        a.rounding = TRN_STOCHASTIC;
        a.sr_bits = bits;
        a.seed = 0x123456789abcdefu;
        a.stream = 0xfedcba9876543210u;
        must(a);
        check_row(&a, &kinds[BF16], (const unsigned char *)whole, &kinds[F32], (const unsigned char *)x, N, 1);
        const uint64_t first = digest(whole, sizeof whole);
        a.seed ^= 1ull << 40;
        must(a);
        const uint64_t other_seed = digest(whole, sizeof whole);
        a.seed ^= 1ull << 40;
        a.stream ^= 1ull << 40;
        must(a);
        const uint64_t other_stream = digest(whole, sizeof whole);
        assert_true(first != other_seed && first != other_stream && other_seed != other_stream);
    }
}

/* A part takes the fields it would take inside its whole, wherever it is cut, past 2^32 blocks, and through 2^64. */
static void parts_round_as_their_whole(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const uint64_t firsts[] = { 0, 1, 0x3fffffff0u, 0x3ffffffffu, UINT64_MAX - 1000, UINT64_MAX };
    static const int bits[] = { 32, 16, 8, 13 };
    static unsigned char x[4 * N];
    static uint16_t whole[N], parts[N];
    uint64_t rng = 33;
    fill_random(&kinds[F32], x, N, &rng);
    for (int f = 0; f < COUNT(firsts); f++)
        for (int b = 0; b < COUNT(bits); b++) {
            trn_convert_args a = arguments(&kinds[BF16], whole, &kinds[F32], x, N);
            a.rounding = TRN_STOCHASTIC;
            a.sr_bits = bits[b];
            a.index = firsts[f];
            must(a);
            check_row(&a, &kinds[BF16], (const unsigned char *)whole, &kinds[F32], x, N, 1);
            for (int at = 0, n; at < N; at += n) {
                n = 1 + cases_below(&rng, N - at);
                trn_convert_args part = arguments(&kinds[BF16], parts + at, &kinds[F32], x + 4 * at, n);
                part.rounding = TRN_STOCHASTIC;
                part.sr_bits = bits[b];
                part.index = firsts[f] + (uint64_t)at;
                must(part);
            }
            assert_memory_equal(whole, parts, sizeof whole);
        }
}

/* The chance to go up is the position between the neighbours: 0, 1/4, 1/2 and 3/4 of 2^17 draws each. */
static void stochastic_rounding_is_fair(void **state)
{
    (void)state;
    enum { N = 1 << 17 };
    static float x[N];
    static uint16_t y[N];
    static const trn_format formats[2] = { TRN_BF16, TRN_F16 };
    for (int f = 0; f < 2; f++)
        for (int quarter = 0; quarter < 4; quarter++) {
            const float step = f ? 0x1p-24f : 0x1p-133f; /* subnormals: the least steps of F16 and BF16 */
            for (int i = 0; i < N; i++) x[i] = step * (1.0f + 0.25f * (float)quarter);
            trn_convert_args a = arguments(&kinds[f ? F16 : BF16], y, &kinds[F32], x, N);
            assert_int_equal(a.dst.format, formats[f]);
            a.rounding = TRN_STOCHASTIC;
            must(a);
            int up = 0;
            for (int i = 0; i < N; i++) up += y[i] == 2;
            const int fair = N / 4 * quarter, off = up - fair;
            /* six standard deviations; deterministic, since the seed is fixed */
            if (quarter == 0 ? off != 0 : off < -6 * 157 || off > 6 * 157)
                fail_msg("%s: %d of %d went up, %d would be fair", kinds[f ? F16 : BF16].name, up, N, fair);
        }
}

/* ---- words from a generator with a state ---- */

/* After a call that took `words` of them, the generator's next word is the one that follows. */
static void check_drawn(trn_xorwow_vector *g, size_t words, const char *what)
{
    uint32_t next;
    trn_xorwow_vector_words(g, &next, 1, TRN_ISA_PORTABLE);
    CASES_EQUAL(drawn[words], next, "the word after %d, %s", (int)words, what);
}

static size_t words_for(const trn_convert_args *a, int64_t n)
{
    const int64_t share = a->sr_bits == 8 ? 4 : a->sr_bits == 16 ? 2 : 1;
    if (a->dst.format == a->src.format || a->dst.format == TRN_F32) return 0; /* nothing can round */
    return (size_t)((n + share - 1) / share);
}

/* Row-major, whatever the strides, the runs and the instruction set; and no word too many. */
static void xorwow_words_come_row_major(void **state)
{
    (void)state;
    static const int bits[] = { 0, 8, 16, 32, 13 };
    uint64_t rng = 34;
    trn_xorwow_vector start, g;
    trn_xorwow_vector_seed(&start, 7);
    for (int number = 0; number < 1500; number++) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        trn_convert_args a = arguments(to, target, from, source, 1);
        if (!random_call(&a, to, from, &rng)) continue;
        a.rounding = TRN_STOCHASTIC;
        a.sr_bits = bits[cases_below(&rng, COUNT(bits))];
        trn_xorwow_vector_words(&start, drawn, (size_t)cases_below(&rng, 700), TRN_ISA_AUTO);
        g = start;
        trn_xorwow_vector_words(&g, drawn, 5000, TRN_ISA_AUTO);
        g = start;
        a.xorwow = &g;
        check_view(&a, to, from, "xorwow view", number);
        check_drawn(&g, words_for(&a, trn_tensor_elements(a.dst)), "a view");
    }
}

/* Large enough for threads, which are not used, and for stores past the caches; modes without random bits draw none. */
static void xorwow_words_in_large_arrays(void **state)
{
    (void)state;
    static unsigned char x[4 * DRAWN], y[2 * DRAWN];
    const int64_t n = DRAWN - 3;
    uint64_t rng = 35;
    trn_xorwow_vector g;
    fill_random(&kinds[F32], x, n, &rng);
    for (int i = 0; i < COUNT(all_isas); i++)
        for (int mode = 0; mode < 2; mode++) {
            trn_convert_args a = arguments(&kinds[mode ? F16 : BF16], y, &kinds[F32], x, n);
            if (!trn_isa_supported(all_isas[i])) continue;
            trn_xorwow_vector_seed(&g, 8);
            trn_xorwow_vector_words(&g, drawn, DRAWN, TRN_ISA_AUTO);
            trn_xorwow_vector_seed(&g, 8);
            a.isa = all_isas[i];
            a.xorwow = &g;
            must(a); /* nearest even */
            a.rounding = TRN_STOCHASTIC;
            a.sr_bits = mode ? 16 : 0;
            must(a);
            check_row(&a, &kinds[mode ? F16 : BF16], y, &kinds[F32], x, n, 1);
            check_drawn(&g, words_for(&a, n), "a large array");
        }

    enum { ROWS = 5, COLUMNS = 20001, PITCH = COLUMNS + 10 }; /* rows that are longer than a tile, with gaps */
    trn_convert_args a = arguments(&kinds[BF16], y, &kinds[F32], x, 1);
    a.dst = trn_tensor_2d(TRN_BF16, y, ROWS, COLUMNS);
    a.src = trn_tensor_2d(TRN_F32, x, ROWS, COLUMNS);
    a.src.stride[0] = PITCH;
    a.src.stride[1] = 1;
    a.rounding = TRN_STOCHASTIC;
    a.xorwow = &g;
    trn_xorwow_vector_seed(&g, 8);
    must(a);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const uint32_t code = load(x + 4 * (i / COLUMNS * PITCH + i % COLUMNS), 4);
        const uint32_t right = oracle(&kinds[BF16], &kinds[F32], code, way_of(&a, (uint64_t)i));
        CASES_EQUAL(right, load(y + 2 * i, 2), "long row, %d", i);
    }
}

/* ---- configurable FP8 ---- */

static kind random_cfp8(uint64_t *rng)
{
    kind k = { "cfp8", TRN_CFP8, cases_one_in(rng, 2) ? IEEE : NAN_ON_TOP, 1, 2 + cases_below(rng, 4), 0, 0, 0 };
    k.M = 7 - k.E;
    do
        k.bias = cases_one_in(rng, 2) ? cases_below(rng, 20) : cases_below(rng, 256) - 128;
    while (!trn_cfp8_valid(descriptor(&k)));
    return k;
}

/* Any descriptor to any other and to and from any format; from bytes with a table and, when they are few, without. */
static void configured_fp8(void **state)
{
    (void)state;
    uint64_t rng = 36;
    for (int number = 0; number < 3000; number++) {
        const kind one = random_cfp8(&rng), two = random_cfp8(&rng), *other = random_kind(&rng);
        const kind *to = number % 3 ? &one : other, *from = number % 3 == 1 ? &two : number % 3 ? other : &one;
        const int64_t n = 1 + cases_below(&rng, cases_one_in(&rng, 2) ? 255 : 2000);
        trn_convert_args a = arguments(to, buffer_b, from, buffer_a, n);
        fill_random(from, buffer_a, n, &rng);
        set_modes(&a, &rng);
        const bool same = to->E == from->E && to->bias == from->bias && to->sort == from->sort;
        if (to->format == from->format && same) continue; /* a copy */
        must(a);
        check_row(&a, to, buffer_b, from, buffer_a, n, 1);
    }
}

/* A copy between two views of one descriptor keeps every bit, NaN payloads included; a descriptor that says nothing is
 * 4 bits and 7. */
static void one_configured_fp8(void **state)
{
    (void)state;
    const kind *cfp8 = &kinds[CFP8];
    for (int i = 0; i < 256; i++) buffer_a[i] = (unsigned char)i;
    trn_convert_args a = arguments(cfp8, buffer_b, cfp8, buffer_a, 256);
    memset(&a.dst.cfp8, 0, sizeof a.dst.cfp8);
    must(a);
    assert_memory_equal(buffer_a, buffer_b, 256);
    a.dst.cfp8.no_infinity = true; /* 78 was infinity, 79 a NaN, and 77 means the same */
    must(a);
    CASES_EQUAL(0x7f, buffer_b[0x78], "infinity where there is none");
    CASES_EQUAL(0x7f, buffer_b[0x79], "NaN");
    CASES_EQUAL(0x77, buffer_b[0x77], "240");
}

/* ---- same bits everywhere ---- */

/* Thread counts and instruction sets, on arrays large enough for threads and, the last ones, for streaming stores. */
static void same_bits_for_any_threads_and_isa(void **state)
{
    (void)state;
    static const struct { int to, from; trn_rounding rounding; int bits; int64_t n; bool transposed; } list[] = {
        { BF16, F32, TRN_NEAREST_EVEN, 0, 300007, false }, { F16, F32, TRN_NEAREST_EVEN, 0, 300007, false },
        { TF32, F32, TRN_NEAREST_EVEN, 0, 300007, false }, { F32, BF16, TRN_NEAREST_EVEN, 0, 300007, false },
        { F32, F16, TRN_NEAREST_EVEN, 0, 300007, false },  { F32, TF32, TRN_NEAREST_EVEN, 0, 300007, false },
        { F16, BF16, TRN_NEAREST_EVEN, 0, 300007, false }, { BF16, F32, TRN_STOCHASTIC, 0, 300007, false },
        { BF16, F32, TRN_STOCHASTIC, 16, 300007, false },  { BF16, F32, TRN_STOCHASTIC, 8, 300007, false },
        { TF32, F32, TRN_STOCHASTIC, 5, 300007, false },   { F16, F32, TRN_STOCHASTIC, 21, 200003, false },
        { BF16, F32, TRN_NEAREST_EVEN, 0, 401 * 701, true }, { BF16, F32, TRN_STOCHASTIC, 0, 401 * 701, true },
        { BF16, F32, TRN_NEAREST_EVEN, 0, 4500001, false }, { F32, F16, TRN_NEAREST_EVEN, 0, 2500001, false },
        { BF16, F32, TRN_STOCHASTIC, 0, 4500001, false },
        { E4M3, F32, TRN_NEAREST_EVEN, 0, 300007, false },   { E4M3, F32, TRN_STOCHASTIC, 0, 300007, false },
        { E5M2, E4M3, TRN_NEAREST_EVEN, 0, 300007, false },  { F32, E4M3, TRN_NEAREST_EVEN, 0, 2500001, false },
        { E4M3, BF16, TRN_NEAREST_EVEN, 0, 8500001, false }, { I8, F32, TRN_NEAREST_EVEN, 0, 300007, false },
        { E5M2, F32, TRN_TOWARD_ZERO, 0, 401 * 701, true },
    };
    static const int threads[] = { 1, 2, 3, 7 }, offset[] = { 0, 2, 1, 3 };
    static unsigned char in[4500001 * 4], out[4500001 * 4 + 8];
    uint64_t rng = 40;
    for (int64_t i = 0; i < 4500001; i++) store(in + 4 * i, 4, cases_float(&rng));
    for (int c = 0; c < COUNT(list); c++) {
        uint64_t first = 0;
        for (int i = 0; i < COUNT(all_isas); i++)
            for (int t = 0; t < COUNT(threads); t++) {
                const kind *to = &kinds[list[c].to], *from = &kinds[list[c].from];
                unsigned char *y = out + offset[t]; /* not always at the start of a line, or of an element */
                trn_convert_args a = arguments(to, y, from, in, list[c].n);
                if (!trn_isa_supported(all_isas[i])) continue;
                if (list[c].transposed) {
                    a.dst = trn_tensor_2d(to->format, y, 401, 701);
                    a.src = trn_tensor_transposed(trn_tensor_2d(from->format, in, 701, 401));
                }
                a.isa = all_isas[i];
                a.rounding = list[c].rounding;
                a.sr_bits = list[c].bits;
                with_threads(threads[t]);
                memset(out, 0xee, (size_t)(list[c].n * to->bytes) + 8);
                must(a);
                const uint64_t found = digest(y, (size_t)(list[c].n * to->bytes));
                if (first == 0) {
                    first = found;
                    if (!list[c].transposed) check_row(&a, to, y, from, in, list[c].n, 7);
                } else if (found != first) {
                    fail_msg("case %d: isa %s with %d threads gives other bits", c, trn_isa_text(a.isa), threads[t]);
                }
                for (size_t b = (size_t)(y - out) + (size_t)(list[c].n * to->bytes), end = b + 4; b < end; b++)
                    assert_int_equal(out[b], 0xee);
            }
        with_threads(1);
    }
#if !defined(_OPENMP)
    print_message("compiled without OpenMP: one thread only\n");
#endif
}

/* The process may have set a rounding mode, or flush subnormals: the codecs are integers, the kernels exact. */
static void the_floating_point_environment_does_not_matter(void **state)
{
    (void)state;
    static const int float_kinds[] = { F32, TF32, BF16, F16 };
    static unsigned char plain[40000];
    const int64_t n = 10000;
    uint64_t rng = 41;
    for (int f = 0; f < 4; f++)
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < COUNT(all_isas); i++)
                for (int m = 0; m < ENVIRONMENTS; m++) {
                    const kind *to = &kinds[float_kinds[t]], *from = &kinds[float_kinds[f]];
                    trn_convert_args a = arguments(to, buffer_b, from, buffer_a, n);
                    if (!trn_isa_supported(all_isas[i])) continue;
                    a.isa = all_isas[i];
                    if (m == 0) fill_random(from, buffer_a, n, &rng);
                    host_enter(m);
                    const trn_status status = trn_convert(&a);
                    host_leave();
                    assert_int_equal(status, TRN_OK);
                    const size_t bytes = (size_t)(n * to->bytes);
                    if (m == 0) memcpy(plain, buffer_b, bytes);
                    else if (memcmp(plain, buffer_b, bytes) != 0)
                        fail_msg("%s to %s, isa %s: the environment %d changes the bits", from->name, to->name,
                                 trn_isa_text(a.isa), m);
                }
}

/* ---- refusals ---- */

static unsigned char memory[256];

static void refuse(trn_convert_args a, trn_status status, const char *words)
{
    unsigned char before[sizeof memory];
    trn_error error = { TRN_OK, "" };
    memcpy(before, memory, sizeof memory);
    a.error = &error;
    const trn_status found = trn_convert(&a);
    if (found != status || error.status != status || !strstr(error.text, words))
        fail_msg("expected status %d with \"%s\", found %d: %s", (int)status, words, (int)found, error.text);
    a.error = NULL;
    assert_int_equal(trn_convert(&a), status);
    assert_memory_equal(before, memory, sizeof memory); /* nothing is written */
}

static trn_convert_args good(void)
{
    trn_convert_args a = arguments(&kinds[BF16], memory, &kinds[F32], memory + 128, 1);
    a.dst = trn_tensor_2d(TRN_BF16, memory, 4, 4);
    a.src = trn_tensor_2d(TRN_F32, memory + 128, 4, 4);
    return a;
}

static void wrong_calls_are_refused_and_write_nothing(void **state)
{
    (void)state;
    uint64_t rng = 50;
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)cases_u32(&rng);
    assert_int_equal(trn_convert(NULL), TRN_EINVAL);
    trn_convert_args a = good();
    a.dst.shape[1] = 5, refuse(a, TRN_ESHAPE, "5 on axis 1 but src has 4");
    a = good(), a.src.rank = 1, refuse(a, TRN_ESHAPE, "rank 2 but src has rank 1");
    a = good(), a.dst.rank = 0, refuse(a, TRN_ESHAPE, "dst has rank 0, expected 1 to 6");
    a = good(), a.src.rank = 7, refuse(a, TRN_ESHAPE, "src has rank 7");
    a = good(), a.dst.format = TRN_FORMAT_UNSET, refuse(a, TRN_EFORMAT, "dst");
    a = good(), a.src.format = (trn_format)99, refuse(a, TRN_EFORMAT, "src");
    a = good(), a.dst.data = NULL, refuse(a, TRN_EINVAL, "dst");
    a = good(), a.src.data = NULL, refuse(a, TRN_EINVAL, "src");
    a = good(), a.src.stride[0] = -4, a.src.stride[1] = 1, refuse(a, TRN_ESHAPE, "negative stride");
    a = good(), a.dst.stride[0] = 4, refuse(a, TRN_ESHAPE, "dst has stride 0 on axis 1");
    a = good(), a.dst.stride[0] = 2, a.dst.stride[1] = 1, refuse(a, TRN_ESHAPE, "same memory");
    a = good(), a.dst.shape[0] = a.src.shape[0] = INT64_MAX, refuse(a, TRN_ESHAPE, "spans more");
    a = good(), a.sr_bits = -1, refuse(a, TRN_EINVAL, "sr_bits is -1");
    a = good(), a.sr_bits = 33, refuse(a, TRN_EINVAL, "sr_bits is 33");
    a = good(), a.rounding = (trn_rounding)6, refuse(a, TRN_EINVAL, "rounding 6");
    a = good(), a.rounding = (trn_rounding)-1, refuse(a, TRN_EINVAL, "rounding -1");
    a = good(), a.overflow = (trn_overflow)2, refuse(a, TRN_EINVAL, "overflow 2");
    a = good(), a.isa = (trn_isa)99, refuse(a, TRN_EUNSUPPORTED, "99");
    a = good(), a.isa = (trn_isa)-1, refuse(a, TRN_EUNSUPPORTED, "-1");
    a = good(), a.dst.format = TRN_CFP8, a.dst.cfp8.exponent_bits = 6;
    refuse(a, TRN_EFORMAT, "dst is cfp8 with 6");
    a = good(), a.src.format = TRN_CFP8, a.src.cfp8.exponent_bits = 4, a.src.cfp8.bias = 125;
    refuse(a, TRN_EFORMAT, "bias 125");
    static trn_xorwow_vector g; /* all zero: never seeded */
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "xorwow was never seeded");
    memset(&g, 0xff, sizeof g);
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "xorwow is no state");
    trn_xorwow_vector_seed(&g, 1);
    g.row[0][5] = g.row[1][5] = g.row[2][5] = g.row[3][5] = g.row[4][5] = 0;
    a = good(), a.xorwow = &g, refuse(a, TRN_EINVAL, "lane 1, state 1");
    a = good(), a.xorwow = (trn_xorwow_vector *)a.dst.data, refuse(a, TRN_EINVAL, "dst overlaps the generator");
    for (int i = 0; i < COUNT(all_isas); i++)
        if (!trn_isa_supported(all_isas[i])) a = good(), a.isa = all_isas[i], refuse(a, TRN_EUNSUPPORTED, "isa");
}

static void overlaps_are_refused_unless_in_place(void **state)
{
    (void)state;
    trn_convert_args a = good();
    a.src.data = memory + 4, refuse(a, TRN_EINVAL, "overlaps"); /* shifted */
    a = good(), a.src.data = memory, refuse(a, TRN_EINVAL, "overlaps"); /* another element size */
    a = good(), a.src.format = TRN_F16, a.src.data = memory + 1, refuse(a, TRN_EINVAL, "overlaps"); /* half */
    a = good(), a.src.format = TRN_F16, a.src.data = memory;
    a.src = trn_tensor_transposed(a.src), refuse(a, TRN_EINVAL, "overlaps"); /* the same bytes in another order */
    a = good(), a.src.format = TRN_BF16, a.src.data = memory + 2, refuse(a, TRN_EINVAL, "overlaps"); /* a copy, too */
    a = good(), a.src.format = TRN_F16, a.src.data = memory;
    must(a);
    a.src.stride[0] = 4, a.src.stride[1] = 1; /* packed, said in another way */
    must(a);
    /* even and odd columns of one matrix lie between each other and share nothing */
    a = arguments(&kinds[F16], memory, &kinds[BF16], memory + 2, 1);
    a.dst = trn_tensor_2d(TRN_F16, memory, 8, 8);
    a.src = trn_tensor_2d(TRN_BF16, memory + 2, 8, 8);
    a.dst.stride[0] = a.src.stride[0] = 16;
    a.dst.stride[1] = a.src.stride[1] = 2;
    must(a);
}

static void empty_arrays_are_legal(void **state)
{
    (void)state;
    trn_convert_args a = arguments(&kinds[BF16], NULL, &kinds[F32], NULL, 0);
    must(a);
    a = good(), a.dst.shape[0] = a.src.shape[0] = 0;
    a.dst.data = a.src.data = NULL;
    must(a);
    a.src.shape[1] = 3, refuse(a, TRN_ESHAPE, "axis 1"); /* still checked */
    a.src.shape[1] = 4, a.sr_bits = 40, refuse(a, TRN_EINVAL, "sr_bits");
    a = good(), a.dst.shape[1] = a.src.shape[1] = 0; /* data given, but not touched */
    unsigned char before[sizeof memory];
    memcpy(before, memory, sizeof memory);
    must(a);
    assert_memory_equal(before, memory, sizeof memory);
}

/* ---- level 2: all floats ---- */

/* Where, in exact arithmetic, nearest even gives code + 1 instead of code. The step after the maximum counts as the
 * value that the next code would have. */
static double midpoint(const kind *k, uint32_t code)
{
    return 0.5 * (oracle_magnitude(k, code) + oracle_magnitude(k, code + 1));
}

/* Walks up through the n floats from `first` (all of one sign) beside the codes; the index of a wrong one, or -1. */
static int64_t walk(const kind *k, uint32_t first, const unsigned char *found, int64_t n)
{
    const uint32_t sign = (first & 0x80000000u) >> (31 - k->E - k->M), max = oracle_max(k);
    const way nearest = { TRN_NEAREST_EVEN, false, false, 0, 0 };
    const number x = oracle_decode(&kinds[F32], first & 0x7fffffffu);
    uint32_t code = x.is == FINITE ? oracle_encode_float(k, x, nearest) >> k->shift : max + 1;
    double mid = midpoint(k, code);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t u = (first & 0x7fffffffu) + (uint32_t)i;
        const double v = u < 0x7f800000u ? (double)cases_float_of(u) : 0;
        while (code <= max && (v > mid || (v == mid && code % 2 == 1))) mid = midpoint(k, ++code);
        const uint32_t expected = u > 0x7f800000u ? oracle_nan(k) : u == 0x7f800000u ? oracle_overflow(k) : code;
        if (load(found + i * k->bytes, k->bytes) != (expected | sign) << k->shift) return i;
    }
    return -1;
}

/* One block of 2^16 floats to one format, on every instruction set; a wrong float, or -1. */
static int64_t sweep_block(const kind *k, int block)
{
    enum { BLOCK = 1 << 16 };
    uint32_t in[BLOCK];
    unsigned char out[BLOCK * 4], other[BLOCK * 4];
    const uint32_t first = (uint32_t)block << 16;
    for (uint32_t j = 0; j < BLOCK; j++) in[j] = first + j;
    trn_convert_args a = arguments(k, out, &kinds[F32], in, BLOCK);
    a.isa = TRN_ISA_PORTABLE;
    const int64_t at = trn_convert(&a) ? 0 : walk(k, first, out, BLOCK);
    if (at >= 0) return (int64_t)first + at;
    a.dst.data = other;
    for (int i = 0; i < COUNT(all_isas); i++) {
        a.isa = all_isas[i];
        if (!trn_isa_supported(a.isa)) continue;
        if (trn_convert(&a)) return first;
        for (int j = 0; j < BLOCK; j++)
            if (memcmp(out + j * k->bytes, other + j * k->bytes, (size_t)k->bytes) != 0) return (int64_t)first + j;
    }
    return -1;
}

static void all_floats(void **state)
{
    (void)state;
    static const int targets[] = { BF16, F16, TF32 };
    if (cases_level() < 2) {
        print_message("the sweep over all 2^32 floats runs at level 2 (TRN_TEST_LEVEL=2)\n");
        return;
    }
#if defined(_OPENMP)
    with_threads(omp_get_num_procs());
#endif
    for (int t = 0; t < COUNT(targets); t++) {
        int64_t wrong = -1;
        CASES_PRAGMA(omp parallel for schedule(dynamic, 64))
        for (int block = 0; block < 1 << 16; block++) {
            const int64_t at = sweep_block(&kinds[targets[t]], block);
            if (at >= 0) {
                CASES_PRAGMA(omp critical)
                wrong = at;
            }
        }
        if (wrong >= 0) fail_msg("%s: wrong at %08llx", kinds[targets[t]].name, (unsigned long long)wrong);
        print_message("all 2^32 floats to %s: right on every instruction set\n", kinds[targets[t]].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_narrow_code_to_every_format),
        cmocka_unit_test(floats_at_the_edges_in_every_mode),
        cmocka_unit_test(stochastic_overflow),
        cmocka_unit_test(every_pair_at_random),
        cmocka_unit_test(copies_keep_every_bit),
        cmocka_unit_test(golden_files_agree),
        cmocka_unit_test(random_views),
        cmocka_unit_test(random_views_in_place),
        cmocka_unit_test(tiles_and_tails),
        cmocka_unit_test(stochastic_rounding_follows_the_position),
        cmocka_unit_test(parts_round_as_their_whole),
        cmocka_unit_test(stochastic_rounding_is_fair),
        cmocka_unit_test(xorwow_words_come_row_major),
        cmocka_unit_test(xorwow_words_in_large_arrays),
        cmocka_unit_test(configured_fp8),
        cmocka_unit_test(one_configured_fp8),
        cmocka_unit_test(same_bits_for_any_threads_and_isa),
        cmocka_unit_test(the_floating_point_environment_does_not_matter),
        cmocka_unit_test(wrong_calls_are_refused_and_write_nothing),
        cmocka_unit_test(overlaps_are_refused_unless_in_place),
        cmocka_unit_test(empty_arrays_are_legal),
        cmocka_unit_test(all_floats),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
