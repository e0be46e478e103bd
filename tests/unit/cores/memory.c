/* cores/memory.c - memory that cores share, what they send each other, and what orders them.
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "unit/cores/groups.h"
#include "unit/many_cores.h"

/* ---- HBM of a logical core ---- */

static trn_status meets_in_hbm(trn_cores_rank *self, void *user)
{
    float *got = (float *)user;
    trn_core *core = &self->core;
    const int64_t shape[] = { 2, 8 }, other[] = { 2, 9 };
    const bool odd = got[0] > 0 && self->rank == 3;
    const trn_tensor both = trn_cores_hbm(self, "both", TRN_F32, 2, odd ? other : shape);
    const trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, 1, 8);
    const trn_memset_args set = { .dst = tile, .value = (float)(1 + self->rank) };
    trn_core_memset(core, &set);
    const trn_dma_copy_args store = { .dst = trn_tensor_slice(both, 0, self->program_id, 1), .src = tile };
    if (!odd) trn_core_dma_copy(core, &store);
    const trn_cores_barrier_args wait = { .data = both };
    if (trn_cores_barrier(self, &wait)) return TRN_OK;
    const trn_dma_copy_args load = { .dst = tile, .src = trn_tensor_slice(both, 0, 1 - self->program_id, 1) };
    if (trn_core_dma_copy(core, &load)) return TRN_OK;
    memcpy(&got[self->rank], tile.data, sizeof(float));
    return TRN_OK;
}

static trn_status asks_in_turn(trn_cores_rank *self, void *user)
{
    const int64_t shape[2] = { 4, 5 };
    const int turn = *(const int *)user;
    if (self->rank == 3) trn_cores_hbm(self, "z", TRN_F32, 1, &shape[turn]);
    if (self->rank == 2 && turn) trn_cores_hbm(self, "z", TRN_F32, 1, &shape[0]);
    return TRN_OK;
}

static void test_shared_hbm(void **state)
{
    (void)state;
    float got[4] = { 0 };
    const trn_cores_args args = chip_of(4, 2);
    run(&args, meets_in_hbm, got);
    trn_cores_end(&cores);
    for (int r = 0; r < 4; r++) assert_true(got[r] == (float)(1 + (r ^ 1)));
    refuse(&args, meets_in_hbm, got,
           "HBM tensor 'both' has another format or shape for rank 2 than for rank 3, which share it");
    int turn = 0; /* now rank 3 asks first, in a run of its own */
    if (trn_cores_begin(&cores, &args)) fail_msg("%s", cores.failure.text);
    assert_int_equal(trn_cores_run(&cores, asks_in_turn, &turn), TRN_OK);
    turn = 1;
    assert_int_equal(trn_cores_run(&cores, asks_in_turn, &turn), TRN_ESHAPE);
    assert_string_equal(cores.failure.text,
                        "HBM tensor 'z' has another format or shape for rank 2 than for rank 3, which share it");
    trn_cores_end(&cores);
}

/* ---- sendrecv and barrier ---- */

typedef struct swapped {
    float got[4];
    double before_s[4], after_s[4], wait_s[4];
} swapped;

static trn_status swaps(trn_cores_rank *self, void *user)
{
    swapped *s = (swapped *)user;
    trn_core *core = &self->core;
    const trn_tensor mine = trn_core_sbuf(core, "mine", TRN_F32, 128, 512);
    const trn_tensor theirs = trn_core_sbuf(core, "theirs", TRN_F32, 128, 512);
    const trn_memset_args set = { .dst = mine, .value = (float)(10 + self->rank) };
    for (int i = 0; i <= self->program_id; i++) trn_core_memset(core, &set);
    s->before_s[self->rank] = core->time_s;
    trn_cores_sendrecv_args a;
    memset(&a, 0, sizeof a);
    a.dst = theirs;
    a.src = mine;
    a.send_to_rank = a.recv_from_rank = 1 - self->program_id;
    if (trn_cores_sendrecv(self, &a)) return TRN_OK;
    s->after_s[self->rank] = core->time_s;
    memcpy(&s->got[self->rank], trn_tensor_slice(theirs, 0, 127, 1).data, sizeof(float));
    return TRN_OK;
}

