/* test_collective_moves.c - collectives that only move data, against a list of pieces; and all that a run refuses.
 * SPDX-License-Identifier: MIT
 *
 * For every rank the test lists which elements of whose buffer come where. Views have gaps and permuted axes, formats
 * differ from rank to rank, and what nobody looks at holds no views at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

static uint64_t rng = 20262;

#include "twin/collective_memory.h"

enum { MOST = 16, NOT_LOOKED_AT = -1 };

/* ---- one collective ---- */

typedef struct problem {
    trn_topology net;
    trn_collective_args args;
    int ranks, groups;
    int64_t elements;
    trn_format wire;
    int chips[MOST], targets[MOST];
    int64_t counts[MOST * MOST];
    trn_tensor src[VIEWS], dst[VIEWS];
    trn_error error;
} problem;

static problem now;

typedef struct piece {
    int from;
    int64_t in, out, count;
} piece;

static int64_t share(const problem *p) { return coll_share_of(p->elements, p->args.granule, p->ranks); }

static int64_t chunk(const problem *p, int rank, int64_t *first)
{
    *first = share(p) * rank < p->elements ? share(p) * rank : p->elements;
    return p->elements - *first < share(p) ? p->elements - *first : share(p);
}

/* To whom a rank sends, of permute and send_recv. */
static int target(const problem *p, int rank)
{
    const trn_collective_args *a = &p->args;
    if (a->op == TRN_PERMUTE) return a->targets ? a->targets[rank] : (rank + 1) % p->ranks;
    return rank != a->root ? -1 : a->target == a->root ? p->ranks - 1 : a->target;
}

static piece piece_of(const problem *p, int from, int to)
{
    piece got = { from, 0, 0, 0 };
    switch (p->args.op) {
    case TRN_ALL_GATHER: got.count = chunk(p, from, &got.out); break;
    case TRN_BROADCAST: got.count = from == p->args.root ? p->elements : 0; break;
    case TRN_ALL_TO_ALL:
        if (!p->args.counts) {
            got.count = chunk(p, to, &got.in);
            got.out = got.count * from;
            break;
        }
        got.count = p->counts[from * p->ranks + to];
        for (int r = 0; r < to; r++) got.in += p->counts[from * p->ranks + r];
        for (int r = 0; r < from; r++) got.out += p->counts[r * p->ranks + to];
        break;
    default: got.count = target(p, from) == to ? p->elements : 0; break;
    }
    return got;
}

static int64_t received(const problem *p, int rank)
{
    int64_t n = 0;
    bool any = p->args.op < TRN_PERMUTE;
    for (int r = 0; r < p->ranks; r++) {
        n += piece_of(p, r, rank).count;
        any = any || target(p, r) == rank;
    }
    return any ? n : NOT_LOOKED_AT;
}

static int64_t given(const problem *p, int rank)
{
    int64_t n = 0;
    if (p->args.op == TRN_ALL_GATHER) return chunk(p, rank, &n);
    if (p->args.op == TRN_BROADCAST) return rank == p->args.root ? p->elements : NOT_LOOKED_AT;
    if (p->args.op >= TRN_PERMUTE) return target(p, rank) < 0 ? NOT_LOOKED_AT : p->elements;
    for (int r = 0; r < p->ranks; r++) n += piece_of(p, rank, r).count;
    return n;
}

/* ---- drawing one ---- */

static void draw_roles(problem *p)
{
    trn_collective_args *a = &p->args;
    bool taken[MOST] = { false };
    const bool symmetric = one_in(2);
    a->root = below(p->ranks);
    a->target = below(p->ranks);
    a->targets = one_in(3) ? NULL : p->targets;
    a->counts = one_in(2) ? NULL : p->counts;
    for (int r = 0; r < p->ranks; r++) {
        p->targets[r] = below(p->ranks + 2) - 1;
        if (p->targets[r] >= p->ranks || (p->targets[r] >= 0 && taken[p->targets[r]])) p->targets[r] = -1;
        if (p->targets[r] >= 0) taken[p->targets[r]] = true;
    }
    if (one_in(2))
        for (int r = 0; r < p->ranks; r++) p->targets[r] = p->ranks - 1 - r;
    for (int i = 0; i < p->ranks; i++)
        for (int j = 0; j < p->ranks; j++)
            p->counts[i * p->ranks + j] = symmetric && j < i ? p->counts[j * p->ranks + i] : below(5);
}

