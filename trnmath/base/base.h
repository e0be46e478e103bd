/* base/base.h - what every header stands on: version, errors, linkage, and the float guard.
 * A part of trn_base.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_BASE_BASE_H
#define TRNI_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the three numbers promise. PATCH: the same names and the same bits; repairs and speed. MINOR: more names and
 * fields (zero is their default); where a default or a result changes its bits, CHANGELOG.md says which and why. MAJOR:
 * a name or a meaning is gone. While MAJOR is 0, MINOR may do that, too. Programs that keep results should keep the
 * version with them. */
#define TRN_VERSION_MAJOR 0
#define TRN_VERSION_MINOR 3
#define TRN_VERSION_PATCH 0
#define TRN_VERSION "0.3.0"

/* Which results this copy computes: the last line of tests/digest/expected.txt, which tests/house/house.sh compares.
 * Copies that differ in it may differ in bits, whatever their versions say: processes that work together compare it. */
#define TRNI_RESULTS_DIGEST 0x7725dc3bda351a25u

/* ---- what this compiler and machine are, as 0/1 macros (a typo is caught by -Wundef) ---- */

#if !defined(__GNUC__)
#error "trnmath needs gcc or clang (it uses their target attributes to build kernels for several instruction sets)"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "trnmath needs a little-endian machine: its file and wire formats are, and nothing else is tested"
#endif

#if defined(__x86_64__)
#define TRNI_X86 1
#else
#define TRNI_X86 0
#endif
#if defined(__aarch64__)
#define TRNI_AARCH64 1
#else
#define TRNI_AARCH64 0
#endif
#if defined(__clang__)
#define TRNI_CLANG 1
#else
#define TRNI_CLANG 0
#endif

/* ---- three ways in, one text ----
 * Affects: where bodies are. Default: in every file that includes a header, static: nothing to define or to link, and
 * two files of one program may be compiled with different flags and never share a body.
 * TRN_SPLIT: headers declare, and one more file of the program has the bodies: it defines TRN_IMPLEMENTATION, too. Or
 * the program links the installed libtrnmath (-ltrnmath). Only the bodies need flags that keep floats exact.
 * Symptom of bodies that are missing, or of another version: the program does not link, for want of trni_bodies_... */

#if !defined(TRN_SPLIT)
#if defined(TRN_IMPLEMENTATION)
#error "trnmath: TRN_IMPLEMENTATION goes with TRN_SPLIT, which every file of the program defines"
#endif
#define TRNI_BODIES 1
#define TRN_API static inline __attribute__((unused))
#elif defined(TRNI_INSIDE) /* trnmath's own tests, by gcc: what is private is here, what is public is linked */
#define TRNI_BODIES 1
#define TRN_API extern inline __attribute__((gnu_inline, optimize("O0"))) /* so that gcc does not even look at it */
#else
#if defined(TRN_IMPLEMENTATION)
#define TRNI_BODIES 1
#else
#define TRNI_BODIES 0
#endif
#if defined(__cplusplus)
#define TRN_API extern "C" __attribute__((visibility("default")))
#else
#define TRN_API __attribute__((visibility("default")))
#endif
#endif

/* mingw-w64 has two printf; this is the one that vsnprintf is, which knows %zu. */
#if defined(__MINGW_PRINTF_FORMAT)
#define TRNI_PRINTF __MINGW_PRINTF_FORMAT
#else
#define TRNI_PRINTF printf
#endif

/* What must be true of a compiler and its flags, or a sentence. */
#if defined(__cplusplus)
#define TRNI_REQUIRE(condition, sentence) static_assert(condition, sentence)
#else
#define TRNI_REQUIRE(condition, sentence) _Static_assert(condition, sentence)
#endif

#define TRNI_FN static inline __attribute__((unused))
#define TRNI_INLINE static inline __attribute__((unused, always_inline))
/* What takes no part in the speed of large arrays, compiled for little time: TRNI_DRIVER runs once per call, of small
 * ones, too; TRNI_LEAN prepares large pieces of work, and TRNI_COLD hardly ever runs, both for little space. Others do
 * not inline any of them: gcc, where the optimisation differs. */
