/* trn_sparse.h - products with structured sparsity: only m of every n elements of a are stored, and only they compute.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_sparse.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t a[64 * 512], values[64 * 128], b[512 * 256];       // BF16; 4 of 16 of a are stored
 *         static uint8_t tags[64 * 128];
 *         static float c[64 * 256];
 *         const trn_sparse_pattern pattern = { 4, 16 };
 *         trn_error error;
 *         trn_sparse_pack_args pack = { .src = trn_tensor_2d(TRN_BF16, a, 64, 512),
 *                                       .values = trn_tensor_2d(TRN_BF16, values, 64, 128),
 *                                       .tags = trn_tensor_2d(TRN_U8, tags, 64, 128),
 *                                       .pattern = pattern, .prune = true, .error = &error };
 *         trn_sparse_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, c, 64, 256), .values = pack.values,
 *                                         .tags = pack.tags, .pattern = pattern,
 *                                         .b = trn_tensor_2d(TRN_BF16, b, 512, 256), .error = &error };
 *         if (trn_sparse_pack(&pack) || trn_sparse_matmul(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0;
 *     }
 *
 * DOES: the instruction (one tile, with the limits of Trainium2 and 3) and products of any size, for every pair of
 *     formats that the dense product of that generation takes, F32 and FP8 included, any numerics, any strides. Uses
 *     OpenMP when compiled with it: threads split outputs, never sums, so the bits do not depend on their number.
 * DOES NOT: prune or pack (array/sparse_pack.h), or combine sparsity with double rows or MX.
 *
 * CONTENTS
 *   array/sparse.h: products whose stationary operand has m of every n elements stored.
 *     trn_nc_matmul_sparse_args, trn_nc_matmul_sparse   one instruction
 *     trn_sparse_matmul_args, trn_sparse_matmul         any size; on failure nothing is written
 *     trn_sparse_matmul_scratch_bytes                   how much .scratch must hold; a few MiB per thread
 *   array/sparse_pack.h: structured sparsity in memory: m of every n elements along K, and where each of them stood.
 *     trn_sparse_pattern          m of n: 4:16 4:12 4:8 2:8 2:4 1:4 1:2
 *     trn_sparse_pattern_valid    is it one of these?
 *     trn_sparse_stored           stored elements of a row of K
 *     trn_sparse_pack_args, trn_sparse_pack       a matrix to values and tags
 *     trn_sparse_unpack_args, trn_sparse_unpack   the inverse; what was not stored is +0
 *     trn_sparse_tags_pack_args, trn_sparse_tags_pack, trn_sparse_tags_unpack   bytes to 16-bit words of four, and back
 *
 * WHERE THE BITS ARE NOT THOSE OF THE DENSE PRODUCT of the matrix with its zeros filled in. A tile is 128 *stored*
 * elements, that is 512 of K at 4:16, and a stored element sits in the array's row of its stored index. So
 *
 *     sums       PSUM takes a sum after 128 stored elements instead of 128 of K, and an element belongs to chain
 *                (stored index mod chains) instead of (k mod chains): the same terms, rounded in another order
 *     0 · inf    what is not stored is not multiplied: an infinity or NaN in b makes the dense sum NaN, not this one
 *     -0         nor does its +0 turn a sum of -0, which only underflow leaves, into +0
 *
 * Exact sums, such as those of small integers, are the same. tests/unit/test_sparse.c shows each of these.
 *
 * KNOWN FROM: ratios and rate (4x BF16 at 4:16): NeuronCore-v3 and -v4 pages (documented for FP8, BF16, F16 and TF32;
 *     no rate is published for F32, which is taken like any other here, assumed, and which trn_cost.h therefore has no
 *     sparse cost for). Patents 11803736 and 12130885: a tag makes each PE choose among several moving busses, so a
 *     product is the dense one of the chosen element. That 128 stored elements are a tile follows from an unreleased
 *     section of the NKI Trainium2 guide (assumed); the limits of N are those of nc_matmul (assumed).
 */
#ifndef TRN_SPARSE_H
#define TRN_SPARSE_H

#include "base/words_begin.h"

#include "array/sparse.h"
#include "array/sparse_pack.h"

#include "base/words_end.h"

#endif /* TRN_SPARSE_H */
