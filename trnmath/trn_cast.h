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
 * TRN_ISA_AUTO.
 *
 * How it works: nearest even to and from BF16, F16 and TF32 has a kernel each. All other formats and modes share four,
 * for which a format and a mode are a handful of constants (trni_rule, trni_reading). Kernels are exact in any
 * floating-point environment: integer arithmetic, and float steps whose results are exact and normal, or that
 * name their rounding themselves. Biases of cFP8 beyond what those steps can hold take the codec, element by element.
 *
 * KNOWN FROM: tests/unit/test_cast.c and test_sweep.c (every kernel against the codec and the twin); the golden vectors.
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

/* ---- kernels on binary32 patterns: what happens before the last cast ---- */

/* TRN_SATURATE: finite magnitudes stop at max, which the cast then leaves alone. */
TRNI_INLINE void trni_clamp_body(uint32_t *__restrict bits, const void *__restrict f32, size_t n, uint32_t max)
{
    const trni_any32 *__restrict x = (const trni_any32 *)f32;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = x[i], m = u & ~TRNI_F32_SIGN;
        bits[i] = m > max && m < TRNI_F32_INF ? (u & TRNI_F32_SIGN) | max : u;
    }
}
TRNI_STAMP(trni_clamp, (uint32_t *__restrict bits, const void *__restrict f32, size_t n, uint32_t max),
           (bits, f32, n, max))

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

TRNI_INLINE void trni_round_sr_body(uint32_t *__restrict bits, const void *__restrict f32,
                                    const uint32_t *__restrict field, size_t n, trni_sr sr)
{
    const trni_any32 *__restrict x = (const trni_any32 *)f32;
    const int right = sr.bits > sr.cut ? sr.bits - sr.cut : 0, left = sr.bits < sr.cut ? sr.cut - sr.bits : 0;
    const uint32_t kept = ~0u << sr.cut;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = x[i], m = u & ~TRNI_F32_SIGN;
        const uint32_t moved = (m + (field[i] >> right << left)) & kept, finite = moved > sr.max ? sr.overflow : moved;
        bits[i] = (u & TRNI_F32_SIGN) | (m < TRNI_F32_INF ? finite : m);
    }
}
TRNI_STAMP(trni_round_sr,
           (uint32_t *__restrict bits, const void *__restrict f32, const uint32_t *__restrict field, size_t n,
            trni_sr sr),
           (bits, f32, field, n, sr))

/* ---- kernels for any format and mode: a code is a rounded integer ----
 *
 * v = code · 2^cut + what is cut off, in one 32-bit integer. From the least normal number on, v is the binary32 pattern
 * with its exponent moved. Below, v counts fixed-point steps: y = |x| · 2^(22 + bias) is 2^23 at the least normal number
 * and exact; v is its whole part, and a rest that the whole part lost is remembered in its last bit (it lies far below the
 * cut). That bit comes from comparing patterns, not floats: a processor that reads subnormals as zero does not hide them.
 * Rounding is then an addition and a shift, and the six modes differ in what they add. */

typedef struct trni_rule {
    int cut;                             /* 23 - M */
    int32_t least_normal, below;         /* binary32 patterns; 0: the subnormals are binary32's own. And the one below */
    int32_t offset;                      /* from binary32's exponents to the format's */
    float up, down;                      /* 2^(22 + bias) and its inverse */
    uint32_t add, add_odd, add_negative; /* before the cut: always; when the code is odd; when x is negative */
    int32_t limit, limit_negative;       /* the largest code, and what a negative x adds to it */
    int drop, lift;                      /* stochastic: how a field meets the cut bits, see trni_code_stochastic */
    float fine;                          /* 2^drop */
    int32_t max, beyond;                 /* stochastic: a truncated code above max adds `beyond` to the limit */
    uint32_t sign, overflow, nan;        /* codes */
    int sign_right, low_zeros;           /* shifts: from bit 31 to `sign`; of the finished code */
    uint32_t nothing;                    /* E8M0: what 0 and negative numbers become */
    int32_t stop;                        /* 32-bit integers: the pattern of the least number beyond all of them */
    uint32_t top, bottom, sticky;        /* 32-bit integers: largest magnitudes; 1 unless stochastic */
} trni_rule;