static void test_sendrecv_swaps(void **state)
{
    (void)state;
    static swapped s;
    const trn_cores_args args = chip_of(4, 2);
    run(&args, swaps, &s);
    trn_dma_work work = { .generation = TRN_TRAINIUM2, .bytes = 128 * 512 * 4, .run_bytes = 2048 };
    trn_dma_cost cost;
    assert_int_equal(trn_dma_seconds(&work, &cost), TRN_OK);
    for (int r = 0; r < 4; r++) {
        assert_true(s.got[r] == (float)(10 + (r ^ 1)));
        const double start_s = s.before_s[r | 1]; /* the second one of each pair is later */
        assert_true(s.before_s[r & 2] < start_s);
        assert_true(fabs(s.after_s[r] - (start_s + cost.latency_s + cost.transfer_s)) < 1e-15);
        trn_core_report report;
        trn_core_report_of(&cores.rank[r].core, &report);
        assert_true(report.dma_bytes == work.bytes && report.engine[TRN_ENGINE_DMA].instructions == 1);
        assert_true(fabs(report.engine[TRN_ENGINE_DMA].busy_s - cost.transfer_s) < 1e-15);
    }
    trn_cores_end(&cores);
}

/* One of two moves something else first: both are done when its tile has arrived, too. */
static trn_status swaps_late(trn_cores_rank *self, void *user)
{
    swapped *s = (swapped *)user;
    static float memory[2][128 * 512];
    trn_core *core = &self->core;
    const trn_tensor far = trn_core_hbm(core, "far", trn_tensor_2d(TRN_F32, memory[self->rank], 128, 512));
    const trn_tensor other = trn_core_sbuf(core, "other", TRN_F32, 128, 512);
    const trn_dma_copy_args load = { .dst = other, .src = far };
    if (self->rank == 0) trn_core_dma_copy(core, &load);
    s->before_s[self->rank] = core->time_s;
    const trn_tensor mine = filled(core, "mine", TRN_F32, 128, 64, 1),
                     theirs = trn_core_sbuf(core, "t", TRN_F32, 128, 64);
    trn_cores_sendrecv_args a;
    memset(&a, 0, sizeof a);
    a.dst = theirs;
    a.src = mine;
    a.send_to_rank = a.recv_from_rank = 1 - self->program_id;
    trn_cores_sendrecv(self, &a);
    s->after_s[self->rank] = core->time_s;
    return TRN_OK;
}

static void test_sendrecv_ends_for_both(void **state)
{
    (void)state;
    static swapped s;
    const trn_cores_args args = chip_of(2, 2);
    run(&args, swaps_late, &s);
    assert_true(s.before_s[0] > s.before_s[1] && s.after_s[0] > s.before_s[0] && s.after_s[1] == s.after_s[0]);
    trn_cores_end(&cores);
}

typedef struct shared {
    float data[128 * 64], out[2][128 * 64];
    double start_s[2];
    bool barrier;
} shared;

/* Each writes half of a tensor in HBM and reads the other half. */
static trn_status shares(trn_cores_rank *self, void *user)
{
    shared *s = (shared *)user;
    trn_core *core = &self->core;
    const trn_tensor data = trn_core_hbm(core, "data", trn_tensor_2d(TRN_F32, s->data, 128, 64));
    const trn_tensor out = trn_core_hbm(core, "out", trn_tensor_2d(TRN_F32, s->out[self->rank], 128, 64));
    const trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, 64, 64);
    const trn_memset_args set = { .dst = tile, .value = (float)(1 + self->rank) };
    for (int i = 0; i < 1 + 20 * self->rank; i++) trn_core_memset(core, &set);
    const trn_dma_copy_args store = { .dst = trn_tensor_slice(data, 0, 64 * self->rank, 64), .src = tile };
    trn_core_dma_copy(core, &store);
    const trn_cores_barrier_args wait = { .data = data };
    trn_cores_barrier(self, &wait);
    s->start_s[self->rank] = core->time_s;
    const trn_dma_copy_args load = { .dst = out, .src = data };
    trn_core_dma_copy(core, &load);
    return TRN_OK;
}

