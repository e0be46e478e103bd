/* trn_vector_engine.h - the Vector engine, whole: which instruction lives in which part, and what is known of it.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         static float x[128 * 64], top[128 * 8];
 *         trn_max8_args args = { .dst = trn_tensor_2d(TRN_F32, top, 128, 8),
 *                                .src = trn_tensor_2d(TRN_F32, x, 128, 64) };
 *         return trn_max8(&args) == TRN_OK ? 0 : 1;
 *     }
 *
 * DOES: includes every part of the engine. One function is one instruction of the same name, trn_<name>(&args).
 * DOES NOT: define anything.
 *
 *     instruction                  since  numerics                                            part
 *     tensor_tensor                Trn1   documented; each operator rounds once: assumed      elementwise
 *     tensor_scalar                Trn1   documented; two roundings: assumed                  elementwise
 *     scalar_tensor_tensor         Trn1   documented; two roundings: assumed                  elementwise
 *     tensor_copy                  Trn1   documented                                          elementwise
 *     tensor_copy_predicated       Trn1   documented                                          elementwise
 *     memset                       Trn1   documented                                          elementwise
 *     reciprocal                   Trn1   correctly rounded: assumed                          elementwise
 *     tensor_reduce                Trn1   one chain: measured (one published figure)          reduce
 *     tensor_scalar_reduce         Trn1   documented; order: assumed                          reduce
 *     tensor_scalar_cumulative     Trn1   documented                                          reduce
 *     tensor_tensor_scan           Trn1   documented                                          reduce
 *     exponential                  Trn3   the Scalar engine's exp: assumed                    reduce
 *     range_select                 Trn2   documented                                          reduce
 *     select_reduce                Trn1   documented                                          reduce
 *     bn_stats, bn_aggr            Trn1   results documented; formulas and order: assumed     statistics
 *     max8                         Trn1   documented; NaN last: assumed                       search
 *     nc_find_index8               Trn1   documented; NaN is not found: assumed               search
 *     nc_match_replace8            Trn1   documented; no dst_idx on Trn1: measured            search
 *     nc_stream_shuffle            Trn1   documented: bits move                               move
 *     partition_broadcast          Trn1   TensorE's, by a product: documented; bits: assumed  move
 *     nc_transpose, here as        Trn1   documented: bits move                               move
 *         vector_transpose
 *     quantize_mx                  Trn3   documented; groups with NaN: assumed                move
 *     rng                          Trn1   32 bits, low ones: documented; the words: assumed   random
 *     rand2                        Trn3   range: documented; words, roundings: assumed        random
 *     dropout                      Trn1   0 and 1: documented; the comparison: assumed        random
 *     set_rng_seed                 Trn1   documented; from seed to states: assumed            random
 *     rand_set_state,              Trn2   documented; on VectorE since Trn3                   random
 *         rand_get_state
 *
 * CONTENTS
 *   engine/vector_elementwise.h: the Vector engine element by element: arithmetic, bits, copies and constants.
 *     trn_tensor_tensor, trn_tensor_tensor_args                     a op b
 *     trn_tensor_scalar, trn_tensor_scalar_args                     (a op0 s) op1 t: a number for all, or per partition
 *     trn_scalar_tensor_tensor, trn_scalar_tensor_tensor_args       (a op0 s) op1 b
 *     trn_tensor_copy, trn_tensor_copy_args                         dst = src, bit by bit within one format
 *     trn_tensor_copy_predicated, trn_tensor_copy_predicated_args   dst = src where a predicate holds
 *     trn_memset, trn_memset_args                                   dst = a constant
 *     trn_reciprocal, trn_reciprocal_args                           1 / a
 *     trni_frame_op, trni_stage, trni_elementwise                   what the other parts share
 *   engine/vector_reduce.h: along the free axes: reductions, scans, selections, and the shared registers.
 *     trn_tensor_reduce, trn_tensor_reduce_args                         trailing free axes to one number
 *     trn_tensor_scalar_reduce, trn_tensor_scalar_reduce_args           dst = data op0 s, and its reduction
 *     trn_tensor_scalar_cumulative, trn_tensor_scalar_cumulative_args   running reductions of data op0 s
 *     trn_tensor_tensor_scan, trn_tensor_tensor_scan_args               r = (a op0 r) op1 b, every r
 *     trn_exponential, trn_exponential_args                             dst = exp(src - m), and its sum
 *     trn_range_select, trn_range_select_args                           elements of a range of indices, their maximum
 *     trn_select_reduce, trn_select_reduce_args                         elements that a predicate selects, their
 *     maximum
 *   engine/vector_statistics.h: count, mean and variance of partitions on the Vector engine: bn_stats, bn_aggr.
 *     trn_bn_stats_args, trn_bn_stats   count, mean, variance * count of the even elements and of the odd ones
 *     trn_bn_aggr_args, trn_bn_aggr     such triples to mean and variance
 *   engine/vector_search.h: the eight largest of a partition, where they are, others in their place.
 *     trn_max8_args, trn_max8                             the eight largest, descending, duplicates kept
 *     trn_nc_find_index8_args, trn_nc_find_index8         where eight values are
 *     trn_nc_match_replace8_args, trn_nc_match_replace8   eight values replaced, and where they were
 *   engine/vector_move.h: numbers that change places or packing: shuffle, broadcast, transpose, quantize_mx.
 *     trn_nc_stream_shuffle_args, trn_nc_stream_shuffle   partitions within their quadrant
 *     trn_partition_broadcast_args, trn_partition_broadcast   one partition to many, as the Tensor engine does it
 *     trn_vector_transpose_args, trn_vector_transpose     nc_transpose with engine = vector
 *     trn_quantize_mx_args, trn_quantize_mx               MXFP8 codes and scales (Trainium3)
 *   engine/vector_random.h: random numbers in tiles: rng, rand2, dropout, and the seeds and states of the generators.
 *     trn_rng_args, trn_rng                         random bits
 *     trn_rand2_args, trn_rand2                     uniform numbers (Trainium3)
 *     trn_dropout_args, trn_dropout                 elements that become 0 at random
 *     trn_set_rng_seed_args, trn_set_rng_seed       one word seeds all lanes of the Vector engine
 *     trn_rand_set_state_args, trn_rand_set_state   words of state, of GpSimd or (Trainium3) the Vector engine
 *     trn_rand_get_state_args, trn_rand_get_state   and back
 *
 * What all of them share: operands become binary32 numbers, every operation is rounded to binary32, dst is one cast;
 * every NaN that is computed is 7fc00000, and what is only moved keeps its bits. Formats, shapes and limits are
 * checked before anything is written, and a refusal is one sentence. With .unlimited an instruction takes tensors of
 * any size.
 *
 * KNOWN FROM: each part's own lines; "documented" means NKI's page of that instruction.
 */
#ifndef TRN_VECTOR_ENGINE_H
#define TRN_VECTOR_ENGINE_H

#include "base/words_begin.h"

#include "engine/vector_elementwise.h"
#include "engine/vector_move.h"
#include "engine/vector_random.h"
#include "engine/vector_reduce.h"
#include "engine/vector_search.h"
#include "engine/vector_statistics.h"

#include "base/words_end.h"

#endif /* TRN_VECTOR_ENGINE_H */
