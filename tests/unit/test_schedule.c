/* test_schedule.c - schedules executed on sets: whose contribution is where after each step, for every algorithm.
 * SPDX-License-Identifier: MIT
 *
 * The executor knows nothing of values. A rank holds the set of the ranks whose numbers went into what it holds; a sum
 * joins sets that share no rank; a copy comes to a rank that has none yet. All moves of a step read what was there
 * before the step, and nothing that another move of the step writes, so that their order cannot matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "twin/cases.h"
#include "twin/collective_nets.h"

enum { MOST = 640, WORDS = MOST / 64, MOST_N = 40 };

static const char *scene = ""; /* what is executed now, for the message when it fails */

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) fail_msg("%s: not so: %s", scene, #condition);                                               \
    } while (0)

/* ---- sets of ranks ---- */

typedef struct set {
    uint64_t word[WORDS];
} set;

static set only(int rank)
{
    set s;
    memset(&s, 0, sizeof s);
    s.word[rank / 64] = (uint64_t)1 << rank % 64;
    return s;
}

/* Joins; false when both have a rank. */
static bool join(set *into, const set *other)
{
    bool apart = true;
    for (int i = 0; i < WORDS; i++) {
        apart = apart && !(into->word[i] & other->word[i]);
        into->word[i] |= other->word[i];
    }
    return apart;
}

static bool is_all(const set *s, int ranks)
{
    for (int r = 0; r < MOST; r++)
        if ((s->word[r / 64] >> r % 64 & 1u) != (r < ranks)) return false;
    return true;
}

/* ---- positions ---- */

static int digit_of(const trni_cc_stage *st, int position) { return position / st->stride % st->size; }

/* First members of all groups of a stage whose other members meet position p's sub-block: the digits of the stages
 * before are p's. Returns how many. */
static int bases_of(const trni_schedule *s, const trni_cc_channel *c, int stage, int p, int base[MOST])
{
    int count = 0;
    for (int q = 0; q < s->ranks; q++) {
        bool here = digit_of(&c->stage[stage], q) == 0;
        for (int i = 0; i < stage && here; i++) here = digit_of(&c->stage[i], q) == digit_of(&c->stage[i], p);
        if (here) base[count++] = q;
    }
    return count;
}

/* ---- one step: what it reads, what it writes ---- */

typedef struct holder {
    set from;
    int depth; /* roundings on the longest way */
    bool has;
} holder;

static holder hold[MOST], written[MOST];
static int written_at[MOST], writes;
static int writer_of[MOST], reader_of[MOST]; /* the move that wrote or read it in this step; 0 = none, -1 = several */
static int moves_seen;
static bool halves_seen;

static void step_begin(int ranks)
{
    memset(writer_of, 0, sizeof(int) * (size_t)ranks);
    memset(reader_of, 0, sizeof(int) * (size_t)ranks);
    writes = moves_seen = 0;
}

static const holder *step_read(int q, int move)
{
    reader_of[q] = reader_of[q] == 0 || reader_of[q] == move ? move : -1;
    return &hold[q];
}

static void step_write(int q, const holder *what, int move)
{
    REQUIRE(writer_of[q] == 0);
    writer_of[q] = move;
    written_at[writes] = q;
    written[writes++] = *what;
}

static void step_end(void)
{
    for (int i = 0; i < writes; i++) {
        const int q = written_at[i];
        REQUIRE(reader_of[q] == 0 || reader_of[q] == writer_of[q]);
        hold[q] = written[i];
    }
}

static int member(int base, const trni_cc_stage *st, int m)
{
    REQUIRE(m >= 0 && m < st->size);
    return base + m * st->stride;
}

/* ---- reduce-scatter ---- */

