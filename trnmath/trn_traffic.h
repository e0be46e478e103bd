/* trn_traffic.h - several collectives at once on the same links, other traffic, and ranks that are late.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_traffic.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_collective_args two[2] = {
 *             { .net = &net, .op = TRN_ALL_GATHER, .algorithm = TRN_RING, .bytes = 1 << 24 },
 *             { .net = &net, .op = TRN_ALL_TO_ALL, .algorithm = TRN_MESH, .bytes = 1 << 24 } };
 *         trn_traffic_args args = { .collective = two, .count = 2, .late = TRN_LATE_EXPONENTIAL, .late_mean_s = 5e-6,
 *                                   .samples = 100 };
 *         trn_traffic_time each[2], all;
 *         return trn_traffic(&args, each, &all) == TRN_OK && all.mean_s >= each[0].alone_s ? 0 : 1;
 *     }
 *
 * DOES: follows every message of every collective (trn_schedule.h). A message begins when its sender and its receiver
 *     have come to its step; DMA start and the latencies of its links pass; then it flows, and flows that share links
 *     share them max-min fair, as SimGrid's fluid model does: all rates grow together, and a flow stops growing when
 *     one of its links is full. A rank goes on when all of its messages of a step are done, whatever the others do; its
 *     channels do so each by itself. Ranks may be late, each by a random number; then there are samples, of which the
 *     answer has mean and quantiles. Faults, store and forward and links that are used in turns count as they do in
 *     trn_collective_cost.h, and so does the calibration.
 * DOES NOT: HBM and DMA engines, which trn_collective_cost() has; packets; more than 4 Mi messages.
 *
 * CONTENTS
 *   network/traffic.h: several collectives at once on the same links.
 *     trn_late, trn_late_name    how late ranks are
 *     trn_traffic_args           what happens at once
 *     trn_traffic_time           how long one of them takes, or all
 *     trn_traffic                the question
 *
 * KNOWN FROM: network/traffic_flow.h. A collective whose steps load all links alike takes what trn_collective_cost()
 *     says of the links; where they do not, short messages are over before long ones, and the next step begins earlier.
 */
#ifndef TRN_TRAFFIC_H
#define TRN_TRAFFIC_H

#include "base/words_begin.h"

#include "network/traffic.h"

#include "base/words_end.h"

#endif /* TRN_TRAFFIC_H */
