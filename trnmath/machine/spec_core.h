/* machine/spec_core.h - NeuronCore-v2, v3 and v4 as data, and how each number is known.
 * A part of trn_spec.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_spec.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_core_spec *core = trn_core_spec_of(TRN_TRAINIUM2);
 *         printf("%s: %g MiB of SBUF, %.1f TFLOPS in BF16\n", core->name, trn_core_sbuf_bytes(core) / 1048576,
 *                trn_core_peak_flops_per_s(core, TRN_BF16, false) / 1e12);
 *         return core->max_k == 128 ? 0 : 1;
 *     }
 *
 * DOES: holds one row for each NeuronCore: clocks, widths, tile limits, modes, memories, DMA; and says which formats
 *     its tensor engine multiplies, and how fast.
 * DOES NOT: know chips, servers or systems, which trn_spec.h has.
 *
 * KNOWN FROM: the Neuron SDK documentation of August 2026 (2.32). Every row of machine/spec_core_rows.h names its page.
 *
 * Units are SI and bytes, and stand in the names.
 */
#ifndef TRNI_MACHINE_SPEC_CORE_H
#define TRNI_MACHINE_SPEC_CORE_H

#include "../number/format.h"
#include "spec_core_rows.h"

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

/* ---- one NeuronCore ---- */

#define TRNI_CORE_FIELDS(X)                                                                                            \
    X(int, pe_rows, "rows")               /* the systolic array; its rows are the contraction axis K, */               \
    X(int, pe_columns, "columns")         /* its columns the free axis of the stationary operand */                    \
    X(int, max_k, "rows")                 /* limits of one matrix instruction: rows of both operands; */               \
    X(int, max_m, "columns")              /* free size of the stationary operand */                                    \
    X(int, f32_passes, "passes")          /* cycles of an F32 matmul over those of a BF16 one */                       \
    X(int, f32_onezero_passes, "passes")  /* when one operand is known to hold zeros and ones; */                      \
    X(int, fp32r_passes, "passes")        /* with F32 operands read as TF32 */                                         \
    X(int, moving_min_cycles, "cycles")   /* shortest MultiplyMoving */                                                \
    X(int, load_min_cycles, "cycles")     /* shortest LoadStationary */                                                \
    X(int, load_speedup, "columns/cycle") /* stationary columns loaded per cycle */                                    \
    X(int, partitions, "partitions")      /* of SBUF and of PSUM */                                                    \
    X(double, psum_partition_bytes, "B")                                                                               \
    X(int, psum_banks, "banks")                                                                                        \
    X(int, dma_engines, "engines")                                                                                     \
    X(double, dma_latency_s, "s")          /* semaphore to first byte */                                               \
    X(int, vector_min_cycles, "cycles")    /* shortest instruction of VectorE */                                       \
    X(int, max_n, "columns")               /* free size of the moving operand, F32 destination; */                     \
    X(int, max_n_bf16, "columns")          /* the same, 2-byte destination */                                          \
    X(int, row_tile_min, "rows")           /* row and column tiling: the array as independent */                       \
    X(int, column_tile_min, "columns")     /* pieces, down to this size */                                             \
    X(bool, double_row, "")                /* FP8: two rows of K per PE row */                                         \
    X(bool, mx, "")                        /* block-scaled FP8 and FP4: four rows of K per PE row */                   \
    X(bool, sparse, "")                    /* structured sparsity */                                                   \
    X(bool, bf16_psum, "")                 /* PSUM can hold and accumulate BF16 */                                     \
    X(bool, transpose_mode, "")            /* bit-exact transposes through the array */                                \
    X(int, f8_products, "products")        /* per PE and cycle with FP8 operands at their fastest */                   \
    X(int, mx_products, "products")        /* with MX operands; 0 = none */                                            \
    X(int, sparse_products, "products")    /* dense products replaced per PE and cycle at 4:16; 0 = none */            \
    X(int, int8_products, "products")      /* with INT8 operands; 0 = none */                                          \
    X(int, f32_transpose_passes, "passes") /* cycles of a transpose of F32 over those of BF16 */                       \
    X(double, tensor_clock_hz, "Hz")                                                                                   \
    X(double, tensor_cold_rate, "share")  /* share of its rate that a cold TensorE reaches; it warms */                \
    X(double, tensor_warm_up_s, "s")      /* up in this time, and is cold again after a window as */                   \
    X(double, tensor_busy_share, "share") /* long that had it at work for less than this share */                      \
    X(double, vector_clock_hz, "Hz")                                                                                   \
    X(double, scalar_clock_hz, "Hz")                                                                                   \
    X(double, gpsimd_clock_hz, "Hz")                                                                                   \
    X(int, vector_elements, "elements/cycle")                                                                          \
    X(int, vector_elements_16bit, "elements/cycle") /* at most, with BF16 and F16 */                                   \
    X(int, scalar_elements, "elements/cycle")                                                                          \
    X(int, gpsimd_elements, "elements/cycle")                                                                          \
    X(double, sbuf_partition_bytes, "B")                                                                               \
    X(double, dma_engine_bytes_per_s, "B/s") /* practical */                                                           \
    X(double, dma_engine_peak_bytes_per_s, "B/s")                                                                      \
    X(double, f32_flops_per_s, "flop/s")  /* TensorE as the vendor rounds it; 0 = not listed; */                       \
    X(double, bf16_flops_per_s, "flop/s") /* trn_core_peak_flops_per_s has the exact peak */                           \
    X(double, f8_flops_per_s, "flop/s")                                                                                \
    X(double, mx_flops_per_s, "flop/s")                                                                                \
    X(double, sparse_flops_per_s, "flop/s")                                                                            \
    X(double, vector_flops_per_s, "flop/s")                                                                            \
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

