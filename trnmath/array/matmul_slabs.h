/* array/matmul_slabs.h - products of packed strips and panels, slab after slab, for one block of dst.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: for each slab of b's columns, packs b once, a strip by strip, and lets panels of b stay in the first-level
 *     cache while strips pass by; asks memory for what comes next meanwhile.
 * DOES NOT: know the order of sums: the cuts do not touch it, only tile boundaries do.
 *
 * KNOWN FROM: as array/matmul_worker.h.
 */
#ifndef TRNI_ARRAY_MATMUL_SLABS_H
#define TRNI_ARRAY_MATMUL_SLABS_H

#include "matmul_worker.h"

/* A slab: rows [m, m + rows) times columns [n, n + columns) over [k, k + depth), with PSUM at psum (element [m, n]). */
typedef struct trni_slab {
    int64_t m, rows, n, columns, k, depth;
    trni_psum psum;
    bool last_rows; /* the next slab needs another part of b */
    bool thin;      /* panels of b are packed when their turn comes, a few at a time; one tile deep */
} trni_slab;

TRNI_FN void trni_copy_tile(float *dst, int64_t dst_step, const float *src, int64_t src_step, int rows, int64_t columns)
{
    for (int i = 0; i < rows; i++) memcpy(dst + i * dst_step, src + i * src_step, sizeof(float) * (size_t)columns);
}

/* dst that holds PSUM itself: at the end only NaN needs a look, while the tile is in the cache. */
TRNI_DRIVER void trni_finish_tile(const trni_worker *w, float *home, int64_t step, int rows, int64_t columns)
{
    const trn_isa isa = w->p->isa;
    if (!w->cut->direct || (w->pairs.on && !*w->wild && !w->p->accumulate)) return;
#if TRNI_PANEL_SIMD
    if (isa == TRN_ISA_AVX512 && columns == w->array.width && !trni_simd_nan_in_tile_avx512(home, step, rows)) return;
#endif
    for (int i = 0; i < rows; i++) trni_canonical_nans_for(isa)(home + i * step, (size_t)columns);
}

/* Cache lines that micro-kernels ask for while they work, rows `step` bytes apart: strip after strip of a panel takes a
 * column of them, as many as there are, the first at `at`, the next one `skip` bytes on. */
typedef struct trni_wanted {
    uintptr_t at, step, skip;
    int columns;
} trni_wanted;

/* Columns of b that are lines of memory, as those of [N, K]: of two panels side by side, one asks for half of the lines
 * of both in the tile below, and the other for the other half. */
TRNI_FN trni_wanted trni_wanted_turned(const trni_worker *w, const trni_slab *s, int64_t column, int64_t k)
{
    const trni_operand *o = &w->p->b;
    const int64_t width = w->array.width, under = k + trni_tile_depth(w->p), odd = column / width % 2;
    trni_wanted wanted = { 0, 0, TRNI_LINE, 0 };
    if (!w->pairs.on || !s->thin || o->depth_stride != 1 || under >= s->k + s->depth) return wanted;
    wanted.columns = 2;
    wanted.at = (uintptr_t)trni_operand_at(o, s->n + column - odd * width, under) + (uintptr_t)(odd * 2 * TRNI_LINE);
    wanted.step = (uintptr_t)(o->lane_stride * o->bytes);
    return wanted;
}

/* The lines of b itself, if it is at most 16 bits wide, that will be packed next: thin, the tile below, or else beside;
 * not thin, on the last rows, the same panel of the next slab. */
