/* test_core_costs.c - what each instruction costs on a core: cycles by hand, and what is asked of the rooms of costs.
 * SPDX-License-Identifier: MIT
 *
 * Cycles of VectorE, ScalarE and GpSimdE are written out from the published rules: elements per partition times the
 * rule's cycles, over its speed-up, plus what it adds. TensorE and DMA are asked with structs that are filled here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_core.h"

static trn_core core;
static void *room;

static void begin(trn_generation generation)
{
    trn_core_args args;
    memset(&args, 0, sizeof args);
    args.generation = generation;
    args.memory_bytes = trn_core_memory_bytes(generation);
    args.memory = room = realloc(room, args.memory_bytes);
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
}

static void fine(void)
{
    const char *text;
    if (trn_core_status(&core, &text) != TRN_OK) fail_msg("%s", text);
}

/* A tile of zeros, in `space`. */
static trn_tensor zeros(trn_space space, trn_format format, int64_t p, int64_t f)
{
    const trn_tensor t =
        space == TRN_SPACE_PSUM ? trn_core_psum(&core, "t", format, p, f) : trn_core_sbuf(&core, "t", format, p, f);
    for (int64_t i = 0; i < p; i++)
        memset((char *)t.data + i * t.stride[0] * (int64_t)trn_format_bytes(format), 0,
               (size_t)f * trn_format_bytes(format));
    trn_core_written(&core, t);
    return t;
}

static trn_tensor sbuf(trn_format format, int64_t f) { return zeros(TRN_SPACE_SBUF, format, 128, f); }
static trn_tensor psum(trn_format format, int64_t f) { return zeros(TRN_SPACE_PSUM, format, 128, f); }

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

/* ---- TensorE ---- */

/* The first instruction shows its load; the second hides it behind the first. */
#define TWICE(name, args, asked)                                                                                       \
    do {                                                                                                               \
        trn_tensor_instruction ask = asked;                                                                            \
        trn_tensor_cost first, second;                                                                                 \
        ask.generation = core.spec->generation;                                                                        \
        assert_int_equal(trn_tensor_instruction_cost(&ask, &first), TRN_OK);                                           \
        ask.before_cycles = first.multiply_cycles;                                                                     \
        assert_int_equal(trn_tensor_instruction_cost(&ask, &second), TRN_OK);                                          \
        trn_core_##name(&core, &args);                                                                                 \
        fine();                                                                                                        \
        assert_true(core.lane[TRN_ENGINE_TENSOR].cycles == first.cycles);                                              \
        trn_core_##name(&core, &args);                                                                                 \
        fine();                                                                                                        \
        assert_true(core.lane[TRN_ENGINE_TENSOR].cycles == first.cycles + second.cycles);                              \
    } while (0)

static trn_tensor operand(trn_format format, int64_t p, int64_t f) { return zeros(TRN_SPACE_SBUF, format, p, f); }
static trn_tensor sums(trn_format format, int64_t p, int64_t f) { return zeros(TRN_SPACE_PSUM, format, p, f); }

