/* data/mx_cast.h - block scaling: quantise, dequantise and check; the scales, the elements, the rules.
 * A part of trn_mx.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_DATA_MX_CAST_H
#define TRNI_DATA_MX_CAST_H

#include "../machine/numerics.h"
#include "../number/random.h"
#include "tensor.h"

enum { TRN_MX_BLOCK = 32 };

typedef struct trn_mx_quantize_args {
    trn_tensor dst;        /* [.., k, ..] one code per byte: F8_E4M3FN, F8_E5M2, F6_E2M3, F6_E3M2, F4_E2M1, or I8, where
                            * a code counts 64ths and goes from -127 to 127 */
    trn_tensor dst_scale;  /* [.., k/32, ..] F8_E8M0, or U8: the same bytes */
    trn_tensor src;        /* [.., k, ..] F32, BF16, F16; may broadcast with stride 0 */
    trn_mx_scale scale;    /* the rule for X */
    int axis;              /* 0 = the last; see above */
    trn_rounding rounding; /* of the elements; they always saturate */
    uint64_t seed, stream; /* TRN_STOCHASTIC: element i of src, in row-major order, takes */
    uint64_t index;        /* trn_random_field(seed, stream, index + i) */
    int sr_bits;           /* random bits per element, 1..32; 0 means 32 */
    trn_isa isa;           /* 0 = the best of this host; the bits do not depend on it */
    trn_error *error;      /* optional */
} trn_mx_quantize_args;

typedef struct trn_mx_dequantize_args {
    trn_tensor dst;       /* [.., k, ..] F32, BF16, F16: nearest even, overflow to infinity */
    trn_tensor src;       /* [.., k, ..] as dst of trn_mx_quantize */
    trn_tensor src_scale; /* [.., k/32, ..] F8_E8M0 or U8 */
    int axis;             /* 0 = the last; see above */
    trn_isa isa;
    trn_error *error;
} trn_mx_dequantize_args;

/* ---- the scale: integer arithmetic on the bits of amax ---- */

/* The E8M0 code of X for a block whose largest magnitude is |amax|; ff for NaN, infinity, and a format or rule that MX
 * does not have. */
TRN_API uint32_t trn_mx_scale_code(trn_format format, trn_mx_scale scale, float amax);

/* ---- the two calls ---- */

/* dst * 2^(dst_scale - 127) = src, nearly. TRN_EFORMAT, TRN_ESHAPE: views that do not fit (k must be a multiple of
 * 32); TRN_EINVAL: an unknown mode or axis, or overlap; TRN_EUNSUPPORTED: an isa this host lacks. */
TRN_API trn_status trn_mx_quantize(const trn_mx_quantize_args *args);

/* dst = src · 2^(src_scale - 127), with one rounding; NaN where src_scale is ff. An element's NaN keeps its sign.
 * Fails as trn_mx_quantize. */
TRN_API trn_status trn_mx_dequantize(const trn_mx_dequantize_args *args);

#if TRNI_BODIES

#include "../base/threads.h"
#include "cast.h"
#include "iterate.h"

/* ---- the scale: integer arithmetic on the bits of amax ---- */

/* The code of X is the exponent field of amax plus an offset; what a rule adds to amax's bits makes the field grow
 * exactly when the mantissa exceeds that of the format's maximum (round_up), when it is not zero (ceil), or when it
 * rounds to two at the element's bits (even: a tie there follows ones only, whose last is odd). */
typedef struct trni_mx_rule {
    int32_t up, offset;
    int32_t unit; /* codes count multiples of 2^-unit: 6 for int8, else 0 */
} trni_mx_rule;

/* An element of MX: a format of OCP's. */
TRNI_FN bool trni_mx_format(trn_format format)
{
    const trn_format_info *f = trn_format_info_of(format);
    return *f->ocp && f->kind != TRN_KIND_SCALE;
}

TRNI_FN trni_mx_rule trni_mx_rule_of(trn_format format, trn_mx_scale scale)
{
    const trn_format_info *f = trn_format_info_of(format);
    const int32_t max = (int32_t)trni_decode_row(f, f->max_code);
    trni_mx_rule r;
    r.unit = f->kind == TRN_KIND_SIGNED ? 6 : 0;
    r.up = 0;
    if (scale == TRN_MX_SCALE_ROUND_UP) r.up = 0x7fffff - (max & 0x7fffff);
    if (scale == TRN_MX_SCALE_CEIL) r.up = 0x7fffff;
    if (scale == TRN_MX_SCALE_EVEN) r.up = 1 << (22 - (r.unit ? r.unit : f->mantissa_bits));
    r.offset = (scale == TRN_MX_SCALE_NEURON) - ((max >> 23) - 127 - r.unit);
    return r;
}

/* A subnormal amax: doubled, its bits go on below those of 2^-126 with the same spacing as the binade of 2^-127. That
 * binade is the only one that matters, for int8; everything smaller ends at code 0. */
