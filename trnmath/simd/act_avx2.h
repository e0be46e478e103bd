/* simd/act_avx2.h - the tables of trn_act.h in AVX2: eight arguments at a time.
 * Behind trn_act.h. SPDX-License-Identifier: MIT
 *
 * A SIMD kernel: same bits as the plain C body. Included by engine/act.h only, not at all under TRN_NO_INTRINSICS.
 *
 * Rows of four coefficients come by eight loads and a transposition, which is faster here than four gathers; up to
 * sixteen buckets (the power laws) are looked up in registers. What is known of an octave fits bytes, so that one
 * permutation of bytes looks it up.
 */
#if defined(TRNI_ENGINE_ACT_H) && !defined(TRNI_SIMD_ACT_AVX2_H)
#define TRNI_SIMD_ACT_AVX2_H

#include <immintrin.h>

#define TRNI_INLINE256 __attribute__((unused, always_inline)) TRNI_TARGET_AVX2 static inline

TRNI_INLINE256 __m256i trni_act_bits256(__m256 x) { return _mm256_castps_si256(x); }

TRNI_INLINE256 __m256 trni_act_floats256(__m256i x) { return _mm256_castsi256_ps(x); }

TRNI_INLINE256 __m256i trni_act_set256(uint32_t u) { return _mm256_set1_epi32((int)u); }

/* b where the top bit of `where` is set, else a. */
TRNI_INLINE256 __m256i trni_act_pick256(__m256i a, __m256i b, __m256i where)
{
    return trni_act_bits256(_mm256_blendv_ps(trni_act_floats256(a), trni_act_floats256(b), trni_act_floats256(where)));
}

typedef struct trni_act_cubic256 {
    __m256 c[4];
} trni_act_cubic256;

TRNI_INLINE256 __m256 trni_act_line256(const char *a, const char *b)
{
    const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)a));
    return _mm256_insertf128_ps(low, _mm_loadu_ps((const float *)(const void *)b), 1);
}

/* The rows of eight arguments, `at` bytes into the list. Two places are loaded at a time, because loads are what there
 * are most of. */
TRNI_INLINE256 trni_act_cubic256 trni_act_rows256(const trn_act_bucket *bucket, const int32_t at[8])
{
    const char *list = (const char *)bucket;
    uint64_t two[4];
    memcpy(two, at, sizeof two);
#define TRNI_ACT_EVEN(i) (list + (uint32_t)two[i])
#define TRNI_ACT_ODD(i) (list + (two[i] >> 32))
    const __m256 r0 = trni_act_line256(TRNI_ACT_EVEN(0), TRNI_ACT_EVEN(2));
    const __m256 r1 = trni_act_line256(TRNI_ACT_ODD(0), TRNI_ACT_ODD(2));
    const __m256 r2 = trni_act_line256(TRNI_ACT_EVEN(1), TRNI_ACT_EVEN(3));
    const __m256 r3 = trni_act_line256(TRNI_ACT_ODD(1), TRNI_ACT_ODD(3));
#undef TRNI_ACT_EVEN
#undef TRNI_ACT_ODD
    const __m256 low01 = _mm256_unpacklo_ps(r0, r1), high01 = _mm256_unpackhi_ps(r0, r1);
    const __m256 low23 = _mm256_unpacklo_ps(r2, r3), high23 = _mm256_unpackhi_ps(r2, r3);
    trni_act_cubic256 f;
    f.c[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    f.c[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    f.c[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    f.c[3] = _mm256_shuffle_ps(high01, high23, 0xee);
    return f;
}

TRNI_INLINE256 __m256 trni_act_horner256(const trni_act_cubic256 *f, __m256 c0, __m256 d)
{
    return _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(f->c[3], d, f->c[2]), d, f->c[1]), d, c0);
}

/* Eight numbers, loaded once: gcc loads them again for each use otherwise. */
TRNI_INLINE256 __m256 trni_act_once256(const float *src)
{
    __m256 x = _mm256_loadu_ps(src);
    __asm__("" : "+x"(x));
    return x;
}

TRNI_INLINE256 __m256 trni_act_canonical256(__m256i y)
{
    const __m256 z = trni_act_floats256(y);
    return _mm256_blendv_ps(z, trni_act_floats256(trni_act_set256(TRNI_F32_NAN)), _mm256_cmp_ps(z, z, _CMP_UNORD_Q));
}

/* What is known of sixteen slots, as bytes. */
typedef struct trni_act_slots256 {
    __m256i shift;               /* less one; 32 below the first octave */
    __m256i base_low, base_high; /* position of an octave's first bucket, below 2^14 + 1 */
} trni_act_slots256;

TRNI_INLINE256 trni_act_slots256 trni_act_slots(const trni_act_plan *p)
{
    unsigned char shift[16], low[16], high[16];
    for (int i = 0; i < TRNI_ACT_SLOTS; i++) {
        const int32_t exponent = p->slot_exponent + i;
        const int32_t base = i ? p->base[i] + (int32_t)((uint32_t)exponent << (23 - p->shift[i])) : 0;
        shift[i] = i ? (unsigned char)(p->shift[i] - 1) : 32;
        low[i] = (unsigned char)base;
        high[i] = (unsigned char)(base >> 8);
    }
    trni_act_slots256 s;
    s.shift = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)shift));
    s.base_low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)low));
    s.base_high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)high));
    return s;
}

