/* simd/act_avx512.h - the tables of trn_act.h in AVX-512: sixteen arguments at a time.
 * Behind trn_act.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body. Included by engine/act.h only, not at all under TRN_NO_INTRINSICS.
 *
 * Rows of four coefficients come by sixteen loads and a transposition, which is faster here than four gathers; up to
 * sixteen buckets (the power laws) are looked up in registers.
 */
#if defined(TRNI_ENGINE_ACT_H) && !defined(TRNI_SIMD_ACT_AVX512_H)
#define TRNI_SIMD_ACT_AVX512_H

#include <immintrin.h>

#define TRNI_INLINE512 __attribute__((unused, always_inline)) TRNI_TARGET_AVX512 static inline

typedef struct trni_act_cubic512 {
    __m512 c[4];
} trni_act_cubic512;

TRNI_INLINE512 __m512 trni_act_line512(const char *a, const char *b, const char *c, const char *d)
{
#define TRNI_ACT_ROW(x) _mm_loadu_ps((const float *)(const void *)(x))
    __m512 r = _mm512_castps128_ps512(TRNI_ACT_ROW(a));
    r = _mm512_mask_broadcast_f32x4(r, 0x00f0, TRNI_ACT_ROW(b));
    r = _mm512_mask_broadcast_f32x4(r, 0x0f00, TRNI_ACT_ROW(c));
    return _mm512_mask_broadcast_f32x4(r, 0xf000, TRNI_ACT_ROW(d));
#undef TRNI_ACT_ROW
}

/* The rows of sixteen arguments, `at` bytes into the list. Two places are loaded at a time, because loads are what
 * there are most of. */
TRNI_INLINE512 trni_act_cubic512 trni_act_rows512(const trn_act_bucket *bucket, const int32_t at[16])
{
    const char *list = (const char *)bucket;
    uint64_t two[8];
    memcpy(two, at, sizeof two);
#define TRNI_ACT_EVEN(i) (list + (uint32_t)two[i])
#define TRNI_ACT_ODD(i) (list + (two[i] >> 32))
    const __m512 r0 = trni_act_line512(TRNI_ACT_EVEN(0), TRNI_ACT_EVEN(2), TRNI_ACT_EVEN(4), TRNI_ACT_EVEN(6));
    const __m512 r1 = trni_act_line512(TRNI_ACT_ODD(0), TRNI_ACT_ODD(2), TRNI_ACT_ODD(4), TRNI_ACT_ODD(6));
    const __m512 r2 = trni_act_line512(TRNI_ACT_EVEN(1), TRNI_ACT_EVEN(3), TRNI_ACT_EVEN(5), TRNI_ACT_EVEN(7));
    const __m512 r3 = trni_act_line512(TRNI_ACT_ODD(1), TRNI_ACT_ODD(3), TRNI_ACT_ODD(5), TRNI_ACT_ODD(7));
#undef TRNI_ACT_EVEN
#undef TRNI_ACT_ODD
    const __m512 low01 = _mm512_unpacklo_ps(r0, r1), high01 = _mm512_unpackhi_ps(r0, r1);
    const __m512 low23 = _mm512_unpacklo_ps(r2, r3), high23 = _mm512_unpackhi_ps(r2, r3);
    trni_act_cubic512 f;
    f.c[0] = _mm512_shuffle_ps(low01, low23, 0x44);
    f.c[1] = _mm512_shuffle_ps(low01, low23, 0xee);
    f.c[2] = _mm512_shuffle_ps(high01, high23, 0x44);
    f.c[3] = _mm512_shuffle_ps(high01, high23, 0xee);
    return f;
}

TRNI_INLINE512 __m512 trni_act_horner512(const trni_act_cubic512 *f, __m512 c0, __m512 d)
{
    return _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(f->c[3], d, f->c[2]), d, f->c[1]), d, c0);
}

TRNI_INLINE512 __m512i trni_act_bits512(__m512 x) { return _mm512_castps_si512(x); }

TRNI_INLINE512 __m512i trni_act_set512(uint32_t u) { return _mm512_set1_epi32((int)u); }

/* Sixteen numbers, loaded once: gcc loads them again for each use otherwise, and loads are what there are most of
 * (measured: 1.14 times the speed). */
