/* array/sparse_kernels.h - structured sparsity at full speed: lists of stored elements, strips of b, their products.
 * Behind trn_sparse.h. SPDX-License-Identifier: MIT
 *
 * DOES: the orders whose chain steps are fused multiply-adds: any chain count, layout and merge. One tile is up to 128
 *     stored elements of a row of a; only these are multiplied.
 * DOES NOT: know what dst is, check tags or split work: trn_sparse.h does.
 *
 * Every multiply-add of a row of a needs a row of b of its own, so b must come
 * from the first-level cache, and at the rate of two loads per cycle the loads of b and the broadcasts of a are what
 * bounds the speed. Hence the two forms of a strip, 32 columns of the (at most 512) rows of b that a tile can meet:
 *
 *     halves   BF16 and FP8: two columns to a word of 32 bits, column j low, j + 16 high. A load of 64 bytes feeds two
 *              vectors of sums, through a shift and a mask that cost no load; the whole strip of a 4:16 tile is 32 KiB.
 *     floats   all others, and everything in plain C: twice as large, twice as many loads
 *
 * and the list of a gang: for each of eight rows the 128 values as floats, and where in a strip each of them finds its
 * row of b. It is made once for all strips; chains are interleaved in it, as they are in memory by default.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are; bench/trnbench sparse for the speed.
 */
#ifndef TRNI_ARRAY_SPARSE_KERNELS_H
#define TRNI_ARRAY_SPARSE_KERNELS_H

#include "sparse_pack.h"
#include "systolic_panels.h"

enum {
    TRNI_SPARSE_WIDTH = 32, /* columns of a strip */
    TRNI_SPARSE_GANG = 8,   /* rows of a gang */
    TRNI_SPARSE_LINE = 64,  /* bytes of a row of a strip of halves; floats take two of them */
    /* Rows of b that a tile can meet, at most: it may begin and end inside a window. */
    TRNI_SPARSE_DEPTH = ((int)TRNI_ARRAY_ROWS + TRNI_SPARSE_MOST) * TRNI_SPARSE_WINDOW / TRNI_SPARSE_MOST
};

/* ---- tiles ---- */

/* The i-th element of chain c stands at place i * chains + c of a list. No chain is longer than the one before it. */
typedef struct trni_sparse_order {
    int chains, rows;
    int length[TRNI_MAX_CHAINS];
    bool pairwise;
    bool moved;                      /* places are not those of memory: */
    uint16_t place[TRNI_ARRAY_ROWS]; /* of each stored element */
} trni_sparse_order;

TRNI_FN trni_sparse_order trni_sparse_order_of(const trn_numerics *n, int rows)
{
    trni_chains c;
    memset(&c, 0, sizeof c);
    trni_chains_init(&c, n, 0, rows);
    trni_sparse_order o;
    o.chains = n->chains;
    o.rows = rows;
    o.pairwise = n->merge == TRN_MERGE_PAIRWISE;
    o.moved = n->chain_layout != TRN_CHAINS_INTERLEAVED;
    memcpy(o.length, c.length, sizeof o.length);
    for (int chain = 0, slot = 0; chain < n->chains; chain++)
        for (int i = 0; i < c.length[chain]; i++) o.place[c.row[slot++]] = (uint16_t)(i * n->chains + chain);
    return o;
}

typedef struct trni_sparse_tile {
    trni_sparse_order order;
    int64_t first, k;               /* stored elements before the tile; the row of b where its first window begins */
    int depth;                      /* rows of b that it can meet */
    uint16_t base[TRNI_ARRAY_ROWS]; /* of each stored element: its window's first row of b, counted from k, in lines */
} trni_sparse_tile;

/* The tile that begins after `first` of `stored` elements. */
TRNI_FN trni_sparse_tile trni_sparse_tile_of(const trn_numerics *n, trn_sparse_pattern p, int64_t first, int64_t stored)
{
    const int rows = (int)trni_min64(stored - first, n->k_tile);
    trni_sparse_tile t;
    int place = (int)(first % p.m), window = 0;
    t.order = trni_sparse_order_of(n, rows);
    t.first = first;
    t.k = first / p.m * p.n;
    for (int i = 0; i < rows; i++) {
        t.base[i] = (uint16_t)(window * TRNI_SPARSE_LINE);
        if (++place < p.m) continue;
        place = 0;
        window += p.n;
    }
    t.depth = window + (place ? p.n : 0);
    return t;
}

