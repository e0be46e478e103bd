/* data/mx_layout.h - MX data as Trainium3's memory holds it: x4 words, quadrants of scales, FP4 codes as FP8 codes.
 * A part of trn_mx.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mx.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint8_t code[32 * 2], scale[1 * 2] = { 127, 128 }, tile[32 * 2];
 *         static uint32_t word[8 * 2];
 *         for (int i = 0; i < 64; i++) code[i] = (uint8_t)(i / 2);                       // column 0: 0, 1, 2, 3, ...
 *         trn_mx_sbuf_args args = { .words = trn_tensor_2d(TRN_U32, word, 8, 2),
 *             .codes = trn_tensor_2d(TRN_F8_E4M3FN, code, 32, 2),
 *             .scale_tile = trn_tensor_2d(TRN_F8_E8M0, tile, 32, 2),
 *             .scales = trn_tensor_2d(TRN_F8_E8M0, scale, 1, 2), .scale_offset = 4 };
 *         if (trn_mx_to_sbuf(&args)) return 1;
 *         printf("%08x %d\n", (unsigned)word[0], tile[4 * 2 + 1]);                      // 03020100 128
 *         return word[0] == 0x03020100 ? 0 : 1;
 *     }
 *
 * DOES: codes [K, M] to x4 words [K/4, M] and back, scales [K/32, M] to their places in a scale tile and back, any
 *     strides; FP4 codes to FP8 codes through the default map or the caller's.
 * DOES NOT: quantise (trn_mx.h), or allocate.
 *
 * KNOWN FROM: NKI's quantize_mx, nc_matmul_mx and MXFP guide (documented: words, quadrants, offsets); the default FP4
 *     map is assumed; tests/unit/test_mx.c.
 */
#ifndef TRNI_DATA_MX_LAYOUT_H
#define TRNI_DATA_MX_LAYOUT_H

#include "mx_cast.h"

/* ---- Trainium3's SBUF ----
 *
 * One partition (row) of a data tile holds x4 words, one for each column: four elements of k, element 0 lowest. Eight
 * partitions of four are the 32 elements of a scale. The scales of 32 partitions, a quadrant, lie in four of those same
 * partitions, at an offset of 0, 4, 8 or 12 that leaves room for the scales of other tensors:
 *
 *     data tile    partition p, slot i:  k = 4p + i
 *     scale tile   partition 32q + offset + j, q = 0..3, j = 0..3:  the scales of k = 128q + 32j … 128q + 32j + 31,
 *                  which are those of data partitions 32q + 8j … 32q + 8j + 7
 *
 * With offset 0, partitions 0, 1, 2, 3 hold the scales' rows 0, 1, 2, 3, and partition 32 holds row 4. Rows 128, 256, …
 * of either tile begin the next one. Known from: NKI quantize_mx, nc_matmul_mx and the MXFP guide.
 *
 * trn_quantize_mx and trn_nc_matmul_mx take scales this way or dense, and tell by the partitions of the view: beside P
 * partitions of data, P/8 are dense scales, P a scale tile with offset 0. A tile's scales at another offset are the
 * view that begins there, as in NKI: scales[4:, :] is trn_tensor_slice(scales, 0, 4, P - 4). P is a multiple of 32, so
 * that no number of partitions means both. */

typedef struct trn_mx_sbuf_args {
    trn_tensor words;      /* [K/4, M] U32, for F4_E2M1 U16: the x4 words; rank 0: no data in this call */
    trn_tensor codes;      /* [K, M] F8_E4M3FN, F8_E5M2, F4_E2M1, one code per byte; K a multiple of 32 */
    trn_tensor scale_tile; /* [rows, M] F8_E8M0 or U8, rows enough for the last scale; rank 0: no scales in this call */
    trn_tensor scales;     /* [K/32, M] F8_E8M0 or U8 */
    int scale_offset;      /* 0, 4, 8 or 12. Rows of scale_tile that hold none of these scales are left alone */
    int slot_distance;     /* how far apart in k the four slots of a word are; 0 means 1, k = 4p + i. The guide itself
                            * interleaves with 128, k = 512·tile + 128i + p; its blocks are 8 x 4 elements all the
                            * same */
    trn_isa isa;
    trn_error *error;
} trn_mx_sbuf_args;

