/* engine/gpsimd_custom.h - operators of one's own: a function that runs for each of GpSimd's eight processors.
 * A part of trn_gpsimd_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_gpsimd_engine.h>
 *     static trn_status negate(void *user, const trn_gpsimd_part *part, trn_error *error)
 *     {
 *         const float *x = (const float *)part->src[0].data;
 *         float *y = (float *)part->dst[0].data;
 *         (void)user, (void)error;
 *         for (int64_t i = 0; i < trn_tensor_elements(part->src[0]); i++) y[i] = -x[i]; // packed rows, as given below
 *         return TRN_OK;
 *     }
 *     int main(void) {
 *         static float x[128 * 4], y[128 * 4];
 *         x[500] = 3;
 *         trn_gpsimd_custom_args args = { .dst = { trn_tensor_2d(TRN_F32, y, 128, 4) }, .dsts = 1 };
 *         args.src[0] = trn_tensor_2d(TRN_F32, x, 128, 4);
 *         args.srcs = 1;
 *         args.op = negate;
 *         return trn_gpsimd_custom(&args) == TRN_OK && y[500] == -3 ? 0 : 1;
 *     }
 *
 * DOES: cuts the tensors into the 16 partitions of each processor and calls the function for one processor after the
 *     other, or for several at once where it says that it can; gives each 64 KiB of local memory.
 * DOES NOT: know what the function does: it may do to its parts whatever C does. It is called with checked views only.
 *
 * KNOWN FROM: Neuron's guide to custom C++ operators (documented: float, bf16, half, int, char, short and byte tensors;
 *     arithmetic is the compiler's); NKI's architecture guides (documented: eight processors of 16 partitions with
 *     64 KiB of local memory each). How a tensor is cut: assumed to be as the processors are connected.
 */
#ifndef TRNI_ENGINE_GPSIMD_CUSTOM_H
#define TRNI_ENGINE_GPSIMD_CUSTOM_H

#include "instruction.h"
#include "../number/random.h"
#include "../data/tensor.h"

enum {
    TRN_GPSIMD_PROCESSORS = 8,
    TRN_GPSIMD_PROCESSOR_PARTITIONS = 16,
    TRN_GPSIMD_LOCAL_BYTES = 65536,
    TRNI_CUSTOM_DSTS = 4,
    TRNI_CUSTOM_SRCS = 8
};

/* A processor and the partitions it reaches: views of them, with the formats and strides of the whole tensors. */
typedef struct trn_gpsimd_part {
    int processor;           /* 0..7 */
    int64_t first_partition; /* of the tensors */
    int64_t partitions;      /* 16, or what is left */
    trn_tensor dst[4], src[8];
    int dsts, srcs;
    void *local;        /* the processor's memory, at a multiple of 64 bytes; what is in it is nobody's */
    size_t local_bytes; /* 65536 */
} trn_gpsimd_part;

typedef struct trn_gpsimd_custom_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst[4]; /* [P, ...]: F32, BF16, F16, I32, I16, I8 or U8, as all the tensors */
    int dsts;
    trn_tensor src[8]; /* [P, ...] */
    int srcs;
    trn_status (*op)(void *user, const trn_gpsimd_part *part, trn_error *error);
    void *user;
    double cycles; /* the operator's own estimate, per processor */
    bool threads;  /* op may be called by several threads at the same time */
} trn_gpsimd_custom_args;

/* Calls op for each processor's partitions, ascending; with .threads for all of them, at once where there are threads.
 * The first error ends it (with .threads, when all have been called) and is returned with the processor's number; what
 * other processors have written by then stays. Tensors that are all empty are nobody's work. Beyond 128 partitions
 * (.unlimited) processor 0 is next again. A dst may be a src in one place. */
TRN_API trn_status trn_gpsimd_custom(const trn_gpsimd_custom_args *args);

#if TRNI_BODIES

#include "../base/workspace.h"
#include "span.h"

