/* array/matmul_dots.h - a product of a single row of a with columns of b whose numbers stand in a row along K.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: reads weights as frameworks store them, [out, in], once and in memory order, and does not turn them: with four
 *     interleaved chains four numbers along K that follow each other belong to four chains, the lanes of a vector.
 * DOES NOT: other chains, double rows or MX: array/matmul_slabs.h packs those.
 *
 * KNOWN FROM: the order of array/systolic.h.
 */
#ifndef TRNI_ARRAY_MATMUL_DOTS_H
#define TRNI_ARRAY_MATMUL_DOTS_H

#include "matmul_worker.h"

enum {
    TRNI_DOTS = 8,         /* columns at a time */
    TRNI_DOT_STRETCH = 512 /* numbers of each that are decoded at a time */
};

/* s[column][chain] = sums of `depth` products each, from +0; a column's numbers are binary32, or what the kernel says,
 * at line, `step` bytes from the next column's. */
#define TRNI_DOTS_PARAMS float *s, const float *x, const unsigned char *line, int64_t step, int depth

TRNI_INLINE void trni_dots_body(const int count, TRNI_DOTS_PARAMS)
{
    for (int i = 0; i < count; i++, s += TRNI_DOT_CHAINS, line += step) {
        float t[TRNI_DOT_CHAINS] = { 0 }, w[TRNI_DOT_CHAINS];
        for (int k = 0; k < depth; k += TRNI_DOT_CHAINS) {
            const int rows = depth - k < TRNI_DOT_CHAINS ? depth - k : (int)TRNI_DOT_CHAINS;
            memcpy(w, line + (size_t)k * sizeof *w, sizeof *w * (size_t)rows);
            for (int c = 0; c < rows; c++) t[c] = __builtin_fmaf(x[k + c], w[c], t[c]);
        }
        memcpy(s, t, sizeof t);
    }
}
TRNI_INLINE void trni_dots_8_body(TRNI_DOTS_PARAMS) { trni_dots_body(TRNI_DOTS, s, x, line, step, depth); }
TRNI_INLINE void trni_dots_1_body(TRNI_DOTS_PARAMS) { trni_dots_body(1, s, x, line, step, depth); }
TRNI_DISPATCH_BESIDE(trni_dots_8, (TRNI_DOTS_PARAMS), (s, x, line, step, depth))
TRNI_DISPATCH_BESIDE(trni_dots_1, (TRNI_DOTS_PARAMS), (s, x, line, step, depth))

#if TRNI_PANEL_SIMD
#include "../simd/matmul_dots_avx2.h"
#include "../simd/matmul_dots_avx512.h"
#endif

/* How columns of b are read. */
typedef struct trni_dots {
    trni_dots_8_fn *eight, *one;
    bool direct; /* where they stand; else they are decoded first */
    bool codes;  /* where eight of them stand, by trni_dots_codes */
} trni_dots;

TRNI_DRIVER trni_dots trni_dots_of(const trni_worker *w)
{
    const trni_operand *b = &w->p->b;
    const trn_isa isa = w->p->isa;
    trni_dots d = { trni_dots_8_for(isa), trni_dots_1_for(isa), b->format == TRN_F32, false };
#if TRNI_PANEL_SIMD
    if (isa == TRN_ISA_PORTABLE) return d;
    static const struct {
        trn_format format;
        trni_dots_8_fn *eight, *one;
    } own[] = { { TRN_BF16, trni_simd_dots_8_bf16_avx2, trni_simd_dots_1_bf16_avx2 },
                { TRN_F16, trni_simd_dots_8_f16_avx2, trni_simd_dots_1_f16_avx2 },
                { TRN_F32, trni_simd_dots_8_f32_avx2, trni_simd_dots_1_f32_avx2 } };
    size_t i = 0; /* the last is for what is decoded, too */
    while (own[i].format != b->format && own[i].format != TRN_F32) i++;
    d.eight = isa == TRN_ISA_AVX512 && b->format == TRN_BF16 ? trni_simd_dots_8_bf16_avx512 : own[i].eight;
    d.one = own[i].one;
    d.direct = own[i].format == b->format;
    d.codes = w->loader_b.woven; /* the tables are there */
#endif
    return d;
}

/* The single row of a, decoded. */
TRNI_DRIVER void trni_dot_row(const trni_worker *w, int64_t k, int64_t depth, float *x)
{
    const trni_operand *o = &w->p->a;
    if (o->depth_stride == 1) {
        trni_loader_line(&w->loader_a, x, trni_operand_at(o, 0, k), (size_t)depth);
        return;
    }
    for (int64_t t = 0; t < depth; t++) trni_loader_line(&w->loader_a, x + t, trni_operand_at(o, 0, k + t), 1);
}

/* `depth` numbers of a column from k on, decoded: as panels of the loader that follow each other, and what is left. */
TRNI_DRIVER void trni_dot_line(const trni_loader *loader, const unsigned char *src, int64_t depth, float *line)
{
    static const uint16_t first[1] = { 0 };
    const int64_t whole = depth / loader->width, done = whole * loader->width;
    if (whole) loader->lines(loader, line, (size_t)loader->width, first, src, 0, 1, whole);
    if (done < depth) trni_loader_line(loader, line + done, src + done * loader->bytes, (size_t)(depth - done));
}

