/* data/cast_kernels.h - the plain C kernels of data/cast.h: between binary32 and codes, one element after the other.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * DOES: loops over elements that have no branch, so that both compilers vectorise them, compiled for each instruction
 *     set (TRNI_DISPATCH). Nearest even to and from BF16, F16 and TF32 has a kernel each. All other formats and modes
 *     share a few, for which a format and a mode are a handful of constants (trni_rule, trni_reading).
 * DOES NOT: choose among them, or know where they are not exact: data/cast.h does.
 *
 * Exact in any floating-point environment: integer arithmetic, and float steps whose results are exact and normal. No
 * element is asked for its class by a float comparison, which a compiler may move into a branch.
 *
 * KNOWN FROM: tests/unit/test_cast.c and test_sweep.c (against the codec and the twin).
 */
#ifndef TRNI_DATA_CAST_KERNELS_H
#define TRNI_DATA_CAST_KERNELS_H

#include "../base/cpu.h"
#include "../number/format.h"

/* ---- nearest even to and from BF16, F16 and TF32 ---- */

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

#define TRNI_CAST(dispatch, name, to, from, element)                                                                   \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n)                           \
    {                                                                                                                  \
        to *__restrict y = (to *)dst;                                                                                  \
        const from *__restrict x = (const from *)src;                                                                  \
        for (size_t i = 0; i < n; i++) y[i] = element(x[i]);                                                           \
    }                                                                                                                  \
    dispatch(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

/* The same with NaN looked for once per block, by the largest magnitude: those of a block that holds one are mended.
 * That is 1.3 (AVX-512) to 1.9 (AVX2) times as fast as asking each element (measured, gcc 12). */
#define TRNI_CAST_BLOCK ((size_t)256)
#define TRNI_CAST_NUMBERS(dispatch, name, to, number, element)                                                         \
    TRNI_COLD void name##_nans(to *y, const trni_any32 *x, size_t n)                                                   \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            if (trni_is_nan_bits(x[i])) y[i] = element(x[i]);                                                          \
    }                                                                                                                  \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n)                           \
    {                                                                                                                  \
        to *__restrict y = (to *)dst;                                                                                  \
        const trni_any32 *__restrict x = (const trni_any32 *)src;                                                      \
        for (size_t block; n > 0; n -= block, x += block, y += block) {                                                \
            int32_t most = 0;                                                                                          \
            block = n < TRNI_CAST_BLOCK ? n : TRNI_CAST_BLOCK;                                                         \
            for (size_t i = 0; i < block; i++) {                                                                       \
                const int32_t m = (int32_t)(x[i] & ~TRNI_F32_SIGN);                                                    \
                most = m > most ? m : most;                                                                            \
                y[i] = number(x[i]);                                                                                   \
            }                                                                                                          \
            if (most > (int32_t)TRNI_F32_INF) name##_nans(y, x, block);                                                \
        }                                                                                                              \
    }                                                                                                                  \
    dispatch(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

TRNI_CAST_NUMBERS(TRNI_DISPATCH_AVX2, trni_cast_f32_bf16, trni_any16, trni_bf16_from_number, trni_bf16_from_bits)
TRNI_CAST_NUMBERS(TRNI_DISPATCH_BESIDE_AVX512, trni_cast_f32_tf32, trni_any32, trni_tf32_from_number,
                  trni_tf32_from_bits)
TRNI_CAST(TRNI_DISPATCH_BESIDE, trni_cast_f32_f16, trni_any16, trni_any32, trni_f16_from_bits)
TRNI_CAST(TRNI_DISPATCH_BESIDE_AVX512, trni_cast_bf16_f32, trni_any32, trni_any16, trni_bits_from_bf16)
TRNI_CAST(TRNI_DISPATCH_BESIDE, trni_cast_f16_f32, trni_any32, trni_any16, trni_bits_from_f16)
TRNI_CAST(TRNI_DISPATCH_AVX2, trni_cast_tf32_f32, trni_any32, trni_any32, trni_bits_from_tf32)
#undef TRNI_CAST
#undef TRNI_CAST_NUMBERS
#undef TRNI_CAST_BLOCK

/* Kernels that data/cast.h calls with whole multiples of this many numbers say so to compilers, which then add no code
 * for a rest: half of what it was. */
enum { TRNI_CAST_WHOLE = 16 };
TRNI_INLINE size_t trni_cast_whole(size_t n) { return n & ~(size_t)(TRNI_CAST_WHOLE - 1); }

/* ---- the same formats, saturating or stochastic: what happens before the cast ---- */

/* TRN_SATURATE: finite magnitudes stop at max, which the cast then leaves alone. */
TRNI_INLINE void trni_clamp_body(uint32_t *__restrict bits, const void *__restrict f32, size_t n, uint32_t max)
{
    const trni_any32 *__restrict x = (const trni_any32 *)f32;
    n = trni_cast_whole(n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = x[i], m = u & ~TRNI_F32_SIGN;
        bits[i] = m > max && m < TRNI_F32_INF ? (u & TRNI_F32_SIGN) | max : u;
    }
}
TRNI_DISPATCH_FAST(trni_clamp, (uint32_t *__restrict bits, const void *__restrict f32, size_t n, uint32_t max),
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
    n = trni_cast_whole(n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = x[i], m = u & ~TRNI_F32_SIGN;
        const uint32_t moved = (m + (field[i] >> right << left)) & kept, finite = moved > sr.max ? sr.overflow : moved;
        bits[i] = (u & TRNI_F32_SIGN) | (m < TRNI_F32_INF ? finite : m);
    }
}
TRNI_DISPATCH_FAST(trni_round_sr,
                   (uint32_t *__restrict bits, const void *__restrict f32, const uint32_t *__restrict field, size_t n,
                    trni_sr sr),
                   (bits, f32, field, n, sr))

/* ---- to any format, in any mode: a code is a rounded integer ----
 *
 * v = code · 2^cut + what is cut off, in one 32-bit integer. From the least normal number on, v is the binary32 pattern
 * with its exponent moved. Below, v counts fixed-point steps: y = |x| · 2^(22 + bias) is exact, and 2^23 at the least
 * normal number; v is its whole part, and a rest that the whole part lost is remembered in its last bit, far below the
 * cut. That bit comes from comparing patterns, not floats: a processor that reads subnormals as zero does not hide
 * them. Rounding is then an addition and a shift, and the six modes differ in what they add. */

typedef struct trni_rule {
    int cut;                             /* 23 - M */
    int32_t least_normal, below;         /* its pattern, and the one below; 0: binary32's own subnormals */
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
 * appends zeros to the field (`lift`; the lowest cut bits then cannot carry), and n > cut takes its lower n - cut bits
 * off (`drop`). Those meet zeros, except below the least normal number: there they meet the rest that v has lost. */
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

/* Integers of 32 bits: t is the whole part and `fraction` the rest in 32 bits; what the mode adds to it may carry into
 * t. Numbers from 2^31 on have no rest, and are moved into the range of a signed cast. */
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
    const uint32_t tiny = trni_when(m > 0) & trni_when(m < 0x00800000), lost = trni_bits(fine - (float)low) << 1;
    const uint32_t fraction = (uint32_t)high << 16 | (uint32_t)low | (trni_when((lost | tiny) != 0) & r->sticky);
    const uint32_t odd = 0u - ((uint32_t)t & 1u);
    const uint32_t add = (field << r->lift) + r->add + (odd & r->add_odd) + (negative & r->add_negative);
    const uint32_t carry = ((fraction >> 1) + (add >> 1) + (fraction & add & 1u)) >> 31;
    const uint32_t whole = (uint32_t)t + (upper & TRNI_F32_SIGN) + carry;
    const uint32_t limit = trni_either(negative, r->bottom, r->top);
    const uint32_t stops = trni_when(m >= r->stop) | trni_when(whole > limit);
    const uint32_t stopped = trni_either(stops, limit, whole);
    return ((stopped ^ negative) - negative) & trni_when(m <= (int32_t)TRNI_F32_INF);
}

/* n (TRNI_CAST_WHOLE times any number) binary32 patterns to codes, one to a word. field: NULL unless stochastic; never
 * NULL for the last two. */
#define TRNI_CODES(dispatch, name, body)                                                                               \
    TRNI_INLINE void name##_body(const trni_rule *rule, void *__restrict code, const void *__restrict f32,             \
                                 const uint32_t *__restrict field, size_t n)                                           \
    {                                                                                                                  \
        const trni_rule rule_here = *rule, *const r = &rule_here;                                                      \
        trni_any32 *__restrict y = (trni_any32 *)code;                                                                 \
        const trni_any32 *__restrict x = (const trni_any32 *)f32;                                                      \
        n = trni_cast_whole(n);                                                                                        \
        body                                                                                                           \
    }                                                                                                                  \
    dispatch(name,                                                                                                     \
             (const trni_rule *rule, void *__restrict code, const void *__restrict f32,                                \
              const uint32_t *__restrict field, size_t n),                                                             \
             (rule, code, f32, field, n))
