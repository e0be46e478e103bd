/* machine/spec_system_rows.h - numbers of chips, servers and systems, each with its source.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_SYSTEM_ROWS_H
#define TRNI_MACHINE_SPEC_SYSTEM_ROWS_H

#include "spec_pages.h"

/* Rows are lists of F(field, value, how it is known, where), in the order of the fields. */

/* ---- chips ---- */

#define TRNI_CHIP_V2(F)                                                                                              \
    F(cores, 2, DOCUMENTED, TRNI_CHIP1),                                                                             \
    F(cores_per_logical_core, 1, DOCUMENTED, TRNI_LNC),                                                              \
    F(cc_cores, 6, DOCUMENTED, TRNI_CHIP1),                                                                          \
    F(hbm_bytes, 32 * TRNI_GIB, DOCUMENTED, TRNI_CHIP1),                                                             \
    F(hbm_bytes_per_s, 820e9, DOCUMENTED, TRNI_CHIP1),                                                               \
    F(f32_flops_per_s, 47.5e12, DOCUMENTED, TRNI_CHIP1),                                                             \
    F(bf16_flops_per_s, 190e12, DOCUMENTED, TRNI_CHIP1),                                                             \
    F(f8_flops_per_s, 190e12, DOCUMENTED, TRNI_CHIP1 " (cFP8)"),                                                     \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_CHIP1 " (none)"),                                                          \
    F(int8_ops_per_s, 380e12, DOCUMENTED, TRNI_CHIP1),                                                               \
    F(sparse_bf16_flops_per_s, 0, DOCUMENTED, TRNI_CHIP1 " (none)"),                                                 \
    F(sparse_f8_flops_per_s, 0, DOCUMENTED, TRNI_CHIP1 " (none)")

#define TRNI_CHIP_V3(F)                                                                                              \
    F(cores, 8, DOCUMENTED, TRNI_CHIP2),                                                                             \
    F(cores_per_logical_core, 2, DOCUMENTED, TRNI_LNC),                                                              \
    F(cc_cores, 16, DOCUMENTED, TRNI_CHIP2),                                                                         \
    F(hbm_bytes, 96 * TRNI_GIB, DOCUMENTED, TRNI_CHIP2),                                                             \
    F(hbm_bytes_per_s, 2.9e12, DOCUMENTED, TRNI_CHIP2),                                                              \
    F(f32_flops_per_s, 181e12, DOCUMENTED, TRNI_CHIP2),                                                              \
    F(bf16_flops_per_s, 667e12, DOCUMENTED, TRNI_CHIP2),                                                             \
    F(f8_flops_per_s, 1299e12, DOCUMENTED, TRNI_CHIP2),                                                              \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_CHIP2 " (none)"),                                                          \
    F(int8_ops_per_s, 0, DOCUMENTED, TRNI_CHIP2 " (none)"),                                                          \
    F(sparse_bf16_flops_per_s, 2563e12, DOCUMENTED, TRNI_CHIP2),                                                     \
    F(sparse_f8_flops_per_s, 2563e12, DOCUMENTED, TRNI_CHIP2)

#define TRNI_CHIP_V4(F)                                                                                              \
    F(cores, 8, DOCUMENTED, TRNI_CHIP3),                                                                             \
    F(cores_per_logical_core, 2, DOCUMENTED, TRNI_LNC),                                                              \
    F(cc_cores, 16, DOCUMENTED, TRNI_CHIP3),                                                                         \
    F(hbm_bytes, 144 * TRNI_GIB, DOCUMENTED, TRNI_CHIP3),                                                            \
    F(hbm_bytes_per_s, 4.9e12, DOCUMENTED, TRNI_CHIP3),                                                              \
    F(f32_flops_per_s, 183e12, DOCUMENTED, TRNI_CHIP3),                                                              \
    F(bf16_flops_per_s, 671e12, DOCUMENTED, TRNI_CHIP3),                                                             \
    F(f8_flops_per_s, 2517e12, DOCUMENTED, TRNI_CHIP3 ", table of generations (the list above it says MXFP8)"),      \
    F(mx_flops_per_s, 2517e12, DOCUMENTED, TRNI_CHIP3),                                                              \
    F(int8_ops_per_s, 0, DOCUMENTED, TRNI_CHIP3 " (none)"),                                                          \
    F(sparse_bf16_flops_per_s, 2517e12, DOCUMENTED, TRNI_CHIP3),                                                     \
    F(sparse_f8_flops_per_s, 0, DOCUMENTED, TRNI_CHIP3 " (lists 16-bit formats only)")

/* ---- servers ---- */