#if defined(__clang__)
#define TRNI_DRIVER static inline __attribute__((unused, noinline))
#define TRNI_LEAN static inline __attribute__((unused, minsize, noinline))
#define TRNI_COLD static inline __attribute__((unused, cold, minsize, noinline))
#elif defined(__OPTIMIZE__)
#define TRNI_DRIVER static inline __attribute__((unused, optimize("O1")))
#define TRNI_LEAN static inline __attribute__((unused, optimize("Os")))
#define TRNI_COLD static inline __attribute__((unused, cold, optimize("Os")))
#else
#define TRNI_DRIVER static inline __attribute__((unused))
#define TRNI_LEAN static inline __attribute__((unused))
#define TRNI_COLD static inline __attribute__((unused))
#endif
#define TRNI_DATA static const __attribute__((unused))

/* "MAJOR.MINOR.PATCH" of the headers that the calling file was compiled with. */
TRNI_FN const char *trn_version(void) { return TRN_VERSION; }

#if defined(TRN_SPLIT)
#define TRNI_JOIN(major, minor, patch) trni_bodies_##major##_##minor##_##patch
#define TRNI_BODIES_OF(major, minor, patch) TRNI_JOIN(major, minor, patch)
#define TRNI_BODIES_HERE TRNI_BODIES_OF(TRN_VERSION_MAJOR, TRN_VERSION_MINOR, TRN_VERSION_PATCH)
#if defined(__cplusplus)
extern "C" {
#endif
extern const char TRNI_BODIES_HERE[] __attribute__((visibility("default")));
#if TRNI_BODIES && !defined(TRNI_INSIDE)
const char TRNI_BODIES_HERE[] = TRN_VERSION;
#endif
#if defined(__cplusplus)
}
#endif
static const char *const trni_bodies_needed __attribute__((used)) = TRNI_BODIES_HERE;
#endif

/* ---- the float guard, first half: what the preprocessor shows ----
 * Affects: every result. Issue: fast math may reorder sums, drop NaN tests and flush subnormals.
 * Default (0): refuse to compile bodies. Enabled (1): compile, without the promise of bits. With TRN_SPLIT, files that
 * hold no bodies may have any flags.
 * Symptom when enabled: digests differ between machines, NaN and infinity handled at random. */
#ifndef TRN_ALLOW_FAST_MATH
#define TRN_ALLOW_FAST_MATH 0
#endif
#if TRNI_BODIES && !TRN_ALLOW_FAST_MATH
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ + 0) ||                           \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "trnmath: fast-math flags change its bits; compile this file without them, or define TRN_ALLOW_FAST_MATH=1"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "trnmath: float expressions are evaluated in a wider format (x87?); use SSE arithmetic"
#endif
TRNI_REQUIRE(sizeof 1.0 == sizeof(double),
             "trnmath: constants are not double; compile without -fsingle-precision-constant");
#endif

/* ---- status ---- */

#define TRNI_STATUS_LIST(X)                                                                                            \
    X(TRN_OK, "ok")                                                                                                    \
    X(TRN_EINVAL, "an argument is invalid")                                                                            \
    X(TRN_ESHAPE, "shapes or strides do not fit")                                                                      \
    X(TRN_EFORMAT, "a number format does not fit")                                                                     \
    X(TRN_ELIMIT, "a limit of the hardware is exceeded")                                                               \
    X(TRN_ENOSPC, "not enough memory")                                                                                 \
    X(TRN_EUNSUPPORTED, "not available on this generation or host")                                                    \
    X(TRN_EIO, "a file or message could not be read or written")

typedef enum trn_status {
#define TRNI_X(name, text) name,
    TRNI_STATUS_LIST(TRNI_X)
#undef TRNI_X
} trn_status;

/* Filled on every failure when the caller gives one: text is one plain sentence. Untouched on success. */
typedef struct trn_error {
    trn_status status;
    char text[256];
} trn_error;

TRN_API const char *trn_status_text(trn_status status);

/* Files that differ in these flags have no types in common. */
struct trni_plain {
    char first;
    int second;
    char third;
    double fourth;
};
TRNI_REQUIRE(sizeof(trn_status) == sizeof(int),
             "trnmath: enumerations are shorter than int; compile without -fshort-enums");
TRNI_REQUIRE(offsetof(struct trni_plain, second) == sizeof(int) &&
                 offsetof(struct trni_plain, fourth) % __alignof__(double) == 0,
             "trnmath: structures are packed; compile without -fpack-struct");

