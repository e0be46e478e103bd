/* simd/vector_rows_avx512.h - sums of 32 rows for engine/vector_rows.h in AVX-512: 16 x 16 turn in registers.
 * Behind . SPDX-License-Identifier: MIT
 *
 * SIMD kernels: same bits as the plain C bodies (1.6 to 2.4 times the speed). Included by engine/vector_rows.h only,
 * and
 * not at
 * all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ENGINE_VECTOR_ROWS_H) && !defined(TRNI_SIMD_VECTOR_ROWS_AVX512_H)
#define TRNI_SIMD_VECTOR_ROWS_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#define TRNI_ROWS512 __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline

/* v[i], element j  ->  v[j], element i. Quarters of four rows turn within themselves first, then the quarters move. */
TRNI_ROWS512 void trni_rows_square512(__m512 v[16])
{
    __m512 t[16];
    TRNI_EVERY(g, 4)
    {
        const __m512 a = v[4 * g], b = v[4 * g + 1], c = v[4 * g + 2], d = v[4 * g + 3];
        const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
        const __m512d ba = _mm512_castps_pd(_mm512_unpackhi_ps(a, b)), dc = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
        t[4 * g] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
        t[4 * g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
        t[4 * g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ba, dc));
        t[4 * g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ba, dc));
    }
    TRNI_EVERY(j, 4)
    {
        const __m512 ab = _mm512_shuffle_f32x4(t[j], t[j + 4], 0x44), ba = _mm512_shuffle_f32x4(t[j], t[j + 4], 0xee);
        const __m512 cd = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0x44),
                     dc = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0xee);
        v[j] = _mm512_shuffle_f32x4(ab, cd, 0x88);
        v[j + 4] = _mm512_shuffle_f32x4(ab, cd, 0xdd);
        v[j + 8] = _mm512_shuffle_f32x4(ba, dc, 0x88);
        v[j + 12] = _mm512_shuffle_f32x4(ba, dc, 0xdd);
    }
}

TRNI_ROWS512 __m512 trni_rows_step512(__m512 sum, __m512 x, int op)
{
    return op == 0 ? _mm512_add_ps(sum, x) : op == 1 ? _mm512_sub_ps(sum, x) : _mm512_mul_ps(sum, x);
}

/* 16 words of 16 rows. */
TRNI_ROWS512 __m512 trni_rows_sum512(__m512 sum, const void *const *line, size_t at, bool half, int op)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    __m512 v[16];
    TRNI_EVERY(r, 16)
    {
        v[r] = _mm512_loadu_ps((const char *)line[r] + at);
        _mm_prefetch((const char *)line[r] + at + TRNI_ROWS_AHEAD, _MM_HINT_T0);
    }
    trni_rows_square512(v);
    TRNI_EVERY(j, 16)
    {
        const __m512i word = _mm512_castps_si512(v[j]);
        if (half) sum = trni_rows_step512(sum, _mm512_castsi512_ps(_mm512_slli_epi32(word, 16)), op);
        sum = trni_rows_step512(sum, half ? _mm512_castsi512_ps(_mm512_and_si512(word, upper)) : v[j], op);
    }
    return sum;
}

/* Whole squares; returns how many elements these are. */
#define TRNI_ROWS512_KERNEL(name, half, op)                                                                            \
    TRNI_KERNEL TRNI_TARGET_AVX512 static size_t trni_simd_rows_##name(float *sum, const void *const *line, size_t n)  \
    {                                                                                                                  \
        const size_t bytes = n * (half ? 2 : 4) / 64 * 64;                                                             \
        __m512 a = _mm512_loadu_ps(sum), b = _mm512_loadu_ps(sum + 16);                                                \
        for (size_t i = 0; i < bytes; i += 64) {                                                                       \
            a = trni_rows_sum512(a, line, i, half, op);                                                                \
            b = trni_rows_sum512(b, line + 16, i, half, op);                                                           \
        }                                                                                                              \
        _mm512_storeu_ps(sum, a);                                                                                      \
        _mm512_storeu_ps(sum + 16, b);                                                                                 \
        return bytes / (half ? 2 : 4);                                                                                 \
    }
TRNI_ROWS512_KERNEL(add, false, 0)
TRNI_ROWS512_KERNEL(subtract, false, 1)
TRNI_ROWS512_KERNEL(multiply, false, 2)
TRNI_ROWS512_KERNEL(add_half, true, 0)
TRNI_ROWS512_KERNEL(subtract_half, true, 1)
TRNI_ROWS512_KERNEL(multiply_half, true, 2)
#undef TRNI_ROWS512_KERNEL

#undef TRNI_ROWS512
TRNI_SIMD_END
#endif /* TRNI_SIMD_VECTOR_ROWS_AVX512_H */
