/* simd/systolic_loader_avx512.h - lines of F32, TF32, BF16, F16 and codes of a byte in AVX-512.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: same bits as the plain C bodies. Included by array/systolic_loader.h only, and not at all under
 * TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_SYSTOLIC_LOADER_H) && !defined(TRNI_SIMD_SYSTOLIC_LOADER_AVX512_H)
#define TRNI_SIMD_SYSTOLIC_LOADER_AVX512_H

#include "vector_avx512.h"
#define TRNI_V_LOADED 1

TRNI_SIMD_BEGIN

/* Those of simd/cast_avx512.h, but that NaNs stay as they are. */
TRNI_V_INLINE void trni_codes_f32_avx512(const unsigned char *src, __m512 y[1]) { y[0] = _mm512_loadu_ps(src); }

TRNI_V_INLINE void trni_codes_tf32_avx512(const unsigned char *src, __m512 y[1])
{
    const __m512 x = _mm512_loadu_ps(src);
    y[0] = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), trni_tf32_of_512(x));
}

TRNI_V_INLINE void trni_codes_bf16_avx512(const unsigned char *src, __m512 y[1])
{
    y[0] = trni_f32_of_16_bf16((const char *)src);
}

TRNI_V_INLINE void trni_codes_f16_avx512(const unsigned char *src, __m512 y[1]) { y[0] = TRNI_V_F16(src); }

#include "systolic_loader_vector.h"

/* ---- codes of a byte ----
 *
 * All of them are BF16 numbers and mirror each other in the sign bit, so a table of 128 magnitudes does, four
 * registers:
 * two look up 64 entries at once, by the low six bits of a code. (Lanes are all named for g++ 12, see trn_cpu.h.) The
 * sign
 * of a shorter code is within the table, and what lies above it is nobody's. */

#if TRNI_CLANG
#define TRNI_LOADER512_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TRNI_LOADER512_UNROLL _Pragma("GCC unroll 4")
#endif
#define TRNI_LOADER512_EACH TRNI_LOADER512_UNROLL for (int v = 0; v < 4; v++)
#define TRNI_LOADER512 __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline

typedef struct trni_magnitudes512 {
    __m512i part[4], sign; /* where bit 7 of a code is its sign */
    __m256i groups;
} trni_magnitudes512;

TRNI_LOADER512 trni_magnitudes512 trni_magnitudes512_load(const trni_decoder *decoder)
{
    trni_magnitudes512 t;
    for (int i = 0; i < 4; i++) t.part[i] = _mm512_loadu_si512(decoder->high + 32 * i);
    t.sign = _mm512_set1_epi16((short)(decoder->from.bits == 8 ? 0x8000 : 0));
    t.groups = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return t;
}

/* 32 codes as 32 floats: groups of four change places first, so that interleaving with zeros inside each quarter of a
 * register puts all into order. */
TRNI_LOADER512 void trni_codes_512(const trni_magnitudes512 *t, __m256i codes, __m512 *first, __m512 *second)
{
    const __m512i code = _mm512_cvtepu8_epi16(_mm256_permutevar8x32_epi32(codes, t->groups));
    const __mmask32 bit6 = _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x40));
    const __m512i low = _mm512_permutex2var_epi16(t->part[0], code, t->part[1]);
    const __m512i high = _mm512_permutex2var_epi16(t->part[2], code, t->part[3]);
    const __m512i sign = _mm512_and_si512(_mm512_slli_epi16(code, 8), t->sign);
    const __m512i v = _mm512_or_si512(_mm512_mask_mov_epi16(low, bit6, high), sign), zero = _mm512_setzero_si512();
    *first = _mm512_castsi512_ps(_mm512_maskz_unpacklo_epi16((__mmask32)-1, zero, v));
    *second = _mm512_castsi512_ps(_mm512_maskz_unpackhi_epi16((__mmask32)-1, zero, v));
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_lines_bytes_avx512(TRNI_LINES_PARAMS)
{
    enum { width = 32 };
    const trni_magnitudes512 t = trni_magnitudes512_load(&loader->decoder);
    for (int64_t p = 0; p < panels; p++)
        for (int r = 0; r < rows; r++) {
            float *to = dst + (size_t)p * panel_step + slot[r] * width;
            __m512 x, y;
            trni_codes_512(&t, _mm256_loadu_si256((const __m256i *)(const void *)(src + r * row_step + p * width)), &x,
                           &y);
            _mm512_storeu_ps(to, x);
            _mm512_storeu_ps(to + 16, y);
        }
}