#define TRNI_EACH(element)                                                                                             \
    for (size_t i = 0; i < n; i++) y[i] = element;

/* clang-format off */
TRNI_CODES(TRNI_DISPATCH, trni_codes_float,
           if (field) TRNI_EACH(trni_finish_float(x[i], trni_code_stochastic(x[i], field[i], r), r))
           else TRNI_EACH(trni_finish_float(x[i], trni_code_rounded(x[i], r), r)))
TRNI_CODES(TRNI_DISPATCH_AVX2, trni_codes_short,
           if (field) TRNI_EACH(trni_finish_short(x[i], trni_code_stochastic(x[i], field[i], r)))
           else TRNI_EACH(trni_finish_short(x[i], trni_code_rounded(x[i], r))))
TRNI_CODES(TRNI_DISPATCH, trni_codes_scale, TRNI_EACH(trni_code_scale(x[i], field[i], r)))
TRNI_CODES(TRNI_DISPATCH_AVX2, trni_codes_integer, TRNI_EACH(trni_code_integer(x[i], field[i], r)))
/* clang-format on */
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
TRNI_DISPATCH(trni_narrow, (void *__restrict dst, const uint32_t *__restrict code, size_t n, size_t bytes),
              (dst, code, n, bytes))

/* ---- the ways that matter most, each up to where it does not hold ---- */

