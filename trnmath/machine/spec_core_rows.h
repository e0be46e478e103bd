/* machine/spec_core_rows.h - numbers of NeuronCore-v2, v3 and v4, each with its source.
 * Behind trn_spec.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_SPEC_CORE_ROWS_H
#define TRNI_MACHINE_SPEC_CORE_ROWS_H

#include "spec_pages.h"

/* Rows are lists of F(field, value, how it is known, where), in the order of the fields. */

/* The same in every generation so far: the Trainium1 guide has the fullest text, the later ones keep it. */
#define TRNI_CORE_SHARED(F)                                                                                          \
    F(pe_rows, 128, DOCUMENTED, TRNI_NKI1),                                                                          \
    F(pe_columns, 128, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(max_k, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_m, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(f32_passes, 4, DOCUMENTED, TRNI_NKI1),                                                                         \
    F(f32_onezero_passes, 2, DOCUMENTED, TRNI_ISA " (is_stationary_onezero, is_moving_onezero)"),                    \
    F(fp32r_passes, 1, ASSUMED, "a name without a page; read as TF32, the operands take the pass of TF32"),          \
    F(moving_min_cycles, 64, DOCUMENTED, TRNI_NKI1),                                                                 \
    F(load_min_cycles, 32, DERIVED, "128 columns at four times the rate of MultiplyMoving"),                         \
    F(load_speedup, 4, DOCUMENTED, TRNI_NKI1 " (up to)"),                                                            \
    F(partitions, 128, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(psum_partition_bytes, 16 * TRNI_KIB, DOCUMENTED, TRNI_NKI1),                                                   \
    F(psum_banks, 8, DOCUMENTED, TRNI_NKI1),                                                                         \
    F(dma_engines, 16, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(dma_latency_s, 1.3e-6, DOCUMENTED, TRNI_DMA_PEAK),                                                             \
    F(vector_min_cycles, 64, DOCUMENTED, TRNI_OLD)

#define TRNI_CORE_V2(F)                                                                                              \
    TRNI_CORE_SHARED(F),                                                                                             \
    F(max_n, 512, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n_bf16, 512, DOCUMENTED, TRNI_ISA),                                                                        \
    F(row_tile_min, 64, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 64, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, false, DOCUMENTED, TRNI_ISA),                                                                      \
    F(mx, false, DOCUMENTED, TRNI_ISA),                                                                              \
    F(sparse, false, DOCUMENTED, TRNI_NC2),                                                                          \
    F(bf16_psum, false, DOCUMENTED, TRNI_ISA),                                                                       \
    F(transpose_mode, false, DOCUMENTED, TRNI_NKI2 " (new there)"),                                                  \
    F(f8_products, 1, DOCUMENTED, TRNI_NKI1 " (cFP8 at the BF16 rate)"),                                             \
    F(mx_products, 0, DOCUMENTED, TRNI_ISA),                                                                         \
    F(sparse_products, 0, DOCUMENTED, TRNI_NC2),                                                                     \
    F(int8_products, 2, DERIVED, "380 TOPS over the 190 TFLOPS of BF16 (" TRNI_CHIP1 "); " TRNI_PROFILE " agrees"),  \
    F(f32_transpose_passes, 4, DOCUMENTED, TRNI_ISA " (a product with an identity)"),                                \
    F(tensor_clock_hz, 2.8e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(tensor_cold_rate, 1, ASSUMED, "the page that describes the ramp names Trainium2 and Trainium3"),               \
    F(tensor_warm_up_s, 0, ASSUMED, "no ramp known"),                                                                \
    F(tensor_busy_share, 0, ASSUMED, "no ramp known"),                                                               \
    F(vector_clock_hz, 1.12e9, DOCUMENTED, TRNI_NKI1),                                                               \
    F(scalar_clock_hz, 1.4e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(gpsimd_clock_hz, 1.4e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(vector_elements, 128, DOCUMENTED, TRNI_NKI1),                                                                  \
    F(vector_elements_16bit, 128, DOCUMENTED, TRNI_NKI1),                                                            \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI1 ")"),                                      \
    F(gpsimd_elements, 128, DERIVED, "8 processors of 512 bits (" TRNI_NKI1 "), 32-bit elements"),                   \
    F(sbuf_partition_bytes, 192 * TRNI_KIB, DOCUMENTED, TRNI_NKI1),                                                  \
    F(dma_engine_bytes_per_s, 17e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 27.2e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(f32_flops_per_s, 23e12, DOCUMENTED, TRNI_NKI1),                                                                \
    F(bf16_flops_per_s, 92e12, DOCUMENTED, TRNI_NKI1),                                                               \
    F(f8_flops_per_s, 92e12, DOCUMENTED, TRNI_NKI1),                                                                 \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_NC2 " (none)"),                                                            \
    F(sparse_flops_per_s, 0, DOCUMENTED, TRNI_NC2 " (none)"),                                                        \
    F(vector_flops_per_s, 2.3e12, DOCUMENTED, TRNI_NC2),                                                             \
    F(scalar_flops_per_s, 2.9e12, DOCUMENTED, TRNI_NC2)

#define TRNI_CORE_V3(F)                                                                                              \
    TRNI_CORE_SHARED(F),                                                                                             \
    F(max_n, 512, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n_bf16, 512, DOCUMENTED, TRNI_ISA),                                                                        \
    F(row_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, true, DOCUMENTED, TRNI_NKI2),                                                                      \
    F(mx, false, DOCUMENTED, TRNI_ISA),                                                                              \
    F(sparse, true, DOCUMENTED, TRNI_NC3),                                                                           \
    F(bf16_psum, false, DOCUMENTED, TRNI_ISA),                                                                       \
    F(transpose_mode, true, DOCUMENTED, TRNI_NKI2),                                                                  \
    F(f8_products, 2, DOCUMENTED, TRNI_NKI2 " (double_row)"),                                                        \
    F(mx_products, 0, DOCUMENTED, TRNI_ISA),                                                                         \
    F(sparse_products, 4, DOCUMENTED, TRNI_NC3 " (316 over 79 TFLOPS)"),                                             \
    F(int8_products, 0, DOCUMENTED, TRNI_NC3 " (none)"),                                                             \
    F(f32_transpose_passes, 2, DOCUMENTED, TRNI_NKI2 " (twice as fast as a product)"),                               \
    F(tensor_clock_hz, 2.4e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(tensor_cold_rate, 0.5, DOCUMENTED, TRNI_EXPLORER " (about; of a linear ramp: assumed)"),                       \
    F(tensor_warm_up_s, 3e-6, DOCUMENTED, TRNI_EXPLORER " (about)"),                                                 \
    F(tensor_busy_share, 0.5, DOCUMENTED, TRNI_EXPLORER),                                                            \
    F(vector_clock_hz, 0.96e9, DOCUMENTED, TRNI_NKI2),                                                               \
    F(scalar_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(gpsimd_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(vector_elements, 256, DOCUMENTED, TRNI_NKI2),                                                                  \
    F(vector_elements_16bit, 512, DOCUMENTED, TRNI_NKI2),                                                            \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI2 ")"),                                      \
    F(gpsimd_elements, 128, DERIVED, "8 processors of 512 bits (" TRNI_NKI2 "), 32-bit elements"),                   \
    F(sbuf_partition_bytes, 224 * TRNI_KIB, DOCUMENTED, TRNI_NKI2),                                                  \
    F(dma_engine_bytes_per_s, 23e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 27.2e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(f32_flops_per_s, 20e12, DOCUMENTED, TRNI_NKI2),                                                                \
    F(bf16_flops_per_s, 79e12, DOCUMENTED, TRNI_NKI2),                                                               \
    F(f8_flops_per_s, 158e12, DOCUMENTED, TRNI_NKI2),                                                                \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_NC3 " (none)"),                                                            \
    F(sparse_flops_per_s, 316e12, DOCUMENTED, TRNI_NKI2),                                                            \
    F(vector_flops_per_s, 1.0e12, DOCUMENTED, TRNI_NC3),                                                             \
    F(scalar_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC3)

#define TRNI_CORE_V4(F)                                                                                              \
    TRNI_CORE_SHARED(F),                                                                                             \
    F(max_n, 4096, DOCUMENTED, TRNI_ISA),                                                                            \
    F(max_n_bf16, 8192, DOCUMENTED, TRNI_ISA),                                                                       \
    F(row_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, true, DOCUMENTED, TRNI_ISA),                                                                       \
    F(mx, true, DOCUMENTED, TRNI_NKI3),                                                                              \
    F(sparse, true, DOCUMENTED, TRNI_NC4),                                                                           \
    F(bf16_psum, true, DOCUMENTED, TRNI_NKI3),                                                                       \
    F(transpose_mode, true, DOCUMENTED, TRNI_NKI2 " (and newer)"),                                                   \
    F(f8_products, 2, DOCUMENTED, TRNI_ISA " (double_row: twice the throughput, NeuronCore-v3 and newer)"),          \
    F(mx_products, 4, DOCUMENTED, TRNI_NKI3),                                                                        \
    F(sparse_products, 4, DOCUMENTED, TRNI_NC4 " (315 over 79 TFLOPS)"),                                             \
    F(int8_products, 0, DOCUMENTED, TRNI_NC4 " (none)"),                                                             \
    F(f32_transpose_passes, 2, DOCUMENTED, TRNI_NKI2 " (and newer)"),                                                \
    F(tensor_clock_hz, 2.4e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(tensor_cold_rate, 0.5, DOCUMENTED, TRNI_EXPLORER " (about; of a linear ramp: assumed)"),                       \
    F(tensor_warm_up_s, 3e-6, DOCUMENTED, TRNI_EXPLORER " (about)"),                                                 \
    F(tensor_busy_share, 0.5, DOCUMENTED, TRNI_EXPLORER),                                                            \
    F(vector_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(scalar_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(gpsimd_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(vector_elements, 256, DOCUMENTED, TRNI_NKI3),                                                                  \
    F(vector_elements_16bit, 512, DOCUMENTED, TRNI_NKI3 " (FP8 too)"),                                               \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI3 "); 256 in 16-bit copies"),                \
    F(gpsimd_elements, 128, DOCUMENTED, TRNI_NKI3),                                                                  \
    F(sbuf_partition_bytes, 256 * TRNI_KIB, DOCUMENTED, TRNI_NKI3),                                                  \
    F(dma_engine_bytes_per_s, 33e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 38.4e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(f32_flops_per_s, 20e12, DOCUMENTED, TRNI_NKI3),                                                                \
    F(bf16_flops_per_s, 79e12, DOCUMENTED, TRNI_NKI3),                                                               \
    F(f8_flops_per_s, 0, DOCUMENTED, TRNI_NKI3 " (lists MX only)"),                                                  \
    F(mx_flops_per_s, 315e12, DOCUMENTED, TRNI_NKI3),                                                                \
    F(sparse_flops_per_s, 315e12, DOCUMENTED, TRNI_NKI3),                                                            \
    F(vector_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC4),                                                             \
    F(scalar_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC4)

#endif /* TRNI_MACHINE_SPEC_CORE_ROWS_H */
