/* twin_matmul.h - the tensor engine's definition, word for word, one output element at a time, in exact numbers.
 * SPDX-License-Identifier: MIT
 *
 * Per output element and tile of k_tile rows:
 *     every chain starts at +0 and takes its rows in ascending order: s = round(s + q)
 *     q is what a row of the array makes of its products: the exact product; or, with two or four of them in a row,
 *     their sum, each addition rounded to binary32; times the row's power of two, exactly, where there are scales
 *     the chains are merged, ascending or pairwise
 *     the first tile overwrites PSUM, every later one is added: psum = RN32(psum + t)
 * and one cast on the way out. int8 products are integers and are summed as such. Nothing here is fast, blocked,
 * vectorised or shared with trnmath/.
 *
 * Which k a row holds, for a tile that starts at k0, L deep, L <= k_tile * group: one product a row, k0 + p; two,
 * k0 + p and k0 + ceil(L/2) + p (a partner that is missing is the product of two zeros); four, k0 + 4p .. k0 + 4p + 3.
 */
#ifndef TWIN_MATMUL_H
#define TWIN_MATMUL_H

#include "twin_number.h"
#include "twin_random.h"

typedef enum twin_adder { TWIN_ADDER_NEAREST, TWIN_ADDER_TOWARD_ZERO, TWIN_ADDER_EXACT } twin_adder;

typedef struct twin_numerics {
    int chains, k_tile;
    bool blocked;      /* row p belongs to chain p div (128 / chains), not p mod chains */
    bool pairwise;     /* (s0 + s1) + (s2 + s3) */
    bool product_bf16; /* products rounded to bfloat16 before the sum */
    twin_adder adder;
    int adder_bits;   /* significand bits of the chain and merge additions, 24..53 */
    bool group_exact; /* the products of a row are summed exactly and rounded once */
    bool split;       /* float32 operands as hi + lo, four passes */
    bool fp32r;       /* float32 operands are read as tfloat32 is */
    bool tf32_truncate;
    int fp8_bias; /* of operands in the four fixed FP8 formats, MX apart; 0 = their own */
    bool int32_saturates;
    bool flush_inputs, flush_products, flush_sums;
    bool psum_bf16, psum_stochastic;
    int sr_bits;
} twin_numerics;

static inline twin_numerics twin_numerics_default(void)
{
    twin_numerics n;
    memset(&n, 0, sizeof n);
    n.chains = 4;
    n.k_tile = 128;
    n.adder_bits = 24;
    n.sr_bits = 32;
    return n;
}

enum { TWIN_A, TWIN_B, TWIN_DST };

typedef struct twin_problem {
    int m, n, k;
    int a_format, b_format, dst_format; /* TWIN_F32 ... */
    twin_format cfp8[3];                /* of a, b and dst: what TWIN_CFP8 means there */
    int group;                          /* products of a row of the array: 0 and 1 one, 2 double rows, 4 MX */
    int first_row;                      /* of the array, where row 0 of a tile lies */
    const uint32_t *a, *b;              /* codes, [m, k] and [k, n], rows packed */
    const uint32_t *a_scale, *b_scale;  /* MX: E8M0 codes, [m, k/32] and [n, k/32]; or null */
    uint32_t *dst; /* codes, [m, n]: read when accumulating, always written, except for k = 0 with accumulate */
    bool accumulate;
    twin_mode rounding;
    bool saturate; /* finite overflow of the cast to dst stops at the largest number */
    uint64_t seed, stream;
    twin_numerics numerics;
} twin_problem;

static inline twin_format twin_format_of(const twin_problem *p, int which)
{
    const int format[3] = { p->a_format, p->b_format, p->dst_format };
    return format[which] == TWIN_CFP8 && p->cfp8[which].name ? p->cfp8[which] : twin_formats[format[which]];
}

/* ---- operands ---- */

/* Below the smallest normal number of its own format, and not zero. */
static inline bool twin_is_subnormal(const twin_number *x, int smallest_normal_exponent)
{
    return x->kind == TWIN_FINITE && !twin_is_zero(x) && twin_exponent(x) < smallest_normal_exponent;
}

/* What the array sees of a code: TF32 containers with more than eleven significant bits lose them, and subnormals
 * may be read as zero. */
