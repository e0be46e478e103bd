/* engine/vector_statistics.h - count, mean and variance of partitions on the Vector engine: bn_stats, bn_aggr.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         static float x[2 * 4] = { 1, 2, 3, 4, 5, 5, 5, 5 }, stats[2 * 6], moments[2 * 2];
 *         trn_bn_stats_args one = { .dst = trn_tensor_2d(TRN_F32, stats, 2, 6),
 *                                   .data = trn_tensor_2d(TRN_F32, x, 2, 4) };
 *         trn_bn_aggr_args all = { .dst = trn_tensor_2d(TRN_F32, moments, 2, 2), .data = one.dst };
 *         if (trn_bn_stats(&one) || trn_bn_aggr(&all)) return 1;
 *         return moments[0] == 2.5f && moments[1] == 1.25f && moments[3] == 0.0f ? 0 : 1;
 *     }
 *
 * DOES: both instructions, any formats in and out, binary32 inside; all generations.
 * DOES NOT: choose other orders (numerics.reduce_order) or flush subnormals (numerics.flush_*): these fields do not
 *     apply here.
 *
 * bn_stats, for the even and the odd elements of a partition by themselves, every operation rounded to binary32:
 *     sum    = (((0 + x0) + x2) + x4) ...            in ascending order
 *     mean   = sum / count
 *     square = (((0 + d0 d0) + d2 d2) + ...),  d = x - mean; each product is rounded before it is added
 * and 0, 0, 0 where there are no elements. Results that are NaN are 7fc00000.
 *
 * bn_aggr, over triples (c, m, s) in ascending order; the first one with c != 0 is taken as it is, those with c = 0 are
 * passed over, and another (c', m', s') joins (c, m, s) by
 *     total = c + c',  delta = m' - m,  share = c' / total
 *     s = (s + s') + (delta delta) (c share)
 *     m = m + delta share
 *     c = total
 * with every operation rounded. dst gets m and s / c, or 0 and 0 when nothing was counted.
 *
 * KNOWN FROM: NKI, bn_stats, bn_aggr (documented: the six and the two results, float32, at most 512 elements, triples);
 *     two passes, their order, Chan's update and division by the count: assumed (models of the instructions' results
 *     that a device may refine).
 */
#ifndef TRNI_ENGINE_VECTOR_STATISTICS_H
#define TRNI_ENGINE_VECTOR_STATISTICS_H

#include "alu.h"

typedef struct trn_bn_stats_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 6]: count, mean, variance * count; even elements, then odd ones */
    trn_tensor data; /* [P, F], F <= 512 */
} trn_bn_stats_args;

typedef struct trn_bn_aggr_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 2]: mean, variance */
    trn_tensor data; /* [P, 3 n]: count, mean, variance * count */
} trn_bn_aggr_args;

enum { TRN_BN_STATS_MAX = 512 }; /* elements per partition */

/* ---- bn_stats ---- */

/* TRN_ELIMIT: more than 512 elements per partition, unless .unlimited; TRN_ESHAPE: dst is not [P, 6]; TRN_EINVAL:
 * overlap. */
TRN_API trn_status trn_bn_stats(const trn_bn_stats_args *args);

/* ---- bn_aggr ---- */

/* TRN_ESHAPE: data does not hold triples, or dst is not [P, 2]; TRN_EINVAL: overlap. */
TRN_API trn_status trn_bn_aggr(const trn_bn_aggr_args *args);

#if TRNI_BODIES

#include "vector_transpose.h"

/* ---- bn_stats ---- */

