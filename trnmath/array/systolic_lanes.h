/* array/systolic_lanes.h - every order of sums that is not plain binary32, 32 columns at a time.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: accumulators of 24 to 53 bits, to nearest even or toward zero, and exact ones; rounded products, flushing,
 *     pairs, quads, block scales, FP32 in halves; any chains, layout and merge. Passes that few orders need are in
 *     array/systolic_passes.h.
 * DOES NOT: decode operands, or know PSUM. The plain orders run faster in array/systolic_panels.h.
 *
 * Each lane computes in doubles. A product of two binary32 numbers is exact
 * there (48 bits), a sum is a double and its exact error (Knuth's TwoSum), and both are rounded once, as integers, to
 * the accumulator's bits. That leaves out what lies at the ends of binary32's range, infinities and NaN: such a lane is
 * marked, and trni_tile_of computes it again. Which lanes are marked decides about time, never about bits. Flushed
 * sums of 24 bits stay in binary32. Tiles that need no marks at all go through array/product_safe.h, and faster.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are; TwoSum after Knuth, TAOCP 2, 4.2.2.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_LANES_H
#define TRNI_ARRAY_SYSTOLIC_LANES_H

#include "../base/cpu.h"
#include "systolic.h"

/* 32 lanes: gcc 12 peels loops of up to 16 steps before it would vectorise them. Two rows of a hide the latency of a
 * single chain; STRETCH rows of the array keep their terms in the first-level cache. */
enum { TRNI_LANES = 32, TRNI_LANE_STRIP = 2, TRNI_LANE_CELLS = TRNI_LANES * TRNI_LANE_STRIP, TRNI_LANE_STRETCH = 32 };

typedef struct trni_lanes {
    const float *x;        /* [rows][group][x_step]: `strip` <= 2 rows of a, side by side, decoded */
    const float *w;        /* [rows][group][TRNI_LANES]: columns of b, decoded */
    const double *x_scale; /* [rows][x_step], powers of two or NaN: of those rows' MX blocks; null: none */
    const double *w_scale; /* [rows][TRNI_LANES], likewise */
    int strip, x_step, rows, group;
    int first_row; /* of the array */
    bool f32;      /* an operand is F32: fp32_mode applies */
} trni_lanes;

TRNI_INLINE double trni_lane_add(double s, double q, const trni_lane_rounding *r, bool down, uint64_t *bad)
{
    double e;
    const double t = trni_two_sum(s, q, &e);
    return trni_lane_round(t, e, r, down, bad);
}

/* ---- the passes over a stretch of terms, [term][strip][TRNI_LANES] ----
 *
 * `cells` = strip * TRNI_LANES of them stand side by side; bad[cells] is theirs. Steps are from row to row.
 * trni_lane_cells says it to compilers, which then add no code for a rest. */
TRNI_INLINE int trni_lane_cells(int cells) { return cells & ~(TRNI_LANES - 1); }

/* term = x * w, exactly. */
TRNI_INLINE void trni_lane_products_body(double *__restrict term, const float *__restrict x, int x_step,
                                         const float *__restrict w, int w_step, int strip, int count)
{
    for (int p = 0; p < count; p++, x += x_step, w += w_step)
        for (int i = 0; i < strip; i++, term += TRNI_LANES) {
            const double one = (double)x[i];
            for (int j = 0; j < TRNI_LANES; j++) term[j] = one * (double)w[j];
        }
}
TRNI_DISPATCH_AVX2(trni_lane_products,
                   (double *term, const float *x, int x_step, const float *w, int w_step, int strip, int count),
                   (term, x, x_step, w, w_step, strip, count))

