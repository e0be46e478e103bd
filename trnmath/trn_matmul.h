/* trn_matmul.h - matrix products of any size, with the bits the Tensor engine's instructions would give.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_matmul.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t a[300 * 700], b[700 * 500];
 *         static float c[300 * 500];
 *         trn_error error;
 *         trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, c, 300, 500), .a = trn_tensor_2d(TRN_BF16, a, 300, 700),
 *                                  .b = trn_tensor_2d(TRN_BF16, b, 700, 500), .error = &error };
 *         if (trn_matmul(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0;
 *     }
 *
 * DOES: dst = a @ b, or dst += a @ b, for any M, N, K >= 0 and any strides; all operands of the Tensor engine (F32, TF32,
 *     BF16, F16, FP8, int8, MX with its scales), double rows; F32, BF16, F16 and FP8 results with one rounding at the
 *     end. K in tiles of 128 rows (256 deep with double rows, 512 with MX), ascending, added to PSUM in binary32. Uses
 *     OpenMP when compiled with it: threads split outputs, never sums, so the bits do not depend on their number.
 * DOES NOT: enforce tile limits (trn_tensor_engine.h does), or compute in any other order than trn_numerics says.
 *
 * CONTENTS
 *     trn_matmul_args            operands and options
 *     trn_matmul                 computes, or says in one sentence why not; on failure nothing is written
 *     trn_matmul_scratch_bytes   how much .scratch must hold; a few MiB per thread, whatever the matrices' size
 *
 * KNOWN FROM: the order of sums as in trn_systolic.h; blocking and packing after Goto and van de Geijn, "Anatomy of
 *     high-performance matrix multiplication", ACM TOMS 34(3), 2008.
 */
#ifndef TRN_MATMUL_H
#define TRN_MATMUL_H

#include <stdlib.h>

#include "trn_share.h"
#include "trn_tensor_engine.h"

typedef struct trn_matmul_args {
    trn_generation generation;   /* 0 = Trainium2, or Trainium3 for MX and E4M3FN */
    trn_tensor dst;              /* [M, N] F32, BF16, F16, FP8; I32 for int8 operands */
    trn_tensor a;                /* [M, K] */
    trn_tensor b;                /* [K, N] */
    trn_tensor a_scale, b_scale; /* MX: [M, K/32] and [N, K/32] E8M0; rank 0 = none */
    bool accumulate;             /* PSUM starts as dst instead of fresh */
    bool double_row;             /* FP8 operands only: 256 rows of K in a tile, two products summed before their chain */
    trn_rounding rounding;       /* of the cast to dst */
    trn_overflow overflow;
    uint64_t seed, stream;       /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default */
    trn_isa isa;
    void *scratch;               /* null = allocated and freed here */
    size_t scratch_bytes;
    trn_error *error;
} trn_matmul_args;

/* ---- how the work is cut ----
 *
 * Each thread owns a block of dst and runs alone: for each slab of TRNI_SLAB_COLUMNS columns and each TRNI_SLAB_DEPTH of
 * K, b is packed once (a few MiB, for the outer cache); for each TRNI_SLAB_ROWS rows, a is packed (for the second-level
 * cache); then panels of b stay in the first-level cache while strips of a pass by. A product of at most TRNI_FEW_ROWS
 * rows goes one tile deep at a time, so that its PSUM stays in the second-level cache, and uses each panel of b once:
 * with 16-bit operands it packs panel by panel, just in time, and asks for the next panel meanwhile ("thin"). Rows of
 * 32-bit operands are packed whole: fetched in pieces, they cost half the speed from memory (measured).
 * The cuts do not touch the order of sums: only tile boundaries do, and they are the definition's. */

enum {
    TRNI_SLAB_COLUMNS = 1024,
    TRNI_SLAB_DEPTH = 1024,
    TRNI_SLAB_ROWS = 96,
    TRNI_ROW_COLUMNS = 4096, /* of a single row: a page of memory and more from each line of b */
    TRNI_FEW_ROWS = 192,
    TRNI_PSUM_ROWS = 384, /* rows of dst whose PSUM is kept in scratch when dst itself cannot hold it */
    TRNI_SCRATCH_ALIGN = 64
};

typedef struct trni_cut {
    int threads_m, threads_n;
    int64_t rows, columns; /* of one thread's block, at most */
    bool direct;           /* dst is F32, aligned, with unit column stride: PSUM lives in it */
    bool few, thin;
    bool single;           /* one row of a, and rows of b in memory order: b is not packed */
    int64_t slab_columns;
    size_t a_floats, b_floats, local_floats, psum_floats, thread_bytes;
} trni_cut;

