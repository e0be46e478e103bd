/* simd/neon.h - what kernels in NEON are written with.
 * Behind trn_act.h trn_convert.h trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_SIMD_NEON_H
#define TRNI_SIMD_NEON_H

#include "../base/cpu.h"

#if TRNI_AARCH64
#include <arm_neon.h>

#define TRNI_NEON_INLINE __attribute__((unused, always_inline)) static inline
#endif

#endif /* TRNI_SIMD_NEON_H */
