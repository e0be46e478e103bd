/* trn_spec.h - every NeuronCore, chip, server and system as data: one row each, and the source of every number.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_spec.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_system_spec *spec = trn_system_spec_of(trn_system_from_name("trn2-ultraserver"));
 *         printf("%d chips, %.0f TFLOPS in BF16\n", trn_spec_chips(spec), trn_spec_tflops(spec, TRN_BF16, false));
 *         trn_spec_field field;
 *         for (int i = 0; trn_spec_field_at(spec, i, &field); i++)
 *             printf("%-6s %-28s %14.6g %-14s %s: %s\n", field.level, field.field, field.value, field.unit,
 *                    trn_provenance_text(field.known), field.where);
 *         return trn_core_spec_of(TRN_TRAINIUM2)->max_k == 128 ? 0 : 1;
 *     }
 *
 * DOES: holds four tables, each pointing at the one before: core -> chip -> server -> system. What a level repeats is
 *     never stated again: the totals of a system are products, and the tests compare them with the vendor's totals.
 *     Where sources contradict each other, the tables hold the default and trn_spec_alternative_at() the rest.
 * DOES NOT: know how chips are wired (which neighbour, how many hops), or the latency of anything but a DMA.
 *
 * CONTENTS
 *     trn_generation, trn_generation_name     Trainium1, 2, 3
 *     trn_source                              whose, how known, where
 *     trn_provenance, trn_provenance_text     how a number is known
 *     trn_core_spec, trn_core_spec_of         clocks, widths, tile limits, modes, memories, DMA of one NeuronCore
 *     trn_core_sbuf_bytes, trn_core_psum_bytes   all partitions of one core
 *     trn_core_peak_flops_per_s               what the systolic array can do: PEs x clock x products
 *     trn_chip_spec, trn_chip_spec_of         cores, HBM, published flop/s of one chip
 *     trn_server_spec                         chips, NeuronLink, EFA, host of one server (one EC2 instance)
 *     trn_system, trn_system_name, trn_system_from_name   the ten systems
 *     trn_system_spec, trn_system_spec_of     how many servers of which kind
 *     trn_spec_chips, trn_spec_tflops         of the whole system
 *     trn_spec_totals, trn_spec_totals_of     everything else of the whole system
 *     trn_spec_field, trn_spec_field_at       every number of a system in turn, with unit and source
 *     trn_spec_field_named                    one of them by its level and name
 *     trn_spec_alternative, trn_spec_alternative_at   every contradiction between sources
 *     trn_matmul_mode, trn_matmul_mode_name   plain, double_row (FP8), MX, sparse, transpose, INT8; zero = the fastest
 *     trn_space, trn_space_name               SBUF, PSUM, HBM
 *
 * KNOWN FROM: the Neuron SDK documentation of August 2026 (2.32), the EC2 pages, SemiAnalysis on Trainium2 (December
 *     2024) and Trainium3 (December 2025), the press on Project Rainier (October 2025). Every row names its page.
 *
 * Units are SI and bytes, and stand in the names; GB is 1e9 and GiB 2^30; link rates are one-way (the vendor's
 * NeuronLink figures are sums of both directions). To try another number, copy its row and the rows that point at it.
 *
 * Words that differ and are not contradictions: a 4 x 4 torus with Gray-coded coordinates is the four-dimensional
 * hypercube, so both names of Trainium1's wiring are right; HBM3 and HBM3e are both fitted to Trainium2, at the same
 * rate; a "256 accelerator" cluster of 4 trn2 instances counts logical cores. Chip figures exceed cores x TensorE (667
 * against 8 x 78.6 = 629 TFLOPS on Trainium2): they include something else, which the vendor does not explain.
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
    TRN_FITTED,         /* what several measured times agree on, given a model */
    TRN_ASSUMED         /* nothing public: our choice, and why */
} trn_provenance;

/* "documented", "measured", …; "unknown" for anything else. */
TRN_API const char *trn_provenance_text(trn_provenance known);

typedef struct trn_source {
    const char *field; /* whose source this is */
    trn_provenance known;
    const char *where;
} trn_source;

#define TRNI_DECLARE(type, field, unit) type field;

#define TRNI_NKI1 "Neuron SDK, nki/guides/architecture/trainium_inferentia2_arch.rst"
#define TRNI_NKI2 "Neuron SDK, nki/guides/architecture/trainium2_arch.rst"
#define TRNI_NKI3 "Neuron SDK, nki/guides/architecture/trainium3_arch.rst"
#define TRNI_OLD "Neuron SDK 2.25, nki.isa reference (the last with costs)"
#define TRNI_DMA_PEAK "Neuron SDK, nki-dma-overview.rst"

/* ---- one NeuronCore ---- */

