/* array/matmul_int8.h - products of int8 of any size: packed groups of two or four numbers, and their dot products.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: sums in int32, exactly; PSUM wraps or saturates after each tile, as trn_numerics says. Sums that wrap do not
 *     mind where tiles end, so K goes in long slabs then. With AVX512_VNNI four numbers a lane, else two of 16 bits.
 * DOES NOT: know other formats; array/product_define.h has the definition, one row at a time.
 *
 * KNOWN FROM: trni_int8_part, whose bits these are. Blocking as in array/matmul_worker.h.
 *
 * A group is a word of 32 bits: four numbers of 8 bits, those of b plus 128 (VPDPBUSD and tiles multiply unsigned with
 * signed numbers; 128 times the sum of a's row is what a sum starts below zero), or two numbers of 16 bits. Tiles take
 * blocks of 16 words, strips of 16 rows; what is left of rows goes to vectors.
 */
#ifndef TRNI_ARRAY_MATMUL_INT8_H
#define TRNI_ARRAY_MATMUL_INT8_H

#include "matmul_worker.h"

enum {
    TRNI_INT8_WIDTH = 32, /* columns of a panel */
    TRNI_INT8_STRIP = 16, /* rows of the tallest kernel */
    TRNI_INT8_FEW = 3,    /* fewer rows are not worth packing b */
    TRNI_INT8_SLAB_DEPTH = 2048,
    TRNI_INT8_SLAB_COLUMNS = 512,
    TRNI_INT8_SLAB_ROWS = 96
};

/* out[i][j] = (in ? in[i][j] : 0) + start[i] + the dot products of `groups` words of a's row i and b's column j.
 * a is [group][rows], b is [group][TRNI_INT8_WIDTH], out and in are [rows][TRNI_INT8_WIDTH]. */
#define TRNI_INT8_PARAMS                                                                                               \
    const uint32_t *a, const uint32_t *b, int groups, const int32_t *start, const int32_t *in, int32_t *out
#define TRNI_INT8_ARGS a, b, groups, start, in, out

typedef void trni_int8_micro_fn(TRNI_INT8_PARAMS);

TRNI_INLINE int32_t trni_wrapped_sum(int32_t x, int32_t y) { return trni_wrapped((uint32_t)x + (uint32_t)y); }

/* Two numbers of 16 bits. */
TRNI_INLINE void trni_int8_micro_body(int rows, TRNI_INT8_PARAMS)
{
    for (int i = 0; i < rows; i++) {
        int32_t s[TRNI_INT8_WIDTH];
        for (int j = 0; j < TRNI_INT8_WIDTH; j++) s[j] = start[i];
        for (int g = 0; g < groups; g++) {
            const int32_t low = (int16_t)(a[g * rows + i] & 0xffffu), high = (int16_t)(a[g * rows + i] >> 16);
            const uint32_t *w = b + g * TRNI_INT8_WIDTH;
            for (int j = 0; j < TRNI_INT8_WIDTH; j++)
                s[j] = trni_wrapped_sum(s[j], low * (int16_t)(w[j] & 0xffffu) + high * (int16_t)(w[j] >> 16));
        }
        for (int j = 0; j < TRNI_INT8_WIDTH; j++)
            out[i * TRNI_INT8_WIDTH + j] = in ? trni_wrapped_sum(in[i * TRNI_INT8_WIDTH + j], s[j]) : s[j];
    }
}

#define TRNI_INT8_MICRO(rows)                                                                                          \
    TRNI_INLINE void trni_int8_micro_##rows##_body(TRNI_INT8_PARAMS) { trni_int8_micro_body(rows, TRNI_INT8_ARGS); }   \
    TRNI_DISPATCH_BESIDE(trni_int8_micro_##rows, (TRNI_INT8_PARAMS), (TRNI_INT8_ARGS))
TRNI_INT8_MICRO(1)
TRNI_INT8_MICRO(4)
#undef TRNI_INT8_MICRO

#if TRNI_PANEL_SIMD
#include "../simd/matmul_int8_avx512.h"
#endif

/* PSUM after a tile, held between the ends of int32. */
TRNI_INLINE void trni_int8_saturate_body(int32_t *__restrict psum, const int32_t *__restrict sum, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t s = trni_wrapped_sum(psum[i], sum[i]);
        const bool over = ((psum[i] ^ s) & (sum[i] ^ s)) < 0;
        psum[i] = over ? (psum[i] < 0 ? INT32_MIN : INT32_MAX) : s;
    }
}
TRNI_DISPATCH_AVX2(trni_int8_saturate, (int32_t *__restrict psum, const int32_t *__restrict sum, size_t n),
                   (psum, sum, n))

