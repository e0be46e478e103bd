/* twin_matmul.h - the tensor engine's definition, word for word, one output element at a time, in exact numbers.
 * SPDX-License-Identifier: MIT
 *
 * Per output element and tile of k_tile rows:
 *     every chain starts at +0 and takes its rows in ascending order: s = round(s + x*w), the product exact
 *     the chains are merged, ascending or pairwise
 *     the first tile overwrites PSUM, every later one is added: psum = RN32(psum + t)
 * and one cast on the way out. Nothing here is fast, blocked, vectorised or shared with trnmath/.
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
    int adder_bits; /* significand bits of the chain and merge additions, 24..53 */
    bool split;     /* float32 operands as hi + lo, four passes */
    bool tf32_truncate;
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

typedef struct twin_problem {
    int m, n, k;
    int a_format, b_format, dst_format; /* TWIN_F32 ... */
    const uint32_t *a, *b;              /* codes, [m, k] and [k, n], rows packed */
    uint32_t *dst; /* codes, [m, n]: read when accumulating, always written, except for k = 0 with accumulate */
    bool accumulate;
    twin_mode rounding;
    uint64_t seed, stream;
    twin_numerics numerics;
} twin_problem;

/* ---- operands ---- */

/* Below the smallest normal number of its own format, and not zero. */
static inline bool twin_is_subnormal(const twin_number *x, int smallest_normal_exponent)
{
    return x->kind == TWIN_FINITE && !twin_is_zero(x) && twin_exponent(x) < smallest_normal_exponent;
}

/* What the array sees of a code: TF32 containers with more than eleven significant bits lose them, and subnormals
 * may be read as zero. */
static inline twin_number twin_operand(int format, uint32_t code, const twin_numerics *n)
{
    const twin_format *f = &twin_formats[format];
    twin_number x = twin_decode(f, code);
    if (format == TWIN_TF32) {
        const twin_number whole = twin_from_f32(code);
        const twin_way way = twin_plain(n->tf32_truncate ? TWIN_TOWARD_ZERO : TWIN_NEAREST_EVEN);
        x = twin_decode(f, twin_encode(f, &whole, way));
    }
    if (n->flush_inputs && twin_is_subnormal(&x, 1 - f->bias)) x = twin_zero(x.negative);
    return x;
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
    const twin_number *x, *w; /* operands of the tile's rows, moving and stationary alike */
    int count;
} twin_rows;

static inline int twin_chain_of(int row, const twin_numerics *n)
{
    return n->blocked ? row / (128 / n->chains) : row % n->chains;
}

/* Chain c over all rows that are its own, continuing from s. */
static inline twin_number twin_chain(twin_number s, const twin_rows *rows, int c, const twin_numerics *n)
{
    for (int p = 0; p < rows->count; p++) {
        if (twin_chain_of(p, n) != c) continue;
        const twin_number product = twin_product(&rows->x[p], &rows->w[p], n);
        s = twin_array_add(&s, &product, n);
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
            if (twin_chain_of(p, n) != c) continue;
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
    for (int p = 0; p < rows->count; p++) {
        const twin_number product = twin_product(&rows->x[p], &rows->w[p], n);
        t = twin_add(&t, &product);
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

static inline void twin_element(const twin_problem *p, int i, int j)
{
    twin_number x[128], w[128], psum = twin_zero(false);
    const uint64_t index = (uint64_t)i * (uint64_t)p->n + (uint64_t)j;
    uint32_t *out = &p->dst[index];
    const bool split = p->numerics.split && (p->a_format == TWIN_F32 || p->b_format == TWIN_F32);
    if (p->accumulate) psum = twin_canonical(twin_decode(&twin_formats[p->dst_format], *out));

    for (int k0 = 0, tile = 0; k0 < p->k; k0 += p->numerics.k_tile, tile++) {
        const int rest = p->k - k0, count = rest < p->numerics.k_tile ? rest : p->numerics.k_tile;
        for (int r = 0; r < count; r++) {
            x[r] = twin_operand(p->a_format, p->a[(size_t)i * (size_t)p->k + (size_t)(k0 + r)], &p->numerics);
            w[r] = twin_operand(p->b_format, p->b[(size_t)(k0 + r) * (size_t)p->n + (size_t)j], &p->numerics);
        }
        const twin_rows rows = { x, w, count };
        const twin_number t = twin_tile(&rows, split, &p->numerics);
        psum = tile == 0 && !p->accumulate ? t : twin_psum_add(&psum, &t, &p->numerics);
        psum = twin_psum_store(psum, p, index, tile);
    }
    if (p->k == 0 && p->accumulate) return;
    twin_way way = twin_plain(p->rounding);
    way.random_bits = p->numerics.sr_bits;
    way.random = twin_random_bits(p->seed, p->stream, index, p->numerics.sr_bits);
    psum = twin_canonical(psum);
    *out = twin_encode(&twin_formats[p->dst_format], &psum, way);
}

static inline void twin_matmul(const twin_problem *p)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) twin_element(p, i, j);
}

#endif /* TWIN_MATMUL_H */