/* ---- bits of floats: memcpy, so that no compiler may reason about the value ---- */

TRNI_INLINE uint32_t trni_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

TRNI_INLINE float trni_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define TRNI_F32_SIGN 0x80000000u
#define TRNI_F32_INF 0x7f800000u
#define TRNI_F32_NAN 0x7fc00000u

TRNI_INLINE bool trni_is_nan_bits(uint32_t u) { return (u & ~TRNI_F32_SIGN) > TRNI_F32_INF; }

/* ---- the float guard, second half: what only running shows ---- */

enum {
    TRN_FP_FTZ = 1,            /* subnormal results become zero */
    TRN_FP_DAZ = 2,            /* subnormal operands count as zero */
    TRN_FP_ROUNDING = 4,       /* the rounding mode is not to nearest even */
    TRN_FP_CONTRACTION = 8,    /* a*b + c becomes one rounding here (harmless to trnmath's own results) */
    TRN_FP_REASSOCIATION = 16, /* (a + b) - a is simplified */
    TRN_FP_FINITE_ONLY = 32,   /* NaN tests are folded away */
    TRN_FP_SIGNED_ZEROS = 64,  /* -0 + 0 is simplified to -0 */
    TRN_FP_RECIPROCAL = 128    /* a quotient becomes a product with a reciprocal */
};

TRN_API const char *trn_fp_check_text(unsigned bits);

/* Looks at this file's flags and this thread's floating-point environment. Every operand passes through volatile
 * memory, so that the processor computes and not the compiler; bits are compared, not floats. */
TRNI_FN unsigned trn_fp_check(void)
{
    volatile float min_normal = 0x1p-126f, half = 0.5f, subnormal = 0x1p-149f, two24 = 0x1p24f, one = 1.0f;
    volatile float below_half_ulp = 0x1p-25f, above_half_ulp = 0x1.8p-24f, minus_one = -1.0f;
    unsigned found = 0;

    volatile float ftz = min_normal * half;
    if (trni_bits(ftz) != 0x00400000u) found |= TRN_FP_FTZ;

    volatile float daz = subnormal * two24;
    if (trni_bits(daz) != 0x01000000u) found |= TRN_FP_DAZ;

    volatile float up = one + below_half_ulp, down = minus_one - below_half_ulp, nearest = one + above_half_ulp;
    if (trni_bits(up) != 0x3f800000u || trni_bits(down) != 0xbf800000u || trni_bits(nearest) != 0x3f800001u)
        found |= TRN_FP_ROUNDING;

    /* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term survives only inside a fused multiply-add. Each operand is
     * read anew, or the compiler would reuse a product that it had already rounded. */
    volatile float a = 0x1.001p0f, minus_c = -0x1.002p0f;
    float x = a, y = a, z = minus_c;
    volatile float contracted = x * y + z;
    if (trni_bits(contracted) == 0x33800000u)
        found |= TRN_FP_CONTRACTION; /* rounded products leave 0, or 2^-23 in other modes */

    volatile float big = 0x1p30f, small = 1.0f;
    float p = big, q = small;
    volatile float reassociated = (p + q) - p; /* 2^30 + 1 has no room in 24 bits, in any mode */
    float term[256], sum = p;                  /* but a sum of many ones has: the lanes of a vector would make some */
    for (int i = 0; i < 256; i++) term[i] = q;
    for (int i = 1; i < 256; i++) sum += term[i];
    volatile float in_order = sum;
    if (trni_bits(reassociated) == 0x3f800000u || (!(found & TRN_FP_ROUNDING) && trni_bits(in_order) != 0x4e800000u))
        found |= TRN_FP_REASSOCIATION;

    volatile float not_a_number = trni_float(TRNI_F32_NAN);
    float n = not_a_number;
    if (n == n) found |= TRN_FP_FINITE_ONLY;

    volatile float minus_zero = -0.0f, five = 5.0f;
    volatile float zero = minus_zero + 0.0f;
    if (!(found & TRN_FP_ROUNDING) && trni_bits(zero) != 0)
        found |= TRN_FP_SIGNED_ZEROS; /* rounding down, -0 would be right */

    volatile float five_thirds = five / 3.0f;
    if (!(found & TRN_FP_ROUNDING) && trni_bits(five_thirds) != 0x3fd55555u) found |= TRN_FP_RECIPROCAL;

    return found;
}

