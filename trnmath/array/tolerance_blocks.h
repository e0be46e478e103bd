/* array/tolerance_blocks.h - the roundings of an element by the accumulators of blocks, and how far they may go.
 * Behind trn_tolerance.h. SPDX-License-Identifier: MIT
 *
 * DOES: for one element, block after block: where products and PSUM are cut, what the sums lose, and a bound on both.
 * DOES NOT: know chains (array/tolerance_walk.h), or return the units' bits.
 *
 * The bound takes at every block the largest exponent that PSUM can have by then: that of all products' magnitudes and
 * of the bound so far. What is cut off a term is less than one unit, however many digits it has.
 *
 * KNOWN FROM: array/systolic_aligned.h, whose rules these are.
 */
#ifndef TRNI_ARRAY_TOLERANCE_BLOCKS_H
#define TRNI_ARRAY_TOLERANCE_BLOCKS_H

#include "tolerance_walk.h"

/* Numbers and the powers of two that they are aligned by: 2^e of array/systolic_aligned.h, 0 of a zero. */
typedef struct trni_powered {
    const double *number, *power;
} trni_powered;

typedef struct trni_blocks {
    double psum, magnitude, worst; /* magnitude: of PSUM as it was and of all products */
    trni_loss loss;
} trni_blocks;

/* Products of a block, and the largest power among them. */
typedef struct trni_block {
    double product[TRNI_MAX_BLOCK], power[TRNI_MAX_BLOCK];
    double largest;
    int count;
} trni_block;

TRNI_FN double trni_power_of_psum(double psum) { return psum == 0 ? 0 : fmax(trni_power_below(psum), 0x1p-126); }

/* What is smaller than all that is kept is left out, and known; else the digits are any. */
TRNI_FN double trni_blocks_cut(trni_loss *l, double x, double unit)
{
    const double kept = trni_cut_multiple(x, unit);
    if (kept == 0)
        l->mean -= x;
    else
        trni_loses(l, x, unit, TRN_TOWARD_ZERO);
    return kept;
}

TRNI_FN double trni_blocks_floor(trni_loss *l, double x, double unit)
{
    trni_loses(l, x, unit, TRN_TOWARD_NEGATIVE);
    return trni_floor_multiple(x, unit);
}

/* A sum becomes PSUM. */
TRNI_COLD double trni_blocks_round(trni_loss *l, double sum, int bits, trn_rounding rounding, bool flush)
{
    const double unit = trni_apart(sum, ldexp(1, 1 - bits), 0x1p-126);
    if (flush && fabs(sum) < 0x1p-126) {
        l->mean -= sum;
        return 0;
    }
    trni_loses(l, sum, unit, rounding);
    return rounding == TRN_TOWARD_ZERO ? trni_cut_multiple(sum, unit) : trni_to_multiple(sum, unit);
}

/* ---- the accumulators ---- */

TRNI_COLD double trni_blocks_aligned(trni_blocks *s, const trni_block *b, const trn_numerics *n)
{
    const double floor = ldexp(1, -n->aligned_floor), power = fmax(trni_power_of_psum(s->psum), b->largest);
    const double unit = fmax(power, floor) * ldexp(1, -n->aligned_bits);
    double sum = trni_blocks_cut(&s->loss, s->psum, unit);
    for (int i = 0; i < b->count; i++) sum += trni_blocks_cut(&s->loss, b->product[i], unit);
    return sum;
}

/* The products' sum: all alike (step 1), or even and odd ones apart (2). */
TRNI_COLD double trni_blocks_products(trni_loss *l, const trni_block *b, int step, double apart)
{
    double all = 0;
    for (int first = 0; first < step; first++) {
        double power = 0, sum = 0;
        for (int i = first; i < b->count; i += step) power = fmax(power, b->power[i]);
        for (int i = first; i < b->count && power > 0; i += step)
            sum += trni_blocks_cut(l, b->product[i], power * apart);
        all += step > 1 && sum != 0 ? trni_blocks_floor(l, sum, b->largest * apart) : sum;
    }
    return all;
}

TRNI_COLD double trni_blocks_late(trni_blocks *s, const trni_block *b, const trn_numerics *n)
{
    const bool halves = n->accumulator == TRN_ACCUMULATOR_ALIGNED_HALVES;
    const double apart = ldexp(1, -n->aligned_bits),
                 own = s->psum == 0 ? ldexp(1, -n->aligned_floor) : trni_power_of_psum(s->psum);
    const double products = trni_blocks_products(&s->loss, b, halves ? 2 : 1, apart),
                 unit = fmax(own, b->largest) * apart;
    const double kept = products == 0 ? 0 : trni_blocks_floor(&s->loss, products, unit * 0x1p-7);
    if (halves && own < unit / 2) {
        s->loss.mean -= s->psum;
        return kept;
    }
    return kept + (s->psum == 0 ? 0 : trni_blocks_floor(&s->loss, s->psum, unit));
}

/* Neighbours first: products of two, of four, … */
TRNI_COLD double trni_blocks_pairwise(trni_loss *l, const trni_block *b, int block, const trn_numerics *n)
{
    double s[TRNI_MAX_BLOCK];
    for (int i = 0; i < block; i++)
        s[i] = i < b->count ? trni_blocks_round(l, b->product[i], 24, TRN_NEAREST_EVEN, n->flush_products) : 0;
    for (int half = block / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++)
            s[i] = trni_blocks_round(l, s[2 * i] + s[2 * i + 1], 24, TRN_NEAREST_EVEN, n->flush_sums);
    return s[0];
}

