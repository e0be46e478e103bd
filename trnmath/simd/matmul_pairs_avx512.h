/* simd/matmul_pairs_avx512.h - array/matmul_pairs.h's words, and products of them: VDPBF16PS, AVX512_BF16.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: two steps of sixteen chains an instruction (twice the speed of multiply-adds where its rate is theirs).
 * Same bits as the plain C bodies. Included by array/matmul_pairs.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ARRAY_MATMUL_PAIRS_H) && !defined(TRNI_SIMD_MATMUL_PAIRS_AVX512_H)
#define TRNI_SIMD_MATMUL_PAIRS_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#if TRNI_CLANG
#define TRNI_TARGET_PAIRS                                                                                              \
    __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) TRNI_WIDE
#else
#define TRNI_TARGET_PAIRS                                                                                              \
    __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#endif

/* ---- packing ---- */

enum { TRNI_SIMD_WOVEN = 8, TRNI_SIMD_WOVEN_CODES = 4 /* panels */ };

__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline __mmask32 trni_simd_pairs_mask(int64_t left)
{
    return left >= 32 ? 0xffffffffu : left <= 0 ? 0 : (1u << left) - 1;
}

__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_pairs_look(__m512i *least, __m512i *most, __m512i x)
{
    const __m512i bits = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    *least = _mm512_min_epu16(*least, _mm512_sub_epi16(bits, _mm512_set1_epi16(1)));
    *most = _mm512_max_epu16(*most, bits);
}

__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void trni_simd_pairs_most(bool *wild,
                                                                                                  __m512i most)
{
    if (_mm512_cmpge_epu16_mask(most, _mm512_set1_epi16(TRNI_PAIRS_WILD))) *wild = true;
}

/* Codes without sign, 32 to a vector. */
typedef struct trni_simd_pairs_table {
    __m512i of[4];
} trni_simd_pairs_table;

__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline trni_simd_pairs_table
trni_simd_pairs_table_of(const uint16_t *table)
{
    const trni_simd_pairs_table t = { { _mm512_loadu_si512(table), _mm512_loadu_si512(table + 32),
                                        _mm512_loadu_si512(table + 64), _mm512_loadu_si512(table + 96) } };
    return t;
}

