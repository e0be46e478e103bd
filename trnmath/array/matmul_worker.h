/* array/matmul_worker.h - how a product is cut into blocks, and what one thread has to work on its block.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: the shape of the cuts, the scratch they take, a thread's packed operands and PSUM.
 * DOES NOT: multiply: array/matmul_slabs.h and array/matmul_row.h do.
 *
 * KNOWN FROM: blocking after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
 *     34(3), 2008; the sizes are measured.
 */
#ifndef TRNI_ARRAY_MATMUL_WORKER_H
#define TRNI_ARRAY_MATMUL_WORKER_H

#include "../base/threads.h"
#include "tensor_engine.h"
#include "matmul_pairs.h"
#include "matmul_quads.h"
#include "matmul_unit.h"

/* ---- how the work is cut ----
 *
 * Each thread owns a block of dst and runs alone: for each slab of TRNI_SLAB_COLUMNS columns and each TRNI_SLAB_DEPTH
 * of K, b is packed once (a few MiB, for the outer cache); for each TRNI_SLAB_ROWS rows, a is packed (for the
 * second-level cache); then panels of b stay in the first-level cache while strips of a pass by. A product of at most
 * TRNI_FEW_ROWS rows uses each panel of b once: as much of a as the second-level cache holds (TRNI_FEW_FLOATS) meets
 * panel after panel, which are packed already, or just in time, a few tiles wide, while memory is asked for the next
 * ones ("thin"). PSUM is so read and written once for many tiles. Rows of 32-bit operands are packed whole, one tile
 * deep: fetched in pieces, they cost half the speed from memory (measured). The cuts do not touch the order of sums:
 * only tile boundaries do, and they are the definition's. */

enum {
    TRNI_SLAB_COLUMNS = 1024,
    TRNI_SLAB_DEPTH = 1024,
    TRNI_SLAB_ROWS = 96,
    TRNI_ROW_COLUMNS = 4096, /* of a single row: a page of memory and more from each line of b */
    TRNI_ROW_BLOCKS = (int)TRNI_MAX_DEPTH / TRNI_SCALE_BLOCK + 1, /* of MX scales that a tile has, whole or not */
    TRNI_FEW_ROWS = 192,
    TRNI_PAIRS_BLOCK = 8, /* panels whose words stay in the second-level cache */
    TRNI_FEW_FLOATS = 1 << 17,
    TRNI_THIN_PANELS = 4,     /* that are packed together: memory is read 256 bytes of BF16 at a time */
    TRNI_PAIRS_FEW_ROWS = 32, /* of words: 128 rows are 1.1 to 1.18 times as fast if they are not few (measured) */
    TRNI_PAIRS_FEW_NUMBERS = 1 << 17, /* of b; as fewer are at hand, panels need not be made in time */
    TRNI_PAIRS_THIN_PANELS = 32, /* of words: 2 KiB of BF16 at a time is 1.7 times as fast as 256 bytes (measured) */
    TRNI_PSUM_ROWS = 384,        /* rows of dst whose PSUM is kept in scratch when dst itself cannot hold it */
    TRNI_SCRATCH_ALIGN = 64
};

typedef struct trni_cut {
    int threads_m, threads_n;
    int64_t rows, columns; /* of one thread's block, at most */
    bool direct;           /* dst is F32, aligned, with unit column stride: PSUM lives in it */
    bool few, thin;
    bool single, dots; /* one row of a, and b's rows, or columns, in memory order: b is not packed */
    bool unit;         /* a matrix unit's tiles do what they can */
    bool pairs;        /* or its pairs */
    int64_t slab_columns, slab_depth;
    size_t a_floats, b_floats, local_floats, psum_floats, row_floats, pairs_floats, unit_bytes, thread_bytes;
} trni_cut;

/* What a block costs, in steps of the tallest kernel: strips of fewer rows take longer for each row, a row of a costs
 * what ten more columns would to turn and pack, a column of b six more rows. Blocks side by side share pages of dst,
 * whose lines one thread's prefetcher takes from another (12 % of 256^3 on two threads of distant cores, measured). */
