/* host.h - what results must not depend on: the instruction set, the number of threads, the floating-point environment.
 * SPDX-License-Identifier: MIT
 */
#ifndef HOST_H
#define HOST_H

#include <fenv.h>

#include "trnmath/trn_cpu.h"
#if defined(_OPENMP)
#include <omp.h>
#endif

/* Ask trn_isa_supported of each. */
static const trn_isa all_isas[] = { TRN_ISA_PORTABLE, TRN_ISA_AVX2, TRN_ISA_AVX512, TRN_ISA_NEON };

static inline void with_threads(int n)
{
#if defined(_OPENMP)
    omp_set_num_threads(n);
#else
    (void)n;
#endif
}

/* 0: as it is; 1-3: other rounding modes; 4: subnormals flushed and read as zero; 5: all of that, rounding up. */
enum { ENVIRONMENTS = 6 };

static inline void host_enter(int environment)
{
    static const int mode[ENVIRONMENTS] = {
        FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST, FE_UPWARD
    };
    if (fesetround(mode[environment])) abort();
#if defined(__x86_64__)
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= environment >= 4 ? 0x8040u : 0u;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#endif
}

static inline void host_leave(void)
{
#if defined(__x86_64__)
    unsigned mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr &= ~0x8040u;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#endif
    if (fesetround(FE_TONEAREST)) abort();
}

#endif /* HOST_H */
