/* array/unit_words.h - packed panels as words of two BF16 numbers, and when a matrix unit's sums are a chain's.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: the words of strips and panels, whole or with the first 16 steps of a chain in even slots; for each strip and
 *     panel the numbers from which two of them together prove that sums are exact.
 * DOES NOT: multiply: array/matmul_unit.h does.
 *
 * Why it is exact. All products of row i and column j are multiples of u = ulp(a_i) * ulp(b_j), where ulp() is the
 * lowest bit that is set in any number of the row, or column. Whatever some of them sum up to is a multiple of u,
 * too, and at most |a_i| |b_j|, the product of the Euclidean norms (Cauchy and Schwarz). Below 2^24 u it has 24 bits
 * at most: no addition rounds, in any order. With ulps of 2^-55 and more nothing is subnormal on the way either, and
 * a number that is no zero is above 2^-55: then the first 16 steps of a chain alone in even slots, zeros in odd ones,
 * are what a tile adds up in that very order, rounding as the chain does.
 *
 * KNOWN FROM: array/matrix_unit.h's arithmetic; the exponents between which it was compared (measured).
 */
#ifndef TRNI_ARRAY_UNIT_WORDS_H
#define TRNI_ARRAY_UNIT_WORDS_H

#include "matrix_unit.h"
#include "product.h"

/* ---- the words of one K tile ---- */

typedef struct trni_unit_map {
    int chains, rows, all;      /* rows of words, and lines, of all chains */
    int lines[TRNI_MAX_CHAINS]; /* of each chain: numbers along K */
    int first[TRNI_MAX_CHAINS]; /* its first row of words */
    int count[TRNI_MAX_CHAINS]; /* how many it has, in whole blocks of 16 */
    bool half;                  /* is half of a chain worth a tile? Of a chain of single products, at most 32 deep */
} trni_unit_map;

TRNI_LEAN trni_unit_map trni_unit_map_of(const trni_map *map)
{
    trni_unit_map m;
    memset(&m, 0, sizeof m);
    m.chains = map->chains.count;
    m.all = map->lines;
    m.half = map->group == 1;
    for (int c = 0; c < m.chains; c++) {
        const int words = (map->chains.length[c] * map->group + 1) / 2;
        m.lines[c] = map->chains.length[c] * map->group;
        m.first[c] = m.rows;
        m.count[c] = (int)trni_round_up(words, TRNI_UNIT_WORDS);
        m.rows += m.count[c];
        if (words > TRNI_UNIT_WORDS) m.half = false;
    }
    return m;
}

/* word[row][width] of a panel [line][width]; what a block has no lines for is zero. Half: chain after chain, the first
 * 16 lines alone. */
#define TRNI_UNIT_WORDS_PARAMS uint32_t *word, const float *panel, size_t width, const trni_unit_map *map, bool half

TRNI_INLINE uint32_t trni_unit_upper(const float *x) { return trni_bits(*x) & 0xffff0000u; }

TRNI_INLINE void trni_unit_words_body(TRNI_UNIT_WORDS_PARAMS)
{
    for (int c = 0; c < map->chains; panel += (size_t)map->lines[c++] * width) {
        const int step = half ? 1 : 2, lines = map->lines[c], rows = half ? TRNI_UNIT_WORDS : map->count[c];
        for (int r = 0; r < rows; r++, word += width) {
            const float *low = panel + (size_t)(step * r) * width, *high = low + width;
            const bool one = step * r < lines, two = !half && step * r + 1 < lines;
            for (size_t i = 0; i < width; i++)
                word[i] = (one ? trni_unit_upper(low + i) >> 16 : 0) | (two ? trni_unit_upper(high + i) : 0);
        }
    }
}

/* Words [row][16] of a strip, turned in blocks of 16 rows: out[block][column][row]. */
TRNI_INLINE void trni_unit_turn_body(uint32_t *out, const uint32_t *word, int rows)
{
    for (int r = 0; r < rows; r++, word += TRNI_UNIT_ROWS)
        for (int i = 0; i < TRNI_UNIT_ROWS; i++)
            out[r / TRNI_UNIT_WORDS * TRNI_UNIT_TILE + i * TRNI_UNIT_WORDS + r % TRNI_UNIT_WORDS] = word[i];
}

/* ---- the proof ---- */

/* For the rows of a strip, or the columns of a panel: the largest (norm / ulp)^2 over each chain, and over the tile. */
typedef struct trni_unit_proof {
    float chain[TRNI_MAX_CHAINS], whole;
    bool half; /* all finite, all ulps at least 2^-55 */
} trni_unit_proof;

