/* fuzz_collective.c - random arguments into the cost of collectives and into collectives that compute.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_collective [count] [seed]        default: 20000 calls, 1000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * Networks of every kind (now and then a spoilt one), groups with chips that repeat or do not exist, sizes, formats,
 * operations, algorithms and counts in and out of range, views with gaps, in place, overlapping, wrong. No crash, no
 * hang; nothing is written on failure, and only destinations on success. A cost is finite and no less than its bound,
 * and the same when asked again by the name of what AUTO chose; a run writes the same bits with portable kernels, and
 * every rank of an all-reduce has the same.
 */
#define _DEFAULT_SOURCE 1

#include <math.h>

#include "fuzz/arena.h"
#include "trnmath/trn_collective.h"

enum { MOST_CHIPS = 160, MOST_RANKS = 48, NETS = 17, ROOM = MOST_RANKS * 2 };

typedef enum call { COST, RUN, CALLS } call;
static const char *const call_name[CALLS] = { "trn_collective_cost", "trn_collective_run" };

static trn_topology nets[NETS];

typedef struct problem {
    trn_topology net;
    trn_collective_args a;
    trn_calibration calibration;
    int chips[MOST_CHIPS], targets[MOST_RANKS];
    int64_t counts[MOST_RANKS * MOST_RANKS];
    trn_tensor src[ROOM], dst[ROOM];
    int views; /* of each */
} problem;

static problem p;

/* ---- networks ---- */

static trn_topology two_levels(trn_wiring inner, int a, trn_wiring outer, int b)
{
    trn_level level[2];
    memset(level, 0, sizeof level);
    level[0].wiring = inner;
    level[0].size = a;
    level[1].wiring = outer;
    level[1].size = b;
    level[0].bytes_per_s = level[1].bytes_per_s = 1e9;
    level[1].latency_s = 1e-5;
    return trn_topology_hierarchy("two levels", 2, level);
}

/* A graph of nine, some of whose links go one way, and one of which is two. */
static trn_topology graph(void)
{
    trn_wire wire[14];
    memset(wire, 0, sizeof wire);
    for (int i = 0; i < 14; i++) {
        wire[i].from = (uint8_t)(i % 9);
        wire[i].to = (uint8_t)((i + (i < 9 ? 1 : 4)) % 9);
        wire[i].one_way = i == 2 || i == 11;
        wire[i].count = 1 + (i == 3);
        wire[i].bytes_per_s = 1e9 * (1 + i % 3);
        wire[i].latency_s = 1e-6 * (i % 2);
    }
    return trn_topology_wired("graph", 9, 14, wire);
}

static void make_nets(void)
{
    const int plane[] = { 3, 4 }, cube[] = { 2, 3, 3 };
    int n = 0;
    for (int chips = 1; chips <= 5; chips++) nets[n++] = trn_topology_ring(chips, 1e9, 1e-6);
    nets[n++] = trn_topology_switch(6, 1e9, 1e-6);
    nets[n++] = trn_topology_fully_connected(5, 1e9, 1e-6);
    nets[n++] = trn_topology_torus(2, plane, 1e9, 1e-6);
    nets[n++] = trn_topology_torus(3, cube, 1e9, 0);
    nets[n++] = two_levels(TRN_WIRING_RING, 4, TRN_WIRING_SWITCH, 3);
    nets[n++] = two_levels(TRN_WIRING_NONE, 3, TRN_WIRING_SWITCH, 2);
    nets[n++] = two_levels(TRN_WIRING_SWITCH, 3, TRN_WIRING_FULL, 3);
    nets[n++] = graph();
    nets[n++] = trn_topology_of(TRN_TRN1_2XLARGE);
    nets[n++] = trn_topology_of(TRN_TRN2_48XLARGE);
    nets[n++] = trn_topology_preset(TRN_TRN3_GEN1_ULTRASERVER, "sa/planes=2");
    nets[n++] = trn_topology_of(TRN_TRN3_GEN2_ULTRASERVER);
    if (n != NETS) say("networks were miscounted");
}

