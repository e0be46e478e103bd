/* array/matrix_unit.h - the host's matrix unit: what its tiles compute, in plain C, and a proof that this host's do.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: blocks of 16 rows of sums by tiles of BF16 and of int8, on AMX or emulated; the test that AMX passes once per
 *     process before anybody uses it.
 * DOES NOT: know when a tile gives the bits of a chain: array/unit_words.h does.
 *
 * TDPBF16PS, for each sum: the products of even slots are one chain of 16 fused multiply-adds from +0, those of odd
 * slots another; then even + odd, then that + C. Subnormal inputs and results are zeros. TDPBSUD
 * (signed numbers of a, unsigned ones of b, as VPDPBUSD has them) is exact, modulo 2^32.
 *
 * KNOWN FROM: Intel SDM volume 2 (the instructions), and 6.9 million sums of a processor (measured) for the order.
 */
#ifndef TRNI_ARRAY_MATRIX_UNIT_H
#define TRNI_ARRAY_MATRIX_UNIT_H

#include "../base/cpu.h"

/* A tile of a is 16 rows of 16 words; one of b 16 words down and 16 columns. A word is two BF16 numbers, or four of
 * int8, that follow each other along K, the first in its low bits. */
enum { TRNI_UNIT_ROWS = 16, TRNI_UNIT_WORDS = 16, TRNI_UNIT_TILE = 256, TRNI_UNIT_WIDTH = 32 /* two tiles, at most */ };

/* out[16][width] = the sum over `blocks` of a[block][16 rows][16 words] times b[block][16 words][width]. */
#define TRNI_UNIT_PARAMS(type) type *out, const uint32_t *a, const uint32_t *b, int blocks, int width
#define TRNI_UNIT_ARGS out, a, b, blocks, width
typedef void trni_unit_bf16_fn(TRNI_UNIT_PARAMS(float));
typedef void trni_unit_int8_fn(TRNI_UNIT_PARAMS(int32_t));

/* ---- in plain C: for tests, and to try the others ---- */

TRNI_INLINE float trni_unit_flushed(float x)
{
    const uint32_t u = trni_bits(x);
    return trni_float(u & ((u & TRNI_F32_INF) ? ~(uint32_t)0 : TRNI_F32_SIGN));
}

/* One block of one row. */
TRNI_INLINE void trni_unit_bf16_row(float *sum, const uint32_t *a, const uint32_t *b, int width)
{
    float even[TRNI_UNIT_WIDTH] = { 0 }, odd[TRNI_UNIT_WIDTH] = { 0 };
    for (int k = 0; k < TRNI_UNIT_WORDS; k++, b += width) {
        const float x = trni_unit_flushed(trni_float(a[k] << 16)),
                    y = trni_unit_flushed(trni_float(a[k] & 0xffff0000u));
        for (int n = 0; n < width; n++) {
            const float p = trni_unit_flushed(trni_float(b[n] << 16)),
                        q = trni_unit_flushed(trni_float(b[n] & 0xffff0000u));
            even[n] = trni_unit_flushed(__builtin_fmaf(x, p, even[n]));
            odd[n] = trni_unit_flushed(__builtin_fmaf(y, q, odd[n]));
        }
    }
    for (int n = 0; n < width; n++) sum[n] = trni_unit_flushed(trni_unit_flushed(even[n] + odd[n]) + sum[n]);
}

TRNI_INLINE void trni_unit_bf16_emulated_body(TRNI_UNIT_PARAMS(float))
{
    for (int i = 0; i < TRNI_UNIT_ROWS * width; i++) out[i] = 0;
    for (; blocks > 0; blocks--, a += TRNI_UNIT_TILE, b += TRNI_UNIT_WORDS * width)
        for (int m = 0; m < TRNI_UNIT_ROWS; m++) trni_unit_bf16_row(out + m * width, a + m * TRNI_UNIT_WORDS, b, width);
}
TRNI_DISPATCH_ONE(trni_unit_bf16_emulated, (TRNI_UNIT_PARAMS(float)), (TRNI_UNIT_ARGS))

TRNI_INLINE void trni_unit_int8_emulated_body(TRNI_UNIT_PARAMS(int32_t))
{
    uint32_t sum[TRNI_UNIT_ROWS * TRNI_UNIT_WIDTH] = { 0 };
    for (; blocks > 0; blocks--, a += TRNI_UNIT_TILE, b += TRNI_UNIT_WORDS * width)
        for (int m = 0; m < TRNI_UNIT_ROWS; m++)
            for (int k = 0; k < TRNI_UNIT_WORDS; k++)
                for (int n = 0; n < width; n++)
                    for (int byte = 0; byte < 32; byte += 8)
                        sum[m * width + n] += (((a[m * TRNI_UNIT_WORDS + k] >> byte & 0xffu) ^ 0x80u) - 0x80u) *
                                              (b[k * width + n] >> byte & 0xffu);
    memcpy(out, sum, sizeof *sum * (size_t)(TRNI_UNIT_ROWS * width));
}
TRNI_DISPATCH_ONE(trni_unit_int8_emulated, (TRNI_UNIT_PARAMS(int32_t)), (TRNI_UNIT_ARGS))

