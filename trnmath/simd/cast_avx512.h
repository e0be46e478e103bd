/* simd/cast_avx512.h - the hottest casts of data/cast.h, and stores past the caches, in AVX-512.
 * Behind trn_convert.h. SPDX-License-Identifier: MIT
 *
 * SIMD kernels: here because they are faster than the plain C bodies, and they return the same bits. Blocks of 64; a
 * block
 * that holds a NaN first makes its NaNs canonical; the tail is a block that is filled up. Included by data/cast.h only,
 * after its plain kernels, and not at all under TRN_NO_INTRINSICS.
 *
 * VCVTNEPS2BF16 is not used: it reads subnormals as zero.
 */
#if defined(TRNI_DATA_CAST_H) && !defined(TRNI_SIMD_CAST_AVX512_H)
#define TRNI_SIMD_CAST_AVX512_H

#include <immintrin.h>

TRNI_SIMD_BEGIN

#define TRNI_SIMD512(name, params) TRNI_KERNEL_STREAM TRNI_TARGET_AVX512 static void name params
#define TRNI_CAST512(name) TRNI_SIMD512(name, (void *__restrict dst, const void *__restrict src, size_t n))
#define TRNI_INLINE512 static inline __attribute__((unused, always_inline)) TRNI_TARGET_AVX512

/* Fetches bytes from further on: the hardware's own prefetchers stop at pages and lose to this from memory (1.1 to 1.3
 * times the speed, measured, and at which distance). Nothing is read, so the address may lie behind the array. */
TRNI_INLINE512 void trni_ahead(const char *x, uintptr_t distance, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) _mm_prefetch((const char *)((uintptr_t)x + distance + i), _MM_HINT_T0);
}

/* Every NaN becomes 7fc00000 with its own sign, the others stay. */
TRNI_INLINE512 __m512 trni_canonical_512(__m512 x)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)TRNI_F32_SIGN));
    const __m512i quiet = _mm512_or_si512(sign, _mm512_set1_epi32((int)TRNI_F32_NAN));
    return _mm512_mask_mov_ps(x, nan, _mm512_castsi512_ps(quiet));
}

/* The same for 64 floats. A comparison of two floats is ordered when neither is a NaN: the usual block pays for two. */
TRNI_INLINE512 void trni_canonical_64(__m512 x[4])
{
    __mmask16 ordered = _mm512_cmp_ps_mask(x[0], x[1], _CMP_ORD_Q);
    ordered = _mm512_mask_cmp_ps_mask(ordered, x[2], x[3], _CMP_ORD_Q);
    if (ordered == 0xffff) return;
    for (int i = 0; i < 4; i++) x[i] = trni_canonical_512(x[i]);
}

TRNI_INLINE512 void trni_load_64(__m512 x[4], const char *from)
{
    for (int i = 0; i < 4; i++) x[i] = _mm512_loadu_ps(from + 64 * i);
    trni_canonical_64(x);
}

/* The last n codes of `from` bytes, to codes of `to` bytes: as a block of `whole` <= 64 that is filled up. */
TRNI_COLD void trni_cast_rest512(trni_cast *cast, size_t whole, char *dst, size_t to, const char *src, size_t from,
                                 size_t n)
{
    char in[64 * sizeof(float)], out[sizeof in];
    memset(in, 0, from * whole);
    memcpy(in, src, from * n);
    cast(out, in, whole);
    memcpy(dst, out, to * n);
}

/* 32 floats to BF16: the high halves and the low halves of a and b are blended into 16-bit lanes, in the order a0 b0
 * a1 b1 …, rounded there, and put into order. Up when low > 0x8000, or low = 0x8000 and high is odd. */
TRNI_INLINE512 __m512i trni_bf16_of_32(__m512 x, __m512 y, __m512i order)
{
    const __m512i a = _mm512_castps_si512(x), b = _mm512_castps_si512(y);
    const __m512i high = _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(a, 16), b);
    const __m512i low = _mm512_mask_blend_epi16(0xaaaaaaaau, a, _mm512_slli_epi32(b, 16));
    /* least = 0x8001 - (high & 1): the constants agree in bit 15, and only bit 0 asks for the complement of high */
    const __m512i least =
        _mm512_ternarylogic_epi32(high, _mm512_set1_epi16((short)0x8001), _mm512_set1_epi16((short)0x8000), 0x8c);
    const __mmask32 up = _mm512_cmpge_epu16_mask(low, least);
    return _mm512_permutexvar_epi16(order, _mm512_mask_sub_epi16(high, up, high, _mm512_set1_epi16(-1)));
}

