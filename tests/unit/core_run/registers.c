/* core_run/registers.c - the engines' own registers: which instructions of a core sum up into them, and which do not.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "unit/core_run/groups.h"
#include "unit/core_steps.h"

/* ---- ScalarE, by either of its instructions; what comes in are ones, eight to a partition ---- */

typedef struct asked {
    trn_reduce_cmd command;
    bool result; /* the sum of a partition is written out */
} asked;

static trn_tensor activate(bool second, trn_tensor x, asked how, int axes)
{
    trn_tensor sum = tile("sum", 32, 1);
    sum.rank = axes; /* [P, 1], or [P] */
    if (second) {
        trn_activate2_args args = { .dst = x,
                                    .src = x,
                                    .op = TRN_ACT_COPY,
                                    .op0 = TRN_ALU_MULTIPLY,
                                    .imm0 = 1,
                                    .op1 = TRN_ALU_ADD,
                                    .reduce_cmd = how.command };
        if (how.result) args.reduce_res = sum;
        trn_core_activate2(&core, &args);
    } else {
        trn_activation_args args = { .dst = x, .src = x, .op = TRN_ACT_COPY, .reduce_cmd = how.command };
        if (how.result) args.reduce_res = sum;
        trn_core_activation(&core, &args);
    }
    fine();
    return sum;
}

/* With a result and no command the sum begins anew; without either the registers stay as they are. */
static void sums_begin_anew_where_a_result_is_asked_for(void **state)
{
    (void)state;
    static const asked anew = { TRN_REDUCE_CMD_RESET_REDUCE, true }, more = { TRN_REDUCE_CMD_REDUCE, true };
    static const asked by_itself = { TRN_REDUCE_CMD_DEFAULT, true }, nothing = { TRN_REDUCE_CMD_DEFAULT, false };
    static const asked idle = { TRN_REDUCE_CMD_IDLE, true }, unseen = { TRN_REDUCE_CMD_REDUCE, false };
    const struct {
        asked how[4];
        float sums[4]; /* after each; 0 = not asked */
    } row[] = {
        { { anew, more, by_itself, more }, { 8, 16, 8, 16 } },
        { { anew, more, nothing, more }, { 8, 16, 0, 24 } },
        { { anew, unseen, more, by_itself }, { 8, 0, 24, 8 } },
        { { more, idle, more, idle }, { 8, 8, 16, 16 } },
    };
    for (int second = 0; second < 2; second++)
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            begin(second ? TRN_TRAINIUM3 : TRN_TRAINIUM2);
            const trn_tensor x = tile("x", 32, 8);
            set(x, 1);
            for (int k = 0; k < 4; k++) {
                const trn_tensor sum = activate(second, x, row[i].how[k], 1 + k % 2);
                if (!row[i].how[k].result) continue;
                for (int p = 0; p < 32; p++)
                    if (((const float *)sum.data)[p * sum.stride[0]] != row[i].sums[k])
                        fail_msg("activat%s, row %zu, step %d: partition %d has %g", second ? "e2" : "ion", i, k, p,
                                 (double)((const float *)sum.data)[p * sum.stride[0]]);
            }
        }
}

/* Registers of a caller's own take the core's place; without a command they stay as they are, too. */
static void registers_of_a_caller_are_taken(void **state)
{
    (void)state;
    static trn_scalar_state own;
    memset(&own, 0, sizeof own);
    begin(TRN_TRAINIUM2);
    const trn_tensor x = tile("x", 32, 8), sum = tile("sum", 32, 1);
    set(x, 1);
    trn_activation_args args = {
        .dst = x, .src = x, .op = TRN_ACT_COPY, .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE, .reduce_res = sum
    };
    trn_core_activation(&core, &args);
    fine();
    args.state = &own;
    args.reduce_cmd = TRN_REDUCE_CMD_DEFAULT;
    trn_core_activation(&core, &args);
    fine();
    assert_true(((const float *)sum.data)[0] == 0); /* idle: nothing was summed up into them */
    args.state = NULL;
    args.reduce_cmd = TRN_REDUCE_CMD_REDUCE;
    trn_core_activation(&core, &args);
    fine();
    assert_true(((const float *)sum.data)[0] == 16);
}

/* The host's arrays are no tiles: each is named. */
static void arrays_of_the_host_are_refused(void **state)
{
    (void)state;
    static float host[128];
    static const char *const name[] = { "scale_per_partition", "bias_per_partition", "reduce", "reduce" };
    for (int i = 0; i < 4; i++) {
        char sentence[160];
        begin(TRN_TRAINIUM3);
        const trn_tensor x = tile("x", 32, 8);
        set(x, 1);
        trn_activation_args a = { .dst = x, .src = x, .op = TRN_ACT_COPY };
        trn_activate2_args b = { .dst = x,
                                 .src = x,
                                 .op = TRN_ACT_COPY,
                                 .op0 = TRN_ALU_MULTIPLY,
                                 .imm0 = 1,
                                 .op1 = TRN_ALU_ADD,
                                 .reduce = host };
        if (i == 0) a.scale_per_partition = host;
        if (i == 1) a.bias_per_partition = host;
        if (i == 2) a.reduce = host;
        if (i < 3)
            trn_core_activation(&core, &a);
        else
            trn_core_activate2(&core, &b);
        snprintf(sentence, sizeof sentence,
                 "instruction 1, %s: %s is an array of the host; engines read tiles: see scale_tile, bias_tile, "
                 "reduce_res",
                 i < 3 ? "activation" : "activate2", name[i]);
        expect(sentence);
    }
}

int core_run_registers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_begin_anew_where_a_result_is_asked_for),
        cmocka_unit_test(registers_of_a_caller_are_taken),
        cmocka_unit_test(arrays_of_the_host_are_refused),
    };
    return cmocka_run_group_tests_name("core_run_registers", tests, NULL, NULL);
}