TRNI_INLINE int32_t trni_least(int32_t a, int32_t b) { return a < b ? a : b; }
TRNI_INLINE int32_t trni_most(int32_t a, int32_t b) { return a > b ? a : b; }
TRNI_INLINE int32_t trni_magnitude(uint32_t u) { return (int32_t)(u & ~TRNI_F32_SIGN); }
TRNI_INLINE uint32_t trni_when(bool condition) { return 0u - (uint32_t)condition; } /* all ones, or 0 */
TRNI_INLINE uint32_t trni_negative(uint32_t u) { return (uint32_t)((int32_t)u >> 31); }

/* The magnitude's code in every mode but the stochastic one. */
TRNI_INLINE uint32_t trni_code_rounded(uint32_t u, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u), t = trni_least(m, r->least_normal);
    const uint32_t negative = trni_negative(u);
    int32_t small = (int32_t)(trni_float((uint32_t)t) * r->up);
    small |= (int32_t)trni_bits((float)small * r->down) != t;
    const uint32_t v = (uint32_t)trni_most(small, m - r->offset); /* in the binade underneath, 2^22 + t/2 >= t */
    const uint32_t odd = 0u - (v >> r->cut & 1u);
    const uint32_t sum = v + r->add + (odd & r->add_odd) + (negative & r->add_negative);
    const int32_t limit = r->limit + (int32_t)(negative & (uint32_t)r->limit_negative);
    return (uint32_t)trni_least((int32_t)(sum >> r->cut), limit);
}

/* Away from zero iff floor(2^n · fraction) + field >= 2^n. Scaled to the `cut` bits of v that is one addition: n < cut
 * appends zeros to the field (`lift`; the lowest cut bits then cannot carry), and n > cut takes off its lower n - cut bits
 * (`drop`). Those meet zeros, except below the least normal number: there they meet the rest that v has lost. */
TRNI_INLINE uint32_t trni_code_stochastic(uint32_t u, uint32_t field, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u);
    const float y = trni_float((uint32_t)trni_least(m, r->least_normal)) * r->up;
    const int32_t small = (int32_t)y, rest = (int32_t)((y - (float)small) * r->fine);
    const uint32_t v = (uint32_t)trni_most(small, m - r->offset);
    const uint32_t carry = ((uint32_t)rest + (field & ((1u << r->drop) - 1))) >> r->drop;
    const uint32_t sum = v + (field >> r->drop << r->lift) + carry;
    const uint32_t change = (trni_when((int32_t)(v >> r->cut) > r->max) & (uint32_t)r->beyond) +
                            (trni_negative(u) & (uint32_t)r->limit_negative);
    return (uint32_t)trni_least((int32_t)(sum >> r->cut), r->limit + (int32_t)change);
}

TRNI_INLINE uint32_t trni_finish_float(uint32_t u, uint32_t code, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u), infinity = (int32_t)TRNI_F32_INF;
    const uint32_t special = trni_either(m > infinity, r->nan, r->overflow);
    return (trni_either(m >= infinity, special, code) ^ (trni_negative(u) & r->sign)) << r->low_zeros;
}

/* Integers of at most 16 bits are codes below the least normal number of a format that has no other. */
TRNI_INLINE uint32_t trni_finish_short(uint32_t u, uint32_t code)
{
    const uint32_t negative = trni_negative(u);
    return ((code ^ negative) - negative) & trni_when(trni_magnitude(u) <= (int32_t)TRNI_F32_INF);
}