/* ---- the list of a gang ---- */

/* Eight rows of a over one tile. where: byte offset in a strip of halves, half the one in a strip of floats. */
typedef struct trni_sparse_list {
    float value[TRNI_SPARSE_GANG][TRNI_ARRAY_ROWS];
    uint16_t where[TRNI_SPARSE_GANG][TRNI_ARRAY_ROWS];
} trni_sparse_list;

/* Stored elements in memory: values and tags, both with lanes (rows of a) and depth. */
typedef struct trni_sparse_stored {
    const trni_operand *values;
    const trni_loader *loader;
    const unsigned char *tags;
    int64_t tag_lane, tag_depth; /* strides */
} trni_sparse_stored;

TRNI_FN const unsigned char *trni_sparse_tag_at(const trni_sparse_stored *a, int64_t lane, int64_t i)
{
    return a->tags + lane * a->tag_lane + i * a->tag_depth;
}

TRNI_INLINE void trni_sparse_find_body(uint16_t *__restrict where, const uint16_t *__restrict base,
                                       const unsigned char *__restrict tag, int n)
{
    for (int i = 0; i < n; i++) where[i] = (uint16_t)(base[i] + tag[i] * TRNI_SPARSE_LINE);
}
TRNI_DISPATCH(trni_sparse_find, (uint16_t * where, const uint16_t *base, const unsigned char *tag, int n),
              (where, base, tag, n))

/* Lanes [lane, lane + lanes) whose values do not lie side by side along the depth, but perhaps along the lanes. */
TRNI_FN void trni_sparse_list_values(const trni_sparse_stored *a, int64_t lane, int lanes, int64_t first, int rows,
                                     trni_sparse_list *list)
{
    float across[TRNI_SPARSE_GANG];
    for (int i = 0; i < rows; i++) {
        if (a->values->lane_stride == 1)
            trni_loader_line(a->loader, across, trni_operand_at(a->values, lane, first + i), (size_t)lanes);
        for (int r = 0; r < lanes; r++)
            list->value[r][i] =
                a->values->lane_stride == 1 ? across[r] : trni_float(trni_operand_bits(a->values, lane + r, first + i));
    }
}

/* From the order of memory to that of chains. */
TRNI_FN void trni_sparse_list_move(const trni_sparse_order *o, float *value, uint16_t *where)
{
    float old_value[TRNI_ARRAY_ROWS];
    uint16_t old_where[TRNI_ARRAY_ROWS];
    memcpy(old_value, value, sizeof old_value);
    memcpy(old_where, where, sizeof old_where);
    for (int i = 0; i < o->rows; i++) {
        value[o->place[i]] = old_value[i];
        where[o->place[i]] = old_where[i];
    }
}

/* The list of lanes [lane, lane + lanes) over one tile; the rest of the gang does what the last lane does. */
TRNI_FN void trni_sparse_list_make(const trni_sparse_stored *a, const trni_sparse_tile *t, int64_t lane, int lanes,
                                   trn_isa isa, trni_sparse_list *list)
{
    const int rows = t->order.rows;
    unsigned char gathered[TRNI_ARRAY_ROWS];
    if (a->values->depth_stride != 1) trni_sparse_list_values(a, lane, lanes, t->first, rows, list);
    for (int r = 0; r < lanes; r++) {
        const unsigned char *tag = trni_sparse_tag_at(a, lane + r, t->first);
        if (a->values->depth_stride == 1)
            trni_loader_line(a->loader, list->value[r], trni_operand_at(a->values, lane + r, t->first), (size_t)rows);
        if (a->tag_depth != 1) trni_move((char *)gathered, 1, (const char *)tag, a->tag_depth, 1, (size_t)rows);
        trni_sparse_find_for(isa)(list->where[r], t->base, a->tag_depth != 1 ? gathered : tag, rows);
    }
    for (int r = 0; r < lanes && t->order.moved; r++) trni_sparse_list_move(&t->order, list->value[r], list->where[r]);
    for (int r = lanes; r < TRNI_SPARSE_GANG; r++) {
        memcpy(list->value[r], list->value[lanes - 1], sizeof list->value[r]);
        memcpy(list->where[r], list->where[lanes - 1], sizeof list->where[r]);
    }
}

