/* test_collective_values.c - reductions against plain loops that state the order of every sum, bit for bit.
 * SPDX-License-Identifier: MIT
 *
 * What every byte should become is worked out by twin_collective.h; instruction sets and numbers of threads take turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

static uint64_t rng = 20261;

#include "twin/collective_memory.h"
#include "twin/collective_scenes.h"

/* ---- one reduction ---- */

typedef struct problem {
    const scene *place;
    trn_topology net;
    trn_collective_args args;
    coll_algorithm how;
    coll_plan plan;
    int64_t elements;
    trn_format wire;
    trn_tensor src[VIEWS], dst[VIEWS];
    trn_error error;
} problem;

static problem now; /* large */

static int ranks_of(const problem *p) { return p->plan.ranks; }
static int groups_of(const problem *p) { return p->place->groups ? p->place->groups : 1; }

static bool begin(problem *p, const scene *where, int algorithm, int cores, trn_collective op)
{
    const coll_group group = scene_group(where, cores);
    p->how = algorithms[algorithm].twin;
    if (!scene_takes(where, cores, p->how) || coll_chips(&group) * cores > 64) return false;
    if (p->how == COLL_SINGLE_STEP && op != TRN_ALL_REDUCE) return false;
    p->place = where;
    p->net = scene_topology(where);
    p->plan = coll_plan_of(&group, p->how);
    memset(&p->args, 0, sizeof p->args);
    p->args.net = &p->net;
    p->args.op = op;
    p->args.algorithm = algorithms[algorithm].algorithm;
    p->args.single_step = p->how == COLL_SINGLE_STEP;
    p->args.uncalibrated = p->how == COLL_LEVELS;
    p->args.chips = where->count ? where->chips : NULL;
    p->args.count = where->count;
    p->args.groups = where->groups;
    p->args.ranks_per_chip = cores;
    p->args.error = &p->error;
    p->args.src = p->src;
    p->args.dst = p->dst;
    return true;
}

static void draw_formats(problem *p)
{
    p->wire = any_format();
    draw_arithmetic(&p->args);
    const bool told = one_in(2);
    p->args.wire = told ? p->wire : TRN_FORMAT_UNSET;
    for (int i = 0; i < ranks_of(p) * groups_of(p); i++) {
        p->src[i].format = (told || i > 0) && one_in(4) ? formats[below(COUNT(formats))].format : p->wire;
        p->dst[i].format = one_in(4) ? formats[below(COUNT(formats))].format : p->wire;
    }
}

static int64_t chunk_of(const problem *p, int rank, int64_t *first)
{
    const int64_t share = coll_share_of(p->elements, p->args.granule, ranks_of(p));
    const int64_t at = share * rank < p->elements ? share * rank : p->elements;
    *first = at;
    return p->elements - at < share ? p->elements - at : share;
}

static void lay_out(problem *p)
{
    const bool in_place = one_in(3) && p->args.op == TRN_ALL_REDUCE;
    used = 0;
    for (int i = 0; i < ranks_of(p) * groups_of(p); i++) {
        int64_t first, n = p->elements;
        const bool same = in_place && !one_in(4) && bytes_of(p->src[i].format) == bytes_of(p->dst[i].format);
        if (p->args.op == TRN_REDUCE_SCATTER) n = chunk_of(p, i % ranks_of(p), &first);
        const trn_format to = p->dst[i].format;
        p->src[i] = new_view(p->src[i].format, p->elements, !same);
        p->dst[i] = same ? p->src[i] : new_view(to, n, false);
        p->dst[i].format = to;
    }
    memory_begin();
    const content what = (content)below(CONTENTS);
    for (int i = 0; i < ranks_of(p) * groups_of(p); i++) fill(&p->src[i], what);
    memory_expect();
}

static void expect_group(problem *p, int group)
{
    const int ranks = ranks_of(p);
    const coll_arith m = arith_of(&p->args, p->wire, group);
    for (int64_t i = 0; i < p->elements; i++) {
        uint32_t contribution[VIEWS];
        for (int r = 0; r < ranks; r++)
            contribution[r] = coll_decode(m.wire, sent(&m, &p->src[group * ranks + r], r, i));
        const uint32_t total = coll_reduced(&m, &p->plan, contribution, p->elements, p->args.granule, i);
        const uint32_t code = coll_encode(m.wire, total, twin_plain(TWIN_NEAREST_EVEN));
        for (int r = 0; r < ranks; r++) {
            int64_t first = 0;
            const int64_t n = p->args.op == TRN_ALL_REDUCE ? p->elements : chunk_of(p, r, &first);
            if (i >= first && i < first + n) expect_received(&m, &p->dst[group * ranks + r], i - first, code);
        }
    }
}