static void test_barrier_orders_shared_memory(void **state)
{
    (void)state;
    static shared s;
    const trn_cores_args args = chip_of(2, 2);
    run(&args, shares, &s);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 128 * 64; i++) assert_true(s.out[r][i] == (i < 64 * 64 ? 1.0f : 2.0f));
    assert_true(s.start_s[0] == s.start_s[1]); /* both wait for the later one */
    assert_true(cores.rank[0].core.time_s == cores.rank[1].core.time_s);
    trn_cores_end(&cores);
}

/* ---- races ---- */

enum { BOTH_WRITE, WRITE_THEN_READ, COLUMNS, ROWS, OTHER_TENSOR, ORDERED, INTERLEAVED, BY_SENDRECV };

typedef struct raced {
    float x[64 * 64], y[64 * 64];
    int what;
} raced;

static trn_status races(trn_cores_rank *self, void *user)
{
    raced *s = (raced *)user;
    trn_core *core = &self->core;
    const int me = self->rank;
    const trn_tensor x = trn_core_hbm(core, "x", trn_tensor_2d(TRN_F32, s->x, 64, 64));
    const trn_tensor y = trn_core_hbm(core, "y", trn_tensor_2d(TRN_F32, s->y, 64, 64));
    const trn_tensor tile = filled(core, "tile", TRN_F32, 32, 32, 1), other = trn_core_sbuf(core, "o", TRN_F32, 32, 32);
    const trn_tensor quarter = trn_tensor_slice(trn_tensor_slice(x, 0, 0, 32), 1, 0, 32);
    const bool columns = s->what == COLUMNS, rows = s->what == ROWS;
    trn_tensor part = trn_tensor_slice(trn_tensor_slice(x, 0, rows ? 32 * me : 0, 32), 1, columns ? 32 * me : 0, 32);
    if (s->what == INTERLEAVED)
        part = trn_tensor_slice(trn_tensor_slice(trn_tensor_split(x, 1, 2), 0, 0, 32), 2, me, 1);
    const trn_dma_copy_args store = { .dst = part, .src = tile }, load = { .dst = other, .src = quarter };
    const trn_cores_barrier_args wait = { .data = s->what == OTHER_TENSOR ? y : x };
    const bool writes = me == 0 || s->what == BOTH_WRITE || columns || rows || s->what == INTERLEAVED;
    if (writes) trn_core_dma_copy(core, &store);
    trn_cores_sendrecv_args swap;
    memset(&swap, 0, sizeof swap);
    swap.dst = other;
    swap.src = tile;
    swap.send_to_rank = swap.recv_from_rank = 1 - me;
    if (s->what == BY_SENDRECV) trn_cores_sendrecv(self, &swap);
    if (s->what == OTHER_TENSOR || s->what == ORDERED) trn_cores_barrier(self, &wait);
    if (!writes) trn_core_dma_copy(core, &load);
    return TRN_OK;
}