/* The memory that the next list will be made of, if its lines run along K. */
TRNI_FN void trni_sparse_want_list(const trni_sparse_stored *a, const trni_sparse_tile *t, int64_t lane, int64_t lanes)
{
    const int64_t bytes = t->order.rows * a->values->bytes;
    for (int64_t m = lane; m < lane + lanes; m++) {
        const unsigned char *value = trni_operand_at(a->values, m, t->first), *tag = trni_sparse_tag_at(a, m, t->first);
        for (int64_t at = 0; at < bytes && a->values->depth_stride == 1; at += TRNI_SPARSE_LINE)
            __builtin_prefetch(value + at);
        for (int64_t at = 0; at < t->order.rows && a->tag_depth == 1; at += TRNI_SPARSE_LINE)
            __builtin_prefetch(tag + at);
    }
}

/* ---- strips of b ---- */

/* Are there kernels that take halves, and do 16 bits hold every number of this operand that reaches the array? */
TRNI_FN bool trni_sparse_halves(const trni_operand *b, trn_isa isa)
{
    const bool simd = TRNI_INTRINSICS && TRNI_X86 && (isa == TRN_ISA_AVX512 || isa == TRN_ISA_AVX2);
    const bool neon = TRNI_INTRINSICS && TRNI_AARCH64;
    return (simd || neon) && b->info.kind == TRN_KIND_FLOAT && b->info.mantissa_bits <= 7;
}

TRNI_FN int64_t trni_sparse_row_bytes(bool halves) { return halves ? TRNI_SPARSE_LINE : 2 * TRNI_SPARSE_LINE; }

/* One row of b, cut into strips `step` bytes apart: floats to halves, BF16 to halves, or floats to floats. */
typedef void trni_sparse_cutter(unsigned char *dst, int64_t step, const void *line, int64_t strips);

TRNI_INLINE void trni_sparse_cut_halves_body(unsigned char *dst, int64_t step, const void *line, int64_t strips)
{
    enum { half = TRNI_SPARSE_WIDTH / 2 };
    const trni_any32 *__restrict x = (const trni_any32 *)line;
    for (int64_t s = 0; s < strips; s++, dst += step, x += TRNI_SPARSE_WIDTH) {
        trni_any32 *__restrict y = (trni_any32 *)(void *)dst;
        for (int j = 0; j < half; j++) y[j] = x[j] >> 16 | (x[half + j] & 0xffff0000u);
    }
}
TRNI_DISPATCH(trni_sparse_cut_halves, (unsigned char *dst, int64_t step, const void *line, int64_t strips),
              (dst, step, line, strips))

TRNI_INLINE void trni_sparse_cut_bf16_body(unsigned char *dst, int64_t step, const void *line, int64_t strips)
{
    enum { half = TRNI_SPARSE_WIDTH / 2 };
    const trni_any16 *__restrict x = (const trni_any16 *)line;
    for (int64_t s = 0; s < strips; s++, dst += step, x += TRNI_SPARSE_WIDTH) {
        trni_any32 *__restrict y = (trni_any32 *)(void *)dst;
        for (int j = 0; j < half; j++) y[j] = x[j] | (uint32_t)x[half + j] << 16;
    }
}
TRNI_DISPATCH(trni_sparse_cut_bf16, (unsigned char *dst, int64_t step, const void *line, int64_t strips),
              (dst, step, line, strips))

TRNI_FN void trni_sparse_cut_floats(unsigned char *dst, int64_t step, const void *line, int64_t strips)
{
    enum { bytes = 2 * TRNI_SPARSE_LINE };
    for (int64_t s = 0; s < strips; s++) memcpy(dst + s * step, (const unsigned char *)line + s * bytes, bytes);
}

/* How an operand becomes strips. */
typedef struct trni_sparse_cutting {
    const trni_operand *b;
    const trni_loader *loader;
    trni_transpose_fn *transpose;
    trni_sparse_cutter *cut, *direct; /* from floats; from whole strips of b as it stands, or null */
    int64_t row_bytes;
} trni_sparse_cutting;

TRNI_FN trni_sparse_cutting trni_sparse_cutting_of(const trni_operand *b, const trni_loader *loader, trn_isa isa)
{
    const bool halves = trni_sparse_halves(b, isa);
    const trni_sparse_cutting c = { b,
                                    loader,
                                    trni_array_of(1, isa).transpose,
                                    halves ? trni_sparse_cut_halves_for(isa) : trni_sparse_cut_floats,
                                    halves && b->format == TRN_BF16 ? trni_sparse_cut_bf16_for(isa)
                                    : b->format == TRN_F32          ? trni_sparse_cut_floats
                                                                    : NULL,
                                    trni_sparse_row_bytes(halves) };
    return c;
}

