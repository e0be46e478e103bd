/* trn_schedule.h - what a collective does, step by step: which rank sends what to whom, and where it is summed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_schedule.h>
 *     int main(void) {
 *         if (trn_collective_from_name("all_reduce") != TRN_ALL_REDUCE) return 1;
 *         return trn_algorithm_name(TRN_RING)[0] == 'r' ? 0 : 1;
 *     }
 *
 * DOES: names the collectives and their algorithms, and holds the one schedule of each. A payload is cut into channels;
 *     a channel works through stages; a stage is a digit of the ranks' numbers and one of six patterns. Reduce-scatter
 *     takes the stages in order, all-gather backwards, all-reduce is the first and then the second; all-to-all takes
 *     them in order. From this description come the values (network/collective_values.h), the time
 *     (network/collective_time.h) and the messages between hosts (trn_mpi.h).
 * DOES NOT: know topologies, bytes, or which stages an algorithm has (network/collective_layout.h).
 *
 * CONTENTS
 *   network/schedule.h: the steps of a collective: who sends what to whom.
 *     trn_collective, trn_collective_name, trn_collective_from_name   the seven collectives
 *     trn_algorithm, trn_algorithm_name, trn_algorithm_from_name      and how they are done
 *
 * KNOWN FROM: the Neuron SDK, neuron-runtime/explore/intranode-collective-comm.rst and internode-collective-comm.rst
 *     (Ring, Mesh, recursive doubling and halving, KangaRing, hierarchies); Thakur, Rabenseifner and Gropp,
 *     "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005; Sack and Gropp, "Collective
 *     algorithms for multiported torus networks", TOPC 1(2), 2015 (dimensions in rotated orders).
 *
 * The order of each sum, which the bits depend on (documented where the runtime's pages say it, else assumed):
 *     RING_UP      the partial for v begins at member v + 1 and goes up to v: a left fold, n - 1 roundings
 *     BOTH_WAYS    two arms, meeting in v as (from below + v's own) + from above; of an even n the two halves of a
 *                  block take the long way from opposite sides
 *     DIRECT       all members ascending, one rounding (more than 16 sources: 16 at a time, as DMA sums them)
 *     PAIRS_UP     KangaRing: (partial + first of the pair) + second, n/2 roundings
 * DOWN is UP mirrored. Input order inside a sum of several is assumed ascending.
 */
#ifndef TRN_SCHEDULE_H
#define TRN_SCHEDULE_H

#include "base/words_begin.h"

#include "network/schedule.h"

#include "base/words_end.h"

#endif /* TRN_SCHEDULE_H */
