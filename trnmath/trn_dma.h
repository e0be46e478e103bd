/* trn_dma.h - what the DMA engines do with numbers: copies, casts, gathers, scatters, transposes, sums.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_dma.h>
 *     int main(void) { return trn_dma_copy(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_oob_mode, trn_dge_mode
 *     trn_dma_copy_args, trn_dma_copy
 *     trn_dma_transpose_args, trn_dma_transpose
 *     trn_dma_compute_args, trn_dma_compute
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_DMA_H
#define TRN_DMA_H

#include "trn_alu.h"
#include "trn_convert.h"

typedef enum trn_oob_mode {
    TRN_OOB_ERROR = 0, /* an index out of bounds is refused */
    TRN_OOB_SKIP       /* its row is left out */
} trn_oob_mode;

/* Who makes the descriptors. */
typedef enum trn_dge_mode {
    TRN_DGE_UNKNOWN = 0, /* whatever can do it */
    TRN_DGE_SWDGE,       /* GpSimd's software */
    TRN_DGE_HWDGE,       /* hardware: Trainium2 and later */
    TRN_DGE_NONE         /* the runtime, beforehand */
} trn_dge_mode;

typedef struct trn_dma_copy_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;             /* as many elements, in any shapes: row-major order */
    trn_tensor src_index, dst_index; /* [P] or [P, 1], U32 or I32: gather or scatter rows of axis 0 */
    trn_oob_mode oob_mode;
    trn_dge_mode dge_mode;
    int priority;       /* 0..3, 0 is the highest; Trainium3 */
    bool accumulate;    /* dst += src, both BF16 or both F32 */
    double compression; /* Trainium1: bytes on the wire / bytes; 0 = off */
} trn_dma_copy_args;

TRNI_FN trn_status trn_dma_copy(const trn_dma_copy_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "dma_copy is not built yet");
}

typedef struct trn_dma_transpose_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;
    int axes[4];      /* all 0 = the rank's own */
    trn_tensor index; /* [I, N], U32: gathers rows of src first */
    trn_oob_mode oob_mode;
    trn_dge_mode dge_mode;
} trn_dma_transpose_args;

TRNI_FN trn_status trn_dma_transpose(const trn_dma_transpose_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "dma_transpose is not built yet");
}

typedef struct trn_dma_compute_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    const trn_tensor *srcs;
    int count;           /* 1..16 */
    const float *scales; /* null, or all 1 */
    trn_alu reduce_op;   /* add; 0 = add */
    trn_tensor index;    /* read-modify-write of rows */
    bool scatter;        /* index belongs to dst; else to srcs[0] */
    trn_oob_mode oob_mode;
} trn_dma_compute_args;

TRNI_FN trn_status trn_dma_compute(const trn_dma_compute_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "dma_compute is not built yet");
}

#endif /* TRN_DMA_H */
