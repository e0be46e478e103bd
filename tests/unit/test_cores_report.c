/* test_cores_report.c - what many cores report of themselves, number by number; who waits for whom; when calls end.
 * SPDX-License-Identifier: MIT
 *
 * Work is counted in cycles of VectorE by hand (128 x 512 of float32 take 512), collectives and transfers by what
 * trn_collective_cost and trn_dma_seconds say of them.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/trn_cores.h"

enum { RANKS = 4 };
static const double fill_s = 512 / 0.96e9; /* one memset of a whole tile, on Trainium2 */

static trn_cores cores;
static trn_cores_report report;
static float memory[RANKS][3][128 * 512];

typedef struct scene {
    int fills[RANKS], loads[RANKS], tiles[RANKS];
    int64_t rows; /* of the collective, of 512 float32; 0 = none */
    double before_s[RANKS], after_s[RANKS];
} scene;

static trn_status works(trn_cores_rank *self, void *user)
{
    scene *s = (scene *)user;
    trn_core *core = &self->core;
    const int r = self->rank;
    const trn_tensor far = trn_core_hbm(core, "far", trn_tensor_2d(TRN_F32, memory[r][0], 128, 512));
    const trn_tensor out = trn_core_hbm(core, "out", trn_tensor_2d(TRN_F32, memory[r][1], 128, 512));
    trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, 128, 512);
    for (int i = 1; i < s->tiles[r]; i++) trn_core_sbuf(core, "more", TRN_F32, 128, 512);
    const trn_dma_copy_args load = { .dst = tile, .src = far };
    for (int i = 0; i < s->loads[r]; i++) trn_core_dma_copy(core, &load);
    const trn_memset_args set = { .dst = tile, .value = 1 };
    for (int i = 0; i < s->fills[r]; i++) trn_core_memset(core, &set);
    s->before_s[r] = core->time_s;
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_tensor_slice(out, 0, 0, s->rows);
    a.src = trn_tensor_slice(far, 0, 0, s->rows);
    const trn_cores_barrier_args all = { .all = true };
    if (s->rows)
        trn_cores_all_reduce(self, &a);
    else
        trn_cores_barrier(self, &all);
    s->after_s[r] = core->time_s;
    return TRN_OK;
}

static void run(scene *s)
{
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = RANKS;
    args.cores_per_chip = 2;
    args.threads = 1;
    if (trn_cores_begin(&cores, &args)) fail_msg("%s", cores.failure.text);
    if (trn_cores_run(&cores, works, s)) fail_msg("%s", cores.failure.text);
    trn_cores_report_of(&cores, &report);
    trn_cores_end(&cores);
}

