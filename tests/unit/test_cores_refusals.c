/* test_cores_refusals.c - calls between cores with one thing wrong each: every one is refused, in its own words.
 * SPDX-License-Identifier: MIT
 *
 * Each case starts from calls that are right (the first test runs them) and changes one field. Where ranks have to say
 * the same, one of them says something else, term by term.
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

/* ---- a rank with everything at hand ---- */

enum { SIDE = 16 };

typedef struct desk {
    trn_cores_rank *self;
    trn_tensor tile[2], narrow, coded; /* SBUF [16, 16], [16, 8], and the same in bfloat16 */
    trn_tensor far[3], flat;           /* HBM [16, 16], and [256] */
    trn_tensor table;                  /* HBM U32 [5, 2]: sends nothing */
    trn_tensor many[9];                /* HBM [2, 2] */
    trn_cores_collective_args a;       /* tiles */
    trn_cores_collective_args h;       /* HBM */
    trn_cores_sendrecv_args s;
    trn_cores_barrier_args b;
} desk;

typedef struct plot {
    void (*act)(desk *d);
    int odd; /* the rank that does: -1 = all of them; others do as `a` says */
} plot;

static trn_cores cores;
static float memory[8][4][SIDE * SIDE];
static uint32_t tables[8][10];

static trn_tensor zeros(trn_core *core, const char *name, trn_format format, int64_t columns)
{
    const trn_tensor t = trn_core_sbuf(core, name, format, SIDE, columns);
    for (int64_t p = 0; p < SIDE; p++)
        memset((char *)t.data + p * t.stride[0] * (int64_t)trn_format_bytes(format), 0,
               (size_t)columns * trn_format_bytes(format));
    trn_core_written(core, t);
    return t;
}

static void furnish(desk *d, trn_cores_rank *self)
{
    trn_core *core = &self->core;
    float(*mine)[SIDE * SIDE] = memory[self->rank];
    memset(d, 0, sizeof *d);
    memset(tables[self->rank], 0, sizeof tables[0]);
    d->self = self;
    d->tile[0] = zeros(core, "x", TRN_F32, SIDE), d->tile[1] = zeros(core, "y", TRN_F32, SIDE);
    d->narrow = zeros(core, "narrow", TRN_F32, SIDE / 2), d->coded = zeros(core, "coded", TRN_BF16, SIDE);
    for (int i = 0; i < 3; i++) d->far[i] = trn_core_hbm(core, "far", trn_tensor_2d(TRN_F32, mine[i], SIDE, SIDE));
    const trn_tensor rest = trn_core_hbm(core, "rest", trn_tensor_2d(TRN_F32, mine[3], 18, 2));
    for (int i = 0; i < 9; i++) d->many[i] = trn_tensor_slice(rest, 0, 2 * i, 2);
    d->flat = trn_tensor_merge(d->far[0], 0);
    d->table = trn_core_hbm(core, "table", trn_tensor_2d(TRN_U32, tables[self->rank], 5, 2));
    d->a.dst = d->a.src = d->tile[0];
    d->h.dst = d->far[1], d->h.src = d->far[0];
    d->h.metadata = trn_tensor_slice(d->table, 0, 0, 4);
    d->s.dst = d->tile[1], d->s.src = d->tile[0];
    d->s.send_to_rank = d->s.recv_from_rank = 1 - self->program_id;
}

static trn_status kernel(trn_cores_rank *self, void *user)
{
    const plot *p = (const plot *)user;
    desk d;
    furnish(&d, self);
    if (p->odd < 0 || p->odd == self->rank)
        p->act(&d);
    else
        trn_cores_all_reduce(self, &d.a);
    return TRN_OK;
}

static trn_cores_args system_of(trn_generation generation, int ranks, int lnc)
{
    trn_cores_args args;
    memset(&args, 0, sizeof args);
    args.core.generation = generation;
    args.ranks = ranks;
    args.lnc = lnc;
    args.threads = 1;
    return args;
}

