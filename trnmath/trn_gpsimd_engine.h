/* trn_gpsimd_engine.h - the instructions of GpSimd: patterns, gathers, reductions over partitions, searches, top K.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_gpsimd_engine.h>
 *     int main(void) {
 *         int32_t x[2 * 6];                            // x[p][2 i + j] = 100 + 10 p + 4 i + j
 *         const trn_pattern pattern = { 2, { { 4, 3 }, { 1, 2 } } };
 *         trn_iota_args args = { .dst = trn_tensor_2d(TRN_I32, x, 2, 6), .pattern = pattern };
 *         args.offset = 100;
 *         args.channel_multiplier = 10;
 *         return trn_iota(&args) == TRN_OK && x[6 + 5] == 119 ? 0 : 1;
 *     }
 *
 * DOES: every nki.isa instruction that only GpSimd executes, on tiles [P, F] (the free axes flattened), or on any P and
 *     F with .unlimited. Patterns and indices are 32-bit integers that wrap; what is gathered keeps its bits.
 * DOES NOT: arithmetic element by element, power and rsqrt included: trn_tensor_tensor and trn_tensor_scalar do,
 *     wherever they run. It does not flush subnormals, whatever the numerics say, and it does not know PSUM.
 *
 * CONTENTS
 *   engine/gpsimd_engine.h: the instructions of GpSimd.
 *     trn_pattern                                             up to four loops around an affine expression
 *     trn_iota_args, trn_iota                                 the expression's values
 *     trn_affine_select_args, trn_affine_select               a tile where they compare true, else a number
 *     trn_local_gather_args, trn_local_gather                 columns of 16 partitions
 *     trn_nc_n_gather_args, trn_nc_n_gather                   elements of each partition
 *     trn_tensor_partition_reduce_args, trn_tensor_partition_reduce   all partitions to one
 *     trn_nonzero_with_count_args, trn_nonzero_with_count     where numbers are not zero
 *     trn_sequence_bounds_args, trn_sequence_bounds           where segments begin and end
 *     trn_topk_args, trn_topk                                 the K largest and their places
 *   engine/gpsimd_custom.h: operators of one's own: a function that runs for each of GpSimd's eight processors.
 *     trn_gpsimd_part           a processor's share
 *     trn_gpsimd_custom_args    the tensors and the function
 *     trn_gpsimd_custom         runs it
 *
 * All of them: TRN_ESHAPE, TRN_EFORMAT, TRN_ELIMIT and TRN_EINVAL with a sentence, before anything is written; engine
 * may be 0 or TRN_ENGINE_GPSIMD. Empty views are legal where the instruction's own sizes allow them.
 *
 * KNOWN FROM: NKI's page of each instruction (documented), unless a comment says otherwise.
 */
#ifndef TRN_GPSIMD_ENGINE_H
#define TRN_GPSIMD_ENGINE_H

#include "base/words_begin.h"

#include "engine/gpsimd_engine.h"
#include "engine/gpsimd_custom.h"

#include "base/words_end.h"

#endif /* TRN_GPSIMD_ENGINE_H */