static void near(double found, double expected, const char *what)
{
    if (fabs(found - expected) > 1e-9 * fabs(expected)) fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

/* The last one sets the pace: 1, 2, 4 and 3 fills, and a barrier of all chips. */
static void shares_and_waits(void **state)
{
    (void)state;
    scene s = { .fills = { 1, 2, 4, 3 }, .tiles = { 1, 1, 2, 1 } };
    const double start_s = 4 * fill_s;
    run(&s);
    for (int r = 0; r < RANKS; r++) near(s.before_s[r], s.fills[r] * fill_s, "its own work");
    near(report.share[TRN_ENGINE_VECTOR], 10 * fill_s / 4 / report.time_s, "VectorE");
    near(report.most[TRN_ENGINE_VECTOR], start_s / report.time_s, "VectorE of rank 2");
    assert_true(report.share[TRN_ENGINE_SCALAR] == 0 && report.most[TRN_ENGINE_TENSOR] == 0);
    near(report.waited_s, (3 + 2 + 0 + 1) * fill_s / 4, "waited, on average");
    near(report.late_s, (3 + 2 + 1) * fill_s, "what the others waited for rank 2");
    assert_int_equal(report.late_rank, 2);
    assert_int_equal(report.instructions, 1 + 2 + 4 + 3 + 4);
    assert_true(report.dma_bytes == 0 && report.collective_share == 0);
    assert_int_equal(report.sbuf_high_water, 2 * 128 * 512 * 4);
    assert_int_equal(report.psum_high_water, 0);
    char text[128];
    const double barrier = report.share[TRN_ENGINE_GPSIMD] * report.time_s; /* the engine that waits works as long */
    near(report.time_s, start_s + barrier, "time");
    snprintf(text, sizeof text, "VectorE is busy %.0f %% of %.1f us on rank 2; collectives run 0 %% of it",
             100 * start_s / report.time_s, 1e6 * report.time_s);
    if (barrier < start_s) assert_string_equal(report.bound_text, text);
}

/* Collectives have a track of their own: their time counts once for each rank, beside the engines'. */
static void collectives_and_transfers(void **state)
{
    (void)state;
    scene s = { .fills = { 1, 1, 1, 1 }, .loads = { 0, 2, 1, 0 }, .tiles = { 1, 1, 1, 1 }, .rows = 96 };
    trn_dma_work work = { .generation = TRN_TRAINIUM2, .bytes = 128 * 512 * 4, .run_bytes = 2048 };
    trn_dma_cost move;
    assert_int_equal(trn_dma_seconds(&work, &move), TRN_OK);
    run(&s);
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const int chips[] = { 0, 1 };
    const trn_collective_args ask = { .net = &net,
                                      .op = TRN_ALL_REDUCE,
                                      .bytes = 96 * 512 * 4,
                                      .chips = chips,
                                      .count = 2,
                                      .ranks_per_chip = 2,
                                      .in_graph = true };
    trn_cost cost;
    assert_int_equal(trn_collective_cost(&ask, &cost), TRN_OK);
    near(report.collective_share, cost.expected_s / report.time_s, "collectives");
    near(report.time_s, s.before_s[1] > cost.expected_s ? fmax(s.before_s[1], cost.expected_s) : cost.expected_s,
         "end");
    near(report.waited_s + 1, 1, "nobody waited: the data were there from the beginning");
    near(report.share[TRN_ENGINE_DMA], 3 * move.transfer_s / 4 / report.time_s, "DMA");
    near(report.most[TRN_ENGINE_DMA], 2 * move.transfer_s / report.time_s, "DMA of rank 1");
    assert_true(report.dma_bytes == 3.0 * 128 * 512 * 4);
    assert_int_equal(report.instructions, 4 + 3 + 4);
    assert_int_equal(report.late_rank, 0);
    char text[128];
    snprintf(text, sizeof text, "DMA is busy %.0f %% of %.1f us on rank 1; collectives run %.0f %% of it",
             100 * report.most[TRN_ENGINE_DMA], 1e6 * report.time_s, 100 * report.collective_share);
    assert_string_equal(report.bound_text, text);
}

static trn_status idles(trn_cores_rank *self, void *user)
{
    (void)self, (void)user;
    return TRN_OK;
}

static trn_status one_works(trn_cores_rank *self, void *user)
{
    const trn_tensor tile = trn_core_sbuf(&self->core, "tile", TRN_F32, 128, 512);
    const trn_memset_args set = { .dst = tile, .value = 1 };
    if (self->rank == *(const int *)user) trn_core_memset(&self->core, &set);
    return TRN_OK;
}

/* Whoever it is that works: the run takes as long, and the report names the rank. */
static void the_last_one_is_what_counts(void **state)
{
    (void)state;
    for (int who = 0; who < RANKS; who++) {
        char text[128];
        trn_cores_args args;
        memset(&args, 0, sizeof args);
        args.core.generation = TRN_TRAINIUM2;
        args.ranks = RANKS;
        args.cores_per_chip = 2;
        assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
        assert_int_equal(trn_cores_run(&cores, one_works, &who), TRN_OK);
        trn_cores_report_of(&cores, &report);
        trn_cores_end(&cores);
        near(report.time_s, fill_s, "time");
        near(report.share[TRN_ENGINE_VECTOR], 0.25, "of one of four");
        snprintf(text, sizeof text, "VectorE is busy 100 %% of 0.5 us on rank %d; collectives run 0 %% of it", who);
        assert_string_equal(report.bound_text, text);
    }
}

static void nothing_at_all(void **state)
{
    (void)state;
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = 2;
    assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
    assert_int_equal(trn_cores_run(&cores, idles, NULL), TRN_OK);
    trn_cores_report_of(&cores, &report);
    trn_cores_end(&cores);
    assert_string_equal(report.bound_text, "nothing has run");
    assert_true(report.time_s == 0 && report.instructions == 0 && report.late_s == 0 && report.collective_share == 0);
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) assert_true(report.share[e] == 0 && report.most[e] == 0);
}

