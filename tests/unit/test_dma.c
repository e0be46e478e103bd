/* test_dma.c - DMA engines against plain indexing: copies, casts, rows by index, transposes, sums, and all refusals.
 * SPDX-License-Identifier: MIT
 *
 * Views have gaps and permuted axes and need not have one shape; what lies beside them is compared too. Every call is
 * made on all instruction sets of the host and on all generations that have it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "trnmath/trn_dma.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { ROOM = 1 << 15, EDGE = 64, ARENAS = 20 };
static uint64_t rng = 91;

#include "twin/arena.h"

/* Rows of `elements`, cut into up to three axes. */
static trn_tensor view(int k, trn_format format, int64_t rows, int64_t elements, bool input)
{
    int64_t shape[4] = { rows, elements, 1, 1 };
    int rank = 2;
    for (; rank < 4 && cases_one_in(&rng, 2); rank++) {
        int64_t inner = 1 + cases_below(&rng, 6);
        while (elements && shape[rank - 1] % inner) inner--;
        shape[rank] = inner;
        shape[rank - 1] /= inner;
    }
    return arena_view(k, format, rank, shape, input);
}

/* Element i in row-major order. */
static unsigned char *place(const trn_tensor *t, int64_t i)
{
    int64_t stride[TRN_MAX_RANK], at = 0;
    view_strides(t, stride);
    for (int k = t->rank - 1; k >= 0; k--) {
        at += i % t->shape[k] * stride[k];
        i /= t->shape[k];
    }
    return (unsigned char *)t->data + (size_t)at * bytes_of(t->format);
}

static uint32_t get(const trn_tensor *t, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, place(t, i), bytes_of(t->format));
    return code;
}

static void put(const trn_tensor *t, int64_t i, uint32_t code) { memcpy(place(t, i), &code, bytes_of(t->format)); }

static unsigned char *wanted(const trn_tensor *t, int64_t i) { return want + (place(t, i) - arena[0]); }

static void expect(const trn_tensor *t, int64_t i, uint32_t code) { memcpy(wanted(t, i), &code, bytes_of(t->format)); }

static uint32_t expected(const trn_tensor *t, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, wanted(t, i), bytes_of(t->format));
    return code;
}

CALL(dma_copy)
CALL(dma_transpose)
CALL(dma_compute)

/* ---- what a number becomes ---- */

static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_TF32, TRN_I8,
                                      TRN_U8,  TRN_I16,  TRN_U16, TRN_I32,     TRN_U32,     TRN_TF32 };

static trn_format any_format(void) { return formats[cases_below(&rng, COUNT(formats))]; }

static float number(const trn_tensor *t, uint32_t code)
{
    return t->format == TRN_F32 ? cases_float_of(code) : trn_decode(t->format, code);
}

static uint32_t narrowed(const trn_tensor *t, float x, trn_rounding rounding, uint64_t i)
{
    const uint32_t field = trn_random_field(3, 4, i, 32);
    return t->format == TRN_F32 ? cases_bits_of(x) : trn_encode(t->format, x, rounding, TRN_OVERFLOW_DEFAULT, field);
}

static float sum_of(float x, float y)
{
    volatile float sum = x + y;
    return sum != sum ? cases_float_of(0x7fc00000u) : sum;
}

/* What element i of dst becomes when `code` of src arrives there. */
static uint32_t carried(const trn_tensor *dst, int64_t i, uint32_t was, const trn_tensor *src, uint32_t code,
                        bool accumulate, trn_rounding rounding)
{
    if (accumulate) return narrowed(dst, sum_of(number(dst, was), number(src, code)), rounding, (uint64_t)i);
    return dst->format == src->format ? code : narrowed(dst, number(src, code), rounding, (uint64_t)i);
}

/* ---- dma_copy ---- */

/* Stochastic rounding counts only where numerics say that it does. */
static trn_rounding draw_rounding(trn_instruction *how, trn_numerics *numerics)
{
    static const trn_rounding rounding[] = { TRN_NEAREST_EVEN, TRN_STOCHASTIC, TRN_TOWARD_ZERO };
    how->rounding = rounding[cases_below(&rng, COUNT(rounding))];
    how->seed = 3;
    how->stream = 4;
    *numerics = trn_numerics_default(TRN_TRAINIUM2);
    if (cases_one_in(&rng, 2)) return how->rounding == TRN_STOCHASTIC ? TRN_NEAREST_EVEN : how->rounding;
    numerics->sr_where = TRN_SR_ALL_WRITES;
    how->numerics = numerics;
    return how->rounding;
}

