/* array/systolic_passes.h - the passes of array/systolic_lanes.h that few orders need.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: products that are flushed or rounded, exact sums, sums toward zero, FP32 in halves, and flushed sums in
 *     binary32.
 * DOES NOT: go over tiles: array/systolic_lanes.h does, and is told of these by trni_lane_passes.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_PASSES_H
#define TRNI_ARRAY_SYSTOLIC_PASSES_H

#include "systolic_lanes.h"

/* ---- an exact sum in three doubles ---- */

/* (*high, *mid, *low) += q; *bad where that is not exact. */
TRNI_INLINE void trni_lane_add_exact(double *high, double *mid, double *low, double q, uint64_t *bad)
{
    double e;
    *high = trni_two_sum(*high, q, &e);
    *mid = trni_two_sum(*mid, e, &e);
    *low = trni_two_sum(*low, e, &e);
    *bad |= e == 0 ? 0 : ~(uint64_t)0;
}

/* Their sum, to nearest even: first as a number and an error that is smaller than half of the number's last place or,
 * where it is just that half, has the right sign. */
TRNI_INLINE double trni_lane_round_exact(double high, double mid, double low, const trni_lane_rounding *r,
                                         uint64_t *bad)
{
    mid = trni_two_sum(mid, low, &low);
    high = trni_two_sum(high, mid, &mid);
    mid = trni_two_sum(mid, low, &low); /* again, because the first two may have cancelled */
    high = trni_two_sum(high, mid, &mid);
    return trni_lane_round(high, mid == 0 ? low : mid, r, false, bad);
}

/* ---- passes over a stretch of terms ---- */

/* A half of each number, as trni_split takes it. Of infinities and NaN at least one half is NaN: their lanes are
 * marked. */
TRNI_INLINE void trni_lane_halves_body(float *__restrict half, const float *__restrict x, bool high, size_t n)
{
    const uint32_t taken = high ? 0 : ~(uint32_t)0;
    for (size_t i = 0; i < n; i++) {
        const float top = trni_high_part(x[i]), rest = x[i] - top;
        half[i] = trni_float((trni_bits(rest) & taken) | (trni_bits(top) & ~taken));
    }
}
TRNI_DISPATCH_AVX2(trni_lane_halves, (float *half, const float *x, bool high, size_t n), (half, x, high, n))

/* Products flushed and rounded. */
TRNI_INLINE void trni_lane_shorten_body(double *__restrict term, int count, int cells, double flushed,
                                        const trni_lane_rounding *r, uint64_t *__restrict bad)
{
    const trni_lane_rounding how = *r;
    cells = trni_lane_cells(cells);
    for (int p = 0; p < count; p++, term += cells)
        for (int i = 0; i < cells; i++) {
            const uint64_t u = trni_bits64(term[i]),
                           kept = trni_double(u & ~TRNI_F64_SIGN) < flushed ? TRNI_F64_SIGN : ~(uint64_t)0;
            term[i] = trni_lane_round(trni_double(u & kept), 0, &how, false, &bad[i]);
        }
}
TRNI_DISPATCH_AVX2(trni_lane_shorten,
                   (double *term, int count, int cells, double flushed, const trni_lane_rounding *r, uint64_t *bad),
                   (term, count, cells, flushed, r, bad))

/* a = the exact sum of four, rounded once. */
TRNI_INLINE void trni_lane_quads_body(double *__restrict a, const double *__restrict b, const double *__restrict c,
                                      const double *__restrict d, int rows, int cells, const trni_lane_rounding *r,
                                      uint64_t *__restrict bad)
{
    const trni_lane_rounding how = *r;
    cells = trni_lane_cells(cells);
    for (int p = 0; p < rows; p++, a += cells, b += cells, c += cells, d += cells)
        for (int i = 0; i < cells; i++) {
            double high = 0, mid = 0, low = 0;
            uint64_t mark = 0;
            const uint64_t minus_zero =
                trni_bits64(a[i] + b[i] + c[i] + d[i]) == TRNI_F64_SIGN ? TRNI_F64_SIGN : 0; /* all are -0 */
            trni_lane_add_exact(&high, &mid, &low, a[i], &mark);
            trni_lane_add_exact(&high, &mid, &low, b[i], &mark);
            trni_lane_add_exact(&high, &mid, &low, c[i], &mark);
            trni_lane_add_exact(&high, &mid, &low, d[i], &mark);
            a[i] = trni_double(trni_bits64(trni_lane_round_exact(high, mid, low, &how, &mark)) | minus_zero);
            bad[i] |= mark;
        }
}
TRNI_DISPATCH_AVX2(trni_lane_quads,
                   (double *a, const double *b, const double *c, const double *d, int rows, int cells,
                    const trni_lane_rounding *r, uint64_t *bad),
                   (a, b, c, d, rows, cells, r, bad))