TRNI_FN double trni_block_cost(int64_t rows, int64_t columns, int tallest)
{
    const int64_t short_rows = rows % tallest;
    return ((double)rows + (short_rows ? 1 : 0) + 6) * ((double)columns + 10);
}

/* Threads along M and N so that the largest block costs least, and no thread is without work. Rows are dealt out in
 * fours, which have a kernel, and columns in panels. */
TRNI_DRIVER void trni_cut_threads(trni_cut *cut, int64_t m, int64_t n, int64_t k, const trni_array *array)
{
    const double worth_a_thread = 1 << 18; /* multiply-adds; about what waking a thread costs */
    const int64_t unit_m = trni_min64(4, array->rows[0]), unit_n = array->width;
    const double work = (double)m * (double)n * (double)k / worth_a_thread;
    cut->threads_m = cut->threads_n = 1;
    cut->rows = m;
    cut->columns = n;
    if (work < 2) return;
    int threads = trni_threads();
    if (work < threads) threads = (int)work;

    double best = 0;
    for (int tm = 1; tm <= threads; tm++) {
        const int tn = threads / tm;
        const int64_t rows = trni_round_up(trni_ceil_div(m, tm), unit_m),
                      columns = trni_round_up(trni_ceil_div(n, tn), unit_n);
        const double cost = trni_block_cost(rows, columns, array->rows[0]);
        if (best == 0 || cost < best) {
            best = cost;
            cut->rows = trni_min64(rows, m);
            cut->columns = trni_min64(columns, n);
        }
    }
    cut->threads_m = (int)trni_ceil_div(m, cut->rows);
    cut->threads_n = (int)trni_ceil_div(n, cut->columns);
}

/* Can array/matmul_dots.h do it? Four numbers of a column that follow each other belong to four chains then. */
enum { TRNI_DOT_CHAINS = 4 };

TRNI_FN bool trni_dots_apply(const trni_product *p)
{
    return p->a.lanes == 1 && p->b.depth_stride == 1 && p->b.lane_stride != 1 && p->spread == TRNI_SINGLE &&
           p->numerics.chains == TRNI_DOT_CHAINS && p->numerics.chain_layout == TRN_CHAINS_INTERLEAVED;
}

/* Numbers of a that it decodes at a time, whole tiles of them. */
TRNI_FN int64_t trni_dot_depth(const trni_product *p)
{
    enum { most = 4096 };
    return trni_min64(trni_round_up(p->a.depth, p->numerics.k_tile), most / p->numerics.k_tile * p->numerics.k_tile);
}

/* Whole tiles: of many rows, TRNI_SLAB_DEPTH; of few, what of a stays in the second-level cache, or just one tile when
 * b is packed in whole rows. */
TRNI_FN int64_t trni_slab_depth(const trni_product *p, const trni_cut *cut)
{
    const int64_t deep = trni_tile_depth(p), rows = cut->rows > 8 ? cut->rows : 8;
    const int64_t most = !cut->few ? (int64_t)TRNI_SLAB_DEPTH : cut->thin || p->packed ? TRNI_FEW_FLOATS / rows : deep;
    return most > deep ? most / deep * deep : deep;
}

/* The vectors' strips and panels; beside tiles the tallest strip is theirs. */
TRNI_DRIVER trni_array trni_matmul_array(const trni_product *p, bool unit)
{
    trni_array array = trni_array_of(trni_spread_group(p->spread), p->isa);
    if (unit) {
        array.rows[0] = TRNI_UNIT_ROWS;
        array.micro[0] = NULL;
    }
    return array;
}

TRNI_FN int64_t trni_slab_tiles(const trni_product *p, const trni_cut *cut)
{
    return trni_ceil_div(trni_min64(p->a.depth, cut->slab_depth), trni_tile_depth(p));
}

/* Of a full tile, and of the last one; of depth 0 where there is none. */
TRNI_DRIVER void trni_product_maps(const trni_product *p, trni_map *whole, trni_map *tail)
{
    const int deep = (int)trni_tile_depth(p), rest = (int)(p->a.depth % deep);
    whole->depth = tail->depth = 0;
    if (p->a.depth >= deep) trni_map_init(whole, &p->numerics, 0, deep, p->spread);
    if (rest) trni_map_init(tail, &p->numerics, 0, rest, p->spread);
}

