/* trn_systolic.h - the arithmetic of the systolic array: its definition, and the kernels that return the same bits fast.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_systolic.h>
 *     int main(void) {
 *         const float x[2] = { 1.0f, 0x1p-24f }, w[2] = { 1.0f, 1.0f };
 *         trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
 *         return trn_systolic_tile(x, w, 2, false, &n) == 1.0f ? 0 : 1;      // two chains, merged: 1 + 2^-24 ties to even
 *     }
 *
 * DOES: one tile of at most 128 rows for one output element (the definition, every trn_numerics order), and packed
 *     panels with micro-kernels for the orders that run at full speed: any chain count, layout and merge.
 * DOES NOT: check arguments, enforce limits, split work or allocate; trn_tensor_engine.h and trn_matmul.h do.
 *
 * CONTENTS
 *     trn_systolic_tile   one tile for one output element, by definition
 *
 * A chain starts at +0 and is a sequence of fused multiply-adds. A product of two BF16, F16 or TF32 numbers has at most
 * 22 significant bits, so inside the normal range it is exact in binary32 and fused equals separate; outside it, and
 * for F32 operands, only the fused form is the definition. The kernels therefore use fmaf everywhere.
 *
 * KNOWN FROM: the numerics table of trn_numerics.h. Layout of a packed panel, for a tile of P rows:
 *
 *     [ rows of chain 0 | rows of chain 1 | … ]   each row: `width` lanes (rows of a, or columns of b)
 *
 * so that each chain is a plain rank-1-update loop over a sub-block, whatever the chain count or layout.
 */
#ifndef TRN_SYSTOLIC_H
#define TRN_SYSTOLIC_H

#include <math.h>

#include "trn_convert.h"
#include "trn_numerics.h"

enum { TRNI_ARRAY_ROWS = 128, TRNI_MAX_CHAINS = 16 };

/* ---- which rows belong to which chain ---- */

typedef struct trni_chains {
    int count;
    int length[TRNI_MAX_CHAINS];
    uint8_t row[TRNI_ARRAY_ROWS];  /* the rows of the tile, chain by chain */
    uint8_t slot[TRNI_ARRAY_ROWS]; /* where row p stands in that list */
} trni_chains;

TRNI_FN trni_chains trni_chains_of(const trn_numerics *n, int rows)
{
    trni_chains c;
    int slot = 0;
    c.count = n->chains;
    for (int chain = 0; chain < c.count; chain++) {
        const int block = TRNI_ARRAY_ROWS / c.count;
        const bool interleaved = n->chain_layout == TRN_CHAINS_INTERLEAVED;
        const int first = interleaved ? chain : chain * block, step = interleaved ? c.count : 1;
        const int last = interleaved || first + block > rows ? rows : first + block;
        c.length[chain] = 0;
        for (int p = first; p < last; p += step) {
            c.row[slot] = (uint8_t)p;
            c.slot[p] = (uint8_t)slot++;
            c.length[chain]++;
        }
    }
    return c;
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

TRNI_FN void trni_exact_add(trni_exact *sum, double x)
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
TRNI_FN double trni_exact_round(trni_exact x, int bits, trn_rounding rounding)
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
    const int smallest = -126 - (bits - 1) - TRNI_EXACT_LOW, last = top - bits + 1 > smallest ? top - bits + 1 : smallest;
    uint64_t kept = 0;
    for (int i = top; i >= last; i--) kept = kept << 1 | trni_exact_bit(&x, i);
    bool below_half = false;
    for (int i = 0; i < last - 1 && !below_half; i++) below_half = trni_exact_bit(&x, i);
    if (rounding == TRN_NEAREST_EVEN && trni_exact_bit(&x, last - 1) && (below_half || (kept & 1u))) kept++;

    double value = ldexp((double)kept, last + TRNI_EXACT_LOW);
    if (value >= 0x1p128)
        value = rounding == TRN_NEAREST_EVEN ? (double)trni_float(TRNI_F32_INF) : ldexp((double)(((uint64_t)1 << bits) - 1), 128 - bits);
    return negative ? -value : value;
}

