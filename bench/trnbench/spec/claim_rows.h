/* claim_rows.h - what is said of the machines, who says it and when: facts that sources disagree about, and facts that
 * no table and no cost has a place for.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_SPEC_CLAIM_ROWS_H
#define BENCH_SPEC_CLAIM_ROWS_H

#include <trnmath/trn_spec.h>

#define PAGES_2026 "Neuron SDK 2.32, 2026-08"
#define PAGE_TRN1 "EC2 Trn1 architecture page, 2022"
#define PAGE_TRN2 "EC2 Trn2 architecture page, 2024-12"
#define PAGE_TRN3 "Neuron SDK, trainium3.rst, 2025-12-02"
#define LAUNCH_TRN2 "AWS at re:Invent, 2024-12-03"
#define LAUNCH_TRN3 "AWS at re:Invent, 2025-12-02, press release"

/* of, what, said, how it is known, source and date, where it stands here. Rows of one fact stand together. */
#define CLAIM_LIST(X)                                                                                                 \
    X("Trainium1", "BF16 and FP32 of a chip, of 16", "210 and 52.5 TFLOPS; 3,360 and 840", TRN_DOCUMENTED, PAGE_TRN1, \
      "not held: the vendor has rated the chip down since (--alternatives)")                                          \
    X("Trainium1", "BF16 and FP32 of a chip, of 16", "190 and 47.5 TFLOPS; 3,040 and 760", TRN_DOCUMENTED,            \
      "trainium.rst and trn1-arch.rst, " PAGES_2026, "held: every cost and plan of Trainium1 rests on it")            \
    X("Trn2 UltraServer", "EFA", "3,200 Gbit/s", TRN_DOCUMENTED, PAGE_TRN2 ", table",                                 \
      "not held: the table repeats the figure of one of its four instances (--alternatives)")                         \
    X("Trn2 UltraServer", "EFA", "12,800 Gbit/s", TRN_DOCUMENTED, LAUNCH_TRN2 " (12.8 Tbit/s)",                       \
      "held: four instances of 3,200; plans and collectives beyond NeuronLink rest on it")                            \
    X("Trn2 UltraServer", "EFA", "800 Gbit/s of a chip in other trays", TRN_THIRD_PARTY, "SemiAnalysis, 2024-12-03",  \
      "not held: EC2 offers no such instance")                                                                        \
    X("Trainium3", "FP8 of a chip", "2,517 TFLOPS, in a column FP8", TRN_DOCUMENTED, PAGE_TRN3,                       \
      "held as the rate of MXFP8, with block scales; without them half of it is expected (--alternatives)")           \
    X("Trn2 server", "local NVMe", "4 drives of 1.9 TB", TRN_DOCUMENTED, "EC2 instance specifications, 2026",         \
      "held (--physical)")                                                                                            \
    X("Trn2 server", "local NVMe", "drives of 2 TB", TRN_THIRD_PARTY, "summaries of 2024; no page is known",          \
      "not held: 1.9 or 1.92 TB, rounded")                                                                            \
    X("Trn3 Gen2 UltraServer", "second-level switches", "two", TRN_DOCUMENTED, "trn3-arch.rst, 2025-12-02",           \
      "read as one for each of its two racks, as the page's figure draws them")                                       \
    X("Trn3 Gen2 UltraServer", "second-level switches", "4 planes of 10 in a rack, later 2, later 1",                 \
      TRN_THIRD_PARTY, "SemiAnalysis, 2025-12-04", "presets /planes=1, 2 and 4 of --links")                           \
    X("Trainium2", "cores", "8 of NeuronCore-v2", TRN_THIRD_PARTY, "Latitude Design Systems, 2024",                   \
      "not held: they are NeuronCore-v3 (neuron-core-v3.rst)")                                                        \
    X("Trn1 UltraCluster", "chips", "over 30,000", TRN_DOCUMENTED, PAGE_TRN1,                                         \
      "held as trn1-ultracluster: the size that it was announced with")                                               \
    X("Trn1 UltraCluster", "chips", "over 100,000", TRN_DOCUMENTED, "trn1-arch.rst, " PAGES_2026,                     \
      "not held (--alternatives)")                                                                                    \
    X("Trn1 UltraCluster", "network", "non-blocking petabit EFA", TRN_DOCUMENTED, PAGE_TRN1,                          \
      "no cost knows how the servers are joined beyond their own EFA")                                                \
    X("Trainium1", "DMA", "1 TB/s, with inline compression and decompression", TRN_DOCUMENTED,                        \
      "trainium.rst, " PAGES_2026, "the rate is held; compression is not: no page says of what, or how much")         \
    X("Trainium2", "DMA", "3.5 TB/s, with inline compression and decompression", TRN_DOCUMENTED,                      \
      "trainium2.rst, " PAGES_2026, "the rate is held; compression is not: no page says of what, or how much")        \
    X("Trainium3", "DMA", "4.9 TB/s, with inline computation", TRN_DOCUMENTED, PAGE_TRN3,                             \
      "the rate is held; of the computation only what nki.isa names")                                                 \
    X("Trainium1", "programs", "dynamic shapes and control flow", TRN_DOCUMENTED, "trainium.rst, " PAGES_2026,        \
      "no cost knows what they take: plans are of fixed shapes")                                                      \
    X("Trainium2", "price and performance", "30 to 40 % better than P5e and P5en", TRN_DOCUMENTED, LAUNCH_TRN2,       \
      "not held: prices are the user's own (shardplan --price-hour)")                                                 \
    X("Trn3 UltraServer", "computing", "4.4 times that of the Trn2 UltraServer", TRN_DOCUMENTED, LAUNCH_TRN3,         \
      "362.4 over 83.2 PFLOPS of FP8, with 144 chips over 64, is 4.36; not held by itself")                           \
    X("Trn3 UltraServer", "memory bandwidth", "almost 4 times", TRN_DOCUMENTED, LAUNCH_TRN3,                          \
      "705.6 over 185.6 TB/s, with 144 chips over 64, is 3.80; not held by itself")                                   \
    X("Trn3 UltraServer", "energy", "4 times the efficiency", TRN_DOCUMENTED, LAUNCH_TRN3,                            \
      "not held: no page says how many watts")                                                                        \
    X("Trn3 UltraServer", "energy", "40 % more efficient", TRN_DOCUMENTED, "AWS, other pages on Trainium3, 2025-12",  \
      "not held: whether of a chip or of a system, and against what, is not said")                                    \
    X("Trn3 UltraServer", "gpt-oss", "3 times the throughput of a chip, 4 times faster answers", TRN_DOCUMENTED,      \
      LAUNCH_TRN3, "not held: neither batch nor lengths are said, so that no plan can be laid beside it")             \
    X("Trn3 UltraClusters", "chips", "up to 1,000,000", TRN_DOCUMENTED, LAUNCH_TRN3, "not held: no system is so large")

typedef struct claim {
    const char *of, *what, *said;
    trn_provenance known;
    const char *where, *here;
} claim;

#endif /* BENCH_SPEC_CLAIM_ROWS_H */
