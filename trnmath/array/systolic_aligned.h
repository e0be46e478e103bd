/* array/systolic_aligned.h - the published accumulators of other makers' matrix units: PSUM after a tile.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: in integers, what the four accumulators of trn_numerics that know no chains make of PSUM and a tile's products:
 *     aligned, aligned_late, aligned_halves, pairwise.
 * DOES NOT: emulate Trainium. It is here so that the machinery around it (operands, tiles, order, PSUM, casts) can be
 * held
 *     against results of hardware, and because a user may want to know what a block adder would do to a model.
 *
 * All names are the library's own (trni_): programs set the fields of trn_numerics.
 *
 * A tile's products are taken in ascending order, aligned_bytes of each operand at a time: a block of L products. The
 * last block of a tile may be shorter. x = s * 2^e with 1 <= |s| < 2, or e = the smallest normal exponent of x's own
 * format
 * when x is subnormal; a product has e = e_x + e_w (+ the exponent of an MX scale) and 1 <= |s| < 4. Zeros do not take
 * part. F = aligned_bits.
 *
 *     aligned         E = the largest e of PSUM and the block, at least -aligned_floor
 *                     PSUM = round( sum of all, each cut to a multiple of 2^(E - F) toward zero )
 *     aligned_late    E1 = the largest e of the block alone, S = sum of its products, each cut to 2^(E1 - F) toward
 *     zero
 *                     E = the larger of E1 and PSUM's e; PSUM = 0 counts as e = -aligned_floor
 *                     PSUM = round( S rounded down to 2^(E - F - 7)  +  PSUM rounded down to 2^(E - F) )
 *                     a product of 2^128 or more is infinite
 *     aligned_halves  as aligned_late, but S = the even products' S0 + the odd ones' S1, each rounded down to 2^(E1 -
 *     F)
 *                     where E1 is the larger of their exponents; PSUM below 2^(E - F - 1) is left out
 *     pairwise        PSUM + ((p0 + p1) + (p2 + p3)) and so on, every product and sum rounded to binary32, nearest even
 *
 * round: to aligned_result_bits significant bits, by aligned_rounding, gradual underflow; from 2^128 on infinity, in
 * either rounding. A sum that is exactly zero is +0. flush_products and flush_sums apply to each product and to each
 * rounded
 * sum. Products that are exactly zero are +0, and so is PSUM if flush_inputs flushes it at the beginning of a tile.
 *
 * KNOWN FROM: `measured` - M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, PeerJ CS 7:e330 (2021); F. Khattak, M.
 * Mikaitis,
 *     doi 10.1145/3830409 (2025) with their data and models (github.com/north-numerical-computing/MATLAB-tensor-core);
 *     P. Xie et al., arXiv 2511.10909 (2025) with MMA-Sim. tests/unit/test_tensor_core.c holds this file against the
 *     first
 *     and the second's device results, and against vectors that MMA-Sim's algorithms give. The signs of zeros and the
 *     floor
 *     of 126 are MMA-Sim's alone.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_ALIGNED_H
#define TRNI_ARRAY_SYSTOLIC_ALIGNED_H

#include <math.h>

#include "../machine/numerics.h"

/* Exponents e are those of the smallest normal numbers, the operands' biases considered. */
typedef struct trni_formats {
    int bytes; /* of an element of the wider operand */
    int low_x, low_w;
} trni_formats;

typedef struct trni_pairs {
    const float *x, *w;   /* operands, decoded */
    const int16_t *scale; /* MX: one exponent for each `group` of them; null: none */
    int group, count;
    trni_formats of;
} trni_pairs;

/* (-1)^negative * magnitude * 2^(exponent - 46), below 2^(exponent + 2): a product of 24-bit significands, or PSUM. */
typedef struct trni_term {
    uint64_t magnitude;
    int exponent;
    bool negative;
} trni_term;

enum { TRNI_TERM_POINT = 46, TRNI_NO_EXPONENT = -4096, TRNI_MAX_BLOCK = 64 };

/* x as magnitude * 2^(exponent - 23). */
TRNI_COLD trni_term trni_term_of(float x, int low)
{
    const uint32_t u = trni_bits(x), field = u >> 23 & 0xffu;
    trni_term t = { (u & 0x7fffffu) | (field ? 1u << 23 : 0u), field ? (int)field - 127 : -126, u >> 31 != 0 };
    if (t.exponent < low) { /* subnormal in its own format: the bits shifted out are zeros */
        t.magnitude = low - t.exponent < 24 ? t.magnitude >> (low - t.exponent) : 0;
        t.exponent = low;
    }
    return t;
}

TRNI_COLD trni_term trni_term_product(const trni_pairs *p, int i)
{
    const trni_term x = trni_term_of(p->x[i], p->of.low_x), w = trni_term_of(p->w[i], p->of.low_w);
    const trni_term t = { x.magnitude * w.magnitude, x.exponent + w.exponent + (p->scale ? p->scale[i / p->group] : 0),
                          x.negative != w.negative };
    return t;
}