TRNI_FN int64_t trni_thin_panels(const trni_cut *cut) { return cut->pairs ? TRNI_PAIRS_THIN_PANELS : TRNI_THIN_PANELS; }

/* Of a matrix unit's words for one slab. */
TRNI_DRIVER size_t trni_unit_work_init(trni_unit_work *u, const trni_cut *cut, const trni_product *p,
                                       const trni_array *array, const trni_map *whole, const trni_map *tail)
{
    const int64_t rows = cut->few ? cut->rows : (int64_t)TRNI_SLAB_ROWS,
                  some = cut->few ? (int64_t)TRNI_THIN_PANELS * array->width : cut->slab_columns;
    trni_unit_work_maps(u, whole, tail);
    return trni_unit_work_lay(u, array, rows, trni_min64(cut->columns, some), trni_slab_tiles(p, cut));
}

TRNI_LEAN size_t trni_cut_unit_bytes(const trni_cut *cut, const trni_product *p, const trni_array *array)
{
    trni_unit_work u;
    trni_map whole, tail;
    trni_product_maps(p, &whole, &tail);
    return (size_t)trni_round_up((int64_t)trni_unit_work_init(&u, cut, p, array, &whole, &tail), TRNI_SCRATCH_ALIGN);
}

/* Words of b are half as large, and a strip takes half as long: fewer rows than elsewhere are few. */
TRNI_FN bool trni_pairs_few(const trni_product *p, int64_t rows)
{
    return rows <= TRNI_PAIRS_FEW_ROWS && (double)p->b.lanes * (double)p->b.depth > (double)TRNI_PAIRS_FEW_NUMBERS;
}

/* `array` is what trni_matmul_array gives with or without a `unit`. */
TRNI_DRIVER void trni_cut_of(trni_cut *cut, const trni_product *p, const trni_array *array, bool unit)
{
    cut->unit = unit;
    trni_cut_threads(cut, p->a.lanes, p->b.lanes, p->a.depth, array);
    cut->single = p->a.lanes == 1 && p->b.lane_stride == 1 && p->b.lanes >= array->width && !p->packed;
    cut->dots = trni_dots_apply(p) && !p->packed;
    cut->direct = p->dst.format == TRN_F32 && p->dst.stride[1] == 1 && (uintptr_t)p->dst.data % sizeof(float) == 0;
    cut->pairs = !cut->single && !cut->dots && (p->packed ? p->words : trni_pairs_apply(p));
    cut->few = cut->pairs ? trni_pairs_few(p, cut->rows) : cut->rows <= TRNI_FEW_ROWS;
    cut->thin = cut->few && !p->packed && (p->b.bytes <= 2 || p->b.lane_stride != 1);
    cut->slab_columns = cut->single || cut->dots ? TRNI_ROW_COLUMNS : TRNI_SLAB_COLUMNS;
    /* is b, or PSUM, kept in scratch? */
    const bool kept = cut->single || cut->dots || !cut->direct || !(cut->thin || p->packed);
    if (cut->few && !kept) cut->slab_columns = cut->columns;
    const size_t columns = (size_t)trni_round_up(trni_min64(cut->columns, cut->slab_columns), TRNI_WEAVE);
    cut->slab_depth = trni_slab_depth(p, cut);
    const int64_t lines = trni_round_up(p->a.depth, trni_spread_group(p->spread)); /* a last, odd pair has two */
    const size_t depth = (size_t)trni_min64(lines, cut->slab_depth),
                 rows = (size_t)(cut->few ? cut->rows : (int64_t)TRNI_SLAB_ROWS);
    const int64_t panels = trni_ceil_div(cut->columns, array->width);
    const size_t together = cut->thin ? (size_t)trni_thin_panels(cut) : 1,
                 span = (size_t)trni_min64(panels, (int64_t)together) * (size_t)array->width,
                 one = (size_t)trni_min64(lines, trni_tile_depth(p));
    const size_t align = TRNI_SCRATCH_ALIGN / sizeof(float);
    cut->a_floats = (size_t)trni_round_up((int64_t)(depth * rows), (int64_t)align);
    cut->b_floats = cut->dots || p->packed ? 0
                    : cut->single          ? (size_t)p->numerics.chains * columns
                    : cut->thin            ? one * span
                                           : depth * columns;
    cut->local_floats = rows * span;
    cut->psum_floats = cut->direct ? 0 : columns * (size_t)trni_min64(cut->rows, TRNI_PSUM_ROWS);
    cut->row_floats = cut->single ? TRNI_ROW_COLUMNS + (size_t)TRNI_ROW_BLOCKS * TRNI_ROW_COLUMNS / sizeof(float) : 0;
    if (cut->dots) cut->row_floats = (size_t)trni_dot_depth(p);
    cut->pairs_floats = cut->pairs ? trni_pairs_bytes() / sizeof(float) : 0;
    cut->unit_bytes = cut->unit ? trni_cut_unit_bytes(cut, p, array) : 0;
    const size_t floats =
        cut->a_floats + cut->b_floats + cut->local_floats + cut->psum_floats + cut->row_floats + cut->pairs_floats;
    cut->thread_bytes = (size_t)trni_round_up((int64_t)(floats * sizeof(float) + cut->unit_bytes), TRNI_SCRATCH_ALIGN);
}