TRNI_DRIVER trni_wanted trni_wanted_source(const trni_worker *w, const trni_slab *s, int64_t column, int64_t k)
{
    const trni_operand *o = &w->p->b;
    const int64_t bytes = o->bytes, span = trni_thin_panels(w->cut) * w->array.width;
    const int64_t under = k + trni_tile_depth(w->p), end = s->k + s->depth;
    const bool below = s->thin && under < end, beside = s->thin && !below && column + span < s->columns;
    const int64_t source_k = below    ? under
                             : beside ? s->k
                                      : end,
                  source_column = beside              ? column + span
                                  : s->thin && !below ? column % span
                                                      : column;
    trni_wanted wanted = { 0, 0, TRNI_LINE, 0 };
    if (o->lane_stride != 1 && !w->p->packed) return trni_wanted_turned(w, s, column, k);
    if (!s->last_rows || w->p->packed || bytes > 2 || source_k >= o->depth) return wanted;
    wanted.at = (uintptr_t)trni_operand_at(o, s->n + source_column, source_k);
    wanted.step = (uintptr_t)(o->depth_stride * bytes);
    wanted.columns = (int)((bytes * w->array.width + TRNI_LINE - 1) / TRNI_LINE);
    if (w->pairs.on) { /* a word is two rows: the upper half of them, then the lower one */
        wanted.skip = wanted.step * (uintptr_t)w->pairs.whole.words;
        wanted.columns = 2;
    }
    return wanted;
}

/* Those of the packed tile that comes next; thin, there is none yet. */
TRNI_DRIVER trni_wanted trni_wanted_packed(const trni_worker *w, const trni_slab *s, const float *next)
{
    const int bytes = (int)sizeof(float) * w->array.width;
    const trni_wanted wanted = { (uintptr_t)next, (uintptr_t)bytes, TRNI_LINE, s->thin ? 0 : bytes / TRNI_LINE };
    return wanted;
}

/* The next strip of PSUM, on its way while this one is multiplied. */
TRNI_FN void trni_want_home(const float *home, int64_t step, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += TRNI_LINE / (int64_t)sizeof(float))
            __builtin_prefetch(home + i * step + j, 1, 3);
}

/* Which of the panels of words. Few rows meet each panel once: its words are made just before. */
TRNI_FN int64_t trni_unit_panel(const trni_worker *w, int64_t column)
{
    const int64_t panel = column / w->array.width;
    return w->cut->few ? panel % TRNI_THIN_PANELS : panel;
}

/* One strip times one panel over one tile, by whom it is for. */
TRNI_DRIVER void trni_strip_call(const trni_worker *w, const trni_array *array, int kernel, const trni_unit_call *call)
{
    if (w->cut->pairs) w->pairs_count[0]++;
    if (w->quads.multiply) {
        if (w->cut->unit) w->unit.count[TRNI_UNIT_NEVER]++;
        w->quads.multiply((const uint32_t *)(const void *)call->a, (const uint32_t *)(const void *)call->b,
                          w->array.rows[kernel], trni_quads_map_at(&w->quads, call->map->rows), call->in, call->in_step,
                          call->out, call->out_step);
    } else if (!w->cut->unit || !trni_unit_strip(&w->unit, kernel, call))
        trni_strip_times_panel(array, kernel, call->a, call->b, call->map, w->p->numerics.merge, call->in,
                               call->in_step, call->out, call->out_step, call->ahead, call->ahead_step);
}

/* One panel over one tile, and where its PSUM is: at `wait` between tiles; it is read from its home before the slab's
 * first tile and written back after its last. */
typedef struct trni_panel {
    int64_t column, columns, k;
    int depth, width;
    bool first, last, fresh, narrow;
    float *home, *wait; /* of the slab's first row */
    int64_t step;       /* of home */
    trni_wanted source, packed;
} trni_panel;

TRNI_DRIVER trni_panel trni_panel_of(const trni_worker *w, const trni_slab *s, int64_t column, int64_t columns,
                                     const float *next, int64_t k, int depth, float *wait)
{
    const int width = w->array.width;
    const trni_panel panel = { column,
                               columns,
                               k,
                               depth,
                               width,
                               k == s->k,
                               k + depth == s->k + s->depth,
                               k == 0 && !w->p->accumulate,
                               columns < width,
                               s->psum.at + column,
                               wait,
                               s->psum.step,
                               trni_wanted_source(w, s, column, k),
                               trni_wanted_packed(w, s, next) };
    return panel;
}

