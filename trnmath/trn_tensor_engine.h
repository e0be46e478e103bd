/* trn_tensor_engine.h - the instructions of the Tensor engine: one call is one instruction, with the hardware's limits.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_tensor_engine.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t weights[128 * 64], data[128 * 512];      // [K, M], [K, N]
 *         static float psum[64 * 512];                             // [M, N]
 *         trn_error error;
 *         trn_nc_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, psum, 64, 512),
 *                                     .stationary = trn_tensor_2d(TRN_BF16, weights, 128, 64),
 *                                     .moving = trn_tensor_2d(TRN_BF16, data, 128, 512), .error = &error };
 *         if (trn_nc_matmul(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0;
 *     }
 *
 * DOES: nc_matmul, psum = stationary^T @ moving or psum += it, for F32, TF32, BF16 and F16 operands; enforces the tile
 *     limits and formats of the generation.
 * DOES NOT: tile larger problems (trn_matmul.h), allocate, or use threads.
 *
 * CONTENTS
 *     trn_nc_matmul_args   the instruction's operands and flags
 *     trn_nc_matmul        runs it, or says in one sentence why not; on failure nothing is written
 *
 * KNOWN FROM: NKI's nc_matmul page (limits, dtypes, accumulate flag: documented); arithmetic as in trn_systolic.h.
 */
#ifndef TRN_TENSOR_ENGINE_H
#define TRN_TENSOR_ENGINE_H

#include "trn_random.h"
#include "trn_systolic_panels.h"

typedef struct trn_nc_matmul_args {
    trn_generation generation; /* whose limits hold; 0 = Trainium2 */
    trn_tensor dst;            /* [M, N] PSUM: F32; on Trainium3 also BF16 (upcast, binary32 add, one rounding) */
    trn_tensor stationary;     /* [K, M], K <= 128, M <= 128 */
    trn_tensor moving;         /* [K, N], N <= 512; on Trainium3 4096 with an F32 dst, 8192 with BF16 */
    bool accumulate;           /* add to dst; else dst is overwritten */
    bool double_row;           /* two rows of K per PE: FP8 operands only */
    bool is_transpose;         /* pass data through unchanged instead of multiplying */
    trn_rounding rounding;     /* of a BF16 dst */
    uint64_t seed, stream;     /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default; k_tile and psum_format do not apply: an
                                     instruction is one tile, and dst is PSUM */
    trn_isa isa;
    trn_error *error;
} trn_nc_matmul_args;

/* ---- a product, checked and resolved: what the instruction and the operation of any size share ---- */

typedef struct trni_product {
    trni_operand a, b; /* lanes M and N; depth K */
    trn_tensor dst;    /* [M, N], strides filled in */
    bool accumulate, f32;
    trn_rounding rounding;
    uint64_t seed, stream;
    trn_numerics numerics;
    trn_isa isa;
} trni_product;

/* The PE multiplies narrow formats with narrow ones and 32-bit ones with 32-bit ones. */
TRNI_FN int trni_operand_class(trn_format format)
{
    return format == TRN_F32 || format == TRN_TF32 ? 1 : format == TRN_BF16 || format == TRN_F16 ? 2 : 0;
}

TRNI_FN trn_status trni_product_check_formats(const trn_tensor *a, const char *a_name, const trn_tensor *b, const char *b_name, trn_error *error)
{
    const trn_tensor *const t[2] = { a, b };
    const char *const name[2] = { a_name, b_name };
    for (int i = 0; i < 2; i++)
        if (!trni_operand_class(t[i]->format))
            return trni_fail(error, TRN_EFORMAT, "%s is %s; float32, tfloat32, bfloat16 and float16 are multiplied here", name[i],
                             trn_format_name(t[i]->format));
    if (trni_operand_class(a->format) != trni_operand_class(b->format))
        return trni_fail(error, TRN_EFORMAT, "%s is %s and %s is %s: float32 and tfloat32 meet only each other", a_name,
                         trn_format_name(a->format), b_name, trn_format_name(b->format));
    return TRN_OK;
}

/* Views, formats and sizes of dst [M, N] = a (M lanes, K deep) * b (N lanes); fills *p. `lane_axis` says which axis of a
 * holds M. No memory of the three is read yet, and none is written here. */