/* Threads along M and N so that blocks are as square as can be (least packing), and no thread is without work. */
TRNI_FN void trni_cut_threads(trni_cut *cut, int64_t m, int64_t n, int64_t k, const trni_array *array)
{
    const double worth_a_thread = 1 << 18; /* multiply-adds; about what waking a thread costs */
    int threads = trni_threads();
    const double work = (double)m * (double)n * (double)k / worth_a_thread;
    if (work < threads) threads = work < 1 ? 1 : (int)work;

    const int64_t unit_m = array->rows[0], unit_n = array->width;
    double best = 0;
    cut->threads_m = cut->threads_n = 1;
    cut->rows = m;
    cut->columns = n;
    for (int tm = 1; tm <= threads; tm++) {
        const int tn = threads / tm;
        const int64_t rows = trni_round_up(trni_ceil_div(m, tm), unit_m), columns = trni_round_up(trni_ceil_div(n, tn), unit_n);
        const double time = (double)rows * (double)columns * (1 + 8.0 / (double)rows + 8.0 / (double)columns);
        if (best == 0 || time < best) {
            best = time;
            cut->rows = trni_min64(rows, m);
            cut->columns = trni_min64(columns, n);
        }
    }
    cut->threads_m = (int)trni_ceil_div(m, cut->rows);
    cut->threads_n = (int)trni_ceil_div(n, cut->columns);
}

TRNI_FN int64_t trni_slab_depth(const trni_product *p, bool few)
{
    const int64_t deep = trni_tile_depth(p);
    return few || deep > TRNI_SLAB_DEPTH ? deep : TRNI_SLAB_DEPTH / deep * deep;
}

TRNI_FN trni_cut trni_cut_of(const trni_product *p, const trni_array *array)
{
    trni_cut cut;
    trni_cut_threads(&cut, p->a.lanes, p->b.lanes, p->a.depth, array);
    cut.single = p->a.lanes == 1 && p->b.lane_stride == 1;
    cut.slab_columns = cut.single ? TRNI_ROW_COLUMNS : TRNI_SLAB_COLUMNS;
    const size_t columns = (size_t)trni_round_up(trni_min64(cut.columns, cut.slab_columns), TRNI_WEAVE);
    cut.few = cut.rows <= TRNI_FEW_ROWS;
    cut.thin = cut.few && p->b.bytes <= 2;
    const int64_t lines = trni_round_up(p->a.depth, trni_spread_group(p->spread)); /* a last, odd pair has two */
    const size_t depth = (size_t)trni_min64(lines, trni_slab_depth(p, cut.few)), rows = (size_t)(cut.few ? cut.rows : (int64_t)TRNI_SLAB_ROWS);
    const size_t align = TRNI_SCRATCH_ALIGN / sizeof(float);
    cut.direct = p->dst.format == TRN_F32 && p->dst.stride[1] == 1 && (uintptr_t)p->dst.data % sizeof(float) == 0;
    cut.a_floats = (size_t)trni_round_up((int64_t)(depth * rows), (int64_t)align);
    cut.b_floats = (cut.single ? (size_t)p->numerics.chains : depth) * columns;
    cut.local_floats = rows * (size_t)array->width;
    cut.psum_floats = cut.direct ? 0 : columns * (size_t)trni_min64(cut.rows, TRNI_PSUM_ROWS);
    cut.thread_bytes = (size_t)trni_round_up((int64_t)((cut.a_floats + cut.b_floats + cut.local_floats + cut.psum_floats) * sizeof(float)),
                                             TRNI_SCRATCH_ALIGN);
    return cut;
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
    trni_feed feed_a, feed_b;
    trni_map whole, tail; /* of a full tile, and of the last one */
    trni_encoder psum_encoder; /* BF16 PSUM */
    float *a, *b, *local, *psum;
} trni_worker;

/* PSUM of a region of dst: [row][step] floats. */
typedef struct trni_psum {
    float *at;
    int64_t step;
} trni_psum;

/* A slab: rows [m, m + rows) times columns [n, n + columns) over [k, k + depth), with PSUM at psum (element [m, n]). */
typedef struct trni_slab {
    int64_t m, rows, n, columns, k, depth;
    trni_psum psum;
    bool last_rows; /* the next slab needs another part of b */
    bool thin;      /* panels of b are packed when their turn comes */
} trni_slab;

/* Numbers along K of the tile at k, in a slab that ends at `end`. */
TRNI_FN int trni_tile_deep(const trni_worker *w, int64_t k, int64_t end) { return (int)trni_min64(end - k, trni_tile_depth(w->p)); }

