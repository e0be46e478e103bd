/* made_tensor.h - tensors of a checkpoint that a test makes up, and what their values are compared by.
 * SPDX-License-Identifier: MIT
 */
#ifndef MADE_TENSOR_H
#define MADE_TENSOR_H

#include "io/safetensors.h"

/* Include after cmocka.h. */
static inline st_tensor tensor(const char *name, const char *type, int rank, const int64_t *shape, const void *data)
{
    st_tensor t = { .name = (char *)(uintptr_t)name, .rank = rank, .data = data };
    uint64_t bytes = 0;
    const char *wrong;
    snprintf(t.type, sizeof t.type, "%s", type);
    for (int i = 0; i < rank; i++) t.shape[i] = shape[i];
    if (!st_measure(&t, &bytes, &wrong)) fail_msg("%s %s", name, wrong);
    t.end = bytes;
    return t;
}

/* Any NaN is as good as any other. */
static inline uint32_t bits_of(float x) { return x != x ? 0x7fc00000u : io_bits(x); }

#endif /* MADE_TENSOR_H */
