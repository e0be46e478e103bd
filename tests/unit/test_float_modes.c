/* Calls from threads in other modes of floating point (twin/float_modes.h): costs, plans and sharded values do not
 * depend on them, and they are afterwards what they were. (The engines' values: digest/matrix.sh, in the same modes.)
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <trnmath/trnmath.h>

#include "twin/float_modes.h"

/* ---- what calls say: numbers by their bits, and texts ---- */

enum { MOST = 400 };

typedef struct telling {
    uint64_t number[MOST];
    int count;
    uint64_t text; /* a hash */
} telling;

static void tell(telling *t, double x)
{
    if (t->count == MOST) abort();
    memcpy(&t->number[t->count++], &x, sizeof x);
}

static void tell_text(void *user, const char *text, size_t bytes)
{
    telling *t = user;
    for (size_t i = 0; i < bytes; i++) t->text = (t->text ^ (unsigned char)text[i]) * 0x100000001b3u;
}

/* ---- the calls ---- */

static const trn_model llama = { .name = "llama-3-8b",
                                 .layers = 32,
                                 .hidden = 4096,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .intermediate = 14336,
                                 .vocab = 128256 };

static trn_status product_cost(telling *t)
{
    const trn_matmul_cost_args args = {
        .generation = TRN_TRAINIUM2, .a_format = TRN_BF16, .m = 4093, .n = 771, .k = 1023
    };
    trn_core_cost cost;
    const trn_status status = trn_matmul_cost(&args, &cost);
    tell(t, cost.tflops), tell(t, cost.fraction_of_spec);
    tell_text(t, cost.text, strlen(cost.text));
    return status;
}

static trn_status collective_cost(telling *t)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    const trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .bytes = 1234567, .ranks_per_chip = 4 };
    trn_cost cost;
    const trn_status status = trn_collective_cost(&args, &cost);
    tell(t, cost.time_s), tell(t, cost.lower_bound_s), tell(t, cost.latency_s), tell(t, cost.link_s);
    tell(t, cost.hbm_s), tell(t, cost.dma_s), tell(t, cost.bytes_per_s);
    return status;
}

static trn_status network(telling *t)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    const trn_topology_svg_args args = { .net = &net, .write = tell_text, .user = t };
    tell(t, trn_topology_mean_hops(&net)), tell(t, trn_topology_bisection_bytes_per_s(&net));
    tell(t, trn_topology_injection_bytes_per_s(&net)), tell(t, trn_topology_route_latency(&net, 0, 37));
    return trn_topology_svg(&args);
}

static trn_status plan(telling *t)
{
    static trn_trace_event event[2000];
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_plan_args args = { .model = &llama, .net = &net, .batch = 16, .sequence = 4096 };
    trn_plan found[5];
    trn_plan_list list;
    trn_trace trace = { .event = event, .capacity = 2000, .title = "one layer" };
    const trn_trace_svg_args picture = { .trace = &trace, .write = tell_text, .user = t };
    trn_status status = trn_plan_search(&args, found, 5, &list);
    for (int i = 0; i < 5; i++) tell(t, found[i].time_s);
    if (status == TRN_OK) status = trn_plan_trace_layer(&args, &found[0], &trace);
    trn_trace_svg(&picture);
    trn_trace_json(&trace, tell_text, t);
    return status;
}

static trn_status cycles(telling *t)
{
    const trn_engine_work work = { .rule = TRN_RULE_TENSOR_TENSOR, .generation = TRN_TRAINIUM2, .elements = 509 };
    const trn_dma_work transfer = { .generation = TRN_TRAINIUM2, .bytes = 123457, .run_bytes = 500 };
    const trn_tensor_instruction step = {
        .generation = TRN_TRAINIUM2, .stationary_format = TRN_F8_E4M3, .k = 256, .m = 128, .n = 511
    };
    const trn_tensor_sequence_args all = { .instruction = &step, .count = 1, .throttle = true };
    trn_engine_cost cost = { 0 };
    trn_dma_cost seconds = { 0 };
    trn_tensor_sequence_total total = { 0 };
    trn_status status = trn_engine_cycles(&work, &cost);
    if (status == TRN_OK) status = trn_dma_seconds(&transfer, &seconds);
    if (status == TRN_OK) status = trn_tensor_sequence_cost(&all, &total);
    tell(t, cost.cycles), tell(t, seconds.transfer_s);
    tell(t, total.cycles), tell(t, total.seconds), tell(t, total.tflops);
    return status;
}