TRNI_FN const trni_map *trni_tile_map(const trni_worker *w, int depth) { return depth == w->whole.depth ? &w->whole : &w->tail; }

TRNI_FN void trni_worker_pack_rows(const trni_worker *w, int64_t m, int64_t lanes, int64_t k, int depth, float *dst)
{
    const trni_map *map = trni_tile_map(w, depth);
    const trni_packer packer = { &w->array, &w->feed_a, &w->p->a, map->line, map->lines };
    if (map->lines > depth) memset(dst, 0, sizeof(float) * (size_t)(map->lines * lanes));
    trni_pack_rows(&packer, m, lanes, k, depth, dst);
    if (w->p->a_scale.data) trni_scale_rows(&w->array, &w->p->a_scale, map, m, lanes, k, dst, w->p->isa);
}

TRNI_FN void trni_worker_pack_columns(const trni_worker *w, int64_t n, int64_t columns, int64_t k, int depth, float *dst)
{
    const trni_map *map = trni_tile_map(w, depth);
    const trni_packer packer = { &w->array, &w->feed_b, &w->p->b, map->line, map->lines };
    const int64_t wide = trni_round_up(columns, w->array.width);
    if (map->lines > depth || columns < wide) memset(dst, 0, sizeof(float) * (size_t)(map->lines * wide));
    trni_pack_columns(&packer, n, columns, k, depth, dst);
    if (w->p->b_scale.data) trni_scale_columns(&w->array, &w->p->b_scale, map, n, columns, k, dst, w->p->isa);
}

/* BF16 PSUM: each tile's sum is rounded, stochastically with words of the tile's own stream. [m, n] is where the part
 * begins in dst. */
TRNI_FN void trni_worker_round(const trni_worker *w, float *at, int64_t step, int rows, int64_t columns, int64_t m, int64_t n, int64_t k)
{
    uint32_t field[TRNI_ROW_COLUMNS];
    uint16_t code[TRNI_ROW_COLUMNS];
    const trni_product *p = w->p;
    const uint64_t tile = (uint64_t)(k / trni_tile_depth(p));
    if (p->numerics.psum_format != TRN_BF16) return;
    if (p->numerics.psum_rounding == TRN_NEAREST_EVEN) {
        trni_round_bf16_for(p->isa)(at, step, rows, (size_t)columns);
        return;
    }
    for (int i = 0; i < rows; i++, at += step) {
        const uint64_t index = (uint64_t)(m + i) * (uint64_t)p->b.lanes + (uint64_t)n;
        trn_random_fields(field, (size_t)columns, p->numerics.sr_bits, p->seed, p->stream + tile, index, p->isa);
        trni_encoder_run(&w->psum_encoder, code, at, field, (size_t)columns);
        for (int64_t j = 0; j < columns; j++) at[j] = trn_bf16_to_f32(code[j]);
    }
}

TRNI_FN void trni_copy_tile(float *dst, int64_t dst_step, const float *src, int64_t src_step, int rows, int64_t columns)
{
    for (int i = 0; i < rows; i++) memcpy(dst + i * dst_step, src + i * src_step, sizeof(float) * (size_t)columns);
}

/* dst that holds PSUM itself: at the end only NaN needs a look, while the tile is in the cache. */
TRNI_FN void trni_finish_tile(const trni_worker *w, float *home, int64_t step, int rows, int64_t columns)
{
    for (int i = 0; i < rows && w->cut->direct; i++) trni_canonical_nans_for(w->p->isa)(home + i * step, (size_t)columns);
}

/* Cache lines that micro-kernels ask for while they work: `lines` of them per row, the first at `at`, rows `step` bytes
 * apart. Strip after strip of a panel takes one line of each row. */
typedef struct trni_wanted {
    uintptr_t at, step;
    int lines;
} trni_wanted;

enum { TRNI_LINE = 64 };

/* The lines of b itself, if it is at most 16 bits wide, that will be packed next: thin, for the next panel; else, on the last rows, for the same panel
 * of the next slab. */
TRNI_FN trni_wanted trni_wanted_source(const trni_worker *w, const trni_slab *s, int64_t column, int64_t k)
{
    const trni_operand *o = &w->p->b;
    const int64_t bytes = o->bytes;
    const bool beside = s->thin && column + w->array.width < s->columns;
    const int64_t source_k = beside ? k : s->k + s->depth, source_column = s->thin ? (beside ? column + w->array.width : 0) : column;
    trni_wanted wanted = { 0, 0, 0 };
    if (!s->last_rows || o->lane_stride != 1 || bytes > 2 || source_k >= o->depth) return wanted;
    wanted.at = (uintptr_t)trni_operand_at(o, s->n + source_column, source_k);
    wanted.step = (uintptr_t)(o->depth_stride * bytes);
    wanted.lines = (int)((bytes * w->array.width + TRNI_LINE - 1) / TRNI_LINE);
    return wanted;
}