TRNI_INLINE uint32_t trni_mx_code(trni_mx_rule r, int32_t amax)
{
    const int32_t wide = amax >= 0x00800000 ? amax : 2 * (amax & 0x007fffff) - 0x00800000;
    const int32_t raised = (int32_t)((uint32_t)wide + (uint32_t)r.up); /* a NaN's may leave int32; it is not used */
    const int32_t code = (raised >> 23) + r.offset, low = code < 0 ? 0 : code, in_range = low > 254 ? 254 : low;
    return (uint32_t)(amax >= (int32_t)TRNI_F32_INF ? 0xff : in_range);
}

TRN_API uint32_t trn_mx_scale_code(trn_format format, trn_mx_scale scale, float amax)
{
    if (!trni_mx_format(format) || (unsigned)scale >= TRN_MX_SCALE_COUNT) return 0xff;
    const int32_t magnitude = (int32_t)(trni_bits(amax) & ~TRNI_F32_SIGN);
    return trni_mx_code(trni_mx_rule_of(format, scale), magnitude);
}

/* ---- kernels: v/X in binary32, in units of the codes, ready for one rounding ----
 *
 * v/X is below 2^(emax+2) <= 2^17 by the choice of X (at the upper clamp, which only int8 reaches, below 2), so nothing
 * overflows, and where it is a normal number it is exact. Where it is not, it is below 2^-126, and any number between
 * 0 and 2^-48, 0 itself apart, rounds as it does: the finest grid of an element is 2^-16, of the 32 bits of stochastic
 * rounding 2^-32 of that. The exact way therefore stops at 2^-126.
 *
 * The usual way is one multiplication, by a normal power of two. It may see a subnormal v as zero (DAZ) or make zero of
 * a subnormal product (FTZ, other rounding modes): that must not show. With X >= 2^(least-127) a subnormal v gives
 * |v/X| < 2^(1-least). Nearest even cannot tell that from zero when least = 32, since half the finest grid is 2^-17;
 * neither can stochastic rounding nor rounding toward zero when least = 64. The others can, and go the exact way. */
enum { TRNI_MX_LEAST_NEAREST = 32, TRNI_MX_LEAST_STOCHASTIC = 64, TRNI_MX_LEAST_NEVER = 256 };

TRNI_FN int32_t trni_mx_least(trn_rounding rounding)
{
    if (rounding == TRN_NEAREST_EVEN) return TRNI_MX_LEAST_NEAREST;
    return rounding == TRN_STOCHASTIC || rounding == TRN_TOWARD_ZERO ? TRNI_MX_LEAST_STOCHASTIC : TRNI_MX_LEAST_NEVER;
}

typedef struct trni_mx_step {
    uint32_t code;   /* of X */
    uint32_t factor; /* the usual way: binary32 bits of 2^unit / X */
    uint32_t keep;   /* 0 in a block with NaN or infinity */
    int32_t shift;   /* the exact way: log2(X / 2^unit), at the place of the exponent */
    bool usual;
} trni_mx_step;

TRNI_INLINE trni_mx_step trni_mx_step_of(trni_mx_rule r, int32_t amax, int32_t least)
{
    trni_mx_step s;
    s.code = trni_mx_code(r, amax);
    const bool idle = amax == 0 || s.code == 0xff; /* zeros stay as they are; what is not kept may be anything */
    const int32_t power = idle ? 0 : (int32_t)s.code - 127 - r.unit;
    s.factor = (uint32_t)(127 - power) << 23;
    s.keep = s.code == 0xff ? 0 : ~0u;
    s.shift = power * 0x00800000;
    s.usual = idle || (int32_t)s.code >= least; /* code 254 is int8's alone: 2^unit keeps its factor normal */
    return s;
}

TRNI_INLINE uint32_t trni_mx_divide_usual(uint32_t u, uint32_t factor)
{
    return trni_bits(trni_float(u) * trni_float(factor));
}

/* A subnormal v = m · 2^-149 becomes the binary32 number m with 149 taken off its exponent, below the fields that
 * binary32 has; then X comes off in both cases. */
TRNI_INLINE uint32_t trni_mx_divide_exact(uint32_t u, int32_t shift)
{
    const int32_t m = (int32_t)(u & ~TRNI_F32_SIGN), least_normal = 0x00800000;
    const uint32_t small = trni_bits((float)m) - (149u << 23);
    const int32_t moved = (int32_t)(trni_either(m < least_normal, small, (uint32_t)m) - (uint32_t)shift);
    const int32_t number = moved > least_normal ? moved : least_normal;
    return (u & TRNI_F32_SIGN) | trni_either(m != 0, (uint32_t)number, 0);
}

/* n blocks, one after the other. */
TRNI_INLINE void trni_mx_blocks_body(uint32_t *__restrict out, unsigned char *__restrict scale,
                                     const void *__restrict values, size_t n, trni_mx_rule r, int32_t least)
{
    const trni_any32 *__restrict x = (const trni_any32 *)values;
    for (; n > 0; n--, x += TRN_MX_BLOCK, out += TRN_MX_BLOCK) {
        int32_t most = 0;
        for (int i = 0; i < TRN_MX_BLOCK; i++) {
            const int32_t m = (int32_t)(x[i] & ~TRNI_F32_SIGN);
            most = m > most ? m : most;
        }
        const trni_mx_step s = trni_mx_step_of(r, most, least);
        *scale++ = (unsigned char)s.code;
        if (s.usual)
            for (int i = 0; i < TRN_MX_BLOCK; i++) out[i] = trni_mx_divide_usual(x[i], s.factor) & s.keep;
        else
            for (int i = 0; i < TRN_MX_BLOCK; i++) out[i] = trni_mx_divide_exact(x[i], s.shift);
    }
}