static void sum(const trni_cc_stage *st, int base, const trni_hop *m)
{
    const bool all = m->sources == TRNI_ALL_MEMBERS;
    const int id = ++moves_seen, sources = all ? st->size : m->sources, to = member(base, st, m->to);
    holder result;
    memset(&result, 0, sizeof result);
    REQUIRE(sources >= 2 && (all || sources <= 3) && m->also == TRNI_NOBODY && m->weight == 1);
    for (int i = 0; i < sources; i++) {
        const holder *source = step_read(member(base, st, all ? i : m->from[i]), id);
        REQUIRE(join(&result.from, &source->from));
        if (source->depth >= result.depth) result.depth = source->depth + 1;
    }
    step_write(to, &result, id);
}

/* In a step that costs no latency nothing leaves a pair. */
static void require_free(const trni_cc_stage *st, int step, bool reduces, const trni_hop *m)
{
    if (!trni_step_is_free(st->how, st->size, step, reduces)) return;
    REQUIRE(reduces && m->to / 2 == m->from[0] / 2 && m->to / 2 == m->from[1] / 2 && m->sources == 2);
}

static int roundings(const trni_cc_stage *st)
{
    if (st->how == TRNI_DIRECT) return 1;
    return st->how == TRNI_RING_UP || st->how == TRNI_RING_DOWN ? st->size - 1 : st->size / 2;
}

/* The half `part` of the sub-block of position p. */
static void reduce(const trni_schedule *s, const trni_cc_channel *c, int p, int part)
{
    static int base[MOST];
    int depth = 0;
    for (int q = 0; q < s->ranks; q++) {
        const holder own = { only(trni_rank_at(s, c, q)), 0, true };
        hold[q] = own;
    }
    for (int i = 0; i < c->stages; i++) {
        const trni_cc_stage *st = &c->stage[i];
        const int bases = bases_of(s, c, i, p, base);
        depth += roundings(st);
        for (int step = 0; step < trni_pattern_steps(st->how, st->size); step++) {
            trni_hop move[TRNI_HOPS];
            const int moves = trni_reduce_moves(st->how, st->size, step, digit_of(st, p), move);
            REQUIRE(moves >= 1 && moves <= TRNI_HOPS);
            step_begin(s->ranks);
            for (int b = 0; b < bases; b++)
                for (int k = 0; k < moves; k++) {
                    REQUIRE(move[k].part >= 0 && move[k].part <= 2);
                    halves_seen = halves_seen || move[k].part;
                    require_free(st, step, true, &move[k]);
                    if (!move[k].part || move[k].part == part) sum(st, base[b], &move[k]);
                }
            step_end();
        }
    }
    REQUIRE(is_all(&hold[p].from, s->ranks));
    REQUIRE(hold[p].depth == depth);
}

/* ---- all-gather ---- */

static void copy_to(int from, int to, int id)
{
    holder got = *step_read(from, id);
    REQUIRE(got.has && !hold[to].has);
    step_write(to, &got, id);
}

static void copy(const trni_cc_stage *st, int base, const trni_hop *m)
{
    const int id = ++moves_seen, from = member(base, st, m->from[0]);
    REQUIRE(m->sources == 1 && m->weight == 1);
    if (m->to != TRNI_NOBODY) {
        copy_to(from, member(base, st, m->to), id);
        if (m->also != TRNI_NOBODY) copy_to(from, member(base, st, m->also), id);
        return;
    }
    for (int k = 0; k < st->size; k++)
        if (k != m->from[0]) copy_to(from, member(base, st, k), id);
}

static void gather(const trni_schedule *s, const trni_cc_channel *c, int p, int part)
{
    static int base[MOST];
    for (int q = 0; q < s->ranks; q++) {
        memset(&hold[q], 0, sizeof hold[q]);
        hold[q].has = q == p;
    }
    for (int i = c->stages - 1; i >= 0; i--) {
        const trni_cc_stage *st = &c->stage[i];
        const int bases = bases_of(s, c, i, p, base);
        for (int step = 0; step < trni_pattern_steps(st->how, st->size); step++) {
            trni_hop move[TRNI_HOPS];
            const int moves = trni_gather_moves(st->how, st->size, step, digit_of(st, p), move);
            REQUIRE(moves >= 0 && moves <= TRNI_HOPS);
            REQUIRE((moves == 0) == trni_step_is_free(st->how, st->size, step, false));
            step_begin(s->ranks);
            for (int b = 0; b < bases; b++)
                for (int k = 0; k < moves; k++)
                    if (!move[k].part || move[k].part == part) copy(st, base[b], &move[k]);
            step_end();
        }
    }
    for (int q = 0; q < s->ranks; q++) REQUIRE(hold[q].has);
}

