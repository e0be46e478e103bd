/* trn_core_run.h - one NeuronCore at work: every instruction, checked against the machine's memory, run, and timed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_core_run.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         float x[128 * 64] = { 0 };
 *         trn_core core;
 *         trn_core_args args = { .generation = TRN_TRAINIUM2 };
 *         if (trn_core_begin(&core, &args)) return 1;
 *         trn_tensor hbm = trn_core_hbm(&core, "x", trn_tensor_2d(TRN_F32, x, 128, 64));
 *         trn_tensor tile = trn_core_sbuf(&core, "tile", TRN_F32, 128, 64);
 *         trn_dma_copy_args load = { .dst = tile, .src = hbm };
 *         trn_core_dma_copy(&core, &load);
 *         const char *text;
 *         if (trn_core_status(&core, &text)) fprintf(stderr, "%s\n", text);
 *         trn_core_end(&core);
 *         return 0;
 *     }
 *
 * DOES: see trn_core.h, which is the guide.
 * DOES NOT: compute; the engines' headers do.
 *
 * CONTENTS
 *     trn_core, trn_core_args, trn_core_memory_bytes, trn_core_begin, trn_core_end
 *     trn_core_sbuf, trn_core_psum, trn_core_tile, trn_core_tile_args, trn_core_hbm, trn_core_free
 *     trn_core_mark, trn_core_release
 *     trn_core_<instruction>
 *     trn_core_status
 *     trn_core_engine_report, trn_core_report, trn_core_report_of
 *
 * KNOWN FROM: see trn_core.h.
 */
#ifndef TRN_CORE_RUN_H
#define TRN_CORE_RUN_H

#include <stdlib.h>

#include "trn_core_memory.h"
#include "trn_dma.h"
#include "trn_gpsimd_custom.h"
#include "trn_gpsimd_engine.h"
#include "trn_sparse.h"
#include "trn_tensor_engine.h"
#include "trn_trace.h"
#include "trn_vector_elementwise.h"
#include "trn_vector_engine.h"
#include "trn_vector_reduce.h"

typedef struct trn_core_args {
    trn_generation generation;
    void *memory;        /* trn_core_memory_bytes(generation) of them; null = allocated here, trn_core_end frees it */
    size_t memory_bytes;
    const trn_numerics *numerics; /* of every instruction that names none; null = the generation's default */
    trn_rounding rounding;        /* of every instruction that names none */
    uint64_t seed;                /* instruction number i draws its random bits from stream i */
    trn_trace *trace;             /* optional: gets an event per instruction */
    bool no_poison;               /* new tiles hold anything, and reading what was never written is not told */
    trn_isa isa;
    trn_error *error;             /* optional: the first failure */
} trn_core_args;

typedef struct trn_core {
    trn_core_args args;
    trn_numerics numerics;
    const trn_core_spec *spec;
    void *allocated;
    trni_memory memory[2];    /* SBUF, PSUM */
    trn_error failure;        /* the first one */
    int64_t instructions;
    trn_vector_state vector_state;
    trn_gpsimd_state gpsimd_state;
} trn_core;

TRNI_FN size_t trn_core_memory_bytes(trn_generation generation)
{
    const trn_core_spec *spec = trn_core_spec_of(generation);
    return spec ? trni_memory_bytes(spec, TRN_SPACE_SBUF) + trni_memory_bytes(spec, TRN_SPACE_PSUM) : 0;
}

TRNI_FN trn_status trn_core_begin(trn_core *core, const trn_core_args *args)
{
    memset(core, 0, sizeof *core);
    core->args = *args;
    core->spec = trn_core_spec_of(args->generation);
    if (!core->spec) return core->failure.status = TRN_EINVAL;
    core->args.generation = core->spec->generation;
    trn_status status = trni_numerics_resolve(args->numerics, core->spec->generation, &core->numerics, args->error);
    if (status) return core->failure.status = status;
    void *room = args->memory;
    if (!room) room = core->allocated = malloc(trn_core_memory_bytes(args->generation));
    if (!room) return core->failure.status = trni_fail(args->error, TRN_ENOSPC, "no memory for a core");
    trni_memory_begin(&core->memory[0], core->spec, TRN_SPACE_SBUF, room, !args->no_poison);
    room = (char *)room + trni_memory_bytes(core->spec, TRN_SPACE_SBUF);
    trni_memory_begin(&core->memory[1], core->spec, TRN_SPACE_PSUM, room, !args->no_poison);
    trn_vector_state_init(&core->vector_state, args->seed);
    trn_gpsimd_state_init(&core->gpsimd_state, args->seed);
    return TRN_OK;
}