/* 64 codes as four vectors of floats, woven: v[q] lane l is code 4 l + q. The even and the odd bytes of 16-bit lanes
 * are looked up by their low bits where they stand, and the BF16 numbers found are halves of 32-bit lanes already:
 * nothing but the lookups themselves crosses lanes (1.9 times the speed of unwoven codes, measured). */
TRNI_LOADER512 void trni_woven_512(const trni_magnitudes512 *t, __m512i codes, __m512 v[4])
{
    const __m512i odd_code = _mm512_srli_epi16(codes, 8), sign = t->sign, upper = _mm512_set1_epi32((int)0xffff0000u);
    const __mmask32 even_bit6 = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x40));
    const __mmask32 odd_bit6 = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x4000));
    const __m512i even_low = _mm512_permutex2var_epi16(t->part[0], codes, t->part[1]);
    const __m512i even_high = _mm512_permutex2var_epi16(t->part[2], codes, t->part[3]);
    const __m512i odd_low = _mm512_permutex2var_epi16(t->part[0], odd_code, t->part[1]);
    const __m512i odd_high = _mm512_permutex2var_epi16(t->part[2], odd_code, t->part[3]);
    enum { or_and = 0xf8 }; /* a | (b & c) */
    const __m512i even = _mm512_ternarylogic_epi32(_mm512_mask_mov_epi16(even_low, even_bit6, even_high),
                                                   _mm512_slli_epi16(codes, 8), sign, or_and);
    const __m512i odd =
        _mm512_ternarylogic_epi32(_mm512_mask_mov_epi16(odd_low, odd_bit6, odd_high), codes, sign, or_and);
    v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(even, 16));
    v[1] = _mm512_castsi512_ps(_mm512_slli_epi32(odd, 16));
    v[2] = _mm512_castsi512_ps(_mm512_and_si512(even, upper));
    v[3] = _mm512_castsi512_ps(_mm512_and_si512(odd, upper));
}

/* 64 scales as factors, woven. (0 belongs to blocks of zeros here: any finite factor does.) */
TRNI_LOADER512 void trni_factors_512(__m512i scale, __m512 v[4])
{
    const __m512i top = _mm512_set1_epi32(0x7f800000);
    const __m512i place[4] = { _mm512_slli_epi32(scale, 23), _mm512_slli_epi32(scale, 15), _mm512_slli_epi32(scale, 7),
                               _mm512_srli_epi32(scale, 1) };
    TRNI_LOADER512_UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i power = _mm512_and_si512(place[i], top);
        v[i] = _mm512_castsi512_ps(
            _mm512_mask_mov_epi32(power, _mm512_cmpeq_epi32_mask(power, top), _mm512_set1_epi32(TRNI_F32_NAN)));
    }
}

/* sum[j] += the group's sum of x[g] * line g [j], times a scale, for `rows` rows in order; a group of one is fused.
 * Sums and scales are woven, and hold whole blocks of 64. */
