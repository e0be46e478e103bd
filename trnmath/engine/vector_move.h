/* engine/vector_move.h - numbers that change places or packing: shuffle, broadcast, transpose, quantize_mx.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         static uint16_t x[32 * 4], y[32 * 4];                             // [32, 4] bfloat16
 *         trn_nc_stream_shuffle_args turn = { .dst = trn_tensor_2d(TRN_BF16, y, 32, 4),
 *                                             .src = trn_tensor_2d(TRN_BF16, x, 32, 4) };
 *         for (int i = 0; i < 32; i++) turn.shuffle_mask[i] = (i + 1) % 32;
 *         x[5 * 4] = 0x3f80;
 *         return trn_nc_stream_shuffle(&turn) == TRN_OK && y[4 * 4] == 0x3f80 ? 0 : 1;
 *     }
 *
 * DOES: partitions to other places of their quadrant, bit for bit; one partition to many, bit for bit; tiles of 32 by
 *     32 to their transpose, bit for bit; tiles to MXFP8 codes and scales in the layouts that trn_nc_matmul_mx takes.
 * DOES NOT: know where in SBUF a tile begins (the rules for that belong to trn_core.h), or transpose on the Tensor
 *     engine (trn_nc_transpose).
 *
 * quantize_mx: a group is 8 partitions times 4 elements; its scale and its codes are those of trn_mx_quantize, with the
 * rule of numerics.mx_scale_rule: twice OCP's scale by default, code 00 for zeros, code ff and zeros for a group with
 * NaN or infinity. Only .rounding of the elements may differ from the chip's nearest even. Scales go to a scale tile of
 * P partitions, four of each 32, as NKI has it, or dense to one of P/8.
 *
 * partition_broadcast is no instruction of NKI: the Tensor engine does it as a product with ones, for which a compiler
 * puts it where a kernel spreads one partition over many. It stands here since nothing is computed.
 *
 * KNOWN FROM: NKI, nc_stream_shuffle, nc_transpose, quantize_mx (documented: masks, 255, in place; 32 by 32, equal
 *     formats; formats, groups, scale, zeros, where scales lie); that a mask may not name a partition that src lacks,
 *     and groups with NaN: assumed. partition_broadcast: the product is documented (architecture guide of Trainium1,
 *     Partition Broadcast); that it changes no bit, of any format: assumed.
 */
#ifndef TRNI_ENGINE_VECTOR_MOVE_H
#define TRNI_ENGINE_VECTOR_MOVE_H

#include "instruction.h"
#include "../data/mx_layout.h"

typedef struct trn_nc_stream_shuffle_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, src;  /* one format, and as many elements per partition; dst may be src */
    int shuffle_mask[32]; /* partition i of dst's quadrants comes from shuffle_mask[i] of src's; 255: it stays */
} trn_nc_stream_shuffle_args;

typedef struct trn_partition_broadcast_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* [P, F], src's format */
    trn_tensor src; /* [1, F] */
} trn_partition_broadcast_args;

typedef struct trn_vector_transpose_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;  /* [F, P], data's format */
    trn_tensor data; /* [P, F], both <= 32 */
} trn_vector_transpose_args;

typedef struct trn_quantize_mx_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;       /* [P, F/4, 4] F8_E4M3FN or F8_E5M2: word f of partition p is slots 0..3 */
    trn_tensor src;       /* [P, F] F16 or BF16; P a multiple of 32, F of 4 */
    trn_tensor dst_scale; /* F8_E8M0 or U8, one for each group. Dense: [P/8, F/4]. Or a scale tile as NKI has it:
                           * [P, F/4], of which partitions 32q … 32q + 3 are written and the others left alone; the view
                           * may begin at an offset of 4, 8 or 12 and then has so many fewer: [P - 4, F/4] is NKI's
                           * scales[4:, :]. trn_nc_matmul_mx takes both; data/mx_layout.h */
} trn_quantize_mx_args;

/* ---- nc_stream_shuffle ---- */

