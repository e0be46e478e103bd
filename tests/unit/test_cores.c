/* test_cores.c - one kernel on many cores: values, times, what is refused in which words, whatever the host's threads.
 * SPDX-License-Identifier: MIT
 *
 * Values are held against trn_collective_run on the host's own copies, and, for sums that are exact in any order,
 * against loops over all ranks. Times are held against trn_collective_cost and trn_dma_seconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trnmath/trn_cores.h"

/* ---- a run ---- */

static trn_cores cores;

static trn_cores_args chip_of(int ranks, int lnc)
{
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = TRN_TRAINIUM2;
    args.ranks = ranks;
    args.lnc = lnc;
    return args;
}

static void run(const trn_cores_args *args, trn_cores_kernel *kernel, void *user)
{
    if (trn_cores_begin(&cores, args)) fail_msg("begin: %s", cores.failure.text);
    if (trn_cores_run(&cores, kernel, user)) fail_msg("run: %s", cores.failure.text);
}

static void refuse(const trn_cores_args *args, trn_cores_kernel *kernel, void *user, const char *sentence)
{
    if (trn_cores_begin(&cores, args)) {
        assert_string_equal(cores.failure.text, sentence);
        return;
    }
    if (!trn_cores_run(&cores, kernel, user)) fail_msg("nothing failed; expected: %s", sentence);
    assert_string_equal(cores.failure.text, sentence);
    assert_int_equal(trn_cores_run(&cores, kernel, user), cores.failure.status); /* it stays */
    trn_cores_end(&cores);
}

static trn_tensor filled(trn_core *core, const char *name, trn_format format, int64_t p, int64_t f, uint32_t seed)
{
    trn_tensor t = trn_core_sbuf(core, name, format, p, f);
    for (int64_t i = 0; i < p; i++)
        for (int64_t k = 0; k < f; k++) {
            seed = seed * 1664525u + 1013904223u;
            const float value = (float)((int)(seed >> 20) - 2048) / 64;
            const trn_tensor one = trn_tensor_slice(trn_tensor_slice(t, 0, i, 1), 1, k, 1);
            if (format == TRN_F32) memcpy(one.data, &value, sizeof value);
            else {
                const uint16_t code = trn_bf16_from_f32(value);
                memcpy(one.data, &code, sizeof code);
            }
        }
    trn_core_written(core, t);
    return t;
}

static void packed(void *to, trn_tensor t)
{
    const size_t row = (size_t)t.shape[1] * trn_format_bytes(t.format);
    for (int64_t p = 0; p < t.shape[0]; p++)
        memcpy((char *)to + (size_t)p * row, trn_tensor_slice(t, 0, p, 1).data, row);
}

/* ---- values ---- */

enum { RANKS = 8, P = 16, F = 24, N = P * F };

typedef struct scene {
    trn_format format;
    trn_algorithm algorithm;
    trn_rounding rounding;
    trn_replica_group group;
    uint16_t code[2 * RANKS][2 * N]; /* what came out */
} scene;

static trn_cores_collective_args asked(const scene *s, trn_tensor dst, trn_tensor src)
{
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = dst;
    a.src = src;
    a.replica_group = s->group;
    a.algorithm = s->algorithm;
    a.rounding = s->rounding;
    a.seed = 5;
    return a;
}

static trn_status reduces(trn_cores_rank *self, void *user)
{
    scene *s = (scene *)user;
    const trn_tensor src = filled(&self->core, "src", s->format, P, F, (uint32_t)self->rank);
    const trn_tensor dst = trn_core_sbuf(&self->core, "dst", s->format, P, F);
    const trn_cores_collective_args a = asked(s, dst, src);
    if (trn_cores_all_reduce(self, &a)) return TRN_OK;
    packed(s->code[self->rank], dst);
    return TRN_OK;
}

