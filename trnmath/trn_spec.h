/* trn_spec.h - every NeuronCore, chip, server and system as data: one row each, and the source of every number.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_spec.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_core_spec *core = trn_core_spec_of(TRN_TRAINIUM2);
 *         printf("%s: moving tiles up to %d columns at %g Hz\n", core->name, core->max_n, core->tensor_clock_hz);
 *         return core->max_k == 128 ? 0 : 1;
 *     }
 */
#ifndef TRN_SPEC_H
#define TRN_SPEC_H

#include "trn_format.h"

typedef enum trn_generation {
    TRN_GENERATION_DEFAULT = 0, /* Trainium2 */
    TRN_TRAINIUM1 = 2,          /* NeuronCore-v2 */
    TRN_TRAINIUM2 = 3,          /* NeuronCore-v3 */
    TRN_TRAINIUM3 = 4           /* NeuronCore-v4 */
} trn_generation;

/* ---- how a number is known ---- */

typedef enum trn_provenance {
    TRN_DOCUMENTED = 0, /* the vendor's documentation or open source says so */
    TRN_MEASURED,       /* somebody printed it after a run on a device */
    TRN_THIRD_PARTY,    /* an analyst or the press says so */
    TRN_DERIVED,        /* arithmetic on numbers that are known */
    TRN_ASSUMED         /* nothing public: our choice, and why */
} trn_provenance;

TRNI_FN const char *trn_provenance_text(trn_provenance known)
{
    static const char *const text[] = { "documented", "measured", "third party", "derived", "assumed" };
    return (unsigned)known < sizeof text / sizeof text[0] ? text[(unsigned)known] : "unknown";
}

typedef struct trn_source {
    const char *field; /* whose source this is */
    trn_provenance known;
    const char *where;
} trn_source;

/* Every row below is a list of F(field, value, how it is known, where). A list is expanded twice, into the struct of
 * plain values and into the array of sources, so that a value and its source stand on one line and cannot part. */
#define TRNI_VALUE(field, value, known, where) value
#define TRNI_SOURCE(field, value, known, where) { #field, TRN_##known, where }
#define TRNI_DECLARE(type, field, unit) type field;

#define TRNI_KIB 1024.0
#define TRNI_GIB 1073741824.0

#define TRNI_NKI1 "Neuron SDK, nki/guides/architecture/trainium_inferentia2_arch.rst"
#define TRNI_NKI2 "Neuron SDK, nki/guides/architecture/trainium2_arch.rst"
#define TRNI_NKI3 "Neuron SDK, nki/guides/architecture/trainium3_arch.rst"
#define TRNI_NC2 "Neuron SDK, neuron-hardware/neuron-core-v2.rst"
#define TRNI_NC3 "Neuron SDK, neuron-hardware/neuron-core-v3.rst"
#define TRNI_NC4 "Neuron SDK, neuron-hardware/neuron-core-v4.rst"
#define TRNI_ISA "Neuron SDK, nki.isa reference, nc_matmul"
#define TRNI_DMA_PEAK "Neuron SDK, nki-dma-overview.rst"
#define TRNI_DMA_REAL "Neuron SDK, nki-dma-bandwidth-guide.rst"

/* ---- one NeuronCore ---- */

