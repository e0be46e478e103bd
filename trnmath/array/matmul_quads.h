/* array/matmul_quads.h - MXFP4 times MXFP4: the four products of a row of the array as one dot product of bytes.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: which products go this way; words and scales in the places of packed panels; one strip times one panel.
 * DOES NOT: decide about bits. Twice a number of E2M1 is a whole number of at most 12, so four products are one of at
 *     most 576 quarters, exactly, and so is a times 2^e: what is left of a row is its one rounding, a fused
 *     multiply-add. A sum that starts at +0 never becomes -0, whichever zero is added.
 *
 * In the places of a strip's floats: words, [row of the array][row of a], then scales, [block][row of a]. Of a panel's:
 * [row of the array][32 words, 32 starts], then scales, [block][32]. A word of a is four bytes 2 x + 12, unsigned, as
 * VPDPBUSD wants them; -12 times the sum of b's bytes is where a dot product starts.
 *
 * Two scales and the quarter make a power of two whose exponent field is x + y - 129, if x and y are their bytes: so
 * a's are x - 60, b's y - 69, both at least 0, and one addition of 16-bit halves makes the product. It saturates: NaN,
 * 7fff, stays NaN, whatever is added.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are.
 */
#ifndef TRNI_ARRAY_MATMUL_QUADS_H
#define TRNI_ARRAY_MATMUL_QUADS_H

#include "product_define.h"

enum {
    TRNI_QUADS_ROWS = 6,   /* of a strip: their sums and scales, and what else there is, fill 32 registers */
    TRNI_QUADS_WIDTH = 32, /* columns of a panel */
    TRNI_QUADS_LEAST = 4,  /* rows of a that are worth it */
    TRNI_QUADS_BLOCK = TRNI_SCALE_BLOCK / 4, /* rows of the array under one scale */
    TRNI_QUADS_LESS_B = TRNI_SAFE_LEAST,
    TRNI_QUADS_LESS_A = 129 - TRNI_SAFE_LEAST
};

/* Rows of a chain that follow each other under one scale are a run. */
typedef struct trni_quads_map {
    int rows, chains;
    uint8_t runs[TRNI_MAX_CHAINS];
    uint8_t block[TRNI_ARRAY_ROWS], count[TRNI_ARRAY_ROWS]; /* of each run */
} trni_quads_map;

/* out[i][j] = (in ? in[i][j] + : ) merged chains, for strip <= TRNI_QUADS_ROWS rows. No cache lines are
 * asked for on the way: words are few enough, and asking takes a quarter of the speed (measured). */
#define TRNI_QUADS_PARAMS                                                                                              \
    const uint32_t *a, const uint32_t *b, int strip, const trni_quads_map *map, const float *in, ptrdiff_t in_step,    \
        float *out, ptrdiff_t out_step

typedef void trni_quads_fn(TRNI_QUADS_PARAMS);
/* What n codes stand for in `table`, byte by byte; and four lines of codes, `step` bytes apart, as n words. */
typedef void trni_quads_line_fn(uint8_t *dst, const unsigned char *src, size_t n, const uint8_t *table);
typedef void trni_quads_weave_fn(uint32_t *dst, const unsigned char *src, int64_t step, size_t n, const uint8_t *table);
/* The starts that belong to a panel's words. */
typedef void trni_quads_starts_fn(uint32_t *b, int rows);

#if TRNI_PANEL_SIMD
#include "../simd/matmul_quads_avx512.h"
#endif

typedef struct trni_quads {
    trni_quads_map whole, tail;
    trni_quads_fn *multiply; /* NULL: not this way */
    trni_quads_line_fn *line;
    trni_quads_weave_fn *weave;
    trni_quads_starts_fn *starts;
} trni_quads;

/* Of a product that packed kernels may do: scales are safe then. */
TRNI_DRIVER bool trni_quads_apply(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    if (p->a.format != TRN_F4_E2M1 || p->b.format != TRN_F4_E2M1 || p->spread != TRNI_QUADS || p->packed) return false;
    if (n->merge != TRN_MERGE_ASCENDING && n->chains >= 4) return false;
    return p->isa == TRN_ISA_AVX512 && trni_has_dots() && n->k_tile % TRNI_QUADS_BLOCK == 0 &&
           p->a.lanes >= TRNI_QUADS_LEAST;
}

