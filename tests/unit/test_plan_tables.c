/* test_plan_tables.c - plans of recommenders, and what bounds any plan: tables placed by a second program, memory and
 * bounds by hand, gradients of replicas that share a chip.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trnmath/trn_plan.h"
#include "twin/cases.h"
#include "twin/plan_cases.h"

static void near(double found, double expected, double relative, const char *what)
{
    if (fabs(found - expected) > relative * fabs(expected))
        fail_msg("%s: %.12g, expected %.12g", what, found, expected);
}

static trn_plan evaluated(const trn_plan_args *args, trn_plan p)
{
    if (trn_plan_evaluate(args, &p)) fail_msg("%s", failure.text);
    if (!p.legal) fail_msg("%s", p.why);
    return p;
}

/* ---- which chip has which table ---- */

enum { TABLES = 12 };

typedef struct fullest {
    double tables, rows, lookups;
} fullest;

/* One after the other, those with the most lookups first and of equal ones the first; each goes to the chip with the
 * fewest lookups, then the fewest tables, then the lowest number. */
static fullest placed(const trn_model *m, int chips)
{
    double lookups[TABLES] = { 0 }, rows[TABLES] = { 0 };
    int tables[TABLES] = { 0 };
    bool done[TABLES] = { false };
    fullest most = { 0, 0, 0 };
    for (int turn = 0; turn < m->tables; turn++) {
        int next = -1, to = 0;
        for (int i = 0; i < m->tables; i++)
            if (!done[i] && (next < 0 || m->table_lookups[i] > m->table_lookups[next])) next = i;
        done[next] = true;
        for (int c = 1; c < chips; c++)
            if (lookups[c] != lookups[to] ? lookups[c] < lookups[to] : tables[c] < tables[to]) to = c;
        lookups[to] += (double)m->table_lookups[next];
        rows[to] += (double)m->table_rows[next];
        tables[to]++;
    }
    for (int c = 0; c < chips; c++) {
        most.tables = fmax(most.tables, tables[c]);
        most.rows = fmax(most.rows, rows[c]);
        most.lookups = fmax(most.lookups, lookups[c]);
    }
    return most;
}

static trn_model with_tables(int tables)
{
    trn_model m = { .name = "ranker",
                    .hidden = 128,
                    .longest = 1,
                    .dense_inputs = 13,
                    .dense_widths = { 256, 128 },
                    .over_widths = { 64, 1 } };
    m.tables = tables;
    return m;
}

static const double weights = 13 * 256 + 256 * 128, outputs = 256 + 128 + 64 + 1; /* of what all chips repeat */

/* Memory of a chip with `f`, for `samples` of its own. */
static void check_memory(const trn_model *m, const trn_plan *p, fullest f, bool train)
{
    const double n = (double)m->tables, over = (128 + n * (n + 1) / 2) * 64 + 64, samples = (double)p->microbatch;
    const double repeated = weights + over + outputs, sums = samples * p->ep * f.tables * 128 * 2;
    double lookups = 0;
    for (int i = 0; i < m->tables; i++) lookups += (double)m->table_lookups[i];
    near(p->memory.weights, (f.rows * 128 + repeated) * 2, 1e-12, "weights");
    near(p->memory.activations, samples * (outputs + (n + 1) * 128 + 13) * 2 + sums, 1e-12, "activations");
    near(p->memory.buffers, 1073741824.0 + 2 * sums + samples * lookups * 8, 1e-12, "buffers");
    near(p->memory.gradients, train ? 4 * repeated : 0, 1e-12, "gradients");
    near(p->memory.optimizer, train ? 4 * f.rows + 12 * repeated : 0, 1e-12, "optimizer");
    near(p->memory.total,
         p->memory.weights + p->memory.activations + p->memory.buffers + p->memory.gradients + p->memory.optimizer,
         1e-12, "total");
}

static void tables_lie_where_a_second_program_puts_them(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    uint64_t seed = 5;
    for (int round = 0; round < 300; round++) {
        trn_model m = with_tables(4 + cases_below(&seed, TABLES - 3));
        for (int i = 0; i < m.tables; i++) {
            m.table_lookups[i] = 1 + cases_below(&seed, round % 2 ? 3 : 9); /* many are equal */
            m.table_rows[i] = 100 + cases_below(&seed, 100000);
        }
        const bool train = cases_one_in(&seed, 2);
        const trn_plan_args args = question(&m, &net, train ? TRN_JOB_TRAIN : TRN_JOB_PREFILL, 4096, 1);
        const int ep = 1 << cases_below(&seed, 3);
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = ep, .dp = 16 / ep, .pp = 1 });
        check_memory(&m, &p, placed(&m, ep), train);
    }
}