TRNI_INLINE512 __m512 trni_act_once512(const float *src)
{
    __m512 x = _mm512_loadu_ps(src);
    __asm__("" : "+v"(x));
    return x;
}

TRNI_INLINE512 __m512 trni_act_canonical512(__m512i y)
{
    const __m512 z = _mm512_castsi512_ps(y);
    const __mmask16 nan = _mm512_cmp_ps_mask(z, z, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(y, nan, trni_act_set512(TRNI_F32_NAN)));
}

/* Two passes over a block, because one has so long a chain from argument to result that the processor's window holds
 * too few of them. The first: where rows are, and d. */
enum { TRNI_ACT_BLOCK = 256 };

typedef struct trni_act_found512 {
    int32_t at[TRNI_ACT_BLOCK]; /* bytes */
    float d[TRNI_ACT_BLOCK];
} trni_act_found512;

/* What the kernel is compiled for: two sides, a joint. */
typedef struct trni_act_shape {
    bool two_sided, joined;
} trni_act_shape;

TRNI_INLINE512 void trni_act_find512(const trni_act_plan *p, trni_act_found512 *to, size_t i, __m512 argument,
                                     trni_act_shape is)
{
    const __m512i u = trni_act_bits512(argument), sign = trni_act_set512(TRNI_F32_SIGN);
    const __m512i magnitude = _mm512_andnot_si512(sign, u), x = is.two_sided ? u : magnitude;
    const __mmask16 negative = is.two_sided ? _mm512_movepi32_mask(u) : 0;
    __m512i inside = _mm512_min_epu32(magnitude, trni_act_set512(p->last[0]));
    if (is.two_sided) inside = _mm512_mask_min_epu32(inside, negative, magnitude, trni_act_set512(p->last[1]));
    const __m512i octave = _mm512_sub_epi32(_mm512_srli_epi32(inside, 23), _mm512_set1_epi32(p->slot_exponent));
    const __m512i slot = _mm512_max_epi32(octave, _mm512_setzero_si512());
    const __m512i shift = _mm512_permutexvar_epi32(slot, _mm512_loadu_si512(p->shift));
    const __m512i keep = _mm512_permutexvar_epi32(slot, _mm512_loadu_si512(p->keep));
    const __m512i half = _mm512_permutexvar_epi32(slot, _mm512_loadu_si512(p->half));
    const __m512i base = _mm512_permutexvar_epi32(slot, _mm512_loadu_si512(p->base));
    const __m512i position = _mm512_add_epi32(base, _mm512_srlv_epi32(inside, shift));
    __m512i row = _mm512_add_epi32(position, _mm512_set1_epi32(p->first[0]));
    if (is.two_sided) row = _mm512_mask_add_epi32(row, negative, position, _mm512_set1_epi32(p->first[1]));
    if (is.joined) {
        const __mmask16 past0 =
            _mm512_mask_cmpge_epi32_mask((__mmask16)~negative, position, _mm512_set1_epi32(p->joint[0]));
        const __mmask16 past1 = _mm512_mask_cmpge_epi32_mask(negative, position, _mm512_set1_epi32(p->joint[1]));
        row = _mm512_mask_add_epi32(row, past0, row, _mm512_set1_epi32(p->jump[0]));
        row = _mm512_mask_add_epi32(row, past1, row, _mm512_set1_epi32(p->jump[1]));
    }
    __m512i centre = _mm512_ternarylogic_epi32(inside, keep, half, 0xea);        /* inside & keep | half */
    if (is.two_sided) centre = _mm512_ternarylogic_epi32(centre, u, sign, 0xf8); /* centre | u & sign */
    _mm512_storeu_ps(to->d + i, _mm512_sub_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(centre)));
    _mm512_storeu_si512(to->at + i, _mm512_slli_epi32(row, 4));
}

/* The second pass: what it asks the plan for, as registers, because what it stores might be the plan for all that
 * compilers know. One for positive x, and one for negative. */
typedef struct trni_act_beyond512 {
    const trn_act_bucket *bucket;
    __m512 end[2];
    __m512i argument[2], value[2], flip;
} trni_act_beyond512;