/* words = codes, scale_tile = scales, laid out as Trainium3's SBUF holds them. TRN_EFORMAT, TRN_ESHAPE: views that do
 * not fit; TRN_EINVAL: an offset or distance that does not exist, nothing to do, or overlap. */
TRN_API trn_status trn_mx_to_sbuf(const trn_mx_sbuf_args *args);

/* codes = words, scales = scale_tile. Fails as trn_mx_to_sbuf. */
TRN_API trn_status trn_mx_from_sbuf(const trn_mx_sbuf_args *args);

/* ---- MXFP4 on its way to the multiplier ----
 * Trainium3 turns FP4 into FP8 through a mapping that a program may define (documented: NeuronCore-v4); that it starts
 * as the exact values, which both FP8 formats have, is assumed. */

typedef struct trn_mx_fp4_args {
    trn_tensor dst;     /* any shape; F8_E4M3FN or F8_E5M2 */
    trn_tensor src;     /* the same shape; F4_E2M1 */
    const uint8_t *map; /* 16 codes of dst's format, one for each FP4 code; NULL: the same values */
    trn_error *error;
} trn_mx_fp4_args;

/* map[c] = the FP8 code whose value is that of the FP4 code c. */
TRN_API void trn_mx_fp4_map(trn_format fp8, uint8_t map[16]);

/* dst[i] = map[src[i]]. */
TRN_API trn_status trn_mx_fp4_to_fp8(const trn_mx_fp4_args *args);

#if TRNI_BODIES

/* ---- Trainium3's SBUF ----
 *
 * One partition (row) of a data tile holds x4 words, one for each column: four elements of k, element 0 lowest. Eight
 * partitions of four are the 32 elements of a scale. The scales of 32 partitions, a quadrant, lie in four of those same
 * partitions, at an offset of 0, 4, 8 or 12 that leaves room for the scales of other tensors:
 *
 *     data tile    partition p, slot i:  k = 4p + i
 *     scale tile   partition 32q + offset + j, q = 0..3, j = 0..3:  the scales of k = 128q + 32j … 128q + 32j + 31,
 *                  which are those of data partitions 32q + 8j … 32q + 8j + 7
 *
 * With offset 0, partitions 0, 1, 2, 3 hold the scales' rows 0, 1, 2, 3, and partition 32 holds row 4. Rows 128, 256, …
 * of either tile begin the next one. Known from: NKI quantize_mx, nc_matmul_mx and the MXFP guide. */

/* word[j] = four codes, `distance` bytes apart, and back. */
TRNI_INLINE void trni_mx_join_body(void *__restrict words, const unsigned char *__restrict x, int64_t distance,
                                   size_t n, int bits)
{
    const unsigned char *x1 = x + distance, *x2 = x1 + distance, *x3 = x2 + distance;
    trni_any32 *__restrict y = (trni_any32 *)words;
    trni_any16 *__restrict z = (trni_any16 *)words;
    if (bits == 8)
        for (size_t j = 0; j < n; j++)
            y[j] = (uint32_t)x[j] | (uint32_t)x1[j] << 8 | (uint32_t)x2[j] << 16 | (uint32_t)x3[j] << 24;
    else
        for (size_t j = 0; j < n; j++)
            z[j] = (uint16_t)((x[j] & 15u) | (x1[j] & 15u) << 4 | (x2[j] & 15u) << 8 | (x3[j] & 15u) << 12);
}