TRNI_DISPATCH(trni_mx_blocks,
              (uint32_t *__restrict out, unsigned char *__restrict scale, const void *__restrict values, size_t n,
               trni_mx_rule r, int32_t least),
              (out, scale, values, n, r, least))

enum { TRNI_MX_BLOCKS = 48 }; /* that go through the kernels at once */

/* n <= TRNI_MX_BLOCKS blocks side by side: [32, n], one to a column. */
TRNI_INLINE void trni_mx_columns_body(uint32_t *__restrict out, unsigned char *__restrict scale,
                                      const void *__restrict values, size_t n, trni_mx_rule r, int32_t least)
{
    const trni_any32 *__restrict x = (const trni_any32 *)values;
    int32_t most[TRNI_MX_BLOCKS], shift[TRNI_MX_BLOCKS];
    uint32_t factor[TRNI_MX_BLOCKS], keep[TRNI_MX_BLOCKS];
    bool usual = true;
    for (size_t c = 0; c < n; c++) most[c] = 0;
    for (size_t k = 0; k < TRN_MX_BLOCK; k++)
        for (size_t c = 0; c < n; c++) {
            const int32_t m = (int32_t)(x[k * n + c] & ~TRNI_F32_SIGN);
            most[c] = m > most[c] ? m : most[c];
        }
    for (size_t c = 0; c < n; c++) {
        const trni_mx_step s = trni_mx_step_of(r, most[c], least);
        scale[c] = (unsigned char)s.code;
        factor[c] = s.factor;
        keep[c] = s.keep;
        shift[c] = s.shift;
        usual = usual && s.usual;
    }
    for (size_t k = 0; k < TRN_MX_BLOCK; k++, x += n, out += n)
        if (usual)
            for (size_t c = 0; c < n; c++) out[c] = trni_mx_divide_usual(x[c], factor[c]) & keep[c];
        else
            for (size_t c = 0; c < n; c++) out[c] = trni_mx_divide_exact(x[c] & keep[c], shift[c]);
}

TRNI_DISPATCH(trni_mx_columns,
              (uint32_t *__restrict out, unsigned char *__restrict scale, const void *__restrict values, size_t n,
               trni_mx_rule r, int32_t least),
              (out, scale, values, n, r, least))

/* MXINT8 has no -128: its range is symmetric. */
TRNI_INLINE void trni_mx_symmetric_body(unsigned char *code, size_t n)
{
    for (size_t i = 0; i < n; i++) code[i] = (unsigned char)(code[i] + (code[i] == 0x80));
}

TRNI_DISPATCH(trni_mx_symmetric, (unsigned char *code, size_t n), (code, n))

/* Scale and cast in one: blocks in a row, nearest even, to floats. The same bits, faster; without it the kernels above
 * and the encoder do everything. */
typedef void trni_mx_both(const trni_encoder *e, char *__restrict y, unsigned char *__restrict scale,
                          const char *__restrict x, size_t n, trni_mx_rule r);

/* And the way back: codes of floats as F16, which hardware converts, times a factor. */
typedef struct trni_mx_half {
    int up, sign_up;    /* shifts to F16's fields */
    uint32_t keep;      /* of the magnitude, there */
    uint32_t mask, max; /* of the magnitude, in the code; the largest finite one */
    int rebias;         /* what the factor's exponent gets beside the scale's */
} trni_mx_half;

enum { TRNI_MX_TIMES_FIRST = 17, TRNI_MX_TIMES_LAST = 239 }; /* see below */

TRNI_INLINE bool trni_mx_times_is_usual(uint32_t code)
{
    return code >= TRNI_MX_TIMES_FIRST && code <= TRNI_MX_TIMES_LAST;
}

typedef size_t trni_mx_times(const trni_mx_half *h, void *out, const char *x, const unsigned char *scale, size_t n);

#if TRNI_X86 && TRNI_INTRINSICS
#include "../simd/mx_cast_avx2.h"
#include "../simd/mx_cast_avx512.h"
#endif

/* NULL where plain C does it: integers, which are no floats' fields. */
TRNI_FN trni_mx_times *trni_mx_times_pick(trni_mx_half *h, const trn_format_info *f, trn_isa isa)
{
    const int E = f->exponent_bits, M = f->mantissa_bits;
    h->up = 10 - M;
    h->sign_up = 15 - E - M;
    h->mask = (1u << (E + M)) - 1;
    h->keep = h->mask << h->up;
    h->max = f->max_code;
    h->rebias = 15 - f->bias;
    if (f->kind != TRN_KIND_FLOAT || E > 5 || M > 10) return NULL;
#if TRNI_X86 && TRNI_INTRINSICS
    if (isa == TRN_ISA_AVX512) return trni_mx_simd_times;
    if (isa == TRN_ISA_AVX2) return trni_mx_simd256_times;
#endif
    (void)isa;
    return NULL;
}

