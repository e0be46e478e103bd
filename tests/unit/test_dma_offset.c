/* test_dma_offset.c - transfers that begin where a number in a tile says: values, bounds, promises, and a core's view.
 * SPDX-License-Identifier: MIT
 *
 * The second version knows every element of a tensor by its address: a moved view is in bounds when all of its
 * elements are among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_core.h"
#include "twin/cases.h"

enum { ROOM = 4096, MOST = 512 };

static uint64_t rng = 17;
static uint16_t table[ROOM], other[ROOM], want[ROOM];

/* Where the elements lie, in row-major order; returns how many there are. */
static int places(const trn_tensor *t, const uint16_t *base, int64_t ahead, int64_t *at)
{
    int n = 1;
    for (int i = 0; i < t->rank; i++) n *= (int)t->shape[i];
    for (int e = 0; e < n; e++) {
        int rest = e;
        int64_t place = (const uint16_t *)t->data - base + ahead;
        for (int i = t->rank - 1; i >= 0; i--) {
            place += rest % (int)t->shape[i] * t->stride[i];
            rest /= (int)t->shape[i];
        }
        at[e] = place;
    }
    return n;
}

/* A tensor of up to three axes, packed or with gaps as wide as the rows before them, so that what runs past an axis
 * falls into a gap and never by accident on another row; strides written out. */
static trn_tensor any_tensor(void)
{
    trn_tensor t = trn_tensor_nd(TRN_U16, table + 200, 1 + cases_below(&rng, 3), (const int64_t[3]){ 1, 1, 1 });
    int64_t step = 1;
    for (int i = t.rank - 1; i >= 0; i--) {
        t.shape[i] = 1 + cases_below(&rng, 7);
        t.stride[i] = step;
        step *= t.shape[i];
        if (cases_one_in(&rng, 3)) step *= 2;
    }
    return t;
}

/* Ranges of its axes, from the beginning or not. */
static trn_tensor any_view(const trn_tensor *of)
{
    trn_tensor v = *of;
    for (int i = 0; i < v.rank; i++) {
        const int64_t count = 1 + cases_below(&rng, (int)v.shape[i]);
        v = trn_tensor_slice(v, i, cases_below(&rng, (int)(v.shape[i] - count + 1)), count);
    }
    return v;
}

static bool in_bounds(const trn_tensor *of, const trn_tensor *view, int dim, int64_t value)
{
    static int64_t all[MOST], some[MOST];
    if (value < 0 || value >= of->shape[dim]) return false;
    const int n = places(of, table, 0, all), m = places(view, table, value * of->stride[dim], some);
    for (int i = 0; i < m; i++) {
        bool found = false;
        for (int k = 0; k < n && !found; k++) found = all[k] == some[i];
        if (!found) return false;
    }
    return true;
}

static void elements_move_where_the_number_says(void **unused)
{
    static int64_t at[MOST];
    int refused = 0, moved = 0, skipped = 0;
    (void)unused;
    for (int round = 0; round < cases_rounds(4000, 40000); round++) {
        const bool writes = cases_one_in(&rng, 2), skips = cases_one_in(&rng, 2), is_signed = cases_one_in(&rng, 2);
        for (int i = 0; i < ROOM; i++) table[i] = (uint16_t)cases_u32(&rng);
        for (int i = 0; i < ROOM; i++) other[i] = (uint16_t)cases_u32(&rng);
        trn_tensor of = any_tensor(), view = any_view(&of);
        trn_tensor plain = trn_tensor_1d(TRN_U16, other, trn_tensor_elements(view));
        const int dim = cases_below(&rng, of.rank);
        int32_t value = cases_below(&rng, (int)of.shape[dim] + 1) - (is_signed && cases_one_in(&rng, 4));
        if (cases_one_in(&rng, 20)) value = INT32_MIN;
        const int64_t number = is_signed ? (int64_t)value : (int64_t)(uint32_t)value;
        const bool good = in_bounds(&of, &view, dim, number);
        const trn_dma_offset offset = { trn_tensor_2d(is_signed ? TRN_I32 : TRN_U32, &value, 1, 1), of, dim };
        trn_dma_copy_args a = { .oob_mode = skips ? TRN_OOB_SKIP : TRN_OOB_ERROR };
        a.dst = writes ? view : plain;
        a.src = writes ? plain : view;
        *(writes ? &a.dst_offset : &a.src_offset) = offset;
        memcpy(want, writes ? table : other, sizeof want);
        const int n = good ? places(&view, table, number * of.stride[dim], at) : 0;
        for (int i = 0; i < n; i++) *(writes ? &want[at[i]] : &want[i]) = writes ? other[i] : table[at[i]];
        assert_int_equal(trn_dma_copy(&a), good || skips ? TRN_OK : TRN_EINVAL);
        assert_memory_equal(want, writes ? table : other, sizeof want);
        moved += good;
        skipped += !good && skips;
        refused += !good && !skips;
    }
    assert_true(moved > 300 && skipped > 300 && refused > 300);
}