TRNI_DISPATCH(trni_mx_join,
              (void *__restrict words, const unsigned char *__restrict x, int64_t distance, size_t n, int bits),
              (words, x, distance, n, bits))

TRNI_INLINE void trni_mx_split_body(unsigned char *__restrict y, const void *__restrict words, int64_t distance,
                                    size_t n, int bits)
{
    const trni_any32 *__restrict x = (const trni_any32 *)words;
    const trni_any16 *__restrict z = (const trni_any16 *)words;
    for (int slot = 0; slot < 4; slot++, y += distance)
        if (bits == 8)
            for (size_t j = 0; j < n; j++) y[j] = (unsigned char)(x[j] >> 8 * slot);
        else
            for (size_t j = 0; j < n; j++) y[j] = (unsigned char)(z[j] >> 4 * slot & 15);
}

TRNI_DISPATCH(trni_mx_split,
              (unsigned char *__restrict y, const void *__restrict words, int64_t distance, size_t n, int bits),
              (y, words, distance, n, bits))

typedef struct trni_mx_sbuf_plan {
    const trn_mx_sbuf_args *args;
    trn_isa isa;
    bool to_sbuf;
    int bits;                                    /* of a code */
    int64_t distance, rows, columns, word_bytes; /* rows of words */
    int64_t word[2], code[2], tile[2], scale[2]; /* steps along both axes, in bytes */
} trni_mx_sbuf_plan;

/* A step for an axis that is never stepped along may be any number: take one that does no harm. */
TRNI_FN void trni_mx_steps(const trn_tensor *t, int64_t step[2])
{
    int64_t stride[TRN_MAX_RANK];
    const int64_t bytes = (int64_t)trn_format_bytes(t->format);
    trni_strides(t, stride);
    for (int i = 0; i < 2; i++) step[i] = t->shape[i] > 1 ? stride[i] * bytes : bytes;
}

enum { TRNI_MX_SBUF_PIECE = 512 };

TRNI_FN void trni_mx_sbuf_row(const trni_mx_sbuf_plan *p, int64_t row)
{
    char code[4 * TRNI_MX_SBUF_PIECE], word[4 * TRNI_MX_SBUF_PIECE];
    const int64_t d = p->distance, k = row / d * 4 * d + row % d, piece = TRNI_MX_SBUF_PIECE;
    const size_t size = (size_t)p->word_bytes;
    const bool loose_codes = p->code[1] != 1, loose_words = p->word[1] != p->word_bytes;
    const int64_t apart = loose_codes ? piece : d * p->code[0];
    for (int64_t column = 0; column < p->columns; column += piece) {
        const size_t n = (size_t)(p->columns - column < piece ? p->columns - column : piece);
        char *const codes = (char *)p->args->codes.data + k * p->code[0] + column * p->code[1];
        char *const words = (char *)p->args->words.data + row * p->word[0] + column * p->word[1];
        char *const x = loose_codes ? code : codes, *const y = loose_words ? word : words;
        if (loose_codes && p->to_sbuf)
            for (int i = 0; i < 4; i++) trni_move(code + i * piece, 1, codes + i * d * p->code[0], p->code[1], 1, n);
        if (loose_words && !p->to_sbuf) trni_move(word, p->word_bytes, words, p->word[1], size, n);
        if (p->to_sbuf)
            trni_mx_join_for(p->isa)(y, (const unsigned char *)x, apart, n, p->bits);
        else
            trni_mx_split_for(p->isa)((unsigned char *)x, y, apart, n, p->bits);
        if (loose_codes && !p->to_sbuf)
            for (int i = 0; i < 4; i++) trni_move(codes + i * d * p->code[0], p->code[1], code + i * piece, 1, 1, n);
        if (loose_words && p->to_sbuf) trni_move(words, p->word[1], word, p->word_bytes, size, n);
    }
}

