/* array/product_define.h - a resolved product by definition: dst, tiles, one output element; int8; scales of panels.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: reads and writes of dst, with the random words of stochastic rounding; one output element in any order of
 *     trn_numerics; int8 sums; MX scales multiplied into packed panels.
 * DOES NOT: check anything (array/product.h has), or run fast but for int8.
 *
 * KNOWN FROM: design semantics; int8 in and int32 out on Trainium1 is documented, what overflows is not.
 */
#ifndef TRNI_ARRAY_PRODUCT_DEFINE_H
#define TRNI_ARRAY_PRODUCT_DEFINE_H

#include "product.h"

/* ---- reading and writing dst ---- */

TRNI_FN unsigned char *trni_dst_at(const trni_product *p, int64_t m, int64_t n)
{
    return (unsigned char *)p->dst.data +
           (m * p->dst.stride[0] + n * p->dst.stride[1]) * (int64_t)trn_format_bytes(p->dst.format);
}

TRNI_COLD float trni_dst_read(const trni_product *p, int64_t m, int64_t n)
{
    uint32_t code = 0;
    memcpy(&code, trni_dst_at(p, m, n), trn_format_bytes(p->dst.format)); /* little endian */
    return trni_float(trni_decode_row(&p->dst_info, code));
}

TRNI_COLD uint32_t trni_rounded_code(const trni_product *p, const trn_format_info *to, float x, trn_rounding rounding,
                                     uint64_t stream, int64_t m, int64_t n)
{
    trni_encoding how = { { rounding, 0, p->numerics.sr_bits }, p->overflow, false };
    const uint32_t u = trni_bits(x);
    if (rounding == TRN_STOCHASTIC)
        how.how.random =
            trn_random_field(p->seed, stream, (uint64_t)m * (uint64_t)p->b.lanes + (uint64_t)n, p->numerics.sr_bits);
    return trni_encode_row(to, trni_is_nan_bits(u) ? TRNI_F32_NAN : u, how);
}

/* The last cast: canonical NaN, one rounding, one store. */
TRNI_COLD void trni_dst_write(const trni_product *p, int64_t m, int64_t n, float x)
{
    const uint32_t code = trni_rounded_code(p, &p->dst_info, x, p->rounding, p->stream, m, n);
    memcpy(trni_dst_at(p, m, n), &code, trn_format_bytes(p->dst.format));
}

/* ---- PSUM of rows [m, m + rows) and columns [n, n + columns) of dst: psum[rows][columns] ----
 *
 * Where elements of a row of dst do not follow each other, squares of codes go through a buffer, so that what is close
 * together in dst is touched together. (Casts of its own, not trn_convert: half of the kernels to compile.) */

enum { TRNI_DST_SQUARE = 64, TRNI_DST_RUN = 1024 };

/* The codes of a square, a line of TRNI_DST_SQUARE for each row: to dst, or from it. */
TRNI_DRIVER void trni_dst_square(const trni_product *p, char *codes, int64_t m, int64_t rows, int64_t n,
                                 int64_t columns, bool writes)
{
    const size_t bytes = trn_format_bytes(p->dst.format);
    const int64_t down = p->dst.stride[0] * (int64_t)bytes, line = TRNI_DST_SQUARE * (int64_t)bytes;
    for (int64_t j = 0; j < columns; j++) {
        char *at = (char *)trni_dst_at(p, m, n + j), *code = codes + j * (int64_t)bytes;
        if (writes)
            trni_move(at, down, code, line, bytes, (size_t)rows);
        else
            trni_move(code, line, at, down, bytes, (size_t)rows);
    }
}