TRNI_FN bool trni_finite64(double x) { return (trni_bits64(x) >> 52 & 0x7ff) != 0x7ff; }

/* x + y, rounded once. Zeros, infinities and NaN are IEEE's. */
TRNI_FN double trni_add_rounded(double x, double y, int bits, trn_rounding rounding)
{
    const double plain = x + y;
    if (plain == 0 || !trni_finite64(plain)) return plain; /* doubles neither underflow nor overflow here */
    trni_exact sum;
    memset(&sum, 0, sizeof sum);
    trni_exact_add(&sum, x);
    trni_exact_add(&sum, y);
    return trni_exact_round(sum, bits, rounding);
}

TRNI_FN double trni_rounded(double x, int bits) { return x == 0 ? x : trni_add_rounded(x, 0, bits, TRN_NEAREST_EVEN); }

/* ---- the definition ---- */

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
    return trni_flushed(trni_add_rounded(s, x, n->accumulator_bits, down ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN), n->flush_sums);
}

/* Are chain steps plain fmaf? */
TRNI_FN bool trni_steps_are_fmaf(const trn_numerics *n)
{
    return n->product == TRN_PRODUCT_EXACT && n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN && n->accumulator_bits == 24 &&
           !n->flush_products && !n->flush_sums;
}

/* The high part of an F32 operand: its significand cut to 12 bits. What is left fits 12 bits too. */
TRNI_FN float trni_high_part(float x) { return trni_float(trni_bits(x) & ~0xfffu); }
TRNI_FN bool trni_finite(float x) { return (trni_bits(x) & TRNI_F32_INF) != TRNI_F32_INF; }

/* The factors of row (x, w) in one of the four passes of the split mode; false when the pass leaves the row out.
 * Infinities and NaN have no halves: such a row takes part once, whole, in the last pass. */
TRNI_FN bool trni_split(float *x, float *w, int pass)
{
    if (!trni_finite(*x) || !trni_finite(*w)) return pass == 3;
    const float x_high = trni_high_part(*x), w_high = trni_high_part(*w);
    *x = pass & 2 ? x_high : *x - x_high;
    *w = pass & 1 ? w_high : *w - w_high;
    return true;
}

TRNI_FN double trni_chain_of(const float *x, const float *w, const uint8_t *row, int length, int passes, const trn_numerics *n)
{
    const bool fused = trni_steps_are_fmaf(n);
    double s = 0;
    for (int pass = 0; pass < passes; pass++)
        for (int i = 0; i < length; i++) {
            float a = x[row[i]], b = w[row[i]];
            if (passes > 1 && !trni_split(&a, &b, pass)) continue;
            s = fused ? (double)fmaf(a, b, (float)s) : trni_sum_of(s, trni_product_of(a, b, n), n);
        }
    return s;
}

/* The sum of all products, rounded once to binary32. */
TRNI_FN double trni_exact_tile(const float *x, const float *w, int rows, const trn_numerics *n)
{
    trni_exact sum;
    double plain = 0;
    memset(&sum, 0, sizeof sum);
    for (int p = 0; p < rows; p++) {
        const double product = trni_product_of(x[p], w[p], n);
        plain += product;
        if (trni_finite64(product)) trni_exact_add(&sum, product);
    }
    if (!trni_finite64(plain)) return plain; /* some product was infinite or NaN */
    return trni_flushed(trni_exact_round(sum, 24, TRN_NEAREST_EVEN), n->flush_sums);
}

/* One tile for one output element, as design semantics define it: x[p], w[p] are the operands of row p < rows <= 128,
 * already decoded; `f32` says that an operand is F32 (fp32_mode applies). Returns what is written or added to PSUM. */