static void run(problem *p)
{
    char what[160];
    for (int g = 0; g < groups_of(p); g++) expect_group(p, g);
    any_host(&p->args);
    const trn_status status = trn_collective_run(&p->args);
    snprintf(what, sizeof what, "%s, %s (%d), %d cores, %s, %lld elements, %s", p->place->name,
             trn_algorithm_name(p->args.algorithm), (int)p->how, p->args.ranks_per_chip, trn_format_name(p->wire),
             (long long)p->elements, trn_collective_name(p->args.op));
    if (status != TRN_OK) fail_msg("%s: %s", what, p->error.text);
    memory_check(what);
}

/* ---- many of them ---- */

static void try_elements(problem *p, int64_t elements)
{
    p->elements = elements;
    draw_formats(p);
    lay_out(p);
    run(p);
}

/* Every algorithm on every group: no elements, fewer than ranks, one more than divides. */
static void test_every_algorithm(void **state)
{
    (void)state;
    for (int s = 0; s < SCENES; s++)
        for (int a = 0; a < ALGORITHMS; a++)
            for (int cores = 1; cores <= 4; cores *= 2) {
                const trn_collective op = one_in(2) ? TRN_ALL_REDUCE : TRN_REDUCE_SCATTER;
                if (!begin(&now, &scenes[s], a, cores, a == 6 ? TRN_ALL_REDUCE : op)) continue;
                const int ranks = ranks_of(&now);
                try_elements(&now, 0);
                try_elements(&now, 1 + below(ranks));
                try_elements(&now, ranks + 1 + below(ranks));
            }
}

static void test_random(void **state)
{
    (void)state;
    for (int i = 0; i < cases_rounds(900, 30000); i++) {
        const trn_collective op = one_in(2) ? TRN_ALL_REDUCE : TRN_REDUCE_SCATTER;
        if (!begin(&now, &scenes[below(SCENES)], below(ALGORITHMS), 1 << below(3), op)) continue;
        try_elements(&now, below(200 / (1 + ranks_of(&now) * groups_of(&now) / 8) + 10));
    }
}

/* More than the elements that are summed at a time, on a ring that goes both ways: halves, chunks and tiles end
 * apart. */
static void test_long_chunks(void **state)
{
    (void)state;
    for (int a = 0; a < 4; a++) {
        assert_true(begin(&now, &scenes[3], a, 1, TRN_ALL_REDUCE));
        try_elements(&now, 4 * 1024 + 4 * 2047 + 3);
    }
}

/* ---- by hand ---- */

enum { MOST_BY_HAND = 16 };

/* One element of each rank of a ring, summed into rank 0's; the code that all ranks get. */
static uint32_t ring_sum(trn_format format, int ranks, const uint32_t *code, trn_overflow overflow, bool both_ways)
{
    const trn_topology net = trn_topology_ring(ranks, 1e9, 1e-6);
    uint32_t in[MOST_BY_HAND], out[MOST_BY_HAND] = { 0 };
    trn_tensor src[MOST_BY_HAND], dst[MOST_BY_HAND];
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    for (int r = 0; r < ranks; r++) {
        in[r] = code[r];
        src[r] = trn_tensor_1d(format, &in[r], 1);
        dst[r] = trn_tensor_1d(format, &out[r], 1);
    }
    a.net = &net;
    a.op = TRN_ALL_REDUCE;
    a.algorithm = both_ways ? TRN_BIDIRECTIONAL_RING : TRN_RING;
    a.overflow = overflow;
    a.src = src;
    a.dst = dst;
    assert_int_equal(trn_collective_run(&a), TRN_OK);
    for (int r = 1; r < ranks; r++) assert_int_equal(out[r], out[0]);
    return out[0];
}