/* Two passes over a block, because one has so long a chain from argument to result that the processor's window holds
 * too few of them. The first: where rows are, and d. */
enum { TRNI_ACT_BLOCK256 = 256 };

typedef struct trni_act_found256 {
    int32_t at[TRNI_ACT_BLOCK256]; /* bytes */
    float d[TRNI_ACT_BLOCK256];
} trni_act_found256;

/* What the kernel is compiled for: two sides, a joint. */
typedef struct trni_act_shape256 {
    bool two_sided, joined;
} trni_act_shape256;

/* The one where x is positive, the other where it is negative. */
TRNI_INLINE256 __m256i trni_act_sides256(const uint32_t of[2], __m256i x, trni_act_shape256 is)
{
    const __m256i positive = trni_act_set256(of[0]);
    return is.two_sided ? trni_act_pick256(positive, trni_act_set256(of[1]), x) : positive;
}

TRNI_INLINE256 __m256i trni_act_places256(const int32_t of[2], __m256i x, trni_act_shape256 is)
{
    const uint32_t bits[2] = { (uint32_t)of[0], (uint32_t)of[1] };
    return trni_act_sides256(bits, x, is);
}

TRNI_INLINE256 void trni_act_find256(const trni_act_plan *p, const trni_act_slots256 *s, trni_act_found256 *to,
                                     size_t i, __m256 argument, trni_act_shape256 is)
{
    const __m256i u = trni_act_bits256(argument), sign = trni_act_set256(TRNI_F32_SIGN);
    const __m256i magnitude = _mm256_andnot_si256(sign, u), x = is.two_sided ? u : magnitude;
    const __m256i inside = _mm256_min_epu32(magnitude, trni_act_sides256(p->last, x, is));
    const __m256i octave = _mm256_sub_epi32(_mm256_srli_epi32(inside, 23), _mm256_set1_epi32(p->slot_exponent));
    const __m256i slot = _mm256_max_epi32(octave, _mm256_setzero_si256());
    const __m256i at0 = _mm256_or_si256(slot, trni_act_set256(0x80808000u));
    const __m256i at1 = _mm256_or_si256(_mm256_slli_epi32(slot, 8), trni_act_set256(0x80800080u));
    const __m256i shift = _mm256_shuffle_epi8(s->shift, at0);
    const __m256i base = _mm256_or_si256(_mm256_shuffle_epi8(s->base_low, at0), _mm256_shuffle_epi8(s->base_high, at1));
    const __m256i one = _mm256_set1_epi32(1), fraction = _mm256_and_si256(inside, trni_act_set256(0x7fffff));
    const __m256i position = _mm256_add_epi32(base, _mm256_srli_epi32(_mm256_srlv_epi32(fraction, shift), 1));
    __m256i row = _mm256_add_epi32(position, trni_act_places256(p->first, x, is));
    if (is.joined) {
        const __m256i before = _mm256_cmpgt_epi32(trni_act_places256(p->joint, x, is), position);
        row = _mm256_add_epi32(row, _mm256_andnot_si256(before, trni_act_places256(p->jump, x, is)));
    }
    /* A bucket's lower end and the bit below: its centre. */
    __m256i centre = _mm256_sllv_epi32(_mm256_or_si256(_mm256_srlv_epi32(inside, shift), one), shift);
    if (is.two_sided) centre = _mm256_or_si256(centre, _mm256_and_si256(u, sign));
    _mm256_storeu_ps(to->d + i, _mm256_sub_ps(trni_act_floats256(x), trni_act_floats256(centre)));
    _mm256_storeu_si256((__m256i *)(void *)(to->at + i), _mm256_slli_epi32(row, 4));
}