/* ---- packing ---- */

/* Lines r[0 .. group - 1] of a panel into words: of its group, the numbers of b. */
TRNI_INLINE void trni_int8_weave_body(uint32_t *__restrict dst, const signed char *const *r, int group)
{
    enum { n = TRNI_INT8_WIDTH };
    if (group == 4) {
        const unsigned char *a = (const unsigned char *)r[0], *b = (const unsigned char *)r[1],
                            *c = (const unsigned char *)r[2], *d = (const unsigned char *)r[3];
        for (int j = 0; j < n; j++)
            dst[j] = (a[j] | (uint32_t)b[j] << 8 | (uint32_t)c[j] << 16 | (uint32_t)d[j] << 24) ^ 0x80808080u;
        return;
    }
    const signed char *a = r[0], *b = r[1];
    for (int j = 0; j < n; j++) dst[j] = ((uint32_t)a[j] & 0xffffu) | (uint32_t)b[j] << 16;
}
TRNI_DISPATCH_AVX2(trni_int8_weave, (uint32_t *__restrict dst, const signed char *const *r, int group), (dst, r, group))

TRNI_INLINE void trni_int8_sum_body(const signed char *x, size_t n, int32_t *sum)
{
    int32_t s = 0;
    for (size_t i = 0; i < n; i++) s += x[i];
    *sum = s;
}
TRNI_DISPATCH_AVX2(trni_int8_sum, (const signed char *x, size_t n, int32_t *sum), (x, n, sum))

/* Four numbers of 8 bits and one row, where there are tiles, but no vectors for such words. */
TRNI_INLINE void trni_int8_bytes_body(TRNI_INT8_PARAMS)
{
    for (int j = 0; j < TRNI_INT8_WIDTH; j++) out[j] = trni_wrapped((in ? (uint32_t)in[j] : 0) + (uint32_t)start[0]);
    for (int g = 0; g < groups; g++, b += TRNI_INT8_WIDTH)
        for (int byte = 0; byte < 32; byte += 8)
            for (int j = 0; j < TRNI_INT8_WIDTH; j++)
                out[j] = trni_wrapped((uint32_t)out[j] +
                                      (((a[g] >> byte & 0xffu) ^ 0x80u) - 0x80u) * (b[j] >> byte & 0xffu));
}
TRNI_DISPATCH_ONE(trni_int8_bytes, (TRNI_INT8_PARAMS), (TRNI_INT8_ARGS))

/* ---- tiles: a is [block][16 rows][16 words] ---- */

TRNI_INLINE void trni_int8_tiles(trni_unit_int8_fn *tiles, TRNI_INT8_PARAMS)
{
    enum { sums = (int)TRNI_UNIT_ROWS * TRNI_INT8_WIDTH };
    TRNI_LINES(int32_t) sum[sums];
    tiles(sum, a, b, groups / TRNI_UNIT_WORDS, TRNI_INT8_WIDTH);
    for (int i = 0; i < sums; i++)
        out[i] = trni_wrapped((uint32_t)sum[i] + (uint32_t)start[i / TRNI_INT8_WIDTH] + (in ? (uint32_t)in[i] : 0));
}

TRNI_DRIVER void trni_int8_tiles_emulated(TRNI_INT8_PARAMS)
{
    trni_int8_tiles(trni_unit_int8_emulated_portable, TRNI_INT8_ARGS);
}

#if TRNI_UNIT_AMX
TRNI_KERNEL static void trni_int8_tiles_amx(TRNI_INT8_PARAMS) { trni_int8_tiles(trni_simd_tiles_int8, TRNI_INT8_ARGS); }
#endif

/* How one kind of host multiplies. */
typedef struct trni_int8_way {
    trni_unit unit;   /* tiles, or none */
    int group;        /* numbers in a word */
    trni_array shape; /* rows of its kernels, and the width; the rest of it belongs to others */
    trni_int8_micro_fn *micro[4];
    trni_int8_weave_fn *weave;
    trni_int8_sum_fn *sum;
    trni_int8_saturate_fn *saturate;
} trni_int8_way;