/* norm[lane] is the square of the norm, ulp[lane] 2^23 times the lowest bit of `lines` numbers in each of 16 lanes,
 * `width` floats from line to line; lanes beyond `lanes` are zeros. */
#define TRNI_UNIT_STATE_PARAMS float *norm, float *ulp, const float *panel, size_t width, int lanes, int lines

enum { TRNI_UNIT_LANES = 16 };
#define TRNI_UNIT_NO_ULP 0x1p100f

TRNI_INLINE float trni_unit_ulp(uint32_t u) /* 2^23 times the lowest bit that is set; 0 of subnormals */
{
    const uint32_t m = u & ~TRNI_F32_SIGN, low = m & (0u - m), in_place = low < 0x800000u ? low : 0x800000u;
    return trni_float(m & TRNI_F32_INF) * (float)(int32_t)in_place;
}

TRNI_INLINE void trni_unit_state_body(TRNI_UNIT_STATE_PARAMS)
{
    for (int i = 0; i < TRNI_UNIT_LANES; i++) {
        norm[i] = 0;
        ulp[i] = TRNI_UNIT_NO_ULP;
    }
    for (; lines > 0; lines--, panel += width)
        for (int i = 0; i < lanes; i++) {
            const float x = panel[i], one = trni_unit_ulp(trni_bits(x));
            norm[i] = __builtin_fmaf(x, x, norm[i]);
            ulp[i] = x == 0 ? ulp[i] : one < ulp[i] ? one : ulp[i];
        }
}

/* ---- kernels ---- */

/* sum[16][width] goes on over `lines` lines of a strip [line][16] and a panel [line][width]: one product at a time, or
 * two or four that are summed first. */
#define TRNI_UNIT_GO_ON_PARAMS float *sum, const float *a, const float *b, int lines, int group, int width

TRNI_INLINE void trni_unit_go_on_row(float *__restrict s, const float *__restrict a, const float *__restrict b,
                                     int lines, int group, int width)
{
    for (int k = 0; k < lines; k += group, a += group * TRNI_UNIT_ROWS, b += group * width)
        for (int j = 0; j < width; j++) {
            float q = a[0] * b[j]; /* exact where it is used */
            for (int g = 1; g < group; g++) q = __builtin_fmaf(a[g * TRNI_UNIT_ROWS], b[g * width + j], q);
            s[j] = group == 1 ? __builtin_fmaf(a[0], b[j], s[j]) : s[j] + q;
        }
}

TRNI_INLINE void trni_unit_go_on_body(TRNI_UNIT_GO_ON_PARAMS)
{
    for (int i = 0; i < TRNI_UNIT_ROWS; i++) {
        if (group == 1)
            trni_unit_go_on_row(sum + i * width, a + i, b, lines, 1, width);
        else if (group == 2)
            trni_unit_go_on_row(sum + i * width, a + i, b, lines, 2, width);
        else
            trni_unit_go_on_row(sum + i * width, a + i, b, lines, 4, width);
    }
}
TRNI_DISPATCH_ONE(trni_unit_go_on, (TRNI_UNIT_GO_ON_PARAMS), (sum, a, b, lines, group, width))

/* out[16][width] = in + sum, or sum. */
TRNI_INLINE void trni_unit_sum_body(float *__restrict out, ptrdiff_t out_step, const float *in, ptrdiff_t in_step,
                                    const float *__restrict sum, int width)
{
    for (int i = 0; i < TRNI_UNIT_ROWS; i++, in = in ? in + in_step : in, out += out_step, sum += width)
        for (int j = 0; j < width; j++) out[j] = in ? in[j] + sum[j] : sum[j];
}
TRNI_DISPATCH_AVX2(trni_unit_sum,
                   (float *out, ptrdiff_t out_step, const float *in, ptrdiff_t in_step, const float *sum, int width),
                   (out, out_step, in, in_step, sum, width))

TRNI_DISPATCH_ONE(trni_unit_words, (TRNI_UNIT_WORDS_PARAMS), (word, panel, width, map, half))
TRNI_DISPATCH_ONE(trni_unit_turn, (uint32_t * out, const uint32_t *word, int rows), (out, word, rows))
TRNI_DISPATCH_ONE(trni_unit_state, (TRNI_UNIT_STATE_PARAMS), (norm, ulp, panel, width, lanes, lines))

