/* kernels.h - loops of the benchmarks themselves, compiled for each instruction set and chosen while the program runs.
 * SPDX-License-Identifier: MIT
 *
 *     TB_BODY void twice_body(float *x, size_t n) { ... plain C ... }
 *     TB_KERNELS(twice, (float *x, size_t n), (x, n))
 *     ...
 *     twice_for(isa)(x, n);
 *
 * The benchmarks have their own, as their peers do: what they compare trnmath with should not change when it does.
 */
#ifndef BENCH_COMMON_KERNELS_H
#define BENCH_COMMON_KERNELS_H

#include <trnmath/trn_cpu.h>

#if defined(__x86_64__)
#define TB_X86 1
#else
#define TB_X86 0
#endif

#define TB_BODY static inline __attribute__((always_inline))

/* gcc vectorises at -O3 only; clang and gcc both prefer 256 bits until they are told otherwise. */
#if defined(__clang__)
#define TB_KERNEL __attribute__((unused))
#define TB_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"), min_vector_width(512)))
#else
#define TB_KERNEL __attribute__((unused, optimize("O3")))
#define TB_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#endif
#define TB_AVX2 __attribute__((target("avx2,fma,f16c")))

#if TB_X86
#define TB_KERNELS(name, params, args)                                                                                 \
    TB_KERNEL static void name##_portable params { name##_body args; }                                                 \
    TB_KERNEL TB_AVX2 static void name##_avx2 params { name##_body args; }                                             \
    TB_KERNEL TB_AVX512 static void name##_avx512 params { name##_body args; }                                         \
    typedef void name##_run params;                                                                                    \
    static name##_run *name##_for(trn_isa isa)                                                                         \
    {                                                                                                                  \
        return isa == TRN_ISA_AVX512 ? name##_avx512 : isa == TRN_ISA_AVX2 ? name##_avx2 : name##_portable;            \
    }
#else
#define TB_KERNELS(name, params, args)                                                                                 \
    TB_KERNEL static void name##_portable params { name##_body args; }                                                 \
    typedef void name##_run params;                                                                                    \
    static name##_run *name##_for(trn_isa isa)                                                                         \
    {                                                                                                                  \
        (void)isa; /* on aarch64 the baseline is NEON already */                                                       \
        return name##_portable;                                                                                        \
    }
#endif

#endif /* BENCH_COMMON_KERNELS_H */