/* What a C++ operator can be given. */
TRNI_FN void trni_custom_format(trni_frame *f, const trn_tensor *t, const char *name)
{
    static const trn_format known[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_I32, TRN_I16, TRN_I8, TRN_U8 };
    if (f->status) return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == t->format) return;
    f->status = trni_fail(f->how.error, TRN_EFORMAT,
                          "%s is %s; custom operators take float32, bfloat16, float16, int32, int16, int8 and uint8",
                          name, trn_format_name(t->format));
}

TRNI_FN void trni_custom_view(trni_frame *f, trni_view *v, const trn_tensor *t, const char *name, trni_use use)
{
    trni_frame_view(f, v, t, name, use);
    trni_custom_format(f, t, name);
    if (f->status) return;
    if (f->partitions < 0) f->partitions = t->shape[0];
    if (t->shape[0] != f->partitions)
        f->status = trni_fail(f->how.error, TRN_ESHAPE, "%s has %lld partitions but the first tensor has %lld", name,
                              (long long)t->shape[0], (long long)f->partitions);
}

/* An output may be an input, in one place; it may not meet anything else. */
TRNI_FN void trni_custom_apart(trni_frame *f, const trni_view *dst, int earlier, const trni_view *src, int srcs)
{
    for (int i = earlier; i > 0; i--) trni_frame_apart(f, dst, dst - i); /* the first dst first */
    for (int i = 0; i < srcs && !f->status; i++)
        if (!trni_same_place(dst, &src[i])) trni_frame_apart(f, dst, &src[i]);
}

TRNI_DRIVER void trni_custom_check(trni_frame *f, const trn_gpsimd_custom_args *a)
{
    char name[TRNI_CUSTOM_DSTS + TRNI_CUSTOM_SRCS][24];
    trni_view dst[TRNI_CUSTOM_DSTS], src[TRNI_CUSTOM_SRCS];
    trn_error *const error = f->how.error;
    if (f->status) return;
    if (!a->op)
        f->status = trni_fail(error, TRN_EINVAL, "op is null");
    else if (a->dsts < 0 || a->dsts > TRNI_CUSTOM_DSTS)
        f->status = trni_fail(error, TRN_EINVAL, "dsts is %d, not 0 to %d", a->dsts, TRNI_CUSTOM_DSTS);
    else if (a->srcs < 0 || a->srcs > TRNI_CUSTOM_SRCS)
        f->status = trni_fail(error, TRN_EINVAL, "srcs is %d, not 0 to %d", a->srcs, TRNI_CUSTOM_SRCS);
    else if (a->dsts + a->srcs == 0)
        f->status = trni_fail(error, TRN_EINVAL, "there is no tensor: dsts and srcs are 0");
    if (f->status) return;
    f->partitions = -1;
    for (int i = 0; i < a->dsts && !f->status; i++) {
        snprintf(name[i], sizeof name[i], "dst[%d]", i);
        trni_custom_view(f, &dst[i], &a->dst[i], name[i], TRNI_OUTPUT);
    }
    for (int i = 0; i < a->srcs && !f->status; i++) {
        char *const own = name[TRNI_CUSTOM_DSTS + i];
        snprintf(own, sizeof name[0], "src[%d]", i);
        trni_custom_view(f, &src[i], &a->src[i], own, TRNI_INPUT);
    }
    for (int i = 0; i < a->dsts && !f->status; i++) trni_custom_apart(f, &dst[i], i, src, a->srcs);
}

/* Partitions may be many where there are no elements. */
TRNI_FN bool trni_custom_empty(const trn_gpsimd_custom_args *a)
{
    for (int i = 0; i < a->dsts; i++)
        if (trn_tensor_elements(a->dst[i])) return false;
    for (int i = 0; i < a->srcs; i++)
        if (trn_tensor_elements(a->src[i])) return false;
    return true;
}