static void copies_are_row_major(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(600, 8000); round++) {
        static const int64_t cut[][2] = { { 6, 20 }, { 20, 6 }, { 120, 1 }, { 1, 120 }, { 5, 24 } };
        const int64_t *const a_cut = cut[cases_below(&rng, COUNT(cut))];
        const int64_t *const b_cut = cases_one_in(&rng, 2) ? a_cut : cut[cases_below(&rng, COUNT(cut))];
        trn_numerics numerics;
        trn_dma_copy_args a;
        memset(&a, 0, sizeof a);
        a.accumulate = cases_one_in(&rng, 3);
        const trn_format to = a.accumulate ? (cases_one_in(&rng, 2) ? TRN_BF16 : TRN_F32) : any_format();
        const trn_rounding rounding = draw_rounding((trn_instruction *)&a, &numerics);
        a.dst = view(0, to, a_cut[0], a_cut[1], false);
        a.src = view(1, a.accumulate || cases_one_in(&rng, 3) ? to : any_format(), b_cut[0], b_cut[1], true);
        if (a.accumulate && cases_one_in(&rng, 3)) a.src = a.dst; /* in place */
        a.dge_mode = (trn_dge_mode)(cases_below(&rng, 2) * 3);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < 120; i++)
            expect(&a.dst, i, carried(&a.dst, i, get(&a.dst, i), &a.src, get(&a.src, i), a.accumulate, rounding));
        check(call_dma_copy, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* Rows by index; some indices are out of bounds and skipped, some come twice. */
static void rows_by_index(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(600, 8000); round++) {
        const bool scatter = cases_one_in(&rng, 2), is_signed = cases_one_in(&rng, 2);
        const int64_t rows = 1 + cases_below(&rng, 20), count = 1 + cases_below(&rng, 20),
                      elements = 1 + cases_below(&rng, 20);
        trn_numerics numerics;
        trn_dma_copy_args a;
        memset(&a, 0, sizeof a);
        a.accumulate = cases_one_in(&rng, 3);
        a.oob_mode = cases_one_in(&rng, 2) ? TRN_OOB_SKIP : TRN_OOB_ERROR;
        a.dge_mode = cases_one_in(&rng, 2) ? TRN_DGE_SWDGE : TRN_DGE_UNKNOWN;
        const trn_format to = a.accumulate ? (cases_one_in(&rng, 2) ? TRN_BF16 : TRN_F32) : any_format();
        const trn_rounding rounding = draw_rounding((trn_instruction *)&a, &numerics);
        a.dst = view(0, to, scatter ? rows : count, elements, false);
        a.src =
            view(1, a.accumulate || cases_one_in(&rng, 3) ? to : any_format(), scatter ? count : rows, elements, true);
        const trn_format index_format = is_signed ? TRN_I32 : TRN_U32;
        trn_tensor index = cases_one_in(&rng, 2) ? view(2, index_format, count, 1, false)
                                                 : trn_tensor_1d(index_format, arena[2], count);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < count; i++) {
            uint32_t row = (uint32_t)cases_below(&rng, (int)rows);
            if (a.oob_mode == TRN_OOB_SKIP && cases_one_in(&rng, 3))
                row =
                    cases_one_in(&rng, 2) ? 0xffffffffu : (uint32_t)rows + (uint32_t)cases_below(&rng, 2) * 0x7000000u;
            put(&index, i, row);
            if (row >= rows) continue;
            for (int64_t f = 0; f < elements; f++) {
                const int64_t d = (scatter ? (int64_t)row : i) * elements + f,
                              s = (scatter ? i : (int64_t)row) * elements + f;
                expect(&a.dst, d,
                       carried(&a.dst, d, expected(&a.dst, d), &a.src, get(&a.src, s), a.accumulate, rounding));
            }
        }
        if (scatter)
            a.dst_index = index;
        else
            a.src_index = index;
        check(call_dma_copy, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* Large enough for threads; the bits stay. */
static void large_copies(void **unused)
{
    enum { N = 300000 };
    static float src[N], sum[N];
    static uint16_t dst[2][N];
    (void)unused;
    for (int i = 0; i < N; i++) src[i] = cases_float_of(cases_float(&rng));
    for (int threads = 1; threads < 4; threads++) {
        with_threads(threads);
        trn_dma_copy_args a;
        memset(&a, 0, sizeof a);
        a.dst = trn_tensor_2d(TRN_BF16, dst[threads > 1], 1000, 300);
        a.src = trn_tensor_2d(TRN_F32, src, 3000, 100);
        assert_int_equal(trn_dma_copy(&a), TRN_OK);
        assert_memory_equal(dst[0], dst[threads > 1], sizeof dst[0]);
        for (int i = 0; i < N; i += 97) assert_int_equal(dst[0][i], trn_bf16_from_f32(src[i]));
        a.accumulate = true;
        a.dst = trn_tensor_2d(TRN_F32, sum, 1000, 300);
        for (int i = 0; i < N; i++) sum[i] = (float)i;
        assert_int_equal(trn_dma_copy(&a), TRN_OK);
        for (int i = 0; i < N; i++) assert_int_equal(cases_bits_of(sum[i]), cases_bits_of(sum_of((float)i, src[i])));
    }
}

/* Many rows to few: the last one stays, on any number of threads. */
static void large_scatters(void **unused)
{
    enum { ROWS = 3000, WIDTH = 100, TO = 3 };
    static float src[ROWS * WIDTH], dst[TO * WIDTH];
    static uint32_t index[ROWS];
    (void)unused;
    for (int i = 0; i < ROWS; i++) index[i] = (uint32_t)(i * 7 % TO);
    for (int i = 0; i < ROWS * WIDTH; i++) src[i] = (float)(i / WIDTH);
    for (int threads = 1; threads < 5; threads++) {
        with_threads(threads);
        trn_dma_copy_args a;
        memset(&a, 0, sizeof a);
        a.dst = trn_tensor_2d(TRN_F32, dst, TO, WIDTH);
        a.src = trn_tensor_2d(TRN_F32, src, ROWS, WIDTH);
        a.dst_index = trn_tensor_1d(TRN_U32, index, ROWS);
        memset(dst, 0, sizeof dst);
        assert_int_equal(trn_dma_copy(&a), TRN_OK);
        for (int i = 0; i < TO * WIDTH; i++) assert_true(dst[i] == (float)(ROWS - TO + i / WIDTH));
        a.accumulate = true;
        for (int i = 0; i < TO * WIDTH; i++) dst[i] = 0;
        assert_int_equal(trn_dma_copy(&a), TRN_OK);
        for (int i = 0; i < TO * WIDTH; i++)
            assert_true(dst[i] == (float)(ROWS / TO * (ROWS - TO) / 2 + ROWS / TO * (i / WIDTH)));
    }
}

/* -FP32_MIN overflows into an infinity (documented: casts do not saturate); to integers it saturates. */
static void published_casts(void **unused)
{
    static const struct {
        trn_format format;
        uint32_t code;
    } row[] = { { TRN_F16, 0xfc00 },   { TRN_BF16, 0xff80 }, { TRN_F8_E4M3, 0xf8 },
                { TRN_F8_E5M2, 0xfc }, { TRN_I8, 0x80 },     { TRN_I32, 0x80000000u } };
    float lowest = cases_float_of(0xff7fffffu);
    (void)unused;
    for (int i = 0; i < COUNT(row); i++) {
        uint32_t code = 0;
        trn_dma_copy_args a;
        memset(&a, 0, sizeof a);
        a.dst = trn_tensor_1d(row[i].format, &code, 1);
        a.src = trn_tensor_1d(TRN_F32, &lowest, 1);
        assert_int_equal(trn_dma_copy(&a), TRN_OK);
        assert_int_equal(code, row[i].code);
    }
}

static void copies_that_are_refused(void **unused)
{
    static uint32_t index[4] = { 0, 5, 1, 0 };
    static int32_t negative[4] = { 0, 1, -2, 0 };
    (void)unused;
    trn_dma_copy_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 4, 6);
    a.src = trn_tensor_2d(TRN_F32, arena[1], 4, 5);
    refuse(call_dma_copy, &a, TRN_ESHAPE, "src has 20 elements but dst has 24");
    a.src = trn_tensor_2d(TRN_F32, arena[0] + 4, 4, 6);
    refuse(call_dma_copy, &a, TRN_EINVAL, "dst overlaps src");
    a.src = trn_tensor_2d(TRN_F32, arena[0], 6, 4);
    refuse(call_dma_copy, &a, TRN_EINVAL, "dst overlaps src");
    a.src = trn_tensor_2d(TRN_BF16, arena[1], 4, 6);
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_copy, &a, TRN_EFORMAT, "dst is float32 and src is bfloat16; dge_mode hwdge does not cast");
    a.src.format = TRN_F32;
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.engine = TRN_ENGINE_SCALAR; /* its queue */
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.generation = TRN_TRAINIUM1;
    refuse(call_dma_copy, &a, TRN_EUNSUPPORTED, "dge_mode hwdge is not available on Trainium1");
    a.dge_mode = TRN_DGE_SWDGE;
    refuse(call_dma_copy, &a, TRN_EINVAL, "engine is scalar, which does not execute dma_copy");
    a.engine = TRN_ENGINE_DMA;
    a.dge_mode = (trn_dge_mode)7;
    refuse(call_dma_copy, &a, TRN_EINVAL, "dge_mode is 7, not a mode");
    a.dge_mode = TRN_DGE_UNKNOWN;
    a.oob_mode = (trn_oob_mode)2;
    refuse(call_dma_copy, &a, TRN_EINVAL, "oob_mode is 2, not a mode");
    a.oob_mode = TRN_OOB_ERROR;
    a.compression = 0.5;
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.compression = 2;
    refuse(call_dma_copy, &a, TRN_EINVAL, "compression is 2, not 0 to 1");
    a.compression = 0.5;
    a.generation = TRN_TRAINIUM2;
    refuse(call_dma_copy, &a, TRN_EUNSUPPORTED, "compression is not available on Trainium2");
    a.compression = 0;
    a.priority = 1;
    refuse(call_dma_copy, &a, TRN_EUNSUPPORTED, "priority 1: Trainium2 has one class of DMA");
    a.generation = TRN_TRAINIUM3;
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.priority = 4;
    refuse(call_dma_copy, &a, TRN_EINVAL, "priority is 4, not 0 to 3");
    a.priority = 0;
    a.accumulate = true;
    a.dst.format = a.src.format = TRN_F16;
    refuse(call_dma_copy, &a, TRN_EFORMAT,
           "dst is float16 and src is float16; accumulate takes bfloat16 or float32 for both");
    a.dst.format = TRN_F32;
    a.src.format = TRN_BF16;
    refuse(call_dma_copy, &a, TRN_EFORMAT,
           "dst is float32 and src is bfloat16; accumulate takes bfloat16 or float32 for both");
    a.accumulate = false;
    a.src.format = TRN_F4_E2M1;
    refuse(call_dma_copy, &a, TRN_EFORMAT, "dst is float32 and src is float4_e2m1fn; a DMA does not cast MX's numbers");
    a.src.format = TRN_F32;
    a.src_index = trn_tensor_1d(TRN_U32, index, 4);
    refuse(call_dma_copy, &a, TRN_EINVAL, "src_index[1] is 5 but src has 4 rows");
    a.dge_mode = TRN_DGE_NONE;
    refuse(call_dma_copy, &a, TRN_EINVAL, "dge_mode is none, which takes no indices");
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_copy, &a, TRN_EINVAL, "dge_mode is hwdge, which takes no indices");
    a.dge_mode = TRN_DGE_SWDGE;
    a.dst_index = trn_tensor_1d(TRN_I32, negative, 4);
    refuse(call_dma_copy, &a, TRN_EINVAL, "src_index and dst_index are both given");
    a.src_index.rank = 0;
    refuse(call_dma_copy, &a, TRN_EINVAL, "dst_index[2] is -2 but dst has 4 rows");
    a.oob_mode = TRN_OOB_SKIP;
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.dst_index = trn_tensor_1d(TRN_I32, negative, 3);
    refuse(call_dma_copy, &a, TRN_ESHAPE, "dst_index has 3 elements for 4 rows");
    a.dst_index = trn_tensor_1d(TRN_U16, negative, 4);
    refuse(call_dma_copy, &a, TRN_EFORMAT, "dst_index is uint16; it takes uint32 and int32");
    a.dst_index = trn_tensor_1d(TRN_U32, arena[0], 4);
    refuse(call_dma_copy, &a, TRN_EINVAL, "dst overlaps dst_index");
    a.src.shape[1] = 7;
    refuse(call_dma_copy, &a, TRN_ESHAPE, "a row of src has 7 elements but one of dst has 6");
    a.src.rank = 0;
    refuse(call_dma_copy, &a, TRN_ESHAPE, "src is missing");
    a.dst.stride[0] = -1;
    refuse(call_dma_copy, &a, TRN_ESHAPE, "dst has negative stride -1 on axis 0");
    assert_int_equal(trn_dma_copy(NULL), TRN_EINVAL);
}