#define TRNI_CORE_FIELDS(X)                                                                                          \
    X(int, pe_rows, "rows")          /* the systolic array; its rows are the contraction axis K */                   \
    X(int, pe_columns, "columns")    /* and its columns the stationary free axis M */                                \
    X(int, max_k, "rows")            /* limits of one nc_matmul: rows of both operands, */                           \
    X(int, max_m, "columns")         /* free size of the stationary operand, */                                      \
    X(int, max_n, "columns")         /* of the moving operand with an F32 destination, */                            \
    X(int, max_n_bf16, "columns")    /* and with a 2-byte destination */                                             \
    X(int, row_tile_min, "rows")     /* row tiling: the array as independent pieces of 64 or 32 rows */              \
    X(int, column_tile_min, "columns")                                                                               \
    X(bool, double_row, "")          /* FP8: two rows of K per PE row */                                             \
    X(bool, mx, "")                  /* block-scaled FP8 and FP4: four rows of K per PE row */                       \
    X(bool, sparse, "")              /* structured sparsity */                                                       \
    X(bool, bf16_psum, "")           /* PSUM can hold and accumulate BF16 */                                         \
    X(bool, transpose_mode, "")      /* bit-exact transposes through the array */                                    \
    X(int, f32_passes, "passes")     /* cycles of an F32 matmul over those of a BF16 one */                          \
    X(int, f8_products, "products")  /* per PE and cycle with FP8 operands at their fastest */                       \
    X(int, mx_products, "products")  /* with MX operands; 0 = none */                                                \
    X(int, sparse_products, "products") /* dense products replaced per PE and cycle at 4:16; 0 = none */             \
    X(int, moving_min_cycles, "cycles") /* shortest MultiplyMoving */                                                \
    X(int, load_min_cycles, "cycles")   /* shortest LoadStationary */                                                \
    X(int, load_speedup, "columns/cycle") /* stationary columns loaded per cycle */                                  \
    X(double, tensor_clock_hz, "Hz")                                                                                 \
    X(double, vector_clock_hz, "Hz")                                                                                 \
    X(double, scalar_clock_hz, "Hz")                                                                                 \
    X(double, gpsimd_clock_hz, "Hz")                                                                                 \
    X(int, vector_elements, "elements/cycle")                                                                        \
    X(int, vector_elements_16bit, "elements/cycle") /* at most, BF16 and F16 */                                      \
    X(int, scalar_elements, "elements/cycle")                                                                        \
    X(int, gpsimd_elements, "elements/cycle")                                                                        \
    X(int, partitions, "partitions") /* of SBUF and of PSUM */                                                       \
    X(double, sbuf_partition_bytes, "B")                                                                             \
    X(double, psum_partition_bytes, "B")                                                                             \
    X(int, psum_banks, "banks")                                                                                      \
    X(int, dma_engines, "engines")                                                                                   \
    X(double, dma_engine_bytes_per_s, "B/s")      /* practical */                                                    \
    X(double, dma_engine_peak_bytes_per_s, "B/s")                                                                    \
    X(double, dma_latency_s, "s")                 /* semaphore to first byte */                                      \
    X(double, f32_flops_per_s, "flop/s")          /* TensorE as the vendor rounds it; the exact peak is */           \
    X(double, bf16_flops_per_s, "flop/s")         /* trn_core_peak_flops_per_s */                                    \
    X(double, f8_flops_per_s, "flop/s")                                                                              \
    X(double, mx_flops_per_s, "flop/s")                                                                              \
    X(double, sparse_flops_per_s, "flop/s")                                                                          \
    X(double, vector_flops_per_s, "flop/s")                                                                          \
    X(double, scalar_flops_per_s, "flop/s")

typedef struct trn_core_spec {
    trn_generation generation;
    const char *name; /* "NeuronCore-v3" */
    TRNI_CORE_FIELDS(TRNI_DECLARE)
} trn_core_spec;