static trn_status core_program(telling *t)
{
    static float x[128 * 512], y[128 * 512];
    trn_core core;
    trn_core_report report;
    const trn_core_args args = { .generation = TRN_TRAINIUM2 };
    for (int i = 0; i < 128 * 512; i++) {
        const uint32_t bits = (uint32_t)i * 131u + (i % 3 ? 0x3f000000u : 0); /* subnormals too */
        memcpy(&x[i], &bits, sizeof bits);
    }
    if (trn_core_begin(&core, &args)) return TRN_EINVAL;
    const trn_tensor in = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 512));
    const trn_tensor out = trn_core_hbm(&core, "y", trn_tensor_2d(TRN_F32, y, 128, 512));
    const trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 128, 512);
    trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = tile, .src = in });
    trn_core_activation(&core, &(trn_activation_args){ .dst = tile, .src = tile, .op = TRN_ACT_SQUARE, .scale = 0.7f });
    trn_core_dma_copy(&core, &(trn_dma_copy_args){ .dst = out, .src = tile });
    const trn_status status = trn_core_status(&core, NULL);
    trn_core_report_of(&core, &report);
    tell(t, report.time_s);
    tell_text(t, (const char *)y, sizeof y);
    trn_core_end(&core);
    return status;
}

static trn_status sharded(telling *t)
{
    const trn_topology net = trn_topology_ring(4, 128e9, 1e-6);
    static float a[4][8 * 2], b[4][2 * 8], c[4][8 * 8];
    trn_tensor part[3][4];
    trn_mesh mesh;
    trn_sharded_matmul_args args = { .mesh = &mesh, .m = 8, .n = 8, .k = 8 };
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 16; k++) {
            const uint32_t one = 0x3f800001u + (uint32_t)(i * 77 + k * 5), small = 0x00400001u * (unsigned)(k + 1);
            memcpy(&a[i][k], &one, sizeof one);
            memcpy(&b[i][k], k % 4 ? &one : &small, sizeof one);
        }
        part[0][i] = trn_tensor_2d(TRN_F32, a[i], 8, 2);
        part[1][i] = trn_tensor_2d(TRN_F32, b[i], 2, 8);
        part[2][i] = trn_tensor_2d(TRN_F32, c[i], 8, 8);
    }
    args.a = part[0], args.b = part[1], args.dst = part[2];
    if (trn_mesh_init(&mesh, &net, "tensor=4")) return TRN_EINVAL;
    trn_pspec_parse(&args.a_spec, &mesh, "(*, tensor)");
    trn_pspec_parse(&args.b_spec, &mesh, "(tensor, *)");
    const trn_status status = trn_sharded_matmul(&args);
    tell_text(t, (const char *)c, sizeof c);
    return status;
}

static trn_status redistribution(telling *t)
{
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_mesh mesh;
    trn_reshard_plan found;
    trn_redistribute_args args = { .mesh = &mesh, .global = trn_tensor_2d(TRN_BF16, NULL, 8191, 8192) };
    if (trn_mesh_init(&mesh, &net, "data=4,tensor=16")) return TRN_EINVAL;
    trn_pspec_parse(&args.from, &mesh, "(data, *)");
    trn_pspec_parse(&args.to, &mesh, "(*, tensor)");
    const trn_status status = trn_redistribute_plan(&args, &found);
    tell(t, found.time_s);
    return status;
}

static trn_status specification(telling *t)
{
    const trn_system_spec *spec = trn_system_spec_of(TRN_TRN2_ULTRASERVER);
    trn_spec_field field;
    for (int i = 0; i < 100 && trn_spec_field_at(spec, i, &field); i++) tell(t, field.value);
    tell(t, trn_spec_tflops(spec, TRN_BF16, false));
    return TRN_OK;
}

static const struct {
    const char *name;
    trn_status (*run)(telling *t);
} calls[] = {
    { "product_cost", product_cost },
    { "collective_cost", collective_cost },
    { "network", network },
    { "plan", plan },
    { "cycles", cycles },
    { "core_program", core_program },
    { "sharded", sharded },
    { "redistribution", redistribution },
    { "specification", specification },
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- the tests ---- */

static void modes_change_nothing_and_stay(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        telling plain = { .count = 0 };
        assert_int_equal(calls[i].run(&plain), TRN_OK);
        for (int m = 0; m < FLOAT_MODES; m++) {
            telling other = { .count = 0 };
            float_modes_set_all(&float_modes_all[m]);
            const uint64_t before = float_modes_now();
            const trn_status status = calls[i].run(&other);
            const uint64_t after = float_modes_now();
            float_modes_set_all(NULL);
            assert_int_equal(status, TRN_OK);
            if (before != after || other.count != plain.count || other.text != plain.text ||
                memcmp(other.number, plain.number, sizeof plain.number[0] * (size_t)plain.count) != 0)
                fail_msg("%s is another in the modes \"%s\", or leaves others behind", calls[i].name,
                         float_modes_all[m].name);
        }
    }
}

/* After a refusal too. */
static void a_refusal_leaves_them(void **state)
{
    (void)state;
    trn_error error;
    const trn_convert_args wrong = { .error = &error };
    float_modes_set(&float_modes_all[0]);
    const uint64_t before = float_modes_now();
    const trn_status status = trn_convert(&wrong), none = trn_matmul(NULL);
    const uint64_t after = float_modes_now();
    float_modes_set(NULL);
    assert_true(status != TRN_OK && none == TRN_EINVAL);
    assert_true(before == after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_change_nothing_and_stay),
        cmocka_unit_test(a_refusal_leaves_them),
    };
    return cmocka_run_group_tests_name("float_modes", tests, NULL, NULL);
}