static inline twin_number twin_operand_of(twin_format f, int format, uint32_t code, const twin_numerics *n)
{
    if (n->fp8_bias && (format == TWIN_E4M3 || format == TWIN_E4M3FN || format == TWIN_E5M2 || format == TWIN_E3M4))
        f.bias = n->fp8_bias;
    twin_number x = twin_decode(&f, code);
    if (format == TWIN_TF32 || (format == TWIN_F32 && n->fp32r)) {
        const twin_format *tf32 = &twin_formats[TWIN_TF32];
        const twin_number whole = twin_from_f32(code);
        const twin_way way = twin_plain(n->tf32_truncate ? TWIN_TOWARD_ZERO : TWIN_NEAREST_EVEN);
        x = twin_decode(tf32, twin_encode(tf32, &whole, way));
    }
    if (n->flush_inputs && twin_is_subnormal(&x, 1 - f.bias)) x = twin_zero(x.negative);
    return x;
}

static inline twin_number twin_operand(int format, uint32_t code, const twin_numerics *n)
{
    return twin_operand_of(twin_formats[format], format, code, n);
}

/* ---- additions and products ---- */

static inline twin_number twin_flush(twin_number x, bool flush)
{
    return flush && twin_is_subnormal(&x, -126) ? twin_zero(x.negative) : x;
}

static inline twin_way twin_adder_way(const twin_numerics *n)
{
    return twin_plain(n->adder == TWIN_ADDER_TOWARD_ZERO ? TWIN_TOWARD_ZERO : TWIN_NEAREST_EVEN);
}

/* An addition inside the array. */
static inline twin_number twin_array_add(const twin_number *x, const twin_number *y, const twin_numerics *n)
{
    const twin_number sum = twin_add(x, y);
    return twin_flush(twin_round(&sum, n->adder_bits, twin_adder_way(n)), n->flush_sums);
}

/* The addition into PSUM: binary32, nearest even, whatever the array does. */
static inline twin_number twin_psum_add(const twin_number *x, const twin_number *y, const twin_numerics *n)
{
    const twin_number sum = twin_add(x, y);
    return twin_flush(twin_round(&sum, 24, twin_plain(TWIN_NEAREST_EVEN)), n->flush_sums);
}

static inline twin_number twin_product(const twin_number *x, const twin_number *w, const twin_numerics *n)
{
    const twin_number exact = twin_flush(twin_multiply(x, w), n->flush_products);
    if (!n->product_bf16) return exact;
    const twin_format *bf16 = &twin_formats[TWIN_BF16];
    return twin_decode(bf16, twin_encode(bf16, &exact, twin_plain(TWIN_NEAREST_EVEN)));
}

/* hi: the top twelve of the 24 significand bits; lo: the rest, exactly. */
static inline void twin_split_operand(const twin_number *x, twin_number *hi, twin_number *lo)
{
    *hi = *x;
    *lo = twin_zero(false);
    if (twin_is_zero(x)) return;
    *hi = twin_from_f32(twin_to_f32(x) & 0xfffff000u);
    twin_number minus = *hi;
    minus.negative = !minus.negative;
    *lo = twin_add(x, &minus);
}

/* ---- one tile ---- */

typedef struct twin_rows {
    const twin_number *x, *w; /* operands, moving and stationary alike: group of them for each row */
    const twin_number *scale; /* a power of two, or NaN, for each row; null = none */
    int count, group, first_row;
} twin_rows;

static inline int twin_chain_of(int row, const twin_numerics *n)
{
    return n->blocked ? row / (128 / n->chains) : row % n->chains;
}

static inline bool twin_row_of_chain(const twin_rows *rows, int p, int c, const twin_numerics *n)
{
    return twin_chain_of(rows->first_row + p, n) == c;
}

static inline twin_number twin_scaled(const twin_rows *rows, int p, const twin_number *q)
{
    return rows->scale ? twin_multiply(&rows->scale[p], q) : *q;
}

/* What row p adds to its chain. The sum of a row is binary32 whatever the chain's adder is. */
static inline twin_number twin_row(const twin_rows *rows, int p, const twin_numerics *n)
{
    const twin_number *x = &rows->x[p * rows->group], *w = &rows->w[p * rows->group];
    twin_number q = twin_product(&x[0], &w[0], n);
    for (int i = 1; i < rows->group; i++) {
        const twin_number product = twin_product(&x[i], &w[i], n);
        q = n->group_exact ? twin_add(&q, &product) : twin_psum_add(&q, &product, n);
    }
    if (n->group_exact && rows->group > 1)
        q = twin_flush(twin_round(&q, 24, twin_plain(TWIN_NEAREST_EVEN)), n->flush_sums);
    return twin_scaled(rows, p, &q);
}

/* Chain c over all rows that are its own, continuing from s. */
static inline twin_number twin_chain(twin_number s, const twin_rows *rows, int c, const twin_numerics *n)
{
    for (int p = 0; p < rows->count; p++) {
        if (!twin_row_of_chain(rows, p, c, n)) continue;
        const twin_number q = twin_row(rows, p, n);
        s = twin_array_add(&s, &q, n);
    }
    return s;
}

