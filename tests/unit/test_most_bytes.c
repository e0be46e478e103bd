/* test_most_bytes.c - sizes up to the largest that can be, and beyond: plans and costs are counted exactly or refused.
 * SPDX-License-Identifier: MIT
 *
 * Sizes lie around 2^31, 2^32 and 2^53, where narrower numbers end, and around 2^59 to 2^62, where 64 bits do. What is
 * right is counted here in 128 bits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "trnmath/trn_collective.h"
#include "trnmath/trn_plan.h"
#include "trnmath/trn_reshard.h"

#define MOST ((int64_t)1 << 60)

__extension__ typedef __int128 wide;

static trn_topology net;
static trn_mesh mesh;

/* Ascending. */
static int sizes(int64_t *list)
{
    static const int near[] = { 20, 31, 32, 33, 52, 53, 54, 56, 57, 58, 59, 60, 61, 62 };
    int count = 0;
    for (unsigned i = 0; i < sizeof near / sizeof near[0]; i++)
        for (int64_t off = -3; off <= 3; off++) list[count++] = ((int64_t)1 << near[i]) + off;
    list[count++] = INT64_MAX - 1;
    list[count++] = INT64_MAX;
    return count;
}

enum { SIZES = 128 };

static const char *const shardings[] = { "(data, tensor)",          "(tensor, *)",
                                         "(*, (data, tensor))",     "(*, *)",
                                         "(data, *) + sum(tensor)", "(*, *) + sum(data)" };
enum { SHARDINGS = sizeof shardings / sizeof shardings[0] };

static void on(trn_system system, const char *axes)
{
    net = trn_topology_of(system);
    assert_int_equal(trn_mesh_init(&mesh, &net, axes), TRN_OK);
}

static trn_redistribute_args ask(const char *from, const char *to, trn_format format, int64_t rows, int64_t columns)
{
    static trn_error error;
    trn_redistribute_args args;
    memset(&args, 0, sizeof args);
    memset(&error, 0, sizeof error);
    args.mesh = &mesh;
    args.global = trn_tensor_2d(format, NULL, rows, columns);
    args.error = &error;
    assert_int_equal(trn_pspec_parse(&args.from, &mesh, from), TRN_OK);
    assert_int_equal(trn_pspec_parse(&args.to, &mesh, to), TRN_OK);
    return args;
}

static void check_refused(trn_status status, trn_status wanted, const trn_error *error, const char *words)
{
    assert_int_equal(status, wanted);
    assert_int_equal(error->status, wanted);
    if (!strstr(error->text, words)) fail_msg("\"%s\" does not say \"%s\"", error->text, words);
}

/* ---- redistribution ---- */

/* The larger of the buffers of a device of the group, parts rounded up, as the step says it; counted here. */
static wide part_bytes(const trn_redistribute_args *args, const trn_pspec *spec, trn_format format)
{
    wide n = trn_format_bits(format);
    for (int d = 0; d < 2; d++) {
        const int parts = trn_pspec_parts(spec, &mesh, d);
        n *= (args->global.shape[d] + (wide)parts - 1) / parts;
    }
    return (n + 7) / 8;
}

static void check_step(const trn_redistribute_args *args, const trn_pspec *before, const trn_reshard_step *step)
{
    const bool sums = step->op == TRN_ALL_REDUCE || step->op == TRN_REDUCE_SCATTER;
    const trn_format format = sums && args->wire ? args->wire : args->global.format;
    const wide old = part_bytes(args, before, format), new = part_bytes(args, &step->after, format);
    wide members = 1;
    for (int i = 0; i < step->axes; i++) members *= mesh.axis[step->axis[i]].size;
    if (step->cost.time_s < step->cost.lower_bound_s * (1 - 1e-9)) fail_msg("a step is faster than its bound");
    if (step->kind != TRN_RESHARD_COLLECTIVE) return;
    const wide least = old > new ? old : new, most = members *(old < new ? old : new);
    if (step->bytes < least || (step->op != TRN_PERMUTE && step->op != TRN_ALL_REDUCE && step->bytes > most))
        fail_msg("%lld bytes in %s", (long long)step->bytes, trn_collective_name(step->op));
}