/* TRN_EFORMAT: two formats; TRN_ESHAPE: different numbers of elements per partition; TRN_EINVAL: a mask that names no
 * partition of src's quadrant, or views that overlap and do not begin at the same place with the same strides (how many
 * partitions they have may differ: one partition may be spread over its own quadrant). */
TRN_API trn_status trn_nc_stream_shuffle(const trn_nc_stream_shuffle_args *args);

/* ---- partition_broadcast ---- */

/* Every partition of dst = src, bit for bit. TRN_EFORMAT: two formats; TRN_ESHAPE: src has more partitions than one, or
 * not as many elements as one of dst; TRN_EINVAL: overlap. */
TRN_API trn_status trn_partition_broadcast(const trn_partition_broadcast_args *args);

/* ---- nc_transpose on the Vector engine ---- */

/* dst = data^T, bit for bit. TRN_EFORMAT: two formats; TRN_ELIMIT: more than 32 partitions, or elements of one (with
 * .unlimited: blocks of 32 by 32, each in its place); TRN_ESHAPE: dst is not [F, P]; TRN_EINVAL: overlap. */
TRN_API trn_status trn_vector_transpose(const trn_vector_transpose_args *args);

/* ---- quantize_mx ---- */

/* dst 2^(dst_scale - 127) = src, nearly. TRN_EUNSUPPORTED: not Trainium3; TRN_EFORMAT, TRN_ESHAPE, TRN_ELIMIT: views
 * that do not fit; TRN_EINVAL: overlap. */
TRN_API trn_status trn_quantize_mx(const trn_quantize_mx_args *args);

#if TRNI_BODIES

#include "span.h"

enum { TRNI_MOVE_ROWS = 32, TRNI_SHUFFLE_LEAVE = 255, TRNI_SHUFFLE_CHUNK = 64 };

/* dst and a source of the same format, on this engine. */
TRNI_FN void trni_move_begin(trni_frame *f, const void *args, trn_engine engine, const trn_tensor *dst, trni_view *v,
                             const trn_tensor *src, const char *name, const char *what)
{
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, what);
    (void)trni_frame_engine(f, engine, TRN_ENGINE_UNKNOWN, what);
    trni_frame_dst(f, dst);
    trni_frame_view(f, v, src, name, TRNI_INPUT);
    if (!f->status && !trni_same_format(dst, src))
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "dst is %s and %s is %s; %s changes no format",
                              f->dst.info.name, name, v->info.name, what);
}

typedef struct trni_move_plan {
    trni_span dst, src;
    const int *mask;
    bool in_place;
} trni_move_plan;

/* ---- nc_stream_shuffle ---- */

TRNI_FN void trni_shuffle_work(const void *plan, int64_t first, int64_t partitions, void *room)
{
    (void)room;
    const trni_move_plan *m = (const trni_move_plan *)plan;
    char quadrant[TRNI_MOVE_ROWS][TRNI_SHUFFLE_CHUNK * sizeof(uint32_t)];
    for (int64_t f = 0; f < m->dst.elements; f += TRNI_SHUFFLE_CHUNK) {
        const int64_t n = trni_min64(TRNI_SHUFFLE_CHUNK, m->dst.elements - f);
        const void *line[TRNI_MOVE_ROWS];
        for (int i = 0; i < partitions; i++) {
            if (m->mask[i] == TRNI_SHUFFLE_LEAVE) continue;
            line[i] = trni_span_bits(&m->src, first + m->mask[i], f, n, quadrant[i]);
            if (m->in_place && line[i] != quadrant[i]) line[i] = memcpy(quadrant[i], line[i], (size_t)n * m->src.bytes);
        }
        for (int i = 0; i < partitions; i++)
            if (m->mask[i] != TRNI_SHUFFLE_LEAVE) trni_span_put(&m->dst, first + i, f, n, line[i]);
    }
}

