/* trn_matmul.h - matrix products of any size, with the bits the Tensor engine's instructions would give.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_matmul.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t a[300 * 700], b[700 * 500];
 *         static float c[300 * 500];
 *         trn_error error;
 *         trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, c, 300, 500),
 *                                  .a = trn_tensor_2d(TRN_BF16, a, 300, 700),
 *                                  .b = trn_tensor_2d(TRN_BF16, b, 700, 500), .error = &error };
 *         if (trn_matmul(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0;
 *     }
 *
 * DOES: dst = a @ b, or dst += a @ b, for any M, N, K >= 0 and any strides; all operands of the Tensor engine (F32,
 *     TF32, BF16, F16, FP8, int8, MX with its scales), double rows; F32, BF16, F16 and FP8 results with one rounding at
 *     the end. K in tiles of 128 rows (256 deep with double rows, 512 with MX), ascending, added to PSUM in binary32.
 *     Uses OpenMP when compiled with it: threads split outputs, never sums, so the bits do not depend on their number.
 * DOES NOT: enforce tile limits (trn_tensor_engine.h does), or compute in any other order than trn_numerics says.
 *
 * CONTENTS
 *   array/matmul.h: matrix products of any size, of tiles that the Tensor engine takes.
 *     trn_matmul_args            operands and options
 *     trn_matmul_units           what the host's matrix unit did
 *     trn_matmul                 computes, or says in one sentence why not; on failure nothing is written
 *     trn_matmul_pack, trn_matmul_pack_bytes   b, once for many calls
 *     trn_matmul_scratch_bytes   how much .scratch must hold; a few MiB per thread, whatever the matrices' size
 *
 * KNOWN FROM: the order of sums as in array/systolic.h; blocking and packing after Goto and van de Geijn, "Anatomy of
 *     high-performance matrix multiplication", ACM TOMS 34(3), 2008.
 */
#ifndef TRN_MATMUL_H
#define TRN_MATMUL_H

#include "base/words_begin.h"

#include "array/matmul.h"

#include "base/words_end.h"

#endif /* TRN_MATMUL_H */