/* The same numbers through trn_collective_run. */
static void sums_of(const trn_cores *c, const scene *s, const int *rank, int n, const int *chip, int chips, int group,
                    uint16_t *code)
{
    static uint16_t source[2 * RANKS][2 * N], sum[2 * RANKS][2 * N];
    trn_tensor src[2 * RANKS], dst[2 * RANKS];
    static trn_core core;
    const trn_core_args args = { .generation = TRN_TRAINIUM2 };
    for (int i = 0; i < n; i++) {
        assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
        packed(source[i], filled(&core, "src", s->format, P, F, (uint32_t)rank[i]));
        trn_core_end(&core);
        src[i] = trn_tensor_2d(s->format, source[i], P, F);
        dst[i] = trn_tensor_2d(s->format, sum[i], P, F);
    }
    trn_error error;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = &c->net;
    a.op = TRN_ALL_REDUCE;
    a.algorithm = s->algorithm;
    a.rounding = s->rounding;
    a.seed = 5;
    a.stream = (uint64_t)group << 32;
    a.chips = chip;
    a.count = chips;
    a.ranks_per_chip = n / chips;
    a.src = src;
    a.dst = dst;
    a.error = &error;
    if (trn_collective_run(&a)) fail_msg("%s", error.text);
    memcpy(code, sum[0], sizeof sum[0]);
}

static void test_all_reduce_is_the_host_functions(void **state)
{
    (void)state;
    static scene s;
    static uint16_t expected[2 * N];
    static const trn_format format[] = { TRN_F32, TRN_BF16 };
    const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, first[] = { 0, 2, 4, 6 }, second[] = { 1, 3, 5, 7 };
    const int lists[] = { 0, 2, 4, 6, 1, 3, 5, 7 }, chip[] = { 0, 1, 2, 3 };
    for (int f = 0; f < 2; f++)
        for (int r = 0; r < 2; r++) {
            trn_cores_args args = chip_of(RANKS, 1);
            args.cores_per_chip = 2;
            memset(&s, 0, sizeof s);
            s.format = format[f];
            s.rounding = r ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
            run(&args, reduces, &s);
            sums_of(&cores, &s, all, 8, chip, 4, 0, expected);
            for (int k = 0; k < RANKS; k++)
                assert_memory_equal(s.code[k], expected, N * trn_format_bytes(format[f]));
            trn_cores_end(&cores);

            s.group.rank = lists;
            s.group.count = 4;
            s.group.groups = 2;
            run(&args, reduces, &s);
            for (int g = 0; g < 2; g++) {
                sums_of(&cores, &s, g ? second : first, 4, chip, 4, g, expected);
                for (int k = 0; k < 4; k++)
                    assert_memory_equal(s.code[2 * k + g], expected, N * trn_format_bytes(format[f]));
            }
            trn_cores_end(&cores);
        }
}

/* With two cores in each logical core, lists count those, and each of the two has its own sum. */
static void test_all_reduce_of_logical_cores(void **state)
{
    (void)state;
    static scene s;
    static uint16_t expected[2 * N];
    const int lists[] = { 0, 1, 2, 3 }, chip[] = { 0, 1, 2, 3 };
    trn_cores_args args = chip_of(RANKS, 2);
    args.cores_per_chip = 2;
    memset(&s, 0, sizeof s);
    s.format = TRN_BF16;
    s.group.rank = lists;
    s.group.count = 4;
    run(&args, reduces, &s);
    for (int p = 0; p < 2; p++) {
        const int rank[] = { p, 2 + p, 4 + p, 6 + p };
        sums_of(&cores, &s, rank, 4, chip, 4, 0, expected);
        for (int k = 0; k < 4; k++) assert_memory_equal(s.code[rank[k]], expected, N * 2);
    }
    trn_cores_end(&cores);
}

typedef struct gathered {
    float value[RANKS][P * RANKS * F];
    float hbm[RANKS][RANKS * 12];
    int dim;
} gathered;

