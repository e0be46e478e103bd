/* trn_tensor_engine.h - the Tensor engine: one call is one instruction, with the hardware's limits.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_tensor_engine.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t weights[128 * 64], data[128 * 512];      // [K, M], [K, N]
 *         static float psum[64 * 512];                             // [M, N]
 *         trn_error error;
 *         trn_nc_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, psum, 64, 512),
 *                                     .stationary = trn_tensor_2d(TRN_BF16, weights, 128, 64),
 *                                     .moving = trn_tensor_2d(TRN_BF16, data, 128, 512), .error = &error };
 *         if (trn_nc_matmul(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0;
 *     }
 *
 * DOES: nc_matmul, psum = stationary^T @ moving or psum += it, in every mode of the three generations: F32 (native,
 *     split, FP32R), TF32, BF16, F16, FP8 and int8 operands, double rows of FP8, BF16 PSUM, row and column tiles,
 *     transposes; nc_matmul_mx, its scales dense or in scale tiles, and nc_transpose. Enforces the tile limits and
 *     formats of the generation.
 * DOES NOT: tile larger problems (trn_matmul.h), multiply sparse operands (trn_sparse.h), allocate, or use threads.
 *
 * CONTENTS
 *   array/tensor_engine.h: the instructions of the Tensor engine.
 *     trn_pe_tile             a place or a size in the array
 *     trn_nc_matmul_args, trn_nc_matmul          the instruction
 *     trn_nc_matmul_mx_args, trn_nc_matmul_mx    the same for MXFP8 and MXFP4 (Trainium3)
 *     trn_nc_transpose_args, trn_nc_transpose    an nc_matmul by the identity, in transpose mode
 *     trn_systolic_tile       the definition: one tile for one output element, one product a row
 * Each runs, or says in one sentence why not; on failure nothing is written.
 *
 * What is known of each mode: limits, formats, mixtures and which generation has what are documented (NKI's nc_matmul,
 * nc_matmul_mx and nc_transpose pages, the architecture guides of Trainium1, 2 and 3). How sums are ordered and rounded
 * inside the array is assumed, from published device results: see trn_numerics.h, which has a field for each.
 *     double_row    two products and their sum per PE and step: documented; the sum's rounding: assumed
 *     MX            four products under one scale, four partitions of scales to 32 of data: documented; order and
 *                   rounding: assumed
 *     BF16 PSUM     upcast, FP32 add, one rounding: documented; nearest even: 71 of 72 printed device results
 *     FP32          four passes, two instructions: documented; the split's width and order: assumed
 *     FP32R         a name in the runtime's header; read as TF32 here: assumed
 *     int8          operands and int32 sums on Trainium1: documented (no NKI dtype); wrapping at 2^32: assumed
 *     transposes    bit exact on Trainium2 and 3; a product by the identity on Trainium1: documented
 *     hints         one_zero operands are twice as fast in FP32: documented; no effect on bits
 *
 * KNOWN FROM: those pages; arithmetic as in array/systolic.h.
 */
#ifndef TRN_TENSOR_ENGINE_H
#define TRN_TENSOR_ENGINE_H

#include "base/words_begin.h"

#include "array/tensor_engine.h"

#include "base/words_end.h"

#endif /* TRN_TENSOR_ENGINE_H */
