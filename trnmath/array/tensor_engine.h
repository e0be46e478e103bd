/* array/tensor_engine.h - the instructions of the Tensor engine.
 * A part of trn_tensor_engine.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ARRAY_TENSOR_ENGINE_H
#define TRNI_ARRAY_TENSOR_ENGINE_H

#include "../data/convert.h"
#include "../data/mx_layout.h"
#include "../machine/numerics.h"

/* Rows and columns of the array: where a tile begins, or how large it is. */
typedef struct trn_pe_tile {
    int row, column;
} trn_pe_tile;

typedef struct trn_nc_matmul_args {
    trn_generation generation; /* whose limits hold; 0 = Trainium2, or Trainium3 for E4M3FN */
    trn_tensor dst;            /* [M, N] PSUM: F32; on Trainium3 also BF16 (upcast, binary32 add, one rounding); I32
                                * for int8 */
    trn_tensor stationary;     /* [K, M], K <= 128, M <= 128; [K, 2, M] with double_row */
    trn_tensor moving;         /* [K, N], N <= 512; on Trainium3 4096 with an F32 dst, 8192 with BF16; [K, 2, N] */
    bool accumulate;           /* add to dst; else dst is overwritten */
    bool double_row;           /* two rows of K per PE: FP8 operands on Trainium2 and 3 (E4M3 and E5M2 run twice as
                                * fast) */
    bool is_transpose;         /* moving is an identity or a permutation, and dst gets the bits of stationary,
                                * transposed */
    bool is_stationary_onezero, is_moving_onezero; /* hints: every number is 0 or 1 (checked); the bits do not change */
    trn_pe_tile tile_position;                     /* the tile of the array that works: a multiple of tile_size */
    trn_pe_tile tile_size; /* 0, 0 = the whole array; else 128, 64, and 32 on Trainium2 and 3: K and M must fit */
    bool *psum_written;    /* optional: has a matmul written dst? accumulate needs that (else it is undefined); set
                                * here */
    trn_rounding rounding; /* of a BF16 dst */
    uint64_t seed, stream; /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default; k_tile and psum_format do not apply: an
                                     instruction is one tile, and dst is PSUM */
    trn_isa isa;
    trn_error *error;
} trn_nc_matmul_args;

typedef struct trn_nc_matmul_mx_args {
    trn_generation generation; /* 0 = Trainium3, the only one that has it */
    trn_tensor dst;            /* [M, N] PSUM: F32 or BF16 */
    trn_tensor stationary;     /* [K, M, 4] E4M3FN, E5M2 or E2M1: row p, slot i is number 4 p + i; K 32, 64, 96 or 128;
                                * M even */
    trn_tensor moving;         /* [K, N, 4], of any of these formats */
    trn_tensor stationary_scale, moving_scale; /* E8M0. Dense: [K/8, M], [K/8, N]. Or scale tiles as NKI has them:
                                                * [K, M], [K, N], of which partitions 32q … 32q + 3 are read; the view
                                                * may begin at an offset of 4, 8 or 12 and then has so many fewer:
                                                * [K - 4, M] is NKI's scales[4:, :]. Each of the two as it likes;
                                                * data/mx_layout.h */
    bool accumulate;
    trn_pe_tile tile_position, tile_size; /* row tiles only */
    bool *psum_written;
    trn_rounding rounding; /* of a BF16 dst */
    uint64_t seed, stream;
    const trn_numerics *numerics;
    trn_isa isa;
    trn_error *error;
} trn_nc_matmul_mx_args;

typedef struct trn_nc_transpose_args {
    trn_generation generation;
    trn_tensor dst;  /* [F, P]: data's format; U16 for 8-bit data; on Trainium1 F32 */
    trn_tensor data; /* [P, F], both <= 128 */
    trn_isa isa;
    trn_error *error;
} trn_nc_transpose_args;

/* ---- nc_matmul ---- */