TRNI_INLINE512 trni_act_beyond512 trni_act_ends512(const trni_act_plan *p)
{
    trni_act_beyond512 e;
    e.bucket = p->bucket;
    e.flip = trni_act_set512(p->flip);
    for (int i = 0; i < 2; i++) {
        e.end[i] = _mm512_castsi512_ps(trni_act_set512(p->end[i]));
        e.argument[i] = trni_act_set512(p->beyond_argument[i]);
        e.value[i] = trni_act_set512(p->beyond_value[i]);
    }
    return e;
}

TRNI_INLINE512 __m512 trni_act_evaluate512(const trni_act_beyond512 *e, const trni_act_found512 *from, size_t i,
                                           __m512 argument, trni_act_shape is)
{
    const __m512i u = trni_act_bits512(argument), magnitude = _mm512_andnot_si512(trni_act_set512(TRNI_F32_SIGN), u);
    const __m512i x = is.two_sided ? u : magnitude;
    const __mmask16 negative = is.two_sided ? _mm512_movepi32_mask(u) : 0;
    const trni_act_cubic512 f = trni_act_rows512(e->bucket, from->at + i);
    __m512i y = trni_act_bits512(trni_act_horner512(&f, f.c[0], trni_act_once512(from->d + i)));
    const __m512 end = _mm512_mask_mov_ps(e->end[0], negative, e->end[1]);
    const __mmask16 beyond =
        _mm512_cmp_ps_mask(_mm512_castsi512_ps(magnitude), end, _CMP_GE_OQ); /* false where NaN is */
    const __m512i keep = _mm512_mask_mov_epi32(e->argument[0], negative, e->argument[1]),
                  value = _mm512_mask_mov_epi32(e->value[0], negative, e->value[1]);
    y = _mm512_mask_mov_epi32(y, beyond, _mm512_ternarylogic_epi32(x, keep, value, 0xea)); /* x & keep | value */
    if (!is.two_sided) y = _mm512_xor_si512(y, _mm512_and_si512(u, e->flip));
    return trni_act_canonical512(y);
}

TRNI_INLINE512 void trni_act_block512(const trni_act_plan *p, const trni_act_beyond512 *e, float *dst, const float *src,
                                      size_t n, trni_act_shape is)
{
    trni_act_found512 found;
    const size_t whole = n & ~(size_t)15;
    const __mmask16 rest = (__mmask16)((1u << (n & 15)) - 1);
    for (size_t i = 0; i < whole; i += 16) trni_act_find512(p, &found, i, _mm512_loadu_ps(src + i), is);
    if (rest) trni_act_find512(p, &found, whole, _mm512_maskz_loadu_ps(rest, src + whole), is);
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(dst + i, trni_act_evaluate512(e, &found, i, trni_act_once512(src + i), is));
    if (!rest) return;
    const __m512 last = _mm512_maskz_loadu_ps(rest, src + whole);
    _mm512_mask_storeu_ps(dst + whole, rest, trni_act_evaluate512(e, &found, whole, last, is));
}

/* Tables of at most sixteen rows, as registers. */
typedef struct trni_act_held512 {
    __m512 c[4];
    bool held;
} trni_act_held512;

TRNI_INLINE512 trni_act_held512 trni_act_hold512(const trni_act_plan *p)
{
    trni_act_held512 h;
    const int32_t rows = 1 << ((uint32_t)p->period_mask + 23 - p->shift[0]);
    int32_t at[16];
    for (int i = 0; i < 16; i++) at[i] = 16 * (p->first[0] + (i < rows ? i : 0));
    const trni_act_cubic512 f = trni_act_rows512(p->bucket, at);
    for (int i = 0; i < 4; i++) h.c[i] = f.c[i];
    h.held = rows <= 16;
    return h;
}

/* c0 + k log 2, in binary64, rounded to binary32. */
TRNI_INLINE512 __m512 trni_act_octaves512(__m512 c0, __m512i k)
{
    const __m512d log2 = _mm512_set1_pd(TRNI_ACT_LOG2);
    const __m512d low = _mm512_fmadd_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(k)), log2,
                                        _mm512_cvtps_pd(_mm512_castps512_ps256(c0)));
    const __m512d high = _mm512_fmadd_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(k, 1)), log2,
                                         _mm512_cvtps_pd(_mm512_extractf32x8_ps(c0, 1)));
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

