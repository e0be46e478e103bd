/* core_costs/paces.c - the clock at the measured pace: starts, shared transfers, order, memory, a cold TensorE.
 * SPDX-License-Identifier: MIT
 *
 * Cycles are by hand: those of the pages, less where trn_cost.h has a measured row, and the start of an instruction.
 */
#include <math.h>

#include "unit/core_costs/groups.h"
#include "unit/core_steps.h"

enum { STEPS = 16 };

static trn_core_step step[STEPS];
static trn_core_steps steps;

static void begin_at(trn_generation generation, trn_pace pace)
{
    trn_core_args args = core_args_of(generation);
    steps.step = step;
    steps.capacity = STEPS;
    steps.count = 0;
    args.pace = pace;
    args.steps = &steps;
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
}

static double cycles_of(trn_engine engine)
{
    trn_core_report report;
    fine();
    trn_core_report_of(&core, &report);
    return report.engine[engine].cycles;
}

static void instructions_pay_for_their_start(void **state)
{
    (void)state;
    const double vector2 = ceil(100e-9 * 0.96e9), scalar2 = 250e-9 * 1.2e9, vector1 = 100e-9 * 1.12e9;
    begin_at(TRN_TRAINIUM2, TRN_PACE_MEASURED);
    set(tile("t", 128, 512), 1);
    assert_true(cycles_of(TRN_ENGINE_VECTOR) == 512 + vector2);
    begin_at(TRN_TRAINIUM2, TRN_PACE_MEASURED);
    const trn_activation_args exp = { .dst = sbuf(TRN_F32, 512), .src = sbuf(TRN_F32, 512), .op = TRN_ACT_EXP };
    trn_core_activation(&core, &exp);
    assert_true(fabs(cycles_of(TRN_ENGINE_SCALAR) - (512 + scalar2)) < 1e-9);
    for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM2; g = (trn_generation)(g + 1)) {
        begin_at(g, TRN_PACE_MEASURED); /* one F32 element of each a cycle from Trainium2 on */
        const trn_tensor_tensor_args add = {
            .dst = sbuf(TRN_F32, 512), .data1 = sbuf(TRN_F32, 512), .data2 = sbuf(TRN_F32, 512), .op = TRN_ALU_ADD
        };
        trn_core_tensor_tensor(&core, &add);
        assert_true(fabs(cycles_of(TRN_ENGINE_VECTOR) - (g == TRN_TRAINIUM1 ? 1024 + vector1 : 512 + vector2)) < 1.01);
        begin_at(g, TRN_PACE_MEASURED);
        const trn_reciprocal_args turn = { .dst = sbuf(TRN_F32, 512), .data = sbuf(TRN_F32, 512) };
        trn_core_reciprocal(&core, &turn);
        assert_true(fabs(cycles_of(TRN_ENGINE_VECTOR) - 512 - (g == TRN_TRAINIUM1 ? vector1 : vector2)) < 1.01);
    }
}

/* Of a descriptor at the measured pace: of the fourth order between 71 ns and the rate. */
static double descriptor_s(double bytes) { return pow(pow(71e-9, 4) + pow(bytes / 25.5e9, 4), 0.25); }

