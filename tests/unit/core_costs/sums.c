/* core_costs/sums.c - what several instructions add up to, by hand; and whatever runs has a cost.
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include "unit/core_costs/groups.h"
#include "unit/core_steps.h"

static void cycles_add_up_by_hand(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, 128, 512), y = tile("y", 128, 512);
    trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, 128, 512);
    set(x, 0); /* 256: zeros in a 16-bit format */
    set(y, 0); /* 512 */
    const trn_nc_matmul_args mm = { .dst = acc, .stationary = trn_tensor_slice(x, 1, 0, 128), .moving = x };
    trn_core_nc_matmul(&core, &mm);  /* 512; the load hides behind the wait */
    trn_core_nc_matmul(&core, &mm);  /* 512 */
    copy(y, acc, TRN_ENGINE_VECTOR); /* 512 */
    copy(y, y, TRN_ENGINE_VECTOR);   /* 512 + 100: it reads what the one before wrote */
    const trn_tensor_tensor_args ints = { .dst = trn_core_sbuf(&core, "i", TRN_I32, 128, 8),
                                          .data1 = trn_core_sbuf(&core, "j", TRN_I32, 128, 8),
                                          .data2 = trn_core_sbuf(&core, "k", TRN_I32, 128, 8),
                                          .op = TRN_ALU_ADD };
    trn_core_written(&core, ints.data1);
    trn_core_written(&core, ints.data2);
    trn_core_tensor_tensor(&core, &ints); /* GpSimdE: 150 + 2 x 8 */
    const trn_activation_args act = { .dst = y, .src = y, .op = TRN_ACT_EXP, .reduce_res = tile("s", 128, 1) };
    trn_core_activation(&core, &act); /* 512 + 64 */
    fine();
    trn_core_report r;
    trn_core_report_of(&core, &r);
    assert_true(r.engine[TRN_ENGINE_TENSOR].cycles == 1024);
    assert_true(r.engine[TRN_ENGINE_VECTOR].cycles == 256 + 512 + 512 + 612);
    assert_true(r.engine[TRN_ENGINE_GPSIMD].cycles == 166);
    assert_true(r.engine[TRN_ENGINE_SCALAR].cycles == 576);
    assert_int_equal(r.bound, TRN_ENGINE_VECTOR);
    assert_true(fabs(r.engine[TRN_ENGINE_TENSOR].busy_s - 1024 / 2.4e9) < 1e-15);
    const trn_tensor pairs = trn_tensor_split(x, 1, 2);
    const double before = core.lane[TRN_ENGINE_VECTOR].cycles;
    copy(trn_tensor_slice(pairs, 2, 0, 1), trn_tensor_slice(pairs, 2, 1, 1), TRN_ENGINE_VECTOR); /* 256 at 2x */
    assert_true(core.lane[TRN_ENGINE_VECTOR].cycles - before == 128);
    fine();
    char text[96];
    snprintf(text, sizeof text, "VectorE is busy %.0f %% of %.1f us", 100 * r.engine[TRN_ENGINE_VECTOR].share,
             1e6 * r.time_s);
    assert_string_equal(r.bound_text, text);
    begin(TRN_TRAINIUM2); /* a tile in the place of a freed one is another tile: no pipeline shows */
    x = tile("x", 128, 512), y = tile("y", 128, 512);
    set(x, 1);
    trn_core_free(&core, x);
    x = tile("new", 128, 512);
    trn_core_written(&core, x);
    copy(y, x, TRN_ENGINE_VECTOR);
    fine();
    assert_true(core.lane[TRN_ENGINE_VECTOR].cycles == 512 + 512);
    begin(TRN_TRAINIUM2);
    trn_core_report_of(&core, &r);
    assert_string_equal(r.bound_text, "nothing has run");
}

