/* trn_vector_search.h - the eight largest of a partition, where they are, and others in their place: max8, nc_find_index8, nc_match_replace8.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_search.h>
 *     int main(void) { return trn_max8(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_max8_args, trn_max8
 *     trn_nc_find_index8_args, trn_nc_find_index8
 *     trn_nc_match_replace8_args, trn_nc_match_replace8
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_VECTOR_SEARCH_H
#define TRN_VECTOR_SEARCH_H

#include "trn_span.h"

typedef struct trn_max8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, 8] */
    trn_tensor src; /* [P, 8..16384] */
} trn_max8_args;

TRNI_FN trn_status trn_max8(const trn_max8_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "max8 is not built yet");
}

typedef struct trn_nc_find_index8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [P, 8] U16 or U32 */
    trn_tensor data; /* [P, 8..16384] */
    trn_tensor vals; /* [P, 8] */
} trn_nc_find_index8_args;

TRNI_FN trn_status trn_nc_find_index8(const trn_nc_find_index8_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "nc_find_index8 is not built yet");
}

typedef struct trn_nc_match_replace8_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data; /* [P, 8..16384] */
    trn_tensor vals;      /* [P, 8] */
    float imm;
    trn_tensor dst_idx;   /* optional [P, 8] U16 or U32 */
} trn_nc_match_replace8_args;

TRNI_FN trn_status trn_nc_match_replace8(const trn_nc_match_replace8_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "nc_match_replace8 is not built yet");
}

#endif /* TRN_VECTOR_SEARCH_H */