#define TRNI_CORE_FIELDS(X)                                                                                          \
    X(int, pe_rows, "rows")                          /* the systolic array; its rows are the contraction axis K, */  \
    X(int, pe_columns, "columns")                    /* its columns the free axis of the stationary operand */       \
    X(int, max_k, "rows")                            /* limits of one matrix instruction: rows of both operands; */  \
    X(int, max_m, "columns")                         /* free size of the stationary operand */                       \
    X(int, f32_passes, "passes")                     /* cycles of an F32 matmul over those of a BF16 one */          \
    X(int, f32_onezero_passes, "passes")            /* when one operand is known to hold zeros and ones; */          \
    X(int, fp32r_passes, "passes")                  /* with F32 operands read as TF32 */                             \
    X(int, moving_min_cycles, "cycles")              /* shortest MultiplyMoving */                                   \
    X(int, load_min_cycles, "cycles")                /* shortest LoadStationary */                                   \
    X(int, load_speedup, "columns/cycle")            /* stationary columns loaded per cycle */                       \
    X(int, partitions, "partitions")                 /* of SBUF and of PSUM */                                       \
    X(double, psum_partition_bytes, "B")                                                                             \
    X(int, psum_banks, "banks")                                                                                      \
    X(int, dma_engines, "engines")                                                                                   \
    X(double, dma_latency_s, "s")                    /* semaphore to first byte */                                   \
    X(int, vector_min_cycles, "cycles")             /* shortest instruction of VectorE */                            \
    X(int, max_n, "columns")                         /* free size of the moving operand, F32 destination; */         \
    X(int, max_n_bf16, "columns")                    /* the same, 2-byte destination */                              \
    X(int, row_tile_min, "rows")                     /* row and column tiling: the array as independent */           \
    X(int, column_tile_min, "columns")               /* pieces, down to this size */                                 \
    X(bool, double_row, "")                          /* FP8: two rows of K per PE row */                             \
    X(bool, mx, "")                                  /* block-scaled FP8 and FP4: four rows of K per PE row */       \
    X(bool, sparse, "")                              /* structured sparsity */                                       \
    X(bool, bf16_psum, "")                           /* PSUM can hold and accumulate BF16 */                         \
    X(bool, transpose_mode, "")                      /* bit-exact transposes through the array */                    \
    X(int, f8_products, "products")                  /* per PE and cycle with FP8 operands at their fastest */       \
    X(int, mx_products, "products")                  /* with MX operands; 0 = none */                                \
    X(int, sparse_products, "products")              /* dense products replaced per PE and cycle at 4:16; 0 = none */\
    X(int, int8_products, "products")               /* with INT8 operands; 0 = none */                               \
    X(int, f32_transpose_passes, "passes")          /* cycles of a transpose of F32 over those of BF16 */            \
    X(double, tensor_clock_hz, "Hz")                                                                                 \
    X(double, tensor_cold_rate, "share")            /* share of its rate that a cold TensorE reaches; it warms */    \
    X(double, tensor_warm_up_s, "s")                /* up in this time, and is cold again after a window as */       \
    X(double, tensor_busy_share, "share")           /* long that had it at work for less than this share */          \
    X(double, vector_clock_hz, "Hz")                                                                                 \
    X(double, scalar_clock_hz, "Hz")                                                                                 \
    X(double, gpsimd_clock_hz, "Hz")                                                                                 \
    X(int, vector_elements, "elements/cycle")                                                                        \
    X(int, vector_elements_16bit, "elements/cycle")  /* at most, with BF16 and F16 */                                \
    X(int, scalar_elements, "elements/cycle")                                                                        \
    X(int, gpsimd_elements, "elements/cycle")                                                                        \
    X(double, sbuf_partition_bytes, "B")                                                                             \
    X(double, dma_engine_bytes_per_s, "B/s")         /* practical */                                                 \
    X(double, dma_engine_peak_bytes_per_s, "B/s")                                                                    \
    X(double, f32_flops_per_s, "flop/s")             /* TensorE as the vendor rounds it; 0 = not listed; */          \
    X(double, bf16_flops_per_s, "flop/s")            /* trn_core_peak_flops_per_s has the exact peak */              \
    X(double, f8_flops_per_s, "flop/s")                                                                              \
    X(double, mx_flops_per_s, "flop/s")                                                                              \
    X(double, sparse_flops_per_s, "flop/s")                                                                          \
    X(double, vector_flops_per_s, "flop/s")                                                                          \
    X(double, scalar_flops_per_s, "flop/s")

typedef struct trn_core_spec {
    trn_generation generation;
    const char *name;         /* "NeuronCore-v3" */
    const trn_source *source; /* of each field below, in order */
    TRNI_CORE_FIELDS(TRNI_DECLARE)
} trn_core_spec;

/* NULL for a generation that does not exist. */
TRN_API const trn_core_spec *trn_core_spec_of(trn_generation generation);

/* All partitions together. */
TRN_API double trn_core_sbuf_bytes(const trn_core_spec *core);
TRN_API double trn_core_psum_bytes(const trn_core_spec *core);

/* ---- one chip ---- */

