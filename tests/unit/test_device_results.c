/* test_device_results.c - what real Trainium devices printed must come out of trn_matmul with the default numerics.
 * SPDX-License-Identifier: MIT
 *
 * Source: aws-neuron/nki-samples, contributed/batch_invariance (README.md at commit 0f0b6f94, EXPLAINER.md at 714ae77a,
 * test_determinism.ipynb at 832a4276). The authors multiply the same linspace(-1, 1) operands twice, with K-tiles of 128
 * rows and of 64, and print the largest difference of the two results. The order of additions inside the array decides
 * that number, so it is a fingerprint of the order:
 *
 *     (a) Inf2, nc_matmul, FP32, K = 512, operands laid out [K, 256] and [K, 512], rows 0-127: 6.103516e-05 = 4 * 2^-16
 *     (b) Inf2, nl.matmul, the same, but operand A laid out [256, K] row by row:               4.577637e-05 = 3 * 2^-16
 *     (c) Trn2, nc_matmul, FP32, M = N = K = 512:                                              6.103515625e-05 = 4 * 2^-16
 *     (d) BF16 operands and results: 0 in the layouts of (a) and (c), 0.0078125 in that of (b)
 *
 * Four interleaved chains give 4, 3 to 3.25 and 4; one long chain gives 11, 5.25 and 12, which is why it was rejected as
 * the default. (b) moves by a quarter of a unit with the way linspace rounds its values: NumPy computes start + i*step in
 * double, PyTorch works from both ends in binary32. Both generators are tried. In (b), too, rows 0-127 are looked at.
 * (d) is no fingerprint (every order gives it), but it checks the layouts.
 *
 * Then what else has been printed or stated of the tensor engine of real devices; each test names its source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"

enum { K = 512, N = 512, M_AB = 256, ROWS_AB = 128 };

typedef void linspace(float *x, int64_t n);

/* NumPy: start + i * step in double, one rounding to binary32. */
static void linspace_numpy(float *x, int64_t n)
{
    const double step = 2.0 / (double)(n - 1);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(-1.0 + (double)i * step);
    x[n - 1] = 1.0f;
}

/* PyTorch: the step in binary32, the first half from the start, the second from the end. */
static void linspace_torch(float *x, int64_t n)
{
    const float step = 2.0f / (float)(n - 1);
    for (int64_t i = 0; i < n; i++) {
        volatile float product =
            step * (float)(i < n / 2 ? i : n - 1 - i); /* rounded by itself, whatever the compiler fuses */
        x[i] = i < n / 2 ? -1.0f + product : 1.0f - product;
    }
}

static linspace *const generators[2] = { linspace_numpy, linspace_torch };

/* One published set-up: how many rows A has, how it lies in memory, and which rows of the result are looked at. */
typedef struct setup {
    const char *name;
    int m, rows;
    bool k_first; /* A is [K, M] in memory; else [M, K] */
} setup;

static const setup setup_a = { "(a)", M_AB, ROWS_AB, true }, setup_b = { "(b)", M_AB, ROWS_AB, false },
                   setup_c = { "(c)", 512, 512, true };

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

/* linspace over all elements of the array, as floats or as BF16 codes. */
static trn_tensor operand(trn_format format, int rows, int columns, linspace *generate)
{
    const size_t n = (size_t)rows * (size_t)columns;
    float *x = (float *)zeroed(n, sizeof(float));
    generate(x, (int64_t)n);
    if (format == TRN_F32) return trn_tensor_2d(TRN_F32, x, rows, columns);
    uint16_t *code = (uint16_t *)zeroed(n, sizeof(uint16_t));
    for (size_t i = 0; i < n; i++) code[i] = trn_bf16_from_f32(x[i]);
    free(x);
    return trn_tensor_2d(TRN_BF16, code, rows, columns);
}

