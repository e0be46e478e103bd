/* test_cores.c - one kernel on many cores: values, times, what is refused in which words, whatever the host's threads.
 * SPDX-License-Identifier: MIT
 *
 * Here: values, held against trn_collective_run on the host's own copies, and, for sums that are exact in any order,
 * against loops over all ranks. cores/ has the rest.
 */
#include "unit/cores/groups.h"
#include "unit/many_cores.h"

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
            for (int k = 0; k < RANKS; k++) assert_memory_equal(s.code[k], expected, N * trn_format_bytes(format[f]));
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
            m = begin_moves(
                kind / 2 ? trn_cores_collective_permute_implicit_reduce : trn_cores_collective_permute_implicit, 4, 4);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce_is_the_host_functions),
        cmocka_unit_test(test_all_reduce_of_logical_cores),
        cmocka_unit_test(test_all_gather_joins),
        cmocka_unit_test(test_reduce_scatter_and_all_to_all),
        cmocka_unit_test(test_permutes),
        cmocka_unit_test(test_as_many_as_the_metadata_say),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL) + cores_memory() + cores_races() + cores_clocks() +
           cores_hosts();
}
