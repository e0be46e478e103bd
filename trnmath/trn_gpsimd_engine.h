/* trn_gpsimd_engine.h - the instructions of GpSimd: patterns, gathers, reductions over partitions, sorting.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_gpsimd_engine.h>
 *     int main(void) { return trn_iota(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_pattern
 *     trn_iota_args, trn_iota
 *     trn_affine_select_args, trn_affine_select
 *     trn_local_gather_args, trn_local_gather
 *     trn_nc_n_gather_args, trn_nc_n_gather
 *     trn_tensor_partition_reduce_args, trn_tensor_partition_reduce
 *     trn_nonzero_with_count_args, trn_nonzero_with_count
 *     trn_sequence_bounds_args, trn_sequence_bounds
 *     trn_topk_args, trn_topk
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_GPSIMD_ENGINE_H
#define TRN_GPSIMD_ENGINE_H

#include "trn_alu.h"
#include "trn_gpsimd_custom.h"
#include "trn_gpsimd_math.h"
#include "trn_gpsimd_state.h"

typedef struct trn_pattern {
    int rank; /* 0..4; 0 = one element */
    struct {
        int32_t step, num;
    } axis[4]; /* outermost first */
} trn_pattern;

typedef struct trn_iota_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, F]; F is the product of the pattern's sizes */
    trn_pattern pattern;
    int32_t offset, channel_multiplier;
} trn_iota_args;

TRNI_FN trn_status trn_iota(const trn_iota_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "iota is not built yet");
}

typedef struct trn_affine_select_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, F] */
    trn_pattern pattern;
    int32_t channel_multiplier, offset;
    trn_tensor on_true_tile; /* [P, F] */
    float on_false_value;
    trn_alu cmp_op; /* equal (also what 0 means), not_equal, greater, greater_equal, less, less_equal */
} trn_affine_select_args;

TRNI_FN trn_status trn_affine_select(const trn_affine_select_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "affine_select is not built yet");
}

typedef struct trn_local_gather_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src_buffer;
    trn_tensor index;          /* [P, I], U16 */
    int num_elem_per_idx;      /* 1, 2, 4, 8, 16, 32; 0 = 1 */
    int64_t num_valid_indices; /* per processor; 0 = all 16 I */
} trn_local_gather_args;

TRNI_FN trn_status trn_local_gather(const trn_local_gather_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "local_gather is not built yet");
}

typedef struct trn_nc_n_gather_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    trn_tensor indices; /* [P, F of dst], U32 */
} trn_nc_n_gather_args;

TRNI_FN trn_status trn_nc_n_gather(const trn_nc_n_gather_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "nc_n_gather is not built yet");
}

typedef struct trn_tensor_partition_reduce_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [1, F] */
    trn_tensor data; /* [P, F] */
    trn_alu op;      /* add, average, maximum, bitwise_or, bitwise_and */
} trn_tensor_partition_reduce_args;

TRNI_FN trn_status trn_tensor_partition_reduce(const trn_tensor_partition_reduce_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "tensor_partition_reduce is not built yet");
}

typedef struct trn_nonzero_with_count_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;      /* [P, T + 1], I32 */
    trn_tensor src;      /* [P, T], F32 or I32 */
    int32_t index_offset;
    int32_t padding_val; /* as given; NKI's default is -1 */
} trn_nonzero_with_count_args;

TRNI_FN trn_status trn_nonzero_with_count(const trn_nonzero_with_count_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "nonzero_with_count is not built yet");
}

typedef struct trn_sequence_bounds_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;         /* [1, 2, n], F32 or I32 */
    trn_tensor segment_ids; /* [1, n], F32 or I32 */
} trn_sequence_bounds_args;

TRNI_FN trn_status trn_sequence_bounds(const trn_sequence_bounds_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "sequence_bounds is not built yet");
}

typedef struct trn_topk_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor val_dst; /* [P, k], BF16 */
    trn_tensor idx_dst; /* [P, k], U32 */
    trn_tensor src;     /* [P, X], BF16 */
    int64_t n;
} trn_topk_args;

TRNI_FN trn_status trn_topk(const trn_topk_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "topk is not built yet");
}

#endif /* TRN_GPSIMD_ENGINE_H */
