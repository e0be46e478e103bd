/* test_core_costs.c - what each instruction costs on a core: cycles by hand, and what is asked of the rooms of costs.
 * SPDX-License-Identifier: MIT
 *
 * Cycles of VectorE, ScalarE and GpSimdE are written out here from the published rules: elements per partition times
 * the rule's cycles, over its speed-up, plus what it adds. core_costs/ has TensorE and DMA, which are asked by structs
 * that are filled there, and what adds up over several instructions.
 */
#include <math.h>

#include "unit/core_costs/groups.h"
#include "unit/core_steps.h"

/* The one instruction that has run took so many cycles of that engine, and no other engine any. */
static void took(trn_engine engine, double cycles)
{
    trn_core_report report;
    fine();
    trn_core_report_of(&core, &report);
    assert_int_equal(report.instructions, 1);
    for (int e = 1; e < TRN_ENGINE_COUNT; e++) {
        const double want = e == (int)engine ? cycles : 0, got = report.engine[e].cycles;
        if (fabs(got - want) > 1e-9 * want) fail_msg("%s took %g cycles, not %g", report.engine[e].name, got, want);
    }
}

/* ---- VectorE, ScalarE, GpSimdE ---- */

/* Two inputs: 2 cycles an element, half of that for BF16 add, subtract and multiply, or with one input in PSUM. */
static void pairs_of_tensors(void **state)
{
    (void)state;
    static const struct {
        trn_generation g;
        trn_format f;
        trn_alu op;
        bool psum;
        trn_engine engine;
        double cycles;
    } row[] = {
        { TRN_TRAINIUM1, TRN_BF16, TRN_ALU_ADD, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM1, TRN_BF16, TRN_ALU_SUBTRACT, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM1, TRN_BF16, TRN_ALU_MULTIPLY, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM1, TRN_BF16, TRN_ALU_MAXIMUM, false, TRN_ENGINE_VECTOR, 1024 },
        { TRN_TRAINIUM1, TRN_F16, TRN_ALU_ADD, false, TRN_ENGINE_VECTOR, 1024 },
        { TRN_TRAINIUM2, TRN_F16, TRN_ALU_MAXIMUM, false, TRN_ENGINE_VECTOR, 512 }, /* 16 bits, both in SBUF */
        { TRN_TRAINIUM2, TRN_F32, TRN_ALU_ADD, false, TRN_ENGINE_VECTOR, 1024 },
        { TRN_TRAINIUM2, TRN_F32, TRN_ALU_ADD, true, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM2, TRN_I32, TRN_ALU_ADD, false, TRN_ENGINE_GPSIMD, 150 + 2 * 512 },
        { TRN_TRAINIUM2, TRN_I32, TRN_ALU_ADD, true, TRN_ENGINE_VECTOR, 512 }, /* GpSimdE does not reach PSUM */
        { TRN_TRAINIUM2, TRN_F32, TRN_ALU_POWER, false, TRN_ENGINE_GPSIMD, 150 + 4 * 512 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(row[i].g);
        const trn_tensor_tensor_args a = { .dst = sbuf(row[i].f, 512),
                                           .data1 = sbuf(row[i].f, 512),
                                           .data2 = row[i].psum ? psum(row[i].f, 512) : sbuf(row[i].f, 512),
                                           .op = row[i].op };
        trn_core_tensor_tensor(&core, &a);
        took(row[i].engine, row[i].cycles);
    }
}

/* How far an element is from the next: one element, two, and beyond 16 bytes. */
static void steps_between_elements(void **state)
{
    (void)state;
    static const struct {
        trn_format f;
        int64_t step;
        double cycles;
    } row[] = {
        { TRN_BF16, 1, 128 }, { TRN_BF16, 2, 256 }, { TRN_BF16, 8, 256 }, { TRN_BF16, 9, 512 },
        { TRN_F32, 1, 512 },  { TRN_F32, 2, 512 },  { TRN_F32, 4, 512 },  { TRN_F32, 5, 1024 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int side = 0; side < 2; side++) {
            begin(TRN_TRAINIUM2);
            const trn_tensor wide = trn_tensor_split(sbuf(row[i].f, 512 * row[i].step), 1, row[i].step);
            const trn_tensor apart = trn_tensor_slice(wide, 2, 0, 1), close = sbuf(row[i].f, 512);
            const trn_tensor_copy_args a = { .dst = side ? apart : close, .src = side ? close : apart };
            trn_core_tensor_copy(&core, &a);
            took(TRN_ENGINE_VECTOR, row[i].cycles);
        }
}

/* One input: the fast modes of copies count the operands in PSUM, whichever side they are on. */
static void copies_and_where_they_lie(void **state)
{
    (void)state;
    static const struct {
        trn_generation g;
        trn_format f;
        bool from, to;
        trn_engine engine;
        double cycles;
    } row[] = {
        { TRN_TRAINIUM1, TRN_BF16, false, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM2, TRN_BF16, false, false, TRN_ENGINE_VECTOR, 128 },
        { TRN_TRAINIUM2, TRN_BF16, true, false, TRN_ENGINE_VECTOR, 256 },
        { TRN_TRAINIUM2, TRN_BF16, false, true, TRN_ENGINE_VECTOR, 256 },
        { TRN_TRAINIUM2, TRN_BF16, true, true, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM2, TRN_F8_E4M3, false, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM3, TRN_F8_E4M3, false, false, TRN_ENGINE_VECTOR, 128 }, /* FP8 counts from here on */
        { TRN_TRAINIUM3, TRN_F8_E5M2, false, false, TRN_ENGINE_VECTOR, 128 },
        { TRN_TRAINIUM3, TRN_F8_E4M3FN, false, false, TRN_ENGINE_VECTOR, 128 },
        { TRN_TRAINIUM3, TRN_I8, false, false, TRN_ENGINE_VECTOR, 512 },
        { TRN_TRAINIUM2, TRN_BF16, false, false, TRN_ENGINE_SCALAR, 512 },
        { TRN_TRAINIUM3, TRN_BF16, false, false, TRN_ENGINE_SCALAR, 256 },
        { TRN_TRAINIUM2, TRN_BF16, false, false, TRN_ENGINE_GPSIMD, 150 + 512 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(row[i].g);
        const trn_tensor_copy_args a = { .dst = row[i].to ? psum(row[i].f, 512) : sbuf(row[i].f, 512),
                                         .src = row[i].from ? psum(row[i].f, 512) : sbuf(row[i].f, 512),
                                         .engine = row[i].engine };
        trn_core_tensor_copy(&core, &a);
        took(row[i].engine, row[i].cycles);
    }
}

static void operators_that_cost_more_or_less(void **state)
{
    (void)state;
    static const struct {
        trn_alu op0, op1;
        trn_engine engine;
        double cycles;
    } scalar[] = {
        { TRN_ALU_ADD, TRN_ALU_MULTIPLY, TRN_ENGINE_VECTOR, 512 },
        { TRN_ALU_POWER, TRN_ALU_MULTIPLY, TRN_ENGINE_GPSIMD, 150 + 4 * 512 },
        { TRN_ALU_ADD, TRN_ALU_POWER, TRN_ENGINE_GPSIMD, 150 + 4 * 512 },
    };
    for (size_t i = 0; i < sizeof scalar / sizeof scalar[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor_scalar_args a = { .dst = sbuf(TRN_F32, 512),
                                           .data = sbuf(TRN_F32, 512),
                                           .op0 = scalar[i].op0,
                                           .operand0 = 1,
                                           .op1 = scalar[i].op1,
                                           .operand1 = 1 };
        trn_core_tensor_scalar(&core, &a);
        took(scalar[i].engine, scalar[i].cycles);
    }
    static const struct {
        trn_format f;
        int64_t n;
        trn_alu op0, op1;
        double cycles;
    } fused[] = {
        { TRN_BF16, 512, TRN_ALU_SUBTRACT, TRN_ALU_MULTIPLY, 512 },
        { TRN_BF16, 511, TRN_ALU_SUBTRACT, TRN_ALU_MULTIPLY, 1022 },
        { TRN_BF16, 512, TRN_ALU_ADD, TRN_ALU_MULTIPLY, 1024 },
        { TRN_BF16, 512, TRN_ALU_SUBTRACT, TRN_ALU_ADD, 1024 },
        { TRN_F32, 512, TRN_ALU_SUBTRACT, TRN_ALU_MULTIPLY, 1024 },
    };
    for (size_t i = 0; i < sizeof fused / sizeof fused[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_scalar_tensor_tensor_args a = { .dst = sbuf(fused[i].f, fused[i].n),
                                                  .data = sbuf(fused[i].f, fused[i].n),
                                                  .op0 = fused[i].op0,
                                                  .operand1 = sbuf(fused[i].f, fused[i].n),
                                                  .op1 = fused[i].op1 };
        trn_core_scalar_tensor_tensor(&core, &a);
        took(TRN_ENGINE_VECTOR, fused[i].cycles);
    }
    static const struct {
        trn_format f;
        trn_alu op;
        double cycles;
    } sum[] = {
        { TRN_BF16, TRN_ALU_ADD, 256 },
        { TRN_BF16, TRN_ALU_MAXIMUM, 256 },
        { TRN_BF16, TRN_ALU_MINIMUM, 512 },
        { TRN_F32, TRN_ALU_ADD, 512 },
    };
    for (size_t i = 0; i < sizeof sum / sizeof sum[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor_reduce_args a = {
            .dst = sbuf(sum[i].f, 1), .data = sbuf(sum[i].f, 512), .op = sum[i].op, .axes = 1
        };
        trn_core_tensor_reduce(&core, &a);
        took(TRN_ENGINE_VECTOR, sum[i].cycles);
    }
    static const struct {
        trn_format f;
        float value;
        double cycles;
    } fill[] = {
        { TRN_BF16, 0, 256 },
        { TRN_BF16, 1, 512 },
        { TRN_F32, 0, 512 },
    };
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_memset_args a = { .dst = sbuf(fill[i].f, 512), .value = fill[i].value };
        trn_core_memset(&core, &a);
        took(TRN_ENGINE_VECTOR, fill[i].cycles);
    }
}

static trn_status nothing(void *user, const trn_gpsimd_part *part, trn_error *error)
{
    (void)user, (void)part, (void)error;
    return TRN_OK;
}

/* What is counted is not always the longest operand. */
static void instructions_with_a_count_of_their_own(void **state)
{
    (void)state;
    for (int reduces = 0; reduces < 2; reduces++) { /* the registers are written out by 64 more cycles */
        begin(TRN_TRAINIUM2);
        trn_activation_args a = { .dst = sbuf(TRN_F32, 512), .src = sbuf(TRN_F32, 512), .op = TRN_ACT_EXP };
        if (reduces) a.reduce_res = sbuf(TRN_F32, 1);
        trn_core_activation(&core, &a);
        took(TRN_ENGINE_SCALAR, reduces ? 576 : 512);
        begin(TRN_TRAINIUM3);
        trn_activate2_args b = { .dst = sbuf(TRN_F32, 512),
                                 .src = sbuf(TRN_F32, 512),
                                 .op = TRN_ACT_RELU,
                                 .op0 = TRN_ALU_MULTIPLY,
                                 .imm0 = 1,
                                 .op1 = TRN_ALU_ADD };
        if (reduces) b.reduce_res = sbuf(TRN_F32, 1);
        trn_core_activate2(&core, &b);
        took(TRN_ENGINE_SCALAR, reduces ? 576 : 512);
    }
    begin(TRN_TRAINIUM2); /* as many as come out, not as many as there are to choose from */
    const trn_local_gather_args gather = { .dst = sbuf(TRN_F32, 32),
                                           .src_buffer = sbuf(TRN_F32, 512),
                                           .index = sbuf(TRN_U16, 2) };
    trn_core_local_gather(&core, &gather);
    took(TRN_ENGINE_GPSIMD, 150 + 32);
    begin(TRN_TRAINIUM2);
    const trn_nc_n_gather_args choose = { .dst = sbuf(TRN_F32, 16),
                                          .data = sbuf(TRN_F32, 512),
                                          .indices = sbuf(TRN_U32, 16) };
    trn_core_nc_n_gather(&core, &choose);
    took(TRN_ENGINE_GPSIMD, 150 + 16);
    begin(TRN_TRAINIUM3);
    const trn_topk_args top = {
        .val_dst = sbuf(TRN_BF16, 8), .idx_dst = sbuf(TRN_U32, 8), .src = sbuf(TRN_BF16, 64), .n = 1024
    };
    trn_core_topk(&core, &top);
    took(TRN_ENGINE_GPSIMD, 4 * 1024 + 8);
    static const struct {
        double said, counted;
    } own[] = { { 1000, 1000 }, { 0, 0 }, { -5, 0 }, { HUGE_VAL, 0 } };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_gpsimd_custom_args custom = { .dst = { sbuf(TRN_F32, 16) },
                                                .dsts = 1,
                                                .src = { sbuf(TRN_F32, 16) },
                                                .srcs = 1,
                                                .op = nothing,
                                                .cycles = own[i].said };
        trn_core_gpsimd_custom(&core, &custom);
        took(TRN_ENGINE_GPSIMD, own[i].counted);
    }
    begin(TRN_TRAINIUM2); /* what lies behind the operands that count is none */
    const trn_tensor gone = sbuf(TRN_F32, 16), x = sbuf(TRN_F32, 16), y = sbuf(TRN_F32, 16);
    trn_core_free(&core, gone);
    const trn_gpsimd_custom_args two = {
        .dst = { x, gone }, .dsts = 1, .src = { y, gone }, .srcs = 1, .op = nothing, .cycles = 7
    };
    trn_core_gpsimd_custom(&core, &two);
    took(TRN_ENGINE_GPSIMD, 7);
}

/* 64 elements are not few: the pipeline shows between fewer, and where one reads what was just written. */
static void instructions_that_follow_at_once(void **state)
{
    (void)state;
    static const struct {
        int64_t first, second;
        bool reads;
        double more;
    } row[] = {
        { 63, 63, false, 100 },
        { 64, 63, false, 0 },
        { 63, 64, false, 0 },
        { 64, 64, true, 100 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor x = sbuf(TRN_F32, row[i].first), y = sbuf(TRN_F32, row[i].second);
        const trn_tensor_copy_args one = { .dst = x, .src = sbuf(TRN_F32, row[i].first) };
        const trn_tensor_copy_args two = { .dst = y, .src = row[i].reads ? x : sbuf(TRN_F32, row[i].second) };
        trn_core_tensor_copy(&core, &one);
        trn_core_tensor_copy(&core, &two);
        fine();
        assert_true(core.lane[TRN_ENGINE_VECTOR].cycles == 64 + 64 + row[i].more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_tensors),
        cmocka_unit_test(steps_between_elements),
        cmocka_unit_test(copies_and_where_they_lie),
        cmocka_unit_test(operators_that_cost_more_or_less),
        cmocka_unit_test(instructions_with_a_count_of_their_own),
        cmocka_unit_test(instructions_that_follow_at_once),
    };
    const int failed = cmocka_run_group_tests_name("core_costs", tests, NULL, NULL);
    return failed + core_costs_products() + core_costs_transfers() + core_costs_sums() + core_costs_paces();
}