#define TRNI_CHIP_FIELDS(X)                                                                                          \
    X(int, cores, "cores")                                                                                           \
    X(int, cores_per_logical_core, "cores") /* by default; a logical core is one rank of a collective */             \
    X(int, cc_cores, "cores")               /* that run collectives */                                               \
    X(double, hbm_bytes, "B")                                                                                        \
    X(double, hbm_bytes_per_s, "B/s")                                                                                \
    X(double, f32_flops_per_s, "flop/s")                                                                             \
    X(double, bf16_flops_per_s, "flop/s") /* TF32 and F16 too */                                                     \
    X(double, f8_flops_per_s, "flop/s")   /* FP8 without block scales; 0 = not published */                          \
    X(double, mx_flops_per_s, "flop/s")   /* block-scaled FP8 and FP4; 0 = none */                                   \
    X(double, int8_ops_per_s, "op/s")     /* 0 = none */                                                             \
    X(double, sparse_bf16_flops_per_s, "flop/s") /* structured sparsity, BF16, F16, TF32; 0 = none */                \
    X(double, sparse_f8_flops_per_s, "flop/s")   /* the same with FP8 */

typedef struct trn_chip_spec {
    const char *name; /* "Trainium2" */
    const trn_core_spec *core;
    const trn_source *source; /* of each field below, in order */
    TRNI_CHIP_FIELDS(TRNI_DECLARE)
} trn_chip_spec;

/* NULL for a generation that does not exist. */
TRN_API const trn_chip_spec *trn_chip_spec_of(trn_generation generation);

/* "Trainium2"; "an unknown generation" for anything else. */
TRN_API const char *trn_generation_name(trn_generation generation);

/* ---- which formats the tensor engine multiplies, and in which of its speeds ---- */

/* What the systolic array of one core can do in its fastest mode for this format: two flops for each product of each PE
 * in each cycle. NaN when the core has no such operand. INT8, Trainium1 only, is what its page says the engine does:
 * NKI's matrix instruction does not take it. */
TRN_API double trn_core_peak_flops_per_s(const trn_core_spec *core, trn_format format, bool sparse);

/* ---- one server: what is sold as one instance, or one server of an UltraServer ---- */

#define TRNI_TRN1 "Neuron SDK, neuron-hardware/trn1-arch.rst"
#define TRNI_TRN2 "Neuron SDK, neuron-hardware/trn2-arch.rst"
#define TRNI_TRN3 "Neuron SDK, neuron-hardware/trn3-arch.rst"
#define TRNI_SA2 "SemiAnalysis on Trainium2, 2024-12"

/* NeuronLink of one chip, as numbers of links and one-way rates: to chips of its own server, to the switch of its rack,
 * and to one chip of each neighbouring server (Trainium2: ring of four) or of the other rack (Trainium3). */
#define TRNI_SERVER_FIELDS(X)                                                                                        \
    X(int, chips, "chips")                                                                                           \
    X(double, efa_bits_per_s, "bit/s")                                                                               \
    X(int, vcpus, "vCPUs")                                                                                           \
    X(double, host_bytes, "B")                                                                                       \
    X(int, server_links, "links/chip")                                                                               \
    X(double, server_link_bytes_per_s, "B/s one way")                                                                \
    X(int, rack_links, "links/chip")                                                                                 \
    X(double, rack_link_bytes_per_s, "B/s one way")                                                                  \
    X(int, peer_links, "links/chip")                                                                                 \
    X(double, peer_link_bytes_per_s, "B/s one way")

typedef struct trn_server_spec {
    const char *name;
    const trn_chip_spec *chip;
    const trn_source *source; /* of each field below, in order */
    TRNI_SERVER_FIELDS(TRNI_DECLARE)
} trn_server_spec;

/* ---- one system: how many servers of which kind ---- */

#define TRNI_SYSTEM_FIELDS(X)                                                                                        \
    X(int, servers, "servers")                                                                                       \
    X(int, servers_per_domain, "servers") /* that NeuronLink joins; between domains there is EFA only */

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

typedef enum trn_system {
#define TRNI_X(system, name, title, server, servers, domain, known, where) system,
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
    TRN_SYSTEM_COUNT
} trn_system;

typedef struct trn_system_spec {
    trn_system system;
    const char *name;  /* "trn2-ultraserver" */
    const char *title; /* "Trn2 UltraServer" */
    const trn_server_spec *server;
    const trn_source *source; /* of each field below, in order */
    TRNI_SYSTEM_FIELDS(TRNI_DECLARE)
} trn_system_spec;

/* NULL for a system that does not exist. */
TRN_API const trn_system_spec *trn_system_spec_of(trn_system system);

/* Such as "trn2.48xlarge"; "an unknown system" for one that does not exist. */
TRN_API const char *trn_system_name(trn_system system);

/* Exact case. TRN_SYSTEM_COUNT when unknown. */
TRN_API trn_system trn_system_from_name(const char *name);

/* ---- the whole system ---- */

/* Chips of all its servers. */
TRN_API int trn_spec_chips(const trn_system_spec *spec);

/* Published rate of the whole system in 1e12 flop/s (INT8: op/s); NaN when the chip has no such rate. On Trainium3 the
 * formats of the MX instructions (E4M3FN, E5M2, E2M1) have the MX rate, and E4M3, which MX does not know, has none
 * that is published. */
