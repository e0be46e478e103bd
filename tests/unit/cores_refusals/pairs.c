/* cores_refusals/pairs.c - calls from one to one, in rings and within a logical core, with one thing wrong each.
 * SPDX-License-Identifier: MIT
 */
#include "unit/cores_refusals/desk.h"
#include "unit/cores_refusals/groups.h"

/* ---- from one to one, and in rings ---- */

static const int sends_twice[][2] = { { 0, 1 }, { 0, 0 } }, gets_twice[][2] = { { 0, 1 }, { 1, 1 } };
static const int from_2[][2] = { { 2, 0 } }, from_below[][2] = { { -1, 0 } }, to_2[][2] = { { 0, 2 } };
static const int to_below[][2] = { { 0, -1 } };
static const int channels[][2] = { { 4, 0 }, { -1, 0 }, { 1, 1 }, { 3, 0 } };

#define PAIRS(list, n) (d->h.source_target_pairs = (list), d->h.pairs = (n))
#define RINGS(list, n) (d->h.channel_ids = (list), d->h.count = (n), d->h.dsts = d->many, d->h.srcs = d->many + 4)

CALL(no_pairs, collective_permute, h, PAIRS(ring_pairs, 0))
CALL(lost_pairs, collective_permute, h, PAIRS(NULL, 2))
CALL(three_pairs, collective_permute, h, PAIRS(ring_pairs, 3))
CALL(who_sends_twice, collective_permute, h, PAIRS(sends_twice, 2))
CALL(who_gets_twice, collective_permute, h, PAIRS(gets_twice, 2))
CALL(source_beyond, collective_permute, h, PAIRS(from_2, 1))
CALL(source_below, collective_permute, h, PAIRS(from_below, 1))
CALL(target_beyond, collective_permute, h, PAIRS(to_2, 1))
CALL(target_below, collective_permute, h, PAIRS(to_below, 1))
CALL(several_pairs, collective_permute, h, (PAIRS(ring_pairs, 2), RINGS(NULL, 1)))
CALL(permute_in_place, collective_permute, h, (PAIRS(ring_pairs, 2), d->h.dst = d->h.src))
CALL(permute_to_fewer, collective_permute, h, (PAIRS(ring_pairs, 2), d->h.dst = trn_tensor_slice(d->far[1], 0, 0, 8)))
CALL(five_rings, collective_permute_implicit, h, (RINGS(NULL, 5), d->h.srcs = d->many))
CALL(four_rings, collective_permute_implicit, h, RINGS(NULL, 4))
CALL(channel_4, collective_permute_implicit, h, RINGS(channels[0], 1))
CALL(channel_below, collective_permute_implicit, h, RINGS(channels[1], 1))
CALL(channel_twice, collective_permute_implicit, h, RINGS(channels[2], 2))
CALL(channel_3, collective_permute_implicit, h, RINGS(channels[3], 2))
CALL(ring_in_place, collective_permute_implicit, h, d->h.dst = d->h.src)

static void pairs_and_rings(void **state)
{
    (void)state;
    static const wrong_call row[] = {
        { no_pairs, " collective_permute: source_target_pairs has 0 pairs; there are 2 ranks" },
        { lost_pairs, " collective_permute: source_target_pairs has 0 pairs; there are 2 ranks" },
        { three_pairs, " collective_permute: source_target_pairs has 3 pairs; there are 2 ranks" },
        { who_sends_twice, " collective_permute: source_target_pairs[1] is (0, 0); each of 0 to 1 may send once and "
                           "receive once" },
        { who_gets_twice, " collective_permute: source_target_pairs[1] is (1, 1); each of 0 to 1 may send once and "
                          "receive once" },
        { source_beyond, " collective_permute: source_target_pairs[0] is (2, 0); each of 0 to 1 may send once and "
                         "receive once" },
        { source_below, " collective_permute: source_target_pairs[0] is (-1, 0); each of 0 to 1 may send once and "
                        "receive once" },
        { target_beyond, " collective_permute: source_target_pairs[0] is (0, 2); each of 0 to 1 may send once and "
                         "receive once" },
        { target_below, " collective_permute: source_target_pairs[0] is (0, -1); each of 0 to 1 may send once and "
                        "receive once" },
        { several_pairs, " collective_permute: count is 1; there is one src and one dst" },
        { permute_in_place, " collective_permute: dst meets src" },
        { permute_to_fewer, " collective_permute: dst has size 8 on axis 0 but src has 16" },
        { five_rings, " collective_permute_implicit: count is 5; there are 4 channels" },
        { four_rings, NULL },
        { channel_4, " collective_permute_implicit: channel_ids[0] is 4; each of 0 to 3 may be there once" },
        { channel_below, " collective_permute_implicit: channel_ids[0] is -1; each of 0 to 3 may be there once" },
        { channel_twice, " collective_permute_implicit: channel_ids[1] is 1; each of 0 to 3 may be there once" },
        { channel_3, NULL },
        { ring_in_place, " collective_permute_implicit: dst meets src" },
    };
    EACH(1, row);
}

