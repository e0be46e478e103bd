/* twin_gpsimd.h - the slow twin of GpSimd: whole numbers of any size, patterns by nested loops, gathers by hand.
 * SPDX-License-Identifier: MIT
 *
 * Written from NKI's instruction pages and the design's semantics alone, on the grids of twin_vector.h.
 */
#ifndef TWIN_GPSIMD_H
#define TWIN_GPSIMD_H

#include "twin/twin_vector.h"

/* ---- 32-bit integers, exactly ---- */

static inline int64_t twin_integer(const twin_grid *t, int p, int f)
{
    const uint32_t code = *twin_at(t, p, f);
    return t->format.is_signed && code >= 0x80000000u ? (int64_t)code - 0x100000000 : (int64_t)code;
}

static inline int64_t twin_magnitude(int64_t x) { return x < 0 ? -x : x; }

/* The low 32 bits of the product, by halves. */
static inline uint32_t twin_low_product(uint32_t a, uint32_t b)
{
    uint32_t high, low;
    twin_multiply32(a, b, &high, &low);
    return low;
}

/* Sums, differences and products keep their low 32 bits; the rest is about the numbers themselves. */
static inline uint32_t twin_whole(twin_op op, int64_t x, int64_t y)
{
    const uint32_t a = (uint32_t)x, b = (uint32_t)y;
    switch (op) {
    case TWIN_ADD: return (uint32_t)(x + y);
    case TWIN_SUBTRACT: return (uint32_t)(x - y);
    case TWIN_MULTIPLY: return twin_low_product(a, b);
    case TWIN_MAXIMUM: return x > y ? a : b;
    case TWIN_MINIMUM: return x < y ? a : b;
    case TWIN_EQUAL: return x == y;
    case TWIN_NOT_EQUAL: return x != y;
    case TWIN_GREATER_EQUAL: return x >= y;
    case TWIN_GREATER: return x > y;
    case TWIN_LESS_EQUAL: return x <= y;
    case TWIN_LESS: return x < y;
    case TWIN_LOGICAL_AND: return x != 0 && y != 0;
    case TWIN_LOGICAL_OR: return x != 0 || y != 0;
    case TWIN_LOGICAL_XOR: return (x != 0) != (y != 0);
    case TWIN_ABS_MAX: return twin_magnitude(x) > twin_magnitude(y) ? a : b;
    case TWIN_ABS_MIN: return twin_magnitude(x) < twin_magnitude(y) ? a : b;
    default: twin_stop("no such operator on whole numbers"); return 0;
    }
}

static inline void twin_whole_tensor_tensor(const twin_grid *dst, const twin_grid *a, const twin_grid *b, twin_op op)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++)
            *twin_at(dst, p, f) = twin_whole(op, twin_integer(a, p, f), twin_integer(b, p, f));
}

/* ---- patterns ---- */

typedef struct twin_pattern {
    int32_t step[4], num[4]; /* w, z, y, x; unused ones are 1 long */
    int32_t offset, channel;
} twin_pattern;

/* One partition of the pattern, by the page's loops, in 32-bit arithmetic. */
static inline void twin_pattern_row(const twin_pattern *a, int p, int32_t *value)
{
    for (int w = 0; w < a->num[0]; w++)
        for (int z = 0; z < a->num[1]; z++)
            for (int y = 0; y < a->num[2]; y++)
                for (int x = 0; x < a->num[3]; x++) {
                    const int64_t sum = a->offset + (int64_t)p * a->channel + (int64_t)w * a->step[0] +
                                        (int64_t)z * a->step[1] + (int64_t)y * a->step[2] + (int64_t)x * a->step[3];
                    const int64_t low = sum & 0xffffffff;
                    *value++ = (int32_t)(low >= 0x80000000 ? low - 0x100000000 : low);
                }
}

/* A whole number on its way into any format: exactly into 32 bits, through binary32 elsewhere. */
static inline void twin_store_whole(const twin_grid *t, int p, int f, int32_t value, const twin_cast *how)
{
    if (t->format.sort == TWIN_SORT_INTEGER && t->format.bits == 32) {
        *twin_at(t, p, f) = !t->format.is_signed && value < 0 ? 0 : (uint32_t)value;
        return;
    }
    twin_store(t, p, f, twin_widen(&twin_formats[TWIN_I32], (uint32_t)value), how);
}

static inline void twin_iota(const twin_grid *dst, const twin_pattern *pattern, const twin_cast *how)
{
    int32_t *value = (int32_t *)twin_words(dst->elements);
    for (int p = 0; p < dst->partitions; p++) {
        twin_pattern_row(pattern, p, value);
        for (int f = 0; f < dst->elements; f++) twin_store_whole(dst, p, f, value[f], how);
    }
    free(value);
}

static inline bool twin_compare_whole(twin_op op, int64_t x, int64_t y) { return twin_whole(op, x, y) != 0; }

static inline void twin_affine_select(const twin_grid *dst, const twin_pattern *pattern, const twin_grid *on_true,
                                      uint32_t on_false, twin_op op, const twin_cast *how)
{
    int32_t *value = (int32_t *)twin_words(dst->elements);
    for (int p = 0; p < dst->partitions; p++) {
        twin_pattern_row(pattern, p, value);
        for (int f = 0; f < dst->elements; f++) {
            if (twin_compare_whole(op, value[f], 0))
                twin_carry(dst, p, f, on_true, p, f, how);
            else
                twin_store(dst, p, f, on_false, how);
        }
    }
    free(value);
}

