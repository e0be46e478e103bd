/* array/matmul_row.h - a product of a single row of a: b is read once, in memory order, and not packed.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: every format, pairs and quads, a line of sums for each chain. What bounds it is memory, or looking up codes.
 * DOES NOT: run when rows of b are not in memory order: array/matmul_slabs.h packs them then.
 *
 * KNOWN FROM: the order of array/systolic.h.
 */
#ifndef TRNI_ARRAY_MATMUL_ROW_H
#define TRNI_ARRAY_MATMUL_ROW_H

#include "matmul_worker.h"

/* ---- a single row of a: b is read once, in memory order, and not packed ---- */

/* The rows [k, k + count) of b, count <= TRNI_STREAM_ROWS_MOST, into the sums of their chains ([chain][columns]). */
enum { TRNI_STREAM_GROUPS_MOST = 8, TRNI_STREAM_ROWS_MOST = 16 };

/* A tile of the single row: where its numbers of b are, what they are multiplied with, the scales of b's columns. */
typedef struct trni_row_tile {
    const trni_map *map;
    const float *x;                     /* of a, as packed lines, a's scales multiplied in */
    float *sums;                        /* [chain][step] */
    uint8_t (*scale)[TRNI_ROW_COLUMNS]; /* [block of 32 along K][columns]; MX only */
    int64_t k, n, columns;
    int64_t step; /* from one chain's sums to the next's: columns, or whole blocks of woven ones */
} trni_row_tile;

/* Rows [first, first + count) of the array, in memory order, chain by chain. */
TRNI_DRIVER void trni_stream_group(const trni_worker *w, const trni_row_tile *t, int first, int count,
                                   const uint8_t *scale)
{
    const trn_numerics *rules = &w->p->numerics;
    const trni_loader *loader = &w->loader_b;
    const bool interleaved = rules->chain_layout == TRN_CHAINS_INTERLEAVED;
    const int step = interleaved ? rules->chains : 1, group = t->map->group;
    const int64_t line = trni_operand_at(&w->p->b, 0, 1) - trni_operand_at(&w->p->b, 0, 0);
    const int64_t row = group == 4 ? 4 * line : line, slot = group == 4 ? line : t->map->rows * line,
                  ahead = count * row;
    for (int i = 0; i < step && i < count; i++) {
        const int p = first + i, rows = (count - i + step - 1) / step;
        float *sum = t->sums + trni_chain_of_row(rules, p) * t->step;
        const float *x = t->x + t->map->chains.slot[p] * group;
        const unsigned char *src = trni_operand_at(&w->p->b, t->n, t->k) + p * row;
        if (group == 1)
            loader->stream(loader, sum, x, src, step * row, rows, ahead, (size_t)t->columns);
        else
            (group == 2 ? loader->pairs : loader->quads)(loader, sum, x, src, step * row, slot, rows, scale, ahead,
                                                         (size_t)t->columns);
    }
}

/* An odd depth of double rows: the last row's missing partner is a true zero product, and not in memory. */
TRNI_DRIVER void trni_stream_single(const trni_worker *w, const trni_row_tile *t, int p)
{
    float *sum = t->sums + trni_chain_of_row(&w->p->numerics, p) * t->step;
    w->loader_b.stream(&w->loader_b, sum, t->x + t->map->chains.slot[p] * 2, trni_operand_at(&w->p->b, t->n, t->k + p),
                       0, 1, 0, (size_t)t->columns);
}

TRNI_DRIVER void trni_merge_lines(const trni_worker *w, float *sums, int64_t columns)
{
    const int chains = w->p->numerics.chains;
    trni_add_line_fn *add = trni_add_line_for(w->p->isa);
    if (w->p->numerics.merge == TRN_MERGE_ASCENDING) {
        for (int c = 1; c < chains; c++) add(sums, sums + c * columns, (size_t)columns);
        return;
    }
    for (int distance = 1; distance < chains; distance *= 2)
        for (int c = 0; c < chains; c += 2 * distance)
            add(sums + c * columns, sums + (c + distance) * columns, (size_t)columns);
}

/* Eight rows of eight bytes, turned: pairs of bytes, of pairs, of quads change places. */
TRNI_FN void trni_turn_bytes(uint64_t x[8])
{
    static const uint64_t keep[3] = { 0x00ff00ff00ff00ffu, 0x0000ffff0000ffffu, 0x00000000ffffffffu };
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < 8; i++) {
            const int apart = 1 << step, other = i + apart, bits = 8 << step;
            if (i & apart) continue;
            const uint64_t a = x[i], b = x[other];
            x[i] = (a & keep[step]) | (b & keep[step]) << bits;
            x[other] = (a >> bits & keep[step]) | (b & ~keep[step]);
        }
}

