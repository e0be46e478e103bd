/* test_tensor_core.c - with another maker's numerics, trnmath returns what that maker's matrix units returned.
 * SPDX-License-Identifier: MIT
 *
 * Nobody has published what Trainium's array returns bit by bit; for NVIDIA's tensor cores and AMD's matrix cores it
 * has been done. The same tiles, decoding, PSUM and casts serve both, so they are held against that hardware here:
 *     tests/golden/tensor_core_<device>.txt      results of devices (F. A. Khattak and M. Mikaitis,
 *                                                doi 10.1145/3830409)
 *     tests/golden/tensor_core_mma_sim_*.txt     results of a model that its authors verified on devices
 *                                                (arXiv 2511.10909)
 *     the probes below                           M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of
 *                                                NVIDIA tensor cores", PeerJ Computer Science 7:e330 (2021), sections
 *                                                on V100, T4, A100
 * and against a twin in exact numbers, which knows all fields at all values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "published/matrix_units.h"
#include "twin/host.h"
#include "twin/instruction.h"
#include "twin/twin_aligned.h"

static trn_numerics parsed(const char *text)
{
    trn_numerics n;
    if (trn_numerics_parse(&n, text) != TRN_OK) fail_msg("\"%s\" is refused", text);
    return n;
}

/* ---- vectors from files (published/matrix_units.h) ---- */

enum { MOST = 16 };

static void must_be(void *user, const char *what, const units_vector *v, uint32_t expected, uint32_t got)
{
    (void)user;
    if (got == expected) return;
    fail_msg("%s: %s %s %s %s %s %08x: expected %08x, got %08x", what, v->preset, v->format[0], v->format[1],
             v->code[0], v->code[1], v->c, (unsigned)expected, (unsigned)got);
}

static bool check_batch(units_batch *t, void *user)
{
    const struct units_file *f = (const struct units_file *)user;
    const trn_numerics n = parsed(t->v[0].preset);
    bool fresh = f->how == UNITS_PLAIN, good = true;
    for (int i = 0; i < t->count; i++) fresh = fresh && t->v[i].c == 0;
    if (f->how == UNITS_PLAIN) good = units_instruction(t, &n, true) && (!fresh || units_instruction(t, &n, false));
    if (f->how == UNITS_MMA_FP8) return units_mma_fp8(t, &n, TRN_ISA_AUTO);
    for (unsigned i = 0; good && i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        good = f->how == UNITS_SCALED ? units_scaled(t, &n, all_isas[i]) : units_matmul(t, &n, all_isas[i], true);
        if (fresh) good = good && units_matmul(t, &n, all_isas[i], false);
    }
    return good;
}

static const struct units_file *file_named(const char *name)
{
    for (int i = 0; i < UNITS_FILES; i++)
        if (strcmp(units_files[i].name, name) == 0) return &units_files[i];
    fail_msg("no file %s", name);
    return NULL;
}

static void check_file(const char *name)
{
    static units_batch t;
    const struct units_file *f = file_named(name);
    with_threads(1); /* tiny products: teams of threads would cost more than the work */
    t.compared = must_be;
    const int seen = units_read(TRN_GOLDEN_DIR, f, &t, check_batch, (void *)(uintptr_t)f);
    if (seen != f->vectors) fail_msg("%s: %d vectors, expected %d. %s", name, seen, f->vectors, t.error.text);
}

static void results_of_v100(void **state) { (void)state, check_file("v100"); }
static void results_of_a100(void **state) { (void)state, check_file("a100"); }
static void results_of_a2(void **state) { (void)state, check_file("a2"); }
static void results_of_ada(void **state) { (void)state, check_file("ada"); }
static void results_of_h100(void **state) { (void)state, check_file("h100"); }
static void results_of_h200(void **state) { (void)state, check_file("h200"); }
static void results_of_b200(void **state) { (void)state, check_file("b200"); }
static void results_of_b200_for_fp8(void **state) { (void)state, check_file("b200_mma_fp8"); }
static void results_of_mma_sim(void **state) { (void)state, check_file("mma_sim_nv"), check_file("mma_sim_amd"); }
static void results_of_mma_sim_with_scales(void **state) { (void)state, check_file("mma_sim_mx"); }

/* A file that is read but not understood would pass: with a neighbour's numerics most results are others. */
static void may_differ(void *user, const char *what, const units_vector *v, uint32_t expected, uint32_t got)
{
    (void)what, (void)v;
    *(int *)user += got != expected;
}

