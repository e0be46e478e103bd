/* core_run/clocks.c - when each instruction begins, and that a core computes what its engines compute.
 * SPDX-License-Identifier: MIT
 *
 * Random programs are timed a second time by a simulator that shares nothing with trnmath/ but the durations: it keeps
 * a list of all instructions and looks through all of it, byte by byte of what they touch.
 */
#include <math.h>

#include "twin/cases.h"
#include "unit/core_run/groups.h"
#include "unit/core_steps.h"

/* ---- numbers ---- */

static void a_core_computes_what_the_engines_compute(void **state)
{
    (void)state;
    static float x[128 * 96], y[128 * 96], sums[128], direct[128 * 96], direct_sums[128];
    for (int i = 0; i < 128 * 96; i++) x[i] = (float)(i % 977) / 300.0f - 1.5f;
    begin(TRN_TRAINIUM2);
    trn_tensor t = tile("t", 128, 96), s = tile("sum", 128, 1), b = trn_core_sbuf(&core, "b", TRN_BF16, 128, 96);
    move(t, trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 96)));
    const trn_activation_args act = { .dst = b, .src = t, .op = TRN_ACT_EXP, .reduce_res = s };
    trn_core_activation(&core, &act);
    copy(t, b, TRN_ENGINE_SCALAR);
    move(trn_core_hbm(&core, "y", trn_tensor_2d(TRN_F32, y, 128, 96)), t);
    move(trn_core_hbm(&core, "sums", trn_tensor_2d(TRN_F32, sums, 128, 1)), s);
    fine();
    static uint16_t narrow[128 * 96];
    const trn_activation_args alone = { .generation = TRN_TRAINIUM2,
                                        .dst = trn_tensor_2d(TRN_BF16, narrow, 128, 96),
                                        .src = trn_tensor_2d(TRN_F32, x, 128, 96),
                                        .op = TRN_ACT_EXP,
                                        .reduce = direct_sums };
    assert_int_equal(trn_activation(&alone), TRN_OK);
    for (int i = 0; i < 128 * 96; i++) direct[i] = trn_bf16_to_f32(narrow[i]);
    assert_memory_equal(y, direct, sizeof y);
    assert_memory_equal(sums, direct_sums, sizeof sums);
    float host[128];
    begin(TRN_TRAINIUM2);
    t = tile("t", 128, 4);
    set(t, 1);
    const trn_activation_args wrong = { .dst = t, .src = t, .op = TRN_ACT_EXP, .reduce = host };
    trn_core_activation(&core, &wrong);
    expect("instruction 1, activation: reduce is an array of the host; engines read tiles: see scale_tile, bias_tile, "
           "reduce_res");
}

/* ---- time ---- */

enum { STEPS = 400, TOUCHES = 4 };

typedef struct touch {
    int place; /* a tile, or 100 + a tensor in HBM */
    int64_t p, p_end, b, b_end;
    bool write;
} touch;

typedef struct step {
    int track; /* as in the trace */
    touch part[TOUCHES];
    int parts;
    bool sbuf, psum;
    double start, end, issued; /* issued: DMA waits for this, and its latency */
} step;

static step all[STEPS];

static bool same_bytes(const touch *x, const touch *y)
{
    return x->place == y->place && x->p < y->p_end && y->p < x->p_end && x->b < y->b_end && y->b < x->b_end &&
           (x->write || y->write);
}

static bool conflict(const step *x, const step *y)
{
    for (int i = 0; i < x->parts; i++)
        for (int k = 0; k < y->parts; k++)
            if (same_bytes(&x->part[i], &y->part[k])) return true;
    return false;
}

/* When step n starts, from all those before it. */
static double start_of(const step *all_steps, int n, trn_generation generation, double length)
{
    const step *s = &all_steps[n];
    double from = 0;
    for (int i = 0; i < n; i++) {
        const step *o = &all_steps[i];
        const bool in_order = s->track != 4 && o->track == s->track;
        const bool port =
            generation == TRN_TRAINIUM1 &&
            ((s->sbuf && o->sbuf && s->track + o->track == 1 + 3 && s->track != o->track && s->track % 2 == 1) ||
             (s->psum && o->psum && s->track + o->track == 1 + 2 && s->track != o->track && s->track > 0));
        if (in_order || port || conflict(s, o)) from = fmax(from, o->end);
    }
    if (s->track != 4) return from;
    from += 1.3e-6;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++)
            if (all_steps[i].track == 4 && all_steps[i].start < from + length && from < all_steps[i].end) {
                from = all_steps[i].end;
                moved = true;
            }
    }
    return from;
}