/* ---- all-to-all: the blocks of one sender, by the distance they still have to go ---- */

/* Blocks for the members farther than `hops` up (way 1) or down a ring; the member opposite gets half from each
 * side. */
static double in_flight(trni_pattern how, int n, int way, int hops)
{
    const bool both = how == TRNI_BOTH_WAYS;
    double sum_of = 0;
    if (!both && way != trni_pattern_way(how)) return 0;
    for (int far = hops + 1; far < n; far++) {
        if (!both || 2 * far < n)
            sum_of += 1;
        else if (2 * far == n)
            sum_of += 0.5;
    }
    return sum_of;
}

static void exchange_ring(trni_pattern how, int n, int v)
{
    for (int step = 0; step < trni_pattern_steps(how, n); step++) {
        trni_hop move[TRNI_HOPS];
        const int moves = trni_exchange_moves(how, n, step, v, move);
        double sent[2] = { 0, 0 };
        for (int k = 0; k < moves; k++) {
            const int up = n > 2 ? (move[k].to - move[k].from[0] + n) % n == 1 : k == 0;
            REQUIRE(move[k].from[0] == ((v + (up ? step : -step)) % n + n) % n);
            REQUIRE(move[k].to == ((v + (up ? step + 1 : -step - 1)) % n + n) % n);
            REQUIRE(move[k].sources == 1 && move[k].part == 0 && move[k].also == TRNI_NOBODY);
            sent[up] += move[k].weight;
        }
        if (n == 2)
            REQUIRE(sent[0] + sent[1] == 1);
        else
            REQUIRE(sent[1] == in_flight(how, n, 1, step) && sent[0] == in_flight(how, n, -1, step));
    }
    const int steps = trni_pattern_steps(how, n); /* and then everything has arrived */
    REQUIRE(in_flight(how, n, 1, steps) == 0 && in_flight(how, n, -1, steps) == 0);
}

static void exchange_direct(int n, int v)
{
    trni_hop move[TRNI_HOPS];
    REQUIRE(trni_exchange_moves(TRNI_DIRECT, n, 0, v, move) == 1 && trni_pattern_steps(TRNI_DIRECT, n) == (n > 1));
    REQUIRE(move[0].to == TRNI_NOBODY && move[0].from[0] == v && move[0].weight == 1 && move[0].sources == 1);
}

/* Stage after stage a block takes over its receiver's digits: it ends there, from wherever it came. */
static void exchange(const trni_schedule *s, const trni_cc_channel *c)
{
    for (int q = 0; q < s->ranks; q++)
        for (int p = 0; p < s->ranks; p += 1 + s->ranks / 48) {
            int at = q;
            for (int i = 0; i < c->stages; i++)
                at += (digit_of(&c->stage[i], p) - digit_of(&c->stage[i], at)) * c->stage[i].stride;
            REQUIRE(at == p);
        }
}

/* ---- a schedule ---- */

static void check_order(const trni_schedule *s, const trni_cc_channel *c)
{
    set all;
    memset(&all, 0, sizeof all);
    for (int q = 0; q < s->ranks; q++) {
        const int rank = trni_rank_at(s, c, q);
        REQUIRE(rank >= 0 && rank < s->ranks);
        const set one = only(rank);
        REQUIRE(join(&all, &one)); /* so each rank is the owner of one chunk */
    }
}

