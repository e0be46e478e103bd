/* convert_cpfloat.c - CPFloat's rounding of binary32 arrays to narrow formats, with its PCG generator.
 * SPDX-License-Identifier: MIT
 *
 * Built only where the headers are: see TRN_PEERS in tests/CMakeLists.txt. CPFloat has no codes: what goes in and what
 * comes out are binary32 values. One thread; the caller splits the array.
 */
#include "convert_peer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Its functions are inline and would ask for PCG's library; static, they ask for nothing. */
#define inline static __inline__
#include <pcg_variants.h>
#undef inline
#include "cpfloat_binary32.h"

typedef struct format {
    const char *to;
    unsigned precision;
    int emin, emax;
    int infinity;  /* else NaN */
    int saturates; /* always: neither infinity nor NaN */
} format;

static const format formats[] = {
    { "bf16", 8, -126, 127, 1, 0 }, { "f16", 11, -14, 15, 1, 0 }, { "tf32", 11, -126, 127, 1, 0 },
    { "e4m3", 4, -6, 7, 1, 0 },     { "e4m3fn", 4, -6, 8, 0, 0 }, /* what CPFloat itself calls E4M3 */
    { "e5m2", 3, -14, 15, 1, 0 },   { "e3m4", 5, -2, 3, 1, 0 },   { "e2m3", 4, 0, 2, 0, 1 },
    { "e3m2", 3, -2, 4, 0, 1 },     { "e2m1", 2, 0, 2, 0, 1 },
};

static void run(const convert_peer_part *part, const format *f, cpfloat_rounding_t rounding, int saturate)
{
    pcg32_random_t generator;
    pcg32_srandom_r(&generator, part->seed, (uintptr_t)part->dst);
    optstruct options = { .precision = f->precision,
                          .emin = f->emin,
                          .emax = f->emax,
                          .explim = CPFLOAT_EXPRANGE_TARG,
                          .infinity = f->infinity ? CPFLOAT_INF_USE : CPFLOAT_INF_NO,
                          .round = rounding,
                          .saturation = saturate || f->saturates ? CPFLOAT_SAT_USE : CPFLOAT_SAT_NO,
                          .subnormal = CPFLOAT_SUBN_USE,
                          .flip = CPFLOAT_SOFTERR_NO,
                          .randseedf = &generator };
    cpfloatf(part->dst, part->src, part->n, &options);
}

#define RUN(name, rounding, saturate)                                                                                  \
    static void name(const convert_peer_part *part, const void *with) { run(part, with, rounding, saturate); }
RUN(nearest, CPFLOAT_RND_NE, 0)
RUN(saturating, CPFLOAT_RND_NE, 1)
RUN(stochastic, CPFLOAT_RND_SP, 0)
RUN(toward_zero, CPFLOAT_RND_TZ, 0)
RUN(toward_positive, CPFLOAT_RND_TP, 0)
RUN(toward_negative, CPFLOAT_RND_TN, 0)
RUN(to_odd, CPFLOAT_RND_OD, 0)

static convert_peer_loop find(const convert_peer_what *what)
{
    static void (*const run_for[])(const convert_peer_part *, const void *) = { nearest,         stochastic,
                                                                                toward_zero,     toward_positive,
                                                                                toward_negative, to_odd };
    convert_peer_loop loop = { NULL, NULL };
    if (strcmp(what->from, "f32") != 0 || (what->saturate && what->rounding != PEER_NEAREST_EVEN)) return loop;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].to, what->to) == 0) loop.with = &formats[i];
    if (loop.with) loop.run = what->saturate ? saturating : run_for[what->rounding];
    return loop;
}

const convert_peer convert_peer_cpfloat = { "CPFloat",
                                            "CPFloat " CONVERT_PEER_VERSION " with PCG, " CONVERT_PEER_COMPILER, 1,
                                            find };