/* From what dst holds now. */
TRNI_LEAN void trni_psum_from_dst(const trni_product *p, float *psum, int64_t m, int64_t rows, int64_t n,
                                  int64_t columns)
{
    trni_decoder decoder;
    TRNI_LINES(uint32_t) codes[TRNI_DST_SQUARE * TRNI_DST_SQUARE];
    const bool straight = p->dst.stride[1] == 1;
    const int64_t wide = straight ? columns : (int64_t)TRNI_DST_SQUARE;
    trni_decoder_init_float(&decoder, &p->dst_info, p->isa);
    const int64_t line = TRNI_DST_SQUARE * (int64_t)decoder.bytes;
    for (int64_t i = 0; i < rows; i += TRNI_DST_SQUARE)
        for (int64_t j = 0; j < columns; j += wide) {
            const int64_t high = trni_min64(rows - i, TRNI_DST_SQUARE), count = trni_min64(columns - j, wide);
            if (!straight) trni_dst_square(p, (char *)codes, m + i, high, n + j, count, false);
            for (int64_t r = 0; r < high; r++) {
                const char *from = straight ? (char *)trni_dst_at(p, m + i + r, n) : (char *)codes + r * line;
                trni_decoder_run(&decoder, psum + (i + r) * columns + j, from, (size_t)count);
            }
        }
}

/* Elements [m, n] to [m, n + count) of dst as codes at `to`. Stochastic rounding counts the elements of all of dst. */
TRNI_DRIVER void trni_psum_cast(const trni_product *p, const trni_encoder *encoder, char *to, const float *psum,
                                int64_t m, int64_t n, int64_t count)
{
    TRNI_LINES(uint32_t) field[TRNI_DST_RUN];
    const bool stochastic = p->rounding == TRN_STOCHASTIC && !encoder->copy;
    for (int64_t j = 0, take; j < count; j += take) {
        const uint64_t index = (uint64_t)m * (uint64_t)p->b.lanes + (uint64_t)(n + j);
        take = trni_min64(count - j, TRNI_DST_RUN);
        if (stochastic)
            trn_random_fields(field, (size_t)take, encoder->how.how.bits, p->seed, p->stream, index, p->isa);
        trni_encoder_run(encoder, to + j * (int64_t)encoder->bytes, psum + j, stochastic ? field : NULL, (size_t)take);
    }
}

/* The cast of finished PSUM to dst; NaN in psum become canonical. */
TRNI_LEAN void trni_psum_to_dst(const trni_product *p, float *psum, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    trni_encoder encoder;
    TRNI_LINES(uint32_t) codes[TRNI_DST_SQUARE * TRNI_DST_SQUARE];
    const int bits = p->numerics.sr_bits ? p->numerics.sr_bits : 32;
    const trni_encoding how = { { p->rounding, 0, bits }, p->overflow, false };
    const bool straight = p->dst.stride[1] == 1;
    const int64_t wide = straight ? columns : (int64_t)TRNI_DST_SQUARE;
    trni_encoder_init_float(&encoder, &p->dst_info, how, p->isa);
    const int64_t line = TRNI_DST_SQUARE * (int64_t)encoder.bytes;
    trni_canonical_nans_for(p->isa)(psum, (size_t)(rows * columns));
    for (int64_t i = 0; i < rows; i += TRNI_DST_SQUARE)
        for (int64_t j = 0; j < columns; j += wide) {
            const int64_t high = trni_min64(rows - i, TRNI_DST_SQUARE), count = trni_min64(columns - j, wide);
            for (int64_t r = 0; r < high; r++) {
                char *to = straight ? (char *)trni_dst_at(p, m + i + r, n) : (char *)codes + r * line;
                trni_psum_cast(p, &encoder, to, psum + (i + r) * columns + j, m + i + r, n + j, count);
            }
            if (!straight) trni_dst_square(p, (char *)codes, m + i, high, n + j, count, true);
        }
}

/* K = 0: nothing is added to what PSUM holds, and a fresh PSUM holds +0. */
TRNI_COLD void trni_dst_clear(const trni_product *p)
{
    for (int64_t m = 0; m < p->a.lanes && !p->accumulate; m++)
        for (int64_t n = 0; n < p->b.lanes; n++) trni_dst_write(p, m, n, 0.0f); /* int32's zero, too */
}

/* ---- by definition: any order of trn_numerics ---- */

/* BF16 PSUM: rounded after every tile, each tile with random words of its own stream. */
TRNI_COLD float trni_psum_rounded(const trni_product *p, float psum, int64_t tile, int64_t m, int64_t n)
{
    trni_product plain = *p;
    if (p->numerics.psum_format != TRN_BF16) return psum;
    plain.overflow = TRN_OVERFLOW_DEFAULT;
    return trn_bf16_to_f32((uint16_t)trni_rounded_code(&plain, trn_format_info_of(TRN_BF16), psum,
                                                       p->numerics.psum_rounding, p->stream + (uint64_t)tile, m, n));
}