#if TRNI_BODIES

#include <locale.h>
#include <stdarg.h>

TRN_API const char *trn_status_text(trn_status status)
{
    static const char *const text[] = {
#define TRNI_X(name, phrase) phrase,
        TRNI_STATUS_LIST(TRNI_X)
#undef TRNI_X
    };
    return (unsigned)status < sizeof text / sizeof text[0] ? text[(unsigned)status] : "an unknown status";
}

/* ---- numbers in texts: a point, whatever the locale writes ----
 * Every text of ours with a number in it, a sentence, JSON or SVG, goes through these two. The thread is in the locale
 * "C" for that long. */

#if defined(__GLIBC__)
/* Of locale.h, which hides them where a program asks for ISO C alone. Not weak: a weak name brings nothing from libc.a.
 * For "C" no memory is taken. */
extern void *trni_locale_new(int categories, const char *name, void *base) __asm__("newlocale");
extern void *trni_locale_use(void *locale) __asm__("uselocale");
#endif

/* What vsnprintf writes, with a decimal point. */
__attribute__((unused, format(TRNI_PRINTF, 3, 0))) static int trni_vprint(char *text, size_t size, const char *format,
                                                                          va_list list)
{
#if defined(__GLIBC__)
    void *callers = trni_locale_use(trni_locale_new(1 << LC_NUMERIC, "C", NULL));
#elif defined(_WIN32)
    const int threads = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    char callers[64];
    snprintf(callers, sizeof callers, "%s", setlocale(LC_NUMERIC, NULL));
    setlocale(LC_NUMERIC, "C");
#endif
    const int length = vsnprintf(text, size, format, list);
#if defined(__GLIBC__)
    trni_locale_use(callers);
#elif defined(_WIN32)
    setlocale(LC_NUMERIC, callers);
    _configthreadlocale(threads);
#endif
    return length;
}

__attribute__((unused, format(TRNI_PRINTF, 3, 4))) static int trni_print(char *text, size_t size, const char *format,
                                                                         ...)
{
    va_list list;
    va_start(list, format);
    const int length = trni_vprint(text, size, format, list);
    va_end(list);
    return length;
}

/* Writes the sentence (when somebody wants it) and returns the status, so that a check is one line. */
__attribute__((unused, format(TRNI_PRINTF, 3, 4))) static trn_status trni_fail(trn_error *error, trn_status status,
                                                                               const char *format, ...)
{
    if (error) {
        va_list list;
        va_start(list, format);
        trni_vprint(error->text, sizeof error->text, format, list);
        va_end(list);
        error->status = status;
    }
    return status;
}

/* A name, cut to the room that there is (snprintf would draw a warning wherever a compiler sees that it is cut). */
TRNI_FN void trni_copy_text(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    while (n + 1 < capacity && from[n]) n++;
    memcpy(to, from, n);
    to[n] = 0;
}

TRN_API const char *trn_fp_check_text(unsigned bits)
{
    static const char *const text[] = {
        "subnormal results are flushed to zero (FTZ is set, perhaps by linking with -ffast-math)",
        "subnormal operands are read as zero (DAZ is set, perhaps by linking with -ffast-math)",
        "the rounding mode is not round-to-nearest-even (somebody called fesetround)",
        "products are fused with sums in this file (-ffp-contract); trnmath's own results do not depend on it",
        "sums are reassociated in this file (-fassociative-math or -funsafe-math-optimizations)",
        "NaN tests are removed in this file (-ffinite-math-only or -fno-honor-nans)",
        "the sign of zero is ignored in this file (-fno-signed-zeros)",
        "quotients are made of reciprocals in this file (-freciprocal-math)",
    };
    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++)
        if (bits >> i & 1u) return text[i];
    return "floating point behaves";
}

/* ---- the float guard, third part: while a call runs ----
 * The processor's modes are the thread's: a caller, or any library that was linked with -ffast-math, may have asked for
 * flushed subnormals, for another rounding or for traps. A call works in the modes of IEEE 754, on every thread that it
 * has, and leaves them as they were (measured: 5 ns a call). */

