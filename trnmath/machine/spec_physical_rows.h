/* machine/spec_physical_rows.h - what chips and servers are built of, each fact with its source.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_PHYSICAL_ROWS_H
#define TRNI_MACHINE_SPEC_PHYSICAL_ROWS_H

#include "spec_pages.h"

#define TRNI_LATITUDE "Latitude Design Systems on Trainium2, 2024"
#define TRNI_NEXT "The Next Platform, 2025-12"
#define TRNI_REGISTER "The Register on a Trainium3 blade, 2025-12"
#define TRNI_TOM "Tom's Hardware, 2025-12"

/* level, its name, field, unit, value, text (NULL for a number), how it is known, where. What nobody says, has no
 * row. */
#define TRNI_PHYSICAL_LIST(X)                                                                                        \
    X(chip, "Trainium1", dies, "dies", 1, NULL, ASSUMED, "the vendor draws one, and nobody speaks of two")           \
    X(chip, "Trainium1", hbm_stacks, "stacks", 2, NULL, DOCUMENTED, TRNI_NKI1)                                       \
    X(chip, "Trainium1", link_ports, "ports", 4, NULL, DOCUMENTED, TRNI_NKI1)                                        \
    X(chip, "Trainium2", dies, "dies", 2, NULL, THIRD_PARTY, TRNI_LATITUDE " (two compute chiplets)")                \
    X(chip, "Trainium2", packaging, "", TRNI_NAN, "CoWoS-S, CoWoS-R", THIRD_PARTY, TRNI_LATITUDE)                    \
    X(chip, "Trainium2", process, "", TRNI_NAN, "5 nm", THIRD_PARTY, TRNI_NEXT " (what most suppose)")               \
    X(chip, "Trainium2", hbm_stacks, "stacks", 4, NULL, DOCUMENTED, TRNI_NKI2)                                       \
    X(chip, "Trainium2", hbm_kind, "", TRNI_NAN, "HBM3, HBM3e", THIRD_PARTY,                                         \
      TRNI_SA2 " (both are fitted, at one rate)")                                                                    \
    X(chip, "Trainium2", link_ports, "ports", 6, NULL, DERIVED,                                                      \
      "4 within the server (" TRNI_NKI2 ") and 2 to other servers (" TRNI_TRN2 ")")                                  \
    X(chip, "Trainium2", link_lanes, "lanes", 160, NULL, DERIVED, "4 links of 32 lanes and 2 of 16 (" TRNI_SA2 ")")  \
    X(chip, "Trainium2", link_spare_lanes, "lanes", 0, NULL, DERIVED,                                                \
      "none is mentioned, and 160 lanes are 1,280 GB/s both ways (" TRNI_CHIP2 ")")                                  \
    X(chip, "Trainium2", link_lane_bytes_per_s, "B/s one way", 4e9, NULL, THIRD_PARTY,                               \
      TRNI_SA2 " (PCIe Gen5: 32 lanes are 128 GB/s one way)")                                                        \
    X(chip, "Trainium3", dies, "dies", 2, NULL, THIRD_PARTY, TRNI_TOM " (two chiplets of four cores and two stacks)")\
    X(chip, "Trainium3", process, "", TRNI_NAN, "3 nm", THIRD_PARTY, TRNI_NEXT " (the vendor at re:Invent)")         \
    X(chip, "Trainium3", hbm_stacks, "stacks", 4, NULL, DOCUMENTED, TRNI_NKI3)                                       \
    X(chip, "Trainium3", hbm_kind, "", TRNI_NAN, "HBM3e", THIRD_PARTY, TRNI_TOM)                                     \
    X(chip, "Trainium3", link_ports, "ports", 4, NULL, DOCUMENTED,                                                   \
      TRNI_NKI3 " (drawn; " TRNI_TRN3 " has 11 links of 8 lanes)")                                                   \
    X(chip, "Trainium3", link_lanes, "lanes", 160, NULL, THIRD_PARTY,                                                \
      TRNI_SA3 " (64 in the tray, 80 to the rack, 16 to the other rack)")                                            \
    X(chip, "Trainium3", link_spare_lanes, "lanes", 16, NULL, THIRD_PARTY, TRNI_SA3 " (of the 80 to the rack)")      \
    X(chip, "Trainium3", link_lane_bytes_per_s, "B/s one way", 8e9, NULL, THIRD_PARTY, TRNI_SA3 " (PCIe Gen6)")      \
    X(server, "trn1.2xlarge", processor, "", TRNI_NAN, "Intel Xeon Ice Lake 8375C", DOCUMENTED, TRNI_EC2)            \
    X(server, "trn1.2xlarge", cpu_cores, "cores", 4, NULL, DOCUMENTED, TRNI_EC2)                                     \
    X(server, "trn1.2xlarge", threads_per_core, "threads", 2, NULL, DOCUMENTED, TRNI_EC2)                            \
    X(server, "trn1.2xlarge", hypervisor, "", TRNI_NAN, "Nitro v4", DOCUMENTED, TRNI_EC2)                            \
    X(server, "trn1.2xlarge", nvme_drives, "drives", 1, NULL, DOCUMENTED, TRNI_EC2)                                  \
    X(server, "trn1.2xlarge", nvme_drive_bytes, "B", 474e9, NULL, DOCUMENTED, TRNI_EC2)                              \
    X(server, "trn1.2xlarge", nvme_reads_per_s, "1/s", 107500, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")    \
    X(server, "trn1.2xlarge", nvme_writes_per_s, "1/s", 45000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")    \
    X(server, "trn1.2xlarge", network_cards, "cards", 1, NULL, DOCUMENTED, TRNI_EC2)                                 \
    X(server, "trn1.2xlarge", network_card_bits_per_s, "bit/s", 12.5e9, NULL, DOCUMENTED,                            \
      TRNI_EC2 " (for a while; 3.125 Gbit/s sustained)")                                                             \
    X(server, "trn1.2xlarge", ebs_bits_per_s, "bit/s", 20e9, NULL, DOCUMENTED,                                       \
      TRNI_EC2 " (for a while; 5 Gbit/s sustained)")                                                                 \
    X(server, "trn1.32xlarge", processor, "", TRNI_NAN, "Intel Xeon Ice Lake 8375C", DOCUMENTED, TRNI_EC2)           \
    X(server, "trn1.32xlarge", cpu_cores, "cores", 64, NULL, DOCUMENTED, TRNI_EC2)                                   \
    X(server, "trn1.32xlarge", threads_per_core, "threads", 2, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn1.32xlarge", hypervisor, "", TRNI_NAN, "Nitro v4", DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn1.32xlarge", nvme_drives, "drives", 4, NULL, DOCUMENTED, TRNI_EC2)                                 \
    X(server, "trn1.32xlarge", nvme_drive_bytes, "B", 1900e9, NULL, DOCUMENTED, TRNI_EC2 " (others: 8 TB in all)")   \
    X(server, "trn1.32xlarge", nvme_reads_per_s, "1/s", 1720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")  \
    X(server, "trn1.32xlarge", nvme_writes_per_s, "1/s", 720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")  \
    X(server, "trn1.32xlarge", network_cards, "cards", 8, NULL, DOCUMENTED, TRNI_EC2)                                \
    X(server, "trn1.32xlarge", network_card_bits_per_s, "bit/s", 100e9, NULL, DOCUMENTED, TRNI_EC2)                  \
    X(server, "trn1.32xlarge", ebs_bits_per_s, "bit/s", 80e9, NULL, DOCUMENTED, TRNI_EC2)                            \
    X(server, "trn1n.32xlarge", processor, "", TRNI_NAN, "Intel Xeon Ice Lake", DOCUMENTED, TRNI_EC2)                \
    X(server, "trn1n.32xlarge", cpu_cores, "cores", 64, NULL, DOCUMENTED, TRNI_EC2)                                  \
    X(server, "trn1n.32xlarge", threads_per_core, "threads", 2, NULL, DOCUMENTED, TRNI_EC2)                          \
    X(server, "trn1n.32xlarge", hypervisor, "", TRNI_NAN, "Nitro v4", DOCUMENTED, TRNI_EC2)                          \
    X(server, "trn1n.32xlarge", nvme_drives, "drives", 4, NULL, DOCUMENTED, TRNI_EC2)                                \
    X(server, "trn1n.32xlarge", nvme_drive_bytes, "B", 1900e9, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn1n.32xlarge", nvme_reads_per_s, "1/s", 1720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)") \
    X(server, "trn1n.32xlarge", nvme_writes_per_s, "1/s", 720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)") \
    X(server, "trn1n.32xlarge", network_cards, "cards", 16, NULL, DOCUMENTED, TRNI_EC2)                              \
    X(server, "trn1n.32xlarge", network_card_bits_per_s, "bit/s", 100e9, NULL, DOCUMENTED, TRNI_EC2)                 \
    X(server, "trn1n.32xlarge", ebs_bits_per_s, "bit/s", 80e9, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn2.48xlarge", processor, "", TRNI_NAN, "Intel Xeon Sapphire Rapids", DOCUMENTED, TRNI_EC2)          \
    X(server, "trn2.48xlarge", cpu_cores, "cores", 96, NULL, DOCUMENTED, TRNI_EC2)                                   \
    X(server, "trn2.48xlarge", threads_per_core, "threads", 2, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn2.48xlarge", hypervisor, "", TRNI_NAN, "Nitro v5", DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn2.48xlarge", nvme_drives, "drives", 4, NULL, DOCUMENTED, TRNI_EC2)                                 \
    X(server, "trn2.48xlarge", nvme_drive_bytes, "B", 1900e9, NULL, DOCUMENTED, TRNI_EC2 " (others: 1.92 TB)")       \
    X(server, "trn2.48xlarge", nvme_reads_per_s, "1/s", 1720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")  \
    X(server, "trn2.48xlarge", nvme_writes_per_s, "1/s", 720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)")  \
    X(server, "trn2.48xlarge", network_cards, "cards", 16, NULL, DOCUMENTED, TRNI_EC2)                               \
    X(server, "trn2.48xlarge", network_card_bits_per_s, "bit/s", 200e9, NULL, DOCUMENTED, TRNI_EC2)                  \
    X(server, "trn2.48xlarge", ebs_bits_per_s, "bit/s", 80e9, NULL, DOCUMENTED, TRNI_EC2)                            \
    X(server, "trn2.48xlarge", chips_per_tray, "chips", 2, NULL, THIRD_PARTY, TRNI_LATITUDE)                         \
    X(server, "trn2.48xlarge", trays, "trays", 8, NULL, THIRD_PARTY, TRNI_LATITUDE)                                  \
    X(server, "trn2.48xlarge", host_trays, "trays", 1, NULL, THIRD_PARTY, TRNI_LATITUDE)                             \
    X(server, "trn2.48xlarge", tray_rack_units, "U", 2, NULL, THIRD_PARTY,                                           \
      TRNI_LATITUDE " (trays of chips and of the host)")                                                             \
    X(server, "trn2.48xlarge", rack_units, "U", 18, NULL, THIRD_PARTY, TRNI_LATITUDE)                                \
    X(server, "trn2u.48xlarge", processor, "", TRNI_NAN, "Intel Xeon Sapphire Rapids", DOCUMENTED, TRNI_EC2)         \
    X(server, "trn2u.48xlarge", cpu_cores, "cores", 96, NULL, DOCUMENTED, TRNI_EC2)                                  \
    X(server, "trn2u.48xlarge", threads_per_core, "threads", 2, NULL, DOCUMENTED, TRNI_EC2)                          \
    X(server, "trn2u.48xlarge", hypervisor, "", TRNI_NAN, "Nitro v5", DOCUMENTED, TRNI_EC2)                          \
    X(server, "trn2u.48xlarge", nvme_drives, "drives", 4, NULL, DOCUMENTED, TRNI_EC2)                                \
    X(server, "trn2u.48xlarge", nvme_drive_bytes, "B", 1900e9, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn2u.48xlarge", nvme_reads_per_s, "1/s", 1720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)") \
    X(server, "trn2u.48xlarge", nvme_writes_per_s, "1/s", 720000, NULL, DOCUMENTED, TRNI_EC2 " (all drives, 4 KiB)") \
    X(server, "trn2u.48xlarge", network_cards, "cards", 16, NULL, DERIVED,                                           \
      "as trn2.48xlarge: both have 3,200 Gbit/s (" TRNI_TRN2 ")")                                                    \
    X(server, "trn2u.48xlarge", network_card_bits_per_s, "bit/s", 200e9, NULL, DERIVED,                              \
      "3,200 Gbit/s over 16 cards (" TRNI_TRN2 ")")                                                                  \
    X(server, "trn2u.48xlarge", ebs_bits_per_s, "bit/s", 80e9, NULL, DOCUMENTED, TRNI_EC2)                           \
    X(server, "trn2u.48xlarge", chips_per_tray, "chips", 2, NULL, THIRD_PARTY, TRNI_LATITUDE)                        \
    X(server, "trn2u.48xlarge", trays, "trays", 8, NULL, THIRD_PARTY, TRNI_LATITUDE)                                 \
    X(server, "trn2u.48xlarge", host_trays, "trays", 1, NULL, THIRD_PARTY, TRNI_LATITUDE)                            \
    X(server, "trn2u.48xlarge", tray_rack_units, "U", 2, NULL, THIRD_PARTY,                                          \
      TRNI_LATITUDE " (trays of chips and of the host)")                                                             \
    X(server, "trn2u.48xlarge", rack_units, "U", 18, NULL, THIRD_PARTY, TRNI_LATITUDE)                               \
    X(server, "trn2u.48xlarge", servers_per_rack, "servers", 2, NULL, THIRD_PARTY,                                   \
      TRNI_SA2 " (an UltraServer is two racks)")                                                                     \
    X(server, "trn3 gen1 server", network_cards, "cards", 16, NULL, ASSUMED,                                         \
      "one of 200 Gbit/s for each chip, as in Trainium2 servers")                                                    \
    X(server, "trn3 gen1 server", network_card_bits_per_s, "bit/s", 200e9, NULL, DERIVED,                            \
      "12,800 Gbit/s over 64 chips (" TRNI_TRN3 ")")                                                                 \
    X(server, "trn3 gen1 server", chips_per_tray, "chips", 2, NULL, DOCUMENTED,                                      \
      TRNI_TRN3 " (a figure beside it draws pairs); " TRNI_SA3)                                                      \
    X(server, "trn3 gen1 server", trays, "trays", 8, NULL, DERIVED,                                                  \
      "16 trays of a rack (" TRNI_SA3 ") over its two servers")                                                      \
    X(server, "trn3 gen1 server", servers_per_rack, "servers", 2, NULL, DOCUMENTED, TRNI_TRN3 " (figure)")           \
    X(server, "trn3 gen1 server", switch_planes, "planes", 2, NULL, THIRD_PARTY,                                     \
      TRNI_SA3 " (the first racks; later ones have one)")                                                            \
    X(server, "trn3 gen1 server", switches_per_plane, "switches/rack", 8, NULL, THIRD_PARTY, TRNI_SA3)               \
    X(server, "trn3 gen2 server", processor, "", TRNI_NAN, "AWS Graviton", THIRD_PARTY,                              \
      TRNI_REGISTER " (one to a tray)")                                                                              \
    X(server, "trn3 gen2 server", nitro_cards, "cards", 2, NULL, THIRD_PARTY, TRNI_REGISTER)                         \
    X(server, "trn3 gen2 server", network_cards, "cards", 4, NULL, ASSUMED,                                          \
      "one of 200 Gbit/s for each chip, as in Trainium2 servers")                                                    \
    X(server, "trn3 gen2 server", network_card_bits_per_s, "bit/s", 200e9, NULL, DERIVED,                            \
      "28,800 Gbit/s over 144 chips (" TRNI_TRN3 ")")                                                                \
    X(server, "trn3 gen2 server", chips_per_tray, "chips", 4, NULL, DOCUMENTED, TRNI_TRN3 " (a server is a sled)")   \
    X(server, "trn3 gen2 server", trays, "trays", 1, NULL, DOCUMENTED, TRNI_TRN3 " (a server is a sled)")            \
    X(server, "trn3 gen2 server", tray_switches, "switches", 8, NULL, THIRD_PARTY, TRNI_SA3 " (the first racks)")    \
    X(server, "trn3 gen2 server", servers_per_rack, "servers", 18, NULL, DOCUMENTED, TRNI_TRN3 " (figure)")          \
    X(server, "trn3 gen2 server", switch_planes, "planes", 4, NULL, THIRD_PARTY,                                     \
      TRNI_SA3 " (the first racks; later ones have two, then one)")                                                  \
    X(server, "trn3 gen2 server", switches_per_plane, "switches/rack", 10, NULL, THIRD_PARTY, TRNI_SA3)

