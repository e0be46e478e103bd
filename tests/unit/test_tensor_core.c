/* test_tensor_core.c - with another maker's numerics, trnmath returns what that maker's matrix units returned.
 * SPDX-License-Identifier: MIT
 *
 * Nobody has published what Trainium's array returns bit by bit; for NVIDIA's tensor cores and AMD's matrix cores it has
 * been done. The same tiles, decoding, PSUM and casts serve both, so they are held against that hardware here:
 *     tests/golden/tensor_core_<device>.txt      results of devices (F. A. Khattak and M. Mikaitis, doi 10.1145/3830409)
 *     tests/golden/tensor_core_mma_sim_*.txt     results of a model that its authors verified on devices (arXiv 2511.10909)
 *     the probes below                           M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA
 *                                                tensor cores", PeerJ Computer Science 7:e330 (2021), sections on V100, T4, A100
 * and against a twin in exact numbers, which knows all fields at all values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/host.h"
#include "twin/instruction.h"
#include "twin/twin_aligned.h"

static trn_numerics parsed(const char *text)
{
    trn_numerics n;
    if (trn_numerics_parse(&n, text) != TRN_OK) fail_msg("\"%s\" is refused", text);
    return n;
}

/* ---- vectors from files ---- */

enum { LINE = 1024, BATCH = 4, MOST = 16, DEEPEST = 128 };

typedef struct vector {
    char preset[32], format[2][24], code[2][LINE];
    unsigned c, d;
} vector;

static bool next_vector(FILE *file, vector *v)
{
    char line[LINE];
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        const int found = sscanf(line, "%31s %23s %23s %1023s %1023s %x %x", v->preset, v->format[0], v->format[1],
                                 v->code[0], v->code[1], &v->c, &v->d);
        if (found != 7) fail_msg("not a vector: %s", line);
        return true;
    }
    return false;
}

static bool of_one_kind(const vector *v, const vector *w)
{
    return strcmp(v->preset, w->preset) == 0 && strcmp(v->format[0], w->format[0]) == 0 &&
           strcmp(v->format[1], w->format[1]) == 0 && strlen(v->code[0]) == strlen(w->code[0]);
}

/* Up to BATCH vectors of one kind: row i of a and column i of b are vector i, so that the diagonal of the product holds
 * the answers. */
typedef struct batch {
    vector v[BATCH];
    int count, k;
    trn_format format[2];
    uint32_t a[BATCH * DEEPEST], b[DEEPEST * BATCH], a_down[DEEPEST * BATCH]; /* memory for elements of any size */
    float dst[BATCH * BATCH];
} batch;

static void put_code(uint32_t *memory, trn_format format, int at, uint32_t code)
{
    const size_t bytes = trn_format_bytes(format);
    memcpy((unsigned char *)memory + (size_t)at * bytes, &code, bytes); /* little endian */
}

static uint32_t code_at(const vector *v, int which, int k, size_t bytes)
{
    char digits[9] = "";
    memcpy(digits, v->code[which] + (size_t)k * 2 * bytes, 2 * bytes);
    return (uint32_t)strtoul(digits, NULL, 16);
}

static void batch_fill(batch *t)
{
    const int n = t->count;
    for (int which = 0; which < 2; which++) {
        t->format[which] = trn_format_from_name(t->v[0].format[which]);
        if (!t->format[which]) fail_msg("no format: %s", t->v[0].format[which]);
    }
    t->k = (int)(strlen(t->v[0].code[0]) / 2 / trn_format_bytes(t->format[0]));
    assert_true(t->k <= DEEPEST);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t->k; k++) {
            const uint32_t x = code_at(&t->v[i], 0, k, trn_format_bytes(t->format[0]));
            put_code(t->a, t->format[0], i * t->k + k, x);
            put_code(t->a_down, t->format[0], k * n + i, x);
            put_code(t->b, t->format[1], k * n + i, code_at(&t->v[i], 1, k, trn_format_bytes(t->format[1])));
        }
}

static void batch_compare(const batch *t, const char *what, const uint32_t *expected)
{
    for (int i = 0; i < t->count; i++) {
        const uint32_t got = cases_bits_of(t->dst[i * t->count + i]);
        if (got == expected[i]) continue;
        fail_msg("%s: %s %s %s %s %s %08x: expected %08x, got %08x", what, t->v[i].preset, t->v[i].format[0],
                 t->v[i].format[1], t->v[i].code[0], t->v[i].code[1], t->v[i].c, (unsigned)expected[i], (unsigned)got);
    }
}

static void batch_start(batch *t, bool accumulate)
{
    for (int i = 0; i < t->count * t->count; i++) t->dst[i] = 1.0f;
    for (int i = 0; accumulate && i < t->count; i++) t->dst[i * t->count + i] = cases_float_of(t->v[i].c);
}