/* PSUM; the low half of its significand is empty. */
TRNI_FN trni_term trni_term_psum(float psum)
{
    trni_term t = trni_term_of(psum, -126);
    t.magnitude <<= 23;
    return t;
}

/* The exponent of the highest bit. */
TRNI_FN int trni_term_top(const trni_term *t)
{
    return 63 - __builtin_clzll(t->magnitude) + t->exponent - TRNI_TERM_POINT;
}

/* floor(x / 2^places), or x * 2^-places: no host shifts negative numbers alike. */
TRNI_FN int64_t trni_shift_down(int64_t x, int places)
{
    if (places <= 0) return x * ((int64_t)1 << -places);
    if (places > 62) places = 62;
    const uint64_t cut = (uint64_t)(x < 0 ? -(x + 1) : x) >> places;
    return x < 0 ? -(int64_t)cut - 1 : (int64_t)cut;
}

/* t in units of 2^unit, cut toward zero. A term that takes part has unit >= exponent - 40: places are at least 6. */
TRNI_FN int64_t trni_term_cut(const trni_term *t, int unit)
{
    if (t->magnitude == 0) return 0;
    const int places = unit - t->exponent + TRNI_TERM_POINT;
    const int64_t cut = places < 64 ? (int64_t)(t->magnitude >> places) : 0;
    return t->negative ? -cut : cut;
}

/* sum * 2^unit as binary32, rounded by the aligned_ fields. */
TRNI_COLD float trni_aligned_round(int64_t sum, int unit, const trn_numerics *n)
{
    if (sum == 0) return 0.0f;
    uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const int top = 63 - __builtin_clzll(magnitude) + unit,
              last = (top > -126 ? top : -126) - (n->aligned_result_bits - 1);
    if (last > unit) {
        const int places = last - unit < 63 ? last - unit : 63;
        const uint64_t cut = magnitude & (((uint64_t)1 << places) - 1), half = (uint64_t)1 << (places - 1);
        magnitude >>= places;
        if (n->aligned_rounding == TRN_NEAREST_EVEN && (cut > half || (cut == half && (magnitude & 1u)))) magnitude++;
        unit = last;
    }
    double value = ldexp((double)magnitude, unit); /* no more than 24 bits by now */
    if (value >= 0x1p128) value = (double)trni_float(TRNI_F32_INF);
    if (n->flush_sums && value < 0x1p-126) value = 0;
    return (float)(sum < 0 ? -value : value);
}

/* ---- blocks ---- */

/* Some of a block's products, cut alike and added: sum * 2^(exponent - aligned_bits). */
typedef struct trni_sum {
    int64_t sum;
    int exponent;
} trni_sum;

/* Products first, first + step, … < count; `floor` is the smallest exponent to align to, `also` takes part too if
 * given. */
TRNI_COLD trni_sum trni_sum_aligned(const trni_term *product, int first, int step, int count, int floor,
                                    const trni_term *also, int bits)
{
    trni_sum s = { 0, floor };
    if (also && also->magnitude && also->exponent > s.exponent) s.exponent = also->exponent;
    for (int i = first; i < count; i += step)
        if (product[i].magnitude && product[i].exponent > s.exponent) s.exponent = product[i].exponent;
    const int unit = s.exponent - bits;
    if (also) s.sum = trni_term_cut(also, unit);
    for (int i = first; i < count; i += step) s.sum += trni_term_cut(&product[i], unit);
    return s;
}

TRNI_COLD float trni_block_aligned(float psum, const trni_term *product, int count, const trn_numerics *n)
{
    const trni_term before = trni_term_psum(psum);
    const trni_sum s = trni_sum_aligned(product, 0, 1, count, -n->aligned_floor, &before, n->aligned_bits);
    return trni_aligned_round(s.sum, s.exponent - n->aligned_bits, n);
}

/* Even and odd products meet. */
TRNI_COLD trni_sum trni_sum_halves(const trni_term *product, int count, int bits)
{
    const trni_sum even = trni_sum_aligned(product, 0, 2, count, TRNI_NO_EXPONENT, NULL, bits);
    const trni_sum odd = trni_sum_aligned(product, 1, 2, count, TRNI_NO_EXPONENT, NULL, bits);
    trni_sum s = { 0, even.exponent > odd.exponent ? even.exponent : odd.exponent };
    s.sum = trni_shift_down(even.sum, s.exponent - even.exponent) + trni_shift_down(odd.sum, s.exponent - odd.exponent);
    return s;
}

/* +inf, -inf or both (a NaN) when products reach 2^128, else 0. */
TRNI_COLD float trni_products_overflow(const trni_term *product, int count)
{
    bool over[2] = { false, false };
    for (int i = 0; i < count; i++)
        if (product[i].magnitude && trni_term_top(&product[i]) >= 128) over[product[i].negative] = true;
    if (over[0] && over[1]) return trni_float(TRNI_F32_NAN);
    return over[0] ? trni_float(TRNI_F32_INF) : over[1] ? -trni_float(TRNI_F32_INF) : 0.0f;
}