/* The scales of b's columns, blocks [block, block + blocks), a line for each block. */
TRNI_FN void trni_row_scales(const trni_worker *w, const trni_row_tile *t, int64_t block, int blocks)
{
    const trni_scales *s = &w->p->b_scale;
    int64_t j = 0;
    for (; s->block_stride == 1 && blocks % 8 == 0 && j + 8 <= t->columns; j += 8)
        for (int b = 0; b < blocks; b += 8) {
            uint64_t x[8];
            for (int i = 0; i < 8; i++)
                memcpy(&x[i], s->data + (t->n + j + i) * s->lane_stride + block + b, sizeof x[i]);
            trni_turn_bytes(x);
            for (int i = 0; i < 8; i++) memcpy(&t->scale[b + i][j], &x[i], sizeof x[i]);
        }
    for (; j < t->columns; j++)
        for (int b = 0; b < blocks; b++) t->scale[b][j] = (uint8_t)trni_scale_at(s, t->n + j, block + b);
}

/* How many rows from `first` on may be taken together: of MX none of two blocks, and of blocked chains none of two. */
TRNI_DRIVER int trni_stream_buffer(const trni_worker *w, const trni_row_tile *t, int first)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    const trn_numerics *n = &w->p->numerics;
    int capacity = t->map->group == 1 ? TRNI_STREAM_ROWS_MOST : TRNI_STREAM_GROUPS_MOST;
    if (t->map->group == 4) capacity = (int)(rows_of_a_block - (t->k / 4 + first) % rows_of_a_block);
    const int of_a_chain = TRNI_ARRAY_ROWS / n->chains, left = of_a_chain - first % of_a_chain;
    return n->chain_layout == TRN_CHAINS_BLOCKED && left < capacity ? left : capacity;
}

/* All rows of the array that have all their numbers, a few at a time. */
TRNI_LEAN void trni_stream_rows(const trni_worker *w, const trni_row_tile *t, int rows)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    const bool scaled = t->map->group == 4;
    const int64_t row = t->k / 4, begin = row / rows_of_a_block;
    if (scaled) trni_row_scales(w, t, begin, (int)((row + rows - 1) / rows_of_a_block - begin) + 1);
    for (int first = 0, count; first < rows; first += count) {
        const int capacity = trni_stream_buffer(w, t, first), block = (int)((row + first) / rows_of_a_block - begin);
        count = rows - first < capacity ? rows - first : capacity;
        trni_stream_group(w, t, first, count, scaled ? t->scale[block] : NULL);
    }
}

TRNI_LEAN void trni_stream_tile(const trni_worker *w, int64_t k, int depth, int64_t n, int64_t columns, float *psum)
{
    const trni_product *p = w->p;
    const trni_map *map = trni_tile_map(w, depth);
    uint8_t(*const scale)[TRNI_ROW_COLUMNS] = (uint8_t(*)[TRNI_ROW_COLUMNS])(void *)(w->row + TRNI_ROW_COLUMNS);
    float *const straight = w->row, *sums = w->b;
    const int64_t step = w->loader_b.woven ? trni_round_up(columns, TRNI_WEAVE) : columns;
    const trni_row_tile t = { map, w->a, sums, scale, k, n, columns, step };
    const bool odd = map->group == 2 && depth % 2;
    trni_worker_pack_rows(w, 0, 1, k, depth, w->a); /* a strip of one */
    memset(sums, 0, sizeof(float) * (size_t)(p->numerics.chains * step));
    trni_stream_rows(w, &t, map->rows - odd);
    if (odd) trni_stream_single(w, &t, map->rows - 1);
    trni_merge_lines(w, sums, step);
    if (w->loader_b.woven) {
        w->loader_b.unweave(straight, sums, (size_t)step);
        sums = straight;
    }
    if (k == 0 && !p->accumulate)
        memcpy(psum, sums, sizeof(float) * (size_t)columns);
    else
        trni_add_line_for(p->isa)(psum, sums, (size_t)columns);
    trni_worker_round(w, psum, 0, 1, columns, 0, n, k);
}

TRNI_LEAN void trni_region_stream(const trni_worker *w, int64_t n, int64_t columns)
{
    const trni_product *p = w->p;
    float *psum = w->cut->direct ? (float *)(void *)trni_dst_at(p, 0, n) : w->psum;
    if (p->accumulate && !w->cut->direct) trni_psum_from_dst(w->p, w->psum, 0, 1, n, columns);
    for (int64_t k = 0; k < p->a.depth; k += trni_tile_depth(p))
        trni_stream_tile(w, k, trni_tile_deep(w, k, p->a.depth), n, columns, psum);
    if (w->cut->direct)
        trni_canonical_nans_for(p->isa)(psum, (size_t)columns);
    else
        trni_psum_to_dst(w->p, w->psum, 0, 1, n, columns);
}

#endif /* TRNI_ARRAY_MATMUL_ROW_H */
