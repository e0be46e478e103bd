/* data/cast.h - runs of numbers between binary32 and any other format: the kernels under every conversion.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * DOES: contiguous runs at any address, binary32 to codes and back, for every row of trn_format.h and every cFP8, in
 *     all six rounding modes; decides once, in _init, which kernel that takes, so that _run is one call.
 * DOES NOT: check arguments, walk strides, draw random bits or start threads: trn_convert.h and trn_mx.h do.
 *
 * All names are the library's own (trni_): programs call trn_convert. An instruction set must be resolved, never
 * TRN_ISA_AUTO.
 *
 * How it works: plain kernels (data/cast_kernels.h) for everything, and SIMD kernels that are faster for what matters
 * most.
 * All are exact in any floating-point environment. Biases of cFP8 beyond what the kernels' float steps can hold take
 * the codec, element by element.
 *
 * KNOWN FROM: tests/unit/test_cast.c and test_sweep.c (every kernel against codec and twin); the golden vectors.
 */
#ifndef TRNI_DATA_CAST_H
#define TRNI_DATA_CAST_H

#include "cast_kernels.h"

/* ---- SIMD kernels: the same bits, faster; without them the plain kernels above do everything ---- */

#if TRNI_X86 && TRNI_INTRINSICS
#define TRNI_CAST_SIMD 1
#include "../simd/cast_avx2.h"
#include "../simd/cast_avx512.h"
#else
#define TRNI_CAST_SIMD 0
#endif
#define TRNI_CAST_NEON (TRNI_AARCH64 && TRNI_INTRINSICS)
#if TRNI_CAST_NEON
#include "../simd/cast_neon.h"
#endif

/* The cast between binary32 and one format, nearest even with the format's own overflow; NULL: no kernel. */
typedef struct trni_cast_row {
    trn_format from, to;
    trni_cast *(*kernel)(trn_isa isa);
    trni_cast *avx2, *avx512; /* SIMD kernels, or NULL */
    trni_cast *past;          /* AVX-512, and the result bypasses the caches */
} trni_cast_row;

TRNI_DRIVER const trni_cast_row *trni_cast_find(trn_format from, trn_format to)
{
#if TRNI_CAST_SIMD
#define TRNI_SIMD(name) name
#else
#define TRNI_SIMD(name) NULL
#endif
    static const trni_cast_row row[] = {
        { TRN_F32, TRN_BF16, trni_cast_f32_bf16_for, NULL, TRNI_SIMD(trni_simd_f32_bf16),
          TRNI_SIMD(trni_simd_f32_bf16_past) },
        { TRN_F32, TRN_F16, trni_cast_f32_f16_for, TRNI_SIMD(trni_simd256_f32_f16), TRNI_SIMD(trni_simd_f32_f16),
          NULL },
        { TRN_F32, TRN_TF32, trni_cast_f32_tf32_for, NULL, TRNI_SIMD(trni_simd_f32_tf32), NULL },
        { TRN_BF16, TRN_F32, trni_cast_bf16_f32_for, NULL, TRNI_SIMD(trni_simd_bf16_f32), NULL },
        { TRN_F16, TRN_F32, trni_cast_f16_f32_for, TRNI_SIMD(trni_simd256_f16_f32), TRNI_SIMD(trni_simd_f16_f32),
          NULL },
        { TRN_TF32, TRN_F32, trni_cast_tf32_f32_for, NULL, TRNI_SIMD(trni_simd_tf32_f32), NULL },
    };
#undef TRNI_SIMD
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].from == from && row[i].to == to) return &row[i];
    return NULL;
}

/* The format whose row this is, where a kernel wants to know. */
TRNI_DRIVER trn_format trni_cast_format(const trn_format_info *f)
{
    static const trn_format known[] = { TRN_BF16, TRN_F16, TRN_TF32 };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const trn_format_info *k = trn_format_info_of(known[i]);
        if (f->kind == k->kind && f->mantissa_bits == k->mantissa_bits && f->bias == k->bias) return known[i];
    }
    return TRN_FORMAT_UNSET;
}

TRNI_FN trni_cast *trni_cast_kernel(const trni_cast_row *row, trn_isa isa)
{
    if (!row) return NULL;
#if TRNI_CAST_NEON
    if (row->kernel == trni_cast_f32_f16_for) return trni_neon_f32_f16;
    if (row->kernel == trni_cast_f16_f32_for) return trni_neon_f16_f32;
#endif
    trni_cast *const simd = isa == TRN_ISA_AVX512 ? row->avx512 : isa == TRN_ISA_AVX2 ? row->avx2 : NULL;
    return simd ? simd : row->kernel(isa);
}

