/* trn_vector_statistics.h - count, mean and squared deviations of partitions: bn_stats, bn_aggr.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_statistics.h>
 *     int main(void) { return trn_bn_stats(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_bn_stats_args, trn_bn_stats
 *     trn_bn_aggr_args, trn_bn_aggr
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_VECTOR_STATISTICS_H
#define TRN_VECTOR_STATISTICS_H

#include "trn_span.h"

typedef struct trn_bn_stats_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 6] */
    trn_tensor data; /* [P, F <= 512] */
} trn_bn_stats_args;

TRNI_FN trn_status trn_bn_stats(const trn_bn_stats_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "bn_stats is not built yet");
}

typedef struct trn_bn_aggr_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 2]: mean, variance */
    trn_tensor data; /* [P, 3 n]: count, mean, variance * count */
} trn_bn_aggr_args;

TRNI_FN trn_status trn_bn_aggr(const trn_bn_aggr_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "bn_aggr is not built yet");
}

#endif /* TRN_VECTOR_STATISTICS_H */
