/* twin_search.h - the slow twin of the Vector engine's statistics, searches and moves.
 * SPDX-License-Identifier: MIT
 *
 * Written from NKI's instruction pages, the design's semantics, and where these leave a choice from the words (not the
 * code) that trnmath's headers say it in. Grids and operations are twin_vector.h's.
 */
#ifndef TWIN_SEARCH_H
#define TWIN_SEARCH_H

#include "twin/twin_mx.h"
#include "twin/twin_vector.h"

/* ---- statistics ---- */

static inline uint32_t twin_count(int n) { return twin_bits((float)n); }

static inline void twin_bn_stats(const twin_grid *dst, const twin_grid *data, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int parity = 0; parity < 2; parity++) {
            int count = 0;
            uint32_t sum = 0, squares = 0, mean = 0;
            for (int f = parity; f < data->elements; f += 2, count++) sum = twin_f32_sum(sum, twin_load(data, p, f));
            if (count) mean = twin_f32_quotient(sum, twin_count(count));
            for (int f = parity; f < data->elements; f += 2) {
                const uint32_t d = twin_f32_difference(twin_load(data, p, f), mean);
                squares = twin_f32_sum(squares, twin_f32_product(d, d));
            }
            twin_store(dst, p, 3 * parity, twin_count(count), how);
            twin_store(dst, p, 3 * parity + 1, mean, how);
            twin_store(dst, p, 3 * parity + 2, squares, how);
        }
}

static inline void twin_bn_aggr(const twin_grid *dst, const twin_grid *data, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++) {
        uint32_t c = 0, m = 0, s = 0;
        for (int f = 0; f < data->elements; f += 3) {
            const uint32_t c1 = twin_load(data, p, f), m1 = twin_load(data, p, f + 1), s1 = twin_load(data, p, f + 2);
            if (twin_compare(TWIN_EQUAL, c1, 0)) continue;
            if (twin_compare(TWIN_EQUAL, c, 0)) { /* nothing is counted yet, or counts of both signs cancelled */
                c = c1, m = m1, s = s1;
                continue;
            }
            const uint32_t total = twin_f32_sum(c, c1), delta = twin_f32_difference(m1, m),
                           share = twin_f32_quotient(c1, total);
            const uint32_t far = twin_f32_product(twin_f32_product(delta, delta), twin_f32_product(c, share));
            s = twin_f32_sum(twin_f32_sum(s, s1), far);
            m = twin_f32_sum(m, twin_f32_product(delta, share));
            c = total;
        }
        const bool nothing = twin_compare(TWIN_EQUAL, c, 0);
        twin_store(dst, p, 0, nothing ? 0 : twin_isnan(m) ? TWIN_CANONICAL : m, how);
        twin_store(dst, p, 1, nothing ? 0 : twin_f32_quotient(s, c), how);
    }
}

/* ---- searches ---- */

/* Is a before b among the largest? Numbers descend, +0 before -0, NaN last. */
static inline bool twin_above(uint32_t a, uint32_t b)
{
    if (twin_isnan(a) || twin_isnan(b)) return !twin_isnan(a);
    return a != b && twin_extreme(a, b, 1) == a;
}

static inline void twin_max8(const twin_grid *dst, const twin_grid *src, const twin_cast *how)
{
    uint32_t *x = twin_words(src->elements);
    for (int p = 0; p < dst->partitions; p++) {
        for (int f = 0; f < src->elements; f++) {
            const uint32_t value = twin_load(src, p, f);
            x[f] = twin_isnan(value) ? TWIN_CANONICAL : value;
        }
        for (int i = 0; i < 8; i++) {
            int best = i;
            for (int f = i + 1; f < src->elements; f++)
                if (twin_above(x[f], x[best])) best = f;
            const uint32_t value = x[best];
            x[best] = x[i];
            x[i] = value;
            twin_store(dst, p, i, value, how);
        }
    }
    free(x);
}

/* The first element equal to the value that nobody has taken; -1: none. */
static inline int twin_seek(const twin_grid *data, int p, uint32_t value, uint32_t *taken)
{
    for (int f = 0; f < data->elements; f++)
        if (!taken[f] && twin_compare(TWIN_EQUAL, twin_load(data, p, f), value)) {
            taken[f] = 1;
            return f;
        }
    return -1;
}

static inline void twin_find_index8(const twin_grid *dst, const twin_grid *data, const twin_grid *vals)
{
    for (int p = 0; p < dst->partitions; p++) {
        uint32_t *taken = twin_words(data->elements);
        for (int i = 0; i < 8; i++)
            *twin_at(dst, p, i) =
                (uint32_t)twin_seek(data, p, twin_load(vals, p, i), taken) & twin_ones(dst->format.bits);
        free(taken);
    }
}

/* From the last value to the first. index without codes: not asked for. */
static inline void twin_match_replace8(const twin_grid *dst, const twin_grid *data, const twin_grid *vals,
                                       uint32_t value, const twin_grid *index, const twin_cast *how)
{
    for (int p = 0; p < dst->partitions; p++) {
        uint32_t *taken = twin_words(data->elements);
        for (int i = 7; i >= 0; i--) {
            const int at = twin_seek(data, p, twin_load(vals, p, i), taken);
            if (index->code) *twin_at(index, p, i) = (uint32_t)at & twin_ones(index->format.bits);
        }
        for (int f = 0; f < data->elements; f++) {
            if (taken[f])
                twin_store(dst, p, f, value, how);
            else
                twin_carry(dst, p, f, data, p, f, how);
        }
        free(taken);
    }
}

/* ---- moves ---- */

/* Within each 32 partitions: partition i takes partition mask[i]; 255 leaves it. */
static inline void twin_stream_shuffle(const twin_grid *dst, const twin_grid *src, const int mask[32])
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements && mask[p % 32] != 255; f++)
            *twin_at(dst, p, f) = *twin_at(src, p / 32 * 32 + mask[p % 32], f);
}

static inline void twin_vector_transpose(const twin_grid *dst, const twin_grid *data)
{
    for (int p = 0; p < dst->partitions; p++)
        for (int f = 0; f < dst->elements; f++) *twin_at(dst, p, f) = *twin_at(data, f, p);
}

/* A group is 8 partitions of 4 elements; element (p, f) draws random field p F + f. */
static inline void twin_quantize_mx(const twin_grid *dst, const twin_grid *scale, const twin_grid *src,
                                    const twin_mx_element *e, twin_mx_rule rule, const twin_cast *how)
{
    for (int p0 = 0; p0 < src->partitions; p0 += 8)
        for (int f0 = 0; f0 < src->elements; f0 += 4) {
            twin_number block[TWIN_MX_BLOCK];
            for (int i = 0; i < TWIN_MX_BLOCK; i++)
                block[i] = twin_decode(&src->format, *twin_at(src, p0 + i / 4, f0 + i % 4));
            const uint32_t x = twin_mx_scale(e, rule, block);
            *twin_at(scale, p0 / 8, f0 / 4) = x;
            for (int i = 0; i < TWIN_MX_BLOCK; i++) {
                const int p = p0 + i / 4, f = f0 + i % 4;
                twin_way way = twin_plain(how->mode);
                way.random_bits = how->bits;
                if (how->mode == TWIN_STOCHASTIC)
                    way.random = twin_random_bits(how->seed, how->stream,
                                                  (uint64_t)p * (uint64_t)src->elements + (uint64_t)f, how->bits);
                *twin_at(dst, p, f) = twin_mx_encode(e, x, &block[i], way);
            }
        }
}

#endif /* TWIN_SEARCH_H */