TRNI_FN trni_lookup *trni_lookup_pick(size_t bytes, trn_isa isa)
{
#if TRNI_CAST_SIMD
    if (isa == TRN_ISA_AVX512) return bytes == 1 ? trni_simd_lookup_byte : trni_simd_lookup_half;
#endif
    (void)isa;
    return bytes == 1 ? trni_lookup_byte : trni_lookup_half;
}

/* Stores past the caches: for results too large to stay in them (1.2 to 1.6 times the speed, measured). */
TRNI_FN bool trni_stream_available(trn_isa isa) { return TRNI_CAST_SIMD && isa == TRN_ISA_AVX512; }

TRNI_FN void trni_stream(void *dst, const void *src, size_t bytes, const char *ahead, size_t ahead_per_line)
{
#if TRNI_CAST_SIMD
    trni_simd_stream(dst, src, bytes, ahead, ahead_per_line);
#else
    (void)ahead, (void)ahead_per_line;
    memcpy(dst, src, bytes);
#endif
}

TRNI_FN void trni_stream_end(void)
{
#if TRNI_CAST_SIMD
    trni_simd_fence();
#endif
}

/* ---- encoder ---- */

enum { TRNI_CAST_CHUNK = 512 }; /* elements per pass through the stages: buffers stay in the first cache */

typedef struct trni_encoder {
    trn_format_info to;
    trni_encoding how;
    trn_isa isa;
    size_t bytes; /* of one code */
    bool copy;
    trni_cast *cast, *cast_past; /* BF16, F16, TF32: values that need no rounding but nearest even; past the caches */
    bool clamp, round_sr;        /* what makes them such values */
    trni_sr sr;
    trni_fast *fast;   /* all but special numbers, one code to each element; or NULL */
    bool fast_past;    /* past the caches, too */
    trni_codes *codes; /* any mode; NULL: the codec */
    bool always_field; /* its field is never NULL */
    trni_rule rule;
} trni_encoder;

/* Exact float steps: 2^(22 + bias) must be normal, and whatever is subnormal in binary32 must lie so far below the
 * least code that it can be read as zero: 2^-126 / 2^(1 - bias - M) < 2^-32. */
enum { TRNI_RULE_BIAS = 89 };

TRNI_DRIVER void trni_rule_float(trni_rule *r, const trn_format_info *f)
{
    const int E = f->exponent_bits, M = f->mantissa_bits;
    const bool shared = f->bias == 127; /* binary32's exponents: its subnormals need no second thought */
    r->cut = 23 - M;
    r->least_normal = shared ? 0 : (int32_t)((uint32_t)(128 - f->bias) << 23);
    r->below = r->least_normal - 1;
    r->offset = (int32_t)((uint32_t)(127 - f->bias) << 23);
    r->up = shared ? 1.0f : trni_float((uint32_t)(127 + 22 + f->bias) << 23);
    r->down = shared ? 1.0f : trni_float((uint32_t)(127 - 22 - f->bias) << 23);
    r->sign = 1u << (E + M);
    r->sign_right = 31 - E - M;
}

/* Integers: 14 bits of fraction and a rest above 16 bits, or 32 bits of fraction on their own. E8M0: all of 23. */
TRNI_COLD void trni_rule_other(trni_rule *r, const trn_format_info *f, trni_encoding how)
{
    const bool is_signed = f->kind == TRN_KIND_SIGNED;
    r->cut = f->kind == TRN_KIND_SCALE ? 23 : f->bits == 32 ? 32 : 14;
    r->nothing = how.overflow == TRN_SATURATE ? 0x00 : f->nan_code;
    r->stop = (int32_t)((uint32_t)(127 + f->bits - is_signed) << 23);
    r->top = f->max_code;
    r->bottom = is_signed ? f->max_code + 1 : 0;
    r->sticky = how.how.rounding != TRN_STOCHASTIC;
    r->least_normal = r->stop;
    r->offset = INT32_MAX;
    r->up = 0x1p14f;
    r->down = 0x1p-14f;
}

