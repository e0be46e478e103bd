/* test_engine_twin_dma.c - the DMA engines' copies, transposes and sums against the slow twin, on random legal args.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_dma.h"
#include "twin/engine_cases.h"
#include "twin/twin_dma.h"

ENGINE_CALL(dma_copy)
ENGINE_CALL(dma_transpose)
ENGINE_CALL(dma_compute)

/* Stochastic rounding is the engines'; a DMA rounds so only where all writes do. */
static void draw_rounding(engine_case *c, const trn_numerics **numerics)
{
    if (cases_one_in(c->rng, 2)) {
        c->numerics.sr_where = TRN_SR_ALL_WRITES;
        *numerics = &c->numerics;
    } else if (c->how.cast.mode == TWIN_STOCHASTIC)
        c->how.cast.mode = TWIN_NEAREST_EVEN;
}

/* The same number of elements in another shape. */
static trn_tensor reshaped(engine_case *c, int format, int total, bool input)
{
    int partitions = total ? 1 + cases_below(c->rng, total < 40 ? total : 40) : 0;
    while (partitions && total % partitions) partitions--;
    const int elements = partitions ? total / partitions : cases_below(c->rng, 4);
    return input ? tiles_input(&c->s, format, partitions, elements) : tiles_output(&c->s, format, partitions, elements);
}

static void put_indices(engine_case *c, const trn_tensor *index, int rows, bool outside)
{
    for (int p = 0; p < index->shape[0]; p++) {
        uint32_t code = (uint32_t)cases_below(c->rng, rows > 0 ? rows : 1);
        if (rows == 0 || (outside && cases_one_in(c->rng, 4)))
            code = cases_one_in(c->rng, 2) ? (uint32_t)rows : 0xfffffff0u + cases_u32(c->rng) % 16u;
        tiles_put(&c->s, index, p, 0, code);
    }
}

static void one_dma_copy(engine_case *c)
{
    trn_dma_copy_args a;
    ENGINE_ARGS(c, a);
    const bool rows = cases_one_in(c->rng, 2), gathers = cases_one_in(c->rng, 2), outside = cases_one_in(c->rng, 2);
    int format = tiles_format(c->rng), source = cases_one_in(c->rng, 2) ? format : tiles_format(c->rng);
    if (format == TWIN_E2M1 || source == TWIN_E2M1) source = format; /* MX elements are only moved */
    a.accumulate = cases_one_in(c->rng, 4);
    if (a.accumulate) format = source = cases_one_in(c->rng, 2) ? TWIN_F32 : TWIN_BF16;
    draw_rounding(c, &a.numerics);
    const int other = 1 + cases_below(c->rng, 20);
    while (other * c->elements > 3000) c->elements /= 2;
    if (!rows) {
        a.dst = reshaped(c, format, c->partitions * c->elements, false);
        a.src = reshaped(c, source, c->partitions * c->elements, true);
        if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.src, &a.dst);
    } else {
        a.dst = tiles_output(&c->s, format, gathers ? c->partitions : other, c->elements);
        a.src = tiles_input(&c->s, source, gathers ? other : c->partitions, c->elements);
        trn_tensor *index = gathers ? &a.src_index : &a.dst_index;
        *index = tiles_input(&c->s, cases_one_in(c->rng, 2) ? TWIN_U32 : TWIN_I32, c->partitions, 1);
        put_indices(c, index, other, outside);
        a.oob_mode = outside ? TRN_OOB_SKIP : TRN_OOB_ERROR;
    }
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src),
                    from = tiles_load(&c->s, &a.src_index), to = tiles_load(&c->s, &a.dst_index);
    if (!rows)
        twin_dma_copy(&dst, &x, a.accumulate, &c->how.cast);
    else if (gathers)
        twin_dma_gather(&dst, &x, &from, a.accumulate, &c->how.cast);
    else
        twin_dma_scatter(&dst, &x, &to, a.accumulate, &c->how.cast);
    engine_check(c, call_dma_copy, &a, &a.dst, &dst, !rows ? "copy" : gathers ? "gather" : "scatter");
    engine_free(4, &dst, &x, &from, &to);
}

/* Rows gathered first: row j of what is transposed is row index[j] of src, indices taken column after column. */
static void one_dma_transpose(engine_case *c)
{
    static const int order[3][4] = { { 1, 0, 0, 0 }, { 2, 1, 0, 0 }, { 3, 1, 2, 0 } };
    static const int formats[] = { TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_I16, TWIN_U32, TWIN_I32, TWIN_U16, TWIN_TF32 };
    trn_dma_transpose_args a;
    ENGINE_ARGS(c, a);
    if (a.generation == TRN_TRAINIUM1) a.generation = TRN_TRAINIUM2;
    const int rank = 2 + cases_below(c->rng, 3), format = formats[cases_below(c->rng, 8)];
    const int *axes = order[rank - 2];
    int shape[4] = { 0 }, total = 1;
    int64_t from[4] = { 0 }, to[4] = { 0 };
    for (int i = 0; i < rank; i++) total *= shape[i] = rank == 2 ? cases_below(c->rng, 60) : cases_below(c->rng, 9);
    for (int i = 0; i < rank; i++) {
        from[i] = shape[i];
        to[i] = shape[axes[i]];
    }
    if (cases_one_in(c->rng, 2)) memcpy(a.axes, axes, sizeof a.axes);
    a.dst = trn_tensor_nd(bridge_format(format), NULL, rank, to);
    a.src = trn_tensor_nd(bridge_format(format), NULL, rank, from);
    tiles_place(&c->s, &a.dst, false);
    tiles_place(&c->s, &a.src, true);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_dma_transpose(dst.code, x.code, rank, shape, axes);
    engine_check(c, call_dma_transpose, &a, &a.dst, &dst, "transpose");
    engine_free(2, &dst, &x);
}

