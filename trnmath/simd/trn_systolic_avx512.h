/* trn_systolic_avx512.h - the micro-kernels of trn_systolic.h in AVX-512 intrinsics: up to 12 rows times 32 columns.
 * SPDX-License-Identifier: MIT
 *
 * A guest (it is here because it is faster than the plain C body, 174 against 154 GF/s of 185 with gcc 12, four
 * chains, data in L1, measured): same bits, since every step is an explicit fused multiply-add or a lone addition.
 * Included by trn_systolic.h only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRN_SYSTOLIC_AVX512_H
#define TRN_SYSTOLIC_AVX512_H

#include "../trn_cpu.h"

#if TRNI_X86
#include <immintrin.h>

#define TRNI_AVX512 __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline
#if TRNI_CLANG
#define TRNI_ROWS _Pragma("clang loop unroll(full)") for (int i = 0; i < rows; i++)
#else
#define TRNI_ROWS _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
#endif

/* 24 accumulators, two columns of b and one broadcast: 27 of the 32 registers. The finished chains wait in t, in L1. */
TRNI_AVX512 void trni_guest_micro_avx512(const int rows, const float *a, const float *b, const int *length, int chains, const float *in,
                                         ptrdiff_t in_step, float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)
{
    __m512 t[12][2], x[12], y[12];
    int c = 0;
    do { /* at least one chain: the compiler need not fear uninitialised sums */
        TRNI_ROWS x[i] = y[i] = _mm512_setzero_ps();
        for (int k = length[c]; k > 0; k--) {
            const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
            TRNI_ROWS
            {
                const __m512 w = _mm512_set1_ps(a[i]);
                x[i] = _mm512_fmadd_ps(w, b0, x[i]);
                y[i] = _mm512_fmadd_ps(w, b1, y[i]);
            }
            a += rows;
            b += 32;
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
            ahead += ahead_step;
        }
        if (c > 0)
            TRNI_ROWS
            {
                x[i] = _mm512_add_ps(t[i][0], x[i]);
                y[i] = _mm512_add_ps(t[i][1], y[i]);
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
            x[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step), x[i]);
            y[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step + 16), y[i]);
        }
    TRNI_ROWS
    {
        _mm512_storeu_ps(out + i * out_step, x[i]);
        _mm512_storeu_ps(out + i * out_step + 16, y[i]);
    }
}

#define TRNI_GUEST(rows)                                                                                              \
    TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_guest_micro_##rows##_avx512(                                      \
        const float *a, const float *b, const int *length, int chains, const float *in, ptrdiff_t in_step, float *out, \
        ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)                                                                                           \
    {                                                                                                                 \
        trni_guest_micro_avx512(rows, a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step);                              \
    }
TRNI_GUEST(12)
TRNI_GUEST(8)
TRNI_GUEST(4)
TRNI_GUEST(2)
TRNI_GUEST(1)
#undef TRNI_GUEST

/* The plain forms of these intrinsics make g++ 12 warn of an uninitialised operand (its bug 105593); with a mask of
 * ones the instruction is the same. */
#define TRNI_ALL16 ((__mmask16)0xffff)
#define TRNI_ALL8 ((__mmask8)0xff)

/* 16 lines of 16 floats, turned: pairs, quads, then 128-bit blocks of four registers. */
TRNI_AVX512 void trni_guest_turn_avx512(__m512 v[16])
{
    __m512 u[16];
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_maskz_unpacklo_ps(TRNI_ALL16, v[i], v[i + 1]);
        u[i + 1] = _mm512_maskz_unpackhi_ps(TRNI_ALL16, v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            const __m512d p = _mm512_castps_pd(u[i + h]), q = _mm512_castps_pd(u[i + 2 + h]);
            v[i + 2 * h] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(TRNI_ALL8, p, q));
            v[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(TRNI_ALL8, p, q));
        }
    for (int i = 0; i < 4; i++) {
        u[i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[i], v[4 + i], 0x88);
        u[4 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[i], v[4 + i], 0xdd);
        u[8 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[8 + i], v[12 + i], 0x88);
        u[12 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, v[8 + i], v[12 + i], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        v[i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, u[i], u[8 + i], 0x88);
        v[8 + i] = _mm512_maskz_shuffle_f32x4(TRNI_ALL16, u[i], u[8 + i], 0xdd);
    }
}