TRNI_FN trni_mx_both *trni_mx_both_pick(const trni_encoder *e)
{
#if TRNI_X86 && TRNI_INTRINSICS
    if (e->fast == trni_simd_nearest) return trni_mx_simd_blocks;
    if (e->fast == trni_simd256_nearest) return trni_mx_simd256_blocks;
#endif
    (void)e;
    return NULL;
}

/* ---- kernels: code · X in binary32 ----
 *
 * A code is 0, or has at most 7 significant bits and lies between 2^-16 and 2^16. Times X it is exact in binary32, down
 * to 2^-16 · 2^-127 = 2^-143, unless it overflows to infinity; so the one rounding of a dequantised value is the cast
 * that follows. Every result is normal for X from 2^-110 to 2^112: then an addition to the exponent does it. */

TRNI_INLINE uint32_t trni_mx_times_usual(uint32_t u, int32_t power)
{
    const int32_t m = (int32_t)(u & ~TRNI_F32_SIGN);
    const bool moves = m != 0 && m < (int32_t)TRNI_F32_INF;
    return u + (moves ? (uint32_t)power << 23 : 0);
}

TRNI_INLINE uint32_t trni_mx_times_exact(uint32_t u, int32_t power)
{
    const uint32_t m = u & ~TRNI_F32_SIGN, significand = (m & 0x7fffffu) | 0x800000u;
    const int32_t exponent = (int32_t)(m >> 23) + power; /* -16 and more, zero apart: no bit falls off below */
    const int32_t down = exponent < 1 ? 1 - exponent : 0;
    const uint32_t tiny = significand >> (down < 31 ? down : 31);
    const uint32_t finite = exponent < 1 ? tiny : exponent > 254 ? TRNI_F32_INF : m + ((uint32_t)power << 23);
    return (u & TRNI_F32_SIGN) | (m == 0 || m >= TRNI_F32_INF ? m : finite);
}

TRNI_INLINE void trni_mx_times_blocks_body(void *__restrict out, const uint32_t *__restrict x,
                                           const unsigned char *__restrict scale, size_t n, int32_t unit)
{
    trni_any32 *__restrict y = (trni_any32 *)out;
    for (; n > 0; n--, x += TRN_MX_BLOCK, y += TRN_MX_BLOCK) {
        const uint32_t code = *scale++;
        const int32_t power = (int32_t)code - 127 - unit;
        if (trni_mx_times_is_usual(code))
            for (int i = 0; i < TRN_MX_BLOCK; i++) y[i] = trni_mx_times_usual(x[i], power);
        else
            for (int i = 0; i < TRN_MX_BLOCK; i++)
                y[i] = code == 0xff ? TRNI_F32_NAN : trni_mx_times_exact(x[i], power);
    }
}

TRNI_DISPATCH(trni_mx_times_blocks,
              (void *__restrict out, const uint32_t *__restrict x, const unsigned char *__restrict scale, size_t n,
               int32_t unit),
              (out, x, scale, n, unit))

TRNI_INLINE void trni_mx_times_columns_body(void *__restrict out, const uint32_t *__restrict x,
                                            const unsigned char *__restrict scale, size_t n, int32_t unit)
{
    trni_any32 *__restrict y = (trni_any32 *)out;
    int32_t power[TRNI_MX_BLOCKS];
    bool usual = true;
    for (size_t c = 0; c < n; c++) {
        power[c] = (int32_t)scale[c] - 127 - unit;
        usual = usual && trni_mx_times_is_usual(scale[c]);
    }
    for (size_t k = 0; k < TRN_MX_BLOCK; k++, x += n, y += n)
        if (usual)
            for (size_t c = 0; c < n; c++) y[c] = trni_mx_times_usual(x[c], power[c]);
        else
            for (size_t c = 0; c < n; c++) y[c] = scale[c] == 0xff ? TRNI_F32_NAN : trni_mx_times_exact(x[c], power[c]);
}

TRNI_DISPATCH(trni_mx_times_columns,
              (void *__restrict out, const uint32_t *__restrict x, const unsigned char *__restrict scale, size_t n,
               int32_t unit),
              (out, x, scale, n, unit))

/* ---- the plan: both directions cut the views in the same way ----
 *
 * A panel is what goes through the kernels at once, in buffers of the first cache: either blocks in a row, one line of
 * 32·n elements along k; or, when another axis is closer together in memory than k, blocks side by side, 32 lines of n
 * elements along that axis. */

typedef enum trni_mx_limit {
    TRNI_MX_PANEL = (int)TRN_MX_BLOCK * TRNI_MX_BLOCKS, /* elements of the larger kind of panel */
    TRNI_MX_SHORT = 8,                                  /* side by side pays from so many columns */
    TRNI_MX_SPAN = 4,                                   /* panels that a thread takes at once */
    TRNI_MX_PARALLEL = 1 << 17                          /* elements from which threads pay for being woken */
} trni_mx_limit;

typedef enum trni_mx_view { TRNI_MX_VALUES, TRNI_MX_CODES, TRNI_MX_SCALES, TRNI_MX_INDEX } trni_mx_view; /* of walks */

