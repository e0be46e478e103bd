/* base/cpu.h - the instruction sets of this machine, and a kernel for each from one body.
 * A part of trn_cpu.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_BASE_CPU_H
#define TRNI_BASE_CPU_H

#include "base.h"

typedef enum trn_isa {
    TRN_ISA_AUTO = 0,
    TRN_ISA_PORTABLE,
    TRN_ISA_AVX2,   /* with FMA and F16C */
    TRN_ISA_AVX512, /* F, BW, DQ, VL: vectors alone */
    TRN_ISA_NEON,
    TRN_ISA_AVX512_BF16,    /* and dot products of pairs of BF16, where they are proven to give the same bits */
    TRN_ISA_AMX,            /* and tiles, likewise */
    TRN_ISA_AMX_EMULATED,   /* the same on any host, tiles in plain C: for tests */
    TRN_ISA_PAIRS_EMULATED, /* and pairs in plain C */
    TRN_ISA_COUNT
} trn_isa;

/* "avx2", …, as the environment's TRN_ISA takes it; "unknown" for anything else. */
TRN_API const char *trn_isa_text(trn_isa isa);

/* TRN_ISA_COUNT when there is none of that name. */
TRN_API trn_isa trn_isa_from_name(const char *name);

/* Can this host run it? False for AUTO, which is none. */
TRN_API bool trn_isa_supported(trn_isa isa);

/* What calls run that leave .isa at 0: TRN_ISA_COUNT when the environment's TRN_ISA names none that this host has. */
TRN_API trn_isa trn_isa_default(void);
TRN_API const char *trn_isa_name(void);

/* The matrix unit that products with this .isa may use beside vectors: TRN_ISA_AUTO when there is none. */
TRN_API trn_isa trn_isa_unit(trn_isa isa);

#if TRNI_BODIES

#include <stdlib.h>

/* ---- the rows ----
 *
 * One for each instruction set, in the order of trn_isa. Of the vectors that a host has, the last are the best.
 *     text         as the environment's TRN_ISA takes it
 *     everywhere   plain C, or each host of this architecture has it
 *     unit         a matrix unit, beside vectors: AVX-512's, unless it is plain C
 *     the others   all bits that an x86-64 host which has it says: CPUID's leaves and registers, and XCR0 */
typedef struct trni_isa_row {
    const char *text;
    bool everywhere, unit;
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_edx, leaf7_1_eax, xcr0;
} trni_isa_row;

#define TRNI_CPUID_AVX (1u << 12 | 1u << 28 | 1u << 29)               /* FMA, AVX, F16C */
#define TRNI_CPUID_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define TRNI_CPUID_AMX (1u << 22 | 1u << 24 | 1u << 25)               /* BF16, tiles, int8 */

TRNI_FN const trni_isa_row *trni_isa_row_of(trn_isa isa)
{
    static const trni_isa_row row[TRN_ISA_COUNT] = {
        { "auto", false, false, 0, 0, 0, 0, 0 },
        { "portable", true, false, 0, 0, 0, 0, 0 },
        { "avx2", false, false, TRNI_CPUID_AVX, 1u << 5, 0, 0, 0x06 },
        { "avx512", false, false, TRNI_CPUID_AVX, 1u << 5 | TRNI_CPUID_AVX512, 0, 0, 0xe6 },
        { "neon", TRNI_AARCH64, false, 0, 0, 0, 0, 0 },
        { "avx512-bf16", false, true, 0, 0, 0, 1u << 5, 0 },
        { "amx", false, true, 0, 0, TRNI_CPUID_AMX, 0, 3u << 17 },
        { "amx-emulated", true, true, 0, 0, 0, 0, 0 },
        { "pairs-emulated", true, true, 0, 0, 0, 0, 0 },
    };
    return &row[isa];
}

TRN_API const char *trn_isa_text(trn_isa isa)
{
    return (unsigned)isa < TRN_ISA_COUNT ? trni_isa_row_of(isa)->text : "unknown";
}

TRN_API trn_isa trn_isa_from_name(const char *name)
{
    for (int i = 0; i < TRN_ISA_COUNT; i++)
        if (strcmp(name, trn_isa_text((trn_isa)i)) == 0) return (trn_isa)i;
    return TRN_ISA_COUNT;
}

