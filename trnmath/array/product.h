/* array/product.h - a matrix product of the Tensor engine, checked and resolved, for an instruction and for any size.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: which formats may meet on which generation, sizes, scales, overlap, what dst may be.
 * DOES NOT: know tile limits (trn_tensor_engine.h), or compute (array/product_define.h).
 *
 * KNOWN FROM: NKI's nc_matmul and nc_matmul_mx pages (formats and mixtures: documented).
 */
#ifndef TRNI_ARRAY_PRODUCT_H
#define TRNI_ARRAY_PRODUCT_H

#include "../number/random.h"
#include "../base/threads.h"
#include "systolic_panels.h"

typedef struct trni_request {
    trn_generation generation;
    trn_tensor dst, a, b; /* a holds M lanes, b N lanes, both K deep */
    const char *a_name, *b_name;
    int a_lane_axis, a_depth_axis, b_lane_axis, b_depth_axis; /* zeros of b: axes 1 and 0 */
    trn_tensor a_scale, b_scale;                              /* MX; rank 0 = none */
    int a_scale_lane_axis, b_scale_lane_axis;
    int slots; /* an instruction's pairs and quads have an axis of their own, of this size; else 0 */
    bool mx, double_row, accumulate;
    int first_row; /* of the array */
    trn_rounding rounding;
    trn_overflow overflow;
    uint64_t seed, stream;
    const trn_numerics *numerics;
    trn_isa isa;
    trn_error *error;
} trni_request;

/* What the args of every call have in common. */
#define TRNI_REQUEST(ask, args)                                                                                        \
    (memset(&(ask), 0, sizeof(ask)), (ask).generation = (args)->generation, (ask).dst = (args)->dst,                   \
     (ask).accumulate = (args)->accumulate, (ask).rounding = (args)->rounding, (ask).seed = (args)->seed,              \
     (ask).stream = (args)->stream, (ask).numerics = (args)->numerics, (ask).isa = (args)->isa,                        \
     (ask).error = (args)->error)

/* MX scales of an operand: one byte for 32 numbers along K, that is for eight rows of the array. */
typedef struct trni_scales {
    const unsigned char *data; /* null: none */
    int64_t lane_stride, block_stride;
} trni_scales;

typedef struct trni_product {
    trni_operand a, b; /* lanes M and N; depth K, or K / slots */
    trni_scales a_scale, b_scale;
    const float *packed; /* b, by array/matmul_pack.h; or NULL */
    bool words;          /* in words of pairs */
    trn_tensor dst;      /* [M, N], strides filled in */
    trn_format_info dst_info;
    trn_generation generation;
    trni_spread spread;
    int first_row;
    bool accumulate, f32, integer;
    trn_rounding rounding;
    trn_overflow overflow;
    uint64_t seed, stream;
    trn_numerics numerics;
    trn_isa isa;     /* vectors */
    trn_isa unit;    /* the matrix unit beside them, or TRN_ISA_AUTO: none */
    int64_t *counts; /* of blocks, by what the unit did of them; or NULL */
} trni_product;

/* ---- which formats may meet ---- */

