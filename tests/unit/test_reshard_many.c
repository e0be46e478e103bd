/* test_reshard_many.c - redistributions over many axes: planned soon, over steps that exist; where axes are few, as
 * cheap as the search through everything found them.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <math.h>
#include <time.h>
#include <cmocka.h>

#include "trnmath/trn_reshard.h"
#include "twin/cases.h"

static uint64_t rng;
static trn_topology net;
static trn_mesh mesh;

static int below(int n) { return cases_below(&rng, n); }

/* ---- a problem ---- */

static trn_topology two_levels(int devices, int inner)
{
    trn_level level[2];
    memset(level, 0, sizeof level);
    for (int l = 0; l < 2; l++) {
        level[l].name = l ? "outer" : "inner";
        level[l].wiring = (trn_wiring)(TRN_WIRING_RING + below(3));
        level[l].size = l ? devices / inner : inner;
        level[l].bytes_per_s = l ? 1e9 : 5e9;
        level[l].latency_s = 1e-6;
    }
    return trn_topology_hierarchy("two levels", 2, level);
}

static void lay_mesh(int axes, int kind)
{
    char text[100] = "";
    const int devices = 1 << axes;
    for (int a = 0; a < axes; a++) snprintf(text + 4 * a, 5, "%c=2,", 'a' + a);
    text[4 * axes - 1] = 0;
    net = kind == 0   ? trn_topology_ring(devices, 1e9, 1e-6)
          : kind == 1 ? trn_topology_switch(devices, 1e9, 1e-6)
          : kind == 2 ? trn_topology_fully_connected(devices, 1e9, 1e-6)
                      : two_levels(devices, 1 << axes / 2);
    assert_int_equal(trn_mesh_init(&mesh, &net, text), TRN_OK);
}

/* Axes are laid on in any order: whole, summed, or innermost of a dimension. */
static trn_pspec any_sharding(int rank, int sums)
{
    trn_pspec s;
    int order[TRN_MAX_AXES];
    memset(&s, 0, sizeof s);
    s.rank = rank;
    for (int i = 0; i < mesh.axes; i++) {
        const int j = below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < mesh.axes; i++) {
        const int role = below(4), dim = below(rank);
        if (role == 0 && sums)
            s.sum |= 1u << order[i];
        else if (role)
            s.dim[dim].axis[s.dim[dim].axes++] = order[i];
    }
    return s;
}

static trn_redistribute_args problem(int axes, int number, trn_error *error)
{
    trn_redistribute_args args;
    int64_t shape[TRN_MAX_RANK];
    rng = (uint64_t)(1000 * axes + number);
    memset(&args, 0, sizeof args);
    lay_mesh(axes, below(4));
    const int rank = 1 + below(4), sums = below(2);
    for (int d = 0; d < rank; d++) shape[d] = below(2) ? (int64_t)8 << below(8) : 1 + below(500);
    args.mesh = &mesh;
    args.global = trn_tensor_nd(TRN_BF16, NULL, rank, shape);
    args.from = any_sharding(rank, sums);
    args.to = any_sharding(rank, sums && below(2));
    args.error = error;
    return args;
}

/* ---- few axes: never worse ---- */

typedef struct known {
    int axes, number;
    double time_s; /* of the cheapest way, found by trying all moves from all shardings, which took up to 15 s each */
} known;