/* Where a strip's PSUM comes from and goes to, and what it asks memory for: of row m, the index-th strip. */
typedef struct trni_strip {
    const float *in;
    float *out;
    int64_t in_step, out_step;
    uintptr_t ahead, ahead_step;
} trni_strip;

TRNI_INLINE trni_strip trni_strip_at(const trni_panel *p, int64_t m, int64_t rows, int strip, int index,
                                     const void *at_hand)
{
    float *const home = p->home + m * p->step, *const local = p->wait + m * p->width;
    const bool from_home = p->first && !p->narrow, to_home = p->last && !p->narrow;
    const trni_wanted *wanted = index < p->source.columns ? &p->source : &p->packed;
    const int column = index < p->source.columns ? index : index - p->source.columns;
    const bool any = column < wanted->columns; /* else a line that is at hand, again and again */
    if (p->last || (p->first && !p->fresh))
        trni_want_home(home + strip * p->step, p->step, trni_min64(rows - m - strip, strip), p->columns);
    if (p->first && p->narrow && !p->fresh) trni_copy_tile(local, p->width, home, p->step, strip, p->columns);
    const trni_strip s = { p->fresh    ? NULL
                           : from_home ? home
                                       : local,
                           to_home ? home : local,
                           from_home ? p->step : p->width,
                           to_home ? p->step : p->width,
                           any ? wanted->at + (uintptr_t)column * wanted->skip : (uintptr_t)at_hand,
                           any ? wanted->step : 0 };
    return s;
}

TRNI_INLINE void trni_strip_done(const trni_worker *w, const trni_slab *s, const trni_panel *p, const trni_strip *strip,
                                 int64_t m, int rows)
{
    float *const home = p->home + m * p->step;
    trni_worker_round(w, strip->out, strip->out_step, rows, p->columns, s->m + m, s->n + p->column, p->k);
    if (p->last && p->narrow) trni_copy_tile(home, p->step, strip->out, p->width, rows, p->columns);
    if (p->last && p->k + p->depth == w->p->a.depth) trni_finish_tile(w, home, p->step, rows, p->columns);
}

/* All strips of the packed a times one packed panel over one tile. */
TRNI_DRIVER void trni_panel_tile(const trni_worker *w, const trni_array *array, const trni_slab *s, const trni_panel *p,
                                 const float *a, const float *b)
{
    const trni_map *map = trni_tile_map(w, p->depth);
    const int64_t tile = (p->k - s->k) / trni_tile_depth(w->p), panel = trni_unit_panel(w, p->column);
    for (int64_t m = 0, index = 0; m < s->rows; index++) {
        const int kernel = trni_strip_kernel(array, s->rows - m), rows = array->rows[kernel];
        const trni_strip strip = trni_strip_at(p, m, s->rows, rows, (int)index, b);
        const trni_unit_call call = { tile,        (int)index,      panel,         a + m * map->lines, b,
                                      map,         strip.in,        strip.in_step, strip.out,          strip.out_step,
                                      strip.ahead, strip.ahead_step };
        trni_strip_call(w, array, kernel, &call);
        trni_strip_done(w, s, p, &strip, m, rows);
        m += rows;
    }
}