/* E8M0: v is the position between two powers of two, as in trni_encode_scale. `field` is 0 in the other modes. */
TRNI_INLINE uint32_t trni_code_scale(uint32_t u, uint32_t field, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u), least_normal = 0x00800000, least = 0x00400000; /* 2^-126, 2^-127 */
    const uint32_t below = (uint32_t)trni_most(m - least, 0) << 1;
    const uint32_t v = trni_either(m < least_normal, below, (uint32_t)m), odd = 0u - (v >> r->cut & 1u);
    const uint32_t sum = v + r->add + (odd & r->add_odd) + (field >> r->drop << r->lift);
    const uint32_t code = (uint32_t)trni_least((int32_t)(sum >> r->cut), r->limit);
    const uint32_t number = trni_either((int32_t)u <= 0, r->nothing, code);
    return trni_either(m >= (int32_t)TRNI_F32_INF, r->nan, number);
}

/* Integers of 32 bits: t is the whole part and `fraction` the rest in 32 bits; what the mode adds to it may carry into t. Numbers
 * from 2^31 on have no rest, and are moved into the range of a signed cast. */
TRNI_INLINE uint32_t trni_code_integer(uint32_t u, uint32_t field, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u), below = trni_least(m, r->stop - 1), half = 0x4f000000;
    const uint32_t negative = trni_negative(u), upper = trni_when(below >= half);
    const float y = trni_float((uint32_t)below) - trni_float(upper & (uint32_t)half);
    const int32_t t = (int32_t)y;
    const float rest = (y - (float)t) * 0x1p16f;
    const int32_t high = (int32_t)rest;
    const float fine = (rest - (float)high) * 0x1p16f;
    const int32_t low = (int32_t)fine;
    const uint32_t lost = (trni_bits(fine - (float)low) & ~TRNI_F32_SIGN) | (trni_when(m > 0) & trni_when(m < 0x00800000));
    const uint32_t fraction = (uint32_t)high << 16 | (uint32_t)low | (trni_when(lost != 0) & r->sticky);
    const uint32_t odd = 0u - ((uint32_t)t & 1u);
    const uint32_t add = (field << r->lift) + r->add + (odd & r->add_odd) + (negative & r->add_negative);
    const uint32_t carry = ((fraction >> 1) + (add >> 1) + (fraction & add & 1u)) >> 31;
    const uint32_t whole = (uint32_t)t + (upper & TRNI_F32_SIGN) + carry, limit = trni_either(negative, r->bottom, r->top);
    const uint32_t stops = trni_when(m >= r->stop) | trni_when(whole > limit);
    const uint32_t stopped = trni_either(stops, limit, whole);
    return ((stopped ^ negative) - negative) & trni_when(m <= (int32_t)TRNI_F32_INF);
}

/* n binary32 patterns to codes, one to a word. field: NULL unless stochastic; never NULL for the last two. */
#define TRNI_CODES(name, body)                                                                                         \
    TRNI_INLINE void name##_body(const trni_rule *rule, void *__restrict code, const void *__restrict f32,             \
                                 const uint32_t *__restrict field, size_t n)                                           \
    {                                                                                                                  \
        const trni_rule rule_here = *rule, *const r = &rule_here;                                                      \
        trni_any32 *__restrict y = (trni_any32 *)code;                                                                 \
        const trni_any32 *__restrict x = (const trni_any32 *)f32;                                                      \
        body                                                                                                           \
    }                                                                                                                  \
    TRNI_STAMP(name,                                                                                                   \
               (const trni_rule *rule, void *__restrict code, const void *__restrict f32,                              \
                const uint32_t *__restrict field, size_t n),                                                           \
               (rule, code, f32, field, n))
#define TRNI_EACH(element) \
    for (size_t i = 0; i < n; i++) y[i] = element;

TRNI_CODES(trni_codes_float,
           if (field) TRNI_EACH(trni_finish_float(x[i], trni_code_stochastic(x[i], field[i], r), r))
           else TRNI_EACH(trni_finish_float(x[i], trni_code_rounded(x[i], r), r)))
