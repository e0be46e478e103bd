/* convert.h - conversions the slow way: an oracle for trn_convert, and calls that are held against it.
 * SPDX-License-Identifier: MIT
 *
 * The oracle shares no code with trnmath/: it rounds in exact double arithmetic (every value of every format and every
 * gap between two codes is a double). Random bits come from the twin.
 */
#ifndef TWIN_CONVERT_H
#define TWIN_CONVERT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trnmath/trn_convert.h"
#include "cases.h"
#include "host.h"
#include "twin_random.h"
#include "views.h"

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
    int n; /* stochastic: bits, and the drawn ones */
    uint32_t r;
} way;

/* A number that went through binary32: special, or value with its sign beside it (for -0). */
typedef struct number {
    enum { FINITE, INFINITE, NOT_A_NUMBER } is;
    bool negative;
    double magnitude;
} number;

/* whole + fraction, fraction in [0, 1), to an integer */
static inline double oracle_round(double whole, double fraction, bool negative, way w)
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

static inline double oracle_round_double(double x, bool negative, way w)
{
    return oracle_round(floor(x), x - floor(x), negative, w);
}

/* Does an overflowing finite magnitude stop at the maximum? `near`: it lies before the step after the maximum. */
static inline bool oracle_stops(bool negative, bool near, way w)
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
static inline uint32_t oracle_max(const kind *k)
{
    const uint32_t top = (1u << (k->E + k->M)) - 1;
    if (k->sort == NO_SPECIALS) return top;
    return k->sort == NAN_ON_TOP ? top - 1 : (((1u << k->E) - 1) << k->M) - 1;
}

static inline uint32_t oracle_overflow(const kind *k)
{
    return k->sort == NO_SPECIALS ? oracle_max(k) : oracle_max(k) + 1;
}

static inline uint32_t oracle_nan(const kind *k)
{
    if (k->sort == NO_SPECIALS) return 1u << (k->E + k->M);
    return k->sort == NAN_ON_TOP ? oracle_max(k) + 1 : oracle_overflow(k) | 1u << (k->M - 1);
}

static inline double oracle_magnitude(const kind *k, uint32_t code)
{
    const int e = (int)(code >> k->M);
    const double m = (double)(code & ((1u << k->M) - 1));
    return e ? ldexp(ldexp(1, k->M) + m, e - k->bias - k->M) : ldexp(m, 1 - k->bias - k->M);
}

static inline number oracle_decode(const kind *k, uint32_t code)
{
    static const way nearest = { TRN_NEAREST_EVEN, false, false, 0, 0 };
    number x = { FINITE, false, 0 };
    if (k->sort == SCALE) {
        if (code == 0xff)
            x.is = NOT_A_NUMBER;
        else
            x.magnitude = ldexp(1, (int)code - 127);
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
        if (magnitude <= oracle_max(k))
            x.magnitude = oracle_magnitude(k, magnitude);
        else
            x.is = magnitude == oracle_overflow(k) && k->sort == IEEE ? INFINITE : NOT_A_NUMBER;
    }
    return x;
}

static inline uint32_t oracle_encode_float(const kind *k, number x, way w)
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
static inline uint32_t oracle_encode_scale(number x, way w)
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

static inline uint32_t oracle_encode_integer(const kind *k, number x, way w)
{
    const int bits = 8 * k->bytes;
    const double top = k->sort == SIGNED ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1;
    const double limit = !x.negative ? top : k->sort == SIGNED ? top + 1 : 0;
    if (x.is == NOT_A_NUMBER) return 0;
    double whole = x.is == INFINITE ? limit : oracle_round_double(x.magnitude, x.negative, w);
    if (whole > limit) whole = limit;
    return (uint32_t)(x.negative && whole > 0 ? ldexp(1, bits) - whole : whole);
}

static inline uint32_t oracle(const kind *to, const kind *from, uint32_t code, way w)
{
    if (to == from) return code;
    const number x = oracle_decode(from, code);
    if (to->sort == SCALE) return oracle_encode_scale(x, w);
    if (to->sort == SIGNED || to->sort == UNSIGNED) return oracle_encode_integer(to, x, w);
    return oracle_encode_float(to, x, w);
}

