/* trn_vector_move.h - numbers that change places or packing: nc_stream_shuffle, the 32 by 32 transpose, quantize_mx.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_move.h>
 *     int main(void) { return trn_nc_stream_shuffle(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_nc_stream_shuffle_args, trn_nc_stream_shuffle
 *     trn_vector_transpose_args, trn_vector_transpose
 *     trn_quantize_mx_args, trn_quantize_mx
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_VECTOR_MOVE_H
#define TRN_VECTOR_MOVE_H

#include "trn_span.h"

typedef struct trn_nc_stream_shuffle_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    int shuffle_mask[32]; /* 0..31; 255 = leave */
} trn_nc_stream_shuffle_args;

TRNI_FN trn_status trn_nc_stream_shuffle(const trn_nc_stream_shuffle_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "nc_stream_shuffle is not built yet");
}

typedef struct trn_vector_transpose_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [F, P] */
    trn_tensor data; /* [P <= 32, F <= 32] */
} trn_vector_transpose_args;

TRNI_FN trn_status trn_vector_transpose(const trn_vector_transpose_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "vector_transpose is not built yet");
}

typedef struct trn_quantize_mx_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;       /* [P, F/4, 4] F8_E4M3FN or F8_E5M2: word f of partition p is slots 0..3 */
    trn_tensor src;       /* [P, F] F16 or BF16 */
    trn_tensor dst_scale; /* [P/8, F/4] F8_E8M0 or U8 */
} trn_quantize_mx_args;

TRNI_FN trn_status trn_quantize_mx(const trn_quantize_mx_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "quantize_mx is not built yet");
}

#endif /* TRN_VECTOR_MOVE_H */