/* Powers of two times powers of two: exact, and a NaN makes NaN. */
TRNI_INLINE void trni_lane_scales_body(double *__restrict term, const double *__restrict x, int x_step,
                                       const double *__restrict w, int strip, int count)
{
    for (int p = 0; p < count; p++, x += x_step, w += TRNI_LANES)
        for (int i = 0; i < strip; i++, term += TRNI_LANES) {
            const double one = x[i];
            for (int j = 0; j < TRNI_LANES; j++) term[j] *= one * w[j];
        }
}
TRNI_DISPATCH_AVX2(trni_lane_scales, (double *term, const double *x, int x_step, const double *w, int strip, int count),
                   (term, x, x_step, w, strip, count))

/* ---- the passes that add terms up: sum[chain][cells] += term[row][cells], row after row ---- */

/* Here those to nearest even; array/systolic_passes.h has others. */
#define TRNI_LANE_STEPS_PARAMS                                                                                         \
    double *sum, const uint8_t *chain, const double *term, int rows, int cells, const trni_lane_rounding *r,           \
        uint64_t *bad
#define TRNI_LANE_STEPS_ARGS sum, chain, term, rows, cells, r, bad

TRNI_INLINE void trni_lane_steps_body(bool down, TRNI_LANE_STEPS_PARAMS)
{
    const trni_lane_rounding how = *r;
    uint64_t *__restrict mark = bad;
    const double *__restrict q = term;
    cells = trni_lane_cells(cells);
    for (int p = 0; p < rows; p++, q += cells) {
        double *__restrict s = sum + chain[p] * cells;
        for (int i = 0; i < cells; i++) s[i] = trni_lane_add(s[i], q[i], &how, down, &mark[i]);
    }
}
TRNI_INLINE void trni_lane_nearest_body(TRNI_LANE_STEPS_PARAMS) { trni_lane_steps_body(false, TRNI_LANE_STEPS_ARGS); }
TRNI_DISPATCH_AVX2(trni_lane_nearest, (TRNI_LANE_STEPS_PARAMS), (TRNI_LANE_STEPS_ARGS))

/* x = x + y, binary32, flushed or not. */
TRNI_INLINE void trni_lane_add_line_body(float *__restrict x, const float *__restrict y, bool flush, size_t n)
{
    const float smallest = flush ? 0x1p-126f : 0;
    for (size_t i = 0; i < n; i++) {
        const float sum = x[i] + y[i];
        x[i] = trni_float(trni_bits(sum) & (fabsf(sum) < smallest ? TRNI_F32_SIGN : ~(uint32_t)0));
    }
}
TRNI_DISPATCH_AVX2(trni_lane_add_line, (float *x, const float *y, bool flush, size_t n), (x, y, flush, n))

/* ---- the passes that few orders need ---- */

#define TRNI_LANE_SINGLE_PARAMS                                                                                        \
    float *sum, const uint8_t *row, int rows, const float *x, int x_step, const float *w, int strip
#define TRNI_LANE_SINGLE_ARGS sum, row, rows, x, x_step, w, strip

typedef void trni_lane_single_fn(TRNI_LANE_SINGLE_PARAMS);

/* array/systolic_passes.h fills it, and says what each of them does. */
typedef struct trni_lane_passes {
    void (*halves)(float *half, const float *x, bool high, size_t n);
    void (*shorten)(double *term, int count, int cells, double flushed, const trni_lane_rounding *r, uint64_t *bad);
    void (*quads)(double *a, const double *b, const double *c, const double *d, int rows, int cells,
                  const trni_lane_rounding *r, uint64_t *bad);
    trni_lane_nearest_fn *down, *exact;
    void (*join)(double *sum, int cells, const trni_lane_rounding *r, uint64_t *bad);
    trni_lane_single_fn *single; /* or null: sums are flushed in doubles */
} trni_lane_passes;

/* ---- what all tiles of a product share ---- */