/* What several servers share. `to` is server, rack or peer. */
#define TRNI_NO_LINKS(F, to, page)                                                                                   \
    F(to##_links, 0, DOCUMENTED, page),                                                                              \
    F(to##_link_bytes_per_s, 0, DOCUMENTED, page)

#define TRNI_TORUS(F, rate, known, where)                                                                            \
    F(server_links, 4, DOCUMENTED, "Neuron driver, neighbour tables (4 x 4 torus)"),                                 \
    F(server_link_bytes_per_s, rate, known, where)

#define TRNI_SWITCHED(F)                                                                                             \
    F(server_link_bytes_per_s, 512e9, DERIVED, "64 lanes of 8 GB/s (" TRNI_SA3 ")"),                                 \
    F(rack_links, 1, DOCUMENTED, TRNI_TRN3 " (one switch per rack)"),                                                \
    F(rack_link_bytes_per_s, 512e9, DERIVED, "64 active of 80 lanes of 8 GB/s (" TRNI_SA3 ")"),                      \
    F(peer_links, 1, DOCUMENTED, TRNI_TRN3),                                                                         \
    F(peer_link_bytes_per_s, 128e9, DERIVED, "16 lanes of 8 GB/s (" TRNI_SA3 "); " TRNI_TRN3 " agrees")

#define TRNI_SERVER_TRN1_2XLARGE(F)                                                                                  \
    F(chips, 1, DOCUMENTED, TRNI_TRN1),                                                                              \
    F(efa_bits_per_s, 25e9, DOCUMENTED, TRNI_TRN1 " (up to)"),                                                       \
    F(vcpus, 8, DOCUMENTED, TRNI_TRN1),                                                                              \
    F(host_bytes, 32 * TRNI_GIB, DOCUMENTED, TRNI_TRN1),                                                             \
    TRNI_NO_LINKS(F, server, TRNI_TRN1),                                                                             \
    TRNI_NO_LINKS(F, rack, TRNI_TRN1),                                                                               \
    TRNI_NO_LINKS(F, peer, TRNI_TRN1)

#define TRNI_SERVER_TRN1_32XLARGE(F)                                                                                 \
    F(chips, 16, DOCUMENTED, TRNI_TRN1),                                                                             \
    F(efa_bits_per_s, 800e9, DOCUMENTED, TRNI_TRN1),                                                                 \
    F(vcpus, 128, DOCUMENTED, TRNI_TRN1),                                                                            \
    F(host_bytes, 512 * TRNI_GIB, DOCUMENTED, TRNI_TRN1),                                                            \
    TRNI_TORUS(F, 48e9, DERIVED, "384 GB/s per chip over 4 links and 2 directions (" TRNI_TRN1 ")"),                 \
    TRNI_NO_LINKS(F, rack, TRNI_TRN1),                                                                               \
    TRNI_NO_LINKS(F, peer, TRNI_TRN1)

#define TRNI_SERVER_TRN1N_32XLARGE(F)                                                                                \
    F(chips, 16, DOCUMENTED, TRNI_TRN1),                                                                             \
    F(efa_bits_per_s, 1600e9, DOCUMENTED, TRNI_TRN1),                                                                \
    F(vcpus, 128, DOCUMENTED, TRNI_TRN1),                                                                            \
    F(host_bytes, 512 * TRNI_GIB, DOCUMENTED, TRNI_TRN1),                                                            \
    TRNI_TORUS(F, 96e9, DERIVED, "768 GB/s per chip over 4 links and 2 directions (" TRNI_TRN1 ")"),                 \
    TRNI_NO_LINKS(F, rack, TRNI_TRN1),                                                                               \
    TRNI_NO_LINKS(F, peer, TRNI_TRN1)

#define TRNI_SERVER_TRN2(F)                                                                                          \
    F(chips, 16, DOCUMENTED, TRNI_TRN2),                                                                             \
    F(efa_bits_per_s, 3200e9, DOCUMENTED, TRNI_TRN2),                                                                \
    F(vcpus, 192, DOCUMENTED, TRNI_TRN2),                                                                            \
    F(host_bytes, 2048 * TRNI_GIB, DOCUMENTED, TRNI_TRN2),                                                           \
    TRNI_TORUS(F, 128e9, THIRD_PARTY, TRNI_SA2 " (fits the 1,024 GB/s both ways of " TRNI_TRN2 ")"),                 \
    TRNI_NO_LINKS(F, rack, TRNI_TRN2)

#define TRNI_SERVER_TRN2_48XLARGE(F)                                                                                 \
    TRNI_SERVER_TRN2(F),                                                                                             \
    TRNI_NO_LINKS(F, peer, TRNI_TRN2)

#define TRNI_SERVER_TRN2U_48XLARGE(F)                                                                                \
    TRNI_SERVER_TRN2(F),                                                                                             \
    F(peer_links, 2, DOCUMENTED, "Neuron driver, neighbour tables (ring of four servers)"),                          \
    F(peer_link_bytes_per_s, 64e9, THIRD_PARTY, TRNI_SA2 " (fits the 256 GB/s both ways of " TRNI_TRN2 ")")

#define TRNI_SERVER_TRN3_GEN1(F)                                                                                     \
    F(chips, 16, DOCUMENTED, TRNI_TRN3),                                                                             \
    F(efa_bits_per_s, 3200e9, DERIVED, "12,800 Gbit/s over 4 servers (" TRNI_TRN3 ")"),                              \
    F(vcpus, 192, DERIVED, "768 over 4 servers (" TRNI_TRN3 ")"),                                                    \
    F(host_bytes, 2048 * TRNI_GIB, DERIVED, "8,192 GiB over 4 servers (" TRNI_TRN3 ")"),                             \
    F(server_links, 1, THIRD_PARTY, TRNI_SA3 " (the two chips of a tray)"),                                          \
    TRNI_SWITCHED(F)

#define TRNI_SERVER_TRN3_GEN2(F)                                                                                     \
    F(chips, 4, DOCUMENTED, TRNI_TRN3),                                                                              \
    F(efa_bits_per_s, 800e9, DERIVED, "28,800 Gbit/s over 36 servers (" TRNI_TRN3 ")"),                              \
    F(vcpus, 64, DERIVED, "2,304 over 36 servers (" TRNI_TRN3 ")"),                                                  \
    F(host_bytes, 768 * TRNI_GIB, DERIVED, "27,648 GiB over 36 servers (" TRNI_TRN3 ")"),                            \
    F(server_links, 1, DOCUMENTED, TRNI_TRN3 " (one switch per server)"),                                            \
    TRNI_SWITCHED(F)

/* enumerator, name, chip, fields */
#define TRNI_SERVER_LIST(X)                                                                                          \
    X(TRNI_AT_TRN1_2XLARGE, "trn1.2xlarge", 0, TRNI_SERVER_TRN1_2XLARGE)                                             \
    X(TRNI_AT_TRN1_32XLARGE, "trn1.32xlarge", 0, TRNI_SERVER_TRN1_32XLARGE)                                          \
    X(TRNI_AT_TRN1N_32XLARGE, "trn1n.32xlarge", 0, TRNI_SERVER_TRN1N_32XLARGE)                                       \
    X(TRNI_AT_TRN2_48XLARGE, "trn2.48xlarge", 1, TRNI_SERVER_TRN2_48XLARGE)                                          \
    X(TRNI_AT_TRN2U_48XLARGE, "trn2u.48xlarge", 1, TRNI_SERVER_TRN2U_48XLARGE)                                       \
    X(TRNI_AT_TRN3_GEN1, "trn3 gen1 server", 2, TRNI_SERVER_TRN3_GEN1)                                               \
    X(TRNI_AT_TRN3_GEN2, "trn3 gen2 server", 2, TRNI_SERVER_TRN3_GEN2)

/* ---- systems ---- */

/* enumerator, name, title, server, how many, how many in one NeuronLink domain, how that is known, where */
#define TRNI_SYSTEM_LIST(X)                                                                                          \
    X(TRN_TRN1_2XLARGE, "trn1.2xlarge", "Trn1.2xlarge", TRNI_AT_TRN1_2XLARGE, 1, 1, DOCUMENTED, TRNI_TRN1)           \
    X(TRN_TRN1_32XLARGE, "trn1.32xlarge", "Trn1.32xlarge", TRNI_AT_TRN1_32XLARGE, 1, 1, DOCUMENTED, TRNI_TRN1)       \
    X(TRN_TRN1N_32XLARGE, "trn1n.32xlarge", "Trn1n.32xlarge", TRNI_AT_TRN1N_32XLARGE, 1, 1, DOCUMENTED, TRNI_TRN1)   \
    X(TRN_TRN2_48XLARGE, "trn2.48xlarge", "trn2.48xlarge", TRNI_AT_TRN2_48XLARGE, 1, 1, DOCUMENTED, TRNI_TRN2)       \
    X(TRN_TRN2U_48XLARGE, "trn2u.48xlarge", "trn2u.48xlarge", TRNI_AT_TRN2U_48XLARGE, 1, 1, DOCUMENTED, TRNI_TRN2)   \
    X(TRN_TRN2_ULTRASERVER, "trn2-ultraserver", "Trn2 UltraServer", TRNI_AT_TRN2U_48XLARGE, 4, 4, DOCUMENTED,        \
      TRNI_TRN2)                                                                                                     \
    X(TRN_TRN3_GEN1_ULTRASERVER, "trn3-gen1-ultraserver", "Trn3 Gen1 UltraServer", TRNI_AT_TRN3_GEN1, 4, 4,          \
      DOCUMENTED, TRNI_TRN3)                                                                                         \
    X(TRN_TRN3_GEN2_ULTRASERVER, "trn3-gen2-ultraserver", "Trn3 Gen2 UltraServer", TRNI_AT_TRN3_GEN2, 36, 36,        \
      DOCUMENTED, TRNI_TRN3)                                                                                         \
    X(TRN_TRN1_ULTRACLUSTER, "trn1-ultracluster", "Trn1 UltraCluster", TRNI_AT_TRN1_32XLARGE, 1875, 1, DERIVED,      \
      "over 30,000 chips (EC2 Trn1 page, 2022) in servers of 16")                                                    \
    X(TRN_PROJECT_RAINIER, "project-rainier", "Project Rainier", TRNI_AT_TRN2U_48XLARGE, 25000, 4, DERIVED,          \
      "400,000 chips (" TRNI_SA2 ") in UltraServers of 64")

#endif /* TRNI_MACHINE_SPEC_SYSTEM_ROWS_H */
