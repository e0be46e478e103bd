/* array/product_safe.h - tiles of a product in an order of its own that need no marks: packed, looked at, added up.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: one product a row of the array, in the orders that come down to few instructions: chains of 24 bits toward
 *     zero, FP32 in halves, and flushing where there is nothing to flush, by the kernels of array/systolic_panels.h;
 *     wider and exact sums and rounded products by those of array/systolic_safe.h.
 * DOES NOT: know PSUM, or any numbers that are not safe: array/product_lanes.h asks tile by tile, and has another way.
 *
 * A chain in halves is one of four times as many rows: those of the first pass, then those of the second and so on,
 * each an exact product of 12 bits by 12. Packed panels hold them in that order. Numbers that have no halves are not
 * safe.
 *
 * Rounding toward zero is a mode of the processor, set around kernels that are reached through pointers: whatever they
 * read was written before, and what they write is read after.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are.
 */
#ifndef TRNI_ARRAY_PRODUCT_SAFE_H
#define TRNI_ARRAY_PRODUCT_SAFE_H

#include "product_lanes.h"
#include "systolic_passes.h"
#include "systolic_safe.h"

enum { TRNI_HALF_PASSES = 4, TRNI_SAFE_LINES = (int)TRNI_HALF_PASSES * TRNI_ARRAY_ROWS };

/* ---- the course of a product ---- */

typedef enum trni_course_kind {
    TRNI_COURSE_NONE,
    TRNI_COURSE_PANELS, /* chains of fused multiply-adds in binary32 */
    TRNI_COURSE_DOUBLES,
    TRNI_COURSE_SHORT /* rounded products */
} trni_course_kind;

typedef struct trni_course {
    trni_course_kind kind;
    bool down, halves;
    bool looks; /* at numbers: plain chains are what they are */
} trni_course;

/* Chains in halves have so many times the rows. */
TRNI_FN int trni_course_passes(const trni_course *c) { return c->halves ? (int)TRNI_HALF_PASSES : 1; }

TRNI_LEAN trni_course trni_course_of(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const bool fused = TRNI_AARCH64 || p->isa == TRN_ISA_AVX2 || p->isa == TRN_ISA_AVX512,
               exact = n->accumulator == TRN_ACCUMULATOR_EXACT, single = n->accumulator_bits == 24;
    trni_course c = { TRNI_COURSE_NONE, n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO,
                      p->f32 && !exact && n->fp32_mode == TRN_FP32_SPLIT, true };
#if !defined(TRNI_FP_DOWN)
    if (c.down) return c;
#endif
    if (p->spread != TRNI_SINGLE || p->integer || n->accumulator > TRN_ACCUMULATOR_EXACT) return c;
    if (n->product == TRN_PRODUCT_BF16)
        c.kind = single && !c.down && !exact ? TRNI_COURSE_SHORT : TRNI_COURSE_NONE;
    else
        c.kind = fused && single && !exact ? TRNI_COURSE_PANELS : TRNI_COURSE_DOUBLES;
    c.looks = c.kind != TRNI_COURSE_PANELS || c.halves || trni_flushes(n);
    return c;
}

/* ---- packed tiles ---- */

typedef union trni_safe_strips { /* [strip][line][TRNI_SAFE_ROWS] */
    double d[(int)TRNI_SAFE_LINES * TRNI_REGION_ROWS];
    float f[(int)TRNI_SAFE_LINES * TRNI_REGION_ROWS];
} trni_safe_strips;

/* Where the numbers of a tile go, and the chains in lines. */
typedef struct trni_safe_map {
    trni_chains rows; /* without halves */
    trni_map map;
    trni_lane_plan merge;
} trni_safe_map;

