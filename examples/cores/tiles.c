/* tiles.c - loops over tiles: products, transposes, norms.
 * SPDX-License-Identifier: MIT
 */
#include "tiles.h"

trn_tensor rows_of(trn_tensor t, int64_t first, int64_t count) { return trn_tensor_slice(t, 0, first, count); }
trn_tensor columns_of(trn_tensor t, int64_t first, int64_t count) { return trn_tensor_slice(t, 1, first, count); }

/* ---- tiles that take turns ---- */

pool sbuf_pool(trn_core *c, const char *name, trn_format format, int64_t columns, int count)
{
    pool p = { .count = count };
    for (int i = 0; i < count; i++) p.tile[i] = trn_core_sbuf(c, name, format, TILE, columns);
    return p;
}

pool psum_pool(trn_core *c, const char *name, trn_format format, int64_t columns, int count)
{
    pool p = { .count = count };
    for (int i = 0; i < count; i++) p.tile[i] = trn_core_psum(c, name, format, TILE, columns);
    return p;
}

trn_tensor turn(pool *p, int64_t rows, int64_t columns)
{
    const trn_tensor t = p->tile[p->next];
    p->next = (p->next + 1) % p->count;
    return t.rank ? columns_of(rows_of(t, 0, rows), 0, columns) : t;
}

/* ---- matrices in SBUF ---- */

sheet sheet_of(trn_core *c, const char *name, trn_format format, int64_t rows, int64_t columns)
{
    const sheet s = { trn_core_sbuf(c, name, format, least(TILE, rows), tiles_of(rows) * columns), rows, columns };
    return s;
}

trn_tensor sheet_part(const sheet *s, int64_t tile, int64_t first, int64_t count)
{
    const int64_t rows = least(TILE, s->rows - TILE * tile);
    return s->all.rank ? columns_of(rows_of(s->all, 0, rows), tile * s->columns + first, count) : s->all;
}

/* All whole tiles of HBM as SBUF has them: [128, tiles, columns]. */
static trn_tensor by_partition(trn_tensor hbm, int64_t tiles)
{
    const trn_tensor from = trn_tensor_split(rows_of(hbm, 0, TILE * tiles), 0, TILE); /* [tiles, 128, columns] */
    trn_tensor t = from;
    t.shape[0] = from.shape[1], t.stride[0] = from.stride[1];
    t.shape[1] = from.shape[0], t.stride[1] = from.stride[0];
    return t;
}

static void move(trn_core *c, const sheet *s, trn_tensor hbm, bool load)
{
    const int64_t whole = s->rows / TILE, rest = s->rows % TILE;
    if (!s->all.rank) return;
    if (whole) {
        const trn_tensor sbuf = trn_tensor_split(columns_of(s->all, 0, whole * s->columns), 1, s->columns);
        const trn_tensor at = by_partition(hbm, whole);
        nisa(dma_copy, .dst = load ? sbuf : at, .src = load ? at : sbuf);
    }
    if (rest) {
        const trn_tensor sbuf = sheet_part(s, whole, 0, s->columns), at = rows_of(hbm, TILE * whole, rest);
        nisa(dma_copy, .dst = load ? sbuf : at, .src = load ? at : sbuf);
    }
}

void sheet_load(trn_core *c, const sheet *s, trn_tensor hbm) { move(c, s, hbm, true); }
void sheet_store(trn_core *c, trn_tensor hbm, const sheet *s) { move(c, s, hbm, false); }

/* ---- transposing ---- */

transposer transposer_of(trn_core *c, trn_format format)
{
    return (transposer){ psum_pool(c, "transposed", format, TILE, 2) };
}

void transpose_tile(trn_core *c, transposer *t, trn_tensor dst, trn_tensor src)
{
    const trn_tensor sum = turn(&t->psum, src.shape[1], src.shape[0]);
    nisa(nc_transpose, .dst = sum, .data = src);
    nisa(activation, .dst = dst, .src = sum, .op = TRN_ACT_COPY);
}

/* ---- products ---- */

/* A sum out of PSUM: by VectorE and ScalarE in turns, which both round once. */
static void take(trn_core *c, trn_tensor dst, trn_tensor sum, bool scalar)
{
    if (scalar)
        nisa(activation, .dst = dst, .src = sum, .op = TRN_ACT_COPY);
    else
        nisa(tensor_copy, .dst = dst, .src = sum);
}