/* A tile of 32 partitions that holds ones on its diagonal, or zeros. */
static trn_tensor diagonal(const char *name, trn_format format, int64_t f, bool ones)
{
    const trn_tensor t = trn_core_sbuf(&core, name, format, 32, f);
    const uint32_t one = trn_encode(format, 1.0f, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    const size_t bytes = trn_format_bytes(format);
    for (int64_t p = 0; p < 32; p++) {
        char *row = (char *)t.data + p * t.stride[0] * (int64_t)bytes;
        memset(row, 0, (size_t)f * bytes);
        if (ones) memcpy(row + p * (int64_t)bytes, &one, bytes);
    }
    trn_core_written(&core, t);
    return t;
}

static void matmul_both_ways(trn_generation g, trn_format a, trn_format b, int mode)
{
    const size_t mark = trn_core_mark(&core);
    const int64_t f = mode == 1 ? 64 : 32;
    trn_tensor x = diagonal("x", a, f, false), y = diagonal("y", b, f, mode == 2);
    const trn_tensor dst = trn_core_psum(&core, "dst",
                                         mode == 2 && g != TRN_TRAINIUM1 ? a
                                         : a == TRN_I8                   ? TRN_I32
                                                                         : TRN_F32,
                                         32, 32);
    trn_status alone, here;
    if (mode == 1) x = trn_tensor_split(x, 1, 32), y = trn_tensor_split(y, 1, 32);
    if (mode == 3) { /* 4 of 16: 32 stored rows of 128 */
        const trn_tensor tags = diagonal("tags", TRN_U8, 32, false), all = trn_core_sbuf(&core, "all", b, 128, 32);
        for (int64_t p = 0; p < 128; p++)
            memset((char *)all.data + p * core.memory[0].pitch, 0, 32 * trn_format_bytes(b));
        for (int64_t p = 0; p < 32; p++) memset((char *)tags.data + p * core.memory[0].pitch, (int)p % 4, 32);
        trn_core_written(&core, all);
        const trn_nc_matmul_sparse_args args = {
            .generation = g, .dst = dst, .stationary = x, .tags = tags, .moving = all, .pattern = { 4, 16 }
        };
        alone = trn_nc_matmul_sparse(&args);
        here = trn_core_nc_matmul_sparse(&core, &args);
    } else {
        const trn_nc_matmul_args args = { .generation = g,
                                          .dst = dst,
                                          .stationary = x,
                                          .moving = y,
                                          .double_row = mode == 1,
                                          .is_transpose = mode == 2 };
        alone = trn_nc_matmul(&args);
        here = trn_core_nc_matmul(&core, &args);
    }
    if (alone != here)
        fail_msg("%s x %s, mode %d: %d alone, %s", trn_format_name(a), trn_format_name(b), mode, alone,
                 core.failure.text);
    memset(&core.failure, 0, sizeof core.failure);
    trn_core_release(&core, mark);
}

/* Whatever runs has a cost: the table of costs and the engine agree about formats and modes. */
static void every_matmul_that_runs_has_a_cost(void **state)
{
    (void)state;
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
        begin(g);
        for (int a = TRN_F32; a < TRN_CFP8; a++)
            for (int b = TRN_F32; b < TRN_CFP8; b++)
                for (int mode = 0; mode < 4; mode++) matmul_both_ways(g, (trn_format)a, (trn_format)b, mode);
        assert_true(core.instructions > 40);
    }
}

/* Casts need software descriptors, which take GpSimd's time; hardware ones only delay. */
static void descriptors_take_the_time_of_whoever_makes_them(void **state)
{
    (void)state;
    static const struct {
        trn_dge_mode mode;
        trn_format format;
        double start_ns, gpsimd_ns;
    } row[] = {
        { TRN_DGE_UNKNOWN, TRN_F32, 1300, 0 }, { TRN_DGE_UNKNOWN, TRN_BF16, 1900, 600 },
        { TRN_DGE_HWDGE, TRN_F32, 1900, 0 },   { TRN_DGE_SWDGE, TRN_F32, 1900, 600 },
        { TRN_DGE_NONE, TRN_F32, 1300, 0 },
    };
    static float far[128 * 64];
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM2);
        const trn_dma_copy_args load = { .dst = trn_core_sbuf(&core, "x", row[i].format, 128, 64),
                                         .dge_mode = row[i].mode,
                                         .src = trn_core_hbm(&core, "h", trn_tensor_2d(TRN_F32, far, 128, 64)) };
        trn_core_dma_copy(&core, &load);
        fine();
        trn_core_report r;
        trn_core_report_of(&core, &r);
        const double transfer_s = r.engine[TRN_ENGINE_DMA].busy_s; /* 128 descriptors of 256 bytes, as dear as 512 */
        assert_true(fabs(transfer_s - 8 * 512 / 23e9) < 1e-15);
        assert_true(fabs(r.time_s - transfer_s - 1e-9 * row[i].start_ns) < 1e-15);
        assert_true(fabs(r.engine[TRN_ENGINE_GPSIMD].busy_s - 1e-9 * row[i].gpsimd_ns) < 1e-15);
        assert_true(r.dma_bytes == 128 * 64 * 4);
    }
}

int core_costs_sums(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_add_up_by_hand),
        cmocka_unit_test(every_matmul_that_runs_has_a_cost),
        cmocka_unit_test(descriptors_take_the_time_of_whoever_makes_them),
    };
    return cmocka_run_group_tests_name("core_costs_sums", tests, NULL, NULL);
}