TRNI_DRIVER trn_status trni_request_check_classes(const trni_request *ask)
{
    const trn_tensor *const t[2] = { &ask->a, &ask->b };
    const char *const name[2] = { ask->a_name, ask->b_name };
    for (int i = 0; i < 2; i++) {
        const trni_operand_kind is = trni_operand_kind_of(t[i]->format);
        if (is == TRNI_OPERAND_NONE)
            return trni_fail(ask->error, TRN_EFORMAT, "%s is %s, which no matrix instruction multiplies", name[i],
                             trn_format_name(t[i]->format));
        if (ask->mx && !trni_is_mx_operand(t[i]->format))
            return trni_fail(
                ask->error, TRN_EFORMAT,
                "%s is %s; MX scales (a_scale, b_scale) belong to float8_e4m3fn, float8_e5m2 and float4_e2m1fn",
                name[i], trn_format_name(t[i]->format));
        if (!ask->mx && is == TRNI_OPERAND_TINY)
            return trni_fail(ask->error, TRN_EFORMAT, "%s is %s, which is multiplied under MX scales only", name[i],
                             trn_format_name(t[i]->format));
    }
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_request_check_double_row(const trni_request *ask)
{
    const bool a = trni_is_fp8(ask->a.format), b = trni_is_fp8(ask->b.format);
    if (!ask->double_row || (a && b)) return TRN_OK;
    return trni_fail(ask->error, TRN_EFORMAT, "double_row takes FP8 operands; %s is %s", a ? ask->b_name : ask->a_name,
                     trn_format_name(a ? ask->b.format : ask->a.format));
}

TRNI_DRIVER trn_status trni_request_check_pair(const trni_request *ask)
{
    const trn_format a = ask->a.format, b = ask->b.format;
    if (trni_may_meet(a, b)) return TRN_OK;
    return trni_fail(ask->error, TRN_EFORMAT, "%s is %s and %s is %s: %s", ask->a_name, trn_format_name(a), ask->b_name,
                     trn_format_name(b),
                     trni_are_both_e4m3(a, b) ? "the two kinds of E4M3 do not meet in one product"
                                              : "32-bit formats, narrow ones and int8 meet only their own kind");
}

/* The generation that is meant: Trainium2, unless what is asked exists on Trainium3 alone. */
TRNI_DRIVER trn_generation trni_request_generation(const trni_request *ask)
{
    const bool newest = ask->mx || trni_multiplies_newly(ask->a.format) || trni_multiplies_newly(ask->b.format);
    if (ask->generation != TRN_GENERATION_DEFAULT) return ask->generation;
    return newest ? TRN_TRAINIUM3 : TRN_TRAINIUM2;
}

TRNI_DRIVER trn_status trni_request_check_generation(const trni_request *ask, trn_generation generation)
{
    const trn_core_spec *core = trni_core_plain_of(generation);
    const trn_tensor *const t[2] = { &ask->a, &ask->b };
    const char *const name[2] = { ask->a_name, ask->b_name }, *const chip = trn_generation_name(generation);
    for (int i = 0; i < 2; i++)
        if (!trni_multiplies(generation, t[i]->format))
            return trni_fail(ask->error, TRN_EUNSUPPORTED, "%s is %s, which %s does not multiply", name[i],
                             trn_format_name(t[i]->format), chip);
    if (ask->mx && !core->mx) return trni_fail(ask->error, TRN_EUNSUPPORTED, "MX scales: %s has no MX product", chip);
    if (ask->double_row && !core->double_row)
        return trni_fail(ask->error, TRN_EUNSUPPORTED, "double_row: %s has one row of FP8 per PE only", chip);
    return TRN_OK;
}

/* ---- sizes ---- */

TRNI_FN int64_t trni_product_depth(const trni_product *p) { return p->a.depth * p->a.slots; }

TRNI_DRIVER trn_status trni_product_check_sizes(const trni_product *p, const trni_request *ask)
{
    const trn_tensor *dst = &ask->dst;
    const trni_operand *const o[2] = { &p->a, &p->b };
    for (int i = 0; i < 2 && ask->slots; i++)
        if (o[i]->slots != ask->slots)
            return trni_fail(ask->error, TRN_ESHAPE, "%s holds %lld numbers for each row of K; %s takes %d",
                             i ? ask->b_name : ask->a_name, (long long)o[i]->slots, ask->mx ? "MX" : "double_row",
                             ask->slots);
    if (p->a.depth != p->b.depth)
        return trni_fail(ask->error, TRN_ESHAPE, "%s has K = %lld but %s has K = %lld", ask->a_name,
                         (long long)p->a.depth, ask->b_name, (long long)p->b.depth);
    if (dst->shape[0] != p->a.lanes || dst->shape[1] != p->b.lanes)
        return trni_fail(ask->error, TRN_ESHAPE, "dst is [%lld, %lld] but %s and %s make [%lld, %lld]",
                         (long long)dst->shape[0], (long long)dst->shape[1], ask->a_name, ask->b_name,
                         (long long)p->a.lanes, (long long)p->b.lanes);
    if (ask->mx && trni_product_depth(p) % 32)
        return trni_fail(ask->error, TRN_ESHAPE, "K = %lld is not a multiple of 32, the block of an MX scale",
                         (long long)trni_product_depth(p));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_request_check_scale(const trni_request *ask, const trni_view *dst, const trn_tensor *scale,
                                                const char *of, int lane_axis, int64_t lanes, int64_t blocks)
{
    char name[32];
    trni_view view;
    snprintf(name, sizeof name, "%s_scale", of);
    if (scale->rank == 0)
        return trni_fail(ask->error, TRN_ESHAPE, "%s is missing: under MX both operands have scales", name);
    const trn_status status = trni_view_open(&view, scale, name, TRNI_INPUT, 2, ask->error);
    if (status != TRN_OK) return status;
    if (scale->format != TRN_F8_E8M0)
        return trni_fail(ask->error, TRN_EFORMAT, "%s is %s; scales are float8_e8m0fnu", name,
                         trn_format_name(scale->format));
    if (scale->shape[lane_axis] != lanes || scale->shape[1 - lane_axis] != blocks)
        return trni_fail(ask->error, TRN_ESHAPE,
                         "%s is [%lld, %lld]; %lld lanes and %lld blocks of 32 need [%lld, %lld]%s", name,
                         (long long)scale->shape[0], (long long)scale->shape[1], (long long)lanes, (long long)blocks,
                         (long long)(lane_axis ? blocks : lanes), (long long)(lane_axis ? lanes : blocks),
                         ask->slots ? ", or a scale tile of K partitions" : "");
    if (trni_views_overlap(dst, &view)) return trni_fail(ask->error, TRN_EINVAL, "dst overlaps %s", name);
    return TRN_OK;
}

TRNI_DRIVER trni_scales trni_scales_of(const trn_tensor *t, int lane_axis)
{
    int64_t stride[TRN_MAX_RANK];
    trni_scales s;
    trni_strides(t, stride);
    s.data = (const unsigned char *)t->data;
    s.lane_stride = t->shape[lane_axis] > 1 ? stride[lane_axis] : 0;
    s.block_stride = t->shape[1 - lane_axis] > 1 ? stride[1 - lane_axis] : 0;
    return s;
}

TRNI_INLINE unsigned trni_scale_at(const trni_scales *s, int64_t lane, int64_t block)
{
    return s->data[lane * s->lane_stride + block * s->block_stride];
}

/* ---- safe: may pairs and quads be summed in binary32, scales multiplied in before? ----
 *
 * Every product of two operands is a multiple of unit = 2^low and below 2^high. While 2^-149 <= unit and four products
 * stay below 2^127, rounding to binary32 commutes with the scales, and the first product of a group is exact. */

TRNI_FN int trni_low_exponent(const trn_format_info *f) { return 1 - f->bias - f->mantissa_bits; }
/* Above every number. */
TRNI_FN int trni_high_exponent(const trn_format_info *f) { return (1 << f->exponent_bits) - f->bias; }

/* Scales between these powers of two leave the range of no pair of operands: 2^(-58-58-32) and 2^(46+46+2+32). */
enum { TRNI_SAFE_LEAST = 127 - 58, TRNI_SAFE_MOST = 127 + 46, TRNI_SCALE_BLOCK = 32 };

/* Is every number of this block a zero? Its scale does not matter then (+-0 times 2^x is +-0). */
TRNI_COLD bool trni_block_is_zero(const trni_operand *o, int64_t lane, int64_t block)
{
    const int64_t rows = TRNI_SCALE_BLOCK / (o->slots > 1 ? o->slots : 1);
    const unsigned magnitude = (1u << (o->info.bits - 1)) - 1;
    for (int64_t slot = 0; slot < o->slots; slot++)
        for (int64_t i = 0; i < rows; i++)
            if (trni_operand_at(o, lane, block * rows + i)[slot * o->slot_stride] & magnitude) return false;
    return true;
}

TRNI_INLINE bool trni_scale_is_usual(unsigned byte)
{
    return (byte >= TRNI_SAFE_LEAST && byte <= TRNI_SAFE_MOST) || byte == TRNI_SCALE_BYTE_NAN;
}

/* Are there others than usual scales among n bytes? A whole lane is looked at before its blocks are. */
TRNI_INLINE void trni_unusual_body(const uint8_t *byte, size_t n, uint8_t *found)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t over = (uint8_t)(byte[i] - TRNI_SAFE_LEAST), beyond = over > TRNI_SAFE_MOST - TRNI_SAFE_LEAST;
        any |= (uint8_t)(beyond & (byte[i] != TRNI_SCALE_BYTE_NAN));
    }
    *found = any;
}
TRNI_DISPATCH_AVX2(trni_unusual, (const uint8_t *byte, size_t n, uint8_t *found), (byte, n, found))