#define TRNI_UNIT_SIMD (TRNI_INTRINSICS && TRNI_X86)
/* Assemblers know the instructions since binutils 2.35 and LLVM 11; compilers as old as that come with none older. */
#define TRNI_UNIT_AMX (TRNI_UNIT_SIMD && ((TRNI_CLANG && __clang_major__ >= 11) || (!TRNI_CLANG && __GNUC__ >= 11)))
#if TRNI_UNIT_AMX
#include "../simd/matrix_unit_amx.h"
#endif

/* ---- the test ---- */

/* BF16 numbers of both signs between 2^-55 and 2^8, about a sixteenth of them zeros; every sum rounds many times. */
TRNI_COLD void trni_unit_fill(uint32_t *word, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) {
        uint32_t both = 0;
        for (int half = 0; half < 2; half++) {
            seed = seed * 1664525u + 1013904223u;
            const uint32_t low = 72 + (seed >> 20 & 63), near = 120 + (seed >> 20 & 15);
            const uint32_t exponent = seed >> 28 == 0 ? 0 : seed >> 26 & 1 ? near : low;
            both = both << 16 | (seed >> 31 << 15 | (exponent ? exponent << 7 | (seed >> 12 & 127) : 0));
        }
        word[i] = both;
    }
}

/* Does this host compute what the emulator does? Two blocks, whole and with odd slots of zeros. */
TRNI_COLD bool trni_unit_passes(trni_unit_bf16_fn *bf16, trni_unit_int8_fn *int8)
{
    enum { blocks = 2, sums = (int)TRNI_UNIT_ROWS * TRNI_UNIT_WIDTH, tile = (int)TRNI_UNIT_TILE };
    TRNI_LINES(uint32_t) a[blocks * tile];
    TRNI_LINES(uint32_t) b[2 * blocks * tile];
    TRNI_LINES(uint32_t) got[sums];
    uint32_t want[sums];
    for (uint32_t round = 0; round < 4; round++) {
        trni_unit_fill(a, blocks * tile, 2 * round);
        trni_unit_fill(b, 2 * blocks * tile, 2 * round + 1);
        for (int i = 0; i < blocks * tile && round % 2; i++) a[i] &= 0xffffu;
        for (int i = 0; i < 2 * blocks * tile && round % 2; i++) b[i] &= 0xffffu;
        bf16((float *)(void *)got, a, b, round < 2 ? 1 : (int)blocks, TRNI_UNIT_WIDTH);
        trni_unit_bf16_emulated_portable((float *)(void *)want, a, b, round < 2 ? 1 : (int)blocks, TRNI_UNIT_WIDTH);
        if (memcmp(got, want, sizeof want) != 0) return false;
        int8((int32_t *)(void *)got, a, b, blocks, TRNI_UNIT_WIDTH);
        trni_unit_int8_emulated_portable((int32_t *)(void *)want, a, b, blocks, TRNI_UNIT_WIDTH);
        if (memcmp(got, want, sizeof want) != 0) return false;
    }
    return true;
}

/* ---- choosing ---- */

typedef struct trni_unit {
    trni_unit_bf16_fn *bf16; /* NULL: none */
    trni_unit_int8_fn *int8;
    void (*begin)(void), (*end)(void); /* of a thread's work, or NULL */
} trni_unit;

/* Tiles are tried by the first that asks; the answer is kept beside that of trni_isa_known. */
TRNI_DRIVER trni_unit trni_unit_of(trn_isa unit, trn_isa vectors)
{
    trni_unit u;
    memset(&u, 0, sizeof u);
    if (unit == TRN_ISA_AMX_EMULATED) {
        u.bf16 = trni_unit_bf16_emulated_for(vectors);
        u.int8 = trni_unit_int8_emulated_for(vectors);
    }
#if TRNI_UNIT_AMX
    if (unit != TRN_ISA_AMX) return u;
    int known = trni_isa_known();
    if (!(known & (TRNI_UNIT_PASSES | TRNI_UNIT_FAILS))) {
        trni_simd_tiles_begin();
        const bool passes = trni_unit_passes(trni_simd_tiles_bf16, trni_simd_tiles_int8);
        trni_simd_tiles_end();
        known = trni_isa_remember(passes ? TRNI_UNIT_PASSES : TRNI_UNIT_FAILS);
    }
    if (known & TRNI_UNIT_FAILS) return u;
    u.bf16 = trni_simd_tiles_bf16;
    u.int8 = trni_simd_tiles_int8;
    u.begin = trni_simd_tiles_begin;
    u.end = trni_simd_tiles_end;
#endif
    return u;
}

#endif /* TRNI_ARRAY_MATRIX_UNIT_H */
