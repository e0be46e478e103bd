/* cores/hosts.c - whatever the host's threads and processes: the values, the times and the failures are the same.
 * SPDX-License-Identifier: MIT
 */
#include "unit/cores/groups.h"
#include "unit/cores_wire.h"
#include "unit/many_cores.h"

/* ---- the host's threads, and processes ---- */

static uint64_t fold(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

enum { MIXED = 32 };

typedef struct mixture {
    uint64_t digest[MIXED];
    float hbm[MIXED][2][MIXED * 8];
    uint32_t table[MIXED][2][MIXED];
    int fails; /* the rank that does, or -1 */
    int asks;  /* and one that asks for shared memory of another shape than its sibling, in the same round */
} mixture;

/* All kinds of calls, with work of different length between them. */
static trn_status mixed(trn_cores_rank *self, void *user)
{
    mixture *m = (mixture *)user;
    trn_core *core = &self->core;
    const int r = self->rank, n = self->rank_ids;
    trn_tensor x = filled(core, "x", TRN_BF16, 32, 64, (uint32_t)r), y = trn_core_sbuf(core, "y", TRN_BF16, 32, 64);
    trn_tensor all = trn_core_sbuf(core, "all", TRN_BF16, 32, 64 * n),
               part = trn_core_sbuf(core, "part", TRN_BF16, 2, 64);
    trn_tensor u = trn_core_hbm(core, "u", trn_tensor_2d(TRN_F32, m->hbm[r][0], 4 * n, 2));
    trn_tensor v = trn_core_hbm(core, "v", trn_tensor_2d(TRN_F32, m->hbm[r][1], 4 * n, 2));
    trn_tensor table = trn_core_hbm(core, "t", trn_tensor_2d(TRN_U32, m->table[r], 2, n));
    for (int i = 0; i < 8 * n; i++) m->hbm[r][0][i] = (float)(r * 3 + i) / 7, m->hbm[r][1][i] = 0;
    for (int i = 0; i < n; i++) m->table[r][0][i] = (uint32_t)(r + i) % 9, m->table[r][1][i] = (uint32_t)i;
    trn_cores_collective_args a;
    for (int i = 0; i < 3; i++) {
        const trn_tensor_tensor_args add = { .dst = y, .data1 = x, .data2 = x, .op = TRN_ALU_ADD };
        for (int k = 0; k <= (r * 7 + i) % 5; k++) trn_core_tensor_tensor(core, &add);
        if (i == 2 && r == m->fails) trn_core_tensor_tensor(core, &(trn_tensor_tensor_args){ .dst = y });
        const int64_t size[2] = { 4, 5 };
        if (i == 2) trn_cores_hbm(self, "z", TRN_F32, 1, &size[r == m->asks]);
        trn_cores_sendrecv_args swap;
        memset(&swap, 0, sizeof swap);
        swap.dst = x;
        swap.src = y;
        swap.send_to_rank = swap.recv_from_rank = 1 - self->program_id;
        swap.pipe_id = i;
        trn_cores_sendrecv(self, &swap);
        memset(&a, 0, sizeof a);
        a.dst = y;
        a.src = x;
        a.rounding = TRN_STOCHASTIC;
        a.seed = (uint64_t)i;
        trn_cores_all_reduce(self, &a);
        a.op = TRN_ALU_MAXIMUM;
        a.rounding = TRN_NEAREST_EVEN;
        if (n == 16) a.dst = part, trn_cores_reduce_scatter(self, &a);
        memset(&a, 0, sizeof a);
        a.dst = all;
        a.src = y;
        a.collective_dim = 1;
        trn_cores_all_gather(self, &a);
        memset(&a, 0, sizeof a);
        a.dst = v;
        a.src = u;
        trn_cores_all_to_all(self, &a);
        a.metadata = table;
        trn_cores_all_gather_v(self, &a);
        a.metadata = trn_tensor_slice(table, 0, 0, 2);
        trn_cores_all_to_all_v(self, &a);
        memset(&a.metadata, 0, sizeof a.metadata);
        trn_cores_collective_permute_implicit(self, &a);
        a.src1 = u;
        trn_cores_collective_permute_implicit_reduce(self, &a);
        memset(&a.src1, 0, sizeof a.src1);
        const int pairs[][2] = { { 0, n - 1 }, { n - 1, 1 }, { 1, 0 } };
        a.source_target_pairs = pairs;
        a.pairs = 3;
        trn_cores_collective_permute(self, &a);
        a.dst = trn_tensor_slice(v, 0, 0, 0); /* nothing at all */
        a.src = trn_tensor_slice(u, 0, 0, 0);
        trn_cores_all_reduce(self, &a);
        const trn_cores_barrier_args everybody = { .all = true }, two = { .data = v };
        trn_cores_barrier(self, i ? &everybody : &two);
    }
    const trn_memset_args set = { .dst = y, .value = 1 };
    for (int k = 0; k < (r * 11) % 40; k++) trn_core_memset(core, &set);
    if (trn_core_status(core, NULL)) return TRN_OK;
    uint64_t h = fold(14695981039346656037u, &core->time_s, sizeof core->time_s);
    for (int p = 0; p < 32; p++) h = fold(h, trn_tensor_slice(all, 0, p, 1).data, 128 * (size_t)n);
    m->digest[r] = fold(fold(h, m->hbm[r][1], 32 * (size_t)n), part.data, 128);
    return TRN_OK;
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    static mixture m[4];
    const int threads[] = { 1, 2, 3, MIXED };
    for (int i = 0; i < 4; i++) {
        trn_cores_args args = chip_of(MIXED, 2);
        args.threads = threads[i];
        args.cores_per_chip = 4;
        m[i].fails = m[i].asks = -1;
        run(&args, mixed, &m[i]);
        trn_cores_end(&cores);
        assert_memory_equal(m[i].digest, m[0].digest, sizeof m[0].digest);
    }
}

enum { PROCESSES = WIRE_MOST };

typedef struct citizen {
    wire *w;
    mixture *m;
    trn_cores_args args;
    trn_cores_exchange exchange;
    trn_cores cores;
    trn_status status;
    int gathers, cut; /* cut: after so many gathers they fail; 0 = never */
} citizen;

static trn_status gather(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error)
{
    citizen *c = (citizen *)user;
    assert_int_equal(counts[c->exchange.process], bytes);
    if (c->cut && ++c->gathers >= c->cut) {
        snprintf(error->text, sizeof error->text, "the line is cut");
        return TRN_EIO;
    }
    wire_gather(c->w, c->exchange.process, mine, all, counts);
    return TRN_OK;
}

static void *live(void *user)
{
    citizen *c = (citizen *)user;
    c->exchange.gather = gather;
    c->exchange.user = c;
    c->args.exchange = &c->exchange;
    c->status = trn_cores_begin(&c->cores, &c->args);
    if (c->status) return NULL;
    c->status = trn_cores_run(&c->cores, mixed, c->m);
    trn_cores_end(&c->cores);
    return NULL;
}

static citizen town[PROCESSES];

static void live_all(int processes, mixture *m, int cut)
{
    wire w;
    pthread_t thread[PROCESSES];
    memset(town, 0, sizeof town);
    wire_begin(&w, processes);
    for (int p = 0; p < processes; p++) {
        town[p].w = &w;
        town[p].m = m;
        town[p].cut = cut;
        town[p].args = chip_of(MIXED, 2);
        town[p].args.cores_per_chip = 4;
        town[p].args.threads = 1 + p % 2;
        town[p].exchange.process = p;
        town[p].exchange.processes = processes;
        assert_int_equal(pthread_create(&thread[p], NULL, live, &town[p]), 0);
    }
    for (int p = 0; p < processes; p++) pthread_join(thread[p], NULL);
    wire_end(&w);
}

static void test_processes_change_nothing(void **state)
{
    (void)state;
    static mixture one, many;
    static const int processes[] = { 1, 2, 3, 4, 8, PROCESSES }; /* there are 8 chips */
    trn_cores_args args = chip_of(MIXED, 2);
    args.cores_per_chip = 4;
    one.fails = many.fails = one.asks = many.asks = -1;
    run(&args, mixed, &one);
    const double time_s = cores.time_s;
    trn_cores_end(&cores);
    for (int i = 0; i < 6; i++) {
        memset(many.digest, 0, sizeof many.digest);
        live_all(processes[i], &many, 0);
        for (int p = 0; p < processes[i]; p++) {
            if (town[p].status) fail_msg("%d of %d: %s", p, processes[i], town[p].cores.failure.text);
            assert_true(town[p].cores.time_s == time_s);
        }
        assert_memory_equal(many.digest, one.digest, sizeof one.digest);
    }
}

static void test_processes_fail_together(void **state)
{
    (void)state;
    static mixture one, many;
    trn_cores_args args = chip_of(MIXED, 2);
    args.cores_per_chip = 4;
    one.fails = many.fails = 13;
    one.asks = many.asks = 1; /* in the first process; but instructions come first */
    if (trn_cores_begin(&cores, &args)) fail_msg("%s", cores.failure.text);
    assert_int_not_equal(trn_cores_run(&cores, mixed, &one), TRN_OK);
    live_all(4, &many, 0);
    for (int p = 0; p < 4; p++) assert_string_equal(town[p].cores.failure.text, cores.failure.text);
    assert_non_null(strstr(cores.failure.text, "rank 13: instruction"));
    trn_cores_end(&cores);
    many.fails = many.asks = -1;
    live_all(4, &many, 7); /* the seventh gather of each */
    for (int p = 0; p < 4; p++) {
        char text[64];
        snprintf(text, sizeof text, "process %d: the line is cut", p);
        assert_string_equal(town[p].cores.failure.text, text);
    }
}

/* ---- many ---- */

static trn_status counts(trn_cores_rank *self, void *user)
{
    float *sum = (float *)user;
    const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_F32, 1, 1);
    const trn_memset_args set = { .dst = t, .value = 1 };
    trn_core_memset(&self->core, &set);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = t;
    trn_cores_all_reduce(self, &a);
    const trn_cores_barrier_args all = { .all = true };
    trn_cores_barrier(self, &all);
    memcpy(&sum[self->rank], t.data, sizeof(float));
    return TRN_OK;
}