TRNI_DRIVER void trni_rule_mode(trni_rule *r, const trn_format_info *f, trni_encoding how)
{
    const uint32_t all = r->cut == 32 ? 0xffffffffu : (1u << r->cut) - 1;
    const int32_t max = (int32_t)f->max_code, over = how.overflow == TRN_SATURATE ? max : (int32_t)f->overflow_code;
    const int n = how.how.bits ? how.how.bits : 32;
    int32_t below = max; /* the limit of negative numbers */
    r->limit = max;
    switch (how.how.rounding) {
    case TRN_TOWARD_ZERO: break;
    case TRN_TOWARD_POSITIVE:
        r->add = all;
        r->add_negative = 0u - all;
        r->limit = over;
        break;
    case TRN_TOWARD_NEGATIVE:
        r->add_negative = all;
        below = over;
        break;
    case TRN_TO_ODD:
        r->add = all;
        r->add_odd = 0u - all;
        break;
    case TRN_STOCHASTIC:
        r->drop = n > r->cut ? n - r->cut : 0;
        r->lift = n < r->cut ? r->cut - n : 0;
        r->fine = (float)(1 << r->drop);
        r->max = max;
        if (how.sr_carry_to_inf) r->limit = over;
        r->beyond = over - r->limit;
        break;
    case TRN_NEAREST_EVEN:
    default:
        r->add = f->kind == TRN_KIND_SCALE ? (all >> 1) + 1 : all >> 1; /* E8M0: ties go up */
        r->add_odd = f->kind == TRN_KIND_SCALE ? 0 : 1;
        r->limit = below = over;
    }
    r->limit_negative = how.how.rounding == TRN_STOCHASTIC ? 0 : below - r->limit;
    if (f->kind == TRN_KIND_SIGNED || f->kind == TRN_KIND_UNSIGNED) {
        r->limit_negative = (int32_t)(r->bottom - r->top);
        r->max = INT32_MAX;
    }
    r->overflow = f->overflow_code;
    r->nan = f->nan_code;
    r->low_zeros = f->low_zeros;
}

/* Stochastic rounding and saturation reach the nearest-even casts as values that no longer need rounding. */
TRNI_DRIVER void trni_encoder_cast(trni_encoder *e)
{
    const trn_format_info *to = &e->to;
    const trni_cast_row *row = trni_cast_find(TRN_F32, trni_cast_format(to));
    if (!row || !trni_clamp_for(e->isa)) return;
    e->sr.max = trni_decode_row(to, to->max_code << to->low_zeros);
    e->sr.overflow = e->how.sr_carry_to_inf && e->how.overflow != TRN_SATURATE ? TRNI_F32_INF : e->sr.max;
    e->sr.cut = 23 - to->mantissa_bits;
    e->sr.bits = e->how.how.bits ? e->how.how.bits : 32;
    e->round_sr = e->how.how.rounding == TRN_STOCHASTIC && to->bias == 127;
    e->clamp = e->how.how.rounding == TRN_NEAREST_EVEN && e->how.overflow == TRN_SATURATE;
    if (e->round_sr || e->how.how.rounding == TRN_NEAREST_EVEN) e->cast = trni_cast_kernel(row, e->isa);
#if TRNI_CAST_SIMD
    if (e->round_sr && e->bytes == 2 && e->isa == TRN_ISA_AVX2) e->fast = trni_simd256_stochastic_bf16;
#endif
    if (e->cast && !e->round_sr && !e->clamp && e->isa == TRN_ISA_AVX512) e->cast_past = row->past;
}

/* What is there for bytes. The SIMD kernels' own float steps must stay below 2^128 for all numbers that do not
 * overflow. */
TRNI_DRIVER void trni_encoder_byte(trni_encoder *e)
{
    const bool nearest = e->how.how.rounding == TRN_NEAREST_EVEN;
#if TRNI_CAST_SIMD || TRNI_CAST_NEON
    const int M = e->to.mantissa_bits, top = (int)(e->to.max_code >> M) + 1 - e->to.bias + 23 - M;
#endif
#if TRNI_CAST_SIMD
    if (top > 126) return;
    if (nearest && e->isa == TRN_ISA_AVX2) e->fast = trni_simd256_nearest;
    if (e->how.how.rounding == TRN_STOCHASTIC && e->isa == TRN_ISA_AVX2) e->fast = trni_simd256_stochastic;
    if (e->isa != TRN_ISA_AVX512) return;
    if (nearest) e->fast = trni_simd_nearest;
    e->fast_past = nearest;
    if (e->how.how.rounding == TRN_STOCHASTIC) e->fast = trni_simd_stochastic;
#elif !TRNI_CAST_NEON
    if (nearest) e->fast = trni_nearest_for(e->isa);
#endif
#if TRNI_CAST_NEON
    if (nearest) e->fast = top > 126 ? trni_nearest_for(e->isa) : trni_neon_nearest;
#endif
}

