/* test_cores_refusals.c - calls between cores with one thing wrong each: every one is refused, in its own words.
 * SPDX-License-Identifier: MIT
 *
 * Each case starts from calls that are right (the first test runs them) and changes one field. Where ranks have to say
 * the same, one of them says something else, term by term. cores_refusals/ has calls from one to one, ranks that do not
 * meet, and other processes.
 */
#include "unit/cores_refusals/desk.h"
#include "unit/cores_refusals/groups.h"

/* ---- what is right ---- */

CALL(good_reduce, all_reduce, a, (void)0)
CALL(good_gather, all_gather, h, d->h.src = trn_tensor_slice(d->far[0], 0, 0, SIDE / 2))
CALL(good_scatter, reduce_scatter, h, d->h.dst = trn_tensor_slice(d->far[1], 0, 0, SIDE / 2))
CALL(good_all_to_all, all_to_all, h, (void)0)
CALL(good_v, all_to_all_v, h, (void)0)
CALL(good_permute, collective_permute, h, (d->h.source_target_pairs = ring_pairs, d->h.pairs = 2))
CALL(good_ring, collective_permute_implicit, h, (void)0)
CALL(good_sum, collective_permute_implicit_reduce, h, d->h.src1 = d->far[2])

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

static const int beyond[] = { 0, 2 }, negative[] = { -1, 0 };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_are_right),
        cmocka_unit_test(lists_of_ranks),
        cmocka_unit_test(views_and_operators),
        cmocka_unit_test(metadata),
    };
    return cmocka_run_group_tests_name("cores_refusals", tests, NULL, NULL) + cores_refusals_pairs() +
           cores_refusals_meetings() + cores_refusals_strangers();
}