static void products_are_asked_about_as_they_are(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = { { 128, 128, 512 }, { 64, 96, 200 }, { 128, 16, 4 }, { 32, 128, 64 } };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t k = sizes[i][0], m = sizes[i][1], n = sizes[i][2];
        const int ik = (int)k, im = (int)m, in = (int)n;
        static const trn_format formats[] = { TRN_BF16, TRN_F32, TRN_F8_E4M3, TRN_F8_E3M4 };
        for (int f = 0; f < 4; f++) {
            const trn_format format = formats[f];
            for (int hint = 0; hint < 3; hint++) {
                begin(TRN_TRAINIUM2);
                const trn_nc_matmul_args plain = { .dst = sums(TRN_F32, m, n),
                                                   .moving = operand(format, k, n),
                                                   .stationary = operand(format, k, m),
                                                   .is_stationary_onezero = hint == 1,
                                                   .is_moving_onezero = hint == 2 };
                TWICE(nc_matmul, plain,
                      ((trn_tensor_instruction){ .mode = TRN_MODE_PLAIN,
                                                 .k = ik,
                                                 .m = im,
                                                 .n = in,
                                                 .stationary_format = format,
                                                 .moving_format = format,
                                                 .is_stationary_onezero = hint == 1,
                                                 .is_moving_onezero = hint == 2 }));
            }
        }
        begin(TRN_TRAINIUM2); /* two rows of FP8 in one; E3M4 takes two passes instead */
        const trn_tensor pair = trn_tensor_split(operand(TRN_F8_E4M3, k, 2 * m), 1, m);
        const trn_nc_matmul_args rows = { .dst = sums(TRN_F32, m, n),
                                          .stationary = pair,
                                          .double_row = true,
                                          .moving = trn_tensor_split(operand(TRN_F8_E4M3, k, 2 * n), 1, n) };
        TWICE(nc_matmul, rows,
              ((trn_tensor_instruction){ .mode = TRN_MODE_DOUBLE_ROW,
                                         .k = 2 * ik,
                                         .m = im,
                                         .n = in,
                                         .stationary_format = TRN_F8_E4M3,
                                         .moving_format = TRN_F8_E4M3 }));
        for (int which = 0; which < 2; which++) {
            begin(TRN_TRAINIUM2);
            const trn_format a = which ? TRN_F8_E4M3 : TRN_F8_E3M4, b = which ? TRN_F8_E3M4 : TRN_F8_E4M3;
            const trn_nc_matmul_args slow = { .dst = sums(TRN_F32, m, n),
                                              .double_row = true,
                                              .stationary = trn_tensor_split(operand(a, k, 2 * m), 1, m),
                                              .moving = trn_tensor_split(operand(b, k, 2 * n), 1, n) };
            TWICE(nc_matmul, slow,
                  ((trn_tensor_instruction){ .mode = TRN_MODE_PLAIN,
                                             .k = ik,
                                             .m = im,
                                             .n = in,
                                             .pack = 2,
                                             .stationary_format = a,
                                             .moving_format = b }));
        }
        begin(TRN_TRAINIUM2);
        const trn_nc_transpose_args turn = { .dst = sums(TRN_BF16, m, k), .data = operand(TRN_BF16, k, m) };
        TWICE(
            nc_transpose, turn,
            ((trn_tensor_instruction){ .mode = TRN_MODE_TRANSPOSE, .k = ik, .m = im, .stationary_format = TRN_BF16 }));
    }
}

static void products_with_numerics_tiles_or_rounding(void **state)
{
    (void)state;
    trn_numerics tf32 = trn_numerics_default(TRN_TRAINIUM2);
    tf32.fp32_mode = TRN_FP32_R;
    begin(TRN_TRAINIUM2);
    const trn_nc_matmul_args fast = { .dst = sums(TRN_F32, 128, 256),
                                      .stationary = operand(TRN_F32, 128, 128),
                                      .moving = operand(TRN_F32, 128, 256),
                                      .numerics = &tf32 };
    TWICE(nc_matmul, fast,
          ((trn_tensor_instruction){ .mode = TRN_MODE_PLAIN,
                                     .k = 128,
                                     .m = 128,
                                     .n = 256,
                                     .fp32r = true,
                                     .stationary_format = TRN_F32,
                                     .moving_format = TRN_F32 }));
    begin(TRN_TRAINIUM3);
    const trn_nc_matmul_args rounded = { .dst = sums(TRN_BF16, 128, 256),
                                         .moving = operand(TRN_BF16, 128, 256),
                                         .stationary = operand(TRN_BF16, 128, 128) };
    TWICE(nc_matmul, rounded,
          ((trn_tensor_instruction){ .mode = TRN_MODE_PLAIN,
                                     .k = 128,
                                     .m = 128,
                                     .n = 256,
                                     .bf16_psum = true,
                                     .stationary_format = TRN_BF16,
                                     .moving_format = TRN_BF16 }));
    begin(TRN_TRAINIUM2);
    const trn_nc_matmul_args part = { .dst = sums(TRN_F32, 32, 256),
                                      .moving = operand(TRN_BF16, 32, 256),
                                      .stationary = operand(TRN_BF16, 32, 32),
                                      .tile_size = { 32, 64 } };
    TWICE(nc_matmul, part,
          ((trn_tensor_instruction){ .mode = TRN_MODE_PLAIN,
                                     .k = 32,
                                     .m = 32,
                                     .n = 256,
                                     .tile_rows = 32,
                                     .tile_columns = 64,
                                     .stationary_format = TRN_BF16,
                                     .moving_format = TRN_BF16 }));
}