static void check_channel(const trni_schedule *s, const trni_cc_channel *c, bool exchanges)
{
    check_order(s, c);
    REQUIRE(c->stages <= TRNI_MAX_STAGES && (c->stages > 0) == (s->ranks > 1));
    for (int p = 0; p < s->ranks; p++) {
        halves_seen = false;
        for (int part = 1; part == 1 || (part == 2 && halves_seen); part++) {
            reduce(s, c, p, part);
            gather(s, c, p, part);
        }
    }
    if (exchanges) exchange(s, c);
}

static void check_schedule(const trni_schedule *s, bool exchanges)
{
    double shares = 0;
    REQUIRE(s->ranks <= MOST && s->channels >= 1 && s->channels <= TRNI_MAX_CHANNELS);
    REQUIRE(s->block >= 1 && s->ranks % s->block == 0);
    for (int k = 0; k < s->channels; k++) {
        REQUIRE(s->channel[k].share > 0);
        shares += s->channel[k].share;
        check_channel(s, &s->channel[k], exchanges);
    }
    REQUIRE(fabs(shares - 1) < 1e-12);
}

/* ---- the patterns by themselves ---- */

static void test_patterns(void **state)
{
    (void)state;
    for (int how = TRNI_RING_UP; how <= TRNI_PAIRS_DOWN; how++)
        for (int n = 1; n <= MOST_N; n++) {
            char text[64];
            const bool pairs = how == TRNI_PAIRS_UP || how == TRNI_PAIRS_DOWN;
            if (pairs && n % 2) continue;
            snprintf(text, sizeof text, "pattern %d of %d", how, n);
            scene = text;
            trni_schedule s;
            memset(&s, 0, sizeof s);
            s.ranks = s.block = n;
            trni_add_stage(trni_add_channel(&s, 1), (trni_pattern)how, n, 1, 1);
            check_schedule(&s, true);
            for (int v = 0; v < n && n > 1 && !pairs; v++) {
                if (how == TRNI_DIRECT)
                    exchange_direct(n, v);
                else
                    exchange_ring((trni_pattern)how, n, v);
            }
        }
}

/* Steps as documented: N - 1 of a ring, half as many of both directions, N/2 stops of pairs with N/2 - 1 hops. */
static void test_steps(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_N; n++) {
        int paid = 0;
        assert_int_equal(trni_pattern_steps(TRNI_RING_UP, n), n - 1);
        assert_int_equal(trni_pattern_steps(TRNI_RING_DOWN, n), n - 1);
        assert_int_equal(trni_pattern_steps(TRNI_BOTH_WAYS, n), (n - 1 + 1) / 2);
        assert_int_equal(trni_pattern_steps(TRNI_DIRECT, n), 1);
        if (n % 2) continue;
        assert_int_equal(trni_pattern_steps(TRNI_PAIRS_UP, n), n / 2);
        for (int step = 0; step < n / 2; step++) paid += !trni_step_is_free(TRNI_PAIRS_DOWN, n, step, true);
        assert_int_equal(paid, n == 2 ? 1 : n / 2 - 1);
    }
}

/* A ring as documented: the partial for chunk c begins at rank c + 1 and ends at c. */
static void test_ring_begins(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_N; n++)
        for (int c = 0; c < n; c++) {
            trni_hop move[TRNI_HOPS];
            assert_int_equal(trni_reduce_moves(TRNI_RING_UP, n, 0, c, move), 1);
            assert_int_equal(move[0].from[0], (c + 1) % n);
            assert_int_equal(trni_reduce_moves(TRNI_RING_UP, n, n - 2, c, move), 1);
            assert_int_equal(move[0].to, c);
        }
}

/* ---- the algorithms on groups ---- */

