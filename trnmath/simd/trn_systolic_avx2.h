/* trn_systolic_avx2.h - the micro-kernels of trn_systolic.h in AVX2 and FMA intrinsics: up to 6 rows times 16 columns.
 * SPDX-License-Identifier: MIT
 *
 * A guest: same bits as the plain C body, since every step is an explicit fused multiply-add or a lone addition.
 * Included by trn_systolic.h only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_SYSTOLIC_AVX2_H
#define TRN_SYSTOLIC_AVX2_H

#include "../trn_cpu.h"

#if TRNI_X86
#include <immintrin.h>

#define TRNI_AVX2 __attribute__((unused, always_inline)) TRNI_TARGET_AVX2 static inline
#if TRNI_CLANG
#define TRNI_ROWS _Pragma("clang loop unroll(full)") for (int i = 0; i < rows; i++)
#else
#define TRNI_ROWS _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
#endif

/* 12 accumulators, two columns of b and one broadcast: 15 of the 16 registers. */
TRNI_AVX2 void trni_guest_micro_avx2(const int rows, const float *a, const float *b, const int *length, int chains, const float *in,
                                     ptrdiff_t in_step, float *out, ptrdiff_t out_step)
{
    __m256 t[6][2], x[6], y[6];
    for (int c = 0; c < chains; c++) {
        TRNI_ROWS x[i] = y[i] = _mm256_setzero_ps();
        for (int k = length[c]; k > 0; k--) {
            const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
            TRNI_ROWS
            {
                const __m256 w = _mm256_broadcast_ss(a + i);
                x[i] = _mm256_fmadd_ps(w, b0, x[i]);
                y[i] = _mm256_fmadd_ps(w, b1, y[i]);
            }
            a += rows;
            b += 16;
        }
        if (c > 0)
            TRNI_ROWS
            {
                x[i] = _mm256_add_ps(t[i][0], x[i]);
                y[i] = _mm256_add_ps(t[i][1], y[i]);
            }
        if (c + 1 < chains)
            TRNI_ROWS
            {
                t[i][0] = x[i];
                t[i][1] = y[i];
            }
    }
    if (in)
        TRNI_ROWS
        {
            x[i] = _mm256_add_ps(_mm256_loadu_ps(in + i * in_step), x[i]);
            y[i] = _mm256_add_ps(_mm256_loadu_ps(in + i * in_step + 8), y[i]);
        }
    TRNI_ROWS
    {
        _mm256_storeu_ps(out + i * out_step, x[i]);
        _mm256_storeu_ps(out + i * out_step + 8, y[i]);
    }
}

#define TRNI_GUEST(rows)                                                                                              \
    TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_guest_micro_##rows##_avx2(                                          \
        const float *a, const float *b, const int *length, int chains, const float *in, ptrdiff_t in_step, float *out, \
        ptrdiff_t out_step)                                                                                           \
    {                                                                                                                 \
        trni_guest_micro_avx2(rows, a, b, length, chains, in, in_step, out, out_step);                                \
    }
TRNI_GUEST(6)
TRNI_GUEST(4)
TRNI_GUEST(2)
TRNI_GUEST(1)
#undef TRNI_GUEST

#undef TRNI_ROWS
#undef TRNI_AVX2
#endif
#endif /* TRN_SYSTOLIC_AVX2_H */