/* Tiles before all others, where there are some. */
TRNI_DRIVER void trni_int8_way_tiles(trni_int8_way *way, trn_isa unit, trn_isa isa)
{
    way->unit = trni_unit_of(unit, isa);
    if (!way->unit.int8) return;
    if (way->group != 4) { /* no vectors for words of bytes */
        way->group = 4;
        way->shape.rows[0] = 1;
        way->micro[0] = trni_int8_bytes_for(isa);
    }
    for (int i = 3; i > 0; i--) {
        way->shape.rows[i] = way->shape.rows[i - 1];
        way->micro[i] = way->micro[i - 1];
    }
    way->shape.rows[0] = TRNI_UNIT_ROWS;
    way->micro[0] = trni_int8_tiles_emulated;
#if TRNI_UNIT_AMX
    if (unit == TRN_ISA_AMX) way->micro[0] = trni_int8_tiles_amx;
#endif
}

TRNI_DRIVER trni_int8_way trni_int8_way_of(trn_isa isa)
{
    trni_int8_way way = { { NULL, NULL, NULL, NULL },
                          2,
                          { TRNI_INT8_WIDTH, { 4, 1, 1, 1, 1 }, { NULL }, NULL, NULL },
                          { trni_int8_micro_4_for(isa), trni_int8_micro_1_for(isa), NULL, NULL },
                          trni_int8_weave_for(isa),
                          trni_int8_sum_for(isa),
                          trni_int8_saturate_for(isa) };
#if TRNI_PANEL_SIMD
    static const int rows[2][3] = { { 3, 1, 1 }, { 12, 4, 1 } };
    static trni_int8_micro_fn *const micro[2][3] = { { trni_simd_int8_3_avx2, trni_simd_int8_1_avx2, NULL },
                                                     { trni_simd_int8_12_vnni, trni_simd_int8_4_vnni,
                                                       trni_simd_int8_1_vnni } };
    if (isa == TRN_ISA_PORTABLE) return way;
    const bool four = isa == TRN_ISA_AVX512 && trni_has_dots();
    if (four) way.group = 4;
    memcpy(way.shape.rows, rows[four], sizeof rows[four]);
    memcpy(way.micro, micro[four], sizeof micro[four]);
#endif
    return way;
}

typedef struct trni_int8_work {
    const trni_product *p;
    trni_int8_way way;
    uint32_t *a, *b; /* packed */
    int32_t *start;  /* [row of the slab] of one tile after the other */
    int64_t tile;    /* numbers along K after which PSUM may saturate; of sums that wrap, a slab's */
} trni_int8_work;

/* Words of `depth` numbers of one tile; and of so many whole tiles and their rest. */
TRNI_FN int64_t trni_int8_groups(const trni_int8_work *w, int64_t depth)
{
    return trni_round_up(trni_ceil_div(depth, w->way.group), w->way.unit.int8 ? TRNI_UNIT_WORDS : 1);
}

TRNI_FN int64_t trni_int8_words(const trni_int8_work *w, int64_t depth)
{
    return depth / w->tile * trni_int8_groups(w, w->tile) + trni_int8_groups(w, depth % w->tile);
}

/* The numbers [k, k + depth) of a lane in a row, with zeros up to whole words: where they stand, or in `line`. */
TRNI_DRIVER const signed char *trni_int8_lane(const trni_int8_work *w, const trni_operand *o, int64_t lane, int64_t k,
                                              int64_t depth, signed char *line)
{
    const unsigned char *at = trni_operand_at(o, lane, k);
    if (o->depth_stride == 1 && depth % w->way.group == 0) return (const signed char *)at;
    for (int64_t t = 0; t < depth; t++) line[t] = (signed char)at[t * o->depth_stride];
    memset(line + depth, 0, (size_t)w->way.group);
    return line;
}

/* Words of a lane, `step` apart, each bit of `flip` turned. */
TRNI_DRIVER void trni_int8_row(const trni_int8_work *w, const signed char *line, int64_t groups, uint32_t flip,
                               int64_t step, uint32_t *dst)
{
    if (w->way.group == 2) {
        for (int64_t g = 0; g < groups; g++, line += 2)
            dst[g * step] = ((uint32_t)line[0] & 0xffffu) | (uint32_t)line[1] << 16;
        return;
    }
    for (int64_t g = 0; g < groups; g++) {
        uint32_t word;
        memcpy(&word, line + 4 * g, sizeof word);
        dst[g * step] = word ^ flip;
    }
}