/* Those of the packed tile that comes next; thin, there is none yet. */
TRNI_FN trni_wanted trni_wanted_packed(const trni_worker *w, const trni_slab *s, const float *next)
{
    const int bytes = (int)sizeof(float) * w->array.width;
    const trni_wanted wanted = { (uintptr_t)next, (uintptr_t)bytes, s->thin ? 0 : bytes / TRNI_LINE };
    return wanted;
}

/* The next strip of PSUM, on its way while this one is multiplied. */
TRNI_FN void trni_want_home(const float *home, int64_t step, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += TRNI_LINE / (int64_t)sizeof(float)) __builtin_prefetch(home + i * step + j, 1, 3);
}

/* All strips of the packed a times one packed panel over one tile. PSUM of the panel waits in w->local between tiles;
 * it is read from its home before the slab's first tile and written back after its last. */
TRNI_FN void trni_panel_tile(const trni_worker *w, const trni_slab *s, int64_t column, int64_t columns, const float *a, const float *b,
                             const float *next, int64_t k, int depth)
{
    const int width = w->array.width;
    const bool first = k == s->k, last = k + depth == s->k + s->depth, fresh = k == 0 && !w->p->accumulate, narrow = columns < width;
    const trni_map *map = trni_tile_map(w, depth);
    const trni_wanted source = trni_wanted_source(w, s, column, k), packed = trni_wanted_packed(w, s, next);
    int index = 0; /* of the strip */
    for (int64_t m = 0; m < s->rows; index++) {
        const int kernel = trni_strip_kernel(&w->array, s->rows - m), strip = w->array.rows[kernel];
        const trni_wanted *wanted = index < source.lines ? &source : &packed;
        const int line = index < source.lines ? index : index - source.lines;
        const bool any = line < wanted->lines; /* else a line that is at hand, again and again */
        float *home = s->psum.at + m * s->psum.step + column, *local = w->local + m * width;
        const bool from_home = first && !narrow, to_home = last && !narrow;
        if (last || (first && !fresh)) trni_want_home(home + strip * s->psum.step, s->psum.step, trni_min64(s->rows - m - strip, strip), columns);
        if (first && narrow && !fresh) trni_copy_tile(local, width, home, s->psum.step, strip, columns);
        trni_strip_times_panel(&w->array, kernel, a + m * map->lines, b, map, w->p->numerics.merge, fresh ? NULL : from_home ? home : local,
                               from_home ? s->psum.step : width, to_home ? home : local, to_home ? s->psum.step : width,
                               any ? wanted->at + (uintptr_t)(line * TRNI_LINE) : (uintptr_t)b, any ? wanted->step : 0);
        trni_worker_round(w, to_home ? home : local, to_home ? s->psum.step : width, strip, columns, s->m + m, s->n + column, k);
        if (last && narrow) trni_copy_tile(home, s->psum.step, local, width, strip, columns);
        if (last && k + depth == w->p->a.depth) trni_finish_tile(w, home, s->psum.step, strip, columns);
        m += strip;
    }
}

/* Where the packed tile of b at [k, column] stands; one past the slab's last column it is the slab's first. */
TRNI_FN const float *trni_packed_b(const trni_worker *w, const trni_slab *s, int64_t column, int64_t k)
{
    if (s->thin || column >= s->columns) return w->b;
    return w->b + (k - s->k) * trni_round_up(s->columns, w->array.width) + column * trni_tile_map(w, trni_tile_deep(w, k, s->k + s->depth))->lines;
}

/* Packs rows of a for the slab, tile after tile, and multiplies them with the packed b. */
TRNI_FN void trni_slab_multiply(const trni_worker *w, const trni_slab *s)
{
    const int width = w->array.width;
    const int64_t end = s->k + s->depth, deep = trni_tile_depth(w->p);
    for (int64_t k = s->k; k < end; k += deep) trni_worker_pack_rows(w, s->m, s->rows, k, trni_tile_deep(w, k, end), w->a + (k - s->k) * s->rows);
    for (int64_t column = 0; column < s->columns; column += width)
        for (int64_t k = s->k; k < end; k += deep) {
            const int depth = trni_tile_deep(w, k, end);
            const int64_t next_k = k + deep, columns = trni_min64(s->columns - column, width);
            const float *next = next_k < end ? trni_packed_b(w, s, column, next_k) : trni_packed_b(w, s, column + width, s->k);
            if (s->thin) trni_worker_pack_columns(w, s->n + column, columns, k, depth, w->b);
            trni_panel_tile(w, s, column, columns, w->a + (k - s->k) * s->rows, trni_packed_b(w, s, column, k), next, k, depth);
        }
}

