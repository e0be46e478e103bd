/* trn_systolic_vector.h - the guests that AVX2 and AVX-512 share, written once; read once per instruction set.
 * SPDX-License-Identifier: MIT
 *
 * Included by trn_systolic_avx2.h and trn_systolic_avx512.h, which define what differs:
 *     TRNI_V              the vector of floats; TRNI_V_LANES of them
 *     TRNI_V_TARGET       the target attribute
 *     TRNI_V_ROWS         rows of the tallest micro-kernel
 *     TRNI_V_NAME(x)      a name of this instruction set;  TRNI_V_OP(x)  its intrinsic
 *     TRNI_V_F16(src)     TRNI_V_LANES F16 numbers at src, as floats
 * and undefined again at the end of this file. On its own it is empty.
 *
 * Same bits as the plain C bodies: every step is an explicit fused multiply-add or a lone addition.
 */
#include "../trn_cpu.h"

#if defined(TRNI_V)

#define TRNI_V_INLINE __attribute__((unused, always_inline)) TRNI_V_TARGET static inline
#define TRNI_V_KERNEL TRNI_KERNEL TRNI_V_TARGET static
#if TRNI_CLANG
#define TRNI_V_EACH_ROW _Pragma("clang loop unroll(full)") for (int i = 0; i < rows; i++)
#else
#define TRNI_V_EACH_ROW _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
#endif

/* Two vectors of columns: the sums of TRNI_V_ROWS rows, two of b and one broadcast nearly fill the registers. The chains
 * that are done wait in t, in the first-level cache. At least one chain: the compiler need not fear uninitialised sums. */
TRNI_V_INLINE void TRNI_V_NAME(trni_guest_micro)(const int rows, const float *a, const float *b, const int *length, int chains, const float *in,
                                                 ptrdiff_t in_step, float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)
{
    TRNI_V t[TRNI_V_ROWS][2], x[TRNI_V_ROWS], y[TRNI_V_ROWS];
    int c = 0;
    do {
        TRNI_V_EACH_ROW x[i] = y[i] = TRNI_V_OP(setzero_ps)();
        for (int k = length[c]; k > 0; k--) {
            const TRNI_V b0 = TRNI_V_OP(loadu_ps)(b), b1 = TRNI_V_OP(loadu_ps)(b + TRNI_V_LANES);
            TRNI_V_EACH_ROW
            {
                const TRNI_V w = TRNI_V_OP(set1_ps)(a[i]);
                x[i] = TRNI_V_OP(fmadd_ps)(w, b0, x[i]);
                y[i] = TRNI_V_OP(fmadd_ps)(w, b1, y[i]);
            }
            a += rows;
            b += 2 * TRNI_V_LANES;
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
            ahead += ahead_step;
        }
        if (c > 0)
            TRNI_V_EACH_ROW
            {
                x[i] = TRNI_V_OP(add_ps)(t[i][0], x[i]);
                y[i] = TRNI_V_OP(add_ps)(t[i][1], y[i]);
            }
        if (c + 1 < chains)
            TRNI_V_EACH_ROW
            {
                t[i][0] = x[i];
                t[i][1] = y[i];
            }
    } while (++c < chains);
    if (in)
        TRNI_V_EACH_ROW
        {
            x[i] = TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + i * in_step), x[i]);
            y[i] = TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + i * in_step + TRNI_V_LANES), y[i]);
        }
    TRNI_V_EACH_ROW
    {
        TRNI_V_OP(storeu_ps)(out + i * out_step, x[i]);
        TRNI_V_OP(storeu_ps)(out + i * out_step + TRNI_V_LANES, y[i]);
    }
}

#define TRNI_V_MICRO(count)                                                                                                   \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_guest_micro_##count)(const float *a, const float *b, const int *length, int chains,   \
                                                             const float *in, ptrdiff_t in_step, float *out,                  \
                                                             ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)       \
    {                                                                                                                         \
        TRNI_V_NAME(trni_guest_micro)(count, a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step);            \
    }
#if TRNI_V_ROWS == 12
TRNI_V_MICRO(12)
TRNI_V_MICRO(8)
#else
TRNI_V_MICRO(6)
#endif
TRNI_V_MICRO(4)
TRNI_V_MICRO(2)
TRNI_V_MICRO(1)
#undef TRNI_V_MICRO

/* ---- F16 lines: the conversion instruction needs no care for subnormals (plain C takes a dozen steps) ---- */

/* The last, incomplete vector of a line goes through memory. */
TRNI_V_INLINE TRNI_V TRNI_V_NAME(trni_guest_f16_rest)(const unsigned char *src, size_t n)
{
    unsigned char bytes[2 * TRNI_V_LANES] = { 0 };
    memcpy(bytes, src, 2 * n);
    return TRNI_V_F16(bytes);
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_guest_lines_f16)(float *dst, size_t panel_step, const uint8_t *slot, const unsigned char *src, int64_t row_step,
                                                     int rows, int64_t panels)
{
    enum { width = 2 * TRNI_V_LANES };
    for (int64_t p = 0; p < panels; p++)
        for (int r = 0; r < rows; r++) {
            const unsigned char *from = src + r * row_step + p * 2 * width;
            float *to = dst + (size_t)p * panel_step + slot[r] * width;
            TRNI_V_OP(storeu_ps)(to, TRNI_V_F16(from));
            TRNI_V_OP(storeu_ps)(to + TRNI_V_LANES, TRNI_V_F16(from + 2 * TRNI_V_LANES));
        }
}

TRNI_V_KERNEL void TRNI_V_NAME(trni_guest_stream_f16)(float *sum, const float *x, const unsigned char *src, int64_t row_step, int rows, int64_t ahead,
                                                      size_t n)
{
    for (int r = 0; r < rows; r++, src += row_step) {
        const TRNI_V w = TRNI_V_OP(set1_ps)(x[r]);
        size_t i = 0;
        for (; i + TRNI_V_LANES <= n; i += TRNI_V_LANES) {
            _mm_prefetch((const char *)((uintptr_t)(src + 2 * i) + (uintptr_t)ahead), _MM_HINT_T0);
            TRNI_V_OP(storeu_ps)(sum + i, TRNI_V_OP(fmadd_ps)(w, TRNI_V_F16(src + 2 * i), TRNI_V_OP(loadu_ps)(sum + i)));
        }
        if (i < n) {
            float rest[TRNI_V_LANES] = { 0 };
            memcpy(rest, sum + i, sizeof(float) * (n - i));
            TRNI_V_OP(storeu_ps)(rest, TRNI_V_OP(fmadd_ps)(w, TRNI_V_NAME(trni_guest_f16_rest)(src + 2 * i, n - i), TRNI_V_OP(loadu_ps)(rest)));
            memcpy(sum + i, rest, sizeof(float) * (n - i));
        }
    }
}

#undef TRNI_V_EACH_ROW
#undef TRNI_V_KERNEL
#undef TRNI_V_INLINE
#undef TRNI_V_F16
#undef TRNI_V_OP
#undef TRNI_V_NAME
#undef TRNI_V_ROWS
#undef TRNI_V_TARGET
#undef TRNI_V_LANES
#undef TRNI_V
#endif