/* Kernels for other formats than floats, and their rule without its mode. */
TRNI_DRIVER void trni_encoder_other(trni_encoder *e)
{
    const bool scale = e->to.kind == TRN_KIND_SCALE;
    trni_rule_other(&e->rule, &e->to, e->how);
    e->codes = scale           ? trni_codes_scale_for(e->isa)
               : e->bytes == 4 ? trni_codes_integer_for(e->isa)
                               : trni_codes_short_for(e->isa);
    e->always_field = scale || e->bytes == 4;
#if TRNI_CAST_SIMD
    if (e->how.how.rounding != TRN_NEAREST_EVEN) return;
    if (e->isa == TRN_ISA_AVX512) e->fast = scale ? trni_simd_scale : trni_simd_integers;
    if (e->isa == TRN_ISA_AVX2 && scale) e->fast = trni_simd256_scale;
#endif
}

/* Formats of floats alone: who writes no others spares the compiler their kernels. */
TRNI_LEAN void trni_encoder_init_float(trni_encoder *e, const trn_format_info *to, trni_encoding how, trn_isa isa)
{
    const bool is_float = to->kind == TRN_KIND_FLOAT;
    memset(e, 0, sizeof *e);
    e->to = *to;
    e->how = how;
    e->isa = isa;
    e->bytes = ((size_t)to->bits + 7) / 8;
    e->copy = to->mantissa_bits == 23;
    if (e->copy || !is_float || (to->bias > TRNI_RULE_BIAS && to->bias != 127)) return;
    trni_rule_float(&e->rule, to);
    trni_rule_mode(&e->rule, to, how);
    e->codes = trni_codes_float_for(isa);
    if (e->bytes > 1)
        trni_encoder_cast(e);
    else
        trni_encoder_byte(e);
}

TRNI_DRIVER void trni_encoder_init(trni_encoder *e, const trn_format_info *to, trni_encoding how, trn_isa isa)
{
    trni_encoder_init_float(e, to, how, isa);
    if (to->kind == TRN_KIND_FLOAT || to->kind == TRN_KIND_NONE) return;
    trni_encoder_other(e);
    trni_rule_mode(&e->rule, to, how);
}

TRNI_COLD void trni_encoder_codec(const trni_encoder *e, char *dst, const char *src, const uint32_t *field, size_t n)
{
    trni_encoding how = e->how;
    for (size_t i = 0; i < n; i++) {
        uint32_t value;
        memcpy(&value, src + i * sizeof value, sizeof value);
        if (field) how.how.random = field[i];
        const uint32_t code = trni_encode_row(&e->to, value, how);
        memcpy(dst + i * e->bytes, &code, e->bytes); /* little endian */
    }
}

/* At most TRNI_CAST_CHUNK elements, TRNI_CAST_WHOLE times any number. */
TRNI_FN void trni_encoder_whole(const trni_encoder *e, char *dst, const char *src, const uint32_t *field, size_t n)
{
    TRNI_LINES(uint32_t) value[TRNI_CAST_CHUNK], zero[TRNI_CAST_CHUNK];
    if (e->always_field && !field) field = (const uint32_t *)memset(zero, 0, n * sizeof zero[0]);
    if (e->cast) {
        if (e->round_sr)
            trni_round_sr_for(e->isa)(value, src, field, n, e->sr);
        else
            trni_clamp_for(e->isa)(value, src, n, e->sr.max);
        e->cast(dst, value, n);
    } else if (!e->codes) {
        trni_encoder_codec(e, dst, src, field, n);
    } else if (e->bytes == sizeof value[0]) {
        e->codes(&e->rule, dst, src, field, n);
    } else {
        e->codes(&e->rule, value, src, field, n);
        trni_narrow_for(e->isa)(dst, value, n, e->bytes);
    }
}