/* ---- refusals ---- */

static void refuse(trn_dma_copy_args *a, trn_status status, const char *sentence)
{
    trn_error error = { TRN_OK, "" };
    a->error = &error;
    memcpy(want, other, sizeof want);
    assert_int_equal(trn_dma_copy(a), status);
    assert_string_equal(error.text, sentence);
    assert_memory_equal(want, other, sizeof want);
}

static void offsets_that_are_refused(void **unused)
{
    uint32_t value[2] = { 4, 0 };
    (void)unused;
    const trn_tensor of = trn_tensor_2d(TRN_U16, table, 4, 6);
    trn_dma_copy_args a = { .dst = trn_tensor_2d(TRN_U16, other, 2, 6), .src = trn_tensor_slice(of, 0, 0, 2) };
    a.src_offset.value = trn_tensor_1d(TRN_U32, value, 2);
    refuse(&a, TRN_ESHAPE, "src_offset.value has 2 elements; it is one number");
    a.src_offset.value = trn_tensor_1d(TRN_U32, value, 0);
    refuse(&a, TRN_ESHAPE, "src_offset.value has 0 elements; it is one number");
    a.src_offset.value = trn_tensor_1d(TRN_F32, value, 1);
    refuse(&a, TRN_EFORMAT, "src_offset.value is float32; it takes uint32 and int32");
    a.src_offset.value = trn_tensor_1d(TRN_U32, value, 1);
    refuse(&a, TRN_EINVAL, "src_offset.of is missing: the tensor that src is cut from");
    a.src_offset.of = trn_tensor_2d(TRN_U32, table, 2, 6);
    refuse(&a, TRN_EFORMAT, "src_offset.of is uint32 and src is uint16; their elements have one size");
    a.src_offset.of = trn_tensor_2d(TRN_U16, table + 6, 4, 6);
    refuse(&a, TRN_EINVAL, "src is not cut from src_offset.of");
    a.src_offset.of = of;
    a.src_offset.dim = 2;
    refuse(&a, TRN_EINVAL, "src_offset.dim is 2; src_offset.of has axes 0 to 1");
    a.src_offset.dim = 0;
    refuse(&a, TRN_EINVAL, "src_offset is 4 but axis 0 of src_offset.of has 4");
    value[0] = 0xfffffffbu;
    refuse(&a, TRN_EINVAL, "src_offset is 4294967291 but axis 0 of src_offset.of has 4");
    a.src_offset.value.format = TRN_I32;
    refuse(&a, TRN_EINVAL, "src_offset is -5 but axis 0 of src_offset.of has 4");
    value[0] = 3;
    refuse(&a, TRN_EINVAL, "src would leave src_offset.of: it begins 3 of axis 0 further on");
    value[0] = 2;
    a.dge_mode = TRN_DGE_NONE;
    refuse(&a, TRN_EINVAL, "dge_mode is none, which takes no offsets");
    a.dge_mode = TRN_DGE_UNKNOWN;
    a.engine = TRN_ENGINE_SYNC;
    refuse(&a, TRN_EINVAL, "engine is sync, which does not execute dma_copy");
    a.src_index = trn_tensor_1d(TRN_U32, value, 2);
    a.engine = TRN_ENGINE_UNKNOWN;
    refuse(&a, TRN_EINVAL, "src has an index and an offset; one of them may be given");
    a.src_index.rank = 0;
    a.dst = trn_tensor_2d(TRN_U16, value, 1, 2);
    a.src = trn_tensor_slice(trn_tensor_slice(of, 0, 0, 1), 1, 0, 2);
    refuse(&a, TRN_EINVAL, "dst overlaps src_offset.value");
    a.dst = trn_tensor_2d(TRN_U16, other, 1, 2);
    trn_dma_copy_args odd = a; /* a view that is none is told before it is placed */
    odd.dst.shape[0] = -1;
    odd.dst_offset = a.src_offset;
    refuse(&odd, TRN_ESHAPE, "dst has negative size -1 on axis 0");
    odd.dst_offset.value.rank = 0;
    odd.src_offset.dim = 2; /* and before what is wrong with the other side */
    refuse(&odd, TRN_ESHAPE, "dst has negative size -1 on axis 0");
    a.dge_mode = TRN_DGE_HWDGE;
    a.engine = TRN_ENGINE_SYNC;
    assert_int_equal(trn_dma_copy(&a), TRN_OK);
    assert_int_equal(other[0], table[12]);
}

