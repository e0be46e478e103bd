/* trn_gpsimd_custom.h - operators of one's own, run for each of the eight processors.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_gpsimd_custom.h>
 *     int main(void) { return trn_gpsimd_custom(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_gpsimd_part, trn_gpsimd_custom_args, trn_gpsimd_custom
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_GPSIMD_CUSTOM_H
#define TRN_GPSIMD_CUSTOM_H

#include "trn_span.h"

/* A processor and the 16 partitions it reaches: views of them, all of the formats and strides of the whole ones. */
typedef struct trn_gpsimd_part {
    int processor;           /* 0..7 */
    int64_t first_partition; /* of the tensors */
    int64_t partitions;      /* up to 16 */
    trn_tensor dst[4], src[8];
    int dsts, srcs;
    void *local;             /* 64 KiB, the processor's memory; nothing is promised about what is in it */
    size_t local_bytes;
} trn_gpsimd_part;

typedef struct trn_gpsimd_custom_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst[4];
    int dsts;
    trn_tensor src[8];
    int srcs;
    trn_status (*op)(void *user, const trn_gpsimd_part *part, trn_error *error);
    void *user;
    double cycles; /* the operator's own estimate, per processor */
} trn_gpsimd_custom_args;

TRNI_FN trn_status trn_gpsimd_custom(const trn_gpsimd_custom_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "gpsimd_custom is not built yet");
}

#endif /* TRN_GPSIMD_CUSTOM_H */
