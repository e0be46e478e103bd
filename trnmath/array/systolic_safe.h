/* array/systolic_safe.h - chains that need no marks: sums of tiles whose numbers stay clear of binary32's ends.
 * Behind trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: looks at what numbers a packed tile holds, decides from that whether short arithmetic in doubles (or, for
 *     rounded products, in binary32) has the bits of the definition, and adds chains up, four rows by 32 columns in
 *     registers: sums of 24 to 53 bits, to nearest even or toward zero, exact ones, products rounded to BF16.
 * DOES NOT: recompute anything: what is not safe goes through array/systolic_lanes.h.
 *
 * All numbers of a tile are multiples of 2^low below 2^high. So its products are multiples of 2^L and its sums at most
 * 2^H. While no sum comes near 2^128 and none needs a place below 2^-149, gradual underflow and overflow do not happen,
 * nothing is flushed that is not zero, and a double holds the product of two binary32 numbers. Then, with s and x * w,
 *
 *     TRNI_SAFE_CUT    their sum in a double, toward zero, cut to b bits, is cut once: cutting twice is cutting once.
 *                      With all bits kept it is a sum of 53 bits in either rounding, or an exact one where H - L <= 53
 *     TRNI_SAFE_ROUND  their sum in a double, rounded to b bits, is rounded once where H - L <= 53 (it is exact), or
 *                      where s and x * w have b <= 26 bits: 53 >= 2 b + 1 (Figueroa)
 *     TRNI_SAFE_ODD    their sum rounded to odd (whichever of the sum rounded up and down is), then to b <= 51 bits, is
 *                      rounded once (Boldo and Melquiond)
 *     TRNI_SAFE_BINS   the part of x * w above a fixed place and the part below go to sums of their own: both are exact
 *                      where H - L <= 97
 *
 * A number t is rounded to nearest even at the 2^cut'th of its last place by t + p - p, where p is t's power of two
 * (and sign) times 2^cut.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are; S. Figueroa, "When is double rounding innocuous?", SIGNUM 30(3),
 *     1995; S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE TC 57(4), 2008.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_SAFE_H
#define TRNI_ARRAY_SYSTOLIC_SAFE_H

#include "operand_range.h"
#include "systolic_lanes.h"

enum { TRNI_SAFE_ROWS = 4, TRNI_SAFE_COLUMNS = 32, TRNI_SAFE_CELLS = (int)TRNI_SAFE_ROWS * TRNI_SAFE_COLUMNS };

/* ---- what a tile holds ---- */

/* Finite numbers that are not zero are multiples of 2^low below 2^high, with at most `bits` significant bits. */
typedef struct trni_safe_range {
    int low, high, bits;
    bool finite;
} trni_safe_range;

TRNI_FN trni_safe_range trni_safe_range_none(void)
{
    const trni_safe_range r = { 1 << 16, -(1 << 16), 0, true };
    return r;
}

TRNI_FN trni_safe_range trni_safe_range_join(trni_safe_range r, trni_safe_range s)
{
    r.low = s.low < r.low ? s.low : r.low;
    r.high = s.high > r.high ? s.high : r.high;
    r.bits = s.bits > r.bits ? s.bits : r.bits;
    r.finite = r.finite && s.finite;
    return r;
}

TRNI_COLD trni_safe_range trni_safe_range_of(const float *x, size_t n, trn_isa isa)
{
    trni_range found = { 0, 0, 0 };
    trni_range_of_for(isa)(x, n, &found);
    if (trni_range_is_zero(&found)) return trni_safe_range_none();
    const int digits = trni_range_digits(&found), least = trni_range_least(&found), most = trni_range_most(&found);
    const trni_safe_range r = { (least < -126 ? -126 : least) + 1 - digits, (most < -126 ? -126 : most) + 1, digits,
                                most < 128 };
    return r;
}

/* ---- chains ---- */

typedef enum trni_safe_way {
    TRNI_SAFE_NOT,
    TRNI_SAFE_CUT,
    TRNI_SAFE_ROUND,
    TRNI_SAFE_ODD,
    TRNI_SAFE_BINS
} trni_safe_way;