TRNI_INLINE512 __m512 trni_act_times512(__m512 y, __m512i exponent)
{
    const __m512i power = _mm512_slli_epi32(_mm512_add_epi32(exponent, _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(y, _mm512_castsi512_ps(power));
}

TRNI_INLINE512 __m512 trni_act_scalings16(const trni_act_plan *p, const trni_act_held512 *held, __m512 argument)
{
    const __m512i u = trni_act_bits512(argument), inf = _mm512_set1_epi32((int)TRNI_F32_INF);
    const __m512i magnitude = _mm512_andnot_si512(_mm512_set1_epi32((int)TRNI_F32_SIGN), u);
    const __mmask16 small = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x00800000));
    const __m512 a = _mm512_castsi512_ps(magnitude);
    const __m512i normal = trni_act_bits512(_mm512_mask_mul_ps(a, small, a, _mm512_set1_ps(0x1p32f)));
    const __m512i bias = _mm512_mask_set1_epi32(_mm512_set1_epi32(127), small, 127 + 32);
    const __m512i exponent = _mm512_sub_epi32(_mm512_srli_epi32(normal, 23), bias);
    const __m512i odd = _mm512_and_si512(exponent, _mm512_set1_epi32(p->period_mask));
    const __m512i one = _mm512_set1_epi32(0x3f800000), k = _mm512_sub_epi32(exponent, odd);
    const __m512i binade = _mm512_add_epi32(one, _mm512_slli_epi32(odd, 23));
    const __m512i m = _mm512_or_si512(_mm512_and_si512(normal, _mm512_set1_epi32(0x7fffff)), binade);
    const __m128i shift = _mm_cvtsi32_si128((int)p->shift[0]);
    const __m512i row = _mm512_srl_epi32(_mm512_sub_epi32(m, one), shift);
    const __m512i low_end = _mm512_sll_epi32(_mm512_srl_epi32(m, shift), shift);
    const __m512i centre = _mm512_add_epi32(low_end, _mm512_set1_epi32((int)p->half[0]));
    const __m512 d = _mm512_sub_ps(_mm512_castsi512_ps(m), _mm512_castsi512_ps(centre));
    trni_act_cubic512 f;
    if (held->held) {
        for (int i = 0; i < 4; i++) f.c[i] = _mm512_permutexvar_ps(row, held->c[i]);
    } else {
        int32_t at[16];
        _mm512_storeu_si512(at, _mm512_slli_epi32(_mm512_add_epi32(row, _mm512_set1_epi32(p->first[0])), 4));
        f = trni_act_rows512(p->bucket, at);
    }
    __m512 result;
    if (p->scale_sign) {
        __m512i scale = _mm512_sra_epi32(k, _mm_cvtsi32_si128((int)p->scale_shift));
        if (p->scale_sign < 0) scale = _mm512_sub_epi32(_mm512_setzero_si512(), scale);
        const __m512i most = _mm512_srai_epi32(scale, 1);
        result = trni_act_times512(trni_act_horner512(&f, f.c[0], d), most);
        result = trni_act_times512(result, _mm512_sub_epi32(scale, most));
    } else {
        result = trni_act_horner512(&f, trni_act_octaves512(f.c[0], k), d);
    }
    __m512i y = trni_act_bits512(result);
    y = _mm512_mask_set1_epi32(y, _mm512_cmpeq_epi32_mask(magnitude, inf), (int)p->at_infinity);
    y = _mm512_mask_or_epi32(y, _mm512_movepi32_mask(u), y, _mm512_set1_epi32((int)p->at_negative));
    y = _mm512_mask_set1_epi32(y, _mm512_testn_epi32_mask(magnitude, magnitude), (int)p->at_zero);
    y = _mm512_xor_si512(y, _mm512_and_si512(u, _mm512_set1_epi32((int)p->flip)));
    const __mmask16 nan = _mm512_cmpgt_epu32_mask(magnitude, inf);
    return trni_act_canonical512(_mm512_mask_mov_epi32(y, nan, trni_act_set512(TRNI_F32_NAN)));
}