TRNI_FN void trni_simd_f32_bf16(void *__restrict dst, const void *__restrict src, size_t n);

/* past: dst is on a cache line, and results bypass the caches. */
TRNI_SIMD512(trni_simd_f32_bf16_all, (void *__restrict dst, const void *__restrict src, size_t n, bool past))
{
    static const uint16_t in_order[32] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                           1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 };
    const __m512i order = _mm512_loadu_si512(in_order);
    const char *x = (const char *)src;
    char *y = (char *)dst;
    for (; n >= 64; n -= 64, x += 256, y += 128) {
        __m512 v[4];
        trni_load_64(v, x);
        const __m512i first = trni_bf16_of_32(v[0], v[1], order), second = trni_bf16_of_32(v[2], v[3], order);
        if (past) {
            trni_ahead(x, 8192, 256);
            _mm512_stream_si512((__m512i *)(void *)y, first);
            _mm512_stream_si512((__m512i *)(void *)(y + 64), second);
        } else {
            _mm512_storeu_si512(y, first);
            _mm512_storeu_si512(y + 64, second);
        }
    }
    if (n > 0) trni_cast_rest512(trni_simd_f32_bf16, 64, y, 2, x, 4, n);
}

TRNI_FN void trni_simd_f32_bf16(void *__restrict dst, const void *__restrict src, size_t n)
{
    trni_simd_f32_bf16_all(dst, src, n, false);
}

/* Past the caches: streaming stores need whole lines, so what comes before the first one is stored as usual. */
TRNI_FN void trni_simd_f32_bf16_past(void *__restrict dst, const void *__restrict src, size_t n)
{
    size_t head = (64 - ((uintptr_t)dst & 63)) % 64 / 2;
    if (head > n || (uintptr_t)dst % 2) head = n;
    trni_simd_f32_bf16_all(dst, src, head, false);
    trni_simd_f32_bf16_all((char *)dst + 2 * head, (const char *)src + 4 * head, n - head, true);
}

/* VCVTPS2PH with the rounding in the instruction: nearest even, subnormal results kept whatever MXCSR says. (All lanes
 * are named, because gcc's macro without a mask converts -1 to an unsigned type where -O0 lets the user see it.) */
TRNI_INLINE512 __m256i trni_f16_of_16(__m512 x)
{
    return _mm512_maskz_cvt_roundps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TRNI_INLINE512 void trni_f16_to_16(char *codes, __m512 x)
{
    _mm256_storeu_si256((__m256i *)(void *)codes, trni_f16_of_16(x));
}

/* VCVTPH2PS reads subnormals exactly whatever MXCSR says. (The form that raises no exception, because clang knows the
 * other as a widening, and then takes float comparisons of its result apart, element by element.) */
TRNI_INLINE512 __m512 trni_f32_of_16(const char *codes)
{
    const __m256i code = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    return _mm512_cvt_roundph_ps(code, _MM_FROUND_NO_EXC);
}

TRNI_INLINE512 __m512 trni_f32_of_16_f32(const char *codes) { return _mm512_loadu_ps(codes); }
TRNI_INLINE512 void trni_f32_to_16(char *codes, __m512 x) { _mm512_storeu_ps(codes, x); }

TRNI_INLINE512 __m512 trni_f32_of_16_bf16(const char *codes)
{
    const __m256i code = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, code), 16));
}

TRNI_INLINE512 __m512 trni_f32_of_16_tf32(const char *codes)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(codes), _mm512_set1_epi32(~0x1fff)));
}

/* As trni_tf32_from_number: a canonical NaN stays what it is. */
TRNI_INLINE512 __m512 trni_tf32_of_512(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, u, 13), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0xfff)), odd);
    return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(~0x1fff)));
}
TRNI_INLINE512 void trni_tf32_to_16(char *codes, __m512 x) { _mm512_storeu_ps(codes, trni_tf32_of_512(x)); }