/* At most TRNI_CAST_CHUNK elements; the last few go through memory. */
TRNI_LEAN void trni_encoder_stages(const trni_encoder *e, char *dst, const char *src, const uint32_t *field, size_t n)
{
    const size_t rest = n % TRNI_CAST_WHOLE, whole = n - rest;
    if (whole) trni_encoder_whole(e, dst, src, field, whole);
    if (!rest) return;
    uint32_t value[TRNI_CAST_WHOLE] = { 0 }, random[TRNI_CAST_WHOLE] = { 0 }, code[TRNI_CAST_WHOLE];
    memcpy(value, src + whole * sizeof value[0], rest * sizeof value[0]);
    if (field) memcpy(random, field + whole, rest * sizeof random[0]);
    trni_encoder_whole(e, (char *)code, (const char *)value, field ? random : NULL, TRNI_CAST_WHOLE);
    memcpy(dst + whole * e->bytes, code, rest * e->bytes);
}

/* By the fast kernel; where that stops, a few elements the other way. */
TRNI_FN void trni_encoder_fast(const trni_encoder *e, trni_cast_rest s)
{
    enum { most = 64 };
    for (;;) {
        e->fast(&e->rule, &s);
        if (s.n == 0) return;
        const size_t take = s.n < most ? s.n : (size_t)most;
        trni_encoder_stages(e, s.dst, s.src, s.field, take);
        trni_cast_done(&s, e->bytes, take);
    }
}

/* n binary32 numbers at any address to codes, one element of trn_format_bytes each; dst and f32 share nothing. field: n
 * random fields of how.how.bits bits each, low-aligned; NULL unless stochastic. */
TRNI_FN void trni_encoder_run(const trni_encoder *e, void *dst, const void *f32, const uint32_t *field, size_t n)
{
    const char *x = (const char *)f32;
    char *y = (char *)dst;
    if (e->copy) {
        memcpy(y, x, n * e->bytes);
    } else if (e->fast) {
        const trni_cast_rest all = { y, x, e->how.how.rounding == TRN_STOCHASTIC ? field : NULL, n, false };
        trni_encoder_fast(e, all);
    } else if (e->cast && !e->round_sr && !e->clamp) {
        e->cast(y, x, n);
    } else {
        const bool stochastic = e->how.how.rounding == TRN_STOCHASTIC;
        for (size_t take, at = 0; at < n; at += take) {
            take = n - at < TRNI_CAST_CHUNK ? n - at : (size_t)TRNI_CAST_CHUNK;
            trni_encoder_stages(e, y + e->bytes * at, x + sizeof(uint32_t) * at, stochastic ? field + at : NULL, take);
        }
    }
}

/* The same past the caches, or false: there is no kernel for it. */
TRNI_FN bool trni_encoder_run_past(const trni_encoder *e, void *dst, const void *f32, size_t n)
{
    if (e->fast_past) {
        trni_cast_rest s = { (char *)dst, (const char *)f32, NULL, n, true };
        const size_t before = (64 - ((uintptr_t)dst & 63)) & 63, head = before < n ? before : n; /* to a cache line */
        trni_encoder_run(e, dst, f32, NULL, head);
        trni_cast_done(&s, 1, head);
        trni_encoder_fast(e, s);
    } else if (e->cast_past) {
        e->cast_past(dst, f32, n);
    }
    return e->fast_past || e->cast_past;
}

/* ---- decoder ---- */

typedef struct trni_decoder {
    trn_format_info from;
    size_t bytes;
    bool copy;
    trni_cast *cast; /* BF16, F16, TF32 */
    trni_read *read; /* the others */
    trni_reading reading;
    trni_lookup *lookup, *lookup_past; /* codes of a byte, whose numbers all end 16 bits early; or NULL */
    uint16_t high[256];
} trni_decoder;

TRNI_FN void trni_reading_init(trni_reading *r, const trn_format_info *f)
{
    const int E = f->exponent_bits, M = f->mantissa_bits;
    if (f->kind == TRN_KIND_SIGNED) r->mask = 1u << (f->bits - 1);
    if (f->kind != TRN_KIND_FLOAT) return;
    r->mask = (1u << (E + M)) - 1;
    r->sign_left = 31 - E - M;
    r->up = 23 - M;
    r->add = (uint32_t)(127 - f->bias) << 23;
    r->unit = trni_float((uint32_t)(128 - f->bias - M) << 23);
    r->least = 1 << M;
    r->max = (int32_t)f->max_code;
    r->infinity = f->overflow_code == f->nan_code ? TRNI_F32_NAN : TRNI_F32_INF;
}

