/* core_run/unwritten.c - reads of what nothing has written: which are refused, which are none, and where they arrive.
 * SPDX-License-Identifier: MIT
 */
#include "unit/core_run/groups.h"
#include "unit/core_steps.h"

/* What nothing has written may be copied, and not summed up. */
static void sum(trn_tensor data)
{
    const trn_tensor_reduce_args args = { .dst = tile("sum", data.shape[0], 1), .data = data, .op = TRN_ALU_ADD };
    trn_core_tensor_reduce(&core, &args);
}

static void reads_of_what_nothing_has_written_are_told(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor x = tile("x", 128, 64), y;
    set(trn_tensor_slice(x, 1, 0, 32), 1);
    set(trn_tensor_slice(trn_tensor_slice(x, 0, 0, 32), 1, 32, 32), 2);
    sum(trn_tensor_slice(x, 1, 0, 32)); /* no false alarm */
    fine();
    store(x, NULL);
    expect("instruction 3, dma_copy: src reads partition 32, element 32 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* even elements only, then odd ones */
    x = tile("x", 128, 64);
    trn_tensor pairs = trn_tensor_split(x, 1, 2);
    set(trn_tensor_slice(pairs, 2, 0, 1), 1);
    sum(trn_tensor_slice(pairs, 2, 0, 1));
    fine();
    store(trn_tensor_slice(pairs, 2, 1, 1), NULL);
    expect("instruction 2, dma_copy: src reads partition 0, element 1 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* what the caller writes himself */
    x = tile("x", 2, 2);
    ((float *)x.data)[0] = 1;
    assert_int_equal(trn_core_written(&core, trn_tensor_slice(trn_tensor_slice(x, 0, 0, 1), 1, 0, 1)), TRN_OK);
    store(trn_tensor_slice(x, 1, 0, 1), NULL);
    expect("instruction 0, dma_copy: src reads partition 1, element 0 of 'x', which nothing has written");

    begin(TRN_TRAINIUM2); /* a predicate writes where it holds */
    x = tile("x", 1, 4);
    y = tile("y", 1, 4);
    set(y, 0);
    trn_tensor holds = trn_core_sbuf(&core, "holds", TRN_U8, 1, 4);
    set(holds, 0);
    set(trn_tensor_slice(holds, 1, 1, 2), 1);
    const trn_tensor_copy_predicated_args where = { .dst = x, .src = y, .predicate = holds };
    trn_core_tensor_copy_predicated(&core, &where);
    sum(trn_tensor_slice(x, 1, 1, 2));
    fine();
    store(x, NULL);
    expect("instruction 5, dma_copy: src reads partition 0, element 0 of 'x', which nothing has written");
}

/* A kernel that transposes a tile it has written in part, and leaves the rest alone afterwards. */
static void a_tile_may_hold_anything(void **state)
{
    (void)state;
    const trn_core_tile_args loose = {
        .name = "loose", .format = TRN_F32, .rank = 2, .shape = { 32, 32 }, .no_poison = true
    };
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_tile(&core, &loose), y = tile("y", 32, 32);
    set(trn_tensor_slice(x, 0, 0, 8), 1);
    const trn_vector_transpose_args turn = { .dst = y, .data = x };
    trn_core_vector_transpose(&core, &turn);
    copy(x, y, TRN_ENGINE_UNKNOWN);
    fine();
    assert_true(((float *)y.data)[7] == 1.0f);
    store(tile("z", 32, 32), NULL); /* others are looked at as before */
    expect("instruction 3, dma_copy: src reads partition 0, element 0 of 'z', which nothing has written");

    begin(TRN_TRAINIUM2); /* and what a matmul adds to */
    trn_core_tile_args sums = loose;
    sums.space = TRN_SPACE_PSUM;
    const trn_tensor w = tile("w", 32, 32), acc = trn_core_tile(&core, &sums);
    set(w, 1);
    const trn_nc_matmul_args add = { .dst = acc, .stationary = w, .moving = w, .accumulate = true };
    trn_core_nc_matmul(&core, &add);
    fine();
}

static void scattered_rows_are_written_and_others_are_not(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    static float in[2 * 8], out[3 * 8];
    static uint32_t rows[2] = { 5, 3 };
    trn_tensor x = tile("x", 8, 8), y = tile("y", 8, 8), index = trn_core_sbuf(&core, "rows", TRN_U32, 2, 1);
    move(index, trn_core_hbm(&core, "rows", trn_tensor_2d(TRN_U32, rows, 2, 1)));
    const trn_dma_copy_args scatter = { .dst = x,
                                        .src = trn_core_hbm(&core, "in", trn_tensor_2d(TRN_F32, in, 2, 8)),
                                        .dst_index = index };
    trn_core_dma_copy(&core, &scatter);
    fine();
    move(trn_tensor_slice(y, 0, 3, 1), trn_tensor_slice(x, 0, 3, 1));
    move(trn_tensor_slice(y, 0, 5, 1), trn_tensor_slice(x, 0, 5, 1));
    fine();
    move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, 3, 8)), trn_tensor_slice(x, 0, 3, 3));
    expect("instruction 4, dma_copy: src reads partition 4, element 0 of 'x', which nothing has written");
}