/* ---- detection ---- */

#if TRNI_X86
TRNI_FN void trni_cpuid(uint32_t leaf, uint32_t part, uint32_t r[4])
{
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "0"(leaf), "2"(part));
}

/* A processor may have AVX that the operating system does not save: XCR0 says which registers survive a switch. */
TRNI_FN uint32_t trni_saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

/* What CPUID says; what it is taken for is looked at below, so that any host can be made up. */
typedef struct trni_host {
    uint32_t leaf0[4], leaf1[4], leaf7[4], leaf7_1[4];
    uint32_t saved; /* XCR0; 0: the operating system does not say */
} trni_host;

TRNI_COLD void trni_host_ask(trni_host *h)
{
    enum { osxsave = 1u << 27 };
    trni_cpuid(0, 0, h->leaf0);
    trni_cpuid(1, 0, h->leaf1);
    trni_cpuid(7, 0, h->leaf7);
    trni_cpuid(7, 1, h->leaf7_1);
    h->saved = h->leaf1[2] & osxsave ? trni_saved_state() : 0;
}

/* Does it say all that the row asks for? */
TRNI_COLD bool trni_host_has(const trni_host *h, trn_isa isa)
{
    const trni_isa_row *r = trni_isa_row_of(isa);
    const uint32_t asks = r->leaf1_ecx | r->leaf7_ebx | r->leaf7_edx | r->leaf7_1_eax | r->xcr0;
    if ((r->leaf7_ebx && h->leaf0[0] < 7) || (r->leaf7_1_eax && h->leaf7[0] < 1)) return false; /* no such leaf */
    return asks && (h->leaf1[2] & r->leaf1_ecx) == r->leaf1_ecx && (h->leaf7[1] & r->leaf7_ebx) == r->leaf7_ebx &&
           (h->leaf7[3] & r->leaf7_edx) == r->leaf7_edx && (h->leaf7_1[0] & r->leaf7_1_eax) == r->leaf7_1_eax &&
           (h->saved & r->xcr0) == r->xcr0;
}

/* Of a host that has AVX-512: are there dot products of bytes, too? */
TRNI_COLD bool trni_host_has_dots(const trni_host *h) { return h->leaf7[2] >> 11 & 1; }

/* Are dot products of pairs at more than half the pace of multiply-adds, which do half the work? Some hosts have them
 * at the same pace (AMD's Zen 5), some at half (Intel's Sapphire Rapids): so they race, 896 of each, the best of some
 * tries. It takes 2 us. */
#if defined(TRN_NO_INTRINSICS)
TRNI_COLD bool trni_host_pairs_pay(void) { return false; }
#else
/* clang-format off */
#define TRNI_RACE_EACH(registers, instruction) ".irp r," registers "\n\t" instruction "\n\t.endr\n\t"
#define TRNI_RACE(name, instruction)                                                                                   \
    TRNI_COLD uint64_t trni_race_##name(void)                                                                          \
    {                                                                                                                  \
        int left = 64;                                                                                                 \
        __builtin_ia32_lfence();                                                                                       \
        const uint64_t start = __builtin_ia32_rdtsc();                                                                 \
        __asm__ volatile(TRNI_RACE_EACH("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",                                       \
                                        "vpxor %%xmm\\r, %%xmm\\r, %%xmm\\r")                                          \
                         "1:\n\t" TRNI_RACE_EACH("0,1,2,3,4,5,6,7,8,9,10,11,12,13",                                    \
                                                 instruction " %%zmm15, %%zmm14, %%zmm\\r")                            \
                         "decl %0\n\tjnz 1b\n\tvzeroupper\n\tlfence"                                                  \
                         : "+r"(left)                                                                                  \
                         :                                                                                             \
                         : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",     \
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                              \
        return __builtin_ia32_rdtsc() - start;                                                                         \
    }
TRNI_RACE(multiply_adds, "vfmadd231ps")
TRNI_RACE(pairs, "vdpbf16ps")
#undef TRNI_RACE
#undef TRNI_RACE_EACH
/* clang-format on */

TRNI_COLD bool trni_host_pairs_pay(void)
{
    enum { tries = 4 };
    uint64_t best[2] = { UINT64_MAX, UINT64_MAX };
    for (int i = 0; i < 2 * tries; i++) {
        const uint64_t took = i % 2 ? trni_race_pairs() : trni_race_multiply_adds();
        if (took < best[i % 2]) best[i % 2] = took;
    }
    return best[1] < best[0] + best[0] / 2;
}
#endif

/* The permission to use tiles, which Linux gives once for all of a process's threads (a refusal is normal). */
TRNI_COLD bool trni_tiles_permitted(void)
{
#if defined(__linux__) && defined(__LP64__)
    enum { arch_prctl = 158, request_permission = 0x1023, tile_data = 18 };
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)arch_prctl), "D"((long)request_permission), "S"((long)tile_data)
                     : "rcx", "r11", "memory");
    return result == 0;