/* ---- dma_transpose ---- */

static const int order[5][4] = { { 0 }, { 0 }, { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };

static void transposes_permute(void **unused)
{
    static const trn_format wide[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_I16, TRN_U32, TRN_TF32 };
    (void)unused;
    for (int round = 0; round < cases_rounds(400, 5000); round++) {
        const int rank = 2 + cases_below(&rng, 3);
        const trn_format format = wide[cases_below(&rng, COUNT(wide))];
        int64_t from[4], to[4];
        trn_dma_transpose_args a;
        memset(&a, 0, sizeof a);
        for (int k = 0; k < rank; k++) from[k] = 1 + cases_below(&rng, rank == 2 ? 40 : 8);
        for (int k = 0; k < rank; k++) to[k] = from[order[rank][k]];
        a.dst = arena_view(0, format, rank, to, false);
        a.src = arena_view(1, format, rank, from, true);
        if (cases_one_in(&rng, 2)) memcpy(a.axes, order[rank], sizeof a.axes);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0, n = trn_tensor_elements(a.dst); i < n; i++) {
            int64_t rest = i, index[4] = { 0 }, at = 0;
            for (int k = rank - 1; k >= 0; k--) {
                index[order[rank][k]] = rest % to[k];
                rest /= to[k];
            }
            for (int k = 0; k < rank; k++) at = at * from[k] + index[k];
            expect(&a.dst, i, get(&a.src, at));
        }
        check(call_dma_transpose, &a, sizeof a, TRN_TRAINIUM2);
    }
}