struct trni_safe_work {
    const trni_product *p;
    trni_course course;
    trni_array array;
    trni_safe_map whole, tail; /* of a full tile, and of the last one */
    trni_safe_range a_range;
    bool a_wide; /* strips are there */
    float a[(int)TRNI_SAFE_LINES * TRNI_REGION_ROWS] __attribute__((aligned(64)));
    float b[(int)TRNI_SAFE_LINES * TRNI_SAFE_COLUMNS] __attribute__((aligned(64)));
    trni_safe_strips strips __attribute__((aligned(64)));
    double wide_b[(int)TRNI_SAFE_LINES * TRNI_SAFE_COLUMNS] __attribute__((aligned(64)));
    double sum[(int)TRNI_MAX_CHAINS * TRNI_SAFE_CELLS] __attribute__((aligned(64)));
    float single[(int)TRNI_MAX_CHAINS * TRNI_SAFE_CELLS] __attribute__((aligned(64)));
    uint64_t bad[TRNI_SAFE_CELLS];
};

TRNI_COLD void trni_safe_map_init(trni_safe_map *m, const trni_product *p, const trni_course *course, int depth,
                                  const trni_lane_passes *more)
{
    const int passes = trni_course_passes(course);
    trni_map_init(&m->map, &p->numerics, p->first_row, depth, TRNI_SINGLE);
    m->rows = m->map.chains;
    m->merge = trni_lane_plan_of(&p->numerics, p->first_row, depth, p->f32, p->isa, more);
    for (int chain = 0, slot = 0; chain < m->rows.count; chain++) {
        for (int i = 0; i < m->rows.length[chain]; i++, slot++)
            m->map.line[m->rows.row[slot]] = (uint16_t)(slot + (passes - 1) * (slot - i));
        m->map.chains.length[chain] *= passes;
    }
    m->map.lines *= passes;
}

TRNI_LEAN bool trni_safe_init(trni_safe_work *t, const trni_product *p, const trni_lane_passes *more)
{
    const int64_t all = trni_product_depth(p), deep = trni_tile_depth(p);
    t->p = p;
    t->course = trni_course_of(p);
    if (!t->course.kind) return false;
    t->array = trni_array_of(1, p->isa);
    trni_safe_map_init(&t->whole, p, &t->course, (int)deep, more);
    trni_safe_map_init(&t->tail, p, &t->course, (int)(all % deep), more);
    return true;
}

TRNI_FN const trni_safe_map *trni_safe_map_of(const trni_safe_work *t, int depth)
{
    return depth == trni_tile_depth(t->p) ? &t->whole : &t->tail;
}

/* The first n of x, whole, become four times as many halves, in the order of the passes: of a (low, low, high, high) or
 * of b (low, high, low, high). */
TRNI_INLINE void trni_safe_halves_body(float *x, bool of_b, size_t n)
{
    float *__restrict second = x + n, *__restrict third = x + 2 * n, *__restrict last = x + 3 * n;
    const uint32_t swap = of_b ? ~(uint32_t)0 : 0;
    for (size_t i = 0; i < n; i++) {
        const float high = trni_high_part(x[i]), low = x[i] - high;
        const uint32_t differ = (trni_bits(high) ^ trni_bits(low)) & swap;
        x[i] = low;
        second[i] = trni_float(trni_bits(low) ^ differ);
        third[i] = trni_float(trni_bits(high) ^ differ);
        last[i] = high;
    }
}
TRNI_DISPATCH_AVX2(trni_safe_halves, (float *x, bool of_b, size_t n), (x, of_b, n))

/* A panel of whole numbers, `width` to a line, chain by chain. */
TRNI_COLD void trni_safe_split(const trni_safe_work *t, const trni_safe_map *m, float *panel, int width, bool of_b)
{
    for (int chain = 0; chain < m->rows.count && t->course.halves; chain++) {
        const int size = m->rows.length[chain] * width;
        trni_safe_halves_for(t->p->isa)(panel, of_b, (size_t)size);
        panel += (int)TRNI_HALF_PASSES * size;
    }
}

