/* cores/clocks.c - when calls end, what a trace shows of them, and lists along a mesh.
 * SPDX-License-Identifier: MIT
 *
 * Times are held against trn_collective_cost and trn_dma_seconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <time.h>

#include "unit/cores/groups.h"
#include "unit/many_cores.h"

/* ---- trace and report ---- */

static char printed[1 << 20];
static size_t printed_bytes;

static void keep(void *user, const char *text, size_t bytes)
{
    (void)user;
    assert_true(printed_bytes + bytes < sizeof printed);
    memcpy(printed + printed_bytes, text, bytes);
    printed_bytes += bytes;
    printed[printed_bytes] = 0;
}

static trn_status swaps_once(trn_cores_rank *self, void *user)
{
    trn_core *core = &self->core;
    const trn_tensor mine = trn_core_sbuf(core, "mine", TRN_F32, 128, 512);
    const trn_memset_args set = { .dst = mine, .value = 1 };
    for (int i = 0; i <= self->program_id; i++) trn_core_memset(core, &set);
    trn_cores_sendrecv_args a;
    memset(&a, 0, sizeof a);
    a.dst = trn_core_sbuf(core, "theirs", TRN_F32, 128, 512);
    a.src = mine;
    a.send_to_rank = a.recv_from_rank = 1 - self->program_id;
    (void)user;
    return trn_cores_sendrecv(self, &a);
}

static trn_status counts_of_all(trn_cores_rank *self, void *user)
{
    const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_F32, 1, 1);
    const trn_memset_args set = { .dst = t, .value = 1 };
    trn_core_memset(&self->core, &set);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = t;
    (void)user;
    return trn_cores_all_reduce(self, &a);
}

static void test_trace_and_report(void **state)
{
    (void)state;
    static trn_trace_event event[4000];
    trn_cores_args args = chip_of(4, 2);
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = 4000;
    args.trace = &trace;
    run(&args, swaps_once, NULL);
    assert_int_equal(trn_cores_run(&cores, counts_of_all, NULL), TRN_OK);
    assert_int_equal(trace.tracks, 4 * TRN_CORES_TRACKS);
    assert_int_equal(trace.lost, 0);
    assert_string_equal(trace.names[3 * TRN_CORES_TRACKS + 5], "r3 CC");
    trn_trace_json(&trace, keep, NULL);
    const trn_trace_svg_args svg = { .trace = &trace, .write = keep };
    trn_trace_svg(&svg);
    assert_non_null(strstr(printed, "r2 VectorE"));
    assert_non_null(strstr(printed, "all_reduce"));
    double end_s[4 * TRN_CORES_TRACKS] = { 0 }, last_s = 0;
    int calls = 0;
    for (int64_t i = 0; i < trace.count; i++) {
        assert_true(event[i].start_s >= end_s[event[i].track] - 1e-15);
        end_s[event[i].track] = event[i].start_s + event[i].duration_s;
        last_s = fmax(last_s, end_s[event[i].track]);
        calls += !strcmp(event[i].name, "all_reduce") && event[i].track % TRN_CORES_TRACKS == 5;
    }
    assert_int_equal(calls, 4);
    assert_true(fabs(last_s - cores.time_s) < 1e-15);
    trn_cores_report report;
    trn_cores_report_of(&cores, &report);
    assert_true(report.time_s == cores.time_s && report.late_s > 0 && report.waited_s > 0 && report.late_rank % 2 == 1);
    assert_true(report.collective_share > 0.5 && report.share[TRN_ENGINE_DMA] > 0);
    assert_int_equal(report.instructions, trace.count);
    assert_non_null(strstr(report.bound_text, "collectives run"));
    trn_cores_end(&cores);
    assert_int_equal(trace.tracks, 0); /* their names are gone */
    assert_null(trace.names);
}

static trn_status idles(trn_cores_rank *self, void *user)
{
    (void)self;
    (void)user;
    return TRN_OK;
}

static void test_lists_along_a_mesh(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int each = 1; each < 5; each *= 2)
        for (int all_cores = 0; all_cores < 2; all_cores++)
            for (int axis = 0; axis < 2; axis++) {
                trn_cores_args args = chip_of(16 * each * 2, 2);
                trn_mesh mesh;
                trn_replica_group g;
                int rank[64], none = 7;
                args.cores_per_chip = 2 * each;
                run(&args, idles, NULL);
                assert_int_equal(trn_mesh_init(&mesh, &net, "data=2,tensor=8"), TRN_OK);
                assert_int_equal(trn_cores_mesh_group(&cores, &mesh, &axis, 1, all_cores, rank, &g), TRN_OK);
                const int size = axis ? 8 : 2;
                assert_int_equal(g.count, all_cores ? size * each : size);
                assert_int_equal(g.count * g.groups, 16 * each);
                for (int i = 0; i < 16 * each; i++) {
                    const int list = i / g.count, at = i % g.count;
                    const int group = all_cores ? list : list / each, chip = all_cores ? at / each : at;
                    const int k = all_cores ? at % each : list % each;
                    const int expected = axis ? 8 * group + chip : group + 8 * chip;
                    assert_int_equal(rank[i], expected * each + k);
                }
                assert_int_equal(trn_cores_mesh_group(&cores, &mesh, &none, 1, all_cores, rank, &g), TRN_EINVAL);
                trn_cores_end(&cores);
            }
}