/* Numbers along K that one tile takes. */
TRNI_FN int64_t trni_tile_depth(const trni_product *p)
{
    return (int64_t)p->numerics.k_tile * trni_spread_group(p->spread);
}

/* The tile at k, `depth` numbers deep, of one lane: out[row][slot]; a pair's missing partner is a zero. */
TRNI_COLD void trni_tile_gather(const trni_product *p, const trni_operand *o, int64_t lane, int64_t k, int depth,
                                float *out)
{
    const int group = trni_spread_group(p->spread), rows = (depth + group - 1) / group;
    const bool flush = p->numerics.flush_inputs;
    if (depth < rows * group) memset(out, 0, sizeof(float) * (size_t)(rows * group));
    if (o->slots > 1) {
        for (int i = 0; i < group; i++) {
            const trni_operand slot = trni_operand_slot(o, i);
            trni_operand_gather(&slot, lane, 0, 1, rows, flush, out + i, group);
        }
    } else if (p->spread == TRNI_PAIRS) {
        trni_operand_gather(o, lane, k, 1, rows, flush, out, 2);
        trni_operand_gather(o, lane, k + rows, 1, depth - rows, flush, out + 1, 2);
    } else {
        trni_operand_gather(o, lane, k, 1, depth, flush, out, 1);
    }
}

/* The exponent of each row's scale, both operands together. */
TRNI_COLD void trni_tile_scales(const trni_product *p, int64_t m, int64_t n, int64_t k, int rows, int16_t *out)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    for (int i = 0; i < rows; i++) {
        const int64_t block = (k / 4 + i) / rows_of_a_block;
        const unsigned x = trni_scale_at(&p->a_scale, m, block), w = trni_scale_at(&p->b_scale, n, block);
        out[i] = (int16_t)(x == TRNI_SCALE_BYTE_NAN || w == TRNI_SCALE_BYTE_NAN ? TRNI_SCALE_NAN : (int)(x + w) - 254);
    }
}

/* At most so many elements of a row of dst, which share the tiles of a. */
enum { TRNI_DEFINE_COLUMNS = 256 };

TRNI_COLD void trni_define_row(const trni_product *p, int64_t m, int64_t n, int columns)
{
    const int64_t all = trni_product_depth(p), deep = trni_tile_depth(p);
    float x[TRNI_MAX_DEPTH], w[TRNI_MAX_DEPTH], psum[TRNI_DEFINE_COLUMNS];
    int16_t scale[TRNI_ARRAY_ROWS];
    for (int j = 0; j < columns; j++) psum[j] = p->accumulate ? trni_dst_read(p, m, n + j) : 0.0f;
    for (int64_t k = 0, tile = 0; k < all; k += deep, tile++) {
        const int depth = (int)(all - k < deep ? all - k : deep), group = trni_spread_group(p->spread),
                  rows = (depth + group - 1) / group;
        const bool scaled = p->a_scale.data != NULL, fresh = tile == 0 && !p->accumulate;
        const trni_tile one = {
            x, w, scaled ? scale : NULL, rows, group, p->first_row, p->f32, trni_formats_of(&p->a, &p->b)
        };
        trni_tile_gather(p, &p->a, m, k, depth, x);
        for (int j = 0; j < columns; j++) {
            trni_tile_gather(p, &p->b, n + j, k, depth, w);
            if (scaled) trni_tile_scales(p, m, n + j, k, rows, scale);
            psum[j] = trni_psum_rounded(p, trni_tile_onto(psum[j], fresh, &one, &p->numerics), tile, m, n + j);
        }
    }
    for (int j = 0; j < columns; j++) trni_dst_write(p, m, n + j, psum[j]);
}

TRNI_FN void trni_define_element(const trni_product *p, int64_t m, int64_t n) { trni_define_row(p, m, n, 1); }

/* Do the packed kernels compute what these rules define, whatever the numbers? Any chains, layout and merge; everything
 * else as it stands by default. */
TRNI_DRIVER bool trni_order_is_packed(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    /* an exact pair is a sequential one */
    const bool groups = p->spread != TRNI_QUADS || n->group == TRN_GROUP_SEQUENTIAL;
    const bool split = p->f32 && n->fp32_mode == TRN_FP32_SPLIT;
    return !p->integer && groups && !split && trni_steps_are_fmaf(n) && !n->flush_inputs;
}