/* As trni_transpose: up to 16 lines into slots of `width` floats; lanes beyond `lanes` are not written. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_guest_transpose_avx512(float *dst, size_t width, const uint8_t *slot, const float *lines,
                                                                       int64_t step, int lanes, int rows)
{
    const __mmask16 lane_mask = (__mmask16)((1u << lanes) - 1);
    for (int k = 0; k < rows; k += 16) {
        const int left = rows - k < 16 ? rows - k : 16;
        const __mmask16 row_mask = (__mmask16)((1u << left) - 1);
        __m512 v[16];
        for (int i = 0; i < 16; i++) v[i] = i < lanes ? _mm512_maskz_loadu_ps(row_mask, lines + i * step + k) : _mm512_setzero_ps();
        trni_guest_turn_avx512(v);
        for (int i = 0; i < left; i++) _mm512_mask_storeu_ps(dst + slot[k + i] * width, lane_mask, v[i]);
    }
}

/* ---- F16 lines: the conversion instruction needs no branches for subnormals (plain C takes 13 steps) ---- */

TRNI_AVX512 __m512 trni_guest_f16_avx512(const unsigned char *src)
{
    return _mm512_maskz_cvtph_ps(TRNI_ALL16, _mm256_loadu_si256((const __m256i *)(const void *)(src)));
}

/* The last, incomplete vector of a line goes through memory. */
TRNI_AVX512 __m512 trni_guest_f16_tail_avx512(const unsigned char *src, size_t n)
{
    unsigned char bytes[2 * 16] = { 0 };
    memcpy(bytes, src, 2 * n);
    return trni_guest_f16_avx512(bytes);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_guest_lines_f16_avx512(float *dst, size_t panel_step, const uint8_t *slot, const unsigned char *src,
                                                                    int64_t row_step, int rows, int64_t panels)
{
    for (int64_t p = 0; p < panels; p++)
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < 32; i += 16)
                _mm512_storeu_ps(dst + (size_t)p * panel_step + slot[r] * 32 + i, trni_guest_f16_avx512(src + r * row_step + p * 64 + 2 * i));
}

TRNI_AVX512 __m512 trni_guest_stream_step_avx512(__m512 s, __m512 b, float x) { return _mm512_fmadd_ps(_mm512_set1_ps(x), b, s); }

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_guest_stream_f16_avx512(float *sum, const float *x, const unsigned char *src, int64_t row_step, int rows,
                                                                     int64_t ahead, size_t n)
{
    for (int r = 0; r < rows; r++, src += row_step) {
        size_t i = 0;
        for (; i + 16 <= n; i += 16) {
            _mm_prefetch((const char *)((uintptr_t)(src + 2 * i) + (uintptr_t)ahead), _MM_HINT_T0);
            _mm512_storeu_ps(sum + i, trni_guest_stream_step_avx512(_mm512_loadu_ps(sum + i), trni_guest_f16_avx512(src + 2 * i), x[r]));
        }
        if (i < n) {
            float rest[16] = { 0 };
            memcpy(rest, sum + i, sizeof(float) * (n - i));
            _mm512_storeu_ps(rest, trni_guest_stream_step_avx512(_mm512_loadu_ps(rest), trni_guest_f16_tail_avx512(src + 2 * i, n - i), x[r]));
            memcpy(sum + i, rest, sizeof(float) * (n - i));
        }
    }
}

#undef TRNI_ALL16
#undef TRNI_ALL8
#undef TRNI_ROWS
#undef TRNI_AVX512
#endif
#endif /* TRN_SYSTOLIC_AVX512_H */
