/* cores/cores_rows.h - every collective of cores as one row: what it is called, how it is checked and carried out.
 * Behind trn_cores.h. SPDX-License-Identifier: MIT
 *
 * X(name, id, axis, check, run)
 *
 *     name    trn_cores_<name>, which trn_cores.h declares, and nki.collectives' name
 *     id      TRNI_CORES_<id>
 *     axis    tiles in SBUF: the largest axis that members' data lie along; -1: it does not take them
 *     check   trni_cores_check_<check> of cores_call.h: on its own core, before anybody is waited for
 *     run     trni_cores_run_<run> of cores_values.h: when all are there
 */
#ifndef TRNI_CORES_CORES_ROWS_H
#define TRNI_CORES_CORES_ROWS_H

#include "cores_args.h"

#define TRNI_CORES_COLLECTIVES(X)                                                                                      \
    X(all_reduce, ALL_REDUCE, 0, same, all_reduce)                                                                     \
    X(all_gather, ALL_GATHER, 1, gather, all_gather)                                                                   \
    X(reduce_scatter, REDUCE_SCATTER, 0, scatter, reduce_scatter)                                                      \
    X(all_to_all, ALL_TO_ALL, -1, all_to_all, all_to_all)                                                              \
    X(all_gather_v, ALL_GATHER_V, -1, v, v)                                                                            \
    X(all_to_all_v, ALL_TO_ALL_V, -1, v, v)                                                                            \
    X(collective_permute, PERMUTE, -1, permute, permute)                                                               \
    X(collective_permute_implicit, PERMUTE_IMPLICIT, 0, ring, ring)                                                    \
    X(collective_permute_implicit_reduce, PERMUTE_IMPLICIT_REDUCE, 0, ring, ring)

#endif /* TRNI_CORES_CORES_ROWS_H */