#if TRNI_X86
typedef unsigned trni_fp_modes; /* MXCSR; the lowest six bits are no modes but what has happened */
TRNI_INLINE trni_fp_modes trni_fp_modes_get(void) { return __builtin_ia32_stmxcsr(); }
TRNI_INLINE bool trni_fp_modes_plain(trni_fp_modes m) { return (m & 0xffc0u) == 0x1f80u; }
TRNI_INLINE void trni_fp_modes_set(trni_fp_modes m) { __asm__ volatile("ldmxcsr %0" : : "m"(m) : "memory"); }
#define TRNI_FP_PLAIN 0x1f80u
#define TRNI_FP_DOWN 0x7f80u /* the same, but rounding toward zero */
#define TRNI_FP_UP 0x5f80u   /* and toward positive infinity */
#elif TRNI_AARCH64
typedef uint64_t trni_fp_modes; /* FPCR */
TRNI_INLINE trni_fp_modes trni_fp_modes_get(void)
{
    trni_fp_modes m;
    __asm__ volatile("mrs %0, fpcr" : "=r"(m));
    return m;
}
TRNI_INLINE bool trni_fp_modes_plain(trni_fp_modes m) { return m == 0; }
TRNI_INLINE void trni_fp_modes_set(trni_fp_modes m) { __asm__ volatile("msr fpcr, %0" : : "r"(m) : "memory"); }
#define TRNI_FP_PLAIN 0u
#define TRNI_FP_DOWN 0xc00000u
#else
#include <fenv.h>
typedef int trni_fp_modes; /* the rounding; what else there is, trn_fp_check tells */
TRNI_INLINE trni_fp_modes trni_fp_modes_get(void) { return fegetround(); }
TRNI_INLINE bool trni_fp_modes_plain(trni_fp_modes m) { return m == FE_TONEAREST; }
TRNI_INLINE void trni_fp_modes_set(trni_fp_modes m)
{
    fesetround(m);
    __asm__ volatile("" : : : "memory");
}
#define TRNI_FP_PLAIN FE_TONEAREST
#endif

TRNI_INLINE trni_fp_modes trni_floats_begin(void)
{
    const trni_fp_modes callers = trni_fp_modes_get();
    if (!trni_fp_modes_plain(callers)) trni_fp_modes_set(TRNI_FP_PLAIN);
    return callers;
}

TRNI_INLINE void trni_floats_end(const trni_fp_modes *callers)
{
    if (!trni_fp_modes_plain(*callers)) trni_fp_modes_set(*callers);
}

/* From here to the end of the block. Every parallel region has one, as each thread has its own modes; of another name
 * than that of the call around it. */
#define TRNI_FLOATS TRNI_FLOATS_OF(block)
#define TRNI_FLOATS_OF(scope)                                                                                          \
    const trni_fp_modes trni_floats_of_##scope __attribute__((cleanup(trni_floats_end), unused)) = trni_floats_begin()

/* Flags that no macro shows (clang has some): looked for once in each file that holds bodies, when the first call of
 * the process runs. */
enum { TRNI_FP_FLAGS = TRN_FP_REASSOCIATION | TRN_FP_FINITE_ONLY | TRN_FP_SIGNED_ZEROS | TRN_FP_RECIPROCAL };

TRNI_FN unsigned trni_fp_flags(void)
{
    static unsigned known; /* 1: looked; the flags found, shifted */
    unsigned now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!now) {
        now = (trn_fp_check() & TRNI_FP_FLAGS) << 1 | 1u;
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return TRN_ALLOW_FAST_MATH ? 0 : now >> 1;
}

TRNI_COLD trn_status trni_fp_refuse(trn_error *error)
{
    return trni_fail(error, TRN_EUNSUPPORTED, "trnmath was compiled with a flag that changes its bits: %s",
                     trn_fp_check_text(trni_fp_flags()));
}

/* The first line of a call that computes: no arguments or the wrong flags end it, and its floats are ours. */
#define TRNI_ENTER(args)                                                                                               \
    if (!(args)) return TRN_EINVAL;                                                                                    \
    TRNI_FLOATS_OF(call);                                                                                              \
    if (trni_fp_flags()) return trni_fp_refuse((args)->error)

#endif /* TRNI_BODIES */

#endif /* TRNI_BASE_BASE_H */
