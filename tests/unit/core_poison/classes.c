/* core_poison/classes.c - every instruction has a class: those that carry what nothing has written are listed here.
 * SPDX-License-Identifier: MIT
 *
 * It looks inside: apart from the others, so that those need no bodies of their own.
 */
#include "unit/core_poison/groups.h"
#include "unit/one_core.h"

/* Where there is nothing to read, or the row is of those that add up, no class but strict. */
static void every_instruction_has_a_class(void **state)
{
    (void)state;
    static const char *const carries[] = { "nc_transpose",
                                           "partition_broadcast",
                                           "tensor_tensor",
                                           "tensor_scalar",
                                           "scalar_tensor_tensor",
                                           "tensor_copy",
                                           "tensor_copy_predicated",
                                           "reciprocal",
                                           "exponential",
                                           "range_select",
                                           "select_reduce",
                                           "nc_stream_shuffle",
                                           "vector_transpose",
                                           "dropout",
                                           "activation",
                                           "activate2",
                                           "affine_select",
                                           "dma_copy",
                                           "dma_transpose",
                                           "dma_compute",
                                           "nc_matmul",
                                           "tensor_reduce",
                                           "tensor_scalar_reduce",
                                           "tensor_tensor_scan",
                                           "bn_stats",
                                           "bn_aggr",
                                           "max8",
                                           "nc_find_index8",
                                           "nc_match_replace8",
                                           "activation_reduce" };
    static char args[8192];
    for (int i = 0; i < TRNI_ORDERS; i++) {
        const trni_order *order = trni_order_of(i);
        bool listed = false;
        for (size_t k = 0; k < sizeof carries / sizeof carries[0]; k++)
            listed = listed || !strcmp(carries[k], order->name);
        trni_issue issue;
        memset(&issue, 0, sizeof issue);
        issue.core = &core;
        issue.order = order;
        issue.args = args;
        if (listed != (trni_carry_in(&issue) != TRNI_CARRY_STRICT)) fail_msg("%s", order->name);
    }
}

int core_poison_classes(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_instruction_has_a_class) };
    return cmocka_run_group_tests_name("core_poison_classes", tests, NULL, NULL);
}