/* Four passes over the same rows into the same sum: lo*lo, lo*hi, hi*lo, hi*hi, the stationary part named first. Rows
 * with an infinity or a NaN take part in the last pass only, with their whole operands. */
static inline twin_number twin_chain_split(const twin_rows *rows, int c, const twin_numerics *n)
{
    twin_number s = twin_zero(false);
    for (int pass = 0; pass < 4; pass++)
        for (int p = 0; p < rows->count; p++) {
            if (!twin_row_of_chain(rows, p, c, n)) continue;
            twin_number x_part[2] = { rows->x[p], rows->x[p] }, w_part[2] = { rows->w[p], rows->w[p] };
            if (rows->x[p].kind == TWIN_FINITE && rows->w[p].kind == TWIN_FINITE) {
                twin_split_operand(&rows->x[p], &x_part[1], &x_part[0]);
                twin_split_operand(&rows->w[p], &w_part[1], &w_part[0]);
            } else if (pass < 3) {
                continue;
            }
            const twin_number product = twin_product(&x_part[pass >> 1], &w_part[pass & 1], n);
            s = twin_array_add(&s, &product, n);
        }
    return s;
}

static inline twin_number twin_merge(const twin_number *s, int count, const twin_numerics *n)
{
    if (count == 1) return s[0];
    if (n->pairwise) {
        const twin_number low = twin_merge(s, count / 2, n), high = twin_merge(s + count / 2, count / 2, n);
        return twin_array_add(&low, &high, n);
    }
    twin_number t = s[0];
    for (int c = 1; c < count; c++) t = twin_array_add(&t, &s[c], n);
    return t;
}

static inline twin_number twin_tile_exact(const twin_rows *rows, const twin_numerics *n)
{
    twin_number t = twin_zero(false);
    for (int e = 0; e < rows->count * rows->group; e++) {
        const twin_number product = twin_product(&rows->x[e], &rows->w[e], n);
        const twin_number scaled = twin_scaled(rows, e / rows->group, &product);
        t = twin_add(&t, &scaled);
    }
    return twin_flush(twin_round(&t, 24, twin_plain(TWIN_NEAREST_EVEN)), n->flush_sums);
}

static inline twin_number twin_tile(const twin_rows *rows, bool split, const twin_numerics *n)
{
    if (n->adder == TWIN_ADDER_EXACT) return twin_tile_exact(rows, n);
    twin_number s[16];
    for (int c = 0; c < n->chains; c++)
        s[c] = split ? twin_chain_split(rows, c, n) : twin_chain(twin_zero(false), rows, c, n);
    const twin_number t = twin_merge(s, n->chains, n);
    return twin_flush(twin_round(&t, 24, twin_plain(TWIN_NEAREST_EVEN)), n->flush_sums);
}

/* ---- one element, and all of them ---- */

/* PSUM kept in bfloat16: one rounding after every tile. */
static inline twin_number twin_psum_store(twin_number psum, const twin_problem *p, uint64_t index, int tile)
{
    if (!p->numerics.psum_bf16) return psum;
    twin_way way = twin_plain(p->numerics.psum_stochastic ? TWIN_STOCHASTIC : TWIN_NEAREST_EVEN);
    way.random_bits = p->numerics.sr_bits;
    way.random = twin_random_bits(p->seed, p->stream + (uint64_t)tile, index, p->numerics.sr_bits);
    const twin_format *bf16 = &twin_formats[TWIN_BF16];
    return twin_decode(bf16, twin_encode(bf16, &psum, way));
}

static inline twin_number twin_canonical(twin_number x) { return x.kind == TWIN_NAN ? twin_nan() : x; }

/* The k of slot `slot` of row p in a tile of `depth` that starts at 0, or -1: there is none. */
static inline int twin_k_of(int p, int slot, int group, int depth)
{
    const int half = (depth + 1) / 2, k = group == 2 ? slot * half + p : group * p + slot;
    return k < depth ? k : -1;
}

enum { TWIN_MOST_ROWS = 128, TWIN_MOST_SLOTS = 4 };

/* The operands of a tile. */
typedef struct twin_tile_of {
    twin_number x[TWIN_MOST_ROWS * TWIN_MOST_SLOTS], w[TWIN_MOST_ROWS * TWIN_MOST_SLOTS], scale[TWIN_MOST_ROWS];
} twin_tile_of;