enum {
    TRNI_MX_QUADRANT = 32,       /* partitions, */
    TRNI_MX_QUADRANT_SCALES = 4, /* so many of which hold scales, */
    TRNI_MX_LAST_OFFSET = 12     /* from 0, 4, 8 or 12 on */
};

/* Are `rows` those of an instruction's scale tile, beside a data tile of so many partitions? It has as many, or, where
 * the view begins at an offset, 4, 8 or 12 fewer: NKI's scales[4:, :] (documented: the MXFP guide's kernel with packed
 * scales). Dense scales have an eighth, which is never one of these. */
TRNI_FN bool trni_mx_is_tile(int64_t rows, int64_t partitions)
{
    const int64_t offset = partitions > 0 && rows > 0 ? partitions - rows : -1;
    return partitions % TRNI_MX_QUADRANT == 0 && offset >= 0 && offset <= TRNI_MX_LAST_OFFSET &&
           offset % TRNI_MX_QUADRANT_SCALES == 0;
}

/* The row of a scale tile that holds the scales of block g; the largest number where there is no such row. */
TRNI_FN int64_t trni_mx_scale_row(int64_t g, int offset)
{
    return g < (int64_t)1 << TRNI_ADDRESS_BITS >> 5 ? g / 4 * 32 + offset + g % 4 : INT64_MAX - 1;
}

TRNI_FN void trni_mx_sbuf_scales(const trni_mx_sbuf_plan *p)
{
    const trn_mx_sbuf_args *a = p->args;
    for (int64_t g = 0; g < a->scales.shape[0]; g++) {
        char *const scale = (char *)a->scales.data + g * p->scale[0];
        char *const tile = (char *)a->scale_tile.data + trni_mx_scale_row(g, a->scale_offset) * p->tile[0];
        const size_t n = (size_t)a->scales.shape[1];
        if (p->to_sbuf)
            trni_move(tile, p->tile[1], scale, p->scale[1], 1, n);
        else
            trni_move(scale, p->scale[1], tile, p->tile[1], 1, n);
    }
}

