/* engine.c - the instructions that kernels use, compiled once.
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#define DEFINE(name)                                                                                                   \
    void kernel_##name(trn_core *c, const trn_##name##_args *args) { trn_core_##name(c, args); }

KERNEL_INSTRUCTIONS(DEFINE)