static void batch_ask(batch *t, const trn_numerics *n, bool accumulate, const uint32_t *expected)
{
    const int m = t->count;
    trn_error error = { 0 };
    trn_nc_matmul_args nc;
    memset(&nc, 0, sizeof nc);
    nc.generation = TRN_TRAINIUM3;
    nc.dst = trn_tensor_2d(TRN_F32, t->dst, m, m);
    nc.stationary = trn_tensor_2d(t->format[0], t->a_down, t->k, m);
    nc.moving = trn_tensor_2d(t->format[1], t->b, t->k, m);
    nc.accumulate = accumulate;
    nc.numerics = n;
    nc.error = &error;
    batch_start(t, accumulate);
    if (trn_nc_matmul(&nc) != TRN_OK) fail_msg("nc_matmul: %s", error.text);
    batch_compare(t, "nc_matmul", expected);

    trn_matmul_args any;
    memset(&any, 0, sizeof any);
    any.generation = TRN_TRAINIUM3;
    any.dst = nc.dst;
    any.a = trn_tensor_2d(t->format[0], t->a, m, t->k);
    any.b = nc.moving;
    any.accumulate = accumulate;
    any.numerics = n;
    any.error = &error;
    for (unsigned i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        any.isa = all_isas[i];
        batch_start(t, accumulate);
        if (trn_matmul(&any) != TRN_OK) fail_msg("matmul: %s", error.text);
        batch_compare(t, "matmul", expected);
    }
}

static void batch_check(batch *t)
{
    const trn_numerics n = parsed(t->v[0].preset);
    uint32_t expected[BATCH] = { 0 };
    bool fresh = true;
    batch_fill(t);
    for (int i = 0; i < t->count; i++) {
        expected[i] = t->v[i].d;
        fresh = fresh && t->v[i].c == 0;
    }
    batch_ask(t, &n, true, expected);
    if (fresh) batch_ask(t, &n, false, expected);
}

typedef void batch_fn(batch *t);

static void check_file(const char *name, int lines, batch_fn *check)
{
    static batch t;
    static vector v;
    char path[512];
    snprintf(path, sizeof path, "%s/tensor_core_%s.txt", TRN_GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s cannot be read", path);
    with_threads(1); /* tiny products: teams of threads would cost more than the work */
    t.count = 0;
    int seen = 0;
    for (; next_vector(file, &v); seen++) {
        if (t.count && (t.count == BATCH || !of_one_kind(&t.v[0], &v))) {
            check(&t);
            t.count = 0;
        }
        t.v[t.count++] = v;
    }
    fclose(file);
    if (t.count) check(&t);
    assert_int_equal(lines, seen);
}

static void results_of_v100(void **state) { (void)state, check_file("v100", 100, batch_check); }
static void results_of_a100(void **state) { (void)state, check_file("a100", 300, batch_check); }
static void results_of_a2(void **state) { (void)state, check_file("a2", 300, batch_check); }
static void results_of_ada(void **state) { (void)state, check_file("ada", 500, batch_check); }
static void results_of_h100(void **state) { (void)state, check_file("h100", 500, batch_check); }
static void results_of_h200(void **state) { (void)state, check_file("h200", 300, batch_check); }
static void results_of_b200(void **state) { (void)state, check_file("b200", 300, batch_check); }

/* FP8 through mma.sync on a B200: F16 tensor cores from zero, then C is added (the file says how that was found). */
static void batch_check_mma_fp8(batch *t)
{
    const trn_numerics n = parsed(t->v[0].preset);
    const size_t most = BATCH * DEEPEST;
    uint32_t expected[BATCH] = { 0 };
    batch_fill(t);
    assert_int_equal(1, trn_format_bytes(t->format[0]));
    uint16_t half[3][BATCH * DEEPEST];
    uint32_t *const memory[3] = { t->a, t->b, t->a_down };
    for (int which = 0; which < 3; which++) {
        const unsigned char *code = (const unsigned char *)memory[which];
        for (size_t i = 0; i < most; i++) {
            const float x = trn_decode(t->format[which == 1], code[i]);
            half[which][i] = trn_f16_from_f32(x);
        }
        memcpy(memory[which], half[which], sizeof half[which]);
    }
    t->format[0] = t->format[1] = TRN_F16;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, t->dst, t->count, t->count);
    args.a = trn_tensor_2d(TRN_F16, t->a, t->count, t->k);
    args.b = trn_tensor_2d(TRN_F16, t->b, t->k, t->count);
    args.numerics = &n;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    for (int i = 0; i < t->count; i++) {
        t->dst[i * t->count + i] += cases_float_of(t->v[i].c);
        expected[i] = t->v[i].d;
    }
    batch_compare(t, "mma.sync", expected);
}

static void results_of_b200_for_fp8(void **state) { (void)state, check_file("b200_mma_fp8", 200, batch_check_mma_fp8); }

static void results_of_mma_sim(void **state)
{
    (void)state;
    check_file("mma_sim_nv", 648, batch_check);
    check_file("mma_sim_amd", 634, batch_check);
}