/* One panel of b whose rows are in memory order, `depth` numbers from k: [group][TRNI_INT8_WIDTH]. */
TRNI_DRIVER void trni_int8_weave_panel(const trni_int8_work *w, int64_t n, int columns, int64_t k, int64_t depth,
                                       uint32_t *dst)
{
    static const signed char none[TRNI_INT8_WIDTH] = { 0 };
    signed char narrow[4][TRNI_INT8_WIDTH] = { { 0 } };
    const int group = w->way.group;
    for (int64_t t = 0; t < depth; t += group, dst += TRNI_INT8_WIDTH) {
        const signed char *line[4];
        for (int i = 0; i < group; i++) {
            line[i] = t + i < depth ? (const signed char *)trni_operand_at(&w->p->b, n, k + t + i) : none;
            if (columns < TRNI_INT8_WIDTH) line[i] = (signed char *)memcpy(narrow[i], line[i], (size_t)columns);
        }
        w->way.weave(dst, line, group);
    }
}

/* The same of any b. Columns that are not there repeat the first: nobody looks at their sums. */
TRNI_DRIVER void trni_int8_pack_panel(const trni_int8_work *w, int64_t n, int columns, int64_t k, int64_t depth,
                                      uint32_t *dst)
{
    signed char copy[TRNI_INT8_SLAB_DEPTH + 4];
    const trni_operand *o = &w->p->b;
    const int64_t groups = trni_ceil_div(depth, w->way.group), all = trni_int8_groups(w, depth);
    const uint32_t flip = w->way.group == 4 ? 0x80808080u : 0;
    memset(dst + groups * TRNI_INT8_WIDTH, 0, sizeof *dst * (size_t)((all - groups) * TRNI_INT8_WIDTH));
    if (o->lane_stride == 1)
        trni_int8_weave_panel(w, n, columns, k, depth, dst);
    else
        for (int j = 0; j < columns; j++)
            trni_int8_row(w, trni_int8_lane(w, o, n + j, k, depth, copy), groups, flip, TRNI_INT8_WIDTH, dst + j);
    for (int64_t g = 0; g < groups; g++, dst += TRNI_INT8_WIDTH)
        for (int j = columns; j < TRNI_INT8_WIDTH; j++) dst[j] = dst[0];
}

/* A row's words: in a column of its strip, or, for tiles, 16 in a row of each block. */
TRNI_DRIVER void trni_int8_pack_row(const trni_int8_work *w, const signed char *line, int64_t depth, int64_t strip,
                                    int64_t row, uint32_t *dst)
{
    const int64_t groups = trni_ceil_div(depth, w->way.group), all = trni_int8_groups(w, depth);
    if (!w->way.unit.int8 || strip < TRNI_UNIT_ROWS) {
        trni_int8_row(w, line, groups, 0, strip, dst + row);
        for (int64_t g = groups; g < all; g++) dst[g * strip + row] = 0;
        return;
    }
    for (int64_t g = 0; g < all; g += TRNI_UNIT_WORDS, line += 4 * TRNI_UNIT_WORDS) {
        uint32_t *words = dst + g * TRNI_UNIT_ROWS + row * TRNI_UNIT_WORDS;
        const int64_t some = trni_min64(groups - g, TRNI_UNIT_WORDS);
        trni_int8_row(w, line, some, 0, 1, words);
        memset(words + some, 0, sizeof *words * (size_t)(TRNI_UNIT_WORDS - some));
    }
}

/* Rows [m, m + rows) of a, strip after strip, [group][rows of the strip], and 128 times less their sums. */
TRNI_DRIVER void trni_int8_pack_rows(const trni_int8_work *w, int64_t m, int64_t rows, int64_t k, int64_t depth,
                                     uint32_t *dst, int32_t *start)
{
    signed char copy[TRNI_INT8_SLAB_DEPTH + 4];
    const int64_t groups = trni_int8_groups(w, depth);
    for (int64_t done = 0, strip; done < rows; done += strip, dst += groups * strip) {
        strip = w->way.shape.rows[trni_strip_kernel(&w->way.shape, rows - done)];
        for (int64_t i = 0; i < strip; i++) {
            const signed char *line = trni_int8_lane(w, &w->p->a, m + done + i, k, depth, copy);
            int32_t sum = 0;
            if (w->way.group == 4) w->way.sum(line, (size_t)depth, &sum);
            start[done + i] = -128 * sum;
            trni_int8_pack_row(w, line, depth, strip, i, dst);
        }
    }
}

/* ---- a block of dst ---- */