/* `sentence`: without "rank 0: instruction 0, " where it begins with a space; null = nothing is refused. */
static void act(trn_cores_args args, void (*what)(desk *d), int odd, const char *sentence)
{
    char text[256];
    plot p = { what, odd };
    assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
    const trn_status status = trn_cores_run(&cores, kernel, &p);
    if (!sentence && status) fail_msg("%s", cores.failure.text);
    if (sentence && !status) fail_msg("nothing failed; expected: %s", sentence);
    if (sentence) {
        snprintf(text, sizeof text, "%s%s", sentence[0] == ' ' ? "rank 0: instruction 0," : "", sentence);
        assert_string_equal(cores.failure.text, text);
    }
    trn_cores_end(&cores);
}

typedef struct wrong_call {
    void (*what)(desk *d);
    const char *sentence;
} wrong_call;

static void each(int lnc, const wrong_call *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++) act(system_of(TRN_TRAINIUM2, 2, lnc), row[i].what, -1, row[i].sentence);
}

#define EACH(lnc, row) each(lnc, row, sizeof row / sizeof row[0])

/* CALL(name, collective, args, changes): a function `name` that changes d->args and calls. */
#define CALL(name, collective, args, ...)                                                                              \
    static void name(desk *d)                                                                                          \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        trn_cores_##collective(d->self, &d->args);                                                                     \
    }

/* ---- what is right ---- */

static const int ring_pairs[][2] = { { 0, 1 }, { 1, 0 } };

CALL(good_reduce, all_reduce, a, (void)0)
CALL(good_gather, all_gather, h, d->h.src = trn_tensor_slice(d->far[0], 0, 0, SIDE / 2))
CALL(good_scatter, reduce_scatter, h, d->h.dst = trn_tensor_slice(d->far[1], 0, 0, SIDE / 2))
CALL(good_all_to_all, all_to_all, h, (void)0)
CALL(good_v, all_to_all_v, h, (void)0)
CALL(good_permute, collective_permute, h, (d->h.source_target_pairs = ring_pairs, d->h.pairs = 2))
CALL(good_ring, collective_permute_implicit, h, (void)0)
CALL(good_sum, collective_permute_implicit_reduce, h, d->h.src1 = d->far[2])
CALL(good_barrier, barrier, b, (void)0)
CALL(good_swap, sendrecv, s, (void)0)

static void calls_that_are_right(void **state)
{
    (void)state;
    static const wrong_call row[] = { { good_reduce, NULL },     { good_gather, NULL }, { good_scatter, NULL },
                                      { good_all_to_all, NULL }, { good_v, NULL },      { good_permute, NULL },
                                      { good_ring, NULL },       { good_sum, NULL },    { good_barrier, NULL } };
    static const wrong_call pair[] = { { good_swap, NULL }, { good_barrier, NULL } };
    EACH(1, row);
    EACH(2, pair);
}

/* ---- who takes part ---- */

static const int both[] = { 0, 0 }, beyond[] = { 0, 2 }, negative[] = { -1, 0 }, three[] = { 0, 1, 2 };
static const int uneven[] = { 0, 1, 2, 3, 4 }, changing[] = { 0, 2, 3, 4, 5 }, last_more[] = { 0, 2, 3 };
static const int whole[] = { 0, 1, 4, 5 }, singles[] = { 0, 2, 4 };

#define GROUP(list, n) (d->a.replica_group.rank = (list), d->a.replica_group.count = (n))

CALL(member_twice, all_reduce, a, GROUP(both, 2))
CALL(member_beyond, all_reduce, a, GROUP(beyond, 2))
CALL(member_negative, all_reduce, a, GROUP(negative, 2))
CALL(too_many_members, all_reduce, a, GROUP(three, 3))
CALL(no_members, all_reduce, a, GROUP(three, 0))
CALL(negative_lists, all_reduce, a, (GROUP(three, 1), d->a.replica_group.groups = -1))
CALL(uneven_chips, all_reduce, a, GROUP(uneven, 5))
CALL(changing_chips, all_reduce, a, GROUP(changing, 5))
CALL(last_chip_more, all_reduce, a, GROUP(last_more, 3))