static void one_gathered_transpose(engine_case *c)
{
    trn_dma_transpose_args a;
    ENGINE_ARGS(c, a);
    if (a.generation == TRN_TRAINIUM1) a.generation = TRN_TRAINIUM3;
    const int columns = 1 + cases_below(c->rng, 2), lines = columns > 1 ? 128 : 16 * (1 + cases_below(c->rng, 8));
    const int rows = 16 * (1 + cases_below(c->rng, columns * lines / 16)), width = cases_below(c->rng, 20);
    int shape[2] = { rows, width };
    static const int axes[2] = { 1, 0 };
    a.dst = trn_tensor_2d(TRN_BF16, NULL, width, rows);
    a.src = trn_tensor_2d(TRN_BF16, NULL, rows, width);
    a.index = trn_tensor_2d(TRN_U32, NULL, lines, columns);
    tiles_place(&c->s, &a.dst, false);
    tiles_place(&c->s, &a.src, true);
    tiles_place(&c->s, &a.index, true);
    for (int p = 0; p < lines; p++)
        for (int f = 0; f < columns; f++) tiles_put(&c->s, &a.index, p, f, (uint32_t)cases_below(c->rng, rows));
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src), index = tiles_load(&c->s, &a.index),
                    gathered = tiles_load(&c->s, &a.src);
    for (int i = 0; i < rows; i++)
        for (int f = 0; f < width; f++)
            *twin_at(&gathered, i, f) = *twin_at(&x, (int)*twin_at(&index, i % lines, i / lines), f);
    twin_dma_transpose(dst.code, gathered.code, 2, shape, axes);
    engine_check(c, call_dma_transpose, &a, &a.dst, &dst, "gathered");
    engine_free(4, &dst, &x, &index, &gathered);
}

static void one_dma_compute(engine_case *c)
{
    static const float ones[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    trn_tensor source[16];
    twin_grid grid[16];
    trn_dma_compute_args a;
    ENGINE_ARGS(c, a);
    draw_rounding(c, &a.numerics);
    const int total = c->partitions * c->elements;
    a.count = 1 + cases_below(c->rng, cases_one_in(c->rng, 4) ? 16 : 4);
    a.srcs = source;
    a.scales = cases_one_in(c->rng, 2) ? ones : NULL;
    a.reduce_op = cases_one_in(c->rng, 2) ? TRN_ALU_ADD : TRN_ALU_BYPASS;
    a.dst = reshaped(c, tiles_format(c->rng), total, false);
    for (int i = 0; i < a.count; i++) source[i] = reshaped(c, tiles_format(c->rng), total, true);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &source[cases_below(c->rng, a.count)], &a.dst);
    const twin_grid dst = tiles_load(&c->s, &a.dst);
    for (int i = 0; i < a.count; i++) grid[i] = tiles_load(&c->s, &source[i]);
    twin_dma_compute(&dst, grid, a.count, &c->how.cast);
    engine_check(c, call_dma_compute, &a, &a.dst, &dst, "sum");
    for (int i = 0; i < a.count; i++) engine_free(1, &grid[i]);
    engine_free(1, &dst);
}

/* dst rows += rows, one side of them by index; dst is one of the two sources. */
static void one_read_modify_write(engine_case *c)
{
    trn_tensor source[2];
    trn_dma_compute_args a;
    ENGINE_ARGS(c, a);
    draw_rounding(c, &a.numerics);
    const bool outside = cases_one_in(c->rng, 2);
    const int other = 1 + cases_below(c->rng, 20), own = cases_below(c->rng, 2);
    while (other * c->elements > 3000) c->elements /= 2;
    a.scatter = cases_one_in(c->rng, 2);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), a.scatter ? other : c->partitions, c->elements);
    source[own] = a.dst;
    source[1 - own] = tiles_input(&c->s, tiles_format(c->rng), a.scatter ? c->partitions : other, c->elements);
    a.srcs = source;
    a.count = 2;
    a.index = tiles_input(&c->s, cases_one_in(c->rng, 2) ? TWIN_U32 : TWIN_I32, c->partitions, 1);
    put_indices(c, &a.index, other, outside);
    a.oob_mode = outside ? TRN_OOB_SKIP : TRN_OOB_ERROR;
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &source[1 - own]),
                    index = tiles_load(&c->s, &a.index);
    if (a.scatter)
        twin_dma_scatter(&dst, &x, &index, true, &c->how.cast);
    else
        twin_dma_gather(&dst, &x, &index, true, &c->how.cast);
    engine_check(c, call_dma_compute, &a, &a.dst, &dst, a.scatter ? "scatter" : "gather");
    engine_free(3, &dst, &x, &index);
}

ENGINE_TEST(dma_copy, 2000, 40000)
ENGINE_TEST(dma_transpose, 600, 10000)
ENGINE_TEST(gathered_transpose, 200, 4000)
ENGINE_TEST(dma_compute, 600, 20000)
ENGINE_TEST(read_modify_write, 800, 20000)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dma_copy),           cmocka_unit_test(test_dma_transpose),
        cmocka_unit_test(test_gathered_transpose), cmocka_unit_test(test_dma_compute),
        cmocka_unit_test(test_read_modify_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