typedef struct trni_lane_plan {
    trn_numerics numerics;
    trn_isa isa;
    int first_row, rows;
    uint8_t chain[TRNI_ARRAY_ROWS]; /* of each row */
    trni_chains chains;             /* the other way round */
    /* in binary32: chains, and their merge; null where this order or this host has no such steps */
    trni_lane_single_fn *single;
    trni_lane_add_line_fn *single_add;
    /* in doubles */
    bool exact, split, shorten;        /* shorten: products are flushed or rounded */
    trni_lane_rounding product, group; /* what rounds a product, and the sum of a row's products */
    trni_lane_rounding sum;            /* a chain's sum, or the exact one */
    double flushed_products;           /* those below become zeros of their sign */
    trni_lane_nearest_fn *steps;
    trni_lane_passes passes;
} trni_lane_plan;

/* The aligned accumulators have no lanes. */
TRNI_FN bool trni_lanes_apply(const trn_numerics *n) { return n->accumulator <= TRN_ACCUMULATOR_EXACT; }

/* Flushed sums of 24 bits: a fused multiply-add and a look at what it gave. */
TRNI_COLD void trni_lane_plan_single(trni_lane_plan *plan)
{
    const trn_numerics *n = &plan->numerics;
    plan->single_add = trni_lane_add_line_for(plan->isa);
    plan->single = NULL;
    if (!plan->shorten && n->accumulator_bits == 24 && n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN && !plan->split &&
        n->flush_sums)
        plan->single = plan->passes.single;
}

/* For tiles of `rows` rows from row `first_row` of the array on. */
TRNI_COLD trni_lane_plan trni_lane_plan_of(const trn_numerics *n, int first_row, int rows, bool f32, trn_isa isa,
                                           const trni_lane_passes *passes)
{
    trni_lane_plan plan;
    const bool down = n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    plan.numerics = *n;
    plan.isa = isa;
    plan.passes = *passes;
    plan.exact = n->accumulator == TRN_ACCUMULATOR_EXACT;
    plan.split = f32 && !plan.exact && n->fp32_mode == TRN_FP32_SPLIT;
    plan.steps = plan.exact ? plan.passes.exact : down ? plan.passes.down : trni_lane_nearest_for(isa);
    plan.shorten = n->product == TRN_PRODUCT_BF16 || n->flush_products;
    plan.product = trni_lane_rounding_of(n->product == TRN_PRODUCT_BF16 ? 8 : 53, false, false);
    plan.group = trni_lane_rounding_of(24, false, n->flush_sums);
    plan.sum = plan.exact ? plan.group : trni_lane_rounding_of(n->accumulator_bits, down, n->flush_sums);
    plan.flushed_products = n->flush_products ? 0x1p-126 : 0;
    plan.first_row = first_row;
    plan.rows = rows;
    trni_chains_init(&plan.chains, n, first_row, rows);
    trni_lane_plan_single(&plan);
    for (int p = 0; p < rows; p++) plan.chain[p] = (uint8_t)trni_chain_of_row(n, first_row + p);
    return plan;
}

/* ---- one tile ---- */

typedef struct trni_lane_work {
    double term[TRNI_LANE_STRETCH * TRNI_LANE_CELLS] __attribute__((aligned(64))); /* [slot of the group][row][cells] */
    double sum[(int)TRNI_MAX_CHAINS * TRNI_LANE_CELLS] __attribute__((aligned(64)));
    uint64_t bad[TRNI_LANE_CELLS] __attribute__((aligned(64)));
    float x[TRNI_LANE_STRETCH * TRNI_LANE_STRIP], w[TRNI_LANE_STRETCH * TRNI_LANES]; /* halves */
} trni_lane_work;