static void test_by_hand(void **state)
{
    (void)state;
    const struct {
        trn_format format;
        int ranks;
        bool both_ways, saturate;
        uint32_t in[4], sum;
    } row[] = {
        { TRN_BF16, 3, false, false, { 0x3f80, 0x4380, 0x3f80 }, 0x4380 }, /* (256 + 1) + 1 = 256, and again */
        { TRN_BF16, 3, false, false, { 0x4380, 0x3f80, 0x3f80 }, 0x4381 }, /* (1 + 1) + 256 = 258: rank 1 begins */
        { TRN_BF16, 3, true, false, { 0x3f80, 0x4380, 0x3f80 }, 0x4381 },  /* in one step: one rounding */
        { TRN_BF16, 3, false, false, { 0x4380, 0xc380, 0x3f00 }, 0x0000 }, /* -256 + 0.5 rounds to -256 */
        { TRN_F32, 2, false, false, { 0x7f800000, 0xff800000 }, 0x7fc00000 },
        { TRN_F32, 2, false, false, { 0xffc12345, 0x3f800000 }, 0x7fc00000 },
        { TRN_F32, 2, false, false, { 0x7f800001, 0xff812345 }, 0x7fc00000 },
        { TRN_F32, 3, false, false, { 0x80000000, 0x80000000, 0x80000000 }, 0x80000000 },
        { TRN_F32, 3, false, false, { 0x80000000, 0x00000000, 0x80000000 }, 0x00000000 },
        { TRN_F32, 2, false, true, { 0x7f7fffff, 0x7f7fffff }, 0x7f800000 }, /* that is the adder, no cast */
        { TRN_BF16, 2, false, false, { 0xffc1, 0x3f80 }, 0x7fc0 },
        { TRN_BF16, 2, false, true, { 0x7f7f, 0x7f7f }, 0x7f80 }, /* binary32 has overflowed before the cast */
        { TRN_F16, 2, false, false, { 0x7bff, 0x7bff }, 0x7c00 },
        { TRN_F16, 2, false, true, { 0x7bff, 0x7bff }, 0x7bff },
        { TRN_F16, 2, false, true, { 0x7c00, 0xfbff }, 0x7c00 },
        { TRN_F16, 2, false, false, { 0xfe00, 0x0000 }, 0x7e00 },
        { TRN_F8_E4M3, 2, false, false, { 0x77, 0x77 }, 0x78 },
        { TRN_F8_E4M3, 2, false, true, { 0xf7, 0xf7 }, 0xf7 },
        { TRN_F8_E4M3, 2, false, true, { 0x78, 0xf8 }, 0x7c },
        { TRN_F8_E4M3FN, 2, false, false, { 0x7e, 0x7e }, 0x7f },
        { TRN_F8_E5M2, 2, false, false, { 0x7b, 0x7b }, 0x7c },
        { TRN_F8_E5M2, 2, false, true, { 0x7b, 0x7b }, 0x7b },
        { TRN_F8_E5M2, 2, false, false, { 0x80, 0x80 }, 0x80 },
    };
    for (int i = 0; i < COUNT(row); i++) {
        const trn_overflow overflow = row[i].saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
        const uint32_t got = ring_sum(row[i].format, row[i].ranks, row[i].in, overflow, row[i].both_ways);
        if (got != row[i].sum) fail_msg("row %d: %x, not %x", i, got, row[i].sum);
    }
}

/* ---- relations ---- */

/* All-reduce is a reduce-scatter and then an all-gather of its chunks, bit for bit. */
static void all_reduce_by_halves(problem *p)
{
    static trn_tensor chunk[VIEWS], whole[VIEWS];
    const int ranks = ranks_of(p), all = ranks * groups_of(p);
    p->elements = below(90);
    draw_formats(p);
    p->args.wire = p->wire;
    used = 0;
    for (int i = 0; i < all; i++) {
        int64_t first;
        p->src[i] = new_view(p->src[i].format, p->elements, true);
        p->dst[i] = new_view(p->wire, p->elements, false);
        chunk[i] = new_view(p->wire, chunk_of(p, i % ranks, &first), false);
        whole[i] = new_view(p->wire, p->elements, false);
    }
    memory_begin();
    for (int i = 0; i < all; i++) fill(&p->src[i], one_in(2) ? PLAIN : BYTES);
    for (int turn = 0; turn < 3; turn++) {
        static const trn_collective op[] = { TRN_ALL_REDUCE, TRN_REDUCE_SCATTER, TRN_ALL_GATHER };
        p->args.op = op[turn];
        p->args.src = turn == 2 ? chunk : p->src;
        p->args.dst = turn == 0 ? p->dst : turn == 1 ? chunk : whole;
        any_host(&p->args);
        if (trn_collective_run(&p->args) != TRN_OK) fail_msg("%s: %s", p->place->name, p->error.text);
    }
    for (int i = 0; i < all; i++)
        for (int64_t e = 0; e < p->elements; e++) assert_int_equal(get(&p->dst[i], e), get(&whole[i], e));
}

static void test_all_reduce_is_both(void **state)
{
    (void)state;
    for (int i = 0; i < cases_rounds(200, 5000); i++)
        if (begin(&now, &scenes[below(SCENES)], below(ALGORITHMS), 1 << below(3), TRN_REDUCE_SCATTER))
            all_reduce_by_halves(&now);
}