/* Legal or refused; a plan is no faster than its bound, and each step moves what it must. */
static trn_status check_plan(const trn_redistribute_args *args, double *time_s)
{
    trn_reshard_plan plan, untouched;
    memset(&plan, 0x5a, sizeof plan);
    untouched = plan;
    const trn_status status = trn_redistribute_plan(args, &plan);
    const wide bytes =
        (wide)args->global.shape[0] * args->global.shape[1] * (wide)trn_format_bytes(args->global.format);
    if (bytes > MOST)
        check_refused(status, TRN_ESHAPE, args->error, "2^60");
    else if (status)
        check_refused(status, TRN_EUNSUPPORTED, args->error, "2^60 bytes, parts rounded up");
    if (status) {
        assert_memory_equal(&plan, &untouched, sizeof plan);
        return status;
    }
    if (plan.time_s < plan.lower_bound_s * (1 - 1e-9))
        fail_msg("[%lld, %lld] of %s: %g s, at least %g", (long long)args->global.shape[0],
                 (long long)args->global.shape[1], trn_format_name(args->global.format), plan.time_s,
                 plan.lower_bound_s);
    for (int i = 0; i < plan.steps; i++) check_step(args, i ? &plan.step[i - 1].after : &args->from, &plan.step[i]);
    *time_s = plan.time_s;
    return status;
}

/* What a fuzzer found: a gather of 2^61 bytes that was paid as one of 2^60. */
static void test_found(void **state)
{
    (void)state;
    double time_s;
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    trn_redistribute_args args = ask("(tensor)", "(*, *)", TRN_BF16, MOST / 2, 2);
    assert_int_equal(check_plan(&args, &time_s), TRN_ESHAPE);
    assert_non_null(strstr(args.error->text, "1152921504606846976 elements of 2 bytes"));
    args.global.shape[0] /= 2; /* 2^60 bytes can be */
    assert_int_equal(check_plan(&args, &time_s), TRN_OK);
    assert_true(time_s > 1e6);
}

static void test_redistribution(void **state)
{
    (void)state;
    static const trn_format format[] = { TRN_F32, TRN_BF16, TRN_F8_E4M3, TRN_F4_E2M1 };
    static const int64_t other[] = { 1, 2, 3, 16, 1000 };
    int64_t list[SIZES];
    long legal = 0, refused = 0;
    const int count = sizes(list);
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    for (int i = 0; i < count; i++)
        for (int from = 0; from < SHARDINGS; from++)
            for (int to = 0; to < SHARDINGS; to++) {
                double time_s;
                const int64_t n = other[(i + from) % 5];
                const bool tall = (i + to) % 2;
                const trn_redistribute_args args = ask(shardings[from], shardings[to], format[(from + to + i) % 4],
                                                       tall ? list[i] : n, tall ? n : list[i]);
                *(check_plan(&args, &time_s) ? &refused : &legal) += 1;
            }
    assert_true(legal > 1000 && refused > 1000);
}

/* Twice the rows take no less time, as far as they go. */
static void test_more_takes_longer(void **state)
{
    (void)state;
    on(TRN_TRN2_ULTRASERVER, "data=4,tensor=16");
    for (int from = 0; from < SHARDINGS; from++)
        for (int to = 0; to < SHARDINGS; to++) {
            double before = 0, now;
            int64_t rows = 64;
            for (; rows > 0 && rows < INT64_MAX / 4; rows *= 2, before = now) {
                const trn_redistribute_args args = ask(shardings[from], shardings[to], TRN_BF16, rows, 64);
                if (check_plan(&args, &now)) break;
                if (now < before * (1 - 1e-9))
                    fail_msg("%lld rows: %g s, half of them %g", (long long)rows, now, before);
            }
            assert_true(rows == MOST / 64);
        }
}

