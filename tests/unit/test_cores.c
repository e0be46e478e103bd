/* test_cores.c - one kernel on many cores: values, times, what is refused in which words, whatever the host's threads.
 * SPDX-License-Identifier: MIT
 *
 * Values are held against trn_collective_run on the host's own copies, and, for sums that are exact in any order,
 * against loops over all ranks. Times are held against trn_collective_cost and trn_dma_seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- times ---- */

static trn_status times(trn_cores_rank *self, void *user)
{
    double *time_s = (double *)user;
    const trn_tensor t = filled(&self->core, "t", TRN_BF16, 128, 256, 1);
    const trn_memset_args set = { .dst = t, .value = 1 };
    for (int i = 0; i <= self->rank; i++) trn_core_memset(&self->core, &set);
    const double before_s = self->core.time_s;
    trn_cores_collective_args a;
    memset(&a, 0, sizeof a);
    a.dst = a.src = t;
    trn_cores_all_reduce(self, &a);
    if (self->rank == self->cores->ranks - 1) *time_s = self->core.time_s - before_s;
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
    a.bytes *= 2;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    for (int r = 0; r < 8; r++) assert_true(fabs(cores.rank[r].core.time_s - cost.expected_s) < 1e-12);
    trn_cores_end(&cores);
}

/* ---- the host's threads ---- */

static uint64_t fold(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

static trn_status mixed(trn_cores_rank *self, void *user)
{
    uint64_t *digest = (uint64_t *)user;
    trn_core *core = &self->core;
    trn_tensor x = filled(core, "x", TRN_BF16, 32, 64, (uint32_t)self->rank),
               y = trn_core_sbuf(core, "y", TRN_BF16, 32, 64);
    trn_tensor all = trn_core_sbuf(core, "all", TRN_BF16, 32, 64 * self->rank_ids);
    trn_cores_collective_args a;
    for (int i = 0; i < 6; i++) {
        const trn_tensor_tensor_args add = { .dst = y, .data1 = x, .data2 = x, .op = TRN_ALU_ADD };
        for (int k = 0; k <= (self->rank * 7 + i) % 5; k++) trn_core_tensor_tensor(core, &add);
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
        a.dst = all;
        a.src = y;
        a.collective_dim = 1;
        trn_cores_all_gather(self, &a);
    }
    uint64_t h = fold(14695981039346656037u, &core->time_s, sizeof core->time_s);
    for (int p = 0; p < 32; p++) h = fold(h, trn_tensor_slice(all, 0, p, 1).data, 128 * (size_t)self->rank_ids);
    digest[self->rank] = h;
    return TRN_OK;
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    uint64_t digest[4][16];
    const int threads[] = { 1, 2, 3, 16 };
    for (int i = 0; i < 4; i++) {
        trn_cores_args args = chip_of(16, 2);
        args.threads = threads[i];
        run(&args, mixed, digest[i]);
        trn_cores_end(&cores);
        assert_memory_equal(digest[i], digest[0], sizeof digest[0]);
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
        cmocka_unit_test(test_barrier_orders_shared_memory),
        cmocka_unit_test(test_collectives_take_what_is_expected),
        cmocka_unit_test(test_lists_share_links),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_which_cores_are_refused),
        cmocka_unit_test(test_hundreds_of_ranks),
        cmocka_unit_test(test_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