/* One nc_matmul: dst[m, n] = (accumulate ? dst[m, n] + : ) sum over k of stationary[k, m] * moving[k, n], in the order
 * of trn_systolic_tile. TRN_ELIMIT beyond the generation's tile limits, TRN_EUNSUPPORTED for what the generation lacks,
 * TRN_EFORMAT for operands that cannot meet, TRN_ESHAPE and TRN_EINVAL for views that do not fit or overlap. */
TRN_API trn_status trn_nc_matmul(const trn_nc_matmul_args *args);

/* ---- nc_matmul_mx ---- */

/* One nc_matmul_mx: a step of row p adds 2^(e_x + e_w) times the sum of four products. Errors as of trn_nc_matmul. */
TRN_API trn_status trn_nc_matmul_mx(const trn_nc_matmul_mx_args *args);

/* ---- nc_transpose ---- */

/* dst = data^T. On Trainium2 and 3 bit for bit; on Trainium1 a product by the identity, in which an infinity or a NaN
 * makes NaN of all that its column of the array writes: a row of dst (documented). */
TRN_API trn_status trn_nc_transpose(const trn_nc_transpose_args *args);

/* ---- the definition, for one output element ---- */

/* One tile for one output element: x[p], w[p] are the operands of row p < rows <= 128, already decoded; `f32` says that
 * an operand is F32 (fp32_mode applies); accumulators without chains take the others for BF16. Returns what is written
 * or added to PSUM. */
TRN_API float trn_systolic_tile(const float *x, const float *w, int rows, bool f32, const trn_numerics *n);

#if TRNI_BODIES

#include "product_safe.h"
#include "../base/workspace.h"

/* ---- limits ---- */

