/* trn_cast.h - runs of numbers between binary32 and any other format: the straight-line kernels under every conversion.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cast.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const float x[3] = { 1.0f, 300.0f, -0.01f };
 *         unsigned char code[3];
 *         trni_encoder e;
 *         trni_encoder_init(&e, trn_format_info_of(TRN_F8_E4M3), (trni_encoding){ .overflow = TRN_SATURATE }, TRN_ISA_PORTABLE);
 *         trni_encoder_run(&e, code, x, NULL, 3);
 *         printf("%02x %02x %02x\n", code[0], code[1], code[2]);  // 38 77 85
 *         return code[1] == 0x77 ? 0 : 1;
 *     }
 *
 * DOES: contiguous runs at any address, binary32 to codes and back, for every row of trn_format.h and every cFP8, in all
 *     six rounding modes; decides once, in _init, which kernel that takes, so that _run is one call.
 * DOES NOT: check arguments, walk strides, draw random bits or start threads: trn_convert.h and trn_mx.h do.
 *
 * CONTENTS
 *     trni_encoder, trni_encoder_init, trni_encoder_run   binary32 -> codes
 *     trni_decoder, trni_decoder_init, trni_decoder_run   codes -> binary32
 *
 * All names are the library's own (trni_): programs call trn_convert. An instruction set must be resolved, never
 * TRN_ISA_AUTO. Kernels are exact in any floating-point environment: integer arithmetic, and float steps whose results
 * are exact and normal.
 *
 * KNOWN FROM: tests/unit/test_cast.c and test_convert.c (every kernel against the codec; the golden vectors).
 */
#ifndef TRN_CAST_H
#define TRN_CAST_H

#include "trn_cpu.h"
#include "trn_format.h"

/* ---- kernels: one element, branch-free, so that both compilers vectorise the loop around it ---- */

/* The caller's arrays may hold floats and sit at any address. */
typedef uint32_t trni_any32 __attribute__((may_alias, aligned(1)));
typedef uint16_t trni_any16 __attribute__((may_alias, aligned(1)));

TRNI_INLINE uint32_t trni_canonical_nan(uint32_t u) { return (u & TRNI_F32_SIGN) | TRNI_F32_NAN; }

TRNI_INLINE uint32_t trni_bits_from_bf16(uint16_t code)
{
    const uint32_t u = (uint32_t)code << 16;
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : u;
}

TRNI_INLINE uint32_t trni_bits_from_tf32(uint32_t code)
{
    const uint32_t u = code & ~0x1fffu;
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : u;
}

/* As trni_bf16_from_bits: adding just under half, plus one when the kept part is odd, carries exactly when nearest
 * even rounds up, and the carry of the largest finite number runs into infinity. Right for everything but NaN. */