/* What AUTO computes is what the algorithm computes that cost names for the same bytes. */
static void test_auto(void **state)
{
    (void)state;
    for (int i = 0; i < cases_rounds(200, 3000); i++) {
        const scene *where = &scenes[below(SCENES)];
        trn_cost cost;
        if (!begin(&now, where, 0, 1 << below(3), one_in(2) ? TRN_ALL_REDUCE : TRN_REDUCE_SCATTER)) continue;
        now.elements = below(400);
        draw_formats(&now);
        now.args.algorithm = TRN_ALGORITHM_AUTO;
        now.args.bytes = now.elements * (int64_t)bytes_of(now.wire);
        assert_int_equal(trn_collective_cost(&now.args, &cost), TRN_OK);
        lay_out(&now);
        static unsigned char automatic[ROOM];
        assert_int_equal(trn_collective_run(&now.args), TRN_OK);
        memcpy(automatic, memory, used + 64);
        memcpy(memory, want, used + 64);
        now.args.algorithm = cost.algorithm;
        now.args.single_step = cost.single_step;
        any_host(&now.args);
        assert_int_equal(trn_collective_run(&now.args), TRN_OK);
        memcpy(want, automatic, used + 64);
        memory_check(where->name);
    }
}

/* ---- statistics ---- */

enum { SAMPLES = 144 * 48, MOST_RING = 144 };
static uint16_t sample[MOST_RING][SAMPLES], reduced[SAMPLES];

static double normal(void)
{
    const double u = (cases_u32(&rng) + 0.5) / 4294967296.0, v = (cases_u32(&rng) + 0.5) / 4294967296.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* All ranks' samples summed, each chunk into its place. */
static void reduce_samples(int ranks, trn_format wire, trn_rounding rounding)
{
    const trn_topology net = trn_topology_ring(ranks, 1e9, 1e-6);
    static trn_tensor src[MOST_RING], dst[MOST_RING];
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    for (int r = 0; r < ranks; r++) {
        src[r] = trn_tensor_1d(TRN_BF16, sample[r], SAMPLES);
        dst[r] = trn_tensor_1d(TRN_BF16, reduced + SAMPLES / ranks * r, SAMPLES / ranks);
    }
    a.net = &net;
    a.op = TRN_REDUCE_SCATTER;
    a.algorithm = TRN_RING;
    a.wire = wire;
    a.rounding = rounding;
    a.seed = 7;
    a.src = src;
    a.dst = dst;
    assert_int_equal(trn_collective_run(&a), TRN_OK);
}

static double number(uint16_t bf16) { return (double)cases_float_of((uint32_t)bf16 << 16); }

static double squared_error(int ranks, trn_format wire)
{
    double squares = 0;
    reduce_samples(ranks, wire, TRN_NEAREST_EVEN);
    for (int i = 0; i < SAMPLES; i++) {
        double exact = 0;
        for (int r = 0; r < ranks; r++) exact += number(sample[r][i]);
        squares += (number(reduced[i]) - exact) * (number(reduced[i]) - exact);
    }
    return squares;
}

/* A ring of N rounds N - 1 times: some sqrt(N/2) times the error of one rounding at the end. */
static void test_error_of_a_ring(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        double times;
    } row[] = { { 16, 3.0 }, { 64, 5.9 }, { 144, 8.5 } };
    for (int r = 0; r < MOST_RING; r++)
        for (int i = 0; i < SAMPLES; i++)
            sample[r][i] = (uint16_t)coll_encode(&twin_formats[TWIN_BF16], cases_bits_of((float)normal()),
                                                 twin_plain(TWIN_NEAREST_EVEN));
    for (int i = 0; i < COUNT(row); i++) {
        const double times = sqrt(squared_error(row[i].ranks, TRN_BF16) / squared_error(row[i].ranks, TRN_F32));
        print_message("error of a BF16 ring of %d: %.2f times that of FP32, rounded once\n", row[i].ranks, times);
        if (fabs(times / row[i].times - 1) > 0.1) fail_msg("%g times, not %g", times, row[i].times);
    }
}

/* 1 and an eighth of its ulp: an eighth of the sums go up, within five standard deviations; nearest even moves none. */
static void test_stochastic_is_unbiased(void **state)
{
    (void)state;
    int up = 0;
    for (int i = 0; i < SAMPLES; i++) {
        sample[0][i] = i % 2 ? 0xbf80 : 0x3f80;
        sample[1][i] = i % 2 ? 0xba80 : 0x3a80;
    }
    reduce_samples(2, TRN_BF16, TRN_STOCHASTIC);
    for (int i = 0; i < SAMPLES; i++) {
        assert_in_range(reduced[i] & 0x7fff, 0x3f80, 0x3f81);
        up += reduced[i] & 1;
    }
    assert_true(fabs(up - SAMPLES / 8.0) < 5 * sqrt(SAMPLES * 7 / 64.0));
    reduce_samples(2, TRN_BF16, TRN_NEAREST_EVEN);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(reduced[i] & 0x7fff, 0x3f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_every_algorithm),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_long_chunks),
        cmocka_unit_test(test_all_reduce_is_both),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_error_of_a_ring),
        cmocka_unit_test(test_stochastic_is_unbiased),
    };
    return cmocka_run_group_tests_name("collective values", tests, NULL, NULL);
}
