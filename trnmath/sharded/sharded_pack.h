/* sharded/sharded_pack.h - products whose K is cut into parts: operands packed once, each part multiplied when wanted.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: for a block of columns of y, and a block of lines of x, the product over any part of K, with the bits of
 *     trn_matmul on those parts. Packed columns belong to all threads, packed lines to one.
 * DOES NOT: sum the parts' products (sharded/sharded_fold.h).
 *
 * KNOWN FROM: as array/matmul_slabs.h, whose kernels these are; what these do not do goes through trn_matmul.
 */
#ifndef TRNI_SHARDED_SHARDED_PACK_H
#define TRNI_SHARDED_SHARDED_PACK_H

#include "../array/matmul.h"

typedef struct trni_cut_product {
    trn_tensor x, y;             /* [lines, k], [k, width] */
    trn_tensor x_scale, y_scale; /* MX: [lines, k/32], [width, k/32]; rank 0 = none */
    const trn_matmul_args *options;
    int parts; /* of K: equal, the last ones shorter */
} trni_cut_product;

/* One part of K. */
typedef struct trni_packed_part {
    trni_product p; /* of this part alone */
    trni_worker w;
    int64_t k, depth;
} trni_packed_part;

/* What threads share: what the operands are, and the columns that are packed. */
typedef struct trni_packed_columns_of {
    const trni_cut_product *p;
    trni_product whole;
    bool kernels; /* else trn_matmul */
    trni_array array;
    trni_cut cut;
    int64_t wide; /* columns of a block, at most, in whole panels */
    float *b;     /* [k + 4 parts][wide], after up to 63 bytes */
} trni_packed_columns_of;

typedef struct trni_packed {
    const trni_packed_columns_of *of;
    trni_packed_part *part;         /* [parts] */
    int64_t most_lines;             /* of a block */
    int64_t column, columns, lines; /* what is packed now */
    float *a, *local;               /* [k + 4 parts][most_lines]; PSUM of a panel */
    trn_tensor x, x_scale;          /* the lines of now */
} trni_packed;

/* ---- making ---- */

/* The whole product, resolved; dst plays no part. */
TRNI_FN trn_status trni_packed_resolve(const trni_cut_product *p, trni_product *whole)
{
    trn_matmul_args m = *p->options;
    m.a = trn_tensor_slice(p->x, 0, 0, 0); /* no lines: checks look at formats and modes */
    m.b = trn_tensor_slice(p->y, 1, 0, 0);
    m.a_scale = p->x_scale.rank ? trn_tensor_slice(p->x_scale, 0, 0, 0) : p->x_scale;
    m.b_scale = p->y_scale.rank ? trn_tensor_slice(p->y_scale, 0, 0, 0) : p->y_scale;
    m.dst = trn_tensor_2d(p->x.format == TRN_I8 ? TRN_I32 : TRN_F32, NULL, 0, 0);
    m.accumulate = false;
    const trn_status status = trni_matmul_check(&m, whole);
    if (status) return status;
    whole->a = trni_operand_of(&p->x, 0, 1, &whole->numerics);
    whole->b = trni_operand_of(&p->y, 1, 0, &whole->numerics);
    if (p->x_scale.rank) whole->a_scale = trni_scales_of(&p->x_scale, 0);
    if (p->y_scale.rank) whole->b_scale = trni_scales_of(&p->y_scale, 0);
    return TRN_OK;
}

TRNI_FN int64_t trni_cut_part(const trni_cut_product *p, int part, int64_t *k)
{
    const int64_t each = trni_ceil_div(p->x.shape[1], p->parts);
    *k = trni_min64(part * each, p->x.shape[1]);
    return trni_min64(each, p->x.shape[1] - *k);
}

TRNI_FN void trni_operand_cut(trni_operand *o, trni_scales *s, int64_t k, int64_t depth)
{
    o->data += k * o->depth_stride * o->bytes;
    o->depth = depth;
    if (s->data) s->data += k / TRNI_SCALE_BLOCK * s->block_stride;
}

TRNI_FN float *trni_packed_capacity(int64_t floats)
{
    return (float *)malloc(sizeof(float) * (size_t)floats + TRNI_SCRATCH_ALIGN);
}

TRNI_FN float *trni_packed_aligned(float *buffer)
{
    return (float *)(void *)((char *)buffer + (0 - (uintptr_t)buffer) % TRNI_SCRATCH_ALIGN);
}

