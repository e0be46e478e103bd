/* array/systolic.h - the arithmetic of the systolic array, by definition: what one tile adds to one output element.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: one tile of at most 128 rows for one output element, in every order that trn_numerics can name: one product a
 *     row, a pair (double rows of FP8) or four under one scale (MX).
 * DOES NOT: decode operands, check arguments or run fast: array/systolic_panels.h (the orders at full speed) and
 *     array/systolic_lanes.h (all the others) return the same bits.
 *
 * A chain starts at +0 and is a sequence of fused multiply-adds. A product of two BF16, F16 or TF32 numbers has at most
 * 22 significant bits, so inside the normal range it is exact in binary32 and fused equals separate; outside it, and
 * for F32 operands, only the fused form is the definition.
 *
 * KNOWN FROM: the numerics table of trn_numerics.h.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_H
#define TRNI_ARRAY_SYSTOLIC_H

#include <math.h>

#include "../machine/numerics.h"
#include "../number/round.h"
#include "systolic_aligned.h"

enum { TRNI_ARRAY_ROWS = 128, TRNI_MAX_CHAINS = 16, TRNI_MAX_GROUP = 4 };

/* ---- which rows belong to which chain ---- */

typedef struct trni_chains {
    int count;
    int length[TRNI_MAX_CHAINS];
    uint8_t row[TRNI_ARRAY_ROWS];  /* the rows of the tile, chain by chain */
    uint8_t slot[TRNI_ARRAY_ROWS]; /* where row p stands in that list */
} trni_chains;

/* `first` is the array's row where the tile begins: chains are wired into the array, not into the tile. */
TRNI_FN int trni_chain_of_row(const trn_numerics *n, int row)
{
    return n->chain_layout == TRN_CHAINS_INTERLEAVED ? row % n->chains : row / (TRNI_ARRAY_ROWS / n->chains);
}

/* Each chain's rows: every so many'th, or those of its block. */
TRNI_FN void trni_chains_init(trni_chains *c, const trn_numerics *n, int first, int rows)
{
    const bool interleaved = n->chain_layout == TRN_CHAINS_INTERLEAVED;
    const int count = n->chains, each = TRNI_ARRAY_ROWS / count, step = interleaved ? count : 1;
    int slot = 0;
    c->count = count;
    for (int chain = 0; chain < count; chain++) {
        const int from = slot, block = chain * each - first, skew = (chain + count - first % count) % count;
        const int begin = interleaved ? skew : block > 0 ? block : 0, stop = block + each < rows ? block + each : rows;
        for (int p = begin; p < (interleaved ? rows : stop); p += step) {
            c->row[slot] = (uint8_t)p;
            c->slot[p] = (uint8_t)slot++;
        }
        c->length[chain] = slot - from;
    }
}

/* ---- exact sums, for the orders that are not fmaf ----
 *
 * A fixed-point number of 640 bits, two's complement; bit i weighs 2^(i-320). Products of binary32 numbers are
 * multiples of 2^-298 below 2^256, and a double holds each of them exactly (48 bits), so 128 of them fit. */

enum { TRNI_EXACT_LIMBS = 20, TRNI_EXACT_LOW = -320 };

typedef struct trni_exact {
    uint32_t limb[TRNI_EXACT_LIMBS];
} trni_exact;

TRNI_FN uint64_t trni_bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