/* And with these numbers? */
TRNI_DRIVER bool trni_kernels_apply(const trni_product *p)
{
    return trni_order_is_packed(p) && trni_product_is_safe(p);
}

/* ---- MX scales, multiplied into packed panels ---- */

/* The four lines of a row of the array, [4][width], times the scales of its lanes. */
TRNI_INLINE void trni_scale_lines_body(float *__restrict line, const float *__restrict scale, size_t width)
{
    for (size_t slot = 0; slot < 4; slot++)
        for (size_t i = 0; i < width; i++) line[slot * width + i] *= scale[i];
}
TRNI_DISPATCH_AVX2(trni_scale_lines, (float *line, const float *scale, size_t width), (line, scale, width))

/* A panel of [line][width]: each row of the array has four lines, each scale eight rows. */
TRNI_FN void trni_scale_panel(const trni_scales *s, const trni_map *map, int64_t lane, int lanes, int width, int64_t k,
                              float *panel, trn_isa isa)
{
    enum { rows_of_a_block = TRNI_SCALE_BLOCK / 4 };
    float scale[TRNI_MAX_WIDTH] = { 0 };
    for (int p = 0; p < map->rows; p++) {
        const int64_t row = k / 4 + p;
        for (int i = 0; i < lanes && (p == 0 || row % rows_of_a_block == 0); i++)
            scale[i] = trni_float(trni_scale_bits(trni_scale_at(s, lane + i, row / rows_of_a_block)));
        trni_scale_lines_for(isa)(panel + (size_t)map->chains.slot[p] * 4 * (size_t)width, scale, (size_t)width);
    }
}

/* Panels of columns, one after the other, as trni_pack_columns lays them. */
TRNI_DRIVER void trni_scale_columns(const trni_array *array, const trni_scales *s, const trni_map *map, int64_t lane,
                                    int64_t lanes, int64_t k, float *dst, trn_isa isa)
{
    const int width = array->width;
    for (int64_t done = 0; done < lanes; done += width)
        trni_scale_panel(s, map, lane + done, (int)trni_min64(lanes - done, width), width, k,
                         dst + (size_t)(done * map->lines), isa);
}

/* Strips of rows, as trni_pack_rows lays them. */
TRNI_DRIVER void trni_scale_rows(const trni_array *array, const trni_scales *s, const trni_map *map, int64_t lane,
                                 int64_t lanes, int64_t k, float *dst, trn_isa isa)
{
    for (int64_t done = 0; done < lanes;) {
        const int strip = array->rows[trni_strip_kernel(array, lanes - done)];
        trni_scale_panel(s, map, lane + done, strip, strip, k, dst + (size_t)(done * map->lines), isa);
        done += strip;
    }
}

/* The cast of each tile's sum to BF16 PSUM. */
TRNI_DRIVER void trni_psum_encoder_init(trni_encoder *encoder, const trni_product *p)
{
    const trni_encoding how = { { p->numerics.psum_rounding, 0, p->numerics.sr_bits }, TRN_OVERFLOW_DEFAULT, false };
    trni_encoder_init_float(encoder, trn_format_info_of(TRN_BF16), how, p->isa);
}

/* ---- int8: Trainium1 multiplies it and sums in int32 (documented); what becomes of larger sums is not public ---- */

/* Modulo 2^32. */
TRNI_INLINE int32_t trni_wrapped(uint32_t sum)
{
    int32_t wrapped;
    memcpy(&wrapped, &sum, sizeof wrapped);
    return wrapped;
}

TRNI_FN int32_t trni_int32_sum(const trni_product *p, int64_t sum)
{
    if (p->numerics.int32_overflow == TRN_INT32_SATURATE)
        return (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    return trni_wrapped((uint32_t)(uint64_t)sum);
}

/* sum[i] += x * w[i] */
TRNI_INLINE void trni_int8_line_body(int32_t *__restrict sum, int32_t x, const signed char *__restrict w, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] += x * w[i];
}
TRNI_DISPATCH_AVX2(trni_int8_line, (int32_t * sum, int32_t x, const signed char *w, size_t n), (sum, x, w, n))

