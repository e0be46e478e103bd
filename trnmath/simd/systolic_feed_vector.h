/* simd/systolic_feed_vector.h - lines of F16 for array/systolic_feed.h, written once; read once per instruction set.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * Included by simd/systolic_feed_avx2.h and simd/systolic_feed_avx512.h after trn_vector_<isa>.h. On its own it is
 * empty. The conversion
 * instruction needs no care for subnormals (plain C takes a dozen steps).
 */
#include "../trn_cpu.h"

#if defined(TRNI_V_FEED)

/* The last, incomplete vector of a line goes through memory. */
TRNI_V_INLINE TRNI_V TRNI_V_NAME(trni_simd_f16_rest)(const unsigned char *src, size_t n)
{
    unsigned char bytes[2 * TRNI_V_LANES] = { 0 };
    memcpy(bytes, src, 2 * n);
    return TRNI_V_F16(bytes);
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_lines_f16)(TRNI_LINES_PARAMS)
{
    enum { width = 2 * TRNI_V_LANES };
    (void)feed;
    for (int64_t p = 0; p < panels; p++)
        for (int r = 0; r < rows; r++) {
            const unsigned char *from = src + r * row_step + p * 2 * width;
            float *to = dst + (size_t)p * panel_step + slot[r] * width;
            TRNI_V_OP(storeu_ps)(to, TRNI_V_F16(from));
            TRNI_V_OP(storeu_ps)(to + TRNI_V_LANES, TRNI_V_F16(from + 2 * TRNI_V_LANES));
        }
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_stream_f16)(TRNI_STREAM_PARAMS)
{
    (void)feed;
    for (int r = 0; r < rows; r++, src += row_step) {
        const TRNI_V w = TRNI_V_OP(set1_ps)(x[r]);
        size_t i = 0;
        for (; i + TRNI_V_LANES <= n; i += TRNI_V_LANES) {
            _mm_prefetch((const char *)((uintptr_t)(src + 2 * i) + (uintptr_t)ahead), _MM_HINT_T0);
            TRNI_V_OP(storeu_ps)
            (sum + i, TRNI_V_OP(fmadd_ps)(w, TRNI_V_F16(src + 2 * i), TRNI_V_OP(loadu_ps)(sum + i)));
        }
        if (i < n) {
            float rest[TRNI_V_LANES] = { 0 };
            memcpy(rest, sum + i, sizeof(float) * (n - i));
            TRNI_V_OP(storeu_ps)
            (rest,
             TRNI_V_OP(fmadd_ps)(w, TRNI_V_NAME(trni_simd_f16_rest)(src + 2 * i, n - i), TRNI_V_OP(loadu_ps)(rest)));
            memcpy(sum + i, rest, sizeof(float) * (n - i));
        }
    }
}

#include "vector_end.h"
#endif