/* The second pass. */
TRNI_INLINE256 __m256 trni_act_evaluate256(const trni_act_plan *p, const trni_act_found256 *from, size_t i,
                                           __m256 argument, trni_act_shape256 is)
{
    const __m256i u = trni_act_bits256(argument), magnitude = _mm256_andnot_si256(trni_act_set256(TRNI_F32_SIGN), u);
    const __m256i x = is.two_sided ? u : magnitude;
    const trni_act_cubic256 f = trni_act_rows256(p->bucket, from->at + i);
    __m256i y = trni_act_bits256(trni_act_horner256(&f, f.c[0], trni_act_once256(from->d + i)));
    const __m256 end = trni_act_floats256(trni_act_sides256(p->end, x, is));
    const __m256 beyond = _mm256_cmp_ps(trni_act_floats256(magnitude), end, _CMP_GE_OQ); /* false where NaN is */
    const __m256i kept = _mm256_and_si256(x, trni_act_sides256(p->beyond_argument, x, is));
    const __m256i there = _mm256_or_si256(kept, trni_act_sides256(p->beyond_value, x, is));
    y = trni_act_pick256(y, there, trni_act_bits256(beyond));
    if (!is.two_sided) y = _mm256_xor_si256(y, _mm256_and_si256(u, trni_act_set256(p->flip)));
    return trni_act_canonical256(y);
}

/* n of at most eight numbers, and what is left of eight is 0. */
TRNI_INLINE256 __m256 trni_act_rest256(const float *src, size_t n)
{
    float eight[8] = { 0 };
    memcpy(eight, src, n * sizeof(float));
    return _mm256_loadu_ps(eight);
}

TRNI_INLINE256 void trni_act_put256(float *dst, size_t n, __m256 y)
{
    float eight[8];
    _mm256_storeu_ps(eight, y);
    memcpy(dst, eight, n * sizeof(float));
}

TRNI_INLINE256 void trni_act_block256(const trni_act_plan *p, const trni_act_slots256 *s, float *dst, const float *src,
                                      size_t n, trni_act_shape256 is)
{
    trni_act_found256 found;
    const size_t whole = n & ~(size_t)7, rest = n & 7;
    for (size_t i = 0; i < whole; i += 8) trni_act_find256(p, s, &found, i, _mm256_loadu_ps(src + i), is);
    if (rest) trni_act_find256(p, s, &found, whole, trni_act_rest256(src + whole, rest), is);
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(dst + i, trni_act_evaluate256(p, &found, i, trni_act_once256(src + i), is));
    if (!rest) return;
    const __m256 last = trni_act_rest256(src + whole, rest);
    trni_act_put256(dst + whole, rest, trni_act_evaluate256(p, &found, whole, last, is));
}