/* One axis of row or column tiling: size 0 is the whole array. */
TRNI_DRIVER trn_status trni_check_tile_axis(const char *axis, int position, int size, int smallest, int64_t used,
                                            const char *chip, trn_error *error)
{
    if (size != 128 && size != 64 && size != 32)
        return trni_fail(error, TRN_EINVAL, "tile_size.%s = %d; tiles are 128, 64 or 32", axis, size);
    if (size < smallest)
        return trni_fail(error, TRN_EUNSUPPORTED, "tile_size.%s = %d; the smallest tile of %s is %d", axis, size, chip,
                         smallest);
    if (position < 0 || position % size || position + size > TRNI_ARRAY_ROWS)
        return trni_fail(error, TRN_EINVAL,
                         "tile_position.%s = %d is not a multiple of tile_size.%s = %d inside the array", axis,
                         position, axis, size);
    if (used > size)
        return trni_fail(error, TRN_ELIMIT, "%lld %ss do not fit a tile of tile_size.%s = %d", (long long)used, axis,
                         axis, size);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_check_tile(const trn_core_spec *core, trn_pe_tile position, trn_pe_tile size,
                                       bool columns_too, const trni_product *p, trn_error *error)
{
    const char *chip = trn_generation_name(core->generation);
    trn_status status;
    if (!size.row) size.row = core->pe_rows;
    if (!size.column) size.column = core->pe_columns;
    if (!columns_too && size.column != core->pe_columns)
        return trni_fail(error, TRN_EINVAL,
                         "tile_size.column = %d: double rows, transposes and MX have no column tiles", size.column);
    if (size.row == 32 && size.column == 32 && core->row_tile_min > 32)
        return trni_fail(error, TRN_EUNSUPPORTED, "tile_size 32 by 32: the smallest tile of %s is %d", chip,
                         (int)core->row_tile_min);
    if ((status = trni_check_tile_axis("row", position.row, size.row, (int)core->row_tile_min, p->a.depth, chip,
                                       error)) != TRN_OK)
        return status;
    return trni_check_tile_axis("column", position.column, size.column, (int)core->column_tile_min, p->a.lanes, chip,
                                error);
}

TRNI_DRIVER trn_status trni_check_limits(const trn_core_spec *core, const trni_product *p, trn_error *error)
{
    const bool bf16 =
        p->dst.format == TRN_BF16 || p->dst.format == TRN_F16 || p->dst.format == TRN_U16; /* two bytes of PSUM */
    const struct {
        int64_t size;
        int limit;
        const char *what;
    } limit[] = {
        { p->a.depth, (int)core->max_k, "K (partitions)" },
        { p->a.lanes, (int)core->max_m, "stationary free size M" },
        { p->b.lanes, (int)(bf16 ? core->max_n_bf16 : core->max_n), "moving free size N" },
    };
    for (int i = 0; i < 3; i++)
        if (limit[i].size > limit[i].limit)
            return trni_fail(error, TRN_ELIMIT, "%s %lld exceeds %d (%s, %s dst)", limit[i].what,
                             (long long)limit[i].size, limit[i].limit, trn_generation_name(core->generation),
                             trn_format_name(p->dst.format));
    return TRN_OK;
}

/* Looking at whole operands for zeros and ones, a word at a time. */
TRNI_INLINE uint32_t trni_nc_bits(const trni_operand *o, int64_t lane, int64_t k)
{
    uint32_t word;
    if (o->format != TRN_F32) return trni_operand_bits(o, lane, k);
    memcpy(&word, trni_operand_at(o, lane, k), sizeof word);
    return word;
}

/* A hint that is not true would be silent on the chip; here it is refused. */
TRNI_DRIVER trn_status trni_check_onezero(const trni_operand *o, bool hint, const char *name, trn_error *error)
{
    for (int64_t slot = 0; hint && slot < o->slots; slot++) {
        const trni_operand one = trni_operand_slot(o, slot);
        for (int64_t k = 0; k < o->depth; k++)
            for (int64_t lane = 0; lane < o->lanes; lane++) {
                const uint32_t u = trni_nc_bits(&one, lane, k);
                if (u != 0 && u != TRNI_F32_SIGN && u != trni_bits(1.0f))
                    return trni_fail(error, TRN_EINVAL, "is_%s_onezero, but %s[%lld, %lld] is %g", name, name,
                                     (long long)k, (long long)lane, (double)trni_float(u));
            }
    }
    return TRN_OK;
}

/* ---- by packed kernels ---- */

/* Packs what an instruction's operand has in each slot. */
TRNI_FN void trni_nc_pack(const trni_packer *packer, const trni_map *map, int64_t lane, int64_t lanes, bool rows,
                          float *dst)
{
    uint16_t line[TRNI_ARRAY_ROWS];
    for (int64_t slot = 0; slot < packer->o->slots; slot++) {
        const trni_operand one = trni_operand_slot(packer->o, slot);
        trni_packer each = *packer;
        for (int i = 0; i < map->rows; i++) line[i] = (uint16_t)(map->chains.slot[i] * map->group + (int)slot);
        each.o = &one;
        each.line = line;
        if (rows)
            trni_pack_rows(&each, lane, lanes, 0, map->rows, dst);
        else
            trni_pack_columns(&each, lane, lanes, 0, map->rows, dst);
    }
}

/* May kernels add to and write dst itself, panels of full width apart from others? */
TRNI_FN bool trni_nc_direct(const trni_product *p)
{
    const bool aligned = (uintptr_t)p->dst.data % sizeof(float) == 0;
    return p->dst.format == TRN_F32 && aligned && p->dst.stride[1] == 1;
}

/* Rows [m, m + strip) times columns [n, n + columns) of a single tile, from packed operands. */
TRNI_FN void trni_nc_block(const trni_product *p, const trni_array *array, int kernel, const float *a, const float *b,
                           const trni_map *map, int64_t m, int64_t n, int64_t columns)
{
    float psum[16 * TRNI_MAX_WIDTH];
    const int strip = array->rows[kernel], width = array->width;
    if (trni_nc_direct(p) && columns == width) {
        float *out = (float *)(void *)trni_dst_at(p, m, n);
        const ptrdiff_t step = (ptrdiff_t)p->dst.stride[0];
        trni_strip_times_panel(array, kernel, a, b, map, p->numerics.merge, p->accumulate ? out : NULL, step, out, step,
                               (uintptr_t)b, 0);
        for (int i = 0; i < strip; i++) trni_canonical_nans_for(p->isa)(out + i * step, (size_t)width);
        return;
    }
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

TRNI_FN trn_status trni_nc_matmul_packed(const trni_product *p, trn_error *error)
{
    trni_loader loader_a, loader_b;
    trni_workspace space;
    trni_map map;
    trni_map_init(&map, &p->numerics, p->first_row, (int)trni_product_depth(p), p->spread);
    const size_t line = sizeof(float) * (size_t)map.lines;
    const trn_status status = trni_workspace_open(&space, line * ((size_t)TRNI_ARRAY_ROWS + TRNI_MAX_WIDTH), 1, error);
    if (status != TRN_OK) return status;
    float *const a = (float *)trni_workspace_of(&space, 0), *const b = a + (size_t)map.lines * TRNI_ARRAY_ROWS;
    const trni_array array = trni_array_of(map.group, p->isa);
    const trni_packer pack_a = { &array, &loader_a, &p->a, NULL, map.lines },
                      pack_b = { &array, &loader_b, &p->b, NULL, map.lines };

    trni_loader_init(&loader_a, &p->a, p->isa);
    trni_loader_init(&loader_b, &p->b, p->isa);
    trni_range range = { 0, 0, 0 };
    trni_nc_pack(&pack_a, &map, 0, p->a.lanes, true, a);
    if (trni_array_looks(&array)) trni_range_of_for(p->isa)(a, (size_t)(map.lines * p->a.lanes), &range);
    if (p->a_scale.data) trni_scale_rows(&array, &p->a_scale, &map, 0, p->a.lanes, 0, a, p->isa);
    for (int64_t n = 0; n < p->b.lanes; n += array.width) {
        const int64_t columns = p->b.lanes - n < array.width ? p->b.lanes - n : array.width;
        trni_nc_pack(&pack_b, &map, n, columns, false, b);
        if (p->b_scale.data) trni_scale_columns(&array, &p->b_scale, &map, n, columns, 0, b, p->isa);
        const trni_array *of_tile = trni_array_of_tile(&array, &range, b, (size_t)(map.lines * array.width));
        for (int64_t m = 0; m < p->a.lanes;) {
            const int kernel = trni_strip_kernel(&array, p->a.lanes - m);
            trni_nc_block(p, of_tile, kernel, a + m * map.lines, b, &map, m, n, columns);
            m += array.rows[kernel];
        }
    }
    trni_workspace_close(&space);
    return TRN_OK;
}

TRNI_COLD trn_status trni_nc_matmul_regions(const trni_product *p, trn_error *error)
{
    trni_workspace space;
    const trni_fast_orders *orders = trni_fast_orders_here();
    const trn_status status = trni_workspace_open(&space, trni_region_space(orders), 1, error);
    if (status != TRN_OK) return status;
    for (int64_t i = 0; i < trni_regions(p); i++) trni_region_run(p, orders, i, trni_workspace_of(&space, 0));
    trni_workspace_close(&space);
    return TRN_OK;
}

TRNI_FN trn_status trni_nc_run(const trni_product *p, bool *psum_written, trn_error *error)
{
    trn_status status = TRN_OK;
    if (trni_product_depth(p) == 0 || p->a.lanes == 0 || p->b.lanes == 0)
        trni_dst_clear(p);
    else if (trni_kernels_apply(p))
        status = trni_nc_matmul_packed(p, error);
    else
        status = trni_nc_matmul_regions(p, error);
    if (status == TRN_OK && psum_written) *psum_written = true;
    return status;
}

/* ---- transposes ---- */

enum { TRNI_TURNED_ROWS = 16, TRNI_ZEROS = 64 };

/* Does row k have nothing but zeros from this lane on, as many as TRNI_ZEROS bytes hold? */
TRNI_FN bool trni_zeros_from(const trni_operand *o, int64_t lane, int64_t k)
{
    static const unsigned char zeros[TRNI_ZEROS] = { 0 };
    return o->lane_stride == 1 && (o->lanes - lane) * o->bytes >= TRNI_ZEROS &&
           !memcmp(trni_operand_at(o, lane, k), zeros, TRNI_ZEROS);
}

/* Of each column of a permutation the row of K that it takes, -1 for none. Returns the first column that has more than
 * one number that is not 0, or one that is not 1; -1: it is a permutation. */
TRNI_FN int64_t trni_permutation_rows(const trni_operand *moving, int16_t *row)
{
    int64_t bad = moving->lanes;
    const int64_t several = TRNI_ZEROS / moving->bytes;
    for (int64_t n = 0; n < moving->lanes; n++) row[n] = -1;
    for (int64_t k = 0; k < moving->depth; k++)
        for (int64_t first = 0; first < bad; first += several) {
            if (trni_zeros_from(moving, first, k)) continue;
            for (int64_t n = first; n < first + several && n < bad; n++) {
                const uint32_t u = trni_nc_bits(moving, n, k);
                if (u == 0 || u == TRNI_F32_SIGN) continue;
                if (u != trni_bits(1.0f) || row[n] >= 0) bad = n;
                row[n] = (int16_t)k;
            }
        }
    return bad < moving->lanes ? bad : -1;
}

/* PSUM takes 8-bit codes as 16 bits, the upper byte 0 (documented); other formats as they are. */
TRNI_FN trn_format trni_transposed_format(trn_format data) { return trn_format_bits(data) == 8 ? TRN_U16 : data; }

TRNI_DRIVER trn_status trni_transpose_check(const trn_nc_matmul_args *args)
{
    const trn_format to = trni_transposed_format(args->stationary.format);
    if (args->accumulate || args->double_row)
        return trni_fail(args->error, TRN_EINVAL, "is_transpose does not go with %s",
                         args->accumulate ? "accumulate" : "double_row");
    if (args->dst.format != to)
        return trni_fail(args->error, TRN_EFORMAT, "dst is %s; transposing %s makes %s",
                         trn_format_name(args->dst.format), trn_format_name(args->stationary.format),
                         trn_format_name(to));
    return TRN_OK;
}

/* Rows of dst lie far apart, as those of the array do: a few at a time are turned beside each other, then written. */
TRNI_FN void trni_transpose_run(const trni_product *p, const int16_t *row, char *turned)
{
    const int64_t from = p->a.bytes, to = (int64_t)trn_format_bytes(p->dst.format), line = p->b.lanes * to;
    for (int64_t m = 0; m < p->a.lanes; m += TRNI_TURNED_ROWS) {
        const int64_t rows = trni_min64(p->a.lanes - m, TRNI_TURNED_ROWS);
        memset(turned, 0, (size_t)(rows * line));
        for (int64_t n = 0; n < p->b.lanes; n++)
            if (row[n] >= 0) /* little endian */
                trni_move(turned + n * to, line, (const char *)trni_operand_at(&p->a, m, row[n]),
                          p->a.lane_stride * from, (size_t)from, (size_t)rows);
        for (int64_t i = 0; i < rows; i++)
            trni_move((char *)trni_dst_at(p, m + i, 0), p->dst.stride[1] * to, turned + i * line, to, (size_t)to,
                      (size_t)p->b.lanes);
    }
}

TRNI_DRIVER trn_status trni_nc_transposed(const trn_nc_matmul_args *args, const trni_product *p)
{
    trni_workspace space;
    if (!p->b.lanes) return TRN_OK; /* nothing of dst, which may be nowhere */
    const size_t columns = (size_t)p->b.lanes, line = columns * trn_format_bytes(p->dst.format);
    trn_status status =
        trni_workspace_open(&space, columns * sizeof(int16_t) + TRNI_TURNED_ROWS * line, 1, args->error);
    if (status != TRN_OK) return status;
    int16_t *const row = (int16_t *)trni_workspace_of(&space, 0);
    const int64_t bad = trni_permutation_rows(&p->b, row);
    if (bad < 0)
        trni_transpose_run(p, row, (char *)(row + columns));
    else
        status = trni_fail(
            args->error, TRN_EINVAL,
            "is_transpose: column %lld of moving has more than one number that is not 0, or one that is not 1",
            (long long)bad);
    trni_workspace_close(&space);
    return status;
}

/* ---- nc_matmul ---- */

/* As a product: dst's format is checked by the instruction, so that transposes may write what no product does. */
TRNI_DRIVER trn_status trni_nc_matmul_check(const trn_nc_matmul_args *args, trni_product *p, bool *moves)
{
    trni_request ask;
    trn_status status;
    TRNI_REQUEST(ask, args);
    ask.a = args->stationary;
    ask.b = args->moving;
    ask.a_name = "stationary";
    ask.b_name = "moving";
    ask.slots = args->double_row ? 2 : 0;
    ask.a_lane_axis = ask.b_lane_axis = args->double_row ? 2 : 1;
    ask.double_row = args->double_row;
    ask.first_row = args->tile_position.row;
    if ((status = trni_product_resolve(p, &ask)) != TRN_OK) return status;

    const trn_core_spec *core = trn_core_spec_of(p->generation);
    *moves = args->is_transpose && core->transpose_mode; /* else a product by the identity, as any other */
    if ((status = trni_check_limits(core, p, args->error)) != TRN_OK)
        return status; /* before anything that takes time */
    if (*moves && (status = trni_transpose_check(args)) != TRN_OK) return status;
    if (!*moves && (status = trni_check_psum_format(core, args->dst.format, args->error)) != TRN_OK) return status;
    const bool column_tiles = !args->double_row && !args->is_transpose;
    if ((status = trni_check_tile(core, args->tile_position, args->tile_size, column_tiles, p, args->error)) != TRN_OK)
        return status;
    if ((status = trni_check_psum_written(args->accumulate, args->psum_written, args->error)) != TRN_OK) return status;
    if ((status = trni_check_onezero(&p->a, args->is_stationary_onezero, "stationary", args->error)) != TRN_OK)
        return status;
    const bool hint = args->is_moving_onezero && !*moves; /* a permutation is looked at anyway */
    if ((status = trni_check_onezero(&p->b, hint, "moving", args->error)) != TRN_OK) return status;
    p->numerics.psum_format = TRN_F32; /* dst is PSUM: its format rounds, once, on the way out */
    p->numerics.k_tile = TRNI_ARRAY_ROWS;
    return TRN_OK;
}

TRN_API trn_status trn_nc_matmul(const trn_nc_matmul_args *args)
{
    trni_product p;
    bool moves = false;
    TRNI_ENTER(args);
    trn_status status = trni_nc_matmul_check(args, &p, &moves);
    if (status != TRN_OK) return status;
    if (!moves) return trni_nc_run(&p, args->psum_written, args->error);
    status = trni_nc_transposed(args, &p);
    if (status == TRN_OK && args->psum_written) *args->psum_written = true;
    return status;
}

/* ---- nc_matmul_mx ---- */

TRNI_FN bool trni_nc_has_tile(const trn_tensor *scale, const trn_tensor *data)
{
    return scale->rank == 2 && data->rank == 3 && trni_mx_is_tile(scale->shape[0], data->shape[0]);
}

/* As many rows as dense scales have: all of these, or the first of a scale tile, whose other checks are its own. */
TRNI_FN trn_tensor trni_nc_scale_rows(const trn_tensor *scale, const trn_tensor *data)
{
    trn_tensor t = *scale;
    if (trni_nc_has_tile(scale, data)) t.shape[0] = data->shape[0] / 8; /* nothing has looked at its strides yet */
    return t;
}

/* The whole view: of a scale tile trni_product_resolve has seen the first rows only. */
TRNI_DRIVER trn_status trni_nc_check_scales(const trn_nc_matmul_mx_args *args, const trn_tensor *scale,
                                            const char *name)
{
    const trn_status status = trn_tensor_check(scale, name, TRNI_INPUT, 2, args->error);
    if (status == TRN_OK && trn_tensor_overlap(args->dst, *scale))
        return trni_fail(args->error, TRN_EINVAL, "dst overlaps %s", name);
    return status;
}

/* The scales of a tile, dense, [K/8, lanes] at `room`; those of a single quadrant are dense where they lie. */
TRNI_FN trn_status trni_nc_gather_scales(const trn_nc_matmul_mx_args *args, const trn_tensor *scale,
                                         const trn_tensor *data, unsigned char *room, trni_scales *out)
{
    const int64_t blocks = data->shape[0] / 8;
    trn_mx_sbuf_args move;
    if (blocks <= TRNI_MX_QUADRANT_SCALES || !trni_nc_has_tile(scale, data)) return TRN_OK;
    memset(&move, 0, sizeof move);
    move.scale_tile = *scale;
    move.scales = trn_tensor_2d(scale->format, room, blocks, scale->shape[1]);
    move.isa = args->isa;
    move.error = args->error;
    const trn_status status = trn_mx_from_sbuf(&move);
    *out = trni_scales_of(&move.scales, 1);
    return status;
}

/* With scale tiles: their scales, gathered, then as with dense ones. */
TRNI_COLD trn_status trni_nc_matmul_mx_tiles(const trn_nc_matmul_mx_args *args, trni_product *p)
{
    const int64_t blocks = p->a.depth / 8;
    trni_workspace space;
    trn_status status = trni_workspace_open(&space, (size_t)(blocks * (p->a.lanes + p->b.lanes)), 1, args->error);
    if (status != TRN_OK) return status;
    unsigned char *const room = (unsigned char *)trni_workspace_of(&space, 0);
    status = trni_nc_gather_scales(args, &args->stationary_scale, &args->stationary, room, &p->a_scale);
    if (status == TRN_OK)
        status =
            trni_nc_gather_scales(args, &args->moving_scale, &args->moving, room + blocks * p->a.lanes, &p->b_scale);
    if (status == TRN_OK) status = trni_nc_run(p, args->psum_written, args->error);
    trni_workspace_close(&space);
    return status;
}

TRNI_DRIVER trn_status trni_nc_matmul_mx_check(const trn_nc_matmul_mx_args *args, trni_product *p)
{
    trni_request ask;
    trn_status status;
    TRNI_REQUEST(ask, args);
    ask.a = args->stationary;
    ask.b = args->moving;
    ask.a_name = "stationary";
    ask.b_name = "moving";
    ask.a_scale = trni_nc_scale_rows(&args->stationary_scale, &args->stationary);
    ask.b_scale = trni_nc_scale_rows(&args->moving_scale, &args->moving);
    ask.slots = 4;
    ask.a_lane_axis = ask.b_lane_axis = ask.a_scale_lane_axis = ask.b_scale_lane_axis = 1;
    ask.mx = true;
    ask.first_row = args->tile_position.row;
    if ((status = trni_product_resolve(p, &ask)) != TRN_OK) return status;
    if ((status = trni_nc_check_scales(args, &args->stationary_scale, "stationary_scale")) != TRN_OK) return status;
    if ((status = trni_nc_check_scales(args, &args->moving_scale, "moving_scale")) != TRN_OK) return status;

    const trn_core_spec *core = trn_core_spec_of(p->generation);
    if ((status = trni_check_psum_format(core, args->dst.format, args->error)) != TRN_OK) return status;
    if (p->a.depth % 32)
        return trni_fail(args->error, TRN_ESHAPE, "K = %lld partitions; MX takes 32, 64, 96 or 128",
                         (long long)p->a.depth);
    if (p->a.lanes % 2)
        return trni_fail(args->error, TRN_ESHAPE, "stationary free size M = %lld is odd; MX takes even ones",
                         (long long)p->a.lanes);
    if ((status = trni_check_limits(core, p, args->error)) != TRN_OK) return status;
    if ((status = trni_check_tile(core, args->tile_position, args->tile_size, false, p, args->error)) != TRN_OK)
        return status;
    if ((status = trni_check_psum_written(args->accumulate, args->psum_written, args->error)) != TRN_OK) return status;
    p->numerics.psum_format = TRN_F32;
    p->numerics.k_tile = TRNI_ARRAY_ROWS;
    return TRN_OK;
}

TRN_API trn_status trn_nc_matmul_mx(const trn_nc_matmul_mx_args *args)
{
    trni_product p;
    TRNI_ENTER(args);
    const trn_status status = trni_nc_matmul_mx_check(args, &p);
    if (status != TRN_OK) return status;
    if (trni_nc_has_tile(&args->stationary_scale, &args->stationary) ||
        trni_nc_has_tile(&args->moving_scale, &args->moving))
        return trni_nc_matmul_mx_tiles(args, &p);
    return trni_nc_run(&p, args->psum_written, args->error);
}

/* ---- nc_transpose ---- */

TRN_API trn_status trn_nc_transpose(const trn_nc_transpose_args *args)
{
    trn_nc_matmul_args matmul;
    trni_workspace space;
    TRNI_ENTER(args);
    trn_status status = trn_tensor_check(&args->data, "data", TRNI_INPUT, 2, args->error);
    if (status != TRN_OK) return status;
    const int64_t rows = args->data.shape[0];
    const trn_format_info info = trn_tensor_format_info(&args->data);
    if (rows > TRNI_ARRAY_ROWS)
        return trni_fail(args->error, TRN_ELIMIT, "data has %lld partitions, more than %d", (long long)rows,
                         (int)TRNI_ARRAY_ROWS);
    const trni_encoding how = { { TRN_NEAREST_EVEN, 0, 32 }, TRN_OVERFLOW_DEFAULT, false };
    const uint32_t one = trni_encode_row(&info, trni_bits(1.0f), how);
    if (trni_decode_row(&info, one) != trni_bits(1.0f))
        return trni_fail(args->error, TRN_EFORMAT, "data is %s, which has no 1 to make an identity of",
                         trn_format_name(args->data.format));
    const size_t bytes = ((size_t)info.bits + 7) / 8, size = (size_t)(rows * rows) * bytes;
    if ((status = trni_workspace_open(&space, size, 1, args->error)) != TRN_OK) return status;
    unsigned char *const identity = (unsigned char *)trni_workspace_of(&space, 0);
    memset(identity, 0, size);
    for (int64_t i = 0; i < rows; i++) memcpy(identity + (size_t)(i * rows + i) * bytes, &one, bytes);
    memset(&matmul, 0, sizeof matmul);
    matmul.generation = args->generation;
    matmul.dst = args->dst;
    matmul.stationary = args->data;
    matmul.moving = trn_tensor_2d(args->data.format, identity, rows, rows);
    matmul.moving.cfp8 = args->data.cfp8;
    matmul.is_transpose = true;
    matmul.isa = args->isa;
    matmul.error = args->error;
    status = trn_nc_matmul(&matmul);
    trni_workspace_close(&space);
    return status;
}

/* ---- the definition, for one output element ---- */

TRN_API float trn_systolic_tile(const float *x, const float *w, int rows, bool f32, const trn_numerics *n)
{
    TRNI_FLOATS;
    const trni_tile t = { x, w, NULL, rows, 1, 0, f32, { f32 ? 4 : 2, -126, -126 } };
    return trni_tile_of(&t, n);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ARRAY_TENSOR_ENGINE_H */