/* ---- within a logical core ---- */

static const int core_2[] = { 0, 2 }, core_below[] = { -1 };

#define CORES(list, n) (d->b.cores = (list), d->b.count = (n))

CALL(by_dma, barrier, b, d->b.engine = TRN_ENGINE_DMA)
CALL(by_nobody, barrier, b, d->b.engine = (trn_engine)-1)
CALL(by_tensor_engine, barrier, b, d->b.engine = TRN_ENGINE_TENSOR)
CALL(data_in_sbuf, barrier, b, d->b.data = d->tile[0])
CALL(core_beyond, barrier, b, CORES(core_2, 2))
CALL(core_negative, barrier, b, CORES(core_below, 1))
CALL(core_twice, barrier, b, CORES(both, 2))
CALL(no_cores, barrier, b, CORES(both, 0))
CALL(three_cores, barrier, b, CORES(three, 3))
CALL(swap_nothing, sendrecv, s, d->s.src.rank = 0)
CALL(swap_nowhere, sendrecv, s, d->s.dst.rank = 0)
CALL(send_below, sendrecv, s, d->s.send_to_rank = -1)
CALL(receive_beyond, sendrecv, s, d->s.recv_from_rank = 2)
CALL(receive_below, sendrecv, s, d->s.recv_from_rank = -1)
CALL(by_engine_2, sendrecv, s, d->s.dma_engine = (trn_dma_engine)2)
CALL(by_gpsimd, sendrecv, s, d->s.dma_engine = TRN_DMA_ENGINE_GPSIMD)
CALL(swap_codes, sendrecv, s, d->s.dst = d->coded)
CALL(swap_fewer, sendrecv, s, d->s.dst = d->narrow)
CALL(swap_in_hbm, sendrecv, s, d->s.dst = d->far[0])

static void barriers_and_swaps(void **state)
{
    (void)state;
    static const wrong_call row[] = {
        { by_dma, " core_barrier: engine is dma; an engine that computes waits" },
        { by_nobody, " core_barrier: engine is no engine; an engine that computes waits" },
        { by_tensor_engine, NULL },
        { data_in_sbuf, " core_barrier: data lies in SBUF; cores share HBM only" },
        { core_beyond, " core_barrier: cores[1] is 2; each of 0 to 1 may be there once" },
        { core_negative, " core_barrier: cores[0] is -1; each of 0 to 1 may be there once" },
        { core_twice, " core_barrier: cores[1] is 0; each of 0 to 1 may be there once" },
        { no_cores, " core_barrier: cores has 0 of 2 cores; core 0, which calls, is to be there" },
        { three_cores, " core_barrier: cores has 3 of 2 cores; core 0, which calls, is to be there" },
        { swap_nothing, " sendrecv: src is missing" },
        { swap_nowhere, " sendrecv: dst is missing" },
        { send_below, " sendrecv: send_to_rank is -1; a logical core has cores 0 to 1" },
        { receive_beyond, " sendrecv: recv_from_rank is 2; a logical core has cores 0 to 1" },
        { receive_below, " sendrecv: recv_from_rank is -1; a logical core has cores 0 to 1" },
        { by_engine_2, " sendrecv: dma_engine is 2, not one of them" },
        { by_gpsimd, NULL },
        { swap_codes, " sendrecv: dst is bfloat16 and src is float32; bits move" },
        { swap_fewer, " sendrecv: dst has size 8 on axis 1 but src has 16" },
        { swap_in_hbm, " sendrecv: dst 'far' lies in HBM; it has to be in SBUF" },
    };
    EACH(2, row);
    act(system_of(TRN_TRAINIUM1, 2, 1), good_barrier, -1,
        " core_barrier: Trainium1 has no such instruction; Trainium2 is the first that has");
    act(system_of(TRN_TRAINIUM1, 2, 1), good_swap, -1,
        " sendrecv: Trainium1 has no such instruction; Trainium2 is the first that has");
}

CALL(swap_narrow, sendrecv, s, (d->s.src = d->narrow, d->s.dst = trn_tensor_slice(d->tile[1], 1, 0, 8)))

static void one_wide_one_narrow(desk *d)
{
    if (d->self->rank)
        swap_narrow(d);
    else
        good_swap(d);
}

/* What a call before had plays no part in a barrier. */
static void pairs_then_all(desk *d)
{
    if (d->self->rank / 2)
        swap_narrow(d);
    else
        good_swap(d);
    d->b.all = true;
    trn_cores_barrier(d->self, &d->b);
}

static void swaps_have_to_be_alike(void **state)
{
    (void)state;
    act(system_of(TRN_TRAINIUM2, 2, 2), one_wide_one_narrow, -1,
        "sendrecv: rank 0 (instruction 0) gives src float32 [16, 16], rank 1 (instruction 0) float32 [16, 8]");
    act(system_of(TRN_TRAINIUM2, 2, 2), swap_narrow, -1, NULL);
    act(system_of(TRN_TRAINIUM2, 4, 2), pairs_then_all, -1, NULL);
}

