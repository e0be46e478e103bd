/* twin_aligned.h - the accumulators without chains, word for word, one output element at a time, in exact numbers.
 * SPDX-License-Identifier: MIT
 *
 * The products of a tile, in ascending order, in blocks of `bytes` of each operand. Every product is an exact number
 * with an exponent e of its own: the sum of its operands' exponents, each at least that of its format's smallest normal
 * number.
 *     aligned   every product and PSUM: cut toward zero below 2^(largest e - bits); their exact sum; one rounding
 *     late      the products alone, in the same way; then their sum and PSUM rounded down, at the larger exponent
 *     halves    even and odd products in the same way, their two sums rounded down; then as late
 *     pairwise  binary32 additions of neighbours, of their sums, and so on
 * Nothing here is fast or shared with trnmath/.
 */
#ifndef TWIN_ALIGNED_H
#define TWIN_ALIGNED_H

#include "twin_matmul.h"

typedef enum twin_blocks_kind { TWIN_ALIGNED, TWIN_ALIGNED_LATE, TWIN_ALIGNED_HALVES, TWIN_PAIRWISE } twin_blocks_kind;

typedef struct twin_blocks {
    twin_blocks_kind kind;
    int bytes, bits, result_bits, floor;
    bool toward_zero;
} twin_blocks;

typedef struct twin_term {
    twin_number value;
    int e;
} twin_term;

/* x without the bits that weigh less than 2^quantum. */
static inline twin_number twin_cut(twin_number x, int quantum)
{
    const int place = quantum + TWIN_POINT;
    for (int i = 0; i < TWIN_LIMBS && x.kind == TWIN_FINITE; i++) {
        if (32 * (i + 1) <= place)
            x.limb[i] = 0;
        else if (32 * i < place)
            x.limb[i] &= 0xffffffffu << (place - 32 * i);
    }
    return x;
}

/* The largest multiple of 2^quantum that is not above x. */
static inline twin_number twin_down(twin_number x, int quantum)
{
    const twin_number cut = twin_cut(x, quantum);
    if (!x.negative || twin_compare_magnitude(&x, &cut) == 0) return cut;
    const twin_number step = twin_make(true, 1, quantum);
    return twin_add(&cut, &step);
}

/* Cut off at 2^(largest - bits) and added. */
static inline twin_number twin_sum_cut(const twin_term *t, int first, int step, int count, int largest, int bits)
{
    twin_number sum = twin_zero(false);
    for (int i = first; i < count; i += step) {
        const twin_number cut = twin_cut(t[i].value, largest - bits);
        sum = twin_add(&sum, &cut);
    }
    return sum;
}

/* -9999: they are all zeros. */
static inline int twin_largest(const twin_term *t, int first, int step, int count)
{
    int largest = -9999;
    for (int i = first; i < count; i += step)
        if (!twin_is_zero(&t[i].value) && t[i].e > largest) largest = t[i].e;
    return largest;
}

static inline int twin_max(int a, int b) { return a > b ? a : b; }

/* Zero sums are positive, and nothing stays at the largest finite number. */
static inline twin_number twin_block_round(const twin_number *sum, const twin_blocks *b, const twin_numerics *n)
{
    if (twin_is_zero(sum)) return twin_zero(false);
    if (twin_exponent(sum) >= 128) return twin_infinity(sum->negative);
    const twin_way way = twin_plain(b->toward_zero ? TWIN_TOWARD_ZERO : TWIN_NEAREST_EVEN);
    return twin_flush(twin_round(sum, b->result_bits, way), n->flush_sums);
}

static inline int twin_psum_exponent(const twin_number *psum) { return twin_max(twin_exponent(psum), -126); }

static inline twin_number twin_block_aligned(const twin_number *psum, const twin_term *t, int count,
                                             const twin_blocks *b)
{
    int largest = twin_max(twin_largest(t, 0, 1, count), -b->floor);
    if (!twin_is_zero(psum)) largest = twin_max(largest, twin_psum_exponent(psum));
    const twin_number products = twin_sum_cut(t, 0, 1, count, largest, b->bits);
    const twin_number own = twin_cut(*psum, largest - b->bits);
    return twin_add(&products, &own);
}

static inline twin_number twin_block_late(const twin_number *psum, const twin_term *t, int count, const twin_blocks *b)
{
    const bool halves = b->kind == TWIN_ALIGNED_HALVES;
    for (int i = 0; i < count; i++) /* such a product is an infinity of its sign */
        if (!twin_is_zero(&t[i].value) && twin_exponent(&t[i].value) >= 128) {
            twin_number sum = twin_zero(false);
            for (int k = 0; k < count; k++) {
                const bool over = !twin_is_zero(&t[k].value) && twin_exponent(&t[k].value) >= 128;
                const twin_number x = over ? twin_infinity(t[k].value.negative) : twin_zero(false);
                sum = twin_add(&sum, &x);
            }
            return sum;
        }
    int e = twin_largest(t, 0, 1, count);
    twin_number products = twin_zero(false);
    for (int half = 0; half < (halves ? 2 : 1); half++) {
        const int step = halves ? 2 : 1, largest = twin_largest(t, half, step, count);
        twin_number sum = twin_sum_cut(t, half, step, count, largest, b->bits);
        if (halves && !twin_is_zero(&sum)) sum = twin_down(sum, e - b->bits);
        products = twin_add(&products, &sum);
    }
    const int own = twin_is_zero(psum) ? -b->floor : twin_psum_exponent(psum);
    e = twin_max(e, own);
    if (!twin_is_zero(&products)) products = twin_down(products, e - b->bits - 7);
    twin_number kept = twin_is_zero(psum) ? *psum : twin_down(*psum, e - b->bits);
    if (halves && own < e - b->bits - 1) kept = twin_zero(false);
    return twin_add(&products, &kept);
}