/* What whole numbers stand in a panel that is yet to be split, subnormal ones flushed if the order says so. */
TRNI_COLD trni_safe_range trni_safe_look(const trni_safe_work *t, const trni_safe_map *m, const trni_operand *o,
                                         float *panel, int width)
{
    trni_safe_range all = trni_safe_range_none();
    for (int chain = 0; chain < m->rows.count; chain++) {
        const size_t size = (size_t)(m->rows.length[chain] * width);
        if (t->p->numerics.flush_inputs) trni_flush_line_for(t->p->isa)(panel, ldexp(1.0, 1 - o->info.bias), size);
        if (t->course.looks) all = trni_safe_range_join(all, trni_safe_range_of(panel, size, t->p->isa));
        panel += (size_t)trni_course_passes(&t->course) * size;
    }
    return all;
}

/* ---- a tile of a, and of b ---- */

/* Panels, strip after strip as the kernels take them; else rows side by side, TRNI_REGION_ROWS of them. */
TRNI_LEAN void trni_safe_pack_a(trni_safe_work *t, const trni_loader *loader, int64_t lane, int lanes, int64_t k,
                                int depth)
{
    const trni_safe_map *m = trni_safe_map_of(t, depth);
    const trni_operand one = trni_operand_slot(&t->p->a, 0);
    const trni_packer packer = { &t->array, loader, &one, m->map.line, m->map.lines };
    const bool panels = t->course.kind == TRNI_COURSE_PANELS;
    const size_t size = (size_t)m->map.lines * TRNI_REGION_ROWS;
    if (panels) {
        trni_pack_rows(&packer, lane, lanes, k, depth, t->a);
    } else {
        if (lanes < TRNI_REGION_ROWS) memset(t->a, 0, sizeof(float) * size);
        trni_pack_panel(&packer, lane, lanes, TRNI_REGION_ROWS, k, depth, t->a);
    }
    t->a_wide = false;
    t->a_range = trni_safe_range_none();
    for (int done = 0, strip; done < lanes; done += strip) {
        float *at = t->a + done * m->map.lines;
        strip = panels ? t->array.rows[trni_strip_kernel(&t->array, lanes - done)] : (int)TRNI_REGION_ROWS;
        t->a_range = trni_safe_range_join(t->a_range, trni_safe_look(t, m, &one, at, strip));
        trni_safe_split(t, m, at, strip, false);
    }
}

/* [panel][line][width of the kernels]; else [line][TRNI_SAFE_COLUMNS]. */
TRNI_COLD trni_safe_range trni_safe_pack_b(trni_safe_work *t, const trni_loader *loader, int64_t lane, int lanes,
                                           int64_t k, int depth)
{
    const trni_safe_map *m = trni_safe_map_of(t, depth);
    const trni_operand one = trni_operand_slot(&t->p->b, 0);
    const trni_packer packer = { &t->array, loader, &one, m->map.line, m->map.lines };
    const int width = t->course.kind == TRNI_COURSE_PANELS ? t->array.width : (int)TRNI_SAFE_COLUMNS;
    trni_safe_range all = trni_safe_range_none();
    for (int done = 0; done < lanes; done += width) {
        const int some = lanes - done < width ? lanes - done : width;
        float *at = t->b + done * m->map.lines;
        if (some < width) memset(at, 0, sizeof(float) * (size_t)(m->map.lines * width));
        trni_pack_panel(&packer, lane + done, some, width, k, depth, at);
        all = trni_safe_range_join(all, trni_safe_look(t, m, &one, at, width));
        trni_safe_split(t, m, at, width, true);
    }
    return all;
}

/* a, rows side by side, into strips. */
TRNI_INLINE void trni_safe_wide_strips_body(double *__restrict d, const float *__restrict x, int lines)
{
    for (int s = 0; s < TRNI_REGION_ROWS; s += TRNI_SAFE_ROWS, x += TRNI_SAFE_ROWS)
        for (int k = 0; k < lines; k++, d += TRNI_SAFE_ROWS)
            for (int i = 0; i < TRNI_SAFE_ROWS; i++) d[i] = (double)x[k * TRNI_REGION_ROWS + i];
}
TRNI_DISPATCH_AVX2(trni_safe_wide_strips, (double *d, const float *x, int lines), (d, x, lines))