static trn_status gathers(trn_cores_rank *self, void *user)
{
    gathered *g = (gathered *)user;
    trn_core *core = &self->core;
    const int n = self->rank_ids;
    trn_tensor src = filled(core, "src", TRN_F32, P, F, (uint32_t)self->rank);
    trn_tensor dst =
        g->dim ? trn_core_sbuf(core, "dst", TRN_F32, P, F * n) : trn_core_sbuf(core, "dst", TRN_F32, P * n, F);
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = dst;
    a.src = src;
    a.collective_dim = g->dim;
    if (trn_cores_all_gather(self, &a)) return TRN_OK;
    packed(g->value[self->rank], dst);

    float mine[12]; /* and from HBM, two tensors at once */
    for (int i = 0; i < 12; i++) mine[i] = (float)(100 * self->rank + i);
    trn_tensor from[2], to[2];
    const trn_tensor here = trn_core_hbm(core, "mine", trn_tensor_2d(TRN_F32, mine, 6, 2));
    const trn_tensor there = trn_core_hbm(core, "all", trn_tensor_2d(TRN_F32, g->hbm[self->rank], 6 * n, 2));
    for (int i = 0; i < 2; i++) {
        from[i] = trn_tensor_slice(here, 0, i ? 4 : 0, i ? 2 : 4);
        to[i] = trn_tensor_slice(there, 0, i ? 4 * n : 0, i ? 2 * n : 4 * n);
    }
    a.dsts = to;
    a.srcs = from;
    a.count = 2;
    a.collective_dim = 0;
    trn_cores_all_gather(self, &a);
    return TRN_OK;
}

static void test_all_gather_joins(void **state)
{
    (void)state;
    static gathered g;
    static float source[RANKS][N];
    static trn_core core;
    const trn_core_args plain = { .generation = TRN_TRAINIUM2 };
    trn_cores_args args = chip_of(RANKS, 1);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(trn_core_begin(&core, &plain), TRN_OK);
        packed(source[r], filled(&core, "src", TRN_F32, P, F, (uint32_t)r));
        trn_core_end(&core);
    }
    for (g.dim = 0; g.dim < 2; g.dim++) {
        run(&args, gathers, &g);
        for (int me = 0; me < RANKS; me++)
            for (int r = 0; r < RANKS; r++) {
                for (int p = 0; p < P; p++)
                    for (int f = 0; f < F; f++) {
                        const int at = g.dim ? p * RANKS * F + r * F + f : (r * P + p) * F + f;
                        if (g.value[me][at] != source[r][p * F + f])
                            fail_msg("dim %d, rank %d, from %d: [%d, %d]", g.dim, me, r, p, f);
                    }
                for (int i = 0; i < 12; i++)
                    assert_true(g.hbm[me][i < 8 ? 8 * r + i : RANKS * 8 + 4 * r + i - 8] == (float)(100 * r + i));
            }
        trn_cores_end(&cores);
    }
}

/* ---- moves: element i of rank r is 1000 r + i ---- */

enum { WIDE = 48 };

typedef trn_status a_collective(trn_cores_rank *self, const trn_cores_collective_args *args);

typedef struct moved {
    a_collective *call;
    trn_cores_collective_args args;
    int64_t src_rows, dst_rows; /* of 2 elements */
    bool sbuf;
    uint32_t table[RANKS][4][RANKS];
    float out[RANKS][RANKS * WIDE], in[RANKS][WIDE * RANKS], in1[RANKS][WIDE * RANKS];
} moved;

static moved moving;

static trn_status moves(trn_cores_rank *self, void *user)
{
    moved *m = (moved *)user;
    trn_core *core = &self->core;
    const int r = self->rank;
    trn_cores_collective_args a = m->args;
    for (int i = 0; i < 2 * m->src_rows; i++) m->in[r][i] = (float)(1000 * r + i), m->in1[r][i] = 0.5f;
    for (int i = 0; i < 2 * m->dst_rows; i++) m->out[r][i] = -1;
    const trn_tensor in = trn_core_hbm(core, "in", trn_tensor_2d(TRN_F32, m->in[r], m->src_rows, 2));
    const trn_tensor in1 = trn_core_hbm(core, "in1", trn_tensor_2d(TRN_F32, m->in1[r], m->src_rows, 2));
    const trn_tensor out = trn_core_hbm(core, "out", trn_tensor_2d(TRN_F32, m->out[r], m->dst_rows, 2));
    a.src = in;
    a.dst = out;
    if (m->call == trn_cores_collective_permute_implicit_reduce) a.src1 = in1;
    if (m->call == trn_cores_all_gather_v || m->call == trn_cores_all_to_all_v)
        a.metadata = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, m->table[r], 4, self->rank_ids));
    if (m->sbuf) {
        a.src = trn_core_sbuf(core, "src", TRN_F32, m->src_rows, 2);
        a.dst = trn_core_sbuf(core, "dst", TRN_F32, m->dst_rows, 2);
        const trn_dma_copy_args load = { .dst = a.src, .src = in };
        trn_core_dma_copy(core, &load);
    }
    if (m->call(self, &a)) return TRN_OK;
    const trn_dma_copy_args store = { .dst = out, .src = a.dst };
    if (m->sbuf) trn_core_dma_copy(core, &store);
    return TRN_OK;
}

