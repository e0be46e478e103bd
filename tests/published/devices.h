/* devices.h - what real Trainium and Inferentia devices printed of products, and the same products here.
 * SPDX-License-Identifier: MIT
 *
 * Source: aws-neuron/nki-samples, contributed/batch_invariance (README.md at commit 0f0b6f94, EXPLAINER.md at 714ae77a,
 * test_determinism.ipynb at 832a4276). The authors multiply the same linspace(-1, 1) operands twice, with K-tiles of
 * 128 rows and of 64, and print the largest difference of the two results. The order of additions inside the array
 * decides that number, so it is a fingerprint of the order:
 *
 *     (a) Inf2, nc_matmul, FP32, K = 512, operands [K, 256] and [K, 512], rows 0-127: 6.103516e-05 = 4 * 2^-16
 *     (b) Inf2, nl.matmul, the same, but operand A laid out [256, K] row by row:      4.577637e-05 = 3 * 2^-16
 *     (c) Trn2, nc_matmul, FP32, M = N = K = 512:                                     6.103515625e-05 = 4 * 2^-16
 *     (d) BF16 operands and results: 0 in the layouts of (a) and (c), 0.0078125 in that of (b)
 *
 * Four interleaved chains give 4, 3 to 3.25 and 4; one long chain gives 11, 5.25 and 12, which is why it was rejected
 * as the default. (b) moves by a quarter of a unit with the way linspace rounds its values: NumPy computes start +
 * i*step in double, PyTorch works from both ends in binary32. Both generators are tried. In (b), too, rows 0-127 are
 * looked at.
 * (d) is no fingerprint (every order gives it), but it checks the layouts.
 */
#ifndef PUBLISHED_DEVICES_H
#define PUBLISHED_DEVICES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"

enum { KTILE_K = 512, KTILE_N = 512, KTILE_M = 256, KTILE_ROWS = 128 };

typedef void ktile_linspace(float *x, int64_t n);

/* NumPy: start + i * step in double, one rounding to binary32. */
static inline void linspace_numpy(float *x, int64_t n)
{
    const double step = 2.0 / (double)(n - 1);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(-1.0 + (double)i * step);
    x[n - 1] = 1.0f;
}

/* PyTorch: the step in binary32, the first half from the start, the second from the end. */
static inline void linspace_torch(float *x, int64_t n)
{
    const float step = 2.0f / (float)(n - 1);
    for (int64_t i = 0; i < n; i++) {
        volatile float product =
            step * (float)(i < n / 2 ? i : n - 1 - i); /* rounded by itself, whatever the compiler fuses */
        x[i] = i < n / 2 ? -1.0f + product : 1.0f - product;
    }
}

static ktile_linspace *const ktile_generators[2] = { linspace_numpy, linspace_torch };

/* One published set-up: how many rows A has, how it lies in memory, and which rows of the result are looked at. */
typedef struct ktile_setup {
    const char *name;
    int m, rows;
    bool k_first; /* A is [K, M] in memory; else [M, K] */
} ktile_setup;

static const ktile_setup ktile_a = { "(a)", KTILE_M, KTILE_ROWS, true },
                         ktile_b = { "(b)", KTILE_M, KTILE_ROWS, false }, ktile_c = { "(c)", 512, 512, true };

static inline void *ktile_zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) abort();
    return memory;
}

/* linspace over all elements of the array, as floats or as BF16 codes. */
static inline trn_tensor ktile_operand(trn_format format, int rows, int columns, ktile_linspace *generate)
{
    const size_t n = (size_t)rows * (size_t)columns;
    float *x = (float *)ktile_zeroed(n, sizeof(float));
    generate(x, (int64_t)n);
    if (format == TRN_F32) return trn_tensor_2d(TRN_F32, x, rows, columns);
    uint16_t *code = (uint16_t *)ktile_zeroed(n, sizeof(uint16_t));
    for (size_t i = 0; i < n; i++) code[i] = trn_bf16_from_f32(x[i]);
    free(x);
    return trn_tensor_2d(TRN_BF16, code, rows, columns);
}

/* The largest difference between the results with K-tiles of 128 and of 64 rows; preset NULL: the default numerics.
 * NaN after a refusal. */
