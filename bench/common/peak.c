/* peak.c - what the multiply-add units of this host can do, measured in short bursts.
 * SPDX-License-Identifier: MIT
 *
 * Independent accumulators, more than latency x units, that never leave the registers. Every rate of the host is given
 * as a share of such a burst in the same round, because clocks wander. A burst is timed by the thread's own processor
 * time: what other programs take away is reported, but it does not make the peak any lower.
 */
#include "host.h"

#include <stddef.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "kernels.h"

/* One flat loop of constant length: compilers turn it into so many vectors and keep them in registers (gcc unrolls up
 * to 16 of them, so no more). FUSED: one rounding (the multiply-add unit); SEPARATE: multiply, then add (x86 before
 * that unit). */
#define PEAK_BODY(WIDTH, STEP)                                                                                         \
    const float x = operand[0], y = operand[1];                                                                        \
    float sum[WIDTH], total = 0;                                                                                       \
    for (int i = 0; i < WIDTH; i++) sum[i] = operand[2];                                                               \
    for (int64_t s = 0; s < steps; s++)                                                                                \
        for (int i = 0; i < WIDTH; i++) sum[i] = STEP(sum[i], x, y);                                                   \
    for (int i = 0; i < WIDTH; i++) total += sum[i];                                                                   \
    return total

#define FUSED(x, y, z) __builtin_fmaf((x), (y), (z))
#define SEPARATE(x, y, z) ((x) * (y) + (z))

/* floats: vectors x lanes */
enum { PEAK_WIDTH_AVX512 = 12 * 16, PEAK_WIDTH_AVX2 = 12 * 8, PEAK_WIDTH_SSE = 12 * 4, PEAK_WIDTH_NEON = 16 * 4 };

typedef float peak_fn(int64_t steps, const volatile float *operand);
typedef struct peak_kernel {
    trn_isa isa;
    peak_fn *run;
    int width;
} peak_kernel;

#if TB_X86
TB_KERNEL TB_AVX512 static float peak_avx512(int64_t steps, const volatile float *operand)
{
    PEAK_BODY(PEAK_WIDTH_AVX512, FUSED);
}
TB_KERNEL TB_AVX2 static float peak_avx2(int64_t steps, const volatile float *operand)
{
    PEAK_BODY(PEAK_WIDTH_AVX2, FUSED);
}
TB_KERNEL static float peak_portable(int64_t steps, const volatile float *operand)
{
    PEAK_BODY(PEAK_WIDTH_SSE, SEPARATE);
}
static const peak_kernel kernels[] = { { TRN_ISA_AVX512, peak_avx512, PEAK_WIDTH_AVX512 },
                                       { TRN_ISA_AVX2, peak_avx2, PEAK_WIDTH_AVX2 },
                                       { TRN_ISA_PORTABLE, peak_portable, PEAK_WIDTH_SSE } };
#else
TB_KERNEL static float peak_portable(int64_t steps, const volatile float *operand)
{
    PEAK_BODY(PEAK_WIDTH_NEON, FUSED);
}
static const peak_kernel kernels[] = { { TRN_ISA_NEON, peak_portable, PEAK_WIDTH_NEON },
                                       { TRN_ISA_PORTABLE, peak_portable, PEAK_WIDTH_NEON } };
#endif

static const peak_kernel *find_kernel(trn_isa isa)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].isa == isa) return &kernels[i];
    return &kernels[sizeof kernels / sizeof kernels[0] - 1];
}

/* s = s/2 + 1 walks to 2 and stays: no overflow, no subnormals, however long it runs. */
static const volatile float operands[3] = { 0.5f, 1.0f, 1.5f };
static volatile float sink;

/* One thread: its rate while it has the processor. */
static double burst(const peak_kernel *kernel, double seconds)
{
    const double flops = 2e7; /* a tenth of a millisecond */
    const int64_t steps = (int64_t)(flops / (2.0 * kernel->width));
    const double start = tb_thread_seconds();
    double took = 0, done = 0;
    do {
        sink = kernel->run(steps, operands);
        done += 2.0 * kernel->width * (double)steps;
        took = tb_thread_seconds() - start;
    } while (took < seconds);
    return done / took;
}

tb_peak tb_peak_burst(trn_isa isa, int threads, double seconds)
{
    const peak_kernel *kernel = find_kernel(isa);
    tb_peak peak = { 0, 0 };
    double rate = 0, attention = 0;
    (void)burst(kernel, 0);
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads) reduction(+ : rate, attention)
#endif
    {
        const double start = app_now();
        rate += burst(kernel, seconds);
        attention += seconds / (app_now() - start);
    }
    peak.flops_per_s = rate;
    peak.attention = attention / threads < 1 ? attention / threads : 1;
    return peak;
}