TRNI_FN size_t trni_cut_bytes(const trni_cut *cut)
{
    return cut->thread_bytes * (size_t)cut->threads_m * (size_t)cut->threads_n + TRNI_SCRATCH_ALIGN;
}

/* ---- one thread's work ---- */

typedef struct trni_worker {
    const trni_product *p;
    const trni_cut *cut;
    trni_array array;
    trni_loader loader_a, loader_b;
    trni_map whole, tail;      /* of a full tile, and of the last one */
    trni_encoder psum_encoder; /* BF16 PSUM */
    float *a, *b, *local, *psum;
    trni_unit_work unit;   /* where cut->unit */
    trni_quads quads;      /* words in the places of a and b; or none */
    trni_pairs_work pairs; /* likewise; off, or none */
    int64_t *pairs_count;  /* [2]: strips times panels that the vectors did, that pairs did */
    bool *wild;            /* did pairs see numbers whose sums might be no numbers? */
    float *row; /* of a single row: [TRNI_ROW_COLUMNS] sums, then [TRNI_ROW_BLOCKS][TRNI_ROW_COLUMNS] scales' bytes; or,
                 * for dots, [trni_dot_depth] numbers of a */
} trni_worker;

/* PSUM of a region of dst: [row][step] floats. */
typedef struct trni_psum {
    float *at;
    int64_t step;
} trni_psum;

/* From here on the worker packs words of pairs, in strips of other heights. */
TRNI_DRIVER void trni_worker_take_pairs(trni_worker *w, void *room)
{
    static const int rows[2][TRNI_KERNELS] = { { TRNI_PAIRS_ROWS, 4, 1, 1, 1 }, { TRNI_PAIRS_ROWS, 1, 1, 1, 1 } };
    trni_pairs_init(&w->pairs, w->p, &w->whole, &w->tail, room);
    w->pairs.asked = w->cut->thin;
    if (w->pairs.on) memcpy(w->array.rows, rows[trni_spread_group(w->p->spread) - 1], sizeof rows[0]);
}

/* `scratch` is aligned and holds cut->thread_bytes. */
TRNI_DRIVER void trni_worker_init(trni_worker *w, const trni_product *p, const trni_cut *cut, unsigned char *scratch)
{
    w->p = p;
    w->cut = cut;
    w->array = trni_matmul_array(p, cut->unit);
    trni_loader_init(&w->loader_a, &p->a, p->isa);
    trni_loader_init(&w->loader_b, &p->b, p->isa);
    trni_product_maps(p, &w->whole, &w->tail);
    w->quads.multiply = NULL;
    if (p->numerics.psum_format == TRN_BF16) trni_psum_encoder_init(&w->psum_encoder, p);
    w->a = (float *)(void *)(scratch);
    w->b = w->a + cut->a_floats;
    w->local = w->b + cut->b_floats;
    w->psum = w->local + cut->local_floats;
    w->row = w->psum + cut->psum_floats;
    w->pairs.on = false;
    if (cut->pairs) trni_worker_take_pairs(w, w->row + cut->row_floats);
    if (!cut->unit) return;
    trni_unit_work_init(&w->unit, cut, p, &w->array, &w->whole, &w->tail);
    trni_unit_work_kernels(&w->unit, p);
    trni_unit_work_place(&w->unit, scratch + cut->thread_bytes - cut->unit_bytes, trni_slab_tiles(p, cut));
}

