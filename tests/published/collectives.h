/* collectives.h - times of collectives that somebody printed after a run on devices, one row each.
 * SPDX-License-Identifier: MIT
 *
 * None of the pages states the instance type of a sample; where only one fits the ranks and the options it stands here,
 * else the smaller. Sizes are a rank's whole buffer, of all_gather the result. `release`: which software the sample's
 * floor belongs to. `outside`: the row contradicts others of its kind, and how; it is shown and not fitted.
 */
#ifndef PUBLISHED_COLLECTIVES_H
#define PUBLISHED_COLLECTIVES_H

#include "trnmath/trn_collective_cost.h"

typedef struct published_collective {
    trn_system system;
    int chips, ranks_per_chip; /* the first chips of the system, */
    int apart;                 /* or every so many'th of them */
    trn_collective op;
    trn_format wire;
    trn_release release;
    int64_t bytes;
    double us;
    const char *source, *outside;
    int graph; /* 0: nccom-test; 1: inside a graph or kernel; 2: that, and ranks first tell each other their sizes */
} published_collective;

#define PUB_NCCOM "Neuron SDK, nccom-test.rst, "
#define PUB_TWO PUB_NCCOM "2 ranks, all-reduce"
#define PUB_32 PUB_NCCOM "32 ranks, all-gather"
#define PUB_32_NEW PUB_NCCOM "32 ranks, all-gather, --show-input-output-size"
#define PUB_8_NEW PUB_NCCOM "8 ranks, all-gather, --stats"
#define PUB_16 PUB_NCCOM "16 ranks, all-reduce, --show-algorithm"
#define PUB_64 PUB_NCCOM "64 ranks on two instances, all-reduce"
#define PUB_16_WHY \
    "its floor of 300 us is 50 times that of the 32 ranks beside it, and 128 KiB cost 274 us more, 2 MiB 112"
#define PUB_TRN1(chips, op, release, bytes, us, source) \
    { TRN_TRN1_32XLARGE, chips, 2, 1, op, TRN_F32, release, bytes, us, source, NULL, 0 }
#define PUB_TRN2(chips, op, wire, release, bytes, us, source, outside) \
    { TRN_TRN2_48XLARGE, chips, 4, 1, op, wire, release, bytes, us, source, outside, 0 }
#define PUB_2X(bytes, us) \
    { TRN_TRN1_ULTRACLUSTER, 32, 2, 1, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_OLDER, bytes, us, PUB_64, NULL, 0 }
#define PUB_GRAPH(system, chips, op, bytes, us, what, graph) \
    { TRN_##system, chips, 4, 1, TRN_##op, TRN_BF16, TRN_RELEASE_NEWER, bytes, us, \
      "profile of a device, quoted without its page, November 2026: " what, NULL, graph }