/* The rank whose source's format travels when nothing else is said. */
static int first_sender(const problem *p)
{
    int r = 0;
    if (p->args.op == TRN_BROADCAST || p->args.op == TRN_SEND_RECV) return p->args.root;
    while (p->args.op == TRN_PERMUTE && r + 1 < p->ranks && target(p, r) < 0) r++;
    return r;
}

static void draw(problem *p, trn_collective op)
{
    memset(p, 0, sizeof *p);
    const int chips = 1 + below(5), cores = 1 + below(3);
    p->net = trn_topology_ring(12, 1e9, 1e-6);
    p->groups = 1 + below(2);
    p->ranks = chips * cores;
    p->elements = below(60);
    for (int i = 0; i < chips * p->groups; i++) p->chips[i] = 11 - i;
    p->args.net = &p->net;
    p->args.op = op;
    p->args.chips = p->chips;
    p->args.count = chips;
    p->args.groups = p->groups;
    p->args.ranks_per_chip = cores;
    p->args.error = &p->error;
    p->args.src = p->src;
    p->args.dst = p->dst;
    p->wire = any_format();
    draw_arithmetic(&p->args);
    draw_roles(p);
    if (one_in(2)) p->args.wire = p->wire;
}

static trn_format another(const problem *p) { return one_in(3) ? formats[below(COUNT(formats))].format : p->wire; }

static void lay_out(problem *p)
{
    const bool in_place = one_in(3);
    used = 0;
    memset(p->src, 0xee, sizeof p->src);
    memset(p->dst, 0xee, sizeof p->dst);
    for (int i = 0; i < p->ranks * p->groups; i++) {
        const int r = i % p->ranks;
        const int64_t in = given(p, r), out = received(p, r);
        const trn_format from = r == first_sender(p) ? p->wire : another(p), to = another(p);
        const bool same = in_place && in == out && bytes_of(from) == bytes_of(to);
        if (in >= 0) p->src[i] = new_view(from, in, !same);
        if (out >= 0) p->dst[i] = same ? p->src[i] : new_view(to, out, false);
        if (out >= 0) p->dst[i].format = to;
    }
    memory_begin();
    const content what = (content)below(CONTENTS);
    for (int i = 0; i < p->ranks * p->groups; i++)
        if (given(p, i % p->ranks) >= 0) fill(&p->src[i], what);
    memory_expect();
}

static void expect_rank(const problem *p, int group, int rank)
{
    const coll_arith m = arith_of(&p->args, p->wire, group);
    for (int r = 0; r < p->ranks && received(p, rank) >= 0; r++) {
        const piece got = piece_of(p, r, rank);
        for (int64_t i = 0; i < got.count; i++)
            expect_received(&m, &p->dst[group * p->ranks + rank], got.out + i,
                            sent(&m, &p->src[group * p->ranks + r], r, got.in + i));
    }
}

static void test_moves(void **state)
{
    (void)state;
    static const trn_collective moving[] = { TRN_ALL_GATHER, TRN_ALL_TO_ALL, TRN_BROADCAST, TRN_PERMUTE,
                                             TRN_SEND_RECV };
    for (int i = 0; i < cases_rounds(4000, 100000); i++) {
        problem *p = &now;
        draw(p, moving[i % COUNT(moving)]);
        if (p->args.op == TRN_PERMUTE && given(p, first_sender(p)) < 0) continue; /* nobody sends */
        lay_out(p);
        for (int g = 0; g < p->groups; g++)
            for (int r = 0; r < p->ranks; r++) expect_rank(p, g, r);
        any_host(&p->args);
        if (trn_collective_run(&p->args) != TRN_OK) fail_msg("%s: %s", trn_collective_name(p->args.op), p->error.text);
        memory_check(trn_collective_name(p->args.op));
    }
}