static inline double ktile_difference(const ktile_setup *s, trn_format format, ktile_linspace *generate,
                                      const char *preset)
{
    const trn_tensor a = ktile_operand(format, s->k_first ? KTILE_K : s->m, s->k_first ? s->m : KTILE_K, generate);
    const trn_tensor b = ktile_operand(format, KTILE_K, KTILE_N, generate);
    void *out[2];
    double largest = 0;
    for (int i = 0; i < 2; i++) {
        trn_numerics n = trn_numerics_default(TRN_TRAINIUM2);
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        bool good = !preset || trn_numerics_parse(&n, preset) == TRN_OK;
        n.k_tile = i ? 64 : 128;
        out[i] = ktile_zeroed((size_t)s->rows * KTILE_N, trn_format_bytes(format));
        args.dst = trn_tensor_2d(format, out[i], s->rows, KTILE_N);
        args.a = s->k_first ? trn_tensor_transposed(a) : a;
        args.a.shape[0] = s->rows;
        if (!s->k_first) args.a.stride[0] = KTILE_K, args.a.stride[1] = 1;
        args.b = b;
        args.numerics = i || preset ? &n : NULL; /* tiles of 128 and four chains are what no numerics at all means */
        good = good && trn_matmul(&args) == TRN_OK;
        if (!good) largest = (double)NAN;
    }
    for (size_t e = 0; e < (size_t)s->rows * KTILE_N; e++) {
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

/* ---- the size of an error: 128 x 128 x 128 in FP32 ----
 *
 * A third party's measurement on Trn1: operands torch.randn after torch.manual_seed(0), one tile, the largest error
 * over the largest result: 1.6e-7. That shows that all 24 bits of both operands take part, and that partial sums are
 * spread over several chains: one chain makes 4.0e-7, two 2.4e-7. */

enum { TWISTER = 624, RANDN_SIDE = 128 };

typedef struct twister {
    uint32_t state[TWISTER];
    int at;
} twister;

/* Matsumoto and Nishimura's MT19937, which PyTorch's CPU generator is. */
static inline void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (int i = 1; i < TWISTER; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + (uint32_t)i;
    t->at = TWISTER;
}

static inline uint32_t twister_next(twister *t)
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
static inline void twister_normal(twister *t, float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)(twister_next(t) & 0xffffffu) * 0x1p-24f;
    for (int i = 0; i < n; i += 16)
        for (int j = i; j < i + 8; j++) {
            const float radius = sqrtf(-2.0f * logf(1.0f - x[j])), angle = 6.28318530717958648f * x[j + 8];
            x[j] = radius * cosf(angle);
            x[j + 8] = radius * sinf(angle);
        }
}

/* The largest error over the largest result of one instruction; NaN after a refusal. */
static inline double randn_error(const float *a, const float *b, const char *rules)
{
    static float out[RANDN_SIDE * RANDN_SIDE];
    double worst = 0, largest = 0;
    trn_numerics n;
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    if (trn_numerics_parse(&n, rules) != TRN_OK) return (double)NAN;
    args.generation = TRN_TRAINIUM1;
    args.dst = trn_tensor_2d(TRN_F32, out, RANDN_SIDE, RANDN_SIDE);
    args.stationary = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)a, RANDN_SIDE, RANDN_SIDE); /* [K, M] */
    args.moving = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b, RANDN_SIDE, RANDN_SIDE);
    args.numerics = &n;
    if (trn_nc_matmul(&args) != TRN_OK) return (double)NAN;
    for (int i = 0; i < RANDN_SIDE; i++)
        for (int j = 0; j < RANDN_SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < RANDN_SIDE; k++) sum += (double)a[k * RANDN_SIDE + i] * (double)b[k * RANDN_SIDE + j];
            worst = fmax(worst, fabs(sum - (double)out[i * RANDN_SIDE + j]));
            largest = fmax(largest, fabs(sum));
        }
    return worst / largest;
}

/* ---- E4M3 above 240 ----
 *
 * neuronx-distributed, quantization/README_rescaling_fp8_for_neuron.md: weights made for 448 are rescaled by 240/448,
 * because codes beyond 240 turn into NaN; a third party's porting guide for Trn2 has it by code: with seven low bits of
 * 78 and above, a byte comes back as infinity or NaN, and 77 is the largest that does not. */
static const struct {
    uint8_t code;
    uint32_t bits; /* of its product with 1 */
} e4m3_on_trn2[] = { { 0x77, 0x43700000 }, { 0x78, 0x7f800000 }, { 0x79, 0x7fc00000 } };
enum { E4M3_ON_TRN2 = sizeof e4m3_on_trn2 / sizeof e4m3_on_trn2[0] };