static void a_transpose_has_a_priority(void **unused)
{
    trn_error error = { TRN_OK, "" };
    (void)unused;
    trn_dma_transpose_args a = { .generation = TRN_TRAINIUM3,
                                 .dst = trn_tensor_2d(TRN_U16, other, 2, 3),
                                 .src = trn_tensor_2d(TRN_U16, table, 3, 2),
                                 .priority = 3,
                                 .error = &error };
    assert_int_equal(trn_dma_transpose(&a), TRN_OK);
    a.generation = TRN_TRAINIUM2;
    assert_int_equal(trn_dma_transpose(&a), TRN_EUNSUPPORTED);
    assert_string_equal(error.text, "priority 3: Trainium2 has one class of DMA");
    a.priority = 4;
    assert_int_equal(trn_dma_transpose(&a), TRN_EINVAL);
}

/* Rows beyond one window of the search, in any order, some of them skipped. */
static void a_promise_of_unique_rows_is_checked(void **unused)
{
    enum { ROWS = 100000, COUNT = 40 };
    float *const dst = (float *)calloc(ROWS, sizeof *dst);
    float data[COUNT];
    uint32_t row[COUNT];
    (void)unused;
    assert_non_null(dst);
    for (int i = 0; i < COUNT; i++) data[i] = 1;
    for (int round = 0; round < 300; round++) {
        trn_error error = { TRN_OK, "" };
        for (int i = 0; i < COUNT; i++) row[i] = (uint32_t)cases_below(&rng, cases_one_in(&rng, 2) ? ROWS : ROWS + 900);
        if (cases_one_in(&rng, 2)) row[1 + cases_below(&rng, COUNT - 1)] = row[0];
        bool twice = false;
        for (int i = 1; i < COUNT; i++)
            for (int k = 0; k < i; k++) twice = twice || (row[i] == row[k] && row[i] < ROWS);
        trn_tensor srcs[2] = { trn_tensor_2d(TRN_F32, dst, ROWS, 1), trn_tensor_2d(TRN_F32, data, COUNT, 1) };
        trn_dma_compute_args a = { .dst = srcs[0], .srcs = srcs, .count = 2, .scatter = true, .error = &error };
        a.index = trn_tensor_1d(TRN_U32, row, COUNT);
        a.oob_mode = TRN_OOB_SKIP;
        a.unique_indices = true;
        memset(dst, 0, ROWS * sizeof *dst);
        assert_int_equal(trn_dma_compute(&a), twice ? TRN_EINVAL : TRN_OK);
        if (twice) assert_non_null(strstr(error.text, ", as one before it; unique_indices is set"));
        for (int i = 0; i < COUNT; i++)
            if (row[i] < ROWS) assert_true(dst[row[i]] == (twice ? 0.0f : 1.0f));
        a.unique_indices = false;
        assert_int_equal(trn_dma_compute(&a), TRN_OK);
    }
    free(dst);
}

/* ---- on a core ---- */

static trn_core core;

static void begin(trn_generation generation)
{
    const trn_core_args args = { .generation = generation };
    trn_core_end(&core);
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
}

static void expect(const char *sentence)
{
    const char *text;
    trn_core_status(&core, &text);
    assert_string_equal(text, sentence);
}

static float hbm[16 * 8];

/* Three rows of HBM, from the one on that a tile names, come to a tile. */
static trn_status load(trn_tensor dst, trn_tensor value, trn_dge_mode mode, trn_oob_mode oob)
{
    const trn_tensor of = trn_core_hbm(&core, "table", trn_tensor_2d(TRN_F32, hbm, 16, 8));
    const trn_dma_copy_args a = { .dst = dst,
                                  .src = trn_tensor_slice(of, 0, 0, 3),
                                  .dge_mode = mode,
                                  .oob_mode = oob,
                                  .src_offset = { value, of, 0 } };
    return trn_core_dma_copy(&core, &a);
}

static trn_tensor number(int32_t value)
{
    const trn_tensor t = trn_core_sbuf(&core, "at", TRN_I32, 1, 1);
    const trn_memset_args set = { .dst = t, .value = (float)value };
    trn_core_memset(&core, &set);
    return t;
}