typedef struct trni_mx_plan {
    trn_isa isa;
    trn_format format; /* of the values */
    size_t value_bytes;
    char *values, *codes, *scales;
    bool side_by_side;
    trni_iterator_axis k;      /* inside a block: steps from one element to the next */
    trni_iterator_axis run;    /* of a panel: blocks, or columns */
    trni_iterator_axis across; /* from one element of a line to the next: k again, or run */
    int64_t pieces;            /* panels of a run */
    trni_iterator outer;
    trni_mx_rule rule;
    int32_t least;
    trni_encoder encode;
    trni_mx_both *both;   /* or NULL */
    trni_mx_times *times; /* or NULL */
    trni_mx_half half;
    trni_decoder decode;
    bool stochastic;
    int bits;
    uint64_t seed, stream, index;
} trni_mx_plan;

typedef struct trni_mx_panel {
    char *values, *codes, *scales;
    uint64_t index;
    size_t n;           /* blocks */
    size_t lines, each; /* lines of so many elements */
} trni_mx_panel;

/* The elements of a panel between their views and a buffer without gaps. */
TRNI_FN void trni_mx_move(const trni_mx_plan *p, const trni_mx_panel *a, trni_mx_view view, size_t bytes, char *at,
                          char *buffer, bool out)
{
    const int64_t down = p->k.step[view], across = p->across.step[view], size = (int64_t)bytes;
    for (size_t line = 0; line < a->lines; line++, at += down, buffer += a->each * bytes)
        if (out)
            trni_move(at, across, buffer, size, bytes, a->each);
        else
            trni_move(buffer, size, at, across, bytes, a->each);
}

TRNI_FN bool trni_mx_gapless(const trni_mx_plan *p, const trni_mx_panel *a, trni_mx_view view, size_t bytes)
{
    return a->lines == 1 && p->across.step[view] == (int64_t)bytes;
}

TRNI_FN void trni_mx_fields(const trni_mx_plan *p, const trni_mx_panel *a, uint32_t *field)
{
    const uint64_t down = (uint64_t)p->k.step[TRNI_MX_INDEX], across = (uint64_t)p->across.step[TRNI_MX_INDEX];
    uint64_t index = p->index + a->index;
    for (size_t line = 0; line < a->lines; line++, index += down, field += a->each)
        if (across == 1)
            trn_random_fields(field, a->each, p->bits, p->seed, p->stream, index, p->isa);
        else
            for (size_t i = 0; i < a->each; i++)
                field[i] = trn_random_field(p->seed, p->stream, index + i * across, p->bits);
}

TRNI_FN void trni_mx_quantize_panel(const trni_mx_plan *p, const trni_mx_panel *a)
{
    uint32_t packed[TRNI_MX_PANEL], value[TRNI_MX_PANEL], divided[TRNI_MX_PANEL], field[TRNI_MX_PANEL];
    unsigned char code[TRNI_MX_PANEL], scale[TRNI_MX_BLOCKS];
    const size_t n = a->lines * a->each;
    const void *x = a->values;
    if (!trni_mx_gapless(p, a, TRNI_MX_VALUES, p->value_bytes)) {
        trni_mx_move(p, a, TRNI_MX_VALUES, p->value_bytes, a->values, (char *)packed, false);
        x = packed;
    }
    if (p->format != TRN_F32) {
        trni_decoder_run(&p->decode, value, x, n);
        x = value;
    }
    char *const y = trni_mx_gapless(p, a, TRNI_MX_CODES, 1) ? a->codes : (char *)code;
    if (p->both && !p->side_by_side) {
        p->both(&p->encode, y, scale, (const char *)x, a->n, p->rule);
    } else {
        if (p->side_by_side)
            trni_mx_columns_for(p->isa)(divided, scale, x, a->n, p->rule, p->least);
        else
            trni_mx_blocks_for(p->isa)(divided, scale, x, a->n, p->rule, p->least);
        if (p->stochastic) trni_mx_fields(p, a, field);
        trni_encoder_run(&p->encode, y, divided, p->stochastic ? field : NULL, n);
    }
    if (p->rule.unit) trni_mx_symmetric_for(p->isa)((unsigned char *)y, n);
    if (y != a->codes) trni_mx_move(p, a, TRNI_MX_CODES, 1, a->codes, y, true);
    trni_move(a->scales, p->run.step[TRNI_MX_SCALES], (char *)scale, 1, 1, a->n);
}

/* Blocks in a row: those that the fast kernel leaves, up to the next that it does, in plain C. */
TRNI_FN void trni_mx_times_run(const trni_mx_plan *p, char *y, const char *x, const unsigned char *scale, size_t n)
{
    uint32_t value[TRNI_MX_PANEL];
    for (size_t done; n > 0; n -= done, scale += done, x += TRN_MX_BLOCK * done, y += 4 * TRN_MX_BLOCK * done) {
        done = p->times ? p->times(&p->half, y, x, scale, n) : 0;
        if (done > 0) continue;
        done = p->times ? 1 : n;
        trni_decoder_run(&p->decode, value, x, TRN_MX_BLOCK * done);
        trni_mx_times_blocks_for(p->isa)(y, value, scale, done, p->rule.unit);
    }
}