/* 32 numbers: two tables of 64, and the sign; or BF16, where there is no table. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline __m512i
trni_simd_pairs_load(__mmask32 mask, const unsigned char *src, const trni_simd_pairs_table *table)
{
    if (!table) return _mm512_maskz_loadu_epi16(mask, src);
    const __m512i code = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, src));
    const __m512i low = _mm512_permutex2var_epi16(table->of[0], code, table->of[1]),
                  high = _mm512_permutex2var_epi16(table->of[2], code, table->of[3]);
    const __mmask32 upper = _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x40));
    const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(code, _mm512_set1_epi16(0x80)), 8);
    return _mm512_or_si512(_mm512_mask_blend_epi16(upper, low, high), sign);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_pairs_codes(TRNI_PAIRS_CODES_PARAMS)
{
    const trni_simd_pairs_table t = trni_simd_pairs_table_of(table);
    for (int64_t i = 0; i < n; i += 32) {
        const __mmask32 mask = trni_simd_pairs_mask(n - i);
        _mm512_mask_storeu_epi16(dst + i, mask, trni_simd_pairs_load(mask, src + i, &t));
    }
}

/* One word of a panel's columns: the halves are looked at and put together. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_pairs_weave_word(uint32_t *to, __m512i x, __m512i y, const bool wide, __m512i first, __m512i second,
                           __m512i *least, __m512i *most)
{
    trni_simd_pairs_look(least, most, x);
    trni_simd_pairs_look(least, most, y);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(y, first, x));
    if (wide) _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(y, second, x));
}

/* Words outside, `panels` panels inside: memory is read line after line, and asked for what is `below`, if anything. A
 * last, odd number has no later one: its mask is empty. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_pairs_weave_some(const int panels, const bool wide, __mmask32 mask, uint32_t *out, int64_t panel,
                           const unsigned char *src, int64_t line, const trni_simd_pairs_table *table, uintptr_t below,
                           const trni_pairs_map *map, uint16_t *seen, __m512i *most)
{
    const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0),
                  second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
    const int width = wide ? 32 : 16, bytes = table ? 1 : 2, step = width * bytes;
    __m512i least[TRNI_SIMD_WOVEN];
    TRNI_EVERY(i, panels) least[i] = _mm512_loadu_si512(seen + i * TRNI_PAIRS_SEEN);
    for (int w = 0; w < map->words; w++, out += width) {
        const bool odd = map->late[w] == TRNI_PAIRS_ZERO;
        const __mmask32 later = odd ? 0 : mask;
        const unsigned char *early = src + map->early[w] * line * bytes,
                            *late = odd ? early : src + map->late[w] * line * bytes;
        if (below) TRNI_EVERY(i, panels)
            {
                _mm_prefetch((const char *)((uintptr_t)(early + i * step) + below), _MM_HINT_T1);
                _mm_prefetch((const char *)((uintptr_t)(late + i * step) + below), _MM_HINT_T1);
            }
        TRNI_EVERY(i, panels)
        trni_simd_pairs_weave_word(out + i * panel, trni_simd_pairs_load(mask, early + i * step, table),
                                   trni_simd_pairs_load(later, late + i * step, table), wide, first, second, &least[i],
                                   most);
    }
    TRNI_EVERY(i, panels) _mm512_storeu_si512(seen + i * TRNI_PAIRS_SEEN, least[i]);
}

__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_pairs_weave_all(TRNI_PAIRS_WEAVE_PARAMS, const trni_simd_pairs_table *of)
{
    const int woven = of ? (int)TRNI_SIMD_WOVEN_CODES : (int)TRNI_SIMD_WOVEN;
    const unsigned char *from = (const unsigned char *)src;
    const int64_t step = width * (of ? 1 : 2);
    __m512i most = _mm512_setzero_si512();
    (void)table;
    for (; width == 32 && lanes >= 32 * woven; lanes -= 32 * woven, from += step * woven, out += woven * panel) {
        trni_simd_pairs_weave_some(woven, true, 0xffffffffu, out, panel, from, line, of, below, map, seen, &most);
        seen += woven * TRNI_PAIRS_SEEN;
    }
    for (; lanes > 0; lanes -= width, from += step, out += panel, seen += TRNI_PAIRS_SEEN) {
        const __mmask32 mask = trni_simd_pairs_mask(lanes);
        trni_simd_pairs_weave_some(1, width == 32, mask, out, panel, from, line, of, below, map, seen, &most);
    }
    trni_simd_pairs_most(wild, most);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_pairs_weave(TRNI_PAIRS_WEAVE_PARAMS)
{
    if (!table) {
        trni_simd_pairs_weave_all(out, panel, width, src, line, table, below, lanes, map, seen, wild, NULL);
        return;
    }
    const trni_simd_pairs_table t = trni_simd_pairs_table_of(table);
    trni_simd_pairs_weave_all(out, panel, width, src, line, table, below, lanes, map, seen, wild, &t);
}

/* Four chains, k mod 4, of 128 numbers, as most products have them: each of four vectors has four words of each. */
__attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline void
trni_simd_pairs_join_four(TRNI_PAIRS_JOIN_PARAMS)
{
    const uintptr_t next = (uintptr_t)(TRNI_PAIRS_ROWS * line) * sizeof *src;
    const __m512i words = _mm512_loadu_si512(map->four);
    __m512i least = _mm512_loadu_si512(seen), most = _mm512_setzero_si512(), x[4];
    for (; lanes > 0; lanes--, src += line, out += 64) {
        TRNI_EVERY(i, 4)
        {
            x[i] = _mm512_loadu_si512(src + 32 * i);
            _mm_prefetch((const char *)((uintptr_t)(src + 32 * i) + next), _MM_HINT_T0);
            trni_simd_pairs_look(&least, &most, x[i]);
            x[i] = _mm512_permutexvar_epi16(words, x[i]);
        }
        const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x44), b = _mm512_shuffle_i32x4(x[2], x[3], 0x44),
                      c = _mm512_shuffle_i32x4(x[0], x[1], 0xee), d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
        _mm512_storeu_si512(out, _mm512_shuffle_i32x4(a, b, 0x88));
        _mm512_storeu_si512(out + 16, _mm512_shuffle_i32x4(a, b, 0xdd));
        _mm512_storeu_si512(out + 32, _mm512_shuffle_i32x4(c, d, 0x88));
        _mm512_storeu_si512(out + 48, _mm512_shuffle_i32x4(c, d, 0xdd));
    }
    _mm512_storeu_si512(seen, least);
    trni_simd_pairs_most(wild, most);
}