TRNI_INLINE512 void trni_act_blocks512(const trni_act_plan *p, float *dst, const float *src, size_t n,
                                       trni_act_shape is)
{
    const trni_act_beyond512 e = trni_act_ends512(p);
    for (size_t i = 0; i < n; i += TRNI_ACT_BLOCK)
        trni_act_block512(p, &e, dst + i, src + i, n - i < TRNI_ACT_BLOCK ? n - i : (size_t)TRNI_ACT_BLOCK, is);
}

/* ---- rows in registers: 64 numbers that are all near at a time ---- */

enum { TRNI_ACT_NEAR_BLOCK = 64 };

/* Rows as registers; what there are too many of is on the stack, on cache lines. */
typedef struct trni_act_near512 {
    __m512 row[2][4][2], centre[2], low[4], low_centre;
} trni_act_near512;

TRNI_INLINE512 trni_act_near512 trni_act_near512_of(const trni_act_near *t, bool two_sided)
{
    trni_act_near512 r;
    for (int half = 0; half < 2; half++) {
        r.centre[half] = _mm512_loadu_ps(t->centre + 16 * half);
        for (int j = 0; j < 4; j++) r.row[0][j][half] = _mm512_loadu_ps(t->row[0][j] + 16 * half);
        for (int j = 0; j < 4; j++) r.row[1][j][half] = _mm512_loadu_ps(t->row[two_sided][j] + 16 * half);
    }
    for (int j = 0; j < 4; j++) r.low[j] = _mm512_loadu_ps(t->low[j]);
    r.low_centre = _mm512_loadu_ps(t->low_centre);
    return r;
}

TRNI_INLINE512 __m512 trni_act_quarter512(const __m512 row[2], __m512i at)
{
    return _mm512_permutex2var_ps(row[0], at, row[1]);
}

/* x + 2^21, rounded toward zero: its last bits count quarters. (gcc's macro for -O0 passes a mask of all lanes to a
 * signed parameter, where the user would be warned of it.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
TRNI_INLINE512 __m512i trni_act_quarters512(__m512 x)
{
    const __m512 base = _mm512_set1_ps(0x1p21f);
    return trni_act_bits512(_mm512_add_round_ps(x, base, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
#pragma GCC diagnostic pop

/* Below 8. Quarters say the row, and below 1/4 the exponent's last three bits; with two sides a fourth says which. */
TRNI_INLINE512 __m512 trni_act_near16(const trni_act_near512 *t, __m512 argument, __m512i flip, bool two_sided)
{
    const __m512i u = trni_act_bits512(argument), sign = trni_act_set512(TRNI_F32_SIGN), side = trni_act_set512(8);
    const __m512i magnitude = _mm512_andnot_si512(sign, u);
    const __m512 m = _mm512_castsi512_ps(magnitude);
    const __m512i at = trni_act_quarters512(m);
    const __mmask16 low = _mm512_cmplt_epi32_mask(magnitude, trni_act_set512(0x3e800000u));
    const __mmask16 negative = two_sided ? _mm512_movepi32_mask(u) : 0;
    __m512i octave = _mm512_srli_epi32(_mm512_max_epi32(magnitude, trni_act_set512(118u << 23)), 23);
    octave = two_sided ? _mm512_ternarylogic_epi32(side, _mm512_srli_epi32(u, 28), octave, 0xca)
                       : _mm512_andnot_si512(side, octave);
    trni_act_cubic512 f;
    for (int i = 0; i < 4; i++) {
        f.c[i] = trni_act_quarter512(t->row[0][i], at);
        if (two_sided) f.c[i] = _mm512_mask_mov_ps(f.c[i], negative, trni_act_quarter512(t->row[1][i], at));
        f.c[i] = _mm512_mask_permutexvar_ps(f.c[i], low, octave, t->low[i]);
    }
    __m512 centre = trni_act_quarter512(t->centre, at);
    centre = _mm512_mask_permutexvar_ps(centre, low, octave, t->low_centre);
    __m512 d = _mm512_sub_ps(m, centre);
    if (two_sided) /* with the sign of x */
        d = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(trni_act_bits512(d), u, sign, 0x78));
    const __m512i y = trni_act_bits512(trni_act_horner512(&f, f.c[0], d));
    return _mm512_castsi512_ps(two_sided ? y : _mm512_ternarylogic_epi32(y, u, flip, 0x78)); /* y ^ (u & flip) */
}