/* From one strip to the next. The extra line keeps rows of neighbouring strips out of the same places of a cache. */
TRNI_FN int64_t trni_sparse_strip_step(const trni_sparse_cutting *c, int depth)
{
    return depth * c->row_bytes + TRNI_SPARSE_LINE;
}

/* Lines that run along the columns: `whole` strips as they stand or all columns by way of floats. */
TRNI_FN void trni_sparse_strips_along(const trni_sparse_cutting *c, int64_t n, int64_t columns, int64_t k, int depth,
                                      unsigned char *dst)
{
    enum { stretch = 512 };
    const int64_t step = trni_sparse_strip_step(c, depth), whole = c->direct ? columns / TRNI_SPARSE_WIDTH : 0;
    float line[stretch];
    for (int r = 0; r < depth && whole; r++)
        c->direct(dst + r * c->row_bytes, step, trni_operand_at(c->b, n, k + r), whole);
    for (int64_t j = whole * TRNI_SPARSE_WIDTH; j < columns; j += stretch) {
        const int64_t count = trni_min64(columns - j, stretch), strips = trni_ceil_div(count, TRNI_SPARSE_WIDTH);
        memset(line, 0, sizeof line);
        for (int r = 0; r < depth; r++) {
            trni_loader_line(c->loader, line, trni_operand_at(c->b, n + j, k + r), (size_t)count);
            c->cut(dst + j / TRNI_SPARSE_WIDTH * step + r * c->row_bytes, step, line, strips);
        }
    }
}

/* `lanes` columns of `rows` <= TRNI_ARRAY_ROWS rows of b, whose lines do not run along the columns, as floats
 * [rows][width]. */
TRNI_FN void trni_sparse_turned(const trni_sparse_cutting *c, int64_t n, int lanes, int64_t k, int rows, float *panel)
{
    enum { group = 16, width = TRNI_SPARSE_WIDTH };
    const trni_operand *b = c->b;
    float line[(int)group * TRNI_ARRAY_ROWS];
    uint16_t slot[TRNI_ARRAY_ROWS];
    for (int i = 0; i < rows; i++) slot[i] = (uint16_t)i;
    for (int first = 0; first < lanes && b->depth_stride == 1; first += group) {
        const int count = lanes - first < group ? lanes - first : group;
        for (int i = 0; i < count; i++)
            trni_loader_line(c->loader, line + i * TRNI_ARRAY_ROWS, trni_operand_at(b, n + first + i, k), (size_t)rows);
        c->transpose(panel + first, width, slot, line, TRNI_ARRAY_ROWS, count, rows);
    }
    for (int r = 0; r < rows && b->depth_stride != 1; r++)
        for (int i = 0; i < lanes; i++) panel[r * width + i] = trni_float(trni_operand_bits(b, n + i, k + r));
}

/* Columns [n, n + columns) of the rows [k, k + depth) of b, strip after strip; columns that fill the last one are 0. */
TRNI_FN void trni_sparse_strips(const trni_sparse_cutting *c, int64_t n, int64_t columns, int64_t k, int depth,
                                unsigned char *dst)
{
    enum { width = TRNI_SPARSE_WIDTH };
    const int64_t step = trni_sparse_strip_step(c, depth);
    float panel[(int)TRNI_ARRAY_ROWS * width];
    if (c->b->lane_stride == 1) {
        trni_sparse_strips_along(c, n, columns, k, depth, dst);
        return;
    }
    for (int64_t j = 0; j < columns; j += width, dst += step)
        for (int r = 0; r < depth; r += TRNI_ARRAY_ROWS) {
            const int rows = depth - r < TRNI_ARRAY_ROWS ? depth - r : TRNI_ARRAY_ROWS;
            memset(panel, 0, sizeof panel);
            trni_sparse_turned(c, n + j, (int)trni_min64(columns - j, width), k + r, rows, panel);
            for (int i = 0; i < rows; i++) c->cut(dst + (r + i) * c->row_bytes, step, panel + i * width, 1);
        }
}

/* ---- micro-kernels ----
 *
 * A list times a strip over one tile: out[i][j] = (in ? in[i][j] + : ) merged chains, for eight rows and 32 columns. */