/* Sixteen are read as floats, and written; codes of `from` and `to` bytes. */
#define TRNI_CASTS512(name, from, read, to, write)                                                                     \
    TRNI_CAST512(name)                                                                                                 \
    {                                                                                                                  \
        const char *x = (const char *)src;                                                                             \
        char *y = (char *)dst;                                                                                         \
        for (; n >= 64; n -= 64, x += 64 * (from), y += 64 * (to)) {                                                   \
            __m512 v[4];                                                                                               \
            for (int i = 0; i < 4; i++) v[i] = read(x + 16 * (from)*i);                                                \
            trni_canonical_64(v);                                                                                      \
            for (int i = 0; i < 4; i++) write(y + 16 * (to)*i, v[i]);                                                  \
        }                                                                                                              \
        TRNI_ROLLED for (; n >= 16; n -= 16, x += 16 * (from), y += 16 * (to)) write(y, trni_canonical_512(read(x)));  \
        if (n > 0) trni_cast_rest512(name, 16, y, to, x, from, n);                                                     \
    }
TRNI_CASTS512(trni_simd_f32_f16, 4, trni_f32_of_16_f32, 2, trni_f16_to_16)
TRNI_CASTS512(trni_simd_f32_tf32, 4, trni_f32_of_16_f32, 4, trni_tf32_to_16)
TRNI_CASTS512(trni_simd_f16_f32, 2, trni_f32_of_16, 4, trni_f32_to_16)
TRNI_CASTS512(trni_simd_bf16_f32, 2, trni_f32_of_16_bf16, 4, trni_f32_to_16)
TRNI_CASTS512(trni_simd_tf32_f32, 4, trni_f32_of_16_tf32, 4, trni_f32_to_16)
#undef TRNI_CASTS512

/* Packing takes four registers' elements in turn. */
TRNI_INLINE512 __m512i trni_bytes512_order(void)
{
    static const uint32_t in_order[16] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 };
    return _mm512_loadu_si512(in_order);
}

/* To formats of at most 8 bits. p = 2^e with e the exponent of x, or of the least normal number; then p · 2^(23-M) + x,
 * with the sign of x, has its last bit where the code has: one addition rounds, by its own rounding mode, normal and
 * subnormal results alike. Its pattern's high half is the exponent above 7 zeros, its low half the significand with the
 * leading one at bit M; one multiply-add joins the two in 16 bits, 7 - M bits above the last place. A subnormal x may
 * count as zero: it lies far below the least code (TRNI_RULE_BIAS). */
typedef struct trni_bytes512 {
    __m512 least, up;
    __m512i keep, join, offset, limit, alarm, sign, order, to_units;
    __m128i shift, sign_shift, field_shift;
} trni_bytes512;

TRNI_INLINE512 trni_bytes512 trni_bytes512_of(const trni_rule *r)
{
    const int M = 23 - r->cut, lowest = ((r->least_normal >> 23) + r->cut) << 7; /* the pattern of +0 */
    int alarm = 0xffff; /* infinities become the limit, unless that is for finite numbers only */
    if ((uint32_t)r->limit != r->overflow) alarm = (0xff << 7) - lowest;
    if (r->beyond) alarm = (r->limit << (7 - M)) + 1; /* stochastic: what lies beyond the limit has two fates */
    trni_bytes512 k;
    k.least = _mm512_castsi512_ps(_mm512_set1_epi32(r->least_normal));
    k.up = _mm512_castsi512_ps(_mm512_set1_epi32((127 + r->cut) << 23));
    k.keep = _mm512_set1_epi32((int)0xff800000);
    k.join = _mm512_set1_epi32(1 << 16 | 1 << (7 - M));
    k.offset = _mm512_set1_epi16((short)lowest);
    k.limit = _mm512_set1_epi16((short)(r->limit << (7 - M)));
    k.alarm = _mm512_set1_epi16((short)alarm);
    k.sign = _mm512_set1_epi8((char)r->sign);
    k.order = trni_bytes512_order();
    k.to_units = _mm512_set1_epi32((int)((uint32_t)(2 * 127 + 32 + M) << 23));
    k.shift = _mm_cvtsi32_si128(7 - M);
    k.sign_shift = _mm_cvtsi32_si128(r->sign_right - 24);
    k.field_shift = _mm_cvtsi32_si128(32 - (r->cut + r->drop - r->lift)); /* 32 - n */
    return k;
}

