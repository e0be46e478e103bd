/* trn_dma.h - what the DMA engines do with numbers: copies, casts, gathers, scatters, sums, transposes.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_dma.h>
 *     int main(void) {
 *         float table[4 * 2] = { 0, 1, 10, 11, 20, 21, 30, 31 };
 *         uint32_t row[2] = { 3, 1 };
 *         uint16_t dst[2 * 2];                                          // rows 3 and 1 of the table, as bfloat16
 *         trn_dma_copy_args args = { .dst = trn_tensor_2d(TRN_BF16, dst, 2, 2) };
 *         args.src = trn_tensor_2d(TRN_F32, table, 4, 2);
 *         args.src_index = trn_tensor_1d(TRN_U32, row, 2);
 *         return trn_dma_copy(&args) == TRN_OK && dst[0] == trn_bf16_from_f32(30) ? 0 : 1;
 *     }
 *
 * DOES: dma_copy, dma_transpose and dma_compute on any views of the caller's memory. Views meet element by element in
 *     row-major order, so that shapes may differ where a comment says so. Within one format bits move; between formats
 *     numbers go through binary32 (nearest even unless .rounding says otherwise), large ones at trn_convert's speed.
 *     Sums are binary32 sums, each rounded to nearest even, and NaN of theirs is 7fc00000.
 * DOES NOT: know SBUF, HBM or PSUM, descriptors or queues: tiles have no limits here, and what a transfer costs is
 *     trn_core.h's. It does not compress either: no format is public.
 *
 * CONTENTS
 *   engine/dma.h: what the DMA engines do with numbers.
 *     trn_oob_mode, trn_dge_mode                     indices out of bounds; who makes descriptors
 *     trn_dma_offset                                 a view that begins where a number in a tile says
 *     trn_dma_copy_args, trn_dma_copy                copies, casts, gathers, scatters, read-add-write
 *     trn_dma_transpose_args, trn_dma_transpose      axes reversed (of four: the outer two inside), rows gathered first
 *     trn_dma_compute_args, trn_dma_compute          sums of up to 16 tensors, read-modify-write of rows
 *
 * Stochastic rounding applies where numerics.sr_where is TRN_SR_ALL_WRITES; else a DMA rounds to nearest even where
 * .rounding says stochastic. Element i of dst, in row-major order, takes random field i of (seed, stream).
 *
 * All of them: .unlimited is always on; .engine is 0 or TRN_ENGINE_DMA, or for HWDGE the queue that the transfer is
 * given to, TRN_ENGINE_SYNC or TRN_ENGINE_SCALAR (a core's clock does not tell these apart). Nothing is written on
 * failure: TRN_ESHAPE, TRN_EFORMAT, TRN_EINVAL, and TRN_EUNSUPPORTED for what the generation lacks. dst may be a source
 * in place; it may not meet one otherwise.
 *
 * KNOWN FROM: NKI, dma_copy, dma_transpose, dma_compute (documented); the Trainium2 guide (transposes of 2 and 4 bytes)
 *     and the Trainium3 guide (read-add-write of BF16 and F32). Rounding, and that sources are added in their order:
 *     assumed.
 */
#ifndef TRN_DMA_H
#define TRN_DMA_H

#include "base/words_begin.h"

#include "engine/dma.h"

#include "base/words_end.h"

#endif /* TRN_DMA_H */
