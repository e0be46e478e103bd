/* test_reshard.c - redistribution: every element followed by a twin, sums in the collectives' order, plans that no
 * detour beats, and every refusal.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "trnmath/trn_reshard.h"
#include "twin/cases.h"
#include "twin/host.h"

enum { DEVICES = 24, ROOM = 1 << 14 };

static uint64_t rng;

#include "twin/shard_cases.h"

static unsigned char source[DEVICES][ROOM], target[DEVICES][ROOM], want[DEVICES][ROOM];
static trn_tensor src[DEVICES], dst[DEVICES];

/* Any two shardings of one tensor on one mesh. */
static void random_pair(twin_sharding *from, twin_sharding *to, bool sums)
{
    random_mesh(from);
    random_shape(from, 1 + below(one_in(4) ? 6 : 3));
    random_roles(from, sums);
    *to = *from;
    random_roles(to, sums && one_in(2));
}

static trn_redistribute_args args_of(const twin_sharding *from, const twin_sharding *to, trn_format format,
                                     trn_error *error)
{
    trn_redistribute_args args;
    memset(&args, 0, sizeof args);
    args.mesh = &mesh;
    args.from = spec_of(from);
    args.to = spec_of(to);
    args.global = trn_tensor_nd(format, NULL, from->rank, from->shape);
    args.src = src;
    args.dst = dst;
    args.error = error;
    return args;
}

static trn_reshard_plan plan_of(trn_redistribute_args *args)
{
    trn_reshard_plan plan;
    trn_error error;
    args->error = &error;
    memset(&plan, 0, sizeof plan);
    if (trn_redistribute_plan(args, &plan)) fail_msg("%s", error.text);
    args->error = NULL;
    return plan;
}

/* Axes of more than one device. */
static unsigned big_axes(void)
{
    unsigned axes = 0;
    for (int a = 0; a < mesh.axes; a++) axes |= (mesh.axis[a].size > 1 ? 1u : 0u) << a;
    return axes;
}

static void write_code(unsigned char *at, trn_format format, uint32_t code) { memcpy(at, &code, bytes_of(format)); }

/* ---- moves: every bit arrives, and nothing else is touched ---- */

static uint32_t code_of(const twin_sharding *t, const int64_t *index)
{
    uint64_t state = 77;
    for (int d = 0; d < t->rank; d++) state = state * 1000003u + (uint64_t)index[d];
    return cases_u32(&state);
}

static void test_moves(void **state)
{
    (void)state;
    static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F8_E5M2, TRN_I32 };
    rng = 11;
    for (int round = cases_rounds(1500, 30000); round > 0; round--) {
        twin_sharding from, to;
        trn_error error;
        const trn_format format = formats[below(4)];
        random_pair(&from, &to, false);
        trn_redistribute_args args = args_of(&from, &to, format, &error);
        for (int i = 0; i < mesh.devices; i++) {
            scramble(target[i], ROOM);
            memcpy(want[i], target[i], ROOM);
        }
        random_parts(&from, format, source, src);
        random_parts(&to, format, target, dst);
        int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
        if (trn_tensor_elements(args.global)) do
                for (int i = 0; i < mesh.devices; i++) {
                    const uint32_t code = code_of(&from, index);
                    if (twin_holds(&from, i, index, local))
                        write_code((unsigned char *)src[i].data + place(&src[i], local), format, code);
                    if (twin_holds(&to, i, index, local))
                        write_code(want[i] + ((unsigned char *)dst[i].data - target[i]) + place(&dst[i], local), format,
                                   code);
                }
            while (twin_next(from.rank, from.shape, index));
        if (trn_redistribute(&args)) fail_msg("%s", error.text);
        assert_memory_equal(target, want, sizeof target[0] * (size_t)mesh.devices);
    }
}

/* ---- sums whose every order is exact: small whole numbers ---- */