TRNI_FN trn_status trni_product_of_views(trni_product *p, const trn_tensor *dst, const trn_tensor *a, const char *a_name, int a_lane_axis,
                                         const trn_tensor *b, const char *b_name, const trn_numerics *numerics, trn_generation generation,
                                         trn_error *error)
{
    trn_status status;
    if ((status = trni_numerics_resolve(numerics, generation, &p->numerics, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(a, a_name, TRNI_INPUT, 2, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(b, b_name, TRNI_INPUT, 2, error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(dst, "dst", TRNI_OUTPUT, 2, error)) != TRN_OK) return status;
    if ((status = trni_product_check_formats(a, a_name, b, b_name, error)) != TRN_OK) return status;

    p->a = trni_operand_of(a, a_lane_axis, 1 - a_lane_axis, &p->numerics);
    p->b = trni_operand_of(b, 1, 0, &p->numerics);
    p->f32 = a->format == TRN_F32 || b->format == TRN_F32;
    if (p->a.depth != p->b.depth)
        return trni_fail(error, TRN_ESHAPE, "%s has K = %lld but %s has K = %lld", a_name, (long long)p->a.depth, b_name, (long long)p->b.depth);
    if (dst->shape[0] != p->a.lanes || dst->shape[1] != p->b.lanes)
        return trni_fail(error, TRN_ESHAPE, "dst is [%lld, %lld] but %s and %s make [%lld, %lld]", (long long)dst->shape[0],
                         (long long)dst->shape[1], a_name, b_name, (long long)p->a.lanes, (long long)p->b.lanes);
    if (trn_tensor_overlap(*dst, *a)) return trni_fail(error, TRN_EINVAL, "dst overlaps %s", a_name);
    if (trn_tensor_overlap(*dst, *b)) return trni_fail(error, TRN_EINVAL, "dst overlaps %s", b_name);
    p->dst = *dst;
    trni_strides(dst, p->dst.stride);
    for (int i = 0; i < 2; i++)
        if (dst->shape[i] <= 1) p->dst.stride[i] = 1; /* never taken */
    return TRN_OK;
}

TRNI_FN trn_status trni_product_check_rounding(trn_rounding rounding, trn_error *error)
{
    if ((unsigned)rounding >= TRNI_ROUNDING_COUNT)
        return trni_fail(error, TRN_EINVAL, "rounding = %d is not one of the six modes", (int)rounding);
    return TRN_OK;
}

/* ---- reading and writing dst ---- */

TRNI_FN unsigned char *trni_dst_at(const trni_product *p, int64_t m, int64_t n)
{
    return (unsigned char *)p->dst.data + (m * p->dst.stride[0] + n * p->dst.stride[1]) * (int64_t)trn_format_bytes(p->dst.format);
}

TRNI_FN float trni_dst_read(const trni_product *p, int64_t m, int64_t n)
{
    const unsigned char *at = trni_dst_at(p, m, n);
    uint32_t word;
    uint16_t half;
    if (p->dst.format == TRN_F32) {
        memcpy(&word, at, sizeof word);
        return trni_float(word);
    }
    memcpy(&half, at, sizeof half);
    return trn_decode(p->dst.format, half);
}

TRNI_FN uint32_t trni_rounded_code(const trni_product *p, trn_format format, float x, trn_rounding rounding, uint64_t stream, int64_t m, int64_t n)
{
    trni_encoding how = { { rounding, 0, p->numerics.sr_bits }, TRN_OVERFLOW_DEFAULT, false };
    const uint32_t u = trni_bits(x);
    if (rounding == TRN_STOCHASTIC)
        how.how.random = trn_random_field(p->seed, stream, (uint64_t)m * (uint64_t)p->b.lanes + (uint64_t)n, p->numerics.sr_bits);
    return trni_encode_how(format, trni_is_nan_bits(u) ? TRNI_F32_NAN : u, how);
}

/* The last cast: canonical NaN, one rounding, one store. */
TRNI_FN void trni_dst_write(const trni_product *p, int64_t m, int64_t n, float x)
{
    unsigned char *at = trni_dst_at(p, m, n);
    const uint32_t word = trni_rounded_code(p, p->dst.format, x, p->rounding, p->stream, m, n);
    const uint16_t half = (uint16_t)word;
    if (p->dst.format == TRN_F32) memcpy(at, &word, sizeof word);
    else memcpy(at, &half, sizeof half);
}

/* K = 0: nothing is added to what PSUM holds, and a fresh PSUM holds +0. */
TRNI_FN void trni_dst_clear(const trni_product *p)
{
    for (int64_t m = 0; m < p->a.lanes && !p->accumulate; m++)
        for (int64_t n = 0; n < p->b.lanes; n++) trni_dst_write(p, m, n, 0.0f);
}

/* ---- by definition: one output element after the other, any order of trn_numerics ---- */

TRNI_FN float trni_psum_rounded(const trni_product *p, float psum, int64_t tile, int64_t m, int64_t n)
{
    if (p->numerics.psum_format != TRN_BF16) return psum;
    return trn_bf16_to_f32((uint16_t)trni_rounded_code(p, TRN_BF16, psum, p->numerics.psum_rounding, p->stream + (uint64_t)tile, m, n));
}

TRNI_FN void trni_define_element(const trni_product *p, int64_t m, int64_t n)
{
    const trn_numerics *rules = &p->numerics;
    float psum = p->accumulate ? trni_dst_read(p, m, n) : 0.0f;
    bool fresh = !p->accumulate;
    for (int64_t k = 0, tile = 0; k < p->a.depth; k += rules->k_tile, tile++) {
        float x[TRNI_ARRAY_ROWS], w[TRNI_ARRAY_ROWS];
        const int rows = p->a.depth - k < rules->k_tile ? (int)(p->a.depth - k) : rules->k_tile;
        trni_operand_gather(&p->a, m, k, 1, rows, rules->flush_inputs, x, 1);
        trni_operand_gather(&p->b, n, k, 1, rows, rules->flush_inputs, w, 1);
        const trni_tile one = { x, w, NULL, rows, 1, 0, p->f32, trni_formats_of(&p->a, &p->b) };
        psum = trni_psum_rounded(p, trni_tile_onto(psum, fresh, &one, rules), tile, m, n);
        fresh = false;
    }
    trni_dst_write(p, m, n, psum);
}

/* Do the packed kernels compute what these rules define? Any chains, layout and merge; everything else as it stands by default. */
TRNI_FN bool trni_kernels_apply(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    return trni_steps_are_fmaf(n) && !n->flush_inputs && n->psum_format == TRN_F32 && !(p->f32 && n->fp32_mode == TRN_FP32_SPLIT);
}

/* ---- nc_matmul ---- */

TRNI_FN trn_status trni_nc_matmul_check(const trn_nc_matmul_args *args, trni_product *p)
{
    trn_error *error = args->error;
    const trn_core_spec *core = trn_core_spec_of(args->generation);
    trn_status status;
    if (!core) return trni_fail(error, TRN_EINVAL, "generation = %d does not exist", (int)args->generation);
    const char *chip = trn_generation_name(args->generation);

    status = trni_product_of_views(p, &args->dst, &args->stationary, "stationary", 1, &args->moving, "moving", args->numerics,
                                   args->generation, error);
    if (status != TRN_OK) return status;
    if ((status = trni_product_check_rounding(args->rounding, error)) != TRN_OK) return status;
    if (args->double_row)
        return trni_fail(error, TRN_EFORMAT, "double_row takes FP8 operands; stationary is %s", trn_format_name(args->stationary.format));
    if (args->is_transpose)
        return trni_fail(error, TRN_EUNSUPPORTED, "is_transpose is not offered by this version; an identity as moving operand transposes finite data");

    const bool bf16 = args->dst.format == TRN_BF16;
    if (args->dst.format != TRN_F32 && !bf16)
        return trni_fail(error, TRN_EFORMAT, "dst is %s; PSUM holds float32, or bfloat16 on Trainium3", trn_format_name(args->dst.format));
    if (bf16 && !core->bf16_psum) return trni_fail(error, TRN_EUNSUPPORTED, "dst is bfloat16, which %s's PSUM does not hold", chip);

    const struct { int64_t size; int limit; const char *what; } limit[] = {
        { p->a.depth, core->max_k, "K (partitions)" },
        { p->a.lanes, core->max_m, "stationary free size M" },
        { p->b.lanes, bf16 ? core->max_n_bf16 : core->max_n, "moving free size N" },
    };
    for (int i = 0; i < 3; i++)
        if (limit[i].size > limit[i].limit)
            return trni_fail(error, TRN_ELIMIT, "%s %lld exceeds %d (%s, %s dst)", limit[i].what, (long long)limit[i].size, limit[i].limit, chip,
                             trn_format_name(args->dst.format));
    p->accumulate = args->accumulate;
    p->rounding = args->rounding;
    p->seed = args->seed;
    p->stream = args->stream;
    p->isa = args->isa;
    p->numerics.psum_format = TRN_F32; /* dst is PSUM: its format rounds, once, on the way out */
    p->numerics.k_tile = TRNI_ARRAY_ROWS;
    return trni_isa_resolve(&p->isa, error);
}

/* Rows [m, m + strip) times columns [n, n + columns) of a single tile, from packed operands. */
TRNI_FN void trni_nc_block(const trni_product *p, const trni_array *array, int kernel, const float *a, const float *b, const trni_map *map,
                           int64_t m, int64_t n, int64_t columns)
{
    float psum[16 * TRNI_MAX_WIDTH];
    const int strip = array->rows[kernel], width = array->width;
    if (p->accumulate) {
        memset(psum, 0, sizeof psum);
        for (int i = 0; i < strip; i++)
            for (int j = 0; j < columns; j++) psum[i * width + j] = trni_dst_read(p, m + i, n + j);
    }
    trni_strip_times_panel(array, kernel, a, b, map, p->numerics.merge, p->accumulate ? psum : NULL, width, psum, width,
                           (uintptr_t)b, 0);
    for (int i = 0; i < strip; i++)
        for (int j = 0; j < columns; j++) trni_dst_write(p, m + i, n + j, psum[i * width + j]);
}

TRNI_FN void trni_nc_matmul_packed(const trni_product *p)
{
    float a[TRNI_ARRAY_ROWS * TRNI_ARRAY_ROWS] __attribute__((aligned(64)));
    float b[TRNI_ARRAY_ROWS * TRNI_MAX_WIDTH] __attribute__((aligned(64)));
    const trni_array array = trni_array_of(1, p->isa);
    trni_feed feed_a, feed_b;
    const int rows = (int)p->a.depth;
    const trni_map map = trni_map_of(&p->numerics, 0, rows, TRNI_SINGLE);
    const trni_packer pack_a = { &array, &feed_a, &p->a, map.line, map.lines }, pack_b = { &array, &feed_b, &p->b, map.line, map.lines };

    trni_feed_init(&feed_a, &p->a, p->isa);
    trni_feed_init(&feed_b, &p->b, p->isa);
    trni_pack_rows(&pack_a, 0, p->a.lanes, 0, rows, a);
    for (int64_t n = 0; n < p->b.lanes; n += array.width) {
        const int64_t columns = p->b.lanes - n < array.width ? p->b.lanes - n : array.width;
        trni_pack_columns(&pack_b, n, columns, 0, rows, b);
        for (int64_t m = 0; m < p->a.lanes;) {
            const int kernel = trni_strip_kernel(&array, p->a.lanes - m);
            trni_nc_block(p, &array, kernel, a + m * rows, b, &map, m, n, columns);
            m += array.rows[kernel];
        }
    }
}

/* One nc_matmul: dst[m, n] = (accumulate ? dst[m, n] + : ) sum over k of stationary[k, m] * moving[k, n], in the order of
 * trn_systolic_tile. TRN_ELIMIT beyond the generation's tile limits, TRN_EUNSUPPORTED for what the generation lacks,
 * TRN_EFORMAT for operands that cannot meet, TRN_ESHAPE and TRN_EINVAL for views that do not fit or overlap. */
TRNI_FN trn_status trn_nc_matmul(const trn_nc_matmul_args *args)
{
    trni_product p;
    if (!args) return TRN_EINVAL;
    const trn_status status = trni_nc_matmul_check(args, &p);
    if (status != TRN_OK) return status;
    if (p.a.depth == 0) {
        trni_dst_clear(&p);
    } else if (trni_kernels_apply(&p)) {
        trni_nc_matmul_packed(&p);
    } else {
        for (int64_t m = 0; m < p.a.lanes; m++)
            for (int64_t n = 0; n < p.b.lanes; n++) trni_define_element(&p, m, n);
    }
    return TRN_OK;
}

#endif /* TRN_TENSOR_ENGINE_H */
