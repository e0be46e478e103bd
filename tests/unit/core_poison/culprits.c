/* core_poison/culprits.c - which operand a failure is about, where a chain of tiles began; and views of six axes.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "unit/core_poison/groups.h"
#include "unit/core_steps.h"

/* Nobody: "". */
static void about(const char *name)
{
    assert_int_not_equal(core.failure.status, TRN_OK);
    assert_string_equal(core.culprit ? core.culprit->name : "", name);
}

/* x is written in part, and carried to y, and from y to z, which is stored. */
static void carried(bool first_is_freed, bool second_is_freed)
{
    begin(TRN_TRAINIUM2);
    const trn_tensor x = tile("x", 32, 32), y = tile("y", 32, 32), z = tile("z", 32, 32);
    set(trn_tensor_slice(x, 1, 0, 8), 1);
    copy(y, x, TRN_ENGINE_VECTOR);
    copy(z, y, TRN_ENGINE_VECTOR);
    if (first_is_freed) trn_core_free(&core, x);
    if (second_is_freed) trn_core_free(&core, y);
    fine();
    assert_null(core.culprit);
    store(z, NULL);
}

/* The tile that nothing has written, as far back as it is still there. */
static void the_first_tile_of_a_chain_is_named(void **state)
{
    (void)state;
    carried(false, false);
    about("x");
    carried(true, false);
    about("y");
    carried(false, true);
    about("x");
    carried(true, true);
    about("z");

    begin(TRN_TRAINIUM2); /* another tile in the first one's place, and of its number, is not the first one */
    const trn_tensor x = tile("x", 32, 32), y = tile("y", 32, 32);
    copy(y, x, TRN_ENGINE_VECTOR);
    trn_core_free(&core, x);
    tile("new", 32, 32);
    store(y, NULL);
    about("y");
}

static void the_operand_that_is_refused_is_named(void **state)
{
    (void)state;
    static float host[32 * 32];
    static uint64_t bits[32 * 32 * sizeof(float) / 64];
    trn_hbm_written written;
    const trn_tensor far = trn_tensor_2d(TRN_F32, host, 32, 32);
    begin(TRN_TRAINIUM2); /* it lies where the engine does not reach: the second operand */
    const trn_tensor a = tile("a", 32, 32), b = trn_core_psum(&core, "b", TRN_F32, 32, 32);
    set(a, 1), set(b, 1);
    move(a, b);
    about("b");
    begin(TRN_TRAINIUM2); /* partitions that no engine begins at */
    set(trn_tensor_slice(tile("c", 32, 32), 0, 8, 8), 1);
    about("c");
    begin(TRN_TRAINIUM2); /* HBM that nothing has written, read, and as a result */
    trn_hbm_written_begin(&written, far, bits);
    trn_core_hbm_empty(&core, "far", far, &written);
    move(tile("d", 32, 32), far);
    about("far");
    begin(TRN_TRAINIUM2);
    trn_hbm_written_begin(&written, far, bits);
    trn_core_hbm_empty(&core, "result", far, &written);
    trn_core_result(&core, far);
    about("result");
    begin(TRN_TRAINIUM2); /* it is about no operand */
    trn_core_free(&core, trn_tensor_slice(tile("e", 32, 32), 0, 1, 1));
    about("");
}

/* ---- six axes: as many as there are ---- */

static trn_tensor six_axes(trn_tensor t)
{
    for (int axis = 1; axis < 5; axis++) t = trn_tensor_split(t, axis, 32 >> axis);
    assert_int_equal(t.rank, 6);
    return t;
}

static trn_tensor columns(trn_tensor t, int64_t first, int64_t count) { return trn_tensor_slice(t, 1, first, count); }

static void views_of_six_axes_carry_what_those_of_two_carry(void **state)
{
    (void)state;
    static float host[32 * 32];
    for (int column = 0; column < 32; column++) {
        const int64_t left = column, right = 31 - column;
        char sentence[120];
        begin(TRN_TRAINIUM2);
        const trn_tensor x = tile("x", 32, 32), y = tile("y", 32, 32);
        const trn_tensor far = trn_core_hbm(&core, "far", trn_tensor_2d(TRN_F32, host, 32, 32));
        if (left) set(columns(x, 0, left), 1);
        if (right) set(columns(x, column + 1, right), 1);
        copy(six_axes(y), six_axes(x), TRN_ENGINE_VECTOR);
        if (left) move(columns(far, 0, left), columns(y, 0, left));
        if (right) move(columns(far, column + 1, right), columns(y, column + 1, right));
        fine();
        move(trn_tensor_slice(far, 0, 31, 1), trn_tensor_slice(y, 0, 31, 1));
        snprintf(sentence, sizeof sentence, "src reads partition 31, element %d of 'y', which nothing has written",
                 column);
        const char *text;
        if (trn_core_status(&core, &text) == TRN_OK || !strstr(text, sentence)) fail_msg("%s: %s", sentence, text);
    }
}