static void test_hundreds_of_ranks(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    enum { MANY = 72 }; /* they look at every byte of memory that is asked for */
#else
    enum { MANY = 576 };
#endif
    static float sum[MANY];
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM3;
    args.ranks = MANY;
    args.cores_per_chip = 4;
    run(&args, counts, sum);
    for (int r = 0; r < MANY; r++) assert_true(sum[r] == (float)MANY);
    trn_cores_end(&cores);
}

/* One rank needs no thread, and a run may follow another. */
static void test_one_rank(void **state)
{
    (void)state;
    float sum = 0;
    trn_cores_args args = chip_of(1, 1);
    run(&args, counts, &sum);
    assert_true(sum == 1.0f);
    const double time_s = cores.time_s;
    assert_int_equal(trn_cores_run(&cores, counts, &sum), TRN_OK);
    assert_true(cores.time_s > time_s);
    trn_cores_end(&cores);
    assert_int_equal(trn_cores_run(&cores, counts, &sum), TRN_EINVAL);
}

static trn_status leaves(trn_cores_rank *self, void *user)
{
    (void)self, (void)user;
    return TRN_OK;
}

/* Pages of this process's address space; 0: it is not told here. */
static long pages_of_this_process(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages;
}

/* Threads that nobody joins keep their stacks, of 512 KiB each: 100 MB here. */
static void test_nothing_is_left_of_threads(void **state)
{
    (void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const trn_cores_args args = chip_of(2, 1);
    run(&args, leaves, NULL);
    const long before = pages_of_this_process();
    for (int i = 0; i < 100; i++) assert_int_equal(trn_cores_run(&cores, leaves, NULL), TRN_OK);
    assert_true(pages_of_this_process() - before < (20 << 20) / 4096);
    trn_cores_end(&cores);
#else
    (void)leaves, (void)pages_of_this_process;
#endif
}

int cores_hosts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_processes_change_nothing),
        cmocka_unit_test(test_processes_fail_together),
        cmocka_unit_test(test_hundreds_of_ranks),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_nothing_is_left_of_threads),
    };
    return cmocka_run_group_tests_name("cores_hosts", tests, NULL, NULL);
}