/* The same of words. */
TRNI_DRIVER void trni_panel_pairs(const trni_worker *w, const trni_slab *s, const trni_panel *p, const float *a,
                                  const float *b)
{
    bool opened = false;
    trni_pairs_call call;
    memset(&call, 0, sizeof call);
    call.map = trni_tile_map(w, p->depth);
    call.b = (const uint32_t *)(const void *)b;
    call.width = p->width;
    call.tiles = call.panels = 1;
    call.merge = w->p->numerics.merge;
    const int lines = trni_tile_lines(w, call.map);
    for (int64_t m = 0, index = 0; m < s->rows; index++) {
        call.kernel = trni_strip_kernel(&w->array, s->rows - m);
        call.rows = w->array.rows[call.kernel];
        const trni_strip strip = trni_strip_at(p, m, s->rows, call.rows, (int)index, b);
        call.a = (const uint32_t *)(const void *)(a + m * lines);
        call.in = strip.in;
        call.in_step = strip.in_step;
        call.out = strip.out;
        call.out_step = strip.out_step;
        call.ahead = strip.ahead;
        call.ahead_step = strip.ahead_step;
        w->pairs_count[trni_pairs_multiply(&w->pairs, &call, &opened)]++;
        trni_strip_done(w, s, p, &strip, m, call.rows);
        m += call.rows;
    }
}

/* Where trn_matmul_pack left the panel of column n, tile k. */
TRNI_DRIVER const float *trni_prepacked_b(const trni_worker *w, int64_t n, int64_t k)
{
    return w->p->packed + n * trni_all_lines(w) + trni_tiles_lines(w, 0, k) * w->array.width;
}

/* The first strip and panel of a block, as a sample: where they are not for the unit, hardly any others are, and their
 * words cost more than they bring. */
TRNI_LEAN void trni_worker_try_unit(trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const int kernel = trni_strip_kernel(&w->array, rows), depth = trni_tile_deep(w, 0, w->p->a.depth);
    const trni_map *map = trni_tile_map(w, depth);
    const trni_unit_map *words = trni_unit_map_at(&w->unit, map);
    w->unit.hopeless = !trni_unit_has(kernel);
    if (w->unit.hopeless) return;
    trni_worker_pack_rows(w, m, w->array.rows[kernel], 0, depth, w->a);
    trni_worker_unit_rows(w, w->array.rows[kernel], 0, depth, w->a);
    if (!w->p->packed) trni_worker_pack_columns(w, n, trni_min64(columns, w->array.width), 0, depth, w->b);
    trni_worker_unit_columns(w, 1, 0, 0, depth, w->p->packed ? trni_prepacked_b(w, n, 0) : w->b, 0);
    const trni_unit_mode mode = trni_unit_mode_at(&w->unit, words, 0, 0, 0);
    w->unit.hopeless = mode == TRNI_UNIT_NEVER;
}

/* The same of pairs: they are off where words are likely to be opened again. */
TRNI_LEAN void trni_worker_try_pairs(trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const int strip = w->array.rows[trni_strip_kernel(&w->array, rows)], depth = trni_tile_deep(w, 0, w->p->a.depth),
              width = w->array.width;
    const trni_pairs_map *map = trni_pairs_map_at(&w->pairs, trni_tile_map(w, depth));
    if (!w->pairs.on || w->p->packed) return;
    trni_worker_pack_rows(w, m, strip, 0, depth, w->a);
    trni_worker_pack_columns(w, n, trni_min64(columns, width), 0, depth, w->b);
    w->pairs.on =
        trni_pairs_hold(map, (const uint32_t *)(const void *)w->a, strip, (const uint32_t *)(const void *)w->b, width);
    if (!w->pairs.on) w->array = w->pairs.vectors;
}

/* The packed b of one tile from `column` of the slab on. Past the slab's last column it is the slab's first. */
TRNI_DRIVER const float *trni_packed_b(const trni_worker *w, const trni_slab *s, int64_t column, int64_t k)
{
    if (w->p->packed)
        return trni_prepacked_b(w, s->n + trni_min64(column, s->columns - 1) / w->array.width * w->array.width, k);
    if (column >= s->columns) return w->b;
    const int lines = trni_tile_lines(w, trni_tile_map(w, trni_tile_deep(w, k, s->k + s->depth)));
    if (s->thin) return w->b + column % (trni_thin_panels(w->cut) * w->array.width) * lines;
    return w->b + trni_tiles_lines(w, s->k, k) * trni_round_up(s->columns, w->array.width) + column * lines;
}