TRNI_LEAN void trni_quads_map_init(trni_quads_map *q, const trni_map *map)
{
    int run = 0, slot = 0;
    q->rows = map->rows;
    q->chains = map->chains.count;
    for (int c = 0; c < q->chains; c++) {
        const int first = run, end = slot + map->chains.length[c];
        for (; slot < end; slot++) {
            const int block = map->chains.row[slot] / TRNI_QUADS_BLOCK;
            if (run > first && q->block[run - 1] == block) {
                q->count[run - 1]++;
                continue;
            }
            q->block[run] = (uint8_t)block;
            q->count[run++] = 1;
        }
        q->runs[c] = (uint8_t)(run - first);
    }
}

TRNI_LEAN void trni_quads_init(trni_quads *q, const trni_map *whole, const trni_map *tail)
{
    q->whole.rows = q->tail.rows = 0;
    if (whole->depth) trni_quads_map_init(&q->whole, whole);
    if (tail->depth) trni_quads_map_init(&q->tail, tail);
    q->multiply = NULL;
#if TRNI_PANEL_SIMD
    q->multiply = trni_simd_quads;
    q->line = trni_simd_quads_line;
    q->weave = trni_simd_quads_weave;
    q->starts = trni_simd_quads_starts;
#endif
}

TRNI_FN const trni_quads_map *trni_quads_map_at(const trni_quads *q, int rows)
{
    return q->whole.rows == rows ? &q->whole : &q->tail;
}

/* ---- packing ---- */

/* 2 x + 12 of a's codes, 2 x of b's. */
TRNI_FN const uint8_t *trni_quads_table(bool of_b)
{
    static const uint8_t table[2][16] = { { 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0 },
                                          { 0, 1, 2, 3, 4, 6, 8, 12, 0, 255, 254, 253, 252, 250, 248, 244 } };
    return table[of_b];
}

/* A scale's exponent. What is not usual is the scale of zeros: any number does for it. */
TRNI_FN uint32_t trni_quads_scale(unsigned byte, unsigned less)
{
    if (byte == TRNI_SCALE_BYTE_NAN) return 0x7fff0000u;
    if (byte < TRNI_SAFE_LEAST) byte = TRNI_SAFE_LEAST;
    if (byte > TRNI_SAFE_MOST) byte = TRNI_SAFE_MOST;
    return (byte - less) << 23;
}

/* dst[block][lane], `step` lanes apart. */
TRNI_FN void trni_quads_scales(const trni_scales *s, int64_t lane, int lanes, int64_t k, int rows, unsigned less,
                               int step, uint32_t *dst)
{
    for (int i = 0; i < lanes; i++)
        for (int block = 0; block < rows / TRNI_QUADS_BLOCK; block++)
            dst[block * step + i] = trni_quads_scale(trni_scale_at(s, lane + i, k / TRNI_SCALE_BLOCK + block), less);
}

/* The words of one lane: dst[line] is the first of a line, lines are `step` words apart. */
TRNI_FN void trni_quads_lane(const trni_quads *q, const trni_operand *o, const trni_map *map, int64_t lane, int64_t k,
                             const uint8_t *table, int step, uint32_t *dst)
{
    unsigned char code[TRNI_MAX_DEPTH];
    uint8_t line[TRNI_MAX_DEPTH];
    const unsigned char *at = trni_operand_at(o, lane, k);
    if (o->depth_stride != 1) {
        for (int t = 0; t < map->depth; t++) code[t] = at[t * o->depth_stride];
        at = code;
    }
    q->line(line, at, (size_t)map->depth, table);
    for (int p = 0; p < map->rows; p++) memcpy(dst + map->chains.slot[p] * step, line + 4 * p, sizeof *dst);
}