TRNI_FN float trn_systolic_tile(const float *x, const float *w, int rows, bool f32, const trn_numerics *n)
{
    if (n->accumulator == TRN_ACCUMULATOR_EXACT) return (float)trni_exact_tile(x, w, rows, n);
    const trni_chains c = trni_chains_of(n, rows);
    const int passes = f32 && n->fp32_mode == TRN_FP32_SPLIT ? 4 : 1;
    double s[TRNI_MAX_CHAINS] = { 0 };
    for (int chain = 0, slot = 0; chain < c.count; slot += c.length[chain++])
        s[chain] = trni_chain_of(x, w, c.row + slot, c.length[chain], passes, n);
    if (n->merge == TRN_MERGE_PAIRWISE) {
        for (int half = c.count / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; i++) s[i] = trni_sum_of(s[2 * i], s[2 * i + 1], n);
    } else {
        for (int i = 1; i < c.count; i++) s[0] = trni_sum_of(s[0], s[i], n);
    }
    return (float)trni_rounded(s[0], 24);
}

/* psum + t, binary32. */
TRNI_FN float trni_psum_add(float psum, float t, const trn_numerics *n)
{
    return (float)trni_flushed((double)(psum + t), n->flush_sums);
}

/* ---- operands: a matrix of `lanes` rows (of a) or columns (of b), each `depth` long along K ---- */

typedef struct trni_operand {
    const unsigned char *data;
    trn_format format;
    trn_tf32_input tf32;
    int64_t lanes, depth, lane_stride, depth_stride; /* strides in elements */
} trni_operand;

TRNI_FN trni_operand trni_operand_of(const trn_tensor *t, int lane_axis, const trn_numerics *n)
{
    int64_t stride[TRN_MAX_RANK];
    trni_operand o;
    trni_strides(t, stride);
    o.data = (const unsigned char *)t->data;
    o.format = t->format;
    o.tf32 = n->tf32_input;
    o.lanes = t->shape[lane_axis];
    o.depth = t->shape[1 - lane_axis];
    o.lane_stride = o.lanes > 1 ? stride[lane_axis] : 1; /* a stride that is never taken may be any number */
    o.depth_stride = o.depth > 1 ? stride[1 - lane_axis] : 1;
    return o;
}

TRNI_INLINE const unsigned char *trni_operand_at(const trni_operand *o, int64_t lane, int64_t k)
{
    const int64_t bytes = o->format == TRN_F32 || o->format == TRN_TF32 ? 4 : 2;
    return o->data + (lane * o->lane_stride + k * o->depth_stride) * bytes;
}

/* Decoding on the way into the array. NaN payloads pass: the result's NaN is made canonical at the end. */

TRNI_INLINE uint32_t trni_in_f32(uint32_t u) { return u; }

TRNI_INLINE uint32_t trni_in_tf32_cut(uint32_t u)
{
    return (u & 0xffffe000u) | (trni_is_nan_bits(u) ? 0x00400000u : 0); /* a NaN may not lose all its payload */
}

TRNI_INLINE uint32_t trni_in_tf32(uint32_t u) { return trni_tf32_from_bits(u); }
TRNI_INLINE uint32_t trni_in_bf16(uint16_t code) { return (uint32_t)code << 16; }
TRNI_INLINE uint32_t trni_in_f16(uint16_t code) { return trni_bits_from_f16(code); }