TRNI_DRIVER void trni_shuffle_check_mask(trni_frame *f, const trn_nc_stream_shuffle_args *args)
{
    const int64_t has = args->src.shape[0];
    for (int i = 0; i < TRNI_MOVE_ROWS && !f->status; i++) {
        const int from = args->shuffle_mask[i];
        if (from == TRNI_SHUFFLE_LEAVE) continue;
        if (from < 0 || from >= TRNI_MOVE_ROWS) {
            f->status = trni_fail(args->error, TRN_EINVAL,
                                  "shuffle_mask[%d] is %d; it is 0 to 31, or 255 for a partition that stays", i, from);
            return;
        }
        const int64_t quadrants = trni_ceil_div(f->partitions - i, TRNI_MOVE_ROWS); /* whose partition i dst has */
        const int64_t last = TRNI_MOVE_ROWS * (quadrants - 1) + from;
        if (f->partitions > i && last >= has)
            f->status = trni_fail(args->error, TRN_EINVAL,
                                  "shuffle_mask[%d] is %d, which is partition %lld of src; it has %lld", i, from,
                                  (long long)last, (long long)has);
    }
}

/* dst and src begin at the same place and run the same way; one may have more partitions than the other. */
TRNI_FN bool trni_shuffle_in_place(const trni_view *dst, const trni_view *src)
{
    trni_view to = *dst, from = *src;
    const int64_t both = trni_min64(to.t.shape[0], from.t.shape[0]);
    if (src->t.shape[0] == 1) from.t.stride[0] = to.t.stride[0]; /* a stride that is never taken */
    if (dst->t.shape[0] == 1) to.t.stride[0] = from.t.stride[0];
    to.t.shape[0] = from.t.shape[0] = both;
    return trni_same_place(&to, &from);
}

TRN_API trn_status trn_nc_stream_shuffle(const trn_nc_stream_shuffle_args *args)
{
    trni_frame f;
    trni_view src;
    trni_move_plan plan;
    TRNI_ENTER(args);
    trni_move_begin(&f, args, TRN_ENGINE_VECTOR, &args->dst, &src, &args->src, "src", "nc_stream_shuffle");
    if (f.status) return f.status;
    if (src.t.shape[0] && f.partitions && src.width != f.elements)
        return trni_fail(args->error, TRN_ESHAPE, "src has %lld elements per partition but dst has %lld",
                         (long long)src.width, (long long)f.elements);
    trni_shuffle_check_mask(&f, args);
    plan.in_place = !f.status && trni_shuffle_in_place(&f.dst, &src);
    if (!plan.in_place) trni_frame_apart(&f, &f.dst, &src);
    if (f.status || trni_frame_empty(&f)) return f.status;
    plan.mask = args->shuffle_mask;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.src, &src, f.isa);
    trni_partitions_each(f.partitions, f.elements, TRNI_MOVE_ROWS, trni_shuffle_work, &plan);
    return TRN_OK;
}

/* ---- partition_broadcast ---- */

TRNI_FN void trni_broadcast_work(const void *plan, int64_t first, int64_t partitions, void *room)
{
    (void)room;
    const trni_move_plan *m = (const trni_move_plan *)plan;
    char line[TRNI_SHUFFLE_CHUNK * sizeof(uint32_t)];
    for (int64_t f = 0; f < m->dst.elements; f += TRNI_SHUFFLE_CHUNK) {
        const int64_t n = trni_min64(TRNI_SHUFFLE_CHUNK, m->dst.elements - f);
        const void *bits = trni_span_bits(&m->src, 0, f, n, line);
        for (int64_t i = 0; i < partitions; i++) trni_span_put(&m->dst, first + i, f, n, bits);
    }
}

TRN_API trn_status trn_partition_broadcast(const trn_partition_broadcast_args *args)
{
    trni_frame f;
    trni_view src;
    trni_move_plan plan;
    TRNI_ENTER(args);
    trni_move_begin(&f, args, TRN_ENGINE_TENSOR, &args->dst, &src, &args->src, "src", "partition_broadcast");
    if (f.status) return f.status;
    if (src.t.shape[0] != 1)
        return trni_fail(args->error, TRN_ESHAPE, "src has %lld partitions; partition_broadcast spreads one",
                         (long long)src.t.shape[0]);
    if (f.partitions && src.width != f.elements)
        return trni_fail(args->error, TRN_ESHAPE, "src has %lld elements but a partition of dst has %lld",
                         (long long)src.width, (long long)f.elements);
    trni_frame_apart(&f, &f.dst, &src);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.src, &src, f.isa);
    trni_partitions_each(f.partitions, f.elements, TRNI_MOVE_ROWS, trni_broadcast_work, &plan);
    return TRN_OK;
}

