/* mlp.c - tokens, transposed, and weights that stay in SBUF.
 * SPDX-License-Identifier: MIT
 */
#include "mlp.h"

trn_tensor mlp_tile(trn_tensor weights, int64_t columns, int64_t k)
{
    return columns_of(weights, k * columns, columns);
}

trn_tensor mlp_weights(trn_core *c, const char *name, trn_tensor w)
{
    const int64_t tiles = w.shape[0] / 128, columns = w.shape[1];
    const trn_tensor all = trn_core_sbuf(c, name, w.format, 128, tiles * columns);
    for (int64_t k = 0; k < tiles; k++)
        nisa(dma_copy, .dst = mlp_tile(all, columns, k), .src = rows_of(w, 128 * k, 128));
    return all;
}

pool mlp_transpose_pool(trn_core *c, int count)
{
    const bool mode = trn_core_spec_of(c->args.generation)->transpose_mode;
    return psum_pool(c, "transposed", mode ? TRN_BF16 : TRN_F32, 128, 128, count);
}

void mlp_transpose(trn_core *c, trn_tensor dst, trn_tensor x, pool *psum)
{
    const int64_t tokens = x.shape[0];
    for (int64_t k = 0; k < x.shape[1] / 128; k++) {
        const trn_tensor t = columns_of(turn(psum, 128), 0, tokens);
        nisa(nc_transpose, .dst = t, .data = columns_of(x, 128 * k, 128));
        nisa(tensor_copy, .dst = mlp_tile(dst, tokens, k), .src = t);
    }
}