/* The range of a's numbers in the part of the slab's K that k belongs to. */
enum { TRNI_SLAB_RANGES = 8 };
TRNI_FN trni_range *trni_slab_range(const trni_slab *s, trni_range *range, int64_t k)
{
    return range + (k - s->k) * TRNI_SLAB_RANGES / s->depth;
}

/* Panels [column, end) of one tile, which are packed here if they are thin; `range` is a's. */
TRNI_DRIVER void trni_panels_tile(const trni_worker *w, const trni_slab *s, int64_t column, int64_t end, int64_t k,
                                  const trni_range *range)
{
    const int64_t width = w->array.width, begin = column, bottom = s->k + s->depth;
    const int depth = trni_tile_deep(w, k, bottom);
    if (s->thin) trni_worker_pack_columns(w, s->n + column, end - column, k, depth, w->b);
    if (w->cut->few)
        trni_worker_unit_columns(w, end - column, (k - s->k) / trni_tile_depth(w->p), trni_unit_panel(w, column), depth,
                                 trni_packed_b(w, s, column, k), trni_tile_lines(w, trni_tile_map(w, depth)));
    for (; column < end; column += width) {
        const float *b = trni_packed_b(w, s, column, k);
        const float *a = w->a + trni_tiles_lines(w, s->k, k) * s->rows;
        const float *next =
            k + depth < bottom ? trni_packed_b(w, s, column, k + depth) : trni_packed_b(w, s, column + width, s->k);
        const trni_panel panel = trni_panel_of(w, s, column, trni_min64(end - column, width), next, k, depth,
                                               w->local + (column - begin) * s->rows);
        if (w->pairs.on)
            trni_panel_pairs(w, s, &panel, a, b);
        else
            trni_panel_tile(w, trni_array_of_tile(&w->array, range, b, (size_t)(depth * width)), s, &panel, a, b);
    }
}

/* Tiles of a slab that go together: all whole ones, unless PSUM is rounded after each; then the last, shallower one. */
typedef struct trni_pairs_run {
    trni_pairs_call call;        /* of the slab's first strip and panel, over these tiles */
    int64_t k, a_lines, b_lines; /* of a row, and of a column, until the next */
    uint32_t least;              /* of these tiles of a block's panels */
} trni_pairs_run;

TRNI_DRIVER trni_pairs_run trni_pairs_run_at(const trni_worker *w, const trni_slab *s, int64_t k)
{
    const int64_t end = s->k + s->depth, deep = trni_tile_depth(w->p);
    const int depth = trni_tile_deep(w, k, end);
    trni_pairs_run run;
    memset(&run, 0, sizeof run);
    run.k = k;
    run.call.map = trni_tile_map(w, depth);
    run.a_lines = trni_tile_lines(w, run.call.map);
    run.b_lines = w->p->packed ? trni_all_lines(w) : run.a_lines;
    run.call.a = (const uint32_t *)(const void *)(w->a + trni_tiles_lines(w, s->k, k) * s->rows);
    run.call.b = (const uint32_t *)(const void *)trni_packed_b(w, s, 0, k);
    run.call.width = w->array.width;
    run.call.tiles = w->p->numerics.psum_format == TRN_BF16 || depth < deep ? 1 : (int)((end - k) / deep);
    run.call.a_tile = run.a_lines * s->rows;
    run.call.b_tile = run.a_lines * (w->p->packed ? w->array.width : trni_round_up(s->columns, w->array.width));
    run.call.b_panel = run.b_lines * run.call.width;
    run.call.merge = w->p->numerics.merge;
    run.call.ahead = (uintptr_t)run.call.a;
    return run;
}