TRNI_CODES(trni_codes_short,
           if (field) TRNI_EACH(trni_finish_short(x[i], trni_code_stochastic(x[i], field[i], r)))
           else TRNI_EACH(trni_finish_short(x[i], trni_code_rounded(x[i], r))))
TRNI_CODES(trni_codes_scale, TRNI_EACH(trni_code_scale(x[i], field[i], r)))
TRNI_CODES(trni_codes_integer, TRNI_EACH(trni_code_integer(x[i], field[i], r)))
#undef TRNI_EACH
#undef TRNI_CODES
typedef trni_codes_float_fn trni_codes;

TRNI_INLINE void trni_narrow_body(void *__restrict dst, const uint32_t *__restrict code, size_t n, size_t bytes)
{
    unsigned char *__restrict byte = (unsigned char *)dst;
    trni_any16 *__restrict half = (trni_any16 *)dst;
    if (bytes == 1)
        for (size_t i = 0; i < n; i++) byte[i] = (unsigned char)code[i];
    else
        for (size_t i = 0; i < n; i++) half[i] = (uint16_t)code[i];
}
TRNI_STAMP(trni_narrow, (void *__restrict dst, const uint32_t *__restrict code, size_t n, size_t bytes),
           (dst, code, n, bytes))

/* The way that matters most, nearest even to formats of a byte: as trni_code_rounded, with less to do. Infinities and
 * NaN are looked for once per block, and such a block is done again. */
TRNI_INLINE uint32_t trni_code_nearest(uint32_t u, const trni_rule *r)
{
    const int32_t m = trni_magnitude(u);
    const uint32_t normal = trni_when(m > r->below); /* SSE2 has no >= */
    const int32_t t = (int32_t)((uint32_t)m & ~normal);
    int32_t small = (int32_t)(trni_float((uint32_t)t) * r->up);
    small |= (int32_t)trni_bits((float)small * r->down) != t;
    const uint32_t v = (uint32_t)small | ((uint32_t)(m - r->offset) & normal);
    const uint32_t sum = v + r->add + (v >> r->cut & 1u);
    return (uint32_t)trni_least((int32_t)(sum >> r->cut), r->limit) | (u >> r->sign_right & r->sign);
}

TRNI_INLINE void trni_nearest_body(const trni_rule *rule, void *__restrict dst, const void *__restrict f32, size_t n)
{
    enum { most = 256 };
    const trni_rule r = *rule;
    unsigned char *__restrict y = (unsigned char *)dst;
    const trni_any32 *__restrict x = (const trni_any32 *)f32;
    for (size_t block; n > 0; n -= block, x += block, y += block) {
        uint32_t special = 0;
        block = n < most ? n : (size_t)most;
        for (size_t i = 0; i < block; i++) {
            special |= trni_when(trni_magnitude(x[i]) > (int32_t)TRNI_F32_INF - 1);
            y[i] = (unsigned char)trni_code_nearest(x[i], &r);
        }
        if (special)
            for (size_t i = 0; i < block; i++) y[i] = (unsigned char)trni_finish_float(x[i], trni_code_rounded(x[i], &r), &r);
    }
}
TRNI_STAMP(trni_nearest, (const trni_rule *rule, void *__restrict dst, const void *__restrict f32, size_t n),
           (rule, dst, f32, n))

/* ---- kernels: codes of a byte, and integers, to binary32 ---- */

typedef struct trni_reading {
    uint32_t mask;     /* of the magnitude; integers: of the sign bit, 0 when there is none */
    int sign_left;     /* brings the sign to bit 31 */
    int up;            /* 23 - M */
    uint32_t add;      /* from the format's exponents to binary32's */
    float unit;        /* the least subnormal */
    int32_t least;     /* code of the least normal number */
    int32_t max;       /* of the largest finite one */
    uint32_t infinity; /* what the next code means */
} trni_reading;

