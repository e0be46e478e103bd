/* trn_collective.h - collectives that compute: the values of every rank, rounded as wire and algorithm round them.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_collective.h>
 *     #include <stdio.h>
 *     int main(void) { // 16 chips add 256 and fifteen 1: BF16 rounds at every hop of a ring
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         uint16_t code[16];
 *         trn_tensor view[16];
 *         for (int r = 0; r < 16; r++) {
 *             code[r] = trn_bf16_from_f32(r == 1 ? 256.0f : 1.0f);
 *             view[r] = trn_tensor_1d(TRN_BF16, &code[r], 1);
 *         }
 *         trn_error error;
 *         trn_collective_args args = { 0 };
 *         args.net = &net;
 *         args.op = TRN_ALL_REDUCE;
 *         args.algorithm = TRN_RING;
 *         args.src = args.dst = view; // in place
 *         args.error = &error;
 *         if (trn_collective_run(&args) != TRN_OK) return fprintf(stderr, "%s\n", error.text), 1;
 *         printf("%g\n", (double)trn_bf16_to_f32(code[0])); // 256, not 271: every 1 is rounded away
 *         return 0;
 *     }
 *
 * DOES: all_gather, reduce_scatter, all_reduce, all_to_all (even or by counts), broadcast, permute and send_recv for
 *     one group or many at once; each step adds in binary32 and rounds once to the wire format, nearest even or
 *     stochastically, in the order of the algorithm (trn_schedule.h). Every rank of an all_reduce gets the same bits.
 *     Results do not depend on the number of host threads.
 * DOES NOT: leave this process (trn_mpi.h does), or know layouts (trn_shard.h).
 *
 * CONTENTS (arguments and time: trn_collective_cost.h, which this includes)
 *   network/collective.h: collectives that compute the values of every rank.
 *     trn_collective_run      the values; on failure nothing is written
 *
 * KNOWN FROM: network/collective_values.h. AUTO takes the algorithm that trn_collective_cost finds cheapest for the
 *     size.
 *
 * Stochastic rounding: the source of rank r draws its words from stream + r, at the element's number in its view; the
 * sum that rank r writes in step s of the reduction from stream + ranks (s + 1) + r, at the element's number in the
 * buffer (of more than 16 sources: partial sum i adds (i + 1) 2^48); destinations of another format than the wire's all
 * draw from stream + 2^32 - 1, at the element's number in the view. Group g adds g 2^32.
 */
#ifndef TRN_COLLECTIVE_H
#define TRN_COLLECTIVE_H

#include "base/words_begin.h"

#include "network/collective.h"

#include "base/words_end.h"

#endif /* TRN_COLLECTIVE_H */