/* One digit of two chips differs, and by one, or by all but one where a ring closes. */
static bool next_to_each_other(const trni_layout *l, int x, int y)
{
    int apart = 0;
    for (int d = 0; d < l->dims; x /= l->dim[d].size, y /= l->dim[d++].size) {
        const int n = l->dim[d].size, step = abs(x % n - y % n);
        const bool closes = l->dim[d].wiring == TRN_WIRING_RING && l->dim[d].whole;
        apart += step == 1 || (closes && step == n - 1) ? 1 : step ? 2 : 0;
    }
    return apart == 1;
}

/* A ring goes from chip to chip along one dimension at a time. */
static void check_ring(const trni_layout *l, const trni_schedule *s)
{
    for (int p = l->ranks_per_chip; p < s->ranks; p += l->ranks_per_chip)
        REQUIRE(next_to_each_other(l, trni_rank_at(s, &s->channel[0], p) / l->ranks_per_chip,
                                   trni_rank_at(s, &s->channel[0], p - 1) / l->ranks_per_chip));
}

/* Every algorithm that fits, with all its variants, and a count of them. */
static int check_group(trn_collective_args *args, const char *name)
{
    int checked = 0;
    trni_layout layout;
    args->op = TRN_ALL_REDUCE;
    assert_int_equal(trni_layout_init(&layout, args), TRN_OK);
    for (int a = TRN_RING; a < TRN_POINT_TO_POINT; a++) {
        if (trni_layout_fits(&layout, (trn_algorithm)a, NULL) != TRN_OK) continue;
        for (int v = 0; v < trni_layout_variants(&layout, (trn_algorithm)a); v++) {
            char text[128];
            trni_schedule s;
            memset(&s, 0, sizeof s);
            if (!trni_layout_variant_fits(&layout, (trn_algorithm)a, v)) continue;
            snprintf(text, sizeof text, "%s, %d ranks per chip, %s %d", name, args->ranks_per_chip,
                     trn_algorithm_name((trn_algorithm)a), v);
            scene = text;
            assert_int_equal(trni_layout_schedule(&layout, (trn_algorithm)a, v, &s), TRN_OK);
            REQUIRE(s.ranks == layout.ranks && s.single_step == (a == TRN_MESH && v == 1));
            check_schedule(&s, a != TRN_KANGARING);
            if (a <= TRN_MULTI_RING) check_ring(&layout, &s);
            trni_schedule_free(&s);
            checked++;
        }
    }
    return checked;
}

/* The same with 1, 2, 4 and 8 ranks per chip, as long as the set of them is small enough. */
static int check_net(const trn_topology *net, const net_group *group, const char *name, int most)
{
    int checked = 0;
    assert_true(net->chips > 0);
    for (int cores = 1; cores <= 8; cores *= 2) {
        trn_collective_args args = net_args(net, group, cores);
        if (trn_collective_ranks(&args) <= most) checked += check_group(&args, name);
    }
    return checked;
}

static void test_whole_nets(void **state)
{
    (void)state;
    int checked = 0;
    for (int i = 0; i < NETS; i++) {
        char name[32];
        const trn_topology net = net_number(i);
        snprintf(name, sizeof name, "net %d", i);
        checked += check_net(&net, NULL, name, cases_level() == 1 ? 128 : 512);
    }
    assert_true(checked > 400);
}

static void test_systems(void **state)
{
    (void)state;
    for (int system = 0; system < TRN_SYSTEM_COUNT; system++) {
        const trn_topology net = trn_topology_of((trn_system)system);
        if (net.chips > MOST) continue;
        assert_true(check_net(&net, NULL, net.name, cases_level() == 1 ? 144 : 576) >= 4);
    }
}

static void test_groups(void **state)
{
    (void)state;
    for (int i = 0; i < NET_GROUPS; i++) {
        const trn_topology net = trn_topology_of(net_groups[i].system);
        assert_true(check_net(&net, &net_groups[i], net_groups[i].name, 128) >= 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),   cmocka_unit_test(test_steps),   cmocka_unit_test(test_ring_begins),
        cmocka_unit_test(test_whole_nets), cmocka_unit_test(test_systems), cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
