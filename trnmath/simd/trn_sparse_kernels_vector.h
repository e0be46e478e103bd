/* trn_sparse_kernels_vector.h - the micro-kernels of sparse products, written once for AVX2 and AVX-512; read once per set.
 * SPDX-License-Identifier: MIT
 *
 * Included by trn_sparse_kernels_avx2.h and trn_sparse_kernels_avx512.h after trn_vector_<isa>.h and after
 *     TRNI_V_SUMS         vectors of sums that fit the registers
 *     TRNI_V_LOW(x), TRNI_V_HIGH(x)   of a vector of words, the low halves and the high ones, as floats
 * On its own it is empty. Same bits as the plain C body: every step is an explicit fused multiply-add or a lone addition.
 */
#include "../trn_cpu.h"

#if defined(TRNI_V)

#if TRNI_CLANG
#define TRNI_V_EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < n; i++)
#else
#define TRNI_V_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)
#endif

enum { TRNI_V_NAME(trni_sparse_vectors) = TRNI_SPARSE_WIDTH / TRNI_V_LANES };

/* One element: a value times its row of b. */
TRNI_V_INLINE void TRNI_V_NAME(trni_guest_sparse_step)(const bool halves, float value, size_t where,
                                                       const unsigned char *strip,
                                                       TRNI_V s[TRNI_V_NAME(trni_sparse_vectors)])
{
    enum { half = TRNI_V_NAME(trni_sparse_vectors) / 2 };
    const TRNI_V w = TRNI_V_OP(set1_ps)(value);
    if (halves) {
        const float *x = (const float *)(const void *)(strip + where);
        TRNI_V_EACH(j, half)
        {
            const TRNI_V pair = TRNI_V_OP(loadu_ps)(x + j * TRNI_V_LANES);
            s[j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_LOW(pair), s[j]);
            s[half + j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_HIGH(pair), s[half + j]);
        }
    } else {
        const float *x = (const float *)(const void *)(strip + 2 * where);
        TRNI_V_EACH(j, 2 * half) s[j] = TRNI_V_OP(fmadd_ps)(w, TRNI_V_OP(loadu_ps)(x + j * TRNI_V_LANES), s[j]);
    }
}

TRNI_V_INLINE void TRNI_V_NAME(trni_guest_sparse_add)(TRNI_V *sum, const TRNI_V *x, const TRNI_V *y)
{
    TRNI_V_EACH(j, TRNI_V_NAME(trni_sparse_vectors)) sum[j] = TRNI_V_OP(add_ps)(x[j], y[j]);
}

/* `rows` rows times `wide` (1, 2 or 4) chains at a time: their sums fill the registers, and enough of them are
 * independent to keep the multipliers busy. The sums of chains that are done wait in t, in the first-level cache. */
