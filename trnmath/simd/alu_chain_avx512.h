/* simd/alu_chain_avx512.h - one or two operators in one pass over memory, their numbers in registers all the way.
 * Behind trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body (1.5 to 2.5 times the speed: that one keeps blocks in memory between
 * operators). Included by engine/alu_chain.h only, and not at all under TRN_NO_INTRINSICS.
 */
#if defined(TRNI_ENGINE_ALU_CHAIN_H) && !defined(TRNI_SIMD_ALU_CHAIN_AVX512_H)
#define TRNI_SIMD_ALU_CHAIN_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#define TRNI_CHAIN512 __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline

enum { TRNI_CHAIN512_BLOCK = 64 };

/* 64 numbers. */
typedef struct trni_chain512 {
    __m512 v[4];
} trni_chain512;

#if TRNI_CLANG
#define TRNI_CHAIN512_EACH _Pragma("clang loop unroll(full)") for (int k = 0; k < 4; k++)
#else
#define TRNI_CHAIN512_EACH _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
#endif

TRNI_CHAIN512 __m512 trni_number512(__m512 r)
{
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32((int)TRNI_F32_NAN));
    return _mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(r, r, _CMP_UNORD_Q), nan);
}

TRNI_CHAIN512 __m512 trni_truth512(unsigned mask) { return _mm512_maskz_mov_ps((__mmask16)mask, _mm512_set1_ps(1.0f)); }

TRNI_CHAIN512 unsigned trni_compare512(__m512 x, __m512 y, const int how)
{
    return how == 0   ? _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ)
           : how == 1 ? _mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ)
           : how == 2 ? _mm512_cmp_ps_mask(x, y, _CMP_GE_OQ)
           : how == 3 ? _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ)
           : how == 4 ? _mm512_cmp_ps_mask(x, y, _CMP_LE_OQ)
                      : _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ);
}

TRNI_CHAIN512 unsigned trni_true512(__m512 x) { return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ); }
TRNI_CHAIN512 unsigned trni_nan512(__m512 x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }

/* x where it wins, else y. */
TRNI_CHAIN512 __m512 trni_pick512(unsigned wins, __m512 x, __m512 y)
{
    return trni_number512(_mm512_mask_mov_ps(y, (__mmask16)wins, x));
}

/* Zeros of both signs meet in +0 or -0; other equal numbers have equal bits. */
TRNI_CHAIN512 __m512 trni_extreme512(unsigned wins, __m512 x, __m512 y, bool most)
{
    const __mmask16 tie = (__mmask16)trni_compare512(x, y, 0);
    const __m512 r = _mm512_mask_mov_ps(y, (__mmask16)(wins | trni_nan512(y)), x);
    return trni_number512(most ? _mm512_mask_and_ps(r, tie, x, y) : _mm512_mask_or_ps(r, tie, x, y));
}

/* As TRNI_ALU_NUMBERS. */
#define TRNI_CHAIN512_NUMBERS(X)                                                                                       \
    X(ADD, trni_number512(_mm512_add_ps(x, y)))                                                                        \
    X(SUBTRACT, trni_number512(_mm512_sub_ps(x, y)))                                                                   \
    X(MULTIPLY, trni_number512(_mm512_mul_ps(x, y)))                                                                   \
    X(MAXIMUM, trni_extreme512(trni_compare512(x, y, 3), x, y, true))                                                  \
    X(MINIMUM, trni_extreme512(trni_compare512(x, y, 5), x, y, false))                                                 \
    X(EQUAL, trni_truth512(trni_compare512(x, y, 0)))                                                                  \
    X(NOT_EQUAL, trni_truth512(trni_compare512(x, y, 1)))                                                              \
    X(GREATER_EQUAL, trni_truth512(trni_compare512(x, y, 2)))                                                          \
    X(GREATER, trni_truth512(trni_compare512(x, y, 3)))                                                                \
    X(LESS_EQUAL, trni_truth512(trni_compare512(x, y, 4)))                                                             \
    X(LESS, trni_truth512(trni_compare512(x, y, 5)))                                                                   \
    X(LOGICAL_AND, trni_truth512(trni_true512(x) & trni_true512(y)))                                                   \
    X(LOGICAL_OR, trni_truth512(trni_true512(x) | trni_true512(y)))                                                    \
    X(LOGICAL_XOR, trni_truth512(trni_true512(x) ^ trni_true512(y)))                                                   \
    X(ABS_MAX, trni_pick512(trni_compare512(_mm512_abs_ps(x), _mm512_abs_ps(y), 3) | trni_nan512(y), x, y))            \
    X(ABS_MIN, trni_pick512(trni_compare512(_mm512_abs_ps(x), _mm512_abs_ps(y), 5) | trni_nan512(y), x, y))            \
    X(ABS, trni_number512(_mm512_abs_ps(x)))                                                                           \
    X(SQUARE, trni_number512(_mm512_mul_ps(x, x)))                                                                     \
    X(RELU, trni_number512(                                                                                            \
                _mm512_mask_mov_ps(x, (__mmask16)trni_compare512(x, _mm512_setzero_ps(), 4), _mm512_setzero_ps())))    \
    X(RECIPROCAL, trni_number512(_mm512_div_ps(_mm512_set1_ps(1.0f), x)))                                              \
    X(LOGICAL_NOT, trni_truth512(trni_compare512(x, _mm512_setzero_ps(), 0)))

