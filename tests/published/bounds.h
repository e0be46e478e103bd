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

enum { PUBLISHED_BOUNDS = sizeof published_bounds / sizeof published_bounds[0] };

#endif /* PUBLISHED_BOUNDS_H */