/* nonzero_with_count writes partitions 0, 16, ... alone, and reads no others. */
static void the_first_of_16_partitions_are_counted(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 32, 4), n = trn_core_sbuf(&core, "n", TRN_I32, 32, 5);
    const trn_tensor y = trn_core_sbuf(&core, "y", TRN_I32, 32, 5);
    set(trn_tensor_slice(x, 0, 0, 1), 1);
    const trn_nonzero_with_count_args count = { .dst = n, .src = x, .padding_val = -1 };
    assert_int_equal(trn_core_nonzero_with_count(&core, &count), TRN_OK);
    copy(trn_tensor_slice(y, 0, 0, 1), trn_tensor_slice(n, 0, 0, 1), TRN_ENGINE_VECTOR);
    fine();
    static int32_t out[32 * 5];
    move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_I32, out, 32, 5)), n);
    expect("instruction 3, dma_copy: src reads partition 1, element 0 of 'n', which nothing has written");
}

/* A product with is_transpose turns what nothing has written; another one may not read it. */
static void a_transposing_product_carries_what_is_unwritten(void **state)
{
    (void)state;
    for (int turns = 1; turns >= 0; turns--) {
        begin(TRN_TRAINIUM2);
        const trn_tensor x = tile("x", 32, 32), one = tile("one", 32, 32), y = tile("y", 32, 32);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, 32, 32);
        static float identity[32 * 32];
        for (int i = 0; i < 32; i++) identity[i * 33] = 1;
        move(one, trn_core_hbm(&core, "identity", trn_tensor_2d(TRN_F32, identity, 32, 32)));
        set(trn_tensor_slice(x, 1, 0, 8), 3);
        const trn_nc_matmul_args a = { .dst = acc, .stationary = x, .moving = one, .is_transpose = turns != 0 };
        trn_core_nc_matmul(&core, &a);
        if (!turns) { /* a product's sums are of all rows: each has an element that nothing has written */
            copy(y, acc, TRN_ENGINE_VECTOR);
            fine();
            assert_int_equal(store(y, NULL), TRN_EINVAL);
            continue;
        }
        copy(trn_tensor_slice(y, 0, 0, 8), trn_tensor_slice(acc, 0, 0, 8), TRN_ENGINE_VECTOR);
        fine();
        static float out[32 * 32];
        move(trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, 8, 32)), trn_tensor_slice(y, 0, 0, 8));
        fine();
        assert_true(out[0] == 3 && out[255] == 3);
        copy(y, acc, TRN_ENGINE_VECTOR);
        fine();
        move(trn_core_hbm(&core, "more", trn_tensor_2d(TRN_F32, identity, 32, 32)), y);
        const char *text;
        assert_int_not_equal(trn_core_status(&core, &text), TRN_OK);
        assert_non_null(strstr(text, "dma_copy: src reads partition 8, element 0 of 'y', which nothing has written"));
    }
}

static void a_matmul_adds_to_what_a_matmul_wrote(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM2; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        trn_tensor x = tile("x", 128, 64), acc = trn_core_psum(&core, "acc", TRN_F32, 64, 64);
        trn_nc_matmul_args add = { .dst = acc, .stationary = x, .moving = x };
        set(x, 1);
        trn_core_nc_matmul(&core, &add);
        add.accumulate = true;
        trn_core_nc_matmul(&core, &add);
        fine();
        assert_true(((float *)acc.data)[0] == 256.0f);
        set(trn_tensor_slice(trn_tensor_slice(acc, 0, 32, 32), 1, 7, 2), 0);
        trn_core_nc_matmul(&core, &add);
        if (g == TRN_TRAINIUM3)
            fine();
        else
            expect("instruction 4, nc_matmul: dst adds to partition 32, element 7 of 'acc', which no matmul has "
                   "written: begin "
                   "with one that overwrites");
    }
    begin(TRN_TRAINIUM3);
    trn_tensor x = tile("x", 128, 64), acc = trn_core_psum(&core, "acc", TRN_F32, 64, 64);
    set(x, 1);
    const trn_nc_matmul_args first = { .dst = acc, .stationary = x, .moving = x, .accumulate = true };
    trn_core_nc_matmul(&core, &first);
    const trn_tensor y = tile("y", 64, 64);
    copy(y, acc, TRN_ENGINE_VECTOR);
    fine();
    assert_int_equal(store(y, NULL), TRN_EINVAL); /* it added to what nothing had written */
}

/* So do those whose elements nothing has written; and what another engine carries there was written by no matmul. */
static void a_matmul_adds_to_what_a_matmul_carried(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    const trn_tensor x = tile("x", 32, 32), acc = trn_core_psum(&core, "acc", TRN_F32, 32, 32);
    trn_nc_matmul_args add = { .dst = acc, .stationary = x, .moving = x };
    set(trn_tensor_slice(x, 1, 0, 8), 1);
    trn_core_nc_matmul(&core, &add);
    add.accumulate = true;
    trn_core_nc_matmul(&core, &add);
    fine();
    copy(acc, x, TRN_ENGINE_VECTOR);
    fine();
    trn_core_nc_matmul(&core, &add);
    expect("instruction 4, nc_matmul: dst adds to partition 0, element 0 of 'acc', which no matmul has written: begin "
           "with one that overwrites");
}

int core_run_unwritten(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_of_what_nothing_has_written_are_told),
        cmocka_unit_test(a_tile_may_hold_anything),
        cmocka_unit_test(scattered_rows_are_written_and_others_are_not),
        cmocka_unit_test(the_first_of_16_partitions_are_counted),
        cmocka_unit_test(a_transposing_product_carries_what_is_unwritten),
        cmocka_unit_test(a_matmul_adds_to_what_a_matmul_wrote),
        cmocka_unit_test(a_matmul_adds_to_what_a_matmul_carried),
    };
    return cmocka_run_group_tests_name("core_run_unwritten", tests, NULL, NULL);
}