#else
    return false;
#endif
}
#endif

/* Everything is asked once: CPUID traps in a virtual machine and costs more than a small product. The one piece of
 * static state holds the answer, a bit per instruction set this host runs and, above them, the one to run by default
 * (TRN_ISA_COUNT: TRN_ISA names none that it could); whoever comes first fills it, always with the same bits. */
enum {
    TRNI_ISA_DEFAULT_SHIFT = 12,
    TRNI_ISA_DEFAULT_MASK = 0xf,
    TRNI_HOST_DOTS = 1 << 16,
    TRNI_UNIT_SHIFT = 17, /* the matrix unit that is used where nothing is forced, a trn_isa */
    TRNI_UNIT_MASK = 0xf,
    TRNI_UNIT_PASSES = 1 << 24,  /* array/matrix_unit.h has tried the host's tiles, and they are what they should be, */
    TRNI_UNIT_FAILS = 1 << 25,   /* or are not */
    TRNI_PAIRS_PASSES = 1 << 26, /* array/matmul_pairs.h, likewise */
    TRNI_PAIRS_FAILS = 1 << 27
};

TRNI_FN bool trni_is_unit(trn_isa isa) { return (unsigned)isa < TRN_ISA_COUNT && trni_isa_row_of(isa)->unit; }

TRNI_COLD trn_isa trni_best_vectors(int found)
{
    int isa = TRN_ISA_COUNT - 1;
    while (!(found >> isa & 1) || trni_is_unit((trn_isa)isa)) isa--;
    return (trn_isa)isa;
}

/* A bit for each row that this host has, and for what is beside AVX-512. */
TRNI_COLD int trni_isa_rows_found(void)
{
    int found = 0;
#if TRNI_X86
    trni_host host;
    trni_host_ask(&host);
#endif
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
        const trni_isa_row *row = trni_isa_row_of((trn_isa)isa);
        if (row->everywhere) found |= 1 << isa;
#if TRNI_X86
        else if ((!row->unit || (found >> TRN_ISA_AVX512 & 1)) && trni_host_has(&host, (trn_isa)isa) &&
                 (isa != TRN_ISA_AMX || trni_tiles_permitted()))
            found |= 1 << isa;
#endif
    }
#if TRNI_X86
    if ((found >> TRN_ISA_AVX512 & 1) && trni_host_has_dots(&host)) found |= TRNI_HOST_DOTS;
#endif
    return found;
}

/* The matrix unit that is worth it: none is TRN_ISA_AUTO. */
TRNI_COLD trn_isa trni_best_unit(int found)
{
    if (found >> TRN_ISA_AMX & 1) return TRN_ISA_AMX;
#if TRNI_X86
    if ((found >> TRN_ISA_AVX512_BF16 & 1) && trni_host_pairs_pay()) return TRN_ISA_AVX512_BF16;
#endif
    return TRN_ISA_AUTO;
}

TRNI_COLD int trni_isa_detect(void)
{
    const int found = trni_isa_rows_found();
    trn_isa unit = trni_best_unit(found);
    trn_isa isa = trni_best_vectors(found);
    const char *forced = getenv("TRN_ISA");
    if (forced && *forced && strcmp(forced, "auto") != 0) {
        isa = trn_isa_from_name(forced);
        if (!(found >> isa & 1)) isa = TRN_ISA_COUNT;
        unit = trni_is_unit(isa) ? isa : TRN_ISA_AUTO;
    }
    return found | (int)isa << TRNI_ISA_DEFAULT_SHIFT | (int)unit << TRNI_UNIT_SHIFT;
}

