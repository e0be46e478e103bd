/* simd/systolic_loader_vector.h - lines for array/systolic_loader.h, written once; read once per instruction set.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * F32, TF32, BF16 and F16.
 * Included by simd/systolic_loader_avx2.h, _avx512.h and _neon.h after simd/vector_<isa>.h, with
 *     TRNI_V_LOADED       vectors that hold TRNI_LOADER_CODES codes, and functions that read as many at any address:
 *     TRNI_V_NAME(trni_codes_f32)(src, y)    and _tf32, _bf16, _f16
 * On its own it is empty. Same bits as the plain C bodies, but that a NaN of TF32 keeps all of its payload: the
 * result's will be made canonical.
 */
#include "../base/cpu.h"

#if defined(TRNI_V_LOADED)

TRNI_SIMD_BEGIN

/* sum[0 … 15] takes up `count` lines in order: four at once, or any number, one after the other. */
#define TRNI_V_LOADED_OF(name, code_bytes)                                                                             \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_lines_##name)(TRNI_LINES_PARAMS)                                          \
    {                                                                                                                  \
        enum { width = TRNI_V_LANES == 16 ? 32 : 16 }; /* as trni_panel_width */                                       \
        (void)loader;                                                                                                  \
        for (int64_t p = 0; p < panels; p++)                                                                           \
            for (int r = 0; r < rows; r++)                                                                             \
                for (int i = 0; i < width; i += TRNI_LOADER_CODES) {                                                   \
                    TRNI_V y[TRNI_V_LOADED];                                                                           \
                    TRNI_V_NAME(trni_codes_##name)(src + r * row_step + (p * width + i) * code_bytes, y);              \
                    TRNI_EVERY(j, TRNI_V_LOADED)                                                                       \
                    TRNI_V_OP(storeu_ps)(dst + (size_t)p * panel_step + slot[r] * width + i + j * TRNI_V_LANES, y[j]); \
                }                                                                                                      \
    }                                                                                                                  \
    TRNI_V_INLINE void TRNI_V_NAME(trni_loader_##name)(const int count, float *sum, const float *x,                    \
                                                       const unsigned char *src, int64_t row_step)                     \
    {                                                                                                                  \
        TRNI_V s[TRNI_V_LOADED];                                                                                       \
        TRNI_EVERY(j, TRNI_V_LOADED) s[j] = TRNI_V_OP(loadu_ps)(sum + j * TRNI_V_LANES);                               \
        TRNI_EVERY(r, count)                                                                                           \
        {                                                                                                              \
            TRNI_V y[TRNI_V_LOADED];                                                                                   \
            TRNI_V_NAME(trni_codes_##name)(src + r * row_step, y);                                                     \
            TRNI_EVERY(j, TRNI_V_LOADED) s[j] = TRNI_V_OP(fmadd_ps)(y[j], TRNI_V_OP(set1_ps)(x[r]), s[j]);             \
        }                                                                                                              \
        TRNI_EVERY(j, TRNI_V_LOADED) TRNI_V_OP(storeu_ps)(sum + j * TRNI_V_LANES, s[j]);                               \
    }                                                                                                                  \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_loader_some_##name)(int count, float *sum, const float *x,                     \
                                                            const unsigned char *src, int64_t row_step)                \
    {                                                                                                                  \
        for (int r = 0; r < count; r++) TRNI_V_NAME(trni_loader_##name)(1, sum, x + r, src + r * row_step, row_step);  \
    }                                                                                                                  \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_stream_##name)(TRNI_STREAM_PARAMS)                                        \
    {                                                                                                                  \
        enum { line = 64 / code_bytes, most = TRNI_LOADER_TOGETHER, few = TRNI_LOADER_CODES };                         \
        if (n % few) trni_stream_rest(TRNI_V_NAME(trni_simd_stream_##name), loader, sum, x, src, row_step, rows, n);   \
        n -= n % few;                                                                                                  \
        for (; rows > 0; rows -= most, x += most, src += most * row_step) {                                            \
            const unsigned char *from = src;                                                                           \
            size_t i = 0;                                                                                              \
            for (; rows >= most && i + line <= n; i += line, from += 64) {                                             \
                TRNI_EVERY(r, most)                                                                                    \
                __builtin_prefetch((const void *)((uintptr_t)(from + r * row_step) + (uintptr_t)ahead));               \
                TRNI_EVERY(j, line / few)                                                                              \
                TRNI_V_NAME(trni_loader_##name)(most, sum + i + j * few, x, from + j * few * code_bytes, row_step);    \
            }                                                                                                          \
            for (; i < n; i += few, from += few * code_bytes)                                                          \
                TRNI_V_NAME(trni_loader_some_##name)(rows < most ? rows : (int)most, sum + i, x, from, row_step);      \
        }                                                                                                              \
    }
TRNI_V_LOADED_OF(f32, 4)
TRNI_V_LOADED_OF(tf32, 4)
TRNI_V_LOADED_OF(bf16, 2)
TRNI_V_LOADED_OF(f16, 2)
#undef TRNI_V_LOADED_OF

TRNI_SIMD_END
#include "vector_end.h"
#endif