static bool ask_turing(units_batch *t, void *user)
{
    const trn_numerics n = parsed("nv_turing");
    (void)user;
    return units_matmul(t, &n, TRN_ISA_AUTO, true);
}

static int wrong_for_turing(const char *name)
{
    static units_batch t;
    int wrong = 0;
    with_threads(1);
    t.compared = may_differ;
    t.user = &wrong;
    assert_int_equal(units_read(TRN_GOLDEN_DIR, file_named(name), &t, ask_turing, NULL), file_named(name)->vectors);
    return wrong;
}

static void the_vectors_tell_devices_apart(void **state)
{
    (void)state;
    assert_true(wrong_for_turing("v100") >= 80);
    assert_int_equal(wrong_for_turing("a100"), 0); /* Turing's rules are Ampere's, for ordinary numbers */
    assert_true(wrong_for_turing("b200") >= 200);
}

/* ---- the probes of Fasi, Higham, Mikaitis and Pranesh ---- */

/* One element: `count` products of a and b onto c; `format` holds both exactly. */
static float probe(const char *numerics, trn_format format, int count, const float *a, const float *b, float c)
{
    const trn_numerics n = parsed(numerics);
    uint32_t x[MOST], w[MOST];
    float dst = c;
    with_threads(1);
    for (int i = 0; i < count; i++) {
        units_put(x, format, i, trn_encode(format, a[i], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
        units_put(w, format, i, trn_encode(format, b[i], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
    }
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, &dst, 1, 1);
    args.a = trn_tensor_2d(format, x, 1, count);
    args.b = trn_tensor_2d(format, w, count, 1);
    args.accumulate = true;
    args.numerics = &n;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    return dst;
}

static float probe_same(const char *numerics, trn_format format, int count, float a, float b, float c)
{
    float x[MOST], w[MOST];
    for (int i = 0; i < count; i++) x[i] = a, w[i] = b;
    return probe(numerics, format, count, x, w, c);
}

#define SAME_BITS(expected, got) assert_int_equal(cases_bits_of(expected), cases_bits_of(got))

/* What the authors ran: F16 on V100, T4 and A100, BF16 and TF32 on A100. */
static const struct {
    const char *numerics;
    trn_format format;
    float smallest; /* subnormal */
    int top;        /* 2^-top is one unit below 1 of the format, times 1/2 */
    bool extra_bit;
} unit[] = {
    { "nv_volta", TRN_F16, 0x1p-24f, 11, false },   { "nv_turing", TRN_F16, 0x1p-24f, 11, true },
    { "nv_ampere", TRN_F16, 0x1p-24f, 11, true },   { "nv_ampere", TRN_BF16, 0x1p-133f, 8, true },
    { "nv_ampere", TRN_TF32, 0x1p-136f, 11, true },
};
enum { UNITS = sizeof unit / sizeof unit[0] };

/* Section "Support for subnormal numbers": in the operands, in C, and in results. */
static void subnormals_are_numbers(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const char *n = unit[u].numerics;
        const trn_format f = unit[u].format;
        const bool narrow = f == TRN_F16;
        SAME_BITS(4.0f * unit[u].smallest, probe_same(n, f, 1, unit[u].smallest, 4.0f, 0.0f));
        SAME_BITS(0x1p-149f, probe_same(n, f, 1, 0.0f, 0.0f, 0x1p-149f));
        const float normal = narrow ? 0x1p-14f : 0x1p-126f;
        SAME_BITS(0.5f * normal, probe_same(n, f, 1, normal, 0.5f, 0.0f));
        SAME_BITS(0.5f * normal, probe_same(n, f, 1, normal, 1.0f, -0.5f * normal));
    }
}

/* Section "Accuracy of the dot products": a product of two 11-bit numbers is not rounded. */
static void products_are_exact(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const float below_one = 1.0f - ldexpf(1.0f, -unit[u].top);
        const float square = 1.0f - ldexpf(1.0f, 1 - unit[u].top) + ldexpf(1.0f, -2 * unit[u].top);
        SAME_BITS(square, probe_same(unit[u].numerics, unit[u].format, 1, below_one, below_one, 0.0f));
        SAME_BITS(4.0f * square, probe_same(unit[u].numerics, unit[u].format, 4, below_one, below_one, 0.0f));
    }
}

/* The four products and C are added at once, from the largest down: small ones vanish wherever the large one stands.
 * The second half of a unit is cut on V100; one unit more is kept on T4 and A100, where products of 2^-25 vanish. */
static void the_sum_starts_from_the_largest(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const float half = unit[u].extra_bit ? 0.5f : 1.0f, tiny = 0x1p-24f;
        SAME_BITS(1.0f, probe_same(unit[u].numerics, unit[u].format, 4, half, tiny, 1.0f));
        for (int large = 0; large < 4; large++) {
            float a[4], b[4];
            for (int i = 0; i < 4; i++) a[i] = i == large ? 1.0f : half, b[i] = i == large ? 1.0f : tiny;
            SAME_BITS(1.0f, probe(unit[u].numerics, unit[u].format, 4, a, b, half * tiny));
        }
    }
}