/* The halves of 16 words are among 128 numbers, or the 128 after these. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_pairs_join(TRNI_PAIRS_JOIN_PARAMS)
{
    if (map->is_four) {
        trni_simd_pairs_join_four(out, src, line, lanes, map, seen, wild);
        return;
    }
    const uintptr_t next = (uintptr_t)(TRNI_PAIRS_ROWS * line) * sizeof *src;
    __m512i least = _mm512_loadu_si512(seen), most = _mm512_setzero_si512(), x[4];
    for (; lanes > 0; lanes--, src += line, out += map->words)
        for (int p = 0; 64 * p < map->depth; p += 2) {
            TRNI_EVERY(i, 4)
            {
                const int at = 64 * p + 32 * i;
                _mm_prefetch((const char *)((uintptr_t)(src + at) + next), _MM_HINT_T0);
                x[i] = _mm512_maskz_loadu_epi16(trni_simd_pairs_mask(map->depth - at), src + at);
                trni_simd_pairs_look(&least, &most, x[i]);
            }
            for (int w = 0; w < map->words; w += 16) {
                const uint16_t(*const from)[32] = map->from[w / 16] + p;
                const uint32_t *const there = map->there[w / 16] + p;
                const __mmask16 mask = (__mmask16)trni_simd_pairs_mask(map->words - w < 16 ? map->words - w : 16);
                const __m512i y = _mm512_maskz_permutex2var_epi16(there[0], x[0], _mm512_loadu_si512(from[0]), x[1]),
                              z = _mm512_maskz_permutex2var_epi16(there[1], x[2], _mm512_loadu_si512(from[1]), x[3]);
                __m512i word = _mm512_or_si512(y, z);
                if (p) word = _mm512_or_si512(word, _mm512_maskz_loadu_epi32(mask, out + w));
                _mm512_mask_storeu_epi32(out + w, mask, word);
            }
        }
    _mm512_storeu_si512(seen, least);
    trni_simd_pairs_most(wild, most);
}

/* Lanes of four chains of 128 numbers, as words of 32 at a time, change places with these on their way. */
TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_pairs_turn(TRNI_PAIRS_TURN_PARAMS)
{
    enum { lanes = 16, depth = 128 };
    TRNI_LINES(uint16_t) room[lanes * depth];
    const __m512i words = _mm512_loadu_si512(map->four);
    const int64_t step = table ? (int64_t)depth : line;
    const uintptr_t bytes = table ? 1 : 2;
    const uint16_t *from = table ? room : (const uint16_t *)src;
    __m512i least = _mm512_loadu_si512(seen), most = _mm512_setzero_si512();
    for (int64_t t = 0; t < 4 * lanes && next; t++)
        _mm_prefetch((const char *)((uintptr_t)src + (uintptr_t)(t / 4 * line + t % 4 * 32) * bytes + next),
                     _MM_HINT_T0);
    for (int lane = 0; lane < lanes && table; lane++)
        trni_simd_pairs_codes(room + lane * depth, (const unsigned char *)src + lane * line, depth, table);
    for (int i = 0; i < 4; i++, from += 32, out += 4 * width) {
        __m512 v[lanes];
        for (int lane = 0; lane < lanes; lane++) {
            const __m512i x = _mm512_loadu_si512(from + lane * step);
            trni_simd_pairs_look(&least, &most, x);
            v[lane] = _mm512_castsi512_ps(_mm512_permutexvar_epi16(words, x));
        }
        trni_simd_turn_avx512(v);
        for (int j = 0; j < 16; j++) _mm512_storeu_ps((float *)(void *)(out + (j / 4 * 16 + j % 4) * width), v[j]);
    }
    _mm512_storeu_si512(seen, least);
    trni_simd_pairs_most(wild, most);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static uint32_t trni_simd_pairs_least(const uint16_t *seen)
{
    const __m512i x = _mm512_loadu_si512(seen);
    const __m512i y = _mm512_min_epu16(x, _mm512_shuffle_i32x4(x, x, 0x4e)),
                  z = _mm512_min_epu16(y, _mm512_shuffle_i32x4(y, y, 0xb1));
    return (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(_mm512_castsi512_si128(z)), 0);
}

/* ---- products ---- */

/* Two vectors of columns; a's words are read where they stand, one row's after another. */
__attribute__((unused, always_inline)) TRNI_TARGET_PAIRS static inline void
trni_simd_pairs(const int rows, const int group, const trni_pairs_map *m, const trni_pairs_call *call, int panel)
{
    enum { most = TRNI_PAIRS_ROWS };
    TRNI_LINES(float) wait[most * 32]; /* PSUM, between tiles: rows of dst that are 4 KiB apart share a set */
    const uint32_t *a = call->a, *b = call->b + panel * call->b_panel;
    const float *in = call->in ? call->in + 32 * panel : NULL;
    float *const out = call->out + 32 * panel;
    ptrdiff_t in_step = call->in_step;
    const uintptr_t ahead_step = call->ahead_step;
    uintptr_t ahead = call->ahead;
    __m512 t[most][2], x[most], y[most];
    for (int tiles = call->tiles;; a += call->a_tile, b += call->b_tile) {
        const uint32_t *row[most], *column = b;
        int c = 0;
        ptrdiff_t w = 0;
        TRNI_EVERY(i, rows) row[i] = a + i * m->words;
        do {
            TRNI_EVERY(i, rows) x[i] = y[i] = _mm512_setzero_ps();
            for (const ptrdiff_t end = w + m->count[c]; w < end; w++) {
                const __m512bh b0 = (__m512bh)_mm512_loadu_si512(column),
                               b1 = (__m512bh)_mm512_loadu_si512(column + 16);
                _mm_prefetch((const char *)ahead, _MM_HINT_T1);
                ahead += ahead_step;
                TRNI_EVERY(i, rows)
                {
                    const __m512bh z = (__m512bh)_mm512_set1_epi32((int)row[i][w]);
                    if (group == 1) {
                        x[i] = _mm512_dpbf16_ps(x[i], z, b0);
                        y[i] = _mm512_dpbf16_ps(y[i], z, b1);
                    } else {
                        x[i] = _mm512_add_ps(x[i], _mm512_dpbf16_ps(_mm512_setzero_ps(), z, b0));
                        y[i] = _mm512_add_ps(y[i], _mm512_dpbf16_ps(_mm512_setzero_ps(), z, b1));
                    }
                }
                column += 32;
            }
            if (c > 0) TRNI_EVERY(i, rows)
                {
                    x[i] = _mm512_add_ps(t[i][0], x[i]);
                    y[i] = _mm512_add_ps(t[i][1], y[i]);
                }
            if (c + 1 < m->chains) TRNI_EVERY(i, rows)
                {
                    t[i][0] = x[i];
                    t[i][1] = y[i];
                }
        } while (++c < m->chains);
        if (in) TRNI_EVERY(i, rows)
            {
                x[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step), x[i]);
                y[i] = _mm512_add_ps(_mm512_loadu_ps(in + i * in_step + 16), y[i]);
            }
        if (--tiles == 0) break;
        TRNI_EVERY(i, rows)
        {
            _mm512_storeu_ps(wait + 32 * i, x[i]);
            _mm512_storeu_ps(wait + 32 * i + 16, y[i]);
        }
        in = wait;
        in_step = 32;
    }
    TRNI_EVERY(i, rows)
    {
        _mm512_storeu_ps(out + i * call->out_step, x[i]);
        _mm512_storeu_ps(out + i * call->out_step + 16, y[i]);
    }
}

#define TRNI_PAIRS(rows, group)                                                                                        \
    TRNI_KERNEL TRNI_TARGET_PAIRS static void trni_simd_pairs_##rows##x##group(const trni_pairs_map *m,                \
                                                                               const trni_pairs_call *call)            \
    {                                                                                                                  \
        for (int panel = 0; panel < call->panels; panel++) trni_simd_pairs(rows, group, m, call, panel);               \
    }
TRNI_PAIRS(8, 1)
TRNI_PAIRS(4, 1)
TRNI_PAIRS(1, 1)
TRNI_PAIRS(8, 2)
TRNI_PAIRS(1, 2)
#undef TRNI_PAIRS

TRNI_SIMD_END
#endif /* TRNI_SIMD_MATMUL_PAIRS_AVX512_H */