typedef struct trni_safe_how {
    uint64_t keep; /* cut: the bits that stay */
    uint64_t cut;  /* round, odd: how many go, in the place of a double's exponent */
    int gone;      /* odd, as integers: how many go, and a unit less than half of the last that stays */
    uint64_t half;
    double bin; /* bins: 1.5 * 2^52 times the place */
} trni_safe_how;

enum { TRNI_BINS_MOST = 97, TRNI_BINS_ABOVE = 50 };
#define TRNI_F64_BINADE ((uint64_t)0xfff << 52) /* sign and exponent */

TRNI_COLD trni_safe_how trni_safe_how_of(int bits, int high)
{
    trni_safe_how how;
    how.keep = ~(uint64_t)0 << (53 - bits);
    how.cut = (uint64_t)(53 - bits) << 52;
    how.gone = 53 - bits;
    how.half = bits < 53 ? ((uint64_t)1 << (52 - bits)) - 1 : 0;
    how.bin = ldexp(1.5, 52 + high - TRNI_BINS_ABOVE);
    return how;
}

/* sum[4][32] = the chain of `lines` products a[line][4] * b[line][32]; bins: sum[2][4][32]. Products are exact: whether
 * the compiler fuses them does not matter. */
#define TRNI_SAFE_PARAMS const double *a, const double *b, const trni_safe_how *how, int lines, double *sum
#define TRNI_SAFE_ARGS a, b, how, lines, sum

typedef void trni_safe_fn(TRNI_SAFE_PARAMS);

TRNI_INLINE void trni_safe_body(trni_safe_way way, TRNI_SAFE_PARAMS)
{
    enum { rows = TRNI_SAFE_ROWS, width = TRNI_SAFE_COLUMNS };
    double s[TRNI_SAFE_CELLS], low[TRNI_SAFE_CELLS];
    for (int i = 0; i < rows * width; i++) {
        s[i] = way == TRNI_SAFE_BINS ? how->bin : 0;
        low[i] = 0;
    }
    for (int k = 0; k < lines; k++, a += rows, b += width)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++) {
                double *to = &s[i * width + j];
                const double t = a[i] * b[j] + *to;
                if (way == TRNI_SAFE_CUT) *to = trni_double(trni_bits64(t) & how->keep);
                if (way == TRNI_SAFE_ROUND) {
                    const double p = trni_double((trni_bits64(t) & TRNI_F64_BINADE) + how->cut);
                    *to = (t + p) - p;
                }
                if (way == TRNI_SAFE_BINS) {
                    const double above = t - *to;
                    low[i * width + j] += a[i] * b[j] - above;
                    *to = t;
                }
            }
    for (int i = 0; i < rows * width; i++) {
        sum[i] = way == TRNI_SAFE_BINS ? s[i] - how->bin : s[i];
        if (way == TRNI_SAFE_BINS) sum[rows * width + i] = low[i];
    }
}
#define TRNI_SAFE(name, way)                                                                                           \
    TRNI_INLINE void name##_body(TRNI_SAFE_PARAMS) { trni_safe_body(way, TRNI_SAFE_ARGS); }                            \
    TRNI_DISPATCH_BESIDE(name, (TRNI_SAFE_PARAMS), (TRNI_SAFE_ARGS))
TRNI_SAFE(trni_safe_cut, TRNI_SAFE_CUT)
TRNI_SAFE(trni_safe_round, TRNI_SAFE_ROUND)
TRNI_SAFE(trni_safe_bins, TRNI_SAFE_BINS)
#undef TRNI_SAFE

/* Chains sum[chain][cells] to one, in either order. */
TRNI_INLINE void trni_safe_add(bool cut, double *__restrict s, const double *__restrict q, const trni_safe_how *how,
                               int cells)
{
    const uint64_t keep = how->keep, gone = how->cut;
    for (int i = 0; i < cells; i++) {
        const double t = s[i] + q[i], p = trni_double((trni_bits64(t) & TRNI_F64_BINADE) + gone);
        s[i] = cut ? trni_double(trni_bits64(t) & keep) : (t + p) - p;
    }
}