/* ---- nc_transpose on the Vector engine ---- */

TRNI_FN void trni_vector_transpose_work(const void *plan, int64_t p, int64_t partitions, void *room)
{
    (void)room;
    const trni_move_plan *m = (const trni_move_plan *)plan;
    const int64_t bytes = (int64_t)m->src.bytes;
    uint32_t block[TRNI_MOVE_ROWS * TRNI_MOVE_ROWS], line[TRNI_MOVE_ROWS];
    for (int64_t f = 0; f < m->src.elements; f += TRNI_MOVE_ROWS) {
        const int64_t n = trni_min64(TRNI_MOVE_ROWS, m->src.elements - f);
        for (int64_t i = 0; i < partitions; i++) {
            char *row = (char *)block + i * TRNI_MOVE_ROWS * bytes;
            const void *bits = trni_span_bits(&m->src, p + i, f, n, row);
            if (bits != row) memcpy(row, bits, (size_t)(n * bytes));
        }
        for (int64_t i = 0; i < n; i++) {
            trni_move((char *)line, bytes, (const char *)block + i * bytes, TRNI_MOVE_ROWS * bytes, m->src.bytes,
                      (size_t)partitions);
            trni_span_put(&m->dst, f + i, p, partitions, line);
        }
    }
}

TRN_API trn_status trn_vector_transpose(const trn_vector_transpose_args *args)
{
    trni_frame f;
    trni_view data;
    trni_move_plan plan;
    TRNI_ENTER(args);
    trni_move_begin(&f, args, TRN_ENGINE_VECTOR, &args->dst, &data, &args->data, "data",
                    "nc_transpose on the Vector engine");
    if (f.status) return f.status;
    const int64_t p = args->data.shape[0], n = trni_partition_elements(&data, f.partitions);
    if (!args->unlimited && (p > TRNI_MOVE_ROWS || n > TRNI_MOVE_ROWS))
        return trni_fail(args->error, TRN_ELIMIT,
                         "data has %lld partitions of %lld elements; the Vector engine transposes %d by %d",
                         (long long)p, (long long)n, (int)TRNI_MOVE_ROWS, (int)TRNI_MOVE_ROWS);
    if (f.partitions != n || (n && f.elements != p))
        return trni_fail(args->error, TRN_ESHAPE,
                         "dst has %lld partitions of %lld elements; the transpose has %lld of %lld",
                         (long long)f.partitions, (long long)f.elements, (long long)n, (long long)p);
    trni_frame_apart(&f, &f.dst, &data);
    if (f.status || n * p == 0) return f.status;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.src, &data, f.isa);
    trni_partitions_each(p, n, TRNI_MOVE_ROWS, trni_vector_transpose_work, &plan);
    return TRN_OK;
}

/* ---- quantize_mx ---- */

enum { TRNI_GROUP_ROWS = 8, TRNI_GROUP_SLOTS = 4, TRNI_GROUP_PIECE = TRNI_MX_BLOCKS * TRNI_GROUP_SLOTS };

typedef struct trni_quantize_plan {
    trni_span dst, src, scale;
    trni_encoder encoder;
    trni_mx_both *both; /* or NULL */
    trni_mx_rule rule;
    int32_t least;
    bool stochastic, tile; /* the scales go to a scale tile */
    int bits;
    uint64_t seed, stream;
} trni_quantize_plan;

/* Four numbers of each of n groups, from one partition to where the group has them, and back. */
TRNI_FN void trni_group_deal(uint32_t *group, const void *line, int64_t n)
{
    const char *from = (const char *)line;
    for (int64_t i = 0; i < n; i++, group += TRN_MX_BLOCK, from += 16) memcpy(group, from, 16);
}

