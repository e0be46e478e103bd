/* array/matmul_pack.h - b packed once for many products: the panels that array/matmul_slabs.h would pack each time.
 * Behind trn_matmul.h. SPDX-License-Identifier: MIT
 *
 * DOES: a head that says for which format, sizes, order of sums and instruction set; a copy of b, row after row of K,
 *     and of its scales, for a single row of a, for int8 and for what is computed by definition; all of b, panel
 *     after panel, each tile after tile along K, so that few rows read memory from end to end: as words of pairs where
 *     these apply, or as binary32 with MX scales multiplied in, for everything else.
 * DOES NOT: allocate.
 *
 * KNOWN FROM: as array/matmul_slabs.h.
 */
#ifndef TRNI_ARRAY_MATMUL_PACK_H
#define TRNI_ARRAY_MATMUL_PACK_H

#include "matmul_worker.h"

/* What a packed b depends on. Whatever differs makes it another one. */
typedef struct trni_pack_head {
    char sign[16];
    int64_t bytes, copy, lanes, depth; /* of all, 0 = more than there can be; of the copy; N, K */
    int32_t format, exponent_bits, mantissa_bits, bias;
    int32_t isa, width, spread, panels; /* a trni_pack_kind */
    int32_t chains, layout, k_tile, fp32_mode, tf32_input, fp8_bias;
} trni_pack_head;

typedef enum trni_pack_kind { TRNI_PACK_COPY, TRNI_PACK_FLOATS, TRNI_PACK_WORDS } trni_pack_kind;

enum { TRNI_PACK_HEAD = 256 };

/* Lines of each lane: of words, or 0 where they do not suit. */
TRNI_LEAN int64_t trni_pack_words(const trni_product *p)
{
    trni_map whole, tail;
    if (!trni_order_is_packed(p) || !trni_pairs_order(p)) return 0;
    trni_product_maps(p, &whole, &tail);
    if (!trni_pairs_fit(&whole, &tail) || !trni_pairs_made_of(&p->b)) return 0;
    return p->b.depth / trni_tile_depth(p) * trni_pairs_lines(&whole) + trni_pairs_lines(&tail);
}

/* The bytes of the copy and of all. */
TRNI_DRIVER void trni_pack_head_sizes(trni_pack_head *h, const trni_product *p, int64_t words)
{
    const int64_t most = INT64_C(1) << TRNI_ADDRESS_BITS, wide = trni_round_up(h->lanes, h->width),
                  lines = words ? words : trni_round_up(h->depth, trni_spread_group(p->spread)),
                  scales = p->b_scale.data ? h->lanes * (h->depth / TRNI_SCALE_BLOCK) : 0;
    int64_t cells;
    if (__builtin_mul_overflow(lines, wide, &cells) || cells > most / (4 * (int64_t)sizeof(float))) return;
    h->copy = trni_round_up(h->depth * h->lanes * p->b.bytes + scales, TRNI_SCRATCH_ALIGN);
    h->bytes = TRNI_PACK_HEAD + h->copy + (h->panels ? cells * (int64_t)sizeof(float) : 0);
}

/* All but what data says: panels where the packed kernels apply. */
TRNI_LEAN trni_pack_head trni_pack_head_of(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const trni_array array = trni_array_of(trni_spread_group(p->spread), p->isa);
    const int64_t words = trni_pack_words(p);
    trni_pack_head h;
    memset(&h, 0, sizeof h);
    memcpy(h.sign, "trnmath packed 3", sizeof h.sign);
    h.lanes = p->b.lanes;
    h.depth = p->b.depth;
    h.format = (int32_t)p->b.format;
    h.exponent_bits = p->b.info.exponent_bits;
    h.mantissa_bits = p->b.info.mantissa_bits;
    h.bias = p->b.info.bias;
    h.isa = (int32_t)(words ? p->unit : p->isa);
    h.width = array.width;
    h.spread = (int32_t)p->spread;
    h.panels = words ? TRNI_PACK_WORDS : trni_order_is_packed(p) ? TRNI_PACK_FLOATS : TRNI_PACK_COPY;
    h.chains = n->chains;
    h.layout = (int32_t)n->chain_layout;
    h.k_tile = n->k_tile;
    h.fp32_mode = (int32_t)n->fp32_mode;
    h.tf32_input = (int32_t)n->tf32_input;
    h.fp8_bias = n->fp8_bias;
    trni_pack_head_sizes(&h, p, words);
    return h;
}

