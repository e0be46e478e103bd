/* host.h - a product on this host: computed, checked, timed beside its peers.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COMMON_HOST_H
#define BENCH_COMMON_HOST_H

#include <trnmath/trn_matmul.h>
#include <trnmath/trn_numerics.h>
#include <trnmath/trn_tensor.h>

#include "bench/peers/peers.h"
#include "formats.h"
#include "measure.h"

#if defined(__clang__)
#define TB_COMPILER __VERSION__
#else
#define TB_COMPILER "gcc " __VERSION__
#endif

/* ---- peak.c ---- */

typedef struct tb_peak {
    double flops_per_s; /* all threads together, while they have a processor */
    double attention;   /* the part of the time they had one; the rest went to other programs */
} tb_peak;

/* Multiply-adds on `threads` cores with this instruction set, for about `seconds`. */
tb_peak tb_peak_burst(trn_isa isa, int threads, double seconds);

/* Bytes per second at which `threads` threads read `data`, whole words of it. */
double tb_read_rate(const void *data, size_t bytes, int threads, trn_isa isa);

/* ---- check.c ---- */

typedef struct tb_check {
    bool defined; /* false: the slow definition here does not cover these numerics, nothing was compared */
    int64_t compared, wrong;
    int64_t row, column; /* the first wrong one */
    uint32_t got, expected;
} tb_check;

/* The bits of one output of the product, by the definition: scalars, chain by chain. False when it is not covered.
 * numerics: with all settings; NULL = the defaults. */
bool tb_define(const trn_matmul_args *product, int64_t row, int64_t column, uint32_t *bits);
/* Compares up to `samples` outputs of dst (all, when there are no more), corners first, the rest drawn by `seed`. */
tb_check tb_check_product(const trn_matmul_args *product, uint64_t seed, int samples);
/* FNV-1a over the bits of dst, row by row: one number for "the same bits". */
uint64_t tb_digest(const trn_tensor *dst);

/* ---- host.c ---- */

/* The part of a product's blocks that a count of its `units` is. */
double tb_unit_share(const trn_matmul_units *units, int64_t count);

typedef struct tb_host_options {
    trn_isa isa;
    int threads;
    int rounds;     /* at most TB_MAX_ROUNDS; 0: as many as fit into `seconds`, at most TB_AUTO_ROUNDS */
    double seconds; /* for one product */
    uint64_t seed;
    const trn_numerics *numerics; /* NULL: the defaults */
    bool peer[TB_PEERS];
    bool beside_bf16;  /* time the same product in BF16 in each round, too */
    const char *label; /* for the progress line */
} tb_host_options;
enum { TB_AUTO_ROUNDS = 7, TB_SAMPLES = 256 };

typedef struct tb_host_peer {
    bool there;
    double flops_per_s; /* best round */
    double ratio;       /* median over the rounds of (trnmath's rate / the peer's) */
} tb_host_peer;

typedef struct tb_host {
    bool ran;
    trn_error error; /* why not */
    int64_t m, n, k; /* what was timed */
    int rounds;
    double flops_per_s;      /* best round */
    double share_of_peak;    /* median over the rounds of (rate / burst of the same round) */
    double peak_flops_per_s; /* best round */
    trn_isa unit;            /* the matrix unit that had a part in it; TRN_ISA_AUTO: none */
    trn_matmul_units units;  /* of one product, in blocks */
    double attention;        /* of the processors, mean over the rounds' bursts */
    tb_host_peer peer[TB_PEERS];
    tb_host_peer bf16; /* trnmath's own BF16 product */
    tb_check check;
    uint64_t digest;
} tb_host;

typedef struct tb_slice {
    int64_t m, n, k;
} tb_slice;

/* The part of a product that is timed here: all of K, and as much of M and N as `flops` and memory allow. */
tb_slice tb_host_slice(int64_t m, int64_t n, int64_t k, double flops);
/* How many flop one call may have, so that all end within seconds (`of_many`: one of a model's many products), for a
 * host that does `rate` flop/s in a pilot run with these numerics: the definition's own loops take many times as long
 * as the kernels. */
double tb_host_flops(double rate, bool of_many);
double tb_host_pilot(const tb_format *format, const tb_host_options *options);

/* Uniform numbers in [-1, 1), a function of seed, stream and index alone. */
void tb_fill_random(float *x, int64_t n, uint64_t seed, uint64_t stream);
/* The same, each times a power of two from 2^-8 to 2^3: for formats so narrow that sums of the others would be exact,
 * and would not show their order. */
void tb_fill_wide(float *x, int64_t n, uint64_t seed, uint64_t stream);

/* a [M, K] and b [K, N], F32, BF16 or F16; `format` says what they become and how they are multiplied. */
void tb_host_measure(const trn_tensor *a, const trn_tensor *b, const tb_format *format, const tb_host_options *options,
                     tb_host *result);
const char *tb_host_processor(void); /* its model name, as the system tells it */

#endif /* BENCH_COMMON_HOST_H */