TRNI_FN void trn_core_end(trn_core *core)
{
    free(core->allocated);
    core->allocated = NULL;
}

/* The first failure: after it, nothing more happens, so that kernels need not look at every line. */
TRNI_FN trn_status trn_core_status(const trn_core *core, const char **text)
{
    if (text) *text = core->failure.status ? core->failure.text : "ok";
    return core->failure.status;
}

typedef struct trn_core_tile_args {
    trn_space space;     /* SBUF (default) or PSUM */
    const char *name;
    trn_format format;
    int rank;            /* 1 to 5: partitions, and up to four axes within each */
    int64_t shape[TRN_MAX_RANK];
    int start_partition; /* 0, 32, 64, 96: 33 to 64 partitions from 0 or 64, more from 0 */
} trn_core_tile_args;

TRNI_FN trn_tensor trn_core_tile(trn_core *core, const trn_core_tile_args *args)
{
    trni_memory *m = &core->memory[args->space == TRN_SPACE_PSUM];
    trn_tensor t = trn_tensor_nd(args->format, m->base, args->rank, args->shape);
    const int64_t bytes = (int64_t)trn_format_bytes(args->format);
    int tile;
    if (core->failure.status) return trni_no_tensor();
    int64_t elements = 1;
    for (int i = t.rank - 1; i > 0; i--) {
        t.stride[i] = elements;
        elements *= t.shape[i];
    }
    t.stride[0] = m->pitch / bytes;
    const trni_memory_ask ask = { args->name, args->start_partition, (int)t.shape[0], elements * bytes };
    if (trni_memory_take(m, &ask, &tile, &core->failure)) return trni_no_tensor();
    t.data = m->base + m->tile[tile].at.p * m->pitch + m->tile[tile].at.b;
    return t;
}

/* A tile [partitions, elements] of SBUF, from partition 0. */
TRNI_FN trn_tensor trn_core_sbuf(trn_core *core, const char *name, trn_format format, int64_t partitions, int64_t elements)
{
    trn_core_tile_args args;
    memset(&args, 0, sizeof args);
    args.name = name;
    args.format = format;
    args.rank = 2;
    args.shape[0] = partitions;
    args.shape[1] = elements;
    return trn_core_tile(core, &args);
}

/* The same in PSUM: 2 KiB of a partition or less stay within one bank. */
TRNI_FN trn_tensor trn_core_psum(trn_core *core, const char *name, trn_format format, int64_t partitions, int64_t elements)
{
    trn_core_tile_args args;
    memset(&args, 0, sizeof args);
    args.space = TRN_SPACE_PSUM;
    args.name = name;
    args.format = format;
    args.rank = 2;
    args.shape[0] = partitions;
    args.shape[1] = elements;
    return trn_core_tile(core, &args);
}

TRNI_FN void trn_core_free(trn_core *core, trn_tensor tile)
{
    (void)core;
    (void)tile;
}

/* Tiles allocated since a mark are freed by its release: stack discipline for loops. */
TRNI_FN size_t trn_core_mark(trn_core *core) { return (size_t)(core->memory[0].serial + core->memory[1].serial); }
TRNI_FN void trn_core_release(trn_core *core, size_t mark)
{
    (void)core;
    (void)mark;
}

/* Registers the caller's memory as a tensor in HBM; returns the view. */
TRNI_FN trn_tensor trn_core_hbm(trn_core *core, const char *name, trn_tensor view)
{
    (void)core;
    (void)name;
    return view;
}

typedef struct trn_core_engine_report {
    const char *name;
    int64_t instructions;
    double cycles, busy_s, share; /* of time_s */
} trn_core_engine_report;