TRNI_INLINE256 void trni_act_blocks256(const trni_act_plan *p, float *dst, const float *src, size_t n,
                                       trni_act_shape256 is)
{
    const trni_act_slots256 s = trni_act_slots(p);
    for (size_t i = 0; i < n; i += TRNI_ACT_BLOCK256)
        trni_act_block256(p, &s, dst + i, src + i, n - i < TRNI_ACT_BLOCK256 ? n - i : (size_t)TRNI_ACT_BLOCK256, is);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd_act_buckets_avx2(const trni_act_plan *p, float *dst,
                                                                    const float *src, size_t n)
{
    const trni_act_shape256 odd_or_even = { false, true }, in_one_piece = { true, false }, joined = { true, true };
    if (p->look != 0xffffffffu)
        trni_act_blocks256(p, dst, src, n, odd_or_even);
    else if (p->joint[0] == INT32_MAX && p->joint[1] == INT32_MAX)
        trni_act_blocks256(p, dst, src, n, in_one_piece);
    else
        trni_act_blocks256(p, dst, src, n, joined);
}

/* ---- power laws ---- */

/* Tables of at most sixteen rows, as registers. */
typedef struct trni_act_held256 {
    __m256 low[4], high[4];
    int32_t rows;
} trni_act_held256;

TRNI_INLINE256 trni_act_held256 trni_act_hold256(const trni_act_plan *p)
{
    trni_act_held256 h;
    int32_t at[16];
    h.rows = 1 << ((uint32_t)p->period_mask + 23 - p->shift[0]);
    for (int i = 0; i < 16; i++) at[i] = 16 * (p->first[0] + (i < h.rows ? i : 0));
    const trni_act_cubic256 low = trni_act_rows256(p->bucket, at), high = trni_act_rows256(p->bucket, at + 8);
    for (int i = 0; i < 4; i++) {
        h.low[i] = low.c[i];
        h.high[i] = high.c[i];
    }
    return h;
}

TRNI_INLINE256 trni_act_cubic256 trni_act_held_rows256(const trni_act_plan *p, const trni_act_held256 *held,
                                                       __m256i row)
{
    trni_act_cubic256 f;
    if (held->rows > 16) {
        int32_t at[8];
        const __m256i bytes = _mm256_slli_epi32(_mm256_add_epi32(row, _mm256_set1_epi32(p->first[0])), 4);
        _mm256_storeu_si256((__m256i *)(void *)at, bytes);
        return trni_act_rows256(p->bucket, at);
    }
    for (int i = 0; i < 4; i++) f.c[i] = _mm256_permutevar8x32_ps(held->low[i], row);
    if (held->rows <= 8) return f;
    const __m256 upper = trni_act_floats256(_mm256_slli_epi32(row, 28));
    for (int i = 0; i < 4; i++) f.c[i] = _mm256_blendv_ps(f.c[i], _mm256_permutevar8x32_ps(held->high[i], row), upper);
    return f;
}

/* c0 + k log 2, in binary64, rounded to binary32. */
TRNI_INLINE256 __m256 trni_act_octaves256(__m256 c0, __m256i k)
{
    const __m256d log2 = _mm256_set1_pd(TRNI_ACT_LOG2);
    const __m256d low = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(k)), log2,
                                        _mm256_cvtps_pd(_mm256_castps256_ps128(c0)));
    const __m256d high = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(k, 1)), log2,
                                         _mm256_cvtps_pd(_mm256_extractf128_ps(c0, 1)));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
}

TRNI_INLINE256 __m256 trni_act_times256(__m256 y, __m256i exponent)
{
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(y, trni_act_floats256(power));
}

TRNI_INLINE256 __m256 trni_act_scaled256(const trni_act_plan *p, const trni_act_cubic256 *f, __m256 d, __m256i k)
{
    if (!p->scale_sign) return trni_act_horner256(f, trni_act_octaves256(f->c[0], k), d);
    __m256i scale = _mm256_sra_epi32(k, _mm_cvtsi32_si128((int)p->scale_shift));
    if (p->scale_sign < 0) scale = _mm256_sub_epi32(_mm256_setzero_si256(), scale);
    const __m256i most = _mm256_srai_epi32(scale, 1);
    const __m256 y = trni_act_times256(trni_act_horner256(f, f->c[0], d), most);
    return trni_act_times256(y, _mm256_sub_epi32(scale, most));
}

