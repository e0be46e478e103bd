/* machine/engine_cycles.h - what instructions of Vector, Scalar, GpSimd and DMA cost, each with its source.
 * A part of trn_cost.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_cost.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_engine_work work = { .rule = TRN_RULE_TENSOR_TENSOR, .generation = TRN_TRAINIUM2, .elements = 512 };
 *         trn_engine_cost cost;
 *         if (trn_engine_cycles(&work, &cost)) return 1;
 *         printf("%.0f cycles of %s (%s: %s)\n", cost.cycles, cost.rule->engine, trn_provenance_text(cost.rule->known),
 *                cost.rule->where);
 *         for (int i = 0; i < TRN_RULE_COUNT; i++) puts(trn_engine_rule_of((trn_rule)i)->name);
 *         return cost.cycles == 1024 ? 0 : 1;
 *     }
 *
 * DOES: cycles = max(minimum, elements per partition x per_element / speed-up) + fixed, where the speed-up depends on
 *     formats, memories and strides as published for the generation; seconds by the engine's clock. DMA: descriptors,
 *     latency, transfer.
 * DOES NOT: know tensors (trn_core.h asks with numbers), or what several instructions cost together.
 *
 * KNOWN FROM: NKI's architecture guides, its pages on DMA, and the instruction pages of release 2.25, the last ones
 *     with costs (documented); where a row says assumed, nothing is published, and it says why the number is what it
 *     is.
 */
#ifndef TRNI_MACHINE_ENGINE_CYCLES_H
#define TRNI_MACHINE_ENGINE_CYCLES_H

#include "spec_physical.h"

/* ---- numbers that are no instruction's own ---- */

#define TRNI_NKIBENCH2                                                                                                 \
    "github.com/Jerry2423/kda-for-trainium, workspaces: NKIBench on one core of Trainium2 (an engine's share at work " \
    "x twice the printed time, which is the middle between a run and an empty one)"
#define TRNI_NKIBENCH1 "github.com/zhang677/AccelOpt, profile_results.csv: NKIBench on one core of Trainium1"

#define TRNI_FACTS(X)                                                                                                  \
    X(DEPENDENT, 100, "cycles", DOCUMENTED,                                                                            \
      TRNI_NKI1 " (Vector engine, cost model): a short instruction, or one "                                           \
                "that reads what the one right before it wrote")                                                       \
    X(SHORT, 64, "elements", ASSUMED, "far fewer than 128: the guide has no bound; this is the shortest instruction")  \
    X(REGISTERS, 64, "cycles", DOCUMENTED, TRNI_NKI1 " (pipelined reduction): to write the registers out")             \
    X(FAR_STRIDE, 16, "bytes", DOCUMENTED, TRNI_NKI1 " (access pattern): beyond it half the bandwidth")                \
    X(INDIRECT, 64, "cycles", ASSUMED,                                                                                 \
      "for each indirect view, to read its index: as the shortest instruction; no "                                    \
      "number is published")                                                                                           \
    X(REGISTER, 64, "cycles", ASSUMED,                                                                                 \
      "between a sequencer's register and SBUF, of VectorE's clock: as the shortest "                                  \
      "instruction; no number is published")                                                                           \
    X(BRANCH, 64, "cycles", ASSUMED, "from a register that is known to the instruction that depends on it: the same")  \
    X(SEMAPHORE, 0, "cycles", ASSUMED, "between engines: no number is published")                                      \
    X(DGE, 600e-9, "s", DOCUMENTED, TRNI_NKI2 " (descriptor generation engine): per instruction, in hardware")         \
    X(DGES, 2, "units", DOCUMENTED, TRNI_NKI2 " (descriptor generation engine)")                                       \
    X(SOFTWARE_DGE, 600e-9, "s", ASSUMED, "of GpSimd's time per instruction: as the hardware's, nothing is published") \
    X(DESCRIPTOR, 4096, "bytes", DOCUMENTED, TRNI_DMA_PEAK ": from here on larger ones are no faster")                 \
    X(SMALLEST, 512, "bytes", ASSUMED,                                                                                 \
      "a shorter descriptor costs as much; the guide only says that 2 KiB and more "                                   \
      "are recommended")                                                                                               \
    X(TRANSPOSE, 0.9, "share", DOCUMENTED, TRNI_NKI2 " (DMA transpose): of the rate of copies, from HBM")              \
    X(TRANSPOSE_SBUF, 0.5, "share", DOCUMENTED, TRNI_NKI2 " (DMA transpose): within SBUF")                             \
    X(COMPUTE, 0.5, "share", DOCUMENTED, TRNI_NKI3 " (read-add-write): DMA compute against copies")                    \
    X(START_VECTOR, 100e-9, "s", MEASURED,                                                                             \
      TRNI_NKIBENCH2 ": rope 80 to 132 ns an instruction, adamw 110; 96 on Trainium1 (AccelOpt)")                      \
    X(START_SCALAR, 250e-9, "s", MEASURED, TRNI_NKIBENCH2 ": silu 300 ns an instruction, rope 210 to 234, adamw 255")  \
    X(COPIES, 25.5e9, "B/s", MEASURED,                                                                                 \
      TRNI_NKIBENCH2 ": of a DMA engine of Trainium2: silu 409 to 428 GB/s of 16, adamw 414, bmm 405")                 \
    X(SHORTEST, 71e-9, "s", MEASURED,                                                                                  \
      TRNI_NKIBENCH2                                                                                                   \
      ": of a descriptor, however short: lora 71 ns for rows of 512 bytes, matmul 88; of 2 KiB 92; " TRNI_DMA_PEAK     \
      " recommends 2 KiB and more")                                                                                    \
    X(JOINED, 2048, "bytes", MEASURED,                                                                                 \
      TRNI_NKIBENCH2 ": rows of transfers that continue each other make one descriptor so far, and instructions on "   \
                     "their tiles one: rope in tiles of 128 and 256 columns takes as long as in tiles of 512")         \
    X(HALF_REACH, 0.55, "share", MEASURED,                                                                             \
      TRNI_NKIBENCH2 ": of that where a transfer reaches 64 partitions or fewer: rope 217 to 228 GB/s; " TRNI_DMA_REAL \
                     " says fewer engines")