static void of_whole_chips(desk *d)
{
    if (d->self->rank % 4 > 1) return;
    GROUP(whole, 4);
    trn_cores_all_reduce(d->self, &d->a);
}

static void one_of_each_chip(desk *d)
{
    if (d->self->rank % 2 || d->self->rank > 4) return;
    GROUP(singles, 3);
    trn_cores_all_reduce(d->self, &d->a);
}

static void lists_of_ranks(void **state)
{
    (void)state;
    static const wrong_call row[] = {
        { member_twice, " all_reduce: replica_group has rank 0 twice" },
        { member_beyond, " all_reduce: replica_group has rank 2, which does not exist" },
        { member_negative, " all_reduce: replica_group has rank -1, which does not exist" },
        { too_many_members, " all_reduce: replica_group has 1 lists of 3 ranks; there are 2" },
        { no_members, " all_reduce: replica_group has 1 lists of 0 ranks; there are 2" },
        { negative_lists, " all_reduce: replica_group has -1 lists of 1 ranks; there are 2" },
    };
    EACH(1, row);
    trn_cores_args chips = system_of(TRN_TRAINIUM2, 8, 1);
    chips.cores_per_chip = 2;
    static const wrong_call odd[] = { { uneven_chips, NULL }, { changing_chips, NULL }, { last_chip_more, NULL } };
    for (int i = 0; i < 3; i++)
        act(chips, odd[i].what, 0,
            " all_reduce: list 0 of replica_group is not made of chips with as many ranks each, "
            "one chip after the other");
    act(chips, of_whole_chips, -1, NULL);
    act(chips, one_of_each_chip, -1, NULL);
}

/* ---- views ---- */

CALL(no_dst, all_reduce, a, d->a.dst.rank = 0)
CALL(no_src, all_reduce, a, d->a.src.rank = 0)
CALL(other_format, all_reduce, a, d->a.dst = d->coded)
CALL(no_src1, collective_permute_implicit_reduce, h, (void)0)
CALL(odd_src1, collective_permute_implicit_reduce, h, d->h.src1 = trn_tensor_slice(d->far[2], 0, 0, 8))
CALL(minus_one, all_reduce, h, (d->h.count = -1, d->h.srcs = d->h.dsts = d->many))
CALL(nine, all_reduce, h, (d->h.count = 9, d->h.srcs = d->h.dsts = d->many))
CALL(eight, all_reduce, h, (d->h.count = 8, d->h.srcs = d->h.dsts = d->many))
CALL(no_srcs, all_reduce, h, (d->h.count = 1, d->h.dsts = d->many))
CALL(no_dsts, all_reduce, h, (d->h.count = 1, d->h.srcs = d->many))
CALL(no_srcs1, collective_permute_implicit_reduce, h, (d->h.count = 1, d->h.srcs = d->h.dsts = d->many))
CALL(exchange_in_sbuf, all_to_all, a, d->a.dst = d->tile[1])
CALL(three_axes, all_reduce, a, d->a.src = d->a.dst = trn_tensor_split(d->tile[0], 1, 4))
CALL(two_tiles, all_reduce, a, (d->a.count = 2, d->a.srcs = d->a.dsts = d->tile))
CALL(axis_of_hbm, all_gather, h, (d->h.src = trn_tensor_slice(d->far[0], 1, 0, 8), d->h.collective_dim = 1))
CALL(axis_below, all_gather, h, d->h.collective_dim = -1)
CALL(gathered_rows, all_gather, h, (void)0)
CALL(scattered_rows, reduce_scatter, h, (void)0)
CALL(largest_of_gather, all_gather, h, (good_gather(d), d->h.op = TRN_ALU_MAXIMUM))
CALL(product_of_all, all_reduce, a, d->a.op = TRN_ALU_MULTIPLY)
CALL(odd_rows, all_to_all, h,
     (d->h.dst = trn_tensor_slice(d->far[1], 0, 0, 15), d->h.src = trn_tensor_slice(d->far[0], 0, 0, 15)))
