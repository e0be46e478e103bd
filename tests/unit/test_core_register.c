/* test_core_register.c - registers of a core: what they hold, who waits for them, what is refused.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "trnmath/trn_core.h"
#include "unit/one_core.h"

static bool near(double a, double b) { return a > b - 1e-15 && a < b + 1e-15; }

static double cycles(double n) { return n / core.spec->vector_clock_hz; }

static void set(trn_tensor t, float value)
{
    const trn_memset_args args = { .dst = t, .value = value, .engine = TRN_ENGINE_VECTOR };
    trn_core_memset(&core, &args);
}

static void add(trn_tensor t, float value)
{
    const trn_tensor_scalar_args args = {
        .dst = t, .data = t, .op0 = TRN_ALU_ADD, .operand0 = value, .engine = TRN_ENGINE_VECTOR
    };
    trn_core_tensor_scalar(&core, &args);
}

static void load(trn_register *dst, trn_tensor src)
{
    const trn_register_load_args args = { .dst = dst, .src = src };
    trn_core_register_load(&core, &args);
}

static void store(trn_tensor dst, const trn_register *src)
{
    const trn_register_store_args args = { .dst = dst, .src = src };
    trn_core_register_store(&core, &args);
}

static int32_t read(const trn_register *r, trn_engine engine)
{
    const trn_register_read_args args = { .src = r, .engine = engine };
    return trn_core_register_read(&core, &args);
}

static void move(trn_register *dst, const trn_register *src, int32_t value)
{
    const trn_register_move_args args = { .dst = dst, .src = src, .value = value };
    trn_core_register_move(&core, &args);
}

static float first(trn_tensor t)
{
    float x;
    memcpy(&x, t.data, sizeof x);
    return x;
}

/* ---- a loop whose end is in a tile, and in the loop a tile that decides when to stop ---- */

static void a_loop_that_data_end(void **state)
{
    (void)state;
    for (int rounds = 0; rounds < 9; rounds++) {
        begin(TRN_TRAINIUM2);
        const trn_tensor left = trn_core_sbuf(&core, "left", TRN_I32, 1, 1);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_F32, 128, 8);
        const trn_tensor row = trn_core_sbuf(&core, "row", TRN_F32, 128, 16);
        trn_register n = { 0 };
        set(left, (float)rounds);
        set(x, 1);
        set(row, 0);
        for (load(&n, left); read(&n, TRN_ENGINE_UNKNOWN) > 0; load(&n, left)) {
            add(x, 1);
            add(trn_tensor_slice(row, 1, read(&n, TRN_ENGINE_VECTOR), 1), 5); /* an address */
            add(left, -1);
        }
        fine();
        assert_true(first(x) == (float)(1 + rounds));
        for (int f = 0; f < 16; f++)
            assert_true(first(trn_tensor_slice(row, 1, f, 1)) == (f > 0 && f <= rounds ? 5 : 0));
    }
}

/* ---- what registers hold ---- */

static void formats(void **state)
{
    (void)state;
    static const struct {
        trn_format format;
        int32_t from, to; /* stored, loaded */
    } row[] = { { TRN_I8, -3, -3 },          { TRN_I8, 200, -56 },   { TRN_U8, -1, 255 },
                { TRN_I16, -300, -300 },     { TRN_I16, 65535, -1 }, { TRN_U16, -1, 65535 },
                { TRN_I32, -70000, -70000 }, { TRN_U32, -5, -5 },    { TRN_I32, 16777217, 16777217 } };
    begin(TRN_TRAINIUM2);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_tensor t = trn_core_sbuf(&core, "t", row[i].format, 1, 1);
        trn_register a = { 0 }, b = { 0 }, c = { 0 };
        move(&a, NULL, row[i].from);
        store(t, &a);
        load(&b, t);
        move(&c, &b, 0);
        assert_int_equal(read(&c, TRN_ENGINE_UNKNOWN), row[i].to);
        trn_core_free(&core, t);
    }
    fine();
    static int32_t host[4] = { 7, 8, 9, 10 };
    const trn_tensor hbm = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_I32, host, 1, 4));
    trn_register r = { 0 };
    load(&r, trn_tensor_slice(hbm, 1, 2, 1));
    store(trn_tensor_slice(hbm, 1, 3, 1), &r);
    fine();
    assert_int_equal(host[3], 9);
    assert_int_equal(host[2], 9);
}