/* Rows [m, m + rows) times columns [n, n + columns) over all of K, PSUM at psum. */
TRNI_FN void trni_region_multiply(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns, trni_psum psum)
{
    const trni_product *p = w->p;
    const bool thin = w->cut->thin;
    const int64_t slab_rows = w->cut->few ? rows : (int64_t)TRNI_SLAB_ROWS;
    const int64_t most = trni_slab_depth(p, w->cut->few), wide = trni_round_up(columns, w->array.width);
    for (int64_t k = 0; k < p->a.depth; k += most) {
        const int64_t depth = trni_min64(p->a.depth - k, most);
        for (int64_t tile = k; tile < k + depth && !thin; tile += trni_tile_depth(p))
            trni_worker_pack_columns(w, n, columns, tile, trni_tile_deep(w, tile, k + depth), w->b + (tile - k) * wide);
        for (int64_t i = 0; i < rows; i += slab_rows) {
            const trni_slab slab = { m + i, trni_min64(rows - i, slab_rows), n, columns, k, depth, { psum.at + i * psum.step, psum.step },
                                     i + slab_rows >= rows, thin };
            trni_slab_multiply(w, &slab);
        }
    }
}

TRNI_FN void trni_region_direct(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const trni_psum psum = { (float *)(void *)trni_dst_at(w->p, m, n), w->p->dst.stride[0] };
    trni_region_multiply(w, m, rows, n, columns, psum);
}

/* The part of dst at [m, n], and a view of PSUM in scratch of the same shape. */
TRNI_FN trn_tensor trni_dst_part(const trni_product *p, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    trn_tensor part = p->dst;
    part.data = trni_dst_at(p, m, n);
    part.shape[0] = rows;
    part.shape[1] = columns;
    return part;
}

TRNI_FN void trni_psum_read(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, w->psum, rows, columns);
    args.src = trni_dst_part(w->p, m, rows, n, columns);
    args.isa = w->p->isa;
    (void)trn_convert(&args); /* the views have been checked */
}

/* Casts finished PSUM to dst. Stochastic rounding counts the elements of all of dst, so there each row says where it is. */
TRNI_FN void trni_psum_write(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const trni_product *p = w->p;
    const int64_t step = p->rounding == TRN_STOCHASTIC ? 1 : rows;
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.rounding = p->rounding;
    args.overflow = p->overflow;
    args.sr_bits = p->numerics.sr_bits;
    args.seed = p->seed;
    args.stream = p->stream;
    args.isa = p->isa;
    trni_canonical_nans_for(p->isa)(w->psum, (size_t)(rows * columns));
    for (int64_t i = 0; i < rows; i += step) {
        args.dst = trni_dst_part(p, m + i, step, n, columns);
        args.src = trn_tensor_2d(TRN_F32, w->psum + i * columns, step, columns);
        args.index = (uint64_t)(m + i) * (uint64_t)p->b.lanes + (uint64_t)n;
        (void)trn_convert(&args);
    }
}

/* PSUM in scratch, cast to dst when it is complete. */
TRNI_FN void trni_region_cast(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += TRNI_PSUM_ROWS) {
        const trni_psum psum = { w->psum, columns };
        const int64_t count = trni_min64(rows - i, TRNI_PSUM_ROWS);
        if (w->p->accumulate) trni_psum_read(w, m + i, count, n, columns);
        trni_region_multiply(w, m + i, count, n, columns, psum);
        trni_psum_write(w, m + i, count, n, columns);
    }
}

/* ---- a single row of a: b is read once, in memory order, and not packed ---- */

/* The rows [k, k + count) of b, count <= TRNI_STREAM_ROWS_MOST, into the sums of their chains ([chain][columns]). */
enum { TRNI_STREAM_ROWS_MOST = 8, TRNI_STREAM_BYTES_MOST = 16 };

/* A tile of the single row: where its numbers of b are, what they are multiplied with, and the scales of b's columns. */
typedef struct trni_row_tile {
    const trni_map *map;
    const float *x; /* of a, as packed lines, a's scales multiplied in */
    float *sums;    /* [chain][step] */
    uint8_t (*scale)[TRNI_ROW_COLUMNS]; /* [block of 32 along K][columns]; MX only */
    int64_t k, n, columns;
    int64_t step; /* from one chain's sums to the next's: columns, or whole blocks of woven ones */
} trni_row_tile;

