/* engine/alu_chain.h - one or two operators in one pass over memory, between binary32 and bfloat16.
 * Behind trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: r = (x op0 s) op1 t for runs, where x, r and one of s, t are arrays of binary32 or bfloat16 (nearest even), the
 *     other one a number; every result and rounding as engine/alu_kernels.h has it, block after block, so that memory
 *     and arithmetic go on at the same time. r may be x or the other array where the formats are one.
 * DOES NOT: take operators without a row in engine/alu_kernels.h (power, rsqrt, bypass), other formats or roundings.
 *
 * KNOWN FROM: measurements (in memory 1.4 to 2.8 times the speed of one pass per operator and cast); the numbers are
 *     engine/alu_kernels.h's.
 */
#ifndef TRNI_ENGINE_ALU_CHAIN_H
#define TRNI_ENGINE_ALU_CHAIN_H

#include "alu_kernels.h"

enum { TRNI_CHAIN_BLOCK = 256 };

typedef struct trni_chain_step {
    trn_alu op;
    bool reverse, tensor; /* tensor: the operand is y, else a number */
} trni_chain_step;

typedef struct trni_chain {
    bool from_half, to_half, other_half; /* x, r, y are bfloat16 */
    bool past;                           /* r, a multiple of 64, goes past the caches where that can be */
    int steps;                           /* 1 or 2 */
    trni_chain_step step[2];
    float value[2];
} trni_chain;

TRNI_FN bool trni_chain_takes(trn_alu op)
{
    return op != TRN_ALU_BYPASS && !trni_bits_kernel_of(op, 1) && op != TRN_ALU_POWER && op != TRN_ALU_RSQRT &&
           op != TRN_ALU_AVERAGE;
}

/* Operators do away with the payload of a NaN, so that its upper half is enough on the way in and out. Where all arrays
 * are bfloat16, pairs of them are words: the lower halves go to the block's first half, the upper ones to its second.
 * */
TRNI_INLINE const float *trni_chain_load(const void *x, bool half, bool pairs, float *block)
{
    enum { middle = TRNI_CHAIN_BLOCK / 2 };
    const trni_any16 *h = (const trni_any16 *)x;
    const trni_any32 *w = (const trni_any32 *)x;
    if (!half) return (const float *)x;
    if (pairs)
        for (int k = 0; k < middle; k++) {
            block[k] = trni_float(w[k] << 16);
            block[k + middle] = trni_float(w[k] & 0xffff0000u);
        }
    else
        for (int k = 0; k < TRNI_CHAIN_BLOCK; k++) block[k] = trni_float((uint32_t)h[k] << 16);
    return block;
}

/* trni_bf16_from_number, in the upper half */
TRNI_INLINE uint32_t trni_chain_half(float x)
{
    const uint32_t u = trni_bits(x);
    return u + 0x7fffu + (u >> 16 & 1u);
}

TRNI_INLINE void trni_chain_store(void *r, bool pairs, const float *block)
{
    enum { middle = TRNI_CHAIN_BLOCK / 2 };
    trni_any16 *h = (trni_any16 *)r;
    trni_any32 *w = (trni_any32 *)r;
    if (pairs)
        for (int k = 0; k < middle; k++)
            w[k] = trni_chain_half(block[k]) >> 16 | (trni_chain_half(block[k + middle]) & 0xffff0000u);
    else
        for (int k = 0; k < TRNI_CHAIN_BLOCK; k++) h[k] = (uint16_t)(trni_chain_half(block[k]) >> 16);
}

TRNI_INLINE void trni_chain_block(const trni_chain *c, trni_alu_all_fn *all, bool pairs,
                                  float (*wide)[TRNI_CHAIN_BLOCK], void *r, const void *x, const void *y)
{
    float one[TRNI_CHAIN_BLOCK], other[TRNI_CHAIN_BLOCK];
    const float *p = trni_chain_load(x, c->from_half, pairs, one);
    for (int i = 0; i < c->steps; i++) {
        const trni_chain_step s = c->step[i];
        const float *q = s.tensor ? trni_chain_load(y, c->other_half, pairs, other) : wide[i];
        float *to = c->to_half || i + 1 < c->steps ? one : (float *)r;
        all(s.op, to, s.reverse ? q : p, s.reverse ? p : q, TRNI_CHAIN_BLOCK);
        p = to;
    }
    if (c->to_half) trni_chain_store(r, pairs, p);
}

TRNI_INLINE void trni_chain_blocks_body(const trni_chain *c, trni_alu_all_fn *all, void *r, const void *x,
                                        const void *y, size_t n)
{
    float wide[2][TRNI_CHAIN_BLOCK], last_x[TRNI_CHAIN_BLOCK], last_y[TRNI_CHAIN_BLOCK], last_r[TRNI_CHAIN_BLOCK];
    const size_t from = c->from_half ? 2 : 4, to = c->to_half ? 2 : 4, other = c->other_half ? 2 : 4;
    const bool pairs = c->from_half && c->to_half && (!y || c->other_half);
    const size_t most = pairs || n > TRNI_CHAIN_BLOCK ? (size_t)TRNI_CHAIN_BLOCK : n; /* pairs lie all over a block */
    for (int i = 0; i < c->steps; i++)
        for (size_t k = 0; k < most && !c->step[i].tensor; k++) wide[i][k] = c->value[i];
    for (size_t i = 0; i < n; i += TRNI_CHAIN_BLOCK) {
        const void *a = (const char *)x + i * from, *b = y ? (const char *)y + i * other : NULL;
        void *out = (char *)r + i * to;
        const size_t rest = n - i;
        if (rest < TRNI_CHAIN_BLOCK) { /* what does not fill a block is computed beside it */
            memset(last_x, 0, sizeof last_x);
            a = memcpy(last_x, (const char *)x + i * from, rest * from);
            memset(last_y, 0, sizeof last_y);
            if (b) memcpy(last_y, b, rest * other);
            b = last_y;
            out = last_r;
        }
        trni_chain_block(c, all, pairs, wide, out, a, b);
        if (rest < TRNI_CHAIN_BLOCK) memcpy((char *)r + i * to, last_r, rest * to);
    }
}
TRNI_DISPATCH_BESIDE_AVX512(trni_chain_blocks,
                            (const trni_chain *c, trni_alu_all_fn *all, void *r, const void *x, const void *y,
                             size_t n),
                            (c, all, r, x, y, n))

#if TRNI_X86 && TRNI_INTRINSICS
#include "../simd/alu_chain_avx512.h"
#endif

/* n elements of r from x, and from y where a step's operand is a tensor. */
TRNI_FN void trni_chain_run(const trni_chain *c, trn_isa isa, void *r, const void *x, const void *y, size_t n)
{
    size_t done = 0;
#if TRNI_X86 && TRNI_INTRINSICS
    if (isa == TRN_ISA_AVX512) done = trni_simd_chain_avx512(c, r, x, y, n);
#endif
    if (done == n) return;
    char *to = (char *)r + done * (c->to_half ? 2 : 4);
    const char *from = (const char *)x + done * (c->from_half ? 2 : 4);
    const char *other = y ? (const char *)y + done * (c->other_half ? 2 : 4) : NULL;
    trni_chain_blocks_for(isa)(c, trni_alu_all_for(isa), to, from, other, n - done);
}

#endif /* TRNI_ENGINE_ALU_CHAIN_H */
