/* simd/matmul_dots_avx2.h - array/matmul_dots.h's kernels: four chains of a column in a vector.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels (they are here because they are four times as fast as the plain C body, 23 against 5.5 GF/s with gcc 12,
 * BF16, data in L2, measured): same bits, every step is a fused multiply-add. Vectors of 128 bits: what bounds them is
 * two loads a cycle, and a wider one would take two loads to fill. Included by array/matmul_dots.h only, and not at all
 * under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_MATMUL_DOTS_H) && !defined(TRNI_SIMD_MATMUL_DOTS_AVX2_H)
#define TRNI_SIMD_MATMUL_DOTS_AVX2_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

/* Four numbers of a line. (VCVTPH2PS reads subnormals exactly whatever MXCSR says.) */
#define TRNI_DOT_F32(at) _mm_loadu_ps((const float *)(const void *)(at))
#define TRNI_DOT_BF16(at)                                                                                              \
    _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(at))), 16))

#define TRNI_DOT_F16(at) _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)(at)))

/* Memory is asked for a line of one of the next columns; callers take each in its turn. (F16 from memory: 1.24 times
 * the speed; F32 gains nothing, and what is decoded first is in the cache already.) */
TRNI_INLINE void trni_simd_dots_ahead(const unsigned char *line, int64_t step, int column)
{
    __builtin_prefetch((const void *)((uintptr_t)line + (uintptr_t)((TRNI_DOTS + column) * step)), 0, 2);
}

#define TRNI_DOT_KERNEL(name, count, format, bytes)                                                                    \
    TRNI_KERNEL TRNI_TARGET_AVX2 static void name(TRNI_DOTS_PARAMS)                                                    \
    {                                                                                                                  \
        __m128 t[count];                                                                                               \
        int k = 0;                                                                                                     \
        TRNI_UNROLL for (int i = 0; i < count; i++) t[i] = _mm_setzero_ps();                                           \
        TRNI_ROLLED for (; k + TRNI_DOT_CHAINS <= depth; k += TRNI_DOT_CHAINS)                                         \
        {                                                                                                              \
            const __m128 v = _mm_loadu_ps(x + k);                                                                      \
            if (count > 1 && bytes == 2)                                                                               \
                trni_simd_dots_ahead(line + k * bytes, step, k / TRNI_DOT_CHAINS % TRNI_DOTS);                         \
            TRNI_UNROLL for (int i = 0; i < count; i++) t[i] =                                                         \
                _mm_fmadd_ps(v, TRNI_DOT_##format(line + i * step + k * bytes), t[i]);                                 \
        }                                                                                                              \
        TRNI_UNROLL for (int i = 0; i < count; i++) _mm_storeu_ps(s + i * TRNI_DOT_CHAINS, t[i]);                      \
        if (k < depth) trni_simd_dots_rest(count, TRN_##format, s, x + k, line + k * bytes, step, depth - k);          \
    }

/* The last few rows of a tile. */
TRNI_COLD TRNI_TARGET_AVX2 void trni_simd_dots_rest(int count, trn_format format, TRNI_DOTS_PARAMS)
{
    const size_t bytes = format == TRN_F32 ? 4 : 2;
    for (int i = 0; i < count; i++, s += TRNI_DOT_CHAINS, line += step)
        for (int c = 0; c < depth; c++) {
            uint32_t u = 0;
            memcpy(&u, line + (size_t)c * bytes, bytes);
            if (format == TRN_F16) u = trni_bits_from_f16((uint16_t)u);
            if (format == TRN_BF16) u <<= 16;
            s[c % TRNI_DOT_CHAINS] = __builtin_fmaf(x[c], trni_float(u), s[c % TRNI_DOT_CHAINS]);
        }
}

TRNI_DOT_KERNEL(trni_simd_dots_8_f32_avx2, 8, F32, 4)
TRNI_DOT_KERNEL(trni_simd_dots_1_f32_avx2, 1, F32, 4)
TRNI_DOT_KERNEL(trni_simd_dots_8_bf16_avx2, 8, BF16, 2)
TRNI_DOT_KERNEL(trni_simd_dots_1_bf16_avx2, 1, BF16, 2)
TRNI_DOT_KERNEL(trni_simd_dots_8_f16_avx2, 8, F16, 2)
TRNI_DOT_KERNEL(trni_simd_dots_1_f16_avx2, 1, F16, 2)
#undef TRNI_DOT_KERNEL
#undef TRNI_DOT_F32
#undef TRNI_DOT_BF16
#undef TRNI_DOT_F16

TRNI_SIMD_END
#endif /* TRNI_SIMD_MATMUL_DOTS_AVX2_H */