/* MXFP4, unless a matrix unit has it: from here on the worker packs words, in strips of other heights. */
TRNI_DRIVER void trni_worker_take_quads(trni_worker *w)
{
    static const int rows[TRNI_KERNELS] = { TRNI_QUADS_ROWS, 4, 3, 2, 1 };
    if ((w->cut->unit && !w->unit.hopeless) || w->cut->single || w->cut->dots || !trni_quads_apply(w->p)) return;
    trni_quads_init(&w->quads, &w->whole, &w->tail);
    if (w->quads.multiply) memcpy(w->array.rows, rows, sizeof rows);
}

/* Numbers along K of the tile at k, in a slab that ends at `end`. */
TRNI_FN int trni_tile_deep(const trni_worker *w, int64_t k, int64_t end)
{
    return (int)trni_min64(end - k, trni_tile_depth(w->p));
}

TRNI_FN const trni_map *trni_tile_map(const trni_worker *w, int depth)
{
    return depth == w->whole.depth ? &w->whole : &w->tail;
}

/* Numbers that a lane of a packed tile takes, or words. */
TRNI_FN int trni_tile_lines(const trni_worker *w, const trni_map *map)
{
    return w->pairs.on ? trni_pairs_map_at(&w->pairs, map)->words + 1 : map->lines;
}

/* And a lane of the whole tiles between k0 and k. */
TRNI_FN int64_t trni_tiles_lines(const trni_worker *w, int64_t k0, int64_t k)
{
    return w->pairs.on ? (k - k0) / trni_tile_depth(w->p) * (w->pairs.whole.words + 1) : k - k0;
}

/* And a lane of all tiles. */
TRNI_DRIVER int64_t trni_all_lines(const trni_worker *w)
{
    const int64_t depth = w->p->b.depth, whole = depth / trni_tile_depth(w->p) * trni_tile_depth(w->p);
    return trni_tiles_lines(w, 0, whole) + (whole < depth ? trni_tile_lines(w, &w->tail) : 0);
}

/* Strip after strip. */
TRNI_DRIVER void trni_worker_pair_rows(const trni_worker *w, const trni_map *map, int64_t m, int64_t lanes, int64_t k,
                                       float *dst)
{
    const trni_pairs_map *words = trni_pairs_map_at(&w->pairs, map);
    for (int64_t done = 0, strip; done < lanes; done += strip) {
        strip = w->array.rows[trni_strip_kernel(&w->array, lanes - done)];
        trni_pairs_strip_of(&w->pairs, &w->p->a, words, m + done, (int)strip, k,
                            (uint32_t *)(void *)(dst + done * (words->words + 1)), w->wild);
    }
}

TRNI_DRIVER void trni_worker_pack_rows(const trni_worker *w, int64_t m, int64_t lanes, int64_t k, int depth, float *dst)
{
    const trni_map *map = trni_tile_map(w, depth);
    const trni_packer packer = { &w->array, &w->loader_a, &w->p->a, map->line, map->lines };
    if (w->quads.multiply) {
        trni_quads_rows(&w->quads, &w->array, w->p, map, m, lanes, k, dst);
        return;
    }
    if (w->pairs.on) {
        trni_worker_pair_rows(w, map, m, lanes, k, dst);
        return;
    }
    if (map->lines > depth) memset(dst, 0, sizeof(float) * (size_t)(map->lines * lanes));
    trni_pack_rows(&packer, m, lanes, k, depth, dst);
    if (w->p->a_scale.data) trni_scale_rows(&w->array, &w->p->a_scale, map, m, lanes, k, dst, w->p->isa);
}

