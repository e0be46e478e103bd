/* simd/systolic_panels_neon.h - array/systolic_panels.h's kernels in NEON: up to 6 rows times 16 columns.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C bodies, which hold 2 rows in registers and so load three times as much for
 * each product. The text that AVX2 and AVX-512 share broadcasts each number of a; NEON multiplies by one lane of a
 * vector, which needs no broadcast, and hence has a text of its own. Included by array/systolic_panels.h only, and not
 * at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_PANELS_H) && !defined(TRNI_SIMD_SYSTOLIC_PANELS_NEON_H)
#define TRNI_SIMD_SYSTOLIC_PANELS_NEON_H

#include "neon.h"

TRNI_SIMD_BEGIN

enum { TRNI_NEON_ROWS = 6, TRNI_NEON_COLUMNS = 4 /* vectors */, TRNI_NEON_WIDTH = 16 };

/* One line of a: `rows` (1, 2, 4 or 6) numbers, in lanes. */
typedef struct trni_neon_rows {
    float32x4_t four;
    float32x2_t two;
    float one;
} trni_neon_rows;

TRNI_NEON_INLINE trni_neon_rows trni_neon_rows_at(const int rows, const float *a)
{
    trni_neon_rows v = { vdupq_n_f32(0), vdup_n_f32(0), 0 };
    if (rows >= 4) v.four = vld1q_f32(a);
    if (rows % 4 == 2) v.two = vld1_f32(a + rows - 2);
    if (rows == 1) v.one = *a;
    return v;
}

TRNI_NEON_INLINE float trni_neon_row(const int rows, const trni_neon_rows *v, int i)
{
    return rows == 1 ? v->one : rows >= 4 && i < 4 ? v->four[i & 3] : v->two[i & 1];
}

/* Four vectors of columns. The sums of six rows, one vector of b and the numbers of a nearly fill the registers. The
 * chains that are done wait in t, in the first-level cache. At least one chain: the compiler need not fear
 * uninitialised sums. A group of two or four products is summed before it joins its chain: the first product is exact.
 */
TRNI_NEON_INLINE void trni_simd_micro_neon(const int rows, const int group, TRNI_MICRO_PARAMS)
{
    enum { columns = TRNI_NEON_COLUMNS, width = TRNI_NEON_WIDTH };
    float32x4_t t[TRNI_NEON_ROWS][columns], s[TRNI_NEON_ROWS][columns];
    int c = 0;
    do {
        TRNI_EVERY(i, rows) TRNI_EVERY(j, columns) s[i][j] = vdupq_n_f32(0);
        for (int k = length[c]; k > 0; k--) {
            trni_neon_rows w[4];
            TRNI_EVERY(g, group) w[g] = trni_neon_rows_at(rows, a + g * rows);
            TRNI_EVERY(j, columns)
            {
                float32x4_t x[4];
                TRNI_EVERY(g, group) x[g] = vld1q_f32(b + g * width + 4 * j);
                TRNI_EVERY(i, rows)
                {
                    if (group == 1) {
                        s[i][j] = vfmaq_n_f32(s[i][j], x[0], trni_neon_row(rows, &w[0], i));
                    } else {
                        float32x4_t q = vmulq_n_f32(x[0], trni_neon_row(rows, &w[0], i));
                        for (int g = 1; g < group; g++) q = vfmaq_n_f32(q, x[g], trni_neon_row(rows, &w[g], i));
                        s[i][j] = vaddq_f32(s[i][j], q);
                    }
                }
            }
            a += group * rows;
            b += group * width;
            for (int g = 0; g < group; g++) {
                __builtin_prefetch((const void *)ahead, 0, 2);
                ahead += ahead_step;
            }
        }
        if (c > 0) TRNI_EVERY(i, rows) TRNI_EVERY(j, columns) s[i][j] = vaddq_f32(t[i][j], s[i][j]);
        if (c + 1 < chains) TRNI_EVERY(i, rows) TRNI_EVERY(j, columns) t[i][j] = s[i][j];
    } while (++c < chains);
    if (in)
        TRNI_EVERY(i, rows) TRNI_EVERY(j, columns) s[i][j] = vaddq_f32(vld1q_f32(in + i * in_step + 4 * j), s[i][j]);
    TRNI_EVERY(i, rows) TRNI_EVERY(j, columns) vst1q_f32(out + i * out_step + 4 * j, s[i][j]);
}

#define TRNI_NEON_MICRO(count, group)                                                                                  \
    TRNI_KERNEL static void trni_simd_micro_##count##x##group##_neon(TRNI_MICRO_PARAMS)                                \
    {                                                                                                                  \
        trni_simd_micro_neon(count, group, TRNI_MICRO_ARGS);                                                           \
    }
TRNI_NEON_MICRO(6, 1)
TRNI_NEON_MICRO(4, 1)
TRNI_NEON_MICRO(2, 1)
TRNI_NEON_MICRO(1, 1)
TRNI_NEON_MICRO(4, 2)
TRNI_NEON_MICRO(1, 2)
TRNI_NEON_MICRO(4, 4)
TRNI_NEON_MICRO(1, 4)
#undef TRNI_NEON_MICRO

TRNI_SIMD_END
#endif /* TRNI_SIMD_SYSTOLIC_PANELS_NEON_H */
