/* simd/matmul_int8_avx512.h - array/matmul_int8.h's kernels: pairs in AVX2, quads in AVX-512 with VNNI.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: whole numbers, so the order of sums does not matter. Included by array/matmul_int8.h only, and not at
 * all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_MATMUL_INT8_H) && !defined(TRNI_SIMD_MATMUL_INT8_AVX512_H)
#define TRNI_SIMD_MATMUL_INT8_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#if TRNI_CLANG
#define TRNI_TARGET_VNNI                                                                                               \
    __attribute__((target("avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) TRNI_WIDE
#define TRNI_INT8_EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define TRNI_TARGET_VNNI                                                                                               \
    __attribute__((target("avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#define TRNI_INT8_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

/* Pairs: VPMADDWD and an addition; neither can overflow before the sum itself does. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX2 static inline void trni_simd_int8_avx2(const int rows,
                                                                                               TRNI_INT8_PARAMS)
{
    enum { most = 3, vectors = TRNI_INT8_WIDTH / 8 };
    __m256i s[most][vectors];
    TRNI_INT8_EACH(i, rows)
    TRNI_INT8_EACH(v, vectors) s[i][v] = _mm256_set1_epi32(start[i]);
    for (int g = 0; g < groups; g++, a += rows, b += TRNI_INT8_WIDTH) TRNI_INT8_EACH(v, vectors)
        {
            const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(b + 8 * v));
            TRNI_INT8_EACH(i, rows)
            s[i][v] = _mm256_add_epi32(s[i][v], _mm256_madd_epi16(w, _mm256_set1_epi32((int)a[i])));
        }
    TRNI_INT8_EACH(i, rows)
    TRNI_INT8_EACH(v, vectors)
    {
        const int at = i * TRNI_INT8_WIDTH + 8 * v;
        if (in) s[i][v] = _mm256_add_epi32(s[i][v], _mm256_loadu_si256((const __m256i *)(const void *)(in + at)));
        _mm256_storeu_si256((__m256i *)(void *)(out + at), s[i][v]);
    }
}

/* Quads: VPDPBUSD, b's numbers unsigned. */
__attribute__((unused, always_inline)) TRNI_TARGET_VNNI static inline void trni_simd_int8_vnni(const int rows,
                                                                                               TRNI_INT8_PARAMS)
{
    enum { most = TRNI_INT8_STRIP, vectors = TRNI_INT8_WIDTH / 16 };
    __m512i s[most][vectors];
    TRNI_INT8_EACH(i, rows)
    TRNI_INT8_EACH(v, vectors) s[i][v] = _mm512_set1_epi32(start[i]);
    for (int g = 0; g < groups; g++, a += rows, b += TRNI_INT8_WIDTH) {
        const __m512i w0 = _mm512_loadu_si512(b), w1 = _mm512_loadu_si512(b + 16);
        TRNI_INT8_EACH(i, rows)
        {
            const __m512i x = _mm512_set1_epi32((int)a[i]);
            s[i][0] = _mm512_dpbusd_epi32(s[i][0], w0, x);
            s[i][1] = _mm512_dpbusd_epi32(s[i][1], w1, x);
        }
    }
    TRNI_INT8_EACH(i, rows)
    TRNI_INT8_EACH(v, vectors)
    {
        const int at = i * TRNI_INT8_WIDTH + 16 * v;
        if (in) s[i][v] = _mm512_add_epi32(s[i][v], _mm512_loadu_si512(in + at));
        _mm512_storeu_si512(out + at, s[i][v]);
    }
}

#define TRNI_INT8_KERNEL(rows, isa, target)                                                                            \
    TRNI_KERNEL target static void trni_simd_int8_##rows##_##isa(TRNI_INT8_PARAMS)                                     \
    {                                                                                                                  \
        trni_simd_int8_##isa(rows, TRNI_INT8_ARGS);                                                                    \
    }
TRNI_INT8_KERNEL(3, avx2, TRNI_TARGET_AVX2)
TRNI_INT8_KERNEL(1, avx2, TRNI_TARGET_AVX2)
TRNI_INT8_KERNEL(12, vnni, TRNI_TARGET_VNNI)
TRNI_INT8_KERNEL(4, vnni, TRNI_TARGET_VNNI)
TRNI_INT8_KERNEL(1, vnni, TRNI_TARGET_VNNI)
#undef TRNI_INT8_KERNEL
#undef TRNI_INT8_EACH

TRNI_SIMD_END
#endif /* TRNI_SIMD_MATMUL_INT8_AVX512_H */