/* The largest difference between the results with K-tiles of 128 and of 64 rows. */
static double difference(const setup *s, trn_format format, linspace *generate, const char *preset)
{
    const trn_tensor a = operand(format, s->k_first ? K : s->m, s->k_first ? s->m : K, generate);
    const trn_tensor b = operand(format, K, N, generate);
    void *out[2];
    for (int i = 0; i < 2; i++) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
        trn_error error;
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        if (preset) assert_int_equal(TRN_OK, trn_numerics_parse(&n, preset));
        n.k_tile = i ? 64 : 128;
        out[i] = zeroed((size_t)s->rows * N, trn_format_bytes(format));
        args.dst = trn_tensor_2d(format, out[i], s->rows, N);
        args.a = s->k_first ? trn_tensor_transposed(a) : a;
        args.a.shape[0] = s->rows;
        if (!s->k_first) args.a.stride[0] = K, args.a.stride[1] = 1;
        args.b = b;
        args.numerics = i || preset ? &n : NULL; /* tiles of 128 and four chains are what no numerics at all means */
        args.error = &error;
        if (trn_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
    }
    double largest = 0;
    for (size_t e = 0; e < (size_t)s->rows * N; e++) {
        double x[2];
        for (int i = 0; i < 2; i++)
            x[i] = format == TRN_F32 ? (double)((const float *)out[i])[e]
                                     : (double)trn_bf16_to_f32(((const uint16_t *)out[i])[e]);
        if (fabs(x[0] - x[1]) > largest) largest = fabs(x[0] - x[1]);
    }
    free(a.data);
    free(b.data);
    free(out[0]);
    free(out[1]);
    return largest;
}

/* In units of 2^-16, between low and high. */
static void expect_units(const setup *s, linspace *generate, const char *preset, double low, double high)
{
    const double units = difference(s, TRN_F32, generate, preset) * 0x1p16;
    if (units < low || units > high)
        fail_msg("%s with %s: %g units of 2^-16, expected %g to %g", s->name, preset ? preset : "the defaults", units,
                 low, high);
}

/* The devices printed 4, 3 and 4 units; 3.25 in (b) is within what linspace's own rounding moves it. */
static void four_chains_reproduce_the_devices(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        expect_units(&setup_a, generators[g], NULL, 4, 4);
        expect_units(&setup_b, generators[g], NULL, 3, 3.25);
        expect_units(&setup_c, generators[g], NULL, 4, 4);
    }
    expect_units(&setup_b, linspace_numpy, NULL, 3, 3); /* with NumPy's values: exactly the printed 4.577637e-05 */
}

/* The model that the devices contradict, under its preset's name. */
static void a_single_chain_does_not(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        expect_units(&setup_a, generators[g], "single_chain", 11, 11);
        expect_units(&setup_b, generators[g], "single_chain", 5.25, 5.25);
        expect_units(&setup_c, generators[g], "single_chain", 12, 12);
    }
}

/* Nor do the other models of the record: two chains (7, 4, 6), blocks of rows (2, 2, 2), one exact sum (2, 1.75, 2). The
 * record's truncating chain (24, 8, 24) truncates the addition into PSUM as well; here that one stays nearest: 25, 9.25. */
static void nor_do_other_orders(void **state)
{
    (void)state;
    expect_units(&setup_a, linspace_torch, "chains=2", 7, 7);
    expect_units(&setup_b, linspace_torch, "chains=2", 4, 4);
    expect_units(&setup_c, linspace_torch, "chains=2", 6, 7);
    expect_units(&setup_a, linspace_torch, "chain_layout=blocked", 2, 2);
    if (cases_level() < 2) return; /* the slow orders */
    expect_units(&setup_a, linspace_torch, "exact", 2, 2);
    expect_units(&setup_b, linspace_torch, "exact", 1.75, 1.75);
    expect_units(&setup_a, linspace_torch, "single_chain,accumulator=toward_zero", 25, 25);
    expect_units(&setup_b, linspace_torch, "single_chain,accumulator=toward_zero", 9.25, 9.25);
}

static void bf16_operands(void **state)
{
    (void)state;
    for (int g = 0; g < 2; g++) {
        assert_true(difference(&setup_a, TRN_BF16, generators[g], NULL) == 0);
        assert_true(difference(&setup_b, TRN_BF16, generators[g], NULL) == 0.0078125);
        assert_true(difference(&setup_c, TRN_BF16, generators[g], NULL) == 0);
    }
}

/* ---- the size of an error: 128 x 128 x 128 in FP32 ----
 *
 * A third party's measurement on Trn1: operands torch.randn after torch.manual_seed(0), one tile, the largest error over
 * the largest result: 1.6e-7. That shows that all 24 bits of both operands take part, and that partial sums are spread
 * over several chains: one chain makes 4.0e-7, two 2.4e-7. */

enum { TWISTER = 624, SIDE = 128 };

typedef struct twister {
    uint32_t state[TWISTER];
    int at;
} twister;