/* ---- gathers ---- */

/* Each processor reads the indices of its 16 partitions column after column. */
static inline void twin_local_gather(const twin_grid *dst, const twin_grid *src, const twin_grid *index, int run,
                                     int valid)
{
    for (int first = 0; first < src->partitions; first += 16)
        for (int i = 0; i < valid; i++) {
            const int from = (int)*twin_at(index, first + i % 16, i / 16);
            for (int p = first; p < first + 16; p++)
                for (int j = 0; j < run; j++) *twin_at(dst, p, i * run + j) = *twin_at(src, p, from + j);
        }
}

static inline void twin_n_gather(const twin_grid *dst, const twin_grid *data, const twin_grid *indices)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) *twin_at(dst, p, f) = *twin_at(data, p, (int)*twin_at(indices, p, f));
}

/* ---- over partitions ---- */

typedef enum twin_over {
    TWIN_OVER_ADD,
    TWIN_OVER_AVERAGE,
    TWIN_OVER_MAXIMUM,
    TWIN_OVER_OR,
    TWIN_OVER_AND,
    TWIN_OVERS
} twin_over;

static inline void twin_partition_reduce(const twin_grid *dst, const twin_grid *data, twin_over op,
                                         const twin_cast *how)
{
    static const twin_op step[TWIN_OVERS] = { TWIN_ADD, TWIN_ADD, TWIN_MAXIMUM, TWIN_OR, TWIN_AND };
    const bool bits = op >= TWIN_OVER_OR;
    for (int f = 0; f < dst->elements; f++) {
        uint32_t sum = op == TWIN_OVER_AND ? 0xffffffffu : bits ? 0 : twin_identity(step[op]);
        for (int p = 0; p < data->partitions; p++)
            sum = bits ? twin_bitvec(step[op], sum, *twin_at(data, p, f), data->format.bits)
                       : twin_alu(step[op], sum, twin_load(data, p, f));
        if (op == TWIN_OVER_AVERAGE) sum = twin_f32_quotient(sum, twin_bits((float)data->partitions));
        if (bits)
            *twin_at(dst, 0, f) = sum & twin_ones(dst->format.bits);
        else
            twin_store(dst, 0, f, sum, how);
    }
}

/* ---- positions ---- */

/* Partitions 0, 16, 32 ... only. */
static inline void twin_nonzero_with_count(const twin_grid *dst, const twin_grid *src, int32_t offset, int32_t padding)
{
    for (int p = 0; p < src->partitions; p += 16) {
        int found = 0;
        for (int f = 0; f < src->elements; f++) {
            const uint32_t code = *twin_at(src, p, f);
            const bool zero = code == 0 || (twin_is_f32(&src->format) && code == 0x80000000u);
            if (!zero) *twin_at(dst, p, found++) = (uint32_t)f + (uint32_t)offset;
        }
        for (int f = found; f < src->elements; f++) *twin_at(dst, p, f) = (uint32_t)padding;
        *twin_at(dst, p, src->elements) = (uint32_t)found;
    }
}

/* [1, n] to starts and ends, 2 n; ends are exclusive. */
static inline void twin_sequence_bounds(const twin_grid *dst, const twin_grid *id, const twin_cast *how)
{
    const int n = id->elements;
    for (int i = 0; i < n; i++) {
        int start = i, end = i + 1;
        const uint32_t own = twin_load(id, 0, i);
        while (start > 0 && twin_compare(TWIN_EQUAL, twin_load(id, 0, start - 1), own)) start--;
        while (end < n && twin_compare(TWIN_EQUAL, twin_load(id, 0, end), own)) end++;
        if (twin_compare(TWIN_EQUAL, own, 0)) start = n, end = -1;
        twin_store_whole(dst, 0, i, start, how);
        twin_store_whole(dst, 0, n + i, end, how);
    }
}

/* ---- the K largest ---- */

/* Element i of the snake of 16 partitions that begins at p. */
static inline uint32_t *twin_snake(const twin_grid *t, int p, int i) { return twin_at(t, p + i % 16, i / 16); }

/* BF16 codes: does a stand before b? Larger values first, +0 before -0, NaN last, then the lower place. */
static inline bool twin_ahead(uint32_t a, int place_a, uint32_t b, int place_b)
{
    const uint32_t x = a << 16, y = b << 16;
    if (twin_isnan(x) != twin_isnan(y)) return twin_isnan(y);
    if (!twin_isnan(x) && x != y) return twin_extreme(x, y, 1) == x;
    return place_a < place_b;
}

/* The first K of the snake's first n, in reverse, to the first K places of the snakes of values and places. */
static inline void twin_topk(const twin_grid *values, const twin_grid *places, const twin_grid *src, int n, int k)
{
    for (int p = 0; p < src->partitions; p += 16) {
        uint32_t *taken = twin_words(n);
        for (int i = 0; i < k; i++) {
            int best = -1;
            for (int j = 0; j < n; j++)
                if (!taken[j] && (best < 0 || twin_ahead(*twin_snake(src, p, j), j, *twin_snake(src, p, best), best)))
                    best = j;
            taken[best] = 1;
            *twin_snake(values, p, k - 1 - i) = *twin_snake(src, p, best);
            *twin_snake(places, p, k - 1 - i) = (uint32_t)best;
        }
        free(taken);
    }
}

#endif /* TWIN_GPSIMD_H */