TRNI_FN int *trni_isa_cache(void)
{
    static int cache;
    return &cache;
}

/* Adds what was found out, once; others may find out the same meanwhile. */
TRNI_COLD int trni_isa_remember(int found) { return __atomic_or_fetch(trni_isa_cache(), found, __ATOMIC_RELAXED); }

TRNI_FN int trni_isa_known(void)
{
    const int known = __atomic_load_n(trni_isa_cache(), __ATOMIC_RELAXED);
    return known ? known : trni_isa_remember(trni_isa_detect());
}

TRN_API bool trn_isa_supported(trn_isa isa) { return (unsigned)isa < TRN_ISA_COUNT && (trni_isa_known() >> isa & 1); }

TRN_API trn_isa trn_isa_default(void)
{
    return (trn_isa)(trni_isa_known() >> TRNI_ISA_DEFAULT_SHIFT & TRNI_ISA_DEFAULT_MASK);
}

/* AVX512_VNNI, beside AVX-512. */
TRNI_FN bool trni_has_dots(void) { return (trni_isa_known() & TRNI_HOST_DOTS) != 0; }

TRN_API const char *trn_isa_name(void)
{
    trn_isa isa = trn_isa_default();
    return isa == TRN_ISA_COUNT ? "unsupported" : trn_isa_text(isa);
}

TRN_API trn_isa trn_isa_unit(trn_isa isa)
{
    if (isa == TRN_ISA_AUTO) return (trn_isa)(trni_isa_known() >> TRNI_UNIT_SHIFT & TRNI_UNIT_MASK);
    return trni_is_unit(isa) ? isa : TRN_ISA_AUTO;
}

/* The vectors beside a matrix unit. */
TRNI_FN trn_isa trni_isa_vectors(trn_isa isa) { return trni_is_unit(isa) ? trni_best_vectors(trni_isa_known()) : isa; }

/* Turns the .isa argument of a call into the vectors to run. */
TRNI_FN trn_status trni_isa_resolve(trn_isa *isa, trn_error *error)
{
    if (*isa == TRN_ISA_AUTO) {
        *isa = trn_isa_default();
        if (*isa != TRN_ISA_COUNT) {
            *isa = trni_isa_vectors(*isa);
            return TRN_OK;
        }
        const char *forced = getenv("TRN_ISA");
        return trni_fail(error, TRN_EUNSUPPORTED,
                         "the environment's TRN_ISA=%.40s is unknown or not available on this host",
                         forced ? forced : "");
    }
    if (!trn_isa_supported(*isa))
        return trni_fail(error, TRN_EUNSUPPORTED, "isa %s (%d) is not available on this host", trn_isa_text(*isa),
                         (int)*isa);
    *isa = trni_isa_vectors(*isa);
    return TRN_OK;
}

/* ---- intrinsics ----
 * Affects: some inner kernels. Issue: <immintrin.h> costs 0.4-0.9 s per compiled file.
 * Default: intrinsics kernels where they measured at least 1.03 times the plain C one. With TRN_NO_INTRINSICS defined:
 * plain C everywhere. Symptom when defined: the same bits, a little slower. */
#if defined(TRN_NO_INTRINSICS)
#define TRNI_INTRINSICS 0
#else
#define TRNI_INTRINSICS 1
#endif