/* Matsumoto and Nishimura's MT19937, which PyTorch's CPU generator is. */
static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (int i = 1; i < TWISTER; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + (uint32_t)i;
    t->at = TWISTER;
}

static uint32_t twister_next(twister *t)
{
    for (int i = 0; t->at == TWISTER && i < TWISTER; i++) {
        const uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % TWISTER] & 0x7fffffffu);
        t->state[i] = t->state[(i + 397) % TWISTER] ^ y >> 1 ^ (y & 1u ? 0x9908b0dfu : 0u);
    }
    if (t->at == TWISTER) t->at = 0;
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* torch.randn of a multiple of 16 numbers: uniform numbers of 24 bits, Box and Muller's pairs eight apart. */
static void twister_normal(twister *t, float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)(twister_next(t) & 0xffffffu) * 0x1p-24f;
    for (int i = 0; i < n; i += 16)
        for (int j = i; j < i + 8; j++) {
            const float radius = sqrtf(-2.0f * logf(1.0f - x[j])), angle = 6.28318530717958648f * x[j + 8];
            x[j] = radius * cosf(angle);
            x[j + 8] = radius * sinf(angle);
        }
}

static double error_of(const float *a, const float *b, const char *rules)
{
    static float out[SIDE * SIDE];
    double worst = 0, largest = 0;
    trn_numerics n;
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    assert_int_equal(TRN_OK, trn_numerics_parse(&n, rules));
    args.generation = TRN_TRAINIUM1;
    args.dst = trn_tensor_2d(TRN_F32, out, SIDE, SIDE);
    args.stationary = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)a, SIDE, SIDE); /* [K, M] */
    args.moving = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b, SIDE, SIDE);
    args.numerics = &n;
    assert_int_equal(TRN_OK, trn_nc_matmul(&args));
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++) sum += (double)a[k * SIDE + i] * (double)b[k * SIDE + j];
            worst = fmax(worst, fabs(sum - (double)out[i * SIDE + j]));
            largest = fmax(largest, fabs(sum));
        }
    return worst / largest;
}

static void expect_error(const float *a, const float *b, const char *rules, double low, double high)
{
    const double error = error_of(a, b, rules);
    if (error < low || error > high) fail_msg("\"%s\": %.3g, expected %.3g to %.3g", rules, error, low, high);
}

static void the_error_of_128_cubed(void **state)
{
    (void)state;
    static float a[SIDE * SIDE], b[SIDE * SIDE];
    static const float first[8] = { -1.1258f, -1.1524f, -0.2506f, -0.4339f, 0.8487f, 0.6920f, -0.3160f, -2.1152f };
    twister t;
    twister_seed(&t, 0);
    twister_normal(&t, a, SIDE * SIDE);
    twister_normal(&t, b, SIDE * SIDE);
    for (int i = 0; i < 8; i++) assert_true(fabsf(a[i] - first[i]) < 1e-4f); /* as PyTorch prints them */
    expect_error(a, b, "", 1.4e-7, 1.8e-7);
    expect_error(a, b, "fp32_mode=split", 1.4e-7, 1.8e-7);
    expect_error(a, b, "single_chain", 3.8e-7, 4.2e-7);
    expect_error(a, b, "chains=2", 2.2e-7, 2.6e-7);
    expect_error(a, b, "fp32_mode=fp32r", 5e-5, 1e-3); /* eleven bits of 24 */
}

/* ---- E4M3 above 240 ----
 *
 * neuronx-distributed, quantization/README_rescaling_fp8_for_neuron.md: weights made for 448 are rescaled by 240/448,
 * because codes beyond 240 turn into NaN; a third party's porting guide for Trn2 has it by code: with seven low bits of
 * 78 and above, a byte comes back as infinity or NaN, and 77 is the largest that does not. */
static void e4m3_ends_at_240(void **state)
{
    (void)state;
    static const uint32_t expected[3] = { 0x43700000, 0x7f800000, 0x7fc00000 };
    for (uint32_t i = 0; i < 3; i++) {
        unsigned char code = (unsigned char)(0x77 + i), one = 0x38;
        float out = 0;
        trn_nc_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = TRN_TRAINIUM2;
        args.dst = trn_tensor_2d(TRN_F32, &out, 1, 1);
        args.stationary = trn_tensor_2d(TRN_F8_E4M3, &code, 1, 1);
        args.moving = trn_tensor_2d(TRN_F8_E4M3, &one, 1, 1);
        assert_int_equal(TRN_OK, trn_nc_matmul(&args));
        CASES_EQUAL(expected[i], cases_bits_of(out), "code %02x", code);
    }
}