/* A tie in lookups where the chip with fewer tables is not the first one. */
static void a_tie_goes_to_the_chip_with_fewer_tables(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_model m = with_tables(8);
    const int64_t lookups[] = { 100, 100, 5, 4, 4, 2, 1, 1 };
    const int64_t rows[] = { 1, 1, 1000000, 10, 10, 10, 10, 1000000 };
    memcpy(m.table_lookups, lookups, sizeof lookups);
    memcpy(m.table_rows, rows, sizeof rows);
    const trn_plan_args args = question(&m, &net, TRN_JOB_PREFILL, 4096, 1);
    const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 4, .dp = 4, .pp = 1 });
    check_memory(&m, &p, (fullest){ 3, 1000020, 100 }, false); /* the other one would have 2,000,020 rows */
}

/* ---- what lies between ---- */

static double system_s(const trn_system_spec *chip, int64_t m, int64_t n, int64_t k, bool added)
{
    const trn_matmul_cost_args args = {
        .system = chip, .m = m, .n = n, .k = k, .a_format = TRN_BF16, .accumulate = added
    };
    trn_system_cost cost;
    assert_int_equal(trn_matmul_system_cost(&args, &cost), TRN_OK);
    return cost.time_s - cost.core.startup_s;
}

/* Forward, for the weights, and for the input where that is wanted. */
static double ways_s(const trn_system_spec *chip, int64_t m, int64_t n, int64_t k, bool train, bool input)
{
    return system_s(chip, m, n, k, false) + (train ? system_s(chip, k, n, m, true) : 0) +
           (train && input ? system_s(chip, m, k, n, false) : 0);
}

/* One chip, 4096 samples: MLPs; pairs of vectors on each core, or two thin products for each crossing layer. */
static void products_of_a_recommender(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN1_2XLARGE);
    const trn_system_spec *chip = trn_system_spec_of(TRN_TRN1_2XLARGE);
    const int64_t n = 4096;
    for (int kind = 0; kind < 4; kind++) {
        const bool train = kind & 1, crosses = kind & 2;
        trn_model m = with_tables(4);
        for (int i = 0; i < 4; i++) m.table_rows[i] = 1000, m.table_lookups[i] = 2;
        if (crosses) m.cross_layers = 3, m.cross_rank = 32;
        const trn_plan_args args = question(&m, &net, train ? TRN_JOB_TRAIN : TRN_JOB_PREFILL, n, 1);
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = 1, .pp = 1 });
        double want = ways_s(chip, n, 256, 13, train, false) + ways_s(chip, n, 128, 256, train, true);
        if (crosses) {
            want += 3 * (ways_s(chip, n, 32, 640, train, true) + ways_s(chip, n, 640, 32, train, true));
            want += ways_s(chip, n, 64, 640, train, true) + ways_s(chip, n, 1, 64, train, true);
        } else {
            const trn_matmul_cost_args pair = {
                .generation = TRN_TRAINIUM1, .m = 5, .n = 5, .k = 128, .a_format = TRN_BF16, .b_format = TRN_BF16
            };
            trn_core_cost cost;
            assert_int_equal(trn_matmul_cost(&pair, &cost), TRN_OK);
            want += (train ? 3 : 1) * (double)n * (cost.tensor_s + cost.load_stationary_s) / 2; /* 2 cores */
            want += ways_s(chip, n, 64, 138, train, true) + ways_s(chip, n, 1, 64, train, true);
        }
        near(p.time.products_s + p.time.reads_s, want, 1e-9, crosses ? "crossing" : "pairs");
        const double wide = outputs + (crosses ? 3 * (640 + 32) : 0);
        near(p.time.elementwise_s, (train ? 3 : 1) * 3 * (double)n * wide * 2 / 820e9, 1e-9, "elementwise");
    }
}

/* ---- no plan is faster ---- */

static void bounds_of_a_token(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const double read = 8030261248.0 - 128256.0 * 4096; /* llama-3-8b, of whose embeddings a token meets one row */
    for (int bytes = 1; bytes <= 2; bytes++) {
        trn_plan_args args = question(&llama8, &net, TRN_JOB_DECODE, 16, 8192);
        args.formats.kv = bytes == 1 ? TRN_F8_E4M3 : TRN_BF16;
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 8, .cp = 1, .ep = 1, .dp = 2, .pp = 1 });
        const double kept = 16.0 * 8192 * 32 * 2 * 8 * 128; /* layers, keys and values, heads, each of 128 */
        near(p.bound_s, (2 * read + bytes * kept) / (16 * 2.9e12), 1e-9, "weights and cache once over HBM");
    }
}

/* ---- replicas that share a chip ---- */

/* So many ranks on each of the first `chips` chips, `bytes` a rank. */
static double asked_s(const trn_topology *net, trn_collective op, int chips, int ranks, double bytes)
{
    static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const trn_collective_args args = { .net = net,
                                       .op = op,
                                       .bytes = (int64_t)bytes,
                                       .chips = all,
                                       .count = chips,
                                       .ranks_per_chip = ranks,
                                       .error = &failure };
    trn_cost cost;
    if (trn_collective_cost(&args, &cost)) fail_msg("%s", failure.text);
    return cost.time_s;
}