/* Some chips and links that are down or slow; links used in turns; messages that arrive before they go on. */
static void break_net(trn_topology *net)
{
    const int64_t links = trn_topology_link_count(net);
    const trn_topology sound = *net;
    net->store_and_forward = one_in(4);
    for (int l = 0; l < net->levels; l++) net->level[l].half_duplex = one_in(6);
    for (net->faults = one_in(2) ? 0 : below(4); net->faults > 0 && links == 0;) net->faults = 0;
    for (int i = 0; i < net->faults; i++) {
        const bool chip = one_in(5);
        net->fault[i].kind = chip ? TRN_FAULT_CHIP : TRN_FAULT_LINK;
        trn_link link;
        do net->fault[i].at = below(chip ? net->chips : (int)links);
        while (!chip && !trn_topology_link(&sound, net->fault[i].at, &link)); /* not all numbers of a graph have one */
        net->fault[i].share = one_in(2) ? 0 : (1 + below(8)) / 8.0;
    }
}

static double absurd_amount(void)
{
    static const double value[] = { 0, -1, 1, 1e-30, 1e200, HUGE_VAL, -HUGE_VAL, 1e9 };
    return one_in(6) ? strtod("nan", NULL) : value[below(8)];
}

static void spoil_net(trn_topology *net)
{
    trn_level *level = &net->level[below(TRN_MAX_LEVELS)];
    switch (below(12)) {
    case 0: net->chips = absurd_int(); break;
    case 1: net->levels = absurd_int(); break;
    case 2: level->size = absurd_int(); break;
    case 3: level->wiring = (trn_wiring)absurd_int(); break;
    case 4: level->planes = absurd_int(); break;
    case 5: level->bytes_per_s = absurd_amount(); break;
    case 6: level->latency_s = absurd_amount(); break;
    case 7: net->start_s = absurd_amount(); break;
    case 8: net->faults = absurd_int(); break;
    case 9: net->fault[0].at = absurd_size(); break;
    case 10: net->fault[0].share = absurd_amount(); break;
    default: net->hbm_bytes_per_s = absurd_amount(); break;
    }
}

/* ---- groups and roles ---- */

static void draw_chips(problem *q)
{
    const int first = below(q->net.chips), step = 1 + below(5);
    q->a.chips = q->chips;
    q->a.count = 1 + below(q->net.chips < 9 ? q->net.chips : 9);
    q->a.groups = below(3);
    for (int i = 0; i < MOST_CHIPS; i++) q->chips[i] = (first + i * (one_in(30) ? step + 1 : step)) % q->net.chips;
    if (one_in(2))
        for (int i = 0; i < MOST_CHIPS; i++) q->chips[i] = i % q->net.chips;
    for (int i = 0; i < MOST_CHIPS && i < q->net.chips && one_in(2); i++) { /* the first few of them in any order */
        const int k = i + below((q->net.chips < MOST_CHIPS ? q->net.chips : MOST_CHIPS) - i), chip = q->chips[i];
        q->chips[i] = q->chips[k];
        q->chips[k] = chip;
    }
    if (one_in(8)) q->chips[below(q->a.count)] = absurd_int();
}

static void draw_roles(problem *q, int ranks)
{
    q->a.root = below(ranks);
    q->a.target = below(ranks);
    for (int r = 0; r < MOST_RANKS; r++)
        q->targets[r] = one_in(3) ? -1 : (r * (one_in(20) ? 2 : 1) + q->a.root) % ranks;
    for (int i = 0; i < MOST_RANKS * MOST_RANKS; i++) q->counts[i] = below(3);
    if (one_in(20)) q->targets[below(ranks)] = absurd_int();
    if (one_in(20)) q->counts[below(ranks * ranks)] = absurd_size();
    if (one_in(2)) q->a.targets = q->targets;
    if (one_in(2)) q->a.counts = q->counts;
}

static void mutate(problem *q)
{
    trn_collective_args *a = &q->a;
    switch (below(20)) {
    case 0: a->op = (trn_collective)absurd_int(); break;
    case 1: a->algorithm = (trn_algorithm)absurd_int(); break;
    case 2: a->bytes = absurd_size(); break;
    case 3: a->count = absurd_int(); break;
    case 4: a->groups = absurd_int(); break;
    case 5: a->ranks_per_chip = absurd_int(); break;
    case 6: a->root = absurd_int(); break;
    case 7: a->target = absurd_int(); break;
    case 8: a->chips = NULL; break;
    case 9: a->net = NULL; break;
    case 10: a->granule = absurd_size(); break;
    case 11: a->wire = (trn_format)absurd_int(); break;
    case 12: a->accumulate = (trn_format)absurd_int(); break;
    case 13: a->rounding = (trn_rounding)absurd_int(); break;
    case 14: a->overflow = (trn_overflow)absurd_int(); break;
    case 15: a->sr_bits = absurd_int(); break;
    case 16: a->isa = (trn_isa)absurd_int(); break;
    case 17: a->single_step = true; break;
    case 18: *(one_in(2) ? &q->calibration.rdh : &q->calibration.memory) = absurd_amount(); break;
    default: spoil_net(&q->net); break;
    }
}