/* ---- which formats the tensor engine multiplies, and in which of its speeds ---- */

/* What the systolic array of one core can do in its fastest mode for this format: two flops for each product of each PE
 * in each cycle. NaN when the core has no such operand. INT8, Trainium1 only, is what its page says the engine does:
 * NKI's matrix instruction does not take it. */
TRN_API double trn_core_peak_flops_per_s(const trn_core_spec *core, trn_format format, bool sparse);

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

/* A Tensor engine that warms up (tensor_cycles.h). Zero is cold. Time counts from the first instruction. */
typedef struct trni_throttle {
    double warm_s;        /* at work since it was cold, at most the warm-up time */
    double now_s, busy_s; /* within the present window: how far, and how much of it all rows worked at full speed */
    double elapsed_s;     /* before the present window */
    double colder;        /* how often it became cold again */
} trni_throttle;

#if TRNI_BODIES

#include "spec_formats.h"

/* ---- how a number is known ---- */

TRN_API const char *trn_provenance_text(trn_provenance known)
{
    static const char *const text[] = { "documented", "measured", "third party", "derived", "fitted", "assumed" };
    return (unsigned)known < sizeof text / sizeof text[0] ? text[(unsigned)known] : "unknown";
}

/* Every row of machine/spec_*_rows.h is a list of F(field, value, how it is known, where). A list is expanded twice,
 * into the struct of plain values and into the array of sources, so that a value and its source stand on one line and
 * cannot part. */
#define TRNI_VALUE(field, value, known, where) value

#define TRNI_SOURCE(field, value, known, where)                                                                        \
    {                                                                                                                  \
#field, TRN_##known, where                                                                                     \
    }
#define TRNI_ONE(type, field, unit) +1

#define TRNI_NAN __builtin_nan("")

/* ---- one NeuronCore ---- */

enum { TRNI_CORE_FIELD_COUNT = 0 TRNI_CORE_FIELDS(TRNI_ONE) };

TRNI_DATA trn_source trni_core_source[][TRNI_CORE_FIELD_COUNT] = { { TRNI_CORE_V2(TRNI_SOURCE) },
                                                                   { TRNI_CORE_V3(TRNI_SOURCE) },
                                                                   { TRNI_CORE_V4(TRNI_SOURCE) } };

TRNI_DATA trn_core_spec trni_core[] = {
    { TRN_TRAINIUM1, "NeuronCore-v2", trni_core_source[0], TRNI_CORE_V2(TRNI_VALUE) },
    { TRN_TRAINIUM2, "NeuronCore-v3", trni_core_source[1], TRNI_CORE_V3(TRNI_VALUE) },
    { TRN_TRAINIUM3, "NeuronCore-v4", trni_core_source[2], TRNI_CORE_V4(TRNI_VALUE) },
};

/* The same without sources, which programs that only multiply need not hold. */
TRNI_DATA trn_core_spec trni_core_plain[] = {
    { TRN_TRAINIUM1, "NeuronCore-v2", NULL, TRNI_CORE_V2(TRNI_VALUE) },
    { TRN_TRAINIUM2, "NeuronCore-v3", NULL, TRNI_CORE_V3(TRNI_VALUE) },
    { TRN_TRAINIUM3, "NeuronCore-v4", NULL, TRNI_CORE_V4(TRNI_VALUE) },
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

TRNI_FN const trn_core_spec *trni_core_plain_of(trn_generation generation)
{
    const int i = trni_generation_index(generation);
    return i < 0 ? NULL : &trni_core_plain[i];
}

TRN_API double trn_core_sbuf_bytes(const trn_core_spec *core) { return core->partitions * core->sbuf_partition_bytes; }
TRN_API double trn_core_psum_bytes(const trn_core_spec *core) { return core->partitions * core->psum_partition_bytes; }

/* ---- which formats the engines of a generation have ---- */

TRNI_FN trni_rate trni_rate_of(trn_generation generation, trn_format format)
{
    const int g = trni_generation_index(generation);
    return g < 0 ? TRNI_RATE_ABSENT : (trni_rate)trni_rates_of(format)->of[g];
}

TRNI_FN bool trni_holds(trn_generation generation, trn_format format)
{
    return trni_rate_of(generation, format) != TRNI_RATE_ABSENT;
}

TRNI_FN bool trni_multiplies(trn_generation generation, trn_format format)
{
    return trni_rate_of(generation, format) > TRNI_RATE_HELD;
}

TRN_API double trn_core_peak_flops_per_s(const trn_core_spec *core, trn_format format, bool sparse)
{
    TRNI_FLOATS;
    const double f32 = 1.0 / core->f32_passes, f8 = core->f8_products, mx = core->mx_products;
    const double stored = core->sparse_products; /* 4:16 skips three of four products of any format up to 16 bits */
    const double int8 = core->int8_products;
    const double dense_products[TRNI_RATE_COUNT] = { 0, 0, f32, 1, f8, mx, int8 };
    const double sparse_products[TRNI_RATE_COUNT] = { 0, 0, 0, stored, stored, 0, 0 };
    const double products = (sparse ? sparse_products : dense_products)[trni_rate_of(core->generation, format)];
    return products > 0 ? 2.0 * core->pe_rows * core->pe_columns * core->tensor_clock_hz * products : TRNI_NAN;
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

#endif /* TRNI_MACHINE_SPEC_CORE_H */