/* Share number `share` of the partitions; its error gets the processor's number in front. */
TRNI_FN trn_status trni_custom_run(const trn_gpsimd_custom_args *a, int64_t partitions, int64_t share, void *local,
                                   trn_error *error)
{
    trn_gpsimd_part part;
    memset(&part, 0, sizeof part);
    part.processor = (int)(share % TRN_GPSIMD_PROCESSORS);
    part.first_partition = share * TRN_GPSIMD_PROCESSOR_PARTITIONS;
    part.partitions = trni_min64(partitions - part.first_partition, TRN_GPSIMD_PROCESSOR_PARTITIONS);
    part.dsts = a->dsts;
    part.srcs = a->srcs;
    for (int i = 0; i < a->dsts; i++)
        part.dst[i] = trn_tensor_slice(a->dst[i], 0, part.first_partition, part.partitions);
    for (int i = 0; i < a->srcs; i++)
        part.src[i] = trn_tensor_slice(a->src[i], 0, part.first_partition, part.partitions);
    part.local = local;
    part.local_bytes = TRN_GPSIMD_LOCAL_BYTES;
    trn_error own;
    memset(&own, 0, sizeof own);
    const trn_status status = a->op(a->user, &part, &own);
    if (!status) return TRN_OK;
    own.text[sizeof own.text - 1] = 0;
    return trni_fail(error, status, "processor %d: %.220s", part.processor,
                     own.text[0] ? own.text : trn_status_text(status));
}

/* All shares, several at once. Of those that fail the first one's error is told. */
TRNI_FN trn_status trni_custom_run_threads(const trn_gpsimd_custom_args *a, int64_t partitions, int64_t shares,
                                           const trni_workspace *local, int threads)
{
    trn_status first = TRN_OK;
    int64_t failed = shares;
    (void)threads;
    TRNI_PARALLEL_FOR(num_threads(threads) schedule(static) if (threads > 1))
    for (int64_t share = 0; share < shares; share++) {
        TRNI_FLOATS;
        trn_error error;
        const trn_status status =
            trni_custom_run(a, partitions, share, trni_workspace_of(local, threads > 1 ? trni_thread() : 0), &error);
        if (!status) continue;
#if defined(_OPENMP)
#pragma omp critical(trni_custom_failed)
#endif
        if (share < failed) {
            failed = share;
            first = status;
            if (a->error) *a->error = error;
        }
    }
    return first;
}

TRNI_FN trn_status trni_custom_run_in_turn(const trn_gpsimd_custom_args *a, int64_t partitions, int64_t shares,
                                           const trni_workspace *local)
{
    trn_status status = TRN_OK;
    for (int64_t share = 0; share < shares && !status; share++)
        status = trni_custom_run(a, partitions, share, trni_workspace_of(local, 0), a->error);
    return status;
}

TRN_API trn_status trn_gpsimd_custom(const trn_gpsimd_custom_args *args)
{
    TRNI_ENTER(args);
    trni_frame f;
    const trn_instruction how = trni_instruction_of(args);
    trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "gpsimd_custom");
    if (!f.status) trni_frame_engine(&f, TRN_ENGINE_GPSIMD, TRN_ENGINE_GPSIMD, "custom operators");
    trni_custom_check(&f, args);
    if (f.status || trni_custom_empty(args)) return f.status;
    const int64_t shares = trni_ceil_div(f.partitions, TRN_GPSIMD_PROCESSOR_PARTITIONS);
    trni_workspace local;
    const int threads = args->threads ? trni_threads() : 1;
    trn_status status = trni_workspace_open(&local, TRN_GPSIMD_LOCAL_BYTES, threads, args->error);
    if (status) return status;
    status = args->threads ? trni_custom_run_threads(args, f.partitions, shares, &local, threads)
                           : trni_custom_run_in_turn(args, f.partitions, shares, &local);
    trni_workspace_close(&local);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_GPSIMD_CUSTOM_H */