static const known cheapest[] = {
    { 4, 0, 1.2004138 },    { 4, 1, 1.156e-06 },      { 4, 2, 0.505664008 },   { 4, 3, 3.0384e-06 },
    { 4, 4, 0.015448728 },  { 4, 5, 3.69575e-06 },    { 4, 6, 0.00362161725 }, { 4, 7, 1.1224e-05 },
    { 4, 8, 2.512e-06 },    { 4, 9, 0.187884696 },    { 4, 10, 3.12e-06 },     { 4, 11, 0.00022045 },
    { 4, 12, 0.090242688 }, { 4, 13, 5.608e-06 },     { 4, 14, 0.000305424 },  { 4, 15, 4.3408e-05 },
    { 4, 16, 2.062e-05 },   { 4, 17, 1.046e-06 },     { 4, 18, 0.000804816 },  { 4, 19, 2.672e-06 },
    { 4, 20, 4.1128e-05 },  { 4, 21, 0.017833504 },   { 4, 22, 8.296e-06 },    { 4, 23, 3.6154e-06 },
    { 5, 0, 1.022e-06 },    { 5, 1, 2.42565e-05 },    { 5, 2, 0.044212968 },   { 5, 3, 0.32506156 },
    { 5, 4, 1.002e-06 },    { 5, 5, 0.000370226667 }, { 5, 6, 2.5552e-05 },    { 5, 7, 0.0738257504 },
};

/* How many prices a search asked for. */
static int asked_for(const trn_redistribute_args *args)
{
    trni_search s;
    trni_found way;
    trni_search_start(&s, args);
    assert_non_null(s.chip);
    const trn_pspec from = trni_essential(&args->from, s.mesh, s.rank), to = trni_essential(&args->to, s.mesh, s.rank);
    assert_int_equal(trni_search_all(&s, &from, &to, &way), TRN_OK);
    const int prices = s.prices;
    trni_search_free(&s);
    return prices;
}

/* Nor more work: what cannot be part of a shorter way is not asked for. */
enum { ASKED = 1600 };

static void test_few_axes(void **state)
{
    (void)state;
    int asked = 0;
    for (size_t i = 0; i < sizeof cheapest / sizeof cheapest[0]; i++) {
        trn_error error;
        trn_reshard_plan plan;
        const known *k = &cheapest[i];
        const trn_redistribute_args args = problem(k->axes, k->number, &error);
        if (trn_redistribute_plan(&args, &plan)) fail_msg("%d axes, number %d: %s", k->axes, k->number, error.text);
        if (plan.time_s > k->time_s * (1 + 1e-7))
            fail_msg("%d axes, number %d: %.9g, not %.9g", k->axes, k->number, plan.time_s, k->time_s);
        if (k->axes == 4 && k->number % 4 == 2) asked += asked_for(&args);
    }
    if (asked > ASKED) fail_msg("%d prices were asked for, not %d", asked, (int)ASKED);
}

/* ---- many axes: soon ---- */

/* A step by itself costs what the collective costs that it names. */
static void check_step(const trn_reshard_step *step)
{
    static int chip[1 << TRN_MAX_AXES];
    trn_cost cost;
    trn_collective_args a = { .net = &net, .op = step->op, .algorithm = step->algorithm, .bytes = step->bytes };
    if (step->kind != TRN_RESHARD_COLLECTIVE || step->op == TRN_PERMUTE || !step->bytes) return;
    a.single_step = step->cost.single_step;
    a.chips = chip;
    a.groups = trn_mesh_groups(&mesh, step->axis, step->axes, chip);
    a.count = mesh.devices / a.groups;
    assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
    if (cost.time_s != step->cost.time_s)
        fail_msg("%s takes %g, not %g", trn_collective_name(step->op), cost.time_s, step->cost.time_s);
}

static void check_plan(const trn_redistribute_args *args, const trn_reshard_plan *plan)
{
    double time_s = 0;
    for (int i = 0; i < plan->steps; i++) {
        check_step(&plan->step[i]);
        time_s += plan->step[i].cost.time_s;
    }
    assert_true(plan->time_s == time_s && plan->lower_bound_s <= time_s * (1 + 1e-9));
    assert_true(trn_pspec_same(plan->steps ? &plan->step[plan->steps - 1].after : &args->from, &args->to));
}

/* Whole, then cut: what anybody could do. */
static double gather_and_cut(trn_redistribute_args args)
{
    trn_reshard_plan plan;
    memset(&args.to, 0, sizeof args.to);
    return trn_redistribute_plan(&args, &plan) ? 1e300 : plan.time_s;
}

/* Golden: what the search finds with the work that it may do, which is counted: the same on every machine. Plans that
 * are better may stand here instead. */
