/* array/systolic_tame.h - chains that need no marks: sums of tiles whose numbers stay clear of binary32's ends.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: looks at what numbers a packed tile holds, decides from that whether short arithmetic in doubles (or, for
 *     rounded products, in binary32) has the bits of the definition, and adds chains up, four rows by 32 columns in
 *     registers: sums of 24 to 53 bits, to nearest even or toward zero, exact ones, products rounded to BF16.
 * DOES NOT: recompute anything: what is not tame goes through array/systolic_lanes.h.
 *
 * All numbers of a tile are multiples of 2^low below 2^high. So its products are multiples of 2^L and its sums at most
 * 2^H. While no sum comes near 2^128 and none needs a place below 2^-149, gradual underflow and overflow do not happen,
 * nothing is flushed that is not zero, and a double holds the product of two binary32 numbers. Then, with s and x * w,
 *
 *     TRNI_TAME_CUT    their sum in a double, toward zero, cut to b bits, is cut once: cutting twice is cutting once.
 *                      With all bits kept it is a sum of 53 bits in either rounding, or an exact one where H - L <= 53
 *     TRNI_TAME_ROUND  their sum in a double, rounded to b bits, is rounded once where H - L <= 53 (it is exact), or
 *                      where s and x * w have b <= 26 bits: 53 >= 2 b + 1 (Figueroa)
 *     TRNI_TAME_ODD    their sum rounded to odd, then to b <= 51 bits, is rounded once (Boldo and Melquiond)
 *     TRNI_TAME_BINS   the part of x * w above a fixed place and the part below go to sums of their own: both are exact
 *                      where H - L <= 97
 *
 * A number t is rounded to nearest even at the 2^cut'th of its last place by t + p - p, where p is t's power of two
 * (and sign) times 2^cut.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are; S. Figueroa, "When is double rounding innocuous?", SIGNUM 30(3),
 *     1995; S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE TC 57(4), 2008.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_TAME_H
#define TRNI_ARRAY_SYSTOLIC_TAME_H

#include "../trn_cpu.h"
#include "systolic_lanes.h"

enum { TRNI_TAME_ROWS = 4, TRNI_TAME_COLUMNS = 32, TRNI_TAME_CELLS = (int)TRNI_TAME_ROWS * TRNI_TAME_COLUMNS };

/* ---- what a tile holds ---- */

/* Finite numbers that are not zero are multiples of 2^low below 2^high, with at most `bits` significant bits. */
typedef struct trni_range {
    int low, high, bits;
    bool finite;
} trni_range;

TRNI_FN trni_range trni_range_none(void)
{
    const trni_range r = { 1 << 16, -(1 << 16), 0, true };
    return r;
}

TRNI_FN trni_range trni_range_join(trni_range r, trni_range s)
{
    r.low = s.low < r.low ? s.low : r.low;
    r.high = s.high > r.high ? s.high : r.high;
    r.bits = s.bits > r.bits ? s.bits : r.bits;
    r.finite = r.finite && s.finite;
    return r;
}

/* found: the least exponent of a lowest bit and the largest exponent field, both as fields, and the fewest zeros at the
 * end of a significand. */
TRNI_INLINE void trni_range_body(const float *x, size_t n, int32_t found[3])
{
    int32_t low = 1 << 16, high = 1, zeros = 24;
    for (size_t i = 0; i < n; i++) {
        const int32_t u = (int32_t)(trni_bits(x[i]) & ~TRNI_F32_SIGN), field = u >> 23;
        const int32_t m = (u & 0x7fffff) | (field ? 0x800000 : 0), e = field > 1 ? field : 1;
        const int32_t last = (int32_t)(trni_bits((float)(m & -m)) >> 23) - 127; /* its lowest bit's place */
        const int32_t at = m ? e + last : 1 << 16, empty = m ? last : 24;
        low = at < low ? at : low;
        high = e > high ? e : high;
        zeros = empty < zeros ? empty : zeros;
    }
    found[0] = low;
    found[1] = high;
    found[2] = zeros;
}
TRNI_DISPATCH_AVX2(trni_range, (const float *x, size_t n, int32_t found[3]), (x, n, found))

TRNI_COLD trni_range trni_range_of(const float *x, size_t n, trn_isa isa)
{
    int32_t found[3];
    trni_range r;
    trni_range_for(isa)(x, n, found);
    r.low = found[0] - 150;
    r.high = found[1] - 126;
    r.bits = 24 - found[2];
    r.finite = found[1] < 255;
    return r;
}

/* ---- chains ---- */