TRN_API double trn_spec_tflops(const trn_system_spec *spec, trn_format format, bool sparse);

#define TRNI_TOTAL_FIELDS(X)                                                                                         \
    X(double, chips, "chips")                                                                                        \
    X(double, cores, "cores")                                                                                        \
    X(double, logical_cores, "cores")                                                                                \
    X(double, sbuf_bytes, "B")                                                                                       \
    X(double, hbm_bytes, "B")                                                                                        \
    X(double, hbm_bytes_per_s, "B/s")                                                                                \
    X(double, dma_engines, "engines")                                                                                \
    X(double, neuronlink_chip_bytes_per_s, "B/s one way") /* of ONE chip: all its links that lead somewhere */       \
    X(double, efa_bits_per_s, "bit/s")                                                                               \
    X(double, vcpus, "vCPUs")                                                                                        \
    X(double, host_bytes, "B")                                                                                       \
    X(double, f32_flops_per_s, "flop/s")                                                                             \
    X(double, bf16_flops_per_s, "flop/s")                                                                            \
    X(double, f8_flops_per_s, "flop/s")                                                                              \
    X(double, mx_flops_per_s, "flop/s")                                                                              \
    X(double, int8_ops_per_s, "op/s")                                                                                \
    X(double, sparse_bf16_flops_per_s, "flop/s")                                                                     \
    X(double, sparse_f8_flops_per_s, "flop/s")

typedef struct trn_spec_totals {
    TRNI_TOTAL_FIELDS(TRNI_DECLARE)
} trn_spec_totals;

/* Numbers of the whole system: those of the rows, multiplied. 0 where a chip has no such rate. */
TRN_API trn_spec_totals trn_spec_totals_of(const trn_system_spec *spec);

/* ---- every number in turn ---- */

typedef struct trn_spec_field {
    const char *level; /* "system", "server", "chip", "core", or "total" */
    const char *owner; /* the name of that system, server, chip or core */
    const char *field;
    const char *unit;
    double value; /* flags: 1 or 0 */
    trn_provenance known;
    const char *where;
} trn_spec_field;

/* Field number index of a system: its own, then its server's, its chip's and its core's, then the totals. False when
 * there is no such number, so that a loop from 0 sees them all. */
TRN_API bool trn_spec_field_at(const trn_system_spec *spec, int index, trn_spec_field *out);

/* ---- where the sources contradict each other ---- */

typedef struct trn_spec_alternative {
    trn_system system;     /* a system that shows the field */
    trn_spec_field chosen; /* what the tables hold */
    double value;          /* what the other source says, in chosen.unit */
    trn_provenance known;
    const char *where;
    const char *why; /* the table holds what it holds */
} trn_spec_alternative;

/* The value of one field by its names; false when there is none. */
TRN_API bool trn_spec_field_named(const trn_system_spec *spec, const char *level, const char *field,
                                  trn_spec_field *out);

/* Contradiction number index; false when there is no such number, so that a loop from 0 sees them all. */
TRN_API bool trn_spec_alternative_at(int index, trn_spec_alternative *out);

/* ---- what a core does and holds, in words ---- */

typedef enum trn_matmul_mode {
    TRN_MODE_FASTEST = 0, /* sparse with a pattern; INT8, MX, double_row when both formats have it; else plain */
    TRN_MODE_PLAIN,
    TRN_MODE_DOUBLE_ROW,
    TRN_MODE_MX,
    TRN_MODE_SPARSE,
    TRN_MODE_TRANSPOSE,
    TRN_MODE_INT8,
    TRNI_MODE_COUNT
} trn_matmul_mode;

/* "plain", "double_row", …; "unknown" for anything else. */
TRN_API const char *trn_matmul_mode_name(trn_matmul_mode mode);

typedef enum trn_space { TRN_SPACE_SBUF = 0, TRN_SPACE_PSUM, TRN_SPACE_HBM, TRN_SPACE_COUNT } trn_space;

/* "SBUF", "PSUM" or "HBM"; "no memory" for anything else. */
TRN_API const char *trn_space_name(trn_space space);

#if TRNI_BODIES

/* ---- how a number is known ---- */

TRN_API const char *trn_provenance_text(trn_provenance known)
{
    static const char *const text[] = { "documented", "measured", "third party", "derived",
                                        "fitted", "assumed" };
    return (unsigned)known < sizeof text / sizeof text[0] ? text[(unsigned)known] : "unknown";
}

/* Every row below is a list of F(field, value, how it is known, where). A list is expanded twice, into the struct of
 * plain values and into the array of sources, so that a value and its source stand on one line and cannot part. */
#define TRNI_VALUE(field, value, known, where) value

#define TRNI_SOURCE(field, value, known, where) { #field, TRN_##known, where }
#define TRNI_ONE(type, field, unit) +1

#define TRNI_NAN __builtin_nan("")

#define TRNI_KIB 1024.0
#define TRNI_GIB 1073741824.0
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

/* ---- one NeuronCore ---- */