static moved *begin_moves(a_collective *call, int64_t src_rows, int64_t dst_rows)
{
    memset(&moving, 0, sizeof moving);
    moving.call = call;
    moving.src_rows = src_rows;
    moving.dst_rows = dst_rows;
    return &moving;
}

static void run_moves(moved *m)
{
    const trn_cores_args args = chip_of(RANKS, 1);
    run(&args, moves, m);
    trn_cores_end(&cores);
}

static void test_reduce_scatter_and_all_to_all(void **state)
{
    (void)state;
    static const trn_alu op[] = { TRN_ALU_ADD, TRN_ALU_MAXIMUM, TRN_ALU_MINIMUM };
    for (int o = 0; o < 3; o++)
        for (int sbuf = 0; sbuf < 2; sbuf++) {
            moved *m = begin_moves(trn_cores_reduce_scatter, 3 * RANKS, 3);
            m->args.op = op[o];
            m->sbuf = sbuf;
            run_moves(m);
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < 6; i++) {
                    const float at = (float)(6 * r + i);
                    assert_true(m->out[r][i] == (o == 0 ? 8 * at + 28000 : o == 1 ? 7000 + at : at));
                }
            m = begin_moves(trn_cores_all_reduce, 3 * RANKS, 3 * RANKS);
            m->args.op = op[o];
            m->sbuf = sbuf;
            run_moves(m);
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < 6 * RANKS; i++)
                    assert_true(m->out[r][i] == (float)(o == 0 ? 8 * i + 28000 : o == 1 ? 7000 + i : i));
        }
    moved *m = begin_moves(trn_cores_all_to_all, 3 * RANKS, 3 * RANKS);
    run_moves(m);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 6 * RANKS; i++) assert_true(m->out[r][i] == (float)(1000 * (i / 6) + 6 * r + i % 6));
}

static void test_permutes(void **state)
{
    (void)state;
    const int pairs[][2] = { { 0, 3 }, { 3, 0 }, { 1, 2 }, { 2, 5 } };
    moved *m = begin_moves(trn_cores_collective_permute, 4, 4);
    m->args.source_target_pairs = pairs;
    m->args.pairs = 4;
    run_moves(m);
    for (int r = 0; r < RANKS; r++) {
        int from = -1;
        for (int i = 0; i < 4; i++) from = pairs[i][1] == r ? pairs[i][0] : from;
        for (int i = 0; i < 8; i++) assert_true(m->out[r][i] == (from < 0 ? -1.0f : (float)(1000 * from + i)));
    }
    const int lists[] = { 0, 2, 4, 6, 7, 5, 3, 1 };
    for (int channel = 0; channel < 3; channel++)
        for (int kind = 0; kind < 4; kind++) {
            m = begin_moves(kind / 2 ? trn_cores_collective_permute_implicit_reduce
                                     : trn_cores_collective_permute_implicit, 4, 4);
            m->sbuf = kind == 1;
            m->args.replica_group.rank = lists;
            m->args.replica_group.count = 4;
            m->args.replica_group.groups = 2;
            m->args.channel_ids = &channel;
            run_moves(m);
            for (int r = 0; r < RANKS; r++) {
                int at = 0;
                while (lists[at] != r) at++;
                const int from = lists[at / 4 * 4 + (at % 4 + (channel % 2 ? 1 : 3)) % 4];
                const trn_cores_rank self = { .rank_id = r, .rank_ids = RANKS };
                const trn_replica_group *g = &m->args.replica_group;
                assert_int_equal(trn_cores_current_processing_rank_id(&self, 0, g, channel), r);
                assert_int_equal(trn_cores_current_processing_rank_id(&self, 1, g, channel), from);
                assert_int_equal(trn_cores_current_processing_rank_id(&self, 5, g, channel), from);
                for (int i = 0; i < 8; i++)
                    assert_true(m->out[r][i] == (float)(1000 * from + i) + (kind / 2 ? 0.5f : 0));
            }
        }
}