/* Products of rows [first, first + rows), rounded as the plan says; in the split mode, those of one pass. */
TRNI_COLD void trni_lane_products_of(const trni_lane_plan *plan, const trni_lanes *t, int first, int rows, int pass,
                                     trni_lane_work *work)
{
    const int cells = t->strip * TRNI_LANES, w_step = t->group * TRNI_LANES;
    const float *x = t->x + first * t->group * t->x_step, *w = t->w + first * w_step;
    int x_step = t->group * t->x_step;
    if (plan->split) { /* one number a row */
        for (int p = 0; p < rows; p++)
            plan->passes.halves(work->x + p * TRNI_LANE_STRIP, x + p * x_step, pass & 2, (size_t)t->strip);
        plan->passes.halves(work->w, w, pass & 1, (size_t)(rows * w_step));
        x = work->x;
        w = work->w;
        x_step = TRNI_LANE_STRIP;
    }
    for (int slot = 0; slot < t->group; slot++)
        trni_lane_products_for(plan->isa)(work->term + slot * rows * cells, x + slot * t->x_step, x_step,
                                          w + slot * TRNI_LANES, w_step, t->strip, rows);
    if (plan->shorten)
        plan->passes.shorten(work->term, t->group * rows, cells, plan->flushed_products, &plan->product, work->bad);
}

/* The sum of each row's products, in place of the first of them. */
TRNI_COLD void trni_lane_groups(const trni_lane_plan *plan, int group, int rows, int cells, trni_lane_work *work)
{
    static const uint8_t row[TRNI_LANE_STRETCH / 2] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    double *slot[TRNI_MAX_GROUP];
    for (int i = 0; i < group; i++) slot[i] = work->term + i * rows * cells;
    if (plan->numerics.group == TRN_GROUP_EXACT && group == TRNI_MAX_GROUP) { /* an exact pair is a sequential one */
        plan->passes.quads(slot[0], slot[1], slot[2], slot[3], rows, cells, &plan->group, work->bad);
    } else {
        for (int i = 1; i < group; i++)
            trni_lane_nearest_for(plan->isa)(slot[0], row, slot[i], rows, cells, &plan->group, work->bad);
    }
}

/* What these rows add to their chains or, product by product, to an exact sum. */
TRNI_COLD void trni_lane_rows_of(const trni_lane_plan *plan, const trni_lanes *t, int first, int rows, int pass,
                                 trni_lane_work *work)
{
    const int cells = t->strip * TRNI_LANES, terms = plan->exact ? t->group : 1; /* of a row */
    trni_lane_products_of(plan, t, first, rows, pass, work);
    if (t->group > 1 && !plan->exact) trni_lane_groups(plan, t->group, rows, cells, work);
    for (int i = 0; i < terms && t->x_scale; i++)
        trni_lane_scales_for(plan->isa)(work->term + i * rows * cells, t->x_scale + first * t->x_step, t->x_step,
                                        t->w_scale + first * TRNI_LANES, t->strip, rows);
    plan->steps(work->sum, plan->chain + first, work->term, terms * rows, cells, &plan->sum, work->bad);
}

/* All chains to one sum. */
TRNI_COLD void trni_lane_merge(const trni_lane_plan *plan, int cells, double *s, uint64_t *bad)
{
    static const uint8_t first[TRNI_MAX_CHAINS] = { 0 };
    const trn_numerics *n = &plan->numerics;
    if (n->merge == TRN_MERGE_ASCENDING) {
        plan->steps(s, first, s + cells, n->chains - 1, cells, &plan->sum, bad);
        return;
    }
    for (int apart = 1; apart < n->chains; apart *= 2)
        for (int c = 0; c < n->chains; c += 2 * apart)
            plan->steps(s + c * cells, first, s + (c + apart) * cells, 1, cells, &plan->sum, bad);
}

/* In binary32. */
TRNI_COLD void trni_lane_merge_single(const trni_lane_plan *plan, int cells, float *s)
{
    const bool flush = plan->numerics.flush_sums;
    const int count = plan->numerics.chains;
    if (plan->numerics.merge == TRN_MERGE_ASCENDING)
        for (int i = 1; i < count; i++) plan->single_add(s, s + i * cells, flush, (size_t)cells);
    else
        for (int apart = 1; apart < count; apart *= 2)
            for (int i = 0; i < count; i += 2 * apart)
                plan->single_add(s + i * cells, s + (i + apart) * cells, flush, (size_t)cells);
}