static void transfers_run_at_the_measured_rate(void **state)
{
    (void)state;
    trn_dma_work work = { .generation = TRN_TRAINIUM2, .bytes = 1 << 20, .run_bytes = 8192, .measured = true };
    trn_dma_cost cost;
    const struct {
        trn_generation generation;
        double partitions, rate;
    } row[] = { { TRN_TRAINIUM2, 128, 25.5e9 },
                { TRN_TRAINIUM2, 0, 25.5e9 }, /* HBM to HBM */
                { TRN_TRAINIUM2, 64, 0.55 * 25.5e9 },
                { TRN_TRAINIUM1, 64, 17e9 }, /* nothing was measured there */
                { TRN_TRAINIUM3, 128, 33e9 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        work.generation = row[i].generation;
        work.partitions = row[i].partitions;
        assert_int_equal(trn_dma_seconds(&work, &cost), TRN_OK);
        const double lost =
            row[i].generation == TRN_TRAINIUM2 ? descriptor_s(4096 * 25.5e9 / row[i].rate) / (4096 / row[i].rate) : 1;
        assert_true(fabs(cost.transfer_s - (1 << 20) / (16 * row[i].rate) * lost) < 1e-14);
    }
}

/* 128 rows, eight for each engine; by the pages short ones take as long as 512 bytes. */
static void short_descriptors_take_their_time(void **state)
{
    (void)state;
    static const double run[] = { 4, 256, 512, 1024, 1811, 2048, 4096 };
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++)
        for (trn_generation g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g = (trn_generation)(g + 1)) {
            const double engine = g == TRN_TRAINIUM1 ? 17e9 : 33e9;
            trn_dma_work work = {
                .generation = g, .bytes = 128 * run[i], .run_bytes = run[i], .measured = true, .partitions = 128
            };
            trn_dma_cost cost;
            assert_int_equal(trn_dma_seconds(&work, &cost), TRN_OK);
            const double each = g == TRN_TRAINIUM2 ? descriptor_s(run[i]) : fmax(run[i], 512) / engine;
            assert_true(fabs(cost.transfer_s - 8 * each) < 1e-14);
        }
    /* what profiles have: 71 ns of 512 bytes, 92 of 2 KiB, 149 of 3584, 161 of 4 KiB */
    assert_true(fabs(descriptor_s(512) - 71e-9) < 1e-9 && fabs(descriptor_s(2048) - 92e-9) < 2e-9);
    assert_true(fabs(descriptor_s(3584) - 149e-9) < 7e-9 && fabs(descriptor_s(4096) - 161e-9) < 2e-9);
    /* 24 rows are one and a half for each engine, and 3 are one of some */
    trn_dma_work few = { .generation = TRN_TRAINIUM2, .bytes = 24 * 512, .run_bytes = 512, .measured = true };
    trn_dma_cost cost;
    assert_int_equal(trn_dma_seconds(&few, &cost), TRN_OK);
    assert_true(fabs(cost.transfer_s - 1.5 * descriptor_s(512)) < 1e-14);
    few.bytes = 3 * 512;
    assert_int_equal(trn_dma_seconds(&few, &cost), TRN_OK);
    assert_true(fabs(cost.transfer_s - descriptor_s(512)) < 1e-14);
}

/* Columns of a tensor, n at a time: transfers that continue each other are as long together as one of 2 KiB, whatever n
 * is; those that leave columns out, or go to other rows in between, pay for each row. */
static void rows_that_continue_are_joined(void **state)
{
    (void)state;
    static float from[256 * 1024];
    enum { ONE_AFTER_THE_OTHER, EVERY_SECOND, OTHER_ROWS, WAYS };
    for (int way = 0; way < WAYS; way++)
        for (int n = 32; n <= 512; n *= 2) {
            begin_at(TRN_TRAINIUM2, TRN_PACE_MEASURED);
            const trn_tensor all = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, from, 256, 1024));
            const int count = 512 / n;
            double all_s = 0;
            for (int i = 0; i < count; i++) {
                const trn_tensor rows = trn_tensor_slice(all, 0, way == OTHER_ROWS && i % 2 ? 128 : 0, 128);
                move(sbuf(TRN_F32, n), trn_tensor_slice(rows, 1, way == EVERY_SECOND ? 2 * n * i : n * i, n));
            }
            fine();
            for (int64_t i = 0; i < steps.count; i++) all_s += step[i].end_s - step[i].start_s;
            const double joined = 8 * descriptor_s(2048), apart = 8 * count * descriptor_s(4.0 * n);
            assert_int_equal(steps.count, count);
            assert_true(fabs(all_s - (way == ONE_AFTER_THE_OTHER || count == 1 ? joined : apart)) < 1e-14);
        }
}

/* What is computed of such tiles, n columns at a time, begins once for 512 columns, as of one tile: of tiles that
 * continue each other, and of what was made of them. Not with another input that does not, nor of a tile of which a
 * memset wrote a half; and reductions begin each time. */