/* What is left to do: a kernel does as much of it as it can, from the front. */
typedef struct trni_cast_rest {
    char *dst;
    const char *src;       /* binary32 */
    const uint32_t *field; /* stochastic: one for each, else NULL */
    size_t n;
    bool past; /* dst is on a cache line, and results bypass the caches */
} trni_cast_rest;

typedef void trni_fast(const trni_rule *rule, trni_cast_rest *s);

TRNI_INLINE void trni_cast_done(trni_cast_rest *s, size_t bytes, size_t n)
{
    s->dst += n * bytes;
    s->src += n * sizeof(uint32_t);
    if (s->field) s->field += n;
    s->n -= n;
}

/* The last elements, fewer than a block of `block` <= 64: as a block that is filled up with zeros. */
TRNI_COLD void trni_cast_last(const trni_rule *rule, trni_cast_rest *s, size_t bytes, size_t block, trni_fast *fast)
{
    uint32_t value[64] = { 0 }, field[64] = { 0 };
    char code[64 * sizeof(uint32_t)];
    trni_cast_rest whole = { code, (const char *)value, s->field ? field : NULL, block, false };
    memcpy(value, s->src, s->n * sizeof value[0]);
    if (s->field) memcpy(field, s->field, s->n * sizeof field[0]);
    fast(rule, &whole);
    if (whole.n > 0) return;
    memcpy(s->dst, code, s->n * bytes);
    trni_cast_done(s, bytes, s->n);
}

/* Nearest even to formats of a byte: as trni_code_rounded, with less to do. Infinities and NaN are looked for once per
 * block, and such a block ends it. */
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

#if !TRNI_X86 || !TRNI_INTRINSICS
TRNI_INLINE void trni_nearest_body(const trni_rule *rule, trni_cast_rest *s)
{
    enum { most = 256 };
    const trni_rule r = *rule;
    for (size_t block; s->n > 0; trni_cast_done(s, 1, block)) {
        unsigned char *__restrict y = (unsigned char *)s->dst;
        const trni_any32 *__restrict x = (const trni_any32 *)(const void *)s->src;
        uint32_t special = 0;
        block = s->n < most ? s->n : (size_t)most;
        for (size_t i = 0; i < block; i++) {
            special |= trni_when(trni_magnitude(x[i]) > (int32_t)TRNI_F32_INF - 1);
            y[i] = (unsigned char)trni_code_nearest(x[i], &r);
        }
        if (special) return;
    }
}
TRNI_DISPATCH(trni_nearest, (const trni_rule *rule, trni_cast_rest *s), (rule, s))
#endif

/* ---- from codes of a byte, and from integers ---- */

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

/* n (TRNI_CAST_WHOLE times any number) codes to binary32. */
#define TRNI_READ(dispatch, name, from, element)                                                                       \
    TRNI_INLINE void name##_body(const trni_reading *reading, void *__restrict f32, const void *__restrict src,        \
                                 size_t n)                                                                             \
    {                                                                                                                  \
        const trni_reading r = *reading;                                                                               \
        trni_any32 *__restrict y = (trni_any32 *)f32;                                                                  \
        const from *__restrict x = (const from *)src;                                                                  \
        (void)r;                                                                                                       \
        n = trni_cast_whole(n);                                                                                        \
        for (size_t i = 0; i < n; i++) y[i] = element;                                                                 \
    }                                                                                                                  \
    dispatch(name, (const trni_reading *reading, void *__restrict f32, const void *__restrict src, size_t n),          \
             (reading, f32, src, n))

TRNI_READ(TRNI_DISPATCH_AVX2, trni_read_float, unsigned char, trni_bits_from_code(x[i], &r))
TRNI_READ(TRNI_DISPATCH_AVX2, trni_read_scale, unsigned char, trni_bits_from_scale(x[i]))
TRNI_READ(TRNI_DISPATCH_AVX2, trni_read_byte, unsigned char, trni_bits_from_short(x[i], &r))
TRNI_READ(TRNI_DISPATCH_AVX2, trni_read_half, trni_any16, trni_bits_from_short(x[i], &r))
TRNI_READ(TRNI_DISPATCH_AVX2, trni_read_word, trni_any32, trni_bits_from_word(x[i], &r))
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

#endif /* TRNI_DATA_CAST_KERNELS_H */