TRNI_DRIVER uint32_t trni_pairs_run_least(const trni_worker *w, const trni_pairs_run *run, int64_t column, int64_t end)
{
    const trni_pairs_call *c = &run->call;
    const trni_pairs_map *map = trni_pairs_map_at(&w->pairs, c->map);
    uint32_t least = UINT32_MAX;
    for (; column < end; column += c->width) {
        const uint32_t panel = trni_pairs_least_of(map, c->b + column * run->b_lines, c->width, c->tiles, c->b_tile);
        if (panel < least) least = panel;
    }
    return least;
}

/* One strip times panels over one run, PSUM at `at`. */
TRNI_DRIVER void trni_pairs_run_block(const trni_worker *w, const trni_pairs_run *run, int64_t m, int kernel,
                                      int64_t column, int panels, bool fresh, float *at, int64_t step)
{
    trni_pairs_call call = run->call;
    call.kernel = kernel;
    call.rows = w->array.rows[kernel];
    call.panels = panels;
    call.a += m * run->a_lines;
    call.b += column * run->b_lines;
    call.in = fresh ? NULL : at;
    call.in_step = call.out_step = step;
    call.out = at;
    trni_pairs_panels(&w->pairs, &call, run->least, w->pairs_count);
}

/* The same where PSUM lives: in dst, or beside it while the panel, one alone, is narrow. */
TRNI_DRIVER void trni_pairs_block(const trni_worker *w, const trni_slab *s, const trni_pairs_run *run, int64_t m,
                                  int kernel, int64_t column, int panels)
{
    const int rows = w->array.rows[kernel], width = w->array.width;
    const int64_t columns = trni_min64(s->columns - column, (int64_t)panels * width);
    const bool fresh = run->k == 0 && !w->p->accumulate, narrow = columns < width;
    float *const home = s->psum.at + m * s->psum.step + column, *const at = narrow ? w->local : home;
    const int64_t step = narrow ? width : s->psum.step;
    if (narrow && !fresh) trni_copy_tile(w->local, width, home, s->psum.step, rows, columns);
    trni_pairs_run_block(w, run, m, kernel, column, panels, fresh, at, step);
    trni_worker_round(w, at, step, rows, columns, s->m + m, s->n + column, run->k);
    if (narrow) trni_copy_tile(home, s->psum.step, w->local, width, rows, columns);
    for (int64_t i = 0; i < columns && run->k + run->call.tiles * (int64_t)run->call.map->depth == w->p->a.depth;
         i += width)
        trni_finish_tile(w, home + i, s->psum.step, rows, trni_min64(columns - i, width));
}

/* Some panels stay in the second-level cache and pass by a strip, which stays in the first-level cache meanwhile. */
TRNI_DRIVER void trni_pairs_slab(const trni_worker *w, const trni_slab *s)
{
    const int64_t width = w->array.width, some = TRNI_PAIRS_BLOCK * width;
    for (int64_t k = s->k; k < s->k + s->depth;) {
        trni_pairs_run run = trni_pairs_run_at(w, s, k);
        for (int64_t block = 0; block < s->columns; block += some) {
            const int64_t end = trni_min64(block + some, s->columns);
            const int whole = (int)((end - block) / width);
            run.least = trni_pairs_run_least(w, &run, block, end);
            for (int64_t m = 0, rows; m < s->rows; m += rows) {
                const int kernel = trni_strip_kernel(&w->array, s->rows - m);
                rows = w->array.rows[kernel];
                if (whole) trni_pairs_block(w, s, &run, m, kernel, block, whole);
                if (block + whole * width < end) trni_pairs_block(w, s, &run, m, kernel, block + whole * width, 1);
            }
        }
        k += run.call.tiles * (int64_t)run.call.map->depth;
    }
}