/* tp 2 of logical cores: a chip of four has two replicas, which first do among themselves what the chips then do. */
static void replicas_on_a_chip_begin_among_themselves(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_model m = { .layers = 3, .hidden = 512, .heads = 8, .kv_heads = 2, .intermediate = 1024, .vocab = 1000 };
    static const trn_zero zero[] = { TRN_ZERO_NONE, TRN_ZERO_OPTIMIZER };
    for (int z = 0; z < 2; z++) {
        trn_plan_args args = question(&m, &net, TRN_JOB_TRAIN, 64, 512);
        args.lnc = 2;
        args.zero = zero[z];
        args.microbatch = 2;
        const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .tp_cores = 2, .cp = 1, .ep = 1, .dp = 32, .pp = 1 });
        const double all = p.memory.gradients, weight = p.memory.weights; /* of both replicas of the chip */
        const double reduced = asked_s(&net, TRN_REDUCE_SCATTER, 1, 2, all / 2);
        const double gathered = asked_s(&net, TRN_ALL_GATHER, 1, 2, all / 2);
        if (z == 0) {
            near(p.time.dp_s, reduced + gathered + asked_s(&net, TRN_ALL_REDUCE, 16, 1, all / 2), 1e-6, "all_reduce");
            continue;
        }
        near(p.time.dp_s,
             reduced + asked_s(&net, TRN_REDUCE_SCATTER, 16, 1, all / 2) +
                 asked_s(&net, TRN_ALL_GATHER, 1, 2, weight / 2) + asked_s(&net, TRN_ALL_GATHER, 16, 1, weight / 2),
             1e-6, "in two halves");
    }
}

/* ---- more ports of a switch than a mesh takes ---- */

typedef struct both_s {
    double ideal_s, expected_s;
} both_s;

static both_s among(const trn_topology *net, trn_collective op, int chips, double bytes)
{
    static int all[512];
    for (int i = 0; i < chips; i++) all[i] = i;
    const trn_collective_args args = {
        .net = net, .op = op, .bytes = (int64_t)bytes, .chips = all, .count = chips, .error = &failure
    };
    trn_cost cost;
    if (trn_collective_cost(&args, &cost)) fail_msg("%s", failure.text);
    return (both_s){ cost.time_s, cost.expected_s };
}

/* All at once, or in two factors of at most 128 ports each: inside, across with what is left, and inside again. */
static both_s in_factors(const trn_topology *net, trn_collective op, int chips, double bytes)
{
    both_s best = among(net, op, chips, bytes);
    for (int first = 2; first <= 128; first++) {
        if (chips % first || chips / first > 128) continue;
        const both_s nothing = { 0, 0 };
        const both_s before = op == TRN_ALL_GATHER ? nothing : among(net, TRN_REDUCE_SCATTER, first, bytes);
        const both_s after = op == TRN_REDUCE_SCATTER ? nothing : among(net, TRN_ALL_GATHER, first, bytes);
        const both_s across = among(net, op, chips / first, bytes / first);
        const double expected_s = before.expected_s + after.expected_s + across.expected_s;
        if (expected_s >= best.expected_s) continue;
        best.expected_s = expected_s;
        best.ideal_s = before.ideal_s + after.ideal_s + across.ideal_s;
    }
    return best;
}

static void many_ports_in_one_piece_or_two(void **state)
{
    (void)state;
    static const int sizes[] = { 128, 192 };
    for (int i = 0; i < 2; i++)
        for (int large = 0; large < 2; large++) {
            const trn_topology net = trn_topology_switch(sizes[i], 12.5e9, 15e-6);
            const trn_model m = {
                .layers = 2, .hidden = large ? 1024 : 128, .heads = 8, .intermediate = 256, .vocab = 1000
            };
            trn_plan_args args = question(&m, &net, TRN_JOB_TRAIN, sizes[i], 64);
            args.system = trn_system_spec_of(TRN_TRN2_48XLARGE);
            args.zero = TRN_ZERO_NONE;
            const trn_plan p = evaluated(&args, (trn_plan){ .tp = 1, .cp = 1, .ep = 1, .dp = sizes[i], .pp = 1 });
            const both_s want = in_factors(&net, TRN_ALL_REDUCE, sizes[i], p.memory.gradients);
            if (sizes[i] <= 128) { /* no more than a mesh takes: in one piece */
                near(p.time.dp_s, among(&net, TRN_ALL_REDUCE, sizes[i], p.memory.gradients).ideal_s, 1e-6, "one");
                continue;
            }
            near(p.time.dp_s, want.ideal_s, 1e-6, "ideal");
            near(p.expected.dp_s, want.expected_s, 1e-6, "expected");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_lie_where_a_second_program_puts_them),
        cmocka_unit_test(a_tie_goes_to_the_chip_with_fewer_tables),
        cmocka_unit_test(products_of_a_recommender),
        cmocka_unit_test(bounds_of_a_token),
        cmocka_unit_test(replicas_on_a_chip_begin_among_themselves),
        cmocka_unit_test(many_ports_in_one_piece_or_two),
    };
    return cmocka_run_group_tests_name("plan_tables", tests, NULL, NULL);
}