/* As trni_bits_from_f16. */
TRNI_INLINE uint32_t trni_bits_from_code(uint32_t code, const trni_reading *r)
{
    const uint32_t sign = code << r->sign_left & TRNI_F32_SIGN, m = code & r->mask;
    const uint32_t normal = (m << r->up) + r->add, small = trni_bits((float)(int32_t)m * r->unit);
    const uint32_t finite = trni_either((int32_t)m < r->least, small, normal);
    const uint32_t other = trni_either((int32_t)m > r->max + 1, TRNI_F32_NAN, r->infinity);
    return sign | trni_either((int32_t)m > r->max, other, finite);
}

TRNI_INLINE uint32_t trni_bits_from_scale(uint32_t code)
{
    const uint32_t number = trni_either(code == 0, 0x00400000u, code << 23);
    return trni_either(code == 0xff, TRNI_F32_NAN, number);
}

/* At most 16 bits: exact. */
TRNI_INLINE uint32_t trni_bits_from_short(uint32_t code, const trni_reading *r)
{
    return trni_bits((float)((int32_t)(code ^ r->mask) - (int32_t)r->mask));
}

/* 32 bits: rounded to nearest even as an integer, since a cast would follow the mode of the moment. The exponent of
 * magnitude / 2^8, which is exact, tells the step: 2 from 2^24 on, up to 2^8. What is left has 24 significant bits, so
 * that its two halves are exact and so is their sum. */
TRNI_INLINE uint32_t trni_bits_from_word(uint32_t code, const trni_reading *r)
{
    const uint32_t sign = code & r->mask, negative = trni_negative(sign), m = (code ^ negative) - negative;
    const uint32_t power = trni_bits((float)(int32_t)(m >> 8)) & 0x7f800000u;
    const uint32_t step = (uint32_t)(int32_t)(trni_float(power) * 0x1p-15f), many = trni_when((int32_t)step > 1);
    const uint32_t odd = trni_when((m & step) != 0) & 1u;
    const uint32_t low = ((m & 0xffffu) + (((step >> 1) - 1 + odd) & many)) & ~((step - 1) & many);
    return sign | trni_bits((float)(int32_t)(m >> 16) * 0x1p16f + (float)(int32_t)low);
}

#define TRNI_READ(name, from, element)                                                                                 \
    TRNI_INLINE void name##_body(const trni_reading *reading, void *__restrict f32, const void *__restrict src,        \
                                 size_t n)                                                                             \
    {                                                                                                                  \
        const trni_reading r = *reading;                                                                               \
        trni_any32 *__restrict y = (trni_any32 *)f32;                                                                  \
        const from *__restrict x = (const from *)src;                                                                  \
        (void)r;                                                                                                       \
        for (size_t i = 0; i < n; i++) y[i] = element;                                                                 \
    }                                                                                                                  \
    TRNI_STAMP(name, (const trni_reading *reading, void *__restrict f32, const void *__restrict src, size_t n),        \
               (reading, f32, src, n))

TRNI_READ(trni_read_float, unsigned char, trni_bits_from_code(x[i], &r))
TRNI_READ(trni_read_scale, unsigned char, trni_bits_from_scale(x[i]))
TRNI_READ(trni_read_byte, unsigned char, trni_bits_from_short(x[i], &r))
TRNI_READ(trni_read_half, trni_any16, trni_bits_from_short(x[i], &r))
TRNI_READ(trni_read_word, trni_any32, trni_bits_from_word(x[i], &r))
#undef TRNI_READ
typedef trni_read_float_fn trni_read;

/* A cast from codes of a byte to codes of at most two is a table. */
typedef void trni_lookup(const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n);

TRNI_FN void trni_lookup_byte(const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n)
{
    unsigned char *__restrict y = (unsigned char *)dst;
    const unsigned char *__restrict x = (const unsigned char *)src;
    for (size_t i = 0; i < n; i++) y[i] = (unsigned char)table[x[i]];
}