TRNI_INLINE void trni_safe_merge_body(bool cut, double *sum, int chains, bool ascending, const trni_safe_how *how,
                                      int cells)
{
    cells = trni_lane_cells(cells);
    for (int c = 1; c < chains && ascending; c++) {
        if (cut)
            trni_safe_add(true, sum, sum + c * cells, how, cells);
        else
            trni_safe_add(false, sum, sum + c * cells, how, cells);
    }
    for (int apart = 1; apart < chains && !ascending; apart *= 2)
        for (int c = 0; c < chains; c += 2 * apart) {
            if (cut)
                trni_safe_add(true, sum + c * cells, sum + (c + apart) * cells, how, cells);
            else
                trni_safe_add(false, sum + c * cells, sum + (c + apart) * cells, how, cells);
        }
}
TRNI_DISPATCH_AVX2(trni_safe_merge,
                   (bool cut, double *sum, int chains, bool ascending, const trni_safe_how *how, int cells),
                   (cut, sum, chains, ascending, how, cells))

TRNI_INLINE void trni_safe_narrow_body(float *__restrict x, const double *__restrict d, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)d[i];
}
TRNI_DISPATCH_AVX2(trni_safe_narrow, (float *x, const double *d, size_t n), (x, d, n))

TRNI_INLINE void trni_safe_widen_body(double *__restrict d, const float *__restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) d[i] = (double)x[i];
}
TRNI_DISPATCH_AVX2(trni_safe_widen, (double *d, const float *x, size_t n), (d, x, n))

/* Products rounded to BF16's 8 bits, sums in binary32: sum[4][32] of a[line][4] * b[line][32]. A product is exact in a
 * double; rounded it is a binary32 number. Where a fused multiply-add is at hand, p alone takes binary32's product, and
 * x * w + p - p has one rounding. */
#define TRNI_SAFE_SHORT_PARAMS const float *a, const float *b, int lines, float *sum
#define TRNI_SAFE_SHORT_ARGS a, b, lines, sum

typedef void trni_safe_short_fn(TRNI_SAFE_SHORT_PARAMS);

TRNI_INLINE void trni_safe_short_body(TRNI_SAFE_SHORT_PARAMS)
{
    enum { rows = TRNI_SAFE_ROWS, width = TRNI_SAFE_COLUMNS };
    float s[TRNI_SAFE_CELLS] = { 0 };
    for (int k = 0; k < lines; k++, a += rows, b += width)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++) {
                const double t = (double)a[i] * (double)b[j],
                             p = trni_double((trni_bits64(t) & TRNI_F64_BINADE) + ((uint64_t)(53 - 8) << 52));
                s[i * width + j] += (float)((t + p) - p);
            }
    memcpy(sum, s, sizeof s);
}
TRNI_DISPATCH_BESIDE(trni_safe_short, (TRNI_SAFE_SHORT_PARAMS), (TRNI_SAFE_SHORT_ARGS))

/* high + low, rounded to odd and then to binary32. (Their sum in a double is zero only if it is exact.) */
TRNI_INLINE void trni_safe_join_body(float *__restrict sum, const double *__restrict high, const double *__restrict low,
                                     int cells)
{
    cells = trni_lane_cells(cells);
    for (int i = 0; i < cells; i++) {
        double e;
        const double t = trni_two_sum(high[i], low[i], &e);
        const uint64_t u = trni_bits64(t), against = (u ^ trni_bits64(e)) >> 63,
                       moves = ~u & (e == 0 ? 0 : (uint64_t)1);
        sum[i] = (float)trni_double(u + moves - 2 * (moves & against));
    }
}
TRNI_DISPATCH_AVX2(trni_safe_join, (float *sum, const double *high, const double *low, int cells),
                   (sum, high, low, cells))