TRNI_INLINE void trni_cast_tf32_cut_body(void *__restrict dst, const void *__restrict src, size_t n)
{
    trni_any32 *__restrict y = (trni_any32 *)dst;
    const trni_any32 *__restrict x = (const trni_any32 *)src;
    for (size_t i = 0; i < n; i++) y[i] = trni_in_tf32_cut(x[i]);
}
TRNI_STAMP(trni_cast_tf32_cut, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

TRNI_FN uint32_t trni_operand_bits(const trni_operand *o, int64_t lane, int64_t k)
{
    const unsigned char *at = trni_operand_at(o, lane, k);
    uint32_t word;
    uint16_t half;
    if (o->format == TRN_F32 || o->format == TRN_TF32) {
        memcpy(&word, at, sizeof word);
        return o->format == TRN_F32 ? word : o->tf32 == TRN_TF32_TRUNCATE ? trni_in_tf32_cut(word) : trni_in_tf32(word);
    }
    memcpy(&half, at, sizeof half);
    return o->format == TRN_BF16 ? trni_in_bf16(half) : trni_in_f16(half);
}

/* `count` consecutive k of one lane, for the definition. */
TRNI_FN void trni_operand_gather(const trni_operand *o, int64_t lane, int64_t k, int count, bool flush, float *out)
{
    for (int i = 0; i < count; i++) {
        const float x = trni_float(trni_operand_bits(o, lane, k + i));
        const double smallest = o->format == TRN_F16 ? 0x1p-14 : 0x1p-126;
        const bool subnormal = (double)x > -smallest && (double)x < smallest;
        out[i] = flush && subnormal ? trni_float(trni_bits(x) & TRNI_F32_SIGN) : x;
    }
}

/* ---- packing ---- */

enum { TRNI_MAX_WIDTH = 32 };

typedef void trni_lines_fn(float *dst, size_t panel_step, const uint8_t *slot, const unsigned char *src, int64_t row_step, int rows,
                           int64_t panels);

typedef void trni_stream_fn(float *sum, const float *x, const unsigned char *src, int64_t row_step, int rows, int64_t ahead, size_t n);

/* sum[j] = x[r] * line r [j] + sum[j], for `count` lines in order; asks for the same lines `ahead` bytes further on. */
#define TRNI_STREAM_ROWS(name, code_t, count)                                                                         \
    for (size_t j = 0; j < n; j += 64 / sizeof(code_t)) {                                                             \
        const size_t end = n - j < 64 / sizeof(code_t) ? n - j : 64 / sizeof(code_t);                                 \
        for (int r = 0; r < count; r++)                                                                               \
            __builtin_prefetch((const void *)((uintptr_t)(src + r * row_step + j * sizeof(code_t)) + (uintptr_t)ahead)); \
        for (size_t i = j; i < j + end; i++) {                                                                        \
            float s = sum[i];                                                                                         \
            for (int r = 0; r < count; r++) {                                                                         \
                code_t code;                                                                                          \
                memcpy(&code, src + r * row_step + i * sizeof code, sizeof code);                                     \
                s = __builtin_fmaf(x[r], trni_float(trni_in_##name(code)), s);                                        \
            }                                                                                                         \
            sum[i] = s;                                                                                               \
        }                                                                                                             \
    }

/* For each input format, stamped per instruction set:
 *   lines   `rows` lines of consecutive elements into panels of `width` lanes, a slot for each row
 *   stream  one chain of a single row of a: sums of n columns, `rows` lines of b
 * All read in memory order. */
#define TRNI_DECODER(name, code_t)                                                                                    \
    TRNI_INLINE void trni_line_##name(float *dst, const unsigned char *src, size_t n)                                 \
    {                                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                              \
            code_t code;                                                                                              \
            memcpy(&code, src + i * sizeof code, sizeof code);                                                        \
            const uint32_t u = trni_in_##name(code);                                                                  \
            memcpy(dst + i, &u, sizeof u);                                                                            \
        }                                                                                                             \
    }                                                                                                                 \
    TRNI_INLINE void trni_lines_##name##_body(trn_isa isa, float *dst, size_t panel_step, const uint8_t *slot,         \
                                              const unsigned char *src, int64_t row_step, int rows, int64_t panels)    \
    {                                                                                                                 \
        const size_t width = (size_t)trni_panel_width(isa);                                                           \
        for (int64_t p = 0; p < panels; p++)                                                                          \
            for (int r = 0; r < rows; r++)                                                                            \
                trni_line_##name(dst + (size_t)p * panel_step + slot[r] * width,                                      \
                                 src + r * row_step + p * (int64_t)(width * sizeof(code_t)), width);                  \
    }                                                                                                                 \
    TRNI_INLINE void trni_stream_##name##_body(trn_isa isa, float *sum, const float *x, const unsigned char *src,      \
                                               int64_t row_step, int rows, int64_t ahead, size_t n)                   \
    {                                                                                                                 \
        (void)isa;                                                                                                    \
        for (; rows >= 2; rows -= 2, x += 2, src += 2 * row_step)                                                     \
            TRNI_STREAM_ROWS(name, code_t, 2)                                                                         \
        if (rows)                                                                                                     \
            TRNI_STREAM_ROWS(name, code_t, 1)                                                                         \
    }                                                                                                                 \
    TRNI_STAMP_ISA(trni_stream_##name,                                                                                \
                   (float *sum, const float *x, const unsigned char *src, int64_t row_step, int rows, int64_t ahead,  \
                    size_t n),                                                                                        \
                   sum, x, src, row_step, rows, ahead, n)                                                             \
    TRNI_STAMP_ISA(trni_lines_##name,                                                                                 \
                   (float *dst, size_t panel_step, const uint8_t *slot, const unsigned char *src, int64_t row_step,    \
                    int rows, int64_t panels),                                                                        \
                   dst, panel_step, slot, src, row_step, rows, panels)