#if TRNI_UNIT_SIMD
#include "../simd/unit_words_avx512.h"
#endif

/* What makes words and proofs, and goes on where tiles end. */
typedef struct trni_unit_kernels {
    trni_unit_words_fn *words;
    trni_unit_turn_fn *turn;
    trni_unit_state_fn *state;
    trni_unit_go_on_fn *go_on;
    trni_unit_sum_fn *sum;
} trni_unit_kernels;

TRNI_FN trni_unit_kernels trni_unit_kernels_of(trn_isa isa)
{
    trni_unit_kernels p = { trni_unit_words_portable, trni_unit_turn_portable, trni_unit_state_portable,
                            trni_unit_go_on_for(isa), trni_unit_sum_for(isa) };
#if TRNI_UNIT_SIMD
    if (isa == TRN_ISA_AVX512) {
        p.words = trni_simd_unit_words;
        p.turn = trni_simd_unit_turn;
        p.state = trni_simd_unit_state;
        p.go_on = trni_simd_unit_go_on;
    }
#endif
    return p;
}

/* ---- from numbers of lanes to a proof ---- */

/* (norm / ulp)^2: 0 of a lane of zeros, infinity where it is too large. (What is no number has no `half` below.) */
TRNI_INLINE float trni_unit_ratio(float norm, float ulp)
{
    const float inverse = 0x1p23f / ulp;
    return norm * inverse * inverse;
}

/* Of 16 lanes of a panel, all chains; *proof begins as zeros, half true, and holds the most of all lanes shown. */
TRNI_DRIVER void trni_unit_prove(trni_unit_proof *proof, const float *panel, size_t width, int lanes,
                                 const trni_unit_map *map, trni_unit_state_fn *state)
{
    float norm[TRNI_UNIT_LANES], ulp[TRNI_UNIT_LANES], all[TRNI_UNIT_LANES] = { 0 }, least[TRNI_UNIT_LANES];
    for (int i = 0; i < TRNI_UNIT_LANES; i++) least[i] = TRNI_UNIT_NO_ULP;
    for (int c = 0; c < map->chains; panel += (size_t)map->lines[c++] * width) {
        state(norm, ulp, panel, width, lanes, map->lines[c]);
        for (int i = 0; i < lanes; i++) {
            const float ratio = trni_unit_ratio(norm[i], ulp[i]);
            if (ratio > proof->chain[c]) proof->chain[c] = ratio;
            all[i] += norm[i];
            least[i] = ulp[i] < least[i] ? ulp[i] : least[i];
        }
    }
    for (int i = 0; i < lanes; i++) {
        const float ratio = trni_unit_ratio(all[i], least[i]);
        if (ratio > proof->whole) proof->whole = ratio;
        if (!(all[i] < 0x1p120f && least[i] >= 0x1p-32f)) proof->half = false; /* 2^-55 times 2^23 */
    }
}

TRNI_DRIVER trni_unit_proof trni_unit_no_proof(void)
{
    trni_unit_proof proof;
    memset(&proof, 0, sizeof proof);
    proof.half = true;
    return proof;
}

typedef enum trni_unit_mode {
    TRNI_UNIT_NEVER, /* vectors */
    TRNI_UNIT_HALF,  /* the first 16 steps of each chain, and vectors go on */
    TRNI_UNIT_CHAIN, /* each chain's sums are exact */
    TRNI_UNIT_WHOLE, /* and all of the tile's are */
    TRNI_UNIT_MODES
} trni_unit_mode;

/* Norms are sums of up to 512 squares, each rounded: less than 2^-14 of them is lost. */
TRNI_INLINE bool trni_unit_exact(float a, float b) { return (double)a * (double)b < 0x1p48 * (1 - 0x1p-12); }

TRNI_DRIVER trni_unit_mode trni_unit_mode_of(const trni_unit_proof *a, const trni_unit_proof *b,
                                             const trni_unit_map *map)
{
    if (!a->half || !b->half) return TRNI_UNIT_NEVER;
    if (trni_unit_exact(a->whole, b->whole)) return TRNI_UNIT_WHOLE;
    int exact = 0;
    while (exact < map->chains && trni_unit_exact(a->chain[exact], b->chain[exact])) exact++;
    return exact == map->chains ? TRNI_UNIT_CHAIN : map->half ? TRNI_UNIT_HALF : TRNI_UNIT_NEVER;
}

#endif /* TRNI_ARRAY_UNIT_WORDS_H */