/* ---- what else cores have ---- */

static trn_status holds(trn_cores_rank *self, void *user)
{
    double *end_s = (double *)user;
    const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_F32, 128, 512);
    const trn_memset_args set = { .dst = t, .value = 1 };
    for (int i = 0; i < 1 + 50 * self->rank; i++) trn_core_memset(&self->core, &set);
    const trn_cores_barrier_args all = { .all = true };
    trn_cores_barrier(self, &all);
    end_s[self->rank] = self->core.time_s;
    trn_core_memset(&self->core, &set);
    return TRN_OK;
}

static void test_barrier_without_data_holds_everything(void **state)
{
    (void)state;
    double end_s[2];
    const trn_cores_args args = chip_of(2, 1);
    run(&args, holds, end_s);
    assert_true(end_s[0] == end_s[1]);
    assert_true(cores.rank[0].core.time_s > end_s[0]); /* its Vector engine would have been free long before */
    assert_true(cores.rank[0].core.time_s == cores.rank[1].core.time_s);
    trn_cores_end(&cores);
}

static trn_status draws(trn_cores_rank *self, void *user)
{
    uint32_t *word = (uint32_t *)user;
    const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_U32, 1, 4);
    const trn_rng_args rng = { .dst = t };
    if (trn_core_rng(&self->core, &rng) == TRN_OK) memcpy(&word[4 * self->rank], t.data, 16);
    return TRN_OK;
}

static void test_ranks_draw_other_numbers(void **state)
{
    (void)state;
    uint32_t word[2][4] = { { 0 } }, again[4] = { 0 };
    trn_cores_args args = chip_of(2, 1);
    args.core.seed = 41;
    run(&args, draws, word);
    trn_cores_end(&cores);
    assert_memory_not_equal(word[0], word[1], sizeof word[0]);
    args = chip_of(1, 1);
    args.core.seed = 42;
    run(&args, draws, again);
    trn_cores_end(&cores);
    assert_memory_equal(again, word[1], sizeof again);
}

typedef struct crowd {
    int now, most;
} crowd;