/* flat = index.T.flatten()[:taken]; dst = src[flat].T, as the page has it. */
static void gathered_rows_are_transposed(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(60, 1000); round++) {
        const int rank = 2 + cases_below(&rng, 3);
        const bool two = cases_one_in(&rng, 4);
        const int64_t index_rows = two ? 128 : 16 * (1 + cases_below(&rng, 3)), columns = two ? 2 : 1;
        const int64_t taken = 16 * (1 + cases_below(&rng, (int)(index_rows * columns / 16)));
        int64_t from[4] = { 1 + cases_below(&rng, 30), 1, 1, 1 }, to[4];
        from[rank - 1] = 1 + cases_below(&rng, two ? 6 : 20);
        if (rank == 3) from[1] = 1 + cases_below(&rng, 3);
        if (rank == 4) from[1 + cases_below(&rng, 2)] = 1 + cases_below(&rng, 3);
        for (int k = 0; k < rank; k++) to[k] = k == rank - 1 ? taken : from[order[rank][k]];
        const int64_t shape[2] = { index_rows, columns };
        trn_dma_transpose_args a;
        memset(&a, 0, sizeof a);
        a.oob_mode = cases_one_in(&rng, 2) ? TRN_OOB_SKIP : TRN_OOB_ERROR;
        a.dge_mode = cases_one_in(&rng, 2) ? TRN_DGE_SWDGE : TRN_DGE_UNKNOWN;
        a.dst = arena_view(0, TRN_BF16, rank, to, false);
        a.src = arena_view(1, TRN_BF16, rank, from, true);
        a.index = arena_view(2, TRN_U32, 2, shape, false);
        memcpy(want, arena[0], ROOM);
        for (int64_t g = 0; g < index_rows * columns; g++) { /* column by column */
            uint32_t row = (uint32_t)cases_below(&rng, (int)from[0]);
            if (g >= taken || (a.oob_mode == TRN_OOB_SKIP && cases_one_in(&rng, 4)))
                row = 0xfffffff0u; /* nobody looks */
            put(&a.index, g % index_rows * columns + g / index_rows, row);
            if (row >= from[0]) continue;
            for (int64_t i = 0, n = trn_tensor_elements(a.dst) / taken; i < n; i++) {
                int64_t rest = i, index[4] = { 0 }, at = row;
                for (int k = rank - 2; k >= 0; k--) {
                    index[order[rank][k]] = rest % to[k];
                    rest /= to[k];
                }
                for (int k = 1; k < rank; k++) at = at * from[k] + index[k];
                expect(&a.dst, i * taken + g, get(&a.src, at));
            }
        }
        check(call_dma_transpose, &a, sizeof a, TRN_TRAINIUM2);
    }
}

