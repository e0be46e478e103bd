/* test_cores_processes.c - every collective between the cores of several processes gives what one process gives.
 * SPDX-License-Identifier: MIT
 *
 * Processes are threads here. What a rank receives is written out by hand; times and bytes are those of a run in one
 * process.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "trnmath/trn_cores.h"
#include "unit/cores_wire.h"

enum { RANKS = 4, MOST = 4, N = 64, CALLS = 7 };

typedef struct citizen {
    wire *w;
    trn_cores cores;
    trn_cores_exchange exchange;
    trn_status status;
    trn_cores_kernel *kernel;
    int gathers;
} citizen;

static trn_status gather(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error)
{
    citizen *c = (citizen *)user;
    (void)bytes, (void)error;
    c->gathers++;
    wire_gather(c->w, c->exchange.process, mine, all, counts);
    return TRN_OK;
}

/* ---- what each rank does: in[k] = 100 rank + k ---- */

typedef struct results {
    float in[RANKS][N], more[RANKS][N], out[CALLS][RANKS][N];
    uint32_t table[RANKS][4 * RANKS];
    double time_s[RANKS];
} results;

static results now;

static trn_status kernel(trn_cores_rank *self, void *user)
{
    static const int inner[] = { 1, 2, 0, 3 }, pairs[][2] = { { 0, 3 }, { 1, 0 }, { 3, 2 } };
    results *x = (results *)user;
    trn_core *core = &self->core;
    const int r = self->rank;
    for (int k = 0; k < N; k++) x->in[r][k] = (float)(100 * r + k), x->more[r][k] = 0.25f;
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < N; k++) x->out[i][r][k] = -1;
    for (int to = 0; to < RANKS; to++) { /* to + 1 elements from 8 to on, for each */
        x->table[r][to] = (uint32_t)to + 1;
        x->table[r][RANKS + to] = 8 * (uint32_t)to;
    }
    const trn_tensor in = trn_core_hbm(core, "in", trn_tensor_2d(TRN_F32, x->in[r], N / 4, 4));
    const trn_tensor more = trn_core_hbm(core, "more", trn_tensor_2d(TRN_F32, x->more[r], N / 4, 4));
    trn_tensor out[CALLS];
    for (int i = 0; i < CALLS; i++) out[i] = trn_core_hbm(core, "out", trn_tensor_2d(TRN_F32, x->out[i][r], N / 4, 4));
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.metadata = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, x->table[r], 4, RANKS));
    a.src = in, a.dst = out[0];
    trn_cores_all_to_all_v(self, &a);
    a.src = trn_tensor_slice(in, 0, 0, 4), a.dst = out[6]; /* one element of each, into a dst that is larger */
    trn_cores_all_gather_v(self, &a);
    a.dst = out[1];
    trn_cores_all_gather(self, &a);
    a.src = in, a.dst = trn_tensor_slice(out[2], 0, 0, 4);
    trn_cores_reduce_scatter(self, &a);
    a.dst = out[3], a.source_target_pairs = pairs, a.pairs = 3;
    trn_cores_collective_permute(self, &a);
    a.dst = out[4], a.src1 = more;
    trn_cores_collective_permute_implicit_reduce(self, &a);
    a.replica_group.rank = inner, a.replica_group.count = 2, a.replica_group.groups = 2; /* {1, 2} and {0, 3} */
    a.dst = out[5];
    trn_cores_all_reduce(self, &a);
    x->time_s[r] = core->time_s;
    return TRN_OK;
}

static void *live(void *user)
{
    citizen *c = (citizen *)user;
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = RANKS;
    args.cores_per_chip = 1;
    args.threads = 1;
    args.exchange = c->w->processes > 1 ? &c->exchange : NULL;
    c->status = trn_cores_begin(&c->cores, &args);
    if (!c->status) c->status = trn_cores_run(&c->cores, c->kernel, &now);
    if (!c->status) trn_cores_end(&c->cores);
    return NULL;
}

static citizen town[MOST];

static void run(int processes, trn_cores_kernel *does)
{
    wire w;
    pthread_t thread[MOST];
    memset(town, 0, sizeof town);
    memset(&now, 0, sizeof now);
    wire_begin(&w, processes);
    for (int p = 0; p < processes; p++) {
        town[p].w = &w;
        town[p].kernel = does;
        town[p].exchange = (trn_cores_exchange){ p, processes, gather, &town[p] };
        assert_int_equal(pthread_create(&thread[p], NULL, live, &town[p]), 0);
    }
    for (int p = 0; p < processes; p++) pthread_join(thread[p], NULL);
    for (int p = 0; p < processes; p++)
        if (town[p].status) fail_msg("%d of %d: %s", p, processes, town[p].cores.failure.text);
    wire_end(&w);
}

/* ---- what comes out ---- */