/* Groups of 8 partitions, n <= TRNI_MX_BLOCKS words from word c on. */
TRNI_FN void trni_quantize_piece(const trni_quantize_plan *q, int64_t p, int64_t c, int64_t n)
{
    uint32_t value[TRNI_MX_PANEL], divided[TRNI_MX_PANEL], field[TRNI_MX_PANEL], random[TRNI_GROUP_PIECE];
    float line[TRNI_SPAN_CHUNK];
    char code[TRNI_MX_PANEL], back[TRNI_GROUP_PIECE];
    unsigned char scale[TRNI_MX_BLOCKS];
    const int64_t f = TRNI_GROUP_SLOTS * c, each = TRNI_GROUP_SLOTS * n;
    for (int64_t row = 0; row < TRNI_GROUP_ROWS; row++) {
        const uint64_t index = (uint64_t)((p + row) * q->src.elements + f);
        trni_group_deal(value + TRNI_GROUP_SLOTS * row, trni_span_read(&q->src, p + row, f, each, line), n);
        if (!q->stochastic) continue;
        trn_random_fields(random, (size_t)each, q->bits, q->seed, q->stream, index, q->src.isa);
        trni_group_deal(field + TRNI_GROUP_SLOTS * row, random, n);
    }
    if (q->both) {
        q->both(&q->encoder, code, scale, (const char *)value, (size_t)n, q->rule);
    } else {
        trni_mx_blocks_for(q->src.isa)(divided, scale, value, (size_t)n, q->rule, q->least);
        trni_encoder_run(&q->encoder, code, divided, q->stochastic ? field : NULL, (size_t)n * TRN_MX_BLOCK);
    }
    for (int64_t row = 0; row < TRNI_GROUP_ROWS; row++) {
        trni_move(back, TRNI_GROUP_SLOTS, code + TRNI_GROUP_SLOTS * row, TRN_MX_BLOCK, TRNI_GROUP_SLOTS, (size_t)n);
        trni_span_put(&q->dst, p + row, f, each, back);
    }
    const int64_t group = p / TRNI_GROUP_ROWS;
    trni_span_put(&q->scale, q->tile ? trni_mx_scale_row(group, 0) : group, c, n, scale);
}

TRNI_FN void trni_quantize_work(const void *plan, int64_t p, int64_t rows, void *room)
{
    (void)room;
    const trni_quantize_plan *q = (const trni_quantize_plan *)plan;
    (void)rows; /* eight: P is a multiple of 32 */
    for (int64_t c = 0; c < q->scale.elements; c += TRNI_MX_BLOCKS)
        trni_quantize_piece(q, p, c, trni_min64(TRNI_MX_BLOCKS, q->scale.elements - c));
}

TRNI_DRIVER trn_status trni_quantize_check_formats(const trn_quantize_mx_args *args)
{
    if (args->src.format != TRN_F16 && args->src.format != TRN_BF16)
        return trni_fail(args->error, TRN_EFORMAT, "src is %s; quantize_mx takes float16 and bfloat16",
                         trn_format_name(args->src.format));
    if (!trni_is_mx_fp8(args->dst.format))
        return trni_fail(args->error, TRN_EFORMAT, "dst is %s; quantize_mx makes float8_e4m3fn and float8_e5m2",
                         trn_format_name(args->dst.format));
    if (args->dst_scale.format != TRN_F8_E8M0 && args->dst_scale.format != TRN_U8)
        return trni_fail(args->error, TRN_EFORMAT,
                         "dst_scale is %s; block scales are float8_e8m0fnu, or uint8 for the same bytes",
                         trn_format_name(args->dst_scale.format));
    return TRN_OK;
}