/* Rank r sends (r + j) % 3 elements to rank j, from element 4 j on. */
static void test_as_many_as_the_metadata_say(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const bool places = kind == 2, known = kind == 3;
        moved *m = begin_moves(trn_cores_all_to_all_v, 2 * RANKS, 2 * RANKS);
        m->args.has_rdispls = places;
        m->args.recv_counts_known = known;
        for (int r = 0; r < RANKS; r++)
            for (int j = 0; j < RANKS; j++) {
                m->table[r][0][j] = (uint32_t)(r + j) % 3;
                m->table[r][1][j] = 4 * (uint32_t)j;
                m->table[r][2][j] = (uint32_t)(r + j) % 3;
                m->table[r][3][j] = 4 * (uint32_t)(RANKS - 1 - j);
            }
        run_moves(m);
        for (int r = 0; r < RANKS; r++)
            for (int j = 0; j < RANKS; j++)
                for (int i = 0; i < 4; i++) {
                    const int at = 4 * (places ? RANKS - 1 - j : j) + i;
                    assert_true(m->out[r][at] == (i < (r + j) % 3 ? (float)(1000 * j + 4 * r + i) : -1.0f));
                }
        m->call = trn_cores_all_gather_v; /* now everybody gets what rank 0 was sent */
        for (int r = 0; r < RANKS; r++)
            for (int j = 0; j < RANKS; j++) m->table[r][2][j] = (uint32_t)j % 3;
        run_moves(m);
        for (int r = 0; r < RANKS; r++)
            for (int j = 0; j < RANKS; j++)
                for (int i = 0; i < 4; i++) {
                    const int at = 4 * (places ? RANKS - 1 - j : j) + i;
                    assert_true(m->out[r][at] == (i < j % 3 ? (float)(1000 * j + i) : -1.0f));
                }
        if (known) {
            m->table[5][2][4] = 7;
            const trn_cores_args args = chip_of(RANKS, 1);
            refuse(&args, moves, m,
                   "all_gather_v of rank 0 and others (instruction 0): rank 5 expects 7 elements of rank "
                   "4, which sends 1");
        }
    }
    moved *m = begin_moves(trn_cores_all_to_all_v, 2 * RANKS, 2 * RANKS);
    const trn_cores_args args = chip_of(RANKS, 1);
    m->table[3][0][2] = 5;
    refuse(&args, moves, m,
           "all_to_all_v of rank 0 and others (instruction 0): rank 3 sends 5 elements to rank 2, which "
           "has room for 4");
    m->table[3][1][2] = 30;
    refuse(&args, moves, m,
           "rank 3: instruction 0, all_to_all_v: metadata sends elements 30 to 34 to member 2; src has "
           "32");
}

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

static trn_status counts_of_all(trn_cores_rank *self, void *user);

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
    static const struct { int what; const char *sentence; } row[] = {
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

/* Rectangles of any pitch against a map of bytes. */
static void test_rectangles_meet(void **state)
{
    (void)state;
    static const char memory[4096];
    uint32_t seed = 7;
    int met = 0;
    for (int i = 0; i < 200000; i++) {
        trni_touch t[2];
        bool map[4096] = { false }, expected = false;
        memset(t, 0, sizeof t);
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525u + 1013904223u;
            t[k].pitch = 8 + seed % 32;
            t[k].bytes = 1 + (seed >> 8) % (uint32_t)t[k].pitch;
            t[k].rows = 1 + (seed >> 16) % 4;
            t[k].at = memory + (seed >> 20) % 120;
            t[k].write = k == 0;
            for (int64_t row = 0; row < t[k].rows; row++)
                for (int64_t b = 0; b < t[k].bytes; b++) {
                    bool *at = &map[t[k].at - memory + row * t[k].pitch + b];
                    if (k) expected = expected || *at;
                    else *at = true;
                }
        }
        if (trni_race_meet(&t[0], &t[1]) != expected || trni_race_meet(&t[1], &t[0]) != expected)
            fail_msg("case %d: expected %d", i, expected);
        met += expected;
    }
    assert_true(met > 20000 && met < 180000);
}

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