static trn_dma_transpose_args transpose(trn_format format, int64_t rows, int64_t columns)
{
    trn_dma_transpose_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(format, arena[0], columns, rows);
    a.src = trn_tensor_2d(format, arena[1], rows, columns);
    return a;
}

static void transposes_that_are_refused(void **unused)
{
    (void)unused;
    trn_dma_transpose_args a = transpose(TRN_BF16, 16, 20);
    a.generation = TRN_TRAINIUM1;
    refuse(call_dma_transpose, &a, TRN_EUNSUPPORTED, "dma_transpose is not available on Trainium1");
    a.generation = TRN_TRAINIUM2;
    a.dge_mode = TRN_DGE_HWDGE;
    assert_int_equal(trn_dma_transpose(&a), TRN_OK);
    a.dge_mode = TRN_DGE_NONE; /* descriptors that the host has written */
    assert_int_equal(trn_dma_transpose(&a), TRN_OK);
    a.dge_mode = TRN_DGE_SWDGE;
    refuse(call_dma_transpose, &a, TRN_EINVAL,
           "dge_mode is swdge; a transpose without an index takes unknown and hwdge, and none");
    a.dge_mode = TRN_DGE_UNKNOWN;
    a.oob_mode = TRN_OOB_SKIP;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "oob_mode is skip, but there is no index");
    a.oob_mode = TRN_OOB_ERROR;
    a.axes[1] = 1;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "axes are not those of rank 2: (1, 0), (2, 1, 0), (3, 1, 2, 0)");
    a.axes[1] = 0;
    a.dst.shape[0] = 19;
    refuse(call_dma_transpose, &a, TRN_ESHAPE, "dst has size 19 on axis 0 but src, transposed, has 20");
    a = transpose(TRN_I8, 16, 20);
    refuse(call_dma_transpose, &a, TRN_EFORMAT, "src is int8; a DMA transposes elements of 2 and 4 bytes");
    a = transpose(TRN_F32, 16, 20);
    a.src.format = TRN_I32;
    refuse(call_dma_transpose, &a, TRN_EFORMAT, "dst is float32 and src is int32; a transpose does not cast");
    a.src.data = arena[0];
    a.src.format = TRN_F32;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "dst overlaps src");
    a.src.rank = 1;
    refuse(call_dma_transpose, &a, TRN_ESHAPE, "src has rank 1; a DMA transposes 2 to 4 axes");

    a = transpose(TRN_BF16, 32, 20);
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has 32 rows; dge_mode hwdge transposes 16");
    a = transpose(TRN_BF16, 16, 129);
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has a last axis of 129; dge_mode hwdge transposes at most 128");
    a = transpose(TRN_F32, 16, 20);
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_transpose, &a, TRN_EFORMAT, "src is float32; dge_mode hwdge transposes elements of 2 bytes");
    const int64_t three[3] = { 3, 8, 20 }, four[3] = { 20, 8, 3 }, five[3] = { 4, 6, 20 }, six[3] = { 20, 6, 4 };
    a.src = trn_tensor_nd(TRN_BF16, arena[1], 3, three);
    a.dst = trn_tensor_nd(TRN_BF16, arena[0], 3, four);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has 3 rows; dge_mode hwdge transposes 1, 2, 4, 8 or 16");
    a.src = trn_tensor_nd(TRN_BF16, arena[1], 3, five);
    a.dst = trn_tensor_nd(TRN_BF16, arena[0], 3, six);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has 4 rows of 6; dge_mode hwdge needs a multiple of 16 in all");
    assert_int_equal(trn_dma_transpose(NULL), TRN_EINVAL);
}