/* Nobody sends: no view is looked at. */
static void test_nobody_sends(void **state)
{
    (void)state;
    draw(&now, TRN_PERMUTE);
    memset(now.src, 0xee, sizeof now.src);
    memset(now.dst, 0xee, sizeof now.dst);
    for (int r = 0; r < now.ranks; r++) now.targets[r] = -1;
    now.args.targets = now.targets;
    assert_int_equal(trn_collective_run(&now.args), TRN_EINVAL);
    assert_non_null(strstr(now.error.text, "anything to send"));
}

/* ---- chunks ---- */

static void test_chunks(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 40; n++)
        for (int ranks = 1; ranks < 12; ranks++)
            for (int64_t granule = 0; granule < 6; granule++) {
                int64_t at = 0, first, count;
                for (int r = 0; r < ranks; r++) {
                    trn_collective_chunk(n, granule, ranks, r, &first, &count);
                    assert_true(first == at && count >= 0 && count <= coll_share_of(n, granule, ranks));
                    assert_true(first == n || granule < 2 || first % granule == 0);
                    at += count;
                }
                assert_int_equal(at, n);
            }
    for (int r = 0; r < 1 << 24; r += 65535) { /* no number is too large to be cut */
        int64_t first, count;
        trn_collective_chunk((int64_t)1 << 59, r ? INT64_MAX : (int64_t)1 << 59, 1 << 24, r, &first, &count);
        assert_int_equal(first, r ? (int64_t)1 << 59 : 0);
        assert_int_equal(count, r ? 0 : (int64_t)1 << 59);
    }
}

/* ---- refusals ---- */

enum { FOUR = 4, LENGTH = 12 };
static trn_topology four;
static trn_collective_args base;
static trn_tensor src[FOUR], dst[FOUR];
static trn_error why;

/* A ring of four that sums twelve numbers each; every refusal changes one thing. */
static void begin_refusals(trn_collective op)
{
    four = trn_topology_ring(FOUR, 1e9, 1e-6);
    used = 0;
    memset(&base, 0, sizeof base);
    base.net = &four;
    base.op = op;
    base.src = src;
    base.dst = dst;
    base.error = &why;
    for (int r = 0; r < FOUR; r++) {
        src[r] = trn_tensor_1d(TRN_F32, NULL, LENGTH);
        dst[r] = src[r];
        take_place(&src[r]);
        take_place(&dst[r]);
    }
    memory_begin();
    memory_expect();
}

/* It is refused with this status and a sentence that has this in it, and nothing is written; then all is as before. */
static void refuse(trn_status status, const char *text)
{
    for (int told = 0; told < 2; told++) {
        trn_collective_args a = base;
        memset(&why, 0, sizeof why);
        if (!told) a.error = NULL;
        const trn_status got = trn_collective_run(&a);
        if (got != status || (told && !strstr(why.text, text)))
            fail_msg("%d: %s\nnot %d: %s", (int)got, why.text, (int)status, text);
        if (told) assert_int_equal(why.status, status);
        if (told && strlen(why.text) < 20) fail_msg("'%s' is no sentence", why.text);
        memory_check(text);
    }
    begin_refusals(base.op);
}

#define REFUSE(change, status, text) (change, refuse(status, text))