TRNI_INLINE uint16_t trni_bf16_from_number(uint32_t u) { return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); }
TRNI_INLINE uint32_t trni_tf32_from_number(uint32_t u) { return (u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu; }

TRNI_INLINE uint32_t trni_tf32_from_bits(uint32_t u)
{
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : trni_tf32_from_number(u);
}

/* yes where the condition holds, no elsewhere, without a branch: were the float steps below behind a ?:, gcc would
 * move them into the branch and then, since they might trap, refuse to vectorise. */
TRNI_INLINE uint32_t trni_either(bool condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* Subnormals: the 10-bit integer m is exact in binary32, and so is m · 2^-24, which is normal. */
TRNI_INLINE uint32_t trni_bits_from_f16(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, m = code & 0x7fffu;
    const uint32_t normal = (m << 13) + (112u << 23), small = trni_bits((float)(int32_t)m * 0x1p-24f);
    const uint32_t finite = trni_either(m < 0x400u, small, normal);
    const uint32_t other = trni_either(m > 0x7c00u, TRNI_F32_NAN, TRNI_F32_INF);
    return sign | trni_either(m < 0x7c00u, finite, other);
}

/* Below 2^-14 the result counts units of 2^-24: y = |x| · 2^24 is exact and at most 2^10, its whole part k and its rest
 * y - k are exact, and the rest rounds up when it is above one half, or equal to it with k odd. A subnormal x gives 0
 * whether or not the processor reads it as zero. From 2^-14 on, moving the exponent and rounding as for BF16 is right.
 * No choice is needed: with y held at 2^10, `small` is the larger below 2^-14 (512 + t/2 >= t in the binade underneath)
 * and `normal` above. A NaN is cut to infinity's code before its own bit is added. */
TRNI_INLINE uint16_t trni_f16_from_bits(uint32_t u)
{
    const int32_t m = (int32_t)(u & ~TRNI_F32_SIGN), least_normal = 0x38800000; /* 2^-14 */
    const float y = trni_float((uint32_t)(m < least_normal ? m : least_normal)) * 0x1p24f;
    const int32_t k = (int32_t)y;
    const int32_t rest = (int32_t)trni_bits(y - (float)k);
    const int32_t small = k + (rest + (k & 1) > 0x3f000000);
    const int32_t normal = (m - (112 << 23) + 0xfff + (m >> 13 & 1)) >> 13;
    const int32_t finite = small > normal ? small : normal;
    const int32_t code = (finite < 0x7c00 ? finite : 0x7c00) + ((m > 0x7f800000) << 9);
    return (uint16_t)((uint32_t)code | (u >> 16 & 0x8000u));
}

typedef void trni_cast(void *__restrict dst, const void *__restrict src, size_t n);

#define TRNI_CAST(name, to, from, element)                                                   \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n) \
    {                                                                                        \
        to *__restrict y = (to *)dst;                                                        \
        const from *__restrict x = (const from *)src;                                        \
        for (size_t i = 0; i < n; i++) y[i] = element(x[i]);                                 \
    }                                                                                        \
    TRNI_STAMP(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

/* The same with NaN looked for once per block, by the largest magnitude: a block that holds one is done again. That is
 * 1.3 (AVX-512) to 1.9 (AVX2) times as fast as asking each element (measured, gcc 12). */
#define TRNI_CAST_BLOCK ((size_t)256)
#define TRNI_CAST_NUMBERS(name, to, number, element)                                         \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n) \
    {                                                                                        \
        to *__restrict y = (to *)dst;                                                        \
        const trni_any32 *__restrict x = (const trni_any32 *)src;                            \
        for (size_t block; n > 0; n -= block, x += block, y += block) {                      \
            int32_t most = 0;                                                                \
            block = n < TRNI_CAST_BLOCK ? n : TRNI_CAST_BLOCK;                               \
            for (size_t i = 0; i < block; i++) {                                             \
                const int32_t m = (int32_t)(x[i] & ~TRNI_F32_SIGN);                          \
                most = m > most ? m : most;                                                  \
                y[i] = number(x[i]);                                                         \
            }                                                                                \
            if (most > (int32_t)TRNI_F32_INF)                                                \
                for (size_t i = 0; i < block; i++) y[i] = element(x[i]);                     \
        }                                                                                    \
    }                                                                                        \
    TRNI_STAMP(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

TRNI_CAST_NUMBERS(trni_cast_f32_bf16, trni_any16, trni_bf16_from_number, trni_bf16_from_bits)
TRNI_CAST_NUMBERS(trni_cast_f32_tf32, trni_any32, trni_tf32_from_number, trni_tf32_from_bits)
TRNI_CAST(trni_cast_f32_f16, trni_any16, trni_any32, trni_f16_from_bits)
TRNI_CAST(trni_cast_bf16_f32, trni_any32, trni_any16, trni_bits_from_bf16)
TRNI_CAST(trni_cast_f16_f32, trni_any32, trni_any16, trni_bits_from_f16)
TRNI_CAST(trni_cast_tf32_f32, trni_any32, trni_any32, trni_bits_from_tf32)
#undef TRNI_CAST
#undef TRNI_CAST_NUMBERS
#undef TRNI_CAST_BLOCK

/* ---- kernels on binary32 bits, in place: what happens before the last cast ---- */

/* TRN_SATURATE: finite magnitudes stop at max, which the cast then leaves alone. */
TRNI_INLINE void trni_clamp_body(uint32_t *bits, size_t n, uint32_t max)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits[i], m = u & ~TRNI_F32_SIGN;
        bits[i] = m > max && m < TRNI_F32_INF ? (u & TRNI_F32_SIGN) | max : u;
    }
}
TRNI_STAMP(trni_clamp, (uint32_t *bits, size_t n, uint32_t max), (bits, n, max))

/* How stochastic rounding moves binary32 onto a format of the same exponent range, whose codes are the bits above
 * `cut`. With n random bits r: up iff floor(2^n · low / 2^cut) + r >= 2^n. Scaled to the width of the cut bits, n > cut
 * drops r's lower bits (they meet zeros) and n < cut appends zeros (low's lower bits then cannot carry): either way
 * the rule is one addition. An exact value has low = 0 and cannot move; subnormals need no second thought. */
typedef struct trni_sr {
    int cut;           /* 16 for BF16, 13 for TF32 */
    int bits;          /* n */
    uint32_t max;      /* largest finite magnitude of the format, as binary32 */
    uint32_t overflow; /* what a carry beyond it becomes */
} trni_sr;

TRNI_INLINE void trni_round_sr_body(uint32_t *__restrict bits, const uint32_t *__restrict field, size_t n, trni_sr sr)
{
    const int right = sr.bits > sr.cut ? sr.bits - sr.cut : 0, left = sr.bits < sr.cut ? sr.cut - sr.bits : 0;
    const uint32_t kept = ~0u << sr.cut;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits[i], m = u & ~TRNI_F32_SIGN;
        const uint32_t moved = (m + (field[i] >> right << left)) & kept, finite = moved > sr.max ? sr.overflow : moved;
        bits[i] = (u & TRNI_F32_SIGN) | (m < TRNI_F32_INF ? finite : m);
    }
}
TRNI_STAMP(trni_round_sr, (uint32_t *__restrict bits, const uint32_t *__restrict field, size_t n, trni_sr sr),
           (bits, field, n, sr))

/* ---- guests: the same bits, faster; without them the plain kernels above do everything ---- */

#if TRNI_X86 && TRNI_INTRINSICS
#define TRNI_CAST_GUESTS 1
#include "simd/trn_cast_avx2.h"
#include "simd/trn_cast_avx512.h"
#else
#define TRNI_CAST_GUESTS 0
#endif

/* The cast between binary32 and one format, nearest even with the format's own overflow; NULL: no kernel. */
typedef struct trni_cast_row {
    trn_format from, to;
    trni_cast *(*kernel)(trn_isa isa);
    trni_cast *avx2, *avx512; /* guests, or NULL */
    trni_cast *past;          /* AVX-512, and the result bypasses the caches */
} trni_cast_row;

TRNI_FN const trni_cast_row *trni_cast_find(trn_format from, trn_format to)
{
#if TRNI_CAST_GUESTS
#define TRNI_GUEST(name) name
#else
#define TRNI_GUEST(name) NULL
#endif
    static const trni_cast_row row[] = {
        { TRN_F32, TRN_BF16, trni_cast_f32_bf16_for, NULL, TRNI_GUEST(trni_guest_f32_bf16),
          TRNI_GUEST(trni_guest_f32_bf16_past) },
        { TRN_F32, TRN_F16, trni_cast_f32_f16_for, TRNI_GUEST(trni_guest256_f32_f16), TRNI_GUEST(trni_guest_f32_f16),
          NULL },
        { TRN_F32, TRN_TF32, trni_cast_f32_tf32_for, NULL, NULL, NULL },
        { TRN_BF16, TRN_F32, trni_cast_bf16_f32_for, NULL, NULL, NULL },
        { TRN_F16, TRN_F32, trni_cast_f16_f32_for, TRNI_GUEST(trni_guest256_f16_f32), TRNI_GUEST(trni_guest_f16_f32),
          NULL },
        { TRN_TF32, TRN_F32, trni_cast_tf32_f32_for, NULL, NULL, NULL },
    };
#undef TRNI_GUEST
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].from == from && row[i].to == to) return &row[i];
    return NULL;
}

