/* machine/spec_link_rows.h - what each source prints of NeuronLink, in its own unit.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_LINK_ROWS_H
#define TRNI_MACHINE_SPEC_LINK_ROWS_H

#include "spec_pages.h"

/* Units as they are printed, and what one of each comes to in bytes per second, one way. "Bidirectional" is the
 * vendor's word for Trainium3, of lanes that carry as much one way: Gen6 x8 is 64 GB/s. */
#define TRNI_LINK_UNIT_LIST(X)                                                                                       \
    X(GB_BOTH, "GB/s both ways", 0.5e9)                                                                              \
    X(GIB_BOTH, "GiB/s both ways", 0.5 * TRNI_GIB)                                                                   \
    X(GB, "GB/s one way", 1e9)                                                                                       \
    X(TB, "TB/s one way", 1e12)                                                                                      \
    X(GBIT, "Gbit/s", 0.125e9)                                                                                       \
    X(GB_LANES, "GB/s bidirectional", 1e9)

/* a system that has these links, which of a chip's links, value, unit, how it is known, where, how to read it */
#define TRNI_LINK_READING_LIST(X)                                                                                    \
    X(TRN_TRN1_32XLARGE, CHIP, 384, GB_BOTH, DOCUMENTED, TRNI_CHIP2 ", table of generations",                        \
      "4 links of 48 GB/s each way")                                                                                 \
    X(TRN_TRN1_32XLARGE, CHIP, 384, GIB_BOTH, DOCUMENTED, TRNI_TRN1 ", older revisions",                             \
      "the column NeuronLink-v2 names GiB; that is 7 % more")                                                        \
    X(TRN_TRN1_32XLARGE, CHIP, 384, GBIT, DOCUMENTED, TRNI_TRN1 ", revisions from 2.28 on",                          \
      "a lost header puts the figure under EFA, in Gbit/s: no rate of NeuronLink")                                   \
    X(TRN_TRN1_32XLARGE, CHIP, 384, GB, DERIVED, "the same figure, read as one way",                                 \
      "twice too fast, if both ways are added as they are for Trainium2")                                            \
    X(TRN_TRN1_32XLARGE, LINK, 48, GB, DERIVED, "384 GB/s over 4 links and 2 directions (" TRNI_TRN1 ")",            \
      "what the tables hold")                                                                                        \
    X(TRN_TRN1N_32XLARGE, CHIP, 768, GB_BOTH, DERIVED, "twice Trn1's, as in the column of " TRNI_TRN1,               \
      "4 links of 96 GB/s each way")                                                                                 \
    X(TRN_TRN1N_32XLARGE, CHIP, 768, GIB_BOTH, DOCUMENTED, TRNI_TRN1 ", older revisions",                            \
      "the column NeuronLink-v2 names GiB; that is 7 % more")                                                        \
    X(TRN_TRN2_ULTRASERVER, CHIP, 1280, GB_BOTH, DOCUMENTED, TRNI_CHIP2, "4 links of 128 GB/s and 2 of 64, each way")\
    X(TRN_TRN2_ULTRASERVER, CHIP, 640, GB, THIRD_PARTY, TRNI_SA2, "160 lanes of PCIe Gen5, one way")                 \
    X(TRN_TRN2_ULTRASERVER, SERVER, 1024, GB_BOTH, DOCUMENTED, TRNI_TRN2 ", table", "4 links of 128 GB/s each way")  \
    X(TRN_TRN2_ULTRASERVER, PEER, 256, GB_BOTH, DOCUMENTED, TRNI_TRN2 ", table", "2 links of 64 GB/s each way")      \
    X(TRN_TRN2_ULTRASERVER, LINK, 128, GB, THIRD_PARTY, TRNI_SA2, "32 lanes of PCIe Gen5")                           \
    X(TRN_TRN2_ULTRASERVER, PEER_LINK, 64, GB, THIRD_PARTY, TRNI_SA2, "16 lanes of PCIe Gen5")                       \
    X(TRN_TRN2_ULTRASERVER, LINK, 256, GB, DERIVED, "1,024 GB/s over 4 links, read as one way", "twice too fast")    \
    X(TRN_TRN3_GEN2_ULTRASERVER, CHIP, 2560, GB_BOTH, DOCUMENTED, TRNI_CHIP3,                                        \
      "all 160 lanes of 8 GB/s, the 16 spares included")                                                             \
    X(TRN_TRN3_GEN2_ULTRASERVER, RACK_ALL, 2048, GIB_BOTH, DOCUMENTED, TRNI_TRN3 ", table",                          \
      "the 128 lanes inside the rack, if GB was meant; as printed 7 % more than they carry")                         \
    X(TRN_TRN3_GEN2_ULTRASERVER, RACK_ALL, 2048, GB_BOTH, DERIVED, "the same figure, read as GB",                    \
      "the 128 lanes inside the rack: preset spec")                                                                  \
    X(TRN_TRN3_GEN2_ULTRASERVER, SERVER, 256, GB_LANES, DOCUMENTED, TRNI_TRN3 ", connectivity text",                 \
      "4 x Gen6 x8; it fits 64 lanes if it is per die: preset doc")                                                  \
    X(TRN_TRN3_GEN2_ULTRASERVER, RACK, 320, GB_LANES, DOCUMENTED, TRNI_TRN3 ", connectivity text",                   \
      "5 x Gen6 x8; it fits 80 lanes, 16 of them spare, if it is per die: preset doc")                               \
    X(TRN_TRN3_GEN2_ULTRASERVER, PEER, 128, GB_LANES, DOCUMENTED, TRNI_TRN3 ", connectivity text",                   \
      "2 x Gen6 x8; it fits 16 lanes per chip")                                                                      \
    X(TRN_TRN3_GEN2_ULTRASERVER, CHIP, 704, GB_LANES, DERIVED, "256 + 320 + 128 (" TRNI_TRN3 ", connectivity text)", \
      "the first two probably per die")                                                                              \
    X(TRN_TRN3_GEN2_ULTRASERVER, CHIP, 1.2, TB, THIRD_PARTY, TRNI_SA3, "a rounding of 144 active lanes of 8 GB/s")   \
    X(TRN_TRN3_GEN2_ULTRASERVER, CHIP, 1152, GB, DERIVED, "144 active lanes of 8 GB/s (" TRNI_SA3 ")",               \
      "what the tables hold: preset sa")

#endif /* TRNI_MACHINE_SPEC_LINK_ROWS_H */