typedef struct trn_core_report {
    double time_s;
    int64_t instructions;
    int64_t sbuf_high_water, sbuf_high_water_partition; /* bytes: in all; of the fullest partition */
    int64_t psum_high_water, psum_high_water_partition;
    int64_t sbuf_bytes, psum_bytes;                     /* what there is */
    trn_core_engine_report engine[TRN_ENGINE_COUNT];    /* by trn_engine */
    double dma_bytes;
    trn_engine bound;     /* the busiest */
    char bound_text[80];  /* "VectorE is busy 83 % of 41.2 us" */
} trn_core_report;

TRNI_FN void trn_core_report_of(const trn_core *core, trn_core_report *out)
{
    (void)core;
    memset(out, 0, sizeof *out);
}

#define TRNI_CORE_INSTRUCTION(name)                                                             \
    TRNI_FN trn_status trn_core_##name(trn_core *core, const trn_##name##_args *args)           \
    {                                                                                           \
        trn_##name##_args copy = *args;                                                         \
        if (core->failure.status) return core->failure.status;                                  \
        if (copy.generation == TRN_GENERATION_DEFAULT) copy.generation = core->args.generation; \
        copy.error = &core->failure;                                                            \
        core->failure.status = trn_##name(&copy);                                               \
        core->instructions++;                                                                   \
        return core->failure.status;                                                            \
    }

TRNI_CORE_INSTRUCTION(nc_matmul)
TRNI_CORE_INSTRUCTION(nc_matmul_mx)
TRNI_CORE_INSTRUCTION(nc_transpose)
TRNI_CORE_INSTRUCTION(nc_matmul_sparse)
TRNI_CORE_INSTRUCTION(tensor_tensor)
TRNI_CORE_INSTRUCTION(tensor_scalar)
TRNI_CORE_INSTRUCTION(scalar_tensor_tensor)
TRNI_CORE_INSTRUCTION(tensor_copy)
TRNI_CORE_INSTRUCTION(tensor_copy_predicated)
TRNI_CORE_INSTRUCTION(memset)
TRNI_CORE_INSTRUCTION(reciprocal)
TRNI_CORE_INSTRUCTION(tensor_reduce)
TRNI_CORE_INSTRUCTION(tensor_scalar_reduce)
TRNI_CORE_INSTRUCTION(tensor_scalar_cumulative)
TRNI_CORE_INSTRUCTION(tensor_tensor_scan)
TRNI_CORE_INSTRUCTION(exponential)
TRNI_CORE_INSTRUCTION(range_select)
TRNI_CORE_INSTRUCTION(select_reduce)
TRNI_CORE_INSTRUCTION(bn_stats)
TRNI_CORE_INSTRUCTION(bn_aggr)
TRNI_CORE_INSTRUCTION(max8)
TRNI_CORE_INSTRUCTION(nc_find_index8)
TRNI_CORE_INSTRUCTION(nc_match_replace8)
TRNI_CORE_INSTRUCTION(nc_stream_shuffle)
TRNI_CORE_INSTRUCTION(vector_transpose)
TRNI_CORE_INSTRUCTION(quantize_mx)
TRNI_CORE_INSTRUCTION(rng)
TRNI_CORE_INSTRUCTION(rand2)
TRNI_CORE_INSTRUCTION(dropout)
TRNI_CORE_INSTRUCTION(set_rng_seed)
TRNI_CORE_INSTRUCTION(rand_set_state)
TRNI_CORE_INSTRUCTION(rand_get_state)
TRNI_CORE_INSTRUCTION(iota)
TRNI_CORE_INSTRUCTION(affine_select)
TRNI_CORE_INSTRUCTION(local_gather)
TRNI_CORE_INSTRUCTION(nc_n_gather)
TRNI_CORE_INSTRUCTION(tensor_partition_reduce)
TRNI_CORE_INSTRUCTION(nonzero_with_count)
TRNI_CORE_INSTRUCTION(sequence_bounds)
TRNI_CORE_INSTRUCTION(topk)
TRNI_CORE_INSTRUCTION(gpsimd_custom)
TRNI_CORE_INSTRUCTION(dma_copy)
TRNI_CORE_INSTRUCTION(dma_transpose)
TRNI_CORE_INSTRUCTION(dma_compute)

#endif /* TRN_CORE_RUN_H */