#define TRNI_SPARSE_PARAMS                                                                                             \
    const trni_sparse_list *list, const unsigned char *strip, const trni_sparse_order *order, const float *in,         \
        ptrdiff_t in_step, float *out, ptrdiff_t out_step
#define TRNI_SPARSE_ARGS list, strip, order, in, in_step, out, out_step

typedef void trni_sparse_micro(TRNI_SPARSE_PARAMS);

/* One row, one chain after the other. In plain C strips are floats: gcc 12 would not vectorise loops of 16 words. */
TRNI_INLINE void trni_sparse_row_times_strip(const float *value, const uint16_t *where, const unsigned char *strip,
                                             const trni_sparse_order *order,
                                             float t[TRNI_MAX_CHAINS][TRNI_SPARSE_WIDTH])
{
    for (int c = 0; c < order->chains; c++) {
        float s[TRNI_SPARSE_WIDTH]; /* in registers: no memset, no memcpy */
        for (int j = 0; j < TRNI_SPARSE_WIDTH; j++) s[j] = 0;
        for (int i = 0, e = c; i < order->length[c]; i++, e += order->chains) {
            const float *x = (const float *)(const void *)(strip + 2 * (size_t)where[e]);
            __asm__ volatile(""); /* or gcc 12 joins two elements into one scalar loop: a twentieth of the speed */
            for (int j = 0; j < TRNI_SPARSE_WIDTH; j++) s[j] = __builtin_fmaf(value[e], x[j], s[j]);
        }
        for (int j = 0; j < TRNI_SPARSE_WIDTH; j++) t[c][j] = s[j];
    }
}

/* t[0] = the chains, merged. */
TRNI_INLINE void trni_sparse_merge(float t[TRNI_MAX_CHAINS][TRNI_SPARSE_WIDTH], int chains, bool pairwise)
{
    for (int c = 1; c < chains && !pairwise; c++)
        for (int j = 0; j < TRNI_SPARSE_WIDTH; j++) t[0][j] = t[0][j] + t[c][j];
    for (int apart = 1; apart < chains && pairwise; apart *= 2)
        for (int c = 0; c < chains; c += 2 * apart)
            for (int j = 0; j < TRNI_SPARSE_WIDTH; j++) t[c][j] = t[c][j] + t[c + apart][j];
}

TRNI_INLINE void trni_sparse_plain_body(TRNI_SPARSE_PARAMS)
{
    for (int r = 0; r < TRNI_SPARSE_GANG; r++) {
        float t[TRNI_MAX_CHAINS][TRNI_SPARSE_WIDTH];
        trni_sparse_row_times_strip(list->value[r], list->where[r], strip, order, t);
        trni_sparse_merge(t, order->chains, order->pairwise);
        for (int j = 0; j < TRNI_SPARSE_WIDTH; j++)
            out[r * out_step + j] = in ? in[r * in_step + j] + t[0][j] : t[0][j];
    }
}
#if !(TRNI_INTRINSICS && TRNI_AARCH64)
TRNI_DISPATCH(trni_sparse_plain, (TRNI_SPARSE_PARAMS), (TRNI_SPARSE_ARGS))
#endif

#if TRNI_INTRINSICS && TRNI_X86
#include "../simd/sparse_kernels_avx2.h"
#include "../simd/sparse_kernels_avx512.h"
#endif
#if TRNI_INTRINSICS && TRNI_AARCH64
#include "../simd/sparse_kernels_neon.h"
#endif

TRNI_FN trni_sparse_micro *trni_sparse_micro_of(bool halves, trn_isa isa)
{
#if TRNI_INTRINSICS && TRNI_X86
    if (isa == TRN_ISA_AVX512) return halves ? trni_simd_sparse_halves_avx512 : trni_simd_sparse_floats_avx512;
    if (isa == TRN_ISA_AVX2) return halves ? trni_simd_sparse_halves_avx2 : trni_simd_sparse_floats_avx2;
#endif
#if TRNI_INTRINSICS && TRNI_AARCH64
    (void)isa;
    return halves ? trni_simd_sparse_halves_neon : trni_simd_sparse_floats_neon;
#else
    (void)halves;
    return trni_sparse_plain_for(isa);
#endif
}

#endif /* TRNI_ARRAY_SPARSE_KERNELS_H */