static const published_collective published_collectives[] = {
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 1024, 58, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 16384, 58, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 65536, 58, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 262144, 60, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 1048576, 68, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 4194304, 107, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 16777216, 332, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 67108864, 1214, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 268435456, 4750, PUB_TWO),
    PUB_TRN1(1, TRN_ALL_REDUCE, TRN_RELEASE_OLDER, 1073741824, 18930, PUB_TWO),
    { TRN_TRN1_32XLARGE, 1, 2, 1, TRN_ALL_REDUCE, TRN_U8, TRN_RELEASE_OLDER, 33554432, 768, PUB_NCCOM "first example",
      NULL, 0 },
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_OLDER, 1024, 151, PUB_32),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_OLDER, 8192, 149, PUB_32),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_OLDER, 65536, 150, PUB_32),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_OLDER, 524288, 179, PUB_32),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_NEWER, 1024, 6.16, PUB_32_NEW),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_NEWER, 8192, 6.48, PUB_32_NEW),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_NEWER, 65536, 8.17, PUB_32_NEW),
    PUB_TRN1(16, TRN_ALL_GATHER, TRN_RELEASE_NEWER, 524288, 23.16, PUB_32_NEW),
    PUB_TRN2(2, TRN_ALL_GATHER, TRN_F32, TRN_RELEASE_NEWER, 1024, 10.0, PUB_8_NEW, NULL),
    PUB_TRN2(2, TRN_ALL_GATHER, TRN_F32, TRN_RELEASE_NEWER, 8192, 10.22, PUB_8_NEW, NULL),
    PUB_TRN2(2, TRN_ALL_GATHER, TRN_F32, TRN_RELEASE_NEWER, 65536, 11.31, PUB_8_NEW, NULL),
    PUB_TRN2(2, TRN_ALL_GATHER, TRN_F32, TRN_RELEASE_NEWER, 524288, 14.83, PUB_8_NEW, NULL),
    PUB_TRN2(4, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_NEWER, 8192, 299.74, PUB_16, PUB_16_WHY),
    PUB_TRN2(4, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_NEWER, 131072, 574.15, PUB_16, PUB_16_WHY),
    PUB_TRN2(4, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_NEWER, 2097152, 686.32, PUB_16, PUB_16_WHY),
    PUB_TRN2(4, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_NEWER, 33554432, 2754.15, PUB_16, PUB_16_WHY),
    PUB_TRN2(4, TRN_ALL_REDUCE, TRN_F32, TRN_RELEASE_NEWER, 536870912, 9689.51, PUB_16, NULL),
    PUB_TRN2(1, TRN_ALL_REDUCE, TRN_BF16, TRN_RELEASE_NEWER, 1073741824, 12988.8,
             "124 GB/s of bus bandwidth, size assumed", NULL),
    PUB_TRN2(16, TRN_ALL_REDUCE, TRN_BF16, TRN_RELEASE_NEWER, 1073741824, 14782.7,
             "143 GB/s of bus bandwidth, size assumed", NULL),
    PUB_2X(8, 520),           PUB_2X(64, 525),          PUB_2X(512, 782),          PUB_2X(4096, 916),
    PUB_2X(16384, 1031),      PUB_2X(65536, 1315),      PUB_2X(262144, 1311),      PUB_2X(1048576, 1328),
    PUB_2X(2097152, 1329),    PUB_2X(4194304, 1378),    PUB_2X(8388608, 1419),     PUB_2X(16777216, 2138),
    PUB_2X(33554432, 2711),   PUB_2X(67108864, 3963),   PUB_2X(134217728, 6279),   PUB_2X(268435456, 11954),
    PUB_2X(536870912, 21803), PUB_2X(1073741824, 41806),
    { TRN_TRN1_ULTRACLUSTER, 2, 1, 16, TRN_ALL_TO_ALL, TRN_F32, TRN_RELEASE_OLDER, 1048608, 955.05,
      PUB_NCCOM "2 ranks on 2 nodes, alltoallv", NULL, 0 },
    { TRN_TRN1_32XLARGE, 4, 2, 1, TRN_PERMUTE, TRN_U8, TRN_RELEASE_NEWER, 33554432, 894.24,
      PUB_NCCOM "8 ranks, permute within two pairs", NULL, 0 },
    PUB_GRAPH(TRN2_48XLARGE, 16, ALL_REDUCE, 14336, 24.6, "a token's graph, 64 ranks", 1),
    PUB_GRAPH(TRN3_GEN2_ULTRASERVER, 1, ALL_REDUCE, 4096, 6.7, "4 ranks", 1),
    PUB_GRAPH(TRN2_48XLARGE, 1, ALL_GATHER, 4096, 16.3, "all_gather_v, 4 ranks, size assumed", 2),
};
enum { PUBLISHED_COLLECTIVES = sizeof published_collectives / sizeof published_collectives[0] };

enum { PUBLISHED_CHIPS = 32 };

/* Of the system, or of a cluster two servers. */
static inline trn_topology published_net(const published_collective *row)
{
    trn_topology net = trn_topology_of(row->system);
    trn_level *outer = &net.level[net.levels - 1];
    if (row->system != TRN_TRN1_ULTRACLUSTER) return net;
    net.chips = net.chips / outer->size * 2;
    outer->size = 2;
    return net;
}

/* The question of a row; chip[PUBLISHED_CHIPS] and net live as long as it does. */
static inline trn_collective_args published_ask(const published_collective *row, const trn_topology *net, int *chip)
{
    static const int pairs[] = { 1, 0, 3, 2, 4, 5, 6, 7 };
    trn_collective_args a;
    memset(&a, 0, sizeof a);
    a.net = net;
    a.op = row->op;
    a.wire = row->wire;
    a.bytes = row->bytes;
    a.ranks_per_chip = row->ranks_per_chip;
    for (int i = 0; i < row->chips; i++) chip[i] = i * row->apart;
    if (row->chips < net->chips) {
        a.chips = chip;
        a.count = row->chips;
    }
    if (row->op == TRN_PERMUTE) a.targets = pairs;
    a.in_graph = row->graph > 0;
    return a;
}

/* What is expected of a row, and its range. */
static inline trn_status published_cost(const published_collective *row, const trn_collective_args *ask, trn_cost *cost)
{
    trn_collective_args sizes = *ask;
    trn_cost first;
    trn_status status = trn_collective_cost(ask, cost);
    if (status != TRN_OK || row->graph < 2) return status;
    sizes.bytes = 4 * trn_collective_ranks(ask);
    status = trn_collective_cost(&sizes, &first);
    cost->expected_s += first.expected_s;
    cost->expected_low_s += first.expected_low_s;
    cost->expected_high_s += first.expected_high_s;
    return status;
}

#endif /* PUBLISHED_COLLECTIVES_H */