static inline twin_rows twin_gather(twin_tile_of *tile, const twin_problem *p, int i, int j, int k0, int depth)
{
    const int group = p->group > 1 ? p->group : 1;
    const int count = (depth + group - 1) / group;
    const twin_number *scale = p->a_scale ? tile->scale : NULL;
    const twin_rows rows = { tile->x, tile->w, scale, count, group, p->first_row };
    const twin_format a = twin_format_of(p, TWIN_A), b = twin_format_of(p, TWIN_B);
    const size_t blocks = (size_t)p->k / 32;
    twin_numerics n = p->numerics;
    if (p->a_scale) n.fp8_bias = 0; /* OCP fixes the elements of MX */
    for (int e = 0; e < count * group; e++) {
        const int at = twin_k_of(e / group, e % group, group, depth), k = k0 + at;
        tile->x[e] = tile->w[e] = twin_zero(false);
        if (at < 0) continue;
        tile->x[e] = twin_operand_of(a, p->a_format, p->a[(size_t)i * (size_t)p->k + (size_t)k], &n);
        tile->w[e] = twin_operand_of(b, p->b_format, p->b[(size_t)k * (size_t)p->n + (size_t)j], &n);
    }
    for (int r = 0; scale && r < count; r++) {
        const size_t block = (size_t)(k0 + group * r) / 32;
        const twin_number x = twin_decode(&twin_formats[TWIN_E8M0], p->a_scale[(size_t)i * blocks + block]);
        const twin_number w = twin_decode(&twin_formats[TWIN_E8M0], p->b_scale[(size_t)j * blocks + block]);
        tile->scale[r] = twin_multiply(&x, &w);
    }
    return rows;
}

static inline void twin_element(const twin_problem *p, int i, int j)
{
    twin_tile_of operands;
    twin_number psum = twin_zero(false);
    const uint64_t index = (uint64_t)i * (uint64_t)p->n + (uint64_t)j;
    uint32_t *out = &p->dst[index];
    const twin_format dst = twin_format_of(p, TWIN_DST);
    const int deepest = p->numerics.k_tile * (p->group > 1 ? p->group : 1);
    const bool split = p->numerics.split && (p->a_format == TWIN_F32 || p->b_format == TWIN_F32);
    if (p->accumulate) psum = twin_canonical(twin_decode(&dst, *out));

    for (int k0 = 0, tile = 0; k0 < p->k; k0 += deepest, tile++) {
        const int rest = p->k - k0, depth = rest < deepest ? rest : deepest;
        const twin_rows rows = twin_gather(&operands, p, i, j, k0, depth);
        const twin_number t = twin_tile(&rows, split, &p->numerics);
        psum = tile == 0 && !p->accumulate ? t : twin_psum_add(&psum, &t, &p->numerics);
        psum = twin_psum_store(psum, p, index, tile);
    }
    if (p->k == 0 && p->accumulate) return;
    twin_way way = twin_plain(p->rounding);
    way.random_bits = p->numerics.sr_bits;
    way.random = twin_random_bits(p->seed, p->stream, index, p->numerics.sr_bits);
    way.saturate = p->saturate;
    psum = twin_canonical(psum);
    *out = twin_encode(&dst, &psum, way);
}

/* ---- integers ---- */

static inline int64_t twin_signed(uint32_t code, int bits)
{
    const int64_t range = (int64_t)1 << bits, value = (int64_t)code % range;
    return value >= range / 2 ? value - range : value;
}

/* A sum that leaves 32 bits returns at the other end, or stays at this one. */
static inline int64_t twin_to_int32(int64_t x, bool saturates)
{
    const int64_t range = (int64_t)1 << 32, most = range / 2 - 1;
    if (saturates) return x > most ? most : x < -most - 1 ? -most - 1 : x;
    return twin_signed((uint32_t)((x % range + range) % range), 32);
}

/* int8 times int8: a tile of 128 products stays far below 2^31, so only the addition into PSUM can overflow. */
static inline void twin_integer_element(const twin_problem *p, int i, int j)
{
    uint32_t *out = &p->dst[(size_t)i * (size_t)p->n + (size_t)j];
    int64_t psum = p->accumulate ? twin_signed(*out, 32) : 0;
    for (int k0 = 0; k0 < p->k; k0 += p->numerics.k_tile) {
        int64_t t = 0;
        for (int k = k0; k < p->k && k < k0 + p->numerics.k_tile; k++)
            t += twin_signed(p->a[(size_t)i * (size_t)p->k + (size_t)k], 8) *
                 twin_signed(p->b[(size_t)k * (size_t)p->n + (size_t)j], 8);
        psum = twin_to_int32(psum + t, p->numerics.int32_saturates);
    }
    *out = (uint32_t)psum;
}

static inline void twin_matmul(const twin_problem *p)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            if (p->dst_format == TWIN_I32)
                twin_integer_element(p, i, j);
            else
                twin_element(p, i, j);
        }
}

#endif /* TWIN_MATMUL_H */