/* What follows from a row above: level, field, unit, level and field of the row, how, and that in words. */
#define TRNI_PHYSICAL_SUM_LIST(X)                                                                                    \
    X("chip", "hbm_stack_bytes", "B", "chip", "hbm_stacks", CHIP_BYTES_OVER, "the HBM of a chip over its stacks")    \
    X("total", "hbm_stacks", "stacks", "chip", "hbm_stacks", TIMES_CHIPS, "stacks of a chip, times chips")           \
    X("total", "dies", "dies", "chip", "dies", TIMES_CHIPS, "dies of a chip, times chips")                           \
    X("total", "cpu_cores", "cores", "server", "cpu_cores", TIMES_SERVERS, "cores of a host, times servers")         \
    X("total", "nvme_drives", "drives", "server", "nvme_drives", TIMES_SERVERS, "drives of a server, times servers") \
    X("total", "nvme_bytes", "B", "server", "nvme_drive_bytes", TIMES_DRIVES,                                        \
      "bytes of a drive, times drives, times servers")                                                               \
    X("total", "network_cards", "cards", "server", "network_cards", TIMES_SERVERS,                                   \
      "cards of a server, times servers")                                                                            \
    X("total", "trays", "trays", "server", "trays", TIMES_SERVERS, "trays of a server, times servers")               \
    X("total", "racks", "racks", "server", "servers_per_rack", SERVERS_OVER, "servers over those of a rack")

#endif /* TRNI_MACHINE_SPEC_PHYSICAL_ROWS_H */