/* Block scales: two blocks of 32, each with a scale of its own. */
static void results_of_mma_sim_with_scales(void **state)
{
    (void)state;
    static vector v;
    char line[LINE], scale[2][8];
    FILE *file = fopen(TRN_GOLDEN_DIR "/tensor_core_mma_sim_mx.txt", "r");
    if (!file) fail_msg("no vectors");
    int seen = 0;
    while (fgets(line, sizeof line, file)) {
        uint8_t a[64], b[64], exponent[2][2];
        float dst;
        if (line[0] == '#') continue;
        const int found = sscanf(line, "%31s %23s %23s %1023s %1023s %7s %7s %x %x", v.preset, v.format[0], v.format[1],
                                 v.code[0], v.code[1], scale[0], scale[1], &v.c, &v.d);
        assert_int_equal(9, found);
        for (int k = 0; k < 64; k++) a[k] = (uint8_t)code_at(&v, 0, k, 1), b[k] = (uint8_t)code_at(&v, 1, k, 1);
        for (int which = 0; which < 2; which++) {
            const unsigned long both = strtoul(scale[which], NULL, 16);
            exponent[which][0] = (uint8_t)(both >> 8);
            exponent[which][1] = (uint8_t)both;
        }
        const trn_numerics n = parsed(v.preset);
        trn_error error = { 0 };
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.dst = trn_tensor_2d(TRN_F32, &dst, 1, 1);
        args.a = trn_tensor_2d(trn_format_from_name(v.format[0]), a, 1, 64);
        args.b = trn_tensor_2d(trn_format_from_name(v.format[1]), b, 64, 1);
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, exponent[0], 1, 2);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, exponent[1], 1, 2);
        args.accumulate = true;
        args.numerics = &n;
        args.error = &error;
        dst = cases_float_of(v.c);
        if (trn_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
        CASES_EQUAL(v.d, cases_bits_of(dst), "%s", line);
        seen++;
    }
    fclose(file);
    assert_int_equal(108, seen);
}

/* A file that is read but not understood would pass: with a neighbour's numerics most results are others. */
static int wrong;

static void batch_count_wrong(batch *t)
{
    const trn_numerics n = parsed("nv_turing");
    batch_fill(t);
    batch_start(t, true);
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, t->dst, t->count, t->count);
    args.a = trn_tensor_2d(t->format[0], t->a, t->count, t->k);
    args.b = trn_tensor_2d(t->format[1], t->b, t->k, t->count);
    args.accumulate = true;
    args.numerics = &n;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    for (int i = 0; i < t->count; i++) wrong += cases_bits_of(t->dst[i * t->count + i]) != t->v[i].d;
}

static void the_vectors_tell_devices_apart(void **state)
{
    (void)state;
    wrong = 0;
    check_file("v100", 100, batch_count_wrong);
    assert_true(wrong >= 80);
    wrong = 0;
    check_file("a100", 300, batch_count_wrong); /* Turing's rules are Ampere's, for ordinary numbers */
    assert_int_equal(0, wrong);
    wrong = 0;
    check_file("b200", 300, batch_count_wrong);
    assert_true(wrong >= 200);
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
        put_code(x, format, i, trn_encode(format, a[i], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
        put_code(w, format, i, trn_encode(format, b[i], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0));
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
    { "nv_volta", TRN_F16, 0x1p-24f, 11, false }, { "nv_turing", TRN_F16, 0x1p-24f, 11, true },
    { "nv_ampere", TRN_F16, 0x1p-24f, 11, true }, { "nv_ampere", TRN_BF16, 0x1p-133f, 8, true },
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

/* The four products and C are added at once, from the largest down: small ones vanish wherever the large one stands. The
 * second half of a unit is cut on V100; one unit more is kept on T4 and A100, where products of 2^-25 vanish. */
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
        const float half[4] = { 0.5f, 0.5f, 0.5f, 0.5f },
                    w[4] = { 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-23f + 0x1p-24f };
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
        if (which < 4) SAME_BITS(before, after);
        else moved += cases_bits_of(before) != cases_bits_of(after);
    }
    assert_true(moved > 20);
}

/* ---- the twin ---- */

static twin_blocks blocks;
static void twin_reference(const twin_problem *p) { twin_aligned_matmul(p, &blocks); }

static twin_blocks blocks_of(const trn_numerics *n)
{
    const twin_blocks b = { (twin_blocks_kind)((int)n->accumulator - (int)TRN_ACCUMULATOR_ALIGNED), n->aligned_bytes,
                            n->aligned_bits, n->aligned_result_bits, n->aligned_floor, n->aligned_rounding == TRN_TOWARD_ZERO };
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
        if (cases_one_in(rng, 2)) n.aligned_floor = cases_one_in(rng, 2) ? 1 + cases_below(rng, 300) : 120 + cases_below(rng, 20);
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
    do
        problem_legal_case(&mode, &generation, &p->twin.a_format, &p->twin.b_format, rng);
    while (p->twin.a_format == TWIN_I8);
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
        do
            problem_legal_case(&q.mode, &q.generation, &q.twin.a_format, &q.twin.b_format, &rng);
        while (q.twin.a_format == TWIN_I8);
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
