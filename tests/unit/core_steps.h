/* core_steps.h - tiles of one_core.h's core, and the instructions that most tests begin with.
 * SPDX-License-Identifier: MIT
 */
#ifndef CORE_STEPS_H
#define CORE_STEPS_H

#include "unit/one_core.h"

/* ---- tiles ---- */

static inline trn_tensor tile(const char *name, int64_t p, int64_t f)
{
    return trn_core_sbuf(&core, name, TRN_F32, p, f);
}

/* A tile of zeros, in `space`, which no instruction has written. */
static inline trn_tensor zeros(trn_space space, trn_format format, int64_t p, int64_t f)
{
    const trn_tensor t =
        space == TRN_SPACE_PSUM ? trn_core_psum(&core, "t", format, p, f) : trn_core_sbuf(&core, "t", format, p, f);
    for (int64_t i = 0; i < p; i++)
        memset((char *)t.data + i * t.stride[0] * (int64_t)trn_format_bytes(format), 0,
               (size_t)f * trn_format_bytes(format));
    trn_core_written(&core, t);
    return t;
}

static inline trn_tensor sbuf(trn_format format, int64_t f) { return zeros(TRN_SPACE_SBUF, format, 128, f); }
static inline trn_tensor psum(trn_format format, int64_t f) { return zeros(TRN_SPACE_PSUM, format, 128, f); }

/* ---- instructions ---- */

static inline void set(trn_tensor t, float value)
{
    const trn_memset_args args = { .dst = t, .value = value };
    trn_core_memset(&core, &args);
}

static inline void copy(trn_tensor dst, trn_tensor src, trn_engine engine)
{
    const trn_tensor_copy_args args = { .dst = dst, .src = src, .engine = engine };
    trn_core_tensor_copy(&core, &args);
}

static inline void move(trn_tensor dst, trn_tensor src)
{
    const trn_dma_copy_args args = { .dst = dst, .src = src };
    trn_core_dma_copy(&core, &args);
}

/* To HBM, where what nothing has written counts; sums carry it that far. */
static inline trn_status store(trn_tensor data, trn_error *error)
{
    static float out[128 * 64];
    const trn_tensor to = trn_core_hbm(&core, "out", trn_tensor_nd(TRN_F32, out, data.rank, data.shape));
    const trn_dma_copy_args args = { .dst = to, .src = data, .error = error };
    return trn_core_dma_copy(&core, &args);
}

#endif /* CORE_STEPS_H */