#if TRNI_INTRINSICS && TRNI_X86
#include "../simd/systolic_safe_avx2.h"
#include "../simd/systolic_safe_avx512.h"
#define TRNI_SAFE_KERNEL(isa, name)                                                                                    \
    ((isa) == TRN_ISA_AVX512 ? trni_simd_safe_##name##_avx512                                                          \
     : (isa) == TRN_ISA_AVX2 ? trni_simd_safe_##name##_avx2                                                            \
                             : trni_safe_##name##_portable)
#define TRNI_SAFE_HAS_ODD(isa) ((isa) != TRN_ISA_PORTABLE)
#else
#define TRNI_SAFE_KERNEL(isa, name) trni_safe_##name##_for(isa)
#define TRNI_SAFE_HAS_ODD(isa) false
#endif

TRNI_FN trni_safe_short_fn *trni_safe_short_kernel(trn_isa isa) { return TRNI_SAFE_KERNEL(isa, short); }

TRNI_FN trni_safe_fn *trni_safe_kernel(trni_safe_way way, trn_isa isa)
{
#if TRNI_INTRINSICS && TRNI_X86
    if (way == TRNI_SAFE_ODD) return isa == TRN_ISA_AVX512 ? trni_simd_safe_odd_avx512 : trni_simd_safe_odd_avx2;
#endif
    return way == TRNI_SAFE_CUT     ? TRNI_SAFE_KERNEL(isa, cut)
           : way == TRNI_SAFE_ROUND ? TRNI_SAFE_KERNEL(isa, round)
                                    : TRNI_SAFE_KERNEL(isa, bins);
}

/* The processor's mode while chains are added up: down as the order says, but AVX2 has the sum rounded up from the
 * processor, and rounded down as what is less than nothing rounded up. */
TRNI_FN trni_fp_modes trni_safe_modes(trni_safe_way way, bool down, trn_isa isa)
{
#if TRNI_X86
    if (way == TRNI_SAFE_ODD && isa == TRN_ISA_AVX2) return TRNI_FP_UP;
#endif
#if defined(TRNI_FP_DOWN)
    if (down) return TRNI_FP_DOWN;
#endif
    (void)way, (void)down, (void)isa;
    return TRNI_FP_PLAIN;
}

/* Gives the modes to go back to, with all that has happened. */
TRNI_FN trni_fp_modes trni_safe_enter(trni_fp_modes modes)
{
    const trni_fp_modes before = trni_fp_modes_get();
    if (modes != TRNI_FP_PLAIN) trni_fp_modes_set(modes);
    return before;
}

/* ---- which way ---- */

/* What all products and sums of two tiles stay within. */
typedef struct trni_safe_span {
    int low, high, bits; /* L, H, and the significant bits of a product */
    bool finite;
} trni_safe_span;

TRNI_FN trni_safe_span trni_safe_span_of(const trni_safe_range *a, const trni_safe_range *b, int rows)
{
    trni_safe_span s = { a->low + b->low, a->high + b->high, a->bits + b->bits, a->finite && b->finite };
    for (int i = rows - 1; i > 0; i /= 2) s.high++;
    return s;
}

TRNI_FN bool trni_flushes(const trn_numerics *n) { return n->flush_products || n->flush_sums; }

/* Products and sums are zero or normal: flushing them does nothing. */
TRNI_FN bool trni_safe_normal(const trni_safe_span *s) { return s->low >= -126; }

/* The way in doubles, of products that are not rounded. `narrow`: they have 24 bits at most, whatever the numbers. */
TRNI_COLD trni_safe_way trni_safe_way_of(const trn_numerics *n, const trni_safe_span *s, bool narrow, trn_isa isa)
{
    const int bits = n->accumulator_bits, wide = s->high - s->low;
    (void)isa; /* where no instruction set has the last way */
    if (!s->finite || s->high > 126 || s->low < -149 || (trni_flushes(n) && !trni_safe_normal(s))) return TRNI_SAFE_NOT;
    if (n->accumulator == TRN_ACCUMULATOR_EXACT)
        return wide <= 53 ? TRNI_SAFE_CUT : wide <= TRNI_BINS_MOST ? TRNI_SAFE_BINS : TRNI_SAFE_NOT;
    if (n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO || bits == 53) return TRNI_SAFE_CUT;
    if (wide <= 53 || (bits <= 26 && (narrow || s->bits <= bits))) return TRNI_SAFE_ROUND;
    return bits <= 51 && TRNI_SAFE_HAS_ODD(isa) ? TRNI_SAFE_ODD : TRNI_SAFE_NOT;
}

/* Products rounded to BF16: p must not overflow either. */
TRNI_FN bool trni_safe_short_applies(const trni_safe_span *s)
{
    return s->finite && trni_safe_normal(s) && s->high <= 100;
}

#endif /* TRNI_ARRAY_SYSTOLIC_SAFE_H */