/* Columns of b in one panel. Plain C wants 32: gcc 12 peels loops of up to 16 steps before it would vectorise them. */
TRNI_INLINE int trni_panel_width(trn_isa isa) { return TRNI_INTRINSICS && isa == TRN_ISA_AVX2 ? 16 : 32; }

TRNI_DECODER(f32, uint32_t)
TRNI_DECODER(tf32, uint32_t)
TRNI_DECODER(tf32_cut, uint32_t)
TRNI_DECODER(bf16, uint16_t)
TRNI_DECODER(f16, uint16_t)
#undef TRNI_DECODER

#if TRNI_INTRINSICS && TRNI_X86
#include "simd/trn_systolic_avx2.h"
#include "simd/trn_systolic_avx512.h"
#endif

typedef struct trni_feed {
    trni_cast *line; /* n consecutive elements; null: they are binary32 already */
    trni_lines_fn *lines;
    trni_stream_fn *stream;
} trni_feed;

TRNI_FN trni_feed trni_feed_of(const trni_operand *o, trn_isa isa)
{
    const bool cut = o->tf32 == TRN_TF32_TRUNCATE;
    trni_feed d = { trni_cast_kernel(trni_cast_find(o->format, TRN_F32), isa), NULL, NULL };
    switch (o->format) {
    case TRN_F32: d.lines = trni_lines_f32_for(isa), d.stream = trni_stream_f32_for(isa); break;
    case TRN_TF32: /* the array rounds or cuts what a container holds; the plain decoding expects nothing below the code */
        d.line = cut ? trni_cast_tf32_cut_for(isa) : trni_cast_f32_tf32_for(isa);
        d.lines = cut ? trni_lines_tf32_cut_for(isa) : trni_lines_tf32_for(isa);
        d.stream = cut ? trni_stream_tf32_cut_for(isa) : trni_stream_tf32_for(isa);
        break;
    case TRN_BF16: d.lines = trni_lines_bf16_for(isa), d.stream = trni_stream_bf16_for(isa); break;
    default: d.lines = trni_lines_f16_for(isa), d.stream = trni_stream_f16_for(isa); break;
    }
#if TRNI_INTRINSICS && TRNI_X86
    if (o->format == TRN_F16 && isa == TRN_ISA_AVX512) d.lines = trni_guest_lines_f16_avx512, d.stream = trni_guest_stream_f16_avx512;
    if (o->format == TRN_F16 && isa == TRN_ISA_AVX2) d.lines = trni_guest_lines_f16_avx2, d.stream = trni_guest_stream_f16_avx2;
#endif
    return d;
}

