/* trn_cost.h - how long a matrix product takes on one NeuronCore, and on a system whose shards are already in place.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cost.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_matmul_cost_args args = { 0 };
 *         args.generation = TRN_TRAINIUM2;
 *         args.m = args.n = args.k = 4096;
 *         args.a_format = TRN_BF16;
 *         trn_core_cost cost;
 *         if (trn_matmul_cost(&args, &cost) != TRN_OK) return 1;
 *         printf("%.1f TFLOPS, %.1f %% of spec: %s\n", cost.tflops, 100 * cost.fraction_of_spec, cost.text);
 *         return cost.limit == TRN_LIMIT_TENSOR ? 0 : 1;
 *     }
 *
 * DOES: a roofline of three resources (TensorE, HBM, DMA) for dst[M, N] = a[M, K] b[K, N] in every mode of the Tensor
 *     engine, with the documented cost of the instructions, the blocking that SBUF and PSUM allow, and the operand that
 *     is cheaper to keep stationary. On request: the ramp of a cold TensorE, and row and column tiling.
 * DOES NOT: model communication between chips, the copy from PSUM to SBUF (Vector and Scalar engines, assumed to
 *     overlap), DMA descriptors below 4 KiB (slower, documented), or power. Of single
 *     instructions: its parts.
 *
 * CONTENTS
 *   machine/cost.h: the time of a matrix product, on one NeuronCore and on a system.
 *     trn_operand, trn_operand_name           which operand is stationary; zero = the cheaper one
 *     trn_limit, trn_limit_name               the resource that sets the time
 *     trn_split                               are the sizes those of the whole product, or of each core?
 *     trn_matmul_cost_args                    the question
 *     trn_matmul_cost, trn_core_cost          one core, and its answer
 *     trn_matmul_system_cost, trn_system_cost every core of a system at work on its own slice, and the answer
 *   machine/tensor_cost.h: what each instruction of the Tensor engine costs, alone and in a sequence.
 *     trn_tensor_instruction           what is asked: mode, sizes, formats, hints, tiling
 *     trn_tensor_instruction_cost      its cost
 *     trn_tensor_cost                  the answer, each number with its source
 *     trn_tensor_sequence_args, trn_tensor_sequence_total   instructions after each other
 *     trn_tensor_sequence_cost         their cost
 *     trn_vector_transpose_cycles      the same work on VectorE
 *   machine/engine_cycles.h: what instructions of the Vector, Scalar and GpSimd engines and DMA cost, each with its
 *                            source.
 *     trn_rule, trn_engine_rule, trn_engine_rule_of    every instruction's row
 *     trn_engine_work, trn_engine_cost, trn_engine_cycles   what is asked, the answer
 *     trn_dma_work, trn_dma_cost, trn_dma_seconds      the same for DMA
 *     trn_fact, trn_engine_fact, trn_engine_fact_of    the numbers that are no instruction's own
 * (trn_matmul_mode: plain, double_row, MX, sparse, transpose, INT8; zero = the fastest. It is in
 * machine/tensor_cycles.h.)
 *
 * KNOWN FROM: the Neuron SDK's NKI architecture guides, nki-dma-overview.rst and nki-dma-bandwidth-guide.rst. Each
 *     number is a field of trn_spec.h, where its source stands; what is ours is marked assumed below.
 *
 * TensorE. One instruction multiplies a stationary tile [128 rows of K, 128] with a moving tile [128, n] in max(n, 64)
 *     cycles; four times that for F32, twice when one F32 operand is all zeros and ones (documented). FP8 in double_row
 *     mode takes 256 rows of K at once, MX 512, sparsity 512 of 4:16 (documented; double_row on Trainium3 and the other
 *     patterns assumed). FP32R counts one cycle a column (assumed), INT8 half of one (derived). A short tile costs what
 *     a full one does. The moving operand is cut into pieces of equal size, none above the limit of the generation (512
 *     columns; on Trainium3 4096, 8192 with BF16 in PSUM), so a sweep of N columns takes max(N, 64) cycles for each
 *     stationary tile (assumed: an even cut).
 * Sparsity. a holds only its stored elements, m of every n along K, with a tag of 4 bits each, and is stationary; b is
 *     dense. flops are those of the dense product, as the published figures count them.
 * A transpose of data [K, M] into [M, K] through the array reads and writes each element once; n is K, b an identity
 *     that stays in SBUF. Its cycles are those of machine/tensor_cycles.h; it has no flops.
 * Tiling (pack_tiles). A product with K of up to 64 rows of PEs, or up to 64 stationary columns, leaves room for one or
 *     three more tiles beside the first. Other stationary tiles take it, or other pieces of the moving operand, each in
 *     partitions of its own, so that up to 16 instructions (4 on Trainium1) take the time of one (documented: the
 *     number of tiles; assumed: that operands lie where they must). MX is tiled along rows only, double_row too, sparse
 *     products and transposes not at all.
 * Throttle. TensorE begins cold: on Trainium2 and 3 at half of its rate, and is at all of it after 3 us at work, so
 *     that 0.75 us are lost (documented; a linear ramp assumed). It cools when it is at work for less than half of the
 *     time; then something else takes longer, even at half of the rate, so only the first ramp counts.
 * LoadStationary takes max(columns/4, 32) cycles (documented; four times that for F32, and no more for FP8 and MX,
 *     assumed) and runs behind the MultiplyMoving before it. The first one is exposed, having nothing to hide behind;
 *     a later one by what it takes longer than the sweep before it: nothing, as a sweep is 64 cycles or more.
 * Traffic. a and b start in HBM and dst ends there, written once: as trn_matmul defines it, K is summed completely in
 *     PSUM, so no partial sums travel. Three ways to block are costed and the one with the fewest bytes is taken:
 *     - a in SBUF: panels of a, all of K deep and a multiple of 128 rows high, fill at most 3/4 of SBUF (assumed; the
 *       rest buffers what streams); a is read once, and b once for each panel of a.
 *     - b in SBUF: the same with the operands exchanged.
 *     - PSUM blocks: 2048 of the 4096 binary32 columns of PSUM collect a block of 128 t rows and 2048/t columns of dst,
 *       t = 1, 2, 4, 8, 16, while the other half drains (assumed); a is read once for each column of blocks, b once
 *       for each row of blocks. It wins when K is so deep that only few rows fit in SBUF.
 *     The first two never lack buffers: a panel of up to 2048 rows accumulates in half of PSUM; a higher one means K so
 *     short that 128 columns of the other operand, doubly buffered, take less than a tenth of SBUF.
 * DMA: all bytes over 16 engines at the practical 17, 23, 33 GB/s each (documented). HBM: the same bytes over the
 *     chip's bandwidth divided by its cores (assumed: all are at work). Start-up: 1.3 us once (documented), everything
 *     after it pipelined (assumed).
 * time = max(TensorE + exposed loads, DMA, HBM) + start-up.
 *
 * Why 100 % of spec is out of reach. The array's peak is 128 x 128 x 2 x clock: 91.75 TFLOPS on Trainium1, 78.64 on
 *     Trainium2 and 3. The published chip figures divided by the cores are 95.0, 83.4 and 83.9, more than the arrays
 *     can do. fraction_of_spec is against the published figure, so BF16 ends at 96.6, 94.3 and 93.8 %;
 *     tensor_peak_tflops and fraction_of_peak say how far the array itself is used.
 */
#ifndef TRN_COST_H
#define TRN_COST_H

#include "base/words_begin.h"

#include "machine/cost.h"
#include "machine/tensor_cost.h"
#include "machine/engine_cycles.h"

#include "base/words_end.h"

#endif /* TRN_COST_H */