static trn_status crowds(trn_cores_rank *self, void *user)
{
    crowd *c = (crowd *)user;
    for (int i = 0; i < 20; i++) {
        const int now = __atomic_add_fetch(&c->now, 1, __ATOMIC_SEQ_CST);
        int most = __atomic_load_n(&c->most, __ATOMIC_SEQ_CST);
        while (now > most &&
               !__atomic_compare_exchange_n(&c->most, &most, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
        const struct timespec some = { 0, 100000 };
        nanosleep(&some, NULL);
        __atomic_sub_fetch(&c->now, 1, __ATOMIC_SEQ_CST);
        const trn_cores_barrier_args all = { .all = true };
        trn_cores_barrier(self, &all);
    }
    return TRN_OK;
}

static void test_so_many_run_at_once(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++) {
        crowd c = { 0, 0 };
        trn_cores_args args = chip_of(8, 1);
        args.threads = threads;
        run(&args, crowds, &c);
        trn_cores_end(&cores);
        assert_true(c.most >= 1 && c.most <= threads);
    }
}

/* ---- times ---- */

static trn_status times(trn_cores_rank *self, void *user)
{
    double *time_s = (double *)user;
    const trn_tensor t = filled(&self->core, "t", TRN_BF16, 128, 256, 1);
    const trn_memset_args set = { .dst = t, .value = 1 };
    for (int i = 0; i <= self->rank * 37 % 64; i++) trn_core_memset(&self->core, &set);
    const double before_s = self->core.time_s;
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = t;
    trn_cores_all_reduce(self, &a);
    if (self->rank * 37 % 64 == 63) *time_s = self->core.time_s - before_s;
    return TRN_OK;
}

static void test_collectives_take_what_is_expected(void **state)
{
    (void)state;
    for (int uncalibrated = 0; uncalibrated < 2; uncalibrated++) {
        trn_cores_args args = chip_of(64, 1);
        double time_s = 0;
        args.cores_per_chip = 4;
        args.uncalibrated = uncalibrated;
        run(&args, times, &time_s);
        trn_collective_args a;
        trn_cost cost;
        memset(&a, 0, sizeof a);
        a.net = &cores.net;
        a.op = TRN_ALL_REDUCE;
        a.bytes = 128 * 256 * 2;
        a.ranks_per_chip = 4;
        a.in_graph = true;
        a.uncalibrated = uncalibrated;
        assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
        assert_true(fabs(time_s - (uncalibrated ? cost.time_s : cost.expected_s)) < 1e-12);
        for (int r = 0; r < 64; r++) assert_true(cores.rank[r].core.time_s == cores.time_s);
        trn_cores_end(&cores);
    }
}

/* Two lists that share all chips share their links, too: each takes as long as if all bytes were its own. */
static trn_status times_of_halves(trn_cores_rank *self, void *user)
{
    static const int lists[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    const trn_tensor t = filled(&self->core, "t", TRN_BF16, 128, 256, 1);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = t;
    a.replica_group.rank = lists;
    a.replica_group.count = 4;
    a.replica_group.groups = 2;
    (void)user;
    return trn_cores_all_reduce(self, &a);
}

static void test_lists_share_links(void **state)
{
    (void)state;
    trn_cores_args args = chip_of(8, 1);
    args.cores_per_chip = 2;
    run(&args, times_of_halves, NULL);
    trn_collective_args a;
    trn_cost cost;
    const int chip[] = { 0, 1, 2, 3 };
    memset(&a, 0, sizeof a);
    a.net = &cores.net;
    a.op = TRN_ALL_REDUCE;
    a.bytes = 128 * 256 * 2;
    a.chips = chip;
    a.count = 4;
    a.in_graph = true;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    a.algorithm = cost.algorithm;
    a.single_step = cost.single_step;
    a.bytes *= 2;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    for (int r = 0; r < 8; r++) assert_true(fabs(cores.rank[r].core.time_s - cost.expected_s) < 1e-12);
    trn_cores_end(&cores);
}

/* How much each sends is told first: one more gather, of four bytes a rank. */
static float sent[8][8], received[8][64];
static uint32_t sizes[8][2][8];

static trn_status times_of_sizes(trn_cores_rank *self, void *user)
{
    const int r = self->rank;
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    (void)user;
    for (int i = 0; i < 8; i++) sizes[r][0][i] = 8, sizes[r][1][i] = 0;
    a.src = trn_core_hbm(&self->core, "u", trn_tensor_2d(TRN_F32, sent[r], 8, 1));
    a.dst = trn_core_hbm(&self->core, "v", trn_tensor_2d(TRN_F32, received[r], 64, 1));
    a.metadata = trn_core_hbm(&self->core, "t", trn_tensor_2d(TRN_U32, sizes[r], 2, 8));
    return trn_cores_all_gather_v(self, &a);
}

static void test_sizes_are_told_first(void **state)
{
    (void)state;
    for (int uncalibrated = 0; uncalibrated < 2; uncalibrated++) {
        trn_cores_args args = chip_of(8, 1);
        args.uncalibrated = uncalibrated;
        run(&args, times_of_sizes, NULL);
        trn_collective_args a;
        trn_cost cost[2];
        memset(&a, 0, sizeof a);
        a.net = &cores.net;
        a.op = TRN_ALL_GATHER;
        a.ranks_per_chip = args.cores_per_chip ? args.cores_per_chip : 8;
        a.count = 8 / a.ranks_per_chip;
        const int chip[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
        a.chips = chip;
        a.in_graph = true;
        a.uncalibrated = uncalibrated;
        for (int i = 0; i < 2; i++) {
            a.bytes = i ? 64 * 4 : 8 * 4;
            assert_int_equal(trn_collective_cost(&a, &cost[i]), TRN_OK);
        }
        const double all = uncalibrated ? cost[1].time_s : cost[0].expected_s + cost[1].expected_s;
        if (fabs(cores.rank[0].core.time_s - all) > 1e-12)
            fail_msg("%g s, expected %g", cores.rank[0].core.time_s, all);
        trn_cores_end(&cores);
    }
}

int cores_clocks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_and_report),
        cmocka_unit_test(test_lists_along_a_mesh),
        cmocka_unit_test(test_barrier_without_data_holds_everything),
        cmocka_unit_test(test_ranks_draw_other_numbers),
        cmocka_unit_test(test_so_many_run_at_once),
        cmocka_unit_test(test_collectives_take_what_is_expected),
        cmocka_unit_test(test_lists_share_links),
        cmocka_unit_test(test_sizes_are_told_first),
    };
    return cmocka_run_group_tests_name("cores_clocks", tests, NULL, NULL);
}
