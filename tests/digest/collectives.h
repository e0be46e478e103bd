/* collectives.h - the digest's section on many chips: the values of every collective by every algorithm.
 * SPDX-License-Identifier: MIT
 */
#ifndef DIGEST_COLLECTIVES_H
#define DIGEST_COLLECTIVES_H

#include <trnmath/trn_collective.h>

#include <tests/digest/inputs.h>

enum { COLLECTIVE_RANKS = 64, COLLECTIVE_ROOM = 3000 };

static uint32_t collective_src[COLLECTIVE_RANKS][COLLECTIVE_ROOM], collective_dst[COLLECTIVE_RANKS][COLLECTIVE_ROOM];

/* One collective over n elements a rank, where the algorithm fits; what it chose, and every rank's result, are
 * hashed. */
static bool collective_one(const trn_topology *net, int cores, trn_collective op, trn_algorithm algorithm,
                           trn_format format, trn_rounding rounding, int n)
{
    trn_tensor src[COLLECTIVE_RANKS], dst[COLLECTIVE_RANKS];
    trn_error error;
    trn_cost cost;
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = net;
    a.op = op;
    a.algorithm = algorithm;
    a.ranks_per_chip = cores;
    a.rounding = rounding;
    a.seed = 11;
    a.bytes = (int64_t)n * (int64_t)trn_format_bytes(format);
    a.src = src;
    a.dst = dst;
    a.error = &error;
    const int ranks = trn_collective_ranks(&a);
    const trn_status costed = trn_collective_cost(&a, &cost);
    hash_int(costed == TRN_OK ? (int64_t)cost.algorithm * 10000 + cost.steps : -(int64_t)costed);
    memset(collective_dst, 0, sizeof collective_dst);
    for (int r = 0; r < ranks; r++) {
        int64_t first, chunk;
        trn_collective_chunk(n, 1, ranks, r, &first, &chunk);
        fill(format, collective_src[r], (size_t)n, (flavour)(r % FLAVOURS));
        src[r] = trn_tensor_1d(format, collective_src[r], op == TRN_ALL_GATHER ? chunk : n);
        dst[r] = trn_tensor_1d(format, collective_dst[r],
                               op == TRN_REDUCE_SCATTER ? chunk : (op == TRN_ALL_TO_ALL ? chunk * ranks : n));
    }
    const trn_status status = trn_collective_run(&a);
    if (status != TRN_OK && status != TRN_EUNSUPPORTED) {
        fprintf(stderr, "digest: %s by %s: %s\n", trn_collective_name(op), trn_algorithm_name(algorithm), error.text);
        return false;
    }
    for (int r = 0; r < ranks; r++)
        hash_bytes(collective_dst[r], (size_t)trn_tensor_elements(dst[r]) * trn_format_bytes(format));
    return true;
}

static bool collectives(void)
{
    static const trn_format format[] = { TRN_BF16, TRN_F32, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2, TRN_TF32 };
    static const int size[] = { 257, 2100, 31, 1 };
    const int box[3] = { 4, 2, 3 };
    const trn_topology net[4] = { trn_topology_of(TRN_TRN2_48XLARGE), trn_topology_ring(7, 1e9, 1e-6),
                                  trn_topology_switch(20, 1e9, 1e-6), trn_topology_torus(3, box, 1e9, 1e-6) };
    const int cores[4] = { 4, 2, 1, 1 };
    int i = 0;
    for (int t = 0; t < 4; t++)
        for (int op = 0; op < TRN_COLLECTIVE_COUNT; op++)
            for (int algorithm = 0; algorithm < TRN_POINT_TO_POINT; algorithm++, i++)
                if (!collective_one(&net[t], cores[t], (trn_collective)op, (trn_algorithm)algorithm, format[i % 6],
                                    i % 5 == 3 ? TRN_STOCHASTIC : TRN_NEAREST_EVEN, size[i % 4]))
                    return false;
    return true;
}

#endif /* DIGEST_COLLECTIVES_H */