static void instructions_on_joined_tiles_begin_once(void **state)
{
    (void)state;
    static float from[128 * 1024];
    const double starts[] = { ceil(100e-9 * 0.96e9), 250e-9 * 1.2e9 };
    enum { ONE_AFTER_THE_OTHER, EVERY_SECOND, WITH_ANOTHER, HALF_OF_IT, WAYS };
    for (int way = 0; way < WAYS; way++)
        for (int n = 64; n <= 512; n *= 2) {
            begin_at(TRN_TRAINIUM2, TRN_PACE_MEASURED);
            const trn_tensor all = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, from, 128, 1024));
            const trn_tensor one = sbuf(TRN_F32, 1), other = sbuf(TRN_F32, n);
            const int count = 512 / n;
            for (int i = 0; i < count; i++) {
                const trn_tensor x = tile("x", 128, n), y = tile("y", 128, n), z = tile("z", 128, n);
                const trn_activation_args exp = { .dst = y, .src = x, .op = TRN_ACT_EXP };
                const trn_tensor_tensor_args sum = {
                    .dst = z, .data1 = y, .data2 = way == WITH_ANOTHER ? other : x, .op = TRN_ALU_ADD
                };
                const trn_tensor_reduce_args most = { .dst = one, .data = z, .op = TRN_ALU_MAXIMUM, .axes = 1 };
                move(x, trn_tensor_slice(all, 1, way == EVERY_SECOND ? 2 * n * i : n * i, n));
                if (way == HALF_OF_IT) set(trn_tensor_slice(x, 0, 0, 64), 1);
                trn_core_activation(&core, &exp);
                trn_core_tensor_tensor(&core, &sum);
                trn_core_tensor_reduce(&core, &most);
            }
            const double once[] = { way == ONE_AFTER_THE_OTHER ? 1 : count,
                                    way == EVERY_SECOND || way == HALF_OF_IT ? count : 1 };
            const double halves = way == HALF_OF_IT ? count * (n + starts[0]) : 0;
            const double vector = 2 * 512 + (once[0] + count) * starts[0] + halves;
            assert_true(fabs(cycles_of(TRN_ENGINE_VECTOR) - vector) < 1e-9);
            assert_true(fabs(cycles_of(TRN_ENGINE_SCALAR) - (512 + once[1] * starts[1])) < 1e-9);
        }
}

/* VectorE waits for ScalarE, and has something else to do, which comes later in the program. */
static void what_is_ready_runs_first(void **state)
{
    (void)state;
    for (int pace = 0; pace < TRN_PACE_COUNT; pace++) {
        begin_at(TRN_TRAINIUM2, (trn_pace)pace);
        const trn_tensor a = sbuf(TRN_F32, 2048), b = sbuf(TRN_F32, 2048), c = sbuf(TRN_F32, 512);
        const trn_activation_args exp = { .dst = a, .src = a, .op = TRN_ACT_EXP };
        trn_core_activation(&core, &exp);
        copy(b, a, TRN_ENGINE_VECTOR);
        set(c, 1);
        fine();
        assert_int_equal(steps.count, 3);
        assert_true(step[1].ready_s == step[0].end_s && step[1].start_s == step[0].end_s);
        assert_true(step[2].start_s == (pace == TRN_PACE_MEASURED ? 0 : step[1].end_s));
        assert_true(step[2].ready_s == 0 && step[2].engine == TRN_ENGINE_VECTOR);
    }
}

/* A long transfer leaves the gap before a later one, which it fills from both sides. */
static void transfers_share_the_engines(void **state)
{
    (void)state;
    trni_channel c;
    double from;
    memset(&c, 0, sizeof c);
    assert_true(trni_channel_place(&c, 10, 5) == 10);
    assert_true(trni_channel_piece(&c, 4, 8, &from) == 6 && from == 4);
    assert_true(trni_channel_piece(&c, 4, 2, &from) == 2 && from == 15);
    assert_int_equal(c.stretches, 1);
    assert_true(c.taken[0].from_s == 4 && c.taken[0].to_s == 17);
    assert_true(trni_channel_piece(&c, 20, 1, &from) == 1 && from == 20);
    assert_true(trni_channel_piece(&c, 16, 9, &from) == 3 && from == 17);
}

/* Rows 0, 4, 8 ... of HBM and rows 1, 5, 9 ...: neither store waits for the other; rows 0 to 127 meet both. */
static void rows_between_rows_do_not_wait(void **state)
{
    (void)state;
    static float out[512 * 64];
    begin_at(TRN_TRAINIUM2, TRN_PACE_DOCUMENTED);
    const trn_tensor all = trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, 512, 64)), t = sbuf(TRN_F32, 64);
    trn_tensor rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = trn_tensor_slice(all, 0, i == 2 ? 0 : i, 128);
        rows[i].stride[0] = 4 * 64;
        rows[i].stride[1] = 1;
    }
    rows[2] = trn_tensor_slice(all, 0, 0, 128);
    for (int i = 0; i < 3; i++) move(rows[i], t);
    fine();
    assert_true(step[0].ready_s == 0 && step[1].ready_s == 0);
    assert_true(step[2].ready_s == fmax(step[0].end_s, step[1].end_s));
}