/* For other formats than floats. */
TRNI_DRIVER trni_read *trni_read_pick(const trn_format_info *f, trn_isa isa)
{
    if (f->kind == TRN_KIND_SCALE) return trni_read_scale_for(isa);
#if TRNI_CAST_SIMD
    if (f->bits == 32 && isa == TRN_ISA_AVX512) return trni_simd_read_word;
#endif
    return f->bits == 8 ? trni_read_byte_for(isa) : f->bits == 16 ? trni_read_half_for(isa) : trni_read_word_for(isa);
}

/* The upper halves of all numbers that a byte can name. */
TRNI_FN void trni_decoder_table(trni_decoder *d, trn_isa isa)
{
#if TRNI_CAST_SIMD
    if (isa != TRN_ISA_AVX512 || d->bytes != 1 || !d->read) return;
    unsigned char code[256];
    TRNI_LINES(uint32_t) bits[256];
    for (int i = 0; i < 256; i++) code[i] = (unsigned char)i;
    d->read(&d->reading, bits, code, 256);
    for (int i = 0; i < 256; i++) d->high[i] = (uint16_t)(bits[i] >> 16);
    d->lookup = trni_simd_lookup_word;
    d->lookup_past = trni_simd_lookup_word_past;
#else
    (void)d, (void)isa;
#endif
}

/* As trni_encoder_init_float: formats of floats alone. */
TRNI_FN void trni_decoder_init_float(trni_decoder *d, const trn_format_info *from, trn_isa isa)
{
    static const trni_reading none = { 0, 0, 0, 0, 0, 0, 0, 0 };
    d->from = *from;
    d->bytes = ((size_t)from->bits + 7) / 8;
    d->copy = from->mantissa_bits == 23;
    d->cast = trni_cast_kernel(trni_cast_find(trni_cast_format(from), TRN_F32), isa);
    d->read = NULL;
    d->lookup = d->lookup_past = NULL;
    d->reading = none;
    trni_reading_init(&d->reading, from);
    if (from->kind != TRN_KIND_FLOAT || from->bits > 8) return;
    d->read = trni_read_float_for(isa);
    trni_decoder_table(d, isa);
}

TRNI_FN void trni_decoder_init(trni_decoder *d, const trn_format_info *from, trn_isa isa)
{
    trni_decoder_init_float(d, from, isa);
    if (from->kind == TRN_KIND_FLOAT || from->kind == TRN_KIND_NONE) return;
    d->read = trni_read_pick(from, isa);
    trni_decoder_table(d, isa);
}

/* The last few go through memory. */
TRNI_LEAN void trni_decoder_read(const trni_decoder *d, char *f32, const char *src, size_t n)
{
    const size_t rest = n % TRNI_CAST_WHOLE, whole = n - rest;
    uint32_t code[TRNI_CAST_WHOLE] = { 0 }, value[TRNI_CAST_WHOLE];
    if (whole) d->read(&d->reading, f32, src, whole);
    if (!rest) return;
    memcpy(code, src + whole * d->bytes, rest * d->bytes);
    d->read(&d->reading, value, code, TRNI_CAST_WHOLE);
    memcpy(f32 + whole * sizeof value[0], value, rest * sizeof value[0]);
}

/* n codes, one element of trn_format_bytes each, at any address, to binary32; f32 and src share nothing. */
TRNI_FN void trni_decoder_run(const trni_decoder *d, void *f32, const void *src, size_t n)
{
    const char *x = (const char *)src;
    char *y = (char *)f32;
    if (d->copy)
        memcpy(y, x, n * d->bytes);
    else if (d->cast)
        d->cast(y, x, n);
    else if (d->lookup)
        d->lookup(d->high, y, x, n);
    else if (d->read)
        trni_decoder_read(d, y, x, n);
    else
        memset(y, 0xff, n * sizeof(uint32_t)); /* no format: NaN */
}

/* The same past the caches, or false: there is no kernel for it. */
TRNI_FN bool trni_decoder_run_past(const trni_decoder *d, void *f32, const void *src, size_t n)
{
    if (d->lookup_past) d->lookup_past(d->high, f32, src, n);
    return d->lookup_past != NULL;
}

#endif /* TRNI_DATA_CAST_H */
