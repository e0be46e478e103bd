/* swiglu.c - silu(gate) * up, and its gradient: ScalarE has the functions, VectorE the products.
 * SPDX-License-Identifier: MIT
 */
#include "swiglu.h"

static void forward(trn_core *c, trn_tensor hidden, trn_tensor gu, trn_tensor work)
{
    const int64_t n = hidden.shape[1];
    nisa(activation, .dst = work, .src = columns_of(gu, 0, n), .op = TRN_ACT_SILU);
    nisa(tensor_tensor, .dst = hidden, .data1 = work, .data2 = columns_of(gu, n, n), .op = TRN_ALU_MULTIPLY);
}

/* dg = dh u silu'(g), du = dh silu(g). */
static void backward(trn_core *c, trn_tensor dgu, trn_tensor gu, trn_tensor dhidden, pool *works)
{
    const int64_t rows = dhidden.shape[0], n = dhidden.shape[1];
    const trn_tensor g = columns_of(gu, 0, n), u = columns_of(gu, n, n);
    const trn_tensor silu = turn(works, rows, n), slope = turn(works, rows, n), up = turn(works, rows, n);
    nisa(activation, .dst = silu, .src = g, .op = TRN_ACT_SILU);
    nisa(activation, .dst = slope, .src = g, .op = TRN_ACT_SILU_DX);
    nisa(tensor_tensor, .dst = up, .data1 = dhidden, .data2 = u, .op = TRN_ALU_MULTIPLY);
    nisa(tensor_tensor, .dst = columns_of(dgu, 0, n), .data1 = up, .data2 = slope, .op = TRN_ALU_MULTIPLY);
    nisa(tensor_tensor, .dst = columns_of(dgu, n, n), .data1 = dhidden, .data2 = silu, .op = TRN_ALU_MULTIPLY);
}

void swiglu_tiles(trn_core *c, const swiglu *s)
{
    const size_t mark = trn_core_mark(c);
    const bool back = s->dhidden.rank != 0;
    const int64_t tokens = s->gu.shape[0], n = s->hidden.shape[1];
    pool gus = sbuf_pool(c, "gate, up", TRN_BF16, 2 * n, 2), hiddens = sbuf_pool(c, "hidden", TRN_BF16, n, 2);
    pool works = sbuf_pool(c, "work", TRN_F32, n, back ? 3 : 2);
    pool dgus = sbuf_pool(c, "dgu", TRN_BF16, back ? 2 * n : 0, 2);
    for (int64_t t = 0; t < tokens; t += TILE) {
        const int64_t rows = least(TILE, tokens - t);
        const trn_tensor gu = turn(&gus, rows, 2 * n), hidden = turn(&hiddens, rows, n);
        nisa(dma_copy, .dst = gu, .src = rows_of(s->gu, t, rows));
        if (back) {
            const trn_tensor dgu = turn(&dgus, rows, 2 * n);
            nisa(dma_copy, .dst = hidden, .src = rows_of(s->dhidden, t, rows));
            backward(c, dgu, gu, hidden, &works);
            nisa(dma_copy, .dst = rows_of(s->dgu, t, rows), .src = dgu);
        } else {
            forward(c, hidden, gu, turn(&works, rows, n));
            nisa(dma_copy, .dst = rows_of(s->hidden, t, rows), .src = hidden);
        }
    }
    trn_core_release(c, mark);
}