typedef enum trn_fact {
#define TRNI_X(id, value, unit, known, where) TRN_FACT_##id,
    TRNI_FACTS(TRNI_X)
#undef TRNI_X
        TRN_FACT_COUNT
} trn_fact;

typedef struct trn_engine_fact {
    const char *name;
    double value;
    const char *unit;
    trn_provenance known;
    const char *where;
} trn_engine_fact;

/* NULL for what is none. */
TRN_API const trn_engine_fact *trn_engine_fact_of(trn_fact fact);

/* ---- what is asked ---- */

typedef struct trn_engine_work trn_engine_work;

/* ---- every instruction's row ----
 * X(id, name, engine, per_element, fixed, minimum, speed-up, known, where) */

#define TRNI_AS_OTHERS "no cost is published: as other instructions with as many inputs (" TRNI_NKI1 ", cost model)"
#define TRNI_GPSIMD_OTHERS "no cost is published: the start of iota, an element per partition and cycle"

#define TRNI_RULES(X)                                                                                                  \
    X(TENSOR_SCALAR, "tensor_scalar", VECTOR, 1, 0, 64, copy, DOCUMENTED, TRNI_OLD "; faster modes: " TRNI_NKI2)       \
    X(TENSOR_COPY, "tensor_copy", VECTOR, 1, 0, 64, copy, DOCUMENTED, TRNI_OLD "; faster modes: " TRNI_NKI2)           \
    X(TENSOR_TENSOR, "tensor_tensor", VECTOR, 2, 0, 64, pair, DOCUMENTED, TRNI_OLD "; faster modes: " TRNI_NKI2)       \
    X(SCALAR_TENSOR_TENSOR, "scalar_tensor_tensor", VECTOR, 2, 0, 64, fused, DOCUMENTED, TRNI_OLD)                     \
    X(TENSOR_COPY_PREDICATED, "tensor_copy_predicated", VECTOR, 2, 0, 64, psum, DOCUMENTED, TRNI_OLD)                  \
    X(MEMSET, "memset", VECTOR, 1, 0, 64, zero, DOCUMENTED, TRNI_OLD)                                                  \
    X(RECIPROCAL, "reciprocal", VECTOR, 8, 0, 64, none, DOCUMENTED,                                                    \
      "Neuron SDK, nki.api.shared.rst (supported "                                                                     \
      "functions)")                                                                                                    \
    X(TENSOR_REDUCE, "tensor_reduce", VECTOR, 1, 0, 64, narrow, DOCUMENTED, TRNI_OLD " (the minimum: assumed)")        \
    X(TENSOR_SCALAR_REDUCE, "tensor_scalar_reduce", VECTOR, 1, 64, 64, none, DOCUMENTED, TRNI_OLD)                     \
    X(TENSOR_SCALAR_CUMULATIVE, "tensor_scalar_cumulative", VECTOR, 1, 0, 64, none, ASSUMED, TRNI_AS_OTHERS)           \
    X(TENSOR_TENSOR_SCAN, "tensor_tensor_scan", VECTOR, 2, 0, 64, none, DOCUMENTED, TRNI_OLD)                          \
    X(EXPONENTIAL, "exponential", VECTOR, 0.25, 0, 64, none, DOCUMENTED, TRNI_NKI3 " (four times ScalarE)")            \
    X(RANGE_SELECT, "range_select", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                                      \
    X(SELECT_REDUCE, "select_reduce", VECTOR, 2, 0, 64, psum, ASSUMED, TRNI_AS_OTHERS)                                 \
    X(BN_STATS, "bn_stats", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                                              \
    X(BN_AGGR, "bn_aggr", VECTOR, 13.0 / 3, 0, 64, none, DOCUMENTED, TRNI_OLD)                                         \
    X(MAX8, "max8", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD " (the minimum: assumed)")                            \
    X(NC_FIND_INDEX8, "nc_find_index8", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD " (the minimum: assumed)")        \
    X(NC_MATCH_REPLACE8, "nc_match_replace8", VECTOR, 1, 0, 64, none, ASSUMED, "as nc_find_index8")                    \
    X(NC_STREAM_SHUFFLE, "nc_stream_shuffle", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                            \
    X(VECTOR_TRANSPOSE, "vector_transpose", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                              \
    X(QUANTIZE_MX, "quantize_mx", VECTOR, 0.25, 0, 64, none, DOCUMENTED, TRNI_NKI3 " (4 elements a cycle)")            \
    X(RNG, "rng", VECTOR, 1, 0, 64, none, ASSUMED, TRNI_AS_OTHERS)                                                     \
    X(RAND2, "rand2", VECTOR, 1, 0, 64, none, ASSUMED, TRNI_AS_OTHERS)                                                 \
    X(DROPOUT, "dropout", VECTOR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                                                \
    X(SET_RNG_SEED, "set_rng_seed", VECTOR, 1, 0, 64, none, ASSUMED, TRNI_AS_OTHERS)                                   \
    X(RAND_STATE, "rand_set_state, rand_get_state", VECTOR, 1, 0, 64, none, ASSUMED, TRNI_AS_OTHERS)                   \
    X(ACTIVATION, "activation", SCALAR, 1, 0, 64, none, DOCUMENTED, TRNI_OLD)                                          \
    X(ACTIVATE2, "activate2", SCALAR, 1, 0, 64, none, ASSUMED, "as activation")                                        \
    X(SCALAR_COPY, "tensor_copy on ScalarE", SCALAR, 1, 0, 64, scalar, DOCUMENTED,                                     \
      TRNI_OLD "; twice as fast: " TRNI_NKI3)                                                                          \
    X(SCALAR_TENSOR_SCALAR, "tensor_scalar on ScalarE", SCALAR, 1, 0, 64, scalar, DOCUMENTED, TRNI_NKI3)               \
    X(GPSIMD_TENSOR_TENSOR, "tensor_tensor on GpSimdE", GPSIMD, 2, 150, 0, none, ASSUMED,                              \
      "no cost is published: the "                                                                                     \
      "start of iota, and two inputs through a port of one element per partition and cycle")                           \
    X(GPSIMD_TENSOR_SCALAR, "tensor_scalar on GpSimdE", GPSIMD, 1, 150, 0, none, ASSUMED, TRNI_GPSIMD_OTHERS)          \
    X(GPSIMD_COPY, "tensor_copy, memset on GpSimdE", GPSIMD, 1, 150, 0, none, ASSUMED, TRNI_GPSIMD_OTHERS)             \
    X(GPSIMD_POWER, "power, rsqrt", GPSIMD, 4, 150, 0, none, DOCUMENTED,                                               \
      "Neuron SDK, nki.api.shared.rst: rsqrt has "                                                                     \
      "a quarter of ScalarE's throughput (power: assumed)")                                                            \
    X(IOTA, "iota", GPSIMD, 1, 150, 0, none, DOCUMENTED, TRNI_OLD)                                                     \
    X(AFFINE_SELECT, "affine_select", GPSIMD, 1, 150, 0, none, DOCUMENTED, TRNI_OLD)                                   \
    X(LOCAL_GATHER, "local_gather", GPSIMD, 1, 150, 0, none, DOCUMENTED,                                               \
      TRNI_OLD " (the constant of each dtype: "                                                                        \
               "assumed to be 1)")                                                                                     \
    X(NC_N_GATHER, "nc_n_gather", GPSIMD, 1, 150, 0, none, ASSUMED, TRNI_GPSIMD_OTHERS)                                \
    X(TENSOR_PARTITION_REDUCE, "tensor_partition_reduce", GPSIMD, 8, 150, 0, none, ASSUMED,                            \
      "no cost is published: "                                                                                         \
      "16 partitions in each of 8 processors, then those 8: four and three steps of halving, and a store")             \
    X(NONZERO_WITH_COUNT, "nonzero_with_count", GPSIMD, 1, 150, 0, none, ASSUMED, TRNI_GPSIMD_OTHERS)                  \
    X(SEQUENCE_BOUNDS, "sequence_bounds", GPSIMD, 1, 150, 0, none, ASSUMED, TRNI_GPSIMD_OTHERS)                        \
    X(TOPK, "topk", GPSIMD, 4, 0, 0, none, DOCUMENTED, "Neuron SDK, nki.isa reference, topk: 4 n + K")                 \
    X(GPSIMD_RNG, "rng, rand_set_state, rand_get_state on GpSimdE", GPSIMD, 1, 150, 0, none, ASSUMED,                  \
      TRNI_GPSIMD_OTHERS)                                                                                              \
    X(GPSIMD_CUSTOM, "gpsimd_custom", GPSIMD, 0, 0, 0, none, ASSUMED, "the operator's own estimate")

typedef enum trn_rule {
#define TRNI_X(id, name, engine, per_element, fixed, minimum, speed, known, where) TRN_RULE_##id,
    TRNI_RULES(TRNI_X)
#undef TRNI_X
        TRN_RULE_COUNT,
    TRN_RULE_NONE = TRN_RULE_COUNT
} trn_rule;

/* Elements that take fewer cycles than the row says: X(rule, since which generation, per_element, where) */
#define TRNI_MEASURED_RULES(X)                                                                                         \
    X(TENSOR_TENSOR, TRN_TRAINIUM2, 1, TRNI_NKIBENCH2 ": rope, F32 in SBUF (Trainium1 takes the 2 of the pages)")      \
    X(SCALAR_TENSOR_TENSOR, TRN_TRAINIUM2, 1, TRNI_NKIBENCH2 ": adamw, F32 in SBUF")                                   \
    X(RECIPROCAL, TRN_TRAINIUM1, 1, TRNI_NKIBENCH1 ": silu, 1.2 at most beside what else VectorE does there")

typedef enum trni_clock { TRNI_CLOCK_VECTOR, TRNI_CLOCK_SCALAR, TRNI_CLOCK_GPSIMD } trni_clock;

typedef struct trn_engine_rule {
    const char *name, *engine;
    trni_clock clock;
    double per_element, fixed, minimum; /* cycles */
    double (*speed_up)(const trn_engine_work *work);
    const char *speeds; /* which speed-ups there are */
    trn_provenance known;
    const char *where;
} trn_engine_rule;

struct trn_engine_work {
    trn_rule rule;
    trn_generation generation;
    double elements;    /* per partition, of the longest operand; topk: n of the search */
    double more_cycles; /* topk: K; a custom operator's estimate */
    bool all_16bit;     /* BF16 or F16: inputs and outputs */
    bool all_fast;      /* the same, or FP8, which counts on Trainium3 */
    bool all_bf16;
    bool scattered;  /* an innermost step is not one element */
    bool far_stride; /* an innermost step is beyond 16 bytes */
    int psum_inputs, psum_outputs;
    bool simple;    /* the operators that the row's fast case asks for */
    bool zero;      /* memset: to 0 */
    bool registers; /* the result of a reduction is written out by a second instruction */
    bool dependent; /* reads what the instruction right before it wrote, or both are short */
    bool measured;  /* what device profiles say goes before the pages: every instruction pays for its start */
    bool joined;    /* but one that a compiler makes one with the instruction before it */
};

/* ---- speed-ups ---- */

/* NULL for what is none. */
TRN_API const trn_engine_rule *trn_engine_rule_of(trn_rule rule);

/* ---- the answer ---- */

typedef struct trn_engine_cost {
    double cycles, seconds;
    const trn_engine_rule *rule;
} trn_engine_cost;

/* TRN_EINVAL for a rule or a generation that does not exist, or a negative or endless size. */
TRN_API trn_status trn_engine_cycles(const trn_engine_work *work, trn_engine_cost *cost);

/* ---- DMA ---- */

typedef struct trn_dma_work {
    trn_generation generation;
    double bytes;     /* moved: the larger of both sides */
    double run_bytes; /* that follow each other on both sides */
    double wire;      /* bytes on the wire / bytes, Trainium1's compression; 0 = 1 */
    bool transpose, from_sbuf;
    bool compute;            /* sums on the way */
    bool software, hardware; /* who makes the descriptors; neither: they lie ready */
    bool measured;           /* at the rate that device profiles show, where there are some */
    double partitions;       /* of SBUF that it reaches; matters there */
    double before_bytes;     /* there: of the same runs, that transfers before brought and a compiler joins to these */
} trn_dma_work;

typedef struct trn_dma_cost {
    double descriptors;
    double latency_s;  /* from the semaphore to the first byte; others' transfers go on meanwhile (assumed) */
    double transfer_s; /* all engines of the core share the descriptors (assumed: evenly) */
    double issue_s;    /* of a descriptor generation engine */
    double gpsimd_s;   /* of GpSimd's time */
    trn_source rate_known, latency_known;
} trn_dma_cost;

/* TRN_EINVAL for a generation that does not exist, or sizes that are negative or endless. A transpose is charged by its
 * bytes, since it reads in pieces of its own. */
TRN_API trn_status trn_dma_seconds(const trn_dma_work *work, trn_dma_cost *cost);

#if TRNI_BODIES

#include "tensor_cycles.h"

/* ---- numbers that are no instruction's own ---- */

TRN_API const trn_engine_fact *trn_engine_fact_of(trn_fact fact)
{
#define TRNI_X(id, value, unit, known, where) { #id, value, unit, TRN_##known, where },
    static const trn_engine_fact table[TRN_FACT_COUNT] = { TRNI_FACTS(TRNI_X) };
#undef TRNI_X
    return (unsigned)fact < TRN_FACT_COUNT ? &table[(unsigned)fact] : NULL;
}

TRNI_FN double trni_fact(trn_fact fact) { return trn_engine_fact_of(fact)->value; }

/* ---- speed-ups ---- */

TRNI_FN bool trni_work_since(const trn_engine_work *w, trn_generation first)
{
    return trn_core_spec_of(w->generation)->generation >= first;
}

TRNI_FN bool trni_work_narrow(const trn_engine_work *w)
{
    return w->all_16bit || (w->all_fast && trni_work_since(w, TRN_TRAINIUM3));
}

TRNI_FN double trni_speed_none(const trn_engine_work *w)
{
    (void)w;
    return 1;
}

TRNI_FN double trni_speed_copy(const trn_engine_work *w)
{
    const int psum = w->psum_inputs + w->psum_outputs;
    if (!trni_work_since(w, TRN_TRAINIUM2) || !trni_work_narrow(w)) return 1;
    if (psum == 0) return w->scattered ? 2 : 4;
    return psum == 1 && !w->scattered ? 2 : 1;
}

TRNI_FN double trni_speed_pair(const trn_engine_work *w)
{
    if (w->psum_inputs == 1) return 2;
    if (trni_work_since(w, TRN_TRAINIUM2) && trni_work_narrow(w) && w->psum_inputs == 0) return 2;
    return w->all_bf16 && !w->scattered && w->simple ? 2 : 1;
}

TRNI_FN double trni_speed_psum(const trn_engine_work *w) { return w->psum_inputs + w->psum_outputs == 1 ? 2 : 1; }

TRNI_FN double trni_speed_fused(const trn_engine_work *w)
{
    return w->all_bf16 && w->simple && fmod(w->elements, 2) == 0 ? 2 : 1;
}

TRNI_FN double trni_speed_narrow(const trn_engine_work *w) { return w->all_bf16 && w->simple ? 2 : 1; }
TRNI_FN double trni_speed_zero(const trn_engine_work *w) { return w->zero && w->all_16bit ? 2 : 1; }

TRNI_FN double trni_speed_scalar(const trn_engine_work *w)
{
    return trni_work_since(w, TRN_TRAINIUM3) && trni_work_narrow(w) ? 2 : 1;
}

#define TRNI_SPEEDS_none "none"
#define TRNI_SPEEDS_copy "Trainium2 on, 16-bit floats: 4 within SBUF, 2 if scattered or one side is in PSUM"

#define TRNI_SPEEDS_pair                                                                                               \
    "2 if one input is in PSUM, or for BF16 add, subtract, multiply; Trainium2 on: for 16-bit floats in SBUF"

#define TRNI_SPEEDS_psum "2 if one operand is in PSUM"
#define TRNI_SPEEDS_fused "2 for BF16, subtract then multiply, an even number of elements"
#define TRNI_SPEEDS_narrow "2 for BF16 add and maximum"
#define TRNI_SPEEDS_zero "2 for zeros in 16-bit formats"
#define TRNI_SPEEDS_scalar "Trainium3: 2 for 16-bit floats and FP8"

TRN_API const trn_engine_rule *trn_engine_rule_of(trn_rule rule)
{
#define TRNI_NAME_VECTOR "VectorE"
#define TRNI_NAME_SCALAR "ScalarE"
#define TRNI_NAME_GPSIMD "GpSimdE"
#define TRNI_X(id, name, engine, per_element, fixed, minimum, speed, known, where)                                     \
    { name,    TRNI_NAME_##engine, TRNI_CLOCK_##engine, per_element, fixed,                                            \
      minimum, trni_speed_##speed, TRNI_SPEEDS_##speed, TRN_##known, where },
    static const trn_engine_rule table[TRN_RULE_COUNT] = { TRNI_RULES(TRNI_X) };
#undef TRNI_X
#undef TRNI_NAME_VECTOR
#undef TRNI_NAME_SCALAR
#undef TRNI_NAME_GPSIMD
    return (unsigned)rule < TRN_RULE_COUNT ? &table[(unsigned)rule] : NULL;
}

/* ---- what device profiles say ---- */

/* Cycles of all elements: a faster mode of the pages is not slowed down. */
TRNI_FN double trni_measured_streaming(const trn_engine_work *work, double documented)
{
    const struct {
        trn_rule rule;
        trn_generation since;
        double per_element;
    } row[] = {
#define TRNI_X(id, since, per_element, where) { TRN_RULE_##id, since, per_element },
        TRNI_MEASURED_RULES(TRNI_X)
#undef TRNI_X
    };
    double least = documented;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].rule == work->rule && trni_work_since(work, row[i].since))
            least = fmin(least, work->elements * row[i].per_element * (work->far_stride ? 2 : 1));
    return least;
}

/* Cycles before the first element. */
TRNI_FN double trni_measured_start(const trn_engine_rule *rule, double hz)
{
    if (rule->clock == TRNI_CLOCK_GPSIMD) return 0;
    return ceil(trni_fact(rule->clock == TRNI_CLOCK_VECTOR ? TRN_FACT_START_VECTOR : TRN_FACT_START_SCALAR) * hz);
}

/* ---- the answer ---- */

TRN_API trn_status trn_engine_cycles(const trn_engine_work *work, trn_engine_cost *cost)
{
    TRNI_FLOATS;
    const trn_engine_rule *rule = trn_engine_rule_of(work->rule);
    const trn_core_spec *core = trn_core_spec_of(work->generation);
    if (!rule || !core || !(work->elements >= 0 && work->elements < HUGE_VAL) ||
        !(work->more_cycles >= 0 && work->more_cycles < HUGE_VAL))
        return TRN_EINVAL;
    const double stride = work->far_stride ? 2 : 1;
    double streaming = work->elements * rule->per_element * stride / rule->speed_up(work);
    if (work->measured) streaming = trni_measured_streaming(work, streaming);
    const double hz[] = { core->vector_clock_hz, core->scalar_clock_hz, core->gpsimd_clock_hz };
    cost->rule = rule;
    cost->cycles = fmax(rule->minimum, ceil(streaming)) + rule->fixed + work->more_cycles;
    if (work->registers) cost->cycles += trni_fact(TRN_FACT_REGISTERS);
    if (work->measured)
        cost->cycles += work->joined ? 0 : trni_measured_start(rule, hz[rule->clock]);
    else if (work->dependent && rule->clock != TRNI_CLOCK_GPSIMD)
        cost->cycles += trni_fact(TRN_FACT_DEPENDENT);
    cost->seconds = cost->cycles / hz[rule->clock];
    return TRN_OK;
}

/* ---- DMA ---- */

TRNI_FN double trni_dma_share(const trn_dma_work *w)
{
    if (w->transpose) return trni_fact(w->from_sbuf ? TRN_FACT_TRANSPOSE_SBUF : TRN_FACT_TRANSPOSE);
    return w->compute ? trni_fact(TRN_FACT_COMPUTE) : 1;
}

/* Of a descriptor of so many bytes, as profiles show it: 71 ns of short ones, the rate of long ones, and between them a
 * curve of the fourth order that has 92 ns at 2 KiB (measured: 92) and is 1 % from the rate at 4 KiB. */
TRNI_FN double trni_descriptor_s(double bytes, double byte_s)
{
    const double shortest_s = trni_fact(TRN_FACT_SHORTEST), part = bytes * byte_s / shortest_s;
    return shortest_s * sqrt(sqrt(1 + part * part * part * part));
}

/* What joining these bytes to those before adds. */
TRNI_FN double trni_joined_s(const trn_dma_work *w, double run, double byte_s)
{
    const double all_s = trni_descriptor_s(w->before_bytes + run, byte_s);
    return w->before_bytes > 0 ? all_s - trni_descriptor_s(w->before_bytes, byte_s) : all_s;
}

TRN_API trn_status trn_dma_seconds(const trn_dma_work *work, trn_dma_cost *cost)
{
    TRNI_FLOATS;
    const trn_core_spec *core = trn_core_spec_of(work->generation);
    const double wire = work->wire > 0 ? work->wire : 1, most = trni_fact(TRN_FACT_DESCRIPTOR);
    if (!core || !(work->bytes >= 0 && work->bytes < HUGE_VAL) || !(work->run_bytes >= 0)) return TRN_EINVAL;
    memset(cost, 0, sizeof *cost);
    cost->rate_known = trni_core_source_of(core, "dma_engine_bytes_per_s");
    cost->latency_known = trni_core_source_of(core, "dma_latency_s");
    if (work->bytes == 0) return TRN_OK;
    const double run = fmax(1, fmin(work->transpose ? most : work->run_bytes, most));
    const bool known = work->measured && core->generation == TRN_TRAINIUM2;
    const double reach = work->partitions > 0 && work->partitions <= 64 ? trni_fact(TRN_FACT_HALF_REACH) : 1;
    const double engine = known ? trni_fact(TRN_FACT_COPIES) * reach : core->dma_engine_bytes_per_s;
    const double rate = engine * trni_dma_share(work);
    cost->descriptors = ceil(work->bytes / run);
    const double share = cost->descriptors / core->dma_engines;
    cost->latency_s = core->dma_latency_s;
    cost->transfer_s = known ? fmax(share, 1) * trni_joined_s(work, run, wire / rate)
                             : ceil(share) * fmax(run, trni_fact(TRN_FACT_SMALLEST)) * wire / rate;
    if (work->hardware) cost->issue_s = trni_fact(TRN_FACT_DGE);
    if (work->software) cost->gpsimd_s = trni_fact(TRN_FACT_SOFTWARE_DGE);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_ENGINE_CYCLES_H */