/* So many that arrays of a caller would have to be larger than ours, or that it would take long: not what is asked
 * here. */
static bool too_many(const problem *q)
{
    const trn_collective_args *a = &q->a;
    if (!a->net || trn_topology_check(a->net, NULL) != TRN_OK) return false; /* refused at once */
    const int64_t chips = a->count > 0 ? a->count : a->net->chips,
                  cores = a->ranks_per_chip > 1 ? a->ranks_per_chip : 1;
    const bool listed = (a->op == TRN_PERMUTE && a->targets) || (a->op == TRN_ALL_TO_ALL && a->counts);
    return a->net->chips > MOST_CHIPS || chips * cores > (listed ? MOST_RANKS : 200);
}

static void draw(problem *q, int most_mutations)
{
    memset(q, 0, sizeof *q);
    trn_collective_args *a = &q->a;
    q->net = nets[below(NETS)];
    break_net(&q->net);
    q->calibration = trn_calibration_default();
    a->net = &q->net;
    a->op = (trn_collective)below(TRN_COLLECTIVE_COUNT);
    a->algorithm = one_in(3) ? TRN_ALGORITHM_AUTO : (trn_algorithm)below(TRN_ALGORITHM_COUNT);
    a->bytes = one_in(4) ? absurd_size() : below(1 << 20);
    a->ranks_per_chip = one_in(2) ? below(3) : 1 << below(3);
    a->uncalibrated = one_in(3);
    a->enforce_rules = one_in(8);
    if (one_in(4)) a->calibration = &q->calibration;
    if (one_in(2) || q->net.chips > 16) draw_chips(q);
    const int ranks = (a->count ? a->count : q->net.chips) * (a->ranks_per_chip ? a->ranks_per_chip : 1);
    draw_roles(q, ranks < MOST_RANKS ? ranks : MOST_RANKS);
    for (int i = one_in(2) ? 0 : below(most_mutations + 1); i > 0; i--) mutate(q);
}

/* ---- cost ---- */

static bool sound(double x) { return x >= 0 && x < HUGE_VAL; }

static void check_cost(const trn_collective_args *a, const trn_cost *c)
{
    const bool chosen = a->algorithm == TRN_ALGORITHM_AUTO && a->op < TRN_PERMUTE;
    if (memchr(c->bottleneck, 0, sizeof c->bottleneck) == NULL || !c->bottleneck[0]) say("the bottleneck has no name");
    if ((unsigned)c->algorithm >= TRN_ALGORITHM_COUNT || c->algorithm == TRN_ALGORITHM_AUTO || c->steps < 0)
        say("no algorithm");
    if (!sound(c->time_s) || !sound(c->latency_s) || !sound(c->lower_bound_s) || !sound(c->bytes_per_s))
        say("a cost is no time");
    const bool faster =
        a->calibration && a->calibration->rdh > 0 && a->calibration->rdh < 1; /* than its links: as was said */
    if (!faster && c->time_s < c->lower_bound_s * (1 - 1e-9)) say("a cost is less than its bound");
    if (!chosen) return;
    trn_collective_args again = *a;
    trn_cost named;
    again.algorithm = c->algorithm;
    again.single_step = c->single_step;
    if (trn_collective_cost(&again, &named) != TRN_OK) say("what AUTO chose is refused");
    if (fabs(named.time_s - c->time_s) > 1e-8 * c->time_s) say("what AUTO chose costs something else");
}