TRNI_FN void trni_decode_line(const trni_feed *d, float *dst, const unsigned char *src, size_t n)
{
    if (d->line) d->line(dst, src, n);
    else memcpy(dst, src, sizeof(float) * n);
}

/* lines[lane][k] -> dst[slot[k]][lane]: `lanes` <= 16 lines of `rows` floats, `step` floats apart. */
TRNI_INLINE void trni_transpose_body(float *dst, size_t width, const uint8_t *slot, const float *lines, int64_t step, int lanes, int rows)
{
    for (int k = 0; k < rows; k++)
        for (int i = 0; i < lanes; i++) dst[slot[k] * width + (size_t)i] = lines[i * step + k];
}
TRNI_STAMP(trni_transpose,
           (float *dst, size_t width, const uint8_t *slot, const float *lines, int64_t step, int lanes, int rows),
           (dst, width, slot, lines, step, lanes, rows))

/* ---- micro-kernels ----
 *
 * One strip of a times one panel of b over one tile: out[i][j] = (in ? in[i][j] + : ) merged chains, ascending merge.
 * a is packed [row][strip rows], b is packed [row][panel width]. At row r the cache line at ahead + r * ahead_step is
 * asked for: memory fetches the next tile while this one is multiplied. */

typedef void trni_micro_fn(const float *a, const float *b, const int *length, int chains, const float *in, ptrdiff_t in_step,
                           float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step);

#if TRNI_CLANG
#define TRNI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TRNI_UNROLL _Pragma("GCC unroll 16")
#endif

TRNI_INLINE void trni_micro_body(trn_isa isa, int strip, const float *__restrict a, const float *__restrict b, const int *length, int chains,
                                 const float *in, ptrdiff_t in_step, float *__restrict out, ptrdiff_t out_step, uintptr_t ahead,
                                 uintptr_t ahead_step)
{
    enum { most_rows = 8 };
    const int width = trni_panel_width(isa);
    float t[most_rows][TRNI_MAX_WIDTH] = { { 0 } }, s[most_rows][TRNI_MAX_WIDTH];
    for (int c = 0; c < chains; c++) {
        TRNI_UNROLL for (int i = 0; i < strip; i++)
            for (int j = 0; j < width; j++) s[i][j] = 0;
        for (int k = length[c]; k > 0; k--) {
            TRNI_UNROLL for (int i = 0; i < strip; i++)
                for (int j = 0; j < width; j++) s[i][j] = __builtin_fmaf(a[i], b[j], s[i][j]);
            a += strip;
            b += width;
            __builtin_prefetch((const void *)ahead, 0, 2);
            ahead += ahead_step;
        }
        for (int i = 0; i < strip; i++)
            for (int j = 0; j < width; j++) t[i][j] = c ? t[i][j] + s[i][j] : s[i][j];
    }
    for (int i = 0; i < strip; i++)
        for (int j = 0; j < width; j++) out[i * out_step + j] = in ? in[i * in_step + j] + t[i][j] : t[i][j];
}

#define TRNI_MICRO_PARAMS                                                                                             \
    const float *a, const float *b, const int *length, int chains, const float *in, ptrdiff_t in_step, float *out,    \
        ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step
