/* peaks.h - rates of the tensor engines as they are printed, for a core and for a chip.
 * SPDX-License-Identifier: MIT
 */
#ifndef PUBLISHED_PEAKS_H
#define PUBLISHED_PEAKS_H

#include "trnmath/trn_tensor_cost.h"

/* TFLOPS of one core as the vendor prints them. */
static const struct {
    const char *name, *source;
    trn_tensor_instruction i;
    double published;
} core_peaks[] = {
    { "BF16",
      "trainium_inferentia2_arch.rst, 92 TFLOPS",
      { .generation = TRN_TRAINIUM1, .k = 128, .stationary_format = TRN_BF16 },
      92 },
    { "cFP8",
      "trainium_inferentia2_arch.rst, cFP8 at the BF16 rate",
      { .generation = TRN_TRAINIUM1, .k = 128, .stationary_format = TRN_CFP8 },
      92 },
    { "FP32",
      "trainium_inferentia2_arch.rst, 23 TFLOPS",
      { .generation = TRN_TRAINIUM1, .k = 128, .stationary_format = TRN_F32 },
      23 },
    { "BF16",
      "trainium2_arch.rst, 79 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 128, .stationary_format = TRN_BF16 },
      79 },
    { "TF32",
      "trainium2_arch.rst, 79 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 128, .stationary_format = TRN_TF32 },
      79 },
    { "FP32",
      "trainium2_arch.rst, 20 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 128, .stationary_format = TRN_F32 },
      20 },
    { "FP8 double_row",
      "trainium2_arch.rst, 158 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 256, .stationary_format = TRN_F8_E4M3 },
      158 },
    { "BF16 4:16",
      "trainium2_arch.rst, 316 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 512, .stationary_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16 },
      316 },
    { "FP8 4:16",
      "trainium2_arch.rst, 316 TFLOPS",
      { .generation = TRN_TRAINIUM2, .k = 512, .stationary_format = TRN_F8_E5M2, .sparse_m = 4, .sparse_n = 16 },
      316 },
    { "BF16",
      "trainium3_arch.rst, 79 TFLOPS",
      { .generation = TRN_TRAINIUM3, .k = 128, .stationary_format = TRN_BF16 },
      79 },
    { "FP32",
      "trainium3_arch.rst, 20 TFLOPS",
      { .generation = TRN_TRAINIUM3, .k = 128, .stationary_format = TRN_F32 },
      20 },
    { "MXFP8",
      "trainium3_arch.rst, 315 TFLOPS",
      { .generation = TRN_TRAINIUM3, .k = 512, .stationary_format = TRN_F8_E4M3FN },
      315 },
    { "MXFP4",
      "trainium3_arch.rst, 315 TFLOPS",
      { .generation = TRN_TRAINIUM3, .k = 512, .stationary_format = TRN_F4_E2M1 },
      315 },
    { "BF16 4:16",
      "trainium3_arch.rst, 315 TFLOPS",
      { .generation = TRN_TRAINIUM3, .k = 512, .stationary_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16 },
      315 },
};
enum { CORE_PEAKS = sizeof core_peaks / sizeof core_peaks[0] };

/* Chips are published above their clocks, by what the vendor does not explain; here is by how much. INT8 has a figure for
 * the chip only: 380 TOPS over two cores (trainium.rst), and 0.5 in the profiler's multipliers. */
static const struct {
    trn_generation generation;
    trn_format format;
    int k;
    double chip_tflops, cores, above; /* above: published over clock */
} chip_peaks[] = {
    { TRN_TRAINIUM1, TRN_BF16, 128, 190, 2, 1.035 },       { TRN_TRAINIUM1, TRN_I8, 128, 380, 2, 1.035 },
    { TRN_TRAINIUM2, TRN_BF16, 128, 667, 8, 1.060 },       { TRN_TRAINIUM2, TRN_F8_E4M3, 256, 1299, 8, 1.032 },
    { TRN_TRAINIUM3, TRN_F8_E4M3FN, 512, 2517, 8, 1.000 },
};
enum { CHIP_PEAKS = sizeof chip_peaks / sizeof chip_peaks[0] };

#endif /* PUBLISHED_PEAKS_H */