/* One cell by definition. A NaN among the operands decides at once. */
TRNI_COLD float trni_lane_define(const trni_lane_plan *plan, const trni_lanes *t, int row, int lane)
{
    float x[TRNI_ARRAY_ROWS * TRNI_MAX_GROUP], w[TRNI_ARRAY_ROWS * TRNI_MAX_GROUP];
    int16_t scale[TRNI_ARRAY_ROWS];
    bool nan = false;
    for (int p = 0; p < t->rows * t->group; p++) {
        x[p] = t->x[p * t->x_step + row];
        w[p] = t->w[p * TRNI_LANES + lane];
        nan = nan || trni_is_nan_bits(trni_bits(x[p])) || trni_is_nan_bits(trni_bits(w[p]));
    }
    for (int p = 0; t->x_scale && p < t->rows; p++) {
        const double both = t->x_scale[p * t->x_step + row] * t->w_scale[p * TRNI_LANES + lane];
        nan = nan || !trni_finite64(both);
        scale[p] = (int16_t)((int)(trni_bits64(both) >> 52) - 1023);
    }
    trni_tile one;
    memset(&one, 0, sizeof one);
    one.x = x;
    one.w = w;
    one.scale = t->x_scale ? scale : NULL;
    one.rows = t->rows;
    one.group = t->group;
    one.first_row = t->first_row;
    one.f32 = t->f32;
    return nan ? trni_float(TRNI_F32_NAN) : trni_tile_of(&one, &plan->numerics);
}

/* In doubles. */
TRNI_COLD void trni_lanes_sum_double(const trni_lane_plan *plan, const trni_lanes *t, float *sum)
{
    trni_lane_work work;
    const int cells = t->strip * TRNI_LANES, stretch = TRNI_LANE_STRETCH / t->group;
    memset(work.sum, 0, sizeof(double) * (size_t)(cells * (plan->exact ? 3 : plan->numerics.chains)));
    memset(work.bad, 0, sizeof work.bad);
    for (int pass = 0; pass < (plan->split ? 4 : 1); pass++)
        for (int first = 0; first < t->rows; first += stretch)
            trni_lane_rows_of(plan, t, first, t->rows - first < stretch ? t->rows - first : stretch, pass, &work);
    if (plan->exact)
        plan->passes.join(work.sum, cells, &plan->sum, work.bad);
    else
        trni_lane_merge(plan, cells, work.sum, work.bad);
    for (int i = 0; i < cells; i++)
        sum[i] = work.bad[i] ? trni_lane_define(plan, t, i / TRNI_LANES, i % TRNI_LANES) : (float)work.sum[i];
}

/* In binary32: sums are flushed, and nothing else is out of the ordinary. */
TRNI_COLD void trni_lanes_sum_single(const trni_lane_plan *plan, const trni_lanes *t, float *sum)
{
    float s[(int)TRNI_MAX_CHAINS * TRNI_LANE_CELLS] __attribute__((aligned(64)));
    const trni_chains *c = &plan->chains;
    const int cells = t->strip * TRNI_LANES;
    memset(s, 0, sizeof(float) * (size_t)(cells * c->count));
    for (int chain = 0, slot = 0; chain < c->count; slot += c->length[chain++])
        plan->single(s + chain * cells, c->row + slot, c->length[chain], t->x, t->x_step, t->w, t->strip);
    trni_lane_merge_single(plan, cells, s);
    memcpy(sum, s, sizeof(float) * (size_t)cells);
}

/* sum[strip][TRNI_LANES]: what trni_tile_of says of each row and column, bit for bit, but for the bits of a NaN. */
TRNI_COLD void trni_lanes_sum(const trni_lane_plan *plan, const trni_lanes *t, float *sum)
{
    if (plan->single && t->group == 1 && !t->x_scale)
        trni_lanes_sum_single(plan, t, sum);
    else
        trni_lanes_sum_double(plan, t, sum);
}

#endif /* TRNI_ARRAY_SYSTOLIC_LANES_H */
