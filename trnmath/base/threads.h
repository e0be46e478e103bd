/* base/threads.h - how work is shared out among threads: how many there are, and the whole numbers of cutting.
 * A room of all that use threads. SPDX-License-Identifier: MIT
 *
 * DOES: asks OpenMP, when compiled with it, how many threads a parallel region would get here: one inside another.
 * DOES NOT: start threads.
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