/* Rows [first, first + count) of the array, in memory order, chain by chain. */
TRNI_FN void trni_stream_group(const trni_worker *w, const trni_row_tile *t, int first, int count, const uint8_t *scale)
{
    const trn_numerics *rules = &w->p->numerics;
    const trni_feed *feed = &w->feed_b;
    const bool interleaved = rules->chain_layout == TRN_CHAINS_INTERLEAVED;
    const int step = interleaved ? rules->chains : 1, group = t->map->group;
    const int64_t line = trni_operand_at(&w->p->b, 0, 1) - trni_operand_at(&w->p->b, 0, 0);
    const int64_t row = group == 4 ? 4 * line : line, slot = group == 4 ? line : t->map->rows * line, ahead = count * row;
    for (int i = 0; i < step && i < count; i++) {
        const int p = first + i, rows = (count - i + step - 1) / step;
        float *sum = t->sums + trni_chain_of_row(rules, p) * t->step;
        const float *x = t->x + t->map->chains.slot[p] * group;
        const unsigned char *src = trni_operand_at(&w->p->b, t->n, t->k) + p * row;
        if (group == 1) feed->stream(feed, sum, x, src, step * row, rows, ahead, (size_t)t->columns);
        else (group == 2 ? feed->pairs : feed->quads)(feed, sum, x, src, step * row, slot, rows, scale, ahead, (size_t)t->columns);
    }
}

/* An odd depth of double rows: the last row's missing partner is a true zero product, and not in memory. */
TRNI_FN void trni_stream_single(const trni_worker *w, const trni_row_tile *t, int p)
{
    float *sum = t->sums + trni_chain_of_row(&w->p->numerics, p) * t->step;
    w->feed_b.stream(&w->feed_b, sum, t->x + t->map->chains.slot[p] * 2, trni_operand_at(&w->p->b, t->n, t->k + p), 0, 1, 0, (size_t)t->columns);
}

TRNI_FN void trni_merge_lines(const trni_worker *w, float *sums, int64_t columns)
{
    const int chains = w->p->numerics.chains;
    trni_add_line_fn *add = trni_add_line_for(w->p->isa);
    if (w->p->numerics.merge == TRN_MERGE_ASCENDING) {
        for (int c = 1; c < chains; c++) add(sums, sums + c * columns, (size_t)columns);
        return;
    }
    for (int distance = 1; distance < chains; distance *= 2)
        for (int c = 0; c < chains; c += 2 * distance) add(sums + c * columns, sums + (c + distance) * columns, (size_t)columns);
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
            for (int i = 0; i < 8; i++) memcpy(&x[i], s->data + (t->n + j + i) * s->lane_stride + block + b, sizeof x[i]);
            trni_turn_bytes(x);
            for (int i = 0; i < 8; i++) memcpy(&t->scale[b + i][j], &x[i], sizeof x[i]);
        }
    for (; j < t->columns; j++)
        for (int b = 0; b < blocks; b++) t->scale[b][j] = (uint8_t)trni_scale_at(s, t->n + j, block + b);
}

/* All rows of the array that have all their numbers, a few at a time; of MX, never of two blocks at a time. */
TRNI_FN void trni_stream_rows(const trni_worker *w, const trni_row_tile *t, int rows)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    const bool scaled = t->map->group == 4, bytes = t->map->group == 1 && w->p->b.bytes == 1;
    const int64_t row = t->k / 4, begin = row / rows_of_a_block;
    const int most = bytes ? TRNI_STREAM_BYTES_MOST : TRNI_STREAM_ROWS_MOST;
    if (scaled) trni_row_scales(w, t, begin, (int)((row + rows - 1) / rows_of_a_block - begin) + 1);
    for (int first = 0, count; first < rows; first += count) {
        const int block = (int)((row + first) / rows_of_a_block - begin), room = scaled ? (int)(rows_of_a_block - (row + first) % rows_of_a_block) : most;
        count = rows - first < room ? rows - first : room;
        trni_stream_group(w, t, first, count, scaled ? t->scale[block] : NULL);
    }
}