TRNI_INLINE256 __m256 trni_act_scalings8(const trni_act_plan *p, const trni_act_held256 *held, __m256 argument)
{
    const __m256i u = trni_act_bits256(argument), inf = _mm256_set1_epi32((int)TRNI_F32_INF);
    const __m256i magnitude = _mm256_andnot_si256(trni_act_set256(TRNI_F32_SIGN), u);
    const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
    const __m256i larger = trni_act_bits256(_mm256_mul_ps(trni_act_floats256(magnitude), _mm256_set1_ps(0x1p32f)));
    const __m256i normal = trni_act_pick256(magnitude, larger, small);
    const __m256i bias = _mm256_add_epi32(_mm256_set1_epi32(127), _mm256_and_si256(small, _mm256_set1_epi32(32)));
    const __m256i exponent = _mm256_sub_epi32(_mm256_srli_epi32(normal, 23), bias);
    const __m256i odd = _mm256_and_si256(exponent, _mm256_set1_epi32(p->period_mask));
    const __m256i one = _mm256_set1_epi32(0x3f800000), k = _mm256_sub_epi32(exponent, odd);
    const __m256i binade = _mm256_add_epi32(one, _mm256_slli_epi32(odd, 23));
    const __m256i m = _mm256_or_si256(_mm256_and_si256(normal, _mm256_set1_epi32(0x7fffff)), binade);
    const __m128i shift = _mm_cvtsi32_si128((int)p->shift[0]);
    const __m256i row = _mm256_srl_epi32(_mm256_sub_epi32(m, one), shift);
    const __m256i low_end = _mm256_sll_epi32(_mm256_srl_epi32(m, shift), shift);
    const __m256i centre = _mm256_add_epi32(low_end, _mm256_set1_epi32((int)p->half[0]));
    const __m256 d = _mm256_sub_ps(trni_act_floats256(m), trni_act_floats256(centre));
    const trni_act_cubic256 f = trni_act_held_rows256(p, held, row);
    __m256i y = trni_act_bits256(trni_act_scaled256(p, &f, d, k));
    y = trni_act_pick256(y, trni_act_set256(p->at_infinity), _mm256_cmpeq_epi32(magnitude, inf));
    y = _mm256_or_si256(y, _mm256_and_si256(_mm256_srai_epi32(u, 31), trni_act_set256(p->at_negative)));
    y = trni_act_pick256(y, trni_act_set256(p->at_zero), _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()));
    y = _mm256_xor_si256(y, _mm256_and_si256(u, trni_act_set256(p->flip)));
    return trni_act_canonical256(_mm256_or_si256(y, _mm256_cmpgt_epi32(magnitude, inf))); /* NaN gives NaN */
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd_act_scaling_avx2(const trni_act_plan *p, float *dst,
                                                                    const float *src, size_t n)
{
    const trni_act_held256 held = trni_act_hold256(p);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, trni_act_scalings8(p, &held, _mm256_loadu_ps(src + i)));
    if (i == n) return;
    trni_act_put256(dst + i, n - i, trni_act_scalings8(p, &held, trni_act_rest256(src + i, n - i)));
}

/* Arguments whose exponents are moderate, 32 at a time: rows are asked for by four bits of x, m and the bucket's centre
 * have their bits from x, and x less m is k. */
enum { TRNI_ACT_NEAR_BLOCK256 = 32 };

typedef struct trni_act_power256 {
    __m256 low[4], high[4];
    __m256i fraction, one, keep, half, look, least, most;
    __m128i shift;
} trni_act_power256;

TRNI_INLINE256 trni_act_power256 trni_act_power256_of(const trni_act_plan *p)
{
    const uint32_t fraction = p->period_mask ? 0xffffffu : 0x7fffffu, one = p->period_mask ? 0x3f000000u : 0x3f800000u;
    const uint32_t least = p->scaling == TRN_ACT_SCALING_RECIPROCAL ? 7u << 23 : 1u << 23;
    trni_act_power256 t;
    for (int i = 0; i < 4; i++) {
        t.low[i] = _mm256_loadu_ps(p->near_rows.low[i]);
        t.high[i] = _mm256_loadu_ps(p->near_rows.low[i] + 8);
    }
    t.fraction = trni_act_set256(fraction);
    t.one = trni_act_set256(one);
    t.keep = trni_act_set256(fraction & ~0u << p->shift[0]);
    t.half = trni_act_set256(one | p->half[0]);
    t.look = trni_act_set256(~p->flip);
    t.least = trni_act_set256(least);
    t.most = trni_act_set256((255u << 23) - 2 * least + (1u << 23) - 1);
    t.shift = _mm_cvtsi32_si128((int)p->shift[0]);
    return t;
}