/* The format whose row this is, where a kernel wants to know. */
TRNI_FN trn_format trni_cast_format(const trn_format_info *f)
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
    trni_cast *const guest = isa == TRN_ISA_AVX512 ? row->avx512 : isa == TRN_ISA_AVX2 ? row->avx2 : NULL;
    return guest ? guest : row->kernel(isa);
}

/* Stores past the caches: for results too large to stay in them (1.2 to 1.6 times the speed, measured). */
TRNI_FN bool trni_stream_available(trn_isa isa) { return TRNI_CAST_GUESTS && isa == TRN_ISA_AVX512; }

TRNI_FN void trni_stream(void *dst, const void *src, size_t bytes, const char *ahead, size_t ahead_per_line)
{
#if TRNI_CAST_GUESTS
    trni_guest_stream(dst, src, bytes, ahead, ahead_per_line);
#else
    (void)ahead, (void)ahead_per_line;
    memcpy(dst, src, bytes);
#endif
}

TRNI_FN void trni_stream_end(void)
{
#if TRNI_CAST_GUESTS
    trni_guest_fence();
#endif
}

/* ---- encoder: what stands between binary32 and the last cast ---- */

enum { TRNI_CAST_CHUNK = 512 }; /* elements per pass through the stages: buffers stay in the first cache */

typedef struct trni_encoder {
    trn_format_info to;
    trni_encoding how;
    trn_isa isa;
    size_t bytes;    /* of one code */
    trni_cast *cast; /* of values that need no rounding but nearest even; NULL: the codec */
    trni_cast *past; /* the same, past the caches; NULL where there is none */
    bool copy, clamp, round_sr;
    trni_sr sr;
} trni_encoder;