/* The part of dst that a strip and a panel meet in, from and to memory. */
TRNI_DRIVER void trni_int8_move(const trni_product *p, int64_t m, int rows, int64_t n, int columns, int32_t *psum,
                                bool back)
{
    for (int i = 0; i < rows; i++, psum += TRNI_INT8_WIDTH)
        for (int j = 0; j < columns; j += p->dst.stride[1] == 1 ? columns : 1) {
            const size_t bytes = sizeof *psum * (size_t)(p->dst.stride[1] == 1 ? columns : 1);
            unsigned char *at = trni_dst_at(p, m + i, n + j);
            if (back)
                memcpy(at, psum + j, bytes);
            else
                memcpy(psum + j, at, bytes);
        }
}

/* One strip times one panel over a slab: PSUM is read before it, unless it is fresh, and written after it. */
TRNI_LEAN void trni_int8_strip(const trni_int8_work *w, int64_t m, int64_t row, int kernel, int64_t slab_rows,
                               int64_t n, int columns, int64_t k, int64_t depth, const uint32_t *b)
{
    TRNI_LINES(int32_t) psum[TRNI_INT8_STRIP * TRNI_INT8_WIDTH], sum[TRNI_INT8_STRIP * TRNI_INT8_WIDTH];
    const int strip = w->way.shape.rows[kernel];
    const bool saturates = w->p->numerics.int32_overflow == TRN_INT32_SATURATE;
    bool fresh = k == 0 && !w->p->accumulate;
    if (!fresh) trni_int8_move(w->p, m + row, strip, n, columns, psum, false);
    for (int64_t t = 0, tile = 0; t < depth; t += w->tile, tile++) {
        const int64_t deep = trni_min64(depth - t, w->tile), groups = trni_int8_groups(w, deep);
        const uint32_t *a = w->a + trni_int8_words(w, t) * slab_rows + groups * row;
        const int32_t *start = w->start + tile * slab_rows + row;
        const bool apart = saturates && !fresh;
        w->way.micro[kernel](a, b, (int)groups, start, fresh || apart ? NULL : psum, apart ? sum : psum);
        if (apart) w->way.saturate(psum, sum, (size_t)strip * TRNI_INT8_WIDTH);
        b += groups * TRNI_INT8_WIDTH;
        fresh = false;
    }
    trni_int8_move(w->p, m + row, strip, n, columns, psum, true);
}

/* Rows [m, m + rows) times columns [n, n + columns), over the numbers [k, k + depth). b is packed. */
TRNI_LEAN void trni_int8_slab(const trni_int8_work *w, int64_t m, int64_t rows, int64_t n, int64_t columns, int64_t k,
                              int64_t depth)
{
    for (int64_t t = 0, tile = 0; t < depth; t += w->tile, tile++)
        trni_int8_pack_rows(w, m, rows, k + t, trni_min64(depth - t, w->tile), w->a + trni_int8_words(w, t) * rows,
                            w->start + tile * rows);
    const int64_t words = trni_int8_words(w, depth) * TRNI_INT8_WIDTH;
    for (int64_t j = 0; j < columns; j += TRNI_INT8_WIDTH)
        for (int64_t i = 0; i < rows;) {
            const int kernel = trni_strip_kernel(&w->way.shape, rows - i);
            trni_int8_strip(w, m, i, kernel, rows, n + j, (int)trni_min64(columns - j, TRNI_INT8_WIDTH), k, depth,
                            w->b + j / TRNI_INT8_WIDTH * words);
            i += w->way.shape.rows[kernel];
        }
}

TRNI_LEAN void trni_int8_block(const trni_int8_work *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const int64_t most = TRNI_INT8_SLAB_DEPTH / w->tile * w->tile;
    for (int64_t j = 0; j < columns; j += TRNI_INT8_SLAB_COLUMNS) {
        const int64_t wide = trni_min64(columns - j, TRNI_INT8_SLAB_COLUMNS);
        for (int64_t k = 0; k < w->p->a.depth; k += most) {
            const int64_t depth = trni_min64(w->p->a.depth - k, most);
            const int64_t words = trni_int8_words(w, depth) * TRNI_INT8_WIDTH;
            for (int64_t c = 0; c < wide; c += TRNI_INT8_WIDTH) {
                uint32_t *panel = w->b + c / TRNI_INT8_WIDTH * words;
                for (int64_t t = 0; t < depth; t += w->tile)
                    trni_int8_pack_panel(w, n + j + c, (int)trni_min64(wide - c, TRNI_INT8_WIDTH), k + t,
                                         trni_min64(depth - t, w->tile),
                                         panel + trni_int8_words(w, t) * TRNI_INT8_WIDTH);
            }
            for (int64_t i = 0; i < rows; i += TRNI_INT8_SLAB_ROWS)
                trni_int8_slab(w, m + i, trni_min64(rows - i, TRNI_INT8_SLAB_ROWS), n + j, wide, k, depth);
        }
    }
}