/* ---- passes that add terms up ---- */

TRNI_INLINE void trni_lane_down_body(TRNI_LANE_STEPS_PARAMS) { trni_lane_steps_body(true, TRNI_LANE_STEPS_ARGS); }
TRNI_DISPATCH_AVX2(trni_lane_down, (TRNI_LANE_STEPS_PARAMS), (TRNI_LANE_STEPS_ARGS))

/* The exact sum, in sum[3][cells]. */
TRNI_INLINE void trni_lane_exact_body(TRNI_LANE_STEPS_PARAMS)
{
    double *__restrict high = sum, *__restrict mid = sum + cells, *__restrict low = sum + 2 * cells;
    uint64_t *__restrict mark = bad;
    const double *__restrict q = term;
    (void)chain, (void)r;
    cells = trni_lane_cells(cells);
    for (int p = 0; p < rows; p++, q += cells)
        for (int i = 0; i < cells; i++) trni_lane_add_exact(&high[i], &mid[i], &low[i], q[i], &mark[i]);
}
TRNI_DISPATCH_AVX2(trni_lane_exact, (TRNI_LANE_STEPS_PARAMS), (TRNI_LANE_STEPS_ARGS))

/* And to one double, in place of the highest part. */
TRNI_COLD void trni_lane_join(double *sum, int cells, const trni_lane_rounding *r, uint64_t *bad)
{
    for (int i = 0; i < cells; i++)
        sum[i] = trni_lane_round_exact(sum[i], sum[cells + i], sum[2 * cells + i], r, &bad[i]);
}

/* ---- chains in binary32: steps that are fused multiply-adds there ----
 *
 * sum[strip][TRNI_LANES] = x * w + sum for each of the listed rows, in registers. Nothing is marked: binary32 itself
 * does what the definition says, at both ends of the range. Not for hosts without such an instruction. */

TRNI_INLINE float trni_flushed_single(float x)
{
    return trni_float(trni_bits(x) & (fabsf(x) < 0x1p-126f ? TRNI_F32_SIGN : ~(uint32_t)0));
}

TRNI_INLINE void trni_lane_single_strip(TRNI_LANE_SINGLE_PARAMS)
{
    float s[TRNI_LANE_STRIP][TRNI_LANES];
    TRNI_UNROLL for (int i = 0; i < strip; i++) for (int j = 0; j < TRNI_LANES; j++) s[i][j] = sum[i * TRNI_LANES + j];
    for (int k = 0; k < rows; k++) {
        const float *a = x + row[k] * x_step, *b = w + row[k] * TRNI_LANES;
        TRNI_UNROLL for (int i = 0; i < strip; i++) for (int j = 0; j < TRNI_LANES; j++) s[i][j] =
            trni_flushed_single(__builtin_fmaf(a[i], b[j], s[i][j]));
    }
    TRNI_UNROLL for (int i = 0; i < strip; i++) for (int j = 0; j < TRNI_LANES; j++) sum[i * TRNI_LANES + j] = s[i][j];
}

TRNI_INLINE void trni_lane_single_flush_body(TRNI_LANE_SINGLE_PARAMS)
{
    if (strip == TRNI_LANE_STRIP)
        trni_lane_single_strip(sum, row, rows, x, x_step, w, TRNI_LANE_STRIP);
    else
        trni_lane_single_strip(sum, row, rows, x, x_step, w, 1);
}
TRNI_DISPATCH_FAST_AVX2(trni_lane_single_flush, (TRNI_LANE_SINGLE_PARAMS), (TRNI_LANE_SINGLE_ARGS))

/* ---- all of them ---- */

TRNI_COLD trni_lane_passes trni_lane_passes_of(trn_isa isa)
{
    const bool fused = TRNI_AARCH64 || isa == TRN_ISA_AVX2 || isa == TRN_ISA_AVX512;
    trni_lane_passes all;
    all.halves = trni_lane_halves_for(isa);
    all.shorten = trni_lane_shorten_for(isa);
    all.quads = trni_lane_quads_for(isa);
    all.down = trni_lane_down_for(isa);
    all.exact = trni_lane_exact_for(isa);
    all.join = trni_lane_join;
    all.single = fused ? trni_lane_single_flush_for(isa) : NULL;
    return all;
}

TRNI_COLD void trni_lanes_of(const trni_lanes *t, const trn_numerics *n, trn_isa isa, float *sum)
{
    const trni_lane_passes passes = trni_lane_passes_of(isa);
    const trni_lane_plan plan = trni_lane_plan_of(n, t->first_row, t->rows, t->f32, isa, &passes);
    trni_lanes_sum(&plan, t, sum);
}

#endif /* TRNI_ARRAY_SYSTOLIC_PASSES_H */