/* Uneven parts are rounded up, and so a buffer may be larger than the tensor: such a move cannot be. */
static void test_uneven(void **state)
{
    (void)state;
    double time_s;
    on(TRN_TRN3_GEN2_ULTRASERVER, "data=16,tensor=9");
    trn_redistribute_args args = ask("(*, tensor)", "(*, *)", TRN_I8, 1, MOST);
    assert_int_equal(check_plan(&args, &time_s), TRN_EUNSUPPORTED);
    assert_non_null(strstr(args.error->text, " over 9 devices would take a buffer"));
    args.global.shape[1] -= 16;
    assert_int_equal(check_plan(&args, &time_s), TRN_OK);
    assert_true(time_s > 0);
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    args = ask("(tensor, *)", "(*, *)", TRN_BF16, 1, MOST / 4); /* 8 rows of 2^59 bytes, but first cut by columns */
    assert_int_equal(check_plan(&args, &time_s), TRN_OK);
}

/* A sum in a wider format. Its parts may be finished by others and then travel as the tensor has them: the bound once
 * forgot that, at any size. */
static void test_wire(void **state)
{
    (void)state;
    double time_s;
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    trn_redistribute_args args = ask("(*, *) + sum(data)", "(*, *)", TRN_BF16, MOST / 32, 16);
    args.wire = TRN_F32;
    trn_reshard_plan plan;
    check_refused(trn_redistribute_plan(&args, &plan), TRN_ESHAPE, args.error, "wire: a sum of global");
    for (args.global.shape[0] /= 2; args.global.shape[0] > 1; args.global.shape[0] /= 2)
        assert_int_equal(check_plan(&args, &time_s), TRN_OK);
}

static void test_shares(void **state)
{
    (void)state;
    int64_t list[SIZES];
    const int count = sizes(list);
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    for (int i = 0; i < count; i++)
        for (int spec = 0; spec < SHARDINGS; spec++) {
            trn_redistribute_args args = ask(shardings[spec], "(*, *)", TRN_F32, list[i], 1 + spec);
            const trn_box box = trn_shard_box(&mesh, &args.from, &args.global, 15);
            const int64_t bytes = trn_shard_bytes(&mesh, &args.from, &args.global);
            const bool fits = (wide)list[i] * (1 + spec) <= MOST;
            assert_int_equal(box.rank, fits ? 2 : 0);
            assert_true(fits ? bytes == part_bytes(&args, &args.from, TRN_F32) : bytes == 0);
        }
}

static void test_sharded_product(void **state)
{
    (void)state;
    static trn_sharded_matmul_plan plan;
    trn_sharded_matmul_args args;
    trn_error error;
    memset(&args, 0, sizeof args);
    on(TRN_TRN2_48XLARGE, "data=2,tensor=8");
    args.mesh = &mesh;
    args.error = &error;
    args.matmul.a.format = args.matmul.b.format = args.matmul.dst.format = TRN_BF16;
    trn_pspec_parse(&args.a_spec, &mesh, "(data, *)");
    trn_pspec_parse(&args.b_spec, &mesh, "(*, tensor)");
    trn_pspec_parse(&args.dst_spec, &mesh, "(*, *)");
    args.m = args.n = (int64_t)1 << 29;
    args.k = 16;
    assert_int_equal(trn_sharded_matmul_plan_of(&args, &plan), TRN_OK);
    assert_true(plan.time_s > plan.result.lower_bound_s * (1 - 1e-9));
    args.m *= 4;
    check_refused(trn_sharded_matmul_plan_of(&args, &plan), TRN_ESHAPE, &error, "dst_spec: global has");
}

/* ---- collectives ---- */