/* An operand of a product on its way into SBUF. */
typedef struct feed {
    trn_tensor t;
    bool by_k;
    int64_t depth, width; /* K; columns of a block */
    pool block, staged;
} feed;

static feed feed_of(trn_core *c, const char *name, trn_tensor t, bool by_k, int64_t width)
{
    feed f = { .t = t, .by_k = by_k, .depth = t.shape[by_k ? 0 : 1], .width = width };
    const int64_t all = t.shape[by_k ? 1 : 0];
    f.block = sbuf_pool(c, name, t.format, tiles_of(f.depth) * width, all > width ? 2 : 1);
    if (!by_k) f.staged = sbuf_pool(c, "rows", t.format, f.depth, all > TILE ? 2 : 1);
    return f;
}

/* Columns [first, first + count) of the operand, K on partitions. */
static sheet fetch(trn_core *c, feed *f, transposer *t, int64_t first, int64_t count)
{
    const sheet s = { turn(&f->block, least(TILE, f->depth), tiles_of(f->depth) * count), f->depth, count };
    if (f->by_k) {
        sheet_load(c, &s, columns_of(f->t, first, count));
        return s;
    }
    for (int64_t i = 0; i < count; i += TILE) {
        const int64_t n = least(TILE, count - i);
        const trn_tensor rows = turn(&f->staged, n, f->depth);
        nisa(dma_copy, .dst = rows, .src = rows_of(f->t, first + i, n));
        for (int64_t k = 0; k < tiles_of(f->depth); k++)
            transpose_tile(c, t, sheet_part(&s, k, i, n), columns_of(rows, TILE * k, least(TILE, f->depth - TILE * k)));
    }
    return s;
}

void multiply(trn_core *c, const product *p)
{
    const size_t mark = trn_core_mark(c);
    const int64_t rows = p->dst.shape[0], columns = p->dst.shape[1];
    const int64_t width = least(BANK, columns), height = least(TILE, rows);
    feed a = feed_of(c, "a", p->a, p->a_by_k, height), b = feed_of(c, "b", p->b, !p->b_by_n, width);
    pool sums = psum_pool(c, "sums", TRN_F32, width, 2), results = sbuf_pool(c, "result", p->dst.format, width, 2);
    transposer t = transposer_of(c, p->a.format);
    for (int64_t n = 0; n < columns; n += width) {
        const int64_t wide = least(width, columns - n);
        const sheet right = fetch(c, &b, &t, n, wide);
        for (int64_t m = 0; m < rows; m += height) {
            const int64_t high = least(height, rows - m);
            const sheet left = fetch(c, &a, &t, m, high);
            const trn_tensor sum = turn(&sums, high, wide), result = turn(&results, high, wide);
            for (int64_t k = 0; k < tiles_of(a.depth); k++)
                nisa(nc_matmul, .dst = sum, .stationary = sheet_part(&left, k, 0, high),
                     .moving = sheet_part(&right, k, 0, wide), .accumulate = k > 0);
            take(c, result, sum, (m / height + n / width) % 2);
            nisa(dma_copy, .dst = columns_of(rows_of(p->dst, m, high), n, wide), .src = result);
        }
    }
    trn_core_release(c, mark);
}

void multiply_row(trn_core *c, pool *psum, trn_tensor out, trn_tensor left, trn_tensor right)
{
    for (int64_t i = 0; i < out.shape[1]; i += BANK) {
        const int64_t wide = least(BANK, out.shape[1] - i);
        const trn_tensor sum = turn(psum, out.shape[0], wide);
        nisa(nc_matmul, .dst = sum, .stationary = left, .moving = columns_of(right, i, wide));
        take(c, columns_of(out, i, wide), sum, i / BANK % 2);
    }
}

void multiply_by_sheet(trn_core *c, transposer *t, pool *transposed, trn_tensor dst, trn_tensor p, const sheet *right,
                       int64_t first)
{
    for (int64_t k = 0; k < tiles_of(p.shape[1]); k++) {
        const int64_t depth = least(TILE, p.shape[1] - TILE * k);
        const trn_tensor pt = turn(transposed, depth, p.shape[0]);
        transpose_tile(c, t, pt, columns_of(p, TILE * k, depth));
        nisa(nc_matmul, .dst = dst, .stationary = pt,
             .moving = rows_of(sheet_part(right, k, first, dst.shape[1]), 0, depth), .accumulate = k > 0);
    }
}