static void sparse_products(void **state)
{
    (void)state;
    static const trn_format formats[] = { TRN_BF16, TRN_F32 };
    for (int i = 0; i < 4; i++) {
        const trn_format format = formats[i % 2];
        const int m = i < 2 ? 128 : 24, n = i < 2 ? 300 : 4;
        begin(TRN_TRAINIUM3);
        const trn_tensor tags = operand(TRN_U8, 32, m);
        for (int p = 0; p < 32; p++) memset((char *)tags.data + p * tags.stride[0], p % 4, (size_t)m);
        const trn_nc_matmul_sparse_args a = { .dst = sums(TRN_F32, m, n),
                                              .stationary = operand(format, 32, m),
                                              .tags = tags,
                                              .moving = operand(format, 128, n),
                                              .pattern = { 4, 16 } };
        const trn_format asked = format == TRN_F32 ? TRN_TF32 : format;
        TWICE(nc_matmul_sparse, a,
              ((trn_tensor_instruction){ .mode = TRN_MODE_SPARSE,
                                         .k = 128,
                                         .m = m,
                                         .n = n,
                                         .stationary_format = asked,
                                         .moving_format = asked,
                                         .pack = format == TRN_F32 ? 4 : 0,
                                         .sparse_m = 4,
                                         .sparse_n = 16 }));
    }
}

/* ---- DMA ---- */

static float host[4][128 * 512];

static trn_tensor outside(int which, trn_format format, int64_t p, int64_t f)
{
    return trn_core_hbm(&core, "h", trn_tensor_2d(format, host[which], p, f));
}

/* The transfer that has run is the one that was asked about. */
static void moved(trn_dma_work work)
{
    trn_core_report report;
    trn_dma_cost cost;
    work.generation = core.spec->generation;
    assert_int_equal(trn_dma_seconds(&work, &cost), TRN_OK);
    fine();
    trn_core_report_of(&core, &report);
    assert_true(report.dma_bytes == work.bytes);
    assert_true(fabs(report.engine[TRN_ENGINE_DMA].busy_s - cost.transfer_s) < 1e-15);
    assert_true(fabs(report.engine[TRN_ENGINE_GPSIMD].busy_s - cost.gpsimd_s) < 1e-15);
    assert_true(fabs(report.time_s - (cost.issue_s + cost.gpsimd_s + cost.latency_s + cost.transfer_s)) < 1e-15);
}

static void copies_move_their_bytes(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2); /* both in HBM: all of it follows itself */
    const trn_dma_copy_args within = { .dst = outside(0, TRN_F32, 128, 512), .src = outside(1, TRN_F32, 128, 512) };
    trn_core_dma_copy(&core, &within);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 128 * 512 * 4 });
    begin(TRN_TRAINIUM2); /* rows of 256 bytes, which follow each other: not one short descriptor for each */
    const trn_dma_copy_args narrow = { .dst = outside(0, TRN_F32, 1024, 64), .src = outside(1, TRN_F32, 1024, 64) };
    trn_core_dma_copy(&core, &narrow);
    moved((trn_dma_work){ .bytes = 1024 * 64 * 4, .run_bytes = 1024 * 64 * 4 });
    begin(TRN_TRAINIUM2); /* rows of a tile are apart */
    const trn_dma_copy_args load = { .dst = sbuf(TRN_F32, 512), .src = outside(1, TRN_F32, 128, 512) };
    trn_core_dma_copy(&core, &load);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4 });
    begin(TRN_TRAINIUM2); /* a cast: the wider side counts, and software makes the descriptors */
    const trn_dma_copy_args cast = { .dst = outside(0, TRN_BF16, 128, 512), .src = sbuf(TRN_F32, 512) };
    trn_core_dma_copy(&core, &cast);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4, .software = true });
    for (trn_generation g = TRN_TRAINIUM2; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g); /* sums on the way cost a copy's time from Trainium3 on */
        const trn_dma_copy_args sum = { .dst = outside(0, TRN_F32, 128, 512),
                                        .src = outside(1, TRN_F32, 128, 512),
                                        .accumulate = true };
        trn_core_dma_copy(&core, &sum);
        moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 128 * 512 * 4, .compute = g == TRN_TRAINIUM2 });
    }
    begin(TRN_TRAINIUM1);
    const trn_dma_copy_args squeezed = { .dst = sbuf(TRN_F32, 512),
                                         .src = outside(1, TRN_F32, 128, 512),
                                         .compression = 0.25 };
    trn_core_dma_copy(&core, &squeezed);
    moved((trn_dma_work){ .bytes = 128 * 512 * 4, .run_bytes = 512 * 4, .wire = 0.25 });
}