static void gathered_transposes_that_are_refused(void **unused)
{
    static uint32_t index[256];
    (void)unused;
    memset(index, 0, sizeof index);
    trn_dma_transpose_args a = transpose(TRN_BF16, 16, 20);
    a.index = trn_tensor_2d(TRN_U32, index, 16, 1);
    index[7] = 16;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "index[7, 0] is 16 but src has 16 rows");
    index[7] = 15;
    assert_int_equal(trn_dma_transpose(&a), TRN_OK);
    a.dge_mode = TRN_DGE_HWDGE;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "dge_mode is hwdge; a transpose with an index takes unknown and swdge");
    a.dge_mode = TRN_DGE_SWDGE;
    a.index.format = TRN_I32;
    refuse(call_dma_transpose, &a, TRN_EFORMAT, "index is int32; it takes uint32");
    a.index = trn_tensor_1d(TRN_U32, index, 16);
    refuse(call_dma_transpose, &a, TRN_ESHAPE, "index has rank 1, not 2");
    a.index = trn_tensor_2d(TRN_U32, index, 24, 1);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "index has 24 rows, not a multiple of 16 up to 128");
    a.index = trn_tensor_2d(TRN_U32, index, 64, 2);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "index has 64 rows and 2 columns; more than one column needs 128 rows");
    a.index = trn_tensor_2d(TRN_U32, index, 16, 1);
    a.dst.shape[1] = 32;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "dst takes 32 rows: not a multiple of 16, or more than the 16 of index");
    a.dst.shape[1] = 8;
    refuse(call_dma_transpose, &a, TRN_EINVAL, "dst takes 8 rows: not a multiple of 16, or more than the 16 of index");
    a = transpose(TRN_BF16, 16, 129);
    a.index = trn_tensor_2d(TRN_U32, index, 16, 1);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has a last axis of 129; with an index it is at most 128");
    a = transpose(TRN_F32, 16, 20);
    a.index = trn_tensor_2d(TRN_U32, index, 16, 1);
    refuse(call_dma_transpose, &a, TRN_EFORMAT, "src is float32; with an index elements have 2 bytes");
    const int64_t from[4] = { 16, 2, 3, 5 }, to[4] = { 5, 2, 3, 16 };
    a.src = trn_tensor_nd(TRN_BF16, arena[1], 4, from);
    a.dst = trn_tensor_nd(TRN_BF16, arena[0], 4, to);
    refuse(call_dma_transpose, &a, TRN_EINVAL, "src has 2 by 3 inner axes; with an index one of them is 1");
}

/* ---- dma_compute ---- */