/* ---- rows of a norm ---- */

void norm_forward(trn_core *c, const norm *p)
{
    const size_t mark = trn_core_mark(c);
    const int64_t tokens = p->x.shape[0], n = p->x.shape[1];
    const trn_tensor gamma = trn_core_sbuf(c, "gamma", p->gamma.format, TILE, n);
    pool xs = sbuf_pool(c, "x", p->x.format, n, 2), ys = sbuf_pool(c, "y", p->x.format, p->y.rank ? n : 0, 2);
    pool squares = sbuf_pool(c, "squares", TRN_F32, n, 1), numbers = sbuf_pool(c, "numbers", TRN_F32, 2, 2);
    pool outs = sbuf_pool(c, "n", p->n.format, n, 2);
    nisa(dma_copy, .dst = gamma, .src = trn_tensor_broadcast(p->gamma, 0, TILE));
    for (int64_t t = 0; t < tokens; t += TILE) {
        const int64_t rows = least(TILE, tokens - t);
        const trn_tensor x = turn(&xs, rows, n), square = turn(&squares, rows, n), out = turn(&outs, rows, n);
        const trn_tensor number = turn(&numbers, rows, 2), sum = columns_of(number, 0, 1);
        const trn_tensor inverse = columns_of(number, 1, 1);
        nisa(dma_copy, .dst = x, .src = rows_of(p->x, t, rows));
        if (p->y.rank) {
            const trn_tensor y = turn(&ys, rows, n);
            nisa(dma_copy, .dst = y, .src = rows_of(p->y, t, rows));
            nisa(tensor_tensor, .dst = x, .data1 = x, .data2 = y, .op = TRN_ALU_ADD);
            nisa(dma_copy, .dst = rows_of(p->sum, t, rows), .src = x);
        }
        nisa(activation, .dst = square, .src = x, .op = TRN_ACT_SQUARE, .reduce_res = sum,
             .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE);
        nisa(activation, .dst = inverse, .src = sum, .op = TRN_ACT_RSQRT, .scale = 1 / (float)n, .bias = NORM_EPSILON);
        nisa(scalar_tensor_tensor, .dst = out, .data = x, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse,
             .op1 = TRN_ALU_MULTIPLY, .operand1 = rows_of(gamma, 0, rows));
        nisa(dma_copy, .dst = rows_of(p->n, t, rows), .src = out);
        nisa(dma_copy, .dst = rows_of(p->inverse, t, rows), .src = inverse);
    }
    trn_core_release(c, mark);
}

/* The sum over all tokens: ones transposed times what was summed partition by partition. */
static void sum_of_partitions(trn_core *c, trn_tensor dst, trn_tensor sums)
{
    const int64_t rows = sums.shape[0], n = sums.shape[1];
    const trn_tensor ones = trn_core_sbuf(c, "ones", TRN_F32, rows, 1), out = trn_core_sbuf(c, "sums", TRN_F32, 1, n);
    pool psum = psum_pool(c, "sums", TRN_F32, least(BANK, n), 2);
    nisa(memset, .dst = ones, .value = 1);
    for (int64_t i = 0; i < n; i += BANK) {
        const int64_t wide = least(BANK, n - i);
        const trn_tensor sum = turn(&psum, 1, wide);
        nisa(nc_matmul, .dst = sum, .stationary = ones, .moving = columns_of(sums, i, wide));
        nisa(tensor_copy, .dst = columns_of(out, i, wide), .src = sum);
    }
    nisa(dma_copy, .dst = dst, .src = out);
}