static void test_trace_and_report(void **state)
{
    (void)state;
    static trn_trace_event event[4000];
    static swapped s;
    trn_cores_args args = chip_of(4, 2);
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = 4000;
    args.trace = &trace;
    run(&args, swaps, &s);
    assert_int_equal(trn_cores_run(&cores, counts_of_all, &s), TRN_OK);
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
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    a.algorithm = cost.algorithm;
    a.single_step = cost.single_step;
    a.bytes *= 2;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    for (int r = 0; r < 8; r++) assert_true(fabs(cores.rank[r].core.time_s - cost.expected_s) < 1e-12);
    trn_cores_end(&cores);
}

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

/* Processes that are threads: a gather is a copy that waits for all. */
enum { PROCESSES = 11 };

typedef struct world {
    pthread_mutex_t lock;
    pthread_cond_t go;
    int processes, came, left, cut; /* cut: after so many gathers of process 1 they fail; 0 = never */
    const void *mine[PROCESSES];
} world;

typedef struct citizen {
    world *w;
    mixture *m;
    trn_cores_args args;
    trn_cores_exchange exchange;
    trn_cores cores;
    trn_status status;
    int gathers;
} citizen;

static trn_status gather(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error)
{
    citizen *c = (citizen *)user;
    world *w = c->w;
    char *to = (char *)all;
    assert_int_equal(counts[c->exchange.process], bytes);
    if (w->cut && ++c->gathers >= w->cut) {
        snprintf(error->text, sizeof error->text, "the line is cut");
        return TRN_EIO;
    }
    pthread_mutex_lock(&w->lock);
    while (w->left) pthread_cond_wait(&w->go, &w->lock);
    w->mine[c->exchange.process] = mine;
    if (++w->came == w->processes) {
        w->left = w->processes;
        pthread_cond_broadcast(&w->go);
    }
    while (!w->left) pthread_cond_wait(&w->go, &w->lock);
    for (int p = 0; p < w->processes; p++) {
        if (counts[p]) memcpy(to, w->mine[p], (size_t)counts[p]);
        to += counts[p];
    }
    w->came--;
    while (w->came) { /* nobody leaves before all have copied */
        pthread_cond_broadcast(&w->go);
        pthread_cond_wait(&w->go, &w->lock);
    }
    w->left--;
    pthread_cond_broadcast(&w->go);
    pthread_mutex_unlock(&w->lock);
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
    world w;
    pthread_t thread[PROCESSES];
    memset(&w, 0, sizeof w);
    memset(town, 0, sizeof town);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.go, NULL);
    w.processes = processes;
    w.cut = cut;
    for (int p = 0; p < processes; p++) {
        town[p].w = &w;
        town[p].m = m;
        town[p].args = chip_of(MIXED, 2);
        town[p].args.cores_per_chip = 4;
        town[p].args.threads = 1 + p % 2;
        town[p].exchange.process = p;
        town[p].exchange.processes = processes;
        assert_int_equal(pthread_create(&thread[p], NULL, live, &town[p]), 0);
    }
    for (int p = 0; p < processes; p++) pthread_join(thread[p], NULL);
    pthread_cond_destroy(&w.go);
    pthread_mutex_destroy(&w.lock);
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

/* ---- what is refused ---- */

enum { LEAVES, OTHER_CALL, OTHER_SHAPE, OTHER_ALGORITHM, OTHER_PIPE, BROKEN, RETURNS, NO_LIST, TWICE, UNWRITTEN, MEETS,
       LNC_1, AXIS, BAD_TARGET, MIXED_MEMORY, SELF_MISSING };