static void fuzz_cost(void)
{
    trn_error error = fresh_error();
    trn_cost cost, before;
    draw(&p, 3);
    if (too_many(&p)) return;
    p.a.error = &error;
    memset(&cost, 0x77, sizeof cost);
    before = cost;
    const trn_status status = trn_collective_cost(&p.a, &cost);
    count_status(COST, status);
    check_error(status, &error);
    if (status == TRN_OK) {
        p.a.error = NULL;
        check_cost(&p.a, &cost);
    } else if (memcmp(&cost, &before, sizeof cost) != 0)
        say("a cost was written on failure");
}

/* ---- runs ---- */

static trn_format some_format(void)
{
    static const trn_format format[] = { TRN_F32,  TRN_BF16,      TRN_F16,    TRN_F8_E4M3, TRN_F8_E5M2,
                                         TRN_TF32, TRN_F8_E4M3FN, TRN_I8,     TRN_U16,     TRN_I32,
                                         TRN_CFP8, TRN_F8_E8M0,   TRN_F4_E2M1 };
    return one_in(2) ? TRN_BF16 : format[below(13)];
}

/* A view behind the last one, or anywhere when there is no room. */
static trn_tensor some_view(trn_format format, int64_t n, bool input, int *used)
{
    int64_t shape[2] = { n > 0 ? n : 0, 1 };
    const int rank = n > 3 && n % 2 == 0 && one_in(3) ? 2 : 1;
    if (rank == 2) shape[0] = n / 2, shape[1] = 2;
    trn_tensor t = trn_tensor_nd(format, arena, rank, shape);
    plausible_strides(&t, input);
    plausible_cfp8(&t);
    const int64_t bytes = claimed(&t);
    if (bytes < 0 || *used + bytes > ARENA) *used = 0;
    t.data = arena + *used;
    *used += (int)(bytes > 0 ? (bytes + 7) / 4 * 4 : 0);
    return t;
}

static int64_t share_of(int64_t n, int64_t granule, int ranks, int rank)
{
    int64_t first, count;
    trn_collective_chunk(n, granule, ranks, rank, &first, &count);
    return count;
}

/* How many elements a rank's view has, when all is well. */
static int64_t elements_of(const problem *q, int ranks, int rank, int64_t n, bool output)
{
    const trn_collective_args *a = &q->a;
    int64_t sum = 0;
    if (a->op == TRN_ALL_GATHER && !output) return share_of(n, a->granule, ranks, rank);
    if (a->op == TRN_REDUCE_SCATTER && output) return share_of(n, a->granule, ranks, rank);
    if (a->op != TRN_ALL_TO_ALL) return n;
    if (!a->counts) return output ? share_of(n, a->granule, ranks, rank) * ranks : n;
    for (int r = 0; r < ranks; r++) {
        const int64_t count = q->counts[output ? r * ranks + rank : rank * ranks + r];
        sum += count < 0 || count > 1000 ? 0 : count;
    }
    return sum;
}

static void draw_views(problem *q, int ranks, int groups)
{
    const int64_t n = below(24);
    const trn_format format = some_format();
    int used = 0;
    q->views = ranks * groups;
    for (int i = 0; i < q->views; i++) {
        const trn_format from = one_in(6) ? some_format() : format, to = one_in(6) ? some_format() : format;
        const int64_t in = elements_of(q, ranks, i % ranks, n, false), out = elements_of(q, ranks, i % ranks, n, true);
        q->src[i] = some_view(from, in, true, &used);
        q->dst[i] = one_in(8) && in == out ? q->src[i] : some_view(to, out, false, &used);
    }
    if (one_in(3))
        mutate_view(one_in(2) ? &q->src[below(q->views)] : &q->dst[below(q->views)], &q->src[below(q->views)]);
    for (int i = 0; i < q->views; i++) {
        keep_inside(&q->src[i]);
        keep_inside(&q->dst[i]);
    }
    q->a.src = one_in(100) ? NULL : q->src;
    q->a.dst = one_in(100) ? NULL : q->dst;
}

static trn_status run_closed(const problem *q, trn_isa isa, trn_error *error)
{
    const trn_tensor *view[2 * ROOM];
    trn_collective_args a = q->a;
    for (int i = 0; i < q->views; i++) view[2 * i] = &q->src[i], view[2 * i + 1] = &q->dst[i];
    a.isa = isa;
    a.error = error;
    close_arena(view, 2 * q->views);
    const trn_status status = trn_collective_run(&a);
    open_arena();
    return status;
}