/* Section "Rounding modes": down for positive sums, up for negative ones. */
static void sums_are_cut_toward_zero(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const float one[2] = { 1.0f, 1.0f }, w[2] = { 2.0f * (float)sign, (0x1p-23f + 0x1p-24f) * (float)sign };
            SAME_BITS(2.0f * (float)sign, probe(unit[u].numerics, unit[u].format, 2, one, w, 0.0f));
        }
}

/* Section "Features of the accumulator", 1: how many bits the alignment keeps below binary32's last. */
static void bits_below_the_last(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const float got = probe_same(unit[u].numerics, unit[u].format, 1, 1.0f, 1.0f, -(1.0f - 0x1p-24f));
        SAME_BITS(unit[u].extra_bit ? 0x1p-24f : 0x1p-23f, got);
    }
    SAME_BITS(0x1p-25f, probe_same("nv_hopper", TRN_F16, 2, 0x1p-13f, 0x1p-13f, 0.0f)); /* both exact */
    const float x[3] = { 1.0f, -1.0f, 0x1p-13f }, w[3] = { 1.0f, 1.0f, 0x1p-12f };
    SAME_BITS(0.0f, probe("nv_ampere", TRN_F16, 3, x, w, 0.0f)); /* 2^-25 beside 1 */
    SAME_BITS(0x1p-25f, probe("nv_hopper", TRN_F16, 3, x, w, 0.0f));
}

/* 2 and 3: nothing is normalised between the additions. */
static void partial_sums_are_not_normalised(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const char *n = unit[u].numerics;
        const float one[2] = { 1.0f, 1.0f }, w[2] = { 1.0f, -0x1p-24f };
        SAME_BITS(1.0f + 0x1p-23f, probe_same(n, unit[u].format, 4, 1.0f, 0x1p-24f, 1.0f - 0x1p-24f));
        SAME_BITS(unit[u].extra_bit ? 0.0f : 0x1p-23f, probe(n, unit[u].format, 2, one, w, -1.0f + 0x1p-24f));
    }
}

/* 4: the sum of five numbers below 2 keeps its last bits until it is rounded: two bits for the carries. */
static void carries_have_room(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        const char *n = unit[u].numerics;
        const trn_format f = unit[u].format;
        const float one[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
        for (int small = 0; small < 4; small++) {
            float w[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
            w[small] = 0x1p-23f;
            SAME_BITS(4.0f + 0x1p-21f, probe(n, f, 4, one, w, 1.0f + 0x1p-22f + 0x1p-23f));
        }
        const float large[4] = { 1.0f, 1.5f, 1.75f, 1.875f };
        SAME_BITS(8.0f, probe(n, f, 4, one, large, 1.875f));
        SAME_BITS(5.0f, probe_same(n, f, 4, 1.0f, 1.0f, 1.0f + 0x1p-22f + 0x1p-23f));
        SAME_BITS(-5.0f, probe_same(n, f, 4, 1.0f, -1.0f, -1.0f - 0x1p-22f - 0x1p-23f));
    }
}

/* 5: a larger C can give a smaller sum, because more of the products are cut off. */
static void sums_are_not_monotonic(void **state)
{
    (void)state;
    SAME_BITS(1.0f + 0x1p-23f, probe_same("nv_volta", TRN_F16, 4, 1.0f, 0x1p-24f, 1.0f - 0x1p-24f));
    SAME_BITS(1.0f, probe_same("nv_volta", TRN_F16, 4, 1.0f, 0x1p-24f, 1.0f));
    for (int u = 1; u < UNITS; u++) {
        const float half[4] = { 0.5f, 0.5f, 0.5f, 0.5f }, w[4] = { 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-23f + 0x1p-24f };
        const float below = probe(unit[u].numerics, unit[u].format, 4, half, w, 1.0f - 0x1p-24f);
        const float one = probe(unit[u].numerics, unit[u].format, 4, half, w, 1.0f);
        assert_true(below > one);
    }
}

static void shuffle(float *a, float *b, int n, uint64_t *rng)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = cases_below(rng, i + 1);
        const float x = a[i], w = b[i];
        a[i] = a[j], b[i] = b[j];
        a[j] = x, b[j] = w;
    }
}