static trn_status wrong(trn_cores_rank *self, void *user)
{
    const int what = *(const int *)user, odd = self->rank == 1;
    trn_core *core = &self->core;
    const trn_tensor x = filled(core, "x", TRN_F32, 16, 16, 1), y = filled(core, "y", TRN_F32, 16, 16, 2);
    const trn_tensor raw = trn_core_sbuf(core, "raw", TRN_F32, 16, 16);
    const int list[] = { 0, 1, 1, 0 }, just_0[] = { 0 };
    static float memory[2][256];
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = x;
    trn_cores_sendrecv_args s;
    memset(&s, 0, sizeof s);
    s.dst = y;
    s.src = x;
    s.send_to_rank = s.recv_from_rank = 1 - self->program_id;
    trn_cores_barrier_args b;
    memset(&b, 0, sizeof b);
    switch (what) {
    case LEAVES:
        if (odd) return TRN_OK;
        break;
    case OTHER_CALL:
        if (odd) return trn_cores_barrier(self, &b);
        break;
    case OTHER_SHAPE:
        if (odd) a.dst = a.src = trn_tensor_slice(x, 1, 0, 8);
        break;
    case OTHER_ALGORITHM:
        if (odd) a.algorithm = TRN_RING;
        break;
    case OTHER_PIPE:
        s.pipe_id = odd;
        return trn_cores_sendrecv(self, &s);
    case BROKEN:
        if (odd) trn_core_free(core, trn_tensor_slice(x, 0, 1, 1));
        break;
    case RETURNS: return odd ? TRN_EIO : TRN_OK;
    case NO_LIST:
        a.replica_group.rank = just_0;
        a.replica_group.count = 1;
        break;
    case TWICE:
        a.replica_group.rank = list;
        a.replica_group.count = 2;
        a.replica_group.groups = 2;
        break;
    case UNWRITTEN: a.src = raw; break;
    case MEETS:
        s.dst = trn_tensor_slice(x, 1, 0, 8);
        s.src = trn_tensor_slice(x, 1, 4, 8);
        return trn_cores_sendrecv(self, &s);
    case LNC_1: return trn_cores_sendrecv(self, &s);
    case AXIS: a.collective_dim = 2; break;
    case BAD_TARGET: s.send_to_rank = 2; return trn_cores_sendrecv(self, &s);
    case MIXED_MEMORY: a.dst = trn_core_hbm(core, "m", trn_tensor_2d(TRN_F32, memory[self->rank], 16, 16)); break;
    case SELF_MISSING:
        b.cores = just_0;
        b.count = 1;
        return trn_cores_barrier(self, &b);
    default: break;
    }
    trn_cores_all_reduce(self, &a);
    return TRN_OK;
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct { int what, lnc; const char *sentence;
    } row[] = {
        { LEAVES, 1,
          "nothing goes on: rank 0 waits at instruction 0, all_reduce, for rank 1, which has ended after 0 "
          "instructions" },
        { OTHER_CALL, 1, "" },
        { OTHER_SHAPE, 1,
          "all_reduce: rank 0 (instruction 0) gives src float32 [16, 16], rank 1 (instruction 0) float32 "
          "[16, 8]" },
        { OTHER_ALGORITHM, 1, "all_reduce: rank 0 (instruction 0) has algorithm 0, rank 1 (instruction 0) 1" },
        { OTHER_PIPE, 2,
          "nothing goes on: rank 0 waits at instruction 0, sendrecv of pipe 0, for rank 1, which waits at "
          "instruction 0, sendrecv of pipe 1, for rank 0" },
        { BROKEN, 1, "rank 1: trn_core_free: this is not a tile" },
        { RETURNS, 1, "rank 1: its kernel returned: a file or message could not be read or written" },
        { NO_LIST, 1, "rank 1: instruction 0, all_reduce: replica_group has no list with rank 1, which calls" },
        { TWICE, 1, "rank 0: instruction 0, all_reduce: replica_group has 2 lists of 2 ranks; there are 2" },
        { UNWRITTEN, 1,
          "rank 0: instruction 0, all_reduce: src reads partition 0, element 0 of 'raw', which nothing has "
          "written" },
        { MEETS, 2, "rank 0: instruction 0, sendrecv: dst meets src" },
        { LNC_1, 1, "rank 0: instruction 0, sendrecv: lnc is 1; cores of a logical core send to each other" },
        { AXIS, 1, "rank 0: instruction 0, all_reduce: collective_dim is 2; in SBUF it is 0" },
        { BAD_TARGET, 2, "rank 0: instruction 0, sendrecv: send_to_rank is 2; a logical core has cores 0 to 1" },
        { MIXED_MEMORY, 1,
          "rank 0: instruction 0, all_reduce: dst lies in HBM and src in SBUF; all lie in the same "
          "memory" },
        { SELF_MISSING, 2,
          "rank 1: instruction 0, core_barrier: cores has 1 of 2 cores; core 1, which calls, is to be "
          "there" },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int threads = 1; threads < 3; threads++) {
            trn_cores_args args = chip_of(2, row[i].lnc);
            args.threads = threads;
            int what = row[i].what;
            if (row[i].sentence[0]) refuse(&args, wrong, &what, row[i].sentence);
        }
    /* a barrier of one core alone goes on at once, then it has ended */
    trn_cores_args args = chip_of(2, 1);
    int what = OTHER_CALL;
    refuse(
        &args, wrong, &what,
        "nothing goes on: rank 0 waits at instruction 0, all_reduce, for rank 1, which has ended after 1 instructions");
    args.lnc = 2;
    refuse(&args, wrong, &what,
           "nothing goes on: rank 1 waits at instruction 0, core_barrier, for rank 0, which has ended "
           "after 1 instructions");
}