CALL(odd_rounding, all_reduce, a, d->a.rounding = (trn_rounding)99)

static void views_and_operators(void **state)
{
    (void)state;
    static const wrong_call row[] = {
        { no_dst, " all_reduce: dst is missing" },
        { no_src, " all_reduce: src is missing" },
        { other_format, " all_reduce: dst is bfloat16; the first src is float32, and all have its format" },
        { no_src1, " collective_permute_implicit_reduce: src1 is missing" },
        { odd_src1, " collective_permute_implicit_reduce: src1 has size 8 on axis 0 but src has 16" },
        { minus_one, " all_reduce: count is -1; dsts, srcs have 1 to 8 tensors" },
        { nine, " all_reduce: count is 9; dsts, srcs have 1 to 8 tensors" },
        { eight, NULL },
        { no_srcs, " all_reduce: count is 1; dsts, srcs have 1 to 8 tensors" },
        { no_dsts, " all_reduce: count is 1; dsts, srcs have 1 to 8 tensors" },
        { no_srcs1, " collective_permute_implicit_reduce: count is 1; dsts, srcs and srcs1 have 1 to 8 tensors" },
        { exchange_in_sbuf, " all_to_all: dst lies in SBUF; it has to be in HBM" },
        { three_axes, " all_reduce: dst has rank 3; in SBUF there is one tensor, of 2 axes" },
        { two_tiles, " all_reduce: dsts[0] has rank 2; in SBUF there is one tensor, of 2 axes" },
        { axis_of_hbm, " all_gather: collective_dim is 1; in HBM it is 0" },
        { axis_below, " all_gather: collective_dim is -1; in HBM it is 0" },
        { gathered_rows, " all_gather: dst has size 16 on axis 0 but 2 times src along axis 0 has 32" },
        { scattered_rows, " reduce_scatter: src has size 16 on axis 0 but 2 times dst along axis 0 has 32" },
        { product_of_all, " all_reduce: op is multiply; there is add, and maximum and minimum where all ranks reduce" },
        { odd_rows, " all_to_all: src has size 15 on axis 0, which 2 ranks cannot share" },
        { odd_rounding, " all_reduce: rounding 99 is not a rounding mode" },
    };
    EACH(1, row);
    act(system_of(TRN_TRAINIUM2, 2, 1), largest_of_gather, -1,
        "rank 0: instruction 1, all_gather: op is maximum; there is add, and maximum and minimum where all ranks "
        "reduce");
}

/* ---- as many as the metadata say ---- */

static trn_tensor rows_of(desk *d, int64_t rows) { return trn_tensor_slice(d->table, 0, 0, rows); }

CALL(one_row, all_to_all_v, h, d->h.metadata = rows_of(d, 1))
CALL(five_rows, all_to_all_v, h, d->h.metadata = rows_of(d, 5))
CALL(two_rows, all_to_all_v, h, d->h.metadata = rows_of(d, 2))
CALL(counts_of_two, all_to_all_v, h, (d->h.metadata = rows_of(d, 2), d->h.recv_counts_known = true))
CALL(places_of_three, all_to_all_v, h, (d->h.metadata = rows_of(d, 3), d->h.has_rdispls = true))
CALL(of_one_column, all_to_all_v, h, d->h.metadata = trn_tensor_slice(rows_of(d, 4), 1, 0, 1))
CALL(of_one_axis, all_to_all_v, h, d->h.metadata = trn_tensor_merge(rows_of(d, 2), 0))
CALL(of_floats, all_to_all_v, h, d->h.metadata = d->many[0])
CALL(several, all_to_all_v, h, (d->h.count = 1, d->h.dsts = d->many, d->h.srcs = d->many))
CALL(columns_in, all_to_all_v, h, d->h.src = trn_tensor_slice(d->far[0], 1, 0, 8))
CALL(columns_out, all_to_all_v, h, d->h.dst = trn_tensor_slice(d->far[1], 1, 0, 8))
CALL(onto_itself, all_to_all_v, h, d->h.dst = d->h.src)

