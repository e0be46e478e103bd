/* collectives.c - an all-reduce round a ring: who adds to what, and how often it is rounded.
 * SPDX-License-Identifier: MIT
 */
#include "vectors.h"

#include <stdio.h>

#include <trnmath/trn_collective.h>

enum { MOST_RANKS = 64 };

/* [rank][element]: as many elements as ranks, so that each rank owns one. */
typedef struct job {
    const vec_format *wire;
    int ranks;
    uint32_t code[MOST_RANKS][MOST_RANKS];
} job;

static void normal(job *j, vec_random *r)
{
    for (int rank = 0; rank < j->ranks; rank++)
        for (int i = 0; i < j->ranks; i++)
            j->code[rank][i] = vec_encode(j->wire, vec_bits(vec_normal(r)), TRN_NEAREST_EVEN, TRN_SATURATE, 0);
}

/* One number at which ones are rounded away, or not, as the order has it. */
static void one_large(job *j, vec_random *r)
{
    const float large = (float)(1 << (j->wire->info.mantissa_bits < 20 ? j->wire->info.mantissa_bits + 1 : 20));
    for (int rank = 0; rank < j->ranks; rank++)
        for (int i = 0; i < j->ranks; i++)
            j->code[rank][i] =
                vec_encode(j->wire, vec_bits(1.0f + (float)vec_below(r, 2)), TRN_NEAREST_EVEN, TRN_SATURATE, 0);
    for (int i = 0; i < j->ranks; i++)
        j->code[vec_below(r, (uint32_t)j->ranks)][i] =
            vec_encode(j->wire, vec_bits(large), TRN_NEAREST_EVEN, TRN_SATURATE, 0);
}

static void special(job *j, vec_random *r)
{
    static const uint32_t value[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x80000000u, 0x00000000u, 0x7f7fffffu };
    normal(j, r);
    for (int i = 0; i < j->ranks; i++)
        for (int n = 0; n < 2; n++) {
            const uint32_t rank = vec_below(r, (uint32_t)j->ranks), x = value[vec_below(r, 6)];
            j->code[rank][i] = vec_encode(j->wire, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        }
    for (int rank = 0; rank < j->ranks; rank++)
        j->code[rank][0] = vec_encode(j->wire, 0x80000000u, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
}

/* The sum of each element, as all ranks have it. */
static void reduce(const vec_file *f, const job *j, uint32_t *sum)
{
    static unsigned char bytes[MOST_RANKS][MOST_RANKS * 4];
    const size_t size = trn_format_bytes(j->wire->format);
    const trn_topology net = trn_topology_ring(j->ranks, 100e9, 1e-6);
    trn_tensor view[MOST_RANKS];
    trn_error error;
    for (int rank = 0; rank < j->ranks; rank++) {
        for (int i = 0; i < j->ranks; i++) memcpy(&bytes[rank][(size_t)i * size], &j->code[rank][i], size);
        view[rank] = trn_tensor_1d(j->wire->format, bytes[rank], j->ranks);
    }
    trn_collective_args args = { .net = &net, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING, .error = &error };
    args.src = args.dst = view;
    if (trn_collective_run(&args) != TRN_OK) vec_fail("%s: %s", f->name, error.text);
    for (int i = 0; i < j->ranks; i++) {
        sum[i] = 0;
        memcpy(&sum[i], &bytes[0][(size_t)i * size], size);
    }
}

static void put(vec_file *f, const job *j, const char *kind)
{
    uint32_t sum[MOST_RANKS];
    reduce(f, j, sum);
    const int first = j->ranks > 16 ? j->ranks - 16 : 0; /* enough owners of a large ring */
    for (int i = first; i < j->ranks; i++) {
        vec_begin(f, kind);
        vec_word(f, 2, (uint64_t)i);
        for (int rank = 0; rank < j->ranks; rank++) vec_word(f, vec_digits(j->wire), j->code[rank][i]);
        vec_arrow(f);
        vec_word(f, vec_digits(j->wire), sum[i]);
        vec_end(f);
    }
}

static void make_ring(const vec_format *wire, int ranks)
{
    static job j;
    char in[64], out[32];
    vec_file f = vec_open("all_reduce", "collective/ring.%s.%d_ranks", wire->name, ranks);
    vec_random r = { 47, (uint64_t)ranks, 0 };
    j.wire = wire;
    j.ranks = ranks;
    snprintf(in, sizeof in, "owner/2 x[%d]/%d", ranks, vec_digits(wire));
    snprintf(out, sizeof out, "sum/%d", vec_digits(wire));
    vec_head(&f, "algorithm", "ring");
    vec_head(&f, "ranks", "%d", ranks);
    vec_head_format(&f, "wire", wire);
    vec_columns(&f, in, out);
    vec_head_nan(&f, wire);
    vec_head(&f, "rule",
             "x[r] is what rank r has of an element that rank 'owner' reduces, ranks being numbered round the "
             "ring; the sum begins with rank owner + 1 and takes owner + 2, ... owner - 1, owner, modulo the "
             "number of ranks");
    vec_head(&f, "rule",
             "each addition is in binary32, and its result is rounded to the wire's format, nearest even, "
             "overflow default; subnormal numbers are kept; then every rank gets the owner's code");
    vec_known(&f, "assumed",
              "Neuron SDK, neuron-runtime/explore/intranode-collective-comm.rst: rings, documented; NKI, "
              "dma_compute: float32 additions and one cast, documented; which rank begins, and a rounding "
              "each step: assumed");
    vec_head(&f, "seed", "%llu", (unsigned long long)r.seed);
    for (int i = 0; i < (ranks > 8 ? 3 : 8); i++) normal(&j, &r), put(&f, &j, "normal distribution");
    for (int i = 0; i < (ranks > 8 ? 2 : 6); i++) one_large(&j, &r), put(&f, &j, "one large number among small ones");
    for (int i = 0; i < (ranks > 8 ? 2 : 6); i++) special(&j, &r), put(&f, &j, "infinities, NaN, zeros of both signs");
    vec_close(&f);
}

void vec_make_collectives(void)
{
    static const int ranks[] = { 2, 3, 4, 8, 16, 64 };
    for (int i = 0; i < 6; i++) make_ring(vec_format_named("bfloat16"), ranks[i]);
    make_ring(vec_format_named("float16"), 4);
    make_ring(vec_format_named("float8_e4m3"), 4);
}