static void check_alike(const problem *q, int ranks)
{
    for (int r = 1; r < ranks; r++)
        for (int64_t e = 0; e < trn_tensor_elements(q->dst[0]); e++) {
            if (q->dst[0].format != q->dst[r].format || memcmp(&q->dst[0].cfp8, &q->dst[r].cfp8, sizeof q->dst[0].cfp8))
                return;
            if (memcmp(arena + element_offset(&q->dst[0], e), arena + element_offset(&q->dst[r], e),
                       trn_format_bytes(q->dst[0].format)) != 0)
                say("ranks of an all-reduce differ");
        }
}

/* Does a rank get anything? The views of those that do not are not looked at, whatever they say of themselves. */
static bool receives(const problem *q, int ranks, int rank)
{
    const trn_collective_args *a = &q->a;
    if (a->op == TRN_SEND_RECV) return rank == (a->target != a->root ? a->target : ranks - 1);
    for (int r = 0; a->op == TRN_PERMUTE && a->targets && r < ranks; r++)
        if (a->targets[r] == rank) return true;
    return a->op != TRN_PERMUTE || !a->targets;
}

static void check_run(const problem *q, trn_status status, int ranks)
{
    static unsigned char result[ARENA], start[ARENA];
    trn_error error;
    trn_cost cost;
    memcpy(start, snapshot, ARENA);
    memcpy(result, arena, ARENA);
    for (int i = 0; i < q->views && status == TRN_OK; i++)
        if (receives(q, ranks, i % ranks) && claimed(&q->dst[i]) > 0 && q->dst[i].data) forgive(&q->dst[i]);
    compare_arena(status);
    if (status != TRN_OK) return;
    if (q->a.op == TRN_ALL_REDUCE) check_alike(q, ranks);
    memcpy(arena, start, ARENA);
    if (run_closed(q, TRN_ISA_PORTABLE, &error) != TRN_OK || memcmp(arena, result, ARENA) != 0)
        say("portable kernels differ");
    trn_collective_args a = q->a;
    a.bytes = 1;
    a.error = &error;
    if (trn_collective_cost(&a, &cost) != TRN_OK) say(error.text); /* what was run has a cost */
}

static void fuzz_run(void)
{
    trn_error error = fresh_error();
    draw(&p, 2);
    p.a.bytes = 0;
    p.a.wire = one_in(2) ? TRN_FORMAT_UNSET : some_format();
    p.a.accumulate = one_in(3) ? some_format() : TRN_FORMAT_UNSET;
    p.a.rounding = (trn_rounding)below(6);
    p.a.overflow = (trn_overflow)below(2);
    p.a.seed = cases_next(&rng);
    p.a.stream = cases_next(&rng);
    p.a.sr_bits = below(33);
    p.a.granule = below(4);
    if (one_in(3)) mutate(&p);
    if (too_many(&p)) return;
    const int64_t count = p.a.count > 0 ? p.a.count : p.net.chips,
                  cores = p.a.ranks_per_chip > 1 ? p.a.ranks_per_chip : 1;
    const int64_t groups = p.a.groups > 1 ? p.a.groups : 1, ranks = count * cores;
    const bool views = ranks >= 1 && ranks <= MOST_RANKS && groups <= ROOM && ranks * groups <= ROOM;
    if (views)
        draw_views(&p, (int)ranks, (int)groups);
    else
        p.a.src = NULL; /* then it is refused before any view is looked at */
    memcpy(snapshot, arena, ARENA);
    const trn_status status = run_closed(&p, p.a.isa, &error);
    count_status(RUN, status);
    check_error(status, &error);
    check_run(&p, status, (int)ranks);
}

int main(int argc, char **argv)
{
    static void (*const turn[])(void) = { fuzz_cost, fuzz_run };
    make_nets();
    const long count = fuzz(argc, argv, turn, 2);
    print_tally(call_name, CALLS, count);
    for (int c = 0; c < CALLS && count >= 20000; c++)
        if (tally[c][TRN_EUNSUPPORTED] == 0) say("a status never came");
    if (count >= 20000 && tally[COST][TRN_ELIMIT] + tally[RUN][TRN_ELIMIT] == 0) say("a status never came");
    if (count >= 20000 && (tally[RUN][TRN_ESHAPE] == 0 || tally[RUN][TRN_EFORMAT] == 0)) say("a status never came");
    return 0;
}