/* Rows [k, k_end) of b, columns [n, n_end), to their places in rows of all its columns. */
TRNI_DRIVER void trni_pack_square(const trni_operand *b, int64_t k, int64_t k_end, int64_t n, int64_t n_end,
                                  unsigned char *dst)
{
    const int64_t bytes = b->bytes;
    for (int64_t i = k; i < k_end; i++) {
        unsigned char *to = dst + (i * b->lanes + n) * bytes;
        if (b->lane_stride == 1) memcpy(to, trni_operand_at(b, n, i), (size_t)((n_end - n) * bytes));
        for (int64_t j = n; b->lane_stride != 1 && j < n_end; j++, to += bytes)
            memcpy(to, trni_operand_at(b, j, i), (size_t)bytes);
    }
}

/* The numbers of b, row after row of K, and its scales, lane after lane. */
TRNI_LEAN void trni_pack_copy(const trni_product *p, unsigned char *dst)
{
    enum { side = 64 };
    const trni_operand *b = &p->b;
    const int64_t wide = b->lane_stride == 1 ? b->lanes : (int64_t)side, blocks = b->depth / TRNI_SCALE_BLOCK;
    for (int64_t k = 0; k < b->depth; k += side)
        for (int64_t n = 0; n < b->lanes; n += wide)
            trni_pack_square(b, k, trni_min64(k + side, b->depth), n, trni_min64(n + wide, b->lanes), dst);
    dst += b->depth * b->lanes * b->bytes;
    for (int64_t n = 0; n < b->lanes && p->b_scale.data; n++)
        for (int64_t i = 0; i < blocks; i++) *dst++ = (unsigned char)trni_scale_at(&p->b_scale, n, i);
}

TRNI_LEAN void trni_pack_panels(const trni_product *p, float *dst, bool words)
{
    trni_worker w;
    trni_cut cut;
    bool wild = false; /* whoever uses it looks at all sums */
    memset(&cut, 0, sizeof cut);
    cut.pairs = words;
    trni_worker_init(&w, p, &cut, NULL);
    w.wild = &wild;
    const int64_t width = w.array.width, panels = trni_ceil_div(p->b.lanes, width), lines = trni_all_lines(&w);
    const int threads = (int)trni_min64(trni_threads(), panels);
    (void)threads; /* without OpenMP */
    TRNI_PARALLEL_FOR(num_threads(threads) schedule(static) if (threads > 1))
    for (int64_t i = 0; i < panels; i++) {
        TRNI_FLOATS;
        const int64_t n = i * width;
        for (int64_t k = 0; k < p->b.depth; k += trni_tile_depth(p))
            trni_worker_pack_columns(&w, n, trni_min64(p->b.lanes - n, width), k, trni_tile_deep(&w, k, p->b.depth),
                                     dst + n * lines + trni_tiles_lines(&w, 0, k) * width);
    }
}

/* Puts what was packed in the place of b, if it is what this product needs. */
TRNI_LEAN trn_status trni_pack_use(trni_product *p, const void *packed, trn_error *error)
{
    const trni_pack_head need = trni_pack_head_of(p);
    trni_pack_head head;
    memcpy(&head, packed, sizeof head);
    if (memcmp(head.sign, need.sign, sizeof head.sign) != 0)
        return trni_fail(error, TRN_EINVAL, "packed: these bytes are not from trn_matmul_pack");
    if (head.lanes != need.lanes || head.depth != need.depth || head.format != need.format)
        return trni_fail(error, TRN_ESHAPE, "packed holds %s [%lld, %lld], but b is %s [%lld, %lld]",
                         trn_format_name((trn_format)head.format), (long long)head.depth, (long long)head.lanes,
                         trn_format_name((trn_format)need.format), (long long)need.depth, (long long)need.lanes);
    if (memcmp(&head, &need, sizeof head) != 0)
        return trni_fail(error, TRN_EINVAL,
                         "packed was made with other numerics, double_row, or instruction set (%s, and this is %s)",
                         trn_isa_text((trn_isa)head.isa), trn_isa_text((trn_isa)need.isa));
    if (trn_tensor_overlap(p->dst, trn_tensor_1d(TRN_U8, (void *)(uintptr_t)packed, need.bytes)))
        return trni_fail(error, TRN_EINVAL, "dst overlaps packed");
    const unsigned char *data = (const unsigned char *)packed + TRNI_PACK_HEAD;
    p->b.data = data;
    p->b.lane_stride = 1;
    p->b.depth_stride = p->b.lanes;
    if (p->b_scale.data) {
        p->b_scale.data = data + p->b.depth * p->b.lanes * p->b.bytes;
        p->b_scale.block_stride = 1;
        p->b_scale.lane_stride = p->b.depth / TRNI_SCALE_BLOCK;
    }
    p->words = need.panels == TRNI_PACK_WORDS;
    if (need.panels && p->a.lanes > 1 && (!p->words || trni_pairs_made_of(&p->a)))
        p->packed = (const float *)(const void *)(data + need.copy);
    return TRN_OK;
}

#endif /* TRNI_ARRAY_MATMUL_PACK_H */