#define TRNI_MICRO(rows)                                                                                              \
    TRNI_INLINE void trni_micro_##rows##_body(trn_isa isa, TRNI_MICRO_PARAMS)                                         \
    {                                                                                                                 \
        trni_micro_body(isa, rows, a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step);              \
    }                                                                                                                 \
    TRNI_STAMP_ISA(trni_micro_##rows, (TRNI_MICRO_PARAMS), a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step)

TRNI_MICRO(8)
TRNI_MICRO(4)
TRNI_MICRO(2)
TRNI_MICRO(1)
#undef TRNI_MICRO
#undef TRNI_MICRO_PARAMS

/* The shape of the work on one instruction set: strips of the listed row counts (falling; the last is 1) and the
 * kernel for each, panels of `width` columns. */
enum { TRNI_KERNELS = 5 };

typedef struct trni_array {
    int width;
    int rows[TRNI_KERNELS];
    trni_micro_fn *micro[TRNI_KERNELS];
    trni_transpose_fn *transpose;
} trni_array;

TRNI_FN trni_array trni_array_of(trn_isa isa)
{
    const trni_array tall = { trni_panel_width(isa),
                              { 8, 4, 2, 1, 1 },
                              { trni_micro_8_for(isa), trni_micro_4_for(isa), trni_micro_2_for(isa), trni_micro_1_for(isa), NULL },
                              trni_transpose_for(isa) };
    const trni_array low = { trni_panel_width(isa), /* narrower registers: two rows of 32 sums fill them */
                             { 2, 1, 1, 1, 1 },
                             { trni_micro_2_for(isa), trni_micro_1_for(isa), NULL, NULL, NULL },
                             trni_transpose_for(isa) };
#if TRNI_INTRINSICS && TRNI_X86
    static const trni_array avx512 = { 32,
                                       { 12, 8, 4, 2, 1 },
                                       { trni_guest_micro_12_avx512, trni_guest_micro_8_avx512, trni_guest_micro_4_avx512,
                                         trni_guest_micro_2_avx512, trni_guest_micro_1_avx512 },
                                       trni_guest_transpose_avx512 };
    static const trni_array avx2 = { 16,
                                     { 6, 4, 2, 1, 1 },
                                     { trni_guest_micro_6_avx2, trni_guest_micro_4_avx2, trni_guest_micro_2_avx2, trni_guest_micro_1_avx2, NULL },
                                     trni_transpose_avx2 };
    if (isa == TRN_ISA_AVX512) return avx512;
    if (isa == TRN_ISA_AVX2) return avx2;
#endif
    return isa == TRN_ISA_AVX512 ? tall : low;
}

/* The tallest kernel that `left` rows can fill. */
TRNI_FN int trni_strip_kernel(const trni_array *array, int64_t left)
{
    int i = 0;
    while (array->rows[i] > left) i++;
    return i;
}

/* Packs lanes [lane, lane + lanes) of one tile into one panel of `width` >= lanes; the lanes beyond are zero. */
TRNI_FN void trni_pack_panel(const trni_array *array, const trni_feed *decode, const trni_operand *o, const trni_chains *c, int64_t lane,
                             int lanes, int width, int64_t k, int rows, float *dst)
{
    enum { group = 16 };
    float line[group * TRNI_ARRAY_ROWS];
    if (lanes < width) memset(dst, 0, sizeof(float) * (size_t)rows * (size_t)width);
    if (o->lane_stride == 1) {
        for (int r = 0; r < rows; r++) {
            trni_decode_line(decode, line, trni_operand_at(o, lane, k + r), (size_t)lanes);
            memcpy(dst + c->slot[r] * width, line, sizeof(float) * (size_t)lanes);
        }
    } else if (o->depth_stride == 1) {
        for (int first = 0; first < lanes; first += group) {
            const int count = lanes - first < group ? lanes - first : group;
            for (int i = 0; i < count; i++)
                trni_decode_line(decode, line + i * TRNI_ARRAY_ROWS, trni_operand_at(o, lane + first + i, k), (size_t)rows);
            array->transpose(dst + first, (size_t)width, c->slot, line, TRNI_ARRAY_ROWS, count, rows);
        }
    } else {
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < lanes; i++) dst[c->slot[r] * width + i] = trni_float(trni_operand_bits(o, lane + i, k + r));
    }
}