/* ---- collectives of a kernel take what they are expected to, one after the other ---- */

typedef struct asked {
    trn_collective op;
    int64_t src_rows, dst_rows;
    int64_t bytes;
} asked;

static trn_status asks(trn_cores_rank *self, void *user)
{
    const asked *k = (const asked *)user;
    trn_core *core = &self->core;
    const trn_tensor from = trn_core_hbm(core, "from", trn_tensor_2d(TRN_F32, memory[self->rank][0], 128, 512));
    const trn_tensor to = trn_core_hbm(core, "to", trn_tensor_2d(TRN_F32, memory[self->rank][1], 128, 512));
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.src = trn_tensor_slice(from, 0, 0, k->src_rows);
    a.dst = trn_tensor_slice(to, 0, 0, k->dst_rows);
    for (int i = 0; i < 2; i++) {
        if (k->op == TRN_ALL_REDUCE)
            trn_cores_all_reduce(self, &a);
        else if (k->op == TRN_ALL_GATHER)
            trn_cores_all_gather(self, &a);
        else if (k->op == TRN_REDUCE_SCATTER)
            trn_cores_reduce_scatter(self, &a);
        else
            trn_cores_all_to_all(self, &a);
    }
    return TRN_OK;
}

static void two_calls_follow_each_other(void **state)
{
    (void)state;
    static const asked row[] = {
        { TRN_ALL_REDUCE, 64, 64, 64 * 2048 },
        { TRN_ALL_GATHER, 32, 128, 128 * 2048 },
        { TRN_REDUCE_SCATTER, 128, 32, 128 * 2048 },
        { TRN_ALL_TO_ALL, 64, 64, 64 * 2048 },
    };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const int chips[] = { 0, 1 };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int calibrated = 0; calibrated < 2; calibrated++) {
            trn_cores_args args;
            memset(&args, 0, sizeof args);
            args.core.generation = TRN_TRAINIUM2;
            args.ranks = RANKS;
            args.cores_per_chip = 2;
            args.uncalibrated = !calibrated;
            assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
            asked k = row[i];
            if (trn_cores_run(&cores, asks, &k)) fail_msg("%s", cores.failure.text);
            const trn_collective_args ask = { .net = &net,
                                              .op = row[i].op,
                                              .bytes = row[i].bytes,
                                              .chips = chips,
                                              .count = 2,
                                              .ranks_per_chip = 2,
                                              .in_graph = true,
                                              .uncalibrated = !calibrated };
            trn_cost cost;
            assert_int_equal(trn_collective_cost(&ask, &cost), TRN_OK);
            near(cores.time_s, 2 * (calibrated ? cost.expected_s : cost.time_s), trn_collective_name(row[i].op));
            trn_cores_end(&cores);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_and_waits),
        cmocka_unit_test(collectives_and_transfers),
        cmocka_unit_test(the_last_one_is_what_counts),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(two_calls_follow_each_other),
    };
    return cmocka_run_group_tests_name("cores_report", tests, NULL, NULL);
}
