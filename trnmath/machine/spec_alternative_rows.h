/* machine/spec_alternative_rows.h - what sources say instead of the tables, and why the tables do not.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_ALTERNATIVE_ROWS_H
#define TRNI_MACHINE_SPEC_ALTERNATIVE_ROWS_H

#include "spec_pages.h"

/* system, level, field, the other value, how it is known, where, why the table has not taken it */
#define TRNI_ALTERNATIVE_LIST(X)                                                                                     \
    X(TRN_TRN1_32XLARGE, "chip", "bf16_flops_per_s", 210e12, DOCUMENTED, "EC2 Trn1 page, 2022",                      \
      "the vendor has rated Trainium1 down since; its chip page now says 190")                                       \
    X(TRN_TRN1_32XLARGE, "chip", "bf16_flops_per_s", 191e12, DOCUMENTED, TRNI_CHIP2 ", comparison table",            \
      "a rounding in the table that compares Trainium1 with Trainium2")                                              \
    X(TRN_TRN1_32XLARGE, "chip", "f32_flops_per_s", 52.5e12, DOCUMENTED, "EC2 Trn1 page, 2022",                      \
      "a quarter of the old 210")                                                                                    \
    X(TRN_TRN1_32XLARGE, "chip", "f32_flops_per_s", 48e12, DOCUMENTED, TRNI_CHIP2 ", comparison table",              \
      "a rounding in the table that compares Trainium1 with Trainium2")                                              \
    X(TRN_TRN1_32XLARGE, "chip", "f8_flops_per_s", 210e12, DOCUMENTED, "EC2 Trn1 page, 2022",                        \
      "the same old rating as BF16")                                                                                 \
    X(TRN_TRN1_32XLARGE, "chip", "int8_ops_per_s", 420e12, DOCUMENTED, "EC2 Trn1 page, 2022",                        \
      "twice the old 210")                                                                                           \
    X(TRN_TRN1_32XLARGE, "chip", "hbm_bytes", 32e9, DOCUMENTED, "EC2 Trn1 page, prose",                              \
      "prose writes GB where tables write GiB; memory comes in powers of two")                                       \
    X(TRN_TRN1_32XLARGE, "chip", "hbm_bytes_per_s", 820 * TRNI_GIB, DOCUMENTED, TRNI_TRN1 ", table",                 \
      "the comparison table rounds it to 0.8 TB/s, which 880e9 does not, and bandwidth is decimal elsewhere")        \
    X(TRN_TRN1_32XLARGE, "server", "server_link_bytes_per_s", 48 * TRNI_GIB, DOCUMENTED, TRNI_TRN1 ", older",        \
      "an older revision labels the column GiB/s; the chip page says 384 GB/s")                                      \
    X(TRN_TRN1_2XLARGE, "server", "efa_bits_per_s", 12.5e9, DOCUMENTED, TRNI_EC2,                                    \
      "the same vendor, for a while, 3.125 sustained, and no EFA; " TRNI_TRN1 " says up to 25")                      \
    X(TRN_TRN1_32XLARGE, "core", "dma_engine_peak_bytes_per_s", 27 * TRNI_GIB, DOCUMENTED, "Neuron SDK, NKI guides", \
      "one guide writes GiB/s; the DMA overview says 27.2 GB/s")                                                     \
    X(TRN_TRN1_32XLARGE, "total", "dma_chip_peak_bytes_per_s", 1e12, DOCUMENTED, TRNI_CHIP1 ", and launch pages",    \
      "32 engines of 27.2 GB/s are 870 GB/s; of their 17 in practice, 544")                                          \
    X(TRN_TRN1_ULTRACLUSTER, "total", "chips", 100000, DOCUMENTED, "Neuron SDK, trn1-arch.rst of 2026",              \
      "the cluster has grown; the default is the size it was announced with")                                        \
    X(TRN_TRN2_48XLARGE, "chip", "bf16_flops_per_s", 650e12, THIRD_PARTY, "Latitude Design Systems, 2024",           \
      "a summary of an article that itself says 667, as the vendor does")                                            \
    X(TRN_TRN2_48XLARGE, "chip", "bf16_flops_per_s", 632e12, DERIVED, "8 cores of 79 (" TRNI_NKI2 ")",               \
      "chip figures exceed the sum of the tensor engines; the chip page is what is advertised")                      \
    X(TRN_TRN2_48XLARGE, "chip", "f8_flops_per_s", 1264e12, DERIVED, "8 cores of 158 (" TRNI_NKI2 ")",               \
      "chip figures exceed the sum of the tensor engines; the chip page is what is advertised")                      \
    X(TRN_TRN2_48XLARGE, "chip", "sparse_bf16_flops_per_s", 2528e12, DERIVED, "8 cores of 316 (" TRNI_NKI2 ")",      \
      "chip figures exceed the sum of the tensor engines; the chip page is what is advertised")                      \
    X(TRN_TRN2_48XLARGE, "chip", "hbm_bytes", 96e9, DOCUMENTED, "EC2 Trn2 page, prose",                              \
      "prose writes GB where tables write GiB; memory comes in powers of two")                                       \
    X(TRN_TRN2_48XLARGE, "chip", "hbm_bytes_per_s", 3.0e12, DOCUMENTED, TRNI_NKI2,                                   \
      "a rounding of the 2.9 TB/s of the chip page")                                                                 \
    X(TRN_TRN2_48XLARGE, "total", "dma_chip_peak_bytes_per_s", 3.5e12, DOCUMENTED, TRNI_CHIP2,                       \
      "a rounding: 128 engines of 27.2 GB/s are 3.48 TB/s; of their 23 in practice, 2.94")                           \
    X(TRN_TRN2_48XLARGE, "total", "hbm_bytes_per_s", 46e12, DOCUMENTED, "note on EC2 Trn2 instances",                \
      "a rounding: 16 chips of 2.9 TB/s are 46.4")                                                                   \
    X(TRN_TRN2_48XLARGE, "chip", "cc_cores", 20, DOCUMENTED, TRNI_NKI2,                                              \
      "two for each core give the 16 of the chip page; 20 fits a comparison table (3.3 times the 6 of Trainium1)")   \
    X(TRN_TRN2_48XLARGE, "server", "server_link_bytes_per_s", 256e9, DERIVED, "1,024 GB/s over 4 links",             \
      "the vendor's 1,024 is the sum of both directions; read as one-way it makes the links twice too fast")         \
    X(TRN_TRN2_48XLARGE, "server", "efa_bits_per_s", 12800e9, THIRD_PARTY, TRNI_SA2,                                 \
      "trays with 800 Gbit/s per chip may exist, but EC2 offers 3,200 per instance")                                 \
    X(TRN_TRN2_ULTRASERVER, "server", "peer_links", 0, DOCUMENTED, TRNI_NKI2,                                        \
      "that guide draws four NeuronLinks per chip and leaves out the two between servers")                           \
    X(TRN_TRN2_ULTRASERVER, "total", "efa_bits_per_s", 3200e9, DOCUMENTED, "EC2 Trn2 page, table",                   \
      "the table repeats the figure of one instance; four of them have 12,800")                                      \
    X(TRN_PROJECT_RAINIER, "total", "chips", 500000, THIRD_PARTY, "press, 2025-10",                                  \
      "nearly that many ran ten months later; the default is the announced size")                                    \
    X(TRN_PROJECT_RAINIER, "total", "chips", 1000000, THIRD_PARTY, "press, 2025-10",                                 \
      "planned for the end of 2025")                                                                                 \
    X(TRN_TRN3_GEN1_ULTRASERVER, "chip", "hbm_bytes", 144e9, DOCUMENTED, "EC2 Trn3 page, prose",                     \
      "prose and marketing write GB where tables write GiB; memory comes in powers of two")                          \
    X(TRN_TRN3_GEN1_ULTRASERVER, "chip", "hbm_bytes_per_s", 4.7e12, DOCUMENTED, TRNI_NKI3,                           \
      "the chip page and the UltraServer totals (313.6 and 705.6 TB/s) say 4.9")                                     \
    X(TRN_TRN3_GEN1_ULTRASERVER, "total", "dma_chip_peak_bytes_per_s", 4.9e12, DOCUMENTED, TRNI_CHIP3,               \
      "a rounding: 128 engines of 38.4 GB/s are 4.92 TB/s; of their 33 in practice, 4.22")                           \
    X(TRN_TRN3_GEN1_ULTRASERVER, "chip", "f8_flops_per_s", 1258.2912e12, DERIVED, "8 cores, " TRNI_ISA ", double_row",\
      "what FP8 without block scales reaches: two products a PE; the 2,517 in print is the rate of MXFP8")           \
    X(TRN_TRN3_GEN1_ULTRASERVER, "core", "f8_products", 1, DERIVED, TRNI_NKI3 ", widths of the engines",             \
      "2 x 128 in for all that is not MX, where Trainium2's guide has 4 x 128 for FP8; " TRNI_ISA " says twice")     \
    X(TRN_TRN3_GEN1_ULTRASERVER, "chip", "cc_cores", 20, DOCUMENTED, TRNI_NKI3,                                      \
      "two for each core give the 16 of the chip page")                                                              \
    X(TRN_TRN3_GEN1_ULTRASERVER, "chip", "bf16_flops_per_s", 632e12, DERIVED, "8 cores of 79 (" TRNI_NKI3 ")",       \
      "chip figures exceed the sum of the tensor engines; the chip page is what is advertised")                      \
    X(TRN_TRN3_GEN1_ULTRASERVER, "server", "chips", 4, DOCUMENTED, TRNI_TRN3 ", connectivity text",                  \
      "that text describes the 4-chip servers of Gen2; the tables give Gen1 four servers of 16")                     \
    X(TRN_TRN3_GEN1_ULTRASERVER, "total", "hbm_bytes", 9e12, DOCUMENTED, "EC2 Trn3 page, prose",                     \
      "rounded; the table says 9,216 GiB")                                                                           \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "hbm_bytes", 20e12, DOCUMENTED, "EC2 Trn3 page, prose",                    \
      "rounded; the table says 20,736 GiB")                                                                          \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "hbm_bytes", 20.7e12, DOCUMENTED, "EC2 Trn3 announcement",                 \
      "144 chips of 144 GB, where the table says GiB")                                                               \
    X(TRN_TRN3_GEN2_ULTRASERVER, "server", "server_link_bytes_per_s", 256e9, DOCUMENTED, TRNI_TRN3,                  \
      "4 x Gen6 x8; fits the lanes that were counted only if it is per die, two dies to a chip")                     \
    X(TRN_TRN3_GEN2_ULTRASERVER, "server", "rack_link_bytes_per_s", 320e9, DOCUMENTED, TRNI_TRN3,                    \
      "5 x Gen6 x8; fits the lanes that were counted only if it is per die, spare lanes included")                   \
    X(TRN_TRN3_GEN2_ULTRASERVER, "server", "rack_link_bytes_per_s", 640e9, DERIVED, "80 lanes of 8 GB/s",            \
      "16 of the 80 backplane lanes are spares")                                                                     \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 704e9, DOCUMENTED,                          \
      TRNI_TRN3 ", connectivity text", "256 + 320 + 128; the first two probably per die")                            \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1280e9, DOCUMENTED, TRNI_CHIP3,             \
      "2,560 GB/s both ways: all 160 lanes, the 16 spares included")                                                 \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1024 * TRNI_GIB, DOCUMENTED,                \
      TRNI_TRN3 ", table", "2,048 GiB/s both ways: the 128 active lanes inside the rack, with GB written GiB")       \
    X(TRN_TRN3_GEN2_ULTRASERVER, "total", "neuronlink_chip_bytes_per_s", 1.2e12, THIRD_PARTY, TRNI_SA3,              \
      "a rounding of 144 active lanes of 8 GB/s")

#endif /* TRNI_MACHINE_SPEC_ALTERNATIVE_ROWS_H */