/* ---- who waits ---- */

static double starts(trn_engine engine)
{
    return core.lane[engine].free_s - core.lane[engine].busy_s; /* of its only instruction */
}

static void who_waits(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    const trn_tensor t = trn_core_sbuf(&core, "t", TRN_I32, 1, 1), x = trn_core_sbuf(&core, "x", TRN_F32, 128, 512);
    static float host[128 * 512];
    const trn_tensor hbm = trn_core_hbm(&core, "host", trn_tensor_2d(TRN_F32, host, 128, 512));
    trn_register r = { 0 };
    set(t, 3);
    const double written_s = core.lane[TRN_ENGINE_VECTOR].free_s;
    assert_true(written_s > 0);
    load(&r, t);
    assert_true(near(r.ready_s, written_s + cycles(64))); /* a load waits for its tile */
    assert_int_equal(read(&r, TRN_ENGINE_GPSIMD), 3);
    const trn_memset_args zero = { .dst = x, .value = 0, .engine = TRN_ENGINE_GPSIMD };
    trn_core_memset(&core, &zero);
    assert_true(near(starts(TRN_ENGINE_GPSIMD), r.ready_s + cycles(64)));
    const trn_activation_args free_runner = { .dst = trn_core_sbuf(&core, "y", TRN_F32, 128, 8),
                                              .op = TRN_ACT_COPY,
                                              .src = trn_core_sbuf(&core, "z", TRN_F32, 128, 8) };
    trn_core_activation(&core, &free_runner);
    assert_true(starts(TRN_ENGINE_SCALAR) == 0); /* it depends on nothing: its flow does not */
    assert_true(core.flow_s[TRN_ENGINE_DMA] == 0);
    read(&r, TRN_ENGINE_SYNC); /* it gives transfers to the queues */
    assert_true(core.flow_s[TRN_ENGINE_DMA] > 0 && core.flow_s[TRN_ENGINE_TENSOR] == 0);
    read(&r, TRN_ENGINE_UNKNOWN);
    for (int e = 1; e < TRN_ENGINE_COUNT; e++) assert_true(near(core.flow_s[e], r.ready_s + cycles(64)));
    const trn_dma_copy_args out = { .dst = hbm, .src = x };
    trn_core_dma_copy(&core, &out);
    fine();

    /* A store waits for its register and for whoever reads the tile; a load of it for the store. */
    begin(TRN_TRAINIUM2);
    const trn_tensor u = trn_core_sbuf(&core, "u", TRN_I32, 1, 1), v = trn_core_sbuf(&core, "v", TRN_I32, 1, 1);
    set(u, 1);
    load(&r, u);
    const trn_register known = r;
    store(v, &r);
    load(&r, v);
    assert_true(near(r.ready_s, known.ready_s + cycles(128)));
    store(u, &r);
    const double stored_s = core.time_s;
    assert_true(near(stored_s, r.ready_s + cycles(64)));
    add(u, 1);
    assert_true(core.lane[TRN_ENGINE_VECTOR].free_s > stored_s);
    fine();

    /* Whoever overwrites a tile waits for a load of it. */
    begin(TRN_TRAINIUM2);
    const trn_tensor w = trn_core_sbuf(&core, "w", TRN_I32, 1, 1);
    set(w, 1);
    load(&r, w);
    set(w, 2);
    assert_true(near(core.lane[TRN_ENGINE_VECTOR].free_s - r.ready_s, core.lane[TRN_ENGINE_VECTOR].busy_s / 2));
    fine();

    /* From HBM as long as a transfer begins. */
    begin(TRN_TRAINIUM2);
    static int32_t number = 5;
    load(&r, trn_core_hbm(&core, "number", trn_tensor_2d(TRN_I32, &number, 1, 1)));
    assert_true(near(r.ready_s, core.spec->dma_latency_s));
}