TRNI_INLINE256 __m256 trni_act_power8(const trni_act_power256 *t, __m256i u, trn_act_scaling scaling, bool sixteen)
{
    const __m256i m = _mm256_or_si256(_mm256_and_si256(u, t->fraction), t->one);
    const __m256i centre = _mm256_or_si256(_mm256_and_si256(u, t->keep), t->half);
    const __m256i row = _mm256_srl_epi32(u, t->shift), k = _mm256_sub_epi32(u, m);
    const __m256 d = _mm256_sub_ps(trni_act_floats256(m), trni_act_floats256(centre));
    const __m256 upper = trni_act_floats256(_mm256_slli_epi32(row, 28));
    trni_act_cubic256 f;
    for (int i = 0; i < 4; i++) {
        f.c[i] = _mm256_permutevar8x32_ps(t->low[i], row);
        if (sixteen) f.c[i] = _mm256_blendv_ps(f.c[i], _mm256_permutevar8x32_ps(t->high[i], row), upper);
    }
    if (scaling == TRN_ACT_SCALING_LOG)
        return trni_act_horner256(&f, trni_act_octaves256(f.c[0], _mm256_srai_epi32(k, 23)), d);
    const __m256i y = trni_act_bits256(trni_act_horner256(&f, f.c[0], d));
    if (scaling == TRN_ACT_SCALING_SQRT) return trni_act_floats256(_mm256_add_epi32(y, _mm256_srai_epi32(k, 1)));
    return trni_act_floats256(
        _mm256_sub_epi32(y, scaling == TRN_ACT_SCALING_RSQRT ? _mm256_srai_epi32(k, 1) : k)); /* and the sign of x */
}

/* Blocks from the beginning whose numbers are all such: how many numbers that are. */
TRNI_INLINE256 size_t trni_act_powers256(const trni_act_plan *p, float *dst, const float *src, size_t n,
                                         trn_act_scaling scaling, bool sixteen)
{
    const trni_act_power256 t = trni_act_power256_of(p);
    size_t i = 0;
    for (; n - i >= TRNI_ACT_NEAR_BLOCK256; i += TRNI_ACT_NEAR_BLOCK256) {
        __m256i u[4], most = t.most;
        for (int j = 0; j < 4; j++) {
            u[j] = trni_act_bits256(trni_act_once256(src + i + 8 * j));
            most = _mm256_max_epu32(most, _mm256_sub_epi32(_mm256_and_si256(u[j], t.look), t.least));
        }
        if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(most, t.most)) != -1) break;
        for (int j = 0; j < 4; j++) _mm256_storeu_ps(dst + i + 8 * j, trni_act_power8(&t, u[j], scaling, sixteen));
    }
    return i;
}

TRNI_INLINE256 size_t trni_act_any_powers256(const trni_act_plan *p, float *dst, const float *src, size_t n)
{
    const bool sixteen = p->period_mask + 23 - (int)p->shift[0] > 3;
    if (p->scaling == TRN_ACT_SCALING_SQRT) return trni_act_powers256(p, dst, src, n, TRN_ACT_SCALING_SQRT, true);
    if (p->scaling == TRN_ACT_SCALING_RSQRT) return trni_act_powers256(p, dst, src, n, TRN_ACT_SCALING_RSQRT, true);
    if (sixteen) return 0;
    if (p->scaling == TRN_ACT_SCALING_LOG) return trni_act_powers256(p, dst, src, n, TRN_ACT_SCALING_LOG, false);
    return trni_act_powers256(p, dst, src, n, TRN_ACT_SCALING_RECIPROCAL, false);
}

TRNI_KERNEL TRNI_TARGET_AVX2 static void trni_simd_act_scalings_avx2(const trni_act_plan *p, float *dst,
                                                                     const float *src, size_t n)
{
    for (size_t done; n > 0; n -= done, dst += done, src += done) {
        done = p->has_near ? trni_act_any_powers256(p, dst, src, n) : 0;
        if (done == n) return;
        dst += done;
        src += done;
        n -= done;
        done = p->has_near && n > TRNI_ACT_NEAR_BLOCK256 ? (size_t)TRNI_ACT_NEAR_BLOCK256 : n;
        trni_simd_act_scaling_avx2(p, dst, src, done);
    }
}

#undef TRNI_INLINE256
#endif /* TRNI_SIMD_ACT_AVX2_H */