/* An odd depth may be a few lines longer when it is packed. */
TRNI_FN int64_t trni_packed_deep(const trni_cut_product *p) { return p->x.shape[1] + 4 * (int64_t)p->parts; }

/* For blocks of at most so many columns. s->b is to be freed. */
TRNI_FN trn_status trni_packed_share(trni_packed_columns_of *s, const trni_cut_product *p, int64_t columns)
{
    memset(s, 0, sizeof *s);
    s->p = p;
    const trn_status status = trni_packed_resolve(p, &s->whole);
    if (status) return status;
    s->kernels = trni_matmul_is_packed(&s->whole);
    if (!s->kernels) return TRN_OK;
    s->array = trni_array_of(trni_spread_group(s->whole.spread), s->whole.isa);
    s->wide = trni_round_up(columns, TRNI_WEAVE);
    s->b = trni_packed_capacity(trni_packed_deep(p) * s->wide);
    return s->b ? TRN_OK : TRN_ENOSPC;
}

TRNI_FN void trni_packed_part_init(trni_packed *t, int i)
{
    const trni_packed_columns_of *of = t->of;
    trni_packed_part *part = &t->part[i];
    part->depth = trni_cut_part(of->p, i, &part->k);
    part->p = of->whole;
    trni_operand_cut(&part->p.a, &part->p.a_scale, part->k, part->depth);
    trni_operand_cut(&part->p.b, &part->p.b_scale, part->k, part->depth);
    trni_worker_init(&part->w, &part->p, &of->cut, (unsigned char *)t->local);
    part->w.a = trni_packed_aligned(t->a) + (part->k + 4 * i) * t->most_lines;
    part->w.b = trni_packed_aligned(of->b) + (part->k + 4 * i) * of->wide;
    part->w.local = trni_packed_aligned(t->local);
}

TRNI_FN void trni_packed_free(trni_packed *t)
{
    free(t->part);
    free(t->a);
    free(t->local);
    memset(t, 0, sizeof *t);
}

/* For blocks of at most so many lines. Freed by trni_packed_free. */
TRNI_FN trn_status trni_packed_init(trni_packed *t, const trni_packed_columns_of *of, int64_t lines)
{
    memset(t, 0, sizeof *t);
    t->of = of;
    t->most_lines = lines;
    if (!of->kernels) return TRN_OK;
    t->part = (trni_packed_part *)malloc(sizeof(trni_packed_part) * (size_t)of->p->parts);
    t->a = trni_packed_capacity(trni_packed_deep(of->p) * lines);
    t->local = trni_packed_capacity(lines * of->array.width);
    if (!t->part || !t->a || !t->local) {
        trni_packed_free(t);
        return TRN_ENOSPC;
    }
    for (int i = 0; i < of->p->parts; i++) trni_packed_part_init(t, i);
    return TRN_OK;
}

/* ---- without kernels ---- */

/* Some lines, and their scales, times some columns. */
typedef struct trni_line_product {
    const trni_cut_product *p;
    trn_tensor x, x_scale;
    int64_t column, columns;
} trni_line_product;

/* Over one part of K, by trn_matmul, which knows every order: [lines][columns] binary32. */
TRNI_FN trn_status trni_line_multiply(const trni_line_product *l, int part, float *out)
{
    const trni_cut_product *p = l->p;
    const bool whole = p->x.format == TRN_I8; /* int8 gives int32, which becomes binary32 where it is */
    const trn_tensor dst = trn_tensor_2d(TRN_F32, out, l->x.shape[0], l->columns);
    trn_matmul_args m = *p->options;
    int64_t k;
    const int64_t depth = trni_cut_part(p, part, &k), block = k / TRNI_SCALE_BLOCK, blocks = depth / TRNI_SCALE_BLOCK;
    m.a = trn_tensor_slice(l->x, 1, k, depth);
    m.b = trn_tensor_slice(trn_tensor_slice(p->y, 0, k, depth), 1, l->column, l->columns);
    m.a_scale = m.b_scale = trni_no_tensor();
    if (p->x_scale.rank) m.a_scale = trn_tensor_slice(l->x_scale, 1, block, blocks);
    if (p->y_scale.rank)
        m.b_scale = trn_tensor_slice(trn_tensor_slice(p->y_scale, 0, l->column, l->columns), 1, block, blocks);
    m.dst = dst;
    if (whole) m.dst.format = TRN_I32;
    m.rounding = TRN_NEAREST_EVEN;
    m.accumulate = false;
    const trn_status status = trn_matmul(&m);
    if (status || !whole) return status;
    trn_convert_args c;
    memset(&c, 0, sizeof c);
    c.dst = dst;
    c.src = m.dst;
    c.isa = m.isa;
    return trn_convert(&c);
}