/* (gcc's macro for -O0 passes a mask of all lanes to a signed parameter, where the user would be warned of it.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
TRNI_INLINE512 __m512 trni_binade_512(const trni_bytes512 *k, __m512 x)
{
    const __m512 t = _mm512_range_ps(x, k->least, 0x03); /* the larger magnitude, with the sign of x */
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(t), k->keep));
}
#pragma GCC diagnostic pop

TRNI_INLINE512 __m512i trni_nearest_16(const trni_bytes512 *k, __m512 x)
{
    const __m512 p = trni_binade_512(k, x);
    const __m512 s = _mm512_fmadd_round_ps(p, k->up, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_madd_epi16(_mm512_castps_si512(s), k->join);
}

/* Toward zero first. What that cut off is exact, times 2^32 over the last place too, and its whole part plus the field
 * carries where the magnitude grows: the pattern counts on by one. (`to_units` less the pattern of ±2^e is the pattern
 * of ±2^(32+M-e): it makes the rest positive.) */
TRNI_INLINE512 __m512i trni_stochastic_16(const trni_bytes512 *k, __m512 x, const uint32_t *field)
{
    const __m512 p = trni_binade_512(k, x);
    const __m512 s = _mm512_fmadd_round_ps(p, k->up, x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m512 rest = _mm512_sub_ps(x, _mm512_fnmadd_ps(p, k->up, s));
    const __m512 units = _mm512_castsi512_ps(_mm512_sub_epi32(k->to_units, _mm512_castps_si512(p)));
    const __m512i fraction = _mm512_cvttps_epu32(_mm512_mul_ps(rest, units));
    const __m512i random = _mm512_sll_epi32(_mm512_loadu_si512(field), k->field_shift);
    const __mmask16 up = _mm512_cmplt_epu32_mask(_mm512_add_epi32(fraction, random), random);
    const __m512i code = _mm512_castps_si512(s);
    return _mm512_madd_epi16(_mm512_mask_sub_epi32(code, up, code, _mm512_set1_epi32(-1)), k->join);
}

/* The magnitudes of 32 codes, 7 - M bits up, not yet limited. */
TRNI_INLINE512 __m512i trni_magnitudes_32(const trni_bytes512 *k, const __m512 x[2], const bool stochastic,
                                          const uint32_t *field)
{
    const __m512i first = stochastic ? trni_stochastic_16(k, x[0], field) : trni_nearest_16(k, x[0]);
    const __m512i second = stochastic ? trni_stochastic_16(k, x[1], field + 16) : trni_nearest_16(k, x[1]);
    const __m512i both = _mm512_and_si512(_mm512_packs_epi32(first, second), _mm512_set1_epi16(0x7fff));
    return _mm512_sub_epi16(both, k->offset);
}

TRNI_INLINE512 __m512i trni_high_bytes_64(const __m512 x[4]) /* their top bits are the signs */
{
    return _mm512_packs_epi16(_mm512_packs_epi32(_mm512_castps_si512(x[0]), _mm512_castps_si512(x[1])),
                              _mm512_packs_epi32(_mm512_castps_si512(x[2]), _mm512_castps_si512(x[3])));
}

/* 64 numbers to 64 codes; false when one of them is a NaN, or where the limit is not the whole answer. */
TRNI_INLINE512 bool trni_bytes_64(const trni_bytes512 *k, __m512i *codes, const __m512 x[4], const bool stochastic,
                                  const uint32_t *field)
{
    const __m512i a = trni_magnitudes_32(k, x, stochastic, field);
    const __m512i b = trni_magnitudes_32(k, x + 2, stochastic, stochastic ? field + 32 : field);
    const __m512i code = _mm512_packus_epi16(_mm512_srl_epi16(_mm512_min_epu16(a, k->limit), k->shift),
                                             _mm512_srl_epi16(_mm512_min_epu16(b, k->limit), k->shift));
    const __m512i sign = _mm512_srl_epi16(trni_high_bytes_64(x), k->sign_shift);
    const __m512i both = _mm512_ternarylogic_epi32(code, sign, k->sign, 0xf8); /* code | (sign & k->sign) */
    *codes = _mm512_permutexvar_epi32(k->order, both);
    const __mmask16 ordered =
        _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x[0], x[1], _CMP_ORD_Q), x[2], x[3], _CMP_ORD_Q);
    const __mmask32 calm = _mm512_mask_cmplt_epu16_mask(_mm512_cmplt_epu16_mask(a, k->alarm), b, k->alarm);
    return ordered == 0xffff && calm == 0xffffffffu;
}