/* Within a block the order does not matter, and PSUM is one of its terms; chains have an order. */
static void a_block_has_no_order(void **state)
{
    (void)state;
    static const struct {
        const char *numerics;
        int block;
    } row[] = { { "nv_volta", 4 }, { "nv_ampere", 8 }, { "nv_hopper", 16 }, { "amd_cdna3", 8 }, { "trn2", 16 } };
    uint64_t rng = 7;
    int moved = 0;
    for (int round = 0; round < 2000; round++) {
        const int which = round % 5, n = row[which].block;
        float a[MOST] = { 0 }, b[MOST] = { 0 };
        for (int i = 0; i < n; i++) {
            a[i] = trn_f16_to_f32((uint16_t)(cases_u32(&rng) & 0xbbffu)); /* below 1 */
            b[i] = trn_f16_to_f32((uint16_t)(cases_u32(&rng) & 0xbbffu));
        }
        const float c = (float)(cases_below(&rng, 2001) - 1000) * 0x1.234568p-9f;
        const float before = probe(row[which].numerics, TRN_F16, n, a, b, c);
        shuffle(a, b, n, &rng);
        const float after = probe(row[which].numerics, TRN_F16, n, a, b, c);
        if (which < 4)
            SAME_BITS(before, after);
        else
            moved += cases_bits_of(before) != cases_bits_of(after);
    }
    assert_true(moved > 20);
}

/* ---- the twin ---- */

static twin_blocks blocks;
static void twin_reference(const twin_problem *p) { twin_aligned_matmul(p, &blocks); }

static twin_blocks blocks_of(const trn_numerics *n)
{
    const twin_blocks b = { (twin_blocks_kind)((int)n->accumulator - (int)TRN_ACCUMULATOR_ALIGNED),
                            n->aligned_bytes,
                            n->aligned_bits,
                            n->aligned_result_bits,
                            n->aligned_floor,
                            n->aligned_rounding == TRN_TOWARD_ZERO };
    return b;
}

/* Half are presets, with a field changed now and then, so that what devices do is looked at closely. */
static trn_numerics any_blocks(uint64_t *rng)
{
    trn_numerics n = trn_numerics_default(TRN_TRAINIUM3);
    int presets = 0;
    while (trn_numerics_preset(presets, NULL, NULL)) presets++;
    while (cases_one_in(rng, 2) && n.accumulator < TRN_ACCUMULATOR_ALIGNED)
        n = parsed(trn_numerics_preset(cases_below(rng, presets), NULL, NULL));
    if (n.accumulator < TRN_ACCUMULATOR_ALIGNED) {
        n.accumulator = (trn_accumulator)((int)TRN_ACCUMULATOR_ALIGNED + cases_below(rng, 4));
        n.aligned_bytes = 4 << cases_below(rng, 5);
        n.aligned_bits = cases_one_in(rng, 2) ? 22 + cases_below(rng, 5) : 10 + cases_below(rng, 31);
        if (cases_one_in(rng, 2)) n.aligned_result_bits = 8 + cases_below(rng, 17);
        if (cases_one_in(rng, 2))
            n.aligned_floor = cases_one_in(rng, 2) ? 1 + cases_below(rng, 300) : 120 + cases_below(rng, 20);
        if (cases_one_in(rng, 2)) n.aligned_rounding = TRN_TOWARD_ZERO;
    }
    if (cases_one_in(rng, 3)) n.k_tile = 1 + cases_below(rng, 128);
    n.tf32_input = (trn_tf32_input)cases_below(rng, 2);
    if (cases_one_in(rng, 5)) n.fp32_mode = TRN_FP32_R;
    if (cases_one_in(rng, 4)) n.flush_inputs = !n.flush_inputs;
    if (cases_one_in(rng, 4)) n.flush_products = !n.flush_products;
    if (cases_one_in(rng, 4)) n.flush_sums = !n.flush_sums;
    if (cases_one_in(rng, 6)) n.fp8_bias = 1 + cases_below(rng, 30);
    return n;
}