TRNI_COLD float trni_block_late(float psum, const trni_term *product, int count, const trn_numerics *n)
{
    enum { further = 7 }; /* places that the products' sum keeps below PSUM's last */
    const bool halves = n->accumulator == TRN_ACCUMULATOR_ALIGNED_HALVES;
    const float over = trni_products_overflow(product, count);
    if (over != 0) return over;
    const trni_sum s = halves ? trni_sum_halves(product, count, n->aligned_bits)
                              : trni_sum_aligned(product, 0, 1, count, TRNI_NO_EXPONENT, NULL, n->aligned_bits);
    const trni_term before = trni_term_psum(psum);
    const int own = before.magnitude ? before.exponent : -n->aligned_floor,
              largest = own > s.exponent ? own : s.exponent;
    const int unit = largest - n->aligned_bits;
    int64_t kept = 0;
    if (before.magnitude && !(halves && own < largest - n->aligned_bits - 1)) {
        const int64_t exact = trni_term_cut(&before, own - 23); /* PSUM has 23 fraction bits */
        kept = trni_shift_down(exact, unit - (own - 23));
    }
    return trni_aligned_round(trni_shift_down(s.sum, largest - s.exponent - further) + kept * (1 << further),
                              unit - further, n);
}

TRNI_FN float trni_flushed32(float x, bool flush) { return flush && x > -0x1p-126f && x < 0x1p-126f ? x * 0.0f : x; }

TRNI_COLD float trni_block_pairwise(float psum, const trni_pairs *p, int first, int block, const trn_numerics *n)
{
    float s[TRNI_MAX_BLOCK];
    for (int i = 0; i < block; i++) { /* past the end of the tile: zeros */
        const bool there = first + i < p->count;
        const double product = there ? (double)p->x[first + i] * (double)p->w[first + i] : 0.0;
        const double exact = product == 0 ? 0.0 : product; /* +0 */
        const float rounded = (float)(p->scale && there ? ldexp(exact, p->scale[(first + i) / p->group]) : exact);
        s[i] = trni_flushed32(rounded, n->flush_products);
    }
    for (int half = block / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++) s[i] = trni_flushed32(s[2 * i] + s[2 * i + 1], n->flush_sums);
    return trni_flushed32(psum + s[0], n->flush_sums);
}

/* ---- a tile ---- */

/* Is PSUM or an operand of the block infinite or NaN? */
TRNI_COLD bool trni_block_special(float psum, const trni_pairs *p, int first, int count)
{
    bool special = (trni_bits(psum) & TRNI_F32_INF) == TRNI_F32_INF;
    for (int i = first; i < first + count; i++)
        special = special || (trni_bits(p->x[i]) & TRNI_F32_INF) == TRNI_F32_INF ||
                  (trni_bits(p->w[i]) & TRNI_F32_INF) == TRNI_F32_INF;
    return special;
}

/* Then PSUM is what IEEE arithmetic makes of it that neither rounds nor overflows; doubles have the range. */
TRNI_COLD float trni_block_ieee(float psum, const trni_pairs *p, int first, int count)
{
    double sum = (double)psum;
    for (int i = first; i < first + count; i++) sum += (double)p->x[i] * (double)p->w[i];
    return (float)sum;
}

/* One block of the three aligned accumulators. */
TRNI_COLD float trni_block_onto(float psum, const trni_pairs *p, int first, int count, const trn_numerics *n)
{
    trni_term product[TRNI_MAX_BLOCK];
    if (trni_block_special(psum, p, first, count)) return trni_block_ieee(psum, p, first, count);
    for (int i = 0; i < count; i++) {
        product[i] = trni_term_product(p, first + i);
        if (n->flush_products && product[i].magnitude && trni_term_top(&product[i]) < -126) product[i].magnitude = 0;
    }
    return n->accumulator == TRN_ACCUMULATOR_ALIGNED ? trni_block_aligned(psum, product, count, n)
                                                     : trni_block_late(psum, product, count, n);
}

/* PSUM after the products; fresh: what PSUM holds is not read, it counts as +0. A NaN is canonical. */
TRNI_COLD float trni_aligned_onto(float psum, bool fresh, const trni_pairs *p, const trn_numerics *n)
{
    const int wanted = n->aligned_bytes / p->of.bytes, block = wanted > 1 ? wanted : 1;
    if (fresh || (n->flush_inputs && psum > -0x1p-126f && psum < 0x1p-126f)) psum = 0;
    for (int first = 0; first < p->count; first += block) {
        const int left = p->count - first, count = left < block ? left : block;
        psum = n->accumulator == TRN_ACCUMULATOR_PAIRWISE ? trni_block_pairwise(psum, p, first, block, n)
                                                          : trni_block_onto(psum, p, first, count, n);
    }
    return trni_is_nan_bits(trni_bits(psum)) ? trni_float(TRNI_F32_NAN) : psum;
}

#endif /* TRNI_ARRAY_SYSTOLIC_ALIGNED_H */