/* PSUM of `count` columns after the tile at k, whose chains have come to s. */
TRNI_LEAN void trni_dots_join(const trni_worker *w, const float s[TRNI_DOTS][TRNI_DOT_CHAINS], int64_t k, int64_t n,
                              int count, float *psum)
{
    const bool pairs = w->p->numerics.merge == TRN_MERGE_PAIRWISE, fresh = k == 0 && !w->p->accumulate;
    for (int i = 0; i < count; i++) {
        const float first = s[i][0] + s[i][1];
        const float sum = pairs ? first + (s[i][2] + s[i][3]) : first + s[i][2] + s[i][3];
        psum[i] = fresh ? sum : psum[i] + sum;
    }
    trni_worker_round(w, psum, 0, 1, count, 0, n, k);
}

/* Eight columns of codes of a byte, looked up where they stand. */
TRNI_LEAN void trni_dots_codes(const trni_worker *w, const float *x, int64_t k, int64_t depth, int64_t n, float *psum)
{
#if TRNI_PANEL_SIMD
    const trni_operand *o = &w->p->b;
    float s[TRNI_DOTS][TRNI_DOT_CHAINS];
    for (int64_t part = 0, deep; part < depth; part += deep) {
        deep = trni_min64(depth - part, w->p->numerics.k_tile);
        trni_simd_dots_8_bytes_avx512(&w->loader_b.decoder, s[0], x + part, trni_operand_at(o, n, k + part),
                                      o->lane_stride, (int)deep);
        trni_dots_join(w, (const float(*)[TRNI_DOT_CHAINS])s, k + part, n, TRNI_DOTS, psum);
    }
#else
    (void)w, (void)x, (void)k, (void)depth, (void)n, (void)psum;
#endif
}

/* Columns [n, n + count), count <= TRNI_DOTS, over the numbers [k, k + depth) of a, decoded at x. */
TRNI_LEAN void trni_dots_columns(const trni_worker *w, const trni_dots *dots, const float *x, int64_t k, int64_t depth,
                                 int64_t n, int count, float *psum)
{
    TRNI_LINES(float) line[TRNI_DOTS * TRNI_DOT_STRETCH];
    float s[TRNI_DOTS][TRNI_DOT_CHAINS];
    const trni_operand *o = &w->p->b;
    const int tile = w->p->numerics.k_tile;
    const int64_t most = TRNI_DOT_STRETCH / tile * tile;
    for (int64_t t = 0; t < depth; t += most) {
        const int64_t stretch = trni_min64(depth - t, most), bytes = dots->direct ? o->bytes : (int64_t)sizeof(float),
                      step = dots->direct ? o->lane_stride * bytes : (int64_t)sizeof(float) * TRNI_DOT_STRETCH;
        if (count == TRNI_DOTS && dots->codes) {
            trni_dots_codes(w, x + t, k + t, stretch, n, psum);
            continue;
        }
        /* While some are decoded, memory is asked for those that come next: here, or TRNI_DOTS columns further on. */
        const int64_t next = t + stretch < depth ? stretch * o->bytes : (TRNI_DOTS * o->lane_stride - t) * o->bytes;
        for (int i = 0; i < count && !dots->direct; i++) {
            const unsigned char *at = trni_operand_at(o, n + i, k + t);
            for (int64_t c = next; c < next + stretch * o->bytes; c += TRNI_LINE)
                __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)c));
            trni_dot_line(&w->loader_b, at, stretch, line + i * TRNI_DOT_STRETCH);
        }
        for (int64_t part = 0; part < stretch; part += tile) {
            const int deep = (int)trni_min64(stretch - part, tile);
            const unsigned char *at =
                dots->direct ? trni_operand_at(o, n, k + t) : (const unsigned char *)(const void *)line;
            at += part * bytes;
            if (count == TRNI_DOTS)
                dots->eight(s[0], x + t + part, at, step, deep);
            else
                for (int i = 0; i < count; i++) dots->one(s[i], x + t + part, at + i * step, step, deep);
            trni_dots_join(w, (const float(*)[TRNI_DOT_CHAINS])s, k + t + part, n, count, psum);
        }
    }
}

TRNI_LEAN void trni_region_dots(const trni_worker *w, int64_t n, int64_t columns)
{
    const trni_product *p = w->p;
    float *psum = w->cut->direct ? (float *)(void *)trni_dst_at(p, 0, n) : w->psum, *x = w->row;
    const trni_dots dots = trni_dots_of(w);
    const int64_t most = trni_dot_depth(p);
    if (p->accumulate && !w->cut->direct) trni_psum_from_dst(p, w->psum, 0, 1, n, columns);
    for (int64_t k = 0; k < p->a.depth; k += most) {
        const int64_t depth = trni_min64(p->a.depth - k, most);
        trni_dot_row(w, k, depth, x);
        for (int64_t j = 0; j < columns; j += TRNI_DOTS)
            trni_dots_columns(w, &dots, x, k, depth, n + j, (int)trni_min64(columns - j, TRNI_DOTS), psum + j);
    }
    if (w->cut->direct)
        trni_canonical_nans_for(p->isa)(psum, (size_t)columns);
    else
        trni_psum_to_dst(p, w->psum, 0, 1, n, columns);
}

#undef TRNI_DOTS_PARAMS

#endif /* TRNI_ARRAY_MATMUL_DOTS_H */