/* Packs columns [column, column + columns) of one tile of b: panel after panel, [panel][row][width]. */
TRNI_FN void trni_pack_columns(const trni_array *array, const trni_feed *decode, const trni_operand *b, const trni_chains *c, int64_t column,
                               int64_t columns, int64_t k, int rows, float *dst)
{
    const int width = array->width;
    const int group = columns > width ? 8 : rows; /* rows read together: as many streams as the prefetcher follows */
    const int64_t whole = b->lane_stride == 1 ? columns / width : 0;
    const size_t panel = (size_t)rows * (size_t)width;
    if (whole) {
        const int64_t row_step = trni_operand_at(b, 0, 1) - trni_operand_at(b, 0, 0);
        for (int r = 0; r < rows; r += group)
            decode->lines(dst, panel, c->slot + r, trni_operand_at(b, column, k + r), row_step, rows - r < group ? rows - r : group, whole);
    }
    for (int64_t p = whole; p * width < columns; p++) {
        const int64_t left = columns - p * width;
        trni_pack_panel(array, decode, b, c, column + p * width, left < width ? (int)left : width, width, k, rows, dst + (size_t)p * panel);
    }
}

/* Packs rows [lane, lane + lanes) of one tile of a, strip after strip; strip s of r rows is [row][r]. */
TRNI_FN void trni_pack_rows(const trni_array *array, const trni_feed *decode, const trni_operand *a, const trni_chains *c, int64_t lane,
                            int64_t lanes, int64_t k, int rows, float *dst)
{
    for (int64_t done = 0; done < lanes;) {
        const int strip = array->rows[trni_strip_kernel(array, lanes - done)];
        trni_pack_panel(array, decode, a, c, lane + done, strip, strip, k, rows, dst + (size_t)(done * rows));
        done += strip;
    }
}

/* ---- one strip times one panel over one tile, any merge ---- */

TRNI_FN void trni_strip_times_panel(const trni_array *array, int kernel, const float *a, const float *b, const trni_chains *c, trn_merge merge,
                                    const float *in, ptrdiff_t in_step, float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)
{
    if (merge == TRN_MERGE_ASCENDING || c->count < 4) { /* up to three sums the two merges are one */
        array->micro[kernel](a, b, c->length, c->count, in, in_step, out, out_step, ahead, ahead_step);
        return;
    }
    enum { most = 16 * TRNI_MAX_WIDTH };
    const int strip = array->rows[kernel], width = array->width, size = strip * width;
    float s[TRNI_MAX_CHAINS][most];
    for (int chain = 0; chain < c->count; chain++) {
        array->micro[kernel](a, b, &c->length[chain], 1, NULL, 0, s[chain], width, ahead, ahead_step);
        ahead += ahead_step * (uintptr_t)c->length[chain];
        a += c->length[chain] * strip;
        b += c->length[chain] * width;
    }
    for (int half = c->count / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++)
            for (int j = 0; j < size; j++) s[i][j] = s[2 * i][j] + s[2 * i + 1][j];
    for (int i = 0; i < strip; i++)
        for (int j = 0; j < width; j++)
            out[i * out_step + j] = in ? in[i * in_step + j] + s[0][i * width + j] : s[0][i * width + j];
}

/* ---- the way out ---- */

/* x[i] = x[i] + y[i]: merging chains, adding to PSUM. */
TRNI_INLINE void trni_add_line_body(float *__restrict x, const float *__restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = x[i] + y[i];
}
TRNI_STAMP(trni_add_line, (float *x, const float *y, size_t n), (x, y, n))

/* Every NaN that an engine computes is 7fc00000, whatever operand or instruction it came from. NaNs are rare: look
 * first, write only then. */
TRNI_INLINE void trni_canonical_nans_body(float *x, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) found |= trni_is_nan_bits(trni_bits(x[i]));
    if (!found) return;
    for (size_t i = 0; i < n; i++) x[i] = trni_float(trni_is_nan_bits(trni_bits(x[i])) ? TRNI_F32_NAN : trni_bits(x[i]));
}
TRNI_STAMP(trni_canonical_nans, (float *x, size_t n), (x, n))

#endif /* TRN_SYSTOLIC_H */
