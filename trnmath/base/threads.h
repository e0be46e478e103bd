/* base/threads.h - how work is shared out among threads: how many there are, and the whole numbers of cutting.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_share.h>
 *     int main(void) { return trni_threads() >= 1 && trni_round_up(33, 32) == 64 ? 0 : 1; }
 *
 * DOES: asks OpenMP, when compiled with it, how many threads a parallel region would get here: one inside another.
 * DOES NOT: start threads.
 *
 * CONTENTS
 *     trni_threads                                 as many as there are
 *     trni_min64, trni_ceil_div, trni_round_up     of sizes
 *
 * KNOWN FROM: the OpenMP specification (omp_get_max_threads).
 */
#ifndef TRNI_BASE_THREADS_H
#define TRNI_BASE_THREADS_H

#include "../trn_base.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

TRNI_FN int64_t trni_min64(int64_t a, int64_t b) { return a < b ? a : b; }
TRNI_FN int64_t trni_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
TRNI_FN int64_t trni_round_up(int64_t a, int64_t to) { return trni_ceil_div(a, to) * to; }

TRNI_FN int trni_threads(void)
{
#if defined(_OPENMP)
    return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

#endif /* TRNI_BASE_THREADS_H */