TRNI_FN void trni_stream_tile(const trni_worker *w, int64_t k, int depth, int64_t n, int64_t columns, float *psum)
{
    enum { most_blocks = TRNI_MAX_DEPTH / TRNI_SCALE_BLOCK + 1 };
    const trni_product *p = w->p;
    const trni_map *map = trni_tile_map(w, depth);
    uint8_t scale[most_blocks][TRNI_ROW_COLUMNS];
    float straight[TRNI_ROW_COLUMNS], *sums = w->b;
    const int64_t step = w->feed_b.woven ? trni_round_up(columns, TRNI_WEAVE) : columns;
    const trni_row_tile t = { map, w->a, sums, scale, k, n, columns, step };
    const bool odd = map->group == 2 && depth % 2;
    trni_worker_pack_rows(w, 0, 1, k, depth, w->a); /* a strip of one */
    memset(sums, 0, sizeof(float) * (size_t)(p->numerics.chains * step));
    trni_stream_rows(w, &t, map->rows - odd);
    if (odd) trni_stream_single(w, &t, map->rows - 1);
    trni_merge_lines(w, sums, step);
    if (w->feed_b.woven) {
        w->feed_b.unweave(straight, sums, (size_t)step);
        sums = straight;
    }
    if (k == 0 && !p->accumulate) memcpy(psum, sums, sizeof(float) * (size_t)columns);
    else trni_add_line_for(p->isa)(psum, sums, (size_t)columns);
    trni_worker_round(w, psum, 0, 1, columns, 0, n, k);
}

TRNI_FN void trni_region_stream(const trni_worker *w, int64_t n, int64_t columns)
{
    const trni_product *p = w->p;
    float *psum = w->cut->direct ? (float *)(void *)trni_dst_at(p, 0, n) : w->psum;
    if (p->accumulate && !w->cut->direct) trni_psum_read(w, 0, 1, n, columns);
    for (int64_t k = 0; k < p->a.depth; k += trni_tile_depth(p)) trni_stream_tile(w, k, trni_tile_deep(w, k, p->a.depth), n, columns, psum);
    if (w->cut->direct) trni_canonical_nans_for(p->isa)(psum, (size_t)columns);
    else trni_psum_write(w, 0, 1, n, columns);
}

TRNI_FN void trni_block_multiply(const trni_product *p, const trni_cut *cut, int block, unsigned char *scratch)
{
    const int64_t m = block / cut->threads_n * cut->rows, n = block % cut->threads_n * cut->columns;
    const int64_t rows = trni_min64(p->a.lanes - m, cut->rows), columns = trni_min64(p->b.lanes - n, cut->columns);
    trni_worker w;
    w.p = p;
    w.cut = cut;
    w.array = trni_array_of(trni_spread_group(p->spread), p->isa);
    trni_feed_init(&w.feed_a, &p->a, p->isa);
    trni_feed_init(&w.feed_b, &p->b, p->isa);
    w.whole = trni_map_of(&p->numerics, 0, (int)trni_tile_depth(p), p->spread);
    w.tail = trni_map_of(&p->numerics, 0, (int)(p->a.depth % trni_tile_depth(p)), p->spread);
    const trni_encoding psum_how = { { p->numerics.psum_rounding, 0, p->numerics.sr_bits }, TRN_OVERFLOW_DEFAULT, false };
    trni_encoder_init(&w.psum_encoder, trn_format_info_of(TRN_BF16), psum_how, p->isa);
    w.a = (float *)(void *)(scratch + cut->thread_bytes * (size_t)block);
    w.b = w.a + cut->a_floats;
    w.local = w.b + cut->b_floats;
    w.psum = w.local + cut->local_floats;
    for (int64_t j = 0; j < columns; j += cut->slab_columns) {
        const int64_t count = trni_min64(columns - j, cut->slab_columns);
        if (cut->single) trni_region_stream(&w, n + j, count);
        else if (cut->direct) trni_region_direct(&w, m, rows, n + j, count);
        else trni_region_cast(&w, m, rows, n + j, count);
    }
}

/* ---- the call ---- */

/* Formats that dst may have: PSUM's own, and what it is cast to. */
TRNI_FN bool trni_is_result(trn_format f)
{
    return f == TRN_F32 || f == TRN_BF16 || f == TRN_F16 || f == TRN_I32 || trni_is_fp8(f);
}

