/* trn_collective_cost.h - the time of a collective: which algorithm, how long, what limits it, what nothing could beat.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_collective_cost.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_collective_args args = { 0 };
 *         args.net = &net;
 *         args.op = TRN_ALL_REDUCE;
 *         args.bytes = 64 << 20;
 *         args.ranks_per_chip = 4;
 *         trn_cost cost;
 *         if (trn_collective_cost(&args, &cost) != TRN_OK) return 1;
 *         printf("%.0f us by %s, at least %.0f; %s\n", 1e6 * cost.time_s, trn_algorithm_name(cost.algorithm),
 *                1e6 * cost.lower_bound_s, cost.bottleneck);
 *         return cost.algorithm == TRN_KANGARING ? 0 : 1;
 *     }
 *
 * DOES: costs one algorithm, or the cheapest of those that the system's runtime is documented to use (on a custom
 *     topology: of all that fit). For a fixed algorithm the time is exactly latency_s + bytes * seconds per byte; where
 *     it has several ways (hierarchies, and broadcasts whole or dealt out), the least of several such lines.
 * DOES NOT: include software overheads before the first DMA, other traffic, or waiting for slow ranks. Absolute times
 *     are results of this model, never measurements.
 *
 * CONTENTS
 *   network/collective_cost.h: the time of a collective, by each algorithm.
 *     trn_cost                    the answer
 *     trn_collective_cost         of one collective
 *     trn_collective_candidates   the algorithms that AUTO compares
 *     trn_collective_busbw_factor bus bandwidth over bytes per second
 *     trn_collective_loads        what each link carries
 *   network/collective_group.h: what a collective is asked, and which part of the machine its ranks are.
 *     trn_collective_args          what all collectives take
 *     trn_collective_ranks         ranks of one group
 *     trn_collective_chunk         which elements of a buffer are a rank's
 *     trn_replica_group_check      is this a group the system's runtime accepts? if not, why, and what would be
 *
 * KNOWN FROM: network/collective_time.h; bus bandwidth as nccom-test and nccl-tests define it.
 */
#ifndef TRN_COLLECTIVE_COST_H
#define TRN_COLLECTIVE_COST_H

#include "base/words_begin.h"

#include "network/collective_cost.h"
#include "network/collective_group.h"

#include "base/words_end.h"

#endif /* TRN_COLLECTIVE_COST_H */