/* ---- one body, one kernel per instruction set ----
 *
 *     TRNI_INLINE void trni_twice_body(float *x, size_t n) { ... plain C ... }
 *     TRNI_DISPATCH(trni_twice, (float *x, size_t n), (x, n))
 *     ...
 *     trni_twice_for(isa)(x, n);
 *
 * The attributes sit on the outer functions, because always_inline drops those of the body; kernels are reached through
 * pointers, so no caller swallows them, and `inline` only lets a file that never uses them compile fast at -O0. The
 * bits do not depend on any of it: bodies use fmaf or proven-exact products.
 *
 * Every kernel costs whoever includes it 5 to 30 ms, so there are no more of them than pay. Rows of a table:
 *     TRNI_DISPATCH          portable, AVX2, AVX-512
 *     TRNI_DISPATCH_AVX2     AVX-512 hosts run the AVX2 kernel: for what is rare, or waits for memory
 *     TRNI_DISPATCH_ONE      for what hardly anybody asks for
 *     TRNI_DISPATCH_BESIDE   portable only where kernels in intrinsics do the rest, else as TRNI_DISPATCH
 *     TRNI_DISPATCH_BESIDE_AVX512   as TRNI_DISPATCH_AVX2 where AVX-512 intrinsics do most of it, else all
 *     TRNI_DISPATCH_FAST, TRNI_DISPATCH_FAST_AVX2   none that is portable on x86-64: _for gives NULL there, and the
 *                            caller has another way
 *     TRNI_DISPATCH_ISA      as TRNI_DISPATCH_FAST, for bodies whose shape depends on the instruction set: a constant,
 *                            which comes before the arguments
 *
 * gcc at -O2 does not vectorise such loops on its own, hence optimize("O3") (measured: 0.76 -> 5.6 Gelem/s), less the
 * passes that straight loops gain nothing from (together a fifth of the time; the streams of single rows gain a tenth
 * of their speed from two of them). clang needs to be told that 512-bit vectors are welcome. On x86-64 the portable
 * kernel serves hosts older than AVX2 (2013): it is compiled to be small. Elsewhere it is the fast one. */

#if TRNI_CLANG
#define TRNI_KERNEL inline __attribute__((unused))
#define TRNI_KERNEL_STREAM TRNI_KERNEL
#define TRNI_WIDE __attribute__((min_vector_width(512)))
#else
#define TRNI_KERNEL                                                                                                    \
    inline                                                                                                             \
        __attribute__((unused, optimize("O3", "no-tree-pre", "no-gcse", "no-schedule-insns2", "no-tree-vrp",           \
                                        "no-unswitch-loops", "no-predictive-commoning", "no-split-paths",              \
                                        "no-split-loops", "no-tree-slp-vectorize", "no-version-loops-for-strides")))
#define TRNI_KERNEL_STREAM inline __attribute__((unused, optimize("O3", "no-schedule-insns2", "no-tree-vrp")))
#define TRNI_WIDE
#endif

#if !TRNI_X86
#define TRNI_KERNEL_PORTABLE TRNI_KERNEL
#elif TRNI_CLANG
#define TRNI_KERNEL_PORTABLE inline __attribute__((unused, cold, minsize))
#else
#define TRNI_KERNEL_PORTABLE inline __attribute__((unused, cold, optimize("O1")))
#endif

/* Before a loop: all of its steps written out, whose number is known and at most 16; or none twice. */
#if TRNI_CLANG
#define TRNI_UNROLL _Pragma("clang loop unroll(full)")
#define TRNI_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define TRNI_UNROLL _Pragma("GCC unroll 16")
#define TRNI_ROLLED _Pragma("GCC unroll 1")
#endif
/* A number that the compiler is not to know, lest it write the first of a loop's steps out before the loop. */
#define TRNI_OPAQUE(x) __asm__("" : "+r"(x))
#define TRNI_EVERY(i, n) TRNI_UNROLL for (int i = 0; i < (n); i++)

/* gcc 12 warns of its own <avx512fintrin.h>, where what stands for an undefined register is initialised with itself
 * (GCC bug 105593); SIMD kernels stand between these two, so that the warning does not reach programs. */
#if !TRNI_CLANG
#define TRNI_SIMD_BEGIN                                                                                                \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")                         \
        _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")
#define TRNI_SIMD_END _Pragma("GCC diagnostic pop")
#else
#define TRNI_SIMD_BEGIN
#define TRNI_SIMD_END
#endif

/* A buffer on cache lines: between them, loads and stores of AVX-512 take up to twice the time. */
#define TRNI_LINES(type) __attribute__((aligned(64))) type
enum { TRNI_LINE = 64 }; /* bytes of one */

#define TRNI_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#if TRNI_CLANG
#define TRNI_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) TRNI_WIDE
#else
#define TRNI_TARGET_AVX512                                                                                             \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")))
#endif

