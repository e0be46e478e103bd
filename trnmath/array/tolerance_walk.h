/* array/tolerance_walk.h - the roundings of a row of a product, by chains: what each of them is likely to lose.
 * Behind trn_tolerance.h. SPDX-License-Identifier: MIT
 *
 * DOES: goes the array's way through a row of a and some columns of b, in binary64: products, pairs and quads, chains,
 *     merges, PSUM after each tile; every rounding is made where the array makes it, and what it loses is added up.
 * DOES NOT: know accumulators of blocks (array/tolerance_blocks.h), or return the array's bits: sums are binary64's.
 *
 * KNOWN FROM: array/systolic.h, whose order this is.
 */
#ifndef TRNI_ARRAY_TOLERANCE_WALK_H
#define TRNI_ARRAY_TOLERANCE_WALK_H

#include "product_define.h"
#include "tolerance_round.h"

/* How the numerics round. */
typedef struct trni_walk {
    const trni_product *p;
    trni_grid product, step;        /* of a product, of a chain */
    trni_grid single, narrow, free; /* binary32, bfloat16, and what is not rounded */
    double lean;                    /* of products, see trni_product_lean */
    bool exact, cuts, split, plain; /* plain: chains of fused multiply-adds */
} trni_walk;

enum { TRNI_WALK_COLUMNS = 128 };

typedef struct trni_walk_lines {
    double chain[TRNI_MAX_CHAINS][TRNI_WALK_COLUMNS];
    double product[TRNI_WALK_COLUMNS], row[TRNI_WALK_COLUMNS], part[TRNI_WALK_COLUMNS], tile[TRNI_WALK_COLUMNS];
    double psum[TRNI_WALK_COLUMNS], magnitude[TRNI_WALK_COLUMNS]; /* PSUM, and the sum of |a b| */
    double twelve[TRNI_WALK_COLUMNS], mean[TRNI_WALK_COLUMNS];    /* trni_loss */
} trni_walk_lines;

TRNI_DRIVER trni_walk trni_walk_of(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const double least = 0x1p-126;
    trni_walk w;
    memset(&w, 0, sizeof w);
    w.p = p;
    w.step = trni_grid_of(n->accumulator_bits, least, n->flush_sums);
    w.single = trni_grid_of(24, least, n->flush_sums);
    w.narrow = trni_grid_of(8, least, false);
    w.free = trni_grid_of(TRNI_GRID_MOST, 0x1p-400, false);
    w.product = trni_grid_of(n->product == TRN_PRODUCT_BF16 ? 8 : TRNI_GRID_MOST,
                             n->product == TRN_PRODUCT_BF16 ? least : 0x1p-400, n->flush_products);
    if (n->product == TRN_PRODUCT_BF16)
        w.lean = trni_product_lean(p->a.info.mantissa_bits + 1, p->b.info.mantissa_bits + 1, 8);
    w.exact = n->accumulator == TRN_ACCUMULATOR_EXACT;
    w.cuts = n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    w.split = p->f32 && n->fp32_mode == TRN_FP32_SPLIT;
    w.plain = p->spread == TRNI_SINGLE && !w.exact && !w.cuts && !w.split && !n->flush_products && !n->flush_sums &&
              n->product == TRN_PRODUCT_EXACT;
    return w;
}

/* ---- lines ---- */

TRNI_FN void trni_walk_add(const trni_walk *w, trni_walk_lines *l, double *sum, const double *add, size_t n,
                           trni_grid grid)
{
    trni_line_add_for(w->p->isa)(sum, l->twelve, add, n, grid, false);
}

/* to = from, rounded. */
TRNI_FN void trni_walk_round(const trni_walk *w, trni_walk_lines *l, double *to, const double *from, size_t n,
                             trni_grid grid)
{
    memset(to, 0, n * sizeof *to);
    trni_walk_add(w, l, to, from, n, grid);
}

/* An addition of chains and merges. */
TRNI_DRIVER void trni_walk_step(const trni_walk *w, trni_walk_lines *l, double *sum, const double *add, size_t n)
{
    if (w->cuts)
        trni_line_cut_for(w->p->isa)(sum, l->twelve, l->mean, add, n, w->step);
    else
        trni_walk_add(w, l, sum, add, n, w->exact ? w->free : w->step);
}

/* ---- a row of the array ---- */

typedef struct trni_walk_tile {
    const double *a, *b; /* the tile's first number of each; b's columns follow each other */
    int depth, rows, group;
    bool pairs;
} trni_walk_tile;

/* Where the tile keeps number `slot` of a row. */
TRNI_FN int trni_walk_place(const trni_walk_tile *t, int row, int slot)
{
    return t->pairs ? row + slot * t->rows : row * t->group + slot;
}