/* As many blocks of 64 as can be done in a row. (A call inside the loop would drive
 * its constants from the registers: 1.25 times the time, measured.) */
TRNI_INLINE512 void trni_blocks_512(const trni_rule *rule, trni_cast_rest *s, const bool stochastic, trni_fast *self)
{
    const trni_bytes512 k = trni_bytes512_of(rule);
    const char *x = s->src;
    const bool past = s->past;
    size_t at = 0;
    for (; s->n - at >= 64; at += 64) {
        __m512 v[4];
        __m512i line;
        for (int i = 0; i < 4; i++) v[i] = _mm512_loadu_ps(x + 4 * at + 64 * (size_t)i);
        if (past) trni_ahead(x + 4 * at, 16384, 256);
        if (!trni_bytes_64(&k, &line, v, stochastic, stochastic ? s->field + at : NULL)) break;
        if (past)
            _mm512_stream_si512((__m512i *)(void *)(s->dst + at), line);
        else
            _mm512_storeu_si512(s->dst + at, line);
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 64) trni_cast_last(rule, s, 1, 64, self);
}

TRNI_SIMD512(trni_simd_nearest, (const trni_rule *rule, trni_cast_rest *s))
{
    trni_blocks_512(rule, s, false, trni_simd_nearest);
}

TRNI_SIMD512(trni_simd_stochastic, (const trni_rule *rule, trni_cast_rest *s))
{
    trni_blocks_512(rule, s, true, trni_simd_stochastic);
}

/* To E8M0, nearest: half a binade carries into the exponent, and from 0x600000 on also that of the subnormals. */
TRNI_INLINE512 __m512i trni_scale_16(const trni_rule *r, __m512i x)
{
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 enough = _mm512_cmpgt_epi32_mask(x, _mm512_set1_epi32(0x5fffff));
    const __mmask16 positive = _mm512_cmpgt_epi32_mask(x, _mm512_setzero_si512());
    const __mmask16 special = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32((int)TRNI_F32_INF - 1));
    const __m512i sum = _mm512_maskz_add_epi32(enough, x, _mm512_set1_epi32(0x400000));
    const __m512i code = _mm512_min_epi32(_mm512_srli_epi32(sum, 23), _mm512_set1_epi32(r->limit));
    const __m512i number = _mm512_mask_mov_epi32(_mm512_set1_epi32((int)r->nothing), positive, code);
    return _mm512_mask_mov_epi32(number, special, _mm512_set1_epi32((int)r->nan));
}

TRNI_SIMD512(trni_simd_scale, (const trni_rule *rule, trni_cast_rest *s))
{
    const trni_rule r = *rule;
    const __m512i order = trni_bytes512_order();
    size_t at = 0;
    for (; s->n - at >= 64; at += 64) {
        __m512i v[4];
        for (size_t i = 0; i < 4; i++) v[i] = trni_scale_16(&r, _mm512_loadu_si512(s->src + 4 * at + 64 * i));
        const __m512i both = _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
        _mm512_storeu_si512(s->dst + at, _mm512_permutexvar_epi32(order, both));
    }
    trni_cast_done(s, 1, at);
    if (s->n > 0 && s->n < 64) trni_cast_last(rule, s, 1, 64, trni_simd_scale);
}

/* (gcc's macros for -O0 pass masks of all lanes to signed parameters, where the user would be warned of it.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
/* Integers, nearest even by the rounding in the instruction, and saturating. VCVTPS2DQ has one answer for all that it
 * cannot represent, so what is 2^31 and more is set apart; VCVTPS2UDQ gets NaN and negative numbers as 0, and answers
 * all ones above. The narrowing moves saturate by themselves. */