static void test_races_are_told(void **state)
{
    (void)state;
    static raced s;
    static const struct {
        int what;
        const char *sentence;
    } row[] = {
        { BOTH_WRITE, "rank 1 writes 'x' (instruction 0), which rank 0 writes too (instruction 0), and nothing orders "
                      "them" },
        { WRITE_THEN_READ, "rank 1 reads 'x' (instruction 0), which rank 0 writes (instruction 0), and nothing orders "
                           "them" },
        { OTHER_TENSOR, "rank 1 reads 'x' (instruction 1), which rank 0 writes (instruction 0), and nothing orders "
                        "them" },
        { COLUMNS, "" },
        { ROWS, "" },
        { ORDERED, "" },
        { INTERLEAVED, "" },
        { BY_SENDRECV, "" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_cores_args args = chip_of(2, 2);
        args.threads = 1; /* races are some of the host's, too */
        s.what = row[i].what;
        if (row[i].sentence[0]) refuse(&args, races, &s, row[i].sentence);
        args.no_races = row[i].sentence[0] != 0;
        run(&args, races, &s);
        trn_cores_end(&cores);
    }
}

/* ---- HBM with nothing in it; who has met ---- */

typedef struct early {
    float x[2][32 * 32], y[2][32 * 32];
    uint64_t bits[4][32 * 32 * 4 / 64];
    trn_hbm_written written[4];
    bool fills[2];
    char met[128];
} early;

static trn_tensor empty(early *s, trn_core *core, const char *name, float *data, int which)
{
    const trn_tensor t = trn_tensor_2d(TRN_F32, data, 32, 32);
    trn_hbm_written_begin(&s->written[which], t, s->bits[which]);
    return trn_core_hbm_empty(core, name, t, &s->written[which]);
}

static trn_status reduces_early(trn_cores_rank *self, void *user)
{
    early *s = (early *)user;
    trn_core *core = &self->core;
    const int me = self->rank;
    const trn_tensor x = empty(s, core, "x", s->x[me], me), y = empty(s, core, "y", s->y[me], 2 + me);
    const trn_tensor tile = filled(core, "tile", TRN_F32, 32, 32, 1);
    const trn_dma_copy_args store = { .dst = x, .src = tile };
    if (s->fills[me]) trn_core_dma_copy(core, &store);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = y;
    a.src = x;
    const trn_status status = trn_cores_all_reduce(self, &a);
    return status ? status : trn_core_result(core, y);
}

static void hears(void *user, const char *call, const int *member, int members, const trn_tensor *data)
{
    early *s = (early *)user;
    const size_t used = strlen(s->met);
    snprintf(s->met + used, sizeof s->met - used, "%s of %d from %d%s;", call, members, member[0],
             data->rank ? " for data" : "");
}

static trn_status waits_for_data(trn_cores_rank *self, void *user)
{
    early *s = (early *)user;
    const trn_tensor x = trn_core_hbm(&self->core, "x", trn_tensor_2d(TRN_F32, s->x[0], 32, 32));
    const trn_cores_barrier_args one = { .data = x };
    const trn_cores_barrier_args all = { .all = false };
    trn_cores_barrier(self, &one);
    return trn_cores_barrier(self, &all);
}

static void test_hbm_with_nothing_in_it(void **state)
{
    (void)state;
    static early s;
    trn_cores_args args = chip_of(2, 1);
    args.met = hears;
    args.met_user = &s;
    for (int lacks = 0; lacks < 2; lacks++) {
        s.fills[lacks] = false;
        s.fills[1 - lacks] = true;
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "rank %d: instruction %d, all_reduce: src reads row 0, element 0 of 'x', "
                 "which nothing has written",
                 lacks, 0);
        refuse(&args, reduces_early, &s, sentence);
        assert_string_equal(s.met, "");
    }
    s.fills[0] = s.fills[1] = true;
    run(&args, reduces_early, &s);
    for (int i = 0; i < 4; i++) assert_int_equal(s.written[i].unwritten, 0);
    assert_string_equal(s.met, "all_reduce of 2 from 0;");
    trn_cores_end(&cores);
    args.lnc = 2;
    s.met[0] = 0;
    run(&args, waits_for_data, &s);
    assert_string_equal(s.met, "core_barrier of 2 from 0 for data;core_barrier of 2 from 0;");
    trn_cores_end(&cores);
}

int cores_memory(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_hbm),
        cmocka_unit_test(test_sendrecv_swaps),
        cmocka_unit_test(test_sendrecv_ends_for_both),
        cmocka_unit_test(test_barrier_orders_shared_memory),
        cmocka_unit_test(test_races_are_told),
        cmocka_unit_test(test_hbm_with_nothing_in_it),
    };
    return cmocka_run_group_tests_name("cores_memory", tests, NULL, NULL);
}