void norm_backward(trn_core *c, const norm_gradient *p)
{
    const size_t mark = trn_core_mark(c);
    const int64_t tokens = p->x.shape[0], n = p->x.shape[1];
    const trn_tensor gamma = trn_core_sbuf(c, "gamma", p->gamma.format, TILE, n);
    const trn_tensor all = trn_core_sbuf(c, "dgamma", TRN_F32, least(TILE, tokens), n);
    pool xs = sbuf_pool(c, "x", p->x.format, n, 2), dns = sbuf_pool(c, "dn", p->dn.format, n, 2);
    pool pasts = sbuf_pool(c, "past", p->past.format, n, 2), dxs = sbuf_pool(c, "dx", p->dx.format, n, 2);
    pool works = sbuf_pool(c, "work", TRN_F32, n, 2), scaled = sbuf_pool(c, "dn gamma", TRN_F32, n, 1);
    pool numbers = sbuf_pool(c, "numbers", TRN_F32, 3, 2);
    nisa(dma_copy, .dst = gamma, .src = trn_tensor_broadcast(p->gamma, 0, TILE));
    nisa(memset, .dst = all, .value = 0, .engine = TRN_ENGINE_GPSIMD);
    for (int64_t t = 0; t < tokens; t += TILE) {
        const int64_t rows = least(TILE, tokens - t);
        const trn_tensor x = turn(&xs, rows, n), dn = turn(&dns, rows, n), past = turn(&pasts, rows, n);
        const trn_tensor dx = turn(&dxs, rows, n), g = turn(&scaled, rows, n), w = turn(&works, rows, n);
        const trn_tensor number = turn(&numbers, rows, 3), inverse = columns_of(number, 0, 1);
        const trn_tensor dot = columns_of(number, 1, 1), factor = columns_of(number, 2, 1);
        nisa(dma_copy, .dst = x, .src = rows_of(p->x, t, rows));
        nisa(dma_copy, .dst = dn, .src = rows_of(p->dn, t, rows));
        nisa(dma_copy, .dst = past, .src = rows_of(p->past, t, rows));
        nisa(dma_copy, .dst = inverse, .src = rows_of(p->inverse, t, rows));
        /* dgamma: dn x / rms */
        nisa(scalar_tensor_tensor, .dst = w, .data = x, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse,
             .op1 = TRN_ALU_MULTIPLY, .operand1 = dn);
        nisa(tensor_tensor, .dst = rows_of(all, 0, rows), .data1 = rows_of(all, 0, rows), .data2 = w,
             .op = TRN_ALU_ADD);
        /* dx: g / rms - x (g . x) / (n rms^3), where g = dn gamma; and what came past */
        nisa(tensor_tensor, .dst = g, .data1 = dn, .data2 = rows_of(gamma, 0, rows), .op = TRN_ALU_MULTIPLY);
        const trn_tensor products = turn(&works, rows, n);
        nisa(tensor_tensor, .dst = products, .data1 = g, .data2 = x, .op = TRN_ALU_MULTIPLY);
        nisa(tensor_reduce, .dst = dot, .data = products, .op = TRN_ALU_ADD);
        nisa(tensor_scalar, .dst = dot, .data = dot, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse,
             .op1 = TRN_ALU_MULTIPLY, .operand1 = -1 / (float)n);
        nisa(tensor_scalar, .dst = factor, .data = dot, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse,
             .op1 = TRN_ALU_MULTIPLY, .operand1_tile = inverse);
        nisa(scalar_tensor_tensor, .dst = g, .data = g, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = inverse,
             .op1 = TRN_ALU_ADD, .operand1 = past);
        nisa(scalar_tensor_tensor, .dst = dx, .data = x, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = factor,
             .op1 = TRN_ALU_ADD, .operand1 = g);
        nisa(dma_copy, .dst = rows_of(p->dx, t, rows), .src = dx);
    }
    sum_of_partitions(c, p->dgamma, all);
    trn_core_release(c, mark);
}

void add(trn_core *c, trn_tensor dst, trn_tensor x, trn_tensor y)
{
    const size_t mark = trn_core_mark(c);
    const int64_t n = x.shape[1];
    pool xs = sbuf_pool(c, "x", x.format, n, 2), ys = sbuf_pool(c, "y", y.format, n, 2);
    for (int64_t t = 0; t < x.shape[0]; t += TILE) {
        const int64_t rows = least(TILE, x.shape[0] - t);
        const trn_tensor one = turn(&xs, rows, n), other = turn(&ys, rows, n);
        nisa(dma_copy, .dst = one, .src = rows_of(x, t, rows));
        nisa(dma_copy, .dst = other, .src = rows_of(y, t, rows));
        nisa(tensor_tensor, .dst = one, .data1 = one, .data2 = other, .op = TRN_ALU_ADD);
        nisa(dma_copy, .dst = rows_of(dst, t, rows), .src = one);
    }
    trn_core_release(c, mark);
}