enum { TRNI_CORE_FIELD_COUNT = 0 TRNI_CORE_FIELDS(TRNI_ONE) };

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
    F(f8_products, 2, ASSUMED, "double_row is accepted on Trainium3 but its speed is not published: as Trainium2"),  \
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

TRNI_DATA trn_source trni_core_source[][TRNI_CORE_FIELD_COUNT] = {
    { TRNI_CORE_V2(TRNI_SOURCE) }, { TRNI_CORE_V3(TRNI_SOURCE) }, { TRNI_CORE_V4(TRNI_SOURCE) }
};

TRNI_DATA trn_core_spec trni_core[] = {
    { TRN_TRAINIUM1, "NeuronCore-v2", trni_core_source[0], TRNI_CORE_V2(TRNI_VALUE) },
    { TRN_TRAINIUM2, "NeuronCore-v3", trni_core_source[1], TRNI_CORE_V3(TRNI_VALUE) },
    { TRN_TRAINIUM3, "NeuronCore-v4", trni_core_source[2], TRNI_CORE_V4(TRNI_VALUE) },
};

/* The position of a generation in the tables of cores and chips; -1 when there is no such generation. */
TRNI_FN int trni_generation_index(trn_generation generation)
{
    if (generation == TRN_GENERATION_DEFAULT) generation = TRN_TRAINIUM2;
    const unsigned i = (unsigned)generation - (unsigned)TRN_TRAINIUM1;
    return i < sizeof trni_core / sizeof trni_core[0] ? (int)i : -1;
}

TRN_API const trn_core_spec *trn_core_spec_of(trn_generation generation)
{
    const int i = trni_generation_index(generation);
    return i < 0 ? NULL : &trni_core[i];
}

TRN_API double trn_core_sbuf_bytes(const trn_core_spec *core) { return core->partitions * core->sbuf_partition_bytes; }
TRN_API double trn_core_psum_bytes(const trn_core_spec *core) { return core->partitions * core->psum_partition_bytes; }

/* ---- one chip ---- */

#define TRNI_LNC "Neuron SDK, logical-neuroncore-config.rst"

enum { TRNI_CHIP_FIELD_COUNT = 0 TRNI_CHIP_FIELDS(TRNI_ONE) };

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
    F(f8_flops_per_s, 0, DOCUMENTED, TRNI_CHIP3 " (lists MX only)"),                                                 \
    F(mx_flops_per_s, 2517e12, DOCUMENTED, TRNI_CHIP3),                                                              \
    F(int8_ops_per_s, 0, DOCUMENTED, TRNI_CHIP3 " (none)"),                                                          \
    F(sparse_bf16_flops_per_s, 2517e12, DOCUMENTED, TRNI_CHIP3),                                                     \
    F(sparse_f8_flops_per_s, 0, DOCUMENTED, TRNI_CHIP3 " (lists 16-bit formats only)")

TRNI_DATA trn_source trni_chip_source[][TRNI_CHIP_FIELD_COUNT] = {
    { TRNI_CHIP_V2(TRNI_SOURCE) }, { TRNI_CHIP_V3(TRNI_SOURCE) }, { TRNI_CHIP_V4(TRNI_SOURCE) }
};

TRNI_DATA trn_chip_spec trni_chip[] = {
    { "Trainium1", &trni_core[0], trni_chip_source[0], TRNI_CHIP_V2(TRNI_VALUE) },
    { "Trainium2", &trni_core[1], trni_chip_source[1], TRNI_CHIP_V3(TRNI_VALUE) },
    { "Trainium3", &trni_core[2], trni_chip_source[2], TRNI_CHIP_V4(TRNI_VALUE) },
};

TRN_API const trn_chip_spec *trn_chip_spec_of(trn_generation generation)
{
    const int i = trni_generation_index(generation);
    return i < 0 ? NULL : &trni_chip[i];
}

TRN_API const char *trn_generation_name(trn_generation generation)
{
    const trn_chip_spec *chip = trn_chip_spec_of(generation);
    return chip ? chip->name : "an unknown generation";
}

/* ---- which formats the tensor engine multiplies, and in which of its speeds ---- */

typedef enum trni_rate {
    TRNI_RATE_NONE = 0, /* the tensor engine of this generation has no such operand */
    TRNI_RATE_F32,
    TRNI_RATE_BF16,
    TRNI_RATE_F8,
    TRNI_RATE_MX,
    TRNI_RATE_INT8,
    TRNI_RATE_COUNT
} trni_rate;

/* The generations whose engines hold numbers of this format; both 0 where none does. Documented, but for E3M4 and
 * configurable FP8 of Trainium3, of which its pages say nothing. */