static void at_the_end(desk *d)
{
    tables[d->self->rank][0] = 3, tables[d->self->rank][2] = 253; /* elements 253 to 255 */
    trn_cores_all_to_all_v(d->self, &d->h);
}

static void past_the_end(desk *d)
{
    tables[d->self->rank][1] = 3, tables[d->self->rank][3] = 254; /* to 256, of which there are 256 */
    trn_cores_all_to_all_v(d->self, &d->h);
}

static void metadata(void **state)
{
    (void)state;
    static const wrong_call row[] = {
        { one_row, " all_to_all_v: metadata has rank 2; it is uint32 [2 or more, up to 4, 2]" },
        { five_rows, " all_to_all_v: metadata has rank 2; it is uint32 [2 or more, up to 4, 2]" },
        { two_rows, NULL },
        { counts_of_two, " all_to_all_v: metadata has rank 2; it is uint32 [3 or more, up to 4, 2]" },
        { places_of_three, " all_to_all_v: metadata has rank 2; it is uint32 [4, 2]" },
        { of_one_column, " all_to_all_v: metadata has rank 2; it is uint32 [2 or more, up to 4, 2]" },
        { of_one_axis, " all_to_all_v: metadata has rank 1; it is uint32 [2 or more, up to 4, 2]" },
        { of_floats, " all_to_all_v: metadata has rank 2; it is uint32 [2 or more, up to 4, 2]" },
        { several, " all_to_all_v: count is 1; there is one src and one dst" },
        { columns_in, " all_to_all_v: src is not a run of elements" },
        { columns_out, " all_to_all_v: dst is not a run of elements" },
        { onto_itself, " all_to_all_v: dst meets src" },
        { at_the_end, NULL },
        { past_the_end, " all_to_all_v: metadata sends elements 254 to 256 to member 1; src has 256" },
    };
    EACH(1, row);
}

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

/* ---- one rank alone ---- */

static const int64_t small_shape[2] = { 4, 4 };

static void alone_in_a_ring(desk *d)
{
    for (int i = 0; i < SIDE * SIDE; i++) memory[0][0][i] = (float)i, memory[0][2][i] = 0.5f, memory[0][1][i] = -1;
    d->h.src1 = d->far[2];
    trn_cores_collective_permute_implicit_reduce(d->self, &d->h);
    for (int i = 0; i < SIDE * SIDE; i++) assert_true(memory[0][1][i] == (float)i + 0.5f);
}

static void alone_with_a_tensor(desk *d)
{
    assert_int_equal(trn_cores_hbm(d->self, "own", TRN_F32, 2, small_shape).rank, 2);
}