TRNI_DRIVER void trni_walk_row(const trni_walk *w, trni_walk_lines *l, const trni_walk_tile *t, double *chain, int row,
                               int pass, size_t n)
{
    const int64_t line = w->p->b.lanes;
    const bool exact = w->p->numerics.group == TRN_GROUP_EXACT;
    const trn_isa isa = w->p->isa;
    double a = t->a[row];
    const double *b = t->b + row * line;
    if (w->split) {
        trni_line_halves_for(isa)(l->part, b, n, pass & 1);
        a = trni_half_of(a, pass & 2);
        b = l->part;
    }
    if (w->plain) {
        trni_line_chain_for(isa)(chain, l->twelve, l->magnitude, b, a, n, w->step);
        return;
    }
    if (t->group > 1) memset(l->row, 0, n * sizeof *l->row);
    for (int slot = 0; slot < t->group; slot++) {
        const int k = trni_walk_place(t, row, slot);
        if (k >= t->depth) continue; /* a pair's missing partner */
        if (!w->split) {
            a = t->a[k];
            b = t->b + k * line;
        }
        trni_line_products_for(isa)(l->product, l->twelve, l->magnitude, l->mean, b, a, n, w->product, w->lean);
        if (t->group > 1) trni_walk_add(w, l, l->row, l->product, n, exact || w->exact ? w->free : w->single);
    }
    if (t->group > 1 && exact && !w->exact) trni_walk_round(w, l, l->part, l->row, n, w->single);
    trni_walk_step(w, l, chain, t->group == 1 ? l->product : exact && !w->exact ? l->part : l->row, n);
}

/* ---- a tile ---- */

/* The chains, one line each. */
TRNI_DRIVER void trni_walk_chains(const trni_walk *w, trni_walk_lines *l, const trni_walk_tile *t, const trni_chains *c,
                                  size_t n)
{
    const int passes = w->split ? 4 : 1;
    const uint8_t *row = c->row;
    for (int chain = 0; chain < c->count; row += c->length[chain++]) {
        double *sum = l->chain[w->exact ? 0 : chain];
        if (!w->exact || chain == 0) memset(sum, 0, n * sizeof *sum);
        for (int pass = 0; pass < passes; pass++)
            for (int i = 0; i < c->length[chain]; i++) trni_walk_row(w, l, t, sum, row[i], pass, n);
    }
}

/* In the first line. */
TRNI_DRIVER void trni_walk_merge(const trni_walk *w, trni_walk_lines *l, int count, size_t n)
{
    if (w->exact) return;
    if (w->p->numerics.merge == TRN_MERGE_PAIRWISE) {
        for (int half = count / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; i++) {
                if (i) memcpy(l->chain[i], l->chain[2 * i], n * sizeof(double));
                trni_walk_step(w, l, l->chain[i], l->chain[2 * i + 1], n);
            }
    } else {
        for (int i = 1; i < count; i++) trni_walk_step(w, l, l->chain[0], l->chain[i], n);
    }
}

/* PSUM after a tile. */
TRNI_DRIVER void trni_walk_psum(const trni_walk *w, trni_walk_lines *l, bool fresh, size_t n)
{
    const trn_numerics *numerics = &w->p->numerics;
    trni_walk_round(w, l, l->tile, l->chain[0], n, w->single);
    if (fresh)
        memcpy(l->psum, l->tile, n * sizeof *l->psum);
    else
        trni_walk_add(w, l, l->psum, l->tile, n, w->single);
    if (numerics->psum_format != TRN_BF16) return;
    memset(l->tile, 0, n * sizeof *l->tile);
    trni_line_add_for(w->p->isa)(l->psum, l->twelve, l->tile, n, w->narrow, numerics->psum_rounding == TRN_STOCHASTIC);
}

/* n columns of b from `b` on, with the row `a`; l->psum holds what dst held, or zeros. */
TRNI_DRIVER void trni_walk_columns(const trni_walk *w, trni_walk_lines *l, const double *a, const double *b, size_t n)
{
    const trni_product *p = w->p;
    const int64_t depth = p->a.depth, deep = trni_tile_depth(p);
    for (int64_t k = 0; k < depth; k += deep) {
        trni_chains c;
        trni_walk_tile t = { a + k, b + k * p->b.lanes, 0, 0, trni_spread_group(p->spread), p->spread == TRNI_PAIRS };
        t.depth = (int)trni_min64(depth - k, deep);
        t.rows = (t.depth + t.group - 1) / t.group;
        trni_chains_init(&c, &p->numerics, p->first_row, t.rows);
        trni_walk_chains(w, l, &t, &c, n);
        trni_walk_merge(w, l, c.count, n);
        trni_walk_psum(w, l, k == 0 && !p->accumulate, n);
    }
}

#endif /* TRNI_ARRAY_TOLERANCE_WALK_H */
