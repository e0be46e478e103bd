/* float_modes.h - the modes of floating point that a thread may call in: flushed subnormals, roundings, traps.
 * SPDX-License-Identifier: MIT
 */
#ifndef TWIN_FLOAT_MODES_H
#define TWIN_FLOAT_MODES_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is set in MXCSR and in FPCR, and which exceptions trap (on aarch64 none: few of its processors can). */
typedef struct float_modes {
    const char *name;
    uint32_t mxcsr, unmasked, fpcr;
    int rounding; /* of other machines */
} float_modes;

static const float_modes float_modes_all[] = {
    { "flush", 1u << 15 | 1u << 6, 0, 1u << 24, FE_TONEAREST },
    { "up", 2u << 13, 0, 1u << 22, FE_UPWARD },
    { "down", 1u << 13, 0, 2u << 22, FE_DOWNWARD },
    { "zero", 3u << 13, 0, 3u << 22, FE_TOWARDZERO },
    { "traps", 0, 0x1f80, 1u << 25, FE_TONEAREST }, /* of all six kinds; on aarch64, NaNs that forget their bits */
    { "everything", 1u << 15 | 1u << 6 | 2u << 13, 0x1f80, 3u << 24 | 1u << 22, FE_UPWARD },
};
enum { FLOAT_MODES = sizeof float_modes_all / sizeof float_modes_all[0] };

static inline uint64_t float_modes_now(void)
{
#if defined(__x86_64__)
    unsigned now;
    __asm__ volatile("stmxcsr %0" : "=m"(now));
    return now & 0xffc0;
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    return now;
#else
    return (uint64_t)fegetround();
#endif
}

/* Of this thread; NULL is what a process starts with. */
static inline void float_modes_set(const float_modes *m)
{
#if defined(__x86_64__)
    const unsigned next = m ? (0x1f80u & ~m->unmasked) | m->mxcsr : 0x1f80u;
    __asm__ volatile("ldmxcsr %0" : : "m"(next) : "memory");
#elif defined(__aarch64__)
    const uint64_t next = m ? m->fpcr : 0;
    __asm__ volatile("msr fpcr, %0" : : "r"(next) : "memory");
#else
    fesetround(m ? m->rounding : FE_TONEAREST);
#endif
}

/* Of this thread and of all that OpenMP has. */
static inline void float_modes_set_all(const float_modes *m)
{
#if defined(_OPENMP)
#pragma omp parallel
    float_modes_set(m);
#endif
    float_modes_set(m);
}

static inline const float_modes *float_modes_named(const char *name)
{
    for (int i = 0; name && i < FLOAT_MODES; i++)
        if (strcmp(float_modes_all[i].name, name) == 0) return &float_modes_all[i];
    return NULL;
}

#endif /* TWIN_FLOAT_MODES_H */