TRNI_FN void trni_format_span(trn_format format, trn_generation *first, trn_generation *last)
{
    static const struct { trn_format format; trn_generation first, last; } row[] = {
        { TRN_F8_E4M3FN, TRN_TRAINIUM3, TRN_TRAINIUM3 },
        { TRN_F8_E8M0, TRN_TRAINIUM3, TRN_TRAINIUM3 },
        { TRN_F4_E2M1, TRN_TRAINIUM3, TRN_TRAINIUM3 },
        { TRN_F8_E3M4, TRN_TRAINIUM1, TRN_TRAINIUM2 },
        { TRN_CFP8, TRN_TRAINIUM1, TRN_TRAINIUM2 },
        { TRN_F6_E2M3, TRN_GENERATION_DEFAULT, TRN_GENERATION_DEFAULT },
        { TRN_F6_E3M2, TRN_GENERATION_DEFAULT, TRN_GENERATION_DEFAULT },
    };
    *first = TRN_TRAINIUM1;
    *last = TRN_TRAINIUM3;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].format == format) {
            *first = row[i].first;
            *last = row[i].last;
        }
}

TRNI_FN trni_rate trni_rate_of(trn_generation generation, trn_format format)
{
    static const struct { trn_format format; trni_rate rate[3]; } row[] = { /* Trainium1, Trainium2, Trainium3 */
        { TRN_F32, { TRNI_RATE_F32, TRNI_RATE_F32, TRNI_RATE_F32 } },
        { TRN_TF32, { TRNI_RATE_BF16, TRNI_RATE_BF16, TRNI_RATE_BF16 } },
        { TRN_BF16, { TRNI_RATE_BF16, TRNI_RATE_BF16, TRNI_RATE_BF16 } },
        { TRN_F16, { TRNI_RATE_BF16, TRNI_RATE_BF16, TRNI_RATE_BF16 } },
        { TRN_F8_E4M3, { TRNI_RATE_F8, TRNI_RATE_F8, TRNI_RATE_F8 } },
        { TRN_F8_E4M3FN, { TRNI_RATE_NONE, TRNI_RATE_NONE, TRNI_RATE_MX } },
        { TRN_F8_E5M2, { TRNI_RATE_F8, TRNI_RATE_F8, TRNI_RATE_MX } },
        { TRN_F8_E3M4, { TRNI_RATE_F8, TRNI_RATE_BF16, TRNI_RATE_NONE } }, /* a footnote of the Trainium2 guide */
        { TRN_F4_E2M1, { TRNI_RATE_NONE, TRNI_RATE_NONE, TRNI_RATE_MX } },
        { TRN_CFP8, { TRNI_RATE_F8, TRNI_RATE_F8, TRNI_RATE_NONE } },
        { TRN_I8, { TRNI_RATE_INT8, TRNI_RATE_NONE, TRNI_RATE_NONE } },
    };
    const int g = trni_generation_index(generation);
    for (unsigned i = 0; g >= 0 && i < sizeof row / sizeof row[0]; i++)
        if (row[i].format == format) return row[i].rate[g];
    return TRNI_RATE_NONE;
}

/* Published flop/s of one chip; 0 when absent. */
TRNI_FN double trni_chip_flops_per_s(const trn_chip_spec *chip, trn_format format, bool sparse)
{
    const double dense_rate[TRNI_RATE_COUNT] = { 0, chip->f32_flops_per_s, chip->bf16_flops_per_s,
                                                 chip->f8_flops_per_s, chip->mx_flops_per_s, chip->int8_ops_per_s };
    const double sparse_rate[TRNI_RATE_COUNT] = { 0, 0, chip->sparse_bf16_flops_per_s, chip->sparse_f8_flops_per_s,
                                                  0, 0 };
    return (sparse ? sparse_rate : dense_rate)[trni_rate_of(chip->core->generation, format)];
}

TRN_API double trn_core_peak_flops_per_s(const trn_core_spec *core, trn_format format, bool sparse)
{
    TRNI_FLOATS;
    const double f32 = 1.0 / core->f32_passes, f8 = core->f8_products, mx = core->mx_products;
    const double stored = core->sparse_products; /* 4:16 skips three of four products of any format up to 16 bits */
    const double int8 = core->int8_products;
    const double dense_products[TRNI_RATE_COUNT] = { 0, f32, 1, f8, mx, int8 };
    const double sparse_products[TRNI_RATE_COUNT] = { 0, 0, stored, stored, 0, 0 };
    const double products = (sparse ? sparse_products : dense_products)[trni_rate_of(core->generation, format)];
    return products > 0 ? 2.0 * core->pe_rows * core->pe_columns * core->tensor_clock_hz * products : TRNI_NAN;
}

/* ---- one server: what is sold as one instance, or one server of an UltraServer ---- */

#define TRNI_SA3 "SemiAnalysis on Trainium3, 2025-12"

enum { TRNI_SERVER_FIELD_COUNT = 0 TRNI_SERVER_FIELDS(TRNI_ONE) };

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

enum {
#define TRNI_X(at, name, chip, FIELDS) at,
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
    TRNI_SERVER_COUNT
};

TRNI_DATA trn_source trni_server_source[][TRNI_SERVER_FIELD_COUNT] = {
#define TRNI_X(at, name, chip, FIELDS) { FIELDS(TRNI_SOURCE) },
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
};