static void rows_by_an_index_move_one_by_one(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        begin(TRN_TRAINIUM2);
        trn_dma_copy_args a = { .dst = outside(0, TRN_F32, 64, 512), .src = outside(1, TRN_F32, 64, 512) };
        const trn_tensor index = zeros(TRN_SPACE_SBUF, TRN_U32, 64, 1);
        if (side)
            a.dst_index = index;
        else
            a.src_index = index;
        trn_core_dma_copy(&core, &a);
        moved((trn_dma_work){ .bytes = 64 * 512 * 4, .run_bytes = 512 * 4, .software = true });
    }
}

static void transposes_and_sums(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        begin(TRN_TRAINIUM2);
        const trn_dma_transpose_args a = { .dst = sbuf(TRN_BF16, 64),
                                           .src = inside ? zeros(TRN_SPACE_SBUF, TRN_BF16, 64, 128)
                                                         : outside(0, TRN_BF16, 64, 128) };
        trn_core_dma_transpose(&core, &a);
        moved((trn_dma_work){ .bytes = 64 * 128 * 2, .run_bytes = 2, .transpose = true, .from_sbuf = inside });
    }
    for (int order = 0; order < 2; order++) { /* the shortest run of all sources, and the bytes of each */
        begin(TRN_TRAINIUM2);
        const trn_tensor whole = outside(1, TRN_F32, 64, 512), rows = zeros(TRN_SPACE_SBUF, TRN_F32, 64, 512);
        const trn_tensor srcs[3] = { order ? rows : whole, order ? whole : rows, whole };
        const trn_dma_compute_args a = { .dst = outside(0, TRN_F32, 64, 512), .srcs = srcs, .count = 3 };
        trn_core_dma_compute(&core, &a);
        moved((trn_dma_work){ .bytes = 3 * 64 * 512 * 4, .run_bytes = 512 * 4, .compute = true });
    }
    for (int scatter = 0; scatter < 2; scatter++) { /* one row of dst at a time, or of the source */
        begin(TRN_TRAINIUM2);
        const trn_tensor dst = outside(0, TRN_F32, 64, 256), index = zeros(TRN_SPACE_SBUF, TRN_U32, 64, 1);
        const trn_tensor srcs[2] = { outside(1, TRN_F32, 64, 256), dst };
        const trn_dma_compute_args a = { .dst = dst, .srcs = srcs, .count = 2, .index = index, .scatter = scatter };
        trn_core_dma_compute(&core, &a);
        moved((trn_dma_work){ .bytes = 2 * 64 * 256 * 4, .run_bytes = 256 * 4, .compute = true, .software = true });
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
        cmocka_unit_test(products_are_asked_about_as_they_are),
        cmocka_unit_test(products_with_numerics_tiles_or_rounding),
        cmocka_unit_test(sparse_products),
        cmocka_unit_test(copies_move_their_bytes),
        cmocka_unit_test(rows_by_an_index_move_one_by_one),
        cmocka_unit_test(transposes_and_sums),
    };
    const int failed = cmocka_run_group_tests_name("core_costs", tests, NULL, NULL);
    free(room);
    return failed;
}