static void test_which_cores_are_refused(void **state)
{
    (void)state;
    trn_cores_args args = chip_of(12, 1);
    refuse(&args, wrong, NULL, "12 ranks, 8 to a chip, 1 to a logical core: they do not come out even");
    args = chip_of(-1, 1);
    refuse(&args, wrong, NULL, "ranks, cores_per_chip, lnc and threads are -1, 0, 1, 0; none is negative");
    args = chip_of(8, 3);
    refuse(&args, wrong, NULL, "8 ranks, 8 to a chip, 3 to a logical core: they do not come out even");
    args = chip_of(16, 1);
    args.cores_per_chip = 16;
    refuse(&args, wrong, NULL, "cores_per_chip is 16; a chip of trn2.48xlarge has 8");
    const int chips[] = { 3, 3 };
    args.cores_per_chip = 8;
    args.chips = chips;
    refuse(&args, wrong, NULL, "chips[1] is 3; each of 0 to 15 may be there once");
    args = chip_of(1 << 23, 1);
    refuse(&args, wrong, NULL, "no system of Trainium2 has 8388608 cores");
    args = chip_of(1 << 13, 1);
    refuse(&args, wrong, NULL, "8192 ranks; project-rainier has 400000 chips, of which 8 cores each take part (at most "
                               "4096)");
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    args = chip_of(8, 1);
    args.net = &net;
    args.core.generation = TRN_TRAINIUM3;
    refuse(&args, wrong, NULL, "generation is Trainium3, but trn2.48xlarge is made of Trainium2");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce_is_the_host_functions),
        cmocka_unit_test(test_all_reduce_of_logical_cores),
        cmocka_unit_test(test_all_gather_joins),
        cmocka_unit_test(test_reduce_scatter_and_all_to_all),
        cmocka_unit_test(test_permutes),
        cmocka_unit_test(test_as_many_as_the_metadata_say),
        cmocka_unit_test(test_shared_hbm),
        cmocka_unit_test(test_sendrecv_swaps),
        cmocka_unit_test(test_sendrecv_ends_for_both),
        cmocka_unit_test(test_barrier_orders_shared_memory),
        cmocka_unit_test(test_races_are_told),
        cmocka_unit_test(test_hbm_with_nothing_in_it),
        cmocka_unit_test(test_lists_along_a_mesh),
        cmocka_unit_test(test_rectangles_meet),
        cmocka_unit_test(test_trace_and_report),
        cmocka_unit_test(test_barrier_without_data_holds_everything),
        cmocka_unit_test(test_ranks_draw_other_numbers),
        cmocka_unit_test(test_so_many_run_at_once),
        cmocka_unit_test(test_collectives_take_what_is_expected),
        cmocka_unit_test(test_lists_share_links),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_processes_change_nothing),
        cmocka_unit_test(test_processes_fail_together),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_which_cores_are_refused),
        cmocka_unit_test(test_hundreds_of_ranks),
        cmocka_unit_test(test_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
