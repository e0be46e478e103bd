/* Views that hold nothing, but whose other axes are longer than any number of bytes: legal, and nothing to do.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <trnmath/trn_gpsimd_engine.h>
#include <trnmath/trn_vector_engine.h>

#define LONG_AXIS ((int64_t)1 << 59)

static trn_tensor nothing(int rank, const int64_t *shape)
{
    static float none;
    return trn_tensor_nd(TRN_F32, &none, rank, shape);
}

/* Extents along axes whose product no int64 holds: a dst of so many elements cannot be. */
static void reductions_of_nothing(void **state)
{
    (void)state;
    trn_error error;
    float out[4] = { 7, 7, 7, 7 };
    const trn_tensor_reduce_args a = { .dst = trn_tensor_2d(TRN_F32, out, 2, 2),
                                       .op = TRN_ALU_ADD,
                                       .axes = 1,
                                       .data = nothing(4, (int64_t[]){ 2, 17, LONG_AXIS, 0 }),
                                       .unlimited = true,
                                       .error = &error };
    assert_int_equal(trn_tensor_reduce(&a), TRN_ESHAPE);
    const trn_tensor_reduce_args b = { .dst = nothing(2, (int64_t[]){ 2, 0 }),
                                       .op = TRN_ALU_ADD,
                                       .axes = 2,
                                       .data = nothing(4, (int64_t[]){ 2, 0, 17, LONG_AXIS }),
                                       .unlimited = true,
                                       .error = &error };
    assert_int_equal(trn_tensor_reduce(&b), TRN_OK);
    for (int i = 0; i < 4; i++) assert_true(out[i] == 7);
}

static trn_status never(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)part, (void)error;
    ++*(int *)user;
    return TRN_OK;
}

static void custom_operators_on_nothing(void **state)
{
    (void)state;
    int calls = 0;
    for (int threads = 0; threads < 2; threads++) {
        const trn_gpsimd_custom_args a = { .dst = { nothing(2, (int64_t[]){ LONG_AXIS, 0 }) },
                                           .dsts = 1,
                                           .op = never,
                                           .user = &calls,
                                           .unlimited = true,
                                           .threads = threads == 1 };
        assert_int_equal(trn_gpsimd_custom(&a), TRN_OK);
    }
    assert_int_equal(calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_of_nothing),
        cmocka_unit_test(custom_operators_on_nothing),
    };
    return cmocka_run_group_tests_name("empty_extents", tests, NULL, NULL);
}
