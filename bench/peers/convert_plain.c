/* convert_plain.c - what a C programmer writes without a library: one plain loop per conversion, left to the compiler.
 * SPDX-License-Identifier: MIT
 *
 * The build compiles this file with -O3 -march=native, by clang when it is there, else by its own compiler; the program
 * prints which. It shares no code with trnmath/. Codes of up to eight bits are decoded by table.
 */
#include "convert_peer.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- one element ---- */

typedef struct small { /* max, overflow, nan: codes of positive numbers; emax: the exponent of max */
    int exponent_bits, mantissa_bits, bias, emax;
    uint32_t max, overflow, nan;
} small;

INLINE uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

INLINE uint32_t finish(uint32_t code, uint32_t a, uint32_t sign, small f, bool stays)
{
    if (code > f.max) code = stays && a < 0x7f800000u ? f.max : f.overflow;
    return code | sign;
}

INLINE uint32_t encode(uint32_t u, small f, bool saturate)
{
    const uint32_t a = u & 0x7fffffffu, sign = (u >> 31) << (f.exponent_bits + f.mantissa_bits);
    const int cut = 23 - f.mantissa_bits, least = 128 - f.bias; /* the exponent field of the smallest normal number */
    if (a > 0x7f800000u) return f.nan ^ sign;
    if (a >= (uint32_t)least << 23) {
        const uint32_t rounded = a + (1u << (cut - 1)) - 1 + (a >> cut & 1);
        return finish((rounded >> cut) - ((uint32_t)(127 - f.bias) << f.mantissa_bits), a, sign, f, saturate);
    }
    const int shift = cut + least - (int)(a >> 23);
    if (shift > 24) return sign;
    const uint32_t m = (a & 0x7fffffu) | 0x800000u;
    return sign | (m + (1u << (shift - 1)) - 1 + (m >> shift & 1)) >> shift;
}

INLINE uint32_t encode_random(uint32_t u, small f, uint32_t random)
{
    const uint32_t a = u & 0x7fffffffu, sign = (u >> 31) << (f.exponent_bits + f.mantissa_bits);
    const int cut = 23 - f.mantissa_bits, least = 128 - f.bias;
    if (a > 0x7f800000u) return f.nan ^ sign;
    const bool normal = a >= (uint32_t)least << 23;
    const int exponent = a >> 23 ? (int)(a >> 23) : 1, shift = normal ? cut : cut + least - exponent;
    const uint64_t m = normal ? a : (a & 0x7fffffu) | (a >> 23 ? 0x800000u : 0);
    const uint64_t position = shift < 64 ? m << 32 >> shift : 0;
    const uint32_t code = (uint32_t)((position + random) >> 32);
    return finish(normal ? code - ((uint32_t)(127 - f.bias) << f.mantissa_bits) : code, a, sign, f, true);
}

INLINE float decode(uint32_t code, small f)
{
    const uint32_t magnitude = code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
    const uint32_t sign = (code >> (f.exponent_bits + f.mantissa_bits)) << 31;
    const uint32_t exponent = magnitude >> f.mantissa_bits;
    if (magnitude > f.max)
        return float_of(sign | (f.overflow != f.nan && magnitude == f.overflow ? 0x7f800000u : 0x7fc00000u));
    if (exponent == 0) {
        const float value = ldexpf((float)magnitude, 1 - f.bias - f.mantissa_bits);
        return sign ? -value : value;
    }
    return float_of(sign | ((magnitude << (23 - f.mantissa_bits)) + ((uint32_t)(127 - f.bias) << 23)));
}

/* ---- the formats ---- */

#define F16 ((small){ 5, 10, 15, 15, 0x7bff, 0x7c00, 0x7e00 })
#define E4M3 ((small){ 4, 3, 7, 7, 0x77, 0x78, 0x7c })
#define E4M3FN ((small){ 4, 3, 7, 8, 0x7e, 0x7f, 0x7f })
#define E5M2 ((small){ 5, 2, 15, 15, 0x7b, 0x7c, 0x7e })
#define E3M4 ((small){ 3, 4, 3, 3, 0x6f, 0x70, 0x78 })
#define E2M3 ((small){ 2, 3, 1, 2, 0x1f, 0x1f, 0x20 })
#define E3M2 ((small){ 3, 2, 3, 4, 0x1f, 0x1f, 0x20 })
#define E2M1 ((small){ 2, 1, 1, 2, 0x7, 0x7, 0x8 })
#define SMALL(X) X(e4m3, E4M3) X(e4m3fn, E4M3FN) X(e5m2, E5M2) X(e3m4, E3M4) X(e2m3, E2M3) X(e3m2, E3M2) X(e2m1, E2M1)

