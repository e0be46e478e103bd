/* machine/spec_pages.h - the pages that tables of machines name as their sources, and units of memory.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_PAGES_H
#define TRNI_MACHINE_SPEC_PAGES_H

#include "../base/base.h"

#define TRNI_NKI1 "Neuron SDK, nki/guides/architecture/trainium_inferentia2_arch.rst"
#define TRNI_NKI2 "Neuron SDK, nki/guides/architecture/trainium2_arch.rst"
#define TRNI_NKI3 "Neuron SDK, nki/guides/architecture/trainium3_arch.rst"
#define TRNI_OLD "Neuron SDK 2.25, nki.isa reference (the last with costs)"
#define TRNI_DMA_PEAK "Neuron SDK, nki-dma-overview.rst"
#define TRNI_NC2 "Neuron SDK, neuron-hardware/neuron-core-v2.rst"
#define TRNI_NC3 "Neuron SDK, neuron-hardware/neuron-core-v3.rst"
#define TRNI_NC4 "Neuron SDK, neuron-hardware/neuron-core-v4.rst"
#define TRNI_CHIP1 "Neuron SDK, neuron-hardware/trainium.rst"
#define TRNI_CHIP2 "Neuron SDK, neuron-hardware/trainium2.rst"
#define TRNI_CHIP3 "Neuron SDK, neuron-hardware/trainium3.rst"
#define TRNI_ISA "Neuron SDK, nki.isa reference, nc_matmul"
#define TRNI_EXPLORER "Neuron SDK, neuron-explorer/overview-summary-page.rst"
#define TRNI_PROFILE "Neuron SDK, neuron-explorer/profile-schema-reference.rst"
#define TRNI_DMA_REAL "Neuron SDK, nki-dma-bandwidth-guide.rst"
#define TRNI_LNC "Neuron SDK, logical-neuroncore-config.rst"
#define TRNI_TRN1 "Neuron SDK, neuron-hardware/trn1-arch.rst"
#define TRNI_TRN2 "Neuron SDK, neuron-hardware/trn2-arch.rst"
#define TRNI_TRN3 "Neuron SDK, neuron-hardware/trn3-arch.rst"
#define TRNI_EC2 "EC2 documentation of 2026, specifications of accelerated computing instances"
#define TRNI_SA2 "SemiAnalysis on Trainium2, 2024-12"
#define TRNI_SA3 "SemiAnalysis on Trainium3, 2025-12"

#define TRNI_KIB 1024.0
#define TRNI_GIB 1073741824.0

#endif /* TRNI_MACHINE_SPEC_PAGES_H */