typedef enum trni_tame_way {
    TRNI_TAME_NOT,
    TRNI_TAME_CUT,
    TRNI_TAME_ROUND,
    TRNI_TAME_ODD,
    TRNI_TAME_BINS
} trni_tame_way;

typedef struct trni_tame_how {
    uint64_t keep; /* cut: the bits that stay */
    uint64_t cut;  /* round, odd: how many go, in the place of a double's exponent */
    double bin;    /* bins: 1.5 * 2^52 times the place */
} trni_tame_how;

enum { TRNI_BINS_MOST = 97, TRNI_BINS_ABOVE = 50 };
#define TRNI_F64_BINADE ((uint64_t)0xfff << 52) /* sign and exponent */

TRNI_COLD trni_tame_how trni_tame_how_of(int bits, int high)
{
    trni_tame_how how;
    how.keep = ~(uint64_t)0 << (53 - bits);
    how.cut = (uint64_t)(53 - bits) << 52;
    how.bin = ldexp(1.5, 52 + high - TRNI_BINS_ABOVE);
    return how;
}

/* sum[4][32] = the chain of `lines` products a[line][4] * b[line][32]; bins: sum[2][4][32]. Products are exact: whether
 * the compiler fuses them does not matter. */
#define TRNI_TAME_PARAMS const double *a, const double *b, const trni_tame_how *how, int lines, double *sum
#define TRNI_TAME_ARGS a, b, how, lines, sum

typedef void trni_tame_fn(TRNI_TAME_PARAMS);

TRNI_INLINE void trni_tame_body(trni_tame_way way, TRNI_TAME_PARAMS)
{
    enum { rows = TRNI_TAME_ROWS, width = TRNI_TAME_COLUMNS };
    double s[TRNI_TAME_CELLS], low[TRNI_TAME_CELLS];
    for (int i = 0; i < rows * width; i++) {
        s[i] = way == TRNI_TAME_BINS ? how->bin : 0;
        low[i] = 0;
    }
    for (int k = 0; k < lines; k++, a += rows, b += width)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++) {
                double *to = &s[i * width + j];
                const double t = a[i] * b[j] + *to;
                if (way == TRNI_TAME_CUT) *to = trni_double(trni_bits64(t) & how->keep);
                if (way == TRNI_TAME_ROUND) {
                    const double p = trni_double((trni_bits64(t) & TRNI_F64_BINADE) + how->cut);
                    *to = (t + p) - p;
                }
                if (way == TRNI_TAME_BINS) {
                    const double above = t - *to;
                    low[i * width + j] += a[i] * b[j] - above;
                    *to = t;
                }
            }
    for (int i = 0; i < rows * width; i++) {
        sum[i] = way == TRNI_TAME_BINS ? s[i] - how->bin : s[i];
        if (way == TRNI_TAME_BINS) sum[rows * width + i] = low[i];
    }
}
#define TRNI_TAME(name, way)                                                              \
    TRNI_INLINE void name##_body(TRNI_TAME_PARAMS) { trni_tame_body(way, TRNI_TAME_ARGS); } \
    TRNI_DISPATCH_BESIDE(name, (TRNI_TAME_PARAMS), (TRNI_TAME_ARGS))
TRNI_TAME(trni_tame_cut, TRNI_TAME_CUT)
TRNI_TAME(trni_tame_round, TRNI_TAME_ROUND)
TRNI_TAME(trni_tame_bins, TRNI_TAME_BINS)
#undef TRNI_TAME

/* Products rounded to BF16's 8 bits, sums in binary32: sum[4][32] of a[line][4] * b[line][32]. A product is exact in a
 * double; rounded it is a binary32 number. Where a fused multiply-add is at hand, p alone takes binary32's product, and
 * x * w + p - p has one rounding. */
#define TRNI_TAME_SHORT_PARAMS const float *a, const float *b, int lines, float *sum
#define TRNI_TAME_SHORT_ARGS a, b, lines, sum

typedef void trni_tame_short_fn(TRNI_TAME_SHORT_PARAMS);

TRNI_INLINE void trni_tame_short_body(TRNI_TAME_SHORT_PARAMS)
{
    enum { rows = TRNI_TAME_ROWS, width = TRNI_TAME_COLUMNS };
    float s[TRNI_TAME_CELLS] = { 0 };
    for (int k = 0; k < lines; k++, a += rows, b += width)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++) {
                const double t = (double)a[i] * (double)b[j],
                             p = trni_double((trni_bits64(t) & TRNI_F64_BINADE) + ((uint64_t)(53 - 8) << 52));
                s[i * width + j] += (float)((t + p) - p);
            }
    memcpy(sum, s, sizeof s);
}
TRNI_DISPATCH_BESIDE(trni_tame_short, (TRNI_TAME_SHORT_PARAMS), (TRNI_TAME_SHORT_ARGS))