/* ---- packing ---- */

/* Columns [column, column + columns) are the block of now. */
TRNI_FN void trni_packed_aim(trni_packed *t, int64_t column, int64_t columns)
{
    t->column = column;
    t->columns = columns;
}

/* Packs them, for one part; for all threads. */
TRNI_FN void trni_packed_columns(const trni_packed *t, int part)
{
    if (!t->of->kernels) return;
    const trni_packed_part *k = &t->part[part];
    const int64_t wide = trni_round_up(t->columns, t->of->array.width), deep = trni_tile_depth(&k->p);
    for (int64_t at = 0; at < k->depth; at += deep)
        trni_worker_pack_columns(&k->w, t->column, t->columns, at, trni_tile_deep(&k->w, at, k->depth),
                                 k->w.b + at * wide);
}

/* All parts of a block of lines, given as a view [lines, k] (and its scales). */
TRNI_FN void trni_packed_lines(trni_packed *t, trn_tensor x, trn_tensor x_scale)
{
    t->x = x;
    t->x_scale = x_scale;
    t->lines = x.shape[0];
    for (int i = 0; t->of->kernels && i < t->of->p->parts; i++) {
        trni_packed_part *k = &t->part[i];
        const trni_operand o = trni_operand_of(&x, 0, 1, &k->p.numerics);
        if (k->p.a_scale.data) k->p.a_scale = trni_scales_of(&x_scale, 0);
        k->p.a.data = o.data;
        k->p.a.lanes = t->lines;
        k->p.a.lane_stride = o.lane_stride;
        k->p.a.depth_stride = o.depth_stride;
        trni_operand_cut(&k->p.a, &k->p.a_scale, k->k, k->depth);
        const int64_t deep = trni_tile_depth(&k->p);
        for (int64_t at = 0; at < k->depth; at += deep)
            trni_worker_pack_rows(&k->w, 0, t->lines, at, trni_tile_deep(&k->w, at, k->depth), k->w.a + at * t->lines);
    }
}

/* ---- multiplying ---- */

TRNI_FN void trni_packed_kernels(trni_packed *t, const trni_packed_part *k, int64_t column, int64_t n, float *out)
{
    const int width = t->of->array.width;
    const int64_t deep = trni_tile_depth(&k->p), wide = trni_round_up(t->columns, width);
    const trni_slab slab = { 0, t->lines, column, n, 0, k->depth, { out, n }, false, false };
    for (int64_t c = 0; c < n; c += width)
        for (int64_t at = 0; at < k->depth; at += deep) {
            const int depth = trni_tile_deep(&k->w, at, k->depth);
            const float *b = k->w.b + at * wide + (column + c) * trni_tile_map(&k->w, depth)->lines;
            const float *a = k->w.a + at * t->lines;
            trni_range range = { 0, 0, 0 };
            if (trni_array_looks(&k->w.array)) trni_range_of_for(k->p.isa)(a, (size_t)(depth * t->lines), &range);
            const trni_array *array = trni_array_of_tile(&k->w.array, &range, b, (size_t)(depth * width));
            const trni_panel panel =
                trni_panel_of(&k->w, &slab, c, trni_min64(n - c, width), b + depth * width, at, depth, k->w.local);
            trni_panel_tile(&k->w, array, &slab, &panel, a, b);
        }
}

/* The lines of now times columns [column, column + n) of the block of now, over one part: [lines][n] binary32. `column`
 * is a multiple of TRNI_WEAVE, a number of whole panels. A NaN may be any: it is yet to be added to something. */
TRNI_FN trn_status trni_packed_multiply(trni_packed *t, int part, int64_t column, int64_t n, float *out)
{
    const trni_line_product one = { t->of->p, t->x, t->x_scale, t->column + column, n };
    if (!t->of->kernels) return trni_line_multiply(&one, part, out);
    const trni_packed_part *k = &t->part[part];
    if (k->depth == 0)
        memset(out, 0, sizeof(float) * (size_t)(t->lines * n));
    else
        trni_packed_kernels(t, k, column, n, out);
    return TRN_OK;
}

#endif /* TRNI_SHARDED_SHARDED_PACK_H */
