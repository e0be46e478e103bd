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
                                     ptrdiff_t in_step, float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)
{
    __m256 t[6][2], x[6], y[6];
    int c = 0;
    do { /* at least one chain: the compiler need not fear uninitialised sums */
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
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
            ahead += ahead_step;
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
    } while (++c < chains);
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
        ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)                                                                                           \
    {                                                                                                                 \
        trni_guest_micro_avx2(rows, a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step);                                \
    }
TRNI_GUEST(6)
TRNI_GUEST(4)
TRNI_GUEST(2)
TRNI_GUEST(1)
#undef TRNI_GUEST

/* ---- F16 lines: the conversion instruction needs no branches for subnormals (plain C takes 13 steps) ---- */

TRNI_AVX2 __m256 trni_guest_f16_avx2(const unsigned char *src)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src)));
}

/* The last, incomplete vector of a line goes through memory. */
TRNI_AVX2 __m256 trni_guest_f16_tail_avx2(const unsigned char *src, size_t n)
{
    unsigned char bytes[2 * 8] = { 0 };
    memcpy(bytes, src, 2 * n);
    return trni_guest_f16_avx2(bytes);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_guest_lines_f16_avx2(float *dst, size_t panel_step, const uint8_t *slot, const unsigned char *src,
                                                                    int64_t row_step, int rows, int64_t panels)
{
    for (int64_t p = 0; p < panels; p++)
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < 16; i += 8)
                _mm256_storeu_ps(dst + (size_t)p * panel_step + slot[r] * 16 + i, trni_guest_f16_avx2(src + r * row_step + p * 32 + 2 * i));
}

TRNI_AVX2 __m256 trni_guest_stream_step_avx2(__m256 s, __m256 b, float x) { return _mm256_fmadd_ps(_mm256_set1_ps(x), b, s); }

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_guest_stream_f16_avx2(float *sum, const float *x, const unsigned char *src, int64_t row_step, int rows,
                                                                     int64_t ahead, size_t n)
{
    for (int r = 0; r < rows; r++, src += row_step) {
        size_t i = 0;
        for (; i + 8 <= n; i += 8) {
            _mm_prefetch((const char *)((uintptr_t)(src + 2 * i) + (uintptr_t)ahead), _MM_HINT_T0);
            _mm256_storeu_ps(sum + i, trni_guest_stream_step_avx2(_mm256_loadu_ps(sum + i), trni_guest_f16_avx2(src + 2 * i), x[r]));
        }
        if (i < n) {
            float rest[8] = { 0 };
            memcpy(rest, sum + i, sizeof(float) * (n - i));
            _mm256_storeu_ps(rest, trni_guest_stream_step_avx2(_mm256_loadu_ps(rest), trni_guest_f16_tail_avx2(src + 2 * i, n - i), x[r]));
            memcpy(sum + i, rest, sizeof(float) * (n - i));
        }
    }
}

#undef TRNI_ROWS
#undef TRNI_AVX2
#endif
#endif /* TRN_SYSTOLIC_AVX2_H */