TRNI_INLINE512 __m512i trni_signed_512(__m512 x)
{
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    const __mmask16 beyond = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
    const __m512i whole = _mm512_maskz_cvt_roundps_epi32(number, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_mask_mov_epi32(whole, beyond, _mm512_set1_epi32(0x7fffffff));
}

TRNI_INLINE512 __m512i trni_unsigned_512(__m512 x)
{
    const __mmask16 positive = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_maskz_cvt_roundps_epu32(positive, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TRNI_INLINE512 __m512 trni_number_512(const trni_reading *r, __m512i v)
{
    const __mmask16 all = 0xffff;
    return r->mask ? _mm512_maskz_cvt_roundepi32_ps(all, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                   : _mm512_maskz_cvt_roundepu32_ps(all, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

/* 16 codes; all lanes are named, because g++ 12 warns of its own header's forms without a mask. */
TRNI_INLINE512 void trni_store_integers(const trni_rule *r, char *y, __m512 x)
{
    const bool is_signed = r->bottom != 0;
    const __m512i v = is_signed ? trni_signed_512(x) : trni_unsigned_512(x);
    if (r->top == 0x7f)
        _mm_storeu_si128((__m128i *)(void *)y, _mm512_maskz_cvtsepi32_epi8(0xffff, v));
    else if (r->top == 0xff)
        _mm_storeu_si128((__m128i *)(void *)y, _mm512_maskz_cvtusepi32_epi8(0xffff, v));
    else if (r->top == 0x7fff)
        _mm256_storeu_si256((__m256i *)(void *)y, _mm512_maskz_cvtsepi32_epi16(0xffff, v));
    else if (r->top == 0xffff)
        _mm256_storeu_si256((__m256i *)(void *)y, _mm512_maskz_cvtusepi32_epi16(0xffff, v));
    else
        _mm512_storeu_si512(y, v);
}

TRNI_SIMD512(trni_simd_integers, (const trni_rule *rule, trni_cast_rest *s))
{
    const trni_rule r = *rule;
    const size_t bytes = r.top <= 0xff ? 1 : r.top <= 0xffff ? 2 : 4;
    const char *x = s->src;
    char *y = s->dst, last[64];
    size_t n = s->n;
    for (; n >= 16; n -= 16, x += 64, y += 16 * bytes) trni_store_integers(&r, y, _mm512_loadu_ps(x));
    trni_store_integers(&r, last, _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x));
    memcpy(y, last, n * bytes);
    trni_cast_done(s, bytes, s->n);
}

/* 32-bit integers, with the same rounding. */
TRNI_SIMD512(trni_simd_read_word,
             (const trni_reading *reading, void *__restrict f32, const void *__restrict src, size_t n))
{
    const trni_reading r = *reading;
    const char *x = (const char *)src;
    char *y = (char *)f32;
    for (; n >= 16; n -= 16, x += 64, y += 64) _mm512_storeu_ps(y, trni_number_512(&r, _mm512_loadu_si512(x)));
    const __mmask16 lanes = (__mmask16)((1u << n) - 1);
    _mm512_mask_storeu_ps(y, lanes, trni_number_512(&r, _mm512_maskz_loadu_epi32(lanes, x)));
}

/* A table of 256 entries of 16 bits is eight registers; two look up 64 entries at once, by the low six bits. */
typedef struct trni_table512 {
    __m512i part[8];
} trni_table512;

TRNI_INLINE512 trni_table512 trni_table512_load(const uint16_t *table)
{
    trni_table512 t;
    for (int i = 0; i < 8; i++) t.part[i] = _mm512_loadu_si512(table + 32 * i);
    return t;
}

TRNI_INLINE512 __m512i trni_lookup_32(const trni_table512 *t, __m512i code)
{
    const __mmask32 bit6 = _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x40));
    const __mmask32 bit7 = _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x80));
    __m512i quarter[4];
    for (int i = 0; i < 4; i++) quarter[i] = _mm512_permutex2var_epi16(t->part[2 * i], code, t->part[2 * i + 1]);
    const __m512i low = _mm512_mask_mov_epi16(quarter[0], bit6, quarter[1]);
    const __m512i high = _mm512_mask_mov_epi16(quarter[2], bit6, quarter[3]);
    return _mm512_mask_mov_epi16(low, bit7, high);
}

/* As the upper halves of 32-bit words: groups of four change places first, so that interleaving with zeros inside each
 * quarter of a register puts all into order. */
TRNI_SIMD512(trni_simd_lookup_word_all, (const uint16_t *table, char *y, const char *x, size_t n, bool past))
{
    const trni_table512 t = trni_table512_load(table);
    const __m256i groups = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i zero = _mm512_setzero_si512();
    for (; n >= 32; n -= 32, x += 32, y += 128) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
        const __m512i v = trni_lookup_32(&t, _mm512_cvtepu8_epi16(_mm256_permutevar8x32_epi32(bytes, groups)));
        const __m512i first = _mm512_unpacklo_epi16(zero, v), second = _mm512_unpackhi_epi16(zero, v);
        if (past) {
            _mm512_stream_si512((__m512i *)(void *)y, first);
            _mm512_stream_si512((__m512i *)(void *)(y + 64), second);
        } else {
            _mm512_storeu_si512(y, first);
            _mm512_storeu_si512(y + 64, second);
        }
    }
    for (; n > 0; n--, x++, y += 4) {
        const uint32_t bits = (uint32_t)table[*(const unsigned char *)x] << 16;
        memcpy(y, &bits, sizeof bits);
    }
}