TRNI_DRIVER bool trni_scales_are_safe(const trni_scales *s, const trni_operand *o, trn_isa isa)
{
    const int64_t blocks = o->depth * o->slots / TRNI_SCALE_BLOCK;
    const bool packed = s->block_stride == 1 && s->lane_stride == blocks; /* all lanes in one run */
    for (int64_t lane = 0; lane < o->lanes; lane++) {
        uint8_t unusual = 1;
        if (s->block_stride == 1)
            trni_unusual_for(isa)(s->data + lane * s->lane_stride,
                                  (size_t)(packed && lane == 0 ? blocks * o->lanes : blocks), &unusual);
        if (packed && lane == 0 && !unusual) return true;
        for (int64_t block = 0; block < blocks && unusual; block++)
            if (!trni_scale_is_usual(trni_scale_at(s, lane, block)) && !trni_block_is_zero(o, lane, block))
                return false;
    }
    return true;
}

/* Reads all scales: asked last, of a product that has been checked and is not empty. */
TRNI_FN bool trni_product_is_safe(const trni_product *p)
{
    const int low = trni_low_exponent(&p->a.info) + trni_low_exponent(&p->b.info);
    const int high = trni_high_exponent(&p->a.info) + trni_high_exponent(&p->b.info);
    if (p->spread == TRNI_SINGLE) return true;
    if (low < -149 || high > 125) return false;
    return p->spread != TRNI_QUADS ||
           (trni_scales_are_safe(&p->a_scale, &p->a, p->isa) && trni_scales_are_safe(&p->b_scale, &p->b, p->isa));
}