static void sums_are_in_order(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(300, 4000); round++) {
        static const int64_t cut[][2] = { { 6, 20 }, { 20, 6 }, { 120, 1 }, { 1, 120 } };
        static const float ones[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
        trn_tensor srcs[16];
        trn_numerics numerics;
        trn_dma_compute_args a;
        memset(&a, 0, sizeof a);
        const trn_rounding rounding = draw_rounding((trn_instruction *)&a, &numerics);
        const int64_t *shape = cut[cases_below(&rng, COUNT(cut))];
        a.dst = view(0, any_format(), shape[0], shape[1], false);
        a.count = 1 + cases_below(&rng, 16);
        for (int s = 0; s < a.count; s++) {
            shape = cut[cases_below(&rng, COUNT(cut))];
            srcs[s] = view(1 + s, any_format(), shape[0], shape[1], true);
            if (cases_one_in(&rng, 12)) srcs[s] = a.dst;
        }
        a.srcs = srcs;
        a.scales = cases_one_in(&rng, 2) ? ones : NULL;
        a.reduce_op = cases_one_in(&rng, 2) ? TRN_ALU_ADD : TRN_ALU_BYPASS;
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < 120; i++) {
            float sum = number(&srcs[0], get(&srcs[0], i));
            if (sum != sum) sum = cases_float_of(0x7fc00000u);
            for (int s = 1; s < a.count; s++) sum = sum_of(sum, number(&srcs[s], get(&srcs[s], i)));
            expect(&a.dst, i, narrowed(&a.dst, sum, rounding, (uint64_t)i));
        }
        check(call_dma_compute, &a, sizeof a, TRN_TRAINIUM1);
    }
}

/* 1 + 2^-24 + 2^-24: twice nothing in this order, once something in the other. */
static void order_of_a_sum(void **unused)
{
    float one = 1, half = 0x1p-24f, r = 0;
    trn_tensor srcs[3];
    (void)unused;
    trn_dma_compute_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_1d(TRN_F32, &r, 1);
    a.srcs = srcs;
    a.count = 3;
    srcs[0] = trn_tensor_1d(TRN_F32, &one, 1);
    srcs[1] = srcs[2] = trn_tensor_1d(TRN_F32, &half, 1);
    assert_int_equal(trn_dma_compute(&a), TRN_OK);
    assert_true(r == 1);
    srcs[2] = srcs[0];
    srcs[0] = srcs[1];
    assert_int_equal(trn_dma_compute(&a), TRN_OK);
    assert_true(r == 0x1.000002p0f);
}

static void rows_are_modified(void **unused)
{
    (void)unused;
    for (int round = 0; round < cases_rounds(400, 5000); round++) {
        const int64_t rows = 1 + cases_below(&rng, 20), count = 1 + cases_below(&rng, 20),
                      elements = 1 + cases_below(&rng, 20);
        trn_numerics numerics;
        trn_tensor srcs[2];
        trn_dma_compute_args a;
        memset(&a, 0, sizeof a);
        const trn_rounding rounding = draw_rounding((trn_instruction *)&a, &numerics);
        a.scatter = cases_one_in(&rng, 2);
        a.oob_mode = cases_one_in(&rng, 2) ? TRN_OOB_SKIP : TRN_OOB_ERROR;
        a.dst = view(0, any_format(), a.scatter ? rows : count, elements, false);
        const trn_tensor data = view(1, any_format(), a.scatter ? count : rows, elements, true);
        const int own = cases_below(&rng, 2);
        srcs[own] = a.dst;
        srcs[1 - own] = data;
        a.srcs = srcs;
        a.count = 2;
        a.index = view(2, TRN_U32, count, 1, false);
        memcpy(want, arena[0], ROOM);
        for (int64_t i = 0; i < count; i++) {
            const uint32_t row = (uint32_t)cases_below(&rng, (int)(a.oob_mode == TRN_OOB_SKIP ? rows + 3 : rows));
            put(&a.index, i, row);
            if (row >= rows) continue;
            for (int64_t f = 0; f < elements; f++) {
                const int64_t d = (a.scatter ? (int64_t)row : i) * elements + f,
                              s = (a.scatter ? i : (int64_t)row) * elements + f;
                expect(&a.dst, d, carried(&a.dst, d, expected(&a.dst, d), &data, get(&data, s), true, rounding));
            }
        }
        check(call_dma_compute, &a, sizeof a, TRN_TRAINIUM1);
    }
}