static inline twin_number twin_binary32(const twin_number *x, bool flush)
{
    return twin_flush(twin_round(x, 24, twin_plain(TWIN_NEAREST_EVEN)), flush);
}

static inline twin_number twin_neighbours(const twin_term *t, int count, const twin_numerics *n)
{
    if (count == 1) return twin_binary32(&t[0].value, n->flush_products);
    const twin_number low = twin_neighbours(t, count / 2, n), high = twin_neighbours(t + count / 2, count / 2, n);
    const twin_number sum = twin_add(&low, &high);
    return twin_binary32(&sum, n->flush_sums);
}

static inline twin_number twin_block(twin_number psum, twin_term *t, int count, const twin_blocks *b,
                                     const twin_numerics *n)
{
    if (b->kind == TWIN_PAIRWISE) {
        const twin_number tree = twin_neighbours(t, count, n), sum = twin_add(&psum, &tree);
        return twin_binary32(&sum, n->flush_sums);
    }
    twin_number plain = psum;
    for (int i = 0; i < count; i++) plain = twin_add(&plain, &t[i].value);
    if (plain.kind != TWIN_FINITE) return plain;
    for (int i = 0; i < count; i++) t[i].value = twin_flush(t[i].value, n->flush_products);
    const twin_number sum =
        b->kind == TWIN_ALIGNED ? twin_block_aligned(&psum, t, count, b) : twin_block_late(&psum, t, count, b);
    return sum.kind == TWIN_FINITE ? twin_block_round(&sum, b, n) : sum;
}

static inline int twin_operand_exponent(const twin_number *x, const twin_problem *p, int which)
{
    const int format = which == TWIN_A ? p->a_format : p->b_format;
    twin_format f = twin_format_of(p, which);
    if (p->numerics.fp8_bias && f.bits == 8 && format != TWIN_CFP8 && !p->a_scale) f.bias = p->numerics.fp8_bias;
    return x->kind != TWIN_FINITE || twin_is_zero(x) ? 0 : twin_max(twin_exponent(x), 1 - f.bias);
}

static inline twin_number twin_tile_blocks(twin_number psum, const twin_rows *rows, const twin_problem *p,
                                           const twin_blocks *b)
{
    const int width_a = (twin_format_of(p, TWIN_A).bits + 7) / 8, width_b = (twin_format_of(p, TWIN_B).bits + 7) / 8;
    const int block = twin_max(b->bytes / twin_max(width_a, width_b), 1), count = rows->count * rows->group;
    if (p->numerics.flush_inputs && (twin_is_zero(&psum) || twin_is_subnormal(&psum, -126))) psum = twin_zero(false);
    for (int first = 0; first < count; first += block) {
        twin_term t[64];
        for (int i = 0; i < block; i++) {
            const int at = first + i;
            twin_number x = twin_zero(false), w = twin_zero(false);
            if (at < count) x = rows->x[at], w = rows->w[at];
            t[i].value = twin_multiply(&x, &w);
            if (twin_is_zero(&t[i].value)) t[i].value = twin_zero(false);
            t[i].e = twin_operand_exponent(&x, p, TWIN_A) + twin_operand_exponent(&w, p, TWIN_B);
            if (at >= count || !rows->scale) continue;
            t[i].value = twin_scaled(rows, at / rows->group, &t[i].value);
            if (t[i].value.kind == TWIN_FINITE) t[i].e += twin_exponent(&rows->scale[at / rows->group]);
        }
        psum = twin_block(psum, t, block, b, &p->numerics);
    }
    return psum;
}

static inline void twin_aligned_element(const twin_problem *p, const twin_blocks *b, int i, int j)
{
    twin_tile_of operands;
    twin_number psum = twin_zero(false);
    const uint64_t index = (uint64_t)i * (uint64_t)p->n + (uint64_t)j;
    uint32_t *out = &p->dst[index];
    const twin_format dst = twin_format_of(p, TWIN_DST);
    const int deepest = p->numerics.k_tile * (p->group > 1 ? p->group : 1);
    if (p->accumulate) psum = twin_canonical(twin_decode(&dst, *out));
    for (int k0 = 0, tile = 0; k0 < p->k; k0 += deepest, tile++) {
        const int rest = p->k - k0;
        const twin_rows rows = twin_gather(&operands, p, i, j, k0, rest < deepest ? rest : deepest);
        psum = twin_psum_store(twin_canonical(twin_tile_blocks(psum, &rows, p, b)), p, index, tile);
    }
    if (p->k == 0 && p->accumulate) return;
    twin_way way = twin_plain(p->rounding);
    way.random_bits = p->numerics.sr_bits;
    way.random = twin_random_bits(p->seed, p->stream, index, p->numerics.sr_bits);
    way.saturate = p->saturate;
    psum = twin_canonical(psum);
    *out = twin_encode(&dst, &psum, way);
}

static inline void twin_aligned_matmul(const twin_problem *p, const twin_blocks *b)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) twin_aligned_element(p, b, i, j);
}

#endif /* TWIN_ALIGNED_H */
