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
    { TRN_TRAINIUM3, 8, 128, 16, 256, 144, 4.9, 4.92, 183, 671, 2517, 2517, 0, 2517 },
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

/* Instances as the EC2 documentation prints them: GB of drives, Gbit/s of cards and of EBS. */
static const struct {
    trn_system system;
    const char *processor;
    double cpu_cores, threads, drives, drive_gb, reads, writes, cards, card_gbit_per_s, ebs_gbit_per_s;
} published_instances[] = {
    { TRN_TRN1_2XLARGE, "Intel Xeon Ice Lake 8375C", 4, 2, 1, 474, 107500, 45000, 1, 12.5, 20 },
    { TRN_TRN1_32XLARGE, "Intel Xeon Ice Lake 8375C", 64, 2, 4, 1900, 1720000, 720000, 8, 100, 80 },
    { TRN_TRN1N_32XLARGE, "Intel Xeon Ice Lake", 64, 2, 4, 1900, 1720000, 720000, 16, 100, 80 },
    { TRN_TRN2_48XLARGE, "Intel Xeon Sapphire Rapids", 96, 2, 4, 1900, 1720000, 720000, 16, 200, 80 },
    { TRN_TRN2U_48XLARGE, "Intel Xeon Sapphire Rapids", 96, 2, 4, 1900, 1720000, 720000, 16, 200, 80 },
};
enum { PUBLISHED_INSTANCES = sizeof published_instances / sizeof published_instances[0] };

/* NeuronLink as it is printed, in bytes per second one way: worked out by hand, for the readings' own sums. */
static const struct {
    trn_system system;
    const char *of;
    double printed;
    const char *unit;
    double bytes_per_s;
} published_links[] = {
    { TRN_TRN1_32XLARGE, "chip", 384, "GB/s both ways", 192000000000.0 },
    { TRN_TRN1_32XLARGE, "chip", 384, "GiB/s both ways", 206158430208.0 },
    { TRN_TRN1_32XLARGE, "chip", 384, "Gbit/s", 48000000000.0 },
    { TRN_TRN1N_32XLARGE, "chip", 768, "GiB/s both ways", 412316860416.0 },
    { TRN_TRN2_ULTRASERVER, "chip", 1280, "GB/s both ways", 640000000000.0 },
    { TRN_TRN2_ULTRASERVER, "server", 1024, "GB/s both ways", 512000000000.0 },
    { TRN_TRN2_ULTRASERVER, "peer", 256, "GB/s both ways", 128000000000.0 },
    { TRN_TRN2_ULTRASERVER, "link", 128, "GB/s one way", 128000000000.0 },
    { TRN_TRN2_ULTRASERVER, "peer link", 64, "GB/s one way", 64000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "chip", 2560, "GB/s both ways", 1280000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "server and rack", 2048, "GiB/s both ways", 1099511627776.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "server", 256, "GB/s bidirectional", 256000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "rack", 320, "GB/s bidirectional", 320000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "peer", 128, "GB/s bidirectional", 128000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "chip", 704, "GB/s bidirectional", 704000000000.0 },
    { TRN_TRN3_GEN2_ULTRASERVER, "chip", 1.2, "TB/s one way", 1200000000000.0 },
};
enum { PUBLISHED_LINKS = sizeof published_links / sizeof published_links[0] };

/* The vendor's NeuronLink figure counts both directions. */
static const double published_both_ways_gb_per_s[] = { 0, 384, 768, 1024, 1024, 1280, 2304, 2304, 384, 1280 };

#endif /* PUBLISHED_MACHINES_H */