/* p partitions of n words: dst_scale is dense or a scale tile. */
TRNI_DRIVER void trni_quantize_check_scale(trni_frame *f, const trni_view *scale, int64_t p, int64_t n)
{
    if (f->status) return;
    const int64_t rows = scale->t.shape[0], has = trni_partition_elements(scale, n);
    if ((rows != p / TRNI_GROUP_ROWS && !trni_mx_is_tile(rows, p)) || has != n)
        f->status =
            trni_fail(f->how.error, TRN_ESHAPE,
                      "dst_scale has %lld partitions of %lld elements; it takes %lld of %lld, or as a scale "
                      "tile %lld",
                      (long long)rows, (long long)has, (long long)(p / TRNI_GROUP_ROWS), (long long)n, (long long)p);
}

/* The operands of quantize_mx but dst, which the frame has, opened. */
typedef struct trni_quantize_views {
    trni_view src, scale;
} trni_quantize_views;

TRNI_DRIVER trn_status trni_quantize_check(trni_frame *f, const trn_quantize_mx_args *args, trni_quantize_views *v)
{
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(f, &how, TRN_TRAINIUM3, TRN_TRAINIUM3, "quantize_mx");
    (void)trni_frame_engine(f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "quantize_mx");
    trni_frame_view(f, &v->src, &args->src, "src", TRNI_INPUT);
    trni_frame_view(f, &f->dst, &args->dst, "dst", TRNI_OUTPUT);
    trni_frame_view(f, &v->scale, &args->dst_scale, "dst_scale", TRNI_OUTPUT);
    if (!f->status) f->status = trni_quantize_check_formats(args);
    if (f->status) return f->status;
    const int64_t p = v->src.t.shape[0], n = v->src.width;
    f->partitions = p;
    f->elements = n;
    if (p % TRNI_MOVE_ROWS || n % TRNI_GROUP_SLOTS)
        return f->status = trni_fail(args->error, TRN_ESHAPE,
                                     "src has %lld partitions of %lld elements; quantize_mx takes multiples of 32 and "
                                     "of 4",
                                     (long long)p, (long long)n);
    if (args->dst.rank != 3 || args->dst.shape[0] != p || (p && args->dst.shape[1] != n / 4) || args->dst.shape[2] != 4)
        return f->status = trni_fail(
                   args->error, TRN_ESHAPE, "dst has %lld by %lld by %lld elements; [P, F/4, 4] is %lld by %lld by 4",
                   (long long)args->dst.shape[0], (long long)args->dst.shape[1],
                   (long long)(args->dst.rank == 3 ? args->dst.shape[2] : 0), (long long)p, (long long)n / 4);
    trni_quantize_check_scale(f, &v->scale, p, n / TRNI_GROUP_SLOTS);
    trni_frame_apart(f, &f->dst, &v->src);
    trni_frame_apart(f, &v->scale, &v->src);
    trni_frame_apart(f, &f->dst, &v->scale);
    return f->status;
}

TRN_API trn_status trn_quantize_mx(const trn_quantize_mx_args *args)
{
    trni_frame f;
    trni_quantize_views v;
    trni_quantize_plan q;
    TRNI_ENTER(args);
    if (trni_quantize_check(&f, args, &v) || trni_frame_empty(&f)) return f.status;
    const trni_encoding how = { { args->rounding, 0, f.numerics.sr_bits }, TRN_SATURATE, false };
    trni_span_init(&q.src, &v.src, f.isa);
    trni_span_init(&q.dst, &f.dst, f.isa);
    trni_span_init(&q.scale, &v.scale, f.isa);
    trni_encoder_init(&q.encoder, &f.dst.info, how, f.isa);
    q.both = trni_mx_both_pick(&q.encoder);
    q.rule = trni_mx_rule_of(args->dst.format, f.numerics.mx_scale_rule);
    q.least = trni_mx_least(args->rounding);
    q.stochastic = args->rounding == TRN_STOCHASTIC;
    q.tile = trni_mx_is_tile(args->dst_scale.shape[0], args->src.shape[0]);
    q.bits = f.numerics.sr_bits;
    q.seed = args->seed;
    q.stream = args->stream;
    trni_partitions_each(f.partitions, f.elements, TRNI_GROUP_ROWS, trni_quantize_work, &q);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_MOVE_H */