/* sum[i mod 2] += tile[i], in ascending order. */
TRNI_INLINE void trni_bn_sum_body(float (*sum)[TRNI_TRANSPOSED_LANES], const float *__restrict tile, size_t n)
{
    float even[TRNI_TRANSPOSED_LANES], odd[TRNI_TRANSPOSED_LANES];
    memcpy(even, sum[0], sizeof even);
    memcpy(odd, sum[1], sizeof odd);
    for (; n > 1; n -= 2, tile += 2 * TRNI_TRANSPOSED_LANES)
        for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++) {
            even[lane] += tile[lane];
            odd[lane] += tile[TRNI_TRANSPOSED_LANES + lane];
        }
    for (int lane = 0; n && lane < TRNI_TRANSPOSED_LANES; lane++) even[lane] += tile[lane];
    memcpy(sum[0], even, sizeof even);
    memcpy(sum[1], odd, sizeof odd);
}

TRNI_DISPATCH(trni_bn_sum, (float (*sum)[TRNI_TRANSPOSED_LANES], const float *__restrict tile, size_t n),
              (sum, tile, n))

/* tile[i] = (tile[i] - mean[i mod 2])^2. Apart from the sum, so that no compiler fuses the two. */
TRNI_INLINE void trni_bn_square_body(float *__restrict tile, const float (*mean)[TRNI_TRANSPOSED_LANES], size_t n)
{
    for (size_t i = 0; i < n; i++, tile += TRNI_TRANSPOSED_LANES)
        for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++) {
            const float d = tile[lane] - mean[i & 1][lane];
            tile[lane] = d * d;
        }
}

TRNI_DISPATCH(trni_bn_square, (float *__restrict tile, const float (*mean)[TRNI_TRANSPOSED_LANES], size_t n),
              (tile, mean, n))

typedef struct trni_bn_plan {
    trni_span dst, data;
} trni_bn_plan;

TRNI_FN void trni_bn_stats_work(const void *plan, int64_t p, int64_t lanes, void *room)
{
    const trni_bn_plan *b = (const trni_bn_plan *)plan;
    trni_transposed *const t = (trni_transposed *)room;
    float *const tile = t->tile;
    float sum[2][TRNI_TRANSPOSED_LANES] = { { 0 } }, mean[2][TRNI_TRANSPOSED_LANES] = { { 0 } },
          square[2][TRNI_TRANSPOSED_LANES] = { { 0 } };
    const int64_t all = b->data.elements, chunk = TRNI_TRANSPOSED_CHUNK;
    const float count[2] = { (float)(all - all / 2), (float)(all / 2) };
    for (int64_t f = 0; f < all; f += chunk) {
        const int64_t n = trni_min64(chunk, all - f);
        trni_transposed_read(&b->data, p, lanes, f, n, t);
        trni_bn_sum_for(b->data.isa)(sum, tile, (size_t)n);
    }
    for (int i = 0; i < 2 * TRNI_TRANSPOSED_LANES && all > i / TRNI_TRANSPOSED_LANES; i++)
        mean[i / TRNI_TRANSPOSED_LANES][i % TRNI_TRANSPOSED_LANES] =
            sum[i / TRNI_TRANSPOSED_LANES][i % TRNI_TRANSPOSED_LANES] / count[i / TRNI_TRANSPOSED_LANES];
    for (int64_t f = 0; f < all; f += chunk) {
        const int64_t n = trni_min64(chunk, all - f);
        if (all > chunk) trni_transposed_read(&b->data, p, lanes, f, n, t); /* else it is there still */
        trni_bn_square_for(b->data.isa)(tile, (const float(*)[TRNI_TRANSPOSED_LANES])mean, (size_t)n);
        trni_bn_sum_for(b->data.isa)(square, tile, (size_t)n);
    }
    for (int lane = 0; lane < lanes; lane++) {
        const float result[6] = { count[0], trni_alu_number(mean[0][lane]), trni_alu_number(square[0][lane]),
                                  count[1], trni_alu_number(mean[1][lane]), trni_alu_number(square[1][lane]) };
        trni_span_write(&b->dst, p + lane, 0, 6, result);
    }
}

TRNI_FN trn_status trni_bn_begin(trni_frame *f, const void *args, trni_view *v, const trn_tensor *data,
                                 const char *what)
{
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, what);
    (void)trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, what);
    trni_frame_view(f, v, data, "data", TRNI_INPUT);
    if (f->status) return f->status;
    f->partitions = data->shape[0];
    f->elements = v->width;
    return f->status;
}

