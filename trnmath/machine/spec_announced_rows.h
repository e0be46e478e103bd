/* machine/spec_announced_rows.h - what is announced and not delivered: never part of any other table.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_ANNOUNCED_ROWS_H
#define TRNI_MACHINE_SPEC_ANNOUNCED_ROWS_H

#include "spec_pages.h"

#define TRNI_SUMMARY "analysts, as summaries of 2026 repeat them"
#define TRNI_PREVIEW "AWS at re:Invent, 2025-12, as NAND Research and The Next Platform report it"

/* name, field, unit, how many times Trainium3's, which field of Trainium3's chip, in words, where */
#define TRNI_ANNOUNCED_LIST(X)                                                                                       \
    X("Trainium4", "fp4_flops_per_s", "flop/s", 6, "mx_flops_per_s", "at least; FP4", TRNI_PREVIEW)                  \
    X("Trainium4", "fp8_flops_per_s", "flop/s", 3, "f8_flops_per_s", "FP8", TRNI_PREVIEW)                            \
    X("Trainium4", "hbm_bytes_per_s", "B/s", 4, "hbm_bytes_per_s", "", TRNI_PREVIEW)                                 \
    X("Trainium4", "hbm_bytes", "B", 2, "hbm_bytes", "", TRNI_SUMMARY)                                               \
    X("Trainium4", "hbm_kind", "", TRNI_NAN, NULL, "HBM4, 8 stacks", TRNI_SUMMARY)                                   \
    X("Trainium4", "hbm_controller", "", TRNI_NAN, NULL, "in the stack (NVHBM)",                                     \
      "NVIDIA, 2026-08, as the press reports it")                                                                    \
    X("Trainium4", "links", "", TRNI_NAN, NULL, "NVLink 6 by NVLink Fusion",                                         \
      "AWS and NVIDIA, 2025-12, as the press reports it")                                                            \
    X("Trainium4", "racks", "", TRNI_NAN, NULL, "MGX", "AWS and NVIDIA, 2025-12, as the press reports it")           \
    X("Trainium4", "delivery", "", TRNI_NAN, NULL, "late 2026 to 2027", "The Next Platform, 2025-12")

#endif /* TRNI_MACHINE_SPEC_ANNOUNCED_ROWS_H */