TRNI_COLD void trni_exact_add(trni_exact *sum, double x)
{
    const uint64_t u = trni_bits64(x);
    const int exponent = (int)(u >> 52 & 0x7ff);
    if (exponent == 0) return; /* zero: nothing here is as small as a subnormal double */
    uint64_t m = (u & 0xfffffffffffffu) | (uint64_t)1 << 52;
    int at = exponent - 1075 - TRNI_EXACT_LOW;
    if (at < 0) { /* the bits shifted out are zeros of a short significand */
        m >>= -at;
        at = 0;
    }
    const uint64_t low = (m & 0xffffffffu) << (at & 31), high = (m >> 32) << (at & 31);
    const uint32_t part[3] = { (uint32_t)low, (uint32_t)(low >> 32) | (uint32_t)high, (uint32_t)(high >> 32) };
    const uint32_t flip = u >> 63 ? 0xffffffffu : 0; /* subtraction: add the complement, and one */
    uint64_t carry = u >> 63;
    for (int i = at / 32, k = 0; i < TRNI_EXACT_LIMBS; i++, k++) {
        carry += (uint64_t)sum->limb[i] + ((k < 3 ? part[k] : 0) ^ flip);
        sum->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

TRNI_FN bool trni_exact_bit(const trni_exact *x, int i) { return x->limb[i / 32] >> (i % 32) & 1u; }

/* To `bits` significand bits in binary32's exponent range, to nearest even or toward zero. */
TRNI_COLD double trni_exact_round(trni_exact x, int bits, trn_rounding rounding)
{
    const bool negative = x.limb[TRNI_EXACT_LIMBS - 1] >> 31;
    if (negative) {
        uint64_t carry = 1;
        for (int i = 0; i < TRNI_EXACT_LIMBS; i++) {
            carry += (uint32_t)~x.limb[i];
            x.limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    int top = TRNI_EXACT_LIMBS * 32 - 1;
    while (top >= 0 && !trni_exact_bit(&x, top)) top--;
    if (top < 0) return 0;
    const int smallest = -126 - (bits - 1) - TRNI_EXACT_LOW,
              last = top - bits + 1 > smallest ? top - bits + 1 : smallest;
    uint64_t kept = 0;
    for (int i = top; i >= last; i--) kept = kept << 1 | trni_exact_bit(&x, i);
    bool below_half = false;
    for (int i = 0; i < last - 1 && !below_half; i++) below_half = trni_exact_bit(&x, i);
    if (rounding == TRN_NEAREST_EVEN && trni_exact_bit(&x, last - 1) && (below_half || (kept & 1u))) kept++;

    double value = ldexp((double)kept, last + TRNI_EXACT_LOW);
    if (value >= 0x1p128)
        value = rounding == TRN_NEAREST_EVEN ? (double)trni_float(TRNI_F32_INF)
                                             : ldexp((double)(((uint64_t)1 << bits) - 1), 128 - bits);
    return negative ? -value : value;
}

TRNI_FN bool trni_finite64(double x) { return (trni_bits64(x) >> 52 & 0x7ff) != 0x7ff; }

/* ---- the usual sums, as array/systolic_lanes.h has them, too ---- */

/* To b <= 53 significand bits: a double's last 53 - b bits go. */
typedef struct trni_lane_rounding {
    int cut;
    uint64_t keep, add, one; /* the bits that stay; a unit less than half of the last that stays; what decides a tie */
    double flushed;          /* sums below become zeros of their sign: 2^-126 less 2^-149, or nothing but zero itself */
} trni_lane_rounding;

TRNI_COLD trni_lane_rounding trni_lane_rounding_of(int bits, bool down, bool flush)
{
    trni_lane_rounding r;
    r.cut = 53 - bits;
    r.keep = ~(uint64_t)0 << r.cut;
    r.add = r.cut && !down ? ((uint64_t)1 << (r.cut - 1)) - 1 : 0;
    r.one = r.cut > 0;
    r.flushed = flush ? 0x1p-126 - 0x1p-149 : 0x1p-1022;
    return r;
}

TRNI_INLINE double trni_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define TRNI_F64_SIGN ((uint64_t)1 << 63)

/* t + e rounded once, where t is their sum in double and e what that left out. *bad is set where this arithmetic does
 * not hold: beyond 2^127, for a sum that is not zero at or below 2^-126, where the last place no longer shrinks with
 * the number, and for NaN.
 *
 * To nearest even, e decides when the bits that go are exactly half, and only then: |e| is at most half a unit of the
 * last of them. Down, an e of the other sign takes the number below t. Carries and borrows may cross binades. */
TRNI_INLINE double trni_lane_round(double t, double e, const trni_lane_rounding *r, bool down, uint64_t *bad)
{
    const uint64_t u = trni_bits64(t), against = (u ^ trni_bits64(e)) >> 63; /* e leads toward zero */
    const double magnitude = trni_double(u & ~TRNI_F64_SIGN);
    const uint64_t exact = e == 0 ? ~(uint64_t)0 : 0, zero = magnitude < r->flushed ? ~(uint64_t)0 : 0;
    const uint64_t tiny = magnitude > 0x1p-126 ? 0 : ~zero, huge = magnitude < 0x1p127 ? 0 : ~(uint64_t)0;
    const uint64_t kept =
        down ? u - (against & ~exact) : u + r->add + ((((u >> r->cut) & exact) | (~against & ~exact)) & r->one);
    *bad |= tiny | huge;
    return trni_double((kept & r->keep & ~zero) | (u & TRNI_F64_SIGN));
}

/* s + q = t + e, exactly. */
TRNI_INLINE double trni_two_sum(double s, double q, double *e)
{
    const double t = s + q, b = t - s;
    *e = (s - (t - b)) + (q - b);
    return t;
}

/* x + y, rounded once. Zeros, infinities and NaN are IEEE's. */
TRNI_COLD double trni_add_rounded(double x, double y, int bits, trn_rounding rounding)
{
    const bool down = rounding == TRN_TOWARD_ZERO;
    const trni_lane_rounding how = trni_lane_rounding_of(bits, down, false);
    double e;
    const double plain = trni_two_sum(x, y, &e);
    uint64_t bad = 0;
    if (plain == 0 || !trni_finite64(plain)) return plain; /* doubles neither underflow nor overflow here */
    const double usual = trni_lane_round(plain, e, &how, down, &bad);
    if (!bad) return usual;
    trni_exact sum;
    memset(&sum, 0, sizeof sum);
    trni_exact_add(&sum, x);
    trni_exact_add(&sum, y);
    return trni_exact_round(sum, bits, rounding);
}

TRNI_FN double trni_rounded(double x, int bits) { return x == 0 ? x : trni_add_rounded(x, 0, bits, TRN_NEAREST_EVEN); }

/* ---- the definition ---- */

/* One tile for one output element. A row of the array holds `group` numbers and receives as many in each step: one, two
 * (double rows) or four (MX, where they share a scale). */
typedef struct trni_tile {
    const float *x, *w;   /* operands, decoded: [rows][group] */
    const int16_t *scale; /* MX: the exponent e_x + e_w of each row, or TRNI_SCALE_NAN; null: no scales */
    int rows, group;
    int first_row;   /* of the array */
    bool f32;        /* an operand is F32: fp32_mode applies */
    trni_formats of; /* the operands' formats: the accumulators without chains look at more than values */
} trni_tile;

enum { TRNI_SCALE_NAN = 0x7fff };

TRNI_FN double trni_flushed(double x, bool flush)
{
    return flush && x > -0x1p-126 && x < 0x1p-126 ? x * 0.0 : x; /* a zero of the same sign */
}

TRNI_FN double trni_product_of(float x, float w, const trn_numerics *n)
{
    double p = trni_flushed((double)x * (double)w, n->flush_products); /* 48 bits: exact */
    return n->product == TRN_PRODUCT_BF16 ? trni_rounded(p, 8) : p;
}

TRNI_FN double trni_sum_of(double s, double x, const trn_numerics *n)
{
    const bool down = n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    return trni_flushed(trni_add_rounded(s, x, n->accumulator_bits, down ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN),
                        n->flush_sums);
}

/* Are chain steps plain fmaf? */
TRNI_FN bool trni_steps_are_fmaf(const trn_numerics *n)
{
    return n->product == TRN_PRODUCT_EXACT && n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN &&
           n->accumulator_bits == 24 && !n->flush_products && !n->flush_sums;
}

/* The high part of an F32 operand: its significand cut to 12 bits. What is left fits 12 bits too. */
TRNI_FN float trni_high_part(float x) { return trni_float(trni_bits(x) & ~0xfffu); }
TRNI_FN bool trni_finite(float x) { return (trni_bits(x) & TRNI_F32_INF) != TRNI_F32_INF; }

/* The factors of row (x, w) in one of the four passes of the split mode; false when the pass leaves the row out.
 * Infinities and NaN have no halves: such a row takes part once, whole, in the last pass. */
TRNI_COLD bool trni_split(float *x, float *w, int pass)
{
    if (!trni_finite(*x) || !trni_finite(*w)) return pass == 3;
    const float x_high = trni_high_part(*x), w_high = trni_high_part(*w);
    *x = pass & 2 ? x_high : *x - x_high;
    *w = pass & 1 ? w_high : *w - w_high;
    return true;
}

/* Products that one row adds at once, each exact in a double. Sums of them fit trni_exact, scaled or not: an MX product
 * is a multiple of 2^-32 below 2^32, and scales are 2^-254 to 2^254. */
TRNI_COLD double trni_exact_sum(const double *x, int count)
{
    trni_exact sum;
    double plain = 0;
    memset(&sum, 0, sizeof sum);
    for (int i = 0; i < count; i++) {
        plain += x[i];
        if (trni_finite64(x[i])) trni_exact_add(&sum, x[i]);
    }
    return trni_finite64(plain) ? trni_exact_round(sum, 24, TRN_NEAREST_EVEN) : plain; /* one was infinite or NaN */
}

/* A pair's or a quad's sum, binary32 whatever the chains' accumulator is. */
TRNI_COLD double trni_group_sum(const double *product, int group, const trn_numerics *n)
{
    double q = product[0];
    if (n->group == TRN_GROUP_EXACT) {
        for (int i = 1; i < group; i++) q += product[i];
        const bool minus_zero = trni_bits64(q) == (uint64_t)1 << 63; /* all of them are -0, and so is their sum */
        return minus_zero ? q : trni_flushed(trni_exact_sum(product, group), n->flush_sums);
    }
    for (int i = 1; i < group; i++)
        q = trni_flushed(trni_add_rounded(q, product[i], 24, TRN_NEAREST_EVEN), n->flush_sums);
    return q;
}

TRNI_COLD double trni_scaled(double x, const trni_tile *t, int row)
{
    if (!t->scale) return x;
    return t->scale[row] == TRNI_SCALE_NAN ? (double)trni_float(TRNI_F32_NAN)
                                           : ldexp(x, t->scale[row]); /* exact in a double */
}

/* What row p adds to its chain. */
TRNI_COLD double trni_row_of(const trni_tile *t, int p, const trn_numerics *n)
{
    double product[TRNI_MAX_GROUP] = { 0 }; /* (gcc fears a group of none) */
    for (int i = 0; i < t->group; i++) product[i] = trni_product_of(t->x[p * t->group + i], t->w[p * t->group + i], n);
    return trni_scaled(t->group == 1 ? product[0] : trni_group_sum(product, t->group, n), t, p);
}

TRNI_COLD double trni_chain_of(const trni_tile *t, const uint8_t *row, int length, const trn_numerics *n)
{
    double s = 0;
    for (int i = 0; i < length; i++) s = trni_sum_of(s, trni_row_of(t, row[i], n), n);
    return s;
}

/* One product a row, and each step a fused multiply-add: the usual case, said directly. */
TRNI_FN double trni_chain_of_fmaf(const trni_tile *t, const uint8_t *row, int length)
{
    float s = 0;
    for (int i = 0; i < length; i++) s = fmaf(t->x[row[i]], t->w[row[i]], s);
    return (double)s;
}

TRNI_COLD double trni_chain_of_split(const trni_tile *t, const uint8_t *row, int length, const trn_numerics *n)
{
    double s = 0;
    for (int pass = 0; pass < 4; pass++)
        for (int i = 0; i < length; i++) {
            float x = t->x[row[i]], w = t->w[row[i]];
            if (trni_split(&x, &w, pass)) s = trni_sum_of(s, trni_product_of(x, w, n), n);
        }
    return s;
}

/* The sum of all products, scaled, rounded once to binary32. */
TRNI_COLD double trni_exact_tile(const trni_tile *t, const trn_numerics *n)
{
    double product[TRNI_ARRAY_ROWS * TRNI_MAX_GROUP];
    const int count = t->rows * t->group;
    for (int i = 0; i < count; i++) product[i] = trni_scaled(trni_product_of(t->x[i], t->w[i], n), t, i / t->group);
    return trni_flushed(trni_exact_sum(product, count), n->flush_sums);
}

TRNI_COLD double trni_merged(double *s, int count, const trn_numerics *n)
{
    if (n->merge == TRN_MERGE_PAIRWISE) {
        for (int half = count / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; i++) s[i] = trni_sum_of(s[2 * i], s[2 * i + 1], n);
    } else {
        for (int i = 1; i < count; i++) s[0] = trni_sum_of(s[0], s[i], n);
    }
    return s[0];
}

/* No chains, and PSUM takes part in sums that are not plain additions. */
TRNI_FN bool trni_has_blocks(const trn_numerics *n) { return n->accumulator >= TRN_ACCUMULATOR_ALIGNED; }

TRNI_COLD float trni_blocks_onto(float psum, bool fresh, const trni_tile *t, const trn_numerics *n)
{
    const trni_pairs pairs = { t->x, t->w, t->scale, t->group, t->rows * t->group, t->of };
    for (int row = 0; t->scale && row < t->rows; row++)
        if (t->scale[row] == TRNI_SCALE_NAN) return trni_float(TRNI_F32_NAN);
    return trni_aligned_onto(psum, fresh, &pairs, n);
}

/* What is written or added to PSUM, as design semantics define it. */
TRNI_COLD float trni_tile_of(const trni_tile *t, const trn_numerics *n)
{
    if (trni_has_blocks(n)) return trni_blocks_onto(0, true, t, n);
    if (n->accumulator == TRN_ACCUMULATOR_EXACT) return (float)trni_exact_tile(t, n);
    trni_chains c;
    trni_chains_init(&c, n, t->first_row, t->rows);
    const bool split = t->f32 && n->fp32_mode == TRN_FP32_SPLIT,
               fmaf_steps = t->group == 1 && !t->scale && trni_steps_are_fmaf(n);
    double s[TRNI_MAX_CHAINS] = { 0 };
    for (int chain = 0, slot = 0; chain < c.count; slot += c.length[chain++]) {
        const uint8_t *row = c.row + slot;
        s[chain] = split        ? trni_chain_of_split(t, row, c.length[chain], n)
                   : fmaf_steps ? trni_chain_of_fmaf(t, row, c.length[chain])
                                : trni_chain_of(t, row, c.length[chain], n);
    }
    return (float)trni_rounded(trni_merged(s, c.count, n), 24);
}

/* psum + t, binary32. */
TRNI_FN float trni_psum_add(float psum, float t, const trn_numerics *n)
{
    return (float)trni_flushed((double)(psum + t), n->flush_sums);
}

/* PSUM after one more tile; fresh: it holds nothing yet, and is overwritten. */
TRNI_COLD float trni_tile_onto(float psum, bool fresh, const trni_tile *t, const trn_numerics *n)
{
    if (trni_has_blocks(n)) return trni_blocks_onto(psum, fresh, t, n);
    const float sum = trni_tile_of(t, n);
    return fresh ? sum : trni_psum_add(psum, sum, n);
}

#endif /* TRNI_ARRAY_SYSTOLIC_H */
