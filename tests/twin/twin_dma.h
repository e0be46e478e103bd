/* twin_dma.h - the slow twin of the DMA engines: copies in row-major order, rows by index, axes by counting.
 * SPDX-License-Identifier: MIT
 *
 * Written from NKI's instruction pages and the design's semantics alone, on the grids of twin_vector.h: a grid is an
 * array's rows (axis 0) of elements, whatever its other axes are.
 */
#ifndef TWIN_DMA_H
#define TWIN_DMA_H

#include "twin/twin_vector.h"

/* Code i of an array in row-major order. */
static inline uint32_t *twin_flat(const twin_grid *t, int i) { return &t->code[i]; }

static inline void twin_carry_flat(const twin_grid *to, int i, const twin_grid *from, int j, bool accumulate,
                                   const twin_cast *how)
{
    const uint32_t code = *twin_flat(from, j);
    uint32_t x = twin_widen(&from->format, code);
    if (!accumulate && twin_same_format(&to->format, &from->format)) {
        *twin_flat(to, i) = code;
        return;
    }
    if (accumulate) x = twin_f32_sum(twin_widen(&to->format, *twin_flat(to, i)), x);
    *twin_flat(to, i) = twin_narrow(&to->format, x, how, (uint64_t)i);
}

static inline void twin_dma_copy(const twin_grid *dst, const twin_grid *src, bool accumulate, const twin_cast *how)
{
    for (int i = 0; i < dst->partitions * dst->elements; i++) twin_carry_flat(dst, i, src, i, accumulate, how);
}

static inline int64_t twin_index(const twin_grid *index, int i)
{
    const uint32_t code = *twin_flat(index, i);
    return index->format.is_signed && code >= 0x80000000u ? (int64_t)code - 0x100000000 : (int64_t)code;
}

/* dst row i = src row index[i]; what lies outside is left out. */
static inline void twin_dma_gather(const twin_grid *dst, const twin_grid *src, const twin_grid *index, bool accumulate,
                                   const twin_cast *how)
{
    for (int i = 0; i < dst->partitions; i++) {
        const int64_t row = twin_index(index, i);
        for (int f = 0; f < dst->elements && row >= 0 && row < src->partitions; f++)
            twin_carry_flat(dst, i * dst->elements + f, src, (int)row * dst->elements + f, accumulate, how);
    }
}

/* dst row index[i] = src row i, in ascending order of i. */
static inline void twin_dma_scatter(const twin_grid *dst, const twin_grid *src, const twin_grid *index, bool accumulate,
                                    const twin_cast *how)
{
    for (int i = 0; i < src->partitions; i++) {
        const int64_t row = twin_index(index, i);
        for (int f = 0; f < src->elements && row >= 0 && row < dst->partitions; f++)
            twin_carry_flat(dst, (int)row * src->elements + f, src, i * src->elements + f, accumulate, how);
    }
}

/* dst [.., i_k ..] = src with axes permuted: axis k of dst is axis axes[k] of src. shape: of src. */
static inline void twin_dma_transpose(uint32_t *dst, const uint32_t *src, int rank, const int *shape, const int *axes)
{
    int count[4] = { 0 }, total = 1;
    for (int k = 0; k < rank; k++) total *= shape[k];
    for (int i = 0; i < total; i++) {
        int rest = i, at = 0;
        for (int k = rank - 1; k >= 0; k--) {
            count[axes[k]] = rest % shape[axes[k]];
            rest /= shape[axes[k]];
        }
        for (int k = 0; k < rank; k++) at = at * shape[k] + count[k];
        dst[i] = src[at];
    }
}

/* The sources' sum in their order, every step rounded to binary32. */
static inline void twin_dma_compute(const twin_grid *dst, const twin_grid *src, int count, const twin_cast *how)
{
    for (int i = 0; i < dst->partitions * dst->elements; i++) {
        uint32_t sum = twin_widen(&src[0].format, *twin_flat(&src[0], i));
        for (int s = 1; s < count; s++) sum = twin_f32_sum(sum, twin_widen(&src[s].format, *twin_flat(&src[s], i)));
        *twin_flat(dst, i) = twin_narrow(&dst->format, twin_isnan(sum) ? TWIN_CANONICAL : sum, how, (uint64_t)i);
    }
}

#endif /* TWIN_DMA_H */