/* NaN of another sign after a refusal. */
static inline uint32_t e4m3_times_one(uint8_t code)
{
    unsigned char one = 0x38;
    uint32_t bits;
    float out = 0;
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = TRN_TRAINIUM2;
    args.dst = trn_tensor_2d(TRN_F32, &out, 1, 1);
    args.stationary = trn_tensor_2d(TRN_F8_E4M3, &code, 1, 1);
    args.moving = trn_tensor_2d(TRN_F8_E4M3, &one, 1, 1);
    if (trn_nc_matmul(&args) != TRN_OK) return 0xffc00000u;
    memcpy(&bits, &out, sizeof bits);
    return bits;
}

/* ---- transposes ----
 *
 * Third parties: an identity matmul on Trn1 returns finite FP32 bit for bit; the transpose mode of Trn2 returns BF16
 * and FP32 with exponents of +-100 bit for bit. Trainium2 guide for NKI, on the transpose mode: 8-bit data arrives in
 * 16-bit elements, the upper byte zero. (test_transpose.c has every code.) */
static const struct device_transpose {
    const char *name;
    trn_generation generation;
    trn_format data, dst;
} device_transposes[] = { { "trn1.float32", TRN_TRAINIUM1, TRN_F32, TRN_F32 },
                          { "trn2.float32", TRN_TRAINIUM2, TRN_F32, TRN_F32 },
                          { "trn2.bfloat16", TRN_TRAINIUM2, TRN_BF16, TRN_BF16 },
                          { "trn2.float8_e4m3", TRN_TRAINIUM2, TRN_F8_E4M3, TRN_U16 } };
enum { DEVICE_TRANSPOSES = sizeof device_transposes / sizeof device_transposes[0] };

/* How many of 128 x 128 elements are another code afterwards; -1 after a refusal. */
static inline int device_transpose_wrong(const struct device_transpose *d)
{
    static unsigned char data[RANDN_SIDE * RANDN_SIDE * 4], out[RANDN_SIDE * RANDN_SIDE * 4];
    const size_t size = trn_format_bytes(d->data), to = trn_format_bytes(d->dst), side = RANDN_SIDE;
    uint64_t rng = 151;
    int wrong = 0;
    for (size_t e = 0; e < side * side; e++) {
        const uint32_t u = (cases_u32(&rng) & 0x807fffffu) | (uint32_t)(27 + cases_below(&rng, 201)) << 23;
        memcpy(data + e * size, (const char *)&u + (4 - size), size); /* the upper bytes: BF16 is the upper half */
    }
    trn_nc_transpose_args args;
    memset(&args, 0, sizeof args);
    args.generation = d->generation;
    args.data = trn_tensor_2d(d->data, data, RANDN_SIDE, RANDN_SIDE);
    args.dst = trn_tensor_2d(d->dst, out, RANDN_SIDE, RANDN_SIDE);
    if (trn_nc_transpose(&args) != TRN_OK) return -1;
    for (size_t p = 0; p < side; p++)
        for (size_t f = 0; f < side; f++) {
            uint32_t code = 0, got = 0;
            memcpy(&code, data + (p * side + f) * size, size);
            memcpy(&got, out + (f * side + p) * to, to);
            wrong += code != got;
        }
    return wrong;
}

/* ---- 1024 + 2048 times 0.5 in FP16 ----
 *
 * Neuron's guide to rounding modes: to nearest even the sum stays at 1024; one stochastic run printed 2056, the exact
 * sum being 2048. (published/sums.h has the casts; here the sum is the tensor engine's own.) False after a refusal. */
static inline bool device_halves(trn_rounding rounding, uint16_t *sum, int runs)
{
    uint16_t one = 0x3c00, half = 0x3800;
    bool good = true;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    for (int i = 0; i < runs; i++) sum[i] = 0x6400;
    args.dst = trn_tensor_2d(TRN_F16, sum, 1, runs);
    args.a = trn_tensor_2d(TRN_F16, &one, 1, 1);
    args.b = trn_tensor_2d(TRN_F16, &half, 1, runs);
    args.b.stride[0] = 1;
    args.b.stride[1] = 0; /* one half for all */
    args.accumulate = true;
    args.rounding = rounding;
    args.seed = 20;
    for (int step = 0; step < 2048 && good; step++) {
        args.stream = (uint64_t)step;
        good = trn_matmul(&args) == TRN_OK;
    }
    return good;
}

#endif /* PUBLISHED_DEVICES_H */