TRNI_FN void trni_mx_dequantize_panel(const trni_mx_plan *p, const trni_mx_panel *a)
{
    uint32_t packed[TRNI_MX_PANEL], value[TRNI_MX_PANEL], times[TRNI_MX_PANEL];
    unsigned char code[TRNI_MX_PANEL], scale[TRNI_MX_BLOCKS];
    const size_t n = a->lines * a->each;
    const bool gapless = trni_mx_gapless(p, a, TRNI_MX_VALUES, p->value_bytes);
    const char *x = a->codes;
    if (!trni_mx_gapless(p, a, TRNI_MX_CODES, 1)) {
        trni_mx_move(p, a, TRNI_MX_CODES, 1, a->codes, (char *)code, false);
        x = (const char *)code;
    }
    trni_move((char *)scale, 1, a->scales, p->run.step[TRNI_MX_SCALES], 1, a->n);

    char *const y = gapless ? a->values : (char *)packed;
    void *const z = p->format == TRN_F32 ? (void *)y : (void *)times;
    if (p->side_by_side) {
        trni_decoder_run(&p->decode, value, x, n);
        trni_mx_times_columns_for(p->isa)(z, value, scale, a->n, p->rule.unit);
    } else {
        trni_mx_times_run(p, (char *)z, x, scale, a->n);
    }
    if (p->format != TRN_F32) trni_encoder_run(&p->encode, y, times, NULL, n);
    if (!gapless) trni_mx_move(p, a, TRNI_MX_VALUES, p->value_bytes, a->values, y, true);
}

typedef void trni_mx_work(const trni_mx_plan *p, const trni_mx_panel *a);

/* Panels first … last-1, counted run by run. */
TRNI_FN void trni_mx_panels(const trni_mx_plan *p, trni_mx_work *work, int64_t first, int64_t last)
{
    trni_iterator_place at = trni_iterator_start(&p->outer, first / p->pieces);
    for (int64_t piece = first % p->pieces; first < last; first++) {
        const int64_t most = TRNI_MX_BLOCKS, start = piece * most, left = p->run.size - start, *step = p->run.step;
        const size_t n = (size_t)(left < most ? left : most);
        trni_mx_panel a;
        a.values = p->values + at.offset[TRNI_MX_VALUES] + start * step[TRNI_MX_VALUES];
        a.codes = p->codes + at.offset[TRNI_MX_CODES] + start * step[TRNI_MX_CODES];
        a.scales = p->scales + at.offset[TRNI_MX_SCALES] + start * step[TRNI_MX_SCALES];
        a.index = (uint64_t)(at.offset[TRNI_MX_INDEX] + start * step[TRNI_MX_INDEX]);
        a.n = n;
        a.lines = p->side_by_side ? (size_t)TRN_MX_BLOCK : 1;
        a.each = p->side_by_side ? n : n * TRN_MX_BLOCK;
        work(p, &a);
        if (++piece < p->pieces) continue;
        piece = 0;
        trni_iterator_next(&p->outer, &at);
    }
}

TRNI_FN void trni_mx_run(const trni_mx_plan *p, trni_mx_work *work, int64_t elements)
{
    const int64_t panels = p->outer.places * p->pieces;
    if (elements < TRNI_MX_PARALLEL) {
        trni_mx_panels(p, work, 0, panels);
        return;
    }
    const int64_t spans = (panels + TRNI_MX_SPAN - 1) / TRNI_MX_SPAN;
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static))
    for (int64_t s = 0; s < spans; s++) {
        TRNI_FLOATS;
        const int64_t end = (s + 1) * TRNI_MX_SPAN;
        trni_mx_panels(p, work, s * TRNI_MX_SPAN, end < panels ? end : panels);
    }
}

/* ---- building the plan ---- */

typedef struct trni_mx_views {
    const trn_tensor *values, *codes, *scales;
    const char *values_name, *codes_name, *scales_name;
    bool quantize;
    int axis; /* as given */
    int at;   /* counted from the front */
    trn_error *error;
} trni_mx_views;

/* The axes in steps of bytes, and of the row-major position. A size of 1 has no steps: its strides may be any number.
 */
TRNI_FN int trni_mx_axes(trni_mx_plan *p, const trni_mx_views *v, trni_iterator_axis axis[TRN_MAX_RANK])
{
    int64_t values[TRN_MAX_RANK], codes[TRN_MAX_RANK], scales[TRN_MAX_RANK], index = 1;
    const int64_t bytes = (int64_t)p->value_bytes;
    int n = 0;
    trni_strides(v->values, values);
    trni_strides(v->codes, codes);
    trni_strides(v->scales, scales);
    for (int i = v->values->rank - 1; i >= 0; index *= v->values->shape[i--]) {
        const int64_t size = v->values->shape[i];
        if (size == 1) continue;
        const int64_t scale = v->scales->shape[i] > 1 ? scales[i] : 0;
        const trni_iterator_axis one = { size, { values[i] * bytes, codes[i], scale, index } };
        if (i == v->at)
            p->k = one;
        else
            axis[n++] = one;
    }
    return n;
}

