/* simd/matmul_dots_avx512.h - array/matmul_dots.h for 16 and 8 bits: four chains of four columns in a vector.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: here because they are faster than narrow vectors, or than decoding lines first; they return the same
 * bits. Sixteen bytes of each of four columns are a register: eight numbers along K of each, as two vectors, or sixteen
 * codes, turned such that what simd/systolic_loader_avx512.h looks up comes as four numbers of each column, four times.
 * Included by array/matmul_dots.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_MATMUL_DOTS_H) && !defined(TRNI_SIMD_MATMUL_DOTS_AVX512_H)
#define TRNI_SIMD_MATMUL_DOTS_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#define TRNI_DOT_CODES(at) _mm_loadu_si128((const __m128i *)(const void *)(at))

/* Sixteen bytes of each of four columns, `step` bytes apart. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline __m512i
trni_dot_codes_512(const unsigned char *line, int64_t step)
{
    __m512i codes = _mm512_castsi128_si512(TRNI_DOT_CODES(line));
    codes = _mm512_inserti32x4(codes, TRNI_DOT_CODES(line + step), 1);
    codes = _mm512_inserti32x4(codes, TRNI_DOT_CODES(line + 2 * step), 2);
    return _mm512_inserti32x4(codes, TRNI_DOT_CODES(line + 3 * step), 3);
}

/* sum[column][chain] += the next four numbers of four columns. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline __m512
trni_dot_add_512(__m512 sum, const float *x, __m512 w)
{
    return _mm512_fmadd_ps(_mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(x)), w, sum);
}

/* Eight columns of BF16, as trni_dots_8. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_dots_8_bf16_avx512(TRNI_DOTS_PARAMS)
{
    enum { numbers = 8 };
    const __m512i zero = _mm512_setzero_si512();
    __m512 sum[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    int k = 0;
    for (; k + numbers <= depth; k += numbers)
        for (int half = 0; half < 2; half++) {
            const unsigned char *const from = line + 4 * half * step + 2 * k;
            trni_simd_dots_ahead(from, step, k / numbers % 4);
            const __m512i w = trni_dot_codes_512(from, step);
            sum[half] = trni_dot_add_512(sum[half], x + k, _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, w)));
            sum[half] = trni_dot_add_512(sum[half], x + k + 4, _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, w)));
        }
    _mm512_storeu_ps(s, sum[0]);
    _mm512_storeu_ps(s + 4 * TRNI_DOT_CHAINS, sum[1]);
    if (k < depth) trni_simd_dots_rest(TRNI_DOTS, TRN_BF16, s, x + k, line + 2 * k, step, depth - k);
}

/* Eight columns of codes of a byte. (By arithmetic, as halves with another bias, codes take as long; two tiles at a
 * time take longer: measured.) */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_dots_8_bytes_avx512(const trni_decoder *decoder, float *s,
                                                                         const float *x, const unsigned char *line,
                                                                         int64_t step, int depth)
{
    enum { codes = 16 };
    const trni_magnitudes512 t = trni_magnitudes512_load(decoder);
    /* code 4 q + j of a column comes to byte 4 j + q of its quarter */
    const __m512i turn =
        _mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512 sum[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    int k = 0;
    for (; k + codes <= depth; k += codes)
        for (int half = 0; half < 2; half++) {
            const unsigned char *const from = line + 4 * half * step + k;
            __m512 v[4];
            trni_simd_dots_ahead(from, step, k / codes % 4);
            trni_woven_512(&t, _mm512_shuffle_epi8(trni_dot_codes_512(from, step), turn), v);
            for (int q = 0; q < 4; q++) sum[half] = trni_dot_add_512(sum[half], x + k + 4 * q, v[q]);
        }
    _mm512_storeu_ps(s, sum[0]);
    _mm512_storeu_ps(s + 4 * TRNI_DOT_CHAINS, sum[1]);
    for (int i = 0; i < TRNI_DOTS && k < depth; i++)
        for (int r = k; r < depth; r++) {
            float *const chain = s + i * TRNI_DOT_CHAINS + r % TRNI_DOT_CHAINS;
            *chain = __builtin_fmaf(x[r], trni_float((uint32_t)decoder->high[line[i * step + r]] << 16), *chain);
        }
}

#undef TRNI_DOT_CODES
TRNI_SIMD_END
#endif /* TRNI_SIMD_MATMUL_DOTS_AVX512_H */