/* Are all of them below 8? */
TRNI_INLINE512 bool trni_act_all_near512(const float *src)
{
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < TRNI_ACT_NEAR_BLOCK; i += 16) {
        const __m512i u = _mm512_loadu_si512(src + i);
        most = _mm512_max_epu32(most, _mm512_add_epi32(u, u));
    }
    return _mm512_cmplt_epu32_mask(most, trni_act_set512(0x82000000u)) == 0xffff;
}

/* Blocks from the beginning that are near: how many numbers that are. */
TRNI_INLINE512 size_t trni_act_nears512(const trni_act_near *t, float *dst, const float *src, size_t n, uint32_t odd,
                                        bool two_sided)
{
    const trni_act_near512 rows = trni_act_near512_of(t, two_sided);
    const __m512i flip = trni_act_set512(odd);
    size_t i = 0;
    for (; n - i >= TRNI_ACT_NEAR_BLOCK && trni_act_all_near512(src + i); i += TRNI_ACT_NEAR_BLOCK)
        for (size_t j = i; j < i + TRNI_ACT_NEAR_BLOCK; j += 16)
            _mm512_storeu_ps(dst + j, trni_act_near16(&rows, trni_act_once512(src + j), flip, two_sided));
    return i;
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_act_list_avx512(const trni_act_plan *p, float *dst,
                                                                     const float *src, size_t n)
{
    const trni_act_shape odd_or_even = { false, true }, in_one_piece = { true, false }, joined = { true, true };
    if (p->look != 0xffffffffu)
        trni_act_blocks512(p, dst, src, n, odd_or_even);
    else if (p->joint[0] == INT32_MAX && p->joint[1] == INT32_MAX)
        trni_act_blocks512(p, dst, src, n, in_one_piece);
    else
        trni_act_blocks512(p, dst, src, n, joined);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_act_buckets_avx512(const trni_act_plan *p, float *dst,
                                                                        const float *src, size_t n)
{
    const trni_act_near *t = &p->near_rows;
    for (size_t done; n > 0; n -= done, dst += done, src += done) {
        done = !p->has_near             ? 0
               : p->look == 0xffffffffu ? trni_act_nears512(t, dst, src, n, 0, true)
                                        : trni_act_nears512(t, dst, src, n, p->flip, false);
        if (done == n) return;
        dst += done;
        src += done;
        n -= done;
        done = p->has_near && n > TRNI_ACT_NEAR_BLOCK ? (size_t)TRNI_ACT_NEAR_BLOCK : n;
        trni_simd_act_list_avx512(p, dst, src, done);
    }
}

/* A power law of x whose exponent is moderate, or a logarithm of a positive normal one: the rows are asked for by four
 * bits of x, m and the bucket's centre have their bits from x, and x less m is k. */
typedef struct trni_act_power512 {
    __m512 c[4];
    __m512i fraction, one, keep, half, look, least, span;
    __m128i shift;
} trni_act_power512;

TRNI_INLINE512 trni_act_power512 trni_act_power512_of(const trni_act_plan *p)
{
    const uint32_t fraction = p->period_mask ? 0xffffffu : 0x7fffffu, one = p->period_mask ? 0x3f000000u : 0x3f800000u;
    const uint32_t least = p->scaling == TRN_ACT_SCALING_RECIPROCAL ? 7u << 23 : 1u << 23;
    trni_act_power512 t;
    for (int i = 0; i < 4; i++) t.c[i] = _mm512_loadu_ps(p->near_rows.low[i]);
    t.fraction = trni_act_set512(fraction);
    t.one = trni_act_set512(one);
    t.keep = trni_act_set512(fraction & ~0u << p->shift[0]);
    t.half = trni_act_set512(one | p->half[0]);
    t.look = trni_act_set512(~p->flip);
    t.least = trni_act_set512(least);
    t.span = trni_act_set512((255u << 23) - 2 * least + (1u << 23));
    t.shift = _mm_cvtsi32_si128((int)p->shift[0]);
    return t;
}

TRNI_INLINE512 __m512 trni_act_power16(const trni_act_power512 *t, __m512i u, trn_act_scaling scaling)
{
    const __m512i m = _mm512_ternarylogic_epi32(u, t->fraction, t->one, 0xea); /* u & fraction | one */
    const __m512i centre = _mm512_ternarylogic_epi32(u, t->keep, t->half, 0xea);
    const __m512i row = _mm512_srl_epi32(u, t->shift), k = _mm512_sub_epi32(u, m);
    const __m512 d = _mm512_sub_ps(_mm512_castsi512_ps(m), _mm512_castsi512_ps(centre));
    trni_act_cubic512 f;
    for (int i = 0; i < 4; i++) f.c[i] = _mm512_permutexvar_ps(row, t->c[i]);
    if (scaling == TRN_ACT_SCALING_LOG)
        return trni_act_horner512(&f, trni_act_octaves512(f.c[0], _mm512_srai_epi32(k, 23)), d);
    const __m512i y = trni_act_bits512(trni_act_horner512(&f, f.c[0], d));
    if (scaling == TRN_ACT_SCALING_SQRT) return _mm512_castsi512_ps(_mm512_add_epi32(y, _mm512_srai_epi32(k, 1)));
    return _mm512_castsi512_ps(
        _mm512_sub_epi32(y, scaling == TRN_ACT_SCALING_RSQRT ? _mm512_srai_epi32(k, 1) : k)); /* and the sign of x */
}

/* Blocks from the beginning whose numbers are all such: how many numbers that are. */
TRNI_INLINE512 size_t trni_act_powers512(const trni_act_plan *p, float *dst, const float *src, size_t n,
                                         trn_act_scaling scaling)
{
    const trni_act_power512 t = trni_act_power512_of(p);
    size_t i = 0;
    for (; n - i >= TRNI_ACT_NEAR_BLOCK; i += TRNI_ACT_NEAR_BLOCK) {
        __m512i u[4], most = _mm512_setzero_si512();
        for (int j = 0; j < 4; j++) {
            u[j] = trni_act_bits512(trni_act_once512(src + i + 16 * j));
            most = _mm512_max_epu32(most, _mm512_sub_epi32(_mm512_and_si512(u[j], t.look), t.least));
        }
        if (_mm512_cmplt_epu32_mask(most, t.span) != 0xffff) break;
        for (int j = 0; j < 4; j++) _mm512_storeu_ps(dst + i + 16 * j, trni_act_power16(&t, u[j], scaling));
    }
    return i;
}

TRNI_INLINE512 size_t trni_act_any_powers512(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    switch (p->scaling) {
    case TRN_ACT_SCALING_RECIPROCAL: return trni_act_powers512(p, dst, src, n, TRN_ACT_SCALING_RECIPROCAL);
    case TRN_ACT_SCALING_SQRT: return trni_act_powers512(p, dst, src, n, TRN_ACT_SCALING_SQRT);
    case TRN_ACT_SCALING_RSQRT: return trni_act_powers512(p, dst, src, n, TRN_ACT_SCALING_RSQRT);
    case TRN_ACT_SCALING_LOG: return trni_act_powers512(p, dst, src, n, TRN_ACT_SCALING_LOG);
    case TRN_ACT_SCALING_NONE:
    default: return 0;
    }
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_act_scaling_avx512(const trni_act_plan *p, float *dst,
                                                                        const float *src, size_t n)
{
    const trni_act_held512 held = trni_act_hold512(p);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(dst + i, trni_act_scalings16(p, &held, _mm512_loadu_ps(src + i)));
    if (i == n) return;
    const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
    const __m512 last = trni_act_scalings16(p, &held, _mm512_maskz_loadu_ps(rest, src + i));
    _mm512_mask_storeu_ps(dst + i, rest, last);
}

TRNI_KERNEL TRNI_TARGET_AVX512 static void trni_simd_act_scalings_avx512(const trni_act_plan *p, float *dst,
                                                                         const float *src, size_t n)
{
    for (size_t done; n > 0; n -= done, dst += done, src += done) {
        done = p->has_near ? trni_act_any_powers512(p, dst, src, n) : 0;
        if (done == n) return;
        dst += done;
        src += done;
        n -= done;
        done = p->has_near && n > TRNI_ACT_NEAR_BLOCK ? (size_t)TRNI_ACT_NEAR_BLOCK : n;
        trni_simd_act_scaling_avx512(p, dst, src, done);
    }
}

#undef TRNI_INLINE512
#endif /* TRNI_SIMD_ACT_AVX512_H */