/* The axis to lay side by side: the one with the closest values, when that is closer than k. -1: none. */
TRNI_FN int trni_mx_column_axis(const trni_mx_plan *p, const trni_iterator_axis *axis, int n)
{
    int best = -1;
    int64_t closest = p->k.step[TRNI_MX_VALUES];
    if (closest == (int64_t)p->value_bytes) return -1;
    for (int i = 0; i < n; i++)
        if (axis[i].size >= TRNI_MX_SHORT && axis[i].step[TRNI_MX_VALUES] < closest) {
            closest = axis[i].step[TRNI_MX_VALUES];
            best = i;
        }
    return best;
}

TRNI_FN void trni_mx_cut(trni_mx_plan *p, const trni_mx_views *v)
{
    trni_iterator_axis axis[TRN_MAX_RANK], blocks;
    int n = trni_mx_axes(p, v, axis);
    blocks.size = p->k.size / TRN_MX_BLOCK;
    for (int i = 0; i < TRNI_ITERATOR_VIEWS; i++)
        blocks.step[i] = p->k.step[i] * (i == TRNI_MX_SCALES ? 1 : TRN_MX_BLOCK);

    const int column = trni_mx_column_axis(p, axis, n);
    p->side_by_side = column >= 0;
    p->run = p->side_by_side ? axis[column] : blocks;
    p->across = p->side_by_side ? p->run : p->k;
    if (p->side_by_side) axis[column] = blocks;
    for (int i = 1; i < n; i++) /* far steps outside */
        for (int j = i; j > 0 && axis[j - 1].step[TRNI_MX_CODES] < axis[j].step[TRNI_MX_CODES]; j--) {
            const trni_iterator_axis t = axis[j];
            axis[j] = axis[j - 1];
            axis[j - 1] = t;
        }
    for (int i = 0; i < n; i++)
        if (axis[i].size > 1) trni_iterator_push(&p->outer, axis[i]);

    trni_iterator *outer = &p->outer;
    trni_iterator_axis *next = outer->rank ? &outer->axis[outer->rank - 1] : NULL;
    if (next && p->run.size == 1) p->run.step[TRNI_MX_SCALES] = next->step[TRNI_MX_SCALES]; /* a step never taken */
    if (next && trni_iterator_continues(next, &p->run)) {
        p->run.size *= next->size;
        outer->places /= next->size;
        outer->rank--;
    }
    if (outer->rank == 0) outer->places = 1;
    p->pieces = (p->run.size + TRNI_MX_BLOCKS - 1) / TRNI_MX_BLOCKS;
}

/* ---- checks ---- */