TRNI_FN bool trni_quads_weaves(const trni_operand *o) { return o->lane_stride == 1 && o->lanes > 1; }

/* One panel of b. */
TRNI_DRIVER void trni_quads_panel(const trni_quads *q, const trni_product *p, const trni_map *map, int64_t n,
                                  int columns, int64_t k, uint32_t *dst)
{
    enum { step = 2 * TRNI_QUADS_WIDTH };
    const uint8_t *table = trni_quads_table(true);
    if (columns < TRNI_QUADS_WIDTH)
        memset(dst, 0, sizeof *dst * (size_t)(map->rows * step + map->rows / TRNI_QUADS_BLOCK * TRNI_QUADS_WIDTH));
    for (int row = 0; row < map->rows && trni_quads_weaves(&p->b); row++)
        q->weave(dst + map->chains.slot[row] * step, trni_operand_at(&p->b, n, k + 4 * row), p->b.depth_stride,
                 (size_t)columns, table);
    for (int j = 0; j < columns && !trni_quads_weaves(&p->b); j++)
        trni_quads_lane(q, &p->b, map, n + j, k, table, step, dst + j);
    q->starts(dst, map->rows);
    trni_quads_scales(&p->b_scale, n, columns, k, map->rows, TRNI_QUADS_LESS_B, TRNI_QUADS_WIDTH,
                      dst + map->rows * step);
}

/* Words of lanes that follow each other: lines of them, shared out among the strips. */
TRNI_DRIVER void trni_quads_strips(const trni_quads *q, const trni_array *array, const trni_product *p,
                                   const trni_map *map, int64_t m, int64_t lanes, int64_t k, float *dst)
{
    enum { most = 16 * TRNI_QUADS_ROWS };
    uint32_t line[most];
    for (int64_t from = 0; from < lanes; from += most) {
        const int64_t some = trni_min64(lanes - from, most);
        for (int row = 0; row < map->rows; row++) {
            q->weave(line, trni_operand_at(&p->a, m + from, k + 4 * row), p->a.depth_stride, (size_t)some,
                     trni_quads_table(false));
            for (int64_t done = 0, strip; done < some; done += strip) {
                strip = array->rows[trni_strip_kernel(array, some - done)];
                memcpy((uint32_t *)(void *)(dst + (from + done) * map->lines) + map->chains.slot[row] * strip,
                       line + done, sizeof *line * (size_t)strip);
            }
        }
    }
}

/* Rows [m, m + lanes) of a, strip after strip. */
TRNI_DRIVER void trni_quads_rows(const trni_quads *q, const trni_array *array, const trni_product *p,
                                 const trni_map *map, int64_t m, int64_t lanes, int64_t k, float *dst)
{
    const bool weaves = trni_quads_weaves(&p->a);
    if (weaves) trni_quads_strips(q, array, p, map, m, lanes, k, dst);
    for (int64_t done = 0; done < lanes;) {
        const int strip = array->rows[trni_strip_kernel(array, lanes - done)];
        uint32_t *word = (uint32_t *)(void *)(dst + done * map->lines);
        for (int i = 0; i < strip && !weaves; i++)
            trni_quads_lane(q, &p->a, map, m + done + i, k, trni_quads_table(false), strip, word + i);
        trni_quads_scales(&p->a_scale, m + done, strip, k, map->rows, TRNI_QUADS_LESS_A, strip,
                          word + map->rows * strip);
        done += strip;
    }
}

/* Columns [n, n + columns) of b, panel after panel. */
TRNI_DRIVER void trni_quads_columns(const trni_quads *q, const trni_product *p, const trni_map *map, int64_t n,
                                    int64_t columns, int64_t k, float *dst)
{
    for (int64_t done = 0; done < columns; done += TRNI_QUADS_WIDTH)
        trni_quads_panel(q, p, map, n + done, (int)trni_min64(columns - done, TRNI_QUADS_WIDTH), k,
                         (uint32_t *)(void *)(dst + done * map->lines));
}

#endif /* TRNI_ARRAY_MATMUL_QUADS_H */
