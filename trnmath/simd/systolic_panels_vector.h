/* simd/systolic_panels_vector.h - the kernels that AVX2 and AVX-512 share, written once; read once per instruction set.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * Included by simd/systolic_panels_avx2.h and simd/systolic_panels_avx512.h after trn_vector_<isa>.h, which says what
 * differs, and after
 *     TRNI_V_ROWS         rows of the tallest micro-kernel
 * All of it is undefined again at the end of this file. On its own it is empty.
 *
 * Same bits as the plain C bodies: every step is an explicit fused multiply-add or a lone addition.
 */
#include "../base/cpu.h"

#if defined(TRNI_V_ROWS)

TRNI_SIMD_BEGIN

/* Two vectors of columns: the sums of TRNI_V_ROWS rows, two of b and one broadcast nearly fill the registers. The
 * chains that are done wait in t, in the first-level cache. At least one chain: the compiler need not fear
 * uninitialised sums. A group of two or four products is summed before it joins its chain: the first product is exact.
 *  */
TRNI_V_INLINE void TRNI_V_NAME(trni_simd_micro)(const int rows, const int group, TRNI_MICRO_PARAMS)
{
    TRNI_V t[TRNI_V_ROWS][2], x[TRNI_V_ROWS], y[TRNI_V_ROWS];
    int c = 0;
    do {
        TRNI_EVERY(i, rows) x[i] = y[i] = TRNI_V_OP(setzero_ps)();
        for (int k = length[c]; k > 0; k--) {
            TRNI_V b0[4], b1[4];
            for (int g = 0; g < group; g++) {
                b0[g] = TRNI_V_OP(loadu_ps)(b + g * 2 * TRNI_V_LANES);
                b1[g] = TRNI_V_OP(loadu_ps)(b + g * 2 * TRNI_V_LANES + TRNI_V_LANES);
            }
            TRNI_EVERY(i, rows)
            {
                const TRNI_V w = TRNI_V_OP(set1_ps)(a[i]);
                if (group == 1) {
                    x[i] = TRNI_V_OP(fmadd_ps)(w, b0[0], x[i]);
                    y[i] = TRNI_V_OP(fmadd_ps)(w, b1[0], y[i]);
                } else {
                    TRNI_V p = TRNI_V_OP(mul_ps)(w, b0[0]), q = TRNI_V_OP(mul_ps)(w, b1[0]);
                    for (int g = 1; g < group; g++) {
                        const TRNI_V v = TRNI_V_OP(set1_ps)(a[g * rows + i]);
                        p = TRNI_V_OP(fmadd_ps)(v, b0[g], p);
                        q = TRNI_V_OP(fmadd_ps)(v, b1[g], q);
                    }
                    x[i] = TRNI_V_OP(add_ps)(x[i], p);
                    y[i] = TRNI_V_OP(add_ps)(y[i], q);
                }
            }
            a += group * rows;
            b += group * 2 * TRNI_V_LANES;
            for (int g = 0; g < group; g++) {
                _mm_prefetch((const char *)ahead, _MM_HINT_T1);
                ahead += ahead_step;
            }
        }
        if (c > 0) TRNI_EVERY(i, rows)
            {
                x[i] = TRNI_V_OP(add_ps)(t[i][0], x[i]);
                y[i] = TRNI_V_OP(add_ps)(t[i][1], y[i]);
            }
        if (c + 1 < chains) TRNI_EVERY(i, rows)
            {
                t[i][0] = x[i];
                t[i][1] = y[i];
            }
    } while (++c < chains);
    if (in) TRNI_EVERY(i, rows)
        {
            x[i] = TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + i * in_step), x[i]);
            y[i] = TRNI_V_OP(add_ps)(TRNI_V_OP(loadu_ps)(in + i * in_step + TRNI_V_LANES), y[i]);
        }
    TRNI_EVERY(i, rows)
    {
        TRNI_V_OP(storeu_ps)(out + i * out_step, x[i]);
        TRNI_V_OP(storeu_ps)(out + i * out_step + TRNI_V_LANES, y[i]);
    }
}

#define TRNI_V_MICRO(count, group)                                                                                     \
    TRNI_V_KERNEL void TRNI_V_NAME(trni_simd_micro_##count##x##group)(TRNI_MICRO_PARAMS)                               \
    {                                                                                                                  \
        TRNI_V_NAME(trni_simd_micro)(count, group, TRNI_MICRO_ARGS);                                                   \
    }
#define TRNI_V_MICROS(group) TRNI_V_MICRO(4, group) TRNI_V_MICRO(1, group)
TRNI_V_MICROS(1)
TRNI_V_MICROS(2)
TRNI_V_MICROS(4)
TRNI_V_MICRO(2, 1)
#if TRNI_V_ROWS == 12
TRNI_V_MICRO(12, 1)
TRNI_V_MICRO(8, 1)
TRNI_V_MICRO(12, 2)
TRNI_V_MICRO(8, 4)
#else
TRNI_V_MICRO(6, 1)
#endif
#undef TRNI_V_MICROS
#undef TRNI_V_MICRO

TRNI_SIMD_END
#include "vector_end.h"
#endif