/* The sum of x[i] * w[i], of a tile. */
TRNI_INLINE void trni_int8_dot_body(int32_t *__restrict sum, const signed char *__restrict x,
                                    const signed char *__restrict w, size_t n)
{
    int32_t s = 0;
    for (size_t i = 0; i < n; i++) s += x[i] * w[i];
    *sum = s;
}
TRNI_DISPATCH_AVX2(trni_int8_dot, (int32_t * sum, const signed char *x, const signed char *w, size_t n), (sum, x, w, n))

/* `count` numbers of an operand from [k, lane], along its lanes or along K: where they stand, or copied to `other`. */
TRNI_DRIVER const signed char *trni_int8_numbers(const trni_operand *o, int64_t lane, int64_t k, bool along_k,
                                                 int count, signed char *other)
{
    if ((along_k ? o->depth_stride : o->lane_stride) == 1) return (const signed char *)trni_operand_at(o, lane, k);
    for (int i = 0; i < count; i++)
        other[i] = (signed char)*trni_operand_at(o, lane + (along_k ? 0 : i), k + (along_k ? i : 0));
    return other;
}

enum { TRNI_INT8_COLUMNS = 1024 };

/* The sums of one tile, `deep` numbers from k, of row m with columns [n, n + count), along b's rows. */
TRNI_DRIVER void trni_int8_tile(const trni_product *p, int64_t m, int64_t n, int count, int64_t k, int deep,
                                int32_t *sum)
{
    signed char other[TRNI_INT8_COLUMNS], copy[TRNI_ARRAY_ROWS];
    const signed char *x = trni_int8_numbers(&p->a, m, k, true, deep, copy);
    memset(sum, 0, sizeof sum[0] * (size_t)count);
    for (int i = 0; i < deep; i++)
        trni_int8_line_for(p->isa)(sum, x[i], trni_int8_numbers(&p->b, n, k + i, false, count, other), (size_t)count);
}

/* PSUM of one column whose numbers follow each other, tile after tile. */
TRNI_DRIVER int32_t trni_int8_column(const trni_product *p, int64_t m, int64_t n, int32_t psum)
{
    signed char copy[TRNI_ARRAY_ROWS];
    trni_int8_dot_fn *const dot = trni_int8_dot_for(p->isa);
    const int64_t deep = p->numerics.k_tile;
    for (int64_t k = 0; k < p->a.depth; k += deep) {
        const int count = (int)(p->a.depth - k < deep ? p->a.depth - k : deep);
        int32_t sum;
        dot(&sum, trni_int8_numbers(&p->a, m, k, true, count, copy), (const signed char *)trni_operand_at(&p->b, n, k),
            (size_t)count);
        psum = trni_int32_sum(p, (int64_t)psum + sum);
    }
    return psum;
}

/* Columns [n, n + count) of a row of dst, at most TRNI_INT8_COLUMNS: one after the other where b's columns stand in
 * memory order, else along its rows. A tile's sum fits 22 bits; PSUM wraps or saturates when it is added. */
TRNI_COLD void trni_int8_part(const trni_product *p, int64_t m, int64_t n, int count)
{
    int32_t psum[TRNI_INT8_COLUMNS] = { 0 }, sum[TRNI_INT8_COLUMNS];
    const bool along = p->b.depth_stride == 1 && p->b.lane_stride != 1;
    const int64_t deep = p->numerics.k_tile;
    for (int i = 0; i < count && p->accumulate; i++) memcpy(&psum[i], trni_dst_at(p, m, n + i), sizeof psum[i]);
    for (int i = 0; i < count && along; i++) psum[i] = trni_int8_column(p, m, n + i, psum[i]);
    for (int64_t k = 0; k < p->a.depth && !along; k += deep) {
        trni_int8_tile(p, m, n, count, k, (int)(p->a.depth - k < deep ? p->a.depth - k : deep), sum);
        for (int i = 0; i < count; i++) psum[i] = trni_int32_sum(p, (int64_t)psum[i] + sum[i]);
    }
    for (int i = 0; i < count; i++) memcpy(trni_dst_at(p, m, n + i), &psum[i], sizeof psum[i]);
}

#endif /* TRNI_ARRAY_PRODUCT_DEFINE_H */