TRNI_FN void trni_safe_strips_of(float *f, const float *x, int lines)
{
    for (int s = 0; s < TRNI_REGION_ROWS; s += TRNI_SAFE_ROWS, x += TRNI_SAFE_ROWS)
        for (int k = 0; k < lines; k++, f += TRNI_SAFE_ROWS)
            memcpy(f, x + k * TRNI_REGION_ROWS, sizeof *f * TRNI_SAFE_ROWS);
}

/* ---- one tile ----
 *
 * `rows` of a, all columns of b, into sum[rows][TRNI_SAFE_COLUMNS]. */

TRNI_COLD void trni_safe_panels(const trni_safe_work *t, const trni_safe_map *m, int rows, int columns, float *sum)
{
    const int width = t->array.width;
    const trni_fp_modes before = trni_safe_enter(trni_safe_modes(TRNI_SAFE_NOT, t->course.down, t->p->isa));
    for (int j = 0; j < columns; j += width)
        for (int row = 0; row < rows;) {
            const int kernel = trni_strip_kernel(&t->array, rows - row);
            const float *a = t->a + row * m->map.lines, *b = t->b + j * m->map.lines;
            trni_strip_times_panel(&t->array, kernel, a, b, &m->map, t->p->numerics.merge, NULL, 0,
                                   sum + row * TRNI_SAFE_COLUMNS + j, TRNI_SAFE_COLUMNS, (uintptr_t)b, 0);
            row += t->array.rows[kernel];
        }
    trni_fp_modes_set(before);
}

/* Four rows in doubles; t->sum is theirs. */
TRNI_COLD void trni_safe_wide_strip(trni_safe_work *t, const trni_safe_map *m, trni_safe_way way,
                                    const trni_safe_how *how, bool exact, const double *a)
{
    trni_safe_fn *kernel = trni_safe_kernel(way, t->p->isa);
    const double *b = t->wide_b;
    double *s = t->sum;
    const int chains = exact ? 1 : m->map.chains.count;
    const trni_fp_modes before = trni_safe_enter(trni_safe_modes(way, t->course.down, t->p->isa));
    for (int chain = 0; chain < chains; chain++, s += TRNI_SAFE_CELLS) {
        const int lines = exact ? m->map.lines : m->map.chains.length[chain];
        kernel(a, b, how, lines, s);
        a += lines * TRNI_SAFE_ROWS;
        b += lines * TRNI_SAFE_COLUMNS;
    }
    if (way != TRNI_SAFE_ODD)
        trni_safe_merge_for(t->p->isa)(way == TRNI_SAFE_CUT, t->sum, chains,
                                       t->p->numerics.merge == TRN_MERGE_ASCENDING, how, TRNI_SAFE_CELLS);
    trni_fp_modes_set(before);
    if (way == TRNI_SAFE_ODD)
        trni_lane_merge(&m->merge, TRNI_SAFE_CELLS, t->sum, t->bad); /* nothing is marked that matters */
}

TRNI_COLD void trni_safe_wide(trni_safe_work *t, const trni_safe_map *m, const trni_safe_span *span, trni_safe_way way,
                              int rows, float *sum)
{
    const bool exact = t->p->numerics.accumulator == TRN_ACCUMULATOR_EXACT;
    const trni_safe_how how = trni_safe_how_of(exact ? 53 : t->p->numerics.accumulator_bits, span->high);
    if (!t->a_wide) trni_safe_wide_strips_for(t->p->isa)(t->strips.d, t->a, m->map.lines);
    t->a_wide = true;
    trni_safe_widen_for(t->p->isa)(t->wide_b, t->b, (size_t)m->map.lines * TRNI_SAFE_COLUMNS);
    for (int row = 0; row < rows; row += TRNI_SAFE_ROWS) {
        const int cells = (rows - row < TRNI_SAFE_ROWS ? rows - row : (int)TRNI_SAFE_ROWS) * TRNI_SAFE_COLUMNS;
        float *to = sum + row * TRNI_SAFE_COLUMNS;
        trni_safe_wide_strip(t, m, way, &how, exact, t->strips.d + row * m->map.lines);
        if (way == TRNI_SAFE_BINS)
            trni_safe_join_for(t->p->isa)(to, t->sum, t->sum + TRNI_SAFE_CELLS, cells);
        else
            trni_safe_narrow_for(t->p->isa)(to, t->sum, (size_t)cells);
    }
}