/* ---- transposes of more than two axes ---- */

static trn_tensor cut(trn_tensor t, const int at[], int axes)
{
    for (int i = 0; i < axes; i++) t = trn_tensor_slice(t, i, at[i], 1);
    return t;
}

/* One element of src is unwritten; of dst that with its indices turned, as DMA turns them, and no other: [A, B, C] to
 * [C, B, A], and [A, B, C, D] to [D, B, C, A]. */
static void transfers_turn_what_is_unwritten(void **state)
{
    (void)state;
    static const int hole[4] = { 5, 1, 2, 3 };
    for (int rank = 3; rank <= 4; rank++)
        for (int whole = 0; whole < 2; whole++) {
            begin(TRN_TRAINIUM2);
            trn_tensor x = tile("x", 32, 32), y = tile("y", rank == 3 ? 8 : 4, rank == 3 ? 128 : 256);
            x = trn_tensor_split(x, 1, rank == 3 ? 8 : 16);
            y = trn_tensor_split(y, 1, rank == 3 ? 32 : 128);
            if (rank == 4) x = trn_tensor_split(x, 2, 4), y = trn_tensor_split(y, 2, 32);
            const int there[4] = { hole[rank - 1], hole[1], rank == 3 ? hole[0] : hole[2], hole[0] };
            for (int p = 0; p < 32; p++)
                for (int i = 0; i < x.shape[1]; i++)
                    for (int j = 0; j < x.shape[2]; j++)
                        for (int k = 0; k < (rank == 4 ? x.shape[3] : 1); k++) {
                            const int at[4] = { p, i, j, k };
                            if (memcmp(at, hole, (size_t)rank * sizeof(int)) != 0)
                                trn_core_written(&core, cut(x, at, rank));
                        }
            const trn_dma_transpose_args turn = { .dst = y, .src = x };
            trn_core_dma_transpose(&core, &turn);
            fine();
            if (whole) trn_core_written(&core, cut(y, there, rank));
            assert_int_equal(trn_core_result(&core, y), whole ? TRN_OK : TRN_EINVAL);
        }
}

/* ---- what is read stays as it was ---- */

static void sums_leave_their_operands_alone(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++)
        for (int second = 0; second < 2; second++) {
            begin(TRN_TRAINIUM2);
            const trn_tensor x = tile("x", 32, 32), eight = tile("eight", 32, 8), one = tile("one", 32, 1);
            const trn_tensor y = tile("y", 32, 32);
            const trn_tensor_scalar_reduce_args sum = {
                .dst = y, .data = x, .op0 = TRN_ALU_ADD, .operand0 = 1, .reduce_op = TRN_ALU_ADD, .reduce_res = one
            };
            const trn_max8_args most = { .dst = eight, .src = x };
            const trn_bn_stats_args stats = { .dst = trn_tensor_slice(eight, 1, 0, 6), .data = x };
            set(columns(x, 0, 24), 1);
            if (what == 0) trn_core_max8(&core, &most);
            if (what == 1) trn_core_bn_stats(&core, &stats);
            if (what == 2) trn_core_tensor_scalar_reduce(&core, &sum);
            fine();
            assert_int_equal(trn_core_result(&core, columns(x, 0, 24)), TRN_OK);
            if (!second) continue;
            assert_int_equal(trn_core_result(&core, columns(x, 0, 25)), TRN_EINVAL);
            about("x");
        }
}

int core_poison_culprits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_tile_of_a_chain_is_named),
        cmocka_unit_test(the_operand_that_is_refused_is_named),
        cmocka_unit_test(views_of_six_axes_carry_what_those_of_two_carry),
        cmocka_unit_test(transfers_turn_what_is_unwritten),
        cmocka_unit_test(sums_leave_their_operands_alone),
    };
    return cmocka_run_group_tests_name("core_poison_culprits", tests, NULL, NULL);
}