/* The unit's words of the strips at `packed`, the slab's tile `tile`. */
TRNI_LEAN void trni_worker_unit_rows(const trni_worker *w, int64_t lanes, int64_t tile, int depth, const float *packed)
{
    if (!w->cut->unit) return;
    const trni_map *map = trni_tile_map(w, depth);
    const trni_unit_map *words = trni_unit_map_at(&w->unit, map);
    int index = 0;
    for (int64_t done = 0; done < lanes; index++) {
        const int kernel = trni_strip_kernel(&w->array, lanes - done), strip = w->array.rows[kernel];
        if (trni_unit_has(kernel))
            trni_unit_pack_strip(&w->unit, tile, index, words, packed + done * map->lines, strip);
        done += strip;
    }
}

/* And of panels, the first of them the slab's `panel`; a column is `lines` floats from the next. */
TRNI_LEAN void trni_worker_unit_columns(const trni_worker *w, int64_t columns, int64_t tile, int64_t panel, int depth,
                                        const float *packed, int64_t lines)
{
    if (!w->cut->unit) return;
    const trni_map *map = trni_tile_map(w, depth);
    const trni_unit_map *words = trni_unit_map_at(&w->unit, map);
    for (int64_t done = 0; done < columns; done += w->array.width, panel++)
        trni_unit_pack_panel(&w->unit, tile, panel, words, packed + done * lines);
}

TRNI_DRIVER void trni_worker_pack_columns(const trni_worker *w, int64_t n, int64_t columns, int64_t k, int depth,
                                          float *dst)
{
    const trni_map *map = trni_tile_map(w, depth);
    const trni_packer packer = { &w->array, &w->loader_b, &w->p->b, map->line, map->lines };
    const int64_t wide = trni_round_up(columns, w->array.width);
    if (w->quads.multiply) {
        trni_quads_columns(&w->quads, w->p, map, n, columns, k, dst);
        return;
    }
    if (w->pairs.on) {
        trni_pairs_panels_of(&w->pairs, &w->p->b, trni_pairs_map_at(&w->pairs, map), n, columns, w->array.width, k,
                             (uint32_t *)(void *)dst, w->wild);
        return;
    }
    if (map->lines > depth || columns < wide) memset(dst, 0, sizeof(float) * (size_t)(map->lines * wide));
    trni_pack_columns(&packer, n, columns, k, depth, dst);
    if (w->p->b_scale.data) trni_scale_columns(&w->array, &w->p->b_scale, map, n, columns, k, dst, w->p->isa);
}

/* BF16 PSUM: each tile's sum is rounded, stochastically with words of the tile's own stream. [m, n] is where the part
 * begins in dst. */
TRNI_DRIVER void trni_worker_round_bf16(const trni_worker *w, float *at, int64_t step, int rows, int64_t columns,
                                        int64_t m, int64_t n, int64_t k)
{
    enum { piece = 1024 };
    uint32_t field[piece];
    uint16_t code[piece];
    const trni_product *p = w->p;
    const uint64_t tile = (uint64_t)(k / trni_tile_depth(p));
    if (p->numerics.psum_rounding == TRN_NEAREST_EVEN) {
        trni_round_bf16_for(p->isa)(at, step, rows, (size_t)columns);
        return;
    }
    for (int i = 0; i < rows; i++, at += step)
        for (int64_t j = 0, take; j < columns; j += take) {
            const uint64_t index = (uint64_t)(m + i) * (uint64_t)p->b.lanes + (uint64_t)(n + j);
            take = trni_min64(columns - j, piece);
            trn_random_fields(field, (size_t)take, p->numerics.sr_bits, p->seed, p->stream + tile, index, p->isa);
            trni_encoder_run(&w->psum_encoder, code, at + j, field, (size_t)take);
            for (int64_t t = 0; t < take; t++) at[j + t] = trn_bf16_to_f32(code[t]);
        }
}

/* The same of any PSUM: only that of BF16 has something to round. */
TRNI_INLINE void trni_worker_round(const trni_worker *w, float *at, int64_t step, int rows, int64_t columns, int64_t m,
                                   int64_t n, int64_t k)
{
    if (w->p->numerics.psum_format == TRN_BF16) trni_worker_round_bf16(w, at, step, rows, columns, m, n, k);
}

#endif /* TRNI_ARRAY_MATMUL_WORKER_H */