TRNI_DRIVER trn_status trni_mx_check_formats(const trni_mx_views *v)
{
    const trn_format values = v->values->format, scales = v->scales->format;
    if (values != TRN_F32 && values != TRN_BF16 && values != TRN_F16)
        return trni_fail(v->error, TRN_EFORMAT, "%s is %s; values are float32, bfloat16 or float16", v->values_name,
                         trn_format_name(values));
    if (!trni_mx_format(v->codes->format))
        return trni_fail(v->error, TRN_EFORMAT,
                         "%s is %s; MX elements are float8_e4m3fn, float8_e5m2, float6_e2m3fn, float6_e3m2fn, "
                         "float4_e2m1fn or int8",
                         v->codes_name, trn_format_name(v->codes->format));
    if (scales != TRN_F8_E8M0 && scales != TRN_U8)
        return trni_fail(v->error, TRN_EFORMAT,
                         "%s is %s; block scales are float8_e8m0fnu, or uint8 for the same bytes", v->scales_name,
                         trn_format_name(scales));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mx_check_axis(trni_mx_views *v)
{
    const int rank = v->values->rank, axis = v->axis;
    if (axis >= rank || axis < -rank)
        return trni_fail(v->error, TRN_EINVAL,
                         "axis is %d but the rank is %d; 0 is the last axis, 1 to %d count from the front, -1 to %d "
                         "from the back",
                         axis, rank, rank - 1, -rank);
    v->at = axis > 0 ? axis : axis < 0 ? rank + axis : rank - 1;
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mx_check_shapes(const trni_mx_views *v)
{
    const trn_tensor *values = v->values, *codes = v->codes, *scales = v->scales;
    if (codes->rank != values->rank || scales->rank != values->rank)
        return trni_fail(v->error, TRN_ESHAPE, "%s has rank %d, %s %d and %s %d; they must agree", v->values_name,
                         values->rank, v->codes_name, codes->rank, v->scales_name, scales->rank);
    for (int i = 0; i < values->rank; i++) {
        const long long size = values->shape[i], blocks = i == v->at ? size / TRN_MX_BLOCK : size;
        if (codes->shape[i] != size)
            return trni_fail(v->error, TRN_ESHAPE, "%s has size %lld on axis %d but %s has %lld", v->codes_name,
                             (long long)codes->shape[i], i, v->values_name, size);
        if (i == v->at && size % TRN_MX_BLOCK != 0)
            return trni_fail(v->error, TRN_ESHAPE,
                             "%s has size %lld on axis %d, no multiple of %d, and that axis is cut into blocks",
                             v->values_name, size, i, (int)TRN_MX_BLOCK);
        if (scales->shape[i] != blocks)
            return trni_fail(v->error, TRN_ESHAPE, "%s has size %lld on axis %d, expected %lld (%s has %lld%s)",
                             v->scales_name, (long long)scales->shape[i], i, blocks, v->values_name, size,
                             i == v->at ? ", in blocks of 32" : "");
    }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mx_check_overlap(const trn_tensor *dst, const char *dst_name, const trn_tensor *other,
                                             const char *other_name, trn_error *error)
{
    if (!trn_tensor_overlap(*dst, *other)) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "%s overlaps %s", dst_name, other_name);
}

TRNI_DRIVER trn_status trni_mx_check(trni_mx_views *v)
{
    const trni_use scales = v->quantize ? TRNI_OUTPUT : TRNI_INPUT, values = v->quantize ? TRNI_INPUT : TRNI_OUTPUT;
    trn_status status = trn_tensor_check(v->values, v->values_name, values, 0, v->error);
    if (!status) status = trn_tensor_check(v->codes, v->codes_name, scales, 0, v->error);
    if (!status) status = trn_tensor_check(v->scales, v->scales_name, scales, 0, v->error);
    if (!status) status = trni_mx_check_formats(v);
    if (!status) status = trni_mx_check_axis(v);
    if (!status) status = trni_mx_check_shapes(v);
    if (!status) status = trni_mx_check_overlap(v->codes, v->codes_name, v->values, v->values_name, v->error);
    if (!status) status = trni_mx_check_overlap(v->scales, v->scales_name, v->values, v->values_name, v->error);
    if (!status && v->quantize)
        status = trni_mx_check_overlap(v->codes, v->codes_name, v->scales, v->scales_name, v->error);
    return status;
}

TRNI_DRIVER trn_status trni_mx_check_modes(const trn_mx_quantize_args *a)
{
    if ((unsigned)a->scale >= TRN_MX_SCALE_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "scale %d is not a rule for block scales", (int)a->scale);
    return trni_check_rounding(a->rounding, a->sr_bits, a->error);
}

TRNI_FN void trni_mx_plan_init(trni_mx_plan *p, const trni_mx_views *v)
{
    p->format = v->values->format;
    p->value_bytes = trn_format_bytes(p->format);
    p->values = (char *)v->values->data;
    p->codes = (char *)v->codes->data;
    p->scales = (char *)v->scales->data;
    trni_mx_cut(p, v);
}

/* ---- the two calls ---- */

TRN_API trn_status trn_mx_quantize(const trn_mx_quantize_args *args)
{
    TRNI_ENTER(args);
    trni_mx_views v = { &args->src,  &args->dst, &args->dst_scale, "src", "dst",
                        "dst_scale", true,       args->axis,       0,     args->error };
    trni_mx_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.isa = args->isa;
    trn_status status = trni_mx_check(&v);
    if (!status) status = trni_mx_check_modes(args);
    if (!status) status = trni_isa_resolve(&plan.isa, args->error);
    if (status || trn_tensor_elements(args->src) == 0) return status;

    plan.stochastic = args->rounding == TRN_STOCHASTIC;
    plan.bits = args->sr_bits ? args->sr_bits : 32;
    plan.seed = args->seed;
    plan.stream = args->stream;
    plan.index = args->index;
    plan.rule = trni_mx_rule_of(args->dst.format, args->scale);
    plan.least = trni_mx_least(args->rounding);
    const trni_encoding how = { { args->rounding, 0, plan.bits }, TRN_SATURATE, false };
    trni_encoder_init(&plan.encode, trn_format_info_of(args->dst.format), how, plan.isa);
    trni_decoder_init(&plan.decode, trn_format_info_of(args->src.format), plan.isa);
    plan.both = trni_mx_both_pick(&plan.encode);
    trni_mx_plan_init(&plan, &v);
    trni_mx_run(&plan, trni_mx_quantize_panel, trn_tensor_elements(args->src));
    return TRN_OK;
}

TRN_API trn_status trn_mx_dequantize(const trn_mx_dequantize_args *args)
{
    TRNI_ENTER(args);
    trni_mx_views v = { &args->dst,  &args->src, &args->src_scale, "dst", "src",
                        "src_scale", false,      args->axis,       0,     args->error };
    trni_mx_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.isa = args->isa;
    trn_status status = trni_mx_check(&v);
    if (!status) status = trni_isa_resolve(&plan.isa, args->error);
    if (status || trn_tensor_elements(args->dst) == 0) return status;

    const trni_encoding how = { { TRN_NEAREST_EVEN, 0, 0 }, TRN_OVERFLOW_DEFAULT, false };
    plan.rule = trni_mx_rule_of(args->src.format, TRN_MX_SCALE_OCP_FLOOR);
    trni_encoder_init(&plan.encode, trn_format_info_of(args->dst.format), how, plan.isa);
    trni_decoder_init(&plan.decode, trn_format_info_of(args->src.format), plan.isa);
    plan.times = trni_mx_times_pick(&plan.half, trn_format_info_of(args->src.format), plan.isa);
    trni_mx_plan_init(&plan, &v);
    trni_mx_run(&plan, trni_mx_dequantize_panel, trn_tensor_elements(args->dst));
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_DATA_MX_CAST_H */