static float received(int what, int rank, int k)
{
    static const int from[RANKS] = { 1, -1, 3, 0 }, other[RANKS] = { 3, 2, 1, 0 };
    switch (what) {
    case 0: return k % 16 > rank ? -1 : (float)(100 * (k / 16) + 8 * rank + k % 16); /* slots of 16 elements */
    case 1: return (float)(100 * (k / 16) + k % 16);
    case 2: return k < 16 ? (float)(600 + 4 * (16 * rank + k)) : -1;
    case 3: return from[rank] < 0 ? -1 : (float)(100 * from[rank] + k);
    case 4: return (float)(100 * ((rank + 3) % 4) + k) + 0.25f;
    case 6: return k % 16 ? -1 : (float)(100 * (k / 16));
    default: return (float)(100 * (rank + other[rank]) + 2 * k);
    }
}

static void any_number_of_processes_gives_the_same(void **state)
{
    (void)state;
    double time_s[RANKS] = { 0 };
    for (int processes = 1; processes <= MOST; processes++) {
        run(processes, kernel);
        for (int what = 0; what < CALLS; what++)
            for (int r = 0; r < RANKS; r++)
                for (int k = 0; k < N; k++)
                    if (now.out[what][r][k] != received(what, r, k))
                        fail_msg("%d processes, call %d, rank %d: [%d] is %g, not %g", processes, what, r, k,
                                 (double)now.out[what][r][k], (double)received(what, r, k));
        if (processes == 1) memcpy(time_s, now.time_s, sizeof time_s);
        assert_memory_equal(time_s, now.time_s, sizeof time_s);
    }
}

/* ---- what is sent ---- */

static const int halves[] = { 0, 1, 2, 3 }, across[] = { 0, 2, 1, 3 };
static int members; /* of each list */
static const int *lists;

static trn_status reduces(trn_cores_rank *self, void *user)
{
    results *x = (results *)user;
    const int r = self->rank;
    for (int k = 0; k < N; k++) x->in[r][k] = (float)(100 * r + k);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.src = trn_core_hbm(&self->core, "in", trn_tensor_2d(TRN_F32, x->in[r], N / 4, 4));
    a.dst = trn_core_hbm(&self->core, "out", trn_tensor_2d(TRN_F32, x->out[0][r], N / 4, 4));
    trn_cores_all_reduce(self, &a); /* of all: it is sent */
    a.replica_group.rank = lists, a.replica_group.count = members, a.replica_group.groups = RANKS / members;
    a.dst = trn_core_hbm(&self->core, "part", trn_tensor_2d(TRN_F32, x->out[1][r], N / 4, 4));
    return trn_cores_all_reduce(self, &a);
}

/* A round is two gathers, of heads and of posts; a third one where data cross from one process to another. */
static void what_stays_in_a_process_is_not_sent(void **state)
{
    (void)state;
    static const struct {
        const int *lists;
        int members, gathers; /* of two processes */
    } row[] = { { halves, 1, 7 }, { halves, 2, 7 }, { across, 2, 8 }, { halves, 4, 8 }, { across, 1, 7 } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        lists = row[i].lists, members = row[i].members;
        run(2, reduces);
        for (int p = 0; p < 2; p++)
            if (town[p].gathers != row[i].gathers) fail_msg("row %zu: %d gathers", i, town[p].gathers);
        for (int at = 0; at < RANKS; at++)
            for (int k = 0; k < N; k++) {
                float sum = 0;
                for (int m = at / members * members; m < (at / members + 1) * members; m++)
                    sum += (float)(100 * lists[m] + k);
                assert_true(now.out[1][lists[at]][k] == sum && now.out[0][lists[at]][k] == (float)(600 + 4 * k));
            }
    }
}

/* ---- when it ends ---- */

static int last;

static trn_status one_works(trn_cores_rank *self, void *user)
{
    results *x = (results *)user;
    const trn_tensor t = trn_core_sbuf(&self->core, "t", TRN_F32, 1, 1);
    const trn_memset_args set = { .dst = t, .value = 1 };
    if (self->rank == last) trn_core_memset(&self->core, &set);
    x->time_s[self->rank] = self->core.time_s;
    return TRN_OK;
}

/* A run takes as long as its last rank, in whichever process that is: to all of them. */
static void the_last_rank_ends_the_run(void **state)
{
    (void)state;
    for (last = 0; last < RANKS; last++) {
        run(2, one_works);
        const double time_s = now.time_s[last];
        assert_true(time_s > 0 && town[0].cores.time_s == time_s && town[1].cores.time_s == time_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_number_of_processes_gives_the_same),
                                        cmocka_unit_test(what_stays_in_a_process_is_not_sent),
                                        cmocka_unit_test(the_last_rank_ends_the_run) };
    return cmocka_run_group_tests_name("cores_processes", tests, NULL, NULL);
}