/* As many tiles as fit have places of their own before one is used a second time. */
static void memory_rotates(void **state)
{
    (void)state;
    for (int pace = 0; pace < TRN_PACE_COUNT; pace++) {
        begin_at(TRN_TRAINIUM2, (trn_pace)pace);
        const char *first = NULL;
        int places = 0;
        for (int i = 0; i < 8; i++) {
            const size_t mark = trn_core_mark(&core);
            const trn_tensor t = trn_core_sbuf(&core, "t", TRN_F32, 128, 10 * 1024); /* 40 of 224 KiB */
            if (!first) first = (const char *)t.data;
            places += i == 0 || (const char *)t.data != first;
            trn_core_release(&core, mark);
        }
        fine();
        assert_int_equal(places, pace == TRN_PACE_MEASURED ? 7 : 1); /* five, and then the first one again */
    }
}

/* A tile that was just freed lies where the next one would begin; another place has long been ready: it goes there. */
static void memory_that_is_ready_first(void **state)
{
    (void)state;
    begin_at(TRN_TRAINIUM2, TRN_PACE_MEASURED);
    const trn_tensor busy = trn_core_sbuf(&core, "busy", TRN_F32, 128, 28 * 1024); /* 112 of 224 KiB */
    const trn_tensor idle = trn_core_sbuf(&core, "idle", TRN_F32, 128, 28 * 1024);
    set(idle, 1);
    for (int i = 0; i < 10; i++) set(busy, 1);
    trn_core_free(&core, idle);
    trn_core_free(&core, busy);
    const trn_tensor next = trn_core_sbuf(&core, "next", TRN_F32, 128, 1024);
    fine();
    assert_ptr_equal(next.data, idle.data);
    set(next, 1); /* VectorE is in order of what is ready: here its own instructions are all there is */
    assert_true(step[11].ready_s == step[0].end_s);
}

/* Copies, and products and sums with a number, that name no engine: VectorE and ScalarE share them. */
static void engines_share_what_both_take(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_pace pace;
        trn_engine engine;
        trn_alu op;
        bool shared;
    } row[] = { { TRN_TRAINIUM2, TRN_PACE_MEASURED, TRN_ENGINE_UNKNOWN, TRN_ALU_BYPASS, true },
                { TRN_TRAINIUM3, TRN_PACE_MEASURED, TRN_ENGINE_UNKNOWN, TRN_ALU_MULTIPLY, true },
                { TRN_TRAINIUM2, TRN_PACE_MEASURED, TRN_ENGINE_UNKNOWN, TRN_ALU_ADD, true },
                { TRN_TRAINIUM2, TRN_PACE_MEASURED, TRN_ENGINE_UNKNOWN, TRN_ALU_MAXIMUM, false },
                { TRN_TRAINIUM2, TRN_PACE_MEASURED, TRN_ENGINE_VECTOR, TRN_ALU_MULTIPLY, false },
                { TRN_TRAINIUM2, TRN_PACE_MEASURED, TRN_ENGINE_VECTOR, TRN_ALU_BYPASS, false },
                { TRN_TRAINIUM1, TRN_PACE_MEASURED, TRN_ENGINE_UNKNOWN, TRN_ALU_BYPASS, false },
                { TRN_TRAINIUM2, TRN_PACE_DOCUMENTED, TRN_ENGINE_UNKNOWN, TRN_ALU_BYPASS, false } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin_at(row[i].generation, row[i].pace);
        const trn_tensor a = sbuf(TRN_F32, 512), b = sbuf(TRN_F32, 512);
        set(a, 1);
        for (int n = 0; n < 12; n++) {
            const trn_tensor_copy_args move = { .dst = b, .src = a, .engine = row[i].engine };
            const trn_tensor_scalar_args scale = {
                .dst = b, .data = a, .op0 = row[i].op, .operand0 = 2, .engine = row[i].engine
            };
            if (row[i].op == TRN_ALU_BYPASS)
                trn_core_tensor_copy(&core, &move);
            else
                trn_core_tensor_scalar(&core, &scale);
        }
        fine();
        int scalar = 0;
        for (int64_t k = 1; k < steps.count; k++) scalar += step[k].engine == TRN_ENGINE_SCALAR;
        assert_int_equal(steps.count, 13);
        assert_true(row[i].shared ? scalar >= 5 && scalar <= 7 : scalar == 0);
    }
}