/* ---- settling ---- */

/* dst, the last of three, overlaps neither a nor b. */
TRNI_DRIVER trn_status trni_request_check_apart(const trni_request *ask, const trni_view view[3])
{
    for (int i = 0; i < 2; i++)
        if (trni_views_overlap(&view[2], &view[i]))
            return trni_fail(ask->error, TRN_EINVAL, "dst overlaps %s", view[i].name);
    return TRN_OK;
}

/* a, b and dst, opened. */
TRNI_DRIVER trn_status trni_request_open(const trni_request *ask, trni_view view[3])
{
    const trn_tensor *const t[3] = { &ask->a, &ask->b, &ask->dst };
    const char *const name[3] = { ask->a_name, ask->b_name, "dst" };
    trn_status status = trni_request_check_double_row(ask); /* before the rank that follows from it */
    for (int i = 0; i < 3 && status == TRN_OK; i++)
        status = trni_view_open(&view[i], t[i], name[i], i < 2 ? TRNI_INPUT : TRNI_OUTPUT, i < 2 && ask->slots ? 3 : 2,
                                ask->error);
    return status;
}

TRNI_DRIVER void trni_product_set_dst(trni_product *p, const trni_view *dst)
{
    p->dst = dst->t;
    p->dst_info = dst->info;
    for (int i = 0; i < 2; i++)
        if (dst->t.shape[i] <= 1) p->dst.stride[i] = 1; /* never taken */
}

/* Modes of rounding and overflow, and int8's output. */
TRNI_DRIVER trn_status trni_request_check_options(const trni_request *ask, const trni_product *p)
{
    if ((unsigned)ask->rounding >= TRN_ROUNDING_COUNT)
        return trni_fail(ask->error, TRN_EINVAL, "rounding = %d is not one of the six modes", (int)ask->rounding);
    if ((unsigned)ask->overflow > TRN_SATURATE)
        return trni_fail(ask->error, TRN_EINVAL, "overflow = %d is neither the default nor saturating",
                         (int)ask->overflow);
    if (p->integer != (ask->dst.format == TRN_I32))
        return trni_fail(ask->error, TRN_EFORMAT, "dst is %s; %s", trn_format_name(ask->dst.format),
                         p->integer ? "int8 products are summed in int32" : "int32 takes the products of int8 only");
    return TRN_OK;
}