#define TRNI_CORE_V2(F)                                                                                              \
    F(pe_rows, 128, DOCUMENTED, TRNI_NKI1),                                                                          \
    F(pe_columns, 128, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(max_k, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_m, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n, 512, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n_bf16, 512, DOCUMENTED, TRNI_ISA),                                                                        \
    F(row_tile_min, 64, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 64, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, false, DOCUMENTED, TRNI_ISA),                                                                      \
    F(mx, false, DOCUMENTED, TRNI_ISA),                                                                              \
    F(sparse, false, DOCUMENTED, TRNI_NC2),                                                                          \
    F(bf16_psum, false, DOCUMENTED, TRNI_ISA),                                                                       \
    F(transpose_mode, false, DOCUMENTED, TRNI_NKI2 " (lists it as new)"),                                            \
    F(f32_passes, 4, DOCUMENTED, TRNI_NKI1),                                                                         \
    F(f8_products, 1, DOCUMENTED, TRNI_NKI1 " (cFP8 at the BF16 rate)"),                                             \
    F(mx_products, 0, DOCUMENTED, TRNI_ISA),                                                                         \
    F(sparse_products, 0, DOCUMENTED, TRNI_NC2),                                                                     \
    F(moving_min_cycles, 64, DOCUMENTED, TRNI_NKI1),                                                                 \
    F(load_min_cycles, 32, DERIVED, "128 columns at four times the rate of MultiplyMoving"),                         \
    F(load_speedup, 4, DOCUMENTED, TRNI_NKI1 " (up to)"),                                                            \
    F(tensor_clock_hz, 2.8e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(vector_clock_hz, 1.12e9, DOCUMENTED, TRNI_NKI1),                                                               \
    F(scalar_clock_hz, 1.4e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(gpsimd_clock_hz, 1.4e9, DOCUMENTED, TRNI_NKI1),                                                                \
    F(vector_elements, 128, DOCUMENTED, TRNI_NKI1),                                                                  \
    F(vector_elements_16bit, 128, DOCUMENTED, TRNI_NKI1),                                                            \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI1 ")"),                                      \
    F(gpsimd_elements, 128, DERIVED, "8 processors of 512 bits (" TRNI_NKI1 "), 32-bit elements"),                   \
    F(partitions, 128, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(sbuf_partition_bytes, 192 * TRNI_KIB, DOCUMENTED, TRNI_NKI1),                                                  \
    F(psum_partition_bytes, 16 * TRNI_KIB, DOCUMENTED, TRNI_NKI1),                                                   \
    F(psum_banks, 8, DOCUMENTED, TRNI_NKI1),                                                                         \
    F(dma_engines, 16, DOCUMENTED, TRNI_NKI1),                                                                       \
    F(dma_engine_bytes_per_s, 17e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 27.2e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(dma_latency_s, 1.3e-6, DOCUMENTED, TRNI_DMA_PEAK),                                                             \
    F(f32_flops_per_s, 23e12, DOCUMENTED, TRNI_NKI1),                                                                \
    F(bf16_flops_per_s, 92e12, DOCUMENTED, TRNI_NKI1),                                                               \
    F(f8_flops_per_s, 92e12, DOCUMENTED, TRNI_NKI1),                                                                 \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_NC2 " (none)"),                                                            \
    F(sparse_flops_per_s, 0, DOCUMENTED, TRNI_NC2 " (none)"),                                                        \
    F(vector_flops_per_s, 2.3e12, DOCUMENTED, TRNI_NC2),                                                             \
    F(scalar_flops_per_s, 2.9e12, DOCUMENTED, TRNI_NC2)

#define TRNI_CORE_V3(F)                                                                                              \
    F(pe_rows, 128, DOCUMENTED, TRNI_NKI2),                                                                          \
    F(pe_columns, 128, DOCUMENTED, TRNI_NKI2),                                                                       \
    F(max_k, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_m, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n, 512, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n_bf16, 512, DOCUMENTED, TRNI_ISA),                                                                        \
    F(row_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, true, DOCUMENTED, TRNI_NKI2),                                                                      \
    F(mx, false, DOCUMENTED, TRNI_ISA),                                                                              \
    F(sparse, true, DOCUMENTED, TRNI_NC3),                                                                           \
    F(bf16_psum, false, DOCUMENTED, TRNI_ISA),                                                                       \
    F(transpose_mode, true, DOCUMENTED, TRNI_NKI2),                                                                  \
    F(f32_passes, 4, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                               \
    F(f8_products, 2, DOCUMENTED, TRNI_NKI2 " (double_row)"),                                                        \
    F(mx_products, 0, DOCUMENTED, TRNI_ISA),                                                                         \
    F(sparse_products, 4, DOCUMENTED, TRNI_NC3 " (316 over 79 TFLOPS)"),                                             \
    F(moving_min_cycles, 64, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                       \
    F(load_min_cycles, 32, DERIVED, "128 columns at four times the rate of MultiplyMoving"),                         \
    F(load_speedup, 4, DOCUMENTED, TRNI_NKI1 " (up to; later guides keep it)"),                                      \
    F(tensor_clock_hz, 2.4e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(vector_clock_hz, 0.96e9, DOCUMENTED, TRNI_NKI2),                                                               \
    F(scalar_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(gpsimd_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI2),                                                                \
    F(vector_elements, 256, DOCUMENTED, TRNI_NKI2),                                                                  \
    F(vector_elements_16bit, 512, DOCUMENTED, TRNI_NKI2),                                                            \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI2 ")"),                                      \
    F(gpsimd_elements, 128, DERIVED, "8 processors of 512 bits (" TRNI_NKI2 "), 32-bit elements"),                   \
    F(partitions, 128, DOCUMENTED, TRNI_NKI2),                                                                       \
    F(sbuf_partition_bytes, 224 * TRNI_KIB, DOCUMENTED, TRNI_NKI2),                                                  \
    F(psum_partition_bytes, 16 * TRNI_KIB, DOCUMENTED, TRNI_NKI2),                                                   \
    F(psum_banks, 8, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                               \
    F(dma_engines, 16, DOCUMENTED, TRNI_NKI2),                                                                       \
    F(dma_engine_bytes_per_s, 23e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 27.2e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(dma_latency_s, 1.3e-6, DOCUMENTED, TRNI_DMA_PEAK),                                                             \
    F(f32_flops_per_s, 20e12, DOCUMENTED, TRNI_NKI2),                                                                \
    F(bf16_flops_per_s, 79e12, DOCUMENTED, TRNI_NKI2),                                                               \
    F(f8_flops_per_s, 158e12, DOCUMENTED, TRNI_NKI2),                                                                \
    F(mx_flops_per_s, 0, DOCUMENTED, TRNI_NC3 " (none)"),                                                            \
    F(sparse_flops_per_s, 316e12, DOCUMENTED, TRNI_NKI2),                                                            \
    F(vector_flops_per_s, 1.0e12, DOCUMENTED, TRNI_NC3),                                                             \
    F(scalar_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC3)

#define TRNI_CORE_V4(F)                                                                                              \
    F(pe_rows, 128, DOCUMENTED, TRNI_NKI3),                                                                          \
    F(pe_columns, 128, DOCUMENTED, TRNI_NKI3),                                                                       \
    F(max_k, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_m, 128, DOCUMENTED, TRNI_ISA),                                                                             \
    F(max_n, 4096, DOCUMENTED, TRNI_ISA),                                                                            \
    F(max_n_bf16, 8192, DOCUMENTED, TRNI_ISA),                                                                       \
    F(row_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                       \
    F(column_tile_min, 32, DOCUMENTED, TRNI_ISA),                                                                    \
    F(double_row, true, DOCUMENTED, TRNI_ISA),                                                                       \
    F(mx, true, DOCUMENTED, TRNI_NKI3),                                                                              \
    F(sparse, true, DOCUMENTED, TRNI_NC4),                                                                           \
    F(bf16_psum, true, DOCUMENTED, TRNI_NKI3),                                                                       \
    F(transpose_mode, true, DOCUMENTED, TRNI_NKI2 " (and newer)"),                                                   \
    F(f32_passes, 4, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                               \
    F(f8_products, 2, ASSUMED, "double_row is accepted on Trainium3 but its speed is not published: as Trainium2"),  \
    F(mx_products, 4, DOCUMENTED, TRNI_NKI3),                                                                        \
    F(sparse_products, 4, DOCUMENTED, TRNI_NC4 " (315 over 79 TFLOPS)"),                                             \
    F(moving_min_cycles, 64, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                       \
    F(load_min_cycles, 32, DERIVED, "128 columns at four times the rate of MultiplyMoving"),                         \
    F(load_speedup, 4, DOCUMENTED, TRNI_NKI1 " (up to; later guides keep it)"),                                      \
    F(tensor_clock_hz, 2.4e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(vector_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(scalar_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(gpsimd_clock_hz, 1.2e9, DOCUMENTED, TRNI_NKI3),                                                                \
    F(vector_elements, 256, DOCUMENTED, TRNI_NKI3),                                                                  \
    F(vector_elements_16bit, 512, DOCUMENTED, TRNI_NKI3 " (FP8 too)"),                                               \
    F(scalar_elements, 128, DERIVED, "one lane per partition (" TRNI_NKI3 "); 256 in 16-bit copies"),                \
    F(gpsimd_elements, 128, DOCUMENTED, TRNI_NKI3),                                                                  \
    F(partitions, 128, DOCUMENTED, TRNI_NKI3),                                                                       \
    F(sbuf_partition_bytes, 256 * TRNI_KIB, DOCUMENTED, TRNI_NKI3),                                                  \
    F(psum_partition_bytes, 16 * TRNI_KIB, DOCUMENTED, TRNI_NKI3),                                                   \
    F(psum_banks, 8, DOCUMENTED, TRNI_NKI1 " (later guides keep it)"),                                               \
    F(dma_engines, 16, DOCUMENTED, TRNI_NKI3),                                                                       \
    F(dma_engine_bytes_per_s, 33e9, DOCUMENTED, TRNI_DMA_REAL),                                                      \
    F(dma_engine_peak_bytes_per_s, 38.4e9, DOCUMENTED, TRNI_DMA_PEAK),                                               \
    F(dma_latency_s, 1.3e-6, DOCUMENTED, TRNI_DMA_PEAK),                                                             \
    F(f32_flops_per_s, 20e12, DOCUMENTED, TRNI_NKI3),                                                                \
    F(bf16_flops_per_s, 79e12, DOCUMENTED, TRNI_NKI3),                                                               \
    F(f8_flops_per_s, 0, DOCUMENTED, TRNI_NKI3 " (lists MX only)"),                                                  \
    F(mx_flops_per_s, 315e12, DOCUMENTED, TRNI_NKI3),                                                                \
    F(sparse_flops_per_s, 315e12, DOCUMENTED, TRNI_NKI3),                                                            \
    F(vector_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC4),                                                             \
    F(scalar_flops_per_s, 1.2e12, DOCUMENTED, TRNI_NC4)

/* NULL for a generation that does not exist. */
TRNI_FN const trn_core_spec *trn_core_spec_of(trn_generation generation)
{
    static const trn_core_spec row[] = {
        { TRN_TRAINIUM1, "NeuronCore-v2", TRNI_CORE_V2(TRNI_VALUE) },
        { TRN_TRAINIUM2, "NeuronCore-v3", TRNI_CORE_V3(TRNI_VALUE) },
        { TRN_TRAINIUM3, "NeuronCore-v4", TRNI_CORE_V4(TRNI_VALUE) },
    };
    if (generation == TRN_GENERATION_DEFAULT) generation = TRN_TRAINIUM2;
    const int i = (int)generation - (int)TRN_TRAINIUM1;
    return i >= 0 && i < (int)(sizeof row / sizeof row[0]) ? &row[i] : NULL;
}

/* "Trainium2"; "an unknown generation" for anything else. */
TRNI_FN const char *trn_generation_name(trn_generation generation)
{
    static const char *const name[] = { "Trainium1", "Trainium2", "Trainium3" };
    const trn_core_spec *core = trn_core_spec_of(generation);
    return core ? name[(int)core->generation - (int)TRN_TRAINIUM1] : "an unknown generation";
}

#endif /* TRN_SPEC_H */