TRNI_FN trn_status trni_bn_run(const trni_frame *f, const trni_view *data, size_t room, trni_partitions_work *work)
{
    trni_bn_plan plan;
    if (f->partitions == 0) return TRN_OK;
    trni_span_init(&plan.data, data, f->isa);
    trni_span_output(&plan.dst, &f->dst, f);
    return trni_partitions_each_in(room, f, TRNI_TRANSPOSED_LANES, work, &plan);
}

TRN_API trn_status trn_bn_stats(const trn_bn_stats_args *args)
{
    trni_frame f;
    trni_view data;
    TRNI_ENTER(args);
    if (trni_bn_begin(&f, args, &data, &args->data, "bn_stats")) return f.status;
    if (!args->unlimited && f.elements > TRN_BN_STATS_MAX)
        return trni_fail(args->error, TRN_ELIMIT, "data has %lld elements per partition; bn_stats takes at most %d",
                         (long long)f.elements, (int)TRN_BN_STATS_MAX);
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, f.partitions, 6);
    trni_frame_apart(&f, &f.dst, &data);
    return f.status ? f.status : trni_bn_run(&f, &data, sizeof(trni_transposed), trni_bn_stats_work);
}

/* ---- bn_aggr ---- */

/* A product that is rounded before anything is added to it. */
TRNI_FN float trni_bn_product(float a, float b)
{
    volatile float product = a * b;
    return product;
}

/* c, m, s and another triple. */
TRNI_FN void trni_bn_join(float *all, const float *other)
{
    if (other[0] == 0.0f) return;
    if (all[0] == 0.0f) {
        memcpy(all, other, 3 * sizeof all[0]);
        return;
    }
    const float total = all[0] + other[0], delta = other[1] - all[1], share = other[0] / total;
    const float apart = trni_bn_product(trni_bn_product(delta, delta), trni_bn_product(all[0], share));
    all[2] = (all[2] + other[2]) + apart;
    all[1] = all[1] + trni_bn_product(delta, share);
    all[0] = total;
}

TRNI_FN void trni_bn_aggr_work(const void *plan, int64_t p, int64_t lanes, void *room)
{
    (void)room;
    enum { most = TRNI_SPAN_CHUNK / 3 * 3 };
    const trni_bn_plan *b = (const trni_bn_plan *)plan;
    float buffer[TRNI_SPAN_CHUNK];
    for (; lanes > 0; lanes--, p++) {
        float all[3] = { 0, 0, 0 };
        for (int64_t f = 0; f < b->data.elements; f += most) {
            const int64_t n = trni_min64(most, b->data.elements - f);
            const float *triple = trni_span_read(&b->data, p, f, n, buffer);
            for (int64_t i = 0; i < n; i += 3) trni_bn_join(all, triple + i);
        }
        const bool nothing = all[0] == 0.0f; /* or counts of both signs that cancel */
        const float result[2] = { nothing ? 0.0f : trni_alu_number(all[1]),
                                  nothing ? 0.0f : trni_alu_number(all[2] / all[0]) };
        trni_span_write(&b->dst, p, 0, 2, result);
    }
}

TRN_API trn_status trn_bn_aggr(const trn_bn_aggr_args *args)
{
    trni_frame f;
    trni_view data;
    TRNI_ENTER(args);
    if (trni_bn_begin(&f, args, &data, &args->data, "bn_aggr")) return f.status;
    if (f.elements % 3)
        return trni_fail(args->error, TRN_ESHAPE, "data has %lld elements per partition; bn_aggr takes triples",
                         (long long)f.elements);
    trni_frame_tile(&f, &f.dst, &args->dst, "dst", TRNI_OUTPUT, f.partitions, 2);
    trni_frame_apart(&f, &f.dst, &data);
    return f.status ? f.status : trni_bn_run(&f, &data, 0, trni_bn_aggr_work);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_STATISTICS_H */