TRNI_DRIVER trn_status trni_mx_check_words(const trn_mx_sbuf_args *a, bool to_sbuf)
{
    const trn_tensor *codes = &a->codes, *words = &a->words;
    trn_status status = trn_tensor_check(words, "words", to_sbuf ? TRNI_OUTPUT : TRNI_INPUT, 2, a->error);
    if (!status) status = trn_tensor_check(codes, "codes", to_sbuf ? TRNI_INPUT : TRNI_OUTPUT, 2, a->error);
    if (status) return status;
    const bool fp8 = trni_is_mx_fp8(codes->format);
    if (!(fp8 && words->format == TRN_U32) && !(codes->format == TRN_F4_E2M1 && words->format == TRN_U16))
        return trni_fail(
            a->error, TRN_EFORMAT,
            "codes are %s and words %s; there are float8_e4m3fn and float8_e5m2 in uint32, float4_e2m1fn in "
            "uint16",
            trn_format_name(codes->format), trn_format_name(words->format));
    const long long k = codes->shape[0], rows = words->shape[0];
    if (k % TRN_MX_BLOCK != 0 || rows != k / 4 || words->shape[1] != codes->shape[1])
        return trni_fail(
            a->error, TRN_ESHAPE,
            "codes are [%lld, %lld] and words [%lld, %lld]; [K, M] with K a multiple of 32 go with [K/4, M]", k,
            (long long)codes->shape[1], rows, (long long)words->shape[1]);
    if (a->slot_distance < 0 || rows % (a->slot_distance ? a->slot_distance : 1) != 0)
        return trni_fail(a->error, TRN_EINVAL, "slot_distance is %d; it must divide the %lld rows of words",
                         a->slot_distance, rows);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mx_check_tile(const trn_mx_sbuf_args *a, bool to_sbuf)
{
    const trn_tensor *scales = &a->scales, *tile = &a->scale_tile;
    trn_status status = trn_tensor_check(tile, "scale_tile", to_sbuf ? TRNI_OUTPUT : TRNI_INPUT, 2, a->error);
    if (!status) status = trn_tensor_check(scales, "scales", to_sbuf ? TRNI_INPUT : TRNI_OUTPUT, 2, a->error);
    if (status) return status;
    for (int i = 0; i < 2; i++) {
        const trn_format f = (i ? scales : tile)->format;
        if (f != TRN_F8_E8M0 && f != TRN_U8)
            return trni_fail(a->error, TRN_EFORMAT, "%s is %s; scales are float8_e8m0fnu or uint8",
                             i ? "scales" : "scale_tile", trn_format_name(f));
    }
    if (a->scale_offset < 0 || a->scale_offset > 12 || a->scale_offset % 4 != 0)
        return trni_fail(a->error, TRN_EINVAL, "scale_offset is %d, not 0, 4, 8 or 12", a->scale_offset);
    const long long blocks = scales->shape[0], rows = tile->shape[0];
    const long long needed = blocks ? trni_mx_scale_row(blocks - 1, a->scale_offset) + 1 : 0;
    if (scales->shape[1] != tile->shape[1] || rows < needed)
        return trni_fail(a->error, TRN_ESHAPE,
                         "scales are [%lld, %lld] and scale_tile [%lld, %lld]; the tile takes as many columns, and "
                         "rows from %lld up",
                         blocks, (long long)scales->shape[1], rows, (long long)tile->shape[1], needed);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_mx_check_sbuf(const trn_mx_sbuf_args *a, bool to_sbuf)
{
    const bool data = a->words.rank || a->codes.rank, scales = a->scale_tile.rank || a->scales.rank;
    trn_status status = TRN_OK;
    if (!data && !scales)
        return trni_fail(a->error, TRN_EINVAL, "neither words and codes nor scale_tile and scales are given");
    if (data) status = trni_mx_check_words(a, to_sbuf);
    if (!status && scales) status = trni_mx_check_tile(a, to_sbuf);
    if (!status && data && scales &&
        (a->scales.shape[0] != a->codes.shape[0] / TRN_MX_BLOCK || a->scales.shape[1] != a->codes.shape[1]))
        status =
            trni_fail(a->error, TRN_ESHAPE, "scales are [%lld, %lld] but codes [%lld, %lld]; they must be [K/32, M]",
                      (long long)a->scales.shape[0], (long long)a->scales.shape[1], (long long)a->codes.shape[0],
                      (long long)a->codes.shape[1]);
    const trn_tensor *view[4] = { &a->words, &a->scale_tile, &a->codes, &a->scales }; /* two and two */
    const char *const name[4] = { "words", "scale_tile", "codes", "scales" };
    const int first = to_sbuf ? 0 : 2; /* what is written */
    for (int i = first; i < first + 2; i++)
        for (int j = 0; j < 4 && !status; j++)
            if (i != j && view[i]->rank && view[j]->rank)
                status = trni_mx_check_overlap(view[i], name[i], view[j], name[j], a->error);
    return status;
}

TRNI_FN trn_status trni_mx_sbuf(const trn_mx_sbuf_args *args, bool to_sbuf)
{
    TRNI_ENTER(args);
    trni_mx_sbuf_plan p;
    memset(&p, 0, sizeof p);
    p.args = args;
    p.isa = args->isa;
    p.to_sbuf = to_sbuf;
    trn_status status = trni_mx_check_sbuf(args, to_sbuf);
    if (!status) status = trni_isa_resolve(&p.isa, args->error);
    if (status) return status;
    if (trn_tensor_elements(args->codes) > 0) {
        p.bits = trn_format_bits(args->codes.format);
        p.distance = args->slot_distance ? args->slot_distance : 1;
        p.rows = args->words.shape[0];
        p.columns = args->words.shape[1];
        p.word_bytes = (int64_t)trn_format_bytes(args->words.format);
        trni_mx_steps(&args->words, p.word);
        trni_mx_steps(&args->codes, p.code);
        for (int64_t row = 0; row < p.rows; row++) trni_mx_sbuf_row(&p, row);
    }
    if (trn_tensor_elements(args->scales) > 0) {
        trni_mx_steps(&args->scale_tile, p.tile);
        trni_mx_steps(&args->scales, p.scale);
        trni_mx_sbuf_scales(&p);
    }
    return TRN_OK;
}

TRN_API trn_status trn_mx_to_sbuf(const trn_mx_sbuf_args *args) { return trni_mx_sbuf(args, true); }

TRN_API trn_status trn_mx_from_sbuf(const trn_mx_sbuf_args *args) { return trni_mx_sbuf(args, false); }

/* ---- MXFP4 on its way to the multiplier ----
 * Trainium3 turns FP4 into FP8 through a mapping that a program may define (documented: NeuronCore-v4); that it starts
 * as the exact values, which both FP8 formats have, is assumed. */

TRN_API void trn_mx_fp4_map(trn_format fp8, uint8_t map[16])
{
    for (uint32_t c = 0; c < 16; c++)
        map[c] = (uint8_t)trn_encode(fp8, trn_decode(TRN_F4_E2M1, c), TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
}

TRNI_DRIVER trn_status trni_mx_check_fp4(const trn_mx_fp4_args *a)
{
    const trn_tensor *dst = &a->dst, *src = &a->src;
    trn_status status = trn_tensor_check(dst, "dst", TRNI_OUTPUT, 0, a->error);
    if (!status) status = trn_tensor_check(src, "src", TRNI_INPUT, 0, a->error);
    if (status) return status;
    if (!trni_is_mx_fp8(dst->format) || src->format != TRN_F4_E2M1)
        return trni_fail(a->error, TRN_EFORMAT,
                         "src is %s and dst %s; float4_e2m1fn becomes float8_e4m3fn or float8_e5m2",
                         trn_format_name(src->format), trn_format_name(dst->format));
    status = trni_check_same_shape(dst, "dst", src, "src", a->error);
    return status ? status : trni_mx_check_overlap(dst, "dst", src, "src", a->error);
}

TRN_API trn_status trn_mx_fp4_to_fp8(const trn_mx_fp4_args *args)
{
    TRNI_ENTER(args);
    uint8_t map[16];
    int64_t dst_stride[TRN_MAX_RANK], src_stride[TRN_MAX_RANK];
    trni_iterator walk;
    memset(&walk, 0, sizeof walk);
    const trn_status status = trni_mx_check_fp4(args);
    if (status || trn_tensor_elements(args->dst) == 0) return status;
    if (args->map)
        memcpy(map, args->map, sizeof map);
    else
        trn_mx_fp4_map(args->dst.format, map);

    trni_strides(&args->dst, dst_stride);
    trni_strides(&args->src, src_stride);
    for (int i = 0; i < args->dst.rank; i++) {
        const trni_iterator_axis one = { args->dst.shape[i], { dst_stride[i], src_stride[i], 0, 0 } };
        if (one.size > 1) trni_iterator_push(&walk, one);
    }
    const trni_iterator_axis single = { 1, { 0, 0, 0, 0 } }, row = walk.rank ? walk.axis[--walk.rank] : single;
    const int64_t rows = trn_tensor_elements(args->dst) / row.size;
    trni_iterator_place at = trni_iterator_start(&walk, 0);
    for (int64_t r = 0; r < rows; r++, trni_iterator_next(&walk, &at)) {
        unsigned char *y = (unsigned char *)args->dst.data + at.offset[0];
        const unsigned char *x = (const unsigned char *)args->src.data + at.offset[1];
        for (int64_t i = 0; i < row.size; i++) y[i * row.step[0]] = map[x[i * row.step[1]] & 15];
    }
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_DATA_MX_LAYOUT_H */
