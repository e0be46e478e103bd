/* wiring.h - distances, links and cuts of the systems as their graphs are published.
 * SPDX-License-Identifier: MIT
 *
 * Sources: the architecture pages of Trn1, Trn2 and Trn3, the driver's neighbour tables, SemiAnalysis on Trainium2
 * (2024) and Trainium3 (2025) for the switches' planes.
 */
#ifndef PUBLISHED_WIRING_H
#define PUBLISHED_WIRING_H

#include "trnmath/trn_topology.h"

typedef struct published_wiring {
    trn_system system;
    const char *preset;
    int chips, links, diameter;
    double mean, bisection_gb;
} published_wiring;

/* Distances and directed links of the published graphs: Gen2, say, has 1, 71 and 71 chips at 1, 2 and 3 links. */
static const published_wiring published_wirings[] = {
    { TRN_TRN1_2XLARGE, "sa", 1, 0, 0, 0, 0 },
    { TRN_TRN1_32XLARGE, "sa", 16, 64, 4, 32.0 / 15, 8 * 48 },
    { TRN_TRN1N_32XLARGE, "sa", 16, 64, 4, 32.0 / 15, 8 * 96 },
    { TRN_TRN2_48XLARGE, "sa", 16, 64, 4, 32.0 / 15, 8 * 128 },
    { TRN_TRN2U_48XLARGE, "sa", 16, 64, 4, 32.0 / 15, 8 * 128 },
    { TRN_TRN2_ULTRASERVER, "sa", 64, 384, 6, 192.0 / 63, 32 * 64 },
    { TRN_TRN3_GEN1_ULTRASERVER, "sa", 64, 256, 3, 154.0 / 63, 32 * 128 },
    { TRN_TRN3_GEN1_ULTRASERVER, "doc", 64, 256, 3, 154.0 / 63, 32 * 128 },
    { TRN_TRN3_GEN1_ULTRASERVER, "spec", 64, 256, 3, 154.0 / 63, 32 * 128 },
    { TRN_TRN3_GEN1_ULTRASERVER, "sa/planes=2", 64, 256, 4, 184.0 / 63, 32 * 128 },
    { TRN_TRN3_GEN1_ULTRASERVER, "doc/planes=2", 64, 256, 4, 184.0 / 63, 32 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "sa", 144, 720, 3, 356.0 / 143, 72 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "doc", 144, 720, 3, 356.0 / 143, 72 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "spec", 144, 720, 3, 356.0 / 143, 72 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "sa/planes=2", 144, 720, 5, 492.0 / 143, 72 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "sa/planes=4", 144, 720, 5, 560.0 / 143, 72 * 128 },
    { TRN_TRN3_GEN2_ULTRASERVER, "spec/planes=4", 144, 720, 5, 560.0 / 143, 72 * 128 },
};

enum { PUBLISHED_WIRINGS = sizeof published_wirings / sizeof published_wirings[0] };

/* The driver's neighbour tables, each row in ascending order. Trainium1's and Trainium2's are the same. */
static const int published_neighbours[16][4] = {
    { 1, 3, 4, 12 },  { 0, 2, 5, 13 },  { 1, 3, 6, 14 },   { 0, 2, 7, 15 },   { 0, 5, 7, 8 },   { 1, 4, 6, 9 },
    { 2, 5, 7, 10 },  { 3, 4, 6, 11 },  { 4, 9, 11, 12 },  { 5, 8, 10, 13 },  { 6, 9, 11, 14 }, { 7, 8, 10, 15 },
    { 0, 8, 13, 15 }, { 1, 9, 12, 14 }, { 2, 10, 13, 15 }, { 3, 11, 12, 14 },
};

static inline bool published_neighbour(int a, int b)
{
    const int *to = published_neighbours[a];
    return to[0] == b || to[1] == b || to[2] == b || to[3] == b;
}

/* Trn1's page: the torus is the hypercube of four dimensions, distances and all, with rows and columns in Gray code. */
static inline int published_hypercube_hops(int a, int b)
{
    static const int gray[4] = { 0, 1, 3, 2 };
    int bits = (gray[a / 4] << 2 | gray[a % 4]) ^ (gray[b / 4] << 2 | gray[b % 4]), ones = 0;
    for (; bits; bits &= bits - 1) ones++;
    return ones;
}

static const int published_distances[5] = { 1, 4, 6, 4, 1 }; /* how many chips are 0, 1, ... links away */

#endif /* PUBLISHED_WIRING_H */