/* ---- refusals ---- */

static void refusals(void **state)
{
    (void)state;
    trn_register r = { 0 };
    begin(TRN_TRAINIUM2);
    load(&r, trn_core_sbuf(&core, "t", TRN_I32, 1, 1));
    told("instruction 0, register_load: src reads partition 0, element 0 of 't', which nothing has written");
    assert_false(r.known);
    load(&r, trn_core_sbuf(&core, "t", TRN_I32, 1, 2));
    told("instruction 0, register_load: src has 2 elements; a register holds one");
    load(&r, trn_core_sbuf(&core, "t", TRN_F32, 1, 1));
    told("instruction 0, register_load: src is float32; registers hold integers of up to 32 bits");
    load(&r, trn_core_psum(&core, "t", TRN_I32, 1, 1));
    told("instruction 0, register_load: src 't' lies in PSUM; registers reach SBUF and HBM");
    read(&r, TRN_ENGINE_UNKNOWN);
    told("instruction 0, register_read: src holds nothing yet");
    move(&r, &r, 0);
    told("instruction 0, register_move: src holds nothing yet");
    store(trn_core_sbuf(&core, "t", TRN_I32, 1, 1), NULL);
    told("instruction 0, register_store: src is null; it is a register");
    load(NULL, trn_core_sbuf(&core, "t", TRN_I32, 1, 1));
    told("instruction 0, register_load: dst is null; it is a register");
    move(&r, NULL, 1);
    read(&r, (trn_engine)77);
    told("instruction 1, register_read: engine is 77, not an engine");
    static int32_t nobody[1];
    load(&r, trn_tensor_2d(TRN_I32, nobody, 1, 1));
    told("instruction 0, register_load: src lies neither in a tile nor in a tensor that trn_core_hbm has registered");
}

/* Every call of a core that has failed says so again, and does nothing. */
static void failures_stick(void **state)
{
    (void)state;
    begin(TRN_TRAINIUM2);
    const trn_tensor t = trn_core_sbuf(&core, "t", TRN_I32, 1, 1);
    trn_register r = { 0 }, other = { 0 };
    set(t, 3);
    load(&r, t);
    const trn_register known = r;
    fine();
    load(NULL, t);
    const trn_error failure = core.failure;
    const int64_t instructions = core.instructions;
    const double time_s = core.time_s;
    const trn_register_load_args loads = { .dst = &other, .src = t };
    const trn_register_store_args stores = { .dst = t, .src = &r };
    const trn_register_move_args moves = { .dst = &r, .value = 7 };
    const trn_register_read_args reads = { .src = &r };
    assert_int_equal(trn_core_register_load(&core, &loads), TRN_EINVAL);
    r.value = 5;
    assert_int_equal(trn_core_register_store(&core, &stores), TRN_EINVAL);
    r = known;
    assert_int_equal(trn_core_register_move(&core, &moves), TRN_EINVAL);
    assert_int_equal(trn_core_register_read(&core, &reads), 0);
    assert_false(other.known);
    assert_int_equal(*(int32_t *)t.data, 3);
    assert_memory_equal(&r, &known, sizeof r);
    assert_memory_equal(&core.failure, &failure, sizeof failure);
    assert_true(core.instructions == instructions && core.time_s == time_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_data_end),
        cmocka_unit_test(formats),
        cmocka_unit_test(who_waits),
        cmocka_unit_test(refusals),
        cmocka_unit_test(failures_stick),
    };
    return cmocka_run_group_tests_name("core_register", tests, NULL, NULL);
}