/* 853 ns at full speed: a cold engine takes longer, and one that has been at work for long does not. */
static void a_cold_engine_is_slow(void **state)
{
    (void)state;
    for (int pace = 0; pace < TRN_PACE_COUNT; pace++) {
        begin_at(TRN_TRAINIUM2, (trn_pace)pace);
        const trn_tensor a = sbuf(TRN_F32, 128), b = sbuf(TRN_F32, 512), sum = psum(TRN_F32, 512);
        for (int i = 0; i < 12; i++) {
            const trn_nc_matmul_args args = { .dst = sum, .stationary = a, .moving = b };
            trn_core_nc_matmul(&core, &args);
        }
        fine();
        const double cold = step[0].end_s - step[0].start_s, warm = step[11].end_s - step[11].start_s;
        assert_true(pace == TRN_PACE_MEASURED ? cold > 1.5 * 2048 / 2.4e9 : cold < 1.1 * 2048 / 2.4e9);
        assert_true(fabs(warm - 2048 / 2.4e9) < 1e-12);
    }
}

/* Products of one row, a bank of PSUM after the other: two passes of F32 by the pages, and four as profiles have it, of
 * an engine that they never warm; one of BF16. */
static void a_broadcast_is_products(void **state)
{
    (void)state;
    static const struct {
        trn_format format;
        int elements, passes[TRN_PACE_COUNT];
    } row[] = { { TRN_F32, 512, { 2, 4 } },
                { TRN_F32, 7168, { 2, 4 } },
                { TRN_I32, 448, { 2, 4 } },
                { TRN_BF16, 2048, { 1, 1 } },
                { TRN_U8, 1024, { 1, 1 } } };
    for (int pace = 0; pace < TRN_PACE_COUNT; pace++)
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            begin_at(TRN_TRAINIUM2, (trn_pace)pace);
            const trn_tensor one = trn_tensor_slice(sbuf(row[i].format, row[i].elements), 0, 0, 1);
            const trn_partition_broadcast_args args = { .dst = sbuf(row[i].format, row[i].elements), .src = one };
            for (int n = 0; n < 4; n++) trn_core_partition_broadcast(&core, &args);
            fine();
            const double s = row[i].elements * row[i].passes[pace] / (pace == TRN_PACE_MEASURED ? 1.2e9 : 2.4e9);
            assert_true(fabs(step[3].end_s - step[3].start_s - s) < 1e-6 * s); /* nothing of its load shows */
            assert_int_equal(step[3].engine, TRN_ENGINE_TENSOR);
            assert_true(cycles_of(TRN_ENGINE_VECTOR) <= 0);
        }
}

static void other_paces_are_refused(void **state)
{
    (void)state;
    trn_error error;
    trn_core_args args = core_args_of(TRN_TRAINIUM2);
    args.pace = (trn_pace)7;
    args.error = &error;
    assert_int_equal(trn_core_begin(&core, &args), TRN_EINVAL);
    assert_string_equal(error.text, "pace is 7, not a pace");
}

int core_costs_paces(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_pay_for_their_start),
        cmocka_unit_test(transfers_run_at_the_measured_rate),
        cmocka_unit_test(short_descriptors_take_their_time),
        cmocka_unit_test(rows_that_continue_are_joined),
        cmocka_unit_test(instructions_on_joined_tiles_begin_once),
        cmocka_unit_test(what_is_ready_runs_first),
        cmocka_unit_test(transfers_share_the_engines),
        cmocka_unit_test(rows_between_rows_do_not_wait),
        cmocka_unit_test(memory_rotates),
        cmocka_unit_test(memory_that_is_ready_first),
        cmocka_unit_test(engines_share_what_both_take),
        cmocka_unit_test(a_cold_engine_is_slow),
        cmocka_unit_test(a_broadcast_is_products),
        cmocka_unit_test(other_paces_are_refused),
    };
    return cmocka_run_group_tests_name("core_costs/paces", tests, NULL, NULL);
}