/* ---- one rank alone, or each in a list of its own ---- */

static const int64_t small_shape[2] = { 4, 4 };

static void alone_in_a_ring(desk *d)
{
    static const int list[] = { 0, 1 };
    float(*mine)[SIDE * SIDE] = memory[d->self->rank];
    for (int i = 0; i < SIDE * SIDE; i++) mine[0][i] = (float)i, mine[2][i] = 0.5f, mine[1][i] = -1;
    d->h.replica_group.rank = list, d->h.replica_group.count = 1, d->h.replica_group.groups = d->self->rank_ids;
    d->h.src1 = d->far[2];
    trn_cores_collective_permute_implicit_reduce(d->self, &d->h);
    for (int i = 0; i < SIDE * SIDE; i++) assert_true(mine[1][i] == (float)i + 0.5f);
}

static void alone_with_a_tensor(desk *d)
{
    assert_int_equal(trn_cores_hbm(d->self, "own", TRN_F32, 2, small_shape).rank, 2);
}

static void one_rank_alone(void **state)
{
    (void)state;
    act(system_of(TRN_TRAINIUM2, 1, 1), alone_in_a_ring, -1, NULL);
    act(system_of(TRN_TRAINIUM2, 2, 1), alone_in_a_ring, -1, NULL);
    act(system_of(TRN_TRAINIUM2, 1, 1), alone_with_a_tensor, -1, NULL);
}

/* ---- tensors of a logical core ---- */

static const int64_t bad_shape[2] = { -1, 4 }, huge_shape[2] = { INT64_MAX, 4 };

static void shared_negative(desk *d) { trn_cores_hbm(d->self, "shared", TRN_F32, 2, bad_shape); }
static void shared_huge(desk *d) { trn_cores_hbm(d->self, "shared", TRN_F32, 2, huge_shape); }

static void shared_tensors(void **state)
{
    (void)state;
    act(system_of(TRN_TRAINIUM2, 2, 2), shared_negative, -1, "rank 0: shared has negative size -1 on axis 0");
    act(system_of(TRN_TRAINIUM2, 2, 2), shared_huge, -1, "rank 0: shared spans more than 2^60 bytes or elements");
}

/* ---- one rank says something else ---- */

CALL(other_op, all_reduce, a, d->a.op = TRN_ALU_MAXIMUM)
CALL(other_sums, all_reduce, a, d->a.accumulate = TRN_BF16)
CALL(other_rounding, all_reduce, a, d->a.rounding = TRN_TOWARD_ZERO)
CALL(other_seed, all_reduce, a, d->a.seed = 1)
CALL(other_stream, all_reduce, a, d->a.stream = 1)
CALL(other_format_of_both, all_reduce, a, d->a.dst = d->a.src = d->coded)
CALL(other_columns, all_reduce, a, d->a.dst = d->a.src = d->narrow)

static void terms_have_to_be_alike(void **state)
{
    (void)state;
    static const struct {
        void (*what)(desk *d);
        const char *name;
        int first, second;
    } number[] = {
        { other_op, "alu", TRN_ALU_ADD, TRN_ALU_MAXIMUM },
        { other_sums, "accumulate", TRN_F32, TRN_BF16 },
        { other_rounding, "rounding", TRN_NEAREST_EVEN, TRN_TOWARD_ZERO },
    };
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        char text[120];
        snprintf(text, sizeof text, "all_reduce: rank 0 (instruction 0) has %s %d, rank 1 (instruction 0) %d",
                 number[i].name, number[i].first, number[i].second);
        act(system_of(TRN_TRAINIUM2, 2, 1), number[i].what, 1, text);
    }
    static const char *const differ = "all_reduce: ranks 0 and 1 differ in seed, stream, or the place of their list";
    act(system_of(TRN_TRAINIUM2, 2, 1), other_seed, 1, differ);
    act(system_of(TRN_TRAINIUM2, 2, 1), other_stream, 1, differ);
    act(system_of(TRN_TRAINIUM2, 2, 1), other_format_of_both, 1,
        "all_reduce: rank 0 (instruction 0) gives src float32 [16, 16], rank 1 (instruction 0) bfloat16 [16, 16]");
    act(system_of(TRN_TRAINIUM2, 2, 1), other_columns, 1,
        "all_reduce: rank 0 (instruction 0) gives src float32 [16, 16], rank 1 (instruction 0) float32 [16, 8]");
}

int cores_refusals_pairs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_and_rings),        cmocka_unit_test(barriers_and_swaps),
        cmocka_unit_test(swaps_have_to_be_alike), cmocka_unit_test(one_rank_alone),
        cmocka_unit_test(shared_tensors),         cmocka_unit_test(terms_have_to_be_alike),
    };
    return cmocka_run_group_tests_name("cores_refusals_pairs", tests, NULL, NULL);
}