/* Stochastic rounding and saturation reach the nearest-even casts as values that no longer need rounding; formats whose
 * exponent range is not binary32's leave stochastic rounding to the codec. */
TRNI_FN void trni_encoder_init(trni_encoder *e, const trn_format_info *to, trni_encoding how, trn_isa isa)
{
    memset(e, 0, sizeof *e);
    e->to = *to;
    e->how = how;
    e->isa = isa;
    e->bytes = ((size_t)to->bits + 7) / 8;
    e->copy = to->mantissa_bits == 23;
    const trni_cast_row *row = trni_cast_find(TRN_F32, trni_cast_format(to));
    if (!row) return;
    e->sr.max = trni_decode_row(to, to->max_code << to->low_zeros);
    e->sr.overflow = how.sr_carry_to_inf && how.overflow != TRN_SATURATE ? TRNI_F32_INF : e->sr.max;
    e->sr.cut = 23 - to->mantissa_bits;
    e->sr.bits = how.how.bits ? how.how.bits : 32;
    e->round_sr = how.how.rounding == TRN_STOCHASTIC && to->bias == 127;
    e->clamp = how.how.rounding == TRN_NEAREST_EVEN && how.overflow == TRN_SATURATE;
    if (e->round_sr || how.how.rounding == TRN_NEAREST_EVEN) e->cast = trni_cast_kernel(row, isa);
    if (e->cast && !e->round_sr && !e->clamp && isa == TRN_ISA_AVX512) e->past = row->past;
}

TRNI_FN void trni_encoder_codec(const trni_encoder *e, char *dst, const uint32_t *value, const uint32_t *field, size_t n)
{
    trni_encoding how = e->how;
    for (size_t i = 0; i < n; i++) {
        if (how.how.rounding == TRN_STOCHASTIC) how.how.random = field[i];
        const uint32_t code = trni_encode_row(&e->to, value[i], how);
        memcpy(dst + i * e->bytes, &code, e->bytes); /* little endian */
    }
}

/* n binary32 numbers at any address to codes, one element of trn_format_bytes each; dst and f32 share nothing. field: n
 * random fields of how.how.bits bits each, low-aligned; NULL unless stochastic. */
TRNI_FN void trni_encoder_run(const trni_encoder *e, void *dst, const void *f32, const uint32_t *field, size_t n)
{
    const char *x = (const char *)f32;
    char *y = (char *)dst;
    if (e->copy) {
        memcpy(y, x, n * sizeof(uint32_t));
    } else if (e->cast && !e->round_sr && !e->clamp) {
        e->cast(y, x, n);
    } else {
        uint32_t value[TRNI_CAST_CHUNK];
        for (size_t take; n > 0; n -= take, x += sizeof value[0] * take, y += e->bytes * take) {
            take = n < TRNI_CAST_CHUNK ? n : (size_t)TRNI_CAST_CHUNK;
            memcpy(value, x, sizeof value[0] * take);
            if (e->round_sr) trni_round_sr_for(e->isa)(value, field, take, e->sr);
            if (e->clamp) trni_clamp_for(e->isa)(value, take, e->sr.max);
            if (e->cast) e->cast(y, value, take);
            else trni_encoder_codec(e, y, value, field, take);
            if (field) field += take;
        }
    }
}

/* ---- decoder ---- */

typedef struct trni_decoder {
    trn_format_info from;
    size_t bytes;
    bool copy;
    trni_cast *cast; /* NULL: the codec */
} trni_decoder;

TRNI_FN void trni_decoder_init(trni_decoder *d, const trn_format_info *from, trn_isa isa)
{
    memset(d, 0, sizeof *d);
    d->from = *from;
    d->bytes = ((size_t)from->bits + 7) / 8;
    d->copy = from->mantissa_bits == 23;
    d->cast = trni_cast_kernel(trni_cast_find(trni_cast_format(from), TRN_F32), isa);
}

/* n codes, one element of trn_format_bytes each, at any address, to binary32; f32 and src share nothing. */
TRNI_FN void trni_decoder_run(const trni_decoder *d, void *f32, const void *src, size_t n)
{
    const char *x = (const char *)src;
    char *y = (char *)f32;
    if (d->copy) {
        memcpy(y, x, n * sizeof(uint32_t));
    } else if (d->cast) {
        d->cast(y, x, n);
    } else {
        for (size_t i = 0; i < n; i++) {
            uint32_t code = 0;
            memcpy(&code, x + i * d->bytes, d->bytes); /* little endian */
            const uint32_t bits = trni_decode_row(&d->from, code);
            memcpy(y + i * sizeof bits, &bits, sizeof bits);
        }
    }
}

#endif /* TRN_CAST_H */