/* Packs rows of a for the slab, tile after tile, and multiplies them with the packed b. */
TRNI_DRIVER void trni_slab_multiply(const trni_worker *w, const trni_slab *s)
{
    const int64_t end = s->k + s->depth, deep = trni_tile_depth(w->p);
    const int64_t span = (s->thin ? trni_thin_panels(w->cut) : 1) * w->array.width;
    const bool looks = !w->pairs.on && trni_array_looks(&w->array);
    trni_range range[TRNI_SLAB_RANGES];
    if (looks) memset(range, 0, sizeof range);
    for (int64_t k = s->k; k < end; k += deep) {
        float *strips = w->a + trni_tiles_lines(w, s->k, k) * s->rows;
        const int depth = trni_tile_deep(w, k, end);
        trni_worker_pack_rows(w, s->m, s->rows, k, depth, strips);
        trni_worker_unit_rows(w, s->rows, (k - s->k) / deep, depth, strips);
        if (looks) trni_range_of_for(w->p->isa)(strips, (size_t)(depth * s->rows), trni_slab_range(s, range, k));
    }
    if (w->pairs.on && !s->thin) {
        trni_pairs_slab(w, s);
        return;
    }
    for (int64_t column = 0; column < s->columns; column += span)
        for (int64_t k = s->k; k < end; k += deep)
            trni_panels_tile(w, s, column, trni_min64(column + span, s->columns), k,
                             looks ? trni_slab_range(s, range, k) : range);
}

/* Rows [m, m + rows) times columns [n, n + columns) over all of K, PSUM at psum. */
TRNI_DRIVER void trni_region_multiply(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns,
                                      trni_psum psum)
{
    const trni_product *p = w->p;
    const bool thin = w->cut->thin;
    const int64_t slab_rows = w->cut->few ? rows : (int64_t)TRNI_SLAB_ROWS;
    const int64_t most = w->cut->slab_depth, wide = trni_round_up(columns, w->array.width);
    for (int64_t k = 0; k < p->a.depth; k += most) {
        const int64_t depth = trni_min64(p->a.depth - k, most);
        for (int64_t tile = k; tile < k + depth && !thin; tile += trni_tile_depth(p)) {
            const int deep = trni_tile_deep(w, tile, k + depth);
            float *panels = w->b + trni_tiles_lines(w, k, tile) * wide;
            if (!p->packed) trni_worker_pack_columns(w, n, columns, tile, deep, panels);
            if (!w->cut->few)
                trni_worker_unit_columns(w, columns, (tile - k) / trni_tile_depth(p), 0, deep,
                                         p->packed ? trni_prepacked_b(w, n, tile) : panels,
                                         p->packed ? trni_all_lines(w) : trni_tile_lines(w, trni_tile_map(w, deep)));
        }
        for (int64_t i = 0; i < rows; i += slab_rows) {
            const trni_psum at = { psum.at + i * psum.step, psum.step };
            const bool last = i + slab_rows >= rows;
            const trni_slab slab = { m + i, trni_min64(rows - i, slab_rows), n, columns, k, depth, at, last, thin };
            trni_slab_multiply(w, &slab);
        }
    }
}

TRNI_DRIVER void trni_region_direct(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const trni_psum psum = { (float *)(void *)trni_dst_at(w->p, m, n), w->p->dst.stride[0] };
    trni_region_multiply(w, m, rows, n, columns, psum);
}

/* PSUM in scratch, cast to dst when it is complete. */
TRNI_LEAN void trni_region_cast(const trni_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += TRNI_PSUM_ROWS) {
        const trni_psum psum = { w->psum, columns };
        const int64_t count = trni_min64(rows - i, TRNI_PSUM_ROWS);
        if (w->p->accumulate) trni_psum_from_dst(w->p, w->psum, m + i, count, n, columns);
        trni_region_multiply(w, m + i, count, n, columns, psum);
        trni_psum_to_dst(w->p, w->psum, m + i, count, n, columns);
    }
}

#endif /* TRNI_ARRAY_MATMUL_SLABS_H */