/* The summand that a device has: whole numbers up to 3, so that 24 of them are exact in BF16. */
static int summand(const twin_sharding *from, const int64_t *index, int device)
{
    uint64_t state = code_of(from, index);
    for (int a = 0; a < from->axes; a++)
        if (from->role[a] == TWIN_SUM) state = state * 31 + (uint64_t)twin_coordinate(from, device, a);
    return cases_below(&state, 7) - 3;
}

static int total(const twin_sharding *from, const int64_t *index)
{
    int64_t local[TWIN_DIMS];
    int sum = 0;
    for (int i = 0; i < mesh.devices; i++) {
        bool counts = twin_holds(from, i, index, local);
        for (int a = 0; a < from->axes; a++)
            if (from->role[a] == TWIN_WHOLE && twin_coordinate(from, i, a)) counts = false;
        if (counts) sum += summand(from, index, i);
    }
    return sum;
}

static float read_float(trn_format format, const unsigned char *at)
{
    uint32_t code = 0;
    memcpy(&code, at, bytes_of(format));
    return cases_float_of(format == TRN_BF16 ? code << 16 : code);
}

/* What all devices hold of an element together, each summand of the new sharding once. */
static float held(const twin_sharding *to, const int64_t *index, trn_format format)
{
    int64_t local[TWIN_DIMS];
    float sum = 0;
    for (int i = 0; i < mesh.devices; i++) {
        bool counts = twin_holds(to, i, index, local);
        for (int a = 0; a < to->axes; a++)
            if (to->role[a] == TWIN_WHOLE && twin_coordinate(to, i, a)) counts = false;
        if (counts) sum += read_float(format, (unsigned char *)dst[i].data + place(&dst[i], local));
    }
    return sum;
}

static void test_sums(void **state)
{
    (void)state;
    rng = 12;
    for (int round = cases_rounds(800, 20000); round > 0; round--) {
        twin_sharding from, to;
        trn_error error;
        trn_replicas replicas = { 0 };
        const trn_format format = one_in(2) ? TRN_F32 : TRN_BF16;
        random_pair(&from, &to, true);
        trn_redistribute_args args = args_of(&from, &to, format, &error);
        random_parts(&from, format, source, src);
        random_parts(&to, format, target, dst);
        int64_t index[TWIN_DIMS] = { 0 }, local[TWIN_DIMS];
        if (trn_tensor_elements(args.global) == 0) {
            assert_int_equal(trn_redistribute(&args), TRN_OK);
            continue;
        }
        do
            for (int i = 0; i < mesh.devices; i++) {
                if (!twin_holds(&from, i, index, local)) continue;
                const uint32_t bits = cases_bits_of((float)summand(&from, index, i));
                write_code((unsigned char *)src[i].data + place(&src[i], local), format,
                           format == TRN_BF16 ? bits >> 16 : bits);
            }
        while (twin_next(from.rank, from.shape, index));
        if (trn_redistribute(&args)) fail_msg("%s", error.text);
        const trn_reshard_plan plan = plan_of(&args); /* a sum that stays open is not closed on the way */
        for (int k = 0; k < plan.steps; k++)
            assert_int_equal(args.from.sum & args.to.sum & ~plan.step[k].after.sum & big_axes(), 0);
        do
            if (held(&to, index, format) != (float)total(&from, index))
                fail_msg("an element is %g, not %d", (double)held(&to, index, format), total(&from, index));
        while (twin_next(from.rank, from.shape, index));
        trn_shard_args parts = { .mesh = &mesh, .spec = args.to, .global = args.global, .parts = dst };
        assert_int_equal(trn_shard_replicas_equal(&parts, &replicas), TRN_OK);
        assert_true(replicas.equal);
    }
}

/* ---- sums whose order shows: as the ring makes them, written out ---- */