/* Exact sums, high + low (null: nothing is there), rounded once. */
TRNI_INLINE void trni_tame_exact_body(float *sum, const double *high, const double *low, const trni_lane_rounding *r,
                                      int cells)
{
    const trni_lane_rounding how = *r;
    for (int i = 0; i < cells; i++) {
        uint64_t bad = 0; /* what is tiny has few bits */
        sum[i] = (float)trni_lane_round_exact(high[i], low ? low[i] : 0, 0, &how, &bad);
    }
}
TRNI_DISPATCH_AVX2(trni_tame_exact,
                   (float *sum, const double *high, const double *low, const trni_lane_rounding *r, int cells),
                   (sum, high, low, r, cells))

#if TRNI_INTRINSICS && TRNI_X86
#include "../simd/systolic_tame_avx2.h"
#include "../simd/systolic_tame_avx512.h"
#define TRNI_TAME_KERNEL(isa, name)                                        \
    ((isa) == TRN_ISA_AVX512   ? trni_simd_tame_##name##_avx512           \
     : (isa) == TRN_ISA_AVX2   ? trni_simd_tame_##name##_avx2             \
                               : trni_tame_##name##_portable)
#define TRNI_TAME_HAS_ODD(isa) ((isa) == TRN_ISA_AVX512)
#else
#define TRNI_TAME_KERNEL(isa, name) trni_tame_##name##_for(isa)
#define TRNI_TAME_HAS_ODD(isa) false
#endif

TRNI_FN trni_tame_short_fn *trni_tame_short_kernel(trn_isa isa) { return TRNI_TAME_KERNEL(isa, short); }

TRNI_FN trni_tame_fn *trni_tame_kernel(trni_tame_way way, trn_isa isa)
{
#if TRNI_INTRINSICS && TRNI_X86
    if (way == TRNI_TAME_ODD) return trni_simd_tame_odd_avx512;
#endif
    return way == TRNI_TAME_CUT     ? TRNI_TAME_KERNEL(isa, cut)
           : way == TRNI_TAME_ROUND ? TRNI_TAME_KERNEL(isa, round)
                                    : TRNI_TAME_KERNEL(isa, bins);
}

/* ---- which way ---- */

/* What all products and sums of two tiles stay within. */
typedef struct trni_tame_span {
    int low, high, bits; /* L, H, and the significant bits of a product */
    bool finite;
} trni_tame_span;

TRNI_FN trni_tame_span trni_tame_span_of(const trni_range *a, const trni_range *b, int rows)
{
    trni_tame_span s = { a->low + b->low, a->high + b->high, a->bits + b->bits, a->finite && b->finite };
    for (int i = rows - 1; i > 0; i /= 2) s.high++;
    return s;
}

TRNI_FN bool trni_flushes(const trn_numerics *n) { return n->flush_products || n->flush_sums; }

/* Products and sums are zero or normal: flushing them does nothing. */
TRNI_FN bool trni_tame_normal(const trni_tame_span *s) { return s->low >= -126; }

/* The way in doubles, of products that are not rounded. `narrow`: they have 24 bits at most, whatever the numbers. */
TRNI_COLD trni_tame_way trni_tame_way_of(const trn_numerics *n, const trni_tame_span *s, bool narrow, trn_isa isa)
{
    const int bits = n->accumulator_bits, wide = s->high - s->low;
    if (!s->finite || s->high > 126 || s->low < -149 || (trni_flushes(n) && !trni_tame_normal(s))) return TRNI_TAME_NOT;
    if (n->accumulator == TRN_ACCUMULATOR_EXACT)
        return wide <= 53 ? TRNI_TAME_CUT : wide <= TRNI_BINS_MOST ? TRNI_TAME_BINS : TRNI_TAME_NOT;
    if (n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO || bits == 53) return TRNI_TAME_CUT;
    if (wide <= 53 || (bits <= 26 && (narrow || s->bits <= bits))) return TRNI_TAME_ROUND;
    return bits <= 51 && TRNI_TAME_HAS_ODD(isa) ? TRNI_TAME_ODD : TRNI_TAME_NOT;
}

/* Products rounded to BF16: p must not overflow either. */
TRNI_FN bool trni_tame_short_applies(const trni_tame_span *s)
{
    return s->finite && trni_tame_normal(s) && s->high <= 100;
}

#endif /* TRNI_ARRAY_SYSTOLIC_TAME_H */