TRNI_DATA trn_server_spec trni_server[] = {
#define TRNI_X(at, name, chip, FIELDS) { name, &trni_chip[chip], trni_server_source[at], FIELDS(TRNI_VALUE) },
    TRNI_SERVER_LIST(TRNI_X)
#undef TRNI_X
};

/* ---- one system: how many servers of which kind ---- */

enum { TRNI_SYSTEM_FIELD_COUNT = 0 TRNI_SYSTEM_FIELDS(TRNI_ONE) };

TRNI_DATA trn_source trni_system_source[][TRNI_SYSTEM_FIELD_COUNT] = {
#define TRNI_X(system, name, title, server, servers, domain, known, where) \
    { { "servers", TRN_##known, where }, { "servers_per_domain", TRN_##known, where } },
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
};

TRNI_DATA trn_system_spec trni_system[] = {
#define TRNI_X(system, name, title, server, servers, domain, known, where) \
    { system, name, title, &trni_server[server], trni_system_source[system], servers, domain },
    TRNI_SYSTEM_LIST(TRNI_X)
#undef TRNI_X
};

TRN_API const trn_system_spec *trn_system_spec_of(trn_system system)
{
    return (unsigned)system < TRN_SYSTEM_COUNT ? &trni_system[(unsigned)system] : NULL;
}

TRN_API const char *trn_system_name(trn_system system)
{
    const trn_system_spec *spec = trn_system_spec_of(system);
    return spec ? spec->name : "an unknown system";
}

TRN_API trn_system trn_system_from_name(const char *name)
{
    for (unsigned i = 0; name && i < TRN_SYSTEM_COUNT; i++)
        if (strcmp(name, trni_system[i].name) == 0) return trni_system[i].system;
    return TRN_SYSTEM_COUNT;
}

/* ---- the whole system ---- */

TRN_API int trn_spec_chips(const trn_system_spec *spec) { return spec->servers * spec->server->chips; }

TRN_API double trn_spec_tflops(const trn_system_spec *spec, trn_format format, bool sparse)
{
    TRNI_FLOATS;
    const double rate = trni_chip_flops_per_s(spec->server->chip, format, sparse);
    return rate > 0 ? rate / 1e12 * trn_spec_chips(spec) : TRNI_NAN;
}

enum { TRNI_TOTAL_FIELD_COUNT = 0 TRNI_TOTAL_FIELDS(TRNI_ONE) };

TRNI_FN double trni_neuronlink_bytes_per_s(const trn_system_spec *spec)
{
    const trn_server_spec *s = spec->server;
    const bool joined = spec->servers_per_domain > 1;
    return (s->chips > 1 ? s->server_links * s->server_link_bytes_per_s : 0) +
           (joined ? s->rack_links * s->rack_link_bytes_per_s + s->peer_links * s->peer_link_bytes_per_s : 0);
}

TRN_API trn_spec_totals trn_spec_totals_of(const trn_system_spec *spec)
{
    TRNI_FLOATS;
    const trn_server_spec *server = spec->server;
    const trn_chip_spec *chip = server->chip;
    const double chips = trn_spec_chips(spec), cores = chips * chip->cores;
    trn_spec_totals t;
    t.chips = chips;
    t.cores = cores;
    t.logical_cores = cores / chip->cores_per_logical_core;
    t.sbuf_bytes = cores * trn_core_sbuf_bytes(chip->core);
    t.hbm_bytes = chips * chip->hbm_bytes;
    t.hbm_bytes_per_s = chips * chip->hbm_bytes_per_s;
    t.dma_engines = cores * chip->core->dma_engines;
    t.neuronlink_chip_bytes_per_s = trni_neuronlink_bytes_per_s(spec);
    t.efa_bits_per_s = spec->servers * server->efa_bits_per_s;
    t.vcpus = (double)spec->servers * server->vcpus;
    t.host_bytes = spec->servers * server->host_bytes;
    t.f32_flops_per_s = chips * chip->f32_flops_per_s;
    t.bf16_flops_per_s = chips * chip->bf16_flops_per_s;
    t.f8_flops_per_s = chips * chip->f8_flops_per_s;
    t.mx_flops_per_s = chips * chip->mx_flops_per_s;
    t.int8_ops_per_s = chips * chip->int8_ops_per_s;
    t.sparse_bf16_flops_per_s = chips * chip->sparse_bf16_flops_per_s;
    t.sparse_f8_flops_per_s = chips * chip->sparse_f8_flops_per_s;
    return t;
}

/* ---- every number in turn ---- */

#define TRNI_READ(type, field, unit) (double)row->field,
#define TRNI_UNIT(type, field, unit) unit,
#define TRNI_NAME(type, field, unit) #field,

/* Sources are in the order of the fields, which the tests hold against the names that the sources carry. */
#define TRNI_FIELD_AT(level_, row_t, FIELDS, OWNER)                                                                  \
    TRNI_FN void trni_##level_##_field(const row_t *row, int i, trn_spec_field *out)                                 \
    {                                                                                                                \
        static const char *const unit[] = { FIELDS(TRNI_UNIT) };                                                     \
        static const char *const name[] = { FIELDS(TRNI_NAME) };                                                     \
        const double value[] = { FIELDS(TRNI_READ) };                                                                \
        out->level = #level_;                                                                                        \
        out->owner = OWNER;                                                                                          \
        out->field = name[i];                                                                                        \
        out->unit = unit[i];                                                                                         \
        out->value = value[i];                                                                                       \
        out->known = row->source[i].known;                                                                           \
        out->where = row->source[i].where;                                                                           \
    }

TRNI_FIELD_AT(core, trn_core_spec, TRNI_CORE_FIELDS, row->name)
TRNI_FIELD_AT(chip, trn_chip_spec, TRNI_CHIP_FIELDS, row->name)
TRNI_FIELD_AT(server, trn_server_spec, TRNI_SERVER_FIELDS, row->name)
TRNI_FIELD_AT(system, trn_system_spec, TRNI_SYSTEM_FIELDS, row->name)

TRNI_FN void trni_total_field(const trn_system_spec *spec, int i, trn_spec_field *out)
{
    static const char *const unit[] = { TRNI_TOTAL_FIELDS(TRNI_UNIT) };
    static const char *const name[] = { TRNI_TOTAL_FIELDS(TRNI_NAME) };
    const trn_spec_totals totals = trn_spec_totals_of(spec), *row = &totals;
    const double value[] = { TRNI_TOTAL_FIELDS(TRNI_READ) };
    out->level = "total";
    out->owner = spec->name;
    out->field = name[i];
    out->unit = unit[i];
    out->value = value[i];
    out->known = TRN_DERIVED;
    out->where = "the rows of the server, the chip and the core, multiplied";
}

#undef TRNI_READ
#undef TRNI_UNIT
#undef TRNI_NAME
#undef TRNI_FIELD_AT

TRN_API bool trn_spec_field_at(const trn_system_spec *spec, int index, trn_spec_field *out)
{
    TRNI_FLOATS;
    if (index < 0) return false;
    int i = index;
    if (i < TRNI_SYSTEM_FIELD_COUNT) trni_system_field(spec, i, out);
    else if ((i -= TRNI_SYSTEM_FIELD_COUNT) < TRNI_SERVER_FIELD_COUNT) trni_server_field(spec->server, i, out);
    else if ((i -= TRNI_SERVER_FIELD_COUNT) < TRNI_CHIP_FIELD_COUNT) trni_chip_field(spec->server->chip, i, out);
    else if ((i -= TRNI_CHIP_FIELD_COUNT) < TRNI_CORE_FIELD_COUNT) trni_core_field(spec->server->chip->core, i, out);
    else if ((i -= TRNI_CORE_FIELD_COUNT) < TRNI_TOTAL_FIELD_COUNT) trni_total_field(spec, i, out);
    else return false;
    return true;
}

/* ---- where the sources contradict each other ---- */

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
    X(TRN_TRN1_32XLARGE, "core", "dma_engine_peak_bytes_per_s", 27 * TRNI_GIB, DOCUMENTED, "Neuron SDK, NKI guides", \
      "one guide writes GiB/s; the DMA overview says 27.2 GB/s")                                                     \
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

TRN_API bool trn_spec_field_named(const trn_system_spec *spec, const char *level, const char *field,
                                  trn_spec_field *out)
{
    TRNI_FLOATS;
    for (int i = 0; trn_spec_field_at(spec, i, out); i++)
        if (strcmp(out->level, level) == 0 && strcmp(out->field, field) == 0) return true;
    return false;
}

TRN_API bool trn_spec_alternative_at(int index, trn_spec_alternative *out)
{
    static const struct {
        trn_system system;
        const char *level, *field;
        double value;
        trn_provenance known;
        const char *where, *why;
    } row[] = {
#define TRNI_X(system, level, field, value, known, where, why) { system, level, field, value, TRN_##known, where, why },
        TRNI_ALTERNATIVE_LIST(TRNI_X)
#undef TRNI_X
    };
    if (index < 0 || index >= (int)(sizeof row / sizeof row[0])) return false;
    out->system = row[index].system;
    out->value = row[index].value;
    out->known = row[index].known;
    out->where = row[index].where;
    out->why = row[index].why;
    return trn_spec_field_named(trn_system_spec_of(out->system), row[index].level, row[index].field, &out->chosen);
}

/* ---- what a core does and holds, in words ---- */

TRN_API const char *trn_matmul_mode_name(trn_matmul_mode mode)
{
    static const char *const name[] = { "fastest", "plain", "double_row", "mx", "sparse", "transpose", "int8" };
    return (unsigned)mode < sizeof name / sizeof name[0] ? name[(unsigned)mode] : "unknown";
}

TRN_API const char *trn_space_name(trn_space space)
{
    static const char *const name[TRN_SPACE_COUNT] = { "SBUF", "PSUM", "HBM" };
    return (unsigned)space < TRN_SPACE_COUNT ? name[(unsigned)space] : "no memory";
}

#endif /* TRNI_BODIES */

#endif /* TRN_SPEC_H */