TRNI_FN void trni_simd_lookup_word(const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n)
{
    trni_simd_lookup_word_all(table, (char *)dst, (const char *)src, n, false);
}

TRNI_FN void trni_simd_lookup_word_past(const uint16_t *table, void *__restrict dst, const void *__restrict src,
                                        size_t n)
{
    size_t head = (64 - ((uintptr_t)dst & 63)) % 64 / 4;
    if (head > n || (uintptr_t)dst % 4) head = n;
    trni_simd_lookup_word_all(table, (char *)dst, (const char *)src, head, false);
    trni_simd_lookup_word_all(table, (char *)dst + 4 * head, (const char *)src + head, n - head, true);
}

TRNI_SIMD512(trni_simd_lookup_half, (const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n))
{
    const trni_table512 t = trni_table512_load(table);
    const char *x = (const char *)src;
    char *y = (char *)dst;
    for (; n >= 32; n -= 32, x += 32, y += 64) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
        _mm512_storeu_si512(y, trni_lookup_32(&t, _mm512_cvtepu8_epi16(bytes)));
    }
    trni_lookup_half(table, y, x, n);
}

TRNI_SIMD512(trni_simd_lookup_byte, (const uint16_t *table, void *__restrict dst, const void *__restrict src, size_t n))
{
    const trni_table512 t = trni_table512_load(table);
    const char *x = (const char *)src;
    char *y = (char *)dst;
    for (; n >= 32; n -= 32, x += 32, y += 32) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
        const __m512i code = trni_lookup_32(&t, _mm512_cvtepu8_epi16(bytes));
        _mm256_storeu_si256((__m256i *)(void *)y, _mm512_cvtepi16_epi8(code));
    }
    trni_lookup_byte(table, y, x, n);
}

/* Whole cache lines leave through write-combining buffers, so that dst is neither read nor kept in the caches.
 * Meanwhile `ahead`, where the next values will come from, is fetched, `per_line` bytes for each line written. */
TRNI_SIMD512(trni_simd_stream,
             (void *__restrict dst, const void *__restrict src, size_t bytes, const char *ahead, size_t per_line))
{
    const char *x = (const char *)src;
    char *y = (char *)dst;
    size_t head = (64 - ((uintptr_t)y & 63)) & 63;
    if (head > bytes) head = bytes;
    memcpy(y, x, head);
    for (x += head, y += head, bytes -= head; bytes >= 64; bytes -= 64, x += 64, y += 64, ahead += per_line) {
        trni_ahead(ahead, 12288, per_line);
        _mm512_stream_si512((__m512i *)(void *)y, _mm512_loadu_si512(x));
    }
    memcpy(y, x, bytes);
}

/* Later ordinary stores, and other threads after a barrier, must find the lines written. */
TRNI_SIMD512(trni_simd_fence, (void)) { _mm_sfence(); }

#undef TRNI_SIMD512
#undef TRNI_CAST512
#undef TRNI_INLINE512
TRNI_SIMD_END
#endif /* TRNI_SIMD_CAST_AVX512_H */