TRNI_CHAIN512 void trni_operate512(trn_alu op, trni_chain512 *to, const trni_chain512 *a, const trni_chain512 *b)
{
#define TRNI_CHAIN512_CASE(name, result)                                                                               \
    case TRN_ALU_##name:                                                                                               \
        TRNI_CHAIN512_EACH                                                                                             \
        {                                                                                                              \
            const __m512 x = a->v[k], y = b->v[k];                                                                     \
            (void)y;                                                                                                   \
            to->v[k] = result;                                                                                         \
        }                                                                                                              \
        break;
    switch (op) {
        TRNI_CHAIN512_NUMBERS(TRNI_CHAIN512_CASE)
    default: break;
    }
#undef TRNI_CHAIN512_CASE
}

/* Pairs of bfloat16 are words, as in the plain C body. */
TRNI_CHAIN512 trni_chain512 trni_chain_load512(const void *x, bool half, bool pairs)
{
    const char *at = (const char *)x;
    trni_chain512 r;
    if (!half) {
        TRNI_CHAIN512_EACH r.v[k] = _mm512_loadu_ps(at + 64 * k);
    } else if (pairs) {
        const __m512i p = _mm512_loadu_si512(at), q = _mm512_loadu_si512(at + 64),
                      upper = _mm512_set1_epi32((int)0xffff0000u);
        r.v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(p, 16));
        r.v[1] = _mm512_castsi512_ps(_mm512_and_si512(p, upper));
        r.v[2] = _mm512_castsi512_ps(_mm512_slli_epi32(q, 16));
        r.v[3] = _mm512_castsi512_ps(_mm512_and_si512(q, upper));
    } else {
        TRNI_CHAIN512_EACH
        {
            const __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32 * k));
            r.v[k] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
        }
    }
    return r;
}

/* The bfloat16 number in the upper half. */
TRNI_CHAIN512 __m512i trni_chain_half512(__m512 r)
{
    const __m512i u = _mm512_castps_si512(r), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
}

TRNI_CHAIN512 __m512i trni_chain_pair512(__m512 low, __m512 high)
{
    const __mmask32 upper = 0xaaaaaaaau;
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(trni_chain_half512(low), 16), upper, trni_chain_half512(high));
}

/* past: at is a multiple of 64, and whole lines leave for memory. */
TRNI_CHAIN512 void trni_chain_line512(char *at, bool past, __m512i line)
{
    if (past)
        _mm512_stream_si512((__m512i *)(void *)at, line);
    else
        _mm512_storeu_si512(at, line);
}

TRNI_CHAIN512 void trni_chain_store512(char *at, const trni_chain *c, bool pairs, const trni_chain512 *x)
{
    if (!c->to_half) {
        TRNI_CHAIN512_EACH trni_chain_line512(at + 64 * k, c->past, _mm512_castps_si512(x->v[k]));
    } else if (pairs) {
        trni_chain_line512(at, c->past, trni_chain_pair512(x->v[0], x->v[1]));
        trni_chain_line512(at + 64, c->past, trni_chain_pair512(x->v[2], x->v[3]));
    } else {
        __m256i h[4];
        TRNI_CHAIN512_EACH h[k] = _mm512_cvtepi32_epi16(_mm512_srli_epi32(trni_chain_half512(x->v[k]), 16));
        trni_chain_line512(at, c->past, _mm512_inserti64x4(_mm512_castsi256_si512(h[0]), h[1], 1));
        trni_chain_line512(at + 64, c->past, _mm512_inserti64x4(_mm512_castsi256_si512(h[2]), h[3], 1));
    }
}

TRNI_CHAIN512 trni_chain512 trni_chain_wide512(float value)
{
    trni_chain512 r;
    TRNI_CHAIN512_EACH r.v[k] = _mm512_set1_ps(value);
    return r;
}

/* Blocks of 64; returns how many elements these are. */
TRNI_KERNEL_STREAM TRNI_TARGET_AVX512 static size_t trni_simd_chain_avx512(const trni_chain *c, void *r, const void *x,
                                                                           const void *y, size_t n)
{
    const bool pairs = c->from_half && c->to_half && (!y || c->other_half);
    const size_t from = c->from_half ? 2 : 4, to = c->to_half ? 2 : 4, other = c->other_half ? 2 : 4;
    const trni_chain_step s0 = c->step[0], s1 = c->step[1];
    const bool two = c->steps == 2;
    const trni_chain512 wide0 = trni_chain_wide512(c->value[0]), wide1 = trni_chain_wide512(c->value[1]);
    size_t i = 0;
    for (; i + TRNI_CHAIN512_BLOCK <= n; i += TRNI_CHAIN512_BLOCK) {
        trni_chain512 p = trni_chain_load512((const char *)x + i * from, c->from_half, pairs), q = wide0;
        if (s0.tensor) q = trni_chain_load512((const char *)y + i * other, c->other_half, pairs);
        if (s0.reverse)
            trni_operate512(s0.op, &p, &q, &p);
        else
            trni_operate512(s0.op, &p, &p, &q);
        if (two) {
            q = wide1;
            if (s1.tensor) q = trni_chain_load512((const char *)y + i * other, c->other_half, pairs);
            if (s1.reverse)
                trni_operate512(s1.op, &p, &q, &p);
            else
                trni_operate512(s1.op, &p, &p, &q);
        }
        trni_chain_store512((char *)r + i * to, c, pairs, &p);
    }
    return i;
}

#undef TRNI_CHAIN512_NUMBERS
#undef TRNI_CHAIN512_EACH
#undef TRNI_CHAIN512
TRNI_SIMD_END
#endif /* TRNI_SIMD_ALU_CHAIN_AVX512_H */