INLINE uint16_t bf16_of(uint32_t u)
{
    const uint32_t rounded = u + 0x7fffu + (u >> 16 & 1u), quiet = (u & 0x80000000u) | 0x7fc00000u;
    return (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
}

INLINE uint32_t tf32_of(uint32_t u)
{
    const uint32_t rounded = (u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu, quiet = (u & 0x80000000u) | 0x7fc00000u;
    return (u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
}

/* Finite values that a carry would take to infinity. */
INLINE uint32_t below(uint32_t u, uint32_t max)
{
    return (u & 0x7fffffffu) > max && (u & 0x7fffffffu) < 0x7f800000u ? (u & 0x80000000u) | max : u;
}

/* A random word cuts in above `cut` bits; finite numbers stay finite. */
INLINE uint32_t cut_random(uint32_t u, int cut, uint32_t max, uint32_t random)
{
    const uint32_t a = u & 0x7fffffffu, moved = (a + (random >> (32 - cut))) & ~((1u << cut) - 1);
    if (a > 0x7f800000u) return (u & 0x80000000u) | 0x7fc00000u;
    return (u & 0x80000000u) | (a == 0x7f800000u ? a : moved > max ? max : moved);
}

INLINE uint32_t xorshift(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return *state = x;
}

/* ---- loops ---- */

#define LOOP(name, to, from, element)                                                                                  \
    static void name(const convert_peer_part *part, const void *with)                                                  \
    {                                                                                                                  \
        to *restrict y = part->dst;                                                                                    \
        const from *restrict x = part->src;                                                                            \
        (void)with;                                                                                                    \
        for (size_t i = 0; i < part->n; i++) y[i] = (to)(element);                                                     \
    }

#define LOOP_RANDOM(name, to, element)                                                                                 \
    static void name(const convert_peer_part *part, const void *with)                                                  \
    {                                                                                                                  \
        to *restrict y = part->dst;                                                                                    \
        const uint32_t *restrict x = part->src;                                                                        \
        uint32_t state = (uint32_t)part->seed * 0x9E3779B9u | 1;                                                       \
        (void)with;                                                                                                    \
        for (size_t i = 0; i < part->n; i++) y[i] = (to)(element);                                                     \
    }

LOOP(f32_bf16, uint16_t, uint32_t, bf16_of(x[i]))
LOOP(f32_bf16_sat, uint16_t, uint32_t, bf16_of(below(x[i], 0x7f7f0000u)))
LOOP(f32_tf32, uint32_t, uint32_t, tf32_of(x[i]))
LOOP(f32_tf32_sat, uint32_t, uint32_t, tf32_of(below(x[i], 0x7f7fe000u)))
LOOP(f32_f16, uint16_t, uint32_t, encode(x[i], F16, false))
LOOP(f32_f16_sat, uint16_t, uint32_t, encode(x[i], F16, true))
LOOP(bf16_f32, uint32_t, uint16_t, (uint32_t)x[i] << 16)
LOOP(tf32_f32, uint32_t, uint32_t, x[i])
LOOP(f16_f32, float, uint16_t, decode(x[i], F16))
LOOP(bf16_f16, uint16_t, uint16_t, encode((uint32_t)x[i] << 16, F16, false))
LOOP(f16_bf16, uint16_t, uint16_t, bf16_of(bits_of(decode(x[i], F16))))
LOOP_RANDOM(f32_bf16_random, uint16_t, cut_random(x[i], 16, 0x7f7f0000u, xorshift(&state)) >> 16)
LOOP_RANDOM(f32_tf32_random, uint32_t, cut_random(x[i], 13, 0x7f7fe000u, xorshift(&state)))
LOOP_RANDOM(f32_f16_random, uint16_t, encode_random(x[i], F16, xorshift(&state)))

#define INTEGER(name, type, low, high)                                                                                 \
    LOOP(f32_##name, type, float, x[i] > (low) ? x[i] < (high) ? nearbyintf(x[i]) : (high) : (low))                    \
    LOOP(name##_f32, float, type, x[i])
INTEGER(i8, int8_t, -128.0f, 127.0f)
INTEGER(u8, uint8_t, 0.0f, 255.0f)
INTEGER(i16, int16_t, -32768.0f, 32767.0f)

#define EIGHT_BITS(name, f)                                                                                            \
    LOOP(f32_##name, uint8_t, uint32_t, encode(x[i], f, false))                                                        \
    LOOP(f32_##name##_sat, uint8_t, uint32_t, encode(x[i], f, true))                                                   \
    LOOP(bf16_##name, uint8_t, uint16_t, encode((uint32_t)x[i] << 16, f, false))                                       \
    LOOP(f16_##name, uint8_t, uint16_t, encode(bits_of(decode(x[i], F16)), f, false))                                  \
    LOOP_RANDOM(f32_##name##_random, uint8_t, encode_random(x[i], f, xorshift(&state)))                                \
    static float name##_table[256];                                                                                    \
    LOOP(name##_f32, float, uint8_t, name##_table[x[i]])                                                               \
    LOOP(name##_bf16, uint16_t, uint8_t, bits_of(name##_table[x[i]]) >> 16)                                            \
    LOOP(name##_f16, uint16_t, uint8_t, encode(bits_of(name##_table[x[i]]), F16, false))

/* OCP's rule: the largest exponent of the block less the largest of the format. */
INLINE void quantize(const convert_peer_part *part, small f)
{
    const float *x = part->src;
    uint8_t *y = part->dst;
    for (size_t b = 0; b < part->n / 32; b++, x += 32, y += 32) {
        uint32_t most = 0;
        for (int i = 0; i < 32; i++) {
            const uint32_t a = bits_of(x[i]) & 0x7fffffffu;
            most = a > most ? a : most;
        }
        int scale = (int)(most >> 23) - f.emax;
        scale = scale < 0 ? 0 : scale > 254 ? 254 : scale;
        const float factor = ldexpf(1.0f, 127 - scale);
        for (int i = 0; i < 32; i++) y[i] = (uint8_t)encode(bits_of(x[i] * factor), f, true);
        part->dst_scale[b] = (uint8_t)scale;
    }
}

INLINE void dequantize(const convert_peer_part *part, const float *table)
{
    const uint8_t *x = part->src;
    float *y = part->dst;
    for (size_t b = 0; b < part->n / 32; b++, x += 32, y += 32) {
        const float factor = ldexpf(1.0f, part->src_scale[b] - 127);
        for (int i = 0; i < 32; i++) y[i] = table[x[i]] * factor;
    }
}

SMALL(EIGHT_BITS)

#define BLOCK_LOOPS(name, f)                                                                                           \
    static void f32_mx_##name(const convert_peer_part *part, const void *with) { (void)with, quantize(part, f); }      \
    static void mx_##name##_f32(const convert_peer_part *part, const void *with)                                       \
    {                                                                                                                  \
        (void)with, dequantize(part, name##_table);                                                                    \
    }
BLOCK_LOOPS(e4m3fn, E4M3FN)
BLOCK_LOOPS(e5m2, E5M2)
BLOCK_LOOPS(e2m3, E2M3)
BLOCK_LOOPS(e3m2, E3M2)
BLOCK_LOOPS(e2m1, E2M1)

/* ---- the table of loops ---- */

typedef struct entry {
    const char *from, *to;
    void (*nearest)(const convert_peer_part *part, const void *with);
    void (*saturating)(const convert_peer_part *part, const void *with);
    void (*random)(const convert_peer_part *part, const void *with);
} entry;

#define EIGHT_BITS_ENTRIES(name, f)                                                                                    \
    { "f32", #name, f32_##name, f32_##name##_sat, f32_##name##_random }, { "bf16", #name, bf16_##name, NULL, NULL },   \
        { "f16", #name, f16_##name, NULL, NULL }, { #name, "f32", name##_f32, NULL, NULL },                            \
        { #name, "bf16", name##_bf16, NULL, NULL }, { #name, "f16", name##_f16, NULL, NULL },

#define BLOCKS(mx, name) { "f32", mx, f32_mx_##name, NULL, NULL }, { mx, "f32", mx_##name##_f32, NULL, NULL },

static const entry entries[] = { { "f32", "bf16", f32_bf16, f32_bf16_sat, f32_bf16_random },
                                 { "f32", "f16", f32_f16, f32_f16_sat, f32_f16_random },
                                 { "f32", "tf32", f32_tf32, f32_tf32_sat, f32_tf32_random },
                                 { "bf16", "f32", bf16_f32, NULL, NULL },
                                 { "f16", "f32", f16_f32, NULL, NULL },
                                 { "tf32", "f32", tf32_f32, NULL, NULL },
                                 { "bf16", "f16", bf16_f16, NULL, NULL },
                                 { "f16", "bf16", f16_bf16, NULL, NULL },
                                 { "f32", "i8", f32_i8, NULL, NULL },
                                 { "f32", "u8", f32_u8, NULL, NULL },
                                 { "f32", "i16", f32_i16, NULL, NULL },
                                 { "i8", "f32", i8_f32, NULL, NULL },
                                 { "u8", "f32", u8_f32, NULL, NULL },
                                 { "i16", "f32", i16_f32, NULL, NULL },
                                 SMALL(EIGHT_BITS_ENTRIES) BLOCKS("mxfp8_e4m3fn", e4m3fn) BLOCKS("mxfp8_e5m2", e5m2)
                                     BLOCKS("mxfp6_e2m3", e2m3) BLOCKS("mxfp6_e3m2", e3m2) BLOCKS("mxfp4", e2m1) };

static void fill_tables(void)
{
#define FILL(name, f)                                                                                                  \
    for (uint32_t code = 0; code < 256; code++) name##_table[code] = decode(code, f);
    SMALL(FILL)
}

static convert_peer_loop find(const convert_peer_what *what)
{
    convert_peer_loop loop = { NULL, NULL };
    fill_tables();
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const entry *e = &entries[i];
        if (strcmp(e->from, what->from) != 0 || strcmp(e->to, what->to) != 0) continue;
        if (what->rounding == PEER_NEAREST_EVEN) loop.run = what->saturate ? e->saturating : e->nearest;
        if (what->rounding == PEER_STOCHASTIC && !what->saturate) loop.run = e->random;
    }
    return loop;
}

const convert_peer convert_peer_plain = { "plain C", CONVERT_PEER_COMPILER, 0, find };