static void test_collective_cost(void **state)
{
    (void)state;
    int64_t list[SIZES];
    const int count = sizes(list);
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
        for (int algorithm = 0; algorithm < TRN_ALGORITHM_COUNT; algorithm++) {
            double before = 0;
            for (int i = 0; i < count; i++) {
                trn_error error;
                trn_cost cost;
                trn_collective_args args;
                memset(&args, 0, sizeof args);
                args.net = &net;
                args.op = (trn_collective)op;
                args.algorithm = (trn_algorithm)algorithm;
                args.bytes = list[i];
                args.error = &error;
                const trn_status status = trn_collective_cost(&args, &cost);
                if (list[i] > MOST) check_refused(status, TRN_EINVAL, &error, "2^60");
                if (status) continue;
                assert_true(cost.time_s >= cost.lower_bound_s * (1 - 1e-9));
                assert_true(cost.time_s >= before * (1 - 1e-9));
                before = cost.time_s;
            }
        }
}

/* Views that claim what no memory holds; nothing of it is touched. */
static void test_collective_run(void **state)
{
    (void)state;
    static char memory[16];
    trn_tensor src[16], dst[16];
    trn_error error;
    trn_collective_args args;
    memset(&args, 0, sizeof args);
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    for (int i = 0; i < 16; i++) src[i] = dst[i] = trn_tensor_1d(TRN_I8, memory + i, MOST / 2 + 16);
    args.net = &net;
    args.op = TRN_ALL_TO_ALL;
    args.granule = INT64_MAX;
    args.src = src;
    args.dst = dst;
    args.error = &error;
    check_refused(trn_collective_run(&args), TRN_ESHAPE, &error, "granule = 9223372036854775807: 16 shares");
}

/* ---- plans ---- */

static void test_plan(void **state)
{
    (void)state;
    const trn_model model = { .name = "many experts",
                              .layers = 2,
                              .hidden = 64,
                              .heads = 16,
                              .intermediate = 64,
                              .vocab = 64,
                              .experts = 16384,
                              .experts_per_token = 16384,
                              .moe_intermediate = 64 };
    trn_error error;
    trn_plan_args args;
    trn_plan_list list;
    trn_plan plan;
    trn_algorithm algorithm;
    double time_s = -1;
    memset(&args, 0, sizeof args);
    memset(&plan, 0, sizeof plan);
    net = trn_topology_of(TRN_TRN2_48XLARGE);
    args.model = &model;
    args.net = &net;
    args.error = &error;
    args.batch = (int64_t)1 << 20;
    args.sequence = (int64_t)1 << 20;
    args.assumptions.expert_imbalance = 1024; /* 2^40 tokens, 2^14 experts of each, 2^10 times the mean */
    check_refused(trn_plan_search(&args, &plan, 1, &list), TRN_ELIMIT, &error, "more than 2^60 rows");
    args.assumptions.expert_imbalance = 64;
    args.assumptions.bucket_bytes = 1e-300; /* infinitely many buckets, and then no number at all */
    args.assumptions.bucket_rank_bytes = -1;
    check_refused(trn_plan_search(&args, &plan, 1, &list), TRN_EINVAL, &error, "at least one byte");
    args.assumptions.bucket_bytes = 1;
    assert_int_equal(trn_plan_search(&args, &plan, 1, &list), TRN_OK);
    assert_true(!plan.legal || (plan.time_s > 0 && plan.time_s < HUGE_VAL));
    assert_int_equal(trn_plan_search(&args, &plan, 1, &list), TRN_OK);
    memset(&plan, 0, sizeof plan);
    plan.tp = 16;
    plan.cp = plan.ep = plan.dp = plan.pp = 1;
    assert_int_equal(trn_plan_collective(&args, &plan, 1, TRN_ALL_REDUCE, 0x1p60, &time_s, &algorithm), TRN_OK);
    assert_true(time_s > 1e6);
    check_refused(trn_plan_collective(&args, &plan, 1, TRN_ALL_REDUCE, HUGE_VAL, &time_s, &algorithm), TRN_EINVAL,
                  &error, "expected 0 to 2^60");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_redistribution),
        cmocka_unit_test(test_more_takes_longer),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_sharded_product),
        cmocka_unit_test(test_collective_cost),
        cmocka_unit_test(test_collective_run),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
