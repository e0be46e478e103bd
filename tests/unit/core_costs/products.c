/* core_costs/products.c - what TensorE is asked to do for each product, its cycles by what trn_cost.h says.
 * SPDX-License-Identifier: MIT
 */
#include "unit/core_costs/groups.h"
#include "unit/core_steps.h"

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

int core_costs_products(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_asked_about_as_they_are),
        cmocka_unit_test(products_with_numerics_tiles_or_rounding),
        cmocka_unit_test(sparse_products),
    };
    return cmocka_run_group_tests_name("core_costs_products", tests, NULL, NULL);
}
