/* bounds.h - the least time that links allow a collective, of the bandwidth alone, in microseconds.
 * SPDX-License-Identifier: MIT
 *
 * From the published rates, (N-1)/N V over the links out of a chip, twice that, and the cut of the network.
 */
#ifndef PUBLISHED_BOUNDS_H
#define PUBLISHED_BOUNDS_H

#include "trnmath/trn_collective_cost.h"

static const struct {
    trn_system system;
    double gather[3], all_reduce[3], exchange[3]; /* of 1 MiB, 64 MiB, 1 GiB */
} published_bounds[] = {
    { TRN_TRN1_32XLARGE, { 5.12, 327.7, 5242.9 }, { 10.24, 655.4, 10485.8 }, { 10.92, 699.1, 11184.8 } },
    { TRN_TRN1N_32XLARGE, { 2.56, 163.8, 2621.4 }, { 5.12, 327.7, 5242.9 }, { 5.46, 349.5, 5592.4 } },
    { TRN_TRN2_48XLARGE, { 1.92, 122.9, 1966.1 }, { 3.84, 245.8, 3932.2 }, { 4.10, 262.1, 4194.3 } },
    { TRN_TRN2_ULTRASERVER, { 1.61, 103.2, 1651.5 }, { 3.23, 206.4, 3303.0 }, { 8.19, 524.3, 8388.6 } },
};
static const int64_t published_bound_bytes[] = { 1 << 20, 64 << 20, 1 << 30 };
static const trn_collective published_bound_ops[] = { TRN_ALL_GATHER, TRN_REDUCE_SCATTER, TRN_ALL_REDUCE,
                                                      TRN_ALL_TO_ALL };

enum {
    PUBLISHED_BOUNDS = sizeof published_bounds / sizeof published_bounds[0],
    PUBLISHED_BOUND_SIZES = sizeof published_bound_bytes / sizeof published_bound_bytes[0],
    PUBLISHED_BOUND_OPS = sizeof published_bound_ops / sizeof published_bound_ops[0]
};

static inline double published_bound_us(int system, int op, int size)
{
    return op < 2    ? published_bounds[system].gather[size]
           : op == 2 ? published_bounds[system].all_reduce[size]
                     : published_bounds[system].exchange[size];
}

static inline double published_bound_slack(int size) { return size ? 0.0501 : 0.00501; } /* of the digits above */

/* The system's links without what a message costs before its first byte. */
static inline trn_topology published_bound_net(int system)
{
    trn_topology net = trn_topology_of(published_bounds[system].system);
    net.start_s = 0;
    for (int l = 0; l < net.levels; l++) net.level[l].latency_s = 0;
    return net;
}

#endif /* PUBLISHED_BOUNDS_H */