static trn_tensor places[12];

static void touched(step *s, int place, int64_t p, int64_t p_end, int64_t b, int64_t b_end, bool write)
{
    const touch t = { place, p, p_end, b, b_end, write };
    s->part[s->parts++] = t;
}

/* A random part of a tile: partitions that engines may take, and a run of elements. */
static trn_tensor random_part(step *s, int place, int64_t p, int64_t n, int64_t f, uint64_t *seed, bool write)
{
    const int64_t first = cases_below(seed, (int)(64 - f + 1));
    touched(s, place, p, p + n, first * 4, (first + f) * 4, write);
    if (place < 8)
        s->sbuf = true;
    else if (place < 100)
        s->psum = true;
    return trn_tensor_slice(trn_tensor_slice(places[place], 0, p, n), 1, first, f);
}

static float hbm[2][128 * 64];

static void random_step(step *s, uint64_t *seed)
{
    static const int64_t start[] = { 0, 32, 64, 96, 0, 64, 0 }, count[] = { 32, 32, 32, 32, 64, 64, 128 };
    const int kind = cases_below(seed, 7), what = cases_below(seed, 5);
    const int64_t p = start[kind], n = count[kind] - cases_below(seed, 20), f = 1 + cases_below(seed, 64);
    memset(s, 0, sizeof *s);
    const int from = cases_below(seed, 12), to = cases_below(seed, 12);
    if (what == 0) { /* DMA, to or from HBM */
        const int h = cases_below(seed, 2), t = cases_below(seed, 8);
        const int64_t row = cases_below(seed, (int)(128 - n + 1)), column = cases_below(seed, (int)(64 - f + 1));
        const bool load = cases_one_in(seed, 2);
        const trn_tensor outside =
            trn_tensor_slice(trn_tensor_slice(trn_tensor_2d(TRN_F32, hbm[h], 128, 64), 0, row, n), 1, column, f);
        const trn_tensor inside = random_part(s, t, p, n, f, seed, load);
        touched(s, 100 + h, row, row + n, column * 4, (column + f) * 4, !load);
        s->track = 4;
        move(load ? inside : outside, load ? outside : inside);
        return;
    }
    if (what == 4) { /* GpSimd, SBUF only */
        s->track = 3;
        copy(random_part(s, to % 8, p, n, f, seed, true), random_part(s, (to + 1) % 8, p, n, f, seed, false),
             TRN_ENGINE_GPSIMD);
        return;
    }
    if (what == 3) {
        s->track = 1;
        set(random_part(s, to, p, n, f, seed, true), 1);
        return;
    }
    const int other = to == from ? (to + 1) % 12 : to;
    s->track = what == 1 ? 1 : 2;
    const trn_tensor dst = random_part(s, other, p, n, f, seed, true);
    copy(dst, random_part(s, from, p, n, f, seed, false), what == 1 ? TRN_ENGINE_VECTOR : TRN_ENGINE_SCALAR);
}