static const known found[] = {
    { 6, 0, 0.001930848 }, { 6, 1, 5.152e-06 }, { 6, 2, 7.14484375e-05 }, { 8, 0, 0.001946248 }, { 10, 0, 0.004128896 },
};

static void check_found(int axes, int number, double time_s)
{
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        if (found[i].axes == axes && found[i].number == number && fabs(time_s - found[i].time_s) > 1e-7 * time_s)
            fail_msg("%d axes, number %d: %.9g, not %.9g", axes, number, time_s, found[i].time_s);
}

static void test_many_axes(void **state)
{
    (void)state;
    for (int axes = 6; axes <= TRN_MAX_AXES; axes += cases_rounds(2, 1))
        for (int n = 0; n < cases_rounds(axes == 6 ? 3 : 1, 30); n++) {
            trn_error error;
            trn_reshard_plan plan;
            const trn_redistribute_args args = problem(axes, n, &error);
            const clock_t begin = clock();
            if (trn_redistribute_plan(&args, &plan)) fail_msg("%d axes, number %d: %s", axes, n, error.text);
            const double took_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
            if (took_s > 20) fail_msg("%d axes, number %d: planned in %g s", axes, n, took_s); /* sanitized, too */
            check_plan(&args, &plan);
            check_found(axes, n, plan.time_s);
            if (!args.to.sum && plan.time_s > gather_and_cut(args) * (1 + 1e-7))
                fail_msg("%d axes, number %d: %g is more than by way of the whole", axes, n, plan.time_s);
        }
}

/* ---- values ---- */

enum { ROWS = 24, COLUMNS = 40 };

/* Element by element: what the sharding says a device has. */
static void lay_out(const trn_redistribute_args *args, const trn_pspec *spec, int32_t *memory, trn_tensor *part,
                    bool filled)
{
    for (int i = 0; i < mesh.devices; i++) {
        const trn_box box = trn_shard_box(&mesh, spec, &args->global, i);
        part[i] = trn_tensor_nd(TRN_I32, memory, 2, box.count);
        for (int64_t r = 0; r < box.count[0]; r++)
            for (int64_t c = 0; c < box.count[1]; c++)
                *memory++ = filled ? (int32_t)((box.first[0] + r) * COLUMNS + box.first[1] + c) : -1;
    }
}

static void test_values(void **state)
{
    (void)state;
    enum { DEVICES = 1 << TRN_MAX_AXES };
    int32_t *memory = (int32_t *)malloc(sizeof(int32_t) * 3 * DEVICES * ROWS * COLUMNS);
    trn_tensor *part = (trn_tensor *)malloc(sizeof(trn_tensor) * 2 * DEVICES);
    assert_true(memory && part);
    const int64_t shape[] = { ROWS, COLUMNS };
    for (int axes = 6; axes <= TRN_MAX_AXES; axes += 2) {
        trn_error error;
        rng = (uint64_t)axes;
        lay_mesh(axes, 1);
        trn_redistribute_args args = { .mesh = &mesh, .error = &error, .src = part, .dst = part + DEVICES };
        args.global = trn_tensor_nd(TRN_I32, NULL, 2, shape);
        args.from = any_sharding(2, 0);
        args.to = any_sharding(2, 0);
        int32_t *got = memory + (size_t)DEVICES * ROWS * COLUMNS, *want = got + (size_t)DEVICES * ROWS * COLUMNS;
        const size_t whole = (size_t)mesh.devices * ROWS * COLUMNS;
        memset(got, -1, sizeof *got * whole);
        memset(want, -1, sizeof *want * whole);
        lay_out(&args, &args.to, want, part, true);
        lay_out(&args, &args.from, memory, part, true);
        lay_out(&args, &args.to, got, part + DEVICES, false);
        if (trn_redistribute(&args)) fail_msg("%d axes: %s", axes, error.text);
        assert_memory_equal(got, want, sizeof *got * whole);
    }
    free(memory);
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_axes),
        cmocka_unit_test(test_many_axes),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
