/* trn_vector_engine.h - the Vector engine, whole: which instruction lives in which room, and what is known of it.
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
 * DOES: includes every room of the engine. One function is one instruction of the same name, trn_<name>(&args).
 * DOES NOT: define anything.
 *
 *     instruction                  since  numerics                                            room
 *     tensor_tensor                Trn1   documented; each operator rounds once: assumed      trn_vector_elementwise.h
 *     tensor_scalar                Trn1   documented; two roundings: assumed                  trn_vector_elementwise.h
 *     scalar_tensor_tensor         Trn1   documented; two roundings: assumed                  trn_vector_elementwise.h
 *     tensor_copy                  Trn1   documented                                          trn_vector_elementwise.h
 *     tensor_copy_predicated       Trn1   documented                                          trn_vector_elementwise.h
 *     memset                       Trn1   documented                                          trn_vector_elementwise.h
 *     reciprocal                   Trn1   correctly rounded: assumed                          trn_vector_elementwise.h
 *     tensor_reduce                Trn1   one chain: measured (one published figure)          trn_vector_reduce.h
 *     tensor_scalar_reduce         Trn1   documented; order: assumed                          trn_vector_reduce.h
 *     tensor_scalar_cumulative     Trn1   documented                                          trn_vector_reduce.h
 *     tensor_tensor_scan           Trn1   documented                                          trn_vector_reduce.h
 *     exponential                  Trn3   the Scalar engine's exp: assumed                    trn_vector_reduce.h
 *     range_select                 Trn2   documented                                          trn_vector_reduce.h
 *     select_reduce                Trn1   documented                                          trn_vector_reduce.h
 *     bn_stats, bn_aggr            Trn1   results documented; formulas and order: assumed     trn_vector_statistics.h
 *     max8                         Trn1   documented; NaN last: assumed                       trn_vector_search.h
 *     nc_find_index8               Trn1   documented; NaN is not found: assumed               trn_vector_search.h
 *     nc_match_replace8            Trn1   documented; no dst_idx on Trn1: measured            trn_vector_search.h
 *     nc_stream_shuffle            Trn1   documented: bits move                               trn_vector_move.h
 *     nc_transpose, here as        Trn1   documented: bits move                               trn_vector_move.h
 *         vector_transpose
 *     quantize_mx                  Trn3   documented; groups with NaN: assumed                trn_vector_move.h
 *     rng                          Trn1   32 bits, low ones: documented; the words: assumed   trn_vector_random.h
 *     rand2                        Trn3   range: documented; words, roundings: assumed        trn_vector_random.h
 *     dropout                      Trn1   0 and 1: documented; the comparison: assumed        trn_vector_random.h
 *     set_rng_seed                 Trn1   documented; from seed to states: assumed            trn_vector_random.h
 *     rand_set_state,              Trn2   documented; on VectorE since Trn3                   trn_vector_random.h
 *         rand_get_state
 *
 * CONTENTS
 *     trn_vector_*    the rooms: trn_vector_elementwise.h trn_vector_reduce.h trn_vector_statistics.h
 *                     trn_vector_search.h trn_vector_move.h trn_vector_random.h; what they remember: trn_engine_state.h
 *
 * What all of them share: operands become binary32 numbers, every operation is rounded to binary32, dst is one cast;
 * every NaN that is computed is 7fc00000, and what is only moved keeps its bits. Formats, shapes and limits are
 * checked before anything is written, and a refusal is one sentence. With .unlimited an instruction takes tensors of
 * any size.
 *
 * KNOWN FROM: each room's own lines; "documented" means NKI's page of that instruction.
 */
#ifndef TRN_VECTOR_ENGINE_H
#define TRN_VECTOR_ENGINE_H

#include "base/words_begin.h"

#include "trn_vector_elementwise.h"
#include "trn_vector_move.h"
#include "trn_vector_random.h"
#include "trn_vector_reduce.h"
#include "trn_vector_search.h"
#include "trn_vector_statistics.h"

#include "base/words_end.h"

#endif /* TRN_VECTOR_ENGINE_H */
