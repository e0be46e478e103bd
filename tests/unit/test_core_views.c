/* test_core_views.c - views that are legal but odd, in a core and in DMA: strides that are never taken, broadcasts.
 * SPDX-License-Identifier: MIT
 *
 * Under the sanitizers of level 1 a product of such a stride, or a division by a row of no bytes, ends the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "trnmath/trn_core.h"

static float host[64];

static void begin(trn_core *core)
{
    trn_core_args args;
    memset(&args, 0, sizeof args);
    args.generation = TRN_TRAINIUM2;
    assert_int_equal(trn_core_begin(core, &args), TRN_OK);
    for (int i = 0; i < 64; i++) host[i] = (float)i;
}

static void end(trn_core *core)
{
    const char *text;
    if (trn_core_status(core, &text) != TRN_OK) fail_msg("%s", text);
    trn_core_end(core);
}

static trn_tensor view3(int64_t a, int64_t b, int64_t c, int64_t x, int64_t y, int64_t z)
{
    const int64_t shape[3] = { a, b, c };
    trn_tensor t = trn_tensor_nd(TRN_F32, host, 3, shape);
    t.stride[0] = x;
    t.stride[1] = y;
    t.stride[2] = z;
    return t;
}

static void strides_that_are_never_taken_may_be_any_number(void **unused)
{
    static const int64_t far = INT64_MAX / 2;
    trn_core core;
    (void)unused;
    begin(&core);
    const trn_tensor odd = view3(4, 1, 8, 8, far, 1);
    trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 4, 8);
    const trn_dma_copy_args load = { .dst = tile, .src = trn_core_hbm(&core, "odd", odd) };
    trn_core_dma_copy(&core, &load);

    trn_tensor row = trn_tensor_slice(tile, 0, 0, 1);
    row.stride[0] = far;
    const trn_tensor_copy_args copy = { .dst = row, .src = row };
    trn_core_tensor_copy(&core, &copy);
    const trn_dma_copy_args store = { .dst = view3(1, 1, 8, far, far, 1), .src = row };
    trn_core_dma_copy(&core, &store);
    end(&core);

    float sum[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const trn_dma_copy_args add = { .dst = trn_tensor_2d(TRN_F32, sum, 2, 4),
                                    .src = view3(1, 2, 4, far, 4, 1),
                                    .accumulate = true };
    assert_int_equal(trn_dma_copy(&add), TRN_OK);
    for (int i = 0; i < 8; i++) assert_true(sum[i] == (float)i + 1);
}

static void broadcasts_are_tensors_of_hbm(void **unused)
{
    trn_core core;
    (void)unused;
    begin(&core);
    trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 4, 6);
    const trn_dma_copy_args load = { .dst = tile, .src = trn_core_hbm(&core, "column", view3(4, 2, 3, 8, 0, 0)) };
    trn_core_dma_copy(&core, &load);
    for (int64_t p = 0; p < 4 && !core.failure.status; p++) {
        const trn_tensor row = trn_tensor_slice(tile, 0, p, 1);
        for (int f = 0; f < 6; f++) assert_true(((const float *)row.data)[f] == 8.0f * (float)p);
    }
    end(&core);
}

static void what_is_no_view_is_not_freed(void **unused)
{
    trn_core core;
    const char *text;
    (void)unused;
    begin(&core);
    trn_core_free(&core, trn_tensor_nd(TRN_F32, NULL, 0, NULL)); /* what an allocation returns that failed */
    trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 4, 6);
    tile.rank = 99;
    trn_core_free(&core, tile);
    assert_int_equal(trn_core_status(&core, &text), TRN_ESHAPE);
    assert_string_equal(text, "trn_core_free: the tile has rank 99, expected 1 to 6");
    trn_core_end(&core);

    begin(&core);
    tile = trn_core_sbuf(&core, "tile", TRN_F32, 4, 6);
    tile.shape[1] = INT64_MAX;
    trn_core_free(&core, tile);
    assert_int_equal(trn_core_status(&core, NULL), TRN_ESHAPE);
    trn_core_end(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_that_are_never_taken_may_be_any_number),
        cmocka_unit_test(broadcasts_are_tensors_of_hbm),
        cmocka_unit_test(what_is_no_view_is_not_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
