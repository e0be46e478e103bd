/* normal.h - Gaussian numbers from the library's Philox: the same on every host.
 * SPDX-License-Identifier: MIT
 */
#ifndef CONFORMANCE_NORMAL_H
#define CONFORMANCE_NORMAL_H

#include <math.h>

#include "trnmath/trn_random.h"

/* Box and Muller in binary64, n even. */
static inline void cf_normal(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i += 2) {
        const double u = (trn_random_u32(seed, 0, (uint64_t)i) + 1.0) * 0x1p-32;
        const double angle = 6.283185307179586 * (trn_random_u32(seed, 0, (uint64_t)i + 1) * 0x1p-32);
        const double radius = sqrt(-2 * log(u));
        x[i] = (float)(radius * cos(angle));
        x[i + 1] = (float)(radius * sin(angle));
    }
}

#endif /* CONFORMANCE_NORMAL_H */
