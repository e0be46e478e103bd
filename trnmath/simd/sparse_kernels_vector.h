/* simd/sparse_kernels_vector.h - the micro-kernels of sparse products, written once for AVX2 and AVX-512.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 * Read once per instruction set: by simd/sparse_kernels_avx2.h and simd/sparse_kernels_avx512.h, after
 * trn_vector_<isa>.h
 * and after
 *     TRNI_V_SUMS         vectors of sums that fit the registers
 *     TRNI_V_LOW(x), TRNI_V_HIGH(x)   of a vector of words, the low halves and the high ones, as floats
 * On its own it is empty. Same bits as the plain C body: every step is a fused multiply-add or a lone addition.
 */
#include "../base/cpu.h"

#if defined(TRNI_V_SUMS)

#define TRNI_V_VECTORS (TRNI_SPARSE_WIDTH / TRNI_V_LANES) /* of a row of sums */
#define TRNI_V_STEP TRNI_V_NAME(trni_simd_sparse_step)
#define TRNI_V_ADD TRNI_V_NAME(trni_simd_sparse_add)
#define TRNI_V_CHAINS TRNI_V_NAME(trni_simd_sparse_chains)
#define TRNI_V_MERGE TRNI_V_NAME(trni_simd_sparse_merge)
#define TRNI_V_PART TRNI_V_NAME(trni_simd_sparse_rows)

/* One element: a value times its row of b. */
TRNI_V_INLINE void TRNI_V_STEP(const bool halves, float value, size_t where, const unsigned char *strip, TRNI_V *s)
{
    const TRNI_V w = TRNI_V_OP(set1_ps)(value);
    const float *x = (const float *)(const void *)(strip + (halves ? where : 2 * where));
    if (halves) {
        TRNI_EVERY(j, TRNI_V_VECTORS / 2)
        {
            const TRNI_V pair = TRNI_V_OP(loadu_ps)(x + j * TRNI_V_LANES);
            s[j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_LOW(pair), s[j]);
            s[TRNI_V_VECTORS / 2 + j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_HIGH(pair), s[TRNI_V_VECTORS / 2 + j]);
        }
    } else {
        TRNI_EVERY(j, TRNI_V_VECTORS) s[j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_OP(loadu_ps)(x + j * TRNI_V_LANES), s[j]);
    }
}

TRNI_V_INLINE void TRNI_V_ADD(TRNI_V *sum, const TRNI_V *x, const TRNI_V *y)
{
    TRNI_EVERY(j, TRNI_V_VECTORS) sum[j] = TRNI_V_OP(add_ps)(x[j], y[j]);
}

/* s[r][q]: `wide` chains of `rows` rows, of which the last may have an element less. */
TRNI_V_INLINE void TRNI_V_CHAINS(const bool halves, const int rows, const int wide, const int step, const float *v,
                                 const uint16_t *at, const unsigned char *strip, const int *length,
                                 TRNI_V s[TRNI_SPARSE_GANG][4][TRNI_V_VECTORS])
{
    enum { line = TRNI_ARRAY_ROWS };
    TRNI_EVERY(r, rows) TRNI_EVERY(q, wide) TRNI_EVERY(j, TRNI_V_VECTORS) s[r][q][j] = TRNI_V_OP(setzero_ps)();
    for (int i = length[wide - 1]; i > 0; i--, v += step, at += step) TRNI_EVERY(q, wide)
        {
            TRNI_EVERY(r, rows) TRNI_V_STEP(halves, v[r * line + q], at[r * line + q], strip, s[r][q]);
        }
    TRNI_EVERY(q, wide)
    {
        for (int i = 0; i < (length[q] - length[wide - 1]) * step; i += step)
            TRNI_EVERY(r, rows) TRNI_V_STEP(halves, v[r * line + q + i], at[r * line + q + i], strip, s[r][q]);
    }
}