TRNI_FN void trni_lookup_half(const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n)
{
    trni_any16 *__restrict y = (trni_any16 *)dst;
    const unsigned char *__restrict x = (const unsigned char *)src;
    for (size_t i = 0; i < n; i++) y[i] = table[x[i]];
}

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

TRNI_FN trni_lookup *trni_lookup_pick(size_t bytes, trn_isa isa)
{
#if TRNI_CAST_GUESTS
    if (isa == TRN_ISA_AVX512) return bytes == 1 ? trni_guest_lookup_byte : trni_guest_lookup_half;
#endif
    (void)isa;
    return bytes == 1 ? trni_lookup_byte : trni_lookup_half;
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
    trni_nearest_fn *nearest, *nearest_past; /* nearest even to a byte */
    trni_codes *stochastic;                  /* stochastic to a byte, one code to each; or NULL */
    trni_codes *codes;                       /* any mode; NULL: the codec */
    bool always_field;                       /* its field is never NULL */
    trni_rule rule;
} trni_encoder;

/* Exact float steps: 2^(22 + bias) must be normal, and whatever is subnormal in binary32 must lie so far below the least
 * code that it can be read as zero: 2^-126 / 2^(1 - bias - M) < 2^-32. */
enum { TRNI_RULE_BIAS = 89 };

