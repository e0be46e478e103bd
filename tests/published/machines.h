/* machines.h - chips and systems as their pages print them, never computed from the tables.
 * SPDX-License-Identifier: MIT
 */
#ifndef PUBLISHED_MACHINES_H
#define PUBLISHED_MACHINES_H

#include "trnmath/trn_spec.h"

static const struct {
    trn_generation generation;
    int cores, dma_engines, cc_cores;
    double sbuf_mib, hbm_gib, hbm_tb_per_s, dma_tb_per_s, f32, bf16, f8, mx, int8, sparse;
} published_chips[] = {
    { TRN_TRAINIUM1, 2, 32, 6, 48, 32, 0.82, 0.87, 47.5, 190, 190, 0, 380, 0 },
    { TRN_TRAINIUM2, 8, 128, 16, 224, 96, 2.9, 3.48, 181, 667, 1299, 0, 0, 2563 },
    { TRN_TRAINIUM3, 8, 128, 16, 256, 144, 4.9, 4.92, 183, 671, 0, 2517, 0, 2517 },
};
enum { PUBLISHED_CHIPS = sizeof published_chips / sizeof published_chips[0] };

/* As printed, with the unit of the last digit; 0 units = exact, a negative value = not printed. */
typedef struct printed {
    double value, unit;
} printed;

static const struct {
    trn_system system;
    int chips;
    double cores, ranks;
    printed bf16_pf, f8_pf, f32_pf, sparse_pf, hbm_gib, hbm_tb_per_s, efa_gbit_per_s, vcpus, host_gib;
} published_systems[] = {
    /* Trainium1's HBM rate: the pages print the digits of 13,120 with GiB/s and with GB/s; see the alternatives. */
    { TRN_TRN1_2XLARGE, 1, 2, 2, { 0.190, 0.001 }, { 0.190, 0.001 }, { 0.0475, 0.0001 }, { -1, 0 }, { 32, 0 },
      { 0.82, 0.001 }, { 25, 0 }, { 8, 0 }, { 32, 0 } },
    { TRN_TRN1_32XLARGE, 16, 32, 32, { 3.04, 0.01 }, { 3.04, 0.01 }, { 0.76, 0.01 }, { -1, 0 }, { 512, 0 },
      { 13.12, 0.01 }, { 800, 0 }, { 128, 0 }, { 512, 0 } },
    { TRN_TRN1N_32XLARGE, 16, 32, 32, { 3.04, 0.01 }, { 3.04, 0.01 }, { 0.76, 0.01 }, { -1, 0 }, { 512, 0 },
      { 13.12, 0.01 }, { 1600, 0 }, { 128, 0 }, { 512, 0 } },
    { TRN_TRN2_48XLARGE, 16, 128, 64, { 10.7, 0.1 }, { 20.8, 0.1 }, { 2.9, 0.1 }, { 41, 1 }, { 1536, 0 },
      { 46.4, 0.1 }, { 3200, 0 }, { 192, 0 }, { 2048, 0 } },
    { TRN_TRN2U_48XLARGE, 16, 128, 64, { 10.7, 0.1 }, { 20.8, 0.1 }, { 2.9, 0.1 }, { 41, 1 }, { 1536, 0 },
      { 46.4, 0.1 }, { 3200, 0 }, { 192, 0 }, { 2048, 0 } },
    /* The page multiplies rounded figures here: 4 x 10.7 and 4 x 20.8. */
    { TRN_TRN2_ULTRASERVER, 64, 512, 256, { 42.8, 0.4 }, { 83.2, 0.4 }, { 11.6, 0.1 }, { 164, 1 }, { 6144, 0 },
      { 185.6, 0.1 }, { 12800, 0 }, { 768, 0 }, { 8192, 0 } },
    { TRN_TRN3_GEN1_ULTRASERVER, 64, 512, 256, { 42.944, 0.001 }, { 161.088, 0.001 }, { 11.712, 0.001 },
      { 161, 1 }, { 9216, 0 }, { 313.6, 0.1 }, { 12800, 0 }, { 768, 0 }, { 8192, 0 } },
    { TRN_TRN3_GEN2_ULTRASERVER, 144, 1152, 576, { 96.624, 0.001 }, { 362.448, 0.001 }, { 26.352, 0.001 },
      { 362, 1 }, { 20736, 0 }, { 705.6, 0.1 }, { 28800, 0 }, { 2304, 0 }, { 27648, 0 } },
    { TRN_TRN1_ULTRACLUSTER, 30000, 60000, 60000, { 5700, 100 }, { -1, 0 }, { -1, 0 }, { -1, 0 }, { -1, 0 },
      { -1, 0 }, { -1, 0 }, { -1, 0 }, { -1, 0 } },
    { TRN_PROJECT_RAINIER, 400000, 3200000, 1600000, { 267000, 1000 }, { 520000, 1000 }, { -1, 0 },
      { 1025000, 1000 }, { -1, 0 }, { -1, 0 }, { 80e6, 0 }, { -1, 0 }, { -1, 0 } }, /* EFA: 200 Gbit/s per chip */
};
enum { PUBLISHED_SYSTEMS = sizeof published_systems / sizeof published_systems[0] };

/* The vendor's NeuronLink figure counts both directions. */
static const double published_both_ways_gb_per_s[] = { 0, 384, 768, 1024, 1024, 1280, 2304, 2304, 384, 1280 };

#endif /* PUBLISHED_MACHINES_H */