/* Rounded products, in binary32. */
TRNI_COLD void trni_safe_shorts(trni_safe_work *t, const trni_safe_map *m, int rows, float *sum)
{
    const trni_chains *c = &m->map.chains;
    if (!t->a_wide) trni_safe_strips_of(t->strips.f, t->a, m->map.lines);
    t->a_wide = true;
    for (int row = 0; row < rows; row += TRNI_SAFE_ROWS) {
        const int cells = (rows - row < TRNI_SAFE_ROWS ? rows - row : (int)TRNI_SAFE_ROWS) * TRNI_SAFE_COLUMNS;
        const float *a = t->strips.f + row * m->map.lines, *b = t->b;
        for (int chain = 0; chain < c->count; chain++) {
            trni_safe_short_kernel(t->p->isa)(a, b, c->length[chain], t->single + chain * TRNI_SAFE_CELLS);
            a += c->length[chain] * TRNI_SAFE_ROWS;
            b += c->length[chain] * TRNI_SAFE_COLUMNS;
        }
        trni_lane_merge_single(&m->merge, TRNI_SAFE_CELLS, t->single);
        memcpy(sum + row * TRNI_SAFE_COLUMNS, t->single, sizeof(float) * (size_t)cells);
    }
}

/* False where the numbers are not safe; sum is as it was then. */
TRNI_COLD bool trni_safe_tile(trni_safe_work *t, const trni_loader *loader_b, int rows, int64_t column, int columns,
                              int64_t k, int depth, float *sum)
{
    const trni_safe_map *m = trni_safe_map_of(t, depth);
    const trn_numerics *n = &t->p->numerics;
    const trni_safe_range b_range = trni_safe_pack_b(t, loader_b, column, columns, k, depth);
    const trni_safe_span span = trni_safe_span_of(&t->a_range, &b_range, m->map.depth);
    if (t->course.kind == TRNI_COURSE_PANELS) {
        if ((t->course.halves && !span.finite) || (trni_flushes(n) && !trni_safe_normal(&span))) return false;
        trni_safe_panels(t, m, rows, columns, sum);
    } else if (t->course.kind == TRNI_COURSE_SHORT) {
        if (!trni_safe_short_applies(&span)) return false;
        trni_safe_shorts(t, m, rows, sum);
    } else {
        const trni_safe_way way = trni_safe_way_of(n, &span, t->course.halves, t->p->isa);
        if (way == TRNI_SAFE_NOT) return false;
        trni_safe_wide(t, m, &span, way, rows, sum);
    }
    return true;
}

/* ---- all of this, for array/product_lanes.h: where TRN_ALL_ORDERS says so, or once a text was read ---- */

static const trni_fast_orders trni_fast_orders_all
    __attribute__((unused)) = { TRNI_REGION_BYTES + sizeof(trni_safe_work),
                                trni_region_multiply_lanes,
                                trni_lane_passes_of,
                                trni_safe_init,
                                trni_safe_pack_a,
                                trni_safe_tile };

#if TRN_ALL_ORDERS
TRNI_FN const trni_fast_orders *trni_fast_orders_here(void) { return &trni_fast_orders_all; }
#else
static const trni_fast_orders *trni_fast_orders_opened __attribute__((unused));

TRNI_COLD void trni_fast_orders_open(void)
{
    __atomic_store_n(&trni_fast_orders_opened, &trni_fast_orders_all, __ATOMIC_RELAXED);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wc++-compat"
static trni_opener *const trni_open_by_text __attribute__((unused)) = trni_fast_orders_open;
#pragma GCC diagnostic pop

/* What there is, or null. */
TRNI_FN const trni_fast_orders *trni_fast_orders_here(void)
{
    return __atomic_load_n(&trni_fast_orders_opened, __ATOMIC_RELAXED);
}
#endif

#endif /* TRNI_ARRAY_PRODUCT_SAFE_H */