TRNI_FN void trni_rule_float(trni_rule *r, const trn_format_info *f)
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
TRNI_FN void trni_rule_other(trni_rule *r, const trn_format_info *f, trni_encoding how)
{
    const bool is_signed = f->kind == TRNI_CLASS_SIGNED;
    r->cut = f->kind == TRNI_CLASS_SCALE ? 23 : f->bits == 32 ? 32 : 14;
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

TRNI_FN void trni_rule_mode(trni_rule *r, const trn_format_info *f, trni_encoding how)
{
    const uint32_t all = r->cut == 32 ? 0xffffffffu : (1u << r->cut) - 1;
    const int32_t max = (int32_t)f->max_code, over = how.overflow == TRN_SATURATE ? max : (int32_t)f->overflow_code;
    const int n = how.how.bits ? how.how.bits : 32;
    int32_t below = max; /* the limit of negative numbers */
    r->limit = max;
    switch (how.how.rounding) {
    case TRN_TOWARD_ZERO: break;
    case TRN_TOWARD_POSITIVE:
        r->add = all, r->add_negative = 0u - all;
        r->limit = over;
        break;
    case TRN_TOWARD_NEGATIVE:
        r->add_negative = all;
        below = over;
        break;
    case TRN_TO_ODD: r->add = all, r->add_odd = 0u - all; break;
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
        r->add = f->kind == TRNI_CLASS_SCALE ? (all >> 1) + 1 : all >> 1; /* E8M0: ties go up */
        r->add_odd = f->kind == TRNI_CLASS_SCALE ? 0 : 1;
        r->limit = below = over;
    }
    r->limit_negative = how.how.rounding == TRN_STOCHASTIC ? 0 : below - r->limit;
    if (f->kind == TRNI_CLASS_SIGNED || f->kind == TRNI_CLASS_UNSIGNED) {
        r->limit_negative = (int32_t)(r->bottom - r->top);
        r->max = INT32_MAX;
    }
    r->overflow = f->overflow_code;
    r->nan = f->nan_code;
    r->low_zeros = f->low_zeros;
}

/* Stochastic rounding and saturation reach the nearest-even casts as values that no longer need rounding. */
TRNI_FN void trni_encoder_cast(trni_encoder *e)
{
    const trn_format_info *to = &e->to;
    const trni_cast_row *row = trni_cast_find(TRN_F32, trni_cast_format(to));
    if (!row) return;
    e->sr.max = trni_decode_row(to, to->max_code << to->low_zeros);
    e->sr.overflow = e->how.sr_carry_to_inf && e->how.overflow != TRN_SATURATE ? TRNI_F32_INF : e->sr.max;
    e->sr.cut = 23 - to->mantissa_bits;
    e->sr.bits = e->how.how.bits ? e->how.how.bits : 32;
    e->round_sr = e->how.how.rounding == TRN_STOCHASTIC && to->bias == 127;
    e->clamp = e->how.how.rounding == TRN_NEAREST_EVEN && e->how.overflow == TRN_SATURATE;
    if (e->round_sr || e->how.how.rounding == TRN_NEAREST_EVEN) e->cast = trni_cast_kernel(row, e->isa);
    if (e->cast && !e->round_sr && !e->clamp && e->isa == TRN_ISA_AVX512) e->cast_past = row->past;
}

/* What is there for bytes. The guests' own float steps must stay below 2^128 for all numbers that do not overflow. */
TRNI_FN void trni_encoder_byte(trni_encoder *e)
{
    const bool nearest = e->how.how.rounding == TRN_NEAREST_EVEN;
    if (nearest) e->nearest = trni_nearest_for(e->isa);
#if TRNI_CAST_GUESTS
    const int M = e->to.mantissa_bits, top = (int)(e->to.max_code >> M) + 1 - e->to.bias + 23 - M;
    if (top > 126) return;
    if (nearest && e->isa == TRN_ISA_AVX2) e->nearest = trni_guest256_nearest;
    if (e->isa != TRN_ISA_AVX512) return;
    if (nearest) e->nearest = trni_guest_nearest, e->nearest_past = trni_guest_nearest_past;
    if (e->how.how.rounding == TRN_STOCHASTIC) e->stochastic = trni_guest_stochastic;
#endif
}

TRNI_FN void trni_encoder_init(trni_encoder *e, const trn_format_info *to, trni_encoding how, trn_isa isa)
{
    const bool is_float = to->kind == TRNI_CLASS_FLOAT;
    memset(e, 0, sizeof *e);
    e->to = *to;
    e->how = how;
    e->isa = isa;
    e->bytes = ((size_t)to->bits + 7) / 8;
    e->copy = to->mantissa_bits == 23;
    if (e->copy || to->kind == TRNI_CLASS_NONE || (is_float && to->bias > TRNI_RULE_BIAS && to->bias != 127)) return;
    if (is_float) trni_rule_float(&e->rule, to);
    else trni_rule_other(&e->rule, to, how);
    trni_rule_mode(&e->rule, to, how);
    e->codes = is_float                       ? trni_codes_float_for(isa)
               : to->kind == TRNI_CLASS_SCALE ? trni_codes_scale_for(isa)
               : e->bytes == 4                ? trni_codes_integer_for(isa)
                                              : trni_codes_short_for(isa);
    e->always_field = e->codes == trni_codes_scale_for(isa) || e->codes == trni_codes_integer_for(isa);
    if (is_float && e->bytes > 1) trni_encoder_cast(e);
    if (is_float && e->bytes == 1) trni_encoder_byte(e);
}

TRNI_FN void trni_encoder_codec(const trni_encoder *e, char *dst, const char *src, const uint32_t *field, size_t n)
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

/* At most TRNI_CAST_CHUNK elements. */
TRNI_FN void trni_encoder_stages(const trni_encoder *e, char *dst, const char *src, const uint32_t *field, size_t n)
{
    uint32_t value[TRNI_CAST_CHUNK], zero[TRNI_CAST_CHUNK];
    if (e->always_field && !field) field = (const uint32_t *)memset(zero, 0, n * sizeof zero[0]);
    if (e->cast) {
        if (e->round_sr) trni_round_sr_for(e->isa)(value, src, field, n, e->sr);
        else trni_clamp_for(e->isa)(value, src, n, e->sr.max);
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

/* n binary32 numbers at any address to codes, one element of trn_format_bytes each; dst and f32 share nothing. field: n
 * random fields of how.how.bits bits each, low-aligned; NULL unless stochastic. */
TRNI_FN void trni_encoder_run(const trni_encoder *e, void *dst, const void *f32, const uint32_t *field, size_t n)
{
    const char *x = (const char *)f32;
    char *y = (char *)dst;
    if (e->copy) {
        memcpy(y, x, n * e->bytes);
    } else if (e->nearest) {
        e->nearest(&e->rule, y, x, n);
    } else if (e->stochastic) {
        e->stochastic(&e->rule, y, x, field, n);
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
    if (e->nearest_past) e->nearest_past(&e->rule, dst, f32, n);
    else if (e->cast_past) e->cast_past(dst, f32, n);
    return e->nearest_past || e->cast_past;
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
    if (f->kind == TRNI_CLASS_SIGNED) r->mask = 1u << (f->bits - 1);
    if (f->kind != TRNI_CLASS_FLOAT) return;
    r->mask = (1u << (E + M)) - 1;
    r->sign_left = 31 - E - M;
    r->up = 23 - M;
    r->add = (uint32_t)(127 - f->bias) << 23;
    r->unit = trni_float((uint32_t)(128 - f->bias - M) << 23);
    r->least = 1 << M;
    r->max = (int32_t)f->max_code;
    r->infinity = f->overflow_code == f->nan_code ? TRNI_F32_NAN : TRNI_F32_INF;
}

TRNI_FN trni_read *trni_read_pick(const trn_format_info *f, trn_isa isa)
{
    if (f->kind == TRNI_CLASS_FLOAT) return f->bits <= 8 ? trni_read_float_for(isa) : NULL;
    if (f->kind == TRNI_CLASS_SCALE) return trni_read_scale_for(isa);
    if (f->kind == TRNI_CLASS_NONE) return NULL;
    return f->bits == 8 ? trni_read_byte_for(isa) : f->bits == 16 ? trni_read_half_for(isa) : trni_read_word_for(isa);
}

TRNI_FN void trni_decoder_init(trni_decoder *d, const trn_format_info *from, trn_isa isa)
{
    memset(d, 0, sizeof *d);
    d->from = *from;
    d->bytes = ((size_t)from->bits + 7) / 8;
    d->copy = from->mantissa_bits == 23;
    d->cast = trni_cast_kernel(trni_cast_find(trni_cast_format(from), TRN_F32), isa);
    trni_reading_init(&d->reading, from);
    d->read = trni_read_pick(from, isa);
#if TRNI_CAST_GUESTS
    if (isa != TRN_ISA_AVX512 || d->bytes != 1 || !d->read) return;
    unsigned char code[256];
    uint32_t bits[256];
    for (int i = 0; i < 256; i++) code[i] = (unsigned char)i;
    d->read(&d->reading, bits, code, 256);
    for (int i = 0; i < 256; i++) d->high[i] = (uint16_t)(bits[i] >> 16);
    d->lookup = trni_guest_lookup_word;
    d->lookup_past = trni_guest_lookup_word_past;
#endif
}

/* n codes, one element of trn_format_bytes each, at any address, to binary32; f32 and src share nothing. */
TRNI_FN void trni_decoder_run(const trni_decoder *d, void *f32, const void *src, size_t n)
{
    const char *x = (const char *)src;
    char *y = (char *)f32;
    if (d->copy) memcpy(y, x, n * d->bytes);
    else if (d->cast) d->cast(y, x, n);
    else if (d->lookup) d->lookup(d->high, y, x, n);
    else if (d->read) d->read(&d->reading, y, x, n);
    else memset(y, 0xff, n * sizeof(uint32_t)); /* no format: NaN */
}

/* The same past the caches, or false: there is no kernel for it. */
TRNI_FN bool trni_decoder_run_past(const trni_decoder *d, void *f32, const void *src, size_t n)
{
    if (d->lookup_past) d->lookup_past(d->high, f32, src, n);
    return d->lookup_past != NULL;
}

#endif /* TRN_CAST_H */
