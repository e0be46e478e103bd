/* simd/unit_words_avx512.h - array/unit_words.h's words and proofs, and products of words by dot products of BF16.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: the words and proofs are those of the plain C bodies; dot products (VDPBF16PS flushes subnormals and
 * adds the odd product first) are taken only where no sum rounds or is subnormal. Included by array/unit_words.h
 * only, and not at all under TRN_NO_INTRINSICS.
 */
#ifndef TRNI_ARRAY_UNIT_WORDS_H
#include "../array/unit_words.h" /* which includes this file where it belongs */
#elif !defined(TRNI_SIMD_UNIT_WORDS_AVX512_H)
#define TRNI_SIMD_UNIT_WORDS_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#if TRNI_CLANG
#define TRNI_DOTS_EACH_ROW _Pragma("clang loop unroll(full)") for (int i = 0; i < rows; i++)
#define TRNI_TARGET_DOTS                                                                                               \
    __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) TRNI_WIDE
#else
#define TRNI_DOTS_EACH_ROW _Pragma("GCC unroll 16") for (int i = 0; i < rows; i++)
#define TRNI_TARGET_DOTS                                                                                               \
    __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#endif

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unit_words(TRNI_UNIT_WORDS_PARAMS)
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

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unit_turn(uint32_t *out, const uint32_t *word, int rows)
{
    for (int r = 0; r < rows; r += 16, word += TRNI_UNIT_TILE, out += TRNI_UNIT_TILE) {
        __m512 v[16];
        for (int i = 0; i < 16; i++) v[i] = _mm512_loadu_ps((const float *)(const void *)(word + 16 * i));
        trni_simd_turn_avx512(v);
        for (int i = 0; i < 16; i++) _mm512_storeu_ps((float *)(void *)(out + 16 * i), v[i]);
    }
}

/* 16 rows by 16 columns at a time: 16 sums, a line of b, and a's numbers straight from memory. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_unit_go_on_half(float *sum, const float *a, const float *b, int lines, const int group, int width)
{
    enum { rows = TRNI_UNIT_ROWS };
    __m512 s[rows];
    TRNI_DOTS_EACH_ROW s[i] = _mm512_loadu_ps(sum + i * width);
    for (int k = 0; k < lines; k += group, a += group * rows, b += group * width) {
        __m512 w[4];
        for (int g = 0; g < group; g++) w[g] = _mm512_loadu_ps(b + g * width);
        TRNI_DOTS_EACH_ROW
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
    TRNI_DOTS_EACH_ROW _mm512_storeu_ps(sum + i * width, s[i]);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_unit_go_on(TRNI_UNIT_GO_ON_PARAMS)
{
    for (int j = 0; j < width; j += 16) {
        if (group == 1) trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 1, width);
        else if (group == 2) trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 2, width);
        else trni_simd_unit_go_on_half(sum + j, a, b + j, lines, 4, width);
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

/* ---- products of words ---- */

__attribute__((unused, always_inline)) TRNI_TARGET_DOTS static inline void trni_simd_unit_dots(const int rows,
                                                                                              TRNI_UNIT_DOTS_PARAMS)
{
    enum { most = 12 };
    __m512 t[most][2], x[most], y[most];
    int c = 0;
    do {
        TRNI_DOTS_EACH_ROW x[i] = y[i] = _mm512_setzero_ps();
        for (int k = count[c]; k > 0; k--) {
            const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
            TRNI_DOTS_EACH_ROW
            {
                const __m512bh w = (__m512bh)_mm512_set1_epi32((int)a[i]);
                x[i] = _mm512_dpbf16_ps(x[i], w, b0);
                y[i] = _mm512_dpbf16_ps(y[i], w, b1);
            }
            a += rows;
            b += TRNI_UNIT_WIDTH;
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
            _mm_prefetch((const char *)(ahead + ahead_step), _MM_HINT_T1);
            ahead += 2 * ahead_step;
        }
        if (c > 0)
            TRNI_DOTS_EACH_ROW
            {
                x[i] = _mm512_add_ps(t[i][0], x[i]);
                y[i] = _mm512_add_ps(t[i][1], y[i]);
            }
        if (c + 1 < chains)
            TRNI_DOTS_EACH_ROW
            {
                t[i][0] = x[i];
                t[i][1] = y[i];
            }
    } while (++c < chains);
    if (in)
        TRNI_DOTS_EACH_ROW
        {
            x[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step), x[i]);
            y[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step + 16), y[i]);
        }
    TRNI_DOTS_EACH_ROW
    {
        _mm512_storeu_ps(out + i * out_step, x[i]);
        _mm512_storeu_ps(out + i * out_step + 16, y[i]);
    }
}

#define TRNI_UNIT_DOTS(rows)                                                                                           \
    TRNI_KERNEL TRNI_TARGET_DOTS static void trni_simd_unit_dots_##rows(TRNI_UNIT_DOTS_PARAMS)                         \
    {                                                                                                                  \
        trni_simd_unit_dots(rows, a, b, count, chains, in, in_step, out, out_step, ahead, ahead_step);                 \
    }
TRNI_UNIT_DOTS(12)
TRNI_UNIT_DOTS(8)
#undef TRNI_UNIT_DOTS
#undef TRNI_DOTS_EACH_ROW

TRNI_SIMD_END
#endif /* TRNI_SIMD_UNIT_WORDS_AVX512_H */