/* ---- calls, and what they should give ---- */

static inline uint32_t load(const unsigned char *at, int bytes)
{
    uint32_t code = 0;
    for (int i = bytes - 1; i >= 0; i--) code = code << 8 | at[i];
    return code;
}

static inline void store(unsigned char *at, int bytes, uint32_t code)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(code >> 8 * i);
}

static inline trn_cfp8 descriptor(const kind *k)
{
    const trn_cfp8 c = { k->E, k->bias, k->sort == NAN_ON_TOP };
    return c;
}

static inline trn_convert_args arguments(const kind *to, void *dst, const kind *from, const void *src, int64_t n)
{
    trn_convert_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_1d(to->format, dst, n);
    a.src = trn_tensor_1d(from->format, (void *)(uintptr_t)src, n);
    a.dst.cfp8 = descriptor(to);
    a.src.cfp8 = descriptor(from);
    return a;
}

static inline void must(trn_convert_args a)
{
    trn_error error = { TRN_OK, "" };
    a.error = &error;
    if (trn_convert(&a) != TRN_OK) fail_msg("trn_convert: %s", error.text);
    assert_int_equal(error.status, TRN_OK);
}

/* What the generator of a call with .xorwow will give. (test_random.c holds it against its twin.) */
enum { DRAWN = 310000 };
static uint32_t drawn[DRAWN];

static inline uint32_t drawn_bits(uint64_t i, int n)
{
    if (n != 8 && n != 16) return drawn[i] >> (32 - n);
    const uint64_t share = n == 8 ? 4 : 2;
    return drawn[i / share] >> (uint64_t)n * (i % share) & ((1u << n) - 1);
}

/* How element i of this call is rounded. */
static inline way way_of(const trn_convert_args *a, uint64_t i)
{
    way w = { a->rounding, a->overflow == TRN_SATURATE, a->sr_carry_to_inf, a->sr_bits ? a->sr_bits : 32, 0 };
    if (a->rounding != TRN_STOCHASTIC) return w;
    w.r = a->xorwow ? drawn_bits(i, w.n) : twin_random_bits(a->seed, a->stream, a->index + i, w.n);
    return w;
}

static inline void check_row(const trn_convert_args *a, const kind *to, const unsigned char *dst, const kind *from,
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

static inline uint64_t digest(const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* A code of a format; floats get the troublesome ones often. Codes of fewer bits than their byte carry junk above. */
static inline uint32_t random_code(const kind *k, uint64_t *rng)
{
    if (k->format == TRN_F32 || k->format == TRN_TF32) return cases_float(rng);
    const uint32_t code = cases_u32(rng);
    return k->bytes == 4 ? code : code & ((1u << 8 * k->bytes) - 1);
}

/* What the oracle expects codes to look like: FP6 and FP4 in the low bits only. */
static inline uint32_t plain_code(const kind *k, uint32_t code)
{
    return k->sort == NO_SPECIALS ? code & ((2u << (k->E + k->M)) - 1) : code;
}

static inline void fill_random(const kind *k, unsigned char *data, int64_t n, uint64_t *rng)
{
    for (int64_t i = 0; i < n; i++) store(data + i * k->bytes, k->bytes, plain_code(k, random_code(k, rng)));
}

/* ---- views at random ---- */

enum { ARENA = 1 << 16 };
static unsigned char source[ARENA], target[ARENA], expected_target[ARENA];

static inline int64_t span(const trn_tensor *t)
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

static inline void random_shape(trn_tensor *t, uint64_t *rng)
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

static inline int64_t offset_at(const trn_tensor *t, int64_t row_major)
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
static inline void check_view(const trn_convert_args *a, const kind *to, const kind *from, const char *what, int number)
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

static inline void set_modes(trn_convert_args *a, uint64_t *rng)
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

static inline const kind *random_kind(uint64_t *rng)
{
    return cases_one_in(rng, 3) ? &kinds[cases_below(rng, KINDS)] : &kinds[cases_below(rng, 4)];
}

/* Modes, shape, strides, addresses and source of a call; false when its views would not fit. */
static inline bool random_call(trn_convert_args *a, const kind *to, const kind *from, uint64_t *rng)
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

#endif /* TWIN_CONVERT_H */