static void any_formats(problem *p, uint64_t *rng)
{
    problem_mode mode;
    trn_generation generation;
    static const int dst[4] = { TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16 };
    do {
        problem_legal_case(&mode, &generation, &p->twin.a_format, &p->twin.b_format, rng);
    } while (p->twin.a_format == TWIN_I8);
    p->twin.group = mode == PROBLEM_MX ? 4 : mode == PROBLEM_DOUBLE_ROW ? 2 : 1;
    p->twin.dst_format = dst[cases_below(rng, 4)];
    if (p->twin.group == 4) p->twin.k = 32 * (1 + cases_below(rng, 5));
    p->args.generation = generation;
}

static void blocks_equal_the_twin(void **state)
{
    (void)state;
    uint64_t rng = 31;
    const int rounds = cases_rounds(3000, 60000);
    for (int round = 0; round < rounds; round++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = 1 + cases_below(&rng, 3);
        p.twin.n = 1 + cases_below(&rng, 3);
        p.twin.k = cases_one_in(&rng, 6) ? 129 + cases_below(&rng, 140) : 1 + cases_below(&rng, 70);
        any_formats(&p, &rng);
        const trn_generation generation = p.args.generation;
        p.twin.accumulate = cases_one_in(&rng, 2);
        p.twin.rounding = cases_one_in(&rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(&rng, TWIN_MODES);
        p.twin.seed = cases_next(&rng);
        p.numerics = any_blocks(&rng);
        if (generation == TRN_TRAINIUM3 && cases_one_in(&rng, 4)) p.numerics.psum_format = TRN_BF16;
        blocks = blocks_of(&p.numerics);
        const bridge_layout layout[3] = { (bridge_layout)cases_below(&rng, BRIDGE_LAYOUTS),
                                          (bridge_layout)cases_below(&rng, BRIDGE_LAYOUTS),
                                          (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS) };
        problem_build(&p, layout, (bridge_values)(round % BRIDGE_VALUES), &rng);
        p.args.generation = generation;
        problem_expect(&p, twin_reference);
        problem_threads(cases_one_in(&rng, 10) ? 3 : 1);
        problem_ask(&p, TRN_ISA_AUTO);
        problem_free(&p);
    }
}

/* As one instruction, on every instruction set of the host. */
static void blocks_equal_the_twin_by_instruction(void **state)
{
    (void)state;
    uint64_t rng = 32;
    const int rounds = cases_rounds(600, 20000);
    for (int round = 0; round < rounds; round++) {
        instruction q;
        memset(&q, 0, sizeof q);
        do {
            problem_legal_case(&q.mode, &q.generation, &q.twin.a_format, &q.twin.b_format, &rng);
        } while (q.twin.a_format == TWIN_I8);
        const bool mx = q.mode == PROBLEM_MX;
        q.twin.m = mx ? 2 : 1 + cases_below(&rng, 3);
        q.twin.n = 1 + cases_below(&rng, 3);
        q.twin.k = mx ? 128 * (1 + cases_below(&rng, 2)) : (1 + cases_below(&rng, 60)) * instruction_group(q.mode);
        q.twin.dst_format = q.generation == TRN_TRAINIUM3 && cases_one_in(&rng, 2) ? TWIN_BF16 : TWIN_F32;
        q.twin.accumulate = cases_one_in(&rng, 2);
        q.numerics = any_blocks(&rng);
        blocks = blocks_of(&q.numerics);
        instruction_build(&q, (bridge_values)(round % BRIDGE_VALUES), &rng);
        instruction_expect(&q, twin_reference);
        instruction_ask_all(&q);
        instruction_free(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_v100),
        cmocka_unit_test(results_of_a100),
        cmocka_unit_test(results_of_a2),
        cmocka_unit_test(results_of_ada),
        cmocka_unit_test(results_of_h100),
        cmocka_unit_test(results_of_h200),
        cmocka_unit_test(results_of_b200),
        cmocka_unit_test(results_of_b200_for_fp8),
        cmocka_unit_test(results_of_mma_sim),
        cmocka_unit_test(results_of_mma_sim_with_scales),
        cmocka_unit_test(the_vectors_tell_devices_apart),
        cmocka_unit_test(subnormals_are_numbers),
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(the_sum_starts_from_the_largest),
        cmocka_unit_test(sums_are_cut_toward_zero),
        cmocka_unit_test(bits_below_the_last),
        cmocka_unit_test(partial_sums_are_not_normalised),
        cmocka_unit_test(carries_have_room),
        cmocka_unit_test(sums_are_not_monotonic),
        cmocka_unit_test(a_block_has_no_order),
        cmocka_unit_test(blocks_equal_the_twin),
        cmocka_unit_test(blocks_equal_the_twin_by_instruction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