static uint32_t round_bf16(float x)
{
    const uint32_t u = cases_bits_of(x);
    return (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
}

/* Chunk c of a ring of n begins at member c + 1 and ends at c; each sum is rounded to BF16. */
static uint32_t ring_sum(const uint32_t *code, int n, int chunk)
{
    float sum = cases_float_of(code[(chunk + 1) % n] << 16);
    for (int i = 2; i <= n; i++) sum = cases_float_of(round_bf16(sum + cases_float_of(code[(chunk + i) % n] << 16)));
    return cases_bits_of(sum) >> 16;
}

/* (*, b) + sum(a) to (*, b), (a, b), (*, (b, a)): chunks are runs of the flat part, rows of it, columns of it. */
static void test_ring(void **state)
{
    (void)state;
    enum { ROWS = 7, COLUMNS = 8, A = 4, B = 2, PART = ROWS * COLUMNS / B };
    rng = 13;
    net = trn_topology_ring(A * B, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=4,b=2"), TRN_OK);
    for (int scatter = 0; scatter < 3; scatter++) {
        static uint16_t in[A * B][PART], out[A * B][PART];
        trn_redistribute_args args = {
            .mesh = &mesh, .global = trn_tensor_2d(TRN_BF16, NULL, ROWS, COLUMNS), .src = src, .dst = dst
        };
        args.algorithm = TRN_RING;
        assert_int_equal(trn_pspec_parse(&args.from, &mesh, "(*, b) + sum(a)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&args.to, &mesh,
                                         scatter == 0   ? "(*, b)"
                                         : scatter == 1 ? "(a, b)"
                                                        : "(*, (b, a))"),
                         TRN_OK);
        for (int i = 0; i < A * B; i++) {
            const trn_box box = trn_shard_box(&mesh, &args.to, &args.global, i);
            for (int k = 0; k < PART; k++) in[i][k] = (uint16_t)(0x3f00 + below(0x200) + (one_in(2) ? 0x8000 : 0));
            src[i] = trn_tensor_2d(TRN_BF16, in[i], ROWS, COLUMNS / B);
            dst[i] = trn_tensor_nd(TRN_BF16, out[i], 2, box.count);
        }
        assert_int_equal(trn_redistribute(&args), TRN_OK);
        for (int i = 0; i < A * B; i++) {
            const trn_box box = trn_shard_box(&mesh, &args.to, &args.global, i);
            for (int64_t r = 0; r < box.count[0]; r++)
                for (int64_t c = 0; c < box.count[1]; c++) {
                    const int64_t row = box.first[0] + r, column = box.first[1] + c - i % B * 4, at = row * 4 + column;
                    const int chunk = scatter == 0 ? (int)(at / 7) : scatter == 1 ? (int)(row / 2) : (int)column;
                    uint32_t code[A];
                    for (int a = 0; a < A; a++) code[a] = in[a * B + i % B][at];
                    if (out[i][r * box.count[1] + c] != ring_sum(code, A, chunk))
                        fail_msg("way %d, device %d, element %d %d", scatter, i, (int)r, (int)c);
                }
        }
    }
}

/* ---- plans ---- */

/* Steps that a reader of the scaling book would write down, as text, on a switch of 16 chips. */
static void test_textbook(void **state)
{
    (void)state;
    static const char *const row[][4] = {
        { "(a, b)", "(a, *)", "all_gather over b, 262144 bytes, then (a, *)" },
        { "(a, b)", "(a, b)" },
        { "(*, *)", "(b, *)", "slice over b, then (b, *)" },
        { "(*, b) + sum(a)", "(a, b)", "reduce_scatter over a, 262144 bytes, then (a, b)" },
        { "(*, b) + sum(a)", "(*, b)", "all_reduce over a, 262144 bytes, then (*, b)" },
        { "(a, *)", "(*, a)", "all_to_all over a, 262144 bytes, then (*, a)" },
        { "((a, b), *)", "(*, (a, b))", "all_to_all over a, b, 65536 bytes, then (*, (a, b))" },
        { "(a, b)", "(b, a)", "permute over a, b, 65536 bytes, then (b, a)" },
        { "((a, b), *)", "((b, a), *)", "permute over a, b, 65536 bytes, then ((b, a), *)" },
        { "(a, *)", "(a, *) + sum(b)", "zero fill over b, then (a, *) + sum(b)" },
        { "(a, b)", "(a, *) + sum(b)", "zero fill over b, then (a, *) + sum(b)" },
        { "(*, *) + sum(a, b)", "(*, *)", "all_reduce over a, b, 1048576 bytes, then (*, *)" },
        { "(*, *) + sum(a, b)", "((a, b), *)", "reduce_scatter over a, b, 1048576 bytes, then ((a, b), *)" },
        { "(*, *) + sum(a, b)", "((b, a), *)", "reduce_scatter over b, a, 1048576 bytes, then ((b, a), *)" },
        { "((a, b), *)", "(*, *)", "all_gather over a, b, 1048576 bytes, then (*, *)" },
    };
    net = trn_topology_switch(16, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=4,b=4"), TRN_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_redistribute_args args = { .mesh = &mesh, .global = trn_tensor_2d(TRN_BF16, NULL, 1024, 512) };
        assert_int_equal(trn_pspec_parse(&args.from, &mesh, row[i][0]), TRN_OK);
        assert_int_equal(trn_pspec_parse(&args.to, &mesh, row[i][1]), TRN_OK);
        const trn_reshard_plan plan = plan_of(&args);
        int steps = 0;
        double time_s = 0;
        for (int k = 0; k < plan.steps; k++) {
            char text[256], *algorithm;
            trn_reshard_step_format(&plan.step[k], &mesh, text, sizeof text);
            algorithm = strstr(text, "bytes, ");
            if (algorithm)
                memmove(algorithm + 7, strstr(algorithm + 7, "then"), strlen(strstr(algorithm + 7, "then")) + 1);
            if (k < 2 && row[i][2 + k] && row[i][2 + k][0] && strcmp(text, row[i][2 + k]))
                fail_msg("%s to %s: '%s'", row[i][0], row[i][1], text);
            time_s += plan.step[k].cost.time_s;
        }
        for (int k = 2; k < 4 && row[i][k]; k++) steps = row[i][k][0] ? steps + 1 : plan.steps;
        assert_int_equal(plan.steps, steps);
        assert_true(plan.time_s == time_s && plan.lower_bound_s <= time_s);
        if (steps) assert_true(trn_pspec_same(&plan.step[steps - 1].after, &args.to));
    }
}

/* 5 rows in 2 parts are 3 and 2, in 4 parts 2, 2, 1 and 0: no half can be gathered from two of the quarters. */
static void test_parts_that_do_not_nest(void **state)
{
    (void)state;
    static const char *const row[][3] = { { "((a, b))", "(a)", NULL },
                                          { "(a)", "((a, b))", NULL },
                                          { "(a) + sum(b)", "((a, b))", NULL } };
    net = trn_topology_switch(4, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=2"), TRN_OK);
    for (int64_t n = 5; n <= 8; n += 3)
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            trn_redistribute_args args = { .mesh = &mesh, .global = trn_tensor_1d(TRN_F32, NULL, n) };
            assert_int_equal(trn_pspec_parse(&args.from, &mesh, row[i][0]), TRN_OK);
            assert_int_equal(trn_pspec_parse(&args.to, &mesh, row[i][1]), TRN_OK);
            const trn_reshard_plan plan = plan_of(&args);
            if (n == 5 ? plan.steps < 2 : plan.steps != 1)
                fail_msg("%d elements, %s to %s: %d steps", (int)n, row[i][0], row[i][1], plan.steps);
        }
}

/* Every device's part goes to one device that wants it, and each gets one. */
static void test_permutations(void **state)
{
    (void)state;
    int looked = 0;
    rng = 16;
    for (int round = cases_rounds(20000, 200000); round > 0; round--) {
        twin_sharding from, to;
        int target[DEVICES], seen[DEVICES] = { 0 };
        random_pair(&from, &to, true);
        bool same = true, moves = false;
        for (int d = 0; d < from.rank; d++) {
            int old_parts, new_parts;
            twin_part(&from, d, 0, &old_parts);
            twin_part(&to, d, 0, &new_parts);
            same = same && old_parts == new_parts;
        }
        for (int a = 0; a < from.axes; a++) {
            same = same && (from.role[a] == TWIN_SUM) == (to.role[a] == TWIN_SUM);
            moves = moves || from.role[a] != to.role[a] || from.depth[a] != to.depth[a];
        }
        if (!same || !moves) continue;
        const trn_pspec x = spec_of(&from), y = spec_of(&to);
        trni_permute_targets(&mesh, &x, &y, target);
        looked++;
        for (int i = 0; i < mesh.devices; i++) {
            const int to_whom = target[i] < 0 ? i : target[i];
            assert_int_equal(seen[to_whom]++, 0);
            for (int d = 0; d < from.rank; d++) {
                int parts;
                assert_int_equal(twin_part(&from, d, i, &parts), twin_part(&to, d, to_whom, &parts));
            }
            for (int a = 0; a < from.axes; a++)
                if (from.role[a] == TWIN_SUM)
                    assert_int_equal(twin_coordinate(&from, i, a), twin_coordinate(&to, to_whom, a));
        }
    }
    assert_true(looked > 100);
}

/* Each step by itself costs what the collective costs that it names, and no step is longer than a plan for it. */
static void check_steps(const trn_redistribute_args *args, const trn_reshard_plan *plan)
{
    trn_redistribute_args one = *args;
    for (int i = 0; i < plan->steps; i++) {
        const trn_reshard_step *step = &plan->step[i];
        one.to = step->after;
        const trn_reshard_plan alone = plan_of(&one);
        assert_true(alone.time_s <= step->cost.time_s * (1 + 1e-8));
        if (step->kind == TRN_RESHARD_COLLECTIVE && step->op != TRN_PERMUTE && step->bytes) {
            int chip[DEVICES];
            trn_cost cost = { 0 };
            trn_collective_args a = { .net = &net,
                                      .op = step->op,
                                      .algorithm = step->algorithm,
                                      .single_step = step->cost.single_step,
                                      .bytes = step->bytes,
                                      .chips = chip };
            a.groups = trn_mesh_groups(&mesh, step->axis, step->axes, chip);
            a.count = mesh.devices / a.groups;
            assert_int_equal(trn_collective_cost(&a, &cost), TRN_OK);
            if (cost.time_s != step->cost.time_s)
                fail_msg("%s, %s: %g, not %g", trn_collective_name(step->op), trn_algorithm_name(step->algorithm),
                         step->cost.time_s, cost.time_s);
        }
        one.from = step->after;
    }
}

/* From A to C is never longer than by way of B; nothing is shorter than its bound; and from A to A is nothing. */
static void test_triangles(void **state)
{
    (void)state;
    rng = 14;
    for (int round = cases_rounds(250, 5000); round > 0; round--) {
        twin_sharding a, b, c;
        random_pair(&a, &b, true);
        c = a;
        random_roles(&c, one_in(2));
        for (int d = 0; d < a.rank; d++) a.shape[d] = b.shape[d] = c.shape[d] = a.shape[d] * (1 + below(200));
        trn_redistribute_args ab = args_of(&a, &b, TRN_BF16, NULL), bc = args_of(&b, &c, TRN_BF16, NULL),
                              ac = args_of(&a, &c, TRN_BF16, NULL);
        ab.algorithm = bc.algorithm = ac.algorithm = TRN_ALGORITHM_AUTO;
        const trn_reshard_plan first = plan_of(&ab), second = plan_of(&bc), direct = plan_of(&ac);
        const unsigned opened = ab.to.sum & ~(ab.from.sum | bc.to.sum), closed = ab.from.sum & bc.to.sum & ~ab.to.sum;
        if (!opened && !closed && direct.time_s > (first.time_s + second.time_s) * (1 + 1e-8))
            fail_msg("%g is more than %g + %g", direct.time_s, first.time_s, second.time_s);
        assert_true(direct.lower_bound_s <= direct.time_s * (1 + 1e-8));
        check_steps(&ac, &direct);
        ac.to = ac.from;
        const trn_reshard_plan nothing = plan_of(&ac);
        assert_true(nothing.steps == 0 && nothing.time_s == 0 && nothing.lower_bound_s == 0);
    }
}

/* ---- the same bits from any number of threads ---- */

static void test_threads(void **state)
{
    (void)state;
    enum { N = 600, M = 500, D = 8 };
    float *in = (float *)malloc(sizeof(float) * N * M * D), *out = (float *)malloc(sizeof(float) * N * M * D * 2);
    assert_true(in && out);
    rng = 15;
    for (size_t i = 0; i < (size_t)N * M * D; i++) in[i] = cases_float_of(cases_u32(&rng) % 0x05000000u + 0x3d000000u);
    net = trn_topology_ring(D, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=2,b=4"), TRN_OK);
    for (int threads = 1; threads <= 3; threads += 2) {
        float *mine = out + (threads > 1 ? (size_t)N * M * D : 0);
        trn_redistribute_args args = {
            .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, NULL, N, M), .src = src, .dst = dst
        };
        args.wire = TRN_BF16;
        args.rounding = TRN_STOCHASTIC;
        args.seed = 5;
        assert_int_equal(trn_pspec_parse(&args.from, &mesh, "sum(a, b)"), TRN_OK);
        assert_int_equal(trn_pspec_parse(&args.to, &mesh, "(b, a)"), TRN_OK);
        for (int i = 0; i < D; i++) {
            const trn_box box = trn_shard_box(&mesh, &args.to, &args.global, i);
            src[i] = trn_tensor_2d(TRN_F32, in + (size_t)i * N * M, N, M);
            dst[i] = trn_tensor_nd(TRN_F32, mine + (size_t)i * N * M, 2, box.count);
        }
        memset(mine, 0, sizeof(float) * N * M * D);
        with_threads(threads);
        assert_int_equal(trn_redistribute(&args), TRN_OK);
    }
    with_threads(2);
    assert_memory_equal(out, out + (size_t)N * M * D, sizeof(float) * N * M * D);
    free(in);
    free(out);
}

/* ---- refusals ---- */

static void refused(trn_redistribute_args args, bool runs, trn_status status, const char *text)
{
    static unsigned char before[DEVICES][ROOM];
    trn_error error = { TRN_OK, "" };
    trn_reshard_plan plan, old;
    memset(&plan, 0x5a, sizeof plan);
    old = plan;
    memcpy(before, target, sizeof before);
    args.error = &error;
    if (trn_redistribute(&args) != status || error.status != status || strcmp(error.text, text))
        fail_msg("'%s', not '%s'", error.text, text);
    if (!runs && (trn_redistribute_plan(&args, &plan) != status || strcmp(error.text, text)))
        fail_msg("plan: '%s', not '%s'", error.text, text);
    args.error = NULL;
    assert_int_equal(trn_redistribute(&args), status);
    assert_memory_equal(before, target, sizeof before);
    assert_memory_equal(&plan, &old, sizeof plan);
}

static void test_refusals(void **state)
{
    (void)state;
    net = trn_topology_ring(6, 1e9, 1e-6);
    assert_int_equal(trn_mesh_init(&mesh, &net, "a=6"), TRN_OK);
    const trn_mesh none = { 0 };
    trn_redistribute_args base = {
        .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, NULL, 12, 5), .src = src, .dst = dst
    };
    assert_int_equal(trn_pspec_parse(&base.from, &mesh, "sum(a)"), TRN_OK);
    assert_int_equal(trn_pspec_parse(&base.to, &mesh, "(a)"), TRN_OK);
    for (int i = 0; i < 6; i++) {
        src[i] = trn_tensor_2d(TRN_F32, source[i], 12, 5);
        dst[i] = trn_tensor_2d(TRN_F32, target[i], 2, 5);
    }
    assert_int_equal(trn_redistribute(&base), TRN_OK);
#define REFUSED_ARGS(change, runs, status, sentence)                                                                   \
    do {                                                                                                               \
        trn_redistribute_args args = base;                                                                             \
        change;                                                                                                        \
        refused(args, runs, status, sentence);                                                                         \
    } while (0)
    REFUSED_ARGS(args.mesh = NULL, false, TRN_EINVAL, "mesh is null");
    REFUSED_ARGS(args.mesh = &none, false, TRN_EINVAL, "mesh has 0 axes: it is no mesh");
    REFUSED_ARGS(args.global.rank = 7, false, TRN_ESHAPE, "global has rank 7, expected 1 to 6");
    REFUSED_ARGS(args.global.shape[1] = -5, false, TRN_ESHAPE, "global has negative size -5 on axis 1");
    REFUSED_ARGS(args.global.format = TRN_FORMAT_UNSET, false, TRN_EFORMAT, "global has no valid format (0)");
    REFUSED_ARGS(args.global.format = TRN_F8_E8M0, false, TRN_EFORMAT,
                 "global is float8_e8m0fnu, which has no zero, and a sharding has a sum");
    REFUSED_ARGS(args.wire = TRN_CFP8, false, TRN_EFORMAT, "wire = 19 is no format that travels");
    REFUSED_ARGS(args.algorithm = (trn_algorithm)99, false, TRN_EINVAL, "algorithm = 99 is not one");
    REFUSED_ARGS(args.from.rank = 3, false, TRN_EINVAL, "the sharding has 3 dimensions but the tensor has 2");
    REFUSED_ARGS(args.to.sum = 2, false, TRN_EINVAL, "sum = 0x2 has bits beyond the mesh's 1 axes");
    REFUSED_ARGS((args.even_only = true, args.global.shape[0] = 13), false, TRN_ESHAPE,
                 "even_only: dimension 0 has 13 elements, which 6 devices do not share evenly");
    REFUSED_ARGS(
        args.algorithm = TRN_SWITCH_DIRECT, false, TRN_EUNSUPPORTED,
        "no way from one sharding to the other: switch_direct needs one switch that all chips of the group share; "
        "ring has none for these 6 chips");
    REFUSED_ARGS(args.src = NULL, true, TRN_EINVAL, "src is null");
    REFUSED_ARGS(args.dst = NULL, true, TRN_EINVAL, "dst is null");
    REFUSED_ARGS(args.ranks_per_chip = 4, true, TRN_EUNSUPPORTED,
                 "ranks_per_chip = 4 is for costs; values are computed with one rank per chip");
    REFUSED_ARGS(args.overflow = (trn_overflow)9, true, TRN_EINVAL,
                 "overflow 9 is neither TRN_OVERFLOW_DEFAULT nor TRN_SATURATE");
    REFUSED_ARGS(args.sr_bits = 40, true, TRN_EINVAL,
                 "sr_bits is 40; stochastic rounding takes 1 to 32 bits (0 means 32)");
    src[4].shape[0] = 11;
    refused(base, true, TRN_ESHAPE, "src[4] has size 11 on axis 0; its device holds 12 of 12");
    src[4].shape[0] = 12;
    dst[5].format = TRN_I32;
    refused(base, true, TRN_EFORMAT, "dst[5] is int32 but global is float32");
    dst[5].format = TRN_F32;
    dst[2].data = (char *)source[3] + 8;
    refused(base, true, TRN_EINVAL, "dst[2] overlaps src[3]");
    dst[2].data = (char *)target[1] + 4;
    refused(base, true, TRN_EINVAL, "dst[2] overlaps dst[1]");
    dst[2].data = target[2];
    dst[3].stride[0] = -5;
    refused(base, true, TRN_ESHAPE, "dst[3] has negative stride -5 on axis 0");
    trn_reshard_plan plan;
    assert_int_equal(trn_redistribute_plan(&base, NULL), TRN_EINVAL);
    assert_int_equal(trn_redistribute_plan(NULL, &plan), TRN_EINVAL);
    assert_int_equal(trn_redistribute(NULL), TRN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ring),         cmocka_unit_test(test_textbook),
        cmocka_unit_test(test_triangles),    cmocka_unit_test(test_parts_that_do_not_nest),
        cmocka_unit_test(test_permutations), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