TRNI_FN trn_status trni_matmul_check(const trn_matmul_args *args, trni_product *p)
{
    trni_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.generation = args->generation;
    ask.dst = args->dst;
    ask.a = args->a;
    ask.b = args->b;
    ask.a_name = "a";
    ask.b_name = "b";
    ask.a_depth_axis = ask.b_lane_axis = 1;
    ask.a_scale = args->a_scale;
    ask.b_scale = args->b_scale;
    ask.mx = args->a_scale.rank || args->b_scale.rank;
    ask.double_row = args->double_row;
    ask.accumulate = args->accumulate;
    ask.rounding = args->rounding;
    ask.overflow = args->overflow;
    ask.seed = args->seed;
    ask.stream = args->stream;
    ask.numerics = args->numerics;
    ask.isa = args->isa;
    ask.error = args->error;
    if (ask.mx && args->double_row) return trni_fail(args->error, TRN_EINVAL, "double_row and MX scales are two modes; a product has one");
    const trn_status status = trni_product_settle(p, &ask);
    if (status == TRN_OK && !trni_is_result(args->dst.format))
        return trni_fail(args->error, TRN_EFORMAT, "dst is %s; results are float32, bfloat16, float16, an FP8, or int32 of int8",
                         trn_format_name(args->dst.format));
    const bool bf16_psum = args->generation == TRN_GENERATION_DEFAULT || trn_core_spec_of(p->generation)->bf16_psum;
    if (status == TRN_OK && p->numerics.psum_format == TRN_BF16 && !bf16_psum)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "numerics.psum_format = bfloat16, which %s's PSUM does not hold",
                         trn_generation_name(p->generation));
    return status;
}

TRNI_FN bool trni_matmul_is_packed(const trni_product *p)
{
    return p->a.lanes && p->b.lanes && p->a.depth && trni_kernels_apply(p);
}

/* Bytes that .scratch must hold for this call with the present number of threads; 0 when the arguments are refused or
 * none is needed. */
TRNI_FN size_t trn_matmul_scratch_bytes(const trn_matmul_args *args)
{
    trni_product p;
    if (!args) return 0;
    trn_matmul_args quiet = *args;
    quiet.error = NULL;
    if (trni_matmul_check(&quiet, &p) != TRN_OK || !trni_matmul_is_packed(&p)) return 0;
    const trni_array array = trni_array_of(trni_spread_group(p.spread), p.isa);
    const trni_cut cut = trni_cut_of(&p, &array);
    return trni_cut_bytes(&cut);
}

TRNI_FN void trni_matmul_blocks(const trni_product *p, const trni_cut *cut, unsigned char *scratch)
{
    const int blocks = cut->threads_m * cut->threads_n;
    scratch += (0 - (uintptr_t)scratch) % TRNI_SCRATCH_ALIGN;
#if defined(_OPENMP)
#pragma omp parallel for schedule(static, 1) num_threads(blocks) if (blocks > 1)
#endif
    for (int block = 0; block < blocks; block++) trni_block_multiply(p, cut, block, scratch);
}

TRNI_FN trn_status trni_matmul_packed(const trn_matmul_args *args, const trni_product *p)
{
    const trni_array array = trni_array_of(trni_spread_group(p->spread), p->isa);
    const trni_cut cut = trni_cut_of(p, &array);
    const size_t bytes = trni_cut_bytes(&cut);
    if (args->scratch && args->scratch_bytes < bytes)
        return trni_fail(args->error, TRN_ENOSPC, "scratch_bytes = %zu but this call needs %zu", args->scratch_bytes, bytes);
    void *scratch = args->scratch ? args->scratch : malloc(bytes);
    if (!scratch) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %zu bytes of scratch", bytes);
    trni_matmul_blocks(p, &cut, (unsigned char *)scratch);
    if (!args->scratch) free(scratch);
    return TRN_OK;
}

TRNI_FN void trni_matmul_regions(const trni_product *p)
{
    const int64_t count = trni_regions(p);
#if defined(_OPENMP)
#pragma omp parallel for schedule(static) if (count > 1)
#endif
    for (int64_t i = 0; i < count; i++) trni_region_run(p, i);
}

/* dst[m, n] = (accumulate ? dst[m, n] + : ) sum over k of a[m, k] * b[k, n]. TRN_EFORMAT for operands that cannot meet,
 * TRN_ESHAPE for sizes and strides that do not fit, TRN_EINVAL for null data, overlap and illegal values, TRN_ENOSPC when
 * memory or scratch is short, TRN_EUNSUPPORTED for what an explicit generation or this host lacks. */
TRNI_FN trn_status trn_matmul(const trn_matmul_args *args)
{
    trni_product p;
    if (!args) return TRN_EINVAL;
    const trn_status status = trni_matmul_check(args, &p);
    if (status != TRN_OK || p.a.lanes == 0 || p.b.lanes == 0) return status;
    if (trni_matmul_is_packed(&p)) return trni_matmul_packed(args, &p);
    if (p.a.depth == 0) trni_dst_clear(&p);
    else trni_matmul_regions(&p);
    return TRN_OK;
}

#endif /* TRN_MATMUL_H */