static void sums_that_are_refused(void **unused)
{
    static uint32_t index[4] = { 0, 1, 9, 3 };
    static const float scales[2] = { 1, 0.5f };
    trn_tensor srcs[2];
    (void)unused;
    trn_dma_compute_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, arena[0], 4, 6);
    refuse(call_dma_compute, &a, TRN_EINVAL, "count is 0 and srcs is null; dma_compute takes 1 to 16 sources");
    a.srcs = srcs;
    a.count = 17;
    refuse(call_dma_compute, &a, TRN_EINVAL, "count is 17 and srcs is there; dma_compute takes 1 to 16 sources");
    a.count = 2;
    srcs[0] = srcs[1] = trn_tensor_2d(TRN_F32, arena[1], 4, 6);
    a.scales = scales;
    refuse(call_dma_compute, &a, TRN_EINVAL, "scales[1] is 0.5; DMA engines scale by 1 only");
    a.scales = NULL;
    a.reduce_op = TRN_ALU_MAXIMUM;
    refuse(call_dma_compute, &a, TRN_EINVAL, "reduce_op is maximum; DMA engines only add");
    a.reduce_op = TRN_ALU_ADD;
    a.scatter = true;
    refuse(call_dma_compute, &a, TRN_EINVAL, "scatter is set, but there is no index");
    a.scatter = false;
    for (int i = 0; i < 2; i++) { /* each of them is looked at */
        char sentence[64];
        srcs[i].rank = 0;
        snprintf(sentence, sizeof sentence, "srcs[%d] is missing", i);
        refuse(call_dma_compute, &a, TRN_ESHAPE, sentence);
        srcs[i] = trn_tensor_2d(TRN_F32, arena[1], 5, 6);
        snprintf(sentence, sizeof sentence, "srcs[%d] has 30 elements but dst has 24", i);
        refuse(call_dma_compute, &a, TRN_ESHAPE, sentence);
        srcs[i] = trn_tensor_2d(TRN_F32, arena[0] + 4, 4, 6);
        snprintf(sentence, sizeof sentence, "dst overlaps srcs[%d]", i);
        refuse(call_dma_compute, &a, TRN_EINVAL, sentence);
        srcs[i] = trn_tensor_2d(TRN_F32, arena[1], 4, 6);
    }
    a.oob_mode = (trn_oob_mode)9;
    refuse(call_dma_compute, &a, TRN_EINVAL, "oob_mode is 9, not a mode");
    a.oob_mode = TRN_OOB_ERROR;
    a.engine = TRN_ENGINE_GPSIMD;
    refuse(call_dma_compute, &a, TRN_EINVAL, "engine is gpsimd, which does not execute dma_compute");
    a.engine = TRN_ENGINE_UNKNOWN;
    a.index = trn_tensor_1d(TRN_U32, index, 4);
    refuse(call_dma_compute, &a, TRN_EINVAL, "neither of the 2 sources is dst; with an index one of them is");
    srcs[0] = a.dst;
    refuse(call_dma_compute, &a, TRN_EINVAL, "index[2] is 9 but srcs[1] has 4 rows");
    a.scatter = true;
    refuse(call_dma_compute, &a, TRN_EINVAL, "index[2] is 9 but dst has 4 rows");
    srcs[1] = a.dst;
    refuse(call_dma_compute, &a, TRN_EINVAL, "dst overlaps srcs[1]");
    srcs[1] = trn_tensor_2d(TRN_F32, arena[1], 4, 5);
    refuse(call_dma_compute, &a, TRN_ESHAPE, "a row of srcs[1] has 5 elements but one of dst has 6");
    a.count = 1;
    refuse(call_dma_compute, &a, TRN_EINVAL, "count is 1; with an index there are 2 sources");
    assert_int_equal(trn_dma_compute(NULL), TRN_EINVAL);
}

static void empty_views(void **unused)
{
    uint32_t index[1] = { 0 };
    (void)unused;
    trn_dma_copy_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_2d(TRN_F32, NULL, 0, 4);
    a.src = trn_tensor_2d(TRN_BF16, NULL, 7, 0);
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.src_index = trn_tensor_1d(TRN_U32, index, 0);
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    a.src_index.rank = 0;
    a.dst_index = trn_tensor_1d(TRN_U32, NULL, 0);
    a.src = trn_tensor_2d(TRN_BF16, NULL, 0, 4);
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    trn_dma_transpose_args t = transpose(TRN_BF16, 0, 20);
    assert_int_equal(trn_dma_transpose(&t), TRN_OK);
    trn_tensor srcs[1] = { trn_tensor_2d(TRN_F32, NULL, 3, 0) };
    trn_dma_compute_args c;
    memset(&c, 0, sizeof c);
    c.dst = a.dst;
    c.srcs = srcs;
    c.count = 1;
    assert_int_equal(trn_dma_compute(&c), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_row_major),
        cmocka_unit_test(rows_by_index),
        cmocka_unit_test(large_copies),
        cmocka_unit_test(large_scatters),
        cmocka_unit_test(published_casts),
        cmocka_unit_test(copies_that_are_refused),
        cmocka_unit_test(transposes_permute),
        cmocka_unit_test(gathered_rows_are_transposed),
        cmocka_unit_test(transposes_that_are_refused),
        cmocka_unit_test(gathered_transposes_that_are_refused),
        cmocka_unit_test(sums_are_in_order),
        cmocka_unit_test(order_of_a_sum),
        cmocka_unit_test(rows_are_modified),
        cmocka_unit_test(sums_that_are_refused),
        cmocka_unit_test(empty_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
