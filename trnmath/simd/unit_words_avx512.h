/* simd/unit_words_avx512.h - array/unit_words.h's words and proofs.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: the words and proofs are those of the plain C bodies. Included by array/unit_words.h only, and not at
 * all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_UNIT_WORDS_H) && !defined(TRNI_SIMD_UNIT_WORDS_AVX512_H)
#define TRNI_SIMD_UNIT_WORDS_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

TRNI_TARGET_AVX512 TRNI_LEAN void trni_simd_unit_words(TRNI_UNIT_WORDS_PARAMS)
{
    enum { or_and = 0xf8 }; /* a | (b & c) */
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    const size_t step = (half ? 1 : 2) * width;
    for (int c = 0; c < map->chains; panel += (size_t)map->lines[c++] * width) {
        const int lines = map->lines[c], rows = half ? TRNI_UNIT_WORDS : map->count[c], full = half ? 0 : lines / 2;
        for (int r = 0; r < rows; r++, word += width)
            for (size_t i = 0; i < width; i += 16) {
                const __mmask16 there = (__mmask16)(width - i < 16 ? (1u << (width - i)) - 1 : 0xffffu);
                const float *at = panel + (size_t)r * step + i;
                const bool one = half ? r < lines : 2 * r < lines;
                __m512i x = _mm512_setzero_si512();
                if (one) x = _mm512_srli_epi32(_mm512_castps_si512(_mm512_maskz_loadu_ps(there, at)), 16);
                if (r < full)
                    x = _mm512_ternarylogic_epi32(x, _mm512_castps_si512(_mm512_maskz_loadu_ps(there, at + width)),
                                                  upper, or_and);
                _mm512_mask_storeu_epi32(word + i, there, x);
            }
    }
}

TRNI_LEAN void trni_simd_unit_turn(uint32_t *out, const uint32_t *word, int rows)
{
    for (int r = 0; r < rows; r += TRNI_UNIT_WORDS, word += TRNI_UNIT_TILE, out += TRNI_UNIT_TILE)
        trni_simd_flip_avx512(out, TRNI_UNIT_WORDS, word, TRNI_UNIT_ROWS);
}

/* 16 rows by 16 columns at a time: 16 sums, a line of b, and a's numbers straight from memory. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_unit_go_on_half(float *sum, const float *a, const float *b, int lines, const int group, int width)
{
    enum { rows = TRNI_UNIT_ROWS };
    __m512 s[rows];
    TRNI_EVERY(i, rows) s[i] = _mm512_loadu_ps(sum + i * width);
    for (int k = 0; k < lines; k += group, a += group * rows, b += group * width) {
        __m512 w[4];
        for (int g = 0; g < group; g++) w[g] = _mm512_loadu_ps(b + g * width);
        TRNI_EVERY(i, rows)
        {
            if (group == 1) {
                s[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), w[0], s[i]);
            } else {
                __m512 q = _mm512_mul_ps(_mm512_set1_ps(a[i]), w[0]);
                for (int g = 1; g < group; g++) q = _mm512_fmadd_ps(_mm512_set1_ps(a[g * rows + i]), w[g], q);
                s[i] = _mm512_add_ps(s[i], q);
            }
        }
    }
    TRNI_EVERY(i, rows) _mm512_storeu_ps(sum + i * width, s[i]);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unit_go_on(TRNI_UNIT_GO_ON_PARAMS)
{
    for (int j = 0; j < width; j += 16) {
        if (group == 1)
            trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 1, width);
        else if (group == 2)
            trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 2, width);
        else
            trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 4, width);
    }
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unit_state(TRNI_UNIT_STATE_PARAMS)
{
    const __mmask16 there = (__mmask16)((1u << lanes) - 1);
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), exponent = _mm512_set1_epi32(0x7f800000),
                  implicit = _mm512_set1_epi32(0x800000);
    __m512 sum = _mm512_setzero_ps(), least = _mm512_set1_ps(TRNI_UNIT_NO_ULP);
    for (; lines > 0; lines--, panel += width) {
        const __m512 x = _mm512_maskz_loadu_ps(there, panel);
        const __m512i m = _mm512_and_si512(_mm512_castps_si512(x), magnitude);
        const __m512i low = _mm512_and_si512(m, _mm512_sub_epi32(_mm512_setzero_si512(), m));
        const __m512 in_place = _mm512_cvtepi32_ps(_mm512_maskz_min_epu32((__mmask16)0xffff, low, implicit));
        const __m512 lowest = _mm512_mul_ps(in_place, _mm512_castsi512_ps(_mm512_and_si512(m, exponent)));
        sum = _mm512_fmadd_ps(x, x, sum);
        least = _mm512_mask_min_ps(least, _mm512_test_epi32_mask(m, m), least, lowest);
    }
    _mm512_storeu_ps(norm, sum);
    _mm512_storeu_ps(ulp, least);
}

TRNI_SIMD_END
#endif /* TRNI_SIMD_UNIT_WORDS_AVX512_H */