/* ---- all of it ---- */

/* a, b and start of one thread, in words. */
typedef struct trni_int8_cut {
    trni_cut blocks;
    size_t a_words, b_words, start_words;
} trni_int8_cut;

TRNI_LEAN trni_int8_work trni_int8_work_of(const trni_product *p)
{
    trni_int8_work w;
    memset(&w, 0, sizeof w);
    w.p = p;
    w.way = trni_int8_way_of(p->isa);
    if (p->a.lanes >= TRNI_UNIT_ROWS && p->unit != TRN_ISA_AUTO) trni_int8_way_tiles(&w.way, p->unit, p->isa);
    w.tile = p->numerics.int32_overflow == TRN_INT32_SATURATE ? p->numerics.k_tile : (int)TRNI_INT8_SLAB_DEPTH;
    return w;
}

TRNI_LEAN trni_int8_cut trni_int8_cut_of(const trni_int8_work *w)
{
    trni_int8_cut cut;
    memset(&cut, 0, sizeof cut);
    trni_cut_threads(&cut.blocks, w->p->a.lanes, w->p->b.lanes, w->p->a.depth, &w->way.shape);
    const int64_t depth = trni_min64(w->p->a.depth, TRNI_INT8_SLAB_DEPTH), words = trni_int8_words(w, depth);
    const int64_t rows = trni_min64(cut.blocks.rows, TRNI_INT8_SLAB_ROWS),
                  columns = trni_round_up(trni_min64(cut.blocks.columns, TRNI_INT8_SLAB_COLUMNS), TRNI_INT8_WIDTH);
    const int64_t line = TRNI_SCRATCH_ALIGN / (int64_t)sizeof(uint32_t);
    cut.a_words = (size_t)trni_round_up(words * rows, line);
    cut.b_words = (size_t)(words * columns);
    cut.start_words = (size_t)trni_round_up(trni_ceil_div(depth, w->tile) * rows, line);
    cut.blocks.thread_bytes = sizeof(uint32_t) * (cut.a_words + cut.b_words + cut.start_words);
    return cut;
}

/* Blocks of 16 rows, a panel and a tile of K that tiles have done, and those of the rows that are left. */
TRNI_DRIVER void trni_int8_count(const trni_int8_work *w, int64_t rows, int64_t columns)
{
    const int64_t each = trni_ceil_div(columns, TRNI_INT8_WIDTH) * trni_ceil_div(w->p->a.depth, w->p->numerics.k_tile);
    if (!w->p->counts || !w->way.unit.int8) return;
    __atomic_fetch_add(w->p->counts + TRNI_UNIT_WHOLE, rows / TRNI_UNIT_ROWS * each, __ATOMIC_RELAXED);
    if (rows % TRNI_UNIT_ROWS) __atomic_fetch_add(w->p->counts + TRNI_UNIT_NEVER, each, __ATOMIC_RELAXED);
}

TRNI_LEAN void trni_int8_multiply(const trni_int8_work *work, const trni_int8_cut *cut, unsigned char *scratch)
{
    const trni_cut *c = &cut->blocks;
    const int blocks = c->threads_m * c->threads_n;
    scratch += (0 - (uintptr_t)scratch) % TRNI_SCRATCH_ALIGN;
    TRNI_PARALLEL_FOR(num_threads(blocks) schedule(static, 1) if (blocks > 1))
    for (int block = 0; block < blocks; block++) {
        TRNI_FLOATS;
        const int64_t m = block / c->threads_n * c->rows, n = block % c->threads_n * c->columns;
        trni_int8_work w = *work;
        w.a = (uint32_t *)(void *)(scratch + c->thread_bytes * (size_t)block);
        w.b = w.a + cut->a_words;
        w.start = (int32_t *)(void *)(w.b + cut->b_words);
        if (w.way.unit.begin) w.way.unit.begin();
        trni_int8_block(&w, m, trni_min64(w.p->a.lanes - m, c->rows), n, trni_min64(w.p->b.lanes - n, c->columns));
        if (w.way.unit.end) w.way.unit.end();
        trni_int8_count(&w, trni_min64(w.p->a.lanes - m, c->rows), trni_min64(w.p->b.lanes - n, c->columns));
    }
}

#endif /* TRNI_ARRAY_MATMUL_INT8_H */