static void test_refused_numbers(void **state)
{
    (void)state;
    static const int chips[] = { 0, 1, 2, 4 }, twice[] = { 0, 1, 2, 1 }, negative[] = { 0, -1, 2, 3 },
                     five[] = { 0, 1, 2, 3, 0 };
    trn_topology none = trn_topology_ring(0, 1e9, 1e-6), slow = trn_topology_ring(FOUR, 0, 1e-6);
    begin_refusals(TRN_ALL_REDUCE);
    REFUSE(base.net = NULL, TRN_EINVAL, "net is null");
    REFUSE(base.net = &none, TRN_EINVAL, "size 0");
    REFUSE(base.net = &slow, TRN_EINVAL, "expected 1 to 1e+18");
    REFUSE(base.op = (trn_collective)-1, TRN_EINVAL, "op = -1");
    begin_refusals(TRN_ALL_REDUCE);
    REFUSE(base.op = TRN_COLLECTIVE_COUNT, TRN_EINVAL, "op = 7");
    begin_refusals(TRN_ALL_REDUCE);
    REFUSE(base.algorithm = (trn_algorithm)-1, TRN_EINVAL, "algorithm = -1");
    REFUSE(base.algorithm = TRN_ALGORITHM_COUNT, TRN_EINVAL, "algorithm = ");
    REFUSE(base.bytes = -1, TRN_EINVAL, "bytes = -1");
    REFUSE(base.ranks_per_chip = -1, TRN_EINVAL, "ranks_per_chip = -1");
    REFUSE(base.ranks_per_chip = 65, TRN_EINVAL, "ranks_per_chip = 65");
    REFUSE(base.groups = -1, TRN_EINVAL, "groups = -1");
    REFUSE(base.count = -4, TRN_EINVAL, "count = -4");
    REFUSE(base.count = 3, TRN_EINVAL, "count = 3");
    REFUSE(base.groups = 2, TRN_EINVAL, "groups = 2");
    REFUSE(base.chips = chips, TRN_EINVAL, "count = 0");
    REFUSE((base.chips = chips, base.count = 4), TRN_EINVAL, "chips[3] = 4");
    REFUSE((base.chips = negative, base.count = 4), TRN_EINVAL, "chips[1] = -1");
    REFUSE((base.chips = twice, base.count = 4), TRN_EINVAL, "chip 1 is in the groups twice (chips[3])");
    REFUSE((base.chips = twice, base.count = 2, base.groups = 2), TRN_EINVAL, "chip 1 is in the groups twice");
    REFUSE((base.chips = five, base.count = 5), TRN_EINVAL, "5 chips");
    REFUSE((base.chips = five, base.count = 1 << 30), TRN_ELIMIT, "more than");
    REFUSE((base.chips = five, base.count = 1 << 20, base.groups = 1 << 30), TRN_EINVAL, "chips in 1073741824 groups");
    REFUSE(base.root = 4, TRN_EINVAL, "root = 4");
    REFUSE(base.root = -1, TRN_EINVAL, "root = -1");
    REFUSE(base.target = 4, TRN_EINVAL, "target = 4");
    REFUSE(base.granule = -1, TRN_EINVAL, "granule = -1");
    REFUSE(base.rounding = (trn_rounding)9, TRN_EINVAL, "rounding 9");
    REFUSE(base.sr_bits = 33, TRN_EINVAL, "sr_bits is 33");
    REFUSE(base.sr_bits = -1, TRN_EINVAL, "sr_bits is -1");
    REFUSE(base.overflow = (trn_overflow)7, TRN_EINVAL, "overflow");
    REFUSE(base.isa = TRN_ISA_COUNT, TRN_EUNSUPPORTED, "isa");
    REFUSE(base.wire = (trn_format)99, TRN_EFORMAT, "wire");
    REFUSE(base.wire = TRN_CFP8, TRN_EFORMAT, "wire");
    REFUSE(base.accumulate = TRN_CFP8, TRN_EFORMAT, "accumulate");
    REFUSE(base.accumulate = (trn_format)-5, TRN_EFORMAT, "accumulate");
    assert_int_equal(trn_collective_run(NULL), TRN_EINVAL);
}

static void test_refused_views(void **state)
{
    (void)state;
    begin_refusals(TRN_ALL_REDUCE);
    REFUSE(base.src = NULL, TRN_EINVAL, "src is null");
    REFUSE(base.dst = NULL, TRN_EINVAL, "dst is null");
    REFUSE(src[2].shape[0] = 9, TRN_ESHAPE, "src[2] has 9 elements");
    REFUSE(src[0].shape[0] = 9, TRN_ESHAPE, "has 12 elements");
    REFUSE(dst[3].shape[0] = 11, TRN_ESHAPE, "dst[3] has 11 elements");
    REFUSE(dst[1].rank = 0, TRN_ESHAPE, "dst[1] has rank 0");
    REFUSE(src[1].format = TRN_FORMAT_UNSET, TRN_EFORMAT, "src[1]");
    REFUSE(src[0].data = NULL, TRN_EINVAL, "data is null");
    REFUSE(dst[2].data = NULL, TRN_EINVAL, "dst[2]");
    REFUSE(dst[2].stride[0] = -1, TRN_ESHAPE, "negative stride");
    REFUSE((dst[2].rank = 2, dst[2].shape[1] = 1, dst[2].stride[1] = 1), TRN_ESHAPE, "stride 0");
    REFUSE(dst[1] = dst[0], TRN_EINVAL, "overlaps");
    REFUSE(dst[1] = src[0], TRN_EINVAL, "overlaps");
    REFUSE(dst[1].data = (float *)src[1].data + 1, TRN_EINVAL, "overlaps");
    REFUSE((dst[1] = src[1], dst[1].rank = 2, dst[1].shape[0] = 4, dst[1].shape[1] = 3, dst[1].stride[0] = 1,
            dst[1].stride[1] = 4),
           TRN_EINVAL, "overlaps");
    base.op = TRN_ALL_GATHER;
    begin_refusals(base.op);
    refuse(TRN_ESHAPE, "src[0] has 12 elements, but rank 0 of 4 of this all_gather has 3");
    base.op = TRN_REDUCE_SCATTER;
    begin_refusals(base.op);
    refuse(TRN_ESHAPE, "dst[0] has 12 elements, but rank 0 of 4 of this reduce_scatter has 3");
}