/* ---- the bound ---- */

TRNI_COLD double trni_blocks_worst(const trni_blocks *s, const trni_block *b, int block, const trn_numerics *n)
{
    const double most = s->magnitude + s->worst; /* of PSUM before and after */
    const double flushed = n->flush_inputs || n->flush_products || n->flush_sums ? 0x1p-126 * (2 * b->count + 4) : 0;
    if (n->accumulator == TRN_ACCUMULATOR_PAIRWISE) {
        const double sums = log2((double)block) + 2; /* that a product passes, its own rounding too */
        return s->worst + expm1(sums * log1p(0x1p-24)) * most + 0x1p-149 * (2 * b->count + 2) + 2 * flushed;
    }
    const double power = fmax(fmax(trni_power_below(most), b->largest), fmax(0x1p-126, ldexp(1, -n->aligned_floor)));
    const double cut =
        power * ldexp(1, -n->aligned_bits) * (b->count + 4); /* each term, and the sums of the late ones */
    return s->worst + cut + trni_apart(most + cut, ldexp(1, 1 - n->aligned_result_bits), 0x1p-126) + flushed;
}

/* ---- a tile, an element ---- */

TRNI_COLD void trni_block_gather(trni_block *to, const trni_walk_tile *t, trni_powered a, trni_powered b, int first,
                                 int count)
{
    to->count = count;
    to->largest = 0;
    for (int i = 0; i < count; i++) {
        const int k = trni_walk_place(t, (first + i) / t->group, (first + i) % t->group);
        const bool there = k < t->depth;
        to->product[i] = there ? a.number[k] * b.number[k] : 0;
        to->power[i] = there ? a.power[k] * b.power[k] : 0;
        to->largest = fmax(to->largest, to->power[i]);
    }
}

/* A product that is flushed has no power either. */
TRNI_COLD void trni_block_flush(trni_block *b, trni_loss *l)
{
    b->largest = 0;
    for (int i = 0; i < b->count; i++) {
        if (fabs(b->product[i]) < 0x1p-126) {
            l->mean -= b->product[i];
            b->product[i] = b->power[i] = 0;
        }
        b->largest = fmax(b->largest, b->power[i]);
    }
}

TRNI_COLD void trni_blocks_tile(trni_blocks *s, const trni_walk_tile *t, trni_powered a, trni_powered b,
                                const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const int wanted = n->aligned_bytes / trni_formats_of(&p->a, &p->b).bytes, block = wanted > 1 ? wanted : 1;
    const bool pairwise = n->accumulator == TRN_ACCUMULATOR_PAIRWISE;
    trni_block one;
    if (n->flush_inputs && fabs(s->psum) < 0x1p-126) s->psum = 0;
    for (int first = 0, all = t->rows * t->group; first < all; first += block) {
        trni_block_gather(&one, t, a, b, first, all - first < block ? all - first : block);
        for (int i = 0; i < one.count; i++) s->magnitude += fabs(one.product[i]);
        s->worst = trni_blocks_worst(s, &one, block, n);
        if (n->flush_products && !pairwise) trni_block_flush(&one, &s->loss);
        if (pairwise) {
            const double sum = s->psum + trni_blocks_pairwise(&s->loss, &one, block, n);
            s->psum = trni_blocks_round(&s->loss, sum, 24, TRN_NEAREST_EVEN, n->flush_sums);
            continue;
        }
        const double sum =
            n->accumulator == TRN_ACCUMULATOR_ALIGNED ? trni_blocks_aligned(s, &one, n) : trni_blocks_late(s, &one, n);
        s->psum = trni_blocks_round(&s->loss, sum, n->aligned_result_bits, n->aligned_rounding, n->flush_sums);
    }
    if (n->psum_format != TRN_BF16) return;
    const double unit = trni_apart(s->psum, 0x1p-7, 0x1p-126);
    trni_loses(&s->loss, s->psum, unit, n->psum_rounding);
    s->worst += trni_apart(s->magnitude + s->worst, 0x1p-7, 0x1p-126);
    s->psum = trni_to_multiple(s->psum, unit);
}

/* A row of a and a column of b; before: what dst held, or 0. */
TRNI_COLD trni_blocks trni_blocks_of(const trni_product *p, trni_powered a, trni_powered b, double before)
{
    const int64_t depth = p->a.depth, deep = trni_tile_depth(p);
    trni_blocks s = { before, fabs(before), 0, { 0, 0 } };
    for (int64_t k = 0; k < depth; k += deep) {
        trni_walk_tile t = {
            NULL, NULL, (int)trni_min64(depth - k, deep), 0, trni_spread_group(p->spread), p->spread == TRNI_PAIRS
        };
        const trni_powered x = { a.number + k, a.power + k }, w = { b.number + k, b.power + k };
        t.rows = (t.depth + t.group - 1) / t.group;
        trni_blocks_tile(&s, &t, x, w, p);
    }
    return s;
}

#endif /* TRNI_ARRAY_TOLERANCE_BLOCKS_H */