static void random_program(trn_generation generation, uint64_t seed)
{
    static trn_trace_event event[STEPS];
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = STEPS;
    trn_core_args args = core_args_of(generation);
    args.trace = &trace;
    args.no_poison = true;
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
    for (int i = 0; i < 12; i++) {
        places[i] = i < 8 ? tile("s", 128, 64) : trn_core_psum(&core, "p", TRN_F32, 128, 64);
        for (int p = 0; p < 128; p++) memset((char *)places[i].data + p * places[i].stride[0] * 4, 0, 256);
    }
    trn_core_hbm(&core, "h0", trn_tensor_2d(TRN_F32, hbm[0], 128, 64));
    trn_core_hbm(&core, "h1", trn_tensor_2d(TRN_F32, hbm[1], 128, 64));
    double busy[5] = { 0 }, last = 0;
    int64_t counts[5] = { 0 };
    int steps = 0;
    while (steps < STEPS) {
        step *s = &all[steps];
        random_step(s, &seed);
        if (generation == TRN_TRAINIUM1 && core.failure.status == TRN_EUNSUPPORTED) { /* no copies on ScalarE there */
            memset(&core.failure, 0, sizeof core.failure);
            continue;
        }
        fine();
        const trn_trace_event *e = &event[steps];
        assert_int_equal(trace.count, steps + 1);
        assert_int_equal(e->track, s->track);
        const double expected = start_of(all, steps, generation, e->duration_s);
        if (fabs(e->start_s - expected) > 1e-15)
            fail_msg("step %d of track %d starts at %.6f us, expected %.6f us", steps, s->track, 1e6 * e->start_s,
                     1e6 * expected);
        s->start = e->start_s;
        s->end = e->start_s + e->duration_s;
        busy[s->track] += e->duration_s;
        counts[s->track]++;
        last = fmax(last, s->end);
        steps++;
    }
    trn_core_report report;
    trn_core_report_of(&core, &report);
    assert_true(fabs(report.time_s - last) < 1e-15);
    assert_int_equal(report.instructions, STEPS);
    for (int i = 0; i < 5; i++) {
        assert_true(fabs(report.engine[i + 1].busy_s - busy[i]) < 1e-12);
        assert_int_equal(report.engine[i + 1].instructions, counts[i]);
        assert_true(report.engine[i + 1].busy_s <= report.engine[report.bound].busy_s);
        assert_true(fabs(report.engine[i + 1].share * report.time_s - busy[i]) < 1e-12);
    }
    trn_trace_sort(&trace);
    double end[5] = { 0 };
    for (int i = 0; i < STEPS; i++) { /* no two at once on one track */
        assert_true(event[i].start_s >= end[event[i].track] - 1e-15);
        end[event[i].track] = event[i].start_s + event[i].duration_s;
    }
}

static void random_programs_start_when_a_slow_simulator_says(void **state)
{
    (void)state;
    for (int i = 0; i < cases_rounds(24, 400); i++)
        random_program((trn_generation)(TRN_TRAINIUM1 + i % 3), (uint64_t)i + 1);
}

static void memory_of_a_freed_tile_is_ready_when_its_users_are_done(void **state)
{
    (void)state;
    static trn_trace_event event[8];
    trn_trace trace;
    memset(&trace, 0, sizeof trace);
    trace.event = event;
    trace.capacity = 8;
    const trn_core_args args = { .generation = TRN_TRAINIUM2, .trace = &trace };
    assert_int_equal(trn_core_begin(&core, &args), TRN_OK);
    const size_t mark = trn_core_mark(&core);
    set(tile("a", 128, 512), 1); /* VectorE */
    trn_core_release(&core, mark);
    trn_tensor b = tile("b", 128, 512), c = tile("c", 128, 512);
    const trn_memset_args on_gpsimd = { .dst = c, .value = 1, .engine = TRN_ENGINE_GPSIMD };
    const trn_memset_args same_memory = { .dst = b, .value = 1, .engine = TRN_ENGINE_GPSIMD };
    trn_core_memset(&core, &on_gpsimd);
    trn_core_memset(&core, &same_memory);
    fine();
    assert_true(event[1].start_s == 0);
    assert_true(event[2].start_s == event[1].duration_s && event[2].start_s >= event[0].duration_s);
    trn_core_release(&core, mark);
    b = tile("b", 128, 512);
    const trn_activation_args act = { .dst = b, .src = b, .op = TRN_ACT_EXP };
    assert_int_equal(trn_core_written(&core, b), TRN_OK);
    trn_core_activation(&core, &act);
    fine();
    assert_true(event[3].start_s == event[2].start_s + event[2].duration_s);
    trn_core_report report;
    trn_core_report_of(&core, &report);
    assert_int_equal(report.sbuf_high_water, 2 * 128 * 2048);
    assert_int_equal(report.sbuf_high_water_partition, 2 * 2048);
    assert_int_equal(report.sbuf_bytes, 128 * 224 * 1024);
    assert_int_equal(report.psum_high_water, 0);
    trn_core_end(&core);
}

int core_run_clocks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_computes_what_the_engines_compute),
        cmocka_unit_test(random_programs_start_when_a_slow_simulator_says),
        cmocka_unit_test(memory_of_a_freed_tile_is_ready_when_its_users_are_done),
    };
    return cmocka_run_group_tests_name("core_run_clocks", tests, NULL, NULL);
}