TRNI_V_INLINE void TRNI_V_NAME(trni_guest_sparse_rows)(const bool halves, const int rows, const int wide,
                                                       const int step, const float *value, const uint16_t *where,
                                                       const unsigned char *strip, const trni_sparse_order *order,
                                                       const float *in, ptrdiff_t in_step, float *out,
                                                       ptrdiff_t out_step)
{
    enum { vectors = TRNI_V_NAME(trni_sparse_vectors) };
    TRNI_V s[TRNI_SPARSE_GANG][4][vectors], t[TRNI_MAX_CHAINS][TRNI_SPARSE_GANG][vectors];
    const int groups = step / wide;
    for (int g = 0; g < groups; g++) {
        const int *length = order->length + g * wide;
        const float *v = value + g * wide;
        const uint16_t *at = where + g * wide;
        TRNI_V_EACH(r, rows) TRNI_V_EACH(q, wide) TRNI_V_EACH(j, vectors) s[r][q][j] = TRNI_V_OP(setzero_ps)();
        for (int i = length[wide - 1]; i > 0; i--, v += step, at += step)
            TRNI_V_EACH(q, wide)
            TRNI_V_EACH(r, rows) TRNI_V_NAME(trni_guest_sparse_step)(halves, v[r * TRNI_ARRAY_ROWS + q],
                                                                     at[r * TRNI_ARRAY_ROWS + q], strip, s[r][q]);
        TRNI_V_EACH(q, wide)
        for (int i = 0; i < length[q] - length[wide - 1]; i++) TRNI_V_EACH(r, rows)
        TRNI_V_NAME(trni_guest_sparse_step)
        (halves, v[r * TRNI_ARRAY_ROWS + q + i * step], at[r * TRNI_ARRAY_ROWS + q + i * step], strip, s[r][q]);
        TRNI_V_EACH(r, rows)
        {
            if (g > 0 && !order->pairwise) TRNI_V_NAME(trni_guest_sparse_add)(s[r][0], t[0][r], s[r][0]);
            if (wide > 1) TRNI_V_NAME(trni_guest_sparse_add)(s[r][0], s[r][0], s[r][1]);
            if (wide == 4 && order->pairwise) TRNI_V_NAME(trni_guest_sparse_add)(s[r][2], s[r][2], s[r][3]);
            if (wide == 4) TRNI_V_NAME(trni_guest_sparse_add)(s[r][0], s[r][0], s[r][2]);
            if (wide == 4 && !order->pairwise) TRNI_V_NAME(trni_guest_sparse_add)(s[r][0], s[r][0], s[r][3]);
        }
        TRNI_V_EACH(r, rows) TRNI_V_EACH(j, vectors) t[order->pairwise ? g : 0][r][j] = s[r][0][j];
    }
    for (int near = 1; near < groups && order->pairwise; near *= 2)
        for (int g = 0; g < groups; g += 2 * near)
            TRNI_V_EACH(r, rows) TRNI_V_NAME(trni_guest_sparse_add)(t[g][r], t[g][r], t[g + near][r]);
    TRNI_V_EACH(r, rows) TRNI_V_EACH(j, vectors)
    {
        const TRNI_V sum =
            in ? TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + r * in_step + j * TRNI_V_LANES), t[0][r][j]) : t[0][r][j];
        TRNI_V_OP(storeu_ps)(out + r * out_step + j * TRNI_V_LANES, sum);
    }
}

/* Four chains or more: four at a time. Fewer: one, and so many more rows. */
TRNI_V_INLINE void TRNI_V_NAME(trni_guest_sparse)(const bool halves, TRNI_SPARSE_PARAMS)
{
    enum {
        fit = TRNI_V_SUMS / TRNI_V_NAME(trni_sparse_vectors),
        wide = fit < 4 ? fit : 4,
        few = fit / wide,
        usual = 4
    };
    const int chains = order->chains, together = chains < wide ? fit : few;
    for (int r = 0; r < TRNI_SPARSE_GANG; r += together, out += together * out_step) {
        if (chains == usual)
            TRNI_V_NAME(trni_guest_sparse_rows)
            (halves, few, wide, usual, list->value[r], list->where[r], strip, order, in, in_step, out, out_step);
        else if (chains >= wide)
            TRNI_V_NAME(trni_guest_sparse_rows)
            (halves, few, wide, chains, list->value[r], list->where[r], strip, order, in, in_step, out, out_step);
        else
            TRNI_V_NAME(trni_guest_sparse_rows)
            (halves, fit, 1, chains, list->value[r], list->where[r], strip, order, in, in_step, out, out_step);
        if (in) in += together * in_step;
    }
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_guest_sparse_halves)(TRNI_SPARSE_PARAMS)
{
    TRNI_V_NAME(trni_guest_sparse)(true, TRNI_SPARSE_ARGS);
}
TRNI_V_KERNEL void TRNI_V_NAME(trni_guest_sparse_floats)(TRNI_SPARSE_PARAMS)
{
    TRNI_V_NAME(trni_guest_sparse)(false, TRNI_SPARSE_ARGS);
}

#undef TRNI_V_EACH
#undef TRNI_V_SUMS
#undef TRNI_V_LOW
#undef TRNI_V_HIGH
#include "trn_vector_end.h"
#endif