/* The kernels of one name, and which of them an instruction set runs. */
#define TRNI_DISPATCH_FOR(name, params, choice)                                                                        \
    typedef void name##_fn params;                                                                                     \
    TRNI_FN name##_fn *name##_for(trn_isa isa)                                                                         \
    {                                                                                                                  \
        (void)isa; /* on aarch64 the baseline is NEON already */                                                       \
        return choice;                                                                                                 \
    }

/* A row of the table below: the kernels that there are, and that an instruction set runs the best of them. */
#define TRNI_MADE(there, ...) TRNI_MADE_##there(__VA_ARGS__)
#define TRNI_MADE_1(attributes, name, params, call)                                                                    \
    attributes static void name params { call; }
#define TRNI_MADE_0(attributes, name, params, call)
#define TRNI_HAS(there, name) TRNI_HAS_##there(name)
#define TRNI_HAS_1(name) name
#define TRNI_HAS_0(name) NULL
#if TRNI_X86
#define TRNI_DISPATCH_ROW(name, params, args, body, kernel, portable, avx2, avx512)                                    \
    TRNI_MADE(portable, TRNI_KERNEL_PORTABLE, name##_portable, params, body(name, TRN_ISA_PORTABLE, args))             \
    TRNI_MADE(avx2, kernel TRNI_TARGET_AVX2, name##_avx2, params, body(name, TRN_ISA_AVX2, args))                      \
    TRNI_MADE(avx512, kernel TRNI_TARGET_AVX512, name##_avx512, params, body(name, TRN_ISA_AVX512, args))              \
    TRNI_DISPATCH_FOR(name, params,                                                                                    \
                      isa == TRN_ISA_AVX512 && avx512                          ? TRNI_HAS(avx512, name##_avx512)       \
                      : (isa == TRN_ISA_AVX512 || isa == TRN_ISA_AVX2) && avx2 ? TRNI_HAS(avx2, name##_avx2)           \
                                                                               : TRNI_HAS(portable, name##_portable))
#else
#define TRNI_DISPATCH_ROW(name, params, args, body, kernel, portable, avx2, avx512)                                    \
    TRNI_MADE(1, TRNI_KERNEL_PORTABLE, name##_portable, params, body(name, TRN_ISA_PORTABLE, args))                    \
    TRNI_DISPATCH_FOR(name, params, name##_portable)
#endif

/* What a kernel calls. */
#define TRNI_BODY(name, isa, args) name##_body args
#define TRNI_ARGS(...) __VA_ARGS__
#define TRNI_BODY_ISA(name, isa, args) name##_body(isa, TRNI_ARGS args)

/* The table: what is called, attributes of the fast kernels, and which there are: portable, AVX2, AVX-512. */
#define TRNI_DISPATCH(n, params, args) TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY, TRNI_KERNEL, 1, 1, 1)
#define TRNI_DISPATCH_AVX2(n, params, args) TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY, TRNI_KERNEL, 1, 1, 0)
#define TRNI_DISPATCH_ONE(n, params, args) TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY, TRNI_KERNEL, 1, 0, 0)
#define TRNI_DISPATCH_FAST(n, params, args) TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY, TRNI_KERNEL, 0, 1, 1)
#define TRNI_DISPATCH_FAST_AVX2(n, params, args) TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY, TRNI_KERNEL, 0, 1, 0)
#define TRNI_DISPATCH_ISA(n, params, args)                                                                             \
    TRNI_DISPATCH_ROW(n, params, args, TRNI_BODY_ISA, TRNI_KERNEL_STREAM, 0, 1, 1)
#if TRNI_X86 && TRNI_INTRINSICS
#define TRNI_DISPATCH_BESIDE TRNI_DISPATCH_ONE
#define TRNI_DISPATCH_BESIDE_AVX512 TRNI_DISPATCH_AVX2
#else
#define TRNI_DISPATCH_BESIDE TRNI_DISPATCH
#define TRNI_DISPATCH_BESIDE_AVX512 TRNI_DISPATCH
#endif

#endif /* TRNI_BODIES */

#endif /* TRNI_BASE_CPU_H */