/* ---- transposes ----
 *
 * Third parties: an identity matmul on Trn1 returns finite FP32 bit for bit; the transpose mode of Trn2 returns BF16 and
 * FP32 with exponents of +-100 bit for bit. Trainium2 guide for NKI, on the transpose mode: 8-bit data arrives in 16-bit
 * elements, the upper byte zero. (test_transpose.c has every code.) */
static void transposes_are_exact(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        trn_format data, dst;
    } known[] = { { TRN_TRAINIUM1, TRN_F32, TRN_F32 },
                  { TRN_TRAINIUM2, TRN_F32, TRN_F32 },
                  { TRN_TRAINIUM2, TRN_BF16, TRN_BF16 },
                  { TRN_TRAINIUM2, TRN_F8_E4M3, TRN_U16 } };
    static unsigned char data[SIDE * SIDE * 4], out[SIDE * SIDE * 4];
    uint64_t rng = 151;
    for (int i = 0; i < 4; i++) {
        const size_t size = trn_format_bytes(known[i].data), to = trn_format_bytes(known[i].dst);
        for (size_t e = 0; e < SIDE * SIDE; e++) {
            const uint32_t u = (cases_u32(&rng) & 0x807fffffu) | (uint32_t)(27 + cases_below(&rng, 201)) << 23;
            memcpy(data + e * size, (const char *)&u + (4 - size), size); /* the upper bytes: BF16 is the upper half */
        }
        trn_nc_transpose_args args;
        memset(&args, 0, sizeof args);
        args.generation = known[i].generation;
        args.data = trn_tensor_2d(known[i].data, data, SIDE, SIDE);
        args.dst = trn_tensor_2d(known[i].dst, out, SIDE, SIDE);
        assert_int_equal(TRN_OK, trn_nc_transpose(&args));
        for (size_t p = 0; p < SIDE; p++)
            for (size_t f = 0; f < SIDE; f++) {
                uint32_t code = 0, got = 0;
                memcpy(&code, data + (p * SIDE + f) * size, size);
                memcpy(&got, out + (f * SIDE + p) * to, to);
                CASES_EQUAL(code, got, "case %d, [%d, %d]", i, (int)p, (int)f);
            }
    }
}

/* ---- 1024 + 2048 times 0.5 in FP16 ----
 *
 * Neuron's guide to rounding modes: to nearest even the sum stays at 1024; one stochastic run printed 2056, the exact sum
 * being 2048. (test_stochastic.c has the distribution of casts; here the sum is the tensor engine's own.) */
static void a_sum_in_fp16(void **state)
{
    (void)state;
    enum { RUNS = 256, STEPS = 2048 };
    for (int mode = 0; mode < 2; mode++) {
        static uint16_t sum[RUNS], half[RUNS];
        uint16_t one = 0x3c00;
        double total = 0, squares = 0;
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        for (int i = 0; i < RUNS; i++) sum[i] = 0x6400, half[i] = 0x3800;
        args.dst = trn_tensor_2d(TRN_F16, sum, 1, RUNS);
        args.a = trn_tensor_2d(TRN_F16, &one, 1, 1);
        args.b = trn_tensor_2d(TRN_F16, half, 1, RUNS);
        args.accumulate = true;
        args.rounding = mode ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
        args.seed = 20;
        for (int step = 0; step < STEPS; step++) {
            args.stream = (uint64_t)step;
            assert_int_equal(TRN_OK, trn_matmul(&args));
        }
        for (int i = 0; i < RUNS; i++) {
            const double x = (double)trn_f16_to_f32(sum[i]);
            if (!mode) assert_true(x == 1024);
            total += x;
            squares += (x - 2048) * (x - 2048);
        }
        if (!mode) continue;
        const double deviation = sqrt(squares / RUNS); /* about 22.6 */
        assert_true(fabs(total / RUNS - 2048) < 6);
        assert_true(deviation > 18 && deviation < 28);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_chains_reproduce_the_devices),
        cmocka_unit_test(a_single_chain_does_not),
        cmocka_unit_test(nor_do_other_orders),
        cmocka_unit_test(bf16_operands),
        cmocka_unit_test(the_error_of_128_cubed),
        cmocka_unit_test(e4m3_ends_at_240),
        cmocka_unit_test(transposes_are_exact),
        cmocka_unit_test(a_sum_in_fp16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