static void one_rank_alone(void **state)
{
    (void)state;
    act(system_of(TRN_TRAINIUM2, 1, 1), alone_in_a_ring, -1, NULL);
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

/* ---- another process, made up here: what it says first, and of its ranks ---- */

typedef struct stranger {
    trni_cores_head says; /* of itself; 0 in .ranks: the same as we */
    int64_t bytes;        /* that it sends of its ranks; -1: as many as we */
    int gathers;
} stranger;

static trn_status speaks(void *user, const void *mine, int64_t bytes, void *all, const int64_t *counts,
                         trn_error *error)
{
    stranger *s = (stranger *)user;
    char *theirs = (char *)all + counts[0];
    (void)error;
    memcpy(all, mine, (size_t)bytes);
    if (s->gathers++ % 2) { /* posts */
        memcpy(theirs, mine, (size_t)(counts[1] < bytes ? counts[1] : bytes));
        return TRN_OK;
    }
    trni_cores_head head;
    memcpy(&head, mine, sizeof head);
    if (s->says.ranks) head = s->says;
    if (s->bytes >= 0) head.bytes = s->bytes;
    memcpy(theirs, &head, sizeof head);
    return TRN_OK;
}

static trn_status leaves(trn_cores_rank *self, void *user)
{
    (void)self, (void)user;
    return TRN_OK;
}

/* Process 0 of two, each with a chip of one core. */
static const char *beside(stranger *s)
{
    const trn_cores_exchange exchange = { 0, 2, speaks, s };
    trn_cores_args args = system_of(TRN_TRAINIUM2, 2, 1);
    args.cores_per_chip = 1;
    args.exchange = &exchange;
    assert_int_equal(trn_cores_begin(&cores, &args), TRN_OK);
    const trn_status status = trn_cores_run(&cores, leaves, NULL);
    static char text[256];
    snprintf(text, sizeof text, "%s", status ? cores.failure.text : "");
    trn_cores_end(&cores);
    return text;
}

static void processes_have_to_be_alike(void **state)
{
    (void)state;
    const trni_cores_head good = { .ranks = 2, .lnc = 1, .cores_per_chip = 1, .generation = TRN_TRAINIUM2, .kind = 99 };
    static const struct {
        int ranks, lnc, cores, generation;
    } odd[] = {
        { 3, 1, 1, TRN_TRAINIUM2 },
        { 2, 2, 1, TRN_TRAINIUM2 },
        { 2, 1, 2, TRN_TRAINIUM2 },
        { 2, 1, 1, TRN_TRAINIUM3 },
    };
    stranger same = { .bytes = -1 };
    assert_string_equal(beside(&same), "");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        stranger s = { .says = good, .bytes = 8 };
        char text[160];
        s.says.ranks = odd[i].ranks, s.says.lnc = odd[i].lnc, s.says.cores_per_chip = odd[i].cores;
        s.says.generation = odd[i].generation;
        snprintf(text, sizeof text,
                 "process 0 has 2 ranks (1 to a chip, lnc 1, generation %d), process 1 %d (%d, %d, %d)", TRN_TRAINIUM2,
                 odd[i].ranks, odd[i].cores, odd[i].lnc, odd[i].generation);
        assert_string_equal(beside(&s), text);
    }
    stranger broken = { .says = good, .bytes = 8 }; /* its failure is everybody's */
    broken.says.failure.status = TRN_EIO;
    snprintf(broken.says.failure.text, sizeof broken.says.failure.text, "its disk is gone");
    assert_string_equal(beside(&broken), "its disk is gone");
    stranger brief = { .says = good, .bytes = (int64_t)sizeof(trni_cores_post) - 1 };
    assert_string_equal(beside(&brief), "process 0: what process 1 tells of its ranks is cut short");
    brief.bytes = 0, brief.gathers = 0;
    assert_string_equal(beside(&brief), "process 0: what process 1 tells of its ranks is cut short");
}

/* ---- who has used what, when there is no room for more ---- */

static void the_oldest_use_is_forgotten(void **state)
{
    (void)state;
    static trni_cores_race race;
    memset(&race, 0, sizeof race);
    const int uses = 2 * TRNI_RACE_KEPT + 5;
    for (int i = 0; i < uses; i++) {
        const trni_touch t = { .instruction = i };
        trni_race_keep(&race, &t, i % 7, (uint64_t)i);
    }
    assert_int_equal(race.count, TRNI_RACE_KEPT);
    for (int k = 0; k < TRNI_RACE_KEPT; k++) {
        const int last = k < 5 ? uses - 5 + k : TRNI_RACE_KEPT + k;
        assert_int_equal(race.kept[k].touch.instruction, last);
        assert_int_equal(race.kept[k].rank, last % 7);
        assert_int_equal(race.kept[k].met, last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_are_right),
        cmocka_unit_test(lists_of_ranks),
        cmocka_unit_test(views_and_operators),
        cmocka_unit_test(metadata),
        cmocka_unit_test(pairs_and_rings),
        cmocka_unit_test(barriers_and_swaps),
        cmocka_unit_test(shared_tensors),
        cmocka_unit_test(terms_have_to_be_alike),
        cmocka_unit_test(processes_have_to_be_alike),
        cmocka_unit_test(swaps_have_to_be_alike),
        cmocka_unit_test(one_rank_alone),
        cmocka_unit_test(the_oldest_use_is_forgotten),
    };
    return cmocka_run_group_tests_name("cores_refusals", tests, NULL, NULL);
}