/* Checks formats, sizes, scales, overlap and options, in this order, and fills *p. No memory of dst is written. */
TRNI_DRIVER trn_status trni_product_resolve(trni_product *p, const trni_request *ask)
{
    const int b_lane_axis = ask->b_lane_axis == 0 && ask->b_depth_axis == 0 ? 1 : ask->b_lane_axis;
    trni_view view[3];
    trn_status status;
    if (!trni_core_plain_of(ask->generation))
        return trni_fail(ask->error, TRN_EINVAL, "generation = %d does not exist", (int)ask->generation);
    p->generation = trni_request_generation(ask);
    status = trni_numerics_resolve(ask->numerics, p->generation, &p->numerics, ask->error);
    if (status != TRN_OK) return status;
    if ((status = trni_request_open(ask, view)) != TRN_OK) return status;
    if ((status = trni_request_check_classes(ask)) != TRN_OK) return status;
    if ((status = trni_request_check_pair(ask)) != TRN_OK) return status;
    if ((status = trni_request_check_generation(ask, p->generation)) != TRN_OK) return status;

    if (ask->mx) p->numerics.fp8_bias = 0; /* OCP fixes the elements of MX */
    p->a = trni_operand_of(&ask->a, ask->a_lane_axis, ask->a_depth_axis, &p->numerics);
    p->b = trni_operand_of(&ask->b, b_lane_axis, ask->b_depth_axis, &p->numerics);
    p->f32 = p->a.format == TRN_F32 || p->b.format == TRN_F32;
    p->integer = ask->a.format == TRN_I8;
    p->spread = ask->mx ? TRNI_QUADS : ask->double_row ? TRNI_PAIRS : TRNI_SINGLE;
    if ((status = trni_product_check_sizes(p, ask)) != TRN_OK) return status;
    memset(&p->a_scale, 0, sizeof p->a_scale);
    memset(&p->b_scale, 0, sizeof p->b_scale);
    if (ask->mx) {
        const int64_t blocks = trni_product_depth(p) / TRNI_SCALE_BLOCK;
        if ((status = trni_request_check_scale(ask, &view[2], &ask->a_scale, ask->a_name, ask->a_scale_lane_axis,
                                               p->a.lanes, blocks)) != TRN_OK)
            return status;
        if ((status = trni_request_check_scale(ask, &view[2], &ask->b_scale, ask->b_name, ask->b_scale_lane_axis,
                                               p->b.lanes, blocks)) != TRN_OK)
            return status;
        p->a_scale = trni_scales_of(&ask->a_scale, ask->a_scale_lane_axis);
        p->b_scale = trni_scales_of(&ask->b_scale, ask->b_scale_lane_axis);
    }
    if ((status = trni_request_check_apart(ask, view)) != TRN_OK) return status;
    trni_product_set_dst(p, &view[2]);
    if ((status = trni_request_check_options(ask, p)) != TRN_OK) return status;
    p->packed = NULL;
    p->words = false;
    p->counts = NULL;
    p->accumulate = ask->accumulate;
    p->first_row = ask->first_row;
    p->rounding = ask->rounding;
    p->overflow = ask->overflow;
    p->seed = ask->seed;
    p->stream = ask->stream;
    p->isa = ask->isa;
    p->unit = trn_isa_unit(ask->isa);
    return trni_isa_resolve(&p->isa, ask->error);
}

/* Formats that a product of any size may be cast to: PSUM's own and narrower ones. */
TRNI_DRIVER trn_status trni_check_result(const trni_product *p, trn_error *error)
{
    const trn_format f = p->dst.format;
    if (f == TRN_F32 || f == TRN_BF16 || f == TRN_F16 || f == TRN_I32 || trni_is_fp8(f)) return TRN_OK;
    return trni_fail(error, TRN_EFORMAT, "dst is %s; results are float32, bfloat16, float16, an FP8, or int32 of int8",
                     trn_format_name(f));
}

/* What PSUM itself may hold. */
TRNI_DRIVER trn_status trni_check_psum_format(const trn_core_spec *core, trn_format format, trn_error *error)
{
    if (format != TRN_F32 && format != TRN_BF16 && format != TRN_I32)
        return trni_fail(error, TRN_EFORMAT, "dst is %s; PSUM holds float32, or bfloat16 on Trainium3",
                         trn_format_name(format));
    if (format == TRN_BF16 && !core->bf16_psum)
        return trni_fail(error, TRN_EUNSUPPORTED, "dst is bfloat16, which %s's PSUM does not hold",
                         trn_generation_name(core->generation));
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_check_psum_written(bool accumulate, const bool *written, trn_error *error)
{
    if (!accumulate || !written || *written) return TRN_OK;
    return trni_fail(
        error, TRN_EINVAL,
        "accumulate: no matmul has written this PSUM since it was allocated, what it adds to is undefined");
}

#endif /* TRNI_ARRAY_PRODUCT_H */