/* s[0] = up to four chains, merged; ascending, they follow `before`. */
TRNI_V_INLINE void TRNI_V_MERGE(const int wide, const bool pairwise, const TRNI_V *before, TRNI_V s[4][TRNI_V_VECTORS])
{
    if (before) TRNI_V_ADD(s[0], before, s[0]);
    if (wide > 1) TRNI_V_ADD(s[0], s[0], s[1]);
    if (wide == 4 && pairwise) TRNI_V_ADD(s[2], s[2], s[3]);
    if (wide == 4) TRNI_V_ADD(s[0], s[0], s[2]);
    if (wide == 4 && !pairwise) TRNI_V_ADD(s[0], s[0], s[3]);
}

/* `rows` rows times `wide` (1, 2 or 4) chains at a time: their sums fill the registers, and enough of them are
 * independent to keep the multipliers busy. What is done waits in t, in the first-level cache. There is at least one
 * chain: the compiler need not fear uninitialised sums. */
TRNI_V_INLINE void TRNI_V_PART(const bool halves, const int rows, const int wide, const int step, const float *value,
                               const uint16_t *where, const unsigned char *strip, const trni_sparse_order *order,
                               const float *in, ptrdiff_t in_step, float *out, ptrdiff_t out_step)
{
    TRNI_V s[TRNI_SPARSE_GANG][4][TRNI_V_VECTORS], t[TRNI_MAX_CHAINS][TRNI_SPARSE_GANG][TRNI_V_VECTORS];
    const bool pairwise = order->pairwise;
    int c = 0;
    do {
        TRNI_V_CHAINS(halves, rows, wide, step, value + c, where + c, strip, order->length + c, s);
        TRNI_EVERY(r, rows)
        {
            TRNI_V_MERGE(wide, pairwise, c > 0 && !pairwise ? t[0][r] : NULL, s[r]);
            TRNI_EVERY(j, TRNI_V_VECTORS) t[pairwise ? c / wide : 0][r][j] = s[r][0][j];
        }
        c += wide;
    } while (c < step);
    for (int near = 1; near < step / wide && pairwise; near *= 2)
        for (int g = 0; g < step / wide; g += 2 * near)
            TRNI_EVERY(r, rows) TRNI_V_ADD(t[g][r], t[g][r], t[g + near][r]);
    TRNI_EVERY(r, rows) TRNI_EVERY(j, TRNI_V_VECTORS)
    {
        TRNI_V sum = t[0][r][j];
        if (in) sum = TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + r * in_step + j * TRNI_V_LANES), sum);
        TRNI_V_OP(storeu_ps)(out + r * out_step + j * TRNI_V_LANES, sum);
    }
}

/* Four chains or more: four at a time. Fewer: one, and so many more rows. The usual count is a constant of its loop. */
TRNI_V_INLINE void TRNI_V_NAME(trni_simd_sparse)(const bool halves, TRNI_SPARSE_PARAMS)
{
    enum { fit = TRNI_V_SUMS / TRNI_V_VECTORS, wide = fit < 4 ? fit : 4, few = fit / wide, usual = 4 };
    const int chains = order->chains, together = chains < wide ? fit : few;
    for (int r = 0; r < TRNI_SPARSE_GANG; r += together, out += together * out_step) {
        const float *v = list->value[r];
        const uint16_t *at = list->where[r];
        if (chains == usual)
            TRNI_V_PART(halves, few, wide, usual, v, at, strip, order, in, in_step, out, out_step);
        else if (chains >= wide)
            TRNI_V_PART(halves, few, wide, chains, v, at, strip, order, in, in_step, out, out_step);
        else
            TRNI_V_PART(halves, fit, 1, chains, v, at, strip, order, in, in_step, out, out_step);
        if (in) in += together * in_step;
    }
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_sparse_halves)(TRNI_SPARSE_PARAMS)
{
    TRNI_V_NAME(trni_simd_sparse)(true, TRNI_SPARSE_ARGS);
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_sparse_floats)(TRNI_SPARSE_PARAMS)
{
    TRNI_V_NAME(trni_simd_sparse)(false, TRNI_SPARSE_ARGS);
}

#undef TRNI_V_VECTORS
#undef TRNI_V_STEP
#undef TRNI_V_ADD
#undef TRNI_V_CHAINS
#undef TRNI_V_MERGE
#undef TRNI_V_PART
#undef TRNI_V_SUMS
#undef TRNI_V_LOW
#undef TRNI_V_HIGH
#include "vector_end.h"
#endif