static void a_core_reads_the_offset_and_waits_for_it(void **unused)
{
    (void)unused;
    for (int i = 0; i < 128; i++) hbm[i] = (float)i;
    begin(TRN_TRAINIUM2);
    trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 3, 8);
    assert_int_equal(load(x, trn_core_sbuf(&core, "at", TRN_I32, 1, 1), TRN_DGE_UNKNOWN, TRN_OOB_ERROR), TRN_EINVAL);
    expect("instruction 0, dma_copy: src_offset reads partition 0, element 0 of 'at', which nothing has written");
    begin(TRN_TRAINIUM2);
    x = trn_core_sbuf(&core, "x", TRN_F32, 3, 8);
    const trn_tensor at = number(11);
    const double ready_s = core.time_s;
    assert_true(ready_s > 0);
    assert_int_equal(load(x, at, TRN_DGE_UNKNOWN, TRN_OOB_ERROR), TRN_OK);
    for (int p = 0; p < 3; p++)
        for (int f = 0; f < 8; f++) assert_true(((float *)x.data)[p * x.stride[0] + f] == (float)((11 + p) * 8 + f));
    trn_core_report r;
    trn_core_report_of(&core, &r);
    const double moves_s = r.engine[TRN_ENGINE_DMA].busy_s; /* after the number, 600 ns of a generator and 1.3 us */
    assert_true(fabs(r.time_s - ready_s - 600e-9 - 1300e-9 - moves_s) < 1e-15);
    assert_int_equal(load(x, number(14), TRN_DGE_UNKNOWN, TRN_OOB_ERROR), TRN_EINVAL);
    expect("instruction 3, dma_copy: src would leave src_offset.of: it begins 14 of axis 0 further on");
    trn_core_end(&core);
}

static void software_makes_descriptors_where_there_is_no_hardware(void **unused)
{
    (void)unused;
    begin(TRN_TRAINIUM1);
    assert_int_equal(load(trn_core_sbuf(&core, "x", TRN_F32, 3, 8), number(2), TRN_DGE_UNKNOWN, TRN_OOB_ERROR), TRN_OK);
    trn_core_report r;
    trn_core_report_of(&core, &r);
    assert_true(fabs(r.engine[TRN_ENGINE_GPSIMD].busy_s - 600e-9) < 1e-15);
    trn_core_end(&core);
}

/* Into HBM, which takes no element that nothing has written. */
static trn_status stored(trn_tensor x)
{
    static float out[64];
    const trn_tensor to = trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, x.shape[0], x.shape[1]));
    return trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = to, .src = x });
}

static void a_skipped_transfer_writes_nothing(void **unused)
{
    (void)unused;
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 3, 8), at = number(-5);
    const double before_s = core.time_s;
    assert_int_equal(load(x, at, TRN_DGE_UNKNOWN, TRN_OOB_SKIP), TRN_OK);
    assert_true(core.time_s == before_s);
    assert_int_equal(stored(x), TRN_EINVAL);
    expect("instruction 2, dma_copy: src reads partition 0, element 0 of 'x', which nothing has written");
    trn_core_end(&core);
}

/* A write through an offset is a write of those columns alone. */
static void a_core_knows_what_was_written(void **unused)
{
    (void)unused;
    for (int ask = 0; ask < 2; ask++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 4, 8), at = number(5);
        const trn_tensor in = trn_core_hbm(&core, "in", trn_tensor_2d(TRN_F32, hbm, 4, 2));
        const trn_dma_copy_args store = { .dst = trn_tensor_slice(x, 1, 0, 2), .src = in, .dst_offset = { at, x, 1 } };
        assert_int_equal(trn_core_dma_copy(&core, &store), TRN_OK);
        assert_int_equal(stored(trn_tensor_slice(x, 1, ask ? 4 : 5, 2)), ask ? TRN_EINVAL : TRN_OK);
        expect(ask ? "instruction 2, dma_copy: src reads partition 0, element 4 of 'x', which nothing has written"
                   : "ok");
    }
    trn_core_end(&core);
}

static void an_offset_lies_in_sbuf(void **unused)
{
    static int32_t at = 1;
    (void)unused;
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 3, 8);
    assert_int_equal(
        load(x, trn_core_hbm(&core, "at", trn_tensor_2d(TRN_I32, &at, 1, 1)), TRN_DGE_UNKNOWN, TRN_OOB_ERROR),
        TRN_ELIMIT);
    expect("instruction 0, dma_copy: src_offset.value 'at' lies in HBM; it has to be in SBUF");
    trn_core_end(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_move_where_the_number_says),
        cmocka_unit_test(offsets_that_are_refused),
        cmocka_unit_test(a_transpose_has_a_priority),
        cmocka_unit_test(a_promise_of_unique_rows_is_checked),
        cmocka_unit_test(a_core_reads_the_offset_and_waits_for_it),
        cmocka_unit_test(software_makes_descriptors_where_there_is_no_hardware),
        cmocka_unit_test(a_skipped_transfer_writes_nothing),
        cmocka_unit_test(a_core_knows_what_was_written),
        cmocka_unit_test(an_offset_lies_in_sbuf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