TRNI_LOADER512 void trni_stream_codes_512(const int group, const bool scaled, TRNI_GROUPS_PARAMS)
{
    const trni_magnitudes512 t = trni_magnitudes512_load(&loader->decoder);
    for (size_t i = 0; i < n; i += TRNI_WEAVE) {
        const __mmask64 there = n - i < TRNI_WEAVE ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        __m512 s[4], c[4];
        if (scaled) trni_factors_512(_mm512_maskz_loadu_epi8(there, scale + i), c);
        TRNI_LOADER512_EACH s[v] = _mm512_loadu_ps(sum + i + 16 * v);
        for (int r = 0; r < rows; r++) {
            __m512 q[4], b[4];
            TRNI_LOADER512_UNROLL for (int g = 0; g < group; g++)
            {
                const unsigned char *at = src + r * row_step + g * slot_step + i;
                const __m512 w = _mm512_set1_ps(x[r * group + g]);
                _mm_prefetch((const char *)((uintptr_t)at + (uintptr_t)ahead), _MM_HINT_T1);
                trni_woven_512(&t, _mm512_maskz_loadu_epi8(there, at), b);
                TRNI_LOADER512_EACH
                q[v] = group == 1 ? _mm512_fmadd_ps(w, b[v], s[v])
                       : g == 0   ? _mm512_mul_ps(w, b[v])
                                  : _mm512_fmadd_ps(w, b[v], q[v]);
            }
            TRNI_LOADER512_EACH s[v] = group == 1 ? q[v]
                                       : scaled   ? _mm512_fmadd_ps(q[v], c[v], s[v])
                                                  : _mm512_add_ps(s[v], q[v]);
        }
        TRNI_LOADER512_EACH _mm512_storeu_ps(sum + i + 16 * v, s[v]);
    }
}

TRNI_KERNEL_STREAM TRNI_TARGET_AVX512 static void trni_simd_stream_bytes_avx512(TRNI_STREAM_PARAMS)
{
    trni_stream_codes_512(1, false, loader, sum, x, src, row_step, 0, rows, NULL, ahead, n);
}

TRNI_KERNEL_STREAM TRNI_TARGET_AVX512 static void trni_simd_stream_pairs_avx512(TRNI_GROUPS_PARAMS)
{
    (void)scale;
    trni_stream_codes_512(2, false, loader, sum, x, src, row_step, slot_step, rows, NULL, ahead, n);
}

TRNI_KERNEL_STREAM TRNI_TARGET_AVX512 static void trni_simd_stream_quads_avx512(TRNI_GROUPS_PARAMS)
{
    trni_stream_codes_512(4, true, loader, sum, x, src, row_step, slot_step, rows, scale, ahead, n);
}

/* Pairs of v[0], v[1] and of v[2], v[3], then pairs of pairs. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unweave_avx512(float *dst, const float *src, size_t n)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const __m512i low2 = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high2 = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    for (size_t j = 0; j < n; j += TRNI_WEAVE, src += TRNI_WEAVE, dst += TRNI_WEAVE) {
        const __m512 v0 = _mm512_loadu_ps(src), v1 = _mm512_loadu_ps(src + 16), v2 = _mm512_loadu_ps(src + 32),
                     v3 = _mm512_loadu_ps(src + 48);
        const __m512d a = _mm512_castps_pd(_mm512_permutex2var_ps(v0, low, v1)),
                      b = _mm512_castps_pd(_mm512_permutex2var_ps(v2, low, v3));
        const __m512d c = _mm512_castps_pd(_mm512_permutex2var_ps(v0, high, v1)),
                      d = _mm512_castps_pd(_mm512_permutex2var_ps(v2, high, v3));
        _mm512_storeu_ps(dst, _mm512_castpd_ps(_mm512_permutex2var_pd(a, low2, b)));
        _mm512_storeu_ps(dst + 16, _mm512_castpd_ps(_mm512_permutex2var_pd(a, high2, b)));
        _mm512_storeu_ps(dst + 32, _mm512_castpd_ps(_mm512_permutex2var_pd(c, low2, d)));
        _mm512_storeu_ps(dst + 48, _mm512_castpd_ps(_mm512_permutex2var_pd(c, high2, d)));
    }
}
#undef TRNI_LOADER512
#undef TRNI_LOADER512_EACH
#undef TRNI_LOADER512_UNROLL

TRNI_SIMD_END
#endif /* TRNI_SIMD_SYSTOLIC_LOADER_AVX512_H */