static void test_refused_roles(void **state)
{
    (void)state;
    static const int same[] = { 1, 2, 1, -1 }, outside[] = { 1, 2, 4, -1 }, below_it[] = { 0, 1, 2, -2 };
    static int64_t counts[FOUR * FOUR] = { 0, 0, 0, 0, 0, 0, -1 }, huge[FOUR * FOUR];
    for (int i = 0; i < FOUR * FOUR; i++) huge[i] = INT64_MAX;
    begin_refusals(TRN_PERMUTE);
    REFUSE(base.targets = same, TRN_EINVAL, "ranks 0 and 2 both send to rank 1");
    REFUSE(base.targets = outside, TRN_EINVAL, "targets[2] = 4");
    REFUSE(base.targets = below_it, TRN_EINVAL, "targets[3] = -2");
    begin_refusals(TRN_ALL_TO_ALL);
    REFUSE(base.counts = counts, TRN_EINVAL, "counts[1][2] = -1");
    REFUSE(base.counts = huge, TRN_EINVAL, "counts");
    REFUSE(base.algorithm = TRN_KANGARING, TRN_EUNSUPPORTED, "kangaring");
    begin_refusals(TRN_BROADCAST);
    REFUSE(base.algorithm = TRN_SWITCH_DIRECT, TRN_EUNSUPPORTED, "switch");
}

static void test_refused_algorithms(void **state)
{
    (void)state;
    static const int three[] = { 0, 1, 2 };
    begin_refusals(TRN_ALL_REDUCE);
    REFUSE((base.chips = three, base.count = 3, base.algorithm = TRN_RECURSIVE_DOUBLING), TRN_EUNSUPPORTED,
           "power of two");
    REFUSE(base.algorithm = TRN_KANGARING, TRN_EUNSUPPORTED, "ranks_per_chip = 1");
    REFUSE(base.algorithm = TRN_SWITCH_DIRECT, TRN_EUNSUPPORTED, "one switch");
    REFUSE(base.algorithm = TRN_HIERARCHICAL, TRN_EUNSUPPORTED, "inner and an outer level");
    REFUSE(base.algorithm = TRN_POINT_TO_POINT, TRN_EUNSUPPORTED, "point_to_point is not a way of all_reduce");
    REFUSE((base.single_step = true, base.algorithm = TRN_RING), TRN_EINVAL, "single_step");
    const trn_topology trn2 = trn_topology_of(TRN_TRN2_48XLARGE);
    static const int rows[] = { 0, 1, 2, 3 };
    REFUSE((base.net = &trn2, base.chips = rows, base.count = 1, base.ranks_per_chip = 4, base.enforce_rules = true,
            base.src = NULL),
           TRN_EINVAL, "src is null"); /* four ranks are allowed */
    REFUSE((base.net = &trn2, base.chips = rows, base.count = 3, base.ranks_per_chip = 4, base.enforce_rules = true),
           TRN_ELIMIT, "a replica group of 12 ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_nobody_sends),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_refused_numbers),
        cmocka_unit_test(test_refused_views),
        cmocka_unit_test(test_refused_roles),
        cmocka_unit_test(test_refused_algorithms),
    };
    return cmocka_run_group_tests_name("collective moves", tests, NULL, NULL);
}
